//! Errors of traces, which tell the user where the problem is, what was found and what to try.

use flashwright_block::SourceError;
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An error of opening, reading, mapping or writing a trace.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A field of a line does not match the format.
    #[error("{path}:{line}: field {field}: found {found:?}, expected {expected}", path = .path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// Line in the (decompressed) file, from 1.
        line: u64,
        /// Name of the field in the format.
        field: Cow<'static, str>,
        /// The text in the file, shortened if long.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A record of a binary trace does not match the format.
    #[error("{path}: record {record}: {what}", path = .path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Record (or chunk) in the file, from 1.
        record: u64,
        /// What was found and what was expected.
        what: String,
    },
    /// The file is truncated.
    #[error("{path}: the file is cut short: it ends in the middle of {what}; copy or download it again", path = .path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// What was being read.
        what: &'static str,
    },
    /// The compressed stream is damaged.
    #[error("{path}: the {compression} stream is damaged: {what}; copy or download it again", path = .path.display(), what = in_a_line(.source))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Name of the compression.
        compression: &'static str,
        /// The error of the decompressor.
        source: Arc<io::Error>,
    },
    /// An operating-system error.
    #[error("{path}: cannot {action}: {why}", path = .path.display(), why = flashwright_block::system_says(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// The path names a directory.
    #[error("{path}: is a directory; give one trace file", path = .path.display())]
    Directory {
        /// The path.
        path: PathBuf,
    },
    /// The file is packed in a way that is not read, or a member of an archive must be chosen.
    #[error("{path}: {what}", path = .path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// What it is, and what to try.
        what: String,
    },
    /// The file is empty.
    #[error("{path}: the file is empty", path = .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// No format matches the content.
    #[error("{path}: in no known format (tried {tried}); it begins with {begins:?}. {hint}", path = .path.display())]
    UnknownContent {
        /// The file.
        path: PathBuf,
        /// Names of the formats that were tried.
        tried: String,
        /// The first bytes, printable.
        begins: String,
        /// What to try: how to describe its columns, if it has some.
        hint: String,
    },
    /// Several formats fit the content and can't be distinguished.
    #[error("{path}: could be {could_be}: choose one with --format", path = .path.display())]
    Ambiguous {
        /// The file.
        path: PathBuf,
        /// Names of the formats that fit, each with what it would mean.
        could_be: String,
    },
    /// The format name is unknown.
    #[error("there is no trace format {name:?}{hint}; known: {known}")]
    UnknownFormat {
        /// As the user wrote it.
        name: String,
        /// `; did you mean ...?`, or nothing.
        hint: String,
        /// All names.
        known: String,
    },
    /// The format can be read but not written.
    #[error("traces in format {name} can be read but not written; writable: {writable}")]
    NotWritable {
        /// The format asked for.
        name: &'static str,
        /// Names of the formats that can be written.
        writable: String,
    },
    /// The file has no request.
    #[error("{path}: no request in the whole trace: {why}", path = .path.display())]
    NothingMatched {
        /// The file.
        path: PathBuf,
        /// What was found instead.
        why: String,
    },
    /// The devices of the trace cannot be laid out as requested.
    #[error("{path}: {what}", path = .path.display())]
    Layout {
        /// The file.
        path: PathBuf,
        /// What does not fit, and what to try.
        what: String,
    },
    /// The description of a table's columns cannot be used.
    #[error("columns: found {found:?}, expected {expected}")]
    Columns {
        /// The part that cannot be used.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// Times go back, and what that means is the user's choice.
    #[error("{path}: {what}", path = .path.display())]
    TimesGoBack {
        /// The file.
        path: PathBuf,
        /// Where and how often, and the choices.
        what: String,
    },
    /// The content fits a format by its columns, but not by what they would mean.
    #[error("{path}: {what}", path = .path.display())]
    Implausible {
        /// The file.
        path: PathBuf,
        /// What would follow, and what to try.
        what: String,
    },
    /// An option has an invalid value.
    #[error("trace option {option}: found {found}, expected {expected}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// The value given.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
}

impl TraceError {
    /// An operating-system error, with the attempted action.
    pub(crate) fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        TraceError::Io { path: path.to_owned(), action, source: Arc::new(source) }
    }

    /// An error in record `record` of a binary trace.
    pub(crate) fn record(path: &Path, record: u64, what: impl Into<String>) -> Self {
        TraceError::Record { path: path.to_owned(), record, what: what.into() }
    }
}

impl From<TraceError> for SourceError {
    fn from(error: TraceError) -> Self {
        SourceError(error.to_string())
    }
}

/// A library's text, which may quote what it read, as one line.
fn in_a_line(text: &impl std::fmt::Display) -> String {
    text.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
