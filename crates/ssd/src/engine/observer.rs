//! Ends of operations, for whoever needs them.

use super::OpClass;
use flashwright_block::Nanos;
use flashwright_ftl::OpKind;
use flashwright_nand::Ppn;

/// An operation of which the end is known.
///
/// A run of copies is told copy by copy, each as a read and then a program; so every operation of a log, with its runs
/// written out, is told once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedOp {
    /// Which request it belongs to: under [`Parallel`](super::Parallel) the slot that `issue` answered, under
    /// [`Serial`](super::Serial) the number that `serve` was given.
    pub request: u64,
    /// Its position in the list of operations of that request.
    pub entry: u32,
    /// 0 for a single operation; in a run the number of the copy, from 1.
    pub copy: u32,
    /// The page; for an erase the first page of the block. None for the read of a copy: a run names only where its pages
    /// go.
    pub ppn: Option<Ppn>,
    /// What is done. The read of a copy is an [`OpKind::Read`].
    pub kind: OpKind,
    /// Whose work it is.
    pub class: OpClass,
    /// The die, counted over the drive.
    pub die: u32,
    /// When it took the die. Until its command and data have crossed the bus, the array rests: that of a program or an
    /// erase works in the last `timing.program` or `timing.erase` before `end`.
    pub start: Nanos,
    /// When it left the die.
    pub end: Nanos,
}

/// Hears of each operation when its end is known.
///
/// The parallel engine knows an end once it gives the operation its last turn on the bus, so an end may lie in the future when it
/// is told, and ends are told in order of these turns. Two promises hold where no operation takes zero time:
///
/// - When `next_completion(until)` has answered a completion at time t, or none with `until` = t, every operation that
///   ended by t has been told.
/// - What is told never changes afterwards.
///
/// So a power cut at t runs the engine until t. A program or erase that was told with an end by t is complete. One told
/// with a later end was under way if its array time had begun ([`EndedOp::start`]). One not told had not begun its array
/// time.
pub trait Observer {
    /// Whether it wants to hear anything. If not, the engine spares itself the work; the times are the same.
    #[inline(always)]
    fn listens(&self) -> bool {
        true
    }

    /// The end of an operation is known.
    fn ended(&mut self, op: EndedOp);
}

/// Hears nothing, at no cost.
impl Observer for () {
    #[inline(always)]
    fn listens(&self) -> bool {
        false
    }

    #[inline(always)]
    fn ended(&mut self, _: EndedOp) {}
}

/// Keeps all it hears.
impl Observer for Vec<EndedOp> {
    fn ended(&mut self, op: EndedOp) {
        self.push(op);
    }
}
