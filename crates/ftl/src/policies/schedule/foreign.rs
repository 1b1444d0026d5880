//! The adapter for schedules from outside ([`crate::policies::foreign`]).

use super::{Moment, ScheduleContext};
use crate::policies::foreign::FaultCell;
use flashwright_block::Rng;
use std::sync::Arc;

/// Builds a schedule for each plane.
pub trait MakeSchedule {
    /// Its name in messages.
    fn name(&self) -> &str;
    /// When it is asked.
    fn rules(&self) -> ScheduleRules;
    /// The schedule of a plane, with a random stream of its own.
    fn make(&self, plane: u32, context: ScheduleContext, rng: Rng) -> Box<dyn CallForSteps>;
}

/// When a schedule is asked, as [`super::SchedulePolicy`] has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduleRules {
    /// Whether it is consulted at all.
    pub asked: bool,
    /// See [`super::SchedulePolicy::NEEDS_TIME`].
    pub needs_time: bool,
    /// See [`super::SchedulePolicy::USES_IDLE_TIME`].
    pub uses_idle_time: bool,
    /// See [`super::SchedulePolicy::ONE_AT_A_TIME`].
    pub one_at_a_time: bool,
}

/// Decides how many steps of cleaning one plane makes.
pub trait CallForSteps: std::fmt::Debug + Send + Sync {
    /// The steps that the plane makes now.
    ///
    /// # Errors
    /// The reason why it can't.
    fn steps(&mut self, moment: &Moment) -> Result<i64, String>;
    /// A copy that continues as this one would.
    fn again(&self) -> Box<dyn CallForSteps>;
}

impl Clone for Box<dyn CallForSteps> {
    fn clone(&self) -> Self {
        self.again()
    }
}

/// A foreign schedule in use.
#[derive(Clone, Debug)]
pub struct ForeignSchedule {
    policy: Box<dyn CallForSteps>,
    plane: u32,
    name: Arc<str>,
    fault: FaultCell,
}

impl ForeignSchedule {
    pub(crate) fn new(
        maker: &dyn MakeSchedule,
        plane: u32,
        context: ScheduleContext,
        rng: Rng,
        fault: FaultCell,
    ) -> Self {
        Self { policy: maker.make(plane, context, rng), plane, name: maker.name().into(), fault }
    }

    #[inline(never)]
    pub(super) fn steps(&mut self, moment: &Moment) -> u32 {
        if self.fault.get().is_some() {
            return 0;
        }
        let answer = self.policy.steps(moment).and_then(|steps| {
            let expected = || format!("steps answered {steps}, expected 0 to {}", u32::MAX);
            u32::try_from(steps).map_err(|_| expected())
        });
        answer.unwrap_or_else(|what| {
            self.fault.set(format!("{}: plane {}: {what}", self.name, self.plane));
            0
        })
    }
}
