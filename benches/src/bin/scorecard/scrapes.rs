//! A scrape, over many arrangements and over few.

use std::hint::black_box;

use holdgap::{Registry, Role, Scraper};
use holdgap_benches::points;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::measure::in_turn;
use crate::row::{Row, Target};

const WORKERS: usize = 8;
const WORST: usize = 10;

fn registry(arrangements: u64) -> (Registry, Scraper, Vec<Vec<holdgap::Point<u64>>>) {
    let registry = Registry::new();
    let runtime = registry.runtime(Role::Maintenance);
    let points = (0..WORKERS).map(|index| points(&runtime.worker(index), arrangements)).collect();
    let scraper = registry.scraper();
    (registry, scraper, points)
}

/// As many series as a text has, rendered by prometheus-client.
fn rendered(series: usize) -> impl Fn() {
    let mut registry = prometheus_client::registry::Registry::default();
    let family = Family::<Vec<(String, String)>, Gauge>::default();
    registry.register("mz_compute_shared_arrangement_hold_gap_ms", "help", family.clone());
    for n in 0..series {
        let labels = [("role", "maintenance".to_owned()), ("worker_id", n.to_string())];
        let labels = labels.map(|(name, value)| (name.to_owned(), value)).to_vec();
        family.get_or_create(&labels).set(n as i64);
    }
    move || {
        let mut text = String::new();
        black_box(encode(&mut text, &registry)).expect("a string takes everything");
        black_box(text);
    }
}

/// The scrape's rows.
pub(crate) fn scrape() -> Vec<Row> {
    let ((many, of_many, _many), (few, of_few, _few)) = (registry(10_000), registry(31));
    let look = |registry: &Registry, scraper: &Scraper| {
        black_box(holdgap_exporter::scrape(registry, scraper, WORST))
    };
    let text = look(&few, &of_few);
    let series = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
    let (of_ten_thousand, of_31) =
        in_turn(61, 1_000, || drop(look(&many, &of_many)), || drop(look(&few, &of_few)));
    let (ours, theirs) = in_turn(61, 1_000, || drop(look(&few, &of_few)), rendered(series));
    let name = "scrape, 8 x 10,000 arrangements, 8 x 31";
    let beside = format!("  a scrape of 8 x 31, prometheus-client renders {series} series");
    vec![
        Row::of(name, "us", of_ten_thousand, of_31, Target::AtMost(2.0)),
        Row::of(beside, "us", ours, theirs, Target::None),
    ]
}
