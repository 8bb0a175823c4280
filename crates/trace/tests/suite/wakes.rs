use std::time::{Duration, Instant};

use holdgap::{Registry, Role};
use holdgap_trace::{ArrangeShared, Reader, Sharing};
use timely::progress::Antichain;

use crate::support::{Batch, Stage, at};

/// A release on another thread reaches a trace whose worker is parked with nothing else to do.
#[test]
fn compaction_resumes_without_input_while_the_worker_is_parked() {
    let registry = Registry::new();
    let sharing = Sharing::new(&registry);
    let publishing = sharing.clone();
    let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
    let (applied, was_applied) = std::sync::mpsc::sync_channel(1);
    let maintenance = std::thread::spawn(move || {
        timely::execute_directly(move |worker| {
            let mut input = differential_dataflow::input::InputSession::new();
            let mut index = worker.dataflow(|scope| {
                let rows = input.to_collection(scope).arrange_shared_by_key("rows");
                publishing.publish("u1", &rows).unwrap()
            });
            input.insert((1_u64, 1_u64));
            input.advance_to(100_u64);
            input.flush();
            while index.upper().less_than(&100) {
                worker.step();
            }
            let reader: Reader<Batch> = publishing.reader_at("u1", 0, &at(10)).unwrap();
            index.allow_compaction(at(50).borrow());
            ready.send(reader).unwrap();
            let mut wakes = 0;
            while index.since() != at(50) {
                worker.step_or_park(None);
                wakes += 1;
            }
            applied.send(wakes).unwrap();
        });
    });
    let reader = is_ready.recv().unwrap();
    let report = || registry.runtime(Role::Maintenance).worker(0).report();
    assert_eq!(report().hold_gap, 40);
    std::thread::sleep(Duration::from_millis(50));
    drop(reader);
    was_applied.recv_timeout(Duration::from_secs(20)).expect("a parked worker is woken");
    maintenance.join().unwrap();
}

/// Activations queue without bound in a parked worker, so a move that changes nothing sends none.
#[test]
fn a_move_that_leaves_the_meet_where_it_is_wakes_nobody() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.seal(&mut stage, 100);
    let lowest = stage.reader_at("u1", 5);
    let mut other = stage.reader_at("u1", 10);
    index.allow(50);
    stage.settle();
    other.set_logical_compaction(at(20).borrow());
    drop(other);
    assert!(!is_activated(&stage));
    drop(lowest);
    assert!(is_activated(&stage));
    stage.maintenance.step();
    assert_eq!(stage.pair().1, "{50}");
}

/// Whether anything but the passing of time would have the worker do something.
fn is_activated(stage: &Stage) -> bool {
    let activations = stage.maintenance.activations();
    let mut activations = activations.borrow_mut();
    activations.advance();
    let paths = std::cell::RefCell::new(Vec::new());
    activations.map_active(|path| paths.borrow_mut().push(path.to_vec()));
    // Looking has used them up: put them back.
    paths.borrow().iter().for_each(|path| activations.activate(path));
    !paths.into_inner().is_empty()
}

#[test]
fn a_wake_is_armed_again_once_the_writer_has_looked() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.seal(&mut stage, 100);
    let mut reader = stage.reader_at("u1", 0);
    index.allow(90);
    stage.settle();
    for time in 1..80 {
        reader.set_logical_compaction(at(time).borrow());
    }
    assert!(is_activated(&stage));
    stage.maintenance.step();
    assert_eq!(stage.pair().1, "{79}");
    stage.settle();
    assert!(!is_activated(&stage));
    reader.set_logical_compaction(at(80).borrow());
    assert!(is_activated(&stage));
    stage.maintenance.step();
    assert_eq!(stage.pair().1, "{80}");
}

#[test]
fn waking_a_worker_that_has_gone_is_not_an_error() {
    let sharing = Sharing::new(&Registry::new());
    let publishing = sharing.clone();
    let maintenance = std::thread::spawn(move || {
        timely::execute_directly(move |worker| {
            let (_input, index) = worker.dataflow::<u64, _, _>(|scope| {
                use differential_dataflow::input::Input;
                let (input, rows) = scope.new_collection_from([(1_u64, 1_u64)]);
                (input, publishing.publish("u1", &rows.arrange_shared_by_key("rows")).unwrap())
            });
            worker.step();
            let reader: Reader<Batch> = publishing.reader("u1", 0).unwrap();
            drop(index);
            reader
        })
    });
    let mut reader = maintenance.join().unwrap();
    reader.set_logical_compaction(at(5).borrow());
    reader.set_physical_compaction(at(5).borrow());
    drop(reader);
}

#[test]
fn a_seal_signals_once_until_it_is_drained_and_the_new_upper_can_be_seen() {
    let mut stage = Stage::new();
    let inbox = stage.sharing.inbox();
    stage.sharing.watch::<Batch>(&inbox, "u1", 0).unwrap();
    let mut index = stage.publish("u1");
    assert_eq!(inbox.drain().len(), 1, "adoption is a signal");
    for round in 0..5 {
        index.round(&mut stage, round);
    }
    let drained = inbox.drain();
    assert_eq!(drained.iter().map(|id| &**id).collect::<Vec<_>>(), ["u1"]);
    assert_eq!(stage.reader("u1").upper(), at(5));
    assert!(inbox.drain().is_empty());
    index.round(&mut stage, 9);
    assert_eq!(inbox.drain().len(), 1, "the flag is armed again");
}

/// A waiter that parks between drains misses no seal, though a spurious unpark may eat the token.
#[test]
fn a_waiter_on_another_thread_sees_every_last_seal() {
    const ROUNDS: u64 = 2_000;
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    let sharing = stage.sharing.clone();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            let inbox = sharing.inbox();
            sharing.watch::<Batch>(&inbox, "u1", 0).unwrap();
            let reader: Reader<Batch> = sharing.reader("u1", 0).unwrap();
            let deadline = Instant::now() + Duration::from_secs(60);
            let mut signals = 0;
            while reader.upper().less_than(&ROUNDS) {
                // What other blocking code would do with the token.
                std::thread::park_timeout(Duration::ZERO);
                signals += inbox.drain().len();
                if !reader.upper().less_than(&ROUNDS) {
                    break;
                }
                std::thread::park_timeout(Duration::from_millis(100));
                assert!(Instant::now() < deadline, "stuck at {:?}", reader.upper());
            }
            signals
        });
        for round in 0..ROUNDS {
            index.round(&mut stage, round);
        }
        let signals = waiter.join().unwrap();
        assert!(signals <= ROUNDS as usize + 1, "{signals} signals for {ROUNDS} seals");
    });
}

#[test]
fn an_import_on_another_thread_is_woken_by_each_seal() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    let sharing = stage.sharing.clone();
    let (seen, sees) = std::sync::mpsc::sync_channel(0);
    let (ready, is_ready) = std::sync::mpsc::sync_channel(0);
    std::thread::spawn(move || {
        timely::execute_directly(move |worker| {
            let probe = worker.dataflow(|scope| {
                let reader: Reader<Batch> = sharing.reader("u1", 0).unwrap();
                let rows = reader.import(scope, "import", Antichain::new());
                rows.as_collection(|key, val| (*key, *val)).probe().0
            });
            ready.send(()).unwrap();
            for time in 1..=20 {
                while probe.less_than(&time) {
                    worker.step_or_park(None);
                }
                if seen.send(time).is_err() {
                    break;
                }
            }
        });
    });
    is_ready.recv().unwrap();
    for time in 1..=20 {
        index.round(&mut stage, time);
        assert_eq!(sees.recv_timeout(Duration::from_secs(20)), Ok(time));
    }
    let crate::support::Index { input, published, .. } = index;
    input.close();
    stage.settle();
    drop(published);
}
