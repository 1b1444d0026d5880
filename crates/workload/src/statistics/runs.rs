//! Sequential runs: requests that start where one of the last runs of their direction ended.

use super::distribution::{Bins, Distribution};
use flashwright_block::{Request, SECTOR_BYTES};

/// Runs that are followed at once; a further one replaces the one that was continued or begun the longest ago.
const FOLLOWED: usize = 32;

/// Sequential runs of one direction.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Runs {
    /// Requests that continue one of the 32 latest runs, 0 to 1; none without requests.
    pub sequential_share: Option<f64>,
    /// Requests of a run, 1 for a request alone.
    pub requests: Distribution,
    /// Bytes of a run.
    pub bytes: Distribution,
}

struct Run {
    end: u64,
    requests: u64,
    sectors: u64,
}

#[derive(Default)]
pub(crate) struct Collector {
    /// The latest last.
    open: Vec<Run>,
    continued: u64,
    all: u64,
    requests: Bins,
    bytes: Bins,
}

impl Collector {
    pub(crate) fn add(&mut self, request: &Request) {
        self.all += 1;
        let known = self.open.iter().rposition(|run| run.end == request.first_sector);
        let mut run = match known {
            Some(at) => {
                self.continued += 1;
                self.open.remove(at)
            }
            None => {
                if self.open.len() == FOLLOWED {
                    let oldest = self.open.remove(0);
                    self.close(&oldest);
                }
                Run { end: 0, requests: 0, sectors: 0 }
            }
        };
        run.end = request.end_sector();
        run.requests += 1;
        run.sectors += u64::from(request.sectors);
        self.open.push(run);
    }

    fn close(&mut self, run: &Run) {
        self.requests.add(run.requests, 1.0);
        self.bytes.add(run.sectors * SECTOR_BYTES, 1.0);
    }

    #[allow(clippy::cast_precision_loss)] // a share
    pub(crate) fn finish(mut self) -> Runs {
        for run in std::mem::take(&mut self.open) {
            self.close(&run);
        }
        Runs {
            sequential_share: (self.all > 0).then(|| self.continued as f64 / self.all as f64),
            requests: self.requests.finish(),
            bytes: self.bytes.finish(),
        }
    }
}
