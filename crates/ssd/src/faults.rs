//! Reading a configuration so that all its faults are found at once.
//!
//! A user's text is laid over the tree of defaults key by key, and the whole is read at once. Only where that fails is
//! each key tried alone: an unknown key is answered with its nearest match, and every value that does not fit is found.
//! Rules that span several keys are checked last.

use crate::config::Config;
use flashwright_block::Bytes;
use flashwright_nand::Geometry;
use std::fmt;
use toml::{Table, Value};

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The key's full path, such as `timing.program`; empty where the fault has none.
    pub key: String,
    /// What was found, what is allowed, and the nearest match.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() { f.write_str(&self.what) } else { write!(f, "{}: {}", self.key, self.what) }
    }
}

/// All that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .faults.iter().map(|fault| format!("{}: {fault}", .source_name)).collect::<Vec<_>>().join("\n"))]
pub struct ConfigError {
    /// The file, the bundled drive's name, or `--set`.
    pub source_name: String,
    /// At least one fault.
    pub faults: Vec<Fault>,
}

impl Config {
    /// Reads a drive from TOML laid over the defaults; `name` stands in messages. A key `base = "…"` names the bundled
    /// drive to start from.
    ///
    /// # Errors
    /// [`ConfigError`] with every fault of the text.
    pub fn from_toml(text: &str, name: &str) -> Result<Self, ConfigError> {
        Self::read(text, name, None)
    }

    /// Reads a drive from TOML laid over `base`: what its key `base` names, which the caller has read, since files are
    /// its own business.
    ///
    /// # Errors
    /// [`ConfigError`] with every fault of the text.
    ///
    /// ```
    /// # use flashwright_ssd::Config;
    /// let mine = Config::from_toml("[geometry]\nchannels = 8", "mine.toml").unwrap();
    /// let wide = Config::from_toml_over(&mine, "base = \"mine.toml\"\n[gc]\nvictim = \"fifo\"", "wide.toml").unwrap();
    /// assert_eq!(wide.geometry.channels, 8);
    /// ```
    pub fn from_toml_over(base: &Self, text: &str, name: &str) -> Result<Self, ConfigError> {
        Self::read(text, name, Some(base))
    }

    fn read(text: &str, name: &str, over: Option<&Self>) -> Result<Self, ConfigError> {
        let fail = |faults| ConfigError { source_name: name.to_owned(), faults };
        let mut table: Table = toml::from_str(text).map_err(|error| fail(vec![syntax_fault(text, &error)]))?;
        let base = match (table.remove("base"), over) {
            (Some(_), Some(base)) => base.clone(),
            (None, _) => Self::default(),
            (Some(Value::String(base)), None) => crate::bundled(&base).map_err(|what| {
                let what = format!("{what}; or the path of a TOML file, such as ./mine.toml");
                fail(vec![Fault { key: "base".into(), what }])
            })?,
            (Some(other), None) => {
                let what = format!("found {other}, expected the name of a bundled drive or the path of a TOML file");
                return Err(fail(vec![Fault { key: "base".into(), what }]));
            }
        };
        base.overlay(&table).map_err(fail)
    }

    /// Applies `KEY=VALUE` settings with dotted keys, as `--set` takes them. A value that is not TOML counts as a string.
    ///
    /// # Errors
    /// [`ConfigError`] with every fault of the settings.
    pub fn with_settings<S: AsRef<str>>(&self, settings: &[S]) -> Result<Self, ConfigError> {
        let fail = |faults| ConfigError { source_name: "--set".to_owned(), faults };
        let (mut table, mut faults) = (Table::new(), Vec::new());
        for setting in settings.iter().map(AsRef::as_ref) {
            match setting.split_once('=') {
                Some((key, value)) if !key.trim().is_empty() => {
                    insert(&mut table, key.trim(), parse_value(value.trim()))
                }
                _ => faults.push(Fault {
                    key: String::new(),
                    what: format!("found {setting:?}, expected KEY=VALUE, such as gc.victim=fifo"),
                }),
            }
        }
        match self.overlay(&table) {
            Ok(config) if faults.is_empty() => Ok(config),
            Ok(_) => Err(fail(faults)),
            Err(more) => {
                faults.extend(more);
                Err(fail(faults))
            }
        }
    }

    /// The whole configuration as TOML: reading it back gives the same configuration.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a configuration is plain tables, text and numbers")
    }

    /// Every key with its value, in a tree.
    fn tree(&self) -> Table {
        Table::try_from(self).expect("a configuration is plain tables, text and numbers")
    }

    fn overlay(&self, changes: &Table) -> Result<Self, Vec<Fault>> {
        let mut tree = self.tree();
        let unknown = walk(&self.tree(), changes, "", &mut |path, value| insert(&mut tree, path, value.clone()));
        let (whole, mut faults) = match tree.try_into::<Config>() {
            Ok(config) => (Ok(config), Vec::new()),
            // Trying each key alone takes some hundred times as long, and most texts have no such fault.
            Err(_) => self.fitting(changes),
        };
        faults.extend(unknown);
        match whole {
            Ok(config) => {
                faults.extend(config.range_faults());
                faults.sort_by(|a, b| a.key.cmp(&b.key));
                if faults.is_empty() { Ok(config) } else { Err(faults) }
            }
            Err(error) if faults.is_empty() => Err(vec![Fault { key: String::new(), what: error.to_string() }]),
            Err(_) => Err(faults),
        }
    }

    /// The values that fit their keys laid over, and those that do not, found by trying each alone.
    fn fitting(&self, changes: &Table) -> (Result<Self, toml::de::Error>, Vec<Fault>) {
        let (mut tree, mut faults) = (self.tree(), Vec::new());
        walk(&self.tree(), changes, "", &mut |path, value| {
            let mut alone = self.tree();
            insert(&mut alone, path, value.clone());
            match alone.try_into::<Self>() {
                Ok(_) => insert(&mut tree, path, value.clone()),
                Err(error) => faults.push(value_fault(path, value, &error.to_string())),
            }
        });
        (tree.try_into::<Self>(), faults)
    }

    /// Values out of range and rules that span several keys; what depends on the scheme is checked when it is built.
    fn range_faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut check = |ok: bool, key: &str, found: String, expected: &str| {
            if !ok {
                faults.push(Fault { key: key.to_owned(), what: format!("found {found}, expected {expected}") });
            }
        };
        let g = &self.geometry;
        check((1..=64).contains(&g.channels), "geometry.channels", g.channels.to_string(), "1 to 64");
        check(
            (1..=64).contains(&g.dies_per_channel),
            "geometry.dies-per-channel",
            g.dies_per_channel.to_string(),
            "1 to 64",
        );
        check(
            g.dies_per_way >= 1 && g.dies_per_channel.is_multiple_of(g.dies_per_way),
            "geometry.dies-per-way",
            g.dies_per_way.to_string(),
            &format!("a divisor of geometry.dies-per-channel = {}", g.dies_per_channel),
        );
        for (key, found, of, count) in [
            ("geometry.cluster-channels", g.cluster_channels, "geometry.channels", g.channels),
            ("geometry.cluster-dies", g.cluster_dies, "geometry.dies-per-channel", g.dies_per_channel),
        ] {
            let ok = found >= 1 && count.is_multiple_of(found);
            check(ok, key, found.to_string(), &format!("a divisor of {of} = {count}"));
        }
        check((1..=16).contains(&g.planes_per_die), "geometry.planes-per-die", g.planes_per_die.to_string(), "1 to 16");
        check(g.blocks_per_plane >= 4, "geometry.blocks-per-plane", g.blocks_per_plane.to_string(), "4 or more");
        check(
            (2..=65_535).contains(&g.pages_per_block),
            "geometry.pages-per-block",
            g.pages_per_block.to_string(),
            "2 to 65,535",
        );
        check(
            (512..=1 << 24).contains(&g.page_size.0) && g.page_size.0.is_multiple_of(512),
            "geometry.page-size",
            g.page_size.to_string(),
            "a multiple of 512 B from 512 B to 16 MiB",
        );
        // At least 1, so that a faulty 0 does not hide the other faults.
        let clusters = u128::from(g.cluster_channels.max(1)) * u128::from(g.cluster_dies.max(1));
        let clustered_page = u128::from(g.page_size.0) * clusters;
        check(
            clusters == 1 || clustered_page <= 1 << 24,
            "geometry.cluster-channels",
            format!("clustered pages of {}", Bytes(u64::try_from(clustered_page).unwrap_or(u64::MAX))),
            "at most 16 MiB (geometry.page-size x cluster-channels x cluster-dies)",
        );
        check(
            g.spare_size <= g.page_size,
            "geometry.spare-size",
            g.spare_size.to_string(),
            &format!("no more than geometry.page-size = {}", g.page_size),
        );
        let pages = [g.channels, g.dies_per_channel, g.planes_per_die, g.blocks_per_plane, g.pages_per_block]
            .iter()
            .map(|n| u128::from(*n))
            .product::<u128>()
            / clusters;
        check(
            pages <= u128::from(Geometry::PAGES_MAX),
            "geometry",
            format!("{pages} pages"),
            "at most 4,294,967,294 pages; use larger pages or fewer blocks",
        );
        let u = self.capacity.utilization;
        check(
            u > 0.0 && u < 1.0,
            "capacity.utilization",
            u.to_string(),
            "a number above 0 and below 1 (logical over physical size)",
        );
        let physical = pages * clustered_page;
        check(
            self.capacity.logical.0 == 0 || u128::from(self.capacity.logical.0) < physical,
            "capacity.logical",
            self.capacity.logical.to_string(),
            &format!("less than the flash, which has {}", Bytes(u64::try_from(physical).unwrap_or(u64::MAX))),
        );
        check(
            self.capacity.logical.0 == 0 || u128::from(self.capacity.logical.0) >= clustered_page,
            "capacity.logical",
            self.capacity.logical.to_string(),
            "at least one page",
        );
        for fault in self.host.stack.faults(u64::MAX) {
            faults.push(Fault { key: format!("host.{}", fault.key), what: fault.what });
        }
        let mut check = |ok: bool, key: &str, found: String, expected: &str| {
            if !ok {
                faults.push(Fault { key: key.to_owned(), what: format!("found {found}, expected {expected}") });
            }
        };
        let bad = self.wear.factory_bad;
        check((0.0..=0.5).contains(&bad), "wear.factory-bad", bad.to_string(), "a share of the blocks, 0 to 0.5");
        let (limited, spread, weibull) =
            (self.wear.pe_cycles_max > 0, self.wear.pe_cycles_spread, self.wear.pe_cycles_weibull);
        check(
            (0.0..=0.5).contains(&spread),
            "wear.pe-cycles-spread",
            spread.to_string(),
            "a standard deviation over wear.pe-cycles-max, 0 to 0.5",
        );
        check(
            weibull == 0.0 || (1.0..=100.0).contains(&weibull),
            "wear.pe-cycles-weibull",
            weibull.to_string(),
            "a shape of 1 to 100, or 0 for none",
        );
        check(
            spread == 0.0 || weibull == 0.0,
            "wear.pe-cycles-weibull",
            weibull.to_string(),
            "0 beside wear.pe-cycles-spread: budgets are normal or Weibull, not both",
        );
        check(
            limited || (spread == 0.0 && weibull == 0.0),
            "wear.pe-cycles-max",
            "0 (no limit)".to_owned(),
            "the mean number of erases, which wear.pe-cycles-spread and wear.pe-cycles-weibull need",
        );
        if let Some(policy) = self.wear.policy.filter(|policy| policy.needs_limit()) {
            let what =
                format!("the number of erases that a block stands: wear.policy = {:?} needs it", policy.listed().name);
            check(limited, "wear.pe-cycles-max", "0 (no limit)".to_owned(), &what);
        }
        for (policy, fault) in self.wear.policies.faults() {
            check(false, &format!("wear.{policy}.{}", fault.key), fault.found, fault.expected);
        }
        for (key, found, expected) in self.controller.faults() {
            check(false, &format!("controller.{key}"), found, &expected);
        }
        check((1..=64).contains(&self.ftl.entry_bytes), "ftl.entry-bytes", self.ftl.entry_bytes.to_string(), "1 to 64");
        check(
            self.gc.free_blocks_min >= 1 && self.gc.free_blocks_min < g.blocks_per_plane,
            "gc.free-blocks-min",
            self.gc.free_blocks_min.to_string(),
            &format!("1 or more and less than geometry.blocks-per-plane = {}", g.blocks_per_plane),
        );
        faults
    }
}

/// Calls `leaf` for every value of `changes` that has a place in `tree`, and returns a fault for every key without one.
fn walk(tree: &Table, changes: &Table, prefix: &str, leaf: &mut impl FnMut(&str, &Value)) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (key, value) in changes {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match (tree.get(key), value) {
            (None, _) => faults.push(unknown_key(&path, key, tree)),
            (Some(Value::Table(known)), Value::Table(inner)) => faults.extend(walk(known, inner, &path, leaf)),
            (Some(Value::Table(known)), other) => faults.push(Fault {
                key: path,
                what: format!("found {other}, expected a table with {}", list(known.keys())),
            }),
            (Some(_), value) => leaf(&path, value),
        }
    }
    faults
}

fn unknown_key(path: &str, key: &str, siblings: &Table) -> Fault {
    let mut what = "unknown key".to_owned();
    if let Some(near) = nearest(key, siblings.keys().map(String::as_str)) {
        what += &format!("; did you mean {near}?");
    }
    Fault { key: path.to_owned(), what: format!("{what} (known here: {})", list(siblings.keys())) }
}

/// Serde's message in our words: what was found, what is allowed, the nearest match.
fn value_fault(path: &str, value: &Value, message: &str) -> Fault {
    let message = message.lines().next().unwrap_or_default().trim();
    let what = match message.split_once(", expected ") {
        Some((_, expected)) if message.starts_with("unknown variant") => {
            let names: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
            let found = value.as_str().unwrap_or_default();
            let hint = if found == "python" || found.starts_with("python:") {
                Some("; a policy written in Python is handed to the run (policies=, --policy FILE.py:CLASS)".to_owned())
            } else {
                nearest(found, names.iter().copied()).map(|near| format!("; did you mean {near:?}?"))
            };
            format!("found {value}, expected {}{}", list(names.iter()), hint.unwrap_or_default())
        }
        Some((_, expected)) => format!("found {value}, expected {}", expected.trim_end_matches('.')),
        None => format!("found {value}: {message}"),
    };
    Fault { key: path.to_owned(), what }
}

fn syntax_fault(text: &str, error: &toml::de::Error) -> Fault {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let what = error.message().lines().next().unwrap_or("not TOML").to_owned();
    Fault { key: line.map_or_else(String::new, |line| format!("line {line}")), what }
}

fn list(names: impl Iterator<Item = impl fmt::Display>) -> String {
    names.map(|name| name.to_string()).collect::<Vec<_>>().join(", ")
}

/// The candidate that looks most like `found`, if one is near enough to be meant.
pub(crate) fn nearest<'a>(found: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (strsim::jaro_winkler(found, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

/// Sets the value at a dotted path, making tables on the way.
fn insert(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            table.insert(path.to_owned(), value);
        }
        Some((head, rest)) => {
            let inner = table.entry(head).or_insert_with(|| Value::Table(Table::new()));
            if !inner.is_table() {
                *inner = Value::Table(Table::new());
            }
            if let Value::Table(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// A number, a truth value, a quoted string; else the text itself.
fn parse_value(text: &str) -> Value {
    toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(text: &str) -> String {
        Config::from_toml(text, "ssd.toml").unwrap_err().to_string()
    }

    #[test]
    fn all_faults_are_found_at_once_with_path_and_nearest_match() {
        let text =
            "[timing]\nprogram = 600\nbus-rat = \"40 MB/s\"\n[gc]\nvictim = \"gredy\"\n[capacity]\nutilization = 1.2\n";
        assert_eq!(
            message(text),
            "ssd.toml: capacity.utilization: found 1.2, expected a number above 0 and below 1 (logical over physical size)\n\
             ssd.toml: gc.victim: found \"gredy\", expected greedy, fifo, random, cost-benefit, \
             windowed-greedy, d-choices, cat, age-threshold, partition-fifo, container-marking, default; did you mean \"greedy\"?\n\
             ssd.toml: timing.bus-rat: unknown key; did you mean bus-rate? (known here: bus-rate, command, erase, model, \
             oob-read, pipelined, program, read, transfer-spare, unmapped-read)\n\
             ssd.toml: timing.program: found 600, expected a time with its unit, such as \"200 us\"",
        );
    }

    #[test]
    fn wear_that_makes_no_sense_is_said_in_a_line_each() {
        let text = "[wear]\npolicy = \"rate-limit\"\npe-cycles-spread = 0.1\npe-cycles-weibull = 0.5\n\
                    [wear.threshold]\ngap = 0\n[wear.static]\nthreshold = 1\nset-bits = 17\n\
                    [wear.rate-limit]\nskip-below = 0.0\nmigrate-below = 1.5\n[wear.random]\nevery = 0\n\
                    [wear.dual-pool]\nthreshold = 0\n";
        assert_eq!(
            message(text).replace("ssd.toml: wear.", ""),
            "dual-pool.threshold: found 0, expected 1 erase or more\n\
             pe-cycles-max: found 0 (no limit), expected the mean number of erases, which wear.pe-cycles-spread and \
             wear.pe-cycles-weibull need\n\
             pe-cycles-max: found 0 (no limit), expected the number of erases that a block stands: wear.policy = \
             \"rate-limit\" needs it\n\
             pe-cycles-weibull: found 0.5, expected a shape of 1 to 100, or 0 for none\n\
             pe-cycles-weibull: found 0.5, expected 0 beside wear.pe-cycles-spread: budgets are normal or Weibull, not \
             both\n\
             random.every: found 0, expected 1 erase or more\n\
             rate-limit.migrate-below: found 1.5, expected a share of the mean remaining life, 0 to 1\n\
             rate-limit.skip-below: found 0, expected a share of the mean remaining life, above 0 and at most 1\n\
             static.set-bits: found 17, expected 0 to 16\n\
             static.threshold: found 1, expected 2 erases a set or more\n\
             threshold.gap: found 0, expected 1 erase or more",
        );
        assert_eq!(
            message("[wear]\npolicy = \"dualpool\"\nthreshold = 3\n[wear.dual-pool]\ngap = 3\n"),
            "ssd.toml: wear.dual-pool.gap: unknown key (known here: reset-on-resize, threshold)\n\
             ssd.toml: wear.policy: found \"dualpool\", expected none, threshold, dual-pool, static, random, rate-limit; did \
             you mean \"dual-pool\"?\n\
             ssd.toml: wear.threshold: found 3, expected a table with gap",
        );
    }

    #[test]
    fn clusters_divide_what_they_join() {
        assert_eq!(
            message("[geometry]\ncluster-channels = 3\ncluster-dies = 0\n"),
            "ssd.toml: geometry.cluster-channels: found 3, expected a divisor of geometry.channels = 4\n\
             ssd.toml: geometry.cluster-dies: found 0, expected a divisor of geometry.dies-per-channel = 2"
        );
        assert_eq!(
            message("[geometry]\ncluster-channels = 4\npage-size = \"6 MiB\"\n"),
            "ssd.toml: geometry.cluster-channels: found clustered pages of 24 MiB, expected at most 16 MiB \
             (geometry.page-size x cluster-channels x cluster-dies)"
        );
    }

    #[test]
    fn what_is_not_toml_names_its_line() {
        assert!(message("[geometry]\nchannels = = 3\n").starts_with("ssd.toml: line 2: "));
        assert!(message("geometry = 3").contains("geometry: found 3, expected a table with"));
        assert!(message("base = \"nothing\"").contains("base: "));
    }

    #[test]
    fn settings_of_the_command_line_are_laid_over() {
        let config = Config::default()
            .with_settings(&["gc.victim=fifo", "timing.read=75 us", "capacity.utilization=0.7"])
            .unwrap();
        assert_eq!(config.timing.read.0, 75_000);
        assert_eq!(config.capacity.utilization, 0.7);
        let error = Config::default().with_settings(&["geometry.spare-size=20 GiB"]).unwrap_err().to_string();
        assert_eq!(error, "--set: geometry.spare-size: found 20 GiB, expected no more than geometry.page-size = 4 KiB");
        let error = Config::default().with_settings(&["gc.victim", "geometry.channels=0"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "--set: found \"gc.victim\", expected KEY=VALUE, such as gc.victim=fifo\n\
             --set: geometry.channels: found 0, expected 1 to 64"
        );
    }

    proptest! {
        #[test]
        fn text_round_trips(
            channels in 1u32..=64, blocks in 16u32..5000, program in 1u64..u64::MAX / 2, rate in 1u64..1 << 40, u in 0.01f64..0.99,
        ) {
            let mut config = Config::default();
            config.geometry.channels = channels;
            config.geometry.blocks_per_plane = blocks;
            config.timing.program = flashwright_block::Nanos(program % (1 << 62));
            config.timing.bus_rate = crate::Rate(Some(rate));
            config.capacity.utilization = u;
            config.name = "a \"quoted\"\nname".to_owned();
            prop_assert_eq!(Config::from_toml(&config.to_toml(), "text").unwrap(), config);
        }
    }
}
