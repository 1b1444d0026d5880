//! What is served.

use flashwright_block::{BlockDevice as _, HoldsData, Nanos};
use flashwright_nvme::Health;
use flashwright_sim::{Causes, LiveRun, mounted_json};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;

/// A device that can be served: it keeps data, and knows a few things more.
///
/// Everything else (the protocol, pacing, recording, control) goes through this trait, so that a drive with an image file, or
/// a real disk, takes the place of the simulated one without a change elsewhere.
pub trait Served: HoldsData + Send + 'static {
    /// Bytes of a page: a trim of whole pages leaves zeros.
    fn page_bytes(&self) -> u64;

    /// Whether the device holds data from a sector on, and over how many sectors that is so, `sectors` at most. Where it
    /// holds none, reads return zeros.
    fn stretch(&self, first_sector: u64, sectors: u64) -> (bool, u64);

    /// A time on the device's clock before which no request completes, whatever is submitted meanwhile; none if nothing is in
    /// flight, or if it can't tell.
    fn none_completes_before(&self) -> Option<Nanos>;

    /// Its figures so far, by name.
    fn figures(&self) -> Map<String, Value>;

    /// Counts for a view of every second.
    fn glance(&self) -> Glance;

    /// What it counts, for the log pages of NVMe. A device that knows no flash tells of its host alone.
    fn health(&self) -> Health {
        let glance = self.glance();
        let [bytes_read, bytes_written] = glance.bytes;
        let capacity = self.info().capacity.0;
        Health {
            capacity,
            bytes_used: capacity,
            bytes_read,
            bytes_written,
            reads: glance.requests[0],
            writes: glance.requests[1],
            spare: 1.0,
            power_on_ns: glance.time_ns,
            ..Health::default()
        }
    }

    /// The state of every block, if it knows blocks.
    fn blocks(&self) -> Option<Blocks> {
        None
    }

    /// Carries out a command that only this kind of device has. None if it has none of that name.
    ///
    /// It is called with the device locked, while requests may be in flight. Commands that every device has are
    /// [`crate::control::Command`].
    fn command(&mut self, name: &str, arguments: &Value) -> Option<Result<Value, String>> {
        let _ = (name, arguments);
        None
    }

    /// What people should know and have not been told, a line each.
    fn notes(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// The names of the commands that only this kind of device has.
    fn commands(&self) -> &'static [&'static str] {
        &[]
    }

    /// A line for people.
    fn description(&self) -> String {
        format!("{}, simulated by Flashwright", self.info().name)
    }

    /// How long a write may be to survive a loss of power as a whole or not at all, if it crosses no multiple of that; none if any
    /// write does. Of a device that says nothing, a sector.
    fn untorn_bytes(&self) -> Option<u64> {
        Some(self.info().sector.0)
    }

    /// Whether a trim of whole pages leaves zeros, so that zeros may be written as a trim. Otherwise they are writes without
    /// data.
    fn trims_to_zeros(&self) -> bool {
        true
    }

    /// Why hosts see no handles to place data by though the device has some, in one line; none if they do, or if it has none.
    fn hides_handles(&self) -> Option<&'static str> {
        None
    }

    /// What was last kept with the device by [`Served::keep`]; nothing if it was nothing.
    fn kept(&self) -> &[u8] {
        &[]
    }

    /// Keeps something with the device, as durably as the device keeps its data once they are flushed.
    ///
    /// # Errors
    /// One line if it can't.
    fn keep(&mut self, what: &[u8]) -> Result<(), String> {
        let _ = what;
        Ok(())
    }

    /// How time passes, if the device's clock is the machine's.
    ///
    /// # Errors
    /// Of the system.
    fn real_time(&self) -> std::io::Result<Option<RealTime>> {
        Ok(None)
    }

    /// All requests that came have been submitted, and the clients wait. Only a device in real time is told.
    fn clients_wait(&mut self) {}
}

/// A device in real time: it does not sleep in [`flashwright_block::BlockDevice::wait`], which only fetches what has ended.
#[derive(Debug)]
pub struct RealTime {
    /// When its clock began.
    pub clock: Instant,
    /// Readable when requests have ended.
    pub wakes: OwnedFd,
}

/// Counts since the device is served.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Glance {
    /// Bytes that the host read and wrote.
    pub bytes: [u64; 2],
    /// Reads, writes, trims and flushes that completed.
    pub requests: [u64; 4],
    /// Pages that the host asked to write; [`Glance::bytes`] has their bytes.
    pub pages_written: u64,
    /// Pages programmed, whatever the cause.
    pub programs: u64,
    /// Pages programmed by cleaning and merging.
    pub programs_gc: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Erased good blocks.
    pub blocks_free: u64,
    /// The device's clock, nanoseconds.
    pub time_ns: u64,
}

/// Every block of the flash, or cells of neighbouring blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blocks {
    /// Blocks in a cell.
    pub joined: u32,
    /// Cells in a plane.
    pub cells_per_plane: u32,
    /// Pages in a block.
    pub pages_per_block: u32,
    /// Erases since the drive was new: the mean of each cell.
    pub erases: Vec<f32>,
    /// Valid pages: the mean of each cell.
    pub valid: Vec<f32>,
}

impl Served for LiveRun {
    fn page_bytes(&self) -> u64 {
        LiveRun::page_bytes(self)
    }
    fn stretch(&self, first_sector: u64, sectors: u64) -> (bool, u64) {
        LiveRun::stretch(self, first_sector, sectors)
    }
    fn none_completes_before(&self) -> Option<Nanos> {
        LiveRun::none_completes_before(self)
    }
    fn figures(&self) -> Map<String, Value> {
        match json!(LiveRun::figures(self)) {
            Value::Object(figures) => figures,
            _ => unreachable!("figures have names"),
        }
    }
    fn glance(&self) -> Glance {
        let figures = LiveRun::figures(self);
        let (requests, programs) = (&figures.requests, &figures.flash.programs);
        let count = Option::unwrap_or_default;
        Glance {
            bytes: [requests.bytes_read, requests.bytes_written],
            requests: [requests.read, requests.write, requests.trim, requests.flush],
            pages_written: count(figures.host.pages_written),
            programs: count(programs.total),
            programs_gc: count(programs.gc) + count(programs.merge),
            erases: count(figures.flash.erases.total),
            blocks_free: figures.blocks_free,
            time_ns: figures.time_ns,
        }
    }
    fn health(&self) -> Health {
        let figures = LiveRun::figures(self);
        let (flash, nand) = (&figures.flash, self.ssd().flash().nand());
        let geometry = self.ssd().flash().geometry();
        let erases = || nand.erases_of_all();
        let page = LiveRun::page_bytes(self);
        let of_pages = |causes: &Causes| causes.total.unwrap_or_default() * page;
        let (blocks, cycles) = (f64::from(geometry.blocks()), nand.cycles_mean());
        let per_block = u64::from(geometry.pages_per_block());
        // Blocks beyond those that the host's pages fill are spare.
        let spare_blocks = figures.blocks.saturating_sub(figures.logical_pages.div_ceil(per_block)).max(1);
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // below 2^53
        Health {
            capacity: self.info().capacity.0,
            bytes_used: figures.logical_pages_with_data * page,
            bytes_read: figures.requests.bytes_read,
            bytes_written: figures.requests.bytes_written,
            reads: figures.requests.read,
            writes: figures.requests.write,
            media_bytes_written: of_pages(&flash.programs),
            media_bytes_erased: flash.erases.total.unwrap_or_default() * per_block * page,
            media_bytes_read: of_pages(&flash.reads),
            media_bytes_rated: cycles.map_or(0, |cycles| (cycles * blocks) as u64 * per_block * page),
            spare: 1.0 - (figures.blocks_worn_out as f64 / spare_blocks as f64).min(1.0),
            used: cycles.map_or(0.0, |cycles| erases().map(f64::from).sum::<f64>() / blocks / cycles),
            blocks_bad: nand.blocks_retired(),
            blocks_free: figures.blocks_free as f64 / blocks,
            erases_min: erases().min().unwrap_or(0),
            erases_max: erases().max().unwrap_or(0),
            is_worn_out: self.ssd().is_worn_out(),
            power_on_ns: figures.time_ns,
            ..Health::default()
        }
    }
    fn blocks(&self) -> Option<Blocks> {
        let geometry = self.ssd().flash().geometry();
        let mut found = LiveRun::blocks(self);
        let taken = found.taken.pop()?;
        Some(Blocks {
            joined: found.joined,
            cells_per_plane: geometry.blocks_per_plane().div_ceil(found.joined),
            pages_per_block: geometry.pages_per_block(),
            erases: taken.erases,
            valid: taken.valid,
        })
    }
    fn notes(&mut self) -> Vec<String> {
        self.take_notes()
    }
    fn untorn_bytes(&self) -> Option<u64> {
        LiveRun::untorn_bytes(self)
    }
    fn hides_handles(&self) -> Option<&'static str> {
        (LiveRun::handles(self) > 0 && !self.places_data()).then_some(
            "placement.policy: found \"fdp\" on a drive whose hosts of NVMe see no handles: a handle has one reclaim unit only with \
             geometry.superblock = \"drive\", ram.manager = \"none\" and slc.cache = \"none\"",
        )
    }
    fn trims_to_zeros(&self) -> bool {
        !self.ssd().has_zones() // there, trims are hints
    }
    fn kept(&self) -> &[u8] {
        LiveRun::kept(self)
    }
    fn keep(&mut self, what: &[u8]) -> Result<(), String> {
        LiveRun::keep(self, what)
    }
    fn command(&mut self, name: &str, arguments: &Value) -> Option<Result<Value, String>> {
        match name {
            "snapshot" => Some(match arguments.get("file").and_then(Value::as_str) {
                Some(file) => self.snapshot(Path::new(file)).map(|pages| json!({ "file": file, "pages": pages })),
                None => Err("snapshot: found no file, expected the path of the image to be made".to_owned()),
            }),
            "cut" => Some(LiveRun::cut(self).map(|()| json!("off"))),
            "mount" => Some(LiveRun::mount(self).map(|mounted| mounted_json(&mounted))),
            "set" => {
                let settings = arguments.get("settings").map(Vec::<String>::deserialize);
                let Some(Ok(settings)) = settings.filter(|found| !matches!(found, Ok(none) if none.is_empty())) else {
                    return Some(Err("set: found no setting, expected KEY=VALUE, such as gc.victim=fifo".to_owned()));
                };
                let restarted = self.restart_with(&settings);
                Some(restarted.map(|mounted| mounted_json(&mounted)).map_err(|error| format!("set: {error}")))
            }
            _ => None,
        }
    }
    fn commands(&self) -> &'static [&'static str] {
        &["cut", "mount", "set", "snapshot"]
    }
}
