//! The handle that the runtimes of a process share: publish, read, hold, watch.

use std::any::type_name;
use std::sync::Arc;

use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::TraceReader;
use holdgap::{Registry, Role};
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;
use timely::worker::Worker;

use crate::batch::{SharableTrace, SharedBatch};
use crate::directory::{Directory, Entry, Place};
use crate::error::{PublishError, ReadError, frontier_text};
use crate::publication::{Attachment, Publication, Refusal};
use crate::published::{Published, StandingHold};
use crate::reader::Reader;
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
    shared: Arc<Directory>,
    /// The role that it was said to be for.
    role: Option<Role>,
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
        Sharing { shared: Directory::new(registry), role: None }
    }

    /// The same sharing registry, for a runtime with the given role: its publications count there,
    /// and its readers are called by it.
    pub fn with_role(&self, role: Role) -> Self {
        Sharing { shared: Arc::clone(&self.shared), role: Some(role) }
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
    /// The mutex of a part of the directory, the publication's lock, some allocations. A published arrangement pays
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
            let runtime =
                self.shared.registry.runtime(self.role.clone().unwrap_or(Role::Maintenance));
            runtime.worker(worker.index()).publish(Arc::clone(&id), name)
        };
        let mut entries = self.shared.lock(&id, worker.index());
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
                let publication = waiting.unwrap_or_else(|| {
                    Publication::placeholder(self.registry().options().clock.clone())
                });
                let address = trace.operator().address.to_vec();
                publication.adopt(Attachment {
                    requested: spine.requested().clone(),
                    applied: spine.applied().clone(),
                    upper: spine.upper().clone(),
                    chain: spine.chain(),
                    closed: spine.is_closed(),
                    waker: Arc::new(worker.sync_activator_for(address)),
                    peers: worker.peers(),
                    meter: Arc::clone(spine.meter()),
                    point: point(),
                });
                spine.publish_at(Arc::clone(&publication));
                publication
            }
        };
        let entry = known.entry(Arc::clone(&id)).or_insert_with(|| Entry::new(&id, &publication));
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
    /// The mutex of a part of the directory, the publication's lock, a few allocations.
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
            let place = self.place(&entry.id, worker);
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
        self.shared.with::<B, _>(id, worker, |entry, publication| {
            publication.watch(inbox.watch(Arc::clone(&entry.id)));
            Ok(())
        })
    }

    /// How many ids are known on the given worker: published, or waited for.
    pub fn known(&self, worker: usize) -> usize {
        self.shared.known(worker)
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
        self.shared.with(id, worker, |entry, publication| {
            let place = self.place(&entry.id, worker);
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
        let (sharing, role) = (Arc::downgrade(&self.shared), self.role.clone());
        Place { sharing, id: Arc::clone(id), worker, role }
    }
}

impl std::fmt::Debug for Sharing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sharing").field("role", &self.role).finish_non_exhaustive()
    }
}
