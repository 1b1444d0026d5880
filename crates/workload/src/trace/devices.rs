//! The layout of a trace's devices in the single address space of its requests.

use super::error::TraceError;
use super::formats::{Format, Setup};
use super::input::Input;
use super::options::{DeviceFilter, DeviceSpan, Layout, TraceOptions};
use super::record::{DeviceTable, KnownDevice, Record, Sink, Tally};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// Spans found by a first pass are rounded up to this, so that every device keeps its 4 KiB alignment.
const ALIGN_SECTORS: u64 = 8;
/// Records decoded at once.
pub(crate) const BATCH: usize = 4096;

/// One device of the trace.
#[derive(Clone, Copy, Debug)]
struct Place {
    taken: bool,
    base: u64,
    /// End of the space laid out for it; `u64::MAX` if nothing is.
    span: u64,
    end: u64,
    requests: u64,
}

/// The layout of a trace's devices.
pub(crate) struct Places {
    path: PathBuf,
    filter: DeviceFilter,
    /// The devices laid out end to end; `None` if all start at 0.
    plan: Option<Vec<DeviceSpan>>,
    /// By index of the device table.
    places: Vec<Place>,
}

impl Places {
    /// Lays out the devices as set in `options`; `known` is the file's own information.
    pub(crate) fn new(
        path: &Path,
        options: &TraceOptions,
        known: Option<Vec<KnownDevice>>,
        scan: impl FnOnce() -> Result<Vec<KnownDevice>, TraceError>,
    ) -> Result<Self, TraceError> {
        let filter = options.devices.clone();
        let devices = match (options.layout, known) {
            (Layout::Overlay, _) => None,
            (_, _) if !options.spans.is_empty() => Some(options.spans.iter().map(given).collect()),
            (_, Some(known)) => Some(known),
            (_, None) => Some(scan()?),
        };
        let plan = devices.map(|devices| concatenate(path, devices, &filter)).transpose()?;
        Ok(Places { path: path.to_owned(), filter, plan, places: Vec::new() })
    }

    /// The position of `record`, or `None` if its device is filtered out.
    #[inline]
    pub(crate) fn place(&mut self, record: &Record, names: &DeviceTable) -> Result<Option<u64>, TraceError> {
        let at = record.device as usize;
        if at >= self.places.len() {
            self.meet(names)?;
        }
        let place = &mut self.places[at];
        if !place.taken {
            return Ok(None);
        }
        let end = record.first_sector + u64::from(record.sectors);
        if end > place.end {
            place.end = end;
        }
        place.requests += 1;
        if end > place.span {
            return self.beyond(at, end, names);
        }
        Ok(Some(place.base + record.first_sector))
    }

    #[cold]
    fn beyond(&self, at: usize, end: u64, names: &DeviceTable) -> Result<Option<u64>, TraceError> {
        let (name, span) = (&names.names()[at], self.places[at].span);
        let what =
            format!("device {name} reaches sector {end}, beyond the {span} sectors of its span; give it a larger span");
        Err(TraceError::Layout { path: self.path.clone(), what })
    }

    /// Assigns places to new devices in `names`.
    #[cold]
    fn meet(&mut self, names: &DeviceTable) -> Result<(), TraceError> {
        for name in &names.names()[self.places.len()..] {
            let taken = self.filter.takes(name);
            let planned = self.plan.as_deref().map(|plan| plan.iter().find(|device| device.name == *name));
            let (base, span) = match planned {
                None => (0, u64::MAX),
                Some(Some(device)) => (device.base_sector, device.sectors),
                Some(None) if !taken => (0, 0),
                Some(None) => {
                    let what = format!("no span is given for device {name}; give spans for all devices or for none");
                    return Err(TraceError::Layout { path: self.path.clone(), what });
                }
            };
            self.places.push(Place { taken, base, span, end: 0, requests: 0 });
        }
        Ok(())
    }

    /// The devices: as laid out, or as seen so far.
    pub(crate) fn devices(&self, names: &DeviceTable) -> Vec<DeviceSpan> {
        if let Some(plan) = &self.plan {
            return plan.clone();
        }
        let mut devices: Vec<_> = (self.places.iter().zip(names.names()))
            .filter(|(place, _)| place.taken)
            .map(|(place, name)| DeviceSpan {
                name: name.clone(),
                base_sector: place.base,
                sectors: place.end,
                requests: place.requests,
            })
            .collect();
        devices.sort_by(|a, b| natural(&a.name, &b.name));
        devices
    }

    /// Requests in the whole trace, where known.
    pub(crate) fn requests(&self) -> Option<u64> {
        let plan = self.plan.as_deref()?;
        let known = plan.iter().all(|device| device.requests > 0);
        let mut requests = plan.iter().map(|device| device.requests);
        if known { requests.try_fold(0u64, u64::checked_add) } else { None }
    }
}

fn given(span: &DeviceSpan) -> KnownDevice {
    KnownDevice { name: span.name.clone(), span_sectors: span.sectors, requests: 0 }
}

/// Places the devices that `filter` selects end to end.
fn concatenate(path: &Path, devices: Vec<KnownDevice>, filter: &DeviceFilter) -> Result<Vec<DeviceSpan>, TraceError> {
    check_wanted(path, &devices, filter)?;
    let mut base = 0u64;
    let mut plan = Vec::new();
    for device in devices.into_iter().filter(|device| filter.takes(&device.name)) {
        let (name, sectors, requests) = (device.name, device.span_sectors, device.requests);
        plan.push(DeviceSpan { name, base_sector: base, sectors, requests });
        // Below 2^64 B, so that no sum of an address and a length ever overflows.
        base = base.checked_add(sectors).filter(|end| *end <= u64::MAX / 512).ok_or_else(|| TraceError::Layout {
            path: path.to_owned(),
            what: "the devices together reach past 2^64 B; filter devices, or overlay them".to_owned(),
        })?;
    }
    Ok(plan)
}

/// Devices shown in an error, at most.
const SHOWN_DEVICES: usize = 20;

/// A name that no device has is a typing error, not a request for fewer requests.
fn check_wanted(path: &Path, devices: &[KnownDevice], filter: &DeviceFilter) -> Result<(), TraceError> {
    let DeviceFilter::Only(wanted) = filter else { return Ok(()) };
    for name in wanted {
        let only = DeviceFilter::Only(vec![name.clone()]);
        if !devices.iter().any(|device| only.takes(&device.name)) {
            let known: Vec<_> = devices.iter().take(SHOWN_DEVICES).map(|device| device.name.as_str()).collect();
            let more = if devices.len() > SHOWN_DEVICES { ", ..." } else { "" };
            let what = format!("the trace has no device {name:?}; it has {}{more}", known.join(", "));
            return Err(TraceError::Layout { path: path.to_owned(), what });
        }
    }
    Ok(())
}

/// The first pass: every device with its span and its requests, in order of names; and whether no time goes back.
pub(crate) fn scan(path: &Path, format: &Format, setup: &Setup) -> Result<(Vec<KnownDevice>, bool), TraceError> {
    let mut decoder = (format.open)(Input::open(path)?, setup)?;
    let (mut names, mut tally, mut records) = (DeviceTable::default(), Tally::default(), Vec::with_capacity(BATCH));
    let mut found: Vec<(u64, u64)> = Vec::new();
    let (mut last, mut in_order) = (0, true);
    loop {
        records.clear();
        tally.sections.clear();
        decoder.fill(&mut Sink { records: &mut records, devices: &mut names, tally: &mut tally }, BATCH)?;
        if records.is_empty() {
            break;
        }
        found.resize(names.len(), (0, 0));
        for record in &records {
            let (end, requests) = &mut found[record.device as usize];
            *end = (*end).max(record.first_sector + u64::from(record.sectors));
            *requests += 1;
            in_order &= record.time >= last;
            last = record.time;
        }
    }
    let mut devices: Vec<_> = (found.iter().zip(names.names()))
        .map(|((end, requests), name)| KnownDevice {
            name: name.clone(),
            span_sectors: end.next_multiple_of(ALIGN_SECTORS),
            requests: *requests,
        })
        .collect();
    devices.sort_by(|a, b| natural(&a.name, &b.name));
    Ok((devices, in_order))
}

/// Sort key of a text with numbers by value: `disk2` before `disk10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    while let (Some(l), Some(r)) = (left.chars().next(), right.chars().next()) {
        let digits = l.is_ascii_digit() && r.is_ascii_digit();
        let run = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (l_len, r_len) = if digits { (run(left), run(right)) } else { (l.len_utf8(), r.len_utf8()) };
        let (l_part, r_part) = (&left[..l_len], &right[..r_len]);
        let order = if digits {
            let (l_bare, r_bare) = (l_part.trim_start_matches('0'), r_part.trim_start_matches('0'));
            l_bare.len().cmp(&r_bare.len()).then_with(|| l_bare.cmp(r_bare))
        } else {
            l_part.cmp(r_part)
        };
        if order != Ordering::Equal {
            return order;
        }
        (left, right) = (&left[l_len..], &right[r_len..]);
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_people_count() {
        let mut names = ["10", "9", "proxy.2", "proxy.10", "1", "proxy", "01"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["01", "1", "9", "10", "proxy", "proxy.2", "proxy.10"]);
    }
}
