//! The one door to what threads of this crate meet at: locks, flags, and waking a thread.
//!
//! With `--cfg holdgap_loom` loom's stand behind it, and the tests in `models.rs` run the shipped
//! code under every interleaving. Counters that only number things are the standard library's.

#[cfg(holdgap_loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
#[cfg(holdgap_loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(holdgap_loom)]
pub(crate) use loom::thread::{Thread, current};
pub(crate) use std::sync::PoisonError;
#[cfg(not(holdgap_loom))]
pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(holdgap_loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};
#[cfg(not(holdgap_loom))]
pub(crate) use std::thread::{Thread, current};

/// Locks `mutex`, also after a thread panicked while it held it.
///
/// For state whose every critical section leaves it whole at each step: a panic in one thread then
/// costs that thread alone.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
