//! The raw bit error rate as a function of wear, age and reads.

use super::settings::{ErrorSettings, RateSettings};
use serde::{Deserialize, Serialize};

/// Boltzmann's constant in electronvolts per kelvin (CODATA 2018).
const BOLTZMANN: f64 = 8.617_333_262e-5;
/// The temperature at which ages count as they are: that of JEDEC's retention requirement for client drives (JESD218).
const REFERENCE: f64 = 30.0;
const KELVIN: f64 = 273.15;
const HOUR_NS: f64 = 3.6e12;

/// An error rate in two parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    /// From new cells and wear: neighbouring states overlap, whatever the read voltage.
    pub overlap: f64,
    /// From age and reads: the states moved away from the read voltages.
    pub shift: f64,
}

impl Rate {
    /// The error rate where a retry leaves `keep` of the shift.
    #[inline]
    pub fn at(self, keep: f64) -> f64 {
        self.overlap + self.shift * keep
    }

    /// That of a page with `factor` times the errors.
    #[inline]
    pub fn times(self, factor: f64) -> Self {
        Self { overlap: self.overlap * factor, shift: self.shift * factor }
    }
}

/// What the cycles of a block make of the constants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Worn {
    pub cycles: u32,
    /// The error rate of data that have just been written.
    pub overlap: f64,
    /// The factors of age and of reads.
    pub retention: f64,
    pub disturb: f64,
}

/// The formula with its constants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Rates {
    constants: RateSettings,
    /// Hours at the reference temperature that pass in a nanosecond.
    hours: f64,
}

impl Rates {
    pub fn new(settings: &ErrorSettings) -> Self {
        let hours = acceleration(settings.temperature, settings.activation_energy) / HOUR_NS;
        Self { constants: settings.rates.clone(), hours }
    }

    /// The hours at the reference temperature that have the effect of an age in nanoseconds.
    #[allow(clippy::cast_precision_loss)] // an age of months need not be exact to the nanosecond
    pub fn hours(&self, age: u64) -> f64 {
        age as f64 * self.hours
    }

    /// The constants after so many cycles: the erases of a block, and one for the program that wrote its data.
    pub fn worn(&self, cycles: u32) -> Worn {
        let (of, real) = (&self.constants, f64::from(cycles));
        Worn {
            cycles,
            overlap: of.fresh + of.wear * real.powf(of.wear_power),
            retention: of.retention * real.powf(of.retention_wear_power),
            disturb: of.disturb * real.powf(of.disturb_wear_power),
        }
    }

    /// The error rate after an age in hours at the reference temperature, and so many reads for each page of the block.
    #[inline]
    pub fn at(&self, worn: Worn, hours: f64, reads: f64) -> Rate {
        let of = &self.constants;
        let shift = worn.retention * hours.powf(of.retention_power) + worn.disturb * reads.powf(of.disturb_power);
        Rate { overlap: worn.overlap, shift }
    }
}

/// How much faster data age at a temperature in degrees Celsius than at the reference (Arrhenius).
fn acceleration(temperature: f64, activation_energy: f64) -> f64 {
    (activation_energy / BOLTZMANN * (1.0 / (REFERENCE + KELVIN) - 1.0 / (temperature + KELVIN))).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rates() -> Rates {
        Rates::new(&ErrorSettings::default())
    }

    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!((found / expected - 1.0).abs() < tolerance, "{found} is not near {expected}");
    }

    /// The values that another simulator prints for the same chip: github.com/jwjeong92/MQSim-JW. They guard against a
    /// slip in a constant or the formula; both may share a slip of the copy.
    #[test]
    fn the_published_chip_has_the_rates_that_another_implementation_prints() {
        let total = |cycles, hours, reads| rates().at(rates().worn(cycles), hours, reads).at(1.0);
        near(rates().worn(1).overlap, 1.48e-3, 1e-6);
        near(total(1000, 0.0, 0.0), 2.030_890e-3, 1e-6);
        near(total(1000, 1000.0, 0.0), 8.916_773e-3, 1e-6);
    }

    /// JESD218 asks the same of a client drive after a year at 30 degrees, 500 hours at 52 and 96 hours at 66.
    #[test]
    fn heat_shortens_a_year_as_the_standard_says() {
        let year = 365.25 * 24.0;
        for (temperature, hours) in [(30.0, year), (52.0, 500.0), (66.0, 96.0)] {
            near(hours * acceleration(temperature, 1.1), year, 0.05);
        }
        assert_eq!(acceleration(70.0, 0.0), 1.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn errors_grow_with_wear_age_reads_and_heat(
            cycles in 1u32..20_000, hours in 0.0f64..30_000.0, reads in 0.0f64..20_000.0, more in 1u32..1000, heat in 0.1f64..40.0,
        ) {
            let rates = rates();
            let total = |cycles, hours, reads| rates.at(rates.worn(cycles), hours, reads).at(1.0);
            let (one, real) = (total(cycles, hours, reads), f64::from(more));
            prop_assert!(total(cycles + more, hours, reads) > one);
            prop_assert!(total(cycles, hours + real, reads) > one);
            prop_assert!(total(cycles, hours, reads + real) > one);
            let hot = Rates::new(&ErrorSettings { temperature: 30.0 + heat, ..ErrorSettings::default() });
            prop_assert!(hot.hours(1_000_000_000) > rates.hours(1_000_000_000));
        }
    }
}
