//! What a workload is played on: the drive's flash with its translation layer, with a controller before it where the drive
//! has one, and the host's schedulers before that.

use crate::player::{PlayError, Player, Step};
use flashwright_block::{BlockDevice, Completion, Nanos, RequestKind, RequestSource, Seed};
use flashwright_host::{LayerFigures, Stack, StackError};
use flashwright_ssd::{ConfigError, Controller, ControllerFigures, SettingError, Ssd, SsdError};
use serde::{Deserialize, Serialize};

/// A drive with what lies before it. Where nothing does, the player meets the flash itself, and pays nothing.
#[derive(Debug, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // one a run
pub(crate) enum Machine {
    Plain(Ssd),
    Layered(Box<Layered>),
}

/// A drive behind what merges, cuts or buffers requests.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Layered {
    stack: Stack<Controller<Ssd>>,
    /// Pages that the host has asked to write since the drive was new; none before the workload begins, when all that it
    /// asks goes to the flash.
    pages_written: Option<u64>,
}

impl Machine {
    /// Every problem of the host's settings that only shows on a drive of this size.
    pub fn new(ssd: Ssd, seed: Seed) -> Result<Self, SsdError> {
        let config = ssd.config();
        if config.host.stack.scheduler.0.is_empty() && config.controller.is_off() {
            return Ok(Self::Plain(ssd));
        }
        let (name, host, controller) = (config.name.clone(), config.host.stack.clone(), config.controller.clone());
        let stack = Stack::new(&host, Controller::new(&controller, seed, ssd)).map_err(|problems| {
            let problems =
                problems.into_iter().map(|StackError { key, what }| SettingError { key: format!("host.{key}"), what });
            ConfigError { source_name: name, problems: problems.collect() }
        })?;
        Ok(Self::Layered(Box::new(Layered { stack, pages_written: None })))
    }

    /// Whether something lies before the flash that merges, cuts or buffers requests.
    pub fn is_layered(&self) -> bool {
        matches!(self, Self::Layered(_))
    }

    #[inline(always)]
    pub fn ssd(&self) -> &Ssd {
        match self {
            Self::Plain(ssd) => ssd,
            Self::Layered(layered) => layered.stack.device().device(),
        }
    }

    /// Pages that the host has asked to write since the drive was new, whatever took them.
    pub fn host_pages_written(&self) -> u64 {
        match self {
            Self::Layered(layered) => layered.pages_written,
            Self::Plain(_) => None,
        }
        .unwrap_or_else(|| self.ssd().flash().host_writes())
    }

    /// Says that all that was written so far went to the flash directly, and that requests of the host follow.
    pub fn workload_begins(&mut self) {
        let written = self.host_pages_written();
        if let Self::Layered(layered) = self {
            layered.pages_written = Some(written);
        }
    }

    pub fn ssd_mut(&mut self) -> &mut Ssd {
        match self {
            Self::Plain(ssd) => ssd,
            Self::Layered(layered) => layered.stack.device_mut().device_mut(),
        }
    }

    pub fn now(&self) -> Nanos {
        match self {
            Self::Plain(ssd) => ssd.now(),
            Self::Layered(layered) => layered.stack.now(),
        }
    }

    /// What the layers before the drive did, from the host down.
    pub fn layers(&self) -> Vec<LayerFigures> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Layered(layered) => layered.stack.figures(),
        }
    }

    /// What the drive's controller did, if it has one.
    pub fn controller(&self) -> Option<ControllerFigures> {
        match self {
            Self::Layered(layered) if !layered.stack.device().config().is_off() => {
                Some(layered.stack.device().figures())
            }
            _ => None,
        }
    }

    /// Requests that the drive takes at once; none where a scheduler holds back the others by rules of its own.
    pub fn queue_depth(&self) -> Option<u32> {
        match self {
            Self::Plain(ssd) => Some(ssd.info().queue_depth),
            Self::Layered(layered) if layered.stack.figures().is_empty() => {
                Some(layered.stack.device().info().queue_depth)
            }
            Self::Layered(_) => None,
        }
    }

    pub fn reset_figures(&mut self) {
        self.ssd_mut().reset_figures();
        if let Self::Layered(layered) = self {
            layered.stack.device_mut().reset_figures();
            layered.stack.reset_figures();
        }
    }

    /// See [`Player::play`]; `done` sees the drive.
    #[inline(always)]
    pub fn play<S: RequestSource + ?Sized>(
        &mut self,
        player: &mut Player,
        source: &mut S,
        until_submitted: u64,
        finish: bool,
        mut done: impl FnMut(&Completion, &Ssd),
    ) -> Result<Step, PlayError> {
        match self {
            Self::Plain(ssd) => player.play(ssd, source, until_submitted, finish, done),
            Self::Layered(layered) => {
                let Layered { stack, pages_written } = &mut **layered;
                player.play(stack, source, until_submitted, finish, |completion, stack| {
                    let ssd = stack.device().device();
                    if completion.request.kind == RequestKind::Write {
                        *pages_written.get_or_insert_default() += u64::from(ssd.pages_of(&completion.request).1);
                    }
                    done(completion, ssd);
                })
            }
        }
    }
}
