//! One point's numbers, as a scan reads them.
//!
//! # The protocol
//!
//! A record holds two versions of its numbers and a sequence, the count of completed writes. The
//! version whose index is the sequence's lowest bit is complete; the other is the writer's.
//!
//! *Writer* (one at a time, by `&mut` in [`Point`](crate::Point)): fill the version that is not
//! complete, then store the next sequence, which makes it the complete one. Two plain runs of
//! stores and one release store: nothing to wait for.
//!
//! *Reader*: load the sequence, copy the version it names, load the sequence again. Equal: the copy
//! is one write's numbers. Different: at least one write completed in between, so try again.
//!
//! *Collision*: the writer turns to the version being copied only after it has stored a sequence
//! that names the other one. A reader that saw any store of that second write therefore sees the
//! later sequence too, and tries again. A writer that stops in the middle of a write (preempted, or
//! killed) leaves the complete version and the sequence as they were: readers go on at full speed,
//! and the last complete numbers stay readable.
//!
//! *Orderings*: the writer's release store of the sequence pairs with the reader's first, acquire
//! load: whoever sees the sequence sees the version. The writer's release fence before it fills
//! pairs with the reader's acquire fence after its copy: whoever saw one of the new stores sees the
//! sequence that preceded them.
//!
//! # Two parts
//!
//! What a report wants of every point stands in one cache line, the *head*: both versions of its
//! tag, gap and lag, and the sequence. What few points have (a physical gap, queues, a slack that
//! does not follow from the rest, peaks) stands in the *rest*, which a scan visits only where the
//! head's flags say that something is there. One sequence serves both.

use std::time::Duration;

use crate::holders::Pins;
use crate::kind::{HoldKind, HoldKinds};
use crate::peaks::Peaks;
use crate::sync::{AtomicU64, Ordering, fence};

/// The numbers of a point that a report is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// Which tenant of the slot these belong to.
    pub(crate) generation: u16,
    /// What the point is, and which of its numbers mean something.
    pub(crate) flags: Flags,
    /// Since when it is held where it stands; means something where it is held.
    pub(crate) held_since: Ticks,
    /// The logical hold gap, in timestamp units.
    pub(crate) gap: u64,
    /// How far applied trails the upper, in timestamp units.
    pub(crate) lag: u64,
    /// How far requested trails the upper, in timestamp units.
    pub(crate) slack: u64,
    /// The physical hold gap, in timestamp units.
    pub(crate) physical_gap: u64,
    /// What waits in the queues of imports.
    pub(crate) queued_instructions: u64,
    /// How many batches are among that.
    pub(crate) queued_batches: u64,
}

/// A moment on the registry's clock, in sixteenths of a second: eight years fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticks(pub(crate) u32);

impl Ticks {
    const PER_SECOND: u32 = 16;

    pub(crate) fn at(moment: Duration) -> Self {
        let ticks = moment.as_nanos() * u128::from(Self::PER_SECOND) / 1_000_000_000;
        Ticks(u32::try_from(ticks).unwrap_or(u32::MAX))
    }

    /// The time from this moment to `now`, in whole ticks; zero where the clock went back.
    pub(crate) fn until(self, now: Duration) -> Duration {
        let ticks = Ticks::at(now).0.saturating_sub(self.0);
        Duration::from_secs(ticks.into()) / Self::PER_SECOND
    }
}

/// What a point is at the moment, as bits.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    /// There is a point in the slot.
    pub(crate) const LIVE: Flags = Flags(1);
    /// Its writer has closed.
    pub(crate) const FROZEN: Flags = Flags(1 << 1);
    /// Its logical frontiers differ.
    pub(crate) const HELD: Flags = Flags(1 << 2);
    /// Its physical frontiers differ.
    pub(crate) const PHYSICALLY_HELD: Flags = Flags(1 << 3);
    /// Something waits in the queues of its imports.
    pub(crate) const QUEUED: Flags = Flags(1 << 4);
    /// When its writer last looked, something that its trace has replaced was still alive.
    pub(crate) const PINS: Flags = Flags(1 << 5);
    /// Its slack is not its lag less its gap.
    pub(crate) const OWN_SLACK: Flags = Flags(1 << 6);
    /// Where the bits of the kinds that bind it begin.
    const KINDS: u32 = 8;

    /// Those that a report looks at twice.
    const UNUSUAL: Flags = Flags(Flags::REST.0 | Flags::FROZEN.0 | Flags::PINS.0);

    /// Those that send a reader to the record's rest.
    const REST: Flags = Flags(Flags::PHYSICALLY_HELD.0 | Flags::QUEUED.0 | Flags::OWN_SLACK.0);

    #[inline]
    pub(crate) fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    #[inline]
    fn has_any(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn with(self, other: Flags, on: bool) -> Flags {
        Flags(if on { self.0 | other.0 } else { self.0 & !other.0 })
    }

    /// The bits of a kind's binding the point.
    #[inline]
    pub(crate) fn bound_by(kind: HoldKind) -> Flags {
        Flags(1 << (Flags::KINDS + kind as u32))
    }

    /// Whether any kind binds the point.
    #[inline]
    pub(crate) fn has_kinds(self) -> bool {
        self.0 >> Flags::KINDS != 0
    }

    pub(crate) fn with_kinds(self, kinds: HoldKinds) -> Flags {
        let set = |flags: Flags, kind| flags.with(Flags::bound_by(kind), kinds.contains(kind));
        HoldKind::ALL.into_iter().fold(self, set)
    }
}

impl std::fmt::Debug for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#013b}", self.0)
    }
}

/// How many 64-bit words one version has in the head, and in the rest.
const HEAD: usize = 3;
const REST: usize = 4;

impl Numbers {
    fn head(self) -> [u64; HEAD] {
        let Ticks(since) = self.held_since;
        let tag =
            u64::from(since) << 32 | u64::from(self.generation) << 16 | u64::from(self.flags.0);
        [tag, self.gap, self.lag]
    }

    #[inline]
    fn from_head([tag, gap, lag]: [u64; HEAD]) -> Self {
        Numbers {
            generation: (tag >> 16) as u16,
            flags: Flags(tag as u16),
            held_since: Ticks((tag >> 32) as u32),
            gap,
            lag,
            slack: lag.saturating_sub(gap),
            ..Numbers::default()
        }
    }

    fn rest(self) -> [u64; REST] {
        [self.slack, self.physical_gap, self.queued_instructions, self.queued_batches]
    }

    fn add_rest(&mut self, [slack, physical_gap, instructions, batches]: [u64; REST]) {
        // What a flag does not speak of was not written by this write.
        if self.flags.has(Flags::OWN_SLACK) {
            self.slack = slack;
        }
        if self.flags.has(Flags::PHYSICALLY_HELD) {
            self.physical_gap = physical_gap;
        }
        if self.flags.has(Flags::QUEUED) {
            (self.queued_instructions, self.queued_batches) = (instructions, batches);
        }
    }

    /// The numbers of a version, in a copy of a record's words.
    pub(crate) fn of_words(
        version: usize,
        head: &[u64; size_of::<Head>() / 8],
        rest: &[u64; size_of::<Rest>() / 8],
    ) -> Self {
        let first = std::mem::offset_of!(Head, versions) / 8 + version * HEAD;
        let mut numbers = Numbers::from_head(std::array::from_fn(|i| head[first + i]));
        let first = std::mem::offset_of!(Rest, versions) / 8 + version * REST;
        numbers.add_rest(std::array::from_fn(|i| rest[first + i]));
        numbers
    }

    /// These, as a record keeps them: with the flags that say what is in the rest.
    pub(crate) fn flagged(self) -> Self {
        let own_slack = self.slack != self.lag.saturating_sub(self.gap);
        let flags = self.flags.with(Flags::OWN_SLACK, own_slack);
        Numbers { flags: flags.with(Flags::QUEUED, self.queued_instructions > 0), ..self }
    }
}

/// What a report wants of every point: one cache line of its own. See [`layout`](crate::layout).
#[repr(C, align(64))]
#[derive(Default)]
pub struct Head {
    sequence: AtomicU64,
    versions: [[AtomicU64; HEAD]; 2],
    /// Which consumers have a peak to take, as bits: see `peaks.rs`.
    raised: AtomicU64,
}

/// What few points have. See [`layout`](crate::layout).
#[repr(C)]
#[derive(Default)]
pub struct Rest {
    versions: [[AtomicU64; REST]; 2],
    /// Beside the protocol above: each is a word of its own.
    peaks: Peaks,
    /// What is pinned, batches and updates, when a segment was last refreshed; unused on the heap.
    pins: [AtomicU64; 2],
}

impl Rest {
    /// Notes what is pinned.
    pub(crate) fn note_pins(&self, pins: Pins) {
        for (word, count) in self.pins.iter().zip([pins.batches, pins.updates]) {
            word.store(count, Ordering::Relaxed);
        }
    }

    /// What is pinned, in a copy of a rest's words.
    pub(crate) fn pins_of(words: &[u64; size_of::<Rest>() / 8]) -> [u64; 2] {
        let first = std::mem::offset_of!(Rest, pins) / 8;
        [words[first], words[first + 1]]
    }
}

#[cfg(not(holdgap_loom))]
const _: () = assert!(std::mem::offset_of!(Head, sequence) == 0);
#[cfg(not(holdgap_loom))]
const _: () = assert!(size_of::<Head>() == 64 && size_of::<Rest>() == 112);

/// What is read of a point that nothing unusual is the matter with: its head alone.
#[derive(Clone, Copy)]
pub(crate) struct Plain {
    pub(crate) generation: u16,
    pub(crate) flags: Flags,
    pub(crate) held_since: Ticks,
    pub(crate) gap: u64,
    pub(crate) lag: u64,
}

impl From<Plain> for Numbers {
    fn from(Plain { generation, flags, held_since, gap, lag }: Plain) -> Self {
        let slack = lag.saturating_sub(gap);
        Numbers { generation, flags, held_since, gap, lag, slack, ..Numbers::default() }
    }
}

impl Head {
    /// The numbers of one completed write; `None` if they are not all here, or if one of the
    /// consumers in `mask` has a peak to take.
    #[inline(always)]
    pub(crate) fn read_plain(&self, mask: u64) -> Option<Plain> {
        // As `Record::read`, of which this is the common case.
        let mut before = self.sequence.load(Ordering::Acquire);
        loop {
            let [tag, gap, lag] = &self.versions[(before & 1) as usize];
            let [tag, gap, lag] = [tag, gap, lag].map(|word| word.load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            let after = self.sequence.load(Ordering::Relaxed);
            if before == after {
                let flags = Flags(tag as u16);
                let unusual = flags.has_any(Flags::UNUSUAL);
                let unusual = unusual || self.raised.load(Ordering::Relaxed) & mask != 0;
                let held_since = Ticks((tag >> 32) as u32);
                let generation = (tag >> 16) as u16;
                return (!unusual).then_some(Plain { generation, flags, held_since, gap, lag });
            }
            before = self.sequence.load(Ordering::Acquire);
        }
    }
}

/// A slot's record, in its two parts.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) head: &'a Head,
    pub(crate) rest: &'a Rest,
}

impl Record<'_> {
    /// Replaces the numbers. The caller is the only writer of this record at the moment.
    #[inline]
    pub(crate) fn write(self, numbers: Numbers) {
        self.write_with(numbers, |_| {});
    }

    /// Replaces the numbers, together with what `fill` stores of the version that it is given.
    #[inline]
    pub(crate) fn write_with(self, numbers: Numbers, fill: impl FnOnce(usize)) {
        let numbers = numbers.flagged();
        // Relaxed: only the writer stores it, and a change of writer goes through a mutex.
        let next = self.head.sequence.load(Ordering::Relaxed).wrapping_add(1);
        let version = (next & 1) as usize;
        // Pairs with the acquire fence in `read`: a reader that sees one of the stores below sees
        // the sequence that the write before this one stored.
        fence(Ordering::Release);
        for (word, value) in self.head.versions[version].iter().zip(numbers.head()) {
            word.store(value, Ordering::Relaxed);
        }
        if numbers.flags.has_any(Flags::REST) {
            for (word, value) in self.rest.versions[version].iter().zip(numbers.rest()) {
                word.store(value, Ordering::Relaxed);
            }
        }
        fill(version);
        // Pairs with the acquire load in `read`: a reader that sees it sees the stores above.
        self.head.sequence.store(next, Ordering::Release);
    }

    /// Raises the peaks of the consumers in `mask` to `gap`.
    #[inline]
    pub(crate) fn raise_peak(self, mask: u64, gap: u64) {
        self.rest.peaks.raise(&self.head.raised, mask, gap);
    }

    /// Takes a consumer's peak.
    #[inline]
    pub(crate) fn take_peak(self, consumer: usize) -> u64 {
        self.rest.peaks.take(&self.head.raised, consumer)
    }

    /// The numbers of one completed write.
    ///
    /// Tries again only if a write completed meanwhile: it never waits for one to complete.
    #[inline(always)]
    pub(crate) fn read(self) -> Numbers {
        // Pairs with the release store in `write`.
        let mut before = self.head.sequence.load(Ordering::Acquire);
        loop {
            let version = (before & 1) as usize;
            let words = &self.head.versions[version];
            let mut numbers =
                Numbers::from_head(std::array::from_fn(|i| words[i].load(Ordering::Relaxed)));
            if numbers.flags.has_any(Flags::REST) {
                let words = &self.rest.versions[version];
                numbers.add_rest(std::array::from_fn(|i| words[i].load(Ordering::Relaxed)));
            }
            // Pairs with the release fence in `write`.
            fence(Ordering::Acquire);
            let after = self.head.sequence.load(Ordering::Relaxed);
            if before == after {
                return numbers;
            }
            before = self.head.sequence.load(Ordering::Acquire);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_never_sees_halves_of_two_writes() {
        let (head, rest) = (Head::default(), Rest::default());
        let record = Record { head: &head, rest: &rest };
        let numbers = |n: u64| {
            let flags = Flags::LIVE.with(Flags::PHYSICALLY_HELD, !n.is_multiple_of(5));
            Numbers {
                generation: n as u16,
                flags,
                held_since: Ticks(n as u32 ^ 5),
                gap: n,
                lag: n.wrapping_mul(3),
                // Follows from the two before, for every other.
                slack: n.wrapping_mul(2) + n % 2,
                physical_gap: if n.is_multiple_of(5) { 0 } else { !n },
                queued_instructions: n % 3,
                queued_batches: n % 3,
            }
            .flagged()
        };
        record.write(numbers(0));
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let (mut last, mut moved) = (0, 0_u64);
                while last < 200_000 {
                    let seen = record.read();
                    assert_eq!(seen, numbers(seen.gap));
                    assert!(seen.gap >= last, "went back from {last} to {}", seen.gap);
                    moved += u64::from(seen.gap > last);
                    last = seen.gap;
                }
                moved
            });
            for n in 0..=200_000 {
                record.write(numbers(n));
            }
            assert!(reading.join().unwrap() > 0);
        });
    }

    #[test]
    fn flags_are_set_and_cleared_one_by_one() {
        let flags = Flags::LIVE.with(Flags::HELD, true);
        assert!(flags.has(Flags::LIVE) && flags.has(Flags::HELD) && !flags.has(Flags::FROZEN));
        assert!(!flags.with(Flags::HELD, false).has(Flags::HELD));
        let kinds = [HoldKind::Reader].into_iter().collect();
        let bound = flags.with_kinds(kinds);
        assert!(bound.has(Flags::bound_by(HoldKind::Reader)));
        assert!(!bound.has(Flags::bound_by(HoldKind::Standing)));
        assert_eq!(bound.with_kinds(HoldKinds::default()), flags);
    }

    #[test]
    fn a_clock_that_goes_back_makes_no_age() {
        let since = Ticks::at(Duration::from_secs(100));
        assert_eq!(since.until(Duration::from_millis(103_500)), Duration::from_millis(3_500));
        assert_eq!(since.until(Duration::from_secs(40)), Duration::ZERO);
        assert_eq!(Ticks::at(Duration::MAX).until(Duration::MAX), Duration::ZERO);
    }
}
