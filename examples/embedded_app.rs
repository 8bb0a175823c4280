//! An ordinary differential program, to be watched from outside.
//!
//! One runtime maintains the edges of a graph that changes ten times a second. Another keeps asking
//! which nodes can be reached, over the same arrangement. And somebody has begun a report on it and
//! forgotten about it: who that is can be seen from outside, also after this process was killed.
//!
//! ```console
//! $ HOLDGAP_SEGMENT_DIR=/dev/shm/holdgap-0 cargo run -p holdgap-examples --example embedded_app
//! ```
//!
//! In another terminal: `holdgap-exporter --attach /dev/shm/holdgap-0`.

#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::iterate::Iterate;
use holdgap::{Registry, Role};
use holdgap_trace::{ArrangeShared, Published, Sharing, ValBatch};
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::Probe;
use timely::progress::Antichain;

type EdgeBatch = ValBatch<u64, u64, u64, isize>;

const NODES: u64 = 200;
const ROUND: Duration = Duration::from_millis(100);

fn main() -> anyhow::Result<()> {
    let registry = Registry::new();
    // The one line that makes this process visible from outside, if it is asked to be.
    let attachment = holdgap_segment::attach_if_asked(&registry)?;
    match &attachment {
        Some(attachment) => println!("shown in {}", attachment.folder().display()),
        None => println!("not shown: set {}", holdgap_segment::FOLDER_VARIABLE),
    }
    let sharing = Sharing::new(&registry);
    let reading = sharing.with_role(Role::Interactive);
    let questions = std::thread::spawn(move || ask(&reading));
    maintain(sharing);
    questions.join().unwrap_or_else(|_| anyhow::bail!("the asking runtime panicked"))
}

/// Milliseconds since 1970, and never the same twice.
fn next(last: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(0).max(last + 1)
}

/// The runtime that maintains the edges.
fn maintain(sharing: Sharing) {
    timely::execute_directly(move |worker| {
        let mut input = InputSession::<u64, (u64, u64), isize>::new();
        let probe = ProbeHandle::new();
        let mut edges: Published<_> = worker.dataflow(|scope| {
            let edges = input.to_collection(scope).arrange_shared_by_key("edges");
            edges.stream.clone().probe_with(&probe);
            sharing.publish("u1", &edges).expect("nothing else is published as u1")
        });
        let (mut time, mut round) = (next(0), 0);
        loop {
            input.advance_to(time);
            // Each node's edge moves on, one in ten at a time.
            for node in (round % 10..NODES).step_by(10) {
                let turns = round / 10;
                let target = |turns: u64| (node * 7 + turns * 13) % NODES;
                if turns > 0 {
                    input.update((node, target(turns - 1)), -1);
                }
                input.update((node, target(turns)), 1);
            }
            let sealed = time;
            (time, round) = (next(time), round + 1);
            input.advance_to(time);
            input.flush();
            while probe.less_than(&time) {
                worker.step();
            }
            edges.allow_compaction(Antichain::from_elem(sealed).borrow());
            let next_round = Instant::now() + ROUND;
            while let Some(left) = next_round.checked_duration_since(Instant::now()) {
                worker.step_or_park(Some(left));
            }
        }
    });
}

/// The runtime that keeps asking what can be reached from the first node.
fn ask(sharing: &Sharing) -> anyhow::Result<()> {
    // Wait for a first answer to be possible, and read from there on.
    let sealed = loop {
        let upper = sharing.reader::<EdgeBatch>("u1", 0)?.upper();
        match upper.as_option() {
            Some(upper) if *upper > 0 => break upper - 1,
            _ => std::thread::sleep(ROUND),
        }
    };
    let edges = sharing.reader_at::<EdgeBatch>("u1", 0, &Antichain::from_elem(sealed))?;
    // Whoever made this one has never looked at it again.
    let _forgotten = edges.clone().with_label("nightly report");
    timely::execute_directly(move |worker| {
        worker.dataflow(|scope| {
            let roots = scope.new_collection_from([0_u64]).1;
            let edges = edges.import(scope, "reachable nodes", Antichain::new());
            // The input of the roots is at an end, so the answers follow the edges alone.
            roots.clone().iterate(|scope, inner| {
                let (edges, roots) = (edges.enter(scope), roots.enter(scope));
                inner
                    .map(|node| (node, ()))
                    .arrange_by_key()
                    .join_core(edges, |_, (), target| Some(*target))
                    .concat(roots)
                    .distinct()
            });
        });
        loop {
            worker.step_or_park(None);
        }
    })
}
