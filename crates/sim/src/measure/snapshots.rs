//! Snapshots of all blocks during the measurement.

use flashwright_block::BlockDevice;
use flashwright_nand::BlockId;
use flashwright_ssd::Ssd;
use serde::{Deserialize, Serialize};

/// The state of every block at one moment of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Requests completed by that moment.
    pub requests_end: u64,
    /// The drive's clock.
    pub time_end_ns: u64,
    /// Erases since the drive was new: the mean of each cell's blocks.
    pub erases: Vec<f32>,
    /// Valid pages: the mean of each cell's blocks.
    pub valid: Vec<f32>,
}

/// Snapshots spaced evenly over the measurement, the first at its start. A cell stands for [`Snapshots::joined`]
/// neighbouring blocks of a plane; the last cell of a plane may stand for fewer. Cells are in order of their blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshots {
    /// Blocks per cell.
    pub joined: u32,
    /// The snapshots in order of time.
    pub taken: Vec<Snapshot>,
    most: usize,
    /// Windows from one snapshot to the next, a power of two.
    every: usize,
}

/// Largest number of cells in a snapshot: it keeps the series of a large drive within some megabytes.
const CELLS_MAX: u32 = 8192;

impl Snapshots {
    pub(super) fn new(ssd: &Ssd, most: usize) -> Self {
        let geometry = ssd.flash().geometry();
        let planes = geometry.blocks() / geometry.blocks_per_plane();
        let joined = geometry.blocks().div_ceil(CELLS_MAX.max(planes));
        Self { joined, taken: Vec::new(), most: most.max(2), every: 1 }
    }

    /// The current state of a drive alone.
    #[must_use]
    pub fn now(ssd: &Ssd, requests_end: u64) -> Self {
        let mut found = Self::new(ssd, 2);
        found.taken.push(found.look(ssd, requests_end, ssd.now().0));
        found
    }

    /// The current state of every block.
    #[allow(clippy::cast_precision_loss)] // erases and pages of a block
    pub(super) fn look(&self, ssd: &Ssd, requests_end: u64, time_end_ns: u64) -> Snapshot {
        let (flash, geometry) = (ssd.flash(), ssd.flash().geometry());
        let means = |of: &dyn Fn(BlockId) -> u32| -> Vec<f32> {
            let ids: Vec<u32> = (0..geometry.blocks()).collect();
            let planes = ids.chunks(geometry.blocks_per_plane() as usize);
            let cells = planes.flat_map(|plane| plane.chunks(self.joined as usize));
            cells.map(|cell| cell.iter().map(|id| of(BlockId(*id)) as f32).sum::<f32>() / cell.len() as f32).collect()
        };
        let (erases, valid) = (means(&|block| flash.nand().erases(block)), means(&|block| flash.pages_valid(block)));
        Snapshot { requests_end, time_end_ns, erases, valid }
    }

    /// Takes a snapshot if one is due after this many windows. One place stays free for the end of the run.
    pub(super) fn window_ended(&mut self, windows: usize, ssd: &Ssd, requests_end: u64, time_end_ns: u64) {
        if !windows.is_multiple_of(self.every) {
            return;
        }
        if self.taken.len() + 1 >= self.most {
            let mut nth = 0;
            self.taken.retain(|_| {
                nth += 1;
                nth % 2 == 1
            });
            self.every *= 2;
            if !windows.is_multiple_of(self.every) {
                return;
            }
        }
        self.taken.push(self.look(ssd, requests_end, time_end_ns));
    }

    /// Windows were joined in pairs.
    pub(super) fn windows_joined(&mut self) {
        self.every = (self.every / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::Seed;
    use flashwright_ssd::Config;

    #[test]
    fn cells_are_means_of_blocks_of_one_plane() {
        let text = "[geometry]\nchannels = 2\ndies-per-channel = 1\nblocks-per-plane = 5003\npages-per-block = 4";
        let config = Config::from_toml(text, "test").expect("a drive");
        let ssd = Ssd::new(&config, Seed(1), false).expect("a drive");
        let found = Snapshots::new(&ssd, 2);
        let look = found.look(&ssd, 0, 0);
        assert_eq!((found.joined, look.erases.len()), (2, 2 * 2502));
        assert!(look.valid.iter().all(|pages| *pages == 0.0));
    }
}
