//! A report: what one pass over a worker's points found.

use std::time::Duration;

use crate::consumer::Consumer;
use crate::holders::{Pins, Queued};
use crate::kind::HoldKind;
use crate::layout::RecordCopy;
use crate::record::{Flags, Numbers, Ticks};
use crate::registry::WorkerState;
use crate::role::Role;
use crate::shared::WorkerShared;
use crate::sync::{Arc, Ordering};

/// What one pass over the points of one (role, worker) found.
///
/// It never contradicts itself: a gap above zero implies that something is held, no more is held
/// than is published, and the largest gap by kind is the gap. All distances are in timestamp units.
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

/// What the publishers of a worker measure. What they do not is zero in a report because nobody
/// measures it, and absent from the gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measures {
    /// Where their traces stand physically.
    pub physical: bool,
    /// What their traces have sealed: lag and slack.
    pub lag: bool,
    /// Who holds: what is told apart by kind.
    pub holders: bool,
    /// What is pinned.
    pub pins: bool,
    /// What waits in queues.
    pub queues: bool,
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
        let report =
            HoldReport { measures, invalid_pairs, ..HoldReport::nothing(role, worker, prefix) };
        let mut pass = Pass { report, held_since: Ticks(u32::MAX), pinning: Vec::new() };
        for record in records.into_iter().filter(RecordCopy::is_live) {
            pass.add(0, record.numbers());
            pass.report.add_pins(record.pins());
        }
        pass.stalled(now)
    }

    pub(crate) fn of(worker: &WorkerShared, consumer: Option<&Consumer>) -> Self {
        let mut pass = Pass::new(worker);
        match consumer.map(Consumer::index) {
            None => worker.table.scan_live(|slot, numbers, _| pass.add(slot, numbers)),
            Some(consumer) => {
                let mut peak = worker.table.left_behind.take(consumer);
                worker.table.scan_live(|slot, numbers, record| {
                    peak = peak.max(record.take_peak(consumer));
                    pass.add(slot, numbers);
                });
                pass.report.hold_gap_peak = Some(peak.max(pass.report.hold_gap));
            }
        }
        pass.end(worker)
    }
}

/// A report under way.
struct Pass {
    report: HoldReport,
    held_since: Ticks,
    pinning: Vec<(usize, Numbers)>,
}

impl Pass {
    fn new(worker: &WorkerShared) -> Self {
        let (report, pinning) = (HoldReport::empty(worker), Vec::new());
        Pass { report, held_since: Ticks(u32::MAX), pinning }
    }

    #[inline]
    fn add(&mut self, slot: usize, numbers: Numbers) {
        let Pass { report, .. } = self;
        let flags = numbers.flags;
        if flags.has(Flags::FROZEN) {
            report.frozen += 1;
            report.frozen_held += u64::from(flags.has(Flags::HELD));
            report.frozen_hold_gap = report.frozen_hold_gap.max(numbers.gap);
        } else {
            report.published += 1;
            report.physically_held += u64::from(flags.has(Flags::PHYSICALLY_HELD));
            report.physical_hold_gap = report.physical_hold_gap.max(numbers.physical_gap);
            report.compaction_lag = report.compaction_lag.max(numbers.lag);
            report.owner_slack = report.owner_slack.max(numbers.slack);
            if flags.has(Flags::HELD) {
                self.add_held(numbers);
            }
        }
        let Queued { instructions, batches } = &mut self.report.queued;
        *instructions = instructions.saturating_add(numbers.queued_instructions);
        *batches = batches.saturating_add(numbers.queued_batches);
        if flags.has(Flags::PINS) {
            self.pinning.push((slot, numbers));
        }
    }

    #[inline]
    fn add_held(&mut self, numbers: Numbers) {
        let Pass { report, held_since, .. } = self;
        report.held += 1;
        report.hold_gap = report.hold_gap.max(numbers.gap);
        *held_since = numbers.held_since.min(*held_since);
        for kind in HoldKind::ALL {
            if numbers.flags.has(Flags::bound_by(kind)) {
                let of_kind = &mut report.by_kind[kind as usize];
                of_kind.held += 1;
                of_kind.hold_gap = of_kind.hold_gap.max(numbers.gap);
            }
        }
    }

    fn stalled(self, now: Duration) -> HoldReport {
        let Pass { mut report, held_since, .. } = self;
        if report.held > 0 {
            report.hold_stalled = held_since.until(now);
        }
        report
    }

    fn end(self, worker: &WorkerShared) -> HoldReport {
        let pinning = worker.table.details(&self.pinning);
        let mut report = self.stalled(worker.clock.now());
        for (_, details) in pinning {
            report.add_pins(details.pins().unwrap_or_default());
        }
        report
    }
}
