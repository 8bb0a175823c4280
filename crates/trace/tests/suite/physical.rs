use timely::progress::Antichain;

use crate::support::{Stage, at};

#[test]
fn a_readers_physical_hold_starts_at_the_chains_coverage() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    for key in 0..6 {
        index.round(&mut stage, key);
    }
    let reader = stage.reader_at("u1", 2);
    assert_eq!(reader.physical_compaction(), at(6), "not at since, not at as_of");
    for key in 6..9 {
        index.round(&mut stage, key);
    }
    assert_eq!(stage.physical_pair(), ("{9}".to_owned(), "{6}".to_owned()));
    let report = stage.report();
    assert_eq!((report.physically_held, report.physical_hold_gap), (1, 3));
    drop(reader);
    stage.settle();
    assert_eq!(stage.physical_pair(), ("{9}".to_owned(), "{9}".to_owned()));
    assert_eq!(stage.report().physically_held, 0);
}

/// Forty seals, with a live import and without: as many spans either way. A handle of the import that
/// nobody moves is another matter: it does hold, as a handle of the trace itself would.
#[test]
fn a_live_import_does_not_pin_physical_compaction_for_life() {
    let mut spans = Vec::new();
    for (imported, handle_kept) in [(false, false), (true, false), (true, true)] {
        let mut stage = Stage::new();
        let mut index = stage.publish("u1");
        let reader = stage.reader("u1");
        let mut seen = imported.then(|| stage.import(reader, Antichain::new()));
        if let (Some(seen), false) = (&mut seen, handle_kept) {
            seen.trace = None;
        }
        for round in 0..40 {
            index.round(&mut stage, round);
            index.allow(round);
            stage.settle();
        }
        if let Some(seen) = &seen {
            assert_eq!(seen.probe.with_frontier(|frontier| frontier.to_owned()), at(40));
        }
        spans.push(index.spans(&stage));
    }
    let [control, imported, kept] = spans[..] else { panic!("three runs") };
    assert!(control <= 8, "{control} spans without an import");
    assert!(imported <= control + 1, "{imported} spans with an import, {control} without");
    assert!(kept > 30, "{kept} spans with a handle that nobody moves");
}

/// With idle merging on, the trace merges whatever it may the moment that it may. Readers admitted
/// while batches arrive must be able to cut at their own hold all the same.
#[test]
fn readers_admitted_while_batches_arrive_can_cut_at_their_own_hold() {
    use differential_dataflow::trace::ExertionLogic;
    use std::sync::Arc;
    use timely::communication::allocator::{Allocator, thread::Thread};

    let mut config = timely::WorkerConfig::default();
    let eager: ExertionLogic = Arc::new(|levels| {
        let spans: usize = levels.iter().map(|(_, count, _)| count).sum();
        (spans > 1).then_some(1_000)
    });
    config.set("differential/default_exert_logic".to_owned(), eager);
    let mut stage = Stage::new();
    let allocator = Allocator::Thread(Thread::default());
    let now = Some(std::time::Instant::now());
    stage.maintenance = timely::worker::Worker::new(config, allocator, now);

    let mut index = stage.publish("u1");
    let mut readers = Vec::new();
    for round in 0..60 {
        index.round(&mut stage, round);
        if round % 7 == 3 {
            readers.push(stage.reader("u1"));
        }
        if round % 11 == 10 {
            readers.remove(0);
        }
        stage.maintenance.step();
        for reader in &readers {
            let cut = reader.physical_compaction();
            let spans = reader.spans();
            let clean = spans.iter().any(|span| *span.upper() == cut);
            assert!(clean, "no span ends at {cut:?} after round {round}");
        }
    }
    drop(readers);
    for _ in 0..200 {
        stage.maintenance.step();
    }
    assert!(index.spans(&stage) <= 2, "idle merging resumes");
}

#[test]
fn publishing_does_not_copy_a_long_chain_at_each_span() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.round(&mut stage, 0);
    let reader = stage.reader("u1");
    for round in 1..3_000 {
        index.round(&mut stage, round);
    }
    assert!(index.spans(&stage) >= 2_999, "every span since the hold is kept");
    drop(reader);
    stage.settle();
    index.round(&mut stage, 3_000);
    stage.settle();
    assert!(index.spans(&stage) < 20, "{} spans after the release", index.spans(&stage));
}
