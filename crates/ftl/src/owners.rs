//! Who owns the logical pages, as ranges, and what each owner cost the flash.
//!
//! A page that cleaning, merging or levelling moves counts for its owner, and for the owner that had written last: its writes made
//! the room necessary.

use flashwright_nand::Lpn;
use serde::{Deserialize, Serialize};

/// What an owner of logical pages cost the flash since the drive was built.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerCounts {
    /// Pages programmed with data that the host wrote.
    pub pages_written: u64,
    /// Pages moved, by the owner that had written last; the last item stands for nobody.
    pub pages_moved_for: Vec<u64>,
}

impl OwnerCounts {
    /// The counts since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let moved = self.pages_moved_for.iter().zip(&earlier.pages_moved_for);
        Self {
            pages_written: self.pages_written - earlier.pages_written,
            pages_moved_for: moved.map(|(now, before)| now - before).collect(),
        }
    }
}

/// The owners of logical pages: owner 0 has the first pages, owner 1 those that follow, and nobody what is left.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Owners {
    /// The page after the last one of each owner.
    ends: Vec<u32>,
    /// By stretch of [`STRETCH`] pages, the owner of its first page: from there on few are looked at.
    firsts: Vec<u8>,
    /// Who wrote last.
    writer: usize,
    /// By owner; the last item is nobody.
    counts: Vec<OwnerCounts>,
}

/// Pages whose owners are looked up together.
const STRETCH: u32 = 64;

impl Owners {
    /// At most 255 owners.
    pub fn new(ends: &[u32]) -> Self {
        let first = |page: u32| u8::try_from(ends.partition_point(|end| *end <= page)).expect("owners fit 8 bits");
        let firsts = (0..ends.last().copied().unwrap_or(0)).step_by(STRETCH as usize).map(first).collect();
        let all = ends.len() + 1;
        let counts = vec![OwnerCounts { pages_moved_for: vec![0; all], ..OwnerCounts::default() }; all];
        Self { ends: ends.to_vec(), firsts, writer: ends.len(), counts }
    }

    pub fn counts(&self) -> &[OwnerCounts] {
        &self.counts
    }

    #[inline(always)]
    fn of(&self, lpn: Lpn) -> usize {
        let Some(first) = self.firsts.get((lpn.0 / STRETCH) as usize) else { return self.ends.len() };
        let mut owner = usize::from(*first);
        while self.ends.get(owner).is_some_and(|end| *end <= lpn.0) {
            owner += 1;
        }
        owner
    }

    pub fn host_writes(&mut self, lpn: Lpn) {
        self.writer = self.of(lpn);
    }

    pub fn host_programs(&mut self, lpn: Lpn) {
        let owner = self.of(lpn);
        self.counts[owner].pages_written += 1;
    }

    pub fn moves(&mut self, lpn: Lpn) {
        let owner = self.of(lpn);
        self.counts[owner].pages_moved_for[self.writer] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_has_the_owner_in_whose_range_it_is() {
        let ends = [1, 1, 63, 64, 65, 200, 1000];
        let owners = Owners::new(&ends);
        for page in 0..1100 {
            assert_eq!(owners.of(Lpn(page)), ends.iter().filter(|end| **end <= page).count(), "page {page}");
        }
    }

    #[test]
    fn a_moved_page_counts_for_its_owner_and_for_who_wrote() {
        let mut owners = Owners::new(&[10, 10, 30]);
        owners.moves(Lpn(3)); // before anybody wrote
        owners.host_writes(Lpn(29));
        owners.host_programs(Lpn(29));
        for moved in [9, 10, 10, 30] {
            owners.moves(Lpn(moved));
        }
        let found: Vec<_> =
            owners.counts().iter().map(|of| (of.pages_written, of.pages_moved_for.as_slice())).collect();
        assert_eq!(found, [(0, &[0, 0, 1, 1][..]), (0, &[0, 0, 0, 0]), (1, &[0, 0, 2, 0]), (0, &[0, 0, 1, 0])]);
    }
}
