//! Loss of power: what is left on the chips, and mounting the drive again.
//!
//! The drive's tables are ahead of its chips. With `recovery.mount-by` every change of the chips goes to a [`Medium`] when it is done.
//! A cut leaves the medium as it is, with what was under way torn; a mount builds the drive anew from it.
//!
//! Under `timing.model = "none"` and `"serial"` operations are done one after the other, in the order in which they were decided.

use crate::ssd::{Policies, Ssd};
use flashwright_block::{BlockDevice, IoError, Nanos};
use flashwright_config::{DriveConfig, SettingError, TimingModel};
use flashwright_ftl::durable::{Change, Changed, Medium, MountError};
use flashwright_ftl::{Flash, InvalidateOrder, OP_KINDS, OpKind, SlcCacheKind};
use serde::{Deserialize, Serialize};

/// The power of a drive that can be mounted again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Power {
    pub medium: Medium,
    /// Programs and erases until power fails, if it is to fail in the middle of one.
    fails_after: Option<u64>,
    /// Whether the energy of capacitors lasts until what has begun is finished.
    is_protected: bool,
    is_off: bool,
    /// Changes that were decided and did not happen.
    #[serde(skip)]
    lost: Vec<Change>,
    /// Programs and erases done since the drive was built.
    operations: u64,
}

/// What a mount did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mounted {
    /// How long it took; zero under `timing.model = "none"`.
    pub duration: Nanos,
    /// Spare areas read.
    pub spare_areas_read: u64,
    /// Pages read.
    pub pages_read: u64,
    /// Pages programmed, to finish what was under way and to write tables again.
    pub pages_programmed: u64,
    /// Blocks erased.
    pub blocks_erased: u64,
    /// Logical pages found.
    pub pages_mapped: u64,
    /// Pages that can't be read because their program, or the erase of their block, was cut short.
    pub pages_torn: u64,
}

/// What the configuration lacks for cuts.
pub(crate) fn problems(config: &DriveConfig, has_foreign_policies: bool) -> Vec<SettingError> {
    if !config.recovery.can_mount() {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let mut refuse = |key: &str, what: &str| {
        problems.push(SettingError { key: key.to_owned(), what: what.to_owned() });
    };
    if has_foreign_policies {
        refuse(
            "recovery.mount-by",
            "found \"scan\" with policies from outside; expected \"nothing\": a mount builds the drive anew, without them",
        );
    }
    let blocks = Flash::journal_blocks(config.logical_pages(), &config.layout());
    let most = config.layout().blocks() / 4;
    if blocks > most {
        refuse(
            "recovery.mount-by",
            &format!("the journal of trims takes {blocks} blocks, expected at most a quarter of the drive's, {most}; use more blocks"),
        );
    }
    if config.gc.invalidate == InvalidateOrder::BeforeGc {
        refuse(
            "gc.invalidate",
            "found \"before-gc\", expected \"after-gc\" with recovery.mount-by: what a write replaces would be erased before the \
             new page is on flash",
        );
    }
    if config.slc.cache != SlcCacheKind::None {
        refuse("slc.cache", "found a cache, expected \"none\" with recovery.mount-by: blocks in SLC mode can't be mounted yet");
    }
    if config.timing.model == TimingModel::Parallel {
        refuse(
            "timing.model",
            "found \"parallel\", expected \"none\" or \"serial\" with recovery.mount-by: cuts while dies work side by side are not \
             modelled yet",
        );
    }
    problems
}

impl Power {
    /// Power that is on, with what was formatted when the translation layer was built.
    pub fn new(is_protected: bool, flash: &mut Flash) -> Box<Self> {
        let mut medium = Medium::new(flash.geometry());
        flash.take_changes().into_iter().for_each(|change| medium.apply(change));
        Box::new(Self { medium, fails_after: None, is_protected, is_off: false, lost: Vec::new(), operations: 0 })
    }

    /// Takes changes in the order in which they are done.
    fn take(&mut self, changes: Vec<Change>) {
        for change in changes {
            let is_operation = !matches!(change.what, Changed::Retire(_));
            if self.is_off {
                self.lost.push(change);
            } else if is_operation && self.fails_after == Some(0) && !self.is_protected {
                self.medium.tear(&change);
                (self.is_off, self.fails_after) = (true, None);
            } else {
                if is_operation {
                    self.operations += 1;
                    self.fails_after = self.fails_after.map(|left| left.saturating_sub(1));
                }
                self.medium.apply(change);
            }
        }
    }
}

impl Ssd {
    /// What requests get while the power is off.
    pub(crate) fn power_error(&self) -> Option<IoError> {
        let is_off = self.power.as_ref().is_some_and(|power| power.is_off);
        is_off.then(|| IoError::Device("the power is off; mount the drive first".to_owned()))
    }

    /// The changes of a request are done, if power lasts.
    #[cold]
    pub(crate) fn settle_changes(&mut self) {
        let changes = self.flash.take_changes();
        if let Some(power) = &mut self.power {
            power.take(changes);
            if power.is_protected && power.fails_after == Some(0) && !power.is_off {
                power.fails_after = None;
                self.save_ram();
                let saved = self.flash.take_changes();
                if let Some(power) = &mut self.power {
                    power.take(saved);
                    power.is_off = true;
                }
            }
        }
    }

    /// As [`Ssd::settle_changes`], if changes are kept.
    #[inline(always)]
    pub(crate) fn settle_changes_if_kept(&mut self) {
        if self.power.is_some() {
            self.settle_changes();
        }
    }

    /// Programs and erases that were done since the drive was built, if power can be cut.
    #[must_use]
    pub fn operations_done(&self) -> Option<u64> {
        self.power.as_ref().map(|power| power.operations)
    }

    /// Lets power fail in the middle of a program or an erase, after `operations` more of them. The request that it belongs to fails,
    /// and so do all later ones until the drive is mounted. A drive with protected RAM finishes the request and saves its RAM first. Nothing happens if power can't be cut (`recovery.mount-by`).
    pub fn cut_after(&mut self, operations: u64) {
        if let Some(power) = &mut self.power {
            power.fails_after = Some(operations);
        }
    }

    /// Whether the power is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.power.as_ref().is_none_or(|power| !power.is_off)
    }

    /// Cuts the power now: what has been acknowledged and not flushed may be lost, and requests in flight fail. RAM that is protected
    /// (`ram.power-protected`) goes to flash on the energy of its capacitors, which takes no time here.
    ///
    /// # Errors
    /// [`MountError::NotKept`] if the drive could not be mounted again.
    pub fn cut(&mut self) -> Result<(), MountError> {
        if self.power.is_none() {
            return Err(MountError::NotKept);
        }
        if self.is_on() {
            self.save_ram();
            self.settle_changes();
            if let Some(power) = &mut self.power {
                (power.is_off, power.fails_after) = (true, None);
            }
        }
        Ok(())
    }

    /// Writes protected RAM to flash.
    fn save_ram(&mut self) {
        if let Some(ram) = self.ram.as_mut().filter(|ram| ram.is_power_protected())
            && ram.save(&mut self.scheme, &mut self.flash).is_ok()
        {
            self.flash.flush_journal();
        }
    }

    /// Mounts the drive: reads what the chips hold, finishes or undoes what was under way, and takes requests again. A drive whose
    /// power is on loses it first.
    ///
    /// # Errors
    /// [`MountError`]; the drive then stays off.
    pub fn mount(&mut self) -> Result<Mounted, MountError> {
        self.cut()?;
        let Some(mut power) = self.power.take() else { return Err(MountError::NotKept) };
        let mut lost = std::mem::take(&mut power.lost);
        lost.extend(self.flash.take_changes());
        self.flash.lose_power(&power.medium, &lost);
        self.forget_requests();
        power.is_off = false;
        self.power = Some(power);
        let before = self.flash.counters().totals();
        let mounted = self.build_again();
        self.settle_changes();
        let pages_torn = match mounted {
            Ok(torn) => torn,
            Err(error) => {
                self.cut()?;
                return Err(error);
            }
        };
        if !self.is_on() {
            return Ok(Mounted::default()); // it failed again
        }
        let after = self.flash.counters().totals();
        let did = |kind: OpKind| after[kind as usize] - before[kind as usize];
        let duration = self.pass_mount([before, after]);
        self.flash.clear_log();
        Ok(Mounted {
            duration,
            spare_areas_read: did(OpKind::OobRead),
            pages_read: did(OpKind::Read),
            pages_programmed: did(OpKind::Program),
            blocks_erased: did(OpKind::Erase),
            pages_mapped: (0..self.logical_pages()).filter(|lpn| self.is_mapped(*lpn)).count() as u64,
            pages_torn,
        })
    }

    /// Builds the translation layer and the RAM anew; returns the pages that can't be read.
    fn build_again(&mut self) -> Result<u64, MountError> {
        let config = self.config().clone();
        let policies = Policies::default();
        let context = Self::scheme_context(&config, self.seed, &policies);
        let (mut scheme, scan) = config.ftl.scheme.mount(&context, &mut self.flash)?;
        self.ram = Self::build_ram(&config, self.seed, &policies, &mut scheme, &mut self.flash)
            .expect("the same settings were accepted before");
        self.scheme = scheme;
        self.restart_cleaning();
        Ok(scan.torn_pages)
    }

    /// Lets the time of a mount pass.
    fn pass_mount(&mut self, totals: [[u64; OP_KINDS]; 2]) -> Nanos {
        let start = self.now();
        let end = self.serve_untagged(start.0, totals);
        Nanos(end - start.0)
    }

    fn is_mapped(&self, lpn: u32) -> bool {
        use flashwright_ftl::Ftl as _;
        self.scheme().lookup(flashwright_nand::Lpn(lpn), self.flash()).is_some()
    }
}
