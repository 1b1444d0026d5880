//! Reads two million lines each of SPC and MSR text and prints requests per CPU second.
//!
//! `cargo run --release -p flashwright-workload --example trace_speed [lines]`
//!
//! "one pass" overlays the devices; "two passes" lays them end to end, which reads the file twice. A virtual machine
//! with two cores, shared with other work (November 2026), printed:
//!
//! ```text
//! spc  one pass   13.3 M requests per CPU second      spc  two passes   7.4 M
//! msr  one pass   10.5 M                              msr  two passes   5.6 M
//! fwt  either     14.3 M (devices and spans stand in its header)
//! ```
#![allow(clippy::print_stdout)]

use flashwright_workload::trace::{Layout, TraceOptions, TraceReader};
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let lines = std::env::args().nth(1).map_or(Ok(2_000_000), |text| text.parse())?;
    let folder = std::env::temp_dir().join(format!("trace-speed-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let result = measure(&folder, lines);
    fs::remove_dir_all(&folder)?;
    result
}

fn measure(folder: &Path, lines: u64) -> Result<(), Box<dyn Error>> {
    let (spc, msr, fwt) = (folder.join("trace.spc"), folder.join("trace.msr"), folder.join("trace.fwt"));
    write_spc(&spc, lines)?;
    write_msr(&msr, lines)?;
    let options = TraceOptions::default();
    flashwright_workload::trace::convert(&spc, &fwt, &options, "flashwright", &Default::default())?;
    for path in [&spc, &msr, &fwt] {
        for (passes, layout) in [("one pass", Layout::Overlay), ("two passes", Layout::Concatenate)] {
            let (requests, digest, seconds) = read(path, layout)?;
            let bytes = fs::metadata(path)?.len();
            println!(
                "{:11} {passes:10} {requests} requests, {:5.1} MB, digest {digest:016x}, {:6.2} M requests per CPU second",
                path.extension().unwrap_or_default().to_string_lossy(),
                bytes as f64 / 1e6,
                requests as f64 / seconds / 1e6,
            );
        }
    }
    Ok(())
}

/// Requests, a digest of them, and CPU seconds.
fn read(path: &Path, layout: Layout) -> Result<(u64, u64, f64), Box<dyn Error>> {
    let start = cpu_seconds()?;
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
    Ok((requests, digest, cpu_seconds()? - start))
}

/// Time on a processor of this process, user and system, in steps of 10 ms.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(')').next().ok_or("no process name in /proc/self/stat")?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: f64 = fields.next().ok_or("no user time")?.parse()?;
    let system: f64 = fields.next().ok_or("no system time")?.parse()?;
    Ok((user + system) / 100.0)
}

/// Numbers that look random and are always the same.
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

fn write_msr(path: &Path, lines: u64) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for line in 0..lines {
        let draw = scatter(line);
        let (offset, size) = ((draw >> 20 & 0xff_ffff) * 4096, 512 * (1 + (draw >> 50) % 16));
        let (kind, ticks) = (if draw & 1 == 0 { "Write" } else { "Read" }, 128_166_372_000_000_000 + line * 40_391);
        writeln!(out, "{ticks},prxy,{},{kind},{offset},{size},{}", draw & 1, draw >> 50)?;
    }
    out.flush()
}
