//! Several namespaces of a drive, as hosts of NVMe/TCP use them.

use crate::client::{Client, SMALL, drive};
use crate::nvmehost::{Carry, Host, of_blocks, sqe};
use flashwright_block::Seed;
use flashwright_nvme::wire::{Sqe, Status, put, u16_at, u32_at, u64_at};
use flashwright_serve::{Pace, Server, Settings};
use flashwright_sim::{LiveRun, Precondition};
use flashwright_ssd::Config;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A pace whose times do not keep a test waiting.
const REAL: Pace = Pace::Real { time_scale: 0.01 };

pub fn serve_on(drive: LiveRun, pace: Pace) -> Server<LiveRun> {
    let listen = || vec!["tcp:127.0.0.1:0".parse().unwrap()];
    let settings = Settings { nvme_tcp: listen(), nbd: listen(), pace, ..Settings::default() };
    Server::start(drive, &settings).unwrap()
}

fn serve(pace: Pace) -> Server<LiveRun> {
    serve_on(drive(SMALL), pace)
}

/// A command for blocks of a namespace.
pub fn of(nsid: u32, opcode: u8, first: u64, blocks: u32) -> Sqe {
    let mut command = of_blocks(opcode, first, blocks);
    put(&mut command.0, 4, &nsid.to_le_bytes());
    command
}

fn read(queue: &mut Host, nsid: u32, first: u64, blocks: u32) -> Vec<u8> {
    let answer = queue.get(of(nsid, 0x02, first, blocks), blocks as usize * 512);
    assert!(answer.cqe.status.is_ok(), "{:?}", answer.cqe);
    answer.data
}

fn write(queue: &mut Host, nsid: u32, first: u64, data: &[u8]) -> Status {
    queue.ask(of(nsid, 0x01, first, u32::try_from(data.len() / 512).unwrap()), data, Carry::Asked).cqe.status
}

/// A Copy of source ranges: the first block, and the number of blocks.
fn copy(queue: &mut Host, nsid: u32, to: u64, ranges: &[(u64, u32)]) -> Status {
    let mut list = vec![0; 32 * ranges.len()];
    for (entry, (first, blocks)) in list.chunks_exact_mut(32).zip(ranges) {
        put(entry, 8, &first.to_le_bytes());
        put(entry, 16, &(blocks - 1).to_le_bytes());
    }
    queue.ask(of(nsid, 0x19, to, u32::try_from(ranges.len()).unwrap()), &list, Carry::Inside).cqe.status
}

#[test]
fn namespaces_are_created_attached_and_deleted() {
    let server = serve(Pace::None);
    let mut admin = Host::admin(&server, 0);
    let mut other = Host::admin(&server, 0);
    let bytes = server.stats()["served"]["bytes"].as_u64().unwrap();
    let capacities = |host: &mut Host| {
        let data = host.identify(0x01, 0).data;
        (u64_at(&data, 280), u64_at(&data, 296))
    };
    assert_eq!(capacities(&mut admin), (bytes, 0));
    assert_eq!(u64_at(&admin.identify(0x16, 0).data, 32), 4096, "the granularity of sizes");
    assert_eq!(admin.identify(0x00, u32::MAX).data[25..29], [1, 0, 0, 0], "two formats, and no namespace");
    // Events of changed namespaces, at the other host.
    assert!(other.ask(sqe(0x09, 0, [0x0b, 1 << 8, 0, 0, 0, 0]), &[], Carry::Inside).cqe.status.is_ok());
    let event = other.send(sqe(0x0c, 0, [0; 6]), &[], Carry::Inside, 0);
    assert_eq!(admin.delete(1), Status::SUCCESS);
    assert_eq!(other.answer(event, &[]).cqe.result, 0x0004_0002, "a notice, with log page 04h");
    let changed = other.log(0x04, 4096).data;
    assert_eq!((u32_at(&changed, 0), u32_at(&changed, 4)), (1, 0));
    assert_eq!(other.log(0x04, 4096).data, [0; 4096], "it was read");
    assert_eq!((capacities(&mut admin), admin.list(0x02), admin.list(0x10)), ((bytes, bytes), vec![], vec![]));
    // Blocks of both sizes, one namespace for each controller.
    let one = admin.create(100, 0);
    let two = other.create(1 << 20 >> 12, 1);
    assert_eq!((one, two), (1, 2));
    assert_eq!((admin.list(0x02), other.list(0x02), admin.list(0x10)), (vec![1], vec![2], vec![1, 2]));
    assert_eq!(capacities(&mut admin).1, bytes - 53_248 - (1 << 20), "13 pages hold 100 blocks");
    let namespace = admin.identify(0x11, 2).data;
    assert_eq!((u64_at(&namespace, 0), namespace[26], u64_at(&namespace, 48)), (256, 1, 1 << 20));
    assert_eq!((admin.identify(0x00, 2).data, admin.identify(0x11, 3).data), (vec![0; 4096], vec![0; 4096]));
    assert_ne!(namespace[104..120], admin.identify(0x11, 1).data[104..120], "NGUIDs differ");
    assert_eq!(u16_at(&admin.identify(0x12, 2).data, 0), 1, "one controller has it");
    assert_eq!(u16_at(&admin.identify(0x12, 2).data, 2), other.controller);
    // Who comes gets what the others have, and keeps its identifiers.
    let mut third = Host::admin(&server, 0);
    assert_eq!(third.list(0x02), [1, 2]);
    assert_eq!(third.identify(0x03, 2).data, other.identify(0x03, 2).data);
    // Detached from all, it is there and nobody has it.
    let all = [other.controller, third.controller];
    assert_eq!(admin.attach(2, 1, &all), Status::SUCCESS);
    assert_eq!((other.list(0x02), Host::admin(&server, 0).list(0x02)), (vec![], vec![1]));
    assert_eq!(other.identify(0x03, 2).cqe.status, Status::INVALID_FIELD);
    assert_eq!(admin.attach(2, 0, &[admin.controller]), Status::SUCCESS);
    assert_eq!((admin.list(0x02), admin.delete(u32::MAX), admin.list(0x10)), (vec![1, 2], Status::SUCCESS, vec![]));
    assert!(server.stop().served.is_some());
}

/// The least of a generator of random numbers.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[test]
fn data_of_one_namespace_never_appear_in_another() {
    for (pace, seed) in [(Pace::None, 1), (Pace::None, 2), (REAL, 3)] {
        let server = serve(pace);
        let mut admin = Host::admin(&server, 0);
        let mut queue = admin.queue(&server, 1);
        let mut random = Random(seed);
        // The blocks of each namespace, by what was last written.
        let mut model: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        assert_eq!(admin.delete(1), Status::SUCCESS);
        let mut most = 0;
        for step in 1..1500u64 {
            let count = model.len();
            let number = usize::try_from(random.below(1000)).unwrap() % count.max(1);
            let known = model.iter_mut().nth(number).map(|(nsid, data)| (*nsid, data));
            match (random.below(20), known) {
                (0, _) if count < 12 => {
                    let blocks = 64 + random.below(2000);
                    let free = u64_at(&admin.identify(0x01, 0).data, 296);
                    if free >= (blocks * 512).next_multiple_of(4096) {
                        let nsid = admin.create(blocks, 0);
                        model.insert(nsid, vec![0; usize::try_from(blocks * 512).unwrap()]);
                    }
                }
                (1, Some((nsid, _))) => {
                    assert_eq!(admin.delete(nsid), Status::SUCCESS);
                    model.remove(&nsid);
                }
                (2, Some((nsid, data))) => {
                    assert!(admin.ask(sqe(0x80, nsid, [0; 6]), &[], Carry::Inside).cqe.status.is_ok());
                    data.fill(0);
                }
                (what, Some((nsid, data))) => {
                    let all = data.len() as u64 / 512;
                    let blocks = 1 + random.below(all.min(300) - 1);
                    let first = random.below(all - blocks);
                    let range = usize::try_from(first * 512).unwrap()..usize::try_from((first + blocks) * 512).unwrap();
                    let count = u32::try_from(blocks).unwrap();
                    match what {
                        3..10 => {
                            let filled: Vec<u8> = (step..step + blocks * 512).map(|at| (at * 7 / 8) as u8).collect();
                            assert_eq!(write(&mut queue, nsid, first, &filled), Status::SUCCESS);
                            data[range].copy_from_slice(&filled);
                        }
                        10..12 => {
                            let zeroes = of(nsid, 0x08, first, count);
                            assert!(queue.ask(zeroes, &[], Carry::Inside).cqe.status.is_ok());
                            data[range].fill(0);
                        }
                        12 => {
                            let found = queue.ask(of(nsid, 0x05, first, count), &data[range], Carry::Asked).cqe.status;
                            assert_eq!(found, Status::SUCCESS, "compared");
                        }
                        13 => {
                            let to = random.below(all - blocks);
                            let overlaps = to < first + blocks && first < to + blocks;
                            let found = copy(&mut queue, nsid, to, &[(first, count)]);
                            assert_eq!(found, if overlaps { Status::OVERLAPPING } else { Status::SUCCESS });
                            if !overlaps {
                                data.copy_within(range, usize::try_from(to * 512).unwrap());
                            }
                        }
                        _ => assert!(read(&mut queue, nsid, first, count) == data[range], "{nsid} at {first}"),
                    }
                }
                (_, None) => {}
            }
            most = most.max(count);
        }
        assert!(most > 5, "there were never many: {most}");
        for (nsid, data) in &model {
            for (at, part) in (0..).zip(data.chunks(64 << 10)) {
                let found = read(&mut queue, *nsid, at * 128, u32::try_from(part.len() / 512).unwrap());
                assert!(found == part, "{nsid} at {at}");
            }
        }
        assert!(server.stop().served.is_some());
    }
}

#[test]
fn a_deleted_namespace_leaves_nothing_and_is_gone_for_commands_that_wait() {
    for pace in [Pace::None, REAL] {
        let server = serve(pace);
        let mut admin = Host::admin(&server, 0);
        let mut queue = admin.queue(&server, 1);
        let filled = vec![9; 64 << 10];
        for at in 0..8 {
            assert_eq!(write(&mut queue, 1, at * 128, &filled), Status::SUCCESS);
        }
        // Writes are under way while the namespace goes.
        let sent: Vec<u16> =
            (0..16).map(|at| queue.send(of(1, 0x01, at * 8, 8), &[7; 4096], Carry::Inside, 0)).collect();
        assert_eq!(admin.delete(1), Status::SUCCESS);
        for cid in sent {
            let status = queue.answer(cid, &[]).cqe.status;
            assert!(
                [Status::SUCCESS, Status::INVALID_NAMESPACE, Status::INVALID_FIELD].contains(&status),
                "{status:?}"
            );
        }
        assert_eq!(admin.create(2048, 0), 1);
        for at in 0..16 {
            assert_eq!(read(&mut queue, 1, at * 128, 128), [0; 64 << 10]);
        }
        // Whoever speaks NBD has the whole drive.
        let mut client = Client::begun(&server);
        assert_eq!(client.read(0, 4096), [0; 4096]);
        assert_eq!(write(&mut queue, 1, 0, &filled), Status::SUCCESS);
        assert_eq!(client.read(0, 64 << 10), filled);
        assert_eq!(u32::try_from(server.stats()["requests"]["trim"].as_u64().unwrap()).unwrap(), 1);
    }
}

#[test]
fn a_power_cut_keeps_namespaces_and_what_was_deleted_does_not_come_back() {
    for pace in [Pace::None, REAL] {
        let server = serve_on(drive(&format!("{SMALL}[recovery]\nmount-by = \"scan\"\n")), pace);
        let mut admin = Host::admin(&server, 0);
        let mut queue = admin.queue(&server, 1);
        let control = |name: &str| server.command(name, &serde_json::Map::new()).unwrap();
        assert_eq!(write(&mut queue, 1, 0, &[5; 8192]), Status::SUCCESS);
        assert!(queue.ask(sqe(0x00, 1, [0; 6]), &[], Carry::Inside).cqe.status.is_ok());
        control("cut");
        // Without power the table can still be changed; the drive deallocates when it is back.
        assert_eq!(admin.delete(1), Status::SUCCESS);
        let one = admin.create(1024, 0);
        assert_eq!(write(&mut queue, one, 0, &[6; 512]), Status::POWER_LOSS);
        control("mount");
        assert_eq!(read(&mut queue, one, 0, 128), [0; 64 << 10]);
        assert_eq!(write(&mut queue, one, 0, &[6; 4096]), Status::SUCCESS);
        assert!(queue.ask(sqe(0x00, u32::MAX, [0; 6]), &[], Carry::Inside).cqe.status.is_ok());
        control("cut");
        control("mount");
        assert_eq!((admin.list(0x02), read(&mut queue, one, 0, 8)), (vec![1], vec![6; 4096]));
        assert_eq!(u64_at(&admin.identify(0x00, one).data, 0), 1024);
    }
}

#[test]
fn a_drive_tells_which_writes_no_power_cut_tears() {
    // NAWUN, NAWUPF, and their boundaries, counted from 0: a page of 16 KiB, or with capacitors any transfer of a MiB.
    let pages = "page-size = \"16 KiB\"\n[capacity]";
    let ram = "[ram]\nmanager = \"lru\"\nsize = \"1 MiB\"\npower-protected = true\n";
    let atomic_units = |admin: &mut Host, nsid: u32| {
        let data = admin.identify(0x00, nsid).data;
        assert_eq!(data[24] & 2, 2);
        [34, 36, 40, 42, 44].map(|at| u16_at(&data, at))
    };
    let server = serve_on(drive(&SMALL.replace("[capacity]", pages)), Pace::None);
    let mut admin = Host::admin(&server, 0);
    assert_eq!(atomic_units(&mut admin, 1), [31, 31, 31, 0, 31]);
    assert!(admin.ask(sqe(0x80, 1, [1, 0, 0, 0, 0, 0]), &[], Carry::Inside).cqe.status.is_ok());
    assert_eq!(atomic_units(&mut admin, 1), [3, 3, 3, 0, 3]);
    assert_eq!(admin.identify(0x01, 0).data[526..530], [0; 4], "a block, for all namespaces");
    let server = serve_on(drive(&format!("{SMALL}{ram}")), Pace::None);
    let mut admin = Host::admin(&server, 0);
    assert_eq!(atomic_units(&mut admin, 1), [2047, 2047, 0, 0, 0]);
    // One of two extents is torn where they meet, so that pages are all that it promises.
    assert_eq!(admin.delete(1), Status::SUCCESS);
    assert_eq!([3000, 2000, 7000].map(|blocks| admin.create(blocks, 0)), [1, 2, 3]);
    assert_eq!((admin.delete(1), admin.delete(3)), (Status::SUCCESS, Status::SUCCESS));
    assert_eq!(admin.create(9000, 0), 1);
    assert_eq!(atomic_units(&mut admin, 1), [7, 7, 7, 0, 7]);
    // Blocks of 4 KiB that a cut could tear are none of the formats.
    let server = serve_on(drive(&SMALL.replace("[capacity]", "page-size = \"2 KiB\"\n[capacity]")), Pace::None);
    let mut admin = Host::admin(&server, 0);
    let refused = admin.ask(sqe(0x80, 1, [1, 0, 0, 0, 0, 0]), &[], Carry::Inside).cqe.status;
    assert_eq!((refused, atomic_units(&mut admin, 1)), (Status::INVALID_FORMAT, [3, 3, 3, 0, 3]));
}

/// An image in a folder of its own, which goes with it.
pub struct Image(pub PathBuf);

impl Drop for Image {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn on_image(path: &Path) -> LiveRun {
    let config = Config::from_toml(&format!("{SMALL}[recovery]\nmount-by = \"scan\"\n"), "test").unwrap();
    let precondition = (!path.exists()).then_some(Precondition::Empty);
    LiveRun::on_image(path, &config, Seed(1), precondition, || false).unwrap()
}

#[test]
fn an_image_keeps_namespaces_over_a_restart_and_over_a_kill() {
    let path = std::env::temp_dir().join(format!("flashwright-names-{}.img", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let image = Image(path);
    let (mut kept, mut copied) = (Vec::new(), Vec::new());
    for round in 0..6u8 {
        let server = serve_on(on_image(&image.0), if round % 2 == 0 { Pace::None } else { REAL });
        let mut admin = Host::admin(&server, 0);
        let mut queue = admin.queue(&server, 1);
        if round == 0 {
            assert_eq!(admin.delete(1), Status::SUCCESS);
            assert_eq!((admin.create(512, 0), admin.create(64, 1), admin.create(256, 0)), (1, 2, 3));
            assert_eq!(admin.attach(3, 1, &[admin.controller]), Status::SUCCESS);
        } else {
            assert_eq!((admin.list(0x02), admin.list(0x10)), (vec![1, 2], vec![1, 2, 3]), "round {round}");
            let now: Vec<Vec<u8>> = (1..=3).map(|nsid| admin.identify(0x11, nsid).data).collect();
            assert_eq!(now, kept, "identifiers, sizes, formats");
            assert_eq!(read(&mut queue, 1, 0, 8), [round - 1; 4096]);
            // What was deleted does not come back in a namespace that takes its place.
            let four = admin.create(128, 0);
            assert_eq!(read(&mut queue, four, 0, 8), [0; 4096]);
            assert_eq!(write(&mut queue, four, 0, &[99; 4096]), Status::SUCCESS);
            assert!(queue.ask(sqe(0x00, four, [0; 6]), &[], Carry::Inside).cqe.status.is_ok());
            assert_eq!(admin.delete(four), Status::SUCCESS);
        }
        kept = (1..=3).map(|nsid| admin.identify(0x11, nsid).data).collect();
        let blocks = of(1, 0x01, 0, 8);
        assert!(queue.ask(blocks, &[round; 4096], Carry::Inside).cqe.status.is_ok());
        assert!(queue.ask(sqe(0x00, 1, [0; 6]), &[], Carry::Inside).cqe.status.is_ok());
        if round == 4 {
            let file = image.0.with_extension("copy");
            let _ = std::fs::remove_file(&file);
            let arguments = serde_json::json!({ "file": file }).as_object().unwrap().clone();
            server.command("snapshot", &arguments).unwrap();
            copied.push(Image(file));
        }
        // Without an end in order, the file is as after a kill.
        let mut drive = server.stop().served.expect("it lives");
        if round % 3 == 0 {
            drive.close().unwrap();
        }
    }
    let server = serve_on(on_image(&copied[0].0), Pace::None);
    let mut admin = Host::admin(&server, 0);
    assert_eq!((admin.list(0x02), admin.list(0x10)), (vec![1, 2], vec![1, 2, 3]), "a snapshot has them");
    let mut queue = admin.queue(&server, 1);
    assert_eq!(read(&mut queue, 1, 0, 8), [4; 4096]);
}

#[test]
fn a_copy_moves_data_in_the_drive_which_counts_it() {
    for pace in [Pace::None, REAL] {
        let server = serve(pace);
        let mut admin = Host::admin(&server, 0);
        let mut queue = admin.queue(&server, 1);
        let filled: Vec<u8> = (0..32_768u32).map(|at| (at % 253) as u8).collect();
        assert_eq!(write(&mut queue, 1, 0, &filled), Status::SUCCESS);
        // Two ranges, one of them not of whole pages.
        assert_eq!(copy(&mut queue, 1, 1000, &[(40, 3), (0, 16)]), Status::SUCCESS);
        let expected = [&filled[40 * 512..43 * 512], &filled[..8192]].concat();
        assert_eq!(read(&mut queue, 1, 1000, 19), expected);
        let requests = server.stats()["requests"].clone();
        assert_eq!(
            (requests["bytes_written"].as_u64(), requests["write"].as_u64()),
            (Some(32_768 + 19 * 512), Some(2))
        );
        // From one namespace to another, once the host says that it knows such copies.
        assert_eq!(admin.delete(1), Status::SUCCESS);
        let (one, two, large) = (admin.create(256, 0), admin.create(256, 0), admin.create(64, 1));
        assert_eq!(write(&mut queue, one, 8, &[3; 4096]), Status::SUCCESS);
        let mut list = [0; 32];
        put(&mut list, 0, &one.to_le_bytes());
        put(&mut list, 8, &8u64.to_le_bytes());
        put(&mut list, 16, &7u32.to_le_bytes());
        let mut across = of(two, 0x19, 16, 1);
        put(&mut across.0, 48, &(2u32 << 8).to_le_bytes());
        assert_eq!(queue.ask(across, &list, Carry::Inside).cqe.status, Status::INVALID_FIELD);
        let mut behavior = [0; 512];
        behavior[4] = 1 << 2;
        assert!(admin.ask(sqe(0x09, 0, [0x16, 0, 0, 0, 0, 0]), &behavior, Carry::Inside).cqe.status.is_ok());
        assert!(queue.ask(across, &list, Carry::Inside).cqe.status.is_ok());
        assert_eq!(read(&mut queue, two, 8, 24), [[0; 4096], [3; 4096], [0; 4096]].concat());
        put(&mut across.0, 4, &large.to_le_bytes());
        assert_eq!(queue.ask(across, &list, Carry::Inside).cqe.status, Status::INCOMPATIBLE);
        // Many at once: what they gather is bounded, and each is answered.
        let mut whole = [0; 32];
        put(&mut whole, 16, &127u32.to_le_bytes());
        let sent: Vec<u16> = (0..100).map(|_| queue.send(of(one, 0x19, 128, 1), &whole, Carry::Inside, 0)).collect();
        let mut left: std::collections::BTreeSet<u16> = sent.into_iter().collect();
        while let Some(cid) = left.first().copied() {
            let (_, header, _) = queue.receive().expect("an answer");
            assert!(left.remove(&u16_at(&header, 8 + 12)), "{cid} and others are left");
        }
        assert_eq!(read(&mut queue, one, 136, 8), [3; 4096]);
        assert!(server.stop().served.is_some());
    }
}

#[test]
fn a_sanitized_drive_holds_nothing_and_says_so() {
    for pace in [Pace::None, REAL] {
        let server = serve(pace);
        let mut admin = Host::admin(&server, 0);
        let mut queue = admin.queue(&server, 1);
        assert_eq!(write(&mut queue, 1, 0, &[5; 65_536]), Status::SUCCESS);
        let log = |admin: &mut Host| admin.log(0x81, 512).data;
        assert_eq!(u32_at(&log(&mut admin), 0), 0x0000_ffff, "never sanitized");
        assert_eq!(u32_at(&admin.identify(0x01, 0).data, 328), 1 | 1 << 29);
        let sanitize = |action: u32| sqe(0x84, 0, [action, 0, 0, 0, 0, 0]);
        for refused in [0, 2, 3, 5, 6, 7, 4 | 1 << 9, 4 | 1 << 10] {
            assert_eq!(
                admin.ask(sanitize(refused), &[], Carry::Inside).cqe.status,
                Status::INVALID_FIELD,
                "{refused:x}"
            );
        }
        let event = admin.send(sqe(0x0c, 0, [0; 6]), &[], Carry::Inside, 0);
        let begun = admin.send(sanitize(4), &[], Carry::Inside, 0);
        // The event may overtake what follows, and comes once.
        let mut events = Vec::new();
        while events.len() < 2 {
            let (_, header, _) = admin.receive().expect("an answer");
            let cqe = flashwright_nvme::Cqe::parse(header[8..24].try_into().unwrap());
            assert!(cqe.status.is_ok() && [event, begun].contains(&cqe.cid), "{cqe:?}");
            events.push((cqe.cid, cqe.result));
        }
        assert!(events.contains(&(event, 0x0081_0106)), "sanitized: {events:x?}");
        let found = log(&mut admin);
        assert_eq!((u16_at(&found, 0), u16_at(&found, 2), u32_at(&found, 4)), (u16::MAX, 1 | 1 << 8, 4));
        assert_eq!(read(&mut queue, 1, 0, 128), [0; 65_536]);
        assert_eq!(write(&mut queue, 1, 0, &[5; 512]), Status::SUCCESS);
        assert_eq!(u16_at(&log(&mut admin), 2), 1, "data were written since");
        // A wish that can't be met is a warning, if the host prefers that.
        assert!(admin.ask(sqe(0x09, 0, [0x17, 1, 0, 0, 0, 0]), &[], Carry::Inside).cqe.status.is_ok());
        assert!(admin.ask(sanitize(4 | 1 << 9), &[], Carry::Inside).cqe.status.is_ok());
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while u16_at(&log(&mut admin), 2) & 7 != 4 {
            assert!(std::time::Instant::now() < until, "it does not end");
        }
        assert!(server.stop().served.is_some());
    }
}
