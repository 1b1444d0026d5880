//! The text of workloads: what is read, what is written back, what is refused and how.

use crate::model_support::model_file;
use flashwright_workload::generate::{Pace, WorkloadSpec, catalogue};
use proptest::prelude::*;

fn parse(text: &str) -> WorkloadSpec {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    let message = text.parse::<WorkloadSpec>().expect_err(text).to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

#[test]
fn contract_names_are_read() {
    for text in [
        "sequential",
        "uniform",
        "uniform:write=0.7,size=4KiB,depth=32",
        "strided:step=128KiB",
        "hot-cold:hot-space=0.1,hot-access=0.9",
        "zipf:accesses=0.95,space=0.2,chunk=256KiB",
        "dynamic-static:static=0.7",
        "stand-in:financial1",
        "stand-in:financial1,depth=4",
        "dftl-a:rate=500",
        "dftl-b",
    ] {
        let spec = parse(text);
        assert_eq!(parse(&spec.to_string()), spec, "{text}");
    }
}

#[test]
fn the_canonical_text_leaves_defaults_out() {
    for (text, canonical) in [
        ("uniform", "uniform"),
        (" uniform : depth=32 , size = 4 KiB , write=70% ", "uniform:write=0.7,size=4KiB,depth=32"),
        ("zipf:write=0.5,space=0.1", "zipf:space=0.1,write=0.5"),
        ("zipf:1.2", "zipf:1.2"),
        ("zipf:theta=0.990,write=70%", "zipf:0.99,write=0.7"),
        ("pareto:h=20%", "pareto"),
        ("strided:step=65536B", "strided:step=64KiB"),
        ("stand-in:rate=100,websearch,arrival=fixed", "stand-in:websearch1,rate=100,arrival=fixed"),
        ("stand-in:trace=tpch,variant=gupta09", "stand-in:tpc-h,variant=gupta09"),
    ] {
        assert_eq!(parse(text).to_string(), canonical);
    }
}

#[test]
fn pace_follows_depth_and_rate() {
    assert_eq!(parse("uniform").pace(), Pace::Closed { depth: 1 });
    assert_eq!(parse("uniform:depth=7").pace(), Pace::Closed { depth: 7 });
    assert_eq!(parse("uniform:rate=100").pace(), Pace::Open);
    assert_eq!(parse("stand-in:financial1").pace(), Pace::Open);
    assert_eq!(parse("stand-in:financial1,depth=3").pace(), Pace::Closed { depth: 3 });
}

#[test]
fn messages_say_key_found_allowed_and_the_nearest_name() {
    let names: Vec<&str> = catalogue().iter().map(|generator| generator.name).collect();
    assert_eq!(
        refused("unifrom:depth=3"),
        format!(
            "workload \"unifrom:depth=3\": workload: found \"unifrom\", expected one of {} (did you mean uniform?)",
            names.join(", ")
        )
    );
    assert_eq!(
        refused("uniform:dept=3"),
        "workload \"uniform:dept=3\": dept: found an unknown key, expected one of places, write, trim, size, align, range, depth, rate, arrival \
         (did you mean depth?)"
    );
    assert_eq!(
        refused("uniform:size=4000"),
        "workload \"uniform:size=4000\": size: found \"4000\", expected a multiple of 512 B from 512 B up to 1 TiB, such as \
         4KiB, 4k or 4096"
    );
    assert!(
        refused("zipf:placement=scatered").contains("expected one of scattered, identity (did you mean scattered?)")
    );
    assert!(refused("stand-in:finacial1").contains("(did you mean financial1?)"));
}

#[test]
fn all_faults_are_listed_at_once() {
    let error = "zipf:acceses=0.9,write=1.5,depth=0,size=,depth=2,what".parse::<WorkloadSpec>().unwrap_err();
    let keys: Vec<&str> = error.faults.iter().map(|fault| fault.key.as_str()).collect();
    assert_eq!(keys, ["size", "depth", "write", "depth", "theta", "acceses"]);
    let error = "zipf:accesses=0.1,space=0.2,depth=2,rate=3,range=0".parse::<WorkloadSpec>().unwrap_err();
    let keys: Vec<&str> = error.faults.iter().map(|fault| fault.key.as_str()).collect();
    assert_eq!(keys, ["rate", "range", "accesses"]);
}

#[test]
fn what_contradicts_itself_is_refused() {
    for (text, says) in [
        ("", "workload: found \"\""),
        ("uniform:", "expected key=value"),
        ("uniform:financial1", "expected key=value"),
        ("uniform:depth=4,rate=100", "one of the two"),
        ("uniform:arrival=fixed", "rate=... with it"),
        ("stand-in:financial1,depth=4,arrival=fixed", "rate=... with it"),
        ("uniform:write=0.8,trim=0.3", "add up to 1 or less"),
        ("uniform:depth=4,depth=4", "each key once"),
        ("uniform:size=100B", "multiple of 512 B"),
        ("uniform:write=nan", "a share from 0 to 1"),
        ("uniform:rate=0", "requests per second"),
        ("strided:step=6KiB,size=4KiB", "a multiple of the alignment, 4 KiB"),
        ("hot-cold:hot-space=0", "above 0 and below 1"),
        ("dynamic-static:static=1", "below 1"),
        ("zipf:accesses=1", "below 1"),
        ("zipf:chunk=4KiB,size=8KiB", "the request size or more"),
        ("zipf:theta=0.99,accesses=0.95", "theta=0.99 and accesses=0.95 together, expected one of the two"),
        ("zipf:theta=-1", "an exponent from 0 (uniform) to 100"),
        ("zipf:thet=1", "did you mean theta?"),
        ("pareto:h=0", "above 0 and below 1"),
        ("dftl-b:run=2", "at most 0.5000 with run=2"),
        ("dftl-b:run=1", "2 requests or more"),
        ("stand-in", "trace: found nothing"),
        ("stand-in:build,variant=gupta09", "variant"),
    ] {
        let message = refused(text);
        assert!(message.contains(says), "{text:?}: {message}");
    }
}

#[test]
fn the_catalogue_is_complete_and_its_defaults_are_read() {
    for info in catalogue() {
        assert!(!info.summary.is_empty() && info.summary.len() < 130, "{}", info.name);
        for key in &info.keys {
            assert!(!key.help.is_empty() && !key.allowed.is_empty(), "{}:{}", info.name, key.name);
            if let Some(default) = key.default {
                let bare = match info.bare_key {
                    None | Some("theta" | "h") => String::new(),
                    Some("file") => format!("{},", model_file()),
                    Some(_) => "financial1,".to_owned(),
                };
                let spec = parse(&format!("{}:{bare}{}={default}", info.name, key.name));
                assert!(!spec.to_string().contains(&format!("{}=", key.name)), "{spec} writes a default");
            }
        }
        let mut names: Vec<&str> = info.keys.iter().map(|key| key.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), info.keys.len(), "{} has a key twice", info.name);
    }
}

/// Pairs of keys with values that are allowed together.
fn spec_text() -> impl Strategy<Value = String> {
    let share = || (0u32..=1000).prop_map(|n| f64::from(n) / 1000.0);
    let inner = || (1u32..1000).prop_map(|n| f64::from(n) / 1000.0);
    let own = prop_oneof![
        Just("sequential:".to_owned()),
        Just("uniform:".to_owned()),
        (1u32..5000).prop_map(|sectors| format!("strided:step={}B", sectors * 512)),
        (inner(), share()).prop_map(|(space, access)| format!("hot-cold:hot-space={space},hot-access={access}")),
        (inner(), share()).prop_filter_map("skewed", |(space, accesses)| {
            (accesses >= space && accesses < 1.0).then(|| format!("zipf:accesses={accesses},space={space}"))
        }),
        inner().prop_map(|share| format!("dynamic-static:static={share}")),
        (0.0..0.45f64).prop_map(|share| format!("dftl-a:sequential={share}")),
        Just("stand-in:cello99".to_owned()),
        Just("stand-in:exchange,variant=hu12".to_owned()),
    ];
    let pace = prop_oneof![
        Just(String::new()),
        (1u32..).prop_map(|depth| format!("depth={depth}")),
        (0.001..1e9f64).prop_map(|rate| format!("rate={rate}")),
        (0.001..1e9f64).prop_map(|rate| format!("rate={rate},arrival=fixed")),
    ];
    let shares = share().prop_flat_map(move |write| {
        (0.0..=1.0f64).prop_map(move |part| format!("write={write},trim={}", part * (1.0 - write)))
    });
    (own, pace, shares, inner()).prop_map(|(own, pace, shares, range)| {
        let items = [pace, shares, format!("range={range}")];
        let items: Vec<&str> = items.iter().map(String::as_str).filter(|item| !item.is_empty()).collect();
        format!("{own}{}{}", if own.ends_with(':') { "" } else { "," }, items.join(","))
    })
}

proptest! {
    #[test]
    fn writing_and_reading_is_the_identity(text in spec_text()) {
        let spec = parse(&text);
        let canonical = spec.to_string();
        let again = parse(&canonical);
        prop_assert_eq!(&again, &spec);
        prop_assert_eq!(again.to_string(), canonical);
    }

    #[test]
    fn any_text_is_read_or_refused_in_one_line(text in "[a-z0-9:=,.% -]{0,40}") {
        if let Err(error) = text.parse::<WorkloadSpec>() {
            prop_assert!(!error.faults.is_empty());
        }
    }
}
