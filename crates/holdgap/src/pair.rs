//! The pair (requested, applied), and the gap between the two.

use timely::PartialOrder;
use timely::progress::{Antichain, Timestamp};

use crate::distance::{Distance, frontier_distance};

/// A compaction frontier that was requested, and the one that was applied.
///
/// *Requested* is what the trace's own same-thread handles allow; *applied* is the meet of that and
/// every reader's hold. Applied is always less or equal to requested.
///
/// ```
/// use holdgap::FrontierPair;
/// use timely::progress::Antichain;
///
/// let at = |time: u64| Antichain::from_elem(time);
/// let gap = FrontierPair { requested: at(10), applied: at(7) }.hold_gap(None).unwrap();
/// assert!(gap.held);
/// assert_eq!(gap.distance, 3);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontierPair<T> {
    /// The frontier that the trace's own handles allow compaction up to.
    pub requested: Antichain<T>,
    /// The frontier that compaction was really allowed up to.
    pub applied: Antichain<T>,
}

/// How far an applied frontier trails the requested one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldGap {
    /// Whether the two differ at all.
    pub held: bool,
    /// How far apart they are, in timestamp units. Zero when not held; it may also be zero when
    /// held, if the owner requested the empty frontier and the trace's upper is not known.
    pub distance: u64,
}

/// A pair whose applied frontier is not less or equal to its requested one.
///
/// No order of requests and holds leads to such a pair: it is a fault of the publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidPair;

impl std::fmt::Display for InvalidPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the applied frontier is not less or equal to the requested frontier")
    }
}

impl std::error::Error for InvalidPair {}

impl<T: Timestamp> FrontierPair<T> {
    /// A pair whose two frontiers are the minimum: nothing requested, nothing held.
    pub fn minimum() -> Self {
        let minimum = Antichain::from_elem(T::minimum());
        FrontierPair { requested: minimum.clone(), applied: minimum }
    }
}

impl<T: Distance> FrontierPair<T> {
    /// The gap between the two frontiers.
    ///
    /// `upper` is the frontier of the times that the trace has sealed, where it is known. Nothing
    /// can be compacted beyond it, so a requested frontier that lies beyond it (the empty frontier,
    /// or one far in the future) counts as the upper itself. With an empty requested frontier and
    /// no upper the pair is held at distance zero: there is nothing to measure against.
    ///
    /// # Errors
    ///
    /// [`InvalidPair`] if applied is not less or equal to requested.
    ///
    /// # Cost
    ///
    /// No locks, no allocations; one comparison for each pair of elements.
    #[inline]
    pub fn hold_gap(&self, upper: Option<&Antichain<T>>) -> Result<HoldGap, InvalidPair> {
        if same_frontier(&self.requested, &self.applied) {
            return Ok(HoldGap::default());
        }
        if !PartialOrder::less_equal(&self.applied, &self.requested) {
            return Err(InvalidPair);
        }
        let target = match upper.filter(|u| !u.is_empty()) {
            Some(upper) if PartialOrder::less_equal(upper, &self.requested) => upper,
            _ => &self.requested,
        };
        Ok(HoldGap { held: true, distance: frontier_distance(&self.applied, target) })
    }
}

/// Whether two frontiers are the same: of one element each, as most are, at a glance.
#[inline]
pub(crate) fn same_frontier<T: Timestamp>(one: &Antichain<T>, other: &Antichain<T>) -> bool {
    match (one.elements(), other.elements()) {
        ([one], [other]) => one == other,
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::MAX_DISTANCE;

    fn pair(requested: &[u64], applied: &[u64]) -> FrontierPair<u64> {
        let antichain = |times: &[u64]| times.iter().copied().collect();
        FrontierPair { requested: antichain(requested), applied: antichain(applied) }
    }

    #[test]
    fn equal_frontiers_have_no_gap() {
        assert_eq!(pair(&[7], &[7]).hold_gap(None), Ok(HoldGap::default()));
        assert_eq!(pair(&[], &[]).hold_gap(None), Ok(HoldGap::default()));
    }

    #[test]
    fn an_empty_request_runs_to_the_upper() {
        let upper = Antichain::from_elem(50);
        let held = pair(&[], &[20]);
        assert_eq!(held.hold_gap(Some(&upper)), Ok(HoldGap { held: true, distance: 30 }));
        assert_eq!(held.hold_gap(None), Ok(HoldGap { held: true, distance: 0 }));
        let closed = Antichain::new();
        assert_eq!(held.hold_gap(Some(&closed)), Ok(HoldGap { held: true, distance: 0 }));
    }

    #[test]
    fn a_request_far_in_the_future_counts_as_the_upper() {
        let upper = Antichain::from_elem(50);
        let held = pair(&[u64::MAX], &[20]);
        assert_eq!(held.hold_gap(Some(&upper)), Ok(HoldGap { held: true, distance: 30 }));
        let unknown = held.hold_gap(None).unwrap();
        assert_eq!(unknown.distance, MAX_DISTANCE);
    }

    #[test]
    fn an_upper_behind_the_hold_is_no_distance() {
        let upper = Antichain::from_elem(0);
        assert_eq!(
            pair(&[9], &[5]).hold_gap(Some(&upper)),
            Ok(HoldGap { held: true, distance: 0 })
        );
    }

    #[test]
    fn applied_beyond_requested_is_invalid() {
        assert_eq!(pair(&[5], &[9]).hold_gap(None), Err(InvalidPair));
        assert_eq!(pair(&[5], &[]).hold_gap(None), Err(InvalidPair));
    }
}
