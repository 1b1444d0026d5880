//! Warnings where the figures of a run do not mean what a user would expect: one sentence each, with the option that
//! corrects it.
//!
//! A warning is a function of the run and a line in [`RULES`], the most important first. It must be true, state its
//! figures, and appear only if it matters to the user.

// Counts far below 2^53, shares and rates above 0.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use crate::measure::Times;
use crate::player::Pace;
use crate::precondition::Precondition;
use crate::settle::Verdict;
use crate::simulation::Simulation;
use flashwright_block::{ArbiterName, GroupBits, Priority, RequestClass, ZoneRule, grouped};
use flashwright_ftl::{Ftl, OpKind, PlacementName};
use flashwright_nand::Lpn;
use flashwright_ssd::{QueueDepth, Ssd, TimingModel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that a user should know before using the figures of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Warning {
    /// Its identifier for programs.
    pub code: &'static str,
    /// One sentence with its figures.
    pub text: String,
    /// The options that correct it. Null if none does.
    pub mend: Option<String>,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.mend.iter().try_for_each(|mend| write!(f, "; try {mend}"))
    }
}

/// Properties of the source of requests, known when it is opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Whether it is a recorded trace with an end.
    pub is_trace: bool,
    /// Whether its addresses were packed or scaled onto the drive.
    pub is_packed: bool,
    /// The pace that the workload states, such as `depth=8`, if the run has another.
    pub overridden: Option<String>,
    /// Whether arrival times are scaled although the workload has none.
    pub has_no_arrivals: bool,
}

/// Reads of pages without data, flushes: their shares of the requests from which on there is a warning.
const SHARE_MIN: f64 = 0.01;
/// The share of the spare space that blocks kept for cleaning may take: uniform writes at a utilisation of 0.9 then have a
/// write amplification a tenth above that of planes with many blocks (5.7 against 5.1; 7.0 where they take half).
const RESERVE_MAX: f64 = 0.2;
/// How many times write amplification by bytes must be that by pages.
const DIFFER_MIN: f64 = 1.05;
/// The share of a filled drive that trims must empty: as much as many drives have for spare space.
const EMPTIED_MIN: f64 = 0.1;
/// The share of the drive that a trace must write.
const FOOTPRINT_MIN: f64 = 0.5;
/// The share of a trace that must be measured.
const MEASURED_MIN: f64 = 0.01;
/// How many times faster than the drive arrivals must come, and how many times longer than service responses must be.
const BEHIND_MIN: f64 = 1.05;
const WAITING_MIN: f64 = 4.0;

/// Each rule gives one warning or none.
const RULES: &[fn(&Simulation) -> Option<Warning>] = &[
    never_cleaned,
    not_settled,
    parts_of_pages,
    trimmed,
    falls_behind,
    unmapped_reads,
    pace_overridden,
    depth_beyond_queue,
    small_footprint,
    handles_unnamed,
    zones_refused,
    handles_not_kept,
    classes_not_weighed,
    reserved_blocks,
    planes_in_turn,
    little_measured,
    free_flushes,
    queue_widened,
];

/// All warnings of a run, the most important first.
#[must_use]
pub(crate) fn of(run: &Simulation) -> Vec<Warning> {
    let cautions = run.ssd().cautions().iter().map(|text| warning("costly-configuration", text.clone(), None));
    RULES.iter().filter_map(|rule| rule(run)).chain(cautions).collect()
}

/// As [`of`], for a drive whose requests clients send: what would let it settle is for them to know.
#[must_use]
pub(crate) fn of_served(run: &Simulation) -> Vec<Warning> {
    let mut found = of(run);
    for each in &mut found {
        match each.code {
            "not-settled" => each.mend = None,
            "trimmed" => each.mend = Some(WITHOUT_TRIMS.to_owned()),
            _ => {}
        }
    }
    found
}

/// What makes a file system without trimming its device.
const WITHOUT_TRIMS: &str =
    "mkfs.ext4 -E nodiscard, mkfs.xfs -K, mkfs.btrfs -K or mkfs.f2fs -t 0, and mounts without discard";

fn warning(code: &'static str, text: String, mend: Option<String>) -> Warning {
    Warning { code, text, mend }
}

/// The trace never caused cleaning, so the figures say nothing about it.
fn never_cleaned(run: &Simulation) -> Option<Warning> {
    let (written, erases) = (run.history().total().host_pages, run.history().total().erases);
    if !run.origin().is_trace || written == 0 || erases > 0 || run.conditioning().is_some() {
        return None;
    }
    let text = format!(
        "the trace wrote {} pages ({} of the drive's pages) and no block was erased: write amplification and times do \
         not include cleaning",
        grouped(written),
        percent(written as f64 / f64::from(run.ssd().logical_pages())),
    );
    let smaller = smaller_drive(run).map_or(String::new(), |smaller| format!(", or a smaller drive: {smaller}"));
    Some(warning("never-cleaned", text, Some(format!("--precondition workload{smaller}"))))
}

/// By the settling rule, the figures are not of a settled drive, or of one that never cleans.
fn not_settled(run: &Simulation) -> Option<Warning> {
    let settled = run.settled();
    let (code, text) = match settled.verdict {
        Verdict::Transient => ("not-settled", format!("not settled: {}", settled.why)),
        Verdict::TooShort => ("not-settled", settled.why),
        Verdict::NeverCleaned => ("never-cleaned", settled.why),
        Verdict::Settled | Verdict::None => return None,
    };
    never_cleaned(run).is_none().then(|| warning(code, text, settled.mend))
}

/// Requests write parts of pages, so that a page written is less than a page of data.
fn parts_of_pages(run: &Simulation) -> Option<Warning> {
    let (measured, flash) = (run.measurement(), run.ssd().flash());
    let (pages, page) = (measured.pages_of(RequestClass::Write), flash.geometry().page_size());
    let bytes = RequestClass::Write.sum(&measured.tally.bytes);
    if bytes == 0 || (pages * page.0) as f64 <= DIFFER_MIN * bytes as f64 {
        return None;
    }
    let programs = flash.counters().since(&measured.counters_start).total(OpKind::Program);
    let text = format!(
        "writes bring {} B for each page of {page} that they touch: write amplification is {:.3} by pages and {:.3} by bytes, \
         and drives count it by bytes",
        grouped((bytes as f64 / pages as f64).round() as u64),
        programs as f64 / pages as f64,
        (programs * page.0) as f64 / bytes as f64,
    );
    Some(warning("parts-of-pages", text, None))
}

/// Trims have emptied much of a drive that was filled beforehand.
fn trimmed(run: &Simulation) -> Option<Warning> {
    use Precondition::{LaidOut, Random, Sequential, Steady};
    let spec = run.settings().precondition;
    let is_filled = matches!(spec, Sequential | Random { .. } | Steady | LaidOut);
    if !is_filled || run.measurement().pages_of(RequestClass::Discard) == 0 {
        return None;
    }
    let share = 1.0 - logical_pages_with_data(run.ssd()) as f64 / f64::from(run.ssd().logical_pages());
    let text = || {
        format!(
            "trims have emptied {} of the drive that --precondition {spec} had filled, and all of that serves as spare space: \
             write amplification and times are those of an emptier drive",
            percent(share)
        )
    };
    let mend = || (run.settings().pace != Pace::Interactive).then(|| "--precondition workload".to_owned());
    (share >= EMPTIED_MIN).then(|| warning("trimmed", text(), mend()))
}

/// Data are placed by handles, and all that reached the flash had the same.
fn handles_unnamed(run: &Simulation) -> Option<Warning> {
    let handles = run.ssd().figures().handles;
    let named = handles.iter().filter(|handle| handle.pages_written > 0).count();
    if handles.len() < 2 || named != 1 || handles[0].pages_written == 0 {
        return None;
    }
    let managed = run.ssd().ram_figures().is_some();
    let why =
        if managed { "the RAM before the translation layer does not keep handles" } else { "no write named another" };
    let text = format!("all {} pages went to handle 0: {why}", grouped(handles[0].pages_written));
    let mend = if managed {
        "--set ram.manager=none"
    } else {
        "a workload or trace that names streams, such as streams=class"
    };
    Some(warning("handles-unnamed", text, Some(mend.to_owned())))
}

/// Requests broke the rules of zones.
fn zones_refused(run: &Simulation) -> Option<Warning> {
    let refusals = run.ssd().figures().zones?.refusals;
    let all: u64 = refusals.iter().sum();
    let (rule, most) = ZoneRule::ALL.iter().zip(refusals).max_by_key(|(_, count)| *count)?;
    (all > 0).then(|| {
        let text = format!(
            "{} requests were refused and count in no figure, {} of them because {}",
            grouped(all),
            grouped(most),
            rule.says()
        );
        warning("zones-refused", text, Some("--workload zones, or a trace of a zoned drive".to_owned()))
    })
}

/// Tenants name handles that the drive does not keep apart.
fn handles_not_kept(run: &Simulation) -> Option<Warning> {
    let (config, kept) = (run.ssd().config(), run.ssd().figures().handles.len());
    let named = run.settings().tenants.iter().filter_map(|tenant| tenant.handle);
    let groups = config.placement.groups();
    // Of several groups the highest bits are the group.
    let bits = GroupBits::of(u16::try_from(groups).unwrap_or(1));
    let is_kept = |(group, handle): (u16, u16)| u32::from(group) < groups && usize::from(handle) < kept;
    let handle = named.max_by_key(|handle| (!is_kept(bits.split(*handle)), *handle))?;
    let (text, mend) = match config.placement.policy {
        _ if run.ssd().has_foreign_policies() => return None,
        PlacementName::MultiStream | PlacementName::HotCold => return None,
        PlacementName::Fdp if is_kept(bits.split(handle)) => return None,
        PlacementName::Fdp if groups > 1 => {
            let (group, of_group) = bits.split(handle);
            let text = format!(
                "a tenant names handle {of_group} of group {group} ({handle}), and the drive has {kept} handles in {groups} groups: its data go to \
                 handle 0 of group 0"
            );
            (text, "handles and groups that the drive has".to_owned())
        }
        PlacementName::Fdp => (
            format!("a tenant names handle {handle}, and the drive has {kept}: its data go to handle 0"),
            format!("--set placement.fdp.handles={}", u32::from(handle) + 1),
        ),
        policy => (
            format!("tenants name handles, and placement.policy = {} does not look at them", policy.listed().name),
            "--set placement.policy=fdp".to_owned(),
        ),
    };
    Some(warning("handles-not-kept", text, Some(mend)))
}

/// Tenants name classes of their queues that the arbiter does not look at.
fn classes_not_weighed(run: &Simulation) -> Option<Warning> {
    let arbiter = run.ssd().config().controller.queues.arbiter;
    let differ = run.settings().tenants.iter().any(|tenant| tenant.priority != Priority::Medium);
    let text = || {
        let arbiter = arbiter.listed().name;
        format!("tenants name a priority, and controller.queues.arbiter = {arbiter} does not look at it")
    };
    (differ && arbiter != ArbiterName::Weighted)
        .then(|| warning("classes-not-weighed", text(), Some("--set controller.queues.arbiter=weighted".to_owned())))
}

/// The trace left most of an empty drive erased, and all of that served as spare space.
fn small_footprint(run: &Simulation) -> Option<Warning> {
    let is_empty = run.settings().precondition == Precondition::Empty;
    if !run.origin().is_trace || !is_empty || run.history().total().erases == 0 {
        return None;
    }
    let share = pages_with_data(run.ssd()) as f64 / f64::from(run.ssd().logical_pages());
    let text = || {
        format!("the trace filled {} of the drive; the rest stayed erased and served as spare space", percent(share))
    };
    let mend = || {
        let smaller = smaller_drive(run).map_or(String::new(), |smaller| format!(", or a smaller drive: {smaller}"));
        format!("--precondition workload{smaller}")
    };
    (share < FOOTPRINT_MIN).then(|| warning("small-footprint", text(), Some(mend())))
}

/// Requests arrive faster than the drive completes them.
fn falls_behind(run: &Simulation) -> Option<Warning> {
    let Pace::Open { time_scale } = run.settings().pace else { return None };
    let tally = &run.measurement().tally;
    let waits = tally.moved(Times::response).mean()? > WAITING_MIN * tally.moved(Times::service).mean()?;
    let nanos = tally.duration_ns();
    if !waits || nanos == 0 || tally.requests < 100 || run.origin().has_no_arrivals {
        return None;
    }
    let done = tally.requests as f64 * 1e9 / nanos as f64;
    let Some(asked) = run.arrivals_per_s() else {
        let text = "all requests arrive at once: response times are mostly waiting".to_owned();
        return Some(warning("falls-behind", text, Some("--depth N".to_owned())));
    };
    let text = || {
        format!(
            "the drive falls behind: {} requests arrive per second and {} complete, so response times are mostly \
             waiting",
            grouped(asked.round() as u64),
            grouped(done.round() as u64),
        )
    };
    let slower = two_digits_up(time_scale * asked / done);
    (asked > BEHIND_MIN * done)
        .then(|| warning("falls-behind", text(), Some(format!("--depth N, or --time-scale {slower}"))))
}

/// Reads of pages without data take no time unless `timing.unmapped-read` is set.
fn unmapped_reads(run: &Simulation) -> Option<Warning> {
    let measured = run.measurement();
    let counters = run.ssd().flash().counters().since(&measured.counters_start);
    let share = counters.reads_unmapped as f64 / measured.pages_of(RequestClass::Read).max(1) as f64;
    if share <= SHARE_MIN || !run.is_timed() || run.ssd().config().timing.unmapped_read.0 > 0 {
        return None;
    }
    let text = format!(
        "{} of the pages read hold no data (never written, or trimmed), and reading them takes no time",
        percent(share.min(1.0))
    );
    let setting = "--set \"timing.unmapped-read=20 us\"";
    let mend = match run.settings().precondition {
        Precondition::Empty => format!("--precondition sequential, or {setting}"),
        _ => setting.to_owned(),
    };
    Some(warning("unmapped-reads", text, Some(mend)))
}

/// The workload states one pace, the run uses another.
fn pace_overridden(run: &Simulation) -> Option<Warning> {
    let by = match run.settings().pace {
        Pace::Closed { depth } => format!("depth {depth}"),
        Pace::Open { time_scale } => format!("time-scale {time_scale}"),
        Pace::Interactive | Pace::Tenants => return None,
    };
    if run.origin().has_no_arrivals {
        let said = run.origin().overridden.as_ref().map_or(String::new(), |said| format!(" ({said})"));
        let text =
            format!("{by} multiplies arrival times, but the workload has none{said}: all requests arrive at once");
        return Some(warning("pace-overridden", text, Some("rate=N in the workload".to_owned())));
    }
    let said = run.origin().overridden.as_ref()?;
    Some(warning("pace-overridden", format!("the workload states {said}, but {by} sets the pace of this run"), None))
}

/// Requests in flight beyond the drive's queue depth wait in the driver.
fn depth_beyond_queue(run: &Simulation) -> Option<Warning> {
    let (Pace::Closed { depth }, true) = (run.settings().pace, run.is_timed()) else { return None };
    let queue = run.queue_depth()?;
    if depth <= queue {
        return None;
    }
    let config = run.ssd().config();
    if config.timing.model == TimingModel::Serial {
        let text = format!(
            "{depth} requests are kept in flight, but timing.model = serial serves one at a time: a greater depth only makes \
             responses longer"
        );
        return Some(warning("depth-beyond-queue", text, Some("--set timing.model=parallel, or --depth 1".to_owned())));
    }
    let by_controller = config.controller.queue_depth > 0 && config.controller.queue_depth < depth;
    let by_flash = run.ssd().config_in_force().host.queue_depth.requests() < depth;
    let keys: Vec<&str> = [("controller.queue-depth", by_controller), ("host.queue-depth", by_flash)]
        .into_iter()
        .filter_map(|(key, limits)| limits.then_some(key))
        .collect();
    let text = format!(
        "{depth} requests are kept in flight, but the drive accepts {queue} at once ({}); the others wait in the driver",
        keys.first().unwrap_or(&"host.queue-depth"),
    );
    let mend = keys.iter().map(|key| format!("--set {key}={depth}")).collect::<Vec<_>>().join(" ");
    Some(warning("depth-beyond-queue", text, (depth <= QueueDepth::MAX).then_some(mend)))
}

/// The queue is as deep as the closed loop because `host.queue-depth` is `"auto"`.
fn queue_widened(run: &Simulation) -> Option<Warning> {
    let config = run.ssd().config();
    let (open, now) = (config.host.queue_depth.requests(), run.ssd().config_in_force().host.queue_depth.requests());
    let text =
        || format!("host.queue-depth is \"auto\", which means {now} here: as many requests as are kept in flight");
    (now > open)
        .then(|| warning("queue-widened", text(), Some(format!("--set host.queue-depth={open} for the usual queue"))))
}

/// Blocks that cleaning keeps erased or open do not serve as spare space.
fn reserved_blocks(run: &Simulation) -> Option<Warning> {
    let (ssd, geometry) = (run.ssd(), run.ssd().flash().geometry());
    let reserve = ssd.reserve()?;
    let pages_per_block = u64::from(geometry.pages_per_block());
    let (planes, pages) = (u64::from(geometry.planes()), u64::from(geometry.pages()));
    let kept = planes * reserve.blocks * pages_per_block;
    let spare = pages.saturating_sub(u64::from(ssd.logical_pages()) + reserve.map_pages);
    if run.history().total().erases == 0 || kept as f64 <= RESERVE_MAX * spare as f64 {
        return None;
    }
    let blocks_spare = spare as f64 / (planes * pages_per_block) as f64;
    let text = format!(
        "cleaning keeps {} of the {blocks_spare:.1} spare blocks of a plane erased or open, so {} of the flash is spare space \
         instead of {}: write amplification is higher than on a drive with more blocks",
        reserve.blocks,
        percent(spare.saturating_sub(kept) as f64 / pages as f64),
        percent(spare as f64 / pages as f64),
    );
    let enough = (u64::from(geometry.blocks_per_plane()) * kept) as f64 / (spare as f64 * RESERVE_MAX);
    let more = match ssd.config().capacity.logical.0 {
        0 => format!("--set geometry.blocks-per-plane={}", enough.ceil().max(1.0) as u64),
        _ => "more blocks in a plane".to_owned(),
    };
    Some(warning("reserved-blocks", text, Some(format!("{more}, or fewer planes, or a lower capacity.utilization"))))
}

/// Without superblocks there are no multi-plane operations.
fn planes_in_turn(run: &Simulation) -> Option<Warning> {
    let (config, geometry) = (run.ssd().config(), &run.ssd().config().geometry);
    let alone = config.block_layout().planes == 1;
    if geometry.planes_per_die == 1 || config.timing.model != TimingModel::Parallel || !alone {
        return None;
    }
    let text = format!(
        "the {} planes of a die work one at a time: geometry.planes-per-die adds capacity, not speed",
        geometry.planes_per_die
    );
    let dies = geometry.dies_per_channel * geometry.planes_per_die;
    let mend = format!(
        "multi-plane commands: --set geometry.superblock=die; or planes as dies: --set geometry.planes-per-die=1 --set \
         geometry.dies-per-channel={dies}"
    );
    Some(warning("planes-in-turn", text, (dies <= 64).then_some(mend)))
}

/// Hardly any of the trace is left after the warm-up.
fn little_measured(run: &Simulation) -> Option<Warning> {
    let (warmup, measured) = (run.settings().warmup_requests, run.measurement().tally.requests);
    let share = measured as f64 / (warmup + measured).max(1) as f64;
    let text = || {
        format!(
            "{} of the trace is measured: {} requests after {} of warm-up",
            percent(share),
            grouped(measured),
            grouped(warmup)
        )
    };
    (run.origin().is_trace && run.settings().requests.is_none() && share < MEASURED_MIN && warmup > 0)
        .then(|| warning("little-measured", text(), Some("--warmup with a smaller number".to_owned())))
}

/// Without a buffer there is nothing to flush. Where RAM that outlives a loss of power holds what was written, a flush that
/// takes no time is what the drive promises.
fn free_flushes(run: &Simulation) -> Option<Warning> {
    let (tally, config) = (&run.measurement().tally, run.ssd().config());
    let flushes = tally.times[3].response().count() as f64 / tally.requests.max(1) as f64;
    let has_ram =
        run.ssd().ram().is_some() || config.controller.write_buffer.size.0 > 0 || config.chips.write_ram.0 > 0;
    if flushes <= SHARE_MIN || has_ram {
        return None;
    }
    let text = format!(
        "{} of the requests are flushes, and they take no time: the drive has no buffer to flush",
        percent(flushes)
    );
    Some(warning("free-flushes", text, Some("--set ram.manager=lru --set \"ram.size=16 MiB\"".to_owned())))
}

/// Logical pages that hold data. O(logical pages).
fn pages_with_data(ssd: &Ssd) -> u64 {
    (0..ssd.logical_pages()).filter(|lpn| ssd.scheme().lookup(Lpn(*lpn), ssd.flash()).is_some()).count() as u64
}

/// As many logical pages hold data, at most. O(blocks).
pub(crate) fn logical_pages_with_data(ssd: &Ssd) -> u64 {
    let valid = ssd.flash().pages_valid_in_all();
    let of_map = ssd.reserve().map_or(0, |reserve| reserve.map_pages);
    let in_ram = ssd.ram().map_or(0, |ram| u64::from(ram.pages()));
    (valid.saturating_sub(of_map) + in_ram).min(u64::from(ssd.logical_pages()))
}

/// Settings of a drive that the trace would fill, if that is smaller.
fn smaller_drive(run: &Simulation) -> Option<String> {
    let (ssd, geometry) = (run.ssd(), run.ssd().flash().geometry());
    if ssd.config().capacity.logical.0 > 0 || run.origin().is_packed {
        return None; // the size that fits depends on more than the number of blocks
    }
    let written = run.history().total().host_pages.min(u64::from(ssd.logical_pages()));
    let used = if run.settings().precondition == Precondition::Empty { pages_with_data(ssd) } else { written };
    let utilization = f64::from(ssd.logical_pages()) / f64::from(geometry.pages());
    let pages_of_a_row = f64::from(geometry.planes()) * f64::from(geometry.pages_per_block());
    let to_be_filled = used as f64 / utilization / pages_of_a_row;
    let reserve = ssd.reserve().map_or(3, |reserve| reserve.blocks) as f64;
    let to_be_cleaned = reserve / RESERVE_MAX / (1.0 - utilization);
    let blocks = to_be_filled.max(to_be_cleaned).ceil().max(16.0) as u64;
    (blocks < u64::from(geometry.blocks_per_plane())).then(|| format!("--set geometry.blocks-per-plane={blocks}"))
}

/// Two significant digits, rounded up.
fn two_digits_up(value: f64) -> f64 {
    let unit = 10f64.powf(value.log10().floor() - 1.0);
    let rounded = (value / unit).ceil() * unit;
    (rounded * 1e9).round() / 1e9
}

/// A share in percent, with two significant digits.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        0.0 => "0 %".to_owned(),
        _ if percent < 0.01 => "less than 0.01 %".to_owned(),
        _ if percent < 0.1 => format!("{percent:.2} %"),
        _ if percent < 10.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!([0_u64, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        let shares = [0.0, 1e-6, 0.000_5, 0.034, 0.5, 1.0].map(percent);
        assert_eq!(shares, ["0 %", "less than 0.01 %", "0.05 %", "3.4 %", "50 %", "100 %"]);
        assert_eq!([1.234, 12.0, 0.031, 995.0].map(two_digits_up), [1.3, 12.0, 0.031, 1000.0]);
    }
}
