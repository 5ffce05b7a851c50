//! Columns that are made: they say where a row stands as rejects do, however a file is cut, packed, and resumed.

use std::collections::{BTreeMap, HashMap, HashSet};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use headrace_engine::report::{FlowReport, SliceReport, Status};
use headrace_engine::spec::{CommittedSlice, Compression, DestinationSpec, GenerateSource, RowsOf, SinkSpec};
use headrace_engine::{BatchReader, Flow};
use headrace_types::{Header, MadeColumn, MadeFrom};

use crate::packed::bgzf;
use crate::support::{Job, join, rows};

const LOAD_TIME: i64 = 1_700_000_000_123_456;
const RUN_ID: &str = "20260728-120000-0123456789abcdef";
const PACKAGE_HASH: &str = "5f3a";

/// What the made columns say of a row: its number, its first byte, its file.
type Place = (i64, i64, String);

fn with_made(mut job: Job) -> Job {
    let made = |name: &str, from| MadeColumn { name: name.to_owned(), from };
    job.layout.made = vec![
        made("file", MadeFrom::FileName),
        made("row", MadeFrom::RowNumber),
        made("byte", MadeFrom::ByteOffset),
        made("time", MadeFrom::LoadTime(Some(LOAD_TIME))),
        made("path", MadeFrom::FilePath),
        made("run", MadeFrom::RunId(Some(RUN_ID.to_owned()))),
        made("package", MadeFrom::PackageHash(Some(PACKAGE_HASH.to_owned()))),
        made("slice", MadeFrom::Slice),
    ];
    job
}

/// By id what is said of all rows that are loaded.
fn loaded(job: &Job) -> (BTreeMap<i64, Place>, FlowReport) {
    let mut spec = job.plan().unwrap();
    let columns = ["byte", "id", "path", "slice", "time", "row", "file", "package", "run"].map(str::to_owned).to_vec();
    spec.sink = SinkSpec::Arrow { columns, position: None, place_column: None };
    let flow = Flow::new(spec).unwrap();
    let reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let (mut found, mut by_slice) = (BTreeMap::new(), BTreeMap::<i64, u64>::new());
    for batch in reader {
        let batch = batch.unwrap();
        let numbers = |name| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>();
        let texts = |name| batch.column_by_name(name).unwrap().as_string_view();
        let times = batch.column_by_name("time").unwrap().as_primitive::<TimestampMicrosecondType>();
        for index in 0..batch.num_rows() {
            let (path, file) = (texts("path").value(index), texts("file").value(index));
            assert_eq!(path.rsplit('/').next(), Some(file));
            assert_eq!(times.value(index), LOAD_TIME);
            assert_eq!((texts("run").value(index), texts("package").value(index)), (RUN_ID, PACKAGE_HASH));
            let slice = numbers("slice").value(index);
            *by_slice.entry(slice).or_default() += 1;
            let place = (numbers("row").value(index), numbers("byte").value(index), path.to_owned());
            assert!(found.insert(numbers("id").value(index), place).is_none());
        }
    }
    let report = join(&flow);
    assert_eq!(report.status, Status::Ok);
    let sent = report.slices.iter().filter(|slice| !slice.committed && slice.out > 0);
    assert_eq!(by_slice, sent.map(|slice| (i64::from(slice.number), slice.out)).collect());
    (found, report)
}

/// What the places should be, read off a text in which no line feed is data.
fn expected(text: &str, path: &str) -> BTreeMap<i64, Place> {
    let mut byte = 0;
    let mut all = BTreeMap::new();
    for (number, line) in std::iter::zip(1.., text.split_inclusive('\n')) {
        let begin = if byte == 0 { line.trim_start_matches('\u{FEFF}') } else { line };
        if let Some(Ok(id)) = begin.split('|').next().map(str::parse) {
            all.insert(id, (number, (byte + line.len() - begin.len()) as i64, path.to_owned()));
        }
        byte += line.len();
    }
    all
}

fn dirty_text() -> String {
    let long = format!("2000|{}|1.00|\n", "x".repeat(10_000));
    format!("id|name|amount|day\n{}bad\n\n{long}{}|bad|1|\n{}", rows(0, 300), rows(300, 600), rows(600, 900).trim_end())
}

#[test]
fn rows_say_where_they_stand_however_the_file_is_cut() {
    let texts = [dirty_text(), format!("\u{FEFF}id|name|amount|day\n{}", rows(3000, 3100))];
    let mut job = with_made(Job::of_files(&texts.each_ref().map(String::as_bytes)));
    (job.layout.header, job.limit) = (Header::Skip, 10);
    let mut wanted = BTreeMap::new();
    for (index, text) in texts.iter().enumerate() {
        wanted.extend(expected(text, job.file(index).to_str().unwrap()));
    }
    for (slice_bytes, streams) in [(1 << 30, 1), (5000, 1), (700, 3)] {
        (job.slice_bytes, job.streams) = (slice_bytes, streams);
        let (found, report) = loaded(&job);
        assert_eq!(found, wanted, "slices of {slice_bytes}");
        // No reject has the number of a row that was loaded.
        assert_eq!(report.rejects.count, 2);
        for reject in job.reject_lines() {
            assert!(!found.values().any(|(row, _, path)| *row as u64 == reject.row && *path == reject.file));
        }
        let null = job.run();
        let column = null.columns.unwrap().into_iter().find(|column| column.name == "row").unwrap();
        assert_eq!((column.rows, column.nulls, column.min.as_deref()), (found.len() as u64, 0, Some("2")));
    }
}

#[test]
fn a_resumed_flow_gives_the_rest_of_the_same_numbers() {
    let text = dirty_text();
    let mut job = with_made(Job::of(&text));
    (job.layout.header, job.limit, job.slice_bytes) = (Header::Skip, 10, 2000);
    let (all, undisturbed) = loaded(&job);
    let known: HashMap<u32, CommittedSlice> = undisturbed
        .slices
        .iter()
        .filter(|slice| slice.number % 3 != 2)
        .map(|slice| {
            let &SliceReport { out: loaded, rejected, skipped, .. } = slice;
            (slice.number, CommittedSlice { loaded, rejected, skipped, ..CommittedSlice::default() })
        })
        .collect();
    job.committed = known;
    let (rest, report) = loaded(&job);
    assert!(!rest.is_empty() && rest.len() < all.len() / 2);
    assert!(rest.iter().all(|(id, place)| all[id] == *place));
    assert_eq!(report.rejects.count, undisturbed.rejects.count);
}

#[test]
fn rows_that_one_of_two_destinations_lacks_have_their_own_numbers() {
    let mut job = with_made(Job::of(dirty_text()));
    (job.layout.header, job.limit, job.slice_bytes) = (Header::Skip, 10, 2000);
    job.memory.blocks = 16;
    let (all, undisturbed) = loaded(&job);
    let known = |is_there: fn(u32) -> bool| -> HashMap<u32, CommittedSlice> {
        let there = undisturbed.slices.iter().filter(|slice| is_there(slice.number));
        let account = |slice: &SliceReport| {
            let &SliceReport { number, out: loaded, rejected, skipped, .. } = slice;
            (number, CommittedSlice { loaded, rejected, skipped, ..CommittedSlice::default() })
        };
        there.map(account).collect()
    };
    let columns = || ["id", "row"].map(str::to_owned).to_vec();
    let sink = || SinkSpec::Arrow { columns: columns(), position: None, place_column: None };
    for (first, other) in
        [(known(|_| true), known(|_| false)), (known(|number| number % 3 != 2), known(|number| number % 2 == 0))]
    {
        let mut spec = job.plan().unwrap();
        spec.sink = sink();
        let lacks =
            [&first, &other].map(|known| undisturbed.slices.iter().filter(|own| !known.contains_key(&own.number)));
        let wanted = lacks.map(|slices| slices.map(|own| own.out).sum::<u64>());
        spec.source.committed = first;
        spec.others = vec![DestinationSpec {
            name: "other".to_owned(),
            input: RowsOf { transform: None, output: 0 },
            input_source: None,
            fit: vec![],
            routing: None,
            sink: sink(),
            committed: other,
            left_out: HashSet::new(),
        }];
        let flow = Flow::new(spec).unwrap();
        let readers = [0, 1].map(|number| flow.take_reader_of(number).unwrap());
        flow.start().unwrap();
        let found = std::thread::scope(|scope| {
            let consumers = readers.map(|reader| scope.spawn(move || numbers(reader)));
            consumers.map(|consumer| consumer.join().unwrap())
        });
        assert_eq!(join(&flow).status, Status::Ok);
        assert_eq!(found.each_ref().map(|own| own.len() as u64), wanted);
        for (id, row) in found.into_iter().flatten() {
            assert_eq!(all[&id].0, row, "the number of row {id}");
        }
    }
}

/// The ids of all rows, and the numbers that they have.
fn numbers(reader: BatchReader) -> Vec<(i64, i64)> {
    let of_batch = |batch: RecordBatch| -> Vec<(i64, i64)> {
        let [ids, rows] =
            ["id", "row"].map(|name| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().clone());
        std::iter::zip(ids.values().to_vec(), rows.values().to_vec()).collect()
    };
    reader.map(Result::unwrap).flat_map(of_batch).collect()
}

#[test]
fn compressed_files_count_the_rows_and_bytes_of_their_text() {
    let text = format!("{}\nbad\n{}", dirty_text(), rows(10_000, 50_000));
    let packed = bgzf(text.as_bytes(), 60_000);
    let mut job = with_made(Job::of(&packed));
    (job.layout.header, job.limit, job.compression) = (Header::Skip, 10, Compression::Auto);
    let wanted = expected(&text, job.file(0).to_str().unwrap());
    for (slice_bytes, least_slices) in [(1 << 30, 1), (packed.len() as u64 / 6, 4)] {
        job.slice_bytes = slice_bytes;
        assert!(job.plan().unwrap().source.slices.len() >= least_slices);
        assert_eq!(loaded(&job).0, wanted, "slices of {slice_bytes}");
    }
}

#[test]
fn line_feeds_in_fields_begin_no_rows() {
    let row = |id: i64| format!("{id}|\"a\n{id}|\"\"\n{}\"|1.00|\n", "\n".repeat(id as usize % 40));
    let mut text = String::new();
    let mut wanted = BTreeMap::new();
    for id in 0..400 {
        wanted.insert(id, (id + 1, text.len() as i64, String::new()));
        text += &row(id);
    }
    let mut job = with_made(Job::of(&text));
    job.layout.qualifier = Some('"');
    for slice_bytes in [1 << 30, 1000] {
        job.slice_bytes = slice_bytes;
        let found: BTreeMap<_, _> =
            loaded(&job).0.into_iter().map(|(id, (row, byte, _))| (id, (row, byte, String::new()))).collect();
        assert_eq!(found, wanted, "slices of {slice_bytes}");
    }
}

#[test]
fn a_file_that_vanishes_while_rows_are_counted_fails_the_flow() {
    let mut job = with_made(Job::of(rows(0, 500)));
    (job.slice_bytes, job.streams) = (1000, 3);
    let flow = job.flow();
    std::fs::remove_file(job.file(0)).unwrap();
    flow.start().unwrap();
    assert_eq!(join(&flow).status, Status::Failed);
}

#[test]
fn generated_rows_and_runs_without_a_time_have_none() {
    let job = with_made(Job::of(rows(0, 5)));
    let mut spec = job.plan().unwrap();
    spec.source.generate = Some(GenerateSource { table: "orders".to_owned(), scale: 0.001, chunks: 1 });
    assert!(Flow::new(spec).is_err());
    let mut spec = job.plan().unwrap();
    spec.layout.made[3].from = MadeFrom::LoadTime(None);
    assert!(Flow::new(spec).is_err());
}

#[test]
fn what_is_read_to_count_rows_is_told() {
    let text = rows(0, 1000);
    let mut job = with_made(Job::of(&text));
    job.slice_bytes = text.len() as u64 / 5;
    let spec = job.plan().unwrap();
    let last = spec.source.slices.last().unwrap().bytes();
    let flow = job.flow();
    flow.start().unwrap();
    assert_eq!(join(&flow).status, Status::Ok);
    assert_eq!(flow.snapshot().counted_bytes, text.len() as u64 - last, "nothing asks for rows behind the last slice");
}
