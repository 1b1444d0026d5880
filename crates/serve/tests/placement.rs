//! A drive that places data by handle, as hosts of NVMe/TCP see it.

use crate::client::drive;
use crate::namespaces::{Image, Random, of, serve_on};
use crate::nvme::remote;
use crate::nvmehost::{Carry, Host, sqe};
use flashwright_block::{BlockDevice as _, Completion, Request, RequestKind, Seed};
use flashwright_nvme::wire::{Sqe, Status, put, u16_at, u32_at, u64_at};
use flashwright_serve::{Pace, Server};
use flashwright_sim::{LiveRun, Precondition};
use flashwright_ssd::Config;

const REAL: Pace = Pace::Real { time_scale: 0.01 };
/// A page of the flash, and a reclaim unit: 4 dies of 16 pages.
const PAGE: u64 = 4096;
const UNIT: u64 = 64 * PAGE;
/// 64 units, of which the host sees 0.6.
const DRIVE: &str = "[geometry]\nchannels = 2\ndies-per-channel = 2\nplanes-per-die = 1\nblocks-per-plane = 64\n\
                     pages-per-block = 16\nsuperblock = \"drive\"\n[capacity]\nutilization = 0.6\n\
                     [placement]\npolicy = \"fdp\"\nfdp.handles = 4\n";
const MOUNTS: &str = "[recovery]\nmount-by = \"scan\"\n";

/// A write with a placement identifier.
fn placed(nsid: u32, first: u64, blocks: u32, identifier: u16) -> Sqe {
    let mut command = of(nsid, 0x01, first, blocks);
    let dword = (blocks - 1) | 2 << 20;
    put(&mut command.0, 48, &dword.to_le_bytes());
    put(&mut command.0, 54, &identifier.to_le_bytes());
    command
}

/// Writes pages.
fn write(queue: &mut Host, nsid: u32, page: u64, pages: u64, identifier: u16) -> Status {
    let data = vec![identifier.to_le_bytes()[0]; usize::try_from(pages * PAGE).unwrap()];
    let blocks = u32::try_from(pages * 8).unwrap();
    queue.ask(placed(nsid, page * 8, blocks, identifier), &data, Carry::Asked).cqe.status
}

/// A log page of the endurance group.
fn log(admin: &mut Host, page: u32, bytes: usize) -> Vec<u8> {
    let dwords = u32::try_from(bytes / 4 - 1).unwrap();
    let answer = admin.get(sqe(0x02, 0, [page | dwords << 16, 1 << 16, 0, 0, 0, 0]), bytes);
    assert!(answer.cqe.status.is_ok(), "{page:x}: {:?}", answer.cqe);
    answer.data
}

/// The units of a namespace: handle, and bytes that still fit.
fn units(queue: &mut Host, nsid: u32) -> Vec<(u16, u64)> {
    let answer = queue.get(sqe(0x12, nsid, [1, 255, 0, 0, 0, 0]), 1024);
    assert!(answer.cqe.status.is_ok(), "{:?}", answer.cqe);
    let entries = answer.data[16..].chunks_exact(32).take(u16_at(&answer.data, 14).into());
    entries.map(|entry| (u16_at(entry, 2), u64_at(entry, 8) * 512)).collect()
}

/// Goes on with other units.
fn update(queue: &mut Host, nsid: u32, identifiers: &[u16]) -> Status {
    let list: Vec<u8> = identifiers.iter().flat_map(|identifier| identifier.to_le_bytes()).collect();
    let count = u32::try_from(identifiers.len() - 1).unwrap();
    queue.ask(sqe(0x1d, nsid, [1 | count << 16, 0, 0, 0, 0, 0]), &list, Carry::Inside).cqe.status
}

/// Creates a namespace with handles, attached.
fn create(admin: &mut Host, pages: u64, handles: &[u16]) -> u32 {
    let mut wanted = vec![0; 4096];
    [0, 8].into_iter().for_each(|at| put(&mut wanted, at, &(pages * 8).to_le_bytes()));
    wanted[30] = 1;
    put(&mut wanted, 392, &u16::try_from(handles.len()).unwrap().to_le_bytes());
    handles.iter().enumerate().for_each(|(at, handle)| put(&mut wanted, 512 + 2 * at, &handle.to_le_bytes()));
    let made = admin.ask(sqe(0x0d, 0, [0; 6]), &wanted, Carry::Asked).cqe;
    assert!(made.status.is_ok(), "{made:?}");
    let nsid = u32::try_from(made.result).unwrap();
    assert_eq!(admin.attach(nsid, 0, &[admin.controller]), Status::SUCCESS);
    nsid
}

/// Pages that each handle has been written with, as the simulator counts them.
fn written(server: &Server<LiveRun>) -> Vec<u64> {
    counted(server, "handles", "pages_written")
}

/// A figure of each handle or each group.
fn counted(server: &Server<LiveRun>, section: &str, key: &str) -> Vec<u64> {
    server.stats()[section].as_array().unwrap().iter().map(|each| each[key].as_u64().unwrap()).collect()
}

#[test]
fn a_host_finds_what_a_kernel_asks_for_write_streams() {
    for pace in [Pace::None, REAL] {
        let server = serve_on(drive(DRIVE), pace);
        let mut admin = Host::admin(&server, 0);
        let mut queue = admin.queue(&server, 1);
        let controller = admin.identify(0x01, 0).data;
        assert_eq!(u32_at(&controller, 96) & (1 << 19 | 1 << 4), 1 << 19 | 1 << 4, "placement, and endurance groups");
        assert_eq!((u16_at(&controller, 340), u16_at(&controller, 256) & 1 << 5), (1, 1 << 5), "ENDGIDMAX, directives");
        let group = u16_at(&admin.identify(0x00, 1).data, 102);
        assert_eq!((group, u16_at(&admin.identify(0x08, 1).data, 12)), (1, 1));
        assert_eq!(admin.ask(sqe(0x0a, 0, [0x1d, 1, 0, 0, 0, 0]), &[], Carry::Inside).cqe.result, 1);
        let page = log(&mut admin, 0x20, 96);
        assert_eq!((u16_at(&page, 0), u32_at(&page, 4), page[18]), (0, 96, 0x80));
        assert_eq!((u32_at(&page, 20), u16_at(&page, 24), u64_at(&page, 32), page[80]), (1, 4, UNIT, 2));
        assert_eq!(units(&mut queue, 1), [(0, UNIT), (1, UNIT), (2, UNIT), (3, UNIT)]);
        // Each identifier is a unit of its own, and what names none is the first.
        for (at, identifier) in (0..).zip([1u16, 2, 3, 900]) {
            assert_eq!(write(&mut queue, 1, at * 10, 10, identifier), Status::SUCCESS);
        }
        assert_eq!(queue.ask(of(1, 0x01, 400, 8), &[9; 4096], Carry::Asked).cqe.status, Status::SUCCESS);
        let left = UNIT - 10 * PAGE;
        assert_eq!(units(&mut queue, 1), [(0, left - PAGE), (1, left), (2, left), (3, left)]);
        assert_eq!(written(&server), [11, 10, 10, 10]);
        // Zeros and a copy are placed, too.
        let mut zeroes = of(1, 0x08, 480, 8);
        put(&mut zeroes.0, 48, &(7u32 | 2 << 20).to_le_bytes());
        put(&mut zeroes.0, 54, &2u16.to_le_bytes());
        let mut copy = of(1, 0x19, 488, 1);
        put(&mut copy.0, 48, &(2u32 << 20).to_le_bytes());
        put(&mut copy.0, 54, &3u16.to_le_bytes());
        let mut range = [0; 32];
        put(&mut range, 16, &7u32.to_le_bytes());
        assert!(queue.ask(zeroes, &[], Carry::Inside).cqe.status.is_ok());
        assert!(queue.ask(copy, &range, Carry::Inside).cqe.status.is_ok());
        assert_eq!(written(&server), [11, 10, 11, 11]);
        assert_eq!(update(&mut queue, 1, &[1, 3]), Status::SUCCESS);
        assert_eq!(
            units(&mut queue, 1).iter().map(|(_, left)| *left == UNIT).collect::<Vec<_>>(),
            [false, true, false, true]
        );
        assert_eq!(update(&mut queue, 1, &[4]), Status::INVALID_FIELD);
        assert!(server.stop().served.is_some());
    }
}

#[test]
fn a_drive_without_units_of_handles_is_served_as_before() {
    for change in [("superblock = \"drive\"\n", ""), ("policy = \"fdp\"\nfdp.handles = 4", "policy = \"single\"")] {
        let server = serve_on(drive(&DRIVE.replace(change.0, change.1)), Pace::None);
        let mut admin = Host::admin(&server, 0);
        let mut queue = admin.queue(&server, 1);
        let controller = admin.identify(0x01, 0).data;
        assert_eq!((u32_at(&controller, 96) & 1 << 19, u16_at(&controller, 256) & 1 << 5), (0, 0));
        assert_eq!(queue.get(sqe(0x12, 1, [1, 255, 0, 0, 0, 0]), 1024).cqe.status, Status::INVALID_OPCODE);
        assert_eq!(write(&mut queue, 1, 0, 1, 1), Status::INVALID_FIELD);
        assert_eq!(admin.log(0x20, 96).cqe.status, Status::INVALID_LOG_PAGE);
        let is_noted = server.notes().iter().any(|note| note.starts_with("placement.policy: found \"fdp\""));
        assert_eq!(is_noted, change.1.is_empty(), "a drive with handles that its hosts do not see says why");
    }
}

/// After 10^5 commands in three namespaces, which share and own handles, everything that the drive tells is what the simulator counts,
/// to the byte; and the units have the room that writes, and what cleaning moved into them, have left.
#[test]
fn every_count_is_the_simulators_own() {
    let server = serve_on(drive(DRIVE), Pace::None);
    let mut admin = Host::admin(&server, 0);
    let mut queue = admin.queue(&server, 1);
    assert_eq!(admin.delete(1), Status::SUCCESS);
    let bytes = u64_at(&admin.identify(0x01, 0).data, 280);
    let third = bytes / PAGE / 3;
    let all = [
        (create(&mut admin, third, &[0, 1]), 2u64),
        (create(&mut admin, third, &[1, 2]), 2),
        (create(&mut admin, third, &[]), 1),
    ];
    assert_eq!(all.map(|(nsid, _)| nsid), [1, 2, 3]);
    assert_eq!(units(&mut queue, 3), [(3, UNIT)], "the controller's choice");
    let handles = [vec![0, 1], vec![1, 2], vec![3]];
    let (mut random, mut updates) = (Random(5), 0u32);
    let (mut expected, mut begun) = ([0u64; 4], [0u64; 4]);
    // Pages of a handle, written and moved.
    let programmed = |stats: &serde_json::Value, handle: u16| {
        let of = &stats["handles"][usize::from(handle)];
        of["pages_written"].as_u64().unwrap() + of["pages_moved"].as_u64().unwrap()
    };
    for step in 0..100_000u64 {
        let at = usize::try_from(random.below(3)).unwrap();
        let (nsid, count) = all[at];
        let identifier = random.below(count + 1); // one more than there are
        let handle = handles[at].get(usize::try_from(identifier).unwrap()).unwrap_or(&handles[at][0]);
        let page = random.below(third - 2);
        match random.below(100) {
            0..70 => {
                let pages = 1 + random.below(2);
                expected[*handle] += pages;
                assert_eq!(write(&mut queue, nsid, page, pages, u16::try_from(identifier).unwrap()), Status::SUCCESS);
            }
            70..80 => {
                let mut range = [0; 16];
                put(&mut range, 4, &16u32.to_le_bytes());
                put(&mut range, 8, &(page * 8).to_le_bytes());
                assert!(queue.ask(sqe(0x09, nsid, [0, 4, 0, 0, 0, 0]), &range, Carry::Inside).cqe.status.is_ok());
            }
            80..82 => {
                let identifier = u16::try_from(identifier % count).unwrap();
                updates += 1;
                assert_eq!(update(&mut queue, nsid, &[identifier]), Status::SUCCESS);
                let handle = handles[at][usize::from(identifier)];
                begun[handle] = programmed(&server.stats(), u16::try_from(handle).unwrap());
                assert_eq!(units(&mut queue, nsid)[usize::from(identifier)].1, UNIT);
            }
            _ => assert!(queue.get(of(nsid, 0x02, page * 8, 8), 4096).cqe.status.is_ok()),
        }
        if step % 20_000 != 0 && step != 99_999 {
            continue;
        }
        let stats = server.stats();
        let count = |pointer: &str| stats.pointer(pointer).and_then(serde_json::Value::as_u64).unwrap();
        let (host, media) = (count("/requests/bytes_written"), count("/flash/programs/total") * PAGE);
        let erased = count("/flash/erases/total") * UNIT;
        let statistics = log(&mut admin, 0x22, 64);
        assert_eq!([0, 16, 32].map(|at| u64_at(&statistics, at)), [host, media, erased]);
        assert!(host <= media);
        let (smart, ocp, group) = (admin.log(0x02, 512).data, admin.log(0xc0, 512).data, log(&mut admin, 0x09, 512));
        assert_eq!(u64_at(&smart, 48), host.div_ceil(512_000));
        assert_eq!(u64_at(&smart, 32), count("/requests/bytes_read").div_ceil(512_000));
        assert_eq!((u64_at(&smart, 64), u64_at(&smart, 80)), (count("/requests/read"), count("/requests/write")));
        assert_eq!(u64_at(&ocp, 0), media);
        assert_eq!([64, 80].map(|at| u64_at(&group, at)), [host, media].map(|bytes| bytes.div_ceil(1_000_000_000)));
        // What each handle was written with, and what is moved stays with it.
        assert_eq!(written(&server), expected);
        let moved: u64 =
            stats["handles"].as_array().unwrap().iter().map(|each| each["pages_moved"].as_u64().unwrap()).sum();
        assert_eq!(moved * PAGE + expected.iter().sum::<u64>() * PAGE, media);
        // Namespaces that share a handle see one unit.
        let rooms: Vec<(u16, u64)> = (1..=3).flat_map(|nsid| units(&mut queue, nsid)).collect();
        assert_eq!(rooms.iter().map(|(handle, _)| *handle).collect::<Vec<_>>(), [0, 1, 1, 2, 3]);
        assert_eq!(rooms[1], rooms[2]);
        // A handle's unit holds what was written with it, and moved, since it was last begun.
        for (handle, room) in rooms {
            let filled = (programmed(&stats, handle) - begun[usize::from(handle)]) % 64;
            assert_eq!(room, UNIT - filled * PAGE, "{handle}");
        }
    }
    assert!(updates > 1000);
    let mut served = server.stop().served.expect("it lives");
    assert!(served.ssd().audit().is_empty());
    assert!(served.report().report.write_amplification.unwrap() > 1.0);
}

#[test]
fn placement_that_is_off_is_one_stream_and_what_counts_begins_anew() {
    let server = serve_on(drive(DRIVE), Pace::None);
    let mut admin = Host::admin(&server, 0);
    let mut queue = admin.queue(&server, 1);
    assert_eq!(write(&mut queue, 1, 0, 8, 1), Status::SUCCESS);
    let switch =
        |admin: &mut Host, on: u32| admin.ask(sqe(0x09, 0, [0x1d, 1, on, 0, 0, 0]), &[], Carry::Inside).cqe.status;
    assert_eq!(switch(&mut admin, 0), Status::SEQUENCE);
    assert_eq!(admin.delete(1), Status::SUCCESS);
    assert_eq!(switch(&mut admin, 0), Status::SUCCESS);
    assert_eq!(create(&mut admin, 100, &[]), 1);
    assert_eq!(write(&mut queue, 1, 0, 1, 1), Status::INVALID_FIELD);
    assert_eq!(queue.ask(of(1, 0x01, 0, 8), &[9; 4096], Carry::Asked).cqe.status, Status::SUCCESS);
    assert_eq!(admin.delete(1), Status::SUCCESS);
    assert_eq!(switch(&mut admin, 1), Status::SUCCESS);
    assert_eq!(log(&mut admin, 0x22, 64), [0; 64]);
    assert_eq!(create(&mut admin, 100, &[3, 1]), 1);
    assert_eq!(write(&mut queue, 1, 0, 5, 1), Status::SUCCESS);
    let statistics = log(&mut admin, 0x22, 64);
    assert_eq!([0, 16, 32].map(|at| u64_at(&statistics, at)), [5 * PAGE, 5 * PAGE, 0]);
    assert_eq!(written(&server), [1, 13, 0, 0]);
}

#[test]
fn units_survive_a_power_cut_and_moves_are_told() {
    let server = serve_on(drive(&format!("{DRIVE}{MOUNTS}")), Pace::None);
    let mut admin = Host::admin(&server, 0);
    let mut queue = admin.queue(&server, 1);
    let control = |name: &str| server.command(name, &serde_json::Map::new()).unwrap();
    let types = [0x00, 0x03, 0x80];
    for identifier in 0..4 {
        let command = sqe(0x09, 1, [0x1e, identifier | 3 << 16, 1, 0, 0, 0]);
        assert!(admin.ask(command, &types, Carry::Inside).cqe.status.is_ok());
    }
    assert_eq!(write(&mut queue, 1, 0, 20, 2), Status::SUCCESS);
    assert!(queue.ask(sqe(0x00, 1, [0; 6]), &[], Carry::Inside).cqe.status.is_ok());
    control("cut");
    assert_eq!(queue.get(sqe(0x12, 1, [1, 255, 0, 0, 0, 0]), 1024).cqe.status, Status::POWER_LOSS);
    assert_eq!(update(&mut queue, 1, &[2]), Status::POWER_LOSS);
    control("mount");
    assert_eq!(units(&mut queue, 1)[2], (2, UNIT - 20 * PAGE));
    assert_eq!(update(&mut queue, 1, &[2]), Status::SUCCESS);
    assert_eq!(write(&mut queue, 1, 30, 1, 99), Status::SUCCESS);
    let page = admin.get(sqe(0x02, 0, [0x23 | 1 << 8 | 1023 << 16, 1 << 16, 0, 0, 0, 0]), 4096).data;
    assert_eq!((u32_at(&page, 0), page[64], page[128], u16_at(&page, 130)), (2, 0x00, 0x03, 99));
    // Overwritten until the drive cleans.
    let pages = u64_at(&admin.identify(0x01, 0).data, 280) / PAGE;
    let mut random = Random(3);
    for page in 0..pages {
        assert_eq!(write(&mut queue, 1, page, 1, u16::try_from(page % 4).unwrap()), Status::SUCCESS);
    }
    for _ in 0..3 * pages {
        let page = random.below(pages);
        assert_eq!(write(&mut queue, 1, page, 1, u16::try_from(page % 4).unwrap()), Status::SUCCESS);
    }
    let page = log(&mut admin, 0x23, 4096);
    assert_eq!(u32_at(&page, 0), 63);
    for event in page[64..].chunks_exact(64) {
        let (block, handle) = (u64_at(event, 20), event[34]);
        assert_eq!((event[0], event[1], event[16]), (0x80, 0b111, 1));
        assert_eq!((block / 8 % 4, u16_at(event, 2)), (handle.into(), handle.into()), "what was written with it");
        assert!(u16_at(event, 18) > 0);
    }
    let times: Vec<u64> = page[64..].chunks_exact(64).map(|event| u64_at(event, 4) & 0xffff_ffff_ffff).collect();
    assert!(times.is_sorted() && times[0] > 0, "{times:?}");
}

#[test]
fn an_image_keeps_handles_and_units() {
    let path = std::env::temp_dir().join(format!("flashwright-placed-{}.img", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let image = Image(path);
    for round in 0..4u64 {
        let config = Config::from_toml(&format!("{DRIVE}{MOUNTS}"), "test").unwrap();
        let precondition = (round == 0).then_some(Precondition::Empty);
        let server =
            serve_on(LiveRun::on_image(&image.0, &config, Seed(1), precondition, || false).unwrap(), Pace::None);
        let mut admin = Host::admin(&server, 0);
        let mut queue = admin.queue(&server, 1);
        if round == 0 {
            assert_eq!(admin.delete(1), Status::SUCCESS);
            assert_eq!((create(&mut admin, 300, &[2, 0]), create(&mut admin, 300, &[])), (1, 2));
            let wanted = sqe(0x09, 1, [0x1e, 1 << 16, 1, 0, 0, 0]);
            assert!(admin.ask(wanted, &[0x03], Carry::Inside).cqe.status.is_ok());
        }
        let left = UNIT - round * 7 * PAGE;
        assert_eq!((units(&mut queue, 1), units(&mut queue, 2)), (vec![(2, left), (0, UNIT)], vec![(1, UNIT)]));
        let types = admin.get(sqe(0x0a, 1, [0x1e, 3 << 16, 0, 0, 0, 0]), 6).data;
        assert_eq!(types, [0x00, 0, 0x03, 1, 0x80, 0]);
        assert_eq!(write(&mut queue, 1, 10 * round, 7, 0), Status::SUCCESS);
        assert!(queue.ask(sqe(0x00, 1, [0; 6]), &[], Carry::Inside).cqe.status.is_ok());
        let mut drive = server.stop().served.expect("it lives");
        if round % 2 == 0 {
            drive.close().unwrap();
        }
    }
}

#[test]
fn an_update_is_told_to_who_records() {
    let trace = std::env::temp_dir().join(format!("flashwright-placed-{}.fwt", std::process::id()));
    let listen = || vec!["tcp:127.0.0.1:0".parse().unwrap()];
    let settings = flashwright_serve::Settings {
        nvme_tcp: listen(),
        record: Some(trace.clone()),
        pace: Pace::None,
        ..Default::default()
    };
    let server = Server::start(drive(DRIVE), &settings).unwrap();
    let mut queue = Host::admin(&server, 0).queue_of(&server);
    assert_eq!(write(&mut queue.1, 1, 0, 3, 2), Status::SUCCESS);
    assert_eq!(update(&mut queue.1, 1, &[2]), Status::SUCCESS);
    drop(queue);
    let stopped = server.stop();
    assert!(
        stopped.notes.iter().any(|note| note.starts_with("an update of a reclaim unit handle")),
        "{:?}",
        stopped.notes
    );
    let _ = std::fs::remove_file(&trace);
}

#[test]
fn our_own_host_names_identifiers_for_streams() {
    let server = serve_on(drive(DRIVE), Pace::None);
    let mut remote = remote(&server, "nvme+tcp", 1);
    let mut completion = Completion::default();
    for stream in [0, 1, 2, 3, 3, 4, 9] {
        let write = Request { kind: RequestKind::Write, first_sector: 0, sectors: 64, stream, ..Request::default() };
        remote.execute(write, &mut completion).unwrap();
        assert_eq!(completion.result, Ok(()));
    }
    assert_eq!(written(&server), [24, 8, 8, 16]);
}

/// Two groups of two dies: the highest bit of an identifier is the group, and each handle has a unit in each.
#[test]
fn several_groups_have_units_of_their_own() {
    let two = DRIVE.replace("fdp.handles = 4\n", "fdp.handles = 4\nfdp.groups = 2\n");
    let unit = UNIT / 2;
    let server = serve_on(drive(&format!("{two}{MOUNTS}")), Pace::None);
    let mut admin = Host::admin(&server, 0);
    let mut queue = admin.queue(&server, 1);
    let page = log(&mut admin, 0x20, 96);
    assert_eq!((page[18], u32_at(&page, 20), u16_at(&page, 24), u64_at(&page, 32)), (0x81, 2, 4, unit));
    assert_eq!(admin.delete(1), Status::SUCCESS);
    let bytes = u64_at(&admin.identify(0x01, 0).data, 280);
    assert_eq!(create(&mut admin, bytes / PAGE, &[3, 1]), 1);
    // By placement handle, then by group.
    let whole = [(3, unit), (3, unit), (1, unit), (1, unit)];
    assert_eq!(units(&mut queue, 1), whole);
    let answer = queue.get(sqe(0x12, 1, [1, 255, 0, 0, 0, 0]), 1024);
    assert_eq!([16, 48, 80, 112].map(|at| u16_at(&answer.data, at)), [0, 0x8000, 1, 0x8001]);
    let wanted = sqe(0x09, 1, [0x1e, 2 << 16, 1, 0, 0, 0]);
    assert!(admin.ask(wanted, &[0x00, 0x03], Carry::Inside).cqe.status.is_ok());
    for (page, identifier) in [(0, 0x8001), (10, 0), (20, 0x8000), (30, 2), (40, 0x8002)] {
        assert_eq!(write(&mut queue, 1, page, 5, identifier), Status::SUCCESS);
    }
    let left = |pages: u64| unit - pages * PAGE;
    assert_eq!(units(&mut queue, 1), [(3, left(15)), (3, left(5)), (1, unit), (1, left(5))]);
    assert_eq!(written(&server), [0, 5, 0, 20]);
    let of_groups = |key| counted(&server, "groups", key);
    assert_eq!(of_groups("pages_written"), [15, 10]);
    assert_eq!(update(&mut queue, 1, &[0x8001, 0x8002]), Status::INVALID_FIELD, "all or none");
    assert_eq!(update(&mut queue, 1, &[0x8001]), Status::SUCCESS);
    assert_eq!(units(&mut queue, 1), [(3, left(15)), (3, left(5)), (1, unit), (1, unit)]);
    let events = admin.get(sqe(0x02, 0, [0x23 | 1 << 8 | 1023 << 16, 1 << 16, 0, 0, 0, 0]), 4096).data;
    let event = |at: usize| {
        let event = &events[64 * at..];
        (event[0], u16_at(event, 2), u16_at(event, 32), u16_at(event, 34))
    };
    assert_eq!(u32_at(&events, 0), 2, "of handle 3 no event is noted that names handle 1");
    assert_eq!([1, 2].map(event), [(3, 2, 0, 3), (3, 0x8002, 0, 3)]);
    // After a power cut all is where it was.
    assert!(queue.ask(sqe(0x00, 1, [0; 6]), &[], Carry::Inside).cqe.status.is_ok());
    let control = |name: &str| server.command(name, &serde_json::Map::new()).unwrap();
    control("cut");
    control("mount");
    assert_eq!(units(&mut queue, 1)[..2], [(3, left(15)), (3, left(5))]);
    // More of one group than fits it, and whatever it is, it can be read.
    let mut random = Random(3);
    let pages = bytes / PAGE;
    let mut named = vec![0; usize::try_from(pages).unwrap()];
    for step in 0..5 * pages {
        let page = if step < pages { step } else { random.below(pages) };
        let identifier = if random.below(4) == 0 { u16::try_from(random.below(2)).unwrap() } else { 0x8000 | 1 };
        named[usize::try_from(page).unwrap()] = identifier;
        assert_eq!(write(&mut queue, 1, page, 1, identifier), Status::SUCCESS);
    }
    let sums =
        ["pages_written", "pages_programmed", "pages_moved", "erases"].map(|key| of_groups(key).iter().sum::<u64>());
    let flash = &server.stats()["flash"];
    let totals =
        [&flash["programs"]["host"], &flash["programs"]["total"], &flash["programs"]["gc"], &flash["erases"]["total"]];
    assert_eq!(totals.map(|total| total.as_u64().unwrap()), sums);
    assert!(sums[2] > 0, "the groups were cleaned");
    for (page, identifier) in (0..).zip(named) {
        let read = queue.get(of(1, 0x02, page * 8, 8), 4096);
        assert_eq!(read.data, vec![identifier.to_le_bytes()[0]; 4096]);
    }
    let served = server.stop().served.expect("it lives");
    assert!(served.ssd().audit().is_empty());
}

#[test]
fn our_own_host_names_groups_for_streams() {
    let server = serve_on(drive(&DRIVE.replace("fdp.handles = 4\n", "fdp.handles = 4\nfdp.groups = 2\n")), Pace::None);
    let mut remote = remote(&server, "nvme+tcp", 1);
    let mut completion = Completion::default();
    for stream in [0, 3, 0x8000, 0x8003, 0x8003, 4, 0x8004] {
        let write = Request { kind: RequestKind::Write, first_sector: 0, sectors: 8, stream, ..Request::default() };
        remote.execute(write, &mut completion).unwrap();
        assert_eq!(completion.result, Ok(()));
    }
    let mut queue = Host::admin(&server, 0).queue_of(&server);
    let left = |pages: u64| UNIT / 2 - pages * PAGE;
    let found: Vec<u64> = units(&mut queue.1, 1).iter().map(|(_, left)| *left).collect();
    assert_eq!(found, [left(3), left(1), left(0), left(0), left(0), left(0), left(1), left(2)]);
}
