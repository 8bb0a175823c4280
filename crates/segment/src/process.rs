//! Which process is which, and whether it lives.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// What tells a process from every other one on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) pid: u32,
    /// When it started, in the kernel's ticks since boot; 0 where that is not known.
    pub(crate) started: u64,
    /// Which pid namespace the pid belongs to; 0 where that is not known.
    pub(crate) namespace: u64,
}

impl Identity {
    /// This process.
    pub(crate) fn own() -> Self {
        let pid = std::process::id();
        Identity { pid, started: started(pid).unwrap_or(0), namespace: own_namespace() }
    }
}

/// Whether the process of a segment lives, seen from `own` namespace.
///
/// In this namespace: there is a process of that pid, and it started when that one did; so a pid
/// that was given to another process revives nobody. In another: it has beaten lately.
pub(crate) fn lives(identity: Identity, own: u64, since_beat: Duration) -> bool {
    /// Ten missed heartbeats.
    const SILENCE: Duration = Duration::from_secs(10);
    if identity.namespace != 0 && identity.namespace == own {
        return identity.started != 0 && started(identity.pid) == Some(identity.started);
    }
    since_beat < SILENCE
}

/// When a process started, if there is one of that pid and it is no zombie.
fn started(pid: u32) -> Option<u64> {
    parse_started(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The start time in a line of `/proc/*/stat`. The command's name stands in parentheses and may have
/// any characters in it.
fn parse_started(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

pub(crate) fn own_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino())
}

/// The system's monotonic clock, which all processes of the machine share.
pub(crate) fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanoseconds) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanoseconds.unwrap_or_default())
}

/// The wall clock, since 1970.
pub(crate) fn unix() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A duration as a word.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_pid_does_not_revive_the_dead() {
        let own = Identity::own();
        assert!(lives(own, own.namespace, Duration::MAX));
        let earlier = Identity { started: own.started - 1, ..own };
        assert!(!lives(earlier, own.namespace, Duration::ZERO));
        let nobody = Identity { pid: u32::MAX, ..own };
        assert!(!lives(nobody, own.namespace, Duration::ZERO));
    }

    #[test]
    fn in_another_pid_namespace_the_heartbeat_decides() {
        let other = Identity { namespace: 7, ..Identity::own() };
        assert!(lives(other, own_namespace(), Duration::from_secs(2)));
        assert!(!lives(other, own_namespace(), Duration::from_secs(60)));
    }

    #[test]
    fn a_command_with_parentheses_and_spaces_in_its_name_is_no_obstacle() {
        let fields = (4..=21).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        let stat = format!("12 (a) b (c)) S {fields} 4711 23 24");
        assert_eq!(parse_started(&stat), Some(4711));
        assert_eq!(parse_started(&stat.replace(" S ", " Z ")), None, "a zombie is dead");
        assert_eq!(parse_started("12 (cut"), None);
    }
}
