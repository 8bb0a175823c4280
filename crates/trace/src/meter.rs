//! What a trace's batches say of themselves: how many it has, and how many it has let go of that
//! others still keep alive.
//!
//! # The protocol
//!
//! Every batch that a trace takes in or makes carries its trace's meter. The trace *owns* a batch
//! from then on until the batch is merged into another one, or the trace ends. A batch that is no
//! longer owned and still alive is *pinned*: the count goes up where ownership ends, on the trace's
//! thread, and down where the batch's last clone is dropped, on whatever thread that is. A batch
//! that nobody else has dies a moment after its ownership ends.
//!
//! Nothing is done for an update or at an insertion beyond counting the batch. Relaxed throughout:
//! these are sums, and nothing is published through them.

use std::sync::atomic::{AtomicU64, Ordering};

use holdgap::{Pinned, Pins};

/// Counts over all batches that one trace ever took in or made.
#[derive(Debug, Default)]
pub struct Meter {
    owned: Count,
    /// May be below zero for the moment between the last clone's end and the trace's.
    pinned: Count,
    merges: AtomicU64,
}

/// How many batches, and how many updates these have.
#[derive(Debug, Default)]
struct Count {
    batches: AtomicU64,
    updates: AtomicU64,
}

impl Count {
    fn add(&self, batches: u64, updates: u64) {
        self.batches.fetch_add(batches, Ordering::Relaxed);
        self.updates.fetch_add(updates, Ordering::Relaxed);
    }

    fn sub(&self, batches: u64, updates: u64) {
        self.batches.fetch_sub(batches, Ordering::Relaxed);
        self.updates.fetch_sub(updates, Ordering::Relaxed);
    }

    fn get(&self) -> (u64, u64) {
        // Read as signed: see `pinned` above.
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed).cast_signed().max(0);
        (get(&self.batches).cast_unsigned(), get(&self.updates).cast_unsigned())
    }
}

impl Meter {
    /// The trace took in a batch.
    pub(crate) fn took_in(&self, updates: usize) {
        self.owned.add(1, updates as u64);
    }

    /// The trace merged two batches into one, or into none where all cancelled.
    pub(crate) fn merged(&self, sources: usize, result: Option<usize>) {
        self.pinned.add(2, sources as u64);
        self.owned.sub(2, sources as u64);
        if let Some(updates) = result {
            self.owned.add(1, updates as u64);
        }
        self.merges.fetch_add(1, Ordering::Relaxed);
    }

    /// The trace is ending.
    pub(crate) fn disowned(&self) {
        let (batches, updates) = self.owned.get();
        self.pinned.add(batches, updates);
        self.owned.sub(batches, updates);
    }

    /// The last clone of a batch was dropped.
    pub(crate) fn died(&self, updates: usize) {
        self.pinned.sub(1, updates as u64);
    }

    /// How many batches are alive: the trace's own, and those pinned.
    pub fn batches(&self) -> u64 {
        self.owned.get().0 + self.pinned.get().0
    }

    /// How many updates the batches have that are alive.
    pub fn updates(&self) -> u64 {
        self.owned.get().1 + self.pinned.get().1
    }

    /// How many merges have completed.
    pub(crate) fn merges(&self) -> u64 {
        self.merges.load(Ordering::Relaxed)
    }
}

impl Pinned for Meter {
    fn pins(&self) -> Pins {
        let (batches, updates) = self.pinned.get();
        Pins { batches, updates }
    }
}
