//! How long hot chunks stay hot.
//!
//! The stream is cut into at most 32 epochs of as many requests each. The hot chunks of an epoch are the tenth of its chunks
//! of 64 KiB with the most accesses. What share of the accesses of a later epoch goes to them?

use super::PAGE_SECTORS;
use crate::trace::PageHasher;
use flashwright_block::Request;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

type ByChunk<T> = HashMap<u64, T, BuildHasherDefault<PageHasher>>;

/// Requests of an epoch at first; when there are too many epochs, they are joined in pairs.
const EPOCH: u64 = 512;
const EPOCHS_MAX: usize = 32;
const CHUNK_SECTORS: u64 = 16 * PAGE_SECTORS;
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

#[derive(Default)]
pub(crate) struct Collector {
    epochs: Vec<ByChunk<u32>>,
    /// Requests of an epoch, as a multiple of [`EPOCH`] that is a power of two.
    joined: u32,
    /// Requests of the last epoch.
    filled: u64,
}

impl Collector {
    pub(crate) fn add(&mut self, request: &Request) {
        if self.epochs.is_empty() || self.filled == EPOCH << self.joined {
            if self.epochs.len() == EPOCHS_MAX {
                self.join();
            }
            self.epochs.push(ByChunk::default());
            self.filled = 0;
        }
        self.filled += 1;
        let epoch = self.epochs.last_mut().expect("one was pushed");
        let (first, last) = (request.first_sector / CHUNK_SECTORS, (request.end_sector() - 1) / CHUNK_SECTORS);
        for chunk in first..=last {
            *epoch.entry(chunk).or_default() += 1;
        }
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
    }

    #[allow(clippy::cast_precision_loss)] // shares
    pub(crate) fn finish(mut self) -> Drift {
        let epoch_requests = EPOCH << self.joined;
        if self.filled < epoch_requests && self.epochs.len() > 1 {
            self.epochs.pop();
        }
        let hot: Vec<_> = self.epochs.iter().map(hot).collect();
        let lags = (0..self.epochs.len()).map(|lag| {
            let pairs = hot.iter().zip(&self.epochs[lag..]);
            let shares: Vec<f64> = pairs.map(|(hot, epoch)| share(hot, epoch)).collect();
            let share = shares.iter().sum::<f64>() / shares.len() as f64;
            Lag { requests: lag as u64 * epoch_requests, share }
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
