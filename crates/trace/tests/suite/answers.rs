use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use differential_dataflow::input::InputSession;
use differential_dataflow::trace::{Cursor, Navigable, Span};
use differential_dataflow::{AsCollection, VecCollection};
use holdgap_trace::{ArrangeShared, Reader, Sharing, ValBatch};
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::vec::UnorderedInput;
use timely::order::Product;
use timely::progress::Antichain;

use crate::support::{Batch, Stage, Update, at, new_worker};

/// All updates in some spans.
pub(crate) fn updates_of(spans: &[Span<u64, Batch>]) -> Vec<Update> {
    let mut updates = Vec::new();
    for batch in spans.iter().filter_map(|span| span.inner.as_ref()) {
        let mut cursor = batch.cursor();
        while let Some(key) = cursor.get_key(batch) {
            while let Some(val) = cursor.get_val(batch) {
                cursor.map_times(batch, |time, diff| updates.push(((*key, *val), *time, *diff)));
                cursor.step_val(batch);
            }
            cursor.step_key(batch);
        }
    }
    updates
}

/// A small generator of numbers that are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

type Results<D> = Rc<RefCell<Vec<(D, u64, isize)>>>;

fn collect<D>(rows: VecCollection<'_, u64, D, isize>, probe: &ProbeHandle<u64>) -> Results<D>
where
    D: differential_dataflow::Data,
{
    let results = Rc::new(RefCell::new(Vec::new()));
    let into = Rc::clone(&results);
    rows.inspect(move |update| into.borrow_mut().push(update.clone())).probe_with(probe);
    results
}

/// What has accumulated at `time`.
fn accumulated<D: Ord + Clone>(results: &Results<D>, time: u64) -> BTreeMap<D, isize> {
    let mut rows = BTreeMap::new();
    for (row, at, diff) in results.borrow().iter() {
        if *at <= time {
            *rows.entry(row.clone()).or_default() += diff;
        }
    }
    rows.retain(|_, count| *count != 0);
    rows
}

/// Joins, counts, reductions, thresholds, loops: over imports, and over the collections themselves.
#[test]
fn operators_over_imports_answer_as_over_the_arrangements_themselves() {
    for seed in 0..12 {
        compare(seed);
    }
}

fn compare(seed: u64) {
    let mut numbers = Numbers(seed);
    // However eagerly traces merge while nothing else is to be done.
    let effort = [None, Some(1), Some(1_000)][numbers.below(3) as usize];
    let mut stage = Stage::with_effort(effort);
    let (mut left, mut right) = (stage.publish("left"), stage.publish("right"));
    // The same data, unshared, in a third runtime.
    let mut solo = new_worker();
    let (mut solo_left, mut solo_right) = (InputSession::new(), InputSession::new());
    let solo_probe = ProbeHandle::new();
    let expected = solo.dataflow(|scope| {
        let (left, right) = (solo_left.to_collection(scope), solo_right.to_collection(scope));
        program(left.clone().arrange_by_key(), left, right.arrange_by_key(), &solo_probe)
    });

    let mut imported: Vec<(u64, ProbeHandle<u64>, Answers)> = Vec::new();
    let mut present: [Vec<(u64, u64)>; 2] = Default::default();
    let rounds = 40;
    for round in 0..rounds {
        for _ in 0..numbers.below(6) {
            let side = numbers.below(2) as usize;
            // Only what is there is removed: a loop over negative counts need not end.
            let remove = !present[side].is_empty() && numbers.below(3) == 0;
            let (row, diff) = if remove {
                let place = numbers.below(present[side].len() as u64) as usize;
                (present[side].swap_remove(place), -1)
            } else {
                let row = (numbers.below(8), numbers.below(8));
                present[side].push(row);
                (row, 1)
            };
            if side == 0 {
                left.input.update(row, diff);
                solo_left.update(row, diff);
            } else {
                right.input.update(row, diff);
                solo_right.update(row, diff);
            }
        }
        for (index, solo) in [(&mut left, &mut solo_left), (&mut right, &mut solo_right)] {
            index.seal(&mut stage, round + 1);
            solo.advance_to(round + 1);
            solo.flush();
            if numbers.below(3) == 0 {
                index.allow(round.saturating_sub(numbers.below(5)));
            }
        }
        while solo_probe.less_than(&(round + 1)) {
            solo.step();
        }
        if numbers.below(6) == 0 {
            imported.push(import_both(&mut stage, numbers.below(4)));
        }
        // The importing runtime falls behind at times, and drains an old seed while spans merge.
        if numbers.below(3) == 0 {
            stage.settle();
        }
    }
    imported.push(import_both(&mut stage, 0));
    stage.settle();
    for (as_of, probe, answers) in &imported {
        assert!(!probe.less_than(&rounds), "the import is up to date");
        for time in *as_of..rounds {
            let context = format!("seed {seed}, from {as_of}, at {time}");
            let (here, there) = (&answers, &expected);
            assert_eq!(
                accumulated(&here.joined, time),
                accumulated(&there.joined, time),
                "{context}"
            );
            assert_eq!(
                accumulated(&here.counted, time),
                accumulated(&there.counted, time),
                "{context}"
            );
            assert_eq!(
                accumulated(&here.reduced, time),
                accumulated(&there.reduced, time),
                "{context}"
            );
            assert_eq!(
                accumulated(&here.distinct, time),
                accumulated(&there.distinct, time),
                "{context}"
            );
            assert_eq!(
                accumulated(&here.reached, time),
                accumulated(&there.reached, time),
                "{context}"
            );
        }
    }
}

struct Answers {
    joined: Results<(u64, u64, u64)>,
    counted: Results<((u64, u64), isize)>,
    reduced: Results<(u64, u64)>,
    distinct: Results<(u64, u64)>,
    reached: Results<u64>,
}

/// Imports both sides as of a time that is so far beyond what they have compacted.
fn import_both(stage: &mut Stage, beyond: u64) -> (u64, ProbeHandle<u64>, Answers) {
    let since = |id: &str| stage.reader(id).logical_compaction().into_option().unwrap();
    let as_of = since("left").max(since("right")) + beyond;
    let [left, right] = ["left", "right"].map(|id| stage.reader_at(id, as_of));
    let probe = ProbeHandle::new();
    let answers = stage.interactive.dataflow(|scope| {
        let left = left.import(scope, "left", Antichain::new());
        let right = right.import(scope, "right", Antichain::new());
        let rows = left.clone().as_collection(|key, val| (*key, *val));
        program(left, rows, right, &probe)
    });
    (as_of, probe, answers)
}

/// One program, over whatever arrangements.
fn program<'scope, Tr1, Tr2>(
    left: differential_dataflow::operators::arrange::Arranged<'scope, Tr1>,
    left_rows: VecCollection<'scope, u64, (u64, u64), isize>,
    right: differential_dataflow::operators::arrange::Arranged<'scope, Tr2>,
    probe: &ProbeHandle<u64>,
) -> Answers
where
    Tr1: Rows,
    Tr2: Rows,
    Tr1::Batch: Navigable,
    Tr2::Batch: Navigable,
    <Tr1::Batch as Navigable>::Cursor: RowCursor,
    <Tr2::Batch as Navigable>::Cursor: RowCursor,
    for<'a> <Tr1::Batch as Navigable>::Cursor: Cursor<
            Key<'a> = &'a u64,
            Val<'a> = &'a u64,
            KeyContainer = Vec<u64>,
            Time = u64,
            Diff = isize,
        >,
    for<'a> <Tr2::Batch as Navigable>::Cursor: Cursor<
            Key<'a> = &'a u64,
            Val<'a> = &'a u64,
            KeyContainer = Vec<u64>,
            Time = u64,
            Diff = isize,
        >,
{
    use differential_dataflow::operators::iterate::Iterate;
    use differential_dataflow::trace::implementations::{ValBuilder, ValSpine};
    let joined = left.clone().join_core(right.clone(), |key, l, r| Some((*key, *l, *r)));
    let reduced = left
        .clone()
        .reduce_abelian::<_, ValBuilder<u64, u64, u64, isize>, ValSpine<u64, u64, u64, isize>, _, _>(
            "Largest",
            |_, vals, out| {
                let present = vals.iter().filter(|(_, diff)| *diff > 0).map(|(val, _)| **val);
                out.extend(present.max().map(|val| (val, 1)));
            },
            |rows, key, updates| {
                rows.clear();
                rows.extend(updates.drain(..).map(|(val, time, diff)| ((*key, val), time, diff)));
            },
        )
        .as_collection(|key, val| (*key, *val));
    // What can be reached from 0 by the edges of `left`, in an iterative scope.
    let edges = left.clone();
    let roots = left_rows.clone().map(|_| 0).distinct();
    let reached = roots.clone().iterate(|scope, inner| {
        let edges = edges.enter(scope);
        let roots = roots.enter(scope);
        inner
            .map(|node| (node, ()))
            .arrange_by_key()
            .join_core(edges, |_, (), next| Some(*next))
            .concat(roots)
            .distinct()
    });
    Answers {
        joined: collect(joined, probe),
        counted: collect(left_rows.clone().count(), probe),
        reduced: collect(reduced, probe),
        distinct: collect(left_rows.distinct(), probe),
        reached: collect(reached, probe),
    }
}

/// Shorthand for the bounds that traces of rows share.
trait Rows: differential_dataflow::trace::TraceReader<Time = u64> + Clone + 'static {}
impl<Tr: differential_dataflow::trace::TraceReader<Time = u64> + Clone + 'static> Rows for Tr {}
trait RowCursor: Cursor<Time = u64, Diff = isize> {}
impl<C: Cursor<Time = u64, Diff = isize>> RowCursor for C {}

type Nested = Product<u64, u64>;
type NestedBatch = ValBatch<u64, u64, Nested, isize>;

/// Partially ordered time: reads at every time that is beyond an `as_of` of one time or of two
/// incomparable ones, against the updates themselves.
#[test]
fn partially_ordered_time_is_right_at_every_time() {
    const SIDE: u64 = 5;
    let time = |outer, inner| Product::new(outer, inner);
    let mut as_ofs = vec![
        Antichain::from_elem(time(0, 0)),
        Antichain::from_elem(time(2, 1)),
        Antichain::from_iter([time(1, 3), time(3, 0)]),
    ];
    let mut numbers = Numbers(99);
    as_ofs.extend((0..9).map(|_| {
        let any = (0..3).map(|_| time(numbers.below(SIDE), numbers.below(SIDE)));
        any.collect::<Antichain<_>>()
    }));
    let incomparable = as_ofs.iter().filter(|as_of| as_of.len() > 1).count();
    assert!(incomparable > 3, "{as_ofs:?}");
    let mut checked = 0;
    for (seed, as_of) in as_ofs.iter().enumerate() {
        for late in [false, true] {
            checked += nested(seed as u64, as_of, late, SIDE);
        }
    }
    assert!(checked > 200, "{checked} times");
}

type NestedResults<D> = Rc<RefCell<Vec<(D, Nested, isize)>>>;

/// What is computed of an import at partially ordered times.
#[derive(Default)]
struct NestedAnswers {
    rows: NestedResults<(u64, u64)>,
    joined: NestedResults<(u64, u64, u64)>,
    counted: NestedResults<((u64, u64), isize)>,
    distinct: NestedResults<(u64, u64)>,
}

fn note<D: differential_dataflow::Data>(
    rows: VecCollection<'_, Nested, D, isize>,
    into: &NestedResults<D>,
    probe: &ProbeHandle<Nested>,
) {
    let into = Rc::clone(into);
    rows.inspect(move |update| into.borrow_mut().push(update.clone())).probe_with(probe);
}

/// What has accumulated at `at`, of times in no order.
fn accumulate<D: Ord + Clone>(updates: &[(D, Nested, isize)], at: &Nested) -> BTreeMap<D, isize> {
    use timely::PartialOrder;
    let mut rows = BTreeMap::new();
    for (row, _, diff) in updates.iter().filter(|(_, time, _)| time.less_equal(at)) {
        *rows.entry(row.clone()).or_insert(0) += diff;
    }
    rows.retain(|_, count| *count != 0);
    rows
}

fn nested(seed: u64, as_of: &Antichain<Nested>, late: bool, side: u64) -> usize {
    let mut numbers = Numbers(seed);
    let sharing = Sharing::new(&holdgap::Registry::new());
    let (mut maintenance, mut interactive) = (new_worker(), new_worker());
    let (mut input, capability, mut index) = maintenance.dataflow::<u64, _, _>(|scope| {
        scope.iterative::<u64, _, _>(|scope| {
            let ((input, capability), stream) =
                scope.new_unordered_input::<((u64, u64), Nested, isize)>();
            let rows = stream.as_collection().arrange_shared_by_key("rows");
            (input, capability, sharing.publish("u1", &rows).unwrap())
        })
    });
    let import = |interactive: &mut timely::worker::Worker| {
        let reader: Reader<NestedBatch> = sharing.reader_at("u1", 0, as_of).unwrap();
        let (answers, probe) = (NestedAnswers::default(), ProbeHandle::new());
        interactive.dataflow::<u64, _, _>(|scope| {
            scope.iterative::<u64, _, _>(|scope| {
                let arranged = reader.import(scope, "import", Antichain::new());
                let rows = arranged.clone().as_collection(|key, val| (*key, *val));
                let joined = arranged.clone().join_core(arranged, |key, a, b| Some((*key, *a, *b)));
                note(joined, &answers.joined, &probe);
                note(rows.clone().count(), &answers.counted, &probe);
                note(rows.clone().distinct(), &answers.distinct, &probe);
                note(rows, &answers.rows, &probe);
            });
        });
        (answers, probe)
    };
    let early = (!late).then(|| import(&mut interactive));
    let mut all: Vec<((u64, u64), Nested, isize)> = Vec::new();
    // Outer times in order; within each, inner times in any order.
    let mut capability = Some(capability);
    for outer in 0..side {
        if let Some(held) = &mut capability {
            held.downgrade(&Product::new(outer, 0));
            let mut session = input.activate();
            let mut session = session.session(held);
            for _ in 0..12 {
                let row = (numbers.below(3), numbers.below(3));
                let diff = [1, 1, -1][numbers.below(3) as usize];
                let update = (row, Product::new(outer, numbers.below(side)), diff);
                session.give(update);
                all.push(update);
            }
        }
        for _ in 0..5 {
            maintenance.step();
            interactive.step();
        }
    }
    // Compaction as far as the reader allows, whatever the owner says.
    let hold: Option<Reader<NestedBatch>> =
        late.then(|| sharing.reader_at("u1", 0, as_of).unwrap());
    index.allow_compaction(Antichain::from_elem(Product::new(side - 1, 0)).borrow());
    for _ in 0..10 {
        maintenance.step();
    }
    let (answers, probe) = early.unwrap_or_else(|| import(&mut interactive));
    drop(hold);
    capability = None;
    drop((capability, input));
    while !probe.done() {
        maintenance.step();
        interactive.step();
    }
    let mut checked = 0;
    for outer in 0..side {
        for inner in 0..side {
            let time = Product::new(outer, inner);
            if as_of.less_equal(&time) {
                let rows = accumulate(&all, &time);
                assert_eq!(accumulate(&answers.rows.borrow(), &time), rows, "{time:?}");
                let mut joined = BTreeMap::new();
                for ((key, a), count) in &rows {
                    for ((_, b), other) in rows.range((*key, 0)..(*key + 1, 0)) {
                        joined.insert((*key, *a, *b), count * other);
                    }
                }
                assert_eq!(accumulate(&answers.joined.borrow(), &time), joined, "{time:?}");
                let counted = rows.iter().map(|(row, count)| ((*row, *count), 1)).collect();
                assert_eq!(accumulate(&answers.counted.borrow(), &time), counted, "{time:?}");
                // Whatever does not cancel counts as there, also a negative count.
                let distinct = rows.keys().map(|row| (*row, 1)).collect();
                assert_eq!(accumulate(&answers.distinct.borrow(), &time), distinct, "{time:?}");
                checked += 1;
            }
        }
    }
    checked
}

/// An arrangement over imports that the interactive runtime reads at one moment only.
#[test]
fn bounded_imports_at_one_time_join_as_the_collections_do() {
    let mut stage = Stage::new();
    let (mut left, mut right) = (stage.publish("left"), stage.publish("right"));
    let mut numbers = Numbers(7);
    let mut rows: [Vec<Update>; 2] = Default::default();
    for round in 0..50 {
        for (index, rows) in [&mut left, &mut right].into_iter().zip(&mut rows) {
            let row = (numbers.below(10), numbers.below(10));
            index.input.update(row, 1);
            rows.push((row, round, 1));
            index.seal(&mut stage, round + 1);
            index.allow(round);
        }
        let readers = ["left", "right"].map(|id| stage.reader_at(id, round));
        let probe = ProbeHandle::new();
        let results = stage.interactive.dataflow(|scope| {
            let [left, right] =
                readers.map(|reader| reader.import(scope, "bounded", at(round + 1)));
            collect(left.join_core(right, |key, l, r| Some((*key, *l, *r))), &probe)
        });
        while !probe.done() {
            stage.interactive.step();
        }
        let mut expected: BTreeMap<(u64, u64, u64), isize> = BTreeMap::new();
        for ((key, l), _, _) in &rows[0] {
            for ((other, r), _, _) in &rows[1] {
                if key == other {
                    *expected.entry((*key, *l, *r)).or_default() += 1;
                }
            }
        }
        assert_eq!(accumulated(&results, round), expected, "round {round}");
        assert!(results.borrow().iter().all(|(_, time, _)| *time == round));
    }
    stage.settle();
    assert_eq!(stage.report().held, 0);
}

/// A reader that asks for a time that is not sealed yet waits for it, whatever it computes.
#[test]
fn an_as_of_that_is_not_sealed_yet_reduces_as_one_that_is() {
    // Sealed, about to be, and some time ahead.
    for as_of in [9, 10, 11, 13] {
        reduce_as_of(as_of);
    }
}

fn reduce_as_of(as_of: u64) {
    use differential_dataflow::trace::TraceReader;
    let mut stage = Stage::new();
    let mut left = stage.publish("left");
    let mut solo = new_worker();
    let mut solo_input = InputSession::<u64, (u64, u64), isize>::new();
    let mut agent = solo.dataflow(|scope| solo_input.to_collection(scope).arrange_by_key().trace);
    for round in 0..10 {
        left.input.update((round % 3, round), 1);
        solo_input.update((round % 3, round), 1);
        left.seal(&mut stage, round + 1);
        solo_input.advance_to(round + 1);
        solo_input.flush();
    }
    for _ in 0..10 {
        solo.step();
    }
    let reader = stage.reader_at("left", as_of);
    let probe = ProbeHandle::new();
    let here = stage.interactive.dataflow(|scope| {
        let rows = reader.import(scope, "import", Antichain::new());
        collect(largest(rows), &probe)
    });
    let solo_probe = ProbeHandle::new();
    agent.set_logical_compaction(at(as_of).borrow());
    let there = solo.dataflow(|scope| {
        let rows = agent.import_core(scope, "import").0;
        collect(largest(rows), &solo_probe)
    });
    for round in 10..20 {
        stage.settle();
        left.seal(&mut stage, round + 1);
        solo_input.advance_to(round + 1);
        solo_input.flush();
        for _ in 0..10 {
            solo.step();
        }
    }
    stage.settle();
    for time in as_of..20 {
        assert_eq!(accumulated(&here, time), accumulated(&there, time), "as of {as_of}, at {time}");
    }
}

fn largest<'scope, Tr>(
    rows: differential_dataflow::operators::arrange::Arranged<'scope, Tr>,
) -> VecCollection<'scope, u64, (u64, u64), isize>
where
    Tr: Rows,
    Tr::Batch: Navigable,
    <Tr::Batch as Navigable>::Cursor: RowCursor,
    for<'a> <Tr::Batch as Navigable>::Cursor: Cursor<
            Key<'a> = &'a u64,
            Val<'a> = &'a u64,
            KeyContainer = Vec<u64>,
            Time = u64,
            Diff = isize,
        >,
{
    use differential_dataflow::trace::implementations::{ValBuilder, ValSpine};
    rows.reduce_abelian::<_, ValBuilder<u64, u64, u64, isize>, ValSpine<u64, u64, u64, isize>, _, _>(
        "Largest",
        |_, vals, out| {
            let present = vals.iter().filter(|(_, diff)| *diff > 0).map(|(val, _)| **val);
            out.extend(present.max().map(|val| (val, 1)));
        },
        |rows, key, updates| {
            rows.clear();
            rows.extend(updates.drain(..).map(|(val, time, diff)| ((*key, val), time, diff)));
        },
    )
    .as_collection(|key, val| (*key, *val))
}
