use holdgap_trace::{KeyBatch, PublishError, PublishOptions, ReadError};
use timely::progress::Antichain;

use crate::support::{Batch, Stage, at};

#[test]
fn a_reader_that_comes_first_waits_at_the_minimum_and_is_served() {
    let mut stage = Stage::new();
    let reader = stage.reader("u1");
    assert!(!reader.is_published());
    assert_eq!(reader.upper(), at(0), "not empty: that would read as sealed for ever");
    let report = stage.report();
    assert_eq!((report.published, report.held), (0, 0), "a placeholder is not a point");
    let seen = stage.import(reader.clone(), Antichain::new());
    stage.settle();
    assert!(!seen.probe.done());

    let mut index = stage.publish("u1");
    assert!(reader.is_published());
    index.round(&mut stage, 7);
    stage.settle();
    assert_eq!(seen.contents(0).len(), 1);
    assert_eq!(seen.probe.with_frontier(|frontier| frontier.to_owned()), at(1));
}

#[test]
fn whoever_waits_below_the_since_is_joined_up_to_it() {
    let mut stage = Stage::new();
    let waiting = stage.reader("u2");
    let seen = stage.import(waiting.clone(), Antichain::new());
    let mut index = stage.publish("u1");
    for round in 0..10 {
        index.round(&mut stage, round % 2);
    }
    index.allow(6);
    for _ in 0..20 {
        stage.maintenance.step();
    }
    let _again = republish(&mut stage, &index, "u2").unwrap();
    assert_eq!(waiting.logical_compaction(), at(6));
    stage.settle();
    let whole = stage.reader_at("u1", 6);
    let whole = stage.import(whole, Antichain::new());
    stage.settle();
    for time in 6..10 {
        assert_eq!(seen.contents(time), whole.contents(time));
    }
    assert!(seen.updates.borrow().iter().all(|(_, time, _)| *time >= 6), "no coalesced time shows");
}

fn republish(
    stage: &mut Stage,
    index: &crate::support::Index,
    id: &str,
) -> Result<
    holdgap_trace::Published<
        differential_dataflow::trace::implementations::spine_fueled::Spine<Batch>,
    >,
    PublishError,
> {
    let trace: &crate::support::Agent = index.published.trace();
    stage.sharing.publish_trace(id, trace, &stage.maintenance, PublishOptions::default())
}

#[test]
fn a_placeholder_goes_with_its_last_reader() {
    let stage = Stage::new();
    let first = stage.reader("u1");
    let second = first.clone();
    let other = stage.reader("u1");
    assert_eq!(stage.sharing.known(0), 1);
    drop((first, second));
    assert_eq!(stage.sharing.known(0), 1);
    drop(other);
    assert_eq!(stage.sharing.known(0), 0);
}

#[test]
fn an_eviction_does_not_race_an_adoption() {
    for _ in 0..300 {
        let mut stage = Stage::new();
        let reader = stage.reader("u1");
        let sharing = stage.sharing.clone();
        let mut index = std::thread::scope(|scope| {
            scope.spawn(move || drop(reader));
            stage.publish("u1")
        });
        assert_eq!(sharing.known(0), 1);
        index.round(&mut stage, 1);
        assert_eq!(sharing.reader::<Batch>("u1", 0).unwrap().upper(), at(1));
    }
}

#[test]
fn a_trace_under_three_ids_counts_once_and_all_its_readers_hold_it() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    let early = stage.reader("u3");
    let mut second = republish(&mut stage, &index, "u2").unwrap();
    let mut third = republish(&mut stage, &index, "u3").unwrap();
    index.seal(&mut stage, 100);
    let readers = [("u1", 30), ("u2", 20)].map(|(id, time)| stage.reader_at(id, time));
    for published in [&mut index.published, &mut second, &mut third] {
        published.allow_compaction(at(60).borrow());
    }
    assert_eq!(stage.pair(), ("{60}".into(), "{0}".into()));
    drop(early);
    stage.settle();
    assert_eq!(stage.pair(), ("{60}".into(), "{20}".into()));
    let report = stage.report();
    assert_eq!((report.published, report.held, report.hold_gap), (1, 1, 40));
    let ids: Vec<_> = stage.points()[0].ids.iter().map(ToString::to_string).collect();
    assert_eq!(ids, ["u1", "u2", "u3"]);
    drop(readers);
    stage.settle();
    assert_eq!(stage.pair().1, "{60}");
}

#[test]
fn removing_one_id_leaves_the_others_their_readers_and_their_signals() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    let second = republish(&mut stage, &index, "u2").unwrap();
    let inbox = stage.sharing.inbox();
    stage.sharing.watch::<Batch>(&inbox, "u1", 0).unwrap();
    let reader = stage.reader_at("u2", 0);
    drop(second);
    assert_eq!(stage.sharing.known(0), 1);
    index.round(&mut stage, 1);
    assert_eq!(inbox.drain().len(), 1, "the signal of the other id is whole");
    assert_eq!(reader.upper(), at(1), "so is a reader that came by the id that is gone");
    assert_eq!(stage.points()[0].ids.len(), 1);
    assert_eq!(stage.report().published, 1);
}

#[test]
fn an_index_made_again_under_its_id_is_another_point() {
    let mut stage = Stage::new();
    let mut index = stage.publish("u1");
    index.round(&mut stage, 1);
    let old = stage.reader("u1");
    index.allow(1);
    let dataflow = index.dataflow;
    drop(index);
    stage.maintenance.drop_dataflow(dataflow);
    let mut again = stage.publish("u1");
    again.seal(&mut stage, 50);
    assert_eq!(old.upper(), at(1), "the old reader stays on the old data");
    assert_eq!(old.spans().len(), 1);
    assert_eq!(stage.reader("u1").upper(), at(50));
    let report = stage.report();
    assert_eq!((report.published, report.frozen, report.frozen_held), (1, 1, 1));
    assert_eq!(report.held, 0);
    drop(old);
    let report = stage.report();
    assert_eq!((report.published, report.frozen, report.frozen_held), (1, 0, 0));
}

#[test]
fn an_id_in_use_and_a_wrong_type_are_refused_in_one_line() {
    let mut stage = Stage::new();
    let index = stage.publish("u1");
    let other = stage.publish("u2");
    let in_use = republish(&mut stage, &other, "u1").unwrap_err();
    assert_eq!(in_use, PublishError::InUse { id: "u1".into(), worker: 0 });
    let wrong = stage.sharing.reader::<KeyBatch<String, u64, isize>>("u1", 0).unwrap_err();
    assert!(matches!(&wrong, ReadError::WrongType { known, .. } if known.contains("(u64, u64)")));
    assert!(!wrong.to_string().contains('\n'));
    let _waiting = stage.sharing.reader::<KeyBatch<String, u64, isize>>("u3", 0).unwrap();
    let wrong = republish(&mut stage, &index, "u3").unwrap_err();
    assert!(
        matches!(&wrong, PublishError::WrongType { waited_for, .. } if waited_for.contains("String"))
    );
    for text in [in_use.to_string(), wrong.to_string()] {
        assert!(!text.contains('\n'), "{text}");
    }
}
