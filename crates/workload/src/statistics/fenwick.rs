//! A Fenwick tree over marks: sets and clears one, and counts those after a place, in logarithmic time.

pub(crate) struct Fenwick {
    sums: Vec<u32>,
    all: u32,
}

impl Fenwick {
    /// No marks, `places` places.
    pub(crate) fn new(places: usize) -> Self {
        Fenwick { sums: vec![0; places + 1], all: 0 }
    }

    /// The first `marked` places marked.
    pub(crate) fn first_marked(places: usize, marked: usize) -> Self {
        let mut tree = Self::new(places);
        (0..marked).for_each(|at| tree.set(at));
        tree
    }

    pub(crate) fn places(&self) -> usize {
        self.sums.len() - 1
    }

    pub(crate) fn set(&mut self, at: usize) {
        self.all += 1;
        let mut node = at + 1;
        while node < self.sums.len() {
            self.sums[node] += 1;
            node += node & node.wrapping_neg();
        }
    }

    pub(crate) fn clear(&mut self, at: usize) {
        self.all -= 1;
        let mut node = at + 1;
        while node < self.sums.len() {
            self.sums[node] -= 1;
            node += node & node.wrapping_neg();
        }
    }

    /// Marks at places above `at`.
    pub(crate) fn after(&self, at: usize) -> u32 {
        let (mut node, mut before) = (at + 1, 0);
        while node > 0 {
            before += self.sums[node];
            node -= node & node.wrapping_neg();
        }
        self.all - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_a_list_counts() {
        let (mut tree, mut list) = (Fenwick::first_marked(100, 7), vec![false; 100]);
        list[..7].fill(true);
        for step in 0..1000_usize {
            let at = step * 37 % 100;
            if list[at] {
                tree.clear(at)
            } else {
                tree.set(at)
            }
            list[at] = !list[at];
            let asked = step * 61 % 100;
            assert_eq!(tree.after(asked) as usize, list[asked + 1..].iter().filter(|mark| **mark).count());
        }
    }
}
