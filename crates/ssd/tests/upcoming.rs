//! Whoever waits for a drive in real time asks when to look again: nothing may complete before, and looking again must lead to
//! the completion.

use flashwright_block::{BlockDevice, Completion, Nanos, Request, RequestKind, Rng, Seed, below};
use flashwright_ssd::{Config, Controller, Ssd};

const SMALL: &str = "[geometry]\nchannels = 2\ndies-per-channel = 2\nblocks-per-plane = 32\npages-per-block = 16\n\
                     [capacity]\nutilization = 0.8\n";

fn request(rng: &mut Rng, now: Nanos) -> Request {
    let (arrival, first_sector) = (now + Nanos(below(rng, 100_000)), below(rng, 1500) * 8);
    let kind = [RequestKind::Read, RequestKind::Write, RequestKind::Write, RequestKind::Flush][below(rng, 4) as usize];
    let sectors = if kind == RequestKind::Flush { 0 } else { 8 * (1 + below(rng, 4) as u32) };
    Request { arrival, first_sector, sectors, kind, ..Request::default() }
}

/// Plays batches; returns how often it looked without a completion, and the completions.
fn looks<D: BlockDevice>(device: &mut D, earliest: impl Fn(&D) -> Option<Nanos>, at: &str) -> (u64, u64) {
    let (mut rng, mut completion) = (Seed(7).stream("looks"), Completion::default());
    let (mut idle, mut ended) = (0, 0);
    for batch in 0..400 {
        let mut in_flight = below(&mut rng, 24);
        for _ in 0..in_flight {
            device.submit(request(&mut rng, device.now())).expect("it fits");
        }
        while in_flight > 0 {
            let next = earliest(device).expect("something is in flight");
            if next > device.now() {
                assert_eq!(
                    device.wait(Nanos(next.0 - 1), &mut completion),
                    Ok(false),
                    "{at}, batch {batch}: too early"
                );
            }
            // What happens at the very present, later requests may still come before.
            if device.wait(next.max(device.now() + Nanos(1)), &mut completion).expect("it lives") {
                (in_flight, ended) = (in_flight - 1, ended + 1);
            } else {
                idle += 1;
            }
        }
        assert_eq!(earliest(device), None, "{at}, batch {batch}");
    }
    (idle, ended)
}

#[test]
fn nothing_completes_before_the_time_that_a_drive_names() {
    let die_order = "[timing]\ndie-order = \"by-class\"\n";
    for more in ["", "[timing]\nmodel = \"serial\"\n", "[timing]\nmodel = \"none\"\n", die_order] {
        let config = Config::from_toml(&format!("{SMALL}{more}"), "test").expect("a drive");
        let mut ssd = Ssd::new(&config, Seed(1), false).expect("a drive");
        let (idle, ended) = looks(&mut ssd, Ssd::none_completes_before, more);
        assert!(ended > 3000 && idle < 12 * ended, "{more}: looked {idle} times for {ended} completions");
        for controller in [
            "",
            "[controller]\nread-overhead = \"5 us\"\ninterface-rate = \"300 MB/s\"\nwrite-buffer.size = \"64 KiB\"\n",
        ] {
            let config = Config::from_toml(&format!("{SMALL}{more}{controller}"), "test").expect("a drive");
            let ssd = Ssd::new(&config, Seed(1), false).expect("a drive");
            let mut drive = Controller::new(&config.controller, Seed(1), ssd);
            let (idle, ended) = looks(&mut drive, Controller::none_completes_before, controller);
            assert!(
                ended > 3000 && idle < 20 * ended,
                "{more}{controller}: looked {idle} times for {ended} completions"
            );
        }
    }
}
