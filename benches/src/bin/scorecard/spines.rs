//! A shared spine, beside differential's own: unheld, and held for long.

use std::time::{Duration, Instant};

use differential_dataflow::input::InputSession;
use differential_dataflow::trace::TraceReader;
use holdgap::Registry;
use holdgap_trace::{ArrangeShared, Reader, Sharing, ValBatch};
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::Probe;
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;
use timely::worker::Worker;

use crate::joins::new_worker;
use crate::measure::random;
use crate::row::{Row, Target};

type Input = InputSession<u64, (u64, u64), isize>;

/// One arrangement under way, and what its owner does at the end of a round.
struct Run {
    worker: Worker,
    input: Input,
    probe: ProbeHandle<u64>,
    allow: Box<dyn FnMut(u64)>,
    took: Vec<Duration>,
}

impl Run {
    /// Differential's own; a handle of it holds merging back if `held`.
    fn unshared(held: bool) -> Self {
        let (mut worker, mut input, probe) = (new_worker(), Input::new(), ProbeHandle::new());
        let mut trace = worker.dataflow(|scope| {
            let rows = input.to_collection(scope).arrange_by_key();
            rows.stream.probe_with(&probe);
            rows.trace
        });
        if !held {
            trace.set_physical_compaction(AntichainRef::new(&[]));
        }
        let allow = move |time: u64| {
            if !held {
                trace.set_logical_compaction(Antichain::from_elem(time).borrow());
            }
        };
        Run { worker, input, probe, allow: Box::new(allow), took: Vec::new() }
    }

    /// A shared one; a reader holds it back if `held`.
    fn shared(held: bool) -> Self {
        let (mut worker, mut input, probe) = (new_worker(), Input::new(), ProbeHandle::new());
        let sharing = Sharing::new(&Registry::new());
        let mut published = worker.dataflow(|scope| {
            let rows = input.to_collection(scope).arrange_shared_by_key("rows");
            let published = sharing.publish("u1", &rows).expect("nothing else is u1");
            rows.stream.probe_with(&probe);
            published
        });
        let reader: Reader<ValBatch<u64, u64, u64, isize>> =
            sharing.reader("u1", 0).expect("it was just published");
        let reader = held.then_some(reader);
        let allow = move |time: u64| {
            let _reader = &reader;
            published.allow_compaction(Antichain::from_elem(time).borrow());
        };
        Run { worker, input, probe, allow: Box::new(allow), took: Vec::new() }
    }

    fn round(&mut self, time: u64, updates: &[(u64, u64)]) {
        let start = Instant::now();
        updates.iter().for_each(|update| self.input.update(*update, 1));
        self.input.advance_to(time + 1);
        self.input.flush();
        while self.probe.less_than(&(time + 1)) {
            self.worker.step();
        }
        (self.allow)(time);
        self.took.push(start.elapsed());
    }
}

/// Both, round by round in turn, with the same updates. The total time of each, from round `from` on.
fn both(held: bool, rounds: u64, updates: usize, from: usize) -> (f64, f64) {
    let (mut ours, mut theirs) = (Run::shared(held), Run::unshared(held));
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    for time in 0..rounds {
        let batch: Vec<_> =
            (0..updates).map(|_| (random(&mut seed) % 200_000, random(&mut seed) % 4)).collect();
        // Who is first changes, so that warm caches serve both.
        let (first, second) =
            if time % 2 == 0 { (&mut ours, &mut theirs) } else { (&mut theirs, &mut ours) };
        first.round(time, &batch);
        second.round(time, &batch);
    }
    let total = |run: &Run| run.took[from..].iter().sum::<Duration>().as_nanos() as f64;
    let rounds = rounds as f64 - from as f64;
    (total(&ours) / rounds, total(&theirs) / rounds)
}

/// Four million updates, in rounds of several sizes.
pub(crate) fn unheld() -> Vec<Row> {
    let row = |updates: u64| {
        let (ours, theirs) = both(false, 4_000_000 / updates, updates as usize, 0);
        let name = format!("shared spine, a round of {updates} updates, unshared");
        Row::of(name, "ns", ours, theirs, Target::AtMost(1.02))
    };
    [100, 1_000, 10_000].map(row).into()
}

/// Rounds on a spine that has been held for four thousand of them.
pub(crate) fn held() -> Vec<Row> {
    let (ours, theirs) = both(true, 5_000, 100, 4_000);
    let name = "shared spine held for 4,000 rounds, unshared";
    vec![Row::of(name, "ns", ours, theirs, Target::AtMost(1.1))]
}
