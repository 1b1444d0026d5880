//! How writes gather in blocks: distinct pages written of a block within a window of page writes.
//!
//! This decides how many pages a buffer of blocks destages at once, and how many blocks a merge touches.

/// Bytes of the blocks.
const BLOCKS: [u64; 4] = [64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Page writes of the windows: 1, 16 and 256 MiB.
const WINDOWS: [usize; 3] = [256, 4096, 65536];
const PAGE: u64 = 4096;

/// How writes gather in blocks.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Gathering {
    /// Each window with each block; windows longer than the trace are left out.
    pub found: Vec<Gathered>,
}

/// One window with one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Gathered {
    /// Page writes of the window.
    pub window_pages: u64,
    /// Bytes of the block.
    pub block_bytes: u64,
    /// Windows, one after the other.
    pub windows: u64,
    /// Distinct pages written over distinct blocks written, all windows together.
    pub pages_per_block: f64,
}

#[derive(Default)]
struct Window {
    pages: Vec<u64>,
    windows: u64,
    distinct: u64,
    blocks: [u64; BLOCKS.len()],
}

#[derive(Default)]
pub(crate) struct Collector([Window; WINDOWS.len()]);

impl Collector {
    pub(crate) fn add(&mut self, page: u64) {
        for (window, length) in self.0.iter_mut().zip(WINDOWS) {
            window.pages.push(page);
            if window.pages.len() == length {
                window.close();
            }
        }
    }

    #[allow(clippy::cast_precision_loss)] // a ratio
    pub(crate) fn finish(self) -> Gathering {
        let mut found = Vec::new();
        for (window, length) in self.0.into_iter().zip(WINDOWS).filter(|(window, _)| window.windows > 0) {
            for (block_bytes, blocks) in BLOCKS.into_iter().zip(window.blocks) {
                found.push(Gathered {
                    window_pages: length as u64,
                    block_bytes,
                    windows: window.windows,
                    pages_per_block: window.distinct as f64 / blocks as f64,
                });
            }
        }
        Gathering { found }
    }
}

impl Window {
    fn close(&mut self) {
        self.pages.sort_unstable();
        self.pages.dedup();
        self.windows += 1;
        self.distinct += self.pages.len() as u64;
        for (count, bytes) in self.blocks.iter_mut().zip(BLOCKS) {
            let mut last = None;
            for page in &self.pages {
                let block = page / (bytes / PAGE);
                *count += u64::from(last != Some(block));
                last = Some(block);
            }
        }
        self.pages.clear();
    }
}
