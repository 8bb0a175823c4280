use std::cell::RefCell;
use std::rc::Rc;

use differential_dataflow::trace::{Span, TraceReader};
use holdgap::{Pins, Queued};
use holdgap_trace::SharedBatch;
use timely::progress::Antichain;

use crate::support::{Batch, Index, Stage, at, new_worker};

type Spans = Vec<Span<u64, Batch>>;

/// What the trace itself has, seen through a handle of its own thread: the oracle.
fn owned(index: &Index) -> Vec<Batch> {
    let found = Rc::new(RefCell::new(Vec::new()));
    index.published.trace().map_spans(|span| found.borrow_mut().extend(span.inner.clone()));
    found.take()
}

/// The batches of some chains that the trace has no more: what these chains pin.
fn expected(index: &Index, chains: &[&Spans]) -> Pins {
    let owned = owned(index);
    let mut pinned: Vec<&Batch> = Vec::new();
    for batch in chains.iter().flat_map(|spans| spans.iter()).filter_map(|span| span.inner.as_ref())
    {
        let known = owned.iter().chain(pinned.iter().copied()).any(|known| known.same(batch));
        if !known {
            pinned.push(batch);
        }
    }
    let updates = pinned.iter().map(|batch| batch.len() as u64).sum();
    Pins { batches: pinned.len() as u64, updates }
}

#[test]
fn pinned_is_what_chains_keep_that_the_trace_has_merged_away() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    let mut chains: Vec<Spans> = Vec::new();
    for round in 0..60 {
        index.round(&mut stage, round % 7);
        index.allow(round);
        stage.settle();
        if round % 9 == 4 {
            chains.push(stage.reader("u1").spans());
        }
        if round % 20 == 19 {
            chains.remove(0);
        }
        let expected = expected(&index, &chains.iter().collect::<Vec<_>>());
        assert_eq!(stage.report().pins, expected, "after round {round}");
    }
    assert!(stage.report().pins.batches > 3);
    assert_eq!(stage.points()[0].pins, Some(stage.report().pins));
    // The last reader lets go, and nothing else happens: no step, no input.
    drop(chains);
    assert_eq!(stage.report().pins, Pins::default());
    assert_eq!(stage.report().hold_gap, 0, "no hold was involved");
}

#[test]
fn a_reader_on_another_thread_lets_go_of_its_pins_while_the_writer_sleeps() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.round(&mut stage, 0);
    let reader = stage.reader("u1");
    let (send, receive) = std::sync::mpsc::channel::<()>();
    let spans = reader.spans();
    let thread = std::thread::spawn(move || {
        let _kept = spans;
        receive.recv().unwrap();
    });
    drop(reader);
    for round in 1..30 {
        index.round(&mut stage, round % 3);
        index.allow(round);
        stage.settle();
    }
    assert!(stage.report().pins.batches > 0);
    send.send(()).unwrap();
    thread.join().unwrap();
    assert_eq!(stage.report().pins, Pins::default());
}

#[test]
fn a_held_chain_that_merges_at_its_release_leaves_nothing_pinned_without_new_input() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    let reader = stage.reader("u1");
    for round in 0..500 {
        index.round(&mut stage, round % 7);
        index.allow(round);
    }
    assert!(index.spans(&stage) > 400, "a physical hold keeps the chain long");
    drop(reader);
    stage.settle();
    assert!(index.spans(&stage) < 20);
    assert_eq!(stage.report().pins, Pins::default(), "also not by the chain that was published");
}

#[test]
fn after_the_trace_is_gone_all_that_its_readers_keep_is_pinned() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    for round in 0..10 {
        index.round(&mut stage, round);
    }
    let reader = stage.reader("u1");
    let spans = reader.spans();
    let updates: usize = spans.iter().filter_map(|span| span.inner.as_ref()).map(Batch::len).sum();
    let batches = spans.iter().filter(|span| span.inner.is_some()).count();
    let Index { input, published, .. } = index;
    drop((input, published));
    stage.maintenance = new_worker();
    let expected = Pins { batches: batches as u64, updates: updates as u64 };
    assert_eq!(stage.report().pins, expected);
    drop((spans, reader));
    assert_eq!((stage.report().pins, stage.report().frozen), (Pins::default(), 0));
}

#[test]
fn a_snapshot_import_holds_nothing_and_shows_what_it_pins() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    for round in 0..5 {
        index.round(&mut stage, round);
    }
    let reader = stage.reader("u1");
    let mut seen =
        stage.import_with(|scope| reader.import_snapshot(scope, "snapshot", at(5)).unwrap());
    stage.settle();
    for round in 5..60 {
        index.round(&mut stage, round % 5);
        index.allow(round);
        stage.settle();
    }
    let report = stage.report();
    assert_eq!(report.hold_gap, 0);
    assert!(report.pins.batches > 0 && report.pins.updates >= report.pins.batches);
    seen.trace = None;
    stage.interactive.drop_dataflow(seen.dataflow);
    stage.settle();
    assert_eq!(stage.report().pins, Pins::default());
}

#[test]
fn an_import_that_does_not_drain_grows_its_queue_until_it_does() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.round(&mut stage, 0);
    let readers = [stage.reader("u1"), stage.reader("u1")];
    let mut seen = readers.map(|reader| stage.import(reader, Antichain::new()));
    assert_eq!(stage.report().queued, Queued { instructions: 2, batches: 2 }, "the seed of each");
    stage.settle();
    assert_eq!(stage.report().queued, Queued::default());
    for _ in 1..=40 {
        index.round(&mut stage, 0);
    }
    // Forty batches for each of two, and to each the news that the upper has moved.
    let queued = Queued { instructions: 82, batches: 80 };
    assert_eq!(stage.report().queued, queued);
    assert_eq!(stage.points()[0].queued, Some(queued));
    // Seals without data are one thing to tell, however many.
    for time in 42..10_000 {
        index.input.advance_to(time);
        index.input.flush();
        stage.maintenance.step();
    }
    assert_eq!(stage.report().queued, queued);
    seen[0].trace = None;
    stage.interactive.drop_dataflow(seen[0].dataflow);
    assert_eq!(stage.report().queued, Queued { instructions: 41, batches: 40 });
    stage.settle();
    assert_eq!(stage.report().queued, Queued::default());
    assert_eq!(seen[1].contents(9_000).into_iter().collect::<Vec<_>>(), [((0, 40), 1)]);
}
