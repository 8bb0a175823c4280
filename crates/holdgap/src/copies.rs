//! What a reader in another process makes of a segment's bytes.
//!
//! They may be anybody's: every length is clamped, and no value leads anywhere. What is copied when,
//! so that it is whole, is in [`layout`](crate::layout).

use std::time::Duration;

use crate::holders::{HolderView, Pins, Queued};
use crate::kind::HoldKind;
use crate::layout::{
    CUT, EMPTY, FRONTIER, FRONTIER_WORDS, HOLDER, HOLDER_WORDS, Head, ID_BYTES, NAME_WORDS, NUMBER,
    Rest, TEXT, TEXT_BYTES, text_words,
};
use crate::pair::HoldGap;
use crate::rank::{Rank, worst_first};
use crate::record::{Flags, Numbers};
use crate::sync::Arc;
use crate::view::PointView;

/// How many words each part of a slot has.
pub const HEAD_WORDS: usize = size_of::<Head>() / 8;
/// See [`HEAD_WORDS`].
pub const REST_WORDS: usize = size_of::<Rest>() / 8;
/// See [`HEAD_WORDS`].
pub const TEXT_WORDS: usize = TEXT_BYTES / 8;
/// The words of a text that tell whether a copy of it is whole: its first two.
pub const TEXT_SEQUENCES: usize = 2;

/// The numbers of one slot, as they were copied.
#[derive(Clone, Copy, Debug)]
pub struct RecordCopy {
    numbers: Numbers,
    version: usize,
    pins: Pins,
}

impl RecordCopy {
    /// The sequence of a head's copy: equal before and after means that what was copied in between
    /// is whole.
    pub fn sequence(head: &[u64; HEAD_WORDS]) -> u64 {
        head[0]
    }

    /// Makes sense of a whole copy.
    pub fn of(head: &[u64; HEAD_WORDS], rest: &[u64; REST_WORDS]) -> Self {
        let version = (RecordCopy::sequence(head) & 1) as usize;
        let numbers = Numbers::of_words(version, head, rest);
        let [batches, updates] = Rest::pins_of(rest);
        RecordCopy { numbers, version, pins: Pins { batches, updates } }
    }

    /// Whether there is a point in the slot.
    pub fn is_live(&self) -> bool {
        self.numbers.flags.has(Flags::LIVE)
    }

    /// Which tenant of the slot it is.
    pub fn generation(&self) -> u16 {
        self.numbers.generation
    }

    /// Where the point stands in the order for people.
    pub fn rank(&self) -> Rank {
        worst_first(self.numbers)
    }

    pub(crate) fn numbers(&self) -> Numbers {
        self.numbers
    }

    pub(crate) fn pins(&self) -> Pins {
        self.pins
    }

    /// The point for people, at `now` on its registry's clock, from a whole copy of its text.
    ///
    /// What a publisher does not measure is left out by whoever knows: pins and queues are shown as
    /// they are.
    pub fn view(&self, text: &[u64; TEXT_WORDS], now: Duration) -> PointView {
        let (sequences, rest) = text.split_at(TEXT_SEQUENCES);
        let (frontiers, rest) = rest.split_at(2 * FRONTIER_WORDS);
        let (holders, rest) = rest.split_at(2 * HOLDER_WORDS);
        let version = |sequence: u64, words: &[u64], len: usize| -> Vec<u64> {
            words[(sequence & 1) as usize * len..][..len].to_vec()
        };
        let frontiers = version(self.version as u64, frontiers, FRONTIER_WORDS);
        let holders = version(sequences[0], holders, HOLDER_WORDS);
        let names = version(sequences[1], rest, NAME_WORDS);
        let mut shown = frontiers[1..].chunks_exact(FRONTIER).map(get_frontier);
        let mut next = || shown.next().flatten();
        let (requested, applied) = (next().unwrap_or_default(), next().unwrap_or_default());
        let (physical_requested, physical_applied, upper) = (next(), next(), next());
        let numbers = self.numbers;
        let held = numbers.flags.has(Flags::HELD);
        let gap = |flag, distance| HoldGap { held: numbers.flags.has(flag), distance };
        let measured = |value| upper.is_some().then_some(value);
        let named = holders[1..].chunks_exact(HOLDER).filter_map(|words| get_holder(words, now));
        let (id, name) = names[1..].split_at(text_words(ID_BYTES));
        PointView {
            ids: get_text(id).map(Arc::from).into_iter().collect(),
            name: get_text(name).unwrap_or_default().into(),
            frozen: numbers.flags.has(Flags::FROZEN),
            gap: gap(Flags::HELD, numbers.gap),
            physical_gap: gap(Flags::PHYSICALLY_HELD, numbers.physical_gap),
            sequence: frontiers[0],
            requested,
            applied,
            physical_requested,
            physical_applied,
            lag: measured(numbers.lag),
            slack: measured(numbers.slack),
            upper,
            stalled: held.then(|| numbers.held_since.until(now)),
            pins: Some(self.pins),
            queued: Some(Queued {
                instructions: numbers.queued_instructions,
                batches: numbers.queued_batches,
            }),
            holders: if held { named.collect() } else { Vec::new() },
            more_holders: if held { holders[0] } else { 0 },
            ..PointView::default()
        }
    }
}

pub(crate) fn get_frontier(words: &[u64]) -> Option<String> {
    match words[0] & 0xff {
        NUMBER => Some(format!("{{{}}}", words[1])),
        EMPTY => Some("{}".to_owned()),
        TEXT => get_text(words),
        _ => None,
    }
}

fn get_holder(words: &[u64], now: Duration) -> Option<HolderView> {
    let kind = (words[1] & 0xff).checked_sub(1)?;
    let kind = *HoldKind::ALL.get(usize::try_from(kind).ok()?)?;
    let label = get_text(&words[1..])?.into();
    Some(HolderView { kind, label, age: now.saturating_sub(Duration::from_nanos(words[0])) })
}

pub(crate) fn get_text(words: &[u64]) -> Option<String> {
    let (head, words) = words.split_first()?;
    if head & 0xff == 0 {
        return None;
    }
    let len = ((head >> 8) & 0xff_ffff) as usize;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let text = String::from_utf8_lossy(&bytes[..len.min(bytes.len())]);
    Some(if head & CUT == 0 { text.into_owned() } else { format!("{text}…") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holders::Holders;
    use crate::layout::NAME_BYTES;

    #[test]
    fn no_words_whatsoever_lead_anywhere() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for _ in 0..2_000 {
            let head = std::array::from_fn(|_| random());
            let rest = std::array::from_fn(|_| random());
            let text = std::array::from_fn(|_| random());
            let record = RecordCopy::of(&head, &rest);
            let view = record.view(&text, Duration::from_nanos(random()));
            assert!(view.name.len() <= 3 * NAME_BYTES + 3 && view.holders.len() <= Holders::NAMED);
        }
    }
}
