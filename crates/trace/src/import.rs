//! Imports: a shared arrangement as an ordinary `Arranged` in another runtime's dataflow.
//!
//! An import has two ends that must tell one story: a stream of spans, and a trace that answers for
//! all spans that the stream has delivered. Both move in one place, the import operator: it drains
//! the queue and takes the chain and the upper that the queue leads up to in one critical section
//! (see `publication.rs`), so that the stream's frontier is the trace's upper at every moment that
//! an operator can look. A join counts each match once because of it.
//!
//! The trace is shared by everyone in the dataflow that holds a handle of it, the import operator
//! among them. Their holds are accumulated here, as differential's own `TraceAgent` does, and only
//! the meet of them crosses threads, when it moves. When the last handle goes, the hold goes.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::arrange::Arranged;
use differential_dataflow::trace::wrappers::frontier::BatchFrontier;
use differential_dataflow::trace::{Span, TraceReader};
use holdgap::HoldKind;
use timely::PartialOrder;
use timely::dataflow::Scope;
use timely::dataflow::operators::CapabilitySet;
use timely::dataflow::operators::generic::source;
use timely::progress::frontier::{AntichainRef, MutableAntichain};
use timely::progress::{Antichain, Timestamp};

use crate::batch::SharedBatch;
use crate::chain::Chain;
use crate::holds::{Compaction, HoldId};
use crate::importers::Drained;
use crate::publication::Publication;
use crate::reader::Reader;

/// A span as an import presents it: times advanced to its `as_of`, those from `until` on left out.
type ImportSpan<B> = Span<<B as SharedBatch>::Time, BatchFrontier<B, <B as SharedBatch>::Time>>;

/// The trace of an import, and a hold on it: what `join_core`, `reduce` and the like read.
pub struct ImportTrace<B: SharedBatch> {
    shared: Rc<RefCell<ImportShared<B>>>,
    at: Compaction<B::Time>,
}

/// What the handles of one import share.
struct ImportShared<B: SharedBatch> {
    /// The hold behind all of them. A snapshot has none.
    reader: Option<Reader<B>>,
    logical: MutableAntichain<B::Time>,
    physical: MutableAntichain<B::Time>,
    chain: Chain<B>,
    since: Antichain<B::Time>,
    until: Antichain<B::Time>,
}

impl<B: SharedBatch> ImportShared<B> {
    /// Replaces one handle's hold by another, and passes the meet on if it moved.
    fn adjust(&mut self, from: Option<&Compaction<B::Time>>, to: Option<&Compaction<B::Time>>) {
        let ImportShared { logical, physical, .. } = self;
        let mut moved = false;
        for (at, by) in [(to, 1), (from, -1)] {
            let Some(at) = at else { continue };
            let change = |time: &B::Time| (time.clone(), by);
            moved |= logical.update_iter(at.logical.iter().map(change)).next().is_some();
            moved |= physical.update_iter(at.physical.iter().map(change)).next().is_some();
        }
        if let (true, Some(reader)) = (moved, &self.reader) {
            let logical = self.logical.frontier().to_owned();
            reader.advance(&Compaction { logical, physical: self.physical.frontier().to_owned() });
        }
    }

    fn present(&self, span: &Span<B::Time, B>) -> ImportSpan<B> {
        let (since, until) = (self.since.borrow(), self.until.borrow());
        let batch = span.inner.clone();
        Span::new(
            span.desc.clone(),
            batch.map(|batch| BatchFrontier::make_from(batch, since, until)),
        )
    }
}

impl<B: SharedBatch> ImportTrace<B> {
    fn new(
        reader: Option<Reader<B>>,
        at: Compaction<B::Time>,
        chain: Chain<B>,
        until: Antichain<B::Time>,
    ) -> Self {
        let (logical, physical) = (MutableAntichain::new(), MutableAntichain::new());
        let since = at.logical.clone();
        let mut shared = ImportShared { reader, logical, physical, chain, since, until };
        shared.adjust(None, Some(&at));
        ImportTrace { shared: Rc::new(RefCell::new(shared)), at }
    }

    fn advance(&mut self, to: &Compaction<B::Time>) {
        let next = self.at.join(to);
        if next != self.at {
            self.shared.borrow_mut().adjust(Some(&self.at), Some(&next));
            self.at = next;
        }
    }
}

impl<B: SharedBatch> Clone for ImportTrace<B> {
    fn clone(&self) -> Self {
        self.shared.borrow_mut().adjust(None, Some(&self.at));
        ImportTrace { shared: Rc::clone(&self.shared), at: self.at.clone() }
    }
}

impl<B: SharedBatch> Drop for ImportTrace<B> {
    fn drop(&mut self) {
        self.shared.borrow_mut().adjust(Some(&self.at), None);
    }
}

impl<B: SharedBatch> TraceReader for ImportTrace<B> {
    type Time = B::Time;
    type Batch = BatchFrontier<B, B::Time>;

    fn spans_through(
        &mut self,
        upper: AntichainRef<'_, B::Time>,
    ) -> Option<Vec<Span<Self::Time, Self::Batch>>> {
        if upper.less_equal(&B::Time::minimum()) {
            return Some(Vec::new());
        }
        let shared = self.shared.borrow();
        let mut spans = Vec::new();
        for span in shared.chain.iter().filter(|span| span.has_updates()) {
            if PartialOrder::less_equal(&span.upper().borrow(), &upper) {
                spans.push(shared.present(span));
            } else if upper != span.lower().borrow()
                && PartialOrder::less_equal(&span.lower().borrow(), &upper)
            {
                return None;
            }
        }
        Some(spans)
    }

    fn set_logical_compaction(&mut self, frontier: AntichainRef<'_, B::Time>) {
        let physical = self.at.physical.clone();
        self.advance(&Compaction { logical: frontier.to_owned(), physical });
    }

    fn get_logical_compaction(&mut self) -> AntichainRef<'_, B::Time> {
        self.at.logical.borrow()
    }

    fn set_physical_compaction(&mut self, frontier: AntichainRef<'_, B::Time>) {
        let logical = self.at.logical.clone();
        self.advance(&Compaction { logical, physical: frontier.to_owned() });
    }

    fn get_physical_compaction(&mut self) -> AntichainRef<'_, B::Time> {
        self.at.physical.borrow()
    }

    fn map_spans<F: FnMut(&Span<Self::Time, Self::Batch>)>(&self, mut f: F) {
        let shared = self.shared.borrow();
        shared.chain.iter().for_each(|span| f(&shared.present(span)));
    }
}

/// The trace has not sealed the times that a snapshot was asked for. Gives the reader back.
pub struct NotSealed<B: SharedBatch> {
    /// The reader that was to be imported, as it was.
    pub reader: Reader<B>,
    /// The times that the trace has sealed so far.
    pub upper: Antichain<B::Time>,
}

impl<B: SharedBatch> std::fmt::Debug for NotSealed<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NotSealed").field("upper", &self.upper).finish_non_exhaustive()
    }
}

impl<B: SharedBatch> std::fmt::Display for NotSealed<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let upper = self.upper.elements();
        write!(f, "a snapshot needs sealed times, and the trace is sealed up to {upper:?} only")
    }
}

impl<B: SharedBatch> std::error::Error for NotSealed<B> {}

impl<B: SharedBatch> Reader<B> {
    /// Imports the arrangement into `scope`, from where this reader holds it up to `until`.
    ///
    /// Updates before the reader's logical frontier appear at it; those at or beyond `until` do not
    /// appear, and the import completes once the trace has sealed `until` or has ended. The empty
    /// frontier for `until` imports all that is to come.
    ///
    /// The hold lives as long as the dataflow needs it: logically it follows what the import's
    /// consumers allow, physically what they have acknowledged. It shows as an import,
    /// by the label that the reader was given, or else by `name` and the importing runtime's role.
    ///
    /// # Panics
    ///
    /// If `scope` belongs to a worker with another index than the reader's, or to a runtime with
    /// another number of workers than the publishing one: a worker reads its own shard.
    pub fn import<'scope>(
        self,
        scope: Scope<'scope, B::Time>,
        name: &str,
        until: Antichain<B::Time>,
    ) -> Arranged<'scope, ImportTrace<B>> {
        self.assert_shard(scope.index(), scope.peers());
        let (publication, hold, id) =
            (self.publication().clone(), self.hold_id(), self.id().clone());
        publication.relabel(hold, HoldKind::Import, self.import_label(name));
        let at =
            Compaction { logical: self.logical_compaction(), physical: self.physical_compaction() };
        let (worker, peers) = (scope.index(), scope.peers());
        let mut trace = None;
        let stream = source(scope, name, |capability, info| {
            let activator = scope.worker().sync_activator_for(info.address.to_vec());
            // One critical section: what the trace shows from the start is what is queued.
            let chain = publication.subscribe(hold, activator);
            let imported = ImportTrace::new(Some(self), at, chain, until);
            let own = imported.clone();
            trace = Some(imported);
            let subscription = Subscription { publication, hold };
            let capabilities = CapabilitySet::from_elem(capability);
            let mut import = Some(Import { subscription, trace: own, capabilities });
            let mut checked = false;
            move |output| {
                let Some(running) = &mut import else { return };
                let Some(drained) = running.subscription.drain() else { return };
                if !checked {
                    assert_peers(&id, worker, peers, running.subscription.publication.peers());
                    checked = true;
                }
                let complete = {
                    let spans = running.take_in(&drained);
                    let mut session = output.session(&running.capabilities);
                    spans.into_iter().for_each(|span| session.give(span));
                    drop(session);
                    running.advance(&drained)
                };
                if complete {
                    import = None;
                }
            }
        });
        let trace = trace.expect("a source is constructed at once");
        Arranged { stream, trace }
    }

    /// Imports what the trace holds now into `scope`, up to `until`, and lets the trace go.
    ///
    /// For times already sealed: the import keeps the chain of batches and no hold, so it never
    /// holds compaction back. The price is memory: batches that the trace replaces meanwhile stay
    /// pinned until the dataflow ends.
    ///
    /// # Errors
    ///
    /// [`NotSealed`], with the reader, if the trace has not sealed `until` yet.
    ///
    /// # Panics
    ///
    /// As [`import`](Self::import).
    pub fn import_snapshot<'scope>(
        self,
        scope: Scope<'scope, B::Time>,
        name: &str,
        until: Antichain<B::Time>,
    ) -> Result<Arranged<'scope, ImportTrace<B>>, NotSealed<B>> {
        self.assert_shard(scope.index(), scope.peers());
        let (chain, upper) = self.publication().chain();
        if !PartialOrder::less_equal(&until, &upper) {
            return Err(NotSealed { reader: self, upper });
        }
        let at = Compaction { logical: self.logical_compaction(), physical: upper };
        drop(self);
        let since = at.logical.clone();
        let trace = ImportTrace::new(None, at, chain, until);
        let own = trace.clone();
        let stream = source(scope, name, move |capability, _info| {
            let mut pending = Some((own, CapabilitySet::from_elem(capability)));
            move |output| {
                let Some((trace, mut capabilities)) = pending.take() else { return };
                capabilities.downgrade(base(&since));
                let shared = trace.shared.borrow();
                let mut session = output.session(&capabilities);
                for span in shared.chain.iter().filter(|span| span.has_updates()) {
                    session.give(shared.present(span));
                }
            }
        });
        Ok(Arranged { stream, trace })
    }

    fn assert_shard(&self, worker: usize, peers: usize) {
        assert_eq!(
            worker,
            self.worker(),
            "worker {worker} cannot import the shard of worker {} of {:?}",
            self.worker(),
            self.id(),
        );
        assert_peers(self.id(), worker, peers, self.publication().peers());
    }
}

fn assert_peers(id: &str, worker: usize, peers: usize, published: Option<usize>) {
    assert!(
        published.is_none_or(|published| published == peers),
        "worker {worker} of {peers} cannot import {id:?}, which {} workers publish",
        published.unwrap_or_default(),
    );
}

/// A lower bound of every time after it was advanced by `since`: the meet of its elements.
///
/// A time advanced by several incomparable elements need not be beyond any one of them.
fn base<T: Timestamp + Lattice>(since: &Antichain<T>) -> Antichain<T> {
    since.iter().cloned().reduce(|one, other| one.meet(&other)).into_iter().collect()
}

/// An import's place among those that are queued to. It goes with the operator, however that goes:
/// nobody would drain the queue any more.
struct Subscription<B: SharedBatch> {
    publication: Arc<Publication<B>>,
    hold: HoldId,
}

impl<B: SharedBatch> Subscription<B> {
    fn drain(&self) -> Option<Drained<B>> {
        self.publication.drain(self.hold)
    }
}

impl<B: SharedBatch> Drop for Subscription<B> {
    fn drop(&mut self) {
        self.publication.unsubscribe(self.hold);
    }
}

/// What the import operator holds until it completes.
struct Import<B: SharedBatch> {
    subscription: Subscription<B>,
    trace: ImportTrace<B>,
    capabilities: CapabilitySet<B::Time>,
}

impl<B: SharedBatch> Import<B> {
    /// Moves the trace to where the queue leads, and returns the spans to deliver, to be sent at the
    /// capabilities held: each update is at or beyond the frontier before.
    ///
    /// Where all that is sent is sealed beyond the base, the capabilities move there first: nothing
    /// downstream need wait for times before it. Where the trace has not come that far, they stay
    /// at the frontier before, as differential's own imports do. An operator that keeps what it is
    /// sent until its frontier has passed it, `reduce` for one, takes a capability that is in advance
    /// of that frontier for a promise that nothing is to be done, and would never look again.
    fn take_in(&mut self, drained: &Drained<B>) -> Vec<ImportSpan<B>> {
        let mut shared = self.trace.shared.borrow_mut();
        let replaced = std::mem::replace(&mut shared.chain, drained.chain.clone());
        shared.since.clone_from(&drained.since);
        let (base, upper) = (base(&drained.since), &drained.upper);
        let held: Antichain<_> = self.capabilities.iter().map(|c| c.time().clone()).collect();
        let target = held.join(&base);
        let beyond = upper.iter().all(|time| base.less_equal(time));
        if beyond && (upper.is_empty() || target.iter().any(|time| !upper.less_equal(time))) {
            self.capabilities.downgrade(target);
        }
        let spans = drained.spans.iter().map(|span| shared.present(span)).collect();
        drop(shared);
        drop(replaced);
        spans
    }

    /// Moves capabilities and hold to the new upper. Returns whether the import is complete.
    fn advance(&mut self, drained: &Drained<B>) -> bool {
        // Each element of the upper is beyond the base if a capability is: see `take_in`.
        let Drained { upper, since, .. } = drained;
        let complete = PartialOrder::less_equal(&self.trace.shared.borrow().until, upper);
        if complete || upper.is_empty() {
            return true;
        }
        self.capabilities.downgrade(upper.iter());
        let logical = upper.join(since);
        self.trace.advance(&Compaction { logical, physical: upper.clone() });
        false
    }
}
