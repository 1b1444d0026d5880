//! The adapter for replacement policies from outside ([`crate::policies::foreign`]).
//!
//! A policy is told what enters, is used and leaves, and is asked once for each entry that has to leave; or it rates all entries, and
//! is asked once for many that leave ([`super::scored`]). State of the former here: a byte per slot.

use super::MapCacheContext;
use super::scored::{ScoreEntries, Scored};
use crate::policies::foreign::FaultCell;
use flashwright_block::Rng;
use std::sync::Arc;

/// Builds the replacement policy of a drive.
pub trait MakeMapCache {
    /// Its name in messages.
    fn name(&self) -> &str;
    /// The policy, for an empty cache, with a random stream of its own.
    fn make(&self, context: MapCacheContext, rng: Rng) -> Replacing;
}

/// How a policy chooses.
pub enum Replacing {
    /// By itself, from what it keeps of each entry.
    Following(Box<dyn ReplaceEntries>),
    /// By rating all entries, of which so many leave; 0 for a share of the cache.
    Score(Box<dyn ScoreEntries>, u32),
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

/// A policy that follows each entry, and what it must not get wrong.
#[derive(Clone, Debug)]
struct Following {
    policy: Box<dyn ReplaceEntries>,
    /// By slot, whether it has an entry.
    held: Vec<bool>,
    /// The answer that stands until anything changes.
    next: Option<u32>,
}

impl Following {
    fn next(&mut self) -> Result<u32, String> {
        if let Some(next) = self.next {
            return Ok(next);
        }
        let slot = self.policy.evict()?;
        let held = u32::try_from(slot).ok().filter(|slot| self.held.get(*slot as usize) == Some(&true));
        self.next = held;
        held.ok_or_else(|| {
            let entries = self.held.iter().filter(|held| **held).count();
            format!("evict answered slot {slot}, which is empty; expected one of the {entries} with an entry")
        })
    }

    fn any(&self) -> Option<u32> {
        (0..).zip(&self.held).find(|(_, held)| **held).map(|(slot, _)| slot)
    }
}

#[derive(Clone, Debug)]
enum Chooses {
    Following(Following),
    Scored(Scored),
}

/// A foreign replacement policy in use. Its methods are not inlined, so that native policies do not pay for them.
#[derive(Clone, Debug)]
pub struct ForeignMapCache {
    chooses: Chooses,
    entries: u32,
    name: Arc<str>,
    fault: FaultCell,
}

impl ForeignMapCache {
    pub(crate) fn new(maker: &dyn MakeMapCache, context: MapCacheContext, rng: Rng, fault: FaultCell) -> Self {
        let chooses = match maker.make(context, rng) {
            Replacing::Following(policy) => {
                let held = vec![false; context.entries as usize];
                Chooses::Following(Following { policy, held, next: None })
            }
            Replacing::Score(policy, batch) => Chooses::Scored(Scored::new(policy, context.entries, batch)),
        };
        Self { chooses, entries: 0, name: maker.name().into(), fault }
    }

    /// Hands an event to a policy that follows each entry.
    fn tell(&mut self, tell: impl FnOnce(&mut dyn ReplaceEntries) -> Result<(), String>) {
        let Chooses::Following(policy) = &mut self.chooses else { return };
        policy.next = None;
        if self.fault.get().is_none()
            && let Err(what) = tell(&mut *policy.policy)
        {
            self.fault.set(format!("{}: {what}", self.name));
        }
    }

    #[inline(never)]
    pub(super) fn loaded(&mut self, slot: u32, page: u32) {
        self.entries += 1;
        match &mut self.chooses {
            Chooses::Scored(scored) => scored.loaded(slot, page),
            Chooses::Following(policy) => {
                if policy.held.len() <= slot as usize {
                    policy.held.resize(slot as usize + 1, false);
                }
                policy.held[slot as usize] = true;
                self.tell(|policy| policy.loaded(slot, page));
            }
        }
    }

    #[inline(never)]
    pub(super) fn touched(&mut self, slot: u32) {
        match &mut self.chooses {
            Chooses::Scored(scored) => scored.used(slot),
            Chooses::Following(_) => self.tell(|policy| policy.used(slot)),
        }
    }

    #[inline(never)]
    pub(super) fn removed(&mut self, slot: u32) {
        self.entries -= 1;
        match &mut self.chooses {
            Chooses::Scored(scored) => scored.left(slot),
            Chooses::Following(policy) => {
                policy.held[slot as usize] = false;
                self.tell(|policy| policy.left(slot));
            }
        }
    }

    /// After a fault any entry, so that what is under way can end.
    #[inline(never)]
    pub(super) fn victim(&mut self, is_dirty: impl Fn(u32) -> bool) -> Option<u32> {
        if self.entries == 0 {
            return None;
        }
        if self.fault.get().is_none() {
            let next = match &mut self.chooses {
                Chooses::Following(policy) => policy.next(),
                Chooses::Scored(scored) => scored.next(is_dirty),
            };
            match next {
                Ok(slot) => return Some(slot),
                Err(what) => self.fault.set(format!("{}: {what}", self.name)),
            }
        }
        match &self.chooses {
            Chooses::Following(policy) => policy.next.or_else(|| policy.any()),
            Chooses::Scored(scored) => scored.any(),
        }
    }

    pub(super) fn entries(&self) -> u32 {
        self.entries
    }
}
