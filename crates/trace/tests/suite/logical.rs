use holdgap_trace::ReadError;
use timely::progress::Antichain;

use crate::support::{Batch, Stage, at};

fn pair(requested: &str, applied: &str) -> (String, String) {
    (requested.to_owned(), applied.to_owned())
}

#[test]
fn logical_frontiers_report_what_the_holds_withhold() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    for key in 0..10 {
        index.round(&mut stage, key);
    }
    index.allow(4);
    assert_eq!(stage.pair(), pair("{4}", "{4}"));
    let reader = stage.reader("u1");
    index.allow(9);
    assert_eq!(stage.pair(), pair("{9}", "{4}"));
    let report = stage.report();
    assert_eq!((report.hold_gap, report.held, report.published), (5, 1, 1));
    drop(reader);
    stage.settle();
    assert_eq!(stage.pair(), pair("{9}", "{9}"));
    assert_eq!((stage.report().hold_gap, stage.report().held), (0, 0));
}

#[test]
fn applied_is_the_meet_of_the_request_and_every_hold() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.seal(&mut stage, 100);
    let mut readers = [7, 30, 5, 42].map(|time| stage.reader_at("u1", time));
    index.allow(60);
    assert_eq!(stage.pair(), pair("{60}", "{5}"));
    readers[2].set_logical_compaction(at(31).borrow());
    stage.settle();
    assert_eq!(stage.pair(), pair("{60}", "{7}"));
    drop(readers);
    stage.settle();
    assert_eq!(stage.pair(), pair("{60}", "{60}"));
}

/// A program without any second runtime, whose own forgotten handle holds compaction back.
#[test]
fn the_owner_s_own_slack_is_told_apart_from_what_readers_hold() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.seal(&mut stage, 100);
    let lag = |stage: &Stage| {
        let report = stage.report();
        (report.compaction_lag, report.owner_slack, report.hold_gap)
    };
    index.allow(20);
    let forgotten = index.published.trace().clone();
    index.allow(95);
    assert_eq!(lag(&stage), (80, 80, 0));
    drop(forgotten);
    assert_eq!(lag(&stage), (5, 5, 0));
    let reader = stage.reader("u1");
    index.seal(&mut stage, 150);
    index.allow(140);
    assert_eq!(lag(&stage), (55, 10, 45), "what readers hold is the rest");
    drop(reader);
    stage.settle();
    assert_eq!(lag(&stage), (10, 10, 0));
}

#[test]
fn applied_never_goes_back() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.seal(&mut stage, 100);
    index.allow(50);
    assert!(stage.sharing.reader_at::<Batch>("u1", 0, &at(49)).is_err());
    let _at_the_edge = stage.reader_at("u1", 50);
    index.allow(20);
    assert_eq!(stage.pair(), pair("{50}", "{50}"), "an owner's request joins too");
}

#[test]
fn a_refusal_names_the_since_and_who_let_go() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.seal(&mut stage, 100);
    let _reader = stage.reader_at("u1", 40);
    index.allow(60);
    let refused = stage.sharing.reader_at::<Batch>("u1", 0, &at(39)).unwrap_err();
    let ReadError::Compacted { as_of, since, requested, .. } = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!([&**as_of, since, requested], ["{39}", "{40}", "{60}"]);
    let text = refused.to_string();
    assert!(text.contains("{40}") && text.contains("{60}") && !text.contains('\n'), "{text}");
    assert_eq!(stage.pair().1, "{40}", "a refusal holds nothing");
}

#[test]
fn an_owner_that_allows_everything_leaves_nothing_to_read() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.seal(&mut stage, 100);
    let reader = stage.reader_at("u1", 40);
    index.published.allow_compaction(Antichain::new().borrow());
    let report = stage.report();
    assert_eq!((report.held, report.hold_gap), (1, 60), "the gap runs to the upper");
    drop(reader);
    stage.settle();
    assert_eq!(stage.pair(), pair("{}", "{}"));
    assert!(stage.sharing.reader::<Batch>("u1", 0).is_err());
}

#[test]
fn holds_that_all_end_do_not_tell_the_trace_empty() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.seal(&mut stage, 100);
    index.allow(10);
    for time in [10, 20] {
        stage.reader_at("u1", time).set_logical_compaction(Antichain::new().borrow());
    }
    stage.settle();
    assert_eq!(stage.pair(), pair("{10}", "{10}"));
}

/// Readers on another thread ask for the oldest time that they might get, while the writer compacts
/// and merges at full speed. Whoever is admitted must read exactly what was there at its time.
#[test]
fn nobody_is_admitted_at_a_time_that_is_about_to_be_coalesced() {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    let (newest, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let sharing = stage.sharing.clone();
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let (mut admitted, mut refused) = (0, 0);
            while !done.load(Ordering::Relaxed) {
                let newest = newest.load(Ordering::Acquire);
                for time in newest.saturating_sub(3)..newest {
                    match sharing.reader_at::<Batch>("u1", 0, &at(time)) {
                        Ok(reader) => {
                            let upper = reader.upper();
                            if upper.less_than(&(time + 1)) {
                                continue;
                            }
                            let updates = crate::answers::updates_of(&reader.spans());
                            let contents = crate::support::contents(&updates, time);
                            // Each round replaces the one value, so there is one row at any time.
                            let expected = [((0, time), 1)].into_iter().collect();
                            assert_eq!(contents, expected, "at {time}");
                            admitted += 1;
                        }
                        Err(_) => refused += 1,
                    }
                }
            }
            (admitted, refused)
        });
        for round in 0..4_000 {
            index.round(&mut stage, 0);
            index.allow(u64::saturating_sub(round, 2));
            stage.maintenance.step();
            newest.store(round, Ordering::Release);
        }
        done.store(true, Ordering::Relaxed);
        let (admitted, refused) = reading.join().unwrap();
        assert!(admitted > 0 && refused > 0, "{admitted} admitted, {refused} refused");
    });
}
