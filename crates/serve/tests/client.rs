//! A client that knows just enough of the protocol, and the drive that it talks to.

use flashwright_block::Seed;
use flashwright_serve::wire::{self, Head, flag};
use flashwright_serve::{Pace, Served, Server, Settings};
use flashwright_sim::{LiveRun, Precondition};
use flashwright_ssd::Config;
use std::io::{Read, Write};
use std::net::TcpStream;

pub const SMALL: &str = "[geometry]\nchannels = 2\ndies-per-channel = 2\nblocks-per-plane = 32\npages-per-block = 16\n\
                         [capacity]\nutilization = 0.8\n";

pub fn drive(toml: &str) -> LiveRun {
    let config = Config::from_toml(toml, "test").expect("a drive");
    LiveRun::new(&config, Seed(1), Precondition::Empty, || false).expect("a drive")
}

pub fn serve(toml: &str, pace: Pace) -> Server<LiveRun> {
    let nbd = vec!["tcp:127.0.0.1:0".parse().expect("an address")];
    Server::start(drive(toml), &Settings { nbd, pace, ..Settings::default() }).expect("a server")
}

pub struct Client {
    pub stream: TcpStream,
    cookie: u64,
}

/// An answer: its error, or what it brought.
pub type Answer = Result<Vec<u8>, (u32, String)>;

impl Client {
    pub fn new<S: Served>(server: &Server<S>) -> Self {
        let address = server.uris()[0].strip_prefix("nbd://").expect("it listens on TCP").to_owned();
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.read_exact(&mut [0; 18]).expect("a greeting");
        stream.write_all(&3u32.to_be_bytes()).expect("it takes flags");
        Self { stream, cookie: 0 }
    }

    pub fn option(&mut self, kind: u32, data: &[u8]) {
        let length = u32::try_from(data.len()).expect("short").to_be_bytes();
        let all = [&wire::OPTION_MAGIC.to_be_bytes()[..], &kind.to_be_bytes(), &length, data].concat();
        self.stream.write_all(&all).expect("it takes options");
    }

    /// The replies to an option, up to the last.
    pub fn replies(&mut self) -> Vec<u32> {
        let mut kinds = Vec::new();
        while kinds.last().is_none_or(|kind| [reply::SERVER, reply::INFO, reply::META_CONTEXT].contains(kind)) {
            let mut head = [0; 20];
            self.stream.read_exact(&mut head).expect("a reply");
            let mut data = vec![0; wire::u32_at(&head, 16) as usize];
            self.stream.read_exact(&mut data).expect("a reply");
            kinds.push(wire::u32_at(&head, 12));
        }
        kinds
    }

    /// Goes on to requests, with structured replies and block status.
    pub fn begun<S: Served>(server: &Server<S>) -> Self {
        let mut client = Self::new(server);
        client.option(wire::option::STRUCTURED_REPLY, &[]);
        client.replies();
        let query = [&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 15][..], b"base:allocation"].concat();
        client.option(wire::option::SET_META_CONTEXT, &query);
        client.replies();
        client.option(wire::option::GO, &[0; 6]);
        assert_eq!(client.replies().last(), Some(&reply::ACK));
        client
    }

    pub fn send(&mut self, flags: u16, kind: u16, offset: u64, length: u32, data: &[u8]) -> u64 {
        self.cookie += 1;
        let mut all = Vec::new();
        Head::put(&mut all, flags, kind, self.cookie, offset, length);
        all.extend_from_slice(data);
        self.stream.write_all(&all).expect("it takes requests");
        self.cookie
    }

    /// The next reply: the cookie, and the content of its only chunk.
    pub fn reply(&mut self) -> (u64, Answer) {
        let mut head = [0; 20];
        self.stream.read_exact(&mut head).expect("a reply");
        assert_eq!((wire::u32_at(&head, 0), wire::u16_at(&head, 4)), (wire::CHUNK_MAGIC, wire::chunk::DONE));
        let mut data = vec![0; wire::u32_at(&head, 16) as usize];
        self.stream.read_exact(&mut data).expect("a reply");
        let answer = match wire::u16_at(&head, 6) {
            wire::chunk::ERROR => Err((wire::u32_at(&data, 0), String::from_utf8(data[6..].to_vec()).expect("text"))),
            wire::chunk::OFFSET_DATA => Ok(data[8..].to_vec()),
            _ => Ok(data),
        };
        (wire::u64_at(&head, 8), answer)
    }

    pub fn ask(&mut self, flags: u16, kind: u16, offset: u64, length: u32, data: &[u8]) -> Answer {
        let cookie = self.send(flags, kind, offset, length, data);
        let (found, answer) = self.reply();
        assert_eq!(found, cookie);
        answer
    }

    pub fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        self.ask(0, READ, offset, length, &[]).expect("it can be read")
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) {
        let length = u32::try_from(data.len()).expect("short");
        self.ask(flag::FUA, WRITE, offset, length, data).expect("it can be written");
    }

    /// What is mapped: bytes, and whether they are a hole.
    pub fn mapped(&mut self, flags: u16, offset: u64, length: u32) -> Vec<(u32, bool)> {
        let data = self.ask(flags, BLOCK_STATUS, offset, length, &[]).expect("it is agreed on");
        assert_eq!(wire::u32_at(&data, 0), wire::ALLOCATION_ID);
        data[4..].chunks(8).map(|each| (wire::u32_at(each, 0), wire::u32_at(each, 4) == wire::HOLE_OF_ZEROS)).collect()
    }

    /// Whether the server has ended the connection.
    pub fn is_ended(&mut self) -> bool {
        let _ = self.stream.set_read_timeout(Some(std::time::Duration::from_secs(10)));
        let mut rest = Vec::new();
        // A server that closes with bytes unread resets the connection.
        self.stream
            .read_to_end(&mut rest)
            .map_or_else(|error| error.kind() == std::io::ErrorKind::ConnectionReset, |_| true)
    }
}

pub use wire::reply;
pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISCONNECT: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const CACHE: u16 = 5;
pub const WRITE_ZEROES: u16 = 6;
pub const BLOCK_STATUS: u16 = 7;
