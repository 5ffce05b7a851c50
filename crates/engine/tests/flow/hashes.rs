//! Hashes of the texts of slices: those of the bytes that stand in the file, whatever else is different.

use std::io::Write as _;

use headrace_engine::Flow;
use headrace_engine::report::{FlowReport, SliceReport, Status};
use headrace_engine::spec::{Compression, FileSpec, FlowSpec, GenerateSource, SinkSpec, SliceSpec};
use headrace_engine::text_hash::TextHash;
use headrace_generate::TpchTable;
use headrace_types::{Encoding, ErrorKind, Header};
use twox_hash::XxHash3_64;

use crate::packed::{bgzf, frame, frames, gzip};
use crate::support::{Job, join, rows};

fn hash(bytes: &[u8]) -> Option<TextHash> {
    Some(TextHash(XxHash3_64::oneshot(bytes)))
}

fn hashes(report: &FlowReport) -> Vec<Option<TextHash>> {
    assert_eq!(report.status, Status::Ok, "{:?}", report.error);
    report.slices.iter().map(|slice| slice.text_hash).collect()
}

/// What `xxhsum` would tell of the slices: the first one begins with its file.
fn expected(spec: &FlowSpec, text: &[u8]) -> Vec<Option<TextHash>> {
    let range = |slice: &SliceSpec| {
        let text = slice.text();
        (text.begin as usize, text.end.map(|end| end as usize))
    };
    let bytes = |slice: &SliceSpec| match range(slice) {
        (begin, end) if slice.number == 1 => &text[..end.unwrap_or(text.len()).max(begin)],
        (begin, end) => &text[begin..end.unwrap_or(text.len())],
    };
    spec.source.slices.iter().map(|slice| hash(bytes(slice))).collect()
}

/// Skipped lines, a header, comments, blank, bad and long rows, rows that end with carriage returns, a footer without row end.
fn text() -> Vec<u8> {
    let long = format!("2000|{}|1.00|\r\n", "x".repeat(30_000));
    let too_long = format!("2001|{}|1.00|\n", "y".repeat(300_000));
    let parts = ["\u{FEFF}skipped\nid|name|amount|day\n#comment\n", &rows(0, 300), "bad\n\r\n", &long, &rows(300, 600)];
    (parts.concat() + &too_long + &rows(600, 900) + "sum\r\ntotal 900").into_bytes()
}

fn job(bytes: &[u8]) -> Job {
    let mut job = Job::of(bytes);
    job.layout.skip_lines = 1;
    job.layout.header = Header::Skip;
    job.layout.footer_rows = 2;
    job.layout.comment = Some("#".to_owned());
    job.memory.max_row_bytes = 100_000;
    job.limit = 100;
    job
}

#[test]
fn a_file_with_one_slice_has_the_hash_that_a_tool_tells() {
    // Known answers of xxHash itself.
    assert_eq!(hash(b"").unwrap().to_string(), "2d06800538d394c2");
    let text = text();
    let report = job(&text).run();
    assert_eq!(hashes(&report), [hash(&text)]);
    let bytes = report.slices[0].bytes;
    assert_eq!(bytes, text.len() as u64 - 3, "a mark is hashed, and counted by nobody");
}

#[test]
fn hashes_depend_on_nothing_but_the_text() {
    let text = text();
    for slice_bytes in [1 << 30, 20_000, 3_000] {
        for (streams, block_bytes, null_sink) in
            [(1, 4096, true), (3, 4096, true), (3, 10_001, false), (2, 100_000, true)]
        {
            let mut job = job(&text);
            (job.slice_bytes, job.streams, job.memory.block_bytes) = (slice_bytes, streams, block_bytes);
            let spec = job.plan().unwrap();
            let report = if null_sink { job.run() } else { job.arrow().run_arrow().1 };
            assert_eq!(hashes(&report), expected(&spec, &text), "{slice_bytes} {streams} {block_bytes}");
        }
    }
}

#[test]
fn a_compressed_file_has_the_hash_of_its_text() {
    let text = text();
    let packed = [gzip(&text), bgzf(&text, 5_000), frame(&text), frames(&text, 7_000)];
    for (number, bytes) in packed.iter().enumerate() {
        for slice_bytes in [1 << 30, bytes.len() as u64 / 4] {
            let mut job = job(bytes);
            (job.compression, job.slice_bytes) = (Compression::Auto, slice_bytes);
            let spec = job.plan().unwrap();
            let is_whole = slice_bytes > 1 << 20 || matches!(number, 0 | 2);
            assert_eq!(spec.source.slices.len() == 1, is_whole, "{number}");
            let report = job.run();
            assert_eq!(hashes(&report), expected(&spec, &text), "{number}");
            if is_whole {
                assert_eq!(hashes(&report), [hash(&text)]);
            }
        }
    }
}

#[test]
fn a_file_in_another_encoding_has_the_hash_of_its_bytes() {
    let text = format!("id|name|amount|day\n{}sum\n", rows(0, 700));
    let file: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for mark in [&b"\xFF\xFE"[..], b""] {
        let file = [mark, &file].concat();
        for slice_bytes in [1 << 30, 5_000] {
            let mut job = Job::of(&file);
            job.layout.encoding = Encoding::try_from("utf-16le".to_owned()).unwrap();
            (job.layout.header, job.layout.footer_rows, job.slice_bytes) = (Header::Skip, 1, slice_bytes);
            let spec = job.plan().unwrap();
            assert_eq!(hashes(&job.run()), expected(&spec, &file));
            let mut packed = Job::of(gzip(&file));
            (packed.layout, packed.compression) = (job.layout, Compression::Gzip);
            assert_eq!(hashes(&packed.run()), [hash(&file)]);
        }
    }
}

#[test]
fn what_comes_from_a_pipe_has_the_hash_of_its_text() {
    let text = text();
    for (bytes, compression) in [(text.clone(), Compression::None), (gzip(&text), Compression::Auto)] {
        let mut job = job(b"");
        let path = job.folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        (job.files, job.compression, job.needs_last_row_end) = (vec![path.clone()], compression, Some(false));
        let flow = job.flow();
        flow.start().unwrap();
        let writer = std::thread::spawn(move || {
            let mut pipe = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            bytes.chunks(777).for_each(|part| pipe.write_all(part).unwrap());
        });
        assert_eq!(hashes(&join(&flow)), [hash(&text)]);
        writer.join().unwrap();
    }
}

#[test]
fn generated_rows_have_the_hash_of_the_file_that_they_would_be() {
    let mut text = Vec::new();
    let mut chunk = headrace_generate::TpchText::new(TpchTable::Region, 0.01, 1, 1).unwrap();
    std::io::Read::read_to_end(&mut chunk, &mut text).unwrap();
    let mut job = Job::of(&text);
    job.limit = 1000;
    let mut spec = job.plan().unwrap();
    spec.source.files = vec![FileSpec { path: "region.tbl".to_owned(), ..FileSpec::default() }];
    spec.source.slices = vec![SliceSpec { number: 1, ..SliceSpec::default() }];
    spec.source.generate = Some(GenerateSource { table: "region".to_owned(), scale: 0.01, chunks: 1 });
    let flow = Flow::new(spec).unwrap();
    flow.start().unwrap();
    assert_eq!(hashes(&join(&flow)), [hash(&text)]);
}

#[test]
fn rows_that_come_back_are_hashed_by_groups() {
    let text = rows(0, 40);
    let cut = rows(0, 15).len() as u64;
    let job = Job::of([b"\xEF\xBB\xBF", text.as_bytes()].concat());
    let mut spec = job.plan().unwrap();
    let end = text.len() as u64 + 3;
    let file = |first_byte| FileSpec { first_byte, ..spec.source.files[0].clone() };
    spec.source.files = vec![file(3), file(3 + cut)];
    let slice = |number: u32, begin_byte, end_byte, first_row| SliceSpec {
        number,
        file: number as usize - 1,
        begin_byte,
        end_byte,
        first_row: Some(first_row),
        ..SliceSpec::default()
    };
    spec.source.slices = vec![slice(1, 3, 3 + cut, 0), slice(2, 3 + cut, end, 15)];
    let flow = Flow::new(spec).unwrap();
    flow.start().unwrap();
    let first = [b"\xEF\xBB\xBF", rows(0, 15).as_bytes()].concat();
    assert_eq!(hashes(&join(&flow)), [hash(&first), hash(rows(15, 40).as_bytes())]);
}

#[test]
fn slices_that_were_committed_keep_their_hash_and_must_have_it() {
    let text = text();
    let mut job = job(&text);
    job.slice_bytes = 20_000;
    let undisturbed = job.run();
    let known = |slice: &SliceReport| headrace_engine::spec::CommittedSlice {
        loaded: slice.out,
        rejected: slice.rejected,
        skipped: slice.skipped,
        filtered: slice.filtered,
        ignored: slice.values_ignored,
        text_hash: slice.text_hash,
    };
    job.committed = undisturbed.slices.iter().map(|slice| (slice.number, known(slice))).collect();
    assert_eq!(hashes(&job.run()), hashes(&undisturbed));
    // Slices that are read again, for their rejects, are other ones now.
    let mut other = text.clone();
    let at = other.iter().position(|byte| *byte == b'b').unwrap();
    other[at] = b'c';
    std::fs::write(job.file(0), other).unwrap();
    let changed = job.run();
    let error = changed.error.unwrap();
    assert_eq!((changed.status, error.kind), (Status::Failed, ErrorKind::FileChanged));
    assert!(error.what.contains("another text"), "{error:?}");
    // An older version has kept no hashes.
    job.committed.values_mut().for_each(|slice| slice.text_hash = None);
    assert!(job.run().slices.iter().all(|slice| slice.text_hash.is_some() == slice.stream.is_some()));
}

#[test]
fn nobody_hashes_for_a_second_look_at_rows() {
    let text = rows(0, 50);
    let job = Job::of(&text);
    let ended = job.run().slices;
    let mut spec = job.plan().unwrap();
    spec.sink = SinkSpec::Locate { rows: vec![headrace_engine::row_position::RowPosition::first(1)], ended };
    let flow = Flow::new(spec).unwrap();
    flow.start().unwrap();
    assert_eq!(hashes(&join(&flow)), [None]);
}
