//! What a workload is played on: the drive, or the host's schedulers before it.

use crate::player::{PlayError, Player, Step};
use flashwright_block::{BlockDevice, Completion, Nanos, RequestSource};
use flashwright_host::{LayerFigures, Stack};
use flashwright_ssd::{Config, Ssd};
use serde::{Deserialize, Serialize};

/// A drive with what lies before it. Without a scheduler the player meets the drive itself, and pays nothing.
#[derive(Debug, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // one a run
pub(crate) enum Machine {
    Plain(Ssd),
    Layered(Box<Stack<Ssd>>),
}

impl Machine {
    pub fn new(config: &Config, ssd: Ssd) -> Self {
        if config.host.stack.scheduler.0.is_empty() {
            return Self::Plain(ssd);
        }
        let stack = Stack::new(&config.host.stack, ssd).expect("a configuration that was read is sound");
        Self::Layered(Box::new(stack))
    }

    #[inline(always)]
    pub fn ssd(&self) -> &Ssd {
        match self {
            Self::Plain(ssd) => ssd,
            Self::Layered(stack) => stack.device(),
        }
    }

    pub fn ssd_mut(&mut self) -> &mut Ssd {
        match self {
            Self::Plain(ssd) => ssd,
            Self::Layered(stack) => stack.device_mut(),
        }
    }

    /// Requests that the host has submitted, which is the tag of the next.
    pub fn submitted(&self) -> u64 {
        match self {
            Self::Plain(ssd) => ssd.submitted(),
            Self::Layered(stack) => stack.submitted().unwrap_or_else(|| stack.device().submitted()),
        }
    }

    pub fn now(&self) -> Nanos {
        self.ssd().now()
    }

    /// What the layers before the drive did, from the host down.
    pub fn layers(&self) -> Vec<LayerFigures> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Layered(stack) => stack.figures(),
        }
    }

    pub fn reset_figures(&mut self) {
        self.ssd_mut().reset_figures();
        if let Self::Layered(stack) = self {
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
                done(completion, stack.device());
            }),
        }
    }
}
