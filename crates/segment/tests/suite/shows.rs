use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdgap::{
    Clock, Distance, HoldReport, Pinned, Pins, PointView, Queued, Registry, RegistryOptions, Role,
};
use timely::order::Product;
use timely::progress::Antichain;

use crate::support::{
    FIRST, PATIENCE, Publisher, Scratch, at, check, held_by, maintenance, publish,
};

/// A report without what only the process itself has.
fn outside(mut report: HoldReport) -> HoldReport {
    report.hold_gap_peak = None;
    report.process = None;
    report
}

fn views(points: Vec<PointView>) -> Vec<PointView> {
    let view = |mut view: PointView| {
        view.process = None;
        view
    };
    points.into_iter().map(view).collect()
}

/// Waits for a heartbeat that shows `is_so`.
fn wait(scratch: &Scratch, is_so: impl Fn(&[HoldReport]) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let reports = scratch.segment().reports().unwrap();
        if is_so(&reports) {
            return;
        }
        assert!(Instant::now() < deadline, "{reports:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn reports_and_points_are_those_of_the_registry() {
    let clock = Clock::manual();
    clock.set(Duration::from_secs(100));
    let options = RegistryOptions { clock: clock.clone(), prefix: "app_".to_owned() };
    let registry = Registry::with_options(options);
    let worker = maintenance(&registry);
    let mut before: Vec<_> = (0..100).map(|n| worker.publish(format!("u{n}"), "before")).collect();
    let (one, other) = (held_by("one"), held_by("other"));
    for (n, point) in (FIRST..).zip(&mut before) {
        publish(point, n, &one);
    }
    let scratch = Scratch::new();
    let _attachment = scratch.attach(&registry);
    let interactive = registry.runtime(Role::Interactive).worker(7);
    let mut after: Vec<_> =
        (0..100).map(|n| interactive.publish(format!("i{n}"), "after")).collect();
    for (n, point) in (FIRST + 500..).zip(&mut after) {
        publish(point, n, &other);
    }
    publish(&mut before[3], FIRST + 9_000, &other);
    before[4].freeze();
    before[5].add_id("again");
    before[6].set_queued(Queued { instructions: 7, batches: 3 });
    before.truncate(90);
    let mut own = registry.runtime(Role::named("in\"gest\n")).worker(1).publish("x", "named");
    publish(&mut own, FIRST + 1, &one);

    // What is measured at all is told by a heartbeat, which also tells what time it is.
    wait(&scratch, |reports| {
        reports.len() == 3 && reports.iter().all(|report| report.measures.lag)
    });
    let expected: Vec<_> = registry.reports().into_iter().map(outside).collect();
    let segment = scratch.segment();
    let shown: Vec<_> = segment.reports().unwrap().into_iter().map(outside).collect();
    assert_eq!(shown, expected);
    assert_eq!((segment.prefix(), segment.is_up(), segment.not_shown()), ("app_", true, 0));
    assert_eq!(segment.process().to_string(), format!("test:{}", std::process::id()));

    let expected = registry.page(0, usize::MAX);
    let mut shown = views(segment.points().unwrap());
    assert_eq!(shown.len(), expected.total);
    for mut point in expected.points {
        // Only the first id travels, and queues only where one counts them.
        point.ids.truncate(1);
        point.queued =
            point.queued.or(Some(Queued::default())).filter(|_| point.role == Role::Maintenance);
        let place = shown.iter().position(|shown| *shown == point);
        let Some(place) = place else {
            panic!(
                "{point:#?}\nis not among\n{:#?}",
                shown.iter().filter(|s| s.ids == point.ids).collect::<Vec<_>>()
            );
        };
        shown.remove(place);
    }
    assert!(shown.is_empty());
    let worst = views(segment.look(2).unwrap().1);
    assert_eq!(worst.len(), 5, "two, two and the one there is");
    assert_eq!(worst[0].gap, registry.page(0, 1).points[0].gap);
}

#[test]
fn a_point_that_is_dropped_is_gone_and_the_next_in_its_place_is_not_taken_for_it() {
    let clock = Clock::manual();
    let options = RegistryOptions { clock: clock.clone(), ..RegistryOptions::default() };
    let registry = Registry::with_options(options);
    let scratch = Scratch::new();
    let _attachment = scratch.attach(&registry);
    let worker = maintenance(&registry);
    let mut first = worker.publish::<u64>("first", "first");
    publish(&mut first, FIRST, &held_by("one"));
    assert_eq!(scratch.segment().points().unwrap().len(), 1);
    drop(first);
    assert!(scratch.segment().points().unwrap().is_empty());
    // Its slot is not used again at once: somebody outside may be looking at it.
    let second = worker.publish::<u64>("second", "second");
    clock.set(Duration::from_secs(10));
    let third = worker.publish::<u64>("third", "third");
    let shown = scratch.segment().points().unwrap();
    let names: Vec<_> =
        shown.iter().map(|view| (&*view.name, view.gap.held, view.holders.len())).collect();
    assert_eq!(names.len(), 2);
    assert!(
        names.contains(&("second", false, 0)) && names.contains(&("third", false, 0)),
        "{names:?}"
    );
    drop((second, third));
}

#[test]
fn frontiers_of_every_kind_of_time_are_shown() {
    fn shown<T: Distance>(
        scratch: &Scratch,
        registry: &Registry,
        requested: Antichain<T>,
    ) -> String {
        let mut point = maintenance(registry).publish("u", "u");
        point.set(&requested, &Antichain::from_elem(T::minimum()));
        let points = scratch.segment().points().unwrap();
        points.into_iter().find(|view| view.gap.held).unwrap().requested
    }
    let (registry, scratch) = (Registry::new(), Scratch::new());
    let _attachment = scratch.attach(&registry);
    assert_eq!(shown(&scratch, &registry, at(u64::MAX)), format!("{{{}}}", u64::MAX));
    assert_eq!(shown(&scratch, &registry, Antichain::from_elem(-3_i32)), "{-3}");
    let nested = Antichain::from_iter([Product::new(1_u64, 5_u64), Product::new(2, 0)]);
    let text = shown(&scratch, &registry, nested);
    assert!(text.contains("outer: 1") || text.contains("(1, 5)"), "{text}");
    assert_eq!(shown(&scratch, &registry, Antichain::<u64>::new()), "{}");
}

#[test]
fn what_is_pinned_is_told_by_a_heartbeat_though_nobody_publishes() {
    struct Some(AtomicBool);
    impl Pinned for Some {
        fn pins(&self) -> Pins {
            let batches = self.0.load(Ordering::Relaxed).into();
            Pins { batches, updates: batches * 10 }
        }
    }
    let (registry, scratch) = (Registry::new(), Scratch::new());
    let _attachment = scratch.attach(&registry);
    let mut point = maintenance(&registry).publish::<u64>("u1", "orders");
    let pinned = Arc::new(Some(AtomicBool::new(true)));
    point.count_pins(Arc::<Some>::clone(&pinned));
    point.set_queued(Queued::default());
    wait(&scratch, |reports| reports[0].pins.updates == 10);
    pinned.0.store(false, Ordering::Relaxed);
    wait(&scratch, |reports| reports[0].pins == Pins::default() && reports[0].measures.pins);
}

#[test]
fn more_points_than_there_is_room_for_are_counted() {
    let (registry, scratch) = (Registry::new(), Scratch::new());
    let options = holdgap_segment::SegmentOptions { max_points: 64 + 128, ..scratch.options() };
    let _attachment = holdgap_segment::attach(&registry, options).unwrap();
    let worker = maintenance(&registry);
    let points: Vec<_> = (0..500).map(|n| worker.publish::<u64>(format!("u{n}"), "u")).collect();
    let deadline = Instant::now() + PATIENCE;
    while scratch.segment().not_shown() != 500 - 192 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(scratch.segment().count().unwrap(), 192);
    assert_eq!(worker.report().published, 500, "the process itself sees all");
    drop(points);
}

/// Ten thousand points published at full speed by another process, a million times looked at.
#[test]
fn of_a_million_pairs_looked_at_none_is_mixed() {
    const POINTS: u64 = 10_000;
    let scratch = Scratch::new();
    let mut publisher = Publisher::start(&scratch, POINTS);
    publisher.wait(&scratch, POINTS);
    let (mut looked, mut moved, mut last) = (0, 0_u64, 0);
    while looked < 1_000_000 {
        let points = scratch.segment().points().unwrap();
        assert_eq!(points.len() as u64, POINTS);
        points.iter().for_each(check);
        looked += points.len();
        let newest = points.iter().map(|view| view.sequence).max().unwrap();
        moved += u64::from(newest > last);
        last = newest;
    }
    assert!(moved > 10, "it was at it all the while");
}

/// Points that one thread publishes at full speed while another attaches: none is lost or mixed.
#[test]
fn a_segment_may_be_attached_while_points_are_published_at_full_speed() {
    for _ in 0..20 {
        let (registry, scratch) = (Registry::new(), Scratch::new());
        let done = AtomicBool::new(false);
        let worker = maintenance(&registry);
        let mut points: Vec<_> = (0..200).map(|n| worker.publish(format!("u{n}"), "u")).collect();
        let holders = held_by("one");
        let last = std::thread::scope(|scope| {
            let publishing = scope.spawn(|| {
                let mut n = FIRST;
                while !done.load(Ordering::Relaxed) {
                    // The second half is published to once and then left alone.
                    let some = if n == FIRST { 200 } else { 100 };
                    points[..some].iter_mut().for_each(|point| publish(point, n, &holders));
                    n += 1;
                }
                n - 1
            });
            std::thread::sleep(Duration::from_millis(2));
            let attachment = scratch.attach(&registry);
            std::thread::sleep(Duration::from_millis(2));
            done.store(true, Ordering::Relaxed);
            (publishing.join().unwrap(), attachment)
        });
        let shown = scratch.segment().points().unwrap();
        assert_eq!(shown.len(), 200);
        shown.iter().for_each(check);
        for view in &shown {
            let n: u64 = view.ids[0][1..].parse().unwrap();
            let newest = if n < 100 { last.0 } else { FIRST };
            assert_eq!(view.requested, format!("{{{newest}}}"), "{view:?}");
        }
    }
}
