//! The one door to atomics, cells and shared pointers.
//!
//! Every lock-free protocol of this crate takes its primitives from here, so that a model checker
//! can be put behind the same door without touching the protocols: with `--cfg holdgap_loom` the
//! atomics are loom's, and the tests in `models.rs` run the shipped code under every interleaving.
//! The cfg is this project's own: a global one would flip the dependencies too.

#[cfg(holdgap_loom)]
pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(not(holdgap_loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Locks `mutex`, also after a thread panicked while it held it.
///
/// For state whose every critical section leaves it whole at each step: a panic in one thread then
/// costs that thread alone.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
