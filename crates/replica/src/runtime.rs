//! What both runtimes have in common: their threads, and the loop of a worker.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use holdgap::Reporter;
use timely::communication::WorkerGuards;
use timely::worker::Worker;
use timely::{CommunicationConfig, Config, WorkerConfig};

use crate::command::{CommandSender, Order, streams};
use crate::error::ReplicaError;

/// A runtime's workers, as the controller has them.
pub(crate) struct Runtime<C: Clone> {
    name: &'static str,
    commands: Arc<CommandSender<C>>,
    guards: Option<WorkerGuards<()>>,
    workers: usize,
    /// One clone for each worker that has not ended.
    alive: Arc<()>,
}

/// What a worker of one runtime does with its commands.
pub(crate) trait Role: 'static {
    type Command: Clone + Send + 'static;

    /// Obeys one command.
    fn obey(&mut self, worker: &mut Worker, command: Self::Command);

    /// Looks after what is under way. Returns how long the worker may sleep at most.
    fn attend(&mut self, worker: &mut Worker) -> Duration;
}

/// The longest that an idle worker sleeps: its reporter is due once a second.
pub(crate) const NAP: Duration = Duration::from_millis(250);

impl<C: Clone + Send + 'static> Runtime<C> {
    /// Starts `workers` threads, each with the role that `role` makes for it.
    pub(crate) fn start<R: Role<Command = C>>(
        name: &'static str,
        workers: usize,
        role: impl Fn(usize) -> (R, Reporter) + Send + Sync + 'static,
    ) -> Result<Self, ReplicaError> {
        let mut config = WorkerConfig::default().idle_spin(Duration::ZERO);
        let merging = differential_dataflow::Config::default().idle_merge_effort(Some(1_000));
        differential_dataflow::configure(&mut config, &merging);
        let communication = match workers {
            1 => CommunicationConfig::Thread,
            workers => CommunicationConfig::Process(workers),
        };
        let (pending, streams) = streams::<C>(workers);
        let alive = Arc::new(());
        let living = Arc::clone(&alive);
        let guards = timely::execute(Config { communication, worker: config }, move |worker| {
            let _living = Arc::clone(&living);
            let index = worker.index();
            if let Some(commands) = streams.take(index) {
                let (role, reporter) = role(index);
                run(worker, role, &commands, &reporter);
            }
        });
        let guards = guards.map_err(|message| ReplicaError { runtime: name, message })?;
        let Some(commands) = pending.started() else {
            let message = "it ended before it began".to_owned();
            return Err(ReplicaError { runtime: name, message });
        };
        let (commands, guards) = (Arc::new(commands), Some(guards));
        Ok(Runtime { name, commands, guards, workers, alive })
    }

    /// The way to send to the workers.
    pub(crate) fn commands(&self) -> &Arc<CommandSender<C>> {
        &self.commands
    }

    /// Ends the command streams, and waits for the workers to end. Says what one of them died of.
    pub(crate) fn stop(&mut self) -> Result<(), ReplicaError> {
        self.commands.stop();
        let Some(guards) = self.guards.take() else { return Ok(()) };
        for result in guards.join() {
            result.map_err(|message| ReplicaError { runtime: self.name, message })?;
        }
        Ok(())
    }

    /// Whether every worker is at work.
    pub(crate) fn is_whole(&self) -> bool {
        // One here, and one in the closure that the workers share.
        self.guards.is_some() && Arc::strong_count(&self.alive) == self.workers + 2
    }
}

impl<C: Clone> Drop for Runtime<C> {
    fn drop(&mut self) {
        // The workers end first: to drop the guards is to wait for them.
        self.commands.stop();
        drop(self.guards.take());
    }
}

/// A worker's loop: obey, step, report; sleep when there is nothing to do.
fn run<R: Role>(
    worker: &mut Worker,
    mut role: R,
    commands: &Receiver<Order<R::Command>>,
    reporter: &Reporter,
) {
    loop {
        loop {
            match commands.try_recv() {
                Ok(Order::Obey(command)) => role.obey(worker, command),
                Err(TryRecvError::Empty) => break,
                Ok(Order::Stop) | Err(TryRecvError::Disconnected) => return end(worker, role),
            }
        }
        let nap = role.attend(worker);
        worker.step_or_park(Some(nap));
        reporter.tick(Instant::now());
    }
}

/// Drops what is left, so that the worker has nothing to wait for.
fn end<R: Role>(worker: &mut Worker, role: R) {
    drop(role);
    for dataflow in worker.installed_dataflows() {
        worker.drop_dataflow(dataflow);
    }
}
