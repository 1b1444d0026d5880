//! Restarting a drive with other settings: it forgets its RAM as after a loss of power, and finds its pages again.

use super::protects;
use crate::ssd::Ssd;
use crate::{Mounted, SsdError};
use flashwright_block::{BlockDevice as _, Completion, Request, RequestKind};
use flashwright_config::DriveConfig;
use flashwright_ftl::durable::MountError;

/// Why a drive goes on with the settings that it had.
#[derive(Debug, thiserror::Error)]
pub enum RestartError {
    /// The settings can't be used.
    #[error(transparent)]
    Settings(#[from] SsdError),
    /// A restart can't change such a setting.
    #[error("{0}: expected a setting of gc or ram: a restart changes no others")]
    Other(String),
    /// The drive can't be mounted, or could not write what its RAM held.
    #[error("the drive can't be restarted: {0}")]
    Mount(String),
}

impl From<MountError> for RestartError {
    fn from(error: MountError) -> Self {
        Self::Mount(error.to_string())
    }
}

impl Ssd {
    /// Restarts the drive with other settings of `gc` and `ram`: flushes it, cuts its power and mounts it. Nothing is lost.
    /// Requests in flight would fail, so there should be none.
    ///
    /// # Errors
    /// [`RestartError`]; the drive then goes on as before.
    pub fn restart_with(&mut self, settings: &[String]) -> Result<Mounted, RestartError> {
        let after = self.settings_after(settings)?;
        self.restart_as(after)
    }

    /// The settings of a restart with others, if there can be one.
    pub(crate) fn settings_after(&self, settings: &[String]) -> Result<DriveConfig, RestartError> {
        if self.power.is_none() {
            return Err(MountError::NotKept.into());
        }
        let before = self.config();
        let after = before.with_settings(settings).map_err(SsdError::Config)?;
        let (mut others, wanted) = ((**before).clone(), &*after);
        (others.gc, others.ram) = (wanted.gc.clone(), wanted.ram.clone());
        if others != *wanted {
            return Err(RestartError::Other(settings.join(", ")));
        }
        // What a new drive would refuse, this one refuses too.
        Self::new(&after, self.seed, false)?;
        Ok(after)
    }

    /// Flushes the drive, cuts its power and mounts it with settings that were found to be usable.
    pub(crate) fn restart_as(&mut self, after: DriveConfig) -> Result<Mounted, RestartError> {
        let before = self.config().clone();
        if !self.is_on() {
            self.mount()?;
        }
        let flush = Request { kind: RequestKind::Flush, arrival: self.now(), ..Request::default() };
        let mut completion = Completion::default();
        let flushed = self.execute(flush, &mut completion).and_then(|()| completion.result.map_err(|error| *error));
        flushed.map_err(|error| RestartError::Mount(error.to_string()))?;
        self.cut()?;
        self.take_settings(after);
        let mounted = self.mount();
        if mounted.is_err() {
            self.take_settings(before);
            self.mount()?;
        }
        Ok(mounted?)
    }

    fn take_settings(&mut self, config: DriveConfig) {
        if let Some(power) = &mut self.power {
            power.is_protected = protects(&config);
        }
        self.replace_config(config);
    }
}
