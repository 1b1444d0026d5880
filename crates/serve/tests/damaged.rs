//! Clients that send what none should: their connection ends, and the drive lives on with its data unharmed.

use crate::client::{Client, READ, SMALL, WRITE, serve};
use flashwright_serve::Pace;
use flashwright_serve::wire::{self, Head, option};
use proptest::prelude::*;
use std::io::Write;

/// A stream of a well-behaved client: its options, and some requests that read or write past the first MiB.
fn stream(requests: &[(u16, u16, u64, u32)]) -> Vec<u8> {
    let mut all = 3u32.to_be_bytes().to_vec();
    for (kind, length) in [(option::STRUCTURED_REPLY, 0u32), (option::LIST, 0), (option::GO, 6)] {
        all.extend(wire::OPTION_MAGIC.to_be_bytes());
        all.extend(kind.to_be_bytes());
        all.extend(length.to_be_bytes());
        all.resize(all.len() + length as usize, 0);
    }
    for (at, (flags, kind, page, pages)) in requests.iter().enumerate() {
        Head::put(&mut all, *flags, *kind, at as u64, (1 << 20) + page * 4096, pages * 4096);
        all.resize(all.len() + if *kind == WRITE { *pages as usize * 4096 } else { 0 }, 9);
    }
    all
}

/// One damage: bytes overwritten, left out or inserted, at a place given as a share of the stream.
#[derive(Clone, Debug)]
enum Damage {
    Flip(f64, u8),
    Cut(f64),
    Drop(f64, usize),
    Insert(f64, Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (0.0..1.0, 1u8..).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        (0.0..1.0).prop_map(Damage::Cut),
        (0.0..1.0, 1usize..40).prop_map(|(at, count)| Damage::Drop(at, count)),
        (0.0..1.0, prop::collection::vec(any::<u8>(), 1..40)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        // Most damage goes where the structure is: the squares of shares lie near the beginning.
        let place =
            |share: f64, length: usize| ((share * share * length as f64) as usize).min(length.saturating_sub(1));
        match self {
            Self::Flip(at, bits) => {
                let at = place(*at, bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= bits;
                }
            }
            Self::Cut(at) => bytes.truncate(place(*at, bytes.len())),
            Self::Drop(at, count) => {
                let at = place(*at, bytes.len());
                drop(bytes.drain(at..(at + count).min(bytes.len())));
            }
            Self::Insert(at, new) => {
                let at = place(*at, bytes.len());
                drop(bytes.splice(at..at, new.iter().copied()));
            }
        }
    }
}

/// Whether a stream, read as the server reads it, may write into the first MiB, which the test looks at afterwards.
fn may_touch_the_kept(bytes: &[u8]) -> bool {
    bytes.windows(28).any(|window| {
        let head = Head::parse(window.try_into().expect("28 bytes"));
        head.is_some_and(|head| head.offset < 1 << 20 && !matches!(head.kind, None | Some(wire::Kind::Read)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn the_drive_survives_any_stream(
        streams in prop::collection::vec(
            (prop::collection::vec((0u16..32, 0u16..9, 0u64..900, 1u32..5), 0..20), prop::collection::vec(damage(), 0..4)),
            1..6,
        ),
        paced in any::<bool>(),
    ) {
        let server = serve(SMALL, if paced { Pace::Real { time_scale: 0.01 } } else { Pace::None });
        let mut keeper = Client::begun(&server);
        let kept: Vec<u8> = (0..1u32 << 20).map(|at| (at % 253) as u8).collect();
        keeper.write(0, &kept);
        let address = server.uris()[0].trim_start_matches("nbd://").to_owned();
        for (requests, damages) in &streams {
            let mut bytes = stream(requests);
            damages.iter().for_each(|each| each.apply(&mut bytes));
            if may_touch_the_kept(&bytes) {
                continue;
            }
            let mut one = std::net::TcpStream::connect(&address).expect("it listens");
            // The server may have ended the connection before all was sent.
            let _ = one.write_all(&bytes);
        }
        prop_assert!(keeper.ask(0, READ, 0, 1 << 20, &[]).expect("it can be read") == kept, "data changed");
        let stopped = server.stop();
        let drive = stopped.served;
        prop_assert!(drive.is_some(), "a thread panicked");
        let violations = drive.map(|drive| drive.ssd().audit()).unwrap_or_default();
        prop_assert!(violations.is_empty(), "{violations:?}");
    }
}

#[test]
fn a_broken_client_is_counted_and_others_go_on() {
    let server = serve(SMALL, Pace::None);
    let mut good = Client::begun(&server);
    for bytes in [vec![1; 28], {
        let mut all = Vec::new();
        Head::put(&mut all, 0, WRITE, 1, 0, u32::MAX);
        all
    }] {
        let mut bad = Client::begun(&server);
        bad.stream.write_all(&bytes).unwrap();
        assert!(bad.is_ended());
    }
    let mut vanishing = Client::begun(&server);
    vanishing.send(0, WRITE, 0, 4096, &[1; 100]);
    drop(vanishing);
    assert_eq!(good.read(0, 4096), [0; 4096], "half a write is none");
    while server.stats()["served"]["connections"]["open"] != 1 {
        std::thread::yield_now();
    }
    assert_eq!(server.stats()["served"]["connections"]["broken"], 3);
}
