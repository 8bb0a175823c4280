use timely::progress::Antichain;

use crate::support::{Batch, Stage, at};

fn frontier(seen: &crate::support::Seen) -> Antichain<u64> {
    seen.probe.with_frontier(|frontier| frontier.to_owned())
}

/// An import begun at each step of a running publisher sees each update exactly once.
#[test]
fn an_import_is_seeded_with_a_span_or_has_it_delivered() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    let mut imports = Vec::new();
    for round in 0..30 {
        index.round(&mut stage, round % 5);
        if round % 3 == 0 {
            index.allow(round);
        }
        let reader = stage.reader("u1");
        let as_of = reader.logical_compaction().into_option().unwrap();
        imports.push((as_of, stage.import(reader, Antichain::new())));
        if round % 2 == 0 {
            stage.interactive.step();
        }
    }
    stage.settle();
    let (_, whole) = &imports[0];
    for (as_of, seen) in &imports {
        assert_eq!(frontier(seen), at(30));
        for time in *as_of..30 {
            assert_eq!(seen.contents(time), whole.contents(time), "from {as_of}, at {time}");
        }
        let updates = seen.updates.borrow();
        assert!(updates.iter().all(|(_, time, _)| time >= as_of), "all is advanced to as_of");
    }
}

#[test]
fn the_import_s_frontier_is_the_trace_s_upper() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    let reader = stage.reader("u1");
    let seen = stage.import(reader, Antichain::new());
    for round in 0..20 {
        if round % 4 == 0 {
            index.seal(&mut stage, round + 1)
        } else {
            index.round(&mut stage, 0)
        }
        stage.settle();
        assert_eq!(frontier(&seen), at(round + 1));
        use differential_dataflow::trace::TraceReader;
        let mut upper = Antichain::new();
        seen.trace.clone().unwrap().read_upper(&mut upper);
        assert_eq!(frontier(&seen), upper);
    }
}

#[test]
fn an_import_completes_when_the_upper_passes_its_until() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.round(&mut stage, 1);
    let (now, later) = (stage.reader("u1"), stage.reader("u1"));
    let now = stage.import(now, at(1));
    let later = stage.import(later, at(3));
    stage.settle();
    assert!(now.probe.done(), "what is sealed already is complete at once");
    assert!(!later.probe.done());
    index.round(&mut stage, 2);
    stage.settle();
    assert!(!later.probe.done());
    index.round(&mut stage, 3);
    index.round(&mut stage, 4);
    stage.settle();
    assert!(later.probe.done());
    let times: Vec<_> = later.updates.borrow().iter().map(|(_, time, _)| *time).collect();
    assert!(times.iter().all(|time| *time < 3) && times.contains(&2), "{times:?}");
}

#[test]
fn at_the_end_of_input_imports_complete_and_so_do_later_ones() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.round(&mut stage, 1);
    let reader = stage.reader("u1");
    let early = stage.import(reader, Antichain::new());
    let crate::support::Index { input, published, .. } = index;
    input.close();
    stage.settle();
    assert!(early.probe.done());
    let reader = stage.reader("u1");
    assert!(reader.upper().is_empty());
    let late = stage.import(reader, Antichain::new());
    stage.settle();
    assert!(late.probe.done());
    assert_eq!(late.contents(9), early.contents(9));
    assert_eq!(late.contents(9).len(), 1);
    drop(published);
}

/// Completing would claim that the times beyond are empty, and show part of the output as whole.
#[test]
fn a_writer_that_goes_without_sealing_leaves_its_importers_where_it_was() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.round(&mut stage, 1);
    let reader = stage.reader("u1");
    let seen = stage.import(reader, Antichain::new());
    stage.settle();
    stage.maintenance.drop_dataflow(index.dataflow);
    stage.settle();
    assert!(!seen.probe.done());
    assert_eq!(frontier(&seen), at(1));
    let reader = stage.reader("u1");
    assert_eq!(reader.upper(), at(1));
    let late = stage.import(reader, Antichain::new());
    stage.settle();
    assert!(!late.probe.done());
    assert_eq!(late.contents(0), seen.contents(0));
    let report = stage.report();
    assert_eq!((report.published, report.frozen), (0, 1));
}

#[test]
fn a_bounded_import_lets_go_when_it_is_complete() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    for round in 0..5 {
        index.round(&mut stage, round);
    }
    let reader = stage.reader("u1");
    let mut seen = stage.import(reader, at(8));
    seen.trace = None;
    stage.settle();
    index.allow(4);
    stage.settle();
    let report = stage.report();
    assert_eq!((report.held, report.physically_held), (0, 0), "it follows what it acknowledged");
    for round in 5..9 {
        index.round(&mut stage, round);
    }
    stage.settle();
    assert!(seen.probe.done());
    index.allow(9);
    assert_eq!(stage.pair().1, "{9}");
}

#[test]
fn the_hold_of_an_import_lives_as_long_as_its_dataflow_also_for_the_stream_alone() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.round(&mut stage, 0);
    let reader = stage.reader("u1");
    let mut seen = stage.import(reader, Antichain::new());
    seen.trace = None;
    // The importing runtime stands still: what it has not acknowledged stays held.
    for round in 1..6 {
        index.round(&mut stage, round);
    }
    index.allow(5);
    assert_eq!(stage.pair().1, "{0}");
    stage.settle();
    assert_eq!(stage.pair().1, "{5}");
    for round in 6..9 {
        index.round(&mut stage, round);
    }
    index.allow(9);
    assert_eq!(stage.pair().1, "{6}");
    stage.interactive.drop_dataflow(seen.dataflow);
    stage.settle();
    assert_eq!(stage.pair().1, "{9}", "and no longer than its dataflow");
}

#[test]
fn a_snapshot_import_keeps_its_chain_and_lets_go_of_the_trace() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    for round in 0..8 {
        index.round(&mut stage, round % 3);
    }
    let reader = stage.reader_at("u1", 5);
    let expected = {
        let reader = reader.clone();
        let seen = stage.import(reader, at(8));
        stage.settle();
        seen.contents(7)
    };
    let refused = stage.interactive.dataflow(|scope| {
        reader.clone().import_snapshot(scope, "too early", at(9)).map(drop).unwrap_err()
    });
    assert_eq!(refused.upper, at(8));
    drop(refused);
    let seen = stage.import_with(|scope| reader.import_snapshot(scope, "snapshot", at(8)).unwrap());
    for round in 8..40 {
        index.round(&mut stage, round % 3);
        index.allow(round);
    }
    let report = stage.report();
    assert_eq!((report.held, report.physically_held), (0, 0));
    stage.settle();
    assert!(seen.probe.done());
    assert_eq!(seen.contents(7), expected);
}

#[test]
#[should_panic(expected = "worker 0 cannot import the shard of worker 3")]
fn a_worker_imports_its_own_shard() {
    let mut stage = Stage::new();
    let reader = stage.sharing.reader::<Batch>("u1", 3).unwrap();
    stage.import(reader, Antichain::new());
}

#[test]
fn a_runtime_with_another_number_of_workers_cannot_import() {
    let mut stage = Stage::new();
    let _index = stage.publish("u1");
    let sharing = stage.sharing.clone();
    let guards = timely::execute(timely::Config::process(2), move |worker| {
        let importing = std::panic::AssertUnwindSafe(|| {
            worker.dataflow::<u64, _, _>(|scope| {
                let reader = sharing.reader::<Batch>("u1", scope.index()).unwrap();
                drop(reader.import(scope, "import", Antichain::new()));
            });
        });
        let refused = std::panic::catch_unwind(importing).is_err();
        for dataflow in worker.installed_dataflows() {
            worker.drop_dataflow(dataflow);
        }
        (worker.index(), refused)
    });
    let refused: Vec<_> = guards.unwrap().join().into_iter().map(Result::unwrap).collect();
    assert!(refused.contains(&(0, true)), "worker 0 of 2 reads what 1 worker publishes");
}
