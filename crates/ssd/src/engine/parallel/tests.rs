//! What only shows inside.

use super::*;
use flashwright_block::Bytes;
use flashwright_config::BusOrder;
use flashwright_ftl::Cause;
use flashwright_nand::Ppn;

/// A read on die 0 for which a program on its own die and one on the other die wait, twice over:
///
/// ```text
///   die 0  read 0-50, out 50-150 | in 150-250, program to 450
///   die 1                        |             in 250-350, program to 550
/// ```
#[test]
fn waiters_on_the_same_die_and_on_another() {
    let geometry = Geometry::new(1, 2, 1, 4, 4, Bytes(4096));
    let times = Times {
        command: 0,
        pipelined: true,
        bus_order: BusOrder::FirstCome,
        array: [50, 200, 700, 50],
        transfer: [100, 100, 0, 10],
    };
    let mut engine = Parallel::new(&geometry, times, 0, ());
    let op = |ppn, kind, after| FlashOp { ppn: Ppn(ppn), kind, cause: Cause::Host, after, copies: 0 };
    let ops = [op(0, OpKind::Read, 0), op(1, OpKind::Program, 1), op(16, OpKind::Program, 2)];
    for start in [0, 1000] {
        let slot = engine.issue(start, 0, &ops, &geometry);
        assert_eq!(engine.next_completion(NEVER), Some((slot, start + 550)));
    }
    assert!(engine.cells.all_free(), "every cell came back");
}
