//! Meta's Tectonic (Baleen, CacheLib): `block_id io_offset io_size op_time op_name ...`, requests to a bulk store.
//!
//! The header line names the columns, in the order of its year; it is needed to recognise the format. Offset and size
//! are bytes within a block, and a block is named by its number and, where there is one, its Reed-Solomon shard. Time
//! is in seconds. Operations: 1, 2 and 5 get, 3, 4 and 6 put, 100 is unknown and ignored; the CSV of CacheLib writes
//! `getChunkData.…` and `putChunk.…`. Sources: ftp.pdl.cmu.edu/pub/datasets/Baleen24 (Wong et al., FAST 2024) and the
//! trace formats of CacheLib.

use super::Format;
use crate::trace::detect::{Head, Verdict};
use crate::trace::parse::{Parsed, bad, byte_range, decimal_time, trim, whole};
use crate::trace::record::{Record, Sink};
use crate::trace::text::{self, ParseLine};
use flashwright_block::RequestKind;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

pub(super) static FORMAT: Format = Format {
    name: "tectonic",
    summary: "Meta Tectonic (Baleen, CacheLib) with its header line: block, offset, bytes, seconds, get|put",
    sniff,
    open: text::open::<Tectonic>,
    writing: None,
    reorder_window: 0,
};

/// What a block is given of the address space: Tectonic's have at most 8 MiB.
const BLOCK_BYTES: u64 = 8 << 20;
/// CacheLib's traces of 2022 say 40 MB for each block.
const LARGE_BLOCK_BYTES: u64 = 40 << 20;

fn sniff(head: &Head<'_>) -> Verdict {
    if head.lines().take(4).any(|line| Columns::find(line).is_some()) { Verdict::Fits } else { Verdict::No }
}

/// Positions of the columns.
#[derive(Clone, Copy, Debug)]
struct Columns {
    separator: u8,
    block: usize,
    shard: Option<usize>,
    offset: usize,
    size: usize,
    time: usize,
    operation: usize,
    block_bytes: u64,
}

impl Default for Columns {
    /// The columns that all years without commas have.
    fn default() -> Self {
        Columns {
            separator: b' ',
            block: 0,
            offset: 1,
            size: 2,
            time: 3,
            operation: 4,
            shard: None,
            block_bytes: BLOCK_BYTES,
        }
    }
}

impl Columns {
    /// Those of a header line, which may begin with `#`.
    fn find(line: &[u8]) -> Option<Columns> {
        let line = trim(line.strip_prefix(b"#").unwrap_or(line));
        let separator = if line.contains(&b',') { b',' } else { b' ' };
        let at = |wanted: &str| line.split(|byte| *byte == separator).position(|name| trim(name) == wanted.as_bytes());
        Some(Columns {
            separator,
            block: at("block_id")?,
            shard: at("rs_shard_id"),
            offset: at("io_offset")?,
            size: at("io_size")?,
            time: at("op_time")?,
            operation: at("op_name")?,
            block_bytes: if at("block_id_size").is_some() { LARGE_BLOCK_BYTES } else { BLOCK_BYTES },
        })
    }
}

#[derive(Default)]
struct Tectonic {
    columns: Columns,
    /// Blocks in order of first use.
    blocks: HashMap<(u64, u64), u64, BuildHasherDefault<DefaultHasher>>,
}

impl ParseLine for Tectonic {
    const ASSUMED: &'static [&'static str] = &[
        "the trace has no addresses on a disk: its blocks are laid side by side in order of first use",
        "a row is one request, whatever its op_count",
    ];

    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) -> Parsed<()> {
        if let Some(columns) = Columns::find(line) {
            self.columns = columns;
            return Ok(());
        }
        if line.starts_with(b"#") {
            out.ignore();
            return Ok(());
        }
        let columns = self.columns;
        let field = |name: &'static str, at: usize| {
            let found = line.split(|byte| *byte == columns.separator).nth(at).map(trim);
            found.map_or_else(|| bad(name, b"", "one more field; the line ends too early"), Ok)
        };
        let number = |name: &'static str, at: usize| whole(name, field(name, at)?);
        let key = (number("block_id", columns.block)?, columns.shard.map_or(Ok(0), |at| number("rs_shard_id", at))?);
        let offset = number("io_offset", columns.offset)?;
        let size_text = field("io_size", columns.size)?;
        let size = whole("io_size", size_text)?;
        if offset.checked_add(size).is_none_or(|end| end > columns.block_bytes) {
            return bad("io_size", size_text, "a range within a block of 8 MiB (40 MiB with block_id_size)");
        }
        let time = decimal_time("op_time", field("op_time", columns.time)?, 9)?;
        let kind = match field("op_name", columns.operation)? {
            b"1" | b"2" | b"5" => RequestKind::Read,
            b"3" | b"4" | b"6" => RequestKind::Write,
            name if name.starts_with(b"get") => RequestKind::Read,
            name if name.starts_with(b"put") => RequestKind::Write,
            b"100" => {
                out.ignore();
                return Ok(());
            }
            other => return bad("op_name", other, "1 to 6, 100, getChunkData.… or putChunk.…"),
        };
        let met = self.blocks.len() as u64;
        let block = *self.blocks.entry(key).or_insert(met);
        let Some((first_sector, sectors)) = byte_range(block * columns.block_bytes + offset, size) else {
            return bad("io_size", size_text, "a request below 2 TiB");
        };
        let device = out.devices.number(0);
        out.push(Record { time, first_sector, device, sectors, kind, ..Record::default() });
        Ok(())
    }
}
