//! Four formats that look alike: five blank-separated numbers, `time device address length operation`.
//!
//! | format | time | address | length | operation |
//! | --- | --- | --- | --- | --- |
//! | disksim | ms | 512 B sector | sectors | flags, bit 0 = read |
//! | flashsim | ms | 512 B sector | 4 KiB pages | 1 = read, 0 = write |
//! | mqsim | ns | 512 B sector | sectors | 1 = read, 0 = write |
//! | bytes | ms | byte | bytes | 1 = read, 0 = write |
//!
//! What the content can decide: byte addresses and lengths are all multiples of 512, and sectors practically never are;
//! times that would put minutes between requests if they were milliseconds are nanoseconds; flags above 1 are
//! DiskSim's; lengths that are all multiples of 8 but not all equal are sectors, because pages only in multiples of 8
//! would be a trace without requests below 32 KiB. If none of this applies, the user must choose.

use crate::trace::detect::{Head, Verdict};
use crate::trace::parse::{Parsed, Words, bad, decimal_time, sector, sectors, whole, whole_time};
use crate::trace::plausible::Shape;
use crate::trace::record::{Record, Sink};
use flashwright_block::RequestKind;

/// One of the four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Columns {
    DiskSim,
    FlashSim,
    Mqsim,
    Bytes,
}

const fn shape(time_ns: u64, address: u64, length: u64) -> Shape {
    Shape { separator: b' ', time: (0, time_ns), address: (2, address), length: (3, length), device: 1, headed: false }
}

static DISKSIM: Shape = shape(1_000_000, 512, 512);
static FLASHSIM: Shape = shape(1_000_000, 512, 512 * PAGE_SECTORS);
static MQSIM: Shape = shape(1, 512, 512);
static BYTES: Shape = shape(1_000_000, 1, 1);

/// Digits after the point of milliseconds that give nanoseconds.
const MS_DIGITS: usize = 6;
/// Sectors of the pages that `flashsim` counts in.
const PAGE_SECTORS: u64 = 8;
/// With fewer lines than this, statistical rules decide nothing.
const LINES_MIN: usize = 16;
/// Mean distance of whole-numbered times above which they are not milliseconds (10 s between requests).
const NS_STEP_MIN: u64 = 10_000;

impl Columns {
    /// Reads one line.
    #[inline]
    pub(super) fn line(self, line: &[u8], time_digits: Option<usize>, out: &mut Sink<'_>) -> Parsed<()> {
        if line.is_empty() || line[0] == b'#' {
            return Ok(());
        }
        let mut words = Words(line);
        let time = words.next("time")?;
        let time = match (self, time_digits) {
            (Columns::Mqsim, None) => whole_time("time", time, 1)?,
            (_, digits) => decimal_time("time", time, digits.unwrap_or(MS_DIGITS))?,
        };
        let device = whole("device", words.next("device")?)?;
        let (address, length) = (words.next("address")?, words.next("length")?);
        let (first_sector, sectors) = match self {
            Columns::Bytes => crate::trace::parse::bytes(address, length)?,
            Columns::FlashSim => (sector("address", address)?, sectors("length", length, PAGE_SECTORS)?),
            _ => (sector("address", address)?, sectors("length", length, 1)?),
        };
        let kind = self.operation(words.next("operation")?)?;
        let device = out.devices.number(device);
        out.push(Record { time, first_sector, device, sectors, kind, ..Record::default() });
        Ok(())
    }

    #[inline]
    fn operation(self, text: &[u8]) -> Parsed<RequestKind> {
        match (self, text) {
            (_, b"1") => Ok(RequestKind::Read),
            (_, b"0") => Ok(RequestKind::Write),
            (Columns::DiskSim, _) => {
                Ok(if whole("flags", text)? & 1 == 1 { RequestKind::Read } else { RequestKind::Write })
            }
            _ => bad("operation", text, "1 (read) or 0 (write)"),
        }
    }

    /// Whether this format fits, as opposed to the other three.
    pub(super) fn sniff(self, head: &Head<'_>) -> Verdict {
        let Some(sample) = Sample::of(head) else { return Verdict::No };
        let candidates = sample.candidates();
        if candidates.contains(&self) { Verdict::Columns(self.shape()) } else { Verdict::No }
    }

    fn shape(self) -> &'static Shape {
        match self {
            Columns::DiskSim => &DISKSIM,
            Columns::FlashSim => &FLASHSIM,
            Columns::Mqsim => &MQSIM,
            Columns::Bytes => &BYTES,
        }
    }
}

/// Common properties of the first lines.
struct Sample {
    lines: usize,
    fractions: bool,
    whole_times: Vec<u64>,
    flags_above_one: bool,
    all_of_512: bool,
    lengths_of_8: bool,
    lengths_differ: bool,
}

impl Sample {
    /// None if the lines are not five numbers each, apart from occasional bad ones.
    fn of(head: &Head<'_>) -> Option<Sample> {
        let mut sample = Sample {
            lines: 0,
            fractions: false,
            whole_times: Vec::new(),
            flags_above_one: false,
            all_of_512: true,
            lengths_of_8: true,
            lengths_differ: false,
        };
        let (mut bad_lines, mut first_length) = (0usize, None);
        for line in head.lines().filter(|line| line[0] != b'#') {
            let Some((time, address, length, operation)) = numbers(line) else {
                bad_lines += 1;
                continue;
            };
            sample.lines += 1;
            sample.fractions |= time.contains(&b'.');
            sample.whole_times.extend(whole("time", time));
            sample.flags_above_one |= operation > 1;
            sample.all_of_512 &= address.is_multiple_of(512) && length.is_multiple_of(512);
            sample.lengths_of_8 &= length.is_multiple_of(8);
            sample.lengths_differ |= *first_length.get_or_insert(length) != length;
        }
        (sample.lines > bad_lines).then_some(sample)
    }

    fn candidates(&self) -> Vec<Columns> {
        let many = self.lines >= LINES_MIN;
        let mut fit = Vec::new();
        if self.fractions {
            match () {
                () if self.flags_above_one => fit.push(Columns::DiskSim),
                () if many && self.all_of_512 => fit.push(Columns::Bytes),
                () if many && self.lengths_of_8 && self.lengths_differ => fit.push(Columns::DiskSim),
                () => {
                    fit.extend([Columns::DiskSim, Columns::FlashSim]);
                    fit.extend(self.all_of_512.then_some(Columns::Bytes));
                }
            }
        } else if self.flags_above_one {
            fit.push(Columns::DiskSim);
        } else if many && self.step() > NS_STEP_MIN {
            fit.push(Columns::Mqsim);
        } else {
            fit.extend([Columns::DiskSim, Columns::FlashSim, Columns::Mqsim]);
            fit.extend(self.all_of_512.then_some(Columns::Bytes));
        }
        fit
    }

    /// Mean distance of the times.
    fn step(&self) -> u64 {
        match (self.whole_times.iter().min(), self.whole_times.iter().max()) {
            (Some(first), Some(last)) => (last - first) / self.whole_times.len() as u64,
            _ => 0,
        }
    }
}

/// Time text, address, length and operation of a line of exactly five numbers.
fn numbers(line: &[u8]) -> Option<(&[u8], u64, u64, u64)> {
    let mut words = Words(line);
    let time = words.optional()?;
    decimal_time("", time, 6).ok()?;
    whole("", words.optional()?).ok()?;
    let mut number = || whole("", words.optional()?).ok();
    let found = (time, number()?, number()?, number()?);
    words.optional().is_none().then_some(found)
}
