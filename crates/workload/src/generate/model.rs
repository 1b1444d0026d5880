//! Models fitted to traces: see [`crate::model`].
//!
//! The file is read when the workload's text is, so that a run can't change halfway. The canonical text has the file's
//! digest: a saved run or a sweep that finds another file under the same name says so.

use super::common::{Common, Defaults, Pace, Plan};
use super::generator::Clock;
use super::settings::{Given, KeyInfo, Settings, settings};
use super::value::{ArrivalKind, Value};
use super::{Describe, Fault, Workload};
use crate::model::{Arrival, Play, Player, REGION_SECTORS, largest};
use flashwright_block::{Bytes, RequestSource, SECTOR_BYTES};
use std::sync::Arc;

/// The path of a file, without a comma.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File(String);

impl Value for File {
    fn allowed() -> String {
        "the path of a file that `flashwright trace fit` wrote, without a comma".into()
    }
    fn read(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| File(text.to_owned()))
    }
    fn text(&self) -> String {
        self.0.clone()
    }
}

/// 64 bits of a digest, in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// FNV-1a.
    fn of(text: &str) -> Self {
        Digest(
            text.bytes()
                .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)),
        )
    }
}

impl Value for Digest {
    fn allowed() -> String {
        "16 hexadecimal digits, which canonical texts have".into()
    }
    fn read(text: &str) -> Option<Self> {
        (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok()).flatten().map(Digest)
    }
    fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

/// A factor, no unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor(f64);

impl Value for Factor {
    fn allowed() -> String {
        "a factor from 0.0001 to 10000, such as 2".into()
    }
    fn read(text: &str) -> Option<Self> {
        let factor = text.parse::<f64>().ok()?;
        (1e-4..=1e4).contains(&factor).then_some(Factor(factor))
    }
    fn text(&self) -> String {
        self.0.to_string()
    }
}

settings! {
    /// The keys of `model`.
    pub struct Keys {
        "file" file: Option<File> = "", "The model, as `flashwright trace fit` writes it.";
        "scale" scale: Factor = "1", "Footprint over that of the trace.";
        "rate-scale" rate_scale: Factor = "1", "Rate of arrivals over that of the trace; with rate, which gives requests per second, left out.";
        "digest" digest: Option<Digest> = "", "Digest of the file that is expected; canonical texts have it.";
    }
}

/// Settings of `model`, with the file as it was when they were read.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    keys: Keys,
    model: Result<Arc<crate::model::Model>, Fault>,
}

impl Settings for Model {
    fn keys() -> Vec<KeyInfo> {
        Keys::keys()
    }

    fn read(given: &mut Given<'_>) -> Self {
        let mut keys = Keys::read(given);
        let model = load(&mut keys).map(Arc::new);
        Model { keys, model }
    }

    fn pairs(&self, out: &mut Vec<(&'static str, String)>) {
        self.keys.pairs(out);
    }
}

fn load(keys: &mut Keys) -> Result<crate::model::Model, Fault> {
    let Some(File(path)) = &keys.file else {
        return Err(Fault::new("file", "nothing", File::allowed()));
    };
    let text = std::fs::read_to_string(path).map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "no such file".to_owned(),
            std::io::ErrorKind::InvalidData => "a file that is no text".to_owned(),
            _ => error.to_string().to_lowercase(),
        };
        Fault::new("file", format!("{path}: {why}"), "a model, as `flashwright trace fit` writes it")
    })?;
    let model: crate::model::Model = text.parse().map_err(|error: crate::model::ModelError| {
        Fault::new(&format!("{path}: {}", error.place), error.found, error.expected)
    })?;
    let digest = Digest::of(&text);
    if let Some(expected) = keys.digest.filter(|expected| *expected != digest) {
        let found = format!("{path} with {}", digest.text());
        return Err(Fault::new("digest", found, format!("{}: the file was changed", expected.text())));
    }
    keys.digest = Some(digest);
    Ok(model)
}

impl Describe for Model {
    const NAME: &'static str = "model";
    const SUMMARY: &'static str = "a model that flashwright trace fit fitted to a trace";
    const BARE: Option<&'static str> = Some("file");
}

/// How `model` is played by the common keys, at `scale` times its footprint and `rate_scale` times its rate.
pub(super) fn play(model: &crate::model::Model, plan: &Plan<'_>, scale: f64, rate_scale: f64) -> Result<Play, Fault> {
    let common = plan.common;
    let largest = u64::from(common.size.map_or_else(|| largest(model), |_| plan.size_sectors));
    if largest > plan.space_sectors {
        let found =
            format!("requests of up to {} ({} sectors in use)", Bytes(largest * SECTOR_BYTES), plan.space_sectors);
        return Err(Fault::new("size", found, "a size that fits the part of the drive in use"));
    }
    let shares = (common.write.is_some() || common.trim.0 > 0.0).then(|| common.shares(plan.defaults));
    let pace = match (common.pace(plan.defaults), common.arrival, &model.arrivals) {
        (Pace::Closed { .. } | Pace::Interactive, ..) => Arrival::Clock(Clock::Closed),
        (Pace::Open, None, Some(arrivals)) => {
            Arrival::Model(common.rate.map_or(rate_scale, |rate| rate.0 / arrivals.rate))
        }
        (Pace::Open, asked, arrivals) => {
            let own = arrivals.as_ref().map_or(1.0, |arrivals| arrivals.rate) * rate_scale;
            let gap_ns = 1e9 / common.rate.map_or(own, |rate| rate.0);
            let kind = asked.unwrap_or(ArrivalKind::Poisson);
            Arrival::Clock(Clock::open(plan.seed.stream("workload.gap"), gap_ns, kind))
        }
    };
    Ok(Play {
        seed: plan.seed,
        requests: plan.requests,
        space_sectors: plan.space_sectors,
        scale,
        shares,
        steered: None,
        size: common.size.map(|_| plan.size_sectors),
        align: common.align.map(|_| plan.align_sectors),
        strict: true,
        pace,
    })
}

impl Model {
    fn play(&self, plan: &Plan<'_>) -> Result<Play, Fault> {
        let model = self.model.as_ref().map_err(Clone::clone)?;
        play(model, plan, self.keys.scale.0, self.keys.rate_scale.0)
    }

    /// Refuses a drive without room for what the trace's own requests use: on it, reuse would be nearer than in the trace.
    fn expect_room(&self, model: &crate::model::Model, play: &Play) -> Result<(), Fault> {
        let (wanted, there) = (model.footprint.regions as f64 * self.keys.scale.0, play.regions(model) as f64);
        if there + 1.0 > wanted {
            return Ok(());
        }
        let region = (REGION_SECTORS * SECTOR_BYTES) as f64;
        // Rounded down, so that it fits.
        let fits = (there / model.footprint.regions as f64 * 1e4).floor() / 1e4;
        Err(Fault::new(
            "scale",
            format!(
                "{}: the trace's requests use {}, and the part of the drive in use has {}",
                self.keys.scale.0,
                Bytes((wanted * region) as u64),
                Bytes(play.space_sectors * SECTOR_BYTES)
            ),
            format!("a larger drive, or scale={} to play a load with a smaller footprint", fits.max(1e-4)),
        ))
    }
}

impl Workload for Model {
    fn defaults(&self) -> Defaults {
        let model = self.model.as_ref().ok();
        Defaults {
            write: model.map_or(1.0, |model| model.mix.write),
            size: None,
            open: model.is_some_and(|model| model.arrivals.is_some()),
        }
    }

    fn check(&self, common: &Common, faults: &mut Vec<Fault>) {
        match &self.model {
            Err(fault) => faults.push(fault.clone()),
            Ok(_) if (self.keys.rate_scale.0 - 1.0).abs() < f64::EPSILON => {}
            Ok(model) => {
                let found = if common.rate.is_some() {
                    "rate-scale and rate together"
                } else if common.depth.is_some() {
                    "rate-scale in a closed loop"
                } else if model.arrivals.is_none() {
                    "rate-scale for a model without arrivals"
                } else {
                    return;
                };
                faults.push(Fault::new("rate-scale", found, "rate-scale alone, of a model with arrivals"));
            }
        }
    }

    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        let play = self.play(plan)?;
        let model = self.model.as_ref().map_err(Clone::clone)?;
        self.expect_room(model, &play)?;
        Ok(Box::new(Player::new(model, play)))
    }

    fn label(&self) -> Option<String> {
        let File(path) = self.keys.file.as_ref()?;
        let requests = self.model.as_ref().ok()?.fitted.requests;
        Some(format!("model {path} (synthetic, fitted to {requests} requests of a trace)"))
    }

    fn notes(&self, plan: &Plan<'_>) -> Vec<String> {
        let (Ok(play), Ok(model)) = (self.play(plan), &self.model) else { return Vec::new() };
        let wanted = model.footprint.most_regions as f64 * self.keys.scale.0;
        let regions = play.regions(model);
        if regions as f64 + 1.0 >= wanted {
            return Vec::new();
        }
        let region = REGION_SECTORS * SECTOR_BYTES;
        vec![format!(
            "model: footprint spans {} instead of {}, to fit the drive",
            Bytes(regions * region),
            Bytes(wanted as u64 * region)
        )]
    }
}
