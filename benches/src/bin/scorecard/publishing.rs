//! What a worker pays: a throttled tick, a publication, a point added and removed.

use std::hint::black_box;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use arc_swap::ArcSwap;
use holdgap::{FrontierPair, Registry, Role};
use holdgap_benches::points;
use timely::progress::Antichain;

use crate::allocations::allocations;
use crate::measure::in_turn;
use crate::row::{Row, Target};

const TIMES: usize = 101;
const OPERATIONS: u64 = 10_000;

fn at(time: u64) -> Antichain<u64> {
    Antichain::from_elem(time)
}

/// A throttled tick, beside reading the clock.
pub(crate) fn tick() -> Vec<Row> {
    let reporter = Registry::new().runtime(Role::Solo).worker(0).reporter();
    let now = Instant::now();
    reporter.tick(now);
    let tick = || {
        for _ in 0..OPERATIONS {
            black_box(reporter.tick(black_box(now)).is_some());
        }
    };
    let clock = || {
        for _ in 0..OPERATIONS {
            black_box(Instant::now());
        }
    };
    let (holdgap, peer) = in_turn(TIMES, OPERATIONS, tick, clock);
    vec![Row::of("throttled tick, Instant::now", "ns", holdgap, peer, Target::AtMost(0.2))]
}

/// Publishing a pair, unchanged and changed.
pub(crate) fn publish() -> Vec<Row> {
    let worker = Registry::new().runtime(Role::Maintenance).worker(0);
    let mut point = worker.publish("u1", "arrangement");
    let (requested, applied) = (at(7), at(5));
    point.set(&requested, &applied);
    let mutex = Mutex::new(7_u64);
    let unchanged = || {
        for _ in 0..OPERATIONS {
            point.set(black_box(&requested), black_box(&applied));
        }
    };
    let lock = || {
        for _ in 0..OPERATIONS {
            drop(black_box(mutex.lock()));
        }
    };
    let (holdgap, peer) = in_turn(TIMES, OPERATIONS, unchanged, lock);
    let name = "publish unchanged, mutex lock and unlock";
    let mut rows = vec![Row::of(name, "ns", holdgap, peer, Target::AtMost(1.0))];
    for threads in [1, 8, 64] {
        rows.extend(changed(threads));
    }
    rows
}

/// Publishing changed pairs while so many threads have used arc-swap.
fn changed(threads: usize) -> [Row; 2] {
    let pair = |n: u64| FrontierPair { requested: at(n), applied: at(n) };
    let swap = ArcSwap::from_pointee(pair(0));
    std::thread::scope(|scope| {
        let (release, ready) = (mpsc::channel::<()>(), mpsc::channel());
        let (release, released) = release;
        let released = Arc::new(Mutex::new(released));
        for _ in 1..threads {
            let (released, ready, swap) = (Arc::clone(&released), ready.0.clone(), &swap);
            scope.spawn(move || {
                drop(swap.load_full());
                let _ = ready.send(());
                // Ends when the sender goes.
                let _ = released.lock().map(|released| released.recv());
            });
        }
        for _ in 1..threads {
            let _ = ready.1.recv();
        }
        let worker = Registry::new().runtime(Role::Maintenance).worker(0);
        let mut point = worker.publish("u1", "arrangement");
        let (mut ours, mut theirs, mut made) = (1, 1, 0);
        let publish = || {
            let before = allocations();
            for _ in 0..OPERATIONS {
                ours += 1;
                point.set(black_box(&at(ours)), black_box(&at(ours)));
            }
            made = allocations() - before;
        };
        let store = || {
            for _ in 0..OPERATIONS {
                theirs += 1;
                swap.store(Arc::new(black_box(pair(theirs))));
            }
        };
        let (holdgap, peer) = in_turn(TIMES, OPERATIONS, publish, store);
        drop(release);
        let name = format!("publish changed, {threads} threads, ArcSwap::store");
        let allocated = format!("publish changed, {threads} threads, allocations of {OPERATIONS}");
        let made = made as f64;
        [
            Row::of(name, "ns", holdgap, peer, Target::AtMost(1.2)),
            Row::with_ratio(allocated, "", made, OPERATIONS as f64, made, Target::AtMost(0.0)),
        ]
    })
}

/// Adding and removing a point, among many and among few.
pub(crate) fn add_and_remove() -> Vec<Row> {
    let worker = |count| {
        let worker = Registry::new().runtime(Role::Maintenance).worker(0);
        let points = points(&worker, count);
        (worker, points)
    };
    let ((many, _many), (few, _few)) = (worker(100_000), worker(100));
    let work = |worker: &holdgap::Worker| {
        for _ in 0..1_000 {
            drop(black_box(worker.publish::<u64>("u1", "passing")));
        }
    };
    let (holdgap, peer) = in_turn(TIMES, 1_000, || work(&many), || work(&few));
    let name = "add and remove, among 100,000, among 100";
    vec![Row::of(name, "ns", holdgap, peer, Target::AtMost(2.0))]
}
