//! Up to 16 children of a block in order of last use: a nibble for each.

/// The order; the length is kept beside it.
#[derive(Clone, Copy, Default)]
pub(super) struct Order {
    nibbles: u64,
    len: u8,
}

impl Order {
    pub(super) fn len(self) -> usize {
        self.len as usize
    }

    /// The child that `rank` others were used after.
    pub(super) fn at(self, rank: usize) -> usize {
        (self.nibbles >> (4 * rank)) as usize & 15
    }

    /// How many others were used after `child`; none if it was not used.
    pub(super) fn rank(self, child: usize) -> Option<usize> {
        (0..self.len()).find(|rank| self.at(*rank) == child)
    }

    /// Makes `child` the last one used; says whether it was not in the order before.
    pub(super) fn touch(&mut self, child: usize) -> bool {
        let found = self.rank(child);
        let rank = found.unwrap_or(self.len());
        // The nibbles up to the child's own move up by one.
        let moved = if rank >= 15 { u64::MAX } else { (1u64 << (4 * (rank + 1))) - 1 };
        self.nibbles = (self.nibbles & !moved) | (((self.nibbles << 4) | child as u64) & moved);
        self.len += u8::from(found.is_none());
        found.is_none()
    }

    /// One bit for each child that was used.
    pub(super) fn used(self) -> u32 {
        (0..self.len()).fold(0, |used, rank| used | 1 << self.at(rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::{Seed, below};

    /// Against a vector that is searched and shifted.
    #[test]
    fn the_order_is_that_of_a_plain_list() {
        let mut rng = Seed(4).stream("test");
        for fan in [1, 2, 8, 16] {
            let (mut order, mut plain) = (Order::default(), Vec::new());
            for _ in 0..500 {
                let child = below(&mut rng, fan) as usize;
                let new = !plain.contains(&child);
                plain.retain(|other| *other != child);
                plain.insert(0, child);
                assert_eq!(order.touch(child), new);
                assert_eq!((0..order.len()).map(|rank| order.at(rank)).collect::<Vec<_>>(), plain);
                assert_eq!(order.rank(child), Some(0));
                assert_eq!(order.used(), plain.iter().fold(0, |used, child| used | 1 << child));
            }
        }
    }
}
