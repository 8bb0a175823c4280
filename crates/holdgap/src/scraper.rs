//! A scraper: collects the reports of all workers, with the peaks between its own scrapes.

use crate::consumer::Consumer;
use crate::report::HoldReport;
use crate::select::Worst;
use crate::shared::{RegistryShared, WorkerShared};
use crate::sync::{Arc, Mutex, lock};
use crate::view::PointView;

/// Collects the reports of all workers of a registry: made by
/// [`Registry::scraper`](crate::Registry::scraper).
///
/// Its peaks are its own: neither reporters nor other scrapers take them from it. Each worker has
/// room for four consumers of peaks, reporters among them; one beyond that reports no peak.
///
/// ```
/// use holdgap::{Registry, Role};
/// use timely::progress::Antichain;
///
/// let registry = Registry::new();
/// let worker = registry.runtime(Role::Maintenance).worker(0);
/// let scraper = registry.scraper();
/// scraper.reports();
///
/// let mut point = worker.publish::<u64>("u42", "orders by customer");
/// point.set(&Antichain::from_elem(10), &Antichain::from_elem(4));
/// point.set(&Antichain::from_elem(10), &Antichain::from_elem(10));
/// let report = &scraper.reports()[0];
/// assert_eq!((report.hold_gap, report.hold_gap_peak), (0, Some(6)));
/// ```
pub struct Scraper {
    registry: Arc<RegistryShared>,
    /// By the place of the worker in the registry, which never loses one. This scraper's own lock:
    /// no watched runtime takes it.
    consumers: Mutex<Vec<Option<Consumer>>>,
}

impl Scraper {
    pub(crate) fn new(registry: Arc<RegistryShared>) -> Self {
        let scraper = Scraper { registry, consumers: Mutex::default() };
        // Peaks count from here on.
        scraper.reports();
        scraper
    }

    /// One report for each (role, worker) that was ever asked for, in the order of the asking.
    ///
    /// # Cost
    ///
    /// This scraper's own mutex, and one pass over the records of each worker.
    pub fn reports(&self) -> Vec<HoldReport> {
        self.each(|worker, consumer| HoldReport::of(worker, consumer))
    }

    /// The reports, and the `most` worst points of each worker, as
    /// [`Worker::worst`](crate::Worker::worst) has them: found in the same pass.
    ///
    /// ```
    /// use holdgap::{Registry, Role};
    /// use timely::progress::Antichain;
    ///
    /// let registry = Registry::new();
    /// let worker = registry.runtime(Role::Maintenance).worker(0);
    /// let scraper = registry.scraper();
    /// let mut point = worker.publish::<u64>("u42", "orders by customer");
    /// point.set(&Antichain::from_elem(10), &Antichain::from_elem(4));
    /// let (reports, worst) = scraper.look(10);
    /// assert_eq!((reports[0].hold_gap, worst[0].gap.distance), (6, 6));
    /// ```
    ///
    /// # Cost
    ///
    /// That of [`reports`](Self::reports), and several allocations for each point returned.
    pub fn look(&self, most: usize) -> (Vec<HoldReport>, Vec<PointView>) {
        let mut points = Vec::new();
        let reports = self.each(|worker, consumer| {
            let mut worst = Worst::new(most);
            let each = |slot, numbers| worst.offer(0, slot, numbers);
            let report = HoldReport::of_each(worker, consumer, each);
            points.extend(worst.views(&[worker], 0));
            report
        });
        (reports, points)
    }

    /// Makes a report of each worker.
    fn each(
        &self,
        mut report: impl FnMut(&Arc<WorkerShared>, Option<&Consumer>) -> HoldReport,
    ) -> Vec<HoldReport> {
        let mut consumers = lock(&self.consumers);
        // Under the lock, so that of two scrapes the later knows no fewer workers.
        let workers = self.registry.workers.load_full();
        consumers.resize_with(workers.len(), || None);
        let report = |(worker, consumer): (&Arc<_>, &mut Option<Consumer>)| {
            if consumer.is_none() {
                *consumer = Consumer::new(Arc::clone(worker));
            }
            report(worker, consumer.as_ref())
        };
        workers.iter().zip(consumers.iter_mut()).map(report).collect()
    }
}

impl std::fmt::Debug for Scraper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scraper").finish_non_exhaustive()
    }
}
