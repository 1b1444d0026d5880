//! NVM sets: parts of the logical space on dies of their own.

use crate::common::*;
use flashwright_block::{BlockDevice, Request, RequestKind, Seed, below};
use flashwright_ftl::{Ftl, SchemeName};
use flashwright_nand::Lpn;
use flashwright_ssd::{Ssd, SsdError};

/// Two channels of two dies with two planes, and logical pages that do not divide by the sets.
const LOGICAL: u32 = 1001;

fn drive(settings: &[&str]) -> Result<Ssd, SsdError> {
    let all = shape(2, 2, 2, 16, 10, LOGICAL).into_iter().chain(settings.iter().map(|text| (*text).to_owned()));
    Ssd::new(&config(&all.collect::<Vec<_>>()), Seed(1), true)
}

/// The dies on which the pages of a set lie, after a fill and random writes that clean.
fn dies_of_sets(settings: &[&str], sets: u32) -> Vec<Vec<u32>> {
    let mut ssd = drive(settings).unwrap();
    let mut rng = Seed(2).stream("test.sets");
    for step in 0..6 * LOGICAL {
        let first = if step < LOGICAL { step } else { below(&mut rng, u64::from(LOGICAL)) as u32 };
        // Some lie across the border of two sets.
        let count = (1 + step % 3).min(LOGICAL - first);
        let write = Request { arrival: ssd.now(), ..pages(&ssd, RequestKind::Write, first, count) };
        perform(&mut ssd, write).unwrap();
    }
    assert_clean(&ssd, "written");
    assert!(ssd.flash().counters().total(flashwright_ftl::OpKind::Erase) > 100, "cleaned");
    let mut dies = vec![Vec::new(); sets as usize];
    for lpn in 0..LOGICAL {
        let ppn = ssd.scheme().lookup(Lpn(lpn), ssd.flash()).unwrap();
        dies[(lpn / LOGICAL.div_ceil(sets)) as usize].push(ssd.flash().geometry().die_of(ppn).0);
    }
    for of_set in &mut dies {
        of_set.sort_unstable();
        of_set.dedup();
    }
    dies
}

#[test]
fn a_part_of_the_space_never_leaves_its_dies() {
    for allocation in ["placement.allocation=by-room", "placement.allocation=dynamic"] {
        // Dies 0 and 1 are on the first channel; turns go over channels first, or over the dies of a channel.
        assert_eq!(dies_of_sets(&[allocation, "placement.sets=1"], 1), [[0, 1, 2, 3]]);
        assert_eq!(dies_of_sets(&[allocation, "placement.sets=2"], 2), [[0, 2], [1, 3]]);
        assert_eq!(dies_of_sets(&[allocation, "placement.sets=2", "placement.order=WDCP"], 2), [[0, 1], [2, 3]]);
        assert_eq!(dies_of_sets(&[allocation, "placement.sets=4"], 4), [[0], [2], [1], [3]]);
    }
}

fn refusal(settings: &[&str]) -> String {
    drive(settings).unwrap_err().to_string()
}

#[test]
fn sets_that_the_drive_can_not_have_are_refused() {
    let odd = "placement.sets: found 3, expected a divisor of the 4 dies, so that all sets have as many";
    assert!(refusal(&["placement.sets=3"]).contains(odd));
    let bound = "placement.sets: found 2, expected 1 with placement.allocation = \"static\"";
    assert!(refusal(&["placement.sets=2", "placement.allocation=static"]).contains(bound));
    for scheme in SchemeName::those(|scheme| !scheme.has_sets()) {
        let said = refusal(&["placement.sets=2", &format!("ftl.scheme={scheme}")]);
        assert!(said.contains("takes only 1; sets of dies work with page"), "{said}");
    }
}
