//! What a scrape shows, collected when it asks.

use holdgap::{Registry, Scraper};
use metrics_exporter_prometheus::PrometheusBuilder;

use crate::worst;

/// All series of the registry, in Prometheus' text format, and those of each worker's `most` worst
/// arrangements.
///
/// The recorder lives for one scrape and is filled from what the scrape found, so that no series can
/// linger from an earlier one. Takes no lock that a watched runtime needs.
pub(crate) fn metrics(registry: &Registry, scraper: &Scraper, most: usize) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        for report in scraper.reports() {
            report.set_gauges();
        }
        for worker in registry.workers() {
            worst::set_gauges(&registry.options().prefix, &worker.worst(most));
        }
    });
    recorder.handle().render()
}
