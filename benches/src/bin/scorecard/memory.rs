//! What a point takes, everything counted.

use holdgap::{Registry, Role};
use holdgap_benches::points;

use crate::allocations::bytes;
use crate::row::{Row, Target};

/// Counts just beyond those at which the table has grown by a fourth, most of which is still free.
const COUNTS: [u64; 2] = [8_128, 100_000];

/// The memory's rows.
pub(crate) fn memory() -> Vec<Row> {
    let row = |count| {
        let worker = Registry::new().runtime(Role::Maintenance).worker(0);
        let before = bytes();
        let points = points(&worker, count);
        let each = (bytes() - before) as f64 / count as f64;
        drop(points);
        let name = format!("memory of a point of {count}");
        Row::with_ratio(name, "B", each, 0.0, each, Target::AtMost(1_024.0))
    };
    COUNTS.map(row).into()
}
