//! Replacement by score: a policy from outside rates all entries of the cached map at once, and those of the highest scores leave one
//! after another until their number is reached. An entry that is used meanwhile stays, and one that came meanwhile waits until the
//! entries are rated again. So a policy is called once for many evictions; for one whose scores only fall with a use, as those of LRU,
//! it makes no difference.
//!
//! A use takes O(1), a rating O(entries). State: 32 bytes a slot.

/// Rates the entries of a cached map.
pub trait ScoreEntries: std::fmt::Debug + Send + Sync {
    /// Adds a score for each entry; that of the highest leaves first. It may move the table out of its box, and must put it back.
    ///
    /// # Errors
    /// The reason why it can't.
    fn score(&mut self, entries: &mut Box<CachedEntries>, scores: &mut Vec<f64>) -> Result<(), String>;
    /// A copy that continues as this one would.
    fn again(&self) -> Box<dyn ScoreEntries>;
}

impl Clone for Box<dyn ScoreEntries> {
    fn clone(&self) -> Self {
        self.again()
    }
}

/// A slot of the cache.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    page: u32,
    uses: u32,
    loaded: u64,
    used: u64,
    has_entry: bool,
}

/// The entries of a cached map, in columns of one order.
#[derive(Clone, Debug, Default)]
pub struct CachedEntries {
    /// Lookups so far.
    pub now: u64,
    by_slot: Vec<Slot>,
    /// The slots that have an entry.
    held: Vec<u32>,
    dirty: Vec<bool>,
}

impl CachedEntries {
    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
    fn slots(&self) -> impl ExactSizeIterator<Item = &Slot> {
        self.held.iter().map(|slot| &self.by_slot[*slot as usize])
    }
    /// Translation pages.
    pub fn pages(&self) -> impl ExactSizeIterator<Item = u32> {
        self.slots().map(|slot| slot.page)
    }
    /// Lookups that found the entry since it was loaded.
    pub fn uses(&self) -> impl ExactSizeIterator<Item = u32> {
        self.slots().map(|slot| slot.uses)
    }
    /// Lookups since the last one of the entry.
    pub fn ages(&self) -> impl ExactSizeIterator<Item = u64> {
        self.slots().map(|slot| self.now - slot.used)
    }
    /// Lookups since it was loaded.
    pub fn held_for(&self) -> impl ExactSizeIterator<Item = u64> {
        self.slots().map(|slot| self.now - slot.loaded)
    }
    /// Whether the entry is newer than its translation page.
    pub fn dirty(&self) -> impl ExactSizeIterator<Item = bool> {
        self.dirty.iter().copied()
    }
}

/// Orders entries: the highest score comes first, of equals what was used longest ago. As a number, since those compare faster.
fn place_of(score: f64, used: u64) -> u128 {
    // The bits of a number are in its order, but for the sign; the sum makes one of both zeros.
    let bits = (score + 0.0).to_bits();
    let ascending = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
    u128::from(!ascending) << 64 | u128::from(used)
}

/// Entries that leave by one rating: a share of the cache, so that a rating costs as much for each in all sizes.
const SHARE_OF_BATCH: u32 = 8;

/// The entries, and the policy that rates them.
#[derive(Clone, Debug)]
pub(super) struct Scored {
    policy: Box<dyn ScoreEntries>,
    entries: Box<CachedEntries>,
    batch: usize,
    /// Those that leave next, the first of them last.
    leaving: Vec<u32>,
    /// The clock when they were chosen.
    chosen: u64,
    scores: Vec<f64>,
}

impl Scored {
    /// For an empty cache of so many entries; `batch` leave by one rating, or a share of them if it is 0.
    pub fn new(policy: Box<dyn ScoreEntries>, entries: u32, batch: u32) -> Self {
        let batch = if batch == 0 { (entries / SHARE_OF_BATCH).max(1) } else { batch };
        Self {
            policy,
            entries: Box::default(),
            batch: batch as usize,
            leaving: Vec::new(),
            chosen: 0,
            scores: Vec::new(),
        }
    }

    pub fn loaded(&mut self, slot: u32, page: u32) {
        let CachedEntries { now, by_slot, .. } = &mut *self.entries;
        *now += 1;
        if by_slot.len() <= slot as usize {
            by_slot.resize(slot as usize + 1, Slot::default());
        }
        by_slot[slot as usize] = Slot { page, uses: 0, loaded: *now, used: *now, has_entry: true };
    }

    pub fn used(&mut self, slot: u32) {
        let CachedEntries { now, by_slot, .. } = &mut *self.entries;
        *now += 1;
        let slot = &mut by_slot[slot as usize];
        slot.used = *now;
        slot.uses += 1;
    }

    pub fn left(&mut self, slot: u32) {
        self.entries.by_slot[slot as usize].has_entry = false;
    }

    /// The slot of any entry.
    pub fn any(&self) -> Option<u32> {
        (0..).zip(&self.entries.by_slot).find(|(_, slot)| slot.has_entry).map(|(number, _)| number)
    }

    /// The slot whose entry leaves next, of a cache with entries.
    pub fn next(&mut self, is_dirty: impl Fn(u32) -> bool) -> Result<u32, String> {
        while let Some(number) = self.leaving.last() {
            let slot = &self.entries.by_slot[*number as usize];
            if slot.has_entry && slot.used <= self.chosen {
                return Ok(*number);
            }
            self.leaving.pop();
        }
        self.choose(is_dirty)?;
        self.leaving.last().copied().ok_or_else(|| "score was asked about an empty cache".to_owned())
    }

    fn choose(&mut self, is_dirty: impl Fn(u32) -> bool) -> Result<(), String> {
        let CachedEntries { now, by_slot, held, dirty } = &mut *self.entries;
        self.chosen = *now;
        held.clear();
        held.extend((0..).zip(&*by_slot).filter(|(_, slot)| slot.has_entry).map(|(number, _)| number));
        dirty.clear();
        dirty.extend(held.iter().map(|slot| is_dirty(*slot)));
        self.scores.clear();
        self.policy.score(&mut self.entries, &mut self.scores)?;
        let CachedEntries { by_slot, held, .. } = &*self.entries;
        if self.scores.len() != held.len() {
            let (found, expected) = (self.scores.len(), held.len());
            return Err(format!("score answered {found} scores, expected one for each of the {expected} entries"));
        }
        if let Some(score) = self.scores.iter().find(|score| score.is_nan()) {
            return Err(format!("score answered {score}, expected a number for each entry"));
        }
        let place = |(score, slot): (&f64, &u32)| (place_of(*score, by_slot[*slot as usize].used), *slot);
        let mut ranked: Vec<(u128, u32)> = self.scores.iter().zip(held).map(place).collect();
        if ranked.len() > self.batch {
            ranked.select_nth_unstable(self.batch);
            ranked.truncate(self.batch);
        }
        ranked.sort_unstable();
        self.leaving.extend(ranked.iter().rev().map(|(_, slot)| *slot));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::place_of;

    #[test]
    fn places_are_by_score_then_by_last_use() {
        let descending = [f64::INFINITY, 1e300, 2.5, 1.0, 1e-310, 0.0, -1e-310, -1.0, -7.5, f64::NEG_INFINITY];
        assert!(descending.is_sorted_by(|a, b| place_of(*a, u64::MAX) < place_of(*b, 0)));
        assert_eq!(place_of(0.0, 3), place_of(-0.0, 3));
        assert!(place_of(1.0, 3) < place_of(1.0, 4));
    }
}
