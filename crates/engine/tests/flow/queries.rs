//! Queries on the way of rows: whoever runs them is a thread of the test, which computes with plain Rust.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{ArrayRef, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array};
use headrace_engine::report::{FlowReport, Status, TransformCounts};
use headrace_engine::spec::{KeepRejects, SinkSpec, TransformSpec};
use headrace_engine::{Failure, FailureKind, Flow, Window};
use headrace_types::ErrorKind;
use serde_json::{Value, json};

use crate::support::{Job, PATIENCE, core_error, join, rows};

type Answer = Result<Vec<RecordBatch>, Failure>;

/// What comes out of a row: its new values, none if it is left out, or why it fails.
type Computed = Result<Vec<Option<i64>>, &'static str>;

fn query(columns: Value) -> TransformSpec {
    serde_json::from_value(json!({"name": "priced", "query": {"number": "row", "columns": columns}})).unwrap()
}

/// id and name pass, `twice` is computed.
fn passing() -> TransformSpec {
    query(json!([
        {"name": "twice", "type": {"kind": "int64"}, "nullable": true},
        {"name": "key", "type": {"kind": "int64"}, "nullable": false, "from": "id"},
        {"name": "name", "type": {"kind": "string"}, "nullable": false, "from": "name"},
    ]))
}

fn ids(window: &Window) -> Vec<(i64, u32)> {
    let id = window.rows.column(0).as_primitive::<Int64Type>();
    let number = window.rows.column(window.rows.num_columns() - 1).as_primitive::<UInt32Type>();
    id.values().iter().copied().zip(number.values().iter().copied()).collect()
}

fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
    RecordBatch::try_from_iter(columns.into_iter().enumerate().map(|(place, own)| (place.to_string(), own))).unwrap()
}

fn failure(kind: FailureKind, text: &str) -> Answer {
    Err(Failure { kind, text: text.to_owned() })
}

/// A window answered row by row, in reverse order; it fails with the first row that does.
fn by_row(window: &Window, compute: impl Fn(i64) -> Computed) -> Answer {
    let (mut values, mut numbers) = (Vec::new(), Vec::new());
    for (id, number) in ids(window).into_iter().rev() {
        match compute(id) {
            Ok(own) => own.into_iter().for_each(|value| {
                values.push(value);
                numbers.push(number);
            }),
            Err(text) => return failure(FailureKind::Row, text),
        }
    }
    Ok(vec![batch(vec![Arc::new(Int64Array::from(values)), Arc::new(UInt32Array::from(numbers))])])
}

/// Runs a flow with threads that answer its windows; what came out, as text, and how many windows there were.
fn run(job: &Job, columns: &[&str], answer: impl Fn(&Window) -> Answer + Sync) -> (Vec<String>, FlowReport, usize) {
    let mut spec = job.plan().unwrap();
    let columns = columns.iter().map(|name| (*name).to_owned()).collect();
    spec.sink = SinkSpec::Arrow { columns, position: None, place_column: None };
    let flow = Flow::new(spec).unwrap();
    let reader = flow.take_reader().unwrap();
    let windows = AtomicUsize::new(0);
    let mut found = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..job.streams {
            scope.spawn(|| {
                while let Some(window) = flow.next_window() {
                    windows.fetch_add(1, Ordering::Relaxed);
                    let answer = answer(&window);
                    window.answer(answer);
                }
            });
        }
        flow.start().unwrap();
        for batch in reader {
            match batch {
                Ok(batch) => found.extend(texts(&batch)),
                Err(error) => {
                    drop(core_error(error)); // the report has it, too
                    break;
                }
            }
        }
    });
    let report = join(&flow);
    (found, report, windows.into_inner())
}

fn texts(batch: &RecordBatch) -> Vec<String> {
    let format = |array: &ArrayRef, row: usize| match array.as_primitive_opt::<Int64Type>() {
        Some(values) if array.is_valid(row) => values.value(row).to_string(),
        Some(_) => "-".to_owned(),
        None => array.as_string_view().value(row).to_owned(),
    };
    let line = |row| batch.columns().iter().map(|own| format(own, row)).collect::<Vec<_>>().join("|");
    (0..batch.num_rows()).map(line).collect()
}

fn counts(report: &FlowReport) -> TransformCounts {
    let mut sum = TransformCounts::default();
    for own in report.slices.iter().flat_map(|slice| &slice.transforms) {
        sum.rows += own.rows;
        sum.matched += own.matched;
        sum.rejected += own.rejected;
        sum.filtered += own.filtered;
    }
    sum
}

fn wanted(id: i64) -> bool {
    id % 3 != 0
}

fn expected(ids: impl IntoIterator<Item = i64>) -> Vec<String> {
    ids.into_iter().map(|id| format!("{}|{id}|name {}", 2 * id, "n".repeat(id as usize % 23))).collect()
}

#[test]
fn columns_are_computed_and_pass_in_the_order_of_the_file() {
    for streams in [1, 16] {
        let mut job = Job::of(rows(0, 2000)).arrow();
        (job.streams, job.slice_bytes) = (streams, if streams == 1 { 1 << 30 } else { 2500 });
        job.memory.blocks = 40;
        job.transforms = vec![passing()];
        let compute = |id: i64| Ok(if wanted(id) { vec![Some(2 * id)] } else { vec![] });
        let (mut found, report, _) = run(&job, &["twice", "key", "name"], |window| by_row(window, compute));
        assert_eq!(report.status, Status::Ok, "{:?}", report.error);
        let all = expected((0..2000).filter(|id| wanted(*id)));
        if streams > 1 {
            found.sort_by_key(|line| line.split('|').next().unwrap().parse::<i64>().unwrap());
        }
        assert_eq!(found, all);
        let gone = 2000 - all.len() as u64;
        let sum = TransformCounts { rows: 2000, matched: 2000 - gone, filtered: gone, ..TransformCounts::default() };
        assert_eq!(counts(&report), sum);
        for slice in &report.slices {
            assert_eq!(slice.rows, slice.out + slice.filtered + slice.rejected);
        }
        assert_eq!(report.slices.iter().map(|slice| slice.filtered).sum::<u64>(), gone);
    }
}

#[test]
fn rows_that_fail_are_found_by_halving() {
    let mut job = Job::of(rows(0, 300)).arrow();
    (job.streams, job.limit, job.transforms) = (1, 100, vec![passing()]);
    let compute = |id: i64| match id {
        7 | 8 | 250 => Err("it is odd"),
        id if wanted(id) => Ok(vec![Some(2 * id)]),
        _ => Ok(vec![]),
    };
    let (found, report, windows) = run(&job, &["twice", "key", "name"], |window| by_row(window, compute));
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    assert_eq!(found, expected((0..300).filter(|id| wanted(*id) && ![7, 8, 250].contains(id))));
    let rejects = job.reject_lines();
    let told: Vec<_> = rejects.iter().map(|own| (own.row, own.code.as_str(), own.message.as_str())).collect();
    let text = "transform `priced`: it is odd";
    assert_eq!(told, [(8, "HR603", text), (9, "HR603", text), (251, "HR603", text)]);
    assert_eq!(String::from_utf8(job.bad_bytes()).unwrap(), rows(7, 9) + &rows(250, 251));
    // Some windows of some 100 rows, and up to two halves for each of 7 steps down to a row.
    assert!(windows < 60, "{windows}");
}

#[test]
fn no_more_is_halved_than_the_limit_asks_for() {
    let mut job = Job::of(rows(0, 100)).arrow();
    (job.streams, job.limit, job.transforms) = (1, 1, vec![passing()]);
    let (_, report, windows) = run(&job, &["twice"], |window| by_row(window, |_| Err("always")));
    assert_eq!(report.error.unwrap().kind, ErrorKind::RejectLimit);
    assert!(windows < 20, "{windows}");
}

#[test]
fn what_keeps_examples_loses_no_row_behind_the_limit() {
    let mut job = Job::of(rows(0, 100)).arrow();
    (job.streams, job.limit, job.transforms) = (1, 1, vec![passing()]);
    job.keep = KeepRejects::Examples;
    let compute = |id: i64| if id % 2 == 0 { Err("it is even") } else { Ok(vec![Some(2 * id)]) };
    let (found, report, _) = run(&job, &["twice", "key", "name"], |window| by_row(window, compute));
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    assert_eq!(found, expected((0..100).filter(|id| id % 2 != 0)));
}

#[test]
fn a_row_that_becomes_several_is_a_reject() {
    let mut job = Job::of(rows(0, 50)).arrow();
    (job.streams, job.limit, job.transforms) = (1, 100, vec![passing()]);
    let compute = |id: i64| Ok(if id == 20 { vec![Some(1), Some(2), Some(3)] } else { vec![Some(2 * id)] });
    let (found, report, _) = run(&job, &["twice", "key", "name"], |window| by_row(window, compute));
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    assert_eq!(found, expected((0..50).filter(|id| *id != 20)));
    let message = &job.reject_lines()[0].message;
    assert_eq!(message, "transform `priced`: the query makes 3 rows of this one, by a join or a list");
}

#[test]
fn a_row_that_becomes_several_is_one_reject_whatever_is_in_them() {
    let columns = json!([
        {"name": "day", "type": {"kind": "date"}, "nullable": true},
        {"name": "key", "type": {"kind": "int64"}, "nullable": false, "from": "id"},
    ]);
    let mut job = Job::of(rows(0, 3)).arrow();
    (job.streams, job.limit, job.transforms) = (1, 100, vec![query(columns)]);
    let answer = |_: &Window| {
        let days: ArrayRef = Arc::new(Date32Array::from(vec![0, i32::MAX, 0, 0]));
        Ok(vec![batch(vec![days, Arc::new(UInt32Array::from(vec![1, 1, 0, 2]))])])
    };
    let (found, report, _) = run(&job, &["key"], answer);
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    assert_eq!(found, ["0", "2"]);
    let sum = TransformCounts { rows: 3, matched: 2, rejected: 1, ..TransformCounts::default() };
    assert_eq!(counts(&report), sum);
    let message = &job.reject_lines()[0].message;
    assert_eq!(message, "transform `priced`: the query makes 2 rows of this one, by a join or a list");
}

#[test]
fn values_that_no_column_may_have_are_rejects() {
    let columns = json!([
        {"name": "share", "type": {"kind": "float64"}, "nullable": true},
        {"name": "day", "type": {"kind": "date"}, "nullable": true},
        {"name": "text", "type": {"kind": "varchar", "length": 3}, "nullable": false},
        {"name": "key", "type": {"kind": "int64"}, "nullable": false, "from": "id"},
    ]);
    let mut job = Job::of(rows(0, 13)).arrow();
    (job.streams, job.limit, job.transforms) = (1, 100, vec![query(columns)]);
    let answer = |window: &Window| {
        let (mut share, mut day, mut text, mut numbers) = (vec![], vec![], vec![], vec![]);
        for (id, number) in ids(window) {
            share.push(match id {
                1 => f64::INFINITY,
                2 => f64::NAN,
                _ => 0.5,
            });
            day.push(match id {
                3 => i32::MAX,
                4 => 2_932_897,
                _ => 0,
            });
            text.push(match id {
                5 => None,
                6 => Some("äöüß"),
                12 => Some("a\0"),
                _ => Some("äöü"),
            });
            numbers.push(number);
        }
        let share: ArrayRef = Arc::new(Float64Array::from(share));
        let day = Arc::new(Date32Array::from(day));
        Ok(vec![batch(vec![share, day, Arc::new(StringArray::from(text)), Arc::new(UInt32Array::from(numbers))])])
    };
    let (found, report, _) = run(&job, &["key"], answer);
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    assert_eq!(found, ["0", "7", "8", "9", "10", "11"]);
    let told: BTreeMap<_, _> = job.reject_lines().into_iter().map(|own| (own.row, (own.code, own.message))).collect();
    let odd = |value: &str| {
        format!("transform `priced`: column `share` becomes {value}, as by a division by zero or an overflow")
    };
    let late = |value: &str| format!("transform `priced`: {value} is not a day in the years 1 to 9999");
    let wanted = [
        (2, "HR603", odd("inf")),
        (3, "HR603", odd("NaN")),
        (4, "HR603", late("infinity")),
        (5, "HR603", late("10000-01-01")),
        (6, "HR201", "no value for column `text`: transform `priced` gives NULL".to_owned()),
        (7, "HR403", "a value for column `text`: transform `priced` gives more than 3 characters".to_owned()),
        (13, "HR603", "transform `priced`: \"a\\u{0}\" is not a text without NUL characters".to_owned()),
    ];
    let wanted = wanted.into_iter().map(|(row, code, text)| (row, (code.to_owned(), text)));
    assert_eq!(told, wanted.collect());
}

#[test]
fn floats_may_be_odd_where_those_of_the_row_are() {
    let columns = json!([{"name": "share", "type": {"kind": "float64"}, "nullable": true}]);
    let mut job = Job::of("1|inf\n2|1.5\n").arrow();
    job.layout.columns.truncate(2);
    job.layout.columns[1] = headrace_types::Column::new("ratio", headrace_types::ColumnType::Float64, false);
    (job.streams, job.limit, job.transforms) = (1, 100, vec![query(columns)]);
    let answer = |window: &Window| {
        let numbers = UInt32Array::from_iter_values(ids(window).into_iter().map(|(_, number)| number));
        let share = Float64Array::from(vec![f64::NAN; window.rows.num_rows()]);
        Ok(vec![batch(vec![Arc::new(share), Arc::new(numbers)])])
    };
    let mut spec = job.plan().unwrap();
    spec.sink = SinkSpec::Null;
    let flow = Flow::new(spec).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while let Some(window) = flow.next_window() {
                let answer = answer(&window);
                window.answer(answer);
            }
        });
        flow.start().unwrap();
        let report = join(&flow);
        assert_eq!((report.slices[0].out, report.slices[0].rejected), (1, 1), "{:?}", report.error);
    });
    assert_eq!(job.reject_lines()[0].row, 2);
}

#[test]
fn memory_that_is_too_little_for_many_rows_may_do_for_few() {
    let mut job = Job::of(rows(0, 40)).arrow();
    (job.streams, job.transforms) = (1, vec![passing()]);
    let most = |limit: usize| {
        move |window: &Window| match window.rows.num_rows() {
            rows if rows > limit => failure(FailureKind::Memory, "out of memory"),
            _ => by_row(window, |id| Ok(vec![Some(2 * id)])),
        }
    };
    let (found, report, _) = run(&job, &["twice", "key", "name"], most(3));
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    assert_eq!(found, expected(0..40));
    let (_, report, _) = run(&job, &["twice"], most(0));
    let error = report.error.unwrap();
    assert_eq!((error.kind, error.found.as_deref()), (ErrorKind::Memory, Some("out of memory")));
    assert_eq!(error.what, "the query of transform `priced` failed");
}

#[test]
fn what_no_row_is_to_blame_for_fails_the_flow() {
    let mut job = Job::of(rows(0, 40)).arrow();
    (job.limit, job.transforms) = (100, vec![passing()]);
    let (_, report, windows) = run(&job, &["twice"], |_| failure(FailureKind::Other, "a defect"));
    let error = report.error.unwrap();
    assert_eq!((error.kind, error.found.as_deref(), windows), (ErrorKind::Source, Some("a defect"), 1));
    // A result that is none.
    let wrong = |window: &Window| Ok(vec![batch(vec![Arc::new(UInt32Array::from(vec![0; window.rows.num_rows()]))])]);
    let (_, report, _) = run(&job, &["twice"], wrong);
    assert_eq!(report.error.unwrap().kind, ErrorKind::Internal);
    let beyond = |_: &Window| {
        let number: ArrayRef = Arc::new(UInt32Array::from(vec![1_000_000]));
        Ok(vec![batch(vec![Arc::new(Int64Array::from(vec![1])), number])])
    };
    let (_, report, _) = run(&job, &["twice"], beyond);
    assert_eq!(report.error.unwrap().what, "transform `priced`: a result without the number of its row");
}

#[test]
fn a_flow_that_is_stopped_waits_for_no_answer() {
    let mut job = Job::of(rows(0, 40)).arrow();
    job.transforms = vec![passing()];
    let mut spec = job.plan().unwrap();
    spec.sink = SinkSpec::Null;
    let flow = Flow::new(spec).unwrap();
    flow.start().unwrap();
    let window = flow.next_window().unwrap();
    assert!(!flow.is_stopped());
    flow.cancel("enough");
    assert!(flow.is_stopped() && flow.next_window().is_none());
    assert_eq!(flow.join(PATIENCE).unwrap().status, Status::Cancelled);
    // Nobody waits for it any more.
    window.answer(failure(FailureKind::Other, "interrupted"));
}

#[test]
fn a_window_that_is_lost_fails_the_flow() {
    let mut job = Job::of(rows(0, 40)).arrow();
    job.transforms = vec![passing()];
    let mut spec = job.plan().unwrap();
    spec.sink = SinkSpec::Null;
    let flow = Flow::new(spec).unwrap();
    flow.start().unwrap();
    drop(flow.next_window());
    assert_eq!(join(&flow).error.unwrap().kind, ErrorKind::Internal);
    assert!(flow.next_window().is_none());
}

#[test]
fn transforms_that_do_not_fit_are_refused() {
    let refused = |columns: Value| {
        let mut job = Job::of(rows(0, 1)).arrow();
        job.transforms = vec![query(columns)];
        let mut spec = job.plan().unwrap();
        spec.sink = SinkSpec::Null;
        Flow::new(spec).err().map(|error| error.what)
    };
    let column =
        |name: &str, from: &str| json!({"name": name, "type": {"kind": "int64"}, "nullable": true, "from": from});
    assert_eq!(
        refused(json!([column("a", "none")])).as_deref(),
        Some("flow test: transform `priced`: its rows have no column `none`")
    );
    assert_eq!(
        refused(json!([column("a", "id"), column("a", "id")])).as_deref(),
        Some("flow test: transform `priced`: column name `a` stands twice")
    );
    assert_eq!(
        refused(json!([column("a", "name")])).as_deref(),
        Some("flow test: transform `priced`: column `a` is of another type than `name`")
    );
    let both = serde_json::from_value::<TransformSpec>(json!({"name": "both"}));
    assert_eq!(both.unwrap_err().to_string(), "transform `both` is not one of lookup, query, split and reunion");
}
