//! Cleaning for which no write waits, for every scheme and policy on the lists: it ends, it loses nothing, and it may come at any time.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

use flashwright_block::{Bytes, Seed, below};
use flashwright_ftl::schemes::SchemeContext;
use flashwright_ftl::{
    CleansInSteps, Flash, Ftl, FtlSettings, GcSettings, LpnRun, OpKind, PlacementConfig, PlacementName, Progress,
    SchemeName, VictimName, WearSettings,
};
use flashwright_nand::{Geometry, Lpn, Nand, ProgramOrder, WearLimit};

#[test]
fn cleaning_ends_and_loses_nothing() {
    every_scheme_and_policy(900);
}

#[test]
#[ignore = "long: more steps"]
fn cleaning_ends_and_loses_nothing_in_longer_lives() {
    every_scheme_and_policy(1500);
}

fn every_scheme_and_policy(steps: u32) {
    let mut seed = 0;
    for scheme in SchemeName::ALL.iter().copied().filter(|scheme| !scheme.writes_in_order()) {
        for victim in VictimName::ALL.iter().copied() {
            for policy in PlacementName::ALL.iter().copied() {
                for order in [ProgramOrder::Ascending, ProgramOrder::Any] {
                    if scheme.needs_order().is_none_or(|needed| needed == order) {
                        seed += 1;
                        one(scheme, victim, policy, order, seed, steps);
                    }
                }
            }
        }
    }
}

fn one(name: SchemeName, victim: VictimName, policy: PlacementName, order: ProgramOrder, seed: u64, steps: u32) {
    let label = format!("{name:?}, {victim:?}, {policy:?}, {order:?}");
    let gc = GcSettings { victim: victim.into(), ..GcSettings::default() };
    let placement = PlacementConfig { policy, ..PlacementConfig::single_in_turn() };
    let (ftl, wear) = (FtlSettings::default(), WearSettings::default());
    // The first shape that the scheme takes, with 4 or 6 pages a block, and its logical pages.
    let shapes = [(2, 16, 4, 70), (1, 64, 4, 160), (1, 64, 6, 200), (1, 128, 8, 512)];
    let (mut flash, mut scheme, logical) = shapes
        .into_iter()
        .find_map(|(dies, blocks, pages, logical)| {
            let geometry = Geometry::new(1, dies, 1, blocks, pages, Bytes(4096));
            let mut flash = Flash::new(Nand::new(geometry, order, WearLimit::Unlimited, &[]), logical, true, true);
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
            name.problems(&context, &flash).is_empty().then(|| {
                let scheme = name.build(&context, &mut flash);
                (flash, scheme, logical)
            })
        })
        .unwrap_or_else(|| panic!("{label} takes none of the shapes"));
    let mut rng = Seed(seed).stream("idle");
    let mut draw = |bound: u32| u32::try_from(below(&mut rng, u64::from(bound))).unwrap();
    let mut written = std::collections::BTreeSet::new();
    for step in 0..steps {
        let first = if draw(2) == 0 { draw(logical / 8) } else { draw(logical) };
        let run = LpnRun { first: Lpn(first), pages: 1 + draw(4.min(logical - first)), stream: 0 };
        match draw(8) {
            0 => {
                run.iter().for_each(|lpn| flash.host_trims_page(lpn));
                scheme.trim(run, &mut flash);
                run.iter().for_each(|lpn| _ = written.remove(&lpn));
            }
            1 => scheme.read(run, &mut flash),
            2 => {
                // All that there is to do, or only a little of it.
                let limit = if draw(2) == 0 { u32::MAX } else { 1 + draw(3) };
                let budget = [1, 3, u32::MAX][draw(3) as usize];
                let mut calls = 0;
                while calls < limit && scheme.clean(budget, &mut flash) != Progress::Nothing {
                    calls += 1;
                    assert!(calls < 100_000, "{label}, step {step}: cleaning does not end");
                }
            }
            _ => {
                run.iter().for_each(|lpn| flash.host_writes_page(lpn));
                scheme.write(run, &mut flash).unwrap_or_else(|error| panic!("{label}, step {step}: {error}"));
                written.extend(run.iter());
            }
        }
        flash.clear_log();
        let mut violations = Vec::new();
        flash.audit(&mut violations);
        scheme.audit(&flash, &mut violations);
        violations.extend_from_slice(flash.stamps().unwrap().violations().1);
        assert!(violations.is_empty(), "{label}, step {step}: {violations:#?}");
        for lpn in (0..logical).map(Lpn) {
            assert_eq!(scheme.lookup(lpn, &flash).is_some(), written.contains(&lpn), "{label}, step {step}: {lpn:?}");
        }
    }
    scheme.read(LpnRun { first: Lpn(0), pages: logical, stream: 0 }, &mut flash);
    assert_eq!(flash.stamps().unwrap().violations().0, 0, "{label}: reads at the end");
    assert!(flash.counters().total(OpKind::Erase) > 0, "{label}: nothing was ever cleaned");
}
