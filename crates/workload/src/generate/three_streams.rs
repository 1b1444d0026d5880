//! Three writers chosen to defeat placement by place or by size: one goes in order through nine tenths of the space, one writes the same
//! nine tenths at random, one writes the last tenth at random (the load of SNIA SDC 19669; fio files of the WARP artifact, FAST '26).
//!
//! The second writer makes dead what the first wrote, and its own, so that even a handle for each does not keep what dies together.

use super::common::{Common, Defaults, Plan};
use super::settings::settings;
use super::value::{Exponent, Share, Streams, choice};
use super::writers::{Order, Writer, source};
use super::{Describe, Fault, Workload};
use flashwright_block::{Bytes, RequestSource, SECTOR_BYTES};

choice! {
    /// Where the second writer goes.
    pub enum Law {
        /// Everywhere with the same probability.
        Uniform = "uniform",
        /// By Zipf's law, with the exponent `theta`.
        Zipf = "zipf",
        /// 80 % of its requests to the first 20 % of its part, 10 % to the next 20 %, 10 % to the rest.
        Zoned = "zoned",
    }
}

settings! {
    /// Settings of `three-streams`.
    pub struct ThreeStreams {
        "law" law: Law = "uniform", "Where the second writer goes: everywhere alike (uniform), by zipf, or 80, 10 and 10 % to 20, 20 and 60 % of its part (zoned).";
        "theta" theta: Exponent = "1.2", "The exponent of law=zipf.";
        "in-order" in_order: Share = "0.3333", "Share of the bytes that the first writer, which goes in order, writes.";
        "apart" apart: Share = "0.3333", "Share of the bytes that the third writer, which has a tenth of the space, writes.";
        "streams" streams: Streams = "none", "Streams that requests name: none, or the class (1 in order, 2 at random over the same part, 3 apart).";
    }
}

impl Describe for ThreeStreams {
    const NAME: &'static str = "three-streams";
    const SUMMARY: &'static str =
        "one writer in order and one at random over the same nine tenths of the space, one at random over the last";
}

/// fio's `random_distribution=zoned:80/20:10/20:10/60`.
const ZONES: [(f64, f64); 3] = [(0.8, 0.2), (0.1, 0.2), (0.1, 0.6)];
/// Bytes of the random writes, unless `size` says otherwise, and of those in order.
const SMALL: Bytes = Bytes(4 << 10);
const LARGE: Bytes = Bytes(128 << 10);
/// The part of the first two writers.
const SHARED: f64 = 0.9;

impl Workload for ThreeStreams {
    fn defaults(&self) -> Defaults {
        Defaults { size: Some(SMALL), ..Defaults::default() }
    }

    fn check(&self, _: &Common, faults: &mut Vec<Fault>) {
        let (first, third) = (self.in_order.0, self.apart.0);
        if first <= 0.0 || third <= 0.0 || first + third >= 1.0 {
            let found = format!("in-order={first} and apart={third}");
            faults.push(Fault::new("apart", found, "two shares above 0 that leave some for the second writer"));
        }
    }

    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        let small = Bytes(u64::from(plan.size_sectors) * SECTOR_BYTES);
        let (first, third) = (self.in_order.0, self.apart.0);
        let order = match self.law {
            Law::Uniform => Order::Uniform,
            Law::Zipf => Order::Zipf(self.theta.0),
            Law::Zoned => Order::Zoned(&ZONES),
        };
        let writer = |part, size, order, bytes| Writer { part, size, object: size, order, bytes };
        let writers = vec![
            writer((0.0, SHARED), LARGE, Order::Ring, first),
            writer((0.0, SHARED), small, order, 1.0 - first - third),
            writer((SHARED, 1.0), small, Order::Uniform, third),
        ];
        source(plan, writers, self.streams, |at| at as u16 + 1)
    }
}
