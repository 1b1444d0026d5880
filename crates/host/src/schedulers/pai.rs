//! PAI, the parameter-aware I/O scheduler: requests that suit the drive go first, the others wait a while for
//! neighbours that complete them.
//!
//! Source: Kim et al., section 5.3. Over two queues in order of arrival:
//!
//! ```text
//!            well-formed?  yes ──────────────► normal  ───────────► drive
//!  request ─► cut ─────┤                         ▲ once merged        ▲
//!                      └── no ──► pending ───────┴────────────────────┘ after the timeout, or when waited for
//! ```
//!
//! A request is well-formed if it begins and ends at multiples of the unit and is no longer than the filter above makes
//! its pieces. A request adjacent to a pending one joins it. The result is cut by the rule of the filter above (PAS,
//! PASA, or none; then only the unit counts and the block layer's longest request limits merging) and is sorted into
//! the queues again. The paper limits the wait of pending requests but states no limit.
//!
//! A request that overlaps a pending one cannot go before it, so the pending one goes at once. This is not in the
//! paper, but otherwise both would wait for the whole timeout. Durable writes, trims and flushes never pend, because
//! they join nothing.
//!
//! Joining only pending requests, as in the paper, sends a run of small aligned requests one by one; the kernel's
//! elevator below would join those too. `merge = "well-formed"` joins them as long as the result stays well-formed.

use super::{Choice, Grew, Merges, Scheduler, SchedulerContext, Splitting};
use crate::cut::{CutRule, Unit};
use crate::lists::{ById, List, Lists};
use crate::pool::{Id, Pool, Queued};
use flashwright_block::{Nanos, Request, RequestKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which queued requests may grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PaiMerge {
    /// Pending requests.
    #[default]
    Pending,
    /// Normal requests too, as long as they stay well-formed.
    WellFormed,
}

/// `[host.pai]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct PaiSettings {
    /// How long a request may stay pending. The paper states no limit; the default is ours, and values from 1 to 10 ms
    /// are worth a sweep.
    #[schemars(extend("x-maximum" = "60 s"))]
    pub timeout: Nanos,
    /// Whether the oldest pending request goes when there is no other request and nothing is below. If off, the drive
    /// idles: in the paper, requests "stay in the pending queue for a while".
    pub idle_dispatch: bool,
    /// Which requests new ones may join: only `"pending"` ones, as in the paper, or also `"well-formed"` ones if the
    /// result is well-formed.
    pub merge: PaiMerge,
    /// Alignment of well-formed requests at both ends: the clustered `"page"` or the clustered `"block"`. Below `pasa`,
    /// the unit of `pasa` applies.
    pub unit: Unit,
}

impl Default for PaiSettings {
    fn default() -> Self {
        Self { timeout: Nanos(5_000_000), idle_dispatch: false, merge: PaiMerge::Pending, unit: Unit::Page }
    }
}

fn unit(settings: &PaiSettings, context: &SchedulerContext) -> Unit {
    match context.splitting {
        Splitting::AlignedSize(unit, _) => unit,
        Splitting::None | Splitting::Size(_) => settings.unit,
    }
}

/// Two queues: well-formed requests, and requests that wait for a neighbour.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pai {
    settings: PaiSettings,
    /// The unit in sectors.
    unit: u64,
    rule: CutRule,
    lists: Lists,
    normal: List,
    /// Pending requests in order of the deadlines of their earliest parts.
    pending: List,
    /// A request that was pending until another waited for it; goes first.
    hurried: List,
    /// Whether a request is in the pending queue, by number.
    pends: ById<bool>,
    pending_max: u32,
    expired: u64,
    joined: u64,
    hurried_total: u64,
    idle: u64,
    /// Requests that have left the pending queue, and how long they were there.
    left: u64,
    pended_ns: u64,
    pended_ns_max: u64,
}

impl Pai {
    #[inline]
    fn is_well_formed(&self, kind: RequestKind, first_sector: u64, end_sector: u64) -> bool {
        first_sector.is_multiple_of(self.unit)
            && end_sector.is_multiple_of(self.unit)
            && end_sector - first_sector <= self.rule.longest(kind)
    }

    /// Cuts a request that is new, or was pending and has grown, and queues its pieces.
    fn sort_in(&mut self, id: Id, pool: &mut Pool, now: Nanos) {
        let mut piece = Some(id);
        let mut open = true;
        while let Some(id) = piece {
            let queued = pool.get(id);
            let cut = self.rule.cut(queued.kind, queued.first_sector, queued.end_sector);
            if cut.is_some() && open {
                pool.close(id); // once, rather than at each cut
                open = false;
            }
            piece = cut.map(|at| pool.split(id, at));
            let queued = pool.get(id);
            let well_formed = self.is_well_formed(queued.kind, queued.first_sector, queued.end_sector);
            if well_formed && self.settings.merge == PaiMerge::Pending {
                pool.close(id);
            } else if !open {
                pool.reopen(id);
            }
            match (well_formed, self.pends.get(id)) {
                (true, pended) => {
                    if pended {
                        self.leave_pending(id, pool, now);
                    }
                    self.lists.push(&mut self.normal, id);
                }
                (false, false) => self.pend(id, pool),
                (false, true) => {}
            }
            open = false;
        }
    }

    /// Puts a request into the pending queue in the order of deadlines: at the end, unless it was cut from one that has
    /// waited already.
    fn pend(&mut self, id: Id, pool: &Pool) {
        let since = pool.get(id).queued_at;
        let mut before = self.pending.last();
        while let Some(other) = before
            && pool.get(other).queued_at > since
        {
            before = self.lists.before(other);
        }
        self.lists.insert_behind(&mut self.pending, before, id);
        self.pends.set(id, true);
        self.pending_max = self.pending_max.max(self.pending.len());
    }

    fn leave_pending(&mut self, id: Id, pool: &Pool, now: Nanos) {
        self.drop_pending(id);
        let pended_ns = now.0.saturating_sub(pool.get(id).queued_at.0);
        self.left += 1;
        self.pended_ns += pended_ns;
        self.pended_ns_max = self.pended_ns_max.max(pended_ns);
    }

    /// Takes a request out of the pending queue without counting it, because it continues to wait elsewhere.
    fn drop_pending(&mut self, id: Id) {
        self.lists.remove(&mut self.pending, id);
        self.pends.set(id, false);
    }
}

impl Scheduler for Pai {
    const NAME: &'static str = "pai";
    const ABOUT: &'static str = "requests aligned to the drive's unit first; the others wait for neighbours up to a \
                                 timeout (Kim et al., section 5.3)";
    const MERGES: Merges = Merges::Both;
    type Settings = PaiSettings;

    fn problems(settings: &PaiSettings, context: &SchedulerContext) -> Vec<(String, String)> {
        unit(settings, context).problem(&context.profile).into_iter().collect()
    }

    fn max_sectors(_: &PaiSettings, context: &SchedulerContext) -> u64 {
        // A request that has grown is cut again, if the filter above cuts.
        if context.splitting == Splitting::None { context.max_sectors } else { u64::MAX }
    }

    fn new(settings: &PaiSettings, context: SchedulerContext) -> Self {
        Self {
            settings: settings.clone(),
            unit: unit(settings, &context).sectors(&context.profile).unwrap_or(1),
            rule: CutRule::new(context.splitting, &context.profile),
            lists: Lists::default(),
            normal: List::default(),
            pending: List::default(),
            hurried: List::default(),
            pends: ById::default(),
            pending_max: 0,
            expired: 0,
            joined: 0,
            hurried_total: 0,
            idle: 0,
            left: 0,
            pended_ns: 0,
            pended_ns_max: 0,
        }
    }

    fn add(&mut self, id: Id, pool: &mut Pool, now: Nanos) {
        let queued = pool.get(id);
        if queued.fua || !queued.kind.moves_data() {
            pool.close(id);
            self.lists.push(&mut self.normal, id);
        } else {
            self.sort_in(id, pool, now);
        }
    }

    #[inline]
    fn may_grow_by(&self, id: Id, other: &Queued, pool: &Pool) -> bool {
        let queued = pool.get(id);
        let (first, end) = (queued.first_sector.min(other.first_sector), queued.end_sector.max(other.end_sector));
        self.pends.get(id) || self.is_well_formed(queued.kind, first, end)
    }

    fn grown(&mut self, id: Id, _: Grew, pool: &mut Pool, now: Nanos) {
        // Requests in the normal queue stay there: they are still well-formed.
        if self.pends.get(id) {
            self.joined += 1;
            self.sort_in(id, pool, now);
        }
    }

    fn swallowed(&mut self, id: Id, into: Id, pool: &Pool) {
        if !self.pends.get(id) {
            self.lists.remove(&mut self.normal, id);
            return;
        }
        // The joined request has the earlier deadline and its position.
        if self.pends.get(into) && pool.get(id).queued_at < pool.get(into).queued_at {
            self.lists.remove(&mut self.pending, into);
            self.lists.insert_behind(&mut self.pending, Some(id), into);
        }
        self.drop_pending(id);
    }

    fn hurry(&mut self, request: &Request, pool: &mut Pool, now: Nanos) {
        let mut at = self.pending.first();
        while let Some(id) = at {
            at = self.lists.next(id);
            let queued = *pool.get(id);
            if queued.kind == request.kind
                && queued.first_sector < request.end_sector()
                && request.first_sector < queued.end_sector
            {
                pool.close(id);
                self.leave_pending(id, pool, now);
                self.lists.push(&mut self.hurried, id);
                self.hurried_total += 1;
            }
        }
    }

    fn dispatch(&mut self, now: Nanos, in_flight: u32, pool: &mut Pool) -> Choice {
        if let Some(id) = self.lists.pop(&mut self.hurried) {
            return Choice::Send(id);
        }
        let oldest = self.pending.first().map(|id| (id, pool.get(id).queued_at + self.settings.timeout));
        if let Some((id, deadline)) = oldest
            && deadline <= now
        {
            self.expired += 1;
            self.leave_pending(id, pool, now);
            return Choice::Send(id);
        }
        if let Some(id) = self.lists.pop(&mut self.normal) {
            return Choice::Send(id);
        }
        match oldest {
            Some((id, _)) if self.settings.idle_dispatch && in_flight == 0 => {
                self.idle += 1;
                self.leave_pending(id, pool, now);
                Choice::Send(id)
            }
            Some((_, deadline)) => Choice::Wait(deadline),
            None => Choice::Nothing,
        }
    }

    fn figures(&self) -> Vec<(String, f64)> {
        let mean_ns = if self.left == 0 { 0.0 } else { self.pended_ns as f64 / self.left as f64 };
        [
            ("pending_now_requests", f64::from(self.pending.len())),
            ("pending_max_requests", f64::from(self.pending_max)),
            ("pending_mean_ns", mean_ns),
            ("pending_longest_ns", self.pended_ns_max as f64),
            ("left_pending_requests", self.left as f64),
            ("joined_pending_requests", self.joined as f64),
            ("expired_requests", self.expired as f64),
            ("hurried_requests", self.hurried_total as f64),
            ("sent_when_idle_requests", self.idle as f64),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}
