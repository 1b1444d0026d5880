//! The bundled drives: one file each beside the crate, one line each here.

use crate::check::DriveConfig;
use crate::read::nearest;
use crate::schema::Config;

/// A bundled drive.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// The name that users choose it by.
    pub name: &'static str,
    /// Its TOML text, with the origin of each constant.
    pub text: &'static str,
}

macro_rules! devices {
    ($($name:literal),+ $(,)?) => {
        const DEVICES: &[Device] = &[$(Device { name: $name, text: include_str!(concat!("../devices/", $name, ".toml")) }),+];
    };
}

devices! {
    "default",
    "mlc-sata",
    "tlc-nvme",
    "qlc-nvme",
    "enterprise-tlc",
    "consumer-tlc",
    "qlc-coarse",
    "dram-less",
    "micron-7450-max",
    "solidigm-p5520",
    "sk-hynix-pe8110",
    "samsung-980-pro",
    "hp-fx900",
    "crucial-p1",
    "wd-zn540",
    "dftl-small-block",
    "dftl-large-block",
    "dftl-release",
    "hu-2012",
    "container-marking",
    "container-marking-scaled",
    "ssd-a",
    "ssd-b",
    "ssd-c",
    "ssd-d",
    "intel-320",
    "samsung-470",
    "ocz-vertex-3",
    "fusion-iodrive",
}

/// All bundled drives, in the order of the list.
#[must_use]
pub fn bundled_devices() -> &'static [Device] {
    DEVICES
}

/// The bundled drive called `name`.
///
/// # Errors
/// One line that lists the known names and the nearest match.
pub fn bundled(name: &str) -> Result<DriveConfig, String> {
    let names = || DEVICES.iter().map(|device| device.name);
    let Some(device) = DEVICES.iter().find(|device| device.name == name) else {
        let hint = nearest(name, names()).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        return Err(format!(
            "found {name:?}, expected a bundled drive: {}{hint}",
            names().collect::<Vec<_>>().join(", ")
        ));
    };
    let config = Config::from_toml(device.text, device.name).map_err(|error| error.to_string())?;
    Ok(config.named(device.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bundled_drive_reads_and_says_what_it_is() {
        for device in bundled_devices() {
            let config = bundled(device.name).unwrap();
            assert!(config.about.len() > 40, "{} does not say where its constants come from", device.name);
        }
    }

    #[test]
    fn an_unknown_name_gets_the_nearest() {
        let message = bundled("dftl-large").unwrap_err();
        assert!(message.contains("did you mean \"dftl-large-block\"?"), "{message}");
    }
}
