//! How writes gather in blocks: distinct pages written of a block within a window of page writes.
//!
//! This decides how many pages a buffer of blocks destages at once, and how many blocks a merge touches.

/// Bytes of the blocks.
const BLOCKS: [u64; 4] = [64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Page writes of the windows: 1, 16 and 256 MiB.
const WINDOWS: [usize; 3] = [256, 4096, 65536];
const PAGE: u64 = 4096;

/// How writes gather in blocks.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Gathering {
    /// Each window with each block; windows longer than the trace are left out.
    pub found: Vec<Gathered>,
}

/// One window with one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Gathered {
    /// Page writes of the window.
    pub window_pages: u64,
    /// Bytes of the block.
    pub block_bytes: u64,
    /// Windows, one after the other.
    pub windows: u64,
    /// Distinct pages written over distinct blocks written, all windows together.
    pub pages_per_block: f64,
}

#[derive(Default)]
struct Window {
    pages: Vec<u64>,
    windows: u64,
    distinct: u64,
    blocks: [u64; BLOCKS.len()],
}

#[derive(Default)]
pub(crate) struct Collector([Window; WINDOWS.len()]);

impl Collector {
    /// Takes writes of the pages from `first` to `last`.
    pub(crate) fn add(&mut self, first: u64, last: u64) {
        for (window, length) in self.0.iter_mut().zip(WINDOWS) {
            let (mut at, whole) = (first, length as u64);
            while at <= last {
                if window.pages.is_empty() && last - at >= whole {
                    window.one_run(at, whole);
                    at += whole;
                    continue;
                }
                window.pages.push(at);
                at += 1;
                if window.pages.len() == length {
                    window.close();
                }
            }
        }
    }

    #[allow(clippy::cast_precision_loss)] // a ratio
    pub(crate) fn finish(self) -> Gathering {
        let mut found = Vec::new();
        for (window, length) in self.0.into_iter().zip(WINDOWS).filter(|(window, _)| window.windows > 0) {
            for (block_bytes, blocks) in BLOCKS.into_iter().zip(window.blocks) {
                found.push(Gathered {
                    window_pages: length as u64,
                    block_bytes,
                    windows: window.windows,
                    pages_per_block: window.distinct as f64 / blocks as f64,
                });
            }
        }
        Gathering { found }
    }
}

impl Window {
    /// A window of so many pages in a row.
    fn one_run(&mut self, first: u64, pages: u64) {
        self.windows += 1;
        self.distinct += pages;
        for (count, bytes) in self.blocks.iter_mut().zip(BLOCKS) {
            let block = bytes / PAGE;
            *count += (first + pages - 1) / block - first / block + 1;
        }
    }

    fn close(&mut self) {
        self.pages.sort_unstable();
        self.pages.dedup();
        self.windows += 1;
        self.distinct += self.pages.len() as u64;
        for (count, bytes) in self.blocks.iter_mut().zip(BLOCKS) {
            let mut last = None;
            for page in &self.pages {
                let block = page / (bytes / PAGE);
                *count += u64::from(last != Some(block));
                last = Some(block);
            }
        }
        self.pages.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_writes_gather_as_their_pages_do() {
        let (mut long, mut short) = (Collector::default(), Collector::default());
        for (first, pages) in [(5, 3), (1000, 300), (77, 100_000), (3, 65_536), (9, 1), (12_345, 70_001)] {
            long.add(first, first + pages - 1);
            (first..first + pages).for_each(|page| short.add(page, page));
        }
        assert_eq!(long.finish(), short.finish());
    }
}
