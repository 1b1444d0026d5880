//! Where the pages of the translation layer lie on the dies.

use flashwright_config::{BlockLayout, DriveConfig, Programming};
use flashwright_nand::{Geometry, Ppn};
use serde::{Deserialize, Serialize};

/// Where a page lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub block: u32,
    /// The die of the chips.
    pub die: u32,
    /// The die among those of its block.
    pub die_in_block: u32,
    /// The first page of its unit.
    pub unit_first: u32,
    /// Its position in its unit.
    pub in_unit: u32,
    /// Pages of its unit.
    pub unit: u32,
    /// Its unit among those of the block on that die: a page or a word line.
    pub row: u32,
    /// Which page of its cells it is.
    pub page_of_cell: u32,
    /// Names the pages that one command reads: those at one position in the planes of a die.
    pub read_together: u32,
}

/// Another unit of the same block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parity {
    pub die: u32,
    pub die_in_block: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Places {
    layout: BlockLayout,
    bits: u32,
    channels: u32,
    dies_per_channel: u32,
    unit: u32,
    units_in_row: u32,
    pages_per_block: u32,
    /// Blocks of a reclaim group, if there are several and blocks lie on several dies.
    blocks_per_group: Option<u32>,
    two_pass: bool,
    /// Whether every page is a unit, and a block lies on one die.
    single_pages: bool,
}

impl Places {
    pub fn new(config: &DriveConfig) -> Self {
        let layout = config.block_layout();
        let geometry = config.geometry.clustered();
        Self {
            layout,
            bits: config.geometry.bits_per_cell,
            channels: geometry.channels,
            dies_per_channel: geometry.dies_per_channel,
            unit: layout.unit(),
            units_in_row: layout.units_in_row(),
            pages_per_block: config.layout().pages_per_block(),
            blocks_per_group: (layout.dies > 1 && config.layout().dies() > 1)
                .then(|| config.layout().blocks_per_plane()),
            single_pages: layout.unit() == 1 && layout.dies == 1,
            two_pass: config.chips.programming == Programming::TwoPass,
        }
    }

    /// Dies of the chips.
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Dies that a block lies on.
    pub fn dies_of_block(&self) -> u32 {
        self.layout.dies
    }

    /// Pages of a unit in a block that is not in SLC mode.
    pub fn unit(&self) -> u32 {
        self.unit
    }

    /// The first page of the block that a place, a block on one of its dies, belongs to.
    pub fn first_page(&self, place: u32) -> u32 {
        place / self.layout.dies * self.pages_per_block
    }

    pub fn channel_of(&self, die: u32) -> u32 {
        die / self.dies_per_channel
    }

    /// Whether a program is followed by a second pass.
    pub fn two_pass(&self, is_slc: bool) -> bool {
        self.two_pass && !is_slc
    }

    /// Whether this is the last row of a block.
    pub fn is_last_row(&self, row: u32, is_slc: bool) -> bool {
        let (unit, pages) = if is_slc {
            (self.layout.per_page * self.layout.planes, self.pages_per_block / self.bits)
        } else {
            (self.unit, self.pages_per_block)
        };
        (row + 1) * unit * self.units_in_row >= pages
    }

    #[inline(always)]
    pub fn of(&self, ppn: Ppn, is_slc: bool, geometry: &Geometry) -> Place {
        let block = geometry.block_of(ppn).0;
        let at = ppn.0 - block * self.pages_per_block;
        if self.single_pages && (self.bits == 1 || !is_slc) {
            let page_of_cell = if self.bits == 1 { 0 } else { at % self.bits };
            let die = geometry.die_of(ppn).0;
            let (die_in_block, unit_first, in_unit, unit, row, read_together) = (0, ppn.0, 0, 1, at, ppn.0);
            return Place { block, die, die_in_block, unit_first, in_unit, unit, row, page_of_cell, read_together };
        }
        let row_of_planes = self.layout.per_page * self.layout.planes;
        let unit = if is_slc { row_of_planes } else { self.unit };
        let (number, in_unit) = (at / unit, at % unit);
        let (row, in_row) = (number / self.units_in_row, number % self.units_in_row);
        let die_in_block = match self.layout.parity_dies {
            0 => in_row,
            of => {
                let (group, member) = (in_row / (of - 1), in_row % (of - 1));
                group * of + member + u32::from(member >= parity_member(row, of))
            }
        };
        let page_of_cell = match () {
            () if is_slc => 0,
            () if self.layout.bits_together > 1 => in_unit / row_of_planes,
            () => row % self.bits,
        };
        Place {
            block,
            die: self.die(die_in_block, ppn, geometry),
            die_in_block,
            unit_first: ppn.0 - in_unit,
            in_unit,
            unit,
            row,
            page_of_cell,
            read_together: (ppn.0 - in_unit) + in_unit / row_of_planes * row_of_planes,
        }
    }

    /// If the unit of `place` completes a group of units with a parity: where that lies.
    #[inline(always)]
    pub fn parity_after(&self, place: &Place) -> Option<Parity> {
        let of = self.layout.parity_dies;
        if of == 0 {
            return None;
        }
        let (group, member) = (place.die_in_block / of, place.die_in_block % of);
        let parity = parity_member(place.row, of);
        let last = if parity == of - 1 { of - 2 } else { of - 1 };
        (member == last).then(|| {
            let die_in_block = group * of + parity;
            Parity { die: self.chip(place.block, die_in_block), die_in_block }
        })
    }

    /// The dies, and their numbers among those of the block, that hold the rest of a page's parity group.
    pub fn others_in_group(&self, place: &Place) -> impl Iterator<Item = (u32, u32)> + use<> {
        let (places, of, mine, block) = (*self, self.layout.parity_dies, place.die_in_block, place.block);
        let group = mine.checked_div(of).map_or(0..0, |group| group * of..(group + 1) * of);
        group.filter(move |other| *other != mine).map(move |other| (places.chip(block, other), other))
    }

    /// The die of the chips that is number `die_in_block` of the block of `ppn`.
    #[inline(always)]
    pub fn die(&self, die_in_block: u32, ppn: Ppn, geometry: &Geometry) -> u32 {
        if self.layout.dies == 1 { geometry.die_of(ppn).0 } else { self.chip(geometry.block_of(ppn).0, die_in_block) }
    }

    /// Units go to another channel each, those of a group to its part of the dies in that order.
    #[inline(always)]
    fn chip(&self, block: u32, die_in_block: u32) -> u32 {
        let turn = match self.blocks_per_group {
            None => die_in_block,
            Some(blocks) => block / blocks * self.layout.dies + die_in_block,
        };
        turn % self.channels * self.dies_per_channel + turn / self.channels
    }
}

/// Which of the dies of a group holds the parity of a row.
#[inline(always)]
fn parity_member(row: u32, of: u32) -> u32 {
    of - 1 - row % of
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_config::Config;

    fn places(settings: &[&str]) -> (Places, Geometry) {
        let base = [
            "geometry.channels=2",
            "geometry.dies-per-channel=2",
            "geometry.blocks-per-plane=8",
            "geometry.pages-per-block=6",
        ];
        let config = Config::default().with_settings(&[&base, settings].concat()).unwrap();
        (Places::new(&config), config.layout())
    }

    /// Four dies, two planes, pages of two mapping units, three bits: a unit has 2 x 2 x 3 = 12.
    #[test]
    fn units_follow_each_other_over_the_dies() {
        let (places, geometry) = places(&[
            "geometry.superblock=drive",
            "geometry.planes-per-die=2",
            "geometry.mapping-unit=2 KiB",
            "geometry.bits-per-cell=3",
            "chips.programming=one-shot",
            "chips.write-ram=1 MiB",
        ]);
        assert_eq!((places.unit, geometry.pages_per_block()), (12, 4 * 12 * 2));
        let of = |at: u32| places.of(Ppn(geometry.pages_per_block() + at), false, &geometry);
        // Channels first: dies 0 and 1 are on channel 0.
        assert_eq!([0, 12, 24, 36, 48].map(|at| (of(at).die, of(at).row)), [(0, 0), (2, 0), (1, 0), (3, 0), (0, 1)]);
        assert_eq!([0, 3, 4, 8, 11].map(|at| of(at).page_of_cell), [0, 0, 1, 2, 2]);
        assert_eq!([0, 3, 4].map(|at| of(at).read_together - geometry.pages_per_block()), [0, 0, 4]);
        assert!(places.is_last_row(1, false) && !places.is_last_row(0, false));
        // One bit a cell: four mapping units a unit.
        let slc = |at: u32| places.of(Ppn(at), true, &geometry);
        assert_eq!([0, 4, 16].map(|at| (slc(at).die, slc(at).row, slc(at).unit)), [(0, 0, 4), (2, 0, 4), (0, 1, 4)]);
        assert!(places.is_last_row(1, true));
    }

    #[test]
    fn parity_moves_from_die_to_die() {
        let (places, geometry) = places(&["geometry.superblock=drive", "geometry.parity-dies=4"]);
        assert_eq!(geometry.pages_per_block(), 18);
        let of = |at: u32| places.of(Ppn(at), false, &geometry);
        // Row 0: dies 0 to 2 of the block hold data, 3 parity; row 1: 2 holds parity.
        assert_eq!([0, 1, 2, 3, 4, 5].map(|at| of(at).die_in_block), [0, 1, 2, 0, 1, 3]);
        assert_eq!(
            [1, 2, 4, 5].map(|at| places.parity_after(&of(at)).map(|parity| parity.die_in_block)),
            [None, Some(3), None, Some(2)]
        );
    }

    #[test]
    fn without_superblocks_a_die_is_that_of_the_layout() {
        let (places, geometry) = places(&["geometry.planes-per-die=2", "geometry.bits-per-cell=2"]);
        let last = Ppn(geometry.pages() - 1);
        let place = places.of(last, false, &geometry);
        assert_eq!((place.die, place.row, place.page_of_cell, place.unit), (3, 5, 1, 1));
    }
}
