//! A program without any second runtime, whose own forgotten trace handle stops compaction.
//!
//! Nobody reads from outside, so the hold gap is zero: what grows is the owner's own slack.
//!
//! ```console
//! $ cargo run -p holdgap-examples --example forgotten_handle
//! ```

#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use differential_dataflow::input::InputSession;
use holdgap::{Registry, Role};
use holdgap_trace::{ArrangeShared, Sharing};
use timely::dataflow::operators::Probe;
use timely::progress::Antichain;

fn main() {
    let registry = Registry::new();
    let sharing = Sharing::new(&registry).with_role(Role::Solo);
    timely::execute_directly(move |worker| {
        let mut input = InputSession::<u64, (u64, u64), isize>::new();
        let (mut orders, kept, probe) = worker.dataflow(|scope| {
            let orders = input.to_collection(scope).arrange_shared_by_key("orders");
            let published = sharing.publish("u42", &orders).expect("nothing else is u42");
            // A handle kept "for later". It stands at the minimum, and nobody moves it.
            (published, orders.trace, orders.stream.probe().0)
        });
        let mut kept = Some(kept);
        for time in 0..200 {
            input.update((time % 3, time), 1);
            input.advance_to(time + 1);
            input.flush();
            while probe.less_than(&(time + 1)) {
                worker.step();
            }
            orders.allow_compaction(Antichain::from_elem(time).borrow());
            if time == 150 {
                kept = None;
            }
            if time % 50 == 0 || time == 199 {
                let report = registry.runtime(Role::Solo).worker(0).report();
                println!(
                    "at {time:>3}: lag {:>3}, of which the owner's own {:>3}, the readers' {:>3}{}",
                    report.compaction_lag,
                    report.owner_slack,
                    report.hold_gap,
                    if kept.is_some() { "  (a handle is forgotten)" } else { "" },
                );
            }
        }
    });
}
