//! Models of the two protocols by which runtimes meet: the shipped code, under every interleaving
//! that loom finds. A trace and an operator are not needed for them: what settles tells here what it
//! would have told its trace, and what is woken looks again.

use std::sync::Arc;

use holdgap::Clock;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use timely::progress::Antichain;
use timely::scheduling::SyncActivator;
use timely::scheduling::activate::Activations;

use crate::batch::KeyBatch;
use crate::holds::{Compaction, HoldId};
use crate::publication::{Publication, Refusal};
use crate::seals::{SealInbox, Watches};
use crate::state::Phase;
use crate::sync::{Mutex, lock};

type Batch = KeyBatch<u64, u64, isize>;

fn at(time: u64) -> Antichain<u64> {
    Antichain::from_elem(time)
}

fn logical(time: u64) -> Compaction<u64> {
    Compaction { logical: at(time), physical: at(0) }
}

fn bounded(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// A publication with a trace, and what the trace inside was told it may forget.
struct Stage {
    publication: Arc<Publication<Batch>>,
    told: AtomicU64,
}

impl Stage {
    /// And the worker's end of its wakes.
    fn new() -> (Arc<Self>, Activations) {
        let activations = Activations::new(None);
        let waker = Arc::new(SyncActivator::new(vec![0], activations.sync()));
        let publication = Publication::placeholder(Clock::manual());
        publication.with(|_, state| state.phase = Phase::Live { waker, peers: 1 });
        (Arc::new(Stage { publication, told: AtomicU64::new(0) }), activations)
    }

    /// What the spine does when its owner allows compaction, or when it is woken.
    fn settle(&self) {
        let settled = self.publication.settle(&logical(5));
        if let Some(logical) = settled.logical {
            self.told.store(logical[0], Ordering::SeqCst);
        }
    }

    fn told(&self) -> u64 {
        self.told.load(Ordering::SeqCst)
    }

    /// Once all is still: what nobody holds any more was told, or the operator was woken to tell it.
    fn is_left_to_nobody(&self, mut activations: Activations) {
        if self.publication.has_moved() {
            activations.advance();
            let mut woken = false;
            activations.for_extensions(&[], |_| woken = true);
            assert!(woken, "a hold has moved, and nobody was woken");
            self.settle();
        }
        assert_eq!((self.told(), self.publication.since()), (5, at(5)));
    }
}

/// Whoever is admitted at a time finds a trace that was not told to forget it, for as long as the
/// hold stands; whoever is refused is told a since that rules the time out.
#[test]
fn nobody_is_admitted_below_what_the_trace_was_told_and_what_is_let_go_is_not_forgotten() {
    bounded(3, || {
        let (stage, activations) = Stage::new();
        let writer = {
            let stage = Arc::clone(&stage);
            thread::spawn(move || {
                stage.settle();
                if stage.publication.has_moved() {
                    stage.settle();
                }
            })
        };
        let id = HoldId::next();
        match stage.publication.register(id, Some(&at(3)), "reader".into()) {
            Ok(_) => {
                assert!(stage.told() <= 3);
                stage.publication.advance(id, &logical(4));
                assert!(stage.told() <= 4);
                stage.publication.release(id);
            }
            Err(Refusal::Compacted { since, .. }) => assert_eq!(since, at(5)),
            Err(Refusal::Ended) => panic!("it has not ended"),
        }
        writer.join().unwrap();
        stage.is_left_to_nobody(activations);
    });
}

/// Between a clone and the drop of what it was cloned from, nobody may compact past both.
#[test]
fn a_clone_holds_where_its_source_did_before_that_lets_go() {
    bounded(3, || {
        let (stage, activations) = Stage::new();
        let [source, clone] = [HoldId::next(), HoldId::next()];
        stage.publication.register(source, Some(&at(2)), "reader".into()).unwrap();
        let writer = {
            let stage = Arc::clone(&stage);
            thread::spawn(move || {
                stage.settle();
                if stage.publication.has_moved() {
                    stage.settle();
                }
            })
        };
        stage.publication.register_beside(clone, source);
        stage.publication.release(source);
        assert!(stage.told() <= 2, "the clone stands there");
        stage.publication.release(clone);
        writer.join().unwrap();
        stage.is_left_to_nobody(activations);
    });
}

/// Of two who let go at once, the last one wakes the operator.
#[test]
fn the_last_of_two_who_let_go_wakes_the_operator() {
    bounded(3, || {
        let (stage, activations) = Stage::new();
        let ids = [HoldId::next(), HoldId::next()];
        for (id, time) in ids.into_iter().zip(2..) {
            stage.publication.register(id, Some(&at(time)), "reader".into()).unwrap();
        }
        stage.settle();
        assert_eq!(stage.told(), 2);
        let other = {
            let stage = Arc::clone(&stage);
            thread::spawn(move || stage.publication.release(ids[0]))
        };
        stage.publication.release(ids[1]);
        other.join().unwrap();
        assert!(stage.publication.has_moved());
        stage.is_left_to_nobody(activations);
    });
}

/// A worker that sleeps whenever its inbox is empty sees the last upper: a lost wake would leave it
/// asleep, which loom finds.
#[test]
fn a_worker_that_sleeps_until_it_is_signalled_sees_the_last_seal() {
    bounded(3, || {
        struct Trace {
            upper: u64,
            watches: Watches,
        }
        let trace = Arc::new(Mutex::new(Trace { upper: 0, watches: Watches::default() }));
        let inbox = SealInbox::new();
        lock(&trace).watches.add(inbox.watch("u1".into()));
        let writer = {
            let trace = Arc::clone(&trace);
            thread::spawn(move || {
                for upper in 1..=2 {
                    let signals = {
                        let mut trace = lock(&trace);
                        trace.upper = upper;
                        trace.watches.signals()
                    };
                    signals.iter().for_each(crate::seals::SealWatch::fire);
                }
            })
        };
        loop {
            if inbox.drain().is_empty() {
                thread::park();
            } else if lock(&trace).upper == 2 {
                break;
            }
        }
        writer.join().unwrap();
    });
}
