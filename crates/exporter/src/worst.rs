//! Series of single arrangements: the worst of each worker, while they are held or pin something.

use std::collections::BTreeMap;

use holdgap::PointView;
use metrics::{Key, KeyName, Label, Level, Metadata, Unit};

use crate::text::bounded;

/// A series of single arrangements, labelled by `id` and `name` too.
pub(crate) struct WorstSeries {
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    pub(crate) help: &'static str,
    /// What it shows of a point: each value, with the holder that labels it if one does.
    samples: fn(&PointView) -> Vec<Sample>,
}

type Sample = (Vec<Label>, f64);

fn single(value: Option<f64>) -> Vec<Sample> {
    value.map(|value| (Vec::new(), value)).into_iter().collect()
}

fn live_gap(point: &PointView) -> Vec<Sample> {
    let held = point.gap.held && !point.frozen;
    single(held.then_some(point.gap.distance as f64))
}

fn live_physical_gap(point: &PointView) -> Vec<Sample> {
    let held = point.physical_gap.held && !point.frozen;
    single(held.then_some(point.physical_gap.distance as f64))
}

fn stalled(point: &PointView) -> Vec<Sample> {
    single(point.stalled.filter(|_| !point.frozen).map(|stalled| stalled.as_secs_f64()))
}

fn pinned(count: Option<u64>) -> Vec<Sample> {
    single(count.filter(|count| *count > 0).map(|count| count as f64))
}

fn holders(point: &PointView) -> Vec<Sample> {
    let sample = |holder: &holdgap::HolderView| {
        let kind = Label::from_static_parts("kind", holder.kind.label());
        let labels = vec![kind, Label::new("holder", bounded(&holder.label))];
        (labels, holder.age.as_secs_f64())
    };
    point.holders.iter().map(sample).collect()
}

/// Every series of single arrangements.
pub(crate) const WORST_SERIES: &[WorstSeries] = &[
    WorstSeries {
        name: "shared_arrangement_worst_hold_gap_ms",
        unit: Unit::Milliseconds,
        help: "How far readers hold this arrangement's applied logical compaction frontier behind \
               the requested one, in timestamp units. Only for the worst live arrangements of \
               each worker, and only while they are held.",
        samples: live_gap,
    },
    WorstSeries {
        name: "shared_arrangement_worst_hold_stalled_seconds",
        unit: Unit::Seconds,
        help: "For how long this arrangement has been held where it stands. Only for the worst \
               live arrangements of each worker, and only while they are held.",
        samples: stalled,
    },
    WorstSeries {
        name: "shared_arrangement_worst_physical_hold_gap_ms",
        unit: Unit::Milliseconds,
        help: "How far readers hold this arrangement's applied physical compaction frontier behind \
               the requested one, in timestamp units. Only for the worst live arrangements of \
               each worker, and only while they are held so.",
        samples: live_physical_gap,
    },
    WorstSeries {
        name: "shared_arrangement_worst_pinned_batches",
        unit: Unit::Count,
        help: "How many batches this arrangement has merged away or dropped that others still keep \
               alive. Only for the worst arrangements of each worker, and only while there are \
               any.",
        samples: |point| pinned(point.pins.map(|pins| pins.batches)),
    },
    WorstSeries {
        name: "shared_arrangement_worst_pinned_updates",
        unit: Unit::Count,
        help: "How many updates the batches of shared_arrangement_worst_pinned_batches have.",
        samples: |point| pinned(point.pins.map(|pins| pins.updates)),
    },
    WorstSeries {
        name: "shared_arrangement_holder_age_seconds",
        unit: Unit::Seconds,
        help: "How long ago a holder was registered that holds this arrangement back. Only for the \
               worst arrangements of each worker, for a few holders of each, and only while they \
               bind its applied frontier. Of several holders with one name the oldest counts.",
        samples: holders,
    },
];

/// Sets the series of `points`, one worker's worst, in the current recorder.
pub(crate) fn set_gauges(prefix: &str, points: &[PointView]) {
    metrics::with_recorder(|recorder| {
        let metadata = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));
        for series in WORST_SERIES {
            let name = KeyName::from(format!("{prefix}{}", series.name));
            // Several points may carry one id and one name: of these the largest value counts.
            let mut largest = BTreeMap::<Key, f64>::new();
            for point in points {
                for (labels, value) in (series.samples)(point) {
                    let labels: Vec<Label> = of_point(point).chain(labels).collect();
                    let key = Key::from_parts(name.clone(), labels);
                    let known = largest.entry(key).or_insert(value);
                    *known = known.max(value);
                }
            }
            if !largest.is_empty() {
                recorder.describe_gauge(name, Some(series.unit), series.help.into());
            }
            for (key, value) in largest {
                recorder.register_gauge(&key, &metadata).set(value);
            }
        }
    });
}

fn of_point(point: &PointView) -> impl Iterator<Item = Label> {
    let process = point.process.as_deref().map(|process| Label::new("process", bounded(process)));
    let role = point.role.label().map(|role| Label::new("role", bounded(role)));
    let id = point.ids.first().map(|id| bounded(id)).unwrap_or_default();
    process.into_iter().chain(role).chain([
        Label::new("worker_id", point.worker.to_string()),
        Label::new("id", id),
        Label::new("name", bounded(&point.name)),
    ])
}
