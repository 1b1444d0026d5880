//! `[recovery]`.

use flashwright_block::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a drive comes back after a loss of power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MountBy {
    /// It does not: the drive takes no precautions, and power can't be cut.
    #[default]
    Nothing,
    /// It reads the spare area of every page, and a journal of trims.
    Scan,
}

/// `[recovery]`: what a drive does so that it can be mounted again after a loss of power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct RecoverySettings {
    /// How the drive rebuilds its map when it is mounted. Anything but `"nothing"` sets a few blocks apart for a journal of trims,
    /// keeps order between erases and the programs that make them safe, and takes 60 B of memory for every page of the flash.
    pub mount_by: MountBy,
    /// Bytes programmed by whatever cause, in pages, after which the drive writes a checkpoint of its map; 0 B for none. A mount then
    /// reads the newest checkpoint, and the spare areas of what was programmed after it. For `ftl.scheme` `"page"`, `"dftl"` and
    /// `"superblock"`.
    pub checkpoint_interval: Bytes,
    /// Whether the drive acknowledges flushes and forced writes without carrying them out, as some drives do: to see whether a
    /// crash test notices. What they should have made safe stays in the RAM and in the controller's write buffer.
    pub ignores_flush: bool,
}

impl RecoverySettings {
    /// Whether power may be cut.
    #[must_use]
    pub fn can_mount(&self) -> bool {
        self.mount_by != MountBy::Nothing
    }

    /// Whether the drive writes checkpoints of its map.
    #[must_use]
    pub fn takes_checkpoints(&self) -> bool {
        self.checkpoint_interval.0 > 0
    }
}
