//! How a report grows with the points, drawn.

use std::fmt::Write;
use std::hint::black_box;

use holdgap::{Registry, Role};
use holdgap_benches::{median, peer, points};

use crate::measure::{per, time};

/// How many points; the last without the peer.
const SIZES: [u64; 4] = [10, 1_000, 100_000, 2_000_000];
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;

/// Nanoseconds a point at each size, as (points, nanoseconds).
fn measured(with_peer: bool) -> Vec<(u64, f64)> {
    let sizes = if with_peer { &SIZES[..3] } else { &SIZES[..] };
    let at = |count: &u64| {
        let times = if *count > 10_000 { 11 } else { 101 };
        let took: Vec<_> = if with_peer {
            let mutexes = peer(*count);
            (0..times).map(|_| time(|| _ = black_box(mutexes.report(0)))).collect()
        } else {
            let worker = Registry::new().runtime(Role::Maintenance).worker(0);
            let _points = points(&worker, *count);
            (0..times).map(|_| time(|| drop(black_box(worker.report())))).collect()
        };
        (*count, per(median(took), *count))
    };
    sizes.iter().map(at).collect()
}

/// The chart, as SVG: nanoseconds a point over the number of points, both by their logarithms.
pub(crate) fn draw() -> String {
    let lines =
        [("mutex registry", "#b4531f", measured(true)), ("holdgap", "#1f6fb4", measured(false))];
    let x = |points: u64| 60.0 + ((points as f64).log10() - 1.0) / 5.5 * (WIDTH - 180.0);
    let y = |ns: f64| HEIGHT - 40.0 - (ns.log10() + 0.5) / 2.8 * (HEIGHT - 70.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <title>Nanoseconds that a report takes for each point</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"60\" y=\"18\">ns a point, by the number of points</text>\n"
    );
    for ns in [1.0, 10.0, 100.0] {
        let at = y(ns);
        let _ = writeln!(
            svg,
            "<line x1=\"60\" x2=\"{:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"50\" y=\"{:.1}\" text-anchor=\"end\">{ns}</text>",
            WIDTH - 120.0,
            at + 4.0
        );
    }
    for points in SIZES {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{points}</text>",
            x(points),
            HEIGHT - 18.0
        );
    }
    for (name, colour, values) in &lines {
        let path: Vec<_> =
            values.iter().map(|(points, ns)| format!("{:.1},{:.1}", x(*points), y(*ns))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for (points, ns) in values {
            let _ = writeln!(
                svg,
                "<circle cx=\"{0:.1}\" cy=\"{1:.1}\" r=\"3\" fill=\"{colour}\"/>\
                 <text x=\"{0:.1}\" y=\"{2:.1}\" text-anchor=\"middle\" fill=\"{colour}\">{ns:.1}</text>",
                x(*points),
                y(*ns),
                y(*ns) - 8.0
            );
        }
        if let Some((points, ns)) = values.last() {
            let (at, middle) = (x(*points) + 12.0, y(*ns) + 4.0);
            let _ = writeln!(
                svg,
                "<text x=\"{at:.1}\" y=\"{middle:.1}\" fill=\"{colour}\">{name}</text>"
            );
        }
    }
    svg + "</svg>\n"
}
