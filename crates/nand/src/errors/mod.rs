//! Raw bit errors: how many a read meets, what it takes to correct them, and which blocks must be rewritten or retired.
//!
//! ```text
//!   wear, age, reads ── Rates ──► error rate ── page of the cell, block ──► Correction: does a page fail? one draw
//!                                                                             │ fails: retry, the shift shrinks
//!                                                                             ▼
//!                                                        retries, then soft decoding, then uncorrectable
//! ```
//!
//! [`Errors`] knows neither data nor the translation layer, and keeps no time: its caller says when a block is erased,
//! programmed and read, adds the extra time to the read, and rewrites or retires the blocks that it names. It keeps 16
//! bytes for each block.
//!
//! **Cost.** Most reads of a healthy block take an addition and two comparisons. Each block remembers a number of reads
//! and an age, both powers of two, below which a failure is less likely than 2^-40 (`correction::NEVER`), even on its worst
//! page, and nothing asks for its rewriting. Up to there nothing is computed or drawn. Beyond, a read computes its error
//! rate, and draws one number if a failure is likelier than that.
//!
//! **Draws.** One number for a read stands for the errors of its codewords at all read voltages: a page that fails more
//! rarely with other voltages succeeds whenever it did before. The stream depends on the seed and on the order of the calls.

mod correction;
mod counts;
mod rates;
mod settings;
#[cfg(test)]
mod tests;
mod variation;

pub use counts::ErrorCounts;
pub use settings::{ErrorLaw, ErrorProblem, ErrorSettings, RateSettings};

use crate::{BlockId, table};
use correction::Correction;
use flashwright_block::{Bytes, Rng, Seed, below, unit_interval};
use rates::{Rate, Rates, Worn};
use serde::{Deserialize, Serialize};
use settings::{page_factors, worst_page};
use variation::Variation;

/// The blocks that [`Errors`] looks after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorLayout {
    /// Their number.
    pub blocks: u32,
    /// Pages in each.
    pub pages_per_block: u32,
    /// Bytes of data that a read decodes.
    pub page: Bytes,
    /// Pages that share a cell, 1 to 4.
    pub bits_per_cell: u32,
}

/// What a read met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadOutcome {
    /// Array times of retries and of soft decoding, and the time of soft decoding, in nanoseconds. Transfers are left
    /// to the caller.
    pub extra_ns: u64,
    /// Retries with other read voltages.
    pub retries: u8,
    /// Transfers beside the first: one for each retry and each extra read of soft decoding.
    pub transfers: u8,
    /// Whether soft decoding was tried.
    pub soft: bool,
    /// Whether the data are lost.
    pub uncorrectable: bool,
    /// Whether the block should be rewritten soon. Said once, until the block is erased.
    pub reclaim: bool,
}

/// What is remembered of a block.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct BlockState {
    /// When it was programmed first since its last erase; [`ERASED`] if it was not.
    programmed: u64,
    /// Bits 0 to 23: erases. Bits 24 to 29: its calm age is below two to this power. Then [`NOISY`] and [`ASKED`].
    wear: u32,
    /// Bits 0 to 23: reads since it was programmed. Bits 24 to 28: its calm reads are below two to this power.
    reads: u32,
}

const ERASED: u64 = u64::MAX;
const COUNT: u32 = (1 << 24) - 1;
/// It is past its calm reads or age for good.
const NOISY: u32 = 1 << 30;
/// Its rewriting was asked for.
const ASKED: u32 = 1 << 31;

/// Entries of [`Errors::worn`]; a power of two.
const WORN: usize = 256;

/// Raw bit errors of all blocks.
///
/// ```
/// # use flashwright_nand::{BlockId, ErrorLayout, ErrorLaw, ErrorSettings, Errors, ReadOutcome};
/// # use flashwright_block::{Bytes, Seed};
/// let settings = ErrorSettings { law: ErrorLaw::PowerLaw, pe_cycles_at_start: 2000, ..ErrorSettings::default() };
/// let layout = ErrorLayout { blocks: 8, pages_per_block: 384, page: Bytes(16 << 10), bits_per_cell: 3 };
/// let mut errors = Errors::new(&settings, layout, Seed(1)).expect("the model is on");
/// let (block, day) = (BlockId(3), 86_400_000_000_000);
///
/// errors.programmed(block, 0);
/// assert_eq!(errors.read(block, 1, false, 1_000, 60_000), ReadOutcome::default());
///
/// // A year later the states have moved: the read is repeated with other voltages, 60 us each.
/// let late = errors.read(block, 1, false, 365 * day, 60_000);
/// assert!(late.retries > 10 && !late.uncorrectable);
/// assert_eq!(late.extra_ns, u64::from(late.retries) * 60_000);
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Errors {
    settings: ErrorSettings,
    rates: Rates,
    /// [`Rates::worn`] of the cycles met last, by their lowest bits: the blocks of a drive have few different ones.
    worn: Vec<Worn>,
    hard: Correction,
    soft: Correction,
    variation: Variation,
    bits_per_cell: u32,
    page_factors: [f64; 4],
    worst_page: f64,
    pages_per_block: f64,
    /// The share of the shift that each retry leaves; the first entry is that of the normal read.
    keeps: Vec<f64>,
    /// [`ErrorSettings::refresh_age`] in hours; infinite if age alone is no reason to rewrite.
    refresh_hours: f64,
    /// Reads after which a block must be rewritten; the largest count if their number alone is no reason.
    reclaim_reads: u32,
    /// The error rate at the best read voltages above which a block must be rewritten.
    rate_max: f64,
    rng: Rng,
    blocks: Vec<BlockState>,
    counts: ErrorCounts,
}

impl Errors {
    /// Erased blocks; none if the model is off. [`ErrorSettings::problems`] must have found nothing.
    #[must_use]
    pub fn new(settings: &ErrorSettings, layout: ErrorLayout, seed: Seed) -> Option<Self> {
        if settings.law == ErrorLaw::None {
            return None;
        }
        let rates = Rates::new(settings);
        let (hard, soft) = settings.corrections(layout.page);
        let best = settings.best_keep();
        let keeps = (0..=i32::from(settings.retries_max))
            .map(|retry| if retry == 0 { 1.0 } else { settings.retry_keep.powi(retry).max(best) })
            .collect();
        let erased = BlockState { programmed: ERASED, wear: 0, reads: 0 };
        #[allow(clippy::cast_precision_loss)] // an age of days need not be exact to the nanosecond
        let refresh_hours =
            if settings.refresh_age.0 == 0 { f64::INFINITY } else { settings.refresh_age.0 as f64 / 3.6e12 };
        Some(Self {
            worn: vec![rates.worn(0); WORN],
            rates,
            hard,
            soft,
            variation: Variation::new(settings.block_sigma, below(&mut seed.stream("errors of blocks"), u64::MAX)),
            bits_per_cell: layout.bits_per_cell,
            page_factors: page_factors(layout.bits_per_cell),
            worst_page: worst_page(layout.bits_per_cell),
            pages_per_block: f64::from(layout.pages_per_block.max(1)),
            keeps,
            refresh_hours,
            reclaim_reads: if settings.reclaim_reads == 0 { u32::MAX } else { settings.reclaim_reads },
            rate_max: settings.errors_max() / f64::from(settings.codeword_bits()),
            rng: seed.stream("errors"),
            blocks: table(erased, layout.blocks as usize),
            counts: ErrorCounts::new(settings.retries_max),
            settings: settings.clone(),
        })
    }

    /// A block was erased, for the `erases`-th time in this run.
    pub fn erased(&mut self, block: BlockId, erases: u32) {
        self.blocks[block.index()] = BlockState { programmed: ERASED, wear: erases.min(COUNT), reads: 0 };
    }

    /// A page of a block was programmed. The age of its data counts from the first page on: the rest of the block is
    /// younger, which leaves its errors a little too high.
    #[inline]
    pub fn programmed(&mut self, block: BlockId, now_ns: u64) {
        let state = &mut self.blocks[block.index()];
        if state.programmed == ERASED {
            *state = BlockState {
                programmed: now_ns.saturating_add(self.settings.age_at_start.0),
                wear: state.wear & COUNT,
                reads: 0,
            };
        }
    }

    /// Measuring begins: the data that the drive holds now are as old as [`ErrorSettings::age_at_start`] says, and no read
    /// has disturbed them yet.
    pub fn start(&mut self, now_ns: u64) {
        for state in &mut self.blocks {
            if state.programmed != ERASED {
                *state = BlockState { programmed: now_ns, wear: state.wear & COUNT, reads: 0 };
            }
        }
    }

    /// Whether a block cannot hold even freshly written data: its errors pass [`ErrorSettings::reclaim_share`] without age
    /// and reads. Judged with all bits of the cells in use. Ask after an erase, and retire it.
    #[must_use]
    pub fn worn_out(&self, block: BlockId) -> bool {
        self.is_worn(block, self.cycles(self.blocks[block.index()]))
    }

    fn is_worn(&self, block: BlockId, cycles: u32) -> bool {
        self.rates.worn(cycles).overlap * self.variation.of(block.0) * self.worst_page > self.rate_max
    }

    /// How many erases a block survives, from where it stands: one less than the number after which it is worn out, see
    /// [`Errors::worn_out`]; at least 1.
    #[must_use]
    pub fn erases_left(&self, block: BlockId) -> u32 {
        let now = self.cycles(self.blocks[block.index()]);
        let is_worn = |erases: u32| self.is_worn(block, now.saturating_add(erases));
        let (mut good, mut worn) = (0, 1);
        while !is_worn(worn) {
            if worn >= COUNT {
                return COUNT;
            }
            (good, worn) = (worn, worn * 2);
        }
        while worn - good > 1 {
            let middle = good + (worn - good) / 2;
            if is_worn(middle) { worn = middle } else { good = middle }
        }
        good.max(1)
    }

    /// A page is read: page `page_of_cell` of its cells, lowest first; `is_slc` if the block holds one bit a cell. A read
    /// of the array takes `array_ns`. A block that holds no data has no errors.
    #[inline]
    pub fn read(&mut self, block: BlockId, page_of_cell: u32, is_slc: bool, now_ns: u64, array_ns: u64) -> ReadOutcome {
        self.counts.reads += 1;
        let state = &mut self.blocks[block.index()];
        // A block that is read 16 million times without being erased counts no further.
        let reads = (state.reads & COUNT) + u32::from(state.reads & COUNT != COUNT);
        state.reads = state.reads & !COUNT | reads;
        let age = now_ns.saturating_add(self.settings.age_at_start.0).saturating_sub(state.programmed);
        if reads >> (state.reads >> 24) == 0 && age >> (state.wear >> 24 & 63) == 0 {
            return ReadOutcome::default();
        }
        self.read_with_errors(block, page_of_cell, is_slc, age, array_ns)
    }

    /// What the reads so far met.
    #[must_use]
    pub fn counts(&self) -> &ErrorCounts {
        &self.counts
    }

    /// The raw bit error rate of a mean page of a mean block, at normal read voltages, before any retry: after so many
    /// erases in this run, an age in nanoseconds at the temperature of the settings, and so many reads of the block.
    #[must_use]
    pub fn raw_rate(&self, erases: u32, age_ns: u64, block_reads: u64) -> f64 {
        #[allow(clippy::cast_precision_loss)] // counts far below 2^53
        let reads = block_reads as f64 / self.pages_per_block;
        let cycles = erases.saturating_add(self.settings.pe_cycles_at_start).saturating_add(1);
        self.rates.at(self.rates.worn(cycles), self.rates.hours(age_ns), reads).at(1.0).min(0.5)
    }

    /// The cycle that the data of a block belong to: the program after an erase completes it.
    fn cycles(&self, state: BlockState) -> u32 {
        (state.wear & COUNT) + self.settings.pe_cycles_at_start + 1
    }

    /// [`Rates::worn`] of a block.
    fn worn(&mut self, state: BlockState) -> Worn {
        let cycles = self.cycles(state);
        let entry = &mut self.worn[cycles as usize % WORN];
        if entry.cycles != cycles {
            *entry = self.rates.worn(cycles);
        }
        *entry
    }

    fn rate(&self, worn: Worn, age: u64, reads: u32) -> Rate {
        self.rates.at(worn, self.rates.hours(age), f64::from(reads) / self.pages_per_block)
    }

    #[inline(never)]
    fn read_with_errors(
        &mut self,
        block: BlockId,
        page_of_cell: u32,
        is_slc: bool,
        age: u64,
        array_ns: u64,
    ) -> ReadOutcome {
        let mut state = self.blocks[block.index()];
        if state.programmed == ERASED {
            return ReadOutcome::default();
        }
        let reads = state.reads & COUNT;
        let (worn, factor) = (self.worn(state), self.variation.of(block.0));
        let rate = self.rate(worn, age, reads).times(factor);
        debug_assert!(page_of_cell < self.bits_per_cell, "a cell has {} pages", self.bits_per_cell);
        let (page, worst) = if is_slc {
            (self.settings.slc_share, self.settings.slc_share)
        } else {
            (self.page_factors[page_of_cell as usize & 3], self.worst_page)
        };
        let reclaim = state.wear & ASKED == 0 && self.must_rewrite(rate.times(worst), age, reads);
        if reclaim {
            state.wear |= ASKED;
            self.counts.reclaims += 1;
        }
        if state.wear & NOISY == 0 {
            self.find_calm(&mut state, (worn, factor), age, reads);
        }
        self.blocks[block.index()] = state;
        ReadOutcome { reclaim, ..self.correct(rate.times(page), array_ns) }
    }

    /// Whether a block must be rewritten; the rate is that of its worst page.
    fn must_rewrite(&self, rate: Rate, age: u64, reads: u32) -> bool {
        let best = self.keeps.last().copied().unwrap_or(1.0);
        rate.at(best) > self.rate_max || reads >= self.reclaim_reads || self.rates.hours(age) >= self.refresh_hours
    }

    /// Finds the reads and the age up to which a block is calm. They only grow errors, so it is calm everywhere below.
    fn find_calm(&self, state: &mut BlockState, (worn, factor): (Worn, f64), age: u64, reads: u32) {
        let calm = |age: u64, reads: u32| {
            let rate = self.rate(worn, age, reads).times(factor * self.worst_page);
            rate.at(1.0) <= self.hard.never() && !self.must_rewrite(rate, age, reads)
        };
        if !calm(age, reads) {
            state.wear |= NOISY;
            state.reads &= COUNT;
            state.wear &= !(63 << 24);
            return;
        }
        let (mut age_power, mut read_power) = (64 - age.leading_zeros(), 32 - reads.leading_zeros());
        let below = |age_power: u32, read_power: u32| {
            age_power < 64 && read_power <= 24 && calm((1 << age_power) - 1, (1 << read_power) - 1)
        };
        if !below(age_power, read_power) {
            return;
        }
        for (age_step, read_step) in [(1, 1), (1, 0), (0, 1)] {
            while below(age_power + age_step, read_power + read_step) {
                age_power += age_step;
                read_power += read_step;
            }
        }
        state.wear = state.wear & !(63 << 24) | age_power << 24;
        state.reads = state.reads & COUNT | read_power << 24;
    }

    /// Reads and decodes a page until it is corrected or nothing more can be tried.
    fn correct(&mut self, rate: Rate, array_ns: u64) -> ReadOutcome {
        if rate.at(1.0) <= self.hard.never() {
            return ReadOutcome::default();
        }
        let draw = unit_interval(&mut self.rng);
        // Each retry leaves less of the shift, so reads that fail come first.
        let failed = self.keeps.partition_point(|&keep| draw < self.hard.fails(rate.at(keep)));
        let corrected = failed < self.keeps.len();
        let retries = u8::try_from(failed).unwrap_or(u8::MAX).min(self.settings.retries_max);
        self.counts.retried[usize::from(retries)] += u64::from(retries > 0);
        let mut outcome = ReadOutcome { retries, transfers: retries, ..ReadOutcome::default() };
        outcome.soft = !corrected && self.settings.soft_reads > 0;
        if outcome.soft {
            self.counts.soft += 1;
            outcome.transfers += self.settings.soft_reads;
            outcome.extra_ns = self.settings.soft_decode.0;
        }
        if !corrected {
            let best = rate.at(self.keeps.last().copied().unwrap_or(1.0));
            outcome.uncorrectable = !outcome.soft || draw < self.soft.fails(best);
            self.counts.uncorrectable += u64::from(outcome.uncorrectable);
        }
        outcome.extra_ns += u64::from(outcome.transfers) * array_ns;
        outcome
    }
}
