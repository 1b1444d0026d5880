//! Cuts requests for a drive whose sizes are known: PAS and PASA (Kim et al., section 5.2).
//!
//! ```text
//!          A   A   A   A   A   A   A   A   A          A: the unit to align to, B: the drive's buffer
//!  request   ├──────────────────────────┤
//!  PAS       ├─────B────┼─────B────┼────┤             pieces of B from the start
//!  PASA      ├─┼────B'──┼────B'────┼────┤             the next multiple of A, then pieces of B' = floor(B / A) A
//! ```

use crate::lists::{List, Lists};
use crate::pool::{Id, Pool, side};
use crate::profile::{Finding, Profile};
use crate::schedulers::Splitting;
use flashwright_block::RequestKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The unit that requests are aligned to: the paper says "clustered page or block".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// The clustered page.
    #[default]
    Page,
    /// The clustered block.
    Block,
}

impl Unit {
    /// Its key in the profile, and its size there.
    fn found(self, profile: &Profile) -> (&'static str, Finding) {
        match self {
            Self::Page => ("profile.clustered-page", profile.clustered_page),
            Self::Block => ("profile.clustered-block", profile.clustered_block),
        }
    }

    /// Its size in sectors; none if the profile has no size.
    #[must_use]
    pub fn sectors(self, profile: &Profile) -> Option<u64> {
        self.found(profile).1.sectors()
    }

    /// The key without a size, and what to do, if the size is missing.
    #[must_use]
    pub fn problem(self, profile: &Profile) -> Option<(String, String)> {
        let (key, found) = self.found(profile);
        let what = || {
            format!(
                "found \"{found}\", expected a size such as \"16 KiB\": requests are aligned to it; \
                 probe the drive or write it into the profile"
            )
        };
        found.sectors().is_none().then(|| (key.to_owned(), what()))
    }
}

/// How requests are cut in a direction for which the drive has no buffer. No value is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WithoutBuffer {
    /// Not cut by size.
    #[default]
    Uncut,
    /// Cut as if the buffer held a clustered page.
    Page,
}

/// Where requests are cut.
///
/// ```
/// # use flashwright_host::{CutRule, Profile, Splitting};
/// # use flashwright_block::RequestKind;
/// let profile: Profile = toml::from_str("clustered-page = \"16 KiB\"\nwrite-buffer = \"255 KiB\"").unwrap();
/// let pasa = CutRule::new(Splitting::AlignedSize(Default::default(), Default::default()), &profile);
/// let kib = 2; // sectors
/// assert_eq!(pasa.cut(RequestKind::Write, 8 * kib, 616 * kib), Some(16 * kib));
/// assert_eq!(pasa.cut(RequestKind::Write, 16 * kib, 616 * kib), Some(256 * kib)); // 240 KiB, 15 whole pages
/// assert_eq!(pasa.cut(RequestKind::Write, 496 * kib, 616 * kib), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutRule {
    /// The alignment of all pieces but the first, in sectors; 0 for none.
    unit: u64,
    /// Longest piece of reads and of writes, in sectors.
    longest: [u64; 2],
}

impl CutRule {
    /// The rule for a drive. A direction whose buffer is unknown is not cut by size; [`CutRule::problems`] reports
    /// this.
    #[must_use]
    pub fn new(splitting: Splitting, profile: &Profile) -> Self {
        let (unit, without) = match splitting {
            Splitting::None => return Self { unit: 0, longest: [u64::MAX; 2] },
            Splitting::Size(without) => (None, without),
            Splitting::AlignedSize(unit, without) => (unit.sectors(profile), without),
        };
        let longest = [profile.read_buffer, profile.write_buffer].map(|buffer| {
            let page = || profile.clustered_page.sectors().filter(|_| without == WithoutBuffer::Page);
            let Some(buffer) = buffer.sectors().or_else(page) else { return u64::MAX };
            // The paper does not state what happens if B is no multiple of A; with B itself the second cut would be
            // misaligned.
            unit.map_or(buffer, |unit| (buffer / unit * unit).max(unit))
        });
        Self { unit: unit.unwrap_or(0), longest }
    }

    /// The sizes that a way of cutting needs but the profile lacks: the key and what to do.
    #[must_use]
    pub fn problems(splitting: Splitting, profile: &Profile) -> Vec<(String, String)> {
        let (unit, without) = match splitting {
            Splitting::None => return Vec::new(),
            Splitting::Size(without) => (None, without),
            Splitting::AlignedSize(unit, without) => (Some(unit), without),
        };
        let mut problems: Vec<(String, String)> = unit.and_then(|unit| unit.problem(profile)).into_iter().collect();
        let buffers = [("profile.read-buffer", profile.read_buffer), ("profile.write-buffer", profile.write_buffer)];
        for (key, found) in buffers {
            if found == Finding::Unknown {
                let what = "found \"unknown\", expected a size such as \"256 KiB\", or \"none\" if the drive has none: \
                            requests are cut by it; probe the drive or write it into the profile";
                problems.push((key.to_owned(), what.to_owned()));
            }
        }
        let needs_page = without == WithoutBuffer::Page && buffers.iter().any(|(_, found)| *found == Finding::Absent);
        if needs_page && unit != Some(Unit::Page) {
            problems.extend(Unit::Page.problem(profile));
        }
        problems
    }

    /// Where the first piece of these sectors ends, if there is more than one piece. Reads and writes are cut; trims and
    /// flushes move no data through a buffer.
    #[inline]
    #[must_use]
    pub fn cut(&self, kind: RequestKind, first_sector: u64, end_sector: u64) -> Option<u64> {
        if !kind.moves_data() {
            return None;
        }
        let longest = self.longest(kind);
        let past_border = if self.unit == 0 { 0 } else { first_sector % self.unit };
        let piece = if past_border == 0 { longest } else { self.unit - past_border };
        (end_sector - first_sector > piece).then(|| first_sector + piece)
    }

    /// Longest piece that the rule makes of reads or of writes, in sectors.
    #[must_use]
    pub fn longest(&self, kind: RequestKind) -> u64 {
        self.longest[side(kind)]
    }
}

/// A first-in-first-out queue that cuts requests as they leave: the pieces of a request leave one after another, and
/// the rest waits at the head. Once its first piece has left, a request no longer grows, so an endless run cannot keep
/// others waiting.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CuttingQueue {
    rule: CutRule,
    lists: Lists,
    queue: List,
    /// The rest of the request whose first pieces have left.
    rest: Option<Id>,
    requests_cut: u64,
    pieces: u64,
}

impl CuttingQueue {
    pub fn new(rule: CutRule) -> Self {
        Self { rule, lists: Lists::default(), queue: List::default(), rest: None, requests_cut: 0, pieces: 0 }
    }

    #[inline]
    pub fn push(&mut self, id: Id) {
        self.lists.push(&mut self.queue, id);
    }

    pub fn remove(&mut self, id: Id) {
        self.lists.remove(&mut self.queue, id);
    }

    /// The next piece or whole request.
    #[inline]
    pub fn pop(&mut self, pool: &mut Pool) -> Option<Id> {
        let rest = self.rest.take();
        let id = rest.or_else(|| self.lists.pop(&mut self.queue))?;
        let queued = pool.get(id);
        if let Some(at) = self.rule.cut(queued.kind, queued.first_sector, queued.end_sector) {
            pool.close(id);
            self.rest = Some(pool.split(id, at));
            self.requests_cut += u64::from(rest.is_none());
            self.pieces += 1;
        } else {
            self.pieces += u64::from(rest.is_some());
        }
        Some(id)
    }

    pub fn figures(&self) -> Vec<(String, f64)> {
        vec![("cut_requests".to_owned(), self.requests_cut as f64), ("cut_pieces".to_owned(), self.pieces as f64)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::Bytes;

    const KIB: u64 = 2;

    fn profile(buffer: u64) -> Profile {
        let size = |kib: u64| if kib == 0 { Finding::Absent } else { Finding::Size(Bytes(kib << 10)) };
        Profile {
            clustered_page: size(16),
            clustered_block: size(4096),
            read_buffer: size(buffer),
            write_buffer: size(buffer),
        }
    }

    /// Pieces of the range between two addresses in KiB, as address and length in KiB.
    fn pieces(splitting: Splitting, profile: &Profile, first: u64, end: u64) -> Vec<(u64, u64)> {
        let rule = CutRule::new(splitting, profile);
        let (mut at, mut found) = (first * KIB, Vec::new());
        while let Some(next) = rule.cut(RequestKind::Write, at, end * KIB) {
            found.push((at / KIB, (next - at) / KIB));
            at = next;
        }
        found.push((at / KIB, end - at / KIB));
        found
    }

    const PAS: Splitting = Splitting::Size(WithoutBuffer::Uncut);
    const PASA: Splitting = Splitting::AlignedSize(Unit::Page, WithoutBuffer::Uncut);

    #[test]
    fn requests_are_cut_as_worked_by_hand() {
        assert_eq!(pieces(PAS, &profile(256), 0, 600), [(0, 256), (256, 256), (512, 88)]);
        assert_eq!(pieces(PASA, &profile(256), 8, 608), [(8, 8), (16, 256), (272, 256), (528, 80)]);
        // B' = 15 pages of 16 KiB.
        assert_eq!(pieces(PASA, &profile(255), 8, 608), [(8, 8), (16, 240), (256, 240), (496, 112)]);
        assert_eq!(pieces(PASA, &profile(256), 30, 38), [(30, 2), (32, 6)]);
        assert_eq!(pieces(PASA, &profile(256), 20, 24), [(20, 4)]);
        assert_eq!(pieces(Splitting::None, &profile(256), 8, 9000), [(8, 8992)]);
    }

    #[test]
    fn aligned_to_blocks_a_smaller_request_is_cut_only_at_their_borders() {
        let pasa = Splitting::AlignedSize(Unit::Block, WithoutBuffer::Uncut);
        assert_eq!(pieces(pasa, &profile(256), 100, 4000), [(100, 3900)]);
        // The buffer is smaller than a block, so B' is a block.
        assert_eq!(pieces(pasa, &profile(256), 4000, 9000), [(4000, 96), (4096, 4096), (8192, 808)]);
    }

    #[test]
    fn without_a_buffer_nothing_is_cut_by_size_unless_the_page_stands_in() {
        assert_eq!(pieces(PAS, &profile(0), 8, 608), [(8, 600)]);
        assert_eq!(pieces(PASA, &profile(0), 8, 608), [(8, 8), (16, 592)]);
        assert_eq!(pieces(Splitting::Size(WithoutBuffer::Page), &profile(0), 8, 50), [(8, 16), (24, 16), (40, 10)]);
        let pasa = Splitting::AlignedSize(Unit::Page, WithoutBuffer::Page);
        assert_eq!(pieces(pasa, &profile(0), 8, 50), [(8, 8), (16, 16), (32, 16), (48, 2)]);
    }

    #[test]
    fn what_a_profile_lacks_is_named_with_what_to_do() {
        let keys = |splitting, profile: &Profile| -> Vec<String> {
            CutRule::problems(splitting, profile).into_iter().map(|(key, _)| key).collect()
        };
        let nothing = Profile::default();
        assert_eq!(keys(PAS, &nothing), ["profile.read-buffer", "profile.write-buffer"]);
        assert_eq!(keys(PASA, &nothing)[0], "profile.clustered-page");
        assert!(keys(PASA, &profile(0)).is_empty() && keys(Splitting::None, &nothing).is_empty());
        let no_page = Profile { clustered_page: Finding::Unknown, ..profile(0) };
        assert!(keys(PAS, &no_page).is_empty());
        assert_eq!(keys(Splitting::Size(WithoutBuffer::Page), &no_page), ["profile.clustered-page"]);
        let (_, what) = CutRule::problems(PAS, &nothing).remove(1);
        assert!(what.contains("found \"unknown\"") && what.contains("probe the drive"), "{what}");
    }
}
