//! Several workloads at once: one that has the drive to itself is the run of its workload, what tenants did adds up to what the
//! drive did, and a tenant alone asks for what it asks for among others.

#![allow(clippy::unwrap_used)] // helpers of tests count as library code

use flashwright_block::{BlockDevice, Completion, HoldsData, Nanos, Priority, Request, RequestKind, Seed};
use flashwright_sim::{
    LiveRun, NamespaceSize, Pace, Precondition, RunOptions, RunReport, Search, Simulation, SourceSpec, TenantSpec,
    TenantsSpec, TraceSpec, Verdict,
};
use flashwright_ssd::{Config, DriveConfig, Ssd};
use flashwright_workload::trace::{AddressMap, TraceOptions};
use serde_json::json;
use std::fmt::Write as _;

const SMALL: &str = "[geometry]\nchannels = 2\ndies-per-channel = 1\nblocks-per-plane = 64\npages-per-block = 32\n\
                     [capacity]\nutilization = 0.8\n";

fn config(settings: &[&str]) -> DriveConfig {
    let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
    Config::from_toml(SMALL, "test").unwrap().with_settings(&settings).unwrap()
}

fn generated(spec: &str) -> SourceSpec {
    SourceSpec::Workload(spec.parse().unwrap())
}

/// Writes of 4 KiB, one a millisecond.
fn trace(name: &str, requests: u64) -> SourceSpec {
    let path = std::env::temp_dir().join(format!("flashwright-tenants-{name}-{}.spc", std::process::id()));
    let mut text = String::new();
    for n in 0..requests {
        writeln!(text, "0,{},4096,w,{:.6}", n * 7919 % 500 * 8, n as f64 * 1e-3).unwrap();
    }
    std::fs::write(&path, text).unwrap();
    let (options, addresses) = (TraceOptions::default(), AddressMap::WrapFew);
    SourceSpec::Trace(TraceSpec { path, name: name.into(), options, addresses, repeat: 1 })
}

fn tenant(source: SourceSpec) -> TenantSpec {
    TenantSpec {
        name: String::new(),
        source,
        depth: None,
        time_scale: None,
        size: NamespaceSize::Rest,
        handle: None,
        priority: Priority::Medium,
    }
}

fn mix(specs: &[&str]) -> Vec<TenantSpec> {
    specs.iter().map(|spec| tenant(generated(spec))).collect()
}

fn together(all: Vec<TenantSpec>) -> SourceSpec {
    SourceSpec::Tenants(TenantsSpec { all, alone: None })
}

fn options(precondition: &str, requests: Option<u64>) -> RunOptions {
    RunOptions {
        precondition: Some(precondition.into()),
        requests,
        seed: flashwright_sim::SeedOption(3),
        verify: true,
        keep_requests: true,
        ..RunOptions::default()
    }
}

fn begun(
    config: &DriveConfig,
    spec: &SourceSpec,
    options: &RunOptions,
) -> Result<(Simulation, flashwright_sim::Source), String> {
    let ssd = Ssd::new(config, options.seed(), options.verifies()).map_err(|error| error.to_string())?;
    let source = spec.open(&ssd, options.seed()).map_err(|error| error.to_string())?;
    let run = options.run(ssd, spec, &source).map_err(|error| error.to_string())?;
    Ok((run, source))
}

fn played(config: &DriveConfig, spec: &SourceSpec, options: &RunOptions) -> (Simulation, RunReport) {
    let (mut run, mut source) = begun(config, spec, options).unwrap();
    while !run.step(&mut source, 617).unwrap() {}
    let report = run.report().unwrap();
    assert_eq!(report.report.violations.as_deref(), Some(&[][..]));
    (run, report)
}

#[test]
fn a_tenant_with_the_drive_to_itself_is_the_run_of_its_workload() {
    let drives: [&[&str]; 4] = [
        &[],
        &["host.scheduler=deadline"],
        &["controller.queue-depth=2", "controller.write-buffer.size=64 KiB"],
        &["timing.model=none"],
    ];
    for settings in drives {
        for spec in
            ["zipf:write=0.7", "uniform:write=0.6,depth=4", "uniform:write=0.8,rate=900", "mixed:write=0.5,depth=3"]
        {
            for precondition in ["empty", "random"] {
                let (config, options) = (config(settings), options(precondition, Some(3000)));
                let (_, alone) = played(&config, &generated(spec), &options);
                let (_, found) = played(&config, &together(mix(&[spec])), &options);
                assert_eq!(found.report.digest, alone.report.digest, "{settings:?} {spec} {precondition}");
                let late = RunOptions { warmup: 500, ..options.clone() };
                let want = played(&config, &generated(spec), &late).1.report.digest;
                assert_eq!(
                    played(&config, &together(mix(&[spec])), &late).1.report.digest,
                    want,
                    "{settings:?} {spec} warmed up"
                );
                assert_eq!(found.report.tenants.len(), 1);
                assert_eq!(found.report.tenants[0].write_amplification, found.report.write_amplification);
            }
        }
    }
}

#[test]
fn what_tenants_did_adds_up_to_what_the_drive_did() {
    let specs = [
        "uniform:write=1,depth=6",
        "sequential:write=0.5,depth=2,size=16KiB",
        "zipf:write=0.8,rate=700",
        "uniform:write=0.9,trim=0.05",
    ];
    let drives: [&[&str]; 5] = [
        &[],
        &["ftl.scheme=dftl"],
        &["ram.size=128 KiB", "ram.manager=lru"],
        &["controller.write-buffer.size=64 KiB"],
        &["ftl.scheme=bast"],
    ];
    for settings in drives {
        let mut all = mix(&specs);
        all[1].size = NamespaceSize::Share(0.4);
        all[3].size = NamespaceSize::Pages(300);
        let (run, found) = played(&config(settings), &together(all), &options("workload", Some(20_000)));
        let (report, tenants) = (&found.report, &found.report.tenants);
        let sum = |of: fn(&flashwright_sim::TenantReport) -> u64| tenants.iter().map(of).sum::<u64>();
        assert_eq!(
            sum(|t| t.requests.read + t.requests.write + t.requests.trim),
            report.measured.requests,
            "{settings:?}"
        );
        assert_eq!(sum(|t| t.requests.bytes_written), report.requests.bytes_written, "{settings:?}");
        assert_eq!(sum(|t| t.pages_written), report.host.pages_written.unwrap(), "{settings:?}");
        assert_eq!(sum(|t| t.pages_read), report.host.pages_read.unwrap(), "{settings:?}");
        assert_eq!(sum(|t| t.response_time_ns.all.count), report.response_time_ns.all.count, "{settings:?}");
        let programs = &report.flash.programs;
        assert_eq!(sum(|t| t.pages_into_flash), programs.host.unwrap(), "{settings:?}");
        // Pages of the mapping table are nobody's.
        let tables =
            if settings.contains(&"ftl.scheme=dftl") { programs.gc.unwrap() - sum(|t| t.pages_moved) } else { 0 };
        let moved = programs.gc.unwrap() + programs.merge.unwrap() + programs.padding.unwrap() + programs.wear.unwrap();
        assert_eq!(sum(|t| t.pages_moved) + tables, moved, "{settings:?}");
        assert!(sum(|t| t.pages_moved) > 0 || settings.contains(&"ftl.scheme=bast"), "{settings:?}");
        for each in tenants {
            assert_eq!(each.pages_moved_for.iter().sum::<u64>(), each.pages_moved, "{settings:?}");
        }
        // Each request lies in the namespace of its tenant: as many as it counts.
        let rows = found.requests.as_ref().unwrap();
        let pages: Vec<u64> = tenants
            .iter()
            .map(|t| {
                let within = |lpn: u32| lpn >= t.first_page && lpn < t.first_page + t.pages;
                rows.lpn.iter().filter(|lpn| within(**lpn)).count() as u64
            })
            .collect();
        let requests: Vec<u64> = tenants.iter().map(|t| t.requests.read + t.requests.write + t.requests.trim).collect();
        assert_eq!(pages, requests, "{settings:?}");
        let logical = run.ssd().logical_pages();
        assert_eq!(tenants[1].pages, (f64::from(logical) * 0.4) as u32);
        assert_eq!((tenants[3].pages, tenants[0].pages), (300, tenants[2].pages));
        assert!(
            run.conditioning().unwrap().search() == Search::Settled || settings.contains(&"ftl.scheme=bast"),
            "{settings:?}"
        );
        assert_eq!(report.pace, Pace::Tenants);
    }
}

#[test]
fn the_verdict_is_that_of_the_mix() {
    let specs = ["uniform:write=1,depth=4", "sequential:write=1,depth=1"];
    let (_, from_empty) = played(&config(&[]), &together(mix(&specs)), &options("empty", Some(2000)));
    assert_eq!(from_empty.report.settled.unwrap().verdict, Verdict::Transient);
    let (_, settled) = played(&config(&[]), &together(mix(&specs)), &options("auto", Some(60_000)));
    assert_eq!(settled.report.settled.unwrap().verdict, Verdict::Settled);
    let precondition = settled.report.precondition.unwrap();
    assert_eq!((precondition.spec.as_str(), precondition.workload.unwrap().ended), ("workload", Search::Settled));
}

#[test]
fn a_tenant_alone_asks_for_what_it_asks_for_among_others() {
    let specs = ["uniform:write=1,depth=6", "zipf:write=0.5,depth=2", "uniform:write=0.9,rate=500"];
    let (_, all) = played(&config(&[]), &together(mix(&specs)), &options("sequential", Some(9000)));
    for at in 0..specs.len() {
        let spec = SourceSpec::Tenants(TenantsSpec { all: mix(&specs), alone: Some(at) });
        let (among, want) = (&all.report.tenants[at], &all.requests.as_ref().unwrap());
        let asked = among.requests.read + among.requests.write;
        let (_, alone) = played(&config(&[]), &spec, &options("sequential", Some(asked)));
        let silent: Vec<u64> = alone.report.tenants.iter().map(|t| t.requests.read + t.requests.write).collect();
        assert_eq!(silent.iter().sum::<u64>(), silent[at]);
        assert_eq!(silent[at], asked);
        // The same pages, whatever the order in which they complete.
        let within = |lpn: &&u32| (among.first_page..among.first_page + among.pages).contains(*lpn);
        let mut wanted: Vec<u32> = want.lpn.iter().filter(within).copied().collect();
        let mut found = alone.requests.as_ref().unwrap().lpn.clone();
        wanted.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, wanted, "{}", specs[at]);
        let means = [&alone.report.tenants[at], among].map(|t| t.response_time_ns.all.mean.unwrap());
        assert!(means[0] < means[1], "{means:?}");
    }
}

#[test]
fn a_run_with_traces_ends_with_the_last_of_them() {
    let all =
        vec![tenant(trace("short", 200)), tenant(generated("uniform:write=0.5,depth=2")), tenant(trace("long", 1000))];
    let (_, found) = played(&config(&[]), &together(all.clone()), &options("empty", None));
    let counts: Vec<u64> = found.report.tenants.iter().map(|t| t.requests.read + t.requests.write).collect();
    assert_eq!((counts[0], counts[2]), (200, 1000));
    let duration = found.report.measured.duration_ns.unwrap();
    assert!((999_000_000..1_010_000_000).contains(&duration), "the long one takes 999 ms: {duration}");
    assert!(counts[1] > 50);
    // Beforehand they are repeated until the drive has settled, and then begin anew.
    let (run, found) = played(&config(&[]), &together(all), &options("workload", None));
    assert_eq!(run.conditioning().unwrap().search(), Search::Settled);
    let counts: Vec<u64> = found.report.tenants.iter().map(|t| t.requests.write).collect();
    assert_eq!((counts[0], counts[2]), (200, 1000));
    for name in ["short", "long"] {
        let _ = std::fs::remove_file(
            std::env::temp_dir().join(format!("flashwright-tenants-{name}-{}.spc", std::process::id())),
        );
    }
}

#[test]
fn handles_and_queues_are_those_of_the_tenants() {
    let mut all = mix(&["uniform:write=1,depth=2", "uniform:write=1,depth=2"]);
    (all[0].handle, all[1].handle) = (Some(2), Some(5));
    let config = config(&["placement.policy=fdp", "geometry.blocks-per-plane=128"]);
    let (_, found) = played(&config, &together(all), &options("empty", Some(4000)));
    let (handles, tenants) = (&found.report.handles, &found.report.tenants);
    assert_eq!(
        (handles[2].pages_written, handles[5].pages_written),
        (tenants[0].pages_written, tenants[1].pages_written)
    );
    for (handle, tenant) in [(&handles[2], &tenants[0]), (&handles[5], &tenants[1])] {
        assert_eq!((handle.pages_moved, handle.write_amplification), (tenant.pages_moved, tenant.write_amplification));
        assert_eq!(handle.pages_moved_for[2], tenant.pages_moved_for[0]);
    }
}

#[test]
fn what_does_not_fit_is_refused_in_a_line() {
    let refused = |all: Vec<TenantSpec>, options: &RunOptions| match begun(&config(&[]), &together(all), options) {
        Ok(_) => panic!("it was accepted"),
        Err(error) => error,
    };
    let plain = options("empty", None);
    let sized = |sizes: [NamespaceSize; 2]| {
        let mut all = mix(&["uniform", "uniform"]);
        (all[0].size, all[1].size) = (sizes[0], sizes[1]);
        all
    };
    let too_much = refused(sized([NamespaceSize::Share(0.8), NamespaceSize::Share(0.3)]), &plain);
    assert!(
        too_much.starts_with("tenants: found namespaces of 3602 pages in all, expected at most the 3276"),
        "{too_much}"
    );
    let nothing = refused(sized([NamespaceSize::Share(1.0), NamespaceSize::Rest]), &plain);
    assert!(nothing.starts_with("tenant 2: found a namespace without a page"), "{nothing}");
    let mut twice = mix(&["uniform", "zipf"]);
    (twice[0].name, twice[1].name) = ("a".into(), "a".into());
    assert!(refused(twice, &plain).contains("found two of the name \"a\""));
    let large = config(&["geometry.blocks-per-plane=2048"]);
    let program = begun(&large, &together(mix(&["uniform", "postmark"])), &plain).err().unwrap();
    assert!(program.starts_with("tenant 2: found postmark") && program.contains("reacts to the drive"), "{program}");
    let mut scaled = mix(&["uniform:depth=2"]);
    scaled[0].time_scale = Some(0.5);
    assert!(refused(scaled, &plain).contains("time-scale: found one with uniform:depth=2, which has no arrival times"));
    assert!(refused(mix(&["uniform"; 65]), &plain).starts_with("tenants: found 65, expected 1 to 64"));
    let depth = RunOptions { depth: Some(4), ..plain.clone() };
    assert_eq!(
        refused(mix(&["uniform"]), &depth),
        "depth: found one, expected none: tenants have a pace each, such as uniform:depth=8"
    );
}

#[test]
fn seeds_of_tenants_differ_and_repeat() {
    let specs = ["uniform:write=1,depth=2", "uniform:write=1,depth=2"];
    let rows = |seed: u64| {
        let options = RunOptions { seed: flashwright_sim::SeedOption(seed), ..options("empty", Some(400)) };
        let (_, found) = played(&config(&[]), &together(mix(&specs)), &options);
        let (first, digest) = (found.report.tenants[1].first_page, found.report.digest.unwrap());
        let lpns = found.requests.unwrap().lpn;
        let (a, b): (Vec<u32>, Vec<u32>) = lpns.iter().partition(|lpn| **lpn < first);
        (a, b.into_iter().map(|lpn| lpn - first).collect::<Vec<_>>(), digest)
    };
    let (a, b, digest) = rows(7);
    assert_ne!(a, b);
    assert_eq!(rows(7), (a, b, digest.clone()));
    assert_ne!(rows(8).2, digest);
}

/// Four tenants with more outstanding than the drive takes, of these classes, under an arbiter: their shares of the requests.
fn shares(arbiter: &str, classes: [Priority; 4]) -> Vec<f64> {
    let mut all = mix(&["uniform:write=0,depth=32"; 4]);
    all.iter_mut().zip(classes).for_each(|(tenant, class)| tenant.priority = class);
    let config = config(&["controller.queue-depth=4", arbiter]);
    let (_, found) = played(&config, &together(all), &options("sequential", Some(28_000)));
    // Until the run ends, when the queues are no longer full.
    let rows = found.requests.unwrap();
    let tenants = &found.report.tenants;
    let of = |lpn: u32| tenants.iter().position(|t| (t.first_page..t.first_page + t.pages).contains(&lpn)).unwrap();
    let mut had = [0.0; 4];
    rows.lpn[1_000..22_000].iter().for_each(|lpn| had[of(*lpn)] += 1.0 / 21_000.0);
    had.to_vec()
}

#[test]
fn the_shares_of_saturated_queues_are_the_arbiters() {
    use Priority::{High, Low, Medium, Urgent};
    let near = |found: &[f64], want: [f64; 4]| {
        assert!(
            found.iter().zip(want).all(|(found, want)| (found - want).abs() <= 0.02 * want),
            "{found:?}, not {want:?}"
        );
    };
    near(&shares("controller.queues.arbiter=round-robin", [Urgent, High, Medium, Low]), [0.25; 4]);
    let weighted = "controller.queues.arbiter=weighted";
    near(&shares(weighted, [High, Medium, Medium, Low]), [4.0 / 7.0, 1.0 / 7.0, 1.0 / 7.0, 1.0 / 7.0]);
    near(&shares(weighted, [Low, Low, Urgent, High]), [0.0, 0.0, 1.0, 0.0]);
}

/// The urgent tenant asks for one command at a time, so it waits for the command under way and not for the queues.
#[test]
fn an_urgent_tenant_hardly_waits_for_the_others() {
    let mean = |arbiter: &str| {
        let mut all = mix(&["uniform:write=0,depth=64", "uniform:write=0,depth=1"]);
        all[1].priority = Priority::Urgent;
        let config = config(&["controller.queue-depth=1", arbiter]);
        let (_, found) = played(&config, &together(all), &options("sequential", Some(4000)));
        found.report.tenants[1].response_time_ns.all.mean.unwrap()
    };
    let [fifo, turns, urgent] =
        ["fifo", "round-robin", "weighted"].map(|name| mean(&format!("controller.queues.arbiter={name}")));
    assert!(fifo > 25.0 * urgent && turns <= fifo / 10.0 && urgent <= turns, "{fifo} {turns} {urgent}");
}

#[test]
fn what_the_drive_does_not_look_at_is_said() {
    let codes = |settings: &[&str], handle: Option<u16>, priority: Priority| -> Vec<(&'static str, String)> {
        let mut all = mix(&["uniform:write=1,depth=2"; 2]);
        (all[1].handle, all[1].priority) = (handle, priority);
        let (_, found) = played(&config(settings), &together(all), &options("empty", Some(200)));
        let known = ["handles-not-kept", "classes-not-weighed"];
        let found = found.report.warnings.into_iter().filter(|each| known.contains(&each.code));
        found.map(|each| (each.code, each.to_string())).collect()
    };
    let plain = codes(&[], Some(1), Priority::High);
    assert_eq!(
        plain[0].1,
        "tenants name handles, and placement.policy = auto does not look at them; try --set placement.policy=fdp"
    );
    assert!(
        plain[1].1.starts_with("tenants name a priority, and controller.queues.arbiter = fifo does not look at it"),
        "{plain:?}"
    );
    let fdp = ["placement.policy=fdp", "geometry.blocks-per-plane=128", "controller.queues.arbiter=weighted"];
    assert_eq!(codes(&fdp, Some(7), Priority::High), []);
    let beyond = codes(&fdp, Some(8), Priority::Medium);
    assert_eq!(
        beyond[0].1,
        "a tenant names handle 8, and the drive has 8: its data go to handle 0; try --set placement.fdp.handles=9"
    );
    // The highest bit is the group, of two.
    let two = [&fdp[..], &["placement.fdp.groups=2"]].concat();
    assert_eq!(codes(&two, Some(0x8007), Priority::High), []);
    assert_eq!(
        codes(&two, Some(0x8008), Priority::Medium)[0].1,
        "a tenant names handle 8 of group 1 (32776), and the drive has 8 handles in 2 groups: its data go to handle 0 of group 0; try handles \
         and groups that the drive has"
    );
    assert_eq!(codes(&[], None, Priority::Medium), []);
}

/// A drive in service is asked what two tenants asked, through their queues: each queue has the times of its tenant.
#[test]
fn queues_of_a_drive_in_service_have_the_figures_of_tenants() {
    let settings = [
        "controller.queue-depth=4",
        "controller.queues.arbiter=round-robin",
        "controller.queues.doorbell=2 us",
        "controller.queues.interrupt=3 us",
        "controller.queues.aggregation-threshold=4",
        "controller.queues.aggregation-time=100 us",
    ];
    let specs = ["uniform:write=0.5,rate=4000", "zipf:write=1,rate=2000"];
    let (_, found) = played(&config(&settings), &together(mix(&specs)), &options("sequential", Some(3000)));
    let rows = found.requests.unwrap();
    let mut live = LiveRun::new(&config(&settings), Seed(3), Precondition::Sequential, || false).unwrap();
    let second = found.report.tenants[1].first_page;
    let sectors = u32::try_from(live.ssd().sectors_per_page()).unwrap();
    let mut order: Vec<usize> = (0..rows.lpn.len()).collect();
    order.sort_by_key(|at| rows.arrival_ns[*at]);
    assert!(live.now().0 <= rows.arrival_ns[order[0]]);
    let mut completion = Completion::default();
    for at in order {
        let request = Request {
            arrival: Nanos(rows.arrival_ns[at]),
            first_sector: u64::from(rows.lpn[at]) * u64::from(sectors),
            sectors: sectors * rows.pages[at],
            kind: RequestKind::ALL[usize::from(rows.kind[at])],
            queue: 1 + u16::from(rows.lpn[at] >= second),
            ..Request::default()
        };
        let is_write = request.kind == RequestKind::Write;
        let data = vec![1; if is_write { request.data_bytes() } else { 0 }];
        live.submit_with(request, &data).unwrap();
    }
    while live.wait(Nanos(u64::MAX), &mut completion).unwrap() {}
    let report = live.report().report;
    assert!(report.tenants.is_empty());
    assert_eq!(report.queues.iter().map(|queue| queue.queue).collect::<Vec<_>>(), [1, 2]);
    for (queue, tenant) in report.queues.iter().zip(&found.report.tenants) {
        assert_eq!(json!(queue.requests), json!(tenant.requests));
        assert_eq!(json!(queue.response_time_ns), json!(tenant.response_time_ns));
        assert_eq!(json!(queue.service_time_ns), json!(tenant.service_time_ns));
        assert_eq!((queue.pages_read, queue.pages_written), (tenant.pages_read, tenant.pages_written));
    }
}

#[test]
fn on_a_drive_with_zones_a_namespace_is_of_whole_zones() {
    let config = config(&["ftl.scheme=zoned"]);
    let mut all = mix(&["zones:writers=2,size=16KiB,depth=2", "zones:writers=1,write=0.5,depth=4", "uniform:write=0"]);
    all[0].size = NamespaceSize::Share(0.5);
    all[1].size = NamespaceSize::Pages(700);
    let (run, found) = played(&config, &together(all.clone()), &options("auto", Some(8000)));
    let zone = run.ssd().zone_layout().unwrap();
    let tenants = &found.report.tenants;
    assert!(tenants.iter().all(|tenant| tenant.pages.is_multiple_of(zone.size)), "{tenants:?}");
    assert_eq!(tenants[1].pages, 700 / zone.size * zone.size);
    // No page moves, whoever writes, so nobody pays for another.
    assert_eq!(found.report.write_amplification, Some(1.0));
    assert!(tenants[..2].iter().all(|tenant| tenant.write_amplification == Some(1.0)), "{tenants:?}");

    all[1].size = NamespaceSize::Pages(u64::from(zone.size) - 1);
    let error = begun(&config, &together(all.clone()), &options("empty", Some(10))).err().unwrap();
    assert!(error.contains("tenant 2: found a namespace without a whole zone"), "{error}");
    all[1] = tenant(generated("uniform:write=0.5"));
    let error = begun(&config, &together(all), &options("empty", Some(10))).err().unwrap();
    assert!(error.starts_with("tenant 2: "), "{error}");
}
