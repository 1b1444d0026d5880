//! Validation errors of settings, one line each.

use std::fmt;

/// One validation error of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The key's full path, such as `timing.program`; empty if the error has no key.
    pub key: String,
    /// What was found, what was expected, and the nearest match.
    pub what: String,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() { f.write_str(&self.what) } else { write!(f, "{}: {}", self.key, self.what) }
    }
}

/// All validation errors of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(|problem| format!("{}: {problem}", .source_name)).collect::<Vec<_>>().join("\n"))]
pub struct ConfigError {
    /// The file, the bundled drive's name, or `--set`.
    pub source_name: String,
    /// The errors; at least one.
    pub problems: Vec<SettingError>,
}

/// Collects problems while a configuration is checked.
#[derive(Default)]
pub(crate) struct Problems(pub Vec<SettingError>);

impl Problems {
    /// Records a problem unless `ok`.
    pub fn unless(&mut self, ok: bool, key: &str, found: impl fmt::Display, expected: &str) {
        if !ok {
            self.0.push(SettingError { key: key.to_owned(), what: format!("found {found}, expected {expected}") });
        }
    }

    /// Whether a key has a problem.
    pub fn concern(&self, key: &str) -> bool {
        self.0.iter().any(|problem| problem.key == key)
    }
}
