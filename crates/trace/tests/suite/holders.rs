use timely::progress::Antichain;

use crate::support::{Stage, at};

#[test]
fn every_clone_is_its_own_hold_where_its_source_stands() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.seal(&mut stage, 100);
    let mut first = stage.reader_at("u1", 5);
    first.set_logical_compaction(at(9).borrow());
    let second = first.clone();
    assert_eq!(second.logical_compaction(), at(9));
    assert_eq!(second.physical_compaction(), first.physical_compaction());
    index.allow(50);
    drop(first);
    stage.settle();
    assert_eq!(stage.pair().1, "{9}", "two holders at one time are two");
    drop(second);
    stage.settle();
    assert_eq!(stage.pair().1, "{50}");
}

#[test]
fn a_reader_cloned_a_thousand_times_lets_go_with_its_last_clone() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.seal(&mut stage, 100);
    let reader = stage.reader_at("u1", 5);
    let mut clones: Vec<_> = (0..1_000).map(|_| reader.clone()).collect();
    drop(reader);
    index.allow(50);
    while let Some(clone) = clones.pop() {
        assert_eq!(stage.report().hold_gap, 45);
        drop(clone);
        stage.maintenance.step();
    }
    assert_eq!((stage.report().hold_gap, stage.report().held), (0, 0));
}

#[test]
fn a_request_joins_and_never_lowers() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.seal(&mut stage, 100);
    let mut reader = stage.reader_at("u1", 20);
    reader.set_logical_compaction(at(10).borrow());
    assert_eq!(reader.logical_compaction(), at(20));
    reader.set_physical_compaction(at(10).borrow());
    assert_eq!(reader.physical_compaction(), at(100));
}

#[test]
fn an_equal_request_publishes_nothing() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.seal(&mut stage, 100);
    let mut reader = stage.reader_at("u1", 20);
    index.allow(50);
    let before = stage.points()[0].sequence;
    for _ in 0..10 {
        reader.set_logical_compaction(at(20).borrow());
        index.allow(50);
        stage.settle();
    }
    assert_eq!(stage.points()[0].sequence, before);
}

#[test]
fn the_empty_frontier_releases() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.seal(&mut stage, 100);
    let mut reader = stage.reader_at("u1", 20);
    index.allow(50);
    reader.set_logical_compaction(Antichain::new().borrow());
    stage.settle();
    assert_eq!(stage.pair().1, "{50}", "no logical hold is left");
    assert_eq!(reader.physical_compaction(), at(100), "the other axis stays");
    reader.set_physical_compaction(Antichain::new().borrow());
    assert!(reader.physical_compaction().is_empty());
    drop(reader);
    stage.settle();
    assert_eq!(stage.report().held, 0);
}

#[test]
fn a_panicking_reader_thread_takes_nobody_along() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.seal(&mut stage, 100);
    let reader = stage.reader_at("u1", 20);
    let other = stage.reader_at("u1", 30);
    index.allow(50);
    let thread = std::thread::spawn(move || {
        let _held = reader.clone();
        std::panic::panic_any(reader.upper().len());
    });
    assert!(thread.join().is_err());
    stage.settle();
    assert_eq!(stage.pair().1, "{30}", "its holds are gone, the other's is not");
    index.round(&mut stage, 1);
    assert_eq!(other.upper(), at(101), "the writer goes on");
}
