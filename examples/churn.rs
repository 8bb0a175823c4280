//! The experiment: continuous churn, first without a reader, then with joins, then without again.
//!
//! ```console
//! $ cargo run --release -p holdgap-examples --example churn -- --workers 8 --arrangements 31 --joins 509
//! ```
//!
//! A table shows progress; the last line is one JSON object. What to expect: no gap without a
//! reader; with joins a gap of about one round, on up to every arrangement; none afterwards; and
//! every join equal to what the input says.

#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Parser;
use holdgap::{Registry, Role};
use holdgap_replica::{ArrangementId, Replica, ReplicaOptions};
use serde::Serialize;

/// Measures the hold gap of a two-runtime replica under churn.
#[derive(Parser)]
struct Args {
    /// Workers of each runtime.
    #[arg(long, default_value_t = 8)]
    workers: usize,
    /// Shared arrangements.
    #[arg(long, default_value_t = 31)]
    arrangements: u32,
    /// Interactive joins.
    #[arg(long, default_value_t = 509)]
    joins: u32,
    /// Rows of each arrangement.
    #[arg(long, default_value_t = 1_000)]
    keys: u64,
    /// Joins under way at a time.
    #[arg(long, default_value_t = 64)]
    in_flight: usize,
    /// Time from one round of updates and compaction to the next.
    #[arg(long, default_value = "100ms", value_parser = humantime::parse_duration)]
    round: Duration,
}

#[derive(Clone, Copy, Default, Serialize)]
struct Peaks {
    peak_gap_ms: u64,
    peak_held: u64,
}

#[derive(Serialize)]
struct Joins {
    run: u32,
    wrong: u32,
    #[serde(flatten)]
    peaks: Peaks,
}

#[derive(Serialize)]
struct After {
    gap_ms: u64,
    held: u64,
}

#[derive(Serialize)]
struct Outcome {
    no_reader: Peaks,
    joins: Joins,
    after: After,
    round_ms: u128,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    ensure!(args.workers > 0 && args.arrangements > 0, "at least one worker and one arrangement");
    let mut experiment = Experiment::start(&args)?;
    experiment.settle(10)?;
    let no_reader = experiment.watch("no reader", 80)?;
    let joins = experiment.joins(&args)?;
    experiment.settle(10)?;
    let after = experiment.watch("after", 30)?;
    experiment.replica.stop()?;
    let after = After { gap_ms: after.peak_gap_ms, held: after.peak_held };
    let outcome = Outcome { no_reader, joins, after, round_ms: args.round.as_millis() };
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

struct Experiment {
    replica: Replica,
    registry: Registry,
    arrangements: Vec<ArrangementId>,
    round: Duration,
    next_round: Instant,
    begun: Instant,
    next_row: Instant,
}

/// How often the gauges are looked at: 100 times a second, as a worker's maintenance loop would.
const LOOK: Duration = Duration::from_millis(10);

impl Experiment {
    fn start(args: &Args) -> anyhow::Result<Self> {
        let registry = Registry::new();
        let options = ReplicaOptions { workers: args.workers, keys: args.keys };
        let mut replica = Replica::start(&registry, options)?;
        let arrangements = (0..args.arrangements).map(|_| replica.create()).collect();
        println!("{:>8}  {:<10} {:>9} {:>9} {:>6}", "seconds", "phase", "joins", "gap ms", "held");
        let (round, begun) = (args.round, Instant::now());
        let (next_round, next_row) = (begun, begun);
        Ok(Experiment { replica, registry, arrangements, round, next_round, begun, next_row })
    }

    /// Begins a round if one is due.
    fn tick(&mut self) -> anyhow::Result<bool> {
        ensure!(self.replica.is_whole(), "a worker of the replica has ended");
        if Instant::now() < self.next_round {
            return Ok(false);
        }
        self.replica.round();
        self.next_round = (self.next_round + self.round).max(Instant::now());
        Ok(true)
    }

    /// Looks at every worker's gauges, and keeps the largest.
    fn look(&mut self, phase: &str, joins: u32, peaks: &mut Peaks) {
        let maintenance = self.registry.reports();
        let reports = maintenance.iter().filter(|report| report.role == Role::Maintenance);
        let (mut gap, mut held) = (0, 0);
        for report in reports {
            gap = gap.max(report.hold_gap);
            held = held.max(report.held);
        }
        peaks.peak_gap_ms = peaks.peak_gap_ms.max(gap);
        peaks.peak_held = peaks.peak_held.max(held);
        if Instant::now() >= self.next_row {
            self.next_row = Instant::now() + Duration::from_secs(1);
            let seconds = self.begun.elapsed().as_secs_f64();
            println!("{seconds:>8.1}  {phase:<10} {joins:>9} {gap:>9} {held:>6}");
        }
    }

    /// Lets some rounds pass unwatched.
    fn settle(&mut self, rounds: u32) -> anyhow::Result<()> {
        let mut left = rounds;
        while left > 0 {
            left -= u32::from(self.tick()?);
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Watches the gauges for some rounds.
    fn watch(&mut self, phase: &str, rounds: u32) -> anyhow::Result<Peaks> {
        let (mut left, mut peaks) = (rounds, Peaks::default());
        while left > 0 {
            left -= u32::from(self.tick()?);
            self.look(phase, 0, &mut peaks);
            std::thread::sleep(LOOK);
        }
        Ok(peaks)
    }

    /// Runs the joins, so many at a time, over pairs of arrangements in turn.
    fn joins(&mut self, args: &Args) -> anyhow::Result<Joins> {
        let mut joins = Joins { run: 0, wrong: 0, peaks: Peaks::default() };
        let (mut begun, mut peaks) = (0, Peaks::default());
        let count = self.arrangements.len();
        let deadline = Instant::now() + Duration::from_secs(240);
        while joins.run < args.joins {
            self.tick()?;
            while begun < args.joins && self.replica.pending_joins() < args.in_flight {
                let left = begun as usize % count;
                let right = (left + 1 + begun as usize / count) % count;
                let pair = (self.arrangements[left], self.arrangements[right]);
                self.replica
                    .join(pair.0, pair.1)
                    .context("the arrangements have had two rounds")?;
                begun += 1;
            }
            if let Some(outcome) = self.replica.next_outcome(LOOK) {
                joins.run += 1;
                joins.wrong += u32::from(!outcome.right);
            }
            self.look("joins", joins.run, &mut peaks);
            ensure!(Instant::now() < deadline, "{} of {} joins in time", joins.run, args.joins);
        }
        joins.peaks = peaks;
        Ok(joins)
    }
}
