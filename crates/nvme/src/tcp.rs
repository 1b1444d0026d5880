//! NVMe/TCP: a connection, which serves one queue, without its socket.
//!
//! ```text
//!   bytes ─► Reader::feed ─┬─► Ready: what the drive is asked ─► … ─► Writer::data, Writer::ended ─► bytes
//!                          └─► Writer: answers, and R2Ts that ask for the data of a command
//! ```
//!
//! The two halves are apart so that a command that is begun can end others, whose answers the writer takes.
//!
//! Data of a command are in its capsule, or the controller asks for them with an R2T. It asks for no more than
//! [`TRANSFER_WINDOW`] at once, one command in any case; commands beyond wait in order.

use crate::commands::{Outcome, TRANSFER_MAX};
use crate::fabrics::{self, Answer, Queue};
pub use crate::flights::Ready;
use crate::flights::{Flights, Open, Over};
use crate::subsystem::{IN_CAPSULE_BYTES, Media, Subsystem};
use crate::wire::identify::AERL;
use crate::wire::pdu::{
    self, COMMAND_BYTES, COMMON_BYTES, CONNECTION_BYTES, Common, DIGEST_BYTES, Fatal, Format, SHORT_BYTES, Span, flag,
    kind,
};
use crate::wire::{Cqe, Sgl, Sqe, Status, put, u16_at, u32_at};
use std::collections::VecDeque;

/// Bytes of data that a connection has asked for, or has and has not begun.
pub const TRANSFER_WINDOW: usize = 4 << 20;
/// Bytes of a PDU with data from the host (MAXH2CDATA).
pub const DATA_MAX: u32 = 256 << 10;
/// Requests for the drive that wait before further commands are read.
const READY_MAX: usize = 256;
/// Padding before the data of a PDU.
const PADDING_MAX: usize = 128;

/// A command whose data come by R2T.
#[derive(Debug)]
struct Transfer {
    tag: u16,
    sqe: Sqe,
    data: Vec<u8>,
    received: usize,
    /// A digest of a part was wrong.
    is_damaged: bool,
}

/// The side from which bytes come.
#[derive(Debug)]
pub struct Reader {
    is_open: bool,
    queue: Option<Queue>,
    /// Requests for the drive, in order.
    pub ready: VecDeque<Ready>,
    /// Commands whose data have not been asked for.
    waiting: VecDeque<Sqe>,
    transfers: Vec<Transfer>,
    next_tag: u16,
    /// Bytes of data of [`Self::transfers`] and [`Self::ready`].
    window: usize,
    /// Bytes of the PDU that is not whole yet.
    message: usize,
    is_broken: bool,
}

/// The side to which bytes go.
#[derive(Debug, Default)]
pub struct Writer {
    /// What is to be sent.
    pub out: Vec<u8>,
    /// Nothing more is to be sent.
    is_closed: bool,
    format: Format,
    queue: Option<Queue>,
    head: u16,
    open: Open,
    flights: Flights<()>,
    /// What follows on requests that have ended, and has not gone to [`Reader::ready`].
    next: Vec<Ready>,
    /// For data that nobody takes.
    unwanted: Vec<u8>,
    /// Commands that failed in the drive, for the error log.
    failed: Vec<(Sqe, Status)>,
    /// Where the data of a read begin in [`Self::out`].
    data_at: usize,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            is_open: false,
            queue: None,
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
            transfers: Vec::new(),
            next_tag: 0,
            window: 0,
            message: COMMON_BYTES,
            is_broken: false,
        }
    }
}

/// A PDU breaks the transport: why, and which field.
type Broken = (Fatal, u32);

impl Reader {
    /// The queue that the connection serves, once it does.
    #[must_use]
    pub fn queue(&self) -> Option<&Queue> {
        self.queue.as_ref()
    }

    /// Bytes of the PDU that is not whole yet.
    #[must_use]
    pub fn message(&self) -> usize {
        self.message
    }

    /// Whether the connection is to be ended, once the answers are sent: the transport was broken, or the controller is gone or was reset.
    #[must_use]
    pub fn is_over(&self, subsystem: &Subsystem) -> bool {
        self.is_broken || self.queue.is_some_and(|queue| !subsystem.serves(&queue))
    }

    /// Whether the host broke the transport.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Whether it has something to do that waits for no further bytes: [`Reader::feed`] is to be called again once requests have
    /// ended.
    #[must_use]
    pub fn has_more(&self, writer: &Writer) -> bool {
        !self.is_broken && (!writer.next.is_empty() || writer.flights.gathered() >= TRANSFER_WINDOW)
    }

    /// Takes the next request for the drive, which is begun now.
    pub fn begin(&mut self) -> Option<Ready> {
        let ready = self.ready.pop_front()?;
        self.window -= ready.data.len();
        Some(ready)
    }

    /// Takes whole PDUs from the beginning of `input`, as long as there is room for what they ask. Returns the bytes taken.
    pub fn feed(
        &mut self,
        writer: &mut Writer,
        subsystem: &mut Subsystem,
        media: &mut dyn Media,
        input: &[u8],
    ) -> usize {
        let mut taken = 0;
        if !writer.next.is_empty() && !self.is_broken {
            writer.next.drain(..).for_each(|ready| self.push(ready));
        }
        self.obey_aborts(writer, subsystem);
        while !self.is_broken && self.ready.len() < READY_MAX && writer.flights.gathered() < TRANSFER_WINDOW {
            let rest = &input[taken..];
            let Some(common) = rest.first_chunk::<COMMON_BYTES>() else {
                self.message = COMMON_BYTES;
                break;
            };
            let common = Common::parse(common);
            let step = self.check(&common, &writer.format).and_then(|()| {
                self.message = common.length as usize;
                let Some(bytes) = rest.get(..common.length as usize) else { return Ok(0) };
                self.take(writer, subsystem, media, &common, bytes)?;
                Ok(bytes.len())
            });
            match step {
                Ok(0) => break,
                Ok(bytes) => taken += bytes,
                Err((fatal, field)) => {
                    let header = &rest[..rest.len().min(usize::from(common.header).max(COMMON_BYTES))];
                    pdu::put_termination(&mut writer.out, fatal, field, header);
                    self.end(writer);
                }
            }
        }
        self.ask(writer);
        for (sqe, status) in writer.failed.drain(..) {
            if let Some(queue) = &self.queue {
                subsystem.note_failure(queue.place, &sqe, status);
            }
        }
        self.tell_events(writer, subsystem);
        taken
    }

    /// Ends the connection without a word: what was answered last can't be kept.
    pub fn give_up(&mut self, writer: &mut Writer, answered: usize) {
        writer.out.truncate(answered);
        self.end(writer);
    }

    /// Tells of events, if this connection serves an admin queue.
    pub fn tell_events(&mut self, writer: &mut Writer, subsystem: &mut Subsystem) {
        let Some(queue) = self.queue.filter(|queue| queue.place.queue == 0) else { return };
        let Some(controller) = subsystem.controller_mut(queue.place.controller) else { return };
        while let Some((cid, event)) = controller.next_event() {
            match event {
                Ok(event) => writer.complete(cid, event, Status::SUCCESS),
                Err(status) => writer.complete(cid, 0, status),
            }
        }
    }

    /// Ends commands that their host has asked to abort, if they wait, and says which did.
    pub fn obey_aborts(&mut self, writer: &mut Writer, subsystem: &mut Subsystem) {
        let Some(queue) = self.queue.filter(|queue| queue.place.queue != 0 && subsystem.serves(queue)) else { return };
        let Some(controller) = subsystem.controller_mut(queue.place.controller) else { return };
        while let Some((cid, by)) = controller.next_abort(queue.place.queue) {
            controller.abort_ended(by, self.abort(writer, cid));
        }
    }

    /// Ends a command whose data have not been asked for, or of which the drive has no part. Returns false if there is none.
    fn abort(&mut self, writer: &mut Writer, cid: u16) -> bool {
        if let Some(at) = self.waiting.iter().position(|sqe| sqe.cid() == cid) {
            self.waiting.remove(at);
        } else {
            let flight = writer.flights.find(|flight| flight.sqe.cid() == cid);
            let taken = flight.and_then(|flight| writer.flights.take_back(flight, &mut self.ready));
            let Some((_, bytes)) = taken else { return false };
            self.window -= bytes;
        }
        writer.complete(cid, 0, Status::ABORTED);
        true
    }

    /// What every PDU must keep to, before all of it has come.
    fn check(&self, common: &Common, format: &Format) -> Result<(), Broken> {
        let length = common.length as usize;
        let digest = if format.header_digest && common.kind != kind::IC_REQ { DIGEST_BYTES } else { 0 };
        let (header, most) = match common.kind {
            kind::IC_REQ => (CONNECTION_BYTES, CONNECTION_BYTES),
            // One that ends the connection is taken as it is.
            kind::H2C_TERM => (SHORT_BYTES, SHORT_BYTES + 128),
            kind::COMMAND => (COMMAND_BYTES, COMMAND_BYTES + PADDING_MAX + IN_CAPSULE_BYTES + 2 * DIGEST_BYTES),
            kind::H2C_DATA => (SHORT_BYTES, SHORT_BYTES + PADDING_MAX + DATA_MAX as usize + 2 * DIGEST_BYTES),
            _ => return Err((Fatal::InvalidHeader, 0)),
        };
        if usize::from(common.header) != header {
            return Err((Fatal::InvalidHeader, 2));
        }
        if length < header + digest || length > most {
            return Err((Fatal::InvalidHeader, 4));
        }
        let expects_open = common.kind != kind::IC_REQ;
        if common.kind != kind::H2C_TERM && expects_open != self.is_open {
            return Err((Fatal::Sequence, 0));
        }
        Ok(())
    }

    fn take(
        &mut self,
        writer: &mut Writer,
        subsystem: &mut Subsystem,
        media: &mut dyn Media,
        common: &Common,
        bytes: &[u8],
    ) -> Result<(), Broken> {
        match common.kind {
            kind::IC_REQ => self.open(writer, bytes),
            kind::H2C_TERM => {
                self.end(writer);
                Ok(())
            }
            _ => {
                let header = &bytes[..usize::from(common.header)];
                if writer.format.header_digest && u32_at(bytes, header.len()) != crc32c::crc32c(header) {
                    return Err((Fatal::HeaderDigest, u32_at(bytes, header.len())));
                }
                let (data, is_damaged) = data_of(common, &writer.format, bytes)?;
                if common.kind == kind::COMMAND {
                    let sqe = Sqe(header[COMMON_BYTES..].try_into().expect("its length was checked"));
                    self.command(writer, subsystem, media, sqe, (data, is_damaged))
                } else {
                    self.data(writer, subsystem, media, Span::parse(header), common, (data, is_damaged))
                }
            }
        }
    }

    /// The connection ends: what was not begun never will be, and nothing more is answered.
    fn end(&mut self, writer: &mut Writer) {
        (self.is_broken, writer.is_closed) = (true, true);
        self.ready.clear();
        self.waiting.clear();
        self.transfers.clear();
    }

    /// The first PDU: what both sides can.
    fn open(&mut self, writer: &mut Writer, bytes: &[u8]) -> Result<(), Broken> {
        let (version, alignment, digests) = (u16_at(bytes, 8), bytes[10], bytes[11]);
        if version != 0 {
            return Err((Fatal::Unsupported, 8));
        }
        if alignment > 31 {
            return Err((Fatal::InvalidHeader, 10));
        }
        let digests = digests & 3;
        pdu::put_connection(&mut writer.out, kind::IC_RESP, 0, digests, DATA_MAX);
        writer.format = Format {
            header_digest: digests & 1 != 0,
            data_digest: digests & 2 != 0,
            alignment: (usize::from(alignment) + 1) * 4,
        };
        self.is_open = true;
        Ok(())
    }

    /// A command, with what its capsule brings.
    fn command(
        &mut self,
        writer: &mut Writer,
        subsystem: &mut Subsystem,
        media: &mut dyn Media,
        sqe: Sqe,
        (data, is_damaged): (&[u8], bool),
    ) -> Result<(), Broken> {
        let most = self.queue.map_or(1, |queue| usize::from(queue.size) + usize::from(AERL) + 1);
        if writer.open.count() >= most {
            return Err((Fatal::LimitExceeded, 0));
        }
        writer.fetched();
        if !writer.open.insert(sqe.cid()) {
            writer.answer(sqe.cid(), 0, Status::CID_CONFLICT);
            return Ok(());
        }
        if is_damaged {
            writer.complete(sqe.cid(), 0, Status::TRANSPORT_ERROR);
            return Ok(());
        }
        match placed(&sqe, data) {
            Err(status) => writer.complete(sqe.cid(), 0, status),
            Ok(Some(data)) => self.execute(writer, subsystem, media, &sqe, data.to_vec()),
            Ok(None) => self.waiting.push_back(sqe),
        }
        Ok(())
    }

    /// Asks for the data of commands, as far as the window goes.
    fn ask(&mut self, writer: &mut Writer) {
        while let Some(sqe) = self.waiting.front() {
            let length = sqe.sgl().length;
            if self.window > 0 && self.window + length as usize > TRANSFER_WINDOW {
                return;
            }
            let sqe = self.waiting.pop_front().expect("there is a front");
            self.window += length as usize;
            while self.transfers.iter().any(|transfer| transfer.tag == self.next_tag) {
                self.next_tag = self.next_tag.wrapping_add(1);
            }
            let tag = self.next_tag;
            self.next_tag = tag.wrapping_add(1);
            pdu::put_r2t(&mut writer.out, &writer.format, Span { cid: sqe.cid(), tag, offset: 0, length });
            let data = vec![0; length as usize];
            self.transfers.push(Transfer { tag, sqe, data, received: 0, is_damaged: false });
        }
    }

    /// Data of a command, which was asked for.
    fn data(
        &mut self,
        writer: &mut Writer,
        subsystem: &mut Subsystem,
        media: &mut dyn Media,
        span: Span,
        common: &Common,
        (data, is_damaged): (&[u8], bool),
    ) -> Result<(), Broken> {
        let of_command = |transfer: &Transfer| transfer.tag == span.tag && transfer.sqe.cid() == span.cid;
        let at = self.transfers.iter().position(of_command).ok_or((Fatal::InvalidHeader, 10))?;
        let transfer = &mut self.transfers[at];
        if span.offset as usize != transfer.received {
            return Err((Fatal::OutOfRange, 12));
        }
        if span.length as usize != data.len() || transfer.received + data.len() > transfer.data.len() {
            return Err((Fatal::OutOfRange, 16));
        }
        put(&mut transfer.data, transfer.received, data);
        transfer.received += data.len();
        transfer.is_damaged |= is_damaged;
        let is_whole = transfer.received == transfer.data.len();
        if is_whole != (common.flags & flag::LAST != 0) {
            return Err((Fatal::InvalidHeader, 1));
        }
        if is_whole {
            let Transfer { sqe, data, is_damaged, .. } = self.transfers.swap_remove(at);
            self.window -= data.len();
            if is_damaged {
                writer.complete(sqe.cid(), 0, Status::TRANSPORT_ERROR);
            } else {
                self.execute(writer, subsystem, media, &sqe, data);
            }
        }
        Ok(())
    }

    fn execute(
        &mut self,
        writer: &mut Writer,
        subsystem: &mut Subsystem,
        media: &mut dyn Media,
        sqe: &Sqe,
        data: Vec<u8>,
    ) {
        let cid = sqe.cid();
        if sqe.opcode() == fabrics::OPCODE {
            match fabrics::execute(subsystem, self.queue.as_ref(), sqe, &data) {
                Ok(Answer::Result(result)) => writer.complete(cid, result, Status::SUCCESS),
                Ok(Answer::Connected(queue)) => {
                    (self.queue, writer.queue) = (Some(queue), Some(queue));
                    writer.complete(cid, u64::from(queue.place.controller), Status::SUCCESS);
                }
                Err((status, result)) => writer.complete(cid, result, status),
            }
            return;
        }
        let Some(queue) = self.queue.filter(|queue| subsystem.serves(queue)) else {
            return writer.complete(cid, 0, Status::SEQUENCE);
        };
        match subsystem.execute(queue.place, sqe, &data, media) {
            Err(status) => writer.complete(cid, 0, status),
            Ok(Outcome::Held) => {}
            Ok(Outcome::Queues(_)) => unreachable!("only a function on PCIe has commands that change its queues"),
            Ok(Outcome::Done(result, data)) => writer.complete_with(cid, result, &data),
            Ok(asks) => {
                if !writer.flights.begin(sqe, asks, data, (), |ready| self.push(ready)) {
                    writer.complete(cid, 0, Status::SUCCESS);
                }
            }
        }
    }

    fn push(&mut self, ready: Ready) {
        self.window += ready.data.len();
        self.ready.push_back(ready);
    }
}

/// The data of a PDU, and whether their digest is wrong.
fn data_of<'a>(common: &Common, format: &Format, bytes: &'a [u8]) -> Result<(&'a [u8], bool), Broken> {
    let header_end = usize::from(common.header) + if format.header_digest { DIGEST_BYTES } else { 0 };
    if bytes.len() == header_end {
        return Ok((&[], false));
    }
    // The host was told that any multiple of four will do.
    let begins = usize::from(common.data_at);
    if begins < header_end || begins > bytes.len() || !begins.is_multiple_of(4) {
        return Err((Fatal::InvalidHeader, 3));
    }
    let digest = if format.data_digest { DIGEST_BYTES } else { 0 };
    let end = bytes.len().checked_sub(digest).filter(|end| *end > begins).ok_or((Fatal::InvalidHeader, 4))?;
    let data = &bytes[begins..end];
    Ok((data, format.data_digest && u32_at(bytes, end) != crc32c::crc32c(data)))
}

/// The data of a command, if they are there; none if they have to be asked for.
fn placed<'a>(sqe: &Sqe, capsule: &'a [u8]) -> Result<Option<&'a [u8]>, Status> {
    let sgl = sqe.sgl();
    let is_connect = sqe.opcode() == fabrics::OPCODE;
    let comes = if is_connect { sqe.0[4] == fabrics::kind::CONNECT } else { sqe.opcode() & 3 == 1 };
    if sqe.psdt() != 1 {
        return Err(Status::INVALID_FIELD);
    }
    if !comes || sgl.length == 0 {
        return Ok(Some(&[]));
    }
    match sgl.kind {
        Sgl::IN_CAPSULE => {
            let begins = usize::try_from(sgl.address).map_err(|_| Status::SGL_OFFSET)?;
            let end = begins.checked_add(sgl.length as usize).ok_or(Status::SGL_OFFSET)?;
            capsule.get(begins..end).map(Some).ok_or(Status::SGL_OFFSET)
        }
        Sgl::TRANSPORT if is_connect => Err(Status::SGL_TYPE),
        Sgl::TRANSPORT if sgl.length as usize > TRANSFER_MAX => Err(Status::INVALID_FIELD),
        Sgl::TRANSPORT => Ok(None),
        _ => Err(Status::SGL_TYPE),
    }
}

impl Writer {
    /// A command was taken from the submission queue.
    fn fetched(&mut self) {
        let size = self.queue.map_or(u16::MAX, |queue| queue.size);
        self.head = if self.head + 1 >= size { 0 } else { self.head + 1 };
    }

    /// Answers a command and forgets it.
    pub fn complete(&mut self, cid: u16, result: u64, status: Status) {
        self.open.remove(cid);
        self.answer(cid, result, status);
    }

    fn answer(&mut self, cid: u16, result: u64, status: Status) {
        if self.is_closed {
            return;
        }
        let has_flow_control = self.queue.is_none_or(|queue| queue.has_flow_control);
        let sq_head = if has_flow_control { self.head } else { u16::MAX };
        // NVMe/TCP reserves the queue's number.
        let cqe = Cqe { result, sq_head, queue: 0, cid, status };
        let fill = |header: &mut [u8]| put(header, COMMON_BYTES, &cqe.bytes());
        self.format.put_header(&mut self.out, kind::RESPONSE, 0, fill, SHORT_BYTES);
    }

    /// Answers a command with data.
    fn complete_with(&mut self, cid: u16, result: u64, data: &[u8]) {
        if !data.is_empty() && !self.is_closed {
            self.data_room(cid, data.len(), 0).copy_from_slice(data);
            self.format.put_data_digest(&mut self.out, self.data_at);
        }
        self.complete(cid, result, Status::SUCCESS);
    }

    /// Room for data that go to the host.
    fn data_room(&mut self, cid: u16, length: usize, flags: u8) -> &mut [u8] {
        let span =
            Span { cid, tag: 0, offset: 0, length: u32::try_from(length).expect("transfers have a largest length") };
        self.format.put_data_header(&mut self.out, kind::C2H_DATA, flag::LAST | flags, span);
        self.data_at = self.out.len();
        self.out.resize(self.data_at + length, 0);
        &mut self.out[self.data_at..]
    }

    /// Whether the host gets no completion for a read that succeeds, since its data tell.
    fn data_complete(&self) -> bool {
        self.queue.is_some_and(|queue| !queue.has_flow_control)
    }

    /// Where the data of a read are to be put, which begin at `at` in those of its command. [`Writer::ended`] follows at once.
    pub fn data(&mut self, flight: u32, at: u32, length: usize) -> &mut [u8] {
        if self.is_closed {
            self.unwanted.resize(length, 0);
            return &mut self.unwanted;
        }
        if self.flights.gather(flight, at, length).is_some() {
            return self.flights.gather(flight, at, length).expect("it was there");
        }
        let flags = if self.data_complete() { flag::SUCCESS } else { 0 };
        let cid = self.flights.get(flight).sqe.cid();
        self.data_room(cid, length, flags)
    }

    /// An append of so many bytes went to a place so many bytes behind the start of its zone. [`Writer::ended`] follows.
    pub fn appended(&mut self, flight: u32, behind: u64, bytes: u32) {
        self.flights.appended(flight, behind, bytes);
    }

    /// A request of a command has ended, with a status.
    pub fn ended(&mut self, flight: u32, status: Status) {
        let Self { flights, next, .. } = self;
        let Some(Over { sqe, status, result, data, .. }) = flights.ended(flight, status, |ready| next.push(ready))
        else {
            return;
        };
        let cid = sqe.cid();
        if !status.is_ok() {
            self.complete(cid, 0, status);
            self.failed.push((sqe, status));
        } else if let Some(data) = data {
            self.complete_with(cid, 0, &data);
        } else {
            if sqe.opcode() == crate::commands::READ && !self.is_closed {
                self.format.put_data_digest(&mut self.out, self.data_at);
                if self.data_complete() {
                    return self.open.remove(cid);
                }
            }
            self.complete(cid, result, status);
        }
    }
}
