//! Fitting: one pass over the requests, in memory for each block of 64 KiB touched and 9 B a request.

use super::chances::{ChoiceCounts, SpotCounts, choices};
use super::curve::{bin_around, within};
use super::file::{Direction, Fitted, Footprint, Model};
use super::gaps;
use super::kinds::MixCounts;
use super::room::Room;
use super::runs::{Ahead, RunCounts};
use super::sequence::Sequence;
use super::sizes::SizeCounts;
use super::tree::{
    CLASSES, EXTENTS, FAN, Found, LEAF_PAGES, NEAR, NEAR_BLOCKS, PAGE_SECTORS, Path, READ, REGION_LEAVES, REGION_PAGES,
    Recent, STATES, Tree, WRITE, class, cover, extent,
};
use crate::trace::{TraceError, TraceOptions, TraceReader};
use flashwright_block::{MemoryEnded, Request, RequestClass, Rng, Seed, check_memory, room_for};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::path::Path as FilePath;

/// Reads, writes and trims that a fit needs.
pub(super) const FEWEST: u64 = 100;
/// Requests read per batch.
const BATCH: usize = 4096;
/// Requests from one note of the footprint to the next.
const GROWTH: usize = 64;
/// Bounds are what the footprint would come to after this many times the trace.
const HORIZON: f64 = 10.0;
/// Bytes that a fit to a sequence takes for each request at its end: the requests twice, packed, compressed and as text. A
/// trace of 150,000 requests took 257 for each, the blocks they touch included.
const SEQUENCE_BYTES: usize = 256;
/// As [`SEQUENCE_BYTES`], of a fit of statistics: a request's time is all that is kept, and is sorted.
const STATISTICS_BYTES: usize = 32;
/// Seconds of a day.
const DAY_S: f64 = 86_400.0;

/// Why no model could be fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// There is too little to fit to.
    #[error("found {found} reads, writes and trims, expected at least {FEWEST} to fit a model to")]
    TooShort {
        /// Reads and writes of the trace, for statistics trims too.
        found: u64,
    },
    /// What the fit keeps of the requests finds no place.
    #[error(transparent)]
    Memory(#[from] MemoryEnded),
    /// Its requests touch too much of the address space.
    #[error("{0}")]
    TooLarge(String),
}

/// Fits a model to the trace at `path`, or to its first `most` requests.
///
/// # Errors
/// [`FitError`] if the trace cannot be read, is too short, or touches more than 2 TiB.
///
/// ```
/// use flashwright_workload::model::{Model, fit};
/// use flashwright_workload::trace::TraceOptions;
/// # let path = std::env::temp_dir().join(format!("flashwright-model-{}.spc", std::process::id()));
/// # let lines: String = (0..200).map(|i| format!("0,{},4096,w,{}.0\n", i * 37 % 100 * 8, i)).collect();
/// # std::fs::write(&path, lines).unwrap();
/// let model = fit(&path, &TraceOptions::default(), None)?;
/// assert_eq!((model.fitted.writes, model.footprint.pages), (200, 100));
/// assert_eq!(model.to_text().parse::<Model>().unwrap(), model);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), flashwright_workload::model::FitError>(())
/// ```
pub fn fit(path: impl AsRef<FilePath>, options: &TraceOptions, most: Option<u64>) -> Result<Model, FitError> {
    fit_to(&mut TraceReader::open(path, options)?, most)
}

/// As [`fit`], to what a reader has left.
///
/// # Errors
/// As [`fit`].
pub fn fit_to(reader: &mut TraceReader, most: Option<u64>) -> Result<Model, FitError> {
    let mut fitting = Fitting::new();
    each(reader, most, |request| fitting.add(request))?;
    room_for(fitting.times.len() * STATISTICS_BYTES)?;
    fitting.model()
}

/// As [`fit_to`], a model of the kind `sequence`.
///
/// # Errors
/// As [`fit`].
pub fn fit_sequence(reader: &mut TraceReader, most: Option<u64>) -> Result<Sequence, FitError> {
    let most = most.unwrap_or(u64::MAX).min(u64::from(u32::MAX));
    let mut requests = Vec::new();
    each(reader, Some(most), |request| requests.push(*request))?;
    room_for(requests.len() * SEQUENCE_BYTES)?;
    Sequence::of(&requests)
}

/// Hands the next requests of a reader on, at most so many.
fn each(reader: &mut TraceReader, most: Option<u64>, mut take: impl FnMut(&Request)) -> Result<(), FitError> {
    let (mut batch, mut room) = (Vec::with_capacity(BATCH), Room::default());
    let mut left = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    while left > 0 {
        batch.clear();
        let read = reader.read(&mut batch, BATCH.min(left))?;
        if read == 0 {
            break;
        }
        left -= read;
        check_memory()?;
        // All of them before any is worked on, since a request of terabytes takes seconds.
        batch
            .iter()
            .try_for_each(|request| room.take(request))
            .map_err(|error| FitError::TooLarge(error.to_string()))?;
        batch.iter().for_each(&mut take);
    }
    Ok(())
}

/// A share that is counted.
#[derive(Clone, Copy, Default)]
struct Tally {
    yes: u64,
    all: u64,
}

impl Tally {
    fn add(&mut self, yes: bool) {
        self.yes += u64::from(yes);
        self.all += 1;
    }

    fn share(self) -> f64 {
        if self.all == 0 { 0.0 } else { self.yes as f64 / self.all as f64 }
    }
}

/// Counts for reads, writes or trims.
#[derive(Default)]
struct Counts {
    requests: u64,
    runs: RunCounts,
    jump_sizes: SizeCounts,
    run_sizes: SizeCounts,
    same_own: Tally,
    same_other: Tally,
    same_run: Tally,
    region: ChoiceCounts,
    page: [ChoiceCounts; EXTENTS],
    near: [ChoiceCounts; EXTENTS],
    block: ChoiceCounts,
    in_block: ChoiceCounts,
    /// The kind of the last jump, and how often each follows each.
    state: Option<usize>,
    next: [[u64; STATES]; STATES],
    /// By class of the request: jumps to pages of each class of the last request; the own class has those that are not.
    resized: [[u64; EXTENTS]; EXTENTS],
    resized_page: ChoiceCounts,
    /// By the distance: pages about as far back as the one used, those used less often, and those used as often.
    compared: [[u64; 3]; 3],
    clear: [Tally; EXTENTS],
    levels: [[ChoiceCounts; CLASSES]; 2],
    spots: [SpotCounts; 3],
    adjacent: Tally,
}

/// A fit in progress.
pub struct Fitting {
    tree: Tree,
    recent: Recent,
    /// Regions in order of first use: their number by place, and their place by number.
    places: Vec<u64>,
    numbers: HashMap<u64, u32, BuildHasherDefault<DefaultHasher>>,
    /// Sizes in order of first use; the 256th and later ones count as one.
    sizes: HashMap<(u32, u64), u8, BuildHasherDefault<DefaultHasher>>,
    counts: [Counts; 3],
    mix: MixCounts,
    times: Vec<u64>,
    now: u32,
    flushes: u64,
    /// Regions, blocks and pages used before each [`GROWTH`] requests that move or trim data.
    sizes_so_far: Vec<[u64; 3]>,
    /// Which pages are compared.
    rng: Rng,
}

impl Default for Fitting {
    fn default() -> Self {
        Self::new()
    }
}

impl Fitting {
    /// A fit without any request yet.
    #[must_use]
    pub fn new() -> Self {
        Fitting {
            tree: Tree::default(),
            recent: Recent::new(),
            places: Vec::new(),
            numbers: HashMap::default(),
            sizes: HashMap::default(),
            counts: Default::default(),
            mix: MixCounts::default(),
            times: Vec::new(),
            now: 0,
            flushes: 0,
            sizes_so_far: Vec::new(),
            rng: Seed(0).stream("model.fit"),
        }
    }

    /// Adds the next request of the trace.
    pub fn add(&mut self, request: &Request) {
        let gap = self.times.last().map_or(0, |last| request.arrival.0.saturating_sub(*last));
        self.times.push(request.arrival.0);
        self.mix.add(request.kind, gap, request.fua);
        let kind = match request.kind.class() {
            RequestClass::Read => READ,
            RequestClass::Write => WRITE,
            RequestClass::Discard => 2,
            RequestClass::Barrier | RequestClass::Manage => {
                self.flushes += 1;
                return;
            }
        };
        if (self.now as usize).is_multiple_of(GROWTH) {
            self.sizes_so_far.push(self.used());
        }
        self.now = self.now.wrapping_add(1);
        let known = self.sizes.len().min(255) as u8;
        let size = *self.sizes.entry((request.sectors, request.first_sector % PAGE_SECTORS)).or_insert(known);
        self.counts[kind].requests += 1;
        let counts = &mut self.counts[kind];
        let run = counts.runs.add(request.first_sector);
        let state = if let Some(end) = run {
            counts.same_run.add(end.size == size);
            counts.run_sizes.add(request.sectors, request.first_sector);
            usize::from(end.state)
        } else {
            counts.jump_sizes.add(request.sectors, request.first_sector);
            self.place(kind, request, size)
        };
        let ahead = if kind < 2 { self.touch(kind, request, size, run.is_none()) } else { Ahead::Unused };
        self.counts[kind].runs.note(request.end_sector(), size, state, ahead);
    }

    /// Counts how the page at which a request starts would be found; returns the kind of jump.
    fn place(&mut self, kind: usize, request: &Request, size: u8) -> usize {
        let start = request.first_sector / PAGE_SECTORS;
        let page = start;
        let pages = request.end_sector().saturating_sub(1) / PAGE_SECTORS + 1 - page;
        let place = page / REGION_PAGES;
        let own = (kind < 2).then_some(kind);
        let other = own.map_or(WRITE, |own| 1 - own);
        let number = self.numbers.get(&place).copied();
        let path = Path::new(number.unwrap_or(0), page);
        let counts = &mut self.counts[kind];
        let last = |lists: Option<&super::tree::Lists>| lists.map_or([0; 2], |lists| lists.last);
        let page = number.and_then(|_| self.tree.page(&path));
        let extent = extent(pages);
        let find = |list: usize| page.and_then(|page| self.recent.pages[list].find(page));
        let [mine, theirs] = [own.and_then(find), find(other)];
        let ranks = (mine.map(|found| found.1), theirs.map(|found| found.1));
        let wrote = page.is_some_and(|page| self.tree.was_write(page));
        let mut lasts = [0; 2];
        lasts[usize::from(wrote)] = 1;
        let found = judge(ranks.0, ranks.1, lasts, other);
        let of = match found {
            Found::Own(_) => mine,
            Found::Other(_) => theirs,
            Found::New => None,
        };
        let of = of.map_or(extent, |found| found.0);
        if let (Found::Own(rank), Some(own)) = (found, own) {
            compare(&mut counts.compared, rank, page, (&self.recent.pages[own], of), &self.tree, &mut self.rng);
        }
        let near = matches!(found, Found::Own(rank) | Found::Other(rank) if rank < NEAR && of == extent);
        let blocks = own.filter(|_| !near && number.is_some()).map(|own| &self.recent.blocks[own]);
        let block = blocks.and_then(|blocks| blocks.find(self.tree.block(&path)?)).map(|found| found.1);
        let block = block.filter(|rank| *rank < NEAR_BLOCKS);
        let state = extent + if near { EXTENTS } else { block.map_or(0, |_| 2 * EXTENTS) };
        if let Some(last) = counts.state.replace(state) {
            counts.next[last][state] += 1;
        }
        if let Some(rank) = block {
            counts.block.add(Found::Own(rank), 0);
        } else {
            let choice = match (of == extent, near) {
                (false, _) => &mut counts.resized_page,
                (true, true) => &mut counts.near[extent],
                (true, false) => &mut counts.page[extent],
            };
            if !near {
                counts.resized[extent][of] += 1;
            }
            choice.add(found, own.map_or(0, |own| self.recent.pages[own].len(extent)));
        }
        let same = page.is_some_and(|page| self.tree.size(page) == size);
        match found {
            Found::Own(_) => counts.same_own.add(same),
            Found::Other(_) => counts.same_other.add(same),
            Found::New => {}
        }
        if block.is_none() && found != Found::New {
            return state;
        }
        let mut found = if block.is_some() { Found::Own(0) } else { self.region(kind, number, place, &path) };
        let counts = &mut self.counts[kind];
        for (level, fan) in FAN.into_iter().enumerate().skip(usize::from(block.is_some())) {
            let part = path.parts[level];
            if found == Found::New {
                counts.spots[level].add(part, None, fan);
                continue;
            }
            let lists = *self.tree.lists(&path, level).expect("a block that was found was used");
            let through = if matches!(found, Found::Other(_)) { other } else { own.unwrap_or(other) };
            found = Found::New;
            if level < 2 {
                let class = class(through == other, self.now.wrapping_sub(lists.last[through]));
                let ranks = (own.and_then(|own| lists.order[own].rank(part)), lists.order[other].rank(part));
                found = judge(ranks.0, ranks.1, last(self.tree.lists(&path, level + 1)), other);
                counts.levels[level][class].add(found, own.map_or(0, |own| lists.order[own].len()));
            }
            if level == 2 && block.is_some() {
                let ranks = (own.and_then(|own| lists.order[own].rank(part)), lists.order[other].rank(part));
                found = judge(ranks.0, ranks.1, lasts, other);
                counts.in_block.add(found, own.map_or(0, |own| lists.order[own].len()));
            }
            if level == 2 && found == Found::New {
                // A start is clear if the request covers unused pages alone; counted where that is possible in its first block.
                let (used, _) = self.tree.used(&path);
                let clear = |part: usize| used & cover(part, pages) == 0;
                if (0..fan).any(clear) {
                    let rest = |block: u64| {
                        let number = self.numbers.get(&(block / REGION_LEAVES)).copied();
                        number.is_some_and(|number| self.tree.used(&Path::new(number, block * LEAF_PAGES)).0 != 0)
                    };
                    let (first, last) = (start / LEAF_PAGES, (start + pages.max(1) - 1) / LEAF_PAGES);
                    // Of huge requests the first MiB decides.
                    let last = last.min(first + 16);
                    counts.clear[extent].add(clear(part) && !(first + 1..=last).any(rest));
                }
            }
            if found == Found::New {
                let before = own.map(|own| lists.order[own]).filter(|order| order.len() > 0);
                counts.spots[level].add(part, before.map(|order| order.at(0)), fan);
            }
        }
        state
    }

    /// Counts how the region of a page is found.
    fn region(&mut self, kind: usize, number: Option<u32>, place: u64, path: &Path) -> Found {
        let own = (kind < 2).then_some(kind);
        let other = own.map_or(WRITE, |own| 1 - own);
        let counts = &mut self.counts[kind];
        let rank = |list: usize| number.and_then(|number| self.recent.regions[list].find(number)).map(|found| found.1);
        let last = number.and_then(|_| self.tree.lists(path, 0)).map_or([0; 2], |lists| lists.last);
        let found = judge(own.and_then(rank), rank(other), last, other);
        counts.region.add(found, own.map_or(0, |own| self.recent.regions[own].len(0)));
        if found == Found::New {
            let before = own.map(|own| &self.recent.regions[own]).filter(|list| list.len(0) > 0);
            if let Some(list) = before {
                counts.adjacent.add(self.places[list.at(0, 0) as usize] + 1 == place);
            }
        }
        found
    }

    /// Notes that a request used its blocks and its first page.
    fn touch(&mut self, list: usize, request: &Request, size: u8, jump: bool) -> Ahead {
        let first = request.first_sector / PAGE_SECTORS;
        let last = (request.end_sector().max(request.first_sector + 1) - 1) / PAGE_SECTORS;
        for block in first / LEAF_PAGES..=last / LEAF_PAGES {
            let page = (block * LEAF_PAGES).max(first);
            let place = page / REGION_PAGES;
            let number = *self.numbers.entry(place).or_insert_with(|| {
                self.places.push(place);
                (self.places.len() - 1) as u32
            });
            self.recent.regions[list].touch(0, number);
            let started = (page == first).then_some((size, jump));
            let path = Path::new(number, page);
            let page = self.tree.touch(&path, list, self.now, last + 1 - page, started);
            let block = self.tree.block(&path).expect("a block that was used");
            self.recent.blocks[list].touch(0, block);
            if started.is_some() && (jump || self.recent.pages[list].has(page)) {
                self.recent.pages[list].touch(extent(last + 1 - first), page);
            }
        }
        let next = request.end_sector() / PAGE_SECTORS;
        let number = self.numbers.get(&(next / REGION_PAGES)).copied();
        let used = number.is_some_and(|number| self.tree.is_used(&Path::new(number, next)));
        if used { Ahead::Used } else { Ahead::Unused }
    }

    /// Regions, blocks and pages used so far.
    fn used(&self) -> [u64; 3] {
        [self.places.len() as u64, self.tree.leaves(), self.tree.pages]
    }

    /// The footprint, and what it would come to if it grew on by the power law of its second half.
    fn footprint(&self) -> Footprint {
        // A trace of trims alone uses no block.
        let used = self.used().map(|count| count.max(1));
        let half = self.sizes_so_far[self.sizes_so_far.len() / 2];
        let span = match (self.places.iter().min(), self.places.iter().max()) {
            (Some(first), Some(last)) => last - first + 1,
            _ => 1,
        };
        let mut most = [0, 1, 2].map(|of: usize| {
            let exponent = libm::log2(used[of] as f64 / half[of].max(1) as f64).clamp(0.0, 1.0);
            (used[of] as f64 * libm::pow(HORIZON, exponent)).round() as u64
        });
        most[0] = most[0].min(span).min(1 << 28).max(used[0]);
        most[1] = most[1].min(most[0] * REGION_LEAVES);
        most[2] = most[2].min(most[1] * LEAF_PAGES);
        Footprint {
            regions: used[0],
            blocks: used[1],
            pages: used[2],
            most_regions: most[0],
            most_blocks: most[1],
            most_pages: most[2],
        }
    }

    /// The model.
    ///
    /// # Errors
    /// [`FitError::TooShort`] below 100 reads, writes and trims.
    pub fn model(self) -> Result<Model, FitError> {
        let data: u64 = self.counts.iter().map(|counts| counts.requests).sum();
        if data < FEWEST {
            return Err(FitError::TooShort { found: data });
        }
        let mut borrowed = Vec::new();
        let (mix, short) = self.mix.mix();
        if short {
            borrowed.push("mix.next-level: too few windows of 256 requests to know how the mix drifts".to_owned());
        }
        let arrivals = gaps::fit(&self.times);
        let span_s = (self.times[self.times.len() - 1] - self.times[0]) as f64 / 1e9;
        match &arrivals {
            None => borrowed.push("arrivals: the trace has no times".to_owned()),
            Some((_, coarse)) => {
                borrowed
                    .extend(coarse.iter().map(|scale| format!("{scale}: too few intervals, as the next finer scale")));
                if span_s < DAY_S {
                    borrowed.push(format!(
                        "arrivals: nothing is known of bursts longer than {:.3} s, an eighth of the trace",
                        span_s / 8.0
                    ));
                }
            }
        }
        let footprint = self.footprint();
        let requests = [0, 1, 2].map(|kind: usize| self.counts[kind].requests);
        let names = ["read", "write", "trim"];
        let [read, write, trim] =
            [0, 1, 2].map(|kind: usize| direction(&self.counts[kind], names[kind], &mut borrowed));
        let model = Model {
            version: super::file::VERSION,
            fitted: Fitted {
                requests: self.times.len() as u64,
                reads: requests[0],
                writes: requests[1],
                trims: requests[2],
                flushes: self.flushes,
                span_s,
                borrowed,
            },
            footprint,
            mix,
            arrivals: arrivals.map(|(arrivals, _)| arrivals),
            read,
            write,
            trim,
        };
        // As its text says, so that a model is the same before and after it was written.
        Ok(model.to_text().parse().expect("a model that was fitted can be read"))
    }
}

/// The class of a distance, for preferences.
pub(super) fn reach(rank: u64) -> usize {
    usize::from(rank >= 64) + usize::from(rank >= 1024)
}

/// Compares how often the page that is used again was used, with another about as far back.
fn compare(
    compared: &mut [[u64; 3]; 3],
    rank: usize,
    page: Option<u32>,
    (pages, list): (&super::recency::Recency, usize),
    tree: &Tree,
    rng: &mut Rng,
) {
    let range = bin_around(rank);
    let range = range.start as u64..(range.end as u64).min(pages.len(list) as u64);
    let (Some(page), true) = (page, range.end - range.start > 1) else { return };
    let mine = tree.count(page);
    let counts = &mut compared[reach(rank as u64)];
    let other = within(&range, rng);
    if other != rank as u64 {
        let theirs = tree.count(pages.at(list, other as usize));
        counts[0] += 1;
        counts[1] += u64::from(theirs < mine);
        counts[2] += u64::from(theirs == mine);
    }
}

/// Of how many pages the one used most often is taken. It is used more often than m / (m + 1) of the others.
fn preference(compared: &[[u64; 3]; 3]) -> Vec<f64> {
    let prefer = compared.map(|[all, less, same]| {
        if all < 50 {
            return 1.0;
        }
        let above = (less as f64 + same as f64 / 2.0) / all as f64;
        (above / (1.0 - above).max(0.01)).clamp(1.0, 16.0)
    });
    prefer.to_vec()
}

/// Which kind of jump follows each; those that few jumps had lean on the mean of all.
fn next(counts: &[[u64; STATES]; STATES]) -> Vec<Vec<f64>> {
    let to = |to: usize| counts.iter().map(|row| row[to]).sum::<u64>() as f64;
    let all: f64 = (0..STATES).map(to).sum();
    // Of a single jump nothing follows: the first class.
    let mean = |state: usize| if all == 0.0 { f64::from(u8::from(state == 0)) } else { to(state) / all };
    let row = |row: &[u64; STATES]| {
        let total = row.iter().sum::<u64>() as f64 + 1.0;
        row.iter().enumerate().map(|(state, count)| (*count as f64 + mean(state)) / total).collect()
    };
    counts.iter().map(row).collect()
}

fn judge(own: Option<usize>, theirs: Option<usize>, last: [u32; 2], other: usize) -> Found {
    match (own, theirs) {
        (Some(_), Some(rank)) if last[other] > last[1 - other] => Found::Other(rank),
        (Some(rank), _) => Found::Own(rank),
        (None, Some(rank)) => Found::Other(rank),
        (None, None) => Found::New,
    }
}

fn direction(counts: &Counts, name: &str, borrowed: &mut Vec<String>) -> Option<Direction> {
    if counts.requests == 0 {
        return None;
    }
    let mut level = |at: usize, level: &str| {
        let (choices, pooled) = choices(&counts.levels[at]);
        if pooled {
            borrowed.push(format!("{name}.{level}: ages with fewer than 60 requests take the mean of all ages"));
        }
        choices
    };
    Some(Direction {
        block_512k: level(0, "block-512k"),
        block_64k: level(1, "block-64k"),
        page: counts.page.iter().map(ChoiceCounts::choice).collect(),
        near: counts.near.iter().map(ChoiceCounts::choice).collect(),
        block: counts.block.choice(),
        in_block: counts.in_block.choice(),
        next: next(&counts.next),
        resized: (0..EXTENTS)
            .map(|from| {
                let all = counts.resized[from].iter().sum::<u64>().max(1) as f64;
                (0..EXTENTS).map(|to| if from == to { 0.0 } else { counts.resized[from][to] as f64 / all }).collect()
            })
            .collect(),
        resized_page: counts.resized_page.choice(),
        prefer: preference(&counts.compared),
        clear: counts.clear.map(Tally::share).to_vec(),
        jump_sizes: counts.jump_sizes.rows(),
        run_sizes: counts.run_sizes.rows(),
        same_size_own: counts.same_own.share(),
        same_size_other: counts.same_other.share(),
        same_size_run: counts.same_run.share(),
        runs: counts.runs.law(),
        region: counts.region.choice(),
        adjacent: counts.adjacent.share(),
        new_block_512k: counts.spots[0].spot(0),
        new_block_64k: counts.spots[1].spot(1),
        new_page: counts.spots[2].spot(2),
    })
}
