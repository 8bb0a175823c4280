//! What watching costs, question by question, beside what it is compared with: one command, under
//! two minutes.
//!
//! ```console
//! $ cargo run --release -p holdgap-benches --bin scorecard
//! ```
//!
//! Both sides of a row are measured in turn in this one run, and medians are compared: the machine
//! may be noisy, and is so for both. `--json` prints one object; `--chart FILE` draws how a report
//! grows with the points; `--only WORD` measures the rows whose names have the word.

#![allow(clippy::print_stdout, reason = "prints its result")]

mod allocations;
mod chart;
mod joins;
mod lookups;
mod measure;
mod memory;
mod publishing;
mod reports;
mod row;
mod scrapes;
mod spines;

use std::path::PathBuf;

use clap::Parser;

use crate::row::{Row, Target};

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

/// What watching costs, beside what it is compared with.
#[derive(Parser)]
struct Args {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Draw how the figures grow with the points.
    #[arg(long, value_name = "FILE")]
    chart: Option<PathBuf>,
    /// Measure the rows whose names have the word only.
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
}

/// Some rows, and how they are measured.
type Measurement = (&'static str, fn() -> Vec<Row>);

const MEASUREMENTS: &[Measurement] = &[
    ("report", reports::reports),
    ("reporters interference", lookups::interference),
    ("tick", publishing::tick),
    ("publish", publishing::publish),
    ("add remove", publishing::add_and_remove),
    ("spine", spines::unheld),
    ("spine held", spines::held),
    ("join", joins::join),
    ("scrape", scrapes::scrape),
    ("memory", memory::memory),
    ("lookup", lookups::lookups),
    ("seal", lookups::seals),
];

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let asked = |name: &str| args.only.as_ref().is_none_or(|word| name.contains(word.as_str()));
    let mut rows = Vec::new();
    for (name, measure) in MEASUREMENTS {
        if asked(name) {
            rows.extend(measure());
        }
    }
    if let Some(path) = &args.chart {
        std::fs::write(path, chart::draw())?;
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&serde_json::json!({ "rows": rows }))?);
        return Ok(());
    }
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    println!("{:width$}  {:>11}  {:>11}  {:>8}  {:>9}", "", "holdgap", "peer", "ratio", "target");
    for row in &rows {
        println!("{}", row.line(width));
    }
    let missed = rows.iter().filter(|row| row.met == Some(false)).count();
    let judged = rows.iter().filter(|row| row.target != Target::None).count();
    println!("{} of {judged} targets met", judged - missed);
    Ok(())
}
