//! Points for people: the worst first, a page at a time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::rank::{Rank, worst_first};
use crate::record::{Flags, Numbers, Plain, Record};
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

/// A point that a scan found, ordered by its rank, then by where it stands.
struct Found {
    rank: Rank,
    place: usize,
    slot: usize,
    numbers: Numbers,
}

impl Found {
    fn key(&self) -> (Rank, usize, usize) {
        (self.rank, self.place, self.slot)
    }
}

impl PartialEq for Found {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Found {}

impl PartialOrd for Found {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Found {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// The worst points of those that were offered.
pub(crate) struct Worst {
    most: usize,
    /// The least bad of them on top: most points are compared with that one alone.
    found: BinaryHeap<Found>,
    /// How many were offered.
    total: usize,
}

impl Worst {
    /// The `most` worst ones.
    pub(crate) fn new(most: usize) -> Self {
        Worst { most, found: BinaryHeap::new(), total: 0 }
    }

    /// Offers the live point in `slot` of the worker at `place`.
    #[inline]
    pub(crate) fn offer(&mut self, place: usize, slot: usize, numbers: Numbers) {
        self.total += 1;
        let rank = worst_first(numbers);
        if self.found.len() < self.most {
            self.found.push(Found { rank, place, slot, numbers });
        } else if self.found.peek().is_some_and(|least| (rank, place, slot) < least.key()) {
            self.found.pop();
            self.found.push(Found { rank, place, slot, numbers });
        }
    }

    /// What was offered and is still there, by its place among `workers`: the worst first, without
    /// the first `offset`.
    pub(crate) fn views(self, workers: &[&Arc<WorkerShared>], offset: usize) -> Vec<PointView> {
        let found = self.found.into_sorted_vec();
        let view = |found: &Found| {
            let worker = workers.get(found.place)?;
            let (numbers, details) = worker.table.details(&[(found.slot, found.numbers)]).pop()?;
            let mut view = details.view(numbers, worker.clock.now());
            (view.role, view.worker) = (worker.role.clone(), worker.index);
            Some(view)
        };
        found.get(offset..).unwrap_or_default().iter().filter_map(view).collect()
    }
}

/// The points of `workers`, the worst first: `limit` of them after the first `offset`.
pub(crate) fn select<'a>(
    workers: impl IntoIterator<Item = &'a Arc<WorkerShared>>,
    offset: usize,
    limit: usize,
) -> Page {
    let workers: Vec<_> = workers.into_iter().collect();
    let mut worst = Worst::new(offset.saturating_add(limit));
    for (place, worker) in workers.iter().enumerate() {
        let mut others = Vec::new();
        let plain = |slot, found: Plain| worst.offer(place, slot, found.into());
        worker.table.scan_heads(0, plain, |slot| others.push(slot));
        for slot in others {
            let numbers = worker.table.record(slot).map(Record::read);
            if let Some(numbers) = numbers.filter(|numbers| numbers.flags.has(Flags::LIVE)) {
                worst.offer(place, slot, numbers);
            }
        }
    }
    Page { total: worst.total, points: worst.views(&workers, offset) }
}
