//! What runtimes ask on their hot paths: looking up by id and worker, alone, from many threads, and
//! beside reporters; a seal's notification, and draining what is dirty.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use differential_dataflow::input::InputSession;
use holdgap::{Registry, Role};
use holdgap_benches::{MutexRegistry, beside_reporters, median, peer, points};
use holdgap_trace::{ArrangeShared, Reader, SealInbox, Sharing, ValBatch};
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::Probe;

use crate::joins::new_worker;
use crate::measure::{per, time};
use crate::row::{Row, Target};

type Batch = ValBatch<u64, u64, u64, isize>;

const ARRANGEMENTS: u64 = 10_000;
const REPORTERS: usize = 8;

/// A sharing registry with so many ids, and what keeps them known.
fn sharing(count: u64, worker: usize) -> (Registry, Sharing, Vec<String>, Vec<Reader<Batch>>) {
    let registry = Registry::new();
    let sharing = Sharing::new(&registry);
    let ids: Vec<_> = (0..count).map(|n| format!("u{n}")).collect();
    let reader = |id: &String| sharing.reader(id, worker).expect("of one type");
    let readers = ids.iter().map(reader).collect();
    (registry, sharing, ids, readers)
}

/// What a thread that looks up got done beside reporters.
struct Done {
    throughput: f64,
    /// In nanoseconds.
    p9999: f64,
}

fn beside(reporters: usize, report: impl Fn() + Sync, mut look_up: impl FnMut(u64)) -> Done {
    const LONG: Duration = Duration::from_millis(1_000);
    beside_reporters(reporters, report, || {
        let mut latencies = Vec::with_capacity(20_000_000);
        let start = Instant::now();
        let (mut last, mut n) = (start, 0);
        while last - start < LONG {
            n += 1;
            look_up(n);
            let now = Instant::now();
            latencies.push(u32::try_from((now - last).as_nanos()).unwrap_or(u32::MAX));
            last = now;
        }
        let place = latencies.len() * 9_999 / 10_000;
        let (_, p9999, _) = latencies.select_nth_unstable(place);
        Done { throughput: n as f64 / LONG.as_secs_f64(), p9999: f64::from(*p9999) }
    })
}

fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What reporters do to a thread that looks up.
pub(crate) fn interference() -> Vec<Row> {
    let (registry, sharing, ids, _readers) = sharing(ARRANGEMENTS, 0);
    let worker = registry.runtime(Role::Maintenance).worker(0);
    let _points = points(&worker, ARRANGEMENTS);
    let mutexes = peer(ARRANGEMENTS);
    let find = |n: u64| {
        let id = &ids[(n % ARRANGEMENTS) as usize];
        drop(black_box(sharing.reader::<Batch>(id, 0)));
    };
    let known = |n: u64| drop(black_box(mutexes.slot(n % ARRANGEMENTS, 0)));
    let report = || drop(black_box(worker.report()));
    let known_report = || {
        black_box(mutexes.report(0));
    };
    let mut runs = [const { Vec::new() }; 4];
    for _ in 0..5 {
        runs[0].push(beside(0, report, find));
        runs[1].push(beside(REPORTERS, report, find));
        runs[2].push(beside(0, known_report, known));
        runs[3].push(beside(REPORTERS, known_report, known));
    }
    let throughput = |run: usize| middle(runs[run].iter().map(|done| done.throughput)) / 1e6;
    let p9999 = |run: usize| middle(runs[run].iter().map(|done| done.p9999));
    vec![
        Row::of(
            "lookups beside 8 reporters, without",
            "M/s",
            throughput(1),
            throughput(0),
            Target::AtLeast(0.98),
        ),
        Row::of(
            "their p99.99 beside 8 reporters, without",
            "ns",
            p9999(1),
            p9999(0),
            Target::AtMost(1.3),
        ),
        Row::of(
            "  the mutex registry's lookups, without",
            "M/s",
            throughput(3),
            throughput(2),
            Target::None,
        ),
        Row::of("  their p99.99, without", "ns", p9999(3), p9999(2), Target::None),
    ]
}

/// Readers' handles by id and worker, from many threads, beside the mutex registry's slots.
pub(crate) fn lookups() -> Vec<Row> {
    const IDS: u64 = 1_000;
    let (_registry, sharing, ids, _readers) = sharing(IDS, 0);
    let mutexes: MutexRegistry = peer(IDS);
    let mut rows = Vec::new();
    for threads in [1, 8, 64] {
        let find = |n: u64| drop(black_box(sharing.reader::<Batch>(&ids[(n % IDS) as usize], 0)));
        let known = |n: u64| drop(black_box(mutexes.slot(n % IDS, 0)));
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..7 {
            ours.push(from(threads, find));
            theirs.push(from(threads, known));
        }
        let name = format!("look up and register, {threads} threads, mutex registry's lookup");
        let (ours, theirs) = (per(median(ours), OPERATIONS), per(median(theirs), OPERATIONS));
        rows.push(Row::of(name, "ns", ours, theirs, Target::None));
    }
    rows
}

/// The known way: what is dirty by its watcher, under one mutex.
type DirtyByWatcher = Mutex<HashMap<usize, Vec<Arc<str>>>>;

/// A seal that so many inboxes are told of, and that each of them drains.
pub(crate) fn seals() -> Vec<Row> {
    [1, 8, 64].map(sealed).into()
}

fn sealed(watchers: usize) -> Row {
    const ROUNDS: usize = 2_001;
    let (mut worker, mut input, probe) =
        (new_worker(), InputSession::<u64, (u64, u64), isize>::new(), ProbeHandle::new());
    let sharing = Sharing::new(&Registry::new());
    let _published = worker.dataflow(|scope| {
        let rows = input.to_collection(scope).arrange_shared_by_key("rows");
        let published = sharing.publish("u1", &rows).expect("nothing else is u1");
        rows.stream.probe_with(&probe);
        published
    });
    let mut inboxes = Vec::new();
    let mut time_of = |inboxes: &[SealInbox]| {
        let mut round = || {
            let next = input.time() + 1;
            input.advance_to(next);
            input.flush();
            while probe.less_than(&next) {
                worker.step();
            }
            for inbox in inboxes {
                assert_eq!(black_box(inbox.drain()).len(), 1, "each is told of each seal");
            }
        };
        median((0..ROUNDS).map(|_| time(&mut round)).collect())
    };
    let unwatched = time_of(&inboxes);
    for _ in 0..watchers {
        let inbox = sharing.inbox();
        sharing.watch::<Batch>(&inbox, "u1", 0).expect("of one type");
        inboxes.push(inbox);
    }
    let watched = time_of(&inboxes);
    let (known, this, id) = (DirtyByWatcher::default(), std::thread::current(), Arc::from("u1"));
    let theirs = median(
        (0..ROUNDS)
            .map(|_| {
                time(|| {
                    let mut dirty = known.lock().expect("nobody panics under it");
                    for watcher in 0..watchers {
                        dirty.entry(watcher).or_default().push(Arc::clone(&id));
                    }
                    drop(dirty);
                    (0..watchers).for_each(|_| this.unpark());
                    for watcher in 0..watchers {
                        let mut dirty = known.lock().expect("nobody panics under it");
                        black_box(dirty.get_mut(&watcher).map(std::mem::take));
                    }
                })
            })
            .collect(),
    );
    let each = watchers as u64;
    let ours = per(watched.saturating_sub(unwatched), each);
    let name = format!("a seal told to {watchers} inboxes and drained, a map under a mutex");
    Row::of(name, "ns", ours, per(theirs, each), Target::None)
}

const OPERATIONS: u64 = 400_000;

/// The wall time of so many operations, shared out among threads.
fn from(threads: u64, operation: impl Fn(u64) + Sync) -> Duration {
    let next = AtomicU64::new(0);
    time(|| {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let first = next.fetch_add(1_000, Ordering::Relaxed);
                        if first >= OPERATIONS {
                            break;
                        }
                        (first..first + 1_000).for_each(&operation);
                    }
                });
            }
        });
    })
}
