//! Arranging into a trace that can be shared.

use differential_dataflow::difference::Semigroup;
use differential_dataflow::hashable::Hashable;
use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::implementations::{KeyBatcher, ValBatcher};
use differential_dataflow::{ExchangeData, VecCollection};
use holdgap::Distance;

use crate::spine::{SharedKeySpine, SharedValSpine};

/// `arrange_by_key`, into a trace that can be shared with other timely runtimes.
///
/// ```
/// use differential_dataflow::input::Input;
/// use holdgap::Registry;
/// use holdgap_trace::{ArrangeShared, Sharing};
///
/// let sharing = Sharing::new(&Registry::new());
/// timely::execute_directly(move |worker| {
///     let orders = worker.dataflow::<u64, _, _>(|scope| {
///         let (_input, orders) = scope.new_collection_from([(7, "tea".to_owned())]);
///         let orders = orders.arrange_shared_by_key("orders");
///         sharing.publish("u42", &orders)
///     });
///     assert!(orders.is_ok());
/// });
/// ```
pub trait ArrangeShared<'scope, K, V, T, R>
where
    K: ExchangeData + Hashable + Sync,
    V: ExchangeData + Sync,
    T: Distance + Lattice,
    R: ExchangeData + Semigroup + Sync,
{
    /// Arranges `(key, val)` records by key. Costs what `arrange_by_key` costs until published.
    fn arrange_shared_by_key(
        self,
        name: &str,
    ) -> Arranged<'scope, TraceAgent<SharedValSpine<K, V, T, R>>>;
}

impl<'scope, K, V, T, R> ArrangeShared<'scope, K, V, T, R> for VecCollection<'scope, T, (K, V), R>
where
    K: ExchangeData + Hashable + Sync,
    V: ExchangeData + Sync,
    T: Distance + Lattice,
    R: ExchangeData + Semigroup + Sync,
{
    fn arrange_shared_by_key(
        self,
        name: &str,
    ) -> Arranged<'scope, TraceAgent<SharedValSpine<K, V, T, R>>> {
        self.arrange_named::<ValBatcher<K, V, T, R>, SharedValSpine<K, V, T, R>>(
            name,
            ValBatcher::<K, V, T, R>::new,
        )
    }
}

/// `arrange_by_self`, into a trace that can be shared with other timely runtimes.
pub trait ArrangeSharedBySelf<'scope, K, T, R>
where
    K: ExchangeData + Hashable + Sync,
    T: Distance + Lattice,
    R: ExchangeData + Semigroup + Sync,
{
    /// Arranges records by themselves. Costs what `arrange_by_self` costs until published.
    fn arrange_shared_by_self(
        self,
        name: &str,
    ) -> Arranged<'scope, TraceAgent<SharedKeySpine<K, T, R>>>;
}

impl<'scope, K, T, R> ArrangeSharedBySelf<'scope, K, T, R> for VecCollection<'scope, T, K, R>
where
    K: ExchangeData + Hashable + Sync,
    T: Distance + Lattice,
    R: ExchangeData + Semigroup + Sync,
{
    fn arrange_shared_by_self(
        self,
        name: &str,
    ) -> Arranged<'scope, TraceAgent<SharedKeySpine<K, T, R>>> {
        self.map(|key| (key, ())).arrange_named::<KeyBatcher<K, T, R>, SharedKeySpine<K, T, R>>(
            name,
            KeyBatcher::<K, T, R>::new,
        )
    }
}
