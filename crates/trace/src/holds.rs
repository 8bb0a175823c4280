//! Who keeps a trace from compacting, and how far: its holds, and their meet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use differential_dataflow::lattice::Lattice;
use timely::PartialOrder;
use timely::progress::frontier::MutableAntichain;
use timely::progress::{Antichain, Timestamp};

/// What kind of holder a hold belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HoldKind {
    /// Tracks what an importing runtime has applied of the compaction commands; no reader behind it.
    Standing,
    /// An import into another runtime's dataflow.
    Import,
    /// A reader that has not been imported.
    Reader,
}

/// A logical and a physical compaction frontier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compaction<T> {
    pub(crate) logical: Antichain<T>,
    pub(crate) physical: Antichain<T>,
}

impl<T: Timestamp + Lattice> Compaction<T> {
    pub(crate) fn minimum() -> Self {
        let minimum = Antichain::from_elem(T::minimum());
        Compaction { logical: minimum.clone(), physical: minimum }
    }

    pub(crate) fn join(&self, other: &Self) -> Self {
        let logical = self.logical.join(&other.logical);
        Compaction { logical, physical: self.physical.join(&other.physical) }
    }

    /// The meet, which never lies behind `floor`.
    pub(crate) fn meet_from(&self, other: &Self, floor: &Self) -> Self {
        let logical = raised(self.logical.meet(&other.logical), &floor.logical);
        Compaction {
            logical,
            physical: raised(self.physical.meet(&other.physical), &floor.physical),
        }
    }
}

fn raised<T: Timestamp + Lattice>(frontier: Antichain<T>, floor: &Antichain<T>) -> Antichain<T> {
    if PartialOrder::less_equal(floor, &frontier) { frontier } else { frontier.join(floor) }
}

/// Names a hold, in whichever publication it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HoldId(u64);

impl HoldId {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Relaxed: uniqueness is all that is asked of it.
        HoldId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// One holder's hold.
#[derive(Clone, Debug)]
pub(crate) struct Hold<T> {
    pub(crate) kind: HoldKind,
    pub(crate) label: Arc<str>,
    pub(crate) at: Compaction<T>,
}

/// All holds on one trace, each counted by itself: two at one time are two.
///
/// Moving one costs what `MutableAntichain` takes for a few updates; the meet is read off.
pub(crate) struct Holds<T: Timestamp> {
    holds: BTreeMap<HoldId, Hold<T>>,
    logical: MutableAntichain<T>,
    physical: MutableAntichain<T>,
}

impl<T: Timestamp + Lattice> Holds<T> {
    pub(crate) fn new() -> Self {
        let (logical, physical) = (MutableAntichain::new(), MutableAntichain::new());
        Holds { holds: BTreeMap::new(), logical, physical }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.holds.is_empty()
    }

    pub(crate) fn get(&self, id: HoldId) -> Option<&Hold<T>> {
        self.holds.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (HoldId, &Hold<T>)> {
        self.holds.iter().map(|(id, hold)| (*id, hold))
    }

    /// What all holds together allow: empty where nobody holds anything.
    pub(crate) fn meet(&self) -> Compaction<T> {
        let logical = self.logical.frontier().to_owned();
        Compaction { logical, physical: self.physical.frontier().to_owned() }
    }

    pub(crate) fn insert(&mut self, id: HoldId, hold: Hold<T>) {
        self.count(&hold.at, 1);
        let before = self.holds.insert(id, hold);
        debug_assert!(before.is_none(), "hold ids are used once");
    }

    pub(crate) fn remove(&mut self, id: HoldId) -> Option<Hold<T>> {
        let hold = self.holds.remove(&id)?;
        self.count(&hold.at, -1);
        Some(hold)
    }

    /// Joins `to` into a hold: it advances, or stays. Returns whether it moved.
    pub(crate) fn advance(&mut self, id: HoldId, to: &Compaction<T>) -> bool {
        let Some(hold) = self.holds.get_mut(&id) else { return false };
        let next = hold.at.join(to);
        if next == hold.at {
            return false;
        }
        let before = std::mem::replace(&mut hold.at, next.clone());
        self.count(&next, 1);
        self.count(&before, -1);
        true
    }

    pub(crate) fn relabel(&mut self, id: HoldId, kind: HoldKind, label: Arc<str>) {
        if let Some(hold) = self.holds.get_mut(&id) {
            hold.kind = kind;
            hold.label = label;
        }
    }

    fn count(&mut self, at: &Compaction<T>, by: i64) {
        drop(self.logical.update_iter(at.logical.iter().map(|time| (time.clone(), by))));
        drop(self.physical.update_iter(at.physical.iter().map(|time| (time.clone(), by))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(logical: u64, physical: u64) -> Compaction<u64> {
        Compaction {
            logical: Antichain::from_elem(logical),
            physical: Antichain::from_elem(physical),
        }
    }

    fn add(holds: &mut Holds<u64>, logical: u64, physical: u64) -> HoldId {
        let (id, kind) = (HoldId::next(), HoldKind::Reader);
        holds.insert(id, Hold { kind, label: "r".into(), at: at(logical, physical) });
        id
    }

    #[test]
    fn two_holds_at_one_time_are_two() {
        let mut holds = Holds::new();
        let (first, second) = (add(&mut holds, 3, 4), add(&mut holds, 3, 4));
        holds.remove(first);
        assert_eq!(holds.meet(), at(3, 4));
        holds.remove(second);
        assert_eq!(
            holds.meet(),
            Compaction { logical: Antichain::new(), physical: Antichain::new() }
        );
        assert!(holds.is_empty());
    }

    #[test]
    fn a_hold_joins_and_never_goes_back() {
        let mut holds = Holds::new();
        let id = add(&mut holds, 3, 9);
        assert!(holds.advance(id, &at(5, 2)));
        assert_eq!(holds.meet(), at(5, 9));
        assert!(!holds.advance(id, &at(4, 9)), "an equal request moves nothing");
    }

    #[test]
    fn the_empty_frontier_releases_one_axis_alone() {
        let mut holds = Holds::new();
        let id = add(&mut holds, 3, 9);
        let logical = Antichain::new();
        holds.advance(id, &Compaction { logical, physical: Antichain::from_elem(0) });
        assert!(holds.meet().logical.is_empty());
        assert_eq!(holds.meet().physical, Antichain::from_elem(9));
    }
}
