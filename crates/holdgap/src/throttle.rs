//! At most once an interval, whoever asks and however often.
//!
//! # The protocol
//!
//! `due` is the moment of the next turn, in nanoseconds since the throttle was made. A caller whose
//! own moment lies before it is refused after one relaxed load and a compare. A caller at or beyond
//! it tries to move `due` one interval past its own moment by compare-and-exchange from the value it
//! read; exactly one of several callers that read the same value succeeds, and the others lost their
//! turn to it.
//!
//! *Orderings*: relaxed throughout. The compare-and-exchange alone decides who has the turn, and
//! nothing else is published through `due`.

use std::time::{Duration, Instant};

use crate::sync::{AtomicU64, Ordering};

pub(crate) struct Throttle {
    made: Instant,
    interval: u64,
    due: AtomicU64,
}

/// Of up to five hundred years; what is longer is as long.
#[inline]
fn nanoseconds(duration: Duration) -> u64 {
    let seconds = duration.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(u64::from(duration.subsec_nanos()))
}

impl Throttle {
    /// A throttle whose first turn is at once.
    pub(crate) fn new(interval: Duration) -> Self {
        let (made, due) = (Instant::now(), AtomicU64::new(0));
        Throttle { made, interval: nanoseconds(interval), due }
    }

    /// Whether the caller has this interval's turn.
    #[inline]
    pub(crate) fn turn(&self, now: Instant) -> bool {
        let now = nanoseconds(now.saturating_duration_since(self.made));
        let due = self.due.load(Ordering::Relaxed);
        now >= due && self.take(due, now)
    }

    #[cold]
    fn take(&self, due: u64, now: u64) -> bool {
        let next = now.saturating_add(self.interval);
        self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::AtomicUsize;

    const INTERVAL: Duration = Duration::from_secs(1);

    #[test]
    fn one_turn_an_interval() {
        let throttle = Throttle::new(INTERVAL);
        let at = |milliseconds| throttle.made + Duration::from_millis(milliseconds);
        let turns: Vec<_> = [0, 1, 999, 1000, 1500, 1999, 2000].map(at).into();
        let turns: Vec<_> = turns.into_iter().map(|now| throttle.turn(now)).collect();
        assert_eq!(turns, [true, false, false, true, false, false, true]);
    }

    #[test]
    fn a_late_caller_does_not_get_the_turns_it_missed() {
        let throttle = Throttle::new(INTERVAL);
        let at = |milliseconds| throttle.made + Duration::from_millis(milliseconds);
        assert!(throttle.turn(at(0)) && throttle.turn(at(9_500)));
        assert!(!throttle.turn(at(10_400)) && throttle.turn(at(10_500)));
    }

    #[test]
    fn a_moment_before_the_throttle_was_made_is_its_beginning() {
        let throttle = Throttle::new(INTERVAL);
        let before = throttle.made.checked_sub(Duration::from_millis(1)).unwrap();
        assert!(throttle.turn(before) && !throttle.turn(before));
    }

    #[test]
    fn of_many_callers_at_one_moment_one_has_the_turn() {
        let throttle = Throttle::new(INTERVAL);
        let turns = AtomicUsize::new(0);
        for round in 0..200 {
            let now = throttle.made + INTERVAL * round;
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| turns.fetch_add(throttle.turn(now).into(), Ordering::Relaxed));
                }
            });
        }
        assert_eq!(turns.into_inner(), 200);
    }
}
