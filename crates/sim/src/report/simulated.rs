//! The report of a run on a simulated drive.

use super::{
    BitErrors, Buffer, Busy, Causes, Drive, Ended, Energy, ErasesPerBlock, FlashCounts, Gc, GroupReport, HandleReport,
    HostCounts, MappingCacheCounts, Measured, MergeCounts, MountReport, Partition, PreconditionReport, QueueReport,
    Report, SchemeReport, SettlingReport, TenantReport, Verify, Wear, ZonesReport, by_name, host_layer, ratio,
    request_counts, run_cost, throughput, times_by_kind,
};
use crate::energy::Joules;
use crate::measure::{Closeup, Measurement, OfQueue, RequestColumns, Snapshots, Tally, Times, WindowRow, mix};
use crate::player::Pace;
use crate::simulation::Simulation;
use crate::tenants::Tenant;
use flashwright_block::{BlockDevice, Nanos, RequestClass, RequestKind, ZoneRule, ZoneState};
use flashwright_ftl::{Cause, Counters, Ftl, HandleCounts, MappingCache, Merges, OpKind, OwnerCounts, ZoneFigures};
use flashwright_nand::{BlockId, Condition, ErrorCounts, Lpn};
use flashwright_ssd::{BusyTimes, RamFigures, Ssd};

/// The result of a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// The documented figures.
    pub report: Report,
    /// The time series.
    pub windows: Vec<WindowRow>,
    /// One row per request, if requested.
    pub requests: Option<RequestColumns>,
    /// Rows of consecutive requests, if requested.
    pub closeup: Option<Closeup>,
    /// Snapshots of all blocks, if requested.
    pub snapshots: Option<Snapshots>,
    /// Erases of each block.
    pub erases_per_block: Vec<u32>,
    /// Valid pages of each block at the end.
    pub valid_per_block: Vec<u32>,
    /// Response times: (nanoseconds, share at or below), for reads and writes together, reads, and writes.
    pub response_distribution: [Vec<(u64, f64)>; 3],
}

/// CPU time and memory of the process so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub cpu_s: f64,
    pub requests: u64,
}

impl RunReport {
    pub(crate) fn new(simulation: &Simulation, ended: Ended, note: Option<String>, cost: Cost) -> Self {
        let (ssd, measured) = (simulation.ssd(), simulation.measurement());
        let erases: Vec<u32> = simulation.erases_per_block();
        Self {
            report: report(simulation, ended, note, cost, &erases),
            windows: measured.windows.clone(),
            requests: measured.requests_kept().cloned(),
            closeup: measured.closeup().cloned(),
            snapshots: measured.snapshots(ssd),
            valid_per_block: blocks(ssd).map(|block| ssd.flash().pages_valid(block)).collect(),
            erases_per_block: erases,
            response_distribution: measured.tally.response_distributions(),
        }
    }
}

fn report(simulation: &Simulation, ended: Ended, note: Option<String>, cost: Cost, erases: &[u32]) -> Report {
    let (ssd, settings) = (simulation.ssd(), simulation.settings());
    let measured = simulation.measurement();
    let (tally, figures) = (&measured.tally, ssd.figures());
    let counters = ssd.flash().counters().since(&measured.counters_start);
    let (programs, into_flash) = (counters.total(OpKind::Program), counters.get(OpKind::Program, Cause::Host));
    let verified = ssd.flash().stamps().is_some();
    let violations: Vec<String> =
        if verified { ssd.audit().into_iter().map(|violation| violation.0).collect() } else { Vec::new() };
    let state_digest = state_digest(ssd);
    Report {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        config: ssd.config_in_force().to_json(),
        seed: settings.seed.0,
        workload: settings.workload.clone(),
        precondition: Some(precondition(simulation)),
        pace: settings.pace,
        ended,
        note,
        measured: Measured {
            requests: tally.requests,
            duration_ns: tally.timed.then(|| tally.duration_ns()),
            warmup_requests: settings.warmup_requests,
        },
        host: HostCounts {
            pages_read: Some(measured.pages_of(RequestClass::Read)),
            pages_written: Some(measured.pages_of(RequestClass::Write)),
            pages_into_flash: Some(into_flash),
            pages_trimmed: Some(measured.pages_of(RequestClass::Discard)),
            bytes: tally.bytes.iter().sum(),
        },
        requests: request_counts(tally),
        left_out: None,
        target: None,
        flash: FlashCounts {
            reads: causes(&counters, OpKind::Read),
            programs: causes(&counters, OpKind::Program),
            erases: causes(&counters, OpKind::Erase),
            oob_reads: causes(&counters, OpKind::OobRead),
            reads_unmapped: Some(counters.reads_unmapped),
        },
        settled: Some(simulation.settled()),
        warnings: crate::warnings::of(simulation),
        write_amplification: ratio(programs, measured.pages_of(RequestClass::Write)),
        write_amplification_bytes: amplification_bytes(ssd, programs, tally),
        write_amplification_into_flash: ratio(programs, into_flash),
        gc: gc(ssd, &counters),
        merges: figures.merges.map(merges).unwrap_or_default(),
        mapping_cache: figures.mapping_cache.map(mapping_cache).unwrap_or_default(),
        buffer: ssd.ram_figures().map(buffer).unwrap_or_default(),
        scheme: Some(SchemeReport { ram_bytes: figures.ram_bytes, extra: by_name(figures.extra) }),
        handles: handles(ssd),
        groups: groups(ssd, measured),
        tenants: tenants(simulation),
        queues: queues(simulation),
        zones: figures.zones.and_then(|figures| zones(ssd, figures, &counters, tally)),
        wear: wear(simulation, erases),
        response_time_ns: times_by_kind(tally, Times::response),
        service_time_ns: times_by_kind(tally, Times::service),
        lateness_ns: None,
        throughput: throughput(tally),
        controller: simulation.controller(),
        chips: ssd.chip_figures(),
        errors: ssd.error_counts().map(bit_errors),
        mount: MountReport::new(simulation),
        energy: energy(ssd, &counters, tally),
        host_layers: simulation.layers().into_iter().map(host_layer).collect(),
        busy: busy(&ssd.busy_times(), measured),
        verify: Verify { enabled: Some(verified), violations: verified.then_some(violations.len() as u64) },
        violations: Some(violations),
        drive: Some(Drive {
            logical_pages: ssd.logical_pages(),
            physical_pages: ssd.flash().geometry().pages(),
            logical_bytes: ssd.info().capacity.0,
            cautions: ssd.cautions().to_vec(),
            state_digest: format!("{state_digest:016x}"),
        }),
        digest: Some(format!("{:016x}", mix(measured.digest, state_digest))),
        run: run_cost(cost.cpu_s, cost.requests),
        workload_notes: Vec::new(),
        application: None,
        policies: Vec::new(),
    }
}

fn bit_errors((counts, blocks_rewritten): (ErrorCounts, u64)) -> BitErrors {
    BitErrors {
        reads: counts.reads,
        reads_retried: counts.retried.iter().sum(),
        retries: counts.retries(),
        reads_soft: counts.soft,
        reads_uncorrectable: counts.uncorrectable,
        reclaims: counts.reclaims,
        blocks_rewritten,
    }
}

#[allow(clippy::cast_precision_loss)] // counts far below 2^53
fn energy(ssd: &Ssd, counters: &Counters, tally: &Tally) -> Option<Energy> {
    let config = &ssd.config().energy;
    if !config.is_known() || !tally.timed {
        return None;
    }
    let joules = Joules::of(ssd, counters);
    let seconds = tally.duration_ns() as f64 / 1e9;
    let idle_j = seconds * config.idle_mw * 1e-3;
    let total_j = joules.sum() + idle_j;
    let moved = tally.bytes.iter().sum::<u64>() as f64;
    Some(Energy {
        reads_j: joules.reads,
        programs_j: joules.programs,
        erases_j: joules.erases,
        transfers_j: joules.transfers,
        idle_j,
        total_j,
        mean_w: (seconds > 0.0).then(|| total_j / seconds),
        mj_per_mb: (moved > 0.0).then(|| total_j * 1e3 / (moved / 1e6)),
    })
}

pub(super) fn blocks(ssd: &Ssd) -> impl Iterator<Item = BlockId> {
    (0..ssd.flash().geometry().blocks()).map(BlockId)
}

pub(super) fn causes(counters: &Counters, kind: OpKind) -> Causes {
    let get = |cause| counters.get(kind, cause);
    Causes {
        host: Some(get(Cause::Host)),
        gc: Some(get(Cause::Gc)),
        merge: Some(get(Cause::Merge)),
        padding: Some(get(Cause::Padding)),
        translation: Some(get(Cause::Translation) + get(Cause::GcTranslation)),
        wear: Some(get(Cause::Wear)),
        total: Some(counters.total(kind)),
        translation_in_gc: Some(get(Cause::GcTranslation)),
    }
}

/// Bytes programmed over bytes that the host wrote; none if it wrote nothing.
pub(super) fn amplification_bytes(ssd: &Ssd, programs: u64, tally: &Tally) -> Option<f64> {
    ratio(programs * ssd.flash().geometry().page_size().0, RequestClass::Write.sum(&tally.bytes))
}

pub(super) fn gc(ssd: &Ssd, counters: &Counters) -> Gc {
    let (figures, pages_per_block) = (ssd.figures(), u64::from(ssd.flash().geometry().pages_per_block()));
    Gc {
        collections: Some(figures.collections),
        efficiency: ratio(figures.victim_pages_invalid, figures.collections * pages_per_block),
        block_utilization: ratio(counters.pages_used_at_erase, counters.total(OpKind::Erase) * pages_per_block),
    }
}

fn merges(merges: Merges) -> MergeCounts {
    let Merges { switch, partial, full, full_by_data_blocks } = merges;
    MergeCounts {
        switch: Some(switch),
        partial: Some(partial),
        full: Some(full),
        full_by_data_blocks: Some(full_by_data_blocks),
    }
}

fn mapping_cache(cache: MappingCache) -> MappingCacheCounts {
    let MappingCache { lookups, hits, evictions, dirty_evictions, prefetched, prefetched_used } = cache;
    MappingCacheCounts {
        lookups: Some(lookups),
        hits: Some(hits),
        hit_ratio: ratio(hits, lookups),
        evictions: Some(evictions),
        dirty_evictions: Some(dirty_evictions),
        prefetched: Some(prefetched),
        prefetched_used: Some(prefetched_used),
        prefetch_accuracy: ratio(prefetched_used, prefetched),
    }
}

pub(super) fn handles(ssd: &Ssd) -> Vec<HandleReport> {
    ssd.figures().handles.into_iter().enumerate().map(handle).collect()
}

pub(super) fn groups(ssd: &Ssd, measured: &Measurement) -> Vec<GroupReport> {
    let flash = ssd.flash();
    let counted = flash.group_counters().iter().zip(&measured.groups_start).map(|(now, before)| now.since(before));
    let report = |(group, counters): (u16, Counters)| {
        let good = || {
            let of_group = blocks(ssd).filter(|block| flash.group_of(*block) == group);
            of_group.filter(|block| flash.nand().condition(*block) == Condition::Good)
        };
        let (written, programmed) = (counters.get(OpKind::Program, Cause::Host), counters.total(OpKind::Program));
        GroupReport {
            group: group.into(),
            pages_written: written,
            pages_programmed: programmed,
            pages_moved: counters.get(OpKind::Program, Cause::Gc),
            erases: counters.total(OpKind::Erase),
            write_amplification: ratio(programmed, written),
            units: good().count() as u64,
            units_free: good().filter(|block| flash.nand().pages_programmed(*block) == 0).count() as u64,
        }
    };
    (0..).zip(counted).map(report).collect()
}

fn tenants(simulation: &Simulation) -> Vec<TenantReport> {
    let (measured, counts) = (simulation.measurement(), simulation.ssd().flash().owner_counts());
    let costs = counts.iter().zip(&measured.owners_start).map(|(now, before)| now.since(before));
    let tenants = &simulation.settings().tenants;
    let report = |((tenant, asked), cost): ((&Tenant, &OfQueue), OwnerCounts)| {
        let (tenant, tally) = (tenant.clone(), &asked.tally);
        let pages_moved = cost.pages_moved_for.iter().sum::<u64>();
        TenantReport {
            name: tenant.name,
            workload: tenant.workload,
            pace: tenant.pace,
            first_page: tenant.first_page,
            pages: tenant.pages,
            handle: tenant.handle,
            priority: tenant.priority,
            requests: request_counts(tally),
            throughput: throughput(tally),
            response_time_ns: times_by_kind(tally, Times::response),
            service_time_ns: times_by_kind(tally, Times::service),
            pages_read: asked.pages[RequestKind::Read as usize],
            pages_written: RequestClass::Write.sum(&asked.pages),
            pages_into_flash: cost.pages_written,
            pages_moved,
            // Nobody wrote only before the first request.
            pages_moved_for: cost.pages_moved_for[..tenants.len()].to_vec(),
            write_amplification: ratio(cost.pages_written + pages_moved, RequestClass::Write.sum(&asked.pages)),
            alone: None,
            slowdown: None,
        }
    };
    tenants.iter().zip(measured.queues.iter().flatten().map(Box::as_ref)).zip(costs).map(report).collect()
}

/// Of a drive in service; tenants have theirs.
fn queues(simulation: &Simulation) -> Vec<QueueReport> {
    if simulation.settings().pace == Pace::Tenants {
        return Vec::new();
    }
    let numbered = (0..).zip(&simulation.measurement().queues);
    let report = |(queue, asked): (u64, &OfQueue)| QueueReport {
        queue,
        requests: request_counts(&asked.tally),
        throughput: throughput(&asked.tally),
        response_time_ns: times_by_kind(&asked.tally, Times::response),
        service_time_ns: times_by_kind(&asked.tally, Times::service),
        pages_read: asked.pages[RequestKind::Read as usize],
        pages_written: RequestClass::Write.sum(&asked.pages),
    };
    numbered.filter_map(|(number, asked)| Some((number, asked.as_deref()?))).map(report).collect()
}

fn handle((number, counts): (usize, HandleCounts)) -> HandleReport {
    let HandleCounts { pages_written, pages_moved_for } = counts;
    let pages_moved = pages_moved_for.iter().sum();
    HandleReport {
        handle: number as u64,
        pages_written,
        pages_moved,
        pages_moved_for,
        write_amplification: ratio(pages_written + pages_moved, pages_written),
    }
}

pub(super) fn zones(ssd: &Ssd, figures: ZoneFigures, counters: &Counters, tally: &Tally) -> Option<ZonesReport> {
    let ZoneFigures { by_state, resets, finishes, refusals } = figures;
    let (layout, page) = (ssd.zone_layout()?, ssd.flash().geometry().page_size().0);
    let key = |name: &str| name.replace(['-', ' '], "_");
    let times = |kind: RequestKind| tally.times[kind as usize].service().summary();
    Some(ZonesReport {
        zones: u64::from(layout.count),
        size_bytes: u64::from(layout.size) * page,
        capacity_bytes: u64::from(layout.capacity) * page,
        states: ZoneState::ALL.iter().zip(by_state).map(|(state, count)| (key(state.name()), count)).collect(),
        resets,
        finishes,
        pages_padded: counters.get(OpKind::Program, Cause::Padding),
        refusals: ZoneRule::ALL.iter().zip(refusals).map(|(rule, count)| (key(rule.name()), count)).collect(),
        reset_time_ns: times(RequestKind::ZoneReset),
        finish_time_ns: times(RequestKind::ZoneFinish),
    })
}

fn buffer(ram: RamFigures) -> Buffer {
    let points = &ram.partition;
    let partition = (!points.is_empty()).then(|| Partition {
        requests: points.iter().map(|point| point.requests).collect(),
        buffer_pages: points.iter().map(|point| u64::from(point.buffer_pages)).collect(),
        map_entries: points.iter().map(|point| u64::from(point.map_entries)).collect(),
    });
    Buffer {
        writes: Some(ram.writes),
        write_hits: Some(ram.write_hits),
        write_hit_ratio: ratio(ram.write_hits, ram.writes),
        reads: Some(ram.reads),
        read_hits: Some(ram.read_hits),
        read_hit_ratio: ratio(ram.read_hits, ram.reads),
        destages: Some(ram.destages),
        block_destages: Some(ram.block_destages),
        pages_destaged: Some(ram.pages_destaged),
        pages_per_destage_mean: ratio(ram.pages_destaged, ram.destages),
        pages_padded: Some(ram.pages_padded),
        pages_dropped: Some(ram.pages_dropped),
        flushes: Some(ram.flushes),
        pages_forced: Some(ram.pages_forced),
        partition,
        extra: Some(by_name(ram.extra)),
    }
}

#[allow(clippy::cast_precision_loss)] // erase counts far below 2^53
fn wear(simulation: &Simulation, erases: &[u32]) -> Wear {
    let ssd = simulation.ssd();
    let n = erases.len() as f64;
    let mean = erases.iter().map(|e| f64::from(*e)).sum::<f64>() / n;
    let variance = erases.iter().map(|e| (f64::from(*e) - mean).powi(2)).sum::<f64>() / n;
    let nand = ssd.flash().nand();
    let budget = nand.cycles_mean().map_or(0.0, |cycles| cycles * f64::from(ssd.flash().geometry().pages()));
    let (_, written, bytes) = simulation.wear();
    Wear {
        erases_per_block: ErasesPerBlock {
            min: erases.iter().min().copied(),
            max: erases.iter().max().copied(),
            mean: Some(mean),
            stdev: Some(variance.sqrt()),
            coefficient_of_variation: (mean > 0.0).then(|| variance.sqrt() / mean),
        },
        blocks_worn_out: Some(nand.blocks_retired()),
        host_pages_written: Some(written),
        host_bytes_written: Some(bytes),
        endurance_efficiency: (budget > 0.0).then(|| written as f64 / budget),
    }
}

#[allow(clippy::cast_precision_loss)] // nanoseconds far below 2^53
fn busy(times: &BusyTimes, measured: &Measurement) -> Busy {
    let nanos = measured.tally.duration_ns();
    let shares = |busy: &[Nanos], before: &[Nanos]| -> Vec<f64> {
        let since = busy.iter().zip(before).map(|(now, before)| now.0 - before.0);
        since.map(|time| if nanos > 0 { time as f64 / nanos as f64 } else { 0.0 }).collect()
    };
    let before = &measured.busy_start;
    Busy { dies: Some(shares(&times.dies, &before.dies)), channels: Some(shares(&times.channels, &before.channels)) }
}

pub(super) fn precondition(simulation: &Simulation) -> PreconditionReport {
    let pages_written = simulation.history().host_pages_before();
    let workload = simulation.conditioning().map(|conditioning| SettlingReport {
        ended: conditioning.search(),
        requests: conditioning.requests(),
        passes: conditioning.passes(),
        pages_written,
        capacities: simulation.capacities(pages_written),
    });
    let spec = simulation.settings().precondition.to_string();
    PreconditionReport { workload, ..PreconditionReport::of_fill(spec, simulation.preconditioning()) }
}

/// A digest of where every logical page lies and how worn every block is.
fn state_digest(ssd: &Ssd) -> u64 {
    let map = (0..ssd.logical_pages())
        .map(|lpn| ssd.scheme().lookup(Lpn(lpn), ssd.flash()).map_or(u64::MAX, |ppn| u64::from(ppn.0)));
    let wear = blocks(ssd).map(|block| u64::from(ssd.flash().nand().erases(block)));
    map.chain(wear).fold(0, mix)
}
