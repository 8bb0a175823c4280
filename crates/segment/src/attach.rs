//! Showing a registry in a segment.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use holdgap::{Clock, Registry, WorkerState};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::AttachError;
use crate::folder::{FOLDER_VARIABLE, Folder};
use crate::format::{
    FRONT_BYTES, MAGIC, SIZES, VERSION, entry, header, put_measures, put_role, put_text,
};
use crate::memory::Growing;
use crate::process::{Identity, monotonic, nanoseconds, unix};

/// How often a segment says that its process lives.
const BEAT: Duration = Duration::from_secs(1);

/// How a registry is shown.
#[derive(Clone, Debug)]
pub struct SegmentOptions {
    /// The folder; by default [`Folder::default_path`]. Made, for the user alone, if it is not there.
    pub folder: Option<PathBuf>,
    /// What the process is called; by default the name of its program. At most 64 bytes are shown.
    pub name: Option<String>,
    /// How many slots for points the segment may have, 1,712 bytes each; 65,536 by default. They
    /// are taken as points come, in groups that grow with each worker.
    pub max_points: u64,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        SegmentOptions { folder: None, name: None, max_points: 65_536 }
    }
}

/// A segment that a registry is shown in: made by [`attach`].
///
/// Dropping it ends the heartbeat and removes the file: the process ended well, and nobody need ask
/// how. A process that is killed leaves the file behind.
#[derive(Debug)]
pub struct Attachment {
    folder: Folder,
    name: String,
    stop: Option<Sender<()>>,
    heart: Option<JoinHandle<()>>,
}

impl Attachment {
    /// Where the folder is that the segment lies in.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// What the operator should know: that the folder is not in memory, so that a publication may
    /// wait for a disk.
    pub fn warning(&self) -> Option<String> {
        (!self.folder.is_in_memory()).then(|| {
            format!(
                "{}: not in memory (tmpfs); a publication may wait for the disk",
                self.folder.path().display()
            )
        })
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(heart) = self.heart.take() {
            // It does nothing that panics, and is at an end either way.
            let _ = heart.join();
        }
        self.folder.forget(&self.name);
    }
}

/// Shows every point of `registry` in a segment, those that are there and those to come.
///
/// Starts one thread, which beats once a second. See [`Registry::mirror`] for what it costs those who
/// publish.
///
/// # Errors
///
/// If the registry is shown already, the folder cannot be used, or its file system has no room: the
/// segment's memory is allocated before it is written to, so that a full file system is an error
/// here, and points that are not shown later, but never a signal.
pub fn attach(registry: &Registry, options: SegmentOptions) -> Result<Attachment, AttachError> {
    let path = options.folder.unwrap_or_else(Folder::default_path);
    let folder = Folder::open_or_make(path).map_err(AttachError::Folder)?;
    let failed = |error: std::io::Error| {
        let path = folder.path().to_owned();
        if error.raw_os_error() == Some(Errno::NOSPC.raw_os_error()) {
            AttachError::NoRoom { path, bytes: FRONT_BYTES }
        } else {
            AttachError::Io { path, error }
        }
    };
    let identity = Identity::own();
    let mut instance = [0; 8];
    getrandom(&mut instance, GetRandomFlags::empty()).map_err(|e| failed(e.into()))?;
    let instance = u64::from_ne_bytes(instance);
    let name = format!("{}-{instance:016x}", identity.pid);
    let made = folder.make(&name).and_then(|file| {
        let memory = Growing::new(file, options.max_points)?;
        let program = options.name.unwrap_or_else(program);
        describe(&memory, registry, identity, instance, &program);
        folder.finish(&name)?;
        Ok(memory)
    });
    let memory = made.map_err(|error| {
        folder.forget(&name);
        failed(error)
    })?;
    if !registry.mirror(Arc::<Growing>::clone(&memory)) {
        folder.forget(&name);
        return Err(AttachError::Attached);
    }
    let (stop, stopped) = channel();
    let beating = registry.clone();
    beat(&memory, &beating);
    let heart = std::thread::Builder::new().name("holdgap-segment".to_owned()).spawn(move || {
        while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
            beat(&memory, &beating);
        }
    });
    match heart {
        Ok(heart) => Ok(Attachment { folder, name, stop: Some(stop), heart: Some(heart) }),
        Err(error) => {
            folder.forget(&name);
            Err(failed(error))
        }
    }
}

/// [`attach`]es with default options if `HOLDGAP_SEGMENT_DIR` is set: one line in `main` that does
/// nothing unless it is asked for.
///
/// # Errors
///
/// As [`attach`].
pub fn attach_if_asked(registry: &Registry) -> Result<Option<Attachment>, AttachError> {
    match std::env::var_os(FOLDER_VARIABLE).filter(|value| !value.is_empty()) {
        Some(_) => attach(registry, SegmentOptions::default()).map(Some),
        None => Ok(None),
    }
}

fn program() -> String {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(|program| program.file_name());
    name.map_or_else(|| "unnamed".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Writes what stands in the header for good.
fn describe(memory: &Growing, registry: &Registry, id: Identity, instance: u64, name: &str) {
    let words = memory.header();
    let clock = &registry.options().clock;
    for (place, value) in [
        (header::MAGIC, MAGIC),
        (header::VERSION, VERSION),
        (header::SIZES, SIZES),
        (header::PID, id.pid.into()),
        (header::STARTED, id.started),
        (header::NAMESPACE, id.namespace),
        (header::INSTANCE, instance),
        (header::ORIGIN, origin(clock)),
    ] {
        words[place].store(value, Ordering::Relaxed);
    }
    put_text(&words[header::NAME..][..header::TEXT_WORDS], name);
    put_text(&words[header::PREFIX..][..header::TEXT_WORDS], &registry.options().prefix);
    stamp(memory, clock);
}

/// The monotonic clock when the registry's was zero.
fn origin(clock: &Clock) -> u64 {
    match clock.beginning() {
        Some(beginning) => nanoseconds(monotonic().saturating_sub(beginning.elapsed())),
        None => header::UNKNOWN,
    }
}

/// Notes that the process lives.
fn stamp(memory: &Growing, clock: &Clock) {
    let words = memory.header();
    words[header::BEAT].store(nanoseconds(clock.now()), Ordering::Relaxed);
    words[header::BEAT_MONOTONIC].store(nanoseconds(monotonic()), Ordering::Relaxed);
    words[header::BEAT_UNIX].store(nanoseconds(unix()), Ordering::Relaxed);
}

/// Notes what nobody publishes: that the process lives, what is pinned, what is measured.
fn beat(memory: &Growing, registry: &Registry) {
    let states = registry.refresh_mirror();
    let not_shown: u64 = states.iter().map(|state| state.not_shown).sum();
    memory.header()[header::NOT_SHOWN].store(not_shown, Ordering::Relaxed);
    for words in memory.entries() {
        if let Some(state) = states.iter().find(|state| is_of(words, state)) {
            let measures = put_measures(state.measures);
            words[entry::MEASURES].store(measures, Ordering::Relaxed);
            words[entry::INVALID_PAIRS].store(state.invalid_pairs, Ordering::Relaxed);
        }
    }
    stamp(memory, &registry.options().clock);
}

fn is_of(words: &[std::sync::atomic::AtomicU64], state: &WorkerState) -> bool {
    let same = |place: usize, other: &[std::sync::atomic::AtomicU64]| {
        words[place].load(Ordering::Relaxed) == other[place].load(Ordering::Relaxed)
    };
    let role: [std::sync::atomic::AtomicU64; crate::format::ENTRY_WORDS] = Default::default();
    put_role(&role, &state.role);
    let named = (entry::ROLE..crate::format::ENTRY_WORDS).all(|place| same(place, &role));
    named && words[entry::WORKER].load(Ordering::Relaxed) == state.worker as u64
}
