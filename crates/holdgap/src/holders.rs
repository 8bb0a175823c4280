//! Who holds a point back: the holders at the meet.

use std::time::Duration;

use crate::kind::{HoldKind, HoldKinds};
use crate::sync::Arc;

/// One holder, as its publisher knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// What kind of holder it is.
    pub kind: HoldKind,
    /// What the holder calls itself.
    pub label: Arc<str>,
    /// When it was registered, on the clock of the registry's options.
    pub registered: Duration,
}

/// The holders that bind a point's applied frontier: those that stand at the meet.
///
/// Some by name, and how many more. The owner's own handles are not among them: what they keep is
/// the point's slack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// The longest registered first, at most [`Holders::NAMED`].
    pub named: Vec<Holder>,
    /// How many there are beyond those named.
    pub more: u64,
    /// Which kinds there are among all of them.
    pub kinds: HoldKinds,
}

impl Holders {
    /// How many holders are named at most.
    pub const NAMED: usize = 4;

    /// Whether nobody holds the point back.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }
}

/// A holder, for people: see [`PointView`](crate::PointView).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderView {
    /// What kind of holder it is.
    pub kind: HoldKind,
    /// What the holder calls itself.
    pub label: Arc<str>,
    /// How long ago it was registered.
    pub age: Duration,
}

/// What waits for the imports of one point, in all their queues together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queued {
    /// What an import has yet to take in: batches, and for each import an advance of the upper that
    /// it has not seen.
    pub instructions: u64,
    /// The batches among them.
    pub batches: u64,
}

/// What a trace has replaced or dropped and others keep alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    /// How many batches.
    pub batches: u64,
    /// How many updates these have.
    pub updates: u64,
}

/// Where a report reads what a point's trace pins: see [`Point::count_pins`](crate::Point::count_pins).
///
/// Pins end when a reader lets go, on the reader's thread and without a word to the writer; so they
/// are not published but read when a report wants them.
pub trait Pinned: Send + Sync {
    /// What is pinned now. Called by reports, for points that pin something: it should neither lock
    /// nor allocate.
    fn pins(&self) -> Pins;
}
