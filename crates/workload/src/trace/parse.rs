//! Parses fields, integers and decimals from bytes: no allocation, no floats, no panics.

use super::record::SECTOR;

/// A field that does not match the format; the caller adds file and line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadField {
    pub(crate) field: &'static str,
    pub(crate) found: String,
    pub(crate) expected: &'static str,
}

/// The error is boxed so that success returns in registers.
pub(crate) type Parsed<T> = Result<T, Box<BadField>>;

/// Longest text of a field that is shown in an error.
const SHOWN_BYTES: usize = 60;

/// The error for `found` in `field`.
#[cold]
pub(crate) fn bad<T>(field: &'static str, found: &[u8], expected: &'static str) -> Parsed<T> {
    let mut text = String::from_utf8_lossy(&found[..found.len().min(SHOWN_BYTES)]).into_owned();
    if found.len() > SHOWN_BYTES {
        text.push('…');
    }
    Err(Box::new(BadField { field, found: text, expected }))
}

/// Fields of one line, separated by one byte (CSV without quotes).
pub(crate) struct Fields<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(line: &'a [u8], separator: u8) -> Self {
        Fields { rest: Some(line), separator }
    }

    /// The next field without surrounding blanks; an error if the line has ended.
    #[inline]
    pub(crate) fn next(&mut self, field: &'static str) -> Parsed<&'a [u8]> {
        match self.optional() {
            Some(found) => Ok(found),
            None => bad(field, b"", "one more field; the line ends too early"),
        }
    }

    /// The next field, if there is one.
    #[inline]
    pub(crate) fn optional(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        match rest.iter().position(|&byte| byte == self.separator) {
            Some(at) => {
                self.rest = Some(&rest[at + 1..]);
                Some(trim(&rest[..at]))
            }
            None => {
                self.rest = None;
                Some(trim(rest))
            }
        }
    }

    /// The rest that has not been split yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest.unwrap_or(b"")
    }
}

/// Words of one line, separated by runs of blanks and tabs.
pub(crate) struct Words<'a>(pub(crate) &'a [u8]);

impl<'a> Words<'a> {
    /// The next word, if there is one.
    #[inline]
    pub(crate) fn optional(&mut self) -> Option<&'a [u8]> {
        let start = self.0.iter().position(|byte| !is_blank(*byte))?;
        let rest = &self.0[start..];
        let end = rest.iter().position(|byte| is_blank(*byte)).unwrap_or(rest.len());
        self.0 = &rest[end..];
        Some(&rest[..end])
    }

    /// The next word; an error if the line has ended.
    #[inline]
    pub(crate) fn next(&mut self, field: &'static str) -> Parsed<&'a [u8]> {
        match self.optional() {
            Some(found) => Ok(found),
            None => bad(field, b"", "one more field; the line ends too early"),
        }
    }
}

#[inline]
fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Without blanks on either side.
#[inline]
pub(crate) fn trim(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_blank(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_blank(*last)
    {
        text = rest;
    }
    text
}

/// Digits that a `u64` always holds.
const SAFE_DIGITS: usize = 19;

/// Decimal digits only, as a number.
#[inline]
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    if text.len() > SAFE_DIGITS {
        return long_digits(text);
    }
    let mut value = 0u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

#[cold]
fn long_digits(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A whole number.
#[inline]
pub(crate) fn whole(field: &'static str, text: &[u8]) -> Parsed<u64> {
    match digits(text) {
        Some(value) => Ok(value),
        None => bad(field, text, "a whole number"),
    }
}

/// A hexadecimal number, with or without `0x`.
pub(crate) fn hexadecimal(field: &'static str, text: &[u8]) -> Parsed<u64> {
    let bare = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text);
    let value = std::str::from_utf8(bare).ok().filter(|text| !text.starts_with('+'));
    match value.and_then(|text| u64::from_str_radix(text, 16).ok()) {
        Some(value) => Ok(value),
        None => bad(field, text, "a hexadecimal number"),
    }
}

/// Powers of ten that fit the fractions accepted here.
const POWERS: [u64; 20] = {
    let mut powers = [1u64; 20];
    let mut at = 1;
    while at < 20 {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// A decimal number of units of `10^unit_digits` ns, as whole nanoseconds: exact, digits below 1 ns are dropped.
#[inline]
pub(crate) fn decimal_time(field: &'static str, text: &[u8], unit_digits: usize) -> Parsed<u64> {
    match decimal(text, unit_digits) {
        Some(value) => Ok(value),
        None => bad(field, text, "a decimal number of at most 584 years"),
    }
}

#[inline]
fn decimal(text: &[u8], unit_digits: usize) -> Option<u64> {
    let Some(dot) = text.iter().position(|&byte| byte == b'.') else {
        return digits(text)?.checked_mul(POWERS[unit_digits]);
    };
    let (before, after) = (&text[..dot], &text[dot + 1..]);
    let kept = after.len().min(unit_digits);
    if after[kept..].iter().any(|byte| !byte.is_ascii_digit()) || (before.is_empty() && after.is_empty()) {
        return None;
    }
    let units = if before.is_empty() { 0 } else { digits(before)? };
    let fraction = if kept == 0 { 0 } else { digits(&after[..kept])? * POWERS[unit_digits - kept] };
    units.checked_mul(POWERS[unit_digits])?.checked_add(fraction)
}

/// A number of whole units of `unit_ns`, as nanoseconds.
#[inline]
pub(crate) fn whole_time(field: &'static str, text: &[u8], unit_ns: u64) -> Parsed<u64> {
    match digits(text).and_then(|value| value.checked_mul(unit_ns)) {
        Some(value) => Ok(value),
        None => bad(field, text, "a whole number of at most 584 years"),
    }
}

/// A number of units of `own` ns as nanoseconds, or a decimal number of the unit with these digits after the point.
#[inline]
pub(crate) fn time_in(field: &'static str, text: &[u8], own: u64, digits: Option<usize>) -> Parsed<u64> {
    match digits {
        None => whole_time(field, text, own),
        Some(digits) => decimal_time(field, text, digits),
    }
}

/// Highest sector that an address may name: all byte addresses of 64 bits.
const SECTOR_MAX: u64 = u64::MAX / SECTOR;

/// An address in sectors.
#[inline]
pub(crate) fn sector(field: &'static str, text: &[u8]) -> Parsed<u64> {
    match digits(text) {
        Some(value) if value <= SECTOR_MAX => Ok(value),
        _ => bad(field, text, "a whole number of 512 B sectors below 2^55"),
    }
}

/// A length in units of `unit` sectors, as sectors.
#[inline]
pub(crate) fn sectors(field: &'static str, text: &[u8], unit: u64) -> Parsed<u32> {
    match digits(text).and_then(|value| value.checked_mul(unit)).and_then(|value| u32::try_from(value).ok()) {
        Some(value) => Ok(value),
        None => bad(field, text, "a whole number for a request below 2 TiB"),
    }
}

/// The sectors that `length` bytes from byte `offset` touch: first and count. None above 2 TiB.
#[inline]
pub(crate) fn byte_range(offset: u64, length: u64) -> Option<(u64, u32)> {
    if length == 0 {
        return Some((offset / SECTOR, 0));
    }
    let end = offset.checked_add(length)?.div_ceil(SECTOR);
    let first = offset / SECTOR;
    Some((first, u32::try_from(end - first).ok()?))
}

/// The sectors of a request whose offset and length are in bytes.
#[inline]
pub(crate) fn bytes(offset: &[u8], length: &[u8]) -> Parsed<(u64, u32)> {
    let at = whole("offset", offset)?;
    let count = whole("size", length)?;
    match byte_range(at, count) {
        Some(range) => Ok(range),
        None => bad("size", length, "a request below 2 TiB that ends below 2^64"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        for (text, unit_digits, ns) in [
            ("0.026214", 9, Some(26_214_000)),
            ("7", 9, Some(7_000_000_000)),
            (".5", 9, Some(500_000_000)),
            ("3.", 9, Some(3_000_000_000)),
            ("1.0000000019", 9, Some(1_000_000_001)),
            ("26.214", 6, Some(26_214_000)),
            ("18446744073.709551615", 9, Some(u64::MAX)),
            ("18446744073.709551616", 9, None),
            (".", 9, None),
            ("", 9, None),
            ("-1", 9, None),
            ("1e3", 9, None),
            ("1.2.3", 9, None),
        ] {
            assert_eq!(decimal(text.as_bytes(), unit_digits), ns, "{text}");
        }
    }

    #[test]
    fn numbers_stop_at_their_limits() {
        assert_eq!(digits(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(digits(b"18446744073709551616"), None);
        assert_eq!(digits(b"00000000000000000000012"), Some(12));
        assert_eq!(hexadecimal("x", b"0x0ea84e4000"), Ok(0x000e_a84e_4000));
        assert!(hexadecimal("x", b"+12").is_err() && hexadecimal("x", b"").is_err());
        // Bytes 511..513 touch sectors 0 and 1.
        assert_eq!(byte_range(511, 2), Some((0, 2)));
        assert_eq!(byte_range(1024, 1), Some((2, 1)));
        assert_eq!(byte_range(u64::MAX, 1), None);
    }
}
