//! Which write frontier a page goes to. A policy is one file here and one line in the list below.
//!
//! A frontier is an open block per plane and stream. Streams are numbered from 0; a policy says how many it needs
//! and names one for each page written by the host or moved by cleaning.

use crate::registry::policies;
use flashwright_nand::{Lpn, Ppn};
use serde::{Deserialize, Serialize};

/// A page that the host writes.
#[derive(Clone, Copy, Debug)]
pub struct HostWrite {
    /// Which page.
    pub lpn: Lpn,
    /// Where its old copy lies.
    pub old: Option<Ppn>,
    /// The stream that the workload names.
    pub stream: u32,
}

/// A page that cleaning moves.
#[derive(Clone, Copy, Debug)]
pub struct Relocation {
    /// Which page.
    pub lpn: Lpn,
    /// Where it lies now.
    pub from: Ppn,
}

/// Names the frontier of each page.
pub trait PlacementPolicy: Sized {
    /// What users write to choose it.
    const NAME: &'static str;
    /// What it does, in a line, with its source.
    const ABOUT: &'static str;
    /// Its own settings.
    type Settings: Clone + std::fmt::Debug + Default + PartialEq + Serialize + for<'de> Deserialize<'de> + 'static;

    /// Builds it.
    fn new(settings: &Self::Settings, context: ()) -> Self;
    /// Streams in use, at least 1.
    fn streams(&self) -> u8;
    /// The stream of a page that the host writes.
    fn host(&mut self, write: HostWrite) -> u8;
    /// The stream of a page that cleaning moves.
    fn relocation(&mut self, page: Relocation) -> u8;
}

macro_rules! placements {
    ($($module:ident :: $policy:ident),+ $(,)?) => {
        policies! {
            key: "placement.policy", trait: PlacementPolicy, names: PlacementName, settings: PlacementSettings,
            running: Placement, context: ();
            $($module::$policy),+
        }

        impl Placement {
            /// See [`PlacementPolicy::streams`].
            #[must_use]
            pub fn streams(&self) -> u8 {
                match self { $(Placement::$policy(policy) => policy.streams(),)+ }
            }
            /// See [`PlacementPolicy::host`].
            #[inline(always)]
            pub fn host(&mut self, write: HostWrite) -> u8 {
                match self { $(Placement::$policy(policy) => policy.host(write),)+ }
            }
            /// See [`PlacementPolicy::relocation`].
            #[inline(always)]
            pub fn relocation(&mut self, page: Relocation) -> u8 {
                match self { $(Placement::$policy(policy) => policy.relocation(page),)+ }
            }
        }
    };
}

placements! { single::Single, gc_separate::GcSeparate }
