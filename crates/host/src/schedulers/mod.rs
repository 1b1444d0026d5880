//! I/O schedulers. A scheduler is one file here and one line in the list below.

use crate::cut::{Unit, WithoutBuffer};
use crate::pool::{Id, Pool, Queued};
use crate::profile::Profile;
use flashwright_block::registry::{PolicySettings, policies};
use flashwright_block::{Nanos, Request};
use serde::{Deserialize, Serialize};

/// The parameters that a scheduler is built with.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerContext {
    /// Size of the device below in sectors.
    pub device_sectors: u64,
    /// Requests that the device below accepts at once.
    pub depth: u32,
    /// The known sizes of the drive.
    pub profile: Profile,
    /// Longest request that merging makes, in sectors.
    pub max_sectors: u64,
    /// How the filters above cut requests.
    pub splitting: Splitting,
}

/// How requests are cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Splitting {
    /// Not at all.
    #[default]
    None,
    /// At the size of the drive's buffer (PAS).
    Size(WithoutBuffer),
    /// At multiples of a unit, then at the size of the buffer (PASA).
    AlignedSize(Unit, WithoutBuffer),
}

/// At which ends queued requests may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Merges {
    /// Not at all.
    None,
    /// At their ends.
    Back,
    /// At both.
    Both,
}

/// At which end a queued request grew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grew {
    /// At its end.
    Back,
    /// At its start.
    Front {
        /// The old first sector.
        was: u64,
    },
}

/// A scheduler's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Dispatch this request; it has left the scheduler.
    Send(Id),
    /// Nothing before this time, unless a request is added or completes.
    Wait(Nanos),
    /// Nothing until a request is added or completes.
    Nothing,
}

/// Decides in which order queued requests go to the device.
///
/// The filter merges requests: it asks [`Scheduler::may_merge`] and reports growth. A request that overlaps an earlier
/// one is not added before that one has completed (above another filter: before all of it was dispatched, because that
/// filter keeps the order too), so no order that a scheduler chooses can change the data that are read. Time is passed
/// as an argument; there is no other clock.
pub trait Scheduler: Sized {
    /// The name that users choose it by.
    const NAME: &'static str;
    /// One-line description, with its source.
    const ABOUT: &'static str;
    /// At which ends queued requests may grow.
    const MERGES: Merges = Merges::Both;
    /// Whether plugging makes sense above it; not for schedulers of multi-queue kernels.
    const PLUGS: bool = true;
    /// Its settings.
    type Settings: PolicySettings;

    /// Validation errors of its settings or the profile: the key and what to change, one line for each problem.
    fn problems(settings: &Self::Settings, context: &SchedulerContext) -> Vec<(String, String)> {
        let _ = (settings, context);
        Vec::new()
    }
    /// Longest request that merging makes, in sectors: the block layer's, unless the scheduler has its own rule. At
    /// most 2^30.
    fn max_sectors(settings: &Self::Settings, context: &SchedulerContext) -> u64 {
        let _ = settings;
        context.max_sectors
    }
    /// How it cuts requests; filters below need to know.
    fn splitting(settings: &Self::Settings) -> Splitting {
        let _ = settings;
        Splitting::None
    }
    /// Builds it, empty.
    fn new(settings: &Self::Settings, context: SchedulerContext) -> Self;

    /// A request joins the queue. The scheduler may cut it at once ([`Pool::split`]).
    fn add(&mut self, id: Id, pool: &mut Pool, now: Nanos);
    /// At which ends queued requests may grow under these settings.
    fn merges(settings: &Self::Settings) -> Merges {
        let _ = settings;
        Self::MERGES
    }
    /// Whether a queued request may grow.
    fn may_merge(&self, id: Id, pool: &Pool) -> bool {
        let _ = (id, pool);
        true
    }
    /// Whether a queued request may grow by this adjacent one.
    fn may_grow_by(&self, id: Id, other: &Queued, pool: &Pool) -> bool {
        let _ = other;
        self.may_merge(id, pool)
    }
    /// A queued request has grown. The scheduler may cut it ([`Pool::split`]).
    fn grown(&mut self, id: Id, grew: Grew, pool: &mut Pool, now: Nanos) {
        let _ = (id, grew, pool, now);
    }
    /// A queued request is about to become part of `into`, which stays.
    fn swallowed(&mut self, id: Id, into: Id, pool: &Pool);
    /// A later request overlaps this host request, or a part of it that is queued here, and waits for its completion:
    /// it should not be delayed. Called for any scheduler, whether or not it still holds a part of it.
    fn hurry(&mut self, request: &Request, pool: &mut Pool, now: Nanos) {
        let _ = (request, pool, now);
    }
    /// Decides what goes to the device, which has `in_flight` requests of this filter.
    fn dispatch(&mut self, now: Nanos, in_flight: u32, pool: &mut Pool) -> Choice;
    /// A dispatched request has completed, or has failed at once.
    fn completed(&mut self, request: &Queued, started: Nanos, now: Nanos) {
        let _ = (request, started, now);
    }
    /// Figures that only this scheduler has, by name with the unit last.
    fn figures(&self) -> Vec<(String, f64)> {
        Vec::new()
    }
}

macro_rules! schedulers {
    ($($module:ident :: $scheduler:ident),+ $(,)?) => {
        policies! {
            key: "host.scheduler", trait: Scheduler, names: SchedulerName, settings: SchedulerSettings, running: Running,
            context: SchedulerContext;
            $($module::$scheduler),+
        }

        impl SchedulerName {
            /// See [`Scheduler::problems`].
            #[must_use]
            pub fn problems(self, settings: &SchedulerSettings, context: &SchedulerContext) -> Vec<(String, String)> {
                match self { $(SchedulerName::$scheduler => $scheduler::problems(&settings.$module, context),)+ }
            }
            /// See [`Scheduler::merges`].
            #[must_use]
            pub fn merges(self, settings: &SchedulerSettings) -> Merges {
                match self { $(SchedulerName::$scheduler => $scheduler::merges(&settings.$module),)+ }
            }
            /// See [`Scheduler::max_sectors`].
            #[must_use]
            pub fn max_sectors(self, settings: &SchedulerSettings, context: &SchedulerContext) -> u64 {
                match self { $(SchedulerName::$scheduler => $scheduler::max_sectors(&settings.$module, context),)+ }
            }
            /// See [`Scheduler::splitting`].
            #[must_use]
            pub fn splitting(self, settings: &SchedulerSettings) -> Splitting {
                match self { $(SchedulerName::$scheduler => $scheduler::splitting(&settings.$module),)+ }
            }
            /// See [`Scheduler::PLUGS`].
            #[must_use]
            pub fn plugs(self) -> bool {
                match self { $(SchedulerName::$scheduler => $scheduler::PLUGS,)+ }
            }
        }

        impl Running {
            /// See [`Scheduler::add`].
            #[inline]
            pub fn add(&mut self, id: Id, pool: &mut Pool, now: Nanos) {
                match self { $(Running::$scheduler(scheduler) => scheduler.add(id, pool, now),)+ }
            }
            /// See [`Scheduler::may_grow_by`].
            #[inline]
            #[must_use]
            pub fn may_grow_by(&self, id: Id, other: &Queued, pool: &Pool) -> bool {
                match self { $(Running::$scheduler(scheduler) => scheduler.may_grow_by(id, other, pool),)+ }
            }
            /// See [`Scheduler::grown`].
            #[inline]
            pub fn grown(&mut self, id: Id, grew: Grew, pool: &mut Pool, now: Nanos) {
                match self { $(Running::$scheduler(scheduler) => scheduler.grown(id, grew, pool, now),)+ }
            }
            /// See [`Scheduler::swallowed`].
            #[inline]
            pub fn swallowed(&mut self, id: Id, into: Id, pool: &Pool) {
                match self { $(Running::$scheduler(scheduler) => scheduler.swallowed(id, into, pool),)+ }
            }
            /// See [`Scheduler::hurry`].
            pub fn hurry(&mut self, request: &Request, pool: &mut Pool, now: Nanos) {
                match self { $(Running::$scheduler(scheduler) => scheduler.hurry(request, pool, now),)+ }
            }
            /// See [`Scheduler::dispatch`].
            #[inline]
            pub fn dispatch(&mut self, now: Nanos, in_flight: u32, pool: &mut Pool) -> Choice {
                match self { $(Running::$scheduler(scheduler) => scheduler.dispatch(now, in_flight, pool),)+ }
            }
            /// See [`Scheduler::completed`].
            #[inline]
            pub fn completed(&mut self, request: &Queued, started: Nanos, now: Nanos) {
                match self { $(Running::$scheduler(scheduler) => scheduler.completed(request, started, now),)+ }
            }
            /// See [`Scheduler::figures`].
            #[must_use]
            pub fn figures(&self) -> Vec<(String, f64)> {
                match self { $(Running::$scheduler(scheduler) => scheduler.figures(),)+ }
            }
        }
    };
}

schedulers! {
    noop::Noop,
    deadline::Deadline,
    anticipatory::Anticipatory,
    cfq::Cfq,
    mq_deadline::MqDeadline,
    kyber::Kyber,
    ssd_friendly::SsdFriendly,
    pas::Pas,
    pasa::Pasa,
    pai::Pai,
}
