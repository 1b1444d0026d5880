//! `host.queue-depth`: a number, or left open.

#![allow(clippy::unwrap_used)] // helpers of tests count as library code

use flashwright_block::{BlockDevice, Seed};
use flashwright_ssd::{Config, DriveConfig, QueueDepth, Ssd, bundled};

/// Requests that a drive takes at once when a closed loop keeps so many in flight.
fn widened(config: &DriveConfig, depth: u32) -> u32 {
    let mut ssd = Ssd::new(config, Seed(1), false).unwrap();
    ssd.widen_queue(depth);
    let (depth, shown) = (ssd.info().queue_depth, ssd.config_in_force().host.queue_depth);
    assert!(config.timing.model != Default::default() || shown == QueueDepth::Requests(depth));
    depth
}

#[test]
fn a_queue_that_is_left_open_is_as_deep_as_the_loop() {
    let open = DriveConfig::default();
    assert_eq!([1, 32, 33, 500, 1 << 20].map(|depth| widened(&open, depth)), [32, 32, 33, 500, 65_536]);
    for said in [
        "host.queue-depth=32",
        "host.queue-depth=4",
        "host.scheduler=noop",
        "controller.queue-depth=8",
        "timing.model=serial",
    ] {
        let config = open.with_settings(&[said]).unwrap();
        assert_eq!(widened(&config, 500), Ssd::new(&config, Seed(1), false).unwrap().info().queue_depth, "{said}");
    }
    assert_eq!(widened(&bundled("mlc-sata").unwrap(), 500), 32, "its description says so");
}

#[test]
fn what_is_left_open_stays_so_in_descriptions_and_is_a_number_in_results() {
    let open = DriveConfig::default();
    assert!(open.to_toml().contains("queue-depth = \"auto\""));
    assert_eq!(Config::from_toml(&open.to_toml(), "text").unwrap(), open);
    assert_eq!(open.resolved().host.queue_depth, QueueDepth::Requests(32));
    for (value, found) in [("0", "0"), ("70000", "70000"), ("deep", "\"deep\"")] {
        let error = open.with_settings(&[format!("host.queue-depth={value}")]).unwrap_err().to_string();
        let expected = "expected \"auto\" or a number of requests, 1 to 65,536";
        assert_eq!(error, format!("--set: host.queue-depth: found {found}, {expected}"));
    }
}
