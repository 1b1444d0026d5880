//! Reasons against writing, on loop devices. Needs root and `losetup`; without them each test is skipped with a
//! message.
//!
//! After every refusal the backing file must be unchanged.
#![allow(clippy::unwrap_used)] // helpers of tests count as library code

use flashwright_block::{BlockDevice as _, Bytes, Completion, Nanos, Request, RequestKind};
use flashwright_disk::{Access, Disk, Kind, Options, Why, open};
use flashwright_testing::{Lacks, need, skip};
use std::path::{Path, PathBuf};
use std::process::Command;

const BYTES: u64 = 16 << 20;

/// A command's output without the line's end, or none if it fails.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A file, and a loop device over it; both go when it is dropped.
struct Loop {
    file: PathBuf,
    device: String,
}

impl Loop {
    fn new(name: &str, prepare: impl FnOnce(&Path), options: &[&str]) -> Option<Self> {
        if !need("losetup") {
            return None;
        }
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("loop-{name}-{}", std::process::id()));
        std::fs::File::create(&file).unwrap().set_len(BYTES).unwrap();
        prepare(&file);
        let path = file.display().to_string();
        let arguments = [&["--find", "--show"], options, &[&path]].concat();
        if let Some(device) = run("losetup", &arguments) {
            return Some(Self { file, device });
        }
        std::fs::remove_file(&file).unwrap();
        skip(Lacks::Kernel("no loop device to be had: losetup was refused (root is needed)"));
        None
    }

    /// The reason why writing is refused; the file is unchanged.
    fn refused(&self) -> Why {
        refused(&self.device, &self.file)
    }

    fn sysfs(&self, what: &str) -> PathBuf {
        Path::new("/sys/block").join(self.device.trim_start_matches("/dev/")).join(what)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run("losetup", &["--detach", &self.device]);
        std::fs::remove_file(&self.file).unwrap_or_default();
    }
}

fn refused(target: &str, unchanged: &Path) -> Why {
    let before = std::fs::read(unchanged).unwrap();
    let refusal = open(Path::new(target), Access::DestroysData, Bytes(0)).unwrap_err();
    assert!(!refusal.to_string().contains('\n') && !refusal.hint().is_empty());
    assert!(before == std::fs::read(unchanged).unwrap(), "a refusal changed the file");
    refusal.why
}

/// A partition table with one entry: Linux, sectors 2048 up to 16,384 more.
fn divide(file: &Path) {
    use std::os::unix::fs::FileExt as _;
    let mut sector = [0u8; 512];
    sector[446 + 4] = 0x83;
    sector[446 + 8..446 + 12].copy_from_slice(&2048u32.to_le_bytes());
    sector[446 + 12..446 + 16].copy_from_slice(&16_384u32.to_le_bytes());
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    std::fs::OpenOptions::new().write(true).open(file).unwrap().write_all_at(&sector, 0).unwrap();
}

#[test]
fn an_idle_loop_device_is_written_to_and_claimed_meanwhile() {
    let Some(made) = Loop::new("idle", |_| (), &[]) else { return };
    let target = open(Path::new(&made.device), Access::DestroysData, Bytes(BYTES)).unwrap();
    assert_eq!((target.kind, target.capacity, target.block), (Kind::BlockDevice, Bytes(BYTES), Bytes(512)));
    // As long as it is open nobody else may write, but reading does no harm.
    assert_eq!(refused(&made.device, &made.file), Why::InUse);
    open(Path::new(&made.device), Access::ReadOnly, Bytes(BYTES)).unwrap();
    // Nor may its file be written to behind its back.
    let file = made.file.display().to_string();
    let holder = made.device.trim_start_matches("/dev/").to_owned();
    assert_eq!(refused(&file, &made.file), Why::Held { what: file.clone(), holder });

    let mut disk = match Disk::new(target, Options::default()) {
        Ok(disk) => disk,
        Err(error) => return skip(Lacks::Kernel(&error.to_string())),
    };
    let mut completion = Completion::default();
    let all = u32::try_from(BYTES / 512).unwrap();
    disk.execute(Request { kind: RequestKind::Write, sectors: all, ..Request::default() }, &mut completion).unwrap();
    disk.execute(Request { kind: RequestKind::Flush, ..Request::default() }, &mut completion).unwrap();
    assert!(std::fs::read(&made.file).unwrap().chunks(4096).all(|page| page.iter().any(|byte| *byte != 0)));
    let trim = Request { kind: RequestKind::Trim, first_sector: 8, sectors: 8, ..Request::default() };
    disk.execute(trim, &mut completion).unwrap();
    let bytes = std::fs::read(&made.file).unwrap();
    assert!(bytes[4096..8192].iter().all(|byte| *byte == 0) && bytes[8192..12288].iter().any(|byte| *byte != 0));
    assert_eq!(disk.wait(Nanos(u64::MAX), &mut completion), Ok(false));
    drop(disk);
    // The kernel lets go of the files of a ring a moment after the ring is closed.
    let mut again = open(Path::new(&made.device), Access::DestroysData, Bytes(BYTES));
    for _ in 0..100 {
        if again.is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        again = open(Path::new(&made.device), Access::DestroysData, Bytes(BYTES));
    }
    again.unwrap();
}

#[test]
fn a_mounted_device_is_refused() {
    if !(need("mkfs.ext4") && need("mount") && need("umount")) {
        return;
    }
    let format = |file: &Path| {
        run("mkfs.ext4", &["-q", "-F", &file.display().to_string()]);
    };
    let Some(made) = Loop::new("mounted", format, &[]) else { return };
    let at = made.file.with_extension("mount point");
    std::fs::create_dir_all(&at).unwrap();
    let place = at.display().to_string();
    let mounted = run("mount", &[&made.device, &place]).is_some();
    if mounted {
        assert_eq!(made.refused(), Why::Mounted { what: made.device.clone(), at: place.clone() });
        open(Path::new(&made.device), Access::ReadOnly, Bytes(0)).unwrap();
        run("umount", &[&place]).unwrap();
        open(Path::new(&made.device), Access::DestroysData, Bytes(0)).unwrap();
    } else {
        skip(Lacks::Kernel("nothing can be mounted here"));
    }
    std::fs::remove_dir(&at).unwrap();
}

#[test]
fn a_divided_device_is_refused_but_not_its_partition() {
    let Some(made) = Loop::new("divided", divide, &["--partscan"]) else { return };
    let name = format!("{}p1", made.device.trim_start_matches("/dev/"));
    if !made.sysfs(&name).exists() {
        return skip(Lacks::Kernel("loop devices have no partitions here"));
    }
    assert_eq!(made.refused(), Why::Partitioned { names: name.clone() });
    let part = PathBuf::from(format!("/dev/{name}"));
    if part.exists() {
        let target = open(&part, Access::DestroysData, Bytes(0)).unwrap();
        assert_eq!(target.capacity, Bytes(16_384 * 512));
    }
}

#[test]
fn a_swap_device_and_one_under_another_are_refused() {
    if !(need("dmsetup") && need("mkswap") && need("swapon") && need("swapoff")) {
        return;
    }
    let Some(made) = Loop::new("held", |_| (), &[]) else { return };
    let name = format!("flashwright-test-{}", std::process::id());
    let table = format!("0 {} linear {} 0", BYTES / 512, made.device);
    if run("dmsetup", &["create", &name, "--table", &table]).is_some() {
        let why = made.refused();
        run("dmsetup", &["remove", "--retry", &name]).unwrap();
        assert!(
            matches!(&why, Why::Held { what, holder } if *what == made.device && holder.starts_with("dm-")),
            "{why}"
        );
    } else {
        skip(Lacks::Kernel("no device mapper here"));
    }
    let swapped = run("mkswap", &[&made.device]).and_then(|_| run("swapon", &[&made.device])).is_some();
    if swapped {
        let why = made.refused();
        run("swapoff", &[&made.device]).unwrap();
        assert_eq!(why, Why::Swap { what: made.device.clone() });
    } else {
        skip(Lacks::Kernel("no swapping here"));
    }
}

#[test]
fn a_read_only_device_is_refused_for_writing_only() {
    let Some(made) = Loop::new("read-only", |_| (), &["--read-only"]) else { return };
    assert_eq!(made.refused(), Why::ReadOnly);
    open(Path::new(&made.device), Access::ReadOnly, Bytes(0)).unwrap();
}

#[test]
fn a_device_too_small_is_refused() {
    let Some(made) = Loop::new("small", |_| (), &[]) else { return };
    for access in [Access::ReadOnly, Access::DestroysData] {
        let refusal = open(Path::new(&made.device), access, Bytes(BYTES + 1)).unwrap_err();
        assert_eq!(refusal.why, Why::TooSmall { found: Bytes(BYTES), needed: Bytes(BYTES + 1) });
    }
}

#[test]
fn larger_blocks_are_told() {
    let Some(made) = Loop::new("blocks", |_| (), &["--sector-size", "4096"]) else { return };
    let target = open(Path::new(&made.device), Access::ReadOnly, Bytes(0)).unwrap();
    assert_eq!(target.block, Bytes(4096));
    let Ok(mut disk) = Disk::new(target, Options::default()) else { return skip(Lacks::Kernel("no io_uring here")) };
    let odd = Request { first_sector: 9, sectors: 8, ..Request::default() };
    assert_eq!(
        disk.submit(odd).unwrap_err().to_string(),
        "request of sectors 9..17 is not aligned to the device's blocks of 4 KiB; it takes whole blocks only"
    );
}

#[test]
fn what_is_no_storage_is_refused_without_root_too() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let fifo = folder.join(format!("fifo-{}", std::process::id()));
    let empty = folder.join(format!("empty-{}", std::process::id()));
    std::fs::File::create(&empty).unwrap();
    run("mkfifo", &[&fifo.display().to_string()]).unwrap();
    for access in [Access::ReadOnly, Access::DestroysData] {
        let why = |path: &Path| open(path, access, Bytes(0)).unwrap_err().why.to_string();
        assert_eq!(why(folder), "found a folder, expected a block device or a regular file");
        assert_eq!(why(Path::new("/dev/null")), "found a character device, expected a block device or a regular file");
        assert_eq!(why(&fifo), "found a pipe, expected a block device or a regular file");
        assert_eq!(why(Path::new("/dev/no-such-thing")), "no such file or device");
        assert!(why(&empty).starts_with("found 0 B, expected at least "), "{}", why(&empty));
    }
    std::fs::remove_file(&fifo).unwrap();
    std::fs::remove_file(&empty).unwrap();
}
