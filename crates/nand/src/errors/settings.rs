//! `[errors]`: what users write about raw bit errors, and its validation.

use super::correction::Correction;
use super::rates::Rates;
use super::variation::Variation;
use flashwright_block::{Bytes, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether reads find bit errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorLaw {
    /// No errors: every read succeeds at once.
    #[default]
    None,
    /// Errors grow with wear, age and reads, by the power laws of Kim, Choi and Min (FAST 2019).
    PowerLaw,
}

/// `[errors]`: raw bit errors of the cells, their correction, and when a block must be rewritten.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ErrorSettings {
    /// Whether reads find bit errors.
    pub law: ErrorLaw,
    /// Bytes of data that are corrected together. Their parity is not counted.
    #[schemars(extend("x-minimum" = "512 B", "x-maximum" = "16 KiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B from {min} to {max}"))]
    pub codeword: Bytes,
    /// Wrong bits of a codeword that decoding corrects after a normal read.
    #[schemars(range(min = 1, max = 65_535))]
    pub correctable: u32,
    /// Temperature of the flash in degrees Celsius. Data age faster above 30 and slower below.
    #[schemars(range(min = -40.0, max = 125.0), extend("x-expected" = "degrees Celsius, {range}"))]
    pub temperature: f64,
    /// Activation energy of charge loss in electronvolts (Arrhenius). 0: age does not depend on the temperature.
    #[schemars(range(min = 0.0, max = 3.0), extend("x-expected" = "electronvolts, {range}"))]
    pub activation_energy: f64,
    /// Age of the data that the drive holds when measuring begins, as if it had lain unused for so long. Data written
    /// from then on age with the time of the run.
    #[schemars(extend("x-maximum" = "3650 d"))]
    pub age_at_start: Nanos,
    /// Erases that every block went through before the run. They count for errors only, not for `wear.pe-cycles-max`.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub pe_cycles_at_start: u32,
    /// How much blocks differ: the standard deviation of the logarithm of their error rates. 0: all are alike.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expected" = "a standard deviation, {range}"))]
    pub block_sigma: f64,
    /// Error rate of a page in SLC mode relative to the mean page of the same block with all bits in use.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expected" = "a share of the error rate, {range}"))]
    pub slc_share: f64,
    /// Retries of a read with other read voltages after a normal read failed.
    #[schemars(range(min = 0, max = 64))]
    pub retries_max: u8,
    /// Share of the errors from age and reads that each retry leaves: its read voltages lie closer to where the cells
    /// moved.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expected" = "a share of the errors, {range}"))]
    pub retry_keep: f64,
    /// Share of the errors from age and reads that no read voltage removes.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expected" = "a share of the errors, {range}"))]
    pub retry_floor: f64,
    /// Extra reads of soft decoding, which follows the last retry. 0: no soft decoding.
    #[schemars(range(min = 0, max = 16))]
    pub soft_reads: u8,
    /// Time of soft decoding, beside its reads.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub soft_decode: Nanos,
    /// Wrong bits of a codeword that soft decoding corrects.
    #[schemars(range(min = 1, max = 65_535))]
    pub soft_correctable: u32,
    /// Reads of a block after which it must be rewritten. 0: their number alone is no reason.
    #[schemars(range(min = 0, max = 16_000_000))]
    pub reclaim_reads: u32,
    /// A block must be rewritten when the errors that remain at the best read voltages pass this share of
    /// `errors.correctable`, and is worn out if freshly written data already do.
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1.0, "x-expected" = "a share of errors.correctable, {range}"))]
    pub reclaim_share: f64,
    /// Age of data, at 30 degrees Celsius, after which a read has their block rewritten. `"0 ns"`: age alone is no
    /// reason.
    #[schemars(extend("x-maximum" = "3650 d"))]
    pub refresh_age: Nanos,
    /// Constants of the error rate.
    pub rates: RateSettings,
}

/// `[errors.rates]`: constants of the raw bit error rate, fresh + wear * cycles^wear-power + retention *
/// cycles^retention-wear-power * hours^retention-power + disturb * cycles^disturb-wear-power * reads^disturb-power. The
/// defaults are those of a 72-layer TLC chip (Kim, Choi and Min, FAST 2019).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RateSettings {
    /// Error rate of new cells.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub fresh: f64,
    /// Factor of wear.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub wear: f64,
    /// Exponent of the cycles in wear.
    #[schemars(range(min = 0.0, max = 5.0))]
    pub wear_power: f64,
    /// Factor of age.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub retention: f64,
    /// Exponent of the cycles in age.
    #[schemars(range(min = 0.0, max = 5.0))]
    pub retention_wear_power: f64,
    /// Exponent of the hours in age.
    #[schemars(range(min = 0.0, max = 5.0))]
    pub retention_power: f64,
    /// Factor of reads.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub disturb: f64,
    /// Exponent of the cycles in reads.
    #[schemars(range(min = 0.0, max = 5.0))]
    pub disturb_wear_power: f64,
    /// Exponent of the reads: those of the block since it was programmed, divided by its pages.
    #[schemars(range(min = 0.0, max = 5.0))]
    pub disturb_power: f64,
}

impl Default for RateSettings {
    fn default() -> Self {
        // Their source, and how they were checked: docs/explanation/errors.md.
        Self {
            fresh: 1.48e-3,
            wear: 3.90e-10,
            wear_power: 2.05,
            retention: 6.28e-5,
            retention_wear_power: 0.14,
            retention_power: 0.54,
            disturb: 3.73e-9,
            disturb_wear_power: 0.33,
            disturb_power: 1.71,
        }
    }
}

/// The sources of the defaults are listed in `docs/explanation/errors.md`.
impl Default for ErrorSettings {
    fn default() -> Self {
        Self {
            law: ErrorLaw::None,
            codeword: Bytes(1024),
            correctable: 72,
            temperature: 30.0,
            activation_energy: 1.1,
            age_at_start: Nanos(0),
            pe_cycles_at_start: 0,
            block_sigma: 0.1,
            slc_share: 0.01,
            retries_max: 40,
            retry_keep: 0.9,
            retry_floor: 0.05,
            soft_reads: 2,
            soft_decode: Nanos(50_000),
            soft_correctable: 108,
            reclaim_reads: 0,
            reclaim_share: 0.75,
            refresh_age: Nanos(0),
            rates: RateSettings::default(),
        }
    }
}

/// A setting that does not fit the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorProblem {
    /// The key below `errors`.
    pub key: &'static str,
    /// What was found, and what is expected.
    pub what: String,
}

/// Blocks, of a hundred, that the settings must leave usable when the run begins.
const USABLE: f64 = 0.99;

impl ErrorSettings {
    /// Bits of a codeword.
    pub(super) fn codeword_bits(&self) -> u32 {
        u32::try_from(self.codeword.0.saturating_mul(8)).unwrap_or(u32::MAX)
    }

    /// Mean errors in a codeword above which a block must be rewritten.
    pub(super) fn errors_max(&self) -> f64 {
        self.reclaim_share * f64::from(self.correctable)
    }

    /// The share of the errors from age and reads that the last retry leaves.
    pub(super) fn best_keep(&self) -> f64 {
        self.retry_keep.powi(i32::from(self.retries_max)).max(self.retry_floor)
    }

    /// Settings that contradict each other on flash with so many bits in a cell and bytes in a page. Ranges of single
    /// keys are not checked.
    ///
    /// ```
    /// # use flashwright_nand::{ErrorLaw, ErrorSettings};
    /// # use flashwright_block::Bytes;
    /// let weak = ErrorSettings { law: ErrorLaw::PowerLaw, correctable: 20, ..ErrorSettings::default() };
    /// let problems = weak.problems(3, Bytes(16 << 10));
    /// assert_eq!(problems[0].key, "correctable");
    /// assert!(problems[0].what.starts_with("found 20, expected 27 or more: "));
    /// ```
    #[must_use]
    pub fn problems(&self, bits_per_cell: u32, page: Bytes) -> Vec<ErrorProblem> {
        let mut problems = Vec::new();
        if self.law == ErrorLaw::None {
            return problems;
        }
        let mut unless = |ok: bool, key, what: String| {
            if !ok {
                problems.push(ErrorProblem { key, what });
            }
        };
        let codeword = self.codeword;
        unless(
            codeword <= page && codeword.0 > 0,
            "codeword",
            format!("found {codeword}, expected at most a page = {page}"),
        );
        let bits = self.codeword_bits();
        let half = self.correctable < bits / 2;
        let fewer = format!("expected fewer than half the {bits} bits of errors.codeword");
        unless(half, "correctable", format!("found {}, {fewer}", self.correctable));
        let soft = self.soft_correctable;
        if self.soft_reads > 0 && half {
            let least = format!("found {soft}, expected at least errors.correctable = {}", self.correctable);
            unless(soft >= self.correctable, "soft-correctable", least);
            unless(soft < bits / 2, "soft-correctable", format!("found {soft}, {fewer}"));
        }
        if !problems.is_empty() {
            return problems;
        }
        // A block that cannot hold even fresh data is retired when it is erased; most must survive their first use.
        let worst = worst_page(bits_per_cell) * Variation::new(self.block_sigma, 0).quantile(USABLE);
        let rates = Rates::new(self);
        let errors = |cycles| rates.worn(cycles).overlap * worst * f64::from(bits);
        let now = errors(self.pe_cycles_at_start.saturating_add(1));
        if now > self.errors_max() {
            let (new, start) = (errors(1), self.pe_cycles_at_start);
            let because = format!("one block in 100 has {now:.1} errors or more in a codeword of fresh data");
            // The least that do, unless no code could.
            let least = (now / self.reclaim_share).ceil();
            problems.push(if start > 0 && new <= self.errors_max() {
                ErrorProblem {
                    key: "pe-cycles-at-start",
                    what: format!(
                        "found {start}, expected {} or fewer: {because}, and errors.reclaim-share of errors.correctable \
                         is {:.1}",
                        most_cycles(start, |cycles| errors(cycles) <= self.errors_max()),
                        self.errors_max(),
                    ),
                }
            } else if least < f64::from(bits / 2) {
                ErrorProblem {
                    key: "correctable",
                    what: format!(
                        "found {}, expected {least:.0} or more: {because}, which must be within errors.reclaim-share",
                        self.correctable,
                    ),
                }
            } else {
                let of = &self.rates;
                let half = rates.worn(self.pe_cycles_at_start.saturating_add(1)).overlap / 2.0;
                let (key, found) = if of.fresh >= half { ("rates.fresh", of.fresh) } else { ("rates.wear", of.wear) };
                ErrorProblem {
                    key,
                    what: format!("found {found}, expected an error rate that a code can correct: {because}"),
                }
            });
        }
        problems
    }

    /// The decoders of a normal read and of soft decoding, for pages of so many bytes.
    pub(super) fn corrections(&self, page: Bytes) -> (Correction, Correction) {
        let codewords = u32::try_from(page.0.div_ceil(self.codeword.0.max(1)).max(1)).unwrap_or(u32::MAX);
        let bits = self.codeword_bits();
        (Correction::new(bits, self.correctable, codewords), Correction::new(bits, self.soft_correctable, codewords))
    }
}

/// The most cycles before the run, below `start`, for which `fits` holds; it holds for none.
fn most_cycles(start: u32, fits: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, start);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle.saturating_add(1)) { low = middle } else { high = middle }
    }
    low
}

/// The voltages that a read of each page of a cell compares with: a balanced Gray code, 2-3-2 for TLC.
const VOLTAGES: [&[u32]; 4] = [&[1], &[1, 2], &[2, 3, 2], &[4, 3, 4, 4]];

/// The error rate of each page of a cell relative to their mean: errors occur where two neighbouring states overlap, and
/// a page sees those at its own voltages.
pub(super) fn page_factors(bits_per_cell: u32) -> [f64; 4] {
    let voltages = VOLTAGES[bits_per_cell.clamp(1, 4) as usize - 1];
    let mean = f64::from(voltages.iter().sum::<u32>()) / f64::from(u32::try_from(voltages.len()).unwrap_or(1));
    let mut factors = [1.0; 4];
    for (factor, &count) in factors.iter_mut().zip(voltages) {
        *factor = f64::from(count) / mean;
    }
    factors
}

/// The largest of the [`page_factors`].
pub(super) fn worst_page(bits_per_cell: u32) -> f64 {
    let pages = bits_per_cell.clamp(1, 4) as usize;
    page_factors(bits_per_cell)[..pages].iter().copied().fold(0.0, f64::max)
}
