//! Values with their own syntax: a queue depth that may be `"auto"`, and a rate.

use flashwright_block::registry::text_schema;
use flashwright_block::{Bytes, Nanos, UnitError};
use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Requests that a drive accepts at once: a number, or left open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueDepth {
    /// `"auto"`: 32, or the depth of a closed loop if that is greater.
    #[default]
    Auto,
    /// This number of requests.
    Requests(u32),
}

impl QueueDepth {
    /// The largest that a drive may have.
    pub const MAX: u32 = 65_536;

    /// The number of requests; for `"auto"`, the number without a deeper closed loop.
    ///
    /// ```
    /// # use flashwright_config::QueueDepth;
    /// assert_eq!((QueueDepth::Auto.requests(), QueueDepth::Requests(4).requests()), (32, 4));
    /// ```
    #[must_use]
    pub fn requests(self) -> u32 {
        match self {
            Self::Auto => 32,
            Self::Requests(requests) => requests,
        }
    }
}

text_schema!(
    QueueDepth,
    { "type": ["string", "integer"], "minimum": 1, "maximum": QueueDepth::MAX, "x-or": "auto" }
);

impl Serialize for QueueDepth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Requests(requests) => serializer.serialize_u32(*requests),
        }
    }
}

impl<'de> Deserialize<'de> for QueueDepth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = QueueDepth;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "\"auto\" or a number of requests, 1 to 65,536")
            }
            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<QueueDepth, E> {
                let number = u32::try_from(value).ok().filter(|number| (1..=QueueDepth::MAX).contains(number));
                number.map(QueueDepth::Requests).ok_or_else(|| E::invalid_value(Unexpected::Signed(value), &self))
            }
            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<QueueDepth, E> {
                self.visit_i64(i64::try_from(value).unwrap_or(i64::MAX))
            }
            fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<QueueDepth, E> {
                if value == "auto" {
                    return Ok(QueueDepth::Auto);
                }
                Err(E::invalid_value(Unexpected::Str(value), &self))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// Bytes per second, or none.
///
/// ```
/// # use flashwright_config::Rate;
/// assert_eq!("40 MB/s".parse::<Rate>().unwrap().transfer(4096).0, 102_400);
/// assert_eq!("none".parse::<Rate>().unwrap().transfer(4096).0, 0);
/// // 64 EiB at 100 kB/s outlast 64 bits of nanoseconds.
/// assert_eq!("100 kB/s".parse::<Rate>().unwrap().transfer(u64::MAX).0, u64::MAX);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub Option<u64>);

impl Rate {
    /// Time for `bytes`, rounded up to a nanosecond and saturated at 64 bits; 0 without a rate.
    #[inline]
    #[must_use]
    pub fn transfer(self, bytes: u64) -> Nanos {
        let Some(rate) = self.0 else { return Nanos(0) };
        // Up to 18 GB the product fits into 64 bits, where a division is several times as fast.
        Nanos(match bytes.checked_mul(1_000_000_000) {
            Some(product) => product.div_ceil(rate),
            None => {
                let time = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate));
                u64::try_from(time).unwrap_or(u64::MAX)
            }
        })
    }
}

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let fail = || UnitError {
            found: text.to_owned(),
            expected: "a rate with its unit, such as \"40 MB/s\", or \"none\" if transfers take no time",
        };
        if text == "none" {
            return Ok(Self(None));
        }
        let bytes = text.strip_suffix("/s").and_then(Bytes::with_unit).ok_or_else(fail)?;
        if bytes.0 == 0 {
            return Err(fail());
        }
        Ok(Self(Some(bytes.0)))
    }
}

text_schema!(
    Rate,
    { "type": "string", "x-quantity": "rate", "x-minimum": "100 kB/s", "x-maximum": "1 TB/s", "x-or": "none" }
);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("none"),
            Some(rate) if rate % 1_000_000 == 0 => write!(f, "{} MB/s", rate / 1_000_000),
            Some(rate) => write!(f, "{}/s", Bytes(rate)),
        }
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
