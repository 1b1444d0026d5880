//! Request generators: seeded, endless or of a given length, in constant memory (at most one table, with an entry per
//! chunk).
//!
//! A workload is written as `name` or `name:key=value,key=value`; [`WorkloadSpec`] parses it, determines its pace and
//! builds the [`RequestSource`]. A generator is one file and one line in the list below: the parser, [`catalogue`] and
//! the tests of all generators use that list.
//!
//! ```
//! use flashwright_block::{RequestSource, Seed};
//! use flashwright_workload::generate::{Pace, Target, WorkloadSpec};
//!
//! let spec: WorkloadSpec = "uniform:write=0.7,size=8KiB,depth=32".parse()?;
//! assert_eq!(spec.pace(), Pace::Closed { depth: 32 });
//! let drive = Target { logical_sectors: 1 << 21, page_sectors: 8 };
//! let mut source = spec.source(&drive, Seed(1), Some(1000))?;
//! let mut batch = Vec::new();
//! assert_eq!(source.fill(&mut batch, 256), Ok(256));
//! assert!(batch.iter().all(|request| request.sectors == 16 && request.end_sector() <= 1 << 21));
//! assert_eq!(source.remaining(), Some(744));
//! # Ok::<(), flashwright_workload::generate::SpecError>(())
//! ```
//!
//! ```text
//!   text ──► WorkloadSpec ──► Plan (slots on this drive) ──► Pattern (addresses) ┐
//!                                                       Mix (read, write, trim) ─┼─► Generator: RequestSource
//!                                                       Clock (arrivals)        ─┘
//! ```
//!
//! Addresses, kinds, arrivals and layout draw from separate random streams, so that a change in one leaves the others
//! unchanged.

mod alias;
mod application;
mod common;
mod error;
mod filebench;
mod generator;
mod permutation;
pub use permutation::Permutation;
mod ranks;
mod runs;
mod settings;
mod spec;
mod value;
mod writers;

pub(crate) use alias::AliasTable;
pub use common::{Pace, Target, ZonedTarget};
pub use error::{Fault, SpecError};
pub(crate) use generator::{Clock, take_from};
pub use settings::KeyInfo;
pub use spec::{WorkloadInfo, WorkloadSpec, catalogue};

use common::{Common, Defaults, Plan};
use flashwright_block::RequestSource;
use settings::{Given, Settings};

/// The name and purpose of a generator.
pub(crate) trait Describe: Settings {
    /// The name before the colon.
    const NAME: &'static str;
    /// One line for the list.
    const SUMMARY: &'static str;
    /// Whether it reacts to the device. If so, it takes none of the common keys.
    const INTERACTIVE: bool = false;
    /// The key that a value without a key belongs to.
    const BARE: Option<&'static str> = None;
}

/// The behaviour of a generator.
pub(crate) trait Workload {
    /// Its own defaults of shares, size and pace.
    fn defaults(&self) -> Defaults {
        Defaults::default()
    }

    /// Validation errors that span keys and do not depend on the drive.
    fn check(&self, common: &Common, faults: &mut Vec<Fault>) {
        let _ = (common, faults);
    }

    /// The source on the drive that `plan` was laid out for.
    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault>;

    /// Whether its writes keep the rules of zones.
    fn keeps_zones(&self) -> bool {
        false
    }

    /// Its label in reports, if its name alone would promise too much.
    fn label(&self) -> Option<String> {
        None
    }

    /// Requests after which its published statistics hold, on the drive that `plan` was laid out for.
    fn natural_requests(&self, plan: &Plan<'_>) -> Option<u64> {
        let _ = plan;
        None
    }

    /// A note that reports must add about it on the drive that `plan` was laid out for.
    fn notes(&self, plan: &Plan<'_>) -> Vec<String> {
        let _ = plan;
        Vec::new()
    }
}

macro_rules! workloads {
    ($($module:ident::$type:ident),* $(,)?) => {
        $(mod $module;)*

        /// The generator that a workload names, with its own keys read.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) enum Kind { $($type($module::$type)),* }

        impl Kind {
            /// The key that a bare value belongs to in the workload `name`; none if there is no such workload.
            pub(crate) fn bare(name: &str) -> Option<Option<&'static str>> {
                $(if name == $module::$type::NAME { return Some($module::$type::BARE); })*
                None
            }

            /// Whether the workload `name` reacts to the device.
            pub(crate) fn is_interactive(name: &str) -> bool {
                $((name == $module::$type::NAME && $module::$type::INTERACTIVE))||*
            }

            /// Reads the keys of the workload `name`; none if there is no such workload.
            pub(crate) fn read(name: &str, given: &mut Given<'_>) -> Option<Self> {
                $(if name == $module::$type::NAME {
                    return Some(Kind::$type(<$module::$type>::read(given)));
                })*
                None
            }

            pub(crate) fn workload(&self) -> &dyn Workload {
                match self { $(Kind::$type(workload) => workload,)* }
            }

            /// The name, and the pairs that differ from the defaults with their bare key.
            pub(crate) fn write(&self, pairs: &mut Vec<(&'static str, String)>) -> (&'static str, Option<&'static str>) {
                match self {
                    $(Kind::$type(workload) => {
                        workload.pairs(pairs);
                        ($module::$type::NAME, $module::$type::BARE)
                    })*
                }
            }
        }

        /// Name, summary and keys of each generator, in the order of the list.
        fn described() -> Vec<WorkloadInfo> {
            vec![$(WorkloadInfo {
                name: $module::$type::NAME,
                summary: $module::$type::SUMMARY,
                bare_key: $module::$type::BARE,
                keys: $module::$type::keys(),
                interactive: $module::$type::INTERACTIVE,
            }),*]
        }
    };
}

workloads! {
    sequential::Sequential,
    mixed::Mixed,
    uniform::Uniform,
    strided::Strided,
    hot_cold::HotCold,
    zipf::Zipf,
    pareto::Pareto,
    dynamic_static::DynamicStatic,
    cachelib::Cachelib,
    kv_cache::KvCache,
    three_streams::ThreeStreams,
    dftl_a::DftlA,
    dftl_b::DftlB,
    stand_in::StandIn,
    model::Model,
    postmark::Postmark,
    filebench_webserver::FilebenchWebserver,
    filebench_fileserver::FilebenchFileserver,
    filebench_oltp::FilebenchOltp,
    filebench_varmail::FilebenchVarmail,
    zones::Zones,
}
