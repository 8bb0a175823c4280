use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use holdgap::{
    Clock, FrontierPair, Frontiers, HoldKind, Holder, Holders, Pinned, Pins, Point, Queued,
    Registry, RegistryOptions, Role, Worker,
};

use crate::util::at;

/// A worker whose clock stands still but for the test.
fn worker() -> (Clock, Worker) {
    let clock = Clock::manual();
    let options = RegistryOptions { clock: clock.clone(), ..RegistryOptions::default() };
    (clock, Registry::with_options(options).runtime(Role::Maintenance).worker(0))
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn held_by(kinds: &[HoldKind], registered: Duration) -> Arc<Holders> {
    let holder = |kind: &HoldKind| Holder { kind: *kind, label: kind.label().into(), registered };
    let named = kinds.iter().map(holder).collect();
    Arc::new(Holders { named, more: 0, kinds: kinds.iter().copied().collect() })
}

fn publish(point: &mut Point<u64>, requested: u64, applied: u64, holders: &Arc<Holders>) {
    let logical = FrontierPair { requested: at(requested), applied: at(applied) };
    point.publish(&Frontiers { holders: Some(holders), ..Frontiers::logical(&logical) });
}

#[test]
fn each_kind_shows_the_points_it_binds_and_the_largest_of_them_is_the_gap() {
    let (_, worker) = worker();
    let mut points: Vec<_> = (0..4).map(|n| worker.publish(format!("u{n}"), "some")).collect();
    publish(&mut points[0], 10, 4, &held_by(&[HoldKind::Standing], seconds(0)));
    publish(&mut points[1], 10, 7, &held_by(&[HoldKind::Standing, HoldKind::Reader], seconds(0)));
    publish(&mut points[2], 10, 8, &held_by(&[HoldKind::Reader], seconds(0)));
    publish(&mut points[3], 10, 10, &held_by(&[], seconds(0)));
    let report = worker.report();
    let of = |kind| (report.by_kind(kind).hold_gap, report.by_kind(kind).held);
    assert_eq!(of(HoldKind::Standing), (6, 2));
    assert_eq!(of(HoldKind::Import), (0, 0));
    assert_eq!(of(HoldKind::Reader), (3, 2));
    let largest = HoldKind::ALL.into_iter().map(|kind| report.by_kind(kind).hold_gap).max();
    assert_eq!(largest, Some(report.hold_gap));
    points[0].freeze();
    assert_eq!(worker.report().by_kind(HoldKind::Standing).hold_gap, 3, "frozen points stay out");
}

#[test]
fn holders_are_named_with_their_ages_until_they_let_go() {
    let (clock, worker) = worker();
    let mut point = worker.publish("u1", "orders");
    clock.set(seconds(100));
    let mut holders = Arc::unwrap_or_clone(held_by(&[HoldKind::Import], seconds(40)));
    holders.more = 2;
    publish(&mut point, 10, 4, &Arc::new(holders));
    let view = &worker.points()[0];
    assert_eq!((&*view.holders[0].label, view.holders[0].age), ("import", seconds(60)));
    assert_eq!(view.more_holders, 2);
    publish(&mut point, 10, 10, &held_by(&[], seconds(0)));
    let view = &worker.points()[0];
    assert!(view.holders.is_empty() && view.more_holders == 0 && view.stalled.is_none());
}

#[test]
fn stalled_counts_from_when_a_point_came_to_be_held_or_its_applied_frontier_moved() {
    let (clock, worker) = worker();
    let mut point = worker.publish("u1", "orders");
    clock.set(seconds(1_000));
    point.set(&at(5), &at(5));
    assert_eq!(worker.report().hold_stalled, Duration::ZERO, "not held");
    clock.set(seconds(2_000));
    point.set(&at(6), &at(5));
    clock.set(seconds(2_007));
    assert_eq!(worker.report().hold_stalled, seconds(7), "not since it last moved unheld");
    point.set(&at(9), &at(5));
    clock.set(seconds(2_010));
    assert_eq!(worker.report().hold_stalled, seconds(10), "what is requested makes no difference");
    point.set(&at(9), &at(6));
    clock.set(seconds(2_012));
    assert_eq!(worker.report().hold_stalled, seconds(2));
    assert_eq!(worker.points()[0].stalled, Some(seconds(2)));
    let mut older = worker.publish("u2", "orders");
    older.set(&at(2), &at(1));
    point.set(&at(9), &at(7));
    clock.set(seconds(2_020));
    point.set(&at(9), &at(8));
    assert_eq!(worker.report().hold_stalled, seconds(8), "the longest counts");
    drop(older);
    assert_eq!(worker.report().hold_stalled, Duration::ZERO);
    point.set(&at(9), &at(9));
    clock.set(seconds(9_000));
    assert_eq!(worker.report().hold_stalled, Duration::ZERO);
}

#[test]
fn a_clock_that_steps_back_makes_no_nonsense() {
    let (clock, worker) = worker();
    let mut point = worker.publish("u1", "orders");
    clock.set(seconds(1_000));
    publish(&mut point, 10, 4, &held_by(&[HoldKind::Reader], seconds(990)));
    clock.set(seconds(3));
    assert_eq!(worker.report().hold_stalled, Duration::ZERO);
    let view = &worker.points()[0];
    assert_eq!((view.stalled, view.holders[0].age), (Some(Duration::ZERO), Duration::ZERO));
    publish(&mut point, 10, 5, &held_by(&[HoldKind::Reader], seconds(2)));
    clock.set(seconds(5));
    assert_eq!(worker.report().hold_stalled, seconds(2), "it goes on from the new time");
}

#[test]
fn queues_and_pins_are_summed_over_live_and_frozen_points() {
    struct Some(AtomicU64);
    impl Pinned for Some {
        fn pins(&self) -> Pins {
            let batches = self.0.load(Ordering::Relaxed);
            Pins { batches, updates: batches * 10 }
        }
    }
    let (_, worker) = worker();
    let pinned: Vec<_> = (1..=3).map(|n| Arc::new(Some(AtomicU64::new(n)))).collect();
    let mut points = Vec::new();
    for (n, pinned) in (1..=3).zip(&pinned) {
        let mut point = worker.publish::<u64>("u1", "orders");
        point.count_pins(Arc::<Some>::clone(pinned));
        point.set_queued(Queued { instructions: n * 3, batches: n * 2 });
        points.push(point);
    }
    points[0].freeze();
    let report = worker.report();
    assert_eq!(report.pins, Pins { batches: 6, updates: 60 });
    assert_eq!(report.queued, Queued { instructions: 18, batches: 12 });
    // They end without a word of the writer's.
    pinned.iter().for_each(|pinned| pinned.0.store(0, Ordering::Relaxed));
    assert_eq!(worker.report().pins, Pins::default());
    points.truncate(1);
    points[0].set_queued(Queued::default());
    assert_eq!(worker.report().queued, Queued::default());
}
