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
//! So that a look need not visit every peak, the record's head has a bit for each consumer, set when
//! its peak was raised. A raise stores the peak, then sets the bit; a take clears the bit, then takes
//! the peak.
//!
//! *Orderings*: peaks are relaxed: a raise and a take are read-modify-writes of one word, so neither
//! can lose the other. The bit's release in a raise pairs with its acquire in a take. A raise that
//! set the bit before a take cleared it is seen by that take; one that set it after is left, with
//! its bit, for the next. A raise that finds a peak as large already leaves bit and peak alone: the
//! raise that made that peak set the bit, and no take that has cleared it since can have missed it.

use crate::sync::{AtomicU64, Ordering};

/// How many consumers a worker's peaks may have at a time.
pub(crate) const CONSUMERS: usize = 4;

/// A peak for each consumer.
#[derive(Default)]
pub(crate) struct Peaks([AtomicU64; CONSUMERS]);

impl Peaks {
    /// Raises the peaks of the consumers in `mask` to `gap`, and their bits in `raised`. A load for
    /// each, and two read-modify-writes where it is a new peak.
    #[inline]
    pub(crate) fn raise(&self, raised: &AtomicU64, mask: u64, gap: u64) {
        for (consumer, peak) in self.0.iter().enumerate() {
            if mask & (1 << consumer) != 0 && peak.load(Ordering::Relaxed) < gap {
                peak.fetch_max(gap, Ordering::Relaxed);
                // Pairs with the acquire in `take`.
                raised.fetch_or(1 << consumer, Ordering::Release);
            }
        }
    }

    /// Takes a consumer's peak.
    #[inline]
    pub(crate) fn take(&self, raised: &AtomicU64, consumer: usize) -> u64 {
        let bit = 1 << consumer;
        // Most have none: leave their cache lines alone.
        if raised.load(Ordering::Relaxed) & bit == 0 {
            return 0;
        }
        // Pairs with the release in `raise`.
        raised.fetch_and(!bit, Ordering::Acquire);
        self.0[consumer].swap(0, Ordering::Relaxed)
    }
}
