//! Consumers of peaks: reporters and scrapers, each with a peak of its own in every record.

use crate::peaks::CONSUMERS;
use crate::shared::WorkerShared;
use crate::sync::{Arc, Ordering};

/// The right to one of the peaks of a worker's points, given back when dropped.
pub(crate) struct Consumer {
    worker: Arc<WorkerShared>,
    index: usize,
}

impl Consumer {
    /// `None` if there are [`CONSUMERS`] already.
    pub(crate) fn new(worker: Arc<WorkerShared>) -> Option<Self> {
        let free = |mask: u64| {
            let index = (!mask).trailing_zeros() as usize;
            (index < CONSUMERS).then_some(index)
        };
        let claim = |mask| free(mask).map(|index| mask | 1 << index);
        let (relaxed, mask) = (Ordering::Relaxed, &worker.table.consumers);
        let index = mask.fetch_update(relaxed, relaxed, claim).ok().and_then(free)?;
        let consumer = Consumer { worker, index };
        // What an earlier consumer with this index left is not this one's.
        consumer.worker.table.scan(|_, record| {
            record.take_peak(index);
        });
        consumer.worker.table.left_behind.take(index);
        Some(consumer)
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.worker.table.consumers.fetch_and(!(1 << self.index), Ordering::Relaxed);
    }
}
