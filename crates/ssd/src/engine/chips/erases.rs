//! Erases, and what they take away.

use super::Chips;
use super::command::{Command, Group, Kind, NONE};
use super::places::Place;
use super::ram::InRam;
use crate::engine::{Observer, OpClass};
use flashwright_ftl::Flash;
use flashwright_nand::BlockId;

impl<W: Observer> Chips<W> {
    /// Erases a block on each of its dies; answers the last of the commands.
    pub(super) fn erase(
        &mut self,
        class: OpClass,
        place: Place,
        waits_for: u32,
        slot: u32,
        flash: &Flash,
        now: u64,
    ) -> u32 {
        let geometry = flash.geometry();
        self.drop_collected(place.block, now);
        if let Some(errors) = &mut self.errors {
            errors.erased(BlockId(place.block), flash.nand().erases(BlockId(place.block)));
        }
        let first = geometry.first_page(BlockId(place.block));
        // All of it, since units are smaller in SLC mode, and the block may have been in the other mode until now.
        self.forget_pending(first.0, geometry.pages_per_block());
        self.awaited.clear();
        while let Some(replacement) = self.erase_dependencies.take(BlockId(place.block)) {
            let id = self.program_of(&replacement, geometry);
            if id != NONE {
                self.awaited.push(id);
            }
        }
        let mut last = NONE;
        for die_in_block in 0..self.places.dies_of_block() {
            let at = self.place_index(place.block, die_in_block);
            let die = self.places.die(die_in_block, first, geometry);
            let sequence = self.next_sequence();
            let array = self.times.erase;
            let id = self.add(Command {
                kind: Kind::Erase,
                group: Group::of_class(class),
                class,
                die,
                sequence,
                array,
                slot,
                place: at,
                ..Command::NOTHING
            });
            let state = &mut self.in_block[at as usize];
            let (reads, before, program) = (state.reads, state.erase, state.program);
            self.commands[id].generation = state.generation;
            self.commands[id].before = before;
            self.commands[id].unmet += reads;
            let left_over = state.second_held;
            (state.second_first, state.second_held) = (NONE, InRam::default());
            (state.reads, state.erase) = (0, id);
            state.generation = state.generation.wrapping_add(1);
            self.free_ram(left_over, now);
            for earlier in [before, program] {
                self.commands.after_start(earlier, id);
            }
            self.commands.after_end(waits_for, id);
            for replacement in &self.awaited {
                self.commands.after_end(*replacement, id);
            }
            self.reserve_grows(place.block, id);
            self.figures.array_erases += 1;
            self.issued(id, now);
            last = id;
        }
        last
    }

    /// No unit that begins within these pages is in RAM any more.
    fn forget_pending(&mut self, first: u32, pages: u32) {
        let (mut at, end) = (first, first + pages);
        while at < end {
            let in_word = (64 - at % 64).min(end - at);
            let ones = if in_word == 64 { u64::MAX } else { (1 << in_word) - 1 };
            self.in_ram[at as usize / 64] &= !(ones << (at % 64));
            at += in_word;
        }
    }

    /// What a unit of a block has collected is erased before it was programmed.
    pub(super) fn drop_collected(&mut self, block: u32, now: u64) {
        let id = std::mem::replace(&mut self.collecting[block as usize], NONE);
        if id == NONE {
            return;
        }
        self.commands[id].is_dropped = true;
        self.ends_pending(self.commands[id].first);
        self.issued(id, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Awaits;
    use flashwright_block::Seed;
    use flashwright_config::Config;
    use flashwright_ftl::{Cause, FlashOp, OpKind};
    use flashwright_nand::{Nand, Ppn, ProgramOrder, WearLimit};

    /// The block was in SLC mode, where every page is a unit, and is erased in the mode with units of three pages.
    #[test]
    fn an_erase_forgets_units_of_either_mode() {
        let config = Config::default()
            .with_settings(&[
                "geometry.bits-per-cell=3",
                "geometry.pages-per-block=90",
                "chips.programming=one-shot",
                "chips.write-ram=1 MiB",
            ])
            .unwrap();
        let nand = Nand::new(config.layout(), ProgramOrder::Ascending, WearLimit::Unlimited, &[]);
        let flash = Flash::new(nand, config.logical_pages(), true, false);
        let mut engine = Chips::new(&config, 0, Seed(1), ());
        (85..185).for_each(|page| engine.begins_pending(page));
        let erase = FlashOp { ppn: Ppn(90), kind: OpKind::Erase, cause: Cause::Gc, after: 0, copies: 0 };
        engine.issue(0, 0, &[erase], Awaits::Work, &flash);
        let pending: Vec<u32> = (0..200).filter(|page| engine.is_pending(*page)).collect();
        assert_eq!(pending, [85, 86, 87, 88, 89, 180, 181, 182, 183, 184]);
    }
}
