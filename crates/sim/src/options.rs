//! The options of a run apart from its drive and workload: types, defaults, ranges and descriptions have no other place.

use crate::measure::Window;
use crate::player::Pace;
use crate::precondition::Precondition;
use crate::simulation::{RunError, RunSettings, Simulation};
use crate::source::{Source, SourceSpec};
use flashwright_block::{Nanos, Seed};
use flashwright_ssd::Ssd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest number of requests that an option may name: far beyond any run, and safe to add to.
const REQUESTS_MAX: u64 = 1 << 63;
/// Most requests outstanding.
const DEPTH_MAX: u32 = 1 << 20;
const TIME_SCALE_MAX: f64 = 1e6;
/// Most snapshots of all blocks: a page shows no more.
const SNAPSHOTS_MAX: usize = 1000;
/// Requests of a window by default, and the windows that a short run gets at least.
const WINDOW_REQUESTS: u64 = 1000;
const WINDOWS_LEAST: u64 = 200;

/// The options of a run as callers give them; options left out take their defaults.
///
/// Everything that the front says of an option is generated from here ([`schema_of_options`]): its type, default and range in Python,
/// its help (the first paragraph) and its full description (all of it). `metavar` and `panel` are those of the command line, `option`
/// a name there that is another than the field's, `typed` what help adds for whoever types; `of` says where it is given in Python, if not with the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// Precondition the drive first. workload: fill it, then play the workload until write amplification has settled;
    /// workload:scaled: the same, begun as a copy of a small drive that has settled; auto: workload where possible, else sequential
    /// (the default of compare, advise and sweeps). steady, steady:laid-out: settled under uniform writes. empty (the default
    /// elsewhere), sequential, random: a bare start, not a settled one.
    #[schemars(extend("metavar" = "SPEC", "panel" = "The drive", "of" = "drive"))]
    pub precondition: Option<String>,
    /// Multiply arrival times; 0.5 plays twice as fast.
    ///
    /// An open loop. Without this and `depth` the workload sets its own pace.
    #[schemars(range(min = 0, max = TIME_SCALE_MAX), extend("metavar" = "FACTOR", "panel" = "Workload"))]
    pub time_scale: Option<f64>,
    /// Closed loop: keep N requests outstanding, and ignore arrival times.
    ///
    /// A drive whose description leaves ``host.queue-depth`` open takes as many at once; of others the rest waits in the driver.
    #[schemars(range(min = 1, max = DEPTH_MAX), extend("metavar" = "N", "panel" = "Workload"))]
    pub depth: Option<u32>,
    /// Measure at most N requests.
    ///
    /// By default a trace to its end, a stand-in as long as its statistics need, and a million of any other workload.
    #[schemars(range(min = 1, max = REQUESTS_MAX), extend("metavar" = "N", "panel" = "Workload"))]
    pub requests: Option<u64>,
    /// Play N requests before measuring begins.
    #[schemars(range(min = 0, max = REQUESTS_MAX), extend("metavar" = "N", "panel" = "Workload"))]
    pub warmup: u64,
    /// Random seed; the same seed repeats the run exactly.
    #[schemars(range(min = 0, max = u64::MAX), extend("metavar" = "N", "panel" = "Workload"))]
    pub seed: SeedOption,
    /// Length of a window of the time series: requests=N, time=10ms or off.
    ///
    /// By default 1,000 requests, and fewer where a run is short.
    #[schemars(extend("metavar" = "SPEC", "panel" = "Measurement"))]
    pub window: Option<String>,
    /// Record single requests: the number of the first, counted from 0 after the warm-up, and how many.
    ///
    /// They are the result's ``closeup``, and a page shows them.
    #[schemars(extend("metavar" = "FIRST:COUNT", "panel" = "Measurement", "typed" = "--report shows them, --closeup-out writes them."))]
    pub closeup: Option<(u64, u64)>,
    /// Take up to N snapshots of all blocks, evenly over the run.
    ///
    /// They are the result's ``snapshots``, and need a time series; a page shows them as maps.
    #[schemars(
        range(min = 2, max = SNAPSHOTS_MAX),
        extend("metavar" = "N", "panel" = "Measurement", "typed" = "--report shows erases and valid pages as maps over time.")
    )]
    pub snapshots: Option<usize>,
    /// Check every read, and the drive's state at the end.
    #[schemars(extend("panel" = "Measurement", "typed" = "Exit 1 on a violation."))]
    pub verify: bool,
    /// Check the whole state every N requests too, which implies verify.
    #[schemars(range(min = 0, max = REQUESTS_MAX), extend("metavar" = "N", "panel" = "Measurement", "option" = "audit"))]
    pub audit_every: u64,
    /// Keep a row for every request (44 bytes each).
    #[schemars(extend("of" = "output"))]
    pub keep_requests: bool,
}

/// A seed; 1 where none is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct SeedOption(pub u64);

impl Default for SeedOption {
    fn default() -> Self {
        Self(1)
    }
}

/// The JSON Schema of [`RunOptions`], with what the command line adds.
///
/// ```
/// let schema = flashwright_sim::schema_of_options();
/// assert_eq!(schema["properties"]["depth"]["minimum"], 1);
/// assert_eq!(schema["properties"]["seed"]["default"], 1);
/// ```
#[must_use]
#[inline] // cold and large: compiled where it is called, once and small
pub fn schema_of_options() -> serde_json::Value {
    schemars::schema_for!(RunOptions).to_value()
}

/// Why the options do not fit the workload, or no run can be built from them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// An option is wrong, or does not fit this workload.
    #[error("{what}")]
    Option {
        /// The option, what was found, and what was expected.
        what: String,
        /// How to correct it.
        hint: Option<&'static str>,
    },
    /// The drive can't be built with the layers before it.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl RunOptions {
    /// The seed of drive and workload.
    #[must_use]
    pub fn seed(&self) -> Seed {
        Seed(self.seed.0)
    }

    /// Whether reads are checked: an audit is more than that.
    #[must_use]
    pub fn verifies(&self) -> bool {
        self.verify || self.audit_every > 0
    }

    /// Builds a run on `ssd`, which was built with the seed and the checks of these options, from a source that
    /// `spec` opened on it.
    ///
    /// # Errors
    /// [`OptionsError`] if the options do not fit the workload.
    ///
    /// ```
    /// use flashwright_sim::{RunOptions, SourceSpec};
    /// use flashwright_ssd::{DriveConfig, Ssd};
    ///
    /// let options = RunOptions { requests: Some(1000), depth: Some(4), ..RunOptions::default() };
    /// let ssd = Ssd::new(&DriveConfig::default(), options.seed(), options.verifies())?;
    /// let spec = SourceSpec::Workload("uniform:write=0.5".parse()?);
    /// let mut source = spec.open(&ssd, options.seed())?;
    /// let mut run = options.run(ssd, &spec, &source)?;
    /// while !run.step(&mut source, 1000)? {}
    /// assert_eq!(run.report().ok_or("measured")?.report.measured.requests, 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run(&self, ssd: Ssd, spec: &SourceSpec, source: &Source) -> Result<Simulation, OptionsError> {
        let mut run = Simulation::on(ssd, self.settings(source)?)?;
        run.say_origin(spec.origin(run.settings().pace, source.pace()));
        Ok(run)
    }

    /// The windows of the time series.
    fn window(&self) -> Result<Window, OptionsError> {
        let Some(text) = &self.window else {
            // Short runs get some hundred windows; long ones join theirs as they go.
            let requests = self.requests.unwrap_or(WINDOW_REQUESTS * WINDOWS_LEAST);
            return Ok(Window::Requests((requests / WINDOWS_LEAST).clamp(1, WINDOW_REQUESTS)));
        };
        let found = match text.split_once('=') {
            None if text == "off" => Some(Window::Off),
            Some(("requests", count)) => {
                count.replace('_', "").parse().ok().filter(|count| *count > 0).map(Window::Requests)
            }
            Some(("time", time)) => {
                time.parse().ok().filter(|time: &Nanos| time.0 > 0).map(|time| Window::Nanos(time.0))
            }
            _ => None,
        };
        found.ok_or_else(|| OptionsError::Option {
            what: format!("window: found '{text}', expected requests=N, time=10ms or off"),
            hint: Some("a window is the stretch that one point of the time series covers"),
        })
    }

    /// The settings that the options give with a workload.
    fn settings(&self, source: &Source) -> Result<RunSettings, OptionsError> {
        let precondition = self.precondition.as_deref().unwrap_or("empty");
        let precondition: Precondition =
            precondition.parse().map_err(|what| OptionsError::Option { what, hint: None })?;
        if source.is_interactive() {
            self.check_interactive(precondition, source)?;
        }
        if !source.tenants().is_empty() {
            self.check_pace("tenants have a pace each, such as uniform:depth=8")?;
        }
        Ok(RunSettings {
            workload: source.description().to_owned(),
            seed: self.seed(),
            precondition: precondition.resolved(source.is_interactive()),
            pace: match (self.depth, self.time_scale) {
                (Some(depth), _) => Pace::Closed { depth },
                (None, Some(time_scale)) => Pace::Open { time_scale },
                (None, None) => source.pace(),
            },
            warmup_requests: self.warmup,
            requests: self.requests.or(source.requests_default()),
            window: self.window()?,
            keep_requests: self.keep_requests,
            closeup: self.closeup,
            snapshots: self.snapshots,
            verify: self.verifies(),
            audit_every: self.audit_every,
            tenants: source.tenants().to_vec(),
        })
    }

    /// A program above a file system sets its own pace and can start only once.
    fn check_interactive(&self, precondition: Precondition, source: &Source) -> Result<(), OptionsError> {
        let what = source.description().split(':').next().unwrap_or_default();
        if let Precondition::Workload { .. } = precondition {
            let what = format!(
                "precondition: found workload, expected another: {what} can start only once, so it can't precondition the drive"
            );
            return Err(OptionsError::Option { what, hint: Some("such as --precondition sequential") });
        }
        self.check_pace(&format!("{what} sets its own pace (its keys set the number of threads)"))
    }

    /// Refuses a pace for what has its own, which `why` says.
    fn check_pace(&self, why: &str) -> Result<(), OptionsError> {
        let given = [("depth", self.depth.is_some()), ("time_scale", self.time_scale.is_some())];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => {
                Err(OptionsError::Option { what: format!("{name}: found one, expected none: {why}"), hint: None })
            }
            None => Ok(()),
        }
    }
}
