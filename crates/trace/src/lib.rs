//! Share differential arrangements between timely runtimes, and see who holds their compaction back.
//!
//! # The problem
//!
//! A trace of differential dataflow belongs to one thread. To serve questions from a second timely
//! runtime in the same process without a copy of the data, its batches must cross threads, and its
//! compaction must wait for readers that it cannot see. Each of those readers can stop it.
//!
//! # The types, and how they meet
//!
//! - A [`SharedSpine`] is a trace that can be shared. [`ArrangeShared`] arranges a collection into
//!   one; to the dataflow that maintains it, it is an ordinary arrangement.
//! - [`Sharing`] is what the runtimes of a process share. [`Sharing::publish`] makes an arrangement
//!   known under an id, and gives its owner a [`Published`] to allow compaction with.
//! - A [`Reader`] is a hold that crosses threads: [`Sharing::reader_at`]. Its
//!   [`import`](Reader::import) is an ordinary `Arranged` in the other runtime, for `join_core`,
//!   `reduce` and `as_collection`; its [`import_snapshot`](Reader::import_snapshot) lets go at once.
//! - A [`StandingHold`] keeps an arrangement readable for an importing runtime that lags behind.
//!
//! What is shared shows in the gauges of the [`holdgap`] registry that the `Sharing` was made with.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicBool, Ordering};
//!
//! use differential_dataflow::input::Input;
//! use holdgap::Registry;
//! use holdgap_trace::{ArrangeShared, Reader, Sharing, ValBatch};
//! use timely::progress::Antichain;
//!
//! let sharing = Sharing::new(&Registry::new());
//! let publishing = sharing.clone();
//! let done = Arc::new(AtomicBool::new(false));
//! let until = done.clone();
//!
//! // A runtime that maintains the arrangement, on one thread ...
//! let maintenance = std::thread::spawn(|| {
//!     timely::execute_directly(move |worker| {
//!         let _orders = worker.dataflow::<u64, _, _>(|scope| {
//!             let (_input, orders) = scope.new_collection_from([(7, 3), (8, 4)]);
//!             publishing.publish("u42", &orders.arrange_shared_by_key("orders")).unwrap()
//!         });
//!         worker.step_while(|| !until.load(Ordering::Relaxed));
//!     });
//! });
//!
//! // ... and another that reads it, on another, before or after.
//! timely::execute_directly(move |worker| {
//!     let probe = worker.dataflow(|scope| {
//!         let reader: Reader<ValBatch<i32, i32, u64, isize>> = sharing.reader("u42", 0).unwrap();
//!         let orders = reader.import(scope, "orders", Antichain::new());
//!         let amounts = orders.as_collection(|_, amount| *amount);
//!         amounts.inspect(|(amount, _, _)| assert!([3, 4].contains(amount))).probe().0
//!     });
//!     worker.step_while(|| !probe.done());
//!     done.store(true, Ordering::Relaxed);
//! });
//! maintenance.join().unwrap();
//! ```
//!
//! # Trade-offs
//!
//! - Batches are held by `Arc` instead of `Rc`, and keys, values, times and differences must be
//!   `Sync`.
//! - Once published, each span and each compaction request takes the publication's lock, which the
//!   readers of this one shard share with it. Nothing is taken for the whole process.
//! - Compaction that a reader's move allows happens when the trace's operator is next scheduled; it
//!   is woken for that.
//! - A runtime that imports but does not step keeps its queue growing, and the batches in it alive.

#![forbid(unsafe_code)]

mod arrange;
mod batch;
mod chain;
mod directory;
mod error;
mod holds;
mod import;
mod importers;
mod meter;
#[cfg(all(test, holdgap_loom))]
mod models;
mod publication;
mod published;
mod reader;
mod seals;
mod sharing;
mod spine;
mod state;
mod sync;

pub use arrange::{ArrangeShared, ArrangeSharedBySelf};
pub use batch::{ArcBatch, ArcCursor, ArcMerger, KeyBatch, SharableTrace, SharedBatch, ValBatch};
pub use error::{PublishError, ReadError};
pub use holdgap::HoldKind;
pub use import::{ImportTrace, NotSealed};
pub use meter::Meter;
pub use published::{Published, StandingHold};
pub use reader::Reader;
pub use seals::SealInbox;
pub use sharing::{PublishOptions, Sharing};
pub use spine::{SharedKeySpine, SharedSpine, SharedValSpine};
