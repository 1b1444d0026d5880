//! Text of `blkparse` in its default format: `maj,min cpu sequence seconds pid action RWBS sector + sectors [name]`.
//!
//! A request arrives when it is queued, so `Q` events are taken; in a recording without any, `D` (issued to the driver)
//! are all that is left of the requests. `C` (completed) gives service times of the traced machine's own drive and is
//! ignored, like all other events and the summary. Events after a summary are a recording of their own. In RWBS,
//! `R`, `W` and `D` mean read, write and discard; an `F` before them is a separate flush that goes first, an `F` after
//! `W` is force-unit-access.

use super::{Format, Setup};
use crate::trace::detect::{Head, Verdict};
use crate::trace::order::TimeBase;
use crate::trace::parse::{Parsed, Words, bad, decimal_time, sector, sectors, whole};
use crate::trace::record::{Record, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::RequestKind;

pub(super) static FORMAT: Format = Format {
    name: "blkparse",
    summary: "text output of blkparse (default format); queue events are the requests, or issue events",
    sniff,
    open: text::open::<Blkparse>,
    writing: None,
    reorder_window: 4096,
};

fn sniff(head: &Head<'_>) -> Verdict {
    let (mut events, mut others) = (0usize, 0usize);
    for line in head.lines() {
        *(if event(line).is_some_and(|event| event.is_ok()) { &mut events } else { &mut others }) += 1;
    }
    if events > others { Verdict::Fits } else { Verdict::No }
}

/// The words of an event line that precede its own.
struct Event<'a> {
    device: &'a [u8],
    time: u64,
    process: u32,
    action: &'a [u8],
    rest: Words<'a>,
}

/// None if the line does not begin with `major,minor`.
fn event(line: &[u8]) -> Option<Parsed<Event<'_>>> {
    let mut words = Words(line);
    let device = words.optional()?;
    let comma = device.iter().position(|&byte| byte == b',')?;
    let (major, minor) = (&device[..comma], &device[comma + 1..]);
    (whole("", major).is_ok() && whole("", minor).is_ok()).then(|| event_after(device, words))
}

fn event_after<'a>(device: &'a [u8], mut words: Words<'a>) -> Parsed<Event<'a>> {
    whole("cpu", words.next("cpu")?)?;
    whole("sequence", words.next("sequence")?)?;
    let time = decimal_time("time", words.next("time")?, 9)?;
    let pid = words.next("pid")?;
    let Ok(process) = u32::try_from(whole("pid", pid)?) else {
        return bad("pid", pid, "a process number below 2^32");
    };
    let action = words.next("action")?;
    Ok(Event { device, time, process, action, rest: words })
}

struct Blkparse {
    in_summary: bool,
    /// The letter of the events that are requests.
    taken: u8,
}

impl Default for Blkparse {
    fn default() -> Self {
        Blkparse { in_summary: false, taken: b'Q' }
    }
}

impl ParseLine for Blkparse {
    const HAS_EVENTS: bool = true;
    const TIME_BASE: TimeBase = TimeBase::Text;

    fn set_up(&mut self, setup: &Setup) {
        self.taken = setup.events.letter();
    }

    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        let Some(event) = event(line) else {
            self.in_summary |=
                line.starts_with(b"CPU") || line.starts_with(b"Total") || line.starts_with(b"Throughput");
            if self.in_summary {
                out.ignore();
                return Ok(());
            }
            return bad("device", line, "an event line that begins with major,minor");
        };
        let event = event?;
        if self.in_summary {
            self.in_summary = false;
            out.tally.sections_apart = true;
            out.begin_section();
        }
        let &[letter] = event.action else {
            out.ignore();
            return Ok(());
        };
        out.count_event(letter);
        if letter != self.taken {
            out.ignore();
            return Ok(());
        }
        queued(event, out)
    }
}

fn queued(mut event: Event<'_>, out: &mut Sink<'_>) -> Parsed<()> {
    let rwbs = event.rest.next("RWBS")?;
    let flush_first = rwbs.starts_with(b"F");
    let flags = if flush_first { &rwbs[1..] } else { rwbs };
    let kind = match flags.first() {
        Some(b'R') => Some(RequestKind::Read),
        Some(b'W') => Some(RequestKind::Write),
        Some(b'D') => Some(RequestKind::Trim),
        _ => None,
    };
    let device = out.devices.name(event.device);
    let base = Record { time: event.time, device, process: event.process, ..Record::default() };
    if flush_first {
        out.push(Record { kind: RequestKind::Flush, ..base });
    }
    // A flush without data has no address: the process name follows.
    let data = Words(event.rest.0).optional().filter(|word| !word.starts_with(b"["));
    match (kind, data) {
        (Some(kind), Some(_)) => {
            let first_sector = sector("sector", event.rest.next("sector")?)?;
            let plus = event.rest.next("+")?;
            if plus != b"+" {
                return bad("+", plus, "a plus sign between sector and length");
            }
            let sectors = sectors("sectors", event.rest.next("sectors")?, 1)?;
            let fua = kind == RequestKind::Write && flags[1..].contains(&b'F');
            out.push(Record { first_sector, sectors, kind, fua, ..base });
        }
        (Some(_), None) if !flush_first => return bad("sector", b"", "an address; the line ends too early"),
        (None, _) if !flush_first => out.ignore(),
        _ => {}
    }
    Ok(())
}
