//! A preconditioned drive for several runs that begin alike.
//!
//! Runs often differ only in what comes after preconditioning: the workload, its depth, the scheduler. What one of them hands
//! on, the others take over instead of preconditioning a drive of their own. Their results stay the same, bit for bit.

use super::{RunError, Simulation};
use crate::conditioning::Conditioning;
use crate::machine::Written;
use crate::player::Player;
use crate::precondition::{Precondition, Preconditioning};
use crate::settle::History;
use flashwright_block::{RequestSource, Seed};
use flashwright_ssd::{Config, ControllerConfig, HostConfig, Ssd};

/// Pages of the largest drive that is handed on: half a gigabyte of tables, which memory then holds twice.
const PAGES_MAX: u32 = 1 << 26;

/// A drive in the state that preconditioning left it in, and what it depends on.
#[derive(Clone, Debug)]
pub struct Preconditioned {
    beginning: Beginning,
    ssd: Ssd,
    written: Written,
    preconditioning: Preconditioning,
    /// Where the workload itself preconditioned the drive.
    settling: Option<(Conditioning, History, Player)>,
}

/// All that the state of a preconditioned drive depends on, beside the version of the program.
#[derive(Clone, Debug, PartialEq)]
struct Beginning {
    /// The configuration without what no time passes in.
    config: Config,
    precondition: Precondition,
    seed: Seed,
    verify: bool,
    /// What is played, if the workload preconditions the drive.
    source: Option<String>,
}

/// A run that hands on its preconditioned drive: under which name of its workload, and the drive once it is there.
#[derive(Clone, Debug, Default)]
pub(super) struct HandingOn {
    source: String,
    kept: Option<Box<Preconditioned>>,
}

impl Simulation {
    /// Hands on the drive once it is preconditioned, to [`Simulation::take_preconditioned`]. `source` says all that the
    /// requests depend on beside drive and seed.
    pub fn hand_on(&mut self, source: &str) {
        self.handing_on = Some(HandingOn { source: source.to_owned(), kept: None });
    }

    /// The preconditioned drive, once after it has come into being.
    pub fn take_preconditioned(&mut self) -> Option<Box<Preconditioned>> {
        self.handing_on.as_mut()?.kept.take()
    }

    /// Takes over a drive that another run preconditioned, if this one would bring its own into the same state; the source,
    /// which nothing has been taken from, is forwarded. Returns whether it did. `source_name` is as in [`Simulation::hand_on`].
    ///
    /// # Errors
    /// [`RunError::Source`] if the source can't be forwarded.
    pub fn take_over(
        &mut self,
        shared: &Preconditioned,
        source: &mut dyn RequestSource,
        source_name: &str,
    ) -> Result<bool, RunError> {
        if self.preconditioning.progress().0 > 0
            || self.small.is_some()
            || self.beginning(source_name).as_ref() != Some(&shared.beginning)
        {
            return Ok(false);
        }
        self.machine.ssd_mut().take_state(&shared.ssd);
        self.preconditioning = shared.preconditioning.clone();
        self.workload_begins();
        self.machine.take_written(shared.written);
        if let Some((conditioning, history, player)) = shared.settling.clone() {
            (self.conditioning, self.history, self.player) = (Some(conditioning), Some(history), Some(player));
            self.settling_over();
            self.rewind(source)?;
        }
        Ok(true)
    }

    /// Keeps the preconditioned drive, if it is to be handed on.
    pub(super) fn keep_preconditioned(&mut self) {
        let Some(handing_on) = &self.handing_on else { return };
        let Some(beginning) = self.beginning(&handing_on.source) else { return };
        let settled = (self.conditioning.clone(), self.history.clone(), self.player.clone());
        let settling = match settled {
            (Some(conditioning), Some(history), Some(player)) => Some((conditioning, history, player)),
            _ => None,
        };
        let (ssd, written) = (self.ssd().clone(), self.machine.written());
        let preconditioning = self.preconditioning.clone();
        let kept = Some(Box::new(Preconditioned { beginning, ssd, written, preconditioning, settling }));
        self.handing_on.as_mut().expect("it was just there").kept = kept;
    }

    /// What the preconditioned state depends on; none where time passes meanwhile, or where more than the drive's own state
    /// hangs on it, such as what a loss of power would find.
    fn beginning(&self, source: &str) -> Option<Beginning> {
        let ssd = self.ssd();
        let mut config = ssd.config().clone().into_written();
        let by_workload = self.conditioning.is_some();
        let takes_time = by_workload && (self.settling_takes_time() || config.gc.schedule.needs_time());
        let is_large = ssd.flash().geometry().pages() > PAGES_MAX;
        let changes_nothing = self.settings.precondition == Precondition::Empty;
        if is_large || changes_nothing || takes_time || config.recovery.can_mount() || ssd.has_foreign_policies() {
            return None;
        }
        config.host = match by_workload {
            true => HostConfig { queue_depth: Default::default(), ..config.host },
            false => HostConfig::default(),
        };
        config.controller = ControllerConfig::default();
        config.name.clear();
        Some(Beginning {
            config,
            precondition: self.settings.precondition,
            seed: self.settings.seed,
            verify: self.settings.verify,
            source: by_workload.then(|| source.to_owned()),
        })
    }
}
