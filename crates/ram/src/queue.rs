//! Single pages in RAM, in an order of last use or of arrival.

use crate::bits::Bits;
use crate::managers::Leaves;
use crate::order::Order;
use flashwright_ftl::Violation;
use flashwright_nand::{Lpn, prefetch, table};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Pages in an order that forgets late. A page that has left is forgotten late as well: its entry still names a place, where
/// another stands. 16 to 33 bytes per held page, 4 per logical page.
#[derive(Clone, Debug)]
pub(crate) struct PageQueue {
    /// By page: its place, if it is there.
    places: Vec<u32>,
    order: Order,
    /// By place: whether the page is newer than its copy on flash.
    dirty: Bits,
    len: u32,
}

impl PageQueue {
    /// An empty queue with memory for `pages` of the drive's logical pages.
    pub fn new(pages: u32, logical_pages: u32) -> Self {
        Self {
            places: table(0, logical_pages as usize),
            order: Order::new(pages),
            dirty: Bits::new(Order::places_max(pages)),
            len: 0,
        }
    }
    /// Pages held.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.len
    }
    /// The order of the pages.
    #[inline(always)]
    pub fn order(&self) -> &Order {
        &self.order
    }
    /// Warms the CPU cache for a page.
    #[inline(always)]
    pub fn expect(&self, lpn: Lpn) {
        prefetch(&self.places, lpn.index());
    }
    /// The place of a page, if it is held.
    #[inline(always)]
    pub fn find(&self, lpn: Lpn) -> Option<u32> {
        let place = self.places[lpn.index()];
        self.order.has(place, lpn.0).then_some(place)
    }
    /// Whether the page at a place is newer than its copy on flash.
    #[inline(always)]
    pub fn is_dirty(&self, place: u32) -> bool {
        self.dirty.has(place)
    }
    /// A page that is held is on flash as well.
    pub fn cleaned(&mut self, lpn: Lpn) {
        if let Some(place) = self.find(lpn) {
            self.dirty.put(place, false);
        }
    }
    /// Adds a page that is not held as the youngest.
    #[inline(always)]
    pub fn push(&mut self, lpn: Lpn, dirty: bool) {
        if self.order.is_full() {
            self.drop_gaps();
        }
        let place = self.order.push(lpn.0);
        self.dirty.put(place, dirty);
        self.places[lpn.index()] = place;
        self.len += 1;
    }
    /// Removes the page at a place.
    #[inline(always)]
    pub fn remove(&mut self, place: u32) {
        self.order.remove(place);
        self.len -= 1;
    }
    /// Makes room for a page in an order that is full.
    #[cold]
    pub fn drop_gaps(&mut self) {
        let Self { places, order, dirty, .. } = self;
        order.drop_gaps(|lpn, from, to| {
            places[lpn as usize] = to;
            dirty.put(to, dirty.has(from));
        });
    }
    /// The oldest page, as it leaves alone.
    #[inline(always)]
    pub fn oldest(&self) -> Option<Leaves> {
        self.leaves(self.order.oldest()?)
    }
    /// The page at a place, which may be counted without end, as it leaves alone.
    #[inline(always)]
    pub fn leaves(&self, place: u32) -> Option<Leaves> {
        let slot = self.order.place(place);
        self.order.at(slot).map(|lpn| Leaves { slot, lpn: Lpn(lpn), dirty: self.is_dirty(slot) })
    }
    /// The page that is the next younger one after that at a place, or the oldest, with its place.
    #[inline(always)]
    pub fn after(&self, place: Option<u32>) -> Option<(u32, Lpn)> {
        let next = place.map_or_else(|| self.order.oldest(), |place| self.order.after(place))?;
        self.order.at(next).map(|lpn| (next, Lpn(lpn)))
    }
    /// Appends the pages newer than their copies on flash, in ascending order.
    pub fn dirty_pages(&self, out: &mut Vec<u32>) {
        let from = out.len();
        out.extend(self.order.each().filter(|(_, place)| self.is_dirty(*place)).map(|(lpn, _)| lpn));
        out[from..].sort_unstable();
    }
    /// Counts the pages in order and appends contradictions.
    pub fn audit(&self, violations: &mut Vec<Violation>) {
        let found = self.order.each().filter(|(lpn, place)| self.places[*lpn as usize] == *place).count();
        if found != self.len as usize || self.order.each().count() != found {
            violations.push(Violation(format!(
                "the RAM counts {} pages, {} are in their order, {found} of them where they are looked for",
                self.len,
                self.order.each().count()
            )));
        }
    }
}

impl Serialize for PageQueue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.places.len(), &self.order, &self.dirty).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PageQueue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = |what: String| serde::de::Error::custom(format!("a queue of {what}"));
        let (numbers, order, dirty) = <(u32, Order, Bits)>::deserialize(deserializer)?;
        Vec::<u32>::new()
            .try_reserve_exact(numbers as usize)
            .map_err(|_| wrong(format!("{numbers} numbers, which memory does not hold")))?;
        if !order.is_sound() || !dirty.reaches(order.places()) {
            return Err(wrong("places that do not fit together".to_owned()));
        }
        let (mut places, mut len) = (table(0, numbers as usize), 0);
        for (lpn, place) in order.each() {
            let before = places.get(lpn as usize).copied().unwrap_or(place);
            if lpn >= numbers || before != place && order.has(before, lpn) {
                return Err(wrong(format!("{numbers} numbers that holds {lpn}, or holds it twice")));
            }
            places[lpn as usize] = place;
            len += 1;
        }
        Ok(Self { places, order, dirty, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Random uses, removals and saves, against a plain list of the pages.
    #[test]
    fn a_queue_keeps_the_order_of_last_use() {
        let mut state = 1u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for held in [1, 2, 3, 7, 20] {
            let (mut queue, mut model) = (PageQueue::new(held, 40), VecDeque::new());
            for _ in 0..3_000 {
                let lpn = Lpn(below(40) as u32);
                let place = queue.find(lpn);
                let at = model.iter().position(|(page, _)| *page == lpn);
                assert_eq!(place.is_some(), at.is_some());
                if let (Some(place), Some(at)) = (place, at) {
                    queue.remove(place);
                    model.remove(at);
                }
                if below(8) > 0 {
                    if queue.len() == held {
                        let oldest = queue.oldest().expect("it is full");
                        assert_eq!(Some((oldest.lpn, oldest.dirty)), model.pop_front());
                        queue.remove(oldest.slot);
                    }
                    let dirty = below(2) == 0;
                    queue.push(lpn, dirty);
                    model.push_back((lpn, dirty));
                }
                let (mut found, mut place) = (Vec::new(), None);
                while let Some((next, page)) = queue.after(place) {
                    found.push((page, queue.is_dirty(next)));
                    place = Some(next);
                }
                assert_eq!(found, model.iter().copied().collect::<Vec<_>>());
                let mut violations = Vec::new();
                queue.audit(&mut violations);
                assert!(violations.is_empty(), "{violations:?}");
                if below(100) == 0 {
                    let saved = serde_json::to_string(&queue).expect("it is plain data");
                    queue = serde_json::from_str(&saved).expect("as it was saved");
                }
            }
        }
    }

    #[test]
    fn a_queue_that_no_queue_wrote_is_refused() {
        let read = |text: &str| serde_json::from_str::<PageQueue>(text).map(|queue| queue.len());
        let none = u32::MAX;
        let order = |ring: [u32; 4], back: u32| format!("{{\"ring\":{ring:?},\"front\":0,\"back\":{back}}}");
        assert_eq!(read(&format!("[9, {}, [0]]", order([5, none, 7, none], 3))).expect("as it is written"), 2);
        for (ring, back) in [([5, none, 5, none], 3), ([9, none, none, none], 1), ([5, none, 7, none], 1)] {
            assert!(read(&format!("[9, {}, [0]]", order(ring, back))).is_err(), "{ring:?}");
        }
        assert!(read(&format!("[9, {}, []]", order([5, none, 7, none], 3))).is_err(), "without bits");
    }
}
