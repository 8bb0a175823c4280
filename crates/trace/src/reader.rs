//! Readers: a hold on a trace that may cross threads, and the way into another runtime.

use std::sync::Arc;

use differential_dataflow::trace::Span;
use holdgap::HoldKind;
use timely::progress::frontier::AntichainRef;
use timely::progress::{Antichain, Timestamp};

use crate::batch::SharedBatch;
use crate::directory::Place;
use crate::holds::{Compaction, HoldId};
use crate::publication::{Publication, Refusal};

/// A hold on one worker's shard of a shared arrangement: made by
/// [`Sharing::reader`](crate::Sharing::reader) and [`reader_at`](crate::Sharing::reader_at).
///
/// The trace compacts no further than the reader allows, logically and physically. A clone is a hold
/// of its own, where its source stands. Dropping it, or advancing it to the empty frontier, lets go;
/// and lets the trace compact without further input, also when its worker is parked.
///
/// A reader goes where it is needed:
///
/// ```
/// fn crosses_threads<R: Send + Sync>() {}
/// crosses_threads::<holdgap_trace::Reader<holdgap_trace::KeyBatch<String, u64, isize>>>();
/// ```
///
/// while what it becomes by an import stays in its dataflow:
///
/// ```compile_fail
/// fn crosses_threads<R: Send>() {}
/// crosses_threads::<holdgap_trace::ImportTrace<holdgap_trace::KeyBatch<String, u64, isize>>>();
/// ```
pub struct Reader<B: SharedBatch> {
    publication: Arc<Publication<B>>,
    id: HoldId,
    /// Where the reader was registered, so that a placeholder goes with its last reader.
    place: Place,
    /// What it was given to be called by.
    label: Option<Arc<str>>,
}

impl<B: SharedBatch> Reader<B> {
    pub(crate) fn register(
        publication: Arc<Publication<B>>,
        as_of: Option<&Antichain<B::Time>>,
        place: Place,
    ) -> Result<Self, Refusal<B::Time>> {
        let id = HoldId::next();
        publication.register(id, as_of, place.label("reader"))?;
        Ok(Reader { publication, id, place, label: None })
    }

    /// The logical compaction frontier that this reader holds. One lock of the publication.
    pub fn logical_compaction(&self) -> Antichain<B::Time> {
        self.at().logical
    }

    /// The physical compaction frontier that this reader holds. One lock of the publication.
    pub fn physical_compaction(&self) -> Antichain<B::Time> {
        self.at().physical
    }

    /// Allows logical compaction up to `frontier`, joined with what this reader holds.
    ///
    /// # Cost
    ///
    /// One lock of the publication, shared with its writer and its other readers; if that lets the
    /// trace compact, and nobody else has woken it yet, one send to its worker.
    pub fn set_logical_compaction(&mut self, frontier: AntichainRef<'_, B::Time>) {
        // Joined, the minimum leaves the other axis where it is.
        let physical = Antichain::from_elem(B::Time::minimum());
        self.advance(&Compaction { logical: frontier.to_owned(), physical });
    }

    /// Allows physical compaction up to `frontier`, joined with what this reader holds.
    ///
    /// Costs what [`set_logical_compaction`](Self::set_logical_compaction) costs.
    pub fn set_physical_compaction(&mut self, frontier: AntichainRef<'_, B::Time>) {
        let logical = Antichain::from_elem(B::Time::minimum());
        self.advance(&Compaction { logical, physical: frontier.to_owned() });
    }

    /// The times that the trace has sealed. The minimum before a trace is published.
    pub fn upper(&self) -> Antichain<B::Time> {
        self.publication.upper()
    }

    /// Whether a trace was ever published where this reader waits.
    pub fn is_published(&self) -> bool {
        self.publication.peers().is_some()
    }

    /// The spans of the trace, oldest first, up to its upper.
    ///
    /// What is returned stays readable for as long as it is kept, and pins its batches in memory
    /// for as long. One lock of the publication, then a clone of each span.
    pub fn spans(&self) -> Vec<Span<B::Time, B>> {
        let (chain, _) = self.publication.chain();
        chain.iter().map(|span| Span::clone(span)).collect()
    }

    /// Says what the reader is, where holders are named: in place of `reader`, or of the import's
    /// name once it is imported. Its clones are called the same. One lock of the publication.
    pub fn with_label(mut self, label: impl Into<Arc<str>>) -> Self {
        let label: Arc<str> = label.into();
        self.publication.relabel(self.id, HoldKind::Reader, Arc::clone(&label));
        self.label = Some(label);
        self
    }

    /// What an import of this reader named `name` is called.
    pub(crate) fn import_label(&self, name: &str) -> Arc<str> {
        self.label.clone().unwrap_or_else(|| self.place.label(name))
    }

    pub(crate) fn publication(&self) -> &Arc<Publication<B>> {
        &self.publication
    }

    pub(crate) fn hold_id(&self) -> HoldId {
        self.id
    }

    pub(crate) fn worker(&self) -> usize {
        self.place.worker
    }

    pub(crate) fn id(&self) -> &Arc<str> {
        &self.place.id
    }

    pub(crate) fn advance(&self, to: &Compaction<B::Time>) {
        self.publication.advance(self.id, to);
    }

    fn at(&self) -> Compaction<B::Time> {
        let released = || Compaction { logical: Antichain::new(), physical: Antichain::new() };
        self.publication.hold(self.id).unwrap_or_else(released)
    }
}

impl<B: SharedBatch> Clone for Reader<B> {
    fn clone(&self) -> Self {
        let id = HoldId::next();
        self.publication.register_beside(id, self.id);
        let (publication, label) = (Arc::clone(&self.publication), self.label.clone());
        Reader { publication, id, place: self.place.clone(), label }
    }
}

impl<B: SharedBatch> Drop for Reader<B> {
    fn drop(&mut self) {
        self.publication.release(self.id);
        self.place.evict(&self.publication);
    }
}

impl<B: SharedBatch> std::fmt::Debug for Reader<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("id", &self.place.id)
            .field("worker", &self.place.worker)
            .field("at", &self.at())
            .finish_non_exhaustive()
    }
}
