//! Victims by score: a policy from outside rates kinds of blocks, and the adapter finds the block.
//!
//! Blocks are of one kind if they agree in all that the policy reads ([`Reads`]). So a plane of thousands of blocks has
//! some dozens of kinds, and a policy that does not read ages rates each kind once: its scores are kept, and cleans
//! call it only when a block with other erases or of another stream was sealed. Of a kind the block sealed first is
//! the candidate; where ages are read, the one that has not changed for longest, and the kinds are rated at each clean.
//! A block without a valid page costs nothing to clean, and goes first.
//!
//! Blocks of a kind are on one list, from the oldest change on. Changes of place are deferred until a pick needs them or
//! some tens are pending, since far more pages become invalid than blocks are cleaned. Invalidation: O(1). Pick: O(kinds),
//! and O(blocks of the best kind) without ages. State: 28 bytes a block, and 16 for each kind.

use super::SealedBlocks;
use std::collections::BTreeMap;

/// What a policy reads of a block, beside its valid pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Host page writes since its last change; a score must not fall as it grows.
    pub ages: bool,
    /// Its erases.
    pub erases: bool,
    /// Its placement stream.
    pub streams: bool,
}

/// Rates kinds of blocks.
pub trait ScoreBlocks: std::fmt::Debug + Send + Sync {
    /// Adds a score for each kind; the block of the highest is cleaned. It may move the table out of its box, and must
    /// put it back.
    ///
    /// # Errors
    /// The reason why it can't.
    fn score(&mut self, kinds: &mut Box<BlockKinds>, scores: &mut Vec<f64>) -> Result<(), String>;
    /// A copy that continues as this one would.
    fn again(&self) -> Box<dyn ScoreBlocks>;
}

impl Clone for Box<dyn ScoreBlocks> {
    fn clone(&self) -> Self {
        self.again()
    }
}

/// Kinds of blocks, in columns.
#[derive(Clone, Debug, Default)]
pub struct BlockKinds {
    /// The unit's number.
    pub unit: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// The clock of ages: host page writes so far.
    pub now: u64,
    /// What is read of a block; columns of the rest are empty.
    pub reads: Reads,
    /// Valid pages, 1 or more.
    pub valid: Vec<u32>,
    /// Host page writes since the last change.
    pub ages: Vec<u64>,
    /// Erases.
    pub erases: Vec<u32>,
    /// Placement streams.
    pub streams: Vec<u8>,
}

impl BlockKinds {
    fn clear(&mut self) {
        self.valid.clear();
        self.ages.clear();
        self.erases.clear();
        self.streams.clear();
    }

    fn push(&mut self, valid: u32, group: Group, age: u64) {
        self.valid.push(valid);
        if self.reads.ages {
            self.ages.push(age);
        }
        if self.reads.erases {
            self.erases.push(group.0);
        }
        if self.reads.streams {
            self.streams.push(group.1);
        }
    }
}

/// What does not change while a block is sealed, as far as it is read: erases and stream.
type Group = (u32, u8);

const NONE: u32 = u32::MAX;
/// Largest number of deferred changes.
const PENDING_MAX: usize = 64;

/// A block's place: the list that it is on, its neighbours there, and when it was sealed.
#[derive(Clone, Copy, Debug)]
struct Place {
    list: u32,
    older: u32,
    newer: u32,
    seal: u64,
}

/// The sealed blocks of a unit by kind, and the policy that rates them.
#[derive(Clone, Debug)]
pub(super) struct Scored {
    policy: Box<dyn ScoreBlocks>,
    kinds: Box<BlockKinds>,
    /// The row of each group that sealed blocks are of, with their number.
    rows: BTreeMap<Group, (u32, u32)>,
    groups: Vec<Group>,
    /// Rows that no block is of.
    spare: Vec<u32>,
    /// Rows whose scores, which stay, are asked for at the next pick.
    new: Vec<u32>,
    /// By row and valid pages: scores that stay.
    known: Vec<f64>,
    /// By row and valid pages: the oldest block and the newest.
    lists: Vec<[u32; 2]>,
    places: Vec<Place>,
    /// Blocks that changed, and when; they have not changed place yet.
    pending: Vec<(u32, u64)>,
    seals: u64,
    scores: Vec<f64>,
    /// The lists that the scores are of.
    rated: Vec<u32>,
}

impl Scored {
    pub fn new(policy: Box<dyn ScoreBlocks>, reads: Reads, blocks: &SealedBlocks) -> Self {
        let SealedBlocks { unit, pages_per_block, .. } = *blocks;
        let nowhere = Place { list: NONE, older: NONE, newer: NONE, seal: 0 };
        Self {
            policy,
            kinds: Box::new(BlockKinds { unit, pages_per_block, reads, ..BlockKinds::default() }),
            rows: BTreeMap::new(),
            groups: Vec::new(),
            spare: Vec::new(),
            new: Vec::new(),
            known: Vec::new(),
            lists: Vec::new(),
            places: vec![nowhere; blocks.blocks_in_unit()],
            pending: Vec::with_capacity(PENDING_MAX),
            seals: 0,
            scores: Vec::new(),
            rated: Vec::new(),
        }
    }

    /// Numbers of valid pages that a block can have.
    fn counts(&self) -> u32 {
        self.kinds.pages_per_block + 1
    }

    pub fn sealed(&mut self, block: u32, of: &SealedBlocks) {
        self.settle(of);
        let (reads, at) = (self.kinds.reads, block as usize);
        let group = (if reads.erases { of.erases[at] } else { 0 }, if reads.streams { of.streams[at] } else { 0 });
        let row = match self.rows.get_mut(&group) {
            Some((row, blocks)) => {
                *blocks += 1;
                *row
            }
            None => {
                let row = self.spare_row();
                self.groups[row as usize] = group;
                self.rows.insert(group, (row, 1));
                self.new.push(row);
                row
            }
        };
        self.seals += 1;
        self.places[at].seal = self.seals;
        self.append(block, row * self.counts() + of.valid[at]);
    }

    /// Ignores an open block.
    pub fn invalidated(&mut self, block: u32, of: &SealedBlocks) {
        if self.places[block as usize].list == NONE {
            return;
        }
        self.pending.push((block, of.changed[block as usize]));
        if self.pending.len() == PENDING_MAX {
            self.settle(of);
        }
    }

    /// Moves blocks that changed to their places, in order of time. Of several changes of a block the last counts.
    fn settle(&mut self, of: &SealedBlocks) {
        let mut pending = std::mem::take(&mut self.pending);
        for (block, changed) in pending.drain(..) {
            let list = self.places[block as usize].list;
            if list != NONE && of.changed[block as usize] == changed {
                self.unlink(block);
                self.append(block, list - list % self.counts() + of.valid[block as usize]);
            }
        }
        self.pending = pending;
    }

    fn append(&mut self, block: u32, list: u32) {
        let [oldest, newest] = &mut self.lists[list as usize];
        let before = std::mem::replace(newest, block);
        match before {
            NONE => *oldest = block,
            before => self.places[before as usize].newer = block,
        }
        let place = &mut self.places[block as usize];
        (place.list, place.older, place.newer) = (list, before, NONE);
    }

    fn unlink(&mut self, block: u32) {
        let Place { list, older, newer, .. } = self.places[block as usize];
        let [oldest, newest] = &mut self.lists[list as usize];
        match older {
            NONE => *oldest = newer,
            older => self.places[older as usize].newer = newer,
        }
        match newer {
            NONE => *newest = older,
            newer => self.places[newer as usize].older = older,
        }
        self.places[block as usize].list = NONE;
    }

    fn spare_row(&mut self) -> u32 {
        self.spare.pop().unwrap_or_else(|| {
            self.groups.push((0, 0));
            let kinds = self.groups.len() * self.counts() as usize;
            self.known.resize(kinds, 0.0);
            self.lists.resize(kinds, [NONE; 2]);
            u32::try_from(self.groups.len() - 1).expect("rows are no more than blocks")
        })
    }

    pub fn removed(&mut self, block: u32, of: &SealedBlocks) {
        self.settle(of);
        let row = self.places[block as usize].list / self.counts();
        self.unlink(block);
        let group = self.groups[row as usize];
        let (_, blocks) = self.rows.get_mut(&group).expect("the row of a sealed block");
        *blocks -= 1;
        if *blocks == 0 {
            self.rows.remove(&group);
            self.spare.push(row);
            self.new.retain(|new| *new != row);
        }
    }

    /// The blocks of a list from the oldest change on.
    fn blocks(&self, list: u32) -> impl Iterator<Item = u32> {
        let real = |block: u32| (block != NONE).then_some(block);
        std::iter::successors(real(self.lists[list as usize][0]), move |block| real(self.places[*block as usize].newer))
    }

    fn seal(&self, block: u32) -> u64 {
        self.places[block as usize].seal
    }

    /// The block with the highest score, the one sealed first among equals; at least one is sealed.
    pub fn pick(&mut self, now: u64, of: &SealedBlocks) -> Result<i64, String> {
        self.settle(of);
        self.kinds.now = now;
        let counts = self.counts();
        let rows = self.rows.values().map(|(row, _)| *row);
        let dead = rows.flat_map(|row| self.blocks(row * counts)).min_by_key(|block| self.seal(*block));
        if let Some(block) = dead {
            return Ok(i64::from(block));
        }
        let ages = self.kinds.reads.ages;
        if ages {
            self.rate_now(of)?;
        } else {
            self.rate_known()?;
        }
        let best = self.scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let rated = self.scores.iter().zip(&self.rated).filter(|(score, _)| **score == best);
        let candidates = rated.flat_map(|(_, list)| {
            let oldest = of.changed[self.lists[*list as usize][0] as usize];
            self.blocks(*list).take_while(move |block| !ages || of.changed[*block as usize] == oldest)
        });
        let block = candidates.min_by_key(|block| self.seal(*block));
        Ok(i64::from(block.expect("a block is sealed, and has valid pages")))
    }

    /// Lists that blocks with valid pages are on, with the row of each and the valid pages.
    fn find_kinds(&mut self) {
        self.rated.clear();
        let counts = self.counts();
        for (row, _) in self.rows.values() {
            let lists = row * counts + 1..(row + 1) * counts;
            self.rated.extend(lists.filter(|list| self.lists[*list as usize][0] != NONE));
        }
    }

    /// Asks for scores of this moment, those of the oldest block of each kind.
    fn rate_now(&mut self, of: &SealedBlocks) -> Result<(), String> {
        self.find_kinds();
        self.kinds.clear();
        let counts = self.counts();
        for list in &self.rated {
            let age = self.kinds.now - of.changed[self.lists[*list as usize][0] as usize];
            self.kinds.push(list % counts, self.groups[(list / counts) as usize], age);
        }
        self.ask()
    }

    /// Scores that stay; those of new rows are asked for in one call.
    fn rate_known(&mut self) -> Result<(), String> {
        if !self.new.is_empty() {
            self.kinds.clear();
            for row in &self.new {
                let group = self.groups[*row as usize];
                (1..=self.kinds.pages_per_block).for_each(|valid| self.kinds.push(valid, group, 0));
            }
            self.ask()?;
            let counts = self.counts() as usize;
            for (row, scores) in self.new.iter().zip(self.scores.chunks_exact(counts - 1)) {
                let first = *row as usize * counts;
                self.known[first + 1..first + counts].copy_from_slice(scores);
            }
            self.new.clear();
        }
        self.find_kinds();
        self.scores.clear();
        self.scores.extend(self.rated.iter().map(|list| self.known[*list as usize]));
        Ok(())
    }

    fn ask(&mut self) -> Result<(), String> {
        let kinds = self.kinds.valid.len();
        self.scores.clear();
        self.policy.score(&mut self.kinds, &mut self.scores)?;
        if self.scores.len() != kinds {
            return Err(format!(
                "score answered {} scores, expected one for each of the {kinds} kinds",
                self.scores.len()
            ));
        }
        match self.scores.iter().position(|score| score.is_nan()) {
            Some(at) => Err(format!(
                "score answered nan for blocks with {} valid pages, expected a number",
                self.kinds.valid[at]
            )),
            None => Ok(()),
        }
    }
}
