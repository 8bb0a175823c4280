//! A report over all of a worker's points, against the mutex registry's.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]
#![allow(clippy::print_stdout, reason = "prints the ratio")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use holdgap::{Registry, Role};
use holdgap_benches::{median, peer, points, ratio_line};

fn time(mut work: impl FnMut()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn report(c: &mut Criterion) {
    let mut group = c.benchmark_group("report");
    group.sample_size(20).measurement_time(Duration::from_secs(2));
    for count in [31, 1_000, 10_000] {
        let mutexes = peer(count);
        let worker = Registry::new().runtime(Role::Maintenance).worker(0);
        let _points = points(&worker, count);
        let ours = worker.report();
        assert_eq!((ours.hold_gap, ours.held), mutexes.report(0), "they measure the same");
        group.throughput(Throughput::Elements(count));
        group.bench_with_input(BenchmarkId::new("holdgap", count), &count, |b, _| {
            b.iter(|| black_box(worker.report()));
        });
        group.bench_with_input(BenchmarkId::new("mutex registry", count), &count, |b, _| {
            b.iter(|| black_box(mutexes.report(0)));
        });
        // In turn, so that both see the same machine.
        let (mut holdgap, mut known) = (Vec::new(), Vec::new());
        for _ in 0..101 {
            holdgap.push(time(|| drop(black_box(worker.report()))));
            known.push(time(|| {
                black_box(mutexes.report(0));
            }));
        }
        println!("{}", ratio_line(&format!("report/{count}"), median(holdgap), median(known)));
    }
    group.finish();
}

criterion_group!(benches, report);
criterion_main!(benches);
