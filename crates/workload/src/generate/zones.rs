//! Writers of a zoned drive: each fills its zones in order, one after the other, and resets the oldest before it writes there again.
//!
//! ```text
//!   zones:     0    1    2    3    4    5   ..
//!   writers:   1st  2nd  1st  2nd  1st  2nd         each in a ring: reset, write to `fill` of the capacity, finish, next
//! ```
//!
//! Writers take turns request by request; a reset and a finish take a turn too. A zone is reset before it is written in any case, so that
//! it does not matter what the drive holds at first. Reads go to what was written since, each zone that holds data as likely as the
//! others. The space in use (`range`) is counted in whole zones.

use super::common::{Common, Defaults, Plan};
use super::generator::{Clock, Mix, take_from};
use super::settings::settings;
use super::value::{Count, Share, choice};
use super::{Describe, Fault, Workload, ZonedTarget};
use flashwright_block::{Request, RequestKind, RequestSource, Rng, SourceError, below};

choice! {
    /// How data get into a zone.
    pub enum By {
        /// At its write pointer, which the writer knows.
        Write = "write",
        /// By appends: the drive says where.
        Append = "append",
    }
}

settings! {
    /// Settings of `zones`.
    pub struct Zones {
        "writers" writers: Count = "4", "Writers, each with its own zones and one of them at a time.";
        "by" by: By = "write", "How they write: at the write pointer (write), or by appends (append).";
        "fill" fill: Share = "1", "Share of a zone's capacity that is written before the zone is finished; 1 leaves nothing to finish.";
    }
}

impl Describe for Zones {
    const NAME: &'static str = "zones";
    const SUMMARY: &'static str = "writers of a zoned drive: each fills its zones in order and resets the oldest";
}

impl Workload for Zones {
    fn keeps_zones(&self) -> bool {
        true
    }

    fn check(&self, common: &Common, faults: &mut Vec<Fault>) {
        if self.fill.0 <= 0.0 {
            faults.push(Fault::new("fill", self.fill.0, "a share above 0 and up to 1"));
        }
        if common.trim.0 > 0.0 {
            faults.push(Fault::new("trim", common.trim.0, "0: space of a zone comes back when it is reset"));
        }
        if common.shares(Defaults::default()).0 <= 0.0 {
            faults.push(Fault::new("write", 0, "a share above 0: reads go to what was written"));
        }
    }

    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        let Some(zones) = plan.zones else {
            let allowed = "a zoned drive for it (ftl.scheme = \"zoned\"), or another workload";
            return Err(Fault::new("workload", "zones on a drive without zones", allowed));
        };
        let (size, page) = (u64::from(plan.size_sectors), u64::from(plan.page_sectors));
        let writers = self.writers.0;
        let count = u32::try_from(plan.space_sectors / zones.size_sectors).unwrap_or(u32::MAX);
        if writers > count {
            let allowed = format!("at most the zones in use, {count}");
            return Err(Fault::new("writers", writers, allowed));
        }
        if !size.is_multiple_of(page) || size > zones.capacity_sectors {
            let found = format!("{size} sectors");
            let allowed = format!("whole pages of {page} sectors, up to the {} of a zone", zones.capacity_sectors);
            return Err(Fault::new("size", found, allowed));
        }
        let pages = (zones.capacity_sectors as f64 / page as f64 * self.fill.0).round() as u64;
        Ok(Box::new(Source {
            rng: plan.addresses(),
            mix: plan.mix(),
            clock: plan.clock(),
            zones,
            size,
            target: pages.max(1) * page,
            kind: if self.by == By::Write { RequestKind::Write } else { RequestKind::Append },
            writers: (0..writers).map(|zone| Writer { zone, must_reset: true }).collect(),
            turn: 0,
            written: vec![0; count as usize],
            holding: Vec::new(),
            place: vec![0; count as usize],
            remaining: plan.requests,
        }))
    }
}

/// A writer in its zone.
struct Writer {
    zone: u32,
    /// Whether the zone has to be reset before it is written.
    must_reset: bool,
}

struct Source {
    rng: Rng,
    mix: Mix,
    clock: Clock,
    zones: ZonedTarget,
    /// Sectors of a request.
    size: u64,
    /// Sectors of a zone that are written before it is finished.
    target: u64,
    kind: RequestKind,
    writers: Vec<Writer>,
    turn: usize,
    /// By zone: sectors written since its reset.
    written: Vec<u64>,
    /// Zones with at least a request's worth of data, in no order, and the place of each in this list.
    holding: Vec<u32>,
    place: Vec<usize>,
    remaining: Option<u64>,
}

impl Source {
    fn start(&self, zone: u32) -> u64 {
        u64::from(zone) * self.zones.size_sectors
    }

    #[allow(clippy::cast_possible_truncation)] // sectors of a request
    fn next(&mut self) -> Request {
        if self.mix.next() == RequestKind::Read && !self.holding.is_empty() {
            return self.read();
        }
        let turn = self.turn;
        self.turn = (turn + 1) % self.writers.len();
        let zone = self.writers[turn].zone;
        let (start, written) = (self.start(zone), self.written[zone as usize]);
        let manage = |kind| Request { kind, first_sector: start, ..Request::default() };
        if std::mem::take(&mut self.writers[turn].must_reset) {
            self.forget(zone);
            return manage(RequestKind::ZoneReset);
        }
        if written == self.target {
            self.go_on(turn);
            return manage(RequestKind::ZoneFinish);
        }
        let sectors = self.size.min(self.target - written);
        let first_sector = if self.kind == RequestKind::Write { start + written } else { start };
        self.written[zone as usize] += sectors;
        if written < self.size && written + sectors >= self.size {
            self.place[zone as usize] = self.holding.len();
            self.holding.push(zone);
        }
        if written + sectors == self.zones.capacity_sectors {
            self.go_on(turn); // it is full
        }
        Request { kind: self.kind, first_sector, sectors: sectors as u32, ..Request::default() }
    }

    /// The writer in this turn goes on to its next zone.
    fn go_on(&mut self, turn: usize) {
        let (step, count) = (self.writers.len(), self.written.len());
        let next = self.writers[turn].zone as usize + step;
        let zone = u32::try_from(if next < count { next } else { turn }).expect("zones are counted in 32 bits");
        self.writers[turn] = Writer { zone, must_reset: true };
    }

    /// A zone holds nothing.
    fn forget(&mut self, zone: u32) {
        if std::mem::take(&mut self.written[zone as usize]) >= self.size {
            let at = self.place[zone as usize];
            self.holding.swap_remove(at);
            if let Some(moved) = self.holding.get(at) {
                self.place[*moved as usize] = at;
            }
        }
    }

    #[allow(clippy::cast_possible_truncation)] // sectors of a request, and an index
    fn read(&mut self) -> Request {
        let zone = self.holding[below(&mut self.rng, self.holding.len() as u64) as usize];
        let slot = below(&mut self.rng, self.written[zone as usize] / self.size);
        let first_sector = self.start(zone) + slot * self.size;
        Request { first_sector, sectors: self.size as u32, ..Request::default() }
    }
}

impl RequestSource for Source {
    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
        let count = take_from(&mut self.remaining, at_most);
        for _ in 0..count {
            let request = self.next();
            batch.push(Request { arrival: self.clock.next(), ..request });
        }
        Ok(count)
    }

    fn remaining(&self) -> Option<u64> {
        self.remaining
    }
}
