use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Exporter, PATIENCE, Scratch, Secured, example};

fn docs(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(path)
}

/// What promtool says of a file of the documents; it ends well.
fn promtool(args: &[&str], file: &str) -> String {
    let mut command = Command::new("promtool");
    let output = command.args(args).arg(docs(file)).output().expect("bash .ci/test installs it");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

/// A Prometheus of the test's own, which scrapes every second; ended with this value.
struct Prometheus {
    child: Child,
    url: String,
    _data: Scratch,
}

impl Prometheus {
    /// Starts one with the alerts of the documents, and jobs as its configuration has them.
    fn start(jobs: &str) -> Self {
        let data = Scratch::on_disk();
        std::fs::create_dir(&data.0).unwrap();
        let rules = docs("prometheus/holdgap.rules.yml").canonicalize().unwrap();
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: [{}]\n\
             scrape_configs:\n{jobs}",
            rules.display()
        );
        let file = data.0.join("prometheus.yml");
        std::fs::write(&file, config).unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            // It cannot pick a port by itself. One that is taken meanwhile ends it.
            let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let mut command = Command::new("prometheus");
            command
                .arg(format!("--config.file={}", file.display()))
                .arg(format!("--storage.tsdb.path={}", data.0.join("data").display()))
                .arg(format!("--web.listen-address={free}"))
                .arg("--log.level=warn")
                .stdin(Stdio::null());
            let mut child = command.spawn().expect("prometheus: bash .ci/test installs it");
            let url = format!("http://{free}");
            while child.try_wait().unwrap().is_none() {
                if ureq::get(format!("{url}/-/ready")).call().is_ok() {
                    return Prometheus { child, url, _data: data };
                }
                assert!(Instant::now() < deadline, "it is not ready");
                std::thread::sleep(Duration::from_millis(50));
            }
            assert!(Instant::now() < deadline, "it ends at once");
        }
    }

    fn ask(&self, path: &str, query: &[(&str, &str)]) -> Value {
        let mut request = ureq::get(format!("{}/api/v1/{path}", self.url));
        for (name, value) in query {
            request = request.query(name, value);
        }
        let answer: Value = request.call().unwrap().body_mut().read_json().unwrap();
        assert_eq!(answer["status"], "success", "{answer}");
        answer["data"].clone()
    }

    /// The samples of an expression now: labels, and value.
    fn query(&self, expr: &str) -> Vec<(Value, f64)> {
        let data = self.ask("query", &[("query", expr)]);
        let sample = |sample: &Value| {
            (sample["metric"].clone(), sample["value"][1].as_str().unwrap().parse().unwrap())
        };
        data["result"].as_array().unwrap().iter().map(sample).collect()
    }

    fn wait(&self, expr: &str, is_so: impl Fn(&[(Value, f64)]) -> bool) -> Vec<(Value, f64)> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let samples = self.query(expr);
            if is_so(&samples) {
                return samples;
            }
            if Instant::now() > deadline {
                let targets = self.ask("targets", &[]);
                panic!("{expr} stays at {samples:?}; {targets:#}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn host(exporter: &Exporter) -> &str {
    exporter.url.split_once("://").unwrap().1
}

/// Each expression of the dashboard, with the title of its panel.
fn expressions() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(docs("grafana/holdgap.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut found = Vec::new();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let variables: Vec<_> =
        variables.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        let targets = panel["targets"].as_array();
        assert_eq!(targets.is_none(), panel["type"] == "row", "{title}");
        for target in targets.into_iter().flatten() {
            // As Grafana does where all is chosen.
            let mut expr = target["expr"].as_str().unwrap().replace("$__rate_interval", "30s");
            for variable in &variables {
                expr = expr.replace(&format!("${variable}"), ".*");
            }
            assert!(!expr.contains('$'), "{expr}");
            found.push((title.to_owned(), expr));
        }
    }
    found
}

/// A real Prometheus scrapes a replica, a process from outside and an exporter behind TLS and a
/// password: the gauges are there, the rules are in force, each panel has data, the dead process is
/// said.
#[test]
fn a_prometheus_that_scrapes_it_knows_the_gauges_draws_each_panel_and_alerts() {
    let scratch = Scratch::new();
    let mut app = scratch.run(&example("embedded_app"), &[]);
    let outside = scratch.exporter(&[]);
    let secured = Secured::new();
    let replica = secured.exporter(&["--replica.slow-reader", "100s"]);
    let jobs = format!(
        "- job_name: holdgap-outside\n  static_configs: [{{targets: ['{}']}}]\n\
         - job_name: holdgap-replica\n  scheme: https\n  tls_config: {{ca_file: '{}'}}\n  \
         basic_auth: {{username: prometheus, password: '{}'}}\n  \
         static_configs: [{{targets: ['{}']}}]\n",
        host(&outside),
        secured.ca(),
        Secured::PASSWORD,
        host(&replica)
    );
    let prometheus = Prometheus::start(&jobs);
    prometheus.wait("up", |up| up.len() == 2 && up.iter().all(|(_, up)| *up == 1.0));

    let gap = "mz_compute_shared_arrangement_hold_gap_ms";
    let expr = format!("{gap}{{job=\"holdgap-replica\",role=\"maintenance\"}}");
    let held =
        prometheus.wait(&expr, |gaps| gaps.iter().filter(|(_, gap)| *gap > 500.0).count() == 2);
    let workers: BTreeSet<_> =
        held.iter().map(|(labels, _)| labels["worker_id"].as_str().unwrap()).collect();
    assert_eq!(workers, BTreeSet::from(["0", "1"]));
    let count =
        "mz_compute_shared_arrangement_held_count{job=\"holdgap-replica\",role=\"maintenance\"}";
    assert!(prometheus.query(count).iter().all(|(_, count)| *count >= 1.0));
    let ages = "mz_compute_shared_arrangement_holder_age_seconds";
    prometheus.wait(ages, |ages| {
        let held_by = |name: &str| ages.iter().any(|(labels, _)| labels["holder"] == name);
        held_by("slow reader of u1") && held_by("nightly report")
    });
    // It asks for OpenMetrics and for gzip, and knows each family's type by them.
    let metadata = prometheus.ask("metadata", &[]);
    assert_eq!(metadata[gap][0]["type"], "gauge", "{metadata}");
    assert_eq!(metadata["holdgap_exporter_reports"][0]["type"], "counter", "{metadata}");

    for (title, expr) in expressions() {
        prometheus.wait(&expr, |samples| {
            assert!(samples.iter().all(|(_, value)| !value.is_nan()), "{title}");
            !samples.is_empty()
        });
    }
    let recorded =
        "role:shared_arrangement_hold_gap_ms:max{job=\"holdgap-replica\",role=\"maintenance\"}";
    prometheus.wait(recorded, |gaps| gaps.len() == 1 && gaps[0].1 > 500.0);

    app.kill();
    let firing = "ALERTS{alertname=\"HoldgapProcessDown\",alertstate=\"firing\"}";
    let alerts = prometheus.wait(firing, |alerts| alerts.len() == 1);
    assert_eq!(alerts[0].0["process"], format!("embedded_app:{}", app.pid()));
    let alerts = prometheus.ask("alerts", &[]);
    let ended = alerts["alerts"].as_array().unwrap();
    let ended = ended.iter().find(|alert| alert["labels"]["alertname"] == "HoldgapProcessDown");
    let summary = ended.unwrap()["annotations"]["summary"].as_str().unwrap();
    assert!(summary.contains("at its end: ") && summary.ends_with(" ms"), "{summary}");
}

/// Prometheus' linter has two rules that the names which this system is known by do not keep: see the
/// head of `docs/metrics.yml`. Nothing else is excused.
#[test]
fn promtool_finds_nothing_in_a_scrape_but_the_units_that_are_in_the_names() {
    use std::io::Write;
    let exporter = Exporter::start(&["--replica.workers", "1", "--replica.arrangements", "2"]);
    exporter.wait_until_ready();
    let metrics = exporter.get("/metrics").body;
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).spawn().expect("bash .ci/test installs it");
    child.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let is_excused = |line: &&str| {
        let Some((name, what)) = line.split_once(' ') else { return false };
        name.starts_with("mz_compute_shared_arrangement_")
            && (name.ends_with("_ms")
                && what == "metric names should not contain abbreviated units"
                || name.ends_with("_count")
                    && what
                        == "non-histogram and non-summary metrics should not have \"_count\" suffix")
    };
    let other: Vec<_> = said.lines().filter(|line| !is_excused(line)).collect();
    assert!(other.is_empty(), "{other:?}");
    assert!(said.contains("mz_compute_shared_arrangement_hold_gap_ms"), "it looked: {said}");
}

#[test]
fn the_rules_fire_when_they_should_and_not_otherwise_and_each_has_a_runbook() {
    let checked = promtool(&["check", "rules"], "prometheus/holdgap.rules.yml");
    assert!(checked.contains("SUCCESS"), "{checked}");
    let tested = promtool(&["test", "rules"], "prometheus/holdgap.rules.test.yml");
    assert!(tested.contains("SUCCESS"), "{tested}");

    let rules = std::fs::read_to_string(docs("prometheus/holdgap.rules.yml")).unwrap();
    let tests = std::fs::read_to_string(docs("prometheus/holdgap.rules.test.yml")).unwrap();
    let runbook = std::fs::read_to_string(docs("operations.md")).unwrap();
    let alerts: Vec<_> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() >= 9);
    for alert in alerts {
        let section = format!("#{}\n", alert.to_lowercase());
        assert!(rules.contains(&section), "{alert} says where its runbook is");
        assert!(runbook.contains(&format!("\n### {alert}\n")), "{alert} has a runbook");
        assert!(tests.matches(&format!("alertname: {alert}\n")).count() >= 2, "{alert} is tested");
    }
}

/// A series that is not exported, or is and has no place in the rules, the dashboard or the catalogue.
#[test]
fn rules_and_dashboard_name_no_series_that_is_not_in_the_catalogue() {
    let catalogue = std::fs::read_to_string(docs("metrics.yml")).unwrap();
    let known: BTreeSet<_> = catalogue
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- name: "))
        .map(|name| match name.strip_prefix("shared_") {
            Some(_) => format!("mz_compute_{name}"),
            None => name.to_owned(),
        })
        .collect();
    let rules = std::fs::read_to_string(docs("prometheus/holdgap.rules.yml")).unwrap();
    let dashboard = std::fs::read_to_string(docs("grafana/holdgap.json")).unwrap();
    let text = [rules, dashboard].concat();
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let named = words.filter(|word| {
        ["mz_compute_", "holdgap_", "process_"].iter().any(|start| word.starts_with(start))
    });
    let unknown: BTreeSet<_> = named.filter(|name| !known.contains(*name)).collect();
    assert_eq!(unknown, BTreeSet::from(["mz_compute_"]), "the prefix that a comment speaks of");
}
