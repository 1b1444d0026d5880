//! A filter that makes some requests fail, for tests of everything above a device.

use crate::disk::{cut_short, place};
use flashwright_block::{
    Ahead, BlockDevice, Completion, Contents, DeviceInfo, IoError, Nanos, Request, Rng, SECTOR_BYTES, Seed, Tag, chance,
};

/// Which requests fail, in order of submission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Which {
    /// Only this request, counted from 1.
    Nth(u64),
    /// Every n-th request: 3 affects the third, the sixth and so on.
    Every(u64),
    /// Each with this probability, 0 to 1.
    Share {
        /// The probability.
        share: f64,
        /// The seed; the same seed affects the same requests.
        seed: Seed,
    },
}

/// The effect on such a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It fails with an error.
    Fail,
    /// Half of it, in whole blocks and at least one, is carried out; then it fails with an error.
    Shorten,
}

/// A device on which some requests fail when they complete.
///
/// ```
/// # use flashwright_block::{BlockDevice, Completion, DeviceInfo, IoError, Nanos, Request, Tag};
/// # use flashwright_disk::{Effect, Faulty, Which};
/// # fn second_fails<D: BlockDevice>(device: D) -> Result<(), IoError> {
/// let mut device = Faulty::new(device, Which::Nth(2), Effect::Fail);
/// let request = Request { sectors: 8, ..Request::default() };
/// let mut completion = Completion::default();
/// device.execute(request, &mut completion)?;
/// assert!(completion.result.is_ok());
/// device.execute(request, &mut completion)?;
/// assert!(completion.result.is_err());
/// # Ok::<(), IoError>(())
/// # }
/// ```
#[derive(Debug)]
pub struct Faulty<D> {
    inner: D,
    which: Which,
    effect: Effect,
    submitted: u64,
    rng: Rng,
    hit: Vec<(Tag, Request)>,
}

impl<D: BlockDevice> Faulty<D> {
    /// Makes requests of `inner` fail.
    pub fn new(inner: D, which: Which, effect: Effect) -> Self {
        let seed = if let Which::Share { seed, .. } = which { seed } else { Seed(0) };
        Self { inner, which, effect, submitted: 0, rng: seed.stream("faults"), hit: Vec::new() }
    }

    fn hits(&mut self) -> bool {
        match self.which {
            Which::Nth(n) => self.submitted == n,
            Which::Every(n) => n > 0 && self.submitted.is_multiple_of(n),
            Which::Share { share, .. } => chance(&mut self.rng, share),
        }
    }
}

impl<D: BlockDevice> BlockDevice for Faulty<D> {
    fn info(&self) -> DeviceInfo {
        self.inner.info()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        // A request that the device refuses was not submitted: no number is drawn for it.
        let before = (self.submitted, self.rng.clone());
        self.submitted += 1;
        let submitted = self.hand_on(request);
        if submitted.is_err() {
            (self.submitted, self.rng) = before;
        }
        submitted
    }

    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        if !self.inner.wait(until, completion)? {
            return Ok(false);
        }
        if let Some(at) = self.hit.iter().position(|(tag, _)| *tag == completion.tag) {
            let (_, asked) = self.hit.swap_remove(at);
            let moved = u64::from(completion.request.sectors) * SECTOR_BYTES;
            completion.request = asked;
            // If the device fails it too, the device's error counts.
            if completion.result.is_ok() {
                completion.result = Err(Box::new(match self.effect {
                    Effect::Fail => IoError::Device(format!("{}: Input/output error (injected)", place(&asked))),
                    Effect::Shorten => cut_short(&asked, moved),
                }));
            }
        }
        Ok(true)
    }

    fn expect(&self, requests: &[Request], ahead: Ahead) {
        self.inner.expect(requests, ahead);
    }

    fn carries(&mut self, contents: Contents) {
        self.inner.carries(contents);
    }
}

impl<D: BlockDevice> Faulty<D> {
    /// Passes on a request, or the part of it to carry out.
    fn hand_on(&mut self, request: Request) -> Result<Tag, IoError> {
        if !self.hits() {
            return self.inner.submit(request);
        }
        let carried_out = match self.effect {
            Effect::Fail => request,
            Effect::Shorten => Request { sectors: half(&request, &self.inner.info()), ..request },
        };
        let tag = self.inner.submit(carried_out)?;
        self.hit.push((tag, request));
        Ok(tag)
    }
}

/// Half a request in whole blocks of the device, at least one.
fn half(request: &Request, info: &DeviceInfo) -> u32 {
    let block = u32::try_from(info.sector.0 / SECTOR_BYTES).unwrap_or(1).max(1);
    (request.sectors / 2 / block * block).max(block.min(request.sectors))
}
