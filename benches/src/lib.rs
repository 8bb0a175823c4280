//! The peer that holdgap is measured against, and what its benches share.
//!
//! [`MutexRegistry`] is the known way, written out: a process-wide map from (id, worker) to slots
//! under one mutex, a mutex inside each slot, and a reporter that, while it holds the map's mutex,
//! takes each slot's mutex twice and clones a frontier each time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdgap::{Point, Worker};
use timely::progress::Antichain;

/// Locks, also after a panic elsewhere.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One arrangement's slot in a [`MutexRegistry`].
#[derive(Debug)]
pub struct Slot {
    frontiers: Mutex<SlotFrontiers>,
}

#[derive(Debug)]
struct SlotFrontiers {
    requested: Antichain<u64>,
    applied: Antichain<u64>,
}

impl Slot {
    /// Replaces both frontiers.
    pub fn set(&self, requested: &Antichain<u64>, applied: &Antichain<u64>) {
        let mut frontiers = lock(&self.frontiers);
        frontiers.requested.clone_from(requested);
        frontiers.applied.clone_from(applied);
    }

    fn requested(&self) -> Antichain<u64> {
        lock(&self.frontiers).requested.clone()
    }

    fn applied(&self) -> Antichain<u64> {
        lock(&self.frontiers).applied.clone()
    }
}

/// The known way: everything under one mutex.
#[derive(Debug, Default)]
pub struct MutexRegistry {
    slots: Mutex<HashMap<(u64, usize), Arc<Slot>>>,
}

impl MutexRegistry {
    /// Gets or makes the slot of an arrangement on a worker: what runtimes do on their hot paths.
    pub fn slot(&self, id: u64, worker: usize) -> Arc<Slot> {
        let minimum = Antichain::from_elem(0);
        let make = || {
            let frontiers = SlotFrontiers { requested: minimum.clone(), applied: minimum };
            Arc::new(Slot { frontiers: Mutex::new(frontiers) })
        };
        Arc::clone(lock(&self.slots).entry((id, worker)).or_insert_with(make))
    }

    /// The largest gap, and how many have one, over one worker's slots.
    pub fn report(&self, worker: usize) -> (u64, u64) {
        let slots = lock(&self.slots);
        let (mut gap, mut held) = (0, 0);
        for ((_, _), slot) in slots.iter().filter(|((_, of), _)| *of == worker) {
            let requested = slot.requested();
            let applied = slot.applied();
            if requested != applied {
                held += 1;
                let (r, a) =
                    (requested.as_option().unwrap_or(&0), applied.as_option().unwrap_or(&0));
                gap = gap.max(r.saturating_sub(*a));
            }
        }
        (gap, held)
    }
}

/// The pair that arrangement `n` stands at: every third one is held.
pub fn pair(n: u64) -> (Antichain<u64>, Antichain<u64>) {
    let held = if n.is_multiple_of(3) { n % 97 + 1 } else { 0 };
    (Antichain::from_elem(1_000), Antichain::from_elem(1_000 - held))
}

/// A mutex registry with `count` arrangements of worker 0.
pub fn peer(count: u64) -> MutexRegistry {
    let registry = MutexRegistry::default();
    for n in 0..count {
        let (requested, applied) = pair(n);
        registry.slot(n, 0).set(&requested, &applied);
    }
    registry
}

/// As many points of `worker`.
pub fn points(worker: &Worker, count: u64) -> Vec<Point<u64>> {
    let point = |n: u64| {
        let mut point = worker.publish(n.to_string(), "arrangement");
        let (requested, applied) = pair(n);
        point.set(&requested, &applied);
        point
    };
    (0..count).map(point).collect()
}

/// Runs `work` while so many threads call `report` a hundred times a second each.
pub fn beside_reporters<R>(
    reporters: usize,
    report: impl Fn() + Sync,
    work: impl FnOnce() -> R,
) -> R {
    const PERIOD: Duration = Duration::from_millis(10);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..reporters {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    report();
                    std::thread::sleep(PERIOD);
                }
            });
        }
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    })
}

/// The middle of some durations.
pub fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort_unstable();
    durations.get(durations.len() / 2).copied().unwrap_or_default()
}

/// One line that says how much faster or slower the first is.
pub fn ratio_line(question: &str, holdgap: Duration, peer: Duration) -> String {
    let ratio = holdgap.as_secs_f64() / peer.as_secs_f64();
    format!(
        "{question}: holdgap {holdgap:?}, peer {peer:?}, ratio {ratio:.4} ({:.1}x)",
        1.0 / ratio
    )
}
