//! What an owner has of an arrangement that it published, and an importing runtime of its id.

use std::sync::Arc;

use differential_dataflow::operators::arrange::TraceAgent;
use differential_dataflow::trace::TraceReader;
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;

use crate::batch::{SharableTrace, SharedBatch};
use crate::directory::Place;
use crate::holds::{Compaction, HoldId};
use crate::publication::Publication;
use crate::spine::SharedSpine;

/// An arrangement under an id, and its owner's handle on it: made by
/// [`Sharing::publish`](crate::Sharing::publish).
///
/// Dropping it takes the id back: no new reader finds it. Readers that are there keep what they
/// hold, and show as holding a frozen point.
///
/// ```
/// use differential_dataflow::input::Input;
/// use holdgap_trace::{ArrangeSharedBySelf, Sharing};
///
/// let sharing = Sharing::new(&holdgap::Registry::new());
/// timely::execute_directly(move |worker| {
///     let names = worker.dataflow::<u64, _, _>(|scope| {
///         let (_, names) = scope.new_collection_from([7_u64, 8]);
///         sharing.publish("u7", &names.arrange_shared_by_self("names")).unwrap()
///     });
///     assert_eq!((names.id(), names.since().elements()), ("u7", &[0][..]));
///     assert_eq!(sharing.known(0), 1);
///     drop(names);
///     assert_eq!(sharing.known(0), 0);
/// });
/// ```
#[must_use = "dropping it takes the arrangement back"]
pub struct Published<Tr: SharableTrace> {
    pub(crate) trace: TraceAgent<SharedSpine<Tr>>,
    pub(crate) publication: Arc<Publication<Tr::Batch>>,
    pub(crate) place: Place,
}

impl<Tr: SharableTrace> Published<Tr> {
    /// Allows logical compaction up to `frontier`, as far as this handle goes.
    ///
    /// The trace applies the meet of what its handles allow and what readers hold. The empty
    /// frontier gives up the handle's say; it does not make the trace compact what no other handle
    /// allows.
    ///
    /// # Cost
    ///
    /// The publication's lock; if the frontier moved a published snapshot, and what the trace does.
    pub fn allow_compaction(&mut self, frontier: AntichainRef<'_, Tr::Time>) {
        self.trace.set_logical_compaction(frontier);
    }

    /// The trace handle that the publication keeps.
    pub fn trace(&self) -> &TraceAgent<SharedSpine<Tr>> {
        &self.trace
    }

    /// The frontier up to which the trace may have compacted.
    pub fn since(&self) -> Antichain<Tr::Time> {
        self.publication.since()
    }

    /// The times that the trace has sealed.
    pub fn upper(&self) -> Antichain<Tr::Time> {
        self.publication.upper()
    }

    /// The id that this publishes under.
    pub fn id(&self) -> &str {
        &self.place.id
    }
}

impl<Tr: SharableTrace> Drop for Published<Tr> {
    fn drop(&mut self) {
        if let Some(sharing) = self.place.sharing.upgrade() {
            sharing.unpublish(&self.place.id, self.place.worker, &self.publication);
        } else {
            self.publication.remove_id(&self.place.id);
        }
    }
}

impl<Tr: SharableTrace> std::fmt::Debug for Published<Tr> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Published").field("id", &self.place.id).finish_non_exhaustive()
    }
}

/// The standing hold of one id: what an importing runtime has applied of the compaction commands.
///
/// Logical only. The hold belongs to the id, not to this handle: it ends with the id, or when it
/// was allowed the empty frontier.
///
/// ```
/// use holdgap_trace::{KeyBatch, Sharing};
/// use timely::progress::Antichain;
///
/// // In the runtime that imports, before or after the arrangement is published.
/// let sharing = Sharing::new(&holdgap::Registry::new());
/// let hold = sharing.standing_hold::<KeyBatch<u64, u64, isize>>("u7", 0)?;
/// hold.allow_compaction(Antichain::from_elem(40).borrow());
/// assert_eq!(hold.frontier(), Antichain::from_elem(40));
/// # Ok::<(), holdgap_trace::ReadError>(())
/// ```
pub struct StandingHold<B: SharedBatch> {
    pub(crate) publication: Arc<Publication<B>>,
    pub(crate) hold: HoldId,
    pub(crate) place: Place,
}

impl<B: SharedBatch> StandingHold<B> {
    /// Joins `frontier` into the hold. Costs the publication's lock, and waking its trace if that
    /// lets it compact.
    pub fn allow_compaction(&self, frontier: AntichainRef<'_, B::Time>) {
        let to = Compaction { logical: frontier.to_owned(), physical: Antichain::new() };
        self.publication.advance(self.hold, &to);
        if frontier.is_empty() {
            self.place.evict(&self.publication);
        }
    }

    /// Where the hold stands: empty once it is released.
    pub fn frontier(&self) -> Antichain<B::Time> {
        self.publication.hold(self.hold).map(|at| at.logical).unwrap_or_default()
    }
}

impl<B: SharedBatch> std::fmt::Debug for StandingHold<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StandingHold").field("id", &self.place.id).finish_non_exhaustive()
    }
}
