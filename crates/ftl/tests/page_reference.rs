//! Page mapping compared with a reference model of plain lists and scans.
//!
//! The reference model keeps the content of each flash page and the place of each logical page, and scans all blocks
//! for every question: which is free, which was sealed first, which holds the fewest valid pages. Greedy and FIFO
//! cleaning are deterministic, so every page must be on the same flash page in both, and every block must wear alike.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

use flashwright_block::{Bytes, Rng, Seed, below, chance};
use flashwright_ftl::schemes::SchemeContext;
use flashwright_ftl::{
    Allocation, Flash, FreeBlockOrder, Ftl, FtlSettings, GcSettings, InvalidateOrder, LpnRun, OpKind, PlacementConfig,
    PlacementName, SchemeName, VictimChoice, VictimName, WearName, WearSettings,
};
use flashwright_nand::{BlockId, Geometry, Lpn, Nand, ProgramOrder, WearLimit};

#[derive(Clone, Default)]
struct Block {
    holds: Vec<u32>,
    erases: u32,
    /// When it was sealed or freed, in events; only one of them applies.
    since: u64,
    free: bool,
    open: bool,
}

struct Reference {
    geometry: Geometry,
    gc: GcSettings,
    placement: PlacementConfig,
    wear: WearSettings,
    /// By set: its planes in turn, whose turn it is, and the turns of this round.
    sets: Vec<(Vec<u32>, usize, i64)>,
    logical: u32,
    /// By plane: turns that it misses. The state of the draws.
    misses: Vec<u32>,
    drawn: u64,
    blocks: Vec<Block>,
    /// The open block of each plane for the host and for cleaning.
    frontiers: Vec<[Option<usize>; 2]>,
    lies: Vec<Option<(usize, usize)>>,
    events: u64,
    copies: u64,
    recycled: u64,
}

impl Reference {
    fn new(
        geometry: Geometry,
        logical: u32,
        gc: &GcSettings,
        placement: &PlacementConfig,
        wear: &WearSettings,
    ) -> Self {
        let blocks = geometry.blocks() as usize;
        Self {
            geometry,
            gc: gc.clone(),
            placement: placement.clone(),
            wear: wear.clone(),
            sets: placement
                .order
                .planes(&geometry, 1)
                .chunks((geometry.planes() / placement.sets) as usize)
                .map(|planes| (planes.to_vec(), 0, 0))
                .collect(),
            logical,
            misses: vec![0; geometry.planes() as usize],
            drawn: 1,
            blocks: (0..blocks).map(|at| Block { free: true, since: at as u64, ..Block::default() }).collect(),
            frontiers: vec![[None; 2]; geometry.planes() as usize],
            lies: vec![None; logical as usize],
            events: blocks as u64,
            copies: 0,
            recycled: 0,
        }
    }

    fn np(&self) -> usize {
        self.geometry.pages_per_block() as usize
    }

    fn blocks_of(&self, plane: usize) -> std::ops::Range<usize> {
        let each = self.geometry.blocks_per_plane() as usize;
        plane * each..(plane + 1) * each
    }

    fn valid(&self, block: usize) -> Vec<u32> {
        let holds = self.blocks[block].holds.iter().enumerate();
        holds.filter(|(page, lpn)| self.lies[**lpn as usize] == Some((block, *page))).map(|(_, lpn)| *lpn).collect()
    }

    fn free_blocks(&self, plane: usize) -> usize {
        self.blocks_of(plane).filter(|block| self.blocks[*block].free).count()
    }

    fn write(&mut self, lpn: u32) {
        if self.gc.invalidate == InvalidateOrder::BeforeGc {
            self.lies[lpn as usize] = None;
        }
        let set = lpn as usize / (self.logical as usize).div_ceil(self.sets.len());
        let planes = self.sets[set].0.len();
        let turn = match self.placement.allocation {
            Allocation::Static => lpn as usize % planes,
            Allocation::Dynamic => {
                let turn = self.sets[set].1;
                self.sets[set].1 = (turn + 1) % planes;
                turn
            }
            Allocation::ByRoom => self.turn_by_room(set),
        };
        // A plane that holds only valid pages is skipped.
        let mut in_turn = self.sets[set].0.clone();
        in_turn.rotate_left(turn);
        let plane = in_turn
            .into_iter()
            .map(|plane| plane as usize)
            .find(|plane| self.makes_room(*plane))
            .expect("a plane has room");
        self.append(plane, 0, lpn);
    }

    /// Pages of a plane beside those that are valid.
    fn room(&self, plane: usize) -> i64 {
        let valid = self.lies.iter().flatten().filter(|(block, _)| self.blocks_of(plane).contains(block)).count();
        i64::from(self.geometry.blocks_per_plane() * self.geometry.pages_per_block()) - valid as i64
    }

    /// The next plane in turn that misses none. A round is a sixteenth of a block for each plane; after it, planes two blocks below the mean room
    /// miss turns for a block's pages, and if one is a sixteenth of a block below it, the next round begins with a plane that is drawn. A
    /// missed turn counts in its round.
    fn turn_by_room(&mut self, set: usize) -> usize {
        loop {
            let turn = self.sets[set].1;
            self.sets[set].1 = (turn + 1 + self.end_of_round(set)) % self.sets[set].0.len();
            let misses = &mut self.misses[self.sets[set].0[turn] as usize];
            if *misses == 0 {
                return turn;
            }
            *misses -= 1;
        }
    }

    /// Counts a turn of a set; the turns to leave out after it.
    fn end_of_round(&mut self, set: usize) -> usize {
        let planes = self.sets[set].0.clone();
        let (pages, part) = (self.np() as i64, (self.np() as i64 / 16).max(1));
        self.sets[set].2 += 1;
        if planes.len() == 1 || self.sets[set].2 < part * planes.len() as i64 {
            return 0;
        }
        self.sets[set].2 = 0;
        let rooms: Vec<i64> = planes.iter().map(|plane| self.room(*plane as usize)).collect();
        let mean = rooms.iter().sum::<i64>().div_euclid(planes.len() as i64);
        for (plane, room) in planes.iter().zip(&rooms) {
            if *room < mean - 2 * pages && self.misses[*plane as usize] == 0 {
                self.misses[*plane as usize] = pages as u32;
            }
        }
        if rooms.iter().all(|room| *room >= mean - part) {
            return 0;
        }
        self.drawn ^= self.drawn << 13;
        self.drawn ^= self.drawn >> 7;
        self.drawn ^= self.drawn << 17;
        1 + self.drawn as usize % (planes.len() - 1)
    }

    /// Cleans until the host's frontier has room; returns false after twice as many cleans as blocks without a gain.
    fn makes_room(&mut self, plane: usize) -> bool {
        let (mut in_vain, mut cleaned) = (0, false);
        while self.frontiers[plane][0].is_none() {
            if self.free_blocks(plane) > self.gc.free_blocks_min as usize {
                self.open(plane, 0);
            } else {
                let victim = self.victim(plane);
                let full = self.valid(victim).len() == self.np();
                in_vain += u32::from(full);
                // If the block with the fewest valid pages is fully valid, all are.
                if full && self.gc.victim == VictimName::Greedy.into() {
                    return false;
                }
                self.clean(plane, victim);
                cleaned = true;
                if in_vain > 2 * self.geometry.blocks_per_plane() {
                    return false;
                }
            }
        }
        if cleaned && self.wear.policy == Some(WearName::Threshold) {
            self.level_wear(plane);
        }
        true
    }

    /// If the gap of erases is above the threshold, the pages of the least worn full block move to the most worn free
    /// one.
    fn level_wear(&mut self, plane: usize) {
        let erases = |block: &usize| self.blocks[*block].erases;
        let most = self.blocks_of(plane).map(|block| erases(&block)).max().unwrap();
        let full = self.blocks_of(plane).filter(|block| !self.blocks[*block].free && !self.blocks[*block].open);
        let free = self.blocks_of(plane).filter(|block| self.blocks[*block].free);
        let from = full.min_by_key(|block| (erases(block), *block));
        let into = free.min_by_key(|block| (u32::MAX - erases(block), *block));
        let (Some(from), Some(into)) = (from, into) else { return };
        if most - erases(&from) <= self.wear.policies.threshold.gap || erases(&into) <= erases(&from) {
            return;
        }
        let moving = self.valid(from);
        if !moving.is_empty() {
            for (page, lpn) in moving.iter().enumerate() {
                self.lies[*lpn as usize] = Some((into, page));
            }
            self.copies += moving.len() as u64;
            self.blocks[into] =
                Block { holds: moving, erases: self.blocks[into].erases, since: self.events, ..Block::default() };
            self.events += 1;
        }
        self.erase(from);
        self.recycled += 1;
    }

    fn erase(&mut self, block: usize) {
        let erases = self.blocks[block].erases + 1;
        self.blocks[block] = Block { erases, free: true, since: self.events, ..Block::default() };
        self.events += 1;
    }

    fn open(&mut self, plane: usize, stream: usize) {
        let free = self.blocks_of(plane).filter(|block| self.blocks[*block].free);
        let block = match self.wear.free_block {
            FreeBlockOrder::Fifo => free.min_by_key(|block| self.blocks[*block].since),
            FreeBlockOrder::LeastWorn => free.min_by_key(|block| (self.blocks[*block].erases, *block)),
            FreeBlockOrder::MostWorn => free.min_by_key(|block| (u32::MAX - self.blocks[*block].erases, *block)),
            FreeBlockOrder::Graded => {
                let mut free: Vec<usize> = free.collect();
                free.sort_by_key(|block| (u32::MAX - self.blocks[*block].erases, *block));
                free.get(stream * free.len() / self.frontiers[plane].len()).copied()
            }
        };
        let block = block.unwrap();
        self.blocks[block].free = false;
        self.blocks[block].open = true;
        self.frontiers[plane][stream] = Some(block);
    }

    fn append(&mut self, plane: usize, stream: usize, lpn: u32) {
        let block = self.frontiers[plane][stream].unwrap();
        self.blocks[block].holds.push(lpn);
        self.lies[lpn as usize] = Some((block, self.blocks[block].holds.len() - 1));
        if self.blocks[block].holds.len() == self.np() {
            self.blocks[block].open = false;
            self.blocks[block].since = self.events;
            self.events += 1;
            self.frontiers[plane][stream] = None;
        }
    }

    fn victim(&self, plane: usize) -> usize {
        let sealed = self.blocks_of(plane).filter(|block| !self.blocks[*block].free && !self.blocks[*block].open);
        match self.gc.victim {
            VictimChoice::Named(VictimName::Greedy) => {
                sealed.min_by_key(|block| (self.valid(*block).len(), self.blocks[*block].since))
            }
            VictimChoice::Named(VictimName::Fifo) => sealed.min_by_key(|block| self.blocks[*block].since),
            _ => unreachable!("chance decides"),
        }
        .unwrap()
    }

    fn clean(&mut self, plane: usize, victim: usize) {
        let stream = usize::from(self.placement.policy == PlacementName::GcSeparate);
        for lpn in self.valid(victim) {
            if self.frontiers[plane][stream].is_none() {
                self.open(plane, stream);
            }
            self.append(plane, stream, lpn);
            self.copies += 1;
        }
        self.erase(victim);
    }
}

fn draw(rng: &mut Rng, bound: u32) -> u32 {
    u32::try_from(below(rng, u64::from(bound))).unwrap()
}

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[draw(rng, u32::try_from(from.len()).unwrap()) as usize]
}

#[test]
fn page_mapping_agrees_with_the_reference_model() {
    let (mut writes, mut copies, mut recycled) = (0u64, 0, 0);
    for seed in 0..160 {
        let mut rng = Seed(seed).stream("test");
        let rng = &mut rng;
        let geometry = Geometry::new(
            1 + draw(rng, 2),
            1 + draw(rng, 2),
            1,
            10 + draw(rng, 30),
            pick(rng, &[2, 3, 4, 7, 8, 66]),
            Bytes(4096),
        );
        let gc = GcSettings {
            victim: pick(rng, &[VictimName::Greedy, VictimName::Fifo]).into(),
            free_blocks_min: 1 + draw(rng, 3),
            invalidate: pick(rng, &[InvalidateOrder::AtProgram, InvalidateOrder::BeforeGc]),
            ..GcSettings::default()
        };
        let allocation = pick(rng, &[Allocation::ByRoom, Allocation::Dynamic, Allocation::Static]);
        let may_have_sets = allocation != Allocation::Static && geometry.dies() > 1;
        let placement = PlacementConfig {
            policy: pick(rng, &[PlacementName::Single, PlacementName::GcSeparate]),
            allocation,
            sets: if may_have_sets { pick(rng, &[1, geometry.dies() / 2, geometry.dies()]) } else { 1 },
            order: pick(rng, &["CWDP", "WCPD"]).parse().unwrap(),
            ..PlacementConfig::default()
        };
        let orders =
            [FreeBlockOrder::Fifo, FreeBlockOrder::LeastWorn, FreeBlockOrder::MostWorn, FreeBlockOrder::Graded];
        let free_block = pick(rng, &orders);
        let mut wear = WearSettings { free_block, ..WearSettings::default() };
        wear.policy = pick(rng, &[None, Some(WearName::Threshold)]);
        wear.policies.threshold.gap = 1 + draw(rng, 4);
        let usable =
            geometry.planes() * (geometry.blocks_per_plane() - gc.free_blocks_min - 2) * geometry.pages_per_block();
        // Room for planes that static allocation fills unevenly.
        let logical = usable / geometry.planes() * geometry.planes() * pick(rng, &[5, 8, 9]) / 10;
        let ftl = FtlSettings::default();
        let context = SchemeContext {
            logical_pages: logical,
            dies_per_way: 1,
            ftl: &ftl,
            gc: &gc,
            placement: &placement,
            wear: &wear,
            seed: Seed(seed),
            slc: None,
            foreign: None,
        };
        let nand = Nand::new(geometry, ProgramOrder::Ascending, WearLimit::Unlimited, &[]);
        let mut flash = Flash::new(nand, logical, false, true);
        assert_eq!(SchemeName::Page.problems(&context, &flash), Vec::<String>::new());
        let mut scheme = SchemeName::Page.build(&context, &mut flash);
        let mut reference = Reference::new(geometry, logical, &gc, &placement, &wear);
        let hot = pick(rng, &[0.0, 0.8]);
        let steps = 12 * u64::from(geometry.pages()).min(3_000);
        for step in 0..steps {
            let space = if chance(rng, hot) { logical.div_ceil(5) } else { logical };
            let lpn = draw(rng, space);
            if chance(rng, 0.02) {
                flash.host_trims_page(Lpn(lpn));
                scheme.trim(LpnRun { first: Lpn(lpn), pages: 1, stream: 0 }, &mut flash);
                reference.lies[lpn as usize] = None;
            } else {
                flash.host_writes_page(Lpn(lpn));
                scheme.write(LpnRun { first: Lpn(lpn), pages: 1, stream: 0 }, &mut flash).unwrap();
                reference.write(lpn);
                writes += 1;
            }
            let at = |lpn: u32| {
                let ppn = scheme.lookup(Lpn(lpn), &flash)?;
                Some((geometry.block_of(ppn).index(), geometry.page_in_block(ppn) as usize))
            };
            assert_eq!(
                at(lpn),
                reference.lies[lpn as usize],
                "seed {seed}, step {step}: lpn {lpn}; {gc:?} {placement:?}"
            );
            if step % 64 == 0 || step + 1 == steps {
                for lpn in 0..logical {
                    assert_eq!(at(lpn), reference.lies[lpn as usize], "seed {seed}, step {step}: lpn {lpn}");
                }
            }
        }
        for block in 0..geometry.blocks() {
            assert_eq!(flash.nand().erases(BlockId(block)), reference.blocks[block as usize].erases, "seed {seed}");
        }
        let programs = flash.counters().total(OpKind::Program);
        assert_eq!(programs, flash.host_writes() + reference.copies, "seed {seed}: write amplification");
        copies += reference.copies;
        recycled += reference.recycled;
    }
    println!("{writes} writes, {copies} copies, {recycled} blocks recycled for wear");
    assert!(recycled > 1_000, "hardly any wear levelling");
    assert!(copies > writes / 4, "{copies} copies for {writes} writes: hardly any cleaning");
}
