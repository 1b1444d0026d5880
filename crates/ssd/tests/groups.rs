//! Reclaim groups: parts of the drive on dies of their own, of which the host names one with each write, beside the handle.
//!
//! The model knows the rule and no flash: a group takes what is written to it while it holds less than its part of the logical space, or
//! holds the old copy; else the group that holds least, lowest first; else the one of the old copy.

use crate::common::*;
use flashwright_block::{
    BlockDevice, Bytes, GroupBits, IoError, Moved, Nanos, Request, RequestKind, Rng, Seed, below, chance,
};
use flashwright_ftl::{Cause, Counters, Ftl, OpKind, SchemeName};
use flashwright_nand::{BlockId, Lpn};
use flashwright_ssd::{Config, Ssd, SsdError};

/// Logical pages that do not divide by the groups.
const LOGICAL: u32 = 1001;
const HANDLES: u16 = 3;

/// Two channels of two dies with two planes.
fn drive(settings: &[&str]) -> Result<Ssd, SsdError> {
    drive_of(18, settings)
}

fn drive_of(blocks: u32, settings: &[&str]) -> Result<Ssd, SsdError> {
    let placed = ["placement.policy=fdp", "placement.fdp.handles=3"].map(str::to_owned);
    let all = shape(2, 2, 2, blocks, 12, LOGICAL).into_iter().chain(placed);
    let all: Vec<String> = all.chain(settings.iter().map(|text| (*text).to_owned())).collect();
    Ssd::new(&Config::default().with_settings(&all).map_err(SsdError::from)?, Seed(1), true)
}

/// The rule, over counts of pages.
struct Model {
    bits: GroupBits,
    share: i64,
    held: Vec<i64>,
    /// By logical page, the group that holds it.
    group: Vec<Option<usize>>,
    /// By handle.
    written: Vec<u64>,
    /// By group, pages that it took from the host.
    taken: Vec<u64>,
}

impl Model {
    fn new(groups: u16) -> Self {
        Self {
            bits: GroupBits::of(groups),
            share: i64::from(LOGICAL.div_ceil(u32::from(groups))),
            held: vec![0; groups.into()],
            group: vec![None; LOGICAL as usize],
            written: vec![0; HANDLES.into()],
            taken: vec![0; groups.into()],
        }
    }

    fn write(&mut self, lpn: u32, stream: u16) {
        let (group, handle) = self.bits.split(stream);
        let (named, handle) =
            if usize::from(group) < self.held.len() && handle < HANDLES { (group.into(), handle) } else { (0, 0) };
        let old = self.group[lpn as usize];
        let least = (0..self.held.len()).min_by_key(|group| self.held[*group]).unwrap();
        let goes_to = match old {
            _ if self.held[named] < self.share => named,
            Some(old) if old == named => named,
            _ if self.held[least] < self.share => least,
            Some(old) => old,
            None => panic!("the drive has room"),
        };
        self.trim(lpn);
        self.held[goes_to] += 1;
        self.taken[goes_to] += 1;
        self.group[lpn as usize] = Some(goes_to);
        self.written[usize::from(handle)] += 1;
    }

    fn trim(&mut self, lpn: u32) {
        if let Some(old) = self.group[lpn as usize].take() {
            self.held[old] -= 1;
        }
    }

    /// What each group counts is what happened on its dies: what it took, the erases of its blocks, and the pages that these and the blocks
    /// in use took. Every block is full when it is erased, unless `has_others`: the journal's, those in SLC mode, and units closed by a mount.
    fn check_counts(&self, ssd: &Ssd, dies: &[&[u32]], has_others: bool, what: &str) {
        let (flash, geometry) = (ssd.flash(), *ssd.flash().geometry());
        let (mut erases, mut pages) = (vec![0; dies.len()], vec![0; dies.len()]);
        for block in (0..geometry.blocks()).map(BlockId) {
            let die = geometry.die_of(geometry.first_page(block)).0;
            let group = dies.iter().position(|of_group| of_group.contains(&die)).unwrap();
            let erased = u64::from(flash.nand().erases(block));
            erases[group] += erased;
            pages[group] +=
                erased * u64::from(geometry.pages_per_block()) + u64::from(flash.nand().pages_programmed(block));
        }
        let counted = |of: &dyn Fn(&Counters) -> u64| flash.group_counters().iter().map(of).collect::<Vec<u64>>();
        assert_eq!(counted(&|group| group.get(OpKind::Program, Cause::Host)), self.taken, "{what}: taken");
        if !has_others {
            assert_eq!(counted(&|group| group.total(OpKind::Erase)), erases, "{what}: erases");
            assert_eq!(counted(&|group| group.total(OpKind::Program)), pages, "{what}: programs");
        }
        for kind in [OpKind::Program, OpKind::Erase] {
            for cause in [Cause::Host, Cause::Gc, Cause::Padding, Cause::Translation, Cause::Wear] {
                let sum: u64 = counted(&|group| group.get(kind, cause)).iter().sum();
                assert_eq!(sum, flash.counters().get(kind, cause), "{what}: {kind:?} {cause:?}");
            }
        }
    }

    /// Every page lies on a die of its group. After a mount, pages whose trim was lost are there again.
    fn check(&mut self, ssd: &Ssd, dies: &[&[u32]], was_mounted: bool, what: &str) {
        for lpn in 0..LOGICAL {
            let found = ssd.scheme().lookup(Lpn(lpn), ssd.flash()).map(|ppn| {
                let die = ssd.flash().geometry().die_of(ppn).0;
                dies.iter().position(|of_group| of_group.contains(&die)).unwrap()
            });
            if was_mounted && self.group[lpn as usize].is_none() {
                found.iter().for_each(|group| self.held[*group] += 1);
                self.group[lpn as usize] = found;
            }
            assert_eq!(found, self.group[lpn as usize], "{what}: page {lpn}");
        }
    }
}

/// Random writes with identifiers that there are and that there are not, more of group 0 than fits it, and trims and reads.
fn play(settings: &[&str], dies: &[&[u32]]) {
    let what = &settings.join(" ");
    // As few blocks as what it keeps of each plane allows.
    let mut ssd =
        (18..40).find_map(|blocks| drive_of(blocks, settings).ok()).unwrap_or_else(|| drive_of(40, settings).unwrap());
    let groups = u16::try_from(dies.len()).unwrap();
    let (mut model, mut random): (_, Rng) = (Model::new(groups), Seed(5).stream("groups"));
    let cuts = settings.iter().any(|setting| setting.starts_with("recovery"));
    for step in 0..6 * LOGICAL {
        let first = if step < LOGICAL { step } else { below(&mut random, u64::from(LOGICAL)) as u32 };
        let count = (1 + step % 3).min(LOGICAL - first);
        let group = if chance(&mut random, 0.6) { 0 } else { below(&mut random, u64::from(groups)) as u16 };
        let handle = below(&mut random, u64::from(HANDLES)) as u16;
        let stream = if step % 20 == 7 { below(&mut random, 65_536) as u16 } else { model.bits.join(group, handle) };
        let kind = match below(&mut random, 12) {
            0 if step > LOGICAL => RequestKind::Trim,
            1 => RequestKind::Read,
            _ => RequestKind::Write,
        };
        let request = Request { arrival: ssd.now(), stream, ..pages(&ssd, kind, first, count) };
        perform(&mut ssd, request).unwrap();
        for lpn in first..first + count {
            match kind {
                RequestKind::Write => model.write(lpn, stream),
                RequestKind::Trim => model.trim(lpn),
                _ => {}
            }
        }
        let is_cut = cuts && step % 500 == 499;
        if is_cut {
            ssd.cut().unwrap();
            ssd.mount().unwrap();
        }
        if is_cut || step % 7 == 0 {
            model.check(&ssd, dies, is_cut, what);
        }
        let handles = ssd.figures().handles;
        // Figures begin anew with each mount, and trims that it undoes may fill a group.
        if !cuts {
            assert!(model.held.iter().all(|held| *held <= model.share), "{what}");
            assert_eq!(handles.iter().map(|each| each.pages_written).collect::<Vec<_>>(), model.written, "{what}");
        }
    }
    model.check(&ssd, dies, false, what);
    if dies.len() > 1 {
        model.check_counts(&ssd, dies, cuts || what.contains("slc.cache"), what);
    }
    let moved: u64 = ssd.figures().handles.iter().flat_map(|each| each.pages_moved_for.clone()).sum();
    if !cuts {
        assert_eq!(moved, ssd.flash().counters().get(OpKind::Program, Cause::Gc), "{what}");
    }
    assert!(ssd.flash().counters().total(OpKind::Erase) > 20, "{what}: cleaned");
    let all = Request { arrival: ssd.now(), ..pages(&ssd, RequestKind::Read, 0, LOGICAL) };
    perform(&mut ssd, all).unwrap();
    assert_clean(&ssd, what);
}

#[test]
fn every_page_stays_on_the_dies_of_its_group() {
    let two = &["placement.fdp.groups=2"][..];
    let more: &[&[&str]] = &[
        &[],
        &["placement.allocation=dynamic"],
        &["placement.fdp.isolation=initial"],
        &["gc.invalidate=before-gc"],
        &["gc.victim=fifo", "wear.policy=static"],
        &["gc.schedule=background", "timing.model=parallel"],
        &["recovery.mount-by=scan"],
        &["recovery.mount-by=scan", "timing.model=parallel", "placement.fdp.isolation=initial"],
        &["slc.cache=dynamic", "slc.when-full=fold", "geometry.bits-per-cell=2"],
        &["slc.cache=fixed", "slc.when-full=direct", "geometry.bits-per-cell=2", "recovery.mount-by=scan"],
    ];
    for more in more {
        // Dies 0 and 1 are on the first channel; dies are dealt in the order of turns, as to NVM sets.
        play(&[two, *more].concat(), &[&[0, 2], &[1, 3]]);
    }
    play(&["placement.fdp.groups=2", "placement.order=WDCP"], &[&[0, 1], &[2, 3]]);
    play(&["placement.fdp.groups=4"], &[&[0], &[2], &[1], &[3]]);
    play(&["placement.fdp.groups=1"], &[&[0, 1, 2, 3]]);
}

#[test]
fn a_unit_is_a_superblock_over_the_dies_of_its_group() {
    let chips = [
        "geometry.superblock=drive",
        "geometry.bits-per-cell=3",
        "chips.programming=one-shot",
        "chips.write-ram=2 MiB",
        "timing.model=parallel",
    ];
    for more in
        [&[][..], &["placement.fdp.isolation=initial"], &["recovery.mount-by=scan"], &["geometry.parity-dies=2"]]
    {
        // Groups of planes that are programmed together: the layer below sees a die for each.
        let drive = [&chips[..], &["placement.fdp.groups=2"], more].concat();
        play(&drive, &[&[0], &[1]]);
    }
    play(&[&chips[..], &["placement.fdp.groups=4"]].concat(), &[&[0], &[2], &[1], &[3]]);
    play(&["geometry.superblock=drive", "chips.write-ram=1 MiB", "placement.fdp.groups=2"], &[&[0], &[1]]);
    play(&["geometry.superblock=die", "chips.write-ram=1 MiB", "placement.fdp.groups=4"], &[&[0], &[2], &[1], &[3]]);
}

#[test]
fn a_unit_keeps_the_dies_of_its_group_busy() {
    for (group, expected) in [(0, [true, false, true, false]), (1, [false, true, false, true])] {
        let parallel =
            ["geometry.superblock=drive", "timing.model=parallel", "placement.fdp.groups=2", "chips.write-ram=1 MiB"];
        let mut ssd = drive(&parallel).unwrap();
        let unit = ssd.placement().unwrap().unit.0 / 4096;
        assert_eq!(unit, 2 * 2 * 12, "dies, planes and pages");
        let write = pages(&ssd, RequestKind::Write, 0, 4 * u32::try_from(unit).unwrap());
        perform(&mut ssd, Request { stream: GroupBits::of(2).join(group, 1), ..write }).unwrap();
        let read = Request { arrival: Nanos(1_000_000_000), ..pages(&ssd, RequestKind::Read, 0, 1) };
        perform(&mut ssd, read).unwrap();
        let busy: Vec<bool> = ssd.busy_times().dies.iter().map(|time| time.0 > 0).collect();
        assert_eq!(busy, expected, "group {group}");
    }
}

#[test]
fn units_are_told_and_left_by_group_and_handle() {
    let mut ssd = drive(&["geometry.superblock=drive", "placement.fdp.groups=2", "chips.write-ram=1 MiB"]).unwrap();
    let offered = ssd.placement().unwrap();
    assert_eq!((offered.handles, offered.groups, offered.unit), (HANDLES, 2, Bytes(48 * 4096)));
    let rooms = |ssd: &mut Ssd| {
        let of = |stream| ssd.unit_room(stream).unwrap().0 / 4096;
        [0, 1, 2, 0x8000, 0x8001, 0x8002].map(of)
    };
    assert_eq!(rooms(&mut ssd), [48; 6]);
    let write = |ssd: &mut Ssd, first, count, stream| {
        let write = Request { arrival: ssd.now(), stream, ..pages(ssd, RequestKind::Write, first, count) };
        perform(ssd, write).unwrap();
    };
    write(&mut ssd, 0, 10, 0x8002);
    write(&mut ssd, 10, 5, 2);
    write(&mut ssd, 20, 1, 0x8003); // no such handle: handle 0 of group 0
    assert_eq!(rooms(&mut ssd), [47, 48, 43, 48, 48, 38]);
    assert_eq!(ssd.renew_unit(0x8002), Ok(Some(Bytes(38 * 4096))));
    assert_eq!(ssd.renew_unit(0x8001), Ok(None));
    assert_eq!((ssd.renew_unit(0x8003), ssd.unit_room(3)), (Ok(None), Ok(Bytes(0))));
    assert_eq!(rooms(&mut ssd), [47, 48, 43, 48, 48, 48]);
    // Moves name the group in which they happen.
    ssd.watch_moves(1 << 1);
    let (mut moves, mut random): (Vec<Moved>, Rng) = (Vec::new(), Seed(7).stream("groups"));
    for step in 0..6 * LOGICAL {
        let lpn = if step < LOGICAL { step } else { below(&mut random, u64::from(LOGICAL)) as u32 };
        write(&mut ssd, lpn, 1, if lpn < LOGICAL / 2 { 1 } else { 0x8001 });
        ssd.take_moved(&mut moves);
    }
    assert!(moves.iter().all(|moved| moved.handle == 1));
    let of = |group| moves.iter().filter(move |moved| moved.group == group);
    assert!(of(0).count() > 10 && of(1).count() > 10);
    let per_page = ssd.sectors_per_page();
    assert!(of(0).all(|moved| moved.first_sector / per_page < u64::from(LOGICAL / 2)));
    assert!(of(1).all(|moved| moved.first_sector / per_page >= u64::from(LOGICAL / 2)));
    assert_clean(&ssd, "moved");
}

/// A host that names one group for all that it has: the rest goes elsewhere, and nothing fails before the drive is worn out.
#[test]
fn a_group_that_is_full_fails_no_write() {
    for wear in [&[][..], &["wear.pe-cycles-max=60", "wear.pe-cycles-spread=0.2"]] {
        let mut ssd = drive(&[&["placement.fdp.groups=4"], wear].concat()).unwrap();
        let mut random: Rng = Seed(3).stream("groups");
        let mut written = 0;
        for step in 0..200 * LOGICAL {
            let lpn = if step < LOGICAL { step } else { below(&mut random, u64::from(LOGICAL)) as u32 };
            let write = Request { arrival: ssd.now(), stream: 0xc001, ..pages(&ssd, RequestKind::Write, lpn, 1) };
            match perform(&mut ssd, write) {
                Ok(_) => written += 1,
                Err(error) => {
                    assert!(matches!(error, IoError::WornOut { .. }), "{error}");
                    break;
                }
            }
            if wear.is_empty() && step > 20 * LOGICAL {
                break;
            }
        }
        assert!(written > 10 * LOGICAL, "{written}");
        if !wear.is_empty() {
            // Every group was used up, not only the one that was named.
            let nand = ssd.flash().nand();
            let geometry = *ssd.flash().geometry();
            let mut retired = [0; 4];
            for block in (0..geometry.blocks()).map(flashwright_nand::BlockId) {
                let is_retired = nand.condition(block) == flashwright_nand::Condition::Retired;
                retired[geometry.die_of(geometry.first_page(block)).index()] += u32::from(is_retired);
            }
            assert!(retired.iter().all(|blocks| *blocks > 0), "{retired:?}");
        }
        assert_clean(&ssd, "full");
    }
}

#[test]
fn groups_that_the_drive_can_not_have_are_refused() {
    let refusal = |settings: &[&str]| drive(settings).unwrap_err().to_string();
    for (settings, expected) in [
        (
            &["placement.fdp.groups=3"][..],
            "placement.fdp.groups: found 3, expected a divisor of the 4 dies, so that all groups have as many",
        ),
        (&["placement.fdp.groups=8"], "expected a divisor of the 4 dies"),
        (&["placement.fdp.groups=0"], "placement.fdp.groups: found 0, expected 1 to 256"),
        (&["placement.fdp.groups=257"], "placement.fdp.groups: found 257, expected a divisor"),
        (
            &["placement.fdp.groups=2", "placement.sets=2"],
            "placement.fdp.groups: found 2, expected 1 with placement.sets = 2",
        ),
        (
            &["placement.fdp.groups=2", "placement.allocation=static"],
            "placement.fdp.groups: found 2, expected 1 with placement.allocation = \"static\"",
        ),
        (
            &["placement.fdp.groups=2", "geometry.superblock=drive", "geometry.parity-dies=4"],
            "a divisor of 2 dies of a group, 2 or more",
        ),
    ] {
        let said = refusal(settings);
        assert!(said.contains(expected), "{settings:?}: {said}");
    }
    for scheme in SchemeName::those(|scheme| !scheme.has_sets() && !scheme.writes_in_order()) {
        let said = refusal(&["placement.fdp.groups=2", &format!("ftl.scheme={scheme}")]);
        assert!(said.contains("takes only 1; groups of dies work with page"), "{said}");
        if scheme != "dftl" {
            let said = refusal(&[&format!("ftl.scheme={scheme}")]);
            assert!(said.contains("placement.policy: found \"fdp\", but ftl.scheme"), "{said}");
            assert!(said.contains("asks no placement policy; handles work with page, dftl"), "{said}");
        }
    }
    // Another policy has no groups.
    assert!(drive(&["placement.fdp.groups=2", "placement.policy=single", "placement.sets=2"]).is_ok());
}
