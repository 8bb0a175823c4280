//! Show a process's hold gaps to other processes, also after it died.
//!
//! # The problem
//!
//! A reporter inside a process dies with it, at the very moment when one wants to know who held
//! compaction back. So the process publishes into a file in memory, its *segment*, and another
//! process reads it: without locks, without a request to the watched process, and also after a
//! `kill -9` or the out-of-memory killer.
//!
//! # The types, and how they meet
//!
//! - [`attach`] shows every point of a [`Registry`](holdgap::Registry) in a segment, for as long as
//!   its [`Attachment`] lives. [`attach_if_asked`] does if `HOLDGAP_SEGMENT_DIR` is set.
//! - A [`Folder`] is where segments are found. [`Folder::look`] opens each of them, and says of those
//!   that it cannot read why not.
//! - A [`Segment`] is a process as it is, or as it was at its end: reports and points, of the same
//!   types as in the process itself.
//!
//! ```
//! use holdgap::{Registry, Role};
//! use holdgap_segment::{Folder, SegmentOptions, attach};
//! use timely::progress::Antichain;
//!
//! # let path = std::env::temp_dir().join(format!("holdgap-doc-{}", std::process::id()));
//! let registry = Registry::new();
//! let mut point = registry.runtime(Role::Maintenance).worker(0).publish::<u64>("u42", "orders");
//! let attachment = attach(&registry, SegmentOptions { folder: Some(path.clone()), ..Default::default() })?;
//! point.set(&Antichain::from_elem(10), &Antichain::from_elem(4));
//!
//! // In another process:
//! let look = Folder::open(&path)?.look()?;
//! let report = &look.segments[0].reports().unwrap()[0];
//! assert_eq!((report.hold_gap, report.held), (6, 1));
//! # drop(attachment);
//! # std::fs::remove_dir(&path).unwrap();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Trade-offs
//!
//! - A publication stores some two dozen words more (for integer timestamps), and nothing else: no
//!   system call, no lock, no allocation. A point takes 1,712 bytes of the file.
//! - One thread beats: once a second it notes that the process lives, and what is pinned, which
//!   changes where nobody publishes. These, and what a worker's publishers measure at all, may be a
//!   second old.
//! - Peaks stay in the process: a reader outside cannot take them without writing.
//! - Ids, names, labels and frontiers that are no integers are cut, with a mark.
//!
//! # Unsafe
//!
//! One block, where a mapping's bytes are taken for slots, which consist of atomics alone. Reading
//! needs none: it copies by `pread`, so that a file that shrinks is an error and never a signal.

mod attach;
mod error;
mod folder;
mod format;
mod memory;
mod process;
mod segment;

pub use attach::{Attachment, SegmentOptions, attach, attach_if_asked};
pub use error::{AttachError, FolderError, Unreadable};
pub use folder::{FOLDER_VARIABLE, Folder, Look};
pub use segment::{ProcessId, Segment};
