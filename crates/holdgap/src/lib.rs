//! See how far readers hold back the compaction of shared arrangements, and which.
//!
//! # The problem
//!
//! An arrangement of [differential dataflow] forgets history as its *since*, its logical compaction
//! frontier, advances. When it is shared with readers in another timely runtime, it may only apply
//! the **meet** of what its own handles allow and of what its readers hold. One slow reader stops a
//! whole arrangement from compacting; memory grows, and nothing shows it until there is none left.
//!
//! The distance between the two frontiers is the *hold gap*. This crate publishes it, at next to no
//! cost to the runtimes it watches: a report takes no lock that they need.
//!
//! # The types, and how they meet
//!
//! - A [`Registry`] is what one process publishes. It is a handle: make one and clone it. From it
//!   comes a [`Runtime`] by [`Role`], and from that a [`Worker`] by its timely index.
//! - A [`Point`] is where one trace publishes its [`FrontierPair`] (requested, applied) as one
//!   atomically replaced [`Snapshot`]. Dropping it takes it out of every report.
//! - A [`Reporter`] walks over its worker's points, at most once a second however often it is asked,
//!   sets the gauges through the [`metrics`] facade and returns the [`HoldReport`]. A [`Scraper`] does
//!   the same for all workers at once, when a scrape asks.
//!
//! ```
//! use std::time::Instant;
//! use holdgap::{Registry, Role};
//! use timely::progress::Antichain;
//!
//! let registry = Registry::new();
//! let worker = registry.runtime(Role::Maintenance).worker(0);
//! let mut point = worker.publish("u42", "orders by customer");
//! let reporter = worker.reporter();
//!
//! // In the worker's loop: publish when either frontier moved, tick at any rate.
//! point.set(&Antichain::from_elem(1_000_u64), &Antichain::from_elem(400));
//! if let Some(report) = reporter.tick(Instant::now()) {
//!     assert_eq!((report.hold_gap, report.held, report.published), (600, 1, 1));
//! }
//! ```
//!
//! Any recorder then shows `mz_compute_shared_arrangement_hold_gap_ms` and its siblings: see
//! [`SERIES`]. Nothing here starts a thread, opens a socket or touches a file.
//!
//! # Trade-offs
//!
//! - Adding and removing a point takes a mutex, and removing leaves the point's memory to an epoch
//!   collector, which frees it a few removals later.
//! - A changed publication swaps an `ArcSwap`, which visits a node for each thread that ever used
//!   one: tens of nanoseconds with few threads, microseconds with hundreds. An unchanged one is a
//!   comparison.
//! - A report is one moment for each point, not one moment for all of them: points that move while
//!   it walks are seen before or after their move.
//! - A slot's memory is used again, but not given back before the registry goes.
//!
//! # Unsafe
//!
//! Three blocks, all in the table of slots, where a removed point is handed to `crossbeam-epoch`
//! and loaded under its pin: what lets a report go on while points come and go.
//!
//! [differential dataflow]: https://docs.rs/differential-dataflow

mod clock;
mod consumer;
pub mod copies;
mod distance;
mod gauges;
mod holders;
mod kind;
pub mod layout;
mod measures;
mod mirror;
#[cfg(all(test, holdgap_loom))]
mod models;
mod options;
mod pair;
mod peaks;
mod point;
mod rank;
mod record;
mod registry;
mod report;
mod reporter;
mod role;
mod scraper;
mod select;
mod series;
mod shared;
mod snapshot;
mod sync;
mod table;
mod throttle;
mod view;

pub use clock::Clock;
pub use distance::{Distance, MAX_DISTANCE};
pub use holders::{Holder, HolderView, Holders, Pinned, Pins, Queued};
pub use kind::{HoldKind, HoldKinds};
pub use measures::{Measures, WorkerState};
pub use options::RegistryOptions;
pub use pair::{FrontierPair, HoldGap, InvalidPair};
pub use point::Point;
pub use rank::Rank;
pub use registry::{Registry, Runtime, Worker};
pub use report::{HoldReport, KindReport};
pub use reporter::{Reporter, ReporterOptions};
pub use role::Role;
pub use scraper::Scraper;
pub use select::Page;
pub use series::{SERIES, Series, SeriesKind, Value};
pub use snapshot::{Frontiers, Snapshot};
pub use view::PointView;
