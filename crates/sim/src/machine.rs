//! What a workload is played on: the drive's flash with its translation layer, with a controller before it where the drive
//! has one, and the host's schedulers before that.

use crate::player::{PlayError, Player, Step};
use flashwright_block::{BlockDevice, Completion, Nanos, RequestSource};
use flashwright_host::{LayerFigures, Stack, StackError};
use flashwright_ssd::{ConfigError, Controller, ControllerFigures, SettingError, Ssd, SsdError};
use serde::{Deserialize, Serialize};

/// A drive with what lies before it. Where nothing does, the player meets the flash itself, and pays nothing.
#[derive(Debug, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // one a run
pub(crate) enum Machine {
    Plain(Ssd),
    Layered(Box<Stack<Controller<Ssd>>>),
}

impl Machine {
    /// Every problem of the host's settings that only shows on a drive of this size.
    pub fn new(ssd: Ssd) -> Result<Self, SsdError> {
        let config = ssd.config();
        if config.host.stack.scheduler.0.is_empty() && config.controller.is_off() {
            return Ok(Self::Plain(ssd));
        }
        let (name, host, controller) = (config.name.clone(), config.host.stack.clone(), config.controller.clone());
        let stack = Stack::new(&host, Controller::new(&controller, ssd)).map_err(|problems| {
            let problems =
                problems.into_iter().map(|StackError { key, what }| SettingError { key: format!("host.{key}"), what });
            ConfigError { source_name: name, problems: problems.collect() }
        })?;
        Ok(Self::Layered(Box::new(stack)))
    }

    /// Whether something lies before the flash that merges, cuts or buffers requests.
    pub fn is_layered(&self) -> bool {
        matches!(self, Self::Layered(_))
    }

    #[inline(always)]
    pub fn ssd(&self) -> &Ssd {
        match self {
            Self::Plain(ssd) => ssd,
            Self::Layered(stack) => stack.device().device(),
        }
    }

    pub fn ssd_mut(&mut self) -> &mut Ssd {
        match self {
            Self::Plain(ssd) => ssd,
            Self::Layered(stack) => stack.device_mut().device_mut(),
        }
    }

    pub fn now(&self) -> Nanos {
        match self {
            Self::Plain(ssd) => ssd.now(),
            Self::Layered(stack) => stack.now(),
        }
    }

    /// What the layers before the drive did, from the host down.
    pub fn layers(&self) -> Vec<LayerFigures> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Layered(stack) => stack.figures(),
        }
    }

    /// What the drive's controller did, if it has one.
    pub fn controller(&self) -> Option<ControllerFigures> {
        match self {
            Self::Layered(stack) if !stack.device().config().is_off() => Some(stack.device().figures()),
            _ => None,
        }
    }

    /// Requests that the drive takes at once; none where a scheduler holds back the others by rules of its own.
    pub fn queue_depth(&self) -> Option<u32> {
        match self {
            Self::Plain(ssd) => Some(ssd.info().queue_depth),
            Self::Layered(stack) if stack.figures().is_empty() => Some(stack.device().info().queue_depth),
            Self::Layered(_) => None,
        }
    }

    pub fn reset_figures(&mut self) {
        self.ssd_mut().reset_figures();
        if let Self::Layered(stack) = self {
            stack.device_mut().reset_figures();
            stack.reset_figures();
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
            Self::Layered(stack) => player.play(&mut **stack, source, until_submitted, finish, |completion, stack| {
                done(completion, stack.device().device());
            }),
        }
    }
}
