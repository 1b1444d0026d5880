//! Time and size as users write them: `"200 us"`, `"4 KiB"`, `"4k"`, `4096`.
//!
//! A time needs its unit, because a bare `600` could mean nanoseconds or microseconds. A size without a unit is in
//! bytes. As in fio and dd, a letter alone is a power of 1,024 (`4k` is 4,096 bytes), and so is `KiB`; `kB` and `MB`
//! are powers of 1,000, as on a drive's label. Sizes may be written in small or large letters.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::borrow::Cow;
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

/// A span or a point of time in nanoseconds, virtual or monotonic.
///
/// ```
/// # use flashwright_block::Nanos;
/// assert_eq!("200 us".parse(), Ok(Nanos(200_000)));
/// assert_eq!("130.9us".parse(), Ok(Nanos(130_900)));
/// assert_eq!("1.5 h".parse::<Nanos>(), "90 min".parse());
/// assert_eq!("2 d".parse::<Nanos>(), "48 h".parse());
/// assert_eq!(Nanos(1_500_000).to_string(), "1.5 ms");
/// assert!("600".parse::<Nanos>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// A number of bytes.
///
/// ```
/// # use flashwright_block::Bytes;
/// assert_eq!("4 KiB".parse(), Ok(Bytes(4096)));
/// assert_eq!("1.5MB".parse(), Ok(Bytes(1_500_000)));
/// assert_eq!("4k".parse(), Ok(Bytes(4096)));
/// assert_eq!("4096".parse(), Ok(Bytes(4096)));
/// assert_eq!(Bytes(8 << 30).to_string(), "8 GiB");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A quantity that could not be parsed: what was found and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found:?}, expected {expected}")]
pub struct UnitError {
    /// The text as the user wrote it.
    pub found: String,
    /// A description with an example.
    pub expected: &'static str,
}

const TIMES: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];
const SIZES: [(&str, u64); 7] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("PiB", 1 << 50),
    ("EiB", 1 << 60),
];

/// A decimal number before its unit: digits without the point, the power of ten that they stand for, and the unit.
struct Quantity<'a> {
    digits: u128,
    power: i32,
    unit: &'a str,
}

impl<'a> Quantity<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
        let (number, mut rest) = text.split_at(end);
        let number = number.replace('_', "");
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        if whole.is_empty() || fraction.len() > 15 {
            return None;
        }
        let digits = format!("{whole}{fraction}").parse().ok()?;
        let mut power = -i32::try_from(fraction.len()).ok()?;
        // An "e" followed by digits is an exponent; otherwise it begins a unit.
        if let Some(after) = rest.strip_prefix(['e', 'E']) {
            let signed = after.strip_prefix(['+', '-']).unwrap_or(after);
            let count = signed.find(|c: char| !c.is_ascii_digit()).unwrap_or(signed.len());
            if count > 0 {
                let (exponent, unit) = after.split_at(after.len() - signed.len() + count);
                power += exponent.parse::<i32>().ok().filter(|power| power.abs() <= 30)?;
                rest = unit;
            }
        }
        Some(Self { digits, power, unit: rest.trim() })
    }

    /// The number in base units of `scale`, as a whole number, and whether it is exact.
    fn times(&self, scale: u64) -> Option<(u64, bool)> {
        let product = self.digits.checked_mul(u128::from(scale))?;
        let ten = 10u128.checked_pow(self.power.unsigned_abs())?;
        let (found, exact) = if self.power < 0 {
            (product / ten, product.is_multiple_of(ten))
        } else {
            (product.checked_mul(ten)?, true)
        };
        Some((u64::try_from(found).ok()?, exact))
    }
}

/// Other spellings of units of time: both letters mu, and those of fio and of plain English. `m` stays unknown: fio
/// means minutes by it, others milliseconds.
const TIME_SPELLINGS: [(&str, &str); 20] = [
    ("nsec", "ns"),
    ("µs", "us"),
    ("μs", "us"),
    ("usec", "us"),
    ("msec", "ms"),
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("mins", "min"),
    ("minute", "min"),
    ("minutes", "min"),
    ("hr", "h"),
    ("hrs", "h"),
    ("hour", "h"),
    ("hours", "h"),
    ("day", "d"),
    ("days", "d"),
    ("milliseconds", "ms"),
    ("microseconds", "us"),
];

/// Reads a time exactly: the product must be a whole number of nanoseconds.
fn parse_time(text: &str) -> Option<u64> {
    let quantity = Quantity::read(text)?;
    let unit = TIME_SPELLINGS.iter().find(|(name, _)| *name == quantity.unit).map_or(quantity.unit, |(_, unit)| unit);
    let scale = TIMES.iter().find(|(name, _)| *name == unit)?.1;
    quantity.times(scale).filter(|(_, exact)| *exact).map(|(nanos, _)| nanos)
}

/// Reads a size; `1.1 GiB` is not a whole number of bytes and is rounded down, `1.5 B` is refused.
fn parse_size(text: &str) -> Option<u64> {
    let quantity = Quantity::read(text)?;
    let scale = size_unit(quantity.unit)?;
    quantity.times(scale).filter(|(_, exact)| *exact || scale > 1).map(|(bytes, _)| bytes)
}

/// Bytes of a unit of size; none if the text is not such a unit.
fn size_unit(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let Some(letter) = unit.chars().next().filter(|letter| *letter != 'b') else {
        return (unit.len() < 2).then_some(1);
    };
    let power = u32::try_from("kmgtpe".find(letter)?).ok()? + 1;
    match &unit[1..] {
        "" | "i" | "ib" => Some(1 << (10 * power)),
        "b" => Some(1000u64.pow(power)),
        _ => None,
    }
}

/// A share as users write it, a number or in percent; its range is for the caller to check.
///
/// ```
/// # use flashwright_block::read_share;
/// assert_eq!((read_share("0.87"), read_share("87%"), read_share("87 %")), (Some(0.87), Some(0.87), Some(0.87)));
/// assert_eq!((read_share("most"), read_share("%")), (None, None));
/// ```
#[must_use]
pub fn read_share(text: &str) -> Option<f64> {
    match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
        None => text.trim().parse().ok(),
    }
}

impl Bytes {
    /// A size that must have a unit in bytes, such as the one before the slash of a rate: `4 KiB` or `40 MB`, never
    /// `4k`, which in a rate could be either, nor a bare number.
    ///
    /// ```
    /// # use flashwright_block::Bytes;
    /// assert_eq!(Bytes::with_unit("40 MB"), Some(Bytes(40_000_000)));
    /// assert_eq!(Bytes::with_unit("40"), None);
    /// assert_eq!(Bytes::with_unit("40M"), None);
    /// ```
    #[must_use]
    pub fn with_unit(text: &str) -> Option<Self> {
        if text.trim_end().ends_with(['b', 'B']) { parse_size(text).map(Self) } else { None }
    }

    /// The size to a tenth of its unit, for people.
    ///
    /// ```
    /// # use flashwright_block::Bytes;
    /// assert_eq!(Bytes(120_795_136).rounded(), "115.2 MiB");
    /// assert_eq!(Bytes(2048).rounded(), "2.0 KiB");
    /// assert_eq!(Bytes(512).rounded(), "512 B");
    /// ```
    #[must_use]
    pub fn rounded(self) -> String {
        let Some((unit, shift)) =
            [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)].into_iter().find(|(_, shift)| self.0 >> shift > 0)
        else {
            return format!("{} B", self.0);
        };
        #[allow(clippy::cast_precision_loss)]
        let number = self.0 as f64 / (1u64 << shift) as f64;
        format!("{number:.1} {unit}")
    }
}

/// Writes the value in the largest of `units` that needs at most three decimals, so that parsing it back is exact.
fn format(value: u64, units: &[(&str, u64)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let fits = |scale: u64| value >= scale && (u128::from(value) * 1000).is_multiple_of(u128::from(scale));
    let (name, scale) = units.iter().rev().find(|(_, scale)| fits(*scale)).unwrap_or(&units[0]);
    let (whole, thousandths) = (value / scale, u128::from(value % scale) * 1000 / u128::from(*scale));
    if thousandths == 0 {
        write!(f, "{whole} {name}")
    } else {
        write!(f, "{whole}.{} {name}", format!("{thousandths:03}").trim_end_matches('0'))
    }
}

macro_rules! quantity {
    ($type:ident, $parse:expr, $bare:expr, $print_units:expr, $expected:literal, $schema:tt) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }

        impl FromStr for $type {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                $parse(text).map($type).ok_or_else(|| UnitError { found: text.to_owned(), expected: $expected })
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                format(self.0, $print_units, f)
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(self)
                } else {
                    serializer.serialize_u64(self.0)
                }
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if !deserializer.is_human_readable() {
                    return u64::deserialize(deserializer).map($type);
                }
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<$type, E> {
                        let wrong = || E::invalid_type(serde::de::Unexpected::Unsigned(number), &self);
                        if $bare { Ok($type(number)) } else { Err(wrong()) }
                    }
                    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<$type, E> {
                        let wrong = || E::invalid_type(serde::de::Unexpected::Signed(number), &self);
                        u64::try_from(number).ok().filter(|_| $bare).map($type).ok_or_else(wrong)
                    }
                }
                deserializer.deserialize_any(Text).map_err(D::Error::custom)
            }
        }
        impl Add for $type {
            type Output = $type;
            fn add(self, other: $type) -> $type {
                $type(self.0 + other.0)
            }
        }
        impl Sub for $type {
            type Output = $type;
            fn sub(self, other: $type) -> $type {
                $type(self.0 - other.0)
            }
        }
        impl AddAssign for $type {
            fn add_assign(&mut self, other: $type) {
                self.0 += other.0;
            }
        }
    };
}

/// The longest time that a device's clock, or an arrival, may show: 100 years of 365 days. Times have 64 bits of nanoseconds,
/// which are 584 years, and what is added to a time must fit them too.
pub const TIME_MAX: Nanos = Nanos(100 * 365 * 86_400 * 1_000_000_000);

// A setting states its own limits by `#[schemars(extend("x-minimum" = …, "x-maximum" = …))]`.
quantity!(
    Nanos,
    parse_time,
    false,
    &TIMES[..4],
    "a time with its unit, such as \"200 us\"",
    { "type": "string", "x-quantity": "time", "x-minimum": "0 ns", "x-maximum": "10000 s" }
);
quantity!(
    Bytes,
    parse_size,
    true,
    &SIZES[..5],
    "a size such as \"4 KiB\", \"4k\" or 4096",
    { "type": ["string", "integer"], "x-quantity": "size", "x-minimum": "0 B", "x-maximum": "64 PiB" }
);

/// A whole number with commas between thousands, for people.
///
/// ```
/// # use flashwright_block::grouped;
/// assert_eq!(["0", "999", "1,000", "1,234,567"], [0_u64, 999, 1000, 1_234_567].map(grouped));
/// assert_eq!(grouped(-123_456_i64), "-123,456");
/// ```
#[must_use]
pub fn grouped(number: impl Into<i128>) -> String {
    let digits = number.into().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && text != "-" && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_users_write() {
        assert_eq!("41.75 us".parse(), Ok(Nanos(41_750)));
        assert_eq!("2ms".parse(), Ok(Nanos(2_000_000)));
        assert_eq!("512B".parse(), Ok(Bytes(512)));
        assert_eq!("256 KB".parse(), Ok(Bytes(256_000)));
        assert_eq!("1e3 us".parse(), Ok(Nanos(1_000_000)));
        for text in ["5us", "5 µs", "5μs", "5 usec", "5e3 nsec", "0.005 ms", "0.005msec"] {
            assert_eq!(text.parse(), Ok(Nanos(5_000)), "{text}");
        }
        assert_eq!("2 days".parse(), Ok(Nanos(48 * 3_600_000_000_000)));
        for bad in ["", "us", "1.5 ns", "-4 KiB", "4 KiB x", "1..2 us", "1.5 B", "1e99 s", "4 kibi", "4 BB", "4 i"] {
            assert!(bad.parse::<Nanos>().is_err() && bad.parse::<Bytes>().is_err(), "{bad}");
        }
        assert!("600".parse::<Nanos>().is_err());
        assert!(serde_json::from_str::<Nanos>("600").is_err());
        let error = "600".parse::<Nanos>().unwrap_err();
        assert_eq!(error.to_string(), "found \"600\", expected a time with its unit, such as \"200 us\"");
    }

    #[test]
    fn sizes_are_read_in_all_their_spellings() {
        for (text, bytes) in [
            ("4096", 4096),
            ("4_096", 4096),
            ("4k", 4096),
            ("4K", 4096),
            ("4Ki", 4096),
            ("4 kib", 4096),
            ("4KIB", 4096),
            ("4kB", 4000),
            ("4KB", 4000),
            ("4 kb", 4000),
            ("1m", 1 << 20),
            ("1T", 1 << 40),
            ("1 TB", 1_000_000_000_000),
            ("2E", 2 << 60),
            ("2e3 MB", 2_000_000_000),
            ("1.5e-1 kB", 150),
            ("1.1 GiB", 1_181_116_006),
            ("0", 0),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        assert_eq!(serde_json::from_str::<Bytes>("4096").unwrap(), Bytes(4096));
        let error = serde_json::from_str::<Bytes>("-4096").unwrap_err().to_string();
        assert!(error.contains("expected a size such as \"4 KiB\", \"4k\" or 4096"), "{error}");
        assert_eq!("16E".parse::<Bytes>().unwrap_err().found, "16E");
    }

    proptest! {
        #[test]
        fn writing_and_reading_is_the_identity(value: u64) {
            prop_assert_eq!(Nanos(value).to_string().parse(), Ok(Nanos(value)));
            prop_assert_eq!(Bytes(value).to_string().parse(), Ok(Bytes(value)));
            let json = serde_json::to_string(&Bytes(value)).unwrap();
            prop_assert_eq!(serde_json::from_str::<Bytes>(&json).unwrap(), Bytes(value));
        }
    }
}
