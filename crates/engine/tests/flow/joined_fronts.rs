//! Transforms in front of the sides of a join: rows meet as they come out of them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, UInt32Array};
use headrace_engine::report::{FlowReport, JoinCounts, Status, TransformCounts};
use headrace_engine::spec::{FlowSpec, MemorySpec, RowsOf};
use headrace_engine::{Failure, FailureKind, Flow, Window};
use headrace_types::CoreError;
use serde_json::{Value, json};

use crate::joins::{Job, Row, committed, counts, expected, left, pair, right, rows_of, sorted};
use crate::support::{core_error, join};

/// Of the rows of a pair in front of the join, by side: the new key, none to leave the row out, or why it fails. The left one is asked
/// for its id, the right one for its line, both for the key that they have.
type Says = fn(Option<i64>, Option<i64>) -> Result<Option<Option<i64>>, &'static str>;

#[derive(Clone, Copy)]
struct Fronts {
    left: Option<Says>,
    right: Option<Says>,
}

/// Twice as far from the first key of its pair.
fn doubled(key: Option<i64>) -> Option<i64> {
    key.map(|key| key + key % 100_000)
}

/// Other keys; long runs are left out, and some rows fail.
fn say_left(key: Option<i64>, _: Option<i64>) -> Result<Option<Option<i64>>, &'static str> {
    match key.map_or(1, |key| key % 100_000) {
        id if id % 13 == 5 => Err("left"),
        id if id % 11 == 3 || (150..520).contains(&id) => Ok(None),
        _ => Ok(Some(doubled(key))),
    }
}

fn say_right(key: Option<i64>, line: Option<i64>) -> Result<Option<Option<i64>>, &'static str> {
    match line.unwrap_or(0) {
        line if line % 17 == 2 => Err("right"),
        line if line % 7 == 1 || key.is_some_and(|key| (300..420).contains(&(key % 100_000))) => Ok(None),
        _ => Ok(Some(doubled(key))),
    }
}

const BOTH: Fronts = Fronts { left: Some(say_left), right: Some(say_right) };

/// What a query behind the join says of a line.
fn say_behind(line: Option<i64>) -> Result<bool, &'static str> {
    match line.map_or(2, |line| line % 5) {
        0 => Ok(false),
        3 => Err("behind"),
        _ => Ok(true),
    }
}

impl Fronts {
    /// How many transforms they are; the one behind the join has this place.
    fn count(&self) -> usize {
        usize::from(self.left.is_some()) + usize::from(self.right.is_some())
    }

    /// The flow with them: the keys are computed, the others pass.
    fn plan(&self, job: &Job, is_behind: bool) -> FlowSpec {
        let mut spec = job.plan();
        let column = |name: &str, kind: &str, nullable: bool, from: Value| json!({"name": name, "type": {"kind": kind}, "nullable": nullable, "from": from});
        let query = |name: &str, source: Value, columns: Value| json!({"name": name, "source": source, "inputs": [{"transform": null}], "query": {"number": "row", "columns": columns}});
        let mut transforms = Vec::new();
        let mut inputs = vec![RowsOf::FIRST; 2];
        if self.left.is_some() {
            let own = json!([column("name", "string", false, json!("name")), column("id", "int64", true, Value::Null)]);
            inputs[0] = RowsOf { transform: Some(transforms.len()), output: 0 };
            transforms.push(query("on the left", json!(0), own));
        }
        if self.right.is_some() {
            let own = json!([column("line", "int64", false, json!("line")), column("of", "int64", true, Value::Null)]);
            inputs[1] = RowsOf { transform: Some(transforms.len()), output: 0 };
            transforms.push(query("on the right", json!(1), own));
        }
        if is_behind {
            let own = json!([
                column("id", "int64", true, json!("id")),
                column("name", "string", true, json!("name")),
                column("line", "int64", true, json!("line")),
            ]);
            transforms.push(query("behind", Value::Null, own));
        }
        spec.transforms = serde_json::from_value(json!(transforms)).unwrap();
        spec.join.as_mut().unwrap().last.inputs = inputs;
        spec
    }

    fn answer(&self, window: Window) {
        let numbers = window.rows.column(window.rows.num_columns() - 1).as_primitive::<UInt32Type>().clone();
        let named = |name: &str| window.rows.schema().index_of(name).ok().map(|own| window.rows.column(own).clone());
        let number = |name: &str, row: usize| {
            let own = named(name).filter(|own| own.is_valid(row))?;
            let wide = own.as_primitive_opt::<Int64Type>().map(|own| own.value(row));
            wide.or_else(|| Some(i64::from(own.as_primitive::<Int32Type>().value(row))))
        };
        let is_behind = window.transform == self.count();
        let is_left = window.transform == 0 && self.left.is_some();
        let (mut keys, mut kept) = (Vec::new(), Vec::new());
        for row in 0..numbers.len() {
            let said = match (is_behind, is_left) {
                (true, _) => say_behind(number("line", row)).map(|own| own.then_some(None)),
                (_, true) => self.left.unwrap()(number("id", row), None),
                (_, false) => self.right.unwrap()(number("of", row), number("line", row)),
            };
            match said {
                Ok(Some(key)) => {
                    keys.push(key);
                    kept.push(numbers.value(row));
                }
                Ok(None) => {}
                Err(text) => return window.answer(Err(Failure { kind: FailureKind::Row, text: text.to_owned() })),
            }
        }
        let kept: ArrayRef = Arc::new(UInt32Array::from(kept));
        let keys: ArrayRef = Arc::new(Int64Array::from(keys));
        let answer = match is_behind {
            true => RecordBatch::try_from_iter([("row", kept)]),
            false => RecordBatch::try_from_iter([("key", keys), ("row", kept)]),
        };
        window.answer(Ok(vec![answer.unwrap()]));
    }

    /// The joined rows in the order of batches, and how the flow went.
    fn run(&self, spec: FlowSpec) -> (Result<Vec<Row>, CoreError>, FlowReport) {
        let flow = Flow::new(spec).unwrap();
        let reader = flow.take_reader();
        flow.start().unwrap();
        let found = std::thread::scope(|scope| {
            (0..3).for_each(|_| {
                scope.spawn(|| {
                    while let Some(window) = flow.next_window() {
                        self.answer(window);
                    }
                });
            });
            reader.into_iter().flatten().try_fold(Vec::new(), |mut all, batch| {
                all.extend(rows_of(&batch.map_err(core_error)?));
                Ok(all)
            })
        });
        (found, join(&flow))
    }

    /// The texts of a pair behind them, for the model, and the rows that they refuse.
    fn behind(&self, pair: &(String, String)) -> ((String, String), Vec<String>) {
        let number = |text: &str| text.parse::<i64>().ok();
        let shown = |key: Option<i64>| key.map_or(String::new(), |key| key.to_string());
        let mut refused = Vec::new();
        let (mut lefts, mut rights) = (String::new(), "of,line\n".to_owned());
        for line in pair.0.lines() {
            let (id, name) = line.split_once('|').unwrap();
            match self.left.map_or(Ok(Some(number(id))), |says| says(number(id), None)) {
                Ok(Some(key)) => lefts += &format!("{}|{name}\n", shown(key)),
                Ok(None) => {}
                Err(_) => refused.push(line.to_owned()),
            }
        }
        for line in pair.1.lines().skip(1) {
            let (of, own) = line.split_once(',').unwrap();
            match self.right.map_or(Ok(Some(number(of))), |says| says(number(of), number(own))) {
                Ok(Some(key)) => rights += &format!("{},{own}\n", shown(key)),
                Ok(None) => {}
                Err(_) => refused.push(line.to_owned()),
            }
        }
        ((lefts, rights), refused)
    }
}

fn rejects(job: &Job) -> Vec<Value> {
    let lines = std::fs::read_to_string(job.folder.path().join("rejected.jsonl")).unwrap_or_default();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The text of the row at the place of a reject.
fn row_at(reject: &Value) -> String {
    let text = std::fs::read_to_string(reject["file"].as_str().unwrap()).unwrap();
    let row = text.lines().nth(reject["row"].as_u64().unwrap() as usize - 1).unwrap();
    assert!(text[reject["row_byte"].as_u64().unwrap() as usize..].starts_with(row));
    row.to_owned()
}

fn pairs() -> Vec<(String, String)> {
    (0..6).map(|number| pair(number, 30 + 150 * number)).collect()
}

/// What holds for every flow that ended well; where the fronts have counted.
fn check(fronts: &Fronts, report: &FlowReport, pairs: usize) {
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    let (mut out, mut behind) = ([0; 3], 0);
    for slice in &report.slices {
        let JoinCounts { rows, rejected, .. } = slice.join.unwrap();
        assert_eq!(slice.lines, slice.rows + slice.skipped);
        let side = usize::from(slice.file >= pairs);
        let place = side - usize::from(side == 1 && fronts.left.is_none());
        let has_front = [fronts.left, fronts.right][side].is_some();
        let none = TransformCounts::default();
        let front = if has_front { &slice.transforms[place] } else { &none };
        assert_eq!(slice.rows, slice.rejected - rejected + front.filtered + rows, "{slice:?}");
        if has_front {
            assert_eq!((front.rows, front.matched), (slice.rows, rows), "{slice:?}");
            assert_eq!(front.rejected, slice.rejected - rejected, "{slice:?}");
        }
        let others = slice.transforms.iter().enumerate().take(fronts.count()).filter(|(own, _)| *own != place);
        assert!(others.map(|(_, own)| own).all(|own| *own == none) || !has_front, "{slice:?}");
        if let Some(own) = slice.transforms.get(fronts.count()) {
            out.iter_mut().zip([own.matched, own.filtered, own.rejected]).for_each(|(sum, own)| *sum += own);
            assert_eq!((own.matched, own.filtered), (slice.out, slice.filtered), "{slice:?}");
        }
        behind += rejected;
    }
    if report.slices.iter().any(|slice| slice.transforms.len() > fronts.count()) {
        assert_eq!((out[0], out[2]), (report.sink.rows, behind));
    }
}

#[test]
fn sides_meet_as_they_come_out_of_their_fronts() {
    let pairs = pairs();
    for fronts in [BOTH, Fronts { right: None, ..BOTH }, Fronts { left: None, ..BOTH }] {
        let (texts, refused): (Vec<_>, Vec<_>) = pairs.iter().map(|pair| fronts.behind(pair)).unzip();
        let mut refused = refused.concat();
        refused.sort();
        for kind in ["inner", "left", "right", "full"] {
            let wanted = sorted(texts.iter().flat_map(|pair| expected(pair, kind)).collect());
            for (streams, block_bytes) in [(1, 4096), (16, 4096), (2, 1 << 20)] {
                let mut job = Job::of(pairs.clone());
                job.memory = MemorySpec { block_bytes, blocks: 2 * streams, max_row_bytes: 1 << 20 };
                (job.kind, job.streams, job.limit) = (kind, streams, 10_000);
                let (found, report) = fronts.run(fronts.plan(&job, false));
                assert!(sorted(found.unwrap()) == wanted, "{kind}, {streams} streams");
                check(&fronts, &report, pairs.len());
                let mut told: Vec<_> = rejects(&job).iter().map(row_at).collect();
                told.sort();
                assert_eq!(told, refused);
                let side = |is_right| counts(&report, pairs.len(), is_right);
                assert_eq!((side(false).rejected, side(true).rejected), (0, 0));
                assert_eq!(report.sink.rows as usize, wanted.len());
            }
        }
    }
}

#[test]
fn rows_refused_behind_are_rows_of_the_files_that_fronts_have_left() {
    let pairs = pairs();
    let (texts, in_front): (Vec<_>, Vec<_>) = pairs.iter().map(|pair| BOTH.behind(pair)).unzip();
    let rows: Vec<_> = texts.iter().flat_map(|pair| expected(pair, "left")).collect();
    let refused = rows.iter().filter(|row| say_behind(row.2).is_err()).map(|row| row.2.unwrap().to_string());
    let mut refused: Vec<String> = refused.chain(in_front.concat()).collect();
    refused.sort();
    let wanted = sorted(rows.iter().filter(|row| say_behind(row.2) == Ok(true)).cloned().collect());
    for streams in [1, 16] {
        let mut job = Job::of(pairs.clone());
        job.memory.blocks = 2 * streams;
        (job.kind, job.streams, job.limit) = ("left", streams, 10_000);
        let mut spec = BOTH.plan(&job, true);
        let (found, report) = BOTH.run(spec.clone());
        assert!(sorted(found.unwrap()) == wanted, "{streams} streams");
        check(&BOTH, &report, pairs.len());
        let own = |reject: &Value| match (row_at(reject), reject["message"].as_str().unwrap()) {
            (row, "transform `behind`: behind") => row.split_once(',').unwrap().1.to_owned(),
            (row, message) => {
                let side = if row.contains('|') { "left" } else { "right" };
                assert_eq!(message, format!("transform `on the {side}`: {side}"));
                row
            }
        };
        let mut told: Vec<_> = rejects(&job).iter().map(own).collect();
        told.sort();
        assert_eq!(told, refused);

        // What was committed is read once more for its rejects, and is the same.
        let known = report
            .slices
            .iter()
            .map(|slice| (slice.number, committed([slice.out, slice.rejected, slice.skipped, slice.filtered])));
        spec.source.committed = known.collect::<HashMap<_, _>>();
        let (again, resumed) = BOTH.run(spec);
        assert_eq!(resumed.status, Status::Ok, "{:?}", resumed.error);
        assert!(again.unwrap().is_empty());
        let transforms =
            |report: &FlowReport| report.slices.iter().map(|own| own.transforms.clone()).collect::<Vec<_>>();
        assert_eq!(transforms(&resumed), transforms(&report));
    }
}

#[test]
fn what_a_front_refuses_lacks_in_all_destinations() {
    let pairs = pairs();
    let mut job = Job::of(pairs.clone());
    (job.kind, job.streams, job.limit, job.is_null) = ("full", 4, 10_000, true);
    job.memory.blocks = 8;
    let mut spec = BOTH.plan(&job, true);
    spec.rejects.tell_destinations = true;
    (spec.destination, spec.input) = ("first".to_owned(), Some(RowsOf { transform: Some(2), output: 0 }));
    let of = json!([{"name": "of", "type": {"kind": "int64"}, "nullable": false}]);
    let other = json!({"name": "other", "input": {"transform": null}, "sink": {"kind": "null"}, "fit": of});
    spec.others = vec![serde_json::from_value(other).unwrap()];
    let (_, report) = BOTH.run(spec);
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    let (texts, in_front): (Vec<_>, Vec<_>) = pairs.iter().map(|pair| BOTH.behind(pair)).unzip();
    let in_front = in_front.concat();
    let rows: Vec<_> = texts.iter().flat_map(|pair| expected(pair, "full")).collect();
    let sums = [0, 1].map(|number: usize| {
        let own = report.slices.iter().map(|slice| slice.destinations[number]);
        own.fold([0; 3], |sum, own| [sum[0] + own.out, sum[1] + own.filtered, sum[2] + own.rejected])
    });
    let count = |own: &dyn Fn(&&Row) -> bool| rows.iter().filter(own).count() as u64;
    let refused = in_front.len() as u64;
    let filtered = count(&|row| say_behind(row.2) == Ok(false));
    let failed = count(&|row| say_behind(row.2).is_err());
    assert_eq!(sums[0], [rows.len() as u64 - filtered - failed, filtered, refused + failed]);
    // `of` is computed in front of the join, and NULL where there is no right row or no key.
    let all = rejects(&job);
    let mut at_end = 0;
    for reject in &all {
        let row = row_at(reject);
        let lacking: Vec<&str> = reject["destinations"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        if in_front.contains(&row) {
            assert_eq!(lacking, ["first", "other"], "{reject}");
        } else if lacking.contains(&"other") {
            at_end += 1;
            if lacking == ["other"] {
                let message = "no value for column `of` of `lines`, which is NOT NULL in destination `other`";
                assert_eq!(reject["message"], message);
                assert_eq!(reject["column"], Value::Null);
            }
        }
    }
    assert!(at_end > 0);
    assert_eq!(sums[1], [rows.len() as u64 - at_end, 0, refused + at_end]);
}

/// The error of a flow whose keys, behind the fronts, are in no order.
fn disorder(fronts: Fronts, pair: (String, String)) -> CoreError {
    let mut job = Job::of(vec![(left([Some(0)]), right([(Some(0), 0)])), pair]);
    (job.limit, job.is_null, job.kind) = (10_000, true, "inner");
    let (_, report) = fronts.run(fronts.plan(&job, false));
    report.error.unwrap()
}

#[test]
fn disorder_behind_a_front_is_told_of_the_rows_of_the_file() {
    let lefts = |ids: std::ops::Range<u64>| left(ids.map(Some));
    let rights = right((0..1500).map(|id| (Some(id), 7)));
    // Row 1201 comes behind row 601: what stands between them, some batches, is left out.
    let says: Says = |key, _| match key.unwrap() {
        600 => Ok(Some(Some(5000))),
        601..1200 => Ok(None),
        key => Ok(Some(Some(key))),
    };
    let error = disorder(Fronts { left: Some(says), right: None }, (lefts(0..1500), rights.clone()));
    assert_eq!(error.found.as_deref(), Some("id = 1200 behind id = 5000 of row 601"));
    let at = error.at.unwrap();
    assert!(at.file.ends_with("left.1"));
    assert_eq!((at.row, at.byte), (Some(1201), Some(lefts(0..1200).len() as u64)));

    // Within a batch, with rows left out in front of both, and one that is refused between them.
    let says: Says = |key, line| match key.unwrap() {
        2 => Err("it is refused"),
        1 if line == Some(7) => Ok(Some(Some(9))),
        0 => Ok(None),
        key => Ok(Some(Some(key))),
    };
    let error = disorder(Fronts { left: None, right: Some(says) }, (lefts(0..9), rights));
    assert_eq!(error.found.as_deref(), Some("of = 3 behind of = 9 of row 3"));
    assert_eq!((error.at.as_ref().unwrap().row, error.at.unwrap().byte), (Some(5), Some(20)));
}

#[test]
fn keys_of_two_pairs_are_compared_behind_the_fronts() {
    let says: Says = |key, _| Ok(Some(key.map(|key| key % 10)));
    let fronts = Fronts { left: Some(says), right: Some(says) };
    let rights = |ids: std::ops::Range<u64>| right(ids.map(|id| (Some(id), 1)));
    let pair = |ids: std::ops::Range<u64>| (left(ids.clone().map(Some)), rights(ids));
    let job = Job { is_null: true, ..Job::of(vec![pair(0..5), pair(11..15)]) };
    let error = fronts.run(fronts.plan(&job, false)).1.error.unwrap();
    assert_eq!(error.what, "pairs of files of join `joined` have keys in common");
    let job = Job { is_null: true, ..Job::of(vec![pair(0..5), pair(15..19)]) };
    assert_eq!(fronts.run(fronts.plan(&job, false)).1.sink.rows, 9);
}
