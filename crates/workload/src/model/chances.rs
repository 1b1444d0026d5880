//! Draws of a block or page: through which direction's order, at which rank, or a new one.

use super::curve::{Counts, Curve};
use super::tree::{CLASSES, FAN, Found};
use flashwright_block::{Rng, chance};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How a level of the tree is chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Choice {
    /// Share of accesses that go to what the other direction used last.
    pub other: f64,
    /// Hit curve of what the same direction used: rows of entries and share.
    pub own: Vec<(u64, f64)>,
    /// Hit curve of what the other direction used.
    pub cross: Vec<(u64, f64)>,
}

/// Counts of a [`Choice`].
#[derive(Clone, Default)]
pub(super) struct ChoiceCounts {
    own: Counts,
    cross: Counts,
}

/// An estimate of fewer accesses is pooled with those of other ages.
const FEWEST: u64 = 60;

impl ChoiceCounts {
    pub(super) fn add(&mut self, found: Found, own_len: usize) {
        match found {
            Found::Own(rank) => self.own.found(rank),
            Found::Other(rank) => self.cross.found(rank),
            Found::New => self.own.missed(own_len),
        }
    }

    pub(super) fn events(&self) -> u64 {
        self.own.events() + self.cross.events()
    }

    fn merge(&mut self, other: &ChoiceCounts) {
        self.own.add(&other.own);
        self.cross.add(&other.cross);
    }

    pub(super) fn choice(&self) -> Choice {
        let (own, cross) = (self.own.events(), self.cross.events());
        let fewest = |events: u64| (events / 200).clamp(4, 50);
        Choice {
            other: if own + cross == 0 { 0.0 } else { cross as f64 / (own + cross) as f64 },
            own: self.own.curve(fewest(own)),
            cross: self.cross.curve(fewest(cross)),
        }
    }
}

/// The choices for each class of the parent; classes with few accesses share the estimate of all classes together.
/// Says whether any did.
pub(super) fn choices(counts: &[ChoiceCounts; CLASSES]) -> (Vec<Choice>, bool) {
    let mut all = ChoiceCounts::default();
    counts.iter().for_each(|counts| all.merge(counts));
    let pooled = all.choice();
    let mut any = false;
    let choices = counts
        .iter()
        .map(|counts| {
            let enough = counts.events() >= FEWEST;
            any |= !enough && counts.events() > 0;
            if enough { counts.choice() } else { pooled.clone() }
        })
        .collect();
    (choices, any)
}

/// A [`Choice`] to draw from.
pub(super) struct Chooser {
    other: f64,
    own: Curve,
    cross: Curve,
}

impl Chooser {
    pub(super) fn new(choice: &Choice) -> Self {
        Chooser { other: choice.other, own: Curve::new(&choice.own), cross: Curve::new(&choice.cross) }
    }

    /// Whether the draw is from the other direction's order, and a range of ranks; none if they are beyond the curve.
    #[inline]
    pub(super) fn draw_range(&self, rng: &mut Rng) -> (bool, Option<Range<u64>>) {
        let other = self.other > 0.0 && chance(rng, self.other);
        (other, if other { self.cross.draw_range(rng) } else { self.own.draw_range(rng) })
    }

    /// Whether the draw is from the other direction's order, and its rank; none if it is beyond the curve.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> (bool, Option<u64>) {
        let other = self.other > 0.0 && chance(rng, self.other);
        (other, if other { self.cross.draw(rng) } else { self.own.draw(rng) })
    }
}

/// Where in a block a new part lies: counts, then shares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Spot {
    /// Share of each part, where the direction has used none yet.
    pub first: Vec<f64>,
    /// Share of each distance from the part used last, in parts and around the end; entry 0 is a distance of 0.
    pub step: Vec<f64>,
}

/// Counts of a [`Spot`].
#[derive(Clone, Default)]
pub(super) struct SpotCounts {
    first: [u64; 16],
    step: [u64; 16],
}

impl SpotCounts {
    /// Notes that part `part` of a block of `fan` was new; `last` is the one that was used last.
    pub(super) fn add(&mut self, part: usize, last: Option<usize>, fan: usize) {
        match last {
            None => self.first[part] += 1,
            Some(last) => self.step[(part + fan - last) % fan] += 1,
        }
    }

    /// Shares, with one access more for each part, so that none is impossible.
    pub(super) fn spot(&self, level: usize) -> Spot {
        let fan = FAN[level];
        let shares = |counts: &[u64; 16], from: usize| {
            let total = counts[..fan].iter().sum::<u64>() as f64 + (fan - from) as f64;
            (0..fan).map(|i| if i < from { 0.0 } else { (counts[i] + 1) as f64 / total }).collect()
        };
        // A page may have been covered without any jump to it, so one that is new can be the last one.
        Spot { first: shares(&self.first, 0), step: shares(&self.step, usize::from(level < 2)) }
    }
}
