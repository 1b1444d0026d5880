//! Two classes of pages, hot and cold, each with a frontier; a detector classifies them.
//!
//! * `count`: a page is hot if it was written at least `hot-count` times recently, according to a counting Bloom filter
//!   (Hsieh, Kuo and Chang, ACM TOS 2006): `hashes` counters of 0 to 15 for each page; a write adds 1 to each, and the
//!   smallest is the page's count; after `decay-writes` host page writes all counters are halved.
//! * `recent`: hot if it was written within the last `recent-writes` host page writes (LAST, Lee et al. 2008).
//! * `size`: hot if it comes in a run of at most `size-pages` pages (small writes are hot, as in LAST).
//! * `oracle`: hot if the workload marks it so, with a stream of 2 or more: the best that separation can achieve.
//!
//! `gc-class` sets whether a page that cleaning moves stays in its class or becomes cold. The defaults are ours. State:
//! a byte per counter (`count`), 8 bytes per logical page (`recent`), else none.

use super::{HostWrite, PlacementContext, PlacementPolicy, Relocation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How hot pages are detected: see the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Detector {
    /// Recent writes, counted in a Bloom filter.
    #[default]
    Count,
    /// Time since the last write.
    Recent,
    /// Length of the run that the page is part of.
    Size,
    /// The stream that the workload names.
    Oracle,
}

/// The class of a page that cleaning moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GcClass {
    /// The class it has.
    Keep,
    /// Cold: a page that survives a clean is likely to stay valid.
    #[default]
    Cold,
}

/// Settings of `placement.policy = "hot-cold"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct HotColdSettings {
    /// How hot pages are detected.
    pub detector: Detector,
    /// The class of a page that cleaning moves.
    pub gc_class: GcClass,
    /// `count`: number of writes from which on a page is hot, 1 to 15.
    #[schemars(range(min = 1, max = 15))]
    pub hot_count: u8,
    /// `count`: counters of the filter; 0 for twice the number of logical pages.
    #[schemars(range(max = 1_073_741_824))]
    pub counters: u32,
    /// `count`: counters that each page uses, 1 to 8.
    #[schemars(range(min = 1, max = 8))]
    pub hashes: u8,
    /// `count`: host page writes after which all counters are halved; 0 for the number of logical pages.
    pub decay_writes: u64,
    /// `recent`: host page writes within which a page must have been written; 0 for a tenth of the logical pages.
    pub recent_writes: u64,
    /// `size`: longest run, in pages, that counts as hot.
    pub size_pages: u32,
}

impl Default for HotColdSettings {
    fn default() -> Self {
        Self {
            detector: Detector::Count,
            gc_class: GcClass::Cold,
            hot_count: 3,
            counters: 0,
            hashes: 2,
            decay_writes: 0,
            recent_writes: 0,
            size_pages: 1,
        }
    }
}

/// `placement.policy = "hot-cold"`. Stream 0 is cold, 1 is hot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HotCold {
    settings: HotColdSettings,
    counters: Vec<u8>,
    /// The clock at which the counters are halved next.
    decay_at: u64,
    /// The clock at the last write of each logical page, and 1; 0 for none.
    written: Vec<u64>,
}

const COUNTER_MAX: u8 = 15;

/// The counter that a page has under the hash of number `nth` (SplitMix64's finish, by multiplication and shifts).
#[inline]
fn counter_of(lpn: u32, nth: u8, counters: usize) -> usize {
    let mut z = (u64::from(lpn) << 8 | u64::from(nth)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    usize::try_from((u128::from(z ^ (z >> 31)) * counters as u128) >> 64).expect("below the number of counters")
}

impl HotCold {
    /// Counts a write and returns whether the page is hot.
    fn count(&mut self, write: HostWrite) -> bool {
        if write.now() >= self.decay_at {
            self.counters.iter_mut().for_each(|counter| *counter /= 2);
            self.decay_at = write.now() + self.settings.decay_writes;
        }
        let mut least = COUNTER_MAX;
        for nth in 0..self.settings.hashes {
            let at = counter_of(write.lpn.0, nth, self.counters.len());
            let counter = &mut self.counters[at];
            *counter = (*counter + 1).min(COUNTER_MAX);
            least = least.min(*counter);
        }
        least >= self.settings.hot_count
    }
}

impl PlacementPolicy for HotCold {
    const NAME: &'static str = "hot-cold";
    const ABOUT: &'static str =
        "separate frontiers for hot and cold pages, which a detector classifies (Hsieh 2006; LAST 2008)";
    type Settings = HotColdSettings;

    fn new(settings: &HotColdSettings, context: PlacementContext) -> Self {
        let logical = context.logical_pages;
        let mut settings = settings.clone();
        settings.hashes = settings.hashes.clamp(1, 8);
        if settings.counters == 0 {
            settings.counters = logical.saturating_mul(2);
        }
        if settings.decay_writes == 0 {
            settings.decay_writes = u64::from(logical);
        }
        if settings.recent_writes == 0 {
            settings.recent_writes = u64::from(logical.div_ceil(10));
        }
        let (count, recent) = (settings.detector == Detector::Count, settings.detector == Detector::Recent);
        Self {
            counters: vec![0; if count { settings.counters as usize } else { 0 }],
            decay_at: settings.decay_writes,
            written: vec![0; if recent { logical as usize } else { 0 }],
            settings,
        }
    }
    fn streams(&self) -> u8 {
        2
    }
    #[inline]
    fn host(&mut self, write: HostWrite) -> u8 {
        let hot = match self.settings.detector {
            Detector::Count => self.count(write),
            Detector::Recent => {
                let last = std::mem::replace(&mut self.written[write.lpn.index()], write.now() + 1);
                last > 0 && write.now() + 1 - last <= self.settings.recent_writes
            }
            Detector::Size => write.run_pages <= self.settings.size_pages,
            Detector::Oracle => write.stream >= 2,
        };
        u8::from(hot)
    }
    #[inline(always)]
    fn relocation(&mut self, page: Relocation) -> u8 {
        match self.settings.gc_class {
            GcClass::Keep => page.old_stream(),
            GcClass::Cold => 0,
        }
    }
}
