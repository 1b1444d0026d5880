//! In order of issue.

use super::{DieOrder, Group, Waiting};
use serde::{Deserialize, Serialize};

/// The oldest command that may be taken.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in crate::engine::chips) struct Fifo;

impl DieOrder for Fifo {
    #[inline(always)]
    fn next(&self, _die: usize, waiting: &Waiting) -> Option<Group> {
        waiting.oldest()
    }
}
