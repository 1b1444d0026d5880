//! Speed of reading traces: generated SPC and MSR text, and the same as `.fwt`.
//!
//! "one pass" overlays the devices; "two passes" lays them end to end, which reads a text file twice.

use crate::cpu::cpu_seconds;
use flashwright_workload::trace::{Layout, TraceOptions, TraceReader, convert};
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

/// One way of reading one file.
pub struct Reading {
    pub format: &'static str,
    pub passes: &'static str,
    pub requests: u64,
    pub digest: u64,
    pub requests_per_cpu_s: f64,
}

/// Writes traces of `lines` requests to a temporary folder and reads them.
pub fn measure(lines: u64) -> Result<Vec<Reading>, Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("flashwright-bench-{}-{lines}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let result = measure_in(&folder, lines);
    fs::remove_dir_all(&folder)?;
    result
}

fn measure_in(folder: &Path, lines: u64) -> Result<Vec<Reading>, Box<dyn Error>> {
    let (spc, msr, fwt) = (folder.join("trace.spc"), folder.join("trace.msr"), folder.join("trace.fwt"));
    write_spc(&spc, lines)?;
    write_msr(&msr, lines)?;
    convert(&spc, &fwt, &TraceOptions::default(), "flashwright", &Default::default())?;
    let mut readings = Vec::new();
    for (format, path) in [("spc", &spc), ("msr", &msr), ("fwt", &fwt)] {
        for (passes, layout) in [("one pass", Layout::Overlay), ("two passes", Layout::Concatenate)] {
            let (requests, digest, seconds) = read(path, layout)?;
            let requests_per_cpu_s = requests as f64 / seconds;
            readings.push(Reading { format, passes, requests, digest, requests_per_cpu_s });
        }
    }
    Ok(readings)
}

/// Requests, a digest of them, and CPU seconds.
fn read(path: &Path, layout: Layout) -> Result<(u64, u64, f64), Box<dyn Error>> {
    let start = cpu_seconds();
    let mut reader = TraceReader::open(path, &TraceOptions { layout, ..TraceOptions::default() })?;
    let mut batch = Vec::with_capacity(4096);
    let (mut requests, mut digest) = (0u64, 0u64);
    while reader.read(&mut batch, 4096)? > 0 {
        requests += batch.len() as u64;
        for request in &batch {
            let mixed = request.arrival.0 ^ request.first_sector << 20 ^ u64::from(request.sectors) << 50;
            digest = (digest.rotate_left(5) ^ mixed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        batch.clear();
    }
    Ok((requests, digest, cpu_seconds() - start))
}

/// Pseudorandom numbers that are always the same.
fn scatter(line: u64) -> u64 {
    let mixed = line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

fn write_spc(path: &Path, lines: u64) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for line in 0..lines {
        let draw = scatter(line);
        let (asu, lba, size) = (draw % 24, draw >> 20 & 0xff_ffff, 512 * (1 + (draw >> 50) % 16));
        let (opcode, us) = (if draw & 1 == 0 { 'w' } else { 'r' }, line * 8131);
        writeln!(out, "{asu},{lba},{size},{opcode},{}.{:06}", us / 1_000_000, us % 1_000_000)?;
    }
    out.flush()
}

pub fn write_msr(path: &Path, lines: u64) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for line in 0..lines {
        let draw = scatter(line);
        let (offset, size) = ((draw >> 20 & 0xff_ffff) * 4096, 512 * (1 + (draw >> 50) % 16));
        let (kind, ticks) = (if draw & 1 == 0 { "Write" } else { "Read" }, 128_166_372_000_000_000 + line * 40_391);
        writeln!(out, "{ticks},prxy,{},{kind},{offset},{size},{}", draw & 1, draw >> 50)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small run, so that it stays working; the digest reveals an optimisation that changes what is read.
    #[test]
    fn every_way_of_reading_gives_its_requests() {
        let readings = measure(20_000).unwrap();
        assert!(readings.iter().all(|reading| reading.requests == 20_000));
        // The .fwt file keeps the devices of the SPC text it was made from.
        assert_eq!((readings[0].digest, readings[1].digest), (readings[4].digest, readings[5].digest));
    }
}
