//! Points as a table, for a terminal.

use std::time::Duration;

use crate::pages::Point;
use crate::text::{count, milliseconds, plain, time};

/// The heads of the columns.
pub(crate) const HEADS: [&str; 7] =
    ["ARRANGEMENT", "ROLE", "WORKER", "GAP", "HELD FOR", "PINS", "HELD BY"];

/// One line that says how it stands: held, how far, for how long, where.
pub(crate) fn headline(points: &[Point]) -> String {
    let live = points.iter().filter(|point| !point.frozen);
    let held = live.filter(|point| point.held).count();
    let total = points.len();
    let Some(worst) = points.iter().find(|point| point.held && !point.frozen) else {
        return format!("all clear: none of {total} points is held");
    };
    let gap = milliseconds(worst.gap);
    let stalled = worst.stalled_seconds.map(seconds).unwrap_or_default();
    let (role, worker) = (plain(&worst.role), worst.worker);
    format!(
        "{held} of {total} points held, worst gap {gap}, for {stalled} ({role}, worker {worker})"
    )
}

/// Seconds as people read them. What another process's segment says may be anything.
pub(crate) fn seconds(seconds: f64) -> String {
    time(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX))
}

/// Whether there is something to say of a point: it is held, or pins something.
pub(crate) fn is_notable(point: &Point) -> bool {
    let physically = point.physical.as_ref().is_some_and(|physical| physical.held);
    point.held || physically || point.pinned.as_ref().is_some_and(|pinned| pinned.batches > 0)
}

/// The points that are held or pin something, in the order given, under their heads; nothing if there
/// are none.
pub(crate) fn table<'a>(points: impl IntoIterator<Item = &'a Point>) -> String {
    let notable = points.into_iter().filter(|point| is_notable(point));
    let rows: Vec<[String; HEADS.len()]> = notable.map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let heads = HEADS.map(ToOwned::to_owned);
    let lines: Vec<_> = std::iter::once(heads).chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<_> = (0..HEADS.len()).map(|column| width(column).unwrap_or(0)).collect();
    let line = |cells: &[String; HEADS.len()]| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    lines.iter().map(line).collect()
}

/// What the columns say of a point.
pub(crate) fn row(point: &Point) -> [String; HEADS.len()] {
    let (id, name) = (plain(&point.id), plain(&point.name));
    let called = if name == id { id } else { format!("{id} {name}") };
    let frozen = if point.frozen { " (frozen)" } else { "" };
    let physical = point.physical.as_ref().filter(|physical| physical.held);
    let gap = match (point.held, physical) {
        (true, _) => milliseconds(point.gap),
        (false, Some(physical)) => format!("{} (physical)", milliseconds(physical.gap)),
        (false, None) => "-".to_owned(),
    };
    let pins = point.pinned.as_ref().filter(|pinned| pinned.batches > 0);
    [
        format!("{called}{frozen}"),
        plain(&point.role),
        point.worker.to_string(),
        gap,
        point.stalled_seconds.map_or_else(|| "-".to_owned(), seconds),
        pins.map_or_else(
            || "-".to_owned(),
            |pins| format!("{} batches, {}", count(pins.batches), count(pins.updates)),
        ),
        holders(point),
    ]
}

/// The longest registered holder, and how many there are beside it.
fn holders(point: &Point) -> String {
    let Some(first) = point.holders.first() else { return "-".to_owned() };
    // What another process's segment says may be anything.
    let more = point.more_holders.saturating_add(point.holders.len() as u64 - 1);
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    let (kind, label, age) = (plain(&first.kind), plain(&first.label), seconds(first.age_seconds));
    format!("{kind} {label}, {age}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdgap::{HoldGap, HoldKind, HolderView, Pins, PointView, Role};

    fn view(id: &str, name: &str) -> PointView {
        let mut view = PointView::default();
        (view.ids, view.name) = (vec![id.into()], name.into());
        (view.role, view.worker) = (Role::Maintenance, 3);
        view
    }

    #[test]
    fn the_table_is_what_someone_on_call_reads() {
        let mut held = view("u42", "orders by customer");
        held.gap = HoldGap { held: true, distance: 252_000 };
        held.stalled = Some(Duration::from_secs(253));
        held.pins = Some(Pins { batches: 18, updates: 2_100_000 });
        let label = "report-9 (interactive)".into();
        let age = Duration::from_secs(253);
        held.holders = vec![HolderView { kind: HoldKind::Import, label, age }];
        held.more_holders = 2;
        let points = [held, view("u7", "u7")].map(Point::of);
        assert_eq!(
            headline(&points),
            "1 of 2 points held, worst gap 4m 12s, for 4m 13s (maintenance, worker 3)"
        );
        let expected = "\
ARRANGEMENT             ROLE         WORKER  GAP     HELD FOR  PINS              HELD BY
u42 orders by customer  maintenance  3       4m 12s  4m 13s    18 batches, 2.1M  \
import report-9 (interactive), 4m 13s, and 2 more
";
        assert_eq!(table(&points), expected);
        assert_eq!(headline(&points[1..]), "all clear: none of 1 points is held");
        assert_eq!(table(&points[1..]), "");
    }

    #[test]
    fn a_hostile_name_moves_no_cursor() {
        let mut held = view("a\u{1b}[2J", "b\nc");
        held.gap.held = true;
        let text = table(&[Point::of(held)]);
        assert_eq!(text.lines().count(), 2);
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
