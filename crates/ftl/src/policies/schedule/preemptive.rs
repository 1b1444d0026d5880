//! Preemptive: below a mark a plane cleans step by step, and host operations run between the steps.

use super::{Moment, ScheduleContext, SchedulePolicy, mark_problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[gc.preemptive]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct PreemptiveSettings {
    /// A plane cleans while it has fewer free blocks than this.
    pub start_blocks: u32,
    /// Steps that it performs before host operations get their turn.
    #[schemars(range(min = 1))]
    pub steps: u32,
}

impl Default for PreemptiveSettings {
    fn default() -> Self {
        Self { start_blocks: 4, steps: 1 }
    }
}

/// `gc.schedule = "preemptive"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Preemptive(PreemptiveSettings);

impl SchedulePolicy for Preemptive {
    const NAME: &'static str = "preemptive";
    const ABOUT: &'static str =
        "below a mark of free blocks, with host operations between the steps (Lee et al., ISPASS 2011)";
    const NEEDS_TIME: bool = true;
    const ONE_AT_A_TIME: bool = true;
    const SMALL: &'static [&'static str] = &["start-blocks=3"];
    type Settings = PreemptiveSettings;

    fn new(settings: &PreemptiveSettings, _: ScheduleContext) -> Self {
        Self(settings.clone())
    }

    fn problems(settings: &PreemptiveSettings, context: &ScheduleContext) -> Vec<String> {
        mark_problem("start-blocks", settings.start_blocks, context).into_iter().collect()
    }

    #[inline]
    fn steps(&mut self, moment: &Moment) -> u32 {
        if moment.free_blocks < self.0.start_blocks { self.0.steps } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Occasion;
    use super::super::tests::{CONTEXT, steps};
    use super::*;

    #[test]
    fn below_its_mark_it_cleans_on_every_occasion() {
        let mut policy = Preemptive::new(&PreemptiveSettings { start_blocks: 5, steps: 2 }, CONTEXT);
        for occasion in [Occasion::Written(3), Occasion::Ended, Occasion::Idle] {
            assert_eq!(steps(&mut policy, occasion, [6, 5, 4, 3]), [0, 0, 2, 2]);
        }
    }
}
