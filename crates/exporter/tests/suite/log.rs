use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Exporter, Scratch, Stage};

#[test]
fn nothing_is_logged_while_all_goes_well() {
    let scratch = Scratch::new();
    let stage = Stage::new(&scratch, "app");
    let mut point = Some(stage.hold("u1", "orders", "reader", 10_000));
    for mut exporter in [
        scratch.exporter(&[]),
        Exporter::start(&["--replica.workers", "2", "--replica.slow-reader", "1s"]),
    ] {
        let until = Instant::now() + Duration::from_secs(4);
        while Instant::now() < until {
            for path in ["/metrics", "/", "/api/v1/status", "/api/v1/report", "/-/ready"] {
                exporter.get(path);
            }
            // What is held comes and goes: that is what the gauges are for.
            point = match point.take() {
                Some(_) => None,
                None => Some(stage.hold("u1", "orders", "reader", 10_000)),
            };
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(exporter.log_at_end(), "");
    }
}

/// One that listens on every interface, and what it says of that.
fn everywhere(args: &[&str]) -> String {
    let own = ["--web.listen-address", "0.0.0.0:0", "--replica.workers", "1"];
    Exporter::start_everywhere(&[&own, args].concat()).log_at_end()
}

#[test]
fn an_address_that_others_reach_is_warned_of_once_and_the_log_is_as_asked_for() {
    let log = everywhere(&[]);
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains(" WARN ") && log.contains("--web.config.file"), "{log}");
    let log = everywhere(&["--log.format", "json"]);
    let line: Value = serde_json::from_str(log.trim()).unwrap();
    assert_eq!(line["level"], "WARN");
    assert!(line["fields"]["message"].as_str().unwrap().contains("--web.config.file"), "{log}");
    assert_eq!(everywhere(&["--log.level", "error"]), "");
}
