//! When cleaning works: schedules by hand, the work they do, and what they are for.

use crate::common::*;
use flashwright_block::{BlockDevice, Nanos, Request, RequestKind, Seed, below, chance};
use flashwright_ftl::{OpKind, ScheduleName};
use flashwright_ssd::{Config, Ssd, SsdError};

fn scheduled(name: ScheduleName, more: &[&str]) -> Vec<String> {
    let mut settings = vec![format!("gc.schedule={:?}", name.listed().name)];
    settings.extend(more.iter().map(|setting| (*setting).to_owned()));
    settings
}

/// What a run of mixed requests at even gaps shows.
struct Shown {
    amplification: f64,
    read_p99_us: u64,
    write_p99_us: u64,
}

fn percentile(times: &mut [u64], share: f64) -> u64 {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share) as usize] / 1000
}

/// Uniform single pages on eight dies, 30 % reads, one every `gap`.
fn play(name: ScheduleName, blocks: u32, gap: u64, count: u64) -> Shown {
    play_with(name, &[], blocks, gap, count)
}

fn play_with(name: ScheduleName, more: &[&str], blocks: u32, gap: u64, count: u64) -> Shown {
    let shape = shape(4, 2, 1, blocks, 32, 8 * blocks * 32 * 8 / 10);
    let mut ssd = Ssd::new(&config(&[shape, scheduled(name, more)].concat()), Seed(1), true).unwrap();
    let logical = ssd.logical_pages();
    fill(&mut ssd, u32::MAX);
    let mut rng = rng(7);
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    let warm = count / 2;
    let (mut programs, mut written) = (0, 0);
    let mut collect = |done: flashwright_block::Completion| {
        if done.tag.0 >= warm {
            let time = done.end.0 - done.request.arrival.0;
            if done.request.kind == RequestKind::Read { reads.push(time) } else { writes.push(time) }
        }
    };
    for at in 0..count {
        if at == warm {
            programs = ssd.flash().counters().total(OpKind::Program);
            written = ssd.flash().host_writes();
        }
        let kind = if chance(&mut rng, 0.3) { RequestKind::Read } else { RequestKind::Write };
        let request = pages(&ssd, kind, u32::try_from(below(&mut rng, u64::from(logical))).unwrap(), 1);
        let arrival = Nanos(at * gap);
        while let Some(done) = wait(&mut ssd, arrival).unwrap() {
            collect(done);
        }
        ssd.submit(Request { arrival, ..request }).unwrap();
    }
    drain(&mut ssd).unwrap().into_iter().for_each(&mut collect);
    assert_clean(&ssd, "at the end");
    programs = ssd.flash().counters().total(OpKind::Program) - programs;
    written = ssd.flash().host_writes() - written;
    Shown {
        amplification: programs as f64 / written as f64,
        read_p99_us: percentile(&mut reads, 0.99),
        write_p99_us: percentile(&mut writes, 0.99),
    }
}

/// What schedules are for: requests wait for a step instead of whole victims.
#[test]
fn tails_are_short_where_cleaning_goes_in_steps() {
    let foreground = play(ScheduleName::Foreground, 64, 250_000, 80_000);
    for name in &ScheduleName::ALL[1..] {
        let Shown { amplification, read_p99_us, write_p99_us } = play(*name, 64, 250_000, 80_000);
        println!("{name:?}: {amplification:.3}, reads {read_p99_us} us, writes {write_p99_us} us");
        assert!(read_p99_us * 3 < foreground.read_p99_us, "{name:?}: {read_p99_us} us");
        assert!(write_p99_us * 3 < foreground.write_p99_us, "{name:?}: {write_p99_us} us");
    }
}

/// With the same victims the same pages are copied; what changes is when. Marks keep some blocks free that could hold old
/// pages, which costs less the larger the planes.
#[test]
fn the_schedules_do_the_same_work() {
    let of = |name| play(name, 512, 300_000, 400_000).amplification;
    let foreground = of(ScheduleName::Foreground);
    for name in &ScheduleName::ALL[1..] {
        let change = of(*name) / foreground - 1.0;
        println!("{name:?}: {:+.2} %", change * 100.0);
        assert!(change.abs() < 0.03, "{name:?}: {change}");
    }
}

/// A drive of one plane, 8 blocks of 4 pages, 4 of them sealed: one with one valid page, one with 3, the others full. The last
/// write opened the sixth block, so that 2 are free, and was of `lpn` 4. Nothing is under way.
fn by_hand(name: ScheduleName) -> Ssd {
    let marks = ["gc.free-blocks-min=1", "timing.model=\"parallel\"", "gc.throttled.delay-max=\"900 us\""];
    let mut ssd =
        Ssd::new(&config(&[one_plane(8, 4, 16), scheduled(name, &marks), small_policies()].concat()), Seed(1), true)
            .unwrap();
    fill(&mut ssd, u32::MAX);
    for lpn in [0, 1, 2, 4] {
        let write = Request { arrival: ssd.now(), ..pages(&ssd, RequestKind::Write, lpn, 1) };
        perform(&mut ssd, write).unwrap();
    }
    ssd
}

/// Submits requests at times after now; answers their ends after now, in microseconds and tenths.
fn ends(ssd: &mut Ssd, requests: &[(u64, RequestKind, u32)]) -> Vec<f64> {
    let start = ssd.now().0;
    let mut ends = vec![0.0; requests.len()];
    let mut tags = Vec::new();
    let mut note = |tags: &[flashwright_block::Tag], done: flashwright_block::Completion| {
        let at = tags.iter().position(|tag| *tag == done.tag).unwrap();
        ends[at] = (done.end.0 - start) as f64 / 1000.0;
    };
    for (at, kind, lpn) in requests {
        let arrival = Nanos(start + at * 1000);
        while let Some(done) = wait(ssd, arrival).unwrap() {
            note(&tags, done);
        }
        let request = pages(ssd, *kind, *lpn, 1);
        tags.push(ssd.submit(Request { arrival, ..request }).unwrap());
    }
    drain(ssd).unwrap().into_iter().for_each(|done| note(&tags, done));
    ends
}

/// A write takes 102.4 us of bus and 200 us; a read 50 and 102.4; a copy 454.8; an erase 700. The write at 0 opens a block and
/// leaves 2 free; the mark is 3. The victim has one valid page: a copy, then the erase.
///
/// ```text
///   preemptive  write 0-302.4 | copy -757.2 | read that came at 400 -909.6 | erase -1609.6 | read that came at 1000 -1762
/// ```
#[test]
fn the_host_passes_between_steps() {
    use RequestKind::{Read, Write};
    let requests = [(0, Write, 5), (400, Read, 9), (1000, Read, 10)];
    let of = |name| ends(&mut by_hand(name), &requests);
    assert_eq!(of(ScheduleName::Foreground), [302.4, 552.4, 1152.4]);
    assert_eq!(of(ScheduleName::Preemptive), [302.4, 909.6, 1762.0]);
    assert_eq!(of(ScheduleName::Background), [302.4, 909.6, 1762.0]);
    // One of two blocks above the minimum is lacking: half of 900 us.
    assert_eq!(of(ScheduleName::Throttled), [450.0, 909.6, 1762.0]);
    // No victim is known: a quarter of a step a page, twice as many since one of two blocks is left. The first write owes
    // half a step, the second makes the copy, the third makes the erase of (1 + 1) / (4 - 1) * 2 = 1.33 steps.
    let requests = [(0, Write, 5), (1000, Write, 6), (1400, Read, 9), (3000, Write, 7), (3400, Read, 10)];
    let found = ends(&mut by_hand(ScheduleName::RateLimited), &requests);
    assert_eq!(found, [302.4, 1302.4, 1909.6, 3302.4, 4154.8]);
}

fn refusal(settings: &[&str]) -> String {
    let shape = shape(2, 1, 1, 32, 8, 2 * 32 * 8 * 7 / 10);
    let settings: Vec<String> = shape.into_iter().chain(settings.iter().map(|setting| (*setting).to_owned())).collect();
    let SsdError::Config(error) = Ssd::new(&config(&settings), Seed(1), false).unwrap_err() else { unreachable!() };
    error.to_string()
}

#[test]
fn what_does_not_go_with_a_schedule_is_refused() {
    let merges = refusal(&["gc.schedule=preemptive", "ftl.scheme=fast"]);
    assert!(merges.contains("gc.schedule: found \"preemptive\", but ftl.scheme = \"fast\" merges"), "{merges}");
    assert!(merges.contains("page, dftl"), "{merges}");
    let timeless = refusal(&["gc.schedule=background", "timing.model=none"]);
    assert!(timeless.contains("timing.model = \"none\" has no time"), "{timeless}");
    let low = refusal(&["gc.schedule=throttled", "gc.throttled.start-blocks=2"]);
    assert!(low.contains("gc.throttled.start-blocks: found 2, expected more than"), "{low}");
    let high = refusal(&["gc.schedule=rate-limited", "gc.rate-limited.start-blocks=9"]);
    assert!(high.contains("gc.rate-limited.start-blocks: found 9, but a full plane"), "{high}");
    let marks = refusal(&["gc.schedule=background", "gc.background.start-blocks=5", "gc.background.stop-blocks=4"]);
    assert!(marks.contains("gc.background.stop-blocks: found 4"), "{marks}");
    assert!(Config::default().with_settings(&["gc.schedule=\"sometimes\""]).is_err());
}

/// Random single pages on eight dies at depth 8, 30 % reads, after a fill; the completions in the order in which they ended.
fn deep(settings: &[&str]) -> Vec<flashwright_block::Completion> {
    let shape = shape(4, 2, 1, 16, 16, 8 * 16 * 16 / 2);
    let settings = [shape, settings.iter().map(|setting| (*setting).to_owned()).collect()].concat();
    let mut ssd = Ssd::new(&config(&settings), Seed(1), true).unwrap();
    let logical = u64::from(ssd.logical_pages());
    fill(&mut ssd, u32::MAX);
    let mut rng = rng(3);
    let mut ended = Vec::new();
    for _ in 0..6_000 {
        let kind = if chance(&mut rng, 0.3) { RequestKind::Read } else { RequestKind::Write };
        let request = pages(&ssd, kind, u32::try_from(below(&mut rng, logical)).unwrap(), 1);
        ssd.submit(request).unwrap();
        while ssd.in_flight() >= 8 {
            ended.extend(wait(&mut ssd, Nanos(u64::MAX)).unwrap());
        }
    }
    ended.extend(drain(&mut ssd).unwrap());
    assert_clean(&ssd, "at the end");
    assert_eq!(ended.len(), 6_000);
    ended
}

/// Requests that started while another one cleaned.
fn started_meanwhile(ended: &[flashwright_block::Completion]) -> usize {
    let cleaned: Vec<_> = ended.iter().filter(|each| each.effects.erases > 0).collect();
    assert!(cleaned.len() > 200, "{} requests cleaned", cleaned.len());
    let meanwhile = |each: &&flashwright_block::Completion| {
        cleaned.iter().any(|one| one.tag != each.tag && one.start < each.start && each.start < one.end)
    };
    ended.iter().filter(meanwhile).count()
}

#[test]
fn cleaning_that_blocks_the_controller_lets_no_request_start() {
    assert!(started_meanwhile(&deep(&[])) > 1_000);
    assert_eq!(started_meanwhile(&deep(&["timing.cleaning-blocks=controller"])), 0);
    assert_eq!(started_meanwhile(&deep(&["timing.cleaning-blocks=controller", "timing.die-order=by-class"])), 0);
}

/// A read on another die: beside a clean, or behind it. By hand: a block without a valid page is erased, then the host's page is
/// transferred (102.4 us at 40 MB/s) and programmed; the read takes its array time and a transfer.
#[test]
fn a_read_of_another_die_waits_for_a_clean_that_blocks_the_controller() {
    const PAGE: u64 = 102_400;
    let ends = ["dies", "controller"].map(|blocks| {
        let shape = shape(2, 1, 1, 4, 2, 6);
        let blocks = format!("timing.cleaning-blocks={blocks}");
        let settings = [shape, vec![blocks, "gc.victim=greedy".to_owned(), "gc.free-blocks-min=1".to_owned()]].concat();
        let mut ssd = Ssd::new(&config(&settings), Seed(1), true).unwrap();
        // Pages take turns between the dies: even ones come to lie on the first, as long as both are written alike.
        fill(&mut ssd, u32::MAX);
        loop {
            let at = ssd.now();
            ssd.submit(pages(&ssd, RequestKind::Write, 0, 1)).unwrap();
            ssd.submit(pages(&ssd, RequestKind::Read, 1, 1)).unwrap();
            let mut ended = drain(&mut ssd).unwrap();
            ended.sort_by_key(|each| each.tag);
            let [write, read] = ended.as_slice() else { panic!("two requests end") };
            if write.effects.erases > 0 {
                assert_eq!(write.end - at, Nanos(700_000 + PAGE + 200_000), "{ended:?}");
                return read.end - write.start;
            }
        }
    });
    assert_eq!(ends, [Nanos(50_000 + PAGE), Nanos(700_000 + PAGE + 200_000 + 50_000 + PAGE)]);
}

/// Steps of cleaning ahead block, too; requests start between them.
#[test]
fn steps_that_block_the_controller_let_requests_start_between_them() {
    for schedule in ["background", "preemptive", "rate-limited", "throttled"] {
        let schedule = format!("gc.schedule={schedule}");
        let more = ["gc.background.start-blocks=3", "gc.background.stop-blocks=4", "timing.die-order=by-class"];
        let time = |blocks: &str| {
            let settings = [&[schedule.as_str(), blocks], more.as_slice()].concat();
            deep(&settings).iter().map(|each| each.end.0).max().unwrap()
        };
        let (dies, controller) = (time("timing.cleaning-blocks=dies"), time("timing.cleaning-blocks=controller"));
        println!("{schedule}: {dies} and {controller} ns");
        assert!(controller > dies, "{schedule}");
    }
}

#[test]
fn only_dies_that_work_side_by_side_can_wait_for_cleaning() {
    for model in ["none", "serial"] {
        let error = Config::default()
            .with_settings(&["timing.cleaning-blocks=controller", &format!("timing.model={model}")])
            .map_err(|error| error.to_string())
            .and_then(|config| Ssd::new(&config, Seed(1), false).map(|_| ()).map_err(|error| error.to_string()))
            .unwrap_err();
        assert!(error.contains("timing.cleaning-blocks: found \"controller\", expected timing.model"), "{error}");
    }
}
