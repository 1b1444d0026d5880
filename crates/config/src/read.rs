//! Reads a configuration and reports all its errors at once.
//!
//! The user's values replace defaults key by key, and the result is deserialized as a whole. Only if that fails is each
//! key tried alone: an unknown key gets its nearest match, and every value of a wrong type is found. Ranges and rules
//! that span several keys are checked last (`check`).

use crate::check::DriveConfig;
use crate::keys;
use crate::problems::{ConfigError, SettingError};
use crate::schema::Config;
use flashwright_block::read_share;
use serde_json::Value as Json;
use std::fmt;
use toml::{Table, Value};

impl Config {
    /// Reads a drive from TOML; keys that it leaves out take their defaults. Messages call it `name`. A key
    /// `base = "…"` names the bundled drive to start from.
    ///
    /// # Errors
    /// [`ConfigError`] with every validation error of the text.
    pub fn from_toml(text: &str, name: &str) -> Result<DriveConfig, ConfigError> {
        Self::read(text, name, None)
    }

    /// Reads a drive from TOML; keys that it leaves out take their values from `base`. The caller has read the drive
    /// that the key `base` names, because this crate opens no files.
    ///
    /// # Errors
    /// [`ConfigError`] with every validation error of the text.
    ///
    /// ```
    /// # use flashwright_config::Config;
    /// let mine = Config::from_toml("[geometry]\nchannels = 8", "mine.toml").unwrap();
    /// let wide = Config::from_toml_over(&mine, "base = \"mine.toml\"\n[gc]\nvictim = \"fifo\"", "wide.toml").unwrap();
    /// assert_eq!(wide.geometry.channels, 8);
    /// ```
    pub fn from_toml_over(base: &Self, text: &str, name: &str) -> Result<DriveConfig, ConfigError> {
        Self::read(text, name, Some(base))
    }

    fn read(text: &str, name: &str, over: Option<&Self>) -> Result<DriveConfig, ConfigError> {
        let fail = |problems| ConfigError { source_name: name.to_owned(), problems };
        let mut table: Table = toml::from_str(text).map_err(|error| fail(vec![syntax_problem(text, &error)]))?;
        let base = match (table.remove("base"), over) {
            (Some(_), Some(base)) => base.clone(),
            (None, _) => Self::default(),
            (Some(Value::String(base)), None) => {
                crate::bundled(&base).map(DriveConfig::into_written).map_err(|what| {
                    let what = format!("{what}; or the path of a TOML file, such as ./mine.toml");
                    fail(vec![SettingError { key: "base".into(), what }])
                })?
            }
            (Some(other), None) => {
                let what = format!("found {other}, expected the name of a bundled drive or the path of a TOML file");
                return Err(fail(vec![SettingError { key: "base".into(), what }]));
            }
        };
        base.overlay(&table).map_err(fail)
    }

    /// Applies `KEY=VALUE` settings with dotted keys, as `--set` takes them. A value that is not TOML counts as a string.
    ///
    /// # Errors
    /// [`ConfigError`] with every validation error of the settings.
    pub fn with_settings<S: AsRef<str>>(&self, settings: &[S]) -> Result<DriveConfig, ConfigError> {
        let fail = |problems| ConfigError { source_name: "--set".to_owned(), problems };
        let (mut table, mut problems) = (Table::new(), Vec::new());
        for setting in settings.iter().map(AsRef::as_ref) {
            match setting.split_once('=') {
                Some((key, value)) if !key.trim().is_empty() => {
                    insert(&mut table, key.trim(), parse_value(value.trim()))
                }
                _ => problems.push(SettingError {
                    key: String::new(),
                    what: format!("found {setting:?}, expected KEY=VALUE, such as gc.victim=fifo"),
                }),
            }
        }
        match self.overlay(&table) {
            Ok(config) if problems.is_empty() => Ok(config),
            Ok(_) => Err(fail(problems)),
            Err(more) => {
                problems.extend(more);
                Err(fail(problems))
            }
        }
    }

    /// The whole configuration as TOML. Reading it back gives the same configuration.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a configuration is plain tables, text and numbers")
    }

    /// The whole configuration as the JSON that reports hold.
    ///
    /// # Panics
    /// Never: a configuration is plain tables, text and numbers.
    #[must_use]
    pub fn to_json(&self) -> Json {
        serde_json::to_value(self).expect("a configuration is plain tables, text and numbers")
    }

    /// Reads what [`Self::to_json`] wrote. Keys that are left out, or null, take their defaults.
    ///
    /// # Errors
    /// [`ConfigError`] with every validation error of the settings.
    ///
    /// ```
    /// # use flashwright_config::Config;
    /// let drive = Config::from_toml("[gc]\nvictim = \"fifo\"", "fifo.toml").unwrap();
    /// assert_eq!(Config::from_json(&drive.to_json(), "result").unwrap(), drive);
    /// ```
    pub fn from_json(json: &Json, name: &str) -> Result<DriveConfig, ConfigError> {
        let fail = |problems| ConfigError { source_name: name.to_owned(), problems };
        match of_json(json) {
            Some(Value::Table(table)) => Self::default().overlay(&table).map_err(fail),
            _ => {
                let what = format!("found {json}, expected an object of settings");
                Err(fail(vec![SettingError { key: name.to_owned(), what }]))
            }
        }
    }

    /// Every key with its value, as a tree.
    fn tree(&self) -> Table {
        Table::try_from(self).expect("a configuration is plain tables, text and numbers")
    }

    /// All keys that users can set, with a value each, including optional keys.
    fn writable(&self) -> Table {
        let mut tree = self.tree();
        for key in keys::all().iter().filter(|key| key.default.is_empty()) {
            if lookup(&tree, &key.path).is_none() {
                insert(&mut tree, &key.path, Value::String(String::new()));
            }
        }
        tree
    }

    fn overlay(&self, changes: &Table) -> Result<DriveConfig, Vec<SettingError>> {
        let mut tree = self.tree();
        let unknown =
            walk(&self.writable(), changes, "", &mut |path, value| insert(&mut tree, path, of_percent(path, value)));
        let (whole, mut problems) = match tree.try_into::<Config>() {
            Ok(config) => (Ok(config), Vec::new()),
            // Trying each key alone takes some hundred times as long, and most texts have no wrong value.
            Err(_) => self.fitting(changes),
        };
        problems.extend(unknown);
        match whole {
            Ok(config) if problems.is_empty() => config.checked().map_err(sorted),
            Ok(config) => {
                problems.extend(config.problems());
                Err(sorted(problems))
            }
            Err(error) if problems.is_empty() => {
                Err(vec![SettingError { key: String::new(), what: error.to_string() }])
            }
            Err(_) => Err(problems),
        }
    }

    /// Sets the values that fit their keys, and reports the others, which it finds by trying each alone.
    fn fitting(&self, changes: &Table) -> (Result<Self, toml::de::Error>, Vec<SettingError>) {
        let (mut tree, mut problems) = (self.tree(), Vec::new());
        walk(&self.writable(), changes, "", &mut |path, value| {
            let mut alone = self.tree();
            let meant = of_percent(path, value);
            insert(&mut alone, path, meant.clone());
            match alone.try_into::<Self>() {
                Ok(_) => insert(&mut tree, path, meant),
                Err(error) => problems.push(value_problem(path, value, &error.to_string())),
            }
        });
        (tree.try_into::<Self>(), problems)
    }
}

/// Calls `leaf` for every value of `changes` that has a place in `tree`, and returns a problem for every key without one.
fn walk(tree: &Table, changes: &Table, prefix: &str, leaf: &mut impl FnMut(&str, &Value)) -> Vec<SettingError> {
    let mut problems = Vec::new();
    for (key, value) in changes {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match (tree.get(key), value) {
            (None, _) => problems.push(unknown_key(&path, key, tree)),
            (Some(Value::Table(known)), Value::Table(inner)) => problems.extend(walk(known, inner, &path, leaf)),
            (Some(Value::Table(known)), other) => problems.push(SettingError {
                key: path,
                what: format!("found {other}, expected a table with {}", list(known.keys())),
            }),
            (Some(_), value) => leaf(&path, value),
        }
    }
    problems
}

fn unknown_key(path: &str, key: &str, siblings: &Table) -> SettingError {
    let mut what = "unknown key".to_owned();
    if let Some(near) = nearest(key, siblings.keys().map(String::as_str)) {
        what += &format!("; did you mean {near}?");
    }
    SettingError { key: path.to_owned(), what: format!("{what} (known here: {})", list(siblings.keys())) }
}

/// Rephrases Serde's message: what was found, what was expected, the nearest match.
fn value_problem(path: &str, value: &Value, message: &str) -> SettingError {
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
    SettingError { key: path.to_owned(), what }
}

fn syntax_problem(text: &str, error: &toml::de::Error) -> SettingError {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let what = error.message().lines().next().unwrap_or("not TOML").to_owned();
    SettingError { key: line.map_or_else(String::new, |line| format!("line {line}")), what }
}

fn list(names: impl Iterator<Item = impl fmt::Display>) -> String {
    names.map(|name| name.to_string()).collect::<Vec<_>>().join(", ")
}

/// The candidate most similar to `found`, if one is similar enough.
pub(crate) fn nearest<'a>(found: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (strsim::jaro_winkler(found, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

/// Sorts problems by key.
fn sorted(mut problems: Vec<SettingError>) -> Vec<SettingError> {
    problems.sort_by(|a, b| a.key.cmp(&b.key));
    problems
}

/// The value at a dotted path.
pub(crate) fn lookup<'t>(table: &'t Table, path: &str) -> Option<&'t Value> {
    let (head, rest) = path.split_once('.').map_or((path, None), |(head, rest)| (head, Some(rest)));
    let found = table.get(head)?;
    rest.map_or(Some(found), |rest| lookup(found.as_table()?, rest))
}

/// Sets the value at a dotted path, creating tables on the way.
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

/// The number that a share in percent stands for, such as 0.87 for `87%`; any other value is what it is.
fn of_percent(path: &str, value: &Value) -> Value {
    let share = match value {
        Value::String(text) if text.ends_with('%') => {
            keys::all().iter().find(|key| key.path == path && key.is_share()).and_then(|_| read_share(text))
        }
        _ => None,
    };
    share.map_or_else(|| value.clone(), Value::Float)
}

/// JSON as TOML, which has no null: a key whose value is null is left out.
fn of_json(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(value) => {
            value.as_i64().map_or_else(|| Value::Float(value.as_f64().unwrap_or(f64::NAN)), Value::Integer)
        }
        Json::String(value) => Value::String(value.clone()),
        Json::Array(values) => Value::Array(values.iter().filter_map(of_json).collect()),
        Json::Object(values) => {
            Value::Table(values.iter().filter_map(|(key, value)| Some((key.clone(), of_json(value)?))).collect())
        }
    })
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
    use flashwright_ftl::{VictimName, WearName};
    use proptest::prelude::*;

    fn message(text: &str) -> String {
        Config::from_toml(text, "ssd.toml").unwrap_err().to_string()
    }

    #[test]
    fn all_problems_are_found_at_once_with_path_and_nearest_match() {
        let text =
            "[timing]\nprogram = 600\nbus-rat = \"40 MB/s\"\n[gc]\nvictim = \"gredy\"\n[capacity]\nutilization = 1.2\n";
        let victims = list(VictimName::ALL.iter().map(|name| name.listed().name));
        let times = list(Config::default().tree()["timing"].as_table().unwrap().keys());
        assert_eq!(
            message(text),
            format!(
                "ssd.toml: capacity.utilization: found 1.2, expected a number above 0 and below 1 (logical over physical size)\n\
             ssd.toml: gc.victim: found \"gredy\", expected {victims}, default; did you mean \"greedy\"?\n\
             ssd.toml: timing.bus-rat: unknown key; did you mean bus-rate? (known here: {times})\n\
             ssd.toml: timing.program: found 600, expected a time with its unit, such as \"200 us\""
            ),
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
             pe-cycles-max: found 0 (no limit), expected the number of erases that a block survives: wear.policy = \
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
        let policies = list(WearName::ALL.iter().map(|name| name.listed().name));
        assert_eq!(
            message("[wear]\npolicy = \"dualpool\"\nthreshold = 3\n[wear.dual-pool]\ngap = 3\n"),
            format!(
                "ssd.toml: wear.dual-pool.gap: unknown key (known here: reset-on-resize, threshold)\n\
             ssd.toml: wear.policy: found \"dualpool\", expected none, {policies}; did you mean \"dual-pool\"?\n\
             ssd.toml: wear.threshold: found 3, expected a table with gap"
            ),
        );
    }

    #[test]
    fn a_number_out_of_its_range_is_refused_in_a_line_whatever_is_chosen() {
        for (setting, expected) in [
            ("timing.program=11 s", "found 11 s, expected 0 ns to 10 s"),
            ("timing.bus-rate=99 kB/s", "found 99000 B/s, expected 100 kB/s to 1 TB/s"),
            ("geometry.page-size=1000", "found 1000 B, expected a multiple of 512 B from 512 B to 16 MiB"),
            ("gc.windowed-greedy.beta=-1.0", "found -1, expected valid pages a cycle, 0 to 1,000,000"),
            ("gc.cat.age-step=0", "found 0, expected 1 or more host page writes"),
            ("gc.container-marking.rotate-share=1.5", "found 1.5, expected a share of a block's pages, 0 to 1"),
            ("gc.container-marking.beta=nan", "found NaN, expected valid pages a cycle, 0 to 1,000,000"),
            (
                "ram.pud-lru.threshold=nan",
                "found NaN, expected a share from 0 to 1, such as ram.pud-lru.threshold = 0.001",
            ),
            ("ram.cflru.window=-0.1", "found -0.1, expected a share from 0 to 1, such as ram.cflru.window = 0.25"),
            ("ftl.dftl.log-share=1.5", "found 1.5, expected a share of the logical blocks, 0 to 1"),
            ("ftl.dftl.segmented-lru.protected=-1.0", "found -1, expected a share of the entries, 0 to 1"),
            (
                "ftl.bast.log-fraction=1.5",
                "found 1.5, expected a share of all blocks above 0 and below 1, such as 0.03",
            ),
            ("ftl.replacement.reserve-blocks=0", "found 0, expected 1 or more: a fold needs an erased block"),
            ("ftl.superblock.update-blocks=0", "found 0, expected 1 or more blocks beyond them"),
            ("ram.gc-arm.window=0", "found 0, expected 1 or more requests"),
            ("placement.dac.regions=65", "found 65, expected 1 to 64"),
            ("host.pai.timeout=61 s", "found 61 s, expected 0 ns to 60 s"),
            ("host.ssd-friendly.zones=0", "found 0, expected 1 to 512"),
            ("host.ssd-friendly.reads=0", "found 0, expected at least 1, or its requests would never go"),
            ("host.kyber.read-latency=0 ns", "found 0 ns, expected a time above 0, such as \"2 ms\""),
            ("errors.temperature=200.0", "found 200, expected degrees Celsius, -40 to 125"),
            ("errors.age-at-start=4000 d", "found 345600000 s, expected 0 ns to 3650 d"),
            ("errors.reclaim-share=0.0", "found 0, expected a share of errors.correctable, above 0 and at most 1"),
            ("errors.rates.fresh=0.6", "found 0.6, expected 0 to 0.5"),
            ("controller.command-limit=1000 B", "found 1000 B, expected a multiple of 512 B, at most 1 TiB"),
        ] {
            let error = Config::default().with_settings(&[setting]).unwrap_err().to_string();
            let key = setting.split('=').next().unwrap();
            assert_eq!(error, format!("--set: {key}: {expected}"));
        }
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
    fn errors_beyond_correction_of_fresh_data_are_refused_where_the_model_is_on() {
        let flash = "[geometry]\nbits-per-cell = 3\npage-size = \"16 KiB\"\n[errors]\ncorrectable = 20\n";
        assert!(Config::from_toml(flash, "ssd.toml").is_ok());
        assert_eq!(
            message(&format!("{flash}law = \"power-law\"\n")),
            "ssd.toml: errors.correctable: found 20, expected 27 or more: one block in 100 has 19.6 errors or more in a \
             codeword of fresh data, which must be within errors.reclaim-share",
        );
        let aged = "[errors]\nlaw = \"power-law\"\nage-at-start = \"90 d\"\n";
        let drive = Config::from_toml(aged, "ssd.toml").unwrap();
        assert_eq!(drive.errors.age_at_start, "2160 h".parse().unwrap());
        assert_eq!(Config::from_toml(&drive.to_toml(), "text").unwrap(), drive);
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
        let percent = Config::default().with_settings(&["capacity.utilization=87%"]).unwrap();
        assert_eq!(percent.capacity.utilization, 0.87);
        assert_eq!(
            Config::from_toml("[capacity]\nutilization = \"87 %\"", "ssd.toml").unwrap().capacity.utilization,
            0.87
        );
        // Degrees are no share.
        assert!(Config::default().with_settings(&["errors.temperature=40%"]).is_err());
        let error = Config::default().with_settings(&["capacity.utilization=120%"]).unwrap_err().to_string();
        assert!(
            error.starts_with("--set: capacity.utilization: found 1.2, expected a number above 0 and below 1"),
            "{error}"
        );
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
            channels in 1u32..=64, blocks in 16u32..5000, program in 0u64..=10_000_000_000, rate in 100_000u64..1 << 39, u in 0.01f64..0.99,
        ) {
            let mut config = Config::default();
            config.geometry.channels = channels;
            config.geometry.blocks_per_plane = blocks;
            config.timing.program = flashwright_block::Nanos(program);
            config.timing.bus_rate = crate::Rate(Some(rate));
            config.capacity.utilization = u;
            config.name = "a \"quoted\"\nname".to_owned();
            prop_assert_eq!(Config::from_toml(&config.to_toml(), "text").unwrap().into_written(), config);
        }
    }
}
