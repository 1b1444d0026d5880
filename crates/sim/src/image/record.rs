//! What the slots hold, and the checksums over it.
//!
//! A slot begins with a length and ends with a checksum, which depends on the slot's place and on the header. So a slot that lies in
//! another place, or that comes from the image of another drive, is damaged too. A slot of zeros was never written.

use flashwright_ftl::PageBytes;
use flashwright_ftl::durable::{PageState, Programmed, Record};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The slot of a block: what was known of it at the last sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// Its erases, those cut short included. A page of an earlier generation is erased.
    pub generation: u32,
    /// The last epoch that the sync covered.
    pub epoch: u64,
    /// Slots of pages of this generation up to that epoch, and the sum of their checksums.
    pub pages: u32,
    /// See `pages`.
    pub digest: u64,
    /// Whether the drive has taken it out of use.
    pub is_retired: bool,
    /// Whether its last erase was cut short.
    pub is_torn: bool,
    /// Whether it was erased after that sync: what it holds may be gone, or overwritten by the next generation.
    pub is_dying: bool,
}

/// What the owner of the drive keeps with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRecord {
    /// How often something was kept.
    pub number: u64,
    pub bytes: Vec<u8>,
}

/// Where the content of a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// Nowhere: all bytes are 0, or none are kept.
    Zeros,
    /// In its place.
    Bytes,
    /// In its place and the second one: a record of the journal that takes so many bytes.
    Journal(u32),
}

/// The slot of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRecord {
    /// Erases of its block before it was programmed.
    pub generation: u32,
    /// The epoch in which it was written.
    pub epoch: u64,
    pub state: PageState,
    pub content: Content,
    /// The checksum of its content.
    pub sum: u64,
    /// The page, without its content.
    pub page: Programmed,
}

impl PageRecord {
    /// The slot of a page, and its content.
    ///
    /// # Errors
    /// If a record of the journal takes more than two pages.
    pub fn of(
        (generation, epoch): (u32, u64),
        state: PageState,
        page: &Programmed,
        page_bytes: u64,
        journal: &mut Vec<u8>,
    ) -> Result<Self, String> {
        let mut bare = page.clone();
        let (bytes, record) = (std::mem::take(&mut bare.bytes), bare.record.take());
        journal.clear();
        let (content, sum) = match (bytes.get(), record) {
            (_, Some(record)) => {
                *journal = postcard::to_extend(&*record, std::mem::take(journal)).map_err(|error| error.to_string())?;
                if journal.len() as u64 > 2 * page_bytes {
                    return Err(format!("a record of the journal takes {} bytes, two pages at most", journal.len()));
                }
                let length = u32::try_from(journal.len()).expect("two pages fit 32 bits");
                (Content::Journal(length), xxh3_64(journal))
            }
            (Some(bytes), None) => (Content::Bytes, xxh3_64(bytes)),
            (None, None) => (Content::Zeros, 0),
        };
        Ok(Self { generation, epoch, state, content, sum, page: bare })
    }

    /// The page with this content; none if that is not what was written.
    pub fn page_with(mut self, content: &[u8]) -> Option<Programmed> {
        if self.content != Content::Zeros && xxh3_64(content) != self.sum {
            return None;
        }
        match self.content {
            Content::Zeros => {}
            Content::Bytes => self.page.bytes = PageBytes::of(content),
            Content::Journal(_) => self.page.record = Some(Box::new(postcard::from_bytes(content).ok()?)),
        }
        Some(self.page)
    }
}

/// What the checksum of a slot depends on beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The checksum of the header.
    pub image: u64,
    /// The slot's offset in the file.
    pub offset: u64,
}

impl Place {
    fn sum(self, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.image ^ self.offset.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }
}

const LENGTH: usize = 2;
const SUM: usize = 8;

/// Fills a slot, and returns its checksum.
///
/// # Errors
/// If it is too small.
pub fn seal(value: &impl Serialize, slot: &mut [u8], place: Place) -> Result<u64, String> {
    slot.fill(0);
    let end = slot.len() - SUM;
    let used = postcard::to_slice(value, &mut slot[LENGTH..end]).map_err(|error| error.to_string())?.len();
    slot[..LENGTH].copy_from_slice(&u16::try_from(used).expect("slots are small").to_le_bytes());
    let sum = place.sum(&slot[..end]);
    slot[end..].copy_from_slice(&sum.to_le_bytes());
    Ok(sum)
}

/// What a slot holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot<T> {
    /// It was never written.
    Empty,
    /// What was written, and its checksum.
    Holds(T, u64),
    /// Something else.
    Damaged,
}

/// Reads a slot.
pub fn unseal<T: DeserializeOwned>(slot: &[u8], place: Place) -> Slot<T> {
    let (bytes, sum) = slot.split_at(slot.len() - SUM);
    if slot.iter().all(|byte| *byte == 0) {
        return Slot::Empty;
    }
    let sum = u64::from_le_bytes(sum.try_into().expect("a checksum has 8 bytes"));
    let used = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    if sum != place.sum(bytes) || used > bytes.len() - LENGTH {
        return Slot::Damaged;
    }
    postcard::from_bytes(&bytes[LENGTH..LENGTH + used]).map_or(Slot::Damaged, |value| Slot::Holds(value, sum))
}

/// A number that changes whenever what is stored of a page or of the journal gets other fields, so that an image of another version is
/// not misread. New kinds of records at the end of the list leave it as it is.
pub fn shape() -> u64 {
    let page = Programmed { owner: 300, sequence: 301, version: 302, stamp: 303, ..Programmed::default() };
    let (state, content) = (PageState::Programmed, Content::Journal(304));
    let record = PageRecord { generation: 305, epoch: 306, state, content, sum: 307, page };
    let snapshot =
        Record::Snapshot { sequence: 308, is_exact: true, part: 309, parts: 310, first_word: 311, words: vec![312] };
    let trims = Record::Trims(vec![(313, 314, 315)]);
    let block = BlockRecord { generation: 316, epoch: 317, pages: 318, digest: 319, ..BlockRecord::default() };
    xxh3_64(&postcard::to_stdvec(&(record, snapshot, trims, block)).expect("records can be written"))
}

#[cfg(test)]
mod tests {
    use super::super::layout::{BLOCK_SLOT, PAGE_SLOT};
    use super::*;

    const PLACE: Place = Place { image: 7, offset: 4096 };

    #[test]
    fn the_largest_records_fit_their_slots() {
        let page = Programmed {
            owner: u32::MAX,
            sequence: u64::MAX,
            version: u64::MAX,
            stream: u8::MAX,
            stamp: u32::MAX,
            ..Programmed::default()
        };
        let (generation, epoch, sum) = (u32::MAX, u64::MAX, u64::MAX);
        let (state, content) = (PageState::Torn, Content::Journal(u32::MAX));
        let mut slot = [0; PAGE_SLOT];
        let record = PageRecord { generation, epoch, state, content, sum, page };
        let sum = seal(&record, &mut slot, PLACE).unwrap();
        assert_eq!(unseal(&slot, PLACE), Slot::Holds(record, sum));
        let block = BlockRecord { generation, epoch, pages: u32::MAX, digest: u64::MAX, ..BlockRecord::default() };
        assert!(seal(&block, &mut [0; BLOCK_SLOT], PLACE).is_ok());
    }

    #[test]
    fn a_slot_in_another_place_or_with_a_flipped_bit_is_damaged() {
        let mut slot = [0; BLOCK_SLOT];
        seal(&BlockRecord { generation: 3, ..BlockRecord::default() }, &mut slot, PLACE).unwrap();
        for other in [Place { image: 8, ..PLACE }, Place { offset: 4160, ..PLACE }] {
            assert_eq!(unseal::<BlockRecord>(&slot, other), Slot::Damaged);
        }
        for bit in 0..8 * BLOCK_SLOT {
            let mut damaged = slot;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unseal::<BlockRecord>(&damaged, PLACE), Slot::Damaged, "bit {bit}");
        }
        assert_eq!(unseal::<BlockRecord>(&[0; BLOCK_SLOT], PLACE), Slot::Empty);
    }

    #[test]
    fn a_record_of_the_journal_may_take_more_than_a_page() {
        let words = vec![u64::MAX; 64];
        let record = Record::Snapshot { sequence: 1, is_exact: true, part: 0, parts: 1, first_word: 0, words };
        let page = Programmed { record: Some(Box::new(record)), ..Programmed::default() };
        let mut content = Vec::new();
        let found = PageRecord::of((0, 0), PageState::Programmed, &page, 512, &mut content).unwrap();
        assert!(content.len() > 512, "words with all bits set take 10 bytes each");
        assert_eq!(found.clone().page_with(&content), Some(page.clone()));
        content[9] ^= 1;
        assert_eq!(found.page_with(&content), None);
        assert!(PageRecord::of((0, 0), PageState::Programmed, &page, 256, &mut content).is_err());
    }
}
