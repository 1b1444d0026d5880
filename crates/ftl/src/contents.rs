//! The simulated content of pages: nothing, a stamp, or bytes, in RAM and on flash alike.

use crate::page_data::PageData;
use crate::stamps::Stamps;
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
}

impl Contents {
    /// None if nothing is kept.
    pub fn new(keeps: Keeps, logical_pages: u32, geometry: &Geometry) -> Option<Box<Self>> {
        if keeps == Keeps::Nothing {
            return None;
        }
        let stamps = Stamps::new(logical_pages, geometry.pages());
        Some(Box::new(Self { stamps, data: (keeps == Keeps::Bytes).then(|| PageData::new(geometry)) }))
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

    pub fn programmed(&mut self, ppn: Ppn, lpn: Lpn) {
        let past_ram = self.stamps.programmed(ppn, lpn);
        if let Some(data) = &mut self.data {
            data.programmed(ppn, lpn, past_ram);
        }
    }

    pub fn copied(&mut self, from: &[u32], to: Ppn) {
        for (from, to) in from.iter().zip(to.0..) {
            self.stamps.copied(Ppn(*from), Ppn(to));
            if let Some(data) = &mut self.data {
                data.copied(Ppn(*from), Ppn(to));
            }
        }
    }

    pub fn erased(&mut self, block: BlockId) {
        if let Some(data) = &mut self.data {
            data.erased(block);
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
