//! A function: what a host reads and writes of it, and the commands that it fetches.

use super::config::Space;
use super::message::{self, Errno, HEADER_BYTES, Message, TRANSFER_MAX, command, flag};
use super::pointer;
use super::queues::{BURST, Landing, Queues, Wrong};
use super::registers::{self, BAR_BYTES, DOORBELLS, PENDING_BITS, VECTOR_TABLE, at, config, status};
use super::{Change, Host, Map, TRANSFER_WINDOW, VECTORS};
use crate::commands::{self, Io, Outcome};
use crate::flights::Ready;
use crate::subsystem::{Media, Place, Subsystem};
use crate::wire::{HOST_PAGE, SQE_BYTES, Sgl, Sqe, Status, put, u32_at, u64_at};
use std::collections::VecDeque;

/// Requests for the drive that wait before further commands are fetched.
const READY_MAX: usize = 256;
/// Bytes of answers that wait to be sent before further messages are taken: a short message may ask for many.
const ANSWERS_MAX: usize = 1 << 20;

/// Regions of a function, by their numbers; the others are empty.
mod region {
    pub const BAR: u32 = 0;
    pub const CONFIG: u32 = 7;
    pub const COUNT: u32 = 9;
    pub const READ: u32 = 1;
    pub const WRITE: u32 = 1 << 1;
}

/// Kinds of interrupts, by their numbers; the others have none.
mod interrupts {
    pub const MSIX: u32 = 2;
    pub const COUNT: u32 = 5;
    /// Tied to descriptors; their number is fixed.
    pub const FLAGS: u32 = 1 | 1 << 3;
}

/// What a device is: it can be reset, and is one of PCI.
const DEVICE_FLAGS: u32 = 1 | 1 << 1;
/// A map may be written.
const MAP_WRITABLE: u32 = 1 << 1;
/// All maps are taken back.
const UNMAP_ALL: u32 = 1 << 1;

/// A function, whose queues are in [`Queues`].
#[derive(Debug)]
pub struct Function {
    /// Requests for the drive, in order.
    pub ready: VecDeque<Ready>,
    space: Space,
    /// Its controller.
    place: Place,
    /// AQA, ASQ and ACQ.
    admin: [u64; 3],
    /// Bytes of data of [`Self::ready`].
    window: usize,
    /// The queue whose turn it is, in their list.
    turn: usize,
    /// Whether versions were told.
    is_open: bool,
    is_broken: bool,
    /// Whether messages wait until answers were sent.
    is_held: bool,
    /// Bytes of the message that is not whole yet.
    message: usize,
}

impl Function {
    /// Of a host that has just connected, which gets a controller.
    ///
    /// # Errors
    /// If there are too many controllers.
    pub fn new(subsystem: &mut Subsystem) -> Result<Self, Status> {
        let id = subsystem.admit_function()?;
        Ok(Self {
            ready: VecDeque::new(),
            space: Space::default(),
            place: Place { controller: id, queue: 0 },
            admin: [0; 3],
            window: 0,
            turn: 0,
            is_open: false,
            is_broken: false,
            is_held: false,
            message: HEADER_BYTES,
        })
    }

    /// Bytes of the message that is not whole yet.
    #[must_use]
    pub fn message(&self) -> usize {
        self.message
    }

    /// Whether the host has told its version, before which it gets nothing.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether messages wait until answers were sent.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Whether the host broke the protocol, and the connection is to be ended.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Takes the next request for the drive, which is begun now.
    pub fn begin(&mut self) -> Option<Ready> {
        let ready = self.ready.pop_front()?;
        self.window -= ready.data.len();
        Some(ready)
    }

    /// Ends the connection without a word: what was answered last can't be kept.
    pub fn give_up<H: Host>(&mut self, queues: &mut Queues<H>) {
        self.is_broken = true;
        self.stop(queues);
    }

    fn has_room<H>(&self, queues: &Queues<H>) -> bool {
        self.ready.len() < READY_MAX && self.window + queues.flights.gathered() < TRANSFER_WINDOW
    }

    /// Whether it has something to do that waits for no message: [`Function::feed`] is to be called again once requests have ended.
    #[must_use]
    pub fn has_more<H>(&self, queues: &Queues<H>) -> bool {
        !queues.next.is_empty() || queues.flights.gathered() >= TRANSFER_WINDOW
    }

    /// Takes whole messages from the beginning of `input`, as long as there is room for what they ask, and fetches commands.
    /// Returns the bytes taken.
    pub fn feed<H: Host>(
        &mut self,
        queues: &mut Queues<H>,
        subsystem: &mut Subsystem,
        media: &mut dyn Media,
        input: &[u8],
    ) -> usize {
        let mut taken = 0;
        while !self.is_broken {
            self.is_held = queues.out.len() >= ANSWERS_MAX;
            if self.is_held {
                break;
            }
            let rest = &input[taken..];
            let Some(header) = rest.first_chunk::<HEADER_BYTES>() else {
                self.message = HEADER_BYTES;
                break;
            };
            let Some(length) = Message::length(header) else {
                self.is_broken = true;
                break;
            };
            self.message = length;
            let Some(bytes) = rest.get(..length) else { break };
            queues.host.begin_message(length);
            self.take(queues, subsystem, &Message::parse(bytes));
            taken += length;
            if !self.has_room(queues) {
                break; // what is rung is not lost: the queues stay in the host's memory
            }
        }
        self.work(queues, subsystem, media);
        taken
    }

    /// Fetches commands from the queues in turn, as long as there is room for what they ask.
    pub fn work<H: Host>(&mut self, queues: &mut Queues<H>, subsystem: &mut Subsystem, media: &mut dyn Media) {
        for (queue, sqe, status) in std::mem::take(&mut queues.failed) {
            subsystem.note_failure(Place { queue, ..self.place }, &sqe, status);
        }
        if !queues.next.is_empty() {
            queues.next.drain(..).for_each(|ready| self.push(ready));
        }
        let mut entries = [0; BURST * SQE_BYTES];
        let mut idle = 0;
        while queues.is_running() && self.has_room(queues) && idle < queues.active.len() {
            self.turn = if self.turn + 1 < queues.active.len() { self.turn + 1 } else { 0 };
            let queue = queues.active[self.turn];
            if let Err(wrong) = queues.look(queue) {
                self.announce(subsystem, wrong);
            }
            let count = queues.next(queue, &mut entries);
            idle = if count == 0 { idle + 1 } else { 0 };
            for sqe in entries[..count * SQE_BYTES].chunks_exact(SQE_BYTES) {
                self.fetch(queues, subsystem, media, queue, &Sqe(sqe.try_into().expect("an entry was cut")));
                if !self.has_room(queues) {
                    break;
                }
            }
        }
        self.tell_events(queues, subsystem);
    }

    /// Tells of events.
    pub fn tell_events<H: Host>(&mut self, queues: &mut Queues<H>, subsystem: &mut Subsystem) {
        let Some(controller) = subsystem.controller_mut(self.place.controller) else { return };
        while let Some((cid, event)) = controller.next_event() {
            let (result, status) = event.map_or_else(|status| (0, status), |event| (event, Status::SUCCESS));
            queues.complete(0, cid, result, status);
        }
    }

    /// The host has gone, and its controller with it.
    pub fn leave(&self, subsystem: &mut Subsystem) {
        subsystem.retire(self.place.controller);
    }

    /// A doorbell was wrong: an event tells it.
    fn announce(&self, subsystem: &mut Subsystem, wrong: Wrong) {
        if let Some(controller) = subsystem.controller_mut(self.place.controller) {
            controller.announce(0, wrong as u8, 0x01);
        }
    }

    /// Carries out a message.
    fn take<H: Host>(&mut self, queues: &mut Queues<H>, subsystem: &mut Subsystem, message: &Message<'_>) {
        let is_first = message.command == command::VERSION;
        let is_of_major = message.body.first_chunk::<4>().is_some_and(|body| body[..2] == [0, 0]);
        // A version that nobody knows, and answers to what was not asked, end the connection.
        self.is_broken |= message.flags & flag::TYPE != 0 || is_first == self.is_open || is_first && !is_of_major;
        if self.is_broken {
            return message.answer(&mut queues.out, Err(Errno::INVALID));
        }
        self.is_open = true;
        let answer = self.carry_out(queues, subsystem, message);
        message.answer(&mut queues.out, answer);
    }

    fn carry_out<H: Host>(
        &mut self,
        queues: &mut Queues<H>,
        subsystem: &mut Subsystem,
        message: &Message<'_>,
    ) -> Result<Vec<u8>, Errno> {
        let body = message.body;
        let least = match message.command {
            command::VERSION | command::DEVICE_RESET => 0,
            command::DMA_MAP | command::DEVICE_GET_REGION_INFO => 32,
            command::DMA_UNMAP => 24,
            command::DEVICE_GET_INFO | command::DEVICE_GET_IRQ_INFO | command::REGION_READ | command::REGION_WRITE => {
                16
            }
            command::DEVICE_SET_IRQS => 20,
            _ => return Err(Errno::NOT_SUPPORTED),
        };
        if body.len() < least {
            return Err(Errno::INVALID);
        }
        match message.command {
            command::VERSION => return Ok(message::version()),
            command::DMA_MAP => queues.host.map(&map_of(body)?)?,
            command::DMA_UNMAP => return unmap(&mut queues.host, body),
            command::DEVICE_GET_INFO => return Ok(fields([16, DEVICE_FLAGS, region::COUNT, interrupts::COUNT])),
            command::DEVICE_GET_REGION_INFO => return region_info(u32_at(body, 8)),
            command::DEVICE_GET_IRQ_INFO => {
                let index = u32_at(body, 8);
                let (flags, count) = match index {
                    interrupts::MSIX => (interrupts::FLAGS, u32::from(VECTORS)),
                    _ if index < interrupts::COUNT => (0, 0),
                    _ => return Err(Errno::INVALID),
                };
                return Ok(fields([16, flags, index, count]));
            }
            command::DEVICE_SET_IRQS if u32_at(body, 8) == interrupts::MSIX => {
                let (head, data) = body.split_at(least);
                queues.msix.set(&mut queues.host, head, data)?;
            }
            // Of the other kinds there are none, which may be switched off.
            command::DEVICE_SET_IRQS if u32_at(body, 16) > 0 || u32_at(body, 8) >= interrupts::COUNT => {
                return Err(Errno::INVALID);
            }
            command::REGION_READ => {
                let (offset, count) = (u64_at(body, 0), u32_at(body, 12) as usize);
                let mut answer = body[..16].to_vec();
                self.read(queues, subsystem, u32_at(body, 8), offset, count, &mut answer)?;
                return Ok(answer);
            }
            command::REGION_WRITE => {
                let (head, data) = body.split_at(least);
                let data = data.get(..u32_at(head, 12) as usize).ok_or(Errno::INVALID)?;
                self.write(queues, subsystem, u32_at(head, 8), u64_at(head, 0), data)?;
                return Ok(head.to_vec());
            }
            command::DEVICE_RESET => self.reset(queues, subsystem),
            _ => {}
        }
        Ok(Vec::new())
    }

    fn read<H>(
        &self,
        queues: &Queues<H>,
        subsystem: &Subsystem,
        region: u32,
        offset: u64,
        count: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        if count > TRANSFER_MAX {
            return Err(Errno::INVALID);
        }
        let end = offset.checked_add(count as u64).ok_or(Errno::INVALID)?;
        match region {
            region::CONFIG => out.extend(self.space.read(offset, count).ok_or(Errno::INVALID)?),
            region::BAR if end <= BAR_BYTES => {
                out.extend((offset..end).map(|at| {
                    let within = |begins: u64| usize::try_from(at - begins).expect("the BAR is small");
                    match at {
                        PENDING_BITS.. => queues.msix.pending(within(PENDING_BITS)),
                        VECTOR_TABLE.. => queues.msix.table(within(VECTOR_TABLE)),
                        DOORBELLS.. => 0, // they are only written
                        _ => self.register(queues, subsystem, u32::try_from(at & !3).unwrap_or(0)).to_le_bytes()
                            [within(at & !3)],
                    }
                }));
            }
            _ => return Err(Errno::INVALID),
        }
        Ok(())
    }

    /// Four bytes of the registers, at a multiple of four.
    fn register<H>(&self, queues: &Queues<H>, subsystem: &Subsystem, offset: u32) -> u32 {
        let Some(controller) = subsystem.controller(self.place.controller) else { return u32::MAX };
        let whole = |value: u64| (value >> (8 * (offset & 4)) & 0xffff_ffff) as u32;
        let [aqa, asq, acq] = self.admin;
        match offset & !7 {
            at::ASQ => return whole(asq),
            at::ACQ => return whole(acq),
            at::CAP => return whole(controller.property(at::CAP, 8).unwrap_or(0)),
            _ => {}
        }
        let value = controller.property(offset, 4).unwrap_or(0);
        let value = (value & 0xffff_ffff) as u32;
        match offset {
            at::AQA => (aqa & 0xffff_ffff) as u32,
            at::CSTS => {
                let shown =
                    if queues.shutdown.is_some() { value & !status::SHUTDOWN | status::SHUTTING_DOWN } else { value };
                if queues.is_fatal { shown | status::FATAL } else { shown }
            }
            _ => value,
        }
    }

    fn write<H: Host>(
        &mut self,
        queues: &mut Queues<H>,
        subsystem: &mut Subsystem,
        region: u32,
        offset: u64,
        data: &[u8],
    ) -> Result<(), Errno> {
        let end = offset.checked_add(data.len() as u64).ok_or(Errno::INVALID)?;
        match region {
            region::CONFIG => {
                if self.space.write(offset, data).ok_or(Errno::INVALID)? {
                    self.reset(queues, subsystem);
                }
            }
            region::BAR if end <= BAR_BYTES => {
                let within = |begins: u64| usize::try_from(offset - begins).expect("the BAR is small");
                match offset {
                    PENDING_BITS.. => {} // they are only read
                    VECTOR_TABLE.. => queues.msix.set_table(within(VECTOR_TABLE), data),
                    // Registers are written by four bytes or eight.
                    _ if !offset.is_multiple_of(4) || !data.len().is_multiple_of(4) => return Err(Errno::INVALID),
                    _ => {
                        for (at, dword) in (offset..).step_by(4).zip(data.chunks_exact(4)) {
                            self.set(queues, subsystem, at, u32_at(dword, 0));
                        }
                    }
                }
            }
            _ => return Err(Errno::INVALID),
        }
        Ok(())
    }

    /// Writes a register or a doorbell.
    fn set<H: Host>(&mut self, queues: &mut Queues<H>, subsystem: &mut Subsystem, offset: u64, value: u32) {
        if offset >= DOORBELLS {
            if !queues.is_running() {
                return;
            }
            let found = registers::doorbell(offset).ok_or(Wrong::Register);
            let rung = found.and_then(|(queue, is_completion)| queues.ring(queue, is_completion, value));
            if let Err(wrong) = rung {
                self.announce(subsystem, wrong);
            }
            return;
        }
        let offset = u32::try_from(offset).unwrap_or(0);
        let half = |old: u64| {
            let shift = 8 * (offset & 4);
            old & !(0xffff_ffff << shift) | u64::from(value) << shift
        };
        match offset & !7 {
            at::ASQ => self.admin[1] = half(self.admin[1]),
            at::ACQ => self.admin[2] = half(self.admin[2]),
            _ if offset == at::AQA => self.admin[0] = u64::from(value),
            _ if offset == at::CC => self.configure(queues, subsystem, value),
            _ => {}
        }
    }

    /// Writes CC: enables, disables, or shuts down.
    fn configure<H: Host>(&mut self, queues: &mut Queues<H>, subsystem: &mut Subsystem, value: u32) {
        let Some(controller) = subsystem.controller_mut(self.place.controller) else { return };
        let before = controller.config;
        controller.set_property(at::CC, 4, u64::from(value));
        let has = |bits: u32| (before & bits != 0, value & bits != 0);
        match (has(config::ENABLE), has(config::SHUTDOWN)) {
            ((false, true), _) => {
                let choices = config::CHOICES & !controller.command_sets();
                self.start(queues, value, choices);
            }
            ((true, false), _) => self.stop(queues),
            ((true, true), (false, true)) => self.shut_down(queues),
            _ => {}
        }
    }

    /// The host enables the controller: there is an admin queue, if what it needs is right.
    /// Of what it may choose, only the command set is left to it, where there are several.
    fn start<H: Host>(&mut self, queues: &mut Queues<H>, config: u32, choices: u32) {
        queues.reset();
        let [aqa, asq, acq] = self.admin;
        let (submission, completion) = ((aqa & 0xfff) as u32 + 1, (aqa >> 16 & 0xfff) as u32 + 1);
        let is_aligned = asq.is_multiple_of(HOST_PAGE as u64) && acq.is_multiple_of(HOST_PAGE as u64);
        let most = u32::from(crate::subsystem::QUEUE_MAX);
        let fits = |size: &u32| (registers::QUEUE_MIN..=most).contains(size);
        if config & choices != 0 || !is_aligned || ![submission, completion].iter().all(fits) {
            queues.is_fatal = true;
            return;
        }
        let made = queues.create_completion(0, completion, acq, Some(0));
        let made = made.and_then(|()| queues.create_submission(0, submission, asq, 0));
        queues.is_fatal |= made.is_err();
        queues.is_enabled = true;
    }

    /// The controller is disabled: what was not begun never will be.
    fn stop<H: Host>(&mut self, queues: &mut Queues<H>) {
        queues.reset();
        self.window = 0;
        for ready in self.ready.drain(..).chain(std::mem::take(&mut queues.next)) {
            queues.flights.ended(ready.flight, Status::ABORTED, |_| unreachable!("nothing follows on what failed"));
        }
    }

    /// A shutdown is over when what was written is durable.
    fn shut_down<H: Host>(&mut self, queues: &mut Queues<H>) {
        queues.is_enabled = false;
        let landing = Landing { queue: 0, number: 0, places: pointer::Places::default() };
        let io = Io::FLUSH;
        let Queues { flights, shutdown, .. } = queues;
        flights.begin(&Sqe([0; SQE_BYTES]), Outcome::Io(io), Vec::new(), landing, |ready| {
            *shutdown = Some(ready.flight);
            self.push(ready);
        });
    }

    /// The function is reset, as by its power.
    fn reset<H: Host>(&mut self, queues: &mut Queues<H>, subsystem: &mut Subsystem) {
        self.stop(queues);
        self.space.reset();
        self.admin = [0; 3];
        if let Some(controller) = subsystem.controller_mut(self.place.controller) {
            controller.set_property(at::CC, 4, 0);
        }
    }

    /// Takes a command from a queue and carries it out, as far as it goes without the drive.
    fn fetch<H: Host>(
        &mut self,
        queues: &mut Queues<H>,
        subsystem: &mut Subsystem,
        media: &mut dyn Media,
        queue: u16,
        sqe: &Sqe,
    ) {
        let Some(number) = queues.fetched(queue, sqe.cid()) else { return };
        let done = self.execute(queues, subsystem, media, (queue, number), sqe);
        if let Some((result, status)) = done.unwrap_or_else(|status| Some((0, status))) {
            queues.complete(queue, sqe.cid(), result, status);
        }
    }

    /// Returns how the command ended, or none if it waits.
    fn execute<H: Host>(
        &mut self,
        queues: &mut Queues<H>,
        subsystem: &mut Subsystem,
        media: &mut dyn Media,
        (queue, number): (u16, u64),
        sqe: &Sqe,
    ) -> Result<Option<(u64, Status)>, Status> {
        let place = Place { queue, ..self.place };
        let refused = |subsystem: &mut Subsystem, status: Status| {
            subsystem.note_failure(place, sqe, status);
            status
        };
        if queue == 0 && sqe.psdt() != 0 {
            return Err(refused(subsystem, Status::INVALID_FIELD)); // admin commands have PRPs
        }
        let bytes = bytes_of(subsystem, queue, sqe);
        let moves = sqe.opcode() & 3;
        // What is longer than any transfer is refused by the command itself.
        let places = if bytes > commands::TRANSFER_MAX || queue == 0 && moves == 2 {
            pointer::Places::default()
        } else {
            pointer::walk(&queues.host, sqe, bytes).map_err(|status| refused(subsystem, status))?
        };
        let data = if moves == 1 && bytes <= commands::TRANSFER_MAX {
            places.read(&queues.host, bytes).map_err(|reach| refused(subsystem, reach.into()))?
        } else {
            Vec::new()
        };
        let outcome = subsystem.execute(place, &with_length(sqe, bytes), &data, media)?;
        let landing = Landing { queue, number, places };
        match outcome {
            Outcome::Held => {}
            Outcome::Done(result, data) => {
                let places =
                    pointer::walk(&queues.host, sqe, data.len()).map_err(|status| refused(subsystem, status))?;
                places.write(&queues.host, &data).map_err(|reach| refused(subsystem, reach.into()))?;
                return Ok(Some((result, Status::SUCCESS)));
            }
            Outcome::Queues(change) => {
                let result = self.change(queues, change).map_err(|status| refused(subsystem, status))?;
                return Ok(Some((result, Status::SUCCESS)));
            }
            asks => {
                if !queues.flights.begin(sqe, asks, data, landing, |ready| self.push(ready)) {
                    return Ok(Some((0, Status::SUCCESS)));
                }
            }
        }
        Ok(None)
    }

    /// Ends a command that was fetched, if the drive has no part of it. Returns false if there is none.
    fn abort<H: Host>(&mut self, queues: &mut Queues<H>, queue: u16, cid: u16) -> bool {
        let Some(number) = queues.number_of(queue) else { return false };
        let found = queues.flights.find(|flight| flight.with.number == number && flight.sqe.cid() == cid);
        let Some((_, bytes)) = found.and_then(|flight| queues.flights.take_back(flight, &mut self.ready)) else {
            return false;
        };
        self.window -= bytes;
        queues.complete(queue, cid, 0, Status::ABORTED);
        true
    }

    /// Changes the queues. Returns what the command does.
    fn change<H: Host>(&mut self, queues: &mut Queues<H>, change: Change) -> Result<u64, Status> {
        match change {
            Change::CreateCompletion { queue, size, address, vector } => {
                queues.create_completion(queue, size, address, vector)?;
            }
            Change::CreateSubmission { queue, size, address, completion } => {
                queues.create_submission(queue, size, address, completion)?;
            }
            Change::DeleteCompletion(queue) => queues.delete_completion(queue)?,
            Change::DeleteSubmission(queue) => queues.delete_submission(queue)?,
            Change::Abort { queue, cid } => return Ok(u64::from(!self.abort(queues, queue, cid))),
            Change::Shadow { doorbells, events } => queues.keep_shadow(doorbells, events),
        }
        Ok(0)
    }

    /// Where the command of a request came from.
    #[must_use]
    pub fn place<H: Host>(&self, queues: &Queues<H>, ready: &Ready) -> Place {
        Place { queue: queues.flights.get(ready.flight).with.queue, ..self.place }
    }

    fn push(&mut self, ready: Ready) {
        self.window += ready.data.len();
        self.ready.push_back(ready);
    }
}

/// Bytes that a command moves, or may move: what its pointer does not tell.
fn bytes_of(subsystem: &Subsystem, queue: u16, sqe: &Sqe) -> usize {
    let opcode = sqe.opcode();
    match (queue, opcode) {
        (0, 0x02) => {
            usize::try_from((u64::from(sqe.dword(10) >> 16) | u64::from(sqe.dword(11) & 0xffff) << 16) * 4 + 4)
                .unwrap_or(usize::MAX)
        }
        (0, 0x09) => match sqe.dword(10) & 0xff {
            0x0e => 8,                                     // timestamp
            0x16 => 512,                                   // host behavior
            0x1e => (sqe.dword(11) >> 16 & 0xff) as usize, // types of events of placement
            _ => 0,
        },
        (0, 0x0d) if sqe.dword(10) & 0xf != 0 => 0, // a namespace that is deleted has no description
        (0, 0x19) => 0,                             // a directive that is switched on or off
        (0, 0x1a) => usize::try_from((u64::from(sqe.dword(10)) + 1) * 4).unwrap_or(usize::MAX), // what directives there are
        // Those that create queues say where these are, and the others move a page at most.
        (0, _) if commands::FUNCTION.iter().any(|command| command.opcode == opcode) => 0,
        (0, _) if opcode & 3 != 0 => HOST_PAGE,
        (0, _) => 0,
        (_, 0x01 | 0x02 | 0x05 | 0x7d) => {
            // A namespace that is not there is refused by the command, whatever comes with it.
            let shift = subsystem.namespaces().get(sqe.nsid()).map_or(0, crate::namespace::Namespace::shift);
            usize::try_from(sqe.blocks() << shift).unwrap_or(usize::MAX)
        }
        (_, 0x09) => ((sqe.dword(10) & 0xff) as usize + 1) * 16, // ranges of Dataset Management
        (_, 0x7a) => usize::try_from((u64::from(sqe.dword(12)) + 1) * 4).unwrap_or(usize::MAX), // a report of zones
        (_, 0x12) => usize::try_from((u64::from(sqe.dword(11)) + 1) * 4).unwrap_or(usize::MAX), // units of placement
        (_, 0x1d) => ((sqe.dword(10) >> 16) as usize + 1) * 2,   // placement identifiers
        (_, 0x19) => ((sqe.dword(12) & 0xff) as usize + 1) * 32, // those of Copy
        _ => 0,
    }
}

/// The command as other transports bring it: with an SGL that tells the length of its data.
fn with_length(sqe: &Sqe, bytes: usize) -> Sqe {
    let mut changed = *sqe;
    if bytes > 0 {
        put(&mut changed.0, 24, &[0; 16]);
        put(&mut changed.0, 32, &u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes());
        changed.0[39] = Sgl::TRANSPORT;
    }
    changed
}

fn fields<const N: usize>(values: [u32; N]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn map_of(body: &[u8]) -> Result<Map, Errno> {
    let (offset, address, bytes) = (u64_at(body, 8), u64_at(body, 16), u64_at(body, 24));
    let page = HOST_PAGE as u64;
    let is_whole = [offset, address, bytes].iter().all(|each| each.is_multiple_of(page));
    if !is_whole || bytes == 0 || address.checked_add(bytes).is_none() || offset.checked_add(bytes).is_none() {
        return Err(Errno::INVALID);
    }
    Ok(Map { address, bytes, offset, is_writable: u32_at(body, 4) & MAP_WRITABLE != 0 })
}

fn unmap(host: &mut impl Host, body: &[u8]) -> Result<Vec<u8>, Errno> {
    let (flags, address, bytes) = (u32_at(body, 4), u64_at(body, 8), u64_at(body, 16));
    let range = match flags {
        0 if address.checked_add(bytes).is_some() => Some((address, bytes)),
        UNMAP_ALL if address == 0 && bytes == 0 => None,
        _ => return Err(Errno::INVALID),
    };
    let gone = host.unmap(range)?;
    let mut answer = body[..24].to_vec();
    put(&mut answer, 16, &gone.to_le_bytes());
    Ok(answer)
}

fn region_info(index: u32) -> Result<Vec<u8>, Errno> {
    let (flags, bytes) = match index {
        region::BAR => (region::READ | region::WRITE, BAR_BYTES),
        region::CONFIG => (region::READ | region::WRITE, super::config::BYTES as u64),
        _ if index < region::COUNT => (0, 0),
        _ => return Err(Errno::INVALID),
    };
    let mut answer = fields([32, flags, index, 0]);
    answer.extend(bytes.to_le_bytes());
    answer.extend([0; 8]);
    Ok(answer)
}
