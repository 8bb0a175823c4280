//! What is on its way to imports: for each its queue, and how to wake it.

use std::collections::BTreeMap;
use std::sync::Arc;

use differential_dataflow::lattice::Lattice;
use differential_dataflow::trace::Span;
use holdgap::Queued;
use timely::progress::Antichain;
use timely::scheduling::SyncActivator;

use crate::batch::SharedBatch;
use crate::chain::Chain;
use crate::holds::HoldId;

/// Spans with updates, oldest first. Where the upper stands is told at each drain.
type Queue<B> = Vec<Arc<Span<<B as SharedBatch>::Time, B>>>;

/// Every import of one trace, by the hold behind it.
pub(crate) struct Importers<B: SharedBatch> {
    importers: BTreeMap<HoldId, Importer<B>>,
    queued: Queued,
}

struct Importer<B: SharedBatch> {
    queue: Queue<B>,
    /// Where reads begin: what the import was registered at, or where the trace stood that came.
    since: Antichain<B::Time>,
    activator: Arc<SyncActivator>,
    /// Whether it was woken and has not drained since: an advance that it has yet to see.
    woken: bool,
}

impl<B: SharedBatch> Importer<B> {
    fn queued(&self) -> Queued {
        let batches = self.queue.len() as u64;
        Queued { instructions: batches + u64::from(self.woken), batches }
    }
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
        Importers { importers: BTreeMap::new(), queued: Queued::default() }
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
        let (queue, activator) = (seed(chain), Arc::new(activator));
        self.importers.insert(id, Importer { queue, since, activator, woken: false });
        self.recount();
    }

    /// Seeds those that waited for a trace, and returns whom to wake.
    pub(crate) fn seed(
        &mut self,
        since: &Antichain<B::Time>,
        chain: &Chain<B>,
    ) -> Vec<Arc<SyncActivator>> {
        for importer in self.importers.values_mut() {
            importer.since = importer.since.join(since);
            importer.queue = seed(chain);
        }
        self.woken()
    }

    /// Queues a span that arrived, if it has updates, and returns whom to wake.
    pub(crate) fn deliver(&mut self, span: &Arc<Span<B::Time, B>>) -> Vec<Arc<SyncActivator>> {
        if span.has_updates() {
            for importer in self.importers.values_mut() {
                importer.queue.push(Arc::clone(span));
            }
        }
        self.woken()
    }

    fn woken(&mut self) -> Vec<Arc<SyncActivator>> {
        if self.importers.is_empty() {
            return Vec::new();
        }
        let sleeping = self.importers.values_mut().filter(|importer| !importer.woken);
        let woken = sleeping
            .map(|importer| {
                importer.woken = true;
                Arc::clone(&importer.activator)
            })
            .collect();
        self.recount();
        woken
    }

    /// What waits in all queues together.
    pub(crate) fn queued(&self) -> Queued {
        self.queued
    }

    /// One pass over the imports, which whoever changed their queues has made anyway.
    fn recount(&mut self) {
        let queued = self.importers.values().map(Importer::queued);
        self.queued = queued.fold(Queued::default(), |sum, queued| Queued {
            instructions: sum.instructions + queued.instructions,
            batches: sum.batches + queued.batches,
        });
    }

    /// Takes one import's queue out of the count.
    fn discount(&mut self, queued: Queued) {
        self.queued.instructions -= queued.instructions;
        self.queued.batches -= queued.batches;
    }

    pub(crate) fn drain(
        &mut self,
        id: HoldId,
        chain: &Chain<B>,
        upper: &Antichain<B::Time>,
    ) -> Option<Drained<B>> {
        let importer = self.importers.get_mut(&id)?;
        let queued = importer.queued();
        // Drains before it reads again: what arrives from here on wakes it anew.
        importer.woken = false;
        let spans = std::mem::take(&mut importer.queue);
        let (chain, upper, since) = (chain.clone(), upper.clone(), importer.since.clone());
        self.discount(queued);
        Some(Drained { spans, chain, upper, since })
    }

    /// Stops queuing for an import. What was queued is the caller's to drop, outside the lock.
    pub(crate) fn unsubscribe(&mut self, id: HoldId) -> Queue<B> {
        let Some(importer) = self.importers.remove(&id) else { return Queue::<B>::new() };
        self.discount(importer.queued());
        importer.queue
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.importers.append(&mut other.importers);
        self.recount();
    }
}

/// The spans of `chain` that an import has to take in.
fn seed<B: SharedBatch>(chain: &Chain<B>) -> Queue<B> {
    chain.iter().filter(|span| span.has_updates()).cloned().collect()
}
