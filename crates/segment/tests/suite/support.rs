use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use holdgap::{FrontierPair, Frontiers, HoldKind, Holder, Holders, Point, Registry, Role, Worker};
use holdgap_segment::{Attachment, Folder, Segment, SegmentOptions, attach};
use timely::progress::Antichain;

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A folder in memory, removed with this value.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Scratch(format!("/dev/shm/holdgap-test-{}-{number}", std::process::id()).into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn attach(&self, registry: &Registry) -> Attachment {
        attach(registry, self.options()).unwrap()
    }

    pub(crate) fn options(&self) -> SegmentOptions {
        let folder = Some(self.0.clone());
        SegmentOptions { folder, name: Some("test".to_owned()), ..SegmentOptions::default() }
    }

    /// The only segment there is.
    pub(crate) fn segment(&self) -> Segment {
        let look = Folder::open(&self.0).unwrap().look().unwrap();
        assert!(look.unreadable.is_empty(), "{:?}", look.unreadable);
        assert_eq!(look.segments.len(), 1);
        look.segments.into_iter().next().unwrap()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join(self.segment().file_name())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn at(time: u64) -> Antichain<u64> {
    Antichain::from_elem(time)
}

pub(crate) fn maintenance(registry: &Registry) -> Worker {
    registry.runtime(Role::Maintenance).worker(0)
}

/// How far applied trails requested at `n`: anyone who sees `n` can tell.
pub(crate) fn gap(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54
}

/// Where the pairs of [`publish`] begin.
pub(crate) const FIRST: u64 = 10_000;

/// Publishes the `n`-th pair, with all that goes with it.
pub(crate) fn publish(point: &mut Point<u64>, n: u64, holders: &std::sync::Arc<Holders>) {
    let logical = FrontierPair { requested: at(n), applied: at(n - gap(n)) };
    let physical = FrontierPair { requested: at(n + 3), applied: at(n + 3 - gap(n + 1)) };
    let (physical, upper) = (Some(&physical), at(n + 5));
    let (upper, holders) = (Some(&upper), Some(holders));
    point.publish(&Frontiers { physical, upper, holders, ..Frontiers::logical(&logical) });
}

pub(crate) fn held_by(label: &str) -> std::sync::Arc<Holders> {
    let (kind, registered) = (HoldKind::Reader, Duration::from_secs(1));
    let named = vec![Holder { kind, label: label.into(), registered }];
    Holders { named, more: 0, kinds: [kind].into_iter().collect() }.into()
}

/// Fails unless what is shown of a point was published together.
pub(crate) fn check(view: &holdgap::PointView) {
    let number = |text: &str| text.trim_matches(['{', '}']).parse::<u64>().unwrap();
    let n = number(&view.requested);
    if n == 0 {
        // Not published to yet.
        assert_eq!((view.gap.distance, &*view.applied, view.sequence), (0, "{0}", 0), "{view:?}");
        return;
    }
    assert!(n >= FIRST, "{view:?}");
    assert_eq!(number(&view.applied), n - gap(n), "{view:?}");
    assert_eq!((view.gap.distance, view.gap.held), (gap(n), gap(n) > 0), "{view:?}");
    assert_eq!(view.physical_gap.distance, gap(n + 1), "{view:?}");
    assert_eq!(view.upper.as_deref(), Some(&*format!("{{{}}}", n + 5)), "{view:?}");
    assert_eq!((view.lag, view.slack), (Some(gap(n) + 5), Some(5)), "{view:?}");
    assert_eq!(view.sequence, n - FIRST + 1, "{view:?}");
}

/// What a child process of a test is told by.
const CHILD: &str = "HOLDGAP_TEST_CHILD";

/// A process that attaches and publishes at full speed until it is killed.
pub(crate) struct Publisher(pub(crate) Child);

impl Publisher {
    /// One that publishes so many points into `scratch`.
    pub(crate) fn start(scratch: &Scratch, points: u64) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "support::the_child_of_other_tests", "--nocapture"]);
        command.env(CHILD, points.to_string()).env("HOLDGAP_SEGMENT_DIR", scratch.path());
        command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
        Publisher(command.spawn().unwrap())
    }

    /// Waits until all its points can be seen.
    pub(crate) fn wait(&mut self, scratch: &Scratch, points: u64) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let look = Folder::open(scratch.path()).and_then(|folder| folder.look());
            let shown = look.ok().and_then(|look| look.segments.first()?.count().ok());
            if shown == Some(points) {
                return;
            }
            assert!(Instant::now() < deadline, "it shows {shown:?} of {points}");
            assert!(self.0.try_wait().unwrap().is_none(), "it has ended");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Does nothing, but in a process that [`Publisher::start`] made.
#[test]
fn the_child_of_other_tests() {
    let Some(points) = std::env::var(CHILD).ok().and_then(|points| points.parse::<u64>().ok())
    else {
        return;
    };
    let registry = Registry::new();
    // The first half is there when the segment is attached, the second comes later.
    let worker = maintenance(&registry);
    let add = |n: u64| worker.publish(format!("u{n}"), "published by a child");
    let mut published: Vec<_> = (0..points / 2).map(add).collect();
    let attachment = holdgap_segment::attach_if_asked(&registry).unwrap();
    published.extend((points / 2..points).map(add));
    let holders = ["one", "other"].map(held_by);
    for n in FIRST.. {
        for point in &mut published {
            publish(point, n, &holders[(n / 64 % 2) as usize]);
        }
    }
    drop(attachment);
}
