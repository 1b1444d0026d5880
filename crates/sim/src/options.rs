//! The options of a run apart from its drive and workload. This is the only place that states their defaults.

use crate::measure::Window;
use crate::player::Pace;
use crate::precondition::Precondition;
use crate::simulation::{RunError, RunSettings, Simulation};
use crate::source::{Source, SourceSpec};
use flashwright_block::Seed;
use flashwright_ssd::Ssd;
use serde::{Deserialize, Serialize};

/// The options of a run as callers give them; options left out take their defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// The seed; it determines the whole run.
    pub seed: u64,
    /// How the drive is preconditioned, such as `workload` or `random:capacities=3`.
    pub precondition: String,
    /// Largest number of measured requests; none for all that the workload has.
    pub requests: Option<u64>,
    /// Closed loop with this many requests outstanding.
    pub depth: Option<u32>,
    /// Open loop with arrival times multiplied by this factor. Without this and `depth` the workload sets its own pace.
    pub time_scale: Option<f64>,
    /// Requests played before measuring begins.
    pub warmup: u64,
    /// The time series.
    pub window: Window,
    /// Whether to keep a row for every request.
    pub keep_requests: bool,
    /// The consecutive requests to keep rows of: the first, counted from 0 at the start of measuring, and their number.
    pub closeup: Option<(u64, u64)>,
    /// Largest number of snapshots of all blocks.
    pub snapshots: Option<usize>,
    /// Whether to check every read and audit the state.
    pub verify: bool,
    /// Under `verify`, the whole state is also audited every this many requests; 0 audits only at the end.
    pub audit_every: u64,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            precondition: "empty".to_owned(),
            requests: None,
            depth: None,
            time_scale: None,
            warmup: 0,
            window: Window::Requests(1000),
            keep_requests: false,
            closeup: None,
            snapshots: None,
            verify: false,
            audit_every: 0,
        }
    }
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
        Seed(self.seed)
    }

    /// Builds a run on `ssd`, which was built with the seed and the `verify` of these options, from a source that
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
    /// let ssd = Ssd::new(&DriveConfig::default(), options.seed(), options.verify)?;
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
        if let Some((first, count)) = self.closeup {
            run.keep_closeup(first, count);
        }
        if let Some(most) = self.snapshots {
            run.keep_snapshots(most);
        }
        Ok(run)
    }

    /// The settings that the options give with a workload.
    fn settings(&self, source: &Source) -> Result<RunSettings, OptionsError> {
        let precondition: Precondition =
            self.precondition.parse().map_err(|what| OptionsError::Option { what, hint: None })?;
        if source.is_interactive() {
            self.check_interactive(precondition, source)?;
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
            window: self.window,
            keep_requests: self.keep_requests,
            verify: self.verify,
            audit_every: self.audit_every,
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
        let given = [("depth", self.depth.is_some()), ("time_scale", self.time_scale.is_some())];
        if let Some((name, _)) = given.iter().find(|(_, is_given)| *is_given) {
            let what = format!(
                "{name}: found one, expected none: {what} sets its own pace (its keys set the number of threads)"
            );
            return Err(OptionsError::Option { what, hint: None });
        }
        Ok(())
    }
}
