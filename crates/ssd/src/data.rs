//! The bytes of requests: data of writes for the pages, and data of the pages for reads.

use crate::ssd::Ssd;
use flashwright_block::{BlockDevice, HoldsData, IoError, Request, RequestClass, RequestKind, SECTOR_BYTES, Tag};
use flashwright_ftl::{Ftl, PageBytes};
use flashwright_nand::Lpn;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes of requests that have not taken effect, and of reads whose data were not taken yet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RequestData {
    /// The request that is taking effect.
    pub at_hand: Option<u64>,
    /// By tag; a write leaves when it takes effect.
    writes: BTreeMap<u64, Vec<u8>>,
    /// By tag; nothing before the read takes effect.
    reads: BTreeMap<u64, Option<ReadData>>,
}

/// The data of a read.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ReadData {
    page_bytes: usize,
    /// Its offset in the first page.
    offset: usize,
    length: usize,
    pages: Vec<PageBytes>,
}

impl RequestData {
    fn forget(&mut self, tag: u64) {
        self.writes.remove(&tag);
        self.reads.remove(&tag);
    }
}

impl Ssd {
    /// As [`Ssd::translate`], with bytes.
    #[cold]
    pub(crate) fn translate_data(&mut self, request: &Request) -> Result<(), Box<IoError>> {
        let tag = self.data.as_mut().and_then(|data| data.at_hand.take());
        match request.kind.class() {
            RequestClass::Write if request.sectors > 0 => {
                let data = self.data.as_mut().zip(tag).and_then(|(data, tag)| data.writes.remove(&tag));
                self.bring(request, data.as_deref());
                let result = self.translate_pages::<false, true>(request);
                if let Some(held) = self.translation.flash.data_mut() {
                    held.brings(Lpn(0), Vec::new()); // left by a failed write
                }
                result
            }
            RequestClass::Read if request.sectors > 0 => {
                let wanted = |tag: &u64| self.data.as_ref().is_some_and(|data| data.reads.contains_key(tag));
                let Some(tag) = tag.filter(wanted) else { return self.translate_pages::<false, true>(request) };
                let (first, pages) = self.pages_of(request);
                if let Some(held) = self.translation.flash.data_mut() {
                    held.wants(Lpn(first), pages);
                }
                let result = self.translate_pages::<false, true>(request);
                let page_bytes = self.page_bytes();
                let given = ReadData {
                    page_bytes,
                    offset: byte_of(request.first_sector) - first as usize * page_bytes,
                    length: request.data_bytes(),
                    pages: self.translation.flash.data_mut().map(|held| held.gave()).unwrap_or_default(),
                };
                if let Some(data) = &mut self.data {
                    data.reads.insert(tag, Some(given));
                }
                result
            }
            _ => self.translate_pages::<false, true>(request),
        }
    }

    /// Overwrites the content of its pages with the data of a write, or with zeros.
    fn bring(&mut self, request: &Request, data: Option<&[u8]>) {
        let (first, pages) = self.pages_of(request);
        let page_bytes = self.page_bytes();
        let (start, end) = (byte_of(request.first_sector), byte_of(request.end_sector()));
        let mut page = Vec::new();
        let brought = (first..first + pages).map(|lpn| {
            let at = lpn as usize * page_bytes;
            let (from, to) = (start.max(at), end.min(at + page_bytes));
            let new = data.map(|data| &data[from - start..to - start]);
            if to - from == page_bytes {
                return new.map_or(PageBytes::ZEROS, PageBytes::of);
            }
            page.resize(page_bytes, 0);
            self.held(Lpn(lpn)).copy_to(0, &mut page);
            match new {
                Some(new) => page[from - at..to - at].copy_from_slice(new),
                None => page[from - at..to - at].fill(0),
            }
            PageBytes::of(&page)
        });
        let brought = brought.collect();
        if let Some(held) = self.translation.flash.data_mut() {
            held.brings(Lpn(first), brought);
        }
    }

    /// The current content of a page, in RAM or on flash.
    fn held(&self, lpn: Lpn) -> PageBytes {
        let Some(data) = self.translation.flash.data() else { return PageBytes::ZEROS };
        let on_flash = || self.scheme().lookup(lpn, &self.translation.flash).map(|ppn| data.on_flash(ppn));
        data.in_ram(lpn).or_else(on_flash).cloned().unwrap_or_default()
    }

    fn page_bytes(&self) -> usize {
        byte_of(self.sectors_per_page())
    }

    /// A request failed: drops its data.
    #[cold]
    pub(crate) fn forget_data(&mut self, tag: u64) {
        if let Some(data) = &mut self.data {
            data.forget(tag);
        }
    }
}

impl HoldsData for Ssd {
    fn submit_with(&mut self, request: Request, data: &[u8]) -> Result<Tag, IoError> {
        request.check_data(data);
        let tag = self.next_tag();
        let Some(held) = &mut self.data else { return Err(IoError::KeepsNoData) };
        if request.kind.class() == RequestClass::Write {
            held.writes.insert(tag, data.to_vec());
        } else if request.kind == RequestKind::Read && request.sectors > 0 {
            held.reads.insert(tag, None);
        }
        self.submit(request).inspect_err(|_| self.forget_data(tag))
    }

    fn take_data(&mut self, tag: Tag, data: &mut [u8]) -> bool {
        let Some(held) = &mut self.data else { return false };
        let Some(ReadData { page_bytes, offset, length, pages }) = held.reads.remove(&tag.0).flatten() else {
            return false;
        };
        assert!(data.len() == length, "a read of {length} bytes was asked for {}", data.len());
        let (mut at, mut rest) = (offset, data);
        for page in &pages {
            let (part, others) = rest.split_at_mut(rest.len().min(page_bytes - at));
            page.copy_to(at, part);
            (at, rest) = (0, others);
        }
        true
    }
}

/// The byte at which a sector begins.
fn byte_of(sector: u64) -> usize {
    usize::try_from(sector * SECTOR_BYTES).expect("sizes of drives fit the machine's addresses")
}
