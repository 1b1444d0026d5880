//! Figures of a drive while it is served.

use super::HostLayer;
use super::simulated::{amplification_bytes, blocks, causes, gc, groups, handles, precondition, zones};
use super::{
    FlashCounts, Gc, GroupReport, HandleReport, HostCounts, PreconditionReport, RequestCounts, Throughput, TimesByKind,
    ZonesReport, host_layer, ratio, request_counts, throughput, times_by_kind,
};
use crate::measure::{Tally, Times};
use crate::settle::Settled;
use crate::simulation::Simulation;
use crate::warnings::{self, Warning};
use flashwright_block::{BlockDevice, Nanos, RequestClass};
use flashwright_ftl::{Cause, OpKind};
use flashwright_host::LayerFigures;
use flashwright_nand::Condition;
use serde::Serialize;

/// The figures of a served drive at one moment, by the names that the JSON of a run gives them. They cover all requests since
/// it is served.
#[derive(Clone, Debug, Serialize)]
pub struct LiveFigures {
    /// The drive's own clock, nanoseconds.
    pub time_ns: u64,
    /// Requests completed.
    pub completed: u64,
    /// Requests by kind.
    pub requests: RequestCounts,
    /// What the host asked for.
    pub host: HostCounts,
    /// What the flash did.
    pub flash: FlashCounts,
    /// Write amplification by pages: pages programmed per page that the host asked to write. Null if it wrote none.
    pub write_amplification: Option<f64>,
    /// Write amplification by bytes, as drives count it: bytes programmed per byte that the host wrote. Null if it wrote
    /// none.
    pub write_amplification_bytes: Option<f64>,
    /// Whether the write amplification is that of a drive that has settled under its load, as of every other run.
    pub settled: Settled,
    /// Warnings about the figures, the most important first; what `settled` says is not among them.
    pub warnings: Vec<Warning>,
    /// How the drive was preconditioned.
    pub precondition: PreconditionReport,
    /// Cleaning.
    pub gc: Gc,
    /// Pages that the host can address.
    pub logical_pages: u64,
    /// Those that hold data; of pages in RAM each counts, though flash may hold it as well.
    pub logical_pages_with_data: u64,
    /// Blocks of the flash: all of them.
    pub blocks: u64,
    /// Blocks that are erased and good.
    pub blocks_free: u64,
    /// Blocks that wore out.
    pub blocks_worn_out: u64,
    /// Times from the arrival of a request to its completion, queueing included, on the drive's clock.
    pub response_time_ns: TimesByKind,
    /// Times from the moment when the drive accepts a request to its completion.
    pub service_time_ns: TimesByKind,
    /// Rates over the drive's time.
    pub throughput: Throughput,
    /// What each handle of flexible data placement cost, since the drive is served. Empty if the drive has none.
    pub handles: Vec<HandleReport>,
    /// What each reclaim group did, since the drive is served. Empty unless it has several.
    pub groups: Vec<GroupReport>,
    /// The zones. Null unless `ftl.scheme` is `zoned`.
    pub zones: Option<ZonesReport>,
}

impl LiveFigures {
    pub(crate) fn new(run: &Simulation) -> Self {
        let (ssd, measured) = (run.ssd(), run.measurement());
        let (nand, tally) = (ssd.flash().nand(), &measured.tally);
        let counters = ssd.flash().counters().since(&measured.counters_start);
        let is_free = |block: &_| nand.condition(*block) == Condition::Good && nand.pages_programmed(*block) == 0;
        Self {
            time_ns: ssd.now().0,
            completed: tally.requests,
            requests: request_counts(tally),
            host: HostCounts {
                pages_read: Some(measured.pages_of(RequestClass::Read)),
                pages_written: Some(measured.pages_of(RequestClass::Write)),
                pages_into_flash: Some(counters.get(OpKind::Program, Cause::Host)),
                pages_trimmed: Some(measured.pages_of(RequestClass::Discard)),
                bytes: tally.bytes.iter().sum(),
            },
            flash: FlashCounts {
                reads: causes(&counters, OpKind::Read),
                programs: causes(&counters, OpKind::Program),
                erases: causes(&counters, OpKind::Erase),
                oob_reads: causes(&counters, OpKind::OobRead),
                reads_unmapped: Some(counters.reads_unmapped),
            },
            write_amplification: ratio(counters.total(OpKind::Program), measured.pages_of(RequestClass::Write)),
            write_amplification_bytes: amplification_bytes(ssd, counters.total(OpKind::Program), tally),
            settled: Settled { mend: None, ..run.settled_now(tally.requests) },
            warnings: warnings::of_served(run).into_iter().filter(|each| each.code != "not-settled").collect(),
            precondition: precondition(run),
            gc: gc(ssd, &counters),
            logical_pages: u64::from(ssd.logical_pages()),
            logical_pages_with_data: warnings::logical_pages_with_data(ssd),
            blocks: u64::from(ssd.flash().geometry().blocks()),
            blocks_free: blocks(ssd).filter(is_free).count() as u64,
            blocks_worn_out: u64::from(nand.blocks_retired()),
            response_time_ns: times_by_kind(tally, Times::response),
            service_time_ns: times_by_kind(tally, Times::service),
            throughput: throughput(tally),
            handles: handles(ssd),
            groups: groups(ssd, measured),
            zones: ssd.figures().zones.and_then(|figures| zones(ssd, figures, &counters, tally)),
        }
    }
}

/// The figures of a served device that exists, by the same names: what such a device does not reveal is not there.
#[derive(Clone, Debug, Serialize)]
pub struct ProxiedFigures {
    /// The machine's clock since the device is served, nanoseconds.
    pub time_ns: u64,
    /// Requests completed.
    pub completed: u64,
    /// Requests that the device failed.
    pub failed: u64,
    /// Requests by kind.
    pub requests: RequestCounts,
    /// Times from the arrival of a request to its completion, waiting in schedulers included.
    pub response_time_ns: TimesByKind,
    /// Times from the moment when the device has the first part of a request to its completion.
    pub service_time_ns: TimesByKind,
    /// Rates over that time.
    pub throughput: Throughput,
    /// What each scheduler did, from the client down to the device; empty if there is none.
    pub host_layers: Vec<HostLayer>,
}

impl ProxiedFigures {
    pub(crate) fn new(now: Nanos, tally: &Tally, failed: u64, layers: Vec<LayerFigures>) -> Self {
        Self {
            time_ns: now.0,
            completed: tally.requests,
            failed,
            requests: request_counts(tally),
            response_time_ns: times_by_kind(tally, Times::response),
            service_time_ns: times_by_kind(tally, Times::service),
            throughput: throughput(tally),
            host_layers: layers.into_iter().map(host_layer).collect(),
        }
    }
}
