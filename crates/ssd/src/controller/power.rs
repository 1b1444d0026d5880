//! Loss of power: commands fail, what the buffers held is gone, and the device below is mounted again.
//!
//! The RAM of a controller has no capacitors. So what it holds is lost, answered or not; what a flush or a forced write was
//! answered for lies below.

use super::claims::Claims;
use super::link::Link;
use super::read_buffer::ReadBuffer;
use super::write_buffer::WriteBuffer;
use super::{Command, Controller, Inside, NEVER};
use crate::power_loss::RestartError;
use crate::ssd::Ssd;
use crate::{MountError, Mounted};
use flashwright_block::{
    Arbiter, BlockDevice, Completion, Effects, IoError, Nanos, Request, RequestKind, Tag, Waiting,
};
use std::collections::BTreeSet;

impl<D: BlockDevice, A: Arbiter> Controller<D, A> {
    /// The device below has lost its power. All commands fail that the host has not seen completed.
    #[cold]
    pub(super) fn lose_power(&mut self) {
        self.empty_device();
        let free: BTreeSet<u32> = self.free.drain(..).collect();
        let mut failed: Vec<Command> = (0..)
            .zip(self.commands.drain(..))
            .filter(|(slot, _)| !free.contains(slot))
            .map(|(_, command)| command)
            .collect();
        failed.sort_by_key(|command| command.order);
        for command in &failed {
            self.queue.release(command.request.kind, 1);
        }
        while let Some(Waiting { id, request }) = self.queue.pick() {
            failed.push(Command { request, tag: id, start: request.arrival.0, ..Command::default() });
        }
        let rung = self.doorbells.drain();
        failed.extend(rung.map(|Waiting { id, request }| Command {
            request,
            tag: id,
            start: request.arrival.0,
            ..Command::default()
        }));
        // What noise and interrupts delay has not left the drive.
        let unseen = self.ready.partition_point(|next| next.end.0 <= self.now);
        let unseen = self.ready.split_off(unseen).into_iter().map(|next| (next.tag, next.request, next.start));
        let failed = failed.iter().map(|command| (Tag(command.tag), command.request, Nanos(command.start)));
        for (tag, request, start) in unseen.chain(failed) {
            if let Some(payloads) = &mut self.payloads {
                payloads.finished(tag.0, true);
            }
            let result = Err(Box::new(IoError::PowerOff));
            let (end, effects) = (Nanos(self.now), Effects::default());
            self.ready.push_back(Completion { tag, request, start, end, effects, result });
        }
        self.forget();
        (self.off, self.power_lost) = (true, false);
    }

    /// Takes everything that has ended below, which nobody waits for any more, and brings its clock to this one's time.
    fn empty_device(&mut self) {
        let mut ended = Completion::default();
        for until in [NEVER, self.now] {
            // A device that is dead has nothing either.
            while let Ok(true) = self.device.wait(Nanos(until), &mut ended) {
                if let (RequestKind::Read, Some(device)) = (ended.request.kind, self.device.holds_data()) {
                    device.take_data(ended.tag, &mut vec![0; ended.request.data_bytes()]);
                }
            }
        }
        self.now = self.now.max(self.device.now().0);
    }

    /// Nothing is in the firmware, on the link or in the buffers.
    fn forget(&mut self) {
        let config = &self.config;
        self.fetched_at = NEVER;
        self.interrupts.forget();
        self.firmware.clear();
        self.firmware_free_at = 0;
        self.unsettled = Claims::new();
        self.held.clear();
        self.writers.clear();
        self.recheck = false;
        self.link = Link::new(config);
        self.inside = Inside::default();
        self.buffer = WriteBuffer::new(&config.write_buffer, config.command_limit.0);
        self.read_buffer = ReadBuffer::new(&config.read_buffer);
        self.errors.clear();
        self.deferred = None;
        self.owed = Effects::default();
        if let Some(payloads) = &mut self.payloads {
            payloads.forget_buffers();
        }
    }
}

impl<A: Arbiter> Controller<Ssd, A> {
    /// Cuts the power now: all commands fail, and what the buffers hold is lost. See [`Ssd::cut`].
    ///
    /// # Errors
    /// [`MountError::NotKept`] if the drive could not be mounted again.
    pub fn cut(&mut self) -> Result<(), MountError> {
        if self.config.is_off() {
            return self.device.cut();
        }
        if self.device.medium().is_none() {
            return Err(MountError::NotKept);
        }
        if !self.off {
            // Until now, everything goes on: in here, and in the background below.
            while self.step(self.now) == Ok(true) {}
            let _ = self.device.wait(Nanos(self.now), &mut Completion::default());
        }
        self.device.cut()?;
        if !self.off {
            self.lose_power();
        }
        Ok(())
    }

    /// Mounts the drive, whose buffers are empty then; the clock goes on when that is done. A drive whose power is on loses it
    /// first. See [`Ssd::mount`].
    ///
    /// ```
    /// # use flashwright_block::{BlockDevice, Completion, Request, RequestKind, Seed};
    /// # use flashwright_ssd::{Config, Controller, Ssd};
    /// let text = "recovery.mount-by = \"scan\"\n[controller.write-buffer]\nsize = \"256 KiB\"";
    /// let config = Config::from_toml(text, "doc")?;
    /// let mut drive = Controller::of_drive(Ssd::new(&config, Seed(1), false)?, Seed(1));
    /// let write = |page: u64| Request { first_sector: 8 * page, sectors: 8, kind: RequestKind::Write, ..Request::default() };
    /// let mut completion = Completion::default();
    /// drive.execute(write(0), &mut completion)?;
    /// drive.execute(Request { kind: RequestKind::Flush, ..Request::default() }, &mut completion)?;
    /// drive.execute(write(1), &mut completion)?; // acknowledged, and only in the buffer
    /// assert_eq!(drive.mount()?.pages_mapped, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`MountError`]; the drive then stays off.
    pub fn mount(&mut self) -> Result<Mounted, MountError> {
        self.cut()?;
        let mounted = self.device.mount();
        self.power_returns();
        mounted
    }

    /// Restarts the drive with other settings of `gc` and `ram`, losing nothing. See [`Ssd::restart_with`].
    ///
    /// # Errors
    /// [`RestartError`]; the drive then goes on as before.
    pub fn restart_with(&mut self, settings: &[String]) -> Result<Mounted, RestartError> {
        let after = self.device.settings_after(settings)?;
        if self.device.is_on() {
            let flush = Request { kind: RequestKind::Flush, arrival: self.now(), ..Request::default() };
            let mut completion = Completion::default();
            let flushed = self.execute(flush, &mut completion).and_then(|()| completion.result.map_err(|error| *error));
            flushed.map_err(|error| RestartError::Mount(error.to_string()))?;
        }
        let restarted = self.device.restart_as(after);
        if !self.config.is_off() {
            self.lose_power();
            self.power_returns();
        }
        restarted
    }

    /// The device below may have been mounted, which took time.
    fn power_returns(&mut self) {
        self.now = self.now.max(self.device.now().0);
        self.off = self.config.is_off() || !self.device.is_on();
    }
}
