//! Segments as other processes see them: real files, real processes, real kills.

/// Folders and processes of a test's own.
mod support;

/// Whose files and folders are used, and what is said of others.
mod files;
/// The harness that `fuzz/` runs too.
#[path = "../../../../fuzz/harness/segment.rs"]
mod harness;
/// A bounded run of it, on whatever proptest makes up.
mod hostile;
/// Killed at random moments: every pair is one that was published.
mod kills;
/// What a segment shows is what the registry does.
mod shows;
