//! Every key that users can set: meaning, kind, default and range.
//!
//! All of it comes from the settings structs of all crates by their JSON schema: the doc comment of a field is the
//! meaning, its attribute `schemars` the range. So a policy's settings are checked and documented as soon as the policy
//! is on its list. How to state a range:
//!
//! - for a number by `range(min = …, max = …)`, open ends by `extend("exclusiveMinimum" = …, "exclusiveMaximum" = …)`;
//! - for a time, a size or a rate by `extend("x-minimum" = "…", "x-maximum" = "…", "x-multiple-of" = "…")`, where the
//!   type's own limits are too wide;
//! - for messages by `extend("x-expected" = "…")`, in which `{min}`, `{max}` and `{range}` stand for the limits.

use crate::schema::Config;
use crate::values::Rate;
use flashwright_block::{Bytes, Nanos, grouped};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value as Json};
use std::sync::OnceLock;
use toml::Value;

/// The kind of value that a key takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Whole,
    /// A number.
    Real,
    /// A time with its unit.
    Time,
    /// A size.
    Size,
    /// A rate with its unit.
    Rate,
    /// One of these words, each with its meaning if it has one of its own.
    Choice(Vec<(String, String)>),
    /// Text.
    Text,
}

/// Limits of a number. Times count in nanoseconds, sizes in bytes, rates in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limits {
    Whole { min: i128, max: i128, step: i128 },
    Real { min: f64, max: f64, above: bool, below: bool },
}

/// A key.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Its full path, such as `timing.program`.
    pub path: String,
    /// Its meaning.
    pub about: String,
    /// The kind of value it takes.
    pub kind: Kind,
    /// The values it takes, in words, if the kind alone does not describe them.
    pub takes: Option<String>,
    /// Its default as TOML; empty if it has none.
    pub default: String,
    /// A word that it accepts instead of a number.
    pub or: Option<String>,
    limits: Option<Limits>,
    /// The limits as users write them.
    ends: (String, String),
    expected: Option<String>,
}

/// A table of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its path, such as `ftl.dftl`; empty for the top level.
    pub path: String,
    /// What it configures.
    pub about: String,
}

impl Key {
    /// The limits as users write them: the smallest and the largest value, both allowed unless [`Key::range`] states
    /// otherwise; none if the key takes no number.
    #[must_use]
    pub fn limits(&self) -> Option<(&str, &str)> {
        self.limits.map(|_| (self.ends.0.as_str(), self.ends.1.as_str()))
    }

    /// The numbers that the key accepts, such as "1 to 64" or "above 0 and below 1"; none if it takes no number.
    #[must_use]
    pub fn range(&self) -> Option<String> {
        let (min, max) = (&self.ends.0, &self.ends.1);
        Some(match self.limits? {
            Limits::Real { above: true, below: true, .. } => format!("above {min} and below {max}"),
            Limits::Real { above: true, .. } => format!("above {min} and at most {max}"),
            Limits::Real { below: true, .. } => format!("{min} or more and below {max}"),
            _ => format!("{min} to {max}"),
        })
    }

    /// Whether it is a number from 0 to 1, which users may write in percent.
    pub(crate) fn is_share(&self) -> bool {
        matches!(self.limits, Some(Limits::Real { min, max, .. }) if min >= 0.0 && max <= 1.0)
    }

    /// The expected value as messages state it.
    fn expectation(&self) -> Option<String> {
        let (min, max) = (&self.ends.0, &self.ends.1);
        let range = match self.limits? {
            Limits::Whole { max: largest, .. } if self.kind == Kind::Whole && largest >= i128::from(u32::MAX) => {
                format!("{min} or more")
            }
            _ => self.range()?,
        };
        let template = self.expected.as_deref().unwrap_or("{range}");
        Some(template.replace("{range}", &range).replace("{min}", min).replace("{max}", max))
    }

    /// The error of a value that was parsed: found and expected.
    pub(crate) fn problem(&self, value: &Value) -> Option<(String, String)> {
        let limits = self.limits?;
        if value.as_str().is_some_and(|text| self.or.as_deref() == Some(text)) {
            return None;
        }
        let fits = match limits {
            Limits::Whole { min, max, step } => {
                let found = match value {
                    Value::Integer(found) => i128::from(*found),
                    Value::String(text) => i128::from(quantity(&self.kind, text)?),
                    _ => return None,
                };
                (min..=max).contains(&found) && found % step == 0
            }
            Limits::Real { min, max, above, below } => {
                let found = value.as_float()?;
                (if above { found > min } else { found >= min }) && (if below { found < max } else { found <= max })
            }
        };
        let found = match value {
            Value::String(text) => text.clone(),
            Value::Float(number) => number.to_string(),
            other => other.to_string(),
        };
        (!fits).then(|| (found, self.expectation().unwrap_or_default()))
    }
}

/// Parses a text into nanoseconds, bytes or bytes per second.
fn quantity(kind: &Kind, text: &str) -> Option<u64> {
    match kind {
        Kind::Time => text.parse().ok().map(|Nanos(time)| time),
        Kind::Size => text.parse().ok().map(|Bytes(size)| size),
        Kind::Rate => text.parse().ok().and_then(|Rate(rate)| rate),
        _ => None,
    }
}

/// The JSON schema of a drive's description. Times, sizes and rates are text; their limits are given as `x-minimum` and
/// `x-maximum`.
#[must_use]
pub fn json_schema() -> Json {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Config>().to_value()
}

/// Every key, in the order in which tables are written.
///
/// ```
/// let channels = flashwright_config::keys::all().iter().find(|key| key.path == "geometry.channels").unwrap();
/// assert_eq!((channels.range().as_deref(), channels.default.as_str()), (Some("1 to 64"), "4"));
/// ```
#[must_use]
pub fn all() -> &'static [Key] {
    &known().0
}

/// Every table, in the order of its first key.
#[must_use]
pub fn sections() -> &'static [Section] {
    &known().1
}

fn known() -> &'static (Vec<Key>, Vec<Section>) {
    static KNOWN: OnceLock<(Vec<Key>, Vec<Section>)> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let root = json_schema();
        let defaults = toml::Table::try_from(Config::default()).expect("defaults are plain tables, text and numbers");
        let mut reader = Reader { root: &root, keys: Vec::new(), sections: Vec::new() };
        reader.table("", &root, &defaults);
        (reader.keys, reader.sections)
    })
}

/// Walks through a schema.
struct Reader<'a> {
    root: &'a Json,
    keys: Vec<Key>,
    sections: Vec<Section>,
}

impl<'a> Reader<'a> {
    fn table(&mut self, path: &str, schema: &'a Json, defaults: &toml::Table) {
        let Some(properties) = schema["properties"].as_object() else { return };
        self.sections.push(Section { path: path.to_owned(), about: text_of(schema, "description") });
        // The keys of a table come before its sub-tables, as in TOML.
        let (mut tables, empty) = (Vec::new(), toml::Table::new());
        for (name, property) in properties {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let resolved = self.resolved(property);
            match defaults.get(name) {
                _ if resolved["type"] == "object" => {
                    tables.push((path, resolved, defaults.get(name).and_then(Value::as_table).unwrap_or(&empty)));
                }
                default => self.keys.push(self.key(path, property, resolved, default)),
            }
        }
        for (path, schema, defaults) in tables {
            self.table(&path, schema, defaults);
        }
    }

    /// A schema with its reference resolved.
    fn resolved(&self, schema: &'a Json) -> &'a Json {
        let target = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
        target.and_then(|target| self.root.pointer(target)).unwrap_or(schema)
    }

    fn key(&self, path: String, property: &Json, resolved: &Json, default: Option<&Value>) -> Key {
        let said = |name: &str| Some(&property[name]).filter(|found| !found.is_null()).unwrap_or(&resolved[name]);
        let text = |name: &str| said(name).as_str().map(str::to_owned);
        let kind = kind_of(resolved);
        let (limits, ends) =
            limits_of(&kind, &said).map_or((None, Default::default()), |(limits, ends)| (Some(limits), ends));
        Key {
            about: text_of(property, "description"),
            takes: text("x-takes"),
            default: default.map(Value::to_string).unwrap_or_default(),
            or: text("x-or"),
            expected: text("x-expected"),
            path,
            kind,
            limits,
            ends,
        }
    }
}

/// A text of a schema as one line.
fn text_of(schema: &Json, name: &str) -> String {
    schema[name].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn kind_of(schema: &Json) -> Kind {
    let is = |name: &str| match &schema["type"] {
        Json::String(found) => found == name,
        Json::Array(all) => all.iter().any(|found| found == name),
        _ => false,
    };
    if let Some(choices) = schema["oneOf"].as_array() {
        // Variants with a meaning of their own are listed one by one, those without as one list.
        let mut all = Vec::new();
        for choice in choices {
            let about = text_of(choice, "description");
            let names = choice["enum"].as_array().cloned().unwrap_or_else(|| vec![choice["const"].clone()]);
            all.extend(names.iter().filter_map(Json::as_str).map(|name| (name.to_owned(), about.clone())));
        }
        return Kind::Choice(all);
    }
    if let Some(names) = schema["enum"].as_array() {
        return Kind::Choice(
            names.iter().filter_map(Json::as_str).map(|name| (name.to_owned(), String::new())).collect(),
        );
    }
    match schema["x-quantity"].as_str() {
        Some("time") => Kind::Time,
        Some("size") => Kind::Size,
        Some("rate") => Kind::Rate,
        _ if schema["x-takes"].is_string() => Kind::Text,
        _ if is("boolean") => Kind::Flag,
        _ if is("integer") => Kind::Whole,
        _ if is("number") => Kind::Real,
        _ => Kind::Text,
    }
}

/// The limits of a key, as numbers and as users write them.
fn limits_of<'j>(kind: &Kind, said: &impl Fn(&str) -> &'j Json) -> Option<(Limits, (String, String))> {
    match kind {
        Kind::Time | Kind::Size | Kind::Rate => {
            let end = |name: &str| said(name).as_str().unwrap_or_default().to_owned();
            let of = |text: &str| quantity(kind, text).map(i128::from);
            let ends = (end("x-minimum"), end("x-maximum"));
            let step = of(&end("x-multiple-of")).unwrap_or(1);
            Some((Limits::Whole { min: of(&ends.0)?, max: of(&ends.1)?, step }, ends))
        }
        Kind::Whole => {
            let most = match said("format").as_str() {
                Some("uint8") => i128::from(u8::MAX),
                Some("uint16") => i128::from(u16::MAX),
                Some("uint32") => i128::from(u32::MAX),
                // The value as TOML.
                _ => i128::from(i64::MAX),
            };
            let end = |name: &str| said(name).as_f64().map(|end| end as i128);
            let (min, max) = (end("minimum").unwrap_or(0), end("maximum").unwrap_or(most));
            Some((Limits::Whole { min, max, step: 1 }, (grouped(min), grouped(max))))
        }
        Kind::Real => {
            let end = |name: &str| said(name).as_f64();
            let (above, below) = (end("exclusiveMinimum"), end("exclusiveMaximum"));
            let (min, max) = (above.or(end("minimum"))?, below.or(end("maximum"))?);
            let limits = Limits::Real { min, max, above: above.is_some(), below: below.is_some() };
            let text = |end: f64| if end >= 1e4 { grouped(end as i128) } else { end.to_string() };
            Some((limits, (text(min), text(max))))
        }
        _ => None,
    }
}

/// The keys and tables as JSON, for the reference.
#[must_use]
pub fn to_json() -> Json {
    let object = |fields: Vec<(&str, Json)>| {
        Json::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
    };
    let key = |key: &Key| {
        let (kind, choices) = match &key.kind {
            Kind::Flag => ("flag", &[][..]),
            Kind::Whole => ("whole", &[][..]),
            Kind::Real => ("real", &[][..]),
            Kind::Time => ("time", &[][..]),
            Kind::Size => ("size", &[][..]),
            Kind::Rate => ("rate", &[][..]),
            Kind::Text => ("text", &[][..]),
            Kind::Choice(all) => ("choice", &all[..]),
        };
        let choices = choices.iter().map(|(name, about)| Json::from(vec![name.clone(), about.clone()])).collect();
        object(vec![
            ("path", key.path.clone().into()),
            ("about", key.about.clone().into()),
            ("kind", kind.into()),
            ("choices", Json::Array(choices)),
            ("takes", key.takes.clone().into()),
            ("or", key.or.clone().into()),
            ("default", key.default.clone().into()),
            ("range", key.range().into()),
        ])
    };
    let section = |section: &Section| {
        object(vec![("path", section.path.clone().into()), ("about", section.about.clone().into())])
    };
    object(vec![
        ("keys", all().iter().map(key).collect::<Vec<_>>().into()),
        ("tables", sections().iter().map(section).collect::<Vec<_>>().into()),
    ])
}
