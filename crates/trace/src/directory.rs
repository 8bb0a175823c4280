//! The directory behind [`Sharing`](crate::Sharing): by id and worker to a publication.
//!
//! Many small maps, each under a mutex of its own, by the hash of worker and id: who publishes, reads,
//! removes or evicts takes one of them, for one entry, and meets others only by chance. Nobody takes
//! two, and nobody takes any to settle, seal, import or report. A publication's own lock is only ever
//! taken inside of such a mutex, never the other way round, so that whoever finds a placeholder has
//! registered there before anyone can evict it.

use std::any::{Any, type_name};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use holdgap::{Registry, Role};

use crate::batch::SharedBatch;
use crate::error::ReadError;
use crate::holds::HoldId;
use crate::publication::Publication;

/// What every clone of a [`Sharing`](crate::Sharing) shares.
pub(crate) struct Directory {
    pub(crate) registry: Registry,
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
}

/// Some of the entries: by worker, then by id.
pub(crate) type Shard = BTreeMap<usize, HashMap<Arc<str>, Entry>>;

/// How many maps there are.
const SHARDS: usize = 64;

/// What is known under an id.
pub(crate) struct Entry {
    /// The id, for those who keep it.
    pub(crate) id: Arc<str>,
    /// An `Arc<Publication<B>>`, for whatever batch type it has.
    pub(crate) publication: Box<dyn Any + Send>,
    /// What that batch type is called, for people.
    pub(crate) batch: &'static str,
    /// The standing hold of this id, if it was asked for.
    standing: Option<HoldId>,
}

impl Directory {
    pub(crate) fn new(registry: &Registry) -> Arc<Self> {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Arc::new(Directory { registry: registry.clone(), hasher: RandomState::new(), shards })
    }

    /// The map that has (id, worker), if any has.
    pub(crate) fn lock(&self, id: &str, worker: usize) -> MutexGuard<'_, Shard> {
        let hash = self.hasher.hash_one((id, worker)) as usize;
        self.shards[hash % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many ids are known on a worker.
    pub(crate) fn known(&self, worker: usize) -> usize {
        let known = |shard: &Mutex<Shard>| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.get(&worker).map_or(0, HashMap::len)
        };
        self.shards.iter().map(known).sum()
    }

    /// Calls `section` with the publication under (id, worker), made if there is none, and keeps
    /// anyone from evicting it meanwhile.
    pub(crate) fn with<B: SharedBatch, R>(
        &self,
        id: &str,
        worker: usize,
        section: impl FnOnce(&mut Entry, Arc<Publication<B>>) -> Result<R, ReadError>,
    ) -> Result<R, ReadError> {
        let mut entries = self.lock(id, worker);
        let known = entries.entry(worker).or_default();
        if !known.contains_key(id) {
            let id: Arc<str> = id.into();
            let clock = self.registry.options().clock.clone();
            let entry = Entry::new(&id, &Publication::<B>::placeholder(clock));
            known.insert(id, entry);
        }
        let Some(entry) = known.get_mut(id) else { unreachable!("it was just inserted") };
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
        self.remove(id, worker, publication, || publication.is_abandoned());
    }

    /// Takes an id back from a publication, with the standing hold that belongs to it.
    pub(crate) fn unpublish<B: SharedBatch>(
        &self,
        id: &str,
        worker: usize,
        publication: &Arc<Publication<B>>,
    ) {
        let Some(entry) = self.remove(id, worker, publication, || true) else { return };
        if let Some(standing) = entry.standing {
            publication.release(standing);
        }
        publication.remove_id(id);
    }

    /// Removes what is known under an id, if it is the given publication and `due`.
    fn remove<B: SharedBatch>(
        &self,
        id: &str,
        worker: usize,
        publication: &Arc<Publication<B>>,
        due: impl FnOnce() -> bool,
    ) -> Option<Entry> {
        let mut entries = self.lock(id, worker);
        let known = entries.get_mut(&worker)?;
        let is_it = known.get(id).is_some_and(|entry| entry.is(publication)) && due();
        if is_it { known.remove(id) } else { None }
    }
}

impl Entry {
    pub(crate) fn new<B: SharedBatch>(id: &Arc<str>, publication: &Arc<Publication<B>>) -> Self {
        let (id, publication) = (Arc::clone(id), Box::new(Arc::clone(publication)));
        Entry { id, publication, batch: type_name::<B>(), standing: None }
    }

    pub(crate) fn publication<B: SharedBatch>(&self) -> Option<Arc<Publication<B>>> {
        self.publication.downcast_ref::<Arc<Publication<B>>>().cloned()
    }

    fn is<B: SharedBatch>(&self, publication: &Arc<Publication<B>>) -> bool {
        self.publication::<B>().is_some_and(|known| Arc::ptr_eq(&known, publication))
    }

    pub(crate) fn stand<B: SharedBatch>(
        &mut self,
        publication: &Arc<Publication<B>>,
        id: &str,
    ) -> HoldId {
        *self.standing.get_or_insert_with(|| {
            let hold = HoldId::next();
            publication.register_standing(hold, id.into());
            hold
        })
    }
}

/// An id on a worker, and the registry that knows it.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) sharing: Weak<Directory>,
    pub(crate) id: Arc<str>,
    pub(crate) worker: usize,
    /// The role of the runtime that reads here, if it has said so.
    pub(crate) role: Option<Role>,
}

impl Place {
    /// What a reader from here is called that is given no other label.
    pub(crate) fn label(&self, name: &str) -> Arc<str> {
        match &self.role {
            Some(role) => format!("{name} ({role})").into(),
            None => name.into(),
        }
    }

    /// Forgets a placeholder that nobody adopted and nobody waits at.
    pub(crate) fn evict<B: SharedBatch>(&self, publication: &Arc<Publication<B>>) {
        if publication.is_abandoned()
            && let Some(sharing) = self.sharing.upgrade()
        {
            sharing.evict(&self.id, self.worker, publication);
        }
    }
}
