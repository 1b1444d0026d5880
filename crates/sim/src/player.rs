//! Plays requests on a block device, open loop by arrival time or closed loop with a queue depth.
//!
//! The player knows nothing of flash: any [`BlockDevice`] will do. Requests are fetched in batches so that the ones to
//! come can be announced, and a run can be played in steps: between two of them the caller shows progress, saves the
//! state, or stops.

use flashwright_block::{Ahead, BlockDevice, Completion, IoError, Nanos, Request, RequestSource, SourceError};
use serde::{Deserialize, Serialize};

/// When requests are issued.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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

const BATCH: usize = 256;
const FAR: usize = 32;
const NEAR: usize = 14;

/// Plays a source on a device. Holds no borrow of either, so that a run can be saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Player {
    pace: Pace,
    submitted: u64,
    outstanding: u32,
    /// Added to arrival times: the device's clock when playing began.
    started: Nanos,
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
            started,
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
                request.arrival = self.started + scaled(request.arrival, time_scale);
                while self.outstanding > 0 && self.complete_one(device, request.arrival, done)? {}
            }
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
    /// [`SourceError`] if the source fails or ends before.
    pub fn rewind<S: RequestSource + ?Sized>(&mut self, source: &mut S) -> Result<(), SourceError> {
        let mut skipped = 0;
        while skipped < self.submitted {
            self.batch.clear();
            let wanted = usize::try_from(self.submitted - skipped).unwrap_or(BATCH).min(BATCH);
            let got = source.fill(&mut self.batch, wanted)?;
            if got == 0 {
                return Err(SourceError(format!(
                    "the workload ends after {skipped} requests, but the saved run had played {}; it is not the same \
                     workload",
                    self.submitted
                )));
            }
            skipped += got as u64;
        }
        self.batch.clear();
        self.next = 0;
        self.dry = false;
        Ok(())
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn scaled(time: Nanos, factor: f64) -> Nanos {
    // Exact where nothing is scaled; else rounded to a nanosecond.
    if factor == 1.0 { time } else { Nanos((time.0 as f64 * factor).round() as u64) }
}
