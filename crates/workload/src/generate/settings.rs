//! Keys of a workload: declared once, with type, default and help; parsing, writing and the list follow from that.

use super::error::Fault;
use super::value::Value;

/// A key that a workload takes, for help and reference pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// Its name, as written before the `=`.
    pub name: &'static str,
    /// The default value; none if the help describes the default.
    pub default: Option<&'static str>,
    /// The accepted values.
    pub allowed: String,
    /// Its meaning, with its unit.
    pub help: &'static str,
}

/// The `key=value` pairs of one workload text while they are being read.
pub(crate) struct Given<'a> {
    pairs: Vec<(&'a str, &'a str)>,
    pub(crate) faults: Vec<Fault>,
}

impl<'a> Given<'a> {
    /// Splits `text` at its commas; an item without `=` belongs to the key `bare`, if the workload has one.
    pub(crate) fn split(text: &'a str, bare: Option<&'static str>) -> Self {
        let mut given = Given { pairs: Vec::new(), faults: Vec::new() };
        for item in text.split(',').map(str::trim) {
            let (key, value) = match (item.split_once('='), bare) {
                (Some((key, value)), _) => (key.trim(), value.trim()),
                (None, Some(bare)) if !item.is_empty() => (bare, item),
                _ => {
                    given.faults.push(Fault::new("workload", format!("{item:?}"), "key=value"));
                    continue;
                }
            };
            if value.is_empty() {
                given.faults.push(Fault::new(key, "nothing after the =", "a value"));
            } else if given.pairs.iter().any(|(earlier, _)| *earlier == key) {
                given.faults.push(Fault::new(key, "the key twice", "each key once"));
            } else {
                given.pairs.push((key, value));
            }
        }
        given
    }

    /// No keys at all.
    pub(crate) fn nothing() -> Self {
        Given { pairs: Vec::new(), faults: Vec::new() }
    }

    /// The value of `key`, or its default; records an error if it cannot be parsed.
    pub(crate) fn take<T: Value>(&mut self, key: &str, default: &str) -> T {
        let read_default = || T::read(default).expect("each key's default is one of its own values");
        let Some(at) = self.pairs.iter().position(|(name, _)| *name == key) else { return read_default() };
        let (_, text) = self.pairs.remove(at);
        T::read(text).unwrap_or_else(|| {
            let fault = Fault::new(key, format!("{text:?}"), T::allowed()).near(text, T::names().iter().copied());
            self.faults.push(fault);
            read_default()
        })
    }

    /// Records an error for every unknown key.
    pub(crate) fn finish(&mut self, keys: &[KeyInfo]) {
        for (key, _) in self.pairs.drain(..) {
            let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
            let fault = Fault::new(key, "an unknown key", format!("one of {}", names.join(", "))).near(key, names);
            self.faults.push(fault);
        }
    }
}

/// A set of keys, parsed into typed fields.
pub(crate) trait Settings: Sized {
    /// The keys in the order of the canonical text.
    fn keys() -> Vec<KeyInfo>;
    /// Takes its keys from `given`, defaults for the rest.
    fn read(given: &mut Given<'_>) -> Self;
    /// Appends the pairs that differ from the defaults.
    fn pairs(&self, out: &mut Vec<(&'static str, String)>);
}

/// Appends `key` with the text of `value`, unless that is the default.
pub(crate) fn push_unless_default<T: Value>(
    key: &'static str,
    value: &T,
    default: &str,
    out: &mut Vec<(&'static str, String)>,
) {
    if T::read(default).as_ref() != Some(value) {
        out.push((key, value.text()));
    }
}

/// Declares a settings struct: `"key" field: Type = "default", "help";`. An empty default is an absent option.
macro_rules! settings {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($key:literal $field:ident: $type:ty = $default:literal, $help:literal;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $(#[doc = $help] pub $field: $type,)* }

        impl $crate::generate::settings::Settings for $name {
            fn keys() -> Vec<$crate::generate::KeyInfo> {
                vec![$($crate::generate::KeyInfo {
                    name: $key,
                    default: Some($default).filter(|text: &&str| !text.is_empty()),
                    allowed: <$type as $crate::generate::value::Value>::allowed(),
                    help: $help,
                }),*]
            }
            #[allow(unused_variables)]
            fn read(given: &mut $crate::generate::settings::Given<'_>) -> Self {
                Self { $($field: given.take($key, $default),)* }
            }
            #[allow(unused_variables)]
            fn pairs(&self, out: &mut Vec<(&'static str, String)>) {
                $($crate::generate::settings::push_unless_default($key, &self.$field, $default, out);)*
            }
        }
    };
}
pub(crate) use settings;
