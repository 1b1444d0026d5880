//! An order by last use that forgets late: what is used again goes to the end, and its old place stays as a gap.

use serde::{Deserialize, Serialize};

/// Numbers in an order, in a ring. To move one writes two words, its old place and the end, and to take the oldest one reads
/// what lies beside the last: a doubly linked list writes to two neighbours each time, and they lie anywhere in memory. Who uses
/// it keeps the place of each number. A ring that is full drops its gaps; it has room for four times what it holds, so that this
/// is rare.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// A power of two of them; [`GAP`] where there is none.
    ring: Vec<u32>,
    /// The first place and the one behind the last, both counted without end.
    front: u32,
    back: u32,
}

/// No number.
const GAP: u32 = u32::MAX;

#[allow(clippy::cast_possible_truncation)] // places are counted in 32 bits
impl Order {
    /// An empty order with memory for this many numbers below [`u32::MAX`].
    pub fn new(numbers: u32) -> Self {
        let mut ring = Vec::with_capacity(Self::places_max(numbers));
        ring.resize(4, GAP);
        Self { ring, front: 0, back: 0 }
    }
    /// Places that an order of so many numbers never exceeds.
    pub fn places_max(numbers: u32) -> usize {
        (4 * numbers as usize).next_power_of_two().max(4)
    }
    /// Places that there are now.
    pub fn places(&self) -> usize {
        self.ring.len()
    }
    /// Whether it is one that these functions can have made.
    pub fn is_sound(&self) -> bool {
        let places = self.ring.len();
        places.is_power_of_two()
            && places >= 4
            && self.back.wrapping_sub(self.front) as usize <= places
            && self.ring.iter().filter(|number| **number != GAP).count() == self.each().count()
            && self.oldest().is_none_or(|place| self.at(place).is_some())
    }
    #[inline(always)]
    fn mask(&self) -> u32 {
        self.ring.len() as u32 - 1
    }
    /// The place of which this is the count without end.
    #[inline(always)]
    pub fn place(&self, place: u32) -> u32 {
        place & self.mask()
    }
    /// The number at a place, if there is one.
    #[inline(always)]
    pub fn at(&self, place: u32) -> Option<u32> {
        let number = self.ring[(place & self.mask()) as usize];
        (number != GAP).then_some(number)
    }
    /// Whether a number is at a place.
    #[inline(always)]
    pub fn has(&self, place: u32, number: u32) -> bool {
        self.ring[(place & self.mask()) as usize] == number
    }
    /// The first place, and the one behind the last, counted without end.
    #[inline(always)]
    pub fn ends(&self) -> (u32, u32) {
        (self.front, self.back)
    }
    /// How many places, gaps among them, lie before this one.
    #[inline(always)]
    pub fn since_front(&self, place: u32) -> u32 {
        place.wrapping_sub(self.front) & self.mask()
    }
    /// Whether the next number has no place.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.back.wrapping_sub(self.front) > self.mask()
    }
    /// Puts a number at the end of an order that is not full; returns its place.
    #[inline(always)]
    pub fn push(&mut self, number: u32) -> u32 {
        debug_assert!(!self.is_full(), "the gaps were to be dropped first");
        let place = self.back & self.mask();
        self.ring[place as usize] = number;
        self.back = self.back.wrapping_add(1);
        place
    }
    /// Takes out what is at a place.
    #[inline(always)]
    pub fn remove(&mut self, place: u32) {
        let mask = self.mask();
        self.ring[(place & mask) as usize] = GAP;
        while self.front != self.back && self.ring[(self.front & mask) as usize] == GAP {
            self.front = self.front.wrapping_add(1);
        }
    }
    /// The place of the oldest.
    #[inline(always)]
    pub fn oldest(&self) -> Option<u32> {
        (self.front != self.back).then_some(self.front & self.mask())
    }
    /// The place of the next younger one.
    #[inline(always)]
    pub fn after(&self, place: u32) -> Option<u32> {
        let (mask, places) = (self.mask(), self.back.wrapping_sub(self.front));
        let mut at = self.since_front(place) + 1;
        while at < places {
            let place = self.front.wrapping_add(at) & mask;
            if self.ring[place as usize] != GAP {
                return Some(place);
            }
            at += 1;
        }
        None
    }
    /// Each number with its place, the oldest first.
    pub fn each(&self) -> impl Iterator<Item = (u32, u32)> {
        let places = (0..self.back.wrapping_sub(self.front)).map(|at| self.front.wrapping_add(at) & self.mask());
        places.filter_map(|place| self.at(place).map(|number| (number, place)))
    }
    /// Drops the gaps of an order that is full, so that there is room again. Tells each number that moves, and from which place to
    /// which; nothing that is still to move stands where one moves to.
    #[cold]
    pub fn drop_gaps(&mut self, mut moved: impl FnMut(u32, u32, u32)) {
        let (mask, old_back) = (self.mask(), self.back);
        let (mut from, mut to) = (self.front, self.front);
        while from != old_back {
            let number = std::mem::replace(&mut self.ring[(from & mask) as usize], GAP);
            if number != GAP {
                self.ring[(to & mask) as usize] = number;
                moved(number, from & mask, to & mask);
                to = to.wrapping_add(1);
            }
            from = from.wrapping_add(1);
        }
        self.back = to;
        let places = self.ring.len();
        if 4 * self.back.wrapping_sub(self.front) as usize > places {
            self.ring.resize(2 * places, GAP);
            let mut at = self.front;
            while at != self.back {
                let (place, new) = (at & mask, at & self.mask());
                if new != place {
                    let number = std::mem::replace(&mut self.ring[place as usize], GAP);
                    self.ring[new as usize] = number;
                    moved(number, place, new);
                }
                at = at.wrapping_add(1);
            }
        }
    }
}
