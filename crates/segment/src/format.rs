//! A segment's file beside its slots: the header, the directory of extents, and where all stands.
//!
//! ```text
//!      0  header, one page
//!   4 KiB  directory: 2,048 entries of 128 bytes, of which the header says how many there are
//! 260 KiB  extents, page by page: heads, rests, texts (see `holdgap::layout`)
//! ```
//!
//! Everything is made of 64-bit words in the machine's own byte order. An entry is complete before
//! the header counts it. What stands in the header for good was there before the file got its name.

use std::sync::atomic::{AtomicU64, Ordering};

use holdgap::layout::{self, Head, Rest, Text};
use holdgap::{Measures, Role};

pub(crate) const MAGIC: u64 = u64::from_ne_bytes(*b"HOLDGAP\n");
pub(crate) const PAGE: u64 = 4096;
/// The sizes of a slot's parts, in one word.
pub(crate) const SIZES: u64 =
    (size_of::<Head>() as u64) << 32 | (size_of::<Rest>() as u64) << 16 | size_of::<Text>() as u64;
pub(crate) const SLOT: u64 = (size_of::<Head>() + size_of::<Rest>() + size_of::<Text>()) as u64;

pub(crate) const HEADER_WORDS: usize = (PAGE / 8) as usize;
pub(crate) const ENTRIES: usize = 2048;
pub(crate) const ENTRY_WORDS: usize = 16;
/// Header and directory.
pub(crate) const FRONT_WORDS: usize = HEADER_WORDS + ENTRIES * ENTRY_WORDS;
pub(crate) const FRONT_BYTES: u64 = (FRONT_WORDS * 8) as u64;

const _: () =
    assert!(FRONT_BYTES.is_multiple_of(PAGE) && SIZES & 0xffff == size_of::<Text>() as u64);

/// Where each word of the header stands.
pub(crate) mod header {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const VERSION: usize = 1;
    pub(crate) const SIZES: usize = 2;
    pub(crate) const PID: usize = 3;
    /// When the process started, in the kernel's ticks since boot.
    pub(crate) const STARTED: usize = 4;
    /// Which pid namespace the pid belongs to.
    pub(crate) const NAMESPACE: usize = 5;
    /// A random number.
    pub(crate) const INSTANCE: usize = 6;
    /// The monotonic clock, in nanoseconds, when the registry's clock was zero; or [`UNKNOWN`].
    pub(crate) const ORIGIN: usize = 7;
    /// The last heartbeat, on the registry's clock, the monotonic clock and the wall clock.
    pub(crate) const BEAT: usize = 8;
    pub(crate) const BEAT_MONOTONIC: usize = 9;
    pub(crate) const BEAT_UNIX: usize = 10;
    /// How many entries of the directory are complete.
    pub(crate) const EXTENTS: usize = 11;
    /// How many points there was no room for at the last heartbeat.
    pub(crate) const NOT_SHOWN: usize = 12;
    /// A text each: its length, then up to 64 bytes.
    pub(crate) const NAME: usize = 16;
    pub(crate) const PREFIX: usize = 32;
    pub(crate) const TEXT_WORDS: usize = 9;

    pub(crate) const UNKNOWN: u64 = u64::MAX;
}

/// Where each word of a directory's entry stands.
pub(crate) mod entry {
    pub(crate) const WORKER: usize = 0;
    pub(crate) const FIRST: usize = 1;
    pub(crate) const COUNT: usize = 2;
    pub(crate) const OFFSET: usize = 3;
    pub(crate) const MEASURES: usize = 4;
    pub(crate) const INVALID_PAIRS: usize = 5;
    /// Which role it is; the name of another one follows.
    pub(crate) const ROLE: usize = 6;
    pub(crate) const ROLE_NAME: usize = 7;
}

/// How many bytes an extent of so many slots has.
pub(crate) fn extent_bytes(count: u64) -> u64 {
    (count * SLOT).next_multiple_of(PAGE)
}

/// Puts a text into words: its length, and as much of it as fits.
pub(crate) fn put_text(words: &[AtomicU64], text: &str) {
    let mut len = text.len().min((words.len() - 1) * 8);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    words[0].store(len as u64, Ordering::Relaxed);
    for (word, chunk) in words[1..].iter().zip(text.as_bytes()[..len].chunks(8)) {
        let mut padded = [0; 8];
        padded[..chunk.len()].copy_from_slice(chunk);
        word.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
    }
}

/// The text in some words, whatever they are.
pub(crate) fn get_text(words: &[u64]) -> String {
    let Some((len, words)) = words.split_first() else { return String::new() };
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let len = usize::try_from(*len).unwrap_or(usize::MAX).min(bytes.len());
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}

const MAINTENANCE: u64 = 1;
const INTERACTIVE: u64 = 2;
const SOLO: u64 = 3;
const NAMED: u64 = 4;

pub(crate) fn put_role(entry: &[AtomicU64], role: &Role) {
    let (which, name) = match role {
        Role::Maintenance => (MAINTENANCE, ""),
        Role::Interactive => (INTERACTIVE, ""),
        Role::Solo => (SOLO, ""),
        Role::Named(name) => (NAMED, &**name),
    };
    entry[entry::ROLE].store(which, Ordering::Relaxed);
    put_text(&entry[entry::ROLE_NAME..], name);
}

pub(crate) fn get_role(entry: &[u64]) -> Option<Role> {
    match entry[entry::ROLE] {
        MAINTENANCE => Some(Role::Maintenance),
        INTERACTIVE => Some(Role::Interactive),
        SOLO => Some(Role::Solo),
        NAMED => Some(Role::named(get_text(&entry[entry::ROLE_NAME..]))),
        _ => None,
    }
}

pub(crate) fn put_measures(measures: Measures) -> u64 {
    let Measures { physical, lag, holders, pins, queues, .. } = measures;
    let bits = [physical, lag, holders, pins, queues].into_iter().enumerate();
    bits.fold(0, |word, (bit, on)| word | u64::from(on) << bit)
}

pub(crate) fn get_measures(word: u64) -> Measures {
    let bit = |bit: u32| word & 1 << bit != 0;
    let mut measures = Measures::default();
    (measures.physical, measures.lag, measures.holders) = (bit(0), bit(1), bit(2));
    (measures.pins, measures.queues) = (bit(3), bit(4));
    measures
}

/// The version of the layout that this reads and writes.
pub(crate) const VERSION: u64 = layout::VERSION;

#[cfg(test)]
mod tests {
    use super::*;

    fn words(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(u64::MAX)).collect()
    }

    fn copied(words: &[AtomicU64]) -> Vec<u64> {
        words.iter().map(|word| word.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn roles_texts_and_measures_come_back_as_they_were() {
        for role in [Role::Maintenance, Role::Interactive, Role::Solo, Role::named("in\"gest\n")] {
            let words = words(ENTRY_WORDS);
            put_role(&words, &role);
            assert_eq!(get_role(&copied(&words)), Some(role));
        }
        let words = words(3);
        put_text(&words, &"é".repeat(20));
        assert_eq!(get_text(&copied(&words)), "é".repeat(8));
        for bits in 0..32 {
            assert_eq!(put_measures(get_measures(bits)), bits);
        }
        assert_eq!(get_text(&[u64::MAX, u64::from_ne_bytes(*b"holdgap!")]), "holdgap!");
    }
}
