//! The sharing registry: by id and worker to the publication where a trace and its readers meet.
//!
//! One map, under one mutex, which is taken to publish, to read, to remove and to evict; never to
//! settle, seal, import or report. A publication's own lock is only ever taken inside of it, never
//! the other way round, so that whoever finds a placeholder has registered there before anyone can
//! evict it.

use std::any::{Any, type_name};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::TraceReader;
use holdgap::{Registry, Role};
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;
use timely::worker::Worker;

use crate::batch::{SharableTrace, SharedBatch};
use crate::error::{PublishError, ReadError, frontier_text};
use crate::holds::{Compaction, HoldId};
use crate::publication::{Attachment, Publication, Refusal};
use crate::reader::{Place, Reader};
use crate::seals::SealInbox;
use crate::spine::SharedSpine;

/// What the runtimes of one process share: one for each process, cloned into each worker.
///
/// ```
/// use differential_dataflow::input::Input;
/// use holdgap::{Registry, Role};
/// use holdgap_trace::{ArrangeShared, Reader, Sharing, ValBatch};
/// use timely::progress::Antichain;
///
/// let registry = Registry::new();
/// let sharing = Sharing::new(&registry);
/// timely::execute_directly(move |worker| {
///     let (mut input, mut orders) = worker.dataflow::<u64, _, _>(|scope| {
///         let (input, orders) = scope.new_collection_from([(7, "tea".to_owned())]);
///         (input, sharing.publish("u42", &orders.arrange_shared_by_key("orders")).unwrap())
///     });
///     // On any thread, before or after the above.
///     let reader: Reader<ValBatch<i32, String, u64, isize>> = sharing.reader("u42", 0).unwrap();
///
///     input.advance_to(10);
///     input.flush();
///     while orders.upper().less_than(&10) {
///         worker.step();
///     }
///     orders.allow_compaction(Antichain::from_elem(9).borrow());
///     let report = registry.runtime(Role::Maintenance).worker(0).report();
///     assert_eq!((report.hold_gap, report.held), (9, 1));
///
///     drop(reader);
///     while registry.runtime(Role::Maintenance).worker(0).report().held > 0 {
///         worker.step();
///     }
/// });
/// ```
#[derive(Clone)]
pub struct Sharing {
    shared: Arc<SharingShared>,
    role: Role,
}

pub(crate) struct SharingShared {
    registry: Registry,
    /// By worker, then by id.
    entries: Mutex<BTreeMap<usize, HashMap<Arc<str>, Entry>>>,
}

struct Entry {
    /// An `Arc<Publication<B>>`, for whatever batch type it has.
    publication: Box<dyn Any + Send>,
    /// What that batch type is called, for people.
    batch: &'static str,
    /// The standing hold of this id, if it was asked for.
    standing: Option<HoldId>,
}

/// How a trace is published: see [`Sharing::publish_with`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishOptions {
    /// What people call the arrangement; its id if empty.
    pub name: String,
    /// Whether compaction waits for a [`StandingHold`] from the first moment on.
    ///
    /// For an importing runtime that follows the same compaction commands and may lag behind: an
    /// import still queued there is then never built on an arrangement compacted past it. If nobody
    /// advances the hold, nothing compacts, and shows as a gap.
    pub standing_hold: bool,
}

impl Sharing {
    /// A sharing registry whose publications count for the maintenance runtime of `registry`.
    pub fn new(registry: &Registry) -> Self {
        let (registry, entries) = (registry.clone(), Mutex::new(BTreeMap::new()));
        let shared = Arc::new(SharingShared { registry, entries });
        Sharing { shared, role: Role::Maintenance }
    }

    /// The same sharing registry, for a runtime with another role.
    pub fn with_role(&self, role: Role) -> Self {
        Sharing { shared: Arc::clone(&self.shared), role }
    }

    /// Publishes an arrangement under `id`, for this worker's shard of it.
    ///
    /// Readers that came first and wait under the id are served from here on. Publishing the same
    /// arrangement under a second id makes it known there too; it counts once.
    ///
    /// # Errors
    ///
    /// If the id is in use on this worker, or readers of another type wait under it.
    ///
    /// # Cost
    ///
    /// The registry's mutex, the publication's lock, some allocations. A published arrangement pays
    /// an uncontended lock and a published snapshot for each span and each compaction request.
    pub fn publish<Tr>(
        &self,
        id: impl Into<Arc<str>>,
        arranged: &Arranged<'_, TraceAgent<SharedSpine<Tr>>>,
    ) -> Result<Published<Tr>, PublishError>
    where
        Tr: SharableTrace,
    {
        self.publish_with(id, arranged, PublishOptions::default())
    }

    /// As [`publish`](Self::publish), with options of your own.
    ///
    /// # Errors
    ///
    /// As [`publish`](Self::publish).
    pub fn publish_with<Tr>(
        &self,
        id: impl Into<Arc<str>>,
        arranged: &Arranged<'_, TraceAgent<SharedSpine<Tr>>>,
        options: PublishOptions,
    ) -> Result<Published<Tr>, PublishError>
    where
        Tr: SharableTrace,
    {
        self.publish_trace(id, &arranged.trace, arranged.stream.scope().worker(), options)
    }

    /// As [`publish_with`](Self::publish_with), for a trace that has left its dataflow's scope.
    ///
    /// # Errors
    ///
    /// As [`publish`](Self::publish).
    pub fn publish_trace<Tr>(
        &self,
        id: impl Into<Arc<str>>,
        trace: &TraceAgent<SharedSpine<Tr>>,
        worker: &Worker,
        options: PublishOptions,
    ) -> Result<Published<Tr>, PublishError>
    where
        Tr: SharableTrace,
    {
        let id: Arc<str> = id.into();
        let trace_box = trace.trace_box_unstable();
        let trace_box = trace_box.borrow();
        let spine = trace_box.trace();
        let point = || {
            let name = if options.name.is_empty() { &*id } else { &*options.name };
            let runtime = self.shared.registry.runtime(self.role.clone());
            runtime.worker(worker.index()).publish(Arc::clone(&id), name)
        };
        let mut entries = self.shared.lock();
        let known = entries.entry(worker.index()).or_default();
        let waiting = match known.get(&id) {
            None => None,
            Some(entry) => {
                let waiting = entry.publication::<Tr::Batch>();
                let waiting = waiting.ok_or_else(|| PublishError::WrongType {
                    id: Arc::clone(&id),
                    waited_for: entry.batch,
                    published: type_name::<Tr::Batch>(),
                })?;
                if !waiting.is_placeholder() {
                    return Err(PublishError::InUse { id, worker: worker.index() });
                }
                Some(waiting)
            }
        };
        let publication = match spine.publication() {
            Some(publication) => {
                publication.add_id(&id, point);
                if let Some(waiting) = waiting {
                    publication.take_over(&waiting);
                }
                publication
            }
            None => {
                let publication = waiting.unwrap_or_else(Publication::placeholder);
                let address = trace.operator().address.to_vec();
                publication.adopt(Attachment {
                    requested: spine.requested().clone(),
                    applied: spine.applied().clone(),
                    upper: spine.upper().clone(),
                    chain: spine.chain(),
                    closed: spine.is_closed(),
                    waker: Arc::new(worker.sync_activator_for(address)),
                    peers: worker.peers(),
                    point: point(),
                });
                spine.publish_at(Arc::clone(&publication));
                publication
            }
        };
        let entry = known.entry(Arc::clone(&id)).or_insert_with(|| Entry::new(&publication));
        entry.publication = Box::new(Arc::clone(&publication));
        if options.standing_hold {
            entry.stand(&publication, &id);
        }
        drop(entries);
        drop(trace_box);
        let mut trace = trace.clone();
        // The owner has no opinion on merging, so that it never waits for one.
        trace.set_physical_compaction(AntichainRef::new(&[]));
        let place = self.place(&id, worker.index());
        Ok(Published { trace, publication, place })
    }

    /// A reader of `id` on the given worker, where its trace stands now.
    ///
    /// If nothing is published there yet, the reader waits for it, at the minimum.
    ///
    /// # Errors
    ///
    /// If the arrangement under the id has another type, or its owner allowed everything.
    ///
    /// # Cost
    ///
    /// The registry's mutex, the publication's lock, a few allocations.
    pub fn reader<B: SharedBatch>(&self, id: &str, worker: usize) -> Result<Reader<B>, ReadError> {
        self.register(id, worker, None)
    }

    /// A reader of `id` on the given worker that holds it at `as_of`.
    ///
    /// Checks and registers at once: whoever is admitted reads at `as_of` for as long as it holds.
    ///
    /// # Errors
    ///
    /// [`ReadError::Compacted`] if the trace may have compacted past `as_of`, with the frontier
    /// that ruled it out and who let it go; else as [`reader`](Self::reader).
    ///
    /// # Cost
    ///
    /// As [`reader`](Self::reader).
    pub fn reader_at<B: SharedBatch>(
        &self,
        id: &str,
        worker: usize,
        as_of: &Antichain<B::Time>,
    ) -> Result<Reader<B>, ReadError> {
        self.register(id, worker, Some(as_of))
    }

    /// The standing hold of `id` on the given worker: one for each id, made if there is none.
    ///
    /// # Errors
    ///
    /// If the arrangement under the id has another type.
    pub fn standing_hold<B: SharedBatch>(
        &self,
        id: &str,
        worker: usize,
    ) -> Result<StandingHold<B>, ReadError> {
        self.shared.with(id, worker, |entry, publication| {
            let hold = entry.stand(&publication, id);
            let place = self.place(&id.into(), worker);
            Ok(StandingHold { publication, hold, place })
        })
    }

    /// An inbox for seals, which wakes the calling thread.
    pub fn inbox(&self) -> SealInbox {
        SealInbox::new()
    }

    /// Has `inbox` told whenever the upper of `id` on the given worker advances.
    ///
    /// # Errors
    ///
    /// If the arrangement under the id has another type.
    pub fn watch<B: SharedBatch>(
        &self,
        inbox: &SealInbox,
        id: &str,
        worker: usize,
    ) -> Result<(), ReadError> {
        self.shared.with::<B, _>(id, worker, |_, publication| {
            publication.watch(inbox.watch(id.into()));
            Ok(())
        })
    }

    /// How many ids are known on the given worker: published, or waited for.
    pub fn known(&self, worker: usize) -> usize {
        self.shared.lock().get(&worker).map_or(0, HashMap::len)
    }

    /// The registry whose gauges show what is shared here.
    pub fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    fn register<B: SharedBatch>(
        &self,
        id: &str,
        worker: usize,
        as_of: Option<&Antichain<B::Time>>,
    ) -> Result<Reader<B>, ReadError> {
        self.shared.with(id, worker, |_, publication| {
            let place = self.place(&id.into(), worker);
            Reader::register(publication, as_of, place).map_err(|refusal| match refusal {
                Refusal::Ended => ReadError::Ended { id: id.into(), worker },
                Refusal::Compacted { since, requested } => ReadError::Compacted {
                    id: id.into(),
                    worker,
                    as_of: as_of.map_or_else(|| "now".to_owned(), frontier_text),
                    since: frontier_text(&since),
                    requested: frontier_text(&requested),
                },
            })
        })
    }

    fn place(&self, id: &Arc<str>, worker: usize) -> Place {
        Place { sharing: Arc::downgrade(&self.shared), id: Arc::clone(id), worker }
    }
}

impl SharingShared {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, HashMap<Arc<str>, Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `section` with the publication under (id, worker), made if there is none, and keeps
    /// anyone from evicting it meanwhile.
    fn with<B: SharedBatch, R>(
        &self,
        id: &str,
        worker: usize,
        section: impl FnOnce(&mut Entry, Arc<Publication<B>>) -> Result<R, ReadError>,
    ) -> Result<R, ReadError> {
        let mut entries = self.lock();
        let known = entries.entry(worker).or_default();
        let entry =
            known.entry(id.into()).or_insert_with(|| Entry::new(&Publication::<B>::placeholder()));
        let publication = entry.publication::<B>().ok_or_else(|| ReadError::WrongType {
            id: id.into(),
            known: entry.batch,
            asked: type_name::<B>(),
        })?;
        section(entry, publication)
    }

    /// Forgets a placeholder, if it is still known and still abandoned.
    pub(crate) fn evict<B: SharedBatch>(
        &self,
        id: &str,
        worker: usize,
        publication: &Arc<Publication<B>>,
    ) {
        let mut entries = self.lock();
        let Some(known) = entries.get_mut(&worker) else { return };
        if known.get(id).is_some_and(|entry| entry.is(publication)) && publication.is_abandoned() {
            known.remove(id);
        }
    }

    fn unpublish<B: SharedBatch>(
        &self,
        id: &str,
        worker: usize,
        publication: &Arc<Publication<B>>,
    ) {
        let mut entries = self.lock();
        let Some(known) = entries.get_mut(&worker) else { return };
        if !known.get(id).is_some_and(|entry| entry.is(publication)) {
            return;
        }
        let standing = known.remove(id).and_then(|entry| entry.standing);
        drop(entries);
        if let Some(standing) = standing {
            publication.release(standing);
        }
        publication.remove_id(id);
    }
}

impl Entry {
    fn new<B: SharedBatch>(publication: &Arc<Publication<B>>) -> Self {
        let publication = Box::new(Arc::clone(publication));
        Entry { publication, batch: type_name::<B>(), standing: None }
    }

    fn publication<B: SharedBatch>(&self) -> Option<Arc<Publication<B>>> {
        self.publication.downcast_ref::<Arc<Publication<B>>>().cloned()
    }

    fn is<B: SharedBatch>(&self, publication: &Arc<Publication<B>>) -> bool {
        self.publication::<B>().is_some_and(|known| Arc::ptr_eq(&known, publication))
    }

    fn stand<B: SharedBatch>(&mut self, publication: &Arc<Publication<B>>, id: &str) -> HoldId {
        *self.standing.get_or_insert_with(|| {
            let hold = HoldId::next();
            publication.register_standing(hold, id.into());
            hold
        })
    }
}

impl std::fmt::Debug for Sharing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sharing").field("role", &self.role).finish_non_exhaustive()
    }
}

/// An arrangement under an id, and its owner's handle on it: made by [`Sharing::publish`].
///
/// Dropping it takes the id back: no new reader finds it. Readers that are there keep what they
/// hold, and show as holding a frozen point.
#[must_use = "dropping it takes the arrangement back"]
pub struct Published<Tr: SharableTrace> {
    trace: TraceAgent<SharedSpine<Tr>>,
    publication: Arc<Publication<Tr::Batch>>,
    place: Place,
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
pub struct StandingHold<B: SharedBatch> {
    publication: Arc<Publication<B>>,
    hold: HoldId,
    place: Place,
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
