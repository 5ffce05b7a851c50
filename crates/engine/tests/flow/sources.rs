//! Files that are not there or not files; generated rows.

use std::io::Read as _;

use headrace_engine::Flow;
use headrace_engine::report::Status;
use headrace_engine::spec::{FileSpec, GenerateSource, SliceSpec};
use headrace_generate::{TpchTable, TpchText};
use headrace_types::{Column, ColumnType, CoreError, ErrorKind, Layout};

use crate::support::{Job, join, rows};

fn refused(job: &Job) -> CoreError {
    let error = job.plan().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Source);
    assert_eq!(error.at.as_ref().unwrap().file, job.file(0).to_str().unwrap());
    assert!(error.hint.is_some());
    error
}

#[test]
fn missing_files_and_folders_are_refused_when_planning() {
    let job = Job::of("");
    std::fs::remove_file(job.file(0)).unwrap();
    assert!(refused(&job).found.unwrap().contains("No such file"));
    std::fs::create_dir(job.file(0)).unwrap();
    assert_eq!(refused(&job).found.unwrap(), "a folder");
}

#[test]
fn a_file_that_vanishes_between_plan_and_start_fails_the_flow() {
    let job = Job::of(rows(0, 100));
    let flow = job.flow();
    std::fs::remove_file(job.file(0)).unwrap();
    flow.start().unwrap();
    let report = join(&flow);
    assert_eq!((report.status, report.error.unwrap().kind), (Status::Failed, ErrorKind::Source));
}

fn orders() -> Layout {
    let column = |name: &str, column_type| Column::new(name, column_type, false);
    let columns = vec![
        column("o_orderkey", ColumnType::Int64),
        column("o_custkey", ColumnType::Int64),
        column("o_orderstatus", ColumnType::Char { length: 1 }),
        column("o_totalprice", ColumnType::Decimal { precision: 15, scale: 2 }),
        column("o_orderdate", ColumnType::Date),
        column("o_orderpriority", ColumnType::Char { length: 15 }),
        column("o_clerk", ColumnType::Char { length: 15 }),
        column("o_shippriority", ColumnType::Int32),
        column("o_comment", ColumnType::Varchar { length: 79 }),
    ];
    Layout { delimiter: "|".to_owned(), trailing_delimiter: true, columns, ..Layout::default() }
}

#[test]
fn generated_rows_equal_generated_files() {
    const CHUNKS: u32 = 3;
    let chunk = |number| {
        let mut text = vec![];
        TpchText::new(TpchTable::Orders, 0.002, number, CHUNKS).unwrap().read_to_end(&mut text).unwrap();
        text
    };
    let texts: Vec<Vec<u8>> = (1..=CHUNKS).map(chunk).collect();
    let mut job = Job::of_files(&texts.iter().map(Vec::as_slice).collect::<Vec<_>>());
    job.layout = orders();
    job.slice_bytes = 50_000;
    let from_files = job.run();
    assert_eq!(from_files.sink.rows, 3000);

    let mut spec = job.plan().unwrap();
    let file = |number: u32| FileSpec { path: format!("orders.tbl.{number}"), ..FileSpec::default() };
    spec.source.files = (1..=CHUNKS).map(file).collect();
    let slice = |number: u32| SliceSpec { number, file: number as usize - 1, ..SliceSpec::default() };
    spec.source.slices = (1..=CHUNKS).map(slice).collect();
    spec.source.generate = Some(GenerateSource { table: "orders".to_owned(), scale: 0.002, chunks: CHUNKS });
    let flow = Flow::new(spec.clone()).unwrap();
    flow.start().unwrap();
    let generated = join(&flow);
    assert_eq!((generated.status, &generated.columns), (Status::Ok, &from_files.columns));
    let bytes: Vec<u64> = generated.slices.iter().map(|slice| slice.bytes).collect();
    assert_eq!(bytes, texts.iter().map(|text| text.len() as u64).collect::<Vec<_>>());

    // Generated rows pass the same rules and get the same places.
    spec.layout.columns[8].column_type = ColumnType::Varchar { length: 5 };
    let flow = Flow::new(spec.clone()).unwrap();
    flow.start().unwrap();
    let error = join(&flow).error.unwrap();
    assert_eq!((error.kind, error.at.unwrap().row), (ErrorKind::RejectLimit, Some(1)));

    spec.source.generate = Some(GenerateSource { table: "nobody".to_owned(), scale: 0.002, chunks: CHUNKS });
    assert!(Flow::new(spec).is_err());
}
