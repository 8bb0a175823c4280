//! The folder of segments: a user's own, and no link.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fstat, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::error::{FolderError, Unreadable};
use crate::process::unix;
use crate::segment::Segment;

/// The environment variable that names the folder.
pub const FOLDER_VARIABLE: &str = "HOLDGAP_SEGMENT_DIR";

/// How the names of segments end, and those of segments that are being made.
const SEGMENT: &str = ".holdgap";
const MAKING: &str = ".making";

/// Where segments are found: those of processes that live, and of those that have ended.
///
/// ```
/// use holdgap_segment::Folder;
///
/// # let path = std::env::temp_dir().join(format!("holdgap-folder-{}", std::process::id()));
/// # std::fs::DirBuilder::new().create(&path)?;
/// let look = Folder::open(&path)?.look()?;
/// for segment in &look.segments {
///     let state = if segment.is_up() { "lives" } else { "has ended" };
///     println!("{} {state}: {} points", segment.process(), segment.count()?);
/// }
/// for (file, why) in &look.unreadable {
///     println!("{file}: {why}");
/// }
/// # std::fs::remove_dir(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    folder: OwnedFd,
}

/// What a look into a folder found.
#[derive(Debug, Default)]
pub struct Look {
    /// The segments that can be read, in the order of their names.
    pub segments: Vec<Segment>,
    /// Those that cannot, by name, and why.
    pub unreadable: Vec<(String, Unreadable)>,
}

impl Folder {
    /// The folder that is used if none is named: `HOLDGAP_SEGMENT_DIR`, else `holdgap` in
    /// `XDG_RUNTIME_DIR`, else `/dev/shm/holdgap-` and the user's number.
    pub fn default_path() -> PathBuf {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(named) = variable(FOLDER_VARIABLE) {
            return named.into();
        }
        match variable("XDG_RUNTIME_DIR") {
            Some(runtime) => Path::new(&runtime).join("holdgap"),
            None => format!("/dev/shm/holdgap-{}", geteuid().as_raw()).into(),
        }
    }

    /// Opens a folder that is there.
    ///
    /// # Errors
    ///
    /// If it is not there, is a link, belongs to somebody else, or if others may write to it.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, FolderError> {
        let path = path.into();
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = match openat(CWD, &path, flags | OFlags::RDONLY, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Err(FolderError::Missing(path)),
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(FolderError::NotAFolder(path)),
            Err(error) => return Err(FolderError::Io { path, error: error.into() }),
        };
        let stat = match fstat(&folder) {
            Ok(stat) => stat,
            Err(error) => return Err(FolderError::Io { path, error: error.into() }),
        };
        if stat.st_uid != geteuid().as_raw() {
            return Err(FolderError::OfAnother { path, uid: stat.st_uid });
        }
        if stat.st_mode & 0o022 != 0 {
            return Err(FolderError::Writable(path));
        }
        Ok(Folder { path, folder })
    }

    /// Opens a folder, and makes it first if it is not there.
    pub(crate) fn open_or_make(path: PathBuf) -> Result<Self, FolderError> {
        match mkdirat(CWD, &path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Folder::open(path),
            Err(error) => Err(FolderError::Io { path, error: error.into() }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it lies in memory, so that writing to it never waits for a disk.
    pub(crate) fn is_in_memory(&self) -> bool {
        const TMPFS: u64 = 0x0102_1994;
        const RAMFS: u64 = 0x8584_58f6;
        rustix::fs::fstatfs(&self.folder)
            .is_ok_and(|stat| matches!(stat.f_type as u64, TMPFS | RAMFS))
    }

    /// Opens every segment in it.
    ///
    /// A file that cannot be read harms nothing but its own rows.
    ///
    /// # Errors
    ///
    /// If the folder itself cannot be read any more.
    pub fn look(&self) -> Result<Look, FolderError> {
        let mut look = Look::default();
        for name in self.names(SEGMENT)? {
            match self.segment(&name) {
                Ok(segment) => look.segments.push(segment),
                // Its process, or another exporter, has just removed it.
                Err(Unreadable::Io(error)) if error == Errno::NOENT.to_string() => {}
                Err(unreadable) => look.unreadable.push((name, unreadable)),
            }
        }
        Ok(look)
    }

    /// Removes a segment's file.
    ///
    /// # Errors
    ///
    /// If the system refuses. That it is gone already is no error.
    pub fn remove(&self, segment: &Segment) -> Result<(), FolderError> {
        self.unlink(segment.file_name())
    }

    /// Removes files that nobody finished making, if they are older than `keep`: a process died in
    /// the middle of it.
    ///
    /// # Errors
    ///
    /// If the folder itself cannot be read any more.
    pub fn sweep(&self, keep: Duration) -> Result<(), FolderError> {
        for name in self.names(MAKING)? {
            let Ok(stat) = rustix::fs::statat(&self.folder, &*name, AtFlags::SYMLINK_NOFOLLOW)
            else {
                continue;
            };
            let made = Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0));
            if unix().saturating_sub(made) > keep {
                self.unlink(&name)?;
            }
        }
        Ok(())
    }

    /// The file of a name, made anew under a name that nobody looks at.
    pub(crate) fn make(&self, name: &str) -> std::io::Result<OwnedFd> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = format!("{name}{MAKING}");
        Ok(openat(&self.folder, name, flags | OFlags::RDWR, Mode::RUSR | Mode::WUSR)?)
    }

    /// Gives a file that was made its name.
    pub(crate) fn finish(&self, name: &str) -> std::io::Result<()> {
        let (from, to) = (format!("{name}{MAKING}"), format!("{name}{SEGMENT}"));
        Ok(renameat(&self.folder, from, &self.folder, to)?)
    }

    /// Forgets a file, finished or not.
    pub(crate) fn forget(&self, name: &str) {
        for ending in [MAKING, SEGMENT] {
            // One of the two is not there.
            let _ = self.unlink(&format!("{name}{ending}"));
        }
    }

    fn unlink(&self, name: &str) -> Result<(), FolderError> {
        match unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.io(error)),
        }
    }

    fn segment(&self, name: &str) -> Result<Segment, Unreadable> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::LOOP) => return Err(Unreadable::NotAFile),
            Err(error) => return Err(Unreadable::Io(error.to_string())),
        };
        let stat = fstat(&file).map_err(std::io::Error::from)?;
        if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() {
            return Err(Unreadable::NotAFile);
        }
        if stat.st_uid != geteuid().as_raw() {
            return Err(Unreadable::OfAnother(stat.st_uid));
        }
        Segment::from_file(File::from(file), name)
    }

    /// The names in the folder with an ending, in order.
    fn names(&self, ending: &str) -> Result<Vec<String>, FolderError> {
        let mut names = Vec::new();
        let entries = Dir::read_from(self.folder.as_fd()).map_err(|error| self.io(error))?;
        for entry in entries {
            let entry = entry.map_err(|error| self.io(error))?;
            if let Ok(name) = entry.file_name().to_owned().into_string()
                && name.ends_with(ending)
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn io(&self, error: Errno) -> FolderError {
        FolderError::Io { path: self.path.clone(), error: error.into() }
    }
}
