//! Where the points of one worker live, and how a report walks over them.
//!
//! # The protocol
//!
//! A *slot* is a [`Record`], in its two parts, and a pointer to the point's [`Entry`] (its ids, name and snapshot).
//! Slots stand in chunks that grow with their number and never move, so a scan follows no pointer from slot
//! to slot, and a table that grows disturbs nobody. A slot that a point left is used again.
//!
//! *Adding* and *removing* take the table's mutex, which guards the list of free slots. Adding
//! stores the entry, then writes a live record. Removing writes a record that is not live, takes
//! the entry out and leaves its destruction to the epoch collector.
//!
//! *A scan* takes no lock. It walks the slots up to the high-water mark once, front to back, so
//! that churn cannot make it start over, and reads each record under the record's own protocol. A
//! point that is there during the whole scan stays in one slot and is seen exactly once. A point
//! that comes or goes meanwhile is seen once or not at all.
//!
//! *Details* of a slot are read under an epoch pin that ends before the call returns. A pointer
//! loaded under a pin is not destroyed before the pin ends; the entry is reference-counted, so what
//! the caller takes with it needs no pin. No pin is ever held across a callback of the caller.
//!
//! *Orderings*: the entry's release store pairs with the acquire load under the pin. The record's
//! own orderings are in its file.

use std::collections::VecDeque;
use std::time::Duration;

use crossbeam_epoch::{Atomic, Collector, Owned};

use crate::clock::Clock;
use crate::holders::Pins;
use crate::layout::{Mirror, Mirrors};
use crate::mirror::{MirrorChunk, Turn};
use crate::peaks::{CONSUMERS, Peaks};
use crate::record::{Flags, Head, Numbers, Plain, Record, Rest};
use crate::role::Role;
use crate::sync::{Arc, AtomicU64, AtomicUsize, Mutex, OnceLock, Ordering, lock};
use crate::view::Details;

/// How many slots each of the first chunks has. After every [`STEPS`] chunks their size doubles, so
/// that a table grows by a fourth at a time.
const FIRST_CHUNK: usize = if cfg!(holdgap_loom) { 2 } else { 64 };
/// How many chunks there are of a size.
const STEPS: usize = 4;
/// How many chunks there may be: enough for 2^32 slots.
const CHUNKS: usize = 104;

/// What a slot's pointer leads to.
struct Entry {
    generation: u16,
    details: Arc<dyn Details>,
}

/// Slots that were allocated together, by what is looked at together.
struct Chunk {
    heads: Box<[Head]>,
    rests: Box<[Rest]>,
    entries: Box<[Atomic<Entry>]>,
    /// Where they are shown to other processes, if they are.
    mirror: OnceLock<MirrorChunk>,
}

impl Chunk {
    fn new(chunk: usize) -> Self {
        fn slots<S: Default>(count: usize) -> Box<[S]> {
            (0..count).map(|_| S::default()).collect()
        }
        let count = chunk_size(chunk);
        let (heads, rests, entries) = (slots(count), slots(count), slots(count));
        Chunk { heads, rests, entries, mirror: OnceLock::new() }
    }

    /// Where the slot at `offset` is shown, if it is the caller's turn to show it.
    fn turn(&self, offset: usize) -> Option<(Mirror<'_>, bool)> {
        let (mirror, claim) = self.mirror.get()?.slot(offset)?;
        match claim.turn() {
            Turn::None => None,
            turn => Some((mirror, turn == Turn::All)),
        }
    }

    #[inline]
    fn record(&self, offset: usize) -> Record<'_> {
        Record { head: &self.heads[offset], rest: &self.rests[offset] }
    }
}

/// The chunk that holds a slot, and the slot's place in it.
#[inline]
fn place(index: usize) -> (usize, usize) {
    let groups = index / FIRST_CHUNK + STEPS;
    let doublings = (groups / STEPS).ilog2() as usize;
    let chunk = doublings * STEPS + (groups >> doublings) - STEPS;
    (chunk, index - first_of(chunk))
}

/// How many slots a chunk has.
#[inline]
fn chunk_size(chunk: usize) -> usize {
    FIRST_CHUNK << (chunk / STEPS)
}

/// The first slot of a chunk.
#[inline]
fn first_of(chunk: usize) -> usize {
    FIRST_CHUNK * (((STEPS + chunk % STEPS) << (chunk / STEPS)) - STEPS)
}

/// What the table's mutex guards.
#[derive(Default)]
struct Free {
    /// Slots that points left, and when, the longest free first.
    slots: VecDeque<(Duration, usize)>,
    /// Where new chunks are shown too.
    mirrors: Option<Mirrored>,
}

/// Where a worker's chunks are shown.
struct Mirrored {
    mirrors: Arc<dyn Mirrors>,
    role: Role,
    worker: usize,
}

impl Mirrored {
    fn show(&self, index: usize, chunk: &Chunk) {
        let (count, first) = (chunk.heads.len(), first_of(index));
        if let Some(memory) = self.mirrors.extent(&self.role, self.worker, first, count) {
            chunk.mirror.get_or_init(|| MirrorChunk::new(memory, count));
        }
    }
}

/// For how long a slot that is shown to other processes stays empty, so that none of them takes one
/// point for another that it was looking at.
const COOL_DOWN: Duration = Duration::from_secs(2);

/// The slots of one (role, worker).
pub(crate) struct SlotTable {
    chunks: [OnceLock<Chunk>; CHUNKS],
    /// Slots at and beyond this were never used.
    high_water: AtomicUsize,
    free: Mutex<Free>,
    clock: Clock,
    /// Which consumers of peaks there are, as bits.
    pub(crate) consumers: AtomicU64,
    pub(crate) left_behind: LeftBehind,
    collector: Collector,
}

/// The peaks of points that were removed.
#[derive(Default)]
pub(crate) struct LeftBehind {
    raised: AtomicU64,
    peaks: Peaks,
}

impl LeftBehind {
    pub(crate) fn take(&self, consumer: usize) -> u64 {
        self.peaks.take(&self.raised, consumer)
    }

    fn take_over(&self, record: Record<'_>) {
        for consumer in 0..CONSUMERS {
            self.peaks.raise(&self.raised, 1 << consumer, record.take_peak(consumer));
        }
    }
}

/// A slot that its holder may write: given by [`SlotTable::add`], given back to
/// [`SlotTable::remove`].
pub(crate) struct Slot {
    index: u32,
    generation: u16,
}

impl Slot {
    #[inline]
    fn index(&self) -> usize {
        self.index as usize
    }

    /// The numbers of a point that lives in this slot.
    pub(crate) fn numbers(&self, numbers: Numbers) -> Numbers {
        let flags = numbers.flags.with(Flags::LIVE, true);
        Numbers { generation: self.generation, flags, ..numbers }
    }
}

impl Free {
    /// A slot that is free for long enough.
    fn take(&mut self, clock: &Clock) -> Option<usize> {
        if self.mirrors.is_none() {
            // Nobody else looks: take the one that is still in the caches.
            return self.slots.pop_back().map(|(_, index)| index);
        }
        let (since, _) = self.slots.front()?;
        let cool = clock.now().saturating_sub(*since) >= COOL_DOWN;
        if cool { self.slots.pop_front().map(|(_, index)| index) } else { None }
    }
}

impl SlotTable {
    pub(crate) fn new(collector: Collector, clock: Clock) -> Self {
        SlotTable {
            chunks: [const { OnceLock::new() }; CHUNKS],
            high_water: AtomicUsize::new(0),
            free: Mutex::default(),
            clock,
            consumers: AtomicU64::new(0),
            left_behind: LeftBehind::default(),
            collector,
        }
    }

    /// Puts a point into a free slot.
    ///
    /// One mutex, one allocation for the pointer, and the first time a chunk is reached the chunk.
    pub(crate) fn add(&self, details: Arc<dyn Details>, numbers: Numbers) -> Slot {
        let mut free = lock(&self.free);
        let (index, fresh) = match free.take(&self.clock) {
            Some(index) => (index, false),
            // Relaxed: only stored under the mutex held here.
            None => (self.high_water.load(Ordering::Relaxed), true),
        };
        let (chunk, offset) = place(index);
        let place = chunk;
        let chunk = self.chunks[place].get_or_init(|| {
            let chunk = Chunk::new(place);
            free.mirrors.iter().for_each(|mirrored| mirrored.show(place, &chunk));
            chunk
        });
        let record = chunk.record(offset);
        let generation = record.read().generation.wrapping_add(1);
        // Pairs with the acquire load in `details`.
        chunk.entries[offset].store(Owned::new(Entry { generation, details }), Ordering::Release);
        let flags = numbers.flags.with(Flags::LIVE, true);
        record.write(Numbers { generation, flags, ..numbers });
        if fresh {
            // Pairs with the acquire load in `scan`: whoever sees the mark sees the chunk.
            self.high_water.store(index + 1, Ordering::Release);
        }
        let index = u32::try_from(index).unwrap_or_else(|_| unreachable!("no chunk is beyond"));
        Slot { index, generation }
    }

    /// Takes a point out of its slot. Its entry is destroyed when no reporter can look at it.
    pub(crate) fn remove(&self, slot: Slot) {
        let (chunk, offset) = place(slot.index());
        let Some(chunk) = self.chunks[chunk].get() else { return };
        let (record, entries) = (chunk.record(offset), &chunk.entries);
        let mut free = lock(&self.free);
        let generation = slot.generation;
        record.write(Numbers { generation, ..Numbers::default() });
        self.left_behind.take_over(record);
        if let Some((mirror, _)) = chunk.turn(offset) {
            mirror.record.write(Numbers { generation, ..Numbers::default() });
            mirror.record.rest.note_pins(Pins::default());
        }
        let participant = self.collector.register();
        let guard = participant.pin();
        let entry = entries[offset].swap(crossbeam_epoch::Shared::null(), Ordering::AcqRel, &guard);
        if !entry.is_null() {
            // SAFETY: the swap above took the only pointer to it out of the table, under the mutex
            // that admits one remover at a time, so it is destroyed once. A reporter that loaded it
            // before the swap did so under a pin of the same collector, which this waits out.
            unsafe { guard.defer_destroy(entry) };
            guard.flush();
        }
        free.slots.push_back((self.clock.now(), slot.index()));
    }

    /// Replaces the numbers of `slot`. No locks, no allocations, one record's stores.
    #[inline]
    pub(crate) fn write(&self, slot: &Slot, numbers: Numbers) {
        let (chunk, offset) = place(slot.index());
        if let Some(chunk) = self.chunks[chunk].get() {
            chunk.record(offset).write(slot.numbers(numbers));
        }
    }

    /// Where `slot` is shown to other processes, and whether nothing of it was shown yet; `None`
    /// where it is not, or somebody else will show what is published now.
    #[inline]
    pub(crate) fn mirror(&self, slot: &Slot) -> Option<(Mirror<'_>, bool)> {
        let (chunk, offset) = place(slot.index());
        self.chunks[chunk].get().filter(|chunk| chunk.mirror.get().is_some())?.turn(offset)
    }

    /// Shows the chunks, those to come too, in memory of `mirrors`; and what is in them now.
    pub(crate) fn show_in(&self, mirrors: Arc<dyn Mirrors>, role: Role, worker: usize) {
        let mut free = lock(&self.free);
        let mirrored = Mirrored { mirrors, role, worker };
        for (index, chunk) in self.chunks.iter().map_while(OnceLock::get).enumerate() {
            mirrored.show(index, chunk);
        }
        free.mirrors = Some(mirrored);
        drop(free);
        self.scan(|index, record| {
            let (chunk, offset) = place(index);
            let mirror = self.chunks[chunk].get().and_then(|chunk| chunk.mirror.get());
            let Some((mirror, claim)) = mirror.and_then(|chunk| chunk.slot(offset)) else { return };
            if !claim.begin() {
                return;
            }
            loop {
                let numbers = record.read();
                match self.details(&[(index, numbers)]).pop() {
                    Some((numbers, details)) if numbers.flags.has(Flags::LIVE) => {
                        details.show(numbers, &mirror);
                    }
                    _ => mirror
                        .record
                        .write(Numbers { generation: numbers.generation, ..Numbers::default() }),
                }
                if claim.finish() {
                    break;
                }
            }
        });
    }

    /// Notes in the mirrors what only a look tells: what is pinned. Returns how many points there
    /// are, and how many of them are not shown.
    pub(crate) fn refresh_mirrors(&self) -> (u64, u64) {
        let (mut live, mut hidden, mut pinning) = (0, 0, Vec::new());
        self.scan_live(|index, numbers, _| {
            live += 1;
            let (chunk, offset) = place(index);
            let mirror = self.chunks[chunk].get().and_then(|chunk| chunk.mirror.get());
            match mirror.and_then(|chunk| chunk.slot(offset)) {
                None => hidden += 1,
                Some((mirror, _)) if numbers.flags.has(Flags::PINS) => {
                    pinning.push((mirror, [(index, numbers)]));
                }
                Some((mirror, _)) => mirror.record.rest.note_pins(Pins::default()),
            }
        });
        for (mirror, slot) in pinning {
            if let Some((_, details)) = self.details(&slot).pop() {
                mirror.record.rest.note_pins(details.pins().unwrap_or_default());
            }
        }
        (live, hidden)
    }

    /// Raises the peaks of every consumer there is.
    #[inline]
    pub(crate) fn raise(&self, slot: &Slot, gap: u64) {
        let (chunk, offset) = place(slot.index());
        if let Some(chunk) = self.chunks[chunk].get() {
            chunk.record(offset).raise_peak(self.consumers.load(Ordering::Relaxed), gap);
        }
    }

    /// Calls `each` with the index, the numbers and the record of every live slot. No locks, no pins.
    #[inline]
    pub(crate) fn scan_live(&self, mut each: impl FnMut(usize, Numbers, Record<'_>)) {
        self.scan(|index, record| {
            let numbers = record.read();
            if numbers.flags.has(Flags::LIVE) {
                each(index, numbers, record);
            }
        });
    }

    /// Calls `plain` with what the head of each live slot says, and `other` with the index of each
    /// slot whose head does not say all, or that has a peak for a consumer in `mask`.
    ///
    /// The loop that a report spends its time in: it reads one cache line for a slot, front to back.
    #[inline(always)]
    pub(crate) fn scan_heads(
        &self,
        mask: u64,
        mut plain: impl FnMut(usize, Plain),
        mut other: impl FnMut(usize),
    ) {
        // Pairs with the release store in `add`.
        let mut left = self.high_water.load(Ordering::Acquire);
        let mut first = 0;
        for chunk in self.chunks.iter().map_while(OnceLock::get) {
            let heads = &chunk.heads[..left.min(chunk.heads.len())];
            for (offset, head) in heads.iter().enumerate() {
                match head.read_plain(mask) {
                    Some(found) if found.flags.has(Flags::LIVE) => plain(first + offset, found),
                    Some(_) => {}
                    None => other(first + offset),
                }
            }
            first += heads.len();
            left -= heads.len();
            if left == 0 {
                break;
            }
        }
    }

    /// The record of a slot that was ever used.
    pub(crate) fn record(&self, index: usize) -> Option<Record<'_>> {
        let (chunk, offset) = place(index);
        self.chunks[chunk].get().map(|chunk| chunk.record(offset))
    }

    /// Calls `each` with the index and the record of every slot that was ever used.
    #[inline]
    pub(crate) fn scan(&self, mut each: impl FnMut(usize, Record<'_>)) {
        // Pairs with the release store in `add`.
        let mut left = self.high_water.load(Ordering::Acquire);
        let mut first = 0;
        for chunk in self.chunks.iter().map_while(OnceLock::get) {
            for (offset, (head, rest)) in
                chunk.heads.iter().zip(&chunk.rests).take(left).enumerate()
            {
                each(first + offset, Record { head, rest });
            }
            first += chunk.heads.len();
            left = left.saturating_sub(chunk.heads.len());
            if left == 0 {
                break;
            }
        }
    }

    /// The entries of the given slots, as far as their tenants are still there.
    ///
    /// Pins once for every few hundred slots, so that a long list does not hold reclamation back.
    pub(crate) fn details(&self, slots: &[(usize, Numbers)]) -> Vec<(Numbers, Arc<dyn Details>)> {
        const SLOTS_PER_PIN: usize = 256;
        if slots.is_empty() {
            return Vec::new();
        }
        let participant = self.collector.register();
        let mut found = Vec::with_capacity(slots.len());
        for some in slots.chunks(SLOTS_PER_PIN) {
            let guard = participant.pin();
            for &(index, numbers) in some {
                let (chunk, offset) = place(index);
                let Some(chunk) = self.chunks[chunk].get() else { continue };
                // Pairs with the release store in `add`.
                let pointer = chunk.entries[offset].load(Ordering::Acquire, &guard);
                // SAFETY: a pointer in the table leads to an entry that is destroyed only after
                // `remove` swapped it out and every pin of that time ended; ours began before the
                // load.
                let Some(entry) = (unsafe { pointer.as_ref() }) else { continue };
                if entry.generation == numbers.generation {
                    found.push((numbers, Arc::clone(&entry.details)));
                }
            }
        }
        found
    }
}

impl Drop for SlotTable {
    fn drop(&mut self) {
        for chunk in self.chunks.iter_mut().filter_map(OnceLock::get_mut) {
            for entry in &mut chunk.entries {
                let entry = std::mem::replace(entry, Atomic::null());
                // SAFETY: nobody else can reach the table any more, and what `remove` took out of
                // it is no longer in it.
                drop(unsafe { entry.try_into_owned() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::PointView;
    use std::sync::atomic::AtomicBool;

    struct Named(u64, Arc<AtomicUsize>);

    impl Details for Named {
        fn view(&self, _: Numbers, _: Duration) -> PointView {
            PointView { name: self.0.to_string().into(), ..PointView::default() }
        }

        fn pins(&self) -> Option<Pins> {
            None
        }

        fn show(&self, _: Numbers, _: &Mirror<'_>) {}
    }

    impl Drop for Named {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends the threads of a test, also when it fails.
    struct Done<'a>(&'a AtomicBool);

    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn add(table: &SlotTable, name: u64, dropped: &Arc<AtomicUsize>) -> Slot {
        let flags = Flags::default().with(Flags::PHYSICALLY_HELD, true);
        let numbers = Numbers { flags, gap: name, physical_gap: name, ..Numbers::default() };
        table.add(Arc::new(Named(name, Arc::clone(dropped))), numbers)
    }

    #[test]
    fn places_run_on_from_chunk_to_chunk() {
        assert_eq!((place(0), place(63), place(64)), ((0, 0), (0, 63), (1, 0)));
        assert_eq!((place(255), place(256), place(383)), ((3, 63), (4, 0), (4, 127)));
        let mut next = 0;
        for chunk in 0..CHUNKS {
            assert_eq!((first_of(chunk), place(next)), (next, (chunk, 0)));
            let room = chunk_size(chunk);
            assert!(room <= next / STEPS + FIRST_CHUNK, "{room} more beside {next}");
            next += room;
            assert_eq!(place(next - 1), (chunk, room - 1));
        }
        assert!(next >= 1 << 32);
    }

    #[test]
    fn a_slot_is_used_again_and_its_last_tenant_is_not_taken_for_the_new_one() {
        let (table, dropped) = (SlotTable::new(Collector::new(), Clock::manual()), Arc::default());
        let first = add(&table, 1, &dropped);
        let mut seen = Vec::new();
        table.scan_live(|index, numbers, _| seen.push((index, numbers)));
        table.remove(first);
        let second = add(&table, 2, &dropped);
        assert_eq!(second.index(), seen[0].0);
        assert!(table.details(&seen).is_empty(), "the old generation is gone");
        drop(table);
        assert_eq!(dropped.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn under_churn_every_point_that_stays_is_seen_once_and_garbage_stays_bounded() {
        const STAYING: u64 = 300;
        let (table, dropped) = (SlotTable::new(Collector::new(), Clock::manual()), Arc::default());
        let kept: Vec<_> = (0..STAYING).map(|name| add(&table, name, &dropped)).collect();
        let (done, added) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let slots: Vec<_> =
                            (0..40).map(|_| add(&table, STAYING, &dropped)).collect();
                        added.fetch_add(slots.len(), Ordering::Relaxed);
                        slots.into_iter().for_each(|slot| table.remove(slot));
                    }
                });
            }
            let _done = Done(&done);
            for _ in 0..500 {
                let mut found = vec![0; STAYING as usize + 1];
                let mut live = Vec::new();
                table.scan_live(|index, numbers, _| {
                    assert_eq!(numbers.gap, numbers.physical_gap);
                    found[numbers.gap as usize] += 1;
                    live.push((index, numbers));
                });
                assert!(found[..STAYING as usize].iter().all(|count| *count == 1), "{found:?}");
                for (numbers, details) in table.details(&live) {
                    assert_eq!(
                        *details.view(numbers, Duration::ZERO).name,
                        numbers.gap.to_string()
                    );
                }
            }
        });
        let (added, gone) = (added.into_inner(), dropped.load(Ordering::Relaxed));
        assert!(gone * 2 > added, "only {gone} of {added} removed points were freed");
        kept.into_iter().for_each(|slot| table.remove(slot));
        drop(table);
        assert_eq!(dropped.load(Ordering::Relaxed), added + STAYING as usize);
    }
}
