//! What handles share: those of one registry, and those of one worker.

use arc_swap::ArcSwap;
use crossbeam_epoch::Collector;

use crate::clock::Clock;
use crate::layout::Mirrors;
use crate::measures::Measures;
use crate::options::RegistryOptions;
use crate::role::Role;
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, OnceLock, Ordering};
use crate::table::SlotTable;

/// What every clone of a [`Registry`](crate::Registry) shares.
pub(crate) struct RegistryShared {
    pub(crate) options: RegistryOptions,
    /// Replaced as a whole when a worker is added, so that a scrape walks it without the mutex.
    pub(crate) workers: ArcSwap<Vec<Arc<WorkerShared>>>,
    /// Admits one replacer of `workers` at a time.
    pub(crate) adding: Mutex<()>,
    /// Where points are shown to other processes.
    pub(crate) mirrors: OnceLock<Arc<dyn Mirrors>>,
    /// This registry's own: what foreign users of the default collector do cannot slow it down.
    pub(crate) collector: Collector,
}

/// What the handles of one (role, worker) share.
pub(crate) struct WorkerShared {
    pub(crate) role: Role,
    pub(crate) index: usize,
    pub(crate) prefix: String,
    pub(crate) clock: Clock,
    pub(crate) table: SlotTable,
    pub(crate) invalid_pairs: AtomicU64,
    /// Whether any of its publishers ever said where it stands physically.
    pub(crate) knows_physical: Told,
    /// Whether any of its publishers ever said what it has sealed.
    pub(crate) knows_upper: Told,
    /// Whether any of its publishers ever said who holds.
    pub(crate) knows_holders: Told,
    /// Whether any of its publishers ever said what waits in queues.
    pub(crate) knows_queues: Told,
    /// Whether any of its publishers counts what its trace pins.
    pub(crate) counts_pins: Told,
}

/// Whether something was ever told. Relaxed: nothing else is published through it.
#[derive(Default)]
pub(crate) struct Told(AtomicBool);

impl Told {
    /// Remembers it, if `told`. A load, and one store in the life of a worker.
    #[inline]
    pub(crate) fn note(&self, told: bool) {
        if told && !self.get() {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl WorkerShared {
    /// What its publishers measure, so far as they have said.
    pub(crate) fn measures(&self) -> Measures {
        Measures {
            physical: self.knows_physical.get(),
            lag: self.knows_upper.get(),
            holders: self.knows_holders.get(),
            pins: self.counts_pins.get(),
            queues: self.knows_queues.get(),
        }
    }
}
