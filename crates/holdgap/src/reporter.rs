//! The reporter: sets a worker's gauges, at most once an interval.

use std::time::{Duration, Instant};

use crate::consumer::Consumer;
use crate::report::HoldReport;
use crate::shared::WorkerShared;
use crate::sync::Arc;
use crate::throttle::Throttle;

/// How often a [`Reporter`] reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReporterOptions {
    /// The least time between two reports of [`Reporter::tick`]; one second by default.
    pub interval: Duration,
}

impl Default for ReporterOptions {
    fn default() -> Self {
        ReporterOptions { interval: Duration::from_secs(1) }
    }
}

/// Sets the gauges of one worker: made by [`Worker::reporter`](crate::Worker::reporter).
///
/// May be called from any thread and from several at once; among them they report once an interval.
/// Dropping it sets the worker's gauges to zero.
///
/// ```
/// use std::time::{Duration, Instant};
/// use holdgap::{Registry, Role};
///
/// let reporter = Registry::new().runtime(Role::Solo).worker(0).reporter();
/// let now = Instant::now();
/// assert!(reporter.tick(now).is_some());
/// assert!(reporter.tick(now + Duration::from_millis(10)).is_none());
/// assert!(reporter.tick(now + Duration::from_secs(1)).is_some());
/// ```
pub struct Reporter {
    worker: Arc<WorkerShared>,
    peaks: Option<Consumer>,
    throttle: Throttle,
}

impl Reporter {
    pub(crate) fn new(worker: Arc<WorkerShared>, options: ReporterOptions) -> Self {
        let peaks = Consumer::new(Arc::clone(&worker));
        Reporter { worker, peaks, throttle: Throttle::new(options.interval) }
    }

    /// Reports, if an interval has passed since the last report, and returns the report if so.
    ///
    /// `now` is the caller's own reading of the clock: a worker's loop has one anyway.
    ///
    /// # Cost
    ///
    /// Throttled: one load of sixteen bytes under a sequence, and a compare. Else as [`report`](Self::report).
    #[inline]
    pub fn tick(&self, now: Instant) -> Option<HoldReport> {
        self.throttle.turn(now).then(|| self.report())
    }

    /// Reports now, and sets the gauges. Leaves the interval of [`tick`](Self::tick) as it is.
    ///
    /// # Cost
    ///
    /// One pass over the worker's records without locks or pins, then what the recorder of the
    /// `metrics` facade takes for a few series.
    pub fn report(&self) -> HoldReport {
        let report = HoldReport::of(&self.worker, self.peaks.as_ref());
        report.set_gauges();
        report
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        let mut empty = HoldReport::empty(&self.worker);
        empty.hold_gap_peak = self.peaks.as_ref().map(|_| 0);
        empty.set_gauges();
    }
}

impl std::fmt::Debug for Reporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reporter")
            .field("role", &self.worker.role)
            .field("worker", &self.worker.index)
            .finish_non_exhaustive()
    }
}
