//! The sizes of a drive as seen from outside.

use flashwright_block::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::str::FromStr;

/// One size that a probe may have found.
///
/// ```
/// # use flashwright_host::Finding;
/// # use flashwright_block::Bytes;
/// assert_eq!("255 KiB".parse(), Ok(Finding::Size(Bytes(255 << 10))));
/// assert_eq!("16k".parse(), Ok(Finding::Size(Bytes(16 << 10))));
/// assert_eq!("none".parse(), Ok(Finding::Absent));
/// assert_eq!(Finding::default().to_string(), "unknown");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finding {
    /// Not measured, or no verdict was possible.
    #[default]
    Unknown,
    /// The drive has none.
    Absent,
    /// Found, in bytes.
    Size(Bytes),
}

impl Finding {
    /// The size in sectors of 512 bytes, rounded down; none if it is unknown or absent.
    #[must_use]
    pub fn sectors(self) -> Option<u64> {
        match self {
            Self::Size(bytes) => Some(bytes.0 / flashwright_block::SECTOR_BYTES).filter(|sectors| *sectors > 0),
            _ => None,
        }
    }
}

impl FromStr for Finding {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "unknown" => Ok(Self::Unknown),
            "none" => Ok(Self::Absent),
            text => {
                let bytes: Bytes = text.parse().map_err(|_| {
                    format!("found {text:?}, expected a size such as \"16 KiB\", \"none\" or \"unknown\"")
                })?;
                if bytes.0 < flashwright_block::SECTOR_BYTES || !bytes.0.is_multiple_of(flashwright_block::SECTOR_BYTES)
                {
                    return Err(format!("found {text:?}, expected a multiple of 512 B, \"none\" or \"unknown\""));
                }
                Ok(Self::Size(bytes))
            }
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::Absent => f.write_str("none"),
            Self::Size(bytes) => bytes.fmt(f),
        }
    }
}

flashwright_block::registry::text_schema!(
    Finding,
    { "type": ["string", "integer"], "x-takes": "a size, a multiple of 512 B, `none` or `unknown`" }
);

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Finding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A bare number of bytes, or text, which may also be a bare number.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Given {
            Bytes(u64),
            Text(String),
        }
        if !deserializer.is_human_readable() {
            return String::deserialize(deserializer)?.parse().map_err(D::Error::custom);
        }
        let given = Given::deserialize(deserializer)
            .map_err(|_| D::Error::custom("no size, expected a size such as \"16 KiB\", \"none\" or \"unknown\""))?;
        match given {
            Given::Bytes(bytes) => bytes.to_string().parse(),
            Given::Text(text) => text.parse(),
        }
        .map_err(D::Error::custom)
    }
}

/// `[host.profile]`: the sizes of a drive that parameter-aware schedulers use, found by a probe or known to the user
/// (Kim et al., section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Profile {
    /// The unit in which the drive reads and writes internally.
    pub clustered_page: Finding,
    /// The unit in which the drive erases.
    pub clustered_block: Finding,
    /// Size of the RAM from which the drive serves repeated reads.
    pub read_buffer: Finding,
    /// Size of the RAM that takes writes before the flash does.
    pub write_buffer: Finding,
}
