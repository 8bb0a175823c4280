//! Publishing a pair, changed and unchanged, against a slot of the mutex registry.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]
#![allow(clippy::print_stdout, reason = "prints the ratio")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use holdgap::{Registry, Role};
use holdgap_benches::{median, peer, ratio_line};
use timely::progress::Antichain;

const BATCH: u64 = 1_000;

fn publish(c: &mut Criterion) {
    let mut group = c.benchmark_group("publish");
    group.sample_size(30).measurement_time(Duration::from_secs(2));
    let worker = Registry::new().runtime(Role::Maintenance).worker(0);
    let mut point = worker.publish("u1", "arrangement");
    let mutexes = peer(1);
    let at = |time: u64| Antichain::from_elem(time);
    let (mut ours, mut theirs) = (0, 0);
    group.bench_function("holdgap/changed", |b| {
        b.iter(|| {
            ours += 1;
            point.set(black_box(&at(ours)), black_box(&at(ours)));
        });
    });
    group.bench_function("mutex registry/changed", |b| {
        b.iter(|| {
            theirs += 1;
            mutexes.slot(0, 0).set(black_box(&at(theirs)), black_box(&at(theirs)));
        });
    });
    group.bench_function("holdgap/unchanged", |b| {
        b.iter(|| point.set(black_box(&at(ours)), black_box(&at(ours))));
    });
    group.bench_function("mutex registry/unchanged", |b| {
        b.iter(|| mutexes.slot(0, 0).set(black_box(&at(theirs)), black_box(&at(theirs))));
    });
    group.finish();

    for (question, step) in [("publish/changed", 1), ("publish/unchanged", 0)] {
        let (mut holdgap, mut known) = (Vec::new(), Vec::new());
        for _ in 0..101 {
            let start = Instant::now();
            for _ in 0..BATCH {
                ours += step;
                point.set(black_box(&at(ours)), black_box(&at(ours)));
            }
            holdgap.push(start.elapsed());
            let start = Instant::now();
            for _ in 0..BATCH {
                theirs += step;
                mutexes.slot(0, 0).set(black_box(&at(theirs)), black_box(&at(theirs)));
            }
            known.push(start.elapsed());
        }
        let question = format!("{question}, {BATCH} times");
        println!("{}", ratio_line(&question, median(holdgap), median(known)));
    }
}

criterion_group!(benches, publish);
criterion_main!(benches);
