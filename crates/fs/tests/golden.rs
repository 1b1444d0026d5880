//! Small cases worked out on paper.
//!
//! The device has 256 MiB, that is 65,536 blocks in 2 groups. A group has 16,384 inodes of 128 bytes: 512 blocks of
//! table. Group 0: superblock 0, descriptors 1, block bitmap 2, inode bitmap 3, inode table 4-515. The journal (4,096
//! blocks) follows at 516-4611, the root directory's block is 4612. Inodes 0-10 are taken, so that the first file is
//! inode 11, in the table's first block, 4, as is the root's inode 1.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use crate::support::{Device, Script, in_blocks, play};
use flashwright_block::{Bytes, Nanos, RequestKind, Seed};
use flashwright_fs::{Call, JournalMode, Layout, RequestUnit, Run, Settings, System};

const SECTORS: u64 = 256 << 11;
const S: u64 = 1_000_000_000;
const KIB: u64 = 1024;

type Seen = Vec<(u64, RequestKind, u64, u32)>;

/// All requests of a script with their times, and the system after it.
fn run(settings: Settings, threads: Vec<Vec<Call>>) -> (Seen, System<Script>) {
    let mut system = System::new(Script::new(threads), settings, SECTORS, Seed(1)).unwrap();
    let mut all = Vec::new();
    play(&mut system, &mut Device::new(100_000), u64::MAX, |_, now, request, done| {
        let (kind, first, blocks) = in_blocks(request);
        if !done {
            all.push((now, kind, first, blocks));
        }
    });
    assert_eq!(system.file_system().audit(), Vec::<String>::new());
    (all, system)
}

fn writes(seen: &Seen) -> Vec<(u64, u32)> {
    seen.iter()
        .filter(|(_, kind, ..)| *kind == RequestKind::Write)
        .map(|(_, _, first, blocks)| (*first, *blocks))
        .collect()
}

fn append(file: u32, bytes: u64) -> [Call; 2] {
    [Call::Create { file, directory: 0 }, Call::Append { file, bytes, unit: 4 * KIB }]
}

fn ours(layout: Layout) -> Settings {
    Settings { layout, sync_at_end: false, ..Settings::default() }
}

/// 1,280 blocks from the process's goal (group start + colour 1 times 2,048, which lies in the journal; the first free
/// block is 4613): 12 named in the inode, an indirect block, 1,024 below it, the double indirect block, the indirect one
/// below that, the last 244.
#[test]
fn a_file_of_5_mib_lies_as_ext3_lays_it() {
    let (_, system) = run(ours(Layout::Ext3), vec![append(0, 5 << 20).to_vec()]);
    let fs = system.file_system();
    assert_eq!(fs.journal_runs(), [(516, 4096)]);
    let run = |logical, physical, blocks| Run { logical, physical, blocks };
    assert_eq!(fs.runs(0), [run(0, 4613, 12), run(12, 4626, 1024), run(1036, 5652, 244)]);
    assert_eq!(fs.map_blocks(0), [4625, 5650, 5651]);
    // 2 groups less tables, journal and root: 65,536 - 516 - 516 - 4,096 - 1, less the file's 1,283.
    assert_eq!(fs.blocks_free(), 65_536 - 516 - 516 - 4_097 - 1_283);
}

/// With extents the blocks are chosen when they are written: none before, one run after. Tables are of 256-byte inodes
/// for half as many: as large as above. Data begins in the second of 16 groups that go together: behind the copies of
/// superblock and descriptors, two bitmaps and 512 blocks of table at 32,768, that is at 33,284.
#[test]
fn extents_are_one_run_and_chosen_late() {
    let mut calls = append(0, 5 << 20).to_vec();
    let (_, before) = run(ours(Layout::Extents), vec![calls.clone()]);
    assert_eq!(before.file_system().runs(0), []);
    calls.push(Call::Fsync { file: 0, data_only: false });
    let (seen, after) = run(ours(Layout::Extents), vec![calls]);
    assert_eq!(after.file_system().runs(0), [Run { logical: 0, physical: 33_284, blocks: 1280 }]);
    // 10 requests of 128 blocks, then the journal between flushes.
    let data: Vec<(u64, u32)> = (0..10).map(|i| (33_284 + i * 128, 128)).collect();
    assert_eq!(writes(&seen)[..10], data);
    let kinds: Vec<RequestKind> = seen.iter().rev().take(3).map(|seen| seen.1).collect();
    assert_eq!(kinds, [RequestKind::Write, RequestKind::Flush, RequestKind::Write], "log, flush, commit record");
}

/// Making and appending a block changes the root's block 4612 and inode (block 4), the inode bitmap 3, the descriptors 1,
/// the file's inode (block 4 too), and the block bitmap 2: 5 blocks. Data first, then a descriptor and 5 blocks, then
/// the commit record.
#[test]
fn an_fsync_writes_data_then_the_journal() {
    let mut calls = append(0, 4 * KIB).to_vec();
    calls.push(Call::Fsync { file: 0, data_only: false });
    let (seen, _) = run(ours(Layout::Ext3), vec![calls.clone()]);
    assert_eq!(writes(&seen), [(4613, 1), (516, 6), (522, 1)]);
    let reads: Vec<u64> = seen.iter().filter(|seen| seen.1 == RequestKind::Read).map(|seen| seen.2).collect();
    assert_eq!(reads, [3, 2], "the inode bitmap when the file is made, the block bitmap when it grows");

    // Block by block, as ext3 hands them over.
    let unit = Settings { request_unit: RequestUnit::Block, ..ours(Layout::Ext3) };
    let (seen, _) = run(unit, vec![calls.clone()]);
    let each: Vec<(u64, u32)> = std::iter::once(4613).chain(516..523).map(|block| (block, 1)).collect();
    assert_eq!(writes(&seen), each);

    // Written again and made durable without times: no block changed, so that the journal has nothing to do.
    calls.extend([
        Call::Write { file: 0, offset: 0, bytes: 4 * KIB, unit: 4 * KIB },
        Call::Fsync { file: 0, data_only: true },
    ]);
    let (seen, _) = run(ours(Layout::Ext3), vec![calls]);
    assert_eq!(writes(&seen), [(4613, 1), (516, 6), (522, 1), (4613, 1)]);
}

/// Without ordered data, pages go when they are 30 s old: ticks come every 5 s, so at 35 s; the file that was dirty first
/// goes first, whatever was written to it later, and no more than 1,024 pages of it before the next one's turn.
#[test]
fn old_data_goes_in_order_of_age_in_turns() {
    let settings = Settings { journal: JournalMode::Writeback, ..ours(Layout::Ext3) };
    let mut calls = append(0, 1500 * 4 * KIB).to_vec();
    calls.extend(append(1, 4 * 4 * KIB));
    calls.push(Call::Compute(Nanos(10 * S)));
    calls.push(Call::Write { file: 0, offset: 0, bytes: 4 * KIB, unit: 4 * KIB });
    calls.push(Call::Compute(Nanos(26 * S)));
    let (seen, system) = run(settings, vec![calls]);
    let (runs, small) = (system.file_system().runs(0).to_vec(), system.file_system().runs(1)[0]);
    let data: Vec<(u64, RequestKind, u64, u32)> =
        seen.into_iter().filter(|(_, kind, first, _)| *kind == RequestKind::Write && *first >= 4613).collect();
    assert!(data.iter().all(|(now, ..)| (35 * S..36 * S).contains(now)), "{data:?}");
    let turn = data.iter().position(|(.., first, _)| *first == u64::from(small.physical)).unwrap();
    let before: u32 = data[..turn].iter().map(|(.., blocks)| blocks).sum();
    let after: u32 = data[turn + 1..].iter().map(|(.., blocks)| blocks).sum();
    assert_eq!((before, data[turn].3, after), (1024, 4, 1500 - 1024));
    assert_eq!(data[0].2, u64::from(runs[0].physical));
}

/// In ordered mode data goes with the commit, at 5 s; what was deleted before never goes.
#[test]
fn a_commit_takes_its_data_along_and_a_deletion_drops_it() {
    let mut calls = append(0, 100 * 4 * KIB).to_vec();
    calls.extend(append(1, 8 * 4 * KIB));
    calls.extend([Call::Delete(0), Call::Compute(Nanos(6 * S))]);
    let (seen, system) = run(ours(Layout::Ext3), vec![calls]);
    let kept = system.file_system().runs(1)[0];
    let data: Vec<(u64, u32)> = writes(&seen).into_iter().filter(|(first, _)| *first >= 4612).collect();
    assert_eq!(data, [(u64::from(kept.physical), 8)]);
    let first = seen.iter().find(|(_, kind, ..)| *kind == RequestKind::Write).unwrap();
    assert!((5 * S..5 * S + S / 10).contains(&first.0), "{}", first.0);
    assert_eq!(system.file_system().counts().pages_dropped, 100);
}

/// A program that reads a file from its start gets 4 pages, then 8, 16, 32, 32 ..., each asked for when it comes to
/// the page that says so: the doubling of `ondemand_readahead`.
#[test]
fn read_ahead_doubles() {
    let mut calls = append(0, 150 * 4 * KIB).to_vec();
    calls.extend([Call::Sync, Call::DropCaches]);
    calls.push(Call::Read { file: 0, offset: 0, bytes: 150 * 4 * KIB, unit: 4 * KIB });
    let (seen, system) = run(ours(Layout::Extents), vec![calls]);
    let start = u64::from(system.file_system().runs(0)[0].physical);
    let reads: Vec<(u64, u32)> = seen
        .iter()
        .filter(|seen| seen.1 == RequestKind::Read && seen.2 >= start)
        .map(|seen| (seen.2 - start, seen.3))
        .collect();
    // 150 pages: 4 + 8 + 16 + 32 + 32 + 32 and 26 of the last 32.
    assert_eq!(reads, [(0, 4), (4, 8), (12, 16), (28, 32), (60, 32), (92, 32), (124, 26)]);
    let counts = system.file_system().counts();
    assert_eq!(counts.pages_read, 150);
    assert!(counts.page_hits >= 140, "{}", counts.page_hits);
}

/// Reading again what is in memory asks nothing of the device; with less memory than the file it does.
#[test]
fn what_is_in_memory_is_not_read() {
    for (memory, expected) in [(16 << 20, 0), (1 << 20, 512)] {
        let mut calls = append(0, 2 << 20).to_vec();
        calls.push(Call::Sync);
        (0..2).for_each(|_| calls.push(Call::Read { file: 0, offset: 0, bytes: 2 << 20, unit: 128 * KIB }));
        let settings = Settings { memory: Bytes(memory), ..ours(Layout::Extents) };
        let (seen, system) = run(settings, vec![calls]);
        let start = u64::from(system.file_system().runs(0)[0].physical);
        let blocks: u32 =
            seen.iter().filter(|seen| seen.1 == RequestKind::Read && seen.2 >= start).map(|seen| seen.3).sum();
        // 256 pages of memory under 512 pages read in a circle: the least recently used list always misses.
        assert!(blocks >= expected && (expected > 0 || blocks == 0), "{memory}: {blocks}");
    }
}
