//! Policies from outside on whole drives: the same results as their native counterparts, and impossible answers.
//!
//! The policies here are written in Rust for the interface that the border to Python uses. Each one implements the
//! definition with plain scans; its native counterpart is the fast one.

#![allow(clippy::unwrap_used)] // helpers of tests count as library code

use crate::common::*;
use flashwright_block::{IoError, RequestKind, Seed};
use flashwright_ftl::policies::placement::{HostRun, MakePlacement, MovedPages, PlacePages, PlacementContext};
use flashwright_ftl::policies::victim::{Choosing, MakeVictim, PickVictim, SealedBlocks, VictimContext};
use flashwright_ftl::{Ftl, register};
use flashwright_ssd::{BufferRules, ChooseLeaving, Config, HeldGroups, MakeManager, Policies, RamContext, Ssd};

/// The layer that `flashwright new ftl` begins with.
#[path = "../../../python/flashwright/cli/template/src/layer.rs"]
mod layer;

type Pick = fn(&SealedBlocks) -> Result<i64, String>;

#[derive(Clone, Debug)]
struct Victim(Pick);

impl MakeVictim for Victim {
    fn name(&self) -> &'static str {
        "own"
    }
    fn make(&self, _: u32, _: VictimContext) -> Choosing {
        Choosing::Pick(Box::new(self.clone()))
    }
}

impl PickVictim for Victim {
    fn pick(&mut self, blocks: &mut Box<SealedBlocks>) -> Result<i64, String> {
        // As a policy does that reads the tables elsewhere.
        let taken = std::mem::take(blocks);
        let answer = (self.0)(&taken);
        *blocks = taken;
        answer
    }
    fn again(&self) -> Box<dyn PickVictim> {
        Box::new(self.clone())
    }
}

fn best<T: PartialOrd>(blocks: &SealedBlocks, scores: impl Iterator<Item = T>) -> Result<i64, String> {
    let scored = blocks.blocks().iter().zip(scores);
    // The first of equals was sealed first.
    Ok(i64::from(*scored.reduce(|best, other| if other.1 > best.1 { other } else { best }).unwrap().0))
}

fn greedy(blocks: &SealedBlocks) -> Result<i64, String> {
    best(blocks, blocks.valid().map(|valid| -i64::from(valid)))
}

fn fifo(blocks: &SealedBlocks) -> Result<i64, String> {
    Ok(i64::from(blocks.blocks()[0]))
}

#[allow(clippy::cast_precision_loss)] // ages far below 2^53
fn cost_benefit(blocks: &SealedBlocks) -> Result<i64, String> {
    let pages = blocks.pages_per_block;
    let score = |(valid, age): (u32, u64)| match valid {
        0 => f64::INFINITY,
        _ => (u64::from(pages - valid) * age) as f64 / f64::from(valid),
    };
    best(blocks, blocks.valid().zip(blocks.ages()).map(score))
}

/// Pages written within the last 40 host writes are hot.
#[derive(Clone, Debug)]
struct Recent(Vec<Option<u64>>);

impl MakePlacement for Recent {
    fn name(&self) -> &'static str {
        "own"
    }
    fn streams(&self) -> u8 {
        2
    }
    fn make(&self, context: PlacementContext) -> Box<dyn PlacePages> {
        Box::new(Self(vec![None; context.logical_pages as usize]))
    }
}

impl PlacePages for Recent {
    fn host(&mut self, run: &HostRun, streams: &mut Vec<i64>) -> Result<(), String> {
        for lpn in run.first.0..run.first.0 + run.pages {
            let last = self.0[lpn as usize].replace(run.now);
            streams.push(i64::from(last.is_some_and(|last| run.now - last <= 40)));
        }
        Ok(())
    }
    fn moved(&mut self, pages: &MovedPages, streams: &mut Vec<i64>) -> Result<(), String> {
        // One for all, or one for each, as it comes.
        let count = if pages.lpns[0].is_multiple_of(2) { 1 } else { pages.lpns.len() };
        streams.extend(std::iter::repeat_n(0, count));
        Ok(())
    }
    fn again(&self) -> Box<dyn PlacePages> {
        Box::new(self.clone())
    }
}

#[derive(Clone, Debug)]
struct Leaving(BufferRules, fn(&HeldGroups) -> i64);

impl MakeManager for Leaving {
    fn name(&self) -> &'static str {
        "own"
    }
    fn rules(&self) -> BufferRules {
        self.0
    }
    fn make(&self, _: &RamContext) -> Box<dyn ChooseLeaving> {
        Box::new(self.clone())
    }
}

impl ChooseLeaving for Leaving {
    fn choose(&mut self, groups: &mut Box<HeldGroups>) -> Result<i64, String> {
        Ok((self.1)(groups))
    }
    fn again(&self) -> Box<dyn ChooseLeaving> {
        Box::new(self.clone())
    }
}

fn victim(pick: Pick) -> Policies {
    let mut policies = Policies::default();
    policies.ftl.victim = Some(Box::new(Victim(pick)));
    policies
}

fn placement() -> Policies {
    let mut policies = Policies::default();
    policies.ftl.placement = Some(Box::new(Recent(Vec::new())));
    policies
}

fn leaving(rules: BufferRules, choose: fn(&HeldGroups) -> i64) -> Policies {
    Policies { manager: Some(Box::new(Leaving(rules, choose))), ..Policies::default() }
}

/// Two units, a little over half full.
fn small(more: &[&str]) -> Vec<String> {
    let more = more.iter().map(|setting| (*setting).to_owned()).collect();
    [shape(1, 1, 2, 32, 8, 300), more].concat()
}

/// Skewed writes of up to 12 pages, and reads; where every page lies then, and how often each block was erased.
fn played(mut ssd: Ssd, seed: u64) -> (Vec<Option<u32>>, Vec<u64>) {
    let mut rng = rng(seed);
    for step in 0..4000 {
        let first = draw(&mut rng, 300);
        let first = if draw(&mut rng, 4) > 0 { first / 10 } else { first };
        let count = (1 + draw(&mut rng, 12)).min(300 - first);
        let kind = if draw(&mut rng, 5) == 0 { RequestKind::Read } else { RequestKind::Write };
        let request = pages(&ssd, kind, first, count);
        perform(&mut ssd, request).unwrap();
        if step % 500 == 0 {
            assert_clean(&ssd, &format!("step {step}"));
        }
    }
    assert_clean(&ssd, "the end");
    let copy = ssd.clone();
    let nand = copy.flash().nand();
    let erases =
        (0..copy.flash().geometry().blocks()).map(|block| u64::from(nand.erases(flashwright_nand::BlockId(block))));
    (map(&copy), erases.collect())
}

fn assert_same(name: &str, settings: &[&str], native: &[&str], policies: &Policies) {
    for seed in 0..4 {
        let own = Ssd::with_policies(&config(&small(settings)), Seed(seed), true, policies).unwrap();
        let listed = Ssd::new(&config(&small(&[settings, native].concat())), Seed(seed), true).unwrap();
        assert_eq!(played(own, seed), played(listed, seed), "{name}, seed {seed}");
    }
}

#[test]
fn victims_are_those_of_the_native_policy() {
    let policies: [(&str, Pick); 3] = [("greedy", greedy), ("fifo", fifo), ("cost-benefit", cost_benefit)];
    for (name, pick) in policies {
        let native = format!("gc.victim={name}");
        // DFTL draws conclusions from a fully valid victim of the native greedy policy, which always chooses the fewest
        // valid pages.
        let schemes = if name == "greedy" { &["page"][..] } else { &["page", "dftl"] };
        for scheme in schemes {
            for wear in ["none", "threshold"] {
                let settings = [
                    format!("ftl.scheme={scheme}"),
                    format!("wear.policy={wear}"),
                    "capacity.logical=\"1400 KiB\"".to_owned(),
                ];
                let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
                assert_same(&format!("{name}, {scheme}, {wear}"), &settings, &[&native], &victim(pick));
            }
        }
    }
}

#[test]
fn streams_are_those_of_the_native_policy() {
    let native =
        ["placement.policy=hot-cold", "placement.hot-cold.detector=recent", "placement.hot-cold.recent-writes=40"];
    for scheme in ["page", "dftl"] {
        assert_same(scheme, &[&format!("ftl.scheme={scheme}")], &native, &placement());
    }
    let buffered = ["ram.manager=bplru", "ram.size=\"128 KiB\""];
    assert_same("behind RAM", &buffered, &native, &placement());
}

#[test]
fn what_leaves_is_what_the_native_twin_lets_go() {
    fn oldest(groups: &HeldGroups) -> i64 {
        i64::from(groups.oldest().unwrap())
    }
    fn fullest(groups: &HeldGroups) -> i64 {
        let counted = groups.blocks().zip(groups.pages());
        i64::from(counted.reduce(|best, other| if other.1 > best.1 { other } else { best }).unwrap().0)
    }
    let block = BufferRules { by_block: true, ..BufferRules::default() };
    let cache = BufferRules { keeps_reads: true, reads_are_uses: true, ..BufferRules::default() };
    let size = ["ram.size=\"128 KiB\""];
    assert_same("lru", &size, &["ram.manager=lru"], &leaving(cache, oldest));
    assert_same("fab", &size, &["ram.manager=fab"], &leaving(BufferRules { by_block: true, ..cache }, fullest));
    let native = ["ram.manager=bplru", "ram.bplru.compensation=off"];
    assert_same("bplru", &size, &native, &leaving(BufferRules { padding: true, ..block }, oldest));
    let unpadded = [&native[..], &["ram.bplru.padding=false"]].concat();
    assert_same("bplru, no padding", &size, &unpadded, &leaving(block, oldest));
}

/// Writes until the drive refuses; returns the error.
fn refused(settings: &[&str], policies: &Policies) -> String {
    let mut ssd = Ssd::with_policies(&config(&small(settings)), Seed(1), false, policies).unwrap();
    let mut rng = rng(1);
    for _ in 0..20_000 {
        let request = pages(&ssd, RequestKind::Write, draw(&mut rng, 300), 1);
        match perform(&mut ssd, request) {
            Ok(_) => {}
            Err(IoError::Policy { what }) => {
                let again = pages(&ssd, RequestKind::Read, 0, 1);
                assert!(matches!(perform(&mut ssd, again), Err(IoError::Policy { .. })), "a fault stays");
                assert_clean(&ssd, "a drive whose policy is at fault keeps its law");
                return what;
            }
            Err(other) => panic!("{other}"),
        }
    }
    panic!("never refused")
}

#[test]
fn what_cannot_be_done_is_refused_in_a_line() {
    let cases: [(Pick, &str); 6] = [
        (|_| Ok(-1), "pick answered block -1, which is beyond the unit's 32 blocks; expected one of the"),
        (|_| Ok(32), "block 32, which is beyond the unit's 32 blocks"),
        (|_| Ok(i64::MAX), "which is beyond"),
        (
            |blocks| Ok((0..32).find(|block| !blocks.blocks().contains(block)).map_or(0, i64::from)),
            "; expected one of the",
        ),
        (|_| Err("out of ideas".to_owned()), "out of ideas"),
        (
            |blocks| {
                let full = blocks.blocks().iter().zip(blocks.valid()).max_by_key(|(_, valid)| *valid).unwrap();
                Ok(i64::from(*full.0))
            },
            "blocks in a row without an invalid page, of which cleaning gains nothing; expected one of the",
        ),
    ];
    for scheme in ["page", "dftl"] {
        // Dftl gets itself out of the last one.
        for (pick, expected) in &cases[..if scheme == "dftl" { 5 } else { 6 }] {
            let said = refused(&[&format!("ftl.scheme={scheme}")], &victim(*pick));
            assert!(said.starts_with("own: unit ") && said.contains(expected), "{scheme}: {said}");
        }
    }
    let said =
        refused(&["ram.size=\"128 KiB\""], &leaving(BufferRules { by_block: true, ..BufferRules::default() }, |_| 999));
    assert!(said.contains("choose answered block 999, of which nothing is held; expected one of the"), "{said}");
}

/// Returns streams that a drive does not have, or too few.
#[derive(Clone, Debug)]
struct Wild(usize, i64);

impl MakePlacement for Wild {
    fn name(&self) -> &'static str {
        "own"
    }
    fn streams(&self) -> u8 {
        3
    }
    fn make(&self, _: PlacementContext) -> Box<dyn PlacePages> {
        Box::new(self.clone())
    }
}

impl PlacePages for Wild {
    fn host(&mut self, run: &HostRun, streams: &mut Vec<i64>) -> Result<(), String> {
        streams.resize(if run.now > 500 { self.0 } else { 1 }, if run.now > 500 { self.1 } else { 2 });
        Ok(())
    }
    fn moved(&mut self, _: &MovedPages, streams: &mut Vec<i64>) -> Result<(), String> {
        streams.push(0);
        Ok(())
    }
    fn again(&self) -> Box<dyn PlacePages> {
        Box::new(self.clone())
    }
}

#[test]
fn streams_that_there_are_not_are_refused() {
    let cases = [
        (1, 3, "host answered stream 3, expected 0 to 2"),
        (1, -1, "host answered stream -1, expected 0 to 2"),
        (2, 0, "host answered 2 streams, expected one for each of the 1 pages, or one for all"),
        (0, 0, "host answered 0 streams, expected one for each"),
    ];
    for (count, stream, expected) in cases {
        let mut policies = Policies::default();
        policies.ftl.placement = Some(Box::new(Wild(count, stream)));
        let said = refused(&[], &policies);
        assert_eq!(said.split_once(": ").unwrap().0, "own");
        assert!(said.starts_with("own: host page write 501: ") && said.contains(expected), "{said}");
    }
}

#[test]
fn drives_that_have_no_place_for_a_policy_are_refused() {
    let fault = |settings: &[&str], policies: &Policies| {
        Ssd::with_policies(&config(&small(settings)), Seed(1), false, policies).err().unwrap().to_string()
    };
    let said = fault(&["ftl.scheme=block"], &victim(greedy));
    assert!(said.contains("ftl.scheme: found \"block\", which asks no victim policy, with the policy own"), "{said}");
    let said = fault(&[], &leaving(BufferRules::default(), |_| 0));
    assert!(said.contains("ram.size: found 0 B, which holds no page of 4096 B, with the policy own"), "{said}");
    let rules = BufferRules { by_block: true, ..BufferRules::default() };
    let said = fault(&["ram.size=\"16 KiB\""], &leaving(rules, |_| 0));
    assert!(said.contains("ram.size: found room for 4 pages, but the policy own evicts whole blocks"), "{said}");
}

/// A drive under the layer, or under another with `native` laid over.
fn under_own_layer(settings: &[&str], native: Option<&[&str]>, seed: u64) -> Ssd {
    static REGISTERED: std::sync::Once = std::sync::Once::new();
    REGISTERED.call_once(|| register::<layer::PageMap>("own-page").unwrap());
    let more = native.unwrap_or(&["ftl.scheme=own-page"]);
    Ssd::new(&config(&small(&[settings, more].concat())), Seed(seed), true).unwrap()
}

#[test]
fn a_registered_layer_takes_the_steps_of_its_native_twin() {
    let fill: &[&str] = &["capacity.logical=\"1400 KiB\""];
    let worn: &[&str] = &["wear.pe-cycles-max=100", "wear.factory-bad=0.05"];
    for settings in [&[][..], fill, &["timing.model=serial"], &["geometry.channels=4"], worn] {
        for seed in 0..3 {
            let (own, page) = (under_own_layer(settings, None, seed), under_own_layer(settings, Some(&[]), seed));
            assert_eq!(played(own, seed), played(page, seed), "{settings:?}, seed {seed}");
        }
    }
    let own = under_own_layer(&["ftl.own-page.spare-blocks=2"], None, 7);
    assert_eq!(own.scheme().figures().ram_bytes, u64::from(own.logical_pages()) * 4);
    assert_eq!(played(own, 7), played(under_own_layer(&[], Some(&["gc.free-blocks-min=4"]), 7), 7));
}

#[test]
fn a_registered_layer_is_named_and_set_as_ours_are() {
    let own = under_own_layer(&["ftl.own-page.spare-blocks=1"], None, 1);
    let text = own.config().to_toml();
    assert!(text.contains("scheme = \"own-page\"") && text.contains("[ftl.own-page]\nspare-blocks = 1"), "{text}");
    assert_eq!(Config::from_toml(&text, "again").unwrap(), own.config().clone());
    let said = |settings: &[&str]| {
        let found = Config::default().with_settings(settings);
        let fault = |config| Ssd::new(&config, Seed(1), false).err().unwrap().to_string();
        found.map_or_else(|error| error.to_string(), fault)
    };
    assert!(said(&["ftl.scheme=own-pag"]).contains("own-page; did you mean \"own-page\"?"));
    assert!(said(&["ftl.own-page.spare=1"]).contains("unknown key; did you mean spare-blocks?"));
    assert!(said(&["ftl.own-page.spare-blocks=none"]).contains("ftl.own-page.spare-blocks: found \"none\""));
    let chosen = ["ftl.scheme=own-page"];
    let refused = [
        ("recovery.mount-by=scan", "a mount builds the drive anew, without them"),
        ("gc.schedule=preemptive", "found \"preemptive\" with own-page, which has no method clean"),
        ("wear.policy=threshold", "ftl.scheme = \"own-page\" takes only \"none\""),
    ];
    for (setting, expected) in refused {
        let found = said(&[&chosen[..], &[setting]].concat());
        assert!(found.contains(expected), "{setting}: {found}");
    }
    for name in ["page", "own-page", "Own", "own--page", "", "-own", "scheme", "foreign"] {
        assert!(register::<layer::PageMap>(name).is_err(), "{name}");
    }
}
