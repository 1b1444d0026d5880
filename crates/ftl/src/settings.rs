//! Settings of translation, cleaning, placement and wear.

use crate::{
    Allocation, AllocationOrder, FreeBlockOrder, MapPrefetchName, OwnSettings, PlacementName, PlacementSettings,
    ScheduleName, ScheduleSettings, SchemeName, SchemeSettings, VictimChoice, VictimSettings, WearName,
    WearPolicySettings,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::marker::PhantomData;

/// `[ftl]`: the translation layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct FtlSettings {
    /// The translation scheme.
    pub scheme: SchemeName,
    /// Bytes of RAM for one entry of a mapping table; used in the RAM figures of schemes.
    #[schemars(range(min = 1, max = 64))]
    pub entry_bytes: u32,
    /// Settings of the translation layers, each in a table named after it.
    #[serde(flatten)]
    pub schemes: SchemeSettings,
    /// Settings of registered layers, likewise.
    #[serde(flatten)]
    pub own: OwnSettings,
}

impl Default for FtlSettings {
    fn default() -> Self {
        Self {
            scheme: SchemeName::Page,
            entry_bytes: 4,
            schemes: SchemeSettings::default(),
            own: OwnSettings::default(),
        }
    }
}

/// When the old copy of an overwritten page becomes invalid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InvalidateOrder {
    /// After the new copy is programmed: a clean caused by this write may still copy the old one.
    #[default]
    AtProgram,
    /// Before the victim is chosen. If the write then fails for lack of space, the old content is lost.
    BeforeGc,
}

/// `[gc]`: cleaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct GcSettings {
    /// Policy that chooses which sealed block is cleaned; `"default"` leaves it to the translation layer. Results show
    /// the policy's name.
    pub victim: VictimChoice,
    /// Cleaning runs before a plane opens a block if it has this many free blocks or fewer.
    #[schemars(range(min = 1))]
    pub free_blocks_min: u32,
    /// When the old copy of an overwritten page becomes invalid.
    pub invalidate: InvalidateOrder,
    /// When cleaning runs. Every schedule except `"foreground"` needs a translation layer that cleans in steps (page or dftl).
    pub schedule: ScheduleName,
    /// Settings of the victim policies, each in a table named after it.
    #[serde(flatten)]
    pub victims: VictimSettings,
    /// Settings of the schedules, each in a table named after it.
    #[serde(flatten)]
    pub schedules: ScheduleSettings,
}

impl Default for GcSettings {
    fn default() -> Self {
        Self {
            victim: VictimChoice::Default,
            free_blocks_min: 2,
            invalidate: InvalidateOrder::AtProgram,
            schedule: ScheduleName::default(),
            victims: VictimSettings::default(),
            schedules: ScheduleSettings::default(),
        }
    }
}

/// `[placement]`: which plane and frontier a page goes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct PlacementConfig {
    /// Policy that chooses the frontier of a page.
    pub policy: PlacementName,
    /// How the plane of a page is chosen. Without effect with `geometry.superblock = "drive"`, which leaves one plane to choose, or one in each
    /// reclaim group.
    pub allocation: Allocation,
    /// The order in which planes take turns. Must be the default with `geometry.superblock = "drive"`, whose blocks span all dies, or those of a
    /// reclaim group.
    pub order: AllocationOrder,
    /// Number of NVM sets: the logical space is so many equal parts, in order, and each is on dies of its own, which cleaning never
    /// leaves. Dies are dealt in the order of turns, so that sets share channels under `CWDP` and have their own under `WDCP`.
    #[schemars(range(min = 1, max = 65535))]
    pub sets: u32,
    /// Settings of the placement policies, each in a table named after it.
    #[serde(flatten)]
    pub policies: PlacementSettings,
}

impl PlacementConfig {
    /// Number of reclaim groups: 1 unless pages are placed by handle.
    #[must_use]
    pub fn groups(&self) -> u32 {
        if self.policy == PlacementName::Fdp { self.policies.fdp.groups.max(1).into() } else { 1 }
    }

    /// One frontier for all pages, and planes in strict turn: what papers describe and worked examples count on.
    #[must_use]
    pub fn single_in_turn() -> Self {
        Self { policy: PlacementName::Single, allocation: Allocation::Dynamic, ..Self::default() }
    }
}

impl Default for PlacementConfig {
    fn default() -> Self {
        Self {
            policy: PlacementName::Auto,
            allocation: Allocation::default(),
            order: AllocationOrder::default(),
            sets: 1,
            policies: PlacementSettings::default(),
        }
    }
}

/// `[wear]`: endurance and wear levelling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct WearSettings {
    /// Number of erases that a block survives (the mean, if blocks differ); 0 means no limit.
    pub pe_cycles_max: u32,
    /// Relative standard deviation of the blocks' erase budgets, which are normally distributed, 0 to 0.5; 0 gives all
    /// blocks the same budget.
    #[schemars(range(min = 0.0, max = 0.5), extend("x-expected" = "a standard deviation over wear.pe-cycles-max, {range}"))]
    pub pe_cycles_spread: f64,
    /// Shape of the Weibull distribution of the blocks' erase budgets, 1 to 100; the larger, the less they vary; 0
    /// gives all blocks the same budget.
    #[schemars(range(min = 0.0, max = 100.0), extend("x-expected" = "a shape of 1 to {max}, or {min} for none"))]
    pub pe_cycles_weibull: f64,
    /// Policy that moves data so that blocks wear evenly; with `"none"` only the order of free blocks levels wear.
    #[serde(with = "named_or_none")]
    #[schemars(with = "NamedOrNone<WearName>")]
    pub policy: Option<WearName>,
    /// The order in which erased blocks are opened.
    pub free_block: FreeBlockOrder,
    /// Share of blocks that are bad from the factory, drawn at random, 0 to 0.5.
    #[schemars(range(min = 0.0, max = 0.5), extend("x-expected" = "a share of the blocks, {range}"))]
    pub factory_bad: f64,
    /// Settings of the wear policies, each in a table named after it.
    #[serde(flatten)]
    pub policies: WearPolicySettings,
}

impl Default for WearSettings {
    fn default() -> Self {
        Self {
            pe_cycles_max: 0,
            pe_cycles_spread: 0.0,
            pe_cycles_weibull: 0.0,
            policy: None,
            free_block: FreeBlockOrder::LeastWorn,
            factory_bad: 0.0,
            policies: WearPolicySettings::default(),
        }
    }
}

/// The names of the policies of a kind that a drive can do without.
pub(crate) trait Optional: Copy + 'static {
    /// All of them.
    const ALL: &'static [Self];
    /// A policy's name.
    fn name(self) -> &'static str;
}

macro_rules! optional {
    ($($names:ident),+) => {
        $(impl Optional for $names {
            const ALL: &'static [Self] = $names::ALL;
            fn name(self) -> &'static str {
                self.listed().name
            }
        })+
    };
}
optional! { WearName, MapPrefetchName }

/// Value of a key that names such a policy or none, for its schema.
pub(crate) struct NamedOrNone<T>(PhantomData<T>);

impl<T: Optional> JsonSchema for NamedOrNone<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "NamedOrNone".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = T::ALL.iter().map(|name| name.name());
        let names: Vec<&str> = std::iter::once("none").chain(names).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

/// A policy's name, or `"none"`.
pub(crate) mod named_or_none {
    use super::Optional;
    use serde::de::value::{Error as PlainError, StrDeserializer};
    use serde::de::{DeserializeOwned, Error as _, IntoDeserializer};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::ref_option)] // serde's signature
    pub fn serialize<T: Serialize, S: Serializer>(name: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        match name {
            None => serializer.serialize_str("none"),
            Some(name) => name.serialize(serializer),
        }
    }

    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: Optional + DeserializeOwned,
        D: Deserializer<'de>,
    {
        let text = String::deserialize(deserializer)?;
        if text == "none" {
            return Ok(None);
        }
        let plain: StrDeserializer<PlainError> = text.as_str().into_deserializer();
        T::deserialize(plain).map(Some).map_err(|_| {
            let names: Vec<String> = T::ALL.iter().map(|name| format!("`{}`", name.name())).collect();
            D::Error::custom(format!("unknown variant `{text}`, expected one of `none`, {}", names.join(", ")))
        })
    }
}
