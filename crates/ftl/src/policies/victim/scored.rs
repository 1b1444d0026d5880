//! Victims by score: a policy from outside rates kinds of blocks, and the adapter finds the block.
//!
//! Blocks are of one kind if they agree in all that the policy reads ([`Reads`]). So a plane of thousands of blocks has
//! some dozens of kinds, and a policy that does not read ages rates each kind once: its scores are kept, and cleans
//! call it only when a block with other erases or of another stream was sealed. Of a kind the block sealed first is
//! the candidate; where ages are read, the one that has not changed for longest, and the kinds are rated at each clean.
//! A block without a valid page costs nothing to clean, and goes first.
//!
//! Seal, invalidation and removal: O(log blocks). Pick: O(kinds). State: 40 bytes a block, and 33 for its place.

use super::SealedBlocks;
use std::collections::{BTreeMap, BTreeSet};

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
/// A block's place among those of its kind: when it changed, if that is read; when it was sealed; the block.
type Place = (u64, u64, u32);

/// The blocks of a group, by valid pages.
#[derive(Clone, Debug)]
struct Row {
    /// Scores by valid pages; empty until they are asked for, and where ages count.
    scores: Vec<f64>,
    blocks: Vec<BTreeSet<Place>>,
    held: u32,
}

/// The sealed blocks of a unit by kind, and the policy that rates them.
#[derive(Clone, Debug)]
pub(super) struct Scored {
    policy: Box<dyn ScoreBlocks>,
    kinds: Box<BlockKinds>,
    rows: BTreeMap<Group, Row>,
    /// By block, if it is sealed.
    places: Vec<Option<(Group, u32, Place)>>,
    seals: u64,
    scores: Vec<f64>,
}

impl Scored {
    pub fn new(policy: Box<dyn ScoreBlocks>, reads: Reads, blocks: &SealedBlocks) -> Self {
        let SealedBlocks { unit, pages_per_block, .. } = *blocks;
        Self {
            policy,
            kinds: Box::new(BlockKinds { unit, pages_per_block, reads, ..BlockKinds::default() }),
            rows: BTreeMap::new(),
            places: vec![None; blocks.blocks_in_unit()],
            seals: 0,
            scores: Vec::new(),
        }
    }

    pub fn sealed(&mut self, block: u32, of: &SealedBlocks) {
        let (reads, at) = (self.kinds.reads, block as usize);
        let group = (if reads.erases { of.erases[at] } else { 0 }, if reads.streams { of.streams[at] } else { 0 });
        self.seals += 1;
        self.put(block, group, of.valid[at], of.changed[at], self.seals);
    }

    /// Ignores an open block.
    pub fn invalidated(&mut self, block: u32, of: &SealedBlocks) {
        if let Some((group, _, (_, seal, _))) = self.places[block as usize] {
            self.removed(block);
            self.put(block, group, of.valid[block as usize], of.changed[block as usize], seal);
        }
    }

    fn put(&mut self, block: u32, group: Group, valid: u32, changed: u64, seal: u64) {
        let place = (if self.kinds.reads.ages && valid > 0 { changed } else { 0 }, seal, block);
        let kinds = self.kinds.pages_per_block as usize + 1;
        let row = self.rows.entry(group).or_insert_with(|| Row {
            scores: Vec::new(),
            blocks: vec![BTreeSet::new(); kinds],
            held: 0,
        });
        row.blocks[valid as usize].insert(place);
        row.held += 1;
        self.places[block as usize] = Some((group, valid, place));
    }

    pub fn removed(&mut self, block: u32) {
        let Some((group, valid, place)) = self.places[block as usize].take() else { return };
        let row = self.rows.get_mut(&group).expect("the row of a sealed block");
        row.blocks[valid as usize].remove(&place);
        row.held -= 1;
    }

    /// The block with the highest score, the one sealed first among equals; at least one is sealed.
    pub fn pick(&mut self, now: u64) -> Result<i64, String> {
        self.rows.retain(|_, row| row.held > 0);
        self.kinds.now = now;
        let dead = self.rows.values().filter_map(|row| row.blocks[0].first()).min_by_key(|place| place.1);
        if let Some(&(_, _, block)) = dead {
            return Ok(i64::from(block));
        }
        let rated = if self.kinds.reads.ages { self.rated_now()? } else { self.rated_once()? };
        Ok(i64::from(rated.expect("a block is sealed, and has valid pages")))
    }

    /// The best block by scores of this moment.
    fn rated_now(&mut self) -> Result<Option<u32>, String> {
        self.kinds.clear();
        let mut places: Vec<Place> = Vec::new();
        for (group, row) in &self.rows {
            for (valid, blocks) in (0..).zip(&row.blocks) {
                if let Some(place) = blocks.first() {
                    self.kinds.push(valid, *group, self.kinds.now - place.0);
                    places.push(*place);
                }
            }
        }
        self.ask()?;
        Ok(best(self.scores.iter().copied().zip(places)))
    }

    /// The best block by scores that stay; those of new groups are asked for in one call.
    fn rated_once(&mut self) -> Result<Option<u32>, String> {
        if self.rows.values().any(|row| row.scores.is_empty()) {
            self.kinds.clear();
            for (group, _) in self.rows.iter().filter(|(_, row)| row.scores.is_empty()) {
                (1..=self.kinds.pages_per_block).for_each(|valid| self.kinds.push(valid, *group, 0));
            }
            self.ask()?;
            let pages = self.kinds.pages_per_block as usize;
            let new = self.rows.values_mut().filter(|row| row.scores.is_empty());
            for (row, scores) in new.zip(self.scores.chunks_exact(pages)) {
                row.scores = scores.to_vec();
            }
        }
        let rated = self.rows.values().flat_map(|row| {
            let places = row.blocks[1..].iter().map(BTreeSet::first);
            row.scores.iter().zip(places).filter_map(|(score, place)| Some((*score, *place?)))
        });
        Ok(best(rated))
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

/// The block with the highest score; among equals the one sealed first.
fn best(rated: impl Iterator<Item = (f64, Place)>) -> Option<u32> {
    let better =
        |found: &(f64, Place), other: &(f64, Place)| other.0 > found.0 || other.0 == found.0 && other.1.1 < found.1.1;
    rated.reduce(|found, other| if better(&found, &other) { other } else { found }).map(|(_, (_, _, block))| block)
}
