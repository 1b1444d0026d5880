//! ASCII columns in bytes: `ms device offset bytes operation`, in which excerpts of the MSR traces circulate.
//!
//! Looks like three other formats; `columns` distinguishes them.

use super::columns::Columns;
use super::{Format, Setup};
use crate::trace::parse::Parsed;
use crate::trace::record::Sink;
use crate::trace::text::{self, ParseLine};

pub(super) static FORMAT: Format = Format {
    name: "bytes",
    summary: "ASCII in bytes: ms device offset bytes 1|0 (1 = read)",
    sniff: |head| Columns::Bytes.sniff(head),
    open: text::open::<Bytes>,
    writing: None,
    reorder_window: 0,
};

#[derive(Default)]
struct Bytes {
    time_digits: Option<usize>,
}

impl ParseLine for Bytes {
    const TAKES_TIME_UNIT: bool = true;

    fn set_up(&mut self, setup: &Setup) {
        self.time_digits = setup.time_digits();
    }

    #[inline]
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        Columns::Bytes.line(line, self.time_digits, out)
    }
}
