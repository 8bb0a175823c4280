use holdgap_trace::PublishOptions;
use timely::progress::Antichain;

use crate::support::{Batch, Stage, at};

#[test]
fn a_frozen_slot_reports_no_hold_gap() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    for round in 0..5 {
        index.round(&mut stage, round);
    }
    let reader = stage.reader_at("u1", 1);
    index.allow(4);
    assert_eq!((stage.report().hold_gap, stage.report().held), (3, 1));
    stage.maintenance.drop_dataflow(index.dataflow);
    stage.settle();
    let report = stage.report();
    assert_eq!((report.hold_gap, report.held, report.published), (0, 0, 0));
    assert_eq!((report.frozen, report.frozen_held, report.frozen_hold_gap), (1, 1, 3));
    // Nobody applies the release until a handle of the trace repeats its request.
    drop(reader);
    stage.settle();
    assert_eq!(stage.report().frozen_held, 1);
    index.allow(4);
    assert_eq!((stage.report().frozen, stage.report().frozen_held), (1, 0));
    drop(index);
    assert_eq!(stage.report().frozen, 0);
}

#[test]
fn an_ended_input_freezes_the_point_too() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.round(&mut stage, 1);
    let _reader = stage.reader("u1");
    index.allow(1);
    assert_eq!(stage.report().held, 1);
    let crate::support::Index { input, published, .. } = index;
    input.close();
    stage.settle();
    let report = stage.report();
    assert_eq!((report.held, report.frozen, report.frozen_held), (0, 1, 1));
    drop(published);
}

fn standing() -> PublishOptions {
    PublishOptions { standing_hold: true, name: "orders".to_owned() }
}

#[test]
fn a_standing_hold_that_nobody_advances_shows_as_a_gap() {
    let mut stage = Stage::new();
    let mut index = stage.publish_with("u1", standing());
    let report = stage.report();
    assert_eq!((report.published, report.held, report.hold_gap), (1, 0, 0), "just adopted");
    for round in 0..10 {
        index.round(&mut stage, round);
    }
    index.allow(9);
    assert_eq!(stage.report().hold_gap, 9);
    let hold = stage.sharing.standing_hold::<Batch>("u1", 0).unwrap();
    hold.allow_compaction(at(7).borrow());
    stage.settle();
    assert_eq!(stage.report().hold_gap, 2);
    assert_eq!(stage.report().physically_held, 0, "it is logical only");
    hold.allow_compaction(Antichain::new().borrow());
    stage.settle();
    assert_eq!(stage.report().held, 0);
    assert_eq!(&*stage.points()[0].name, "orders");
}

#[test]
fn a_standing_hold_keeps_what_a_lagging_runtime_has_yet_to_import() {
    let mut stage = Stage::new();
    let mut index = stage.publish_with("u1", standing());
    let hold = stage.sharing.standing_hold::<Batch>("u1", 0).unwrap();
    for round in 0..10 {
        index.round(&mut stage, round);
        index.allow(round);
    }
    let reader = stage.reader_at("u1", 3);
    hold.allow_compaction(at(9).borrow());
    stage.settle();
    assert_eq!(stage.pair().1, "{3}", "the reader's own hold has taken its place");
    drop(reader);
    stage.settle();
    assert_eq!(stage.pair().1, "{9}");
}

#[test]
fn a_standing_hold_is_seeded_where_the_trace_stands_on_adoption() {
    let mut stage = Stage::new();
    let hold = stage.sharing.standing_hold::<Batch>("u2", 0).unwrap();
    assert_eq!(hold.frontier(), at(0));
    let mut index = stage.publish("u1");
    index.seal(&mut stage, 100);
    index.allow(40);
    let trace = index.published.trace().clone();
    let second =
        stage.sharing.publish_trace("u2", &trace, &stage.maintenance, Default::default()).unwrap();
    assert_eq!(hold.frontier(), at(40));
    assert_eq!(stage.report().held, 0, "not the distance from the minimum");
    drop(second);
    index.allow(60);
    drop(trace);
    stage.settle();
    assert_eq!(stage.pair().1, "{60}", "a standing hold goes with its id");
}
