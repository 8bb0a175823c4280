//! Which slots of a chunk are shown in a segment, and who writes them there.
//!
//! # The protocol
//!
//! A segment is attached to a registry that may be publishing at full speed. From then on each
//! point's writer shows what it publishes; but a point that has nothing new to publish must be shown
//! too, by whoever attaches. Two threads that fill one slot would break the rule that a record has
//! one writer, and a publishing worker must not wait. So each slot has a *claim*:
//!
//! - *free*: nobody has shown it yet.
//! - *filling*: the attacher is showing what it finds.
//! - *dirty*: the attacher is at it, and the point has been published meanwhile.
//! - *claimed*: the slot is the point's writer's, for good.
//!
//! *The writer*, when it has published: claimed, it shows. Free, it claims and shows. Filling or
//! dirty, it marks the slot dirty and leaves the showing to the attacher, which has yet to look again;
//! if the attacher was done in between, the slot is claimed, and it shows. Four steps at most.
//!
//! *The attacher* turns free into filling, shows what is published, and turns filling into claimed.
//! If that fails, the slot is dirty: it turns it back into filling and shows anew.
//!
//! *Orderings*: each change of a claim is an acquire-release. What the writer published before it
//! marked a slot dirty is seen by the attacher that found the mark; what the attacher wrote before it
//! turned the slot over is seen by the writer that found it claimed, whose next write follows it.

use crate::layout::{Memory, Mirror};
use crate::record::Record;
use crate::sync::{AtomicU8, Ordering};

const FREE: u8 = 0;
const FILLING: u8 = 1;
const DIRTY: u8 = 2;
const CLAIMED: u8 = 3;

/// Who writes a slot.
pub(crate) struct Claim(AtomicU8);

/// What a writer that has published is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Show what changed.
    Change,
    /// Show everything: nothing was shown before.
    All,
    /// Nothing: the attacher will.
    None,
}

impl Claim {
    /// Nobody's yet.
    pub(crate) fn new() -> Self {
        Claim(AtomicU8::new(FREE))
    }

    /// The writer's turn, after it has published. A load once the slot is claimed.
    #[inline]
    pub(crate) fn turn(&self) -> Turn {
        // Pairs with the attacher's release in `finish`.
        if self.0.load(Ordering::Acquire) == CLAIMED { Turn::Change } else { self.contended() }
    }

    #[cold]
    fn contended(&self) -> Turn {
        let swap =
            |from, to| self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        let mark = || match swap(FILLING, DIRTY) {
            Ok(_) => Turn::None,
            // It was done in between; nothing else leaves this state but the writer itself.
            Err(_) => Turn::All,
        };
        match swap(FREE, CLAIMED) {
            Ok(_) => Turn::All,
            Err(CLAIMED) => Turn::Change,
            // Marked before, for an earlier publication: marked anew, so that this one is released
            // too. To find the mark is not enough.
            Err(DIRTY) if swap(DIRTY, DIRTY).is_ok() => Turn::None,
            Err(_) => mark(),
        }
    }

    /// The attacher's beginning. Whether the slot was free.
    pub(crate) fn begin(&self) -> bool {
        self.0.compare_exchange(FREE, FILLING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The attacher's end. Whether the slot is turned over; if not, it must show anew.
    pub(crate) fn finish(&self) -> bool {
        let done =
            self.0.compare_exchange(FILLING, CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !done {
            // Pairs with the writer's release when it marked the slot.
            self.0.swap(FILLING, Ordering::AcqRel);
        }
        done
    }
}

/// A chunk's memory in a segment.
pub(crate) struct MirrorChunk {
    memory: Box<dyn Memory>,
    claims: Box<[Claim]>,
}

impl MirrorChunk {
    pub(crate) fn new(memory: Box<dyn Memory>, count: usize) -> Self {
        MirrorChunk { memory, claims: (0..count).map(|_| Claim::new()).collect() }
    }

    /// A slot, and its claim; `None` where the memory is smaller than was asked for.
    pub(crate) fn slot(&self, offset: usize) -> Option<(Mirror<'_>, &Claim)> {
        let slots = self.memory.slots();
        let record = Record { head: slots.heads.get(offset)?, rest: slots.rests.get(offset)? };
        Some((Mirror { record, text: slots.texts.get(offset)? }, self.claims.get(offset)?))
    }
}
