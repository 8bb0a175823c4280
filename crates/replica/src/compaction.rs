//! Compaction commands: readers first, then the owner.
//!
//! The interactive runtime hears of a compaction first and moves its standing holds. The maintenance
//! runtime hears of it when every interactive worker has; or with the next round, whatever the
//! interactive workers do. So a reading runtime that keeps up holds nothing back, and one that lags
//! by more than a round shows as a gap, as long as it lags.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use timely::progress::Antichain;

use crate::churn::ArrangementId;
use crate::command::{CommandSender, Maintain, Time};

/// The compactions that the maintenance runtime has not been told of.
pub(crate) struct Compactions {
    maintenance: Arc<CommandSender<Maintain>>,
    waiting: Mutex<BTreeMap<Time, Waiting>>,
}

struct Waiting {
    ids: Arc<Vec<ArrangementId>>,
    /// How many interactive workers have not heard of it yet.
    unheard: usize,
}

impl Compactions {
    pub(crate) fn new(maintenance: Arc<CommandSender<Maintain>>) -> Self {
        Compactions { maintenance, waiting: Mutex::default() }
    }

    /// A compaction that so many interactive workers are about to hear of. Those that wait from
    /// earlier rounds have waited long enough.
    pub(crate) fn begin(&self, time: Time, ids: Arc<Vec<ArrangementId>>, workers: usize) {
        let overdue = {
            let mut waiting = self.lock();
            let overdue = std::mem::take(&mut *waiting);
            waiting.insert(time, Waiting { ids, unheard: workers });
            overdue
        };
        for (time, Waiting { ids, .. }) in overdue {
            self.tell(time, ids);
        }
    }

    /// An interactive worker has moved its standing holds.
    pub(crate) fn heard(&self, time: Time) {
        let heard_by_all = {
            let mut waiting = self.lock();
            let Some(compaction) = waiting.get_mut(&time) else { return };
            compaction.unheard -= 1;
            if compaction.unheard > 0 {
                return;
            }
            waiting.remove(&time)
        };
        if let Some(Waiting { ids, .. }) = heard_by_all {
            self.tell(time, ids);
        }
    }

    fn tell(&self, time: Time, ids: Arc<Vec<ArrangementId>>) {
        self.maintenance.send(&Maintain::AllowCompaction(ids, Antichain::from_elem(time)));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Time, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
