//! The one door to atomics, cells and shared pointers.
//!
//! Every lock-free protocol of this crate takes its primitives from here, so that a model checker
//! can be put behind the same door without touching the protocols: with `--cfg holdgap_loom` the
//! atomics are loom's, and the tests in `models.rs` run the shipped code under every interleaving.
//! The cfg is this project's own: a global one would flip the dependencies too.

#[cfg(not(holdgap_loom))]
pub(crate) use crossbeam_utils::atomic::AtomicCell;
#[cfg(holdgap_loom)]
pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(holdgap_loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(holdgap_loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Arc, OnceLock, PoisonError};
#[cfg(not(holdgap_loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// Locks `mutex`, also after a thread panicked while it held it.
///
/// For state whose every critical section leaves it whole at each step: a panic in one thread then
/// costs that thread alone.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What crossbeam's cell promises, as loom can follow it: each operation is one step.
#[cfg(holdgap_loom)]
pub(crate) struct AtomicCell<T>(Mutex<T>);

#[cfg(holdgap_loom)]
impl<T: Copy + Eq> AtomicCell<T> {
    pub(crate) fn new(value: T) -> Self {
        AtomicCell(Mutex::new(value))
    }

    pub(crate) fn load(&self) -> T {
        *lock(&self.0)
    }

    pub(crate) fn compare_exchange(&self, current: T, new: T) -> Result<T, T> {
        let mut value = lock(&self.0);
        if *value == current { Ok(std::mem::replace(&mut value, new)) } else { Err(*value) }
    }
}
