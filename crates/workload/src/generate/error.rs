//! Validation errors of a workload's text, all of them at once.

use std::fmt;

/// One validation error of a key (or of the name) of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The key as the user wrote it, or `workload` for the name before the colon.
    pub key: String,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub allowed: String,
    /// The known name nearest to an unknown one.
    pub nearest: Option<String>,
}

impl Fault {
    pub(crate) fn new(key: &str, found: impl fmt::Display, allowed: impl Into<String>) -> Self {
        Self { key: key.to_owned(), found: found.to_string(), allowed: allowed.into(), nearest: None }
    }

    /// Adds the name among `known` that is most similar to what was found, if one is similar enough.
    pub(crate) fn near<'a>(mut self, found: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        self.nearest = known
            .into_iter()
            .map(|name| (strsim::jaro_winkler(found, name), name))
            .filter(|(score, _)| *score > 0.75)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, name)| name.to_owned());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found {}, expected {}", self.key, self.found, self.allowed)?;
        match &self.nearest {
            Some(name) => write!(f, " (did you mean {name}?)"),
            None => Ok(()),
        }
    }
}

/// A workload that cannot be parsed or cannot run on the drive: one line with every error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The workload as the user wrote it.
    pub spec: String,
    /// The errors, at least one.
    pub faults: Vec<Fault>,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workload {:?}: ", self.spec)?;
        for (i, fault) in self.faults.iter().enumerate() {
            write!(f, "{}{fault}", if i == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl std::error::Error for SpecError {}
