//! What hosts of NVMe/TCP get.

use crate::client::{Client, SMALL, drive};
use crate::nvmehost::{Carry, Host, of_blocks, sqe};
use flashwright_block::{BlockDevice, Completion, Nanos, Request, RequestKind, Seed};
use flashwright_nvme::wire::pdu::{self, Format, Span, flag, kind};
use flashwright_nvme::wire::{Cqe, Status, put, u16_at, u32_at, u64_at};
use flashwright_serve::{Pace, Remote, RemoteOptions, Server, Settings, Uri};
use flashwright_sim::LiveRun;
use std::io::{Read, Write};

const REAL: Pace = Pace::Real { time_scale: 1.0 };

fn serve(pace: Pace, change: impl FnOnce(&mut Settings)) -> Server<LiveRun> {
    serve_drive(SMALL, pace, change)
}

fn serve_drive(toml: &str, pace: Pace, change: impl FnOnce(&mut Settings)) -> Server<LiveRun> {
    let nvme_tcp = vec!["tcp:127.0.0.1:0".parse().unwrap()];
    let mut settings = Settings { nvme_tcp, pace, ..Settings::default() };
    change(&mut settings);
    Server::start(drive(toml), &settings).unwrap()
}

#[test]
fn data_come_back_at_any_pace_with_and_without_digests() {
    for (pace, digests) in [(Pace::None, 0), (Pace::None, 3), (REAL, 3)] {
        let server = serve(pace, |_| ());
        let admin = Host::admin(&server, digests);
        let mut queue = admin.queue(&server, 1);
        assert_eq!(queue.read(0, 16), [0; 8192]);
        let small: Vec<u8> = (0..8192u32).map(|at| (at % 251) as u8).collect();
        let large: Vec<u8> = (0..1u32 << 20).map(|at| (at % 241) as u8).collect();
        assert_eq!(queue.write(1, &small, Carry::Inside), Status::SUCCESS);
        assert_eq!(queue.write(17, &small, Carry::Asked), Status::SUCCESS);
        assert_eq!(queue.write(64, &large, Carry::Asked), Status::SUCCESS);
        assert_eq!(queue.read(1, 16), small);
        assert_eq!(queue.read(17, 16), small);
        assert_eq!(queue.read(64, 2048), large);
        // Zeros: of whole pages as a hole, and of a part.
        assert_eq!(queue.ask(of_blocks(0x08, 65, 15), &[], Carry::Inside).cqe.status, Status::SUCCESS);
        assert_eq!(queue.read(64, 16), [&large[..512], &[0; 7680]].concat());
        assert_eq!(queue.ask(of_blocks(0x0c, 0, 2048), &[], Carry::Inside).cqe.status, Status::SUCCESS);
        // Compare with what is there, and with what is not.
        assert_eq!(queue.ask(of_blocks(0x05, 1, 16), &small, Carry::Inside).cqe.status, Status::SUCCESS);
        assert_eq!(queue.ask(of_blocks(0x05, 2, 16), &small, Carry::Inside).cqe.status, Status::COMPARE_FAILED);
        // A flush may name all namespaces.
        for nsid in [1, u32::MAX] {
            assert_eq!(queue.ask(sqe(0x00, nsid, [0; 6]), &[], Carry::Inside).cqe.status, Status::SUCCESS);
        }
        let mut ranges = [0; 32];
        put(&mut ranges, 4, &9u32.to_le_bytes()); // a page and a block of the next
        put(&mut ranges, 8, &64u64.to_le_bytes());
        put(&mut ranges, 20, &8u32.to_le_bytes());
        put(&mut ranges, 24, &120u64.to_le_bytes());
        let trim = sqe(0x09, 1, [1, 1 << 2, 0, 0, 0, 0]);
        assert_eq!(queue.ask(trim, &ranges, Carry::Inside).cqe.status, Status::SUCCESS);
        assert_eq!(queue.read(64, 16), [0; 8192]);
        assert_eq!(queue.read(80, 8), large[8192..12_288]);
        assert_eq!(queue.read(120, 8), [0; 4096]);
        drop((admin, queue));
        let stopped = server.stop();
        assert_eq!(stopped.stats["served"]["connections"]["broken"], 0);
        let report = stopped.served.expect("it lives").report().report;
        assert_eq!((report.requests.trim, report.requests.flush), (2, 2));
    }
}

#[test]
fn what_a_kernel_asks_when_it_attaches_is_answered() {
    let server = serve(Pace::None, |_| ());
    let mut admin = Host::admin(&server, 0);
    let capabilities = admin.property(0x00, 8).cqe.result;
    assert_eq!((capabilities & 0xffff, capabilities >> 16 & 1, capabilities >> 37 & 1), (1023, 1, 1));
    assert_eq!(admin.property(0x08, 4).cqe.result, 0x0002_0100);
    assert_eq!(admin.property(0x68, 4).cqe.result, capabilities >> 24 & 0xff, "CRTO is not below CAP.TO");
    assert_eq!(admin.property(0x1c, 4).cqe.result, 1);
    assert_eq!(admin.property(0x18, 4).cqe.status, Status::INVALID_FIELD);
    let controller = admin.identify(0x01, 0).data;
    assert_eq!(controller.len(), 4096);
    assert_eq!(u16_at(&controller, 78), admin.controller);
    assert_eq!((controller[77], controller[111], controller[512], controller[513]), (8, 1, 0x66, 0x44));
    assert_ne!(u16_at(&controller, 320), 0, "a kernel wants a keep-alive granularity");
    assert_eq!(u32_at(&controller, 536) & 1 << 20 | u32_at(&controller, 536) & 3, 1 << 20 | 1);
    assert_eq!(u32_at(&controller, 1792) * 16, 64 + 8192);
    // Compare, write uncorrectable, dataset management, write zeroes, selectable features, timestamp, verify, copy.
    let expected = u16::from_le_bytes([0b1101_1111, 1]);
    assert_eq!(u16_at(&controller, 520), expected);
    // Get LBA Status, and what a drive with it tells of.
    assert_eq!((u16_at(&controller, 256) >> 9 & 1, u32_at(&controller, 92) >> 13 & 1), (1, 1));
    let bytes = server.stats()["served"]["bytes"].as_u64().unwrap();
    let namespace = admin.identify(0x00, 1).data;
    assert_eq!((u64_at(&namespace, 0) * 512, namespace[26]), (bytes, 0));
    assert_eq!(u16_at(&namespace, 102), u16_at(&admin.identify(0x08, 1).data, 12), "its endurance group");
    assert_eq!(admin.identify(0x03, 1).data[..2], [2, 16]);
    let list = admin.identify(0x02, 0).data;
    assert_eq!((u32_at(&list, 0), u32_at(&list, 4)), (1, 0));
    assert_eq!(u32_at(&admin.identify(0x02, 1).data, 0), 0);
    for structure in [0x05, 0x06, 0x07, 0x13, 0x1c] {
        assert!(admin.identify(structure, u32::from(structure == 5)).cqe.status.is_ok(), "{structure:x}");
    }
    assert_eq!(admin.identify(0x00, 7).data, [0; 4096], "there may be one of that identifier");
    assert_eq!(admin.identify(0x00, 65).cqe.status, Status::INVALID_NAMESPACE);
    assert_eq!(admin.identify(0x55, 0).cqe.status, Status::INVALID_FIELD);
    // Queues, events, power states: what a driver sets.
    let queues = admin.ask(sqe(0x09, 0, [7, 3 << 16 | 3, 0, 0, 0, 0]), &[], Carry::Inside);
    assert_eq!(queues.cqe.result, 3 << 16 | 3);
    assert!(admin.ask(sqe(0x09, 0, [0x0b, 0x1f, 0, 0, 0, 0]), &[], Carry::Inside).cqe.status.is_ok());
    assert_eq!(admin.ask(sqe(0x0a, 0, [0x1d, 1, 0, 0, 0, 0]), &[], Carry::Inside).cqe.status, Status::INVALID_FIELD);
    assert!(admin.ask(sqe(0x18, 0, [0; 6]), &[], Carry::Inside).cqe.status.is_ok());
    // One more than AERL and one event requests are held, and no further one.
    for _ in 0..4 {
        admin.send(sqe(0x0c, 0, [0; 6]), &[], Carry::Inside, 0);
    }
    let refused = admin.ask(sqe(0x0c, 0, [0; 6]), &[], Carry::Inside);
    assert_eq!(refused.cqe.status, Status::TOO_MANY_EVENT_REQUESTS);
    // A shutdown.
    admin.set_config(6 << 16 | 4 << 20 | 1 | 1 << 14);
    assert_eq!(admin.property(0x1c, 4).cqe.result & 0xc, 2 << 2);
    assert!(server.stop().served.is_some());
}

#[test]
fn blocks_that_a_host_marks_fail_until_they_are_written() {
    let unreadable = |answer: crate::nvmehost::Answer| answer.cqe.status.parts() == (2, 0x81) && answer.data.is_empty();
    for (pace, digests) in [(Pace::None, 0), (REAL, 3)] {
        let drive = format!("{SMALL}[recovery]\nmount-by = \"scan\"\n");
        let server = serve_drive(&drive, pace, |_| ());
        let mut admin = Host::admin(&server, digests);
        let mut queue = admin.queue(&server, 1);
        let data: Vec<u8> = (0..64 * 512u32).map(|at| (at % 251) as u8).collect();
        assert_eq!(queue.write(0, &data, Carry::Asked), Status::SUCCESS);
        assert_eq!(queue.ask(sqe(0x00, 1, [0; 6]), &[], Carry::Inside).cqe.status, Status::SUCCESS);
        let programs = server.stats()["flash"]["programs"]["total"].clone();
        assert_eq!(queue.ask(of_blocks(0x04, 10, 5), &[], Carry::Inside).cqe.status, Status::SUCCESS);
        assert_eq!(server.stats()["flash"]["programs"]["total"], programs, "the drive is not asked");
        let listed = |admin: &mut Host| {
            let found = admin.get(sqe(0x86, 1, [0, 0, 17, 0x11 << 24, 0, 0]), 72).data;
            let entries = found[8..].chunks_exact(16).take(u32_at(&found, 0) as usize);
            (found[4], entries.map(|entry| (u64_at(entry, 0), u32_at(entry, 8) + 1, entry[13])).collect::<Vec<_>>())
        };
        assert_eq!(listed(&mut admin), (2, vec![(10, 5, 3)]));
        for opcode in [0x02, 0x05, 0x0c] {
            let bytes = if opcode == 0x02 { 512 } else { 0 };
            for (first, blocks, fails) in
                [(9u64, 1u32, false), (9, 2, true), (12, 1, true), (14, 9, true), (15, 1, false)]
            {
                let at = first as usize * 512;
                let part = if opcode == 0x05 { &data[at..at + 512 * blocks as usize] } else { &[] };
                let cid = queue.send(of_blocks(opcode, first, blocks), part, Carry::Inside, bytes * blocks as usize);
                let answer = queue.answer(cid, part);
                assert!(
                    if fails { unreadable(answer) } else { answer.cqe.status.is_ok() },
                    "{opcode:x}: {first}, {blocks}"
                );
            }
        }
        // A power cut changes nothing of it.
        let control = |name: &str| server.command(name, &serde_json::Map::new()).unwrap();
        control("cut");
        control("mount");
        assert_eq!(listed(&mut admin), (2, vec![(10, 5, 3)]));
        assert_eq!(queue.write(12, &[7; 512], Carry::Inside), Status::SUCCESS);
        assert_eq!(listed(&mut admin), (2, vec![(10, 2, 3), (13, 2, 3)]));
        assert_eq!(queue.read(12, 1), [7; 512]);
        assert_eq!(queue.ask(of_blocks(0x08, 10, 5), &[], Carry::Inside).cqe.status, Status::SUCCESS);
        assert_eq!(listed(&mut admin), (2, vec![]));
        assert_eq!(queue.read(8, 8), [&data[8 * 512..10 * 512], &[0; 5 * 512], &data[15 * 512..16 * 512]].concat());
        // A host that wishes is told of the next mark.
        assert!(admin.ask(sqe(0x09, 0, [0x0b, 1 << 13, 0, 0, 0, 0]), &[], Carry::Inside).cqe.status.is_ok());
        let cid = admin.send(sqe(0x0c, 0, [0; 6]), &[], Carry::Inside, 0);
        assert_eq!(queue.ask(of_blocks(0x04, 40, 1), &[], Carry::Inside).cqe.status, Status::SUCCESS);
        assert_eq!(admin.answer(cid, &[]).cqe.result, 0x0e << 16 | 0x05 << 8 | 2);
        let page = admin.log(0x0e, 48).data;
        assert_eq!((u32_at(&page, 0), u32_at(&page, 4), u32_at(&page, 8)), (48, 1, 1));
        assert_eq!((u32_at(&page, 16), u64_at(&page, 32), u32_at(&page, 40)), (1, 40, 0));
    }
}

/// Of five writes of 1 MiB the server asks for the data of four, so that the fifth waits, and can be aborted.
#[test]
fn a_command_whose_data_were_not_asked_for_is_aborted() {
    for pace in [Pace::None, REAL] {
        let server = serve(pace, |_| ());
        let mut admin = Host::admin(&server, 0);
        let mut queue = admin.queue(&server, 1);
        let data = vec![7; 1 << 20];
        let cids = [(); 5].map(|()| queue.send(of_blocks(0x01, 0, 2048), &data, Carry::Asked, 0));
        // Once a later command is answered, the server has all of them.
        let flush = queue.send(sqe(0x00, 1, [0; 6]), &[], Carry::Inside, 0);
        let mut asked = Vec::new();
        let mut next = |queue: &mut Host| loop {
            let (common, header, _) = queue.receive().expect("an answer");
            match common.kind {
                kind::R2T => asked.push(Span::parse(&header)),
                _ => return Cqe::parse(header[8..24].try_into().unwrap()),
            }
        };
        let found = next(&mut queue);
        assert_eq!((found.cid, found.status), (flush, Status::SUCCESS));
        let mut abort = |number: u16, cid: u16| {
            let answer =
                admin.ask(sqe(0x08, 0, [u32::from(number) | u32::from(cid) << 16, 0, 0, 0, 0, 0]), &[], Carry::Inside);
            assert!(answer.cqe.status.is_ok(), "{:?}", answer.cqe);
            answer.cqe.result
        };
        assert_eq!(abort(1, cids[0]), 1, "its data were asked for");
        assert_eq!(abort(1, cids[4]), 0, "it was aborted");
        assert_eq!((abort(1, cids[4]), abort(2, cids[4])), (1, 1), "it is not there any more, and no such queue is");
        let found = next(&mut queue);
        assert_eq!((found.cid, found.status.parts()), (cids[4], (0, 0x07)));
        assert_eq!(asked.iter().map(|span| span.cid).collect::<Vec<_>>(), cids[..4]);
        for span in asked {
            queue.send_data(span, &data);
            let (_, header, _) = queue.receive().expect("an answer");
            let found = Cqe::parse(header[8..24].try_into().unwrap());
            assert_eq!((found.cid, found.status), (span.cid, Status::SUCCESS));
        }
        drop((admin, queue));
        assert_eq!(server.stop().served.expect("it lives").report().report.requests.bytes_written, 4 << 20);
    }
}

#[test]
fn log_pages_keep_to_their_rules_and_count_what_the_drive_counts() {
    let server = serve(Pace::None, |_| ());
    let mut admin = Host::admin(&server, 0);
    let mut queue = admin.queue(&server, 1);
    for at in 0..40u64 {
        queue.write(at * 8, &[1; 4096], Carry::Inside);
    }
    queue.read(0, 80);
    let smart = admin.log(0x02, 512).data;
    let stats = server.stats();
    let requests = &stats["requests"];
    let units = |bytes: &serde_json::Value| bytes.as_u64().unwrap().div_ceil(512_000);
    assert_eq!(u64_at(&smart, 32), units(&requests["bytes_read"]));
    assert_eq!(u64_at(&smart, 48), units(&requests["bytes_written"]));
    assert_eq!((u64_at(&smart, 64), u64_at(&smart, 80)), (1, 40));
    let ocp = admin.log(0xc0, 512).data;
    let programs = stats["flash"]["programs"]["total"].as_u64().unwrap();
    assert_eq!(u64_at(&ocp, 0), programs * 4096);
    // RAE, an offset, and a length beyond the end of the page.
    assert_eq!(admin.log(0x02 | 1 << 15, 512).data, smart);
    let part = admin.get(sqe(0x02, u32::MAX, [0x02 | 3 << 16, 0, 32, 0, 0, 0]), 16);
    assert_eq!(part.data, smart[32..48]);
    for (offset, expected) in [(512, Status::SUCCESS), (516, Status::INVALID_FIELD), (2, Status::INVALID_FIELD)] {
        let found = admin.get(sqe(0x02, u32::MAX, [0x02 | 3 << 16, 0, offset, 0, 0, 0]), 16);
        assert_eq!(found.cqe.status, expected, "{offset}");
    }
    assert_eq!(admin.log(0x7e, 512).cqe.status, Status::INVALID_LOG_PAGE);
    let effects = admin.log(0x05, 4096).data;
    assert_eq!((u32_at(&effects, 4 * 0x80) & 0x7, u32_at(&effects, 1024 + 4)), (7, 3));
    assert_eq!(u32_at(&effects, 1024 + 4 * 0x44), 0);
    // The last error is the first entry.
    assert_eq!(queue.get(of_blocks(0x02, 1 << 40, 1), 512).cqe.status, Status::LBA_OUT_OF_RANGE);
    let errors = admin.log(0x01, 64).data;
    assert_eq!((u16_at(&errors, 8), u64_at(&errors, 16)), (1, 1 << 40));
    assert!(u64_at(&errors, 0) >= 1);
    assert!(server.stop().served.is_some());
}

#[test]
fn each_rule_that_is_broken_has_its_status() {
    let server = serve(Pace::None, |_| ());
    let mut admin = Host::admin(&server, 0);
    let mut queue = admin.queue(&server, 1);
    let blocks = server.stats()["served"]["bytes"].as_u64().unwrap() / 512;
    let of = |opcode: u8, nsid: u32, dword: u32| sqe(opcode, nsid, [0, 0, dword, 0, 0, 0]);
    let table = [
        (of_blocks(0x02, blocks - 1, 1), 512, Status::SUCCESS),
        (of_blocks(0x02, blocks, 1), 512, Status::LBA_OUT_OF_RANGE),
        (of_blocks(0x02, u64::MAX, 2), 1024, Status::LBA_OUT_OF_RANGE),
        (of_blocks(0x02, 0, 1), 511, Status::SGL_LENGTH),
        (of_blocks(0x02, 0, 4096), 4096 * 512, Status::INVALID_FIELD), // more than MDTS
        (of(0x02, 0, 0), 512, Status::INVALID_NAMESPACE),
        (of(0x02, 2, 0), 512, Status::INVALID_FIELD), // it is not there
        (of(0x02, 65, 0), 512, Status::INVALID_NAMESPACE),
        (of(0x02, u32::MAX, 0), 512, Status::INVALID_NAMESPACE),
        (of(0x44, 1, 0), 0, Status::INVALID_OPCODE),
        (of(0x0d, 1, 0), 0, Status::INVALID_OPCODE),
        (of_blocks(0x08, blocks - 1, 2), 0, Status::LBA_OUT_OF_RANGE),
        (of_blocks(0x0c, blocks, 1), 0, Status::LBA_OUT_OF_RANGE),
    ];
    for (command, wanted, expected) in table {
        assert_eq!(queue.get(command, wanted).cqe.status, expected, "{:x?} {wanted}", &command.0[..1]);
    }
    let mut fused = of_blocks(0x02, 0, 1);
    fused.0[1] |= 1;
    assert_eq!(queue.get(fused, 512).cqe.status, Status::INVALID_FIELD);
    let mut prp = of_blocks(0x02, 0, 1);
    prp.0[1] = 0;
    assert_eq!(queue.get(prp, 512).cqe.status, Status::INVALID_FIELD);
    assert_eq!(queue.write(blocks, &[0; 512], Carry::Inside), Status::LBA_OUT_OF_RANGE);
    let directive = sqe(0x01, 1, [0, 0, 2 << 20, 0, 0, 0]);
    assert_eq!(queue.ask(directive, &[0; 512], Carry::Inside).cqe.status, Status::INVALID_FIELD);
    let mut ranges = [0; 16];
    put(&mut ranges, 4, &2u32.to_le_bytes());
    put(&mut ranges, 8, &(blocks - 1).to_le_bytes());
    let trim = sqe(0x09, 1, [0, 1 << 2, 0, 0, 0, 0]);
    assert_eq!(queue.ask(trim, &ranges, Carry::Inside).cqe.status, Status::LBA_OUT_OF_RANGE);
    assert_eq!(queue.ask(trim, &ranges[..8], Carry::Inside).cqe.status, Status::SGL_LENGTH);
    // Admin.
    assert_eq!(
        admin.ask(sqe(0x09, 0, [6 | 1 << 31, 1, 0, 0, 0, 0]), &[], Carry::Inside).cqe.status,
        Status::NOT_SAVEABLE
    );
    assert_eq!(admin.ask(sqe(0x09, 0, [0x81, 1, 0, 0, 0, 0]), &[], Carry::Inside).cqe.status, Status::NOT_CHANGEABLE);
    assert_eq!(admin.ask(sqe(0x80, 1, [7, 0, 0, 0, 0, 0]), &[], Carry::Inside).cqe.status, Status::INVALID_FORMAT);
    // A read-only drive.
    let server = serve(Pace::None, |settings| settings.read_only = true);
    let mut queue = Host::admin(&server, 0).queue_of(&server);
    assert_eq!(queue.1.write(0, &[0; 512], Carry::Inside), Status::WRITE_PROTECTED);
    assert!(queue.1.read(0, 1).iter().all(|byte| *byte == 0));
}

#[test]
fn a_host_that_is_not_who_it_says_gets_no_queue() {
    let server = serve(Pace::None, |_| ());
    let refused = |host: &mut Host, number: u16, size: u16, nqn: &str| {
        let cqe = host.connect(number, size, nqn, 0).cqe;
        (cqe.status, cqe.result)
    };
    let open = || Host::open(&server, 0);
    let nqn = open().nqn;
    let wrong = |at: u64, in_data: bool| (Status::CONNECT_PARAMETERS, at | u64::from(in_data) << 16);
    assert_eq!(refused(&mut open(), 0, 31, "nqn.2014-08.org.example:other"), wrong(256, true));
    assert_eq!(refused(&mut open(), 0, 0, &nqn), wrong(44, false));
    assert_eq!(refused(&mut open(), 1, 31, &nqn), wrong(16, true), "no such controller");
    let mut early = open();
    assert_eq!(early.identify(0x01, 0).cqe.status, Status::SEQUENCE, "no queue yet");
    let mut admin = Host::admin(&server, 0);
    let mut stranger = open();
    (stranger.controller, stranger.name) = (admin.controller, "nqn.2014-08.org.example:stranger");
    assert_eq!(refused(&mut stranger, 1, 31, &nqn).0, Status::CONNECT_HOST);
    let mut second = open();
    second.controller = admin.controller;
    assert_eq!(refused(&mut second, 200, 31, &nqn), wrong(42, false), "beyond the queues that there are");
    assert_eq!(second.connect(1, 31, &nqn, 0).cqe.status, Status::SUCCESS);
    let mut third = open();
    third.controller = admin.controller;
    assert_eq!(refused(&mut third, 1, 31, &nqn).0, Status::SEQUENCE, "the queue is served already");
    assert_eq!(admin.connect(0, 31, &nqn, 0).cqe.status, Status::SEQUENCE, "connected already");
    // With the admin queue its controller goes, and with it the other queues.
    drop(admin);
    assert!(second.receive().is_none());
    assert!(server.stop().served.is_some());
}

#[test]
fn a_reset_ends_the_queues_and_the_host_has_new_ones_at_once() {
    for pace in [Pace::None, REAL] {
        let server = serve(pace, |_| ());
        let mut admin = Host::admin(&server, 0);
        let mut old = admin.queue(&server, 1);
        old.write(0, &[5; 4096], Carry::Inside);
        admin.set_config(6 << 16 | 4 << 20);
        assert_eq!(admin.property(0x1c, 4).cqe.result & 1, 0);
        assert_eq!(admin.identify(0x01, 0).cqe.status, Status::SEQUENCE, "it is not enabled");
        admin.set_config(6 << 16 | 4 << 20 | 1);
        let mut new = admin.queue(&server, 1);
        assert_eq!(new.read(0, 8), [5; 4096]);
        assert!(old.receive().is_none(), "the connection of the old queue ends");
        assert_eq!(new.read(0, 8), [5; 4096], "and the new one stays");
    }
}

#[test]
fn without_flow_control_data_alone_complete_a_read() {
    let server = serve(Pace::None, |_| ());
    let admin = Host::admin(&server, 0);
    let mut queue = Host::open(&server, 0);
    queue.controller = admin.controller;
    let nqn = queue.nqn.clone();
    assert_eq!(queue.connect(1, 31, &nqn, 1 << 2).cqe.sq_head, u16::MAX);
    assert_eq!(queue.get(of_blocks(0x02, 0, 1), 512).data, [0; 512]);
    assert_eq!(queue.get(of_blocks(0x02, 1 << 40, 1), 512).cqe.status, Status::LBA_OUT_OF_RANGE);
    assert_eq!(queue.write(0, &[3; 512], Carry::Asked), Status::SUCCESS);
    assert_eq!(queue.read(0, 1), [3; 512]);
}

#[test]
fn a_broken_transport_ends_its_connection_alone() {
    let server = serve(Pace::None, |_| ());
    let mut admin = Host::admin(&server, 1);
    let command = |change: fn(&mut Vec<u8>)| {
        let mut host = Host::admin(&server, 1);
        let mut out = Vec::new();
        host.format.put_command(&mut out, &sqe(0x18, 0, [0; 6]), &[]);
        change(&mut out);
        host.stream.write_all(&out).unwrap();
        assert!(host.is_terminated());
    };
    command(|out| out[2] = 71); // the header's length
    command(|out| out[0] = kind::C2H_DATA); // what no host sends
    command(|out| out[0] = kind::IC_REQ); // a second beginning
    command(|out| out[4..8].fill(0xff)); // a length
    command(|out| out[20] ^= 1); // a header's digest
    // Data that nobody asked for.
    let mut host = Host::admin(&server, 0);
    host.send_data(Span { cid: 1, tag: 1, offset: 0, length: 0 }, &[0; 512]);
    assert!(host.is_terminated());
    // Data out of order.
    let mut host = Host::admin(&server, 0).queue_of(&server).1;
    host.send(of_blocks(0x01, 0, 16), &[5; 8192], Carry::Asked, 0);
    let (_, header, _) = host.receive().unwrap();
    let mut out = Vec::new();
    let span = Span { offset: 4096, length: 4096, ..Span::parse(&header) };
    host.format.put_data_header(&mut out, kind::H2C_DATA, flag::LAST, span);
    out.resize(out.len() + 4096, 0);
    host.stream.write_all(&out).unwrap();
    assert!(host.is_terminated());
    assert!(admin.ask(sqe(0x18, 0, [0; 6]), &[], Carry::Inside).cqe.status.is_ok(), "others go on");
    // A wrong digest of data fails the command alone.
    let mut host = Host::admin(&server, 2);
    let nqn = host.nqn.clone();
    assert_eq!(host.connect(0, 31, &nqn, 0).cqe.status, Status::SEQUENCE);
    let mut out = Vec::new();
    let mut behavior = sqe(0x09, 0, [0x16, 0, 0, 0, 0, 0]);
    put(&mut behavior.0, 2, &77u16.to_le_bytes());
    put(&mut behavior.0, 32, &512u32.to_le_bytes());
    behavior.0[39] = 1;
    Format { data_digest: true, ..host.format }.put_command(&mut out, &behavior, &[0; 512]);
    *out.last_mut().unwrap() ^= 1;
    host.stream.write_all(&out).unwrap();
    assert_eq!(host.answer(77, &[]).cqe.status, Status::TRANSPORT_ERROR);
    // Nothing but noise.
    let mut noise = std::net::TcpStream::connect(admin.stream.peer_addr().unwrap()).unwrap();
    noise.write_all(&[0x55; 4096]).unwrap();
    let mut left = Vec::new();
    let _ = noise.read_to_end(&mut left);
    assert_eq!(left.first(), Some(&kind::C2H_TERM));
    let stopped = server.stop();
    assert!(stopped.served.is_some());
}

#[test]
fn discovery_tells_where_the_subsystem_is() {
    let server = serve(Pace::None, |_| ());
    let mut host = Host::open(&server, 0);
    let address = host.stream.peer_addr().unwrap();
    assert!(host.connect(0, 31, "nqn.2014-08.org.nvmexpress.discovery", 0).cqe.status.is_ok());
    host.set_config(6 << 16 | 4 << 20 | 1);
    assert_eq!(host.identify(0x01, 0).data[111], 2);
    let log = host.log(0x70, 2048).data;
    assert_eq!((u64_at(&log, 8), log[1024]), (1, 3));
    let text = |at: usize, length: usize| {
        let found: Vec<u8> = log[at..at + length].iter().copied().take_while(|byte| *byte != 0).collect();
        String::from_utf8(found).unwrap().trim_end().to_owned()
    };
    assert_eq!(text(1024 + 256, 256), host.nqn);
    assert_eq!(text(1024 + 512, 256), address.ip().to_string());
    assert_eq!(text(1024 + 32, 32), address.port().to_string());
    assert_eq!(host.identify(0x00, 1).cqe.status, Status::INVALID_FIELD);
    assert_eq!(host.log(0x02, 512).cqe.status, Status::INVALID_LOG_PAGE);
}

#[test]
fn a_format_changes_the_blocks_and_empties_the_drive() {
    let server = serve(Pace::None, |_| ());
    let mut admin = Host::admin(&server, 0);
    let mut queue = admin.queue(&server, 1);
    queue.write(0, &[9; 8192], Carry::Inside);
    assert!(admin.ask(sqe(0x80, 1, [1, 0, 0, 0, 0, 0]), &[], Carry::Inside).cqe.status.is_ok());
    let bytes = server.stats()["served"]["bytes"].as_u64().unwrap();
    let namespace = admin.identify(0x00, 1).data;
    assert_eq!((u64_at(&namespace, 0) * 4096, namespace[26], u64_at(&namespace, 16)), (bytes, 1, 0));
    assert_eq!(queue.get(of_blocks(0x02, 0, 2), 8192).data, [0; 8192]);
    assert_eq!(queue.get(of_blocks(0x02, bytes / 4096, 1), 4096).cqe.status, Status::LBA_OUT_OF_RANGE);
}

#[test]
fn a_power_cut_fails_commands_and_is_counted() {
    for pace in [Pace::None, REAL] {
        let server = serve_drive(&format!("{SMALL}[recovery]\nmount-by = \"scan\"\n"), pace, |_| ());
        let mut admin = Host::admin(&server, 0);
        let mut queue = admin.queue(&server, 1);
        queue.write(0, &[9; 4096], Carry::Inside);
        assert!(queue.ask(sqe(0x00, 1, [0; 6]), &[], Carry::Inside).cqe.status.is_ok());
        server.command("cut", &serde_json::Map::new()).unwrap();
        assert_eq!(queue.get(of_blocks(0x02, 0, 8), 4096).cqe.status, Status::POWER_LOSS);
        server.command("mount", &serde_json::Map::new()).unwrap();
        assert_eq!(queue.read(0, 8), [9; 4096]);
        let smart = admin.log(0x02, 512).data;
        assert_eq!((u64_at(&smart, 112), u64_at(&smart, 144)), (2, 1), "power cycles, unsafe shutdowns");
    }
}

#[test]
fn a_host_that_stays_silent_is_given_up_and_one_of_nbd_sees_the_same_data() {
    let server = serve(Pace::None, |settings| settings.nbd = vec!["tcp:127.0.0.1:0".parse().unwrap()]);
    let mut admin = Host::admin(&server, 0);
    let mut queue = admin.queue(&server, 1);
    queue.write(8, &[4; 4096], Carry::Inside);
    let mut other = Client::begun(&server);
    assert_eq!(other.read(4096, 4096), [4; 4096]);
    // A keep-alive time of half a second, and nothing more.
    assert!(admin.ask(sqe(0x09, 0, [0x0f, 500, 0, 0, 0, 0]), &[], Carry::Inside).cqe.status.is_ok());
    assert!(admin.receive().is_none(), "the connection ends by itself");
    assert!(queue.receive().is_none(), "and that of its other queue");
    assert_eq!(other.read(4096, 4096), [4; 4096]);
    assert!(server.stop().served.is_some());
}

#[test]
fn many_commands_at_once_are_all_answered() {
    for pace in [Pace::None, Pace::Real { time_scale: 0.01 }] {
        let server = serve(pace, |_| ());
        let admin = Host::admin(&server, 0);
        let mut queue = admin.queue(&server, 1);
        let data = vec![8; 65_536];
        let mut left: std::collections::BTreeSet<u16> =
            (0..100).map(|at| queue.send(of_blocks(0x01, at * 128 % 1024, 128), &data, Carry::Asked, 0)).collect();
        while !left.is_empty() {
            let (common, header, _) = queue.receive().expect("an answer");
            match common.kind {
                kind::R2T => queue.send_data(Span::parse(&header), &data),
                kind::RESPONSE => assert!(left.remove(&u16_at(&header, pdu::COMMON_BYTES + 12))),
                other => panic!("a PDU of type {other} came"),
            }
        }
        assert_eq!(queue.read(0, 128), data);
        assert!(server.stop().served.is_some());
    }
}

/// A host that has errors for what is not written reads what it wrote, and what another host trims no more.
#[test]
fn what_is_not_written_is_an_error_once_a_host_wishes() {
    for pace in [Pace::None, Pace::Real { time_scale: 0.01 }] {
        let server = serve(pace, |_| ());
        let (mut admin, other) = (Host::admin(&server, 0), Host::admin(&server, 0));
        let (mut queue, mut plain) = (admin.queue(&server, 1), other.queue(&server, 1));
        let status = |queue: &mut Host, first: u64| queue.get(of_blocks(0x02, first, 8), 4096).cqe.status;
        assert_eq!(status(&mut queue, 64), Status::SUCCESS);
        assert_eq!(
            admin.ask(sqe(0x09, 1, [0x05, 1 << 16, 0, 0, 0, 0]), &[], Carry::Inside).cqe.status,
            Status::SUCCESS
        );
        assert_eq!([&mut queue, &mut plain].map(|of| status(of, 64)), [Status::UNWRITTEN, Status::SUCCESS]);
        assert_eq!(queue.write(64, &[9; 4096], Carry::Inside), Status::SUCCESS);
        assert_eq!((status(&mut queue, 64), status(&mut queue, 68)), (Status::SUCCESS, Status::UNWRITTEN));
        assert_eq!(plain.ask(of_blocks(0x08, 64, 8), &[], Carry::Inside).cqe.status, Status::SUCCESS);
        assert_eq!(status(&mut queue, 64), Status::SUCCESS, "zeros that were written");
        let mut range = [0; 16];
        put(&mut range, 4, &8u32.to_le_bytes());
        put(&mut range, 8, &64u64.to_le_bytes());
        let trim = sqe(0x09, 1, [0, 1 << 2, 0, 0, 0, 0]);
        assert_eq!(plain.ask(trim, &range, Carry::Inside).cqe.status, Status::SUCCESS);
        assert_eq!(status(&mut queue, 64), Status::UNWRITTEN);
        assert!(server.stop().served.is_some());
    }
}

/// Two hosts: one with two queues, one with a queue of the same number.
#[test]
fn each_queue_of_each_host_has_figures_of_its_own() {
    for pace in [Pace::None, Pace::Real { time_scale: 0.01 }] {
        let server = serve(pace, |_| ());
        let (one, other) = (Host::admin(&server, 0), Host::admin(&server, 0));
        let queues = [one.queue(&server, 1), one.queue(&server, 2), other.queue(&server, 1)];
        for (count, mut queue) in [3, 5, 7].into_iter().zip(queues) {
            assert_eq!(queue.write(0, &[1; 8192], Carry::Inside), Status::SUCCESS);
            (0..count).for_each(|_| drop(queue.read(0, 8)));
        }
        let report = server.stop().served.unwrap().report().report;
        let found: Vec<_> = report.queues.iter().map(|of| (of.queue, of.requests.read, of.requests.write)).collect();
        assert_eq!(found, [(1, 3, 1), (2, 5, 1), (129, 7, 1)]);
        assert_eq!(report.queues.iter().map(|of| of.pages_written).sum::<u64>(), report.host.pages_written.unwrap());
    }
}

#[test]
fn a_host_that_takes_its_answers_late_gets_all_of_them() {
    for pace in [Pace::None, Pace::Real { time_scale: 0.01 }] {
        let server = serve(pace, |_| ());
        let admin = Host::admin(&server, 0);
        let mut queue = admin.queue(&server, 1);
        let sent: Vec<u16> =
            (0..24).map(|_| queue.send(of_blocks(0x02, 0, 2048), &[], Carry::Inside, 1 << 20)).collect();
        // Longer than the server waits between two looks; the sockets hold a part of 24 MiB.
        std::thread::sleep(std::time::Duration::from_secs(1));
        let mut answered = 0;
        while answered < sent.len() {
            let (common, ..) = queue.receive().expect("an answer");
            answered += usize::from(common.kind == kind::RESPONSE);
        }
        assert_eq!(queue.read(0, 8), [0; 4096]);
    }
}

pub fn remote(server: &Server<LiveRun>, scheme: &str, depth: u32) -> Remote {
    let uri = server.uris().iter().find(|uri| uri.starts_with(scheme)).unwrap();
    let uri: Uri = uri.parse().unwrap();
    Remote::open(&uri, RemoteOptions { destroys_data: true, depth, seed: Seed(1) }).unwrap()
}

/// Plays requests, and returns how many failed.
fn play(remote: &mut Remote, requests: impl Iterator<Item = Request>) -> usize {
    let (mut completion, mut failed, mut left) = (Completion::default(), 0, 0);
    let mut ended = |remote: &mut Remote, left: &mut usize| {
        assert!(remote.wait(Nanos(u64::MAX), &mut completion).unwrap());
        failed += usize::from(completion.result.is_err());
        *left -= 1;
    };
    for request in requests {
        remote.submit(request).unwrap();
        left += 1;
        while left >= remote.info().queue_depth as usize {
            ended(remote, &mut left);
        }
    }
    while left > 0 {
        ended(remote, &mut left);
    }
    failed
}

fn request(kind: RequestKind, first_sector: u64, sectors: u32, fua: bool) -> Request {
    Request { kind, first_sector, sectors, fua, ..Request::default() }
}

#[test]
fn our_own_host_plays_every_kind_of_request() {
    for pace in [Pace::None, Pace::Real { time_scale: 0.01 }] {
        let server = serve(pace, |_| ());
        let mut remote = remote(&server, "nvme+tcp", 32);
        assert_eq!(remote.info().capacity.0, server.stats()["served"]["bytes"].as_u64().unwrap());
        let kinds = [RequestKind::Write, RequestKind::Read, RequestKind::Trim];
        let mixed = (0..600u64).map(|at| {
            // From a sector to more than a command moves.
            let sectors = [1, 8, 16, 17, 256, 2048, 5000][at as usize % 7];
            request(kinds[at as usize % 3], at * 37 % 8000, sectors, at % 11 == 0)
        });
        let flushes = (0..3).map(|_| request(RequestKind::Flush, 0, 0, false));
        assert_eq!(play(&mut remote, mixed.chain(flushes)), 0);
        drop(remote);
        let report = server.stop().served.expect("it lives").report().report;
        let counts = &report.requests;
        assert!(counts.write >= 200 && counts.read >= 200 && counts.trim > 100 && counts.flush >= 3, "{counts:?}");
    }
}

#[test]
fn a_subsystem_is_found_by_its_address_alone_and_a_wrong_name_is_one_line() {
    let server = serve(Pace::None, |_| ());
    let (address, _) = server.uris()[0].strip_prefix("nvme+tcp://").unwrap().split_once('/').unwrap();
    let open = |text: String| {
        let uri: Uri = text.parse().unwrap();
        Remote::open(&uri, RemoteOptions { destroys_data: false, depth: 4, seed: Seed(1) })
    };
    let mut found = open(format!("nvme+tcp://{address}")).unwrap();
    assert_eq!(play(&mut found, (0..9).map(|at| request(RequestKind::Read, at, 8, false))), 0);
    assert!(found.submit(request(RequestKind::Write, 0, 8, false)).is_err(), "without consent");
    let error = open(format!("nvme+tcp://{address}/nqn.2014-08.org.example:none")).err().unwrap();
    assert!(error.what.contains("refuses to connect") && !error.what.contains('\n'), "{error}");
    let nbd = serve(Pace::None, |settings| settings.nbd = vec!["tcp:127.0.0.1:0".parse().unwrap()]);
    let error = open(nbd.uris()[0].replace("nbd://", "nvme+tcp://")).err().unwrap();
    assert!(error.what.contains("the greeting failed") && !error.hint.is_empty(), "{error}");
}

#[test]
#[ignore = "measures time: on a quiet machine"]
fn nvme_keeps_up_with_nbd() {
    let server = serve(Pace::None, |settings| settings.nbd = vec!["tcp:127.0.0.1:0".parse().unwrap()]);
    for kind in [RequestKind::Read, RequestKind::Write] {
        let rate = |scheme: &str| {
            let mut remote = remote(&server, scheme, 32);
            let begun = std::time::Instant::now();
            assert_eq!(play(&mut remote, (0..200_000u64).map(|at| request(kind, at * 8 % 8000, 8, false))), 0);
            200_000.0 / begun.elapsed().as_secs_f64()
        };
        let ratios: Vec<f64> = (0..5).map(|_| rate("nvme+tcp") / rate("nbd")).collect();
        println!("{}: NVMe/TCP {:.0} /s, times NBD's {ratios:.2?}", kind.name(), rate("nvme+tcp"));
        let mut sorted = ratios;
        sorted.sort_by(f64::total_cmp);
        assert!(sorted[2] >= 0.8, "{sorted:?}");
    }
}
