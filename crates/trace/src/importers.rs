//! What is on its way to imports: for each its queue, and how to wake it.

use std::collections::BTreeMap;
use std::sync::Arc;

use differential_dataflow::lattice::Lattice;
use differential_dataflow::trace::Span;
use timely::progress::Antichain;
use timely::scheduling::SyncActivator;

use crate::batch::SharedBatch;
use crate::chain::Chain;
use crate::holds::HoldId;

type Queue<B> = Vec<Arc<Span<<B as SharedBatch>::Time, B>>>;

/// Every import of one trace, by the hold behind it.
pub(crate) struct Importers<B: SharedBatch> {
    importers: BTreeMap<HoldId, Importer<B>>,
}

struct Importer<B: SharedBatch> {
    queue: Queue<B>,
    /// Where reads begin: what the import was registered at, or where the trace stood that came.
    since: Antichain<B::Time>,
    activator: Arc<SyncActivator>,
    /// Whether it was woken and has not drained since.
    woken: bool,
}

/// What an import takes at once: spans in order, and the chain and upper that they lead up to.
pub(crate) struct Drained<B: SharedBatch> {
    pub(crate) spans: Queue<B>,
    pub(crate) chain: Chain<B>,
    pub(crate) upper: Antichain<B::Time>,
    pub(crate) since: Antichain<B::Time>,
}

impl<B: SharedBatch> Default for Importers<B> {
    fn default() -> Self {
        Importers { importers: BTreeMap::new() }
    }
}

impl<B: SharedBatch> Importers<B> {
    pub(crate) fn subscribe(
        &mut self,
        id: HoldId,
        since: Antichain<B::Time>,
        activator: SyncActivator,
        chain: &Chain<B>,
    ) {
        let queue = chain.iter().cloned().collect();
        let activator = Arc::new(activator);
        self.importers.insert(id, Importer { queue, since, activator, woken: false });
    }

    /// Seeds those that waited for a trace, and returns whom to wake.
    pub(crate) fn seed(
        &mut self,
        since: &Antichain<B::Time>,
        chain: &Chain<B>,
    ) -> Vec<Arc<SyncActivator>> {
        for importer in self.importers.values_mut() {
            importer.since = importer.since.join(since);
            importer.queue = chain.iter().cloned().collect();
        }
        self.woken()
    }

    /// Queues a span that arrived, and returns whom to wake.
    pub(crate) fn deliver(&mut self, span: &Arc<Span<B::Time, B>>) -> Vec<Arc<SyncActivator>> {
        for importer in self.importers.values_mut() {
            importer.queue.push(Arc::clone(span));
        }
        self.woken()
    }

    fn woken(&mut self) -> Vec<Arc<SyncActivator>> {
        let sleeping = self.importers.values_mut().filter(|importer| !importer.woken);
        sleeping
            .map(|importer| {
                importer.woken = true;
                Arc::clone(&importer.activator)
            })
            .collect()
    }

    pub(crate) fn drain(
        &mut self,
        id: HoldId,
        chain: &Chain<B>,
        upper: &Antichain<B::Time>,
    ) -> Option<Drained<B>> {
        let importer = self.importers.get_mut(&id)?;
        // Drains before it reads again: what arrives from here on wakes it anew.
        importer.woken = false;
        let spans = std::mem::take(&mut importer.queue);
        let (chain, upper, since) = (chain.clone(), upper.clone(), importer.since.clone());
        Some(Drained { spans, chain, upper, since })
    }

    /// Stops queuing for an import. What was queued is the caller's to drop, outside the lock.
    pub(crate) fn unsubscribe(&mut self, id: HoldId) -> Queue<B> {
        self.importers.remove(&id).map(|importer| importer.queue).unwrap_or_default()
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.importers.append(&mut other.importers);
    }
}
