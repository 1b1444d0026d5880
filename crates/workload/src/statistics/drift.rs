//! How long hot chunks stay hot.
//!
//! The stream is cut into at most 32 epochs of as many requests each. The hot chunks of an epoch are the tenth of its chunks
//! of 64 KiB with the most accesses. What share of the accesses of a later epoch goes to them?
//!
//! Exact up to [`FOLLOWED_MAX`] chunks of all epochs together. Beyond them, chunks are sampled by their hash, as pages are in
//! [`super::reuse`].

use super::PAGE_SECTORS;
use super::reuse::sampled;
use crate::trace::PageHasher;
use flashwright_block::Request;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

type ByChunk<T> = HashMap<u64, T, BuildHasherDefault<PageHasher>>;

/// Requests of an epoch at first; when there are too many epochs, they are joined in pairs.
const EPOCH: u64 = 512;
const EPOCHS_MAX: usize = 32;
const CHUNK_SECTORS: u64 = 16 * PAGE_SECTORS;
/// Chunks that are followed at most, those of each epoch for themselves.
const FOLLOWED_MAX: usize = 1 << 22;
/// The hot part of the chunks touched in an epoch: one of so many.
const HOT_ONE_OF: usize = 10;

/// How long hot chunks stay hot.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Drift {
    /// Reads and writes of an epoch.
    pub epoch_requests: u64,
    /// By the distance of the epochs; lag 0 is the epoch itself.
    pub lags: Vec<Lag>,
}

/// One distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Lag {
    /// Requests between the starts of the two epochs.
    pub requests: u64,
    /// The share of accesses that go to the chunks which were hot that long ago, the mean over all such pairs of epochs.
    pub share: f64,
}

pub(crate) struct Collector {
    followed_max: usize,
    /// Chunks that are followed, and how often their number was halved: see [`sampled`].
    followed: usize,
    halvings: u32,
    epochs: Vec<ByChunk<u32>>,
    /// Requests of an epoch, as a multiple of [`EPOCH`] that is a power of two.
    joined: u32,
    /// Requests of the last epoch.
    filled: u64,
}

impl Default for Collector {
    fn default() -> Self {
        Self::at_most(FOLLOWED_MAX)
    }
}

impl Collector {
    /// One that follows at most so many chunks.
    fn at_most(followed_max: usize) -> Self {
        Self { followed_max, followed: 0, halvings: 0, epochs: Vec::new(), joined: 0, filled: 0 }
    }

    pub(crate) fn add(&mut self, request: &Request) {
        if self.epochs.is_empty() || self.filled == EPOCH << self.joined {
            if self.epochs.len() == EPOCHS_MAX {
                self.join();
            }
            self.epochs.push(ByChunk::default());
            self.filled = 0;
        }
        self.filled += 1;
        let (first, last) = (request.first_sector / CHUNK_SECTORS, (request.end_sector() - 1) / CHUNK_SECTORS);
        for chunk in first..=last {
            if !sampled(chunk, self.halvings) {
                continue;
            }
            let epoch = self.epochs.last_mut().expect("one was pushed");
            let before = epoch.len();
            *epoch.entry(chunk).or_default() += 1;
            self.followed += epoch.len() - before;
            if self.followed > self.followed_max {
                self.halve();
            }
        }
    }

    /// Follows half of the chunks no longer.
    fn halve(&mut self) {
        self.halvings += 1;
        let halvings = self.halvings;
        for epoch in &mut self.epochs {
            epoch.retain(|chunk, _| sampled(*chunk, halvings));
            epoch.shrink_to_fit();
        }
        self.count();
    }

    fn count(&mut self) {
        self.followed = self.epochs.iter().map(HashMap::len).sum();
    }

    /// Joins each epoch with the next.
    #[allow(clippy::iter_over_hash_type)] // a sum has no order
    fn join(&mut self) {
        self.joined += 1;
        let mut pairs = std::mem::take(&mut self.epochs).into_iter();
        while let Some(mut epoch) = pairs.next() {
            for (chunk, count) in pairs.next().unwrap_or_default() {
                *epoch.entry(chunk).or_default() += count;
            }
            self.epochs.push(epoch);
        }
        self.count();
    }

    #[allow(clippy::cast_precision_loss)] // shares
    pub(crate) fn finish(mut self) -> Drift {
        let epoch_requests = EPOCH << self.joined;
        if self.filled < epoch_requests && self.epochs.len() > 1 {
            self.epochs.pop();
        }
        let hot: Vec<_> = self.epochs.iter().map(hot).collect();
        // Of an epoch with few chunks none may be followed; where that is so of all at a distance, the list ends.
        let lags = (0..self.epochs.len()).map_while(|lag| {
            let pairs = hot.iter().zip(&self.epochs[lag..]).filter(|(_, epoch)| !epoch.is_empty());
            let shares: Vec<f64> = pairs.map(|(hot, epoch)| share(hot, epoch)).collect();
            let share = shares.iter().sum::<f64>() / shares.len() as f64;
            (!shares.is_empty()).then_some(Lag { requests: lag as u64 * epoch_requests, share })
        });
        Drift { epoch_requests, lags: lags.collect() }
    }
}

/// The chunks with the most accesses; of equal ones the lower.
#[allow(clippy::iter_over_hash_type)] // sorted below
fn hot(epoch: &ByChunk<u32>) -> HashSet<u64, BuildHasherDefault<PageHasher>> {
    let mut chunks: Vec<(u32, u64)> = epoch.iter().map(|(&chunk, &count)| (count, chunk)).collect();
    chunks.sort_unstable_by_key(|&(count, chunk)| (std::cmp::Reverse(count), chunk));
    let kept = chunks.len().div_ceil(HOT_ONE_OF);
    chunks.into_iter().take(kept).map(|(_, chunk)| chunk).collect()
}

#[allow(clippy::iter_over_hash_type, clippy::cast_precision_loss)] // whole sums have no order; a share
fn share(hot: &HashSet<u64, BuildHasherDefault<PageHasher>>, epoch: &ByChunk<u32>) -> f64 {
    let (mut on_hot, mut all) = (0_u64, 0_u64);
    for (chunk, &count) in epoch {
        all += u64::from(count);
        on_hot += if hot.contains(chunk) { u64::from(count) } else { 0 };
    }
    on_hot as f64 / all as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::{Seed, below, chance};

    #[test]
    fn sampled_shares_are_near_the_exact_ones() {
        let (mut exact, mut bounded) = (Collector::default(), Collector::at_most(20_000));
        let mut rng = Seed(3).stream("drift");
        for number in 0..60_000_u64 {
            // Half of the accesses to a hundred chunks, which move on slowly; the others anywhere among 20,000.
            let chunk = if chance(&mut rng, 0.5) {
                (number / 100 + below(&mut rng, 100)) % 20_000
            } else {
                below(&mut rng, 20_000)
            };
            let request = Request { first_sector: chunk * CHUNK_SECTORS, sectors: 8, ..Request::default() };
            exact.add(&request);
            bounded.add(&request);
            assert!(
                bounded.followed <= 20_000
                    && bounded.followed == bounded.epochs.iter().map(HashMap::len).sum::<usize>()
            );
        }
        assert!(bounded.halvings >= 1 && exact.halvings == 0);
        let (exact, bounded) = (exact.finish(), bounded.finish());
        assert_eq!(exact.lags.len(), bounded.lags.len());
        for (one, other) in exact.lags.iter().zip(&bounded.lags) {
            assert!((one.share - other.share).abs() < 0.05, "{one:?} {other:?}");
        }
    }

    #[test]
    fn a_read_of_two_tebibytes_takes_bounded_memory() {
        let mut found = Collector::at_most(1000);
        found.add(&Request { sectors: u32::MAX, ..Request::default() });
        assert!(found.followed <= 1000 && found.epochs[0].capacity() < 4000);
        assert!(found.finish().lags[0].share.is_finite());
    }
}
