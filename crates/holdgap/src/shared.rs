//! What the handles of one worker share: its points, its reporters, its reports.

use crate::role::Role;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::table::SlotTable;

/// What the handles of one (role, worker) share.
pub(crate) struct WorkerShared {
    pub(crate) role: Role,
    pub(crate) index: usize,
    pub(crate) prefix: String,
    pub(crate) table: SlotTable,
    pub(crate) invalid_pairs: AtomicU64,
    /// Whether any of its publishers ever said where it stands physically.
    pub(crate) knows_physical: Told,
    /// Whether any of its publishers ever said what it has sealed.
    pub(crate) knows_upper: Told,
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
