//! What a scrape shows, collected when it asks.

use holdgap::Scraper;
use metrics_exporter_prometheus::PrometheusBuilder;

/// All series of the registry, in Prometheus' text format.
///
/// The recorder lives for one scrape and is filled from one pass over the points, so that no series
/// can linger from an earlier one. Takes no lock that a watched runtime needs.
pub(crate) fn metrics(scraper: &Scraper) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        for report in scraper.reports() {
            report.set_gauges();
        }
    });
    recorder.handle().render()
}
