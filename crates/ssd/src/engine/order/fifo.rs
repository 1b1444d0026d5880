//! In order of issue.

use super::{Choice, DieOrder};
use crate::engine::Ready;
use serde::{Deserialize, Serialize};

/// A die takes operations in the order in which they were issued. One that waits for another die keeps those behind it
/// waiting too.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Fifo;

impl DieOrder for Fifo {
    #[inline(always)]
    fn reorders(&self) -> bool {
        false
    }

    #[inline(always)]
    fn next(&mut self, _die: usize, ready: &Ready<'_>) -> Choice {
        ready.oldest()
    }
}
