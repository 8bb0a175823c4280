//! `/api/v1/report`: every point as JSON, a page at a time.

use std::time::Duration;

use holdgap::{HolderView, Page, PointView};
use serde::{Deserialize, Serialize};

use crate::text::bounded;

/// Which page is asked for.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Asked {
    offset: usize,
    limit: usize,
}

impl Default for Asked {
    fn default() -> Self {
        Asked { offset: 0, limit: 100 }
    }
}

impl Asked {
    /// The offset and the limit, if they are such as can be served.
    pub(crate) fn checked(self) -> Option<(usize, usize)> {
        (1..=1_000).contains(&self.limit).then_some((self.offset, self.limit))
    }
}

/// A page of points, the worst first.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    points: Vec<Point>,
    /// How many points there are in all.
    total: usize,
    offset: usize,
    limit: usize,
    /// Where the next page is, if there is one.
    next: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Point {
    /// The process, where several are watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) process: Option<String>,
    pub(crate) id: String,
    /// Every id, after a re-export several.
    pub(crate) ids: Vec<String>,
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) worker: usize,
    pub(crate) frozen: bool,
    pub(crate) requested: String,
    pub(crate) applied: String,
    pub(crate) upper: Option<String>,
    pub(crate) held: bool,
    pub(crate) gap: u64,
    /// For how long it has been held where it stands.
    pub(crate) stalled_seconds: Option<f64>,
    pub(crate) physical: Option<Physical>,
    pub(crate) lag: Option<u64>,
    pub(crate) slack: Option<u64>,
    pub(crate) pinned: Option<Pinned>,
    pub(crate) queued: Option<Queued>,
    pub(crate) holders: Vec<Holder>,
    pub(crate) more_holders: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Physical {
    pub(crate) requested: String,
    pub(crate) applied: String,
    pub(crate) held: bool,
    pub(crate) gap: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pinned {
    pub(crate) batches: u64,
    pub(crate) updates: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Queued {
    pub(crate) instructions: u64,
    pub(crate) batches: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Holder {
    pub(crate) kind: String,
    pub(crate) label: String,
    pub(crate) age_seconds: f64,
}

impl Report {
    /// The page that was asked for under `path`.
    pub(crate) fn of(page: Page, offset: usize, limit: usize, path: &str) -> Self {
        let Page { total, points } = page;
        let after = offset.saturating_add(limit);
        let next = (after < total).then(|| format!("{path}?offset={after}&limit={limit}"));
        Report { points: points.into_iter().map(Point::of).collect(), total, offset, limit, next }
    }
}

impl Point {
    pub(crate) fn of(view: PointView) -> Self {
        let frontier = |text: Option<String>| text.map(|text| bounded(&text));
        let physical = frontier(view.physical_requested).zip(frontier(view.physical_applied));
        let gap = view.physical_gap;
        Point {
            process: view.process.as_deref().map(bounded),
            id: view.ids.first().map(|id| bounded(id)).unwrap_or_default(),
            ids: view.ids.iter().map(|id| bounded(id)).collect(),
            name: bounded(&view.name),
            role: bounded(&view.role.to_string()),
            worker: view.worker,
            frozen: view.frozen,
            requested: bounded(&view.requested),
            applied: bounded(&view.applied),
            upper: frontier(view.upper),
            held: view.gap.held,
            gap: view.gap.distance,
            stalled_seconds: view.stalled.as_ref().map(Duration::as_secs_f64),
            physical: physical.map(|(requested, applied)| Physical {
                requested,
                applied,
                held: gap.held,
                gap: gap.distance,
            }),
            lag: view.lag,
            slack: view.slack,
            pinned: view.pins.map(|pins| Pinned { batches: pins.batches, updates: pins.updates }),
            queued: view.queued.map(|queued| Queued {
                instructions: queued.instructions,
                batches: queued.batches,
            }),
            holders: view.holders.iter().map(Holder::of).collect(),
            more_holders: view.more_holders,
        }
    }
}

impl Holder {
    fn of(view: &HolderView) -> Self {
        let (kind, label) = (view.kind.label().to_owned(), bounded(&view.label));
        Holder { kind, label, age_seconds: view.age.as_secs_f64() }
    }
}
