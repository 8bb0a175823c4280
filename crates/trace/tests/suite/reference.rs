//! What the registry and the sharing are for, in the dullest way: everything under one lock, nothing
//! kept that can be computed, and computed anew each time somebody asks.

use std::collections::BTreeMap;
use std::sync::Mutex;

use holdgap::HoldKind;

/// Who holds, and where: logically and physically. `None` holds nothing.
#[derive(Clone, Debug)]
struct Hold {
    kind: HoldKind,
    logical: Option<u64>,
    physical: Option<u64>,
}

/// A trace, and all that is known of it. An upper of `None` is beyond all times.
#[derive(Debug)]
struct Trace {
    upper: Option<u64>,
    /// What each id's owner allows.
    requested: BTreeMap<String, u64>,
    applied: u64,
    applied_physical: Option<u64>,
    holds: BTreeMap<usize, Hold>,
    held_since: Option<u64>,
}

/// A frontier that is `None` where it is beyond all times, as a number that compares.
fn rank(time: Option<u64>) -> u64 {
    time.unwrap_or(u64::MAX)
}

impl Trace {
    fn requested(&self) -> u64 {
        self.requested.values().copied().min().unwrap_or(0)
    }

    /// How far readers hold back what was requested of times that are there.
    fn gap(&self) -> u64 {
        self.requested().min(rank(self.upper)).saturating_sub(self.applied)
    }

    fn physical_gap(&self) -> u64 {
        rank(self.upper).saturating_sub(rank(self.applied_physical))
    }

    /// The kinds of those who stand at the applied frontier, if that is held back.
    fn binding(&self) -> impl Iterator<Item = HoldKind> {
        let at =
            |hold: &&Hold| self.requested() > self.applied && hold.logical == Some(self.applied);
        self.holds.values().filter(at).map(|hold| hold.kind)
    }

    /// Applies what may be applied.
    fn settle(&mut self, now: u64) {
        let (held, stood) = (self.requested() > self.applied, self.applied);
        let holds = self.holds.values().filter_map(|hold| hold.logical).min();
        self.applied = self.applied.max(self.requested().min(rank(holds)));
        let physical = self.holds.values().filter_map(|hold| hold.physical).min();
        let target = rank(self.upper).min(rank(physical)).max(rank(self.applied_physical));
        self.applied_physical = (target < u64::MAX).then_some(target);
        let _ = held;
        if self.gap() == 0 {
            self.held_since = None;
        } else if self.held_since.is_none() || stood != self.applied {
            self.held_since = Some(now);
        }
    }
}

/// Everything, under one lock.
#[derive(Default)]
pub(crate) struct Reference(Mutex<Everything>);

#[derive(Default)]
struct Everything {
    now: u64,
    traces: Vec<Trace>,
    /// The largest gap since the last look.
    peak: u64,
}

/// What a report should show.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) hold_gap: u64,
    pub(crate) held: u64,
    pub(crate) published: u64,
    pub(crate) peak: Option<u64>,
    pub(crate) stalled: u64,
    pub(crate) by_kind: Vec<(u64, u64)>,
    pub(crate) physical_gap: u64,
    pub(crate) physically_held: u64,
    pub(crate) lag: u64,
    pub(crate) slack: u64,
    pub(crate) frozen: u64,
    pub(crate) frozen_held: u64,
    pub(crate) frozen_gap: u64,
}

impl Reference {
    fn with<R>(&self, trace: usize, step: impl FnOnce(&mut Trace, u64) -> R) -> R {
        let mut everything = self.0.lock().unwrap();
        let now = everything.now;
        let result = step(&mut everything.traces[trace], now);
        let live = everything.traces.iter().filter(|trace| trace.upper.is_some());
        let gap = live.map(Trace::gap).max().unwrap_or(0);
        everything.peak = everything.peak.max(gap);
        result
    }

    /// A trace that nobody has published yet: readers may wait for it.
    pub(crate) fn expect(&self) {
        let (requested, holds) = (BTreeMap::new(), BTreeMap::new());
        let (upper, applied, applied_physical) = (Some(0), 0, Some(0));
        let trace = Trace { upper, requested, applied, applied_physical, holds, held_since: None };
        self.0.lock().unwrap().traces.push(trace);
    }

    pub(crate) fn publish(&self, trace: usize, id: &str) {
        self.with(trace, |trace, now| {
            trace.requested.insert(id.to_owned(), 0);
            trace.settle(now);
        });
    }

    pub(crate) fn wait(&self, seconds: u64) {
        self.0.lock().unwrap().now += seconds;
    }

    pub(crate) fn seal(&self, trace: usize, upper: Option<u64>) {
        self.with(trace, |trace, now| {
            trace.upper = upper;
            trace.settle(now);
        });
    }

    /// One more id, whose owner allows what the first one's does.
    pub(crate) fn alias(&self, trace: usize, of: &str, id: &str) {
        self.with(trace, |trace, _| {
            let requested = trace.requested[of];
            trace.requested.insert(id.to_owned(), requested);
        });
    }

    pub(crate) fn unalias(&self, trace: usize, id: &str) {
        self.with(trace, |trace, now| {
            trace.requested.remove(id);
            trace.settle(now);
        });
    }

    pub(crate) fn allow(&self, trace: usize, id: &str, time: u64) {
        self.with(trace, |trace, now| {
            let requested = trace.requested.get_mut(id).unwrap();
            *requested = (*requested).max(time);
            trace.settle(now);
        });
    }

    /// Admits a holder, or says the since that rules it out.
    pub(crate) fn register(
        &self,
        trace: usize,
        hold: usize,
        kind: HoldKind,
        as_of: Option<u64>,
    ) -> Result<(), u64> {
        self.with(trace, |trace, now| {
            let logical = as_of.unwrap_or(trace.applied);
            if logical < trace.applied {
                return Err(trace.applied);
            }
            let physical = trace.upper.filter(|_| kind != HoldKind::Standing);
            trace.holds.insert(hold, Hold { kind, logical: Some(logical), physical });
            if trace.upper.is_some() {
                trace.settle(now);
            }
            Ok(())
        })
    }

    pub(crate) fn clone_hold(&self, trace: usize, source: usize, clone: usize) {
        self.with(trace, |trace, _| {
            let hold = trace.holds[&source].clone();
            trace.holds.insert(clone, hold);
        });
    }

    /// Moves a hold; what is `None` releases.
    pub(crate) fn advance(&self, trace: usize, hold: usize, to: Option<u64>, physically: bool) {
        self.with(trace, |trace, now| {
            let hold = trace.holds.get_mut(&hold).unwrap();
            let at = if physically { &mut hold.physical } else { &mut hold.logical };
            let joined = rank(*at).max(rank(to));
            *at = (joined < u64::MAX).then_some(joined);
            // Nobody is left to apply it where the writer has closed.
            if trace.upper.is_some() {
                trace.settle(now);
            }
        });
    }

    pub(crate) fn release(&self, trace: usize, hold: usize) {
        self.with(trace, |trace, now| {
            trace.holds.remove(&hold);
            if trace.upper.is_some() {
                trace.settle(now);
            }
        });
    }

    /// What is applied of a trace, and what is sealed.
    pub(crate) fn stands(&self, trace: usize) -> (u64, Option<u64>) {
        self.with(trace, |trace, _| (trace.applied, trace.upper))
    }

    /// What was taken with a look that nobody's peaks were taken by.
    pub(crate) fn put_back(&self, peak: u64) {
        let mut everything = self.0.lock().unwrap();
        everything.peak = everything.peak.max(peak);
    }

    /// What a look should show. The peak is taken with it.
    pub(crate) fn look(&self) -> Expected {
        let mut everything = self.0.lock().unwrap();
        let now = everything.now;
        let mut expected =
            Expected { by_kind: vec![(0, 0); HoldKind::ALL.len()], ..Default::default() };
        for trace in everything.traces.iter().filter(|trace| !trace.requested.is_empty()) {
            let held = u64::from(trace.gap() > 0);
            let Some(upper) = trace.upper else {
                expected.frozen += 1;
                expected.frozen_held += held;
                expected.frozen_gap = expected.frozen_gap.max(trace.gap());
                continue;
            };
            expected.published += 1;
            expected.held += held;
            expected.hold_gap = expected.hold_gap.max(trace.gap());
            let stalled = trace.held_since.map_or(0, |since| now - since);
            expected.stalled = expected.stalled.max(stalled);
            expected.physically_held += u64::from(trace.physical_gap() > 0);
            expected.physical_gap = expected.physical_gap.max(trace.physical_gap());
            expected.lag = expected.lag.max(upper.saturating_sub(trace.applied));
            expected.slack = expected.slack.max(upper.saturating_sub(trace.requested()));
            for kind in HoldKind::ALL {
                if held > 0 && trace.binding().any(|binding| binding == kind) {
                    let (gap, count) = &mut expected.by_kind[kind as usize];
                    (*gap, *count) = ((*gap).max(trace.gap()), *count + 1);
                }
            }
        }
        expected.peak = Some(std::mem::replace(&mut everything.peak, expected.hold_gap));
        expected
    }
}
