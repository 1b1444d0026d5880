//! FlashSim ASCII: `ms device sector pages operation`, addresses in 512 B sectors, lengths in 4 KiB pages.
//!
//! Looks like three other formats; `columns` distinguishes them.

use super::columns::Columns;
use super::{Format, Setup};
use crate::trace::parse::Parsed;
use crate::trace::record::Sink;
use crate::trace::text::{self, ParseLine};

pub(super) static FORMAT: Format = Format {
    name: "flashsim",
    summary: "FlashSim ASCII: ms device sector 4KiB-pages 1|0 (1 = read)",
    sniff: |head| Columns::FlashSim.sniff(head),
    open: text::open::<FlashSim>,
    writing: None,
    reorder_window: 0,
};

#[derive(Default)]
struct FlashSim {
    time_digits: Option<usize>,
}

impl ParseLine for FlashSim {
    const TAKES_TIME_UNIT: bool = true;

    fn set_up(&mut self, setup: &Setup) {
        self.time_digits = setup.time_digits();
    }

    #[inline]
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        Columns::FlashSim.line(line, self.time_digits, out)
    }
}
