//! How many instructions the hot operations take, under valgrind's callgrind: the same number on a
//! noisy machine.
//!
//! ```console
//! $ bash benches/instructions
//! ```

#![allow(missing_docs, reason = "the macros make undocumented functions")]

use std::hint::black_box;
use std::time::Instant;

use gungraun::prelude::*;
use holdgap::{Point, Registry, Reporter, Role, Worker};
use holdgap_benches::points;
use timely::progress::Antichain;

fn worker() -> Worker {
    Registry::new().runtime(Role::Maintenance).worker(0)
}

fn point() -> Point<u64> {
    let mut point = worker().publish("u1", "arrangement");
    // In its steady state: two snapshots take turns.
    for time in 1..4 {
        point.set(&Antichain::from_elem(time), &Antichain::from_elem(time));
    }
    point
}

fn ticked() -> (Reporter, Instant) {
    let (reporter, now) = (worker().reporter(), Instant::now());
    reporter.tick(now);
    (reporter, now)
}

fn thousand() -> (Worker, Vec<Point<u64>>) {
    let worker = worker();
    let points = points(&worker, 1_000);
    (worker, points)
}

#[library_benchmark]
#[bench::steady(point())]
fn publish_changed(mut point: Point<u64>) -> Point<u64> {
    let frontier = Antichain::from_elem(7);
    point.set(black_box(&frontier), black_box(&frontier));
    point
}

#[library_benchmark]
#[bench::steady(point())]
fn publish_unchanged(mut point: Point<u64>) -> Point<u64> {
    let frontier = Antichain::from_elem(3);
    point.set(black_box(&frontier), black_box(&frontier));
    point
}

#[library_benchmark]
#[bench::throttled(ticked())]
fn tick((reporter, now): (Reporter, Instant)) -> (Reporter, bool) {
    let reported = reporter.tick(black_box(now)).is_some();
    (reporter, reported)
}

#[library_benchmark]
#[bench::thousand(thousand())]
fn scan(held: (Worker, Vec<Point<u64>>)) -> (Worker, Vec<Point<u64>>) {
    black_box(held.0.report());
    held
}

library_benchmark_group!(name = hot, benchmarks = [publish_changed, publish_unchanged, tick, scan]);
main!(library_benchmark_groups = hot);
