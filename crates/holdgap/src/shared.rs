//! What the handles of one worker share: its points, its reporters, its reports.

use crate::role::Role;
use crate::sync::AtomicU64;
use crate::table::SlotTable;

/// What the handles of one (role, worker) share.
pub(crate) struct WorkerShared {
    pub(crate) role: Role,
    pub(crate) index: usize,
    pub(crate) prefix: String,
    pub(crate) table: SlotTable,
    pub(crate) invalid_pairs: AtomicU64,
}
