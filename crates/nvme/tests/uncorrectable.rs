//! Blocks that hosts mark as uncorrectable, against a model that keeps a bit for each block and knows neither ranges nor extents.

use crate::common::{Asked, Units, about, draws, entry, list, wanted};
use flashwright_nvme::commands::Outcome;
use flashwright_nvme::subsystem::{About, Health, Media, Place, Subsystem};
use flashwright_nvme::wire::{Status, put, u16_at, u32_at, u64_at};

const MIB: u64 = 1 << 20;
const READ_FAILED: (u8, u8) = (2, 0x81);
/// Blocks of 512 B that each namespace has its commands in, of which 8 are a page of the flash.
const BLOCKS: u64 = 80;

/// A drive whose clock the test sets.
#[derive(Default)]
struct Drive {
    now_ns: u64,
    units: Units,
}

impl Media for Drive {
    fn health(&self) -> Health {
        Health { power_on_ns: self.now_ns, ..Health::default() }
    }
    fn is_written(&self, first_byte: u64, bytes: u32) -> bool {
        self.units.is_written(first_byte, bytes)
    }
}

/// What is asked, the command, the bytes that it may return, and the status by type and code.
type Row = (&'static str, Asked, usize, (u8, u8));

struct Host {
    subsystem: Subsystem,
    drive: Drive,
}

impl Host {
    /// Namespaces 1 (16 MiB) and 2 (32 MiB in two parts), of blocks of 512 B.
    fn new(change: impl FnOnce(&mut About)) -> Self {
        let mut about = About { untorn_bytes: None, ..about() };
        change(&mut about);
        let mut host = Self { subsystem: Subsystem::new(about), drive: Drive::default() };
        let name = ([0; 16], "nqn.2014-08.org.nvmexpress:host".to_owned());
        assert_eq!(host.subsystem.admit(name, false, 0), Ok(1));
        assert!(host.subsystem.controller_mut(1).unwrap().set_property(0x14, 4, 1));
        host
    }

    fn with_two_namespaces() -> Self {
        let mut host = Self::new(|_| ());
        host.done(0, (0x0d, 1, [1, 0, 0, 0]), &[], 0);
        for _ in 0..3 {
            host.done(0, (0x0d, 0, [0; 4]), &wanted(16, 0, 1), 0);
        }
        host.done(0, (0x0d, 2, [1, 0, 0, 0]), &[], 0);
        host.done(0, (0x0d, 0, [0; 4]), &wanted(32, 0, 1), 0);
        [1, 2].iter().for_each(|nsid| _ = host.done(0, (0x15, *nsid, [0; 4]), &list(&[1]), 0));
        assert_eq!(host.subsystem.namespaces().get(2).unwrap().extents().len(), 2);
        while let Some(io) = host.subsystem.next_chore() {
            host.subsystem.chore_ended(io.offset, io.bytes, true);
        }
        host
    }

    /// A command: opcode, namespace, dwords 10 to 13; data for it, and the bytes that it may return.
    fn ask(&mut self, queue: u16, asked: Asked, data: &[u8], wants: usize) -> Result<Outcome, Status> {
        let entry = entry(asked, u32::try_from(wants).unwrap());
        self.subsystem.execute(Place { controller: 1, queue }, &entry, data, &mut self.drive)
    }

    fn done(&mut self, queue: u16, asked: Asked, data: &[u8], wants: usize) -> Vec<u8> {
        match self.ask(queue, asked, data, wants) {
            Ok(Outcome::Done(_, data)) => data,
            other => panic!("{asked:x?}: {other:?}"),
        }
    }

    fn status(&mut self, asked: Asked, data: &[u8], wants: usize) -> (u8, u8) {
        self.ask(1, asked, data, wants).err().unwrap_or(Status::SUCCESS).parts()
    }

    /// An I/O command of so many blocks.
    fn io(&mut self, opcode: u8, nsid: u32, first: u64, blocks: u64) -> (u8, u8) {
        let bytes = usize::try_from(blocks * 512).unwrap();
        let (data, wants) = match opcode {
            0x01 | 0x05 => (vec![0; bytes], 0),
            0x02 => (Vec::new(), bytes),
            _ => (Vec::new(), 0),
        };
        self.status((opcode, nsid, [low(first), 0, low(blocks) - 1, 0]), &data, wants)
    }

    /// Get LBA Status with room for some descriptors: entries as first block and number, and the completion condition.
    fn marked(&mut self, nsid: u32, first: u64, length: u64, room: usize) -> (Vec<(u64, u64)>, u8) {
        let bytes = 8 + 16 * room;
        let asked = (0x86, nsid, [low(first), 0, low(bytes as u64 / 4) - 1, 0x11 << 24 | low(length)]);
        let found = self.done(0, asked, &[], bytes);
        assert_eq!(found.len(), bytes);
        let entries = found[8..].chunks_exact(16).take(u32_at(&found, 0) as usize);
        let entry = |entry: &[u8]| {
            assert_eq!((entry[12], entry[13], u16_at(entry, 14)), (0, 3, 0), "reads may fail, and a host marked it");
            (u64_at(entry, 0), u64::from(u32_at(entry, 8)) + 1)
        };
        let entries: Vec<_> = entries.map(entry).collect();
        assert!(found[8 + 16 * entries.len()..].iter().all(|byte| *byte == 0));
        (entries, found[4])
    }
}

fn low(number: u64) -> u32 {
    u32::try_from(number).unwrap()
}

/// Marks of a namespace: a bit for each of the blocks from `begins` on.
struct Model {
    begins: u64,
    marked: Vec<bool>,
}

impl Model {
    fn set(&mut self, first: u64, blocks: u64, is_marked: bool) {
        for block in first..first + blocks {
            self.marked[usize::try_from(block - self.begins).unwrap()] = is_marked;
        }
    }

    fn is_marked(&self, block: u64) -> bool {
        block
            .checked_sub(self.begins)
            .and_then(|at| self.marked.get(usize::try_from(at).unwrap()))
            .is_some_and(|is| *is)
    }

    /// Runs of marked blocks of a range, looked at one by one.
    fn runs(&self, first: u64, end: u64) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for block in (first.max(self.begins)..end.min(self.begins + BLOCKS)).filter(|block| self.is_marked(*block)) {
            match runs.last_mut() {
                Some((begins, count)) if *begins + *count == block => *count += 1,
                _ => runs.push((block, 1)),
            }
        }
        runs
    }
}

#[test]
fn reads_fail_where_a_host_has_marked_and_not_written_since() {
    let mut host = Host::with_two_namespaces();
    // In namespace 2 around the place where its two parts meet.
    let mut models =
        [0, 16 * MIB / 512 - BLOCKS / 2].map(|begins| Model { begins, marked: vec![false; BLOCKS as usize] });
    let sizes = [16 * MIB / 512, 32 * MIB / 512];
    let mut draw = draws(3);
    let (mut failed, mut read, mut most) = (0, 0, 0);
    for step in 0..20_000 {
        let at = (draw() % 2) as usize;
        let nsid = at as u32 + 1;
        let begins = models[at].begins;
        let first = begins + draw() % BLOCKS;
        let blocks = 1 + draw() % 12.min(begins + BLOCKS - first);
        let what = format!("step {step}: {blocks} blocks from {first} of namespace {nsid}");
        let has_mark = |model: &Model| (first..first + blocks).any(|block| model.is_marked(block));
        match draw() % 12 {
            0..=2 => {
                assert_eq!(host.io(0x04, nsid, first, blocks), (0, 0), "{what}");
                models[at].set(first, blocks, true);
            }
            3 => {
                assert_eq!(host.io(0x01, nsid, first, blocks), (0, 0), "{what}");
                models[at].set(first, blocks, false);
            }
            4 => {
                assert_eq!(host.io(0x08, nsid, first, blocks), (0, 0), "{what}");
                models[at].set(first, blocks, false);
            }
            5 => {
                // Whole pages are deallocated, and what is not stays as it was.
                let mut range = [0; 16];
                put(&mut range, 4, &low(blocks).to_le_bytes());
                put(&mut range, 8, &first.to_le_bytes());
                assert_eq!(host.status((0x09, nsid, [0, 1 << 2, 0, 0]), &range, 0), (0, 0), "{what}");
                let (from, to) = (first.next_multiple_of(8), (first + blocks) / 8 * 8);
                models[at].set(from, to.saturating_sub(from), false);
            }
            6 => {
                let to = begins + draw() % (BLOCKS - blocks);
                if to < first + blocks && first < to + blocks {
                    continue;
                }
                let mut range = [0; 32];
                put(&mut range, 8, &first.to_le_bytes());
                put(&mut range, 16, &low(blocks - 1).to_le_bytes());
                let expected = if has_mark(&models[at]) { READ_FAILED } else { (0, 0) };
                assert_eq!(host.status((0x19, nsid, [low(to), 0, 0, 0]), &range, 0), expected, "{what} to {to}");
                if expected == (0, 0) {
                    models[at].set(to, blocks, false);
                }
            }
            kind => {
                let opcode = [0x02, 0x05, 0x0c][kind as usize % 3];
                let expected = if has_mark(&models[at]) { READ_FAILED } else { (0, 0) };
                assert_eq!(host.io(opcode, nsid, first, blocks), expected, "{what}, opcode {opcode:x}");
                (failed, read) = (failed + u32::from(expected != (0, 0)), read + 1);
            }
        }
        let (room, length) = ((draw() % 6) as usize, draw() % 40);
        let from = first.saturating_sub(draw() % 20);
        let end = if length == 0 { sizes[at] } else { from + length };
        let runs = models[at].runs(from, end);
        let condition = if runs.len() > room { 1 } else { 2 };
        let expected = (runs[..room.min(runs.len())].to_vec(), condition);
        assert_eq!(host.marked(nsid, from, length, room), expected, "{what}: from {from}, {length}");
        most = most.max(models[at].runs(0, sizes[at]).len());
    }
    assert!(failed > 1000 && read - failed > 1000 && most > 8, "{failed} of {read} reads failed, {most} runs");
    // The log page names the same, and stays as it is while it is read.
    for model in &mut models {
        model.set(model.begins, BLOCKS, false);
    }
    for (at, nsid) in [(0, 1), (1, 2)] {
        let begins = models[at].begins;
        assert_eq!(host.io(0x01, nsid, begins, BLOCKS), (0, 0));
        for (first, blocks) in [(begins + 3, 1), (begins + BLOCKS / 2 - 2, 5)] {
            assert_eq!(host.io(0x04, nsid, first, blocks), (0, 0));
            models[at].set(first, blocks, true);
        }
    }
    let page = |host: &mut Host, retains: bool| {
        host.done(0, (0x02, u32::MAX, [0x0e | u32::from(retains) << 15 | 127 << 16, 0, 0, 0]), &[], 512)
    };
    let found = page(&mut host, true);
    assert_eq!((u32_at(&found, 0), u32_at(&found, 4), u32_at(&found, 8)), (16 + 2 * (16 + 2 * 16), 2, 12));
    for (at, element) in found[16..].chunks_exact(48).take(2).enumerate() {
        assert_eq!((u32_at(element, 0), u32_at(element, 4), element[8]), (at as u32 + 1, 2, 0x11));
        let ranges = element[16..].chunks_exact(16).map(|range| (u64_at(range, 0), u64::from(u32_at(range, 8)) + 1));
        assert_eq!(ranges.collect::<Vec<_>>(), models[at].runs(0, sizes[at]));
    }
    assert_eq!(host.io(0x01, 1, 0, BLOCKS), (0, 0));
    assert_eq!(page(&mut host, true), found);
    assert_eq!(page(&mut host, false), found);
    let after = page(&mut host, false);
    assert_eq!((u32_at(&after, 4), u32_at(&after, 8)), (1, 6));
    assert_ne!(u16_at(&after, 14), u16_at(&found, 14), "its generation");
    // What formats and sanitizes, clears.
    host.done(0, (0x80, 2, [0, 0, 0, 0]), &[], 0);
    assert_eq!(host.marked(2, 0, 0, 4), (Vec::new(), 2));
    assert_eq!(host.io(0x04, 1, 5, 2), (0, 0));
    assert_eq!(host.marked(1, 0, 0, 4), (vec![(5, 2)], 2));
    while let Some(io) = host.subsystem.next_chore() {
        host.subsystem.chore_ended(io.offset, io.bytes, true);
    }
    host.done(0, (0x84, 0, [4, 0, 0, 0]), &[], 0);
    while let Some(io) = host.subsystem.next_chore() {
        host.subsystem.chore_ended(io.offset, io.bytes, true);
    }
    assert_eq!(host.marked(1, 0, 0, 4), (Vec::new(), 2));
    assert_eq!(host.io(0x02, 1, 0, 8), (0, 0));
}

#[test]
fn what_breaks_a_rule_has_the_status_of_the_specification() {
    let mut host = Host::with_two_namespaces();
    let end = low(16 * MIB / 512);
    let list = |first: u32, dwords: u32, action: u32| [first, 0, dwords - 1, action << 24];
    let rows: [Row; 17] = [
        ("blocks up to the end", (0x04, 1, [end - 1, 0, 0, 0]), 0, (0, 0)),
        ("blocks beyond it", (0x04, 1, [end - 1, 0, 1, 0]), 0, (0, 0x80)),
        ("all namespaces", (0x04, u32::MAX, [0; 4]), 0, (0, 0x0b)),
        ("a namespace that is not there", (0x04, 7, [0; 4]), 0, (0, 0x02)),
        ("a directive that is not there", (0x04, 1, [0, 0, 3 << 20, 0]), 0, (0, 0x02)),
        ("a scan", (0x86, 1, list(0, 2, 0x10)), 8, (0, 0)),
        ("what is known", (0x86, 1, list(0, 2, 0x11)), 8, (0, 0)),
        ("another action", (0x86, 1, list(0, 2, 0x02)), 8, (0, 0x02)),
        ("no action", (0x86, 1, list(0, 2, 0)), 8, (0, 0x02)),
        ("the last block", (0x86, 1, list(end - 1, 2, 0x11)), 8, (0, 0)),
        ("the block behind it", (0x86, 1, list(end, 2, 0x11)), 8, (0, 0x80)),
        ("a range beyond the end", (0x86, 1, [end - 1, 0, 1, 0x11 << 24 | 2]), 8, (0, 0x80)),
        ("all namespaces of a list", (0x86, u32::MAX, list(0, 2, 0x11)), 8, (0, 0x0b)),
        ("a list of a namespace that is not there", (0x86, 7, list(0, 2, 0x11)), 8, (0, 0x02)),
        ("less room than dwords", (0x86, 1, list(0, 3, 0x11)), 8, (0, 0x0f)),
        ("more than a transfer", (0x86, 1, [0, 0, u32::MAX, 0x11 << 24]), 8, (0, 0x02)),
        ("room for the half of a header", (0x86, 1, list(0, 1, 0x11)), 4, (0, 0)),
    ];
    for (what, asked, wants, expected) in rows {
        let queue = u16::from(asked.0 == 0x04);
        let found = host.ask(queue, asked, &[], wants).err().unwrap_or(Status::SUCCESS).parts();
        assert_eq!(found, expected, "{what}");
    }
    let mut host = Host::new(|about| about.is_read_only = true);
    assert_eq!(host.io(0x04, 1, 0, 1), (0, 0x20), "a drive that is only read");
    let mut host = Host::new(|about| about.zoning = Some(crate::common::ZONING));
    assert_eq!(host.io(0x04, 1, 0, 1), (0, 0x01), "zones have write pointers");
    assert_eq!(host.ask(0, (0x86, 1, list(0, 2, 0x11)), &[], 8), Err(Status::INVALID_OPCODE));
    assert_eq!(host.ask(0, (0x02, 0, [0x0e | 3 << 16, 0, 0, 0]), &[], 16), Err(Status::INVALID_LOG_PAGE));
    assert_eq!(host.ask(0, (0x0a, 0, [0x15, 0, 0, 0]), &[], 0), Err(Status::INVALID_FIELD), "nor an interval");
}

/// A host is told once of what was marked, as soon as it wants, and not before the interval that it set is over.
#[test]
fn a_host_that_wants_it_is_told_of_marks() {
    let mut host = Host::with_two_namespaces();
    let next_event = |host: &mut Host| {
        let controller = host.subsystem.controller_mut(1).unwrap();
        let found = controller.next_event();
        found.map(|(cid, event)| (cid, event.unwrap()))
    };
    let read = |host: &mut Host| _ = host.done(0, (0x02, u32::MAX, [0x0e | 3 << 16, 0, 0, 0]), &[], 16);
    let alert = 0x0e << 16 | 0x05 << 8 | 2;
    for _ in 0..4 {
        assert_eq!(host.ask(0, (0x0c, 0, [0; 4]), &[], 0), Ok(Outcome::Held));
    }
    assert_eq!(host.io(0x04, 1, 0, 4), (0, 0));
    assert_eq!(next_event(&mut host), None, "it has not asked for that");
    host.done(0, (0x09, 0, [0x0b, 1 << 13, 0, 0]), &[], 0);
    host.subsystem.look(&mut host.drive);
    assert_eq!(next_event(&mut host), Some((0, alert)));
    assert_eq!(host.io(0x04, 1, 8, 4), (0, 0));
    assert_eq!(next_event(&mut host), None, "the page has not been read");
    read(&mut host);
    assert_eq!(next_event(&mut host), None, "it has been read now");
    // At most once in 500 ms.
    host.done(0, (0x09, 0, [0x15, 5, 0, 0]), &[], 0);
    assert_eq!(host.io(0x04, 2, 0, 1), (0, 0));
    for (now_ms, expected) in [(0, None), (499, None), (500, Some((0, alert))), (1000, None)] {
        host.drive.now_ns = now_ms * 1_000_000;
        host.subsystem.look(&mut host.drive);
        assert_eq!(next_event(&mut host), expected, "after {now_ms} ms");
    }
    read(&mut host);
    host.drive.now_ns += 400_000_000;
    assert_eq!(host.io(0x04, 2, 0, 1), (0, 0));
    assert_eq!(next_event(&mut host), None, "the page was read 400 ms ago");
    host.drive.now_ns += 100_000_000;
    assert_eq!(host.io(0x04, 2, 7, 1), (0, 0));
    assert_eq!(next_event(&mut host), Some((0, alert)));
}
