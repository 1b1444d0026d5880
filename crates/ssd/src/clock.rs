//! When it happens: the engine of a drive with the requests in flight, and the driver's queue before it.

use crate::cleaning_blocks::BlockingSlots;
use crate::engine::{BusyTimes, ChipFigures, ObserverOfDrive, ParallelOfDrive, Serial};
use flashwright_block::{Completion, DriverQueue, Effects, Nanos, Request, SECTOR_BYTES, Seed, Tag, Waiting};
use flashwright_config::{DriveConfig, TimingModel};
use flashwright_nand::{ErrorCounts, Geometry};
use serde::{Deserialize, Serialize};

/// The tag of work that no request waits for.
const BACKGROUND: Tag = Tag(u64::MAX);

/// How the drive takes its time, by `timing.model`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // one a drive
pub(crate) enum Clock {
    None,
    Serial {
        engine: Serial<ObserverOfDrive>,
        /// What a read of pages without data lasts at least.
        unmapped_read: u64,
    },
    Parallel(ParallelClock),
}

/// The engine with the requests in flight and the driver's queue before it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ParallelClock {
    pub(crate) engine: ParallelOfDrive,
    pub(crate) flights: Vec<Flight>,
    /// Places of requests in flight, and the requests that wait for one.
    pub(crate) queue: DriverQueue,
    /// What blocks the controller, if cleaning does.
    pub(crate) blocking: Option<Box<BlockingSlots>>,
    /// What a read of pages without data lasts at least.
    pub(crate) unmapped_read: u64,
}

/// A request in flight, or work that no request waits for: what its completion will say, but for the result.
/// Failures are so rare that they are kept apart.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Flight {
    pub(crate) tag: Tag,
    pub(crate) request: Request,
    pub(crate) start: Nanos,
    /// Open while it is in the engine.
    pub(crate) end: Nanos,
    pub(crate) effects: Effects,
}

impl Flight {
    /// A request that the driver still had.
    pub(crate) fn waiting(waiting: Waiting) -> Self {
        let Waiting { id, request } = waiting;
        Self { tag: Tag(id), request, start: request.arrival, ..Self::default() }
    }

    /// Work that no request waits for.
    pub(crate) fn background() -> Self {
        Self { tag: BACKGROUND, ..Self::default() }
    }

    /// Whether no request waits for it.
    #[inline(always)]
    pub(crate) fn is_background(&self) -> bool {
        self.tag == BACKGROUND
    }

    /// Puts everything but the result in a completion.
    #[inline(always)]
    pub(crate) fn fill(&self, completion: &mut Completion) {
        completion.tag = self.tag;
        completion.request = self.request;
        completion.start = self.start;
        completion.end = self.end;
        completion.effects = self.effects;
    }
}

impl ParallelClock {
    /// How long a trim takes at least, while the firmware clears its part of the map.
    #[cold]
    #[inline(never)]
    pub(crate) fn least_of_trim(&mut self, start: u64, least: u64, request: &Request) -> u64 {
        least.max(self.engine.clear_map(start, u64::from(request.sectors) * SECTOR_BYTES))
    }

    /// Whether the drive works for no request, and none waits for it.
    #[inline(always)]
    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.taken() == 0 && self.queue.is_empty()
    }

    /// The engine has taken a request, or work, under this number.
    #[inline(always)]
    pub(crate) fn issued(&mut self, slot: u32, flight: Flight) {
        let slot = slot as usize;
        if slot == self.flights.len() {
            self.flights.push(Flight::default());
        }
        self.flights[slot] = flight;
    }
}

impl Clock {
    /// The clock that `timing.model` asks for, with nothing in flight.
    pub(crate) fn new(
        config: &DriveConfig,
        geometry: &Geometry,
        has_ram: bool,
        seed: Seed,
        observer: ObserverOfDrive,
    ) -> Self {
        let (times, unmapped_read) = (config.times(), config.flash_times().unmapped_read);
        let latency = if has_ram { config.ram.latency.0 } else { 0 };
        match config.timing.model {
            TimingModel::None => Self::None,
            TimingModel::Serial => Self::Serial { engine: Serial::new(&times, latency, observer), unmapped_read },
            TimingModel::Parallel => Self::Parallel(ParallelClock {
                engine: ParallelOfDrive::new(config, geometry, latency, seed, observer),
                flights: Vec::new(),
                queue: DriverQueue::new(config.host.queue_depth.requests()),
                blocking: BlockingSlots::new(config),
                unmapped_read,
            }),
        }
    }

    /// How long the parts of the drive were busy since the start.
    pub(crate) fn busy_times(&self) -> BusyTimes {
        match self {
            Self::None => BusyTimes::default(),
            Self::Serial { engine, .. } => BusyTimes { dies: vec![engine.busy()], channels: Vec::new() },
            Self::Parallel(clock) => clock.engine.busy(),
        }
    }

    /// Dies that work side by side, if there are any.
    pub(crate) fn parallel(&self) -> Option<&ParallelClock> {
        match self {
            Self::Parallel(clock) => Some(clock),
            _ => None,
        }
    }

    /// What the chips did since measuring began.
    pub(crate) fn chip_figures(&self) -> Option<ChipFigures> {
        self.parallel()?.engine.chip_figures()
    }

    /// What reads met since measuring began, if errors are modelled.
    pub(crate) fn error_counts(&self) -> Option<ErrorCounts> {
        self.parallel()?.engine.error_counts()
    }

    /// Requests that it may have at once.
    pub(crate) fn depth(&self) -> u32 {
        self.parallel().map_or(1, |clock| clock.queue.depth())
    }
}
