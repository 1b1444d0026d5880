//! Address maps: a few requests worked out on paper, and properties of all requests.

#![allow(clippy::unwrap_used)] // helpers are outside of #[test]

use crate::trace_support::request;
use flashwright_block::RequestKind::{Flush, Read, Trim, Write};
use flashwright_block::{Bytes, Request, RequestSource, SourceError};
use flashwright_workload::trace::{AddressMap, MapReport, Mapped};
use proptest::prelude::*;
use std::collections::HashMap;

/// A source of given requests.
struct Given(Vec<Request>);

impl RequestSource for Given {
    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
        let count = at_most.min(self.0.len());
        batch.extend(self.0.drain(..count));
        Ok(count)
    }

    fn remaining(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}

fn map(requests: &[Request], map: AddressMap, sectors: u64) -> (Vec<Request>, Result<MapReport, String>) {
    let mut mapped = Mapped::new(Given(requests.to_vec()), map, sectors).unwrap();
    let mut out = Vec::new();
    loop {
        match mapped.fill(&mut out, 3) {
            Ok(0) => return (out, Ok(mapped.report())),
            Ok(_) => {}
            Err(error) => return (out, Err(error.to_string())),
        }
    }
}

#[test]
fn wrap_goes_round_and_splits_at_the_end() {
    // On 100 sectors: 250..258 is 50..58; 396..404 is 96..100 and 0..4; 92..100 just fits.
    let given = [request(0, Read, 250, 8), request(1, Write, 396, 8), request(2, Trim, 92, 8), request(3, Flush, 0, 0)];
    let (out, report) = map(&given, AddressMap::Wrap, 100);
    let split = [request(1, Write, 96, 4), request(1, Write, 0, 4)];
    assert_eq!(out, [&[request(0, Read, 50, 8)][..], &split, &given[2..]].concat());
    assert_eq!(report, Ok(MapReport { requests: 4, wrapped: 2, split: 1, ..MapReport::default() }));
    let (out, error) = map(&[given[0], request(1, Read, 0, 101)], AddressMap::Wrap, 100);
    assert_eq!(out.len(), 1);
    assert_eq!(error.unwrap_err(), "request 2 has 101 sectors, more than the whole drive (100): choose a larger drive");
}

#[test]
fn reject_names_the_request() {
    let (out, error) = map(&[request(0, Read, 92, 8), request(1, Read, 93, 8)], AddressMap::Reject, 100);
    assert_eq!(out, [request(0, Read, 92, 8)]);
    assert_eq!(
        error.unwrap_err(),
        "request 2 reaches sector 101, but the drive has 100: choose a larger drive, --addresses scale, compact, dense or wrap"
    );
}

#[test]
fn dense_numbers_pages_by_first_touch() {
    // Pages of 8 sectors. 804..820 touches pages 100, 101, 102: places 0, 1, 2, so sectors 4..20 in one piece.
    // 8..24 touches pages 1, 2: places 3, 4. 812..832 is pages 101 (from its half), 102, 103 (new: place 5):
    // sectors 12..24 and 40..48. A trim of pages 0..3 covers pages 1 and 2 only; one of 2 TiB all, in the order of the trace.
    let given = [
        request(0, Read, 804, 16),
        request(1, Write, 8, 16),
        request(2, Write, 812, 20),
        request(3, Trim, 0, 24),
        request(4, Trim, 4000, 8),
        request(5, Trim, 4, u32::MAX),
    ];
    let (out, report) = map(&given, AddressMap::DENSE, 48);
    assert_eq!(
        out,
        [
            request(0, Read, 4, 16),
            request(1, Write, 24, 16),
            request(2, Write, 12, 12),
            request(2, Write, 40, 8),
            request(3, Trim, 24, 16),
            request(5, Trim, 24, 16),
            request(5, Trim, 0, 24),
            request(5, Trim, 40, 8),
        ]
    );
    assert_eq!(report, Ok(MapReport { requests: 6, wrapped: 0, split: 2, pages: 6, trims_left_out: 1, shared: None }));
    let (_, error) = map(&given, AddressMap::DENSE, 47);
    assert_eq!(
        error.unwrap_err(),
        "the trace touches more than 5 pages of 4 KiB (request 3); the drive has 5: \
         choose a larger drive or --addresses scale"
    );
}

#[test]
fn settings_are_checked() {
    let new = |page, sectors| Mapped::new(Given(Vec::new()), AddressMap::Dense { page: Bytes(page) }, sectors).is_ok();
    assert!(new(4096, 8) && !new(4096, 7) && !new(1000, 100) && !new(0, 100));
    assert!(Mapped::new(Given(Vec::new()), AddressMap::Wrap, 0).is_err());
    assert_eq!("dense".parse(), Ok(AddressMap::DENSE));
    assert_eq!(
        "round".parse::<AddressMap>().unwrap_err().to_string(),
        "addresses: found \"round\", expected wrap, reject, dense, compact, scale or scale:SHARE with a share up to 1"
    );
    let mapped = Mapped::new(Given(vec![request(0, Read, 0, 1)]), AddressMap::Reject, 8).unwrap();
    assert_eq!(mapped.remaining(), Some(1));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    /// Sector by sector: the order stays, each sector of the trace has one place, and no place serves two.
    #[test]
    fn dense_is_one_to_one(rows in prop::collection::vec((0u64..4000, 1u32..70, any::<bool>()), 1..60)) {
        let given: Vec<_> = (0..).zip(&rows)
            .map(|(n, &(first, sectors, write))| request(n, if write { Write } else { Read }, first, sectors))
            .collect();
        let sectors_of = |requests: &[Request]| -> Vec<_> {
            requests.iter().flat_map(|r| (r.first_sector..r.end_sector()).map(|at| (r.arrival, r.kind, at))).collect()
        };
        let (out, report) = map(&given, AddressMap::DENSE, 8 * 520);
        prop_assert!(report.is_ok());
        let (before, after) = (sectors_of(&given), sectors_of(&out));
        prop_assert_eq!(before.len(), after.len());
        let (mut there, mut back) = (HashMap::new(), HashMap::new());
        for ((arrival, kind, from), (arrival_out, kind_out, to)) in before.into_iter().zip(after) {
            prop_assert_eq!((arrival, kind), (arrival_out, kind_out));
            prop_assert_eq!(*there.entry(from).or_insert(to), to);
            prop_assert_eq!(*back.entry(to).or_insert(from), from);
            prop_assert_eq!(from % 8, to % 8);
        }
    }
}
