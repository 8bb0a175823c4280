//! One point as people see it: its names, its frontiers as text, its gaps.

use std::time::Duration;

use arc_swap::ArcSwap;

use crate::distance::{Distance, frontier_distance};
use crate::holders::{Holder, HolderView, Holders, Pinned, Pins, Queued};
use crate::kind::HoldKinds;
use crate::layout::Mirror;
use crate::pair::{FrontierPair, HoldGap};
use crate::record::{Flags, Numbers};
use crate::role::Role;
use crate::snapshot::{Cell, Snapshot, frontier_text};
use crate::sync::{Arc, AtomicBool, OnceLock, Ordering};

/// One publication point: what it is called, where it stands, how far it is held back.
///
/// The gaps are those of the scan that found the point; the frontiers were loaded a moment later
/// and may be newer.
///
/// ```
/// use holdgap::{Registry, Role};
/// use timely::progress::Antichain;
///
/// let registry = Registry::new();
/// let worker = registry.runtime(Role::Solo).worker(0);
/// let mut orders = worker.publish::<u64>("u1", "orders");
/// orders.set(&Antichain::from_elem(100), &Antichain::from_elem(40));
///
/// let page = registry.page(0, 10);
/// let worst = &page.points[0];
/// assert_eq!((page.total, &*worst.name, worst.gap.distance), (1, "orders", 60));
/// assert_eq!((&*worst.requested, &*worst.applied), ("{100}", "{40}"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PointView {
    /// The process, where several are watched from outside.
    pub process: Option<Arc<str>>,
    /// The role of the runtime whose worker publishes the point.
    pub role: Role,
    /// The timely index of that worker.
    pub worker: usize,
    /// Every id that the point is published under; several after a re-export.
    pub ids: Vec<Arc<str>>,
    /// The name that its publisher gave it, for people.
    pub name: Arc<str>,
    /// Whether its writer has closed.
    pub frozen: bool,
    /// How far applied trails requested logical compaction.
    pub gap: HoldGap,
    /// How far applied trails requested physical compaction.
    pub physical_gap: HoldGap,
    /// Counts the publications of the point.
    pub sequence: u64,
    /// The requested logical compaction frontier.
    pub requested: String,
    /// The applied logical compaction frontier.
    pub applied: String,
    /// The requested physical compaction frontier, where known.
    pub physical_requested: Option<String>,
    /// The applied physical compaction frontier, where known.
    pub physical_applied: Option<String>,
    /// The times that the trace has sealed, where known.
    pub upper: Option<String>,
    /// How far applied trails the upper, in timestamp units, where the upper is known.
    pub lag: Option<u64>,
    /// How far requested trails the upper, in timestamp units, where the upper is known.
    pub slack: Option<u64>,
    /// For how long the point has been held where it stands: since it came to be held, or since
    /// its applied frontier last moved. `None` if it is not held.
    pub stalled: Option<Duration>,
    /// What its trace has replaced and others keep alive, where that is counted.
    pub pins: Option<Pins>,
    /// What waits in the queues of its imports, where that is counted.
    pub queued: Option<Queued>,
    /// Who holds it back, the longest registered first; some of them.
    pub holders: Vec<HolderView>,
    /// How many hold it back beyond those in [`holders`](Self::holders).
    pub more_holders: u64,
}

/// What a slot of the table knows of its point, whatever its timestamp type.
pub(crate) trait Details: Send + Sync {
    /// The point as it is at `now`, with the gaps of `numbers`.
    fn view(&self, numbers: Numbers, now: Duration) -> PointView;

    /// What its trace pins, where that is counted.
    fn pins(&self) -> Option<Pins>;

    /// Shows all of the point in a segment; `numbers` say what its record does.
    fn show(&self, numbers: Numbers, mirror: &Mirror<'_>);
}

/// What a point shares with those who look at it.
pub(crate) struct Described<T> {
    pub(crate) ids: ArcSwap<Box<[Arc<str>]>>,
    pub(crate) name: Arc<str>,
    pub(crate) cell: Cell<T>,
    pub(crate) pinned: OnceLock<Arc<dyn Pinned>>,
    /// Whether its publisher says what waits in the queues of its imports.
    pub(crate) counts_queues: AtomicBool,
}

impl<T: Distance> Details for Described<T> {
    fn view(&self, numbers: Numbers, now: Duration) -> PointView {
        let snapshot = self.cell.load();
        let holders = snapshot.holders.as_deref();
        let age = |holder: &Holder| HolderView {
            kind: holder.kind,
            label: Arc::clone(&holder.label),
            age: now.saturating_sub(holder.registered),
        };
        let measured = |value| snapshot.upper.is_some().then_some(value);
        let queued = || Queued {
            instructions: numbers.queued_instructions,
            batches: numbers.queued_batches,
        };
        let physical = snapshot.physical.as_ref();
        let gap = |flag, distance| HoldGap { held: numbers.flags.has(flag), distance };
        PointView {
            ids: self.ids.load_full().to_vec(),
            name: Arc::clone(&self.name),
            frozen: numbers.flags.has(Flags::FROZEN),
            gap: gap(Flags::HELD, numbers.gap),
            physical_gap: gap(Flags::PHYSICALLY_HELD, numbers.physical_gap),
            sequence: snapshot.sequence,
            requested: frontier_text(&snapshot.logical.requested),
            applied: frontier_text(&snapshot.logical.applied),
            physical_requested: physical.map(|pair| frontier_text(&pair.requested)),
            physical_applied: physical.map(|pair| frontier_text(&pair.applied)),
            upper: snapshot.upper.as_ref().map(frontier_text),
            lag: measured(numbers.lag),
            slack: measured(numbers.slack),
            stalled: numbers.flags.has(Flags::HELD).then(|| numbers.held_since.until(now)),
            pins: self.pins(),
            queued: self.counts_queues.load(Ordering::Relaxed).then(queued),
            holders: holders.iter().flat_map(|holders| &holders.named).map(age).collect(),
            more_holders: holders.map_or(0, |holders| holders.more),
            ..PointView::default()
        }
    }

    fn pins(&self) -> Option<Pins> {
        self.pinned.get().map(|pinned| pinned.pins())
    }

    fn show(&self, numbers: Numbers, mirror: &Mirror<'_>) {
        mirror.write_names(&self.name, &self.ids.load());
        let snapshot = self.cell.load();
        mirror.write_holders(snapshot.holders.as_deref().unwrap_or(&Holders::default()));
        // The snapshot may be newer than the record: what is shown beside it is measured of it.
        let (numbers, _) = measured(numbers, &snapshot);
        mirror.write(numbers, &snapshot);
    }
}

/// `base` with what a snapshot's frontiers say; and how many of its pairs are invalid.
#[inline]
pub(crate) fn measured<T: Distance>(base: Numbers, snapshot: &Snapshot<T>) -> (Numbers, u64) {
    let upper = snapshot.upper.as_ref();
    let mut invalid = 0;
    let mut gap_of = |pair: &FrontierPair<T>| {
        pair.hold_gap(upper).unwrap_or_else(|_| {
            invalid += 1;
            HoldGap::default()
        })
    };
    let gap = gap_of(&snapshot.logical);
    let physical = snapshot.physical.as_ref().map(gap_of).unwrap_or_default();
    let holders = snapshot.holders.as_ref().filter(|_| gap.held);
    let kinds = holders.map_or_else(HoldKinds::default, |holders| holders.kinds);
    let flags = base.flags.with(Flags::HELD, gap.held);
    let flags = flags.with(Flags::PHYSICALLY_HELD, physical.held).with_kinds(kinds);
    let to_upper = |from| upper.map_or(0, |upper| frontier_distance(from, upper));
    let numbers = Numbers {
        flags,
        gap: gap.distance,
        physical_gap: physical.distance,
        lag: to_upper(&snapshot.logical.applied),
        slack: to_upper(&snapshot.logical.requested),
        ..base
    };
    (numbers, invalid)
}
