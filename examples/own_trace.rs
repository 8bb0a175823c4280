//! Embedding holdgap beside a trace of one's own, without differential dataflow.
//!
//! Any structure that forgets history up to a frontier, and waits for readers to let it, has a
//! requested and an applied frontier. This one is a log that keeps entries by time, drops those that
//! nobody needs, and lets cursors hold it back.
//!
//! ```console
//! $ cargo run -p holdgap-examples --example own_trace
//! ```

#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use holdgap::{Point, Registry, Role, Worker};
use metrics_exporter_prometheus::PrometheusBuilder;
use timely::progress::Antichain;

/// A log whose entries are forgotten up to the meet of what its owner allows and its cursors hold.
struct Log {
    entries: VecDeque<(u64, String)>,
    allowed: u64,
    cursors: BTreeMap<&'static str, u64>,
    point: Point<u64>,
}

impl Log {
    fn new(worker: &Worker) -> Self {
        let point = worker.publish("log-1", "audit log");
        Log { entries: VecDeque::new(), allowed: 0, cursors: BTreeMap::new(), point }
    }

    fn append(&mut self, time: u64, entry: String) {
        self.entries.push_back((time, entry));
    }

    fn allow_forgetting(&mut self, time: u64) {
        self.allowed = time;
        let applied = self.cursors.values().copied().fold(time, u64::min);
        while self.entries.front().is_some_and(|(at, _)| *at < applied) {
            self.entries.pop_front();
        }
        // The only line that holdgap asks for. Unchanged frontiers cost a comparison.
        self.point.set(&Antichain::from_elem(self.allowed), &Antichain::from_elem(applied));
    }
}

fn main() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let gauges = recorder.handle();
    let registry = Registry::new();
    let worker = registry.runtime(Role::Solo).worker(0);
    let mut log = Log::new(&worker);
    let reporter = worker.reporter();
    let start = Instant::now();
    metrics::with_local_recorder(&recorder, || {
        log.cursors.insert("backup", 20);
        for time in 0..100 {
            log.append(time, format!("entry {time}"));
            log.allow_forgetting(time);
            // At any rate: it reports once a second of the time it is given.
            if let Some(report) = reporter.tick(start + Duration::from_millis(100) * time as u32) {
                let (gap, kept) = (report.hold_gap, log.entries.len());
                println!("at {time:>2}: gap {gap:>2}, {kept:>2} entries kept");
            }
        }
        log.cursors.clear();
        log.allow_forgetting(99);
        println!(
            "after:  gap {:>2}, {:>2} entries kept",
            reporter.report().hold_gap,
            log.entries.len()
        );
    });
    println!("\n{}", gauges.render());
}
