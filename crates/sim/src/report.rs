//! The result of a run, as programs read it: names, units and causes as the documented JSON has them.

use crate::latency::{Latency, LatencySummary};
use crate::measure::{Closeup, Measurement, RequestColumns, Snapshots, Times, WindowRow};
use crate::simulation::Simulation;
use flashwright_block::{BlockDevice, Nanos};
use flashwright_ftl::{Cause, Counters, MappingCache, Merges, OpKind};
use flashwright_host::LayerFigures;
use flashwright_nand::BlockId;
use flashwright_ssd::{BusyTimes, RamFigures, Ssd};
use serde::Serialize;
use serde_json::{Value, json};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Every request was played.
    Complete,
    /// It was stopped; the figures cover what was finished.
    Interrupted,
    /// The drive could take no more writes.
    WornOut,
}

/// Everything that a run found. [`RunReport::to_json`] is the documented form.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// The documented JSON.
    pub json: Value,
    /// The time series.
    pub windows: Vec<WindowRow>,
    /// A row for every request, if it was asked for.
    pub requests: Option<RequestColumns>,
    /// Rows of consecutive requests, if they were asked for.
    pub closeup: Option<Closeup>,
    /// All blocks at moments of the run, if it was asked for.
    pub snapshots: Option<Snapshots>,
    /// Erases of each block.
    pub erases_per_block: Vec<u32>,
    /// Valid pages of each block at the end.
    pub valid_per_block: Vec<u32>,
    /// Response times: (nanoseconds, share at or below), for reads and writes together, reads, and writes.
    pub response_distribution: [Vec<(u64, f64)>; 3],
    /// Violations found by the verify mode, empty where all is well.
    pub violations: Vec<String>,
}

/// Whole-process cost of the run so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub cpu_s: f64,
    pub requests: u64,
}

impl RunReport {
    pub(crate) fn new(simulation: &Simulation, ended: Ended, note: Option<String>, cost: Cost) -> Self {
        let ssd = simulation.ssd();
        let measured = simulation.measurement();
        let counters = ssd.flash().counters().since(&measured.counters_start);
        let verified = ssd.flash().stamps().is_some();
        let violations: Vec<String> =
            if verified { ssd.audit().into_iter().map(|violation| violation.0).collect() } else { Vec::new() };
        let erases: Vec<u32> = simulation.erases_per_block();
        let json = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "config": toml_as_json(ssd),
            "seed": simulation.settings().seed.0,
            "workload": simulation.settings().workload,
            "precondition": precondition(simulation),
            "pace": simulation.settings().pace,
            "ended": ended,
            "note": note,
            "measured": {
                "requests": measured.requests,
                "duration_ns": simulation.is_timed().then(|| measured.end_ns - measured.start_ns),
                "warmup_requests": simulation.settings().warmup_requests,
            },
            "host": {
                "pages_read": measured.pages[0],
                "pages_written": measured.pages_written(ssd),
                "pages_trimmed": measured.pages[2],
                "bytes": measured.bytes,
            },
            "flash": {
                "reads": by_cause(&counters, OpKind::Read),
                "programs": by_cause(&counters, OpKind::Program),
                "erases": by_cause(&counters, OpKind::Erase),
                "oob_reads": by_cause(&counters, OpKind::OobRead),
                "reads_unmapped": counters.reads_unmapped,
            },
            "settled": simulation.settled(),
            "warnings": crate::warnings::of(simulation),
            "write_amplification": ratio(counters.total(OpKind::Program), measured.pages_written(ssd)),
            "gc": gc(ssd, &counters),
            "merges": merges(ssd.figures().merges),
            "mapping_cache": mapping_cache(ssd.figures().mapping_cache),
            "buffer": buffer(ssd.ram_figures()),
            "scheme": {
                "ram_bytes": ssd.figures().ram_bytes,
                "extra": ssd.figures().extra.into_iter().map(|(k, v)| (k, json!(v))).collect::<serde_json::Map<_, _>>(),
            },
            "wear": wear(ssd, &erases),
            "response_time_ns": latencies(simulation, Times::response),
            "service_time_ns": latencies(simulation, Times::service),
            "throughput": throughput(simulation),
            "controller": simulation.controller(),
            "host_layers": simulation.layers().iter().map(host_layer).collect::<Vec<_>>(),
            "busy": busy(&ssd.busy_times(), measured),
            "verify": {
                "enabled": verified,
                "violations": if verified { json!(violations.len()) } else { Value::Null },
            },
            "drive": {
                "logical_pages": ssd.logical_pages(),
                "physical_pages": ssd.flash().geometry().pages(),
                "logical_bytes": ssd.info().capacity.0,
                "cautions": ssd.cautions(),
                "state_digest": format!("{:016x}", state_digest(ssd)),
            },
            "digest": format!("{:016x}", crate::measure::mix(measured.digest, state_digest(ssd))),
            "run": {
                "cpu_s": cost.cpu_s,
                "requests_per_cpu_s": if cost.cpu_s > 0.0 { json!(cost.requests as f64 / cost.cpu_s) } else { Value::Null },
                "peak_rss_bytes": peak_rss_bytes(),
            },
        });
        let all = merged(simulation, Times::response);
        Self {
            json,
            windows: measured.windows.clone(),
            requests: measured.requests_kept().cloned(),
            closeup: measured.closeup().cloned(),
            snapshots: measured.snapshots(ssd),
            valid_per_block: blocks(ssd).map(|block| ssd.flash().pages_valid(block)).collect(),
            erases_per_block: erases,
            response_distribution: [
                all.distribution(),
                measured.times[0].response().distribution(),
                measured.times[1].response().distribution(),
            ],
            violations,
        }
    }

    /// The documented JSON as text.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.json).expect("a JSON value is printable")
    }
}

fn blocks(ssd: &Ssd) -> impl Iterator<Item = BlockId> {
    (0..ssd.flash().geometry().blocks()).map(BlockId)
}

fn toml_as_json(ssd: &Ssd) -> Value {
    serde_json::to_value(ssd.config_in_force()).expect("a configuration is plain data")
}

/// `a / b`, null where there is no `b`.
#[allow(clippy::cast_precision_loss)] // counts far below 2^53
fn ratio(a: u64, b: u64) -> Value {
    if b == 0 { Value::Null } else { json!(a as f64 / b as f64) }
}

/// Counts by cause. `translation` holds all of the mapping table's traffic, `translation_in_gc` the part of it that
/// cleaning set off.
fn by_cause(counters: &Counters, kind: OpKind) -> Value {
    let get = |cause| counters.get(kind, cause);
    json!({
        "host": get(Cause::Host),
        "gc": get(Cause::Gc),
        "merge": get(Cause::Merge),
        "padding": get(Cause::Padding),
        "translation": get(Cause::Translation) + get(Cause::GcTranslation),
        "wear": get(Cause::Wear),
        "total": counters.total(kind),
        "translation_in_gc": get(Cause::GcTranslation),
    })
}

/// Block utilisation counts every erase, whatever its cause: what Gupta 2009 (sections 4 and 5) sets against schemes that
/// erase blocks of which many pages were never used.
fn gc(ssd: &Ssd, counters: &Counters) -> Value {
    let figures = ssd.figures();
    let victim_pages = figures.collections * u64::from(ssd.flash().geometry().pages_per_block());
    json!({
        "collections": figures.collections,
        "efficiency": ratio(figures.victim_pages_invalid, victim_pages),
        "block_utilization": ratio(
            counters.pages_used_at_erase,
            counters.total(OpKind::Erase) * u64::from(ssd.flash().geometry().pages_per_block()),
        ),
    })
}

fn merges(merges: Option<Merges>) -> Value {
    let merges = merges.map(|m| (Some(m.switch), Some(m.partial), Some(m.full), Some(m.full_by_data_blocks)));
    let (switch, partial, full, by_blocks) = merges.unwrap_or_default();
    json!({ "switch": switch, "partial": partial, "full": full, "full_by_data_blocks": by_blocks })
}

fn mapping_cache(cache: Option<MappingCache>) -> Value {
    let hit_ratio = cache.as_ref().map(|cache| ratio(cache.hits, cache.lookups));
    json!({
        "lookups": cache.as_ref().map(|cache| cache.lookups),
        "hits": cache.as_ref().map(|cache| cache.hits),
        "hit_ratio": hit_ratio,
        "evictions": cache.as_ref().map(|cache| cache.evictions),
        "dirty_evictions": cache.as_ref().map(|cache| cache.dirty_evictions),
    })
}

/// The RAM before the translation layer; every figure null where there is none.
fn buffer(figures: Option<RamFigures>) -> Value {
    let of = |pick: fn(&RamFigures) -> u64| figures.as_ref().map(pick);
    let pages_per_destage = figures.as_ref().map(|ram| ratio(ram.pages_destaged, ram.destages));
    let share = |hits: u64, all: u64| ratio(hits, all);
    json!({
        "writes": of(|ram| ram.writes),
        "write_hits": of(|ram| ram.write_hits),
        "write_hit_ratio": figures.as_ref().map(|ram| share(ram.write_hits, ram.writes)),
        "reads": of(|ram| ram.reads),
        "read_hits": of(|ram| ram.read_hits),
        "read_hit_ratio": figures.as_ref().map(|ram| share(ram.read_hits, ram.reads)),
        "destages": of(|ram| ram.destages),
        "block_destages": of(|ram| ram.block_destages),
        "pages_destaged": of(|ram| ram.pages_destaged),
        "pages_per_destage_mean": pages_per_destage,
        "pages_padded": of(|ram| ram.pages_padded),
        "pages_dropped": of(|ram| ram.pages_dropped),
        "flushes": of(|ram| ram.flushes),
        "pages_forced": of(|ram| ram.pages_forced),
        "partition": figures.as_ref().filter(|ram| !ram.partition.is_empty()).map(|ram| json!({
            "requests": ram.partition.iter().map(|point| point.requests).collect::<Vec<_>>(),
            "buffer_pages": ram.partition.iter().map(|point| point.buffer_pages).collect::<Vec<_>>(),
            "map_entries": ram.partition.iter().map(|point| point.map_entries).collect::<Vec<_>>(),
        })),
        "extra": figures
            .map(|ram| ram.extra.into_iter().map(|(k, v)| (k, json!(v))).collect::<serde_json::Map<_, _>>()),
    })
}

/// Wear since the drive was new, preconditioning and warm-up included.
#[allow(clippy::cast_precision_loss)] // erase counts far below 2^53
fn wear(ssd: &Ssd, erases: &[u32]) -> Value {
    let n = erases.len() as f64;
    let mean = erases.iter().map(|e| f64::from(*e)).sum::<f64>() / n;
    let variance = erases.iter().map(|e| (f64::from(*e) - mean).powi(2)).sum::<f64>() / n;
    let nand = ssd.flash().nand();
    let budget = nand.cycles_mean().map_or(0.0, |cycles| cycles * f64::from(ssd.flash().geometry().pages()));
    let written = ssd.flash().host_writes() as f64;
    json!({
        "erases_per_block": {
            "min": erases.iter().min(),
            "max": erases.iter().max(),
            "mean": mean,
            "stdev": variance.sqrt(),
            "coefficient_of_variation": if mean > 0.0 { json!(variance.sqrt() / mean) } else { Value::Null },
        },
        "blocks_worn_out": nand.blocks_retired(),
        "host_pages_written": ssd.flash().host_writes(),
        "endurance_efficiency": if budget > 0.0 { json!(written / budget) } else { Value::Null },
    })
}

/// Times of reads and writes. Flushes and trims that take no time would make a distribution of two.
fn merged(simulation: &Simulation, pick: impl Fn(&Times) -> Latency) -> Latency {
    let mut all = Latency::default();
    simulation.measurement().times[..2].iter().for_each(|times| all.merge(&pick(times)));
    all
}

fn latencies(simulation: &Simulation, pick: impl Fn(&Times) -> Latency) -> Value {
    let times = &simulation.measurement().times;
    let summary = |latency: Latency| -> LatencySummary { latency.summary() };
    json!({
        "all": summary(merged(simulation, &pick)),
        "read": summary(pick(&times[0])),
        "write": summary(pick(&times[1])),
        "trim": summary(pick(&times[2])),
        "flush": summary(pick(&times[3])),
    })
}

#[allow(clippy::cast_precision_loss)] // counts and nanoseconds far below 2^53
fn throughput(simulation: &Simulation) -> Value {
    let measured = simulation.measurement();
    let nanos = measured.end_ns - measured.start_ns;
    let per_s = |count: u64| {
        if simulation.is_timed() && nanos > 0 { json!(count as f64 * 1e9 / nanos as f64) } else { Value::Null }
    };
    let moved = measured.times[..2].iter().map(|times| times.service().count()).sum();
    json!({ "iops": per_s(moved), "bytes_per_s": per_s(measured.bytes) })
}

/// Share of the measured time for which each die and channel was busy.
#[allow(clippy::cast_precision_loss)]
fn busy(times: &BusyTimes, measured: &Measurement) -> Value {
    let nanos = measured.end_ns - measured.start_ns;
    let shares = |busy: &[Nanos], before: &[Nanos]| -> Vec<f64> {
        let since = busy.iter().zip(before).map(|(now, before)| now.0 - before.0);
        since.map(|time| if nanos > 0 { time as f64 / nanos as f64 } else { 0.0 }).collect()
    };
    let before = &measured.busy_start;
    json!({ "dies": shares(&times.dies, &before.dies), "channels": shares(&times.channels, &before.channels) })
}

/// What a scheduler before the drive did, with means.
pub(crate) fn host_layer(layer: &LayerFigures) -> Value {
    let mut json = serde_json::to_value(layer).expect("plain data");
    for (counts, waits, of) in [
        ("reads", "read_waits", (&layer.reads, &layer.read_waits)),
        ("writes", "write_waits", (&layer.writes, &layer.write_waits)),
    ] {
        json[counts]["bytes_mean"] = ratio(of.0.bytes, of.0.requests);
        json[waits]["mean_ns"] = ratio(of.1.total_ns, of.0.requests);
    }
    json["extra"] = layer.extra.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json
}

fn precondition(simulation: &Simulation) -> Value {
    let preconditioning = simulation.preconditioning();
    let (rounds, steady) = preconditioning.rounds();
    let conditioning = simulation.conditioning();
    let settling = simulation.history().host_pages_before();
    json!({
        "spec": simulation.settings().precondition.to_string(),
        "pages_written": preconditioning.progress().0,
        "workload": conditioning.map(|conditioning| json!({
            "ended": conditioning.search(),
            "requests": conditioning.requests(),
            "passes": conditioning.passes(),
            "pages_written": settling,
            "capacities": simulation.capacities(settling),
        })),
        "steady": steady,
        "write_amplification_rounds": if steady.is_some() { json!(rounds) } else { Value::Null },
    })
}

/// A digest of where every logical page lies and how worn every block is.
fn state_digest(ssd: &Ssd) -> u64 {
    use flashwright_ftl::Ftl;
    let map = (0..ssd.logical_pages()).map(|lpn| {
        ssd.scheme().lookup(flashwright_nand::Lpn(lpn), ssd.flash()).map_or(u64::MAX, |ppn| u64::from(ppn.0))
    });
    let wear = blocks(ssd).map(|block| u64::from(ssd.flash().nand().erases(block)));
    map.chain(wear).fold(0, crate::measure::mix)
}

/// The most memory that the process ever held, where the system tells.
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
