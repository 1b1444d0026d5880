//! Mounting of schemes that map whole blocks: every logical block ends up in one data block, as after a merge of all logs.
//!
//! A merge copies pages to their homes in a new block before it erases their sources. So what it left when power failed is one of
//! two things: the new block has everything, and its sources are not needed; or it lacks something, and the sources have it. In the
//! second case a page of the host may be in the new block alone. Its request was not acknowledged, since that waits for the merge, so
//! where no erased block is left to finish the merge, it is undone and the page keeps its old content. Where dies work side by side, a
//! later request may have taken the last erased block before the merge released others; then logical blocks whose current pages fit into
//! a block that they share are brought together there. That comes last, since a cut in the middle of it leaves nothing to undo.

use super::Scan;
use super::scan::Newest;
use crate::merge::{ErasedBlocks, LogicalBlocks, Mover, NONE};
use crate::{Cause, Flash, OutOfSpace};
use flashwright_nand::{BlockId, Condition, Lpn, Ppn};
use std::collections::{BTreeMap, BTreeSet};

/// Copies of pages by their owner.
type Copies = BTreeMap<u32, Vec<Newest>>;

/// Brings every logical block into one data block, and releases all others. Returns the data block of each logical block, or
/// [`NONE`].
///
/// # Errors
/// [`OutOfSpace`] if a merge can be neither finished nor undone.
pub(crate) fn consolidate(
    logical: LogicalBlocks,
    erased: &mut ErasedBlocks,
    scan: &mut Scan,
    flash: &mut Flash,
) -> Result<Vec<u32>, OutOfSpace> {
    let copies = copies_of(flash);
    let mut data = choose_data_blocks(logical, scan, &copies, flash);
    // An erase that was cut short must be done again, so a block without a current page is erased in any case.
    // A block that was given up may get its pages back as a data block, so each is given up once.
    let mut given_up = BTreeSet::new();
    while release_unneeded(scan, erased, flash) == 0 && erased.len() == 0 && is_mixed(logical, scan, &data) {
        let is_undone = undo_copies(scan, &copies, &data, &mut given_up, flash)
            || undo_last_merge(scan, &copies, &data, &mut given_up, flash);
        if !is_undone {
            break;
        }
        data = choose_data_blocks(logical, scan, &copies, flash);
    }
    for (owner, newest) in scan.all() {
        flash.adopt(newest.ppn, Lpn(owner));
    }
    // Those that free their data block first: the others take an erased block for good.
    let mut mixed: Vec<u32> = (0..logical.count()).filter(|lbn| data[*lbn as usize] == NONE).collect();
    mixed.retain(|lbn| pages_of(logical, *lbn, scan).next().is_some());
    mixed.sort_by_key(|lbn| !frees_a_block(logical, *lbn, scan, flash));
    let mut mover = Mover::default();
    while !mixed.is_empty() {
        // Without an erased block, first those whose pages fit into a block that they already share.
        let has_room = |lbn: &u32, flash: &Flash| shared_block(logical, *lbn, scan, flash).is_some();
        let next = if erased.len() > 0 { 0 } else { mixed.iter().position(|lbn| has_room(lbn, flash)).unwrap_or(0) };
        let lbn = mixed.remove(next);
        data[lbn as usize] = merge(logical, lbn, scan, erased, &mut mover, flash)?.0;
    }
    Ok(data)
}

/// A block that has pages of one logical block alone, all at home, and where its other current pages can be programmed.
fn shared_block(logical: LogicalBlocks, lbn: u32, scan: &Scan, flash: &Flash) -> Option<BlockId> {
    let current: Vec<(u32, Newest)> = pages_of(logical, lbn, scan).collect();
    let fits = |block: &BlockId| {
        only_owner(logical, *block, flash) == Some(lbn)
            && current.iter().all(|(lpn, newest)| {
                let home = flash.geometry().page_at(*block, logical.split(Lpn(*lpn)).1);
                newest.ppn == home
                    || (flash.geometry().block_of(newest.ppn) != *block && flash.nand().is_programmable(home))
            })
    };
    current.iter().map(|(_, newest)| flash.geometry().block_of(newest.ppn)).find(fits)
}

fn copies_of(flash: &Flash) -> Copies {
    let mut copies = Copies::new();
    for block in (0..flash.geometry().blocks()).map(BlockId) {
        if flash.nand().condition(block) == Condition::System {
            continue;
        }
        for page in 0..flash.nand().next_page(block) {
            let ppn = flash.geometry().page_at(block, page);
            if let Some(spare) = flash.spare_area(ppn) {
                let copy = Newest { ppn, version: spare.version, sequence: spare.sequence };
                copies.entry(spare.owner.0).or_default().push(copy);
            }
        }
    }
    copies
}

/// The current pages of a logical block.
fn pages_of(logical: LogicalBlocks, lbn: u32, scan: &Scan) -> impl Iterator<Item = (u32, Newest)> {
    let first = logical.first_page(lbn);
    (first..first + logical.per_block()).filter_map(|lpn| Some((lpn, scan.newest(lpn)?)))
}

/// For each logical block the block that has a copy of all its current pages at home, which are then the current ones; [`NONE`] if
/// there is none, or nothing is current.
fn choose_data_blocks(logical: LogicalBlocks, scan: &mut Scan, copies: &Copies, flash: &Flash) -> Vec<u32> {
    let only_owner = only_owners(logical, flash);
    let is_home = |lpn: u32, copy: &Newest| {
        let (lbn, offset) = logical.split(Lpn(lpn));
        flash.geometry().page_in_block(copy.ppn) == offset
            && only_owner[flash.geometry().block_of(copy.ppn).index()] == Some(lbn)
    };
    (0..logical.count())
        .map(|lbn| {
            let pages: Vec<(u32, Newest)> = pages_of(logical, lbn, scan).collect();
            let mut homes: Option<BTreeMap<u32, Vec<Newest>>> = None;
            for (lpn, newest) in &pages {
                let at_home = copies[lpn].iter().filter(|copy| copy.version == newest.version && is_home(*lpn, copy));
                let mut found = BTreeMap::new();
                for copy in at_home {
                    let block = flash.geometry().block_of(copy.ppn).0;
                    let before = match &homes {
                        None => Vec::new(),
                        Some(homes) => match homes.get(&block) {
                            None => continue,
                            Some(before) => before.clone(),
                        },
                    };
                    found.insert(block, [before, vec![*copy]].concat());
                }
                homes = Some(found);
            }
            let opened = |block: u32| {
                scan.blocks.iter().position(|found| found.block.0 == block).expect("a block with pages was found")
            };
            let best = homes.unwrap_or_default().into_iter().max_by_key(|(block, _)| opened(*block));
            let Some((block, chosen)) = best else { return NONE };
            for ((lpn, _), copy) in pages.iter().zip(chosen) {
                scan.prefer(*lpn, copy);
            }
            block
        })
        .collect()
}

/// For each block [`only_owner`].
fn only_owners(logical: LogicalBlocks, flash: &Flash) -> Vec<Option<u32>> {
    (0..flash.geometry().blocks()).map(|block| only_owner(logical, BlockId(block), flash)).collect()
}

/// The logical block that all pages of a good block belong to, if there is only one.
fn only_owner(logical: LogicalBlocks, block: BlockId, flash: &Flash) -> Option<u32> {
    if flash.nand().condition(block) != Condition::Good {
        return None;
    }
    let mut owners =
        pages_in(block, flash).filter_map(|page| flash.spare_area(page)).map(|spare| logical.block_of(spare.owner));
    let first = owners.next()?;
    owners.all(|owner| owner == first).then_some(first)
}

/// The pages of a block that are programmed, or were to be.
fn pages_in(block: BlockId, flash: &Flash) -> impl Iterator<Item = Ppn> {
    let geometry = *flash.geometry();
    (0..flash.nand().next_page(block)).map(move |page| geometry.page_at(block, page))
}

fn is_mixed(logical: LogicalBlocks, scan: &Scan, data: &[u32]) -> bool {
    (0..logical.count()).any(|lbn| data[lbn as usize] == NONE && pages_of(logical, lbn, scan).next().is_some())
}

/// Erases programmed blocks without a current page, and returns how many.
fn release_unneeded(scan: &mut Scan, erased: &mut ErasedBlocks, flash: &mut Flash) -> usize {
    let mut current = vec![false; flash.geometry().blocks() as usize];
    for (_, newest) in scan.all() {
        current[flash.geometry().block_of(newest.ppn).index()] = true;
    }
    let before = scan.blocks.len();
    scan.blocks.retain(|found| {
        let keeps = current[found.block.index()] || flash.nand().condition(found.block) != Condition::Good;
        if !keeps {
            erased.release(found.block, Cause::Merge, flash);
        }
        keeps
    });
    before - scan.blocks.len()
}

/// Gives up the pages of a block, the one opened last if there are several, all of which are the same elsewhere.
fn undo_copies(
    scan: &mut Scan,
    copies: &Copies,
    data: &[u32],
    given_up: &mut BTreeSet<BlockId>,
    flash: &Flash,
) -> bool {
    let can_be = |block: &BlockId| flash.nand().condition(*block) == Condition::Good && !given_up.contains(block);
    let candidates: Vec<BlockId> = scan.blocks.iter().rev().map(|found| found.block).filter(can_be).collect();
    for block in candidates.into_iter().filter(|block| !data.contains(&block.0)) {
        let is_here = |ppn: Ppn| flash.geometry().block_of(ppn) == block;
        let instead = scan.all().filter(|(_, newest)| is_here(newest.ppn)).map(|(owner, newest)| {
            let same = copies[&owner].iter().filter(|copy| !is_here(copy.ppn) && copy.version == newest.version);
            same.max_by_key(|copy| copy.sequence).map(|copy| (owner, *copy))
        });
        if let Some(instead) = instead.collect::<Option<Vec<(u32, Newest)>>>() {
            instead.into_iter().for_each(|(owner, copy)| scan.prefer(owner, copy));
            given_up.insert(block);
            return true;
        }
    }
    false
}

/// Gives up the current pages of the block that was programmed last, if a merge put them there. Pages that the host wrote by themselves
/// may have been acknowledged.
fn undo_last_merge(
    scan: &mut Scan,
    copies: &Copies,
    data: &[u32],
    given_up: &mut BTreeSet<BlockId>,
    flash: &mut Flash,
) -> bool {
    let chips: &Flash = flash;
    let spares = |block: BlockId| pages_in(block, chips).filter_map(|ppn| chips.spare_area(ppn));
    let last_in = |block: BlockId| spares(block).map(|spare| spare.sequence).max();
    let last = scan.blocks.iter().map(|found| found.block).max_by_key(|block| last_in(*block));
    let is_by_merge = |block: &BlockId| {
        let mut current = scan.all().filter(|(_, newest)| chips.geometry().block_of(newest.ppn) == *block);
        current.all(|(_, newest)| newest.version != newest.sequence)
    };
    let last = last.filter(|block| !data.contains(&block.0) && is_by_merge(block));
    let Some(last) = last.filter(|block| given_up.insert(*block)) else { return false };
    let in_last = |ppn: Ppn| chips.geometry().block_of(ppn) == last;
    let owners: Vec<u32> = scan.all().filter(|(_, newest)| in_last(newest.ppn)).map(|(owner, _)| owner).collect();
    let older = |owner: &u32| {
        let trimmed = scan.trimmed_at(*owner);
        let others = copies[owner].iter().filter(|copy| !in_last(copy.ppn) && copy.version > trimmed);
        others.max_by_key(|copy| (copy.version, copy.sequence)).copied()
    };
    let instead: Vec<(u32, Option<Newest>)> = owners.iter().map(|owner| (*owner, older(owner))).collect();
    for (owner, copy) in instead {
        match copy {
            Some(copy) => scan.prefer(owner, copy),
            None => {
                scan.forget(owner);
                // The page that is given up outranked the record of the trim before it.
                if let Some(tracker) = flash.tracker_mut() {
                    tracker.trimmed(Lpn(owner));
                }
            }
        }
    }
    true
}

/// Whether a merge of a logical block leaves a block without current pages.
fn frees_a_block(logical: LogicalBlocks, lbn: u32, scan: &Scan, flash: &Flash) -> bool {
    let mut here = BTreeMap::new();
    for (_, newest) in pages_of(logical, lbn, scan) {
        *here.entry(flash.geometry().block_of(newest.ppn)).or_insert(0) += 1;
    }
    here.into_iter().any(|(block, pages)| flash.pages_valid(block) == pages && flash.nand().can_erase(block))
}

/// Copies the current pages of a logical block to an erased one; if there is none, into one that they share.
fn merge(
    logical: LogicalBlocks,
    lbn: u32,
    scan: &mut Scan,
    erased: &mut ErasedBlocks,
    mover: &mut Mover,
    flash: &mut Flash,
) -> Result<BlockId, OutOfSpace> {
    let target = match erased.take() {
        Some(block) => block,
        None => shared_block(logical, lbn, scan, flash).ok_or_else(|| erased.exhausted(flash))?,
    };
    let pages: Vec<(u32, Newest)> = pages_of(logical, lbn, scan).collect();
    let first = logical.first_page(lbn);
    let is_elsewhere = |ppn: Ppn, flash: &Flash| flash.geometry().block_of(ppn) != target;
    mover.move_home(flash, target, first, 0..logical.per_block(), 0..0, |offset, flash| {
        let newest = scan.newest(first + offset).filter(|_| first + offset < logical.pages());
        newest.map(|newest| newest.ppn).filter(|ppn| is_elsewhere(*ppn, flash))
    });
    for (_, newest) in pages.into_iter().filter(|(_, newest)| is_elsewhere(newest.ppn, flash)).collect::<Vec<_>>() {
        let (block, left) = flash.invalidate(newest.ppn);
        if left == 0 && flash.nand().condition(block) == Condition::Good {
            scan.blocks.retain(|found| found.block != block);
            erased.release(block, Cause::Merge, flash);
        }
    }
    Ok(target)
}
