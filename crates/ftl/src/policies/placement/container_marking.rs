//! Container marking (Hu, Haas, Eleftheriou, IBM Research, section III.C, Table I): a block has a marker from 1 to 2L
//! that reflects how often its data change, and a page goes to the block of its marker.
//!
//! ```text
//!   never written        m = L
//!   written again        m = m' + 1      m' the marker of the block that holds the old copy
//!   moved by cleaning    m = m' - 1 with probability p(u), else m'
//! ```
//!
//! Markers stay within 1 and 2L, which Table I does not state. u is the exported share of the physical pages, which is
//! fixed. Host writes and moved pages share the frontier of a marker. Stream m - 1 is marker m:
//! `wear.free-block = "graded"` gives worn blocks to low markers. The matching victim policy is
//! `gc.victim = "container-marking"`; any other works too. State: 1 byte per block, kept by the flash.

use super::{HostWrite, PlacementContext, PlacementPolicy, Relocation};
use flashwright_block::{Rng, chance};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The probability that a page moved by cleaning goes down by one marker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Demotion {
    /// By Table I, constant in each range of utilisation.
    #[default]
    Table,
    /// By Table I, interpolated linearly between the middles of its ranges.
    Interpolated,
    /// Always (the report's comparison without probability).
    Always,
    /// Never.
    Never,
}

/// Settings of `placement.policy = "container-marking"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ContainerMarkingSettings {
    /// L, half the number of markers, 1 to 32. The report uses 8.
    #[schemars(range(min = 1, max = 32))]
    pub levels: u8,
    /// The probability that a page moved by cleaning goes down by one marker.
    pub demotion: Demotion,
}

impl Default for ContainerMarkingSettings {
    fn default() -> Self {
        Self { levels: 8, demotion: Demotion::Table }
    }
}

/// `placement.policy = "container-marking"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ContainerMarking {
    levels: u8,
    /// The probability of going down.
    p: f64,
    rng: Rng,
}

/// Table I: p(u) from the last utilisation on up to this one.
const TABLE: [(f64, f64); 5] = [(0.55, 1.0), (0.65, 0.8), (0.75, 0.5), (0.85, 0.167), (1.0, 0.125)];
/// The middles of the ranges that `interpolated` connects; the first range counts as if it began at 0.45.
const MIDDLES: [f64; 5] = [0.5, 0.6, 0.7, 0.8, 0.9];

/// The probability of Table I at a utilisation from 0 to 1.
fn probability(demotion: Demotion, u: f64) -> f64 {
    match demotion {
        Demotion::Always => 1.0,
        Demotion::Never => 0.0,
        Demotion::Table => TABLE.iter().find(|(up_to, _)| u <= *up_to).map_or(0.125, |(_, p)| *p),
        Demotion::Interpolated => match MIDDLES.iter().position(|middle| u < *middle) {
            Some(0) => 1.0,
            None => 0.125,
            Some(above) => {
                let part = (u - MIDDLES[above - 1]) / (MIDDLES[above] - MIDDLES[above - 1]);
                TABLE[above - 1].1 + part * (TABLE[above].1 - TABLE[above - 1].1)
            }
        },
    }
}

impl PlacementPolicy for ContainerMarking {
    const NAME: &'static str = "container-marking";
    const ABOUT: &'static str =
        "by a marker of activity: up with each write, down when moved (container marking, Table I)";
    const SMALL: &'static [&'static str] = &["levels=2"];
    type Settings = ContainerMarkingSettings;

    fn new(settings: &ContainerMarkingSettings, context: PlacementContext) -> Self {
        let u = f64::from(context.logical_pages) / f64::from(context.physical_pages);
        Self { levels: settings.levels.clamp(1, 32), p: probability(settings.demotion, u), rng: context.rng }
    }
    fn streams(&self) -> u8 {
        2 * self.levels
    }
    #[inline(always)]
    fn host(&mut self, write: HostWrite) -> u8 {
        write.old_stream().map_or(self.levels - 1, |stream| (stream + 1).min(2 * self.levels - 1))
    }
    #[inline(always)]
    fn relocation(&mut self, page: Relocation) -> u8 {
        let stream = page.old_stream();
        // A certain outcome needs no draw.
        if stream > 0 && (self.p >= 1.0 || chance(&mut self.rng, self.p)) { stream - 1 } else { stream }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, Flash};
    use flashwright_block::{Bytes, Seed};
    use flashwright_nand::{BlockId, Geometry, Lpn, Nand, Ppn, ProgramOrder, WearLimit};

    fn policy(levels: u8, demotion: Demotion, logical_pages: u32) -> ContainerMarking {
        let rng = Seed(1).stream("placement");
        let context =
            PlacementContext { logical_pages, physical_pages: 1000, pages_per_block: 10, blocks: 100, planes: 1, rng };
        ContainerMarking::new(&ContainerMarkingSettings { levels, demotion }, context)
    }

    /// Table I at the ends of its ranges, at their middles, and between.
    #[test]
    fn the_probability_is_table_1() {
        let at = |u| probability(Demotion::Table, u);
        assert_eq!(
            [0.1, 0.55, 0.551, 0.65, 0.7, 0.75, 0.8, 0.85, 0.851, 0.99].map(at),
            [1.0, 1.0, 0.8, 0.8, 0.5, 0.5, 0.167, 0.167, 0.125, 0.125]
        );
        let between = |u| probability(Demotion::Interpolated, u);
        assert_eq!([0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95].map(between), [1.0, 1.0, 0.8, 0.5, 0.167, 0.125, 0.125]);
        assert!((between(0.75) - 0.3335).abs() < 1e-12 && (between(0.55) - 0.9).abs() < 1e-12);
        assert_eq!(policy(8, Demotion::Table, 800).p, 0.167);
        assert_eq!(policy(8, Demotion::Always, 800).p, 1.0);
    }

    /// New, written again, moved; and nothing beyond 1 and 2L. Marker m is stream m - 1.
    #[test]
    fn markers_follow_table_1() {
        let geometry = Geometry::new(1, 1, 1, 20, 4, Bytes(4096));
        let mut flash = Flash::new(Nand::new(geometry, ProgramOrder::Any, WearLimit::Unlimited, &[]), 40, false, false);
        flash.program(Ppn(0), Lpn(0), Cause::Host);
        for (levels, p) in [(8, Demotion::Always), (1, Demotion::Always), (8, Demotion::Never), (8, Demotion::Table)] {
            let mut policy = policy(levels, p, 800);
            let host = |policy: &mut ContainerMarking, flash: &Flash, old| {
                policy.host(HostWrite { lpn: Lpn(0), old, stream: 0, run_pages: 1, flash })
            };
            assert_eq!(host(&mut policy, &flash, None), levels - 1);
            for stream in 0..2 * levels {
                flash.set_stream(BlockId(0), stream);
                assert_eq!(host(&mut policy, &flash, Some(Ppn(0))), (stream + 1).min(2 * levels - 1));
                let moved = |policy: &mut ContainerMarking| {
                    policy.relocation(Relocation { lpn: Lpn(0), from: Ppn(0), flash: &flash })
                };
                let down = (0..20_000).filter(|_| moved(&mut policy) != stream).count();
                let expected = match (stream, p) {
                    (0, _) | (_, Demotion::Never) => 0..=0,
                    (_, Demotion::Always) => 20_000..=20_000,
                    // 3,340 of 20,000; four standard deviations are 211.
                    _ => 3_129..=3_551,
                };
                assert!(expected.contains(&down), "{p:?}, stream {stream}: {down}");
                if down > 0 {
                    assert!((0..100).all(|_| [stream, stream - 1].contains(&moved(&mut policy))));
                }
            }
        }
    }
}
