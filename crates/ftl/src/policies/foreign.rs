//! Policies from outside the simulator, which are on no list: objects that a user passes in when a drive is built, for
//! instance written in Python.
//!
//! A listed policy is known at compile time and is called for each page. A foreign one is a boxed object that is called
//! only for decisions, with tables that the adapter keeps for it. Its answers are checked. If it fails or gives an
//! impossible answer, the reason is stored in the drive's [`FaultCell`] and the policy is not called again: cleaning
//! then finds no victim, and placement uses the first stream. The code that built the drive checks the cell and ends
//! the run. Foreign policies are not saved.

use super::map_cache::MakeMapCache;
use super::map_prefetch::MakeMapPrefetch;
use super::placement::MakePlacement;
use super::schedule::MakeSchedule;
use super::victim::MakeVictim;
use super::wear::MakeWear;
use crate::schemes::MakeFtl;
use std::sync::{Arc, OnceLock};

/// Foreign policies for a translation layer, or a whole one, each in place of the one that the settings name.
#[derive(Default)]
pub struct Foreign {
    /// The translation layer.
    pub ftl: Option<Box<dyn MakeFtl>>,
    /// The block that is cleaned.
    pub victim: Option<Box<dyn MakeVictim>>,
    /// The frontier that a page goes to.
    pub placement: Option<Box<dyn MakePlacement>>,
    /// The entry that leaves a cached map.
    pub map_cache: Option<Box<dyn MakeMapCache>>,
    /// The entries that are loaded into a cached map beside one that is asked for.
    pub map_prefetch: Option<Box<dyn MakeMapPrefetch>>,
    /// The block whose data move for the sake of wear.
    pub wear: Option<Box<dyn MakeWear>>,
    /// When cleaning runs.
    pub schedule: Option<Box<dyn MakeSchedule>>,
    /// Where they report why they can't continue.
    pub fault: FaultCell,
}

impl Foreign {
    /// The policies, a whole translation layer aside: what each decides, and its name.
    #[must_use]
    pub fn policies(&self) -> Vec<(&'static str, &str)> {
        let Self { ftl: _, victim, placement, map_cache, map_prefetch, wear, schedule, fault: _ } = self;
        let all = [
            victim.as_deref().map(|maker| ("victim", maker.name())),
            placement.as_deref().map(|maker| ("placement", maker.name())),
            map_cache.as_deref().map(|maker| (Self::OF_MAP_CACHE[0], maker.name())),
            map_prefetch.as_deref().map(|maker| (Self::OF_MAP_CACHE[1], maker.name())),
            wear.as_deref().map(|maker| ("wear", maker.name())),
            schedule.as_deref().map(|maker| ("cleaning", maker.name())),
        ];
        all.into_iter().flatten().collect()
    }

    /// What [`Foreign::map_cache`] and [`Foreign::map_prefetch`] decide, which only schemes with a cached map have.
    pub const OF_MAP_CACHE: [&'static str; 2] = ["replacement", "prefetch"];
}

/// Why a foreign policy could not continue; only the first reason is kept. All policies of a drive share one cell.
#[derive(Clone, Debug, Default)]
pub struct FaultCell(Arc<OnceLock<String>>);

impl FaultCell {
    /// Stores a reason, unless there is one.
    #[cold]
    pub fn set(&self, what: String) {
        self.0.get_or_init(|| what);
    }
    /// The reason, if there is one.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}
