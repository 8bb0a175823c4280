//! The invariants of a shared trace, on real timely runtimes.
//!
//! Most tests step two runtimes in turn on one thread, so that every interleaving is the one that
//! the test wants; those about threads and parking use threads.

/// Two runtimes, an arrangement to share, and what an import of it has seen.
mod support;

/// Whatever operators do over an import equals what they do over the arrangement itself.
mod answers;
/// The ways in which traces, readers and runtimes end, and what is left of them.
mod ends;
/// Random histories, each gauge after each step against an implementation that is dull.
mod histories;
/// Every clone is its own hold; holds join and release.
mod holders;
/// Seeded or delivered; complete or waiting; of the right shard.
mod imports;
/// What readers pin and what waits for imports, against what was really kept.
mod load;
/// Applied is the meet of requested and held, and who is admitted against it.
mod logical;
/// Ids: placeholders, adoption, re-export, removal.
mod names;
/// Physical compaction: where holds start, and that they follow.
mod physical;
mod reference;
/// What the sharing registry shows of points that froze, and of standing holds.
mod sharing;
/// Parked workers, sleeping inboxes.
mod wakes;
/// Who holds, by name and kind, and since when.
mod who;
