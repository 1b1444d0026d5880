//! The SSD-friendly scheduler: the drive's addresses in zones, batches of one direction, and requests as long as merging
//! makes them.
//!
//! Source: Hu, "Enterprise SSD" dissertation, section 5.2.
//!
//! ```text
//!   zone 0     zone 1          zone 7      a list of reads and one of writes each
//!  R ▤▤ W ▤   R ▤ W ▤▤   …   R ▤ W ▤
//!   └──────────┴─── batch ─────┘           one of each zone (or all), of one direction; then the other direction's turn
//! ```
//!
//! The filter merges, at the ends of requests. Its table spans the whole drive, whereas the dissertation has one table
//! per zone. So a request stops growing once it ends where another zone begins: a request that starts there would be
//! searched for only in that zone. A request stays in the zone of its start.
//!
//! Trims and flushes go with the writes.

use super::{Choice, Merges, Scheduler, SchedulerContext};
use crate::lists::{List, Lists};
use crate::pool::{Id, Pool, Queued, side};
use flashwright_block::{Bytes, Nanos, SECTOR_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Requests that a batch takes from each zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PerZone {
    /// One (section 5.2.1 argues from as many requests at once as there are zones).
    #[default]
    One,
    /// All (section 5.2.4: "fetches all read requests or all write requests").
    All,
}

/// Number of consecutive batches of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Share {
    /// Set by `reads` and `writes`.
    #[default]
    Fixed,
    /// In proportion to the waiting requests when the direction's turns begin: its own requests divided by those of the
    /// other, rounded down, at least one. The dissertation suggests adapting it; the rule is ours.
    Adaptive,
}

/// Makes a setting that is a word or a size.
macro_rules! word_or_size {
    ($(#[$about:meta])* $name:ident: $word:literal is $(#[$word_about:meta])* $variant:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name {
            $(#[$word_about])*
            #[default]
            $variant,
            /// This many bytes.
            Size(Bytes),
        }

        flashwright_block::registry::text_schema!(
            $name,
            { "type": "string", "x-takes": concat!("`", $word, "` or a size") }
        );

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    Self::$variant => serializer.serialize_str($word),
                    Self::Size(bytes) => serializer.collect_str(bytes),
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                if text == $word {
                    return Ok(Self::$variant);
                }
                text.parse().map(Self::Size).map_err(|_| {
                    let (word, example) = ($word, "64 KiB");
                    D::Error::custom(format!("found {text:?}, expected {word:?} or a size such as {example:?}"))
                })
            }
        }
    };
}

word_or_size! {
    /// Longest request that merging makes.
    MaxMerge: "none" is
    /// As long as it gets.
    Unlimited
}

word_or_size! {
    /// The range that is divided into zones.
    Span: "device" is
    /// The device.
    Device
}

/// `[host.ssd-friendly]`; the defaults are the dissertation's unless said otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct SsdFriendlySettings {
    /// Number of zones: the queue length at which the dissertation's drives were saturated (section 5.2.1).
    #[schemars(range(min = 1, max = ZONES_MAX))]
    pub zones: u32,
    /// The range that is divided into zones: the whole `"device"`, or a size, counted from the device's start, if the
    /// range that the workload uses is known. Addresses beyond it belong to the last zone.
    pub span: Span,
    /// Requests that a batch takes from each zone: `"one"` or `"all"`. The dissertation states both.
    pub per_zone: PerZone,
    /// Whether a batch begins only when the one before has completed ("synchronously among all the zones").
    pub barrier: bool,
    /// Whether turns are `"fixed"` or `"adaptive"`.
    pub share: Share,
    /// Consecutive batches of reads, if turns are fixed.
    #[schemars(range(min = 1), extend("x-expected" = "at least {min}, or its requests would never go"))]
    pub reads: u32,
    /// Consecutive batches of writes, if turns are fixed.
    #[schemars(range(min = 1), extend("x-expected" = "at least {min}, or its requests would never go"))]
    pub writes: u32,
    /// Longest request that merging makes: `"none"` for no limit, or a size, such as 512 KiB, the limit of drivers of
    /// real drives.
    pub max_merge: MaxMerge,
}

impl Default for SsdFriendlySettings {
    fn default() -> Self {
        Self {
            zones: 8,
            span: Span::Device,
            per_zone: PerZone::One,
            barrier: true,
            share: Share::Fixed,
            reads: 1,
            writes: 1,
            max_merge: MaxMerge::Unlimited,
        }
    }
}

/// Largest number of zones: a batch checks each of them, and a sector number times this fits 64 bits on any device of
/// 64-bit size.
const ZONES_MAX: u32 = 512;

const WRITE: usize = 1;

/// Lists by zone and direction, and the batch that is being dispatched.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SsdFriendly {
    settings: SsdFriendlySettings,
    zones: u64,
    /// Sectors that the zones divide.
    span: u64,
    lists: Lists,
    /// For reads and for writes, a list per zone.
    queues: [Vec<List>; 2],
    waiting: [u32; 2],
    batch: List,
    /// The direction in turn, and how many of its batches are left.
    turn: usize,
    turns_left: u32,
    batches: [u64; 2],
}

impl SsdFriendly {
    fn zone(&self, sector: u64) -> usize {
        let zone = if sector < self.span { sector * self.zones / self.span } else { self.zones - 1 };
        usize::try_from(zone).expect("few zones")
    }

    fn queue(&mut self, queued: &Queued) -> (&mut Lists, &mut List, &mut u32) {
        let (direction, zone) = (side(queued.kind), self.zone(queued.first_sector));
        (&mut self.lists, &mut self.queues[direction][zone], &mut self.waiting[direction])
    }

    /// Batches of a direction that may follow one another from now on.
    fn turns(&self, direction: usize) -> u32 {
        match self.settings.share {
            Share::Fixed => [self.settings.reads, self.settings.writes][direction],
            Share::Adaptive => {
                let [own, other] = [self.waiting[direction], self.waiting[1 - direction]];
                own.checked_div(other).unwrap_or(1).max(1)
            }
        }
    }

    /// The direction of the next batch, which has waiting requests.
    fn next_direction(&mut self) -> Option<usize> {
        if self.waiting == [0, 0] {
            return None;
        }
        if self.turns_left == 0 || self.waiting[self.turn] == 0 {
            self.turn = 1 - self.turn;
            if self.waiting[self.turn] == 0 {
                self.turn = 1 - self.turn;
            }
            self.turns_left = self.turns(self.turn);
        }
        self.turns_left -= 1;
        Some(self.turn)
    }

    /// Takes the next batch out of the zones, in rounds of one of each.
    fn gather(&mut self, pool: &mut Pool) {
        let Some(direction) = self.next_direction() else { return };
        self.batches[direction] += 1;
        loop {
            for queue in &mut self.queues[direction] {
                if let Some(id) = self.lists.pop(queue) {
                    pool.close(id);
                    self.lists.push(&mut self.batch, id);
                    self.waiting[direction] -= 1;
                }
            }
            if self.settings.per_zone == PerZone::One || self.waiting[direction] == 0 {
                return;
            }
        }
    }
}

impl Scheduler for SsdFriendly {
    const NAME: &'static str = "ssd-friendly";
    const ABOUT: &'static str = "batches of reads or of writes, one request from each zone of the drive, merged without a limit \
                                 (Hu, dissertation, section 5.2)";
    const MERGES: Merges = Merges::Back;
    type Settings = SsdFriendlySettings;

    fn problems(settings: &SsdFriendlySettings, context: &SchedulerContext) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        let mut add = |key: &str, what: String| problems.push((key.to_owned(), what));
        let device = Bytes(context.device_sectors.saturating_mul(SECTOR_BYTES));
        if let Span::Size(span) = settings.span
            && !(SECTOR_BYTES..=device.0).contains(&span.0)
        {
            add("span", format!("found \"{span}\", expected \"512 B\" to the device's \"{device}\""));
        }
        if let MaxMerge::Size(most) = settings.max_merge
            && most.0 < SECTOR_BYTES
        {
            add("max-merge", format!("found \"{most}\", expected \"none\" or at least \"512 B\""));
        }
        problems
    }

    fn max_sectors(settings: &SsdFriendlySettings, _: &SchedulerContext) -> u64 {
        match settings.max_merge {
            MaxMerge::Unlimited => u64::MAX,
            MaxMerge::Size(most) => most.0 / SECTOR_BYTES,
        }
    }

    fn new(settings: &SsdFriendlySettings, context: SchedulerContext) -> Self {
        let span = match settings.span {
            Span::Device => context.device_sectors,
            Span::Size(span) => span.0 / SECTOR_BYTES,
        };
        let queues = vec![List::default(); settings.zones as usize];
        Self {
            settings: settings.clone(),
            zones: u64::from(settings.zones),
            span,
            lists: Lists::default(),
            queues: [queues.clone(), queues],
            waiting: [0; 2],
            batch: List::default(),
            // The writes' turns are over, so reads are next.
            turn: WRITE,
            turns_left: 0,
            batches: [0; 2],
        }
    }

    fn add(&mut self, id: Id, pool: &mut Pool, _: Nanos) {
        let (lists, queue, waiting) = self.queue(pool.get(id));
        lists.push(queue, id);
        *waiting += 1;
    }

    fn may_merge(&self, id: Id, pool: &Pool) -> bool {
        // A request that begins at its end belongs to the zone of that sector.
        let queued = pool.get(id);
        self.zone(queued.first_sector) == self.zone(queued.end_sector)
    }

    fn swallowed(&mut self, id: Id, _: Id, pool: &Pool) {
        let (lists, queue, waiting) = self.queue(pool.get(id));
        lists.remove(queue, id);
        *waiting -= 1;
    }

    fn dispatch(&mut self, _: Nanos, in_flight: u32, pool: &mut Pool) -> Choice {
        if self.batch.is_empty() {
            if self.settings.barrier && in_flight > 0 {
                return Choice::Nothing;
            }
            self.gather(pool);
        }
        self.lists.pop(&mut self.batch).map_or(Choice::Nothing, Choice::Send)
    }

    fn figures(&self) -> Vec<(String, f64)> {
        let [reads, writes] = self.batches.map(|batches| batches as f64);
        vec![("read_batches".to_owned(), reads), ("write_batches".to_owned(), writes)]
    }
}
