//! How the figures grow with the points, drawn: one panel for each question.

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Mutex;

use arc_swap::ArcSwap;
use holdgap::{FrontierPair, Registry, Role};
use holdgap_benches::{median, peer, points};
use timely::progress::Antichain;

use crate::allocations::bytes;
use crate::measure::{per, time};

/// How many points there are; a report is measured at [`BEYOND`] too.
const SIZES: [u64; 3] = [10, 1_000, 100_000];
/// What only a scan is asked about.
const BEYOND: u64 = 2_000_000;
/// A panel's width and height, and how many stand side by side.
const WIDTH: f64 = 330.0;
const HEIGHT: f64 = 210.0;
const COLUMNS: usize = 2;

const HOLDGAP: &str = "#1f6fb4";
const PEER: &str = "#b4531f";

/// One question, and its answers by the number of points.
struct Panel {
    title: &'static str,
    unit: &'static str,
    lines: Vec<Line>,
}

struct Line {
    name: &'static str,
    colour: &'static str,
    values: Vec<(u64, f64)>,
}

impl Panel {
    fn new(title: &'static str, unit: &'static str) -> Self {
        Panel { title, unit, lines: Vec::new() }
    }

    fn with(mut self, name: &'static str, colour: &'static str, values: Vec<(u64, f64)>) -> Self {
        self.lines.push(Line { name, colour, values });
        self
    }
}

/// The median time of `work`, in nanoseconds for each of `operations`.
fn measured(operations: u64, mut work: impl FnMut()) -> f64 {
    let times = if operations > 10_000 { 11 } else { 101 };
    work();
    per(median((0..times).map(|_| time(&mut work)).collect()), operations)
}

fn at(time: u64) -> Antichain<u64> {
    Antichain::from_elem(time)
}

/// What is measured at one size, in the order of the panels.
struct Figures {
    report: f64,
    known_report: f64,
    changed: f64,
    stored: f64,
    unchanged: f64,
    locked: f64,
    add_and_remove: f64,
    tick: f64,
    clock: f64,
    scrape: f64,
    memory: f64,
}

fn figures(count: u64) -> Figures {
    const OPERATIONS: u64 = 1_000;
    let registry = Registry::new();
    let worker = registry.runtime(Role::Maintenance).worker(0);
    let before = bytes();
    let mut points = points(&worker, count);
    let memory = (bytes() - before) as f64 / count as f64;
    let mutexes = peer(count);
    let report = measured(count, || drop(black_box(worker.report())));
    let known_report = measured(count, || _ = black_box(mutexes.report(0)));

    let mut now = 2_000;
    let point = &mut points[0];
    let changed = measured(OPERATIONS, || {
        for _ in 0..OPERATIONS {
            now += 1;
            point.set(black_box(&at(now)), black_box(&at(now)));
        }
    });
    let swap = ArcSwap::from_pointee(FrontierPair::<u64>::minimum());
    let stored = measured(OPERATIONS, || {
        for _ in 0..OPERATIONS {
            now += 1;
            swap.store(black_box(FrontierPair { requested: at(now), applied: at(now) }).into());
        }
    });
    let (same, mutex) = (at(now), Mutex::new(now));
    point.set(&same, &same);
    let unchanged = measured(OPERATIONS, || {
        (0..OPERATIONS).for_each(|_| point.set(black_box(&same), black_box(&same)));
    });
    let locked =
        measured(OPERATIONS, || (0..OPERATIONS).for_each(|_| drop(black_box(mutex.lock()))));
    let add_and_remove = measured(OPERATIONS, || {
        (0..OPERATIONS).for_each(|_| drop(black_box(worker.publish::<u64>("u1", "passing"))));
    });
    let (reporter, moment) = (worker.reporter(), std::time::Instant::now());
    reporter.tick(moment);
    let tick = measured(OPERATIONS, || {
        (0..OPERATIONS).for_each(|_| _ = black_box(reporter.tick(black_box(moment)).is_some()));
    });
    let clock = measured(OPERATIONS, || {
        (0..OPERATIONS).for_each(|_| _ = black_box(std::time::Instant::now()));
    });
    let scraper = registry.scraper();
    let scrape =
        measured(1_000, || drop(black_box(holdgap_exporter::scrape(&registry, &scraper, 10))));
    Figures {
        report,
        known_report,
        changed,
        stored,
        unchanged,
        locked,
        add_and_remove,
        tick,
        clock,
        scrape,
        memory,
    }
}

fn panels() -> Vec<Panel> {
    let all: Vec<_> = SIZES.into_iter().map(|count| (count, figures(count))).collect();
    let of = |value: fn(&Figures) -> f64| -> Vec<(u64, f64)> {
        all.iter().map(|(count, figures)| (*count, value(figures))).collect()
    };
    let mut report = of(|figures| figures.report);
    {
        let worker = Registry::new().runtime(Role::Maintenance).worker(0);
        let _points = points(&worker, BEYOND);
        report.push((BEYOND, measured(BEYOND, || drop(black_box(worker.report())))));
    }
    vec![
        Panel::new("report", "ns a point")
            .with("mutex registry", PEER, of(|figures| figures.known_report))
            .with("holdgap", HOLDGAP, report),
        Panel::new("scrape of one worker, its ten worst too", "us").with(
            "holdgap",
            HOLDGAP,
            of(|figures| figures.scrape),
        ),
        Panel::new("publish a changed pair", "ns")
            .with("ArcSwap::store", PEER, of(|figures| figures.stored))
            .with("holdgap", HOLDGAP, of(|figures| figures.changed)),
        Panel::new("publish an unchanged pair", "ns")
            .with("mutex", PEER, of(|figures| figures.locked))
            .with("holdgap", HOLDGAP, of(|figures| figures.unchanged)),
        Panel::new("add and remove a point", "ns").with(
            "holdgap",
            HOLDGAP,
            of(|figures| figures.add_and_remove),
        ),
        Panel::new("throttled tick", "ns")
            .with("Instant::now", PEER, of(|figures| figures.clock))
            .with("holdgap", HOLDGAP, of(|figures| figures.tick)),
        Panel::new("memory of a point", "bytes").with(
            "holdgap",
            HOLDGAP,
            of(|figures| figures.memory),
        ),
    ]
}

/// The chart, as SVG: both axes by their logarithms.
pub(crate) fn draw() -> String {
    let panels = panels();
    let (width, height) = (WIDTH * COLUMNS as f64, HEIGHT * panels.len().div_ceil(COLUMNS) as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"11\">\n\
         <title>What watching costs, by the number of points</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for (place, panel) in panels.iter().enumerate() {
        let (column, row) = (place % COLUMNS, place / COLUMNS);
        let (left, top) = (column as f64 * WIDTH, row as f64 * HEIGHT);
        let _ = writeln!(svg, "<g transform=\"translate({left:.0} {top:.0})\">");
        panel.draw(&mut svg);
        svg += "</g>\n";
    }
    svg + "</svg>\n"
}

impl Panel {
    fn draw(&self, svg: &mut String) {
        let values = || self.lines.iter().flat_map(|line| &line.values).map(|(_, value)| *value);
        let low = values().fold(f64::MAX, f64::min).log10().floor();
        let high = values().fold(0.0, f64::max).log10().ceil().max(low + 1.0);
        let (left, right, bottom, top) = (46.0, WIDTH - 92.0, HEIGHT - 34.0, 40.0);
        let x = |points: u64| {
            left + ((points as f64).log10() - 1.0) / ((BEYOND as f64).log10() - 1.0)
                * (right - left)
        };
        let y = |value: f64| bottom - (value.log10() - low) / (high - low) * (bottom - top);
        let _ = writeln!(
            svg,
            "<text x=\"10\" y=\"18\" font-weight=\"600\">{}, {}</text>",
            self.title, self.unit
        );
        for power in low as i32..=high as i32 {
            let value = 10_f64.powi(power);
            let at = y(value);
            let _ = writeln!(
                svg,
                "<line x1=\"{left}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{value}</text>",
                left - 5.0,
                at + 4.0
            );
        }
        let beyond = self.lines.iter().any(|line| line.values.len() > SIZES.len());
        for points in SIZES.into_iter().chain(beyond.then_some(BEYOND)) {
            let label = match points {
                1_000_000.. => format!("{}M", points / 1_000_000),
                1_000.. => format!("{}k", points / 1_000),
                _ => points.to_string(),
            };
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#555\">{label}</text>",
                x(points),
                HEIGHT - 16.0
            );
        }
        for (place, Line { name, colour, values }) in self.lines.iter().enumerate() {
            // The lower of two lines has its figures below it.
            let lower = self.lines.iter().enumerate().any(|(other, line)| {
                other != place
                    && line
                        .values
                        .last()
                        .is_some_and(|(_, v)| Some(v) > values.last().map(|(_, v)| v))
            });
            let (beside, aside) = if lower { (15.0, 10.0) } else { (-7.0, 0.0) };
            let path: Vec<_> = values
                .iter()
                .map(|(points, value)| format!("{:.1},{:.1}", x(*points), y(*value)))
                .collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                path.join(" ")
            );
            for (points, value) in values {
                let digits = if *value < 100.0 { 1 } else { 0 };
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{0:.1}\" cy=\"{1:.1}\" r=\"3\" fill=\"{colour}\"/>\
                     <text x=\"{0:.1}\" y=\"{2:.1}\" text-anchor=\"middle\" \
                     fill=\"{colour}\">{value:.digits$}</text>",
                    x(*points),
                    y(*value),
                    y(*value) + beside
                );
            }
            if let Some((points, value)) = values.last() {
                let (at, middle) = (x(*points) + 8.0, y(*value) + 2.0 + aside / 2.0);
                let _ = writeln!(
                    svg,
                    "<text x=\"{at:.1}\" y=\"{middle:.1}\" fill=\"{colour}\">{name}</text>"
                );
            }
        }
    }
}
