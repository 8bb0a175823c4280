use std::time::Duration;

use holdgap::{Clock, HoldKind, PointView, Registry, RegistryOptions, Role};
use holdgap_trace::{PublishOptions, Sharing, StandingHold};
use timely::progress::Antichain;

use crate::support::{Batch, Index, Stage, at, new_worker};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A stage whose clock stands still but for the test, with an arrangement sealed up to 100.
fn stage() -> (Clock, Stage, Index) {
    let clock = Clock::manual();
    let options = RegistryOptions { clock: clock.clone(), ..RegistryOptions::default() };
    let registry = Registry::with_options(options);
    let sharing = Sharing::new(&registry).with_role(Role::Maintenance);
    let (maintenance, interactive) = (new_worker(), new_worker());
    let mut stage = Stage { registry, sharing, maintenance, interactive };
    let mut index = stage.publish("u1");
    index.seal(&mut stage, 100);
    (clock, stage, index)
}

fn point(stage: &Stage) -> PointView {
    let mut points = stage.points();
    assert_eq!(points.len(), 1);
    points.remove(0)
}

fn named(view: &PointView) -> Vec<(&str, HoldKind, u64)> {
    let names = view.holders.iter();
    names.map(|holder| (&*holder.label, holder.kind, holder.age.as_secs())).collect()
}

#[test]
fn only_those_at_the_meet_are_named_with_their_ages() {
    let (clock, mut stage, mut index) = stage();
    clock.set(seconds(10));
    let _far = stage.reader_at("u1", 30).with_label("far");
    clock.set(seconds(20));
    let near = stage.reader_at("u1", 5).with_label("near");
    clock.set(seconds(50));
    assert!(named(&point(&stage)).is_empty(), "nothing is requested: nobody is in the way");
    index.allow(50);
    assert_eq!(named(&point(&stage)), [("near", HoldKind::Reader, 30)]);
    assert_eq!(point(&stage).stalled, Some(seconds(0)));
    clock.set(seconds(57));
    assert_eq!(point(&stage).stalled, Some(seconds(7)));
    assert_eq!(stage.report().hold_stalled, seconds(7));
    drop(near);
    stage.settle();
    assert_eq!(named(&point(&stage)), [("far", HoldKind::Reader, 47)]);
    assert_eq!(point(&stage).stalled, Some(seconds(0)), "applied has moved");
}

#[test]
fn of_two_at_one_frontier_the_one_that_goes_is_named_no_more_though_nothing_moves() {
    let (_, stage, mut index) = stage();
    let one = stage.reader_at("u1", 5).with_label("one");
    let mut other = stage.reader_at("u1", 5).with_label("other");
    index.allow(50);
    assert_eq!(named(&point(&stage)).len(), 2);
    drop(one);
    // No step: neither runtime has anything to do.
    assert_eq!(named(&point(&stage)), [("other", HoldKind::Reader, 0)]);
    let third = other.clone();
    assert_eq!(named(&point(&stage)).len(), 2, "a clone is a holder of its own");
    other.set_logical_compaction(at(40).borrow());
    assert_eq!(named(&point(&stage)).len(), 1);
    drop(third);
}

#[test]
fn many_at_the_meet_are_counted_beyond_the_first_few() {
    let (_, stage, mut index) = stage();
    let first = stage.reader_at("u1", 5).with_label("first");
    let clones: Vec<_> = (0..1_000).map(|_| first.clone()).collect();
    index.allow(50);
    let view = point(&stage);
    assert_eq!((view.holders.len(), view.more_holders), (4, 997));
    drop(clones);
    assert_eq!((point(&stage).holders.len(), point(&stage).more_holders), (1, 0));
}

#[test]
fn a_reader_has_a_label_of_its_own_or_one_that_says_what_and_where_it_is() {
    let (_, mut stage, mut index) = stage();
    let reading = stage.sharing.with_role(Role::Interactive);
    index.allow(1);
    let reader = reading.reader::<Batch>("u1", 0).unwrap();
    index.allow(50);
    assert_eq!(named(&point(&stage)), [("reader (interactive)", HoldKind::Reader, 0)]);
    let seen = stage.import_with(|scope| reader.import(scope, "report-9", Antichain::new()));
    assert_eq!(named(&point(&stage)), [("report-9 (interactive)", HoldKind::Import, 0)]);
    let report = stage.report();
    assert_eq!(report.by_kind(HoldKind::Import).hold_gap, 49);
    assert_eq!(report.by_kind(HoldKind::Reader).held, 0);
    drop(seen);
    let own = reading.reader::<Batch>("u1", 0).unwrap().with_label("mine");
    index.allow(60);
    let _seen = stage.import_with(|scope| own.import(scope, "report-10", Antichain::new()));
    let labels: Vec<_> = point(&stage).holders.iter().map(|h| h.label.to_string()).collect();
    assert!(labels.contains(&"mine".to_owned()), "{labels:?}");
}

#[test]
fn a_standing_hold_is_told_apart_from_readers_and_from_the_owners_slack() {
    let (_, mut stage, _index) = stage();
    let options = PublishOptions { name: "orders".to_owned(), standing_hold: true };
    let mut index = stage.publish_with("u2", options);
    index.seal(&mut stage, 100);
    let standing: StandingHold<Batch> = stage.sharing.standing_hold("u2", 0).unwrap();
    index.allow(50);
    let worst = stage.points().remove(0);
    assert_eq!((&*worst.name, worst.gap.distance), ("orders", 50));
    assert_eq!(named(&worst), [("u2", HoldKind::Standing, 0)]);
    assert_eq!((worst.lag, worst.slack), (Some(100), Some(50)));
    let of = |kind| stage.report().by_kind(kind);
    assert_eq!((of(HoldKind::Standing).hold_gap, of(HoldKind::Standing).held), (50, 1));
    assert_eq!(of(HoldKind::Reader).held + of(HoldKind::Import).held, 0);
    standing.allow_compaction(at(50).borrow());
    stage.settle();
    assert!(stage.points().iter().all(|point| point.holders.is_empty()));
    assert_eq!(stage.report().by_kind(HoldKind::Standing).held, 0);
}

#[test]
fn requested_goes_empty_while_a_reader_stays_and_it_is_named() {
    let (_, mut stage, mut index) = stage();
    let reader = stage.reader_at("u1", 20).with_label("stays");
    index.published.allow_compaction(Antichain::new().borrow());
    // The dataflow's own handles still stand at the minimum; they go with the dataflow.
    stage.settle();
    let view = point(&stage);
    assert_eq!((&*view.requested, view.gap.held, view.gap.distance), ("{}", true, 80));
    assert_eq!(named(&view), [("stays", HoldKind::Reader, 0)]);
    drop(reader);
    stage.settle();
    assert!(point(&stage).holders.is_empty());
}

#[test]
fn a_trace_under_three_ids_shows_its_holders_once() {
    let (_, mut stage, mut index) = stage();
    let again: Vec<_> = ["u2", "u3"]
        .map(|id| {
            let trace = index.published.trace().clone();
            let options = PublishOptions::default();
            stage.sharing.publish_trace(id, &trace, &stage.maintenance, options).unwrap()
        })
        .into_iter()
        .collect();
    let readers = ["u1", "u2", "u3"].map(|id| stage.reader_at(id, 5).with_label(id));
    index.allow(50);
    for mut published in again {
        published.allow_compaction(at(50).borrow());
        let _ = published.id();
        std::mem::forget(published);
    }
    stage.settle();
    let view = point(&stage);
    assert_eq!(view.ids.len(), 3);
    assert_eq!(view.holders.len(), 3, "{:?}", view.holders);
    assert_eq!(stage.report().held, 1);
    drop(readers);
    stage.settle();
    assert_eq!(stage.report().held, 0);
}

#[test]
fn a_placeholder_that_is_never_adopted_shows_nowhere_and_goes() {
    let stage = Stage::new();
    let waiting = stage.reader("nobody").with_label("waits in vain");
    assert!(stage.points().is_empty());
    assert_eq!(stage.report().published + stage.report().held, 0);
    drop(waiting);
    assert_eq!(stage.sharing.known(0), 0);
}

#[test]
fn a_reader_of_a_frozen_point_that_lets_go_is_named_no_more() {
    let (_, mut stage, mut index) = stage();
    let one = stage.reader_at("u1", 5).with_label("one");
    let other = stage.reader_at("u1", 9).with_label("other");
    index.allow(50);
    let Index { input, published, dataflow, .. } = index;
    // The trace lives on in the owner's handle, without an operator to apply anything.
    drop(input);
    stage.maintenance.drop_dataflow(dataflow);
    let view = point(&stage);
    assert!(view.frozen);
    assert_eq!(named(&view), [("one", HoldKind::Reader, 0)]);
    drop(one);
    assert!(point(&stage).holders.is_empty(), "held where it was, by nobody any more");
    drop((published, other));
    assert!(stage.points().is_empty());
}
