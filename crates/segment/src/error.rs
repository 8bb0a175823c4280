//! What can go wrong with folders and files, each as one line that says what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a folder cannot be used for segments.
#[derive(Debug)]
#[non_exhaustive]
pub enum FolderError {
    /// There is no such folder.
    Missing(PathBuf),
    /// It is a link, or no folder.
    NotAFolder(PathBuf),
    /// It belongs to somebody else.
    OfAnother {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        uid: u32,
    },
    /// Others may write to it.
    Writable(PathBuf),
    /// The system refused something.
    Io {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FolderError::Missing(path) => {
                let path = path.display();
                write!(
                    f,
                    "{path}: no such folder; a process makes it when it runs with HOLDGAP_SEGMENT_DIR={path}"
                )
            }
            FolderError::NotAFolder(path) => {
                write!(f, "{}: a link, or no folder; name a folder itself", path.display())
            }
            FolderError::OfAnother { path, uid } => {
                write!(f, "{}: belongs to user {uid}; name a folder of your own", path.display())
            }
            FolderError::Writable(path) => {
                write!(f, "{}: others may write to it; chmod it to 700", path.display())
            }
            FolderError::Io { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for FolderError {}

/// Why a segment cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum AttachError {
    /// The registry is shown in a segment already.
    Attached,
    /// The folder cannot be used.
    Folder(FolderError),
    /// The file system has no room for the segment.
    NoRoom {
        /// The folder.
        path: PathBuf,
        /// How many bytes were asked for.
        bytes: u64,
    },
    /// The system refused something.
    Io {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttachError::Attached => f.write_str("the registry has a segment already"),
            AttachError::Folder(error) => error.fmt(f),
            AttachError::NoRoom { path, bytes } => write!(
                f,
                "{}: no room for a segment of {bytes} bytes; enlarge the file system or lower \
                 max_points",
                path.display()
            ),
            AttachError::Io { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for AttachError {}

/// Why a file is not served. It harms nothing but its own rows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreadable {
    /// It ends before it should: empty, short, or cut while it was read.
    Short,
    /// It is no segment, or a damaged one.
    Corrupt(&'static str),
    /// It has another layout.
    Version(u64),
    /// It belongs to somebody else.
    OfAnother(u32),
    /// It is no regular file, or a link.
    NotAFile,
    /// The system refused to open or read it.
    Io(String),
}

impl Unreadable {
    /// One word, for a label.
    pub fn reason(&self) -> &'static str {
        match self {
            Unreadable::Short => "short",
            Unreadable::Corrupt(_) => "corrupt",
            Unreadable::Version(_) => "version",
            Unreadable::OfAnother(_) => "owner",
            Unreadable::NotAFile => "not_a_file",
            Unreadable::Io(_) => "io",
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Short => f.write_str("it ends before it should"),
            Unreadable::Corrupt(what) => write!(f, "it is no segment, or damaged: {what}"),
            Unreadable::Version(version) => write!(
                f,
                "its layout has version {version}, this reads {}; use the exporter of its release",
                holdgap::layout::VERSION
            ),
            Unreadable::OfAnother(uid) => write!(f, "it belongs to user {uid}"),
            Unreadable::NotAFile => f.write_str("it is a link, or no regular file"),
            Unreadable::Io(error) => f.write_str(error),
        }
    }
}

impl std::error::Error for Unreadable {}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Unreadable::Short,
            _ => Unreadable::Io(error.to_string()),
        }
    }
}
