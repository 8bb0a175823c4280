//! Seals: how a worker that sleeps learns that an upper has moved.
//!
//! A worker makes an inbox, and watches the ids that it cares for. Each advance of an upper puts the
//! id into the inbox, once until it is drained, and unparks the worker's thread. The order that
//! loses nothing: a watch's flag is cleared **before** the worker looks at the trace, and set by the
//! writer **after** the new upper can be seen; so an advance that the worker did not see finds the
//! flag cleared and signals again. An unpark may be eaten by other code that parks the thread: the
//! inbox still has the id.

use std::sync::{Arc, Weak};

use crate::sync::{AtomicBool, Mutex, Ordering, Thread, current, lock};

/// The ids whose upper has advanced since the last [`drain`](Self::drain).
///
/// Made by [`Sharing::inbox`](crate::Sharing::inbox) on the thread that is to be woken.
///
/// ```
/// use differential_dataflow::input::Input;
/// use holdgap_trace::{ArrangeSharedBySelf, KeyBatch, Sharing};
///
/// let sharing = Sharing::new(&holdgap::Registry::new());
/// let inbox = sharing.inbox();
/// sharing.watch::<KeyBatch<u64, u64, isize>>(&inbox, "u7", 0)?;
///
/// timely::execute_directly(move |worker| {
///     let (mut input, names) = worker.dataflow::<u64, _, _>(|scope| {
///         let (input, names) = scope.new_collection_from([7_u64]);
///         (input, sharing.publish("u7", &names.arrange_shared_by_self("names")).unwrap())
///     });
///     input.advance_to(5);
///     input.flush();
///     while names.upper().less_than(&5) {
///         worker.step();
///     }
/// });
/// // On the thread that made the inbox: it was woken, and finds which upper has advanced.
/// assert_eq!(inbox.drain(), ["u7".into()]);
/// # Ok::<(), holdgap_trace::ReadError>(())
/// ```
pub struct SealInbox {
    shared: Arc<InboxShared>,
}

pub(crate) struct InboxShared {
    dirty: Mutex<Vec<Dirty>>,
    thread: Thread,
}

struct Dirty {
    id: Arc<str>,
    queued: Arc<AtomicBool>,
}

impl SealInbox {
    pub(crate) fn new() -> Self {
        let (dirty, thread) = (Mutex::new(Vec::new()), current());
        SealInbox { shared: Arc::new(InboxShared { dirty, thread }) }
    }

    pub(crate) fn watch(&self, id: Arc<str>) -> SealWatch {
        let (inbox, queued) = (Arc::downgrade(&self.shared), Arc::new(AtomicBool::new(false)));
        SealWatch { id, inbox, queued }
    }

    /// The ids whose upper has advanced, each once. One mutex, shared with nothing but this inbox.
    pub fn drain(&self) -> Vec<Arc<str>> {
        let mut dirty = lock(&self.shared.dirty);
        let drained = std::mem::take(&mut *dirty);
        drop(dirty);
        let rearmed = drained.into_iter().map(|Dirty { id, queued }| {
            // Pairs with the swap in `fire`: whoever reads the trace after this either sees the
            // upper of a writer that found the flag set, or is signalled again.
            queued.swap(false, Ordering::AcqRel);
            id
        });
        rearmed.collect()
    }
}

impl std::fmt::Debug for SealInbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealInbox").finish_non_exhaustive()
    }
}

/// One inbox's interest in one id.
#[derive(Clone)]
pub(crate) struct SealWatch {
    id: Arc<str>,
    inbox: Weak<InboxShared>,
    queued: Arc<AtomicBool>,
}

impl SealWatch {
    /// Signals an advance. Called without the publication's lock.
    pub(crate) fn fire(&self) {
        // Pairs with the swap in `drain`.
        if self.queued.swap(true, Ordering::AcqRel) {
            return;
        }
        let Some(inbox) = self.inbox.upgrade() else { return };
        let dirty = Dirty { id: Arc::clone(&self.id), queued: Arc::clone(&self.queued) };
        lock(&inbox.dirty).push(dirty);
        inbox.thread.unpark();
    }
}

/// Everyone who watches one trace.
#[derive(Default)]
pub(crate) struct Watches(Vec<SealWatch>);

impl Watches {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|watch| watch.inbox.strong_count() == 0)
    }

    pub(crate) fn add(&mut self, watch: SealWatch) {
        self.0.retain(|known| known.inbox.strong_count() > 0);
        self.0.push(watch);
    }

    /// Those to fire once the lock is released: all but those that are signalled already.
    ///
    /// Called under the publication's lock. A worker clears its flag before it takes that lock to
    /// look, so a flag that is still set here belongs to a worker that has yet to look.
    pub(crate) fn signals(&self) -> Vec<SealWatch> {
        let silent = |watch: &&SealWatch| !watch.queued.load(Ordering::Relaxed);
        self.0.iter().filter(silent).cloned().collect()
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }
}
