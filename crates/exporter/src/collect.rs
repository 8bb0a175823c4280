//! What a scrape shows, collected when it asks.

use std::time::{Duration, Instant};

use holdgap::HoldReport;
use metrics::{Label, Unit};
use metrics_exporter_prometheus::PrometheusBuilder;

use crate::found::{Found, Processes};
use crate::own::Own;
use crate::source::Source;
use crate::worst;

/// All series of what is watched, in Prometheus' text format, and those of each worker's `most` worst
/// arrangements.
///
/// The recorder lives for one scrape and is filled from what the scrape found, so that no series can
/// linger from an earlier one. Takes no lock that a watched runtime needs.
pub(crate) fn metrics(source: &Source, most: usize, own: &Own) -> String {
    own.note_report();
    let start = Instant::now();
    let found = source.look(most);
    render(&found, Some((own, start.elapsed())))
}

/// What one look found, as text; and what the exporter says of itself, whose look took so long.
pub(crate) fn render(found: &Found, own: Option<(&Own, Duration)>) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        if let Some((own, took)) = own {
            let count = |report: &HoldReport| report.published.saturating_add(report.frozen);
            own.set_gauges(took, found.reports.iter().map(count).fold(0, u64::saturating_add));
        }
        for report in &found.reports {
            report.set_gauges();
        }
        for (prefix, points) in &found.worst {
            worst::set_gauges(prefix, points);
        }
        if let Some(processes) = &found.processes {
            set_processes(processes);
        }
    });
    recorder.handle().render()
}

/// What is served of other processes beside their points: name, unit, help.
pub(crate) const PROCESS_SERIES: [(&str, Unit, &str); 4] = [
    (
        "holdgap_segment_up",
        Unit::Count,
        "1 if the process lives, 0 if it has ended: what is served of it is then as it was at its \
         end.",
    ),
    (
        "holdgap_segment_heartbeat_age_seconds",
        Unit::Seconds,
        "How long ago the process last said that it lives, which it does once a second.",
    ),
    (
        "holdgap_segment_not_shown_count",
        Unit::Count,
        "How many points of the process its segment has no room for: they are in none of its \
         series.",
    ),
    (
        "holdgap_segment_unreadable_total",
        Unit::Count,
        "How often a file in a folder of segments could not be read, by the reason. The log says \
         which one.",
    ),
];

fn set_processes(processes: &Processes) {
    let [up, age, not_shown, unreadable] = PROCESS_SERIES;
    for (name, unit, help) in [up, age, not_shown] {
        metrics::describe_gauge!(name, unit, help);
    }
    for process in &processes.seen {
        let labels = vec![Label::new("process", process.label.clone())];
        metrics::gauge!(up.0, labels.clone()).set(if process.up { 1.0 } else { 0.0 });
        metrics::gauge!(age.0, labels.clone()).set(process.since_heartbeat.as_secs_f64());
        metrics::gauge!(not_shown.0, labels).set(process.not_shown as f64);
    }
    metrics::describe_counter!(unreadable.0, unreadable.1, unreadable.2);
    for (reason, count) in &processes.unreadable {
        metrics::counter!(unreadable.0, "reason" => *reason).absolute(*count);
    }
}
