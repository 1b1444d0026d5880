//! Up to 16 children of a block in order of last use: a nibble for each.

/// 1 in each nibble.
const ONES: u64 = 0x1111_1111_1111_1111;

/// The order; the length is kept beside it.
#[derive(Clone, Copy, Default)]
pub(super) struct Order {
    nibbles: u64,
    len: u8,
    /// One bit for each child that was used.
    used: u16,
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
        // The lowest nibble that is 0 once the child's is taken from all.
        let rest = self.nibbles ^ (child as u64 * ONES);
        let zero = rest.wrapping_sub(ONES) & !rest & (ONES << 3);
        let rank = zero.trailing_zeros() as usize / 4;
        (rank < self.len()).then_some(rank)
    }

    /// Makes `child` the last one used; says whether it was not in the order before.
    pub(super) fn touch(&mut self, child: usize) -> bool {
        let found = self.rank(child);
        let rank = found.unwrap_or(self.len());
        // The nibbles up to the child's own move up by one.
        let moved = if rank >= 15 { u64::MAX } else { (1u64 << (4 * (rank + 1))) - 1 };
        self.nibbles = (self.nibbles & !moved) | (((self.nibbles << 4) | child as u64) & moved);
        self.len += u8::from(found.is_none());
        self.used |= 1 << child;
        found.is_none()
    }

    /// One bit for each child that was used.
    pub(super) fn used(self) -> u32 {
        self.used.into()
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
