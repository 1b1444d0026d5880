//! A digest of all that a core is built from, so that a kept result is known to be of this very code.
//!
//! The same on every machine: files go in by their path below the workspace, in order, as they lie in the sources.

#![allow(clippy::print_stdout)] // this output instructs cargo

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Of a crate, what makes its code; tests and benchmarks change no result.
const PARTS: [&str; 2] = ["src", "devices"];
/// Not part of the core.
const LEFT_OUT: [&str; 1] = ["bench"];

/// Called by the `build.rs` of a core: `env!("FLASHWRIGHT_SOURCE_DIGEST")` is then the digest of all crates here, of the versions of
/// what they use, and of the core itself where it lies elsewhere.
///
/// # Errors
/// What the system says of a file that can't be read.
pub fn tell() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let own: PathBuf = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default().canonicalize()?;
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root.join("crates"))? {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !LEFT_OUT.contains(&name.as_str()) {
            collect_crate(&root, &folder, &mut found)?;
        }
    }
    let is_ours = own.starts_with(root.join("crates"));
    if !is_ours {
        collect_crate(&own, &own, &mut found)?;
    }
    let lock = if is_ours { root } else { own }.join("Cargo.lock");
    if lock.is_file() {
        println!("cargo:rerun-if-changed={}", lock.display());
        found.insert("Cargo.lock".to_owned(), fs::read(&lock)?);
    }
    let mut digest = Fnv::default();
    for (path, content) in &found {
        for part in [path.as_bytes(), content] {
            digest.take(&(part.len() as u64).to_le_bytes());
            digest.take(part);
        }
    }
    println!("cargo:rustc-env=FLASHWRIGHT_SOURCE_DIGEST={:032x}", digest.0);
    Ok(())
}

fn collect_crate(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    for part in PARTS.iter().map(|part| folder.join(part)).filter(|part| part.is_dir()) {
        println!("cargo:rerun-if-changed={}", part.display());
        collect(root, &part, found)?;
    }
    Ok(())
}

fn collect(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "rs" || ending == "toml") {
            let below = path.strip_prefix(root).unwrap_or(&path);
            let name = below.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
            found.insert(name, fs::read(&path)?);
        }
    }
    Ok(())
}

/// FNV-1a of 128 bits: guards against forgetting, not against malice, and needs no crate.
struct Fnv(u128);

impl Default for Fnv {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv {
    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
}
