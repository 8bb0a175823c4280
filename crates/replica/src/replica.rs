//! The replica, and the controller that drives it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use holdgap::{Registry, Role};
use holdgap_trace::Sharing;

use crate::churn::{ArrangementId, Table};
use crate::command::{Interact, JoinId, JoinPart, Maintain, Time};
use crate::compaction::Compactions;
use crate::error::ReplicaError;
use crate::interactive::Interactive;
use crate::maintenance::Maintenance;
use crate::runtime::Runtime;

/// How large a replica is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaOptions {
    /// Workers of each runtime; 8 by default.
    pub workers: usize,
    /// Rows of each arrangement; 1,000 by default.
    pub keys: u64,
}

impl Default for ReplicaOptions {
    fn default() -> Self {
        ReplicaOptions { workers: 8, keys: 1_000 }
    }
}

/// Two timely runtimes that share arrangements, and their controller.
///
/// Nothing moves by itself: [`round`](Self::round) is what drives the churn and the compaction, so
/// that whoever has a replica decides on its pace.
pub struct Replica {
    options: ReplicaOptions,
    registry: Registry,
    interactive: Runtime<Interact>,
    maintenance: Runtime<Maintain>,
    compactions: Arc<Compactions>,
    results: Receiver<JoinPart>,
    tables: BTreeMap<ArrangementId, Table>,
    next_arrangement: u64,
    /// The times of the last two rounds.
    rounds: [Option<Time>; 2],
    joins: BTreeMap<JoinId, PendingJoin>,
    next_join: u64,
}

struct PendingJoin {
    expected: Vec<(u64, u64, u64)>,
    begun: Instant,
    parts: usize,
    rows: Vec<((u64, u64, u64), isize)>,
}

/// A join that has completed on every worker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JoinOutcome {
    /// Which one.
    pub join: JoinId,
    /// Whether its rows were those that the input says.
    pub right: bool,
    /// How many rows it had.
    pub rows: usize,
    /// From the command to the last worker's answer.
    pub took: Duration,
}

impl Replica {
    /// Starts both runtimes, without any arrangement.
    ///
    /// # Errors
    ///
    /// If the threads cannot be started.
    pub fn start(registry: &Registry, options: ReplicaOptions) -> Result<Self, ReplicaError> {
        let sharing = Sharing::new(registry);
        let (sending, results) = channel();
        let maintaining = registry.runtime(Role::Maintenance);
        let publishing = sharing.clone();
        let maintenance = Runtime::start("maintenance", options.workers, move |index| {
            (Maintenance::new(publishing.clone()), maintaining.worker(index).reporter())
        })?;
        let compactions = Arc::new(Compactions::new(Arc::clone(maintenance.commands())));
        let following = Arc::clone(&compactions);
        let interacting = registry.runtime(Role::Interactive);
        let interactive = Runtime::start("interactive", options.workers, move |index| {
            let sharing = sharing.with_role(Role::Interactive);
            let role = Interactive::new(sharing, sending.clone(), Arc::clone(&following));
            (role, interacting.worker(index).reporter())
        })?;
        Ok(Replica {
            options,
            registry: registry.clone(),
            interactive,
            maintenance,
            compactions,
            results,
            tables: BTreeMap::new(),
            next_arrangement: 1,
            rounds: [None, None],
            joins: BTreeMap::new(),
            next_join: 0,
        })
    }

    /// Creates an arrangement. It gets its rows with the next round.
    pub fn create(&mut self) -> ArrangementId {
        let id = ArrangementId(self.next_arrangement);
        self.next_arrangement += 1;
        self.tables.insert(id, Table::new(id));
        self.interactive.commands().send(&Interact::Create(id));
        self.maintenance.commands().send(&Maintain::Create(id));
        id
    }

    /// Drops an arrangement. Joins over it that are under way complete if its data was sealed.
    pub fn drop_arrangement(&mut self, id: ArrangementId) {
        if self.tables.remove(&id).is_some() {
            self.interactive.commands().send(&Interact::Drop(id));
            self.maintenance.commands().send(&Maintain::Drop(id));
        }
    }

    /// One round of churn: changes rows of every arrangement at the present time, and allows
    /// compaction up to the round before. Returns the time.
    ///
    /// The interactive runtime hears of the compaction first: see the crate's documentation.
    pub fn round(&mut self) -> Time {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = Time::try_from(now.as_millis()).unwrap_or(Time::MAX / 2);
        let [_, last] = self.rounds;
        // A clock that steps back must not take the times with it.
        let time = last.map_or(now, |last| now.max(last + 1));
        if let Some(last) = last {
            self.allow_compaction(last);
        }
        let keys = self.options.keys;
        let changes = self.tables.iter_mut().map(|(id, table)| (*id, table.next_round(keys)));
        let changes = Arc::new(changes.collect());
        self.maintenance.commands().send(&Maintain::Round { time, changes });
        self.rounds = [last, Some(time)];
        time
    }

    /// Allows compaction of every arrangement up to `time`, to both runtimes.
    fn allow_compaction(&self, time: Time) {
        let ids = Arc::new(self.arrangements());
        self.compactions.begin(time, Arc::clone(&ids), self.options.workers);
        self.interactive.commands().send(&Interact::AllowCompaction(ids, time));
    }

    /// Begins a join of two arrangements at the last time that is complete: that of the round
    /// before the last.
    ///
    /// Returns `None` before the second round of either, and for an arrangement that is gone.
    pub fn join(&mut self, left: ArrangementId, right: ArrangementId) -> Option<JoinId> {
        let [Some(as_of), _] = self.rounds else { return None };
        let expected = self.tables.get(&left)?.join_before(self.tables.get(&right)?)?;
        let join = JoinId(self.next_join);
        self.next_join += 1;
        let (begun, parts, rows) = (Instant::now(), 0, Vec::new());
        self.joins.insert(join, PendingJoin { expected, begun, parts, rows });
        self.interactive.commands().send(&Interact::Join { join, sides: [left, right], as_of });
        Some(join)
    }

    /// How many joins are under way.
    pub fn pending_joins(&self) -> usize {
        self.joins.len()
    }

    /// Waits at most `timeout` for a join to complete, and says how it came out.
    pub fn next_outcome(&mut self, timeout: Duration) -> Option<JoinOutcome> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let part = match self.results.recv_timeout(left) {
                Ok(part) => part,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            };
            let Some(pending) = self.joins.get_mut(&part.join) else { continue };
            pending.rows.extend(part.rows);
            pending.parts += 1;
            if pending.parts == self.options.workers {
                return self.joins.remove(&part.join).map(|pending| pending.outcome(part.join));
            }
        }
    }

    /// Has the interactive runtime read an arrangement and not let go of it for so long.
    pub fn linger(&self, id: ArrangementId, stay: Duration) {
        self.interactive.commands().send(&Interact::Linger { id, stay });
    }

    /// The arrangements that there are.
    pub fn arrangements(&self) -> Vec<ArrangementId> {
        self.tables.keys().copied().collect()
    }

    /// The registry that the replica publishes in.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Whether every worker of both runtimes is at work. If not, [`stop`](Self::stop) says why.
    pub fn is_whole(&self) -> bool {
        self.maintenance.is_whole() && self.interactive.is_whole()
    }

    /// Ends both runtimes.
    ///
    /// # Errors
    ///
    /// If a worker had panicked.
    pub fn stop(mut self) -> Result<(), ReplicaError> {
        let interactive = self.interactive.stop();
        self.maintenance.stop().and(interactive)
    }
}

impl PendingJoin {
    fn outcome(mut self, join: JoinId) -> JoinOutcome {
        differential_dataflow::consolidation::consolidate(&mut self.rows);
        let expected = self.expected.iter().map(|row| (*row, 1));
        let right = self.rows.iter().copied().eq(expected);
        JoinOutcome { join, right, rows: self.rows.len(), took: self.begun.elapsed() }
    }
}
