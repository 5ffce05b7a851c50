//! Rows that have gone different ways and come together again: in the order of the file, whatever the streams, each counted once.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch, UInt32Array};
use headrace_engine::report::{FlowReport, Status};
use headrace_engine::spec::{DestinationSpec, FlowSpec, SinkSpec};
use headrace_engine::{BatchReader, Failure, FailureKind, Flow, Window};
use serde_json::{Value, json};

use crate::support::{Job, join, rows};

const ROWS: i64 = 2000;

/// What the queries of a flow say of a row, by the place of the transform and its id: the number of an output, or a value; none to leave
/// it out, or why it fails.
type Said = Result<Option<i64>, &'static str>;

fn answer(window: Window, say: impl Fn(usize, i64) -> Said) {
    let rows = &window.rows;
    let id = rows.column(rows.schema().index_of("id").unwrap()).as_primitive::<Int64Type>();
    let numbers = rows.column(rows.num_columns() - 1).as_primitive::<UInt32Type>();
    let (mut values, mut kept) = (Vec::new(), Vec::new());
    for (id, number) in id.values().iter().zip(numbers.values()) {
        match say(window.transform, *id) {
            Ok(Some(value)) => {
                values.push(value);
                kept.push(*number);
            }
            Ok(None) => {}
            Err(text) => {
                return window.answer(Err(Failure { kind: FailureKind::Row, text: text.to_owned() }));
            }
        }
    }
    // Queries that compute a value have one of 64 bits, splits a number of 32 bits.
    let is_value = values.iter().any(|value| *value >= 1000);
    let column: ArrayRef = match is_value {
        true => Arc::new(Int64Array::from(values)),
        false => Arc::new(Int32Array::from_iter_values(values.iter().map(|value| *value as i32))),
    };
    let answer = match kept.is_empty() {
        true => vec![],
        false => {
            let numbers: ArrayRef = Arc::new(UInt32Array::from(kept));
            vec![RecordBatch::try_from_iter([("0", column), ("1", numbers)]).unwrap()]
        }
    };
    window.answer(Ok(answer));
}

/// Runs a flow whose destinations are merged streams: what each has got, as it came.
fn run(spec: FlowSpec, say: impl Fn(usize, i64) -> Said + Sync) -> (Vec<Vec<String>>, FlowReport) {
    let (streams, destinations) = (spec.streams, spec.destinations());
    let flow = Flow::new(spec).unwrap();
    let readers: Vec<BatchReader> = (0..destinations).map(|own| flow.take_reader_of(own).unwrap()).collect();
    let found = std::thread::scope(|scope| {
        for _ in 0..streams {
            scope.spawn(|| {
                while let Some(window) = flow.next_window() {
                    answer(window, &say);
                }
            });
        }
        let consume = |reader: BatchReader| reader.map_while(Result::ok).flat_map(|batch| texts(&batch)).collect();
        let consumers: Vec<_> = readers.into_iter().map(|reader| scope.spawn(move || consume(reader))).collect();
        flow.start().unwrap();
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect()
    });
    let report = join(&flow);
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    for slice in &report.slices {
        match slice.destinations.is_empty() {
            true => assert_eq!(slice.rows, slice.out + slice.filtered + slice.rejected, "{slice:?}"),
            false => {
                slice.destinations.iter().for_each(|own| assert_eq!(slice.rows, own.out + own.filtered + own.rejected));
            }
        }
    }
    (found, report)
}

fn texts(batch: &RecordBatch) -> Vec<String> {
    let format = |array: &ArrayRef, row: usize| match array.as_primitive_opt::<Int64Type>() {
        Some(values) if array.is_valid(row) => values.value(row).to_string(),
        _ if array.is_null(row) => "-".to_owned(),
        _ => array.as_string_view().value(row).to_owned(),
    };
    let line = |row| batch.columns().iter().map(|own| format(own, row)).collect::<Vec<_>>().join("|");
    (0..batch.num_rows()).map(line).collect()
}

/// A flow of many small slices, or of one, into columns of the rows.
fn spec(streams: usize, columns: &[&str], transforms: Value) -> (Job, FlowSpec) {
    let mut job = Job { limit: 1000, ..Job::of(rows(0, ROWS as u64)) }.arrow();
    (job.streams, job.slice_bytes) = (streams, if streams == 1 { 1 << 30 } else { 2500 });
    job.memory.blocks = 3 * streams + 8;
    let mut spec = job.plan().unwrap();
    spec.sink = sink(columns);
    spec.transforms = serde_json::from_value(transforms).unwrap();
    (job, spec)
}

fn sink(columns: &[&str]) -> SinkSpec {
    let columns = columns.iter().map(|own| (*own).to_owned()).collect();
    SinkSpec::Arrow { columns, position: None, place_column: None }
}

fn split(name: &str, outputs: usize, input: Value) -> Value {
    json!({"name": name, "inputs": [input], "split": {"number": "row", "outputs": outputs}})
}

fn of(transform: usize, output: usize) -> Value {
    json!({"transform": transform, "output": output})
}

fn column(name: &str, kind: &str, nullable: bool) -> Value {
    json!({"name": name, "type": {"kind": kind}, "nullable": nullable})
}

/// `id` and `name` of rows of two inputs.
fn names() -> Value {
    json!([["id", "name"], ["id", "name"]])
}

/// `id` and `name` of rows as they came.
fn reunion(name: &str, inputs: &[Value], from: Value) -> Value {
    let columns = json!([column("id", "int64", false), column("name", "string", true)]);
    json!({"name": name, "inputs": inputs, "reunion": {"columns": columns, "from": from}})
}

fn lines(ids: impl Iterator<Item = i64>) -> Vec<String> {
    ids.map(|id| format!("{id}|name {}", "n".repeat(id as usize % 23))).collect()
}

/// By the number in front.
fn in_order(mut found: Vec<String>, streams: usize) -> Vec<String> {
    if streams > 1 {
        found.sort_by_key(|line| line.split('|').next().unwrap().parse::<i64>().unwrap());
    }
    found
}

#[test]
fn rows_of_two_outputs_come_together_in_the_order_of_the_file() {
    for streams in [1, 16] {
        let transforms =
            json!([split("parted", 3, json!({"transform": null})), reunion("all", &[of(0, 2), of(0, 0)], names()),]);
        let (_job, spec) = spec(streams, &["id", "name"], transforms);
        let (found, report) = run(spec, |_, id| Ok(Some(id % 3)));
        let [found] = <[_; 1]>::try_from(found).unwrap();
        assert_eq!(in_order(found, streams), lines((0..ROWS).filter(|id| id % 3 != 1)));
        let sum =
            |value: fn(&headrace_engine::report::SliceReport) -> u64| report.slices.iter().map(value).sum::<u64>();
        assert_eq!((sum(|own| own.out), sum(|own| own.filtered)), (1333, 667));
        assert_eq!(sum(|own| own.transforms[1].rows), 1333);
        assert_eq!(sum(|own| own.transforms[1].matched), 1333);
    }
}

#[test]
fn rows_of_one_input_alone_are_not_copied() {
    let transforms =
        json!([split("parted", 2, json!({"transform": null})), reunion("all", &[of(0, 0), of(0, 1)], names()),]);
    let (_job, spec) = spec(1, &["id", "name"], transforms);
    let (found, _) = run(spec, |_, _| Ok(Some(1)));
    assert_eq!(found, [lines(0..ROWS)]);
}

#[test]
fn a_column_that_an_input_lacks_is_null_and_what_a_way_leaves_out_or_rejects_is_counted_once() {
    let twice = json!({"name": "twice", "inputs": [of(0, 1)], "query": {"number": "row", "columns": [
        column("twice", "int64", true),
        {"name": "id", "type": {"kind": "int64"}, "nullable": false, "from": "id"},
    ]}});
    let all = json!({"name": "all", "inputs": [of(0, 0), of(1, 0)], "reunion": {
        "columns": [column("id", "int64", false), column("name", "string", true), column("twice", "int64", true)],
        "from": [["id", "name", null], ["id", null, "twice"]],
    }});
    let say = |transform: usize, id: i64| match (transform, id) {
        (0, _) => Ok(Some(id % 2)),
        (_, 777) => Err("it is not allowed"),
        _ => Ok((id % 5 != 0).then_some(1000 + 2 * id)),
    };
    let line = |id: i64| match id % 2 {
        0 => Some(format!("{id}|name {}|-", "n".repeat(id as usize % 23))),
        _ => (id % 5 != 0 && id != 777).then(|| format!("{id}|-|{}", 1000 + 2 * id)),
    };
    for streams in [1, 16] {
        let transforms = json!([split("parted", 2, json!({"transform": null})), twice, all]);
        let (job, spec) = spec(streams, &["id", "name", "twice"], transforms);
        let (found, report) = run(spec, say);
        let [found] = <[_; 1]>::try_from(found).unwrap();
        assert_eq!(in_order(found, streams), (0..ROWS).filter_map(line).collect::<Vec<_>>());
        assert_eq!(report.rejects.count, 1);
        assert_eq!(job.reject_lines()[0].row, 778);
        assert_eq!(report.slices.iter().map(|own| own.filtered).sum::<u64>(), 200);
    }
}

#[test]
fn reunions_of_reunions_and_ways_that_share_them() {
    // parted: 0, 1, 2; again of 1: 0, 1; both: again.1 + again.0; all: parted.2 + both; the other destination reads both.
    let transforms = json!([
        split("parted", 3, json!({"transform": null})),
        split("again", 2, of(0, 1)),
        reunion("both", &[of(1, 1), of(1, 0)], names()),
        reunion("all", &[of(0, 2), of(2, 0)], names()),
    ]);
    for streams in [1, 16] {
        let (_job, mut spec) = spec(streams, &["id", "name"], transforms.clone());
        let other = json!({"name": "other", "input": of(2, 0), "sink": {"kind": "null"}});
        let mut other: DestinationSpec = serde_json::from_value(other).unwrap();
        other.sink = sink(&["id", "name"]);
        spec.others = vec![other];
        let (found, report) = run(spec, |transform, id| Ok(Some(if transform == 0 { id % 3 } else { id / 3 % 2 })));
        let [all, both] = <[_; 2]>::try_from(found).unwrap();
        assert_eq!(in_order(all, streams), lines((0..ROWS).filter(|id| id % 3 != 0)));
        assert_eq!(in_order(both, streams), lines((0..ROWS).filter(|id| id % 3 == 1)));
        let of = |number: usize| report.slices.iter().map(|own| own.destinations[number].filtered).sum::<u64>();
        assert_eq!((of(0), of(1)), (667, 1333));
    }
}

#[test]
fn what_cannot_come_together_is_refused() {
    let refused = |transforms: Value| {
        let (_job, spec) = spec(1, &["id"], transforms);
        Flow::new(spec).err().unwrap().what
    };
    let parted = || split("parted", 2, json!({"transform": null}));
    let common = "flow test: transform `all`: the same rows come by its inputs 0 and 1";
    assert_eq!(refused(json!([parted(), reunion("all", &[of(0, 1), of(0, 1)], names())])), common);
    assert_eq!(refused(json!([parted(), reunion("all", &[json!({"transform": null}), of(0, 1)], names())])), common);
    // Both halves of one output, by transforms that know nothing of each other.
    let twice = json!([
        parted(),
        split("one", 2, of(0, 0)),
        split("two", 2, of(0, 0)),
        reunion("all", &[of(1, 0), of(2, 1)], names()),
    ]);
    assert_eq!(refused(twice), common);
    // What comes out of a reunion is in its inputs.
    let inner = json!([
        parted(),
        reunion("both", &[of(0, 0), of(0, 1)], names()),
        reunion("all", &[of(1, 0), of(0, 1)], names()),
    ]);
    assert_eq!(refused(inner), common);
    assert_eq!(
        refused(json!([parted(), reunion("all", &[of(0, 0), of(0, 1)], json!([["id", "name"]]))])),
        "flow test: transform `all`: it has 2 inputs, and columns of 1"
    );
    assert_eq!(
        refused(json!([parted(), reunion("all", &[of(0, 0), of(0, 1)], json!([["id", "name"], [null, "name"]]))])),
        "flow test: transform `all`: column `id` does not fit what input 1 has for it"
    );
    assert_eq!(
        refused(json!([parted(), reunion("all", &[of(0, 0), of(0, 1)], json!([["id", "name"], ["name", "name"]]))])),
        "flow test: transform `all`: column `id` does not fit what input 1 has for it"
    );
    let two = serde_json::from_value::<headrace_engine::spec::TransformSpec>(
        json!({"name": "two", "inputs": [of(0, 0), of(0, 1)], "split": {"number": "row", "outputs": 2}}),
    );
    assert_eq!(two.err().unwrap().to_string(), "transform `two` has 2 inputs");
}
