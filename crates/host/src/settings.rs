//! Settings of the host's side.

use crate::profile::Profile;
use crate::schedulers::{SchedulerName, SchedulerSettings};
use flashwright_block::{Bytes, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::str::FromStr;

/// Schedulers from the host down to the drive, joined by `+`.
///
/// ```
/// # use flashwright_host::Chain;
/// assert_eq!("deadline+noop".parse::<Chain>().unwrap().0.len(), 2);
/// assert!("none".parse::<Chain>().unwrap().0.is_empty());
/// assert!("noop+elevator".parse::<Chain>().unwrap_err().contains("elevator"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain(pub Vec<SchedulerName>);

impl FromStr for Chain {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::default());
        }
        let named = |name: &str| {
            let found = SchedulerName::ALL.iter().find(|known| known.listed().name == name.trim());
            found.copied().ok_or_else(|| {
                let names: Vec<&str> = SchedulerName::ALL.iter().map(|known| known.listed().name).collect();
                let near = names.iter().map(|known| (strsim::jaro_winkler(known, name.trim()), known));
                let near = near.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(likeness, _)| *likeness > 0.8);
                let hint = near.map(|(_, known)| format!("; did you mean {known:?}?")).unwrap_or_default();
                format!(
                    "found {:?}, expected \"none\", {}, or several of them joined by \"+\"{hint}",
                    name.trim(),
                    names.join(", ")
                )
            })
        };
        text.split('+').map(named).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (at, name) in self.0.iter().enumerate() {
            write!(f, "{}{}", if at > 0 { "+" } else { "" }, name.listed().name)?;
        }
        Ok(())
    }
}

flashwright_block::registry::text_schema!(
    Chain,
    { "type": "string", "x-takes": "`none`, a scheduler, or several joined by `+`" }
);

impl Serialize for Chain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Chain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// `[host.block-layer]`: queueing and merging before a scheduler, as Linux 2.6 does it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct BlockLayerSettings {
    /// Longest request that merging makes (`max_sectors_kb`). Schedulers that cut requests themselves ignore it.
    #[schemars(extend("x-minimum" = "512 B", "x-maximum" = "512 GiB"))]
    pub max_request: Bytes,
    /// Largest number of queued requests per direction; further requests wait outside the scheduler (`nr_requests`).
    #[schemars(range(min = 1), extend("x-expected" = "at least {min}"))]
    pub queue_requests: u32,
    /// Plugging: an idle queue dispatches nothing until this many requests wait; 0 or 1 dispatches at once. Only the
    /// topmost scheduler plugs.
    pub plug_requests: u32,
    /// A plug also ends after this time, when the host waits for a plugged read, flush or forced write, or when the
    /// host can do nothing but wait.
    pub plug_delay: Nanos,
    /// Whether requests are merged at all (`nomerges`).
    pub merge: bool,
}

impl Default for BlockLayerSettings {
    fn default() -> Self {
        Self {
            max_request: Bytes(512 << 10),
            queue_requests: 128,
            plug_requests: 4,
            plug_delay: Nanos(3_000_000),
            merge: true,
        }
    }
}

/// The part of `[host]` that lies between a workload and a drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct StackSettings {
    /// I/O schedulers from the host down to the drive, such as `"deadline"` or `"pasa+pai"`; `"none"` passes requests
    /// on as they come.
    pub scheduler: Chain,
    /// Queueing and merging before each scheduler.
    pub block_layer: BlockLayerSettings,
    /// The known sizes of the drive.
    pub profile: Profile,
    /// Settings of the schedulers, each in a table named after it.
    #[serde(flatten)]
    pub schedulers: SchedulerSettings,
}
