//! The host's side of NVMe/TCP: the greeting, and the messages of one I/O queue without their socket.
//!
//! ```text
//!   admin connection: Connect, enable, Identify, Set Features        (kept open: with it the controller goes)
//!   I/O connection:   Connect ─► Queue: capsules, R2Ts, data, completions
//! ```
//!
//! Of the namespaces that there are, the first is taken. No digests are asked for, and no keep-alive time is set.

use super::hello::{Broken, PATIENCE, Terms, connect, fill, in_words, said, sensible};
use super::replies::{Known, Reply};
use super::uri::{Refused, Uri};
use crate::listen::Stream;
use crate::wire::export;
use flashwright_nvme::fabrics;
use flashwright_nvme::subsystem::DISCOVERY_NQN;
use flashwright_nvme::wire::pdu::{self, Common, Format, SHORT_BYTES, Span, flag, kind};
use flashwright_nvme::wire::placement;
use flashwright_nvme::wire::{Cqe, HOST_PAGE, SQE_BYTES, Sgl, Sqe, Status, put, u16_at, u32_at, u64_at};
use std::collections::VecDeque;
use std::io::Write as _;
use std::time::Instant;

/// Commands of the admin queue, and the most of an I/O queue.
const ADMIN_SIZE: u16 = 32;
const QUEUE_SIZE: u64 = 256;
/// The most that is asked for at once where the controller names no limit, or a larger one.
const TRANSFER_MAX: u64 = 1 << 20;
/// Longest PDU of the greeting.
const GREETING_MAX: usize = 64 << 10;
/// CC: queue entries of 64 and 16 bytes, enabled.
const ENABLE: u32 = 6 << 16 | 4 << 20 | 1;

/// Opcodes.
mod opcode {
    pub const FLUSH: u8 = 0x00;
    pub const WRITE: u8 = 0x01;
    pub const READ: u8 = 0x02;
    pub const DATASET_MANAGEMENT: u8 = 0x09;
    pub const GET_LOG_PAGE: u8 = 0x02;
    pub const GET_FEATURES: u8 = 0x0a;
    pub const IDENTIFY: u8 = 0x06;
    pub const IO_MANAGEMENT_RECEIVE: u8 = 0x12;
    pub const SET_FEATURES: u8 = 0x09;
}

/// A message to the controller: what the types of NBD's requests mean here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// What its reply repeats.
    pub cookie: u64,
    /// A read (0), write (1), flush (3) or trim (4).
    pub kind: u16,
    /// Whether it is durable when it ends.
    pub is_durable: bool,
    /// The first byte.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// Of a write, the stream that the workload names.
    pub stream: u16,
}

/// Data that the controller asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    span: Span,
    /// The first byte on the drive.
    pub offset: u64,
}

/// An I/O queue.
#[derive(Debug)]
pub struct Queue {
    nsid: u32,
    block_shift: u8,
    /// Placement identifiers, which streams name.
    identifiers: Identifiers,
    in_capsule: usize,
    data_max: u32,
    /// Messages at the controller, by the identifiers of their commands.
    slots: Vec<Option<Message>>,
    free: Vec<u16>,
    /// Messages that wait for a place.
    waiting: VecDeque<Message>,
    /// The header that is not whole yet, and data of a read that are still to come.
    header: Vec<u8>,
    data_left: u64,
    /// What is to be done once the data have come.
    then: Option<u16>,
    /// Data that the controller asked for and did not get.
    pub wanted: VecDeque<Wanted>,
    /// The admin connection.
    _admin: Stream,
}

/// Placement identifiers, a bit for each, so that a write asks for one at once; nothing where the drive places no data.
#[derive(Debug, Default)]
struct Identifiers(Vec<u64>);

impl Identifiers {
    fn of(all: &[u16]) -> Self {
        let words = all.iter().max().map_or(0, |last| usize::from(last >> 6) + 1);
        let mut bits = vec![0; words];
        all.iter().for_each(|id| bits[usize::from(id >> 6)] |= 1 << (id & 63));
        Self(bits)
    }

    fn has(&self, id: u16) -> bool {
        self.0.get(usize::from(id >> 6)).is_some_and(|word| word >> (id & 63) & 1 == 1)
    }
}

fn sqe(opcode: u8, nsid: u32, cid: u16) -> Sqe {
    let mut bytes = [0; SQE_BYTES];
    (bytes[0], bytes[1], bytes[39]) = (opcode, 0x40, Sgl::TRANSPORT);
    put(&mut bytes, 2, &cid.to_le_bytes());
    put(&mut bytes, 4, &nsid.to_le_bytes());
    Sqe(bytes)
}

fn set_sgl(sqe: &mut Sqe, length: usize, kind: u8) {
    put(&mut sqe.0, 32, &u32::try_from(length).expect("messages are short").to_le_bytes());
    sqe.0[39] = kind;
}

impl Queue {
    /// Puts the bytes of a message, or keeps it until there is a place. `fill` makes the data of a write.
    pub fn push(&mut self, out: &mut Vec<u8>, message: Message, fill: &mut dyn FnMut(u64, &mut [u8])) {
        let Some(cid) = self.free.pop() else { return self.waiting.push_back(message) };
        self.put(out, cid, message, fill);
    }

    /// Puts messages that waited.
    pub fn advance(&mut self, out: &mut Vec<u8>, fill: &mut dyn FnMut(u64, &mut [u8])) {
        while let (Some(message), Some(cid)) = (self.waiting.front().copied(), self.free.last().copied()) {
            self.waiting.pop_front();
            self.free.pop();
            self.put(out, cid, message, fill);
        }
    }

    fn put(&mut self, out: &mut Vec<u8>, cid: u16, message: Message, fill: &mut dyn FnMut(u64, &mut [u8])) {
        self.slots[usize::from(cid)] = Some(message);
        let format = Format::default();
        let (first, blocks) = (message.offset >> self.block_shift, message.length >> self.block_shift);
        let mut command = match message.kind {
            0 => sqe(opcode::READ, self.nsid, cid),
            1 => sqe(opcode::WRITE, self.nsid, cid),
            3 => sqe(opcode::FLUSH, self.nsid, cid),
            _ => sqe(opcode::DATASET_MANAGEMENT, self.nsid, cid),
        };
        let mut data = Vec::new();
        match message.kind {
            3 => {}
            0 | 1 => {
                put(&mut command.0, 40, &first.to_le_bytes());
                let durable = u32::from(message.is_durable) << 30;
                put(&mut command.0, 48, &((blocks - 1) | durable).to_le_bytes());
                // A write of the first stream, or of one that there is not, goes where those go that name none.
                if message.kind == 1 && message.stream > 0 && self.identifiers.has(message.stream) {
                    command.0[50] |= placement::DIRECTIVE << 4;
                    put(&mut command.0, 54, &message.stream.to_le_bytes());
                }
                let length = message.length as usize;
                let is_inside = message.kind == 1 && length <= self.in_capsule;
                set_sgl(&mut command, length, if is_inside { Sgl::IN_CAPSULE } else { Sgl::TRANSPORT });
                if is_inside {
                    data.resize(length, 0);
                    fill(message.offset, &mut data);
                }
            }
            _ => {
                put(&mut command.0, 44, &(1u32 << 2).to_le_bytes());
                data.resize(16, 0);
                put(&mut data, 4, &blocks.to_le_bytes());
                put(&mut data, 8, &first.to_le_bytes());
                set_sgl(&mut command, data.len(), Sgl::IN_CAPSULE);
            }
        }
        format.put_command(out, &command, &data);
    }

    /// Puts data that the controller asked for.
    pub fn put_wanted(&mut self, out: &mut Vec<u8>, fill: &mut dyn FnMut(u64, &mut [u8])) {
        let format = Format::default();
        while let Some(Wanted { span, offset }) = self.wanted.pop_front() {
            let mut sent = 0;
            while sent < span.length {
                let length = (span.length - sent).min(self.data_max);
                let is_last = sent + length == span.length;
                let part = Span { offset: span.offset + sent, length, ..span };
                format.put_data_header(out, kind::H2C_DATA, if is_last { flag::LAST } else { 0 }, part);
                let begins = out.len();
                out.resize(begins + length as usize, 0);
                fill(offset + u64::from(sent), &mut out[begins..]);
                sent += length;
            }
        }
    }

    /// Takes bytes as they came, and passes each reply that is complete to `done`.
    ///
    /// # Errors
    /// What breaks the protocol.
    pub fn take<K: Known>(
        &mut self,
        mut input: &[u8],
        known: &mut K,
        mut done: impl FnMut(&mut K, Reply),
    ) -> Result<(), &'static str> {
        loop {
            if self.data_left > 0 {
                let count = self.data_left.min(input.len() as u64);
                input = &input[usize::try_from(count).unwrap_or(input.len())..];
                self.data_left -= count;
                if self.data_left > 0 {
                    return Ok(());
                }
            }
            if let Some(cid) = self.then.take() {
                let message = self.release(cid).ok_or("data answer no command")?;
                done(known, Reply::Done(message.cookie));
            }
            let needed = self.needed()?;
            let count = needed.saturating_sub(self.header.len()).min(input.len());
            self.header.extend_from_slice(&input[..count]);
            input = &input[count..];
            if self.header.len() < self.needed()? {
                if input.is_empty() {
                    return Ok(());
                }
                continue;
            }
            let header = std::mem::take(&mut self.header);
            self.pdu(&header, known, &mut done)?;
            self.header = header;
            self.header.clear();
        }
    }

    /// Bytes of the PDU that has begun, without data of reads.
    fn needed(&self) -> Result<usize, &'static str> {
        let Some(common) = self.header.first_chunk() else { return Ok(pdu::COMMON_BYTES) };
        let common = Common::parse(common);
        let (length, data_at) = (common.length as usize, usize::from(common.data_at));
        match common.kind {
            kind::C2H_DATA if data_at >= SHORT_BYTES && length >= data_at => Ok(data_at),
            kind::RESPONSE | kind::R2T if length == SHORT_BYTES => Ok(length),
            kind::C2H_TERM => Err("the controller ends the connection: it found a mistake in the protocol"),
            _ => Err("a PDU does not begin as PDUs do"),
        }
    }

    fn pdu<K: Known>(
        &mut self,
        header: &[u8],
        known: &mut K,
        done: &mut impl FnMut(&mut K, Reply),
    ) -> Result<(), &'static str> {
        let common = Common::parse(header.first_chunk().expect("a header was collected"));
        if common.kind == kind::RESPONSE {
            let cqe = Cqe::parse(header[pdu::COMMON_BYTES..].try_into().expect("its length was checked"));
            let message = self.release(cqe.cid).ok_or("a completion answers no command")?;
            done(
                known,
                if cqe.status.is_ok() {
                    Reply::Done(message.cookie)
                } else {
                    Reply::Failed(message.cookie, 5, status_in_words(cqe.status))
                },
            );
            return Ok(());
        }
        let span = Span::parse(header);
        let message = self.slots.get(usize::from(span.cid)).copied().flatten().ok_or("data for no command")?;
        let fits = span.offset.checked_add(span.length).is_some_and(|end| end <= message.length);
        if common.kind == kind::R2T {
            if message.kind != 1 || !fits {
                return Err("the controller asks for data that there are not");
            }
            self.wanted.push_back(Wanted { span, offset: message.offset + u64::from(span.offset) });
            return Ok(());
        }
        let length = u64::from(common.length) - u64::from(common.data_at);
        if length != u64::from(span.length) || !known.brought(message.cookie, length) {
            return Err("a reply brings more than was asked for");
        }
        self.data_left = length;
        self.then = (common.flags & flag::SUCCESS != 0).then_some(span.cid);
        Ok(())
    }

    fn release(&mut self, cid: u16) -> Option<Message> {
        let message = self.slots.get_mut(usize::from(cid))?.take()?;
        self.free.push(cid);
        Some(message)
    }
}

/// A status in words, for those that people meet; else its numbers.
fn status_in_words(status: Status) -> String {
    let words = match status.parts() {
        (0, 0x05) => "the drive lost its power",
        (0, 0x20) => "the namespace is write protected",
        (0, 0x80) => "out of the range of blocks",
        (2, 0x80) => "write fault",
        (2, 0x81) => "unrecovered read error",
        (kind, code) => return format!("NVMe status {kind:x}h/{code:02x}h"),
    };
    words.to_owned()
}

/// A connection while it greets.
struct Talk {
    stream: Stream,
    cid: u16,
    until: Instant,
}

const NO_TARGET: &str = "is it a target of NVMe/TCP?";

impl Talk {
    fn open(uri: &Uri) -> Result<(Self, u32), Broken> {
        let stream = connect(uri.address())?;
        let mut talk = Self { stream, cid: 0, until: Instant::now() + PATIENCE };
        let mut out = Vec::new();
        pdu::put_connection(&mut out, kind::IC_REQ, 0, 0, 0);
        (&talk.stream).write_all(&out)?;
        let mut reply = [0; pdu::CONNECTION_BYTES];
        talk.fill(&mut reply)?;
        if reply[0] != kind::IC_RESP || reply[2] != 128 || u16_at(&reply, 8) != 0 || reply[11] != 0 {
            return said("found a server that does not greet as NVMe/TCP does", NO_TARGET);
        }
        match u32_at(&reply, 12) {
            most @ 4096.. => Ok((talk, most - most % 4096)),
            most => Err(Broken::Said(format!("found MAXH2CDATA {most}, expected 4,096 or more"), "")),
        }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Broken> {
        Ok(fill(&self.stream, self.until, bytes)?)
    }

    /// Sends a command with data in its capsule, and returns its completion and data.
    fn ask(&mut self, mut command: Sqe, data: &[u8], wanted: usize) -> Result<(Cqe, Vec<u8>), Broken> {
        self.cid += 1;
        put(&mut command.0, 2, &self.cid.to_le_bytes());
        let kind = if data.is_empty() { Sgl::TRANSPORT } else { Sgl::IN_CAPSULE };
        set_sgl(&mut command, data.len().max(wanted), kind);
        let mut out = Vec::new();
        Format::default().put_command(&mut out, &command, data);
        (&self.stream).write_all(&out)?;
        let mut found = Vec::new();
        loop {
            let mut head = [0; pdu::COMMON_BYTES];
            self.fill(&mut head)?;
            let common = Common::parse(&head);
            let length = common.length as usize;
            if !(SHORT_BYTES..=GREETING_MAX).contains(&length) {
                return said("the server breaks the protocol in the greeting", NO_TARGET);
            }
            let mut all = vec![0; length];
            put(&mut all, 0, &head);
            self.fill(&mut all[pdu::COMMON_BYTES..])?;
            match common.kind {
                pdu::kind::C2H_DATA => {
                    found.extend_from_slice(all.get(usize::from(common.data_at)..).unwrap_or_default());
                    if found.len() > wanted {
                        return said("the controller answers with more than was asked for", NO_TARGET);
                    }
                    if common.flags & flag::SUCCESS != 0 {
                        return Ok((Cqe::default(), found));
                    }
                }
                pdu::kind::RESPONSE => {
                    let cqe = Cqe::parse(all[8..24].try_into().expect("16 bytes were cut"));
                    return Ok((cqe, found));
                }
                _ => return said("the server breaks the protocol in the greeting", NO_TARGET),
            }
        }
    }

    /// The same for a command that has to succeed.
    fn get(&mut self, what: &str, command: Sqe, data: &[u8], wanted: usize) -> Result<(u64, Vec<u8>), Broken> {
        let (cqe, found) = self.ask(command, data, wanted)?;
        if !cqe.status.is_ok() {
            let why = format!("the controller refuses {what}: {}", status_in_words(cqe.status));
            let hint = if what == "to connect" { "is it the name of a subsystem there?" } else { "" };
            return Err(Broken::Said(why, hint));
        }
        if found.len() < wanted {
            return Err(Broken::Said(format!("the controller answers {what} with {} bytes", found.len()), ""));
        }
        Ok((cqe.result, found))
    }

    fn connect(&mut self, nqn: &str, controller: u16, queue: u16, size: u16) -> Result<u16, Broken> {
        let mut command = sqe(fabrics::OPCODE, u32::from(fabrics::kind::CONNECT), 0);
        put(&mut command.0, 42, &queue.to_le_bytes());
        put(&mut command.0, 44, &(size - 1).to_le_bytes());
        let mut data = vec![0; fabrics::CONNECT_BYTES];
        // One host for every process: a target that remembers hosts remembers one.
        let host = "nqn.2014-08.org.nvmexpress:uuid:6f1c1c60-0f2e-8b5c-9d2a-5ad1f1a5f0b7";
        data[..16].copy_from_slice(b"flashwright-host");
        put(&mut data, 16, &controller.to_le_bytes());
        put(&mut data, 256, &nqn.as_bytes()[..nqn.len().min(255)]);
        put(&mut data, 512, host.as_bytes());
        self.get("to connect", command, &data, 0).map(|(result, _)| (result & 0xffff) as u16)
    }

    fn enable(&mut self) -> Result<(), Broken> {
        let mut command = sqe(fabrics::OPCODE, u32::from(fabrics::kind::PROPERTY_SET), 0);
        put(&mut command.0, 44, &0x14u32.to_le_bytes());
        put(&mut command.0, 48, &ENABLE.to_le_bytes());
        self.get("to be enabled", command, &[], 0)?;
        for _ in 0..100 {
            let mut command = sqe(fabrics::OPCODE, u32::from(fabrics::kind::PROPERTY_GET), 0);
            put(&mut command.0, 44, &0x1cu32.to_le_bytes());
            if self.get("its state", command, &[], 0)?.0 & 1 != 0 {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        said("the controller is not ready after 5 s", "")
    }

    fn identify(&mut self, structure: u32, nsid: u32) -> Result<Vec<u8>, Broken> {
        let mut command = sqe(opcode::IDENTIFY, nsid, 0);
        put(&mut command.0, 40, &structure.to_le_bytes());
        self.get("to identify itself", command, &[], 4096).map(|(_, data)| data)
    }
}

/// The subsystem at an address that names none, from its discovery service.
fn discovered(uri: &Uri) -> Result<String, Broken> {
    let (mut talk, _) = Talk::open(uri)?;
    talk.connect(DISCOVERY_NQN, fabrics::ANY_CONTROLLER, 0, ADMIN_SIZE)?;
    talk.enable()?;
    let mut command = sqe(opcode::GET_LOG_PAGE, 0, 0);
    put(&mut command.0, 40, &(0x70u32 | (2048 / 4 - 1) << 16).to_le_bytes());
    let (_, log) = talk.get("its discovery log", command, &[], 2048)?;
    if u64_at(&log, 8) == 0 {
        return said("the discovery service knows no subsystem", "name one: nvme+tcp://HOST:PORT/NQN");
    }
    let name: Vec<u8> = log[1024 + 256..1024 + 512].iter().copied().take_while(|byte| *byte != 0).collect();
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// The placement identifiers of a namespace, in an endurance group: none where data are not placed.
fn identifiers(
    admin: &mut Talk,
    io: &mut Talk,
    controller: &[u8],
    (nsid, group): (u32, u16),
) -> Result<Vec<u16>, Broken> {
    /// Flexible data placement among the attributes of a controller.
    const PLACES_DATA: u32 = 1 << 19;
    const HEADER: usize = 16;
    const UNIT: usize = 32;
    if u32_at(controller, 96) & PLACES_DATA == 0 {
        return Ok(Vec::new());
    }
    let mut is_on = sqe(opcode::GET_FEATURES, 0, 0);
    put(&mut is_on.0, 40, &0x1du32.to_le_bytes());
    put(&mut is_on.0, 44, &u32::from(group).to_le_bytes());
    if admin.get("whether it places data", is_on, &[], 0)?.0 & 1 == 0 {
        return Ok(Vec::new());
    }
    let mut ask = |count: usize| {
        let wanted = HEADER + UNIT * count;
        let mut units = sqe(opcode::IO_MANAGEMENT_RECEIVE, nsid, 0);
        put(&mut units.0, 40, &1u32.to_le_bytes());
        put(
            &mut units.0,
            44,
            &u32::try_from(wanted / 4 - 1).expect("identifiers are counted in 16 bits").to_le_bytes(),
        );
        io.get("its reclaim units", units, &[], wanted).map(|(_, found)| found)
    };
    let few = usize::from(placement::IDENTIFIERS_MAX);
    let mut found = ask(few)?;
    let count = usize::from(u16_at(&found, 14));
    if count > few {
        found = ask(count)?; // of several groups
    }
    let units = found[HEADER..].chunks_exact(UNIT).take(count);
    Ok(units.map(|unit| u16_at(unit, 0)).collect())
}

/// Connects to a subsystem, and to an I/O queue of its first namespace.
///
/// # Errors
/// [`Refused`]: one line.
pub fn hello(uri: &Uri) -> Result<(Stream, Terms, Queue), Refused> {
    greet(uri).map_err(|why| match why {
        Broken::Io(error) => {
            Refused { what: format!("{uri}: the greeting failed: {}", in_words(&error)), hint: NO_TARGET }
        }
        Broken::Said(why, hint) => Refused { what: format!("{uri}: {why}"), hint },
    })
}

fn greet(uri: &Uri) -> Result<(Stream, Terms, Queue), Broken> {
    let nqn = if uri.export().is_empty() { discovered(uri)? } else { uri.export().to_owned() };
    let (mut admin, _) = Talk::open(uri)?;
    let controller = admin.connect(&nqn, fabrics::ANY_CONTROLLER, 0, ADMIN_SIZE)?;
    let mut capabilities = sqe(fabrics::OPCODE, u32::from(fabrics::kind::PROPERTY_GET), 0);
    capabilities.0[40] = 1;
    let (capabilities, _) = admin.get("its capabilities", capabilities, &[], 0)?;
    admin.enable()?;
    let facts = admin.identify(0x01, 0)?;
    let nsid = u32_at(&admin.identify(0x02, 0)?, 0);
    if nsid == 0 {
        let has_others = capabilities >> 43 & 1 == 1;
        let hint = if has_others {
            "namespaces of other command sets than NVM, such as those with zones, are not used"
        } else {
            ""
        };
        return said("found a subsystem without a namespace", hint);
    }
    let namespace = admin.identify(0x00, nsid)?;
    let format = usize::from(namespace[26] & 0xf | namespace[26] >> 1 & 0x30);
    let (metadata, block_shift) = (u16_at(&namespace, 128 + 4 * format), namespace[128 + 4 * format + 2]);
    if metadata != 0 || !(9..=16).contains(&block_shift) {
        return said("found blocks with metadata or of an unusual size, expected 512 B to 64 KiB", "format it anew");
    }
    let mut queues = sqe(opcode::SET_FEATURES, 0, 0);
    put(&mut queues.0, 40, &7u32.to_le_bytes());
    admin.get("a queue", queues, &[], 0)?;
    let size = (capabilities & 0xffff).saturating_add(1).min(QUEUE_SIZE);
    let size = u16::try_from(size).expect("256 at most").max(2);
    let (mut io, data_max) = Talk::open(uri)?;
    io.connect(&nqn, controller, 1, size)?;
    let identifiers = identifiers(&mut admin, &mut io, &facts, (nsid, u16_at(&namespace, 102)))?;
    let optional = u16_at(&facts, 520);
    let has = |bit: u16, flag: u16| if optional & 1 << bit != 0 { flag } else { 0 };
    let largest = match facts[77] {
        0 => TRANSFER_MAX,
        power => (HOST_PAGE as u64).checked_shl(u32::from(power)).unwrap_or(TRANSFER_MAX).min(TRANSFER_MAX),
    };
    let terms = sensible(Terms {
        bytes: u64_at(&namespace, 0).saturating_mul(1 << block_shift),
        flags: export::SEND_FLUSH | export::SEND_FUA | has(2, export::SEND_TRIM),
        minimum: 1 << block_shift,
        maximum: u32::try_from(largest).expect("a MiB at most"),
        structured: false,
    })?;
    let in_capsule = (u32_at(&facts, 1792) as usize * 16).saturating_sub(SQE_BYTES);
    // A queue of some size takes one command less.
    let places = usize::from(size) - 1;
    let queue = Queue {
        nsid,
        block_shift,
        identifiers: Identifiers::of(&identifiers),
        in_capsule,
        data_max,
        slots: vec![None; places],
        free: (0..size - 1).rev().collect(),
        waiting: VecDeque::new(),
        header: Vec::new(),
        data_left: 0,
        then: None,
        wanted: VecDeque::new(),
        _admin: admin.stream,
    };
    io.stream.set_timeout(None)?;
    io.stream.set_nonblocking(true)?;
    Ok((io.stream, terms, queue))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::{Rng, Seed, below, chance};
    use flashwright_nvme::wire::pdu::COMMON_BYTES;
    use std::collections::BTreeMap;
    use std::os::unix::net::UnixStream;

    const PLACES: u16 = 7;

    /// A queue whose controller is the test.
    fn queue(identifiers: &[u16]) -> Queue {
        Queue {
            nsid: 1,
            block_shift: 9,
            identifiers: Identifiers::of(identifiers),
            in_capsule: 8192,
            data_max: 4096,
            slots: vec![None; PLACES.into()],
            free: (0..PLACES).rev().collect(),
            waiting: VecDeque::new(),
            header: Vec::new(),
            data_left: 0,
            then: None,
            wanted: VecDeque::new(),
            _admin: Stream::Unix(UnixStream::pair().expect("a pair of sockets").0),
        }
    }

    struct All;

    impl Known for All {
        fn expects(&self, _: u64) -> Option<u64> {
            None
        }
        fn brought(&mut self, _: u64, _: u64) -> bool {
            true
        }
    }

    /// The commands in what was sent.
    fn commands(mut sent: &[u8]) -> Vec<Sqe> {
        let mut found = Vec::new();
        while let Some(common) = sent.first_chunk::<COMMON_BYTES>() {
            let common = Common::parse(common);
            assert_eq!(common.kind, kind::COMMAND);
            found.push(Sqe(sent[COMMON_BYTES..COMMON_BYTES + SQE_BYTES].try_into().unwrap()));
            sent = &sent[common.length as usize..];
        }
        found
    }

    /// The answer to a command: its completion, or the data of a read that tell.
    fn answer(command: &Sqe, tells: bool, status: Status) -> Vec<u8> {
        let mut out = Vec::new();
        let (cid, length) = (command.cid(), command.sgl().length);
        let is_read = command.opcode() == opcode::READ;
        if is_read {
            let flags = flag::LAST | if tells { flag::SUCCESS } else { 0 };
            let span = Span { cid, tag: 0, offset: 0, length };
            Format::default().put_data_header(&mut out, kind::C2H_DATA, flags, span);
            out.resize(out.len() + length as usize, 7);
        }
        if !(is_read && tells) {
            let cqe = Cqe { cid, status, ..Cqe::default() };
            let fill = |header: &mut [u8]| put(header, COMMON_BYTES, &cqe.bytes());
            Format::default().put_header(&mut out, kind::RESPONSE, 0, fill, SHORT_BYTES);
        }
        out
    }

    #[test]
    fn no_identifier_is_used_again_before_its_command_has_ended() {
        let (mut queue, mut random): (_, Rng) = (queue(&[]), Seed(1).stream("identifiers"));
        // The naive model: commands at the controller by identifier, and messages in the order in which they came.
        let mut there: BTreeMap<u16, (u64, Sqe)> = BTreeMap::new();
        let (mut asked, mut sent, mut ended) = (0, 0, Vec::new());
        let mut full = 0;
        let fill = &mut |_: u64, _: &mut [u8]| {};
        for _ in 0..20_000 {
            let mut out = Vec::new();
            if chance(&mut random, 0.55) {
                let kind = [0, 1, 3, 4][below(&mut random, 4) as usize];
                let length = if kind == 3 { 0 } else { 512 << below(&mut random, 4) };
                let offset = below(&mut random, 1000) * 512;
                let message = Message { cookie: asked, kind, is_durable: false, offset, length, stream: 0 };
                queue.push(&mut out, message, fill);
                asked += 1;
            } else if let Some(cid) = there.keys().nth(below(&mut random, there.len().max(1) as u64) as usize).copied()
            {
                let (cookie, command) = there.remove(&cid).unwrap();
                let (tells, fails) = (chance(&mut random, 0.5), chance(&mut random, 0.1));
                let status = if fails { Status::WRITE_FAULT } else { Status::SUCCESS };
                let answer = answer(&command, tells, status);
                let mut replies = Vec::new();
                for part in answer.chunks(1 + below(&mut random, 600) as usize) {
                    queue.take(part, &mut All, |_, reply| replies.push(reply)).unwrap();
                }
                // Data that tell end their command once what follows them has begun.
                queue.take(&[], &mut All, |_, reply| replies.push(reply)).unwrap();
                assert_eq!(replies.len(), 1);
                assert!(matches!(&replies[0], Reply::Done(found) | Reply::Failed(found, ..) if *found == cookie));
                ended.push(cookie);
                queue.advance(&mut out, fill);
            }
            for command in commands(&out) {
                assert!(command.cid() < PLACES);
                // Messages go out in the order in which they came.
                let before = there.insert(command.cid(), (sent, command));
                assert!(before.is_none(), "{} is in use by message {before:?}", command.cid());
                sent += 1;
            }
            assert_eq!(sent + queue.waiting.len() as u64, asked);
            assert!(queue.waiting.is_empty() || there.len() == usize::from(PLACES), "a message waits for nothing");
            full += u32::from(!queue.waiting.is_empty());
        }
        assert!(full > 1000 && ended.len() > 5000, "{full} times full, {} ended", ended.len());
        ended.sort_unstable();
        ended.dedup();
        assert_eq!(ended.len() + there.len(), usize::try_from(sent).unwrap(), "each ends once");
        let cid = (0..PLACES).find(|cid| !there.contains_key(cid));
        let unknown = answer(&sqe(opcode::FLUSH, 1, cid.unwrap_or(PLACES)), false, Status::SUCCESS);
        assert!(queue.take(&unknown, &mut All, |_, _| {}).is_err(), "no command has this identifier");
    }

    #[test]
    fn a_write_names_its_stream_where_the_drive_has_it() {
        let all = [0, 1, 2, 63, 64, 0x8000, 0x8001, u16::MAX];
        let mut queue = queue(&all);
        for stream in 0..=u16::MAX {
            let is_there = all.contains(&stream);
            assert_eq!(queue.identifiers.has(stream), is_there, "{stream}");
            if is_there || stream % 1000 == 3 {
                let message = Message { cookie: 1, kind: 1, is_durable: false, offset: 0, length: 512, stream };
                let mut out = Vec::new();
                queue.push(&mut out, message, &mut |_, _| {});
                let command = commands(&out)[0];
                let (directive, identifier) = (command.dword(12) >> 20 & 0xf, command.dword(13) >> 16);
                let named = if is_there && stream > 0 { (2, u32::from(stream)) } else { (0, 0) };
                assert_eq!((directive, identifier), named, "{stream}");
                queue.take(&answer(&command, false, Status::SUCCESS), &mut All, |_, _| {}).unwrap();
            }
        }
        assert!(!Identifiers::default().has(0) && !Identifiers::of(&[]).has(u16::MAX));
    }
}
