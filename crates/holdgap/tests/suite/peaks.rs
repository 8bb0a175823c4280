use std::sync::atomic::{AtomicBool, Ordering};

use holdgap::{Point, Registry, Role, Worker};

use crate::util::at;

fn worker() -> (Registry, Worker) {
    let registry = Registry::new();
    let worker = registry.runtime(Role::Maintenance).worker(0);
    (registry, worker)
}

fn pulse(point: &mut Point<u64>, gap: u64) {
    point.set(&at(1_000), &at(1_000 - gap));
    point.set(&at(1_000), &at(1_000));
}

#[test]
fn a_gap_that_came_and_went_shows_once_to_each_of_two_consumers() {
    let (registry, worker) = worker();
    let (reporter, scraper) = (worker.reporter(), registry.scraper());
    let mut point = worker.publish("u1", "orders");
    pulse(&mut point, 5);
    pulse(&mut point, 3);
    let report = reporter.report();
    assert_eq!((report.hold_gap, report.hold_gap_peak), (0, Some(5)));
    assert_eq!(reporter.report().hold_gap_peak, Some(0));
    assert_eq!(scraper.reports()[0].hold_gap_peak, Some(5), "nobody took it from this one");
    assert_eq!(scraper.reports()[0].hold_gap_peak, Some(0));
    assert_eq!(worker.report().hold_gap_peak, None, "nobody's looks are counted");
}

#[test]
fn a_gap_that_was_there_at_the_last_look_counts_until_it_closes() {
    let (_, worker) = worker();
    let reporter = worker.reporter();
    let mut point = worker.publish("u1", "orders");
    point.set(&at(1_000), &at(900));
    assert_eq!(reporter.report().hold_gap_peak, Some(100));
    assert_eq!(reporter.report().hold_gap_peak, Some(100), "it lasts");
    point.set(&at(1_000), &at(1_000));
    assert_eq!(reporter.report().hold_gap_peak, Some(100), "it was there since the last look");
    assert_eq!(reporter.report().hold_gap_peak, Some(0));
}

#[test]
fn the_peak_of_a_point_that_is_gone_shows_once() {
    let (_, worker) = worker();
    let reporter = worker.reporter();
    let mut point = worker.publish("u1", "orders");
    point.set(&at(1_000), &at(960));
    drop(point);
    let mut frozen = worker.publish("u2", "orders");
    frozen.set(&at(1_000), &at(970));
    frozen.freeze();
    frozen.set(&at(1_000), &at(975));
    let report = reporter.report();
    assert_eq!((report.hold_gap, report.hold_gap_peak), (0, Some(40)));
    assert_eq!(reporter.report().hold_gap_peak, Some(0));
}

#[test]
fn a_worker_that_comes_later_has_peaks_from_the_next_scrape_on() {
    let (registry, _first) = worker();
    let scraper = registry.scraper();
    let later = registry.runtime(Role::Interactive).worker(7);
    let mut point = later.publish("u1", "orders");
    assert_eq!(scraper.reports()[1].hold_gap_peak, Some(0));
    pulse(&mut point, 9);
    assert_eq!(scraper.reports()[1].hold_gap_peak, Some(9));
}

#[test]
fn one_consumer_too_many_has_no_peak_rather_than_a_wrong_one() {
    let (_, worker) = worker();
    let mut reporters: Vec<_> = (0..5).map(|_| worker.reporter()).collect();
    let mut point = worker.publish("u1", "orders");
    pulse(&mut point, 5);
    assert_eq!(reporters[4].report().hold_gap_peak, None);
    reporters.remove(0);
    let late = worker.reporter();
    assert_eq!(late.report().hold_gap_peak, Some(0), "what came before it is not its own");
    pulse(&mut point, 7);
    assert_eq!(late.report().hold_gap_peak, Some(7));
    assert_eq!(reporters[0].report().hold_gap_peak, Some(7));
}

/// The writer raises to known values; whatever the timing, the largest of them is seen, and the
/// consumers' largest is no larger.
#[test]
fn no_peak_is_lost_between_a_writer_and_two_consumers_at_full_speed() {
    let (registry, worker) = worker();
    let (reporter, scraper) = (worker.reporter(), registry.scraper());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let (mut one, mut other) = (0, 0);
            while !done.load(Ordering::Acquire) {
                one = one.max(reporter.report().hold_gap_peak.unwrap());
                other = other.max(scraper.reports()[0].hold_gap_peak.unwrap());
            }
            one = one.max(reporter.report().hold_gap_peak.unwrap());
            (one, other.max(scraper.reports()[0].hold_gap_peak.unwrap()))
        });
        let mut point = worker.publish("u1", "orders");
        for n in 0..50_000_u64 {
            pulse(&mut point, if n == 31_337 { 999 } else { n % 700 });
        }
        done.store(true, Ordering::Release);
        assert_eq!(looking.join().unwrap(), (999, 999));
    });
}
