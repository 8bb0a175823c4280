//! What a publication's lock guards, and what may be done with it under the lock.
//!
//! The protocol is in `publication.rs`: its entries are the critical sections, these are their steps.

use std::sync::Arc;

use differential_dataflow::lattice::Lattice;
use holdgap::{FrontierPair, Frontiers, HoldKind, Holders, Point};
use timely::progress::{Antichain, Timestamp};
use timely::scheduling::SyncActivator;

use crate::batch::SharedBatch;
use crate::chain::Chain;
use crate::holds::{Compaction, Hold, HoldId, Holds};
use crate::importers::Importers;
use crate::meter::Meter;
use crate::publication::Publication;
use crate::seals::Watches;

/// What a publication is at the moment.
pub(crate) enum Phase<B: SharedBatch> {
    /// Made by a reader; no trace yet.
    Placeholder,
    /// A trace applies what is settled here.
    Live {
        /// Wakes the operator that maintains the trace.
        waker: Arc<SyncActivator>,
        peers: usize,
    },
    /// The trace is gone. What its readers hold stays readable.
    Ended { peers: usize },
    /// What was here has moved there.
    Forwarded(Arc<Publication<B>>),
}

/// What both sides must agree on.
pub(crate) struct State<B: SharedBatch> {
    pub(crate) phase: Phase<B>,
    /// The physical part is not yet clamped to the upper.
    pub(crate) requested: Compaction<B::Time>,
    pub(crate) applied: Compaction<B::Time>,
    pub(crate) upper: Antichain<B::Time>,
    pub(crate) chain: Chain<B>,
    pub(crate) holds: Holds<B::Time>,
    pub(crate) importers: Importers<B>,
    pub(crate) watches: Watches,
    /// Whether the writer has closed.
    pub(crate) closed: bool,
    /// What the gauges see. Gone when nothing is left to see.
    pub(crate) point: Option<Point<B::Time>>,
    /// What the trace's batches are counted by, once there is a trace.
    pub(crate) meter: Option<Arc<Meter>>,
    /// Who stands at the applied frontier while that trails the requested one: what was published.
    pub(crate) binding: Arc<Holders>,
    /// What that was read off: the count of changes of the holds, and the applied frontier.
    pub(crate) bound: (u64, Antichain<B::Time>),
    /// Whether a waker was fired and the writer has not looked since.
    pub(crate) woken: bool,
}

/// What the spine must tell the trace inside it, because it changed.
#[derive(Debug)]
pub(crate) struct Settled<T> {
    pub(crate) logical: Option<Antichain<T>>,
    pub(crate) physical: Option<Antichain<T>>,
}

/// What a critical section leaves to be dropped outside of it.
pub(crate) struct Swept<B: SharedBatch> {
    _chain: Chain<B>,
    _point: Option<Point<B::Time>>,
}

impl<B: SharedBatch> State<B> {
    /// Where a reader waits for a trace.
    pub(crate) fn placeholder() -> Self {
        let minimum = Compaction::minimum();
        State {
            phase: Phase::Placeholder,
            requested: minimum.clone(),
            applied: minimum,
            upper: Antichain::from_elem(B::Time::minimum()),
            chain: Chain::default(),
            holds: Holds::new(),
            importers: Importers::default(),
            watches: Watches::default(),
            closed: false,
            point: None,
            meter: None,
            binding: Arc::default(),
            bound: (0, Antichain::new()),
            woken: false,
        }
    }

    /// What may be applied: the meet of what is requested and what is held, and never behind what
    /// was applied before.
    pub(crate) fn target(&self) -> Compaction<B::Time> {
        self.clamped().meet_from(&self.holds.meet(), &self.applied)
    }

    /// What is requested, with the physical part at most at the upper: merging beyond what was
    /// published would take the next reader's cut away before it arrives.
    pub(crate) fn clamped(&self) -> Compaction<B::Time> {
        let logical = self.requested.logical.clone();
        Compaction { logical, physical: self.requested.physical.meet(&self.upper) }
    }

    pub(crate) fn settle(&mut self) -> Settled<B::Time> {
        self.woken = false;
        let target = self.target();
        let before = std::mem::replace(&mut self.applied, target);
        self.publish();
        let changed =
            |before: &Antichain<_>, now: &Antichain<_>| (before != now).then(|| now.clone());
        Settled {
            logical: changed(&before.logical, &self.applied.logical),
            physical: changed(&before.physical, &self.applied.physical),
        }
    }

    /// Has the gauges show the trace as `point`.
    pub(crate) fn show_as(&mut self, mut point: Point<B::Time>) {
        if let Some(meter) = &self.meter {
            point.count_pins(Arc::<Meter>::clone(meter));
        }
        self.point = Some(point);
    }

    /// Shows who binds, if a hold that was at `from`, or came to stand there, is of those.
    pub(crate) fn rebind(&mut self, from: &Antichain<B::Time>) {
        let applied = &self.applied.logical;
        if self.is_held() && from.iter().any(|time| applied.elements().contains(time)) {
            self.publish();
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.requested.logical != self.applied.logical
    }

    /// Who stands at the applied frontier, if that trails the requested one.
    pub(crate) fn bind(&mut self) {
        let held = self.is_held();
        if !held && self.binding.is_empty() {
            return;
        }
        let (changes, applied) = &self.bound;
        if held && *changes == self.holds.changes() && *applied == self.applied.logical {
            return;
        }
        let binding =
            if held { self.holds.binding(&self.applied.logical) } else { Holders::default() };
        if held {
            self.bound = (self.holds.changes(), self.applied.logical.clone());
        } else {
            // To be read off anew when it is held again.
            self.bound.1.clear();
        }
        if binding != *self.binding {
            self.binding = Arc::new(binding);
        }
    }

    /// Shows what waits in queues, and what is pinned.
    pub(crate) fn show_queued(&mut self) {
        if let Some(point) = &mut self.point {
            point.set_queued(self.importers.queued());
        }
    }

    /// Shows the gauges where the trace stands.
    pub(crate) fn publish(&mut self) {
        self.bind();
        let requested = self.clamped();
        let Some(point) = &mut self.point else { return };
        let Compaction { logical, physical } = self.applied.clone();
        let logical = FrontierPair { requested: requested.logical, applied: logical };
        let physical = FrontierPair { requested: requested.physical, applied: physical };
        let upper = Some(&self.upper);
        point.publish(&Frontiers {
            logical: &logical,
            physical: Some(&physical),
            upper,
            holders: Some(&self.binding),
            queued: Some(self.importers.queued()),
        });
        if self.closed {
            point.freeze();
        }
    }

    /// Where those stand that waited for the trace: not behind what it has compacted, and able to
    /// cut wherever its chain ends.
    pub(crate) fn floor(&self) -> Compaction<B::Time> {
        let logical = self.applied.logical.clone();
        Compaction { logical, physical: self.upper.clone() }
    }

    pub(crate) fn let_go(&mut self, id: HoldId) -> (Option<Hold<B::Time>>, Option<Swept<B>>) {
        let hold = self.holds.remove(id);
        if let Some(hold) = &hold {
            if matches!(self.phase, Phase::Ended { .. }) {
                // No trace is left to tell: what the rest allows is applied at once.
                self.settle();
            } else {
                self.rebind(&hold.at.logical);
            }
        }
        (hold, self.swept())
    }

    /// What nobody needs any more, if that is so: after the trace ended its chain, and after it
    /// ended or lost its ids what the gauges show of it.
    pub(crate) fn swept(&mut self) -> Option<Swept<B>> {
        let readers = self.holds.iter().any(|(_, hold)| hold.kind != HoldKind::Standing);
        if readers {
            return None;
        }
        let ended = matches!(self.phase, Phase::Ended { .. });
        let unnamed = self.point.as_ref().is_some_and(|point| point.ids().is_empty());
        let chain = if ended { std::mem::take(&mut self.chain) } else { Chain::default() };
        let point = if ended || unnamed { self.point.take() } else { None };
        Some(Swept { _chain: chain, _point: point })
    }
}
