//! PAS, parameter-aware splitting: requests no longer than the drive's buffer of their direction.
//!
//! Source: Kim et al., section 5.2. It belongs to the block layer, so order and merging are those of noop, without
//! noop's limit on the length of requests; a comparison with noop shows the effect of cutting alone.

use super::{Choice, Merges, Scheduler, SchedulerContext, Splitting};
use crate::cut::{CutRule, CuttingQueue, WithoutBuffer};
use crate::pool::{Id, Pool};
use flashwright_block::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[host.pas]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct PasSettings {
    /// How requests of a direction are handled for which the drive has no buffer: `"uncut"` or cut at the clustered
    /// `"page"`. No value is published; the default is ours.
    pub without_buffer: WithoutBuffer,
}

/// Requests leave in the order in which they came, cut from their starts into pieces of the drive's buffer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pas {
    queue: CuttingQueue,
}

impl Scheduler for Pas {
    const NAME: &'static str = "pas";
    const ABOUT: &'static str =
        "first in, first out, cut at the size of the drive's read or write buffer (Kim et al., section 5.2)";
    const MERGES: Merges = Merges::Back;
    type Settings = PasSettings;

    fn problems(settings: &PasSettings, context: &SchedulerContext) -> Vec<(String, String)> {
        CutRule::problems(Self::splitting(settings), &context.profile)
    }

    fn max_sectors(_: &PasSettings, _: &SchedulerContext) -> u64 {
        u64::MAX
    }

    fn splitting(settings: &PasSettings) -> Splitting {
        Splitting::Size(settings.without_buffer)
    }

    fn new(settings: &PasSettings, context: SchedulerContext) -> Self {
        Self { queue: CuttingQueue::new(CutRule::new(Self::splitting(settings), &context.profile)) }
    }

    #[inline]
    fn add(&mut self, id: Id, _: &mut Pool, _: Nanos) {
        self.queue.push(id);
    }

    fn swallowed(&mut self, id: Id, _: Id, _: &Pool) {
        self.queue.remove(id);
    }

    #[inline]
    fn dispatch(&mut self, _: Nanos, _: u32, pool: &mut Pool) -> Choice {
        self.queue.pop(pool).map_or(Choice::Nothing, Choice::Send)
    }

    fn figures(&self) -> Vec<(String, f64)> {
        self.queue.figures()
    }
}
