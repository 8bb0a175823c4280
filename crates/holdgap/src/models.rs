//! Models of the lock-free protocols: the shipped code, under every interleaving that loom finds.
//!
//! Two or three threads and two or three operations each; that is what can be searched, and enough
//! for each way in which two of them can meet.

use loom::sync::Arc;
use loom::thread;

use crate::mirror::{Claim, Turn};
use crate::peaks::Peaks;
use crate::record::{Flags, Head, Numbers, Record, Rest};
use crate::sync::{AtomicU64, Ordering};

fn numbers(n: u64) -> Numbers {
    // Physically held, so that both parts of the record are written.
    let flags = Flags::LIVE.with(Flags::PHYSICALLY_HELD, true);
    let (gap, lag) = (n, n + 10);
    Numbers { flags, gap, lag, slack: 10, physical_gap: n * 100, ..Numbers::default() }.flagged()
}

/// Every interleaving with no more than so many threads put to sleep in the middle of something:
/// what a search over a dozen words at a time can afford.
fn bounded(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// A record's reader sees the numbers of one write, whole, and never an older one than before.
#[test]
fn a_record_is_one_write_s_to_whoever_reads_it() {
    bounded(2, || {
        let record = Arc::new((Head::default(), Rest::default()));
        let of = |record: &(Head, Rest)| Record { head: &record.0, rest: &record.1 }.read();
        Record { head: &record.0, rest: &record.1 }.write(numbers(1));
        let writing = {
            let record = Arc::clone(&record);
            thread::spawn(move || {
                for n in 2..4 {
                    Record { head: &record.0, rest: &record.1 }.write(numbers(n));
                }
            })
        };
        let first = of(&record);
        assert_eq!(first, numbers(first.gap));
        let second = of(&record);
        assert_eq!(second, numbers(second.gap));
        assert!(second.gap >= first.gap);
        writing.join().unwrap();
        assert_eq!(of(&record), numbers(3));
    });
}

/// Of two raises and two takes, what is taken is the largest, once, and nothing is lost.
#[test]
fn no_peak_is_lost_between_a_raise_and_a_take() {
    loom::model(|| {
        let shared = Arc::new((AtomicU64::new(0), Peaks::default()));
        let raising = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.1.raise(&shared.0, 1, 5);
                shared.1.raise(&shared.0, 1, 3);
                shared.1.raise(&shared.0, 1, 9);
            })
        };
        let taken = [shared.1.take(&shared.0, 0), shared.1.take(&shared.0, 0)];
        raising.join().unwrap();
        let left = shared.1.take(&shared.0, 0);
        assert_eq!(taken.into_iter().chain([left]).max(), Some(9), "{taken:?} {left}");
    });
}

/// Whoever attaches and whoever publishes never show a slot at once, and what was published last is
/// what is shown at the end.
#[test]
fn a_slot_is_shown_by_one_at_a_time_and_as_it_was_published_last() {
    struct Slot {
        claim: Claim,
        published: AtomicU64,
        shown: AtomicU64,
        showing: AtomicU64,
    }

    impl Slot {
        fn show(&self) {
            assert_eq!(self.showing.swap(1, Ordering::Relaxed), 0, "two at once");
            self.shown.store(self.published.load(Ordering::Relaxed), Ordering::Relaxed);
            self.showing.store(0, Ordering::Relaxed);
        }
    }

    loom::model(|| {
        let slot = Arc::new(Slot {
            claim: Claim::new(),
            published: AtomicU64::new(1),
            shown: AtomicU64::new(0),
            showing: AtomicU64::new(0),
        });
        let publishing = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                for n in 2..4 {
                    slot.published.store(n, Ordering::Relaxed);
                    if slot.claim.turn() != Turn::None {
                        slot.show();
                    }
                }
            })
        };
        if slot.claim.begin() {
            loop {
                slot.show();
                if slot.claim.finish() {
                    break;
                }
            }
        }
        publishing.join().unwrap();
        assert_eq!(slot.shown.load(Ordering::Relaxed), 3);
    });
}
