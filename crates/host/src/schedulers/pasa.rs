//! PASA, parameter-aware splitting and aligning: requests that begin at the drive's unit and fit its buffer.
//!
//! Source: Kim et al., section 5.2. Order and merging are those of noop, as under PAS. If the buffer is no multiple of
//! the unit, pieces are as long as the whole units that fit into it: the paper does not state this case, and no other
//! length keeps them aligned.

use super::{Choice, Merges, Scheduler, SchedulerContext, Splitting};
use crate::cut::{CutRule, CuttingQueue, Unit, WithoutBuffer};
use crate::pool::{Id, Pool};
use flashwright_block::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[host.pasa]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct PasaSettings {
    /// Alignment of pieces: the clustered `"page"` or the clustered `"block"`. The paper names both; the default is
    /// ours.
    pub unit: Unit,
    /// How requests of a direction are handled for which the drive has no buffer: `"uncut"` or cut at the clustered
    /// `"page"`. No value is published; the default is ours.
    pub without_buffer: WithoutBuffer,
}

/// Requests leave in the order in which they came, cut at the first multiple of the unit, then by the buffer's size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pasa {
    queue: CuttingQueue,
}

impl Scheduler for Pasa {
    const NAME: &'static str = "pasa";
    const ABOUT: &'static str = "first in, first out, cut at the clustered page, then at the size of the drive's buffer (Kim et al., section 5.2)";
    const MERGES: Merges = Merges::Back;
    type Settings = PasaSettings;

    fn problems(settings: &PasaSettings, context: &SchedulerContext) -> Vec<(String, String)> {
        CutRule::problems(Self::splitting(settings), &context.profile)
    }

    fn max_sectors(_: &PasaSettings, _: &SchedulerContext) -> u64 {
        u64::MAX
    }

    fn splitting(settings: &PasaSettings) -> Splitting {
        Splitting::AlignedSize(settings.unit, settings.without_buffer)
    }

    fn new(settings: &PasaSettings, context: SchedulerContext) -> Self {
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
