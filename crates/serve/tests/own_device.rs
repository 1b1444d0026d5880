//! A device of one's own behind the protocol: its commands, and what becomes of clients when it panics.

use crate::client::{Client, READ, SMALL, WRITE, drive};
use flashwright_block::{BlockDevice, Completion, DeviceInfo, HoldsData, IoError, Nanos, Request, Tag};
use flashwright_serve::served::{Glance, Served};
use flashwright_serve::wire::Errno;
use flashwright_serve::{Address, Pace, Server, Settings};
use flashwright_sim::LiveRun;
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A drive with a command of its own, which panics at a write to its second page.
struct Fragile(LiveRun);

impl BlockDevice for Fragile {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }
    fn now(&self) -> Nanos {
        self.0.now()
    }
    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        self.0.submit(request)
    }
    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        self.0.wait(until, completion)
    }
}

impl HoldsData for Fragile {
    fn submit_with(&mut self, request: Request, data: &[u8]) -> Result<Tag, IoError> {
        assert!(request.first_sector != 8 || data.is_empty(), "as it was asked to");
        self.0.submit_with(request, data)
    }
    fn take_data(&mut self, tag: Tag, data: &mut [u8]) -> bool {
        self.0.take_data(tag, data)
    }
}

impl Served for Fragile {
    fn page_bytes(&self) -> u64 {
        4096
    }
    fn stretch(&self, first_sector: u64, sectors: u64) -> (bool, u64) {
        self.0.stretch(first_sector, sectors)
    }
    fn none_completes_before(&self) -> Option<Nanos> {
        None // it can't tell
    }
    fn figures(&self) -> Map<String, Value> {
        Map::new()
    }
    fn glance(&self) -> Glance {
        Glance::default()
    }
    fn command(&mut self, name: &str, arguments: &Value) -> Option<Result<Value, String>> {
        (name == "cut").then(|| match arguments["at"].as_u64() {
            Some(at) => Ok(json!({ "cut": at })),
            None => Err("cut: expected at".to_owned()),
        })
    }
    fn commands(&self) -> &'static [&'static str] {
        &["cut"]
    }
}

fn served(pace: Pace, ctl: Option<Address>) -> Server<Fragile> {
    let nbd = vec!["tcp:127.0.0.1:0".parse().unwrap()];
    Server::start(Fragile(drive(SMALL)), &Settings { nbd, pace, ctl, ..Settings::default() }).unwrap()
}

#[test]
fn its_commands_reach_it() {
    let path = std::env::temp_dir().join(format!("flashwright-own-{}.sock", std::process::id()));
    let server = served(Pace::None, Some(Address::Unix(path.clone())));
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"{\"command\": \"cut\", \"at\": 7}\n{\"command\": \"cut\"}\n{\"command\": \"mend\"}\n").unwrap();
    let lines: Vec<String> = BufReader::new(stream).lines().take(3).map(Result::unwrap).collect();
    let expected = [
        "{\"result\":{\"cut\":7}}",
        "{\"error\":\"cut: expected at\"}",
        "{\"error\":\"command: found \\\"mend\\\", expected one of stats, trim-all, mark, stop, cut\"}",
    ];
    assert_eq!(lines, expected);
    assert!(server.stop().served.is_some());
}

#[test]
fn a_device_that_cannot_tell_the_next_event_is_paced_too() {
    let server = served(Pace::Real { time_scale: 1.0 }, None);
    let mut client = Client::begun(&server);
    client.write(0, &[7; 4096]);
    assert_eq!(client.read(0, 4096), [7; 4096]);
}

#[test]
fn a_panic_ends_the_connections_and_nothing_hangs() {
    for pace in [Pace::None, Pace::Real { time_scale: 1.0 }] {
        let server = served(pace, None);
        let (mut bad, mut other) = (Client::begun(&server), Client::begun(&server));
        assert_eq!(other.read(0, 512), [0; 512]);
        bad.send(0, WRITE, 4096, 4096, &[1; 4096]);
        assert!(bad.is_ended());
        assert!(server.wait(Duration::from_secs(10)), "it asks for its end");
        assert!(other.is_ended());
        if pace == Pace::None {
            let mut late = Client::begun(&server);
            assert_eq!(late.ask(0, READ, 0, 512, &[]).unwrap_err().0, Errno::Shutdown as u32);
        }
        let stopped = server.stop();
        assert!(stopped.served.is_none() && stopped.stats.is_null());
        assert!(stopped.notes[0].contains("panicked"), "{:?}", stopped.notes);
    }
}
