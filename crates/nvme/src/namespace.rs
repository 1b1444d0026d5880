//! Namespaces: ranges of the drive's one logical space, each with a format.
//!
//! ```text
//!   drive      |........|............|......|...............|
//!   namespace       1         2         1         free        extents begin and end at granules
//! ```
//!
//! A namespace is a list of at most [`EXTENTS_MAX`] extents, so that all free space can be used however it lies. One that fits a
//! hole gets the smallest such hole; otherwise it gets the largest holes. Space is never moved: what a range holds stays where it
//! is. A namespace of one extent, which is the usual one, is found with one comparison; I/O is split where extents meet.
//!
//! What may hold data and belongs to no namespace is *erasing* until the drive has deallocated it durably. The table names such
//! ranges too, so that a killed process does not leave old data to a new namespace.

use crate::wire::{Status, put, u16_at, u32_at, u64_at};

/// Namespaces at once, and the largest identifier. A controller keeps those that it has in the bits of a word.
pub const NAMESPACES_MAX: u32 = 64;
/// Extents of a namespace.
pub const EXTENTS_MAX: usize = 8;
/// Ranges that are still to be deallocated: with all namespaces, the table fits 20 KiB.
const ERASING_MAX: usize = 512;
/// Formats of a logical block, as powers of two of bytes.
pub const FORMATS: [u8; 2] = [9, 12];

/// A range of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first byte.
    pub first: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Extent {
    fn end(self) -> u64 {
        self.first + self.bytes
    }
}

/// What hosts see as a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Its identifier.
    pub id: u32,
    /// A number that no other namespace, and no other format of this one, ever had. A request for the drive names it, so that one
    /// that was not begun when the namespace was deleted or formatted never is.
    pub serial: u32,
    /// Which of [`FORMATS`] it has.
    pub format: u8,
    /// Whether several controllers may have it.
    pub is_shared: bool,
    /// Whether controllers that come have it: one that there is or was is attached.
    pub is_attached: bool,
    /// Bytes that hosts can address.
    pub bytes: u64,
    /// Never the same for two namespaces: its NGUID, and its UUID.
    pub uuid: [u8; 16],
    /// Where the drive places data by handle, the reclaim unit handle of each placement identifier, from 0 on.
    pub handles: Vec<u8>,
    /// Whether the controller chose them.
    pub is_assigned: bool,
    /// Where it lies, in the order of its blocks. The last one may be longer than its blocks need.
    extents: Vec<Extent>,
}

impl Namespace {
    /// Bytes of a logical block, as a power of two.
    #[must_use]
    pub fn shift(&self) -> u8 {
        FORMATS[usize::from(self.format)]
    }

    /// Logical blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.bytes >> self.shift()
    }

    /// Where it lies.
    #[must_use]
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Bytes of the drive that it takes.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.extents.iter().map(|extent| extent.bytes).sum()
    }

    /// Which of its bytes a byte of the drive is; none if it is none of them.
    fn offset_of(&self, byte: u64) -> Option<u64> {
        let mut begins = 0;
        self.extents.iter().find_map(|extent| {
            let found = (extent.first..extent.end()).contains(&byte).then(|| begins + byte - extent.first);
            begins += extent.bytes;
            found.filter(|offset| *offset < self.bytes)
        })
    }

    /// Where a range of it lies on the drive.
    pub fn locate(&self, first: u64, bytes: u64) -> impl Iterator<Item = Extent> {
        let mut begins = 0;
        self.extents.iter().filter_map(move |extent| {
            let (from, to) = (first.max(begins), (first + bytes).min(begins + extent.bytes));
            let found = (from < to).then(|| Extent { first: extent.first + from - begins, bytes: to - from });
            begins += extent.bytes;
            found
        })
    }
}

/// All namespaces of a drive.
#[derive(Clone, Debug)]
pub struct Namespaces {
    /// By identifier, from 1 on.
    all: Vec<Option<Namespace>>,
    /// Bytes of the drive.
    capacity: u64,
    /// Namespaces begin and end at multiples of this: pages of the flash, and blocks of every format.
    granule: u64,
    /// Serial numbers that were given.
    serials: u32,
    /// What the drive is still to deallocate.
    pub(crate) erasing: Vec<Extent>,
}

/// What a namespace is to be like.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Logical blocks.
    pub blocks: u64,
    /// Which of [`FORMATS`].
    pub format: u8,
    /// Whether several controllers may have it.
    pub is_shared: bool,
}

impl Namespaces {
    /// One namespace that takes the whole drive.
    #[must_use]
    pub fn whole(capacity: u64, page_bytes: u64, format: u8, uuid: [u8; 16]) -> Self {
        let page = page_bytes.max(1);
        let largest = 1u64 << FORMATS[FORMATS.len() - 1];
        let granule = (1..=largest).map(|pages| pages * page).find(|bytes| bytes.is_multiple_of(largest));
        let extents = vec![Extent { first: 0, bytes: capacity }];
        let (is_shared, is_attached) = (true, true);
        let (handles, is_assigned) = (Vec::new(), false);
        let one = Namespace {
            id: 1,
            serial: 1,
            format,
            is_shared,
            is_attached,
            bytes: capacity,
            uuid,
            handles,
            is_assigned,
            extents,
        };
        Self {
            all: vec![Some(one)],
            capacity,
            granule: granule.unwrap_or(largest * page),
            serials: 1,
            erasing: Vec::new(),
        }
    }

    /// A namespace; none if no namespace has that identifier.
    #[must_use]
    pub fn get(&self, id: u32) -> Option<&Namespace> {
        self.all.get(id.wrapping_sub(1) as usize)?.as_ref()
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut Namespace> {
        self.all.get_mut(id.wrapping_sub(1) as usize)?.as_mut()
    }

    /// All of them, by identifier.
    pub fn iter(&self) -> impl Iterator<Item = &Namespace> {
        self.all.iter().flatten()
    }

    /// The same, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Namespace> {
        self.all.iter_mut().flatten()
    }

    /// The namespace that a byte of the drive belongs to, and which byte of the namespace that is.
    pub(crate) fn holder(&self, byte: u64) -> Option<(&Namespace, u64)> {
        self.iter().find_map(|namespace| Some((namespace, namespace.offset_of(byte)?)))
    }

    /// Whether one has a serial number.
    #[must_use]
    pub fn has_serial(&self, serial: u32) -> bool {
        self.iter().any(|namespace| namespace.serial == serial)
    }

    /// Bytes in which sizes should be given.
    #[must_use]
    pub fn granule(&self) -> u64 {
        self.granule
    }

    /// Bytes of the drive that a namespace can still get.
    #[must_use]
    pub fn unallocated(&self) -> u64 {
        self.holes().iter().map(|hole| hole.bytes).sum()
    }

    /// Bytes that a namespace takes.
    #[must_use]
    pub fn needed(&self, wanted: &Wanted) -> Option<u64> {
        wanted.blocks.checked_mul(1 << FORMATS[usize::from(wanted.format)])?.checked_next_multiple_of(self.granule)
    }

    /// Creates a namespace, which no controller has. Returns its identifier.
    ///
    /// # Errors
    /// [`Status::INSUFFICIENT_CAPACITY`], [`Status::NO_IDENTIFIER`].
    pub fn create(&mut self, wanted: &Wanted, uuid: impl FnOnce(u32) -> [u8; 16]) -> Result<u32, Status> {
        let needed = self.needed(wanted).ok_or(Status::INSUFFICIENT_CAPACITY)?;
        let place = self.all.iter().position(Option::is_none).unwrap_or(self.all.len());
        let id = u32::try_from(place + 1).ok().filter(|id| *id <= NAMESPACES_MAX).ok_or(Status::NO_IDENTIFIER)?;
        let extents = self.allocate(needed).ok_or(Status::INSUFFICIENT_CAPACITY)?;
        let serial = self.next_serial();
        let &Wanted { blocks, format, is_shared } = wanted;
        let bytes = blocks << FORMATS[usize::from(format)];
        let uuid = uuid(serial);
        let (handles, is_assigned) = (Vec::new(), false);
        let made =
            Namespace { id, serial, format, is_shared, is_attached: false, bytes, uuid, handles, is_assigned, extents };
        if place == self.all.len() {
            self.all.push(None);
        }
        self.all[place] = Some(made);
        Ok(id)
    }

    /// Deletes a namespace. What it held, which is returned, is to be deallocated.
    pub fn delete(&mut self, id: u32) -> Vec<Extent> {
        let gone = self.all.get_mut(id.wrapping_sub(1) as usize).and_then(Option::take);
        let used = self.all.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        self.all.truncate(used);
        let extents = gone.map_or(Vec::new(), |gone| gone.extents);
        self.erase(&extents);
        extents
    }

    /// Gives a namespace another format. What it held, which is returned, is to be deallocated.
    pub fn format(&mut self, id: u32, format: u8) -> Vec<Extent> {
        let serial = self.next_serial();
        let Some(namespace) = self.get_mut(id) else { return Vec::new() };
        (namespace.serial, namespace.format) = (serial, format);
        let extents = namespace.extents.clone();
        self.erase(&extents);
        extents
    }

    /// Whether the table has room for what one more namespace held.
    #[must_use]
    pub fn can_erase(&self) -> bool {
        self.erasing.len() + EXTENTS_MAX <= ERASING_MAX
    }

    /// Ranges are to be deallocated. Those that meet are one.
    pub(crate) fn erase(&mut self, extents: &[Extent]) {
        self.erasing.extend(extents);
        self.erasing.sort_unstable_by_key(|extent| extent.first);
        self.erasing.dedup_by(|next, one| {
            let meet = next.first <= one.end();
            if meet {
                one.bytes = one.end().max(next.end()) - one.first;
            }
            meet
        });
    }

    /// Gives every namespace another serial number.
    pub(crate) fn renew_serials(&mut self) {
        for namespace in self.all.iter_mut().flatten() {
            self.serials += 1;
            namespace.serial = self.serials;
        }
    }

    /// A range was deallocated.
    pub(crate) fn erased(&mut self, first: u64, bytes: u64) {
        let end = first + bytes;
        let rests = |extent: &Extent| {
            let before = Extent { first: extent.first, bytes: extent.end().min(first).saturating_sub(extent.first) };
            let begins = extent.first.max(end);
            let after = Extent { first: begins, bytes: extent.end().saturating_sub(begins) };
            [before, after]
        };
        self.erasing = self.erasing.iter().flat_map(rests).filter(|rest| rest.bytes > 0).collect();
    }

    fn next_serial(&mut self) -> u32 {
        self.serials += 1;
        self.serials
    }

    /// Ranges of whole granules that belong to no namespace.
    fn holes(&self) -> Vec<Extent> {
        let mut taken: Vec<Extent> = self.iter().flat_map(|namespace| namespace.extents.iter().copied()).collect();
        taken.sort_unstable_by_key(|extent| extent.first);
        taken.push(Extent { first: self.capacity - self.capacity % self.granule, bytes: 0 });
        let mut begins = 0;
        let hole = |extent: &Extent| {
            let found = Extent { first: begins, bytes: extent.first.saturating_sub(begins) };
            begins = extent.end();
            found
        };
        taken.iter().map(hole).filter(|hole| hole.bytes > 0).collect()
    }

    /// Extents of so many bytes.
    fn allocate(&self, needed: u64) -> Option<Vec<Extent>> {
        let mut holes = self.holes();
        if let Some(fits) = holes.iter().filter(|hole| hole.bytes >= needed).min_by_key(|hole| hole.bytes) {
            return Some(vec![Extent { bytes: needed, ..*fits }]);
        }
        holes.sort_by_key(|hole| std::cmp::Reverse(hole.bytes));
        let (mut left, mut found) = (needed, Vec::new());
        for hole in holes.iter().take(EXTENTS_MAX) {
            if left == 0 {
                break;
            }
            let bytes = left.min(hole.bytes);
            found.push(Extent { bytes, ..*hole });
            left -= bytes;
        }
        found.sort_unstable_by_key(|extent| extent.first);
        (left == 0).then_some(found)
    }

    /// Appends what is kept of the namespaces to `out`.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.capacity.to_le_bytes());
        out.extend(self.serials.to_le_bytes());
        let put_extents = |out: &mut Vec<u8>, extents: &[Extent]| {
            out.extend((extents.len() as u64).to_le_bytes());
            extents.iter().for_each(|extent| {
                out.extend(extent.first.to_le_bytes());
                out.extend(extent.bytes.to_le_bytes());
            });
        };
        put_extents(out, &self.erasing);
        for namespace in self.iter() {
            let mut fixed = [0; FIXED_BYTES];
            put(&mut fixed, 0, &namespace.id.to_le_bytes());
            put(&mut fixed, 4, &namespace.serial.to_le_bytes());
            fixed[8] = namespace.format;
            fixed[9] = u8::from(namespace.is_shared) | u8::from(namespace.is_attached) << 1;
            fixed[9] |= u8::from(namespace.is_assigned) << 2;
            fixed[10] = u8::try_from(namespace.handles.len()).expect("handles are few");
            put(&mut fixed, 16, &namespace.bytes.to_le_bytes());
            put(&mut fixed, 24, &namespace.uuid);
            out.extend(fixed);
            put_extents(out, &namespace.extents);
            out.extend(&namespace.handles);
        }
    }

    /// Reads what [`Namespaces::put`] wrote for a drive of the same size. None if it can't be that.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Option<()> {
        let mut rest = Rest(bytes);
        if u64_at(rest.cut(8)?, 0) != self.capacity {
            return None;
        }
        let serials = u32_at(rest.cut(4)?, 0);
        let erasing = rest.extents(self.capacity)?;
        let mut all = Vec::new();
        while let Some(fixed) = rest.cut(FIXED_BYTES) {
            let (id, format) = (u32_at(fixed, 0), fixed[8]);
            let mut found = Namespace {
                id,
                serial: u32_at(fixed, 4),
                format,
                is_shared: fixed[9] & 1 != 0,
                is_attached: fixed[9] & 2 != 0,
                bytes: u64_at(fixed, 16),
                uuid: fixed[24..40].try_into().expect("16 bytes were cut"),
                handles: Vec::new(),
                is_assigned: fixed[9] & 4 != 0,
                extents: rest.extents(self.capacity)?,
            };
            found.handles = rest.cut(fixed[10].into())?.to_vec();
            let place = id.wrapping_sub(1) as usize;
            let fits = is_valid(id) && place >= all.len() && usize::from(format) < FORMATS.len();
            if !fits || found.bytes > found.capacity() {
                return None;
            }
            all.resize(place, None);
            all.push(Some(found));
        }
        (self.all, self.serials, self.erasing) = (all, serials, erasing);
        Some(())
    }
}

/// What is left of a table that is read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn cut(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (found, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(found)
    }

    /// A list of extents of a drive of so many bytes.
    fn extents(&mut self, capacity: u64) -> Option<Vec<Extent>> {
        let count = u64_at(self.cut(8)?, 0);
        let extent = |found: &[u8]| Extent { first: u64_at(found, 0), bytes: u64_at(found, 8) };
        let fits = |extent: &Extent| extent.first.checked_add(extent.bytes).is_some_and(|end| end <= capacity);
        (0..count).map(|_| self.cut(16).map(extent).filter(fits)).collect()
    }
}

/// Bytes of a namespace in the table, without its extents.
const FIXED_BYTES: usize = 40;

/// The controllers of a list, as Namespace Attachment brings it: their number, then their identifiers in ascending order.
///
/// # Errors
/// [`Status::CONTROLLER_LIST`].
pub fn controllers_of_list(list: &[u8]) -> Result<Vec<u16>, Status> {
    let count = usize::from(u16_at(list, 0));
    let ids = list.get(2..2 + 2 * count).filter(|_| count > 0).ok_or(Status::CONTROLLER_LIST)?;
    let ids: Vec<u16> = ids.chunks_exact(2).map(|id| u16_at(id, 0)).collect();
    if ids.is_sorted_by(|one, next| one < next) { Ok(ids) } else { Err(Status::CONTROLLER_LIST) }
}

/// Whether an identifier may be that of a namespace.
#[must_use]
pub fn is_valid(id: u32) -> bool {
    (1..=NAMESPACES_MAX).contains(&id)
}

/// A namespace in a word of namespaces.
#[must_use]
pub fn bit(id: u32) -> u64 {
    1 << (id - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn of_mib(mib: u64) -> Wanted {
        Wanted { blocks: mib * MIB / 512, format: 0, is_shared: true }
    }

    fn drive(mib: u64) -> Namespaces {
        let mut all = Namespaces::whole(mib * MIB, 16 << 10, 0, [1; 16]);
        all.delete(1);
        all.erasing.clear();
        all
    }

    fn create(all: &mut Namespaces, mib: u64) -> Result<u32, Status> {
        all.create(&of_mib(mib), |serial| [serial.to_le_bytes()[0]; 16])
    }

    /// No two namespaces share a byte, and together with the holes they make up the drive.
    fn audit(all: &Namespaces) {
        let mut extents: Vec<Extent> = all.iter().flat_map(|namespace| namespace.extents.clone()).collect();
        extents.extend(all.holes());
        extents.sort_unstable_by_key(|extent| extent.first);
        let end = extents.iter().fold(0, |end, extent| {
            assert_eq!(extent.first, end, "{extents:?}");
            extent.end()
        });
        assert_eq!(end, all.capacity);
        let taken: u64 = all.iter().map(Namespace::capacity).sum();
        assert_eq!(taken + all.unallocated(), all.capacity);
    }

    #[test]
    fn free_space_is_used_however_it_lies() {
        // 1 at 0..4, 2 at 4..5, 3 at 5..8: then 1 and 3 go, and a namespace of 6 MiB takes both holes, the larger one whole.
        let mut all = drive(8);
        assert_eq!([4, 1, 3].map(|mib| create(&mut all, mib)), [Ok(1), Ok(2), Ok(3)]);
        assert_eq!(create(&mut all, 1), Err(Status::INSUFFICIENT_CAPACITY));
        all.delete(1);
        all.delete(3);
        assert_eq!(all.erasing, [Extent { first: 0, bytes: 4 * MIB }, Extent { first: 5 * MIB, bytes: 3 * MIB }]);
        assert_eq!(create(&mut all, 8), Err(Status::INSUFFICIENT_CAPACITY));
        assert_eq!(create(&mut all, 6), Ok(1));
        audit(&all);
        let found = all.get(1).unwrap();
        assert_eq!(found.extents, [Extent { first: 0, bytes: 4 * MIB }, Extent { first: 5 * MIB, bytes: 2 * MIB }]);
        let located: Vec<Extent> = found.locate(4 * MIB - 512, 1024).collect();
        assert_eq!(located, [Extent { first: 4 * MIB - 512, bytes: 512 }, Extent { first: 5 * MIB, bytes: 512 }]);
        assert_eq!(found.locate(5 * MIB, 512).collect::<Vec<_>>(), [Extent { first: 6 * MIB, bytes: 512 }]);
        // The smallest hole that fits is taken: that of 1 MiB at the end.
        all.delete(2);
        assert_eq!(create(&mut all, 1), Ok(2));
        assert_eq!(all.get(2).unwrap().extents[0].first, 4 * MIB);
    }

    #[test]
    fn sizes_are_rounded_up_to_granules_and_identifiers_are_the_lowest_free() {
        let mut all = drive(64);
        let small = Wanted { blocks: 1, format: 1, is_shared: false };
        for id in 1..=NAMESPACES_MAX {
            assert_eq!(all.create(&small, |_| [0; 16]), Ok(id));
        }
        assert_eq!(all.create(&small, |_| [0; 16]), Err(Status::NO_IDENTIFIER));
        assert_eq!(all.unallocated(), 64 * MIB - u64::from(NAMESPACES_MAX) * (16 << 10));
        let before = all.get(7).unwrap().serial;
        all.delete(7);
        assert_eq!(all.create(&small, |_| [0; 16]), Ok(7));
        assert_ne!(all.get(7).unwrap().serial, before);
        assert!(!all.has_serial(before));
        audit(&all);
    }

    #[test]
    fn what_is_kept_reads_back_and_anything_else_is_refused() {
        let mut state = 9u64;
        let mut all = drive(64);
        for _ in 0..2_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (what, number) = (state >> 60, state >> 40 & 0xf);
            match what {
                0..=8 => drop(create(&mut all, number + 1)),
                9..=14 => drop(all.delete(u32::try_from(number).unwrap())),
                _ => drop(all.format(u32::try_from(number).unwrap(), 1)),
            }
            audit(&all);
            assert!(all.can_erase(), "nothing is deallocated, and the list stays short");
            let mut kept = Vec::new();
            all.put(&mut kept);
            let mut found = drive(64);
            found.take(&kept).unwrap();
            assert_eq!((&found.all, &found.erasing, found.serials), (&all.all, &all.erasing, all.serials));
            assert_eq!(drive(32).take(&kept), None, "of a drive of another size");
            let at = usize::try_from(state >> 20).unwrap() % kept.len();
            let _ = drive(64).take(&kept[..at]); // whatever it is, it ends
        }
        assert!(all.iter().any(|namespace| namespace.extents.len() > 1), "space was never fragmented");
    }

    #[test]
    fn what_was_deallocated_is_not_deallocated_again() {
        let mut all = drive(8);
        all.erasing = vec![Extent { first: 0, bytes: 100 }, Extent { first: 200, bytes: 100 }];
        all.erased(50, 200);
        assert_eq!(all.erasing, [Extent { first: 0, bytes: 50 }, Extent { first: 250, bytes: 50 }]);
        all.erased(0, 10);
        assert_eq!(all.erasing, [Extent { first: 10, bytes: 40 }, Extent { first: 250, bytes: 50 }]);
        all.erase(&[Extent { first: 60, bytes: 190 }, Extent { first: 20, bytes: 5 }]);
        assert_eq!(all.erasing, [Extent { first: 10, bytes: 40 }, Extent { first: 60, bytes: 240 }]);
        all.erased(0, 8 * MIB);
        assert!(all.erasing.is_empty());
    }

    #[test]
    fn a_list_of_controllers_is_ascending_and_not_empty() {
        let list = |ids: &[u16]| {
            let mut bytes = vec![0; 4096];
            put(&mut bytes, 0, &u16::try_from(ids.len()).unwrap().to_le_bytes());
            ids.iter().enumerate().for_each(|(at, id)| put(&mut bytes, 2 + 2 * at, &id.to_le_bytes()));
            controllers_of_list(&bytes)
        };
        assert_eq!(list(&[1, 3]), Ok(vec![1, 3]));
        for wrong in [&[][..], &[3, 1], &[1, 1]] {
            assert_eq!(list(wrong), Err(Status::CONTROLLER_LIST));
        }
    }
}
