use std::time::Duration;

use serde_json::Value;

use crate::catalogue::check_processes;
use crate::support::{Exporter, Scratch, example, output};

fn sum(values: &[(String, f64)]) -> f64 {
    values.iter().map(|(_, value)| value).sum()
}

/// The value of a series that carries no prefix, for one process.
fn of_process(exporter: &Exporter, series: &str, process: &str) -> Option<f64> {
    let start = format!("{series}{{process=\"{process}\"}} ");
    let metrics = exporter.get("/metrics").body;
    metrics.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok())
}

/// The walk of `docs/operations.md`: a program, an exporter beside it, a kill, and who it was.
#[test]
fn a_killed_process_names_who_held_it_back() {
    let scratch = Scratch::new();
    let mut app = scratch.run(&example("embedded_app"), &[]);
    let process = format!("embedded_app:{}", app.pid());
    let exporter = scratch.exporter(&[]);
    let expected = format!("1 process attached (embedded_app, pid {}, ", app.pid());
    assert!(exporter.banner.contains(&expected), "{}", exporter.banner);
    assert_eq!(exporter.get("/-/ready").status, 200);
    exporter.wait("shared_arrangement_hold_gap_ms", |values| {
        values.iter().any(|(labels, gap)| labels.contains(&process) && *gap >= 1_000.0)
    });
    let series = "shared_arrangement_holder_age_seconds";
    exporter.wait(series, |values| {
        values.iter().any(|(labels, _)| labels.contains(r#"holder="nightly report""#))
    });
    assert_eq!(of_process(&exporter, "holdgap_segment_up", &process), Some(1.0));
    let age = of_process(&exporter, "holdgap_segment_heartbeat_age_seconds", &process);
    assert!(age < Some(30.0), "{age:?}");

    app.kill();
    assert_eq!(of_process(&exporter, "holdgap_segment_up", &process), Some(0.0));
    let gaps = exporter.values("shared_arrangement_hold_gap_ms");
    let holders = exporter.values(series);
    assert!(gaps[0].1 >= 1_000.0, "its last state is served: {gaps:?}");
    std::thread::sleep(Duration::from_millis(1_100));
    assert_eq!(exporter.values("shared_arrangement_hold_gap_ms"), gaps, "and stays as it was");
    assert_eq!(exporter.values(series), holders);
    let page: Value = serde_json::from_str(&exporter.get("/api/v1/report").body).unwrap();
    assert_eq!(page["points"][0]["process"], process.as_str());
    assert_eq!(page["points"][0]["holders"][0]["label"], "nightly report");

    let inspected = output(&["inspect", scratch.text()]);
    let text = String::from_utf8(inspected.stdout).unwrap();
    assert!(inspected.status.success(), "{text}");
    let lines: Vec<_> = text.lines().collect();
    let ended = format!("embedded_app (pid {}) ended; last heartbeat ", app.pid());
    assert!(lines[0].starts_with(&ended), "{text}");
    assert!(lines[1].starts_with("1 of 1 points held, worst gap "), "{text}");
    assert!(lines[2].starts_with("ARRANGEMENT"), "{text}");
    assert!(lines[3].starts_with("u1 ") && lines[3].contains("reader nightly report, "), "{text}");

    // The same of the file alone, wherever it was copied to, as JSON.
    let copy = std::env::temp_dir().join(format!("copied-{}.holdgap", app.pid()));
    let file = std::fs::read_dir(&scratch.0).unwrap().next().unwrap().unwrap().path();
    std::fs::copy(file, &copy).unwrap();
    let inspected = output(&["inspect", "--json", copy.to_str().unwrap()]);
    std::fs::remove_file(&copy).unwrap();
    let document: Value = serde_json::from_slice(&inspected.stdout).unwrap();
    let shown = &document["processes"][0];
    assert_eq!((&shown["name"], &shown["up"]), (&"embedded_app".into(), &false.into()));
    assert_eq!(shown["points"][0]["holders"][0]["kind"], "reader");
    assert_eq!(shown["points"][0]["gap"].as_f64(), Some(gaps[0].1));
}

#[test]
fn the_last_state_goes_when_it_has_been_kept_for_as_long_as_asked() {
    let scratch = Scratch::new();
    let mut app = scratch.run(&example("embedded_app"), &[]);
    let exporter = scratch.exporter(&["--attach.keep", "1s"]);
    exporter.wait("shared_arrangement_published_count", |values| sum(values) == 1.0);
    app.kill();
    exporter.wait("shared_arrangement_published_count", <[_]>::is_empty);
    assert_eq!(scratch.files(), 0);
    let metrics = exporter.get("/metrics").body;
    assert!(!metrics.contains("process="), "{metrics}");
    // A process that comes later is found.
    let _later = scratch.run(&example("embedded_app"), &[]);
    exporter.wait("shared_arrangement_published_count", |values| sum(values) == 1.0);
}

#[test]
fn files_that_cannot_be_read_are_counted_and_said_and_harm_nobody() {
    let scratch = Scratch::new();
    let _app = scratch.run(&example("embedded_app"), &[]);
    std::fs::write(scratch.0.join("0-empty.holdgap"), b"").unwrap();
    std::fs::write(scratch.0.join("9-other.holdgap"), vec![7; 200_000]).unwrap();
    let mut exporter = scratch.exporter(&[]);
    exporter.wait("shared_arrangement_published_count", |values| sum(values) == 1.0);
    let metrics = exporter.get("/metrics").body;
    check_processes(&metrics);
    let count = |reason: &str| {
        let start = format!("holdgap_segment_unreadable_total{{reason=\"{reason}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&start)?.parse::<f64>().ok())
    };
    assert!(count("short") >= Some(1.0) && count("corrupt") >= Some(1.0), "{metrics}");
    for _ in 0..20 {
        exporter.get("/metrics");
    }
    let log = exporter.log_at_end();
    let said = log.lines().filter(|line| line.contains(" WARN ")).collect::<Vec<_>>();
    assert_eq!(said.len(), 2, "each once: {log}");
    assert!(said[0].contains("0-empty.holdgap: it ends before it should"), "{log}");
    assert!(said[1].contains("9-other.holdgap: it is no segment"), "{log}");
}

#[test]
fn two_processes_of_a_cluster_are_shown_side_by_side_and_sums_over_them_are_right() {
    let scratch = Scratch::new();
    let cluster = example("cluster");
    let ports: Vec<_> = (0..2)
        .map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap())
        .map(|listener| listener.local_addr().unwrap().to_string())
        .collect();
    std::fs::create_dir(&scratch.0).unwrap();
    let hosts = scratch.0.join("hosts");
    std::fs::write(&hosts, ports.join("\n") + "\n").unwrap();
    let hosts = hosts.to_str().unwrap();
    let processes = ["0", "1"].map(|p| scratch.run(&cluster, &["-n", "2", "-p", p, "-h", hosts]));
    let exporter = scratch.exporter(&[]);
    exporter.wait("shared_arrangement_hold_gap_ms", |values| {
        values.len() == 2 && values.iter().any(|(_, gap)| *gap > 10.0)
    });
    let held = exporter.values("shared_arrangement_held_count");
    let straggler = format!("cluster:{}", processes[1].pid());
    for (labels, value) in &held {
        // The other's reader trails by a step at most, and only for a moment.
        assert!(!labels.contains(&straggler) || *value == 1.0, "{held:?}");
    }
    assert_eq!(sum(&exporter.values("shared_arrangement_published_count")), 2.0);
    let workers: Vec<_> =
        held.iter().map(|(labels, _)| labels.contains("worker_id=\"1\"")).collect();
    assert_eq!(workers.iter().filter(|last| **last).count(), 1, "{held:?}");
    exporter.wait("shared_arrangement_holder_age_seconds", |values| {
        let named = |(labels, _): &(String, f64)| {
            labels.contains(&straggler) && labels.contains("reader of worker 1")
        };
        values.iter().any(named)
    });
}

#[test]
fn folders_that_cannot_be_watched_are_said_in_one_line() {
    let complaint = |args: &[&str], code| {
        let output = output(args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    };
    let serve = ["--web.listen-address", "127.0.0.1:0", "--attach"];
    let text = complaint(&[&serve[..], &["/nowhere"]].concat(), 1);
    assert_eq!(
        text.trim(),
        "error: /nowhere: no such folder; a process makes it when it runs with \
         HOLDGAP_SEGMENT_DIR=/nowhere"
    );
    let text = complaint(&[&serve[..], &["/tmp"]].concat(), 1);
    assert!(text.contains("others may write to it"), "{text}");
    let text = complaint(&["--attach", "/nowhere", "--replica.workers", "2"], 2);
    assert!(text.contains("--replica.workers"), "{text}");
    complaint(&["--attach.keep", "1h"], 2);
    complaint(&["inspect"], 2);
    complaint(&["inspect", "/nowhere"], 1);
    complaint(&["inspect", env!("CARGO_MANIFEST_DIR")], 1);
    let text = complaint(&["inspect", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")], 1);
    assert!(text.contains("Cargo.toml: it ends before it should"), "{text}");
}
