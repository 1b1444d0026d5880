//! How a drive is built from its settings.

use super::{Path, Ssd};
use crate::cleaning::BackgroundCleaning;
use crate::clock::Clock;
use crate::engine::{Observer as _, ObserverOfDrive};
use crate::power_loss::Power;
use crate::translation::Translation;
use flashwright_block::{Seed, below};
use flashwright_config::{CleaningBlocks, Config, ConfigError, DriveConfig, PartialPages, SettingError, TimingModel};
use flashwright_ftl::policies::schedule::MakeSchedule;
use flashwright_ftl::schemes::SchemeContext;
use flashwright_ftl::{Flash, Foreign, Keeps, Scheme, SchemeName, SlcContext};
use flashwright_nand::{BlockId, ErrorLaw, Geometry, Nand};
use flashwright_ram::{MakeManager, Ram, RamDrive};
use std::collections::VecDeque;

/// Why a drive could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SsdError {
    /// The configuration contradicts itself.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Policies from outside, each in place of the one that the configuration names.
#[derive(Default)]
pub struct Policies {
    /// Those of the translation layer, and where all say why they can't go on.
    pub ftl: Foreign,
    /// What leaves the RAM.
    pub manager: Option<Box<dyn MakeManager>>,
}

impl Policies {
    pub(crate) fn is_empty(&self) -> bool {
        self.ftl.ftl.is_none() && self.ftl.policies().is_empty() && self.manager.is_none()
    }
}

impl Ssd {
    /// Builds a drive with erased flash that keeps of the host's data what `keeps` says; a bool stands for the user's
    /// `verify`, under which pages carry stamps and every read is checked.
    ///
    /// ```
    /// # use flashwright_block::{BlockDevice, Completion, HoldsData, Request, RequestKind, Seed};
    /// # use flashwright_ssd::{DriveConfig, Keeps, Ssd};
    /// let mut drive = Ssd::new(&DriveConfig::default(), Seed(1), Keeps::Bytes)?;
    /// let (mut done, mut data) = (Completion::default(), [0; 1024]);
    /// drive.submit_with(Request { first_sector: 9, sectors: 2, kind: RequestKind::Write, ..Request::default() }, &[7; 1024])?;
    /// drive.submit_with(Request { first_sector: 10, sectors: 2, ..Request::default() }, &[])?;
    /// while drive.wait(flashwright_block::Nanos(u64::MAX), &mut done)? {
    ///     drive.take_data(done.tag, &mut data);
    /// }
    /// assert_eq!((data[..512].to_vec(), data[512..].to_vec()), (vec![7; 512], vec![0; 512]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SsdError::Config`] if its tables do not fit the memory of this machine, or with everything wrong with the settings
    /// that only shows once the drive is laid out.
    pub fn new(config: &DriveConfig, seed: Seed, keeps: impl Into<Keeps>) -> Result<Self, SsdError> {
        Self::with_policies(config, seed, keeps, &Policies::default())
    }

    /// Finds out whether a drive can be built, without its tables of pages, which take most of a drive's memory. Only what power
    /// may be cut from, and RAM that shares its room with a cached map, has to be built whole for that.
    ///
    /// ```
    /// # use flashwright_ssd::{DriveConfig, Ssd};
    /// let drive = DriveConfig::default();
    /// assert!(Ssd::can_be_built(&drive).is_ok());
    /// let without_room = drive.with_settings(&["ram.manager=\"lru\"", "ram.size=\"1 B\""])?;
    /// assert!(Ssd::can_be_built(&without_room).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Ssd::new`].
    pub fn can_be_built(config: &DriveConfig) -> Result<(), SsdError> {
        let with_map_cache = config.ram.manager.is_some() && config.ftl.scheme.caches_map();
        if config.recovery.can_mount() || with_map_cache {
            return Self::new(config, Seed(0), false).map(drop);
        }
        let fail = |problems| Err(ConfigError { source_name: config.name.clone(), problems }.into());
        if let Some(problem) = crate::memory::problem(config, Keeps::Nothing) {
            return fail(vec![problem]);
        }
        let (geometry, seed, policies) = (config.layout(), Seed(0), Policies::default());
        let (order, limit) = (config.geometry.program_order, crate::budgets::of_drive(config, seed));
        let nand = Nand::without_pages(geometry, order, limit, &factory_bad(config, &geometry, seed));
        let mut flash = Flash::without_pages(nand);
        let context = Self::scheme_context(config, seed, &policies);
        let mut problems = crate::laid_out::problems(config, &context, &mut flash, &policies);
        if problems.is_empty() {
            problems = unkeyed(Ram::problems(&config.ram, Self::ram_drive(config, seed), &geometry));
        }
        if problems.is_empty() { Ok(()) } else { fail(problems) }
    }

    /// As [`Ssd::new`] with policies from outside. When one of them can't go on, every later request fails with
    /// [`IoError::Policy`].
    ///
    /// # Errors
    /// As [`Ssd::new`].
    pub fn with_policies(
        config: &DriveConfig,
        seed: Seed,
        keeps: impl Into<Keeps>,
        policies: &Policies,
    ) -> Result<Self, SsdError> {
        let keeps = keeps.into();
        let with_own_layer = policies.ftl.ftl.is_some().then(|| {
            let mut written = config.clone().into_written();
            written.ftl.scheme = SchemeName::Foreign(None);
            written.check()
        });
        let with_own_layer = with_own_layer.transpose()?;
        let config = with_own_layer.as_ref().unwrap_or(config);
        let has_foreign = !policies.is_empty() || config.ftl.scheme.is_from_outside();
        let fail = |problems| ConfigError { source_name: config.name.clone(), problems };
        if let Some(problem) = crate::memory::problem(config, keeps) {
            return Err(fail(vec![problem]).into());
        }
        let (geometry, logical_pages, order) = (config.layout(), config.logical_pages(), config.geometry.program_order);
        let limit = crate::budgets::of_drive(config, seed);
        let nand = Nand::new(geometry, order, limit, &factory_bad(config, &geometry, seed));
        #[allow(clippy::let_unit_value)] // an observer that observes is no unit
        let observer = ObserverOfDrive::default();
        let logging = match config.timing.model {
            TimingModel::None => false,
            TimingModel::Serial => observer.listens(),
            TimingModel::Parallel => true,
        };
        let can_mount = config.recovery.can_mount();
        let kept = if can_mount && keeps == Keeps::Nothing { Keeps::Stamps } else { keeps };
        let mut flash = Flash::new(nand, logical_pages, logging, kept);
        let context = Self::scheme_context(config, seed, policies);
        let problems = crate::laid_out::problems(config, &context, &mut flash, policies);
        if !problems.is_empty() {
            return Err(fail(problems).into());
        }
        let cautions = config.ftl.scheme.cautions(&context, &flash);
        let reserve = config.ftl.scheme.reserve(&context, &flash);
        let mut scheme = config.ftl.scheme.build(&context, &mut flash);
        let ram = Self::build_ram(config, seed, policies, &mut scheme, &mut flash)
            .map_err(|problems| fail(unkeyed(problems)))?;
        let power = can_mount.then(|| Power::new(config, &mut flash));
        let ahead = BackgroundCleaning::new(config, context.schedule_rules(), geometry.planes());
        let is_bare = config.errors.law == ErrorLaw::None
            && !observer.listens()
            && config.host.partial_pages != PartialPages::ReadModifyWrite
            && keeps != Keeps::Bytes
            && !has_foreign
            && ahead.is_none()
            && config.timing.cleaning_blocks == CleaningBlocks::Dies
            && power.is_none()
            && scheme.zoned().is_none();
        let path = Path::of(config.timing.model, is_bare, ram.is_some());
        let clock = Clock::new(config, &geometry, ram.is_some(), seed, observer);
        if let Clock::Parallel(clock) = &clock
            && clock.engine.wants_copies_apart()
        {
            flash.log_copies_apart();
        }
        let translation = Translation::new(config, flash, scheme, ram);
        Ok(Self {
            clock,
            path,
            config: config.clone(),
            cautions,
            reserve,
            reach: translation.sectors() + 1,
            translation,
            now: 0,
            tag: 0,
            ahead,
            rewrites: config.errors.law != ErrorLaw::None,
            to_rewrite: Vec::new(),
            blocks_rewritten: 0,
            ready: VecDeque::new(),
            failed: Vec::new(),
            policy_fault: has_foreign.then(|| policies.ftl.fault.clone()),
            own_schedule: policies.ftl.schedule.as_deref().map(MakeSchedule::rules),
            own_wear: policies.ftl.wear.is_some(),
            data: (keeps == Keeps::Bytes).then(Box::default),
            seed,
            power,
        })
    }

    /// What the translation layer is built for.
    pub(crate) fn scheme_context<'a>(config: &'a DriveConfig, seed: Seed, policies: &'a Policies) -> SchemeContext<'a> {
        SchemeContext {
            logical_pages: config.logical_pages(),
            dies_per_way: config.dies_per_way(),
            ftl: &config.ftl,
            gc: &config.gc,
            placement: &config.placement,
            wear: &config.wear,
            slc: SlcContext::new(&config.slc, config.geometry.bits_per_cell)
                .filter(|_| config.ftl.scheme.caches_in_slc()),
            seed,
            foreign: Some(&policies.ftl),
        }
    }

    /// What the RAM is built for.
    fn ram_drive(config: &DriveConfig, seed: Seed) -> RamDrive {
        let logical_pages = config.logical_pages();
        RamDrive { logical_pages, read: config.timing.read, program: config.timing.program, seed }
    }

    /// The RAM before the translation layer.
    pub(crate) fn build_ram(
        config: &DriveConfig,
        seed: Seed,
        policies: &Policies,
        scheme: &mut Scheme,
        flash: &mut Flash,
    ) -> Result<Option<Ram>, Vec<String>> {
        let drive = Self::ram_drive(config, seed);
        match policies.manager.as_deref() {
            None => Ram::new(&config.ram, drive, scheme, flash),
            Some(maker) => Ram::with_foreign(maker, &policies.ftl.fault, &config.ram, drive, scheme, flash).map(Some),
        }
    }
}

impl Path {
    /// The path of a drive; `is_bare` if nothing else that is optional was asked for, RAM aside.
    fn of(model: TimingModel, is_bare: bool, has_ram: bool) -> Self {
        match (model, has_ram) {
            (TimingModel::None, false) if is_bare => Self::Plain,
            (TimingModel::None, true) if is_bare => Self::Buffered,
            (TimingModel::Parallel, false) if is_bare => Self::Bare,
            _ => Self::Whole,
        }
    }
}

/// Problems that name their settings in their text.
fn unkeyed(problems: Vec<String>) -> Vec<SettingError> {
    problems.into_iter().map(|what| SettingError { key: String::new(), what }).collect()
}

/// Blocks that are bad since the factory, drawn without replacement.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of at most one half
fn factory_bad(config: &Config, geometry: &Geometry, seed: Seed) -> Vec<BlockId> {
    let mut rng = seed.stream("wear.factory-bad");
    let mut blocks: Vec<u32> = Vec::new();
    let count = (f64::from(geometry.blocks()) * config.wear.factory_bad).round() as usize;
    if count > 0 {
        blocks = (0..geometry.blocks()).collect();
        for at in 0..count {
            let other = at + below(&mut rng, (blocks.len() - at) as u64) as usize;
            blocks.swap(at, other);
        }
        blocks.truncate(count);
    }
    blocks.into_iter().map(BlockId).collect()
}
