//! A real two-runtime replica in one process: something for holdgap to watch.
//!
//! # What it is
//!
//! Two timely runtimes of N workers each share arrangements. The *maintenance* runtime builds them
//! from continuous churn and publishes them; the *interactive* runtime imports them for joins at one
//! time. A controller sends each its own stream of commands: create, allow compaction (to both), join,
//! drop. The interactive runtime moves its standing holds when it reaches a compaction command in its
//! own stream, so that a join still queued there never meets an arrangement compacted past it; the
//! maintenance runtime hears of the compaction after that, or a round later at the latest.
//! Timestamps are milliseconds since the Unix epoch, and workers park when they have nothing to do.
//!
//! Every join's rows are compared with a table kept by the controller.
//!
//! ```
//! use std::time::Duration;
//! use holdgap::Registry;
//! use holdgap_replica::{Replica, ReplicaOptions};
//!
//! let registry = Registry::new();
//! let options = ReplicaOptions { workers: 2, keys: 10 };
//! let mut replica = Replica::start(&registry, options).unwrap();
//! let (left, right) = (replica.create(), replica.create());
//! replica.round();
//! replica.round();
//! replica.join(left, right);
//! let outcome = replica.next_outcome(Duration::from_secs(60)).unwrap();
//! assert!(outcome.right);
//! assert_eq!(outcome.rows, 10);
//! assert!(replica.is_whole());
//! replica.stop().unwrap();
//! ```
//!
//! # The types
//!
//! [`Replica`] is all of it; [`JoinOutcome`] says how a join came out. What the replica holds back
//! shows in the [`holdgap::Registry`] that it was started with.

#![forbid(unsafe_code)]

mod churn;
mod command;
mod compaction;
mod error;
mod interactive;
mod maintenance;
mod replica;
mod runtime;

pub use churn::ArrangementId;
pub use command::JoinId;
pub use error::ReplicaError;
pub use replica::{JoinOutcome, Replica, ReplicaOptions};
