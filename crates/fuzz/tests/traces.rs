//! Traces of every format, named and detected from the content; also `.fwt` with valid checksums.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use crate::damage::{self, Draws};
use flashwright_workload::trace::{
    AddressMap, Layout, Mapped, TraceError, TraceInfo, TraceOptions, TraceReader, formats,
};
use std::io::Write as _;
use std::path::Path;

/// 32 GiB: what is summed up of a trace in a few milliseconds.
const SECTORS_SUMMED: u64 = 1 << 26;

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/traces");
    damage::corpus(&folder).into_iter().map(|(_, content)| content).collect()
}

/// Descriptions of tables; each fits a file of the corpus, or nearly.
const COLUMNS: [&str; 4] = [
    "time=1:us,op=4,lba=2,size=3:sectors",
    "time=1:100ns,op=4,device=3,offset=5,size=6:bytes,process=7",
    "time=op_time:s,op=op_name,read=1|2|5,write=3|4|6,skip=100,offset=io_offset,size=io_size:bytes",
    "time=1:date,op=read,lba=2:pages:hex,size=4KiB,delimiter=comma,header=yes",
];

/// Everything that reads a trace, on this content; true if it was read to its end.
fn read(path: &Path, content: &[u8], draws: &mut Draws<'_>) -> bool {
    std::fs::write(path, content).unwrap();
    let format = if draws.below(2) == 0 { None } else { Some(draws.pick(formats()).name().to_owned()) };
    let layout = if draws.below(2) == 0 { Layout::Overlay } else { Layout::Concatenate };
    let columns = (draws.below(8) == 0).then(|| (*draws.pick(&COLUMNS)).to_owned());
    let format = format.filter(|_| columns.is_none());
    let skip_bad_lines = draws.below(4) == 0;
    let options = TraceOptions { format, layout, columns, skip_bad_lines, ..TraceOptions::default() };
    let maps = [AddressMap::DENSE, AddressMap::Wrap, AddressMap::Reject];
    let mut sectors = 0;
    let whole = all(path, &options, *draws.pick(&maps), &mut sectors);
    if let Err(error) = &whole {
        damage::assert_one_line(error);
    }
    // What it takes is proportional to the pages touched, as it says: a request of 2 TiB is skipped.
    if sectors <= SECTORS_SUMMED
        && let Err(error) = TraceInfo::of(path, &options)
    {
        damage::assert_one_line(&error.to_string());
    }
    whole.is_ok()
}

/// Reads a trace as it is and fitted to a drive; adds up the sectors of its requests.
fn all(path: &Path, options: &TraceOptions, map: AddressMap, sectors: &mut u64) -> Result<(), String> {
    let said = |error: TraceError| error.to_string();
    let mut reader = TraceReader::open(path, options).map_err(said)?;
    let mut batch = Vec::new();
    while reader.read(&mut batch, 1000).map_err(said)? > 0 {
        assert!(batch.is_sorted_by_key(|request| request.arrival), "arrivals go back");
        *sectors += batch.iter().map(|request| u64::from(request.sectors)).sum::<u64>();
        batch.clear();
    }
    reader.stats().first_bad_lines.iter().for_each(|line| damage::assert_one_line(line));
    let mut mapped =
        Mapped::new(TraceReader::open(path, options).map_err(said)?, map, 1 << 16).map_err(|e| e.to_string())?;
    use flashwright_block::RequestSource as _;
    while mapped.fill(&mut batch, 1000).map_err(|error| error.0)? > 0 {
        assert!(batch.iter().all(|request| request.end_sector() <= 1 << 16), "past the drive");
        batch.clear();
    }
    Ok(())
}

#[test]
fn traces() {
    let files = corpus();
    let path = damage::scratch("trace");
    damage::fuzz("traces", |draws| {
        let good = draws.pick(&files).clone();
        let mut content = damage::damaged(draws, &good, &files);
        // Damage within a compressed stream seldom gets past its checksum; before it, it does.
        content = match draws.below(8) {
            0 => gzip(&content),
            1 => bzip2(&content),
            2 => zstd::bulk::compress(&content, 1).unwrap(),
            _ => content,
        };
        read(&path, &content, draws);
    });
}

#[test]
fn fwt_whose_checksums_hold() {
    let files = corpus();
    let path = damage::scratch("trace.fwt");
    damage::fuzz("fwt_whose_checksums_hold", |draws| {
        let header =
            damage::damaged(draws, b"label: a\nnote: b\norigin: spc\ndevice: 2 4096 0\ndevice: 1 8 x y\n", &files);
        let count = draws.below(6);
        let mut columns = vec![0u8; count * 6];
        for byte in &mut columns {
            *byte = if draws.below(2) == 0 { 2 * (draws.byte() & 3) } else { draws.byte() };
        }
        let columns = if draws.below(4) == 0 { damage::damaged(draws, &columns, &files) } else { columns };
        let total = if draws.below(8) == 0 { draws.below(1 << 20) } else { count };
        read(&path, &fwt(&header, count, &columns, total), draws);
    });
}

/// A file of version 1, in which every checksum stands for itself: with them it is what it says, whatever that is.
fn fwt(header: &[u8], count: usize, columns: &[u8], total: usize) -> Vec<u8> {
    let number = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
    let mut file = b"\x89FWT\r\n\x1a\n".to_vec();
    file.extend([number(1), number(header.len())].concat());
    file.extend((total as u64).to_le_bytes());
    file.extend(crc32fast::hash(header).to_le_bytes());
    file.extend(header);
    if count > 0 {
        let packed = zstd::bulk::compress(columns, 1).unwrap();
        file.extend([number(count), number(packed.len()), number(columns.len())].concat());
        file.extend(crc32fast::hash(&packed).to_le_bytes());
        file.extend(packed);
    }
    let mut footer = vec![0; 4];
    footer.extend((total as u64).to_le_bytes());
    file.extend(&footer);
    file.extend(crc32fast::hash(&footer).to_le_bytes());
    file
}

/// The maker of such files makes good ones of good columns: two requests of 8 sectors.
#[test]
fn a_file_that_is_made_here_is_read() {
    let path = damage::scratch("good.fwt");
    std::fs::write(&path, fwt(b"device: 2 64 0\n", 2, &[0, 5, 0, 0, 8, 8, 1, 0, 0, 0, 0, 0], 2)).unwrap();
    let mut reader = TraceReader::open(&path, &TraceOptions::default()).unwrap();
    let mut batch = Vec::new();
    assert_eq!(reader.read(&mut batch, 9).unwrap(), 2);
    assert_eq!((batch[1].arrival.0, batch[1].first_sector, batch[1].sectors), (5, 8, 8));
}

/// Found by fuzzing: what devices are said to have sums to more than a number holds.
#[test]
fn devices_of_a_header_that_are_too_many_are_told() {
    let path = damage::scratch("sums.fwt");
    let open = |header: &str, layout| {
        std::fs::write(&path, fwt(header.as_bytes(), 1, &[0, 0, 8, 1, 0, 0], 1)).unwrap();
        let options = TraceOptions { layout, ..TraceOptions::default() };
        TraceReader::open(&path, &options)?.read(&mut Vec::new(), 9)
    };
    let most = u64::MAX;
    for layout in [Layout::Overlay, Layout::Concatenate] {
        assert_eq!(open(&format!("device: {most} 64 a\ndevice: 2 64 b\n"), layout).unwrap(), 1);
        let error = open(&format!("device: 1 64 a\ndevice: 1 {most} b\n"), layout).unwrap_err().to_string();
        assert!(error.contains("its devices together reach past 2^64 B"), "{error}");
    }
}

/// Every file of the corpus can be read, or gives an error of one line.
#[test]
fn the_corpus() {
    let path = damage::scratch("corpus");
    let mut good = 0;
    for content in corpus() {
        for bits in 0..16u8 {
            // Named and not, both layouts.
            good += u32::from(read(
                &path,
                &content,
                &mut Draws::of(&[0, 0, bits & 1, 0, 0, bits & 2, 0, 0, 1, 0, 0, bits >> 2]),
            ));
        }
    }
    assert!(good > 50, "{good}");
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(content).unwrap();
    out.finish().unwrap()
}

fn bzip2(content: &[u8]) -> Vec<u8> {
    let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    out.write_all(content).unwrap();
    out.finish().unwrap()
}
