//! Placement policies: which write frontier a page goes to. A policy is one file here and one line in the list below.
//!
//! A frontier is an open block per plane and stream. Streams are numbered from 0; a policy states how many it needs and
//! chooses one for each page that the host writes or cleaning moves.

mod foreign;

use crate::registry::{PolicySettings, policies};
use crate::{Flash, LpnRun};
use flashwright_block::Rng;
use flashwright_nand::{Lpn, Ppn};
use serde::{Deserialize, Serialize};

/// The parameters of the drive that a policy is built for.
#[derive(Clone, Debug)]
pub struct PlacementContext {
    /// Pages that the drive offers to the host.
    pub logical_pages: u32,
    /// Pages of the flash.
    pub physical_pages: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Blocks of the flash.
    pub blocks: u32,
    /// Planes of the flash.
    pub planes: u32,
    /// Its own random stream.
    pub rng: Rng,
}

/// A page that the host writes.
#[derive(Clone, Copy)]
pub struct HostWrite<'a> {
    /// The page.
    pub lpn: Lpn,
    /// Its old copy.
    pub old: Option<Ppn>,
    /// The stream that the workload names; 0 if it names none.
    pub stream: u32,
    /// Pages of the run that it is part of: a host request, or pages that leave the RAM together.
    pub run_pages: u32,
    /// The flash, read-only.
    pub flash: &'a Flash,
}

impl HostWrite<'_> {
    /// The stream of the block that holds the old copy.
    #[inline(always)]
    #[must_use]
    pub fn old_stream(&self) -> Option<u8> {
        self.old.map(|old| self.flash.stream_of(self.flash.geometry().block_of(old)))
    }
    /// The clock of ages: host page writes so far, this one included.
    #[inline(always)]
    #[must_use]
    pub fn now(&self) -> u64 {
        self.flash.host_writes()
    }
}

/// A page that cleaning moves.
#[derive(Clone, Copy)]
pub struct Relocation<'a> {
    /// The page.
    pub lpn: Lpn,
    /// Its current place.
    pub from: Ppn,
    /// The flash, read-only.
    pub flash: &'a Flash,
}

impl Relocation<'_> {
    /// The stream of the block that the page leaves.
    #[inline(always)]
    #[must_use]
    pub fn old_stream(&self) -> u8 {
        self.flash.stream_of(self.flash.geometry().block_of(self.from))
    }
    /// The clock of ages: host page writes so far.
    #[inline(always)]
    #[must_use]
    pub fn now(&self) -> u64 {
        self.flash.host_writes()
    }
}

/// What a handle of flexible data placement cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandleCounts {
    /// Pages that the host wrote with it.
    pub pages_written: u64,
    /// Pages of it that cleaning moved, by the handle that had written last: its writes made the room necessary.
    pub pages_moved_for: Vec<u64>,
}

/// Chooses the frontier of each page.
pub trait PlacementPolicy: Sized {
    /// The name that users choose it by.
    const NAME: &'static str;
    /// One-line description, with its source.
    const ABOUT: &'static str;
    /// Settings for drives of a few blocks, where the defaults are for larger ones; tests of all policies use them.
    const SMALL: &'static [&'static str] = &[];
    /// Its settings.
    type Settings: PolicySettings;

    /// Builds it.
    fn new(settings: &Self::Settings, context: PlacementContext) -> Self;
    /// Number of streams, at least 1.
    fn streams(&self) -> u8;
    /// Of a policy that looks at no page, the stream of pages that cleaning moves; those of the host go to stream 0. Such a policy
    /// costs no call per page.
    #[inline(always)]
    fn moves_to(&self) -> Option<u8> {
        None
    }
    /// The stream of a page that the host writes.
    fn host(&mut self, write: HostWrite) -> u8;
    /// The stream of a page that cleaning moves.
    fn relocation(&mut self, page: Relocation) -> u8;
    /// Pages were moved by cleaning, to `to` and the pages after it. [`PlacementPolicy::relocation`] may be asked twice for a page that
    /// moves once.
    #[inline(always)]
    fn moved(&mut self, lpns: &[u32], to: Ppn) {
        let _ = (lpns, to);
    }
    /// Counts of its handles, if it has any.
    fn handles(&self) -> &[HandleCounts] {
        &[]
    }
    /// Resets the counts to zero.
    fn reset_figures(&mut self) {}
}

macro_rules! placements {
    ($($module:ident :: $policy:ident),+ $(,)?) => {
        policies! {
            key: "placement.policy", trait: PlacementPolicy, names: PlacementName, settings: PlacementSettings,
            running: Placement, context: PlacementContext, foreign: ForeignPlacement;
            $($module::$policy),+
        }

        impl PlacementName {
            /// See [`PlacementPolicy::SMALL`].
            #[must_use]
            pub fn small(self) -> &'static [&'static str] {
                match self { $(PlacementName::$policy => $policy::SMALL,)+ }
            }
        }

        impl Placement {
            /// See [`PlacementPolicy::streams`].
            #[must_use]
            pub fn streams(&self) -> u8 {
                match self {
                    $(Placement::$policy(policy) => policy.streams(),)+
                    Placement::Foreign(policy) => policy.streams(),
                }
            }
            /// See [`PlacementPolicy::moves_to`].
            #[inline(always)]
            #[must_use]
            pub fn moves_to(&self) -> Option<u8> {
                match self {
                    $(Placement::$policy(policy) => policy.moves_to(),)+
                    Placement::Foreign(_) => None,
                }
            }
            /// See [`PlacementPolicy::host`], for a page of a run.
            ///
            /// Policies that look at no page are handled inline; all others are out of line, because inlined they would
            /// take up the registers of every write.
            #[inline(always)]
            pub fn host(&mut self, lpn: Lpn, old: Option<Ppn>, run: LpnRun, flash: &Flash) -> u8 {
                if self.moves_to().is_some() { 0 } else { self.host_called(lpn, old, run.stream, run.pages, flash) }
            }
            #[inline(never)]
            fn host_called(&mut self, lpn: Lpn, old: Option<Ppn>, stream: u32, run_pages: u32, flash: &Flash) -> u8 {
                let write = HostWrite { lpn, old, stream, run_pages, flash };
                match self {
                    $(Placement::$policy(policy) => policy.host(write),)+
                    Placement::Foreign(policy) => policy.host(write),
                }
            }
            /// See [`PlacementPolicy::relocation`]. Whoever moves many pages asks [`Placement::moves_to`] first.
            #[inline(never)]
            pub fn relocation(&mut self, page: Relocation) -> u8 {
                match self {
                    $(Placement::$policy(policy) => policy.relocation(page),)+
                    Placement::Foreign(policy) => policy.relocation(page),
                }
            }
            /// See [`PlacementPolicy::moved`].
            #[inline(always)]
            pub fn moved(&mut self, lpns: &[u32], to: Ppn) {
                match self {
                    $(Placement::$policy(policy) => policy.moved(lpns, to),)+
                    Placement::Foreign(_) => {}
                }
            }
            /// See [`PlacementPolicy::handles`].
            #[must_use]
            pub fn handles(&self) -> &[HandleCounts] {
                match self {
                    $(Placement::$policy(policy) => policy.handles(),)+
                    Placement::Foreign(_) => &[],
                }
            }
            /// See [`PlacementPolicy::reset_figures`].
            pub fn reset_figures(&mut self) {
                match self {
                    $(Placement::$policy(policy) => policy.reset_figures(),)+
                    Placement::Foreign(_) => {}
                }
            }
        }
    };
}

placements! {
    single::Single,
    gc_separate::GcSeparate,
    hot_cold::HotCold,
    dac::Dac,
    envy::Envy,
    multi_stream::MultiStream,
    fdp::Fdp,
    container_marking::ContainerMarking,
    auto::Auto,
}

pub use container_marking::{ContainerMarkingSettings, Demotion};
pub use dac::DacSettings;
pub use envy::EnvySettings;
pub(crate) use fdp::Named;
pub use fdp::{FdpSettings, Isolation, MovedRun};
pub use foreign::{ForeignPlacement, HostRun, MakePlacement, MovedPages, PlacePages};
pub use hot_cold::{Detector, GcClass, HotColdSettings};
pub use multi_stream::MultiStreamSettings;
