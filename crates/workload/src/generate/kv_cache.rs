//! Key-value caches of language models on flash: nine workers in five classes write objects of 1 to 32 MiB.
//!
//! Classes and sizes are those of an evaluation of LMCache on a drive with flexible data placement (LMCache pull request 4016, 2026):
//! two workers of chats (4 MiB objects, 90 GiB each), one of long contexts (32 MiB, 180 GiB), two of shared prefixes (16 MiB, 90 GiB
//! each), three of random prompts (2 MiB, 90 GiB each) and one of metadata (1 MiB, 45 GiB), 855 GiB in all. It does not say in which
//! order a worker replaces its objects, nor how often: `order` and `rates` are to be stated with a figure. On a smaller space objects
//! are smaller in proportion, down to a request, so that a small model of a drive shows what a large one would.

use super::common::{Defaults, Plan};
use super::settings::settings;
use super::value::{Streams, choice};
use super::writers::{self, Writer, source};
use super::{Describe, Fault, Workload};
use flashwright_block::{Bytes, RequestSource, SECTOR_BYTES};

choice! {
    /// The order in which a worker replaces its objects.
    pub enum Replaces {
        /// Any, each as likely as the others.
        Uniform = "uniform",
        /// The oldest first.
        Oldest = "oldest",
    }
}

choice! {
    /// How much a worker writes.
    pub enum Rates {
        /// All write as many bytes.
        Equal = "equal",
        /// By the space that each has.
        Space = "space",
    }
}

settings! {
    /// Settings of `kv-cache`.
    pub struct KvCache {
        "order" order: Replaces = "uniform", "Which object a worker replaces: any (uniform), or its oldest.";
        "rates" rates: Rates = "equal", "Bytes that a worker writes: all as many (equal), or by their space.";
        "streams" streams: Streams = "none", "Streams that requests name: none, or the class (1 chats, 2 long contexts, 3 shared prefixes, 4 random prompts, 5 metadata).";
    }
}

impl Describe for KvCache {
    const NAME: &'static str = "kv-cache";
    const SUMMARY: &'static str =
        "key-value caches of language models: nine workers in five classes, objects of 1 to 32 MiB";
}

/// By class: workers, bytes of an object in MiB, space of a worker in GiB.
const CLASSES: [(usize, u64, f64); 5] = [(2, 4, 90.0), (1, 32, 180.0), (2, 16, 90.0), (3, 2, 90.0), (1, 1, 45.0)];

const GIB: f64 = (1u64 << 30) as f64;

/// A piece of an object, unless `size` says otherwise.
const PIECE: Bytes = Bytes(128 << 10);

impl Workload for KvCache {
    fn defaults(&self) -> Defaults {
        Defaults { size: Some(PIECE), ..Defaults::default() }
    }

    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        let piece = Bytes(u64::from(plan.size_sectors) * SECTOR_BYTES);
        let workers = || CLASSES.iter().enumerate().flat_map(|(class, of)| std::iter::repeat_n((class, *of), of.0));
        let whole: f64 = workers().map(|(_, (_, _, space))| space).sum();
        // Of the space that the workers have in all.
        let scale = (plan.space_sectors as f64 * SECTOR_BYTES as f64 / (whole * GIB)).min(1.0);
        let (mut writers, mut classes, mut begins) = (Vec::new(), Vec::new(), 0.0);
        for (class, (_, object, space)) in workers() {
            let ends = begins + space / whole;
            writers.push(Writer {
                part: (begins, ends.min(1.0)),
                size: piece,
                object: Bytes((((object << 20) as f64 * scale) as u64 / piece.0).max(1) * piece.0),
                order: match self.order {
                    Replaces::Uniform => writers::Order::Uniform,
                    Replaces::Oldest => writers::Order::Ring,
                },
                bytes: if self.rates == Rates::Equal { 1.0 } else { space },
            });
            classes.push(class as u16 + 1);
            begins = ends;
        }
        source(plan, writers, self.streams, |at| classes[at])
    }
}
