use std::time::Duration;

use crate::support::{Publisher, Scratch, check};

/// How often: 200 times in the suite, more by the variable.
fn kills() -> u64 {
    let more = std::env::var("HOLDGAP_KILLS").ok();
    more.and_then(|kills| kills.parse().ok()).unwrap_or(200)
}

#[test]
fn killed_at_any_moment_every_pair_is_whole_and_none_older_than_one_seen_before() {
    const POINTS: u64 = 20;
    let mut moments = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..kills() {
        let scratch = Scratch::new();
        let mut publisher = Publisher::start(&scratch, POINTS);
        publisher.wait(&scratch, POINTS);
        moments ^= moments << 13;
        moments ^= moments >> 7;
        moments ^= moments << 17;
        std::thread::sleep(Duration::from_nanos(moments % 3_000_000));
        let sequence = |view: &holdgap::PointView| (view.ids.clone(), view.sequence);
        let mut seen: Vec<_> = scratch.segment().points().unwrap().iter().map(sequence).collect();
        publisher.kill();
        let segment = scratch.segment();
        assert!(!segment.is_up());
        let points = segment.points().unwrap();
        assert_eq!(points.len() as u64, POINTS);
        points.iter().for_each(check);
        let mut left: Vec<_> = points.iter().map(sequence).collect();
        seen.sort();
        left.sort();
        for ((id, before), (same, after)) in seen.iter().zip(&left) {
            assert_eq!(id, same);
            assert!(after >= before, "{id:?} went back from {before} to {after}");
        }
        // Each was published as often as the first, or once less.
        let newest = left.iter().map(|(_, sequence)| *sequence).max().unwrap();
        assert!(left.iter().all(|(_, sequence)| newest - sequence <= 1), "{left:?}");
        for view in points.iter().filter(|view| view.gap.held) {
            assert!(matches!(&*view.holders[0].label, "one" | "other"), "{view:?}");
        }
        let report = &segment.reports().unwrap()[0];
        let held = points.iter().filter(|view| view.gap.held);
        assert_eq!(report.held, held.clone().count() as u64);
        assert_eq!(report.hold_gap, held.map(|view| view.gap.distance).max().unwrap_or(0));
    }
}
