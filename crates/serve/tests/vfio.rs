//! What virtual machines get that attach the drive over vfio-user.

use crate::client::{Client, SMALL, drive};
use crate::vfiohost::{BASE, DATA, ENTRIES, EVENTS, MEMORY, Machine, PAGE, sqe};
use flashwright_nvme::vfio::{Message, command};
use flashwright_nvme::wire::{Status, put, u16_at, u32_at, u64_at};
use flashwright_serve::{Pace, Server, Settings};
use flashwright_sim::LiveRun;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const REAL: Pace = Pace::Real { time_scale: 1.0 };

/// A path that nobody else has.
fn path() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("flashwright-vfio-{}-{number}", std::process::id()))
}

fn serve(pace: Pace) -> Server<LiveRun> {
    serve_drive(SMALL, pace)
}

fn serve_drive(toml: &str, pace: Pace) -> Server<LiveRun> {
    let nbd = vec!["tcp:127.0.0.1:0".parse().unwrap()];
    let settings = Settings { nbd, vfio_user: vec![path()], pace, ..Settings::default() };
    Server::start(drive(toml), &settings).unwrap()
}

fn pattern(bytes: u32, modulus: u32) -> Vec<u8> {
    (0..bytes).map(|at| (at % modulus) as u8).collect()
}

#[test]
fn data_come_back_at_any_pace_and_a_client_of_nbd_sees_them() {
    for (pace, is_sealed, has_shadow) in [
        (Pace::None, true, false),
        (Pace::None, true, true),
        (Pace::None, false, true),
        (REAL, true, false),
        (REAL, true, true),
        (REAL, false, true),
    ] {
        let server = serve(pace);
        let mut machine = Machine::begun(&server, is_sealed, 3);
        if has_shadow {
            machine.keep_shadow();
        }
        assert_eq!(machine.read(0, 8192), [0; 8192]);
        let (small, large) = (pattern(8192, 251), pattern(1 << 20, 241));
        assert_eq!(machine.write(1, &small), Status::SUCCESS);
        assert_eq!(machine.write(64, &large), Status::SUCCESS);
        assert!(machine.is_signalled(1), "its vector");
        assert_eq!(machine.read(1, 8192), small);
        assert_eq!(machine.read(64, 1 << 20), large);
        let mut nbd = Client::begun(&server);
        assert_eq!(nbd.read(64 * 512, 1 << 20), large);
        nbd.write(4096 * 512, &small);
        assert_eq!(machine.read(4096, 8192), small);
        // On the other queues, whose vectors are others.
        for queue in [2, 3] {
            machine.fill(DATA, &small);
            assert_eq!(machine.io(queue, 0x01, 8192, 16, DATA), Status::SUCCESS);
            assert!(machine.is_signalled(usize::from(queue)));
            assert_eq!(machine.io(queue, 0x05, 8192, 16, DATA), Status::SUCCESS, "compare");
            assert_eq!(machine.io(queue, 0x05, 8193, 8, DATA), Status::COMPARE_FAILED);
        }
        let errors = machine.ask(0, sqe(0x02, 0, [0x01 | 31 << 16, 0, 0, 0, 0, 0], [DATA, 0]));
        assert_eq!(errors.status, Status::SUCCESS);
        let entry = machine.look(DATA, 64);
        assert_eq!((u64_at(&entry, 0), u16_at(&entry, 8), entry[29]), (2, 3, 0), "the second, queue 3, no fabric");
        assert_eq!(machine.ask(1, sqe(0x00, 1, [0; 6], [0; 2])).status, Status::SUCCESS, "flush");
        assert_eq!(machine.ask(1, sqe(0x08, 1, [64, 0, 15, 0, 0, 0], [0; 2])).status, Status::SUCCESS, "zeroes");
        assert_eq!(machine.read(64, 8192), [0; 8192]);
        let mut range = [0; 16];
        put(&mut range, 4, &8u32.to_le_bytes());
        put(&mut range, 8, &120u64.to_le_bytes());
        machine.fill(DATA, &range);
        assert_eq!(machine.ask(1, sqe(0x09, 1, [0, 4, 0, 0, 0, 0], [DATA, 0])).status, Status::SUCCESS, "trim");
        assert_eq!(machine.read(120, 4096), [0; 4096]);
        // An SGL of two pieces, at odd addresses.
        machine.fill(DATA + 3, &small[..4096]);
        let mut segment = [0; 32];
        for (at, address) in [DATA + 3, DATA + 3 + 1000].into_iter().enumerate() {
            put(&mut segment, 16 * at, &address.to_le_bytes());
            put(&mut segment, 16 * at + 8, &[1000u32, 3096][at].to_le_bytes());
        }
        machine.fill(EVENTS + PAGE, &segment);
        let mut command = sqe(0x01, 1, [200, 0, 7, 0, 0, 0], [EVENTS + PAGE, 32 | 0x30 << 56]);
        command.0[1] = 1 << 6;
        assert_eq!(machine.ask(1, command).status, Status::SUCCESS);
        assert_eq!(machine.read(200, 4096), small[..4096]);
        drop((machine, nbd));
        let socket = PathBuf::from(server.uris()[1].strip_prefix("vfio-user:").unwrap());
        assert!(socket.exists());
        let stopped = server.stop();
        assert!(!socket.exists(), "it is gone");
        assert_eq!(stopped.stats["served"]["connections"]["broken"], 0);
        let report = stopped.served.expect("it lives").report().report;
        assert_eq!((report.requests.trim, report.requests.flush), (1, 1));
    }
}

#[test]
fn what_a_kernel_asks_when_it_attaches_is_answered() {
    let server = serve(Pace::None);
    let mut machine = Machine::begun(&server, true, 0);
    assert_eq!(u32_at(&machine.read_region(7, 8, 4), 0) >> 8, 0x01_08_02);
    let controller = machine.identify(0x01, 0);
    assert_eq!((controller[77], controller[111], u32_at(&controller, 536) & 3), (8, 1, 1));
    assert_eq!(u16_at(&controller, 256) & 1 << 8, 1 << 8, "shadow doorbells");
    assert_eq!(u32_at(&controller, 1792), 0, "no capsules");
    let bytes = server.stats()["served"]["bytes"].as_u64().unwrap();
    assert_eq!(u64_at(&machine.identify(0x00, 1), 0) * 512, bytes);
    for (structure, nsid) in [(0x02, 0), (0x03, 1), (0x06, 0), (0x08, 1)] {
        machine.identify(structure, nsid);
    }
    let queues = machine.ask(0, sqe(0x09, 0, [7, 2 << 16 | 2, 0, 0, 0, 0], [0; 2]));
    assert_eq!((queues.status, queues.result), (Status::SUCCESS, 2 << 16 | 2));
    assert_eq!(machine.create(3), [Status::SUCCESS; 2]);
    let beyond = sqe(0x05, 0, [4 | 63 << 16, 1, 0, 0, 0, 0], [DATA, 0]);
    assert_eq!(machine.ask(0, beyond).status, Status::INVALID_QUEUE, "beyond the queues that it asked for");
    // The effects of commands: those of queues are there, and over NVMe/TCP they are not.
    let log = machine.ask(0, sqe(0x02, u32::MAX, [0x05 | 1023 << 16, 0, 0, 0, 0, 0], [DATA, 0]));
    assert_eq!(log.status, Status::SUCCESS);
    let effects = machine.look(DATA, 4096);
    assert!([0x00, 0x01, 0x04, 0x05, 0x7c].iter().all(|opcode| effects[4 * opcode] & 1 == 1));
    // A shutdown ends when everything is durable.
    machine.set(0x14, 6 << 16 | 4 << 20 | 1 | 1 << 14);
    while machine.register(0x1c) >> 2 & 3 != 2 {}
    assert_eq!(server.stats()["requests"]["flush"], 1);
}

#[test]
fn many_commands_at_once_are_all_answered() {
    for (pace, has_shadow) in [(Pace::None, true), (Pace::Real { time_scale: 0.01 }, false), (REAL, true)] {
        let server = serve(pace);
        let mut machine = Machine::begun(&server, true, 1);
        if has_shadow {
            machine.keep_shadow();
        }
        machine.fill(DATA, &pattern(65_536, 239));
        let pointer = machine.prps(DATA, 65_536);
        let mut answered = 0;
        for round in 0..20 {
            // Rounds of different lengths, in one doorbell each.
            let count = [1, ENTRIES - 1, 17][round % 3];
            for at in 0..count {
                machine.put(1, sqe(0x01, 1, [at * 128 % 1024, 0, 127, 0, 0, 0], pointer));
            }
            machine.ring_for(1, count);
            for _ in 0..count {
                let cqe = machine.wait(1).expect("a completion");
                assert_eq!(cqe.status, Status::SUCCESS);
                answered += 1;
            }
        }
        assert!(machine.poll(1).is_none() && answered > 500);
        assert_eq!(machine.read(128, 65_536), pattern(65_536, 239));
        let queues = server.stop().served.unwrap().report().report.queues;
        assert_eq!((queues.len(), queues[0].queue, queues[0].requests.write), (1, 1, answered));
    }
}

#[test]
fn a_machine_begins_again_after_a_reset_and_after_it_was_killed() {
    for pace in [Pace::None, REAL] {
        let server = serve(pace);
        let mut machine = Machine::begun(&server, true, 1);
        machine.write(8, &[5; 4096]);
        // The controller is disabled, and then the function is reset.
        for by_message in [false, true] {
            if by_message {
                machine.tell(command::DEVICE_RESET, &[], &[]).unwrap();
            }
            machine.enable();
            assert_eq!(machine.create(1), [Status::SUCCESS; 2]);
            assert_eq!(machine.read(8, 4096), [5; 4096]);
        }
        // Killed in the midst of commands: nothing more is written into its memory.
        for _ in 0..40 {
            machine.put(1, sqe(0x02, 1, [8, 0, 7, 0, 0, 0], [DATA, 0]));
        }
        machine.ring_for(1, 40);
        let memory = machine.memory.try_clone().unwrap();
        drop(machine);
        let mut again = Machine::begun(&server, true, 1);
        assert_eq!(again.read(8, 4096), [5; 4096]);
        assert!(memory.set_len(MEMORY / 2).is_err(), "it is sealed");
        // One at a time.
        let mut second = Machine::connect(&server, true);
        let since = Instant::now();
        assert!(second.is_ended());
        assert!(since.elapsed() < Duration::from_secs(5));
        assert_eq!(again.read(8, 4096), [5; 4096]);
        assert_eq!(server.stats()["served"]["connections"]["broken"], 0);
    }
}

#[test]
fn a_power_cut_fails_commands_and_is_counted() {
    for pace in [Pace::None, REAL] {
        let server = serve_drive(&format!("{SMALL}[recovery]\nmount-by = \"scan\"\n"), pace);
        let mut machine = Machine::begun(&server, true, 1);
        machine.write(0, &[9; 4096]);
        assert_eq!(machine.ask(1, sqe(0x00, 1, [0; 6], [0; 2])).status, Status::SUCCESS);
        server.command("cut", &serde_json::Map::new()).unwrap();
        assert_eq!(machine.io(1, 0x02, 0, 8, DATA), Status::POWER_LOSS);
        server.command("mount", &serde_json::Map::new()).unwrap();
        assert_eq!(machine.read(0, 4096), [9; 4096]);
        let smart = machine.ask(0, sqe(0x02, u32::MAX, [0x02 | 127 << 16, 0, 0, 0, 0, 0], [DATA, 0]));
        assert_eq!(smart.status, Status::SUCCESS);
        let smart = machine.look(DATA, 512);
        assert_eq!((u64_at(&smart, 112), u64_at(&smart, 144)), (2, 1), "power cycles, unsafe shutdowns");
    }
}

#[test]
fn memory_may_vanish() {
    for pace in [Pace::None, REAL] {
        let server = serve(pace);
        // A file that becomes shorter: its data are out of reach, and come back.
        let mut machine = Machine::begun(&server, false, 1);
        machine.memory.set_len(DATA - BASE).unwrap();
        assert_eq!(machine.io(1, 0x01, 0, 8, DATA), Status::DATA_TRANSFER);
        machine.memory.set_len(MEMORY).unwrap();
        assert_eq!(machine.io(1, 0x01, 0, 8, DATA), Status::SUCCESS);
        // With the queues, the controller can't go on.
        machine.memory.set_len(0).unwrap();
        machine.set(0x1008, 9);
        let since = Instant::now();
        while machine.register(0x1c) & 2 == 0 {
            assert!(since.elapsed() < Duration::from_secs(5), "no fatal status");
        }
        machine.memory.set_len(MEMORY).unwrap();
        machine.enable();
        assert_eq!(machine.create(1), [Status::SUCCESS; 2]);
        assert_eq!(machine.read(0, 512), [0; 512]);
        // Maps that go while commands use them.
        drop(machine);
        let mut machine = Machine::begun(&server, true, 1);
        for _ in 0..30 {
            machine.put(1, sqe(0x02, 1, [0, 0, 255, 0, 0, 0], machine.prps(DATA, 131_072)));
        }
        machine.ring_for(1, 30);
        assert_eq!(machine.unmap(BASE, MEMORY), Ok(MEMORY));
        machine.set(0x1008, 0);
        assert_eq!(machine.unmap(BASE, MEMORY), Ok(0), "nothing is left");
        drop(machine);
        assert_eq!(Machine::begun(&server, true, 1).read(0, 512), [0; 512]);
        assert!(server.stop().served.is_some());
    }
}

#[test]
fn only_memory_is_mapped_and_only_events_are_signalled() {
    let server = serve(Pace::None);
    let mut machine = Machine::open(&server, true);
    let (pipe, _other) = std::io::pipe().unwrap();
    let file = path();
    let on_disk = std::fs::File::create(&file).unwrap();
    on_disk.set_len(PAGE).unwrap();
    let device = std::fs::File::open("/dev/zero").unwrap();
    let far = BASE + (1 << 40);
    let is_tmpfs = rustix::fs::fstatfs(&on_disk).unwrap().f_type == 0x0102_1994;
    for wrong in [pipe.as_fd(), device.as_fd(), server_socket(&machine).as_fd()] {
        assert_eq!(machine.map(far, PAGE, 0, &[wrong]), Err(9));
        let fields: Vec<u8> = [20u32, 4 | 32, 2, 0, 1].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(machine.tell(command::DEVICE_SET_IRQS, &fields, &[wrong]), Err(9));
    }
    assert_eq!(machine.map(far, PAGE, 0, &[on_disk.as_fd()]).is_ok(), is_tmpfs);
    let memory = machine.memory.try_clone().unwrap();
    let memory = memory.as_fd();
    assert_eq!(machine.map(far + PAGE, PAGE, MEMORY, &[memory]), Err(22), "behind its end");
    assert_eq!(machine.map(far + PAGE, 1 << 60, 0, &[memory]), Err(22));
    assert_eq!(machine.map(BASE + PAGE, PAGE, 0, &[memory]), Err(17), "over another");
    assert_eq!(machine.map(BASE - PAGE, 2 * PAGE, 0, &[memory]), Err(17));
    assert_eq!(machine.map(BASE - PAGE, 1 << 40, 0, &[]), Err(17));
    assert_eq!(machine.unmap(BASE, PAGE), Err(22), "a part");
    // Ranges next to each other are as one; those without a file are out of reach.
    assert_eq!(machine.map(BASE + MEMORY, PAGE, 0, &[]), Ok(()));
    machine.tie(2);
    machine.enable();
    assert_eq!(machine.create(1), [Status::SUCCESS; 2]);
    assert_eq!(machine.io(1, 0x02, 0, 16, BASE + MEMORY - PAGE), Status::DATA_TRANSFER);
    assert_eq!(machine.unmap(BASE + MEMORY, PAGE), Ok(PAGE));
    assert_eq!(machine.map(BASE + MEMORY, PAGE, 0, &[memory]), Ok(()));
    assert_eq!(machine.io(1, 0x02, 0, 16, BASE + MEMORY - PAGE), Status::SUCCESS);
    // More maps than a machine has, and descriptors with messages that take none.
    let full = (0..2000).find(|at| machine.map(far + (10 + at) * PAGE, PAGE, 0, &[]) == Err(28));
    assert!(full.is_some_and(|at| at > 1000));
    let many: Vec<_> = std::iter::repeat_n(memory, 60).collect();
    for _ in 0..50 {
        machine.tell(command::DEVICE_GET_INFO, &[0; 16], &many).unwrap();
    }
    assert_eq!(machine.read(0, 512), [0; 512]);
    std::fs::remove_file(file).unwrap();
}

/// The machine's own end of its socket.
fn server_socket(machine: &Machine) -> std::os::unix::net::UnixStream {
    machine.stream.try_clone().unwrap()
}

#[test]
fn a_broken_protocol_ends_its_connection_alone() {
    for pace in [Pace::None, REAL] {
        let server = serve(pace);
        let mut nbd = Client::begun(&server);
        for noise in [vec![0x55; 4096], vec![0; 64], vec![0xff; 17], b"\x01\0\x01\0\xff\xff\xff\x7f".repeat(9)] {
            let mut machine = Machine::connect(&server, true);
            machine.stream.write_all(&noise).unwrap();
            machine.stream.shutdown(std::net::Shutdown::Write).unwrap();
            assert!(machine.is_ended());
        }
        // In the midst of a message.
        let mut machine = Machine::begun(&server, true, 1);
        machine.stream.write_all(&[1, 0, 9, 0, 32, 0, 0, 0]).unwrap();
        drop(machine);
        assert_eq!(nbd.read(0, 512), [0; 512]);
        assert_eq!(Machine::begun(&server, true, 1).read(0, 512), [0; 512]);
        assert!(server.stop().served.is_some());
    }
}

#[test]
fn answers_wait_for_a_machine_that_takes_them_late() {
    for pace in [Pace::None, REAL] {
        let server = serve(pace);
        let mut machine = Machine::begun(&server, true, 1);
        // 2,000 short messages in one piece, which ask for 8 MiB.
        let body: Vec<u8> = [0u32, 0, 7, 4096].iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut out = Vec::new();
        (0..2000).for_each(|id| Message { id, command: command::REGION_READ, flags: 0, body: &body }.put(&mut out));
        machine.stream.write_all(&out).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let mut answer = vec![0; 16 + 16 + 4096];
        for _ in 0..2000 {
            machine.stream.read_exact(&mut answer).unwrap();
            assert_eq!(u32_at(&answer, 4) as usize, answer.len());
        }
        assert_eq!(machine.read(0, 512), [0; 512]);
    }
}

#[test]
fn a_path_that_can_not_be_used_is_one_line() {
    let start = |path: &str| {
        let settings = Settings { vfio_user: vec![path.into()], ..Settings::default() };
        Server::start(drive(SMALL), &settings).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let file = path();
    std::fs::write(&file, "").unwrap();
    let error = start(file.to_str().unwrap());
    assert!(error.starts_with("vfio_user: found ") && error.contains("no socket"), "{error}");
    std::fs::remove_file(&file).unwrap();
    let error = start("/none/there/drive.sock");
    assert!(error.contains("no such file or directory"), "{error}");
    let error = start(&format!("/tmp/{}", "x".repeat(200)));
    assert!(error.contains("too long"), "{error}");
}

#[test]
fn a_client_that_others_wrote_finds_the_function() {
    let server = serve(REAL);
    let uri = &server.uris()[1];
    let mut client = vfio_user::Client::new(std::path::Path::new(uri.strip_prefix("vfio-user:").unwrap())).unwrap();
    let sizes: Vec<u64> = (0..9).map(|at| client.region(at).unwrap().size).collect();
    assert_eq!(sizes, [0x4000, 0, 0, 0, 0, 0, 0, 4096, 0]);
    let mut class = [0; 4];
    client.region_read(7, 8, &mut class).unwrap();
    assert_eq!(u32::from_le_bytes(class) >> 8, 0x01_08_02);
    assert_eq!(client.get_irq_info(2).unwrap().count, 129);
    let machine = Machine::connect(&server, true); // for its memory alone
    client.dma_map(0, BASE, MEMORY, machine.memory.as_raw_fd()).unwrap();
    let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap();
    client.set_irqs(2, 4 | 32, 0, 1, &[event.as_raw_fd()]).unwrap();
    for (offset, value) in [(0x28, BASE), (0x30, BASE + PAGE)] {
        client.region_write(0, offset, &value.to_le_bytes()).unwrap();
    }
    client.region_write(0, 0x24, &(15u32 << 16 | 15).to_le_bytes()).unwrap();
    client.region_write(0, 0x14, &(6u32 << 16 | 4 << 20 | 1).to_le_bytes()).unwrap();
    machine.fill(BASE, &sqe(0x06, 0, [1, 0, 0, 0, 0, 0], [DATA, 0]).0);
    client.region_write(0, 0x1000, &1u32.to_le_bytes()).unwrap();
    let since = Instant::now();
    while rustix::io::read(&event, &mut [0; 8]).is_err() {
        assert!(since.elapsed() < Duration::from_secs(5), "no signal");
    }
    assert_eq!(machine.look(BASE + PAGE + 12, 4), [0, 0, 1, 0], "its phase, and success");
    assert_eq!(&machine.look(DATA + 24, 10), b"Flashwrigh");
    client.reset().unwrap();
    client.dma_unmap(BASE, MEMORY).unwrap();
    client.shutdown().unwrap();
}

/// Processor time of the threads that serve clients, nanoseconds.
fn server_time() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let serving = threads.filter(|thread| {
        std::fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name.starts_with("serve-client"))
    });
    let times = serving.map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).unwrap());
    times.map(|text| text.split(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// Replays what a driver does in rounds of 32 commands, whose entries are there already: rings, and takes the completions.
/// Returns commands a second of the server's processor time, and of the clock.
fn replay(machine: &mut Machine, opcode: u8, rounds: u32, doorbells: u32) -> [f64; 2] {
    const DEPTH: u32 = ENTRIES / 2;
    let (begun, time) = (Instant::now(), server_time());
    for _ in 0..rounds {
        for at in 0..DEPTH {
            machine.put(1, sqe(opcode, 1, [at * 8, 0, 7, 0, 0, 0], [DATA + u64::from(at) * PAGE, 0]));
            if (at + 1) % (DEPTH / doorbells) == 0 {
                machine.ring_for(1, DEPTH / doorbells);
            }
        }
        machine.take(1, DEPTH);
    }
    let commands = f64::from(rounds * DEPTH);
    [(server_time() - time) as f64 / 1e9, begun.elapsed().as_secs_f64()].map(|seconds| commands / seconds)
}

#[test]
#[ignore = "measures time: on a quiet machine"]
fn a_function_keeps_its_rate() {
    for (is_sealed, has_shadow, doorbells) in [
        (true, true, 1),
        (true, true, 32),
        (true, false, 1),
        (true, false, 32),
        (false, true, 1),
        (false, false, 1),
        (false, false, 32),
    ] {
        let server = serve(Pace::None);
        let mut machine = Machine::begun(&server, is_sealed, 1);
        if has_shadow {
            machine.keep_shadow();
        }
        let kind = if is_sealed { "mapped" } else { "by system calls" };
        for (opcode, name) in [(0x02, "reads"), (0x01, "writes")] {
            let mut rates: Vec<[f64; 2]> = (0..5).map(|_| replay(&mut machine, opcode, 3000, doorbells)).collect();
            rates.sort_by(|one, other| one[0].total_cmp(&other[0]));
            let [by_processor, by_clock] = rates[2];
            println!(
                "{kind}, shadow {has_shadow}, {doorbells} doorbells for 32 {name}: {by_processor:.0} a second of the \
                 server's processor time, {by_clock:.0} of the clock"
            );
            assert!(!(is_sealed && has_shadow) || by_processor >= 300_000.0);
        }
    }
}
