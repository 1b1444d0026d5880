//! Which drive an image is of.

use super::layout::HEADER_MAX;
use super::{ImageError, record};
use flashwright_block::Seed;
use flashwright_nand::Geometry;
use flashwright_ssd::{Config, DriveConfig};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8] = b"flashwright image\n";
/// The version of the format.
const FORMAT: u32 = 1;

/// The first bytes of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub format: u32,
    /// See [`record::shape`].
    pub shape: u64,
    /// Who wrote it.
    pub flashwright: String,
    pub seed: u64,
    pub blocks: u32,
    pub pages_per_block: u32,
    pub page_bytes: u64,
    /// The drive, as TOML.
    pub drive: String,
}

impl Header {
    pub fn new(config: &DriveConfig, seed: Seed) -> Self {
        let geometry = config.layout();
        Self {
            format: FORMAT,
            shape: record::shape(),
            flashwright: env!("CARGO_PKG_VERSION").to_owned(),
            seed: seed.0,
            blocks: geometry.blocks(),
            pages_per_block: geometry.pages_per_block(),
            page_bytes: geometry.page_size().0,
            drive: config.to_toml(),
        }
    }

    /// The header's bytes, and its checksum.
    ///
    /// # Errors
    /// If the description of the drive is too long.
    pub fn bytes(&self) -> Result<(Vec<u8>, u64), String> {
        let text = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        let length = u32::try_from(text.len()).map_err(|error| error.to_string())?;
        let mut bytes = [MAGIC, &length.to_le_bytes(), &text].concat();
        let sum = xxh3_64(&bytes);
        bytes.extend(sum.to_le_bytes());
        if bytes.len() as u64 > HEADER_MAX {
            return Err(format!("the drive's description takes {length} bytes, expected {HEADER_MAX} at most"));
        }
        Ok((bytes, sum))
    }

    /// Reads the bytes at the beginning of an image.
    pub fn read(path: &Path, bytes: &[u8]) -> Result<(Self, u64), ImageError> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return Err(ImageError::new(path, "found another kind of file, expected an image of a drive", "")
                .hint("an image is made by `serve --image` where there is no file yet"));
        };
        let damaged = || ImageError::damaged(path, "its header, which says which drive it is of");
        let length = rest.first_chunk::<4>().map(|length| u32::from_le_bytes(*length) as usize).ok_or_else(damaged)?;
        let end = MAGIC.len() + 4 + length;
        let sum = bytes.get(end..).and_then(<[u8]>::first_chunk::<8>).map(|sum| u64::from_le_bytes(*sum));
        if sum != Some(xxh3_64(&bytes[..end.min(bytes.len())])) {
            return Err(damaged());
        }
        let other = |version: &Value| {
            let what = format!("written by version {version} of Flashwright in a form that this one does not read");
            ImageError::new(path, &what, "")
        };
        let value: Value = serde_json::from_slice(&rest[4..4 + length]).map_err(|_| damaged())?;
        if value["format"] != json!(FORMAT) || value["shape"] != json!(record::shape()) {
            return Err(other(&value["flashwright"]));
        }
        let header = serde_json::from_value(value.clone()).map_err(|_| other(&value["flashwright"]))?;
        Ok((header, sum.unwrap_or_default()))
    }

    /// Refuses an image of another drive by the first difference.
    pub fn check(&self, path: &Path, config: &DriveConfig, seed: Seed) -> Result<(), ImageError> {
        let refuse = |key: &str, image: &str, drive: &str| {
            let what = format!("of another drive: {key} is {image} there, and {drive} here");
            Err(ImageError::new(path, &what, "serve it with the drive and the settings that it was made with"))
        };
        let stored = Config::from_toml(&self.drive, "image").map_err(|error| {
            let why = error.problems.first().map_or_else(String::new, ToString::to_string);
            ImageError::new(path, &format!("of a drive that this version does not accept: {why}"), "")
        })?;
        if let Some((key, image, drive)) = first_difference(&tree(&stored), &tree(config), "") {
            return refuse(&key, &image, &drive);
        }
        if self.seed != seed.0 {
            return refuse("the seed", &self.seed.to_string(), &seed.0.to_string());
        }
        let geometry: Geometry = config.layout();
        let own = (geometry.blocks(), geometry.pages_per_block(), geometry.page_size().0);
        if (self.blocks, self.pages_per_block, self.page_bytes) != own {
            let recorded = format!("{} × {} pages of {} B", self.blocks, self.pages_per_block, self.page_bytes);
            return refuse("its layout", &recorded, &format!("{} × {} pages of {} B", own.0, own.1, own.2));
        }
        Ok(())
    }
}

/// Every setting with its value. Name and description make no difference to a drive.
fn tree(config: &DriveConfig) -> Value {
    let mut tree = json!(config.resolved());
    if let Some(settings) = tree.as_object_mut() {
        settings.remove("name");
        settings.remove("about");
    }
    tree
}

fn first_difference(image: &Value, drive: &Value, at: &str) -> Option<(String, String, String)> {
    let (Value::Object(left), Value::Object(right)) = (image, drive) else {
        return (image != drive).then(|| (at.to_owned(), image.to_string(), drive.to_string()));
    };
    let missing = left.keys().chain(right.keys()).collect::<Vec<_>>();
    missing.into_iter().find_map(|key| {
        let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        let value = |tree: &serde_json::Map<String, Value>| tree.get(key).cloned().unwrap_or(json!("nothing"));
        first_difference(&value(left), &value(right), &path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_of_another_drive_is_refused_by_the_first_difference() {
        let config = DriveConfig::default();
        let (path, header) = (Path::new("a.img"), Header::new(&config, Seed(1)));
        assert_eq!(header.check(path, &config.clone().named("other"), Seed(1)), Ok(()));
        let other = config.with_settings(&["timing.read=51 us", "gc.victim=fifo"]).unwrap();
        let refused = header.check(path, &other, Seed(1)).unwrap_err().to_string();
        assert_eq!(refused, "image a.img: of another drive: timing.read is \"50 us\" there, and \"51 us\" here");
        let refused = header.check(path, &config, Seed(2)).unwrap_err().to_string();
        assert_eq!(refused, "image a.img: of another drive: the seed is 1 there, and 2 here");
    }

    #[test]
    fn a_damaged_header_is_refused() {
        let (bytes, sum) = Header::new(&DriveConfig::default(), Seed(1)).bytes().unwrap();
        let path = Path::new("a.img");
        assert_eq!(Header::read(path, &bytes).unwrap().1, sum);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let why = Header::read(path, &damaged).unwrap_err().to_string();
            assert!(why.contains(if at < MAGIC.len() { "another kind" } else { "damaged" }), "{at}: {why}");
            assert!(Header::read(path, &bytes[..at]).is_err(), "{at}");
        }
    }
}
