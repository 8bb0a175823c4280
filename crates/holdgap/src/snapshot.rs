//! The frontiers of one point at one moment, behind one pointer.

use arc_swap::ArcSwap;
use timely::progress::{Antichain, Timestamp};

use crate::holders::{Holders, Queued};
use crate::pair::{FrontierPair, same_frontier};
use crate::sync::Arc;

/// The frontiers that a trace published together: true of it at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot<T> {
    /// Counts the publications of this point; a later snapshot has a larger one.
    pub sequence: u64,
    /// Requested and applied logical compaction.
    pub logical: FrontierPair<T>,
    /// Requested and applied physical compaction, where the publisher knows them.
    pub physical: Option<FrontierPair<T>>,
    /// The times that the trace has sealed, where the publisher knows them.
    pub upper: Option<Antichain<T>>,
    /// Who holds the applied logical frontier back, where the publisher knows.
    pub holders: Option<Arc<Holders>>,
}

/// What a publisher says of a trace, borrowed: see [`Point::publish`](crate::Point::publish).
///
/// ```
/// use holdgap::{FrontierPair, Frontiers, Registry, Role};
/// use timely::progress::Antichain;
///
/// let registry = Registry::new();
/// let worker = registry.runtime(Role::Solo).worker(0);
/// let mut point = worker.publish::<u64>("u1", "orders");
/// let at = Antichain::from_elem;
///
/// let pair = FrontierPair { requested: at(100), applied: at(40) };
/// let upper = at(130);
/// point.publish(&Frontiers { upper: Some(&upper), ..Frontiers::logical(&pair) });
///
/// let report = worker.report();
/// assert_eq!((report.hold_gap, report.owner_slack, report.compaction_lag), (60, 30, 90));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Frontiers<'a, T> {
    /// Requested and applied logical compaction.
    pub logical: &'a FrontierPair<T>,
    /// Requested and applied physical compaction, where known.
    pub physical: Option<&'a FrontierPair<T>>,
    /// The times that the trace has sealed, where known.
    pub upper: Option<&'a Antichain<T>>,
    /// Who holds the applied logical frontier back, where known.
    pub holders: Option<&'a Arc<Holders>>,
    /// What waits in the queues of imports, where known. Shown beside the snapshot, not in it.
    pub queued: Option<Queued>,
}

impl<'a, T> Frontiers<'a, T> {
    /// The logical pair, and nothing else known.
    pub fn logical(logical: &'a FrontierPair<T>) -> Self {
        Frontiers { logical, physical: None, upper: None, holders: None, queued: None }
    }
}

impl<T: Timestamp> Snapshot<T> {
    fn minimum() -> Self {
        let (logical, physical) = (FrontierPair::minimum(), None);
        Snapshot { sequence: 0, logical, physical, upper: None, holders: None }
    }

    fn shows(&self, frontiers: &Frontiers<'_, T>) -> bool {
        let same_pair = |one: &FrontierPair<T>, other: &FrontierPair<T>| {
            same_frontier(&one.requested, &other.requested)
                && same_frontier(&one.applied, &other.applied)
        };
        let same_physical = match (&self.physical, frontiers.physical) {
            (Some(one), Some(other)) => same_pair(one, other),
            (None, None) => true,
            _ => false,
        };
        let same_upper = match (&self.upper, frontiers.upper) {
            (Some(one), Some(other)) => same_frontier(one, other),
            (None, None) => true,
            _ => false,
        };
        same_pair(&self.logical, frontiers.logical)
            && same_physical
            && same_upper
            && same(self.holders.as_ref(), frontiers.holders)
    }

    /// Becomes the same as `other`, reusing what is allocated.
    #[inline]
    fn copy(&mut self, other: &Self) {
        self.sequence = other.sequence;
        assign_pair(&mut self.logical, &other.logical);
        reuse(&mut self.physical, other.physical.as_ref(), assign_pair);
        reuse(&mut self.upper, other.upper.as_ref(), assign);
        if !same(self.holders.as_ref(), other.holders.as_ref()) {
            self.holders.clone_from(&other.holders);
        }
    }

    /// Takes over `frontiers`, reusing what is allocated.
    fn assign(&mut self, frontiers: &Frontiers<'_, T>) {
        assign_pair(&mut self.logical, frontiers.logical);
        reuse(&mut self.physical, frontiers.physical, assign_pair);
        reuse(&mut self.upper, frontiers.upper, assign);
        reuse(&mut self.holders, frontiers.holders, Clone::clone_from);
    }
}

/// Makes a frontier the same as another. Most have one element, which is all that moves then.
#[inline]
fn assign<T: Timestamp>(into: &mut Antichain<T>, from: &Antichain<T>) {
    match from.elements() {
        [time] => *into = Antichain::from_elem(time.clone()),
        _ => into.clone_from(from),
    }
}

#[inline]
fn assign_pair<T: Timestamp>(into: &mut FrontierPair<T>, from: &FrontierPair<T>) {
    assign(&mut into.requested, &from.requested);
    assign(&mut into.applied, &from.applied);
}

/// Takes over a value by `assign` where there is one to take its place.
#[inline]
fn reuse<V: Clone>(into: &mut Option<V>, from: Option<&V>, assign: impl FnOnce(&mut V, &V)) {
    match (into.as_mut(), from) {
        (Some(into), Some(from)) => assign(into, from),
        _ => *into = from.cloned(),
    }
}

/// Whether two are the same holders. Publishers hand in the same pointer for as long as they are.
fn same(one: Option<&Arc<Holders>>, other: Option<&Arc<Holders>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
        (None, None) => true,
        _ => false,
    }
}

/// A [`Snapshot`] that one writer replaces as a whole and anyone may load.
pub(crate) struct Cell<T> {
    current: ArcSwap<Snapshot<T>>,
}

impl<T: Timestamp> Cell<T> {
    pub(crate) fn new() -> Self {
        Cell { current: ArcSwap::from_pointee(Snapshot::minimum()) }
    }

    /// The current snapshot. Never a guard: a reporter may keep it as long as it likes.
    pub(crate) fn load(&self) -> Arc<Snapshot<T>> {
        self.current.load_full()
    }
}

/// The writer's end of a [`Cell`], which it is given at each publication: what it published last, and
/// a snapshot to write the next into.
pub(crate) struct CellWriter<T> {
    /// The writer's own copy, so that it touches no count that others touch.
    published: Snapshot<T>,
    /// The snapshot that came back from the last publication. Once its readers have let go of it,
    /// the next publication fills it again instead of allocating another.
    spare: Option<Arc<Snapshot<T>>>,
}

impl<T: Timestamp> CellWriter<T> {
    pub(crate) fn new(cell: &Cell<T>) -> Self {
        CellWriter { published: Snapshot::clone(&cell.load()), spare: None }
    }

    #[inline]
    pub(crate) fn published(&self) -> &Snapshot<T> {
        &self.published
    }

    /// Publishes `frontiers`, unless they are what is published already. Returns whether it did.
    pub(crate) fn publish(&mut self, cell: &Cell<T>, frontiers: &Frontiers<'_, T>) -> bool {
        if self.published.shows(frontiers) {
            return false;
        }
        self.published.assign(frontiers);
        self.replace(cell);
        true
    }

    /// Publishes a logical pair, with all else as it was.
    #[inline]
    pub(crate) fn publish_logical(
        &mut self,
        cell: &Cell<T>,
        requested: &Antichain<T>,
        applied: &Antichain<T>,
    ) {
        assign(&mut self.published.logical.requested, requested);
        assign(&mut self.published.logical.applied, applied);
        self.replace(cell);
    }

    /// Publishes the writer's own copy, in the snapshot that came back if nobody looks at it.
    #[inline]
    fn replace(&mut self, cell: &Cell<T>) {
        self.published.sequence += 1;
        let spare = self.spare.take();
        let next = match spare {
            Some(mut spare) => match Arc::get_mut(&mut spare) {
                Some(unshared) => {
                    unshared.copy(&self.published);
                    spare
                }
                // A reader still looks at it: leave it to the reader.
                None => Arc::new(self.published.clone()),
            },
            None => Arc::new(self.published.clone()),
        };
        self.spare = Some(cell.current.swap(next));
    }
}

/// A frontier as people read it: `{3}`, `{}`.
pub(crate) fn frontier_text<T: Timestamp>(frontier: &Antichain<T>) -> String {
    let mut elements: Vec<&T> = frontier.iter().collect();
    elements.sort();
    let texts: Vec<String> = elements.into_iter().map(|time| format!("{time:?}")).collect();
    format!("{{{}}}", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logical(requested: u64, applied: u64) -> FrontierPair<u64> {
        FrontierPair {
            requested: Antichain::from_elem(requested),
            applied: Antichain::from_elem(applied),
        }
    }

    /// A cell and its writer.
    fn new() -> (Cell<u64>, CellWriter<u64>) {
        let cell = Cell::new();
        let writer = CellWriter::new(&cell);
        (cell, writer)
    }

    fn publish(cell: &Cell<u64>, writer: &mut CellWriter<u64>, pair: &FrontierPair<u64>) -> bool {
        writer.publish(cell, &Frontiers::logical(pair))
    }

    #[test]
    fn unchanged_frontiers_are_not_republished() {
        let (cell, mut writer) = new();
        assert!(publish(&cell, &mut writer, &logical(5, 3)));
        let before = cell.load();
        assert!(!publish(&cell, &mut writer, &logical(5, 3)));
        assert!(Arc::ptr_eq(&before, &cell.load()));
        assert!(publish(&cell, &mut writer, &logical(5, 4)));
        assert_eq!(cell.load().sequence, 2);
    }

    #[test]
    fn a_snapshot_that_a_reader_keeps_stays_as_it_was() {
        let (cell, mut writer) = new();
        publish(&cell, &mut writer, &logical(1, 1));
        let kept = cell.load();
        for n in 2..100 {
            publish(&cell, &mut writer, &logical(n, n));
        }
        assert_eq!(*kept, Snapshot { sequence: 1, logical: logical(1, 1), ..Snapshot::minimum() });
    }

    #[test]
    fn in_steady_state_two_snapshots_take_turns() {
        let (cell, mut writer) = new();
        let mut addresses = std::collections::BTreeSet::new();
        for n in 1..1000 {
            publish(&cell, &mut writer, &logical(n, n));
            addresses.insert(Arc::as_ptr(&cell.load()) as usize);
        }
        assert!(addresses.len() <= 3, "{} snapshots", addresses.len());
    }

    #[test]
    fn frontiers_print_as_sets() {
        assert_eq!(frontier_text(&Antichain::from_elem(3_u64)), "{3}");
        assert_eq!(frontier_text(&Antichain::<u64>::new()), "{}");
    }
}
