//! The replica as the exporter and the experiment drive it: joins, readers that stay, endings.

use std::time::{Duration, Instant};

use holdgap::{HoldReport, Registry, Role};
use holdgap_replica::{Replica, ReplicaOptions};

const PATIENCE: Duration = Duration::from_secs(60);

fn start(registry: &Registry, workers: usize) -> Replica {
    Replica::start(registry, ReplicaOptions { workers, keys: 50 }).unwrap()
}

fn maintained(registry: &Registry) -> Vec<HoldReport> {
    let reports = registry.reports().into_iter();
    reports.filter(|report| report.role == Role::Maintenance).collect()
}

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn joins_at_one_time_are_right_while_rounds_and_compaction_go_on() {
    let registry = Registry::new();
    let mut replica = start(&registry, 3);
    let ids: Vec<_> = (0..4).map(|_| replica.create()).collect();
    assert!(replica.join(ids[0], ids[1]).is_none(), "nothing is complete yet");
    replica.round();
    replica.round();
    let mut answered = 0;
    for join in 0..60 {
        let (left, right) = (ids[join % 4], ids[join / 4 % 4]);
        replica.join(left, right).unwrap();
        if join % 3 == 0 {
            replica.round();
        }
        if join % 5 == 4 {
            let outcome = replica.next_outcome(PATIENCE).unwrap();
            assert!(outcome.right && outcome.rows == 50, "{outcome:?}");
            answered += 1;
        }
    }
    while answered < 60 {
        let outcome = replica.next_outcome(PATIENCE).unwrap();
        assert!(outcome.right && outcome.rows == 50, "{outcome:?}");
        answered += 1;
    }
    assert_eq!(replica.pending_joins(), 0);
    replica.round();
    wait("nothing is held after the last join", || {
        maintained(&registry).iter().all(|report| report.held == 0 && report.published == 4)
    });
    replica.stop().unwrap();
}

#[test]
fn a_reader_that_stays_shows_on_every_worker_until_it_leaves() {
    let registry = Registry::new();
    let mut replica = start(&registry, 2);
    let ids = [replica.create(), replica.create()];
    replica.round();
    replica.round();
    replica.linger(ids[0], Duration::from_secs(2));
    wait("the reader holds on both workers", || {
        std::thread::sleep(Duration::from_millis(20));
        replica.round();
        maintained(&registry).iter().all(|report| report.held >= 1 && report.hold_gap >= 100)
    });
    wait("it leaves", || maintained(&registry).iter().all(|report| report.held == 0));
    assert!(replica.is_whole());
    replica.stop().unwrap();
}

#[test]
fn a_dropped_arrangement_leaves_the_gauges_and_an_ended_replica_leaves_zeros() {
    let registry = Registry::new();
    let mut replica = start(&registry, 2);
    let ids = [replica.create(), replica.create()];
    wait("both are published", || maintained(&registry).iter().all(|report| report.published == 2));
    replica.round();
    replica.drop_arrangement(ids[1]);
    replica.round();
    wait("one is left", || {
        maintained(&registry).iter().all(|report| (report.published, report.frozen) == (1, 0))
    });
    replica.stop().unwrap();
    for report in registry.reports() {
        assert_eq!((report.published, report.frozen, report.held), (0, 0, 0));
    }
}
