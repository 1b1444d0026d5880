//! Selective prefetching (TPFTL; Zhou et al., EuroSys 2015, doi:10.1145/2741948.2741949).
//!
//! Sequential accesses load many entries of few translation pages, so that the number of translation pages with an entry in the
//! cache falls. A counter follows it:
//!
//! ```text
//!   a translation page comes ── +1 ── at  threshold: off, 0 again
//!   a translation page leaves ── -1 ── at -threshold: on,  0 again
//!
//!   on, a miss: as many entries follow it in as cached ones directly precede it, within its translation page
//! ```
//!
//! As published: the counter, the threshold of 3, the length, its end at the end of the translation page. The paper was not at hand:
//! these rules are those of two later implementations (WiscSee, which quotes answers of the paper's authors; the TPFTL of LearnedFTL's
//! simulator, which has the same length and no counter).
//!
//! Ours: any replacement policy names the entries that leave. TPFTL keeps translation pages in the order of their hotness and takes
//! entries of the coldest alone, so that a prefetch causes one write at most; `prefetch-evicts = "one-page"` keeps that limit, where
//! the page is that of the first entry that leaves. Prefetched entries enter as any other, the nearest last. It begins off. TPFTL
//! loads the rest of a request too: `with-request`.
//!
//! O(length) for each miss. State: 8 bytes.

use super::{Around, MapCacheContext, MapPrefetchPolicy, Miss};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of `ftl.dftl.prefetch = "selective"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SelectiveSettings {
    /// Translation pages by which the number of those in the cache has to fall for prefetching to begin, or to rise for it to end.
    /// A load that is sequential throughout keeps that number as it is, and prefetching off: "request" and `with-request` serve it.
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub threshold: u32,
    /// Whether the rest of the request is loaded too, if that is more, as `"request"` does (TPFTL does both).
    pub with_request: bool,
}

impl Default for SelectiveSettings {
    fn default() -> Self {
        Self { threshold: 3, with_request: false }
    }
}

/// `ftl.dftl.prefetch = "selective"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Selective {
    threshold: i64,
    with_request: bool,
    /// Translation pages that came, less those that left, since it was last 0.
    change: i64,
    is_on: bool,
}

impl Selective {
    fn changed(&mut self, by: i64) {
        self.change += by;
        if self.change.abs() == self.threshold {
            self.is_on = self.change < 0;
            self.change = 0;
        }
    }
}

impl MapPrefetchPolicy for Selective {
    const NAME: &'static str = "selective";
    const ABOUT: &'static str =
        "while accesses are sequential, as many entries as are cached before the missing one (TPFTL; Zhou 2015)";
    type Settings = SelectiveSettings;

    fn new(settings: &SelectiveSettings, _: MapCacheContext) -> Self {
        let SelectiveSettings { threshold, with_request } = *settings;
        Self { threshold: i64::from(threshold), with_request, change: 0, is_on: false }
    }
    fn prefetch(&mut self, miss: &Miss) -> Around {
        let rest = if self.with_request { miss.rest } else { 0 };
        let row = if self.is_on { miss.cached_before() } else { 0 };
        Around { before: 0, after: rest.max(row).min(miss.after) }
    }
    fn page_came(&mut self) {
        self.changed(1);
    }
    fn page_left(&mut self) {
        self.changed(-1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: MapCacheContext = MapCacheContext { entries: 32, entries_per_page: 8 };

    /// Page 4 of 8 is missing; 1, 2 and 3 are cached, and so is 6.
    fn after(policy: &mut Selective, rest: u32) -> u32 {
        let Around { before, after } = policy.prefetch(&Miss::new(4, rest, (4, 3), &|lpn| [1, 2, 3, 6].contains(&lpn)));
        assert_eq!(before, 0);
        after
    }

    /// The counter: +1, then four left: 0, -1, -2, -3, which is on. Three came: 1, 2, 3, which is off.
    #[test]
    fn pages_that_leave_begin_it_and_pages_that_come_end_it() {
        let mut policy = Selective::new(&SelectiveSettings::default(), CONTEXT);
        assert_eq!(after(&mut policy, 2), 0);
        policy.page_came();
        for found in [0, 0, 0, 3] {
            policy.page_left();
            assert_eq!(after(&mut policy, 2), found);
        }
        for found in [3, 3, 0] {
            policy.page_came();
            assert_eq!(after(&mut policy, 2), found);
        }
        // Off since then; two left and one came is -1: two more are needed.
        [-1, -1, 1, -1].into_iter().for_each(|by| policy.changed(by));
        assert_eq!(after(&mut policy, 2), 0);
        policy.page_left();
        assert_eq!(after(&mut policy, 2), 3);
    }

    #[test]
    fn with_the_request_the_longer_counts() {
        let mut policy = Selective::new(&SelectiveSettings { threshold: 1, with_request: true }, CONTEXT);
        assert_eq!((after(&mut policy, 1), after(&mut policy, 9)), (1, 3));
        policy.page_left();
        assert_eq!(after(&mut policy, 1), 3);
    }
}
