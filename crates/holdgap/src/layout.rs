//! What a shared-memory segment holds of each point: the layout that is its file format.
//!
//! A segment shows a registry's points to other processes, also after its own process died. Its
//! slots have three parts, each an array of its own in an *extent*:
//!
//! ```text
//! Head   64 B   sequence · 2 × (tag, gap, lag) · raised           a scan reads these
//! Rest  112 B   2 × (slack, physical gap, queues) · peaks · pins   few points have any
//! Text 1536 B   holders' and names' sequences
//!               2 × frontiers · 2 × holders · 2 × names            for people
//! ```
//!
//! Head and rest are the very types that a report in the process scans (see `record.rs`, which has
//! the protocol). The head's sequence also says which version of the frontiers is complete, so that a
//! gap and the pair it was measured of are one write's. Holders and names change seldom and have
//! sequences of their own, under the same protocol.
//!
//! Everything is made of 64-bit words in the machine's own byte order, zero at first. A reader in
//! another process copies the bytes: the sequences, then the parts, then the sequences again. What
//! is equal before and after was whole; a sequence only ever names a complete version.

use std::fmt::{self, Write};

use timely::progress::Antichain;

use crate::distance::Distance;
use crate::holders::{Holder, Holders};
use crate::record::{Numbers, Record};
use crate::role::Role;
use crate::snapshot::Snapshot;
use crate::sync::{Arc, AtomicU64, Ordering, fence};

pub use crate::record::{Head, Rest};

/// Which version of this layout it is. Another one cannot be read.
pub const VERSION: u64 = 1;

/// The longest text of a frontier, in bytes.
const FRONTIER_BYTES: usize = 48;
/// The longest label of a holder, in bytes.
const LABEL_BYTES: usize = 48;
/// The longest name of a point, in bytes.
pub(crate) const NAME_BYTES: usize = 128;
/// The longest id of a point, in bytes.
pub(crate) const ID_BYTES: usize = 48;

/// One word that says how long a text is, then the text.
pub(crate) const fn text_words(bytes: usize) -> usize {
    1 + bytes / 8
}

pub(crate) const FRONTIER: usize = text_words(FRONTIER_BYTES);
/// Requested and applied, physically requested and applied, upper.
const FRONTIERS: usize = 5;
/// The publication's sequence, then the frontiers.
pub(crate) const FRONTIER_WORDS: usize = 1 + FRONTIERS * FRONTIER;
/// When it was registered, then its kind and label.
pub(crate) const HOLDER: usize = 1 + text_words(LABEL_BYTES);
/// How many more there are, then the holders.
pub(crate) const HOLDER_WORDS: usize = 1 + Holders::NAMED * HOLDER;
/// How many ids there are, then the first of them, then the name.
pub(crate) const NAME_WORDS: usize = 1 + text_words(ID_BYTES) + text_words(NAME_BYTES);

pub(crate) const TEXT_BYTES: usize = 1536;
const TEXT_PADDING: usize = TEXT_BYTES / 8 - 2 - 2 * (FRONTIER_WORDS + HOLDER_WORDS + NAME_WORDS);

/// What a slot has for people.
#[repr(C, align(64))]
pub struct Text {
    holders_sequence: AtomicU64,
    names_sequence: AtomicU64,
    frontiers: [[AtomicU64; FRONTIER_WORDS]; 2],
    holders: [[AtomicU64; HOLDER_WORDS]; 2],
    names: [[AtomicU64; NAME_WORDS]; 2],
    _padding: [AtomicU64; TEXT_PADDING],
}

#[cfg(not(holdgap_loom))]
const _: () = assert!(size_of::<Text>() == TEXT_BYTES);

/// The slots of an extent, in a segment's memory: as many of each part.
#[derive(Clone, Copy)]
pub struct Slots<'a> {
    /// The heads.
    pub heads: &'a [Head],
    /// The rests.
    pub rests: &'a [Rest],
    /// The texts.
    pub texts: &'a [Text],
}

/// Memory for the slots of an extent.
pub trait Memory: Send + Sync {
    /// The slots, always the same ones.
    fn slots(&self) -> Slots<'_>;
}

/// Where a registry finds memory to show its points in: see
/// [`Registry::mirror`](crate::Registry::mirror).
pub trait Mirrors: Send + Sync {
    /// Memory for the `count` slots of a worker of which the first is `first`, all zero. `None` if
    /// there is no room: these points are then not shown.
    ///
    /// Called where points are added, under that worker's mutex.
    fn extent(
        &self,
        role: &Role,
        worker: usize,
        first: usize,
        count: usize,
    ) -> Option<Box<dyn Memory>>;
}

/// One slot in a segment's memory, and the right to write it.
#[derive(Clone, Copy)]
pub(crate) struct Mirror<'a> {
    pub(crate) record: Record<'a>,
    pub(crate) text: &'a Text,
}

impl Mirror<'_> {
    /// Replaces numbers and frontiers, both at once. The caller is the only writer.
    pub(crate) fn write<T: Distance>(&self, numbers: Numbers, snapshot: &Snapshot<T>) {
        self.record.write_with(numbers, |version| {
            let (head, frontiers) = self.text.frontiers[version].split_at(1);
            head[0].store(snapshot.sequence, Ordering::Relaxed);
            let physical = snapshot.physical.as_ref();
            let shown: [Option<&Antichain<T>>; FRONTIERS] = [
                Some(&snapshot.logical.requested),
                Some(&snapshot.logical.applied),
                physical.map(|pair| &pair.requested),
                physical.map(|pair| &pair.applied),
                snapshot.upper.as_ref(),
            ];
            for (words, frontier) in frontiers.chunks_exact(FRONTIER).zip(shown) {
                put_frontier(words, frontier);
            }
        });
    }

    /// Replaces who holds.
    pub(crate) fn write_holders(&self, holders: &Holders) {
        replace(&self.text.holders_sequence, &self.text.holders, |words| {
            let (more, named) = words.split_at(1);
            more[0].store(holders.more, Ordering::Relaxed);
            let slots = named.chunks_exact(HOLDER);
            for (place, words) in slots.enumerate() {
                let Some(Holder { kind, label, registered }) = holders.named.get(place) else {
                    words[1].store(0, Ordering::Relaxed);
                    continue;
                };
                let registered = u64::try_from(registered.as_nanos()).unwrap_or(u64::MAX);
                words[0].store(registered, Ordering::Relaxed);
                put_text(&words[1..], 1 + *kind as u64, label);
            }
        });
    }

    /// Replaces what the point is called.
    pub(crate) fn write_names(&self, name: &str, ids: &[Arc<str>]) {
        replace(&self.text.names_sequence, &self.text.names, |words| {
            words[0].store(ids.len() as u64, Ordering::Relaxed);
            let (id, rest) = words[1..].split_at(text_words(ID_BYTES));
            put_text(id, TEXT, ids.first().map_or("", |id| id));
            put_text(rest, TEXT, name);
        });
    }
}

/// The record's protocol, for a block with a sequence of its own.
fn replace<const N: usize>(
    sequence: &AtomicU64,
    versions: &[[AtomicU64; N]; 2],
    fill: impl FnOnce(&[AtomicU64; N]),
) {
    let next = sequence.load(Ordering::Relaxed).wrapping_add(1);
    // Both pair with what a reader does between its two copies of the sequence: see `record.rs`.
    fence(Ordering::Release);
    fill(&versions[(next & 1) as usize]);
    sequence.store(next, Ordering::Release);
}

/// What the first word of a text says of it, in its lowest byte; 0 where there is none.
pub(crate) const TEXT: u64 = 1;
pub(crate) const NUMBER: u64 = 2;
pub(crate) const EMPTY: u64 = 3;
/// The text was cut.
pub(crate) const CUT: u64 = 1 << 32;

fn put_frontier<T: Distance>(words: &[AtomicU64], frontier: Option<&Antichain<T>>) {
    let put = |place: usize, word| words[place].store(word, Ordering::Relaxed);
    let Some(frontier) = frontier else { return put(0, 0) };
    match frontier.elements() {
        [] => put(0, EMPTY),
        [time] if let Some(number) = time.as_number() => {
            put(0, NUMBER);
            put(1, number);
        }
        times => {
            let mut text = Bounded::<FRONTIER_BYTES>::default();
            // What does not fit is cut, and that is no error.
            let _ = write_frontier(&mut text, times);
            text.put(words, TEXT);
        }
    }
}

fn write_frontier<T: fmt::Debug>(into: &mut impl Write, times: &[T]) -> fmt::Result {
    into.write_char('{')?;
    for (place, time) in times.iter().enumerate() {
        write!(into, "{}{time:?}", if place == 0 { "" } else { ", " })?;
    }
    into.write_char('}')
}

/// Writes a text and the word before it, cut between characters where it is too long.
fn put_text(words: &[AtomicU64], tag: u64, text: &str) {
    let room = (words.len() - 1) * 8;
    let (mut len, cut) = (text.len().min(room), if text.len() > room { CUT } else { 0 });
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    put_bytes(words, tag | cut, &text.as_bytes()[..len]);
}

fn put_bytes(words: &[AtomicU64], tag: u64, bytes: &[u8]) {
    words[0].store(tag | (bytes.len() as u64) << 8, Ordering::Relaxed);
    for (word, chunk) in words[1..].iter().zip(bytes.chunks(8)) {
        let mut padded = [0; 8];
        padded[..chunk.len()].copy_from_slice(chunk);
        word.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
    }
}

/// A text of bounded length, without an allocation.
struct Bounded<const N: usize> {
    bytes: [u8; N],
    len: usize,
    cut: bool,
}

impl<const N: usize> Default for Bounded<N> {
    fn default() -> Self {
        Bounded { bytes: [0; N], len: 0, cut: false }
    }
}

impl<const N: usize> Bounded<N> {
    fn put(&self, words: &[AtomicU64], tag: u64) {
        let tag = if self.cut { tag | CUT } else { tag };
        put_bytes(words, tag, &self.bytes[..self.len]);
    }
}

impl<const N: usize> Write for Bounded<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = N - self.len;
        let mut len = text.len().min(room);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        self.bytes[self.len..self.len + len].copy_from_slice(&text.as_bytes()[..len]);
        self.len += len;
        if len < text.len() {
            self.cut = true;
            return Err(fmt::Error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copies::{get_frontier, get_text};
    use timely::order::Product;

    fn words<const N: usize>() -> [AtomicU64; N] {
        std::array::from_fn(|_| AtomicU64::new(u64::MAX))
    }

    fn copied(words: &[AtomicU64]) -> Vec<u64> {
        words.iter().map(|word| word.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn frontiers_are_numbers_where_they_fit_and_text_with_a_mark_where_they_do_not() {
        fn shown<T: Distance>(times: Vec<T>) -> Option<String> {
            let words = words::<FRONTIER>();
            put_frontier(&words, Some(&Antichain::from(times)));
            get_frontier(&copied(&words))
        }
        assert_eq!(shown(vec![u64::MAX]), Some(format!("{{{}}}", u64::MAX)));
        assert_eq!(shown(vec![-7_i64]).as_deref(), Some("{-7}"));
        assert_eq!(shown(vec![u128::MAX]), Some(format!("{{{}}}", u128::MAX)));
        assert_eq!(shown(Vec::<u64>::new()).as_deref(), Some("{}"));
        let long: Vec<_> = (0..40_u64).map(|n| Product::new(n, 40 - n)).collect();
        let cut = shown(long).unwrap();
        assert!(cut.ends_with('…') && cut.len() <= FRONTIER_BYTES + '…'.len_utf8(), "{cut}");
        let words = words::<FRONTIER>();
        put_frontier::<u64>(&words, None);
        assert_eq!(get_frontier(&copied(&words)), None);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        for text in ["", "u42", "é".repeat(100).as_str(), "a\"b\n<script>"] {
            let words = words::<{ text_words(LABEL_BYTES) }>();
            put_text(&words, TEXT, text);
            let read = get_text(&copied(&words)).unwrap();
            let whole = text.len() <= LABEL_BYTES;
            assert_eq!(read == text, whole, "{read}");
            assert!(whole || (read.ends_with('…') && text.starts_with(read.trim_end_matches('…'))));
        }
    }
}
