//! A full report, beside the mutex registry's two gauges and beside copying as many bytes.

use std::hint::black_box;

use holdgap::{Registry, Role};
use holdgap_benches::{peer, points};

use crate::measure::in_turn;
use crate::row::{Row, Target};

/// What a scan reads of each point that nothing is the matter with, in bytes.
const RECORD: usize = 64;

/// The report's rows.
pub(crate) fn reports() -> Vec<Row> {
    let mut rows = Vec::new();
    for count in [2_000, 20_000, 200_000] {
        let worker = Registry::new().runtime(Role::Maintenance).worker(0);
        let _points = points(&worker, count);
        let mutexes = peer(count);
        let times = if count > 100_000 { 31 } else { 301 };
        let report = || drop(black_box(worker.report()));
        let known = || {
            black_box(mutexes.report(0));
        };
        // Some in a row, on either side: what is compared is the work, not who left the caches.
        let row = if count > 100_000 { 1 } else { 5 };
        let (holdgap, peer) = in_turn(
            times,
            count * row,
            || (0..row).for_each(|_| report()),
            || (0..row).for_each(|_| known()),
        );
        let name = format!("report, a point of {count}, mutex registry");
        rows.push(Row::speedup(name, holdgap, peer, 12.0));
        let from = vec![1_u8; RECORD * count as usize];
        let mut to = vec![0_u8; from.len()];
        let copy = || black_box(&mut to).copy_from_slice(black_box(&from));
        let (holdgap, copied) = in_turn(times, count, report, copy);
        let name = format!("report, a point of {count}, memcpy");
        rows.push(Row::of(name, "ns", holdgap, copied, Target::AtMost(2.0)));
    }
    rows
}
