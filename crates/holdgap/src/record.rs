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

use crate::peaks::Peaks;
use crate::sync::{AtomicU64, Ordering, fence};

/// The numbers of a point that a report is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// Which tenant of the slot these belong to.
    pub(crate) generation: u32,
    /// What the point is, and which of its numbers mean something.
    pub(crate) flags: Flags,
    /// The logical hold gap, in timestamp units.
    pub(crate) gap: u64,
    /// The physical hold gap, in timestamp units.
    pub(crate) physical_gap: u64,
    /// How far applied trails the upper, in timestamp units.
    pub(crate) lag: u64,
    /// How far requested trails the upper, in timestamp units.
    pub(crate) slack: u64,
}

/// What a point is at the moment, as bits.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    /// There is a point in the slot.
    pub(crate) const LIVE: Flags = Flags(1);
    /// Its writer has closed.
    pub(crate) const FROZEN: Flags = Flags(1 << 1);
    /// Its logical frontiers differ.
    pub(crate) const HELD: Flags = Flags(1 << 2);
    /// Its physical frontiers differ.
    pub(crate) const PHYSICALLY_HELD: Flags = Flags(1 << 3);

    pub(crate) fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn with(self, other: Flags, on: bool) -> Flags {
        Flags(if on { self.0 | other.0 } else { self.0 & !other.0 })
    }
}

impl std::fmt::Debug for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#06b}", self.0)
    }
}

/// How many 64-bit words one version has.
const WORDS: usize = 5;

impl Numbers {
    fn to_words(self) -> [u64; WORDS] {
        let tag = u64::from(self.generation) << 32 | u64::from(self.flags.0);
        [tag, self.gap, self.physical_gap, self.lag, self.slack]
    }

    #[inline]
    fn from_words([tag, gap, physical_gap, lag, slack]: [u64; WORDS]) -> Self {
        let (generation, flags) = ((tag >> 32) as u32, Flags(tag as u32));
        Numbers { generation, flags, gap, physical_gap, lag, slack }
    }
}

/// A slot's record: two cache lines of its own, so that neighbours do not disturb each other.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Record {
    sequence: AtomicU64,
    versions: [[AtomicU64; WORDS]; 2],
    /// Beside the protocol above: each is a word of its own.
    pub(crate) peaks: Peaks,
}

const _: () = assert!(size_of::<Record>() == 128);

impl Record {
    /// Replaces the numbers. The caller is the only writer of this record at the moment.
    #[inline]
    pub(crate) fn write(&self, numbers: Numbers) {
        // Relaxed: only the writer stores it, and a change of writer goes through a mutex.
        let next = self.sequence.load(Ordering::Relaxed).wrapping_add(1);
        // Pairs with the acquire fence in `read`: a reader that sees one of the stores below sees
        // the sequence that the write before this one stored.
        fence(Ordering::Release);
        for (word, value) in self.versions[(next & 1) as usize].iter().zip(numbers.to_words()) {
            word.store(value, Ordering::Relaxed);
        }
        // Pairs with the acquire load in `read`: a reader that sees it sees the stores above.
        self.sequence.store(next, Ordering::Release);
    }

    /// The numbers of one completed write.
    ///
    /// Tries again only if a write completed meanwhile: it never waits for one to complete.
    #[inline]
    pub(crate) fn read(&self) -> Numbers {
        // Pairs with the release store in `write`.
        let mut before = self.sequence.load(Ordering::Acquire);
        loop {
            let version = &self.versions[(before & 1) as usize];
            let words = std::array::from_fn(|i| version[i].load(Ordering::Relaxed));
            // Pairs with the release fence in `write`.
            fence(Ordering::Acquire);
            let after = self.sequence.load(Ordering::Relaxed);
            if before == after {
                return Numbers::from_words(words);
            }
            before = self.sequence.load(Ordering::Acquire);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_never_sees_halves_of_two_writes() {
        let record = Record::default();
        let numbers = |n: u64| Numbers {
            generation: n as u32,
            flags: Flags::LIVE,
            gap: n,
            physical_gap: n.wrapping_mul(3),
            lag: !n,
            slack: n ^ 7,
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
    }
}
