//! A device that exists, behind the host's schedulers, measured while requests come from outside.
//!
//! ```text
//!   whoever has it ─► Stack: the schedulers of a simulation ─► device
//!                     data follow by tag
//! ```
//!
//! Time is the machine's, so nobody may sleep in here: [`Proxied::poll`] does what is due and returns at once, and
//! [`Proxied::next_event`] says when a scheduler wants to be asked again.

use crate::latency::Latency;
use crate::measure::Series;
use crate::player::Pace;
use crate::replay::ReplaySettings;
use crate::report::{Ended, ProxiedFigures, ReplayReport, Replayed};
use crate::simulation::cpu_seconds;
use flashwright_block::{
    BlockDevice, Bytes, Completion, DeviceInfo, HoldsData, IoError, Nanos, Request, RequestKind, Seed, Tag,
};
use flashwright_host::schedulers::SchedulerName;
use flashwright_host::{BlockLayerSettings, Chain, Finding, Splitting, Stack, StackError, StackSettings};
use serde_json::Value;

/// A device behind the host's schedulers.
///
/// Without a scheduler it passes requests on as they come. Only those that overlap an earlier one wait for it, so that the
/// order of what is written to a sector is that of arrival.
#[derive(Debug)]
pub struct Proxied<D> {
    stack: Stack<D>,
    settings: ReplaySettings,
    /// Whether somebody asked for schedulers, rather than for what keeps the order.
    is_scheduled: bool,
    measured: Series,
    failed: u64,
    started_cpu_s: f64,
}

impl<D: BlockDevice> Proxied<D> {
    /// Puts schedulers before a device, described by `config` in reports, an object with a `name`.
    ///
    /// # Errors
    /// Every problem of the settings, also sizes of the profile at which requests can't be cut for this device.
    pub fn new(device: D, host: &StackSettings, config: Value, writes: bool) -> Result<Self, Vec<StackError>> {
        let problems = misfits(host, device.info().sector);
        if !problems.is_empty() {
            return Err(problems);
        }
        let is_scheduled = !host.scheduler.0.is_empty();
        let keeps_order = StackSettings {
            scheduler: Chain(vec![SchedulerName::Noop]),
            block_layer: BlockLayerSettings { merge: false, plug_requests: 0, ..host.block_layer.clone() },
            ..StackSettings::default()
        };
        let stack = Stack::new(if is_scheduled { host } else { &keeps_order }, device)?;
        let measured = Series::new(stack.now(), true);
        let settings = ReplaySettings {
            workload: "requests of clients".to_owned(),
            config,
            host: host.clone(),
            seed: Seed(0),
            pace: Pace::Interactive,
            requests: None,
            time_limit: None,
            writes,
            real_time: true,
            timed: true,
        };
        Ok(Self { stack, settings, is_scheduled, measured, failed: 0, started_cpu_s: cpu_seconds() })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &D {
        self.stack.device()
    }

    /// All requests that came have been submitted, and whoever sent them waits: a plug ends.
    pub fn host_has_no_more(&mut self) {
        self.stack.host_has_no_more();
    }

    /// When to call [`Proxied::poll`] again although nothing has come from outside or from the device; the largest number
    /// for never.
    #[must_use]
    pub fn next_event(&self) -> Nanos {
        self.stack.next_event()
    }

    /// Does what is due, without sleeping. Returns whether a request has completed.
    ///
    /// # Errors
    /// As [`BlockDevice::wait`].
    pub fn poll(&mut self, completion: &mut Completion) -> Result<bool, IoError> {
        loop {
            let now = self.stack.now();
            if self.stack.wait(now, completion)? {
                match completion.result {
                    Ok(()) => self.measured.completed(completion),
                    Err(_) => self.failed += 1, // its times are not service times
                }
                return Ok(true);
            }
            if self.stack.next_event() > now {
                return Ok(false);
            }
        }
    }

    /// The figures of this moment.
    #[must_use]
    pub fn figures(&self) -> ProxiedFigures {
        let layers = if self.is_scheduled { self.stack.figures() } else { Vec::new() };
        ProxiedFigures::new(self.stack.now(), &self.measured.tally, self.failed, layers)
    }

    /// The result so far, in the form of a replay's.
    #[must_use]
    pub fn report(&self) -> ReplayReport {
        Replayed {
            settings: &self.settings,
            measured: &self.measured,
            device: DeviceInfo { queue_depth: self.device().info().queue_depth, ..self.stack.info() },
            layers: if self.is_scheduled { self.stack.figures() } else { Vec::new() },
            lateness: &Latency::default(),
            left_out: [0; RequestKind::COUNT],
            ended: Ended::Complete,
            note: None,
            cpu_s: cpu_seconds() - self.started_cpu_s,
        }
        .report()
    }
}

/// Sizes by which the schedulers would cut requests off the device's blocks.
fn misfits(host: &StackSettings, block: Bytes) -> Vec<StackError> {
    let profile = &host.profile;
    let (page, erased) = (("clustered-page", profile.clustered_page), ("clustered-block", profile.clustered_block));
    let buffers = [("read-buffer", profile.read_buffer), ("write-buffer", profile.write_buffer)];
    let mut problems: Vec<StackError> = Vec::new();
    for name in &host.scheduler.0 {
        let cuts_at = match name.splitting(&host.schedulers) {
            Splitting::None => Vec::new(),
            Splitting::Size(_) => buffers.to_vec(),
            Splitting::AlignedSize(flashwright_host::Unit::Page, _) => vec![page],
            Splitting::AlignedSize(flashwright_host::Unit::Block, _) => vec![erased],
        };
        for (key, found) in cuts_at {
            if let Finding::Size(size) = found
                && !size.0.is_multiple_of(block.0)
            {
                let key = format!("profile.{key}");
                let what = format!(
                    "found \"{size}\", expected a multiple of the device's blocks of {block}, since requests are cut by it"
                );
                problems.push(StackError { key, what });
            }
        }
    }
    problems
}

impl<D: BlockDevice> BlockDevice for Proxied<D> {
    fn info(&self) -> DeviceInfo {
        self.stack.info()
    }
    fn now(&self) -> Nanos {
        self.stack.now()
    }
    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        self.stack.submit(request)
    }
    /// Time goes on by itself, so this returns at once, whatever `until` is.
    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        let _ = until;
        self.poll(completion)
    }
    fn holds_data(&mut self) -> Option<&mut dyn HoldsData> {
        if self.stack.holds_data().is_some() { Some(self) } else { None }
    }
}

impl<D: BlockDevice> HoldsData for Proxied<D> {
    fn submit_with(&mut self, request: Request, data: &[u8]) -> Result<Tag, IoError> {
        self.stack.submit_with(request, data)
    }
    fn take_data(&mut self, tag: Tag, data: &mut [u8]) -> bool {
        self.stack.take_data(tag, data)
    }
}
