//! A spine that can be shared: any trace, with its compaction decided together with its readers.
//!
//! [`SharedSpine`] stands between a trace and those that drive it. What its same-thread handles
//! request arrives here, and until somebody publishes it is passed on as it is. Once published, each
//! request is settled with the holds of the readers first (see `publication.rs`), and only what may
//! be applied reaches the trace.
//!
//! # When the writer closes
//!
//! Differential's writer seals its trace to the empty upper both when the input ended and when the
//! operator is dropped with input still to come. Only the first is a claim that the later times are
//! empty, and only in the first case does the operator, being scheduled, go on to exert the trace.
//! So an empty span up to the empty frontier freezes the point at once, but its upper is published
//! when the exertion follows; if none does, importers stay where the writer left them.

use std::cell::RefCell;
use std::sync::Arc;

use differential_dataflow::lattice::Lattice;
use differential_dataflow::logging::Logger;
use differential_dataflow::trace::implementations::spine_fueled::Spine;
use differential_dataflow::trace::{ExertionLogic, Span, Trace, TraceReader};
use timely::dataflow::operators::generic::OperatorInfo;
use timely::progress::frontier::AntichainRef;
use timely::progress::{Antichain, Timestamp};
use timely::scheduling::Activator;

use crate::batch::{KeyBatch, SharableTrace, SharedBatch, ValBatch};
use crate::chain::Chain;
use crate::holds::Compaction;
use crate::meter::Meter;
use crate::publication::Publication;
use crate::state::Settled;

/// A shared spine for `(key, val)` arrangements: differential's `ValSpine`, shareable.
pub type SharedValSpine<K, V, T, R> = SharedSpine<Spine<ValBatch<K, V, T, R>>>;
/// A shared spine for `key` arrangements: differential's `KeySpine`, shareable.
pub type SharedKeySpine<K, T, R> = SharedSpine<Spine<KeyBatch<K, T, R>>>;

/// A trace whose readers may live in other timely runtimes.
///
/// Unpublished it is the trace inside it, but for a clone of each span that arrives. Arrange into it
/// by [`ArrangeShared`](crate::ArrangeShared), publish it by [`Sharing::publish`](crate::Sharing::publish).
pub struct SharedSpine<Tr: SharableTrace> {
    inner: Tr,
    /// What the same-thread handles request.
    requested: Compaction<Tr::Time>,
    /// What the trace inside was told.
    applied: Compaction<Tr::Time>,
    /// The end of the last span that arrived, but for one that only closes (see `closing`).
    upper: Antichain<Tr::Time>,
    /// The end of input, until it is known whether it is one.
    closing: Option<Span<Tr::Time, Tr::Batch>>,
    closed: bool,
    meter: Arc<Meter>,
    /// Set by whoever publishes, through a shared reference: the handles' `RefCell` is borrowed.
    published: RefCell<Option<Arc<Publication<Tr::Batch>>>>,
    replacing: Replacing,
    /// Schedules the operator once more.
    activator: Option<Activator>,
}

/// When the published chain is to be replaced by what merging has made of it.
///
/// A chain that lags behind the trace's merges is finer than it need be, and as right. So a short
/// chain is replaced at each change, a long one after a number of changes in proportion to its
/// length, and any when the trace comes to rest: publishing costs the same at any length.
#[derive(Default)]
struct Replacing {
    /// The meter's count of merges when last looked at.
    merges: u64,
    /// Changes since the published chain was last replaced.
    stale: usize,
    /// Whether a span arrived since the trace was last exerted.
    busy: bool,
}

/// A chain is replaced after one change for each so many of its spans.
const SPANS_PER_CHANGE: usize = 16;

impl<Tr: SharableTrace> SharedSpine<Tr> {
    /// The counts over the batches of this trace.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    pub(crate) fn requested(&self) -> &Compaction<Tr::Time> {
        &self.requested
    }

    pub(crate) fn applied(&self) -> &Compaction<Tr::Time> {
        &self.applied
    }

    pub(crate) fn upper(&self) -> &Antichain<Tr::Time> {
        &self.upper
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn chain(&self) -> Chain<Tr::Batch> {
        Chain::default().rebuilt(|each| self.inner.map_spans(each))
    }

    pub(crate) fn publication(&self) -> Option<Arc<Publication<Tr::Batch>>> {
        self.published.borrow().clone()
    }

    pub(crate) fn publish_at(&self, publication: Arc<Publication<Tr::Batch>>) {
        *self.published.borrow_mut() = Some(publication);
    }

    /// Decides what may be applied, and tells the trace inside.
    fn settle(&mut self) {
        let settled = match &*self.published.borrow() {
            Some(publication) => publication.settle(&self.requested),
            None => self.unpublished(),
        };
        self.apply(settled);
    }

    /// What may be applied while nobody but the same-thread handles holds anything.
    fn unpublished(&self) -> Settled<Tr::Time> {
        let physical = self.requested.physical.meet(&self.upper);
        let logical = &self.requested.logical;
        Settled {
            logical: (*logical != self.applied.logical).then(|| logical.clone()),
            physical: (physical != self.applied.physical).then_some(physical),
        }
    }

    fn apply(&mut self, settled: Settled<Tr::Time>) {
        if let Some(logical) = settled.logical {
            self.inner.set_logical_compaction(logical.borrow());
            self.applied.logical = logical;
        }
        if let Some(physical) = settled.physical {
            self.inner.set_physical_compaction(physical.borrow());
            self.applied.physical = physical;
            self.replacing.stale += 1;
            self.replace(false);
        }
    }

    /// Replaces the published chain, if it is due.
    fn replace(&mut self, at_rest: bool) {
        let merges = self.meter.merges();
        if merges != self.replacing.merges {
            self.replacing.merges = merges;
            self.replacing.stale += 1;
        }
        let stale = self.replacing.stale;
        if stale == 0 {
            return;
        }
        let due = |spans| at_rest || stale * SPANS_PER_CHANGE >= spans;
        let replaced = match &*self.published.borrow() {
            Some(publication) => publication.replace(due, |each| self.inner.map_spans(each)),
            None => true,
        };
        if replaced {
            self.replacing.stale = 0;
        }
    }

    fn append(&mut self, span: Span<Tr::Time, Tr::Batch>) {
        self.upper.clone_from(span.upper());
        let settled = match &*self.published.borrow() {
            Some(publication) => publication.append(span, &self.requested),
            None => self.unpublished(),
        };
        self.apply(settled);
    }
}

impl<Tr: SharableTrace> TraceReader for SharedSpine<Tr> {
    type Time = Tr::Time;
    type Batch = Tr::Batch;

    fn spans_through(
        &mut self,
        upper: AntichainRef<'_, Tr::Time>,
    ) -> Option<Vec<Span<Tr::Time, Tr::Batch>>> {
        self.inner.spans_through(upper)
    }

    fn set_logical_compaction(&mut self, frontier: AntichainRef<'_, Tr::Time>) {
        self.requested.logical = frontier.to_owned();
        self.settle();
    }

    fn get_logical_compaction(&mut self) -> AntichainRef<'_, Tr::Time> {
        self.inner.get_logical_compaction()
    }

    fn set_physical_compaction(&mut self, frontier: AntichainRef<'_, Tr::Time>) {
        self.requested.physical = frontier.to_owned();
        self.settle();
    }

    fn get_physical_compaction(&mut self) -> AntichainRef<'_, Tr::Time> {
        self.inner.get_physical_compaction()
    }

    fn map_spans<F: FnMut(&Span<Tr::Time, Tr::Batch>)>(&self, f: F) {
        self.inner.map_spans(f);
    }
}

impl<Tr: SharableTrace> Trace for SharedSpine<Tr> {
    fn new(info: OperatorInfo, logging: Option<Logger>, activator: Option<Activator>) -> Self {
        SharedSpine {
            inner: Tr::new(info, logging, activator.clone()),
            activator,
            requested: Compaction::minimum(),
            applied: Compaction::minimum(),
            upper: Antichain::from_elem(Tr::Time::minimum()),
            closing: None,
            closed: false,
            meter: Arc::default(),
            published: RefCell::new(None),
            replacing: Replacing::default(),
        }
    }

    fn exert(&mut self) {
        self.inner.exert();
        if let Some(span) = self.closing.take() {
            self.append(span);
        }
        let moved = self.published.borrow().as_ref().is_some_and(|p| p.has_moved());
        if moved {
            self.settle();
        }
        let at_rest = !std::mem::take(&mut self.replacing.busy);
        self.replace(at_rest);
        if self.replacing.stale > 0
            && let Some(activator) = &self.activator
        {
            // The published chain keeps what was merged away alive until it is replaced, which the
            // next exertion does if nothing arrives meanwhile.
            activator.activate();
        }
    }

    fn set_exert_logic(&mut self, logic: ExertionLogic) {
        self.inner.set_exert_logic(logic);
    }

    fn insert(&mut self, span: Span<Tr::Time, Tr::Batch>) {
        if let Some(batch) = &span.inner {
            batch.attach(&self.meter);
        }
        self.replacing.busy = true;
        self.inner.insert(span.clone());
        if !span.upper().is_empty() {
            return self.append(span);
        }
        self.closed = true;
        if let Some(publication) = &*self.published.borrow() {
            publication.close();
        }
        // See the head of this file.
        if span.has_updates() { self.append(span) } else { self.closing = Some(span) }
    }

    fn close(&mut self) {
        if !self.upper.is_empty() && self.closing.is_none() {
            self.insert(Span::empty(self.upper.clone(), Antichain::new()));
        }
    }
}

impl<Tr: SharableTrace> Drop for SharedSpine<Tr> {
    fn drop(&mut self) {
        self.meter.disowned();
        if let Some(publication) = self.published.borrow_mut().take() {
            publication.end(&self.requested);
        }
    }
}
