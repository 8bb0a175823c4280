//! What a worker's publishers measure, and what a segment keeps of the worker.

use crate::role::Role;

/// What the publishers of a worker measure. What they do not is zero in a report because nobody
/// measures it, and absent from the gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measures {
    /// Where their traces stand physically.
    pub physical: bool,
    /// What their traces have sealed: lag and slack.
    pub lag: bool,
    /// Who holds: what is told apart by kind.
    pub holders: bool,
    /// What is pinned.
    pub pins: bool,
    /// What waits in queues.
    pub queues: bool,
}

/// What a segment keeps of a worker beside its points: see
/// [`Registry::refresh_mirror`](crate::Registry::refresh_mirror).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerState {
    /// The role of its runtime.
    pub role: Role,
    /// Its timely index.
    pub worker: usize,
    /// How many points it has.
    pub points: u64,
    /// How many of these the mirror has no room for.
    pub not_shown: u64,
    /// What its publishers measure.
    pub measures: Measures,
    /// How many invalid pairs it has published.
    pub invalid_pairs: u64,
}
