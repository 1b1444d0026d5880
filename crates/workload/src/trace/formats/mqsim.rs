//! MQSim ASCII: `ns device sector sectors operation`, all addresses and lengths in 512 B sectors.
//!
//! Looks like three other formats; `columns` distinguishes them.

use super::columns::Columns;
use super::{Format, Setup};
use crate::trace::parse::Parsed;
use crate::trace::record::Sink;
use crate::trace::text::{self, ParseLine};

pub(super) static FORMAT: Format = Format {
    name: "mqsim",
    summary: "MQSim ASCII: ns device sector sectors 1|0 (1 = read)",
    sniff: |head| Columns::Mqsim.sniff(head),
    open: text::open::<Mqsim>,
    writing: None,
    reorder_window: 0,
};

#[derive(Default)]
struct Mqsim {
    time_digits: Option<usize>,
}

impl ParseLine for Mqsim {
    const TAKES_TIME_UNIT: bool = true;

    fn set_up(&mut self, setup: &Setup) {
        self.time_digits = setup.time_digits();
    }

    #[inline]
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        Columns::Mqsim.line(line, self.time_digits, out)
    }
}
