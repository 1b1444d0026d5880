//! Draws from any fixed discrete distribution in constant time (Walker's alias method, Vose's construction).
//!
//! Each of the `n` columns holds its own number and one other; a draw picks a column and then one of the two.
//! 8 bytes a column; thresholds have 32 bits, so a probability is off by less than 1/(n 2^32).

use flashwright_block::Rng;
use rand_core::RngCore;

#[derive(Clone, Copy, Debug)]
struct Column {
    /// The column keeps the draw while the fraction is below this, out of 2^32.
    keep: u32,
    /// The outcome otherwise.
    other: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct AliasTable {
    columns: Vec<Column>,
}

impl AliasTable {
    /// A table that draws `i` with probability `weights[i]` over their sum. Weights are 0 or more, one at least
    /// above 0, at most 2^32 of them.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(crate) fn new(weights: &[f64]) -> Self {
        assert!(!weights.is_empty() && u32::try_from(weights.len() - 1).is_ok(), "1 to 2^32 weights");
        let total: f64 = weights.iter().sum();
        assert!(total > 0.0 && total.is_finite(), "weights must have a sum above 0");
        let mut scaled: Vec<f64> = weights.iter().map(|weight| weight * weights.len() as f64 / total).collect();
        let mut columns: Vec<Column> = (0..weights.len() as u32).map(|i| Column { keep: u32::MAX, other: i }).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..weights.len()).partition(|i| scaled[*i] < 1.0);
        while let (Some(less), Some(more)) = (small.pop(), large.last().copied()) {
            columns[less] = Column { keep: (scaled[less] * 4_294_967_296.0) as u32, other: more as u32 };
            scaled[more] -= 1.0 - scaled[less];
            if scaled[more] < 1.0 {
                large.pop();
                small.push(more);
            }
        }
        AliasTable { columns }
    }

    /// A draw.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // halves of a 128-bit product
    pub(crate) fn draw(&self, rng: &mut Rng) -> usize {
        let product = u128::from(rng.next_u64()) * self.columns.len() as u128;
        let (index, fraction) = ((product >> 64) as usize, (product as u64 >> 32) as u32);
        let column = self.columns[index];
        if fraction < column.keep { index } else { column.other as usize }
    }

    /// The probability of each outcome according to the table.
    #[allow(clippy::cast_precision_loss)] // at most 2^32 columns
    pub(crate) fn probabilities(&self) -> Vec<f64> {
        let n = self.columns.len() as f64;
        let mut shares = vec![0.0; self.columns.len()];
        for (i, column) in self.columns.iter().enumerate() {
            let keep = f64::from(column.keep) / 4_294_967_296.0;
            shares[i] += keep / n;
            shares[column.other as usize] += (1.0 - keep) / n;
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::Seed;

    #[test]
    fn the_table_has_the_weights() {
        for weights in [vec![1.0], vec![3.0, 1.0], vec![0.0, 5.0, 0.0, 1.0], (1..=999).map(f64::from).collect()] {
            let total: f64 = weights.iter().sum();
            for (found, weight) in AliasTable::new(&weights).probabilities().iter().zip(&weights) {
                assert!((found - weight / total).abs() < 1e-9, "{found} {}", weight / total);
            }
        }
    }

    /// Weights 1, 2, 3, 4 drawn 100,000 times: one sigma is at most 155.
    #[test]
    fn draws_follow_the_weights() {
        let (table, mut rng) = (AliasTable::new(&[1.0, 2.0, 3.0, 4.0]), Seed(3).stream("test"));
        let mut counts = [0i64; 4];
        (0..100_000).for_each(|_| counts[table.draw(&mut rng)] += 1);
        for (count, expected) in counts.iter().zip([10_000, 20_000, 30_000, 40_000]) {
            assert!((count - expected).abs() < 700, "{counts:?}");
        }
    }
}
