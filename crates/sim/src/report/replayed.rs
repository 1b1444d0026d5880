//! The report of a replay: the report of a run, with the figures that any device can give.

use super::{
    Buffer, Busy, Ended, FlashCounts, Gc, HostCounts, LeftOut, MappingCacheCounts, Measured, MergeCounts, ReplayTarget,
    Report, Verify, Wear, host_layer, request_counts, run_cost, throughput, times_by_kind,
};
use crate::latency::Latency;
use crate::measure::{RequestWindow, Series, Times};
use crate::player::Pace;
use crate::replay::ReplaySettings;
use flashwright_block::{DeviceInfo, RequestKind};
use flashwright_host::LayerFigures;

/// The result of a replay.
#[derive(Clone, Debug)]
pub struct ReplayReport {
    /// The documented figures, named as in a run.
    pub report: Report,
    /// The time series.
    pub rows: Vec<RequestWindow>,
    /// Response times: (nanoseconds, share at or below), for all requests, reads, and writes.
    pub response_distribution: [Vec<(u64, f64)>; 3],
    /// How late requests were submitted, in the same form; empty in a closed loop.
    pub lateness_distribution: Vec<(u64, f64)>,
}

/// The inputs of a report.
pub(crate) struct Replayed<'a> {
    pub settings: &'a ReplaySettings,
    pub measured: &'a Series,
    pub device: DeviceInfo,
    pub layers: Vec<LayerFigures>,
    pub lateness: &'a Latency,
    /// Requests that were not played, by kind.
    pub left_out: [u64; RequestKind::COUNT],
    pub ended: Ended,
    pub note: Option<String>,
    pub cpu_s: f64,
}

impl Replayed<'_> {
    pub fn report(self) -> ReplayReport {
        let (tally, rows) = (&self.measured.tally, self.measured.rows());
        let (response_distribution, lateness_distribution) =
            (tally.response_distributions(), self.lateness.distribution());
        ReplayReport { report: self.figures(), rows, response_distribution, lateness_distribution }
    }

    fn figures(self) -> Report {
        let (settings, tally) = (self.settings, &self.measured.tally);
        let left_out = |kind: RequestKind| self.left_out[kind as usize];
        Report {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            config: settings.config.clone(),
            seed: settings.seed.0,
            workload: settings.workload.clone(),
            precondition: None,
            pace: settings.pace,
            ended: self.ended,
            note: self.note,
            measured: Measured {
                requests: tally.requests,
                duration_ns: tally.timed.then(|| tally.duration_ns()),
                warmup_requests: 0,
            },
            host: HostCounts { bytes: tally.bytes.iter().sum(), ..HostCounts::default() },
            requests: request_counts(tally),
            left_out: Some(LeftOut {
                writes: left_out(RequestKind::Write),
                trims: left_out(RequestKind::Trim),
                flushes: left_out(RequestKind::Flush),
            }),
            target: Some(ReplayTarget {
                name: self.device.name,
                capacity_bytes: self.device.capacity.0,
                block_bytes: self.device.sector.0,
                queue_depth: self.device.queue_depth,
                real_time: settings.real_time,
                writes_allowed: settings.writes,
            }),
            flash: FlashCounts::default(),
            settled: None,
            warnings: Vec::new(),
            write_amplification: None,
            write_amplification_bytes: None,
            write_amplification_into_flash: None,
            gc: Gc::default(),
            merges: MergeCounts::default(),
            mapping_cache: MappingCacheCounts::default(),
            buffer: Buffer::default(),
            scheme: None,
            handles: Vec::new(),
            groups: Vec::new(),
            tenants: Vec::new(),
            queues: Vec::new(),
            zones: None,
            wear: Wear::default(),
            response_time_ns: times_by_kind(tally, Times::response),
            service_time_ns: times_by_kind(tally, Times::service),
            lateness_ns: match settings.pace {
                Pace::Open { .. } => Some(self.lateness.summary()),
                Pace::Closed { .. } | Pace::Interactive | Pace::Tenants => None,
            },
            throughput: throughput(tally),
            controller: None,
            chips: None,
            errors: None,
            mount: None,
            energy: None,
            host_layers: self.layers.into_iter().map(host_layer).collect(),
            busy: Busy::default(),
            verify: Verify::default(),
            violations: None,
            drive: None,
            digest: None,
            run: run_cost(self.cpu_s, tally.requests),
            workload_notes: Vec::new(),
            application: None,
            policies: Vec::new(),
        }
    }
}
