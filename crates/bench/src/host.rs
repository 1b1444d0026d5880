//! `flashwright-bench host`: what a request costs in each scheduler, in CPU time, before a device that does nothing.
//!
//! The device takes 32 requests at once and is done with each after 10 microseconds of its own time. The host keeps 64
//! outstanding, so that a scheduler has something to choose from. What the player and the device cost is measured alone
//! and taken off; the median of five rounds counts.

use crate::cpu;
use flashwright_block::{
    BlockDevice, Bytes, Completion, DeviceInfo, IoError, Nanos, Request, RequestKind, Seed, Tag, below, chance,
};
use flashwright_host::{SchedulerName, Stack, StackSettings};
use std::collections::VecDeque;

/// Nanoseconds a request and filter.
const BOUND: f64 = 150.0;
const DEPTH: usize = 32;
const OUTSTANDING: usize = 64;
const SECTORS: u64 = 1 << 27;

/// Done with each request after a fixed time, in order.
struct Null {
    now: Nanos,
    tag: u64,
    flights: VecDeque<Completion>,
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
        let end = start + Nanos(10_000);
        self.flights.push_back(Completion { tag, request, start, end, flash_ops: 0, erases: 0 });
        Ok(tag)
    }
    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        match self.flights.front() {
            Some(first) if first.end <= until => {
                completion.clone_from(first);
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
fn requests(sequential: bool, count: usize) -> Vec<Request> {
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

/// CPU nanoseconds a request.
fn cost(chain: &str, requests: &[Request]) -> Result<f64, String> {
    let text = format!(
        "scheduler = \"{chain}\"\n[profile]\nclustered-page = \"16 KiB\"\nclustered-block = \"4 MiB\"\n\
         read-buffer = \"256 KiB\"\nwrite-buffer = \"255 KiB\"\n"
    );
    let settings: StackSettings = toml::from_str(&text).map_err(|error| error.to_string())?;
    let device = Null { now: Nanos(0), tag: 0, flights: VecDeque::new() };
    let mut stack = Stack::new(&settings, device).map_err(|faults| faults[0].what.clone())?;
    let mut done = Completion::default();
    let mut outstanding = 0;
    let started = cpu::cpu_seconds();
    for request in requests {
        while outstanding >= OUTSTANDING {
            if !stack.wait(Nanos(u64::MAX), &mut done).map_err(|error| error.to_string())? {
                return Err(format!("{chain}: nothing completes"));
            }
            outstanding -= 1;
        }
        stack.submit(Request { arrival: stack.now(), ..*request }).map_err(|error| error.to_string())?;
        outstanding += 1;
    }
    while stack.wait(Nanos(u64::MAX), &mut done).map_err(|error| error.to_string())? {}
    Ok((cpu::cpu_seconds() - started) * 1e9 / requests.len() as f64)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints the table; with `quick` a tenth of the requests, and one round in place of five.
pub fn print(args: &[String]) -> Result<(), String> {
    let quick = match args {
        [] => false,
        [only] if only == "--quick" => true,
        _ => return Err(format!("host: found {}, known: --quick", args.join(" "))),
    };
    let (count, rounds) = if quick { (100_000, 1) } else { (1_000_000, 5) };
    println!("machine: {}", cpu::machine());
    println!("core: {}\n", cpu::pin_to_one_core().map_or("not pinned".to_owned(), |core| core.to_string()));
    println!(
        "{:<14} {:>14} {:>14}   ns a request and filter, goal {BOUND:.0}",
        "scheduler", "random 4 KiB", "runs of 8"
    );
    let loads = [requests(false, count), requests(true, count)];
    let mut beyond = 0;
    for name in SchedulerName::ALL.iter().map(|name| name.listed().name) {
        let mut found = [0.0; 2];
        for (cell, load) in found.iter_mut().zip(&loads) {
            let round = |_| Ok(cost(name, load)? - cost("none", load)?);
            *cell = median((0..rounds).map(round).collect::<Result<_, String>>()?);
            beyond += usize::from(*cell > BOUND);
        }
        println!("{name:<14} {:>14.0} {:>14.0}", found[0], found[1]);
    }
    println!("\n{beyond} of {} above the goal", 2 * SchedulerName::ALL.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheduler_has_a_line_that_runs() {
        for name in SchedulerName::ALL.iter().map(|name| name.listed().name) {
            assert!(cost(name, &requests(true, 2_000)).expect("runs") > 0.0);
        }
    }
}
