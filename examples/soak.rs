//! Everything at once, for as long as asked: points and arrangements that come and go, a thousand a
//! second of each, readers that linger, joins, reports, scrapes, and processes that are killed. Nothing
//! may grow, and nothing may be wrong.
//!
//! ```console
//! $ cargo run --release -p holdgap-examples --example soak -- --minutes 10
//! ```
//!
//! A table shows progress; the last line is one JSON object. It fails if a pair or a join was wrong,
//! a report contradicted itself, or memory, file descriptors or threads have grown.

#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Parser;
use differential_dataflow::input::Input;
use holdgap::{HoldReport, Point, PointView, Registry, Role, Scraper};
use holdgap_replica::{Replica, ReplicaOptions};
use holdgap_segment::{Folder, SegmentOptions, attach};
use holdgap_trace::{ArrangeShared, Reader, SharedBatch, Sharing, ValBatch};
use metrics_exporter_prometheus::PrometheusBuilder;
use serde::Serialize;
use timely::WorkerConfig;
use timely::communication::allocator::{Allocator, thread::Thread};
use timely::progress::Antichain;
use timely::worker::Worker as TimelyWorker;

/// Runs everything at once, and watches that nothing grows.
#[derive(Parser)]
struct Args {
    /// For how long.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// What chance is drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Be a process that publishes into this folder until it is killed.
    #[arg(long, hide = true)]
    child: Option<PathBuf>,
}

/// What was done, and what was wrong.
#[derive(Default)]
struct Counts {
    rounds: AtomicU64,
    arrangements: AtomicU64,
    made: AtomicU64,
    joins: AtomicU64,
    wrong_joins: AtomicU64,
    points: AtomicU64,
    reports: AtomicU64,
    contradictions: AtomicU64,
    scrapes: AtomicU64,
    pairs: AtomicU64,
    wrong_pairs: AtomicU64,
    kills: AtomicU64,
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// xorshift: what chance there is, is the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// How far applied trails requested at `n`: whoever sees `n` can tell.
fn gap(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54
}

/// Where the times begin.
const FIRST: u64 = 10_000;

fn publish(point: &mut Point<u64>, n: u64) {
    point.set(&Antichain::from_elem(n), &Antichain::from_elem(n - gap(n)));
}

/// Whether a point shows a pair that was published, whole.
fn is_whole(view: &PointView) -> bool {
    let number = |text: &str| text.trim_matches(['{', '}']).parse::<u64>().unwrap_or(u64::MAX);
    let (requested, applied) = (number(&view.requested), number(&view.applied));
    // Not published to yet.
    (requested, applied) == (0, 0) || requested >= FIRST && requested - applied == gap(requested)
}

/// Whether a report says nothing that contradicts the rest of it.
fn is_sound(report: &HoldReport) -> bool {
    (report.hold_gap > 0) == (report.held > 0)
        && report.held <= report.published
        && report.frozen_held <= report.frozen
        && report.hold_gap_peak.is_none_or(|peak| peak >= report.hold_gap)
        && report.invalid_pairs == 0
}

/// What must not grow.
#[derive(Clone, Copy, Debug, Serialize)]
struct Vitals {
    resident_kib: u64,
    descriptors: u64,
    threads: u64,
}

impl Vitals {
    fn now() -> anyhow::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
                .with_context(|| format!("{name} is not in /proc/self/status"))
        };
        let descriptors = std::fs::read_dir("/proc/self/fd").context("/proc/self/fd")?.count();
        Ok(Vitals {
            resident_kib: value("VmRSS:")?,
            descriptors: descriptors as u64,
            threads: value("Threads:")?,
        })
    }

    /// The least of each: what is there at the quietest moment stays.
    fn least(of: &[Vitals]) -> anyhow::Result<Self> {
        let least = |pick: fn(&Vitals) -> u64| of.iter().map(pick).min().context("too short a run");
        Ok(Vitals {
            resident_kib: least(|vitals| vitals.resident_kib)?,
            descriptors: least(|vitals| vitals.descriptors)?,
            threads: least(|vitals| vitals.threads)?,
        })
    }
}

#[derive(Serialize)]
struct Outcome {
    minutes: f64,
    rounds: u64,
    arrangements: u64,
    /// Arrangements of a worker of their own, made, shared, read and dropped.
    made: u64,
    joins: u64,
    wrong_joins: u64,
    points: u64,
    reports: u64,
    contradictions: u64,
    scrapes: u64,
    pairs: u64,
    wrong_pairs: u64,
    kills: u64,
    /// The least in the second quarter of the run, and in the last.
    early: Vitals,
    late: Vitals,
    grown: Vec<&'static str>,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if let Some(folder) = &args.child {
        return be_published(folder);
    }
    let folder = PathBuf::from(format!("/dev/shm/holdgap-soak-{}", std::process::id()));
    let outcome = soak(&args, &folder);
    // There is nothing in it that anybody needs.
    let _ = std::fs::remove_dir_all(&folder);
    let outcome = outcome?;
    println!("{}", serde_json::to_string(&outcome)?);
    ensure!(outcome.wrong_joins == 0, "{} joins were wrong", outcome.wrong_joins);
    ensure!(outcome.wrong_pairs == 0, "{} pairs were wrong", outcome.wrong_pairs);
    ensure!(outcome.contradictions == 0, "{} reports were wrong", outcome.contradictions);
    ensure!(outcome.grown.is_empty(), "these have grown: {}", outcome.grown.join(", "));
    let idle = [
        outcome.made,
        outcome.joins,
        outcome.points,
        outcome.scrapes,
        outcome.pairs,
        outcome.kills,
    ];
    ensure!(idle.iter().all(|count| *count > 0), "something was not done at all: {idle:?}");
    Ok(())
}

/// A process of the soak's own: publishes at full speed until it is killed.
fn be_published(folder: &Path) -> anyhow::Result<()> {
    let registry = Registry::new();
    let options = SegmentOptions { folder: Some(folder.to_owned()), ..SegmentOptions::default() };
    let attachment = attach(&registry, options)?;
    let worker = registry.runtime(Role::named("killed")).worker(0);
    let mut points: Vec<_> = (0..20).map(|n| worker.publish(format!("u{n}"), "killed")).collect();
    for n in FIRST.. {
        points.iter_mut().for_each(|point| publish(point, n));
    }
    drop(attachment);
    Ok(())
}

fn soak(args: &Args, folder: &Path) -> anyhow::Result<Outcome> {
    let registry = Registry::new();
    let (counts, done) = (Arc::new(Counts::default()), Arc::new(AtomicBool::new(false)));
    let whole = Duration::from_secs_f64(args.minutes * 60.0);
    let begun = Instant::now();
    let mut vitals = Vec::new();
    std::thread::scope(|scope| {
        let others = [
            scope.spawn(|| ended(&done, come_and_go(&registry, args.seed, &counts, &done))),
            scope.spawn(|| ended(&done, make_and_drop(&registry, &counts, &done))),
            scope.spawn(|| ended(&done, look(&registry, &counts, &done))),
            scope.spawn(|| ended(&done, kill(folder, &counts, &done))),
        ];
        let goes_on = || begun.elapsed() < whole && !done.load(Ordering::Relaxed);
        let driven = drive(&registry, args.seed, begun, goes_on, &counts, &mut vitals);
        done.store(true, Ordering::Relaxed);
        let ended = others.map(|other| {
            other.join().unwrap_or_else(|_| Err(anyhow::anyhow!("one of the threads panicked")))
        });
        ended.into_iter().collect::<anyhow::Result<()>>()?;
        driven
    })?;
    let left: u64 = registry.reports().iter().map(|report| report.published + report.held).sum();
    ensure!(left == 0, "{left} points are left when everybody has gone");

    let quarter = vitals.len() / 4;
    let (early, late) =
        (Vitals::least(&vitals[quarter..2 * quarter])?, Vitals::least(&vitals[3 * quarter..])?);
    let mut grown = Vec::new();
    // An allocator keeps what was once needed, and the quietest moments differ.
    if late.resident_kib > early.resident_kib + early.resident_kib / 10 + 8 * 1024 {
        grown.push("memory");
    }
    if late.descriptors > early.descriptors {
        grown.push("file descriptors");
    }
    if late.threads > early.threads {
        grown.push("threads");
    }
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    Ok(Outcome {
        minutes: args.minutes,
        rounds: of(&counts.rounds),
        arrangements: of(&counts.arrangements),
        made: of(&counts.made),
        joins: of(&counts.joins),
        wrong_joins: of(&counts.wrong_joins),
        points: of(&counts.points),
        reports: of(&counts.reports),
        contradictions: of(&counts.contradictions),
        scrapes: of(&counts.scrapes),
        pairs: of(&counts.pairs),
        wrong_pairs: of(&counts.wrong_pairs),
        kills: of(&counts.kills),
        early,
        late,
        grown,
    })
}

/// Ends the whole soak when one of its threads has.
fn ended(done: &AtomicBool, with: anyhow::Result<()>) -> anyhow::Result<()> {
    done.store(true, Ordering::Relaxed);
    with
}

/// The replica: arrangements that come and go, joins, readers that linger.
fn drive(
    registry: &Registry,
    seed: u64,
    begun: Instant,
    goes_on: impl Fn() -> bool,
    counts: &Counts,
    vitals: &mut Vec<Vitals>,
) -> anyhow::Result<()> {
    const ROUND: Duration = Duration::from_millis(50);
    const STAYING: usize = 4;
    let mut chance = Chance(seed | 1);
    let options = ReplicaOptions { workers: 2, keys: 200 };
    let mut replica = Replica::start(registry, options)?;
    let staying: Vec<_> = (0..STAYING).map(|_| replica.create()).collect();
    let mut passing = std::collections::VecDeque::new();
    println!(
        "{:>8} {:>8} {:>8} {:>9} {:>10} {:>5} {:>8}",
        "seconds", "rounds", "joins", "points", "pairs", "fds", "KiB"
    );
    let (mut next_round, mut next_second) = (begun, begun);
    while goes_on() {
        ensure!(replica.is_whole(), "a worker of the replica has ended");
        if Instant::now() >= next_round {
            replica.round();
            add(&counts.rounds, 1);
            next_round = (next_round + ROUND).max(Instant::now());
            if chance.below(4) == 0 {
                passing.push_back(replica.create());
                add(&counts.arrangements, 1);
            }
            if passing.len() > 4 || !passing.is_empty() && chance.below(4) == 0 {
                passing.pop_front().into_iter().for_each(|id| replica.drop_arrangement(id));
            }
            if chance.below(10) == 0 {
                let id = staying[chance.below(STAYING as u64) as usize];
                replica.linger(id, Duration::from_millis(chance.below(1_000)));
            }
        }
        if replica.pending_joins() < 4 {
            let [left, right] = [(); 2].map(|()| staying[chance.below(STAYING as u64) as usize]);
            replica.join(left, right);
        }
        if let Some(outcome) = replica.next_outcome(Duration::from_millis(5)) {
            add(&counts.joins, 1);
            add(&counts.wrong_joins, u64::from(!outcome.right));
        }
        if Instant::now() >= next_second {
            next_second += Duration::from_secs(1);
            let now = Vitals::now()?;
            vitals.push(now);
            if vitals.len() % 10 == 1 {
                let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
                println!(
                    "{:>8} {:>8} {:>8} {:>9} {:>10} {:>5} {:>8}",
                    begun.elapsed().as_secs(),
                    of(&counts.rounds),
                    of(&counts.joins),
                    of(&counts.points),
                    of(&counts.pairs),
                    now.descriptors,
                    now.resident_kib
                );
            }
        }
    }
    replica.stop().context("the replica ends")
}

/// A thousand points a second that come and go, and move in between.
fn come_and_go(
    registry: &Registry,
    seed: u64,
    counts: &Counts,
    done: &AtomicBool,
) -> anyhow::Result<()> {
    let worker = registry.runtime(Role::named("churn")).worker(0);
    let mut chance = Chance(seed.wrapping_add(7) | 1);
    let mut points = Vec::new();
    let mut n = FIRST;
    while !done.load(Ordering::Relaxed) {
        for _ in 0..10 {
            points.push(worker.publish::<u64>(format!("p{n}"), "comes and goes"));
            n += 1;
        }
        for point in &mut points {
            publish(point, n);
            n += 1;
        }
        while points.len() > 100 {
            points.swap_remove(chance.below(points.len() as u64) as usize);
        }
        add(&counts.points, 10);
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// A thousand arrangements a second, each made, shared, read, sealed and dropped with its dataflow.
fn make_and_drop(registry: &Registry, counts: &Counts, done: &AtomicBool) -> anyhow::Result<()> {
    let sharing = Sharing::new(registry).with_role(Role::named("made"));
    let allocator = Allocator::Thread(Thread::default());
    let mut worker = TimelyWorker::new(WorkerConfig::default(), allocator, Some(Instant::now()));
    while !done.load(Ordering::Relaxed) {
        let begun = Instant::now();
        for n in 0..10_u64 {
            let id = format!("m{n}");
            let (mut input, orders) = worker.dataflow::<u64, _, _>(|scope| {
                let (input, rows) = scope.new_collection_from([(n, n), (n, n + 1)]);
                let orders = sharing.publish(&*id, &rows.arrange_shared_by_key("made"));
                orders.map(|orders| (input, orders))
            })?;
            let reader: Reader<ValBatch<u64, u64, u64, isize>> = sharing.reader(&id, 0)?;
            input.advance_to(1);
            input.flush();
            while orders.upper().less_than(&1) {
                worker.step();
            }
            let updates: usize =
                reader.spans().iter().filter_map(|span| Some(span.inner.as_ref()?.len())).sum();
            ensure!(updates == 2, "{updates} updates of two");
            drop((input, orders, reader));
            while worker.step() {}
        }
        ensure!(sharing.known(0) == 0, "{} ids are left", sharing.known(0));
        add(&counts.made, 10);
        std::thread::sleep(Duration::from_millis(10).saturating_sub(begun.elapsed()));
    }
    Ok(())
}

/// Reports a hundred times a second, scrapes and pages a few times.
fn look(registry: &Registry, counts: &Counts, done: &AtomicBool) -> anyhow::Result<()> {
    let scraper = registry.scraper();
    while !done.load(Ordering::Relaxed) {
        for _ in 0..20 {
            let reports = registry.reports();
            add(&counts.reports, reports.len() as u64);
            let unsound = reports.iter().filter(|report| !is_sound(report)).count();
            add(&counts.contradictions, unsound as u64);
            std::thread::sleep(Duration::from_millis(10));
        }
        let text = scrape(&scraper);
        ensure!(text.contains("shared_arrangement_hold_gap_ms{"), "an empty scrape");
        add(&counts.scrapes, 1);
        let churned = registry.runtime(Role::named("churn")).worker(0).worst(usize::MAX);
        add(&counts.pairs, churned.len() as u64);
        add(&counts.wrong_pairs, churned.iter().filter(|view| !is_whole(view)).count() as u64);
    }
    Ok(())
}

/// A scrape, as an embedder with a recorder of its own answers one.
fn scrape(scraper: &Scraper) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        scraper.reports().iter().for_each(HoldReport::set_gauges);
    });
    recorder.handle().render()
}

/// Starts processes, reads them from outside, and kills them in the middle of whatever they do.
fn kill(folder: &Path, counts: &Counts, done: &AtomicBool) -> anyhow::Result<()> {
    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            // It may have ended by itself, which the next look shows.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    std::fs::create_dir_all(folder)?;
    let start = || {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--child").arg(folder).stdin(Stdio::null());
        Ok::<_, std::io::Error>(Killed(command.spawn()?))
    };
    let mut running = start()?;
    let mut next = Instant::now() + Duration::from_millis(700);
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
        let folder = Folder::open(folder)?;
        for segment in folder.look()?.segments {
            let Ok(points) = segment.points() else { continue };
            add(&counts.pairs, points.len() as u64);
            add(&counts.wrong_pairs, points.iter().filter(|view| !is_whole(view)).count() as u64);
            if !segment.is_up() && segment.since_heartbeat() > Duration::from_secs(2) {
                folder.remove(&segment)?;
            }
        }
        folder.sweep(Duration::from_secs(2))?;
        if Instant::now() >= next {
            next = Instant::now() + Duration::from_millis(700);
            running = start()?;
            add(&counts.kills, 1);
        }
    }
    drop(running);
    Ok(())
}
