//! DAC, dynamic data clustering (Chiang, Lee and Chang, 1999): regions from cold to hot; a page moves to a hotter
//! region when it is rewritten soon, and to a colder one when cleaning finds it old.
//!
//! ```text
//!   never written               region 1, the coldest
//!   written again in region i   i + 1 if its last write is less than promote-age ago, else i
//!   moved from region i         i - 1 if its last write is more than demote-age ago, else i
//! ```
//!
//! Ages are in host page writes. We chose half the logical pages for both ages, because the paper's values were not
//! available. `unconditional` is the simplified form in public code, which ignores ages; it equals container marking
//! without probability, starting at the lowest marker. The paper pairs DAC with its own cost-benefit variant; any
//! victim policy works. State: 8 bytes per logical page, none if unconditional.

use super::{HostWrite, PlacementContext, PlacementPolicy, Relocation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of `placement.policy = "dac"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DacSettings {
    /// Regions, 1 to 64.
    #[schemars(range(min = 1, max = 64))]
    pub regions: u8,
    /// A page that is rewritten fewer host page writes than this after its last write moves to the next hotter region;
    /// 0 for half the logical pages.
    pub promote_age: u64,
    /// A page that cleaning moves more host page writes than this after its last write moves to the next colder region;
    /// 0 for half the logical pages.
    pub demote_age: u64,
    /// Whether pages move between regions at any age.
    pub unconditional: bool,
}

impl Default for DacSettings {
    fn default() -> Self {
        Self { regions: 3, promote_age: 0, demote_age: 0, unconditional: false }
    }
}

/// `placement.policy = "dac"`. Stream i - 1 is region i.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dac {
    regions: u8,
    promote_age: u64,
    demote_age: u64,
    /// The clock at the last write of each logical page; empty if ages don't matter.
    written: Vec<u64>,
}

impl PlacementPolicy for Dac {
    const NAME: &'static str = "dac";
    const ABOUT: &'static str =
        "regions from cold to hot: up when rewritten soon, down when moved at an old age (DAC, Chiang 1999)";
    type Settings = DacSettings;

    fn new(settings: &DacSettings, context: PlacementContext) -> Self {
        let half = u64::from(context.logical_pages) / 2;
        let or_half = |age| if age == 0 { half } else { age };
        Self {
            regions: settings.regions.clamp(1, 64),
            promote_age: or_half(settings.promote_age),
            demote_age: or_half(settings.demote_age),
            written: if settings.unconditional { Vec::new() } else { vec![0; context.logical_pages as usize] },
        }
    }
    fn streams(&self) -> u8 {
        self.regions
    }
    #[inline(always)]
    fn host(&mut self, write: HostWrite) -> u8 {
        let young = self.written.get_mut(write.lpn.index()).is_none_or(|written| {
            let last = std::mem::replace(written, write.now());
            write.now() - last < self.promote_age
        });
        match write.old_stream() {
            None => 0,
            Some(region) if young => (region + 1).min(self.regions - 1),
            Some(region) => region,
        }
    }
    #[inline(always)]
    fn relocation(&mut self, page: Relocation) -> u8 {
        let old = self.written.get(page.lpn.index()).is_none_or(|last| page.now() - last > self.demote_age);
        page.old_stream().saturating_sub(u8::from(old))
    }
}
