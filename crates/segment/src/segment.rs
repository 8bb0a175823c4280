//! A segment as another process reads it.
//!
//! # The protocol
//!
//! The file is copied by `pread`: first the sequences, then the parts, then the sequences again. A
//! slot whose sequence is the same before and after was whole in between (see `holdgap::layout`: the
//! version that a sequence names is complete when the sequence can be seen, and is not written to
//! before a later sequence can be). Where it is not the same, the slot is copied anew.
//!
//! Nothing is mapped: a file that shrinks meanwhile is a short read. Nothing is believed: every
//! length and offset is checked against the file's size, and a slot that never stands still is left
//! out.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use holdgap::copies::{HEAD_WORDS, REST_WORDS, RecordCopy, TEXT_SEQUENCES, TEXT_WORDS};
use holdgap::{HoldReport, PointView, WorkerState};
use rustix::fs::{Mode, OFlags, open};

use crate::error::Unreadable;
use crate::format::{
    ENTRIES, ENTRY_WORDS, FRONT_BYTES, HEADER_WORDS, MAGIC, SIZES, SLOT, VERSION, entry,
    get_measures, get_role, get_text, header,
};
use crate::process::{Identity, lives, monotonic, own_namespace, unix};

/// How often a slot is copied anew that is written to meanwhile.
const TRIES: usize = 10_000;
/// More slots than this are no segment of ours.
const MOST_SLOTS: u64 = 1 << 24;

/// Which process a segment is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId {
    /// What it calls itself.
    pub name: String,
    /// Its pid, in its own namespace.
    pub pid: u32,
    /// A random number, which no other segment has.
    pub instance: u64,
}

impl std::fmt::Display for ProcessId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.name, self.pid)
    }
}

/// A process as its segment shows it: made by [`Folder::look`](crate::Folder::look).
///
/// What a segment says of its process is of when it was opened; its points are read when asked for.
#[derive(Debug)]
pub struct Segment {
    file: File,
    file_name: String,
    process: ProcessId,
    prefix: String,
    up: bool,
    /// On the monotonic clock.
    since_beat: Duration,
    /// On the wall clock, since 1970.
    last_beat: Duration,
    /// On the registry's clock: now, or when the process was last known to live.
    now: Duration,
    not_shown: u64,
    extents: Vec<Extent>,
}

/// What was read of a worker: each record with where it stands.
struct OfWorker<'a> {
    state: &'a WorkerState,
    records: Vec<(&'a Extent, usize, RecordCopy)>,
}

/// Slots of one worker.
#[derive(Debug)]
struct Extent {
    state: WorkerState,
    count: usize,
    offset: u64,
}

impl Segment {
    /// Reads a segment from an open file, called `file_name` here.
    ///
    /// # Errors
    ///
    /// If it is none that can be read.
    pub fn from_file(file: File, file_name: &str) -> Result<Self, Unreadable> {
        let size = file.metadata()?.len();
        // The head first: what a file of another version lacks is for that version to say.
        if size < (HEADER_WORDS * 8) as u64 {
            return Err(Unreadable::Short);
        }
        let head = &read_words(&file, 0, HEADER_WORDS)?[..];
        if head[header::MAGIC] != MAGIC {
            return Err(Unreadable::Corrupt("another beginning"));
        }
        if head[header::VERSION] != VERSION {
            return Err(Unreadable::Version(head[header::VERSION]));
        }
        if head[header::SIZES] != SIZES {
            return Err(Unreadable::Corrupt("other sizes"));
        }
        if size < FRONT_BYTES {
            return Err(Unreadable::Short);
        }
        let pid = u32::try_from(head[header::PID]).map_err(|_| Unreadable::Corrupt("no pid"))?;
        let text = |place: usize| get_text(&head[place..][..header::TEXT_WORDS]);
        let beat = Duration::from_nanos(head[header::BEAT_MONOTONIC]);
        let last_beat = Duration::from_nanos(head[header::BEAT_UNIX]);
        // A monotonic clock behind the heartbeat's is another boot's: the wall clock tells.
        let since_beat =
            monotonic().checked_sub(beat).unwrap_or_else(|| unix().saturating_sub(last_beat));
        let identity =
            Identity { pid, started: head[header::STARTED], namespace: head[header::NAMESPACE] };
        let up = lives(identity, own_namespace(), since_beat);
        let now = match head[header::ORIGIN] {
            origin if up && origin != header::UNKNOWN => {
                monotonic().saturating_sub(Duration::from_nanos(origin))
            }
            _ => Duration::from_nanos(head[header::BEAT]),
        };
        Ok(Segment {
            file_name: file_name.to_owned(),
            process: ProcessId { name: text(header::NAME), pid, instance: head[header::INSTANCE] },
            prefix: text(header::PREFIX),
            up,
            since_beat,
            last_beat,
            now,
            not_shown: head[header::NOT_SHOWN],
            extents: extents(head, &file, size)?,
            file,
        })
    }

    /// Opens a segment's file wherever it lies: one that was copied away, for instance.
    ///
    /// # Errors
    ///
    /// If it is no regular file, or none that can be read.
    pub fn open_file(path: &Path) -> Result<Self, Unreadable> {
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::empty()).map_err(std::io::Error::from)?;
        let file = File::from(file);
        if !file.metadata()?.is_file() {
            return Err(Unreadable::NotAFile);
        }
        Segment::from_file(file, &name)
    }

    /// Which process it is of.
    pub fn process(&self) -> &ProcessId {
        &self.process
    }

    /// The name of its file.
    pub fn file_name(&self) -> &str {
        &self.file_name
    }

    /// Whether the process lives.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// How long ago the process last said that it lives. It does so once a second.
    pub fn since_heartbeat(&self) -> Duration {
        self.since_beat
    }

    /// When the process last said that it lives: since 1970, on its wall clock.
    pub fn last_heartbeat(&self) -> Duration {
        self.last_beat
    }

    /// How many points the segment had no room for at the last heartbeat.
    pub fn not_shown(&self) -> u64 {
        self.not_shown
    }

    /// What the process puts before the names of its series.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// One report for each (role, worker) that has points, in the order in which they came.
    ///
    /// # Errors
    ///
    /// If the file has been cut since it was opened.
    pub fn reports(&self) -> Result<Vec<HoldReport>, Unreadable> {
        Ok(self.look(0)?.0)
    }

    /// The reports, and the `most` worst points of each worker: of one reading of the file's
    /// records, as [`Scraper::look`](holdgap::Scraper::look) has them.
    ///
    /// # Errors
    ///
    /// If the file has been cut since it was opened.
    pub fn look(&self, most: usize) -> Result<(Vec<HoldReport>, Vec<PointView>), Unreadable> {
        let mut workers: Vec<OfWorker<'_>> = Vec::new();
        for extent in &self.extents {
            let records = self.records(extent)?;
            let known = workers.iter().position(|known| {
                (&known.state.role, known.state.worker) == (&extent.state.role, extent.state.worker)
            });
            let known = known.unwrap_or_else(|| {
                workers.push(OfWorker { state: &extent.state, records: Vec::new() });
                workers.len() - 1
            });
            let records = records.into_iter().enumerate();
            workers[known].records.extend(records.map(|(place, record)| (extent, place, record)));
        }
        let (mut reports, mut points) = (Vec::new(), Vec::new());
        for OfWorker { state, records } in workers {
            let copies = records.iter().map(|(_, _, record)| *record);
            let mut report = HoldReport::of_copies(state, &self.prefix, self.now, copies);
            report.process = Some(self.process.to_string().into());
            reports.push(report);
            if most == 0 {
                continue;
            }
            let mut live: Vec<_> =
                records.iter().filter(|(_, _, record)| record.is_live()).collect();
            live.sort_by_key(|(_, _, record)| record.rank());
            for (extent, place, _) in live.into_iter().take(most) {
                points.extend(self.view(extent, *place)?);
            }
        }
        Ok((reports, points))
    }

    /// All its points, the worst first, as [`Registry::page`](holdgap::Registry::page) has them.
    ///
    /// # Errors
    ///
    /// If the file has been cut since it was opened.
    pub fn points(&self) -> Result<Vec<PointView>, Unreadable> {
        let mut points = Vec::new();
        for extent in &self.extents {
            for (place, record) in self.records(extent)?.iter().enumerate() {
                if record.is_live()
                    && let Some(view) = self.view(extent, place)?
                {
                    points.push(view);
                }
            }
        }
        points.sort_by_key(PointView::rank);
        Ok(points)
    }

    /// How many points it shows.
    ///
    /// # Errors
    ///
    /// If the file has been cut since it was opened.
    pub fn count(&self) -> Result<u64, Unreadable> {
        let reports = self.reports()?;
        Ok(reports.iter().map(|report| report.published + report.frozen).sum())
    }

    /// Copies of an extent's records, slot by slot. One that never stands still is left out, as not
    /// live.
    fn records(&self, extent: &Extent) -> Result<Vec<RecordCopy>, Unreadable> {
        let heads =
            |segment: &Self| read_words(&segment.file, extent.offset, extent.count * HEAD_WORDS);
        let before = heads(self)?;
        let whole = heads(self)?;
        let rests = read_words(&self.file, extent.rest(0), extent.count * REST_WORDS)?;
        let after = heads(self)?;
        let mut records = Vec::with_capacity(extent.count);
        for place in 0..extent.count {
            let head = part::<HEAD_WORDS>(&whole, place);
            let at = |heads: &[u64]| RecordCopy::sequence(&part(heads, place));
            let record = if at(&before) == at(&after) {
                RecordCopy::of(&head, &part(&rests, place))
            } else {
                match self.copy(extent, place, false)? {
                    Some((record, _)) => record,
                    None => RecordCopy::of(&[0; HEAD_WORDS], &[0; REST_WORDS]),
                }
            };
            records.push(record);
        }
        Ok(records)
    }

    fn view(&self, extent: &Extent, place: usize) -> Result<Option<PointView>, Unreadable> {
        let Some((record, text)) = self.copy(extent, place, true)? else { return Ok(None) };
        if !record.is_live() {
            return Ok(None);
        }
        let WorkerState { role, worker, measures, .. } = &extent.state;
        let mut view = record.view(&text, self.now);
        view.process = Some(self.process.to_string().into());
        (view.role, view.worker) = (role.clone(), *worker);
        view.pins = view.pins.filter(|_| measures.pins);
        view.queued = view.queued.filter(|_| measures.queues);
        Ok(Some(view))
    }

    /// A whole copy of one slot; of its text only if it is wanted.
    fn copy(
        &self,
        extent: &Extent,
        place: usize,
        text: bool,
    ) -> Result<Option<(RecordCopy, [u64; TEXT_WORDS])>, Unreadable> {
        let read = |at, count| read_words(&self.file, at, count);
        let sequences = || -> Result<(u64, Vec<u64>), Unreadable> {
            let head = read(extent.head(place), 1)?[0];
            let texts = if text { read(extent.text(place), TEXT_SEQUENCES)? } else { Vec::new() };
            Ok((head, texts))
        };
        for _ in 0..TRIES {
            let before = sequences()?;
            let head = read(extent.head(place), HEAD_WORDS)?;
            let rest = read(extent.rest(place), REST_WORDS)?;
            let words = if text { read(extent.text(place), TEXT_WORDS)? } else { Vec::new() };
            if before == sequences()? {
                let record = RecordCopy::of(&part(&head, 0), &part(&rest, 0));
                let words = if text { part(&words, 0) } else { [0; TEXT_WORDS] };
                return Ok(Some((record, words)));
            }
        }
        Ok(None)
    }
}

impl Extent {
    fn head(&self, place: usize) -> u64 {
        self.offset + (place * HEAD_WORDS * 8) as u64
    }

    fn rest(&self, place: usize) -> u64 {
        self.head(self.count) + (place * REST_WORDS * 8) as u64
    }

    fn text(&self, place: usize) -> u64 {
        self.rest(self.count) + (place * TEXT_WORDS * 8) as u64
    }
}

/// The directory's entries, as far as they can be true of a file of `size` bytes.
fn extents(head: &[u64], file: &File, size: u64) -> Result<Vec<Extent>, Unreadable> {
    let count = usize::try_from(head[header::EXTENTS]).unwrap_or(usize::MAX);
    if count > ENTRIES {
        return Err(Unreadable::Corrupt("too many extents"));
    }
    let directory = read_words(file, (HEADER_WORDS * 8) as u64, count * ENTRY_WORDS)?;
    let (mut extents, mut slots) = (Vec::new(), 0_u64);
    for words in directory.chunks_exact(ENTRY_WORDS) {
        let (count, offset) = (words[entry::COUNT], words[entry::OFFSET]);
        let bytes = count.checked_mul(SLOT).and_then(|bytes| bytes.checked_add(offset));
        let Some(end) = bytes.filter(|_| offset >= FRONT_BYTES && offset.is_multiple_of(8)) else {
            return Err(Unreadable::Corrupt("an extent where none can be"));
        };
        slots = slots.saturating_add(count);
        if slots > MOST_SLOTS {
            return Err(Unreadable::Corrupt("too many slots"));
        }
        if end > size {
            return Err(Unreadable::Short);
        }
        let mut state = WorkerState::default();
        state.role = get_role(words).ok_or(Unreadable::Corrupt("no role"))?;
        let worker = usize::try_from(words[entry::WORKER]);
        state.worker = worker.map_err(|_| Unreadable::Corrupt("no worker"))?;
        state.measures = get_measures(words[entry::MEASURES]);
        state.invalid_pairs = words[entry::INVALID_PAIRS];
        let count = usize::try_from(count).map_err(|_| Unreadable::Corrupt("too many slots"))?;
        extents.push(Extent { state, count, offset });
    }
    Ok(extents)
}

fn read_words(file: &File, at: u64, count: usize) -> Result<Vec<u64>, Unreadable> {
    let mut bytes = vec![0; count * 8];
    file.read_exact_at(&mut bytes, at)?;
    let word = |chunk: &[u8]| chunk.try_into().map_or(0, u64::from_ne_bytes);
    Ok(bytes.chunks_exact(8).map(word).collect())
}

/// The words of one slot, in a copy of several.
fn part<const N: usize>(words: &[u64], place: usize) -> [u64; N] {
    let first = place * N;
    std::array::from_fn(|i| words.get(first + i).copied().unwrap_or(0))
}
