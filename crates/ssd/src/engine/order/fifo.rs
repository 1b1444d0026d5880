//! In order of issue.

use super::{DieOrder, Group, Heads};
use serde::{Deserialize, Serialize};

/// The oldest command that may be taken.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in crate::engine) struct Fifo;

impl DieOrder for Fifo {
    #[inline(always)]
    fn next(&self, _die: usize, heads: &Heads) -> Option<Group> {
        heads.oldest()
    }
}
