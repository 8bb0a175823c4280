//! Every series that a report sets: the words that `docs/metrics.yml` says of it, in code.

use metrics::Unit;

use crate::kind::HoldKind;
use crate::report::HoldReport;

/// Whether a series goes up and down or only up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesKind {
    /// Goes up and down.
    Gauge,
    /// Only goes up.
    Counter,
}

/// One series of a report, labelled by `role` (absent for solo) and `worker_id`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Series {
    /// The name, to be put behind the registry's prefix.
    pub name: &'static str,
    /// Whether it goes up and down or only up.
    pub kind: SeriesKind,
    /// What it counts.
    pub unit: Unit,
    /// What it means, and what it does not measure.
    pub help: &'static str,
    /// What it shows of a report.
    pub value: Value,
}

/// What a series shows of a report; `None` while no publisher of the worker says what it would
/// measure.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// One value.
    Single(fn(&HoldReport) -> Option<f64>),
    /// A value for each kind of holder, under the label `kind`.
    ByKind(fn(&HoldReport, HoldKind) -> Option<f64>),
}

impl Series {
    /// What the series shows of `report`: each value, with the kind that labels it if one does.
    pub fn samples(&self, report: &HoldReport) -> Vec<(Option<HoldKind>, f64)> {
        match self.value {
            Value::Single(value) => value(report).map(|value| (None, value)).into_iter().collect(),
            Value::ByKind(value) => {
                let of_kind = |kind| value(report, kind).map(|value| (Some(kind), value));
                HoldKind::ALL.into_iter().filter_map(of_kind).collect()
            }
        }
    }
}

const fn gauge(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    value: fn(&HoldReport) -> Option<f64>,
) -> Series {
    Series { name, kind: SeriesKind::Gauge, unit, help, value: Value::Single(value) }
}

const fn by_kind(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    value: fn(&HoldReport, HoldKind) -> Option<f64>,
) -> Series {
    Series { name, kind: SeriesKind::Gauge, unit, help, value: Value::ByKind(value) }
}

/// Every series that a report sets, in the order of their importance.
pub const SERIES: &[Series] = &[
    gauge(
        "shared_arrangement_hold_gap_ms",
        Unit::Milliseconds,
        "Largest distance by which readers hold the applied logical compaction frontier of one of \
         this worker's live points behind the requested one, in timestamp units (milliseconds on \
         an epoch-millisecond timeline). It does not measure physical holds (see \
         shared_arrangement_physical_hold_gap_ms), frozen points (see \
         shared_arrangement_frozen_held_count), or how long the gap has lasted.",
        |report| Some(report.hold_gap as f64),
    ),
    gauge(
        "shared_arrangement_held_count",
        Unit::Count,
        "How many of this worker's live points have an applied logical compaction frontier that \
         readers hold behind the requested one. It does not count points that are held physically \
         only (see shared_arrangement_physically_held_count) or frozen points (see \
         shared_arrangement_frozen_held_count).",
        |report| Some(report.held as f64),
    ),
    gauge(
        "shared_arrangement_published_count",
        Unit::Count,
        "How many live points this worker publishes: traces whose writer is open, each counted \
         once however many ids it has. Frozen points are in shared_arrangement_frozen_count.",
        |report| Some(report.published as f64),
    ),
    gauge(
        "shared_arrangement_hold_gap_peak_ms",
        Unit::Milliseconds,
        "Largest value of shared_arrangement_hold_gap_ms since the report before, in timestamp \
         units: a gap that came and went between two reports shows here. It does not say for how \
         long it lasted.",
        |report| report.hold_gap_peak.map(|peak| peak as f64),
    ),
    gauge(
        "shared_arrangement_hold_stalled_seconds",
        Unit::Seconds,
        "Longest wall time for which the applied logical compaction frontier of one of this \
         worker's held live points has not moved, counted from when the point came to be held. \
         A reader that hangs shows here even when its gap is small. It does not say how far the \
         point is held back (see shared_arrangement_hold_gap_ms).",
        |report| Some(report.hold_stalled.as_secs_f64()),
    ),
    by_kind(
        "shared_arrangement_hold_gap_by_kind_ms",
        Unit::Milliseconds,
        "Largest value of shared_arrangement_hold_gap_ms over the points that holders of this \
         kind bind: at least one of them stands at the applied frontier. The largest over the \
         kinds is the hold gap itself. It does not show a kind that holds less far back than \
         another one does.",
        |report, kind| report.measures.holders.then_some(report.by_kind(kind).hold_gap as f64),
    ),
    by_kind(
        "shared_arrangement_held_by_kind_count",
        Unit::Count,
        "How many of this worker's live points holders of this kind bind. A point that several \
         kinds bind counts for each.",
        |report, kind| report.measures.holders.then_some(report.by_kind(kind).held as f64),
    ),
    gauge(
        "shared_arrangement_physical_hold_gap_ms",
        Unit::Milliseconds,
        "Largest distance by which readers hold the applied physical compaction frontier of one of \
         this worker's live points behind the requested one, in timestamp units: batches between \
         the two are not merged. It does not measure logical holds.",
        |report| report.measures.physical.then_some(report.physical_hold_gap as f64),
    ),
    gauge(
        "shared_arrangement_physically_held_count",
        Unit::Count,
        "How many of this worker's live points have an applied physical compaction frontier that \
         readers hold behind the requested one.",
        |report| report.measures.physical.then_some(report.physically_held as f64),
    ),
    gauge(
        "shared_arrangement_pinned_batches",
        Unit::Count,
        "How many batches this worker's traces have merged away or dropped that others still keep \
         alive: a reader's chain, a cursor's storage, the queue of an import. Over live and \
         frozen points.",
        |report| report.measures.pins.then_some(report.pins.batches as f64),
    ),
    gauge(
        "shared_arrangement_pinned_updates",
        Unit::Count,
        "How many updates the batches of shared_arrangement_pinned_batches have: multiplied by \
         what an update takes, the memory that readers pin. It does not count bytes.",
        |report| report.measures.pins.then_some(report.pins.updates as f64),
    ),
    gauge(
        "shared_arrangement_queued_instructions",
        Unit::Count,
        "How much waits in the queues of the imports of this worker's points that they have yet \
         to take in: batches, and an advance of the upper for each import that has not seen it. \
         An import that never drains grows here. Over live and frozen points.",
        |report| report.measures.queues.then_some(report.queued.instructions as f64),
    ),
    gauge(
        "shared_arrangement_queued_batches",
        Unit::Count,
        "How many batches wait in the queues of the imports of this worker's points. A batch that \
         waits for several imports counts for each.",
        |report| report.measures.queues.then_some(report.queued.batches as f64),
    ),
    gauge(
        "shared_arrangement_compaction_lag_ms",
        Unit::Milliseconds,
        "Largest distance from the applied logical compaction frontier of one of this worker's \
         live points to the times its trace has sealed, in timestamp units: all the history that \
         is kept apart, whoever keeps it. The part that readers keep is in \
         shared_arrangement_hold_gap_ms, the owner's own in shared_arrangement_owner_slack_ms.",
        |report| report.measures.lag.then_some(report.compaction_lag as f64),
    ),
    gauge(
        "shared_arrangement_owner_slack_ms",
        Unit::Milliseconds,
        "Largest distance from the requested logical compaction frontier of one of this worker's \
         live points to the times its trace has sealed, in timestamp units: history that the \
         trace's own handles have not let go of. It does not measure what readers hold.",
        |report| report.measures.lag.then_some(report.owner_slack as f64),
    ),
    gauge(
        "shared_arrangement_frozen_count",
        Unit::Count,
        "How many of this worker's points have a closed writer: they stay readable and publish no \
         new data. They are in none of the series above.",
        |report| Some(report.frozen as f64),
    ),
    gauge(
        "shared_arrangement_frozen_held_count",
        Unit::Count,
        "How many of this worker's frozen points readers still hold back.",
        |report| Some(report.frozen_held as f64),
    ),
    gauge(
        "shared_arrangement_frozen_hold_gap_ms",
        Unit::Milliseconds,
        "Largest distance by which readers hold the applied logical compaction frontier of one of \
         this worker's frozen points behind the requested one, in timestamp units.",
        |report| Some(report.frozen_hold_gap as f64),
    ),
    Series {
        name: "shared_arrangement_invalid_pairs_total",
        kind: SeriesKind::Counter,
        unit: Unit::Count,
        help: "How often this worker published a pair whose applied frontier was not less or equal \
               to its requested one. Such a pair is left out of the gauges; it is a fault of the \
               publisher.",
        value: Value::Single(|report| Some(report.invalid_pairs as f64)),
    },
];
