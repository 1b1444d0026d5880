//! A host that knows just enough of NVMe/TCP.

use flashwright_nvme::fabrics;
use flashwright_nvme::wire::pdu::{self, Common, Format, Span, flag, kind};
use flashwright_nvme::wire::{Cqe, Sgl, Sqe, Status, put, u32_at};
use flashwright_serve::{Served, Server};
use std::io::{Read, Write};
use std::net::TcpStream;

const NAME: &str = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-000000000000";

/// A connection that serves a queue.
pub struct Host {
    pub stream: TcpStream,
    pub format: Format,
    pub nqn: String,
    pub controller: u16,
    /// The host's qualified name.
    pub name: &'static str,
    cid: u16,
}

/// What came for a command.
#[derive(Debug)]
pub struct Answer {
    pub cqe: Cqe,
    pub data: Vec<u8>,
}

/// How a command carries its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carry {
    /// In the capsule.
    Inside,
    /// By R2T.
    Asked,
}

/// A command without data.
pub fn sqe(opcode: u8, nsid: u32, dwords: [u32; 6]) -> Sqe {
    let mut bytes = [0; 64];
    bytes[0] = opcode;
    bytes[1] = 0x40;
    put(&mut bytes, 4, &nsid.to_le_bytes());
    dwords.iter().enumerate().for_each(|(at, dword)| put(&mut bytes, 40 + 4 * at, &dword.to_le_bytes()));
    Sqe(bytes)
}

/// A read or write of `blocks`.
pub fn of_blocks(opcode: u8, first: u64, blocks: u32) -> Sqe {
    let [low, high] = [first & 0xffff_ffff, first >> 32].map(|half| u32::try_from(half).unwrap());
    sqe(opcode, 1, [low, high, blocks - 1, 0, 0, 0])
}

impl Host {
    /// Connects to the address at which the server listens, without serving a queue.
    pub fn open<S: Served>(server: &Server<S>, digests: u8) -> Self {
        let uri = server.uris().iter().find_map(|uri| uri.strip_prefix("nvme+tcp://")).expect("it listens for NVMe");
        let (address, nqn) = uri.split_once('/').unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut out = Vec::new();
        pdu::put_connection(&mut out, kind::IC_REQ, 0, digests, 0);
        stream.write_all(&out).unwrap();
        let mut reply = [0; 128];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!((reply[0], reply[2], reply[11]), (kind::IC_RESP, 128, digests));
        assert!(u32_at(&reply, 12) >= 4096);
        let format = Format { header_digest: digests & 1 != 0, data_digest: digests & 2 != 0, alignment: 4 };
        Self { stream, format, nqn: nqn.to_owned(), controller: fabrics::ANY_CONTROLLER, name: NAME, cid: 0 }
    }

    /// Serves the admin queue, and enables the controller.
    pub fn admin<S: Served>(server: &Server<S>, digests: u8) -> Self {
        let mut host = Self::open(server, digests);
        let nqn = host.nqn.clone();
        let answer = host.connect(0, 31, &nqn, 0);
        assert!(answer.cqe.status.is_ok(), "{:?}", answer.cqe);
        host.controller = u16::try_from(answer.cqe.result & 0xffff).unwrap();
        host.set_config(6 << 16 | 4 << 20 | 1);
        host
    }

    /// Serves an I/O queue of the same controller.
    pub fn queue<S: Served>(&self, server: &Server<S>, number: u16) -> Self {
        let mut host = Self::open(server, 0);
        host.controller = self.controller;
        let nqn = host.nqn.clone();
        let answer = host.connect(number, 127, &nqn, 0);
        assert!(answer.cqe.status.is_ok(), "{:?}", answer.cqe);
        host
    }

    /// The same, with the host of the admin queue.
    pub fn queue_of<S: Served>(self, server: &Server<S>) -> (Self, Self) {
        let queue = self.queue(server, 1);
        (self, queue)
    }

    pub fn connect(&mut self, number: u16, size: u16, nqn: &str, attributes: u8) -> Answer {
        let mut command = sqe(fabrics::OPCODE, 0, [u32::from(number) << 16, 0, 0, 0, 0, 0]);
        command.0[4] = fabrics::kind::CONNECT;
        put(&mut command.0, 44, &size.to_le_bytes());
        command.0[46] = attributes;
        let mut data = vec![0; fabrics::CONNECT_BYTES];
        data[..16].fill(7);
        put(&mut data, 16, &self.controller.to_le_bytes());
        put(&mut data, 256, nqn.as_bytes());
        put(&mut data, 512, self.name.as_bytes());
        self.ask(command, &data, Carry::Inside)
    }

    pub fn property(&mut self, offset: u32, bytes: u32) -> Answer {
        let mut command = sqe(fabrics::OPCODE, 0, [u32::from(bytes == 8), offset, 0, 0, 0, 0]);
        command.0[4] = fabrics::kind::PROPERTY_GET;
        self.ask(command, &[], Carry::Inside)
    }

    pub fn set_config(&mut self, value: u32) {
        let mut command = sqe(fabrics::OPCODE, 0, [0, 0x14, value, 0, 0, 0]);
        command.0[4] = fabrics::kind::PROPERTY_SET;
        assert!(self.ask(command, &[], Carry::Inside).cqe.status.is_ok());
    }

    /// Sends a command whose data, if the host sends some, are `data`, and which wants at most `wanted` bytes.
    pub fn send(&mut self, mut command: Sqe, data: &[u8], carry: Carry, wanted: usize) -> u16 {
        self.cid = self.cid.wrapping_add(1);
        put(&mut command.0, 2, &self.cid.to_le_bytes());
        let length = u32::try_from(data.len().max(wanted)).unwrap();
        put(&mut command.0, 32, &length.to_le_bytes());
        let is_inside = carry == Carry::Inside && !data.is_empty();
        command.0[39] = if is_inside { Sgl::IN_CAPSULE } else { Sgl::TRANSPORT };
        let mut out = Vec::new();
        self.format.put_command(&mut out, &command, if is_inside { data } else { &[] });
        self.stream.write_all(&out).unwrap();
        self.cid
    }

    /// A PDU: its header and its data, whose digests are right.
    pub fn receive(&mut self) -> Option<(Common, Vec<u8>, Vec<u8>)> {
        let mut common = [0; pdu::COMMON_BYTES];
        self.stream.read_exact(&mut common).ok()?;
        let parsed = Common::parse(&common);
        let mut all = common.to_vec();
        all.resize(parsed.length as usize, 0);
        self.stream.read_exact(&mut all[pdu::COMMON_BYTES..]).ok()?;
        let header = usize::from(parsed.header);
        if self.format.header_digest && parsed.kind != kind::C2H_TERM {
            assert_eq!(u32_at(&all, header), crc32c::crc32c(&all[..header]));
        }
        let mut data = if parsed.data_at == 0 { Vec::new() } else { all.split_off(usize::from(parsed.data_at)) };
        if parsed.flags & flag::DATA_DIGEST != 0 {
            let digest = data.split_off(data.len() - 4);
            assert_eq!(u32_at(&digest, 0), crc32c::crc32c(&data));
        }
        all.truncate(header);
        Some((parsed, all, data))
    }

    /// The answer to a command that was sent, for which R2Ts are answered with parts of `data`.
    pub fn answer(&mut self, cid: u16, data: &[u8]) -> Answer {
        let mut found = Vec::new();
        loop {
            let (common, header, more) = self.receive().expect("an answer");
            match common.kind {
                kind::C2H_DATA => {
                    let span = Span::parse(&header);
                    assert_eq!((span.cid, span.offset as usize, span.length as usize), (cid, found.len(), more.len()));
                    found.extend(more);
                    if common.flags & flag::SUCCESS != 0 {
                        return Answer { cqe: Cqe { cid, sq_head: u16::MAX, ..Cqe::default() }, data: found };
                    }
                }
                kind::R2T => {
                    let span = Span::parse(&header);
                    assert_eq!((span.cid, span.offset, span.length as usize), (cid, 0, data.len()));
                    self.send_data(span, data);
                }
                kind::RESPONSE => {
                    let cqe = Cqe::parse(header[8..24].try_into().unwrap());
                    assert_eq!(cqe.cid, cid);
                    return Answer { cqe, data: found };
                }
                other => panic!("a PDU of type {other} came"),
            }
        }
    }

    /// Sends what an R2T asks for, in parts.
    pub fn send_data(&mut self, span: Span, data: &[u8]) {
        const PART: usize = 100_000 & !3;
        for (at, part) in data.chunks(PART).enumerate() {
            let is_last = (at + 1) * PART >= data.len();
            let part_span =
                Span { offset: u32::try_from(at * PART).unwrap(), length: u32::try_from(part.len()).unwrap(), ..span };
            let mut out = Vec::new();
            self.format.put_data_header(&mut out, kind::H2C_DATA, if is_last { flag::LAST } else { 0 }, part_span);
            let begins = out.len();
            out.extend_from_slice(part);
            self.format.put_data_digest(&mut out, begins);
            self.stream.write_all(&out).unwrap();
        }
    }

    pub fn ask(&mut self, command: Sqe, data: &[u8], carry: Carry) -> Answer {
        let cid = self.send(command, data, carry, 0);
        self.answer(cid, data)
    }

    /// A command that wants data.
    pub fn get(&mut self, command: Sqe, wanted: usize) -> Answer {
        let cid = self.send(command, &[], Carry::Inside, wanted);
        self.answer(cid, &[])
    }

    pub fn identify(&mut self, structure: u32, nsid: u32) -> Answer {
        self.get(sqe(0x06, nsid, [structure, 0, 0, 0, 0, 0]), 4096)
    }

    pub fn log(&mut self, page: u32, bytes: usize) -> Answer {
        let dwords = u32::try_from(bytes / 4 - 1).unwrap();
        self.get(sqe(0x02, u32::MAX, [page | dwords << 16, 0, 0, 0, 0, 0]), bytes)
    }

    /// Creates a namespace of 512-byte blocks and attaches it to this controller. Returns its identifier.
    pub fn create(&mut self, blocks: u64, format: u8) -> u32 {
        let mut wanted = vec![0; 4096];
        [0, 8].into_iter().for_each(|at| put(&mut wanted, at, &blocks.to_le_bytes()));
        (wanted[26], wanted[30]) = (format, 1);
        let made = self.ask(sqe(0x0d, 0, [0; 6]), &wanted, Carry::Asked).cqe;
        assert!(made.status.is_ok(), "{made:?}");
        let nsid = u32::try_from(made.result).unwrap();
        assert_eq!(self.attach(nsid, 0, &[self.controller]), Status::SUCCESS);
        nsid
    }

    /// Attaches (0) a namespace to controllers, or detaches it (1).
    pub fn attach(&mut self, nsid: u32, select: u32, controllers: &[u16]) -> Status {
        let mut list = vec![0; 4096];
        put(&mut list, 0, &u16::try_from(controllers.len()).unwrap().to_le_bytes());
        controllers.iter().enumerate().for_each(|(at, id)| put(&mut list, 2 + 2 * at, &id.to_le_bytes()));
        self.ask(sqe(0x15, nsid, [select, 0, 0, 0, 0, 0]), &list, Carry::Asked).cqe.status
    }

    pub fn delete(&mut self, nsid: u32) -> Status {
        self.ask(sqe(0x0d, nsid, [1, 0, 0, 0, 0, 0]), &[], Carry::Inside).cqe.status
    }

    /// The identifiers that a structure of identify lists.
    pub fn list(&mut self, structure: u32) -> Vec<u32> {
        let data = self.identify(structure, 0).data;
        data.chunks_exact(4).map(|id| u32_at(id, 0)).take_while(|id| *id != 0).collect()
    }

    pub fn read(&mut self, first: u64, blocks: u32) -> Vec<u8> {
        let answer = self.get(of_blocks(0x02, first, blocks), blocks as usize * 512);
        assert!(answer.cqe.status.is_ok(), "{:?}", answer.cqe);
        answer.data
    }

    pub fn write(&mut self, first: u64, data: &[u8], carry: Carry) -> Status {
        self.ask(of_blocks(0x01, first, u32::try_from(data.len() / 512).unwrap()), data, carry).cqe.status
    }

    /// Whether the server has ended the connection, after a request to terminate it.
    pub fn is_terminated(&mut self) -> bool {
        let mut terminated = false;
        while let Some((common, ..)) = self.receive() {
            terminated |= common.kind == kind::C2H_TERM;
        }
        terminated
    }
}
