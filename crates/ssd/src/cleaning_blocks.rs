//! Cleaning that blocks the controller (`timing.cleaning-blocks = "controller"`): while operations of it are in progress, no
//! waiting request starts.
//!
//! Whole slots of the engine block, since the firmware that issued them is busy until they have ended: a request that had to
//! clean, or a step of cleaning ahead. Requests that had started before go on, as their operations are queued at the dies
//! already. Between two steps of cleaning ahead the requests that wait start.
//!
//! Source: Yan, Li, Hao, Tong, Sundararaman, Chien, Gunawi: "Tiny-Tail Flash: Near-Perfect Elimination of Garbage Collection
//! Tail Latencies in NAND SSDs" (FAST 2017), which sets cleaning that blocks a plane against cleaning that blocks more.

use crate::clock::{Clock, ParallelClock};
use crate::engine::OpClass;
use crate::ssd::Ssd;
use flashwright_config::{CleaningBlocks, Config, DriveConfig, SettingError, TimingModel};
use flashwright_ftl::FlashOp;
use serde::{Deserialize, Serialize};

/// The slots of the engine that block the controller.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct BlockingSlots {
    blocks: Vec<bool>,
    under_way: u32,
}

impl BlockingSlots {
    /// None if cleaning blocks dies only.
    pub fn new(config: &DriveConfig) -> Option<Box<Self>> {
        (config.timing.cleaning_blocks == CleaningBlocks::Controller).then(Box::default)
    }

    /// Validation error of the setting in this configuration.
    pub fn problem(config: &Config) -> Option<SettingError> {
        let blocks = config.timing.cleaning_blocks == CleaningBlocks::Controller;
        (blocks && config.timing.model != TimingModel::Parallel).then(|| SettingError {
            key: "timing.cleaning-blocks".to_owned(),
            what: "found \"controller\", expected timing.model = \"parallel\" with it: elsewhere nothing goes on beside cleaning"
                .to_owned(),
        })
    }
}

impl ParallelClock {
    /// Operations were issued in a slot. If some of them clean, no request starts until all have ended.
    #[inline(always)]
    pub(crate) fn block_for(&mut self, slot: u32, ops: &[FlashOp]) {
        if self.blocking.is_some() {
            self.block_for_cleaning(slot, ops);
        }
    }

    #[cold]
    fn block_for_cleaning(&mut self, slot: u32, ops: &[FlashOp]) {
        let Some(blocking) = &mut self.blocking else { return };
        if !ops.iter().any(|op| matches!(OpClass::of(op), OpClass::Cleaning | OpClass::WearLevelling)) {
            return;
        }
        let slot = slot as usize;
        if blocking.blocks.len() <= slot {
            blocking.blocks.resize(slot + 1, false);
        }
        blocking.blocks[slot] = true;
        blocking.under_way += 1;
        self.queue.close();
    }

    /// A slot has ended; returns whether requests that wait may start again because of it.
    pub(crate) fn unblock(&mut self, slot: u32) -> bool {
        let Some(blocking) = &mut self.blocking else { return false };
        let Some(blocks) = blocking.blocks.get_mut(slot as usize) else { return false };
        if !std::mem::take(blocks) {
            return false;
        }
        blocking.under_way -= 1;
        let open = blocking.under_way == 0;
        if open {
            self.queue.reopen();
        }
        open
    }
}

impl Ssd {
    /// Work that no request waits for has ended: requests start that waited for that.
    #[inline(always)]
    pub(crate) fn start_blocked(&mut self, slot: u32, at: u64) {
        let Clock::Parallel(clock) = &mut self.clock else { return };
        if clock.blocking.is_some() && clock.unblock(slot) {
            self.admit(at);
        }
    }
}
