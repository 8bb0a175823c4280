//! At most once an interval, whoever asks and however often.
//!
//! # The protocol
//!
//! `due` is the moment of the next turn; there is none before the first turn, which is at once. A
//! caller whose own moment lies before it is refused after one load and a compare. A caller at or
//! beyond it tries to move `due` one interval past its own moment by compare-and-exchange from the
//! value it read; exactly one of several callers that read the same value succeeds, and the others
//! lost their turn to it.
//!
//! *The cell*: an `Instant` does not fit a machine word, so crossbeam's `AtomicCell` keeps it under a
//! sequence: a load is two reads of the sequence around one of the value, and only an exchange, once
//! an interval, makes it try again. Nothing else is published through it.

use std::time::{Duration, Instant};

use crate::sync::AtomicCell;

pub(crate) struct Throttle {
    interval: Duration,
    due: AtomicCell<Option<Instant>>,
}

impl Throttle {
    /// A throttle whose first turn is at once.
    pub(crate) fn new(interval: Duration) -> Self {
        Throttle { interval, due: AtomicCell::new(None) }
    }

    /// Whether the caller has this interval's turn.
    #[inline]
    pub(crate) fn turn(&self, now: Instant) -> bool {
        let due = self.due.load();
        due.is_none_or(|due| now >= due) && self.take(due, now)
    }

    #[cold]
    fn take(&self, due: Option<Instant>, now: Instant) -> bool {
        // An interval beyond all time: a year is as good.
        let year = Duration::from_secs(365 * 86_400);
        let next = now.checked_add(self.interval).unwrap_or_else(|| now + year);
        self.due.compare_exchange(due, Some(next)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{AtomicUsize, Ordering};

    const INTERVAL: Duration = Duration::from_secs(1);

    #[test]
    fn one_turn_an_interval() {
        let (throttle, start) = (Throttle::new(INTERVAL), Instant::now());
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let turns: Vec<_> = [0, 1, 999, 1000, 1500, 1999, 2000].map(at).into();
        let turns: Vec<_> = turns.into_iter().map(|now| throttle.turn(now)).collect();
        assert_eq!(turns, [true, false, false, true, false, false, true]);
    }

    #[test]
    fn a_late_caller_does_not_get_the_turns_it_missed() {
        let (throttle, start) = (Throttle::new(INTERVAL), Instant::now());
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        assert!(throttle.turn(at(0)) && throttle.turn(at(9_500)));
        assert!(!throttle.turn(at(10_400)) && throttle.turn(at(10_500)));
    }

    #[test]
    fn a_moment_before_the_throttle_was_made_has_the_first_turn() {
        let before = Instant::now();
        let throttle = Throttle::new(INTERVAL);
        assert!(throttle.turn(before) && !throttle.turn(before));
    }

    #[test]
    fn an_interval_beyond_all_time_is_a_long_one() {
        let (throttle, now) = (Throttle::new(Duration::MAX), Instant::now());
        assert!(throttle.turn(now) && !throttle.turn(now + INTERVAL));
    }

    #[test]
    fn of_many_callers_at_one_moment_one_has_the_turn() {
        let (throttle, start) = (Throttle::new(INTERVAL), Instant::now());
        let turns = AtomicUsize::new(0);
        for round in 0..200 {
            let now = start + INTERVAL * round;
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| turns.fetch_add(throttle.turn(now).into(), Ordering::Relaxed));
                }
            });
        }
        assert_eq!(turns.into_inner(), 200);
    }
}
