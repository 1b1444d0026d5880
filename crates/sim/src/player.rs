//! Plays requests on a block device, open loop by arrival time or closed loop with a queue depth.
//!
//! The player knows nothing of flash and works on any [`BlockDevice`]. It fetches requests in batches so that it can
//! announce the next ones to the device. A run is played in steps: between two steps the caller can show progress, save
//! the state, or stop.
//!
//! A source that reacts to the device ([`Interactive`]) decides itself when to issue requests. The player asks it for
//! one step at a time, and reports tags and completions to it.
//!
//! Playing ends at the first request that fails: the player issues no more, waits for those in flight, and only then
//! returns the error. So nothing is left in the device, and the caller has seen every completion. On a simulated drive, which counts
//! them, requests that break a rule of zones don't end playing ([`Player::past_refusals`]).

use flashwright_block::{
    Ahead, BlockDevice, Completion, Interactive, IoError, Nanos, Next, Request, RequestSource, SourceError, TIME_MAX,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// When requests are issued.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// At their arrival times, multiplied by a factor: 0.5 plays a trace twice as fast.
    Open {
        /// Factor on arrival times, 0 or more.
        time_scale: f64,
    },
    /// Whenever fewer than `depth` requests are outstanding; arrival times are ignored.
    Closed {
        /// Requests outstanding, at least 1.
        depth: u32,
    },
    /// When a workload that reacts to the device decides.
    Interactive,
    /// When each of several tenants does: they have a pace each.
    Tenants,
}

/// Why playing stopped early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    /// The workload could not continue.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A request failed or was refused, or the device is dead.
    #[error(transparent)]
    Device(#[from] IoError),
}

/// How far a step got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The budget is used up; there are more requests.
    Paused,
    /// Every request was played and completed.
    Finished,
    /// A [`Gate`] closed; requests in flight have completed.
    Stopped,
}

/// Decides before each request whether the player may still submit it. It is called at the device's current time.
///
/// A gate may let time pass on the device only up to the request's arrival, and only if nothing is in flight: in an
/// open loop the player has then waited for every request that ends earlier.
pub trait Gate<D> {
    /// Returns `Break` to stop playing: the player issues nothing more and waits for the requests in flight.
    ///
    /// # Errors
    /// [`IoError`] of a dead device.
    fn admit(&mut self, request: &Request, device: &mut D) -> Result<ControlFlow<()>, IoError>;
}

/// A gate that never closes.
pub(crate) struct Open;

impl<D> Gate<D> for Open {
    #[inline(always)]
    fn admit(&mut self, _: &Request, _: &mut D) -> Result<ControlFlow<()>, IoError> {
        Ok(ControlFlow::Continue(()))
    }
}

/// Why a run of an interactive workload is not saved.
const NOT_RESUMED: &str = "this workload reacts to the device, so it can't be fast-forwarded to the position of a saved run; run it from the start";

const BATCH: usize = 256;
const YEAR_NS: f64 = 365.0 * 86_400e9;
/// Requests announced at a time, and how far ahead of the next one.
const ANNOUNCED: usize = 16;
const FAR: usize = 32;
const NEAR: usize = 10;

/// Plays a source on a device. It borrows neither, so that a run can be saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Player {
    pace: Pace,
    submitted: u64,
    outstanding: u32,
    /// Requests that this player had submitted before its count was reset.
    taken_before: u64,
    /// Added to arrival times: the device's clock when playing began.
    started: Nanos,
    /// Subtracted from arrival times first: the arrival time of the last request before playing began.
    first_arrival: Nanos,
    /// When the last request of an open loop arrived, on the device's clock.
    last_arrival: Nanos,
    /// Whether it goes on after requests that break a rule of zones.
    is_past_refusals: bool,
    #[serde(skip)]
    batch: Vec<Request>,
    #[serde(skip)]
    next: usize,
    #[serde(skip)]
    dry: bool,
    /// Where the device puts completions.
    #[serde(skip)]
    completion: Completion,
    /// The error of the first failed request; taken when playing ends because of it.
    #[serde(skip)]
    failure: Option<Box<IoError>>,
    /// Whether a gate has closed in this call.
    #[serde(skip)]
    stopped: bool,
}

impl Player {
    /// A player that starts at the device's time `started`.
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
            is_past_refusals: false,
            batch: Vec::with_capacity(BATCH),
            next: 0,
            dry: false,
            completion: Completion::default(),
            failure: None,
            stopped: false,
        }
    }

    /// When requests are issued.
    #[must_use]
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Goes on after requests that break a rule of zones; the device counts them.
    #[must_use]
    pub fn past_refusals(self) -> Self {
        Self { is_past_refusals: true, ..self }
    }

    /// Requests submitted so far; the source of a saved run is fast-forwarded by this number.
    #[must_use]
    pub fn submitted(&self) -> u64 {
        self.submitted
    }

    /// Arrival rate of an open loop in requests per second; none if all of them arrive at once.
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

    /// Resets the request count to 0 and continues with the source at its current position.
    pub fn count_anew(&mut self) {
        self.taken_before += std::mem::take(&mut self.submitted);
    }

    /// Starts on a restarted source, at the device's time `started`. Nothing may be in flight.
    pub fn start_over(&mut self, started: Nanos) {
        assert_eq!(self.outstanding, 0, "a pass ends when its last request has ended");
        *self = Self { is_past_refusals: self.is_past_refusals, ..Self::new(self.pace, started) };
    }

    /// Continues at another pace from the device's time `started`. The next request keeps its distance in time from the
    /// request before it. Nothing may be in flight.
    pub fn change_pace(&mut self, pace: Pace, started: Nanos) {
        assert_eq!(self.outstanding, 0, "a player changes its pace between requests");
        self.first_arrival = self.next.checked_sub(1).map_or(Nanos(0), |last| self.batch[last].arrival);
        (self.pace, self.started) = (pace, started);
    }

    /// Plays until `until_submitted` requests have been submitted in total, or to the end. With `finish` it waits for
    /// the requests in flight. `done` gets each completion, also of failed requests, and the device in its state at
    /// that moment.
    ///
    /// # Errors
    /// [`PlayError`] of the first request that failed or was refused, of the source, or of a dead device. Unless the
    /// device is dead or worn out, nothing is in flight then, and `done` has seen every completion. A device that wore out ends the run: what
    /// waits behind the write that it refused, millions of requests in an open loop that it can't follow, is not played.
    pub fn play<D: BlockDevice, S: RequestSource + ?Sized>(
        &mut self,
        device: &mut D,
        source: &mut S,
        until_submitted: u64,
        finish: bool,
        done: impl FnMut(&Completion, &D),
    ) -> Result<Step, PlayError> {
        self.play_gated(device, source, until_submitted, finish, &mut Open, done)
    }

    /// As [`Player::play`], with a gate that may stop it before any request.
    ///
    /// # Errors
    /// As [`Player::play`].
    pub fn play_gated<D: BlockDevice, S: RequestSource + ?Sized>(
        &mut self,
        device: &mut D,
        source: &mut S,
        until_submitted: u64,
        finish: bool,
        gate: &mut impl Gate<D>,
        mut done: impl FnMut(&Completion, &D),
    ) -> Result<Step, PlayError> {
        self.stopped = false;
        if let Some(interactive) = source.interactive() {
            return self.play_interactive(device, interactive, until_submitted, finish, gate, done);
        }
        if matches!(self.pace, Pace::Interactive | Pace::Tenants) {
            return Err(SourceError("pace: found interactive, expected open or closed for this workload".into()).into());
        }
        let issued = self.issue_until(device, source, until_submitted, gate, &mut done);
        let waits = finish || self.dry && self.next == self.batch.len();
        self.end(device, issued, waits, |completion, device| done(completion, device))
    }

    /// Submits requests until the given number is reached, the source ends, the gate closes, or something fails.
    #[inline(always)]
    fn issue_until<D: BlockDevice, S: RequestSource + ?Sized>(
        &mut self,
        device: &mut D,
        source: &mut S,
        until_submitted: u64,
        gate: &mut impl Gate<D>,
        done: &mut impl FnMut(&Completion, &D),
    ) -> Result<(), PlayError> {
        while self.submitted < until_submitted {
            if self.next == self.batch.len() && !self.refill(device, source)? {
                break;
            }
            self.announce(device);
            if !self.issue(device, gate, done)? {
                break;
            }
        }
        Ok(())
    }

    /// Plays a source that sets its own pace.
    fn play_interactive<D: BlockDevice>(
        &mut self,
        device: &mut D,
        source: &mut dyn Interactive,
        until_submitted: u64,
        finish: bool,
        gate: &mut impl Gate<D>,
        mut done: impl FnMut(&Completion, &D),
    ) -> Result<Step, PlayError> {
        let issued = self.ask_until(device, source, until_submitted, gate, &mut done);
        let waits = finish || self.dry;
        self.end(device, issued, waits, |completion, device| {
            done(completion, device);
            source.completed(completion);
        })
    }

    /// As [`Player::issue_until`], for a source that sets its own pace.
    fn ask_until<D: BlockDevice>(
        &mut self,
        device: &mut D,
        source: &mut dyn Interactive,
        until_submitted: u64,
        gate: &mut impl Gate<D>,
        done: &mut impl FnMut(&Completion, &D),
    ) -> Result<(), PlayError> {
        while self.submitted < until_submitted && !self.dry && self.failure.is_none() {
            let until = match source.next(device.now())? {
                Next::Submit(mut request) => {
                    request.arrival = device.now();
                    if !self.submit_for(device, source, request, gate)? {
                        break;
                    }
                    continue;
                }
                Next::Arrived(request) => {
                    if !self.submit_for(device, source, request, gate)? {
                        break;
                    }
                    continue;
                }
                Next::Wait(until) if until > TIME_MAX => {
                    return Err(SourceError("the workload waits for more than 100 years".into()).into());
                }
                Next::Wait(until) => until,
                Next::WaitForCompletion => Nanos(u64::MAX),
                Next::Ended => {
                    self.dry = true;
                    break;
                }
            };
            assert!(until.0 != u64::MAX || self.outstanding > 0, "a workload waits only for what is in flight");
            if self.complete_one(device, until, done)? {
                source.completed(&self.completion);
            }
        }
        Ok(())
    }

    /// Submits a request of a source that sets its own pace, unless the gate closes; returns whether it did not.
    #[inline(always)]
    fn submit_for<D: BlockDevice>(
        &mut self,
        device: &mut D,
        source: &mut dyn Interactive,
        request: Request,
        gate: &mut impl Gate<D>,
    ) -> Result<bool, PlayError> {
        if self.is_stopped_by(gate, &request, device)? {
            return Ok(false);
        }
        let drawn = source.drawn();
        if !drawn.is_empty() {
            device.expect(drawn, Ahead::Far);
            device.expect(drawn, Ahead::Near);
        }
        source.submitted(device.submit(request)?);
        self.submitted += 1;
        self.outstanding += 1;
        Ok(true)
    }

    /// Whether the first failure is that of a worn-out device.
    fn is_worn_out(&self) -> bool {
        matches!(self.failure.as_deref(), Some(IoError::WornOut { .. }))
    }

    /// Ends a call of [`Player::play`]: waits for requests in flight if this is the last call or something failed, and
    /// returns how it ended.
    fn end<D: BlockDevice>(
        &mut self,
        device: &mut D,
        issued: Result<(), PlayError>,
        waits: bool,
        mut done: impl FnMut(&Completion, &D),
    ) -> Result<Step, PlayError> {
        let ends = waits || self.stopped || self.failure.is_some() || issued.is_err();
        let mut waited = Ok(());
        while ends && self.outstanding > 0 && waited.is_ok() && !self.is_worn_out() {
            waited = self.complete_one(device, Nanos(u64::MAX), &mut done).map(|_| ());
        }
        // The first failure is the one reported.
        let failure = self.failure.take();
        issued?;
        if let Some(error) = failure {
            return Err(PlayError::Device(*error));
        }
        waited?;
        Ok(match () {
            () if self.stopped => Step::Stopped,
            () if ends => Step::Finished,
            () => Step::Paused,
        })
    }

    /// Announces to the device the requests that follow the next one, some at a time.
    #[inline(always)]
    fn announce<D: BlockDevice>(&self, device: &D) {
        if self.next.is_multiple_of(ANNOUNCED) {
            self.announce_some(device);
        }
    }

    #[inline(never)]
    fn announce_some<D: BlockDevice>(&self, device: &D) {
        for (first, ahead) in [(self.next + FAR, Ahead::Far), (self.next + NEAR, Ahead::Near)] {
            if let Some(rest) = self.batch.get(first..) {
                device.expect(&rest[..rest.len().min(ANNOUNCED)], ahead);
            }
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
            self.check_times(device.now())?;
        }
        device.expect(&self.batch[..self.batch.len().min(FAR)], Ahead::Far);
        Ok(!self.batch.is_empty())
    }

    /// Refuses times beyond [`TIME_MAX`].
    fn check_times(&self, now: Nanos) -> Result<(), SourceError> {
        if now > TIME_MAX {
            let requests = self.taken_before + self.submitted;
            return Err(SourceError(format!("after {requests} requests the drive's clock shows more than 100 years")));
        }
        let Pace::Open { time_scale } = self.pace else { return Ok(()) };
        let is_late = |request: &Request| request.arrival.max(scaled(request.arrival, time_scale)) > TIME_MAX;
        if let Some(at) = self.batch.iter().position(is_late) {
            let number = self.taken_before + self.submitted + at as u64 + 1;
            let years = self.batch[at].arrival.0 as f64 * time_scale.max(1.0) / YEAR_NS;
            return Err(SourceError(format!(
                "request {number} arrives {years:.0} years after the first, expected at most 100 years; look at the unit of \
                 the trace's times, or use a smaller time scale or a higher rate"
            )));
        }
        Ok(())
    }

    /// Submits the next request of the batch, unless a request that it waited for has failed or the gate closes.
    /// Returns whether another may follow.
    #[inline(always)]
    fn issue<D: BlockDevice>(
        &mut self,
        device: &mut D,
        gate: &mut impl Gate<D>,
        done: &mut impl FnMut(&Completion, &D),
    ) -> Result<bool, IoError> {
        // Copies first: writing to the batch and reading it back at once would stall the CPU.
        let mut request = self.batch[self.next];
        match self.pace {
            Pace::Closed { depth: 1 } => {
                request.arrival = device.now();
                if self.is_stopped_by(gate, &request, device)? {
                    return Ok(false);
                }
                self.next += 1;
                device.execute(request, &mut self.completion)?;
                self.submitted += 1;
                done(&self.completion, device);
                return Ok(!self.note_failure());
            }
            Pace::Closed { depth } => {
                while self.outstanding >= depth {
                    self.complete_one(device, Nanos(u64::MAX), done)?;
                }
                request.arrival = device.now();
            }
            Pace::Open { time_scale } => {
                request.arrival = self.started + scaled(request.arrival - self.first_arrival, time_scale);
                while self.outstanding > 0 && self.complete_one(device, request.arrival, done)? {}
            }
            Pace::Interactive | Pace::Tenants => unreachable!("refused when playing began"),
        }
        if self.failure.is_some() || self.is_stopped_by(gate, &request, device)? {
            return Ok(false);
        }
        self.next += 1;
        self.last_arrival = request.arrival;
        device.submit(request)?;
        self.submitted += 1;
        self.outstanding += 1;
        Ok(true)
    }

    #[inline(always)]
    fn is_stopped_by<D: BlockDevice>(
        &mut self,
        gate: &mut impl Gate<D>,
        request: &Request,
        device: &mut D,
    ) -> Result<bool, IoError> {
        let closes = gate.admit(request, device)?.is_break();
        self.stopped |= closes;
        Ok(closes)
    }

    /// Waits until `until` for one completion; returns whether there was one.
    #[inline(always)]
    fn complete_one<D: BlockDevice>(
        &mut self,
        device: &mut D,
        until: Nanos,
        done: &mut impl FnMut(&Completion, &D),
    ) -> Result<bool, IoError> {
        if device.wait(until, &mut self.completion)? {
            self.outstanding -= 1;
            self.note_failure();
            done(&self.completion, device);
            return Ok(true);
        }
        assert!(until.0 != u64::MAX, "a device with {} requests in flight completes one", self.outstanding);
        Ok(false)
    }

    /// Whether the request that has just completed failed in a way that ends playing. The first error is kept.
    #[inline(always)]
    fn note_failure(&mut self) -> bool {
        self.completion.result.is_err() && self.keep_failure()
    }

    #[cold]
    fn keep_failure(&mut self) -> bool {
        match &self.completion.result {
            Ok(()) => false,
            Err(error) if self.is_past_refusals && matches!(**error, IoError::Zone(_)) => false,
            Err(error) => {
                self.failure.get_or_insert_with(|| error.clone());
                true
            }
        }
    }

    /// Fast-forwards a rebuilt source to the position of a saved run.
    ///
    /// # Errors
    /// [`SourceError`] if the source fails, ends too early, or reacts to the device: its behaviour then depends on
    /// completion times, which are not saved.
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

/// Reads this many requests from a rebuilt source and drops them.
///
/// # Errors
/// [`SourceError`] if the source fails or ends too early.
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
pub(crate) fn scaled(time: Nanos, factor: f64) -> Nanos {
    // Exact without scaling; else rounded to a nanosecond.
    if factor == 1.0 { time } else { Nanos((time.0 as f64 * factor).round() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::{Bytes, DeviceInfo, RequestKind, Tag};
    use std::collections::VecDeque;

    /// A device that serves one request after the other, each in 100 us, with tags 7, 14, 21 and so on. It can fail one
    /// request, and die after a given number.
    #[derive(Default)]
    struct OneByOne {
        fails: Option<u64>,
        dies_after: Option<u64>,
        ended: u64,
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
            self.now = self.now.max(request.arrival.0);
            self.tag += 7;
            self.free_at = self.free_at.max(self.now) + 100_000;
            let (tag, start, end) = (Tag(self.tag), Nanos(self.now), Nanos(self.free_at));
            let failed = self.fails == Some(tag.0);
            let result = if failed { Err(Box::new(IoError::Device("no".into()))) } else { Ok(()) };
            self.queue.push_back(Completion { tag, request, start, end, result, ..Completion::default() });
            Ok(tag)
        }
        fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
            if self.dies_after == Some(self.ended) {
                return Err(IoError::Device("dead".into()));
            }
            match self.queue.front() {
                Some(first) if first.end <= until => {
                    self.ended += 1;
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

    /// Two reads at once, 250 us of work after both, then a write; the program ends when the write is done.
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

    /// Worked out: the reads end at 100 and 200 us, the work at 450, the write at 550.
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
            assert!(error.contains("can't be fast-forwarded"), "{error}");
        }
    }

    #[test]
    fn a_stop_after_some_requests_waits_for_them() {
        let (mut device, mut program) = (OneByOne::default(), Program::default());
        let mut player = Player::new(Pace::Interactive, Nanos(0));
        assert_eq!(player.play(&mut device, &mut program, 2, true, |_, _| {}).unwrap(), Step::Finished);
        assert_eq!(program.ended, [(7, 100_000), (14, 200_000)]);
    }

    /// A request every `gap`, each of 8 sectors.
    struct List(VecDeque<Request>);

    fn list(count: u64, gap: u64) -> List {
        List((0..count).map(|n| Request { arrival: Nanos(n * gap), sectors: 8, ..Request::default() }).collect())
    }

    impl RequestSource for List {
        fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
            let got = at_most.min(self.0.len());
            batch.extend(self.0.drain(..got));
            Ok(got)
        }
    }

    /// The completions that `done` saw, as tag over 7 and success, and how playing ended.
    fn played(device: &mut OneByOne, pace: Pace) -> (Vec<(u64, bool)>, Result<Step, PlayError>, Player) {
        let (mut player, mut seen) = (Player::new(pace, Nanos(0)), Vec::new());
        let end = player.play(device, &mut list(100, 50_000), u64::MAX, false, |completion, _| {
            seen.push((completion.tag.0 / 7, completion.result.is_ok()));
        });
        (seen, end, player)
    }

    /// The fifth request fails. At depth 4 three more are in flight then. In the open loop requests arrive every 50 us:
    /// those up to 450 us are submitted before the fifth ends, and the one at 500 us when its failure is noticed.
    #[test]
    fn after_a_failure_nothing_is_issued_and_everything_completes() {
        for (pace, last) in
            [(Pace::Closed { depth: 1 }, 5), (Pace::Closed { depth: 4 }, 8), (Pace::Open { time_scale: 1.0 }, 10)]
        {
            let mut device = OneByOne { fails: Some(5 * 7), ..OneByOne::default() };
            let (seen, end, player) = played(&mut device, pace);
            assert_eq!(end, Err(PlayError::Device(IoError::Device("no".into()))), "{pace:?}");
            let expected: Vec<_> = (1..=last).map(|n| (n, n != 5)).collect();
            assert_eq!((seen, player.submitted()), (expected, last), "{pace:?}");
            assert!(device.queue.is_empty() && player.outstanding == 0, "{pace:?}: something is left");
        }
    }

    #[test]
    fn playing_can_go_on_after_a_failure() {
        let mut device = OneByOne { fails: Some(5 * 7), ..OneByOne::default() };
        let (mut player, mut source) = (Player::new(Pace::Closed { depth: 4 }, Nanos(0)), list(20, 0));
        let mut seen = 0;
        assert!(player.play(&mut device, &mut source, u64::MAX, false, |_, _| seen += 1).is_err());
        let end = player.play(&mut device, &mut source, u64::MAX, false, |_, _| seen += 1);
        assert_eq!((end, seen, player.submitted()), (Ok(Step::Finished), 20, 20), "no request is lost or played twice");
    }

    #[test]
    fn a_dead_device_ends_playing_at_once() {
        let mut device = OneByOne { dies_after: Some(3), ..OneByOne::default() };
        let (seen, end, _) = played(&mut device, Pace::Closed { depth: 4 });
        assert_eq!(end, Err(PlayError::Device(IoError::Device("dead".into()))));
        assert_eq!(seen.len(), 3);
    }

    #[test]
    fn an_interactive_source_hears_of_failures_too() {
        let (mut device, mut program) = (OneByOne { fails: Some(7), ..OneByOne::default() }, Program::default());
        let mut player = Player::new(Pace::Interactive, Nanos(0));
        let end = player.play(&mut device, &mut program, u64::MAX, false, |_, _| {});
        assert_eq!(end, Err(PlayError::Device(IoError::Device("no".into()))));
        assert_eq!(program.ended, [(7, 100_000), (14, 200_000)], "the one that failed and the one in flight with it");
        assert!(device.queue.is_empty());
    }

    /// Closes at the seventh request.
    struct Closing(u64);

    impl<D> Gate<D> for Closing {
        fn admit(&mut self, _: &Request, _: &mut D) -> Result<ControlFlow<()>, IoError> {
            self.0 += 1;
            Ok(if self.0 == 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        }
    }

    #[test]
    fn a_gate_stops_playing_between_requests() {
        let mut device = OneByOne::default();
        let (mut player, mut source) = (Player::new(Pace::Closed { depth: 4 }, Nanos(0)), list(20, 0));
        let (mut gate, mut seen) = (Closing(0), 0);
        let mut play = |player: &mut Player, gate: &mut Closing| {
            player.play_gated(&mut device, &mut source, u64::MAX, false, gate, |_, _| seen += 1)
        };
        assert_eq!(play(&mut player, &mut gate), Ok(Step::Stopped));
        assert_eq!((player.submitted(), player.outstanding), (6, 0));
        assert_eq!(play(&mut player, &mut gate), Ok(Step::Finished), "the request at the gate was not lost");
        assert_eq!((player.submitted(), seen), (20, 20));
    }
}
