//! Several destinations of one pass: each gets the rows of its way, whatever the streams, and its accounts are those of a plain flow.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{Int32Array, RecordBatch, UInt32Array};
use headrace_engine::report::{DestinationCounts, FlowReport, Status};
use headrace_engine::spec::{CommittedSlice, DestinationSpec, FlowSpec, RowsOf, SinkSpec};
use headrace_engine::{BatchReader, Failure, FailureKind, Flow, Window};
use headrace_types::ErrorKind;
use serde_json::{Value, json};

use crate::support::{Job, join, layout, rows, sorted, values};

const ROWS: i64 = 2000;

fn arrow() -> SinkSpec {
    let columns = layout().columns.iter().map(|column| column.name.clone()).collect();
    SinkSpec::Arrow { columns, position: None, place_column: None }
}

fn destination(value: Value) -> DestinationSpec {
    let sink = json!({"kind": "null"});
    let mut value = value;
    value["sink"] = value.get("sink").cloned().unwrap_or(sink);
    value["name"] = json!("other");
    serde_json::from_value(value).unwrap()
}

/// A job of many small slices, or of one.
fn job(streams: usize) -> Job {
    let mut job = Job::of(rows(0, ROWS as u64));
    (job.streams, job.slice_bytes) = (streams, if streams == 1 { 1 << 30 } else { 2500 });
    job.memory.blocks = 3 * streams + 8;
    job
}

/// The split of a window by the id of each row: `output` says where it goes, or why it fails.
fn answer(window: Window, output: impl Fn(i64) -> Result<i32, &'static str>) {
    let id = window.rows.column(0).as_primitive::<Int64Type>();
    let number = window.rows.column(window.rows.num_columns() - 1).as_primitive::<UInt32Type>();
    let outputs: Result<Vec<i32>, _> = id.values().iter().map(|id| output(*id)).collect();
    let answer = match outputs {
        Ok(outputs) => RecordBatch::try_from_iter([
            ("0", Arc::new(Int32Array::from(outputs)) as arrow_array::ArrayRef),
            ("1", Arc::new(UInt32Array::from(number.values().to_vec()))),
        ])
        .map(|batch| vec![batch])
        .map_err(|error| Failure { kind: FailureKind::Other, text: error.to_string() }),
        Err(text) => Err(Failure { kind: FailureKind::Row, text: text.to_owned() }),
    };
    window.answer(answer);
}

/// Runs a flow whose destinations are merged streams; what each has got, sorted.
fn run(spec: FlowSpec, output: impl Fn(i64) -> Result<i32, &'static str> + Sync) -> (Vec<Vec<String>>, FlowReport) {
    let (streams, destinations) = (spec.streams, spec.destinations());
    let flow = Flow::new(spec).unwrap();
    let readers: Vec<BatchReader> = (0..destinations).map(|own| flow.take_reader_of(own).unwrap()).collect();
    let found = std::thread::scope(|scope| {
        for _ in 0..streams {
            scope.spawn(|| {
                while let Some(window) = flow.next_window() {
                    answer(window, &output);
                }
            });
        }
        let consume = |reader: BatchReader| {
            let mut all = Vec::new();
            for batch in reader.map_while(Result::ok) {
                all.extend(values(&batch));
            }
            sorted(all)
        };
        let consumers: Vec<_> = readers.into_iter().map(|reader| scope.spawn(move || consume(reader))).collect();
        flow.start().unwrap();
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect()
    });
    (found, join(&flow))
}

fn lines(ids: impl Iterator<Item = i64>) -> Vec<String> {
    sorted(ids.map(|id| crate::support::row(id as u64)).collect())
}

/// The sums of a destination over all slices, each of which has balanced.
fn counts(report: &FlowReport, number: usize) -> DestinationCounts {
    let mut sum = DestinationCounts::default();
    for slice in &report.slices {
        let own = slice.destinations[number];
        assert_eq!(slice.rows, own.out + own.filtered + own.rejected, "{slice:?}");
        sum.out += own.out;
        sum.rejected += own.rejected;
        sum.filtered += own.filtered;
        sum.refused_at_end += own.refused_at_end;
    }
    sum
}

fn split(outputs: usize) -> Value {
    json!([{"name": "parted", "split": {"number": "row", "outputs": outputs}}])
}

#[test]
fn two_destinations_share_the_rows_of_the_source() {
    for streams in [1, 16] {
        let job = job(streams).arrow();
        let mut spec = job.plan().unwrap();
        let input = RowsOf { transform: None, output: 0 };
        spec.others = {
            let name = "other".to_owned();
            vec![DestinationSpec {
                name,
                input,
                input_source: None,
                fit: vec![],
                routing: None,
                sink: arrow(),
                committed: HashMap::new(),
                left_out: HashSet::new(),
            }]
        };
        let (found, report) = run(spec, |_| Ok(0));
        assert_eq!(report.status, Status::Ok, "{:?}", report.error);
        assert_eq!(found, [lines(0..ROWS), lines(0..ROWS)]);
        for number in [0, 1] {
            let all = DestinationCounts { out: ROWS as u64, ..DestinationCounts::default() };
            assert_eq!(counts(&report, number), all);
            assert_eq!(report.destinations[number].sink.rows, ROWS as u64);
        }
        assert_eq!(report.sink.rows, 2 * ROWS as u64);
    }
}

#[test]
fn a_split_sends_each_row_to_one_output_and_a_row_that_fails_is_a_reject_of_all() {
    let output = |id: i64| if id == 77 { Err("it cannot be compared") } else { Ok((id % 4).min(2) as i32) };
    for streams in [1, 16] {
        let job = Job { limit: 5, ..job(streams).arrow() };
        let mut spec = job.plan().unwrap();
        spec.transforms = serde_json::from_value(split(3)).unwrap();
        spec.input = Some(RowsOf { transform: Some(0), output: 2 });
        let sink = json!({"kind": "arrow", "columns": ["id", "name", "amount", "day"]});
        spec.others = vec![destination(json!({"input": {"transform": 0, "output": 0}, "sink": sink}))];
        let (found, report) = run(spec, output);
        assert_eq!(report.status, Status::Ok, "{:?}", report.error);
        let ids = |wanted: fn(i64) -> bool| (0..ROWS).filter(move |id| *id != 77 && wanted(id % 4));
        assert_eq!(found, [lines(ids(|part| part >= 2)), lines(ids(|part| part == 0))]);
        let [rest, first, second] = [1000, 500, 499];
        let own = |out, filtered| DestinationCounts { out, filtered, rejected: 1, ..DestinationCounts::default() };
        assert_eq!(counts(&report, 0), own(rest, first + second));
        assert_eq!(counts(&report, 1), own(first, rest + second));
        let sum = report.slices.iter().fold([0; 5], |sum, slice| {
            let own = &slice.transforms[0];
            let output = |place: usize| own.outputs.get(place).copied().unwrap_or_default();
            [sum[0] + own.rows, sum[1] + own.matched, sum[2] + output(0), sum[3] + output(1), sum[4] + own.rejected]
        });
        assert_eq!(sum, [ROWS as u64, first, second, rest, 1]);
        assert_eq!(
            (report.rejects.count, &report.rejects.by_rule),
            (1, &BTreeMap::from([("expression".to_owned(), 1)]))
        );
    }
}

#[test]
fn what_a_destination_cannot_hold_is_a_reject_of_its_way_and_one_row_is_one_reject() {
    let mut job = Job { limit: 5000, ..job(3) };
    job.layout.columns[1].nullable = true;
    let mut spec = job.plan().unwrap();
    let narrow = |length: u32| json!({"name": "name", "type": {"kind": "varchar", "length": length}, "nullable": true});
    let day = json!({"name": "day", "type": {"kind": "date"}, "nullable": false});
    spec.destination = "one".to_owned();
    spec.fit = serde_json::from_value(json!([narrow(20)])).unwrap();
    spec.others = vec![
        destination(json!({"input": {"transform": null}, "fit": [narrow(10), day]})),
        destination(json!({"input": {"transform": null}})),
    ];
    let flow = Flow::new(spec).unwrap();
    flow.start().unwrap();
    let report = join(&flow);
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    let long = |id: i64, most: i64| 5 + id % 23 > most; // "name nnn"
    let count = |bad: &dyn Fn(i64) -> bool| (0..ROWS).filter(|id| bad(*id)).count() as u64;
    let first = count(&|id| long(id, 20));
    let second = count(&|id| long(id, 10) || id % 7 == 0);
    let own = |rejected| {
        let out = ROWS as u64 - rejected;
        DestinationCounts { out, rejected, refused_at_end: rejected, ..DestinationCounts::default() }
    };
    assert_eq!([0, 1, 2].map(|number| counts(&report, number)), [own(first), own(second), own(0)]);
    assert_eq!(report.rejects.count, second, "all that the first refuses, the second refuses, too");
    let said: Vec<_> = report.rejects.by_column.iter().map(|kind| kind.first[0].message.as_str()).collect();
    assert_eq!(
        said,
        [
            "a value for column `name` (2) is longer than varchar(10) of destination `other`",
            "no value for column `day` (4), which is NOT NULL in destination `other`",
        ]
    );
    let nulls = count(&|id| id % 7 == 0 && !long(id, 10));
    assert_eq!(report.rejects.by_rule.get("null_not_allowed"), Some(&nulls), "what was found first is told");
    let out = report.destinations[1].columns.as_ref().unwrap();
    assert_eq!((out[3].rows, out[3].nulls, out[1].max_length), (ROWS as u64 - second, 0, Some(10)));
}

#[test]
fn a_slice_that_some_destinations_have_is_sent_to_the_others() {
    let mut job = Job { limit: 5, ..job(4).arrow() };
    job.layout.columns[0].nullable = true;
    let known = |loaded: u64| CommittedSlice { loaded, ..CommittedSlice::default() };
    let plain = job.plan().unwrap();
    let counted = {
        let flow = Flow::new(FlowSpec { sink: SinkSpec::Null, ..job.plan().unwrap() }).unwrap();
        flow.start().unwrap();
        join(&flow).slices.iter().map(|slice| (slice.number, slice.rows)).collect::<HashMap<_, _>>()
    };
    let committed = |numbers: &[u32]| numbers.iter().map(|number| (*number, known(counted[number]))).collect();
    let mut spec = plain;
    spec.source.committed = committed(&[1, 2, 3]);
    let sink = json!({"kind": "arrow", "columns": ["id", "name", "amount", "day"]});
    let mut other = destination(json!({"input": {"transform": null}, "sink": sink}));
    other.committed = committed(&[2, 4]);
    spec.others = vec![other];
    let (found, report) = run(spec.clone(), |_| Ok(0));
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    let rows_of = |numbers: &[u32]| numbers.iter().map(|number| counted[number]).sum::<u64>();
    let all = ROWS as u64;
    assert_eq!(
        found.iter().map(|own| own.len() as u64).collect::<Vec<_>>(),
        [all - rows_of(&[1, 2, 3]), all - rows_of(&[2, 4])]
    );
    for slice in &report.slices {
        let is_in = |numbers: &[u32]| numbers.contains(&slice.number);
        assert_eq!(
            slice.destinations.iter().map(|own| own.committed).collect::<Vec<_>>(),
            [is_in(&[1, 2, 3]), is_in(&[2, 4])]
        );
        assert_eq!((slice.committed, slice.stream.is_none()), (is_in(&[2]), is_in(&[2])), "the others are read");
        assert!(slice.destinations.iter().all(|own| own.out == slice.rows));
    }

    // What was committed is compared with what is read now.
    spec.source.committed.insert(1, known(counted[&1] - 1));
    spec.destination = "first".to_owned();
    let (_, report) = run(spec, |_| Ok(0));
    let error = report.error.unwrap();
    assert_eq!(error.destination.as_deref(), Some("first"), "whoever explains it has to know whose rows they are");
    assert_eq!(
        (error.kind, error.what.as_str()),
        (ErrorKind::Internal, "slice 1 has other rows than when an earlier attempt committed it")
    );
}

#[test]
fn a_slice_is_sent_to_the_destinations_that_take_it() {
    let mut job = Job { limit: 1000, ..job(4).arrow() };
    job.layout.columns[0].nullable = true;
    let counted: HashMap<u32, u64> = {
        let flow = Flow::new(FlowSpec { sink: SinkSpec::Null, ..job.plan().unwrap() }).unwrap();
        flow.start().unwrap();
        join(&flow).slices.iter().map(|slice| (slice.number, slice.rows)).collect()
    };
    let mut spec = job.plan().unwrap();
    // Rows of a slice that nobody else takes do not pass what leads to the others only.
    spec.transforms = serde_json::from_value(split(2)).unwrap();
    spec.input = Some(RowsOf::FIRST);
    spec.destination = "all".to_owned();
    spec.source.left_out = HashSet::from([1]);
    spec.rejects.tell_destinations = true;
    let sink = json!({"kind": "arrow", "columns": ["id", "name", "amount", "day"]});
    let mut other = destination(json!({"input": {"transform": 0, "output": 1}, "sink": sink}));
    other.left_out = HashSet::from([2, 3]);
    spec.others = vec![other];
    let asked = std::sync::Mutex::new(HashSet::new());
    let (found, report) = run(spec, |id| {
        asked.lock().unwrap().insert(id);
        if id % 10 == 0 { Err("bad") } else { Ok(1) }
    });
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    let without = |numbers: &[u32]| ROWS as u64 - numbers.iter().map(|number| counted[number]).sum::<u64>();
    assert_eq!(found[0].len() as u64, without(&[1]));
    assert_eq!(asked.into_inner().unwrap().len() as u64, without(&[2, 3]));
    for slice in &report.slices {
        let [all, parted] = slice.destinations[..] else { panic!("two destinations") };
        let rows = |own: DestinationCounts| own.out + own.filtered + own.rejected;
        assert_eq!(rows(all), if slice.number == 1 { 0 } else { slice.rows }, "{slice:?}");
        assert_eq!(rows(parted), if [2, 3].contains(&slice.number) { 0 } else { slice.rows }, "{slice:?}");
        assert_eq!((all.rejected, parted.rejected), (0, slice.rejected));
    }
    assert_eq!(report.rejects.first[0].destinations.as_deref(), Some(&["other".to_owned()][..]));
}

#[test]
fn sixteen_streams_end_with_few_blocks_and_a_destination_that_gets_nothing() {
    let mut job = job(16).arrow();
    job.memory.blocks = 17;
    let mut spec = job.plan().unwrap();
    spec.transforms = serde_json::from_value(split(2)).unwrap();
    spec.input = Some(RowsOf { transform: Some(0), output: 1 });
    let sink = json!({"kind": "arrow", "columns": ["id", "name", "amount", "day"]});
    spec.others = vec![destination(json!({"input": {"transform": 0, "output": 0}, "sink": sink}))];
    let (found, report) = run(spec, |_| Ok(0));
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [0, ROWS as usize]);
}

#[test]
fn a_stream_that_has_told_an_error_is_known() {
    let mut spec = job(1).arrow().plan().unwrap();
    let sink = json!({"kind": "arrow", "columns": ["id", "name", "amount", "day"]});
    spec.others = vec![destination(json!({"input": {"transform": null}, "sink": sink}))];
    let flow = Flow::new(spec).unwrap();
    let mut second = flow.take_reader_of(1).unwrap();
    flow.cancel("enough");
    assert!(!flow.has_stream_failed(1), "nobody has asked");
    assert!(second.next().is_some_and(|batch| batch.is_err()));
    assert_eq!([0, 1, 2].map(|number| flow.has_stream_failed(number)), [false, true, false]);
}

#[test]
fn rows_that_come_from_nowhere_are_refused() {
    let refused = |change: &dyn Fn(&mut FlowSpec)| {
        let job = job(1);
        let mut spec = job.plan().unwrap();
        spec.transforms = serde_json::from_value(split(2)).unwrap();
        change(&mut spec);
        Flow::new(spec).err().unwrap().what
    };
    let to = |transform: Option<usize>, output: usize| RowsOf { transform, output };
    assert_eq!(refused(&|spec| spec.input = Some(to(Some(0), 2))), "flow test: there is no output 2 of 2");
    assert_eq!(
        refused(&|spec| spec.input = Some(to(Some(1), 0))),
        "flow test: transform 1 is read before it has any rows"
    );
    assert_eq!(
        refused(&|spec| spec.transforms[0].inputs = vec![to(Some(0), 0)]),
        "flow test: transform 0 is read before it has any rows"
    );
    let wide = json!([{"name": "name", "type": {"kind": "int32"}, "nullable": true}]);
    assert_eq!(
        refused(&|spec| spec.fit = serde_json::from_value(wide.clone()).unwrap()),
        "flow test: destination 0: column `name` is of another type than that which fits"
    );
}
