//! The embedded replica: a thread that gives it its pace.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use holdgap::Registry;
use holdgap_replica::{Replica, ReplicaOptions};

use crate::args::ReplicaArgs;

/// A replica under way, and the thread that drives it.
pub(crate) struct Driver {
    stop: Sender<()>,
    thread: JoinHandle<anyhow::Result<()>>,
}

/// When the slow reader comes, after the first round: late enough to show what was before it.
const ROUNDS_BEFORE_SLOW_READER: u32 = 3;

impl Driver {
    /// Starts the replica with its arrangements, and drives it. `ended` is called if it ends by
    /// itself.
    pub(crate) fn start(
        registry: &Registry,
        args: &ReplicaArgs,
        ended: impl FnOnce() + Send + 'static,
    ) -> anyhow::Result<Self> {
        let options = ReplicaOptions { workers: args.workers.into(), ..ReplicaOptions::default() };
        let mut replica = Replica::start(registry, options)?;
        for _ in 0..args.arrangements {
            replica.create();
        }
        let (stop, stopped) = channel();
        let (round, slow_reader) = (args.round, args.slow_reader);
        let drive = move || {
            let mut next = Instant::now();
            for rounds in 0_u32.. {
                replica.round();
                if let (ROUNDS_BEFORE_SLOW_READER, Some(stay)) = (rounds, slow_reader) {
                    replica.arrangements().first().iter().for_each(|id| replica.linger(**id, stay));
                }
                next = (next + round).max(Instant::now());
                let left = next.saturating_duration_since(Instant::now());
                match stopped.recv_timeout(left) {
                    Err(RecvTimeoutError::Timeout) if replica.is_whole() => {}
                    Err(RecvTimeoutError::Timeout) => {
                        ended();
                        return replica.stop().context("the embedded replica has ended");
                    }
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            replica.stop().context("the embedded replica has ended")
        };
        let thread = std::thread::Builder::new().name("replica".to_owned()).spawn(drive)?;
        Ok(Driver { stop, thread })
    }

    /// Ends the replica, and says what it died of if it had ended by itself.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        // It may have ended already.
        let _ = self.stop.send(());
        match self.thread.join() {
            Ok(result) => result,
            Err(_) => anyhow::bail!("the thread that drives the embedded replica panicked"),
        }
    }
}

/// How people read a duration that they gave on the command line: `1 s`, `500 ms`.
pub(crate) fn spelled(duration: Duration) -> String {
    let text = humantime::format_duration(duration).to_string();
    let mut spelled = String::with_capacity(text.len() + 4);
    let mut last = ' ';
    for next in text.chars() {
        if last.is_ascii_digit() && next.is_alphabetic() {
            spelled.push(' ');
        }
        spelled.push(next);
        last = next;
    }
    spelled
}
