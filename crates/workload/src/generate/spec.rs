//! The text form of a workload.

use super::common::{Common, Pace, Plan, Target, ZonedTarget};
use super::error::{Fault, SpecError};
use super::settings::{Given, KeyInfo, Settings};
use super::{Kind, described};
use flashwright_block::{RequestSource, Seed};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::str::FromStr;

/// A generator as the list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadInfo {
    /// The name before the colon.
    pub name: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// The key that a value without a key belongs to (`stand-in:financial1`).
    pub bare_key: Option<&'static str>,
    /// The generator's own keys, then the common keys unless it reacts to the device.
    pub keys: Vec<KeyInfo>,
    /// Whether it reacts to the device; it then sets its own pace and end.
    pub interactive: bool,
}

/// Every generator with its keys.
#[must_use]
pub fn catalogue() -> Vec<WorkloadInfo> {
    let mut all = described();
    all.iter_mut().filter(|info| !info.interactive).for_each(|info| info.keys.extend(Common::keys()));
    all
}

/// A parsed and validated workload. Its text form is canonical: own keys before common ones, each in the order of
/// [`catalogue`], defaults left out; parsing it gives the same workload.
///
/// ```
/// # use flashwright_workload::generate::WorkloadSpec;
/// let spec: WorkloadSpec = "hot-cold:write=70%, hot-space=.2, depth=32".parse()?;
/// assert_eq!(spec.to_string(), "hot-cold:write=0.7,depth=32");
/// let error = "zip:acesses=2".parse::<WorkloadSpec>().unwrap_err();
/// assert!(error.to_string().contains("did you mean zipf?"));
/// # Ok::<(), flashwright_workload::generate::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadSpec {
    kind: Kind,
    common: Common,
}

impl WorkloadSpec {
    /// Reads a workload: `name` or `name:key=value,key=value`.
    ///
    /// # Errors
    /// [`SpecError`] with every error.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let fail = |faults| SpecError { spec: text.to_owned(), faults };
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let name = name.trim();
        let Some(bare) = Kind::bare(name) else {
            let names: Vec<&str> = described().iter().map(|info| info.name).collect();
            let allowed = format!("one of {}", names.join(", "));
            return Err(fail(vec![Fault::new("workload", format!("{name:?}"), allowed).near(name, names)]));
        };
        let mut given = rest.map_or_else(Given::nothing, |rest| Given::split(rest, bare));
        let mut nothing = Given::nothing();
        let common = Common::read(if Kind::is_interactive(name) { &mut nothing } else { &mut given });
        let kind = Kind::read(name, &mut given).expect("a name with an entry for bare values has one for keys");
        let keys = catalogue().into_iter().find(|info| info.name == name).map_or_else(Vec::new, |info| info.keys);
        given.finish(&keys);
        let mut faults = given.faults;
        if faults.is_empty() {
            common.check(kind.workload().defaults(), &mut faults);
            kind.workload().check(&common, &mut faults);
        }
        if faults.is_empty() { Ok(WorkloadSpec { kind, common }) } else { Err(fail(faults)) }
    }

    /// The generator's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kind.write(&mut Vec::new()).0
    }

    /// Closed loop with its depth, or open loop.
    #[must_use]
    pub fn pace(&self) -> Pace {
        if self.is_interactive() {
            return Pace::Interactive;
        }
        self.common.pace(self.kind.workload().defaults())
    }

    /// The pace that the user wrote, such as `depth=8`; none if it was left to the workload.
    ///
    /// ```
    /// # use flashwright_workload::generate::WorkloadSpec;
    /// let said = |text: &str| WorkloadSpec::parse(text).map(|spec| spec.pace_said());
    /// assert_eq!(said("zipf:depth=8")?.as_deref(), Some("depth=8"));
    /// assert_eq!(said("uniform:rate=200")?.as_deref(), Some("rate=200"));
    /// assert_eq!(said("uniform:write=0.5")?, None);
    /// # Ok::<(), flashwright_workload::generate::SpecError>(())
    /// ```
    #[must_use]
    pub fn pace_said(&self) -> Option<String> {
        let mut pairs = Vec::new();
        self.common.pairs(&mut pairs);
        let pace = pairs.into_iter().find(|(key, _)| matches!(&**key, "depth" | "rate"));
        pace.map(|(key, value)| format!("{key}={value}"))
    }

    /// Whether it reacts to the device; its source is then a [`flashwright_block::Interactive`] one.
    #[must_use]
    pub fn is_interactive(&self) -> bool {
        Kind::is_interactive(self.name())
    }

    /// The label of this workload in reports, if its name would promise too much: stand-ins are labelled.
    #[must_use]
    pub fn label(&self) -> Option<String> {
        self.kind.workload().label()
    }

    /// The source of requests on `target`: endless unless `requests` gives a number. One that reacts to the device ends
    /// by itself.
    ///
    /// # Errors
    /// [`SpecError`] when the workload does not fit the target.
    pub fn source(
        &self,
        target: &Target,
        seed: Seed,
        requests: Option<u64>,
    ) -> Result<Box<dyn RequestSource + Send>, SpecError> {
        self.source_on_zones(target, None, seed, requests)
    }

    /// As [`WorkloadSpec::source`], on a drive that may have zones. Of those that write, only `zones` goes with one that has.
    ///
    /// # Errors
    /// As [`WorkloadSpec::source`].
    pub fn source_on_zones(
        &self,
        target: &Target,
        zones: Option<ZonedTarget>,
        seed: Seed,
        requests: Option<u64>,
    ) -> Result<Box<dyn RequestSource + Send>, SpecError> {
        let workload = self.kind.workload();
        let (writes, _) = self.common.shares(workload.defaults());
        let source = if zones.is_some() && writes > 0.0 && !workload.keeps_zones() {
            let found = format!("{}, which does not write zones in order, on a zoned drive", self.name());
            Err(Fault::new("workload", found, "zones, such as zones:writers=4, a workload with write=0, or a trace"))
        } else {
            Plan::new(&self.common, workload.defaults(), target, zones, seed, requests)
                .and_then(|plan| workload.source(&plan))
        };
        source.map_err(|fault| SpecError { spec: self.to_string(), faults: vec![fault] })
    }

    /// For stand-ins: the requests after which the published statistics hold on `target`, which is the length of the
    /// trace, scaled like its footprint. None for other workloads, and if the workload does not fit.
    #[must_use]
    pub fn natural_requests(&self, target: &Target) -> Option<u64> {
        let plan = self.plan(target, Seed(0), None).ok()?;
        self.kind.workload().natural_requests(&plan)
    }

    /// A note that reports must give about this workload on `target`, such as a footprint that was scaled down to fit.
    #[must_use]
    pub fn notes(&self, target: &Target) -> Vec<String> {
        self.plan(target, Seed(0), None).map_or_else(|_| Vec::new(), |plan| self.kind.workload().notes(&plan))
    }

    fn plan(&self, target: &Target, seed: Seed, requests: Option<u64>) -> Result<Plan<'_>, Fault> {
        Plan::new(&self.common, self.kind.workload().defaults(), target, None, seed, requests)
    }
}

impl FromStr for WorkloadSpec {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::parse(text)
    }
}

impl fmt::Display for WorkloadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pairs = Vec::new();
        let (name, bare) = self.kind.write(&mut pairs);
        self.common.pairs(&mut pairs);
        f.write_str(name)?;
        for (i, (key, value)) in pairs.iter().enumerate() {
            f.write_str(if i == 0 { ":" } else { "," })?;
            if bare == Some(key) { f.write_str(value)? } else { write!(f, "{key}={value}")? }
        }
        Ok(())
    }
}

impl Serialize for WorkloadSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WorkloadSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
