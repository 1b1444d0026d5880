//! Whatever bytes come, a session answers each command once, keeps its memory bounded, never panics, and never reaches a range of
//! the drive that its namespace does not have.

use crate::common::{UNIT, Units, ZONING, about, draws, list, wanted};
use flashwright_block::{GroupBits, Placed as _};
use flashwright_nvme::commands::{ADMIN, Command, IO, TRANSFER_MAX};
use flashwright_nvme::subsystem::{About, DISCOVERY_NQN, Health, Place, Subsystem};
use flashwright_nvme::tcp::{Reader, TRANSFER_WINDOW, Writer};
use flashwright_nvme::wire::pdu::{self, Common, Format, Span, flag, kind};
use flashwright_nvme::wire::{Cqe, Sgl, Sqe, Status, put, u16_at, u32_at};
use flashwright_nvme::{Io, Op, fabrics};
use flashwright_testing::Rounds;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// With five namespaces of both formats, one of them of two extents, one private, one that nobody has, and free space.
pub fn subsystem() -> Subsystem {
    static KEPT: OnceLock<Vec<u8>> = OnceLock::new();
    let mut subsystem = bare();
    let kept = KEPT.get_or_init(|| {
        let mut made = bare();
        let id = made.admit(([0; 16], "nqn.2014-08.org.nvmexpress:host".to_owned()), false, 0).unwrap();
        assert!(made.controller_mut(id).unwrap().set_property(0x14, 4, 1));
        let mut admin = |opcode: u8, nsid: u32, select: u32, data: &[u8]| {
            let mut sqe = command(opcode, 0, nsid);
            put(&mut sqe.0, 40, &select.to_le_bytes());
            made.execute(Place { controller: id, queue: 0 }, &sqe, data, &mut Units::default()).unwrap()
        };
        admin(0x0d, u32::MAX, 1, &[]);
        for (mib, format, shared) in [(8, 0, 1), (16, 0, 1), (8, 1, 1), (16, 0, 0)] {
            admin(0x0d, 0, 0, &wanted(mib, format, shared));
        }
        admin(0x0d, 1, 1, &[]); // a hole of 8 MiB
        admin(0x0d, 0, 0, &wanted(20, 1, 1)); // one of 20 MiB: this hole, and a part of that at the end
        admin(0x0d, 0, 0, &wanted(1, 0, 1));
        (1..=4).for_each(|nsid| drop(admin(0x15, nsid, 0, &list(&[id]))));
        assert_eq!(made.namespaces().get(1).unwrap().extents().len(), 2);
        made.take_changed().unwrap()
    });
    subsystem.restore(kept).unwrap();
    subsystem
}

fn bare() -> Subsystem {
    Subsystem::new(placing())
}

/// A drive with zones, which is one namespace.
fn zoned() -> Subsystem {
    let of_zones = About { unit_bytes: 4096, trims_to_zeros: false, zoning: Some(ZONING), ..about() };
    Subsystem::new(of_zones)
}

fn placing() -> About {
    About { placement: Some(Units { more_groups: 2, ..Units::default() }.placement()), ..about() }
}

/// Bytes of the drive.
const BYTES: u64 = 64 << 20;

/// Whether a request lies within an extent of the namespace that it is for.
fn is_of_its_namespace(subsystem: &Subsystem, io: &Io) -> bool {
    if io.op == Op::Flush {
        return io.bytes == 0;
    }
    let namespace = subsystem.namespaces().iter().find(|namespace| namespace.serial == io.namespace);
    let end = io.offset + u64::from(io.bytes);
    let covers = |begins: u64, bytes: u64| begins <= io.offset && end <= begins + bytes;
    namespace.is_some_and(|found| {
        let (group, handle) = GroupBits::of(3).split(io.stream);
        let has_handle = group < 3 && found.handles.iter().any(|own| u16::from(*own) == handle);
        let is_placed = !matches!(io.op, Op::Write | Op::WriteZeroes(_)) || has_handle;
        let is_of_zone = matches!(io.op, Op::Append | Op::OpenZone | Op::CloseZone | Op::FinishZone | Op::ResetZone);
        let has_zones = subsystem.about.zoning.is_some();
        let is_placed = if has_zones { io.stream == 0 } else { is_placed };
        let begins_there = !is_of_zone || has_zones && io.offset.is_multiple_of(ZONING.size.0);
        is_placed && begins_there && found.extents().iter().any(|extent| covers(extent.first, extent.bytes))
    })
}

/// A connection, and what its host knows of it.
struct Connection {
    reader: Reader,
    writer: Writer,
    format: Format,
    input: Vec<u8>,
    /// Commands that were sent: how often each identifier was sent and not answered.
    open: BTreeMap<u16, u32>,
    /// Data that were asked for.
    asked: Vec<Span>,
    is_over: bool,
    /// Bytes changed on the way, so that the host may get answers to commands that it did not send.
    is_damaged: bool,
    /// How often the drive was asked, and how often for a further part of a command's data.
    begun: [usize; 2],
    has_zones: bool,
}

impl Connection {
    fn new() -> Self {
        Self {
            has_zones: false,
            reader: Reader::default(),
            writer: Writer::default(),
            format: Format::default(),
            input: Vec::new(),
            open: BTreeMap::new(),
            asked: Vec::new(),
            is_over: false,
            is_damaged: false,
            begun: [0; 2],
        }
    }

    /// Lets the session take what has come, and the drive carry out what is asked: it fails `failing` of 256 requests.
    fn exchange(&mut self, subsystem: &mut Subsystem, failing: u8) {
        let mut drive = Units {
            rooms: (failing < 200).then_some([UNIT, 4096, 0, UNIT / 2]),
            has_zones: self.has_zones,
            unwritten: 0..BYTES / 2,
            more_groups: 2,
            ..Units::default()
        };
        loop {
            let taken = self.reader.feed(&mut self.writer, subsystem, &mut drive, &self.input);
            self.input.drain(..taken);
            while let Some(io) = subsystem.next_chore() {
                let erases = io.op == Op::Deallocate && io.is_durable || self.has_zones && io.op == Op::ResetZone;
                assert!(erases && io.offset + u64::from(io.bytes) <= BYTES, "{io:?}");
                subsystem.chore_ended(io.offset, io.bytes, failing < 100);
            }
            if failing < 100 {
                subsystem.power_is_back();
            }
            let mut bytes = 0;
            let mut begun = 0u8;
            while let Some(ready) = self.reader.begin() {
                begun = begun.wrapping_add(1);
                bytes += ready.data.len();
                if let Err(status) = subsystem.check(&ready.io) {
                    self.writer.ended(ready.flight, status);
                    continue;
                }
                self.begun[1] += usize::from(ready.at > 0);
                assert!(is_of_its_namespace(subsystem, &ready.io), "{ready:?}");
                assert!(!ready.io.op.stores_data() || ready.data.len() == ready.io.bytes as usize);
                let fails = begun.wrapping_mul(37) < failing;
                if ready.io.op == Op::Read && !fails {
                    self.writer.data(ready.flight, ready.at, ready.io.bytes as usize).fill(1);
                }
                if ready.io.op == Op::Append && !fails {
                    self.writer.appended(ready.flight, 8192, ready.io.bytes);
                }
                self.writer.ended(ready.flight, if fails { Status::WRITE_FAULT } else { Status::SUCCESS });
            }
            self.begun[0] += usize::from(begun);
            assert!(bytes <= TRANSFER_WINDOW + TRANSFER_MAX, "{bytes} bytes were kept");
            if taken == 0 && begun == 0 && !self.reader.has_more(&self.writer) {
                break;
            }
        }
        self.look_at_replies();
        self.is_over |= self.reader.is_over(subsystem);
    }

    /// Every PDU that leaves is whole and right, and answers a command that was sent.
    fn look_at_replies(&mut self) {
        let out = std::mem::take(&mut self.writer.out);
        let mut rest = out.as_slice();
        while !rest.is_empty() {
            let common = Common::parse(rest.first_chunk().expect("a whole header"));
            let (bytes, more) = rest.split_at(common.length as usize);
            rest = more;
            let header = &bytes[..usize::from(common.header)];
            let has_digest = self.format.header_digest && !matches!(common.kind, kind::IC_RESP | kind::C2H_TERM);
            if has_digest {
                assert_eq!(u32_at(bytes, header.len()), crc32c::crc32c(header));
            }
            match common.kind {
                kind::IC_RESP => {
                    let digests = header[11];
                    self.format =
                        Format { header_digest: digests & 1 != 0, data_digest: digests & 2 != 0, alignment: 4 };
                }
                kind::C2H_TERM => {
                    assert!(rest.is_empty(), "nothing follows a termination");
                    self.is_over = true;
                }
                kind::R2T => self.asked.push(Span::parse(header)),
                kind::C2H_DATA => {
                    let span = Span::parse(header);
                    assert!(
                        self.is_damaged || self.open.contains_key(&span.cid),
                        "data for a command that was not sent"
                    );
                    if common.flags & flag::SUCCESS != 0 {
                        self.answered(span.cid);
                    }
                }
                kind::RESPONSE => self.answered(Cqe::parse(header[8..24].try_into().unwrap()).cid),
                other => panic!("a PDU of type {other} left"),
            }
        }
    }

    fn answered(&mut self, cid: u16) {
        let Some(count) = self.open.get_mut(&cid) else {
            assert!(self.is_damaged, "an answer to a command that was not sent");
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.open.remove(&cid);
        }
    }

    fn send(&mut self, sqe: &Sqe, data: &[u8]) {
        if !self.is_over {
            *self.open.entry(sqe.cid()).or_default() += 1;
            self.format.put_command(&mut self.input, sqe, data);
        }
    }
}

pub fn command(opcode: u8, cid: u16, nsid: u32) -> Sqe {
    let mut bytes = [0; 64];
    bytes[0] = opcode;
    bytes[1] = 0x40;
    put(&mut bytes, 2, &cid.to_le_bytes());
    put(&mut bytes, 4, &nsid.to_le_bytes());
    Sqe(bytes)
}

pub fn connect(nqn: &str, controller: u16, queue: u16, no_flow_control: bool) -> (Sqe, Vec<u8>) {
    let mut sqe = command(fabrics::OPCODE, 0xfff0, 0);
    sqe.0[4] = fabrics::kind::CONNECT;
    put(&mut sqe.0, 42, &queue.to_le_bytes());
    put(&mut sqe.0, 44, &31u16.to_le_bytes());
    sqe.0[46] = u8::from(no_flow_control) << 2;
    put(&mut sqe.0, 32, &1024u32.to_le_bytes());
    sqe.0[39] = Sgl::IN_CAPSULE;
    let mut data = vec![0; fabrics::CONNECT_BYTES];
    put(&mut data, 16, &controller.to_le_bytes());
    put(&mut data, 256, nqn.as_bytes());
    put(&mut data, 512, b"nqn.2014-08.org.nvmexpress:host");
    (sqe, data)
}

/// What a host does next, drawn from bytes.
fn act(connection: &mut Connection, bytes: [u8; 16]) {
    let [what, opcode, cid, nsid, first, blocks, page, length, carry, extra @ ..] = bytes;
    match what % 16 {
        // A command of the lists, or any: small numbers, which mostly are valid, and now and then large ones.
        0..=10 => {
            let fits = |command: &&Command| connection.has_zones || !command.of_zones;
            let known: Vec<u8> = ADMIN.iter().chain(IO).filter(fits).map(|command| command.opcode).collect();
            let opcode = if what < 200 { known[usize::from(opcode) % known.len()] } else { opcode };
            let nsid = [1, 1, 2, 2, 3, 4, 5, 0, 6, 64, 65, u32::MAX][usize::from(nsid) % 12];
            let nsid = if connection.has_zones && nsid < 6 { 1 } else { nsid };
            let mut sqe = command(opcode, u16::from(cid), nsid);
            let blocks = if blocks < 250 { u32::from(blocks % 32) } else { 0xffff };
            put(&mut sqe.0, 40, &u32::from(first).to_le_bytes());
            put(&mut sqe.0, 48, &blocks.to_le_bytes());
            if opcode == 0x02 && page < 128 {
                put(&mut sqe.0, 40, &(u32::from(page) | u32::from(length) << 16).to_le_bytes());
            }
            if page > 240 {
                sqe.0[40..64].iter_mut().zip(extra.iter().cycle()).for_each(|(place, byte)| *place = *byte);
            }
            // Around the end of the first extent of namespace 1, and selects of its commands.
            if first > 230 && (opcode < 0x0d || opcode == 0x19) {
                put(&mut sqe.0, 40, &(2048 - u32::from(first % 32)).to_le_bytes());
            }
            // Directives, and what I/O Management asks for.
            if matches!(opcode, 0x01 | 0x08 | 0x19) {
                put(&mut sqe.0, 50, &([0u16, 0, 2, 2, 2, 2, 2, 3][usize::from(extra[2] % 8)] << 4).to_le_bytes());
                put(&mut sqe.0, 54, &u16::from(extra[3] % 6).to_le_bytes());
            }
            if matches!(opcode, 0x12 | 0x1a | 0x1d) {
                put(&mut sqe.0, 40, &[first % 4, 0, page % 4, 0, length, 0, 0, 0]);
            }
            if opcode == 0x86 {
                let action = [0x10, 0x11, 0x11, 0][usize::from(page % 4)];
                put(&mut sqe.0, 52, &(action << 24 | u32::from(length)).to_le_bytes());
            }
            if matches!(opcode, 0x0d | 0x15) {
                put(&mut sqe.0, 40, &u32::from(first % 3).to_le_bytes());
            }
            if opcode == 0x19 {
                put(&mut sqe.0, 48, &u16::from(blocks.to_le_bytes()[0] % 8).to_le_bytes());
            }
            // Zones, actions, and reports.
            if connection.has_zones && matches!(opcode, 0x01 | 0x79 | 0x7a | 0x7d) {
                put(&mut sqe.0, 40, &(u32::from(first % 18) * 1024 + u32::from(page / 200)).to_le_bytes());
                if opcode != 0x01 && opcode != 0x7d {
                    let options = u32::from(cid % 7) | u32::from(extra[2] % 2) << 8 | u32::from(extra[3] % 2) << 16;
                    put(&mut sqe.0, 52, &options.to_le_bytes());
                }
            }
            let data = match opcode {
                0x0d => wanted(u64::from(blocks % 40), page % 3, extra[0] % 2),
                0x15 => list(&[u16::from(extra[0] % 3), 2][..usize::from(extra[1] % 2) + 1]),
                0x19 => (0..256).map(|at| if at % 32 == 8 { extra[at / 32 % 4] } else { 0 }).collect(),
                _ => Vec::new(),
            };
            let bytes = match length % 8 {
                _ if !data.is_empty() && carry < 200 => u32::try_from(data.len()).unwrap(),
                0 => 0,
                1 => 511,
                2 => 16,
                3 => 4096,
                4 => u32::try_from(TRANSFER_MAX + 1).unwrap(),
                _ => (blocks + 1) * if connection.has_zones { 4096 } else { 512 },
            };
            put(&mut sqe.0, 32, &bytes.to_le_bytes());
            let is_inside = carry % 3 == 0 && bytes <= 8192;
            sqe.0[39] = if is_inside { Sgl::IN_CAPSULE } else { Sgl::TRANSPORT };
            if carry > 250 {
                sqe.0[39] = extra[0];
            }
            let mut data = data;
            data.resize(if is_inside { bytes as usize } else { 0 }, extra[1]);
            connection.send(&sqe, &data);
        }
        // The data that were asked for, or others.
        11 | 12 => {
            let Some(mut span) = connection.asked.pop() else { return };
            if extra[0] > 240 {
                span.tag = span.tag.wrapping_add(1);
            }
            let part = (256 << 10).min(span.length as usize);
            let format = connection.format;
            let mut sent = 0;
            while sent < span.length as usize {
                let now = part.min(span.length as usize - sent);
                let (offset, length) = (u32::try_from(sent).unwrap(), u32::try_from(now).unwrap());
                sent += now;
                let is_last = sent == span.length as usize && extra[1] < 250;
                let here = Span { offset, length, ..span };
                let last = if is_last { flag::LAST } else { 0 };
                format.put_data_header(&mut connection.input, kind::H2C_DATA, last, here);
                let begins = connection.input.len();
                connection.input.resize(begins + now, extra[2]);
                format.put_data_digest(&mut connection.input, begins);
            }
        }
        // A property.
        13 | 14 => {
            let mut sqe = command(fabrics::OPCODE, u16::from(cid), 0);
            sqe.0[4] = extra[0] % 6;
            sqe.0[40] = extra[1] % 3;
            sqe.0[44] = [0x00, 0x08, 0x14, 0x1c, 0x20, 0x68, 0x18, 0xff][usize::from(first) % 8];
            put(&mut sqe.0, 48, &u32::from(blocks).to_le_bytes());
            // Mostly it leaves the controller enabled.
            sqe.0[48] |= u8::from(extra[2] < 240);
            if connection.has_zones && extra[2] < 240 {
                sqe.0[48] = sqe.0[48] & !0x70 | 0x60;
            }
            connection.send(&sqe, &[]);
        }
        // A byte changes on the way, or some are lost.
        _ => {
            let length = connection.input.len();
            if length > 0 && extra[0] > 128 {
                let at = (usize::from(first) << 8 | usize::from(blocks)) % length;
                connection.input[at] ^= 1 << (extra[1] % 8);
                connection.is_damaged = true;
            } else if extra[0] > 120 {
                connection.input.truncate(length.saturating_sub(usize::from(first)));
                connection.is_damaged = true;
            }
        }
    }
}

/// A session of a host: how it begins, and what it does. Returns how often the drive was asked, and for further parts of data.
fn session(digests: u8, begins: u8, acts: &[[u8; 16]]) -> [usize; 2] {
    let has_zones = begins & 0x60 == 0x60;
    let mut subsystem = if has_zones { zoned() } else { subsystem() };
    let nqn = if begins.is_multiple_of(16) { DISCOVERY_NQN.to_owned() } else { subsystem.nqn.clone() };
    let mut all = Vec::new();
    for queue in 0..=1 {
        let mut connection = Connection { has_zones, ..Connection::new() };
        pdu::put_connection(&mut connection.input, kind::IC_REQ, 0, digests & 3, 0);
        connection.exchange(&mut subsystem, 0);
        let controller = if queue == 0 { fabrics::ANY_CONTROLLER } else { 1 };
        let (sqe, data) = connect(&nqn, controller, queue, begins & 16 != 0);
        connection.send(&sqe, &data);
        if queue == 0 {
            let mut enable = command(fabrics::OPCODE, 0xfff1, 0);
            put(&mut enable.0, 44, &0x14u32.to_le_bytes());
            put(&mut enable.0, 48, &(6u32 << 16 | 4 << 20 | 6 << 4 | 1).to_le_bytes());
            connection.send(&enable, &[]);
        }
        connection.exchange(&mut subsystem, 0);
        assert!(connection.open.is_empty() && !connection.is_over, "a session begins");
        all.push(connection);
    }
    for bytes in acts {
        let at = usize::from(bytes[15] % 4 > 0);
        let connection = &mut all[at];
        if connection.is_over {
            continue;
        }
        act(connection, *bytes);
        // Several commands come at once, or a part of one.
        if bytes[14] % 4 > 0 {
            connection.exchange(&mut subsystem, bytes[13] / 2);
        }
    }
    for connection in &mut all {
        if !connection.is_over {
            connection.exchange(&mut subsystem, 0);
        }
    }
    [0, 1].map(|which| all.iter().map(|connection| connection.begun[which]).sum())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_host_breaks_a_session(
        digests in any::<u8>(),
        begins in any::<u8>(),
        acts in prop::collection::vec(any::<[u8; 16]>(), 1..60),
    ) {
        session(digests, begins, &acts);
    }

    #[test]
    fn noise_ends_a_connection_or_waits(noise in prop::collection::vec(any::<u8>(), 0..400)) {
        let (mut subsystem, mut connection) = (subsystem(), Connection::new());
        connection.input = noise;
        connection.exchange(&mut subsystem, 0);
        prop_assert_eq!(subsystem.controllers().count(), 0);
    }
}

/// What a host does in a session.
const ACTS: usize = 50;

#[test]
fn a_million_commands_break_nothing() {
    let mut begun = [0; 2];
    let mut rounds = Rounds::new("sessions of NVMe/TCP", 20_000);
    while let Some(seed) = rounds.next_seed() {
        let mut next = draws(seed);
        rounds.count(ACTS as u64);
        let (digests, begins) = (next().to_le_bytes()[0], next().to_le_bytes()[0]);
        let acts: Vec<[u8; 16]> =
            (0..ACTS).map(|_| (u128::from(next()) << 64 | u128::from(next())).to_le_bytes()).collect();
        let now = session(digests, begins, &acts);
        begun.iter_mut().zip(now).for_each(|(all, now)| *all += now);
    }
    let [all, parts] = begun;
    assert!(
        all > 40_000 && parts > 500,
        "the drive was asked {all} times, {parts} for parts: most commands were refused"
    );
}

#[test]
fn a_command_whose_identifier_is_taken_is_refused_and_the_first_goes_on() {
    let (mut subsystem, mut connection) = (subsystem(), Connection::new());
    pdu::put_connection(&mut connection.input, kind::IC_REQ, 0, 0, 0);
    let (sqe, data) = connect(&subsystem.nqn.clone(), fabrics::ANY_CONTROLLER, 0, false);
    connection.send(&sqe, &data);
    let mut enable = command(fabrics::OPCODE, 1, 0);
    put(&mut enable.0, 44, &0x14u32.to_le_bytes());
    put(&mut enable.0, 48, &1u32.to_le_bytes());
    connection.send(&enable, &[]);
    connection.exchange(&mut subsystem, 0);
    let event = command(0x0c, 9, 0);
    for _ in 0..2 {
        connection.format.put_command(&mut connection.input, &event, &[]);
    }
    connection.reader.feed(&mut connection.writer, &mut subsystem, &mut Units::default(), &connection.input);
    let out = std::mem::take(&mut connection.writer.out);
    assert_eq!(out.len(), 24, "one answer");
    assert_eq!((u16_at(&out, 8 + 12), Cqe::parse(out[8..24].try_into().unwrap()).status), (9, Status::CID_CONFLICT));
    // Spare blocks run low: the first request is answered with an event, and a second event waits for the log to be read.
    let features = {
        let mut sqe = command(0x09, 10, 0);
        put(&mut sqe.0, 40, &0x0bu32.to_le_bytes());
        put(&mut sqe.0, 44, &0x1fu32.to_le_bytes());
        sqe
    };
    connection.input.clear();
    connection.format.put_command(&mut connection.input, &features, &[]);
    connection.reader.feed(&mut connection.writer, &mut subsystem, &mut Units::default(), &connection.input);
    connection.writer.out.clear();
    subsystem.watch_health(&Health { spare: 0.05, is_worn_out: true, ..Health::default() });
    connection.reader.tell_events(&mut connection.writer, &mut subsystem);
    let cqe = Cqe::parse(connection.writer.out[8..24].try_into().unwrap());
    assert_eq!((cqe.cid, cqe.result), (9, 0x0002_0201));
    connection.writer.out.clear();
    connection.input.clear();
    let mut again = command(0x0c, 11, 0);
    connection.format.put_command(&mut connection.input, &again, &[]);
    connection.reader.feed(&mut connection.writer, &mut subsystem, &mut Units::default(), &connection.input);
    assert!(connection.writer.out.is_empty(), "the log page was not read");
    again = command(0x02, 12, u32::MAX);
    put(&mut again.0, 40, &(0x02u32 | 127 << 16).to_le_bytes());
    put(&mut again.0, 32, &512u32.to_le_bytes());
    connection.input.clear();
    connection.format.put_command(&mut connection.input, &again, &[]);
    connection.reader.feed(&mut connection.writer, &mut subsystem, &mut Units::default(), &connection.input);
    let out = &connection.writer.out;
    let event = Cqe::parse(out[out.len() - 16..].try_into().unwrap());
    assert_eq!((event.cid, event.result), (11, 0x0002_0001), "the second event, once the page was read");
}
