//! Whether the columns of a trace mean what a format says: sizes, alignment, times and addresses of its first lines.
//!
//! Formats without a header are a few numbers in a row, and so are other tables. A format states its columns as a
//! [`Shape`]; here the first lines are read by it, and what no block trace has is a fault:
//!
//! | column | fault | grave |
//! | --- | --- | --- |
//! | length, address in bytes | fewer than a tenth are multiples of 512: they look like sectors | from 8 lines on |
//! | length in sectors | all are multiples of 512, and one is 2 MiB or more: they look like bytes | from 8 lines on |
//! | length | the median is above 64 MiB | yes |
//! | address | reaches beyond 64 TiB | yes |
//! | time | finer than a nanosecond | yes |
//! | time | above 10 million or below 0.01 requests per second | from 16 lines on |
//! | time | counts from the start, but begins after a minute and four times the span | yes |
//! | time | fewer than a twentieth of the steps below 10,000 units, below 10 per second | where the first is after a minute too |
//! | device | more than half of the lines have one of their own | no |
//!
//! A reading with a grave fault is refused unless the user named the format; other faults are warnings of the run.

use super::detect::Head;
use super::options::TimeUnit;
use super::order::Elapsed;
use super::parse::Words;
use flashwright_block::grouped;
use std::collections::BTreeSet;

/// The columns of a format, from 0.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Between columns; a blank stands for any number of blanks and tabs.
    pub(crate) separator: u8,
    /// Column, and nanoseconds of a unit.
    pub(crate) time: (usize, u64),
    /// Column, and bytes of a unit.
    pub(crate) address: (usize, u64),
    /// Column, and bytes of a unit.
    pub(crate) length: (usize, u64),
    pub(crate) device: usize,
    /// Whether a header names the format, whose times count from the start: only their unit can be another.
    pub(crate) headed: bool,
}

/// One thing that speaks against a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) text: String,
    pub(crate) grave: bool,
    /// Whether another unit of the times would mend it.
    pub(crate) of_time: bool,
}

/// A reading of the first lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) lines: usize,
    headed: bool,
    span_ns: u128,
    bytes: u128,
    pub(crate) faults: Vec<Fault>,
    /// Other units in which the times would be plausible, with the span.
    units: Vec<(TimeUnit, u128)>,
}

const MIB: u128 = 1 << 20;
const TIB: u128 = 1 << 40;
const LENGTH_MEDIAN_MAX: u128 = 64 * MIB;
const LENGTH_IN_SECTORS_MAX: u128 = 2 * MIB;
const ADDRESS_MAX: u128 = 64 * TIB;
/// Requests per 1,000 s: 0.01/s and 10 million/s.
const RATE_MIN: u128 = 10;
const RATE_MAX: u128 = 10_000_000_000;
/// A rate that many recordings have, for suggestions: 0.5/s to 500,000/s.
const RATE_USUAL: std::ops::RangeInclusive<u128> = 500..=500_000_000;
/// Below 10/s, hardly a step under this many units: the unit is finer.
const RATE_SLOW: u128 = 10_000;
const STEP_UNITS_MIN: u128 = 10_000;
/// The start of times that count from the start is at most this,
const START_MAX_NS: u128 = 60_000_000_000;
/// Or so many times the span.
const START_SPANS: u128 = 4;
/// Lines from which on sizes and times are evidence.
const LINES_OF_SIZES: usize = 8;
const LINES_OF_TIMES: usize = 16;
/// Parts of a unit in which times are kept here.
const PARTS: u128 = 1_000_000_000;

/// A line, in the units of the file.
struct Row {
    /// In billionths of a unit.
    time: u128,
    decimals: usize,
    address: u128,
    length: u128,
    device: Vec<u8>,
}

impl Shape {
    fn row(&self, line: &[u8]) -> Option<Row> {
        let mut fields: Vec<&[u8]> = Vec::with_capacity(8);
        if self.separator == b' ' {
            let mut words = Words(line);
            while let Some(word) = words.optional() {
                fields.push(word);
            }
        } else {
            fields.extend(line.split(|&byte| byte == self.separator).map(<[u8]>::trim_ascii));
        }
        let number = |at: usize| std::str::from_utf8(fields.get(at)?).ok()?.parse::<u64>().ok().map(u128::from);
        let time = std::str::from_utf8(fields.get(self.time.0)?).ok()?;
        let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
        let part = format!("{:0<9.9}", fraction);
        let time = u128::from(whole.parse::<u64>().ok()?) * PARTS + part.parse::<u128>().ok()?;
        let device = fields.get(self.device)?.to_vec();
        let decimals = fraction.trim_end_matches('0').len();
        Some(Row { time, decimals, address: number(self.address.0)?, length: number(self.length.0)?, device })
    }

    /// Reads the first lines, with times in `unit` if that is given.
    pub(crate) fn read(&self, head: &Head<'_>, unit: Option<TimeUnit>) -> Reading {
        let rows: Vec<Row> = head.lines().filter_map(|line| self.row(line)).collect();
        let mut reading = Reading { lines: rows.len(), headed: self.headed, ..Reading::default() };
        if rows.is_empty() {
            return reading;
        }
        let unit_ns = unit.map_or(u128::from(self.time.1), |unit| 10u128.pow(unit.digits() as u32));
        reading.bytes = rows.iter().map(|row| row.length * u128::from(self.length.1)).sum();
        self.times(&rows, unit_ns, unit.is_some(), &mut reading);
        if !self.headed {
            self.sizes(&rows, &mut reading);
            self.devices(&rows, &mut reading);
        }
        reading
    }

    fn sizes(&self, rows: &[Row], reading: &mut Reading) {
        let enough = rows.len() >= LINES_OF_SIZES;
        let mut fault = |grave: bool, text: String| reading.faults.push(Fault { text, grave, of_time: false });
        let aligned = |value: &dyn Fn(&Row) -> u128| rows.iter().filter(|row| value(row).is_multiple_of(512)).count();
        let few = |aligned: usize| aligned * 10 < rows.len();
        let of = |aligned: usize, what: &str| match aligned {
            0 => format!("no {what} is a multiple of 512 bytes: the {what}s look like sectors"),
            _ => {
                format!("{aligned} of {} {what}s are multiples of 512 bytes: the {what}s look like sectors", rows.len())
            }
        };
        let (lengths, addresses) = (aligned(&|row| row.length), aligned(&|row| row.address));
        if self.length.1 == 1 && few(lengths) {
            fault(enough, of(lengths, "size"));
        }
        if self.address.1 == 1 && few(addresses) {
            fault(enough, of(addresses, "offset"));
        }
        let unit = u128::from(self.length.1);
        let longest = rows.iter().map(|row| row.length * unit).max().unwrap_or(0);
        let shortest = rows.iter().map(|row| row.length).min().unwrap_or(0);
        if unit > 1 && lengths == rows.len() && shortest > 0 {
            let counted = if unit == 512 { "sectors" } else { "pages" };
            let text = format!(
                "all sizes are multiples of 512, up to {} if they were {counted}: the sizes look like bytes",
                size(longest)
            );
            fault(enough && longest >= LENGTH_IN_SECTORS_MAX, text);
        }
        let mut sorted: Vec<u128> = rows.iter().map(|row| row.length * unit).collect();
        sorted.sort_unstable();
        let median = sorted[sorted.len() / 2];
        if median > LENGTH_MEDIAN_MAX {
            fault(true, format!("the median size would be {}", size(median)));
        }
        let end =
            rows.iter().map(|row| row.address * u128::from(self.address.1) + row.length * unit).max().unwrap_or(0);
        if end > ADDRESS_MAX {
            fault(true, format!("addresses would reach to {}", size(end)));
        }
    }

    fn times(&self, rows: &[Row], unit_ns: u128, named: bool, reading: &mut Reading) {
        let all = || rows.iter().map(|row| row.time);
        let (first, last) = (all().min().unwrap_or(0), all().max().unwrap_or(0));
        let span = last - first;
        reading.span_ns = span * unit_ns / PARTS;
        let whole = rows.iter().all(|row| row.decimals == 0);
        let rate = |unit_ns: u128| rate(rows.len(), span, whole, unit_ns);
        let digits = unit_ns.ilog10() as usize;
        let finest = rows.iter().map(|row| row.decimals).max().unwrap_or(0);
        // More than nine are the noise of floating-point numbers.
        let fine = rows.iter().filter(|row| row.decimals > digits && row.decimals <= 9).count() * 2 > rows.len();
        // A unit that the user named is right.
        let mut fault = |grave: bool, text: String| {
            reading.faults.push(Fault { text, grave: grave && !named, of_time: true });
        };
        let unit = unit_name(unit_ns);
        if fine && rows.len() >= 2 {
            fault(true, format!("its times have {finest} decimals, finer than a nanosecond if they were in {unit}"));
        }
        if let Some(found) = rate(unit_ns).filter(|_| rows.len() >= LINES_OF_TIMES) {
            let lines = grouped(rows.len() as u64);
            let gap = reading.span_ns / (rows.len() as u128 - 1);
            let text = || {
                let often = if found < 1_000 {
                    format!("one every {}", elapsed(gap))
                } else {
                    format!("{} per second", grouped(u64::try_from(found / 1_000).unwrap_or(u64::MAX)))
                };
                let span = elapsed(reading.span_ns);
                format!("its first {lines} requests would take {span}, {often}, if times were in {unit}")
            };
            let start = first * unit_ns / PARTS;
            if !(RATE_MIN..=RATE_MAX).contains(&found) {
                let text = text();
                fault(true, text);
            } else if self.headed && start > START_MAX_NS && reading.span_ns * START_SPANS < start {
                fault(
                    true,
                    format!(
                        "its times, which count from the start, would begin at {} if they were in {unit}",
                        elapsed(start)
                    ),
                );
            } else if whole && unit_ns > 1 && found < RATE_SLOW && is_coarse(rows) {
                let text = format!("{}, hardly any two within {}", text(), elapsed(STEP_UNITS_MIN * unit_ns));
                fault(self.headed && start > START_MAX_NS, text);
            }
        }
        for other in TimeUnit::ALL {
            let other_ns = 10u128.pow(other.digits() as u32);
            let usual = rate(other_ns).is_some_and(|found| RATE_USUAL.contains(&found));
            if other_ns != unit_ns && usual && (finest <= other.digits() || finest > 9) {
                reading.units.push((other, span * other_ns / PARTS));
            }
        }
    }

    fn devices(&self, rows: &[Row], reading: &mut Reading) {
        let devices: BTreeSet<&[u8]> = rows.iter().map(|row| row.device.as_slice()).collect();
        if rows.len() >= LINES_OF_TIMES && devices.len() * 2 > rows.len() {
            let text =
                format!("{} of its first {} requests would be of a device of their own", devices.len(), rows.len());
            reading.faults.push(Fault { text, grave: false, of_time: false });
        }
    }
}

/// Requests per 1,000 s; none if all have one time. Of whole times the last unit counts, since they are rounded.
fn rate(lines: usize, span: u128, whole: bool, unit_ns: u128) -> Option<u128> {
    let span = if whole && span > 0 { span + PARTS } else { span };
    let ns = span * unit_ns / PARTS;
    (span > 0 && lines > 1).then(|| (lines as u128 - 1) * 1_000_000_000_000 / ns.max(1))
}

/// Whether fewer than one step of twenty is short, which in recordings many are.
fn is_coarse(rows: &[Row]) -> bool {
    let steps: Vec<u128> = rows.windows(2).map(|pair| pair[1].time.abs_diff(pair[0].time)).collect();
    let short = steps.iter().filter(|step| **step < STEP_UNITS_MIN * PARTS).count();
    short * 20 < steps.len()
}

impl Reading {
    /// What the first lines would be.
    pub(crate) fn means(&self) -> String {
        format!("first {} requests: {}, {}", grouped(self.lines as u64), elapsed(self.span_ns), size(self.bytes))
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.faults.iter().any(|fault| fault.grave)
    }

    pub(crate) fn texts(&self) -> String {
        let texts: Vec<&str> = self.faults.iter().map(|fault| fault.text.as_str()).collect();
        texts.join("; ")
    }

    /// The options that read the file in another way.
    pub(crate) fn mend(&self) -> String {
        let times = self.faults.iter().any(|fault| fault.of_time).then(|| self.time_units()).flatten();
        let columns = (!self.headed).then(|| "--columns to say what each column is".to_owned());
        let all: Vec<String> = times.into_iter().chain(columns).collect();
        if all.is_empty() { "--time-unit".to_owned() } else { all.join(", or ") }
    }

    /// `--time-unit us (15 ms) or ms (15 s)`; none if no unit is usual.
    pub(crate) fn time_units(&self) -> Option<String> {
        let units: Vec<String> =
            self.units.iter().map(|(unit, span)| format!("{} ({})", unit.name(), elapsed(*span))).collect();
        (!units.is_empty()).then(|| format!("--time-unit {}", units.join(" or ")))
    }
}

fn unit_name(unit_ns: u128) -> String {
    let named = TimeUnit::ALL.into_iter().find(|unit| 10u128.pow(unit.digits() as u32) == unit_ns);
    named.map_or_else(|| format!("units of {unit_ns} ns"), |unit| unit.name().to_owned())
}

fn elapsed(ns: u128) -> String {
    Elapsed(u64::try_from(ns).unwrap_or(u64::MAX)).to_string()
}

/// A size for people.
#[allow(clippy::cast_precision_loss)]
fn size(bytes: u128) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut value, mut at) = (bytes as f64, 0);
    while value >= 1024.0 && at + 1 < UNITS.len() {
        value /= 1024.0;
        at += 1;
    }
    let digits = usize::from(at > 0 && value < 99.95) + usize::from(at > 0 && value < 9.995);
    format!("{value:.digits$} {}", UNITS[at])
}
