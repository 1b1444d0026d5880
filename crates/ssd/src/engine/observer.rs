//! Observers of operations.

use super::OpClass;
use flashwright_block::Nanos;
use flashwright_ftl::OpKind;
use flashwright_nand::Ppn;

/// An operation whose end is known.
///
/// A run of copies is reported copy by copy, each as a read and then a program. So every operation of a log is reported once,
/// with runs expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedOp {
    /// The request that it belongs to: under [`Parallel`](super::Parallel) the slot that `issue` returned, under
    /// [`Serial`](super::Serial) the number passed to `serve`; under [`Chips`](super::Chips) the slot of the request that waits for
    /// it, or [`NO_REQUEST`](super::NO_REQUEST).
    pub request: u64,
    /// Its position in the list of operations of that request; 0 under [`Chips`](super::Chips), whose commands join operations.
    pub entry: u32,
    /// 0 for a single operation; in a run the number of the copy, from 1.
    pub copy: u32,
    /// The page; for an erase the first page of the block. None for the read of a copy, because a run
    /// names only its destination pages. Under [`Chips`](super::Chips) also none for reads, which may be of
    /// several pages, and for parity.
    pub ppn: Option<Ppn>,
    /// Its kind. The read of a copy is an [`OpKind::Read`].
    pub kind: OpKind,
    /// Its class.
    pub class: OpClass,
    /// The die, counted over the drive.
    pub die: u32,
    /// When it occupied the die. The array is idle until command and data have crossed the bus: the array of a program or an
    /// erase is busy during the last `timing.program` or `timing.erase` before `end`. Under [`Chips`](super::Chips) the time from which
    /// its array worked, after the last suspension.
    pub start: Nanos,
    /// When it released the die.
    pub end: Nanos,
}

/// Receives each operation once its end is known.
///
/// The parallel engine knows an end once it grants the operation its last bus transfer. So a reported end may lie in the future,
/// and ends are reported in the order of these grants. If every operation takes time on the bus, then:
///
/// - When `next_completion(until)` has answered a completion at time t, or none with `until` = t, every operation that
///   ended by t has been reported.
/// - A reported end never changes.
///
/// So for a power cut at t, run the engine until t. A program or erase reported with an end by t is complete. One reported
/// with a later end was in progress if its array time had begun ([`EndedOp::start`]). One not reported had not begun its array
/// time.
///
/// The engine of [`Chips`](super::Chips) reports a command when it ends, since its end may move while it runs. A program is reported
/// page by page, of two passes only the second; an erase once for each die of its block. What has begun and not ended at a time is
/// what [`Chips::unfinished`](super::Chips::unfinished) answers then.
pub trait Observer {
    /// Whether it needs operations at all. If not, the engine does not collect them; the times are the same.
    #[inline(always)]
    fn listens(&self) -> bool {
        true
    }

    /// Receives an operation whose end is known.
    fn ended(&mut self, op: EndedOp);
}

/// Ignores everything, at no cost.
impl Observer for () {
    #[inline(always)]
    fn listens(&self) -> bool {
        false
    }

    #[inline(always)]
    fn ended(&mut self, _: EndedOp) {}
}

/// Keeps all operations.
impl Observer for Vec<EndedOp> {
    fn ended(&mut self, op: EndedOp) {
        self.push(op);
    }
}
