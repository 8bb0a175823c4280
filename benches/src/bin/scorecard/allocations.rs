//! The system's allocator, counted.

#![allow(unsafe_code, reason = "an allocator is unsafe to implement; this one forwards")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicI64 = AtomicI64::new(0);

/// Forwards to the system's allocator.
pub(crate) struct Counting;

// SAFETY: every method forwards to `System` with the arguments it was given, and counts beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as the caller has promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as the caller has promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// How many allocations there were so far.
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// How many bytes are allocated.
pub(crate) fn bytes() -> i64 {
    BYTES.load(Ordering::Relaxed)
}
