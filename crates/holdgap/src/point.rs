//! A publication point: the writer's end of what reports show.

use arc_swap::ArcSwap;
use timely::progress::Antichain;

use crate::clock::Clock;
use crate::distance::Distance;
use crate::holders::{Holders, Pinned, Queued};
use crate::layout::Mirror;
use crate::pair::same_frontier;
use crate::record::{Flags, Numbers, Ticks};
use crate::shared::WorkerShared;
use crate::snapshot::{Cell, CellWriter, Frontiers, Snapshot};
use crate::sync::{Arc, AtomicBool, OnceLock, Ordering};
use crate::table::Slot;
use crate::view::{Described, measured};

/// Where one trace publishes its frontiers: made by [`Worker::publish`](crate::Worker::publish).
///
/// A point has one writer, the owner of this value; that is what `&mut` stands for below. It shows
/// in every report of its worker until it is dropped, whoever drops it and on whatever thread.
///
/// ```
/// use holdgap::{Registry, Role};
/// use timely::progress::Antichain;
///
/// let worker = Registry::new().runtime(Role::Maintenance).worker(0);
/// let mut point = worker.publish::<u64>("u42", "orders by customer");
/// point.set(&Antichain::from_elem(10), &Antichain::from_elem(4));
/// assert_eq!(worker.report().hold_gap, 6);
///
/// drop(point);
/// assert_eq!(worker.report().hold_gap, 0);
/// ```
pub struct Point<T: Distance> {
    worker: Arc<WorkerShared>,
    /// `None` only while it is being dropped.
    slot: Option<Slot>,
    described: Arc<Described<T>>,
    writer: CellWriter<T>,
    numbers: Numbers,
}

/// What of a point a segment has yet to show.
#[derive(Clone, Copy)]
enum Shown {
    Frontiers,
    Holders,
    Names,
    All,
}

impl<T: Distance> Point<T> {
    pub(crate) fn new(worker: Arc<WorkerShared>, id: Arc<str>, name: Arc<str>) -> Self {
        let cell = Cell::new();
        let writer = CellWriter::new(&cell);
        let ids = ArcSwap::from_pointee(Box::from([id]));
        let (pinned, counts_queues) = (OnceLock::new(), AtomicBool::new(false));
        let described = Described { ids, name, cell, pinned, counts_queues };
        let described = Arc::new(described);
        let numbers = Numbers::default();
        let details = Arc::<Described<T>>::clone(&described);
        let slot = Some(worker.table.add(details, numbers));
        let point = Point { worker, slot, described, writer, numbers };
        // In a segment another point may have been in its slot before.
        if let Some((slot, (mirror, _))) =
            point.slot.as_ref().and_then(|slot| Some((slot, point.worker.table.mirror(slot)?)))
        {
            point.show(slot, &mirror, Shown::All);
        }
        point
    }

    /// Publishes the requested and the applied logical compaction frontier, both at once.
    ///
    /// A pair whose applied frontier is not less or equal to its requested one is published, counted
    /// as invalid, and left out of the gauges.
    ///
    /// # Cost
    ///
    /// Unchanged: two comparisons. Changed: one swap of an `ArcSwap` (its cost grows with the number
    /// of threads that ever used one) and a dozen stores; no locks, no system calls, and no
    /// allocation unless a reader still looks at the last snapshot but one.
    #[inline]
    pub fn set(&mut self, requested: &Antichain<T>, applied: &Antichain<T>) {
        let published = &self.writer.published().logical;
        let stood = same_frontier(&published.applied, applied);
        if stood && same_frontier(&published.requested, requested) {
            return;
        }
        self.set_changed(requested, applied, stood);
    }

    #[inline(never)]
    fn set_changed(&mut self, requested: &Antichain<T>, applied: &Antichain<T>, stood: bool) {
        let before = self.numbers;
        self.writer.publish_logical(&self.described.cell, requested, applied);
        let quiet = !before.flags.has(Flags::HELD) && same_frontier(requested, applied);
        // Neither held before nor now, and nothing to measure against: its numbers stay as they are.
        if !quiet || self.writer.published().upper.is_some() {
            self.measure(stood);
            self.raise(before.gap.max(self.numbers.gap));
        }
        self.load(None);
        self.write(self.numbers != before, Shown::Frontiers);
    }

    /// Publishes all that is known of the trace, at once.
    ///
    /// # Cost
    ///
    /// As [`set`](Self::set); and if the point comes to be held, or is held and its applied frontier
    /// moved, a reading of the registry's clock.
    pub fn publish(&mut self, frontiers: &Frontiers<'_, T>) {
        let before = self.numbers;
        let applied = &self.writer.published().logical.applied;
        let stood = same_frontier(applied, &frontiers.logical.applied);
        let holders = self.writer.published().holders.as_ref().map(Arc::as_ptr);
        let published = self.writer.publish(&self.described.cell, frontiers);
        if published {
            self.measure(stood);
            self.raise(before.gap.max(self.numbers.gap));
        }
        self.load(frontiers.queued);
        if published || self.numbers != before {
            let same = holders == frontiers.holders.map(Arc::as_ptr);
            let shown = if same { Shown::Frontiers } else { Shown::Holders };
            self.write(self.numbers != before, shown);
        }
    }

    /// Shows what waits in the queues of imports, and looks whether anything is pinned: for changes
    /// between two publications.
    ///
    /// A comparison, and a dozen stores if anything changed.
    pub fn set_queued(&mut self, queued: Queued) {
        let before = self.numbers;
        self.load(Some(queued));
        if self.numbers != before {
            self.write(true, Shown::Frontiers);
        }
    }

    /// Has reports ask `pinned` what the trace pins. Once in the life of a point; later calls do
    /// nothing. No locks, no allocations.
    pub fn count_pins(&mut self, pinned: Arc<dyn Pinned>) {
        self.described.pinned.get_or_init(|| pinned);
        self.worker.counts_pins.note(true);
    }

    /// The clock that this point's registry measures ages on.
    pub fn clock(&self) -> &Clock {
        &self.worker.clock
    }

    /// Measures what was just published; `stood` if the applied frontier is where it was.
    #[inline(never)]
    fn measure(&mut self, stood: bool) {
        let was_held = self.numbers.flags.has(Flags::HELD);
        let snapshot = self.writer.published();
        let (numbers, invalid) = measured(self.numbers, snapshot);
        self.worker.knows_physical.note(snapshot.physical.is_some());
        self.worker.knows_upper.note(snapshot.upper.is_some());
        self.worker.knows_holders.note(snapshot.holders.is_some());
        if invalid > 0 {
            // Relaxed: a count that nothing else depends on.
            self.worker.invalid_pairs.fetch_add(invalid, Ordering::Relaxed);
        }
        self.numbers = numbers;
        if numbers.flags.has(Flags::HELD) && !(was_held && stood) {
            self.numbers.held_since = Ticks::at(self.worker.clock.now());
        }
    }

    /// What its readers cost: their queues, and whether they pin anything.
    fn load(&mut self, queued: Option<Queued>) {
        if let Some(queued) = queued {
            self.numbers.queued_instructions = queued.instructions;
            self.numbers.queued_batches = queued.batches;
            self.worker.knows_queues.note(true);
            // Relaxed: nothing is published through it.
            self.described.counts_queues.store(true, Ordering::Relaxed);
        }
        if let Some(pinned) = self.described.pinned.get() {
            let pins = pinned.pins().batches > 0;
            self.numbers.flags = self.numbers.flags.with(Flags::PINS, pins);
        }
    }

    /// Marks the point as frozen: its trace's writer has closed.
    ///
    /// From here on it counts in the frozen series only. Frontiers may go on being published, for as
    /// long as something applies them. A dozen stores the first time, nothing after that.
    pub fn freeze(&mut self) {
        if !self.is_frozen() {
            self.raise(self.numbers.gap);
            self.numbers.flags = self.numbers.flags.with(Flags::FROZEN, true);
            self.write(true, Shown::Frontiers);
        }
    }

    /// Whether [`freeze`](Self::freeze) was called.
    pub fn is_frozen(&self) -> bool {
        self.numbers.flags.has(Flags::FROZEN)
    }

    /// Makes the point known under one more id. It still counts once. One allocation, one swap.
    pub fn add_id(&mut self, id: impl Into<Arc<str>>) {
        let (id, mut ids) = (id.into(), self.ids());
        if !ids.contains(&id) {
            ids.push(id);
            self.described.ids.store(Arc::new(ids.into_boxed_slice()));
            self.write(false, Shown::Names);
        }
    }

    /// Takes back an id, and returns how many are left. One allocation, one swap.
    pub fn remove_id(&mut self, id: &str) -> usize {
        let mut ids = self.ids();
        ids.retain(|known| **known != *id);
        let left = ids.len();
        self.described.ids.store(Arc::new(ids.into_boxed_slice()));
        self.write(false, Shown::Names);
        left
    }

    /// The ids that the point is known under.
    pub fn ids(&self) -> Vec<Arc<str>> {
        self.described.ids.load_full().to_vec()
    }

    /// What was published last.
    pub fn published(&self) -> &Snapshot<T> {
        self.writer.published()
    }

    /// Raises the peaks that consumers of this worker's reports have yet to see.
    fn raise(&self, gap: u64) {
        if let (Some(slot), false) = (&self.slot, gap == 0 || self.is_frozen()) {
            self.worker.table.raise(slot, gap);
        }
    }

    /// Writes the record, if it is `changed`, and shows the point in the registry's segment if there
    /// is one.
    #[inline]
    fn write(&self, changed: bool, what: Shown) {
        let Some(slot) = &self.slot else { return };
        if changed {
            self.worker.table.write(slot, self.numbers);
        }
        if let Some((mirror, first)) = self.worker.table.mirror(slot) {
            self.show(slot, &mirror, if first { Shown::All } else { what });
        }
    }

    fn show(&self, slot: &Slot, mirror: &Mirror<'_>, what: Shown) {
        let snapshot = self.writer.published();
        if matches!(what, Shown::Names | Shown::All) {
            mirror.write_names(&self.described.name, &self.described.ids.load());
        }
        if matches!(what, Shown::Holders | Shown::All) {
            match &snapshot.holders {
                Some(holders) => mirror.write_holders(holders),
                None => mirror.write_holders(&Holders::default()),
            }
        }
        mirror.write(slot.numbers(self.numbers), snapshot);
    }
}

impl<T: Distance> Drop for Point<T> {
    fn drop(&mut self) {
        self.raise(self.numbers.gap);
        if let Some(slot) = self.slot.take() {
            self.worker.table.remove(slot);
        }
    }
}

impl<T: Distance> std::fmt::Debug for Point<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Point")
            .field("ids", &self.ids())
            .field("name", &self.described.name)
            .field("published", self.published())
            .finish_non_exhaustive()
    }
}
