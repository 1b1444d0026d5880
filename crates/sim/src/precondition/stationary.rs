//! How full the blocks of a page-mapped drive are under uniform random writes, once nothing changes any more.
//!
//! Blocks of `b` pages, of which a share `u` is valid. A valid page is overwritten at rate 1 in some unit of time, and blocks are cleaned
//! at rate `k` for each block. With `s(j)` the share of blocks that have `j` valid pages or more, and a policy that takes the fewest valid
//! pages of `d` blocks drawn at random, as many blocks must enter the set that `s(j)` counts, by being filled, as leave it, by losing a page
//! or by being cleaned (Van Houdt, "A mean field model for a class of garbage collection algorithms in flash-based solid state drives",
//! SIGMETRICS 2013):
//!
//! ```text
//!   k = j n(j) + k s(j)^d      so that   n(j) = s(j) - s(j + 1) = k (1 - s(j)^d) / j
//! ```
//!
//! Random cleaning is d = 1; greedy cleaning has drawn all blocks. `k` follows from `u`. Under FIFO a block holds `b exp(-a / U)` valid pages
//! at age `a`, in host writes since it was filled, with `U` logical pages, and the oldest is cleaned (Desnoyers, SYSTOR 2012).

/// How a victim is chosen, as far as the distribution depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cleaning {
    /// The fewest valid pages of this many blocks.
    FewestOf(u32),
    /// The oldest block.
    Oldest,
}

/// Valid pages of `blocks` blocks, the one that is cleaned first first, which add up to the pages given as nearly as whole numbers allow.
///
/// # Panics
/// Unless there are blocks, and pages that fit into them.
pub(super) fn valid_pages(cleaning: Cleaning, pages_per_block: u32, blocks: u32, pages: u64) -> Vec<f64> {
    let (b, n) = (f64::from(pages_per_block), f64::from(blocks));
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    let used = pages as f64 / (b * n);
    assert!(blocks > 0 && used <= 1.0, "{pages} pages in {blocks} blocks of {pages_per_block}");
    let shares = match cleaning {
        Cleaning::FewestOf(choices) => shares_by_choices(choices, pages_per_block, used),
        Cleaning::Oldest => Vec::new(),
    };
    let oldest = if cleaning == Cleaning::Oldest { oldest_share(used) } else { 0.0 };
    let mut counts = Vec::with_capacity(blocks as usize);
    let (mut at, mut below) = (0, shares.first().copied().unwrap_or_default());
    for block in 0..blocks {
        let position = (f64::from(block) + 0.5) / n;
        counts.push(match cleaning {
            Cleaning::Oldest => b * oldest.powf(1.0 - position),
            Cleaning::FewestOf(_) => {
                while below < position && at + 1 < shares.len() {
                    at += 1;
                    below += shares[at];
                }
                f64::from(u32::try_from(at).expect("pages of a block"))
            }
        });
    }
    scale_to(&mut counts, used * b * n, b);
    counts
}

/// Moves numbers towards 0 or `most`, so that they add up to `sum`.
fn scale_to(counts: &mut [f64], sum: f64, most: f64) {
    let found: f64 = counts.iter().sum();
    let room: f64 = counts.iter().map(|count| most - count).sum();
    if found > sum {
        counts.iter_mut().for_each(|count| *count *= sum / found);
    } else if room > 0.0 {
        counts.iter_mut().for_each(|count| *count += (most - *count) * (sum - found) / room);
    }
}

/// By number of valid pages, the share of blocks that have so many.
fn shares_by_choices(choices: u32, pages_per_block: u32, used: f64) -> Vec<f64> {
    let mut rate = [1e-9f64, 1e9];
    for _ in 0..100 {
        let middle = (rate[0] * rate[1]).sqrt();
        let shares = shares_at_rate(middle, choices, pages_per_block);
        let valid: f64 = (0u32..).zip(&shares).map(|(pages, share)| f64::from(pages) * share).sum();
        rate[usize::from(valid > used * f64::from(pages_per_block))] = middle;
    }
    shares_at_rate(rate[0], choices, pages_per_block)
}

/// As [`shares_by_choices`], for blocks that are cleaned at a rate.
fn shares_at_rate(rate: f64, choices: u32, pages_per_block: u32) -> Vec<f64> {
    let mut shares = vec![0.0; pages_per_block as usize + 1];
    let mut above = 0.0f64; // the share of blocks with more pages
    for pages in (1..=pages_per_block).rev() {
        let wanted = |share: f64| rate * (1.0 - (above + share).powf(f64::from(choices))) / f64::from(pages);
        let mut share = [0.0, 1.0 - above];
        for _ in 0..40 {
            let middle = f64::midpoint(share[0], share[1]);
            share[usize::from(wanted(middle) < middle)] = middle;
        }
        shares[pages as usize] = share[0];
        above += share[0];
    }
    shares[0] = 1.0 - above;
    shares
}

/// The share of valid pages of the oldest block under FIFO: x = exp(-(1 - x) / u).
fn oldest_share(used: f64) -> f64 {
    let mut share = 0.0f64;
    for _ in 0..100_000 {
        let next = (-(1.0 - share) / used).exp();
        if next - share < 1e-15 {
            break;
        }
        share = next;
    }
    share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::cast_precision_loss)]
    fn mean(counts: &[f64]) -> f64 {
        counts.iter().sum::<f64>() / counts.len() as f64
    }

    #[test]
    fn greedy_holds_the_shares_that_its_closed_form_gives() {
        // Without blocks below the victim's m, n(j) = k / j above it, 1 = k ln(b / m) and u = k (1 - m / b) for large b: u = 0.8 gives
        // m / b = 0.629, so a write costs 1 / (1 - 0.629) = 2.69.
        let counts = valid_pages(Cleaning::FewestOf(100_000), 1024, 100_000, 81_920_000);
        assert!((mean(&counts) - 819.2).abs() < 0.01, "{}", mean(&counts));
        let least = counts[500] / 1024.0; // the first blocks are below it, as some always are
        assert!((least - 0.629).abs() < 0.002, "{least}");
        let at_least = |pages: f64| counts.iter().filter(|count| **count >= pages).count() as f64 / 1e5;
        // The share above x is k ln(b / x), with k = 1 / ln(1 / 0.629).
        for pages in [700.0, 800.0, 900.0, 1000.0] {
            let expected = (1024.0f64 / pages).ln() / (1.0f64 / 0.629).ln();
            assert!((at_least(pages) - expected).abs() < 0.005, "{pages}: {} for {expected}", at_least(pages));
        }
    }

    #[test]
    fn random_cleaning_takes_blocks_as_full_as_all() {
        // d = 1: a block is cleaned at rate k whatever it holds, so the one cleaned has u b valid pages; the balance of pages is
        // k (b - u b) = u b, thus k = u / (1 - u), and n(b) = k (1 - n(b)) / b gives n(b) = k / (k + b).
        let shares = shares_by_choices(1, 64, 0.75);
        assert!((shares[64] - 3.0 / 67.0).abs() < 1e-6, "{}", shares[64]);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn fifo_ages_blocks_one_after_another() {
        let counts = valid_pages(Cleaning::Oldest, 128, 1000, 102_400); // u = 0.8
        let x = oldest_share(0.8);
        assert!((1.0 / (1.0 - x) - 2.6927).abs() < 1e-4, "{x}: solved by hand, a write costs 2.6927");
        assert!((counts[0] / 128.0 - x).abs() < 0.002 && counts.is_sorted() && (mean(&counts) - 102.4).abs() < 1e-6);
    }

    #[test]
    fn full_and_nearly_empty_drives_have_a_distribution_too() {
        for (pages, cleaning) in [(1, Cleaning::Oldest), (1, Cleaning::FewestOf(8)), (512, Cleaning::FewestOf(8))] {
            let counts = valid_pages(cleaning, 64, 8, pages);
            let sum: f64 = counts.iter().sum();
            assert!((sum - pages as f64).abs() < 1e-6, "{pages}: {sum}");
            assert!(counts.iter().all(|count| (0.0..=64.0).contains(count)));
        }
    }
}
