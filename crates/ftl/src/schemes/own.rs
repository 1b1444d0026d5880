//! Translation layers that a core is built with beside ours: a crate of one's own registers them before the first drive is read, and
//! from then on `ftl.scheme` takes their names and `[ftl.NAME]` their settings. They are layers from outside ([`super::foreign`]) in all
//! else. The lists of ours stay closed, so nothing is looked up at run time for them.

use super::{DecideFtl, FtlDrive, MakeFtl, SchemeName};
use crate::guarded::GuardedFlash;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

/// A translation layer that can be registered.
pub trait OwnFtl: DecideFtl + Sized + 'static {
    /// One-line description, with its source.
    const ABOUT: &'static str;
    /// Blocks of a plane that it fills side by side, at least 1.
    const OPEN_BLOCKS: u32 = 1;
    /// Whether it cleans where no write waits, by [`DecideFtl::clean`], as a `gc.schedule` other than `foreground` needs.
    const CLEANS: bool = false;
    /// Its settings, in a table named after it under `[ftl]`: doc comments and ranges appear where those of ours do.
    type Settings: Default + Serialize + DeserializeOwned + JsonSchema;

    /// The layer of a drive, over erased flash.
    ///
    /// # Errors
    /// The reason why it can't work on this drive.
    fn new(settings: Self::Settings, drive: FtlDrive, flash: &mut GuardedFlash) -> Result<Self, String>;
}

/// A layer that was registered.
pub struct OwnLayer {
    name: &'static str,
    about: &'static str,
    open_blocks: u32,
    cleans: bool,
    defaults: Value,
    schema: fn(&mut SchemaGenerator) -> Schema,
    /// Settings as the layer understands them.
    read: fn(&Value) -> Result<Value, String>,
    make: Make,
}

type Make = fn(&Value, FtlDrive, &mut GuardedFlash) -> Result<Box<dyn DecideFtl>, String>;

static LAYERS: RwLock<Vec<&'static OwnLayer>> = RwLock::new(Vec::new());

/// All that were registered, in order.
#[must_use]
pub fn layers() -> Vec<&'static OwnLayer> {
    LAYERS.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Adds a layer to those that `ftl.scheme` names, for the rest of the process.
///
/// # Errors
/// A line, if the name is taken, or is not of small letters, digits and single hyphens.
///
/// ```
/// # use flashwright_ftl::{DecideFtl, FtlDrive, GuardedFlash, LpnRun, NoSettings, OwnFtl, register};
/// /// Keeps nothing, and so has room for nothing.
/// #[derive(Clone, Debug)]
/// struct Full;
///
/// impl DecideFtl for Full {
///     fn write(&mut self, _: LpnRun, _: &mut Box<GuardedFlash>) -> Result<bool, String> {
///         Ok(false)
///     }
///     fn trim(&mut self, _: LpnRun, _: &mut Box<GuardedFlash>) -> Result<(), String> {
///         Ok(())
///     }
///     fn lookup(&self, _: u32) -> Result<Option<i64>, String> {
///         Ok(None)
///     }
///     fn again(&self) -> Box<dyn DecideFtl> {
///         Box::new(self.clone())
///     }
/// }
///
/// impl OwnFtl for Full {
///     const ABOUT: &'static str = "no room";
///     type Settings = NoSettings;
///     fn new(_: NoSettings, _: FtlDrive, _: &mut GuardedFlash) -> Result<Self, String> {
///         Ok(Self)
///     }
/// }
///
/// register::<Full>("full")?;
/// assert_eq!(register::<Full>("page").unwrap_err(), "page: found a layer of this name, expected another name");
/// # Ok::<(), String>(())
/// ```
pub fn register<T: OwnFtl>(name: &'static str) -> Result<(), String> {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if !name.split('-').all(is_word) {
        return Err(format!("found the name {name:?} for a layer, expected small letters, digits and single hyphens"));
    }
    // The keys of `[ftl]` that are no scheme, and a layer that is passed in.
    let taken = ["scheme", "entry-bytes", SchemeName::Foreign(None).listed().name];
    if SchemeName::named(name).is_some() || taken.contains(&name) {
        return Err(format!("{name}: found a layer of this name, expected another name"));
    }
    let value = |settings: T::Settings| serde_json::to_value(settings).map_err(|error| format!("{name}: {error}"));
    let layer = OwnLayer {
        name,
        about: T::ABOUT,
        open_blocks: T::OPEN_BLOCKS,
        cleans: T::CLEANS,
        defaults: value(T::Settings::default())?,
        schema: |generator| generator.subschema_for::<T::Settings>(),
        read: |given| {
            let settings: T::Settings = serde_json::from_value(given.clone()).map_err(|error| error.to_string())?;
            serde_json::to_value(settings).map_err(|error| error.to_string())
        },
        make: |settings, drive, flash| {
            let settings = serde_json::from_value(settings.clone()).map_err(|error| error.to_string())?;
            Ok(Box::new(T::new(settings, drive, flash)?))
        },
    };
    LAYERS.write().unwrap_or_else(PoisonError::into_inner).push(Box::leak(Box::new(layer)));
    Ok(())
}

impl OwnLayer {
    /// The name that users choose it by.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn about(&self) -> &'static str {
        self.about
    }

    /// The one of a name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        layers().into_iter().find(|layer| layer.name == name)
    }
}

impl fmt::Debug for OwnLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl MakeFtl for OwnLayer {
    fn name(&self) -> &str {
        self.name
    }
    fn open_blocks(&self) -> u32 {
        self.open_blocks
    }
    fn cleans(&self) -> bool {
        self.cleans
    }
    fn make(
        &self,
        drive: FtlDrive,
        settings: &OwnSettings,
        flash: &mut Box<GuardedFlash>,
    ) -> Result<Box<dyn DecideFtl>, String> {
        (self.make)(settings.0.get(self.name).unwrap_or(&self.defaults), drive, flash)
    }
}

/// The settings of registered layers, by their names.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct OwnSettings(BTreeMap<&'static str, Value>);

impl Default for OwnSettings {
    fn default() -> Self {
        // A layer without settings has no table.
        let all =
            layers().into_iter().filter(|layer| layer.defaults.as_object().is_some_and(|table| !table.is_empty()));
        Self(all.map(|layer| (layer.name, layer.defaults.clone())).collect())
    }
}

impl<'de> Deserialize<'de> for OwnSettings {
    /// Of a table with other keys beside them.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = BTreeMap::<String, Value>::deserialize(deserializer)?;
        let mut settings = Self::default();
        for (name, kept) in &mut settings.0 {
            if let (Some(found), Some(layer)) = (given.get(*name), OwnLayer::named(name)) {
                *kept = (layer.read)(found).map_err(D::Error::custom)?;
            }
        }
        Ok(settings)
    }
}

impl JsonSchema for OwnSettings {
    fn schema_name() -> Cow<'static, str> {
        "OwnSettings".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let settings = Self::default().0;
        let tables: Map<String, Value> = layers()
            .into_iter()
            .filter(|layer| settings.contains_key(layer.name))
            .map(|layer| (layer.name.to_owned(), (layer.schema)(generator).into()))
            .collect();
        json_schema!({ "type": "object", "properties": tables })
    }
}
