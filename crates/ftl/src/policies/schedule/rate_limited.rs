//! Rate-limited: each host page pays for a number of cleaning steps, so that cleaning keeps level with writing.
//!
//! A victim with v valid pages out of b yields b - v pages for v copies and one erase. So (v + 1) / (b - v) steps per host page
//! free as many pages as the host writes. The further a plane falls below its mark, the more steps it performs: in inverse
//! proportion to the free blocks left above `gc.free-blocks-min`, so that it does not run out before the victim is done.

use super::{Moment, Occasion, ScheduleContext, SchedulePolicy, mark_problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[gc.rate-limited]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct RateLimitedSettings {
    /// A plane cleans while it has fewer free blocks than this.
    pub start_blocks: u32,
}

impl Default for RateLimitedSettings {
    fn default() -> Self {
        Self { start_blocks: 4 }
    }
}

/// `gc.schedule = "rate-limited"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RateLimited {
    start_blocks: u32,
    free_blocks_min: u32,
    pages_per_block: u32,
    /// Steps due, with a fraction: a host page may pay for less than one step.
    due: f64,
}

impl SchedulePolicy for RateLimited {
    const NAME: &'static str = "rate-limited";
    const ABOUT: &'static str =
        "as many steps per host page, from the victim's valid pages, as keep cleaning level with writing";
    const SMALL: &'static [&'static str] = &["start-blocks=3"];
    type Settings = RateLimitedSettings;

    fn new(settings: &RateLimitedSettings, context: ScheduleContext) -> Self {
        Self {
            start_blocks: settings.start_blocks,
            free_blocks_min: context.free_blocks_min,
            pages_per_block: context.pages_per_block,
            due: 0.0,
        }
    }

    fn problems(settings: &RateLimitedSettings, context: &ScheduleContext) -> Vec<String> {
        mark_problem("start-blocks", settings.start_blocks, context).into_iter().collect()
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the steps of a few host pages
    fn steps(&mut self, moment: &Moment) -> u32 {
        let Occasion::Written(pages) = moment.occasion else { return 0 };
        if moment.free_blocks >= self.start_blocks {
            self.due = 0.0;
            return 0;
        }
        let gained = self.pages_per_block.saturating_sub(moment.copies).max(1);
        let range = f64::from(self.start_blocks - self.free_blocks_min);
        let left = f64::from(moment.free_blocks.saturating_sub(self.free_blocks_min).max(1));
        self.due += f64::from(pages) * f64::from(moment.copies + 1) / f64::from(gained) * (range / left);
        let whole = self.due.floor();
        self.due -= whole;
        whole as u32
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{CONTEXT, steps};
    use super::*;

    #[test]
    fn as_many_pages_are_gained_as_the_host_writes() {
        // 48 of 64 pages valid: 49 steps gain 16 pages. One block lacks of two above the minimum, then of three.
        let block = |start_blocks, free_blocks| -> u32 {
            let mut policy = RateLimited::new(&RateLimitedSettings { start_blocks }, CONTEXT);
            (0..16).map(|_| steps(&mut policy, Occasion::Written(1), [free_blocks])[0]).sum()
        };
        assert_eq!([block(4, 4), block(4, 3), block(5, 4), block(5, 3)], [0, 98, 73, 147]);
    }

    #[test]
    fn only_writes_owe_steps() {
        let mut policy = RateLimited::new(&RateLimitedSettings::default(), CONTEXT);
        assert_eq!(steps(&mut policy, Occasion::Idle, [3]), [0]);
        assert_eq!(steps(&mut policy, Occasion::Ended, [3]), [0]);
        assert_eq!(steps(&mut policy, Occasion::Written(2), [3]), [12]);
    }
}
