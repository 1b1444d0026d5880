//! Heads of real traces, whose locality stand-ins borrow: models that were fitted to them
//! (`experiments/trace-models/stand_ins.py`), forced to what is published of the whole trace.
//!
//! A head says how requests follow one another: places, runs, the drift between reads and writes, bursts. A
//! publication says how many write, how large they are, how often they come and how many addresses there are. [`forced`]
//! keeps the first and sets the second. Where both know a figure and differ, the publication's counts: Financial1's head
//! reads more than it writes, the whole trace does not.
//!
//! What no head tells stays open: how locality changes over days, and how many of its addresses a whole trace updates.

use super::sizes::tilt;
use super::table::{Footprint, Row, Trace, Variant};
use crate::model::{EXTENTS, Footprint as Bounds, Model, SizeRow, extent};
use flashwright_block::SECTOR_BYTES;
use std::sync::OnceLock;

/// A model of the head of a trace.
pub(crate) struct Head {
    /// What it was fitted to, for labels.
    pub(crate) name: &'static str,
    text: &'static str,
    model: OnceLock<Model>,
}

impl Head {
    const fn new(name: &'static str, text: &'static str) -> Self {
        Head { name, text, model: OnceLock::new() }
    }

    fn model(&self) -> &Model {
        self.model.get_or_init(|| self.text.parse().expect("models that come with the program are sound"))
    }
}

static FINANCIAL1: Head = Head::new("the first 50,000 requests of Financial1", include_str!("heads/financial1.toml"));
static FINANCIAL1_ASU9: Head =
    Head::new("the first 10,000 requests of Financial1's application 9", include_str!("heads/financial1-asu9.toml"));
static WEBSEARCH1: Head = Head::new("the first 50,000 requests of WebSearch1", include_str!("heads/websearch1.toml"));
static MSN_FS: Head = Head::new("150,000 requests of Microsoft's MSN file server", include_str!("heads/msn-fs.toml"));

/// The head whose locality the stand-in of a trace has; none if there is none of a system of its kind. The DFTL paper's Financial is
/// application 9 of Financial1.
pub(crate) fn head(trace: Trace, source: Option<Variant>) -> Option<&'static Head> {
    match trace {
        Trace::Financial1 if source == Some(Variant::Gupta09) => Some(&FINANCIAL1_ASU9),
        Trace::Financial1 | Trace::Financial2 => Some(&FINANCIAL1),
        Trace::Websearch1 => Some(&WEBSEARCH1),
        Trace::Msn | Trace::Exchange | Trace::Build => Some(&MSN_FS),
        Trace::Cello99 | Trace::TpcH | Trace::TpcE => None,
    }
}

/// Blocks of 64 KiB in a region of 4 MiB.
const REGION_BLOCKS: u64 = 64;

/// The footprint of a head, bounded by the number of addresses of a whole trace.
pub(crate) fn footprint(head: &Head, row: &Row) -> Bounds {
    let (Footprint::Starts(starts) | Footprint::Pages(starts) | Footprint::Assumed(starts)) = row.footprint;
    let mut bounds = head.model().footprint.clone();
    bounds.most_pages = starts.max(bounds.pages);
    // Blocks hold as many starts as in the head.
    let blocks = bounds.most_pages as f64 * bounds.blocks as f64 / bounds.pages as f64;
    bounds.most_blocks = (blocks.ceil() as u64).max(bounds.blocks);
    bounds.most_regions = bounds.most_blocks.div_ceil(REGION_BLOCKS).max(bounds.regions);
    bounds
}

/// The model of a head with the published figures of a whole trace: sizes, rate, number of addresses. The share of writes is
/// steered while it is played.
pub(crate) fn forced(head: &Head, row: &Row) -> Model {
    let mut model = head.model().clone();
    if let Some(arrivals) = &mut model.arrivals {
        arrivals.rate = 1000.0 / row.gap_ms;
    }
    // Sizes of the heads are rounded to pages or few; the shapes that have the published means are not.
    for (direction, kib) in [(&mut model.read, row.read_kib), (&mut model.write, row.write_kib)] {
        if let Some(direction) = direction {
            let sizes = sizes(row, kib);
            set_classes(&mut direction.next, class_shares(&sizes));
            direction.run_sizes.clone_from(&sizes);
            direction.jump_sizes = sizes;
            // Which sizes follow which is not published; drawn apart, they have their mean.
            for same in [&mut direction.same_size_own, &mut direction.same_size_other, &mut direction.same_size_run] {
                *same = 0.0;
            }
        }
    }
    model.footprint = footprint(head, row);
    model
}

fn sizes(row: &Row, kib: f64) -> Vec<SizeRow> {
    let weights = tilt(row.shape, kib * 2.0);
    let total: f64 = weights.iter().sum();
    let rows = row.shape.iter().zip(weights);
    rows.map(|((sectors, _), weight)| {
        let bytes = u64::from(*sectors) * SECTOR_BYTES;
        SizeRow { from: bytes, to: bytes, offset: 0, align: 4096, share: weight / total }
    })
    .collect()
}

/// Share of each class of sizes.
fn class_shares(sizes: &[SizeRow]) -> [f64; EXTENTS] {
    let mut shares = [0.0; EXTENTS];
    for size in sizes {
        shares[extent(size.from.div_ceil(4096))] += size.share;
    }
    shares
}

/// Makes jumps of each class as frequent as asked for, while they follow each other as they do: the odds of each class change
/// by one factor.
fn set_classes(next: &mut [Vec<f64>], shares: [f64; EXTENTS]) {
    for _ in 0..100 {
        // How often each kind occurs in the long run.
        let mut often = vec![1.0 / next.len() as f64; next.len()];
        for _ in 0..100 {
            let after = |to: usize| often.iter().zip(next.iter()).map(|(share, row)| share * row[to]).sum::<f64>();
            // Half of the last one, so that a chain that alternates settles too.
            often = (0..often.len()).map(|to| (after(to) + often[to]) / 2.0).collect();
        }
        let found = |class: usize| often.iter().skip(class).step_by(EXTENTS).sum::<f64>();
        let factors: [f64; EXTENTS] = std::array::from_fn(|class| shares[class] / found(class).max(1e-6));
        for row in next.iter_mut() {
            for (to, share) in row.iter_mut().enumerate() {
                // No class is without any, should the head have had none.
                *share = share.max(1e-4) * factors[to % EXTENTS].clamp(0.1, 10.0);
            }
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|share| *share /= sum);
        }
    }
}
