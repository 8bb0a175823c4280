//! What a trace's batches say of themselves: how many are alive, and when two became one.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts over all batches that one trace ever took in or made.
///
/// Batches carry it with them, so that a batch that the trace has replaced is still counted for as
/// long as any clone of it is alive, on whatever thread it ends. Relaxed throughout: these are
/// counts, and nothing is published through them.
#[derive(Debug, Default)]
pub struct Meter {
    batches: AtomicU64,
    updates: AtomicU64,
    merges: AtomicU64,
}

impl Meter {
    pub(crate) fn born(&self, updates: usize) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.updates.fetch_add(updates as u64, Ordering::Relaxed);
    }

    pub(crate) fn died(&self, updates: usize) {
        self.batches.fetch_sub(1, Ordering::Relaxed);
        self.updates.fetch_sub(updates as u64, Ordering::Relaxed);
    }

    pub(crate) fn merged(&self) {
        self.merges.fetch_add(1, Ordering::Relaxed);
    }

    /// How many batches are alive.
    pub fn batches(&self) -> u64 {
        self.batches.load(Ordering::Relaxed)
    }

    /// How many updates the batches have that are alive.
    pub fn updates(&self) -> u64 {
        self.updates.load(Ordering::Relaxed)
    }

    /// How many merges have completed.
    pub(crate) fn merges(&self) -> u64 {
        self.merges.load(Ordering::Relaxed)
    }
}
