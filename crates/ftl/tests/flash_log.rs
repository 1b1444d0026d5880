//! The dependencies between operations in the log, compared with examples worked out on paper.

#![allow(clippy::unwrap_used)] // helpers of tests count as library code

use flashwright_block::Bytes;
use flashwright_ftl::{Cause, Flash, OpKind};
use flashwright_nand::{Geometry, Lpn, Nand, Ppn, ProgramOrder, WearLimit};

/// Two dies of 4 blocks of 4 pages: pages 0 to 15 and 16 to 31. Pages 0 and 1 hold lpns 5 and 6.
fn flash(logging: bool) -> Flash {
    let geometry = Geometry::new(1, 2, 1, 4, 4, Bytes(4096));
    let nand = Nand::new(geometry, ProgramOrder::Ascending, WearLimit::Unlimited, &[]);
    let mut flash = Flash::new(nand, 16, logging, true);
    flash.host_writes_page(Lpn(5));
    flash.program(Ppn(0), Lpn(5), Cause::Host);
    flash.host_writes_page(Lpn(6));
    flash.program(Ppn(1), Lpn(6), Cause::Host);
    flash.clear_log();
    flash
}

fn log(flash: &Flash) -> Vec<(u32, OpKind, u32)> {
    flash.log().iter().map(|op| (op.ppn.0, op.kind, op.after)).collect()
}

/// Contents are noted by places in the log, so it goes on where they are kept.
#[test]
fn the_log_stops_and_goes_on() {
    let nand = || {
        let geometry = Geometry::new(1, 2, 1, 4, 4, Bytes(4096));
        Nand::new(geometry, ProgramOrder::Ascending, WearLimit::Unlimited, &[])
    };
    for (logging, contents, while_stopped, after) in [(true, false, 0, 1), (true, true, 1, 1), (false, false, 0, 0)] {
        let mut flash = Flash::new(nand(), 16, logging, contents);
        let logs = flash.stop_logging();
        flash.host_writes_page(Lpn(5));
        flash.program(Ppn(0), Lpn(5), Cause::Host);
        assert_eq!(flash.log().len(), while_stopped, "logging {logging}, contents {contents}");
        flash.clear_log();
        flash.log_again(logs);
        flash.host_writes_page(Lpn(6));
        flash.program(Ppn(1), Lpn(6), Cause::Host);
        assert_eq!(flash.log().len(), after, "logging {logging}, contents {contents}");
        assert_eq!(flash.counters().total(OpKind::Program), 2);
    }
}

#[test]
fn a_copy_programs_what_it_read() {
    let mut flash = flash(true);
    flash.copy_run(&[0, 1], &[5, 6], Ppn(16), Cause::Gc);
    use OpKind::{Program, Read};
    assert_eq!(log(&flash), [(0, Read, 0), (16, Program, 1), (1, Read, 0), (17, Program, 1)]);
    flash.clear_log();
    flash.copy(Ppn(17), Ppn(4), Cause::Wear);
    assert_eq!(log(&flash), [(17, Read, 0), (4, Program, 1)]);
    assert!(!flash.is_valid(Ppn(17)) && flash.is_valid(Ppn(4)));
}

/// A request that writes a part of 5, all of 7, and a part of 6: 5 and 6 wait for their own reads, 7 for nothing.
#[test]
fn programs_of_partial_pages_wait_for_their_own_read() {
    let mut flash = flash(true);
    flash.read(Ppn(0), Lpn(5));
    flash.host_program_waits(Lpn(5));
    flash.read(Ppn(1), Lpn(6));
    flash.host_program_waits(Lpn(6));
    flash.copy_run(&[0], &[5], Ppn(4), Cause::Gc); // cleaning on the way waits only for its own read
    for (ppn, lpn) in [(16, 5), (17, 7), (18, 6)] {
        flash.host_writes_page(Lpn(lpn));
        flash.program(Ppn(ppn), Lpn(lpn), Cause::Host);
    }
    use OpKind::{Program, Read};
    let expected = [
        (0, Read, 0),
        (1, Read, 0),
        (4, Program, 0), // a copy within a die: one entry
        (16, Program, 3),
        (17, Program, 0),
        (18, Program, 4),
    ];
    assert_eq!(log(&flash), expected);
    // The next request knows nothing of it.
    flash.clear_log();
    flash.host_writes_page(Lpn(5));
    flash.program(Ppn(19), Lpn(5), Cause::Host);
    assert_eq!(log(&flash), [(19, Program, 0)]);
}

#[test]
fn a_dependency_named_by_the_scheme_holds_for_one_operation() {
    let mut flash = flash(true);
    flash.read_internal(Ppn(0), Cause::Translation);
    flash.read_oob(Ppn(1), Cause::Host);
    flash.next_waits_for(2);
    flash.program(Ppn(16), Lpn(9), Cause::Translation);
    flash.erase(flashwright_nand::BlockId(7), Cause::Merge);
    use OpKind::{Erase, OobRead, Program, Read};
    assert_eq!(log(&flash), [(0, Read, 0), (1, OobRead, 0), (16, Program, 2), (28, Erase, 0)]);
    assert_eq!(flash.counters().get(Erase, Cause::Merge), 1);
}

/// A request of a large transfer can lie further back than 16 bits count.
#[test]
fn a_dependency_holds_however_far_back_it_lies() {
    let mut flash = flash(true);
    flash.read_internal(Ppn(0), Cause::Translation);
    let mark = flash.mark();
    for _ in 0..70_000 {
        flash.read_oob(Ppn(1), Cause::Host);
    }
    flash.next_waits_for_mark(mark);
    flash.program(Ppn(16), Lpn(9), Cause::Host);
    assert_eq!(flash.log().last().unwrap().after, 70_001);
}

#[test]
fn without_a_log_nothing_is_kept() {
    let mut flash = flash(false);
    flash.read(Ppn(0), Lpn(5));
    flash.host_program_waits(Lpn(5));
    flash.host_writes_page(Lpn(5));
    flash.program(Ppn(16), Lpn(5), Cause::Host);
    assert!(flash.log().is_empty());
}
