//! How it stands and how it went for the last ten minutes, for people: made once a second.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use holdgap::PointView;
use serde::{Deserialize, Serialize};

use crate::found::Found;
use crate::pages::Point;
use crate::text::bounded;

/// How many buckets a history has, and how long each is: ten minutes in all.
const BUCKETS: usize = 60;
const BUCKET: Duration = Duration::from_secs(10);

/// What the status page and the terminal view show.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Milliseconds since 1970.
    pub(crate) at: u64,
    /// How many live points there are, and how many of them are held.
    pub(crate) published: u64,
    pub(crate) held: u64,
    pub(crate) frozen: u64,
    /// The largest gap over the live points, in timestamp units.
    pub(crate) gap: u64,
    /// Whether other processes are watched.
    pub(crate) attached: bool,
    pub(crate) processes: Vec<Process>,
    /// How often a file could not be read.
    pub(crate) unreadable: u64,
    /// The peak of the gap for each role, bucket by bucket, the latest last.
    pub(crate) roles: Vec<Role>,
    /// The worst points of each worker, the worst first.
    pub(crate) worst: Vec<Shown>,
    /// How many of each worker these are at most.
    pub(crate) most: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) label: String,
    pub(crate) up: bool,
    pub(crate) heartbeat_age_seconds: f64,
    pub(crate) not_shown: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Role {
    pub(crate) role: String,
    pub(crate) peaks: Vec<u64>,
}

/// A point, and its gap for the last ten minutes, bucket by bucket.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Shown {
    #[serde(flatten)]
    pub(crate) point: Point,
    pub(crate) history: Vec<u64>,
}

/// Which point a history is of.
type PointKey = (Option<String>, String, usize, String);

/// What was seen in the last ten minutes.
pub(crate) struct History {
    began: Instant,
    points: BTreeMap<PointKey, Ring>,
    roles: BTreeMap<String, Ring>,
}

/// The largest value in each of the latest buckets.
#[derive(Default)]
struct Ring {
    /// The number of the last bucket since the history began.
    last: u64,
    values: VecDeque<u64>,
}

impl Ring {
    fn note(&mut self, bucket: u64, value: u64) {
        if self.values.is_empty() {
            self.last = bucket;
            self.values.push_back(0);
        }
        while self.last < bucket {
            self.last += 1;
            self.values.push_back(0);
            if self.values.len() > BUCKETS {
                self.values.pop_front();
            }
            if self.values.iter().all(|value| *value == 0) {
                self.last = bucket;
            }
        }
        if let Some(latest) = self.values.back_mut() {
            *latest = (*latest).max(value);
        }
    }

    /// The values up to `bucket`, zeros before the first.
    fn up_to(&self, bucket: u64) -> Vec<u64> {
        let after = usize::try_from(bucket.saturating_sub(self.last)).unwrap_or(BUCKETS);
        let mut values = vec![0; BUCKETS];
        for (place, value) in self.values.iter().rev().enumerate() {
            let Some(place) = (BUCKETS - 1).checked_sub(place.saturating_add(after)) else { break };
            values[place] = *value;
        }
        values
    }

    fn is_over(&self, bucket: u64) -> bool {
        bucket.saturating_sub(self.last) >= BUCKETS as u64
    }
}

impl History {
    pub(crate) fn new() -> Self {
        History { began: Instant::now(), points: BTreeMap::new(), roles: BTreeMap::new() }
    }

    /// Takes in what was found now, for the `most` worst of each worker, and says how it stands.
    pub(crate) fn take(&mut self, found: Found, most: usize) -> Status {
        let now = self.began.elapsed();
        self.take_at(now, found, most)
    }

    fn take_at(&mut self, now: Duration, found: Found, most: usize) -> Status {
        let bucket = (now.as_nanos() / BUCKET.as_nanos()) as u64;
        let mut status = Status {
            at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
            attached: found.processes.is_some(),
            most,
            ..Status::default()
        };
        for report in &found.reports {
            status.published = status.published.saturating_add(report.published);
            status.held = status.held.saturating_add(report.held);
            status.frozen = status.frozen.saturating_add(report.frozen);
            status.gap = status.gap.max(report.hold_gap);
            // Where nobody counts peaks, what stands now.
            let peak = report.hold_gap_peak.unwrap_or(report.hold_gap);
            let role = bounded(&report.role.to_string());
            self.roles.entry(role).or_default().note(bucket, peak);
        }
        self.roles.retain(|_, ring| !ring.is_over(bucket));
        let ring =
            |(role, ring): (&String, &Ring)| Role { role: role.clone(), peaks: ring.up_to(bucket) };
        status.roles = self.roles.iter().map(ring).collect();

        if let Some(processes) = found.processes {
            status.unreadable = processes.unreadable.iter().map(|(_, count)| *count).sum();
            let process = |process: crate::found::Process| Process {
                label: process.label,
                up: process.up,
                heartbeat_age_seconds: process.since_heartbeat.as_secs_f64(),
                not_shown: process.not_shown,
            };
            status.processes = processes.seen.into_iter().map(process).collect();
        }

        let mut worst: Vec<_> = found.worst.into_iter().flat_map(|(_, points)| points).collect();
        worst.sort_by_key(PointView::rank);
        let shown = |view: PointView| {
            let gap = if view.frozen { 0 } else { view.gap.distance };
            let point = Point::of(view);
            let key = (point.process.clone(), point.role.clone(), point.worker, point.id.clone());
            let ring = self.points.entry(key).or_default();
            ring.note(bucket, gap);
            Shown { history: ring.up_to(bucket), point }
        };
        status.worst = worst.into_iter().map(shown).collect();
        self.points.retain(|_, ring| !ring.is_over(bucket));
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(bucket: u64) -> Duration {
        BUCKET * u32::try_from(bucket).unwrap()
    }

    fn found(gap: Option<u64>) -> Found {
        let mut view = PointView::default();
        view.ids = vec!["u42".into()];
        if let Some(gap) = gap {
            view.gap = holdgap::HoldGap { held: true, distance: gap };
        }
        Found { worst: vec![(String::new(), vec![view])], ..Found::default() }
    }

    #[test]
    fn a_history_has_the_largest_of_each_bucket_and_forgets_after_ten_minutes() {
        let mut history = History::new();
        for (bucket, gap) in [(0, 3), (0, 9), (0, 1), (2, 5)] {
            history.take_at(at(bucket), found(Some(gap)), 10);
        }
        let status = history.take_at(at(3), found(None), 10);
        assert_eq!(status.worst[0].history[BUCKETS - 4..], [9, 0, 5, 0]);
        assert_eq!(status.worst[0].history.len(), BUCKETS);
        let status = history.take_at(at(62), found(Some(1)), 10);
        assert_eq!(status.worst[0].history[0], 0);
        assert_eq!(status.worst[0].history.iter().filter(|gap| **gap > 0).count(), 1);
        history.take_at(at(200), Found::default(), 10);
        assert!(history.points.is_empty(), "who is not seen any more is forgotten");
    }

    #[test]
    fn what_goes_over_the_wire_comes_back() {
        let status = History::new().take_at(at(0), found(Some(4)), 10);
        let text = serde_json::to_string(&status).unwrap();
        let back: Status = serde_json::from_str(&text).unwrap();
        assert_eq!(back.worst[0].point.gap, 4);
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
    }
}
