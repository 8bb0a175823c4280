use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Exporter, PATIENCE};

fn of_role<'a>(values: &'a [(String, f64)], role: &str) -> impl Iterator<Item = f64> + use<'a> {
    let role = format!("role=\"{role}\"");
    values.iter().filter(move |(labels, _)| labels.contains(&role)).map(|(_, value)| *value)
}

/// Both gauges, for eight workers and both roles: they move with the reader, and back to zero.
#[test]
fn the_gauges_of_eight_workers_move_with_a_slow_reader_and_back() {
    let exporter = Exporter::start(&["--replica.arrangements", "5", "--replica.slow-reader", "4s"]);
    exporter.wait_until_ready();
    for series in ["shared_arrangement_hold_gap_ms", "shared_arrangement_held_count"] {
        let values = exporter.values(series);
        assert_eq!(of_role(&values, "maintenance").count(), 8, "{values:?}");
        assert_eq!(of_role(&values, "interactive").count(), 8, "{values:?}");
    }
    exporter.wait("shared_arrangement_hold_gap_ms", |values| {
        of_role(values, "maintenance").filter(|gap| *gap >= 500.0).count() == 8
    });
    let held = exporter.values("shared_arrangement_held_count");
    assert!(of_role(&held, "maintenance").all(|held| (1.0..=5.0).contains(&held)), "{held:?}");
    assert!(of_role(&held, "interactive").all(|held| held == 0.0), "it publishes nothing");
    for series in [
        "shared_arrangement_hold_gap_ms",
        "shared_arrangement_held_count",
        "shared_arrangement_physically_held_count",
    ] {
        exporter.wait(series, |values| values.iter().all(|(_, value)| *value == 0.0));
    }
    let published = exporter.values("shared_arrangement_published_count");
    assert!(of_role(&published, "maintenance").all(|count| count == 5.0), "{published:?}");
}

/// What pages have of the slow reader, worker by worker.
fn pages(exporter: &Exporter) -> Vec<Value> {
    let (mut points, mut next) = (Vec::new(), Some("/api/v1/report?limit=3".to_owned()));
    while let Some(page) = next {
        let answer = exporter.get(&page);
        assert_eq!((answer.status, &*answer.content_type), (200, "application/json"));
        let page: Value = serde_json::from_str(&answer.body).unwrap();
        points.extend(page["points"].as_array().unwrap().clone());
        next = page["next"].as_str().map(ToOwned::to_owned);
    }
    points
}

#[test]
fn the_slow_reader_is_named_with_its_age_its_gap_and_what_it_pins_and_then_no_more() {
    let exporter = Exporter::start(&[
        "--replica.workers",
        "2",
        "--replica.arrangements",
        "5",
        "--replica.slow-reader",
        "6s",
    ]);
    exporter.wait_until_ready();
    let deadline = Instant::now() + PATIENCE;
    let named = loop {
        let points = pages(&exporter);
        assert!(points.len() <= 10);
        let is_it = |point: &&Value| {
            let holder = &point["holders"][0];
            holder["label"] == "slow reader of u1" && holder["age_seconds"].as_f64() > Some(1.0)
        };
        let found: Vec<_> = points.iter().filter(is_it).cloned().collect();
        if found.len() == 2 {
            break found;
        }
        assert!(Instant::now() < deadline, "{points:#?}");
        std::thread::sleep(Duration::from_millis(20));
    };
    for point in &named {
        assert_eq!((&point["id"], &point["role"]), (&"u1".into(), &"maintenance".into()));
        assert_eq!(point["holders"][0]["kind"], "reader");
        let gap = point["gap"].as_u64().unwrap();
        let age = point["holders"][0]["age_seconds"].as_f64().unwrap();
        assert!((500..60_000).contains(&gap), "{point}");
        assert!(point["stalled_seconds"].as_f64().unwrap() <= age + 0.2, "{point}");
        assert!(point["physical"]["applied"].is_string(), "{point}");
        assert!(point["queued"]["batches"].is_u64());
    }
    exporter.wait("shared_arrangement_worst_pinned_updates", |values| {
        values.iter().filter(|(labels, _)| labels.contains("id=\"u1\"")).count() == 2
    });
    let metrics = exporter.get("/metrics").body;
    let age = "mz_compute_shared_arrangement_holder_age_seconds";
    let labels = r#"id="u1",name="rows of u1",kind="reader",holder="slow reader of u1""#;
    let line = metrics.lines().find(|line| line.starts_with(age) && line.contains(labels));
    assert!(line.is_some(), "{metrics}");

    while exporter.get("/metrics").body.contains("slow reader")
        || pages(&exporter).iter().any(|point| point.to_string().contains("slow reader"))
    {
        assert!(Instant::now() < deadline, "it lingers");
        std::thread::sleep(Duration::from_millis(50));
    }
    for series in ["shared_arrangement_pinned_batches", "shared_arrangement_pinned_updates"] {
        exporter.wait(series, |values| values.iter().all(|(_, value)| *value == 0.0));
    }
}

#[test]
fn a_page_that_cannot_be_served_is_said_in_one_line() {
    let exporter = Exporter::start(&["--replica.workers", "1", "--replica.arrangements", "1"]);
    for query in
        ["limit=0", "limit=1001", "limit=x", "offset=-1", "page=3", "offset=99999999999999999999"]
    {
        let answer = exporter.get(&format!("/api/v1/report?{query}"));
        assert_eq!(answer.status, 400, "{query}");
        assert_eq!(answer.body.lines().count(), 1);
    }
    let beyond = exporter.get("/api/v1/report?offset=18446744073709551615");
    assert_eq!(beyond.status, 200);
    assert!(beyond.body.contains("\"points\":[]"), "{}", beyond.body);
}
