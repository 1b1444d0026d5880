//! PUD-LRU (Hu 2012, chapter 2): evicts the fullest of the blocks that are not about to be rewritten, padded.
//!
//! Positions count page writes. A block keeps three numbers: its updates f, the position of the last L, and the sum UD
//! of its update distances (Eq. 2.1). With the average distance A = UD / (f - 1), 0 for one update (Eq. 2.2), and the
//! recency degree RD, the distance from L to the latest completed update, its predicted update distance is
//! PUD = (A + RD) / 2 (Eq. 2.3). Blocks with `PUD < threshold * (largest PUD - smallest PUD)` are the frequently updated
//! group (FUG), the others the infrequently updated (IUG). The victim is the block of IUG with most pages; among equals
//! that of larger PUD, then the older. It is padded as in BPLRU. Reads are served and change nothing.
//!
//! Eq. 2.3 weighs A and RD equally; `distance-weight` w makes it w * A + (1 - w) * RD. All of this then holds for w / (1 - w) * A
//! instead of A, since groups and victims depend on PUDs relative to each other.
//!
//! Algorithm 1 computes every PUD for each victim. Here nothing is recomputed: at position c, PUD = (A - L + c - 1) /
//! 2, so blocks are ordered by A - L, which changes only when the block is written, and FUG is the lower end of that
//! order. One heap holds the blocks of each count of pages, largest first; a tree over the heads of these heaps finds
//! the largest of all and the fullest heap whose head is in IUG. Blocks written once, whose order is that of their
//! writes, are on a list instead of a heap. The smallest PUD is not tracked: it lies between 0 and that of the block
//! written last, and usually both bounds give the same group. If they don't, the blocks are scanned from the one
//! written last until the remaining ones are older than twice the smallest PUD found, because RD alone puts them above
//! it. A write and a victim cost O(log n) plus that scan. Fractions are compared exactly, the threshold at nine
//! decimals. With `pud = "alg1"` the order changes with c, and each victim costs a scan of all blocks, as in Algorithm
//! 1.
//!
//! # A threshold that tunes itself
//!
//! Hu 2012 leaves open how to find the threshold, which depends on workload and size (2.3.3). With `adaptive` it moves
//! among 1/10, 1/100 … 1/100,000, the steps of figure 2.8, towards fewer destages per page written by the host: on a
//! log-block scheme each padded destage is an erase, and the number reflects both good victims (many pages that leave
//! together) and bad ones (a block that must leave again soon). A window of page writes, four times the held pages,
//! passes with the current threshold, one with a neighbour, and one with the current threshold again. The neighbour is
//! kept if its window saw fewer destages than either of the two around it, so that a drift of the workload is not taken
//! for a gain; otherwise the neighbour on the other side is tried next. The first quarter of each window is not
//! counted, because its blocks were kept by the previous threshold. There is no randomness; O(1) per write. This method
//! is ours.

use super::{Leaves, RamContext, RamManager, View};
use crate::groups::needs_a_block;
use crate::heaps::Heaps;
use crate::{Destage, Groups};
use flashwright_ftl::{SlotLists, Violation};
use flashwright_nand::Lpn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::cmp::{Ordering, Reverse};

/// What predicts the next update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Formula {
    /// Eq. 2.3, used in the text and table 2.3 of Hu 2012.
    #[default]
    Average,
    /// Line 27 of Algorithm 1, (c + UD) / f, which contradicts Eq. 2.3; each victim costs a scan of all blocks.
    Alg1,
}

/// Which update is the latest that RD counts to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recency {
    /// The latest completed one, as in table 2.3 of Hu 2012.
    #[default]
    Completed,
    /// The write that needs the room.
    Current,
}

/// Where FUG ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Frequent {
    /// PUD below threshold x range, as stated in Hu 2012; almost always empty at 0.001.
    #[default]
    Range,
    /// PUD below the smallest PUD + threshold x range.
    AboveMin,
}

/// `[ram.pud-lru]`: settings of `ram.manager = "pud-lru"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct PudLruSettings {
    /// The share of the range of PUDs that separates FUG from IUG, 0 to 1, to nine decimals.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expected" = "a share from {range}, such as ram.pud-lru.threshold = 0.001"))]
    pub threshold: f64,
    /// Whether the threshold adapts itself; it starts at the largest of 0.1, 0.01, 0.001, 0.0001, 0.00001 that is not
    /// above `threshold`.
    pub adaptive: bool,
    /// What predicts the next update: `"average"` (Eq. 2.3) or `"alg1"` (line 27 of Algorithm 1).
    pub pud: Formula,
    /// Weight of the average update distance in PUD, to three decimals; the rest is that of RD. Eq. 2.3 weighs both equally.
    /// `pud = "alg1"` has no RD.
    #[schemars(range(min = 0.0, max = 0.999), extend("x-expected" = "a weight from {range}, such as ram.pud-lru.distance-weight = 0.5"))]
    pub distance_weight: f64,
    /// Which update RD counts to: the latest `"completed"` or the `"current"` write. `pud = "alg1"` has no RD.
    pub recency: Recency,
    /// Where FUG ends: `"range"` or `"above-min"`.
    pub fug: Frequent,
    /// Whether an evicted block is padded with its pages on flash.
    pub padding: bool,
}

impl Default for PudLruSettings {
    fn default() -> Self {
        Self {
            threshold: 0.001,
            adaptive: false,
            pud: Formula::Average,
            distance_weight: 0.5,
            recency: Recency::Completed,
            fug: Frequent::Range,
            padding: true,
        }
    }
}

/// A threshold of 1, in the unit of stored thresholds.
const ONE: u64 = 1_000_000_000;
/// The thresholds of figure 2.8 of Hu 2012.
const STEPS: [u64; 5] = [ONE / 10, ONE / 100, ONE / 1000, ONE / 10_000, ONE / 100_000];

/// A number as `whole + rem / den`, with `rem < den`; not reduced, and compared by value.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Fraction {
    whole: i64,
    rem: u32,
    den: u32,
}

impl Ord for Fraction {
    #[inline(always)]
    fn cmp(&self, other: &Self) -> Ordering {
        let part = |a: &Self, b: &Self| u64::from(a.rem) * u64::from(b.den);
        self.whole.cmp(&other.whole).then_with(|| part(self, other).cmp(&part(other, self)))
    }
}

impl PartialEq for Fraction {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Fraction {}

impl PartialOrd for Fraction {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Fraction {
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // positions are far below 2^63
    fn of(sum: u64, count: u32) -> Self {
        let den = u64::from(count);
        Self { whole: (sum / den) as i64, rem: (sum % den) as u32, den: count }
    }
    fn value(self) -> f64 {
        self.whole as f64 + f64::from(self.rem) / f64::from(self.den)
    }
}

/// The state of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Updates {
    /// f. Halved with `sum` where denominators would pass [`DENOMINATOR_MAX`], which keeps the average.
    frequency: u32,
    /// L.
    last: u64,
    /// UD.
    sum: u64,
}

/// The largest denominator of a key.
const DENOMINATOR_MAX: u32 = 1 << 31;

/// The weight of A over that of RD, a fraction in lowest terms. With it instead of 1 before A, all PUDs are scaled alike.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Weights {
    distance: u32,
    recency: u32,
}

impl Weights {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to 0.999, checked by `problems`
    fn of(distance_weight: f64) -> Self {
        let distance = (distance_weight * 1000.0).round() as u32;
        let recency = 1000 - distance;
        let divisor = (1..=recency)
            .rev()
            .find(|each| distance.is_multiple_of(*each) && recency.is_multiple_of(*each))
            .unwrap_or(1);
        Self { distance: distance / divisor, recency: recency / divisor }
    }
    /// What turns the scaled PUD into that of Eq. 2.3.
    fn scale(self) -> f64 {
        f64::from(self.recency) / f64::from(self.distance + self.recency)
    }
}

impl Updates {
    /// A - L, with A weighted.
    #[inline(always)]
    #[allow(clippy::cast_possible_wrap)] // positions are far below 2^63
    fn key(&self, weights: Weights) -> Fraction {
        if self.sum == 0 {
            return Fraction { whole: -(self.last as i64), rem: 0, den: 1 }; // without a division
        }
        let Weights { distance, recency } = weights;
        let average = Fraction::of(self.sum * u64::from(distance), (self.frequency - 1).max(1) * recency);
        Fraction { whole: average.whole - self.last as i64, ..average }
    }
    /// The order of victims among blocks with as many pages.
    #[inline(always)]
    fn rank(&self, weights: Weights) -> (Fraction, Reverse<u64>) {
        (self.key(weights), Reverse(self.last))
    }
}

/// The largest key among the heads of heaps: a tree whose leaves are the heaps.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Heads(Vec<Option<Fraction>>);

impl Heads {
    fn new(heaps: u32) -> Self {
        Self(vec![None; 2 * heaps.next_power_of_two() as usize])
    }
    fn leaves(&self) -> usize {
        self.0.len() / 2
    }
    #[inline(always)]
    fn put(&mut self, heap: u32, key: Option<Fraction>) {
        let mut at = self.leaves() + heap as usize;
        if self.0[at] == key {
            return;
        }
        self.0[at] = key;
        while at > 1 {
            at /= 2;
            let greatest = self.0[2 * at].max(self.0[2 * at + 1]);
            if self.0[at] == greatest {
                return;
            }
            self.0[at] = greatest;
        }
    }
    #[inline(always)]
    fn greatest(&self) -> Option<Fraction> {
        self.0[1]
    }
    /// The last heap whose head satisfies a condition that every larger key satisfies too.
    #[inline(always)]
    fn last_that(&self, holds: impl Fn(Fraction) -> bool) -> Option<u32> {
        let mut at = 1;
        if !self.0[at].is_some_and(&holds) {
            return None;
        }
        while at < self.leaves() {
            at = if self.0[2 * at + 1].is_some_and(&holds) { 2 * at + 1 } else { 2 * at };
        }
        u32::try_from(at - self.leaves()).ok()
    }
}

/// Adapts the threshold; see the module.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Tuner {
    /// Page writes of a window.
    window: u64,
    /// Page writes of this window so far.
    writes: u64,
    /// Destages that this window counts.
    destages: u64,
    /// The current step.
    home: usize,
    /// Whether smaller thresholds are tried.
    down: bool,
    phase: Phase,
    /// Destages counted in the windows before.
    before: u64,
    tried: u64,
    moves: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    Before,
    Try,
    After,
}

impl Tuner {
    fn new(start: u64, pages: u32) -> Self {
        let home = STEPS.iter().position(|step| *step <= start).unwrap_or(STEPS.len() - 1);
        Self {
            window: 4 * u64::from(pages),
            writes: 0,
            destages: 0,
            home,
            down: true,
            phase: Phase::Before,
            before: 0,
            tried: 0,
            moves: 0,
        }
    }

    fn neighbour(&self) -> usize {
        if self.down { self.home + 1 } else { self.home - 1 }
    }

    /// Records a page write; returns the new threshold if it changes.
    #[inline(always)]
    fn wrote(&mut self) -> Option<u64> {
        self.writes += 1;
        if self.writes == self.window / 4 {
            self.destages = 0;
        }
        (self.writes == self.window).then(|| self.turn())
    }

    #[cold]
    fn turn(&mut self) -> u64 {
        let counted = std::mem::take(&mut self.destages);
        self.writes = 0;
        let step = match self.phase {
            Phase::Before => {
                (self.phase, self.before) = (Phase::Try, counted);
                if self.home == 0 || self.home == STEPS.len() - 1 {
                    self.down = self.home == 0;
                }
                self.neighbour()
            }
            Phase::Try => {
                (self.phase, self.tried) = (Phase::After, counted);
                self.home
            }
            Phase::After => {
                self.phase = Phase::Before;
                if self.tried < self.before.min(counted) {
                    self.home = self.neighbour();
                    self.moves += 1;
                } else {
                    self.down = !self.down;
                }
                self.home
            }
        };
        STEPS[step]
    }
}

/// Counts of FUG and IUG when blocks are evicted.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Samples {
    count: u64,
    frequent: u64,
    infrequent: u64,
    /// The position from which the next sample is taken.
    due: u64,
}

/// A block of the buffer, as [`PudLru::blocks`] shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockUpdates {
    /// The logical block.
    pub block: u32,
    /// Its pages in RAM.
    pub pages: u32,
    /// Its updates, page writes, f.
    pub frequency: u32,
    /// The position of the last of them, in page writes, L.
    pub last_update: u64,
    /// The sum of its update distances, in page writes, UD.
    pub update_distances: u64,
    /// Its predicted update distance, in page writes, for a write that comes now.
    pub pud: f64,
    /// Whether it is in FUG.
    pub frequent: bool,
}

/// `ram.manager = "pud-lru"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PudLru {
    groups: Groups,
    updates: Vec<Updates>,
    /// Blocks by count of pages, the largest A - L first.
    by_count: Heaps<(Fraction, Reverse<u64>)>,
    heads: Heads,
    /// Blocks of one update, which have one page and for which A - L is -L, by their update.
    once: SlotLists,
    /// All blocks by last update.
    order: SlotLists,
    capacity: u32,
    settings: PudLruSettings,
    weights: Weights,
    /// In [`ONE`] parts.
    threshold: u64,
    tuner: Option<Tuner>,
    /// The position of the next page write, c.
    position: u64,
    samples: Samples,
}

/// The only list of `order`.
const ALL: u32 = 0;

/// The border between FUG and IUG at one time.
#[derive(Clone, Copy)]
struct Border {
    smallest: Fraction,
    largest: Fraction,
    threshold: i128,
    /// What a key is measured from, and the share of the smallest one in the other side.
    from: i64,
    least: i128,
    /// Keys of at most this whole part are in FUG, those of at least the other are not. Three fractions below 1 decide between.
    sure: i64,
    sure_not: i64,
}

impl Border {
    /// A block is in FUG if key + shift, or key - smallest, is below threshold x (largest - smallest).
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // a share of a distance of positions
    fn new(smallest: Fraction, largest: Fraction, threshold: u64, shift: i64, rule: Frequent) -> Self {
        const FEW: u64 = i64::MAX as u64 / ONE;
        let (one, t) = (i128::from(ONE), i128::from(threshold));
        let (from, least) = match rule {
            Frequent::Range => (-shift, t),
            Frequent::AboveMin => (smallest.whole, t - one),
        };
        let range = largest.whole - smallest.whole;
        let share = match u64::try_from(range) {
            Ok(range @ ..=FEW) => (threshold * range / ONE) as i64, // in 64 bits, where a division by a constant is cheap
            _ => (t * i128::from(range)).div_euclid(one) as i64,
        };
        let (sure, sure_not) = (from + share - 3, from + share + 4);
        Self { smallest, largest, threshold: t, from, least, sure, sure_not }
    }

    /// Whether a block is in FUG.
    #[inline(always)]
    fn is_frequent(&self, key: Fraction) -> bool {
        key.whole <= self.sure || key.whole < self.sure_not && self.is_frequent_exactly(key)
    }

    /// The same with exact fractions: all terms times the three denominators, each at most 2^31.
    #[cold]
    fn is_frequent_exactly(&self, key: Fraction) -> bool {
        let wholes = i128::from(key.whole - self.from) * i128::from(ONE)
            - self.threshold * i128::from(self.largest.whole - self.smallest.whole);
        let [k, l, s] = [key.den, self.largest.den, self.smallest.den].map(i128::from);
        wholes * k * l * s + i128::from(ONE) * i128::from(key.rem) * l * s
            - self.threshold * i128::from(self.largest.rem) * k * s
            + self.least * i128::from(self.smallest.rem) * k * l
            < 0
    }
}

impl PudLru {
    /// The term that turns a key into the PUD of Eq. 2.3, scaled, for a write at this position.
    #[allow(clippy::cast_possible_wrap)] // positions are far below 2^63
    fn shift(&self) -> i64 {
        match (self.settings.pud, self.settings.recency) {
            (Formula::Alg1, _) => 0,
            (_, Recency::Completed) => self.position as i64 - 1,
            (_, Recency::Current) => self.position as i64,
        }
    }

    fn border(&self, smallest: Fraction, largest: Fraction) -> Border {
        Border::new(smallest, largest, self.threshold, self.shift(), self.settings.fug)
    }

    /// The order of a block among all: A - L, or the value of line 27.
    fn key(&self, slot: u32) -> Fraction {
        let updates = &self.updates[slot as usize];
        match self.settings.pud {
            Formula::Average => updates.key(self.weights),
            Formula::Alg1 => Fraction::of(self.position + updates.sum, updates.frequency),
        }
    }

    fn ordered(&self) -> bool {
        self.settings.pud == Formula::Average
    }

    /// Records a page write to a block that has a slot.
    #[inline(always)]
    fn update(&mut self, slot: u32) {
        let updates = &mut self.updates[slot as usize];
        updates.sum += self.position - updates.last - 1;
        updates.frequency += 1;
        updates.last = self.position;
        if updates.frequency >= DENOMINATOR_MAX / self.weights.recency {
            (updates.frequency, updates.sum) = (updates.frequency / 2, updates.sum / 2);
        }
    }

    /// The first victim among the blocks of this many pages.
    #[inline(always)]
    fn top(&self, count: u32) -> Option<((Fraction, Reverse<u64>), u32)> {
        let heap = self.by_count.top(count);
        if count != 1 {
            return heap;
        }
        let once = self.once.oldest(ALL).map(|slot| (self.updates[slot as usize].rank(self.weights), slot));
        if once.map(|(rank, _)| rank) > heap.map(|(rank, _)| rank) { once } else { heap }
    }

    #[inline(always)]
    fn head_changed(&mut self, count: u32) {
        self.heads.put(count, self.top(count).map(|((key, _), _)| key));
    }

    /// Removes a block from those of its count, before its updates change.
    #[inline(always)]
    fn leave(&mut self, slot: u32, count: u32) {
        if !self.ordered() {
            return;
        }
        if self.updates[slot as usize].frequency == 1 {
            self.once.unlink(slot);
        } else {
            self.by_count.remove(count, slot);
        }
        self.head_changed(count);
    }

    /// Adds a block to those of its count.
    #[inline(always)]
    fn enter(&mut self, slot: u32, count: u32) {
        if !self.ordered() {
            return;
        }
        let updates = &self.updates[slot as usize];
        if updates.frequency == 1 {
            self.once.push(ALL, slot);
        } else {
            self.by_count.push(count, slot, updates.rank(self.weights));
        }
        self.head_changed(count);
    }

    #[inline(always)]
    fn all_have_one_page(&self) -> bool {
        self.groups.pages() == self.groups.len()
    }

    #[inline(always)]
    fn wrote(&mut self) {
        self.position += 1;
        if let Some(threshold) = self.tuner.as_mut().and_then(Tuner::wrote) {
            self.threshold = threshold;
        }
    }

    /// The slot of the block to evict next.
    #[inline(always)]
    fn victim(&self) -> Option<u32> {
        if !self.ordered() {
            return self.victim_by_look();
        }
        let largest = self.heads.greatest()?;
        // No PUD is below 0, and the smallest is not above that of the block written last.
        let low = self.border(Fraction { whole: -self.shift(), rem: 0, den: 1 }, largest);
        let high = self.border(self.key(self.order.newest(ALL)?), largest);
        let (sure, sure_not) = (low.sure.min(high.sure), low.sure_not.max(high.sure_not));
        let exact = OnceCell::new();
        let is_frequent = |key: Fraction| {
            if key.whole <= sure || key.whole >= sure_not {
                return key.whole <= sure;
            }
            let frequent = low.is_frequent(key);
            if frequent == high.is_frequent(key) {
                return frequent;
            }
            exact.get_or_init(|| self.border(self.smallest(), largest)).is_frequent(key)
        };
        let count = self.heads.last_that(|key| !is_frequent(key))?;
        self.top(count).map(|(_, slot)| slot)
    }

    /// The smallest A - L. The list must not be empty.
    #[cold]
    #[allow(clippy::cast_possible_wrap)] // positions are far below 2^63
    fn smallest(&self) -> Fraction {
        let mut least = Fraction { whole: i64::MAX, rem: 0, den: 1 };
        let mut at = self.order.newest(ALL);
        while let Some(slot) = at.filter(|slot| -(self.updates[*slot as usize].last as i64) <= least.whole) {
            least = least.min(self.key(slot));
            at = self.order.before(slot);
        }
        least
    }

    /// The same by a scan of all blocks.
    fn victim_by_look(&self) -> Option<u32> {
        let border = self.border_by_look()?;
        self.slots()
            .filter(|slot| !border.is_frequent(self.key(*slot)))
            .max_by_key(|slot| (self.groups.count(*slot), self.key(*slot), Reverse(self.updates[*slot as usize].last)))
    }

    fn border_by_look(&self) -> Option<Border> {
        let keys = || self.slots().map(|slot| self.key(slot));
        Some(self.border(keys().min()?, keys().max()?))
    }

    fn slots(&self) -> impl Iterator<Item = u32> {
        (0u32..).take(self.updates.len()).filter(|slot| self.groups.count(*slot) > 0)
    }

    /// All blocks in RAM by number, as a write at the current position sees them. For inspection: computes every value
    /// again.
    #[must_use]
    pub fn blocks(&self) -> Vec<BlockUpdates> {
        let Some(border) = self.border_by_look() else { return Vec::new() };
        let mut blocks: Vec<BlockUpdates> = self
            .slots()
            .map(|slot| {
                let (key, updates) = (self.key(slot), self.updates[slot as usize]);
                BlockUpdates {
                    block: self.groups.block(slot),
                    pages: self.groups.count(slot),
                    frequency: updates.frequency,
                    last_update: updates.last,
                    update_distances: updates.sum,
                    pud: match self.settings.pud {
                        Formula::Average => (key.value() + self.shift() as f64) * self.weights.scale(),
                        Formula::Alg1 => key.value(),
                    },
                    frequent: border.is_frequent(key),
                }
            })
            .collect();
        blocks.sort_unstable_by_key(|block| block.block);
        blocks
    }

    /// The threshold in use.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.threshold as f64 / ONE as f64
    }

    /// Counts FUG by a scan of all blocks, once per as many page writes as there are slots, in large buffers eight
    /// times as many, so that its cost is a small O(1) per write.
    #[cold]
    fn sample(&mut self) {
        let Some(border) = self.border_by_look() else { return };
        let frequent = self.slots().filter(|slot| border.is_frequent(self.key(*slot))).count() as u64;
        self.samples.count += 1;
        self.samples.frequent += frequent;
        self.samples.infrequent += u64::from(self.groups.len()) - frequent;
        let slots = self.updates.len() as u64;
        self.samples.due = self.position + slots * if slots > 64 { 8 } else { 1 };
    }
}

impl RamManager for PudLru {
    const NAME: &'static str = "pud-lru";
    const ABOUT: &'static str =
        "a write buffer of blocks; evicts the fullest of those not soon rewritten, padded (Hu 2012, 2)";
    const LETS_GO_NEW: bool = true;
    const METADATA_BYTES: u64 = 12;
    type Settings = PudLruSettings;

    fn problems(_: &Self::Settings, context: &RamContext) -> Vec<String> {
        needs_a_block(Self::NAME, Self::METADATA_BYTES, context)
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to 1, checked by `problems`
    fn new(settings: &Self::Settings, context: RamContext) -> Self {
        let threshold = (settings.threshold * ONE as f64).round() as u64;
        let tuner = settings.adaptive.then(|| Tuner::new(threshold, context.pages));
        Self {
            groups: Groups::new(context.pages_per_block, context.logical_pages),
            updates: Vec::new(),
            by_count: Heaps::new(context.pages_per_block + 1),
            heads: Heads::new(context.pages_per_block + 1),
            once: SlotLists::new(1, 0),
            order: SlotLists::new(1, 0),
            capacity: context.pages,
            settings: settings.clone(),
            weights: Weights::of(settings.distance_weight),
            threshold: tuner.as_ref().map_or(threshold, |tuner| STEPS[tuner.home]),
            tuner,
            position: 0,
            samples: Samples::default(),
        }
    }

    #[inline(always)]
    fn capacity(&self) -> u32 {
        self.capacity
    }
    #[inline(always)]
    fn pages(&self) -> u32 {
        self.groups.pages()
    }
    #[inline(always)]
    fn is_dirty(&self, lpn: Lpn) -> Option<bool> {
        self.groups.find(lpn).map(|_| true)
    }

    #[inline(always)]
    fn expect(&self, lpn: Lpn) {
        self.groups.expect(lpn);
    }
    #[inline(always)]
    fn overwrite(&mut self, lpn: Lpn) -> bool {
        let Some((slot, _)) = self.groups.find(lpn) else { return false };
        let count = self.groups.count(slot);
        if self.ordered() && self.updates[slot as usize].frequency > 1 {
            self.update(slot);
            self.by_count.change(count, slot, self.updates[slot as usize].rank(self.weights));
            self.head_changed(count);
        } else {
            self.leave(slot, count);
            self.update(slot);
            self.enter(slot, count);
        }
        self.order.move_to(ALL, slot);
        self.wrote();
        true
    }
    #[inline(always)]
    fn take_in(&mut self, lpn: Lpn, dirty: bool) {
        let (slot, new) = self.groups.insert(lpn, dirty);
        let count = self.groups.count(slot);
        if new {
            if slot as usize == self.updates.len() {
                self.updates.push(Updates::default());
            }
            self.updates[slot as usize] = Updates { frequency: 1, last: self.position, sum: 0 };
            self.order.push(ALL, slot);
        } else {
            self.leave(slot, count - 1);
            self.update(slot);
            self.order.move_to(ALL, slot);
        }
        self.enter(slot, count);
        self.wrote();
    }
    #[inline(always)]
    fn read(&mut self, lpn: Lpn) -> bool {
        self.groups.find(lpn).is_some()
    }
    #[inline(always)]
    fn choose(&mut self, _: View, out: &mut Destage) {
        let Some(slot) = self.victim() else { return };
        self.groups.name_all(slot, out);
        out.pad_block = self.settings.padding.then(|| self.groups.block(slot));
        if self.position >= self.samples.due {
            self.sample();
        }
    }
    /// Only where each block has one page, so that no victim is looked for twice.
    #[inline(always)]
    fn leaves_alone(&self) -> Option<Leaves> {
        let alone = !self.settings.padding && self.all_have_one_page() && self.position < self.samples.due;
        let victim = if alone { self.victim() } else { None };
        victim.and_then(|slot| self.groups.leaves(slot))
    }
    #[inline(always)]
    fn left_alone(&mut self, slot: u32) {
        let count = self.groups.count(slot);
        self.groups.remove_group(slot);
        self.leave(slot, count);
        self.order.unlink(slot);
        if let Some(tuner) = &mut self.tuner {
            tuner.destages += 1;
        }
    }
    /// Where each block has one page and hardly any is in FUG, those written once leave in the order of their writes.
    #[inline(always)]
    fn leaves_after(&self, slot: Option<u32>) -> Option<(u32, Lpn)> {
        if !self.all_have_one_page() {
            return None;
        }
        let next = slot.map_or_else(|| self.once.oldest(ALL), |slot| self.once.after(slot))?;
        let lpn = self.groups.first_page(next);
        self.groups.expect(lpn);
        Some((next, lpn))
    }
    fn remove(&mut self, lpn: Lpn) -> bool {
        let Some((slot, gone)) = self.groups.remove(lpn) else { return false };
        let now = self.groups.count(slot);
        self.leave(slot, now + 1);
        if gone {
            self.order.unlink(slot);
        } else {
            self.enter(slot, now);
        }
        true
    }
    #[inline(always)]
    fn left(&mut self, out: &Destage) {
        if let Some(slot) = self.groups.slot_of_destage(out) {
            self.left_alone(slot);
        }
    }
    fn dirty_pages(&self, out: &mut Vec<u32>) {
        self.groups.dirty_pages(out);
    }
    fn figures(&self) -> Vec<(String, f64)> {
        let Samples { count, frequent, infrequent, .. } = self.samples;
        let mean = |sum: u64| if count == 0 { 0.0 } else { sum as f64 / count as f64 };
        let mut figures = vec![
            ("fug_mean_blocks".to_owned(), mean(frequent)),
            ("iug_mean_blocks".to_owned(), mean(infrequent)),
            ("threshold".to_owned(), self.threshold()),
        ];
        figures.extend(self.tuner.as_ref().map(|tuner| ("threshold_moves".to_owned(), tuner.moves as f64)));
        figures
    }
    fn reset_figures(&mut self) {
        self.samples = Samples { due: self.samples.due, ..Samples::default() };
        self.tuner.iter_mut().for_each(|tuner| tuner.moves = 0);
    }

    fn audit(&self, violations: &mut Vec<Violation>) {
        self.groups.audit(violations);
        if !self.ordered() {
            return;
        }
        let of = |slot: u32| &self.updates[slot as usize];
        self.by_count.audit(|slot| of(slot).rank(self.weights), violations);
        let heaps: u32 = (1..=self.groups.pages_per_block()).map(|count| self.by_count.len(count)).sum();
        let counted = heaps + self.once.len(ALL);
        if [counted, self.order.len(ALL)] != [self.groups.len(); 2] {
            violations.push(Violation(format!(
                "the buffer holds {} blocks, {counted} are in the heaps by count, {} in their order",
                self.groups.len(),
                self.order.len(ALL)
            )));
        }
        let (found, expected) = (self.victim(), self.victim_by_look());
        if found != expected {
            violations
                .push(Violation(format!("the victim is slot {found:?}, a look at all blocks finds {expected:?}")));
        }
    }
}
