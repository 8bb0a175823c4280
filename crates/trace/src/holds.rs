//! Who keeps a trace from compacting, and how far: its holds, and their meet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use differential_dataflow::lattice::Lattice;
use holdgap::{HoldKind, Holder, Holders};
use timely::PartialOrder;
use timely::progress::frontier::MutableAntichain;
use timely::progress::{Antichain, Timestamp};

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
    /// When it was registered, on the registry's clock.
    pub(crate) registered: Duration,
    pub(crate) at: Compaction<T>,
}

/// All holds on one trace, each counted by itself: two at one time are two.
///
/// Moving one costs what `MutableAntichain` takes for a few updates, and a place in a map by time;
/// the meet, and who stands at it, are read off.
pub(crate) struct Holds<T: Timestamp> {
    holds: BTreeMap<HoldId, Hold<T>>,
    logical: MutableAntichain<T>,
    physical: MutableAntichain<T>,
    /// Who stands where, logically: for each time, by kind.
    standing: BTreeMap<T, Standing>,
    /// Counts the changes.
    changes: u64,
}

/// Who stands at one time: the holds of each kind.
type Standing = [BTreeSet<HoldId>; HoldKind::ALL.len()];

impl<T: Timestamp + Lattice> Holds<T> {
    pub(crate) fn new() -> Self {
        let (logical, physical) = (MutableAntichain::new(), MutableAntichain::new());
        Holds { holds: BTreeMap::new(), logical, physical, standing: BTreeMap::new(), changes: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.holds.is_empty()
    }

    /// How often anything changed here: who holds what, or what a holder is called.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
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
        self.place(id, hold.kind, &hold.at.logical);
        let before = self.holds.insert(id, hold);
        debug_assert!(before.is_none(), "hold ids are used once");
    }

    pub(crate) fn remove(&mut self, id: HoldId) -> Option<Hold<T>> {
        let hold = self.holds.remove(&id)?;
        self.count(&hold.at, -1);
        self.displace(id, hold.kind, &hold.at.logical);
        Some(hold)
    }

    /// Joins `to` into a hold: it advances, or stays. Returns whether it moved.
    pub(crate) fn advance(&mut self, id: HoldId, to: &Compaction<T>) -> bool {
        let Some(hold) = self.holds.get_mut(&id) else { return false };
        let next = hold.at.join(to);
        if next == hold.at {
            return false;
        }
        let (before, kind) = (std::mem::replace(&mut hold.at, next.clone()), hold.kind);
        self.count(&next, 1);
        self.count(&before, -1);
        if before.logical != next.logical {
            self.displace(id, kind, &before.logical);
            self.place(id, kind, &next.logical);
        }
        true
    }

    pub(crate) fn relabel(&mut self, id: HoldId, kind: HoldKind, label: Arc<str>) {
        if let Some(mut hold) = self.remove(id) {
            (hold.kind, hold.label) = (kind, label);
            self.insert(id, hold);
        }
    }

    /// Who stands at the meet `applied`: some by name, the longest registered first.
    ///
    /// A few lookups, for each element of `applied` and for each who is named.
    pub(crate) fn binding(&self, applied: &Antichain<T>) -> Holders {
        let at = |time| self.standing.get(time).into_iter().flatten().zip(HoldKind::ALL);
        let here: Vec<_> = applied.iter().flat_map(at).filter(|(ids, _)| !ids.is_empty()).collect();
        let kinds = here.iter().map(|(_, kind)| *kind).collect();
        let mut named = BTreeSet::new();
        for (ids, _) in &here {
            named.extend(ids.iter().take(Holders::NAMED).copied());
        }
        let total = if applied.len() == 1 {
            here.iter().map(|(ids, _)| ids.len()).sum()
        } else {
            // A hold of several elements may stand at more than one of them.
            here.iter().flat_map(|(ids, _)| *ids).collect::<BTreeSet<_>>().len()
        };
        let named: Vec<_> = named
            .into_iter()
            .take(Holders::NAMED)
            .filter_map(|id| self.holds.get(&id))
            .map(|Hold { kind, label, registered, .. }| Holder {
                kind: *kind,
                label: Arc::clone(label),
                registered: *registered,
            })
            .collect();
        let more = (total - named.len()) as u64;
        Holders { named, more, kinds }
    }

    fn place(&mut self, id: HoldId, kind: HoldKind, at: &Antichain<T>) {
        for time in at.iter() {
            self.standing.entry(time.clone()).or_default()[kind as usize].insert(id);
        }
    }

    fn displace(&mut self, id: HoldId, kind: HoldKind, at: &Antichain<T>) {
        for time in at.iter() {
            let Some(standing) = self.standing.get_mut(time) else { continue };
            standing[kind as usize].remove(&id);
            if standing.iter().all(BTreeSet::is_empty) {
                self.standing.remove(time);
            }
        }
    }

    fn count(&mut self, at: &Compaction<T>, by: i64) {
        self.changes += 1;
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
        let (label, registered) = (id.0.to_string().into(), Duration::ZERO);
        holds.insert(id, Hold { kind, label, registered, at: at(logical, physical) });
        id
    }

    fn named(holders: &Holders) -> Vec<String> {
        holders.named.iter().map(|holder| holder.label.to_string()).collect()
    }

    #[test]
    fn those_at_the_meet_are_named_the_longest_registered_first_and_the_rest_counted() {
        let mut holds = Holds::new();
        let ids: Vec<_> = (0..7).map(|_| add(&mut holds, 3, 4)).collect();
        add(&mut holds, 5, 4);
        let applied = Antichain::from_elem(3);
        let holders = holds.binding(&applied);
        let oldest: Vec<_> = ids[..4].iter().map(|id| id.0.to_string()).collect();
        assert_eq!((named(&holders), holders.more), (oldest, 3));
        holds.remove(ids[0]);
        holds.advance(ids[1], &at(9, 4));
        holds.relabel(ids[5], HoldKind::Import, "import".into());
        let holders = holds.binding(&applied);
        assert_eq!((holders.named.len(), holders.more), (4, 1));
        let kinds = [HoldKind::Import, HoldKind::Reader].into_iter().collect();
        assert_eq!(holders.kinds, kinds);
        assert!(holds.binding(&Antichain::from_elem(4)).is_empty());
        assert!(holds.binding(&Antichain::new()).is_empty());
    }

    #[test]
    fn a_hold_at_two_elements_of_a_meet_counts_once() {
        use timely::order::Product;
        let mut holds = Holds::new();
        let meet: Antichain<Product<u64, u64>> =
            [Product::new(0, 5), Product::new(5, 0)].into_iter().collect();
        for label in ["one", "other"] {
            let at = Compaction { logical: meet.clone(), physical: Antichain::new() };
            let (kind, registered) = (HoldKind::Import, Duration::ZERO);
            holds.insert(HoldId::next(), Hold { kind, label: label.into(), registered, at });
        }
        let holders = holds.binding(&meet);
        assert_eq!((named(&holders), holders.more), (vec!["one".into(), "other".into()], 0));
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
