//! Playing a sequence: its requests in segments, round after round.
//!
//! A **round** plays each request once. It is cut into [`SEGMENTS`] of equal length, from a place drawn at random and around the
//! end, and plays them in an order drawn at random (moving blocks; Künsch, 1989). Within a segment all is as in the trace: streams,
//! the gathering of writes in blocks, arrivals. What is hot lies where it lay, in all rounds.
//!
//! **What is new.** In the first round each block is new when it first comes. From the second on, the request that touched a block
//! first in the trace, as its t-th, does so again, on a block that nothing used, with the chance (t/n)^(growth - 1), where n is
//! how many requests were played: so the footprint grows on as n^growth, as that of the trace did. From then on the block lies
//! there for all requests, next to its neighbour if that went before. Once there is no room, it lies where it lay.
//!
//! **Layout.** Blocks of 64 KiB keep the distances of the trace as far as the drive has room; else the longest are cut, all to one
//! length. What the trace left untouched, and the rest of the drive, is the room for what is new.

use super::play::Arrival;
use super::sequence::{BLOCK_SECTORS, Sequence, moves};
use crate::generate::take_from;
use flashwright_block::{
    Nanos, Request, RequestClass, RequestKind, RequestSource, Rng, Seed, SourceError, below, chance,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Segments of a round. On held-out parts of fourteen traces fewer are nearer: 16 or 64 cut what repeats in a fixed turn. One would
/// leave seeds only the place where a round begins; three is the fewest whose order can differ, and four are close to one.
const SEGMENTS: u64 = 4;
const PAGE_SECTORS: u64 = 8;

/// Where blocks lie on a drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    /// Sectors in use, from the start of the drive.
    sectors: u64,
    /// Footprint over that of the trace, at most 1.
    scale: f64,
}

impl Space {
    pub(crate) fn new(sectors: u64, scale: f64) -> Self {
        Space { sectors, scale }
    }

    /// Blocks that there is room for before they are scaled.
    pub(crate) fn blocks(self) -> u64 {
        (self.sectors as f64 / self.scale / BLOCK_SECTORS as f64).ceil() as u64
    }

    /// Where a request comes to lie that is at `sector` of the blocks. If the footprint is scaled, several pages are one; a request
    /// that would reach past the end is moved down by whole pages.
    fn place(self, sector: u64, sectors: u32) -> u64 {
        let page = ((sector / PAGE_SECTORS) as f64 * self.scale) as u64;
        let first = page * PAGE_SECTORS + sector % PAGE_SECTORS;
        let past = (first + u64::from(sectors)).saturating_sub(self.sectors);
        first.saturating_sub(past.next_multiple_of(PAGE_SECTORS))
    }
}

/// Blocks that nothing uses, as runs of neighbours.
#[derive(Default)]
struct Holes {
    lengths: BTreeMap<u64, u64>,
    sized: BTreeSet<(u64, u64)>,
}

impl Holes {
    fn add(&mut self, start: u64, length: u64) {
        if length > 0 {
            self.lengths.insert(start, length);
            self.sized.insert((length, start));
        }
    }

    /// Takes the block at the start of a run, if there is a run.
    fn take(&mut self, start: u64) -> Option<u64> {
        let length = self.lengths.remove(&start)?;
        self.sized.remove(&(length, start));
        self.add(start + 1, length - 1);
        Some(start)
    }

    /// Takes a block from the shortest run of at least `wanted`, else from the longest.
    fn take_of(&mut self, wanted: u64) -> Option<u64> {
        let (_, start) = *self.sized.range((wanted, 0)..).next().or_else(|| self.sized.last())?;
        self.take(start)
    }
}

/// Plays a sequence.
pub(crate) struct Segments {
    sequence: Arc<Sequence>,
    space: Space,
    /// Where each block lies, where it lay at first, and how many neighbours came new after it, itself included.
    places: Vec<u64>,
    homes: Vec<u64>,
    runs: Vec<u32>,
    holes: Holes,
    order: [u64; SEGMENTS as usize],
    start: u64,
    /// Requests of the sequence played in this round, and in all.
    at: u64,
    played: u64,
    rounds: Rng,
    growth: Rng,
    pace: Arrival,
    /// Gap before the first request of the trace, in ns: the mean.
    first_gap: f64,
    now: f64,
    /// Parts of the last request whose blocks are no neighbours any more.
    parts: VecDeque<Request>,
    remaining: Option<u64>,
}

impl Segments {
    /// A player on a drive with room for the blocks of the sequence.
    pub(crate) fn new(sequence: Arc<Sequence>, space: Space, pace: Arrival, seed: Seed, requests: Option<u64>) -> Self {
        let (homes, holes) = layout(&sequence.blocks, space.blocks());
        let mut runs = vec![1; homes.len()];
        for block in (1..homes.len()).rev() {
            let neighbours = sequence.blocks[block - 1] + 1 == sequence.blocks[block];
            if neighbours && sequence.firsts[block - 1] <= sequence.firsts[block] {
                runs[block - 1] = runs[block] + 1;
            }
        }
        Segments {
            space,
            places: homes.clone(),
            homes,
            runs,
            holes,
            order: std::array::from_fn(|segment| segment as u64),
            start: 0,
            at: sequence.requests.len() as u64,
            played: 0,
            rounds: seed.stream("model.segments"),
            growth: seed.stream("model.growth"),
            pace,
            first_gap: sequence.rate().map_or(0.0, |rate| 1e9 / rate),
            now: 0.0,
            parts: VecDeque::new(),
            remaining: requests,
            sequence,
        }
    }

    /// The number of the next request of the sequence.
    fn number(&mut self) -> usize {
        let count = self.sequence.requests.len() as u64;
        if self.at == count {
            self.at = 0;
            self.start = below(&mut self.rounds, count);
            for last in (1..self.order.len()).rev() {
                self.order.swap(last, below(&mut self.rounds, last as u64 + 1) as usize);
            }
        }
        // Ends of segments in the order of play.
        let mut at = self.at;
        for segment in self.order {
            let (from, to) = (segment * count / SEGMENTS, (segment + 1) * count / SEGMENTS);
            if at < to - from {
                self.at += 1;
                return ((self.start + from + at) % count) as usize;
            }
            at -= to - from;
        }
        unreachable!("the segments of a round have all its requests")
    }

    /// The next request of the sequence, as one part or several.
    fn play(&mut self) {
        let number = self.number();
        let request = self.sequence.requests[number];
        let arrival = match &mut self.pace {
            Arrival::Clock(clock) => clock.next(),
            Arrival::Model(faster) => {
                let gap = if number == 0 { self.first_gap } else { request.arrival.0 as f64 };
                self.now += gap / *faster;
                Nanos(self.now as u64)
            }
        };
        self.played += 1;
        let request = Request { arrival, ..request };
        if request.kind.class() == RequestClass::Barrier {
            self.parts.push_back(request);
            return;
        }
        if self.played > self.sequence.requests.len() as u64 && moves(&request) {
            self.renew(number, &request);
        }
        let (mut at, end) = (request.first_sector, request.end_sector());
        while at < end {
            let stop = ((at / BLOCK_SECTORS + 1) * BLOCK_SECTORS).min(end);
            let first_sector = self.places[(at / BLOCK_SECTORS) as usize] * BLOCK_SECTORS + at % BLOCK_SECTORS;
            let sectors = (stop - at) as u32;
            match self.parts.back_mut() {
                Some(last) if at > request.first_sector && last.end_sector() == first_sector => last.sectors += sectors,
                _ => self.parts.push_back(Request { first_sector, sectors, ..request }),
            }
            at = stop;
        }
        for part in &mut self.parts {
            if part.kind == RequestKind::Trim {
                // Both ends, so that it covers what its pages became: nothing, if they are parts of one page in which its end comes
                // to lie before its start.
                let end = self.space.place(part.end_sector(), 0);
                part.first_sector = self.space.place(part.first_sector, 0);
                part.sectors = end.saturating_sub(part.first_sector) as u32;
            } else {
                part.first_sector = self.space.place(part.first_sector, part.sectors);
            }
        }
        self.parts.retain(|part| part.sectors > 0);
    }

    /// Moves the blocks that a request touched first in the trace to new places, if they are new again.
    fn renew(&mut self, number: usize, request: &Request) {
        let blocks = request.first_sector / BLOCK_SECTORS..=(request.end_sector() - 1) / BLOCK_SECTORS;
        let first = |block: u64| self.sequence.firsts[block as usize] as usize == number;
        if !blocks.clone().any(first) {
            return;
        }
        let share = (number + 1) as f64 / self.played as f64;
        if !chance(&mut self.growth, libm::pow(share, 1.0 - self.sequence.footprint.growth)) {
            return;
        }
        for block in blocks.filter(|block| self.sequence.firsts[*block as usize] as usize == number) {
            let block = block as usize;
            let before = block.checked_sub(1).filter(|before| {
                let neighbours = self.sequence.blocks[*before] + 1 == self.sequence.blocks[block];
                neighbours && self.places[*before] != self.homes[*before]
            });
            let beside = before.and_then(|before| self.holes.take(self.places[before] + 1));
            if let Some(place) = beside.or_else(|| self.holes.take_of(u64::from(self.runs[block]))) {
                self.places[block] = place;
            }
        }
    }
}

/// Where blocks lie among `room`, their distances kept or the longest cut, and what is free.
fn layout(blocks: &[u64], room: u64) -> (Vec<u64>, Holes) {
    let gaps = || blocks.windows(2).map(|pair| pair[1] - pair[0] - 1);
    let spare = room.saturating_sub(blocks.len() as u64);
    let fits =
        |most: u64| gaps().try_fold(0u64, |sum, gap| sum.checked_add(gap.min(most))).is_some_and(|sum| sum <= spare);
    let (mut most, mut too_long) = (0, gaps().max().unwrap_or(0) + 1);
    while most + 1 < too_long {
        let middle = most + (too_long - most) / 2;
        if fits(middle) { most = middle } else { too_long = middle }
    }
    let (mut homes, mut holes, mut next) = (Vec::with_capacity(blocks.len()), Holes::default(), 0);
    for gap in std::iter::once(0).chain(gaps()) {
        let gap = gap.min(most);
        holes.add(next, gap);
        homes.push(next + gap);
        next += gap + 1;
    }
    holes.add(next, room.saturating_sub(next));
    (homes, holes)
}

impl RequestSource for Segments {
    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
        let count = take_from(&mut self.remaining, at_most);
        for _ in 0..count {
            let request = loop {
                match self.parts.pop_front() {
                    Some(part) => break part,
                    // A trim may cover nothing that is used.
                    None => self.play(),
                }
            };
            batch.push(request);
        }
        Ok(count)
    }

    fn remaining(&self) -> Option<u64> {
        self.remaining
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_kept_where_there_is_room_and_the_longest_cut_where_not() {
        let blocks = [0, 1, 4, 5, 105];
        assert_eq!(layout(&blocks, 200).0, blocks);
        // Five blocks, and seven of room: 2 for the short gap, 5 for the long one.
        assert_eq!(layout(&blocks, 12).0, [0, 1, 4, 5, 11]);
        assert_eq!(layout(&blocks, 7).0, [0, 1, 3, 4, 6]);
        assert_eq!(layout(&blocks, 5).0, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn the_shortest_hole_that_is_long_enough_is_taken() {
        let mut holes = Holes::default();
        for (start, length) in [(0, 3), (10, 5), (20, 1)] {
            holes.add(start, length);
        }
        assert_eq!((holes.take_of(2), holes.take(1), holes.take(5)), (Some(0), Some(1), None));
        assert_eq!((holes.take_of(6), holes.take_of(1), holes.take_of(1)), (Some(10), Some(2), Some(20)));
    }

    #[test]
    fn a_scaled_footprint_shares_pages_and_ends_with_the_drive() {
        let space = Space::new(1024, 0.5);
        assert_eq!(space.blocks(), 16);
        assert_eq!((space.place(16, 8), space.place(24, 8), space.place(33, 4)), (8, 8, 17));
        assert_eq!(space.place(2047, 16), 1024 - 17);
    }
}
