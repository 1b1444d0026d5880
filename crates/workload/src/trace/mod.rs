//! Traces of real machines: readers, writers, address mapping and a summary.
//!
//! A trace is a file, plain, compressed with gzip, bzip2, zstd, xz or lz4, or in a tar or zip archive, in one of the
//! formats of [`formats()`] or described by its columns. Packing and format are detected from the content. [`TraceReader`] streams it as [`flashwright_block::Request`]s
//! in constant memory; [`Mapped`] fits its addresses to a drive; [`TraceInfo`] summarises it; [`convert`] writes it in
//! another format.
//!
//! ```
//! use flashwright_block::RequestSource;
//! use flashwright_workload::trace::{AddressMap, Mapped, TraceOptions, TraceReader};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = std::env::temp_dir().join(format!("flashwright-doc-{}.spc", std::process::id()));
//! std::fs::write(&path, "0,303567,3584,w,0.000000\n1,55590,3072,r,0.026214\n")?;
//! let reader = TraceReader::open(&path, &TraceOptions::default())?;
//! assert_eq!(reader.format().name(), "spc");
//! let mut source = Mapped::new(reader, AddressMap::DENSE, 1 << 20)?;
//! let mut batch = Vec::new();
//! source.fill(&mut batch, 1000)?;
//! assert_eq!(batch[1].arrival.0, 26_214_000);
//! assert_eq!(source.report().pages, 4);
//! # std::fs::remove_file(&path)?;
//! # Ok(())
//! # }
//! ```

mod address;
mod brothers;
mod convert;
mod copies;
mod detect;
mod devices;
mod error;
mod footprint;
mod formats;
mod fwt;
mod info;
mod input;
mod merge;
mod options;
mod order;
mod packed;
mod pages;
mod parse;
mod plausible;
mod propose;
mod reader;
mod record;
mod sorting;
mod table;
mod text;
mod window;

pub(crate) use address::PageHasher;
pub use address::{AddressMap, MapError, MapReport, Mapped, WRAPPED_MAX};
pub use convert::{ConvertReport, Part, TraceLabel, TraceWriter, convert, convert_part};
pub use detect::detect;
pub use error::TraceError;
pub use footprint::Footprint;
pub use formats::{Format, all as formats, find as find_format};
pub(crate) use fwt::{ROW_MIN_BYTES, pack, unpack, unpacked_most};
pub use info::TraceInfo;
pub use merge::{Tenant, merge};
pub use options::{DeviceFilter, DeviceSpan, Event, Layout, TimeUnit, TraceOptions, TraceStats};
pub use order::Order;
pub(crate) use pages::Pages;
pub use reader::{Doubt, DoubtKind, TraceReader};
