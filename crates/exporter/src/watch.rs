//! Other processes: their segments, found anew at each look.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use holdgap::{Page, PointView};
use holdgap_segment::{Folder, Segment, Unreadable};

use crate::found::{Found, Process, Processes};
use crate::text::{bounded, plain};

/// The folders whose segments are served.
pub(crate) struct Watch {
    folders: Vec<Folder>,
    keep: Duration,
    complaints: Mutex<Complaints>,
}

/// What could not be read.
#[derive(Default)]
struct Complaints {
    counts: BTreeMap<&'static str, u64>,
    /// What was said already, so that it is said once.
    said: BTreeSet<(PathBuf, &'static str)>,
}

impl Watch {
    /// Opens the folders.
    pub(crate) fn open(folders: &[PathBuf], keep: Duration) -> anyhow::Result<Self> {
        let open = |path: &PathBuf| Folder::open(path).map_err(anyhow::Error::from);
        let folders = folders.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Watch { folders, keep, complaints: Mutex::default() })
    }

    /// The segments there are, each with the label of its process. Those of processes that have
    /// ended for long are removed.
    pub(crate) fn segments(&self) -> Vec<(String, Segment)> {
        let mut found = Vec::new();
        let mut unreadable = BTreeSet::new();
        for folder in &self.folders {
            // What died in the middle of making one is swept with the ended ones.
            let look = folder.sweep(self.keep).and_then(|()| folder.look());
            let look = look.unwrap_or_else(|error| {
                self.complain(folder.path().to_owned(), "folder", &error, &mut unreadable);
                Default::default()
            });
            for (name, why) in look.unreadable {
                self.complain(folder.path().join(name), why.reason(), &why, &mut unreadable);
            }
            for segment in look.segments {
                let ended = !segment.is_up() && segment.since_heartbeat() > self.keep;
                if !ended {
                    found.push(segment);
                } else if let Err(error) = folder.remove(&segment) {
                    self.complain(folder.path().to_owned(), "remove", &error, &mut unreadable);
                }
            }
        }
        // What can be read again may be complained of again.
        self.complaints().said.retain(|said| unreadable.contains(said));
        labelled(found)
    }

    /// Looks once, for the `most` worst points of each worker too.
    pub(crate) fn look(&self, most: usize) -> Found {
        let mut found = Found::default();
        let mut seen = Vec::new();
        for (label, segment) in self.segments() {
            let read = segment.look(most);
            let Some((reports, worst)) = self.readable(&segment, read) else { continue };
            let process = Some(label.as_str().into());
            found.reports.extend(reports.into_iter().map(|mut report| {
                report.process.clone_from(&process);
                report
            }));
            found.worst.push((segment.prefix().to_owned(), of_process(worst, &label)));
            seen.push(Process {
                label,
                up: segment.is_up(),
                since_heartbeat: segment.since_heartbeat(),
                not_shown: segment.not_shown(),
            });
        }
        let unreadable =
            self.complaints().counts.iter().map(|(why, count)| (*why, *count)).collect();
        found.processes = Some(Processes { seen, unreadable });
        found
    }

    /// A page of all points, the worst first.
    pub(crate) fn page(&self, offset: usize, limit: usize) -> Page {
        let mut points = Vec::new();
        for (label, segment) in self.segments() {
            let read = segment.points();
            points.extend(of_process(self.readable(&segment, read).unwrap_or_default(), &label));
        }
        points.sort_by_key(PointView::rank);
        let total = points.len();
        let points = points.into_iter().skip(offset).take(limit).collect();
        Page { total, points }
    }

    /// Whether the folders can be read.
    pub(crate) fn ready(&self) -> Result<(), String> {
        let look = |folder: &Folder| folder.look().map(drop).map_err(|error| error.to_string());
        self.folders.iter().try_for_each(look)
    }

    /// What was read of a segment; or nothing, counted, if its file was cut meanwhile.
    fn readable<T>(&self, segment: &Segment, read: Result<T, Unreadable>) -> Option<T> {
        let complain = |why: Unreadable| {
            let name = PathBuf::from(segment.file_name());
            self.complain(name, why.reason(), &why, &mut BTreeSet::new());
        };
        read.map_err(complain).ok()
    }

    /// Counts what could not be read, and says it once.
    fn complain(
        &self,
        path: PathBuf,
        reason: &'static str,
        error: &impl std::fmt::Display,
        seen: &mut BTreeSet<(PathBuf, &'static str)>,
    ) {
        let mut complaints = self.complaints();
        *complaints.counts.entry(reason).or_default() += 1;
        if complaints.said.insert((path.clone(), reason)) {
            tracing::warn!("{}: {error}", plain(&path.display().to_string()));
        }
        seen.insert((path, reason));
    }

    fn complaints(&self) -> std::sync::MutexGuard<'_, Complaints> {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Segments with the labels of their processes, each another one: name and pid, and where these are
/// not enough (pids repeat across containers) the random number of the segment.
fn labelled(segments: Vec<Segment>) -> Vec<(String, Segment)> {
    let mut counts = BTreeMap::<String, usize>::new();
    for segment in &segments {
        *counts.entry(segment.process().to_string()).or_default() += 1;
    }
    let label = |segment: Segment| {
        let process = segment.process();
        let label = process.to_string();
        let label = if counts.get(&label).is_some_and(|count| *count > 1) {
            format!("{label}:{:016x}", process.instance)
        } else {
            label
        };
        (bounded(&label), segment)
    };
    segments.into_iter().map(label).collect()
}

fn of_process(mut points: Vec<PointView>, label: &str) -> Vec<PointView> {
    points.iter_mut().for_each(|point| point.process = Some(label.into()));
    points
}
