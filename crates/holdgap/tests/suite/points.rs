use std::sync::atomic::{AtomicBool, Ordering};

use holdgap::{FrontierPair, Frontiers, Registry, Role};
use timely::order::Product;
use timely::progress::Antichain;

use crate::util::at;

#[test]
fn a_worker_reports_only_what_it_published_itself() {
    let registry = Registry::new();
    let maintenance = registry.runtime(Role::Maintenance);
    let mut first = maintenance.worker(0).publish("u1", "one");
    let mut second = maintenance.worker(1).publish("u1", "one");
    first.set(&at(9), &at(2));
    second.set(&at(9), &at(5));
    let gaps: Vec<_> = (0..2).map(|index| maintenance.worker(index).report().hold_gap).collect();
    assert_eq!(gaps, [7, 4]);
    let interactive = registry.runtime(Role::Interactive).worker(0).report();
    assert_eq!((interactive.hold_gap, interactive.held, interactive.published), (0, 0, 0));
    let reports: Vec<_> = registry.reports().iter().map(|report| report.hold_gap).collect();
    assert_eq!(reports, [7, 4, 0]);
}

#[test]
fn a_point_under_three_ids_counts_once_until_it_is_dropped() {
    let worker = Registry::new().runtime(Role::Solo).worker(0);
    let mut point = worker.publish("u1", "orders");
    point.add_id("u2");
    point.add_id("u3");
    point.add_id("u3");
    point.set(&at(5), &at(1));
    let report = worker.report();
    assert_eq!((report.published, report.held, report.hold_gap), (1, 1, 4));
    let ids = || worker.points()[0].ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(ids(), ["u1", "u2", "u3"]);
    assert_eq!(point.remove_id("u1"), 2);
    assert_eq!(ids(), ["u2", "u3"]);
    assert_eq!(worker.report(), report);
    drop(point);
    assert_eq!(worker.report().published, 0);
    assert!(worker.points().is_empty());
}

#[test]
fn the_largest_gap_counts_and_the_worst_points_come_first() {
    let worker = Registry::new().runtime(Role::Maintenance).worker(0);
    let gaps = [3, 0, 700, 41, 0];
    let points = gaps.map(|gap: u64| {
        let mut point = worker.publish(format!("u{gap}"), "some");
        point.set(&at(1_000), &at(1_000 - gap));
        point
    });
    let report = worker.report();
    assert_eq!((report.hold_gap, report.held, report.published), (700, 3, 5));
    let worst: Vec<_> = worker.worst(2).iter().map(|view| view.gap.distance).collect();
    assert_eq!(worst, [700, 41]);
    assert_eq!(worker.worst(99).len(), points.len());
    let view = &worker.worst(1)[0];
    assert_eq!((&*view.ids[0], &*view.requested, &*view.applied), ("u700", "{1000}", "{300}"));
}

#[test]
fn physical_frontiers_travel_with_the_logical_ones() {
    let worker = Registry::new().runtime(Role::Maintenance).worker(0);
    let mut point = worker.publish("u1", "some");
    let logical = FrontierPair { requested: at(10), applied: at(10) };
    let physical = FrontierPair { requested: at(10), applied: at(4) };
    let upper = at(12);
    let frontiers = Frontiers {
        physical: Some(&physical),
        upper: Some(&upper),
        ..Frontiers::logical(&logical)
    };
    point.publish(&frontiers);
    let report = worker.report();
    assert_eq!((report.held, report.physically_held, report.physical_hold_gap), (0, 1, 6));
    let view = &worker.points()[0];
    assert_eq!(view.physical_applied.as_deref(), Some("{4}"));
    assert_eq!(view.upper.as_deref(), Some("{12}"));
}

#[test]
fn a_frozen_point_counts_in_the_frozen_series_only() {
    let worker = Registry::new().runtime(Role::Maintenance).worker(0);
    let mut point = worker.publish("u1", "some");
    point.set(&at(10), &at(4));
    point.freeze();
    let report = worker.report();
    assert_eq!((report.hold_gap, report.held, report.published), (0, 0, 0));
    assert_eq!((report.frozen, report.frozen_held, report.frozen_hold_gap), (1, 1, 6));
    point.set(&at(10), &at(10));
    assert_eq!(worker.report().frozen_held, 0, "frontiers go on being published");
    drop(point);
    assert_eq!(worker.report().frozen, 0);
}

#[test]
fn an_invalid_pair_is_counted_and_hides_no_other_point() {
    let worker = Registry::new().runtime(Role::Maintenance).worker(0);
    let mut invalid = worker.publish("u1", "invalid");
    let mut valid = worker.publish("u2", "valid");
    invalid.set(&at(3), &at(1_000));
    valid.set(&at(10), &at(9));
    let report = worker.report();
    assert_eq!((report.invalid_pairs, report.held, report.hold_gap), (1, 1, 1));
    invalid.set(&at(2_000), &at(1_000));
    let report = worker.report();
    assert_eq!((report.invalid_pairs, report.held, report.hold_gap), (1, 2, 1_000));
}

#[test]
fn partially_ordered_time_is_measured_in_its_outer_coordinate() {
    let worker = Registry::new().runtime(Role::Maintenance).worker(0);
    let mut point = worker.publish::<Product<u64, u32>>("u1", "nested");
    let requested = Antichain::from_iter([Product::new(8, 0), Product::new(5, 9)]);
    let applied = Antichain::from_iter([Product::new(2, 0)]);
    point.set(&requested, &applied);
    assert_eq!(worker.report().hold_gap, 6);
}

/// Ends the threads of a test, also when it fails.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn reports_hold_while_points_come_and_go_at_full_speed() {
    let worker = Registry::new().runtime(Role::Maintenance).worker(0);
    let mut steady = worker.publish("steady", "steady");
    steady.set(&at(1_000), &at(0));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (worker, done) = (&worker, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let mut point = worker.publish(format!("t{thread}"), "passing");
                    point.set(&at(500), &at(1));
                    point.set(&at(500), &at(500));
                }
            });
        }
        let _done = Done(&done);
        for _ in 0..3_000 {
            let report = worker.report();
            assert_eq!(report.hold_gap, 1_000);
            assert!((1..=3).contains(&report.held) && report.held <= report.published);
            assert!(report.published <= 3);
            let views = worker.points();
            assert_eq!(views.iter().filter(|view| &*view.name == "steady").count(), 1);
        }
    });
    drop(steady);
    assert_eq!(worker.report().published, 0);
}
