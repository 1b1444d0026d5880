//! Traces of smartphones' eMMC (Zhou, Pan, Wang, Xie, IISWC 2015): eight columns separated by tabs.
//!
//! `sector sectors bytes flags arrival dispatch service completion`; sectors of 512 B, times in seconds. What the flags
//! say is not documented. In the published traces bit 0 is set for writes: requests with it are the ones that rewrite
//! the journal and run on sequentially while an application is installed, and reads of the partition table at boot
//! lack it. Bit 2 is set where nothing was outstanding when the request arrived (95 % agree), so it says nothing on the
//! request. Rows are in order of completion, and the reader restores the order of arrival within a window.

use super::Format;

use crate::trace::parse::{Parsed, Words, bad, decimal_time, sector, sectors, whole};
use crate::trace::record::{Record, SECTOR, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::RequestKind;

pub(super) static FORMAT: Format = Format {
    name: "emmc",
    summary: "smartphone eMMC text (IISWC 2015): sector, sectors, bytes, flags, four times in seconds",
    sniff: text::sniff::<Emmc>,
    open: text::open::<Emmc>,
    writing: None,
    reorder_window: 4096,
};

const S_DIGITS: usize = 9;
/// The bits that occur.
const FLAGS: u64 = 0b101;
const WRITE: u64 = 0b001;

#[derive(Default)]
struct Emmc;

impl ParseLine for Emmc {
    const ASSUMED: &'static [&'static str] = &["bit 0 of the flags, which are not documented, marks writes"];

    #[inline]
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        let mut words = Words(line);
        let first_sector = sector("sector", words.next("sector")?)?;
        let sectors = sectors("sectors", words.next("sectors")?, 1)?;
        let bytes = words.next("bytes")?;
        if whole("bytes", bytes)? != u64::from(sectors) * SECTOR {
            return bad("bytes", bytes, "512 times the sectors");
        }
        let flags_text = words.next("flags")?;
        let flags = whole("flags", flags_text)?;
        if flags & !FLAGS != 0 {
            return bad("flags", flags_text, "0, 1, 4 or 5");
        }
        let time = decimal_time("arrival", words.next("arrival")?, S_DIGITS)?;
        let mut before = time;
        for name in ["dispatch", "service", "completion"] {
            let text = words.next(name)?;
            let next = decimal_time(name, text, S_DIGITS)?;
            if next < before {
                return bad(name, text, "a time not before the one to its left");
            }
            before = next;
        }
        let kind = if flags & WRITE == 0 { RequestKind::Read } else { RequestKind::Write };
        let device = out.devices.number(0);
        out.push(Record { time, first_sector, device, sectors, kind, ..Record::default() });
        Ok(())
    }
}
