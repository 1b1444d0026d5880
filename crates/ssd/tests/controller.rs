//! The controller around a whole drive.

#![allow(clippy::unwrap_used)] // helpers of tests count as library code

use crate::common::*;
use flashwright_block::{BlockDevice, Completion, Nanos, Request, RequestKind, Seed, below, chance};
use flashwright_ssd::{Config, Controller, ControllerConfig, DriveConfig, Ssd};

fn small(settings: &[&str]) -> DriveConfig {
    let mut all = shape(2, 2, 1, 16, 16, 700);
    all.extend(settings.iter().map(|setting| (*setting).to_owned()));
    config(&all)
}

const ON: [&str; 7] = [
    "controller.interface-rate=\"300 MB/s\"",
    "controller.queue-depth=8",
    "controller.read-overhead=\"10 us\"",
    "controller.turnaround=\"30 us\"",
    "controller.write-buffer={size=\"64 KiB\", drain=\"eager\", combine=true}",
    "controller.read-buffer={size=\"32 KiB\", prefetch=\"16 KiB\"}",
    "host.partial-pages=\"read-modify-write\"",
];

fn requests(drive: &Controller<Ssd>, count: usize) -> Vec<Request> {
    let mut rng = rng(9);
    let sectors = drive.info().capacity.0 / 512;
    let mut arrival = 0;
    let mut request = || {
        arrival += below(&mut rng, 200_000);
        let kind = if chance(&mut rng, 0.6) { RequestKind::Write } else { RequestKind::Read };
        let length = 1 + draw(&mut rng, 40);
        let first_sector = below(&mut rng, sectors - u64::from(length));
        Request { arrival: Nanos(arrival), ..crate::common::sectors(kind, first_sector, length) }
    };
    (0..count).map(|_| request()).collect()
}

/// Hands the requests over at their arrivals and collects what ends.
fn play(drive: &mut impl BlockDevice, requests: &[Request]) -> Vec<Completion> {
    let (mut completion, mut ends) = (Completion::default(), Vec::new());
    for request in requests {
        drive.submit(*request).unwrap();
        if request.first_sector % 3 == 0 && drive.wait(drive.now(), &mut completion).unwrap() {
            ends.push(completion.clone());
        }
    }
    while drive.wait(Nanos(u64::MAX), &mut completion).unwrap() {
        ends.push(completion.clone());
    }
    ends
}

#[test]
fn with_nothing_switched_on_it_is_the_drive_itself() {
    for model in ["none", "serial", "parallel"] {
        let config = small(&[&format!("timing.model={model:?}")]);
        assert!(config.controller.is_off());
        let mut alone = Ssd::new(&config, Seed(1), true).unwrap();
        let mut within = Controller::new(&config.controller, Seed(1), Ssd::new(&config, Seed(1), true).unwrap());
        let requests = requests(&within, 3_000);
        assert_eq!(play(&mut alone, &requests), play(&mut within, &requests));
        assert_eq!(state(&alone), state(within.device()));
    }
}

/// Under every timing model reads are right (the drive checks its stamps), all ends in order, and what the completions
/// report of the flash's work adds up.
#[test]
fn a_drive_in_a_controller_keeps_its_accounts() {
    for model in ["none", "serial", "parallel"] {
        let config = small(&[&ON[..], &[&format!("timing.model={model:?}")]].concat());
        let mut drive = Controller::new(&config.controller, Seed(1), Ssd::new(&config, Seed(1), true).unwrap());
        let mut all = requests(&drive, 4_000);
        let arrival = all.last().unwrap().arrival;
        all.push(Request { arrival, ..crate::common::sectors(RequestKind::Flush, 0, 0) });
        let ends = play(&mut drive, &all);
        assert_eq!(ends.len(), all.len());
        assert!(ends.is_sorted_by_key(|completion| completion.end), "{model}");
        assert_clean(drive.device(), model);
        let counters = drive.device().flash().counters();
        let erases: u64 = ends.iter().map(|completion| u64::from(completion.effects.erases)).sum();
        assert_eq!(erases, counters.total(flashwright_ftl::OpKind::Erase), "{model}");
        let figures = drive.figures();
        assert!(figures.flushes > 100 && figures.turnarounds > 100 && drive.buffered_bytes() == 0, "{figures:?}");
    }
}

#[test]
fn a_saved_controller_goes_on() {
    let config = small(&ON);
    let mut drive = Controller::new(&config.controller, Seed(1), Ssd::new(&config, Seed(1), false).unwrap());
    let requests = requests(&drive, 2_000);
    let (first, second) = requests.split_at(1_000);
    for request in first {
        drive.submit(*request).unwrap();
    }
    let saved = postcard::to_stdvec(&drive).unwrap();
    let mut other: Controller<Ssd> = postcard::from_bytes(&saved).unwrap();
    assert_eq!(play(&mut drive, second), play(&mut other, second));
    assert_eq!(drive.figures(), other.figures());
}

#[test]
fn its_table_round_trips() {
    let config = small(&ON);
    assert_eq!(Config::from_toml(&config.to_toml(), "text").unwrap(), config);
    assert_ne!(config.controller, ControllerConfig::default());
}

/// Twice every time, twice every end.
#[test]
fn twice_every_time_is_twice_every_end() {
    let mut once = small(&ON).into_written();
    let mut twice = once.clone();
    for time in [&mut twice.timing.read, &mut twice.timing.program, &mut twice.timing.erase, &mut twice.timing.oob_read]
        .into_iter()
        .chain([&mut twice.controller.read_overhead, &mut twice.controller.turnaround])
    {
        time.0 *= 2;
    }
    // Rates that divide a sector's nanoseconds, so that nothing is rounded.
    let rates = |config: &mut Config, bus, link| {
        config.timing.bus_rate = flashwright_ssd::Rate(Some(bus));
        config.controller.interface_rate = flashwright_ssd::Rate(Some(link));
    };
    rates(&mut once, 40_000_000, 320_000_000);
    rates(&mut twice, 20_000_000, 160_000_000);
    let ends = |config: &Config, scale| {
        let config = config.clone().check().unwrap();
        let mut drive = Controller::new(&config.controller, Seed(1), Ssd::new(&config, Seed(1), false).unwrap());
        let mut all = requests(&drive, 2_000);
        all.iter_mut().for_each(|request| request.arrival.0 *= scale);
        play(&mut drive, &all).iter().map(|completion| completion.end.0 * 2 / scale).collect::<Vec<_>>()
    };
    assert_eq!(ends(&once, 1), ends(&twice, 2));
}
