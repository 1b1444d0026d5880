//! Preconditioning that begins with a small drive: it settles first, and the drive of the run is laid out as a copy of it.

use super::{Phase, RunError, RunSettings, Simulation};
use crate::conditioning::{Conditioning, Search};
use crate::precondition::{Precondition, Preconditioning, Scale, SmallSource, copied, small_of};
use flashwright_block::{Popularity, RequestSource, Seed};
use flashwright_nand::BlockId;
use flashwright_ssd::Ssd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Times that the small drive is looked at while the pages of a row of blocks are programmed: when a block was erased last tells when it
/// was filled.
const LOOKS_PER_ROW: u32 = 8;

/// Capacities of its own after which the small drive is copied even if it has not settled. Its figures vary more than those of a large
/// drive, so that the rule may wait long for what the copy does not need; the rule decides over the large drive.
const CAPACITIES_MAX: f64 = 16.0;

/// How the drive of a run with `workload:scaled` began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScaledStart {
    /// The first setting because of which it began with a fill in order, as with `workload`. Null if it is a copy of a small drive.
    pub refused: Option<String>,
    /// Logical pages over those of the small drive. Null if there was none.
    pub times_smaller: Option<f64>,
    /// Pages that the workload wrote to the small drive, over its own logical pages. Null if there was none.
    pub capacities: Option<f64>,
    /// How the search for the small drive's settled state ended. Null if there was none.
    pub ended: Option<Search>,
}

/// A small drive that is to settle.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SmallDrive {
    run: Simulation,
    scale: Scale,
    #[serde(skip)]
    source: Option<SmallSource>,
    /// Of each block its erases, and the look at which they were found first.
    erased: Vec<(u32, u64)>,
    looks: u64,
}

impl SmallDrive {
    /// The small drive for a run, or why there is none.
    pub fn of(run: &Simulation, popularity: Option<&dyn Popularity>) -> Result<Box<Self>, String> {
        if run.settling_takes_time() || !run.machine.is_timeless() {
            return Err("what lies between the workload and the flash keeps or merges requests, expected none: a scheduler, a buffer, \
                        several tenants, or cleaning that waits for time"
                .to_owned());
        }
        let (config, scale) = small_of(run.ssd(), popularity)?;
        let failed = |error: RunError| format!("a small drive that can't be built: {error}");
        let Precondition::Workload { capacities, .. } = run.settings.precondition else {
            unreachable!("only the workload settles a drive")
        };
        let settings = RunSettings {
            seed: run.settings.seed,
            precondition: Precondition::Workload { capacities: capacities.min(CAPACITIES_MAX), scaled: false },
            ..RunSettings::default()
        };
        let small =
            Simulation::on(Ssd::new(&config, settings.seed, false).map_err(|error| failed(error.into()))?, settings)
                .map_err(failed)?;
        if small.ssd().reserve() != run.ssd().reserve() {
            return Err("cleaning that keeps more blocks of a larger plane".to_owned());
        }
        let blocks = small.ssd().flash().geometry().blocks() as usize;
        Ok(Box::new(Self { run: small, scale, source: None, erased: vec![(0, 0); blocks], looks: 0 }))
    }

    /// Plays about so many requests; returns true once the search for the settled state is over.
    pub fn step(&mut self, popularity: Arc<dyn Popularity>, seed: Seed, budget: u64) -> Result<bool, RunError> {
        if self.source.is_none() {
            let mut source = SmallSource::new(popularity, seed, self.scale);
            self.run.rewind(&mut source)?;
            self.source = Some(source);
        }
        let source = self.source.as_mut().expect("it was just made");
        let geometry = *self.run.ssd().flash().geometry();
        let stride = u64::from((geometry.pages_per_block() * geometry.planes()).div_ceil(LOOKS_PER_ROW));
        for _ in 0..budget.div_ceil(stride) {
            self.run.step(source, stride)?;
            self.looks += 1;
            let nand = self.run.ssd().flash().nand();
            for (seen, erases) in self.erased.iter_mut().zip(nand.erases_of_all()) {
                if seen.0 != erases {
                    *seen = (erases, self.looks);
                }
            }
            if !matches!(self.run.phase, Phase::Precondition | Phase::Settling) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Has the drive of the run laid out as a copy.
    pub fn copy_to(&self, ssd: &Ssd, popularity: Arc<dyn Popularity>, preconditioning: &mut Preconditioning) {
        let (small, source) = (self.run.ssd(), self.source.as_ref().expect("it was played"));
        let mut filled: Vec<BlockId> = (0..small.flash().geometry().blocks()).map(BlockId).collect();
        filled.sort_by_key(|block| self.erased[block.index()].1);
        preconditioning.lay_out(copied(small, &filled, source, ssd), popularity, self.start());
    }

    fn start(&self) -> ScaledStart {
        ScaledStart {
            refused: None,
            times_smaller: Some(self.scale.times()),
            capacities: Some(self.run.capacities(self.run.history().host_pages_before())),
            ended: self.run.conditioning().map(Conditioning::search),
        }
    }

    /// Pages written, and the most that may be.
    pub fn progress(&self) -> (u64, u64) {
        let (done, fill) = self.run.preconditioning.progress();
        let played = self.run.history.as_ref().map_or(0, super::History::host_pages);
        (done + played, fill + self.run.conditioning().map_or(0, Conditioning::host_pages_max))
    }
}

impl Simulation {
    /// Settles the small drive, if there is to be one; returns true once the drive of the run can be filled or laid out.
    pub(super) fn step_scaled(&mut self, source: &dyn RequestSource, budget: u64) -> Result<bool, RunError> {
        if !self.preconditioning.may_be_scaled() {
            self.preconditioning.remember(|| source.popularity());
            return Ok(true);
        }
        let popularity = source.popularity();
        let mut small = match self.small.take() {
            Some(small) => small,
            None => match SmallDrive::of(self, popularity.as_deref()) {
                Ok(small) => small,
                Err(refused) => {
                    self.preconditioning.stay_plain(refused);
                    return Ok(true);
                }
            },
        };
        let popularity = popularity.expect("there is no small drive without");
        match small.step(popularity.clone(), self.settings.seed, budget) {
            Ok(true) => small.copy_to(self.machine.ssd(), popularity, &mut self.preconditioning),
            Ok(false) => self.small = Some(small),
            Err(error) => self.preconditioning.stay_plain(format!("a small drive that failed: {error}")),
        }
        Ok(self.small.is_none())
    }
}
