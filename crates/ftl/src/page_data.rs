//! The bytes of pages: on flash, in RAM, and in transfer.

use crate::Violation;
use flashwright_nand::{BlockId, Geometry, Lpn, Ppn};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The bytes of a page. They are immutable, so that a copy costs only a reference count.
///
/// ```
/// # use flashwright_ftl::PageBytes;
/// let page = PageBytes::of(&[0, 7]);
/// assert_eq!((page.get(), PageBytes::of(&[0, 0]).get()), (Some(&[0, 7][..]), None));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageBytes(Option<Arc<[u8]>>);

impl PageBytes {
    /// A page of zeros, of any size.
    pub const ZEROS: Self = Self(None);

    /// A page that holds `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        // By words: a search for a byte that is not 0 would go byte by byte.
        let (words, rest) = bytes.as_chunks::<16>();
        let zeros = words.iter().all(|word| u128::from_ne_bytes(*word) == 0) && rest.iter().all(|byte| *byte == 0);
        Self((!zeros).then(|| Arc::from(bytes)))
    }

    /// The bytes; none if all are 0.
    #[must_use]
    pub fn get(&self) -> Option<&[u8]> {
        self.0.as_deref()
    }

    /// Copies the bytes from `offset` on.
    ///
    /// # Panics
    /// If the page ends before `into` is full.
    pub fn copy_to(&self, offset: usize, into: &mut [u8]) {
        match self.get() {
            Some(bytes) => into.copy_from_slice(&bytes[offset..offset + into.len()]),
            None => into.fill(0),
        }
    }
}

impl Serialize for PageBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

/// Copies that share their bytes get their own bytes when they are saved and loaded.
impl<'de> Deserialize<'de> for PageBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Option::<Vec<u8>>::deserialize(deserializer)?.map(Arc::from)))
    }
}

/// Pages of consecutive numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Run {
    first: u32,
    pages: Vec<PageBytes>,
}

impl Run {
    fn get_mut(&mut self, lpn: Lpn) -> Option<&mut PageBytes> {
        self.pages.get_mut(lpn.0.checked_sub(self.first)? as usize)
    }
}

/// The bytes of all pages.
///
/// ```text
///  host ─► incoming ─┬─► in_ram ─┬─► on_flash ─► outgoing ─► host
///                    │   padded ─┤   (copies share bytes;
///                    └───────────┘    an erase drops them)
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PageData {
    pages_per_block: u32,
    /// By block; empty if all its pages are zeros.
    on_flash: Vec<Vec<PageBytes>>,
    in_ram: BTreeMap<u32, PageBytes>,
    /// Data of the host's current write.
    #[serde(skip)]
    incoming: Run,
    /// Data read to complete blocks that leave the RAM.
    #[serde(skip)]
    padded: Vec<(Lpn, PageBytes)>,
    /// Data returned to the host's current read.
    #[serde(skip)]
    outgoing: Run,
}

impl PageData {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self {
            pages_per_block: geometry.pages_per_block(),
            on_flash: vec![Vec::new(); geometry.blocks() as usize],
            in_ram: BTreeMap::new(),
            incoming: Run::default(),
            padded: Vec::new(),
            outgoing: Run::default(),
        }
    }

    // --- the host ---

    /// Sets the pages of the host's next write from `first` on; any other page that it writes holds zeros.
    pub fn brings(&mut self, first: Lpn, pages: Vec<PageBytes>) {
        self.incoming = Run { first: first.0, pages };
    }

    /// Announces the host's next read: this many pages from `first` on.
    pub fn wants(&mut self, first: Lpn, pages: u32) {
        self.outgoing = Run { first: first.0, pages: vec![PageBytes::ZEROS; pages as usize] };
    }

    /// The data that this read returned.
    #[must_use]
    pub fn gave(&mut self) -> Vec<PageBytes> {
        std::mem::take(&mut self.outgoing).pages
    }

    pub(crate) fn delivers(&mut self, lpn: Lpn, ppn: Ppn) {
        let held = self.on_flash(ppn).clone();
        if let Some(page) = self.outgoing.get_mut(lpn) {
            *page = held;
        }
    }

    pub(crate) fn delivers_from_ram(&mut self, lpn: Lpn) {
        if let Some(page) = self.outgoing.get_mut(lpn) {
            page.clone_from(self.in_ram.get(&lpn.0).unwrap_or(&PageBytes::ZEROS));
        }
    }

    // --- RAM ---

    pub(crate) fn ram_takes(&mut self, lpn: Lpn) {
        let page = self.incoming.get_mut(lpn).map(std::mem::take).unwrap_or_default();
        self.in_ram.insert(lpn.0, page);
    }

    pub(crate) fn ram_loads(&mut self, lpn: Lpn, from: Ppn) {
        self.in_ram.insert(lpn.0, self.on_flash(from).clone());
    }

    pub(crate) fn ram_lets_go(&mut self, lpn: Lpn) {
        self.in_ram.remove(&lpn.0);
    }

    /// The content of a page in RAM, if RAM holds it.
    #[must_use]
    pub fn in_ram(&self, lpn: Lpn) -> Option<&PageBytes> {
        self.in_ram.get(&lpn.0)
    }

    pub(crate) fn pads(&mut self, lpn: Lpn, from: Ppn) {
        self.padded.push((lpn, self.on_flash(from).clone()));
    }

    pub(crate) fn padding_done(&mut self) {
        self.padded.clear();
    }

    // --- flash ---

    /// The content of a flash page.
    #[must_use]
    pub fn on_flash(&self, ppn: Ppn) -> &PageBytes {
        let (block, offset) = (ppn.0 / self.pages_per_block, ppn.0 % self.pages_per_block);
        self.on_flash[block as usize].get(offset as usize).unwrap_or(&PageBytes::ZEROS)
    }

    /// Programs an erased page with data that leaves RAM, with padding, or, if `past_ram`, with data that the host just
    /// wrote.
    pub(crate) fn programmed(&mut self, ppn: Ppn, lpn: Lpn, past_ram: bool) {
        let page = if past_ram {
            self.incoming.get_mut(lpn).map(std::mem::take)
        } else {
            let padded = || self.padded.iter().find(|(padded, _)| *padded == lpn).map(|(_, page)| page.clone());
            self.in_ram.get(&lpn.0).cloned().or_else(padded)
        };
        self.put(ppn, page.unwrap_or_default());
    }

    pub(crate) fn copied(&mut self, from: Ppn, to: Ppn) {
        self.put(to, self.on_flash(from).clone());
    }

    fn put(&mut self, ppn: Ppn, page: PageBytes) {
        if page.get().is_none() {
            return; // it reads like an erased page
        }
        let (block, offset) = (ppn.0 / self.pages_per_block, ppn.0 % self.pages_per_block);
        let block = &mut self.on_flash[block as usize];
        if block.is_empty() {
            block.resize(self.pages_per_block as usize, PageBytes::ZEROS);
        }
        block[offset as usize] = page;
    }

    pub(crate) fn erased(&mut self, block: BlockId) {
        self.on_flash[block.index()] = Vec::new();
    }

    /// Power was lost: nothing is left but what is found.
    pub(crate) fn forget(&mut self, geometry: &Geometry) {
        *self = Self::new(geometry);
    }

    /// A page with this content was found after a loss of power.
    pub(crate) fn found(&mut self, ppn: Ppn, page: PageBytes) {
        self.put(ppn, page);
    }

    pub(crate) fn audit(&self, is_programmed: impl Fn(Ppn) -> bool, violations: &mut Vec<Violation>) {
        for (block, pages) in (0..).zip(&self.on_flash) {
            for (page, ppn) in pages.iter().zip((block * self.pages_per_block..).map(Ppn)) {
                if page.get().is_some() && !is_programmed(ppn) {
                    violations.push(Violation(format!("page {} holds bytes but is erased", ppn.0)));
                }
            }
        }
    }
}
