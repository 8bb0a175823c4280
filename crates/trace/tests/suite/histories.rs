use std::time::Duration;

use differential_dataflow::trace::implementations::spine_fueled::Spine;
use holdgap::{Clock, HoldKind, HoldReport, Registry, RegistryOptions, Role, Scraper};
use holdgap_trace::{PublishOptions, Published, ReadError, Reader, Sharing, StandingHold};
use proptest::collection::vec;
use proptest::prelude::*;
use timely::progress::Antichain;

use crate::reference::{Expected, Reference};
use crate::support::{Batch, Index, Stage, at, new_worker};

const TRACES: usize = 3;

/// A step of a history. Numbers choose among what is there.
#[derive(Clone, Debug)]
enum Step {
    Publish { trace: usize },
    Seal { trace: usize, times: u64 },
    Allow { trace: usize, alias: bool, behind: u64 },
    Read { trace: usize },
    ReadAt { trace: usize, beyond: u64, behind: u64 },
    Clone { reader: usize },
    Advance { reader: usize, behind: u64, elsewhere: bool },
    AdvancePhysical { reader: usize, behind: u64 },
    LetGoPhysically { reader: usize },
    Drop { reader: usize, elsewhere: bool },
    Stand { trace: usize },
    AdvanceStanding { trace: usize, behind: u64 },
    Alias { trace: usize },
    Unalias { trace: usize },
    Close { trace: usize },
    Wait { seconds: u64 },
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    let (trace, reader, behind) = (0..TRACES, any::<usize>(), 0..6_u64);
    prop_oneof![
        3 => trace.clone().prop_map(|trace| Step::Publish { trace }),
        6 => (trace.clone(), 1..4_u64).prop_map(|(trace, times)| Step::Seal { trace, times }),
        6 => (trace.clone(), any::<bool>(), behind.clone())
            .prop_map(|(trace, alias, behind)| Step::Allow { trace, alias, behind }),
        3 => trace.clone().prop_map(|trace| Step::Read { trace }),
        3 => (trace.clone(), 0..4_u64, behind.clone())
            .prop_map(|(trace, beyond, behind)| Step::ReadAt { trace, beyond, behind }),
        2 => reader.prop_map(|reader| Step::Clone { reader }),
        4 => (reader, behind.clone(), any::<bool>())
            .prop_map(|(reader, behind, elsewhere)| Step::Advance { reader, behind, elsewhere }),
        2 => (reader, behind.clone())
            .prop_map(|(reader, behind)| Step::AdvancePhysical { reader, behind }),
        1 => reader.prop_map(|reader| Step::LetGoPhysically { reader }),
        4 => (reader, any::<bool>()).prop_map(|(reader, elsewhere)| Step::Drop { reader, elsewhere }),
        1 => trace.clone().prop_map(|trace| Step::Stand { trace }),
        2 => (trace.clone(), behind).prop_map(|(trace, behind)| Step::AdvanceStanding { trace, behind }),
        1 => trace.clone().prop_map(|trace| Step::Alias { trace }),
        1 => trace.clone().prop_map(|trace| Step::Unalias { trace }),
        1 => trace.prop_map(|trace| Step::Close { trace }),
        2 => (1..5_u64).prop_map(|seconds| Step::Wait { seconds }),
        2 => Just(Step::Look),
    ]
}

type Owner = Published<Spine<Batch>>;

/// One trace of the real thing: to come, live, or closed.
#[derive(Default)]
struct Real {
    index: Option<Index>,
    /// What its owner keeps after its input has ended.
    closed: Option<Owner>,
    alias: Option<Owner>,
    standing: Option<(usize, StandingHold<Batch>)>,
}

impl Real {
    fn published(&mut self) -> Option<&mut Owner> {
        self.index.as_mut().map(|index| &mut index.published).or(self.closed.as_mut())
    }
}

/// The real thing and the reference, side by side.
struct Both {
    stage: Stage,
    clock: Clock,
    now: u64,
    scraper: Scraper,
    real: Vec<Real>,
    readers: Vec<(usize, usize, Reader<Batch>)>,
    next: usize,
    reference: Reference,
}

impl Both {
    fn new() -> Self {
        let clock = Clock::manual();
        let options = RegistryOptions { clock: clock.clone(), ..RegistryOptions::default() };
        let registry = Registry::with_options(options);
        let (sharing, scraper) = (Sharing::new(&registry), registry.scraper());
        // Peaks are counted from the first scrape on that finds the worker.
        let _worker = registry.runtime(Role::Maintenance).worker(0);
        scraper.reports();
        let [maintenance, interactive] = [(); 2].map(|()| new_worker());
        let stage = Stage { registry, sharing, maintenance, interactive };
        let reference = Reference::default();
        let real = (0..TRACES).map(|_| {
            reference.expect();
            Real::default()
        });
        let real = real.collect();
        let (now, next, readers) = (0, 0, Vec::new());
        Both { stage, clock, now, scraper, real, readers, next, reference }
    }

    fn next(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    /// Which reader a number means, if there is any.
    fn choose(&self, reader: usize) -> Option<usize> {
        (!self.readers.is_empty()).then(|| reader % self.readers.len())
    }

    /// So far behind what is sealed, or what was, where the writer has closed.
    fn time(&self, trace: usize, behind: u64) -> u64 {
        let (applied, upper) = self.reference.stands(trace);
        upper.unwrap_or(applied + 6).saturating_sub(behind)
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Publish { trace } => {
                if self.real[trace].published().is_none() {
                    let id = format!("u{trace}");
                    self.real[trace].index = Some(self.stage.publish(&id));
                    self.reference.publish(trace, &id);
                }
            }
            Step::Seal { trace, times } => {
                let Some(index) = &mut self.real[trace].index else { return };
                let upper = *index.input.time();
                index.input.update((upper % 5, upper), 1);
                index.seal(&mut self.stage, upper + times);
                self.reference.seal(trace, Some(upper + times));
            }
            Step::Allow { trace, alias, behind } => {
                let time = self.time(trace, behind);
                let real = &mut self.real[trace];
                match (&mut real.alias, alias) {
                    (Some(published), true) => {
                        published.allow_compaction(at(time).borrow());
                        self.reference.allow(trace, &format!("a{trace}"), time);
                    }
                    _ => {
                        let Some(published) = real.published() else { return };
                        published.allow_compaction(at(time).borrow());
                        self.reference.allow(trace, &format!("u{trace}"), time);
                    }
                }
            }
            Step::Read { trace } => self.read(trace, None),
            Step::ReadAt { trace, beyond, behind } => {
                self.read(trace, Some(self.time(trace, behind) + beyond));
            }
            Step::Clone { reader } => {
                let Some(place) = self.choose(reader) else { return };
                let (trace, hold, reader) = &self.readers[place];
                let (trace, hold, clone) = (*trace, *hold, reader.clone());
                let next = self.next();
                self.reference.clone_hold(trace, hold, next);
                self.readers.push((trace, next, clone));
            }
            Step::Advance { reader, behind, elsewhere } => {
                let Some(place) = self.choose(reader) else { return };
                let (trace, hold) = (self.readers[place].0, self.readers[place].1);
                let time = self.time(trace, behind);
                let reader = &mut self.readers[place].2;
                let advance = || reader.set_logical_compaction(at(time).borrow());
                elsewhere_if(elsewhere, advance);
                self.reference.advance(trace, hold, Some(time), false);
            }
            Step::AdvancePhysical { reader, behind } => {
                let Some(place) = self.choose(reader) else { return };
                let time = self.time(self.readers[place].0, behind);
                let (trace, hold, reader) = &mut self.readers[place];
                reader.set_physical_compaction(at(time).borrow());
                self.reference.advance(*trace, *hold, Some(time), true);
            }
            Step::LetGoPhysically { reader } => {
                let Some(place) = self.choose(reader) else { return };
                let (trace, hold, reader) = &mut self.readers[place];
                reader.set_physical_compaction(Antichain::new().borrow());
                self.reference.advance(*trace, *hold, None, true);
            }
            Step::Drop { reader, elsewhere } => {
                let Some(place) = self.choose(reader) else { return };
                let (trace, hold, reader) = self.readers.swap_remove(place);
                elsewhere_if(elsewhere, || drop(reader));
                self.reference.release(trace, hold);
            }
            Step::Stand { trace } => {
                if self.real[trace].standing.is_none() && self.real[trace].index.is_some() {
                    let hold = self.next();
                    let standing =
                        self.stage.sharing.standing_hold(&format!("u{trace}"), 0).unwrap();
                    self.real[trace].standing = Some((hold, standing));
                    self.reference.register(trace, hold, HoldKind::Standing, None).unwrap();
                }
            }
            Step::AdvanceStanding { trace, behind } => {
                let time = self.time(trace, behind);
                if let Some((hold, standing)) = &self.real[trace].standing {
                    standing.allow_compaction(at(time).borrow());
                    self.reference.advance(trace, *hold, Some(time), false);
                }
            }
            Step::Alias { trace } => {
                if self.real[trace].alias.is_none()
                    && let Some(index) = &self.real[trace].index
                {
                    let (id, agent) = (format!("a{trace}"), index.published.trace());
                    let Stage { sharing, maintenance, .. } = &self.stage;
                    let options = PublishOptions::default();
                    let alias = sharing.publish_trace(&*id, agent, maintenance, options);
                    self.real[trace].alias = Some(alias.unwrap());
                    self.reference.alias(trace, &format!("u{trace}"), &id);
                }
            }
            Step::Unalias { trace } => {
                if let Some(alias) = self.real[trace].alias.take() {
                    drop(alias);
                    self.reference.unalias(trace, &format!("a{trace}"));
                }
            }
            Step::Close { trace } => {
                if let Some(Index { input, published, .. }) = self.real[trace].index.take() {
                    self.real[trace].closed = Some(published);
                    drop(input);
                    self.stage.settle();
                    self.reference.seal(trace, None);
                }
            }
            Step::Wait { seconds } => {
                self.now += seconds;
                self.clock.set(Duration::from_secs(self.now));
                self.reference.wait(seconds);
            }
            Step::Look => {}
        }
    }

    fn read(&mut self, trace: usize, as_of: Option<u64>) {
        let id = format!("u{trace}");
        let admitted = match as_of {
            None => self.stage.sharing.reader::<Batch>(&id, 0),
            Some(time) => self.stage.sharing.reader_at::<Batch>(&id, 0, &at(time)),
        };
        let hold = self.next();
        match (admitted, self.reference.register(trace, hold, HoldKind::Reader, as_of)) {
            (Ok(reader), Ok(())) => self.readers.push((trace, hold, reader)),
            (Err(ReadError::Compacted { since, .. }), Err(expected)) => {
                assert_eq!(since, format!("{{{expected}}}"));
            }
            (admitted, expected) => panic!("{admitted:?}, where {expected:?} is right"),
        }
    }

    /// Everything that a report shows, against the reference.
    fn compare(&mut self, look: bool, history: &[Step]) {
        self.stage.settle();
        let mut expected = self.reference.look();
        let report = if look {
            let reports = self.scraper.reports();
            reports.into_iter().find(|report| report.role == Role::Maintenance).unwrap()
        } else {
            // Looked at without a consumer of peaks, which keeps its own.
            self.reference.put_back(expected.peak.take().unwrap());
            self.stage.report()
        };
        assert_eq!(shown(&report), expected, "after {history:#?}");
        assert_eq!(report.invalid_pairs, 0);
        // Nobody imports here, and nobody keeps a chain.
        assert_eq!((report.queued.instructions, report.queued.batches), (0, 0));
        assert_eq!((report.pins.batches, report.pins.updates), (0, 0));
    }
}

fn elsewhere_if<R: Send>(elsewhere: bool, act: impl FnOnce() -> R + Send) -> R {
    if elsewhere { std::thread::scope(|scope| scope.spawn(act).join().unwrap()) } else { act() }
}

fn shown(report: &HoldReport) -> Expected {
    Expected {
        hold_gap: report.hold_gap,
        held: report.held,
        published: report.published,
        peak: report.hold_gap_peak,
        stalled: report.hold_stalled.as_secs(),
        by_kind: HoldKind::ALL
            .map(|kind| (report.by_kind(kind).hold_gap, report.by_kind(kind).held))
            .into(),
        physical_gap: report.physical_hold_gap,
        physically_held: report.physically_held,
        lag: report.compaction_lag,
        slack: report.owner_slack,
        frozen: report.frozen,
        frozen_held: report.frozen_held,
        frozen_gap: report.frozen_hold_gap,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens in whatever order, once it is quiet each gauge shows what the dullest of
    /// implementations says.
    #[test]
    fn after_each_step_of_a_history_every_gauge_is_what_the_reference_says(history in vec(step(), 1..60)) {
        let mut both = Both::new();
        for (place, step) in history.iter().enumerate() {
            both.take(step);
            both.compare(matches!(step, Step::Look), &history[..=place]);
        }
    }
}
