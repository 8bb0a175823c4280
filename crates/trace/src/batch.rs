//! Batches that cross threads.
//!
//! Differential's own spines hold their batches by `Rc`. [`ArcBatch`] holds them by `Arc` instead,
//! and is otherwise the same: a spine of them merges as it always did, and a cursor over one reads
//! what a cursor over the batch itself would.

use std::sync::{Arc, OnceLock};

use differential_dataflow::lattice::Lattice;
use differential_dataflow::trace::implementations::Vector;
use differential_dataflow::trace::implementations::ord_neu::{OrdKeyBatch, OrdValBatch};
use differential_dataflow::trace::implementations::spine_fueled::{Merger, SpineBatch};
use differential_dataflow::trace::{Cursor, Navigable, Trace, TraceReader};
use holdgap::Distance;
use timely::progress::frontier::AntichainRef;

use crate::meter::Meter;

/// A batch of `(key, val)` updates that crosses threads.
pub type ValBatch<K, V, T, R> = ArcBatch<OrdValBatch<Vector<((K, V), T, R)>>>;
/// A batch of `key` updates that crosses threads.
pub type KeyBatch<K, T, R> = ArcBatch<OrdKeyBatch<Vector<((K, ()), T, R)>>>;

/// A batch that a shared trace may hold: cheap to clone, and readable on any thread.
pub trait SharedBatch: Clone + Send + Sync + 'static {
    /// The timestamp type of the batch's updates.
    type Time: Distance + Lattice;

    /// How many updates the batch has.
    fn len(&self) -> usize;
    /// Whether the batch has no updates.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Has the batch counted by `meter` until its last clone is dropped. Later calls do nothing.
    fn attach(&self, meter: &Arc<Meter>);
    /// Whether the two are clones of one batch.
    fn same(&self, other: &Self) -> bool;
}

/// Any trace of batches that cross threads, at times with a distance.
///
/// Implemented for every such trace; it only saves writing out the bounds.
pub trait SharableTrace:
    Trace + TraceReader<Time: Distance, Batch: SharedBatch<Time = Self::Time>> + 'static
{
}

impl<Tr> SharableTrace for Tr where
    Tr: Trace + TraceReader<Time: Distance, Batch: SharedBatch<Time = Tr::Time>> + 'static
{
}

/// A batch behind an `Arc`.
///
/// What it holds must be free to cross threads. A batch behind an `Rc` is not, and a trace of such
/// batches cannot be shared:
///
/// ```compile_fail
/// use std::rc::Rc;
/// use holdgap_trace::{ArcBatch, SharedBatch};
/// use differential_dataflow::trace::implementations::{Vector, ord_neu::OrdValBatch};
///
/// fn shareable<B: SharedBatch>() {}
/// shareable::<ArcBatch<Rc<OrdValBatch<Vector<((u64, u64), u64, i64)>>>>>();
/// ```
///
/// ```
/// use holdgap_trace::{ArcBatch, SharedBatch};
/// use differential_dataflow::trace::implementations::{Vector, ord_neu::OrdValBatch};
///
/// fn shareable<B: SharedBatch>() {}
/// shareable::<ArcBatch<OrdValBatch<Vector<((u64, u64), u64, i64)>>>>();
/// ```
pub struct ArcBatch<B: SpineBatch> {
    inner: Arc<Metered<B>>,
}

struct Metered<B: SpineBatch> {
    batch: B,
    meter: OnceLock<Arc<Meter>>,
}

impl<B: SpineBatch> Drop for Metered<B> {
    fn drop(&mut self) {
        if let Some(meter) = self.meter.get() {
            meter.died(self.batch.len());
        }
    }
}

impl<B: SpineBatch> ArcBatch<B> {
    /// The batch itself.
    #[inline]
    pub fn batch(&self) -> &B {
        &self.inner.batch
    }
}

impl<B: SpineBatch> From<B> for ArcBatch<B> {
    fn from(batch: B) -> Self {
        ArcBatch { inner: Arc::new(Metered { batch, meter: OnceLock::new() }) }
    }
}

impl<B: SpineBatch> Clone for ArcBatch<B> {
    fn clone(&self) -> Self {
        ArcBatch { inner: Arc::clone(&self.inner) }
    }
}

impl<B> SharedBatch for ArcBatch<B>
where
    B: SpineBatch<Time: Distance> + Send + Sync + 'static,
{
    type Time = B::Time;

    fn len(&self) -> usize {
        self.batch().len()
    }

    fn attach(&self, meter: &Arc<Meter>) {
        let updates = self.batch().len();
        self.inner.meter.get_or_init(|| {
            meter.took_in(updates);
            Arc::clone(meter)
        });
    }

    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl<B: SpineBatch> SpineBatch for ArcBatch<B> {
    type Time = B::Time;
    type Merger = ArcMerger<B>;

    fn len(&self) -> usize {
        self.batch().len()
    }
}

/// Merges two batches behind `Arc`s, and has the result counted where its sources are.
pub struct ArcMerger<B: SpineBatch> {
    merger: B::Merger,
    meter: Option<Arc<Meter>>,
    /// How many updates both sources have.
    updates: usize,
}

impl<B: SpineBatch> Merger<ArcBatch<B>> for ArcMerger<B> {
    fn new(
        source1: &ArcBatch<B>,
        source2: &ArcBatch<B>,
        compaction_frontier: AntichainRef<'_, B::Time>,
    ) -> Self {
        let merger = B::Merger::new(source1.batch(), source2.batch(), compaction_frontier);
        let updates = source1.len() + source2.len();
        ArcMerger { merger, meter: source1.inner.meter.get().cloned(), updates }
    }

    fn work(&mut self, source1: &ArcBatch<B>, source2: &ArcBatch<B>, fuel: &mut isize) {
        self.merger.work(source1.batch(), source2.batch(), fuel);
    }

    fn done(self) -> Option<ArcBatch<B>> {
        let merged = self.merger.done().map(ArcBatch::from);
        if let Some(meter) = self.meter {
            meter.merged(self.updates, merged.as_ref().map(|merged| merged.batch().len()));
            if let Some(merged) = &merged {
                let counted = merged.inner.meter.set(meter);
                debug_assert!(counted.is_ok(), "a batch that was just made is not counted yet");
            }
        }
        merged
    }
}

impl<B: SpineBatch + Navigable> Navigable for ArcBatch<B> {
    type Cursor = ArcCursor<B>;

    fn cursor(&self) -> Self::Cursor {
        ArcCursor { cursor: self.batch().cursor() }
    }
}

/// A cursor over an [`ArcBatch`].
pub struct ArcCursor<B: Navigable> {
    cursor: B::Cursor,
}

impl<B: SpineBatch + Navigable> Cursor for ArcCursor<B> {
    type Storage = ArcBatch<B>;

    type Key<'a> = <B::Cursor as Cursor>::Key<'a>;
    type ValOwn = <B::Cursor as Cursor>::ValOwn;
    type Val<'a> = <B::Cursor as Cursor>::Val<'a>;
    type Time = <B::Cursor as Cursor>::Time;
    type TimeGat<'a> = <B::Cursor as Cursor>::TimeGat<'a>;
    type Diff = <B::Cursor as Cursor>::Diff;
    type DiffGat<'a> = <B::Cursor as Cursor>::DiffGat<'a>;
    type KeyContainer = <B::Cursor as Cursor>::KeyContainer;
    type ValContainer = <B::Cursor as Cursor>::ValContainer;
    type TimeContainer = <B::Cursor as Cursor>::TimeContainer;
    type DiffContainer = <B::Cursor as Cursor>::DiffContainer;

    #[inline]
    fn key_valid(&self, storage: &Self::Storage) -> bool {
        self.cursor.key_valid(storage.batch())
    }
    #[inline]
    fn val_valid(&self, storage: &Self::Storage) -> bool {
        self.cursor.val_valid(storage.batch())
    }
    #[inline]
    fn key<'a>(&self, storage: &'a Self::Storage) -> Self::Key<'a> {
        self.cursor.key(storage.batch())
    }
    #[inline]
    fn val<'a>(&self, storage: &'a Self::Storage) -> Self::Val<'a> {
        self.cursor.val(storage.batch())
    }
    #[inline]
    fn get_key<'a>(&self, storage: &'a Self::Storage) -> Option<Self::Key<'a>> {
        self.cursor.get_key(storage.batch())
    }
    #[inline]
    fn get_val<'a>(&self, storage: &'a Self::Storage) -> Option<Self::Val<'a>> {
        self.cursor.get_val(storage.batch())
    }
    #[inline]
    fn map_times<L>(&mut self, storage: &Self::Storage, logic: L)
    where
        L: FnMut(Self::TimeGat<'_>, Self::DiffGat<'_>),
    {
        self.cursor.map_times(storage.batch(), logic);
    }
    #[inline]
    fn step_key(&mut self, storage: &Self::Storage) {
        self.cursor.step_key(storage.batch());
    }
    #[inline]
    fn seek_key(&mut self, storage: &Self::Storage, key: Self::Key<'_>) {
        self.cursor.seek_key(storage.batch(), key);
    }
    #[inline]
    fn step_val(&mut self, storage: &Self::Storage) {
        self.cursor.step_val(storage.batch());
    }
    #[inline]
    fn seek_val(&mut self, storage: &Self::Storage, val: Self::Val<'_>) {
        self.cursor.seek_val(storage.batch(), val);
    }
    #[inline]
    fn rewind_keys(&mut self, storage: &Self::Storage) {
        self.cursor.rewind_keys(storage.batch());
    }
    #[inline]
    fn rewind_vals(&mut self, storage: &Self::Storage) {
        self.cursor.rewind_vals(storage.batch());
    }
}
