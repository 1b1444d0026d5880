//! A drive with zones, as hosts of NVMe/TCP see it: the traps of zoned namespaces one by one, and a hundred thousand commands against
//! a model in the plainest words.

use crate::client::drive;
use crate::namespaces::{Image, Random, of};
use crate::nvmehost::{Answer, Carry, Host, sqe};
use crate::vfiohost::{self, DATA, Machine};
use flashwright_block::{BlockDevice as _, Completion, Seed};
use flashwright_nvme::wire::{Sqe, Status, put, u16_at, u32_at, u64_at};
use flashwright_serve::{Pace, Remote, RemoteOptions, Server, Settings, Uri};
use flashwright_sim::{LiveRun, Precondition};
use flashwright_ssd::Config;

const REAL: Pace = Pace::Real { time_scale: 0.01 };
/// A page, which is a block of the namespace.
const PAGE: usize = 4096;
/// Blocks from one zone to the next, and those that can be written.
const SIZE: u64 = 64;
const CAPACITY: u64 = 48;
const ZONES: u64 = 20;
const OPEN: usize = 3;
const ACTIVE: usize = 5;
const DRIVE: &str = "[geometry]\nchannels = 2\ndies-per-channel = 2\nplanes-per-die = 1\nblocks-per-plane = 24\n\
                     pages-per-block = 16\n[ftl]\nscheme = \"zoned\"\nzoned.zone-capacity = \"192 KiB\"\n\
                     zoned.max-open-zones = 3\nzoned.max-active-zones = 5\n[capacity]\nutilization = 0.64\n";
const MOUNTS: &str = "[recovery]\nmount-by = \"scan\"\n";
/// CC: all command sets, and the sizes of queue entries.
const CONFIG: u32 = 6 << 4 | 6 << 16 | 4 << 20 | 1;

const BOUNDARY: Status = Status::ZONE_BOUNDARY;
const FULL: Status = Status::ZONE_FULL;
const OFF_POINTER: Status = Status::ZONE_INVALID_WRITE;
const TRANSITION: Status = Status::ZONE_TRANSITION;
const OK: Status = Status::SUCCESS;

/// Numbers of states in reports.
const EMPTY: u8 = 1;
const IMPLICIT: u8 = 2;
const EXPLICIT: u8 = 3;
const CLOSED: u8 = 4;
const FILLED: u8 = 14;

/// Actions of Zone Management Send.
const CLOSE: u32 = 1;
const FINISH: u32 = 2;
const TO_OPEN: u32 = 3;
const RESET: u32 = 4;
const OFFLINE: u32 = 5;
const ALL: u32 = 1 << 8;

fn serve_on(drive: LiveRun, pace: Pace) -> Server<LiveRun> {
    let settings = Settings { nvme_tcp: vec!["tcp:127.0.0.1:0".parse().unwrap()], pace, ..Settings::default() };
    Server::start(drive, &settings).unwrap()
}

/// A host that knows zones, with an I/O queue.
fn host(server: &Server<LiveRun>) -> (Host, Host) {
    let mut admin = Host::admin(server, 0);
    admin.set_config(0);
    admin.set_config(CONFIG);
    admin.queue_of(server)
}

/// A command for blocks, with the number of these from 0.
fn at_block(opcode: u8, first: u64, more: [u32; 4]) -> Sqe {
    let [low, high] = [first & 0xffff_ffff, first >> 32].map(|half| u32::try_from(half).unwrap());
    sqe(opcode, 1, [low, high, more[0], more[1], more[2], more[3]])
}

fn blocks(data: &[u8]) -> u32 {
    u32::try_from(data.len() / PAGE).unwrap()
}

fn write(queue: &mut Host, first: u64, data: &[u8]) -> Status {
    queue.ask(of(1, 0x01, first, blocks(data)), data, Carry::Asked).cqe.status
}

/// Appends to the zone that begins at a block. Returns the status, and the block where the data went.
fn append(queue: &mut Host, start: u64, data: &[u8]) -> (Status, u64) {
    let cqe = queue.ask(of(1, 0x7d, start, blocks(data)), data, Carry::Asked).cqe;
    (cqe.status, cqe.result)
}

fn manage(queue: &mut Host, first: u64, action: u32) -> Status {
    queue.ask(at_block(0x79, first, [0, action, 0, 0]), &[], Carry::Inside).cqe.status
}

fn read(queue: &mut Host, first: u64, count: u64) -> Vec<u8> {
    let count = u32::try_from(count).unwrap();
    let answer = queue.get(of(1, 0x02, first, count), count as usize * PAGE);
    assert!(answer.cqe.status.is_ok(), "{:?}", answer.cqe);
    answer.data
}

/// A report of zones from a block on, into so many bytes: options, and whether it is partial.
fn report(queue: &mut Host, first: u64, bytes: usize, options: u32, partial: bool) -> Answer {
    let dwords = u32::try_from(bytes / 4 - 1).unwrap();
    queue.get(at_block(0x7a, first, [dwords, options << 8 | u32::from(partial) << 16, 0, 0]), bytes)
}

/// The zones of a report: state, start, and write pointer.
fn zones_of(answer: &Answer) -> Vec<(u8, u64, u64)> {
    assert!(answer.cqe.status.is_ok(), "{:?}", answer.cqe);
    let all = answer.data[64..].chunks_exact(64).take_while(|zone| zone[0] != 0);
    all.map(|zone| (zone[1] >> 4, u64_at(zone, 16), u64_at(zone, 24))).collect()
}

/// The state and the write pointer of the zone at a block, from its start.
fn zone(queue: &mut Host, first: u64) -> (u8, u64) {
    let (state, start, pointer) = zones_of(&report(queue, first, 128, 0, true))[0];
    (state, pointer.wrapping_sub(start))
}

fn pages(fill: u8, count: u64) -> Vec<u8> {
    vec![fill; usize::try_from(count).unwrap() * PAGE]
}

#[test]
fn a_host_finds_what_a_kernel_asks_of_zoned_namespaces() {
    for pace in [Pace::None, REAL] {
        let server = serve_on(drive(DRIVE), pace);
        // A host that has enabled the NVM command set alone finds no namespace.
        let mut simple = Host::admin(&server, 0);
        assert_eq!((simple.list(0x02), simple.identify(0x00, 1).data), (vec![], vec![0; 4096]));
        drop(simple);
        let (mut admin, mut queue) = host(&server);
        assert_eq!(admin.property(0x00, 8).cqe.result >> 37 & 0xff, 1 | 1 << 6);
        let identify = |admin: &mut Host, cns: u32, set: u32, nsid: u32| {
            admin.get(sqe(0x06, nsid, [cns, set << 24, 0, 0, 0, 0]), 4096)
        };
        assert_eq!(identify(&mut admin, 0x1c, 0, 0).data[0], 0b101, "NVM and zoned namespaces");
        for (cns, set, expected) in [(0x02, 0, 1), (0x07, 0, 0), (0x07, 2, 1), (0x10, 0, 1), (0x1a, 2, 1), (0x1a, 0, 0)]
        {
            assert_eq!(u32_at(&identify(&mut admin, cns, set, 0).data, 0), expected, "{cns:x} of {set}");
        }
        let space = identify(&mut admin, 0x00, 0, 1).data;
        assert_eq!([0, 8].map(|at| u64_at(&space, at)), [ZONES * SIZE, ZONES * CAPACITY]);
        assert_eq!((space[26], u64_at(&space, 48), space[33]), (1, ZONES * CAPACITY * 4096, 1));
        let zoned = identify(&mut admin, 0x05, 2, 1).data;
        assert_eq!((u16_at(&zoned, 0), u16_at(&zoned, 2)), (0, 1), "reads cross zones");
        assert_eq!((u32_at(&zoned, 4) as usize + 1, u32_at(&zoned, 8) as usize + 1), (ACTIVE, OPEN));
        assert_eq!((u64_at(&zoned, 2816 + 16), zoned[2816 + 24]), (SIZE, 0), "power of two; no extensions");
        assert_eq!(identify(&mut admin, 0x05, 0, 1).data, [0; 4096]);
        assert_eq!(identify(&mut admin, 0x05, 1, 1).cqe.status, Status::INVALID_FIELD, "key-value");
        assert_eq!(identify(&mut admin, 0x06, 2, 0).data[0], 0, "ZASL: as MDTS");
        assert_eq!(identify(&mut admin, 0x06, 0, 0).data[1], 13, "WZSL: 32 MiB");
        let named = identify(&mut admin, 0x03, 0, 1).data;
        assert_eq!(named[40..45], [4, 1, 0, 0, 2]);
        let effects =
            |admin: &mut Host, set: u32| admin.get(sqe(0x02, 0, [5 | 1023 << 16, 0, 0, 0, set << 24, 0]), 4096).data;
        for (set, expected) in [(0, 0), (2, 1)] {
            let log = effects(&mut admin, set);
            let supported = |opcode: usize| u32_at(&log, 1024 + 4 * opcode) & 1;
            assert_eq!([0x79, 0x7a, 0x7d].map(supported), [expected; 3]);
            assert_eq!((supported(0x01), supported(0x02)), (1, 1));
        }
        assert_eq!(zones_of(&report(&mut queue, 0, 4096, 0, true)).len() as u64, ZONES);
        assert_eq!(
            admin.ask(sqe(0x0a, 0, [0x19, 0, 0, 0, 0, 0]), &[], Carry::Inside).cqe.result,
            0,
            "the one combination"
        );
        assert!(server.stop().served.is_some());
    }
}

#[test]
fn trap_15_an_append_names_a_zone_and_tells_its_block() {
    for pace in [Pace::None, REAL] {
        let server = serve_on(drive(DRIVE), pace);
        let (_admin, mut queue) = host(&server);
        assert_eq!(append(&mut queue, SIZE, &pages(1, 2)), (OK, SIZE));
        assert_eq!(append(&mut queue, SIZE, &pages(2, 1)), (OK, SIZE + 2));
        assert_eq!(append(&mut queue, SIZE + 3, &pages(3, 1)).0, Status::INVALID_FIELD);
        assert_eq!(append(&mut queue, ZONES * SIZE, &pages(3, 1)).0, Status::LBA_OUT_OF_RANGE);
        assert_eq!(append(&mut queue, SIZE, &pages(3, 257)).0, Status::INVALID_FIELD, "longer than ZASL");
        assert_eq!(append(&mut queue, SIZE, &pages(3, CAPACITY - 2)).0, BOUNDARY);
        assert_eq!(append(&mut queue, SIZE, &pages(3, CAPACITY - 3)), (OK, SIZE + 3), "what is left");
        assert_eq!(append(&mut queue, SIZE, &pages(4, 1)).0, FULL);
        assert_eq!(read(&mut queue, SIZE, 4), [pages(1, 2), pages(2, 1), pages(3, 1)].concat());
    }
}

#[test]
fn trap_16_appends_at_once_go_side_by_side() {
    for pace in [Pace::None, REAL] {
        let server = serve_on(drive(&format!("{DRIVE}[host]\nqueue-depth = 32\n")), pace);
        let (_admin, mut queue) = host(&server);
        let sent: Vec<u16> =
            (0..24u8).map(|at| queue.send(of(1, 0x7d, 2 * SIZE, 2), &pages(at + 1, 2), Carry::Inside, 0)).collect();
        let mut places = vec![0; 24];
        for _ in 0..24 {
            let (_, header, _) = queue.receive().expect("an answer");
            let cqe = flashwright_nvme::Cqe::parse(header[8..24].try_into().unwrap());
            assert!(cqe.status.is_ok(), "{cqe:?}");
            let at = sent.iter().position(|cid| *cid == cqe.cid).expect("it was sent");
            places[at] = cqe.result;
        }
        let mut sorted = places.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..24).map(|at| 2 * SIZE + 2 * at).collect::<Vec<_>>());
        for (at, place) in (0u8..).zip(places) {
            assert_eq!(read(&mut queue, place, 2), pages(at + 1, 2));
        }
        assert_eq!(zone(&mut queue, 2 * SIZE), (FILLED, u64::MAX - 2 * SIZE));
    }
}

#[test]
fn trap_17_of_several_rules_the_first_is_told() {
    let server = serve_on(drive(DRIVE), Pace::None);
    let (_admin, mut queue) = host(&server);
    let one = || pages(1, 1);
    assert_eq!(write(&mut queue, 3, &one()), OFF_POINTER, "empty, and not at its start");
    assert_eq!(write(&mut queue, 0, &pages(1, CAPACITY + 1)), BOUNDARY);
    assert_eq!(write(&mut queue, 3, &pages(1, CAPACITY)), OFF_POINTER, "the pointer before the boundary");
    assert_eq!(write(&mut queue, ZONES * SIZE - 1, &pages(1, 2)), Status::LBA_OUT_OF_RANGE, "the end before all");
    // As many are active as may be: 3 explicitly open, 2 closed.
    for at in 0..5 {
        assert_eq!(write(&mut queue, at * SIZE, &one()), OK);
    }
    for at in 0..3 {
        assert_eq!(manage(&mut queue, at * SIZE, TO_OPEN), OK);
    }
    let states: Vec<u8> = (0..6).map(|at| zone(&mut queue, at * SIZE).0).collect();
    assert_eq!(states, [EXPLICIT, EXPLICIT, EXPLICIT, CLOSED, CLOSED, EMPTY]);
    assert_eq!(write(&mut queue, 5 * SIZE, &one()), Status::TOO_MANY_ACTIVE_ZONES, "before open");
    assert_eq!(write(&mut queue, 5 * SIZE, &pages(1, CAPACITY + 1)), BOUNDARY, "before active");
    assert_eq!(write(&mut queue, 3 * SIZE + 1, &one()), Status::TOO_MANY_OPEN_ZONES);
    assert_eq!(append(&mut queue, 3 * SIZE, &one()).0, Status::TOO_MANY_OPEN_ZONES);
    assert_eq!(manage(&mut queue, 3 * SIZE, TO_OPEN), Status::TOO_MANY_OPEN_ZONES);
    assert_eq!(manage(&mut queue, 5 * SIZE, TO_OPEN), Status::TOO_MANY_ACTIVE_ZONES);
    assert_eq!(manage(&mut queue, 5 * SIZE, CLOSE), TRANSITION);
    assert_eq!(manage(&mut queue, 5 * SIZE + 1, CLOSE), Status::INVALID_FIELD, "the start before the state");
    assert_eq!(manage(&mut queue, 0, FINISH), OK);
    assert_eq!(write(&mut queue, 1, &one()), FULL, "at where it was written to");
    assert_eq!(write(&mut queue, 9, &pages(1, CAPACITY)), FULL, "full before the pointer and the boundary");
    assert_eq!([TO_OPEN, CLOSE, OFFLINE].map(|action| manage(&mut queue, 0, action)), [TRANSITION; 3]);
    assert_eq!([FINISH, RESET, RESET, FINISH].map(|action| manage(&mut queue, 0, action)), [OK; 4]);
    // What there is not: actions, extensions, zones.
    for action in [0, 6, 0x10, 0x11, 0xff] {
        assert_eq!(manage(&mut queue, 0, action), Status::INVALID_FIELD);
    }
    assert_eq!(manage(&mut queue, ZONES * SIZE, RESET), Status::LBA_OUT_OF_RANGE);
    assert_eq!(manage(&mut queue, u64::MAX, RESET), Status::LBA_OUT_OF_RANGE);
    let other = |nsid: u32| sqe(0x79, nsid, [0, 0, 0, RESET, 0, 0]);
    for (nsid, expected) in
        [(0, Status::INVALID_NAMESPACE), (2, Status::INVALID_FIELD), (u32::MAX, Status::INVALID_NAMESPACE)]
    {
        assert_eq!(queue.ask(other(nsid), &[], Carry::Inside).cqe.status, expected);
    }
    // Zeros and copies are writes; a hint to deallocate changes nothing.
    let zeroes =
        |queue: &mut Host, first: u64, count: u32| queue.ask(of(1, 0x08, first, count), &[], Carry::Inside).cqe.status;
    assert_eq!(zeroes(&mut queue, 1, 2), FULL);
    assert_eq!(zeroes(&mut queue, SIZE + 1, 2), OK);
    assert_eq!(zeroes(&mut queue, SIZE, 8193), Status::INVALID_FIELD, "longer than WZSL");
    let mut range = [0; 32];
    put(&mut range, 8, &SIZE.to_le_bytes());
    assert_eq!(queue.ask(of(1, 0x19, SIZE + 3, 1), &range, Carry::Inside).cqe.status, OK);
    assert_eq!(queue.ask(of(1, 0x19, SIZE + 3, 1), &range, Carry::Inside).cqe.status, OFF_POINTER);
    let mut hint = [0; 16];
    put(&mut hint, 4, &4u32.to_le_bytes());
    put(&mut hint, 8, &SIZE.to_le_bytes());
    assert_eq!(queue.ask(sqe(0x09, 1, [0, 4, 0, 0, 0, 0]), &hint, Carry::Inside).cqe.status, OK);
    assert_eq!(read(&mut queue, SIZE, 5), [one(), pages(0, 2), one(), pages(0, 1)].concat());
    // What a host does wrong is no fault of the drive.
    assert_eq!(server.stats()["served"]["commands_failed"], 0);
}

#[test]
fn trap_18_an_implicitly_open_zone_makes_room_and_all_means_those_that_change() {
    let server = serve_on(drive(DRIVE), Pace::None);
    let (_admin, mut queue) = host(&server);
    let states = |queue: &mut Host| (0..6).map(|at| zone(queue, at * SIZE).0).collect::<Vec<_>>();
    assert_eq!(manage(&mut queue, 0, TO_OPEN), OK);
    for at in 1..5 {
        assert_eq!(write(&mut queue, at * SIZE, &pages(1, 1)), OK);
    }
    assert_eq!(states(&mut queue), [EXPLICIT, CLOSED, CLOSED, IMPLICIT, IMPLICIT, EMPTY], "the eldest were closed");
    assert_eq!(manage(&mut queue, 3 * SIZE, CLOSE), OK);
    assert_eq!(manage(&mut queue, 7, TO_OPEN | ALL), Status::TOO_MANY_OPEN_ZONES, "four would be explicitly");
    assert_eq!(states(&mut queue), [EXPLICIT, CLOSED, CLOSED, CLOSED, IMPLICIT, EMPTY], "and none is");
    assert_eq!(manage(&mut queue, SIZE, RESET), OK);
    assert_eq!(manage(&mut queue, 7, TO_OPEN | ALL), OK);
    assert_eq!(states(&mut queue), [EXPLICIT, EMPTY, EXPLICIT, EXPLICIT, CLOSED, EMPTY]);
    assert_eq!(manage(&mut queue, 0, CLOSE | ALL), OK);
    assert_eq!(states(&mut queue), [CLOSED, EMPTY, CLOSED, CLOSED, CLOSED, EMPTY]);
    assert_eq!(manage(&mut queue, 0, FINISH | ALL), OK);
    assert_eq!(states(&mut queue), [FILLED, EMPTY, FILLED, FILLED, FILLED, EMPTY]);
    assert_eq!(manage(&mut queue, 0, OFFLINE | ALL), OK, "none is read-only");
    assert_eq!(manage(&mut queue, 0, RESET | ALL), OK);
    assert_eq!(states(&mut queue), [EMPTY; 6]);
    assert_eq!([TO_OPEN, CLOSE, FINISH, RESET].map(|action| manage(&mut queue, 0, action | ALL)), [OK; 4]);
}

#[test]
fn traps_19_and_20_reports_count_and_cut_as_asked() {
    let server = serve_on(drive(DRIVE), Pace::None);
    let (_admin, mut queue) = host(&server);
    assert_eq!(write(&mut queue, 2 * SIZE, &pages(1, 7)), OK);
    assert_eq!(write(&mut queue, 5 * SIZE, &pages(1, CAPACITY)), OK);
    assert_eq!(manage(&mut queue, 6 * SIZE, TO_OPEN), OK);
    assert_eq!(write(&mut queue, 7 * SIZE, &pages(1, 1)), OK);
    assert_eq!(manage(&mut queue, 7 * SIZE, CLOSE), OK);
    let all = report(&mut queue, 0, 64 * 21, 0, false);
    let zones = zones_of(&all);
    assert_eq!((zones.len() as u64, u64_at(&all.data, 0)), (ZONES, ZONES));
    assert!(
        all.data[64..].chunks_exact(64).all(|zone| (zone[0], u64_at(zone, 8)) == (2, CAPACITY)),
        "written in order"
    );
    assert_eq!(zones[2], (IMPLICIT, 2 * SIZE, 2 * SIZE + 7));
    assert_eq!(zones[5], (FILLED, 5 * SIZE, u64::MAX), "no pointer");
    assert_eq!(zones[6], (EXPLICIT, 6 * SIZE, 6 * SIZE));
    assert_eq!(zones[7], (CLOSED, 7 * SIZE, 7 * SIZE + 1));
    assert_eq!(zones[8], (EMPTY, 8 * SIZE, 8 * SIZE));
    // Of a block within a zone, of part of a descriptor, of none.
    for (first, bytes, partial, counted, listed) in [
        (5 * SIZE + 9, 64 * 4, true, 3, 3),
        (5 * SIZE + 9, 64 * 4, false, ZONES - 5, 3),
        (0, 64 * 3 + 60, true, 2, 2),
        (0, 64, true, 0, 0),
        (0, 64, false, ZONES, 0),
        (ZONES * SIZE - 1, 4096, true, 1, 1),
    ] {
        let answer = report(&mut queue, first, bytes, 0, partial);
        let found = zones_of(&answer);
        assert_eq!((u64_at(&answer.data, 0), found.len()), (counted, listed), "{first} {bytes} {partial}");
        assert!(found.first().is_none_or(|zone| zone.1 == first - first % SIZE));
    }
    let of_state = |queue: &mut Host, options: u32| {
        let answer = report(queue, 0, 4096, options, false);
        (u64_at(&answer.data, 0), zones_of(&answer).first().map(|zone| zone.1 / SIZE))
    };
    let expected = [(16, Some(0)), (1, Some(2)), (1, Some(6)), (1, Some(7)), (1, Some(5)), (0, None), (0, None)];
    for (options, expected) in (1..).zip(expected) {
        assert_eq!(of_state(&mut queue, options), expected, "{options}");
    }
    let refused = |queue: &mut Host, first: u64, bytes: usize, options: u32| {
        report(queue, first, bytes, options, false).cqe.status
    };
    assert_eq!(refused(&mut queue, ZONES * SIZE, 4096, 0), Status::LBA_OUT_OF_RANGE);
    assert_eq!(refused(&mut queue, 0, 60, 0), Status::INVALID_FIELD, "no room for its head");
    assert_eq!(refused(&mut queue, 0, 4096, 8), Status::INVALID_FIELD, "no such state");
    assert_eq!(refused(&mut queue, 0, (1 << 20) + 4, 0), Status::INVALID_FIELD, "longer than MDTS");
    let short = at_block(0x7a, 0, [1023, 0, 0, 0]);
    assert_eq!(queue.get(short, 512).cqe.status, Status::SGL_LENGTH, "told longer than there is room for");
    for action in [1, 2] {
        let extended = at_block(0x7a, 0, [1023, action, 0, 0]);
        assert_eq!(queue.get(extended, 4096).cqe.status, Status::INVALID_FIELD);
    }
}

#[test]
fn trap_21_what_was_not_written_reads_as_zeros_and_reads_cross_zones() {
    for pace in [Pace::None, REAL] {
        let server = serve_on(drive(DRIVE), pace);
        let (_admin, mut queue) = host(&server);
        assert_eq!(write(&mut queue, 0, &pages(1, CAPACITY)), OK);
        assert_eq!(write(&mut queue, SIZE, &pages(2, 3)), OK);
        let around = [pages(1, 2), pages(0, SIZE - CAPACITY), pages(2, 3), pages(0, 5)].concat();
        assert_eq!(read(&mut queue, CAPACITY - 2, 26), around);
        // What was padded, and what was reset.
        assert_eq!(manage(&mut queue, SIZE, FINISH), OK);
        assert_eq!(read(&mut queue, CAPACITY - 2, 26), around);
        assert_eq!(queue.ask(of(1, 0x0c, CAPACITY - 2, 26), &[], Carry::Inside).cqe.status, OK);
        assert_eq!(queue.ask(of(1, 0x05, CAPACITY - 2, 26), &around, Carry::Asked).cqe.status, OK);
        assert_eq!(manage(&mut queue, 0, RESET), OK);
        assert_eq!(read(&mut queue, 0, SIZE + 3), [pages(0, SIZE), pages(2, 3)].concat());
        assert_eq!(queue.get(of(1, 0x02, ZONES * SIZE - 1, 2), 2 * PAGE).cqe.status, Status::LBA_OUT_OF_RANGE);
    }
}

#[test]
fn a_virtual_machine_appends_and_is_told_where() {
    let path = std::env::temp_dir().join(format!("flashwright-zones-{}", std::process::id()));
    for pace in [Pace::None, REAL] {
        let settings = Settings { vfio_user: vec![path.clone()], pace, ..Settings::default() };
        let server = Server::start(drive(DRIVE), &settings).unwrap();
        let mut machine = Machine::begun(&server, true, 1);
        machine.fill(DATA, &pages(7, 2));
        let pointer = machine.prps(DATA, 2 * PAGE as u64);
        let to = |opcode: u8, dwords: [u32; 4]| vfiohost::sqe(opcode, 1, [64, 0, dwords[0], dwords[1], 0, 0], pointer);
        for place in [SIZE, SIZE + 2] {
            let cqe = machine.ask(1, to(0x7d, [1, 0, 0, 0]));
            assert_eq!((cqe.status, cqe.result), (OK, place));
        }
        let found = machine.ask(1, to(0x7a, [31, 1 << 16, 0, 0]));
        assert_eq!(found.status, OK);
        let zone = machine.look(DATA + 64, 64);
        assert_eq!((zone[1] >> 4, u64_at(&zone, 16), u64_at(&zone, 24)), (IMPLICIT, SIZE, SIZE + 4));
        machine.fill(DATA, &pages(0, 2));
        assert_eq!(machine.ask(1, to(0x02, [1, 0, 0, 0])).status, OK);
        assert_eq!(machine.look(DATA, 2 * PAGE), pages(7, 2));
        assert_eq!(machine.ask(1, to(0x79, [0, RESET, 0, 0])).status, OK);
        assert_eq!(machine.ask(1, to(0x02, [1, 0, 0, 0])).status, OK);
        assert_eq!(machine.look(DATA, 2 * PAGE), pages(0, 2));
        assert_eq!(machine.ask(1, to(0x79, [0, CLOSE, 0, 0])).status, TRANSITION);
        drop(machine);
        assert!(server.stop().served.is_some());
    }
}

#[test]
fn our_own_host_says_that_it_knows_no_zones() {
    let server = serve_on(drive(DRIVE), Pace::None);
    let uri: Uri = server.uris()[0].parse().unwrap();
    let refused = Remote::open(&uri, RemoteOptions { destroys_data: true, depth: 1, seed: Seed(1) }).err().unwrap();
    assert!(refused.what.contains("without a namespace") && refused.hint.contains("zones"), "{refused:?}");
}

#[test]
fn a_format_resets_all_zones() {
    let server = serve_on(drive(DRIVE), Pace::None);
    let (mut admin, mut queue) = host(&server);
    assert_eq!(write(&mut queue, 0, &pages(1, CAPACITY)), OK);
    assert_eq!(append(&mut queue, 3 * SIZE, &pages(1, 2)).0, OK);
    let format =
        |admin: &mut Host, format: u32| admin.ask(sqe(0x80, 1, [format, 0, 0, 0, 0, 0]), &[], Carry::Inside).cqe.status;
    assert_eq!(format(&mut admin, 0), Status::INVALID_FORMAT, "blocks smaller than pages");
    assert_eq!(format(&mut admin, 1), OK);
    let zones = zones_of(&report(&mut queue, 0, 4096, 0, true));
    assert!(zones.iter().all(|(state, start, pointer)| *state == EMPTY && start == pointer), "{zones:?}");
    assert_eq!(read(&mut queue, 0, 4), pages(0, 4));
    // There is one namespace, of the whole drive.
    let controller = admin.identify(0x01, 0).data;
    assert_eq!(
        (u16_at(&controller, 256) & 1 << 3, u64_at(&controller, 280), u64_at(&controller, 296)),
        (0, ZONES * CAPACITY * 4096, 0)
    );
    assert_eq!(u32_at(&controller, 92) & 1 << 27, 1 << 27, "changed zones are told of");
    assert_eq!(admin.delete(1), Status::INVALID_OPCODE);
}

#[test]
fn a_drive_without_zones_is_served_as_before() {
    let server = serve_on(drive(crate::client::SMALL), Pace::None);
    let mut admin = Host::admin(&server, 0);
    let mut queue = admin.queue(&server, 1);
    assert_eq!(admin.property(0x00, 8).cqe.result >> 37 & 0xff, 1);
    for opcode in [0x79, 0x7d] {
        assert_eq!(queue.ask(sqe(opcode, 1, [0; 6]), &[], Carry::Inside).cqe.status, Status::INVALID_OPCODE);
    }
    assert_eq!(queue.get(sqe(0x7a, 1, [0, 0, 31, 0, 0, 0]), 128).cqe.status, Status::INVALID_OPCODE);
    assert_eq!(admin.log(0xbf, 4096).cqe.status, Status::INVALID_LOG_PAGE);
    let of_zones = |admin: &mut Host, cns: u32| admin.get(sqe(0x06, 1, [cns, 2 << 24, 0, 0, 0, 0]), 4096).cqe.status;
    assert_eq!([0x05, 0x06, 0x07].map(|cns| of_zones(&mut admin, cns)), [Status::INVALID_FIELD; 3]);
    assert_eq!(admin.identify(0x1c, 0).data[0], 1);
    let set = sqe(0x0a, 0, [0x19, 0, 0, 0, 0, 0]);
    assert_eq!(admin.ask(set, &[], Carry::Inside).cqe.status, Status::INVALID_FIELD);
}

#[test]
fn what_knows_no_zones_is_refused_in_a_line() {
    let listen = || vec!["tcp:127.0.0.1:0".parse().unwrap()];
    let refused = |toml: &str, settings: Settings| Server::start(drive(toml), &settings).err().unwrap().to_string();
    let of_nbd = refused(DRIVE, Settings { nbd: listen(), nvme_tcp: listen(), ..Settings::default() });
    assert!(
        of_nbd.starts_with("nbd: found an address") && of_nbd.contains("clients are not told of zones"),
        "{of_nbd}"
    );
    let large = DRIVE.replace("pages-per-block = 16", "pages-per-block = 16\npage-size = \"16 KiB\"");
    let of_pages = refused(&large, Settings { nvme_tcp: listen(), ..Settings::default() });
    assert!(of_pages.starts_with("geometry.mapping-unit: found pages of 16 KiB"), "{of_pages}");
    let odd = DRIVE.replace("zoned.max-open-zones", "zoned.zone-size = \"192 KiB\"\nzoned.max-open-zones");
    let server = serve_on(drive(&odd), Pace::None);
    assert!(server.notes().iter().any(|note| note.contains("only with a power of two")), "{:?}", server.notes());
}

/// What zones a drive has after its power failed, or it was served anew.
fn check_what_was_flushed(queue: &mut Host, more: u64) {
    let states: Vec<(u8, u64)> = (0..6).map(|at| zone(queue, at * SIZE)).collect();
    let no_pointer = |at: u64| u64::MAX - at * SIZE;
    let expected =
        [(CLOSED, 7 + more), (EMPTY, 0), (FILLED, no_pointer(2)), (FILLED, no_pointer(3)), (EMPTY, 0), (CLOSED, 1)];
    assert_eq!(states, expected);
    assert_eq!(read(queue, 0, 8 + more), [pages(1, 7), pages(9, more), pages(0, 1)].concat());
    assert_eq!(read(queue, 2 * SIZE, SIZE), [pages(2, CAPACITY), pages(0, SIZE - CAPACITY)].concat());
    assert_eq!(read(queue, 3 * SIZE, 8), [pages(3, 5), pages(0, 3)].concat());
    assert_eq!(read(queue, 4 * SIZE, 8), pages(0, 8));
    assert_eq!(read(queue, 5 * SIZE, 2), [pages(0, 2)].concat(), "zeros that were written, and what was not");
}

/// Zones in every state, flushed.
fn fill(queue: &mut Host) {
    assert_eq!(write(queue, 0, &pages(1, 7)), OK);
    assert_eq!(manage(queue, SIZE, TO_OPEN), OK);
    assert_eq!(append(queue, 2 * SIZE, &pages(2, CAPACITY)).0, OK);
    assert_eq!(append(queue, 3 * SIZE, &pages(3, 5)).0, OK);
    assert_eq!(manage(queue, 3 * SIZE, FINISH), OK);
    assert_eq!(write(queue, 4 * SIZE, &pages(4, CAPACITY)), OK);
    assert_eq!(manage(queue, 4 * SIZE, RESET), OK);
    assert_eq!(queue.ask(of(1, 0x08, 5 * SIZE, 1), &[], Carry::Inside).cqe.status, OK);
    assert_eq!(queue.ask(sqe(0x00, 1, [0; 6]), &[], Carry::Inside).cqe.status, OK);
}

#[test]
fn zones_survive_a_power_cut() {
    for pace in [Pace::None, REAL] {
        let server = serve_on(drive(&format!("{DRIVE}{MOUNTS}")), pace);
        let (_admin, mut queue) = host(&server);
        fill(&mut queue);
        let control = |name: &str| server.command(name, &serde_json::Map::new()).unwrap();
        control("cut");
        assert_eq!(report(&mut queue, 0, 4096, 0, true).cqe.status, Status::POWER_LOSS);
        assert_eq!(manage(&mut queue, 0, RESET), Status::POWER_LOSS);
        assert_eq!(manage(&mut queue, 0, RESET | ALL), Status::POWER_LOSS);
        assert_eq!(append(&mut queue, 0, &pages(1, 1)).0, Status::POWER_LOSS);
        assert_eq!(queue.get(of(1, 0x02, 0, 1), PAGE).cqe.status, Status::POWER_LOSS);
        control("mount");
        check_what_was_flushed(&mut queue, 0);
        assert_eq!(append(&mut queue, 0, &pages(9, 2)), (OK, 7));
        assert_eq!(zone(&mut queue, 0), (IMPLICIT, 9));
        // A write that was not flushed: the pointer is behind what was begun, and never before what was flushed.
        control("cut");
        control("mount");
        let (state, pointer) = zone(&mut queue, 0);
        assert!(state == CLOSED && (7..=9).contains(&pointer), "{state} {pointer}");
        assert_eq!(read(&mut queue, 0, 7), pages(1, 7));
        assert_eq!(write(&mut queue, pointer, &pages(9, 1)), OK);
    }
}

#[test]
fn an_image_keeps_zones() {
    let path = std::env::temp_dir().join(format!("flashwright-zones-{}.img", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let image = Image(path);
    for round in 0..4 {
        let config = Config::from_toml(&format!("{DRIVE}{MOUNTS}"), "test").unwrap();
        let precondition = (round == 0).then_some(Precondition::Empty);
        let server =
            serve_on(LiveRun::on_image(&image.0, &config, Seed(1), precondition, || false).unwrap(), Pace::None);
        let (_admin, mut queue) = host(&server);
        if round == 0 {
            fill(&mut queue);
        } else {
            check_what_was_flushed(&mut queue, round - 1);
            assert_eq!(append(&mut queue, 0, &pages(9, 1)), (OK, 6 + round));
            assert_eq!(queue.ask(sqe(0x00, 1, [0; 6]), &[], Carry::Inside).cqe.status, OK);
        }
        let mut drive = server.stop().served.expect("it lives");
        if round % 2 == 0 {
            drive.close().unwrap();
        }
    }
}

#[test]
fn a_trace_of_what_is_served_has_the_commands_of_zones() {
    let trace = std::env::temp_dir().join(format!("flashwright-zones-{}.fwt", std::process::id()));
    let settings = Settings {
        nvme_tcp: vec!["tcp:127.0.0.1:0".parse().unwrap()],
        record: Some(trace.clone()),
        pace: Pace::None,
        ..Settings::default()
    };
    let server = Server::start(drive(DRIVE), &settings).unwrap();
    let (_admin, mut queue) = host(&server);
    fill(&mut queue);
    let expected = server.stats()["flash"]["programs"].clone();
    drop(queue);
    drop(_admin);
    assert_eq!(server.stop().lost, Vec::<String>::new());
    let mut source = flashwright_workload::trace::TraceReader::open(&trace, &Default::default()).unwrap();
    let (mut batch, mut played) = (Vec::new(), drive(DRIVE));
    while flashwright_block::RequestSource::fill(&mut source, &mut batch, 100).unwrap() > 0 {}
    let mut completion = Completion::default();
    for request in batch {
        played.execute(request, &mut completion).unwrap();
        assert_eq!(completion.result, Ok(()));
    }
    assert_eq!(serde_json::json!(LiveRun::figures(&played))["flash"]["programs"], expected);
    let _ = std::fs::remove_file(&trace);
}

/// A zone of the model: its state, when it was opened by a write, and the pages written to it.
#[derive(Clone, Default)]
struct Zone {
    state: u8,
    opened: u64,
    pages: Vec<u8>,
}

/// Zones in the plainest words: everything is counted anew each time.
struct Model {
    zones: Vec<Zone>,
    time: u64,
    /// What the simulator is to have counted: refusals by rule, resets, finishes, pages of padding, pages of the host.
    refused: std::collections::BTreeMap<&'static str, u64>,
    resets: u64,
    finishes: u64,
    padded: u64,
    written: u64,
}

impl Model {
    fn new() -> Self {
        let zones = vec![Zone { state: EMPTY, ..Zone::default() }; usize::try_from(ZONES).unwrap()];
        Self { zones, time: 0, refused: Default::default(), resets: 0, finishes: 0, padded: 0, written: 0 }
    }

    fn count(&self, states: &[u8]) -> usize {
        self.zones.iter().filter(|zone| states.contains(&zone.state)).count()
    }

    fn refuse(&mut self, rule: &'static str, status: Status) -> Result<(), Status> {
        *self.refused.entry(rule).or_default() += 1;
        Err(status)
    }

    fn open(&mut self, at: usize, state: u8) -> Result<(), Status> {
        let before = self.zones[at].state;
        if before == EMPTY && self.count(&[IMPLICIT, EXPLICIT, CLOSED]) == ACTIVE {
            return self.refuse("too_many_active", Status::TOO_MANY_ACTIVE_ZONES);
        }
        if ![IMPLICIT, EXPLICIT].contains(&before) {
            if self.count(&[IMPLICIT, EXPLICIT]) == OPEN {
                let implicit = self.zones.iter_mut().filter(|zone| zone.state == IMPLICIT);
                match implicit.min_by_key(|zone| zone.opened) {
                    Some(eldest) => eldest.state = CLOSED,
                    None => return self.refuse("too_many_open", Status::TOO_MANY_OPEN_ZONES),
                }
            }
            self.time += 1;
            (self.zones[at].state, self.zones[at].opened) = (state, self.time);
        } else if state == EXPLICIT {
            self.zones[at].state = EXPLICIT;
        }
        Ok(())
    }

    /// Stores pages in a zone, from a place on if one is named. Returns where they went, in blocks of the namespace.
    fn store(&mut self, at: usize, place: Option<u64>, data: &[u8]) -> Result<u64, Status> {
        let (written, start) = (self.zones[at].pages.len() as u64, at as u64 * SIZE);
        let refused = if self.zones[at].state == FILLED {
            self.refuse("full", FULL)
        } else if place.is_some_and(|place| place != written) {
            self.refuse("not_at_write_pointer", OFF_POINTER)
        } else if written + data.len() as u64 > CAPACITY {
            self.refuse("over_capacity", BOUNDARY)
        } else {
            self.open(at, IMPLICIT)
        };
        refused?;
        self.written += data.len() as u64;
        self.zones[at].pages.extend(data);
        if self.zones[at].pages.len() as u64 == CAPACITY {
            self.zones[at].state = FILLED;
        }
        Ok(start + written)
    }

    fn act(&mut self, at: usize, action: u32) -> Result<(), Status> {
        let state = self.zones[at].state;
        let written = self.zones[at].pages.len() as u64;
        match (action, state) {
            (TO_OPEN, FILLED) | (CLOSE, EMPTY | FILLED) => return self.refuse("invalid_transition", TRANSITION),
            (TO_OPEN, _) => return self.open(at, EXPLICIT),
            (CLOSE, _) => self.zones[at].state = CLOSED,
            (FINISH, FILLED) => {}
            (FINISH, _) => {
                self.finishes += 1;
                self.padded += if written > 0 { CAPACITY - written } else { 0 };
                self.zones[at].state = FILLED;
            }
            (RESET, _) => {
                self.resets += u64::from(state != EMPTY);
                self.zones[at] = Zone { state: EMPTY, ..Zone::default() };
            }
            _ => return Err(TRANSITION), // no zone is read-only; the subsystem refuses it
        }
        Ok(())
    }

    /// An action on all zones.
    fn act_on_all(&mut self, action: u32) -> Result<(), Status> {
        let changing: &[u8] = match action {
            TO_OPEN => &[CLOSED],
            CLOSE => &[IMPLICIT, EXPLICIT],
            FINISH => &[IMPLICIT, EXPLICIT, CLOSED],
            RESET => &[IMPLICIT, EXPLICIT, CLOSED, FILLED],
            _ => &[],
        };
        if action == TO_OPEN && self.count(&[EXPLICIT, CLOSED]) > OPEN {
            return Err(Status::TOO_MANY_OPEN_ZONES);
        }
        let those: Vec<usize> = (0..self.zones.len()).filter(|at| changing.contains(&self.zones[*at].state)).collect();
        those.into_iter().try_for_each(|at| self.act(at, action))
    }

    /// The contents of blocks.
    fn read(&self, first: u64, count: u64) -> Vec<u8> {
        let page = |block: u64| {
            let zone = &self.zones[usize::try_from(block / SIZE).unwrap()];
            zone.pages.get(usize::try_from(block % SIZE).unwrap()).copied().unwrap_or(0)
        };
        (first..first + count).flat_map(|block| vec![page(block); PAGE]).collect()
    }
}

fn bytes_of(fills: &[u8]) -> Vec<u8> {
    fills.iter().flat_map(|fill| [*fill; PAGE]).collect()
}

/// Every command ends as the model says, and has the data that the model has; afterwards all that the drive counted is what the model
/// counted.
#[test]
fn a_hundred_thousand_commands_end_as_a_naive_model_says() {
    let server = serve_on(drive(&format!("{DRIVE}{MOUNTS}")), Pace::None);
    let (mut admin, mut queue) = host(&server);
    let (mut random, mut model) = (Random(7), Model::new());
    let total = ZONES * SIZE;
    let (mut statuses, mut read_bytes) = (std::collections::BTreeMap::<(u8, u8), u32>::new(), 0u64);
    for step in 0..100_000u32 {
        let among = if random.below(3) == 0 { ZONES } else { 8 };
        let at = usize::try_from(random.below(among)).unwrap();
        let (start, written) = (at as u64 * SIZE, model.zones[at].pages.len() as u64);
        let stray = if random.below(8) == 0 { random.below(SIZE) } else { 0 };
        let count = if random.below(6) == 0 { 1 + random.below(CAPACITY + 2) } else { 1 + random.below(9) };
        let fills: Vec<u8> = (0..count).map(|_| u8::try_from(1 + random.below(255)).unwrap()).collect();
        let is_past_end = |first: u64| first + count > total;
        let place = (start + written + stray).min(total - 1);
        let (found, expected) = match random.below(100) {
            0..25 => {
                let expected = if is_past_end(place) {
                    Err(Status::LBA_OUT_OF_RANGE)
                } else {
                    model.store(usize::try_from(place / SIZE).unwrap(), Some(place % SIZE), &fills)
                };
                (write(&mut queue, place, &bytes_of(&fills)), expected.map(drop))
            }
            25..45 => {
                let first = start + stray;
                let expected = if is_past_end(first) {
                    Err(Status::LBA_OUT_OF_RANGE)
                } else if stray > 0 {
                    Err(Status::INVALID_FIELD)
                } else {
                    model.store(at, None, &fills)
                };
                let (status, block) = append(&mut queue, first, &bytes_of(&fills));
                assert!(expected.is_err() || expected == Ok(block), "{step}: {block} {expected:?}");
                (status, expected.map(drop))
            }
            45..50 => {
                let zeros = vec![0; fills.len()];
                let expected = if is_past_end(place) {
                    Err(Status::LBA_OUT_OF_RANGE)
                } else {
                    model.store(usize::try_from(place / SIZE).unwrap(), Some(place % SIZE), &zeros)
                };
                let command = of(1, 0x08, place, u32::try_from(count).unwrap());
                (queue.ask(command, &[], Carry::Inside).cqe.status, expected.map(drop))
            }
            50..55 => {
                let from = random.below(total - count);
                let mut range = [0; 32];
                put(&mut range, 8, &from.to_le_bytes());
                put(&mut range, 16, &u16::try_from(count - 1).unwrap().to_le_bytes());
                let meets = from < place + count && place < from + count;
                let expected = if is_past_end(place) {
                    Err(Status::LBA_OUT_OF_RANGE)
                } else if meets {
                    Err(Status::OVERLAPPING)
                } else {
                    read_bytes += count * PAGE as u64;
                    let source: Vec<u8> = model.read(from, count).chunks_exact(PAGE).map(|page| page[0]).collect();
                    model.store(usize::try_from(place / SIZE).unwrap(), Some(place % SIZE), &source)
                };
                (queue.ask(of(1, 0x19, place, 1), &range, Carry::Inside).cqe.status, expected.map(drop))
            }
            55..68 => {
                let action =
                    [TO_OPEN, TO_OPEN, CLOSE, FINISH, RESET, RESET, OFFLINE][usize::try_from(random.below(7)).unwrap()];
                let first = start + stray;
                let expected = if stray > 0 { Err(Status::INVALID_FIELD) } else { model.act(at, action) };
                (manage(&mut queue, first, action), expected)
            }
            68 => {
                let action = u32::try_from(1 + random.below(5)).unwrap();
                let is_rare = action == RESET && random.below(8) > 0;
                let action = if is_rare { CLOSE } else { action };
                (manage(&mut queue, stray, action | ALL), model.act_on_all(action))
            }
            69..75 => {
                let (options, partial) = (u32::try_from(random.below(8)).unwrap(), random.below(2) == 0);
                let room = random.below(ZONES + 2);
                let answer =
                    report(&mut queue, start + stray, 64 + 64 * usize::try_from(room).unwrap(), options, partial);
                let states = [0, EMPTY, IMPLICIT, EXPLICIT, CLOSED, FILLED, 13, 15];
                let wanted = states[options as usize];
                let all = (at..).zip(&model.zones[at..]).filter(|(_, zone)| options == 0 || zone.state == wanted);
                let all: Vec<(u8, u64, u64)> = all
                    .map(|(at, zone)| {
                        let start = at as u64 * SIZE;
                        (
                            zone.state,
                            start,
                            if zone.state == FILLED { u64::MAX } else { start + zone.pages.len() as u64 },
                        )
                    })
                    .collect();
                let listed = &all[..all.len().min(usize::try_from(room).unwrap())];
                assert_eq!(zones_of(&answer), listed, "{step}");
                assert_eq!(u64_at(&answer.data, 0), if partial { listed.len() } else { all.len() } as u64, "{step}");
                (answer.cqe.status, Ok(()))
            }
            75..77 => {
                let same = random.below(2) == 0;
                let first = random.below(total - count);
                let mut data = model.read(first, count);
                data[PAGE - 1] ^= u8::from(!same);
                read_bytes += count * PAGE as u64;
                let command = of(1, 0x05, first, u32::try_from(count).unwrap());
                let expected = if same { Ok(()) } else { Err(Status::COMPARE_FAILED) };
                (queue.ask(command, &data, Carry::Asked).cqe.status, expected)
            }
            77 => (queue.ask(sqe(0x00, 1, [0; 6]), &[], Carry::Inside).cqe.status, Ok(())),
            _ => {
                let first = random.below(total - count);
                read_bytes += count * PAGE as u64;
                assert!(read(&mut queue, first, count) == model.read(first, count), "{step}: {first}, {count} blocks");
                (OK, Ok(()))
            }
        };
        assert_eq!(found, expected.err().unwrap_or(OK), "{step}: zone {at}, {stray}, {count}");
        *statuses.entry(found.parts()).or_default() += 1;
        if step % 20_000 == 19_999 {
            let stats = server.stats();
            let count = |pointer: &str| stats.pointer(pointer).and_then(serde_json::Value::as_u64).unwrap();
            assert_eq!(count("/requests/bytes_written"), model.written * PAGE as u64);
            assert_eq!(count("/requests/bytes_read"), read_bytes);
            let programs = count("/flash/programs/total");
            // Beside these, the journal that makes resets last.
            let of_zones = ["host", "padding"].map(|cause| count(&format!("/flash/programs/{cause}")));
            assert_eq!(of_zones, [model.written, model.padded]);
            assert_eq!(programs, model.written + model.padded + count("/flash/programs/translation"));
            let states = [
                ("empty", EMPTY),
                ("implicitly_open", IMPLICIT),
                ("explicitly_open", EXPLICIT),
                ("closed", CLOSED),
                ("full", FILLED),
            ];
            for (name, state) in states {
                assert_eq!(count(&format!("/zones/states/{name}")), model.count(&[state]) as u64, "{name}");
            }
            assert_eq!([count("/zones/resets"), count("/zones/finishes")], [model.resets, model.finishes]);
            for (rule, refused) in &model.refused {
                assert_eq!(count(&format!("/zones/refusals/{rule}")), *refused, "{rule}");
            }
            let (smart, ocp) = (admin.log(0x02, 512).data, admin.log(0xc0, 512).data);
            assert_eq!(u64_at(&smart, 48), (model.written * PAGE as u64).div_ceil(512_000));
            assert_eq!(
                (u64_at(&ocp, 0), u64_at(&smart, 160)),
                (programs * PAGE as u64, 0),
                "refusals are no media errors"
            );
        }
    }
    for status in
        [OK, BOUNDARY, FULL, OFF_POINTER, TRANSITION, Status::TOO_MANY_ACTIVE_ZONES, Status::TOO_MANY_OPEN_ZONES]
    {
        assert!(statuses[&status.parts()] >= 100, "{status:?} came too rarely: {statuses:?}");
    }
    assert!(read(&mut queue, 0, 256) == model.read(0, 256));
    let mut served = server.stop().served.expect("it lives");
    assert!(served.ssd().audit().is_empty());
    let zones = served.report().report.zones.expect("it has zones");
    assert_eq!((zones.resets, zones.finishes, zones.pages_padded), (model.resets, model.finishes, model.padded));
    let counted = zones.refusals.iter().filter(|(_, count)| **count > 0);
    assert!(
        counted.eq(model
            .refused
            .iter()
            .map(|(rule, count)| (rule.to_string(), *count))
            .collect::<std::collections::BTreeMap<_, _>>()
            .iter()),
        "{:?} {:?}",
        zones.refusals,
        model.refused
    );
}
