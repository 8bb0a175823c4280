//! A report: what one pass over a worker's points found.

use crate::consumer::Consumer;
use crate::record::{Flags, Numbers};
use crate::role::Role;
use crate::shared::WorkerShared;
use crate::sync::Ordering;

/// What one pass over the points of one (role, worker) found.
///
/// It never contradicts itself: a gap above zero implies that something is held, and no more is
/// held than is published. All distances are in timestamp units.
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
    /// The largest physical gap over the live points.
    pub physical_hold_gap: u64,
    /// How many live points have a physical gap.
    pub physically_held: u64,
    /// The largest distance from applied to upper over the live points.
    pub compaction_lag: u64,
    /// The largest distance from requested to upper over the live points: what the owner itself
    /// has not allowed.
    pub owner_slack: u64,
    /// Whether the worker's publishers say where their traces stand physically. If not, what is
    /// physical here is zero because nobody measures it.
    pub measures_physical: bool,
    /// Whether the worker's publishers say what their traces have sealed. If not, lag and slack
    /// are zero because nobody measures them.
    pub measures_lag: bool,
    /// How many points have a closed writer.
    pub frozen: u64,
    /// How many of those readers still hold back.
    pub frozen_held: u64,
    /// The largest logical gap over the frozen points.
    pub frozen_hold_gap: u64,
    /// How many invalid pairs the worker has published since it began.
    pub invalid_pairs: u64,
    pub(crate) prefix: String,
}

impl HoldReport {
    /// What a report says of a worker that publishes nothing.
    pub(crate) fn empty(worker: &WorkerShared) -> Self {
        HoldReport {
            role: worker.role.clone(),
            worker: worker.index,
            hold_gap: 0,
            hold_gap_peak: None,
            held: 0,
            published: 0,
            physical_hold_gap: 0,
            physically_held: 0,
            compaction_lag: 0,
            owner_slack: 0,
            measures_physical: worker.knows_physical.get(),
            measures_lag: worker.knows_upper.get(),
            frozen: 0,
            frozen_held: 0,
            frozen_hold_gap: 0,
            invalid_pairs: worker.invalid_pairs.load(Ordering::Relaxed),
            prefix: worker.prefix.clone(),
        }
    }

    pub(crate) fn of(worker: &WorkerShared, consumer: Option<&Consumer>) -> Self {
        let mut report = HoldReport::empty(worker);
        match consumer.map(Consumer::index) {
            None => worker.table.scan_live(|_, numbers, _| report.add(numbers)),
            Some(consumer) => {
                let mut peak = worker.table.left_behind.take(consumer);
                worker.table.scan_live(|_, numbers, record| {
                    peak = peak.max(record.peaks.take(consumer));
                    report.add(numbers);
                });
                report.hold_gap_peak = Some(peak.max(report.hold_gap));
            }
        }
        report
    }

    #[inline]
    fn add(&mut self, numbers: Numbers) {
        let held = u64::from(numbers.flags.has(Flags::HELD));
        if numbers.flags.has(Flags::FROZEN) {
            self.frozen += 1;
            self.frozen_held += held;
            self.frozen_hold_gap = self.frozen_hold_gap.max(numbers.gap);
        } else {
            self.published += 1;
            self.held += held;
            self.hold_gap = self.hold_gap.max(numbers.gap);
            self.physically_held += u64::from(numbers.flags.has(Flags::PHYSICALLY_HELD));
            self.physical_hold_gap = self.physical_hold_gap.max(numbers.physical_gap);
            self.compaction_lag = self.compaction_lag.max(numbers.lag);
            self.owner_slack = self.owner_slack.max(numbers.slack);
        }
    }
}
