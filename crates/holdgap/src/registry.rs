//! The registry handle: from it a runtime by role, from that a worker by index.

use arc_swap::ArcSwap;
use crossbeam_epoch::Collector;

use crate::distance::Distance;
use crate::layout::Mirrors;
use crate::measures::WorkerState;
use crate::options::RegistryOptions;
use crate::point::Point;
use crate::report::HoldReport;
use crate::reporter::{Reporter, ReporterOptions};
use crate::role::Role;
use crate::scraper::Scraper;
use crate::select::{Page, select};
use crate::shared::{RegistryShared, Told, WorkerShared};
use crate::sync::{Arc, AtomicU64, Mutex, OnceLock, Ordering, lock};
use crate::table::SlotTable;
use crate::view::PointView;

/// What one process publishes, and the way to everything else: make one, clone it everywhere.
///
/// ```
/// use holdgap::{Registry, Role};
///
/// let registry = Registry::new();
/// let worker = registry.runtime(Role::Interactive).worker(3);
/// let report = worker.report();
/// assert_eq!((report.hold_gap, report.held, report.published), (0, 0, 0));
/// ```
///
/// Nothing here starts a thread, opens a socket or touches a file.
#[derive(Clone)]
pub struct Registry {
    shared: Arc<RegistryShared>,
}

impl Registry {
    /// A registry with default options.
    pub fn new() -> Self {
        Self::with_options(RegistryOptions::default())
    }

    /// A registry with options of your own.
    pub fn with_options(options: RegistryOptions) -> Self {
        let workers = ArcSwap::from_pointee(Vec::new());
        let (adding, mirrors, collector) = (Mutex::new(()), OnceLock::new(), Collector::new());
        let shared = RegistryShared { options, workers, adding, mirrors, collector };
        Registry { shared: Arc::new(shared) }
    }

    /// The runtime of the given role. One atomic increment.
    pub fn runtime(&self, role: Role) -> Runtime {
        Runtime { registry: self.clone(), role }
    }

    /// The options that the registry was made with.
    pub fn options(&self) -> &RegistryOptions {
        &self.shared.options
    }

    /// One report for each (role, worker) that was ever asked for, in the order of the asking.
    ///
    /// Without peaks, which belong to whoever asks again and again: see [`scraper`](Self::scraper).
    ///
    /// No mutex, no pin; one pass over the records of each worker.
    pub fn reports(&self) -> Vec<HoldReport> {
        let workers = self.shared.workers.load_full();
        workers.iter().map(|worker| HoldReport::of(worker, None)).collect()
    }

    /// A consumer of all reports that sees the peaks between its own scrapes.
    pub fn scraper(&self) -> Scraper {
        Scraper::new(Arc::clone(&self.shared))
    }

    /// A page of all points of all workers, the worst first: `limit` of them after the first
    /// `offset`, and how many there are.
    ///
    /// As [`Worker::worst`], over all workers at once.
    pub fn page(&self, offset: usize, limit: usize) -> Page {
        let workers = self.shared.workers.load_full();
        select(workers.iter(), offset, limit)
    }

    /// A handle for each (role, worker) that was ever asked for, in the order of the asking.
    pub fn workers(&self) -> Vec<Worker> {
        let workers = self.shared.workers.load_full();
        workers.iter().map(|shared| Worker { shared: Arc::clone(shared) }).collect()
    }

    /// Shows every point of the registry, those that are there and those to come, in memory of
    /// `mirrors`, for other processes. Once in the life of a registry: returns whether it did.
    ///
    /// For `holdgap-segment`; an application attaches a segment by that. From here on a point's
    /// writer stores what it publishes there too: two dozen stores more for integer timestamps, no
    /// locks, no allocations. The call itself takes the mutexes that adding a point takes, and waits
    /// for no writer.
    pub fn mirror(&self, mirrors: Arc<dyn Mirrors>) -> bool {
        let _adding = lock(&self.shared.adding);
        if self.shared.mirrors.set(Arc::clone(&mirrors)).is_err() {
            return false;
        }
        for worker in self.shared.workers.load_full().iter() {
            worker.table.show_in(Arc::clone(&mirrors), worker.role.clone(), worker.index);
        }
        true
    }

    /// Notes in the mirror what only a look tells, and says of each worker what a segment keeps
    /// beside its points. No lock; one pass over the records.
    pub fn refresh_mirror(&self) -> Vec<WorkerState> {
        let state = |worker: &Arc<WorkerShared>| {
            let (points, not_shown) = worker.table.refresh_mirrors();
            WorkerState {
                role: worker.role.clone(),
                worker: worker.index,
                points,
                not_shown,
                measures: worker.measures(),
                invalid_pairs: worker.invalid_pairs.load(Ordering::Relaxed),
            }
        };
        self.shared.workers.load_full().iter().map(state).collect()
    }

    fn find(&self, role: &Role, index: usize) -> Option<Arc<WorkerShared>> {
        let workers = self.shared.workers.load_full();
        workers.iter().find(|worker| worker.index == index && worker.role == *role).cloned()
    }

    fn worker(&self, role: &Role, index: usize) -> Arc<WorkerShared> {
        if let Some(known) = self.find(role, index) {
            return known;
        }
        let _adding = lock(&self.shared.adding);
        if let Some(known) = self.find(role, index) {
            return known;
        }
        let worker = Arc::new(WorkerShared {
            role: role.clone(),
            index,
            prefix: self.shared.options.prefix.clone(),
            clock: self.shared.options.clock.clone(),
            table: SlotTable::new(self.shared.collector.clone(), self.shared.options.clock.clone()),
            invalid_pairs: AtomicU64::new(0),
            knows_physical: Told::default(),
            knows_upper: Told::default(),
            knows_holders: Told::default(),
            knows_queues: Told::default(),
            counts_pins: Told::default(),
        });
        if let Some(mirrors) = self.shared.mirrors.get() {
            worker.table.show_in(Arc::clone(mirrors), role.clone(), index);
        }
        let mut workers = self.shared.workers.load_full().to_vec();
        workers.push(Arc::clone(&worker));
        self.shared.workers.store(Arc::new(workers));
        worker
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("options", self.options())
            .field("workers", &self.workers())
            .finish()
    }
}

/// A timely runtime, known by its role: see [`Registry::runtime`].
#[derive(Clone, Debug)]
pub struct Runtime {
    registry: Registry,
    role: Role,
}

impl Runtime {
    /// The worker with the given timely index: the same one for the same index.
    ///
    /// Takes a mutex the first time, a scan of the known workers after that: keep the handle.
    pub fn worker(&self, index: usize) -> Worker {
        Worker { shared: self.registry.worker(&self.role, index) }
    }

    /// The role of the runtime.
    pub fn role(&self) -> &Role {
        &self.role
    }
}

/// A worker: what it publishes, and reports. A cheap handle: see [`Runtime::worker`].
#[derive(Clone)]
pub struct Worker {
    shared: Arc<WorkerShared>,
}

impl Worker {
    /// Adds a publication point under `id`, with a `name` for people.
    ///
    /// It stands at the minimum frontier on both sides, without a gap, until it is first set.
    /// Several points may carry one id: an arrangement dropped and made again is another point.
    ///
    /// # Cost
    ///
    /// The mutex of this worker's table (which no report takes) and five small allocations.
    pub fn publish<T: Distance>(
        &self,
        id: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
    ) -> Point<T> {
        Point::new(Arc::clone(&self.shared), id.into(), name.into())
    }

    /// A report of this worker's points, now, without a peak. Sets no gauge.
    ///
    /// # Cost
    ///
    /// One pass over the worker's records: no locks, no pins, and one allocation for the role.
    pub fn report(&self) -> HoldReport {
        HoldReport::of(&self.shared, None)
    }

    /// A reporter that reports at most once a second.
    pub fn reporter(&self) -> Reporter {
        self.reporter_with(ReporterOptions::default())
    }

    /// A reporter with options of your own.
    pub fn reporter_with(&self, options: ReporterOptions) -> Reporter {
        Reporter::new(Arc::clone(&self.shared), options)
    }

    /// All of this worker's points, the worst first: see [`worst`](Self::worst).
    pub fn points(&self) -> Vec<PointView> {
        self.worst(usize::MAX)
    }

    /// The `most` worst points of this worker, the worst first: held ones by their gap, largest
    /// first, then those that are held physically, then those that pin something, then the others.
    ///
    /// For people, not for a hot loop: several allocations for each point returned, and a scan.
    /// Takes no lock, and pins an epoch for at most a few hundred points at a time.
    pub fn worst(&self, most: usize) -> Vec<PointView> {
        select([&self.shared], 0, most).points
    }

    /// The role of the worker's runtime.
    pub fn role(&self) -> &Role {
        &self.shared.role
    }

    /// The timely index of the worker.
    pub fn index(&self) -> usize {
        self.shared.index
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("role", self.role())
            .field("index", &self.index())
            .finish_non_exhaustive()
    }
}
