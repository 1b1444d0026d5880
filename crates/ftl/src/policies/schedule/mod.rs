//! When cleaning runs (`gc.schedule`). A schedule is one file here and one line in the list below.
//!
//! Cleaning is work in steps ([`crate::CleansInSteps::clean`]): one page copied, one page of the map written, or one block erased. A
//! schedule decides how many steps a plane performs at a given moment. One instance serves one plane.
//!
//! A write that needs room in a plane short of free blocks cleans whole victims at once, under every schedule, because it
//! cannot continue otherwise. So `gc.free-blocks-min` is the hard mark of every schedule.

use crate::registry::{PolicySettings, policies};
use flashwright_block::Nanos;

mod foreign;
pub use foreign::{CallForSteps, ForeignSchedule, MakeSchedule, ScheduleRules};

/// The occasion on which a schedule is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The host has written this many pages to the plane since the last call.
    Written(u32),
    /// The plane's last steps have ended; host operations that arrived meanwhile are queued.
    Ended,
    /// The plane's die is idle.
    Idle,
}

/// The state that a schedule bases its decision on.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The occasion.
    pub occasion: Occasion,
    /// Free blocks of the plane.
    pub free_blocks: u32,
    /// Valid pages of the plane's current victim when it was chosen; of the previous one if there is none.
    pub copies: u32,
}

/// The context of a schedule.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleContext {
    /// A plane opens a block for a write only while it has more free blocks than this.
    pub free_blocks_min: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// The most free blocks that a full plane can have: its blocks less those of its share of the data and its frontiers.
    pub spare_blocks: u32,
}

/// Decides how many cleaning steps a plane performs.
pub trait SchedulePolicy: Sized {
    /// What users write to choose it.
    const NAME: &'static str;
    /// What it does, in a line.
    const ABOUT: &'static str;
    /// Whether it is consulted at all; if not, only writes that lack room clean.
    const ASKED: bool = true;
    /// Whether its decisions depend on time, so that it needs a timing model.
    const NEEDS_TIME: bool = false;
    /// Whether it is consulted when a die is idle.
    const USES_IDLE_TIME: bool = false;
    /// Whether [`Occasion::Written`] is left out while the plane has steps in progress.
    const ONE_AT_A_TIME: bool = false;
    /// Settings for drives of a few blocks, where the defaults are for larger ones; tests of all policies use them.
    const SMALL: &'static [&'static str] = &[];
    /// Its own settings.
    type Settings: PolicySettings;

    /// Builds it for one plane.
    fn new(settings: &Self::Settings, context: ScheduleContext) -> Self;
    /// Validation errors of its settings: the key below its table and what to change, one line each.
    fn problems(settings: &Self::Settings, context: &ScheduleContext) -> Vec<String> {
        let _ = (settings, context);
        Vec::new()
    }
    /// The steps that the plane performs now.
    fn steps(&mut self, moment: &Moment) -> u32;
    /// The minimum duration of a write to the plane.
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
            context: ScheduleContext, foreign: ForeignSchedule;
            $($module::$policy),+
        }

        impl ScheduleName {
            /// See [`SchedulePolicy::SMALL`].
            #[must_use]
            pub fn small(self) -> &'static [&'static str] {
                match self { $(ScheduleName::$policy => $policy::SMALL,)+ }
            }
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
            /// When it is consulted.
            #[must_use]
            pub fn rules(self) -> ScheduleRules {
                match self {
                    $(ScheduleName::$policy => ScheduleRules {
                        asked: $policy::ASKED,
                        needs_time: $policy::NEEDS_TIME,
                        uses_idle_time: $policy::USES_IDLE_TIME,
                        one_at_a_time: $policy::ONE_AT_A_TIME,
                    },)+
                }
            }
            /// See [`SchedulePolicy::problems`]; with full keys.
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
                match self {
                    $(Schedule::$policy(policy) => policy.steps(moment),)+
                    Schedule::Foreign(policy) => policy.steps(moment),
                }
            }
            /// See [`SchedulePolicy::delay`].
            #[inline]
            #[must_use]
            pub fn delay(&self, free_blocks: u32) -> Nanos {
                match self {
                    $(Schedule::$policy(policy) => policy.delay(free_blocks),)+
                    Schedule::Foreign(_) => Nanos(0),
                }
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

/// The validation error of a mark below which a plane cleans ahead of need.
fn mark_problem(key: &str, mark: u32, context: &ScheduleContext) -> Option<String> {
    let ScheduleContext { free_blocks_min, spare_blocks, .. } = *context;
    if mark <= free_blocks_min {
        return Some(format!(
            "{key}: found {mark}, expected more than gc.free-blocks-min = {free_blocks_min}, at which writes wait for whole victims"
        ));
    }
    (mark > spare_blocks).then(|| {
        format!(
            "{key}: found {mark}, but a full plane of this drive has at most {spare_blocks} free blocks; expected no more, or a \
             lower capacity.utilization"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const CONTEXT: ScheduleContext =
        ScheduleContext { free_blocks_min: 2, pages_per_block: 64, spare_blocks: 20 };

    /// The steps that a schedule requests on an occasion, for each number of free blocks.
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
