//! A filter that lets some requests fail, for tests of everything above a device.

use crate::disk::{cut_short, place};
use flashwright_block::{
    Ahead, BlockDevice, Completion, DeviceInfo, IoError, Nanos, Request, Rng, SECTOR_BYTES, Seed, Tag, chance,
};

/// Which requests are hit, in order of submission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Which {
    /// Only this one, counted from 1.
    Nth(u64),
    /// This one and every so many after it: 3 hits the third, the sixth and so on.
    Every(u64),
    /// Each with this probability, 0 to 1.
    Share {
        /// The probability.
        share: f64,
        /// One seed hits the same requests again.
        seed: Seed,
    },
}

/// What becomes of a request that is hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It ends with an error.
    Fail,
    /// Half of it, in whole blocks and at least one, is carried out; then it ends with an error.
    Shorten,
}

/// A device some of whose requests fail when they complete.
///
/// ```
/// # use flashwright_block::{BlockDevice, Completion, DeviceInfo, IoError, Nanos, Request, Tag};
/// # use flashwright_disk::{Effect, Faulty, Which};
/// # fn second_fails<D: BlockDevice>(device: D) {
/// let mut device = Faulty::new(device, Which::Nth(2), Effect::Fail);
/// let request = Request { sectors: 8, ..Request::default() };
/// let mut completion = Completion::default();
/// assert!(device.execute(request, &mut completion).is_ok());
/// assert!(device.execute(request, &mut completion).is_err());
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
    /// Lets requests of `inner` fail.
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
        self.submitted += 1;
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

    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        let mut ended = Completion::default();
        if !self.inner.wait(until, &mut ended)? {
            return Ok(false);
        }
        if let Some(at) = self.hit.iter().position(|(tag, _)| *tag == ended.tag) {
            let (_, asked) = self.hit.swap_remove(at);
            return Err(match self.effect {
                Effect::Fail => IoError::Device(format!("{}: Input/output error (injected)", place(&asked))),
                Effect::Shorten => cut_short(&asked, u64::from(ended.request.sectors) * SECTOR_BYTES),
            });
        }
        *completion = ended;
        Ok(true)
    }

    fn expect(&self, request: &Request, ahead: Ahead) {
        self.inner.expect(request, ahead);
    }
}

/// Half a request in whole blocks of the device, at least one.
fn half(request: &Request, info: &DeviceInfo) -> u32 {
    let block = u32::try_from(info.sector.0 / SECTOR_BYTES).unwrap_or(1).max(1);
    (request.sectors / 2 / block * block).max(block.min(request.sectors))
}
