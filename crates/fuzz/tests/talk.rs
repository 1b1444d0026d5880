//! Talk of NBD, without I/O: options and requests that clients send, and replies of servers. `crates/nvme/tests` do the same for
//! sessions of NVMe/TCP and for functions behind vfio-user.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use flashwright_block::{Rng, Seed, below, chance};
use flashwright_serve::command::{Taken, take};
use flashwright_serve::negotiate::{Export, Negotiation, Progress};
use flashwright_serve::remote::{Known, Replies, Reply};
use flashwright_serve::wire::{self, Kind, PAYLOAD_MAX, REQUEST_BYTES};
use flashwright_testing::Rounds;
use std::collections::BTreeMap;

const BYTES: u64 = 64 << 20;
const BLOCK: u64 = 512;
/// Streams of messages in a round.
const STREAMS: u64 = 100;
/// Rounds in `make test`.
const USUAL: u64 = 100;

/// Numbers at which readers break.
const NUMBERS: [u64; 14] = [
    0,
    1,
    511,
    512,
    4096,
    BYTES - BLOCK,
    BYTES,
    (1 << 25) - 512,
    1 << 25,
    (1 << 31) - 1,
    (1 << 32) - 1,
    1 << 32,
    u64::MAX - 511,
    u64::MAX,
];

fn number(rng: &mut Rng) -> u64 {
    if chance(rng, 0.6) { 8 * BLOCK * below(rng, BYTES / BLOCK / 8) } else { pick(rng, &NUMBERS) }
}

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[usize::try_from(below(rng, from.len() as u64)).unwrap()]
}

fn some_bytes(rng: &mut Rng, most: u64) -> Vec<u8> {
    (0..below(rng, most)).map(|_| below(rng, 256) as u8).collect()
}

/// Changes, leaves out, puts in or cuts off bytes.
fn wound(rng: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..pick(rng, &[0, 0, 1, 1, 3]) {
        let at = usize::try_from(below(rng, bytes.len() as u64 + 1)).unwrap();
        let end = (at + 1 + usize::try_from(below(rng, 8)).unwrap()).min(bytes.len());
        match below(rng, 4) {
            0 if at < bytes.len() => bytes[at] ^= 1 << below(rng, 8),
            1 => drop(bytes.drain(at..end)),
            2 => drop(bytes.splice(at..at, some_bytes(rng, 9))),
            _ => bytes.truncate(at),
        }
    }
}

fn export(rng: &mut Rng) -> Export {
    let (name, description) = ("drive".to_owned(), "a drive".to_owned());
    Export { name, description, bytes: BYTES, minimum: 512, preferred: 4096, read_only: chance(rng, 0.1) }
}

fn option(rng: &mut Rng, out: &mut Vec<u8>) {
    let context = *b"base:allocation";
    let data = match below(rng, 5) {
        0 => Vec::new(),
        1 => [&[0, 0, 0, 5][..], b"drive", &[0, 1, 0, 3]].concat(),
        2 => [&[0; 4][..], &[0, 0, 0, 1, 0, 0, 0, 15], &context].concat(),
        3 => vec![0; 6],
        _ => some_bytes(rng, 80),
    };
    let stated = if chance(rng, 0.95) { data.len() as u64 } else { number(rng) };
    out.extend(wire::OPTION_MAGIC.to_be_bytes());
    out.extend((below(rng, 13) as u32).to_be_bytes());
    out.extend((stated as u32).to_be_bytes());
    out.extend(data);
}

fn request(rng: &mut Rng, out: &mut Vec<u8>) {
    let kind = below(rng, 10) as u16;
    let length = if chance(rng, 0.7) { BLOCK * below(rng, 9) } else { number(rng) } as u32;
    let flags = if chance(rng, 0.7) { 0 } else { below(rng, 1 << 16) as u16 };
    wire::Head::put(out, flags, kind, below(rng, u64::MAX), number(rng), length);
    if kind == 1 && length <= 4096 {
        out.resize(out.len() + length as usize, 9);
    }
}

/// What a client sends goes through negotiation and requests as a connection takes it. Returns how many messages were looked at.
fn client(rng: &mut Rng) -> u64 {
    let export = export(rng);
    let mut input = pick(rng, &[3u32, 3, 3, 1, 0, u32::MAX]).to_be_bytes().to_vec();
    (0..below(rng, 4)).for_each(|_| option(rng, &mut input));
    if chance(rng, 0.8) {
        input.extend(
            [&wire::OPTION_MAGIC.to_be_bytes()[..], &7u32.to_be_bytes(), &6u32.to_be_bytes(), &[0; 6]].concat(),
        );
    }
    (0..below(rng, 9)).for_each(|_| request(rng, &mut input));
    wound(rng, &mut input);
    let (mut negotiation, mut rest, mut looked) = (Negotiation::default(), &input[..], 0);
    let agreed = loop {
        let mut out = Vec::new();
        let (taken, progress) = negotiation.step(&export, rest, &mut out);
        assert!(taken <= rest.len() && out.len() < 4096, "{} B of an answer", out.len());
        rest = &rest[taken..];
        looked += 1;
        match progress {
            Progress::Answered => assert!(taken > 0, "it goes on with the same message"),
            Progress::Transmission(agreed) => break agreed,
            Progress::More | Progress::Ended | Progress::Broken(_) => return looked,
        }
    };
    loop {
        looked += 1;
        let (taken, found) = take(rest, &export, agreed.allocation);
        match found {
            Taken::Command(command, data) => {
                let Some(end) = command.offset.checked_add(u64::from(command.length)) else { panic!("{command:?}") };
                assert!(end <= BYTES && command.offset.is_multiple_of(BLOCK), "{command:?}");
                assert!(u64::from(command.length).is_multiple_of(BLOCK), "{command:?}");
                let carries = matches!(command.kind, Kind::Write).then_some(command.length).unwrap_or_default();
                assert_eq!(data.len(), carries as usize, "{command:?}");
                let changes = matches!(command.kind, Kind::Write | Kind::Trim | Kind::WriteZeroes);
                assert!(!(changes && export.read_only), "{command:?}");
                assert!(!matches!(command.kind, Kind::Read) || command.length <= PAYLOAD_MAX, "{command:?}");
            }
            Taken::More(needed) => {
                assert!(
                    needed > rest.len() && needed <= REQUEST_BYTES + PAYLOAD_MAX as usize,
                    "{needed} B are awaited"
                );
                return looked;
            }
            Taken::Refused { why, .. } => assert!(!why.is_empty()),
            Taken::Disconnect | Taken::Broken(_) => return looked,
        }
        assert!(taken > 0 && taken <= rest.len(), "{taken} B of {}", rest.len());
        rest = &rest[taken..];
    }
}

/// Requests that a client has sent: the bytes that each still waits for.
#[derive(Default)]
struct Sent(BTreeMap<u64, u64>);

impl Known for Sent {
    fn expects(&self, cookie: u64) -> Option<u64> {
        self.0.get(&cookie).copied()
    }
    fn brought(&mut self, cookie: u64, bytes: u64) -> bool {
        let Some(left) = self.0.get_mut(&cookie) else { return false };
        let fits = bytes <= *left;
        *left = left.saturating_sub(bytes);
        fits
    }
}

fn chunk(rng: &mut Rng, out: &mut Vec<u8>) {
    let (cookie, length) = (below(rng, 9), pick(rng, &[0u32, 8, 512, 4096]));
    let head = |flags: u16, kind: u16, length: u32| {
        let magic = 0x668e_33efu32.to_be_bytes();
        [&magic[..], &flags.to_be_bytes(), &kind.to_be_bytes(), &cookie.to_be_bytes(), &length.to_be_bytes()].concat()
    };
    match below(rng, 5) {
        0 => {
            let errno = pick(rng, &[0u32, 0, 5, u32::MAX]);
            out.extend([&0x6744_6698u32.to_be_bytes()[..], &errno.to_be_bytes(), &cookie.to_be_bytes()].concat());
            out.resize(out.len() + length as usize, 1);
        }
        1 => {
            let why = some_bytes(rng, 300);
            let stated = if chance(rng, 0.9) { why.len() as u64 } else { number(rng) };
            out.extend(head(1, 0x8001, why.len() as u32 + 6));
            out.extend([&5u32.to_be_bytes()[..], &(stated as u16).to_be_bytes(), &why].concat());
        }
        2 => out.extend(
            [head(1, 2, 12), [number(rng).to_be_bytes().to_vec(), length.to_be_bytes().to_vec()].concat()].concat(),
        ),
        3 => out.extend(head(below(rng, 2) as u16, below(rng, 1 << 16) as u16, number(rng) as u32)),
        _ => {
            out.extend([head(below(rng, 2) as u16, 1, length + 8), number(rng).to_be_bytes().to_vec()].concat());
            out.resize(out.len() + length as usize, 1);
        }
    }
}

/// What a server answers, in parts of any length. Returns how many chunks it sent.
fn server(rng: &mut Rng) -> u64 {
    let mut sent = Sent((0..8).map(|cookie| (cookie, if cookie < 6 { 4096 } else { 0 })).collect());
    let (mut input, count) = (Vec::new(), 1 + below(rng, 9));
    (0..count).for_each(|_| chunk(rng, &mut input));
    wound(rng, &mut input);
    let (mut replies, mut rest) = (Replies::default(), &input[..]);
    while !rest.is_empty() {
        let part = (1 + usize::try_from(below(rng, 600)).unwrap()).min(rest.len());
        let taken = replies.take(&rest[..part], &mut sent, |sent, reply| {
            let cookie = match reply {
                Reply::Done(cookie) => cookie,
                Reply::Failed(cookie, _, why) => {
                    let is_odd = |each: char| each.is_whitespace() && each != ' ';
                    assert!(why.len() < 20_000 && !why.contains(is_odd), "{why:?}");
                    cookie
                }
            };
            assert!(sent.0.remove(&cookie).is_some(), "a request is answered twice");
        });
        if taken.is_err() {
            break;
        }
        rest = &rest[part..];
    }
    count
}

fn go_on(name: &'static str, one: fn(&mut Rng) -> u64) {
    let mut rounds = Rounds::new(name, USUAL);
    while let Some(seed) = rounds.next_seed() {
        let mut rng = Seed(seed).stream(name);
        let looked = (0..STREAMS).map(|_| one(&mut rng)).sum();
        rounds.count(looked);
    }
}

#[test]
fn clients_of_nbd() {
    go_on("messages of clients of NBD", client);
}

#[test]
fn servers_of_nbd() {
    go_on("replies of servers of NBD", server);
}
