//! Throttled: cleans like `preemptive`, and acknowledges a write later the fewer free blocks its plane has, so that a host
//! that writes as fast as it can slows down before it has to wait for whole victims.

use super::{Moment, ScheduleContext, SchedulePolicy, mark_problem};
use flashwright_block::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[gc.throttled]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ThrottledSettings {
    /// A plane cleans, and delays writes, while it has fewer free blocks than this.
    pub start_blocks: u32,
    /// Steps that it performs before host operations get their turn.
    #[schemars(range(min = 1))]
    pub steps: u32,
    /// The minimum duration of a write to a plane that is down to `gc.free-blocks-min` free blocks. It falls linearly to 0 at
    /// the mark.
    pub delay_max: Nanos,
}

impl Default for ThrottledSettings {
    fn default() -> Self {
        Self { start_blocks: 6, steps: 1, delay_max: Nanos(2_000_000) }
    }
}

/// `gc.schedule = "throttled"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Throttled {
    settings: ThrottledSettings,
    free_blocks_min: u32,
}

impl SchedulePolicy for Throttled {
    const NAME: &'static str = "throttled";
    const ABOUT: &'static str = "like preemptive, and delays writes as free blocks run out";
    const NEEDS_TIME: bool = true;
    const ONE_AT_A_TIME: bool = true;
    const SMALL: &'static [&'static str] = &["start-blocks=3"];
    type Settings = ThrottledSettings;

    fn new(settings: &ThrottledSettings, context: ScheduleContext) -> Self {
        Self { settings: settings.clone(), free_blocks_min: context.free_blocks_min }
    }

    fn problems(settings: &ThrottledSettings, context: &ScheduleContext) -> Vec<String> {
        mark_problem("start-blocks", settings.start_blocks, context).into_iter().collect()
    }

    #[inline]
    fn steps(&mut self, moment: &Moment) -> u32 {
        if moment.free_blocks < self.settings.start_blocks { self.settings.steps } else { 0 }
    }

    #[inline]
    fn delay(&self, free_blocks: u32) -> Nanos {
        let range = u64::from(self.settings.start_blocks - self.free_blocks_min);
        let lacking = u64::from(self.settings.start_blocks.saturating_sub(free_blocks)).min(range);
        Nanos(self.settings.delay_max.0 * lacking / range)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::CONTEXT;
    use super::*;

    #[test]
    fn the_delay_grows_as_free_blocks_run_out() {
        let settings = ThrottledSettings { delay_max: Nanos(1000), ..ThrottledSettings::default() };
        let policy = Throttled::new(&settings, CONTEXT);
        assert_eq!([7, 6, 5, 4, 3, 2, 1].map(|free| policy.delay(free).0), [0, 0, 250, 500, 750, 1000, 1000]);
    }
}
