//! The text of `--columns`, which describes any table: which column says what, and in which unit.
//!
//! ```text
//! time=1:us,op=3,lba=4:sectors,size=5:bytes,read=R|0,write=W|1,delimiter=tab
//! ```
//!
//! | key | value |
//! | --- | --- |
//! | `time` | COLUMN:UNIT, with unit s, ms, us, ns, 100ns (filetime) or date; `none` where there are no times |
//! | `op` | COLUMN, or `read`, `write`, `trim` for all rows (where no words are given below) |
//! | `lba`, `offset` | COLUMN\[:UNIT\]\[:hex\], with unit bytes, sectors (of 512 B; lba), pages (of 4 KiB) or a size |
//! | `size` | COLUMN:UNIT\[:hex\], or a size for all rows, such as 4KiB |
//! | `device`, `process` | COLUMN |
//! | `read`, `write`, `trim`, `flush`, `skip` | the words of the op column, separated by `|` |
//! | `delimiter` | comma, tab, semicolon, pipe, blank or a sign |
//! | `header` | yes, no or auto |
//! | `comment` | how lines begin that are no rows |
//!
//! A COLUMN is its number from 1 or its name in the header line.

use super::error::TraceError;
use super::record::SECTOR;
use flashwright_block::{Bytes, RequestKind};

/// How a table is read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableSpec {
    pub(crate) time: Option<(Place, TimeUnit)>,
    pub(crate) op: Op,
    pub(crate) address: Option<Quantity>,
    pub(crate) size: Option<Size>,
    pub(crate) device: Option<Place>,
    pub(crate) process: Option<Place>,
    /// Words of the op column, first those that were given; no kind for rows to skip.
    pub(crate) words: Vec<(Vec<u8>, Option<RequestKind>)>,
    pub(crate) delimiter: Option<Delimiter>,
    /// Whether the first line is a header; by default it is if names are used, or if its fields are no numbers.
    pub(crate) header: Option<bool>,
    pub(crate) comment: Vec<u8>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Counted from 0.
    Number(usize),
    Name(String),
}

/// A column of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quantity {
    pub(crate) place: Place,
    /// Bytes that 1 stands for.
    pub(crate) unit: u64,
    /// Whether numbers without `0x` are hexadecimal as well.
    pub(crate) hex: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Column(Quantity),
    /// Bytes of every request.
    Constant(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    /// Nanoseconds that 1 stands for.
    Nanos(u64),
    /// A date, a time of day, or both.
    Date,
    /// Not said; only dates need no unit.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Column(Place),
    All(RequestKind),
    /// Not said.
    Missing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delimiter {
    Sign(u8),
    /// Runs of blanks and tabs.
    Blanks,
}

/// Units of time and their nanoseconds.
const TIMES: &[(&str, u64)] =
    &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1), ("100ns", 100), ("filetime", 100)];
/// Units of addresses and sizes and their bytes.
const SIZES: &[(&str, u64)] =
    &[("bytes", 1), ("byte", 1), ("b", 1), ("sectors", SECTOR), ("sector", SECTOR), ("pages", 4096), ("page", 4096)];
const DELIMITERS: &[(&str, Delimiter)] = &[
    ("comma", Delimiter::Sign(b',')),
    ("tab", Delimiter::Sign(b'\t')),
    ("semicolon", Delimiter::Sign(b';')),
    ("pipe", Delimiter::Sign(b'|')),
    ("blank", Delimiter::Blanks),
    ("blanks", Delimiter::Blanks),
    ("space", Delimiter::Blanks),
];
const KEYS: &[&str] = &[
    "time",
    "op",
    "lba",
    "offset",
    "size",
    "device",
    "process",
    "read",
    "write",
    "trim",
    "flush",
    "skip",
    "delimiter",
    "header",
    "comment",
];
/// Other names of keys.
const ALIASES: &[(&str, &str)] = &[
    ("timestamp", "time"),
    ("operation", "op"),
    ("sector", "lba"),
    ("address", "offset"),
    ("length", "size"),
    ("disk", "device"),
    ("lun", "device"),
    ("pid", "process"),
    ("discard", "trim"),
];
/// What the kinds are called in tables, in small letters: whole words, and what blktrace prints.
const READS: &[&str] = &["r", "read", "reads", "rd", "get", "load", "ra", "rs", "rm", "rsm", "ram"];
const WRITES: &[&str] = &["w", "write", "writes", "wr", "put", "store", "ws", "wm", "wfs", "wsm", "wf"];
const TRIMS: &[&str] = &["t", "trim", "d", "ds", "discard", "unmap", "deallocate"];
const FLUSHES: &[&str] = &["f", "flush", "fsync", "fdatasync", "sync", "ff", "fn"];

fn wrong(found: impl Into<String>, expected: impl Into<String>) -> TraceError {
    TraceError::Columns { found: found.into(), expected: expected.into() }
}

impl TableSpec {
    /// Reads the text of `--columns`.
    pub(crate) fn parse(text: &str) -> Result<TableSpec, TraceError> {
        let mut spec = TableSpec {
            time: None,
            op: Op::Missing,
            address: None,
            size: None,
            device: None,
            process: None,
            words: Vec::new(),
            delimiter: None,
            header: None,
            comment: b"#".to_vec(),
        };
        let mut seen: Vec<&str> = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=').map(|(key, value)| (key.trim(), value.trim())) else {
                return Err(wrong(part, "KEY=VALUE, such as time=1:us"));
            };
            let key = key.to_ascii_lowercase();
            let known = ALIASES.iter().find(|(alias, _)| *alias == key).map_or(key.as_str(), |(_, key)| key);
            let Some(key) = KEYS.iter().find(|name| **name == known) else {
                return Err(unknown_key(part, known));
            };
            let twice = seen.contains(key) || (["lba", "offset"].contains(key) && spec.address.is_some());
            if twice {
                return Err(wrong(part, format!("{key} only once")));
            }
            seen.push(key);
            if value.is_empty() {
                return Err(wrong(part, format!("a value for {key}")));
            }
            spec.set(key, value, part)?;
        }
        if let (Op::All(kind), false) = (&spec.op, spec.words.is_empty()) {
            // There are words for the kinds, so this is a column that is called as a kind is.
            spec.op = Op::Column(Place::Name(kind_name(*kind).to_owned()));
        }
        if seen.is_empty() {
            return Err(wrong(text, "a description such as time=1:us,op=2,lba=3:sectors,size=4:bytes"));
        }
        let names = spec.places().any(|place| matches!(place, Place::Name(_)));
        if spec.header == Some(false) && names && spec.is_table() {
            return Err(wrong("header=no", "numbers for columns, such as lba=3, where no header line names them"));
        }
        Ok(spec)
    }

    fn set(&mut self, key: &str, value: &str, part: &str) -> Result<(), TraceError> {
        match key {
            "time" => self.time = time(value, part)?,
            "op" => self.op = op(value, part)?,
            "lba" => self.address = Some(quantity(value, part, Some(SECTOR))?),
            "offset" => self.address = Some(quantity(value, part, Some(1))?),
            "size" => self.size = Some(size(value, part)?),
            "device" => self.device = Some(place(value, part)?),
            "process" => self.process = Some(place(value, part)?),
            "delimiter" => self.delimiter = Some(delimiter(value, part)?),
            "header" => {
                self.header = match value {
                    "yes" => Some(true),
                    "no" => Some(false),
                    "auto" => None,
                    _ => return Err(wrong(part, "header=yes, header=no or header=auto")),
                }
            }
            "comment" => self.comment = value.as_bytes().to_vec(),
            _ => {
                let kind = kind_of(key);
                for word in value.split('|').map(str::trim) {
                    if self.words.iter().any(|(known, _)| known == word.as_bytes()) {
                        return Err(wrong(part, format!("{word} for one kind only")));
                    }
                    self.words.push((word.as_bytes().to_vec(), kind));
                }
            }
        }
        Ok(())
    }

    /// Whether it describes a whole table, and not only what a known format lacks.
    pub(crate) fn is_table(&self) -> bool {
        self.size.is_some() || self.time.is_some()
    }

    /// Checks that requests can be made of a row.
    pub(crate) fn check_table(&self) -> Result<(), TraceError> {
        let missing = |what: &str| {
            Err(wrong("no ".to_owned() + what.split_once('=').map_or(what, |(key, _)| key), format!("also {what}")))
        };
        match () {
            () if self.op == Op::Missing => missing("op=COLUMN, or op=read or op=write for all rows"),
            () if self.address.is_none() => missing("lba=COLUMN:sectors or offset=COLUMN:bytes"),
            () if self.size.is_none() => {
                missing("size=COLUMN:bytes, size=COLUMN:sectors, or one size for all rows such as size=4KiB")
            }
            () => Ok(()),
        }
    }

    /// All columns that are named.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        let op = match &self.op {
            Op::Column(place) => Some(place),
            _ => None,
        };
        let size = match &self.size {
            Some(Size::Column(quantity)) => Some(&quantity.place),
            _ => None,
        };
        let address = self.address.as_ref().map(|quantity| &quantity.place);
        let time = self.time.as_ref().map(|(place, _)| place);
        [time, op, address, size, self.device.as_ref(), self.process.as_ref()].into_iter().flatten()
    }

    /// The kind of all requests, if it is given.
    pub(crate) fn constant_kind(&self) -> Option<RequestKind> {
        match self.op {
            Op::All(kind) => Some(kind),
            _ => None,
        }
    }

    /// Bytes that an address counts, if that is given.
    pub(crate) fn address_unit(&self) -> Option<u64> {
        self.address.as_ref().map(|quantity| quantity.unit)
    }

    /// What a word of the op column means; `Some(None)` for a row to skip.
    pub(crate) fn kind(&self, word: &[u8]) -> Option<Option<RequestKind>> {
        if let Some((_, kind)) = self.words.iter().find(|(known, _)| known == word) {
            return Some(*kind);
        }
        known_kind(word).map(Some)
    }
}

/// What a word usually means, whatever its case.
pub(crate) fn known_kind(word: &[u8]) -> Option<RequestKind> {
    let is = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()));
    match () {
        () if is(READS) => Some(RequestKind::Read),
        () if is(WRITES) => Some(RequestKind::Write),
        () if is(TRIMS) => Some(RequestKind::Trim),
        () if is(FLUSHES) => Some(RequestKind::Flush),
        () => None,
    }
}

/// What a kind is called, in messages and as a key.
pub(crate) fn kind_name(kind: RequestKind) -> &'static str {
    kind.name()
}

fn kind_of(key: &str) -> Option<RequestKind> {
    match key {
        "read" => Some(RequestKind::Read),
        "write" => Some(RequestKind::Write),
        "trim" => Some(RequestKind::Trim),
        "flush" => Some(RequestKind::Flush),
        _ => None,
    }
}

fn unknown_key(part: &str, key: &str) -> TraceError {
    let near = KEYS.iter().map(|known| (strsim::damerau_levenshtein(known, key), known)).min();
    let hint = match near {
        Some((distance, known)) if distance <= 2 => format!(" (did you mean {known}?)"),
        _ => String::new(),
    };
    wrong(part, format!("one of the keys {}{hint}", KEYS.join(", ")))
}

fn place(text: &str, part: &str) -> Result<Place, TraceError> {
    match text.parse::<usize>() {
        Ok(0) => Err(wrong(part, "a column counted from 1")),
        Ok(number) => Ok(Place::Number(number - 1)),
        Err(_) => Ok(Place::Name(text.to_owned())),
    }
}

fn known<T: Copy>(table: &[(&str, T)], text: &str) -> Option<T> {
    table.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, value)| *value)
}

fn time(value: &str, part: &str) -> Result<Option<(Place, TimeUnit)>, TraceError> {
    let unit = |text: &str| match text {
        "date" => Some(TimeUnit::Date),
        _ => known(TIMES, text).map(TimeUnit::Nanos),
    };
    if value == "none" {
        return Ok(None);
    }
    // A unit alone: the first column.
    if let Some(unit) = unit(value).filter(|_| value != "100ns") {
        return Ok(Some((Place::Number(0), unit)));
    }
    // A name may have a colon of its own.
    if let Some((column, last)) = value.rsplit_once(':') {
        if let Some(unit) = unit(last) {
            return Ok(Some((place(column, part)?, unit)));
        }
        if column.parse::<usize>().is_ok() {
            return Err(wrong(part, "a unit of time: s, ms, us, ns, 100ns (filetime) or date"));
        }
    }
    Ok(Some((place(value, part)?, TimeUnit::Unknown)))
}

fn op(value: &str, part: &str) -> Result<Op, TraceError> {
    Ok(match value {
        "read" | "write" | "trim" => Op::All(kind_of(value).unwrap_or_default()),
        "flush" => return Err(wrong(part, "op=read, op=write or op=trim for all rows, or a column")),
        column => Op::Column(place(column, part)?),
    })
}

/// A column, its unit and whether it is hexadecimal, from the end, since a name may have a colon of its own.
fn quantity(value: &str, part: &str, default: Option<u64>) -> Result<Quantity, TraceError> {
    let (mut rest, mut unit, mut hex) = (value, None, false);
    while let Some((before, last)) = rest.rsplit_once(':') {
        match size_unit(last) {
            _ if last == "hex" && !hex => hex = true,
            Some(found) if unit.is_none() => unit = Some(found),
            _ if before.parse::<usize>().is_ok() => {
                return Err(wrong(part, "a unit: bytes, sectors, pages or a size such as 8KiB; or hex"));
            }
            _ => break,
        }
        rest = before;
    }
    match unit.or(default) {
        Some(unit) => Ok(Quantity { place: place(rest, part)?, unit, hex }),
        None => Err(wrong(part, format!("a unit, such as {part}:bytes or {part}:sectors"))),
    }
}

fn size_unit(text: &str) -> Option<u64> {
    known(SIZES, text).or_else(|| text.parse::<Bytes>().ok().map(|size| size.0).filter(|size| *size > 0))
}

fn size(value: &str, part: &str) -> Result<Size, TraceError> {
    let constant = value.bytes().next().is_some_and(|byte| byte.is_ascii_digit()) && value.parse::<usize>().is_err();
    if constant && !value.contains(':') {
        return match value.parse::<Bytes>() {
            Ok(size) if size.0 > 0 => Ok(Size::Constant(size.0)),
            _ => Err(wrong(
                part,
                "a column with its unit such as size=5:bytes, or a size for all rows such as size=4KiB",
            )),
        };
    }
    Ok(Size::Column(quantity(value, part, None)?))
}

fn delimiter(value: &str, part: &str) -> Result<Delimiter, TraceError> {
    match value.as_bytes() {
        [sign] if !sign.is_ascii_alphanumeric() && *sign != b'"' => Ok(Delimiter::Sign(*sign)),
        _ => known(DELIMITERS, value)
            .ok_or_else(|| wrong(part, "comma, tab, semicolon, pipe, blank or a sign such as delimiter=;")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<TableSpec, String> {
        TableSpec::parse(text).and_then(|spec| spec.check_table().map(|()| spec)).map_err(|error| error.to_string())
    }

    #[test]
    fn columns_units_and_words() {
        let spec = parse("time=1:us, op=3, lba=4:sectors, size=Size (B):bytes, write=W|1, delimiter=tab").unwrap();
        assert_eq!(spec.time, Some((Place::Number(0), TimeUnit::Nanos(1_000))));
        assert_eq!(spec.op, Op::Column(Place::Number(2)));
        assert_eq!(spec.address, Some(Quantity { place: Place::Number(3), unit: 512, hex: false }));
        let name = Place::Name("Size (B)".to_owned());
        assert_eq!(spec.size, Some(Size::Column(Quantity { place: name, unit: 1, hex: false })));
        assert_eq!(spec.delimiter, Some(Delimiter::Sign(b'\t')));
        assert_eq!(spec.kind(b"1"), Some(Some(RequestKind::Write)));
        assert_eq!(spec.kind(b"READ"), Some(Some(RequestKind::Read)));
        assert_eq!(spec.kind(b"0"), None);
        let spec = parse("time=ns,op=read,offset=2:8KiB:hex,size=4k").unwrap();
        assert_eq!(spec.time, Some((Place::Number(0), TimeUnit::Nanos(1))));
        assert_eq!(spec.address, Some(Quantity { place: Place::Number(1), unit: 8192, hex: true }));
        assert_eq!(spec.size, Some(Size::Constant(4096)));
        // A column that is called as a kind is, since there are words for the kinds.
        let spec = parse("op=write,read=0,write=1,lba=1,size=4k").unwrap();
        assert_eq!(
            (spec.op.clone(), spec.kind(b"1")),
            (Op::Column(Place::Name("write".to_owned())), Some(Some(RequestKind::Write)))
        );
        // A name with a colon, and a unit behind it.
        let spec = parse("op=write,lba=a:b:pages,size=2:sectors").unwrap();
        assert_eq!(spec.address, Some(Quantity { place: Place::Name("a:b".to_owned()), unit: 4096, hex: false }));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, expected) in [
            ("", "columns: found \"\", expected a description such as"),
            ("size", "columns: found \"size\", expected KEY=VALUE"),
            (
                "lab=3",
                "expected one of the keys time, op, lba, offset, size, device, process, read, write, trim, flush, skip, delimiter, header, comment (did you mean lba?)",
            ),
            ("lba=0", "columns: found \"lba=0\", expected a column counted from 1"),
            ("size=5", "columns: found \"size=5\", expected a unit, such as size=5:bytes or size=5:sectors"),
            ("time=1:fortnights", "expected a unit of time: s, ms, us, ns, 100ns (filetime) or date"),
            ("lba=1,offset=2", "columns: found \"offset=2\", expected offset only once"),
            ("read=R,write=R", "columns: found \"write=R\", expected R for one kind only"),
            (
                "lba=1,size=2:bytes",
                "columns: found \"no op\", expected also op=COLUMN, or op=read or op=write for all rows",
            ),
            ("op=1,size=2:bytes", "columns: found \"no lba\", expected also lba=COLUMN:sectors or offset=COLUMN:bytes"),
            ("op=1,lba=2", "columns: found \"no size\", expected also size=COLUMN:bytes"),
            ("op=rw,lba=2,size=3:bytes,header=no", "columns: found \"header=no\", expected numbers for columns"),
            ("delimiter=xx", "columns: found \"delimiter=xx\", expected comma, tab"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
