//! Schedulers one above the other, before a device.

use crate::figures::{LayerFigures, Yardstick};
use crate::filter::{Filter, Rules};
use crate::schedulers::{Merges, SchedulerContext, SchedulerName, Splitting};
use crate::settings::StackSettings;
use flashwright_block::{
    Ahead, BlockDevice, Completion, DeviceInfo, HoldsData, IoError, Nanos, Request, SECTOR_BYTES, Tag,
};
use serde::{Deserialize, Serialize};

/// A validation error of the settings of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackError {
    /// The key below `[host]`, such as `deadline.fifo-batch`.
    pub key: String,
    /// What was found, what is expected, and what to do.
    pub what: String,
}

/// A device with no, one, or several schedulers before it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // one a run
pub enum Stack<D> {
    /// The device itself.
    Bare(D),
    /// A scheduler before the rest.
    Filtered(Box<Filter<Stack<D>>>),
}

/// Longest request of a filter that cuts itself: the largest length that a request can have.
const LIFTED_SECTORS: u64 = 1 << 30;

impl StackSettings {
    /// Settings that contradict each other or are missing for a device of this size (the largest number if it is not
    /// yet known); empty if all is well.
    #[must_use]
    pub fn problems(&self, device_sectors: u64) -> Vec<StackError> {
        let mut problems = Vec::new();
        let mut add = |key: &str, what: String| problems.push(StackError { key: key.to_owned(), what });
        let layer = &self.block_layer;
        if layer.plug_requests > layer.queue_requests && layer.queue_requests > 0 {
            let (found, room) = (layer.plug_requests, layer.queue_requests);
            add("block-layer.plug-requests", format!("found {found}, but the queue holds {room} requests only"));
        }
        for (at, name) in self.scheduler.0.iter().enumerate() {
            let context = self.context(device_sectors, 1, at);
            for (key, what) in name.problems(&self.schedulers, &context) {
                let table = name.listed().name;
                let key = if key.starts_with("profile.") { key } else { format!("{table}.{key}") };
                if !problems.iter().any(|problem| problem.key == key && problem.what == what) {
                    problems.push(StackError { key, what });
                }
            }
        }
        problems
    }

    fn context(&self, device_sectors: u64, depth: u32, at: usize) -> SchedulerContext {
        // The nearest filter above that cuts sets the rule.
        let above = self.scheduler.0[..at].iter().rev().map(|name| name.splitting(&self.schedulers));
        SchedulerContext {
            device_sectors,
            depth,
            profile: self.profile,
            max_sectors: self.block_layer.max_request.0 / SECTOR_BYTES,
            splitting: above.into_iter().find(|splitting| *splitting != Splitting::None).unwrap_or_default(),
        }
    }

    fn rules(&self, name: SchedulerName, context: &SchedulerContext, uppermost: bool, lowermost: bool) -> Rules {
        let layer = &self.block_layer;
        Rules {
            merges: if layer.merge { name.merges(&self.schedulers) } else { Merges::None },
            max_sectors: name.max_sectors(&self.schedulers, context).min(LIFTED_SECTORS),
            queue_requests: layer.queue_requests,
            plug_requests: if uppermost && name.plugs() { layer.plug_requests } else { 0 },
            plug_delay: layer.plug_delay,
            depth: context.depth,
            ordered_below: !lowermost,
        }
    }
}

impl<D: BlockDevice> Stack<D> {
    /// Puts the schedulers of the settings before a device.
    ///
    /// # Errors
    /// Every problem of the settings.
    pub fn new(settings: &StackSettings, device: D) -> Result<Self, Vec<StackError>> {
        let device_sectors = device.info().capacity.0 / SECTOR_BYTES;
        let problems = settings.problems(device_sectors);
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut stack = Self::Bare(device);
        for (at, name) in settings.scheduler.0.iter().enumerate().rev() {
            let depth = stack.info().queue_depth.max(1);
            let context = settings.context(device_sectors, depth, at);
            let scheduler = name.build(&settings.schedulers, context);
            let lowermost = matches!(stack, Self::Bare(_));
            let rules = settings.rules(*name, &context, at == 0, lowermost);
            let yardstick = Yardstick::new(&settings.profile);
            stack = Self::Filtered(Box::new(Filter::new(stack, scheduler, name.listed().name, rules, yardstick)));
        }
        Ok(stack)
    }

    /// The device under all schedulers.
    #[must_use]
    pub fn device(&self) -> &D {
        match self {
            Self::Bare(device) => device,
            Self::Filtered(filter) => filter.device().device(),
        }
    }

    /// The device under all schedulers, for preconditioning.
    pub fn device_mut(&mut self) -> &mut D {
        match self {
            Self::Bare(device) => device,
            Self::Filtered(filter) => filter.device_mut().device_mut(),
        }
    }

    /// The counts of each filter, from the host down.
    #[must_use]
    pub fn figures(&self) -> Vec<LayerFigures> {
        let (mut all, mut at) = (Vec::new(), self);
        while let Self::Filtered(filter) = at {
            all.push(filter.figures());
            at = filter.device();
        }
        all
    }

    /// Resets the counts of all filters to zero, for the end of a warm-up.
    pub fn reset_figures(&mut self) {
        let mut at = self;
        while let Self::Filtered(filter) = at {
            filter.reset_figures();
            at = filter.device_mut();
        }
    }
}

impl<D: BlockDevice> Stack<D> {
    /// The host has submitted all that it has and waits: a plug ends. A host that submits to virtual time says the same by
    /// waiting without a limit.
    pub fn host_has_no_more(&mut self) {
        if let Self::Filtered(filter) = self {
            filter.host_has_no_more(); // only the topmost filter plugs
        }
    }

    /// When a filter wants to act by itself, whatever the device does; the largest number if none wants to. Whoever can't
    /// sleep in [`BlockDevice::wait`] calls that again then.
    #[must_use]
    pub fn next_event(&self) -> Nanos {
        match self {
            Self::Bare(_) => Nanos(u64::MAX),
            Self::Filtered(filter) => filter.next_event().min(filter.device().next_event()),
        }
    }
}

/// Data pass through all filters.
impl<D: BlockDevice> HoldsData for Stack<D> {
    fn submit_with(&mut self, request: Request, data: &[u8]) -> Result<Tag, IoError> {
        match self {
            Self::Bare(device) => device.holds_data().ok_or(IoError::KeepsNoData)?.submit_with(request, data),
            Self::Filtered(filter) => filter.submit_with(request, data),
        }
    }

    fn take_data(&mut self, tag: Tag, data: &mut [u8]) -> bool {
        match self {
            Self::Bare(device) => device.holds_data().is_some_and(|device| device.take_data(tag, data)),
            Self::Filtered(filter) => filter.take_data(tag, data),
        }
    }
}

impl<D: BlockDevice> BlockDevice for Stack<D> {
    fn info(&self) -> DeviceInfo {
        match self {
            Self::Bare(device) => device.info(),
            Self::Filtered(filter) => filter.info(),
        }
    }

    #[inline]
    fn now(&self) -> Nanos {
        match self {
            Self::Bare(device) => device.now(),
            Self::Filtered(filter) => filter.now(),
        }
    }

    #[inline]
    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        match self {
            Self::Bare(device) => device.submit(request),
            Self::Filtered(filter) => filter.submit(request),
        }
    }

    #[inline]
    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        match self {
            Self::Bare(device) => device.wait(until, completion),
            Self::Filtered(filter) => filter.wait(until, completion),
        }
    }

    #[inline]
    fn execute(&mut self, request: Request, completion: &mut Completion) -> Result<(), IoError> {
        match self {
            Self::Bare(device) => device.execute(request, completion),
            Self::Filtered(filter) => filter.execute(request, completion),
        }
    }

    #[inline]
    fn expect(&self, requests: &[Request], ahead: Ahead) {
        match self {
            Self::Bare(device) => device.expect(requests, ahead),
            Self::Filtered(filter) => filter.expect(requests, ahead),
        }
    }

    fn holds_data(&mut self) -> Option<&mut dyn HoldsData> {
        match self {
            Self::Bare(device) => device.holds_data(),
            Self::Filtered(filter) => filter.holds_data(),
        }
    }
}
