//! The requests of a controller to the device below: entries of the write buffer and pieces of commands, all through
//! one gate.

use super::write_buffer::Extent;
use super::{Controller, Drain, Job, Owner, Stage};
use flashwright_block::{
    Arbiter, BlockDevice, Completion, Effects, IoError, Nanos, Request, RequestClass, RequestKind, SECTOR_BYTES, Tag,
};

impl<D: BlockDevice, A: Arbiter> Controller<D, A> {
    /// Sends those entries of the write buffer to the flash that are due.
    #[inline]
    pub(super) fn drain(&mut self) {
        let settings = &self.config.write_buffer;
        let (flushes, eager) = (settings.flushes, settings.drain == Drain::Eager);
        while self.inside.flushes < flushes && !self.buffer.is_empty() {
            let wanted = match self.writers.front().map(|slot| &self.commands[*slot as usize]) {
                Some(command) if command.stage == Stage::Barrier || self.forces_all(command) => true,
                Some(command) if matches!(command.stage, Stage::Room | Stage::Here) => {
                    !self.buffer.will_have_room(self.buffer.need(self.part_of(command)))
                }
                _ => false,
            };
            let Some(at) = self.buffer.oldest().filter(|_| eager || wanted) else { return };
            self.fly(at, wanted);
        }
    }

    /// Sends buffered data of these sectors to the flash before another operation touches them there.
    pub(super) fn flush_before(&mut self, extent: Extent) {
        while let Some(at) = self.buffer.before(extent) {
            self.fly(at, true);
        }
    }

    #[inline(never)]
    pub(super) fn fly(&mut self, at: usize, forced: bool) {
        let entry = self.buffer.entry(at);
        self.buffer.fly(at);
        self.inside.flushes += 1;
        self.figures.flushes += 1;
        self.figures.flushes_forced += u64::from(forced);
        self.figures.flushed_bytes += entry.extent.sectors() * SECTOR_BYTES;
        let of = Request { stream: entry.stream, process: entry.process, ..Request::default() };
        self.push(self.request_for(RequestKind::Write, entry.extent, &of), Owner::Entry(entry.id));
    }

    /// A request to the device below on behalf of another.
    #[inline(always)]
    pub(super) fn request_for(&self, kind: RequestKind, extent: Extent, of: &Request) -> Request {
        Request {
            arrival: Nanos(self.now),
            first_sector: extent.first,
            sectors: u32::try_from(extent.sectors()).expect("parts of requests and entries of RAM fit 32 bits"),
            kind,
            fua: false,
            ..*of
        }
    }

    /// Queues a job for the device below at the gate.
    #[inline(always)] // as for `take`
    pub(super) fn push(&mut self, request: Request, owner: Owner) {
        self.inside.writes += u32::from(writes(&request));
        let job = Job { request, owner };
        if self.inside.queue.is_empty() {
            self.inside.opens_at = self.gate_opens(&job);
            if self.inside.opens_at == self.now {
                return self.submit_job(job);
            }
        }
        self.inside.queue.push_back(job);
    }

    /// When the gate would let this job through if it arrived now.
    #[inline(always)]
    pub(super) fn gate_opens(&mut self, job: &Job) -> u64 {
        if self.config.turnaround.0 == 0 || job.request.kind == RequestKind::Flush {
            return self.now;
        }
        let turns = self.inside.wrote.is_some_and(|wrote| wrote != writes(&job.request));
        self.inside.wrote = Some(writes(&job.request));
        self.figures.turnarounds += u64::from(turns);
        self.now + if turns { self.config.turnaround.0 } else { 0 }
    }

    /// Lets the first waiting job through, and those behind it that need no turnaround.
    #[inline(never)]
    pub(super) fn open_gate(&mut self) {
        while let Some(job) = self.inside.queue.pop_front() {
            self.submit_job(job);
            let Some(next) = self.inside.queue.front().copied() else { return };
            self.inside.opens_at = self.gate_opens(&next);
            if self.inside.opens_at > self.now {
                return;
            }
        }
    }

    #[inline(always)]
    pub(super) fn submit_job(&mut self, job: Job) {
        let request = Request { arrival: Nanos(self.now), ..job.request };
        let refused = match job.owner {
            // One error per command is enough: its other pieces pass without effect.
            Owner::Command(slot) if self.commands[slot as usize].failed => true,
            owner => match self.hand_down(request, owner) {
                Ok(tag) => {
                    self.inside.under_way.push_back((tag, owner));
                    false
                }
                Err(error) => {
                    self.job_failed(owner, Box::new(error));
                    true
                }
            },
        };
        if refused {
            self.inside.writes -= u32::from(writes(&job.request));
            self.inside.refused.push_back(job.owner);
        }
    }

    /// Submits to the device below, a write with its bytes.
    #[inline(always)]
    fn hand_down(&mut self, request: Request, owner: Owner) -> Result<Tag, IoError> {
        if self.payloads.is_some() { self.hand_data_down(request, owner) } else { self.device.submit(request) }
    }

    #[cold]
    fn hand_data_down(&mut self, request: Request, owner: Owner) -> Result<Tag, IoError> {
        let (Some(payloads), Some(device)) = (&self.payloads, self.device.holds_data()) else {
            return Err(IoError::KeepsNoData);
        };
        let data = match (request.kind, owner) {
            (RequestKind::Write, Owner::Entry(id)) => payloads.entry(id, Extent::of(&request)),
            (RequestKind::Write | RequestKind::Append, Owner::Command(slot)) => {
                payloads.written(self.commands[slot as usize].tag, Extent::of(&request))
            }
            _ => Vec::new(),
        };
        device.submit_with(request, &data)
    }

    /// The device below completed a read: its bytes have arrived.
    #[cold]
    fn data_came(&mut self, completion: &Completion, owner: Owner) {
        let (Some(payloads), Some(device)) = (&mut self.payloads, self.device.holds_data()) else { return };
        let mut data = vec![0; completion.request.data_bytes()];
        if !device.take_data(completion.tag, &mut data) {
            return;
        }
        let part = Extent::of(&completion.request);
        match owner {
            Owner::Command(slot) => {
                let command = &self.commands[slot as usize];
                payloads.came(command.tag, command.extent(), part, &data);
            }
            Owner::Ahead(id) => payloads.keep_ahead(id, part, data, |id| self.read_buffer.holds(id)),
            Owner::Entry(_) => {}
        }
    }

    pub(super) fn job_over(&mut self, completion: Completion) {
        let at = self.inside.under_way.iter().position(|(tag, _)| *tag == completion.tag);
        let (_, owner) =
            at.and_then(|at| self.inside.under_way.remove(at)).expect("the device below completes what it was given");
        self.inside.writes -= u32::from(writes(&completion.request));
        if self.payloads.is_some() && completion.request.kind == RequestKind::Read {
            self.data_came(&completion, owner);
        }
        if let (true, Owner::Command(slot)) = (completion.request.kind.is_for_zones(), owner) {
            // Where an append went, and what a reset cleared.
            let Request { first_sector, sectors, .. } = completion.request;
            let command = &mut self.commands[slot as usize];
            command.request = Request { first_sector, sectors, ..command.request };
        }
        if let Err(error) = completion.result {
            self.job_failed(owner, error);
        }
        self.ended(owner, completion.effects);
    }

    /// The device below failed the job of `owner`. The end of the job follows, as for any other.
    #[cold]
    fn job_failed(&mut self, owner: Owner, error: Box<IoError>) {
        if *error == IoError::PowerOff {
            (self.power_lost, self.recheck) = (true, true);
        }
        match owner {
            // These data were acknowledged: the next suitable command reports the loss.
            Owner::Entry(_) => {
                self.deferred.get_or_insert(error);
            }
            // The host did not request these data. A read that waits for them goes to the device below itself.
            Owner::Ahead(id) => self.read_buffer.forget(id),
            Owner::Command(slot) => {
                let command = &mut self.commands[slot as usize];
                if let Some(id) = command.fills.take() {
                    self.read_buffer.forget(id);
                }
                if !std::mem::replace(&mut command.failed, true) {
                    self.errors.push((slot, error));
                }
            }
        }
    }

    /// The job of `owner` has completed, and caused this.
    pub(super) fn ended(&mut self, owner: Owner, effects: Effects) {
        match owner {
            Owner::Entry(id) => {
                self.inside.flushes -= 1;
                self.owed += effects;
                self.buffer.landed(id);
                if let Some(payloads) = &mut self.payloads {
                    payloads.landed(id);
                }
                self.recheck = true;
            }
            Owner::Ahead(id) => {
                self.read_buffer.filled(id);
                self.owed += effects;
                self.recheck = true;
            }
            Owner::Command(slot) => {
                let command = &mut self.commands[slot as usize];
                command.effects += effects;
                command.working = false;
                command.done = command.sent;
                let command = *command;
                match command.request.kind {
                    RequestKind::Read => self.read_goes_on(slot, &command),
                    _ if command.stage == Stage::Syncing => {
                        self.writers.pop_front();
                        self.finish(slot);
                        self.recheck = true;
                    }
                    RequestKind::Write if command.sent < command.sectors() => {
                        if command.crossed > command.sent {
                            self.send_piece(slot);
                        }
                    }
                    _ => self.finish(slot),
                }
                // A barrier may have waited for it.
                self.recheck |= !self.writers.is_empty();
            }
        }
    }
}

#[inline(always)]
fn writes(request: &Request) -> bool {
    matches!(request.kind.class(), RequestClass::Write | RequestClass::Discard)
}
