//! How far apart two timestamps are.
//!
//! A gap is a number, and timestamps need not be numbers. [`Distance`] is the one thing a timestamp
//! must add to timely's [`Timestamp`]: a measure of how far a later time is beyond an earlier one.

use std::time::Duration;

use timely::order::Product;
use timely::progress::{Antichain, Timestamp};

/// The largest distance that is ever reported, in timestamp units.
///
/// It fits a signed 64-bit integer, so that no consumer of a gap can read it as negative or as a
/// marker for "unknown".
pub const MAX_DISTANCE: u64 = i64::MAX as u64;

/// A timestamp that can say how far it is beyond an earlier one.
///
/// Provided for the integers, [`Duration`] (in milliseconds, rounded up), `()` and
/// [`Product`] (its outer coordinate). Implement it for a timestamp of your own:
///
/// ```
/// use holdgap::Distance;
/// # use timely::order::Product;
/// # type Ticks = u64;
/// // A timestamp that counts ticks of 10 ms: `earlier` is less or equal to `later`.
/// fn distance(earlier: &Ticks, later: &Ticks) -> u64 { (later - earlier) * 10 }
/// # assert_eq!(distance(&1, &3), 20);
/// assert_eq!(u64::distance(&10, &17), 7);
/// assert_eq!(<Product<u64, u32>>::distance(&Product::new(1, 5), &Product::new(4, 6)), 3);
/// ```
pub trait Distance: Timestamp + Sync {
    /// How far `later` is beyond `earlier`, in timestamp units.
    ///
    /// Only called with `earlier` less or equal to `later`. The caller caps the result at
    /// [`MAX_DISTANCE`]. Called once per element pair of a frontier at every changed publication:
    /// it should neither allocate nor lock, and must not panic.
    fn distance(earlier: &Self, later: &Self) -> u64;

    /// The time as one number, where it is one and fits: how a shared-memory segment keeps it, which
    /// else keeps its debugging text, up to a length.
    fn as_number(&self) -> Option<u64> {
        None
    }
}

macro_rules! distance_of_integers {
    ($($integer:ty),*) => { $(
        impl Distance for $integer {
            #[inline]
            fn distance(earlier: &Self, later: &Self) -> u64 {
                u64::try_from(later.abs_diff(*earlier)).unwrap_or(MAX_DISTANCE)
            }

            #[inline]
            fn as_number(&self) -> Option<u64> {
                u64::try_from(*self).ok()
            }
        }
    )* };
}

distance_of_integers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

impl Distance for () {
    #[inline]
    fn distance(_: &Self, _: &Self) -> u64 {
        0
    }
}

impl Distance for Duration {
    #[inline]
    fn distance(earlier: &Self, later: &Self) -> u64 {
        let nanoseconds = later.saturating_sub(*earlier).as_nanos();
        u64::try_from(nanoseconds.div_ceil(1_000_000)).unwrap_or(MAX_DISTANCE)
    }
}

impl<TOuter: Distance, TInner: Timestamp + Sync> Distance for Product<TOuter, TInner> {
    #[inline]
    fn distance(earlier: &Self, later: &Self) -> u64 {
        TOuter::distance(&earlier.outer, &later.outer)
    }
}

/// How far the frontier `later` is beyond the frontier `earlier`, in timestamp units.
///
/// The largest over elements `l` of `later` of the smallest distance from an element of `earlier`
/// that is less or equal to `l`. Elements of `later` with no such element count for nothing.
pub(crate) fn frontier_distance<T: Distance>(earlier: &Antichain<T>, later: &Antichain<T>) -> u64 {
    let nearest = |l: &T| {
        let below = earlier.iter().filter(|e| e.less_equal(l));
        below.map(|e| T::distance(e, l)).min().unwrap_or(0)
    };
    later.iter().map(nearest).max().unwrap_or(0).min(MAX_DISTANCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_saturate_instead_of_wrapping() {
        assert_eq!(i64::distance(&i64::MIN, &i64::MAX), u64::MAX);
        assert_eq!(u128::distance(&0, &u128::MAX), MAX_DISTANCE);
        let (earlier, later) = (Antichain::from_elem(i64::MIN), Antichain::from_elem(i64::MAX));
        assert_eq!(frontier_distance(&earlier, &later), MAX_DISTANCE);
    }

    #[test]
    fn a_duration_of_less_than_a_millisecond_is_not_nothing() {
        assert_eq!(Duration::distance(&Duration::ZERO, &Duration::from_micros(1)), 1);
        assert_eq!(Duration::distance(&Duration::ZERO, &Duration::from_millis(12)), 12);
    }

    #[test]
    fn partial_orders_measure_from_the_nearest_element_below() {
        let p = |a: u64, b: u64| Product::new(a, b);
        let earlier = Antichain::from_iter([p(0, 9), p(4, 0)]);
        let later = Antichain::from_iter([p(5, 9), p(9, 1)]);
        // (5, 9) is 1 from (4, 0) and 5 from (0, 9); (9, 1) is 5 from (4, 0) alone.
        assert_eq!(frontier_distance(&earlier, &later), 5);
    }
}
