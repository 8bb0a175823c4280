//! What a point takes, everything counted.

use holdgap::{Registry, Role};
use holdgap_benches::points;

use crate::allocations::bytes;
use crate::row::{Row, Target};

const COUNT: u64 = 8_128;

/// The memory's row: at a count that fills the table's groups.
pub(crate) fn memory() -> Vec<Row> {
    let worker = Registry::new().runtime(Role::Maintenance).worker(0);
    let before = bytes();
    let points = points(&worker, COUNT);
    let each = (bytes() - before) as f64 / COUNT as f64;
    drop(points);
    vec![Row::with_ratio("memory of a point", "B", each, 0.0, each, Target::AtMost(1_024.0))]
}
