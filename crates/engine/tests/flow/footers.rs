//! Footers: the same text as a plain file, compressed in any way, or through a pipe has the same rows, rejects, and accounts.

use std::io::Write as _;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::DataType;
use headrace_engine::Flow;
use headrace_engine::report::{LocatedReject, SliceReport, Status};
use headrace_engine::spec::{CommittedSlice, Compression, FlowSpec, HeldSpec, SliceSpec};
use headrace_types::{
    BlankRows, Column, ColumnType, CoreError, Encoding, ErrorKind, Header, Layout, LayoutShape, Place, RowEnds,
    ShortRows,
};
use proptest::prelude::*;

use crate::packed::{bgzf, frame, frames, gzip};
use crate::support::{Job, core_error, join, rows};

/// What a flow over a text has given.
#[derive(Debug, PartialEq)]
struct Outcome {
    rows: Vec<String>,
    rejects: Vec<LocatedReject>,
    bad: Vec<u8>,
    /// Bytes, lines, skipped, rows, rejected, out, lines that end with LF, with CRLF.
    totals: [u64; 8],
}

fn shown(batch: &RecordBatch) -> Vec<String> {
    let field = |column: &ArrayRef, row: usize| match column.data_type() {
        _ if column.is_null(row) => "null".to_owned(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Utf8View => format!("{:?}", column.as_string_view().value(row)),
        _ => String::new(),
    };
    let row = |row| batch.columns().iter().map(|column| field(column, row)).collect::<Vec<_>>().join(" ");
    (0..batch.num_rows()).map(row).collect()
}

/// What it gives, or why it fails.
fn run(job: &Job) -> Result<Outcome, CoreError> {
    let flow = Flow::new(job.plan()?)?;
    run_flow(job, &flow)
}

fn run_flow(job: &Job, flow: &Flow) -> Result<Outcome, CoreError> {
    let reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let mut rows = reader.map(|batch| Ok(shown(&batch.map_err(core_error)?)));
    let found: Result<Vec<Vec<String>>, CoreError> = rows.by_ref().collect();
    drop(rows);
    let report = join(flow);
    if let Some(error) = report.error {
        return Err(error);
    }
    assert_eq!(report.status, Status::Ok);
    let mut totals = [0; 8];
    for slice in &report.slices {
        let own = [slice.bytes, slice.lines, slice.skipped, slice.rows, slice.rejected, slice.out];
        let own = own.into_iter().chain([slice.lf_lines, slice.crlf_lines]);
        totals.iter_mut().zip(own).for_each(|(total, own)| *total += own);
    }
    let mut rows = found?.concat();
    rows.sort();
    let (mut rejects, bad) = match report.rejects.count {
        0 => (vec![], vec![]),
        _ => (job.reject_lines(), job.bad_bytes()),
    };
    // Where it stands is the same, whatever it is called.
    rejects.iter_mut().for_each(|reject| reject.file = String::new());
    Ok(Outcome { rows, rejects, bad, totals })
}

fn job(bytes: &[u8], layout: &Layout) -> Job {
    let mut job = Job::of(bytes).arrow();
    job.layout = layout.clone();
    job.compression = Compression::Auto;
    job.limit = u64::MAX;
    job.memory.max_row_bytes = 16 << 20;
    job
}

/// The same flow over what comes through a pipe.
fn run_pipe(bytes: &[u8], mut job: Job) -> Result<Outcome, CoreError> {
    let path = job.folder.path().join("data.pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    job.files = vec![path.clone()];
    let bytes = bytes.to_vec();
    let flow = Flow::new(job.plan()?)?;
    let writer = std::thread::spawn(move || write_pipe(&path, &bytes));
    let found = run_flow(&job, &flow);
    writer.join().unwrap();
    found
}

fn write_pipe(path: &Path, bytes: &[u8]) {
    let mut pipe = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    for piece in bytes.chunks(1 + bytes.len() / 3) {
        // Nobody reads on behind an error.
        if pipe.write_all(piece).is_err() {
            break;
        }
    }
}

fn told(found: Result<Outcome, CoreError>) -> Result<Outcome, (ErrorKind, String)> {
    found.map_err(|error| (error.kind, error.what))
}

fn columns(count: usize) -> Vec<Column> {
    let text = |number| Column::new(format!("c{number}"), ColumnType::String, true);
    (0..count)
        .map(|number| if number == 0 { Column::new("id", ColumnType::Int64, true) } else { text(number) })
        .collect()
}

/// Dialects in which rows, comments and blank rows are told apart in different ways.
fn layouts() -> impl Strategy<Value = Layout> {
    let row_ends = prop::sample::select(vec![
        RowEnds::Auto,
        RowEnds::Auto,
        RowEnds::Exactly("\r\n".to_owned()),
        RowEnds::Exactly("<>".to_owned()),
        RowEnds::Exactly(",\n".to_owned()),
    ]);
    let blank_rows = prop::sample::select(vec![BlankRows::Skip, BlankRows::Reject, BlankRows::Keep]);
    let encodings = prop::sample::select(vec!["utf-8", "utf-8", "utf-16le", "windows-1252"]);
    let marks = (any::<bool>(), any::<bool>(), any::<bool>());
    let sizes = (1_usize..4, 1_u32..6, 0_u32..2, any::<bool>());
    (row_ends, blank_rows, encodings, marks, sizes).prop_map(
        |(row_end, blank_rows, encoding, (quotes, escapes, comments), (count, footer_rows, skip_lines, has_header))| {
            Layout {
                encoding: Encoding::try_from(encoding.to_owned()).unwrap(),
                delimiter: ";".to_owned(),
                row_end,
                blank_rows,
                qualifier: quotes.then_some('"'),
                escape: escapes.then_some('\\'),
                comment: comments.then(|| "#".to_owned()),
                header: if has_header { Header::Skip } else { Header::None },
                skip_lines,
                footer_rows,
                columns: columns(count),
                ..Layout::default()
            }
        },
    )
}

/// Rows of five bytes, with and without row ends.
fn fixed_layouts() -> impl Strategy<Value = Layout> {
    (any::<bool>(), 1_u32..6).prop_map(|(is_endless, footer_rows)| {
        let mut columns = columns(2);
        columns[0].place = Some(Place { start: 0, width: Some(2) });
        columns[1].place = Some(Place { start: 2, width: Some(3) });
        Layout {
            shape: LayoutShape::FixedWidth,
            delimiter: String::new(),
            row_end: if is_endless { RowEnds::None } else { RowEnds::Auto },
            short_rows: if is_endless { ShortRows::Reject } else { ShortRows::Fill },
            footer_rows,
            columns,
            ..Layout::default()
        }
    })
}

/// Pieces of rows.
fn texts() -> impl Strategy<Value = String> {
    let pieces = [
        "\n",
        "\r\n",
        "<>",
        ",\n",
        "\n",
        "<>",
        ";",
        "\"",
        "\\",
        "#",
        "1",
        "22;x",
        "é",
        "\n\n",
        "\r",
        "#c\n",
        "3;\"a\nb\"",
        " ",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..25).prop_map(|pieces| pieces.concat())
}

/// What may stand in the middle of a text, sometimes so much that compressed files are cut.
fn fillers() -> impl Strategy<Value = (&'static str, usize)> {
    let filler = prop::sample::select(vec!["7;abc\n", "7;abc\r\n", "7;\"ab<>\nc\"<>", "7;abcdefgh,\n", "12345"]);
    (filler, prop_oneof![6 => 0_usize..3, 1 => 60_000_usize..80_000])
}

/// The front of something long.
fn front(shown: &impl std::fmt::Debug) -> String {
    format!("{shown:?}").chars().take(2000).collect()
}

fn encoded(text: &str, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Utf8 => text.as_bytes().to_vec(),
        Encoding::Page(_) => text.chars().map(|character| character as u8).collect(),
        _ => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_footer_is_the_same_however_the_text_comes(
        layout in prop_oneof![4 => layouts(), 1 => fixed_layouts()],
        before in texts(),
        (filler, count) in fillers(),
        behind in texts(),
        needs_last_row_end: bool,
        block_bytes in 3_000_usize..65_280,
        cut in 0_usize..4,
    ) {
        let mut text = encoded(&(before + &filler.repeat(count) + &behind), layout.encoding);
        // An odd byte, or half a row.
        text.truncate(text.len().saturating_sub(cut));
        let run_one = |bytes: &[u8], slice_bytes: u64| {
            let mut job = job(bytes, &layout);
            job.slice_bytes = slice_bytes.max(1);
            job.needs_last_row_end = Some(needs_last_row_end);
            job
        };
        let plain = told(run(&run_one(&text, 1 << 40)));
        let mut others = vec![
            ("cut", run(&run_one(&text, text.len() as u64 / 7))),
            ("a pipe", run_pipe(&text, run_one(&text, 1))),
            ("a pipe of gzip", run_pipe(&gzip(&text), run_one(&[], 1))),
        ];
        let halves = text.split_at(text.len() / 2);
        for (how, packed) in [
            ("gzip", gzip(&text)),
            ("members", [gzip(halves.0), gzip(halves.1)].concat()),
            ("zstd", frame(&text)),
            ("frames", frames(&text, block_bytes)),
            ("bgzf", bgzf(&text, block_bytes)),
        ] {
            others.push((how, run(&run_one(&packed, packed.len() as u64 / 7))));
        }
        for (how, found) in others {
            let found = told(found);
            prop_assert!(found == plain, "{how}: {}\ninstead of {}", front(&found), front(&plain));
        }
    }
}

/// The plan of a text with a footer of so many rows.
fn plan(bytes: &[u8], footer_rows: u32) -> (Job, FlowSpec) {
    let mut job = job(bytes, &Layout { footer_rows, ..crate::support::layout() });
    job.slice_bytes = bytes.len() as u64 / 8;
    let spec = job.plan().unwrap();
    (job, spec)
}

#[test]
fn a_file_in_pieces_is_cut_in_front_of_its_footer() {
    let text = rows(0, 60_000) + "sum|60000\nend\n";
    let footer = text.find("sum").unwrap() as u64;
    for bytes in [bgzf(text.as_bytes(), 60_000), frames(text.as_bytes(), 300_000)] {
        let (job, spec) = plan(&bytes, 2);
        assert!(spec.source.slices.len() > 3);
        let begin = |slice: &SliceSpec| slice.text.unwrap().begin;
        assert!(spec.source.slices.iter().all(|slice| begin(slice) <= footer));
        let found = run(&job).unwrap();
        assert_eq!((found.rows.len(), found.rejects.len()), (60_000, 0));
        assert_eq!(found.totals[..3], [text.len() as u64, 60_002, 2]);
    }
    // A footer over the last of the places where it could be cut.
    let long = |id: u64| format!("{id}|{}|1.00|2024-01-01\n", "x".repeat(300_000));
    let text = rows(0, 60_000) + &(0..4).map(long).collect::<String>();
    let (job, spec) = plan(&bgzf(text.as_bytes(), 60_000), 4);
    assert!(spec.source.slices.len() > 3);
    assert_eq!(run(&job).unwrap().rows.len(), 60_000);
    // One slice, where the footer is too far from the end.
    let text = rows(0, 60_000) + &(0..20).map(long).collect::<String>();
    let (job, spec) = plan(&bgzf(text.as_bytes(), 60_000), 20);
    assert_eq!((spec.source.slices.len(), run(&job).unwrap().rows.len()), (1, 60_000));
}

#[test]
fn rows_that_cannot_be_held_are_refused() {
    let text = rows(0, 100) + &format!("1|{}|1.00|\n", "x".repeat(400_000)) + &rows(100, 200);
    let (job, mut spec) = plan(&gzip(text.as_bytes()), 3);
    let mut run_with = |text_bytes| {
        spec.source.files[0].held = Some(HeldSpec { rows: 3, text_bytes, memory_bytes: 0 });
        run_flow(&job, &Flow::new(spec.clone()).unwrap())
    };
    assert_eq!(run_with(500_000).unwrap().rows.len(), 198);
    let error = run_with(200_000).unwrap_err();
    assert_eq!(error.what, "rows that may be the footer of a source are too long to be held back");
    // The long row is one of the last three: two are held before it.
    let front = rows(0, 98).len() as u64;
    assert_eq!((error.kind, error.at.unwrap().byte), (ErrorKind::Source, Some(front)));
    // A row that nobody holds is none of them.
    let long = format!("1|{}|1.00|\n", "x".repeat(2 << 20)) + &rows(0, 10);
    let (mut job, _) = plan(&gzip(long.as_bytes()), 3);
    job.memory.max_row_bytes = 1 << 20;
    let found = run(&job).unwrap();
    assert_eq!((found.rows.len(), found.rejects.len()), (7, 1));
}

/// The same text as a file, cut, compressed, and through a pipe.
fn in_every_way(text: &str, layout: &Layout) -> Vec<Outcome> {
    let of = |bytes: &[u8], slice_bytes: u64| {
        let mut job = job(bytes, layout);
        job.slice_bytes = slice_bytes;
        job.needs_last_row_end = Some(false);
        job
    };
    let (bytes, part) = (text.as_bytes(), 1 + text.len() as u64 / 7);
    vec![
        run(&of(bytes, 1 << 40)).unwrap(),
        run(&of(bytes, part)).unwrap(),
        run(&of(&gzip(bytes), part)).unwrap(),
        run(&of(&bgzf(bytes, 20_000), part / 4)).unwrap(),
        run_pipe(bytes, of(&[], part)).unwrap(),
    ]
}

#[test]
fn a_qualifier_that_is_never_closed_is_no_footer() {
    let row = |id: usize| format!("{id};x\n");
    let all = |ids: std::ops::Range<usize>| ids.map(row).collect::<String>();
    for rows in [1, 3] {
        let layout = Layout {
            delimiter: ";".to_owned(),
            qualifier: Some('"'),
            footer_rows: rows,
            columns: columns(2),
            ..Layout::default()
        };
        for behind in [1, 200, 30_000] {
            let before = all(0..400);
            let text = format!("{before}7;\"x\n{}sum\n", all(0..behind));
            for found in in_every_way(&text, &layout) {
                assert_eq!(found.rows.len(), 400);
                let [reject] = &found.rejects[..] else { panic!("{:?}", found.rejects.len()) };
                assert_eq!((reject.rule.as_str(), reject.byte), ("unclosed_qualifier", before.len() as u64 + 2));
                assert_eq!((found.totals[2], found.bad.len()), (0, text.len() - before.len()));
            }
        }
    }
}

#[test]
fn rows_end_where_the_order_of_the_file_says() {
    // The qualifier means nothing in the column `b`, which is the first one in the file.
    let text = |name: &str| Column::new(name, ColumnType::String, true);
    let layout = |footer_rows| Layout {
        delimiter: ",".to_owned(),
        qualifier: Some('"'),
        header: Header::ByName,
        footer_rows,
        columns: vec![text("a"), Column { qualified: false, ..text("b") }],
        ..Layout::default()
    };
    for found in in_every_way("b,a\nx,1\ny,2\n\"z,3\nw,4\nsum\n", &layout(1)) {
        assert_eq!(found.rows, [r#""1" "x""#, r#""2" "y""#, r#""3" "\"z""#, r#""4" "w""#]);
        assert_eq!((found.rejects.len(), found.totals[2]), (0, 2));
    }
    let row = |id: usize| format!("\"x,\"{}{id}\"\n", "12345678\n".repeat(20));
    let rows: String = (0..5000).map(row).collect();
    for (footer_rows, end) in [(0, ""), (2, "sum\nend\n")] {
        for found in in_every_way(&format!("b,a\n{rows}{end}"), &layout(footer_rows)) {
            assert_eq!((found.rows.len(), found.rejects.len()), (5000, 0));
        }
    }
}

#[test]
fn slices_that_were_committed_have_the_same_accounts_when_they_are_read_again() {
    let text = rows(0, 60_000) + "x|bad\nsum\nend\n";
    let (mut job, _) = plan(&bgzf(text.as_bytes(), 60_000), 2);
    job.null_sink = true;
    let report = job.run();
    assert_eq!((report.status, report.rejects.count), (Status::Ok, 1));
    let known = |slice: &SliceReport| CommittedSlice {
        loaded: slice.out,
        rejected: slice.rejected,
        skipped: slice.skipped,
        filtered: slice.filtered,
        ignored: slice.values_ignored,
        text_hash: slice.text_hash,
    };
    job.committed = report.slices.iter().map(|slice| (slice.number, known(slice))).collect();
    let again = job.run();
    assert_eq!((again.status, again.error, again.rejects.count), (Status::Ok, None, 1));
}

#[test]
fn a_last_row_of_a_footer_without_row_end_is_refused_where_it_must_have_one() {
    let text = rows(0, 3) + "sum\n3";
    let place = rows(0, 3).len() as u64 + 4;
    for bytes in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
        let (mut job, _) = plan(&bytes, 2);
        assert_eq!(run(&job).unwrap().rows.len(), 3);
        job.needs_last_row_end = Some(true);
        let error = run(&job).unwrap_err();
        assert_eq!(
            (error.what.as_str(), error.found.as_deref()),
            ("the last row of a source has no row end", Some("\"3\""))
        );
        let at = error.at.unwrap();
        assert_eq!(at.byte, Some(place));
        assert!([None, Some(5)].contains(&at.row), "of a file that is read from its end nobody counts the rows");
    }
}
