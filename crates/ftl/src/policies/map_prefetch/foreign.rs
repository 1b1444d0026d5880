//! The adapter for prefetch policies from outside ([`crate::policies::foreign`]). A policy is asked once for each miss.

use super::{Around, MapCacheContext, Miss};
use crate::policies::foreign::FaultCell;
use flashwright_block::Rng;
use std::sync::Arc;

/// Builds the prefetch policy of a drive.
pub trait MakeMapPrefetch {
    /// Its name in messages.
    fn name(&self) -> &str;
    /// The policy, for an empty cache, with a random stream of its own.
    fn make(&self, context: MapCacheContext, rng: Rng) -> Box<dyn PrefetchEntries>;
}

/// Chooses the entries that are loaded beside a missing one.
pub trait PrefetchEntries: std::fmt::Debug + Send + Sync {
    /// How many entries after the missing one, and how many before it.
    ///
    /// # Errors
    /// The reason why it can't go on; likewise below.
    fn prefetch(&mut self, miss: &Miss) -> Result<(i64, i64), String>;
    /// A translation page has its first entry in the cache.
    fn page_came(&mut self, page: u32) -> Result<(), String>;
    /// The last entry of a translation page left the cache.
    fn page_left(&mut self, page: u32) -> Result<(), String>;
    /// A copy that continues as this one would.
    fn again(&self) -> Box<dyn PrefetchEntries>;
}

impl Clone for Box<dyn PrefetchEntries> {
    fn clone(&self) -> Self {
        self.again()
    }
}

/// A foreign prefetch policy in use.
#[derive(Clone, Debug)]
pub struct ForeignMapPrefetch {
    policy: Box<dyn PrefetchEntries>,
    name: Arc<str>,
    fault: FaultCell,
}

impl ForeignMapPrefetch {
    pub(crate) fn new(maker: &dyn MakeMapPrefetch, context: MapCacheContext, rng: Rng, fault: FaultCell) -> Self {
        Self { policy: maker.make(context, rng), name: maker.name().into(), fault }
    }

    /// What the policy answers; after a fault nothing, unasked.
    fn ask<R: Default>(&mut self, ask: impl FnOnce(&mut dyn PrefetchEntries) -> Result<R, String>) -> R {
        if self.fault.get().is_some() {
            return R::default();
        }
        ask(&mut *self.policy).unwrap_or_else(|what| {
            self.fault.set(format!("{}: {what}", self.name));
            R::default()
        })
    }

    pub(super) fn prefetch(&mut self, miss: &Miss) -> Around {
        self.ask(|policy| {
            let (after, before) = policy.prefetch(miss)?;
            let within = |entries: i64, most: u32, side: &str| {
                let fits = u32::try_from(entries).ok().filter(|entries| *entries <= most);
                fits.ok_or_else(|| {
                    format!(
                        "logical page {}: prefetch answered {entries} entries {side} it, expected 0 to {most}, which its \
                         translation page has there",
                        miss.lpn
                    )
                })
            };
            Ok(Around { after: within(after, miss.after, "after")?, before: within(before, miss.before, "before")? })
        })
    }

    pub(super) fn page_came(&mut self, page: u32) {
        self.ask(|policy| policy.page_came(page));
    }

    pub(super) fn page_left(&mut self, page: u32) {
        self.ask(|policy| policy.page_left(page));
    }
}
