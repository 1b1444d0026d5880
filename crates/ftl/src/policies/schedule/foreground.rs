//! Foreground: a write that finds its plane short of free blocks waits until whole victims are cleaned; nothing is
//! cleaned at other times.

use super::{Moment, ScheduleContext, SchedulePolicy};
use crate::registry::NoSettings;
use serde::{Deserialize, Serialize};

/// `gc.schedule = "foreground"`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Foreground;

impl SchedulePolicy for Foreground {
    const NAME: &'static str = "foreground";
    const ABOUT: &'static str = "whole victims, when a write lacks room (the papers' drives)";
    const ASKED: bool = false;
    type Settings = NoSettings;

    fn new(_: &NoSettings, _: ScheduleContext) -> Self {
        Self
    }
    #[inline]
    fn steps(&mut self, _: &Moment) -> u32 {
        0
    }
}
