//! Transforms in front of a union: the rows of each source go through its own before they go on together.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch, UInt32Array};
use headrace_engine::report::{FlowReport, LocatedReject, Status};
use headrace_engine::spec::{CommittedSlice, DestinationSpec, FlowSpec, RowsOf, SinkSpec};
use headrace_engine::{BatchReader, Failure, FailureKind, Flow, Window};
use headrace_types::ErrorKind;
use serde_json::{Value, json};

use crate::support::{Job, join, sorted};
use crate::union::{FIRST, ROWS, jobs, second_rows, spec};

/// What a transform says of a row: the number of an output, or a value; none to leave it out, or why it fails.
type Said = Result<Option<i64>, &'static str>;

const PARTED: usize = 0;
const DOUBLED: usize = 1;
const CHOSEN: usize = 3;
const LAST: usize = 4;

fn say(transform: usize, id: i64) -> Said {
    match transform {
        PARTED if id % 50 == 9 => Err("it cannot be parted"),
        PARTED => Ok(Some(id % 3)),
        DOUBLED if id % 10 == 1 => Ok(None),
        DOUBLED => Ok(Some(2 * id)),
        CHOSEN if id % 40 == 7 => Err("it cannot be chosen"),
        // Whole batches are left out.
        CHOSEN if id % 6 == 0 || (1300..1700).contains(&id) => Ok(None),
        CHOSEN => Ok(Some(3 * id)),
        LAST if id % 100 == 13 => Err("it is the last"),
        LAST if id % 4 == 0 => Ok(None),
        _ => Ok(Some(id)),
    }
}

/// What becomes of a row: what it has for `twice`, whether it is left out, or why it is a reject, of the union, and behind it.
fn of_union(id: i64) -> Result<Option<Option<i64>>, &'static str> {
    if id >= FIRST as i64 {
        return say(CHOSEN, id).map(|said| said.map(Some));
    }
    match say(PARTED, id)? {
        Some(0) => Ok(Some(None)),
        Some(1) => say(DOUBLED, id).map(|said| said.map(Some)),
        _ => Ok(None),
    }
}

fn behind(id: i64) -> Result<Option<Option<i64>>, &'static str> {
    let Some(twice) = of_union(id)? else { return Ok(None) };
    Ok(say(LAST, id)?.map(|_| twice))
}

fn shown(id: i64, twice: Option<i64>) -> String {
    let twice = twice.map_or("-".to_owned(), |twice| twice.to_string());
    format!("{id}|name {}|{twice}", "n".repeat(id as usize % 23))
}

/// All rows of which `become` says that they go on.
fn wanted(become_of: fn(i64) -> Result<Option<Option<i64>>, &'static str>) -> Vec<String> {
    let row = |id: i64| become_of(id).ok().flatten().map(|twice| shown(id, twice));
    sorted((0..ROWS as i64).filter_map(row).collect())
}

fn answer(window: Window) {
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
            Err(text) => return window.answer(Err(Failure { kind: FailureKind::Row, text: text.to_owned() })),
        }
    }
    let column: ArrayRef = match window.transform {
        PARTED => Arc::new(Int32Array::from_iter_values(values.iter().map(|value| *value as i32))),
        _ => Arc::new(Int64Array::from(values)),
    };
    let numbers: ArrayRef = Arc::new(UInt32Array::from(kept));
    let answer = match window.transform {
        LAST => RecordBatch::try_from_iter([("1", numbers)]),
        _ => RecordBatch::try_from_iter([("0", column), ("1", numbers)]),
    };
    window.answer(Ok(vec![answer.unwrap()]));
}

pub fn column(name: &str, kind: &str, nullable: bool) -> Value {
    json!({"name": name, "type": {"kind": kind}, "nullable": nullable})
}

pub fn passing(name: &str, kind: &str, nullable: bool) -> Value {
    let mut own = column(name, kind, nullable);
    own["from"] = json!(name);
    own
}

pub fn of(transform: impl Into<Option<usize>>, output: usize) -> Value {
    json!({"transform": transform.into(), "output": output})
}

fn query(name: &str, source: Option<usize>, input: Value, twice: Value) -> Value {
    let columns = [twice, passing("id", "int64", false), passing("name", "string", true)];
    json!({"name": name, "source": source, "inputs": [input], "query": {"number": "row", "columns": columns}})
}

/// The first source is parted, a part of it computed, and brought together again; the second one goes through a query; behind the union
/// all rows go through another one.
fn transforms() -> Value {
    let columns = [column("id", "int64", false), column("name", "string", true), column("twice", "int64", true)];
    let from = json!([["id", "name", null], ["id", "name", "twice"]]);
    let computed = column("twice", "int64", true);
    json!([
        {"name": "parted", "source": 0, "inputs": [of(None, 0)], "split": {"number": "row", "outputs": 3}},
        query("doubled", Some(0), of(PARTED, 1), computed.clone()),
        {"name": "whole", "source": 0, "inputs": [of(PARTED, 0), of(DOUBLED, 0)],
            "reunion": {"columns": columns, "from": from}},
        query("chosen", Some(1), of(None, 0), computed),
        query("last", None, of(None, 0), passing("twice", "int64", true)),
    ])
}

fn with_fronts(jobs: &[Job; 2]) -> FlowSpec {
    let mut spec = spec(jobs);
    let union = spec.union.as_mut().unwrap();
    union.columns = serde_json::from_value(json!([
        column("id", "int64", false),
        column("name", "string", true),
        column("twice", "int64", true),
    ]))
    .unwrap();
    union.inputs = serde_json::from_value(json!([of(2, 0), of(CHOSEN, 0)])).unwrap();
    union.sources[0].places = vec![Some(0), Some(1), Some(2)];
    union.sources[1].places = vec![Some(1), Some(2), Some(0)];
    spec.transforms = serde_json::from_value(transforms()).unwrap();
    spec.sink = sink();
    spec.rejects.limit = Some(10_000);
    spec
}

fn sink() -> SinkSpec {
    SinkSpec::Arrow { columns: ["id", "name", "twice"].map(str::to_owned).to_vec(), position: None, place_column: None }
}

fn texts(batch: &RecordBatch) -> Vec<String> {
    let [ids, twices] = [0, 2].map(|column| batch.column(column).as_primitive::<Int64Type>());
    let names = batch.column(1).as_string_view();
    let row = |row: usize| {
        let twice = twices.is_valid(row).then(|| twices.value(row).to_string());
        format!("{}|{}|{}", ids.value(row), names.value(row), twice.unwrap_or("-".to_owned()))
    };
    (0..batch.num_rows()).map(row).collect()
}

fn run(spec: FlowSpec) -> (Vec<Vec<String>>, FlowReport) {
    let (streams, destinations) = (spec.streams, spec.destinations());
    let flow = Flow::new(spec).unwrap();
    let readers: Vec<BatchReader> = (0..destinations).map(|own| flow.take_reader_of(own).unwrap()).collect();
    let found = std::thread::scope(|scope| {
        for _ in 0..streams {
            scope.spawn(|| {
                while let Some(window) = flow.next_window() {
                    answer(window);
                }
            });
        }
        let consume = |reader: BatchReader| reader.map_while(Result::ok).flat_map(|batch| texts(&batch)).collect();
        let consumers: Vec<_> =
            readers.into_iter().map(|reader| scope.spawn(move || sorted(consume(reader)))).collect();
        flow.start().unwrap();
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect()
    });
    let report = join(&flow);
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    (found, report)
}

/// The id of the row at the place of a reject.
pub fn id_at(reject: &LocatedReject) -> i64 {
    let text = std::fs::read_to_string(&reject.file).unwrap();
    let row = text.lines().nth(reject.row as usize - 1).unwrap();
    assert!(text[reject.row_byte as usize..].starts_with(row));
    let id = if row.contains('|') { row.split('|').next() } else { row.split(';').nth(3) };
    id.unwrap().parse().unwrap()
}

fn told(job: &Job) -> Vec<(i64, String)> {
    let mut told: Vec<_> = job.reject_lines().iter().map(|own| (id_at(own), own.message.clone())).collect();
    told.sort();
    told
}

pub fn both(streams: usize) -> [Job; 2] {
    jobs(&[&second_rows(FIRST, 1500), &second_rows(1500, ROWS)], streams)
}

#[test]
fn each_source_goes_through_its_own_transforms() {
    let refused: Vec<_> = (0..ROWS as i64)
        .filter_map(|id| {
            let name =
                [["parted", "chosen"][usize::from(id >= FIRST as i64)], "last"][usize::from(of_union(id).is_ok())];
            behind(id).err().map(|text| (id, format!("transform `{name}`: {text}")))
        })
        .collect();
    assert!(refused.iter().any(|own| own.1.contains("last")) && refused.len() > 50);
    for streams in [1, 16] {
        let jobs = both(streams);
        let (found, report) = run(with_fronts(&jobs));
        assert!(found[0] == wanted(behind), "{streams} streams");
        assert_eq!(told(&jobs[0]), refused);
        let mut counts = [[0; 4]; 5];
        for slice in &report.slices {
            assert_eq!(slice.rows, slice.out + slice.filtered + slice.rejected, "{slice:?}");
            for (place, own) in slice.transforms.iter().enumerate() {
                let is_second = slice.file > 1;
                assert!(own.rows == 0 || place == LAST || (place == CHOSEN) == is_second, "{place}");
                let own = [own.rows, own.matched, own.filtered, own.rejected];
                counts[place].iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            }
        }
        let of_first = |output: i64| (0..FIRST as i64).filter(|id| say(PARTED, *id) == Ok(Some(output))).count() as u64;
        assert_eq!(counts[PARTED], [FIRST, of_first(0), 0, FIRST / 50]);
        assert_eq!(counts[DOUBLED][0], of_first(1));
        assert_eq!(counts[2][0], of_first(0) + counts[DOUBLED][1]);
        assert_eq!(counts[CHOSEN][0], ROWS - FIRST);
        assert_eq!(counts[LAST][0], counts[2][1] + counts[CHOSEN][1]);
        assert_eq!(counts[LAST][1], found[0].len() as u64);
    }
}

#[test]
fn fronts_stand_on_the_way_to_every_destination() {
    for streams in [1, 16] {
        let jobs = both(streams);
        let mut spec = with_fronts(&jobs);
        let not_null = json!([column("twice", "int64", false)]);
        let other = json!({"name": "other", "input": of(None, 0), "fit": not_null, "sink": {"kind": "null"}});
        let other: DestinationSpec = serde_json::from_value(other).unwrap();
        spec.others = vec![DestinationSpec { sink: sink(), ..other }];
        spec.input = Some(RowsOf { transform: Some(LAST), output: 0 });
        spec.rejects.tell_destinations = true;
        spec.destination = "first".to_owned();
        let (found, report) = run(spec.clone());
        let is_whole = |line: &&String| !line.ends_with('-');
        let of_other: Vec<_> = wanted(of_union).iter().filter(is_whole).cloned().collect();
        assert!(found == [wanted(behind), of_other], "{streams} streams");
        let mut sums = [[0; 3]; 2];
        for slice in &report.slices {
            for (own, sum) in slice.destinations.iter().zip(&mut sums) {
                assert_eq!(slice.rows, own.out + own.filtered + own.rejected, "{slice:?}");
                sum.iter_mut().zip([own.out, own.filtered, own.rejected]).for_each(|(sum, own)| *sum += own);
            }
        }
        let all = 0..ROWS as i64;
        assert_eq!(sums[0][1], all.clone().filter(|id| behind(*id) == Ok(None)).count() as u64);
        assert_eq!(sums[1][1], all.clone().filter(|id| of_union(*id) == Ok(None)).count() as u64);
        assert_eq!(sums[0][2], all.clone().filter(|id| behind(*id).is_err()).count() as u64);
        let lacks = |id: i64| of_union(id).is_err() || of_union(id) == Ok(Some(None));
        assert_eq!(sums[1][2], all.filter(|id| lacks(*id)).count() as u64);
        for reject in jobs[0].reject_lines() {
            let id = id_at(&reject);
            let lacking = [behind(id).is_err().then_some("first"), lacks(id).then_some("other")];
            let lacking: Vec<String> = lacking.into_iter().flatten().map(str::to_owned).collect();
            assert_eq!(reject.destinations, Some(lacking), "{reject:?}");
            if of_union(id) == Ok(Some(None)) && behind(id).is_ok() {
                // The front has made the column: it stands in no file.
                assert_eq!(reject.column, None);
                assert_eq!(reject.message, "no value for column `twice`, which is NOT NULL in destination `other`");
            }
        }

        // What the first one has committed is the same when it is read again.
        let known = |slice: &headrace_engine::report::SliceReport| {
            let own = slice.destinations[0];
            let (loaded, rejected, filtered, skipped) = (own.out, own.rejected, own.filtered, slice.skipped);
            (slice.number, CommittedSlice { loaded, rejected, filtered, skipped, ..CommittedSlice::default() })
        };
        spec.source.committed = report.slices.iter().map(known).collect();
        let (again, resumed) = run(spec);
        assert!(again[0].is_empty() && again[1] == found[1]);
        let counts = |report: &FlowReport| report.slices.iter().map(|own| own.transforms.clone()).collect::<Vec<_>>();
        assert_eq!(counts(&resumed), counts(&report));
    }
}

#[test]
fn a_source_without_a_front_keeps_what_its_parser_gives() {
    let jobs = both(3);
    let mut spec = with_fronts(&jobs);
    let parted =
        json!({"name": "parted", "source": 1, "inputs": [of(None, 0)], "split": {"number": "row", "outputs": 3}});
    spec.transforms = serde_json::from_value(json!([parted])).unwrap();
    let union = spec.union.as_mut().unwrap();
    union.inputs = vec![RowsOf::FIRST, RowsOf { transform: Some(0), output: 2 }];
    union.sources[0].places = vec![Some(0), Some(1), None];
    union.sources[1].places = vec![Some(3), Some(0), None];
    let (found, report) = run(spec);
    let row = |id: i64| (id < FIRST as i64 || say(PARTED, id) == Ok(Some(2))).then(|| shown(id, None));
    assert!(found[0] == sorted((0..ROWS as i64).filter_map(row).collect()));
    assert!(report.slices.iter().all(|own| own.file > 1 || own.filtered + own.rejected == 0));
}

#[test]
fn fronts_that_do_not_fit_are_refused() {
    let jobs = both(2);
    type Change = fn(&mut FlowSpec);
    fn rows(transform: impl Into<Option<usize>>, output: usize) -> RowsOf {
        RowsOf { transform: transform.into(), output }
    }
    let other_side = "the rows of transform `doubled` are read on the other side of a join or union";
    let changes: [(Change, &str); 10] = [
        (|spec| spec.union = None, "transform `parted` stands in front of a source that is not there"),
        (|spec| spec.transforms[CHOSEN].source = Some(2), "`chosen` stands in front of a source that is not there"),
        (|spec| spec.transforms[LAST].source = Some(1), "transform `last`: its rows have no column `twice`"),
        (|spec| spec.transforms[PARTED].source = None, "transform `doubled` in front of a source stands behind others"),
        (|spec| spec.union.as_mut().unwrap().inputs.truncate(1), "1 inputs are not those of 2 sources"),
        (|spec| spec.union.as_mut().unwrap().inputs[1] = rows(DOUBLED, 0), other_side),
        (|spec| spec.transforms[CHOSEN].inputs = vec![rows(DOUBLED, 0)], other_side),
        (|spec| spec.transforms[LAST].inputs = vec![rows(DOUBLED, 0)], other_side),
        (|spec| spec.input = Some(rows(DOUBLED, 0)), other_side),
        (|spec| spec.union.as_mut().unwrap().inputs[0] = rows(7, 0), "transform 7 is read before it has any rows"),
    ];
    for (number, (change, expected)) in changes.into_iter().enumerate() {
        let mut spec = with_fronts(&jobs);
        change(&mut spec);
        let error = Flow::new(spec).err().unwrap();
        assert!(error.kind == ErrorKind::Specification && error.what.contains(expected), "{number}: {error:?}");
    }
}
