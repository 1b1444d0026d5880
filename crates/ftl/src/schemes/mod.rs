//! Translation layers. A scheme is one file here and one line in the list below.

use crate::durable::{MountError, Scan};
use crate::plane::good_blocks;
use crate::policies::placement::{ForeignPlacement, MakePlacement, Placement, PlacementContext};
use crate::policies::schedule::{ForeignSchedule, Occasion, Schedule, ScheduleContext, ScheduleRules};
use crate::policies::victim::{ForeignVictim, Victim, VictimContext};
use crate::policies::wear::{ForeignWear, Wear, WearContext};
use crate::registry::PolicySettings;
use crate::{
    Flash, Foreign, FtlSettings, GcSettings, Listed, LpnRun, MapSize, OutOfSpace, PlacementConfig, Progress,
    SchemeFigures, SlcContext, VictimChoice, VictimName, Violation, WearSettings,
};
use flashwright_block::{Nanos, Seed};
use flashwright_nand::{BlockId, Geometry, Lpn, PlaneId, Ppn, ProgramOrder};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

mod own;
pub use own::{OwnFtl, OwnLayer, OwnSettings, register};

/// The parameters of the drive that a scheme is built for.
#[derive(Clone, Copy)]
pub struct SchemeContext<'a> {
    /// Pages that the drive offers to the host.
    pub logical_pages: u32,
    /// Dies of a channel that share a package, for the allocation order.
    pub dies_per_way: u32,
    /// Settings of the translation layer.
    pub ftl: &'a FtlSettings,
    /// Settings of cleaning.
    pub gc: &'a GcSettings,
    /// Settings of placement.
    pub placement: &'a PlacementConfig,
    /// Settings of wear.
    pub wear: &'a WearSettings,
    /// The SLC cache, if there is one.
    pub slc: Option<SlcContext>,
    /// The seed of the run.
    pub seed: Seed,
    /// Foreign policies, which replace those that the settings name.
    pub foreign: Option<&'a Foreign>,
}

/// Ends the refusal of a drive that is too small for the open blocks of its placement policy only.
pub(crate) const SINGLE_KEEPS_FEWER: &str =
    ", or set placement.policy = \"single\", which keeps one block of a plane open";

impl SchemeContext<'_> {
    /// The chosen placement policy.
    #[must_use]
    pub(crate) fn placement(&self, flash: &Flash) -> Placement {
        let geometry = flash.geometry();
        let context = PlacementContext {
            logical_pages: self.logical_pages,
            physical_pages: geometry.pages(),
            pages_per_block: geometry.pages_per_block(),
            blocks: geometry.blocks(),
            planes: geometry.planes(),
            rng: self.seed.stream("placement"),
        };
        match self.foreign.and_then(|foreign| Some((foreign.placement.as_deref()?, &foreign.fault))) {
            Some((maker, fault)) => Placement::Foreign(ForeignPlacement::new(maker, context, fault.clone())),
            None => self.placement.policy.build(&self.placement.policies, context),
        }
    }

    /// Streams of the chosen placement policy.
    #[must_use]
    pub fn streams(&self, flash: &Flash) -> u8 {
        match self.foreign_placement() {
            Some(maker) => maker.streams(),
            None => self.placement(flash).streams(),
        }
    }

    fn foreign_placement(&self) -> Option<&dyn MakePlacement> {
        self.foreign?.placement.as_deref()
    }

    /// The victim policy of a plane.
    pub(crate) fn victim_of(&self, plane: u32, streams: u8, flash: &Flash) -> Victim {
        let context = self.victim_context(plane, streams, flash);
        match self.foreign.and_then(|foreign| Some((foreign.victim.as_deref()?, &foreign.fault))) {
            Some((maker, fault)) => Victim::Foreign(ForeignVictim::new(maker, plane, context, fault.clone())),
            None => self.victim().build(&self.gc.victims, context),
        }
    }

    /// The victim policy: as set, else the scheme's own.
    #[must_use]
    pub fn victim(&self) -> VictimName {
        match self.gc.victim {
            VictimChoice::Named(name) => name,
            VictimChoice::Default => self.ftl.scheme.victim(),
        }
    }

    /// Whether blocks are recycled for the sake of wear.
    pub(crate) fn levels_wear(&self) -> bool {
        self.wear.policy.is_some() || self.foreign.is_some_and(|foreign| foreign.wear.is_some())
    }

    /// The name of the wear policy, if there is one.
    pub(crate) fn wear_policy(&self) -> Option<&str> {
        match self.foreign.and_then(|foreign| foreign.wear.as_deref()) {
            Some(maker) => Some(maker.name()),
            None => self.wear.policy.map(|policy| policy.listed().name),
        }
    }

    /// The wear policy of a plane; there is one.
    pub(crate) fn wear_of(&self, plane: u32, made_for: WearContext) -> Wear {
        match self.foreign.and_then(|foreign| Some((foreign.wear.as_deref()?, &foreign.fault))) {
            Some((maker, fault)) => Wear::Foreign(ForeignWear::new(maker, plane, made_for, fault.clone())),
            None => self.wear.policy.expect("wear is levelled").build(&self.wear.policies, made_for),
        }
    }

    /// When the schedule is consulted.
    pub fn schedule_rules(&self) -> ScheduleRules {
        match self.foreign.and_then(|foreign| foreign.schedule.as_deref()) {
            Some(maker) => maker.rules(),
            None => self.gc.schedule.rules(),
        }
    }

    /// The schedule of a plane with this many streams.
    pub(crate) fn schedule_of(&self, plane: u32, streams: u8, flash: &Flash) -> Schedule {
        let made_for = self.schedule_context(streams, flash);
        match self.foreign.and_then(|foreign| Some((foreign.schedule.as_deref()?, &foreign.fault))) {
            Some((maker, fault)) => {
                let rng = self.seed.stream(&format!("gc.schedule.{plane}"));
                Schedule::Foreign(ForeignSchedule::new(maker, plane, made_for, rng, fault.clone()))
            }
            None => self.gc.schedule.build(&self.gc.schedules, made_for),
        }
    }

    /// The parameters that the victim policy of a plane is built for, with this many streams.
    fn victim_context(&self, plane: u32, streams: u8, flash: &Flash) -> VictimContext {
        let geometry = flash.geometry();
        VictimContext {
            blocks: geometry.blocks_per_plane(),
            pages_per_block: geometry.pages_per_block(),
            streams,
            logical_pages: self.logical_pages,
            rng: self.seed.stream(&format!("gc.victim.{plane}")),
        }
    }

    /// Open blocks of a plane with this many streams: beside an SLC cache, pages of the host and moved ones have their
    /// own.
    pub(crate) fn frontiers(&self, streams: u8) -> u64 {
        u64::from(streams) * if self.slc.is_some() { 2 } else { 1 }
    }

    /// The context of a plane's schedule, for this many streams.
    pub(crate) fn schedule_context(&self, streams: u8, flash: &Flash) -> ScheduleContext {
        let geometry = flash.geometry();
        let normal = |plane| {
            let good = good_blocks(flash, PlaneId(plane));
            good - self.slc.map_or(0, |slc| slc.own_blocks(good))
        };
        let good: u64 = (0..geometry.planes()).map(normal).sum();
        let data = u64::from(self.logical_pages.div_ceil(geometry.pages_per_block()));
        let spare = good.saturating_sub(data) / u64::from(geometry.planes());
        ScheduleContext {
            free_blocks_min: self.gc.free_blocks_min.max(1),
            pages_per_block: geometry.pages_per_block(),
            spare_blocks: u32::try_from(spare.saturating_sub(self.frontiers(streams))).unwrap_or(u32::MAX),
        }
    }

    /// Validation errors of the settings of the chosen policies, for this many streams.
    pub(crate) fn policy_problems(&self, streams: u8, flash: &Flash) -> Vec<String> {
        let mut problems = Vec::new();
        if self.foreign.is_none_or(|foreign| foreign.schedule.is_none()) {
            problems = self.gc.schedule.problems(&self.gc.schedules, &self.schedule_context(streams, flash));
        }
        if self.foreign.is_none_or(|foreign| foreign.victim.is_none()) {
            problems.extend(self.victim().problem(&self.gc.victims, &self.victim_context(0, streams, flash)));
        }
        problems
    }
}

/// How a scheme is built and listed, in addition to [`crate::Ftl`].
pub trait BuildScheme: Sized {
    /// The name that users choose it by.
    const NAME: &'static str;
    /// One-line description, with its source.
    const ABOUT: &'static str;
    /// The program order that the scheme needs of the chip: `None` if it works with any.
    const NEEDS_ORDER: Option<ProgramOrder> = None;
    /// The victim policy of its source, for `gc.victim = "default"`.
    const VICTIM: VictimName = VictimName::Greedy;
    /// Whether it recycles blocks for a `wear.policy`.
    const LEVELS_WEAR: bool = false;
    /// Whether it uses a victim and a placement policy.
    const ASKS_POLICIES: bool = false;
    /// Whether it keeps a part of its map in a cache, for `ftl.dftl.replacement` and `ftl.dftl.prefetch`.
    const CACHES_MAP: bool = false;
    /// Whether it cleans in steps, as `gc.schedule` decides.
    const CLEANS_IN_STEPS: bool = false;
    /// Whether it can have an SLC cache.
    const CACHES_IN_SLC: bool = false;
    /// Whether it can keep parts of the logical space on dies of their own.
    const HAS_SETS: bool = false;
    /// Whether it programs the pages of a block one after the other, as chips need whose commands program several.
    const FILLS_IN_ORDER: bool = Self::ASKS_POLICIES;
    /// Whether it takes writes in a certain order only, so that nothing before it may keep or reorder them.
    const WRITES_IN_ORDER: bool = false;
    /// Whether it can be mounted from a checkpoint, which names the current copy of each page and no other.
    const TAKES_CHECKPOINTS: bool = false;
    /// Its settings, in a table named after it under `[ftl]`; `context.ftl.schemes` holds them.
    type Settings: PolicySettings;

    /// Checks the scheme's requirements on drive and settings: one line for each problem, with the key and what to
    /// change.
    fn problems(context: &SchemeContext, flash: &Flash) -> Vec<String>;
    /// Settings that are allowed but cost far more than a user may expect: one line each, with the key and what to
    /// change.
    fn cautions(context: &SchemeContext, flash: &Flash) -> Vec<String> {
        let _ = (context, flash);
        Vec::new()
    }
    /// The part of each plane that cleaning reserves; none for schemes whose settings state it.
    fn reserve(context: &SchemeContext, flash: &Flash) -> Option<Reserve> {
        let _ = (context, flash);
        None
    }
    /// Bytes of this machine's memory that its own tables take, beside the states of pages and blocks that every scheme has: a
    /// map of pages, 4 B each, unless it says otherwise.
    fn table_bytes(settings: &Self::Settings, logical_pages: u32, geometry: &Geometry) -> u64 {
        let _ = (settings, geometry);
        u64::from(logical_pages) * 4
    }
    /// Pages that the host can address, of a drive with room for so many.
    fn addresses(settings: &Self::Settings, room: u32, geometry: &Geometry) -> u32 {
        let _ = (settings, geometry);
        room
    }
    /// Blocks of a plane that are filled side by side.
    fn side_by_side(context: &SchemeContext, flash: &Flash) -> u32 {
        u32::from(context.streams(flash))
    }
    /// Builds the scheme over erased flash.
    fn new(context: &SchemeContext, flash: &mut Flash) -> Self;
    /// Different owners that spare areas may name: logical pages, and pages of the scheme's own tables.
    fn owners(context: &SchemeContext, flash: &Flash) -> u32 {
        let _ = flash;
        context.logical_pages
    }
    /// The most bytes that a checkpoint of the map takes, beside the states of blocks.
    fn checkpoint_bytes_max(context: &SchemeContext, flash: &Flash) -> u64 {
        let _ = (context, flash);
        0
    }
    /// What a checkpoint of the map takes now.
    fn map_size(&self, flash: &Flash) -> MapSize {
        let _ = flash;
        MapSize::default()
    }
    /// Builds the scheme over flash that was found after a loss of power. It may program and erase to finish or to undo what was
    /// under way.
    ///
    /// # Errors
    /// [`MountError`] if that is not possible.
    fn mount(context: &SchemeContext, scan: &mut Scan, flash: &mut Flash) -> Result<Self, MountError>;
}

/// Flash that never holds data of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserve {
    /// Blocks of each plane that are kept erased, or open.
    pub blocks: u64,
    /// Pages of the drive that hold the map.
    pub map_pages: u64,
}

macro_rules! schemes {
    ($($module:ident :: $scheme:ident as $name:ident),+; unlisted $outside:ident :: $outer:ident as $unlisted:ident) => {
        $(mod $module; pub use $module::$scheme;)+
        mod $outside;
        pub use $outside::$outer;

        /// The names that `ftl.scheme` takes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum SchemeName {
            $($name,)+
            /// A layer from outside: the name of one that was registered ([`register`]); none of one that is passed in when the
            /// drive is built. No run with it is saved.
            $unlisted(Option<&'static str>),
        }

        /// The settings of each `ftl.scheme`, in a table named after it.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, rename_all = "kebab-case")]
        #[allow(missing_docs)]
        pub struct SchemeSettings {
            $(#[serde(skip_serializing_if = "crate::registry::is_empty")]
            pub $module: <$scheme as BuildScheme>::Settings,)+
            #[serde(skip)]
            pub $outside: <$outer as BuildScheme>::Settings,
        }

        /// The translation layer in use.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[allow(missing_docs, clippy::large_enum_variant)] // one a drive
        pub enum Scheme {
            $($name($scheme),)+
            #[serde(skip)]
            $unlisted($outer),
        }

        impl SchemeName {
            /// All of them, in the order of the list.
            pub const ALL: &[SchemeName] = &[$(SchemeName::$name),+];
        }

        dispatch! { $($module::$scheme as $name,)+ $outside::$outer as $unlisted }
    };
}

/// The calls of whatever scheme it is.
macro_rules! dispatch {
    ($($module:ident :: $scheme:ident as $name:ident),+) => {
        impl SchemeName {
            /// The names of those that `can`, for messages.
            #[must_use]
            pub fn those(can: impl Fn(Self) -> bool) -> Vec<&'static str> {
                Self::ALL.iter().filter(|scheme| can(**scheme)).map(|scheme| scheme.listed().name).collect()
            }

            /// The catalogue entry.
            #[must_use]
            pub fn listed(self) -> Listed {
                let (name, about) = match self {
                    Self::Foreign(Some(name)) => (name, OwnLayer::named(name).map_or("", OwnLayer::about)),
                    $(SchemeName::$name { .. } => ($scheme::NAME, $scheme::ABOUT),)+
                };
                Listed { key: "ftl.scheme", name, about }
            }
            /// The program order that the scheme needs of the chip.
            #[must_use]
            pub fn needs_order(self) -> Option<ProgramOrder> {
                match self { $(SchemeName::$name { .. } => $scheme::NEEDS_ORDER,)+ }
            }
            /// See [`BuildScheme::LEVELS_WEAR`].
            #[must_use]
            pub fn levels_wear(self) -> bool {
                match self { $(SchemeName::$name { .. } => $scheme::LEVELS_WEAR,)+ }
            }
            /// See [`BuildScheme::CACHES_MAP`].
            #[must_use]
            pub fn caches_map(self) -> bool {
                match self { $(SchemeName::$name { .. } => $scheme::CACHES_MAP,)+ }
            }
            /// See [`BuildScheme::HAS_SETS`].
            #[must_use]
            pub fn has_sets(self) -> bool {
                match self { $(SchemeName::$name { .. } => $scheme::HAS_SETS,)+ }
            }
            /// See [`BuildScheme::ASKS_POLICIES`].
            #[must_use]
            pub fn asks_policies(self) -> bool {
                match self { $(SchemeName::$name { .. } => $scheme::ASKS_POLICIES,)+ }
            }
            /// See [`BuildScheme::CLEANS_IN_STEPS`].
            #[must_use]
            pub fn cleans_in_steps(self) -> bool {
                match self { $(SchemeName::$name { .. } => $scheme::CLEANS_IN_STEPS,)+ }
            }
            /// See [`BuildScheme::CACHES_IN_SLC`].
            #[must_use]
            pub fn caches_in_slc(self) -> bool {
                match self { $(SchemeName::$name { .. } => $scheme::CACHES_IN_SLC,)+ }
            }
            /// See [`BuildScheme::TAKES_CHECKPOINTS`].
            #[must_use]
            pub fn takes_checkpoints(self) -> bool {
                match self { $(SchemeName::$name { .. } => $scheme::TAKES_CHECKPOINTS,)+ }
            }
            /// See [`BuildScheme::FILLS_IN_ORDER`].
            #[must_use]
            pub fn fills_in_order(self) -> bool {
                match self { $(SchemeName::$name { .. } => $scheme::FILLS_IN_ORDER,)+ }
            }
            /// See [`BuildScheme::WRITES_IN_ORDER`].
            #[must_use]
            pub fn writes_in_order(self) -> bool {
                match self { $(SchemeName::$name { .. } => $scheme::WRITES_IN_ORDER,)+ }
            }
            /// See [`BuildScheme::addresses`].
            #[must_use]
            pub fn addresses(self, settings: &SchemeSettings, room: u32, geometry: &Geometry) -> u32 {
                match self { $(SchemeName::$name { .. } => $scheme::addresses(&settings.$module, room, geometry),)+ }
            }
            /// See [`BuildScheme::side_by_side`].
            #[must_use]
            pub fn side_by_side(self, context: &SchemeContext, flash: &Flash) -> u32 {
                match self { $(SchemeName::$name { .. } => $scheme::side_by_side(context, flash),)+ }
            }
            /// See [`BuildScheme::table_bytes`].
            #[must_use]
            pub fn table_bytes(self, settings: &SchemeSettings, logical_pages: u32, geometry: &Geometry) -> u64 {
                match self { $(SchemeName::$name { .. } => $scheme::table_bytes(&settings.$module, logical_pages, geometry),)+ }
            }
            /// The victim policy of the scheme's source.
            #[must_use]
            pub fn victim(self) -> VictimName {
                match self { $(SchemeName::$name { .. } => $scheme::VICTIM,)+ }
            }
            /// See [`BuildScheme::problems`].
            #[must_use]
            pub fn problems(self, context: &SchemeContext, flash: &Flash) -> Vec<String> {
                match self { $(SchemeName::$name { .. } => $scheme::problems(context, flash),)+ }
            }
            /// See [`BuildScheme::cautions`].
            #[must_use]
            pub fn cautions(self, context: &SchemeContext, flash: &Flash) -> Vec<String> {
                match self { $(SchemeName::$name { .. } => $scheme::cautions(context, flash),)+ }
            }
            /// See [`BuildScheme::reserve`].
            #[must_use]
            pub fn reserve(self, context: &SchemeContext, flash: &Flash) -> Option<Reserve> {
                match self { $(SchemeName::$name { .. } => <$scheme as BuildScheme>::reserve(context, flash),)+ }
            }
            /// Reads what the flash holds after a loss of power, and builds the scheme over it. See [`BuildScheme::mount`].
            ///
            /// # Errors
            /// As [`BuildScheme::mount`].
            pub fn mount(self, context: &SchemeContext, flash: &mut Flash) -> Result<(Scheme, Scan), MountError> {
                match self {
                    $(SchemeName::$name { .. } => {
                        let mut scan = Scan::of($scheme::owners(context, flash), flash);
                        Ok((Scheme::$name($scheme::mount(context, &mut scan, flash)?), scan))
                    })+
                }
            }
            /// See [`BuildScheme::checkpoint_bytes_max`].
            #[must_use]
            pub fn checkpoint_bytes_max(self, context: &SchemeContext, flash: &Flash) -> u64 {
                match self { $(SchemeName::$name { .. } => $scheme::checkpoint_bytes_max(context, flash),)+ }
            }
            /// Builds the scheme over erased flash.
            #[must_use]
            pub fn build(self, context: &SchemeContext, flash: &mut Flash) -> Scheme {
                match self { $(SchemeName::$name { .. } => Scheme::$name($scheme::new(context, flash)),)+ }
            }
        }

        impl Scheme {
            #[inline(never)]
            fn write_called(&mut self, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace> {
                match self { $(Scheme::$name(scheme) => crate::Ftl::write(scheme, run, flash),)+ }
            }
            /// See [`crate::Ftl::expect_far`], for several pages.
            #[inline]
            pub fn expect_all_far(&self, lpns: impl Iterator<Item = Lpn>) {
                match self { $(Scheme::$name(scheme) => lpns.for_each(|lpn| crate::Ftl::expect_far(scheme, lpn)),)+ }
            }
            /// See [`crate::Ftl::expect_near`], for several pages.
            #[inline]
            pub fn expect_all_near(&self, lpns: impl Iterator<Item = Lpn>, flash: &Flash) {
                match self { $(Scheme::$name(scheme) => lpns.for_each(|lpn| crate::Ftl::expect_near(scheme, lpn, flash)),)+ }
            }
            /// See [`BuildScheme::map_size`].
            #[must_use]
            pub fn map_size(&self, flash: &Flash) -> MapSize {
                match self { $(Scheme::$name(scheme) => BuildScheme::map_size(scheme, flash),)+ }
            }
        }

        impl crate::Ftl for Scheme {
            #[inline]
            fn read(&mut self, run: LpnRun, flash: &mut Flash) {
                match self { $(Scheme::$name(scheme) => scheme.read(run, flash),)+ }
            }
            /// Page mapping is inlined, the others are not.
            #[inline(always)]
            fn write(&mut self, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace> {
                if let Scheme::Page(scheme) = self { scheme.write(run, flash) } else { self.write_called(run.apart(), flash) }
            }
            #[inline]
            fn trim(&mut self, run: LpnRun, flash: &mut Flash) {
                match self { $(Scheme::$name(scheme) => scheme.trim(run, flash),)+ }
            }
            #[inline]
            fn lookup(&self, lpn: Lpn, flash: &Flash) -> Option<Ppn> {
                match self { $(Scheme::$name(scheme) => scheme.lookup(lpn, flash),)+ }
            }
            fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>) {
                match self { $(Scheme::$name(scheme) => scheme.audit(flash, violations),)+ }
            }
            fn figures(&self) -> SchemeFigures {
                match self { $(Scheme::$name(scheme) => scheme.figures(),)+ }
            }
            fn reset_figures(&mut self) {
                match self { $(Scheme::$name(scheme) => scheme.reset_figures(),)+ }
            }
            #[inline]
            fn expect_far(&self, lpn: Lpn) {
                match self { $(Scheme::$name(scheme) => scheme.expect_far(lpn),)+ }
            }
            #[inline]
            fn expect_near(&self, lpn: Lpn, flash: &Flash) {
                match self { $(Scheme::$name(scheme) => scheme.expect_near(lpn, flash),)+ }
            }
        }

        impl crate::CleansInSteps for Scheme {
            fn clean(&mut self, budget: u32, flash: &mut Flash) -> Progress {
                match self { $(Scheme::$name(scheme) => scheme.clean(budget, flash),)+ }
            }
            #[inline]
            fn follow_schedule(&mut self, plane: PlaneId, occasion: Occasion, flash: &mut Flash) -> Progress {
                match self { $(Scheme::$name(scheme) => scheme.follow_schedule(plane, occasion, flash),)+ }
            }
            fn rewrite(&mut self, block: BlockId, flash: &mut Flash) -> Progress {
                match self { $(Scheme::$name(scheme) => scheme.rewrite(block, flash),)+ }
            }
            fn fold(&mut self, plane: PlaneId, budget: u32, flash: &mut Flash) -> Progress {
                match self { $(Scheme::$name(scheme) => scheme.fold(plane, budget, flash),)+ }
            }
            fn written_planes(&mut self, note: &mut dyn FnMut(PlaneId, u32, Nanos)) {
                match self { $(Scheme::$name(scheme) => scheme.written_planes(note),)+ }
            }
        }

        impl crate::ServesRam for Scheme {
            fn fetch(&mut self, lpn: Lpn, cause: crate::Cause, flash: &mut Flash) -> Option<Ppn> {
                match self { $(Scheme::$name(scheme) => scheme.fetch(lpn, cause, flash),)+ }
            }
            fn write_block(&mut self, lpns: &[u32], flash: &mut Flash) -> Result<(), OutOfSpace> {
                match self { $(Scheme::$name(scheme) => scheme.write_block(lpns, flash),)+ }
            }
            fn watch(&mut self, watch: crate::Watch, flash: &Flash) {
                match self { $(Scheme::$name(scheme) => scheme.watch(watch, flash),)+ }
            }
            fn look_up_block(&mut self, run: LpnRun, flash: &mut Flash) {
                match self { $(Scheme::$name(scheme) => scheme.look_up_block(run, flash),)+ }
            }
            #[inline]
            fn supersede(&mut self, lpns: &[u32], flash: &mut Flash) {
                match self { $(Scheme::$name(scheme) => scheme.supersede(lpns, flash),)+ }
            }
            fn reclaimable_pages(&self, flash: &Flash) -> Option<u32> {
                match self { $(Scheme::$name(scheme) => scheme.reclaimable_pages(flash),)+ }
            }
            fn map_cache(&self) -> Option<crate::MapCacheView> {
                match self { $(Scheme::$name(scheme) => scheme.map_cache(),)+ }
            }
            fn resize_map_cache(&mut self, entries: u32, flash: &mut Flash) {
                match self { $(Scheme::$name(scheme) => scheme.resize_map_cache(entries, flash),)+ }
            }
        }
    };
}

schemes! {
    page::PageMap as Page,
    block::BlockMap as Block,
    replacement::Replacement as Replacement,
    bast::Bast as Bast,
    fast::Fast as Fast,
    last::Last as Last,
    superblock::Superblock as Superblock,
    dftl::Dftl as Dftl,
    zoned::Zoned as Zoned;
    unlisted foreign::ForeignFtl as Foreign
}

impl SchemeName {
    /// All that a setting can name: ours, and those that were registered.
    pub fn all() -> impl Iterator<Item = Self> {
        let own = own::layers().into_iter().map(|layer| Self::Foreign(Some(layer.name())));
        Self::ALL.iter().copied().chain(own)
    }

    /// The one of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|scheme| scheme.listed().name == name)
    }

    /// Whether it is a layer from outside.
    #[must_use]
    pub fn is_from_outside(self) -> bool {
        matches!(self, Self::Foreign(_))
    }

    fn names() -> Vec<&'static str> {
        Self::all().map(|scheme| scheme.listed().name).collect()
    }
}

impl Serialize for SchemeName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.listed().name)
    }
}

impl<'de> Deserialize<'de> for SchemeName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::named(&text).ok_or_else(|| {
            let names: Vec<String> = Self::names().into_iter().map(|name| format!("`{name}`")).collect();
            D::Error::custom(format!("unknown variant `{text}`, expected one of {}", names.join(", ")))
        })
    }
}

crate::registry::text_schema!(SchemeName, { "type": "string", "enum": SchemeName::names() });

impl Scheme {
    /// The scheme as one with zones, if it has any.
    #[inline(always)]
    #[must_use]
    pub fn zoned(&self) -> Option<&Zoned> {
        if let Self::Zoned(zoned) = self { Some(zoned) } else { None }
    }

    /// As [`Scheme::zoned`], to change them.
    #[inline(always)]
    pub fn zoned_mut(&mut self) -> Option<&mut Zoned> {
        if let Self::Zoned(zoned) = self { Some(zoned) } else { None }
    }
}

pub use bast::{BastSettings, VictimLog};
pub use block::{BlockMapSettings, Coalesce};
pub use dftl::{DftlSettings, SamePageRead};
pub use fast::{FastSettings, OutOfOrder};
pub use foreign::{DecideFtl, FtlDrive, MakeFtl};
pub use last::LastSettings;
pub use replacement::ReplacementSettings;
pub use superblock::SuperblockSettings;
pub use zoned::{Admitted, ZonedSettings};
