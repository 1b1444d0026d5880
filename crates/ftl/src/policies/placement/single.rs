//! One frontier: host writes and pages moved by cleaning share a block.

use super::{HostWrite, PlacementContext, PlacementPolicy, Relocation};
use crate::registry::NoSettings;
use serde::{Deserialize, Serialize};

/// `placement.policy = "single"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Single;

impl PlacementPolicy for Single {
    const NAME: &'static str = "single";
    const ABOUT: &'static str = "one frontier for host writes and cleaning (Gupta 2009's page-mapped baseline)";
    type Settings = NoSettings;

    fn new(_: &NoSettings, _: PlacementContext) -> Self {
        Self
    }
    fn streams(&self) -> u8 {
        1
    }
    #[inline(always)]
    fn moves_to(&self) -> Option<u8> {
        Some(0)
    }
    #[inline(always)]
    fn host(&mut self, _: HostWrite) -> u8 {
        0
    }
    #[inline(always)]
    fn relocation(&mut self, _: Relocation) -> u8 {
        0
    }
}
