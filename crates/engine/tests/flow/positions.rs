//! Positions of rows, and from them their places.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use headrace_engine::Flow;
use headrace_engine::report::{SliceReport, Status};
use headrace_engine::row_position::RowPosition;
use headrace_engine::spec::SinkSpec;
use headrace_types::ErrorKind;

use crate::support::{Job, join, rows};

const NO_ROW: RowPosition = RowPosition::first(1).plus(1 << 30);

/// All ids with the positions of their rows, and the accounts of the slices.
fn positions(job: &Job) -> (BTreeMap<i64, RowPosition>, Vec<SliceReport>) {
    let mut spec = job.plan().unwrap();
    spec.sink =
        SinkSpec::Arrow { columns: vec!["id".to_owned()], position: Some("position".to_owned()), place_column: None };
    let flow = Flow::new(spec).unwrap();
    let reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let pairs = |batch: RecordBatch| {
        let ids = batch.column_by_name("id").unwrap().as_primitive::<Int64Type>().values().to_vec();
        let positions = batch.column_by_name("position").unwrap().as_primitive::<UInt64Type>().values().to_vec();
        let positions = positions.into_iter().map(|number| serde_json::from_str(&number.to_string()).unwrap());
        std::iter::zip(ids, positions).collect::<Vec<_>>()
    };
    let found = reader.flat_map(|batch| pairs(batch.unwrap())).collect();
    (found, join(&flow).slices)
}

/// Row and byte of the rows at these positions.
fn places(job: &Job, rows: Vec<RowPosition>, ended: Vec<SliceReport>) -> Vec<Option<(String, u64, u64)>> {
    let mut spec = job.plan().unwrap();
    spec.sink = SinkSpec::Locate { rows, ended };
    let flow = Flow::new(spec).unwrap();
    flow.start().unwrap();
    let report = join(&flow);
    assert_eq!(report.status, Status::Ok);
    let places = report.sink.places.unwrap().into_iter();
    places.map(|place| place.map(|place| (place.file, place.row.unwrap(), place.byte.unwrap()))).collect()
}

#[test]
fn every_row_is_found_again() {
    // Rejected and blank lines, a header, a row longer than a block, several blocks, slices and files.
    let header = "id|name|amount|day\n";
    let long = format!("2000|{}|1.00|\n", "x".repeat(10_000));
    let first = format!("{header}{}bad\n\n{long}{}", rows(0, 300), rows(300, 600));
    let second = format!("{header}{}x|bad|1|\n{}", rows(600, 900), rows(900, 1000).trim_end());
    let mut job = Job::of_files(&[first.as_bytes(), second.as_bytes()]);
    job.layout.skip_lines = 1;
    job.limit = 10;
    for slice_bytes in [1 << 30, 5000] {
        job.slice_bytes = slice_bytes;
        let (found, ended) = positions(&job);
        assert_eq!(found.len(), 1001);
        let ids: Vec<i64> = (0..300).chain([2000]).chain(300..1000).collect();
        let in_file_order: Vec<RowPosition> = ids.iter().map(|id| found[id]).collect();
        assert!(in_file_order.is_sorted(), "positions ascend in file order");
        for ended in [ended, vec![]] {
            for (place, id) in std::iter::zip(places(&job, in_file_order.clone(), ended), &ids) {
                let (path, row, byte) = place.unwrap();
                let text = std::fs::read_to_string(path).unwrap();
                let line = text.lines().nth(row as usize - 1).unwrap();
                assert!(line.starts_with(&format!("{id}|")), "{line}");
                assert_eq!(text[..byte as usize].matches('\n').count() as u64, row - 1);
                assert!(text[byte as usize..].starts_with(line));
            }
        }
    }
}

#[test]
fn only_slices_of_wanted_rows_are_read() {
    let mut job = Job::of(rows(0, 1000));
    job.slice_bytes = 5000;
    let (found, ended) = positions(&job);
    assert!(ended.len() > 3);
    let mut spec = job.plan().unwrap();
    spec.sink = SinkSpec::Locate { rows: vec![found[&999], NO_ROW], ended: ended.clone() };
    let flow = Flow::new(spec).unwrap();
    flow.start().unwrap();
    let report = join(&flow);
    let read = report.slices.iter().filter(|slice| slice.stream.is_some());
    let read: Vec<u32> = read.map(|slice| slice.number).collect();
    assert_eq!(read, [1, ended.len() as u32]);
    let places = report.sink.places.unwrap();
    assert_eq!((places[0].as_ref().and_then(|place| place.row), places[1].is_none()), (Some(1000), true));
}

#[test]
fn a_position_needs_a_name_of_its_own_and_numbers_that_fit() {
    let job = Job::of(rows(0, 10));
    let refused = |position: &str, slice| {
        let mut spec = job.plan().unwrap();
        spec.sink = SinkSpec::Arrow { columns: vec![], position: Some(position.to_owned()), place_column: None };
        spec.source.slices[0].number = slice;
        Flow::new(spec).err().map(|error| error.kind)
    };
    assert_eq!(refused("position", RowPosition::MAXIMUM_SLICE), None);
    assert_eq!(refused("position", RowPosition::MAXIMUM_SLICE + 1), Some(ErrorKind::Specification));
    assert_eq!(refused("name", 1), Some(ErrorKind::Specification));
}
