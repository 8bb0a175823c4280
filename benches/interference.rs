//! What reporters do to a thread that uses the registry: its operations a second with eight of them
//! reporting a hundred times a second each, against none.
//!
//! Beside the mutex registry stands what a runtime does with holdgap in the same place: it publishes
//! through a handle that it has.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]
#![allow(clippy::print_stdout, reason = "prints the ratio")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use holdgap::{Registry, Role};
use holdgap_benches::{beside_reporters, median, peer, points};
use timely::progress::Antichain;

const REPORTERS: usize = 8;
const OPERATIONS: u64 = 200_000;

fn timed(mut operation: impl FnMut(u64)) -> Duration {
    let start = Instant::now();
    for n in 0..OPERATIONS {
        operation(n);
    }
    start.elapsed()
}

fn interference(c: &mut Criterion) {
    let mut group = c.benchmark_group("interference");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    for count in [31, 1_000, 10_000] {
        let mutexes = peer(count);
        let worker = Registry::new().runtime(Role::Maintenance).worker(0);
        let mut points = points(&worker, count);
        let at = |time: u64| Antichain::from_elem(time);
        let mut publish = |n: u64| {
            let point = &mut points[(n % count) as usize];
            point.set(black_box(&at(2_000 + n)), black_box(&at(2_000 + n)));
        };
        let look_up = |n: u64| drop(black_box(mutexes.slot(n % count, 0)));
        let (mut lines, report) = (Vec::new(), || drop(worker.report()));
        let peer_report = || {
            black_box(mutexes.report(0));
        };
        for reporters in [0, REPORTERS] {
            let id = |name| BenchmarkId::new(format!("{name}/{reporters} reporters"), count);
            group.bench_function(id("holdgap"), |b| {
                beside_reporters(reporters, report, || b.iter(|| timed(&mut publish)));
            });
            group.bench_function(id("mutex registry"), |b| {
                beside_reporters(reporters, peer_report, || b.iter(|| timed(look_up)));
            });
        }
        let (mut ours, mut theirs) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for _ in 0..5 {
            for (i, reporters) in [0, REPORTERS].into_iter().enumerate() {
                ours[i].push(beside_reporters(reporters, report, || timed(&mut publish)));
                theirs[i].push(beside_reporters(reporters, peer_report, || timed(look_up)));
            }
        }
        for (name, times) in [("holdgap", ours), ("mutex registry", theirs)] {
            let [without, with] = times.map(median);
            let ratio = without.as_secs_f64() / with.as_secs_f64();
            lines.push(format!("interference/{count}, {name}: throughput ratio {ratio:.3}"));
        }
        lines.iter().for_each(|line| println!("{line}"));
    }
    group.finish();
}

criterion_group!(benches, interference);
criterion_main!(benches);
