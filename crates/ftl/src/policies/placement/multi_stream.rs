//! Streams that the workload names: each has its own frontier, and cleaning keeps a page in its stream (multi-stream
//! drives; Kang et al., HotStorage 2014).
//!
//! Stream 0 takes writes that name no stream, or one beyond the last. No state.

use super::{HostWrite, PlacementContext, PlacementPolicy, Relocation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of `placement.policy = "multi-stream"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MultiStreamSettings {
    /// Number of frontiers, including that of stream 0: 1 to 64.
    #[schemars(range(min = 1, max = 64))]
    pub streams: u8,
}

impl Default for MultiStreamSettings {
    fn default() -> Self {
        Self { streams: 4 }
    }
}

/// `placement.policy = "multi-stream"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MultiStream {
    streams: u8,
}

impl PlacementPolicy for MultiStream {
    const NAME: &'static str = "multi-stream";
    const ABOUT: &'static str = "a frontier for each stream that the workload names (Kang et al., HotStorage 2014)";
    const SMALL: &'static [&'static str] = &["streams=3"];
    type Settings = MultiStreamSettings;

    fn new(settings: &MultiStreamSettings, _: PlacementContext) -> Self {
        Self { streams: settings.streams.clamp(1, 64) }
    }
    fn streams(&self) -> u8 {
        self.streams
    }
    #[inline(always)]
    fn host(&mut self, write: HostWrite) -> u8 {
        u8::try_from(write.stream).ok().filter(|stream| *stream < self.streams).unwrap_or(0)
    }
    #[inline(always)]
    fn relocation(&mut self, page: Relocation) -> u8 {
        page.old_stream()
    }
}
