//! What clients get.

use crate::client::{
    BLOCK_STATUS, CACHE, Client, DISCONNECT, FLUSH, READ, SMALL, TRIM, WRITE, WRITE_ZEROES, drive, reply, serve,
};
use flashwright_block::Seed;
use flashwright_serve::wire::{self, flag};
use flashwright_serve::{Address, Pace, Server, Settings};
use flashwright_sim::{LiveRun, Precondition};
use flashwright_ssd::Config;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

const REAL: Pace = Pace::Real { time_scale: 1.0 };

#[test]
fn data_come_back_at_any_pace() {
    for pace in [Pace::None, REAL] {
        let server = serve(SMALL, pace);
        let mut client = Client::begun(&server);
        assert_eq!(client.read(0, 8192), [0; 8192]);
        client.write(512, &[7; 5120]);
        let expected = [vec![0; 512], vec![7; 5120], vec![0; 2560]].concat();
        assert_eq!(client.read(0, 8192), expected);
        assert_eq!(client.mapped(0, 0, 16_384), [(8192, false), (8192, true)]);
        assert_eq!(client.mapped(flag::REQ_ONE, 0, 16_384), [(8192, false)]);
        // A hole over the whole page, zeros over the part of one.
        assert_eq!(client.ask(0, WRITE_ZEROES, 4096, 4608, &[]), Ok(vec![]));
        assert_eq!(client.mapped(0, 0, 16_384), [(4096, false), (4096, true), (4096, false), (4096, true)]);
        assert_eq!(client.read(0, 8192), [vec![0; 512], vec![7; 3584], vec![0; 4096]].concat());
        assert_eq!(client.ask(0, TRIM, 0, 16_384, &[]), Ok(vec![]));
        assert_eq!(client.mapped(0, 0, 16_384), [(16_384, true)]);
        assert_eq!(client.ask(flag::NO_HOLE, WRITE_ZEROES, 0, 4096, &[]), Ok(vec![]));
        assert_eq!(client.mapped(0, 0, 8192), [(4096, false), (4096, true)]);
        for kind in [FLUSH, CACHE] {
            let length = if kind == CACHE { 4096 } else { 0 };
            assert_eq!(client.ask(0, kind, 0, length, &[]), Ok(vec![]));
        }
        let fast = client.ask(flag::FAST_ZERO, WRITE_ZEROES, 512, 512, &[]);
        assert_eq!(fast.unwrap_err().0, wire::Errno::NotSupported as u32);
        client.send(0, DISCONNECT, 0, 0, &[]);
        assert!(client.is_ended());
        let stopped = server.stop();
        let report = stopped.served.expect("it lives").report().report;
        assert_eq!((report.requests.read, report.requests.write, report.requests.flush), (4, 3, 1));
        assert_eq!(stopped.stats["served"]["connections"]["broken"], 0);
    }
}

#[test]
fn requests_of_one_batch_take_effect_in_order() {
    for pace in [Pace::None, REAL] {
        let server = serve(SMALL, pace);
        let mut client = Client::begun(&server);
        let mut all = Vec::new();
        for round in 0..40u8 {
            wire::Head::put(&mut all, 0, WRITE, u64::from(round), 4096, 4096);
            all.extend([round; 4096]);
            wire::Head::put(&mut all, 0, READ, 100 + u64::from(round), 4096, 4096);
        }
        client.stream.write_all(&all).unwrap();
        let mut seen = 0;
        for _ in 0..80 {
            if let (cookie @ 100.., answer) = client.reply() {
                assert_eq!(answer, Ok(vec![u8::try_from(cookie - 100).unwrap(); 4096]));
                seen += 1;
            }
        }
        assert_eq!(seen, 40);
        drop(client);
        assert!(server.stop().served.is_some());
    }
}

#[test]
fn connections_share_the_drive() {
    let server = serve(SMALL, Pace::None);
    let (mut first, mut second) = (Client::begun(&server), Client::begun(&server));
    first.write(0, &[9; 4096]);
    assert_eq!(second.read(0, 4096), [9; 4096]);
    let stats = server.stats();
    assert_eq!(stats["served"]["connections"]["open"], 2);
    assert_eq!(stats["host"]["pages_written"], 1);
}

#[test]
fn old_clients_get_simple_replies() {
    let server = serve(SMALL, Pace::None);
    let mut client = Client::new(&server);
    client.option(wire::option::LIST, &[]);
    assert_eq!(client.replies(), [reply::SERVER, reply::ACK]);
    client.option(wire::option::EXPORT_NAME, &[]);
    let mut head = [0; 10];
    client.stream.read_exact(&mut head).unwrap();
    let capacity = wire::u64_at(&head, 0);
    // One after the other: replies may come in another order than requests.
    let mut ask = |kind: u16, offset: u64, data: &[u8], brought: usize| {
        let cookie = client.send(0, kind, offset, 512, data);
        let mut reply = vec![0; 16 + brought];
        client.stream.read_exact(&mut reply).unwrap();
        assert_eq!((wire::u32_at(&reply, 0), wire::u64_at(&reply, 8)), (wire::SIMPLE_REPLY_MAGIC, cookie));
        (wire::u32_at(&reply, 4), reply[16..].to_vec())
    };
    assert_eq!(ask(WRITE, 0, &[5; 512], 0), (0, vec![]));
    assert_eq!(ask(READ, 0, &[], 512), (0, vec![5; 512]));
    assert_eq!(ask(WRITE, capacity, &[5; 512], 0), (28, vec![]));
    assert_eq!(ask(BLOCK_STATUS, 0, &[], 0), (22, vec![]));
}

#[test]
fn a_read_only_export_refuses_writes() {
    let nbd = vec!["tcp:127.0.0.1:0".parse().unwrap()];
    let settings = Settings { nbd, read_only: true, ..Settings::default() };
    let server = Server::start(drive(SMALL), &settings).unwrap();
    let mut client = Client::begun(&server);
    assert_eq!(client.ask(0, WRITE, 0, 512, &[1; 512]).unwrap_err().0, wire::Errno::NotPermitted as u32);
    assert_eq!(client.read(0, 512), [0; 512]);
}

#[test]
fn a_worn_out_drive_says_why() {
    let text = format!("{SMALL}[wear]\npe-cycles-max = 2\n");
    let server = serve(&text, Pace::None);
    let mut client = Client::begun(&server);
    let failure = (0..20_000u64).find_map(|at| client.ask(0, WRITE, at * 7 % 1000 * 4096, 4096, &[1; 4096]).err());
    let (errno, why) = failure.expect("it wears out");
    assert_eq!(errno, wire::Errno::Io as u32);
    assert!(why.contains("the drive cannot take this write"), "{why}");
    assert!(!client.read(0, 4096).is_empty(), "it can still be read");
    assert_eq!(server.stats()["served"]["commands_failed"], 1);
}

#[test]
fn statistics_tell_of_both_amplifications_and_of_the_verdict() {
    let server = serve(SMALL, Pace::None);
    let mut client = Client::begun(&server);
    let nothing = server.stats();
    assert_eq!(nothing["settled"]["verdict"], "none");
    for page in 0..100 {
        client.write(page * 4096, &[1; 512]);
    }
    let stats = server.stats();
    assert_eq!((&stats["write_amplification"], &stats["write_amplification_bytes"]), (&json!(1.0), &json!(8.0)));
    assert_eq!(stats["settled"]["verdict"], "transient");
    assert_eq!(stats["settled"]["why"], "too little was written to decide: 0 erases per block");
    assert_eq!(stats["logical_pages_with_data"], 100);
    assert_eq!(codes(&stats), ["parts-of-pages"], "{}", stats["warnings"]);
    drop(client);
    let report = server.stop().served.expect("it lives").report().report.to_value();
    for name in ["write_amplification", "write_amplification_bytes", "settled"] {
        assert_eq!(report[name], stats[name], "{name}");
    }
}

#[test]
fn a_filled_drive_that_was_trimmed_says_so() {
    let small = Config::from_toml(SMALL, "test").expect("a drive");
    for (precondition, warns) in [(Precondition::Sequential, true), (Precondition::Empty, false)] {
        let drive = LiveRun::new(&small, Seed(1), precondition, || false).expect("a drive");
        let nbd = vec!["tcp:127.0.0.1:0".parse().expect("an address")];
        let server = Server::start(drive, &Settings { nbd, ..Settings::default() }).expect("a server");
        let mut client = Client::begun(&server);
        // A twentieth of 1,638 pages: such trims are usual.
        client.ask(0, TRIM, 0, 81 * 4096, &[]).expect("it can be trimmed");
        assert!(codes(&server.stats()).is_empty() && server.notes().is_empty());
        for part in 1..20 {
            client.ask(0, TRIM, part * 81 * 4096, 81 * 4096, &[]).expect("it can be trimmed");
        }
        let stats = server.stats();
        assert_eq!(stats["logical_pages_with_data"], if warns { 1638 - 20 * 81 } else { 0 });
        assert_eq!(codes(&stats) == ["trimmed"], warns, "{}", stats["warnings"]);
        drop(client);
        let notes = server.stop().notes;
        assert_eq!(notes.len(), usize::from(warns), "{notes:?}");
        for note in notes {
            assert!(note.starts_with("trims have emptied 1") && note.contains("mkfs.ext4 -E nodiscard"), "{note}");
        }
    }
}

fn codes(stats: &Value) -> Vec<&str> {
    let warnings = stats["warnings"].as_array().expect("a list");
    warnings.iter().map(|each| each["code"].as_str().expect("a code")).collect()
}

#[test]
fn replies_leave_when_the_model_says() {
    let slow = format!("{SMALL}[timing]\nread = \"20 ms\"\nprogram = \"30 ms\"\n");
    for (time_scale, least, most) in [(1.0, 50, 400), (0.1, 5, 200)] {
        let server = serve(&slow, Pace::Real { time_scale });
        let mut client = Client::begun(&server);
        let begun = Instant::now();
        client.write(0, &[1; 4096]);
        client.read(0, 4096);
        let took = begun.elapsed();
        assert!((Duration::from_millis(least)..Duration::from_millis(most)).contains(&took), "{took:?}");
        drop(client);
        let stats = server.stop().stats;
        assert_eq!(stats["served"]["lateness_ns"]["count"], 2);
        let mean = stats["response_time_ns"]["all"]["mean"].as_f64().unwrap();
        assert!((25e6..26e6).contains(&mean), "{mean}: the model's times do not depend on the scale");
    }
}

#[test]
fn what_was_accepted_is_answered_before_the_end() {
    let slow = format!("{SMALL}[timing]\nprogram = \"200 ms\"\n");
    let server = serve(&slow, REAL);
    let mut client = Client::begun(&server);
    client.read(0, 512);
    let cookie = client.send(0, WRITE, 0, 4096, &[1; 4096]);
    while server.stats()["flash"]["programs"]["total"] == 0 {}
    let stopping = std::thread::spawn(move || server.stop());
    assert_eq!(client.reply(), (cookie, Ok(vec![])));
    assert!(client.is_ended());
    assert_eq!(stopping.join().unwrap().stats["host"]["pages_written"], 1);
}

#[test]
fn a_client_that_takes_nothing_does_not_keep_the_server() {
    let server = serve(SMALL, Pace::None);
    let mut client = Client::begun(&server);
    for _ in 0..64 {
        client.send(0, READ, 0, 4 << 20, &[]);
    }
    let begun = Instant::now();
    assert!(server.stop().served.is_some());
    assert!(begun.elapsed() < Duration::from_secs(8));
}

#[test]
fn a_unix_socket_goes_with_the_server() {
    let path = std::env::temp_dir().join(format!("flashwright-served-{}.sock", std::process::id()));
    let both = vec![Address::Unix(path.clone()), "tcp:127.0.0.1:0".parse().unwrap()];
    let server = Server::start(drive(SMALL), &Settings { nbd: both, ..Settings::default() }).unwrap();
    assert!(path.exists() && server.uris().len() == 2);
    let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    drop(server.stop());
    assert!(!path.exists());
}
