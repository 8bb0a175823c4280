//! One point as people see it: its names, its frontiers as text, its gaps.

use arc_swap::ArcSwap;
use timely::progress::Timestamp;

use crate::pair::HoldGap;
use crate::record::{Flags, Numbers};
use crate::snapshot::{Cell, frontier_text};
use crate::sync::Arc;

/// One publication point: what it is called, where it stands, how far it is held back.
///
/// The gaps are those of the scan that found the point; the frontiers were loaded a moment later
/// and may be newer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PointView {
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
}

/// What a slot of the table knows of its point, whatever its timestamp type.
pub(crate) trait Details: Send + Sync {
    /// The point as it is now, with the gaps of `numbers`.
    fn view(&self, numbers: Numbers) -> PointView;
}

/// What a point shares with those who look at it.
pub(crate) struct Described<T> {
    pub(crate) ids: ArcSwap<Vec<Arc<str>>>,
    pub(crate) name: Arc<str>,
    pub(crate) cell: Arc<Cell<T>>,
}

impl<T: Timestamp + Sync> Details for Described<T> {
    fn view(&self, numbers: Numbers) -> PointView {
        let snapshot = self.cell.load();
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
        }
    }
}
