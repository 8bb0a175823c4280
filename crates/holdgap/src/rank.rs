//! The order of points for people: the worst first.

use std::cmp::Reverse;

use crate::record::{Flags, Numbers};
use crate::view::PointView;

/// Where a point stands in the order for people: the worst first.
///
/// Held ones by their gap, largest first, then those that are held physically, then those that pin
/// something, then the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(Reverse<(bool, u64, bool, u64, bool)>);

pub(crate) fn worst_first(numbers: Numbers) -> Rank {
    let has = |flag| numbers.flags.has(flag);
    let physically = has(Flags::PHYSICALLY_HELD);
    Rank(Reverse((
        has(Flags::HELD),
        numbers.gap,
        physically,
        numbers.physical_gap,
        has(Flags::PINS),
    )))
}

impl PointView {
    /// Where the point stands in the order for people.
    pub fn rank(&self) -> Rank {
        let (gap, physical) = (self.gap, self.physical_gap);
        let pins = self.pins.is_some_and(|pins| pins.batches > 0);
        Rank(Reverse((gap.held, gap.distance, physical.held, physical.distance, pins)))
    }
}
