//! Embedding holdgap in a differential program: two runtimes, one arrangement, one slow reader.
//!
//! ```console
//! $ cargo run -p holdgap-examples --example shared_arrangement
//! ```

#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use differential_dataflow::input::InputSession;
use holdgap::{Registry, Role};
use holdgap_trace::{ArrangeShared, Reader, Sharing, ValBatch};
use timely::progress::Antichain;

type Orders = ValBatch<u64, String, u64, isize>;

fn main() -> anyhow::Result<()> {
    let registry = Registry::new();
    let sharing = Sharing::new(&registry);
    let (done, is_done) = channel();

    let publishing = sharing.clone();
    let maintenance = std::thread::spawn(move || maintain(publishing, is_done));

    // The other runtime asks for the arrangement by its id, before or after it is published.
    let reader: Reader<Orders> = sharing.reader("u42", 0)?;
    let report = || registry.runtime(Role::Maintenance).worker(0).report();
    while report().hold_gap < 30 {
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("a reader that stays where it is: gap {}", report().hold_gap);

    let rows = std::thread::spawn(|| count_rows(reader)).join();
    println!("it reads {} rows", rows.unwrap_or_default());
    while report().held > 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("and lets go: gap {}", report().hold_gap);
    drop(done);
    anyhow::ensure!(maintenance.join().is_ok(), "the maintaining runtime panicked");
    Ok(())
}

/// The runtime that maintains the arrangement: one word more than `arrange_by_key`, and one line.
fn maintain(sharing: Sharing, done: Receiver<()>) {
    let done = std::sync::Mutex::new(done);
    timely::execute_directly(move |worker| {
        let mut input = InputSession::<u64, (u64, String), isize>::new();
        let mut orders = worker.dataflow(|scope| {
            let orders = input.to_collection(scope).arrange_shared_by_key("orders");
            sharing.publish("u42", &orders).expect("nothing else is published as u42")
        });
        for time in 0.. {
            input.update((time % 5, format!("order {time}")), 1);
            input.advance_to(time + 1);
            input.flush();
            worker.step();
            orders.allow_compaction(Antichain::from_elem(time).borrow());
            let waiting = done.lock().expect("nobody else locks it");
            let stop = waiting.recv_timeout(Duration::from_millis(1));
            if stop == Err(std::sync::mpsc::RecvTimeoutError::Disconnected) {
                break;
            }
        }
    });
}

/// The runtime that reads it: an import is an ordinary arrangement.
fn count_rows(reader: Reader<Orders>) -> usize {
    timely::execute_directly(move |worker| {
        let until = reader.upper();
        let (rows, counted) = channel();
        let probe = worker.dataflow(|scope| {
            let orders = reader.import(scope, "orders", until);
            let orders = orders.as_collection(|customer, order| (*customer, order.clone()));
            orders.inspect(move |update| drop(rows.send(update.clone()))).probe().0
        });
        while !probe.done() {
            worker.step_or_park(Some(Duration::from_millis(1)));
        }
        counted.try_iter().count()
    })
}
