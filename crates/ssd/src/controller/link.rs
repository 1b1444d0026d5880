//! The interface: data cross it one command at a time in each direction, or in both together.

use flashwright_block::SECTOR_BYTES;
use flashwright_config::{ControllerConfig, Interface, Rate};
use serde::{Deserialize, Serialize};

/// The direction in which data cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Way {
    In,
    Out,
}

/// A command with data to transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Crossing {
    pub slot: u32,
    /// The order of its command: lower ones go first.
    pub order: u64,
    pub sectors: u64,
    pub way: Way,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Link {
    rate: Rate,
    full_duplex: bool,
    /// Current transfers and their end times, by lane: [`Way`], or lane 0 for both directions.
    lanes: [Option<(u64, Crossing)>; 2],
    wishes: Vec<Crossing>,
}

impl Link {
    pub fn new(config: &ControllerConfig) -> Self {
        Self {
            rate: config.interface_rate,
            full_duplex: config.interface == Interface::FullDuplex,
            lanes: [None; 2],
            wishes: Vec::new(),
        }
    }

    /// Whether transfers take no time.
    #[inline(always)]
    pub fn is_free(&self) -> bool {
        self.rate == Rate(None)
    }

    /// Queues data that are ready to cross.
    #[inline]
    pub fn wish(&mut self, crossing: Crossing, now: u64) {
        self.wishes.push(crossing);
        self.start(now);
    }

    /// A free lane takes the data of the earliest command.
    #[inline]
    fn start(&mut self, now: u64) {
        let lane_of = |crossing: &Crossing| usize::from(self.full_duplex && crossing.way == Way::Out);
        // Without full duplex everything crosses in the first.
        for lane in 0..1 + usize::from(self.full_duplex) {
            if self.lanes[lane].is_some() {
                continue;
            }
            let wishes = self.wishes.iter().enumerate().filter(|(_, wish)| lane_of(wish) == lane);
            if let Some((at, _)) = wishes.min_by_key(|(_, wish)| wish.order) {
                let crossing = self.wishes.swap_remove(at);
                let end = now + self.rate.transfer(crossing.sectors * SECTOR_BYTES).0;
                self.lanes[lane] = Some((end, crossing));
            }
        }
    }

    /// When the next transfer ends.
    #[inline(always)]
    pub fn next(&self) -> u64 {
        let end = |lane: &Option<(u64, Crossing)>| lane.map_or(u64::MAX, |(end, _)| end);
        end(&self.lanes[0]).min(end(&self.lanes[1]))
    }

    /// The transfer that ends at `now`, which is the time of [`Self::next`].
    pub fn take(&mut self, now: u64) -> Crossing {
        let at = self.lanes.iter().position(|lane| lane.is_some_and(|(end, _)| end == now));
        let lane = at.expect("something is over at the time that was announced");
        let (_, crossing) = self.lanes[lane].take().expect("it was just looked at");
        self.start(now);
        crossing
    }
}
