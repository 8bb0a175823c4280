//! A segment's file as its own process has it: mapped, and growing.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use holdgap::Role;
use holdgap::layout::{Head, Memory, Mirrors, Rest, Slots, Text};
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, fallocate};

use crate::format::{
    ENTRIES, ENTRY_WORDS, FRONT_BYTES, FRONT_WORDS, HEADER_WORDS, entry, extent_bytes, header,
    put_role,
};

/// A mapping of whole pages of a segment's file.
struct Mapping {
    map: MmapRaw,
}

impl Mapping {
    fn new(file: &File, offset: u64, bytes: u64) -> io::Result<Self> {
        let len = usize::try_from(bytes).map_err(io::Error::other)?;
        Ok(Mapping { map: MmapOptions::new().offset(offset).len(len).map_raw(file)? })
    }

    /// Some values of a type that consists of atomic words, from a place in the mapping on.
    fn slice<T: Words>(&self, at: usize, count: usize) -> &[T] {
        let end = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(at));
        assert!(end.is_some_and(|end| end <= self.map.len()) && at.is_multiple_of(align_of::<T>()));
        // SAFETY: the range lies in the mapping, which lives as long as the slice, and pages are
        // aligned beyond any `Words` type. These consist of `AtomicU64` alone: every bit pattern is
        // one, and whoever else writes to the file, in this process or another, races with atomics
        // only. The file was allocated in full before it was mapped, and this process never cuts it.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(at).cast::<T>(), count) }
    }
}

/// Types that consist of atomic 64-bit words, and of nothing else.
trait Words {}

impl Words for AtomicU64 {}
impl Words for Head {}
impl Words for Rest {}
impl Words for Text {}

/// The header and the directory, and the file to grow.
pub(crate) struct Growing {
    front: Mapping,
    max_points: u64,
    state: Mutex<Grown>,
}

struct Grown {
    file: File,
    bytes: u64,
    points: u64,
    /// How many points found no room when they were added.
    refused: u64,
}

impl Growing {
    /// Allocates the front of an empty file.
    pub(crate) fn new(file: OwnedFd, max_points: u64) -> io::Result<Arc<Self>> {
        fallocate(&file, FallocateFlags::empty(), 0, FRONT_BYTES)?;
        let file = File::from(file);
        let front = Mapping::new(&file, 0, FRONT_BYTES)?;
        let state = Mutex::new(Grown { file, bytes: FRONT_BYTES, points: 0, refused: 0 });
        Ok(Arc::new(Growing { front, max_points, state }))
    }

    pub(crate) fn header(&self) -> &[AtomicU64] {
        &self.front.slice(0, FRONT_WORDS)[..HEADER_WORDS]
    }

    /// The directory's complete entries.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &[AtomicU64]> {
        let count = self.header()[header::EXTENTS].load(Ordering::Acquire) as usize;
        let directory: &[AtomicU64] = self.front.slice(HEADER_WORDS * 8, ENTRIES * ENTRY_WORDS);
        directory.chunks_exact(ENTRY_WORDS).take(count)
    }

    fn grow(&self, role: &Role, worker: usize, first: usize, count: usize) -> io::Result<Extent> {
        let mut grown = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let index = self.header()[header::EXTENTS].load(Ordering::Relaxed) as usize;
        let (slots, offset) = (count as u64, grown.bytes);
        if index == ENTRIES || grown.points + slots > self.max_points {
            grown.refused += slots;
            return Err(io::ErrorKind::StorageFull.into());
        }
        let bytes = extent_bytes(slots);
        fallocate(&grown.file, FallocateFlags::empty(), offset, bytes)?;
        let mapping = Mapping::new(&grown.file, offset, bytes)?;
        let directory: &[AtomicU64] = self.front.slice(HEADER_WORDS * 8, ENTRIES * ENTRY_WORDS);
        let words = &directory[index * ENTRY_WORDS..][..ENTRY_WORDS];
        put_role(words, role);
        for (place, value) in [
            (entry::WORKER, worker as u64),
            (entry::FIRST, first as u64),
            (entry::COUNT, slots),
            (entry::OFFSET, offset),
        ] {
            words[place].store(value, Ordering::Relaxed);
        }
        grown.bytes += bytes;
        grown.points += slots;
        // What stands above is complete for whoever sees this.
        self.header()[header::EXTENTS].store(index as u64 + 1, Ordering::Release);
        Ok(Extent { mapping, count })
    }
}

impl Mirrors for Growing {
    fn extent(
        &self,
        role: &Role,
        worker: usize,
        first: usize,
        count: usize,
    ) -> Option<Box<dyn Memory>> {
        // No room in the file or in its file system: the heartbeat says how many are not shown.
        let extent = self.grow(role, worker, first, count).ok()?;
        Some(Box::new(extent))
    }
}

/// The slots that were allocated together.
struct Extent {
    mapping: Mapping,
    count: usize,
}

impl Memory for Extent {
    fn slots(&self) -> Slots<'_> {
        let rests = self.count * size_of::<Head>();
        let texts = rests + self.count * size_of::<Rest>();
        Slots {
            heads: self.mapping.slice(0, self.count),
            rests: self.mapping.slice(rests, self.count),
            texts: self.mapping.slice(texts, self.count),
        }
    }
}
