//! Block buffers and CFLRU compared with reference models that recompute everything, like the papers' own listings.

#![allow(clippy::unwrap_used)] // helpers of tests count as library code

use crate::common::*;
use flashwright_block::{Request, RequestKind, Seed};
use flashwright_ftl::Ftl;
use flashwright_nand::Lpn;
use flashwright_ram::{BlockUpdates, Manager};
use flashwright_ssd::Ssd;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Pages of a block.
const BLOCK: u32 = 4;
/// Logical pages of the drive.
const LOGICAL: u32 = 64;

/// A page-mapped drive with this many pages of RAM before it.
fn drive(ram_pages: u32, settings: &[String]) -> Ssd {
    let more = vec![format!("ram.size=\"{} B\"", ram_pages * 4096)];
    let config = config(&[one_plane(32, BLOCK, LOGICAL), more, settings.to_vec()].concat());
    Ssd::new(&config, Seed(1), true).unwrap()
}

fn held(ssd: &Ssd) -> BTreeSet<u32> {
    (0..ssd.logical_pages()).filter(|lpn| ssd.ram().unwrap().is_dirty(Lpn(*lpn)).is_some()).collect()
}

fn blocks(ssd: &Ssd) -> Vec<BlockUpdates> {
    match ssd.ram().unwrap().manager() {
        Manager::PudLru(manager) => manager.blocks(),
        _ => panic!("the drive has another manager"),
    }
}

fn figure(ssd: &Ssd, name: &str) -> f64 {
    let figures = ssd.ram_figures().unwrap().extra;
    figures.iter().find(|(found, _)| found == name).unwrap_or_else(|| panic!("no figure {name}")).1
}

/// One host operation on one page.
#[derive(Clone, Copy, Debug)]
enum Act {
    Write(u32),
    Read(u32),
    Trim(u32),
    Flush,
}

impl Act {
    fn perform(self, ssd: &mut Ssd) {
        let request = match self {
            Self::Write(lpn) => pages(ssd, RequestKind::Write, lpn, 1),
            Self::Read(lpn) => pages(ssd, RequestKind::Read, lpn, 1),
            Self::Trim(lpn) => pages(ssd, RequestKind::Trim, lpn, 1),
            Self::Flush => sectors(RequestKind::Flush, 0, 0),
        };
        perform(ssd, request).unwrap();
    }
}

/// Streams over a small space, half of it more often, and runs in ascending order.
fn acts(reads: u32, trims: u32, flushes: u32) -> impl Strategy<Value = Vec<Act>> {
    let page = || prop_oneof![0..LOGICAL, 0..LOGICAL / 4];
    let one = prop_oneof![
        8 => page().prop_map(|lpn| vec![Act::Write(lpn)]),
        4 => (page(), 2..9u32).prop_map(|(first, count)| (first..(first + count).min(LOGICAL)).map(Act::Write).collect()),
        reads => page().prop_map(|lpn| vec![Act::Read(lpn)]),
        trims => page().prop_map(|lpn| vec![Act::Trim(lpn)]),
        flushes => Just(vec![Act::Flush]),
    ];
    prop::collection::vec(one, 1..120).prop_map(|parts| parts.concat())
}

/// A reference model: which pages are held.
trait Reference {
    fn act(&mut self, act: Act);
    fn held(&self) -> BTreeSet<u32>;
}

/// Plays a stream on a drive and on its reference model; after each step both hold the same pages.
fn compare(ssd: &mut Ssd, reference: &mut dyn Reference, acts: &[Act]) {
    for (step, act) in acts.iter().enumerate() {
        act.perform(ssd);
        reference.act(*act);
        assert_eq!(held(ssd), reference.held(), "step {step}, {act:?}");
        assert_clean(ssd, &format!("step {step}"));
    }
}

/// CFLRU as one list, oldest first, searched for each victim.
struct CflruReference {
    list: Vec<(u32, bool)>,
    on_flash: BTreeSet<u32>,
    capacity: usize,
    window: usize,
}

impl CflruReference {
    fn new(capacity: usize, window: usize) -> Self {
        Self { list: Vec::new(), on_flash: BTreeSet::new(), capacity, window }
    }
    fn take(&mut self, lpn: u32) -> Option<bool> {
        let at = self.list.iter().position(|(held, _)| *held == lpn)?;
        Some(self.list.remove(at).1)
    }
    fn make_room(&mut self) {
        if self.list.len() == self.capacity {
            let clean = self.list[..self.window].iter().position(|(_, dirty)| !dirty);
            let (lpn, dirty) = self.list.remove(clean.unwrap_or(0));
            if dirty {
                self.on_flash.insert(lpn);
            }
        }
    }
}

impl Reference for CflruReference {
    fn act(&mut self, act: Act) {
        match act {
            Act::Write(lpn) => {
                if self.take(lpn).is_none() {
                    self.make_room();
                }
                self.list.push((lpn, true));
            }
            Act::Read(lpn) => {
                if let Some(dirty) = self.take(lpn) {
                    self.list.push((lpn, dirty));
                } else if self.on_flash.contains(&lpn) {
                    self.make_room();
                    self.list.push((lpn, false));
                }
            }
            Act::Trim(lpn) => {
                self.take(lpn);
                self.on_flash.remove(&lpn);
            }
            Act::Flush => {
                for (lpn, dirty) in &mut self.list {
                    *dirty = false;
                    self.on_flash.insert(*lpn);
                }
            }
        }
    }
    fn held(&self) -> BTreeSet<u32> {
        self.list.iter().map(|(lpn, _)| *lpn).collect()
    }
}

/// FAB as a list of groups, least recently used first.
#[derive(Default)]
struct FabReference {
    groups: Vec<BTreeMap<u32, bool>>,
    on_flash: BTreeSet<u32>,
    capacity: usize,
}

impl FabReference {
    fn make_room(&mut self) {
        if self.held().len() < self.capacity {
            return;
        }
        let most = self.groups.iter().map(BTreeMap::len).max().unwrap();
        let at = self.groups.iter().position(|group| group.len() == most).unwrap();
        let left = self.groups.remove(at);
        self.on_flash.extend(left.into_iter().filter(|(_, dirty)| *dirty).map(|(lpn, _)| lpn));
    }
    /// The group of a page, taken off its place.
    fn take(&mut self, lpn: u32) -> BTreeMap<u32, bool> {
        let at = self.groups.iter().position(|group| group.keys().any(|held| held / BLOCK == lpn / BLOCK));
        at.map(|at| self.groups.remove(at)).unwrap_or_default()
    }
}

impl Reference for FabReference {
    fn act(&mut self, act: Act) {
        let (lpn, held) = match act {
            Act::Write(lpn) | Act::Read(lpn) | Act::Trim(lpn) => (lpn, self.held().contains(&lpn)),
            Act::Flush => {
                for (lpn, dirty) in self.groups.iter_mut().flatten() {
                    *dirty = false;
                    self.on_flash.insert(*lpn);
                }
                return;
            }
        };
        match act {
            Act::Trim(_) => {
                self.on_flash.remove(&lpn);
                if !held {
                    return;
                }
            }
            Act::Read(_) if !held && !self.on_flash.contains(&lpn) => return,
            _ if !held => self.make_room(),
            _ => {}
        }
        let mut group = self.take(lpn);
        match act {
            Act::Write(_) => drop(group.insert(lpn, true)),
            Act::Trim(_) => drop(group.remove(&lpn)),
            _ => drop(group.entry(lpn).or_insert(false)),
        }
        if !group.is_empty() {
            self.groups.push(group);
        }
    }
    fn held(&self) -> BTreeSet<u32> {
        self.groups.iter().flat_map(BTreeMap::keys).copied().collect()
    }
}

/// BPLRU as a list of blocks, least recently written first, and the whole history of writes for compensation.
struct BplruReference {
    groups: Vec<BTreeSet<u32>>,
    history: Vec<u32>,
    /// The position in the history at which the block of a group came in.
    since: BTreeMap<u32, usize>,
    capacity: usize,
    compensation: &'static str,
}

impl Reference for BplruReference {
    fn act(&mut self, act: Act) {
        match act {
            Act::Write(lpn) => {
                if !self.held().contains(&lpn) && self.held().len() == self.capacity {
                    self.groups.remove(0);
                }
                let block = lpn / BLOCK;
                let at = self.groups.iter().position(|group| group.iter().any(|held| held / BLOCK == block));
                let mut group = at.map(|at| self.groups.remove(at)).unwrap_or_default();
                if group.is_empty() {
                    self.since.insert(block, self.history.len());
                }
                group.insert(lpn);
                self.history.push(lpn);
                let since = &self.history[self.since[&block]..];
                let seen: Vec<u32> = match self.compensation {
                    "uninterrupted" => since.to_vec(),
                    "per-block" => since.iter().copied().filter(|held| held / BLOCK == block).collect(),
                    _ => Vec::new(),
                };
                let whole: Vec<u32> = (block * BLOCK..(block + 1) * BLOCK).collect();
                if seen.ends_with(&whole) && group.len() == BLOCK as usize {
                    self.groups.insert(0, group);
                } else {
                    self.groups.push(group);
                }
            }
            Act::Read(_) => {}
            Act::Trim(lpn) => {
                self.groups.iter_mut().for_each(|group| _ = group.remove(&lpn));
                self.groups.retain(|group| !group.is_empty());
            }
            Act::Flush => self.groups.clear(),
        }
    }
    fn held(&self) -> BTreeSet<u32> {
        self.groups.iter().flatten().copied().collect()
    }
}

/// A fraction, compared by cross-multiplication.
#[derive(Clone, Copy, Debug)]
struct Fraction(i128, i128);

impl Fraction {
    fn minus(self, other: Self) -> Self {
        Self(self.0 * other.1 - other.0 * self.1, self.1 * other.1)
    }
    fn plus(self, other: Self) -> Self {
        Self(self.0 * other.1 + other.0 * self.1, self.1 * other.1)
    }
    fn times(self, other: Self) -> Self {
        Self(self.0 * other.0, self.1 * other.1)
    }
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        (self.0 * other.1).cmp(&(other.0 * self.1))
    }
    fn value(self) -> f64 {
        self.0 as f64 / self.1 as f64
    }
}

/// PUD-LRU as in Algorithm 1 of Hu 2012: every victim computes all PUDs from the positions of all updates.
struct PudReference {
    /// By block: pages, and the positions of all updates since it came in.
    blocks: BTreeMap<u32, (BTreeSet<u32>, Vec<i128>)>,
    position: i128,
    capacity: usize,
    threshold: Fraction,
    /// Of the average distance, in thousandths.
    weight: i128,
    formula: &'static str,
    recency: &'static str,
    fug: &'static str,
    destages: u64,
}

impl PudReference {
    fn new(capacity: usize, threshold: Fraction, weight: i128, [formula, recency, fug]: [&'static str; 3]) -> Self {
        Self { blocks: BTreeMap::new(), position: 0, capacity, threshold, weight, formula, recency, fug, destages: 0 }
    }

    /// By block: PUD, and whether it is in FUG.
    fn puds(&self) -> BTreeMap<u32, (Fraction, bool)> {
        let pud = |positions: &[i128]| {
            let updates = positions.len() as i128;
            let distances: i128 = positions.windows(2).map(|pair| pair[1] - pair[0] - 1).sum();
            if self.formula == "alg1" {
                return Fraction(self.position + distances, updates);
            }
            let average = if updates > 1 { Fraction(distances, updates - 1) } else { Fraction(0, 1) };
            let latest = if self.recency == "completed" { self.position - 1 } else { self.position };
            let recency = Fraction(latest - positions.last().unwrap(), 1);
            let share = |thousandths| Fraction(thousandths, 1000);
            average.times(share(self.weight)).plus(recency.times(share(1000 - self.weight)))
        };
        let puds: BTreeMap<u32, Fraction> = self.blocks.iter().map(|(b, (_, at))| (*b, pud(at))).collect();
        let Some(least) = puds.values().min_by(|a, b| a.compare(b)).copied() else { return BTreeMap::new() };
        let most = puds.values().max_by(|a, b| a.compare(b)).copied().unwrap();
        let mut border = self.threshold.times(most.minus(least));
        if self.fug == "above-min" {
            border = border.plus(least);
        }
        puds.into_iter().map(|(block, pud)| (block, (pud, pud.compare(&border).is_lt()))).collect()
    }

    fn victim(&self) -> u32 {
        let puds = self.puds();
        let infrequent = self.blocks.iter().filter(|(block, _)| !puds[*block].1);
        let by_rank = |(a, (pages, at)): &(&u32, &(BTreeSet<u32>, Vec<i128>)),
                       (b, (other_pages, other_at)): &(&u32, &(BTreeSet<u32>, Vec<i128>))| {
            let pud = puds[*a].0.compare(&puds[*b].0);
            pages.len().cmp(&other_pages.len()).then(pud).then(other_at.last().cmp(&at.last()))
        };
        *infrequent.max_by(by_rank).unwrap().0
    }
}

impl Reference for PudReference {
    fn act(&mut self, act: Act) {
        match act {
            Act::Write(lpn) => {
                let held = self.held();
                if !held.contains(&lpn) && held.len() == self.capacity {
                    self.blocks.remove(&self.victim());
                    self.destages += 1;
                }
                let (pages, positions) = self.blocks.entry(lpn / BLOCK).or_default();
                pages.insert(lpn);
                positions.push(self.position);
                self.position += 1;
            }
            Act::Read(_) => {}
            Act::Trim(lpn) => {
                if let Some((pages, _)) = self.blocks.get_mut(&(lpn / BLOCK)) {
                    pages.remove(&lpn);
                    if pages.is_empty() {
                        self.blocks.remove(&(lpn / BLOCK));
                    }
                }
            }
            Act::Flush => self.blocks.clear(),
        }
    }
    fn held(&self) -> BTreeSet<u32> {
        self.blocks.values().flat_map(|(pages, _)| pages).copied().collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn cflru_agrees_with_its_reference_model(acts in acts(8, 1, 1), capacity in 1..24u32, percent in 0..=100u32) {
        let window = (f64::from(capacity) * f64::from(percent) / 100.0).round().max(1.0) as usize;
        let settings = ["ram.manager=cflru".to_owned(), format!("ram.cflru.window={}", f64::from(percent) / 100.0)];
        compare(&mut drive(capacity, &settings), &mut CflruReference::new(capacity as usize, window), &acts);
    }

    #[test]
    fn fab_agrees_with_its_reference_model(acts in acts(8, 1, 1), capacity in BLOCK..24) {
        let mut reference = FabReference { capacity: capacity as usize, ..FabReference::default() };
        compare(&mut drive(capacity, &["ram.manager=fab".to_owned()]), &mut reference, &acts);
    }

    #[test]
    fn bplru_agrees_with_its_reference_model(
        acts in acts(2, 1, 1),
        capacity in BLOCK..24,
        compensation in prop::sample::select(vec!["uninterrupted", "per-block", "off"]),
        padding: bool,
    ) {
        let settings = [
            "ram.manager=bplru".to_owned(),
            format!("ram.bplru.compensation={compensation}"),
            format!("ram.bplru.padding={padding}"),
        ];
        let (groups, history, since) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut reference = BplruReference { groups, history, since, capacity: capacity as usize, compensation };
        compare(&mut drive(capacity, &settings), &mut reference, &acts);
    }

    /// Victims, all PUDs, both groups, and the counters behind them.
    #[test]
    fn pud_lru_is_algorithm_1(
        acts in acts(1, 1, 1),
        capacity in BLOCK..32,
        thousandths in prop::sample::select(vec![0, 1, 10, 100, 250, 500, 900, 1000]),
        weight in prop::sample::select(vec![500, 500, 0, 250, 667, 999]),
        formula in prop::sample::select(vec!["average", "average", "average", "alg1"]),
        recency in prop::sample::select(vec!["completed", "current"]),
        fug in prop::sample::select(vec!["range", "above-min"]),
    ) {
        let settings = [
            "ram.manager=pud-lru".to_owned(),
            format!("ram.pud-lru.threshold={}", f64::from(thousandths) / 1000.0),
            format!("ram.pud-lru.distance-weight={}", f64::from(weight) / 1000.0),
            format!("ram.pud-lru.pud={formula}"),
            format!("ram.pud-lru.recency={recency}"),
            format!("ram.pud-lru.fug={fug}"),
        ];
        let mut ssd = drive(capacity, &settings);
        let threshold = Fraction(i128::from(thousandths), 1000);
        let mut reference = PudReference::new(capacity as usize, threshold, i128::from(weight), [formula, recency, fug]);
        for (step, act) in acts.iter().enumerate() {
            let before = reference.destages;
            act.perform(&mut ssd);
            reference.act(*act);
            prop_assert_eq!(held(&ssd), reference.held(), "step {}, {:?}, {} destages", step, act, before);
            let puds = reference.puds();
            let found = blocks(&ssd);
            prop_assert_eq!(found.len(), reference.blocks.len());
            for block in found {
                let ((pages, positions), (pud, frequent)) = (&reference.blocks[&block.block], puds[&block.block]);
                let distances: i128 = positions.windows(2).map(|pair| pair[1] - pair[0] - 1).sum();
                let expected = BlockUpdates {
                    block: block.block,
                    pages: pages.len() as u32,
                    frequency: positions.len() as u32,
                    last_update: *positions.last().unwrap() as u64,
                    update_distances: distances as u64,
                    pud: block.pud,
                    frequent,
                };
                prop_assert_eq!(block, expected, "step {}", step);
                prop_assert!((block.pud - pud.value()).abs() < 1e-9, "step {}: {:?}, expected {:?}", step, block, pud);
            }
            assert_clean(&ssd, &format!("step {step}"));
        }
    }
}

/// Section 3.4 of the CFLRU contract: a window of one page is LRU; one of all pages never writes while a clean page is
/// held; without reads it is LRU whatever the window.
#[test]
fn limits_of_the_clean_first_window() {
    let play = |manager: &str, window: f64, reads: bool| {
        let settings = [format!("ram.manager={manager}"), format!("ram.cflru.window={window}")];
        let mut ssd = drive(12, &settings);
        let mut rng = Seed(7).stream("limits");
        let mut trips = Vec::new();
        for _ in 0..3000 {
            let lpn = flashwright_block::below(&mut rng, LOGICAL as u64) as u32;
            let read = flashwright_block::chance(&mut rng, 0.5) && reads;
            let clean = held(&ssd).iter().any(|lpn| ssd.ram().unwrap().is_dirty(Lpn(*lpn)) == Some(false));
            let before = ssd.ram_figures().unwrap().destages;
            let act = if read { Act::Read(lpn) } else { Act::Write(lpn) };
            act.perform(&mut ssd);
            let destaged = ssd.ram_figures().unwrap().destages > before;
            trips.push((held(&ssd), destaged, clean));
        }
        trips
    };
    assert_eq!(play("cflru", 0.0, true), play("lru", 0.0, true), "a window of one page");
    assert_eq!(play("cflru", 0.5, false), play("lru", 0.5, false), "writes only");
    let all = play("cflru", 1.0, true);
    assert!(all.iter().all(|(_, destaged, clean)| !(*destaged && *clean)), "written while a clean page was held");
    assert!(all.iter().any(|(_, destaged, _)| *destaged), "nothing was ever written");
    assert_ne!(all, play("lru", 0.0, true));
}

/// Table 2.3 of Hu 2012: (f, L, UD) of each block after each write, as printed, with the block [1] that rows 10 and 11
/// leave out; and the PUDs, groups and victims that the text names.
#[test]
fn table_2_3_counter_by_counter() {
    let settings = ["ram.manager=pud-lru".to_owned(), "ram.pud-lru.threshold=0.01".to_owned()];
    let mut ssd = drive(6, &settings);
    /// Block, f, L, UD.
    type Counters = (u32, u32, u64, u64);
    let rows: [(u32, &[Counters]); 12] = [
        (0, &[(0, 1, 0, 0)]),
        (4, &[(0, 1, 0, 0), (1, 1, 1, 0)]),
        (1, &[(0, 2, 2, 1), (1, 1, 1, 0)]),
        (8, &[(0, 2, 2, 1), (1, 1, 1, 0), (2, 1, 3, 0)]),
        (2, &[(0, 3, 4, 2), (1, 1, 1, 0), (2, 1, 3, 0)]),
        (12, &[(0, 3, 4, 2), (1, 1, 1, 0), (2, 1, 3, 0), (3, 1, 5, 0)]),
        (3, &[(0, 1, 6, 0), (1, 1, 1, 0), (2, 1, 3, 0), (3, 1, 5, 0)]),
        (4, &[(0, 1, 6, 0), (1, 2, 7, 5), (2, 1, 3, 0), (3, 1, 5, 0)]),
        (0, &[(0, 2, 8, 1), (1, 2, 7, 5), (2, 1, 3, 0), (3, 1, 5, 0)]),
        (16, &[(0, 2, 8, 1), (1, 2, 7, 5), (2, 1, 3, 0), (3, 1, 5, 0), (4, 1, 9, 0)]),
        (1, &[(0, 1, 10, 0), (1, 2, 7, 5), (2, 1, 3, 0), (3, 1, 5, 0), (4, 1, 9, 0)]),
        (17, &[(0, 1, 10, 0), (1, 2, 7, 5), (2, 1, 3, 0), (3, 1, 5, 0), (4, 2, 11, 1)]),
    ];
    for (counter, (page, expected)) in rows.into_iter().enumerate() {
        let groups = |ssd: &Ssd| -> Vec<(u32, f64, bool)> {
            blocks(ssd).iter().map(|block| (block.block, block.pud, block.frequent)).collect()
        };
        match counter {
            6 => assert_eq!(groups(&ssd), [(0, 1.0, false), (1, 2.0, false), (2, 1.0, false), (3, 0.0, true)]),
            10 => assert_eq!(
                groups(&ssd),
                [(0, 1.0, false), (1, 3.5, false), (2, 3.0, false), (3, 2.0, false), (4, 0.0, true)]
            ),
            _ => {}
        }
        Act::Write(page).perform(&mut ssd);
        let found: Vec<_> =
            blocks(&ssd).iter().map(|b| (b.block, b.frequency, b.last_update, b.update_distances)).collect();
        assert_eq!(found, expected, "counter {counter}, write of {page}");
        assert_eq!(
            ssd.ram_figures().unwrap().destages,
            [0, 1, 2][usize::from(counter >= 6) + usize::from(counter >= 10)]
        );
    }
    // Both replacements had one block in FUG; 3 and 4 others.
    assert_eq!([figure(&ssd, "fug_mean_blocks"), figure(&ssd, "iug_mean_blocks")], [1.0, 3.5]);
}

/// Section 2.2.1 of Hu 2012: ABXAXAXBXAXXXXB, each X another block. A has distances 2, 1, 3, B 5, 6.
#[test]
fn the_example_of_section_2_2_1() {
    let mut ssd = drive(16, &["ram.manager=pud-lru".to_owned()]);
    let mut others = 2..;
    for letter in "ABXAXAXBXAXXXXB".chars() {
        let block = match letter {
            'A' => 0,
            'B' => 1,
            _ => others.next().unwrap(),
        };
        Act::Write(block * BLOCK).perform(&mut ssd);
    }
    let found = blocks(&ssd);
    let of = |block: usize| (found[block].frequency, found[block].update_distances, found[block].pud);
    assert_eq!([of(0), of(1)], [(4, 6, 3.5), (3, 11, 2.75)]);
}

/// On a full drive under BAST every padded destage ends as a switch merge, which erases one block and copies nothing.
#[test]
fn padded_destages_are_switch_merges() {
    for manager in ["bplru", "pud-lru"] {
        let settings = [
            one_plane(32, BLOCK, LOGICAL),
            vec![
                "ftl.scheme=bast".to_owned(),
                "ftl.bast.log-blocks=3".to_owned(),
                "geometry.program-order=ascending".to_owned(),
                format!("ram.manager={manager}"),
                "ram.size=\"64 KiB\"".to_owned(),
            ],
        ];
        let mut ssd = Ssd::new(&config(&settings.concat()), Seed(1), true).unwrap();
        let all = Request { fua: true, ..pages(&ssd, RequestKind::Write, 0, LOGICAL) };
        perform(&mut ssd, all).unwrap();
        let filled = ssd.flash().counters().clone();
        let mut rng = Seed(3).stream("pages");
        for _ in 0..3000 {
            let first = flashwright_block::below(&mut rng, LOGICAL as u64) as u32;
            let count = 1 + flashwright_block::below(&mut rng, 3).min(u64::from(LOGICAL - first - 1)) as u32;
            let request = pages(&ssd, RequestKind::Write, first, count);
            perform(&mut ssd, request).unwrap();
        }
        let (figures, ram) = (ssd.figures(), ssd.ram_figures().unwrap());
        let merges = figures.merges.unwrap();
        assert!(ram.destages > 500, "{manager}: {ram:?}");
        assert_eq!([merges.switch, merges.partial, merges.full], [ram.destages, 0, 0], "{manager}");
        let work = ssd.flash().counters().since(&filled);
        assert_eq!(work.total(flashwright_ftl::OpKind::Erase), ram.destages, "{manager}: one erase a destage");
        assert_eq!(work.total(flashwright_ftl::OpKind::Program), ram.pages_destaged + ram.pages_padded, "{manager}");
        assert_eq!(work.total(flashwright_ftl::OpKind::Read), ram.pages_padded, "{manager}");
        assert!((0..LOGICAL).all(|lpn| ssd.scheme().lookup(Lpn(lpn), ssd.flash()).is_some()));
    }
}

/// A few blocks are written all the time while single pages of many others stream past. A large threshold keeps the
/// few; a small one lets each go as soon as it is the fullest. An adaptive threshold finds the large one, wherever it
/// starts, and then does better than half way between both.
#[test]
fn the_threshold_moves_to_where_fewer_blocks_leave() {
    const COLD: u64 = 900;
    let play = |more: &[&str]| {
        let settings = ["ram.manager=pud-lru", "ram.pud-lru.padding=false", "ram.size=\"512 KiB\""];
        let settings: Vec<String> = settings.iter().chain(more).map(|s| (*s).to_owned()).collect();
        let config = config(&[one_plane(300, BLOCK, 1024), settings].concat());
        let mut ssd = Ssd::new(&config, Seed(1), false).unwrap();
        let mut rng = Seed(5).stream("tune");
        for _ in 0..120_000 {
            let hot = flashwright_block::chance(&mut rng, 0.7);
            let lpn = flashwright_block::below(&mut rng, if hot { 32 } else { COLD }) + if hot { 0 } else { 32 };
            Act::Write(lpn as u32).perform(&mut ssd);
        }
        (ssd.ram_figures().unwrap().destages, ssd.ram_figures().unwrap().extra)
    };
    let [large, small] = ["0.1", "0.00001"].map(|t| play(&[&format!("ram.pud-lru.threshold={t}")]).0);
    assert!(large * 5 < small * 4, "the stream tells thresholds apart: {large} and {small}");
    for start in ["0.1", "0.00001"] {
        let (destages, figures) = play(&["ram.pud-lru.adaptive=true", &format!("ram.pud-lru.threshold={start}")]);
        assert!(destages * 2 < large + small, "from {start}: {destages}, {figures:?}, fixed {large} and {small}");
        assert!(figures.iter().any(|(name, moves)| name == "threshold_moves" && (start == "0.1" || *moves > 0.0)));
    }
}

/// RAM below one block, and shares outside 0 to 1, are refused with a line that states what to write.
#[test]
fn unfit_settings_are_refused() {
    let refused = |settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(|s| (*s).to_owned()).collect();
        let config = config(&[one_plane(32, BLOCK, LOGICAL), settings].concat());
        Ssd::new(&config, Seed(1), false).unwrap_err().to_string()
    };
    for manager in ["fab", "bplru", "pud-lru"] {
        let chosen = format!("ram.manager={manager}");
        let text = refused(&[&chosen, "ram.size=\"12 KiB\""]);
        assert!(text.contains("found room for 3 pages") && text.contains("ram.size = \"16384 B\""), "{text}");
        let text = refused(&[&chosen, "ram.size=\"16 KiB\"", "ram.charge-metadata=true"]);
        assert!(text.contains("\"16432 B\" with ram.charge-metadata"), "{text}");
        drive(4, &[chosen]);
    }
}
