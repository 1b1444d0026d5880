//! The one place that decides whether a device under test may be opened, and whether its data may be destroyed.
//!
//! Reading requires only a block device or a non-empty regular file, opened read-only. Writing requires
//! [`Access::DestroysData`] and that none of these is found:
//!
//! | found | where it is looked up |
//! | --- | --- |
//! | mounted, or one of its partitions is | `/proc/self/mountinfo` by device number and by source |
//! | used as swap | `/proc/swaps` |
//! | part of a mapped, RAID or multipath device | `holders` in `/sys/dev/block` |
//! | divided into partitions | folders with a `partition` file below the device's |
//! | read-only | `ro` there |
//! | behind a loop device (regular files) | `/sys/block/loop*/loop/backing_file` |
//! | claimed by another program | `O_EXCL` (block devices), a lock (regular files); both are kept while it is open |
//!
//! If a check is impossible, the device is refused too. Nothing is created, truncated or written here, whatever the
//! result.

use flashwright_block::Bytes;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, Stat, StatxFlags};
use rustix::io::Errno;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The kind of access to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only; the kernel refuses everything else.
    ReadOnly,
    /// The user agreed that the target's data may be destroyed.
    DestroysData,
}

/// The type of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A block device.
    BlockDevice,
    /// A regular file.
    File,
}

/// The open file of a target. The lock of a writable file is released when this is dropped, even if a forked process
/// has inherited the descriptor.
#[derive(Debug)]
pub(crate) struct TargetFile(pub(crate) File);

impl Drop for TargetFile {
    fn drop(&mut self) {
        // Unlocking a file without a lock does nothing, and a lock that can't be released here is released with its
        // last descriptor.
        rustix::fs::flock(&self.0, FlockOperation::Unlock).unwrap_or_default();
    }
}

/// A target that passed the checks, open with `O_DIRECT`.
#[derive(Debug)]
pub struct Target {
    pub(crate) file: TargetFile,
    /// Its name as the user gave it.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// The granted access.
    pub access: Access,
    /// Its size, in whole blocks.
    pub capacity: Bytes,
    /// The smallest unit of reads and writes, and the alignment of every request.
    pub block: Bytes,
}

/// Why a target was refused: one line. [`Refusal::hint`] suggests what to try.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{target}: {why}")]
pub struct Refusal {
    /// The target as the user named it.
    pub target: String,
    /// The reason.
    pub why: Why,
}

/// The reason to refuse a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Why {
    /// It does not exist.
    #[error("no such file or device")]
    Missing,
    /// It is neither a block device nor a regular file.
    #[error("found {found}, expected a block device or a regular file")]
    NotStorage {
        /// Its type.
        found: &'static str,
    },
    /// The user lacks permission.
    #[error("no permission to open it for {asked}")]
    Permission {
        /// Reading or writing.
        asked: &'static str,
    },
    /// Its file system takes no direct I/O.
    #[error("its file system does not take direct I/O (O_DIRECT)")]
    NoDirectIo,
    /// It is smaller than the workload needs.
    #[error("found {found}, expected at least {needed}")]
    TooSmall {
        /// Its size.
        found: Bytes,
        /// The needed size.
        needed: Bytes,
    },
    /// It is mounted.
    #[error("{what} is mounted on {at}")]
    Mounted {
        /// The device, or one of its partitions.
        what: String,
        /// The mount point.
        at: String,
    },
    /// It is in use as swap.
    #[error("{what} is in use as swap")]
    Swap {
        /// The device, its partition, or the file.
        what: String,
    },
    /// Another block device is built on it.
    #[error("{what} is in use by {holder}")]
    Held {
        /// The device, or one of its partitions.
        what: String,
        /// The device on top.
        holder: String,
    },
    /// It is divided into partitions.
    #[error("it has partitions ({names})")]
    Partitioned {
        /// Their names.
        names: String,
    },
    /// It is read-only.
    #[error("it is read-only")]
    ReadOnly,
    /// Another program has claimed it.
    #[error("it is in use by another program")]
    InUse,
    /// Another program has locked it.
    #[error("it is locked by {holder}")]
    Locked {
        /// The program, as far as the system tells.
        holder: String,
    },
    /// It changed between the checks and the opening.
    #[error("it changed while it was being opened")]
    Changed,
    /// A check that writing requires is impossible.
    #[error("can't find out whether it is in use: {what}")]
    Unknown {
        /// The source of information and its error.
        what: String,
    },
    /// Another error of opening or querying it.
    #[error("{what}")]
    Failed {
        /// The step, and the system's error.
        what: String,
    },
}

impl Refusal {
    /// What to try.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self.why {
            Why::Missing => "check the path; TARGET is a block device, a file, or sim:DEVICE",
            Why::NotStorage { .. } => "such as /dev/nvme0n1, or a file made by `fallocate --length 1GiB FILE`",
            Why::Permission { .. } => "block devices need root or membership in the group that owns them",
            Why::NoDirectIo => "put the file on a file system that supports it, such as ext4 or xfs",
            Why::TooSmall { .. } => {
                "use a larger device, or --addresses scale to fit the trace to it (wrap takes addresses modulo its size)"
            }
            Why::Mounted { .. } => "unmount it first, or leave out --destroys-data to play only the reads",
            Why::Swap { .. } => "`swapoff` it first, or leave out --destroys-data to play only the reads",
            Why::Held { .. } => "remove that one first, or leave out --destroys-data to play only the reads",
            Why::Partitioned { .. } => {
                "name one of the partitions, or remove them (`wipefs --all`) if their data may go"
            }
            Why::ReadOnly => {
                "leave out --destroys-data to play only the reads, or make it writable (`blockdev --setrw`)"
            }
            Why::InUse | Why::Locked { .. } => {
                "end that program first, or leave out --destroys-data to play only the reads"
            }
            Why::Changed => "find out what replaces it, and run again",
            Why::Unknown { .. } => "run where /proc and /sys are mounted",
            Why::Failed { .. } => "look for messages of the system, for instance with `dmesg`",
        }
    }
}

/// Opens a target after all checks that `access` requires. It must have a size of at least `needed`.
///
/// # Errors
/// [`Refusal`], one line; nothing was written, and the target is closed again.
pub fn open(path: &Path, access: Access, needed: Bytes) -> Result<Target, Refusal> {
    System::default().open(path, access, needed).map_err(|why| Refusal { target: path.display().to_string(), why })
}

/// Where the system's information is read; another root in tests.
struct System {
    proc: PathBuf,
    sys: PathBuf,
}

impl Default for System {
    fn default() -> Self {
        Self { proc: "/proc".into(), sys: "/sys".into() }
    }
}

impl System {
    fn open(&self, path: &Path, access: Access, needed: Bytes) -> Result<Target, Why> {
        // Inspected before it is opened: opening a FIFO would block, and opening some devices has side effects.
        let looked_at = rustix::fs::stat(path).map_err(|error| failed(error, "looking at it", access))?;
        let kind = kind(&looked_at)?;
        if access == Access::DestroysData {
            match kind {
                Kind::BlockDevice => self.check_device(path, looked_at.st_rdev)?,
                Kind::File => self.check_file(path, &looked_at)?,
            }
        }
        let file = open_direct(path, kind, access)?;
        let opened = rustix::fs::fstat(&file).map_err(|error| failed(error, "looking at it", access))?;
        if identity(&opened) != identity(&looked_at) {
            return Err(Why::Changed);
        }
        if access == Access::DestroysData && kind == Kind::File {
            rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
                Errno::WOULDBLOCK => self.locked(&opened),
                other => failed(other, "locking it", access),
            })?;
            // The other kind of lock, which neither sees nor is seen by the first: QEMU takes it, and most databases.
            match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK | Errno::ACCESS) => return Err(self.locked(&opened)),
                Err(Errno::INVAL | Errno::NOLCK | Errno::OPNOTSUPP) | Ok(()) => {} // a file system without them
                Err(other) => return Err(failed(other, "locking it", access)),
            }
        }
        let block = block_size(&file, kind).map_err(|error| failed(error, "asking for its block size", access))?;
        let end = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))
            .map_err(|error| failed(error, "asking for its size", access))?;
        let found = Bytes(end - end % block);
        // A target without a single block is of no use.
        let needed = Bytes(needed.0.max(block));
        if found < needed {
            return Err(Why::TooSmall { found: Bytes(end), needed });
        }
        let name = path.display().to_string();
        Ok(Target { file: TargetFile(file), name, kind, access, capacity: found, block: Bytes(block) })
    }

    /// Says who has locked a file, if the system tells.
    fn locked(&self, file: &Stat) -> Why {
        // 1: POSIX  ADVISORY  WRITE 1234 fe:01:5678 0 EOF; -1 stands for locks that belong to no process alone.
        let is_it = |place: &str| {
            let mut parts = place.split(':');
            let device = [parts.next(), parts.next()].map(|part| u32::from_str_radix(part.unwrap_or(""), 16).ok());
            let own = [rustix::fs::major(file.st_dev), rustix::fs::minor(file.st_dev)];
            device == own.map(Some) && parts.next().and_then(|inode| inode.parse().ok()) == Some(file.st_ino)
        };
        let locks = read(&self.proc.join("locks")).unwrap_or_default();
        let process = locks.lines().find_map(|lock| {
            let fields: Vec<&str> = lock.split_whitespace().filter(|field| *field != "->").collect();
            let process = fields.get(4).and_then(|process| process.parse::<u32>().ok());
            // The first kind of lock is ours already when the second is refused.
            let is_other = process != Some(std::process::id());
            process.filter(|_| is_other && fields.get(5).is_some_and(|place| is_it(place)))
        });
        let name = process.and_then(|process| line(&self.proc.join(process.to_string()).join("comm")).ok());
        let holder = match (process, name) {
            (Some(process), Some(name)) => format!("process {process} ({name})"),
            (Some(process), None) => format!("process {process}"),
            _ => "another program".to_owned(),
        };
        Why::Locked { holder }
    }

    /// All reasons against writing to a block device.
    fn check_device(&self, path: &Path, device: u64) -> Result<(), Why> {
        let folder = self.sys.join("dev/block").join(number(device));
        if !folder.is_dir() {
            return Err(Why::Unknown { what: format!("{} is not there", folder.display()) });
        }
        let mut parts = Vec::new();
        for name in names_in(&folder)? {
            if folder.join(&name).join("partition").exists() {
                parts.push(Part { number: line(&folder.join(&name).join("dev"))?, name, path: None });
            }
        }
        parts.sort_by(|a, b| a.name.cmp(&b.name));
        let whole = Part { number: number(device), name: path.display().to_string(), path: Some(path) };
        for part in std::iter::once(&whole).chain(&parts) {
            if let Some(at) = self.mounted(part)? {
                return Err(Why::Mounted { what: part.name.clone(), at });
            }
            if self.is_swap(|stat| {
                FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice && number(stat.st_rdev) == part.number
            })? {
                return Err(Why::Swap { what: part.name.clone() });
            }
            let holders = self.sys.join("dev/block").join(&part.number).join("holders");
            if let Some(holder) = names_in(&holders)?.into_iter().next() {
                return Err(Why::Held { what: part.name.clone(), holder });
            }
        }
        if !parts.is_empty() {
            let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
            return Err(Why::Partitioned { names: names.join(", ") });
        }
        if line(&folder.join("ro"))? != "0" {
            return Err(Why::ReadOnly);
        }
        Ok(())
    }

    /// All reasons against writing to a regular file.
    fn check_file(&self, path: &Path, file: &Stat) -> Result<(), Why> {
        let same = |stat: &Stat| identity(stat) == identity(file);
        let name = path.display().to_string();
        if self.is_swap(same)? {
            return Err(Why::Swap { what: name });
        }
        let blocks = self.sys.join("block");
        for device in names_in(&blocks)? {
            let Ok(backing) = line(&blocks.join(&device).join("loop/backing_file")) else { continue };
            if rustix::fs::stat(backing.as_str()).is_ok_and(|stat| same(&stat)) {
                return Err(Why::Held { what: name, holder: device });
            }
        }
        // A file may be bind-mounted over another: then something relies on its content.
        match self.mounted(&Part { number: String::new(), name: name.clone(), path: Some(path) })? {
            Some(at) => Err(Why::Mounted { what: name, at }),
            None => Ok(()),
        }
    }

    /// Where a device is mounted. File systems over several devices show their own numbers, so the source is compared
    /// too.
    fn mounted(&self, part: &Part<'_>) -> Result<Option<String>, Why> {
        let mounts = self.proc.join("self/mountinfo");
        let own = part.path.and_then(|path| rustix::fs::stat(path).ok());
        for mount in read(&mounts)?.lines() {
            // 36 35 98:0 /root /mount/point options [fields] - type source options
            let mut fields = mount.split(' ');
            let (device, at) = (fields.nth(2).unwrap_or(""), fields.nth(1).unwrap_or(""));
            let source = mount.split_once(" - ").and_then(|(_, rest)| rest.split(' ').nth(1)).unwrap_or("");
            let is_source = || {
                let Some(stat) = source.starts_with('/').then(|| rustix::fs::stat(unescaped(source)).ok()).flatten()
                else {
                    return false;
                };
                match FileType::from_raw_mode(stat.st_mode) {
                    FileType::BlockDevice => number(stat.st_rdev) == part.number,
                    _ => own.as_ref().is_some_and(|own| identity(own) == identity(&stat)),
                }
            };
            if device == part.number || is_source() {
                return Ok(Some(unescaped(at)));
            }
        }
        Ok(None)
    }

    /// Whether something that `is_it` recognises is in use as swap.
    fn is_swap(&self, is_it: impl Fn(&Stat) -> bool) -> Result<bool, Why> {
        let swaps = self.proc.join("swaps");
        // The first line is a header; a kernel without swap has no such file.
        let text = if swaps.exists() { read(&swaps)? } else { String::new() };
        Ok(text
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next())
            .any(|name| rustix::fs::stat(unescaped(name)).is_ok_and(|stat| is_it(&stat))))
    }
}

/// A device or one of its partitions.
struct Part<'a> {
    /// Major and minor number, as `8:1`.
    number: String,
    name: String,
    path: Option<&'a Path>,
}

fn kind(stat: &Stat) -> Result<Kind, Why> {
    let found = match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice => return Ok(Kind::BlockDevice),
        FileType::RegularFile => return Ok(Kind::File),
        FileType::Directory => "a folder",
        FileType::CharacterDevice => "a character device",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        _ => "something else",
    };
    Err(Why::NotStorage { found })
}

fn open_direct(path: &Path, kind: Kind, access: Access) -> Result<File, Why> {
    let flags = match (access, kind) {
        (Access::ReadOnly, _) => OFlags::RDONLY,
        // No one else may have claimed the device, and it can't be mounted from now on.
        (Access::DestroysData, Kind::BlockDevice) => OFlags::RDWR | OFlags::EXCL,
        (Access::DestroysData, Kind::File) => OFlags::RDWR,
    };
    rustix::fs::open(path, flags | OFlags::DIRECT | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty())
        .map(File::from)
        .map_err(|error| match error {
            Errno::INVAL => Why::NoDirectIo,
            Errno::BUSY => Why::InUse,
            other => failed(other, "opening it", access),
        })
}

/// The alignment of direct I/O.
fn block_size(file: &File, kind: Kind) -> Result<u64, Errno> {
    if kind == Kind::BlockDevice {
        return rustix::fs::ioctl_blksszget(file).map(u64::from);
    }
    let status = rustix::fs::statx(file, "", rustix::fs::AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)?;
    let (align, has_align) = (status.stx_dio_offset_align, status.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    // Kernels before 6.1 and some file systems do not report it: then the file system's block size is safe.
    Ok(u64::from(if has_align && align > 0 { align } else { status.stx_blksize.clamp(512, 4096) }))
}

fn failed(error: Errno, step: &str, access: Access) -> Why {
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::NXIO | Errno::NODEV | Errno::NOMEDIUM => Why::Missing,
        Errno::ROFS => Why::ReadOnly,
        Errno::ACCESS | Errno::PERM => {
            Why::Permission { asked: if access == Access::DestroysData { "reading and writing" } else { "reading" } }
        }
        Errno::TXTBSY => Why::InUse,
        other => Why::Failed { what: format!("{step} failed: {other}") },
    }
}

/// Identifies a file, to detect whether it was replaced.
fn identity(stat: &Stat) -> (u64, u64, u64) {
    (stat.st_dev, stat.st_ino, stat.st_rdev)
}

fn number(device: u64) -> String {
    format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
}

fn read(path: &Path) -> Result<String, Why> {
    // Mount points may hold any bytes.
    std::fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .map_err(|error| Why::Unknown { what: format!("{}: {error}", path.display()) })
}

fn line(path: &Path) -> Result<String, Why> {
    read(path).map(|text| text.trim_end().to_owned())
}

/// Sorted names in a system directory.
fn names_in(folder: &Path) -> Result<Vec<String>, Why> {
    let unknown = |error: std::io::Error| Why::Unknown { what: format!("{}: {error}", folder.display()) };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unknown)? {
        names.push(entry.map_err(unknown)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Undoes the octal escapes of spaces and the like in `/proc`.
fn unescaped(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = (*first == b'\\' && tail.len() >= 3)
            .then(|| std::str::from_utf8(&tail[..3]).ok().and_then(|digits| u8::from_str_radix(digits, 8).ok()))
            .flatten();
        plain.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[3..] } else { tail };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A `/proc` and `/sys` with one device, 8:0, and the entries of a test. The device itself is never opened.
    struct Made {
        root: PathBuf,
        system: System,
    }

    impl Made {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("flashwright-consent-{name}-{}", std::process::id()));
            let system = System { proc: root.join("proc"), sys: root.join("sys") };
            let made = Self { root, system };
            made.put("proc/self/mountinfo", "30 1 9:9 / / rw - ext4 none rw\n");
            made.put("proc/swaps", "Filename Type Size Used Priority\n");
            made.put("sys/dev/block/8:0/ro", "0\n");
            made.put("sys/dev/block/8:0/dev", "8:0\n");
            made.folder("sys/dev/block/8:0/holders");
            made.folder("sys/block");
            made
        }
        fn put(&self, path: &str, text: &str) {
            let path = self.root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fn folder(&self, path: &str) {
            fs::create_dir_all(self.root.join(path)).unwrap();
        }
        fn check(&self) -> Result<(), String> {
            let device = rustix::fs::makedev(8, 0);
            self.system.check_device(Path::new("/made/sda"), device).map_err(|why| why.to_string())
        }
    }

    impl Drop for Made {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.root).unwrap_or_default();
        }
    }

    #[test]
    fn an_idle_whole_device_passes() {
        assert_eq!(Made::new("idle").check(), Ok(()));
    }

    #[test]
    fn a_mount_is_found_by_its_number() {
        let made = Made::new("mounted");
        made.put("proc/self/mountinfo", "31 1 8:0 / /srv/my\\040data rw,noatime shared:1 - ext4 /dev/x rw\n");
        assert_eq!(made.check(), Err("/made/sda is mounted on /srv/my data".into()));
    }

    #[test]
    fn a_mounted_partition_is_named() {
        let made = Made::new("partition");
        made.put("sys/dev/block/8:0/sda1/partition", "1\n");
        made.put("sys/dev/block/8:0/sda1/dev", "8:1\n");
        made.folder("sys/dev/block/8:1/holders");
        assert_eq!(made.check(), Err("it has partitions (sda1)".into()));
        made.put("proc/self/mountinfo", "31 1 8:1 / /boot rw - vfat /dev/x rw\n");
        assert_eq!(made.check(), Err("sda1 is mounted on /boot".into()));
    }

    #[test]
    fn a_holder_of_a_partition_is_found() {
        let made = Made::new("holder");
        made.put("sys/dev/block/8:0/sda2/partition", "2\n");
        made.put("sys/dev/block/8:0/sda2/dev", "8:2\n");
        made.folder("sys/dev/block/8:2/holders/dm-0");
        assert_eq!(made.check(), Err("sda2 is in use by dm-0".into()));
    }

    #[test]
    fn read_only_and_untold_are_refused() {
        let made = Made::new("read-only");
        made.put("sys/dev/block/8:0/ro", "1\n");
        assert_eq!(made.check(), Err("it is read-only".into()));
        fs::remove_dir_all(made.root.join("sys/dev/block/8:0")).unwrap();
        assert!(made.check().unwrap_err().starts_with("can't find out whether it is in use: "));
        let made = Made::new("no-proc");
        fs::remove_file(made.root.join("proc/self/mountinfo")).unwrap();
        assert!(made.check().unwrap_err().contains("mountinfo"));
    }

    #[test]
    fn swap_files_and_files_behind_loop_devices_are_found() {
        let made = Made::new("file");
        made.put("disk image", "data");
        let path = made.root.join("disk image");
        let check = || made.system.check_file(&path, &rustix::fs::stat(&path).unwrap());
        assert_eq!(check(), Ok(()));
        made.put("sys/block/loop7/loop/backing_file", &format!("{}\n", path.display()));
        assert_eq!(check(), Err(Why::Held { what: path.display().to_string(), holder: "loop7".into() }));
        let escaped = path.display().to_string().replace(' ', "\\040");
        made.put("proc/swaps", &format!("Filename Type Size Used Priority\n{escaped} file 4 0 -2\n"));
        assert_eq!(check(), Err(Why::Swap { what: path.display().to_string() }));
    }

    #[test]
    fn the_lock_goes_with_the_target_and_not_with_an_inherited_descriptor() {
        let made = Made::new("lock");
        made.put("image", &"x".repeat(1 << 16));
        let target = || open(&made.root.join("image"), Access::DestroysData, Bytes(0));
        let first = target().unwrap();
        let inherited = first.file.0.try_clone().unwrap();
        // Its holder is this process, which is no other program by the list of locks.
        assert_eq!(target().unwrap_err().why, Why::Locked { holder: "another program".to_owned() });
        drop(first);
        target().unwrap();
        drop(inherited);
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(unescaped("/a\\040b\\134"), "/a b\\");
        assert_eq!(unescaped("/a\\04"), "/a\\04");
    }
}
