//! Entries of the cached map that are loaded beside those that are asked for: a naive model of the cache agrees after each request,
//! whatever the policy; sequential reads have the hit ratio that follows from their sizes; data are never wrong.
//!
//! Translation pages have eight entries. The drives of the model never clean, so that nothing but requests changes the cache; those of
//! the conformance tests (`dftl.rs`) clean with every policy.

use crate::common::*;
use flashwright_block::{RequestKind, Rng, Seed, chance};
use flashwright_ftl::policies::map_cache::MapCacheContext;
use flashwright_ftl::policies::map_prefetch::{MakeMapPrefetch, Miss, PrefetchEntries};
use flashwright_ftl::{Cause, Ftl, MappingCache, OpKind};
use flashwright_ssd::{Policies, Ssd};
use std::collections::BTreeSet;

/// Entries of a translation page.
const OF_PAGE: u32 = 8;

/// A drive of so many logical pages.
fn drive(logical: u32, entries: u32, blocks: u32, more: &[String]) -> Vec<String> {
    let own = [
        "geometry.page-size=\"512 B\"".to_owned(),
        format!("capacity.logical=\"{} B\"", u64::from(logical) * 512),
        "ftl.scheme=dftl".to_owned(),
        "ftl.entry-bytes=64".to_owned(),
        "ftl.dftl.replacement=lru".to_owned(),
        format!("ftl.dftl.cmt-entries={entries}"),
        "timing.model=none".to_owned(),
    ];
    [&shape(1, 1, 1, blocks, 8, 0), &own[..], more].concat()
}

/// Loads the whole translation page, or what a function of the miss says.
#[derive(Clone, Copy, Debug)]
struct Own(fn(&Miss) -> Result<(i64, i64), String>);

impl MakeMapPrefetch for Own {
    fn name(&self) -> &'static str {
        "own"
    }
    fn make(&self, context: MapCacheContext, _: Rng) -> Box<dyn PrefetchEntries> {
        assert_eq!(context.entries_per_page, OF_PAGE);
        Box::new(*self)
    }
}

impl PrefetchEntries for Own {
    fn prefetch(&mut self, miss: &Miss) -> Result<(i64, i64), String> {
        (self.0)(miss)
    }
    fn page_came(&mut self, _: u32) -> Result<(), String> {
        Ok(())
    }
    fn page_left(&mut self, _: u32) -> Result<(), String> {
        Ok(())
    }
    fn again(&self) -> Box<dyn PrefetchEntries> {
        Box::new(*self)
    }
}

fn own(answer: fn(&Miss) -> Result<(i64, i64), String>) -> Policies {
    let mut policies = Policies::default();
    policies.ftl.map_prefetch = Some(Box::new(Own(answer)));
    policies
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Loads {
    Nothing,
    Request,
    Selective { with_request: bool },
    Page,
}

/// An entry of the model.
#[derive(Clone, Copy, Debug)]
struct Entry {
    lpn: u32,
    dirty: bool,
    unasked: bool,
}

/// The cache in a list, the entry used longest ago first; every question looks through all of it.
struct Model {
    loads: Loads,
    any: bool,
    batch: bool,
    shared: bool,
    capacity: usize,
    logical: u32,
    entries: Vec<Entry>,
    mapped: BTreeSet<u32>,
    threshold: i32,
    change: i32,
    on: bool,
    counts: MappingCache,
    reads: u64,
    programs: u64,
}

/// What has left at a miss: the page of the first entry, whether one was written, whether that read serves the load.
#[derive(Default)]
struct Gone(Option<u32>, bool, bool);

impl Model {
    fn at(&self, lpn: u32) -> Option<usize> {
        self.entries.iter().position(|entry| entry.lpn == lpn)
    }

    fn pages(&self) -> i32 {
        let pages: BTreeSet<u32> = self.entries.iter().map(|entry| entry.lpn / OF_PAGE).collect();
        i32::try_from(pages.len()).unwrap()
    }

    /// The counter of selective prefetching, after a step in which the number of translation pages was `before`.
    fn count(&mut self, before: i32) {
        self.change += self.pages() - before;
        if self.change == self.threshold || self.change == -self.threshold {
            self.on = self.change < 0;
            self.change = 0;
        }
    }

    fn evict(&mut self, wanted: u32, gone: &mut Gone) {
        let before = self.pages();
        let victim = self.entries.remove(0);
        let page = victim.lpn / OF_PAGE;
        gone.0 = gone.0.or(Some(page));
        self.counts.evictions += 1;
        if victim.dirty {
            self.counts.dirty_evictions += 1;
            (self.reads, self.programs) = (self.reads + 1, self.programs + 1);
            (gone.1, gone.2) = (true, self.shared && page == wanted);
            for entry in self.entries.iter_mut().filter(|entry| self.batch && entry.lpn / OF_PAGE == page) {
                entry.dirty = false;
            }
        }
        self.count(before);
    }

    fn enter(&mut self, lpn: u32, unasked: bool) {
        let before = self.pages();
        assert_eq!(self.at(lpn), None);
        self.entries.push(Entry { lpn, dirty: false, unasked });
        self.count(before);
    }

    /// The logical pages whose entries the policy wants beside a missing one, the nearest after it first, then those before it.
    fn around(&self, lpn: u32, rest: u32) -> Vec<u32> {
        let first = lpn / OF_PAGE * OF_PAGE;
        let end = (first + OF_PAGE).min(self.logical);
        let row = (first..lpn).rev().take_while(|lpn| self.at(*lpn).is_some()).count();
        let row = if self.on { u32::try_from(row).unwrap() } else { 0 };
        let after = match self.loads {
            Loads::Nothing => 0,
            Loads::Request => rest,
            Loads::Selective { with_request } => row.max(if with_request { rest } else { 0 }),
            Loads::Page => OF_PAGE,
        };
        let before = if self.loads == Loads::Page { first..lpn } else { 0..0 };
        (lpn + 1..end.min(lpn + 1 + after)).chain(before.rev()).collect()
    }

    fn look_up(&mut self, lpn: u32, rest: u32) {
        self.counts.lookups += 1;
        if let Some(at) = self.at(lpn) {
            let entry = self.entries.remove(at);
            self.counts.hits += 1;
            self.counts.prefetched_used += u64::from(entry.unasked);
            self.entries.push(Entry { unasked: false, ..entry });
            return;
        }
        let (page, wanted) = (lpn / OF_PAGE, self.around(lpn, rest));
        let mut gone = Gone::default();
        while self.entries.len() >= self.capacity {
            self.evict(page, &mut gone);
        }
        let missing =
            |model: &Self| -> Vec<u32> { wanted.iter().copied().filter(|lpn| model.at(*lpn).is_none()).collect() };
        let needed = (missing(self).len() + 1).min(self.capacity);
        while self.capacity - self.entries.len() < needed {
            let Entry { lpn, dirty, .. } = self.entries[0];
            if !self.any && (gone.0.is_some_and(|page| page != lpn / OF_PAGE) || gone.1 && dirty) {
                break;
            }
            self.evict(page, &mut gone);
        }
        self.reads += u64::from(!gone.2);
        let room = self.capacity - self.entries.len() - 1;
        let others: Vec<u32> = missing(self).into_iter().take(room).collect();
        self.counts.prefetched += others.len() as u64;
        others.into_iter().rev().for_each(|other| self.enter(other, true));
        self.enter(lpn, false);
    }

    fn request(&mut self, kind: RequestKind, first: u32, count: u32) {
        for lpn in first..first + count {
            self.look_up(lpn, first + count - 1 - lpn);
            let was_mapped = self.mapped.contains(&lpn);
            match kind {
                RequestKind::Write => self.mapped.insert(lpn),
                RequestKind::Trim => self.mapped.remove(&lpn),
                _ => continue,
            };
            if kind == RequestKind::Write || was_mapped {
                self.entries.last_mut().unwrap().dirty = true;
            }
        }
    }
}

#[test]
fn the_naive_model_counts_the_same() {
    let mut prefetched = [0; 5];
    for seed in 0..60 {
        let mut rng = rng(seed);
        let (logical, entries) = (40 + draw(&mut rng, 60), 1 + draw(&mut rng, 40));
        let kinds = [
            Loads::Nothing,
            Loads::Request,
            Loads::Selective { with_request: false },
            Loads::Selective { with_request: true },
            Loads::Page,
        ];
        let which = usize::try_from(seed).unwrap() % kinds.len();
        let loads = kinds[which];
        let (any, batch, shared) = (draw(&mut rng, 2) > 0, draw(&mut rng, 3) > 0, draw(&mut rng, 3) == 0);
        let threshold = 1 + draw(&mut rng, 4);
        let name = match loads {
            Loads::Nothing | Loads::Page => "none",
            Loads::Request => "request",
            Loads::Selective { .. } => "selective",
        };
        let more = [
            format!("ftl.dftl.prefetch={name}"),
            format!("ftl.dftl.prefetch-evicts={}", if any { "any" } else { "one-page" }),
            format!("ftl.dftl.batch-on-evict={batch}"),
            format!("ftl.dftl.same-page-read={}", if shared { "shared" } else { "separate" }),
            format!("ftl.dftl.selective.threshold={threshold}"),
            format!("ftl.dftl.selective.with-request={}", loads == Loads::Selective { with_request: true }),
        ];
        let page = |miss: &Miss| Ok((i64::from(miss.after), i64::from(miss.before)));
        let policies = if loads == Loads::Page { own(page) } else { Policies::default() };
        let settings = config(&drive(logical, entries, 1500, &more));
        let mut ssd = Ssd::with_policies(&settings, Seed(seed), true, &policies).unwrap();
        let mut model = Model {
            loads,
            any,
            batch,
            shared,
            capacity: entries as usize,
            logical,
            entries: Vec::new(),
            mapped: BTreeSet::new(),
            threshold: i32::try_from(threshold).unwrap(),
            change: 0,
            on: false,
            counts: MappingCache::default(),
            reads: 0,
            programs: 0,
        };
        let (mut at, sequential) = (0, [0.0, 0.5, 0.95][usize::try_from(seed % 3).unwrap()]);
        for step in 0..400 {
            let first = if chance(&mut rng, sequential) { at % logical } else { draw(&mut rng, logical) };
            let count = 1 + draw(&mut rng, (logical - first).min(12));
            let kind = *pick(&mut rng, &[RequestKind::Read, RequestKind::Read, RequestKind::Write, RequestKind::Trim]);
            let request = pages(&ssd, kind, first, count);
            perform(&mut ssd, request).unwrap();
            model.request(kind, first, count);
            let label = format!("seed {seed}, step {step}, {more:?}: {kind:?} {first}+{count}");
            assert_eq!(ssd.figures().mapping_cache.unwrap(), model.counts, "{label}");
            let done = |kind| ssd.flash().counters().get(kind, Cause::Translation);
            assert_eq!((done(OpKind::Read), done(OpKind::Program)), (model.reads, model.programs), "{label}");
            at = first + count;
            if step % 40 == 0 {
                assert_clean(&ssd, &label);
            }
        }
        assert_eq!(ssd.figures().collections, 0, "the drive never cleans");
        assert_clean(&ssd, &format!("seed {seed}"));
        prefetched[which] += model.counts.prefetched;
    }
    assert_eq!(prefetched[0], 0);
    assert!(prefetched[1..].iter().all(|count| *count > 100), "{prefetched:?}");
}

/// Each request looks up each translation page that it touches once: so many misses of its pages.
#[test]
fn a_sequential_read_has_the_hit_ratio_of_its_requests() {
    let logical = 960;
    for (pages_of_request, entries) in [(1, 24), (2, 24), (4, 24), (8, 24), (12, 40), (5, 64), (20, 32)] {
        let more = ["ftl.dftl.prefetch=request".to_owned(), "ftl.dftl.prefetch-evicts=any".to_owned()];
        let mut ssd = Ssd::new(&config(&drive(logical, entries, 400, &more)), Seed(1), true).unwrap();
        fill(&mut ssd, logical);
        let before = ssd.figures().mapping_cache.unwrap();
        let mut misses = 0;
        for first in (0..logical).step_by(pages_of_request as usize) {
            let request = pages(&ssd, RequestKind::Read, first, pages_of_request);
            perform(&mut ssd, request).unwrap();
            misses += u64::from((first + pages_of_request - 1) / OF_PAGE - first / OF_PAGE + 1);
        }
        let cache = ssd.figures().mapping_cache.unwrap();
        let label = format!("{pages_of_request} pages, {entries} entries");
        assert_eq!(cache.lookups - before.lookups, u64::from(logical), "{label}");
        assert_eq!(cache.hits - before.hits, u64::from(logical) - misses, "{label}");
        // All that was loaded ahead was used.
        assert_eq!(cache.prefetched, cache.prefetched_used, "{label}");
        assert_clean(&ssd, &label);
    }
}

/// A dirty entry stays as it is when its translation page is loaded around it; it is not loaded a second time either.
#[test]
fn a_newer_entry_is_never_replaced_by_its_translation_page() {
    let page = |miss: &Miss| Ok((i64::from(miss.after), i64::from(miss.before)));
    let mut ssd = Ssd::with_policies(&config(&drive(64, 8, 400, &[])), Seed(1), true, &own(page)).unwrap();
    let mut ask = |kind, first| {
        let request = pages(&ssd, kind, first, 1);
        perform(&mut ssd, request).unwrap();
        let cache = ssd.figures().mapping_cache.unwrap();
        (ssd.scheme().lookup(flashwright_nand::Lpn(3), ssd.flash()).unwrap().0, cache.prefetched)
    };
    let (old, 7) = ask(RequestKind::Write, 3) else { panic!("the whole page comes in") };
    // Page 8 to 15 take all places: entry 3 is written. It comes back with 2, clean.
    assert_eq!(ask(RequestKind::Read, 8), (old, 14));
    assert_eq!(ask(RequestKind::Read, 2), (old, 21));
    let (new, 21) = ask(RequestKind::Write, 3) else { panic!("a hit loads nothing") };
    assert_ne!(old, new);
    // 9 leaves nothing of the page but 3 dirty: by `one-page` one write, and all come in; then 2 asks for its page again.
    for lpn in [0, 1, 4, 5, 6, 7] {
        assert_eq!(ask(RequestKind::Read, lpn), (new, 21));
    }
    assert_eq!(ask(RequestKind::Read, 3).0, new);
    assert_clean(&ssd, "the end");
}

/// The same with cleaning, every policy and small caches, by stamps: nothing that is read is old.
#[test]
fn what_is_read_is_what_was_written() {
    for seed in 0..30 {
        let mut rng = rng(500 + seed);
        let name = *pick(&mut rng, &["request", "selective"]);
        let more = [
            format!("ftl.dftl.prefetch={name}"),
            format!("ftl.dftl.prefetch-evicts={}", pick(&mut rng, &["any", "one-page"])),
            "ftl.dftl.selective.threshold=1".to_owned(),
            format!("ftl.dftl.batch-on-evict={}", pick(&mut rng, &[true, false])),
        ];
        let entries = 2 + draw(&mut rng, 20);
        let mut ssd = Ssd::new(&config(&drive(120, entries, 36, &more)), Seed(seed), true).unwrap();
        let mut written = vec![false; 120];
        for step in 0..1500 {
            let first = draw(&mut rng, 120);
            let count = 1 + draw(&mut rng, (120 - first).min(16));
            let kind = *pick(&mut rng, &[RequestKind::Read, RequestKind::Write, RequestKind::Write]);
            if kind == RequestKind::Write {
                written[first as usize..(first + count) as usize].fill(true);
            }
            let request = pages(&ssd, kind, first, count);
            perform(&mut ssd, request).unwrap_or_else(|error| panic!("seed {seed}, step {step}: {error}"));
            if step % 50 == 0 {
                assert_clean(&ssd, &format!("seed {seed}, step {step}"));
            }
        }
        assert!(ssd.figures().collections > 20, "seed {seed}");
        let mapped: Vec<bool> = map(&ssd).iter().map(Option::is_some).collect();
        assert_eq!(mapped, written, "seed {seed}");
        assert_clean(&ssd, &format!("seed {seed}"));
    }
}

/// Under the parallel engine a read of data waits for the read that brought its entry, whichever page of the request caused it.
#[test]
fn data_wait_for_the_read_that_brought_their_entry() {
    let settings = [
        shape(2, 1, 1, 24, 4, 64),
        ["ftl.scheme=dftl", "ftl.dftl.cmt-entries=2", "ftl.dftl.prefetch=request", "timing.bus-rate=none"]
            .map(str::to_owned)
            .to_vec(),
        vec!["ftl.dftl.replacement=lru".to_owned()],
    ];
    let mut ssd = Ssd::new(&config(&settings.concat()), Seed(1), true).unwrap();
    // The table is one page on die 0; page 0 goes there too, and page 1 to die 1. Page 0 is dropped.
    fill(&mut ssd, 2);
    for (kind, first, count) in [(RequestKind::Trim, 0, 1), (RequestKind::Read, 10, 2), (RequestKind::Read, 20, 2)] {
        let request = pages(&ssd, kind, first, count);
        perform(&mut ssd, request).unwrap();
    }
    let die = |ssd: &Ssd, ppn| ssd.flash().geometry().die_of(ppn).0;
    assert_eq!(die(&ssd, ssd.scheme().lookup(flashwright_nand::Lpn(1), ssd.flash()).unwrap()), 1);
    let before = ssd.figures().mapping_cache.unwrap();
    let request = pages(&ssd, RequestKind::Read, 0, 2);
    let done = perform(&mut ssd, request).unwrap();
    let after = ssd.figures().mapping_cache.unwrap();
    assert_eq!((after.hits - before.hits, after.dirty_evictions), (1, before.dirty_evictions));
    // The table, 50 us on one die; then page 1, 50 us on the other. Page 0 holds nothing.
    assert_eq!(done[0].end.0 - done[0].start.0, 100_000);
}

#[test]
fn answers_that_cannot_be_end_the_run_in_a_line() {
    let refused = |policies: &Policies| {
        let mut ssd = Ssd::with_policies(&config(&drive(60, 8, 400, &[])), Seed(1), true, policies).unwrap();
        let request = pages(&ssd, RequestKind::Read, 57, 2);
        let said = perform(&mut ssd, request).unwrap_err().to_string();
        assert_clean(&ssd, "a drive whose policy is at fault");
        said
    };
    // Logical page 57 is the second entry of the last translation page, which has four.
    for (policies, said) in [
        (own(|_| Ok((3, 0))), "logical page 57: prefetch answered 3 entries after it, expected 0 to 2"),
        (own(|_| Ok((-1, 0))), "prefetch answered -1 entries after it, expected 0 to 2"),
        (own(|_| Ok((2, 2))), "prefetch answered 2 entries before it, expected 0 to 1"),
        (own(|_| Err("out of ideas".to_owned())), "own: out of ideas"),
    ] {
        let found = refused(&policies);
        assert!(found.contains(said) && found.lines().count() == 1, "{found}");
    }
    let page = config(&[drive(60, 8, 400, &[]), vec!["ftl.scheme=page".to_owned()]].concat());
    let found = Ssd::with_policies(&page, Seed(1), false, &own(|_| Ok((0, 0)))).err().unwrap().to_string();
    let said = "ftl.scheme: found \"page\", which asks no prefetch policy, with the policy own; expected dftl";
    assert!(found.contains(said), "{found}");
}
