//! Lines around a `max_row` of 64 MB, in a process of their own: its peak memory is measured.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Seek as _, SeekFrom, Write as _};
use std::time::Duration;

use headrace_engine::Flow;
use headrace_engine::report::{FlowReport, Status};
use headrace_engine::slices::{SlicingSpec, plan_slices};
use headrace_engine::spec::{FlowSpec, MemorySpec, RejectSpec, SourceSpec};
use headrace_types::{Column, ColumnType, Layout};

const MEGABYTE: u64 = 1 << 20;
/// The large-row memory, the half of it that is copied when it grows, and room for the rest of the process.
const BOUND: u64 = 64 + 32 + 44;

/// Runs a file whose second of three rows is `bytes` long. Two streams, eight blocks of 1 MB.
fn run(bytes: u64, fill: u8, qualifier: Option<char>) -> (FlowReport, u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(b"1|a\n2|").unwrap();
    if qualifier.is_some() {
        file.write_all(b"\"").unwrap();
    }
    if fill == 0 {
        file.seek(SeekFrom::Current(bytes as i64 - 3)).unwrap(); // a hole: no disk is filled
    } else {
        let chunk = vec![fill; MEGABYTE as usize];
        let mut left = (bytes - 3) as usize;
        while left > 0 {
            file.write_all(&chunk[..left.min(chunk.len())]).unwrap();
            left -= left.min(chunk.len());
        }
    }
    file.write_all(b"\n3|c\n").unwrap();
    let columns = [("id", ColumnType::Int32), ("text", ColumnType::String)];
    let columns = columns.map(|(name, column_type)| Column::new(name, column_type, false));
    let layout = Layout { delimiter: "|".to_owned(), qualifier, columns: columns.to_vec(), ..Layout::default() };
    let files = vec![path.to_str().unwrap().to_owned()];
    let slicing =
        plan_slices(&SlicingSpec { files, slice_bytes: 1 << 40, layout: layout.clone(), ..SlicingSpec::default() })
            .unwrap();
    let source = SourceSpec::of_files(&slicing.files, &slicing.slices);
    let memory = MemorySpec { block_bytes: MEGABYTE as usize, blocks: 8, max_row_bytes: 64 * MEGABYTE as usize };
    let flow = Flow::new(FlowSpec {
        rejects: RejectSpec {
            limit: Some(1),
            folder: folder.path().to_str().unwrap().to_owned(),
            file_stem: "rejected".to_owned(),
            ..RejectSpec::default()
        },
        ..FlowSpec::plain("long", layout, source, 2, memory)
    })
    .unwrap();
    flow.start().unwrap();
    let report = flow.join(Duration::from_secs(60)).expect("the flow hangs");
    (report, peak_megabytes())
}

/// Peak resident memory of this process.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
fn lines_around_64_mb_need_that_much_memory_and_no_more() {
    headrace_engine::return_large_memory(); // as the command line does in its own process
    // 200 MB of one line: rejected, never held as a whole.
    let (report, peak) = run(200 * MEGABYTE, 0, None);
    assert_eq!((report.status, report.sink.rows, report.rejects.count), (Status::Ok, 2, 1));
    let reject = &report.rejects.first[0];
    assert_eq!((reject.rule.as_str(), reject.row, reject.byte), ("row_too_long", 2, 4));
    assert_eq!(report.slices[0].bytes, 200 * MEGABYTE + 8);
    assert!(peak < BOUND, "{peak} MB");

    let (report, peak) = run(70 * MEGABYTE, b'x', None);
    assert_eq!((report.sink.rows, report.rejects.by_rule["row_too_long"]), (2, 1));
    assert!(peak < BOUND, "{peak} MB");

    // A qualifier that is never closed: every line feed behind it is data, and the last row as well. It is told where it opened.
    let (report, peak) = run(70 * MEGABYTE, b'\n', Some('"'));
    assert_eq!((report.sink.rows, report.rejects.count), (1, 1));
    let reject = &report.rejects.first[0];
    assert_eq!((reject.rule.as_str(), reject.row, reject.byte), ("unclosed_qualifier", 2, 6));
    assert_eq!(reject.column.as_deref(), Some("text"));
    assert_eq!(report.slices[0].bytes, 70 * MEGABYTE + 9);
    assert!(peak < BOUND, "{peak} MB");

    // Just short enough: loaded.
    let (report, peak) = run(64 * MEGABYTE, b'x', None);
    assert_eq!((report.status, report.sink.rows, report.rejects.count), (Status::Ok, 3, 0));
    let columns = report.columns.unwrap();
    assert_eq!(columns[1].max_length, Some(64 * MEGABYTE - 3));
    assert!(peak < BOUND, "{peak} MB");

    // A row of qualifiers, each doubled: half of them are its text, which is kept beside the row.
    let (report, peak) = run(64 * MEGABYTE - 2, b'"', Some('"'));
    assert_eq!((report.status, report.sink.rows, report.rejects.count), (Status::Ok, 3, 0));
    assert_eq!(report.columns.unwrap()[1].max_length, Some((64 * MEGABYTE - 6) / 2));
    assert!(peak < BOUND + 32, "{peak} MB");
}
