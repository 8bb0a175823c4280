use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use differential_dataflow::input::InputSession;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::implementations::spine_fueled::Spine;
use holdgap::{HoldReport, PointView, Registry, Role};
use holdgap_trace::{
    ArrangeShared, ImportTrace, PublishOptions, Published, Reader, SharedValSpine, Sharing,
    ValBatch,
};
use timely::WorkerConfig;
use timely::communication::allocator::{Allocator, thread::Thread};
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::Probe;
use timely::progress::Antichain;
use timely::worker::Worker;

pub(crate) type Batch = ValBatch<u64, u64, u64, isize>;
pub(crate) type Update = ((u64, u64), u64, isize);
pub(crate) type Agent = TraceAgent<SharedValSpine<u64, u64, u64, isize>>;

pub(crate) fn at(time: u64) -> Antichain<u64> {
    Antichain::from_elem(time)
}

pub(crate) fn new_worker() -> Worker {
    worker_with_effort(None)
}

/// A worker whose traces merge with so much effort while nothing else is to be done.
fn worker_with_effort(effort: Option<isize>) -> Worker {
    let allocator = Allocator::Thread(Thread::default());
    let mut config = WorkerConfig::default();
    let merging = differential_dataflow::Config::default().idle_merge_effort(effort);
    differential_dataflow::configure(&mut config, &merging);
    Worker::new(config, allocator, Some(std::time::Instant::now()))
}

/// Two runtimes of one worker each, on one thread.
pub(crate) struct Stage {
    pub(crate) registry: Registry,
    pub(crate) sharing: Sharing,
    pub(crate) maintenance: Worker,
    pub(crate) interactive: Worker,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with_effort(None)
    }

    /// One whose traces merge with so much effort while nothing else is to be done.
    pub(crate) fn with_effort(effort: Option<isize>) -> Self {
        let registry = Registry::new();
        let sharing = Sharing::new(&registry);
        let [maintenance, interactive] = [(); 2].map(|()| worker_with_effort(effort));
        Stage { registry, sharing, maintenance, interactive }
    }

    /// An arrangement under `id`, maintained and published here.
    pub(crate) fn publish(&mut self, id: &str) -> Index {
        self.publish_with(id, PublishOptions::default())
    }

    pub(crate) fn publish_with(&mut self, id: &str, options: PublishOptions) -> Index {
        let (mut input, probe) = (InputSession::new(), ProbeHandle::new());
        let dataflow = self.maintenance.next_dataflow_index();
        let sharing = self.sharing.clone();
        let published = self.maintenance.dataflow(|scope| {
            let rows = input.to_collection(scope).arrange_shared_by_key("rows");
            rows.stream.clone().probe_with(&probe);
            sharing.publish_with(id, &rows, options).unwrap()
        });
        Index { input, published, probe, dataflow }
    }

    pub(crate) fn reader(&self, id: &str) -> Reader<Batch> {
        self.sharing.reader(id, 0).unwrap()
    }

    pub(crate) fn reader_at(&self, id: &str, time: u64) -> Reader<Batch> {
        self.sharing.reader_at(id, 0, &at(time)).unwrap()
    }

    /// Imports all of `reader` up to `until`, and writes down what comes.
    pub(crate) fn import(&mut self, reader: Reader<Batch>, until: Antichain<u64>) -> Seen {
        self.import_with(|scope| reader.import(scope, "import", until))
    }

    pub(crate) fn import_with(
        &mut self,
        import: impl FnOnce(timely::dataflow::Scope<'_, u64>) -> Arranged<'_, ImportTrace<Batch>>,
    ) -> Seen {
        let (updates, probe) = (Rc::default(), ProbeHandle::new());
        let into: Rc<RefCell<Vec<Update>>> = Rc::clone(&updates);
        let dataflow = self.interactive.next_dataflow_index();
        let trace = self.interactive.dataflow(|scope| {
            let arranged = import(scope);
            let trace = arranged.trace.clone();
            arranged
                .as_collection(|key, val| (*key, *val))
                .inspect(move |update| into.borrow_mut().push(*update))
                .probe_with(&probe);
            trace
        });
        Seen { updates, probe, dataflow, trace: Some(trace) }
    }

    /// Steps both runtimes until neither has anything to do.
    pub(crate) fn settle(&mut self) {
        for _ in 0..20 {
            self.maintenance.step();
            self.interactive.step();
        }
    }

    pub(crate) fn report(&self) -> HoldReport {
        self.registry.runtime(Role::Maintenance).worker(0).report()
    }

    pub(crate) fn points(&self) -> Vec<PointView> {
        self.registry.runtime(Role::Maintenance).worker(0).points()
    }

    /// The requested and the applied frontier of the one point there is.
    pub(crate) fn pair(&self) -> (String, String) {
        let points = self.points();
        assert_eq!(points.len(), 1, "{points:?}");
        (points[0].requested.clone(), points[0].applied.clone())
    }

    /// The same, of physical compaction.
    pub(crate) fn physical_pair(&self) -> (String, String) {
        let point = self.points().remove(0);
        (point.physical_requested.unwrap(), point.physical_applied.unwrap())
    }
}

/// An arrangement with its input and its owner's handle.
pub(crate) struct Index {
    pub(crate) input: InputSession<u64, (u64, u64), isize>,
    pub(crate) published: Published<Spine<Batch>>,
    pub(crate) probe: ProbeHandle<u64>,
    pub(crate) dataflow: usize,
}

impl Index {
    /// Moves the input to `time` and lets the arrangement seal what came before.
    pub(crate) fn seal(&mut self, stage: &mut Stage, time: u64) {
        self.input.advance_to(time);
        self.input.flush();
        while self.probe.less_than(&time) {
            stage.maintenance.step();
        }
    }

    /// Replaces the value of `key` at the input's time, then seals it.
    pub(crate) fn round(&mut self, stage: &mut Stage, key: u64) {
        let time = *self.input.time();
        if time > 0 {
            self.input.update((key, time - 1), -1);
        }
        self.input.update((key, time), 1);
        self.seal(stage, time + 1);
    }

    pub(crate) fn allow(&mut self, time: u64) {
        self.published.allow_compaction(at(time).borrow());
    }

    pub(crate) fn spans(&self, stage: &Stage) -> usize {
        stage.reader(self.published.id()).spans().len()
    }
}

/// What an import has delivered.
pub(crate) struct Seen {
    pub(crate) updates: Rc<RefCell<Vec<Update>>>,
    pub(crate) probe: ProbeHandle<u64>,
    pub(crate) dataflow: usize,
    pub(crate) trace: Option<ImportTrace<Batch>>,
}

impl Seen {
    /// The multiset at `time`.
    pub(crate) fn contents(&self, time: u64) -> BTreeMap<(u64, u64), isize> {
        contents(&self.updates.borrow(), time)
    }
}

pub(crate) fn contents(updates: &[Update], time: u64) -> BTreeMap<(u64, u64), isize> {
    let mut contents = BTreeMap::new();
    for (row, _, diff) in updates.iter().filter(|(_, at, _)| *at <= time) {
        *contents.entry(*row).or_default() += diff;
    }
    contents.retain(|_, count| *count != 0);
    contents
}
