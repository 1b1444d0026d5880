//! The bundled drives: one file each beside the crate, one line each here.

use crate::config::Config;
use crate::faults::nearest;

/// A bundled drive.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// What users write to choose it.
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
    "dftl-small-block",
    "dftl-large-block",
    "hu-2012",
    "container-marking",
    "container-marking-scaled",
    "ssd-a",
    "ssd-b",
    "ssd-c",
    "ssd-d",
}

/// All bundled drives, in the order of the list.
#[must_use]
pub fn bundled_devices() -> &'static [Device] {
    DEVICES
}

/// The bundled drive called `name`.
///
/// # Errors
/// One line with the known names and the nearest match.
pub fn bundled(name: &str) -> Result<Config, String> {
    let names = || DEVICES.iter().map(|device| device.name);
    let Some(device) = DEVICES.iter().find(|device| device.name == name) else {
        let hint = nearest(name, names()).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        return Err(format!(
            "found {name:?}, expected a bundled drive: {}{hint}",
            names().collect::<Vec<_>>().join(", ")
        ));
    };
    let config = Config::from_toml(device.text, device.name).map_err(|error| error.to_string())?;
    Ok(Config { name: device.name.to_owned(), ..config })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bundled_drive_reads_says_what_it_is_and_builds() {
        for device in bundled_devices() {
            let config = bundled(device.name).unwrap();
            assert!(config.about.len() > 40, "{} does not say where its constants come from", device.name);
            assert!(crate::Ssd::new(&config, flashwright_block::Seed(1), false).is_ok(), "{}", device.name);
        }
    }

    #[test]
    fn an_unknown_name_gets_the_nearest() {
        let message = bundled("dftl-large").unwrap_err();
        assert!(message.contains("did you mean \"dftl-large-block\"?"), "{message}");
    }
}
