//! The publication point: where one trace and its readers, on other threads, meet.
//!
//! # The protocol
//!
//! One mutex guards all that both sides must agree on: the chain of spans, its upper, the holds, the
//! requested and the applied frontiers, and what is queued to importers. Each entry below is one
//! critical section.
//!
//! *The writer* is the shared spine, on its worker's thread. [`settle`](Publication::settle) reads
//! the holds and publishes what may be applied, **before** the spine tells the trace inside it; so
//! whoever is admitted afterwards is admitted against what the trace is about to do, not against
//! what it has done. [`append`](Publication::append) puts a new span into the chain and into every
//! importer's queue at once: an importer is seeded with a span or has it delivered, never both and
//! never neither. [`replace`](Publication::replace) swaps in the chain as it is after merging.
//!
//! *A reader* is admitted by [`register`](Publication::register), which checks against the applied
//! frontier and registers in one go. Its hold only ever advances. When a move changes what may be
//! applied, the trace's operator is woken, once until it has looked.
//!
//! *Wakers fire after the lock is released*, so that whoever is woken sees what woke it and never
//! waits for the thread that woke it. What is dropped in a critical section may be large (a chain's
//! last reference to a batch), so it is handed out and dropped outside.
//!
//! # Lives
//!
//! A reader may come before the trace: it makes a *placeholder*, which stands at the minimum and is
//! adopted in place. When one trace is published under a second id that has a placeholder, what
//! waits there moves over and the placeholder *forwards* to the trace's own publication. The writer
//! may *close* (frozen, its data stays), and its trace may *end* (nothing applies holds any more;
//! the chain lives as long as somebody holds it).

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use differential_dataflow::trace::Span;
use holdgap::{Clock, HoldKind, Point};
use timely::PartialOrder;
use timely::progress::Antichain;
use timely::scheduling::SyncActivator;

use crate::batch::SharedBatch;
use crate::chain::Chain;
use crate::holds::{Compaction, Hold, HoldId};
use crate::importers::Drained;
use crate::meter::Meter;
use crate::seals::SealWatch;
use crate::state::{Phase, Settled, State};
use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// Where one trace and its readers meet.
pub(crate) struct Publication<B: SharedBatch> {
    /// The order in which two of them are locked.
    number: u64,
    /// Each critical section leaves it whole at each step that can panic (which is none but a
    /// timestamp's own comparison), so a panic elsewhere does not take the writer along.
    state: Mutex<State<B>>,
    /// Set while a hold has moved and the writer has not looked: what the spine checks each time it
    /// is scheduled, without the lock.
    ///
    /// Released under the lock by whoever moved a hold, acquired by the spine, which then takes the
    /// lock; the lock is what orders the holds themselves.
    moved: AtomicBool,
    /// What the ages of holds are measured on.
    clock: Clock,
}

/// Why a reader is not admitted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal<T> {
    /// The trace may already have compacted past the time.
    Compacted { since: Antichain<T>, requested: Antichain<T> },
    /// The trace has ended and what it held is gone.
    Ended,
}

/// What a trace brings along when it is first published.
pub(crate) struct Attachment<B: SharedBatch> {
    pub(crate) requested: Compaction<B::Time>,
    pub(crate) applied: Compaction<B::Time>,
    pub(crate) upper: Antichain<B::Time>,
    pub(crate) chain: Chain<B>,
    pub(crate) closed: bool,
    pub(crate) waker: Arc<SyncActivator>,
    pub(crate) peers: usize,
    pub(crate) meter: Arc<Meter>,
    pub(crate) point: Point<B::Time>,
}

fn wake(waker: Option<Arc<SyncActivator>>) {
    if let Some(waker) = waker {
        // An error says that the worker is gone, and nobody is left to wake.
        let _ = waker.activate();
    }
}

/// Wakes importers and signals watchers, once the lock is released.
fn fire(woken: Vec<Arc<SyncActivator>>, signals: &[SealWatch]) {
    woken.into_iter().for_each(|activator| wake(Some(activator)));
    signals.iter().for_each(SealWatch::fire);
}

impl<B: SharedBatch> Publication<B> {
    pub(crate) fn placeholder(clock: Clock) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let state = State::placeholder();
        // Relaxed: uniqueness is all that is asked of it.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (state, moved) = (Mutex::new(state), AtomicBool::new(false));
        Arc::new(Publication { number, state, moved, clock })
    }

    /// One critical section, here or where this has moved to.
    pub(crate) fn with<R>(&self, section: impl FnOnce(&Self, &mut State<B>) -> R) -> R {
        let mut state = lock(&self.state);
        if let Phase::Forwarded(target) = &state.phase {
            let target = Arc::clone(target);
            drop(state);
            return target.with(section);
        }
        section(self, &mut state)
    }

    // What readers do.

    /// Admits a holder at `as_of`, or at what is applied, and says where its hold begins.
    pub(crate) fn register(
        &self,
        id: HoldId,
        as_of: Option<&Antichain<B::Time>>,
        label: Arc<str>,
    ) -> Result<Compaction<B::Time>, Refusal<B::Time>> {
        let registered = self.clock.now();
        self.with(|_, state| {
            if matches!(state.phase, Phase::Ended { .. }) && state.holds.is_empty() {
                return Err(Refusal::Ended);
            }
            let since = &state.applied.logical;
            let logical = as_of.unwrap_or(since).clone();
            if since.is_empty() || !PartialOrder::less_equal(since, &logical) {
                let requested = state.requested.logical.clone();
                return Err(Refusal::Compacted { since: since.clone(), requested });
            }
            // Physically at the chain's coverage: every later cut that the reader can ask for is
            // at the end of a span that it was given.
            let at = Compaction { logical, physical: state.upper.clone() };
            let (kind, hold_at) = (HoldKind::Reader, at.clone());
            state.holds.insert(id, Hold { kind, label, registered, at: hold_at });
            state.rebind(&at.logical);
            Ok(at)
        })
    }

    /// Adds a hold where another one stands.
    pub(crate) fn register_beside(&self, id: HoldId, source: HoldId) {
        let registered = self.clock.now();
        self.with(|_, state| {
            let Some(hold) = state.holds.get(source).cloned() else { return };
            let at = hold.at.logical.clone();
            state.holds.insert(id, Hold { registered, ..hold });
            state.rebind(&at);
        });
    }

    /// The standing hold under `id`: logical only, at what is applied.
    pub(crate) fn register_standing(&self, id: HoldId, label: Arc<str>) {
        let registered = self.clock.now();
        self.with(|_, state| {
            let logical = state.applied.logical.clone();
            let at = Compaction { logical: logical.clone(), physical: Antichain::new() };
            let kind = HoldKind::Standing;
            state.holds.insert(id, Hold { kind, label, registered, at });
            state.rebind(&logical);
        });
    }

    /// Where a hold stands; `None` once it is released.
    pub(crate) fn hold(&self, id: HoldId) -> Option<Compaction<B::Time>> {
        self.with(|_, state| state.holds.get(id).map(|hold| hold.at.clone()))
    }

    pub(crate) fn relabel(&self, id: HoldId, kind: HoldKind, label: Arc<str>) {
        self.with(|_, state| {
            let Some(at) = state.holds.get(id).map(|hold| hold.at.logical.clone()) else { return };
            state.holds.relabel(id, kind, label);
            state.rebind(&at);
        });
    }

    /// Advances a hold, and wakes the trace if that lets it compact. A hold that is empty on both
    /// axes is released.
    pub(crate) fn advance(&self, id: HoldId, to: &Compaction<B::Time>) {
        let (waker, dropped) = self.with(|publication, state| {
            let Some(from) = state.holds.get(id).map(|hold| hold.at.logical.clone()) else {
                return (None, None);
            };
            if !state.holds.advance(id, to) {
                return (None, None);
            }
            state.rebind(&from);
            let at = state.holds.get(id).map(|hold| &hold.at);
            let released = at.is_some_and(|at| at.logical.is_empty() && at.physical.is_empty());
            let dropped = released.then(|| state.let_go(id));
            (publication.moved(state), dropped)
        });
        wake(waker);
        drop(dropped);
    }

    /// Releases a hold, and wakes the trace if that lets it compact.
    pub(crate) fn release(&self, id: HoldId) {
        let (waker, dropped) = self.with(|publication, state| {
            let dropped = state.let_go(id);
            (publication.moved(state), dropped)
        });
        wake(waker);
        drop(dropped);
    }

    /// Called under the lock after a hold moved: whom to wake, if anyone.
    fn moved(&self, state: &mut State<B>) -> Option<Arc<SyncActivator>> {
        let Phase::Live { waker, .. } = &state.phase else { return None };
        if state.woken || state.target() == state.applied {
            return None;
        }
        state.woken = true;
        // Pairs with the acquire load in `has_moved`.
        self.moved.store(true, Ordering::Release);
        Some(Arc::clone(waker))
    }

    /// The spans, and the upper that they reach.
    pub(crate) fn chain(&self) -> (Chain<B>, Antichain<B::Time>) {
        self.with(|_, state| (state.chain.clone(), state.upper.clone()))
    }

    pub(crate) fn upper(&self) -> Antichain<B::Time> {
        self.with(|_, state| state.upper.clone())
    }

    pub(crate) fn since(&self) -> Antichain<B::Time> {
        self.with(|_, state| state.applied.logical.clone())
    }

    /// How many workers the publishing runtime has, once a trace is published.
    pub(crate) fn peers(&self) -> Option<usize> {
        self.with(|_, state| match state.phase {
            Phase::Live { peers, .. } | Phase::Ended { peers } => Some(peers),
            Phase::Placeholder | Phase::Forwarded(_) => None,
        })
    }

    /// Whether a reader made this, no trace has come, and nobody waits for one any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        let state = lock(&self.state);
        matches!(state.phase, Phase::Placeholder)
            && state.holds.is_empty()
            && state.watches.is_empty()
    }

    pub(crate) fn is_placeholder(&self) -> bool {
        matches!(lock(&self.state).phase, Phase::Placeholder)
    }

    // What importers do.

    /// Queues all spans, and from here on every span that arrives, for the import behind `id`.
    /// Returns the spans that are queued.
    pub(crate) fn subscribe(&self, id: HoldId, activator: SyncActivator) -> Chain<B> {
        self.with(|_, state| {
            let since = state.holds.get(id).map(|hold| hold.at.logical.clone());
            let since = since.unwrap_or_else(|| state.applied.logical.clone());
            state.importers.subscribe(id, since, activator, &state.chain);
            state.show_queued();
            state.chain.clone()
        })
    }

    /// Takes what is queued, together with the chain and the upper that it leads up to.
    pub(crate) fn drain(&self, id: HoldId) -> Option<Drained<B>> {
        self.with(|_, state| {
            if matches!(state.phase, Phase::Placeholder) {
                return None;
            }
            let drained = state.importers.drain(id, &state.chain, &state.upper);
            state.show_queued();
            drained
        })
    }

    pub(crate) fn unsubscribe(&self, id: HoldId) {
        let queue = self.with(|_, state| {
            let queue = state.importers.unsubscribe(id);
            state.show_queued();
            queue
        });
        drop(queue);
    }

    /// Tells `watch` of every later advance of the upper.
    pub(crate) fn watch(&self, watch: SealWatch) {
        self.with(|_, state| state.watches.add(watch));
    }

    // What the writer does.

    /// Whether a hold has moved since the writer last settled. One acquire load.
    pub(crate) fn has_moved(&self) -> bool {
        // Pairs with the release store in `moved`.
        self.moved.load(Ordering::Acquire)
    }

    /// Decides and publishes what may be applied of `requested`.
    pub(crate) fn settle(&self, requested: &Compaction<B::Time>) -> Settled<B::Time> {
        let mut state = lock(&self.state);
        self.moved.store(false, Ordering::Relaxed);
        state.requested.clone_from(requested);
        state.settle()
    }

    /// Publishes a span that has arrived, and what may be applied now that it has.
    pub(crate) fn append(
        &self,
        span: Span<B::Time, B>,
        requested: &Compaction<B::Time>,
    ) -> Settled<B::Time> {
        let mut state = lock(&self.state);
        self.moved.store(false, Ordering::Relaxed);
        state.requested.clone_from(requested);
        state.upper.clone_from(span.upper());
        let span = Arc::new(span);
        state.chain.push(Arc::clone(&span));
        let woken = state.importers.deliver(&span);
        let settled = state.settle();
        let signals = state.watches.signals();
        drop(state);
        fire(woken, &signals);
        settled
    }

    /// Publishes the chain as `map_spans` shows it, after the trace has merged, if that is `due` at
    /// the length that the published chain has. Returns whether it did.
    pub(crate) fn replace(
        &self,
        due: impl FnOnce(usize) -> bool,
        map_spans: impl FnOnce(&mut dyn FnMut(&Span<B::Time, B>)),
    ) -> bool {
        let replaced = {
            let mut state = lock(&self.state);
            // A merge may just have made batches that others have into pinned ones.
            state.show_queued();
            if !due(state.chain.len()) {
                return false;
            }
            let rebuilt = state.chain.rebuilt(map_spans);
            std::mem::replace(&mut state.chain, rebuilt)
        };
        drop(replaced);
        true
    }

    /// The writer has closed: no more spans will come.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        state.publish();
    }

    /// The trace is gone, and `requested` was its owner's last word.
    pub(crate) fn end(&self, requested: &Compaction<B::Time>) {
        let dropped = {
            let mut state = lock(&self.state);
            let Phase::Live { peers, .. } = state.phase else { return };
            state.phase = Phase::Ended { peers };
            state.requested.clone_from(requested);
            let standing: Vec<_> = state
                .holds
                .iter()
                .filter(|(_, hold)| hold.kind == HoldKind::Standing)
                .map(|(id, _)| id)
                .collect();
            for id in standing {
                state.holds.remove(id);
            }
            state.closed = true;
            state.settle();
            state.swept()
        };
        drop(dropped);
    }

    // Names.

    /// Adopts this placeholder for a trace: those that wait here are joined up to where it stands.
    pub(crate) fn adopt(&self, attachment: Attachment<B>) {
        let mut state = lock(&self.state);
        debug_assert!(matches!(state.phase, Phase::Placeholder), "a trace is attached once");
        let Attachment { requested, applied, upper, chain, closed, waker, peers, meter, point } =
            attachment;
        state.phase = Phase::Live { waker, peers };
        (state.requested, state.applied) = (requested, applied);
        (state.upper, state.chain) = (upper, chain);
        (state.closed, state.meter) = (closed, Some(meter));
        state.show_as(point);
        let floor = state.floor();
        let waiting: Vec<_> = state.holds.iter().map(|(id, _)| id).collect();
        for id in waiting {
            state.holds.advance(id, &floor);
        }
        let woken = {
            let State { importers, chain, .. } = &mut *state;
            importers.seed(&floor.logical, chain)
        };
        state.publish();
        let signals = state.watches.signals();
        drop(state);
        fire(woken, &signals);
    }

    /// Moves what waits at the placeholder `from` over to this publication.
    pub(crate) fn take_over(self: &Arc<Self>, from: &Publication<B>) {
        // Two publications are locked in the order of their numbers.
        let (mut here, mut there);
        if self.number < from.number {
            (here, there) = (lock(&self.state), lock(&from.state));
        } else {
            there = lock(&from.state);
            here = lock(&self.state);
        }
        if !matches!(there.phase, Phase::Placeholder) {
            return;
        }
        there.phase = Phase::Forwarded(Arc::clone(self));
        let floor = here.floor();
        let waiting: Vec<_> = there.holds.iter().map(|(id, _)| id).collect();
        for id in waiting {
            if let Some(mut hold) = there.holds.remove(id) {
                hold.at = hold.at.join(&floor);
                here.holds.insert(id, hold);
            }
        }
        let woken = {
            let State { importers, chain, .. } = &mut *here;
            let mut moving = std::mem::take(&mut there.importers);
            let woken = moving.seed(&floor.logical, chain);
            importers.append(moving);
            woken
        };
        let watches = std::mem::take(&mut there.watches);
        let signals = watches.signals();
        here.watches.append(watches);
        here.publish();
        drop((here, there));
        fire(woken, &signals);
    }

    /// Adds an id. If none was left, the trace shows under a point that `make` makes, anew.
    pub(crate) fn add_id(&self, id: &Arc<str>, make: impl FnOnce() -> Point<B::Time>) {
        let mut state = lock(&self.state);
        match &mut state.point {
            Some(point) if !point.ids().is_empty() => point.add_id(Arc::clone(id)),
            _ => {
                state.show_as(make());
                state.publish();
            }
        }
    }

    /// Takes back an id. Without one left nobody new can come, and the point shows as frozen for as
    /// long as a reader stays.
    pub(crate) fn remove_id(&self, id: &str) {
        let dropped = {
            let mut state = lock(&self.state);
            let Some(point) = &mut state.point else { return };
            if point.remove_id(id) > 0 {
                return;
            }
            point.freeze();
            state.swept()
        };
        drop(dropped);
    }
}
