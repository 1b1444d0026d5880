//! What a drive tells of blocks that may not be readable: the list that Get LBA Status returns (NVM Command Set 1.1, section 4.2.1), and log
//! page 0Eh (section 4.1.4.5).

use super::put;

/// The log page.
pub const PAGE: u8 = 0x0e;
/// The bit of OAES, and of the feature for events that are announced.
pub const NOTICES: u32 = 1 << 13;
/// What a notice tells: there are such blocks.
pub const ALERT: u8 = 0x05;
/// The feature of how often a host is told.
pub const INTERVAL: u8 = 0x15;
/// Action types: all such blocks after a scan, and those that are known.
pub const SCAN: u8 = 0x10;
/// See [`SCAN`].
pub const TRACKED: u8 = 0x11;
/// Ranges that the log page names of a namespace; of one with more it says that all of it should be looked at.
pub const RANGES_MAX: usize = 256;
/// Bytes of the header of a list, of a descriptor, and of an element and a range of the page.
const HEADER: usize = 8;
const ENTRY: usize = 16;
/// Status: reads may fail, and a host has marked them.
const MARKED: u8 = 1 | 1 << 1;
/// Completion conditions: there are more than fit, or these are all.
const INCOMPLETE: u8 = 1;
const COMPLETE: u8 = 2;

/// Logical blocks in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// The first one.
    pub first: u64,
    /// How many, at least one.
    pub count: u64,
}

impl Blocks {
    /// An entry: the first block, and how many in 32 bits that count from 0.
    fn entry(self, status: u8) -> [u8; ENTRY] {
        let mut out = [0; ENTRY];
        put(&mut out, 0, &self.first.to_le_bytes());
        put(&mut out, 8, &u32::try_from(self.count - 1).unwrap_or(u32::MAX).to_le_bytes());
        out[13] = status;
        out
    }

    /// The same in pieces that an entry can tell of.
    fn pieces(self) -> impl Iterator<Item = Self> {
        const MOST: u64 = 1 << 32;
        let count_from = move |at: u64| (self.count - at).min(MOST);
        (0..self.count.div_ceil(MOST))
            .map(move |piece| Self { first: self.first + piece * MOST, count: count_from(piece * MOST) })
    }
}

/// The list of Get LBA Status in so many bytes, which are zeros behind it.
#[must_use]
pub fn list(marked: &[Blocks], bytes: usize) -> Vec<u8> {
    let room = bytes.saturating_sub(HEADER) / ENTRY;
    let mut entries = marked.iter().flat_map(|blocks| blocks.pieces());
    let mut out = vec![0; HEADER];
    entries.by_ref().take(room).for_each(|blocks| out.extend(blocks.entry(MARKED)));
    let count = (out.len() - HEADER) / ENTRY;
    put(&mut out, 0, &u32::try_from(count).expect("a transfer has room for few").to_le_bytes());
    out[4] = if entries.next().is_some() { INCOMPLETE } else { COMPLETE };
    out.resize(bytes, 0);
    out
}

/// The log page: by namespace, what is marked of it. `generation` grows when that changes.
#[must_use]
pub fn page(generation: u16, elements: &[(u32, Vec<Blocks>)]) -> Vec<u8> {
    let mut out = vec![0; ENTRY];
    let mut sum = 0u64;
    for (nsid, marked) in elements {
        let ranges: Vec<Blocks> = marked.iter().flat_map(|blocks| blocks.pieces()).collect();
        sum += marked.iter().map(|blocks| blocks.count).sum::<u64>();
        let names_them = ranges.len() <= RANGES_MAX;
        let mut element = [0; ENTRY];
        put(&mut element, 0, &nsid.to_le_bytes());
        let count = if names_them { u32::try_from(ranges.len()).expect("few ranges") } else { u32::MAX };
        put(&mut element, 4, &count.to_le_bytes());
        element[8] = TRACKED;
        out.extend(element);
        ranges.iter().filter(|_| names_them).for_each(|blocks| out.extend(blocks.entry(0)));
    }
    let length = u32::try_from(out.len()).expect("64 namespaces of 256 ranges at most");
    put(&mut out, 0, &length.to_le_bytes());
    put(&mut out, 4, &u32::try_from(elements.len()).expect("64 namespaces at most").to_le_bytes());
    put(&mut out, 8, &u32::try_from(sum).unwrap_or(u32::MAX - 1).to_le_bytes());
    put(&mut out, 14, &generation.to_le_bytes());
    out
}
