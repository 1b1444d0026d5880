//! Files that are either whole or not there: written beside their place, then renamed.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open};
use rustix::io::Errno;
use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// How the name of a file ends that is not whole yet: `.NAME.RANDOM.partial`.
const ENDING: &str = ".partial";
/// Who may use a new file: by the umask, or its owner alone.
const USUAL: u32 = 0o666;
const PRIVATE: u32 = 0o600;
/// Names to try; another one is found at once unless somebody removes them as fast as they are made.
const TRIES: usize = 16;

/// A file that takes the place of its target once it is complete. Dropped before, it leaves nothing behind.
///
/// Its name can't be guessed and is made anew, so nobody's link is followed. A file that is there keeps its mode. While it is
/// written it is locked (`flock`), so what a killed process left of the same target is known, and removed by the next one.
///
/// ```
/// use flashwright_block::Beside;
/// use std::io::Write as _;
///
/// let path = std::env::temp_dir().join(format!("beside-{}", std::process::id()));
/// let (beside, mut file) = Beside::create(&path)?;
/// file.write_all(b"all of it")?;
/// assert!(!path.exists());
/// beside.complete(&file)?;
/// assert_eq!(std::fs::read(&path)?, b"all of it");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Beside {
    target: PathBuf,
    part: PathBuf,
    is_private: bool,
}

impl Beside {
    /// Begins a file that will replace `target`; where that is a link, what it points to.
    ///
    /// # Errors
    /// Of the system; or if the path names no file, or something that is no regular file and can't be replaced.
    pub fn create(target: &Path) -> io::Result<(Self, File)> {
        let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        if target.exists() && !target.is_file() {
            return Err(io::Error::other("not a regular file; name a file to write"));
        }
        let name = target.file_name().ok_or_else(|| io::Error::other("the path names no file"))?.to_owned();
        remove_left_over(&target, &name);
        let mode = Mode::from_raw_mode(if target.exists() { PRIVATE } else { USUAL });
        for _ in 0..TRIES {
            let part = target.with_file_name(part_name(&name));
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
            let file = match open(&part, flags, mode) {
                Err(Errno::EXIST) => continue,
                opened => File::from(opened?),
            };
            // Somebody who clears up may have taken it for one that was left over, before it was locked.
            let is_ours = flock(&file, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
                && fs::symlink_metadata(&part)
                    .is_ok_and(|found| found.ino() == fstat(&file).map_or(0, |own| own.st_ino));
            if is_ours {
                return Ok((Self { target, part, is_private: false }, file));
            }
        }
        Err(io::Error::other("no temporary file could be made beside it"))
    }

    /// Lets only its owner use it, whatever the umask. A file that is there keeps its mode all the same.
    #[must_use]
    pub fn private(mut self) -> Self {
        // Where this fails, so will completing it.
        let _ = fs::set_permissions(&self.part, Permissions::from_mode(PRIVATE));
        self.is_private = true;
        self
    }

    /// Puts the file, which is written and flushed, in the place of the target.
    ///
    /// # Errors
    /// Of the system; the target is then as it was.
    pub fn complete(self, file: &File) -> io::Result<()> {
        match fs::metadata(&self.target) {
            Ok(old) => file.set_permissions(Permissions::from_mode(old.mode() & 0o777))?,
            Err(_) if self.is_private => file.set_permissions(Permissions::from_mode(PRIVATE))?,
            Err(_) => {}
        }
        file.sync_all()?;
        fs::rename(&self.part, &self.target)
    }

    /// Gives the file, which is written and synced, a name that nobody has; what is there, a link too, stays.
    ///
    /// # Errors
    /// Of the system, `AlreadyExists` among them.
    pub fn name(&self, path: &Path) -> io::Result<()> {
        fs::hard_link(&self.part, path)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // After the rename there is nothing to remove, which is not an error.
        let _ = fs::remove_file(&self.part);
    }
}

/// `.NAME.RANDOM.partial`, by the random numbers with which the system seeds hash maps.
fn part_name(name: &OsStr) -> OsString {
    let mut part = OsString::from(".");
    part.push(name);
    part.push(format!(".{:016x}{ENDING}", RandomState::new().build_hasher().finish()));
    part
}

/// Removes what killed processes left of a target: files that nobody has locked.
fn remove_left_over(target: &Path, name: &OsStr) {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(found) = fs::read_dir(folder) else { return };
    let begin = [b".", name.as_bytes(), b"."].concat();
    for path in found.flatten().map(|entry| entry.path()) {
        let is_part = path.file_name().is_some_and(|each| {
            let middle = each.as_bytes().strip_prefix(&begin[..]).and_then(|rest| rest.strip_suffix(ENDING.as_bytes()));
            middle.is_some_and(|middle| middle.len() == 16 && middle.iter().all(u8::is_ascii_hexdigit))
        });
        if !is_part {
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if let Ok(file) = open(&path, flags, Mode::empty())
            && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            // If it can't be removed it does no harm.
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("flashwright-beside-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn names(folder: &Path) -> Vec<OsString> {
        fs::read_dir(folder).unwrap().map(|each| each.unwrap().file_name()).collect()
    }

    #[test]
    fn an_old_file_stays_until_the_new_one_is_whole_and_keeps_its_mode() {
        let folder = folder("mode");
        let path = folder.join("out");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let (beside, mut file) = Beside::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600, "nobody else reads it meanwhile");
        beside.private().complete(&file).unwrap();
        assert_eq!((fs::read(&path).unwrap(), fs::metadata(&path).unwrap().mode() & 0o777), (b"new".to_vec(), 0o640));
        let (beside, file) = Beside::create(&folder.join("secret")).unwrap();
        beside.private().complete(&file).unwrap();
        assert_eq!(fs::metadata(folder.join("secret")).unwrap().mode() & 0o777, 0o600);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_written_is_not() {
        let folder = folder("left");
        let path = folder.join("out");
        let (beside, _file) = Beside::create(&path).unwrap();
        fs::write(folder.join(".out.0123456789abcdef.partial"), "left over").unwrap();
        fs::write(folder.join(".out.mine.partial"), "another's").unwrap();
        let (other, _other_file) = Beside::create(&path).unwrap();
        assert!(beside.part.exists() && other.part.exists() && beside.part != other.part);
        assert_eq!(names(&folder).len(), 3);
        drop((beside, other));
        assert_eq!(names(&folder), [".out.mine.partial"]);
        fs::remove_dir_all(folder).unwrap();
    }
}
