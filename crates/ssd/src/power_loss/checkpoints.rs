//! When checkpoints of the map are written.

use crate::ssd::{Policies, Ssd};
use flashwright_block::Seed;
use flashwright_config::{DriveConfig, SettingError};
use flashwright_ftl::{Flash, SchemeName};

/// Bytes that a checkpoint of the drive's map takes at most.
fn bytes_max(config: &DriveConfig, flash: &Flash) -> u64 {
    let policies = Policies::default();
    config.ftl.scheme.checkpoint_bytes_max(&Ssd::scheme_context(config, Seed(0), &policies), flash)
}

/// What the configuration lacks for checkpoints. The journal takes so many blocks already, and both may take `most`.
pub(super) fn problem(config: &DriveConfig, flash: &Flash, journal: u32, most: u32) -> Option<SettingError> {
    let (interval, scheme) = (config.recovery.checkpoint_interval, config.ftl.scheme);
    if !config.recovery.takes_checkpoints() {
        return None;
    }
    let what = if !config.recovery.can_mount() {
        format!(
            "found {interval}, expected 0 B, or recovery.mount-by = \"scan\" with it: only a mount reads checkpoints"
        )
    } else if !scheme.takes_checkpoints() {
        format!(
            "found {interval}, expected 0 B with ftl.scheme = {:?}, whose mount compares all copies of a page, and a checkpoint \
             names only the current one; checkpoints work with {}",
            scheme.listed().name,
            SchemeName::those(SchemeName::takes_checkpoints).join(", ")
        )
    } else {
        let blocks = Flash::checkpoint_blocks(bytes_max(config, flash), flash.geometry());
        if blocks.saturating_add(journal) <= most {
            return None;
        }
        format!(
            "found {interval}, but checkpoints take {blocks} blocks and the journal of trims {journal}, expected at most a quarter \
             of the drive's, {most}; use more blocks"
        )
    };
    Some(SettingError { key: "recovery.checkpoint-interval".to_owned(), what })
}

/// Sets blocks apart for checkpoints, if the drive takes any.
pub(crate) fn prepare(config: &DriveConfig, flash: &mut Flash) {
    if config.recovery.takes_checkpoints() {
        let pages = config.recovery.checkpoint_interval.0.div_ceil(flash.geometry().page_size().0);
        flash.take_checkpoints(pages, bytes_max(config, flash));
    }
}

impl Ssd {
    /// Writes a checkpoint if one is due, after what the request does, which doesn't wait for it. Its end follows once everything
    /// before it is on flash: at once where operations are done in order, or where capacitors finish them.
    #[cold]
    pub(crate) fn take_checkpoint(&mut self, takes_time: bool) {
        let Some(power) = &mut self.power else { return };
        if power.is_off {
            return;
        }
        let in_order = !takes_time || !matches!(self.clock, crate::clock::Clock::Parallel(_)) || power.is_protected;
        if self.translation.flash.checkpoint_is_due() {
            self.translation.flash.rest_in_background();
            let size = self.translation.scheme.map_size(&self.translation.flash);
            self.translation.flash.begin_checkpoint(size);
            power.checkpoint_after = None;
        }
        let is_safe = in_order || power.checkpoint_after.is_some_and(|up_to| power.in_flight.is_done_before(up_to));
        if is_safe && self.translation.flash.checkpoint_is_begun() {
            self.translation.flash.rest_in_background();
            self.translation.flash.end_checkpoint();
        }
    }

    /// The operations of a request are issued, and with them a checkpoint that it began.
    pub(super) fn note_checkpoint(&mut self) {
        if let Some(power) = &mut self.power
            && power.checkpoint_after.is_none()
            && self.translation.flash.checkpoint_is_begun()
        {
            power.checkpoint_after = Some(power.in_flight.next());
        }
    }
}
