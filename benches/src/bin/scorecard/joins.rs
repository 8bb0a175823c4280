//! A join over imports of another runtime, beside one over differential's own imports.

use std::time::{Duration, Instant};

use differential_dataflow::input::InputSession;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::TraceReader;
use holdgap::Registry;
use holdgap_benches::median;
use holdgap_trace::{ArrangeShared, Reader, Sharing, ValBatch};
use timely::WorkerConfig;
use timely::communication::allocator::{Allocator, thread::Thread};
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::Probe;
use timely::progress::Antichain;
use timely::worker::Worker;

use crate::measure::{per, random};
use crate::row::{Row, Target};

const KEYS: u64 = 300_000;
const ROUNDS: u64 = 20;

/// A runtime of one worker, stepped by hand.
pub(crate) fn new_worker() -> Worker {
    let allocator = Allocator::Thread(Thread::default());
    Worker::new(WorkerConfig::default(), allocator, Some(Instant::now()))
}

type Input = InputSession<u64, (u64, u64), isize>;

/// Fills two arrangements with the same rows for everyone, and seals them.
///
/// `merge` lets the owner's handles say, after each round, how far merging may go.
fn fill(
    worker: &mut Worker,
    inputs: &mut [Input; 2],
    probe: &ProbeHandle<u64>,
    mut merge: impl FnMut(u64),
) {
    let mut seed = 0x2545_f491_4f6c_dd1d;
    for round in 0..ROUNDS {
        for input in inputs.iter_mut() {
            for _ in 0..KEYS / ROUNDS {
                input.update((random(&mut seed) % KEYS, random(&mut seed) % 8), 1);
            }
            input.advance_to(round + 1);
            input.flush();
        }
        while probe.less_than(&(round + 1)) {
            worker.step();
        }
        merge(round + 1);
    }
}

/// Steps `worker` until the join is done up to where its inputs are sealed.
fn finish(worker: &mut Worker, probe: &ProbeHandle<u64>) -> Duration {
    let start = Instant::now();
    while probe.less_than(&ROUNDS) {
        worker.step();
    }
    start.elapsed()
}

fn shared() -> Duration {
    let (mut maintenance, mut interactive) = (new_worker(), new_worker());
    let sharing = Sharing::new(&Registry::new());
    let (mut inputs, probe) = ([Input::new(), Input::new()], ProbeHandle::new());
    let _published = maintenance.dataflow(|scope| {
        ["u1", "u2"]
            .into_iter()
            .zip(&mut inputs)
            .map(|(id, input)| {
                let rows = input.to_collection(scope).arrange_shared_by_key(id);
                let published = sharing.publish(id, &rows).expect("used once");
                rows.stream.probe_with(&probe);
                published
            })
            .collect::<Vec<_>>()
    });
    fill(&mut maintenance, &mut inputs, &probe, |_| {});
    let done = ProbeHandle::new();
    interactive.dataflow(|scope| {
        let [left, right] = ["u1", "u2"].map(|id| {
            let reader: Reader<ValBatch<u64, u64, u64, isize>> =
                sharing.reader(id, 0).expect("it is published");
            reader.import(scope, id, Antichain::new())
        });
        left.join_core(right, |key, left, right| Some((*key, *left, *right))).probe_with(&done);
    });
    finish(&mut interactive, &done)
}

fn own() -> Duration {
    let mut worker = new_worker();
    let (mut inputs, probe) = ([Input::new(), Input::new()], ProbeHandle::new());
    let mut traces = worker.dataflow(|scope| {
        let [left, right] = &mut inputs;
        [left, right].map(|input| {
            let rows: Arranged<'_, TraceAgent<_>> = input.to_collection(scope).arrange_by_key();
            rows.stream.probe_with(&probe);
            rows.trace
        })
    });
    fill(&mut worker, &mut inputs, &probe, |sealed| {
        // As a shared arrangement's owner, who has no opinion on merging.
        let sealed = Antichain::from_elem(sealed);
        traces.iter_mut().for_each(|trace| trace.set_physical_compaction(sealed.borrow()));
    });
    let done = ProbeHandle::new();
    worker.dataflow(|scope| {
        let [mut left, mut right] = traces;
        let since = |trace: &mut TraceAgent<_>| trace.get_logical_compaction().to_owned();
        let (at_left, at_right) = (since(&mut left), since(&mut right));
        let (left, _) = left.import_frontier_core(scope, "left", at_left, Antichain::new());
        let (right, _) = right.import_frontier_core(scope, "right", at_right, Antichain::new());
        left.join_core(right, |key, left, right| Some((*key, *left, *right))).probe_with(&done);
    });
    finish(&mut worker, &done)
}

/// The join's row.
pub(crate) fn join() -> Vec<Row> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        ours.push(shared());
        theirs.push(own());
    }
    let (ours, theirs) = (per(median(ours), KEYS), per(median(theirs), KEYS));
    let name = "join over imports, a row, import_frontier_core";
    vec![Row::of(name, "ns", ours, theirs, Target::AtMost(1.1))]
}
