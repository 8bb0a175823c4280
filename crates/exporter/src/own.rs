//! What the exporter says of itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use metrics::Unit;
use rustix::process::{Resource, getrlimit};

/// The exporter's own series: name, unit, whether a counter, help.
pub(crate) const OWN_SERIES: [(&str, Unit, bool, &str); 6] = [
    (
        "holdgap_exporter_build_info",
        Unit::Count,
        false,
        "Always 1: the version of the exporter is its label.",
    ),
    (
        "holdgap_exporter_scrape_duration_seconds",
        Unit::Seconds,
        false,
        "How long it took to find what this scrape shows. Rendering and sending it is not in it.",
    ),
    (
        "holdgap_exporter_points",
        Unit::Count,
        false,
        "How many points this scrape found, live and frozen, over all workers and processes.",
    ),
    (
        "holdgap_exporter_reports_total",
        Unit::Count,
        true,
        "How often the points were looked at: once for each scrape that was not throttled, and \
         once a second for the status page.",
    ),
    (
        "holdgap_exporter_reports_throttled_total",
        Unit::Count,
        true,
        "How many scrapes were answered with what another one was finding at the same moment.",
    ),
    (
        "holdgap_exporter_last_sample_age_seconds",
        Unit::Seconds,
        false,
        "How long ago the points were last looked at for the status page, which is done once a \
         second.",
    ),
];

/// What the exporter counts of its own doing.
pub(crate) struct Own {
    reports: AtomicU64,
    throttled: AtomicU64,
    began: Instant,
    /// When the status page's sample was last taken, in milliseconds after `began`.
    sampled: AtomicU64,
    process: metrics_process::Collector,
}

impl Own {
    pub(crate) fn new() -> Self {
        Own {
            reports: AtomicU64::new(0),
            throttled: AtomicU64::new(0),
            began: Instant::now(),
            sampled: AtomicU64::new(0),
            process: metrics_process::Collector::default(),
        }
    }

    // Relaxed throughout: counts that nothing else depends on.

    pub(crate) fn note_report(&self) {
        self.reports.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_throttled(&self) {
        self.throttled.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_sample(&self) {
        self.note_report();
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.sampled.store(now, Ordering::Relaxed);
    }

    /// Sets the series in the current recorder, for a look that took so long and found so much.
    pub(crate) fn set_gauges(&self, took: Duration, points: u64) {
        for (name, unit, counts, help) in OWN_SERIES {
            if counts {
                metrics::describe_counter!(name, unit, help);
            } else {
                metrics::describe_gauge!(name, unit, help);
            }
        }
        let [info, duration, seen, reports, throttled, sampled] = OWN_SERIES.map(|(name, ..)| name);
        metrics::gauge!(info, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        metrics::gauge!(duration).set(took.as_secs_f64());
        metrics::gauge!(seen).set(points as f64);
        metrics::counter!(reports).absolute(self.reports.load(Ordering::Relaxed));
        metrics::counter!(throttled).absolute(self.throttled.load(Ordering::Relaxed));
        let last = Duration::from_millis(self.sampled.load(Ordering::Relaxed));
        metrics::gauge!(sampled).set(self.began.elapsed().saturating_sub(last).as_secs_f64());
        self.process.describe();
        self.process.collect();
        // No limit is not a limit of nothing.
        for (name, limit) in [
            ("process_max_fds", Resource::Nofile),
            ("process_virtual_memory_max_bytes", Resource::As),
        ] {
            if getrlimit(limit).current.is_none() {
                metrics::gauge!(name).set(f64::INFINITY);
            }
        }
    }
}
