//! FIU's traces (SyLab, SNIA IOTTA 391 and 414): `ns pid process sector sectors R|W major minor MD5`.
//!
//! Sectors are of 512 B. The MD5 is that of the content, per 4 KiB or (home directories) per 512 B, and is not used.
//! Names of processes may have blanks, so what follows them is counted from the end of the line. A device is shown as
//! `major.minor`, as for blkparse. Source: the README of the distribution (Koller, Rangaswami, FAST 2010).

use super::Format;
use crate::trace::parse::{Parsed, Words, bad, sector, sectors, trim, whole, whole_time};
use crate::trace::record::{Record, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::RequestKind;

pub(super) static FORMAT: Format = Format {
    name: "fiu",
    summary: "FIU (SyLab) text: ns, pid, process, sector, sectors, R|W, major, minor, MD5",
    sniff: text::sniff::<Fiu>,
    open: text::open::<Fiu>,
    writing: None,
    reorder_window: 0,
};

#[derive(Default)]
struct Fiu;

/// The last word of `text`, which becomes what precedes it.
fn last<'a>(text: &mut &'a [u8], field: &'static str) -> Parsed<&'a [u8]> {
    *text = trim(text);
    let at = text.iter().rposition(|byte| matches!(byte, b' ' | b'\t')).map_or(0, |at| at + 1);
    let (before, word) = text.split_at(at);
    *text = before;
    if word.is_empty() { bad(field, b"", "one more field; the line ends too early") } else { Ok(word) }
}

impl ParseLine for Fiu {
    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        let mut words = Words(line);
        let time = whole_time("ts", words.next("ts")?, 1)?;
        let pid = words.next("pid")?;
        let Ok(process) = u32::try_from(whole("pid", pid)?) else {
            return bad("pid", pid, "a process number below 2^32");
        };
        let mut rest = words.0;
        let digest = last(&mut rest, "MD5")?;
        if digest.len() != 32 || !digest.iter().all(u8::is_ascii_hexdigit) {
            return bad("MD5", digest, "32 hexadecimal digits");
        }
        let minor = whole("minor", last(&mut rest, "minor")?)?;
        let major = whole("major", last(&mut rest, "major")?)?;
        let kind = match last(&mut rest, "operation")? {
            b"R" => RequestKind::Read,
            b"W" => RequestKind::Write,
            other => return bad("operation", other, "R or W"),
        };
        let sectors = sectors("size", last(&mut rest, "size")?, 1)?;
        let first_sector = sector("lba", last(&mut rest, "lba")?)?;
        let device = out.devices.name(format!("{major},{minor}").as_bytes());
        out.push(Record { time, first_sector, device, sectors, process, kind, ..Record::default() });
        Ok(())
    }
}
