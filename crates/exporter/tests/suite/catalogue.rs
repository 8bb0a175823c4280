use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use holdgap::{HoldKind, SERIES, SeriesKind};
use serde::Deserialize;

use crate::support::{Exporter, PATIENCE};

#[derive(Deserialize)]
struct Catalogue {
    prefix: String,
    series: Vec<Entry>,
    worst: Vec<Entry>,
    processes: Vec<Entry>,
    exporter: Vec<Entry>,
}

impl Catalogue {
    /// Whether a line of a scrape is of the exporter itself.
    fn is_own(&self, line: &str) -> bool {
        let name = line.split(['{', ' ']).next().unwrap();
        self.exporter.iter().any(|entry| entry.name == name)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    r#type: String,
    unit: String,
    labels: Vec<String>,
    help: String,
    blind_spots: String,
}

impl Entry {
    fn of_each_arrangement(&self) -> bool {
        self.labels.contains(&"id".to_owned())
    }
}

fn catalogue() -> Catalogue {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.yml");
    serde_yaml_ng::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Fails unless a scrape of attached processes shows what the catalogue says of them, and no more.
pub(crate) fn check_processes(metrics: &str) {
    let catalogue = catalogue();
    let mut expected = BTreeSet::new();
    for entry in &catalogue.processes {
        for (word, text) in [("HELP", &entry.help), ("TYPE", &entry.r#type)] {
            let line = format!("# {word} {} {text}", entry.name);
            assert!(metrics.lines().any(|known| known == line), "{line}\n{metrics}");
        }
        expected.insert((entry.name.clone(), entry.labels.clone()));
    }
    let of_processes = metrics.lines().filter(|line| line.starts_with("holdgap_"));
    let shown: BTreeSet<_> = of_processes
        .filter(|line| !catalogue.is_own(line))
        .map(|line| {
            let (name, labels) = line.split_once('{').unwrap();
            let label = labels.split_once('=').unwrap().0.to_owned();
            (name.to_owned(), vec![label])
        })
        .collect();
    assert_eq!(shown, expected);
    let of_points = metrics.lines().filter(|line| line.starts_with(&catalogue.prefix));
    for line in of_points {
        assert!(line.contains("{process=\""), "{line}");
    }
}

#[test]
fn the_code_says_what_the_catalogue_says() {
    let catalogue = catalogue();
    assert_eq!(catalogue.prefix, holdgap::RegistryOptions::DEFAULT_PREFIX);
    let documented: Vec<_> = catalogue.series.iter().map(|entry| &*entry.name).collect();
    let coded: Vec<_> = SERIES.iter().map(|series| series.name).collect();
    assert_eq!(documented, coded);
    for (entry, series) in catalogue.series.iter().zip(SERIES) {
        assert_eq!(entry.help, series.help, "{}", entry.name);
        assert_eq!(entry.unit, series.unit.as_str(), "{}", entry.name);
        assert_eq!(entry.r#type == "counter", series.kind == SeriesKind::Counter, "{}", entry.name);
        assert!(!entry.blind_spots.is_empty());
    }
}

#[test]
fn the_two_gauges_state_what_they_do_not_measure_and_name_what_does() {
    let names: BTreeSet<_> = SERIES.iter().map(|series| series.name).collect();
    for series in &SERIES[..2] {
        assert!(series.help.contains("does not"), "{}", series.help);
        let words = series.help.split(|c: char| !c.is_alphanumeric() && c != '_');
        let named: Vec<_> = words.filter(|word| word.starts_with("shared_")).collect();
        assert!(named.len() >= 2 && named.iter().all(|name| names.contains(name)), "{named:?}");
    }
}

#[test]
fn a_scrape_shows_each_series_of_the_catalogue_and_no_other() {
    let exporter = Exporter::start(&["--replica.workers", "2", "--replica.arrangements", "3"]);
    exporter.wait_until_ready();
    let metrics = exporter.get("/metrics").body;
    let catalogue = catalogue();
    let mut expected = BTreeSet::new();
    for entry in &catalogue.series {
        let name = format!("{}{}", catalogue.prefix, entry.name);
        let help = format!("# HELP {name} {}", entry.help);
        let kind = format!("# TYPE {name} {}", entry.r#type);
        assert!(metrics.lines().any(|line| line == help), "{name}\n{metrics}");
        assert!(metrics.lines().any(|line| line == kind), "{name}\n{metrics}");
        // The interactive runtime publishes nothing that any of these could be measured of.
        let measured = ["physical", "lag", "slack", "by_kind", "pinned", "queued"];
        let of_every_worker = !measured.iter().any(|word| name.contains(word));
        let kinds = match &entry.labels[..] {
            [role, worker] => {
                assert_eq!([role, worker], ["role", "worker_id"]);
                vec![String::new()]
            }
            [_, _, kind] => {
                assert_eq!(kind, "kind");
                HoldKind::ALL.map(|kind| format!(r#",kind="{kind}""#)).to_vec()
            }
            other => panic!("{other:?}"),
        };
        let roles = ["maintenance", "interactive"];
        for role in &roles[..if of_every_worker { 2 } else { 1 }] {
            for worker in 0..2 {
                for kind in &kinds {
                    let labels = format!(r#"role="{role}",worker_id="{worker}"{kind}"#);
                    expected.insert(format!("{name}{{{labels}}}"));
                }
            }
        }
    }
    for entry in &catalogue.exporter {
        for (word, text) in [("HELP", &entry.help), ("TYPE", &entry.r#type)] {
            let line = format!("# {word} {} {text}", entry.name);
            assert!(metrics.lines().any(|known| known == line), "{line}\n{metrics}");
        }
        expected.insert(match &entry.labels[..] {
            [] => entry.name.clone(),
            [label] => format!("{}{{{label}=\"{}\"}}", entry.name, env!("CARGO_PKG_VERSION")),
            other => panic!("{other:?}"),
        });
    }
    // A standing hold that trails for a moment may show an arrangement's own series.
    let own = |line: &str| catalogue.worst.iter().any(|entry| line.contains(&entry.name));
    let samples = metrics.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let samples = samples.filter(|line| !own(line));
    let samples: Vec<_> = samples.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect();
    assert_eq!(samples.len(), expected.len(), "each once");
    assert_eq!(samples.into_iter().collect::<BTreeSet<_>>(), expected);
}

/// What a slow reader brings forth, and takes with it: each series of single arrangements.
#[test]
fn the_series_of_single_arrangements_are_those_of_the_catalogue_and_leave_with_their_cause() {
    let exporter = Exporter::start(&[
        "--replica.workers",
        "2",
        "--replica.arrangements",
        "3",
        "--replica.slow-reader",
        "4s",
    ]);
    let catalogue = catalogue();
    let mut unseen: BTreeSet<_> = catalogue.worst.iter().map(|entry| &*entry.name).collect();
    let deadline = Instant::now() + PATIENCE;
    while !unseen.is_empty() {
        assert!(Instant::now() < deadline, "never seen: {unseen:?}");
        let metrics = exporter.get("/metrics").body;
        for entry in &catalogue.worst {
            assert!(entry.of_each_arrangement());
            let name = format!("{}{}", catalogue.prefix, entry.name);
            let Some(sample) = metrics.lines().find(|line| line.starts_with(&format!("{name}{{")))
            else {
                continue;
            };
            let help = format!("# HELP {name} {}", entry.help);
            assert!(metrics.lines().any(|line| line == help), "{help}\n{metrics}");
            let labels: Vec<_> = sample
                .split_once('{')
                .and_then(|(_, rest)| rest.rsplit_once('}'))
                .map(|(labels, _)| labels.split("\",").filter_map(|label| label.split_once('=')))
                .unwrap()
                .map(|(label, _)| label)
                .collect();
            assert_eq!(labels, entry.labels, "{sample}");
            unseen.remove(&*entry.name);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    loop {
        let metrics = exporter.get("/metrics").body;
        if !metrics.contains("slow reader") && !metrics.contains("_worst_pinned") {
            break;
        }
        assert!(Instant::now() < deadline, "it lingers:\n{metrics}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
