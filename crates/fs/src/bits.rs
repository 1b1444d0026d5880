//! Sets of small numbers, one bit each, that grow on demand.

/// A set of numbers from 0 up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

#[inline]
fn place(number: u32) -> (usize, u64) {
    (number as usize / 64, 1 << (number % 64))
}

impl Bits {
    /// A set with room for `0..numbers`.
    pub(crate) fn with_room(numbers: u32) -> Self {
        Self { words: vec![0; (numbers as usize).div_ceil(64)] }
    }

    #[inline]
    pub(crate) fn has(&self, number: u32) -> bool {
        let (word, bit) = place(number);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Adds `number`; returns whether it is new.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = place(number);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Removes `number`; returns whether it was there.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) -> bool {
        let (word, bit) = place(number);
        match self.words.get_mut(word) {
            Some(word) => {
                let was = *word & bit != 0;
                *word &= !bit;
                was
            }
            None => false,
        }
    }

    /// Empties the set and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// The first number of `from..to` in the set.
    #[inline]
    pub(crate) fn next(&self, from: u32, to: u32) -> Option<u32> {
        self.find(from, to, |word| self.words.get(word).copied().unwrap_or(0))
    }

    /// The first number of `from..to` in neither `self` nor `other`.
    #[inline]
    pub(crate) fn next_outside(&self, other: &Bits, from: u32, to: u32) -> Option<u32> {
        let get = |bits: &Bits, word: usize| bits.words.get(word).copied().unwrap_or(0);
        self.find(from, to, |word| !(get(self, word) | get(other, word)))
    }

    #[inline]
    fn find(&self, from: u32, to: u32, word_at: impl Fn(usize) -> u64) -> Option<u32> {
        let mut at = from;
        while at < to {
            let (word, _) = place(at);
            let rest = word_at(word) >> (at % 64);
            if rest != 0 {
                return Some(at + rest.trailing_zeros()).filter(|found| *found < to);
            }
            at = (at / 64 + 1).checked_mul(64)?;
        }
        None
    }

    /// How many numbers are in the set.
    pub(crate) fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_scan_finds() {
        let (mut bits, mut other) = (Bits::with_room(10), Bits::default());
        for number in [3, 63, 64, 65, 200, 201] {
            assert!(bits.insert(number) && !bits.insert(number));
        }
        (0..63).filter(|n| n % 2 == 0).for_each(|n| assert!(other.insert(n)));
        for from in 0..260 {
            for to in [from, from + 1, 64, 130, 201, 300] {
                assert_eq!(bits.next(from, to), (from..to).find(|n| bits.has(*n)), "{from}..{to}");
                let outside = (from..to).find(|n| !bits.has(*n) && !other.has(*n));
                assert_eq!(bits.next_outside(&other, from, to), outside, "{from}..{to}");
            }
        }
        assert_eq!(bits.count(), 6);
        assert!(bits.remove(64) && !bits.remove(64) && !bits.remove(9999) && !bits.has(64));
    }
}
