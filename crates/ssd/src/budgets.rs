//! The erase budget of each block.

use flashwright_block::{Rng, Seed, unit_interval};
use flashwright_config::DriveConfig;
use flashwright_ftl::WearSettings;
use flashwright_nand::{BlockId, WearLimit};
use std::f64::consts::TAU;

/// The budgets of the blocks of a drive: those of `[wear]`, and what its errors leave of them. Errors after the last erase depend
/// on nothing that the run decides, so where they pass correction is known beforehand.
pub(crate) fn of_drive(config: &DriveConfig, seed: Seed) -> WearLimit {
    let blocks = config.layout().blocks();
    let limit = limit(&config.wear, blocks, seed);
    let Some(errors) = crate::engine::errors_of(config, seed) else { return limit };
    let until_worn = (0..blocks).map(|block| errors.erases_left(BlockId(block)));
    WearLimit::Each(match limit {
        WearLimit::Unlimited => until_worn.collect(),
        WearLimit::Same(most) => until_worn.map(|left| left.min(most)).collect(),
        WearLimit::Each(each) => until_worn.zip(each).map(|(left, most)| left.min(most)).collect(),
    })
}

/// The budgets of this many blocks, from their own random stream. A budget is at least 1; the normal distribution is
/// truncated there, which at a spread of 0.5 changes the mean by less than 1 %.
pub(crate) fn limit(wear: &WearSettings, blocks: u32, seed: Seed) -> WearLimit {
    let mean = f64::from(wear.pe_cycles_max);
    let mut rng = seed.stream("wear.pe-cycles");
    let mut each =
        |draw: &dyn Fn(&mut Rng) -> f64| WearLimit::Each((0..blocks).map(|_| whole(draw(&mut rng))).collect());
    if wear.pe_cycles_max == 0 {
        WearLimit::Unlimited
    } else if wear.pe_cycles_spread > 0.0 {
        each(&|rng| mean * (1.0 + wear.pe_cycles_spread * normal(rng)))
    } else if wear.pe_cycles_weibull > 0.0 {
        let shape = wear.pe_cycles_weibull;
        let scale = mean / gamma(1.0 + 1.0 / shape);
        each(&|rng| scale * (-(1.0 - unit_interval(rng)).ln()).powf(1.0 / shape))
    } else {
        WearLimit::Same(wear.pe_cycles_max)
    }
}

/// Rounded, at least 1, within 32 bits.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped
fn whole(cycles: f64) -> u32 {
    cycles.round().clamp(1.0, f64::from(u32::MAX)) as u32
}

/// A number of the standard normal distribution (Box and Muller, 1958).
fn normal(rng: &mut Rng) -> f64 {
    let (u, v) = (1.0 - unit_interval(rng), unit_interval(rng));
    (-2.0 * u.ln()).sqrt() * (TAU * v).cos()
}

/// The gamma function for x from 1 to 2 (Abramowitz and Stegun, 6.1.36; within 3e-7).
fn gamma(x: f64) -> f64 {
    const B: [f64; 8] = [
        -0.577_191_652,
        0.988_205_891,
        -0.897_056_937,
        0.918_206_857,
        -0.756_704_078,
        0.482_199_394,
        -0.193_527_818,
        0.035_868_343,
    ];
    1.0 + (x - 1.0) * B.iter().rev().fold(0.0, |sum, b| sum * (x - 1.0) + b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(wear: &WearSettings) -> Vec<f64> {
        match limit(wear, 40_000, Seed(5)) {
            WearLimit::Each(each) => each.into_iter().map(f64::from).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn mean_and_deviation(all: &[f64]) -> (f64, f64) {
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        (mean, (all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / all.len() as f64).sqrt())
    }

    #[test]
    fn gamma_has_its_known_values() {
        for (x, value) in [(1.0, 1.0), (1.5, 0.886_226_925), (2.0, 1.0), (1.25, 0.906_402_477)] {
            assert!((gamma(x) - value).abs() < 3e-7, "{x}");
        }
    }

    #[test]
    fn budgets_have_the_mean_and_the_spread_that_were_asked_for() {
        let base = WearSettings { pe_cycles_max: 3_000, ..WearSettings::default() };
        let (mean, deviation) = mean_and_deviation(&drawn(&WearSettings { pe_cycles_spread: 0.1, ..base.clone() }));
        assert!((mean / 3_000.0 - 1.0).abs() < 0.003 && (deviation / 300.0 - 1.0).abs() < 0.02, "{mean} {deviation}");
        for shape in [1.0, 2.0, 5.0, 10.0] {
            let (mean, deviation) =
                mean_and_deviation(&drawn(&WearSettings { pe_cycles_weibull: shape, ..base.clone() }));
            // Variance of the Weibull distribution over its squared mean.
            let relative = (1.0 + 1.0 / shape, 1.0 + 2.0 / shape);
            let second =
                if relative.1 > 2.0 { (relative.1 - 1.0) * gamma(relative.1 - 1.0) } else { gamma(relative.1) };
            let expected = (second / gamma(relative.0).powi(2) - 1.0).sqrt();
            assert!((mean / 3_000.0 - 1.0).abs() < 0.015, "shape {shape}: {mean}");
            assert!((deviation / mean / expected - 1.0).abs() < 0.03, "shape {shape}: {deviation}");
        }
        assert_eq!(limit(&base, 4, Seed(1)), WearLimit::Same(3_000));
        assert_eq!(limit(&WearSettings::default(), 4, Seed(1)), WearLimit::Unlimited);
    }

    #[test]
    fn a_seed_gives_its_budgets_and_none_is_0() {
        let wear = WearSettings { pe_cycles_max: 2, pe_cycles_spread: 0.5, ..WearSettings::default() };
        let one = limit(&wear, 1_000, Seed(1));
        assert_eq!(one, limit(&wear, 1_000, Seed(1)));
        assert_ne!(one, limit(&wear, 1_000, Seed(2)));
        let WearLimit::Each(each) = one else { panic!("the same for all") };
        assert!(each.iter().all(|cycles| *cycles >= 1) && each.contains(&1));
    }
}
