//! Properties of every cut: PAS and PASA as defined in Kim et al., section 5.2, for any drive and any request, alone
//! and through a filter.

use crate::common::Recorder;
use flashwright_block::{BlockDevice, Bytes, Completion, Nanos, Request, RequestKind, SECTOR_BYTES};
use flashwright_host::{CutRule, Finding, Profile, Splitting, Stack, StackSettings, Unit, WithoutBuffer};
use proptest::prelude::*;

const PAS: Splitting = Splitting::Size(WithoutBuffer::Uncut);
const PASA: Splitting = Splitting::AlignedSize(Unit::Page, WithoutBuffer::Uncut);

fn profile(page: u64, buffer: u64) -> Profile {
    let size = |sectors: u64| Finding::Size(Bytes(sectors * SECTOR_BYTES));
    Profile { clustered_page: size(page), read_buffer: size(buffer), write_buffer: size(buffer), ..Profile::default() }
}

/// First sector and one past the last of each piece.
fn pieces(splitting: Splitting, profile: &Profile, first: u64, sectors: u64) -> Vec<(u64, u64)> {
    let rule = CutRule::new(splitting, profile);
    let (mut at, end, mut found) = (first, first + sectors, Vec::new());
    while let Some(next) = rule.cut(RequestKind::Read, at, end) {
        assert!(at < next && next < end, "a cut lies inside");
        found.push((at, next));
        at = next;
    }
    found.push((at, end));
    found
}

proptest! {
    #[test]
    fn pieces_cover_the_request_and_none_is_longer_than_the_rule_allows(
        page in 1u64..600, buffer in 1u64..1200, first in 0u64..5000, sectors in 1u64..5000,
    ) {
        let profile = profile(page, buffer);
        for (splitting, longest) in [(PAS, buffer), (PASA, (buffer / page * page).max(page))] {
            let pieces = pieces(splitting, &profile, first, sectors);
            prop_assert_eq!((pieces[0].0, pieces[pieces.len() - 1].1), (first, first + sectors));
            prop_assert!(pieces.windows(2).all(|pair| pair[0].1 == pair[1].0));
            prop_assert!(pieces.iter().all(|(first, end)| end - first <= longest));
            prop_assert_eq!(CutRule::new(splitting, &profile).longest(RequestKind::Read), longest);
            // As few as can be: none but the first and the last is shorter.
            let inner = pieces.len().saturating_sub(1).max(1);
            prop_assert!(pieces[1..inner].iter().all(|(first, end)| end - first == longest));
        }
        let pasa = pieces(PASA, &profile, first, sectors);
        prop_assert!(pasa[1..].iter().all(|(first, _)| first.is_multiple_of(page)), "only the first may begin elsewhere");
    }

    #[test]
    fn on_aligned_requests_and_a_buffer_of_whole_pages_pasa_is_pas(
        page in 1u64..300, pages in 1u64..9, first in 0u64..50, sectors in 1u64..5000,
    ) {
        let profile = profile(page, page * pages);
        prop_assert_eq!(pieces(PASA, &profile, first * page, sectors), pieces(PAS, &profile, first * page, sectors));
    }

    #[test]
    fn a_filter_hands_on_these_pieces_and_completes_the_request_with_the_last(
        page in 1u64..40, buffer in 1u64..200, first in 0u64..2000, sectors in 1u64..2000, depth in 1u32..9,
    ) {
        for (name, splitting) in [("pas", PAS), ("pasa", PASA)] {
            let profile = profile(page, buffer);
            let settings = StackSettings { scheduler: name.parse().expect("a name"), profile, ..StackSettings::default() };
            let device = Recorder::new(4096, depth, |request| 1_000 * u64::from(request.sectors));
            let mut stack = Stack::new(&settings, device).expect("sound settings");
            let sectors_u32 = u32::try_from(sectors).expect("few");
            stack.submit(Request { first_sector: first, sectors: sectors_u32, ..Request::default() }).expect("no faults");
            let mut done = Completion::default();
            prop_assert!(stack.wait(Nanos(u64::MAX), &mut done).expect("no faults"));
            prop_assert_eq!(done.end, stack.now());
            prop_assert!(!stack.wait(Nanos(u64::MAX), &mut done).expect("no faults"));
            let handed: Vec<_> =
                stack.device().dispatched.iter().map(|(_, piece)| (piece.first_sector, piece.end_sector())).collect();
            prop_assert_eq!(handed, pieces(splitting, &profile, first, sectors));
        }
    }
}
