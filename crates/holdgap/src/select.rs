//! Points for people: the worst first, a page at a time.

use std::cmp::Reverse;

use crate::record::{Flags, Numbers};
use crate::shared::WorkerShared;
use crate::sync::Arc;
use crate::view::PointView;

/// Some of a registry's points: see [`Registry::page`](crate::Registry::page).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// How many points there are in all, live and frozen.
    pub total: usize,
    /// Those of this page, the worst first.
    pub points: Vec<PointView>,
}

/// The points of `workers`, the worst first: `limit` of them after the first `offset`.
pub(crate) fn select<'a>(
    workers: impl IntoIterator<Item = &'a Arc<WorkerShared>>,
    offset: usize,
    limit: usize,
) -> Page {
    let workers: Vec<_> = workers.into_iter().collect();
    let mut found = Vec::new();
    for (place, worker) in workers.iter().enumerate() {
        worker.table.scan_live(|slot, numbers, _| found.push((place, slot, numbers)));
    }
    let total = found.len();
    let order =
        |&(place, slot, numbers): &(usize, usize, Numbers)| (worst_first(numbers), place, slot);
    let end = offset.saturating_add(limit).min(total);
    if end < total {
        found.select_nth_unstable_by_key(end, order);
        found.truncate(end);
    }
    found.sort_unstable_by_key(order);
    let page = found.get(offset..).unwrap_or_default();
    let view = |&(place, slot, numbers): &(usize, usize, Numbers)| {
        let worker = workers.get(place)?;
        let (numbers, details) = worker.table.details(&[(slot, numbers)]).pop()?;
        let mut view = details.view(numbers, worker.clock.now());
        (view.role, view.worker) = (worker.role.clone(), worker.index);
        Some(view)
    };
    Page { total, points: page.iter().filter_map(view).collect() }
}

/// Where a point stands in the order for people: the worst first.
///
/// Held ones by their gap, largest first, then those that are held physically, then those that pin
/// something, then the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(Reverse<(bool, u64, bool, u64, bool)>);

pub(crate) fn worst_first(numbers: Numbers) -> Rank {
    let has = |flag| numbers.flags.has(flag);
    let physically = has(Flags::PHYSICALLY_HELD);
    Rank(Reverse((
        has(Flags::HELD),
        numbers.gap,
        physically,
        numbers.physical_gap,
        has(Flags::PINS),
    )))
}

impl PointView {
    /// Where the point stands in the order for people.
    pub fn rank(&self) -> Rank {
        let (gap, physical) = (self.gap, self.physical_gap);
        let pins = self.pins.is_some_and(|pins| pins.batches > 0);
        Rank(Reverse((gap.held, gap.distance, physical.held, physical.distance, pins)))
    }
}
