//! Two frontiers: host writes in one block, pages moved by cleaning in another.
//!
//! Pages that survive a clean are likely to stay valid, so hot and cold pages separate by themselves. Amplification
//! falls with skew and changes little under uniform writes.

use super::{HostWrite, PlacementContext, PlacementPolicy, Relocation};
use crate::registry::NoSettings;
use serde::{Deserialize, Serialize};

/// `placement.policy = "gc-separate"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GcSeparate;

impl PlacementPolicy for GcSeparate {
    const NAME: &'static str = "gc-separate";
    const ABOUT: &'static str =
        "separate frontiers for host writes and cleaning (double write frontier; Van Houdt 2014)";
    type Settings = NoSettings;

    fn new(_: &NoSettings, _: PlacementContext) -> Self {
        Self
    }
    fn streams(&self) -> u8 {
        2
    }
    #[inline(always)]
    fn moves_to(&self) -> Option<u8> {
        Some(1)
    }
    #[inline(always)]
    fn host(&mut self, _: HostWrite) -> u8 {
        0
    }
    #[inline(always)]
    fn relocation(&mut self, _: Relocation) -> u8 {
        1
    }
}
