//! Every series that a report sets: the words that `docs/metrics.yml` says of it, in code.

use metrics::Unit;

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
    /// Its value in a report; `None` while no publisher of the worker says what it would measure.
    pub value: fn(&HoldReport) -> Option<u64>,
}

const fn gauge(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    value: fn(&HoldReport) -> Option<u64>,
) -> Series {
    Series { name, kind: SeriesKind::Gauge, unit, help, value }
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
        |report| Some(report.hold_gap),
    ),
    gauge(
        "shared_arrangement_held_count",
        Unit::Count,
        "How many of this worker's live points have an applied logical compaction frontier that \
         readers hold behind the requested one. It does not count points that are held physically \
         only (see shared_arrangement_physically_held_count) or frozen points (see \
         shared_arrangement_frozen_held_count).",
        |report| Some(report.held),
    ),
    gauge(
        "shared_arrangement_published_count",
        Unit::Count,
        "How many live points this worker publishes: traces whose writer is open, each counted \
         once however many ids it has. Frozen points are in shared_arrangement_frozen_count.",
        |report| Some(report.published),
    ),
    gauge(
        "shared_arrangement_hold_gap_peak_ms",
        Unit::Milliseconds,
        "Largest value of shared_arrangement_hold_gap_ms since the report before, in timestamp \
         units: a gap that came and went between two reports shows here. It does not say for how \
         long it lasted.",
        |report| report.hold_gap_peak,
    ),
    gauge(
        "shared_arrangement_physical_hold_gap_ms",
        Unit::Milliseconds,
        "Largest distance by which readers hold the applied physical compaction frontier of one of \
         this worker's live points behind the requested one, in timestamp units: batches between \
         the two are not merged. It does not measure logical holds.",
        |report| report.measures_physical.then_some(report.physical_hold_gap),
    ),
    gauge(
        "shared_arrangement_physically_held_count",
        Unit::Count,
        "How many of this worker's live points have an applied physical compaction frontier that \
         readers hold behind the requested one.",
        |report| report.measures_physical.then_some(report.physically_held),
    ),
    gauge(
        "shared_arrangement_compaction_lag_ms",
        Unit::Milliseconds,
        "Largest distance from the applied logical compaction frontier of one of this worker's \
         live points to the times its trace has sealed, in timestamp units: all the history that \
         is kept apart, whoever keeps it. The part that readers keep is in \
         shared_arrangement_hold_gap_ms, the owner's own in shared_arrangement_owner_slack_ms.",
        |report| report.measures_lag.then_some(report.compaction_lag),
    ),
    gauge(
        "shared_arrangement_owner_slack_ms",
        Unit::Milliseconds,
        "Largest distance from the requested logical compaction frontier of one of this worker's \
         live points to the times its trace has sealed, in timestamp units: history that the \
         trace's own handles have not let go of. It does not measure what readers hold.",
        |report| report.measures_lag.then_some(report.owner_slack),
    ),
    gauge(
        "shared_arrangement_frozen_count",
        Unit::Count,
        "How many of this worker's points have a closed writer: they stay readable and publish no \
         new data. They are in none of the series above.",
        |report| Some(report.frozen),
    ),
    gauge(
        "shared_arrangement_frozen_held_count",
        Unit::Count,
        "How many of this worker's frozen points readers still hold back.",
        |report| Some(report.frozen_held),
    ),
    gauge(
        "shared_arrangement_frozen_hold_gap_ms",
        Unit::Milliseconds,
        "Largest distance by which readers hold the applied logical compaction frontier of one of \
         this worker's frozen points behind the requested one, in timestamp units.",
        |report| Some(report.frozen_hold_gap),
    ),
    Series {
        name: "shared_arrangement_invalid_pairs_total",
        kind: SeriesKind::Counter,
        unit: Unit::Count,
        help: "How often this worker published a pair whose applied frontier was not less or equal \
               to its requested one. Such a pair is left out of the gauges; it is a fault of the \
               publisher.",
        value: |report| Some(report.invalid_pairs),
    },
];
