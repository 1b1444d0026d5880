//! Which of its waiting operations a die takes next.
//!
//! An order is a file here and a line in [`engine`](super). It states a preference and nothing else: which operations may
//! be taken at all is the engine's rule, and [`Ready`] shows no others.

mod by_class;
mod fifo;

pub use by_class::ByClass;
pub use fifo::Fifo;

use super::{OpClass, Ready};
use flashwright_ftl::OpKind;

/// Chooses what a die takes next.
///
/// ```
/// use flashwright_ssd::engine::{Choice, DieOrder, OpClass, Ready};
///
/// /// Reads of the host before all else.
/// struct HostReadsFirst;
///
/// impl DieOrder for HostReadsFirst {
///     fn next(&mut self, _die: usize, ready: &Ready<'_>) -> Choice {
///         ready.first(|op| op.class == OpClass::HostRead).unwrap_or(ready.oldest())
///     }
/// }
/// ```
pub trait DieOrder {
    /// Whether it may ever take another operation than the one issued first. If not, the engine keeps plain queues, does
    /// not ask [`DieOrder::next`], and an operation that waits for another die holds up those behind it.
    #[inline(always)]
    fn reorders(&self) -> bool {
        true
    }

    /// Chooses what `die` takes next, at the moment when it takes it. Asked only if something is ready; dies that are free at
    /// the same moment are asked in order of their numbers.
    fn next(&mut self, die: usize, ready: &Ready<'_>) -> Choice;
}

/// An operation that a die may take. Only [`Ready`] makes one, so that an order can't take another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice(pub(super) usize);

/// What an order knows of an operation. Runs of copies are written out: each copy is a read and a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What is done.
    pub kind: OpKind,
    /// Whose work it is.
    pub class: OpClass,
    /// The slot of its request, as `issue` answered it.
    pub slot: u32,
    /// Order of issue over the drive; operations of one run share it.
    pub sequence: u64,
}
