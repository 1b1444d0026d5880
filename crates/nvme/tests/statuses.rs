//! The golden table: every rule that a command can break has the status of the specification, and where several are broken, which
//! one is told. The statuses are those of NVM Express Base 2.1 and NVM Command Set 1.1, by type and code.

use crate::common::{Asked, UNIT, Units, ZONING, about, entry, list, wanted};
use flashwright_block::{Moved, Nanos, Placed, Placement};
use flashwright_nvme::commands::{Copying, Op, Outcome};
use flashwright_nvme::subsystem::{About, Place, Subsystem};
use flashwright_nvme::wire::{Status, put, u16_at, u32_at, u64_at};

const MIB: u64 = 1 << 20;
const ALL: u32 = u32::MAX;

/// A subsystem with controllers 1 and 2, and a command that comes to the first.
struct Table {
    subsystem: Subsystem,
    drive: Units,
}

/// A row of a table: what is broken, dwords 10 to 13, namespace, data, and the status by type and code.
type Row<'a> = (&'a str, [u32; 4], u32, Vec<u8>, (u8, u8));
/// The same with a whole command.
type RowOf<'a> = (&'a str, Asked, Vec<u8>, (u8, u8));

impl Table {
    /// Namespaces 1 (16 MiB, blocks of 512 B), 2 (16 MiB, blocks of 4 KiB) and 3 (8 MiB, private, of controller 2); 24 MiB are free.
    fn new(change: impl FnOnce(&mut About)) -> Self {
        let mut about = about();
        change(&mut about);
        let mut table = Self { subsystem: Subsystem::new(about), drive: Units::default() };
        for id in 1..=2 {
            let host = ([0; 16], "nqn.2014-08.org.nvmexpress:host".to_owned());
            assert_eq!(table.subsystem.admit(host, false, 0), Ok(id));
            assert!(table.subsystem.controller_mut(id).unwrap().set_property(0x14, 4, 1));
        }
        if table.subsystem.about.trims_to_zeros && !table.subsystem.about.is_read_only {
            table.admin((0x0d, 1, [1, 0, 0, 0]), &[]).unwrap();
            for (mib, format, shared) in [(16, 0, 1), (16, 1, 1), (8, 0, 0)] {
                table.admin((0x0d, 0, [0; 4]), &wanted(mib, format, shared)).unwrap();
            }
            for (nsid, controller) in [(1, 1), (2, 1), (3, 2)] {
                table.admin((0x15, nsid, [0; 4]), &list(&[controller])).unwrap();
            }
            table.do_chores();
        }
        table
    }

    fn do_chores(&mut self) {
        while let Some(io) = self.subsystem.next_chore() {
            self.subsystem.chore_ended(io.offset, io.bytes, true);
        }
    }

    fn ask(&mut self, queue: u16, asked: Asked, data: &[u8], wants: u32) -> Result<Outcome, Status> {
        self.subsystem.execute(Place { controller: 1, queue }, &entry(asked, wants), data, &mut self.drive)
    }

    fn admin(&mut self, asked: Asked, data: &[u8]) -> Result<Outcome, Status> {
        self.ask(0, asked, data, 4096)
    }

    /// What a command is answered with, as type and code.
    fn status(&mut self, queue: u16, asked: Asked, data: &[u8], wants: u32) -> (u8, u8) {
        self.ask(queue, asked, data, wants).err().unwrap_or(Status::SUCCESS).parts()
    }
}

/// The same with bytes changed.
fn changed(mut data: Vec<u8>, changes: &[(usize, u8)]) -> Vec<u8> {
    changes.iter().for_each(|(at, value)| data[*at] = *value);
    data
}

/// Source ranges of a Copy, or ranges of Dataset Management.
fn ranges(bytes: usize, all: &[(u64, u32)]) -> Vec<u8> {
    let mut data = vec![0; bytes * all.len()];
    for (entry, (first, blocks)) in data.chunks_exact_mut(bytes).zip(all) {
        put(entry, 8, &first.to_le_bytes());
        let (at, blocks) = if bytes == 32 { (16, blocks - 1) } else { (4, *blocks) };
        put(entry, at, &blocks.to_le_bytes());
    }
    data
}

/// Error recovery, bit 16 (DULBE): what is read and not written is an error, of the namespaces for which the host wishes that.
#[test]
fn what_is_not_written_is_an_error_where_a_host_wishes() {
    const WISH: [u32; 4] = [0x05, 1 << 16 | 7, 0, 0];
    let mut table = Table::new(|_| ());
    let unwritten = (2, 0x87);
    // Of namespace 1, which begins the drive, blocks 8 to 15; namespace 2 has nothing.
    table.drive.unwritten = 4096..8192;
    let asked = |opcode: u8, first: u32, blocks: u32| (opcode, 1, [first, 0, blocks - 1, 0]);
    let copied = |first: u64| ranges(32, &[(first, 1)]);
    for is_wished in [false, true] {
        let hole = if is_wished { unwritten } else { (0, 0) };
        for (first, blocks, want) in [(0, 8, (0, 0)), (7, 2, hole), (8, 1, hole), (15, 1, hole), (16, 8, (0, 0))] {
            let bytes = vec![0; 512 * blocks as usize];
            assert_eq!(table.status(1, asked(0x02, first, blocks), &[], 512 * blocks), want, "read {first}");
            assert_eq!(table.status(1, asked(0x05, first, blocks), &bytes, 0), want, "compare {first}");
            assert_eq!(table.status(1, asked(0x0c, first, blocks), &[], 0), want, "verify {first}");
            assert_eq!(
                table.status(1, (0x19, 1, [64, 0, 0, 0]), &copied(first.into()), 0),
                if blocks == 2 { (0, 0) } else { want }
            );
            assert_eq!(table.status(1, asked(0x01, first, blocks), &bytes, 0), (0, 0), "a write {first}");
        }
        // What is out of range is told first.
        assert_eq!(table.status(1, asked(0x02, 32_768, 1), &[], 512), (0, 0x80));
        assert_eq!(table.status(0, (0x09, 1, WISH), &[], 0), (0, 0));
    }
    let value = |table: &mut Table, nsid: u32| table.admin((0x0a, nsid, [0x05, 0, 0, 0]), &[]);
    assert_eq!(value(&mut table, 1), Ok(Outcome::Done(1 << 16 | 7, vec![])));
    assert_eq!(value(&mut table, 2), Ok(Outcome::nothing()));
    // Namespace 2 begins at 16 MiB.
    table.drive.unwritten = 16 * MIB..17 * MIB;
    assert_eq!(table.status(1, (0x02, 2, [0; 4]), &[], 4096), (0, 0));
    assert_eq!(table.status(0, (0x09, ALL, WISH), &[], 0), (0, 0));
    assert_eq!(table.status(1, (0x02, 2, [0; 4]), &[], 4096), unwritten);
    assert_eq!(table.status(0, (0x09, ALL, [0x05, 0, 0, 0]), &[], 0), (0, 0));
    assert_eq!(table.status(1, (0x02, 2, [0; 4]), &[], 4096), (0, 0));
    // NSFEAT tells it; a drive that does not know what is written does not have it.
    let features = |table: &mut Table| match table.admin((0x06, 1, [0; 4]), &[]) {
        Ok(Outcome::Done(_, data)) => data[24] >> 2 & 1,
        other => panic!("{other:?}"),
    };
    assert_eq!(features(&mut table), 1);
    let mut blind = Table::new(|about| about.trims_to_zeros = false);
    assert_eq!((features(&mut blind), blind.status(0, (0x09, 1, WISH), &[], 0)), (0, (0, 0x02)));
    assert_eq!(blind.status(0, (0x09, 1, [0x05, 7, 0, 0]), &[], 0), (0, 0));
}

#[test]
fn an_identifier_is_active_or_not_or_none() {
    // For each: a namespace that the controller has; one that another has; one that is not there; and no identifier of a namespace.
    let mut table = Table::new(|_| ());
    let (ok, field, namespace) = ((0, 0), (0, 0x02), (0, 0x0b));
    let of = |io: bool, opcode: u8, dwords: [u32; 4]| (io, opcode, dwords);
    let rows = [
        (of(true, 0x02, [0; 4]), ok, field, field, namespace, namespace), // read
        (of(true, 0x01, [0; 4]), (0, 0x0f), field, field, namespace, namespace), // write, without its data
        (of(true, 0x00, [0; 4]), ok, field, field, namespace, ok),        // flush
        (of(true, 0x05, [0; 4]), (0, 0x0f), field, field, namespace, namespace),
        (of(true, 0x08, [0; 4]), ok, field, field, namespace, namespace),
        (of(true, 0x09, [0; 4]), (0, 0x0f), field, field, namespace, namespace),
        (of(true, 0x0c, [0; 4]), ok, field, field, namespace, namespace),
        (of(true, 0x19, [0; 4]), (0, 0x0f), field, field, namespace, namespace),
        (of(false, 0x06, [0x00, 0, 0, 0]), ok, ok, ok, namespace, ok), // identify: zeros of what is not active
        (of(false, 0x06, [0x03, 0, 0, 0]), ok, field, field, namespace, namespace),
        (of(false, 0x06, [0x05, 0, 0, 0]), ok, ok, ok, namespace, namespace),
        (of(false, 0x06, [0x08, 0, 0, 0]), ok, ok, ok, namespace, namespace),
        (of(false, 0x06, [0x11, 0, 0, 0]), ok, ok, ok, namespace, namespace),
        (of(false, 0x06, [0x12, 0, 0, 0]), ok, ok, ok, namespace, field),
        (of(false, 0x06, [0x02, 0, 0, 0]), ok, ok, ok, ok, namespace), // of all above: any number but the last two
        (of(false, 0x06, [0x10, 0, 0, 0]), ok, ok, ok, ok, namespace),
        (of(false, 0x0a, [0x05, 0, 0, 0]), ok, field, field, namespace, namespace), // a feature of namespaces
        (of(false, 0x0a, [0x06, 0, 0, 0]), ok, ok, ok, ok, ok),                     // one of the controller
        (of(false, 0x09, [0x05, 1, 0, 0]), ok, field, field, namespace, ok),
        (of(false, 0x09, [0x06, 1, 0, 0]), (1, 0x0f), (1, 0x0f), (1, 0x0f), ok, ok),
        (of(false, 0x02, [0x02 | 127 << 16, 0, 0, 0]), field, field, field, ok, ok), // SMART is of the drive
    ];
    for ((io, opcode, dwords), active, inactive, unallocated, none, all) in rows {
        let cases = [(1, active), (3, inactive), (4, unallocated), (64, unallocated), (0, none), (ALL, all)];
        for (nsid, expected) in cases {
            let found = table.status(u16::from(io), (opcode, nsid, dwords), &[], if io { 512 } else { 4096 });
            assert_eq!(found, expected, "{opcode:02x} {dwords:x?} of {nsid}");
        }
    }
    for structure in [0x00, 0x02, 0x03, 0x08, 0x10, 0x11] {
        for nsid in [ALL - 1, ALL] {
            let expected = if structure == 0 && nsid == ALL { ok } else { namespace };
            assert_eq!(table.status(0, (0x06, nsid, [structure, 0, 0, 0]), &[], 4096), expected, "{structure:x}");
        }
    }
    // Zeros of what is not active, and the structure of what is allocated.
    let data = |table: &mut Table, structure: u32, nsid: u32| match table.admin((0x06, nsid, [structure, 0, 0, 0]), &[])
    {
        Ok(Outcome::Done(_, data)) => data,
        other => panic!("{other:?}"),
    };
    assert_eq!(data(&mut table, 0x00, 3), [0; 4096]);
    assert_ne!(data(&mut table, 0x11, 3), [0; 4096]);
    assert_eq!(data(&mut table, 0x11, 4), [0; 4096]);
}

#[test]
fn namespace_management_refuses_what_the_specification_says() {
    let mut table = Table::new(|_| ());
    let good = || wanted(1, 0, 1);
    let size = |blocks: u64, capacity: u64| {
        let mut data = good();
        put(&mut data, 0, &blocks.to_le_bytes());
        put(&mut data, 8, &capacity.to_le_bytes());
        data
    };
    let rows: &[Row<'_>] = &[
        ("a reserved select", [2, 0, 0, 0], 0, good(), (0, 0x02)),
        ("a short description", [0; 4], 0, vec![0; 512], (0, 0x0f)),
        ("another command set", [0, 2 << 24, 0, 0], 0, good(), (1, 0x29)),
        ("no such format", [0; 4], 0, changed(good(), &[(26, 2)]), (1, 0x0a)),
        ("metadata in the blocks", [0; 4], 0, changed(good(), &[(26, 1 << 4)]), (1, 0x0a)),
        ("protection information", [0; 4], 0, changed(good(), &[(29, 1)]), (1, 0x0a)),
        ("no blocks", [0; 4], 0, size(0, 0), (0, 0x02)),
        ("more capacity than size", [0; 4], 0, size(8, 9), (0, 0x02)),
        ("less capacity than size", [0; 4], 0, size(9, 8), (1, 0x1b)),
        ("another endurance group", [0; 4], 0, changed(good(), &[(102, 2)]), (0, 0x02)),
        ("an NVM set", [0; 4], 0, changed(good(), &[(100, 1)]), (0, 0x02)),
        ("more than is free", [0; 4], 0, wanted(25, 0, 1), (1, 0x15)),
        ("more than any drive has", [0; 4], 0, size(u64::MAX, u64::MAX), (1, 0x15)),
        // Which is told where several are broken.
        ("format before size", [0; 4], 0, changed(size(0, 0), &[(26, 2)]), (1, 0x0a)),
        ("thin provisioning before capacity", [0; 4], 0, size(1 << 30, 8), (1, 0x1b)),
        ("command set before format", [0, 2 << 24, 0, 0], 0, changed(good(), &[(26, 2)]), (1, 0x29)),
        ("all that is free", [0; 4], 0, wanted(24, 1, 1), (0, 0)),
        ("delete: none of that identifier", [1, 0, 0, 0], 9, vec![], (0, 0x02)),
        ("delete: no identifier of a namespace", [1, 0, 0, 0], 65, vec![], (0, 0x0b)),
        ("delete: 0", [1, 0, 0, 0], 0, vec![], (0, 0x0b)),
        ("delete: what another controller has", [1, 0, 0, 0], 3, vec![], (0, 0)),
        ("delete: all", [1, 0, 0, 0], ALL, vec![], (0, 0)),
        ("delete: all of none", [1, 0, 0, 0], ALL, vec![], (0, 0)),
    ];
    for (what, dwords, nsid, data, expected) in rows {
        assert_eq!(table.status(0, (0x0d, *nsid, *dwords), data, 4096), *expected, "{what}");
    }
    let small = changed(wanted(0, 0, 1), &[(0, 1), (8, 1)]);
    for id in 1..=64 {
        assert_eq!(table.admin((0x0d, 0, [0; 4]), &small), Ok(Outcome::Done(id, vec![])));
    }
    assert_eq!(table.status(0, (0x0d, 0, [0; 4]), &small, 0), (1, 0x16), "no further identifier");
}

#[test]
fn namespace_attachment_refuses_what_the_specification_says() {
    let mut table = Table::new(|_| ());
    let (attach, detach) = ([0; 4], [1, 0, 0, 0]);
    let rows: &[Row<'_>] = &[
        ("0", attach, 0, list(&[1]), (0, 0x0b)),
        ("all", attach, ALL, list(&[1]), (0, 0x0b)),
        ("one that is not there", attach, 4, list(&[1]), (0, 0x02)),
        ("a reserved select", [2, 0, 0, 0], 1, list(&[2]), (0, 0x02)),
        ("a short list", attach, 1, vec![0; 8], (0, 0x0f)),
        ("no controllers", attach, 1, list(&[]), (1, 0x1c)),
        ("controllers out of order", attach, 1, list(&[2, 1]), (1, 0x1c)),
        ("a controller that is not there", attach, 1, list(&[2, 7]), (1, 0x1c)),
        ("attached already", attach, 1, list(&[1, 2]), (1, 0x18)),
        ("private, and attached to another", attach, 3, list(&[1]), (1, 0x19)),
        ("attached to one more", attach, 1, list(&[2]), (0, 0)),
        ("not attached", detach, 2, list(&[2]), (1, 0x1a)),
        ("one of two not attached", detach, 2, list(&[1, 2]), (1, 0x1a)),
        ("a list that is wrong before what is attached", attach, 1, list(&[1, 7]), (1, 0x1c)),
        ("detached", detach, 3, list(&[2]), (0, 0)),
        ("private, to two at once", attach, 3, list(&[1, 2]), (1, 0x19)),
        ("private, to one", attach, 3, list(&[1]), (0, 0)),
    ];
    for (what, dwords, nsid, data, expected) in rows {
        assert_eq!(table.status(0, (0x15, *nsid, *dwords), data, 0), *expected, "{what}");
    }
}

#[test]
fn copy_refuses_what_the_specification_says() {
    let mut table = Table::new(|_| ());
    let copy = |to: u32, count: u32, more: u32| (0x19, 1, [to, 0, (count - 1) | more, 0]);
    let blocks = u32::try_from(16 * MIB / 512).unwrap();
    let one = || ranges(32, &[(100, 8)]);
    let rows: &[RowOf<'_>] = &[
        ("a format that is none", copy(0, 1, 5 << 8), one(), (0, 0x02)),
        ("a format of larger protection information", copy(0, 1, 1 << 8), one(), (0, 0x02)),
        ("a format that the host has not enabled", copy(0, 1, 2 << 8), one(), (0, 0x02)),
        ("a directive", copy(0, 1, 2 << 20), one(), (0, 0x02)),
        ("fewer ranges than told", copy(0, 2, 0), one(), (0, 0x0f)),
        ("more ranges than MSRC", copy(0, 129, 0), ranges(32, &[(100, 1); 129]), (1, 0x83)),
        ("a range longer than MSSRL", copy(9000, 1, 0), ranges(32, &[(100, 2049)]), (1, 0x83)),
        ("more than MCL", copy(9000, 2, 0), ranges(32, &[(100, 2048), (100, 1)]), (1, 0x83)),
        ("a source past the end", copy(0, 1, 0), ranges(32, &[(u64::from(blocks), 1)]), (0, 0x80)),
        ("a source that no drive has", copy(0, 1, 0), ranges(32, &[(u64::MAX, 2)]), (0, 0x80)),
        ("a destination past the end", copy(blocks - 7, 1, 0), one(), (0, 0x80)),
        ("a range into itself", copy(100, 1, 0), one(), (1, 0x87)),
        ("a range into a part of itself", copy(93, 1, 0), one(), (1, 0x87)),
        ("the second of two", copy(300, 2, 0), ranges(32, &[(100, 8), (308, 8)]), (1, 0x87)),
        ("sources that meet", copy(300, 2, 0), ranges(32, &[(100, 8), (104, 8)]), (0, 0)),
        ("what lies beside it", copy(108, 1, 0), one(), (0, 0)),
        ("limits before ranges", copy(blocks, 1, 0), ranges(32, &[(100, 2049)]), (1, 0x83)),
        ("the end before what meets", copy(blocks - 7, 1, 0), ranges(32, &[(u64::from(blocks) - 8, 8)]), (0, 0x80)),
    ];
    for (what, asked, data, expected) in rows {
        assert_eq!(table.status(1, *asked, data, 0), *expected, "{what}");
    }
    // Between namespaces, once the host has enabled it.
    table.admin((0x09, 0, [0x16, 0, 0, 0]), &changed(vec![0; 512], &[(4, 1 << 2)])).unwrap();
    for (nsid, expected) in
        [(1, (0, 0)), (2, (1, 0x85)), (3, (0, 0x02)), (0, (0, 0x0b)), (65, (0, 0x0b)), (ALL, (0, 0x0b))]
    {
        let mut data = one();
        put(&mut data, 0, &nsid.to_le_bytes());
        assert_eq!(table.status(1, copy(0, 1, 2 << 8), &data, 0), expected, "from {nsid}");
    }
    // What is read, and then written.
    let Ok(Outcome::Copy(asked)) = table.ask(1, copy(300, 2, 1 << 30), &ranges(32, &[(0, 1), (8, 2)]), 0) else {
        panic!("it is carried out");
    };
    let Copying { reads, writes } = *asked;
    assert_eq!(
        reads.iter().map(|io| (io.op, io.offset, io.bytes)).collect::<Vec<_>>(),
        [(Op::Read, 0, 512), (Op::Read, 4096, 1024)]
    );
    assert_eq!(
        writes.iter().map(|io| (io.op, io.offset, io.bytes, io.is_durable)).collect::<Vec<_>>(),
        [(Op::Write, 300 * 512, 1536, true)]
    );
}

#[test]
fn blocks_features_and_formats_refuse_what_the_specification_says() {
    let mut table = Table::new(|_| ());
    let blocks = u32::try_from(16 * MIB / 512).unwrap();
    let io: &[(RowOf<'_>, u32)] = &[
        (("the last block", (0x02, 1, [blocks - 1, 0, 0, 0]), vec![], (0, 0)), 512),
        (("past the end", (0x02, 1, [blocks, 0, 0, 0]), vec![], (0, 0x80)), 512),
        (("in part past the end", (0x02, 1, [blocks - 1, 0, 1, 0]), vec![], (0, 0x80)), 1024),
        (("past the end of a namespace of larger blocks", (0x02, 2, [4096, 0, 0, 0]), vec![], (0, 0x80)), 4096),
        (("room for less than is read", (0x02, 1, [0, 0, 1, 0]), vec![], (0, 0x0f)), 512),
        (("more than MDTS", (0x02, 1, [0, 0, 2048, 0]), vec![], (0, 0x02)), 2049 * 512),
        (("more than MDTS before past the end", (0x02, 1, [blocks, 0, 2048, 0]), vec![], (0, 0x02)), 2049 * 512),
        (("a directive before its data", (0x01, 1, [0, 0, 2 << 20, 0]), vec![], (0, 0x02)), 0),
        (("fewer ranges than told", (0x09, 1, [1, 4, 0, 0]), ranges(16, &[(0, 8)]), (0, 0x0f)), 0),
        (
            ("a range past the end", (0x09, 1, [1, 4, 0, 0]), ranges(16, &[(0, 8), (u64::from(blocks), 1)]), (0, 0x80)),
            0,
        ),
        (("a range of nothing", (0x09, 1, [0, 4, 0, 0]), ranges(16, &[(0, 0)]), (0, 0)), 0),
        (("hints, whatever they are", (0x09, 1, [0, 3, 0, 0]), ranges(16, &[(u64::MAX, 9)]), (0, 0)), 0),
        (("zeroes past the end", (0x08, 1, [blocks - 1, 0, 1, 0]), vec![], (0, 0x80)), 0),
        (("an opcode of none", (0x7e, 1, [0; 4]), vec![], (0, 0x01)), 0),
        (("one of the admin queue", (0x06, 1, [0; 4]), vec![], (0, 0x01)), 0),
    ];
    for ((what, asked, data, expected), wants) in io {
        assert_eq!(table.status(1, *asked, data, *wants), *expected, "{what}");
    }
    let admin: &[RowOf<'_>] = &[
        ("no such feature", (0x09, 0, [0x1d, 0, 0, 0]), vec![], (0, 0x02)),
        ("to be saved", (0x09, 0, [6 | 1 << 31, 1, 0, 0]), vec![], (1, 0x0d)),
        ("what can't be changed", (0x09, 0, [0x81, 0, 0, 0]), vec![], (1, 0x0e)),
        ("to be saved before what can't be changed", (0x09, 0, [0x81 | 1 << 31, 0, 0, 0]), vec![], (1, 0x0d)),
        ("a bit that is reserved", (0x09, 0, [6, 2, 0, 0]), vec![], (0, 0x02)),
        ("another bit of error recovery", (0x09, 1, [5, 1 << 17, 0, 0]), vec![], (0, 0x02)),
        ("a timestamp without its data", (0x09, 0, [0x0e, 0, 0, 0]), vec![], (0, 0x0f)),
        ("a timestamp", (0x09, 0, [0x0e, 0, 0, 0]), vec![1; 8], (0, 0)),
        ("a value of none of the kinds", (0x0a, 0, [6 | 4 << 8, 0, 0, 0]), vec![], (0, 0x02)),
        ("a page that is none", (0x02, ALL, [0x7e, 0, 0, 0]), vec![], (1, 0x09)),
        ("a structure that is none", (0x06, 0, [0x55, 0, 0, 0]), vec![], (0, 0x02)),
        ("a structure of another command set", (0x06, 1, [0x05, 2 << 24, 0, 0]), vec![], (0, 0x02)),
        ("no such format", (0x80, 1, [5, 0, 0, 0]), vec![], (1, 0x0a)),
        ("metadata", (0x80, 1, [1 << 4, 0, 0, 0]), vec![], (1, 0x0a)),
        ("a way to erase that is none", (0x80, 1, [3 << 9, 0, 0, 0]), vec![], (0, 0x02)),
        ("a format of what is not there", (0x80, 9, [0; 4]), vec![], (0, 0x02)),
        ("a format of all", (0x80, ALL, [1, 0, 0, 0]), vec![], (0, 0)),
        ("an abort of what does not wait", (0x08, 0, [7 << 16, 0, 0, 0]), vec![], (0, 0)),
    ];
    for (what, asked, data, expected) in admin {
        assert_eq!(table.status(0, *asked, data, 4096), *expected, "{what}");
    }
    // What can be done with a feature: changed, and set for each namespace.
    let capabilities = |table: &mut Table, id: u32| match table.admin((0x0a, 1, [id | 3 << 8, 0, 0, 0]), &[]) {
        Ok(Outcome::Done(bits, _)) => bits,
        other => panic!("{other:?}"),
    };
    assert_eq!([0x05, 0x06, 0x0e, 0x81].map(|id| capabilities(&mut table, id)), [0b110, 0b100, 0b100, 0]);
    let get = |table: &mut Table, nsid: u32, id: u32| table.admin((0x0a, nsid, [id, 0, 0, 0]), &[]);
    table.admin((0x09, 2, [5, 9, 0, 0]), &[]).unwrap();
    assert_eq!([1, 2].map(|nsid| get(&mut table, nsid, 5)), [0, 9].map(|value| Ok(Outcome::Done(value, vec![]))));
    let set = vec![1, 1, 1, 1, 1, 1, 1 << 1, 0];
    assert_eq!(get(&mut table, 0, 0x0e), Ok(Outcome::Done(0, set)), "the host has set it");
    assert_eq!(get(&mut table, 0, 0x0e | 1 << 8), Ok(Outcome::Done(0, vec![0; 8])), "by default it has not");
}

#[test]
fn while_the_drive_is_sanitized_other_commands_wait_for_its_end() {
    let mut table = Table::new(|_| ());
    table.admin((0x0c, 0, [0; 4]), &[]).unwrap();
    let Ok(Outcome::Io(before)) = table.ask(1, (0x02, 1, [0; 4]), &[], 512) else { panic!("a read") };
    table.admin((0x84, 0, [4, 0, 0, 0]), &[]).unwrap();
    assert_eq!(table.subsystem.check(&before).map_err(Status::parts), Err((0, 0x1d)), "it was not begun");
    let in_progress = (0, 0x1d);
    for opcode in [0x01, 0x02, 0x05, 0x08, 0x09, 0x0c, 0x19] {
        assert_eq!(table.status(1, (opcode, 1, [0; 4]), &[], 512), in_progress, "{opcode:x}");
    }
    for opcode in [0x0d, 0x15, 0x80, 0x84] {
        assert_eq!(table.status(0, (opcode, 1, [4, 0, 0, 0]), &[], 0), in_progress, "{opcode:x}");
    }
    assert_eq!(table.status(1, (0x00, 1, [0; 4]), &[], 0), (0, 0), "a flush");
    let log = |table: &mut Table| match table.admin((0x02, ALL, [0x81 | 127 << 16, 0, 0, 0]), &[]) {
        Ok(Outcome::Done(_, data)) => (u16::from_le_bytes([data[0], data[1]]), data[2], data[36]),
        other => panic!("{other:?}"),
    };
    assert_eq!(log(&mut table), (0, 2, 1), "nothing is done yet");
    // A reset of the controller, a power cut, and a restart do not end it.
    for value in [0, 1] {
        assert!(table.subsystem.controller_mut(1).unwrap().set_property(0x14, 4, value));
    }
    let io = table.subsystem.next_chore().unwrap();
    table.subsystem.chore_ended(io.offset, io.bytes, false);
    let kept = table.subsystem.take_changed().unwrap();
    let mut again = Table::new(|_| ());
    again.subsystem.restore(&kept).unwrap();
    for table in [&mut table, &mut again] {
        assert_eq!(table.status(1, (0x02, 1, [0; 4]), &[], 512), in_progress);
        table.subsystem.power_is_back();
        table.do_chores();
        assert_eq!(log(table), (u16::MAX, 1, 0));
        assert_eq!(table.status(1, (0x02, 1, [0; 4]), &[], 512), (0, 0));
    }
    assert_eq!(table.subsystem.check(&before).map_err(Status::parts), Err((0, 0x0b)), "it comes too late");
}

#[test]
fn a_drive_that_can_not_offers_no_management_and_one_that_must_not_refuses_it() {
    let mut table = Table::new(|about| about.trims_to_zeros = false);
    for opcode in [0x0d, 0x15, 0x84] {
        assert_eq!(table.status(0, (opcode, 1, [4, 0, 0, 0]), &[], 0), (0, 0x01), "{opcode:x}");
    }
    assert_eq!(table.status(0, (0x06, ALL, [0; 4]), &[], 4096), (0, 0x0b), "nothing that all have in common");
    let mut table = Table::new(|about| about.is_read_only = true);
    let protected = (0, 0x20);
    assert_eq!(table.status(0, (0x0d, 0, [0; 4]), &wanted(1, 0, 1), 0), protected);
    assert_eq!(table.status(0, (0x0d, 1, [1, 0, 0, 0]), &[], 0), protected);
    assert_eq!(table.status(0, (0x84, 0, [4, 0, 0, 0]), &[], 0), protected);
    assert_eq!(table.status(0, (0x80, 1, [0; 4]), &[], 0), protected);
    assert_eq!(table.status(1, (0x19, 1, [99, 0, 0, 0]), &ranges(32, &[(0, 1)]), 0), protected);
}

#[test]
fn event_requests_are_aborted() {
    let mut table = Table::new(|_| ());
    assert_eq!(table.admin((0x0c, 0, [0; 4]), &[]), Ok(Outcome::Held));
    assert_eq!(table.admin((0x08, 0, [0; 4]), &[]), Ok(Outcome::Done(0, vec![])), "it was aborted");
    assert_eq!(table.admin((0x08, 0, [0; 4]), &[]), Ok(Outcome::Done(1, vec![])), "it was not");
    let controller = table.subsystem.controller_mut(1).unwrap();
    assert_eq!(controller.next_event(), Some((0, Err(Status::ABORTED))));
    assert_eq!(controller.next_event(), None);
}

/// What a namespace with placement handles is created with.
fn wanted_with(handles: &[u16]) -> Vec<u8> {
    let mut data = wanted(1, 0, 1);
    put(&mut data, 392, &u16::try_from(handles.len()).unwrap().to_le_bytes());
    handles.iter().enumerate().for_each(|(at, handle)| put(&mut data, 512 + 2 * at, &handle.to_le_bytes()));
    data
}

/// A drive of four handles, with namespace 1 of handles 2, 0 and 1 and namespace 2 of handle 3, which the controller chose.
fn placed_table() -> Table {
    let mut table = Table::new(|about| about.placement = Some(Units::default().placement()));
    table.drive.rooms = Some([UNIT, UNIT, 4096, UNIT - 8192]);
    assert_eq!(table.status(0, (0x0d, ALL, [1, 0, 0, 0]), &[], 0), (0, 0));
    for (nsid, handles) in [(1, &[2, 0, 1][..]), (2, &[])] {
        assert_eq!(table.admin((0x0d, 0, [0; 4]), &wanted_with(handles)), Ok(Outcome::Done(nsid, vec![])));
        table.admin((0x15, u32::try_from(nsid).unwrap(), [0; 4]), &list(&[1])).unwrap();
    }
    table.do_chores();
    table
}

/// The dwords of Get Log Page, of an endurance group.
fn log(page: u32, bytes: u32, group: u32) -> Asked {
    (0x02, 0, [page | (bytes / 4 - 1) << 16, group << 16, 0, 0])
}

#[test]
fn placement_refuses_what_the_specification_says() {
    let mut table = placed_table();
    let create = |handles: &[u16]| (0x0d, 0, [0; 4], wanted_with(handles));
    let rows = [
        ("a handle twice", create(&[1, 1]), (0, 0x2a)),
        ("no such handle", create(&[4]), (0, 0x2a)),
        ("one that the controller uses", create(&[0, 3]), (0, 0x2a)),
        ("more than a list takes", create(&[0; 129]), (0, 0x2a)),
        ("handles that another namespace has", create(&[0, 1]), (0, 0)),
        ("the choice of the controller", create(&[]), (0, 0)),
    ];
    for (what, (opcode, nsid, dwords, data), expected) in rows {
        assert_eq!(table.status(0, (opcode, nsid, dwords), &data, 0), expected, "{what}");
    }
    // Features: of the endurance group, and of a placement identifier.
    let set = |id: u32, dwords: [u32; 2]| (0x09, 0, [id, dwords[0], dwords[1], 0]);
    let rows: &[RowOf<'_>] = &[
        ("placement of group 0", set(0x1d, [0, 1]), vec![], (0, 0x02)),
        ("placement of group 2", set(0x1d, [2, 1]), vec![], (0, 0x02)),
        ("a configuration that there is not", set(0x1d, [1, 1 | 1 << 8]), vec![], (0, 0x02)),
        ("with namespaces", set(0x1d, [1, 1]), vec![], (0, 0x0c)),
        ("with namespaces, to be kept", set(0x1d | 1 << 31, [1, 0]), vec![], (0, 0x0c)),
        ("got of group 0", (0x0a, 0, [0x1d, 0, 0, 0]), vec![], (0, 0x02)),
        ("got of group 1", (0x0a, 0, [0x1d, 1, 0, 0]), vec![], (0, 0)),
        ("events of no namespace", (0x09, 0, [0x1e, 1 << 16, 1, 0]), vec![3], (0, 0x0b)),
        ("events of all namespaces", (0x09, ALL, [0x1e, 1 << 16, 1, 0]), vec![3], (0, 0x0b)),
        ("events of one that is not there", (0x09, 9, [0x1e, 1 << 16, 1, 0]), vec![3], (0, 0x02)),
        ("events of no handle", (0x09, 1, [0x1e, 3 | 1 << 16, 1, 0]), vec![3], (0, 0x02)),
        ("events that there are not", (0x09, 1, [0x1e, 2 << 16, 1, 0]), vec![3, 1], (0, 0x02)),
        ("fewer events than told", (0x09, 1, [0x1e, 2 << 16, 1, 0]), vec![3], (0, 0x0f)),
        ("events got of no handle", (0x0a, 1, [0x1e, 3 | 4 << 16, 0, 0]), vec![], (0, 0x02)),
        ("events got of all namespaces", (0x0a, ALL, [0x1e, 4 << 16, 0, 0]), vec![], (0, 0x0b)),
        ("events got", (0x0a, 1, [0x1e, 4 << 16, 0, 0]), vec![], (0, 0)),
        // Log pages.
        ("configurations of group 0", log(0x20, 16, 0), vec![], (0, 0x02)),
        ("configurations of group 2", log(0x20, 16, 2), vec![], (0, 0x02)),
        ("configurations", log(0x20, 16, 1), vec![], (0, 0)),
        ("usage of group 0", log(0x21, 16, 0), vec![], (0, 0x02)),
        ("usage", log(0x21, 16, 1), vec![], (0, 0)),
        ("statistics of group 0", log(0x22, 64, 0), vec![], (0, 0x02)),
        ("statistics", log(0x22, 64, 1), vec![], (0, 0)),
        ("events of group 0", log(0x23, 64, 0), vec![], (0, 0x02)),
        ("events", log(0x23, 64, 1), vec![], (0, 0)),
        ("past the end", (0x02, 0, [0x22 | 15 << 16, 1 << 16, 68, 0]), vec![], (0, 0x02)),
        ("no whole dwords", (0x02, 0, [0x22 | 15 << 16, 1 << 16, 2, 0]), vec![], (0, 0x02)),
        // Directives.
        ("directives of no namespace", (0x1a, 0, [1023, 1, 0, 0]), vec![], (0, 0x0b)),
        ("directives", (0x1a, 1, [1023, 1, 0, 0]), vec![], (0, 0)),
        ("another operation", (0x1a, 1, [1023, 2, 0, 0]), vec![], (0, 0x02)),
        ("parameters of placement", (0x1a, 1, [1023, 1 | 2 << 8, 0, 0]), vec![], (0, 0x02)),
        ("parameters of streams", (0x1a, 1, [1023, 1 | 1 << 8, 0, 0]), vec![], (0, 0x02)),
        ("a directive that is switched", (0x19, 1, [0, 1, 1 | 2 << 8, 0]), vec![], (0, 0x02)),
        ("one that is switched of no namespace", (0x19, 0, [0, 1, 1, 0]), vec![], (0, 0x0b)),
    ];
    for (what, asked, data, expected) in rows {
        assert_eq!(table.status(0, *asked, data, 4096), *expected, "{what}");
    }
    let (receive, send) =
        (|mo: u32, nsid: u32| (0x12, nsid, [mo, 31, 0, 0]), |mo: u32, nsid: u32| (0x1d, nsid, [mo, 0, 0, 0]));
    let directive = |kind: u32, identifier: u32| (0x01, 1, [0, 0, kind << 20, identifier << 16]);
    let block = || vec![0; 512];
    let rows: &[RowOf<'_>] = &[
        ("no action", receive(0, 1), vec![], (0, 0)),
        ("units", receive(1, 1), vec![], (0, 0)),
        ("another action", receive(2, 1), vec![], (0, 0x02)),
        ("units of all namespaces", receive(1, ALL), vec![], (0, 0x0b)),
        ("units of none", receive(1, 0), vec![], (0, 0x0b)),
        ("units of one that is not there", receive(1, 9), vec![], (0, 0x02)),
        ("more than there is room for", (0x12, 1, [1, 2000, 0, 0]), vec![], (0, 0x0f)),
        ("more than a transfer", (0x12, 1, [1, u32::MAX, 0, 0]), vec![], (0, 0x02)),
        ("no action of sending", send(0, 1), vec![], (0, 0)),
        ("an update", send(1, 1), vec![0, 0], (0, 0)),
        ("another action of sending", send(2, 1), vec![0, 0], (0, 0x02)),
        ("an update of no handle", send(1, 1), vec![3, 0], (0, 0x02)),
        ("an update without its list", send(1, 1), vec![], (0, 0x0f)),
        ("more updates than a list takes", (0x1d, 1, [1 | 128 << 16, 0, 0, 0]), vec![0; 258], (0, 0x02)),
        ("an update of all namespaces", send(1, ALL), vec![0, 0], (0, 0x0b)),
        ("a write without a directive", directive(0, 0), block(), (0, 0)),
        ("a stream", directive(1, 0), block(), (0, 0x02)),
        ("a placement", directive(2, 1), block(), (0, 0)),
        ("a placement that there is not", directive(2, 0x8001), block(), (0, 0)),
        ("a reserved directive", directive(3, 0), block(), (0, 0x02)),
        ("a vendor's directive", directive(15, 0), block(), (0, 0x02)),
        ("zeros with a reserved directive", (0x08, 1, [0, 0, 5 << 20, 0]), vec![], (0, 0x02)),
        ("a copy with a reserved directive", (0x19, 1, [8, 0, 5 << 20, 0]), ranges(32, &[(0, 1)]), (0, 0x02)),
        ("a directive before the end", (0x01, 1, [ALL, 0, 3 << 20, 0]), block(), (0, 0x02)),
    ];
    for (what, asked, data, expected) in rows {
        assert_eq!(table.status(1, *asked, data, 4096), *expected, "{what}");
    }
    table.drive.rooms = None;
    assert_eq!(table.status(1, receive(1, 1), &[], 4096), (0, 0x05), "without power");
    assert_eq!(table.status(1, send(1, 1), &[0, 0], 0), (0, 0x05), "without power");
}

#[test]
fn while_placement_is_off_nothing_of_it_is_there() {
    let mut table = placed_table();
    table.drive.rooms = Some([UNIT; 4]);
    table.admin((0x0d, ALL, [1, 0, 0, 0]), &[]).unwrap();
    table.do_chores();
    assert_eq!(table.status(0, (0x09, 0, [0x1d | 1 << 31, 1, 0, 0]), &[], 0), (0, 0), "switched off");
    assert_eq!(table.admin((0x0a, 0, [0x1d, 1, 0, 0]), &[]), Ok(Outcome::Done(0, vec![])));
    assert_eq!(table.admin((0x0a, 0, [0x1d | 2 << 8, 1, 0, 0]), &[]), Ok(Outcome::Done(0, vec![])), "as kept");
    assert_eq!(table.admin((0x0a, 0, [0x1d | 1 << 8, 1, 0, 0]), &[]), Ok(Outcome::Done(1, vec![])), "by default");
    assert_eq!(
        table.admin((0x0a, 0, [0x1d | 3 << 8, 1, 0, 0]), &[]),
        Ok(Outcome::Done(0b101, vec![])),
        "kept, changes"
    );
    // A list is not looked at.
    table.admin((0x0d, 0, [0; 4]), &wanted_with(&[9, 9])).unwrap();
    table.admin((0x15, 1, [0; 4]), &list(&[1])).unwrap();
    let rows = [
        (0, log(0x20, 16, 1), vec![], (0, 0)),
        (0, log(0x21, 16, 1), vec![], (0, 0x29)),
        (0, log(0x22, 64, 1), vec![], (0, 0x29)),
        (0, log(0x23, 64, 1), vec![], (0, 0x29)),
        (0, (0x0a, 1, [0x1e, 1 << 16, 0, 0]), vec![], (0, 0x29)),
        (0, (0x09, 1, [0x1e, 1 << 16, 1, 0]), vec![3], (0, 0x29)),
        (1, (0x12, 1, [1, 31, 0, 0]), vec![], (0, 0x29)),
        (1, (0x1d, 1, [1, 0, 0, 0]), vec![0, 0], (0, 0x29)),
        (1, (0x01, 1, [0, 0, 2 << 20, 0]), vec![0; 512], (0, 0x02)),
        (1, (0x01, 1, [0, 0, 0, 0]), vec![0; 512], (0, 0)),
    ];
    for (queue, asked, data, expected) in rows {
        assert_eq!(table.status(queue, asked, &data, 4096), expected, "{asked:x?}");
    }
    let Ok(Outcome::Done(_, found)) = table.admin((0x1a, 1, [1023, 1, 0, 0]), &[]) else { panic!("directives") };
    assert_eq!([found[0], found[32], found[64]], [0b101, 0b001, 0]);
    // A drive that places nothing has none of these commands, log pages and features.
    let mut plain = Table::new(|_| ());
    for (queue, asked, expected) in [
        (0, log(0x20, 16, 1), (1, 0x09)),
        (0, (0x0a, 0, [0x1d, 1, 0, 0]), (0, 0x02)),
        (0, (0x1a, 1, [1023, 1, 0, 0]), (0, 0x01)),
        (1, (0x12, 1, [1, 31, 0, 0]), (0, 0x01)),
        (1, (0x1d, 1, [1, 0, 0, 0]), (0, 0x01)),
    ] {
        assert_eq!(plain.status(queue, asked, &[0; 4], 4096), expected, "{asked:x?}");
    }
}

#[test]
fn identifiers_lead_to_handles_and_events_tell_what_happened() {
    let mut table = placed_table();
    let handle_of = |table: &mut Table, opcode: u8, nsid: u32, kind: u32, identifier: u32| {
        let data = if opcode == 0x19 { ranges(32, &[(0, 1)]) } else { vec![0; 512] };
        match table.ask(1, (opcode, nsid, [8, 0, kind << 20, identifier << 16]), &data, 0) {
            Ok(Outcome::Io(io)) => io.stream,
            Ok(Outcome::Copy(copy)) => copy.writes[0].stream,
            other => panic!("{other:?}"),
        }
    };
    for opcode in [0x01, 0x08, 0x19] {
        // The place in the list of the namespace, not the number of the handle.
        let found = [0, 1, 2, 3, 0xffff].map(|identifier| handle_of(&mut table, opcode, 1, 2, identifier));
        assert_eq!(found, [2, 0, 1, 2, 2], "{opcode:x}: what names none is the first");
        assert_eq!(handle_of(&mut table, opcode, 1, 0, 1), 2, "{opcode:x}: no directive");
        assert_eq!([0, 7].map(|identifier| handle_of(&mut table, opcode, 2, 2, identifier)), [3, 3], "{opcode:x}");
    }
    // Units: identifier, handle and blocks of 512 B of each.
    let data = |outcome: Result<Outcome, Status>| match outcome {
        Ok(Outcome::Done(_, data)) => data,
        other => panic!("{other:?}"),
    };
    let units = data(table.ask(1, (0x12, 1, [1, 31, 0, 0]), &[], 128));
    assert_eq!((units.len(), u16_at(&units, 14)), (128, 3));
    let of = |at: usize| (u16_at(&units, 16 + 32 * at), u16_at(&units, 18 + 32 * at), u64_at(&units, 24 + 32 * at));
    assert_eq!([of(0), of(1), of(2)], [(0, 2, 8), (1, 0, UNIT / 512), (2, 1, UNIT / 512)]);
    // What is used, and by whom.
    let usage = data(table.admin(log(0x21, 40, 1), &[]));
    assert_eq!((u16_at(&usage, 0), [8, 16, 24, 32].map(|at| usage[at])), (4, [1, 1, 1, 2]));
    let found = data(table.admin((0x1a, 1, [1023, 1, 0, 0]), &[]));
    assert_eq!([found[0], found[32], found[64]], [0b101, 0b101, 0b100]);
    // No event is noted that nobody wants.
    let events = |table: &mut Table, of_hosts: u32| data(table.admin(log(0x23 | of_hosts << 8, 4096, 1), &[]));
    assert_eq!(u32_at(&events(&mut table, 1), 0), 0);
    let types = |table: &mut Table| data(table.admin((0x0a, 1, [0x1e, 4 << 16, 0, 0]), &[]));
    assert_eq!(types(&mut table), [0x00, 0, 0x03, 0, 0x80, 0]);
    table.admin((0x09, 1, [0x1e, 3 << 16, 1, 0]), &[0x00, 0x03, 0x80]).unwrap();
    assert_eq!(types(&mut table), [0x00, 1, 0x03, 1, 0x80, 1]);
    assert_eq!(table.drive.watched, 1 << 2, "by handle, not by identifier");
    handle_of(&mut table, 0x01, 1, 2, 77);
    table.ask(1, (0x1d, 1, [1 | 1 << 16, 0, 0, 0]), &[0, 0, 1, 0], 0).unwrap(); // identifiers 0, which has room, and 1
    let found = events(&mut table, 1);
    assert_eq!((u32_at(&found, 0), found[64], found[65], u16_at(&found, 66)), (2, 0x03, 0b111, 77));
    assert_eq!((u32_at(&found, 76), found[98]), (1, 2), "namespace and handle");
    assert_eq!((found[128], u16_at(&found, 130), found[162]), (0x00, 0, 2));
    assert_eq!(table.drive.rooms.unwrap()[2], UNIT);
    // What the drive moved, in the namespace that holds it: block 16 of namespace 2, which begins 1 MiB into the drive.
    table.drive.moved = vec![Moved { at: Nanos(2_000_000), handle: 3, group: 0, first_sector: 2048 + 16, sectors: 24 }];
    let found = events(&mut table, 0);
    assert_eq!((u32_at(&found, 0), found[64], found[65], u64_at(&found, 68)), (1, 0x80, 0b111, 2));
    assert_eq!((u32_at(&found, 76), found[80], u16_at(&found, 82), u64_at(&found, 84)), (2, 1, 24, 16));
    // The latest 63 are kept.
    for identifier in 0..70 {
        handle_of(&mut table, 0x01, 1, 2, 1000 + identifier);
    }
    let found = events(&mut table, 1);
    assert_eq!((u32_at(&found, 0), u16_at(&found, 66), u16_at(&found, 64 * 63 + 2)), (63, 1007, 1069));
    table.admin((0x09, 1, [0x1e, 3 << 16, 0, 0]), &[0x00, 0x03, 0x80]).unwrap();
    assert_eq!((types(&mut table), table.drive.watched), (vec![0x00, 0, 0x03, 0, 0x80, 0], 0));
}

/// As [`placed_table`], with three groups: two bits of an identifier are the group.
fn grouped_table() -> Table {
    let offered = Placement { groups: 3, ..Units::default().placement() };
    let mut table = Table::new(|about| about.placement = Some(offered));
    (table.drive.rooms, table.drive.more_groups) = (Some([UNIT, UNIT, 4096, UNIT - 8192]), 2);
    table.admin((0x0d, ALL, [1, 0, 0, 0]), &[]).unwrap();
    table.admin((0x0d, 0, [0; 4]), &wanted_with(&[2, 0])).unwrap();
    table.admin((0x15, 1, [0; 4]), &list(&[1])).unwrap();
    table.do_chores();
    table
}

#[test]
fn identifiers_of_several_groups_have_the_group_in_their_highest_bits() {
    let mut table = grouped_table();
    let data = |outcome: Result<Outcome, Status>| match outcome {
        Ok(Outcome::Done(_, data)) => data,
        other => panic!("{other:?}"),
    };
    let page = data(table.admin(log(0x20, 96, 1), &[]));
    assert_eq!((page[18], u32_at(&page, 20), u16_at(&page, 24), u16_at(&page, 26)), (0x82, 3, 4, 127));
    // The place in the list of the namespace becomes the handle, the group stays. What names none, or none of either, is the first handle of
    // group 0, and event 3h names the identifier that was named.
    table.admin((0x09, 1, [0x1e, 2 << 16, 1, 0]), &[0x00, 0x03]).unwrap();
    let mut stream_of = |kind: u32, identifier: u32| match table.ask(
        1,
        (0x01, 1, [0, 0, kind << 20, identifier << 16]),
        &[0; 512],
        0,
    ) {
        Ok(Outcome::Io(io)) => io.stream,
        other => panic!("{other:?}"),
    };
    for (identifier, expected) in
        [(0, 2), (1, 0), (0x4000, 0x4002), (0x4001, 0x4000), (0x8000, 0x8002), (0x8001, 0x8000)]
    {
        assert_eq!(stream_of(2, identifier), expected, "{identifier:x}");
    }
    for unknown in [2, 0x4002, 0xc000, 0xffff] {
        assert_eq!(stream_of(2, unknown), 2, "{unknown:x}");
    }
    assert_eq!(stream_of(0, 0x8001), 2, "no directive");
    let found = data(table.admin(log(0x23 | 1 << 8, 4096, 1), &[]));
    assert_eq!(u32_at(&found, 0), 4);
    let event = |at: usize| (found[64 + 64 * at], u16_at(&found, 66 + 64 * at), u32_at(&found, 96 + 64 * at));
    assert_eq!([0, 1, 2, 3].map(event), [2, 0x4002, 0xc000, 0xffff].map(|identifier| (3, identifier, 2 << 16)));
    // Units of each handle in each group, and as many of a longer list as the host has room for.
    let units = data(table.ask(1, (0x12, 1, [1, 51, 0, 0]), &[], 208));
    assert_eq!((units.len(), u16_at(&units, 14)), (16 + 6 * 32, 6));
    let of = |at: usize| (u16_at(&units, 16 + 32 * at), u16_at(&units, 18 + 32 * at), u64_at(&units, 24 + 32 * at));
    let whole = UNIT / 512;
    assert_eq!([of(0), of(1), of(2)], [(0, 2, 8), (0x4000, 2, whole - 8), (0x8000, 2, whole - 16)]);
    assert_eq!([of(3), of(4), of(5)], [(1, 0, whole), (0x4001, 0, whole - 8), (0x8001, 0, whole - 16)]);
    assert_eq!(data(table.ask(1, (0x12, 1, [1, 15, 0, 0]), &[], 64)), units[..64]);
    // Usage is of handles, in all groups.
    let usage = data(table.admin(log(0x21, 40, 1), &[]));
    assert_eq!((u16_at(&usage, 0), [8, 16, 24, 32].map(|at| usage[at])), (4, [1, 0, 1, 0]));
    // All or none are left; the event names group and handle.
    let list = |all: &[u16]| all.iter().flat_map(|identifier| identifier.to_le_bytes()).collect::<Vec<u8>>();
    for unknown in [2, 0xc000, 0x4002] {
        assert_eq!(table.status(1, (0x1d, 1, [1 | 1 << 16, 0, 0, 0]), &list(&[0x8001, unknown]), 0), (0, 0x02));
    }
    assert_eq!(table.drive.renewed, [0u16; 0]);
    assert_eq!(table.status(1, (0x1d, 1, [1 | 1 << 16, 0, 0, 0]), &list(&[0x8000, 0]), 0), (0, 0));
    assert_eq!(table.drive.renewed, [0x8002, 2]);
    let found = data(table.admin(log(0x23 | 1 << 8, 4096, 1), &[]));
    let event = |at: usize| (found[64 + 64 * at], u16_at(&found, 66 + 64 * at), u32_at(&found, 96 + 64 * at));
    assert_eq!([4, 5].map(event), [(0, 0x8000, 2 << 16 | 2), (0, 0, 2 << 16)]);
    // What the drive moved in a group.
    table.drive.moved = vec![Moved { at: Nanos(1), handle: 0, group: 1, first_sector: 16, sectors: 8 }];
    let found = data(table.admin(log(0x23, 4096, 1), &[]));
    assert_eq!((found[64], found[65], u16_at(&found, 66), u32_at(&found, 96)), (0x80, 0b111, 0x4001, 1));
}

#[test]
fn what_is_kept_of_placement_reads_back() {
    let mut table = placed_table();
    table.admin((0x09, 1, [0x1e, 1 << 16, 1, 0]), &[0x03]).unwrap();
    let kept = table.subsystem.take_changed().unwrap();
    let about = table.subsystem.about.clone();
    let mut again = Subsystem::new(about.clone());
    again.restore(&kept).unwrap();
    let handles = |subsystem: &Subsystem| {
        subsystem
            .namespaces()
            .iter()
            .map(|namespace| (namespace.handles.clone(), namespace.is_assigned))
            .collect::<Vec<_>>()
    };
    assert_eq!(handles(&again), [(vec![2, 0, 1], false), (vec![3], true)]);
    for cut in 0..kept.len() {
        let _ = Subsystem::new(about.clone()).restore(&kept[..cut]); // whatever it is, it ends
    }
    // A drive of other handles is another drive.
    let fewer = Placement { handles: 2, ..Units::default().placement() };
    for placement in [None, Some(fewer)] {
        assert!(Subsystem::new(About { placement, ..about.clone() }).restore(&kept).is_err());
    }
    // What was kept before the drive placed data: every namespace has all handles.
    let mut plain = Table::new(|_| ());
    let kept = plain.subsystem.take_changed().unwrap();
    let mut again = Subsystem::new(about);
    again.restore(&kept).unwrap();
    assert_eq!(handles(&again), vec![(vec![0, 1, 2, 3], false); 3]);
}

/// A drive with zones, whose host has enabled all command sets.
fn zoned_table() -> Table {
    let mut table = Table::new(|about| {
        (about.unit_bytes, about.trims_to_zeros, about.zoning) = (4096, false, Some(ZONING));
    });
    table.subsystem.controller_mut(1).unwrap().set_property(0x14, 4, 6 << 4 | 1);
    table.drive = Units { rooms: Some([UNIT; 4]), has_zones: true, ..Units::default() };
    table
}

/// The zones of the drive have the states in turn: empty, implicitly and explicitly open, closed, read-only, full, offline.
#[test]
fn zones_refuse_what_the_specification_says() {
    let mut table = zoned_table();
    const SIZE: u32 = 1024;
    let block = || vec![0; 4096];
    let send = |zone: u32, action: u32| (0x79, 1, [zone * SIZE, 0, 0, action]);
    let report = |dword_13: u32, dwords: u32| (0x7a, 1, [0, 0, dwords - 1, dword_13]);
    let io: &[(RowOf<'_>, u32)] = &[
        (("a read of an offline zone", (0x02, 1, [6 * SIZE, 0, 0, 0]), vec![], (1, 0xbb)), 4096),
        (("a read that ends in one", (0x02, 1, [6 * SIZE - 1, 0, 1, 0]), vec![], (1, 0xbb)), 8192),
        (("a read of a read-only zone", (0x02, 1, [4 * SIZE, 0, 0, 0]), vec![], (0, 0)), 4096),
        (("a check of an offline zone", (0x0c, 1, [13 * SIZE, 0, 0, 0]), vec![], (1, 0xbb)), 0),
        (("a comparison with one", (0x05, 1, [6 * SIZE, 0, 0, 0]), block(), (1, 0xbb)), 0),
        (("a copy from one", (0x19, 1, [0, 0, 0, 0]), ranges(32, &[(u64::from(6 * SIZE), 1)]), (1, 0xbb)), 0),
        (("past the end before offline", (0x02, 1, [16 * SIZE, 0, 0, 0]), vec![], (0, 0x80)), 4096),
        (("read-only goes offline", send(4, 5), vec![], (0, 0)), 0),
        (("offline stays so", send(6, 5), vec![], (0, 0)), 0),
        (("closed can't go offline", send(3, 5), vec![], (1, 0xbf)), 0),
        (("all that are read-only go offline", send(9, 5 | 1 << 8), vec![], (0, 0)), 0),
        (("an action that there is not before the zone", send(99, 6), vec![], (0, 0x02)), 0),
        (("a zone that there is not", send(16, 4), vec![], (0, 0x80)), 0),
        (("a block within a zone", (0x79, 1, [1, 0, 0, 4]), vec![], (0, 0x02)), 0),
        (("a descriptor extension", send(0, 0x10), block(), (0, 0x02)), 0),
        (("an append with a directive", (0x7d, 1, [0, 0, 2 << 20, 0]), block(), (0, 0x02)), 0),
        (("an append without its data", (0x7d, 1, [0, 0, 1, 0]), block(), (0, 0x0f)), 0),
        (("an append longer than ZASL", (0x7d, 1, [0, 0, 256, 0]), vec![0; 257 * 4096], (0, 0x02)), 0),
        (("an append to a block within a zone", (0x7d, 1, [7, 0, 0, 0]), block(), (0, 0x02)), 0),
        (("an append past the end", (0x7d, 1, [16 * SIZE, 0, 0, 0]), block(), (0, 0x80)), 0),
        (("an append", (0x7d, 1, [SIZE, 0, 0, 0]), block(), (0, 0)), 0),
        (("zeros longer than WZSL", (0x08, 1, [0, 0, 8192, 0]), vec![], (0, 0x02)), 0),
        (("zeros as long as that", (0x08, 1, [0, 0, 8191, 0]), vec![], (0, 0)), 0),
        (("a report", report(0, 16), vec![], (0, 0)), 64),
        (("a report of a reserved kind", report(2, 16), vec![], (0, 0x02)), 64),
        (("a report of a reserved state", report(8 << 8, 16), vec![], (0, 0x02)), 64),
        (("a report without its head", report(0, 15), vec![], (0, 0x02)), 64),
        (("a report without room", report(0, 32), vec![], (0, 0x0f)), 64),
        (("a namespace that there is not", (0x7a, 2, [0, 0, 15, 0]), vec![], (0, 0x02)), 64),
        (("no namespace", (0x79, 0, [0, 0, 0, 4]), vec![], (0, 0x0b)), 0),
    ];
    for ((what, asked, data, expected), wants) in io {
        assert_eq!(table.status(1, *asked, data, *wants), *expected, "{what}");
    }
    // What is asked of the drive: all zones in the states that an action changes.
    let mut zones = |action: u32| match table.ask(1, send(0, action | 1 << 8), &[], 0) {
        Ok(Outcome::Several(ios)) => ios.iter().map(|io| (io.op, io.offset / (4 * MIB))).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let of = |op: Op, zones: &[u64]| zones.iter().map(|zone| (op, *zone)).collect::<Vec<_>>();
    assert_eq!(zones(1), of(Op::CloseZone, &[1, 2, 8, 9, 15]));
    assert_eq!(zones(2), of(Op::FinishZone, &[1, 2, 3, 8, 9, 10, 15]));
    assert_eq!(zones(3), of(Op::OpenZone, &[3, 10]), "with two that are open explicitly, of five");
    assert_eq!(zones(4), of(Op::ResetZone, &[1, 2, 3, 5, 8, 9, 10, 12, 15]));
    // Without power, and on a drive that must not be changed.
    table.drive.rooms = None;
    for asked in [send(4, 5), send(0, 4 | 1 << 8), report(0, 16), (0x02, 1, [0; 4])] {
        assert_eq!(table.status(1, asked, &[], 4096), (0, 0x05), "{asked:?}");
    }
    table.subsystem.about.is_read_only = true;
    for (asked, data) in [(send(0, 4), vec![]), ((0x7d, 1, [0; 4]), block()), ((0x08, 1, [0; 4]), vec![])] {
        assert_eq!(table.status(1, asked, &data, 0), (0, 0x20));
    }
    // A host that has enabled the NVM command set alone has no namespace.
    table.subsystem.controller_mut(1).unwrap().set_property(0x14, 4, 1);
    assert_eq!(table.status(1, send(0, 4), &[], 0), (0, 0x02));
}

#[test]
fn a_host_is_told_of_zones_that_failed() {
    let mut table = zoned_table();
    let page = |table: &mut Table, nsid: u32, retains: u32| match table
        .admin((0x02, nsid, [0xbf | retains << 15 | 1023 << 16, 0, 0, 0]), &[])
    {
        Ok(Outcome::Done(_, data)) => Ok((u16_at(&data, 0), u64_at(&data, 8), u64_at(&data, 16))),
        Err(status) => Err(status.parts()),
        other => panic!("{other:?}"),
    };
    assert_eq!(page(&mut table, 1, 0), Ok((0, 0, 0)));
    assert_eq!([0, ALL, 2].map(|nsid| page(&mut table, nsid, 0)), [Err((0, 0x0b)), Err((0, 0x0b)), Err((0, 0x02))]);
    // An event, if such are wanted, and no further one until the page is read.
    table.admin((0x09, 0, [0x0b, 1 << 27, 0, 0]), &[]).unwrap();
    assert_eq!(table.admin((0x0c, 0, [0; 4]), &[]), Ok(Outcome::Held));
    let event = |table: &mut Table| table.subsystem.controller_mut(1).unwrap().next_event().map(|(_, event)| event);
    assert_eq!(event(&mut table), None);
    table.drive.failed = vec![5];
    table.subsystem.look(&mut table.drive);
    assert_eq!(event(&mut table), Some(Ok(1 << 32 | 0x00bf_ef02)), "a notice of namespace 1, with log page BFh");
    table.admin((0x0c, 0, [0; 4]), &[]).unwrap();
    table.drive.failed = vec![9];
    assert_eq!(page(&mut table, 1, 1), Ok((2, 5 * 1024, 9 * 1024)), "it is kept for others");
    assert_eq!(event(&mut table), None);
    assert_eq!(page(&mut table, 1, 0), Ok((2, 5 * 1024, 9 * 1024)));
    assert_eq!((page(&mut table, 1, 0), event(&mut table)), (Ok((0, 0, 0)), None));
}
