//! Rows that come as batches instead of text: all of them arrive, and the first one that does not fit ends the flow.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Date32Array, Decimal64Array, Int32Array, Int64Array, RecordBatch, RecordBatchIterator, StringViewArray,
};
use arrow_schema::{ArrowError, SchemaRef};
use headrace_engine::report::{DestinationCounts, FlowReport, Status};
use headrace_engine::spec::{FlowSpec, SinkSpec, TransformSpec};
use headrace_engine::{BatchReader, Flow};
use headrace_types::{CoreError, ErrorKind};
use serde_json::{Value, json};

use crate::support::{Job, check_report, core_error, join, row, values};

const FIRST_DAY: i32 = 19_723; // 2024-01-01
const BATCH_ROWS: u64 = 20_000; // more than go on at once

/// Rows `from..to` of the test data.
fn batch(from: u64, to: u64) -> RecordBatch {
    let each = |own: &dyn Fn(u64) -> i64| (from..to).map(own).collect::<Vec<i64>>();
    let amounts = each(&|id| (id * 37 % 9973 * 100 + id % 100) as i64);
    let days = (from..to).map(|id| (!id.is_multiple_of(7)).then_some(FIRST_DAY + (id % 28) as i32));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from(each(&|id| id as i64)))),
        (
            "name",
            Arc::new(StringViewArray::from_iter_values(
                (from..to).map(|id| format!("name {}", "n".repeat((id % 23) as usize))),
            )),
        ),
        ("amount", Arc::new(Decimal64Array::from(amounts).with_precision_and_scale(15, 2).unwrap())),
        ("day", Arc::new(Date32Array::from_iter(days))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// The flow of one slice whose rows are batches, into a merged stream.
fn spec(fit: Value) -> FlowSpec {
    let mut spec = Job::of("").arrow().plan().unwrap();
    spec.sink = SinkSpec::Arrow {
        columns: ["id", "name", "amount", "day"].map(str::to_owned).to_vec(),
        position: None,
        place_column: None,
    };
    spec.streams = 1;
    spec.source.gathered = true;
    let file = json!({"path": "rows of the query q", "size_bytes": 0, "modified_ns": 0, "inode": 0});
    spec.source.files = vec![serde_json::from_value(file).unwrap()];
    let slice = json!({"number": 1, "file": 0, "begin_byte": 0, "end_byte": 0});
    spec.source.slices = vec![serde_json::from_value(slice).unwrap()];
    spec.fit = serde_json::from_value(fit).unwrap();
    spec
}

/// Runs it to its end; what has come out.
fn run(
    spec: FlowSpec,
    batches: Vec<Result<RecordBatch, ArrowError>>,
    schema: &SchemaRef,
) -> (Result<Vec<String>, CoreError>, FlowReport) {
    let rows = RecordBatchIterator::new(batches, schema.clone());
    let flow = Flow::of_batches(spec, vec![], Box::new(rows)).unwrap();
    let reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let consumer = std::thread::spawn(move || {
        let mut all = vec![];
        for batch in reader {
            all.extend(values(&batch.map_err(core_error)?));
        }
        Ok(all)
    });
    join(&flow);
    let found = consumer.join().unwrap();
    (found, join(&flow)) // again: the consumer takes the last batches after the stream has ended
}

fn good(batches: &[RecordBatch]) -> Vec<Result<RecordBatch, ArrowError>> {
    batches.iter().cloned().map(Ok).collect()
}

#[test]
fn all_rows_arrive_in_their_order() {
    let batches = [batch(0, BATCH_ROWS), batch(BATCH_ROWS, BATCH_ROWS), batch(BATCH_ROWS, BATCH_ROWS + 3)];
    let (found, report) = run(spec(json!([])), good(&batches), &batches[0].schema());
    let expected: Vec<String> = (0..BATCH_ROWS + 3).map(row).collect();
    assert!(found.unwrap() == expected);
    check_report(&report, 8);
    let [slice] = &report.slices[..] else { panic!("{:?}", report.slices) };
    assert_eq!((slice.rows, slice.out, slice.bytes, slice.skipped), (BATCH_ROWS + 3, BATCH_ROWS + 3, 0, 0));
}

#[test]
fn a_stream_without_rows_is_a_slice_without_rows() {
    let schema = batch(0, 1).schema();
    for batches in [vec![], good(&[batch(0, 0)])] {
        let (found, report) = run(spec(json!([])), batches, &schema);
        assert_eq!(found.unwrap(), Vec::<String>::new());
        assert_eq!((report.status, report.slices[0].rows), (Status::Ok, 0));
    }
}

#[test]
fn a_stream_that_fails_ends_the_flow() {
    let schema = batch(0, 1).schema();
    let batches = vec![Ok(batch(0, 10)), Err(ArrowError::ComputeError("the disk is full".to_owned()))];
    let (found, report) = run(spec(json!([])), batches, &schema);
    assert_eq!(report.status, Status::Failed);
    assert!(report.slices.is_empty());
    for error in [found.unwrap_err(), report.error.unwrap()] {
        assert!(error.found.unwrap().contains("the disk is full"));
    }
}

#[test]
fn the_first_row_that_does_not_fit_is_told_by_its_values() {
    let batches = [batch(1, 10)];
    let narrow = json!([{"name": "day", "type": {"kind": "date"}, "nullable": false}]);
    let (found, report) = run(spec(narrow), good(&batches), &batches[0].schema());
    let error = report.error.unwrap();
    assert_eq!((report.status, error.kind), (Status::Failed, ErrorKind::Source));
    assert!(error.what.contains("HR201"), "{error:?}");
    let shown = error.found.clone().unwrap();
    assert!(shown.contains("column `day`") && shown.contains("id 7") && shown.contains("day NULL"), "{shown}");
    assert_eq!(found.unwrap_err().what, error.what);
    assert_eq!(report.rejects.count, 0);
}

#[test]
fn columns_of_other_types_are_refused() {
    let good_one = batch(0, 3);
    let mut columns = good_one.columns().to_vec();
    columns[1] = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let names = ["id", "name", "amount", "day"];
    let wrong = RecordBatch::try_from_iter(names.into_iter().zip(columns)).unwrap();
    let (found, report) = run(spec(json!([])), good(std::slice::from_ref(&wrong)), &wrong.schema());
    assert!(found.is_err());
    let error = report.error.unwrap();
    assert!(error.what.contains("column `name` of the query does not fit its type"), "{error:?}");
    assert!(error.found.is_some() && error.expected.is_some(), "{error:?}");
}

#[test]
fn a_flow_that_is_cancelled_stops() {
    let schema = batch(0, 1).schema();
    let endless = std::iter::repeat_with(|| Ok(batch(0, 1000)));
    let rows = RecordBatchIterator::new(endless, schema);
    let flow = Flow::of_batches(spec(json!([])), vec![], Box::new(rows)).unwrap();
    let mut reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    assert!(reader.next().unwrap().is_ok());
    flow.cancel("enough");
    drop(reader);
    let report = join(&flow);
    assert_eq!(report.status, Status::Cancelled);
    assert!(report.slices.is_empty());
}

/// Runs it into two merged streams; what has come out of each.
fn run_both(spec: FlowSpec, batches: &[RecordBatch]) -> (Vec<Vec<String>>, FlowReport) {
    let schema = batches[0].schema();
    let flow = Flow::of_batches(spec, vec![], Box::new(RecordBatchIterator::new(good(batches), schema))).unwrap();
    let readers: Vec<_> = (0..2).map(|own| flow.take_reader_of(own).unwrap()).collect();
    flow.start().unwrap();
    let consume = |reader: BatchReader| reader.map_while(Result::ok).flat_map(|batch| values(&batch)).collect();
    let consumers: Vec<_> = readers.into_iter().map(|own| std::thread::spawn(move || consume(own))).collect();
    join(&flow);
    let found = consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect();
    (found, join(&flow))
}

/// A second destination of all rows, which have to fit it.
fn with_another(mut spec: FlowSpec, fit: Value) -> FlowSpec {
    let sink = json!({"kind": "arrow", "columns": ["id", "name", "amount", "day"]});
    let other = json!({"name": "second", "input": {"transform": null}, "sink": sink, "fit": fit});
    spec.destination = "first".to_owned();
    spec.others = vec![serde_json::from_value(other).unwrap()];
    spec
}

#[test]
fn several_destinations_get_the_rows_of_their_ways() {
    let batches = [batch(0, BATCH_ROWS), batch(BATCH_ROWS, BATCH_ROWS + 3)];
    let (found, report) = run_both(with_another(spec(json!([])), json!([])), &batches);
    let expected: Vec<String> = (0..BATCH_ROWS + 3).map(row).collect();
    assert!(found.iter().all(|own| *own == expected));
    let [slice] = &report.slices[..] else { panic!("{:?}", report.slices) };
    let own = DestinationCounts { out: BATCH_ROWS + 3, ..DestinationCounts::default() };
    assert_eq!(
        (slice.rows, slice.out, &slice.destinations[..]),
        (BATCH_ROWS + 3, 2 * (BATCH_ROWS + 3), &[own, own][..])
    );
}

#[test]
fn a_row_that_does_not_fit_one_of_several_ends_the_flow_with_its_name() {
    let narrow = json!([{"name": "day", "type": {"kind": "date"}, "nullable": false}]);
    let (_, report) = run_both(with_another(spec(json!([])), narrow), &[batch(1, 10)]);
    let error = report.error.unwrap();
    assert_eq!((report.status, error.destination.as_deref()), (Status::Failed, Some("second")));
    assert!(error.found.unwrap().contains("id 7"));
}

#[test]
fn one_slice_is_what_it_can_be() {
    let mut several = spec(json!([]));
    several.source.slices.push(several.source.slices[0].clone());
    let schema = batch(0, 1).schema();
    let rows = || Box::new(RecordBatchIterator::new(Vec::<Result<RecordBatch, ArrowError>>::new(), schema.clone()));
    assert!(Flow::of_batches(several, vec![], rows()).is_err());
    // Nobody has given the rows.
    let flow = Flow::new(spec(json!([]))).unwrap();
    let _reader = flow.take_reader();
    flow.start().unwrap();
    assert_eq!(join(&flow).status, Status::Failed);
}

#[test]
fn queries_behind_it_run_over_parts_of_a_batch() {
    let query: TransformSpec = serde_json::from_value(json!({"name": "q", "query": {"number": "row", "columns": [
        {"name": "id", "type": {"kind": "int64"}, "nullable": true, "from": "id"},
        {"name": "name", "type": {"kind": "string"}, "nullable": true, "from": "name"},
        {"name": "amount", "type": {"kind": "decimal", "precision": 15, "scale": 2}, "nullable": true, "from": "amount"},
        {"name": "day", "type": {"kind": "date"}, "nullable": true, "from": "day"},
    ]}}))
    .unwrap();
    let mut spec = spec(json!([]));
    spec.transforms = vec![query];
    let batches = [batch(0, BATCH_ROWS)];
    let rows = RecordBatchIterator::new(good(&batches), batches[0].schema());
    let flow = Flow::of_batches(spec, vec![], Box::new(rows)).unwrap();
    let reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let found: Vec<String> = std::thread::scope(|scope| {
        let answering = scope.spawn(|| {
            let mut windows = 0;
            while let Some(window) = flow.next_window() {
                assert!(window.rows.num_rows() <= 8_192);
                windows += 1;
                let numbers = window.rows.project(&[window.rows.num_columns() - 1]).unwrap();
                window.answer(Ok(vec![numbers]));
            }
            windows
        });
        let found = reader.flat_map(|batch| values(&batch.unwrap())).collect();
        join(&flow);
        assert_eq!(answering.join().unwrap(), 3);
        found
    });
    assert!(found == (0..BATCH_ROWS).map(row).collect::<Vec<_>>());
    assert_eq!(join(&flow).slices[0].transforms[0].matched, BATCH_ROWS);
}
