//! An export as a block device: served drives, and servers that misbehave.

use crate::client::{SMALL, drive, serve};
use flashwright_block::{BlockDevice, Completion, IoError, Nanos, Request, RequestKind, Seed};
use flashwright_serve::wire::{self, export, reply};
use flashwright_serve::{Pace, Remote, RemoteOptions, Server, Settings, Uri};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

const NEVER: Nanos = Nanos(u64::MAX);

fn open(uri: &str, destroys_data: bool) -> Result<Remote, String> {
    let uri: Uri = uri.parse().unwrap();
    let options = RemoteOptions { destroys_data, depth: 4, seed: Seed(1) };
    Remote::open(&uri, options).map_err(|refused| refused.what)
}

fn of(kind: RequestKind, first_sector: u64, sectors: u32) -> Request {
    Request { kind, first_sector, sectors, ..Request::default() }
}

#[test]
fn requests_reach_the_drive_and_end_once() {
    for pace in [Pace::None, Pace::Real { time_scale: 0.1 }] {
        let server = serve(SMALL, pace);
        let mut remote = open(&server.uris()[0], true).unwrap();
        assert_eq!(remote.info().capacity.0, server.stats()["served"]["bytes"].as_u64().unwrap());
        assert!(remote.terms().structured);
        let mut due = std::collections::BTreeSet::new();
        for at in 0..100 {
            let kind = [RequestKind::Write, RequestKind::Read, RequestKind::Trim, RequestKind::Flush][at % 4];
            let sectors = if kind == RequestKind::Flush { 0 } else { 8 * (1 + at as u32 % 3) };
            let request = Request { fua: at % 8 == 0, ..of(kind, at as u64 * 8 % 512, sectors) };
            due.insert(remote.submit(request).unwrap());
        }
        let mut done = Completion::default();
        while remote.wait(NEVER, &mut done).unwrap() {
            assert!(due.remove(&done.tag) && done.result.is_ok() && done.start <= done.end, "{done:?}");
        }
        assert!(due.is_empty());
        // A read longer than a server takes at once.
        remote.execute(of(RequestKind::Read, 0, 9000), &mut done).unwrap();
        assert!(done.result.is_ok());
        drop(remote);
        let requests = server.stop().stats["requests"].clone();
        assert_eq!((&requests["write"], &requests["read"]), (&25.into(), &26.into()));
    }
}

#[test]
fn long_requests_are_sent_in_pieces() {
    let big = "[geometry]\nchannels = 2\ndies-per-channel = 2\nblocks-per-plane = 128\npages-per-block = 64\n";
    let server = serve(big, Pace::None);
    let mut remote = open(&server.uris()[0], true).unwrap();
    let mut done = Completion::default();
    let sectors = 2 * wire::PAYLOAD_MAX / 512 + 8;
    for kind in [RequestKind::Write, RequestKind::Read] {
        remote.execute(of(kind, 0, sectors), &mut done).unwrap();
        assert!(done.result.is_ok(), "{done:?}");
    }
    assert_eq!(server.stats()["requests"]["read"], 3);
    assert_eq!(server.stats()["requests"]["bytes_written"], u64::from(sectors) * 512);
}

#[test]
fn nothing_is_written_without_consent_nor_to_a_read_only_export() {
    let server = serve(SMALL, Pace::None);
    let mut remote = open(&server.uris()[0], false).unwrap();
    for kind in [RequestKind::Write, RequestKind::Trim] {
        assert!(matches!(remote.submit(of(kind, 0, 8)), Err(IoError::ReadOnly { .. })));
    }
    assert!(matches!(remote.submit(of(RequestKind::Read, 1 << 40, 8)), Err(IoError::OutOfRange { .. })));
    let nbd = vec!["tcp:127.0.0.1:0".parse().unwrap()];
    let server = Server::start(drive(SMALL), &Settings { nbd, read_only: true, ..Settings::default() }).unwrap();
    assert!(open(&server.uris()[0], true).err().unwrap().ends_with("the export is read-only"));
    assert!(open(&server.uris()[0], false).is_ok());
    assert!(open(&format!("{}/other", server.uris()[0]), false).err().unwrap().contains("no export \"other\""));
}

#[test]
fn errors_of_the_drive_are_told_and_it_goes_on() {
    let server = serve(&format!("{SMALL}[wear]\npe-cycles-max = 2\n"), Pace::None);
    let mut remote = open(&server.uris()[0], true).unwrap();
    let mut done = Completion::default();
    let failure = (0..20_000u64).find_map(|at| {
        remote.execute(of(RequestKind::Write, at * 7 % 1000 * 8, 8), &mut done).unwrap();
        done.result.clone().err()
    });
    let why = failure.expect("it wears out").to_string();
    assert!(why.contains("write of 4 KiB at byte") && why.contains("cannot take this write"), "{why}");
    remote.execute(of(RequestKind::Read, 0, 8), &mut done).unwrap();
    assert!(done.result.is_ok());
}

/// A server that negotiates by GO, and then does as it is told; clients find it there.
fn odd(flags: u16, then: impl FnOnce(&mut std::net::TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("nbd://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut out = wire::MAGIC.to_be_bytes().to_vec();
        out.extend(wire::OPTION_MAGIC.to_be_bytes());
        out.extend(3u16.to_be_bytes());
        stream.write_all(&out).unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        for option in [wire::option::STRUCTURED_REPLY, wire::option::GO] {
            let mut head = [0; 16];
            stream.read_exact(&mut head).unwrap();
            stream.read_exact(&mut vec![0; wire::u32_at(&head, 12) as usize]).unwrap();
            let mut out = Vec::new();
            if option == wire::option::GO {
                let parts: [&[u8]; 3] = [&[0, 0], &(1u64 << 20).to_be_bytes(), &flags.to_be_bytes()];
                wire::put_option_reply(&mut out, option, reply::INFO, &parts);
                let sizes = [4096u32, 4096, 65_536].map(u32::to_be_bytes).concat();
                wire::put_option_reply(&mut out, option, reply::INFO, &[&[0, 3], &sizes]);
                wire::put_option_reply(&mut out, option, reply::ACK, &[]);
            } else {
                wire::put_option_reply(&mut out, option, reply::ERR_UNSUP, &[]);
            }
            stream.write_all(&out).unwrap();
        }
        then(&mut stream);
    });
    uri
}

#[test]
fn limits_and_abilities_of_a_server_are_kept() {
    let (seen, heard) = std::sync::mpsc::channel();
    let uri = odd(export::HAS_FLAGS | export::SEND_FLUSH, move |stream| {
        // A forced write becomes a write and a flush, and a long one two.
        for _ in 0..3 {
            let mut head = [0; 28];
            stream.read_exact(&mut head).unwrap();
            let head = wire::Head::parse(&head).unwrap();
            if head.kind == Some(wire::Kind::Write) {
                stream.read_exact(&mut vec![0; head.length as usize]).unwrap();
            }
            seen.send((head.kind, head.flags, head.length)).unwrap();
            let mut out = Vec::new();
            wire::Style::default().put_done(&mut out, head.cookie);
            stream.write_all(&out).unwrap();
        }
    });
    let mut remote = open(&uri, true).unwrap();
    assert_eq!((remote.info().sector.0, remote.terms().structured), (4096, false));
    assert!(matches!(remote.submit(of(RequestKind::Read, 1, 8)), Err(IoError::Misaligned { .. })));
    assert!(remote.submit(of(RequestKind::Trim, 0, 8)).unwrap_err().to_string().ends_with("takes no trim"));
    let mut done = Completion::default();
    remote.execute(Request { fua: true, ..of(RequestKind::Write, 0, 136) }, &mut done).unwrap();
    assert!(done.result.is_ok());
    let all: Vec<_> = heard.iter().take(3).collect();
    let kinds =
        [(Some(wire::Kind::Write), 0, 65_536), (Some(wire::Kind::Write), 0, 4096), (Some(wire::Kind::Flush), 0, 0)];
    assert_eq!(all, kinds);
}

#[test]
fn a_server_that_vanishes_gives_one_line() {
    let uri = odd(export::HAS_FLAGS, |stream| stream.read_exact(&mut [0; 28]).unwrap());
    let mut remote = open(&uri, false).unwrap();
    let mut done = Completion::default();
    remote.submit(of(RequestKind::Read, 0, 8)).unwrap();
    let error = remote.wait(NEVER, &mut done).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("the device failed: {uri}: the server has ended the connection with 1 requests unanswered")
    );
    assert_eq!(remote.submit(of(RequestKind::Read, 0, 8)).unwrap_err().to_string(), error);

    for (bytes, found) in [
        (vec![7; 32], "does not begin as replies do"),
        ([&wire::SIMPLE_REPLY_MAGIC.to_be_bytes()[..], &[0; 4], &77u64.to_be_bytes()].concat(), "answers no request"),
    ] {
        let uri = odd(export::HAS_FLAGS, move |stream| {
            stream.read_exact(&mut [0; 28]).unwrap();
            stream.write_all(&bytes).unwrap();
            std::thread::sleep(Duration::from_millis(50));
        });
        let mut remote = open(&uri, false).unwrap();
        remote.submit(of(RequestKind::Read, 0, 8)).unwrap();
        let error = remote.wait(NEVER, &mut done).unwrap_err().to_string();
        assert!(error.contains(found), "{error}");
    }
}

#[test]
fn waiting_takes_its_time_and_no_more() {
    let server = serve(SMALL, Pace::None);
    let mut remote = open(&server.uris()[0], false).unwrap();
    let begun = Instant::now();
    let until = Nanos(remote.now().0 + 20_000_000);
    assert_eq!(remote.wait(until, &mut Completion::default()), Ok(false));
    assert!((Duration::from_millis(19)..Duration::from_secs(2)).contains(&begun.elapsed()));
    assert_eq!(remote.wait(NEVER, &mut Completion::default()), Ok(false), "nothing is in flight");
}

#[test]
fn what_is_no_server_is_refused_in_one_line() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"SSH-2.0-other\r\n................").unwrap();
        std::thread::sleep(Duration::from_millis(50));
    });
    assert!(open(&format!("nbd://{address}"), false).err().unwrap().contains("does not greet as NBD does"));
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(open(&format!("nbd://{free}"), false).err().unwrap().contains("connection refused"));
    assert!(open("nbd+unix:///?socket=/nowhere/s", false).err().unwrap().contains("no such file"));
}
