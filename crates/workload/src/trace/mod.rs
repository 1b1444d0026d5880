//! Traces of real machines: readers, writers, address mapping and a summary.
//!
//! A trace is a file, plain or compressed with gzip, zstd or xz, in one of the formats of [`formats()`]. Compression
//! and format are told from the content. [`TraceReader`] streams it as [`flashwright_block::Request`]s in constant
//! memory; [`Mapped`] fits its addresses to a drive; [`TraceInfo`] sums it up; [`convert`] writes it anew.

mod address;
mod convert;
mod detect;
mod devices;
mod error;
mod formats;
mod fwt;
mod info;
mod input;
mod options;
mod parse;
mod reader;
mod record;
mod text;

pub use address::{AddressMap, MapError, MapReport, Mapped};
pub use convert::{ConvertReport, TraceLabel, TraceWriter, convert};
pub use detect::detect;
pub use error::TraceError;
pub use formats::{Format, all as formats, find as find_format};
pub use info::TraceInfo;
pub use options::{DeviceFilter, DeviceSpan, Layout, TraceOptions, TraceStats};
pub use reader::TraceReader;
