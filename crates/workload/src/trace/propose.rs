//! What `--columns` could say of a table in no known format, from its first lines. A proposal, for the user to check.

use super::detect::Head;
use super::formats::{Row, delimiter_of};
use super::parse::Number;
use super::record::SECTOR;
use super::table::{Delimiter, known_kind};

/// Rows that are looked at.
const ROWS: usize = 200;
const COLUMNS_MIN: usize = 3;
const COLUMNS_MAX: usize = 64;
/// Most words that an operation may have.
const WORDS_MAX: usize = 6;

/// Words that names of columns contain.
const TIMES: &[&str] = &["time", "ts", "arrival", "stamp", "date", "clock"];
const OPS: &[&str] =
    &["op", "type", "rw", "kind", "action", "cmd", "command", "is_write", "iswrite", "write", "read", "direction"];
const ADDRESSES: &[&str] = &["lba", "offset", "sector", "address", "addr", "lbn", "block", "blk", "start"];
const SIZES: &[&str] = &["size", "length", "len", "bytes", "nbytes", "count", "sectors", "blocks"];

/// One column of the first rows.
struct Column {
    name: Option<String>,
    values: Vec<String>,
    numbers: Vec<f64>,
}

impl Column {
    fn is_number(&self) -> bool {
        self.numbers.len() == self.values.len()
    }

    fn is_called(&self, names: &[&str]) -> bool {
        let Some(name) = self.name.as_ref().map(|name| name.to_ascii_lowercase()) else { return false };
        let mut words =
            name.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_').filter(|word| !word.is_empty());
        words.any(|word| {
            names.iter().any(|wanted| {
                word == *wanted
                    || word.split('_').any(|part| part == *wanted)
                    || (wanted.len() > 3 && word.contains(wanted))
            })
        })
    }

    fn words(&self) -> Vec<&str> {
        let mut words: Vec<_> = self.values.iter().map(String::as_str).collect();
        words.sort_unstable();
        words.dedup();
        words
    }

    fn max(&self) -> f64 {
        self.numbers.iter().copied().fold(0.0, f64::max)
    }

    fn rises(&self) -> bool {
        let steps = self.numbers.windows(2).filter(|pair| pair[1] >= pair[0]).count();
        self.is_number() && steps * 10 >= self.numbers.len().saturating_sub(1) * 9
    }

    fn all_of(&self, unit: u64) -> bool {
        #[allow(clippy::cast_precision_loss)] // a small power of two
        let unit = unit as f64;
        self.max() > 0.0 && self.numbers.iter().all(|value| value % unit == 0.0)
    }
}

/// `it looks like a table of 5 columns; describe it, such as --columns ...`; none if it does not look like one.
pub(crate) fn proposal(head: &Head<'_>) -> Option<String> {
    let columns = columns(head)?;
    let filled = |at: &usize| !columns[*at].values.iter().all(String::is_empty);
    let mut free: Vec<usize> = (0..columns.len()).filter(filled).collect();
    let count = free.len();
    let op = operation(&columns, &free);
    free.retain(|at| Some(*at) != op);
    let time = time(&columns, &free);
    free.retain(|at| Some(*at) != time && columns[*at].is_number());
    let (address, size) = address_and_size(&columns, &free)?;
    let place = |at: usize| match &columns[at].name {
        Some(name) if !name.contains([',', '=', ':', '"']) && name.parse::<usize>().is_err() => name.clone(),
        _ => (at + 1).to_string(),
    };
    let mut parts = Vec::new();
    parts.extend(time.map(|at| format!("time={}{}", place(at), time_unit(&columns[at]))));
    match op {
        None => parts.push("op=read".to_owned()),
        Some(at) => {
            parts.push(format!("op={}", place(at)));
            let words = columns[at].words();
            if let (true, [zero, one]) =
                (words.iter().any(|word| known_kind(word.as_bytes()).is_none()), words.as_slice())
            {
                // What is true of a column called after writes is a write.
                let (read, write) = if columns[at].is_called(&["write"]) { (zero, one) } else { (one, zero) };
                parts.push(format!("read={read},write={write}"));
            }
        }
    }
    let unit = |at: usize| {
        let called = |wanted: &[&str]| columns[at].is_called(wanted);
        if called(&["byte", "bytes", "offset"])
            || (columns[at].all_of(SECTOR) && !called(&["sector", "sectors", "lba", "lbn"]))
        {
            "bytes"
        } else {
            "sectors"
        }
    };
    parts.push(format!("lba={}:{}", place(address), unit(address)));
    parts.push(match size {
        Some(at) => format!("size={}:{}", place(at), unit(at)),
        None => "size=4KiB".to_owned(),
    });
    Some(format!(
        "It looks like a table of {count} columns; describe it, with its own units and words, such as --columns {}",
        quoted(&parts.join(","))
    ))
}

/// As a shell takes it.
fn quoted(text: &str) -> String {
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"=,:_.-/".contains(&byte)) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// The columns of the first rows, if most of these have equally many.
fn columns(head: &Head<'_>) -> Option<Vec<Column>> {
    let text = |line: &&[u8]| line.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control());
    let lines: Vec<_> = head.lines().take(ROWS).collect();
    if !lines.iter().all(text) {
        return None;
    }
    let comment = |line: &&[u8]| line.starts_with(b"#") || line.starts_with(b"%");
    let rows: Vec<_> = lines.iter().copied().filter(|line| !comment(line)).collect();
    let delimiter = delimiter_of(rows.last()?);
    let mut split = Row::default();
    let mut fields = |line: &[u8], delimiter: Delimiter| -> Option<Vec<String>> {
        split.split(line, delimiter).ok()?;
        let field = |at| split.get(line, at).map(|field| String::from_utf8_lossy(field).into_owned());
        (0..split.len()).map(field).collect()
    };
    let rows: Vec<_> = rows.into_iter().filter_map(|line| fields(line, delimiter)).collect();
    let width = rows.last()?.len();
    if !(COLUMNS_MIN..=COLUMNS_MAX).contains(&width) {
        return None;
    }
    let even: Vec<_> = rows.iter().filter(|row| row.len() == width).collect();
    let is_header = |row: &[String]| row.iter().all(|field| Number::read(field.as_bytes()).is_none());
    let header = even.first().filter(|row| even.len() > 1 && is_header(row) && !is_header(even[1]));
    let data = &even[usize::from(header.is_some())..];
    if data.is_empty() || even.len() * 10 < rows.len() * 9 {
        return None;
    }
    let column = |at: usize| {
        let values: Vec<_> = data.iter().map(|row| row[at].clone()).collect();
        let numbers = values.iter().filter_map(|value| number(value)).collect();
        Column { name: header.map(|header| header[at].clone()), values, numbers }
    };
    Some((0..width).map(column).collect())
}

fn number(text: &str) -> Option<f64> {
    match text.strip_prefix("0x") {
        #[allow(clippy::cast_precision_loss)] // for a proposal
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|value| value as f64),
        None => Number::read(text.as_bytes()).and_then(|_| text.parse().ok()),
    }
}

/// The column of the operations: words that are known, a name, or the last column of two small numbers.
fn operation(columns: &[Column], free: &[usize]) -> Option<usize> {
    let few = |at: &&usize| (1..=WORDS_MAX).contains(&columns[**at].words().len());
    let known = |at: &&usize| columns[**at].words().iter().all(|word| known_kind(word.as_bytes()).is_some());
    let small = |at: &&usize| columns[**at].words() == ["0", "1"];
    let called = |at: &&usize| columns[**at].is_called(OPS);
    let among = || free.iter().filter(few);
    among().find(known).or_else(|| among().find(called)).or_else(|| among().rfind(small)).copied()
}

/// The column of the times: a name, dates, or the numbers that rise and differ most.
fn time(columns: &[Column], free: &[usize]) -> Option<usize> {
    let is_date = |at: &&usize| {
        let value = columns[**at].values.first();
        value.is_some_and(|value| {
            !columns[**at].is_number() && value.contains(':') && value.starts_with(|sign: char| sign.is_ascii_digit())
        })
    };
    let called = free.iter().find(|at| columns[**at].is_called(TIMES) && (columns[**at].is_number() || is_date(at)));
    let rising = || {
        let rising = free.iter().filter(|at| columns[**at].rises() && columns[**at].words().len() > 1);
        // Of equals the first.
        rising.rev().max_by_key(|at| columns[**at].words().len())
    };
    called.or_else(|| free.iter().find(is_date)).or_else(rising).copied()
}

/// `:us`, or nothing for dates.
fn time_unit(column: &Column) -> &'static str {
    let name = column.name.as_ref().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
    let ends = |unit: &str| {
        let rest = name.trim_end_matches(')').strip_suffix(unit);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(|sign: char| !sign.is_ascii_alphanumeric()))
    };
    if !column.is_number() {
        return "";
    }
    for (unit, shown) in [("ns", ":ns"), ("us", ":us"), ("ms", ":ms"), ("s", ":s"), ("sec", ":s"), ("seconds", ":s")] {
        if ends(unit) {
            return shown;
        }
    }
    // What dates of our time are in each unit, since 1970 or, in steps of 100 ns, since 1601.
    match column.max() {
        max if max > 1e18 => ":ns",
        max if max > 1e17 => ":100ns",
        max if max > 1e15 => ":us",
        max if max > 1e12 => ":ms",
        max if max > 1e9 && max < 4e9 => ":s",
        _ if column.values.iter().any(|value| value.contains('.')) => ":s",
        _ => ":us",
    }
}

/// By name, or the numbers that reach furthest and those of the others that come next.
fn address_and_size(columns: &[Column], free: &[usize]) -> Option<(usize, Option<usize>)> {
    let called = |names: &[&str], but: Option<usize>| {
        free.iter().copied().find(|at| Some(*at) != but && columns[*at].is_called(names))
    };
    let furthest = |but: Option<usize>| {
        let others = free.iter().copied().filter(|at| Some(*at) != but);
        others.rev().max_by(|a, b| columns[*a].max().total_cmp(&columns[*b].max()))
    };
    let size = called(SIZES, None);
    let address = called(ADDRESSES, size).or_else(|| furthest(size))?;
    let size = size.or_else(|| {
        let behind = free.iter().copied().filter(|at| *at > address && columns[*at].words().len() > 1);
        behind.min().or_else(|| furthest(Some(address)))
    });
    Some((address, size))
}
