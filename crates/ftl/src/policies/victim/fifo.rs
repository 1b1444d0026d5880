//! FIFO: the block sealed first, however many valid pages it has.
//!
//! Its write amplification under uniform random writes has a closed form, which the theory tests compare it with
//! (`a/(a + W(-a e^-a))`, a = 1/utilisation; Menon 1995, Desnoyers 2012). Pick: O(1). State: 8 bytes a block.

use super::{PlaneView, VictimContext, VictimPolicy};
use crate::registry::NoSettings;
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

/// `gc.victim = "fifo"`: a queue threaded through the blocks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fifo {
    next: Vec<u32>,
    prev: Vec<u32>,
    oldest: u32,
    newest: u32,
    len: u32,
}

impl VictimPolicy for Fifo {
    const NAME: &'static str = "fifo";
    const ABOUT: &'static str = "the block sealed first (Menon 1995; closed form in Desnoyers, SYSTOR 2012)";
    type Settings = NoSettings;

    fn new(_: &NoSettings, context: VictimContext) -> Self {
        let none = vec![NONE; context.blocks as usize];
        Self { next: none.clone(), prev: none, oldest: NONE, newest: NONE, len: 0 }
    }
    fn sealed(&mut self, block: u32, _: PlaneView) {
        self.prev[block as usize] = self.newest;
        self.next[block as usize] = NONE;
        match self.newest {
            NONE => self.oldest = block,
            newest => self.next[newest as usize] = block,
        }
        self.newest = block;
        self.len += 1;
    }
    fn removed(&mut self, block: u32) {
        let (prev, next) = (self.prev[block as usize], self.next[block as usize]);
        match prev {
            NONE => self.oldest = next,
            prev => self.next[prev as usize] = next,
        }
        match next {
            NONE => self.newest = prev,
            next => self.prev[next as usize] = prev,
        }
        self.len -= 1;
    }
    fn pick(&mut self, _: PlaneView) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }
    #[inline]
    fn likely_next(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }
    fn candidates(&self) -> u32 {
        self.len
    }
    #[cfg(test)]
    fn search(_: &NoSettings, history: &mut super::tests::History, _: PlaneView) -> Option<u32> {
        history.sealed.first().map(|sealed| sealed.block)
    }
}
