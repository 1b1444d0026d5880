//! What is kept of a run while it goes: latencies, windows, and on demand a row for every request.

use crate::latency::Latency;
use flashwright_block::{BlockDevice, Completion};
use flashwright_ftl::{Cause, Counters, OpKind};
use flashwright_nand::BlockId;
use flashwright_ssd::{BusyTimes, Ssd};
use serde::{Deserialize, Serialize};

/// When a window of the time series ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// No time series.
    Off,
    /// After so many requests.
    Requests(u64),
    /// After so many nanoseconds of the drive's time.
    Nanos(u64),
}

/// One window of the time series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct WindowRow {
    /// Requests completed up to the end of the window, in all.
    pub requests_end: u64,
    /// The drive's clock at the end of the window.
    pub time_end_ns: u64,
    pub requests: u64,
    pub pages_read: u64,
    pub pages_written: u64,
    pub programs: u64,
    pub programs_gc: u64,
    pub reads_flash: u64,
    pub erases: u64,
    pub collections: u64,
    /// Mean valid pages of the victims of the window; none without a victim.
    pub victim_pages_valid_mean: Option<f64>,
    /// None in a window without host writes.
    pub write_amplification: Option<f64>,
    /// Of reads and writes.
    pub response_mean_ns: Option<f64>,
    pub response_p99_ns: Option<u64>,
    /// Reads and writes a second; none where no time passed.
    pub iops: Option<f64>,
    /// Time that the window covers.
    pub duration_ns: u64,
    /// Blocks retired up to the end of the window, in all.
    pub blocks_worn_out: u64,
}

/// A row for every request, column by column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct RequestColumns {
    pub arrival_ns: Vec<u64>,
    pub start_ns: Vec<u64>,
    pub completion_ns: Vec<u64>,
    /// [`flashwright_block::RequestKind`] as a number: 0 read, 1 write, 2 trim, 3 flush.
    pub kind: Vec<u8>,
    pub lpn: Vec<u32>,
    pub pages: Vec<u32>,
    /// Flash operations that the request set off, cleaning included.
    pub flash_ops: Vec<u32>,
    pub erases: Vec<u32>,
}

impl RequestColumns {
    fn push(&mut self, completion: &Completion, (first, pages): (u32, u32)) {
        self.arrival_ns.push(completion.request.arrival.0);
        self.start_ns.push(completion.start.0);
        self.completion_ns.push(completion.end.0);
        self.kind.push(completion.request.kind as u8);
        self.lpn.push(first);
        self.pages.push(pages);
        self.flash_ops.push(completion.flash_ops);
        self.erases.push(completion.erases);
    }
}

/// Rows of consecutive requests, in order of completion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Closeup {
    /// The numbers of the requests in order of submission, counted from 0 where measuring began.
    pub request: Vec<u64>,
    /// The rest of each row.
    pub rows: RequestColumns,
}

/// Rows that were asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    all: Option<RequestColumns>,
    closeup: Option<Closeup>,
    /// Tags of the requests in the close-up.
    tags: std::ops::Range<u64>,
    first_tag: u64,
}

impl Kept {
    fn keep(&mut self, completion: &Completion, pages: (u32, u32)) {
        if let Some(all) = &mut self.all {
            all.push(completion, pages);
        }
        if let Some(closeup) = &mut self.closeup
            && self.tags.contains(&completion.tag.0)
        {
            closeup.request.push(completion.tag.0 - self.first_tag);
            closeup.rows.push(completion, pages);
        }
    }
}

/// What every block had at one moment of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Requests completed by then.
    pub requests_end: u64,
    /// The drive's clock.
    pub time_end_ns: u64,
    /// Erases since the drive was new: the mean of each cell's blocks.
    pub erases: Vec<f32>,
    /// Valid pages: the mean of each cell's blocks.
    pub valid: Vec<f32>,
}

/// Snapshots spaced evenly over the measurement, the first where it begins. A cell stands for [`Snapshots::joined`]
/// neighbouring blocks of a plane; the last cell of a plane may stand for fewer. Cells are in order of their blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshots {
    /// Blocks of a cell.
    pub joined: u32,
    /// In order of time.
    pub taken: Vec<Snapshot>,
    most: usize,
    /// Windows from one snapshot to the next, a power of two.
    every: usize,
}

/// Cells of a snapshot at most, so that a series of a large drive stays within some megabytes.
const CELLS_MAX: u32 = 8192;

impl Snapshots {
    fn new(ssd: &Ssd, most: usize) -> Self {
        let geometry = ssd.flash().geometry();
        let planes = geometry.blocks() / geometry.blocks_per_plane();
        let joined = geometry.blocks().div_ceil(CELLS_MAX.max(planes));
        Self { joined, taken: Vec::new(), most: most.max(2), every: 1 }
    }

    /// What every block has now.
    #[allow(clippy::cast_precision_loss)] // erases and pages of a block
    fn look(&self, ssd: &Ssd, requests_end: u64, time_end_ns: u64) -> Snapshot {
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

    /// Takes one if it is due after so many windows. One place is kept free for the end of the run.
    fn window_ended(&mut self, windows: usize, ssd: &Ssd, requests_end: u64, time_end_ns: u64) {
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
}

/// Latencies of one kind of request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Times {
    /// Of requests that did not wait: both their response and their service time.
    unqueued: Latency,
    queued_response: Latency,
    queued_service: Latency,
}

impl Times {
    #[inline(always)]
    fn record(&mut self, response: u64, service: u64) {
        if response == service {
            self.unqueued.record(response);
        } else {
            self.queued_response.record(response);
            self.queued_service.record(service);
        }
    }

    /// Times from arrival to end.
    pub fn response(&self) -> Latency {
        let mut all = self.unqueued.clone();
        all.merge(&self.queued_response);
        all
    }

    /// Times from the drive taking the request to its end.
    pub fn service(&self) -> Latency {
        let mut all = self.unqueued.clone();
        all.merge(&self.queued_service);
        all
    }
}

/// The measurement of one phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measurement {
    /// By kind of request.
    pub times: [Times; 4],
    pub requests: u64,
    pub pages: [u64; 4],
    pub bytes: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub counters_start: Counters,
    /// How long dies and channels had been busy when measuring began.
    pub busy_start: BusyTimes,
    pub digest: u64,
    timed: bool,
    /// Where something before the flash merges, cuts or buffers: pages that had been written to the translation layer when
    /// measuring began. Those since then count as written, whatever the host's own requests were.
    written_before: Option<u64>,
    window: Window,
    window_start: WindowStart,
    window_response: Latency,
    pub windows: Vec<WindowRow>,
    /// One test a request where no rows are kept.
    kept: Option<Box<Kept>>,
    snapshots: Option<Box<Snapshots>>,
}

/// Counts at the start of the current window.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct WindowStart {
    requests: u64,
    pages: [u64; 4],
    pages_written: u64,
    time_ns: u64,
    programs: u64,
    programs_gc: u64,
    reads: u64,
    erases: u64,
    collections: u64,
    victim_pages_invalid: u64,
}

/// Windows kept at most; then neighbours are joined and the window doubles.
const WINDOWS_MAX: usize = 2000;

impl Measurement {
    /// `first_tag`: the tag of the next request of the host; `closeup`: the first of the requests to look at closely, and
    /// how many.
    pub fn new(
        ssd: &Ssd,
        first_tag: u64,
        timed: bool,
        window: Window,
        keep_requests: bool,
        closeup: Option<(u64, u64)>,
    ) -> Self {
        let now = ssd.now().0;
        let kept = (keep_requests || closeup.is_some()).then(|| {
            let (first, count) = closeup.unwrap_or_default();
            let start = first_tag.saturating_add(first);
            Box::new(Kept {
                all: keep_requests.then(RequestColumns::default),
                closeup: closeup.map(|_| Closeup::default()),
                tags: start..start.saturating_add(count),
                first_tag,
            })
        });
        let mut measurement = Self {
            times: Default::default(),
            requests: 0,
            pages: [0; 4],
            bytes: 0,
            start_ns: now,
            end_ns: now,
            counters_start: ssd.flash().counters().clone(),
            busy_start: ssd.busy_times(),
            digest: DIGEST_START,
            timed,
            written_before: None,
            window,
            window_start: WindowStart::default(),
            window_response: Latency::default(),
            windows: Vec::new(),
            kept,
            snapshots: None,
        };
        measurement.window_start = measurement.counts(ssd);
        measurement
    }

    /// Counts pages written where they reach the translation layer. To be asked for before anything is measured.
    pub fn count_writes_inside(&mut self, ssd: &Ssd) {
        self.written_before = Some(ssd.flash().host_writes());
    }

    /// Pages written since measuring began.
    pub fn pages_written(&self, ssd: &Ssd) -> u64 {
        self.written_before.map_or(self.pages[1], |before| ssd.flash().host_writes() - before)
    }

    /// Keeps at most so many snapshots of all blocks, taken where windows end.
    pub fn keep_snapshots(&mut self, most: usize, ssd: &Ssd) {
        let mut snapshots = Snapshots::new(ssd, most);
        let first = snapshots.look(ssd, self.requests, self.end_ns);
        snapshots.taken.push(first);
        self.snapshots = Some(Box::new(snapshots));
    }

    /// The snapshots, if they were asked for, with the state as it is now as the last one.
    pub fn snapshots(&self, ssd: &Ssd) -> Option<Snapshots> {
        let mut found = self.snapshots.as_deref()?.clone();
        let now = found.look(ssd, self.requests, self.end_ns);
        if found.taken.last().is_some_and(|last| last.requests_end == self.requests) {
            found.taken.pop();
        }
        found.taken.push(now);
        Some(found)
    }

    #[inline(always)]
    pub fn completed(&mut self, completion: &Completion, ssd: &Ssd) {
        let request = &completion.request;
        self.requests += 1;
        let sectors = u64::from(request.sectors);
        let (first, pages) = ssd.pages_of(request);
        self.pages[request.kind as usize] += u64::from(pages);
        if request.kind.moves_data() {
            self.bytes += sectors * flashwright_block::SECTOR_BYTES;
        }
        self.end_ns = self.end_ns.max(completion.end.0);
        self.digest = mix(self.digest, completion.tag.0 ^ u64::from(completion.flash_ops) << 32);
        if self.timed {
            self.digest = mix(self.digest, completion.end.0);
            let (response, service) = (completion.response_time().0, completion.service_time().0);
            self.times[request.kind as usize].record(response, service);
            if self.window != Window::Off && request.kind.moves_data() {
                self.window_response.record(response);
            }
        }
        if let Some(kept) = &mut self.kept {
            kept.keep(completion, (first, pages));
        }
        let over = match self.window {
            Window::Off => false,
            Window::Requests(length) => self.requests - self.window_start.requests >= length,
            Window::Nanos(length) => self.end_ns - self.window_start.time_ns >= length,
        };
        if over {
            self.end_window(ssd);
        }
    }

    /// A row for every request, if it was asked for.
    pub fn requests_kept(&self) -> Option<&RequestColumns> {
        self.kept.as_ref()?.all.as_ref()
    }

    /// Rows of consecutive requests, if they were asked for.
    pub fn closeup(&self) -> Option<&Closeup> {
        self.kept.as_ref()?.closeup.as_ref()
    }

    /// Ends the last window, if anything fell into it.
    pub fn finish(&mut self, ssd: &Ssd) {
        if self.window != Window::Off && self.requests > self.window_start.requests {
            self.end_window(ssd);
        }
    }

    fn counts(&self, ssd: &Ssd) -> WindowStart {
        let (counters, figures) = (ssd.flash().counters(), ssd.figures());
        WindowStart {
            requests: self.requests,
            pages: self.pages,
            time_ns: self.end_ns,
            pages_written: self.pages_written(ssd),
            programs: counters.total(OpKind::Program),
            programs_gc: counters.get(OpKind::Program, Cause::Gc) + counters.get(OpKind::Program, Cause::Merge),
            reads: counters.total(OpKind::Read),
            erases: counters.total(OpKind::Erase),
            collections: figures.collections,
            victim_pages_invalid: figures.victim_pages_invalid,
        }
    }

    #[cold]
    #[allow(clippy::cast_precision_loss)] // counts of a window
    fn end_window(&mut self, ssd: &Ssd) {
        let now = self.counts(ssd);
        let start = std::mem::replace(&mut self.window_start, now.clone());
        let (written, programs) = (now.pages_written - start.pages_written, now.programs - start.programs);
        let (collections, nanos) = (now.collections - start.collections, now.time_ns - start.time_ns);
        let victim_pages = collections * u64::from(ssd.flash().geometry().pages_per_block());
        let victim_valid = victim_pages.saturating_sub(now.victim_pages_invalid - start.victim_pages_invalid);
        self.windows.push(WindowRow {
            requests_end: now.requests,
            time_end_ns: now.time_ns,
            requests: now.requests - start.requests,
            pages_read: now.pages[0] - start.pages[0],
            pages_written: written,
            programs,
            programs_gc: now.programs_gc - start.programs_gc,
            reads_flash: now.reads - start.reads,
            erases: now.erases - start.erases,
            collections,
            victim_pages_valid_mean: (collections > 0).then(|| victim_valid as f64 / collections as f64),
            write_amplification: (written > 0).then(|| programs as f64 / written as f64),
            response_mean_ns: self.window_response.mean(),
            response_p99_ns: self.window_response.quantile(0.99),
            duration_ns: nanos,
            iops: (nanos > 0).then(|| self.window_response.count() as f64 * 1e9 / nanos as f64),
            blocks_worn_out: u64::from(ssd.flash().nand().blocks_retired()),
        });
        self.window_response.clear();
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.window_ended(self.windows.len(), ssd, self.requests, self.end_ns);
        }
        if self.windows.len() == WINDOWS_MAX {
            self.widen();
        }
    }

    /// Joins neighbouring windows, so that a run of unknown length keeps a bounded series.
    fn widen(&mut self) {
        self.windows = self.windows.chunks(2).map(|pair| pair.iter().skip(1).fold(pair[0].clone(), join)).collect();
        self.window = match self.window {
            Window::Off => Window::Off,
            Window::Requests(length) => Window::Requests(length * 2),
            Window::Nanos(length) => Window::Nanos(length * 2),
        };
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.every = (snapshots.every / 2).max(1);
        }
    }
}

/// Two neighbouring windows as one. Means are weighted; of the 99th percentiles the larger is kept.
#[allow(clippy::cast_precision_loss)]
fn join(a: WindowRow, b: &WindowRow) -> WindowRow {
    let weighted = |x: Option<f64>, wx: u64, y: Option<f64>, wy: u64| match (x, y) {
        (Some(x), Some(y)) => Some((x * wx as f64 + y * wy as f64) / (wx + wy).max(1) as f64),
        (x, y) => x.or(y),
    };
    let (written, programs) = (a.pages_written + b.pages_written, a.programs + b.programs);
    let nanos = a.duration_ns + b.duration_ns;
    let moved = |row: &WindowRow| row.iops.unwrap_or(0.0) * row.duration_ns as f64;
    WindowRow {
        requests_end: b.requests_end,
        time_end_ns: b.time_end_ns,
        requests: a.requests + b.requests,
        pages_read: a.pages_read + b.pages_read,
        pages_written: written,
        programs,
        programs_gc: a.programs_gc + b.programs_gc,
        reads_flash: a.reads_flash + b.reads_flash,
        erases: a.erases + b.erases,
        collections: a.collections + b.collections,
        victim_pages_valid_mean: weighted(
            a.victim_pages_valid_mean,
            a.collections,
            b.victim_pages_valid_mean,
            b.collections,
        ),
        write_amplification: (written > 0).then(|| programs as f64 / written as f64),
        response_mean_ns: weighted(a.response_mean_ns, a.requests, b.response_mean_ns, b.requests),
        response_p99_ns: a.response_p99_ns.max(b.response_p99_ns),
        iops: (nanos > 0).then(|| (moved(&a) + moved(b)) / nanos as f64),
        duration_ns: nanos,
        blocks_worn_out: b.blocks_worn_out,
    }
}

const DIGEST_START: u64 = 0xcbf2_9ce4_8422_2325;

/// One step of the digest of a result: order matters, every bit spreads.
#[inline(always)]
pub(crate) fn mix(digest: u64, value: u64) -> u64 {
    (digest.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::Seed;
    use flashwright_ssd::Config;

    /// The moments of snapshots in a run of so many windows, joined ones counted as often as they were joined.
    fn snapshots(ssd: &Ssd, most: usize, windows: u64) -> Vec<u64> {
        let mut measurement = Measurement::new(ssd, 0, false, Window::Requests(10), false, None);
        measurement.keep_snapshots(most, ssd);
        while measurement.requests < 10 * windows {
            let Window::Requests(length) = measurement.window else { unreachable!("as it was made") };
            measurement.requests = (10 * windows).min(measurement.requests + length);
            measurement.end_window(ssd);
        }
        measurement.snapshots(ssd).expect("asked for").taken.iter().map(|taken| taken.requests_end).collect()
    }

    #[test]
    fn snapshots_are_even_whatever_the_length_of_the_run() {
        let text = "[geometry]\nchannels = 1\ndies-per-channel = 1\nblocks-per-plane = 32";
        let config = Config::from_toml(text, "test").expect("a drive");
        let ssd = Ssd::new(&config, Seed(1), false).expect("a drive");
        assert_eq!(snapshots(&ssd, 6, 0), [0]);
        assert_eq!(snapshots(&ssd, 6, 4), [0, 10, 20, 30, 40]);
        assert_eq!(snapshots(&ssd, 6, 9), [0, 20, 40, 60, 80, 90]);
        for most in [2, 3, 7, 60] {
            // Long enough that windows are joined, twice.
            let found = snapshots(&ssd, most, 5555);
            assert!(found.len() <= most && found.len() >= most.div_ceil(2), "{most}: {found:?}");
            assert_eq!((found[0], found[found.len() - 1]), (0, 55_550));
            let steps: Vec<u64> = found.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(steps[..steps.len() - 1].iter().all(|step| *step == steps[0]), "{most}: {found:?}");
        }
    }

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
