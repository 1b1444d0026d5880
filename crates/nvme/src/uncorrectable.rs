//! Logical blocks that hosts have marked as uncorrectable (NVM Command Set 1.1, section 3.3.7), as ranges of the drive.
//!
//! ```text
//!   Write Uncorrectable ─► marked: Read, Compare, Verify and Copy fail ─► Write, Write Zeroes, Copy, deallocation, Format, Sanitize: clear
//! ```
//!
//! A mark is no content of the flash: the drive is not asked. It survives a loss of power, and is gone when the server ends. It goes when
//! what clears it begins, whether or not that fails.

use crate::namespace::{Extent, Namespace};
use crate::wire::lba_status::Blocks;
use std::collections::BTreeMap;

/// Ranges beyond which no more is marked.
const RANGES_MAX: usize = 1 << 16;

/// The ranges that are marked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uncorrectable {
    /// By first byte of a range, the byte after its last one. They neither overlap nor meet.
    ends: BTreeMap<u64, u64>,
    /// How often they have changed; it begins anew at the end of its 16 bits.
    generation: u16,
}

impl Uncorrectable {
    /// Whether nothing is marked.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether no more can be marked.
    pub fn is_full(&self) -> bool {
        self.ends.len() >= RANGES_MAX
    }

    /// How often the ranges have changed.
    pub fn generation(&self) -> u16 {
        self.generation
    }

    /// Marks a range.
    pub fn mark(&mut self, range: Extent) {
        let (mut first, mut end) = (range.first, range.first + range.bytes);
        while let Some((begins, ends)) = self.last_before(end + 1).filter(|(_, ends)| *ends >= first) {
            self.ends.remove(&begins);
            (first, end) = (first.min(begins), end.max(ends));
        }
        self.ends.insert(first, end);
        self.generation = self.generation.wrapping_add(1);
    }

    /// Clears a range.
    pub fn clear(&mut self, first: u64, bytes: u64) {
        let end = first + bytes;
        while let Some((begins, ends)) = self.last_before(end).filter(|(_, ends)| *ends > first) {
            self.ends.remove(&begins);
            if ends > end {
                self.ends.insert(end, ends);
            }
            if begins < first {
                self.ends.insert(begins, first);
            }
            self.generation = self.generation.wrapping_add(1);
        }
    }

    /// Clears everything.
    pub fn clear_all(&mut self) {
        self.ends.clear();
        self.generation = self.generation.wrapping_add(1);
    }

    /// Whether a byte of a range is marked.
    pub fn touches(&self, first: u64, bytes: u32) -> bool {
        self.last_before(first + u64::from(bytes)).is_some_and(|(_, ends)| ends > first)
    }

    /// The last range that begins before a byte.
    fn last_before(&self, byte: u64) -> Option<(u64, u64)> {
        self.ends.range(..byte).next_back().map(|(begins, ends)| (*begins, *ends))
    }

    /// What is marked of a range of a namespace's bytes, in logical blocks.
    pub fn of_namespace(&self, namespace: &Namespace, first: u64, bytes: u64) -> Vec<Blocks> {
        let mut found: Vec<(u64, u64)> = Vec::new();
        let mut at = first;
        for extent in namespace.locate(first, bytes) {
            let end = extent.first + extent.bytes;
            let begins_before = self.last_before(extent.first).filter(|(_, ends)| *ends > extent.first);
            let within = self.ends.range(extent.first..end).map(|(begins, ends)| (*begins, *ends));
            for (begins, ends) in begins_before.into_iter().chain(within) {
                let of = |byte: u64| at + byte.clamp(extent.first, end) - extent.first;
                match found.last_mut() {
                    Some(last) if last.1 == of(begins) => last.1 = of(ends), // where two extents meet
                    _ => found.push((of(begins), of(ends))),
                }
            }
            at += extent.bytes;
        }
        let shift = namespace.shift();
        found.iter().map(|(begins, ends)| Blocks { first: begins >> shift, count: (ends - begins) >> shift }).collect()
    }
}
