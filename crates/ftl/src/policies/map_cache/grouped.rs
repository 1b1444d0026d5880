//! Evicts all entries of one translation page together (GC-ARM's mapping table; Hu 2012, 3.2.1).
//!
//! ```text
//!   an entry is clean? ── yes ─► the clean entry used longest ago leaves, free of charge
//!          │ no
//!   the group with most entries is written back whole (one read, one program) and leaves
//! ```
//!
//! Among groups of equal size the least recently touched one leaves; a change by cleaning counts as a touch. The paper
//! states that the group "is destaged as the victim", so its entries leave; with `keep-clean` they stay as clean
//! entries, and the oldest of these makes room. Writing an entry counts as a use; entries written together count in the
//! order in which they became dirty.
//!
//! A group leaves only when every cached entry is dirty, so the size of a group is its number of dirty entries. A group
//! then never shrinks except to nothing, and the list of groups of each size stays in order of touches. Every step
//! takes amortised O(1). State: 20 bytes per entry, 20 bytes per translation page, 12 bytes per entry of one
//! translation page.

use super::{MapCacheContext, MapCachePolicy, SlotLists};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of `ftl.dftl.replacement = "grouped"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct GroupedSettings {
    /// Whether the entries of a group that was written back stay in the cache as clean ones.
    pub keep_clean: bool,
}

/// A translation page.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Group {
    /// The number of its dirty entries.
    dirty: u32,
    /// The slot of the entry that became dirty last.
    newest: u32,
}

/// `ftl.dftl.replacement = "grouped"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Grouped {
    /// Clean entries by last use; dirty ones on a separate unordered list.
    entries: SlotLists,
    /// By slot: the translation page, and for a dirty entry the entry of the same page that became dirty before it.
    page: Vec<u32>,
    before: Vec<u32>,
    groups: Vec<Group>,
    /// Translation pages with n dirty entries on list n - 1, by last touch.
    sizes: SlotLists,
    /// The largest number of dirty entries of a page.
    largest: u32,
    keep_clean: bool,
}

const CLEAN: u32 = 0;
const DIRTY: u32 = 1;

impl MapCachePolicy for Grouped {
    const NAME: &'static str = "grouped";
    const ABOUT: &'static str =
        "a clean entry, else the largest group of entries of one translation page (Hu 2012, 3.2.1)";
    const GROUPS: bool = true;
    type Settings = GroupedSettings;

    fn new(settings: &GroupedSettings, context: MapCacheContext) -> Self {
        Self {
            entries: SlotLists::new(2, context.entries),
            page: Vec::new(),
            before: Vec::new(),
            groups: Vec::new(),
            sizes: SlotLists::new(context.entries_per_page, 0),
            largest: 0,
            keep_clean: settings.keep_clean,
        }
    }
    fn inserted(&mut self, _: u32) {
        unreachable!("entries come with their page");
    }
    fn loaded(&mut self, slot: u32, page: impl FnOnce() -> u32) {
        let page = page();
        let (at, group) = (slot as usize, page as usize);
        self.page.resize(self.page.len().max(at + 1), 0);
        self.before.resize(self.page.len(), 0);
        self.groups.resize(self.groups.len().max(group + 1), Group::default());
        self.page[at] = page;
        self.entries.push(CLEAN, slot);
        if self.groups[group].dirty > 0 {
            self.sizes.move_to(self.groups[group].dirty - 1, page);
        }
    }
    #[inline]
    fn touched(&mut self, slot: u32) {
        if self.entries.list_of(slot) == CLEAN {
            self.entries.move_to(CLEAN, slot);
        }
        let page = self.page[slot as usize];
        let dirty = self.groups[page as usize].dirty;
        if dirty > 0 {
            self.sizes.move_to(dirty - 1, page);
        }
    }
    #[inline]
    fn dirtied(&mut self, slot: u32) {
        self.entries.move_to(DIRTY, slot);
        let page = self.page[slot as usize];
        let group = &mut self.groups[page as usize];
        if group.dirty > 0 {
            self.sizes.unlink(page);
        }
        self.before[slot as usize] = group.newest;
        *group = Group { dirty: group.dirty + 1, newest: slot };
        self.sizes.push(group.dirty - 1, page);
        self.largest = self.largest.max(group.dirty);
    }
    #[inline]
    fn cleaned(&mut self, slot: u32) {
        self.entries.move_to(CLEAN, slot);
        let page = self.page[slot as usize];
        let group = &mut self.groups[page as usize];
        self.sizes.unlink(page);
        group.dirty -= 1;
        if group.dirty > 0 {
            self.sizes.push(group.dirty - 1, page);
        }
        while self.largest > 0 && self.sizes.len(self.largest - 1) == 0 {
            self.largest -= 1;
        }
    }
    fn removed(&mut self, slot: u32) {
        debug_assert!(self.entries.list_of(slot) == CLEAN, "a dirty entry leaves");
        self.entries.unlink(slot);
    }
    #[inline]
    fn victim(&self) -> Option<u32> {
        self.entries.oldest(CLEAN).or_else(|| self.largest_group().map(|page| self.groups[page as usize].newest))
    }
    fn group(&self, page: u32) -> Vec<u32> {
        let Some(Group { dirty, newest }) = self.groups.get(page as usize) else { return Vec::new() };
        std::iter::successors(Some(*newest), |slot| Some(self.before[*slot as usize])).take(*dirty as usize).collect()
    }
    fn leaves_whole(&self) -> bool {
        !self.keep_clean
    }
    fn has_clean(&self) -> Option<bool> {
        Some(self.entries.len(CLEAN) > 0)
    }
    fn largest_group(&self) -> Option<u32> {
        (self.largest > 0).then(|| self.sizes.oldest(self.largest - 1)).flatten()
    }
    fn expect(&self, slot: u32) {
        self.entries.expect(slot);
    }
    fn entries(&self) -> u32 {
        self.entries.total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::{Rng, Seed, below};

    #[derive(Clone, Copy)]
    struct Entry {
        page: u32,
        dirty: bool,
        used: u64,
    }

    /// Reference model: entries in a list, searched in full for every question.
    #[derive(Default)]
    struct Reference {
        entries: Vec<Option<Entry>>,
        touched: Vec<u64>,
        now: u64,
    }

    impl Reference {
        fn touch(&mut self, page: u32) -> u64 {
            self.now += 1;
            self.touched[page as usize] = self.now;
            self.now
        }
        fn oldest_clean(&self) -> Option<u32> {
            let held = (0u32..).zip(&self.entries).filter_map(|(slot, entry)| entry.map(|entry| (slot, entry)));
            held.filter(|(_, entry)| !entry.dirty).min_by_key(|(_, entry)| entry.used).map(|(slot, _)| slot)
        }
        fn largest(&self) -> Option<u32> {
            let size =
                |page: u32| self.entries.iter().flatten().filter(|entry| entry.page == page && entry.dirty).count();
            let pages = 0..u32::try_from(self.touched.len()).unwrap();
            pages
                .filter(|page| size(*page) > 0)
                .min_by_key(|page| (usize::MAX - size(*page), self.touched[*page as usize]))
        }
    }

    fn draw(rng: &mut Rng, end: usize) -> usize {
        usize::try_from(below(rng, end as u64)).unwrap()
    }

    /// Random loads, uses, changes, write-backs of groups and departures: the same victim and group as the reference
    /// model at every step, in full caches and in caches with room.
    #[test]
    fn the_reference_model_names_the_same_victims() {
        const PAGES: usize = 7;
        for seed in 0..40 {
            let mut rng = Seed(seed).stream("grouped");
            let slots = 1 + draw(&mut rng, 30);
            let context = MapCacheContext { entries: u32::try_from(slots).unwrap(), entries_per_page: 64 };
            let mut policy = Grouped::new(&GroupedSettings::default(), context);
            let mut reference = Reference { entries: vec![None; slots], touched: vec![0; PAGES], now: 0 };
            let (mut without_clean, mut written) = (0, 0);
            for _ in 0..3000 {
                let at = draw(&mut rng, slots);
                let slot = u32::try_from(at).unwrap();
                match (reference.entries[at], draw(&mut rng, 8)) {
                    (None, _) => {
                        let page = u32::try_from(draw(&mut rng, PAGES)).unwrap();
                        policy.loaded(slot, || page);
                        let used = reference.touch(page);
                        reference.entries[at] = Some(Entry { page, dirty: false, used });
                    }
                    (Some(entry), 0..=1) => {
                        policy.touched(slot);
                        let used = reference.touch(entry.page);
                        reference.entries[at] = Some(Entry { used, ..entry });
                    }
                    (Some(entry), 2..=6) if !entry.dirty => {
                        policy.dirtied(slot);
                        reference.touch(entry.page);
                        reference.entries[at] = Some(Entry { dirty: true, ..entry });
                    }
                    (Some(_), 7) if reference.oldest_clean().is_none() => {
                        let page = reference.largest().unwrap();
                        assert_eq!(policy.largest_group(), Some(page));
                        let mut group = policy.group(page);
                        group.sort_unstable();
                        let of_page =
                            |slot: &u32| reference.entries[*slot as usize].is_some_and(|entry| entry.page == page);
                        let held = (0..u32::try_from(slots).unwrap()).filter(of_page).collect::<Vec<_>>();
                        assert_eq!(group, held);
                        for at in 0..slots {
                            if let Some(entry) = reference.entries[at].filter(|entry| entry.page == page) {
                                policy.cleaned(u32::try_from(at).unwrap());
                                reference.now += 1;
                                reference.entries[at] = Some(Entry { dirty: false, used: reference.now, ..entry });
                            }
                        }
                        written += 1;
                    }
                    (Some(entry), 7) if !entry.dirty => {
                        policy.removed(slot);
                        reference.entries[at] = None;
                    }
                    _ => {}
                }
                assert_eq!(policy.largest_group(), reference.largest());
                assert_eq!(policy.has_clean(), Some(reference.oldest_clean().is_some()));
                match (reference.oldest_clean(), reference.largest()) {
                    (Some(clean), _) => assert_eq!(policy.victim(), Some(clean)),
                    (None, Some(page)) => {
                        without_clean += 1;
                        let victim = policy.victim().unwrap() as usize;
                        assert_eq!(reference.entries[victim].map(|entry| entry.page), Some(page));
                    }
                    (None, None) => assert_eq!(policy.victim(), None),
                }
                assert_eq!(policy.entries() as usize, reference.entries.iter().flatten().count());
            }
            assert!(without_clean > 0 && written > 0, "seed {seed} never came to a cache of dirty entries");
        }
    }
}
