//! The clock that ages are measured on.
//!
//! Ages are differences of one monotonic clock, so that a wall clock that steps, in either direction,
//! makes none of them wrong. A test hands in a clock that it moves itself.

use std::time::{Duration, Instant};

use crate::sync::{Arc, AtomicU64, Ordering};

/// A clock that counts from its own beginning, and that several clones share.
///
/// ```
/// use std::time::Duration;
/// use holdgap::Clock;
///
/// let clock = Clock::manual();
/// clock.set(Duration::from_secs(5));
/// assert_eq!(clock.now(), Duration::from_secs(5));
/// assert!(Clock::monotonic().now() < Duration::from_secs(60));
/// ```
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    Monotonic(Instant),
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The system's monotonic clock, from now on.
    pub fn monotonic() -> Self {
        Clock(Source::Monotonic(Instant::now()))
    }

    /// A clock that stands still but for [`set`](Self::set).
    pub fn manual() -> Self {
        Clock(Source::Manual(Arc::default()))
    }

    /// Sets a manual clock and all its clones, to an earlier time too. Leaves the monotonic clock
    /// as it is.
    pub fn set(&self, now: Duration) {
        if let Source::Manual(clock) = &self.0 {
            let nanoseconds = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
            clock.store(nanoseconds, Ordering::Relaxed);
        }
    }

    /// The time since the clock's beginning. One reading of the system's clock, or one load.
    pub fn now(&self) -> Duration {
        match &self.0 {
            Source::Monotonic(beginning) => beginning.elapsed(),
            Source::Manual(clock) => Duration::from_nanos(clock.load(Ordering::Relaxed)),
        }
    }

    /// When the monotonic clock began; `None` for a manual one.
    pub fn beginning(&self) -> Option<Instant> {
        match &self.0 {
            Source::Monotonic(beginning) => Some(*beginning),
            Source::Manual(_) => None,
        }
    }
}
