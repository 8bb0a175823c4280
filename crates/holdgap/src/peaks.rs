//! Peaks: the largest gap since each consumer last looked, however short it was.
//!
//! # The protocol
//!
//! There are a few *consumers*, and each record has a peak for each of them. A writer that changes a
//! gap raises the peak of every consumer there is to the gap before and the gap after, so that a gap
//! that a consumer saw at its last look counts as long as it lasted. A consumer takes its own peak
//! by swapping in a zero, and so takes nothing from the others. A point that is removed leaves its
//! peaks behind in the table, for consumers that have not looked since.
//!
//! *Orderings*: relaxed throughout. A raise and a take are read-modify-writes of one word, so neither
//! can lose the other, and nothing else is published through them.

use crate::sync::{AtomicU64, Ordering};

/// How many consumers a worker's peaks may have at a time.
pub(crate) const CONSUMERS: usize = 4;

/// A peak for each consumer.
#[derive(Default)]
pub(crate) struct Peaks([AtomicU64; CONSUMERS]);

impl Peaks {
    /// Raises the peaks of the consumers in `mask` to `gap`. A load for each, and a
    /// read-modify-write where it is a new peak.
    #[inline]
    pub(crate) fn raise(&self, mask: u64, gap: u64) {
        for (consumer, peak) in self.0.iter().enumerate() {
            if mask & (1 << consumer) != 0 && peak.load(Ordering::Relaxed) < gap {
                peak.fetch_max(gap, Ordering::Relaxed);
            }
        }
    }

    /// Takes a consumer's peak.
    #[inline]
    pub(crate) fn take(&self, consumer: usize) -> u64 {
        let peak = &self.0[consumer];
        // Most have none: leave their cache lines alone.
        if peak.load(Ordering::Relaxed) == 0 { 0 } else { peak.swap(0, Ordering::Relaxed) }
    }

    /// Moves all peaks over to `other`.
    pub(crate) fn leave_to(&self, other: &Peaks) {
        for consumer in 0..CONSUMERS {
            other.raise(1 << consumer, self.take(consumer));
        }
    }
}
