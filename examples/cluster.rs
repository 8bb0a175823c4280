//! A timely cluster of several processes, each with a segment of its own.
//!
//! Every worker publishes its shard of one arrangement; one worker's reader does not advance. One
//! exporter shows all processes, and which of them it is.
//!
//! ```console
//! $ export HOLDGAP_SEGMENT_DIR=/dev/shm/holdgap-0
//! $ cargo run -p holdgap-examples --example cluster -- -n 2 -p 0 &
//! $ cargo run -p holdgap-examples --example cluster -- -n 2 -p 1 &
//! $ holdgap-exporter --attach /dev/shm/holdgap-0
//! ```

#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::time::Duration;

use differential_dataflow::input::InputSession;
use holdgap::Registry;
use holdgap_trace::{ArrangeShared, Reader, Sharing, ValBatch};
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::Probe;
use timely::progress::Antichain;

fn main() -> anyhow::Result<()> {
    let registry = Registry::new();
    let attachment = holdgap_segment::attach_if_asked(&registry)?;
    if let Some(attachment) = &attachment {
        println!("shown in {}", attachment.folder().display());
    }
    let sharing = Sharing::new(&registry);
    let guards = timely::execute_from_args(std::env::args(), move |worker| {
        let (index, peers) = (worker.index(), worker.peers());
        let mut input = InputSession::<u64, (u64, u64), isize>::new();
        let probe = ProbeHandle::new();
        let mut rows = worker.dataflow(|scope| {
            let rows = input.to_collection(scope).arrange_shared_by_key("rows");
            rows.stream.clone().probe_with(&probe);
            sharing.publish("u1", &rows).expect("nothing else is published as u1")
        });
        // The last worker's reader stays where it is.
        let reader: Reader<ValBatch<u64, u64, u64, isize>> =
            sharing.reader("u1", index).expect("it was just published");
        let mut reader = reader.with_label(format!("reader of worker {index}"));
        for time in 0.. {
            input.update((time * peers as u64 + index as u64, time), 1);
            input.advance_to(time + 1);
            input.flush();
            while probe.less_than(&(time + 1)) {
                worker.step();
            }
            let sealed = Antichain::from_elem(time);
            rows.allow_compaction(sealed.borrow());
            if index + 1 < peers {
                reader.set_logical_compaction(sealed.borrow());
            }
            worker.step_or_park(Some(Duration::from_millis(10)));
        }
    });
    guards.map_err(anyhow::Error::msg)?;
    Ok(())
}
