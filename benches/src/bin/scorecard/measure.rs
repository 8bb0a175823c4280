//! Timing two things in turn.

use std::time::{Duration, Instant};

use holdgap_benches::median;

/// How long `work` takes.
pub(crate) fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// The medians, in nanoseconds for each of `operations`, of two works that are timed in turn.
pub(crate) fn in_turn(
    times: usize,
    operations: u64,
    mut ours: impl FnMut(),
    mut theirs: impl FnMut(),
) -> (f64, f64) {
    // Once for the caches.
    ours();
    theirs();
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for _ in 0..times {
        one.push(time(&mut ours));
        other.push(time(&mut theirs));
    }
    (per(median(one), operations), per(median(other), operations))
}

/// Nanoseconds for each of `operations`.
pub(crate) fn per(duration: Duration, operations: u64) -> f64 {
    duration.as_nanos() as f64 / operations as f64
}

/// A random number after another: xorshift.
pub(crate) fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}
