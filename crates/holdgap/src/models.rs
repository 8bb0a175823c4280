//! Models of the lock-free protocols: the shipped code, under every interleaving that loom finds.
//!
//! Two or three threads and two or three operations each; that is what can be searched, and enough
//! for each way in which two of them can meet.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crossbeam_epoch::Collector;
use loom::sync::Arc;
use loom::thread;

use crate::clock::Clock;
use crate::holders::Pins;
use crate::layout::Mirror;
use crate::mirror::{Claim, Turn};
use crate::peaks::Peaks;
use crate::record::{Flags, Head, Numbers, Record, Rest};
use crate::sync::{AtomicU64, Ordering};
use crate::table::{Slot, SlotTable};
use crate::throttle::Throttle;
use crate::view::{Details, PointView};

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

/// However the callers of an interval meet, one of them has its turn; and of the next, one again.
#[test]
fn an_interval_has_one_report_whoever_asks() {
    loom::model(|| {
        const INTERVAL: Duration = Duration::from_secs(1);
        let (start, turns) = (Instant::now(), Arc::new(AtomicU64::new(0)));
        let throttle = Arc::new(Throttle::new(INTERVAL));
        // One that is late by almost an interval is still of the first: its clock was read before.
        let asking = [[0, 1_000], [999, 1_500]].map(|moments| {
            let (throttle, turns) = (Arc::clone(&throttle), Arc::clone(&turns));
            thread::spawn(move || {
                let moments = moments.map(|moment| start + Duration::from_millis(moment));
                let had = moments.map(|now| throttle.turn(now));
                turns.fetch_add(
                    had.into_iter().filter(|had| *had).count() as u64,
                    Ordering::Relaxed,
                );
                had
            })
        });
        let had = asking.map(|asking| asking.join().unwrap());
        let turns = turns.load(Ordering::Relaxed);
        // From the first turn, at 0 or 999 milliseconds, one an interval: 0 and 1,000 or 1,500; or 999.
        assert!((1..=2).contains(&turns), "{had:?}");
        assert!(
            !throttle.turn(start + Duration::from_millis(999)),
            "the first interval is used up"
        );
        if had == [[true, false], [false, false]] {
            panic!("nobody had the turn that was due at 1,000");
        }
    });
}

struct Named(u64);

impl Details for Named {
    fn view(&self, _: Numbers, _: Duration) -> PointView {
        PointView { name: self.0.to_string().into(), ..PointView::default() }
    }

    fn pins(&self) -> Option<Pins> {
        None
    }

    fn show(&self, _: Numbers, _: &Mirror<'_>) {}
}

fn add(table: &SlotTable, name: u64) -> Slot {
    table.add(std::sync::Arc::new(Named(name)), Numbers { gap: name, ..Numbers::default() })
}

/// What a scan finds: names, each once; and those that it can still tell the details of.
fn scan(table: &SlotTable) -> (BTreeSet<u64>, BTreeSet<u64>) {
    let (mut found, mut live) = (BTreeSet::new(), Vec::new());
    table.scan_live(|index, numbers, _| {
        assert!(found.insert(numbers.gap), "{} is seen twice", numbers.gap);
        live.push((index, numbers));
    });
    let details = table.details(&live).into_iter().map(|(numbers, details)| {
        let name = details.view(numbers, Duration::ZERO).name;
        assert_eq!(*name, numbers.gap.to_string(), "one point's numbers with another's name");
        numbers.gap
    });
    let details = details.collect();
    (found, details)
}

/// A point that stays is seen once by every scan; one that comes or goes at most once, and never
/// after it was removed; a slot that is used again is not taken for its last tenant.
#[test]
fn a_scan_sees_who_stays_once_and_who_was_removed_no_more() {
    bounded(2, || {
        let table = Arc::new(SlotTable::new(Collector::new(), Clock::manual()));
        let _staying = add(&table, 1);
        let going = add(&table, 2);
        let churn = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                table.remove(going);
                // Into the slot that was left, and into a chunk that was not there.
                [add(&table, 3), add(&table, 4)]
            })
        };
        let (found, details) = scan(&table);
        assert!(found.contains(&1) && details.contains(&1), "{found:?}");
        assert!(found.iter().all(|name| (1..=4).contains(name)), "{found:?}");
        let _added = churn.join().unwrap();
        let all = BTreeSet::from([1, 3, 4]);
        assert_eq!(scan(&table), (all.clone(), all));
    });
}

/// Two who add and remove at once leave the table as if one had come after the other.
#[test]
fn two_who_add_and_remove_at_once_do_not_lose_a_point() {
    bounded(2, || {
        let table = Arc::new(SlotTable::new(Collector::new(), Clock::manual()));
        let first = add(&table, 1);
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || add(&table, 2))
        };
        table.remove(first);
        let _third = add(&table, 3);
        let _second = other.join().unwrap();
        let all = BTreeSet::from([2, 3]);
        assert_eq!(scan(&table), (all.clone(), all));
    });
}
