//! The simulated machine that a workload is played on: the host's schedulers, the drive's controller if it has one, and
//! the flash with its translation layer.

use crate::player::{PlayError, Player, Step};
use flashwright_block::{
    Ahead, BlockDevice, Completion, DeviceInfo, IoError, Nanos, Request, RequestKind, RequestSource, SECTOR_BYTES,
    Seed, Tag,
};
use flashwright_host::{LayerFigures, Stack, StackError};
use flashwright_ssd::{ConfigError, Controller, ControllerFigures, Mounted, SettingError, Ssd, SsdError};
use serde::{Deserialize, Serialize};

/// A drive with the layers before it. Without such layers the player talks to the flash directly, at no extra cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // one a run
pub(crate) enum Machine {
    Plain(Ssd),
    Layered(Box<Layered>),
}

/// A drive behind layers that merge, cut or buffer requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Layered {
    stack: Stack<Controller<Ssd>>,
    /// What the host has written since the drive was new; none before the workload begins, because preconditioning
    /// writes to the flash directly.
    written: Option<Written>,
}

/// What the host has written, whichever layer absorbed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Written {
    /// Pages that writes touched: a page counts once for each request.
    pub pages: u64,
    /// Bytes of the writes that succeeded.
    pub bytes: u64,
}

impl Machine {
    /// Every validation error of the host's settings that depends on the drive's size.
    pub fn new(ssd: Ssd, seed: Seed) -> Result<Self, SsdError> {
        let config = ssd.config();
        if config.host.stack.scheduler.0.is_empty() && config.controller.is_off() {
            return Ok(Self::Plain(ssd));
        }
        let (name, host) = (config.name.clone(), config.host.stack.clone());
        let stack = Stack::new(&host, Controller::of_drive(ssd, seed)).map_err(|problems| {
            let problems =
                problems.into_iter().map(|StackError { key, what }| SettingError { key: format!("host.{key}"), what });
            ConfigError { source_name: name, problems: problems.collect() }
        })?;
        Ok(Self::Layered(Box::new(Layered { stack, written: None })))
    }

    /// Whether pages and tables depend only on the order of the requests: what lies before the flash delays them, but merges,
    /// cuts and keeps none, and cleaning waits for no time.
    pub fn is_timeless(&self) -> bool {
        let config = self.ssd().config();
        let only_delays = match self {
            Self::Plain(_) => true,
            Self::Layered(layered) => {
                matches!(layered.stack, Stack::Bare(_)) && config.controller.only_delays(config.geometry.page_size)
            }
        };
        only_delays && !self.ssd().schedule_rules().needs_time
    }

    /// Whether a drive settles at the pace of the run, because what lies before the flash merges by time; else at a depth of
    /// one.
    pub fn settles_at_pace(&self) -> bool {
        matches!(self, Self::Layered(_)) && !self.is_timeless()
    }

    #[inline(always)]
    pub fn ssd(&self) -> &Ssd {
        match self {
            Self::Plain(ssd) => ssd,
            Self::Layered(layered) => layered.stack.device().device(),
        }
    }

    /// What the host has written since the drive was new.
    pub fn written(&self) -> Written {
        match self {
            Self::Layered(layered) => layered.written,
            Self::Plain(_) => None,
        }
        .unwrap_or_else(|| Written { pages: self.ssd().flash().host_writes(), bytes: self.ssd().bytes_written() })
    }

    /// Records that everything so far was written to the flash directly, and that the host's requests follow.
    pub fn workload_begins(&mut self) {
        let written = self.written();
        if let Self::Layered(layered) = self {
            layered.written = Some(written);
        }
    }

    /// Takes over what the host had written to a drive in the same state.
    pub fn take_written(&mut self, of_other: Written) {
        if let Self::Layered(layered) = self {
            layered.written = Some(of_other);
        }
    }

    pub fn ssd_mut(&mut self) -> &mut Ssd {
        match self {
            Self::Plain(ssd) => ssd,
            Self::Layered(layered) => layered.stack.device_mut().device_mut(),
        }
    }

    /// Cuts the power. See [`Ssd::cut`].
    ///
    /// # Errors
    /// One line if the drive could not be mounted again.
    pub fn cut(&mut self) -> Result<(), String> {
        match self {
            Self::Plain(ssd) => ssd.cut(),
            Self::Layered(layered) => layered.powered()?.cut(),
        }
        .map_err(|error| error.to_string())
    }

    /// Mounts the drive. See [`Ssd::mount`].
    ///
    /// # Errors
    /// One line if it can't be mounted.
    pub fn mount(&mut self) -> Result<Mounted, String> {
        match self {
            Self::Plain(ssd) => ssd.mount(),
            Self::Layered(layered) => layered.powered()?.mount(),
        }
        .map_err(|error| error.to_string())
    }

    /// Restarts the drive with other settings. See [`Ssd::restart_with`].
    ///
    /// # Errors
    /// One line if it can't be restarted.
    pub fn restart_with(&mut self, settings: &[String]) -> Result<Mounted, String> {
        match self {
            Self::Plain(ssd) => ssd.restart_with(settings),
            Self::Layered(layered) => layered.powered()?.restart_with(settings),
        }
        .map_err(|error| error.to_string())
    }

    pub fn now(&self) -> Nanos {
        match self {
            Self::Plain(ssd) => ssd.now(),
            Self::Layered(layered) => layered.stack.now(),
        }
    }

    /// Statistics of the layers before the drive, from the host down.
    pub fn layers(&self) -> Vec<LayerFigures> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Layered(layered) => layered.stack.figures(),
        }
    }

    /// Statistics of the drive's controller, if it has one.
    pub fn controller(&self) -> Option<ControllerFigures> {
        match self {
            Self::Layered(layered) if !layered.stack.device().config().is_off() => {
                Some(layered.stack.device().figures())
            }
            _ => None,
        }
    }

    /// Requests that the drive accepts at once; none if a scheduler decides how many to pass on.
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
                let Layered { stack, written } = &mut **layered;
                player.play(stack, source, until_submitted, finish, |completion, stack| {
                    let ssd = stack.device().device();
                    count_written(written, completion, ssd);
                    done(completion, ssd);
                })
            }
        }
    }

    /// As [`Machine::play`] at a depth of one without letting time pass; for a machine that [is timeless](Self::is_timeless).
    pub fn play_untimed(
        &mut self,
        player: &mut Player,
        source: &mut dyn RequestSource,
        until_submitted: u64,
        finish: bool,
    ) -> Result<Step, PlayError> {
        match self {
            Self::Plain(ssd) => {
                ssd.without_time(|ssd| player.play(&mut Untimed { ssd }, source, until_submitted, finish, |_, _| {}))
            }
            Self::Layered(layered) => {
                let Layered { stack, written } = &mut **layered;
                stack.device_mut().device_mut().without_time(|ssd| {
                    player.play(&mut Untimed { ssd }, source, until_submitted, finish, |completion, untimed| {
                        count_written(written, completion, untimed.ssd);
                    })
                })
            }
        }
    }

    /// The device, for requests that no player submits; each completion goes to [`Machine::completed`]. It keeps the bytes
    /// of requests if the drive was built to and no scheduler lies before it.
    pub fn device(&mut self) -> &mut dyn BlockDevice {
        match self {
            Self::Plain(ssd) => ssd,
            Self::Layered(layered) => match &mut layered.stack {
                Stack::Bare(controller) => controller,
                stack @ Stack::Filtered(_) => stack,
            },
        }
    }

    /// A request of [`Machine::device`] has completed.
    pub fn completed(&mut self, completion: &Completion) {
        if let Self::Layered(layered) = self {
            let Layered { stack, written } = &mut **layered;
            count_written(written, completion, stack.device().device());
        }
    }

    /// See [`Ssd::none_completes_before`]; none also if a scheduler before the drive may hold requests back.
    pub fn none_completes_before(&self) -> Option<Nanos> {
        match self {
            Self::Plain(ssd) => ssd.none_completes_before(),
            Self::Layered(layered) => match &layered.stack {
                Stack::Bare(controller) => controller.none_completes_before(),
                Stack::Filtered(_) => None,
            },
        }
    }

    /// Whether the controller's write buffer holds a sector of this stretch.
    pub fn buffers(&self, first_sector: u64, sectors: u64) -> bool {
        matches!(self, Self::Layered(layered) if layered.stack.device().buffers(first_sector, sectors))
    }
}

impl Layered {
    /// The drive, if nothing of its host holds requests.
    fn powered(&mut self) -> Result<&mut Controller<Ssd>, String> {
        match &mut self.stack {
            Stack::Bare(controller) => Ok(controller),
            Stack::Filtered(_) => {
                Err("host.scheduler: found one before the drive, expected \"none\" for a loss of power: \
                                       what becomes of the requests that it holds is not modelled"
                    .to_owned())
            }
        }
    }
}

/// A drive on which no time passes.
struct Untimed<'a> {
    ssd: &'a mut Ssd,
}

impl BlockDevice for Untimed<'_> {
    fn info(&self) -> DeviceInfo {
        self.ssd.info()
    }
    fn now(&self) -> Nanos {
        self.ssd.now()
    }
    fn submit(&mut self, _: Request) -> Result<Tag, IoError> {
        unreachable!("a closed loop of depth one executes its requests")
    }
    fn wait(&mut self, _: Nanos, _: &mut Completion) -> Result<bool, IoError> {
        Ok(false)
    }
    #[inline(always)]
    fn execute(&mut self, request: Request, completion: &mut Completion) -> Result<(), IoError> {
        self.ssd.absorb(request, completion)
    }
    #[inline(always)]
    fn expect(&self, requests: &[Request], ahead: Ahead) {
        self.ssd.expect(requests, ahead);
    }
}

/// Counts a write that the host sees completed.
#[inline(always)]
fn count_written(written: &mut Option<Written>, completion: &Completion, ssd: &Ssd) {
    if completion.request.kind == RequestKind::Write {
        let written = written.get_or_insert_default();
        written.pages += u64::from(ssd.pages_of(&completion.request).1);
        written.bytes +=
            if completion.result.is_ok() { u64::from(completion.request.sectors) * SECTOR_BYTES } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_ssd::DriveConfig;

    #[test]
    fn a_drive_behind_schedulers_keeps_its_power() {
        let settings = ["recovery.mount-by=scan", "host.scheduler=noop", "controller.queue-depth=2"];
        let config = DriveConfig::default().with_settings(&settings).unwrap();
        let mut machine = Machine::new(Ssd::new(&config, Seed(1), false).unwrap(), Seed(1)).unwrap();
        for refused in
            [machine.cut(), machine.mount().map(drop), machine.restart_with(&["gc.victim=fifo".to_owned()]).map(drop)]
        {
            let error = refused.unwrap_err();
            assert!(error.starts_with("host.scheduler: found one before the drive, expected \"none\""), "{error}");
        }
        assert!(machine.ssd().is_on());
    }
}
