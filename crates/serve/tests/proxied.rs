//! A device that exists, behind the host's schedulers: what clients get, and what they get when it fails.

use crate::client::{Client, FLUSH, READ, TRIM, WRITE, WRITE_ZEROES};
use flashwright_block::{
    BlockDevice, Bytes, Completion, DeviceInfo, HoldsData, IoError, Nanos, Request, RequestKind, Tag,
};
use flashwright_disk::{Access, Disk, DiskError, Options};
use flashwright_host::StackSettings;
use flashwright_serve::wire::{self, Errno, flag};
use flashwright_serve::{OnClock, Server, Settings};
use flashwright_sim::Proxied;
use flashwright_testing::{Lacks, skip};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Instant;

const MIB: usize = 1 << 20;

/// A file of a MiB that goes away with its test.
struct Image(PathBuf);

impl Image {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("proxied-{name}-{}", std::process::id()));
        std::fs::write(&path, vec![0xa5; MIB]).unwrap();
        Self(path)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap_or_default();
    }
}

/// A disk that fails writes to its last 64 KiB, and counts flushes and forced writes.
struct Worn {
    disk: Disk,
    failing: Vec<Tag>,
    seen: Vec<(RequestKind, u64, u32, bool)>,
}

impl BlockDevice for Worn {
    fn info(&self) -> DeviceInfo {
        self.disk.info()
    }
    fn now(&self) -> Nanos {
        self.disk.now()
    }
    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        let tag = self.disk.submit(request)?;
        self.note(tag, &request);
        Ok(tag)
    }
    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        let ended = self.disk.wait(until, completion)?;
        if ended && self.failing.contains(&completion.tag) {
            completion.result = Err(Box::new(IoError::Device("a worn place".to_owned())));
        }
        Ok(ended)
    }
    fn holds_data(&mut self) -> Option<&mut dyn HoldsData> {
        Some(self)
    }
}

impl Worn {
    fn note(&mut self, tag: Tag, request: &Request) {
        self.seen.push((request.kind, request.first_sector, request.sectors, request.fua));
        if request.kind == RequestKind::Write && request.end_sector() > (MIB as u64 - 65_536) / 512 {
            self.failing.push(tag);
        }
    }
}

impl HoldsData for Worn {
    fn submit_with(&mut self, request: Request, data: &[u8]) -> Result<Tag, IoError> {
        let tag = self.disk.submit_with(request, data)?;
        self.note(tag, &request);
        Ok(tag)
    }
    fn take_data(&mut self, tag: Tag, data: &mut [u8]) -> bool {
        self.disk.take_data(tag, data)
    }
}

impl OnClock for Worn {
    fn clock(&self) -> Instant {
        OnClock::clock(&self.disk)
    }
    fn wakes(&self) -> std::io::Result<OwnedFd> {
        OnClock::wakes(&self.disk)
    }
}

const PROFILE: &str = "\n[profile]\nclustered-page = \"16 KiB\"\nread-buffer = \"64 KiB\"\nwrite-buffer = \"64 KiB\"\n";

/// A server of a file; none where the kernel has no rings.
fn served(image: &Image, scheduler: &str, settings: Settings) -> Option<Server<Proxied<Worn>>> {
    let target = flashwright_disk::open(&image.0, Access::DestroysData, Bytes(0)).unwrap();
    let disk = match Disk::new(target, Options { depth: 8, keeps_data: true, ..Options::default() }) {
        Ok(disk) => disk,
        Err(DiskError::NoRing { reason, .. }) => {
            skip(Lacks::Kernel(&format!("no io_uring here ({reason})")));
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let host: StackSettings = toml::from_str(&format!("scheduler = \"{scheduler}\"{PROFILE}")).unwrap();
    let device = Worn { disk, failing: Vec::new(), seen: Vec::new() };
    let proxied = Proxied::new(device, &host, serde_json::json!({ "name": "file" }), true).unwrap();
    let nbd = vec!["tcp:127.0.0.1:0".parse().unwrap()];
    Some(Server::start(proxied, &Settings { nbd, ..settings }).unwrap())
}

const CHAINS: [&str; 4] = ["none", "noop", "deadline", "pasa+pai"];

#[test]
fn data_reach_the_file_and_come_back() {
    for scheduler in CHAINS {
        let image = Image::new("data");
        let Some(server) = served(&image, scheduler, Settings::default()) else { return };
        let mut client = Client::begun(&server);
        let block = server.stats()["served"]["bytes"].as_u64().map(|_| 4096).unwrap();
        client.write(block, &[7; 8192]); // forced
        assert_eq!(client.read(0, 16_384), [vec![0xa5; 4096], vec![7; 8192], vec![0xa5; 4096]].concat());
        assert_eq!(client.ask(flag::FUA, WRITE_ZEROES, block, 4096, &[]), Ok(vec![]));
        assert_eq!(client.ask(0, WRITE_ZEROES, 65_536, 65_536, &[]), Ok(vec![]));
        assert_eq!(client.ask(flag::FUA, TRIM, 262_144, 65_536, &[]), Ok(vec![]));
        assert_eq!(client.ask(0, FLUSH, 0, 0, &[]), Ok(vec![]));
        assert_eq!(client.read(65_536, 65_536), vec![0; 65_536]);
        assert_eq!(client.mapped(0, 0, 16_384), [(16_384, false)], "nothing is known of holes");
        drop(client);
        let stopped = server.stop();
        let device = stopped.served.expect("it lives");
        let seen = &device.device().seen;
        let trim = seen.iter().position(|(kind, ..)| *kind == RequestKind::Trim).unwrap();
        let flushes = seen.iter().skip(trim).filter(|(kind, ..)| *kind == RequestKind::Flush).count();
        assert_eq!(flushes, 2, "that of the forced trim, and that of the client: {seen:?}");
        assert!(seen.contains(&(RequestKind::Write, 8, 8, true)), "forced zeros: {seen:?}");
        let report = device.report().report;
        assert_eq!((report.requests.write, report.requests.trim, report.requests.flush), (3, 1, 2));
        assert_eq!(report.host_layers.len(), if scheduler == "none" { 0 } else { scheduler.split('+').count() });
        drop(device);
        let bytes = std::fs::read(&image.0).unwrap();
        assert_eq!(bytes[..4096], [0xa5; 4096]);
        assert_eq!(bytes[4096..12_288], [vec![0; 4096], vec![7; 4096]].concat());
        assert_eq!((bytes.len(), &bytes[131_072..131_584]), (MIB, &[0xa5; 512][..]));
        assert_eq!(bytes[262_144..327_680], [0; 65_536], "a hole of a file");
    }
}

#[test]
fn overlapping_requests_of_one_batch_take_effect_in_order() {
    for scheduler in CHAINS {
        let image = Image::new("batch");
        let Some(server) = served(&image, scheduler, Settings::default()) else { return };
        let mut client = Client::begun(&server);
        let mut all = Vec::new();
        for round in 0..60u8 {
            // Each write overlaps the one before by half, and each read both.
            let at = u64::from(round % 3) * 4096;
            wire::Head::put(&mut all, 0, WRITE, u64::from(round), at, 8192);
            all.extend([round; 8192]);
            wire::Head::put(&mut all, 0, READ, 100 + u64::from(round), at, 8192);
        }
        client.stream.write_all(&all).unwrap();
        let mut seen = 0;
        for _ in 0..120 {
            if let (cookie @ 100.., answer) = client.reply() {
                assert_eq!(answer, Ok(vec![u8::try_from(cookie - 100).unwrap(); 8192]), "{scheduler}");
                seen += 1;
            }
        }
        assert_eq!(seen, 60);
        drop(client);
        assert!(server.stop().served.is_some());
    }
}

#[test]
fn a_failed_write_is_answered_and_all_else_goes_on() {
    for scheduler in CHAINS {
        let image = Image::new("fails");
        let Some(server) = served(&image, scheduler, Settings::default()) else { return };
        let mut client = Client::begun(&server);
        let bad = client.send(0, WRITE, (MIB - 4096) as u64, 4096, &[1; 4096]);
        let good = client.send(0, WRITE, 0, 4096, &[2; 4096]);
        let mut answers = [client.reply(), client.reply()];
        answers.sort_by_key(|(cookie, _)| *cookie);
        let [(first, failed), (second, done)] = answers;
        assert_eq!((first, second, done), (bad, good, Ok(vec![])));
        let (errno, why) = failed.unwrap_err();
        assert_eq!(errno, Errno::Io as u32);
        assert!(why.contains("a worn place"), "{why}");
        assert_eq!(client.read(0, 4096), [2; 4096]);
        let stats = server.stats();
        assert_eq!((&stats["failed"], &stats["served"]["commands_failed"]), (&1.into(), &1.into()));
        assert_eq!(stats["served"]["pace"], "device");
    }
}

#[test]
fn clients_that_vanish_take_nothing_with_them() {
    let image = Image::new("vanish");
    let Some(server) = served(&image, "pasa+pai", Settings::default()) else { return };
    for round in 0..8u8 {
        let mut client = Client::begun(&server);
        for at in 0..16 {
            client.send(0, WRITE, at * 4096, 4096, &[round; 4096]);
        }
        client.send(0, READ, 0, 65_536, &[]);
    }
    // Not where writes that nobody waits for may still be on their way.
    let mut client = Client::begun(&server);
    client.write(65_536, &[99; 4096]);
    assert_eq!(client.read(65_536, 4096), [99; 4096]);
    assert!(client.ask(0, FLUSH, 0, 0, &[]).is_ok());
}

#[test]
fn a_real_device_is_not_trimmed_as_a_whole_and_read_only_is_kept() {
    let image = Image::new("whole");
    let read_only = Settings { read_only: true, ..Settings::default() };
    let Some(server) = served(&image, "none", read_only) else { return };
    assert!(server.command("trim-all", &serde_json::Map::new()).unwrap_err().contains("a device that exists"));
    let mut client = Client::begun(&server);
    assert_eq!(client.ask(0, WRITE, 0, 4096, &[1; 4096]).unwrap_err().0, Errno::NotPermitted as u32);
    assert_eq!(client.read(0, 4096), [0xa5; 4096]);
}

#[test]
fn sizes_that_would_cut_a_block_are_refused() {
    let image = Image::new("cuts");
    let target = flashwright_disk::open(&image.0, Access::ReadOnly, Bytes(0)).unwrap();
    let block = target.block.0;
    let Ok(disk) = Disk::new(target, Options { keeps_data: true, ..Options::default() }) else { return };
    let odd = block / 2;
    if odd < 512 {
        return; // every size is a multiple of it
    }
    let text = format!("scheduler = \"pas\"\n[profile]\nread-buffer = {odd}\nwrite-buffer = \"64 KiB\"\n");
    let host: StackSettings = toml::from_str(&text).unwrap();
    let problems = Proxied::new(disk, &host, serde_json::json!({}), false).err().unwrap();
    assert_eq!(problems[0].key, "profile.read-buffer");
}
