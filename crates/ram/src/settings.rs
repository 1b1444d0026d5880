//! Settings of the RAM of a drive.

use crate::managers::{ManagerName, ManagerSettings};
use flashwright_block::{Bytes, Nanos};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// `[ram]`: the RAM before the translation layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct RamSettings {
    /// The manager of the RAM; `"none"` if the drive buffers nothing.
    #[serde(with = "named_or_none")]
    #[schemars(with = "NamedOrNone")]
    pub manager: Option<ManagerName>,
    /// Size of the RAM. Some managers share it with the cached mapping table.
    pub size: Bytes,
    /// Time that an access to the RAM adds to a request.
    pub latency: Nanos,
    /// Whether the content of the RAM survives a loss of power: flushes and forced writes then cost nothing. Otherwise
    /// a flush destages all acknowledged writes, and a forced write goes to flash at once.
    pub power_protected: bool,
    /// Whether the manager's own tables are deducted from the size (the page of each manager states the bytes).
    pub charge_metadata: bool,
    /// Settings of the managers, each in a table named after it.
    #[serde(flatten)]
    pub managers: ManagerSettings,
}

/// Value of `ram.manager`, for its schema.
struct NamedOrNone;

impl JsonSchema for NamedOrNone {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "NamedOrNone".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = ManagerName::ALL.iter().map(|name| name.listed().name);
        let names: Vec<&str> = std::iter::once("none").chain(names).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

/// A manager's name, or `"none"`.
mod named_or_none {
    use super::ManagerName;
    use serde::de::value::{Error as PlainError, StrDeserializer};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, de::IntoDeserializer};

    #[allow(clippy::ref_option)] // serde's signature
    pub fn serialize<S: Serializer>(name: &Option<ManagerName>, serializer: S) -> Result<S::Ok, S::Error> {
        match name {
            None => serializer.serialize_str("none"),
            Some(name) => name.serialize(serializer),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ManagerName>, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "none" {
            return Ok(None);
        }
        let plain: StrDeserializer<PlainError> = text.as_str().into_deserializer();
        ManagerName::deserialize(plain).map(Some).map_err(|_| {
            let names: Vec<String> = ManagerName::ALL.iter().map(|name| format!("`{}`", name.listed().name)).collect();
            D::Error::custom(format!("unknown variant `{text}`, expected one of `none`, {}", names.join(", ")))
        })
    }
}
