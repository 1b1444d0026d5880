//! The adapter for replacement policies from outside ([`crate::policies::foreign`]).
//!
//! The policy is told what enters, is used and leaves, and is asked once for each entry that has to leave. State here:
//! a byte per slot.

use super::MapCacheContext;
use crate::policies::foreign::FaultCell;
use flashwright_block::Rng;
use std::sync::Arc;

/// Builds the replacement policy of a drive.
pub trait MakeMapCache {
    /// Its name in messages.
    fn name(&self) -> &str;
    /// The policy, for an empty cache, with a random stream of its own.
    fn make(&self, context: MapCacheContext, rng: Rng) -> Box<dyn ReplaceEntries>;
}

/// Chooses which entry of the cached map leaves.
pub trait ReplaceEntries: std::fmt::Debug + Send + Sync {
    /// An entry of a translation page was loaded into a slot.
    ///
    /// # Errors
    /// The reason why it can't go on; likewise below.
    fn loaded(&mut self, slot: u32, page: u32) -> Result<(), String>;
    /// The entry of a slot was looked up and found.
    fn used(&mut self, slot: u32) -> Result<(), String>;
    /// The entry of a slot has left.
    fn left(&mut self, slot: u32) -> Result<(), String>;
    /// The slot whose entry leaves next.
    fn evict(&mut self) -> Result<i64, String>;
    /// A copy that continues as this one would.
    fn again(&self) -> Box<dyn ReplaceEntries>;
}

impl Clone for Box<dyn ReplaceEntries> {
    fn clone(&self) -> Self {
        self.again()
    }
}

/// A foreign replacement policy in use. Its methods are not inlined, so that native policies do not pay for them.
#[derive(Clone, Debug)]
pub struct ForeignMapCache {
    policy: Box<dyn ReplaceEntries>,
    /// By slot, whether it has an entry.
    held: Vec<bool>,
    entries: u32,
    /// The answer that stands until anything changes.
    next: Option<u32>,
    name: Arc<str>,
    fault: FaultCell,
}

impl ForeignMapCache {
    pub(crate) fn new(maker: &dyn MakeMapCache, context: MapCacheContext, rng: Rng, fault: FaultCell) -> Self {
        let held = vec![false; context.entries as usize];
        Self { policy: maker.make(context, rng), held, entries: 0, next: None, name: maker.name().into(), fault }
    }

    fn tell(&mut self, tell: impl FnOnce(&mut dyn ReplaceEntries) -> Result<(), String>) {
        self.next = None;
        if self.fault.get().is_none()
            && let Err(what) = tell(&mut *self.policy)
        {
            self.fault.set(format!("{}: {what}", self.name));
        }
    }

    #[inline(never)]
    pub(super) fn loaded(&mut self, slot: u32, page: u32) {
        if self.held.len() <= slot as usize {
            self.held.resize(slot as usize + 1, false);
        }
        self.held[slot as usize] = true;
        self.entries += 1;
        self.tell(|policy| policy.loaded(slot, page));
    }

    #[inline(never)]
    pub(super) fn touched(&mut self, slot: u32) {
        self.tell(|policy| policy.used(slot));
    }

    #[inline(never)]
    pub(super) fn removed(&mut self, slot: u32) {
        self.held[slot as usize] = false;
        self.entries -= 1;
        self.tell(|policy| policy.left(slot));
    }

    /// After a fault any entry, so that what is under way can end.
    #[inline(never)]
    pub(super) fn victim(&mut self) -> Option<u32> {
        if self.entries > 0 && self.next.is_none() && self.fault.get().is_none() {
            let answer = self.policy.evict().and_then(|slot| {
                let held = u32::try_from(slot).ok().filter(|slot| self.held.get(*slot as usize) == Some(&true));
                held.ok_or_else(|| {
                    format!(
                        "evict answered slot {slot}, which is empty; expected one of the {} with an entry",
                        self.entries
                    )
                })
            });
            match answer {
                Ok(slot) => self.next = Some(slot),
                Err(what) => self.fault.set(format!("{}: {what}", self.name)),
            }
        }
        self.next.or_else(|| self.held.iter().position(|held| *held).and_then(|slot| u32::try_from(slot).ok()))
    }

    pub(super) fn entries(&self) -> u32 {
        self.entries
    }
}
