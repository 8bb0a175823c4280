//! Names that others gave, as outputs may show them: of bounded length.

use std::time::Duration;

/// How many characters of a name are shown at most.
const LONGEST: usize = 200;

/// A name, cut with a mark if it is too long.
pub(crate) fn bounded(name: &str) -> String {
    match name.char_indices().nth(LONGEST) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}

/// A name as a terminal may show it: bounded, and without control characters.
pub(crate) fn plain(name: &str) -> String {
    bounded(name).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A number of milliseconds as people read it: `4m 12s`, `5.2s`, `80ms`.
pub(crate) fn milliseconds(milliseconds: u64) -> String {
    time(Duration::from_millis(milliseconds))
}

/// A time as people read it, in its two largest units.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) if seconds >= 10 => format!("{seconds}s"),
        (0, 0, 0) if time >= Duration::from_secs(1) => format!("{:.1}s", time.as_secs_f64()),
        (0, 0, 0) => format!("{}ms", time.as_millis()),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

/// A count as people read it: `18`, `2.1M`.
pub(crate) fn count(count: u64) -> String {
    let scaled = |by: f64, unit| format!("{:.1}{unit}", count as f64 / by);
    match count {
        0..10_000 => count.to_string(),
        10_000..1_000_000 => scaled(1e3, "k"),
        1_000_000..1_000_000_000 => scaled(1e6, "M"),
        _ => scaled(1e9, "G"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counts_read_as_people_say_them() {
        let read = [0, 80, 1_000, 5_240, 59_999, 252_000, 3_725_000, 90_000_000, u64::MAX]
            .map(milliseconds);
        let said = ["0ms", "80ms", "1.0s", "5.2s", "59s", "4m 12s", "1h 2m", "1d 1h"];
        assert_eq!(&read[..8], said);
        assert_eq!([18, 9_999, 12_345, 2_100_000].map(count), ["18", "9999", "12.3k", "2.1M"]);
        assert_eq!(plain("a\u{1b}[31m\nb"), "a\u{fffd}[31m\u{fffd}b");
    }

    #[test]
    fn a_long_name_is_cut_between_characters_and_marked() {
        assert_eq!(bounded("u42"), "u42");
        let exact = "é".repeat(LONGEST);
        assert_eq!(bounded(&exact), exact);
        let cut = bounded(&"é".repeat(10_000));
        assert_eq!(cut.chars().count(), LONGEST + 1);
        assert!(cut.ends_with('…'));
    }
}
