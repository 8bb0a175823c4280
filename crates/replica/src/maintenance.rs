//! The maintenance runtime: arrangements fed by churn, published for others to read.

use std::collections::BTreeMap;
use std::time::Duration;

use differential_dataflow::input::InputSession;
use differential_dataflow::trace::implementations::spine_fueled::Spine;
use holdgap_trace::{ArrangeShared, PublishOptions, Published, Sharing, ValBatch};
use timely::worker::Worker;

use crate::churn::ArrangementId;
use crate::command::{Maintain, Time};
use crate::runtime::{NAP, Role};

/// The batches of a replica's arrangements.
pub(crate) type Batch = ValBatch<u64, u64, Time, isize>;

/// One worker's part of the maintenance runtime.
pub(crate) struct Maintenance {
    sharing: Sharing,
    indexes: BTreeMap<ArrangementId, Index>,
}

struct Index {
    input: InputSession<Time, (u64, u64), isize>,
    published: Published<Spine<Batch>>,
    dataflow: usize,
}

impl Maintenance {
    pub(crate) fn new(sharing: Sharing) -> Self {
        Maintenance { sharing, indexes: BTreeMap::new() }
    }

    fn create(&mut self, worker: &mut Worker, id: ArrangementId) {
        let dataflow = worker.next_dataflow_index();
        let mut input = InputSession::new();
        let published = worker.dataflow_named(&format!("{id}"), |scope| {
            let rows = input.to_collection(scope).arrange_shared_by_key("rows");
            let name = format!("rows of {id}");
            let options = PublishOptions { name, standing_hold: true };
            self.sharing.publish_with(id.to_string(), &rows, options)
        });
        let published = published.expect("the controller names each arrangement once");
        self.indexes.insert(id, Index { input, published, dataflow });
    }
}

impl Role for Maintenance {
    type Command = Maintain;

    fn obey(&mut self, worker: &mut Worker, command: Maintain) {
        match command {
            Maintain::Create(id) => self.create(worker, id),
            Maintain::Round { time, changes } => {
                let (index, peers) = (worker.index() as u64, worker.peers() as u64);
                for (id, changes) in changes.iter() {
                    let Some(Index { input, .. }) = self.indexes.get_mut(id) else { continue };
                    input.advance_to(time);
                    for change in changes.iter().filter(|change| change.key % peers == index) {
                        if let Some(old) = change.old {
                            input.remove((change.key, old));
                        }
                        input.insert((change.key, change.new));
                    }
                    input.advance_to(time + 1);
                    input.flush();
                }
            }
            Maintain::AllowCompaction(ids, frontier) => {
                for id in ids.iter() {
                    if let Some(Index { published, .. }) = self.indexes.get_mut(id) {
                        published.allow_compaction(frontier.borrow());
                    }
                }
            }
            Maintain::Drop(id) => {
                if let Some(index) = self.indexes.remove(&id) {
                    let dataflow = index.dataflow;
                    drop(index);
                    worker.drop_dataflow(dataflow);
                }
            }
        }
    }

    fn attend(&mut self, _: &mut Worker) -> Duration {
        NAP
    }
}
