use std::collections::BTreeSet;

use holdgap::{SERIES, SeriesKind};
use serde::Deserialize;

use crate::support::Exporter;

#[derive(Deserialize)]
struct Catalogue {
    prefix: String,
    series: Vec<Entry>,
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

fn catalogue() -> Catalogue {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.yml");
    serde_yaml_ng::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
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
        assert_eq!(entry.labels, ["role", "worker_id"]);
        // The interactive runtime publishes nothing that could stand anywhere physically or lag.
        let of_every_worker = !["physical", "lag", "slack"].iter().any(|word| name.contains(word));
        let roles = ["maintenance", "interactive"];
        for role in &roles[..if of_every_worker { 2 } else { 1 }] {
            for worker in 0..2 {
                expected.insert(format!(r#"{name}{{role="{role}",worker_id="{worker}"}}"#));
            }
        }
    }
    let samples = metrics.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let samples: Vec<_> = samples.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect();
    assert_eq!(samples.len(), expected.len(), "each once");
    assert_eq!(samples.into_iter().collect::<BTreeSet<_>>(), expected);
}
