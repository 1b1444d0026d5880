//! Playing a model: the tree of blocks that fitting reads distances from, drawn from.

use super::chances::{Choice, Chooser, Spot};
use super::curve::within;
use super::file::{Direction, Model};
use super::fit::reach;
use super::free::Free;
use super::gaps::Cascade;
use super::kinds::Kinds;
use super::runs::{Ahead, End, Runs};
use super::sizes::{Size, Sizes};
use super::tree::{
    EXTENTS, FAN, Found, LEAF_PAGES, NEAR, PAGE_SECTORS, Path, READ, REGION_LEAVES, REGION_PAGES, Recent, Tree, WRITE,
    class, extent,
};
use crate::generate::{AliasTable, Clock, take_from};
use flashwright_block::{
    Nanos, Request, RequestClass, RequestKind, RequestSource, Rng, Seed, SourceError, below, chance, unit_interval,
};
use std::ops::Range;

/// Sectors of a region.
pub(crate) const REGION_SECTORS: u64 = REGION_PAGES * PAGE_SECTORS;

/// How a model is played.
pub(crate) struct Play {
    pub(crate) seed: Seed,
    /// Number of requests; none is endless.
    pub(crate) requests: Option<u64>,
    /// Sectors in use, from the start of the drive.
    pub(crate) space_sectors: u64,
    /// Footprint over that of the trace, above 0.
    pub(crate) scale: f64,
    /// Shares of writes and trims, if not the model's.
    pub(crate) shares: Option<(f64, f64)>,
    /// Share of writes that the mix is steered to, if not the model's; its drift stays.
    pub(crate) steered: Option<f64>,
    /// Sectors of all requests, if not the model's.
    pub(crate) size: Option<u32>,
    /// Sectors that starts are multiples of, if not the model's.
    pub(crate) align: Option<u64>,
    /// Whether what is new lands on pages that are, and the bounds hold page by page. Stand-ins are played without: their sizes
    /// and their number of addresses are forced to published ones, and the papers' claims were run so.
    pub(crate) strict: bool,
    pub(crate) pace: Arrival,
}

/// What sets arrivals.
pub(crate) enum Arrival {
    Clock(Clock),
    /// The model, this many times as fast.
    Model(f64),
}

impl Play {
    /// Regions of the drive that are played on.
    pub(crate) fn regions(&self, model: &Model) -> u64 {
        let wanted = (model.footprint.most_regions as f64 * self.scale).round().max(1.0) as u64;
        let largest = if self.size.is_some() { self.size.unwrap_or(1) } else { largest(model) };
        wanted.max(u64::from(largest).div_ceil(REGION_SECTORS)).min(self.space_sectors.div_ceil(REGION_SECTORS)).max(1)
    }
}

/// Sectors of the largest request of a model.
pub(crate) fn largest(model: &Model) -> u32 {
    let directions = [&model.read, &model.write, &model.trim].into_iter().flatten();
    let rows = directions.flat_map(|direction| direction.jump_sizes.iter().chain(&direction.run_sizes));
    rows.map(|row| (row.to / 512) as u32).max().unwrap_or(1)
}

/// Places that are looked at for one that is clear of used pages, or not near itself.
const TRIES: u32 = 8;

/// Pages that a request of a size covers.
fn covered(size: &Size) -> u64 {
    (u64::from(size.offset) + u64::from(size.sectors)).div_ceil(PAGE_SECTORS)
}

/// The first of the `parts` (a bit each) of `fan` from `start` on and around the end, in steps of `grain`.
#[inline]
fn next_part(parts: u32, start: usize, grain: usize, fan: usize) -> Option<usize> {
    let every = [0xFFFF, 0x5555, 0x1111, 0x0101, 0x0001][grain.trailing_zeros() as usize];
    let parts = parts & every & ((1 << fan) - 1);
    let turned = parts >> start | parts << (fan - start);
    (parts != 0).then(|| (start + turned.trailing_zeros() as usize) % fan)
}

/// One bit for each page of a block of 64 KiB from which so many pages meet one of `used`.
#[inline]
fn crossed(used: u32, pages: u64) -> u32 {
    let (mut crossed, mut reach, pages) = (used, 1, pages.clamp(1, LEAF_PAGES) as u32);
    while reach < pages {
        let step = reach.min(pages - reach);
        crossed |= crossed >> step;
        reach += step;
    }
    crossed
}

/// A direction's tables to draw from.
struct Tables {
    jump_sizes: Sizes,
    run_sizes: Sizes,
    same_own: f64,
    same_other: f64,
    same_run: f64,
    runs: Runs,
    region: Chooser,
    adjacent: f64,
    page: Vec<Chooser>,
    near: Vec<Chooser>,
    block: Chooser,
    in_block: Chooser,
    next: Vec<AliasTable>,
    /// The kind of the last jump.
    state: usize,
    resized: [[f64; EXTENTS]; EXTENTS],
    resized_page: Chooser,
    clear: [f64; EXTENTS],
    prefer: [f64; 3],
    levels: [Vec<Chooser>; 2],
    first: [AliasTable; 3],
    step: [AliasTable; 3],
}

impl Tables {
    fn new(direction: &Direction, base: &mut u8) -> Self {
        let mut sizes = |rows: &Vec<_>| {
            let sizes = Sizes::new(rows, *base);
            *base += rows.len() as u8;
            sizes
        };
        let (jump_sizes, run_sizes) = (sizes(&direction.jump_sizes), sizes(&direction.run_sizes));
        let choosers = |choices: &[Choice]| choices.iter().map(Chooser::new).collect::<Vec<_>>();
        let spots = [&direction.new_block_512k, &direction.new_block_64k, &direction.new_page];
        let table = |shares: fn(&Spot) -> &Vec<f64>| spots.map(|spot| AliasTable::new(shares(spot)));
        Tables {
            jump_sizes,
            run_sizes,
            same_own: direction.same_size_own,
            same_other: direction.same_size_other,
            same_run: direction.same_size_run,
            runs: Runs::new(&direction.runs),
            region: Chooser::new(&direction.region),
            adjacent: direction.adjacent,
            page: choosers(&direction.page),
            near: choosers(&direction.near),
            block: Chooser::new(&direction.block),
            in_block: Chooser::new(&direction.in_block),
            next: direction.next.iter().map(|row| AliasTable::new(row)).collect(),
            state: 0,
            resized: [0, 1, 2].map(|from: usize| std::array::from_fn(|to| direction.resized[from][to])),
            resized_page: Chooser::new(&direction.resized_page),
            clear: std::array::from_fn(|extent| direction.clear[extent]),
            prefer: [0, 1, 2].map(|reach: usize| direction.prefer[reach]),
            levels: [choosers(&direction.block_512k), choosers(&direction.block_64k)],
            first: table(|spot| &spot.first),
            step: table(|spot| &spot.step),
        }
    }
}

/// The source of a model's requests.
pub(crate) struct Player {
    /// For reads, writes and trims, which tables they use.
    which: [usize; 3],
    tables: Vec<Tables>,
    tree: Tree,
    recent: Recent,
    free: Free,
    places: Rng,
    sizes: Rng,
    kinds: Kinds,
    clock: Clocks,
    now: u32,
    /// Footprint over the trace's.
    scale: f64,
    /// 1 / ln(1 + n) of the trace's regions and pages.
    logs: [f64; 2],
    blocks: u64,
    pages: u64,
    end: u64,
    size: Option<u32>,
    align: Option<u64>,
    strict: bool,
    remaining: Option<u64>,
}

enum Clocks {
    Plain(Clock),
    Model { cascade: Cascade, ns: f64, last: u64 },
}

impl Player {
    pub(crate) fn new(model: &Model, play: Play) -> Self {
        let regions = play.regions(model);
        let directions = [&model.read, &model.write, &model.trim];
        let mut which = [usize::MAX; 3];
        let (mut tables, mut base) = (Vec::new(), 0);
        for (kind, direction) in directions.iter().enumerate() {
            if let Some(direction) = direction {
                which[kind] = tables.len();
                tables.push(Tables::new(direction, &mut base));
            }
        }
        // A kind that the trace has none of, asked for by the keys, takes the tables of a kind that it has.
        let instead = |kinds: [usize; 2]| kinds.into_iter().find(|kind| directions[*kind].is_some());
        let [reads, writes, trims] = [instead([WRITE, 2]), instead([READ, 2]), instead([WRITE, READ])];
        for (kind, other) in [reads, writes, trims].into_iter().enumerate() {
            if let (usize::MAX, Some(other)) = (which[kind], other) {
                // Runs go on by direction, so a table of its own.
                which[kind] = tables.len();
                let direction = directions[other].as_ref().expect("a direction that the trace has");
                tables.push(Tables::new(direction, &mut 0));
            }
        }
        // The bounds may not fit the drive; only if the trace's own footprint doesn't, distances shrink too.
        let scale = play.scale.min(regions as f64 / model.footprint.regions as f64);
        let bound = |count: u64| (count as f64 * scale).round().max(1.0) as u64;
        let clock = match play.pace {
            Arrival::Clock(clock) => Clocks::Plain(clock),
            Arrival::Model(speed) => {
                let arrivals = model.arrivals.as_ref().expect("a model with arrivals plays its own");
                let cascade = Cascade::new(arrivals, play.seed.stream("workload.arrival"));
                Clocks::Model { cascade, ns: 1.0 / speed, last: 0 }
            }
        };
        let short = model.arrivals.as_ref().map_or(1.0, |arrivals| arrivals.short);
        Player {
            which,
            tables,
            tree: Tree::default(),
            recent: Recent::new(),
            free: Free::new(regions as u32),
            places: play.seed.stream("workload.address"),
            sizes: play.seed.stream("workload.size"),
            kinds: Kinds::new(&model.mix, play.shares, play.steered, short, play.seed.stream("workload.kind")),
            clock,
            now: 0,
            scale,
            logs: [model.footprint.regions, model.footprint.pages].map(|count| 1.0 / libm::log(1.0 + count as f64)),
            blocks: bound(model.footprint.most_blocks).min(regions * REGION_LEAVES),
            pages: bound(model.footprint.most_pages),
            end: play.space_sectors.min(regions * REGION_SECTORS),
            size: play.size,
            align: play.align,
            strict: play.strict,
            remaining: play.requests,
        }
    }

    #[inline]
    fn next(&mut self) -> Request {
        let (arrival, gap) = match &mut self.clock {
            Clocks::Plain(clock) => (clock.next(), None),
            Clocks::Model { cascade, ns, last } => {
                let at = cascade.next();
                let gap = at - std::mem::replace(last, at);
                (Nanos((at as f64 * *ns) as u64), Some(gap))
            }
        };
        let kind = self.kinds.next(gap);
        let which = match kind.class() {
            RequestClass::Barrier | RequestClass::Manage => return Request { arrival, kind, ..Request::default() },
            RequestClass::Read => 0,
            RequestClass::Write => 1,
            RequestClass::Discard => 2,
        };
        self.now = self.now.wrapping_add(1);
        let (first_sector, size, run, state) = if let Some((end, size)) = self.go_on(which) {
            (end.sector, size, Some(end), usize::from(end.state))
        } else {
            let (first, size) = self.jump(which);
            (first, size, None, self.tables[self.which[which]].state)
        };
        let (sectors, row) = (size.sectors, size.row);
        let ahead =
            if which < 2 { self.touch(which, first_sector, sectors, row, run.is_none()) } else { Ahead::Unused };
        let runs = &mut self.tables[self.which[which]].runs;
        runs.note(run.as_ref(), first_sector + u64::from(sectors), (row, state), ahead, &mut self.sizes);
        let fua = kind == RequestKind::Write && self.kinds.forced();
        Request { arrival, first_sector, sectors, kind, fua, ..Request::default() }
    }

    /// A size of the row with this number.
    fn again(&mut self, row: u8) -> Option<Size> {
        self.tables.iter().find_map(|tables| {
            tables.jump_sizes.again(row, &mut self.sizes).or_else(|| tables.run_sizes.again(row, &mut self.sizes))
        })
    }

    /// The run that goes on, and the size of its request.
    fn go_on(&mut self, which: usize) -> Option<(End, Size)> {
        let tables = &mut self.tables[self.which[which]];
        let end = tables.runs.due()?;
        let rng = &mut self.sizes;
        let again = chance(rng, tables.same_run);
        let last = tables.run_sizes.again(end.size, rng).or_else(|| tables.jump_sizes.again(end.size, rng));
        let same = last.filter(|_| again).and_then(|last| tables.run_sizes.like(last.sectors));
        let mut size = same.unwrap_or_else(|| tables.run_sizes.draw(rng));
        size.sectors = self.size.unwrap_or(size.sectors);
        let fits = end.sector + u64::from(size.sectors) <= self.end
            && self.align.is_none_or(|align| end.sector.is_multiple_of(align));
        let page = end.sector / PAGE_SECTORS;
        // Sizes that are aligned stay so: runs of one size don't go on from requests of another.
        let aligned = size.align == 1
            || (end.sector % PAGE_SECTORS == u64::from(size.offset) && page.is_multiple_of(u64::from(size.align)));
        let fits = fits && (aligned || self.align.is_some());
        // A run that would leave the footprint ends.
        let fits = fits
            && if self.strict {
                self.allowed(end.sector, size.sectors) == size.sectors
            } else {
                let path = Path::new((page / REGION_PAGES) as u32, page);
                self.tree.leaves() < self.blocks || self.tree.lists(&path, 2).is_some()
            };
        fits.then_some((end, size))
    }

    /// Whether the bounds allow no more blocks of 64 KiB, and no more pages.
    fn full(&self) -> (bool, bool) {
        let no_pages = self.tree.pages >= self.pages;
        let no_blocks = no_pages || self.tree.leaves() >= self.blocks;
        (no_blocks, if self.strict { no_pages } else { no_blocks })
    }

    /// Sectors of a request up to the first page that would be new beyond the bounds.
    fn allowed(&self, first_sector: u64, sectors: u32) -> u32 {
        let (first, last) = (first_sector / PAGE_SECTORS, (first_sector + u64::from(sectors) - 1) / PAGE_SECTORS);
        let mut pages = self.pages.saturating_sub(self.tree.pages);
        let mut blocks = self.blocks.saturating_sub(self.tree.leaves());
        if last - first < pages && last / LEAF_PAGES - first / LEAF_PAGES < blocks {
            return sectors;
        }
        let until = |page: u64| (page * PAGE_SECTORS).saturating_sub(first_sector) as u32;
        for block in first / LEAF_PAGES..=last / LEAF_PAGES {
            let start = block * LEAF_PAGES;
            let path = Path::new((block / REGION_LEAVES) as u32, start);
            let used = self.tree.used(&path).0;
            if self.tree.lists(&path, 2).is_none() {
                if blocks == 0 {
                    return until(start);
                }
                blocks -= 1;
            }
            for page in first.max(start)..=last.min(start + LEAF_PAGES - 1) {
                if used >> (page - start) & 1 == 0 {
                    if pages == 0 {
                        return until(page);
                    }
                    pages -= 1;
                }
            }
        }
        sectors
    }

    /// A request as the bounds allow it: as it is, its beginning, or one at a page that was asked for before.
    fn bounded(&mut self, which: usize, first: u64, mut size: Size) -> (u64, Size) {
        let allowed = self.allowed(first, size.sectors);
        if allowed > 0 {
            size.sectors = allowed;
            return (first, size);
        }
        let lists = [which, 1 - which].map(|list| (0..EXTENTS).map(move |extent| (list, extent)));
        let list = lists.into_iter().flatten().find(|(list, extent)| self.recent.pages[*list].len(*extent) > 0);
        let page = list.and_then(|list| self.pick(list, None, true));
        let Some(page) = page else { return (first, size) };
        size = self.again(self.tree.size(page)).unwrap_or(size);
        let path = self.tree.path(page);
        let first = (u64::from(path.region) * REGION_PAGES + path.page()) * PAGE_SECTORS + u64::from(size.offset);
        let room = self.end - u64::from(size.sectors);
        let first = first.min(room / PAGE_SECTORS * PAGE_SECTORS);
        size.sectors = self.allowed(first, size.sectors).max(1);
        (first, size)
    }

    /// A request that continues no run.
    fn jump(&mut self, which: usize) -> (u64, Size) {
        let tables = &mut self.tables[self.which[which]];
        tables.state = tables.next[tables.state].draw(&mut self.sizes);
        let kind = tables.state / EXTENTS;
        let mut size = tables.jump_sizes.draw_of(tables.state % EXTENTS, &mut self.sizes);
        let (path, found) = self.choose(which, &size, kind);
        let tables = &self.tables[self.which[which]];
        let same = match found {
            Found::Own(_) => tables.same_own,
            Found::Other(_) => tables.same_other,
            Found::New => 0.0,
        };
        // A page where a size could not have started keeps its own.
        let unaligned = !path.page().is_multiple_of(u64::from(size.align));
        if (unaligned || (same > 0.0 && chance(&mut self.sizes, same)))
            && let Some(row) = self.tree.page(&path).map(|page| self.tree.size(page))
            && let Some(again) = self.again(row)
        {
            size = again;
        }
        let page = u64::from(path.region) * REGION_PAGES + path.page();
        let mut first = page * PAGE_SECTORS + u64::from(size.offset);
        if let Some(sectors) = self.size {
            size.sectors = sectors;
        }
        let room = self.end - u64::from(size.sectors);
        if first > room {
            // Near the end, and on drives smaller than a region.
            first = if room == 0 { 0 } else { first % room / PAGE_SECTORS * PAGE_SECTORS };
        }
        if let Some(align) = self.align {
            first = first / align * align;
        }
        // Sizes and places that are asked for go before the bounds.
        let own = self.size.is_none() && self.align.is_none();
        if which < 2 && own && self.strict { self.bounded(which, first, size) } else { (first, size) }
    }

    /// A page, and how it was found.
    fn choose(&mut self, which: usize, size: &Size, kind: usize) -> (Path, Found) {
        if kind == 2 {
            // Pages that are near themselves are another kind.
            let mut chosen = self.place(which, size, true);
            for _ in 1..TRIES {
                if !self.is_near(&chosen.0, extent(covered(size))) {
                    break;
                }
                // What is drawn anew is which used page it is, not whether it is used.
                let other = self.place(which, size, true);
                if other.1 != Found::New || !self.strict {
                    chosen = other;
                }
            }
            return chosen;
        }
        let near = kind == 1;
        let (own, trims) = (which.min(1), which == 2);
        let tables = &self.tables[self.which[which]];
        let extent = extent(covered(size));
        let mut draw = unit_interval(&mut self.places);
        let resized = tables.resized[extent].iter().position(|share| {
            if near {
                return false;
            }
            draw -= share;
            draw < 0.0
        });
        let chooser = match (resized, near) {
            (Some(_), _) => &tables.resized_page,
            (None, true) => &tables.near[extent],
            (None, false) => &tables.page[extent],
        };
        let (other, range) = chooser.draw_range(&mut self.places);
        let list = if other && !trims { 1 - own } else { own };
        let of = (list, resized.unwrap_or(extent));
        let rank = range.map(|range| self.preferred(which, of, range));
        if let Some(page) = self.pick(of, rank, other || trims || near || resized.is_some()) {
            return (self.tree.path(page), if other || trims { Found::Other(0) } else { Found::Own(0) });
        }
        self.place(which, size, false)
    }

    /// Whether a request of this class of size jumped to a page just before.
    fn is_near(&self, path: &Path, extent: usize) -> bool {
        self.tree.page(path).is_some_and(|page| {
            let near = |(of, rank): (usize, usize)| of == extent && rank < NEAR;
            self.recent.pages.iter().any(|pages| pages.find(page).is_some_and(near))
        })
    }

    /// A rank of a range: of a few, that of the page used most often.
    fn preferred(&mut self, which: usize, (list, extent): (usize, usize), range: Range<u64>) -> u64 {
        let rank = within(&range, &mut self.places);
        let best = self.scaled(rank, 1);
        if range.end - range.start == 1 {
            return best;
        }
        let prefer = self.tables[self.which[which]].prefer[reach(rank)];
        let others = prefer as u32 - 1 + u32::from(chance(&mut self.places, prefer.fract()));
        let len = self.recent.pages[list].len(extent) as u64;
        if others == 0 || best >= len {
            return best;
        }
        let count = |player: &Self, rank: u64| player.tree.count(player.recent.pages[list].at(extent, rank as usize));
        let mut best = (best, count(self, best));
        for _ in 0..others {
            let rank = within(&range, &mut self.places);
            let rank = self.scaled(rank, 1);
            if rank < len {
                let found = count(self, rank);
                if found > best.1 {
                    best = (rank, found);
                }
            }
        }
        best.0
    }

    /// The page of a rank, or any page if there is no such rank and there `must` be one; none if the list is empty.
    fn pick(&mut self, (list, extent): (usize, usize), rank: Option<u64>, must: bool) -> Option<u32> {
        let pages = &self.recent.pages[list];
        let len = pages.len(extent) as u64;
        let rank = rank.filter(|rank| *rank < len);
        let rank = rank.or_else(|| (must && len > 0).then(|| below(&mut self.places, len)))?;
        Some(pages.at(extent, rank as usize))
    }

    /// Where a new page lies.
    fn place(&mut self, which: usize, size: &Size, near: bool) -> (Path, Found) {
        let clear = chance(&mut self.places, self.tables[self.which[which]].clear[extent(covered(size))]);
        let mut tries = 1;
        loop {
            let (path, found, good) = self.place_once(which, size, clear, near);
            if good || tries == TRIES {
                return (path, found);
            }
            tries += 1;
        }
    }

    /// Where a new page lies, and whether the request is `clear` of used pages there if it should be.
    fn place_once(&mut self, which: usize, size: &Size, clear: bool, near: bool) -> (Path, Found, bool) {
        let align = size.align as usize;
        let pages = covered(size);
        let (no_blocks, no_pages) = self.full();
        let (own, trims) = (which.min(1), which == 2);
        let blocks = &self.recent.blocks[own];
        let block = near.then_some(&self.tables[self.which[which]].block).filter(|_| blocks.len(0) > 0).map(|block| {
            let rank = block.draw(&mut self.places).1.unwrap_or(0).min(blocks.len(0) as u64 - 1);
            blocks.at(0, rank as usize)
        });
        let (mut path, mut found) = match block {
            Some(block) => (self.tree.block_path(block), Found::Own(0)),
            None => {
                let (region, found) = self.choose_region(which);
                (Path::new(region, 0), found)
            }
        };
        let mut good = true;
        let tables = &self.tables[self.which[which]];
        let rng = &mut self.places;
        for (level, fan) in FAN.into_iter().enumerate().skip(usize::from(block.is_some())) {
            let lists = match self.tree.lists(&path, level) {
                Some(lists) if found != Found::New => *lists,
                _ => {
                    found = Found::New;
                    let part = tables.first[level].draw(rng);
                    path.parts[level] = if level == 2 { part / align * align } else { part };
                    continue;
                }
            };
            let used = lists.order[0].used() | lists.order[1].used();
            if level < 2 {
                let through = if matches!(found, Found::Other(_)) && !trims { 1 - own } else { own };
                let age = self.now.wrapping_sub(lists.last[through]);
                let (other, rank) = tables.levels[level][class(through != own || trims, age)].draw(rng);
                let list = if other && !trims { 1 - own } else { own };
                let order = lists.order[list];
                let within = rank.filter(|rank| *rank < order.len() as u64);
                let crowded = used.count_ones() as usize == fan || (no_blocks && used != 0);
                let rank = match within {
                    None if (other || trims || crowded) && order.len() > 0 => Some(below(rng, order.len() as u64)),
                    rank => rank,
                };
                if let Some(rank) = rank {
                    path.parts[level] = order.at(rank as usize);
                    found = if other || trims { Found::Other(0) } else { Found::Own(0) };
                    continue;
                }
                if crowded {
                    let order = lists.order[1 - list];
                    path.parts[level] = order.at(below(rng, order.len() as u64) as usize);
                    found = Found::Other(0);
                    continue;
                }
            }
            if level == 2 && block.is_some() {
                let (other, rank) = tables.in_block.draw(rng);
                let list = if other && !trims { 1 - own } else { own };
                let order = lists.order[list];
                let within = rank.filter(|rank| *rank < order.len() as u64);
                let rank = match within {
                    None if other && order.len() > 0 => Some(below(rng, order.len() as u64)),
                    rank => rank,
                };
                if let Some(rank) = rank {
                    path.parts[2] = order.at(rank as usize);
                    return (path, if other { Found::Other(0) } else { Found::Own(0) }, true);
                }
            }
            let mine = lists.order[own];
            let part = if mine.len() == 0 {
                tables.first[level].draw(rng)
            } else {
                (mine.at(0) + tables.step[level].draw(rng)) % fan
            };
            let grain = if level == 2 { align } else { 1 };
            let start = part / grain * grain;
            let next = |parts: u32| next_part(parts, start, grain, fan);
            // The next unused one; a start that is aligned matters more than one that is new.
            let chosen = if level < 2 {
                next(!used)
            } else {
                let (covered, jumped) = self.tree.used(&path);
                let wanted = clear && !no_pages;
                let crossed = crossed(covered, pages);
                let clear = if wanted { next(!crossed) } else { None };
                good = clear.is_some() || !wanted;
                clear
                    .or_else(|| next(!jumped & crossed))
                    .or_else(|| next(if no_pages && self.strict { covered } else { !jumped }))
            };
            // A block without a page to start at is none to find something new in.
            good &= chosen.is_some() || no_pages || !self.strict;
            path.parts[level] = chosen.unwrap_or(start);
            if level == 2 && clear && !no_pages && good {
                let page = u64::from(path.region) * REGION_PAGES + path.page();
                let (first, last) = (page / LEAF_PAGES, (page + pages - 1) / LEAF_PAGES);
                good = !(first + 1..=last.min(first + 16)).any(|block| {
                    let path = Path::new((block / REGION_LEAVES) as u32, block * LEAF_PAGES);
                    self.tree.used(&path).0 != 0
                });
            }
            found = Found::New;
        }
        (path, found, good)
    }

    fn choose_region(&mut self, which: usize) -> (u32, Found) {
        let (own, trims) = (which.min(1), which == 2);
        let tables = &self.tables[self.which[which]];
        let (other, rank) = tables.region.draw(&mut self.places);
        let rank = rank.map(|rank| self.scaled(rank, 0));
        let full = self.free.is_empty() || self.full().0;
        let tables = &self.tables[self.which[which]];
        let rng = &mut self.places;
        let list = if other && !trims { 1 - own } else { own };
        let regions = &self.recent.regions[list];
        let within = rank.filter(|rank| *rank < regions.len(0) as u64);
        let rank = match within {
            None if (other || trims || full) && regions.len(0) > 0 => Some(below(rng, regions.len(0) as u64)),
            rank => rank,
        };
        if let Some(rank) = rank {
            let found = if other || trims { Found::Other(rank as usize) } else { Found::Own(rank as usize) };
            return (regions.at(0, rank as usize), found);
        }
        let theirs = &self.recent.regions[1 - list];
        if full && theirs.len(0) > 0 {
            let rank = below(rng, theirs.len(0) as u64) as usize;
            return (theirs.at(0, rank), Found::Other(rank));
        }
        let mine = &self.recent.regions[own];
        let next = (mine.len(0) > 0).then(|| mine.at(0, 0) + 1).filter(|next| self.free.has(*next));
        let region = match next {
            Some(next) if chance(rng, tables.adjacent) => next,
            _ => self.free.any(rng),
        };
        (region, Found::New)
    }

    /// A rank of the trace's regions as one of the scaled footprint's: the most recent keep theirs, the oldest are `scale`
    /// times as far.
    #[inline]
    fn scaled(&mut self, rank: u64, of: usize) -> u64 {
        if (self.scale - 1.0).abs() < 1e-9 {
            return rank;
        }
        let rank = rank as f64 + unit_interval(&mut self.places);
        (rank * libm::pow(self.scale, libm::log(1.0 + rank) * self.logs[of])) as u64
    }

    /// Notes that a request used its pages; returns what lies ahead of it.
    fn touch(&mut self, list: usize, first_sector: u64, sectors: u32, row: u8, jump: bool) -> Ahead {
        let (first, last) = (first_sector / PAGE_SECTORS, (first_sector + u64::from(sectors) - 1) / PAGE_SECTORS);
        for block in first / LEAF_PAGES..=last / LEAF_PAGES {
            let page = (block * LEAF_PAGES).max(first);
            let region = (page / REGION_PAGES) as u32;
            self.free.take(region);
            self.recent.regions[list].touch(0, region);
            let started = (page == first).then_some((row, jump));
            let path = Path::new(region, page);
            let page = self.tree.touch(&path, list, self.now, last + 1 - page, started);
            let block = self.tree.block(&path).expect("a block that was used");
            self.recent.blocks[list].touch(0, block);
            if started.is_some() && (jump || self.recent.pages[list].has(page)) {
                self.recent.pages[list].touch(extent(last + 1 - first), page);
            }
        }
        let next = (first_sector + u64::from(sectors)) / PAGE_SECTORS;
        let path = Path::new((next / REGION_PAGES) as u32, next);
        if self.tree.is_used(&path) { Ahead::Used } else { Ahead::Unused }
    }
}

impl RequestSource for Player {
    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
        let count = take_from(&mut self.remaining, at_most);
        batch.extend((0..count).map(|_| self.next()));
        Ok(count)
    }

    fn remaining(&self) -> Option<u64> {
        self.remaining
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::cover;
    use super::*;

    /// Against loops over the parts.
    #[test]
    fn parts_are_those_of_plain_loops() {
        let mut rng = Seed(5).stream("test");
        for _ in 0..2000 {
            let (parts, pages) = (below(&mut rng, 1 << 16) as u32, 1 + below(&mut rng, 40));
            let plain = (0..16).filter(|part| parts & cover(*part, pages) != 0).fold(0, |sum, part| sum | 1 << part);
            assert_eq!(crossed(parts, pages) & 0xFFFF, plain, "{parts:x} {pages}");
            for (fan, grain) in [(8, 1), (16, 1), (16, 4), (16, 16)] {
                let start = below(&mut rng, (fan / grain) as u64) as usize * grain;
                let plain = (0..fan / grain).map(|i| (start + i * grain) % fan).find(|part| parts >> part & 1 == 1);
                assert_eq!(next_part(parts, start, grain, fan), plain, "{parts:x} {start} {grain} {fan}");
            }
        }
    }
}
