//! MQSim ASCII: `ns device sector sectors operation`, all addresses and lengths in 512 B sectors.
//!
//! Looks like three other formats; `columns` distinguishes them.

use super::Format;
use super::columns::Columns;
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
struct Mqsim;

impl ParseLine for Mqsim {
    #[inline]
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        Columns::Mqsim.line(line, out)
    }
}
