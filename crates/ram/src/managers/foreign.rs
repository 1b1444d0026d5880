//! The adapter for managers from outside ([`flashwright_ftl::policies::foreign`]).
//!
//! The adapter keeps the pages in groups, of a block or of a single page, in the order of their last use; a foreign
//! policy chooses only which group is evicted. O(1) per page, 24 bytes per group more than [`Groups`].

use super::{RamContext, View};
use crate::{Destage, Groups};
use flashwright_ftl::{FaultCell, LpnRun, SlotLists, Violation};
use flashwright_nand::Lpn;
use std::sync::Arc;

/// Builds the policy of a drive's RAM.
pub trait MakeManager {
    /// Its name in messages.
    fn name(&self) -> &str;
    /// How the RAM works with it.
    fn rules(&self) -> BufferRules;
    /// The policy.
    fn make(&self, context: &RamContext) -> Box<dyn ChooseLeaving>;
}

/// How the RAM works under a foreign policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferRules {
    /// Whether a group is a block; else it is a page.
    pub by_block: bool,
    /// Whether pages read from flash are kept as well.
    pub keeps_reads: bool,
    /// Whether a read of a page held is a use of its group; a write is in any case.
    pub reads_are_uses: bool,
    /// Whether an evicted block is padded with its pages on flash.
    pub padding: bool,
    /// Whether it is asked which pages come in.
    pub admits: bool,
}

/// Chooses what to evict from the RAM.
pub trait ChooseLeaving: std::fmt::Debug + Send + Sync {
    /// Returns the block (or the page) of one of `groups`, of which there is at least one. It may move the table out of
    /// its box, and must put it back.
    ///
    /// # Errors
    /// The reason why it can't.
    fn choose(&mut self, groups: &mut Box<HeldGroups>) -> Result<i64, String>;
    /// Whether pages that the host writes are held, or those that it read from flash; asked once for a request, with
    /// [`BufferRules::admits`]. Writes that are not go to flash at once.
    ///
    /// # Errors
    /// The reason why it can't say.
    fn admits(&mut self, run: LpnRun, is_write: bool) -> Result<bool, String> {
        let _ = (run, is_write);
        Ok(true)
    }
    /// A copy that continues as this one would.
    fn again(&self) -> Box<dyn ChooseLeaving>;
}

impl Clone for Box<dyn ChooseLeaving> {
    fn clone(&self) -> Self {
        self.again()
    }
}

/// The groups of held pages, the least recently used first.
#[derive(Clone, Debug)]
pub struct HeldGroups {
    /// The clock: pages that the host has read or written so far.
    pub now: u64,
    /// The clock of the host page writes of the drive.
    pub host_writes: u64,
    groups: Groups,
    order: SlotLists,
    /// By slot: the clock when its group came in and when it was used last.
    entered: Vec<u64>,
    used: Vec<u64>,
}

impl Default for HeldGroups {
    fn default() -> Self {
        Self::new(1, 0)
    }
}

/// The only list: all groups, by last use.
const ALL: u32 = 0;

impl HeldGroups {
    fn new(pages: u32, logical_pages: u32) -> Self {
        Self {
            now: 0,
            host_writes: 0,
            groups: Groups::new(pages, logical_pages),
            order: SlotLists::new(1, 0),
            entered: Vec::new(),
            used: Vec::new(),
        }
    }

    /// The number of groups.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.groups.len()
    }
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
    /// The block (or page) of the least recently used group.
    #[must_use]
    pub fn oldest(&self) -> Option<u32> {
        self.order.oldest(ALL).map(|slot| self.groups.block(slot))
    }
    fn slots(&self) -> impl Iterator<Item = u32> {
        std::iter::successors(self.order.oldest(ALL), |slot| self.order.after(*slot))
    }
    /// Their blocks (or pages).
    pub fn blocks(&self) -> impl Iterator<Item = u32> {
        self.slots().map(|slot| self.groups.block(slot))
    }
    /// Number of held pages of each.
    pub fn pages(&self) -> impl Iterator<Item = u32> {
        self.slots().map(|slot| self.groups.count(slot))
    }
    /// Number of dirty pages of each.
    pub fn dirty(&self) -> impl Iterator<Item = u32> {
        self.slots().map(|slot| self.groups.dirty(slot))
    }
    /// By the clock, how long ago each was used last.
    pub fn ages(&self) -> impl Iterator<Item = u64> {
        self.slots().map(|slot| self.now - self.used[slot as usize])
    }
    /// By the clock, how long ago each came in.
    pub fn held_for(&self) -> impl Iterator<Item = u64> {
        self.slots().map(|slot| self.now - self.entered[slot as usize])
    }

    fn use_of(&mut self, slot: u32) {
        self.used[slot as usize] = self.now;
        self.order.move_to(ALL, slot);
    }
    fn take_in(&mut self, lpn: Lpn, dirty: bool) {
        let (slot, new) = self.groups.insert(lpn, dirty);
        if new {
            let at = slot as usize;
            if at >= self.used.len() {
                self.used.resize(at + 1, 0);
                self.entered.resize(at + 1, 0);
            }
            self.entered[at] = self.now;
            self.order.push(ALL, slot);
        }
        self.use_of(slot);
    }
}

/// A foreign policy in use. Its methods are not inlined, so that native managers do not pay for them.
#[derive(Clone, Debug)]
pub struct ForeignManager {
    policy: Box<dyn ChooseLeaving>,
    held: Box<HeldGroups>,
    rules: BufferRules,
    capacity: u32,
    name: Arc<str>,
    fault: FaultCell,
}

impl ForeignManager {
    pub(crate) fn new(maker: &dyn MakeManager, context: &RamContext, fault: FaultCell) -> Self {
        let rules = maker.rules();
        let pages = if rules.by_block { context.pages_per_block } else { 1 };
        Self {
            policy: maker.make(context),
            held: Box::new(HeldGroups::new(pages, context.logical_pages)),
            rules,
            capacity: context.pages,
            name: maker.name().into(),
            fault,
        }
    }

    #[inline(never)]
    pub(super) fn keeps_reads(&self) -> bool {
        self.rules.keeps_reads
    }
    #[inline(never)]
    pub(crate) fn admits(&mut self, run: LpnRun, is_write: bool) -> bool {
        if !self.rules.admits || self.fault.get().is_some() {
            return true;
        }
        self.policy.admits(run, is_write).unwrap_or_else(|what| {
            self.fault.set(format!("{}: logical page {}: {what}", self.name, run.first.0));
            true
        })
    }
    #[inline(never)]
    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }
    #[inline(never)]
    pub(super) fn pages(&self) -> u32 {
        self.held.groups.pages()
    }
    #[inline(never)]
    pub(super) fn is_dirty(&self, lpn: Lpn) -> Option<bool> {
        self.held.groups.find(lpn).map(|(slot, offset)| self.held.groups.is_dirty(slot, offset))
    }
    #[inline(never)]
    pub(super) fn overwrite(&mut self, lpn: Lpn) -> bool {
        self.held.now += 1;
        let Some((slot, offset)) = self.held.groups.find(lpn) else { return false };
        self.held.groups.set_dirty(slot, offset, true);
        self.held.use_of(slot);
        true
    }
    #[inline(never)]
    pub(super) fn take_in(&mut self, lpn: Lpn, dirty: bool) {
        self.held.take_in(lpn, dirty);
    }
    #[inline(never)]
    pub(super) fn read(&mut self, lpn: Lpn) -> bool {
        self.held.now += 1;
        let Some((slot, _)) = self.held.groups.find(lpn) else { return false };
        if self.rules.reads_are_uses {
            self.held.use_of(slot);
        }
        true
    }

    #[inline(never)]
    pub(super) fn choose(&mut self, view: View, out: &mut Destage) {
        self.held.host_writes = view.flash.host_writes();
        let slot = self.chosen().unwrap_or_else(|what| {
            self.fault.set(format!("{}: host page write {}: {what}", self.name, self.held.host_writes));
            // The run is about to end; until then the RAM keeps its invariants.
            self.held.order.oldest(ALL).expect("RAM lets go only what it holds")
        });
        self.held.groups.name_all(slot, out);
        out.pad_block =
            (self.rules.padding && self.rules.by_block && !out.pages.is_empty()).then(|| self.held.groups.block(slot));
    }

    fn chosen(&mut self) -> Result<u32, String> {
        if self.fault.get().is_some() {
            return self.held.order.oldest(ALL).ok_or_else(String::new);
        }
        let block = self.policy.choose(&mut self.held)?;
        let held = u32::try_from(block).ok().and_then(|block| self.held.groups.find_group(block));
        held.ok_or_else(|| {
            let what = if self.rules.by_block { "block" } else { "page" };
            format!(
                "choose answered {what} {block}, of which nothing is held; expected one of the {} {what}s held",
                self.held.len()
            )
        })
    }

    #[inline(never)]
    pub(super) fn remove(&mut self, lpn: Lpn) -> bool {
        let Some((slot, gone)) = self.held.groups.remove(lpn) else { return false };
        if gone {
            self.held.order.unlink(slot);
        }
        true
    }
    #[inline(never)]
    pub(super) fn left(&mut self, out: &Destage) {
        let Some(slot) = self.held.groups.slot_of_destage(out) else { return };
        self.held.groups.remove_group(slot);
        self.held.order.unlink(slot);
    }
    #[inline(never)]
    pub(super) fn dirty_pages(&self, out: &mut Vec<u32>) {
        self.held.groups.dirty_pages(out);
    }
    #[inline(never)]
    pub(super) fn cleaned(&mut self, lpn: Lpn) {
        if let Some((slot, offset)) = self.held.groups.find(lpn) {
            self.held.groups.set_dirty(slot, offset, false);
        }
    }
    #[inline(never)]
    pub(super) fn audit(&self, violations: &mut Vec<Violation>) {
        self.held.groups.audit(violations);
        if self.held.order.total() != self.held.groups.len() {
            violations.push(Violation(format!(
                "the buffer holds {} groups, {} are in its order",
                self.held.groups.len(),
                self.held.order.total()
            )));
        }
    }
}
