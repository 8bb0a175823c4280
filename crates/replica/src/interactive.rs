//! The interactive runtime: joins over imports, and readers that stay.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use differential_dataflow::trace::Span;
use holdgap_trace::{Reader, Sharing, StandingHold};
use timely::dataflow::ProbeHandle;
use timely::progress::Antichain;
use timely::worker::Worker;

use crate::churn::ArrangementId;
use crate::command::{Interact, JoinId, JoinPart, Time};
use crate::compaction::Compactions;
use crate::maintenance::Batch;
use crate::runtime::{NAP, Role};

/// A reader that takes its time: it holds compaction where it stands, and the batches that it has
/// yet to read. Half way through it has made its cut, and lets merging go on.
struct Lingering {
    cut: Instant,
    until: Instant,
    reader: Reader<Batch>,
    _chain: Vec<Span<Time, Batch>>,
}

impl Lingering {
    fn new(reader: Reader<Batch>, stay: Duration) -> Self {
        let (now, chain) = (Instant::now(), reader.spans());
        Lingering { cut: now + stay / 2, until: now + stay, reader, _chain: chain }
    }

    /// Does what is due. Returns whether it stays.
    fn attend(&mut self, now: Instant) -> bool {
        if self.cut <= now {
            self.reader.set_physical_compaction(Antichain::new().borrow());
        }
        self.until > now
    }
}

/// One worker's part of the interactive runtime.
pub(crate) struct Interactive {
    sharing: Sharing,
    results: Sender<JoinPart>,
    compactions: Arc<Compactions>,
    standing: BTreeMap<ArrangementId, StandingHold<Batch>>,
    joins: Vec<Join>,
    lingering: Vec<Lingering>,
}

type Rows = Vec<((u64, u64, u64), isize)>;

/// A join under way.
struct Join {
    join: JoinId,
    probe: ProbeHandle<Time>,
    rows: Rc<RefCell<Rows>>,
}

impl Interactive {
    pub(crate) fn new(
        sharing: Sharing,
        results: Sender<JoinPart>,
        compactions: Arc<Compactions>,
    ) -> Self {
        let (standing, joins, lingering) = (BTreeMap::new(), Vec::new(), Vec::new());
        Interactive { sharing, results, compactions, standing, joins, lingering }
    }

    fn join(&mut self, worker: &mut Worker, join: JoinId, sides: [ArrangementId; 2], as_of: Time) {
        let index = worker.index();
        let frontier = Antichain::from_elem(as_of);
        // The standing holds of both sides stand at or before `as_of` until this worker has come to
        // a later compaction command, so a refusal here is a broken promise of the trace's.
        let readers = sides.map(|id| {
            self.sharing
                .reader_at::<Batch>(&id.to_string(), index, &frontier)
                .unwrap_or_else(|refused| panic!("join {}: {refused}", join.0))
        });
        let (rows, probe) = (Rc::new(RefCell::new(Vec::new())), ProbeHandle::new());
        let into: Rc<RefCell<Rows>> = Rc::clone(&rows);
        worker.dataflow_named(&format!("join {}", join.0), |scope| {
            let until = Antichain::from_elem(as_of + 1);
            let name = format!("join-{}", join.0);
            let [left, right] = readers.map(|reader| reader.import(scope, &name, until.clone()));
            left.join_core(right, |key, left, right| Some((*key, *left, *right)))
                .inspect(move |(row, _, diff)| into.borrow_mut().push((*row, *diff)))
                .probe_with(&probe);
        });
        self.joins.push(Join { join, probe, rows });
    }

    /// Answers the joins that are complete.
    fn answer(&mut self) {
        for done in self.joins.extract_if(.., |join| join.probe.done()) {
            let part = JoinPart { join: done.join, rows: done.rows.take() };
            // The controller may have stopped listening.
            let _ = self.results.send(part);
        }
    }
}

impl Role for Interactive {
    type Command = Interact;

    fn obey(&mut self, worker: &mut Worker, command: Interact) {
        let index = worker.index();
        match command {
            Interact::Create(id) => {
                let standing = self.sharing.standing_hold(&id.to_string(), index);
                self.standing.insert(id, standing.expect("all arrangements have one type"));
            }
            Interact::AllowCompaction(ids, time) => {
                let frontier = Antichain::from_elem(time);
                for standing in ids.iter().filter_map(|id| self.standing.get(id)) {
                    standing.allow_compaction(frontier.borrow());
                }
                self.compactions.heard(time);
            }
            Interact::Join { join, sides, as_of } => self.join(worker, join, sides, as_of),
            Interact::Linger { id, stay } => {
                let reader = self.sharing.reader(&id.to_string(), index);
                let reader = reader.expect("a standing hold keeps the arrangement readable");
                let label = format!("slow reader of {id}");
                self.lingering.push(Lingering::new(reader.with_label(label), stay));
            }
            Interact::Drop(id) => {
                self.standing.remove(&id);
            }
        }
    }

    fn attend(&mut self, _: &mut Worker) -> Duration {
        self.answer();
        let now = Instant::now();
        self.lingering.retain_mut(|lingering| lingering.attend(now));
        let next = self.lingering.iter().map(|lingering| lingering.until - now).min();
        next.map_or(NAP, |next| next.min(NAP))
    }
}
