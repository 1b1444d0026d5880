//! When cleaning works (`gc.schedule`). A schedule is one file here and one line in the list below.
//!
//! Cleaning is work in steps ([`crate::Ftl::clean`]): a page copied, a page of the map written, a block erased. A schedule
//! says how many steps a plane makes at a moment; the cleaner knows what they are. One instance serves one plane.
//!
//! A write that finds its plane short of free blocks is served at once by whole victims, whatever the schedule says, since it
//! can't go on before. That makes `gc.free-blocks-min` the hard mark of every schedule.
//!
//! | schedule | a plane cleans | the host waits for |
//! | --- | --- | --- |
//! | `foreground` | when a write lacks room | whole victims |
//! | `background` | when its die is idle, from one mark of free blocks to another | the step under way |
//! | `preemptive` | below a mark, step after step, host operations in between | the step under way |
//! | `rate-limited` | below a mark, so many steps a host page that both flow evenly | its share of steps |
//! | `throttled` | as `preemptive`, and acknowledges writes later the fewer free blocks there are | that delay |

use crate::registry::policies;
use flashwright_block::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens when a schedule is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The host has written so many pages to the plane since the schedule was asked last.
    Written(u32),
    /// The steps that the plane made last have ended; operations of the host that came meanwhile are queued.
    Ended,
    /// The die of the plane has nothing to do.
    Idle,
}

/// What a schedule goes by.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// What happens.
    pub occasion: Occasion,
    /// Free blocks of the plane.
    pub free_blocks: u32,
    /// Pages that the plane's current victim has to have copied; of the last one while there is none.
    pub copies: u32,
}

/// What a schedule is built for.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleContext {
    /// While a plane has no more free blocks than this, it opens none for a write.
    pub free_blocks_min: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Blocks of a plane beyond those that its share of the host's data fills and its frontiers hold: more are never free.
    pub spare_blocks: u32,
}

/// Says how many steps of cleaning a plane makes.
pub trait SchedulePolicy: Sized {
    /// What users write to choose it.
    const NAME: &'static str;
    /// What it does, in a line.
    const ABOUT: &'static str;
    /// Whether it is asked at all; if not, only writes that lack room clean.
    const ASKED: bool = true;
    /// Whether it works only as time passes, so that it needs a timing model.
    const NEEDS_TIME: bool = false;
    /// Whether it is asked when a die has nothing to do.
    const USES_IDLE_TIME: bool = false;
    /// Whether it is asked no [`Occasion::Written`] while steps are under way in the plane.
    const ONE_AT_A_TIME: bool = false;
    /// Its own settings.
    type Settings: Clone
        + std::fmt::Debug
        + Default
        + PartialEq
        + Serialize
        + for<'de> Deserialize<'de>
        + JsonSchema
        + 'static;

    /// Builds it for one plane.
    fn new(settings: &Self::Settings, context: ScheduleContext) -> Self;
    /// What is wrong with its settings: the key below `gc.` and what to change, one line for each problem.
    fn problems(settings: &Self::Settings, context: &ScheduleContext) -> Vec<String> {
        let _ = (settings, context);
        Vec::new()
    }
    /// Steps that the plane makes now.
    fn steps(&mut self, moment: &Moment) -> u32;
    /// What a write to the plane lasts at least.
    #[inline]
    fn delay(&self, free_blocks: u32) -> Nanos {
        let _ = free_blocks;
        Nanos(0)
    }
}

macro_rules! schedules {
    ($($module:ident :: $policy:ident),+ $(,)?) => {
        policies! {
            key: "gc.schedule", trait: SchedulePolicy, names: ScheduleName, settings: ScheduleSettings, running: Schedule,
            context: ScheduleContext;
            $($module::$policy),+
        }

        impl ScheduleName {
            /// See [`SchedulePolicy::ASKED`].
            #[must_use]
            pub fn asked(self) -> bool {
                match self { $(ScheduleName::$policy => $policy::ASKED,)+ }
            }
            /// See [`SchedulePolicy::NEEDS_TIME`].
            #[must_use]
            pub fn needs_time(self) -> bool {
                match self { $(ScheduleName::$policy => $policy::NEEDS_TIME,)+ }
            }
            /// See [`SchedulePolicy::USES_IDLE_TIME`].
            #[must_use]
            pub fn uses_idle_time(self) -> bool {
                match self { $(ScheduleName::$policy => $policy::USES_IDLE_TIME,)+ }
            }
            /// See [`SchedulePolicy::ONE_AT_A_TIME`].
            #[must_use]
            pub fn one_at_a_time(self) -> bool {
                match self { $(ScheduleName::$policy => $policy::ONE_AT_A_TIME,)+ }
            }
            /// See [`SchedulePolicy::problems`]; with whole keys.
            #[must_use]
            pub fn problems(self, settings: &ScheduleSettings, context: &ScheduleContext) -> Vec<String> {
                let of_policy = match self { $(ScheduleName::$policy => $policy::problems(&settings.$module, context),)+ };
                of_policy.into_iter().map(|problem| format!("gc.{}.{problem}", self.listed().name)).collect()
            }
        }

        impl Schedule {
            /// See [`SchedulePolicy::steps`].
            #[inline]
            pub fn steps(&mut self, moment: &Moment) -> u32 {
                match self { $(Schedule::$policy(policy) => policy.steps(moment),)+ }
            }
            /// See [`SchedulePolicy::delay`].
            #[inline]
            #[must_use]
            pub fn delay(&self, free_blocks: u32) -> Nanos {
                match self { $(Schedule::$policy(policy) => policy.delay(free_blocks),)+ }
            }
        }
    };
}

schedules! {
    foreground::Foreground,
    background::Background,
    preemptive::Preemptive,
    rate_limited::RateLimited,
    throttled::Throttled,
}

#[allow(clippy::derivable_impls)] // the list above makes the enum
impl Default for ScheduleName {
    fn default() -> Self {
        Self::Foreground
    }
}

/// What is wrong with a mark below which a plane cleans ahead of need.
fn mark_problem(key: &str, mark: u32, context: &ScheduleContext) -> Option<String> {
    let ScheduleContext { free_blocks_min, spare_blocks, .. } = *context;
    if mark <= free_blocks_min {
        return Some(format!(
            "{key}: found {mark}, expected more free blocks than gc.free-blocks-min = {free_blocks_min}, at which writes wait"
        ));
    }
    (mark > spare_blocks).then(|| {
        format!(
            "{key}: found {mark}, but a plane of this drive never has more than {spare_blocks} free blocks once it is full; \
             expected at most that, or a lower capacity.utilization"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const CONTEXT: ScheduleContext =
        ScheduleContext { free_blocks_min: 2, pages_per_block: 64, spare_blocks: 20 };

    /// Steps that a schedule answers on an occasion for each of these numbers of free blocks.
    pub(super) fn steps<const N: usize>(
        policy: &mut impl SchedulePolicy,
        occasion: Occasion,
        free_blocks: [u32; N],
    ) -> [u32; N] {
        free_blocks.map(|free_blocks| policy.steps(&Moment { occasion, free_blocks, copies: 48 }))
    }

    #[test]
    fn marks_lie_between_what_writes_need_and_what_there_is() {
        assert_eq!(
            [2, 3, 20, 21].map(|mark| mark_problem("start-blocks", mark, &CONTEXT).is_some()),
            [true, false, false, true]
        );
        let settings = ScheduleSettings::default();
        let tight = ScheduleContext { spare_blocks: 3, ..CONTEXT };
        for name in ScheduleName::ALL {
            assert_eq!(name.problems(&settings, &CONTEXT), Vec::<String>::new());
            assert_eq!(name.problems(&settings, &tight).is_empty(), !name.asked(), "{name:?}");
        }
    }
}
