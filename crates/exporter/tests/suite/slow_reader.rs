use crate::support::Exporter;

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
