//! Why a trace cannot be published, or not be read.

use std::sync::Arc;

use timely::progress::{Antichain, Timestamp};

/// Why a trace cannot be published under an id.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublishError {
    /// Something is published under the id on this worker.
    InUse {
        /// The id.
        id: Arc<str>,
        /// The worker's index.
        worker: usize,
    },
    /// Readers of another type wait under the id.
    WrongType {
        /// The id.
        id: Arc<str>,
        /// The batch type that the readers wait for.
        waited_for: &'static str,
        /// The batch type that was to be published.
        published: &'static str,
    },
}

impl std::fmt::Display for PublishError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PublishError::InUse { id, worker } => {
                write!(f, "{id:?} is published on worker {worker} already; drop that first")
            }
            PublishError::WrongType { id, waited_for, published } => {
                write!(f, "readers wait for {id:?} with batches {waited_for}, not {published}")
            }
        }
    }
}

impl std::error::Error for PublishError {}

/// Why a trace cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The trace may have compacted past the time asked for.
    Compacted {
        /// The id.
        id: Arc<str>,
        /// The worker's index.
        worker: usize,
        /// The frontier that was asked for.
        as_of: String,
        /// The frontier that rules it out: what the trace has applied.
        since: String,
        /// What the trace's own handles allow. They let go of `as_of`, and no reader held it.
        requested: String,
    },
    /// The arrangement under the id has other key, value, time or difference types.
    WrongType {
        /// The id.
        id: Arc<str>,
        /// The batch type that it has.
        known: &'static str,
        /// The batch type that was asked for.
        asked: &'static str,
    },
    /// The trace has ended, and nobody held it.
    Ended {
        /// The id.
        id: Arc<str>,
        /// The worker's index.
        worker: usize,
    },
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadError::Compacted { id, worker, as_of, since, requested } => write!(
                f,
                "{id:?} on worker {worker} cannot be read at {as_of}: it is compacted up to \
                 {since}, as its owner allows {requested} and no reader held it further back"
            ),
            ReadError::WrongType { id, known, asked } => {
                write!(f, "{id:?} has batches {known}, not {asked}")
            }
            ReadError::Ended { id, worker } => {
                write!(f, "{id:?} on worker {worker} has ended, and nobody held it")
            }
        }
    }
}

impl std::error::Error for ReadError {}

/// A frontier as people read it.
pub(crate) fn frontier_text<T: Timestamp>(frontier: &Antichain<T>) -> String {
    let texts: Vec<String> = frontier.iter().map(|time| format!("{time:?}")).collect();
    format!("{{{}}}", texts.join(", "))
}
