//! Several traces as tenants of one drive.

use super::convert::{ConvertReport, TraceLabel, TraceWriter, noted};
use super::copies::{ALIGN_SECTORS, Lane, Lanes, Measured, measure};
use super::error::TraceError;
use super::formats;
use super::options::{TraceOptions, TraceStats};
use super::reader::Doubt;
use super::record::{About, KnownDevice};
use flashwright_block::Nanos;
use std::path::{Path, PathBuf};

/// Requests merged at once.
const BATCH: usize = 4096;

/// One of the traces that are merged.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// Its name, that of its device in the merged trace. No two may have the same.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// How it is read.
    pub options: TraceOptions,
    /// When its first request arrives.
    pub start: Nanos,
}

/// Merges traces by arrival and writes them to `to` in the format called `format`.
///
/// Each is put behind the one before, from a multiple of 1 MiB on, so none touches another's addresses. A Flashwright
/// trace keeps them as devices, which [`super::DeviceFilter`] takes apart again. Of equal arrivals, the tenant that has
/// made the fewest requests comes first.
///
/// # Errors
/// [`TraceError`]; `to` is then unchanged.
pub fn merge(
    tenants: &[Tenant],
    to: impl AsRef<Path>,
    format: &str,
    label: &TraceLabel,
) -> Result<ConvertReport, TraceError> {
    let target = formats::find(format)?;
    let (mut lanes, mut devices, mut base) = (Vec::new(), Vec::new(), 0_u64);
    let (mut read, mut notes, mut doubts) = (TraceStats::default(), Vec::new(), Vec::new());
    for tenant in tenants {
        let found = measure(&tenant.path, &tenant.options)?;
        let span = found.end_sector.next_multiple_of(ALIGN_SECTORS);
        lanes.push(Lane::whole(&tenant.path, &tenant.options, base, tenant.start)?);
        devices.push(KnownDevice { name: tenant.name.clone(), span_sectors: span, requests: found.requests });
        base = base.checked_add(span).filter(|end| *end <= u64::MAX / 512).ok_or_else(|| TraceError::Layout {
            path: tenant.path.clone(),
            what: "the traces together reach past 2^64 B; keep a range of them".to_owned(),
        })?;
        add(&mut read, &found);
        notes.extend(found.notes.iter().map(|text| format!("{}: {text}", tenant.name)));
        let named = |doubt: Doubt| Doubt { text: format!("{}: {}", tenant.name, doubt.text), ..doubt };
        doubts.extend(found.doubts.into_iter().map(named));
    }
    let mut lanes = Lanes::new(lanes)?;
    let TraceLabel { label, note, origin } = label.clone();
    let note = noted(&note, &notes, &doubts);
    let about = About { label, note, origin, requests: None, devices: Some(devices) };
    let mut writer = TraceWriter::begin(to.as_ref(), target, &about)?;
    let mut batch = Vec::with_capacity(BATCH);
    while lanes.read_each(BATCH, |request, _| batch.push(request))? > 0 {
        batch.iter().try_for_each(|request| writer.write(request))?;
        batch.clear();
    }
    let mut report = writer.finish()?;
    (report.read, report.notes, report.doubts) = (read, notes, doubts);
    Ok(report)
}

fn add(all: &mut TraceStats, found: &Measured) {
    let more = &found.stats;
    all.requests += more.requests;
    all.bad_lines += more.bad_lines;
    all.first_bad_lines.extend(more.first_bad_lines.iter().cloned());
    all.ignored_events += more.ignored_events;
    all.empty_requests += more.empty_requests;
    all.filtered_out += more.filtered_out;
    all.out_of_order += more.out_of_order;
    all.reordered += more.reordered;
}
