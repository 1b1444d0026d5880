//! `flashwright-bench host`: the CPU time of a request in each scheduler, before a device that does nothing.
//!
//! The device accepts 32 requests at once and completes each after 10 microseconds of its own time. The host keeps 64
//! outstanding, so that a scheduler has something to choose from, or 1,000, of which a queue as long holds all but
//! those below. The cost of the player and the device is measured separately and subtracted; the median of five rounds
//! counts. The digest covers the requests that reach the device and their times, over all four cells: an optimisation
//! must not change it.

use crate::cpu;
use flashwright_block::{
    BlockDevice, Bytes, Completion, DeviceInfo, IoError, Nanos, Request, RequestKind, Seed, Tag, below, chance,
};
use flashwright_host::{SchedulerName, Stack, StackSettings};
use std::collections::VecDeque;

/// Nanoseconds per request and filter.
pub const BOUND: f64 = 150.0;
const DEPTH: usize = 32;
pub const OUTSTANDING: [usize; 2] = [64, 1_000];
const SECTORS: u64 = 1 << 27;
/// Chains, in addition to each scheduler alone.
const STACKS: [&str; 2] = ["noop+noop", "pasa+pai"];

/// Completes each request after a fixed time, in order.
pub struct Null {
    now: Nanos,
    tag: u64,
    /// Digest of the requests and their times.
    pub digest: u64,
    flights: VecDeque<Completion>,
}

impl Null {
    pub fn new() -> Self {
        Self { now: Nanos(0), tag: 0, digest: 0, flights: VecDeque::new() }
    }
}

impl BlockDevice for Null {
    fn info(&self) -> DeviceInfo {
        let (capacity, sector) = (Bytes(SECTORS * 512), Bytes(512));
        DeviceInfo { name: "null".into(), capacity, sector, queue_depth: DEPTH as u32 }
    }
    fn now(&self) -> Nanos {
        self.now
    }
    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        let (start, tag) = (self.now.max(request.arrival), Tag(self.tag));
        self.tag += 1;
        let word = request.first_sector ^ (u64::from(request.sectors) << 40) ^ start.0.rotate_left(20);
        self.digest = (self.digest ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        let end = start + Nanos(10_000);
        self.flights.push_back(Completion { tag, request, start, end, ..Completion::default() });
        Ok(tag)
    }
    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        match self.flights.front_mut() {
            Some(first) if first.end <= until => {
                std::mem::swap(completion, first);
                self.flights.pop_front();
                self.now = self.now.max(completion.end);
                Ok(true)
            }
            _ => {
                if until.0 != u64::MAX {
                    self.now = self.now.max(until);
                }
                Ok(false)
            }
        }
    }
}

/// Reads and writes half and half: random 4 KiB, or runs of eight that merge.
pub fn requests(sequential: bool, count: usize) -> Vec<Request> {
    let mut rng = Seed(1).stream("bench.host");
    let mut next = 0;
    (0..count)
        .map(|at| {
            if !sequential || at % 8 == 0 {
                next = below(&mut rng, SECTORS / 8 - 64) * 8;
            }
            let kind = if chance(&mut rng, 0.5) && !sequential || sequential && at / 8 % 2 == 0 {
                RequestKind::Read
            } else {
                RequestKind::Write
            };
            let request =
                Request { first_sector: next, sectors: 8, kind, process: at as u32 / 8 % 4, ..Request::default() };
            next += 8;
            request
        })
        .collect()
}

/// CPU nanoseconds per request, and the device's digest.
fn cost(chain: &str, outstanding_max: usize, requests: &[Request]) -> Result<(f64, u64), String> {
    let text = format!(
        "scheduler = \"{chain}\"\n[block-layer]\nqueue-requests = {}\n\
         [profile]\nclustered-page = \"16 KiB\"\nclustered-block = \"4 MiB\"\n\
         read-buffer = \"256 KiB\"\nwrite-buffer = \"255 KiB\"\n",
        outstanding_max.max(128)
    );
    let settings: StackSettings = toml::from_str(&text).map_err(|error| error.to_string())?;
    let mut stack = Stack::new(&settings, Null::new()).map_err(|faults| faults[0].what.clone())?;
    let started = cpu::cpu_seconds();
    play(&mut stack, outstanding_max, requests).map_err(|error| format!("{chain}: {error}"))?;
    Ok(((cpu::cpu_seconds() - started) * 1e9 / requests.len() as f64, stack.device().digest))
}

/// Plays requests with this many outstanding.
pub fn play<D: BlockDevice>(stack: &mut D, outstanding_max: usize, requests: &[Request]) -> Result<(), String> {
    let mut done = Completion::default();
    let mut outstanding = 0;
    for request in requests {
        while outstanding >= outstanding_max {
            if !stack.wait(Nanos(u64::MAX), &mut done).map_err(|error| error.to_string())? {
                return Err("nothing completes".to_owned());
            }
            outstanding -= 1;
        }
        stack.submit(Request { arrival: stack.now(), ..*request }).map_err(|error| error.to_string())?;
        outstanding += 1;
    }
    while stack.wait(Nanos(u64::MAX), &mut done).map_err(|error| error.to_string())? {}
    Ok(())
}

/// CPU nanoseconds of a request in a chain beyond those without one, the least first, and the device's digest.
pub fn rounds(chain: &str, outstanding: usize, load: &[Request], count: u32) -> Result<(Vec<f64>, u64), String> {
    let (mut found, mut seen) = (Vec::new(), 0);
    for _ in 0..count {
        let (whole, digest) = cost(chain, outstanding, load)?;
        found.push(whole - cost("none", outstanding, load)?.0);
        seen = digest;
    }
    found.sort_by(f64::total_cmp);
    Ok((found, seen))
}

fn known(name: &str) -> bool {
    name.split('+').all(|part| SchedulerName::ALL.iter().any(|known| known.listed().name == part))
}

/// Prints the table; with `quick` a fifth of the requests, and one round in place of five; `--only` names one chain.
pub fn print(args: &[String]) -> Result<(), String> {
    let (mut quick, mut only) = (false, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" => quick = true,
            "--only" => only = args.next().filter(|name| known(name)).map(String::as_str),
            other => return Err(format!("host: found {other}, known: --quick, --only CHAIN")),
        }
        if arg == "--only" && only.is_none() {
            return Err("host: --only expects schedulers joined by +, such as deadline or pasa+pai".to_owned());
        }
    }
    let (count, rounds_max) = if quick { (100_000, 1) } else { (500_000, 5) };
    println!("machine: {}", cpu::machine());
    println!("core: {}\n", cpu::pin_to_one_core().map_or("not pinned".to_owned(), |core| core.to_string()));
    println!("ns a request and filter, goal {BOUND:.0}; outstanding requests behind the load");
    println!(
        "{:<14} {:>12} {:>12} {:>14} {:>14}   digest",
        "scheduler", "random, 64", "runs of 8, 64", "random, 1,000", "runs, 1,000"
    );
    let loads = [requests(false, count), requests(true, count)];
    let (mut beyond, mut cells) = (0, 0);
    let names = SchedulerName::ALL.iter().map(|name| name.listed().name).chain(STACKS);
    for name in only.map_or_else(|| names.collect(), |only| vec![only]) {
        let filters = name.split('+').count() as f64;
        let (mut line, mut digest) = (format!("{name:<14}"), 0_u64);
        for outstanding in OUTSTANDING {
            for load in &loads {
                let (found, seen) = rounds(name, outstanding, load, rounds_max)?;
                let found = found[found.len() / 2] / filters;
                digest = digest.rotate_left(1) ^ seen;
                beyond += usize::from(found > BOUND);
                cells += 1;
                line += &format!(" {found:>13.0}");
            }
        }
        println!("{line}   {digest:016x}");
    }
    println!("\n{beyond} of {cells} above the goal");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are this program's own: an optimisation that changes what reaches the device shows here. A scheduler
    /// that is not among them runs; its digest is added once its worked example holds.
    #[test]
    fn every_chain_runs_and_keeps_its_answers() {
        let loads = [requests(false, 5_000), requests(true, 5_000)];
        let mut digests = Vec::new();
        for name in SchedulerName::ALL.iter().map(|name| name.listed().name).chain(STACKS) {
            let mut digest = 0_u64;
            for outstanding in OUTSTANDING {
                for load in &loads {
                    let (nanos, seen) = cost(name, outstanding, load).expect("runs");
                    assert!(nanos > 0.0);
                    digest = digest.rotate_left(1) ^ seen;
                }
            }
            digests.push(format!("{name} {digest:016x}"));
        }
        let expected = [
            "noop cb2767272300d495",
            "deadline 80b3ca07b4f7d74b",
            "anticipatory 3de3385b578ec425",
            "cfq f31d2fedaf8cb3dd",
            "mq-deadline 2667462f441cd2f8",
            "kyber d0ff14cbb24459de",
            "ssd-friendly 168a4e498c81ce76",
            "pas cb2767272300d495",
            "pasa d675c9f481292305",
            "pai f7f7bece20a23a9b",
            "noop+noop cb2767272300d495",
            "pasa+pai 8bab7f7414c61efa",
        ];
        let moved: Vec<&str> =
            expected.into_iter().filter(|known| !digests.iter().any(|found| found == known)).collect();
        assert!(moved.is_empty(), "{moved:?} are not among {digests:?}");
    }
}
