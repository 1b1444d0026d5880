//! Changes that dies have been told to make and have not finished.

use crate::engine::{EndedOp, Observer, Unfinished};
use flashwright_block::Nanos;
use flashwright_ftl::OpKind;
use flashwright_ftl::durable::{Change, Changed, Medium};
use flashwright_nand::{BlockId, Geometry, Ppn};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Receives the ends of programs and erases, if power may fail.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ends {
    listens: bool,
    ended: Vec<Ended>,
}

/// The end of a program or an erase on a die.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// Its kind.
    pub kind: OpKind,
    /// Its page; of an erase the first of the block.
    pub ppn: Ppn,
    /// When it ended.
    pub at: Nanos,
}

impl Ends {
    /// An observer that listens, or not.
    #[must_use]
    pub fn new(listens: bool) -> Self {
        Self { listens, ended: Vec::new() }
    }

    /// The ends since the last call.
    pub fn take(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.ended)
    }
}

impl Observer for Ends {
    #[inline(always)]
    fn listens(&self) -> bool {
        self.listens
    }

    fn ended(&mut self, op: EndedOp) {
        if let (OpKind::Program | OpKind::Erase, Some(ppn)) = (op.kind, op.ppn) {
            self.ended.push(Ended { kind: op.kind, ppn, at: op.end });
        }
    }
}

/// An erase that some dies of its block have not finished.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Erasing {
    order: u64,
    change: Change,
    dies: u32,
    dies_left: u32,
    /// Pages that were programmed on dies that had finished, while others had not.
    programmed: Vec<u32>,
}

/// Changes by page and by block. Those of one page or block are done in the order in which they were decided.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct InFlight {
    next: u64,
    programs: BTreeMap<u32, VecDeque<(u64, Change)>>,
    erases: BTreeMap<u32, VecDeque<Erasing>>,
    orders: BTreeSet<u64>,
}

impl InFlight {
    /// The number that the next change gets.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether all changes before this number are done.
    pub fn is_done_before(&self, order: u64) -> bool {
        self.orders.first().is_none_or(|first| *first >= order)
    }

    /// A change was handed to the engine; its block lies on so many dies.
    pub fn add(&mut self, change: Change, dies: u32) {
        let order = self.next;
        self.next += 1;
        match change.what {
            Changed::Program(ppn, _) => self.programs.entry(ppn.0).or_default().push_back((order, change)),
            Changed::Erase(block) => {
                let erasing = Erasing { order, change, dies, dies_left: dies, programmed: Vec::new() };
                self.erases.entry(block.0).or_default().push_back(erasing);
            }
            Changed::Retire(_) => return,
        }
        self.orders.insert(order);
    }

    /// A program or an erase has ended on a die; the changes that are done by it are appended to `done`. An erase is done with its last
    /// die, and only then what was programmed on the others. A page has no change that was programmed without time passing, or before a
    /// loss of power: the rest of its unit was programmed now. Returns whether there is, or was, one.
    ///
    /// # Panics
    /// If no erase is on its way there.
    pub fn ended(&mut self, kind: OpKind, ppn: Ppn, geometry: &Geometry, done: &mut VecDeque<Change>) -> bool {
        let block = geometry.block_of(ppn);
        if kind == OpKind::Program {
            let Some((order, _)) = self.programs.get(&ppn.0).and_then(VecDeque::front) else { return false };
            let erasing = self.erases.get_mut(&block.0).and_then(VecDeque::front_mut);
            if let Some(erasing) = erasing.filter(|erasing| erasing.order < *order) {
                erasing.programmed.push(ppn.0);
                return true;
            }
            done.extend(self.take_program(ppn));
            return true;
        }
        let erasing =
            self.erases.get_mut(&block.0).and_then(VecDeque::front_mut).expect("an erase that ends has begun");
        erasing.dies_left -= 1;
        if erasing.dies_left > 0 {
            return true;
        }
        let Erasing { order, change, programmed, .. } = self.take_erase(block).expect("it was just there");
        // What the block's last unit had collected when it was erased never went to a die.
        let pages = geometry.first_page(block).0..geometry.first_page(block).0 + geometry.pages_per_block();
        let dropped: Vec<u32> = self
            .programs
            .range(pages)
            .filter(|(_, programs)| programs.front().is_some_and(|(earlier, _)| *earlier < order))
            .map(|(ppn, _)| *ppn)
            .collect();
        dropped.into_iter().for_each(|ppn| _ = self.take_program(Ppn(ppn)));
        done.push_back(change);
        done.extend(programmed.into_iter().filter_map(|ppn| self.take_program(Ppn(ppn))));
        true
    }

    fn take_program(&mut self, ppn: Ppn) -> Option<Change> {
        let programs = self.programs.get_mut(&ppn.0)?;
        let (order, change) = programs.pop_front()?;
        if programs.is_empty() {
            self.programs.remove(&ppn.0);
        }
        self.orders.remove(&order);
        Some(change)
    }

    fn take_erase(&mut self, block: BlockId) -> Option<Erasing> {
        let erases = self.erases.get_mut(&block.0)?;
        let erasing = erases.pop_front()?;
        if erases.is_empty() {
            self.erases.remove(&block.0);
        }
        self.orders.remove(&erasing.order);
        Some(erasing)
    }

    /// Power fails: what was under way on a die is torn. The rest, which is returned, does not happen.
    pub fn cut(&mut self, under_way: &[Unfinished], medium: &mut Medium, geometry: &Geometry) -> Vec<Change> {
        for Unfinished { kind, ppn, pages, .. } in under_way {
            let Some(first) = ppn else { continue };
            match kind {
                OpKind::Erase => {
                    if let Some(erasing) = self.take_erase(geometry.block_of(*first)) {
                        medium.tear(&erasing.change);
                    }
                }
                _ => {
                    for page in 0..*pages {
                        if let Some(change) = self.take_program(Ppn(first.0 + page)) {
                            medium.tear(&change);
                        }
                    }
                }
            }
        }
        let mut torn = Vec::new();
        // A block that lies on several dies and is erased on some of them is in no state to be read either.
        for (block, erases) in &self.erases {
            let begun = erases.front().filter(|erasing| erasing.dies_left < erasing.dies);
            torn.extend(begun.map(|_| BlockId(*block)));
        }
        for block in torn {
            if let Some(erasing) = self.take_erase(block) {
                medium.tear(&erasing.change);
            }
        }
        self.take_all()
    }

    /// All changes in the order in which they were decided.
    pub fn take_all(&mut self) -> Vec<Change> {
        let programs = std::mem::take(&mut self.programs).into_values().flatten();
        let erases = std::mem::take(&mut self.erases).into_values().flatten();
        let mut all: Vec<(u64, Change)> =
            programs.chain(erases.map(|erasing| (erasing.order, erasing.change))).collect();
        self.orders.clear();
        all.sort_by_key(|(order, _)| *order);
        all.into_iter().map(|(_, change)| change).collect()
    }
}
