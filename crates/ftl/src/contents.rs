//! The simulated content of pages: nothing, a stamp, or bytes, in RAM and on flash alike.

use crate::durable::{Programmed, Tracker};
use crate::page_data::PageData;
use crate::stamps::Stamps;
use crate::{Cause, PageBytes};
use flashwright_nand::{BlockId, Geometry, Lpn, Ppn};
use serde::{Deserialize, Serialize};

/// How much of the host's data a drive keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Keeps {
    /// Nothing: for studies of time and wear. It costs one well-predicted branch.
    #[default]
    Nothing,
    /// A stamp for each page, which every read is compared with: 4 B for each logical and physical page, and 4 B more
    /// for each logical page once RAM has held one.
    Stamps,
    /// The bytes themselves, in addition to the stamps. A page that is not all zeros costs its size plus 16 B, once,
    /// however many copies of it cleaning has left on flash. A block that holds such a page costs 16 B for each of its
    /// pages, any other block 24 B; a page in RAM costs about 32 B. Pages of zeros cost nothing.
    Bytes,
}

/// With `verify` a drive keeps stamps, otherwise nothing.
impl From<bool> for Keeps {
    fn from(verify: bool) -> Self {
        if verify { Self::Stamps } else { Self::Nothing }
    }
}

/// Stamps, and bytes if they are kept. Every change applies to both.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Contents {
    pub stamps: Stamps,
    pub data: Option<PageData>,
    /// What changes on the chips, if power may be cut.
    pub tracker: Option<Tracker>,
}

/// What the tracker wants to know of a program beside its content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logged {
    /// Entries in the log.
    pub mark: u32,
    pub cause: Cause,
    pub stream: u8,
    pub is_slc: bool,
}

impl Contents {
    /// None if nothing is kept.
    pub fn new(keeps: Keeps, logical_pages: u32, geometry: &Geometry) -> Option<Box<Self>> {
        if keeps == Keeps::Nothing {
            return None;
        }
        let stamps = Stamps::new(logical_pages, geometry.pages());
        Some(Box::new(Self { stamps, data: (keeps == Keeps::Bytes).then(|| PageData::new(geometry)), tracker: None }))
    }

    pub fn ram_takes(&mut self, lpn: Lpn) {
        self.stamps.ram_takes(lpn);
        if let Some(data) = &mut self.data {
            data.ram_takes(lpn);
        }
    }

    pub fn ram_loads(&mut self, lpn: Lpn, from: Ppn) {
        self.stamps.ram_loads(lpn, from);
        if let Some(data) = &mut self.data {
            data.ram_loads(lpn, from);
        }
    }

    pub fn ram_lets_go(&mut self, lpn: Lpn) {
        self.stamps.ram_lets_go(lpn);
        if let Some(data) = &mut self.data {
            data.ram_lets_go(lpn);
        }
    }

    pub fn pads(&mut self, lpn: Lpn, from: Ppn) {
        if let Some(data) = &mut self.data {
            data.pads(lpn, from);
        }
    }

    pub fn padding_done(&mut self) {
        if let Some(data) = &mut self.data {
            data.padding_done();
        }
    }

    pub fn programmed(&mut self, ppn: Ppn, lpn: Lpn, logged: Logged) {
        let past_ram = self.stamps.programmed(ppn, lpn);
        if let Some(data) = &mut self.data {
            data.programmed(ppn, lpn, past_ram);
        }
        if self.tracker.is_some() {
            self.track(ppn, lpn, None, logged);
        }
    }

    /// Copies of consecutive pages, each logged as a read and a program.
    pub fn copied(&mut self, from: &[u32], lpns: &[u32], to: Ppn, logged: Logged) {
        for (from, to) in from.iter().zip(to.0..) {
            self.stamps.copied(Ppn(*from), Ppn(to));
            if let Some(data) = &mut self.data {
                data.copied(Ppn(*from), Ppn(to));
            }
        }
        if self.tracker.is_some() {
            for (nth, (from, lpn)) in (0..).zip(from.iter().zip(lpns)) {
                let left = u32::try_from(lpns.len()).expect("a run lies in one block") - nth - 1;
                let logged = Logged { mark: logged.mark.saturating_sub(2 * left), ..logged };
                self.track(Ppn(to.0 + nth), Lpn(*lpn), Some(Ppn(*from)), logged);
            }
        }
    }

    #[cold]
    fn track(&mut self, ppn: Ppn, lpn: Lpn, copy_of: Option<Ppn>, logged: Logged) {
        let Logged { mark, cause, stream, is_slc } = logged;
        let stamp = self.stamps.on_flash(ppn);
        let bytes = self.data.as_ref().map_or(PageBytes::ZEROS, |data| data.on_flash(ppn).clone());
        if let Some(tracker) = &mut self.tracker {
            let page = Programmed { stream, is_slc, stamp, bytes, ..Programmed::default() };
            tracker.programmed(ppn, lpn, copy_of, page, mark, cause);
        }
    }

    pub fn erased(&mut self, block: BlockId, mark: u32, cause: Cause) {
        if let Some(data) = &mut self.data {
            data.erased(block);
        }
        if let Some(tracker) = &mut self.tracker {
            tracker.erased(block, mark, cause);
        }
    }

    pub fn delivers_from_ram(&mut self, lpn: Lpn) {
        self.stamps.delivers_from_ram(lpn);
        if let Some(data) = &mut self.data {
            data.delivers_from_ram(lpn);
        }
    }

    pub fn delivers(&mut self, lpn: Lpn, ppn: Ppn, owner: Option<Lpn>, valid: bool) {
        self.stamps.delivers(lpn, ppn, owner, valid);
        if let Some(data) = &mut self.data {
            data.delivers(lpn, ppn);
        }
    }
}
