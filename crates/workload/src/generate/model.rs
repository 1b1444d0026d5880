//! Models fitted to traces: see [`crate::model`].
//!
//! The file is read when the workload's text is, so that a run can't change halfway. The canonical text has the file's
//! digest: a saved run or a sweep that finds another file under the same name says so.

use super::common::{Common, Defaults, Pace, Plan};
use super::generator::Clock;
use super::settings::{Given, KeyInfo, Settings, settings};
use super::value::{ArrivalKind, Value};
use super::{Describe, Fault, Workload};
use crate::model::{Arrival, BLOCK_SECTORS, Fit, Play, Player, REGION_SECTORS, Segments, Sequence, Space, largest};
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
        "scale" scale: Factor = "1", "Footprint over that of the trace; at most 1 where the model holds a sequence.";
        "rate-scale" rate_scale: Factor = "1", "Rate of arrivals over that of the trace; with rate, which gives requests per second, left out.";
        "digest" digest: Option<Digest> = "", "Digest of the file that is expected; canonical texts have it.";
    }
}

/// A model that was read, of either kind.
#[derive(Clone, Debug, PartialEq)]
enum Found {
    Sequence(Arc<Sequence>),
    Statistics(Arc<crate::model::Model>),
}

/// Settings of `model`, with the file as it was when they were read.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    keys: Keys,
    fit: Result<Found, Fault>,
}

impl Settings for Model {
    fn keys() -> Vec<KeyInfo> {
        Keys::keys()
    }

    fn read(given: &mut Given<'_>) -> Self {
        let mut keys = Keys::read(given);
        let fit = load(&mut keys).map(|fit| match fit {
            Fit::Sequence(sequence) => Found::Sequence(Arc::from(sequence)),
            Fit::Statistics(model) => Found::Statistics(Arc::from(model)),
        });
        Model { keys, fit }
    }

    fn pairs(&self, out: &mut Vec<(&'static str, String)>) {
        self.keys.pairs(out);
    }
}

fn load(keys: &mut Keys) -> Result<Fit, Fault> {
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
    let fit: Fit = text.parse().map_err(|error: crate::model::ModelError| {
        Fault::new(&format!("{path}: {}", error.place), error.found, error.expected)
    })?;
    let digest = Digest::of(&text);
    if let Some(expected) = keys.digest.filter(|expected| *expected != digest) {
        let found = format!("{path} with {}", digest.text());
        return Err(Fault::new("digest", found, format!("{}: the file was changed", expected.text())));
    }
    keys.digest = Some(digest);
    Ok(fit)
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
        pace: pace(plan, model.arrivals.as_ref().map(|arrivals| arrivals.rate), rate_scale),
    })
}

/// What sets arrivals by the common keys, for a model of this many requests a second, if it has arrivals of its own.
fn pace(plan: &Plan<'_>, own: Option<f64>, rate_scale: f64) -> Arrival {
    let common = plan.common;
    match (common.pace(plan.defaults), common.arrival, own) {
        (Pace::Closed { .. } | Pace::Interactive, ..) => Arrival::Clock(Clock::Closed),
        (Pace::Open, None, Some(own)) => Arrival::Model(common.rate.map_or(rate_scale, |rate| rate.0 / own)),
        (Pace::Open, asked, own) => {
            let gap_ns = 1e9 / common.rate.map_or(own.unwrap_or(1.0) * rate_scale, |rate| rate.0);
            let kind = asked.unwrap_or(ArrivalKind::Poisson);
            Arrival::Clock(Clock::open(plan.seed.stream("workload.gap"), gap_ns, kind))
        }
    }
}

impl Model {
    fn found(&self) -> Result<&Found, Fault> {
        self.fit.as_ref().map_err(Clone::clone)
    }

    /// Requests a second of its own arrivals, if it has any.
    fn rate(&self) -> Option<f64> {
        match self.fit.as_ref().ok()? {
            Found::Sequence(sequence) => sequence.rate(),
            Found::Statistics(model) => model.arrivals.as_ref().map(|arrivals| arrivals.rate),
        }
    }

    /// Refuses a drive with less room than the trace's own requests use: on it, reuse would be nearer than in the trace.
    fn expect_room(&self, plan: &Plan<'_>, wanted: u64, there: u64, used: u64) -> Result<(), Fault> {
        let scale = self.keys.scale.0;
        if there as f64 + 1.0 > wanted as f64 * scale {
            return Ok(());
        }
        // Rounded down, so that it fits.
        let fits = (there as f64 / wanted as f64 * 1e4).floor() / 1e4;
        Err(Fault::new(
            "scale",
            format!(
                "{scale}: the trace's requests use {}, and the part of the drive in use has {}",
                Bytes((wanted as f64 * scale * used as f64) as u64 * SECTOR_BYTES),
                Bytes(plan.space_sectors * SECTOR_BYTES)
            ),
            format!("a larger drive, or scale={} to play a load with a smaller footprint", fits.max(1e-4)),
        ))
    }

    /// Where a sequence lies on a drive, if it fits there.
    fn space(&self, sequence: &Sequence, plan: &Plan<'_>) -> Result<Space, Fault> {
        let there = plan.space_sectors.div_ceil(BLOCK_SECTORS);
        self.expect_room(plan, sequence.footprint.blocks, there, BLOCK_SECTORS)?;
        if u64::from(sequence.largest()) > plan.space_sectors {
            let found = format!("requests of up to {} sectors, of {} in use", sequence.largest(), plan.space_sectors);
            return Err(Fault::new("range", found, "a part of the drive that they fit"));
        }
        Ok(Space::new(plan.space_sectors, self.keys.scale.0))
    }

    /// Keys that a sequence contradicts.
    fn check_sequence(&self, common: &Common, faults: &mut Vec<Fault>) {
        let given = [
            ("write", common.write.is_some()),
            ("trim", common.trim.0 > 0.0),
            ("size", common.size.is_some()),
            ("align", common.align.is_some()),
        ];
        for (key, _) in given.into_iter().filter(|(_, given)| *given) {
            let expected = "none: fit the model with --kind statistics to change it";
            faults.push(Fault::new(key, "it given for a model that holds a trace's own sequence", expected));
        }
        if self.keys.scale.0 > 1.0 {
            let expected =
                "at most 1 for a sequence: --scale-footprint of `flashwright trace fit` lays copies side by side";
            faults.push(Fault::new("scale", self.keys.scale.0, expected));
        }
    }
}

impl Workload for Model {
    fn defaults(&self) -> Defaults {
        let write = match &self.fit {
            Ok(Found::Sequence(sequence)) => {
                sequence.fitted.writes as f64 / (sequence.fitted.reads + sequence.fitted.writes) as f64
            }
            Ok(Found::Statistics(model)) => model.mix.write,
            Err(_) => 1.0,
        };
        Defaults { write, size: None, open: self.rate().is_some() }
    }

    fn check(&self, common: &Common, faults: &mut Vec<Fault>) {
        match &self.fit {
            Err(fault) => {
                faults.push(fault.clone());
                return;
            }
            Ok(Found::Sequence(_)) => self.check_sequence(common, faults),
            Ok(Found::Statistics(_)) => {}
        }
        if (self.keys.rate_scale.0 - 1.0).abs() >= f64::EPSILON {
            let found = if common.rate.is_some() {
                "rate-scale and rate together"
            } else if common.depth.is_some() {
                "rate-scale in a closed loop"
            } else if self.rate().is_none() {
                "rate-scale for a model without arrivals"
            } else {
                return;
            };
            faults.push(Fault::new("rate-scale", found, "rate-scale alone, of a model with arrivals"));
        }
    }

    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        match self.found()? {
            Found::Sequence(sequence) => {
                let space = self.space(sequence, plan)?;
                let pace = pace(plan, self.rate(), self.keys.rate_scale.0);
                Ok(Box::new(Segments::new(Arc::clone(sequence), space, pace, plan.seed, plan.requests)))
            }
            Found::Statistics(model) => {
                let play = play(model, plan, self.keys.scale.0, self.keys.rate_scale.0)?;
                self.expect_room(plan, model.footprint.regions, play.regions(model), REGION_SECTORS)?;
                Ok(Box::new(Player::new(model, play)))
            }
        }
    }

    fn label(&self) -> Option<String> {
        let File(path) = self.keys.file.as_ref()?;
        Some(match self.fit.as_ref().ok()? {
            Found::Sequence(sequence) => {
                format!("model {path} ({} requests of a trace, in segments drawn anew)", sequence.fitted.requests)
            }
            Found::Statistics(model) => {
                format!("model {path} (synthetic, fitted to {} requests of a trace)", model.fitted.requests)
            }
        })
    }

    fn notes(&self, plan: &Plan<'_>) -> Vec<String> {
        let Ok(Found::Statistics(model)) = &self.fit else { return Vec::new() };
        let Ok(play) = play(model, plan, self.keys.scale.0, self.keys.rate_scale.0) else { return Vec::new() };
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
