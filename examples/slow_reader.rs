//! One reader that never advances among a thousand that do, and how to find it.
//!
//! The gauges say that something is held back, how far and for how long; the points say who.
//!
//! ```console
//! $ cargo run -p holdgap-examples --example slow_reader
//! ```

#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::time::Duration;

use differential_dataflow::input::InputSession;
use holdgap::{HoldKind, Registry, Role};
use holdgap_trace::{ArrangeShared, Reader, Sharing, ValBatch};
use timely::dataflow::operators::Probe;
use timely::progress::Antichain;

type Orders = Reader<ValBatch<u64, u64, u64, isize>>;

fn main() {
    let registry = Registry::new();
    let sharing = Sharing::new(&registry);
    timely::execute_directly(move |worker| {
        let mut input = InputSession::<u64, (u64, u64), isize>::new();
        let (mut orders, probe) = worker.dataflow(|scope| {
            let orders = input.to_collection(scope).arrange_shared_by_key("orders");
            (sharing.publish("u42", &orders).expect("nothing else is u42"), orders.stream.probe().0)
        });
        let reader = |name: String| -> Orders {
            let reader = sharing.reader("u42", 0).expect("it is published, as such");
            reader.with_label(name)
        };
        let mut quick: Vec<Orders> = (0..1_000).map(|n| reader(format!("dashboard {n}"))).collect();
        let mut slow = Some(reader("report of last night".to_owned()));

        for time in 1..=200_u64 {
            input.update((time % 7, time), 1);
            input.advance_to(time + 1);
            input.flush();
            while probe.less_than(&(time + 1)) {
                worker.step();
            }
            let now = Antichain::from_elem(time);
            orders.allow_compaction(now.borrow());
            for reader in &mut quick {
                reader.set_logical_compaction(now.borrow());
                reader.set_physical_compaction(now.borrow());
            }
            if time == 150 {
                slow = None;
            }
            worker.step();
            if time % 50 == 49 {
                std::thread::sleep(Duration::from_millis(200));
                show(&registry, time);
            }
        }
        assert!(slow.is_none());
    });
}

/// What the gauges show at `time`, and whom the points name.
fn show(registry: &Registry, time: u64) {
    let worker = registry.runtime(Role::Maintenance).worker(0);
    let report = worker.report();
    println!(
        "at {time}: {} of {} held, gap {}, for {:.1} s; readers bind {} of them",
        report.held,
        report.published,
        report.hold_gap,
        report.hold_stalled.as_secs_f64(),
        report.by_kind(HoldKind::Reader).held,
    );
    for point in worker.worst(1).iter().filter(|point| point.gap.held) {
        for holder in &point.holders {
            let (kind, label, age) = (holder.kind, &holder.label, holder.age.as_secs_f64());
            println!(
                "  {}: held at {} by {kind} {label:?}, {age:.1} s old",
                point.ids[0], point.applied
            );
        }
        println!("  and by {} more", point.more_holders);
    }
}
