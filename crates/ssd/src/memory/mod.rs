//! Whether the tables of a drive fit the memory of the machine that simulates it, before any of them is made: a table that
//! can't be allocated ends the process, and one that is only promised has it killed later. What is not asked comes out of a
//! reserve where memory ends ([`flashwright_block::WithReserve`]).

use flashwright_block::{Bytes, LEAST_RESERVE_BYTES};
use flashwright_config::{DriveConfig, SettingError};
use flashwright_ftl::durable::{PageState, Programmed};
use flashwright_ftl::{FtlSettings, Keeps};
use std::fs;
use std::path::{Path, PathBuf};

/// Drives whose tables need less are built without a look at the machine: they fit the reserve.
const ALWAYS_FITS: u64 = LEAST_RESERVE_BYTES as u64 / 2;

/// Bytes that a drive's tables take for each block: state, erases, victims, free blocks, placement. Of the order of what was
/// counted (`tests/memory.rs`); pages outweigh blocks by far.
const BLOCK_BYTES: u64 = 48;

/// The memory that the tables of a drive need once it is full, in bytes, to within a quarter. Data of the host, which grow with
/// what is written, are not counted, and nor is the program itself.
///
/// ```
/// # use flashwright_ssd::{Config, Keeps, memory_needed};
/// let drive = Config::from_toml("[geometry]\nblocks-per-plane = 4096\n[capacity]\nutilization = 0.5", "mine").unwrap();
/// let pages = u64::from(drive.layout().pages());
/// // Two words of 4 bytes a page, one of them for half the pages, and a bit for validity.
/// assert_eq!(memory_needed(&drive, Keeps::Nothing) / pages, 6);
/// ```
#[must_use]
pub fn memory_needed(config: &DriveConfig, keeps: Keeps) -> u64 {
    let (physical, blocks) = (u64::from(config.layout().pages()), u64::from(config.layout().blocks()));
    let logical = u64::from(config.logical_pages());
    let FtlSettings { scheme, schemes, .. } = &config.ftl;
    // The owner of each page and whether it is valid; then the scheme's tables.
    let mut bytes = physical * 4 + physical / 8 + blocks * BLOCK_BYTES;
    bytes += scheme.table_bytes(schemes, config.logical_pages(), &config.layout());
    let can_mount = config.recovery.can_mount();
    if keeps != Keeps::Nothing || can_mount {
        // A stamp of each page as written, and of each page of the flash.
        bytes += (logical + physical) * 4;
    }
    if can_mount {
        bytes += physical * size_of::<(PageState, Programmed)>() as u64;
    }
    bytes
}

/// The memory that is left to this process, in bytes; none where the system does not say.
#[must_use]
pub fn memory_left() -> Option<u64> {
    left().into_iter().map(|left| left.bytes).min()
}

/// Memory that is left, and what limits it.
struct Left {
    bytes: u64,
    limit: &'static str,
}

/// The problem of a drive that does not fit the memory that is left; none where it fits, or where the system does not say what
/// there is.
pub(crate) fn problem(config: &DriveConfig, keeps: Keeps) -> Option<SettingError> {
    let needed = memory_needed(config, keeps);
    if needed < ALWAYS_FITS {
        return None;
    }
    problem_with(config, needed, left().into_iter().min_by_key(|left| left.bytes)?)
}

fn problem_with(config: &DriveConfig, needed: u64, left: Left) -> Option<SettingError> {
    let pages = config.layout().pages();
    #[allow(clippy::cast_precision_loss)]
    let each = needed as f64 / f64::from(pages);
    (needed > left.bytes).then(|| SettingError {
        key: "geometry".to_owned(),
        what: format!(
            "found {pages} pages, whose tables need {} of memory ({each:.1} B a page), expected no more than the {} that \
             {}; a drive with fewer blocks, or with larger pages, needs less",
            Bytes(needed).rounded(),
            Bytes(left.bytes).rounded(),
            left.limit
        ),
    })
}

/// What the machine, the control group and the limits of the process leave; what the system does not say is left out.
fn left() -> Vec<Left> {
    let machine = kib_of("/proc/meminfo", "MemAvailable:").map(|bytes| Left { bytes, limit: "the machine has free" });
    let mut all: Vec<Left> = machine.into_iter().collect();
    if let Some(most) = address_space() {
        let used = kib_of("/proc/self/status", "VmSize:").unwrap_or(0);
        all.push(Left {
            bytes: most.saturating_sub(used),
            limit: "the process may still take (`ulimit -v`, RLIMIT_AS)",
        });
    }
    all.extend(groups().into_iter().map(|bytes| Left { bytes, limit: "the control group has left (memory.max)" }));
    all
}

/// The size behind a word of a file such as `/proc/meminfo`.
fn kib_of(path: &str, word: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The limit of the address space, if there is one.
fn address_space() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What each control group around the process leaves: of version 2 those up to the root, of version 1 the one of memory. File
/// pages that the kernel would drop count as free.
fn groups() -> Vec<u64> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut left = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let path = path.trim_start_matches('/');
        if controllers.is_empty() {
            let root = PathBuf::from("/sys/fs/cgroup");
            left.extend(
                root.join(path)
                    .ancestors()
                    .take_while(|at| at.starts_with(&root))
                    .filter_map(|at| left_of(at, "memory.max", "memory.current", "inactive_file")),
            );
        } else if controllers.split(',').any(|name| name == "memory") {
            // In a container the path is often that of the host, and the group itself is mounted at the top.
            let root = PathBuf::from("/sys/fs/cgroup/memory");
            let (most, used) = ("memory.limit_in_bytes", "memory.usage_in_bytes");
            let found = [root.join(path), root].iter().find_map(|at| left_of(at, most, used, "total_inactive_file"));
            left.extend(found);
        }
    }
    left
}

/// What a control group leaves; none without a limit.
fn left_of(group: &Path, most: &str, used: &str, dropped: &str) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let (most, used) = (number(most)?, number(used)?);
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let dropped = stat.lines().find_map(|line| line.strip_prefix(dropped)?.trim().parse::<u64>().ok()).unwrap_or(0);
    Some(most.saturating_sub(used.saturating_sub(dropped)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_config::Config;

    #[test]
    fn a_drive_that_does_not_fit_is_refused_in_a_line() {
        let text = "[geometry]\nchannels = 16\ndies-per-channel = 16\nplanes-per-die = 4\nblocks-per-plane = 4095\n\
                    pages-per-block = 1023\n";
        let drive = Config::from_toml(text, "big").unwrap();
        let needed = memory_needed(&drive, Keeps::Nothing);
        // 16 TiB of pages of 4 KiB: 8 bytes each, 34 GB.
        assert!((33_000_000_000..34_000_000_000).contains(&needed), "{needed}");
        let left = |bytes| Left { bytes, limit: "the machine has free" };
        let said = problem_with(&drive, needed, left(8 << 30)).unwrap().to_string();
        assert!(said.starts_with("geometry: found 4289725440 pages, whose tables need 3"), "{said}");
        assert!(said.contains("expected no more than the 8.0 GiB that the machine has free"), "{said}");
        assert!(!said.contains('\n') && problem_with(&drive, needed, left(64 << 30)).is_none());
    }

    /// Groups of the process itself, if it has any: more than nothing is left of each.
    #[test]
    fn what_is_left_can_be_read() {
        assert!(left().iter().all(|left| left.bytes > 0));
    }
}
