//! Destinations in front of a union: they get rows of one source alone, in the same pass.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch, UInt32Array};
use headrace_engine::report::{DestinationCounts, FlowReport, SliceReport, Status};
use headrace_engine::spec::{CommittedSlice, FlowSpec, RowsOf};
use headrace_engine::{BatchReader, Failure, FailureKind, Flow, Window};
use headrace_types::ErrorKind;
use serde_json::{Value, json};

use crate::fronts::{both, column, id_at, of, passing};
use crate::support::{Job, join};
use crate::union::{FIRST, ROWS, spec};

/// What a transform says of a row by its number: an output, or 0 to let it pass; none to leave it out, or why it fails.
pub type Said = Result<Option<i32>, &'static str>;

/// What has become of a row on the way to a destination: whether it goes there, or by whom it was refused.
pub type Became = Result<bool, &'static str>;

const PARTED: usize = 0;
const STRAYS: usize = 1;
const CHECKED: usize = 2;

fn say(transform: usize, id: i64) -> Said {
    match transform {
        PARTED if id % 50 == 9 => Err("parted"),
        PARTED => Ok(Some((id % 3) as i32)),
        STRAYS if id % 40 == 11 => Err("strays"),
        // Whole batches are left out.
        STRAYS => Ok((id % 10 != 5 && !(300..700).contains(&id)).then_some(0)),
        CHECKED if id % 70 == 3 => Err("checked"),
        CHECKED => Ok((id % 9 != 4 && !(1300..1700).contains(&id)).then_some(0)),
        _ if id % 100 == 13 => Err("last"),
        _ => Ok((id % 4 != 0).then_some(0)),
    }
}

/// The destinations in their order, and the source whose rows they get, if it is one alone.
const DESTINATIONS: [(&str, Option<usize>); 7] = [
    ("checked", Some(1)),
    ("last", None),
    ("strays", Some(0)),
    ("days", Some(0)),
    ("raw", Some(1)),
    ("all", None),
    ("old", Some(0)),
];

/// None if the row is of another source.
fn became(destination: usize, id: i64) -> Option<Became> {
    let (name, source) = DESTINATIONS[destination];
    let own = usize::from(id >= FIRST as i64);
    if source.is_some_and(|source| source != own) {
        return None;
    }
    let goes = |said: Said| said.map(|said| said.is_some());
    let parted = |output: i32| say(PARTED, id).map(|said| said == Some(output));
    let in_union = if own == 1 { Ok(true) } else { parted(0) };
    Some(match name {
        "checked" => goes(say(CHECKED, id)),
        "last" => in_union.and_then(|goes_in| if goes_in { goes(say(3, id)) } else { Ok(false) }),
        "all" => in_union,
        "strays" => parted(2).and_then(|is_own| if is_own { goes(say(STRAYS, id)) } else { Ok(false) }),
        "days" => parted(1).and_then(|is_own| if is_own && id % 7 == 0 { Err("no day") } else { Ok(is_own) }),
        _ if id >= 2000 => Err("no partition"),
        _ => Ok(true),
    })
}

/// Answers a window by what `say` says of the numbers of its rows, which `key` of their columns has.
pub fn answer(window: Window, key: &str, is_split: bool, say: impl Fn(Option<i64>) -> Said) {
    let rows = &window.rows;
    let own = rows.column(rows.schema().index_of(key).unwrap());
    let number = |row: usize| match own.as_primitive_opt::<Int64Type>() {
        Some(wide) => wide.value(row),
        None => own.as_primitive::<Int32Type>().value(row).into(),
    };
    let said: Result<Vec<_>, _> = (0..rows.num_rows()).map(|row| say(own.is_valid(row).then(|| number(row)))).collect();
    let said = match said {
        Ok(said) => said,
        Err(text) => return window.answer(Err(Failure { kind: FailureKind::Row, text: text.to_owned() })),
    };
    let numbers = rows.column(rows.num_columns() - 1).as_primitive::<UInt32Type>().values().iter();
    let kept = numbers.zip(&said).filter(|(_, said)| said.is_some()).map(|(number, _)| *number);
    let kept: ArrayRef = Arc::new(UInt32Array::from_iter_values(kept));
    let outputs: ArrayRef = Arc::new(Int32Array::from_iter_values(said.iter().filter_map(|said| *said)));
    let columns = if is_split { vec![("0", outputs), ("1", kept)] } else { vec![("1", kept)] };
    window.answer(Ok(vec![RecordBatch::try_from_iter(columns).unwrap()]));
}

/// Runs a flow whose destinations are merged streams; what each has got, sorted.
pub fn run<Row: Ord + Send>(
    spec: FlowSpec,
    answer: impl Fn(Window) + Sync,
    rows_of: impl Fn(usize, &RecordBatch) -> Vec<Row> + Sync,
) -> (Vec<Vec<Row>>, FlowReport) {
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
        let rows_of = &rows_of;
        let consume = move |(number, reader): (usize, BatchReader)| {
            let mut rows: Vec<Row> = reader.map_while(Result::ok).flat_map(|batch| rows_of(number, &batch)).collect();
            rows.sort();
            rows
        };
        let consumers: Vec<_> = readers.into_iter().enumerate().map(|own| scope.spawn(move || consume(own))).collect();
        flow.start().unwrap();
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect()
    });
    (found, join(&flow))
}

/// What a destination has of a slice, as an earlier attempt may have committed it.
pub fn known(
    report: &FlowReport,
    destination: usize,
    takes: impl Fn(&SliceReport) -> bool,
) -> HashMap<u32, CommittedSlice> {
    let of = |slice: &SliceReport| {
        let DestinationCounts { out: loaded, rejected, filtered, .. } = slice.destinations[destination];
        (
            slice.number,
            CommittedSlice { loaded, rejected, filtered, skipped: slice.skipped, ..CommittedSlice::default() },
        )
    };
    report.slices.iter().filter(|slice| takes(slice)).map(of).collect()
}

/// The flow with one destination after the other.
pub fn with_destinations(spec: &mut FlowSpec, destinations: &[Value]) {
    let mut all = destinations.iter().map(|own| serde_json::from_value(own.clone()).unwrap());
    let first: headrace_engine::spec::DestinationSpec = all.next().unwrap();
    (spec.destination, spec.input, spec.input_source) = (first.name, Some(first.input), first.input_source);
    (spec.fit, spec.routing, spec.sink) = (first.fit, first.routing, first.sink);
    spec.others = all.collect();
}

fn run_union(spec: FlowSpec) -> (Vec<Vec<String>>, FlowReport) {
    let answer = |window: Window| {
        let transform = window.transform;
        answer(window, "id", transform == PARTED, |id| say(transform, id.unwrap()));
    };
    let texts = |_: usize, batch: &RecordBatch| {
        let (ids, names) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_string_view());
        (0..batch.num_rows()).map(|row| format!("{}|{}", ids.value(row), names.value(row))).collect()
    };
    run(spec, answer, texts)
}

fn query(name: &str, source: Option<usize>, input: Value, nullable: bool) -> Value {
    let columns = [passing("id", "int64", false), passing("name", "string", nullable)];
    json!({"name": name, "source": source, "inputs": [input], "query": {"number": "row", "columns": columns}})
}

/// The first source is parted: one part goes into the union, one through a query to a destination, and one to another; the second source
/// goes as it is into the union and to a destination, and to a third through a query.
fn beside(jobs: &[Job; 2]) -> FlowSpec {
    let mut spec = spec(jobs);
    spec.transforms = serde_json::from_value(json!([
        {"name": "parted", "source": 0, "inputs": [of(None, 0)], "split": {"number": "row", "outputs": 3}},
        query("strays", Some(0), of(PARTED, 2), false),
        query("checked", Some(1), of(None, 0), true),
        query("last", None, of(None, 0), true),
    ]))
    .unwrap();
    let union = spec.union.as_mut().unwrap();
    union.columns =
        serde_json::from_value(json!([column("id", "int64", false), column("name", "string", true)])).unwrap();
    union.inputs = serde_json::from_value(json!([of(PARTED, 0), of(None, 0)])).unwrap();
    union.sources[0].places = vec![Some(0), Some(1)];
    union.sources[1].places = vec![Some(3), Some(0)];
    let inputs = [of(CHECKED, 0), of(3, 0), of(STRAYS, 0), of(PARTED, 1), of(None, 0), of(None, 0), of(None, 0)];
    let mut all: Vec<Value> = DESTINATIONS
        .iter()
        .zip(inputs)
        .map(|((name, source), input)| {
            let sink = json!({"kind": "arrow", "columns": ["id", "name"]});
            json!({"name": name, "input": input, "input_source": source, "sink": sink})
        })
        .collect();
    all[3]["fit"] = json!([column("day", "date", false)]);
    all[4]["routing"] = json!({"column": "id", "method": {"range": [{"minimum": null, "end": "2000"}]}});
    with_destinations(&mut spec, &all);
    spec.rejects.limit = Some(10_000);
    spec.rejects.tell_destinations = true;
    spec
}

fn shown(id: i64) -> String {
    format!("{id}|name {}", "n".repeat(id as usize % 23))
}

fn wanted(destination: usize) -> Vec<String> {
    let mut own: Vec<_> = (0..ROWS as i64).filter(|id| became(destination, *id) == Some(Ok(true))).map(shown).collect();
    own.sort();
    own
}

/// Accounts of each destination, and rejects with who lacks their rows.
fn check(report: &FlowReport, jobs: &[Job; 2]) {
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    for (number, (name, source)) in DESTINATIONS.iter().enumerate() {
        let mut sums = [0; 3];
        for slice in &report.slices {
            let own = slice.destinations[number];
            if source.is_some_and(|source| source != slice.file / 2) {
                assert_eq!(own, DestinationCounts::default(), "{name}: {slice:?}");
                continue;
            }
            assert_eq!(slice.rows, own.out + own.filtered + own.rejected, "{name}: {slice:?}");
            sums.iter_mut().zip([own.out, own.filtered, own.rejected]).for_each(|(sum, own)| *sum += own);
        }
        let count = |is_it: fn(&Became) -> bool| {
            (0..ROWS as i64).filter_map(|id| became(number, id)).filter(is_it).count() as u64
        };
        let expected = [count(|own| *own == Ok(true)), count(|own| *own == Ok(false)), count(Result::is_err)];
        assert_eq!(sums, expected, "{name}");
    }
    let mut refused = 0;
    for reject in jobs[0].reject_lines() {
        let id = id_at(&reject);
        let lacks = |number: &usize| became(*number, id).is_some_and(|own| own.is_err());
        let lacking: Vec<String> =
            (0..DESTINATIONS.len()).filter(lacks).map(|number| DESTINATIONS[number].0.to_owned()).collect();
        assert_eq!(reject.destinations, Some(lacking), "{reject:?}");
        refused += 1;
    }
    let is_refused = |id: &i64| (0..DESTINATIONS.len()).any(|own| became(own, *id).is_some_and(|own| own.is_err()));
    assert_eq!(refused, (0..ROWS as i64).filter(is_refused).count());
    assert_eq!(report.rejects.count, refused as u64);
    assert_eq!(report.slices.iter().map(|slice| slice.rejected).sum::<u64>(), refused as u64);
}

#[test]
fn rows_of_sources_go_past_a_union_to_destinations_of_their_own() {
    for streams in [1, 16] {
        let jobs = both(streams);
        let spec = beside(&jobs);
        let (found, report) = run_union(spec.clone());
        check(&report, &jobs);
        for (number, own) in found.iter().enumerate() {
            assert!(*own == wanted(number), "{}, {streams} streams", DESTINATIONS[number].0);
        }
        let lines = jobs[0].reject_lines();
        let of_one = |name: &str| {
            let is_own = |own: &&_| matches!(own, headrace_engine::report::LocatedReject { destinations: Some(only), .. } if only[..] == [name.to_owned()]);
            lines.iter().find(is_own).unwrap()
        };
        // Columns are those of the file, whoever has refused its rows.
        let (day, raw) = (of_one("days"), of_one("raw"));
        assert_eq!((day.column_number, day.column.as_deref(), day.code.as_str()), (Some(4), Some("day"), "HR201"));
        assert_eq!((raw.column_number, raw.column.as_deref(), raw.code.as_str()), (Some(4), Some("id"), "HR601"));
        assert_eq!(of_one("strays").message, "transform `strays`: strays");

        // What some have committed is read again, compared, and sent to the others alone.
        let mut again = spec;
        again.source.committed = known(&report, 0, |slice| slice.file > 1);
        again.others[0].committed = known(&report, 1, |_| true);
        again.others[3].committed = known(&report, 4, |slice| slice.file > 1);
        let (resent, resumed) = run_union(again.clone());
        check_again(&resumed, &report);
        for (number, own) in resent.iter().enumerate() {
            let expected = if [0, 1, 4].contains(&number) { Vec::new() } else { found[number].clone() };
            assert!(*own == expected, "{}", DESTINATIONS[number].0);
        }
        let committed = |slice: &SliceReport| slice.destinations.iter().map(|own| own.committed).collect::<Vec<_>>();
        for slice in &resumed.slices {
            let is_second = slice.file > 1;
            assert_eq!(committed(slice), [is_second, true, false, false, is_second, false, false]);
        }
        // Other rows than before are told.
        again.others[3].committed.values_mut().for_each(|own| own.loaded += 1);
        let (_, refused) = run_union(again);
        assert!(refused.error.unwrap().what.contains("has other rows than when an earlier attempt committed it"));
    }
}

pub fn check_again(resumed: &FlowReport, report: &FlowReport) {
    assert_eq!(resumed.status, Status::Ok, "{:?}", resumed.error);
    for (now, then) in resumed.slices.iter().zip(&report.slices) {
        let counts = |own: &DestinationCounts| DestinationCounts { committed: false, ..*own };
        assert!(now.destinations.iter().map(counts).eq(then.destinations.iter().copied()), "{now:?} {then:?}");
        assert_eq!((&now.transforms, now.rejected), (&then.transforms, then.rejected));
    }
}

#[test]
fn slices_that_only_some_get_pass_what_leads_to_these() {
    let jobs = both(2);
    let mut spec = beside(&jobs);
    let of_first: Vec<u32> = spec.source.slices.iter().filter(|own| own.file < 2).map(|own| own.number).collect();
    let whole = run_union(spec.clone());
    // Rows of the first source are missing in one table alone.
    spec.others[0].left_out = of_first.iter().copied().collect();
    spec.others[1].left_out = spec.others[0].left_out.clone();
    spec.others[4].left_out = spec.others[0].left_out.clone();
    let (found, report) = run_union(spec);
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    assert!(found[2].is_empty() && found[3] == whole.0[3]);
    let is_of_second = |line: &String| line.split('|').next().unwrap().parse::<u64>().unwrap() >= FIRST;
    assert!(found[1].iter().all(is_of_second) && !found[1].is_empty());
    let first = report.slices.iter().filter(|own| own.file < 2);
    let rows = |place: usize| first.clone().map(|own| own.transforms[place].rows).sum::<u64>();
    assert_eq!([rows(PARTED), rows(STRAYS), rows(3)], [FIRST, 0, 0]);
}

#[test]
fn one_destination_in_front_is_enough_for_a_flow() {
    let jobs = both(4);
    let mut spec = beside(&jobs);
    spec.others.clear();
    let (found, report) = run_union(spec.clone());
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    assert!(found[0] == wanted(0));
    for slice in report.slices.iter().filter(|own| own.file > 1) {
        assert_eq!(slice.rows, slice.out + slice.filtered + slice.rejected, "{slice:?}");
    }
    assert!(report.slices.iter().filter(|own| own.file < 2).all(|own| own.out == 0));

    // As they stand in the file.
    (spec.input, spec.transforms) = (Some(RowsOf::FIRST), Vec::new());
    spec.union.as_mut().unwrap().inputs = Vec::new();
    let (found, report) = run_union(spec);
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    let mut all: Vec<_> = (FIRST as i64..ROWS as i64).map(shown).collect();
    all.sort();
    assert!(found[0] == all);
}

#[test]
fn destinations_in_front_that_do_not_fit_are_refused() {
    let jobs = both(2);
    type Change = fn(&mut FlowSpec);
    let other_side = "the rows of transform `checked` are read on the other side of a join or union";
    let changes: [(Change, &str); 6] = [
        (|spec| spec.input_source = Some(2), "destination 0 reads rows of a source that is not there"),
        (|spec| spec.input = None, "nothing says which rows of its source destination 0 reads"),
        (|spec| spec.input_source = Some(0), other_side),
        (|spec| spec.input_source = None, other_side),
        (|spec| spec.others[1].input_source = Some(1), "the rows of transform `strays` are read on the other side"),
        (
            |spec| (spec.union, spec.transforms) = (None, Vec::new()),
            "destination 0 reads rows of a source that is not there",
        ),
    ];
    for (number, (change, expected)) in changes.into_iter().enumerate() {
        let mut spec = beside(&jobs);
        change(&mut spec);
        let error = Flow::new(spec).err().unwrap();
        assert!(error.kind == ErrorKind::Specification && error.what.contains(expected), "{number}: {error:?}");
    }
}
