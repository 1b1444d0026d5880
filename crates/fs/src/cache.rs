//! The page cache: which pages are in memory, and which clean one is evicted first.
//!
//! Clean pages are in one list in order of use; pages that are dirty, under write-back or being read are in no list and
//! are never evicted. (Linux keeps two lists, active and inactive; one is what the model needs.)

/// No slot, no request.
pub(crate) const NONE: u32 = u32::MAX;

/// A page in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) file: u32,
    pub(crate) index: u32,
    /// The request that reads the page; [`NONE`] once it is in memory.
    pub(crate) io: u32,
    newer: u32,
    older: u32,
    listed: bool,
}

/// All pages in memory.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    slots: Vec<Slot>,
    free: Vec<u32>,
    limit: u32,
    newest: u32,
    oldest: u32,
}

impl Cache {
    /// Room for `limit` pages.
    pub(crate) fn new(limit: u32) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), limit, newest: NONE, oldest: NONE }
    }

    #[inline]
    pub(crate) fn slot(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    #[inline]
    pub(crate) fn set_io(&mut self, slot: u32, io: u32) {
        self.slots[slot as usize].io = io;
    }

    /// A slot for a page that is in no list yet, and the page that was evicted for it, if any; none if memory is full
    /// of pages that can't be evicted.
    #[inline]
    pub(crate) fn take(&mut self, file: u32, index: u32) -> Option<(u32, Option<(u32, u32)>)> {
        let new = Slot { file, index, io: NONE, newer: NONE, older: NONE, listed: false };
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = new;
            return Some((slot, None));
        }
        if self.slots.len() < self.limit as usize {
            self.slots.push(new);
            return Some((u32::try_from(self.slots.len() - 1).expect("below the limit"), None));
        }
        let slot = self.oldest;
        if slot == NONE {
            return None;
        }
        self.unlist(slot);
        let left = self.slots[slot as usize];
        self.slots[slot as usize] = new;
        Some((slot, Some((left.file, left.index))))
    }

    /// Forgets a page.
    #[inline]
    pub(crate) fn release(&mut self, slot: u32) {
        self.unlist(slot);
        self.free.push(slot);
    }

    /// Puts a clean page at the most recently used end.
    #[inline]
    pub(crate) fn list(&mut self, slot: u32) {
        self.unlist(slot);
        let newest = self.newest;
        let entry = &mut self.slots[slot as usize];
        (entry.older, entry.newer, entry.listed) = (newest, NONE, true);
        match newest {
            NONE => self.oldest = slot,
            newest => self.slots[newest as usize].newer = slot,
        }
        self.newest = slot;
    }

    /// Takes a page out of the list, if it is there.
    #[inline]
    pub(crate) fn unlist(&mut self, slot: u32) {
        let Slot { newer, older, listed, .. } = self.slots[slot as usize];
        if !listed {
            return;
        }
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        self.slots[slot as usize].listed = false;
    }

    /// Moves a page that was used again, if it is in the list.
    #[inline]
    pub(crate) fn used(&mut self, slot: u32) {
        if self.slots[slot as usize].listed && self.newest != slot {
            self.list(slot);
        }
    }

    #[inline]
    pub(crate) fn is_clean(&self, slot: u32) -> bool {
        self.slots[slot as usize].listed
    }

    /// The clean page that would be evicted next.
    pub(crate) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Pages in memory.
    pub(crate) fn resident(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
