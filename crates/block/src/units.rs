//! Time and size with their units, as users write them: `"200 us"`, `"4 KiB"`.
//!
//! A bare number is refused, because a drive description in which `600` may mean nanoseconds or
//! microseconds is a drive description that is wrong half of the time.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

/// A span or a point of time in nanoseconds, virtual or monotonic.
///
/// ```
/// # use flashwright_block::Nanos;
/// assert_eq!("200 us".parse(), Ok(Nanos(200_000)));
/// assert_eq!("130.9us".parse(), Ok(Nanos(130_900)));
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
/// assert_eq!(Bytes(8 << 30).to_string(), "8 GiB");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A quantity that could not be read: what was found, and what would have been right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found:?}, expected {expected}")]
pub struct UnitError {
    /// The text as the user wrote it.
    pub found: String,
    /// A description with an example.
    pub expected: &'static str,
}

const TIMES: [(&str, u64); 5] =
    [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("min", 60_000_000_000)];
const SIZES: [(&str, u64); 9] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// Reads `<number><unit>` exactly: the number is decimal, and the product must be a whole number of base units.
fn parse(text: &str, units: &[(&str, u64)], expected: &'static str) -> Result<u64, UnitError> {
    let fail = || UnitError { found: text.to_owned(), expected };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').ok_or_else(fail)?;
    let (number, unit) = trimmed.split_at(split);
    let number = number.replace('_', "");
    let unit = unit.trim();
    let scale = units.iter().find(|(name, _)| *name == unit || (*name == "kB" && unit == "KB")).ok_or_else(fail)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.len() > 15 {
        return Err(fail());
    }
    let digits: u128 = format!("{whole}{fraction}").parse().map_err(|_| fail())?;
    let product = digits.checked_mul(u128::from(scale)).ok_or_else(fail)?;
    let divisor = 10u128.pow(u32::try_from(fraction.len()).map_err(|_| fail())?);
    if product % divisor != 0 {
        return Err(fail());
    }
    u64::try_from(product / divisor).map_err(|_| fail())
}

/// Writes the value in the largest of `units` that needs at most three decimals, so that reading it back is exact.
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
    ($type:ident, $parse_units:expr, $print_units:expr, $expected:literal) => {
        impl FromStr for $type {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                parse(text, $parse_units, $expected).map($type)
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
                }
                deserializer.deserialize_str(Text).map_err(D::Error::custom)
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

quantity!(Nanos, &TIMES, &TIMES[..4], "a time with its unit, such as \"200 us\"");
quantity!(Bytes, &SIZES, &SIZES[..5], "a size with its unit, such as \"4 KiB\"");

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
        for bad in ["", "600", "us", "1.5 ns", "4 kib", "-4 KiB", "4 KiB x", "1..2 us"] {
            assert!(bad.parse::<Nanos>().is_err() && bad.parse::<Bytes>().is_err(), "{bad}");
        }
        let error = "600".parse::<Nanos>().unwrap_err();
        assert_eq!(error.to_string(), "found \"600\", expected a time with its unit, such as \"200 us\"");
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
