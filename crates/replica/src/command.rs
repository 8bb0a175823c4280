//! What the controller sends to the workers of each runtime, and what they answer.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use timely::progress::Antichain;

use crate::churn::{ArrangementId, Change};

/// The timestamps of a replica: milliseconds since the Unix epoch.
pub(crate) type Time = u64;

/// What a worker of the maintenance runtime is told.
#[derive(Clone, Debug)]
pub(crate) enum Maintain {
    /// Make an arrangement and publish it.
    Create(ArrangementId),
    /// Apply a round's changes at one time, and seal it.
    Round { time: Time, changes: Arc<Vec<(ArrangementId, Vec<Change>)>> },
    /// Allow compaction of some arrangements.
    AllowCompaction(Arc<Vec<ArrangementId>>, Antichain<Time>),
    /// Take the arrangement back.
    Drop(ArrangementId),
}

/// What a worker of the interactive runtime is told.
#[derive(Clone, Debug)]
pub(crate) enum Interact {
    /// Follow the compaction of an arrangement.
    Create(ArrangementId),
    /// What this runtime will still read of some arrangements lies at or beyond this.
    AllowCompaction(Arc<Vec<ArrangementId>>, Time),
    /// Join two arrangements at one time.
    Join { join: JoinId, sides: [ArrangementId; 2], as_of: Time },
    /// Hold an arrangement for a while, as a reader that is slow does.
    Linger { id: ArrangementId, stay: Duration },
    /// Forget an arrangement.
    Drop(ArrangementId),
}

/// Names a join within its replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JoinId(pub u64);

/// One worker's part of a join's result.
#[derive(Debug)]
pub(crate) struct JoinPart {
    pub(crate) join: JoinId,
    pub(crate) rows: Vec<((u64, u64, u64), isize)>,
}

/// The controller's end of the command streams of one runtime: every worker gets every command, in
/// the same order.
pub(crate) struct CommandSender<C> {
    workers: Vec<(Sender<Order<C>>, Thread)>,
}

/// What comes down a command stream.
pub(crate) enum Order<C> {
    /// Obey this.
    Obey(C),
    /// End.
    Stop,
}

impl<C: Clone> CommandSender<C> {
    /// Sends to every worker, and wakes those that are parked.
    pub(crate) fn send(&self, command: &C) {
        self.order(|| Order::Obey(command.clone()));
    }

    /// Has every worker end.
    pub(crate) fn stop(&self) {
        self.order(|| Order::Stop);
    }

    fn order(&self, order: impl Fn() -> Order<C>) {
        for (sender, thread) in &self.workers {
            // A worker that is gone shows when its runtime is joined.
            let _ = sender.send(order());
            thread.unpark();
        }
    }
}

/// The workers' ends of the command streams of a runtime that is about to start.
pub(crate) struct CommandStreams<C> {
    receivers: Mutex<Vec<Option<Receiver<Order<C>>>>>,
    started: Mutex<Sender<(usize, Thread)>>,
}

/// The streams of a runtime of so many workers; the sender is to be had once they have started.
pub(crate) fn streams<C>(workers: usize) -> (PendingSender<C>, CommandStreams<C>) {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..workers).map(|_| channel()).unzip();
    let (started, starting) = channel();
    let receivers = Mutex::new(receivers.into_iter().map(Some).collect());
    (
        PendingSender { senders, starting },
        CommandStreams { receivers, started: Mutex::new(started) },
    )
}

/// A [`CommandSender`] whose workers' threads are not known yet.
pub(crate) struct PendingSender<C> {
    senders: Vec<Sender<Order<C>>>,
    starting: Receiver<(usize, Thread)>,
}

impl<C> PendingSender<C> {
    /// Waits until each worker has taken its stream. `None` if one of them ended instead.
    pub(crate) fn started(self) -> Option<CommandSender<C>> {
        let mut threads: Vec<(usize, Thread)> = Vec::new();
        while threads.len() < self.senders.len() {
            threads.push(self.starting.recv().ok()?);
        }
        threads.sort_by_key(|(index, _)| *index);
        let threads = threads.into_iter().map(|(_, thread)| thread);
        Some(CommandSender { workers: self.senders.into_iter().zip(threads).collect() })
    }
}

impl<C> CommandStreams<C> {
    /// The stream of the calling worker. Each worker takes its own, once.
    pub(crate) fn take(&self, index: usize) -> Option<Receiver<Order<C>>> {
        let mut receivers = self.receivers.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = receivers.get_mut(index)?.take();
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = started.send((index, std::thread::current()));
        receiver
    }
}
