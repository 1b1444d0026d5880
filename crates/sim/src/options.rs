//! What is asked of a run beside its drive and its workload: every setting with its default, stated here alone.

use crate::measure::Window;
use crate::player::Pace;
use crate::precondition::Precondition;
use crate::simulation::{RunError, RunSettings, Simulation};
use crate::source::{Source, SourceSpec};
use flashwright_block::Seed;
use flashwright_ssd::Ssd;
use serde::{Deserialize, Serialize};

/// The settings of a run, as callers give them; those left out take their defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// One seed replays the whole run.
    pub seed: u64,
    /// What is done to the drive first, such as `workload` or `random:capacities=3`.
    pub precondition: String,
    /// Requests measured at most; none for as many as the workload has of its own.
    pub requests: Option<u64>,
    /// Closed loop with that many requests outstanding.
    pub depth: Option<u32>,
    /// Open loop with arrival times multiplied by this. Without it and `depth` the workload says its pace.
    pub time_scale: Option<f64>,
    /// Requests played before measuring begins.
    pub warmup: u64,
    /// The time series.
    pub window: Window,
    /// Whether a row is kept for every request.
    pub keep_requests: bool,
    /// Of which consecutive requests rows are kept: the first, from 0 where measuring begins, and how many.
    pub closeup: Option<(u64, u64)>,
    /// How many looks at all blocks are kept at most.
    pub snapshots: Option<usize>,
    /// Whether every read is checked and the state audited.
    pub verify: bool,
    /// Under `verify`, the whole state is audited every so many requests too; 0 for only at the end.
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

/// Why options do not go with a workload, or a run can't be made of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// An option is wrong, or not for this workload.
    #[error("{what}")]
    Option {
        /// What, where, and what was expected.
        what: String,
        /// What to do.
        hint: Option<&'static str>,
    },
    /// The drive can't be built behind what lies before it.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl RunOptions {
    /// The seed of drive and workload.
    #[must_use]
    pub fn seed(&self) -> Seed {
        Seed(self.seed)
    }

    /// A run on `ssd`, which was made with the seed and the `verify` of these options, of a source that `spec` opened on it.
    ///
    /// # Errors
    /// [`OptionsError`] if they do not go with the workload.
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

    /// What they come to with a workload.
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

    /// A program above a file system paces itself, and begins once.
    fn check_interactive(&self, precondition: Precondition, source: &Source) -> Result<(), OptionsError> {
        let what = source.description().split(':').next().unwrap_or_default();
        if let Precondition::Workload { .. } = precondition {
            let what = format!(
                "precondition: found workload, expected another: {what} begins once and can't be played beforehand"
            );
            return Err(OptionsError::Option { what, hint: Some("such as --precondition sequential") });
        }
        let given = [("depth", self.depth.is_some()), ("time_scale", self.time_scale.is_some())];
        if let Some((name, _)) = given.iter().find(|(_, is_given)| *is_given) {
            let what = format!(
                "{name}: found one, expected none: {what} waits for the drive by itself (its own keys say how many threads do)"
            );
            return Err(OptionsError::Option { what, hint: None });
        }
        Ok(())
    }
}
