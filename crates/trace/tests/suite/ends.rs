use holdgap::Role;
use holdgap_trace::Meter;
use std::sync::Arc;
use timely::progress::Antichain;

use crate::support::{Index, Stage, at, new_worker};

fn meter(index: &Index) -> Arc<Meter> {
    let trace_box = index.published.trace().trace_box_unstable();
    let trace_box = trace_box.borrow();
    Arc::clone(trace_box.trace().meter())
}

#[test]
fn a_hundred_thousand_seals_without_data_leave_everything_flat() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    let reader = stage.reader("u1");
    let mut seen = stage.import(reader, Antichain::new());
    seen.trace = None;
    for time in 1..=100_000 {
        index.seal(&mut stage, time);
        index.allow(time - 1);
        if time % 16 == 0 {
            stage.interactive.step();
        }
    }
    stage.settle();
    assert!(index.spans(&stage) <= 2, "{} spans", index.spans(&stage));
    assert_eq!(meter(&index).batches(), 0);
    assert_eq!(seen.probe.with_frontier(|frontier| frontier.to_owned()), at(100_000));
    assert_eq!(stage.report().held, 0);
}

#[test]
fn when_both_runtimes_end_every_batch_is_freed_though_the_registry_lives_on() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    for round in 0..50 {
        index.round(&mut stage, round);
    }
    let meter = meter(&index);
    let reader = stage.reader("u1");
    let seen = stage.import(reader.clone(), Antichain::new());
    stage.settle();
    assert!(meter.batches() > 0 && meter.updates() > 0);
    drop((seen, reader));
    stage.interactive = new_worker();
    let Index { input, published, .. } = index;
    drop((input, published));
    stage.maintenance = new_worker();
    assert_eq!((meter.batches(), meter.updates()), (0, 0));
    assert_eq!(stage.sharing.known(0), 0);
    let report = stage.registry.runtime(Role::Maintenance).worker(0).report();
    assert_eq!((report.published, report.frozen), (0, 0));
}

#[test]
fn what_a_reader_holds_outlives_the_trace_and_goes_with_the_reader() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    for round in 0..10 {
        index.round(&mut stage, round);
    }
    let meter = meter(&index);
    let reader = stage.reader("u1");
    let Index { input, published, .. } = index;
    drop((input, published));
    stage.maintenance = new_worker();
    let updates: usize = reader
        .spans()
        .iter()
        .filter_map(|span| span.inner.as_ref())
        .map(|batch| {
            use holdgap_trace::SharedBatch;
            batch.len()
        })
        .sum();
    assert_eq!(meter.updates(), updates as u64);
    assert!(updates > 0);
    let report = stage.report();
    assert_eq!((report.published, report.frozen, report.held), (0, 1, 0));
    let moved = std::thread::spawn(move || reader.upper()).join().unwrap();
    assert_eq!(moved, at(10));
    assert_eq!(meter.batches(), 0);
    assert_eq!(stage.report().frozen, 0);
}

/// Batches that the trace has merged away live on while a chain holds them, and are freed with it.
#[test]
fn batches_that_a_reader_pins_are_freed_when_it_lets_go_of_them() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    for round in 0..8 {
        index.round(&mut stage, round);
        index.allow(round);
    }
    let meter = meter(&index);
    let pinned = stage.reader("u1").spans();
    let alone = meter.batches();
    for round in 8..40 {
        index.round(&mut stage, round);
        index.allow(round);
    }
    let with_pins = meter.batches();
    drop(pinned);
    assert!(meter.batches() < with_pins, "{} of {with_pins}", meter.batches());
    assert!(alone > 0);
}

/// Nobody drains the queue of an import whose dataflow is gone: it must not go on growing.
#[test]
fn the_queue_of_an_import_goes_with_its_dataflow() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.round(&mut stage, 0);
    let reader = stage.reader("u1");
    let mut seen = stage.import(reader, Antichain::new());
    seen.trace = None;
    stage.settle();
    stage.interactive.drop_dataflow(seen.dataflow);
    for round in 1..200 {
        index.round(&mut stage, round % 4);
        index.allow(round);
    }
    let batches = meter(&index).batches();
    assert!(batches < 30, "{batches} batches are alive after 200 rounds");
}

#[test]
fn a_worker_that_panics_leaves_its_readers_and_the_gauges_whole() {
    let stage = Stage::new();
    let (sharing, registry) = (stage.sharing.clone(), stage.registry.clone());
    let (send, receive) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let mut stage = Stage::new();
        (stage.sharing, stage.registry) = (sharing, registry);
        let mut index = stage.publish("u1");
        index.round(&mut stage, 1);
        send.send(stage.reader("u1")).unwrap();
        index.allow(1);
        std::panic::panic_any("on purpose");
    });
    assert!(thread.join().is_err());
    let reader = receive.recv().unwrap();
    assert_eq!(reader.upper(), at(1), "not empty: the input did not end");
    let report = stage.report();
    assert_eq!((report.published, report.held, report.frozen), (0, 0, 1));
    drop(reader);
    assert_eq!(stage.report().frozen, 0);
}
