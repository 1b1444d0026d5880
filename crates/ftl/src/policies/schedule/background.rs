//! Background: idle dies clean, from one mark of free blocks up to another.

use super::{Moment, Occasion, ScheduleContext, SchedulePolicy, mark_problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[gc.background]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct BackgroundSettings {
    /// A plane with fewer free blocks than this starts to clean in idle time.
    pub start_blocks: u32,
    /// It stops once it has this many free blocks.
    pub stop_blocks: u32,
    /// Steps that an idle die performs before it checks for host operations again.
    #[schemars(range(min = 1))]
    pub steps: u32,
}

impl Default for BackgroundSettings {
    fn default() -> Self {
        Self { start_blocks: 4, stop_blocks: 6, steps: 1 }
    }
}

/// `gc.schedule = "background"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Background {
    settings: BackgroundSettings,
    /// Whether the plane has started and not yet stopped.
    cleans: bool,
}

impl SchedulePolicy for Background {
    const NAME: &'static str = "background";
    const ABOUT: &'static str = "steps on idle dies, from one mark of free blocks to another";
    const NEEDS_TIME: bool = true;
    const USES_IDLE_TIME: bool = true;
    const SMALL: &'static [&'static str] = &["start-blocks=3", "stop-blocks=3"];
    type Settings = BackgroundSettings;

    fn new(settings: &BackgroundSettings, _: ScheduleContext) -> Self {
        Self { settings: settings.clone(), cleans: false }
    }

    fn problems(settings: &BackgroundSettings, context: &ScheduleContext) -> Vec<String> {
        let BackgroundSettings { start_blocks, stop_blocks, .. } = *settings;
        let problem = mark_problem("start-blocks", start_blocks, context).or_else(|| match stop_blocks {
            below if below < start_blocks => Some(format!(
                "stop-blocks: found {below}, expected gc.background.start-blocks = {start_blocks} or more"
            )),
            mark => mark_problem("stop-blocks", mark, context),
        });
        problem.into_iter().collect()
    }

    #[inline]
    fn steps(&mut self, moment: &Moment) -> u32 {
        let below = |mark: u32| moment.free_blocks < mark;
        self.cleans = below(self.settings.start_blocks) || self.cleans && below(self.settings.stop_blocks);
        if self.cleans && moment.occasion == Occasion::Idle { self.settings.steps } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{CONTEXT, steps};
    use super::*;

    #[test]
    fn from_one_mark_to_the_other_and_only_when_idle() {
        let mut policy = Background::new(&BackgroundSettings { steps: 3, ..BackgroundSettings::default() }, CONTEXT);
        assert_eq!(steps(&mut policy, Occasion::Idle, [7, 5, 4, 3, 4, 5, 6, 5, 4, 3]), [0, 0, 0, 3, 3, 3, 0, 0, 0, 3]);
        assert_eq!(steps(&mut policy, Occasion::Written(1), [3, 5]), [0, 0]);
        assert_eq!(steps(&mut policy, Occasion::Ended, [3, 5]), [0, 0]);
        assert_eq!(steps(&mut policy, Occasion::Idle, [5]), [3], "it still is on its way up");
    }

    #[test]
    fn marks_that_contradict_are_named() {
        let settings = BackgroundSettings { start_blocks: 6, stop_blocks: 4, steps: 1 };
        assert_eq!(
            Background::problems(&settings, &CONTEXT),
            ["stop-blocks: found 4, expected gc.background.start-blocks = 6 or more"]
        );
    }
}
