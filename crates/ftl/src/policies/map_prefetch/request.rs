//! Request-level prefetching (TPFTL; Zhou et al., EuroSys 2015): the entries of the pages that the request still asks for, as far as
//! they lie on the same translation page. So a request looks up each translation page once.
//!
//! As published, each miss of a request asks again, for what is left of it. O(1) beside the entries. State: none.

use super::{Around, MapCacheContext, MapPrefetchPolicy, Miss};
use crate::registry::NoSettings;
use serde::{Deserialize, Serialize};

/// `ftl.dftl.prefetch = "request"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request;

impl MapPrefetchPolicy for Request {
    const NAME: &'static str = "request";
    const ABOUT: &'static str =
        "the entries of the rest of the request (request-level prefetching of TPFTL; Zhou 2015)";
    type Settings = NoSettings;

    fn new(_: &NoSettings, _: MapCacheContext) -> Self {
        Self
    }
    fn prefetch(&mut self, miss: &Miss) -> Around {
        Around { before: 0, after: miss.rest.min(miss.after) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Translation pages of 8 entries; a request of pages 5 to 14 misses 5, then 8 on the next translation page.
    #[test]
    fn a_request_ends_with_the_translation_page() {
        let mut policy = Request::new(&NoSettings {}, MapCacheContext { entries: 32, entries_per_page: 8 });
        let mut after = |lpn, rest, around| policy.prefetch(&Miss::new(lpn, rest, around, &|_| false)).after;
        assert_eq!((after(5, 9, (5, 2)), after(8, 6, (0, 7)), after(14, 0, (6, 1))), (2, 6, 0));
    }
}
