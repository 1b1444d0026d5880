//! Plays requests on a block device, open loop by arrival time or closed loop with a queue depth.
//!
//! The player knows nothing of flash: any [`BlockDevice`] will do. Requests are fetched in batches so that the ones to
//! come can be announced, and a run can be played in steps: between two of them the caller shows progress, saves the
//! state, or stops.
//!
//! A source that reacts to the device ([`Interactive`]) is asked for each step instead, one at a time, and told of tags
//! and completions; it decides by itself when requests are issued.

use flashwright_block::{
    Ahead, BlockDevice, Completion, Interactive, IoError, Nanos, Next, Request, RequestSource, SourceError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When requests are issued.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// At their arrival times, multiplied by a factor: 0.5 plays a trace twice as fast.
    Open {
        /// Factor on arrival times, 0 or more.
        time_scale: f64,
    },
    /// So that `depth` requests are outstanding; arrival times are not looked at.
    Closed {
        /// Requests outstanding, at least 1.
        depth: u32,
    },
    /// As a workload decides that reacts to the device.
    Interactive,
}

/// Why playing stopped early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    /// The workload could not go on.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The device could not go on.
    #[error(transparent)]
    Device(#[from] IoError),
}

/// How far a step got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The budget is used up; more is to come.
    Paused,
    /// Every request was played and completed.
    Finished,
}

/// Why a run of an interactive workload is not saved.
const NOT_RESUMED: &str =
    "this workload reacts to the device and can't be wound on to where a saved run stood; run it from the start";

const BATCH: usize = 256;
const FAR: usize = 32;
const NEAR: usize = 14;

/// Plays a source on a device. Holds no borrow of either, so that a run can be saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Player {
    pace: Pace,
    submitted: u64,
    outstanding: u32,
    /// Requests that this player had handed over before it began to count anew.
    taken_before: u64,
    /// Added to arrival times: the device's clock when playing began.
    started: Nanos,
    /// Taken off arrival times first: that of the last request before playing began.
    first_arrival: Nanos,
    /// When the last request of an open loop arrived, on the device's clock.
    last_arrival: Nanos,
    #[serde(skip)]
    batch: Vec<Request>,
    #[serde(skip)]
    next: usize,
    #[serde(skip)]
    dry: bool,
    /// Where the device puts completions.
    #[serde(skip)]
    completion: Completion,
}

impl Player {
    /// A player that begins at the device's time `started`.
    #[must_use]
    pub fn new(pace: Pace, started: Nanos) -> Self {
        Self {
            pace,
            submitted: 0,
            outstanding: 0,
            taken_before: 0,
            started,
            first_arrival: Nanos(0),
            last_arrival: started,
            batch: Vec::with_capacity(BATCH),
            next: 0,
            dry: false,
            completion: Completion::default(),
        }
    }

    /// Requests handed to the device so far; a saved run's source is wound on by this number.
    #[must_use]
    pub fn submitted(&self) -> u64 {
        self.submitted
    }

    /// Requests a second that an open loop asks for; none where all of them arrive at once.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts and nanoseconds far below 2^53
    pub fn arrivals_per_s(&self) -> Option<f64> {
        let span = self.last_arrival.0.saturating_sub(self.started.0);
        (span > 0).then(|| self.submitted as f64 * 1e9 / span as f64)
    }

    /// Whether the source has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.dry && self.next == self.batch.len()
    }

    /// Counts requests from 0 again, and goes on with the source where it stands.
    pub fn count_anew(&mut self) {
        self.taken_before += std::mem::take(&mut self.submitted);
    }

    /// Begins a source that has started over, at the device's time `started`. Nothing may be in flight.
    pub fn start_over(&mut self, started: Nanos) {
        assert_eq!(self.outstanding, 0, "a pass ends when its last request has ended");
        *self = Self::new(self.pace, started);
    }

    /// Goes on at another pace, from the device's time `started`: the next request comes as long after it as it comes
    /// after the one before. Nothing may be in flight.
    pub fn change_pace(&mut self, pace: Pace, started: Nanos) {
        assert_eq!(self.outstanding, 0, "a player changes its pace between requests");
        self.first_arrival = self.next.checked_sub(1).map_or(Nanos(0), |last| self.batch[last].arrival);
        (self.pace, self.started) = (pace, started);
    }

    /// Plays on until `until_submitted` requests were handed over in all, or to the end. With `finish` the requests in
    /// flight are waited for. `done` sees each completion with the device as it is then.
    ///
    /// # Errors
    /// [`PlayError`]; what completed before was seen by `done`.
    pub fn play<D: BlockDevice, S: RequestSource + ?Sized>(
        &mut self,
        device: &mut D,
        source: &mut S,
        until_submitted: u64,
        finish: bool,
        mut done: impl FnMut(&Completion, &D),
    ) -> Result<Step, PlayError> {
        if let Some(interactive) = source.interactive() {
            return self.play_interactive(device, interactive, until_submitted, finish, done);
        }
        if self.pace == Pace::Interactive {
            return Err(SourceError("pace: found interactive, expected open or closed for this workload".into()).into());
        }
        while self.submitted < until_submitted {
            if self.next == self.batch.len() && !self.refill(device, source)? {
                break;
            }
            self.announce(device);
            self.issue(device, &mut done)?;
        }
        let ended = self.dry && self.next == self.batch.len();
        if finish || ended {
            while self.outstanding > 0 {
                self.complete_one(device, Nanos(u64::MAX), &mut done)?;
            }
            return Ok(Step::Finished);
        }
        Ok(Step::Paused)
    }

    /// Plays a source that decides by itself.
    fn play_interactive<D: BlockDevice>(
        &mut self,
        device: &mut D,
        source: &mut dyn Interactive,
        until_submitted: u64,
        finish: bool,
        mut done: impl FnMut(&Completion, &D),
    ) -> Result<Step, PlayError> {
        while self.submitted < until_submitted && !self.dry {
            let until = match source.next(device.now())? {
                Next::Submit(mut request) => {
                    request.arrival = device.now();
                    source.submitted(device.submit(request)?);
                    self.submitted += 1;
                    self.outstanding += 1;
                    continue;
                }
                Next::Wait(until) => until,
                Next::WaitForCompletion => Nanos(u64::MAX),
                Next::Ended => {
                    self.dry = true;
                    break;
                }
            };
            assert!(until.0 != u64::MAX || self.outstanding > 0, "a workload waits only for what is in flight");
            if self.complete_one(device, until, &mut done)? {
                source.completed(&self.completion);
            }
        }
        if finish || self.dry {
            while self.outstanding > 0 {
                self.complete_one(device, Nanos(u64::MAX), &mut done)?;
                source.completed(&self.completion);
            }
            return Ok(Step::Finished);
        }
        Ok(Step::Paused)
    }

    /// Tells the device of the requests that come soon after the next one.
    #[inline(always)]
    fn announce<D: BlockDevice>(&self, device: &D) {
        if let Some(far) = self.batch.get(self.next + FAR) {
            device.expect(far, Ahead::Far);
        }
        if let Some(near) = self.batch.get(self.next + NEAR) {
            device.expect(near, Ahead::Near);
        }
    }

    fn refill<D: BlockDevice, S: RequestSource + ?Sized>(
        &mut self,
        device: &D,
        source: &mut S,
    ) -> Result<bool, SourceError> {
        self.batch.clear();
        self.next = 0;
        if !self.dry {
            self.dry = source.fill(&mut self.batch, BATCH)? == 0;
        }
        for request in self.batch.iter().take(FAR) {
            device.expect(request, Ahead::Far);
        }
        Ok(!self.batch.is_empty())
    }

    /// Hands over the next request of the batch.
    #[inline(always)]
    fn issue<D: BlockDevice>(&mut self, device: &mut D, done: &mut impl FnMut(&Completion, &D)) -> Result<(), IoError> {
        // A copy first: changing the batch and reading it back at once would stall the simulating machine.
        let mut request = self.batch[self.next];
        self.next += 1;
        match self.pace {
            Pace::Closed { depth: 1 } => {
                request.arrival = device.now();
                device.execute(request, &mut self.completion)?;
                self.submitted += 1;
                done(&self.completion, device);
                return Ok(());
            }
            Pace::Closed { depth } => {
                while self.outstanding >= depth {
                    self.complete_one(device, Nanos(u64::MAX), done)?;
                }
                request.arrival = device.now();
            }
            Pace::Open { time_scale } => {
                request.arrival = self.started + scaled(request.arrival - self.first_arrival, time_scale);
                self.last_arrival = request.arrival;
                while self.outstanding > 0 && self.complete_one(device, request.arrival, done)? {}
            }
            Pace::Interactive => unreachable!("refused when playing began"),
        }
        device.submit(request)?;
        self.submitted += 1;
        self.outstanding += 1;
        Ok(())
    }

    /// Waits for one completion until `until`; says whether there was one.
    #[inline(always)]
    fn complete_one<D: BlockDevice>(
        &mut self,
        device: &mut D,
        until: Nanos,
        done: &mut impl FnMut(&Completion, &D),
    ) -> Result<bool, IoError> {
        if device.wait(until, &mut self.completion)? {
            self.outstanding -= 1;
            done(&self.completion, device);
            return Ok(true);
        }
        assert!(until.0 != u64::MAX, "a device with {} requests in flight completes one", self.outstanding);
        Ok(false)
    }

    /// Winds a freshly made source on to where a saved run stood.
    ///
    /// # Errors
    /// [`SourceError`] if the source fails or ends before, or reacts to the device: what it did hangs on when requests
    /// ended, which nobody kept.
    pub fn rewind<S: RequestSource + ?Sized>(&mut self, source: &mut S) -> Result<(), SourceError> {
        let taken = self.taken_before + self.submitted;
        if taken > 0 && source.interactive().is_some() {
            return Err(SourceError(NOT_RESUMED.into()));
        }
        skip(source, taken)?;
        self.batch.clear();
        self.next = 0;
        self.dry = false;
        Ok(())
    }
}

/// Takes so many requests of a freshly made source and drops them.
///
/// # Errors
/// [`SourceError`] if the source fails or ends before.
pub(crate) fn skip<S: RequestSource + ?Sized>(source: &mut S, requests: u64) -> Result<(), SourceError> {
    let mut batch = Vec::with_capacity(BATCH);
    let mut skipped = 0;
    while skipped < requests {
        batch.clear();
        let wanted = usize::try_from(requests - skipped).unwrap_or(BATCH).min(BATCH);
        let got = source.fill(&mut batch, wanted)?;
        if got == 0 {
            return Err(SourceError(format!(
                "the workload ends after {skipped} requests, but the saved run had played {requests}; it is not the same \
                 workload"
            )));
        }
        skipped += got as u64;
    }
    Ok(())
}

#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn scaled(time: Nanos, factor: f64) -> Nanos {
    // Exact where nothing is scaled; else rounded to a nanosecond.
    if factor == 1.0 { time } else { Nanos((time.0 as f64 * factor).round() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::{Bytes, DeviceInfo, RequestKind, Tag};
    use std::collections::VecDeque;

    /// A device that serves one request after the other, each in 100 us, with tags from 7 up in sevens.
    #[derive(Default)]
    struct OneByOne {
        now: u64,
        free_at: u64,
        tag: u64,
        queue: VecDeque<Completion>,
    }

    impl BlockDevice for OneByOne {
        fn info(&self) -> DeviceInfo {
            DeviceInfo { name: "one by one".into(), capacity: Bytes(1 << 20), sector: Bytes(512), queue_depth: 1 }
        }
        fn now(&self) -> Nanos {
            Nanos(self.now)
        }
        fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
            assert_eq!(
                request.arrival.0, self.now,
                "an interactive source's requests arrive when they are handed over"
            );
            self.tag += 7;
            self.free_at = self.free_at.max(self.now) + 100_000;
            let (tag, start) = (Tag(self.tag), Nanos(self.now));
            self.queue.push_back(Completion { tag, request, start, end: Nanos(self.free_at), ..Completion::default() });
            Ok(tag)
        }
        fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
            match self.queue.front() {
                Some(first) if first.end <= until => {
                    self.now = self.now.max(first.end.0);
                    *completion = self.queue.pop_front().expect("it was there");
                    Ok(true)
                }
                _ => {
                    if until.0 != u64::MAX {
                        self.now = self.now.max(until.0);
                    }
                    Ok(false)
                }
            }
        }
    }

    /// Two reads at once, 250 us of work once both are there, a write, and the end when that is done.
    #[derive(Default)]
    struct Program {
        step: u32,
        tags: Vec<u64>,
        ended: Vec<(u64, u64)>,
        work_until: u64,
    }

    impl Interactive for Program {
        fn next(&mut self, now: Nanos) -> Result<Next, SourceError> {
            let request = |kind| Next::Submit(Request { kind, sectors: 8, ..Request::default() });
            self.step += 1;
            Ok(match self.step {
                1 | 2 => request(RequestKind::Read),
                3 | 4 => Next::WaitForCompletion,
                5 => {
                    self.work_until = now.0 + 250_000;
                    Next::Wait(Nanos(self.work_until))
                }
                6 => {
                    assert_eq!(now.0, self.work_until);
                    request(RequestKind::Write)
                }
                _ => Next::Ended,
            })
        }
        fn submitted(&mut self, tag: Tag) {
            self.tags.push(tag.0);
        }
        fn completed(&mut self, completion: &Completion) {
            self.ended.push((completion.tag.0, completion.end.0));
        }
    }

    impl RequestSource for Program {
        fn fill(&mut self, _: &mut Vec<Request>, _: usize) -> Result<usize, SourceError> {
            unreachable!("the player asks an interactive source")
        }
        fn interactive(&mut self) -> Option<&mut dyn Interactive> {
            Some(self)
        }
    }

    /// By hand: the reads end at 100 and 200 us, the work at 450, the write at 550.
    #[test]
    fn an_interactive_source_waits_for_the_device() {
        for budget in [1, 2, 3, 100] {
            let (mut device, mut program) = (OneByOne::default(), Program::default());
            let mut player = Player::new(Pace::Interactive, Nanos(0));
            let mut seen = 0;
            loop {
                let until = player.submitted() + budget;
                if player.play(&mut device, &mut program, until, false, |_, _| seen += 1).unwrap() == Step::Finished {
                    break;
                }
            }
            assert_eq!(program.tags, [7, 14, 21]);
            assert_eq!(program.ended, [(7, 100_000), (14, 200_000), (21, 550_000)]);
            assert_eq!((seen, player.submitted()), (3, 3));
            let error = player.rewind(&mut program).unwrap_err().to_string();
            assert!(error.contains("can't be wound on"), "{error}");
        }
    }

    #[test]
    fn a_stop_after_some_requests_waits_for_them() {
        let (mut device, mut program) = (OneByOne::default(), Program::default());
        let mut player = Player::new(Pace::Interactive, Nanos(0));
        assert_eq!(player.play(&mut device, &mut program, 2, true, |_, _| {}).unwrap(), Step::Finished);
        assert_eq!(program.ended, [(7, 100_000), (14, 200_000)]);
    }
}
