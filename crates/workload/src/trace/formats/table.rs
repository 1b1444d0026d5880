//! Any table, as `--columns` describes it: rows of text with a delimiter, quoted as in CSV, with a header or without.
//!
//! Which column says what is in [`TableSpec`]. Addresses and sizes may be decimal, hexadecimal with `0x`, and written
//! with a point or an exponent as long as they are whole. Times may be negative. Numbers below 0 elsewhere are errors.

use super::Format;
use crate::trace::detect::Verdict;
use crate::trace::error::TraceError;
use crate::trace::parse::{Number, Parsed, bad, byte_range, hexadecimal, trim, whole};
use crate::trace::record::{Record, Sink};
use crate::trace::table::{Delimiter, Op, Place, Quantity, Size, TableSpec, TimeUnit, kind_name};
use crate::trace::text::{self, ParseLine};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use flashwright_block::RequestKind;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

pub(super) static FORMAT: Format = Format {
    name: "table",
    summary: "any table of text, CSV or other, whose columns --columns describes",
    sniff: |_| Verdict::No,
    open: |input, setup| {
        let Some(spec) = setup.columns.clone() else {
            let expected = "a description such as time=1:us,op=2,lba=3:sectors,size=4:bytes for the format table";
            return Err(TraceError::Columns { found: "nothing".to_owned(), expected: expected.to_owned() });
        };
        spec.check_table()?;
        Ok(text::open_with(input, setup, Table::new(spec)))
    },
    writing: None,
    reorder_window: 0,
};

/// Times may be below 0, so all are shifted up by this much.
const ZERO_NS: i128 = 1 << 60;

/// Positions of the columns, counted from 0.
#[derive(Clone, Copy, Debug)]
struct Layout {
    delimiter: Delimiter,
    time: Option<usize>,
    op: Option<usize>,
    address: usize,
    size: Option<usize>,
    device: Option<usize>,
    process: Option<usize>,
}

struct Table {
    spec: Arc<TableSpec>,
    /// None until the first line.
    layout: Option<Layout>,
    /// The header line, which files put together have several times.
    header: Vec<u8>,
    row: Row,
}

impl Table {
    fn new(spec: Arc<TableSpec>) -> Self {
        Table { spec, layout: None, header: Vec::new(), row: Row::default() }
    }

    /// Finds the columns by the first line; true if that is a header.
    fn begin(&mut self, line: &[u8]) -> Parsed<bool> {
        let spec = Arc::clone(&self.spec);
        let delimiter = spec.delimiter.unwrap_or_else(|| delimiter_of(line));
        let names = spec.places().any(|place| matches!(place, Place::Name(_)));
        // A comment may be the header.
        let line = if names { trim(line.strip_prefix(spec.comment.as_slice()).unwrap_or(line)) } else { line };
        self.row.split(line, delimiter)?;
        let at = |place: &Place| match place {
            Place::Number(at) => Ok(*at),
            Place::Name(name) => self.find(line, name),
        };
        let optional = |place: Option<&Place>| place.map(at).transpose();
        let quantity = |quantity: &Quantity| at(&quantity.place);
        let layout = Layout {
            delimiter,
            time: optional(spec.time.as_ref().map(|(place, _)| place))?,
            op: match &spec.op {
                Op::Column(place) => Some(at(place)?),
                _ => None,
            },
            address: match &spec.address {
                Some(address) => quantity(address)?,
                None => return bad("lba", b"", "an address in the description"),
            },
            size: match &spec.size {
                Some(Size::Column(size)) => Some(quantity(size)?),
                _ => None,
            },
            device: optional(spec.device.as_ref())?,
            process: optional(spec.process.as_ref())?,
        };
        let is_number = |quantity: &Quantity, at: usize| {
            let field = self.row.get(line, at).unwrap_or(b"");
            let hex = quantity.hex || field.starts_with(b"0x");
            Number::read(field).is_some() || (hex && hexadecimal("", field).is_ok())
        };
        let size = match (&spec.size, layout.size) {
            (Some(Size::Column(size)), Some(at)) => is_number(size, at),
            _ => false,
        };
        let header = match spec.header {
            Some(header) => header,
            None => names || !(size || spec.address.as_ref().is_some_and(|address| is_number(address, layout.address))),
        };
        self.layout = Some(layout);
        Ok(header)
    }

    /// The column that the header calls `name`, in any case if only one is.
    fn find(&self, line: &[u8], name: &str) -> Parsed<usize> {
        let fields = || (0..self.row.spans.len()).filter_map(|at| self.row.get(line, at));
        if let Some(at) = fields().position(|field| field == name.as_bytes()) {
            return Ok(at);
        }
        let mut near = fields().enumerate().filter(|(_, field)| field.eq_ignore_ascii_case(name.as_bytes()));
        match (near.next(), near.next()) {
            (Some((at, _)), None) => Ok(at),
            _ => named(bad("", line, "a column of this name in the header line"), || format!("column {name:?}")),
        }
    }

    fn request(&mut self, line: &[u8], layout: Layout, out: &mut Sink<'_>) -> Parsed<()> {
        self.row.split(line, layout.delimiter)?;
        let (spec, row) = (&self.spec, &self.row);
        let get = |role: &'static str, at: usize| match row.get(line, at) {
            Some(field) => Ok(field),
            None => named(bad("", b"", "one more field; the line ends too early"), || column(role, at)),
        };
        let kind = match (spec.constant_kind(), layout.op) {
            (Some(kind), _) => Some(kind),
            (None, Some(at)) => {
                let word = get("op", at)?;
                let expected = "a word whose kind is known; say it with read=, write=, trim=, flush= or skip=";
                match spec.kind(word) {
                    Some(kind) => kind,
                    None => return named(bad("", word, expected), || column("op", at)),
                }
            }
            (None, None) => None,
        };
        let Some(kind) = kind else {
            out.ignore();
            return Ok(());
        };
        let time = match (layout.time, &spec.time) {
            (Some(at), Some((_, unit))) => named(time(get("time", at)?, *unit), || column("time", at))?,
            _ => 0,
        };
        let device = match layout.device {
            Some(at) => get("device", at)?,
            None => b"0",
        };
        let process = match layout.process {
            Some(at) => {
                let text = get("process", at)?;
                let found = whole("", text).ok().and_then(|number| u32::try_from(number).ok());
                match found {
                    Some(process) => process,
                    None => return named(bad("", text, "a number below 2^32"), || column("process", at)),
                }
            }
            None => 0,
        };
        let device = out.devices.name(device);
        let base = Record { time, device, process, kind, ..Record::default() };
        if kind == RequestKind::Flush {
            out.push(base);
            return Ok(());
        }
        let address = match &spec.address {
            Some(address) => named(bytes(get("lba", layout.address)?, address), || column("lba", layout.address))?,
            None => 0,
        };
        let (size, size_at) = match (&spec.size, layout.size) {
            (Some(Size::Column(size)), Some(at)) => (named(bytes(get("size", at)?, size), || column("size", at))?, at),
            (Some(Size::Constant(size)), _) => (*size, layout.address),
            _ => (0, layout.address),
        };
        let Some((first_sector, sectors)) = byte_range(address, size) else {
            let text = get("size", size_at)?;
            return named(bad("", text, "a request below 2 TiB that ends below 2^64 B"), || column("size", size_at));
        };
        out.push(Record { first_sector, sectors, ..base });
        Ok(())
    }
}

fn column(role: &str, at: usize) -> String {
    format!("{role} (column {})", at + 1)
}

/// The same, with a field that is called otherwise.
fn named<T>(parsed: Parsed<T>, name: impl FnOnce() -> String) -> Parsed<T> {
    parsed.map_err(|mut bad| {
        bad.field = Cow::Owned(name());
        bad
    })
}

impl ParseLine for Table {
    const SKIPS_HEADERS: bool = false;

    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        let is_comment = line.starts_with(&self.spec.comment);
        let named = self.spec.places().any(|place| matches!(place, Place::Name(_)));
        if trim(line).is_empty() || (is_comment && (self.layout.is_some() || !named)) {
            return Ok(());
        }
        let layout = match self.layout {
            Some(layout) => layout,
            None => {
                let found = self.begin(line);
                if is_comment && found.is_err() {
                    // The header stands further down.
                    return Ok(());
                }
                if found? {
                    self.header = line.to_vec();
                    return Ok(());
                }
                match self.layout {
                    Some(layout) => layout,
                    None => return Ok(()),
                }
            }
        };
        if line == self.header {
            out.ignore();
            return Ok(());
        }
        self.request(line, layout, out)
    }

    fn assumed(&self) -> Vec<String> {
        let mut assumed = Vec::new();
        if self.spec.time.is_none() {
            assumed.push("no time in it: all requests arrive at once; --depth or --workload pace them".to_owned());
        }
        match (&self.spec.op, &self.spec.size) {
            (Op::All(kind), _) => assumed.push(format!("every request is a {}, as said", kind_name(*kind))),
            (_, Some(Size::Constant(size))) => assumed.push(format!("every request has {size} B, as said")),
            _ => {}
        }
        assumed
    }
}

/// The delimiter that a line has most of; blanks if it has none of the others.
pub(crate) fn delimiter_of(line: &[u8]) -> Delimiter {
    let count = |sign: u8| line.iter().filter(|byte| **byte == sign).count();
    let best = [b',', b'\t', b';', b'|'].into_iter().rev().max_by_key(|sign| count(*sign));
    match best {
        Some(sign) if count(sign) > 0 => Delimiter::Sign(sign),
        _ => Delimiter::Blanks,
    }
}

/// The fields of a line, unquoted.
#[derive(Default)]
pub(crate) struct Row {
    spans: Vec<Range<usize>>,
    /// What the spans refer to if a field was quoted; else they refer to the line.
    unquoted: Vec<u8>,
    quoted: bool,
    ends: Vec<usize>,
    csv: Option<Box<(u8, Reader)>>,
}

impl Row {
    pub(crate) fn split(&mut self, line: &[u8], delimiter: Delimiter) -> Parsed<()> {
        self.spans.clear();
        self.quoted = false;
        let mut start = 0;
        match delimiter {
            Delimiter::Blanks => {
                while let Some(skipped) = line[start..].iter().position(|byte| !matches!(byte, b' ' | b'\t')) {
                    let first = start + skipped;
                    let length = line[first..].iter().position(|byte| matches!(byte, b' ' | b'\t'));
                    start = length.map_or(line.len(), |length| first + length);
                    self.spans.push(first..start);
                }
            }
            Delimiter::Sign(sign) if memchr::memchr(b'"', line).is_none() => {
                for end in memchr::memchr_iter(sign, line) {
                    self.spans.push(start..end);
                    start = end + 1;
                }
                self.spans.push(start..line.len());
            }
            Delimiter::Sign(sign) => return self.unquote(line, sign),
        }
        Ok(())
    }

    #[cold]
    fn unquote(&mut self, line: &[u8], sign: u8) -> Parsed<()> {
        if self.csv.as_ref().is_none_or(|csv| csv.0 != sign) {
            self.csv = Some(Box::new((sign, ReaderBuilder::new().delimiter(sign).build())));
        }
        let Some(csv) = &mut self.csv else { return Ok(()) };
        csv.1.reset();
        self.quoted = true;
        self.unquoted.resize(line.len() + 1, 0);
        self.ends.resize(line.len() + 2, 0);
        let (_, _, written, ended) = csv.1.read_record(line, &mut self.unquoted, &mut self.ends);
        // The end of the line ends the record, unless a quote is open.
        let (result, _, _, more) = csv.1.read_record(b"\n", &mut self.unquoted[written..], &mut self.ends[ended..]);
        if !matches!(result, ReadRecordResult::Record) {
            return bad("row", line, "a quote that is closed on the same line");
        }
        let mut start = 0;
        for end in &self.ends[..ended + more] {
            self.spans.push(start..*end);
            start = *end;
        }
        Ok(())
    }

    pub(crate) fn get<'a>(&'a self, line: &'a [u8], at: usize) -> Option<&'a [u8]> {
        let span = self.spans.get(at)?.clone();
        Some(trim(if self.quoted { &self.unquoted[span] } else { &line[span] }))
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }
}

/// An address or a size in bytes.
#[inline]
fn bytes(text: &[u8], quantity: &Quantity) -> Parsed<u64> {
    let expected = "a whole number of bytes from 0 to 2^64";
    let value = if quantity.hex || text.starts_with(b"0x") || text.starts_with(b"0X") {
        hexadecimal("", text).ok().and_then(|value| value.checked_mul(quantity.unit))
    } else {
        let plain = whole("", text).ok().map(|value| value.checked_mul(quantity.unit));
        let exact = || Number::read(text)?.times(quantity.unit).filter(|(_, exact)| *exact);
        match plain {
            Some(product) => product,
            None if text.starts_with(b"-") => None,
            None => exact().map(|(value, _)| value),
        }
    };
    match value {
        Some(value) => Ok(value),
        None => bad("", text, expected),
    }
}

/// A time in nanoseconds, shifted up by [`ZERO_NS`].
#[inline]
fn time(text: &[u8], unit: TimeUnit) -> Parsed<u64> {
    let found = match unit {
        TimeUnit::Nanos(factor) => Number::read(text).and_then(|number| {
            let (value, _) = number.times(factor)?;
            Some(if number.negative { -i128::from(value) } else { i128::from(value) })
        }),
        TimeUnit::Date | TimeUnit::Unknown => date(text),
    };
    match found.and_then(|ns| u64::try_from(ns + ZERO_NS).ok()) {
        Some(time) => Ok(time),
        None if unit == TimeUnit::Unknown => {
            bad("", text, "a date; the unit of other times must be said, such as time=1:us")
        }
        None if unit == TimeUnit::Date => bad("", text, "a date or a time of day, such as 2024-02-29 12:30:00.25"),
        None => bad("", text, "a number of at most 500 years"),
    }
}

/// Nanoseconds since 1970 of `2024-02-29T12:30:00.25+01:00` and the like; those since midnight without a date.
fn date(text: &[u8]) -> Option<i128> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let (day, clock) = match text.find(['T', ' ']) {
        Some(at) if text[..at].contains(['-', '/']) => (Some(&text[..at]), &text[at + 1..]),
        _ if text.contains(':') => (None, text),
        _ => (Some(text), ""),
    };
    let days = day.map_or(Some(0), days)?;
    let (clock, zone_s) = zone(clock)?;
    let mut parts = clock.splitn(3, ':');
    let mut part = |most: i128| match parts.next().filter(|part| !part.is_empty()) {
        None => Some(0),
        Some(part) => part.trim().parse::<i128>().ok().filter(|value| (0..=most).contains(value)),
    };
    let (hours, minutes) = (part(23)?, part(59)?);
    let seconds_ns = match parts.next() {
        None => 0,
        Some(seconds) => i128::from(crate::trace::parse::decimal_time("", seconds.trim().as_bytes(), 9).ok()?),
    };
    Some((days * 86_400 + hours * 3_600 + minutes * 60 - zone_s) * 1_000_000_000 + seconds_ns)
}

/// What precedes the zone of a clock time, and the zone in seconds east of Greenwich.
fn zone(clock: &str) -> Option<(&str, i128)> {
    let clock = clock.trim();
    for word in ["Z", "UTC", "GMT"] {
        if let Some(before) = clock.strip_suffix(word) {
            return Some((before.trim(), 0));
        }
    }
    let Some(at) = clock.rfind(['+', '-']) else { return Some((clock, 0)) };
    let (sign, digits) = (if clock.as_bytes()[at] == b'-' { -1 } else { 1 }, clock[at + 1..].replace(':', ""));
    let number: i128 = digits.parse().ok()?;
    let (hours, minutes) = if digits.len() > 2 { (number / 100, number % 100) } else { (number, 0) };
    Some((clock[..at].trim(), sign * (hours * 3_600 + minutes * 60)))
}

/// Days from 1970-01-01 to a day of the Gregorian calendar (Hinnant's days_from_civil).
fn days(day: &str) -> Option<i128> {
    let mut parts = day.split(['-', '/']).map(|part| part.parse::<i128>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some()
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || !(1600..=9999).contains(&year)
    {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_from_1970() {
        // `date -u -d '2024-02-29 12:30:00' +%s` is 1709209800.
        let noon: i128 = 1_709_209_800_000_000_000;
        for (text, ns) in [
            ("2024-02-29 12:30:00", Some(noon)),
            ("2024/02/29T12:30:00.25Z", Some(noon + 250_000_000)),
            ("2024-02-29T13:30:00+01:00", Some(noon)),
            ("2024-02-29 07:00:00-0530", Some(noon)),
            ("1970-01-01", Some(0)),
            ("00:00:01.5", Some(1_500_000_000)),
            ("2024-13-01", None),
            ("2024-02-29 25:00:00", None),
            ("17", None),
            ("", None),
        ] {
            assert_eq!(date(text.as_bytes()), ns, "{text}");
        }
    }

    #[test]
    fn fields_are_unquoted() {
        let mut row = Row::default();
        for (line, delimiter, fields) in [
            ("a,b,,c", Delimiter::Sign(b','), vec!["a", "b", "", "c"]),
            ("\"a,1\",\"b \"\"x\"\"\",c", Delimiter::Sign(b','), vec!["a,1", "b \"x\"", "c"]),
            ("1;\"2\";", Delimiter::Sign(b';'), vec!["1", "2", ""]),
            ("  a \t b  ", Delimiter::Blanks, vec!["a", "b"]),
        ] {
            row.split(line.as_bytes(), delimiter).unwrap();
            let found: Vec<_> = (0..row.len()).map(|at| row.get(line.as_bytes(), at).unwrap()).collect();
            assert_eq!(found, fields.iter().map(|field| field.as_bytes()).collect::<Vec<_>>(), "{line}");
        }
        assert!(row.split(b"\"open,1", Delimiter::Sign(b',')).is_err());
        // The next line is not taken for the rest of it.
        row.split(b"\"a\",1", Delimiter::Sign(b',')).unwrap();
        assert_eq!(row.get(b"\"a\",1", 0), Some(b"a".as_slice()));
    }
}
