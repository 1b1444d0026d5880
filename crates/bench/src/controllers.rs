//! `flashwright-bench controller`: the CPU time of a request in the drive's controller, above a device that does nothing.
//!
//! The device is that of [`crate::host`]; 64 requests of the host are outstanding. Player and device are measured by turns
//! without a controller and subtracted; the median of five rounds counts. The digest covers what reaches the device, and
//! when.

use crate::cpu;
use crate::host::{Null, play, requests};
use flashwright_block::{Request, Seed};
use flashwright_ssd::Controller;

/// Nanoseconds per request.
pub const BOUND: f64 = 200.0;
/// Requests of the host.
pub const OUTSTANDING: usize = 64;

/// Parts of a controller: what they are, and their settings.
pub const PARTS: [(&str, &str); 3] = [
    ("link, overheads", ""),
    ("the same, write buffer", "write-buffer.size = \"1 MiB\""),
    (
        "the same, read buffer, all else",
        "write-buffer.size = \"1 MiB\"\nread-buffer.size = \"1 MiB\"\nread-buffer.prefetch = \"64 KiB\"\n\
         command-limit = \"64 KiB\"\nturnaround = \"1 us\"\nnoise = 0.01",
    ),
];
const LINK: &str = "interface-rate = \"600 MB/s\"\nwrite-overhead = \"1 us\"\nread-overhead = \"1 us\"";

/// A controller with these settings, above a device that does nothing.
pub fn above_nothing(settings: &str) -> Result<Controller<Null>, String> {
    let config = toml::from_str(&format!("{LINK}\n{settings}")).map_err(|error| error.to_string())?;
    Ok(Controller::new(&config, Seed(1), Null::new()))
}

/// CPU nanoseconds per request, and the device's digest.
fn cost(settings: &str, requests: &[Request]) -> Result<(f64, u64), String> {
    let mut controller = above_nothing(settings)?;
    let started = cpu::cpu_seconds();
    play(&mut controller, OUTSTANDING, requests)?;
    Ok(((cpu::cpu_seconds() - started) * 1e9 / requests.len() as f64, controller.device().digest))
}

/// As [`cost`] without a controller.
fn bare(requests: &[Request]) -> Result<f64, String> {
    let (mut device, started) = (Null::new(), cpu::cpu_seconds());
    play(&mut device, OUTSTANDING, requests)?;
    Ok((cpu::cpu_seconds() - started) * 1e9 / requests.len() as f64)
}

/// CPU nanoseconds of a request in a controller, the least first, and the device's digest.
pub fn rounds(settings: &str, load: &[Request], count: u32) -> Result<(Vec<f64>, u64), String> {
    let (mut found, mut seen) = (Vec::new(), 0);
    for _ in 0..count {
        let (whole, digest) = cost(settings, load)?;
        found.push(whole - bare(load)?);
        seen = digest;
    }
    found.sort_by(f64::total_cmp);
    Ok((found, seen))
}

/// Prints the table; with `quick` a fifth of the requests, and one round in place of five.
pub fn print(args: &[String]) -> Result<(), String> {
    let quick = match args {
        [] => false,
        [only] if only == "--quick" => true,
        _ => return Err(format!("controller: found {}, known: --quick", args.join(" "))),
    };
    let (count, rounds_max) = if quick { (100_000, 1) } else { (500_000, 5) };
    println!("machine: {}", cpu::machine());
    println!("core: {}\n", cpu::pin_to_one_core().map_or("not pinned".to_owned(), |core| core.to_string()));
    println!("ns a request, goal {BOUND:.0}");
    println!("{:<34} {:>10} {:>10}   digest", "parts", "random", "runs of 8");
    let loads = [requests(false, count), requests(true, count)];
    for (name, settings) in PARTS {
        let (mut line, mut digest) = (format!("{name:<34}"), 0_u64);
        for load in &loads {
            let (found, seen) = rounds(settings, load, rounds_max)?;
            digest = digest.rotate_left(1) ^ seen;
            line += &format!(" {:>10.0}", found[found.len() / 2]);
        }
        println!("{line}   {digest:016x}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are this program's own: an optimisation that changes what reaches the device shows here.
    #[test]
    fn every_controller_runs_and_keeps_its_answers() {
        let loads = [requests(false, 5_000), requests(true, 5_000)];
        let digests: Vec<String> = PARTS
            .iter()
            .flat_map(|(_, settings)| loads.each_ref().map(|load| cost(settings, load).expect("runs").1))
            .map(|digest| format!("{digest:016x}"))
            .collect();
        let expected = [
            "d8e9d6971f87c1de",
            "1d8204f3e235cb23",
            "c8b5893baca06f68",
            "8695925b580be13d",
            "445e8b56ab1fa53e",
            "a6a61d1492f5a1b4",
        ];
        assert_eq!(digests, expected);
    }
}
