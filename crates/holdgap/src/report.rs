//! A report: what one pass over a worker's points found.

use std::time::Duration;

use crate::consumer::Consumer;
use crate::copies::RecordCopy;
use crate::holders::{Pins, Queued};
use crate::kind::HoldKind;
use crate::measures::{Measures, WorkerState};
use crate::record::{Flags, Numbers, Plain, Ticks};
use crate::role::Role;
use crate::shared::WorkerShared;
use crate::sync::{Arc, Ordering};

/// What one pass over the points of one (role, worker) found.
///
/// It never contradicts itself: a gap above zero implies that something is held, no more is held
/// than is published, and the largest gap by kind is the gap. All distances are in timestamp units.
///
/// ```
/// use holdgap::{Registry, Role};
/// use timely::progress::Antichain;
///
/// let registry = Registry::new();
/// let worker = registry.runtime(Role::Maintenance).worker(3);
/// let mut held = worker.publish::<u64>("u1", "orders");
/// let free = worker.publish::<u64>("u2", "customers");
/// held.set(&Antichain::from_elem(100), &Antichain::from_elem(40));
///
/// let report = worker.report();
/// assert_eq!((report.hold_gap, report.held, report.published), (60, 1, 2));
/// assert_eq!((report.role, report.worker), (Role::Maintenance, 3));
/// # drop(free);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HoldReport {
    /// The role of the worker's runtime.
    pub role: Role,
    /// The timely index of the worker.
    pub worker: usize,
    /// The largest logical gap over the live points.
    pub hold_gap: u64,
    /// The largest logical gap over the live points since the same reporter or scraper last
    /// looked, however short it was. `None` for a report that nobody's looks are counted for.
    pub hold_gap_peak: Option<u64>,
    /// How many live points have a logical gap.
    pub held: u64,
    /// How many live points there are.
    pub published: u64,
    /// The longest time for which a held live point's applied frontier has not moved, counted from
    /// when the point came to be held; zero if none is held. To a sixteenth of a second.
    pub hold_stalled: Duration,
    /// The live points that a kind of holder binds: see [`HoldReport::by_kind`].
    by_kind: [KindReport; HoldKind::ALL.len()],
    /// The largest physical gap over the live points.
    pub physical_hold_gap: u64,
    /// How many live points have a physical gap.
    pub physically_held: u64,
    /// What the traces have replaced or dropped and others keep alive, over live and frozen points.
    pub pins: Pins,
    /// What waits in the queues of imports, over live and frozen points.
    pub queued: Queued,
    /// The largest distance from applied to upper over the live points.
    pub compaction_lag: u64,
    /// The largest distance from requested to upper over the live points: what the owner itself
    /// has not allowed.
    pub owner_slack: u64,
    /// How many points have a closed writer.
    pub frozen: u64,
    /// How many of those readers still hold back.
    pub frozen_held: u64,
    /// The largest logical gap over the frozen points.
    pub frozen_hold_gap: u64,
    /// How many invalid pairs the worker has published since it began.
    pub invalid_pairs: u64,
    /// What the worker's publishers measure.
    pub measures: Measures,
    /// The process, where several are watched from outside: the value of the label `process`.
    pub process: Option<Arc<str>>,
    pub(crate) prefix: String,
}

/// The live points that holders of one kind bind: at least one of them stands at the meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindReport {
    /// The largest logical gap of these points.
    pub hold_gap: u64,
    /// How many of these points there are.
    pub held: u64,
}

impl HoldReport {
    /// What a kind of holder binds.
    pub fn by_kind(&self, kind: HoldKind) -> KindReport {
        self.by_kind[kind as usize]
    }

    /// What a report says of a worker that publishes nothing.
    pub(crate) fn empty(worker: &WorkerShared) -> Self {
        HoldReport {
            measures: worker.measures(),
            invalid_pairs: worker.invalid_pairs.load(Ordering::Relaxed),
            ..HoldReport::nothing(worker.role.clone(), worker.index, &worker.prefix)
        }
    }

    fn nothing(role: Role, worker: usize, prefix: &str) -> Self {
        HoldReport {
            role,
            worker,
            hold_gap: 0,
            hold_gap_peak: None,
            held: 0,
            published: 0,
            hold_stalled: Duration::ZERO,
            by_kind: Default::default(),
            physical_hold_gap: 0,
            physically_held: 0,
            pins: Pins::default(),
            queued: Queued::default(),
            compaction_lag: 0,
            owner_slack: 0,
            frozen: 0,
            frozen_held: 0,
            frozen_hold_gap: 0,
            invalid_pairs: 0,
            measures: Measures::default(),
            process: None,
            prefix: prefix.to_owned(),
        }
    }

    /// Saturates: what another process's segment says may be anything.
    fn add_pins(&mut self, pins: Pins) {
        self.pins.batches = self.pins.batches.saturating_add(pins.batches);
        self.pins.updates = self.pins.updates.saturating_add(pins.updates);
    }

    /// The report of a worker in another process, from copies of its records at `now` on that
    /// process's clock.
    ///
    /// For `holdgap-segment`. Peaks are absent: the other process's own reporters have them.
    pub fn of_copies(
        worker: &WorkerState,
        prefix: &str,
        now: Duration,
        records: impl IntoIterator<Item = RecordCopy>,
    ) -> Self {
        let WorkerState { role, worker, measures, invalid_pairs, .. } = worker.clone();
        let nothing = HoldReport::nothing(role, worker, prefix);
        let mut report = HoldReport { measures, invalid_pairs, ..nothing };
        let mut totals = Totals::default();
        for record in records.into_iter().filter(RecordCopy::is_live) {
            totals.add(&record.numbers());
            report.add_pins(record.pins());
        }
        totals.fill(&mut report, now);
        report
    }

    pub(crate) fn of(worker: &WorkerShared, consumer: Option<&Consumer>) -> Self {
        HoldReport::of_each(worker, consumer, |_, _| ())
    }

    /// The report, made in a pass that shows `each` live point too: its slot and its numbers.
    #[inline(always)]
    pub(crate) fn of_each(
        worker: &WorkerShared,
        consumer: Option<&Consumer>,
        mut each: impl FnMut(usize, Numbers),
    ) -> Self {
        let consumer = consumer.map(Consumer::index);
        let mask = consumer.map_or(0, |consumer| 1 << consumer);
        let (mut plain, mut others) = (Plains::new(), Vec::new());
        let add = |slot, found: Plain| {
            each(slot, found.into());
            plain.add(found);
        };
        worker.table.scan_heads(mask, add, |slot| others.push(slot));
        let mut totals = Totals { plain, ..Totals::default() };
        let mut peak = consumer.map_or(0, |consumer| worker.table.left_behind.take(consumer));
        let mut pinning = Vec::new();
        for slot in others {
            let Some(record) = worker.table.record(slot) else { continue };
            if let Some(consumer) = consumer {
                peak = peak.max(record.take_peak(consumer));
            }
            let numbers = record.read();
            if numbers.flags.has(Flags::LIVE) {
                totals.add(&numbers);
                each(slot, numbers);
            }
            if numbers.flags.has(Flags::PINS) {
                pinning.push((slot, numbers));
            }
        }
        let mut report = HoldReport::empty(worker);
        totals.fill(&mut report, worker.clock.now());
        report.hold_gap_peak = consumer.map(|_| peak.max(report.hold_gap));
        for (_, details) in worker.table.details(&pinning) {
            report.add_pins(details.pins().unwrap_or_default());
        }
        report
    }
}

/// What a pass adds up of the heads. Few numbers, so that they stay in registers.
struct Plains {
    published: u64,
    held: u64,
    gap: u64,
    held_since: Ticks,
    lag: u64,
    slack: u64,
    by_kind: [KindReport; HoldKind::ALL.len()],
}

impl Plains {
    fn new() -> Self {
        Plains {
            published: 0,
            held: 0,
            gap: 0,
            held_since: Ticks(u32::MAX),
            lag: 0,
            slack: 0,
            by_kind: Default::default(),
        }
    }

    #[inline(always)]
    fn add(&mut self, Plain { flags, held_since, gap, lag, .. }: Plain) {
        self.published += 1;
        self.lag = self.lag.max(lag);
        self.slack = self.slack.max(lag.saturating_sub(gap));
        if flags.has(Flags::HELD) {
            self.held += 1;
            self.gap = self.gap.max(gap);
            self.held_since = self.held_since.min(held_since);
            if flags.has_kinds() {
                self.add_kinds(flags, gap);
            }
        }
    }

    #[inline]
    fn add_kinds(&mut self, flags: Flags, gap: u64) {
        for kind in HoldKind::ALL {
            if flags.has(Flags::bound_by(kind)) {
                let of_kind = &mut self.by_kind[kind as usize];
                of_kind.held += 1;
                of_kind.hold_gap = of_kind.hold_gap.max(gap);
            }
        }
    }
}

/// All that a pass adds up.
struct Totals {
    plain: Plains,
    physically_held: u64,
    physical_gap: u64,
    frozen: u64,
    frozen_held: u64,
    frozen_gap: u64,
    queued: Queued,
}

impl Default for Totals {
    fn default() -> Self {
        Totals {
            plain: Plains::new(),
            physically_held: 0,
            physical_gap: 0,
            frozen: 0,
            frozen_held: 0,
            frozen_gap: 0,
            queued: Queued::default(),
        }
    }
}

impl Totals {
    fn add(&mut self, numbers: &Numbers) {
        let Numbers { generation, flags, held_since, gap, lag, slack, .. } = *numbers;
        if flags.has(Flags::FROZEN) {
            self.frozen += 1;
            self.frozen_held += u64::from(flags.has(Flags::HELD));
            self.frozen_gap = self.frozen_gap.max(gap);
        } else {
            // What follows from lag and gap is not the slack of a point that has one of its own.
            let known = self.plain.slack.max(slack);
            self.plain.add(Plain { generation, flags, held_since, gap, lag });
            self.plain.slack = known;
            if flags.has(Flags::PHYSICALLY_HELD) {
                self.physically_held += 1;
                self.physical_gap = self.physical_gap.max(numbers.physical_gap);
            }
        }
        if flags.has(Flags::QUEUED) {
            let Queued { instructions, batches } = &mut self.queued;
            // Saturates: what another process's segment says may be anything.
            *instructions = instructions.saturating_add(numbers.queued_instructions);
            *batches = batches.saturating_add(numbers.queued_batches);
        }
    }

    fn fill(self, report: &mut HoldReport, now: Duration) {
        let Plains { published, held, gap, held_since, lag, slack, by_kind } = self.plain;
        (report.published, report.held, report.hold_gap) = (published, held, gap);
        if held > 0 {
            report.hold_stalled = held_since.until(now);
        }
        report.by_kind = by_kind;
        report.physically_held = self.physically_held;
        report.physical_hold_gap = self.physical_gap;
        (report.compaction_lag, report.owner_slack) = (lag, slack);
        (report.frozen, report.frozen_held) = (self.frozen, self.frozen_held);
        report.frozen_hold_gap = self.frozen_gap;
        report.queued = self.queued;
    }
}
