//! Rows of several sources that go on together, each read by its own layout.

use headrace_engine::report::{FlowReport, Status};
use headrace_engine::spec::{FlowSpec, SinkSpec};
use headrace_engine::{BatchReader, Flow};
use headrace_types::{Column, ColumnType, Layout};
use serde_json::{Value, json};

use crate::support::{Job, check_report, join, row, rows, sorted, values};

pub const FIRST: u64 = 1000;
pub const ROWS: u64 = 2300;

/// name;extra;amount;id: the columns of the other source in another order, one more, and no day.
fn second_layout() -> Layout {
    let column = |name: &str, column_type| Column::new(name.to_owned(), column_type, name == "name");
    Layout {
        delimiter: ";".to_owned(),
        columns: vec![
            column("name", ColumnType::String),
            column("extra", ColumnType::Int32),
            column("amount", ColumnType::Decimal { precision: 15, scale: 2 }),
            column("id", ColumnType::Int64),
        ],
        ..Layout::default()
    }
}

/// A row of the test data as the second source has it.
fn second_row(id: u64) -> String {
    let row = row(id);
    let parts: Vec<&str> = row.split('|').collect();
    format!("{};{};{};{}", parts[1], id % 10, parts[2], parts[0])
}

/// The same as it comes out: without its day.
fn without_day(id: u64) -> String {
    let row = row(id);
    row.rsplit_once('|').map(|(front, _)| format!("{front}|")).unwrap()
}

pub fn second_rows(from: u64, to: u64) -> String {
    (from..to).map(|id| second_row(id) + "\n").collect()
}

/// Two files for each source; the jobs keep them.
pub fn jobs(second: &[&str], streams: usize) -> [Job; 2] {
    let first = [rows(0, 400), rows(400, FIRST)];
    let mut first = Job::of_files(&first.each_ref().map(|text| text.as_bytes())).arrow();
    let mut other = Job::of_files(&second.iter().map(|text| text.as_bytes()).collect::<Vec<_>>()).arrow();
    other.layout = second_layout();
    for job in [&mut first, &mut other] {
        (job.streams, job.limit, job.memory.blocks) = (streams, 100, 3 * streams + 8);
        job.slice_bytes = if streams == 1 { 1 << 30 } else { 2500 };
    }
    [first, other]
}

fn union_of(first_file: usize, second: &Layout) -> Value {
    json!({
        "name": "all",
        "columns": [
            {"name": "id", "type": {"kind": "int64"}, "nullable": false},
            {"name": "name", "type": {"kind": "string"}, "nullable": true},
            {"name": "amount", "type": {"kind": "decimal", "precision": 15, "scale": 2}, "nullable": false},
            {"name": "day", "type": {"kind": "date"}, "nullable": true},
        ],
        "sources": [
            {"name": "old", "first_file": 0, "places": [0, 1, 2, 3]},
            {"name": "new", "layout": second, "first_file": first_file, "places": [3, 0, 2, null]},
        ],
    })
}

/// The flow over the files of both.
pub fn spec(jobs: &[Job; 2]) -> FlowSpec {
    let [mut spec, second] = jobs.each_ref().map(|job| job.plan().unwrap());
    let (files, slices) = (spec.source.files.len(), spec.source.slices.len());
    spec.source.files.extend(second.source.files);
    spec.source.slices.extend(second.source.slices.into_iter().map(|mut slice| {
        slice.number += slices as u32;
        slice.file += files;
        slice
    }));
    spec.union = serde_json::from_value(union_of(files, &jobs[1].layout)).unwrap();
    spec
}

fn taken(reader: BatchReader) -> Vec<String> {
    reader.flat_map(|batch| values(&batch.unwrap())).collect()
}

fn run(spec: FlowSpec, blocks: usize) -> (Vec<String>, FlowReport) {
    let flow = Flow::new(spec).unwrap();
    let reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let consumer = std::thread::spawn(move || taken(reader));
    join(&flow);
    let found = sorted(consumer.join().unwrap());
    let report = join(&flow);
    check_report(&report, blocks);
    (found, report)
}

#[test]
fn rows_of_all_sources_arrive_whatever_their_layouts() {
    let expected = sorted((0..FIRST).map(row).chain((FIRST..ROWS).map(without_day)).collect());
    for streams in [1, 16] {
        let jobs = jobs(&[&second_rows(FIRST, 1500), &second_rows(1500, ROWS)], streams);
        let (found, report) = run(spec(&jobs), jobs[0].memory.blocks);
        assert_eq!(report.status, Status::Ok, "{:?}", report.error);
        assert!(found == expected, "{streams} streams");
        let of_second: u64 = report.slices.iter().filter(|own| own.file > 1).map(|own| own.rows).sum();
        assert_eq!(of_second, ROWS - FIRST);
    }
}

#[test]
fn rejects_stand_in_their_own_files_with_the_columns_of_their_layouts() {
    let bad = format!("{}a;1;no number;7\n;1;2.00;8\n", second_rows(FIRST, FIRST + 3));
    let jobs = jobs(&[&bad], 4);
    let (found, report) = run(spec(&jobs), jobs[0].memory.blocks);
    assert_eq!((report.status, report.rejects.count), (Status::Ok, 1), "{:?}", report.error);
    assert_eq!(found.len() as u64, FIRST + 4);
    let [reject] = &jobs[0].reject_lines()[..] else { panic!("{:?}", jobs[0].reject_lines()) };
    assert_eq!((reject.column.as_deref(), reject.column_number), (Some("amount"), Some(3)));
    assert_eq!((reject.file_number, reject.row, reject.value.as_str()), (3, 4, "no number"));
    assert_eq!(reject.file, jobs[1].file(0).to_str().unwrap());
}

#[test]
fn what_is_refused_behind_is_told_of_the_column_of_the_source() {
    let jobs = jobs(&[&format!("{}a long name indeed;1;2.00;7\n", second_rows(FIRST, FIRST))], 1);
    let mut spec = spec(&jobs);
    spec.sink = SinkSpec::Null;
    let narrow = json!({"name": "name", "type": {"kind": "varchar", "length": 27}, "nullable": true});
    let no_day = json!({"name": "day", "type": {"kind": "date"}, "nullable": false});
    let other = json!({"name": "other", "sink": {"kind": "null"}, "input": {"transform": null}, "fit": [no_day]});
    spec.fit = serde_json::from_value(json!([narrow])).unwrap();
    spec.others = serde_json::from_value(json!([other])).unwrap();
    spec.rejects.limit = None;
    let flow = Flow::new(spec).unwrap();
    flow.start().unwrap();
    let report = join(&flow);
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    // Days of the first source that are not there, in its fourth column; the second one has no such column.
    let lines = jobs[0].reject_lines();
    let of = |file: u64| lines.iter().filter(move |own| own.file_number as u64 == file);
    assert_eq!(lines.len() as u64, FIRST.div_ceil(7) + 1);
    assert!(of(1).chain(of(2)).all(|own| own.column_number == Some(4) && own.column.as_deref() == Some("day")));
    let own: Vec<_> = of(3).map(|own| (own.column_number, own.row)).collect();
    assert_eq!(own, [(None, 1)]);
}

#[test]
fn a_source_without_files_gives_no_rows() {
    let jobs = jobs(&[&second_rows(FIRST, FIRST + 2)], 2);
    let mut spec = spec(&jobs);
    let mut union = union_of(2, &jobs[1].layout);
    let mut none = union["sources"][1].clone();
    none["name"] = json!("none");
    union["sources"].as_array_mut().unwrap().insert(1, none.clone());
    none["first_file"] = json!(3);
    union["sources"].as_array_mut().unwrap().push(none);
    spec.union = serde_json::from_value(union).unwrap();
    let (found, report) = run(spec, jobs[0].memory.blocks);
    assert_eq!((report.status, found.len() as u64), (Status::Ok, FIRST + 2));
}

#[test]
fn a_union_that_does_not_fit_is_refused() {
    let jobs = jobs(&[&second_rows(FIRST, FIRST + 2)], 2);
    type Change = fn(&mut Value);
    let changes: [(Change, &str); 7] = [
        (|union| union["columns"][3]["nullable"] = json!(false), "column `day` is not what stands in its place"),
        (|union| union["columns"][1]["nullable"] = json!(false), "column `name`"),
        (|union| union["columns"][2]["type"]["scale"] = json!(3), "column `amount`"),
        (|union| union["sources"][1]["places"][0] = json!(9), "column `id`"),
        (|union| union["sources"][1]["places"] = json!([3, 0]), "has not a place for each column"),
        (|union| union["sources"][1]["layout"] = Value::Null, "every other one its own"),
        (|union| union["sources"][0]["first_file"] = json!(1), "do not follow one another"),
    ];
    for (change, expected) in changes {
        let mut union = union_of(2, &jobs[1].layout);
        change(&mut union);
        let mut spec = spec(&jobs);
        spec.union = serde_json::from_value(union).unwrap();
        let error = Flow::new(spec).err().unwrap();
        assert!(error.what.contains(expected), "{error:?}");
    }
}

#[test]
fn the_union_has_the_longest_of_texts() {
    let run_with = |of_union: Value, of_second: ColumnType| {
        let mut jobs = jobs(&[&second_rows(FIRST, FIRST + 2)], 2);
        jobs[0].layout.columns[1].column_type = ColumnType::Varchar { length: 30 };
        jobs[1].layout.columns[0].column_type = of_second;
        let mut union = union_of(2, &jobs[1].layout);
        union["columns"][1]["type"] = of_union;
        let mut spec = spec(&jobs);
        spec.union = serde_json::from_value(union).unwrap();
        Flow::new(spec.clone()).map(|_| run(spec, jobs[0].memory.blocks).0.len() as u64)
    };
    let (shorter, string) = (ColumnType::Varchar { length: 28 }, json!({"kind": "string"}));
    assert_eq!(run_with(string.clone(), shorter).unwrap(), FIRST + 2);
    assert_eq!(run_with(json!({"kind": "varchar", "length": 30}), shorter).unwrap(), FIRST + 2);
    let refused = "column `name` is not what stands in its place in source `old`";
    assert!(run_with(json!({"kind": "varchar", "length": 29}), shorter).err().unwrap().what.contains(refused));
    let refused = "column `name` is not what stands in its place in source `new`";
    assert!(run_with(string, ColumnType::Char { length: 30 }).err().unwrap().what.contains(refused));
}

#[test]
fn rows_are_numbered_in_each_file() {
    let mut jobs = jobs(&[&second_rows(FIRST, 1500), &second_rows(1500, ROWS)], 4);
    jobs[1].layout.made = serde_json::from_value(json!([{"name": "line", "from": "row_number"}])).unwrap();
    let mut spec = spec(&jobs);
    let mut union = union_of(2, &jobs[1].layout);
    // The number takes the place of the id.
    union["sources"][1]["places"][0] = json!(4);
    spec.union = serde_json::from_value(union).unwrap();
    let (found, report) = run(spec, jobs[0].memory.blocks);
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    let first = |line: &String| line.split('|').next().unwrap().parse::<u64>().unwrap();
    let mut numbers: Vec<u64> = found.iter().map(first).collect();
    numbers.sort_unstable();
    let mut expected: Vec<u64> = (0..FIRST).chain(1..=500).chain(1..=ROWS - 1500).collect();
    expected.sort_unstable();
    assert_eq!(numbers, expected);
}
