use std::time::{Duration, Instant};

use holdgap::{Registry, RegistryOptions, ReporterOptions, Role, SERIES};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};

use crate::util::at;

fn recorder() -> PrometheusRecorder {
    PrometheusBuilder::new().build_recorder()
}

/// The samples of `recorder`, one a line, without comments.
fn samples(recorder: &PrometheusRecorder) -> Vec<String> {
    let text = recorder.handle().render();
    let sample = |line: &&str| !line.is_empty() && !line.starts_with('#');
    text.lines().filter(sample).map(ToOwned::to_owned).collect()
}

#[test]
fn a_recorder_that_comes_after_everything_else_is_served() {
    let worker = Registry::new().runtime(Role::Maintenance).worker(2);
    let mut point = worker.publish("u1", "orders");
    let reporter = worker.reporter();
    point.set(&at(30), &at(10));
    let now = Instant::now();
    assert_eq!(reporter.tick(now).map(|report| report.hold_gap), Some(20));

    let late = recorder();
    metrics::with_local_recorder(&late, || reporter.tick(now + Duration::from_secs(1)));
    let samples = samples(&late);
    let labels = r#"{role="maintenance",worker_id="2"}"#;
    let expected = [
        format!("mz_compute_shared_arrangement_hold_gap_ms{labels} 20"),
        format!("mz_compute_shared_arrangement_held_count{labels} 1"),
        format!("mz_compute_shared_arrangement_published_count{labels} 1"),
    ];
    assert!(expected.iter().all(|line| samples.contains(line)), "{samples:#?}");
    let report = reporter.report();
    assert_eq!(samples.len(), SERIES.iter().flat_map(|series| series.samples(&report)).count());
}

struct Nothing;

impl holdgap::Pinned for Nothing {
    fn pins(&self) -> holdgap::Pins {
        holdgap::Pins::default()
    }
}

#[test]
fn a_series_that_nothing_measures_is_absent_rather_than_zero() {
    let worker = Registry::new().runtime(Role::Solo).worker(0);
    let mut point = worker.publish("u1", "orders");
    point.set(&at(30), &at(10));
    let shows = |words: &[&str]| {
        let recorder = recorder();
        metrics::with_local_recorder(&recorder, || worker.report().set_gauges());
        let samples = samples(&recorder);
        words.iter().all(|word| samples.iter().any(|line| line.contains(word)))
    };
    let unmeasured = [
        "physical_hold_gap",
        "physically_held",
        "compaction_lag",
        "owner_slack",
        "hold_gap_by_kind",
        "held_by_kind",
        "pinned_batches",
        "pinned_updates",
        "queued_instructions",
        "queued_batches",
    ];
    let holders = std::sync::Arc::new(holdgap::Holders::default());
    assert!(unmeasured.iter().all(|word| !shows(&[word])));
    let pair = holdgap::FrontierPair { requested: at(30), applied: at(10) };
    let upper = at(35);
    let (physical, upper) = (Some(&pair), Some(&upper));
    let (holders, queued) = (Some(&holders), Some(holdgap::Queued::default()));
    point.publish(&holdgap::Frontiers { logical: &pair, physical, upper, holders, queued });
    point.count_pins(std::sync::Arc::new(Nothing));
    assert!(shows(&unmeasured));
    let report = worker.report();
    assert_eq!((report.compaction_lag, report.owner_slack, report.hold_gap), (25, 5, 20));
    drop(point);
    let report = worker.report();
    assert_eq!((report.compaction_lag, report.owner_slack), (0, 0));
    assert!(shows(&unmeasured), "measured, and zero");
}

#[test]
fn solo_has_no_role_label_and_the_prefix_is_the_embedders() {
    let options = RegistryOptions { prefix: "app_".to_owned(), ..RegistryOptions::default() };
    let worker = Registry::with_options(options).runtime(Role::Solo).worker(0);
    let recorder = recorder();
    metrics::with_local_recorder(&recorder, || worker.report().set_gauges());
    let samples = samples(&recorder);
    let zero = r#"app_shared_arrangement_hold_gap_ms{worker_id="0"} 0"#.to_owned();
    assert!(samples.contains(&zero), "{samples:#?}");
    assert!(samples.iter().all(|line| line.starts_with("app_") && !line.contains("role=")));
}

#[test]
fn a_role_with_quotes_and_newlines_is_escaped() {
    let worker = Registry::new().runtime(Role::named("a\"b\nc")).worker(0);
    let recorder = recorder();
    metrics::with_local_recorder(&recorder, || worker.report().set_gauges());
    assert!(samples(&recorder).iter().all(|line| line.contains(r#"role="a\"b\nc""#)));
}

#[test]
fn gauges_go_to_zero_with_the_point_and_with_the_reporter() {
    let worker = Registry::new().runtime(Role::Interactive).worker(0);
    let recorder = recorder();
    metrics::with_local_recorder(&recorder, || {
        let value = |name: &str| {
            let start = format!("mz_compute_shared_arrangement_{name}{{");
            let line = samples(&recorder).into_iter().find(|line| line.starts_with(&start));
            line.and_then(|line| line.rsplit(' ').next().map(ToOwned::to_owned))
        };
        let held = || {
            let mut point = worker.publish("u1", "orders");
            point.set(&at(30), &at(10));
            point
        };
        let reporter = worker.reporter();
        let point = held();
        reporter.report();
        assert_eq!(value("hold_gap_ms").as_deref(), Some("20"));
        drop(point);
        reporter.report();
        assert_eq!(value("hold_gap_ms").as_deref(), Some("0"));
        let _point = held();
        reporter.report();
        assert_eq!(value("held_count").as_deref(), Some("1"));
        drop(reporter);
        assert_eq!(value("held_count").as_deref(), Some("0"));
        assert_eq!(value("published_count").as_deref(), Some("0"));
    });
}

#[test]
fn a_reporter_reports_once_an_interval_at_any_rate_of_ticks() {
    let worker = Registry::new().runtime(Role::Solo).worker(0);
    let interval = Duration::from_secs(5);
    let reporter = worker.reporter_with(ReporterOptions { interval });
    let start = Instant::now() + Duration::from_millis(1);
    let ticks = (0..2_000).map(|tick| start + Duration::from_millis(10) * tick);
    assert_eq!(ticks.filter(|now| reporter.tick(*now).is_some()).count(), 4);
}

#[test]
fn a_panic_of_the_publishing_thread_takes_its_points_out_of_the_report() {
    let worker = Registry::new().runtime(Role::Maintenance).worker(0);
    let publisher = worker.clone();
    let thread = std::thread::spawn(move || {
        let mut point = publisher.publish("u1", "orders");
        point.set(&at(30), &at(10));
        assert_eq!(publisher.report().held, 1);
        std::panic::panic_any("on purpose");
    });
    assert!(thread.join().is_err());
    let report = worker.report();
    assert_eq!((report.held, report.published), (0, 0));
    let point = worker.publish::<u64>("u2", "works on");
    assert_eq!(worker.report().published, 1);
    drop(point);
}
