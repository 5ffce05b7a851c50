//! Compressed files: the rows, rejects and positions of a flow are those of the text, in one slice or in many.

use std::io::Write as _;

use flate2::Compression as Level;
use headrace_engine::report::{FlowReport, Status};
use headrace_types::{ErrorKind, Header};

use crate::support::{Job, rows};

fn deflated(text: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::DeflateEncoder::new(Vec::new(), Level::fast());
    writer.write_all(text).unwrap();
    writer.finish().unwrap()
}

/// A block of BGZF.
fn block(text: &[u8]) -> Vec<u8> {
    let body = deflated(text);
    let size = (18 + body.len() + 8 - 1) as u16;
    let mut bytes = vec![0x1F, 0x8B, 8, 4, 0, 0, 0, 0, 0, 255, 6, 0, b'B', b'C', 2, 0];
    bytes.extend(size.to_le_bytes());
    bytes.extend(body);
    bytes.extend(crc32fast::hash(text).to_le_bytes());
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes
}

pub fn bgzf(text: &[u8], block_bytes: usize) -> Vec<u8> {
    text.chunks(block_bytes).chain([b"".as_slice()]).flat_map(block).collect()
}

pub fn gzip(text: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), Level::fast());
    writer.write_all(text).unwrap();
    writer.finish().unwrap()
}

pub fn frame(text: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; zstd_safe::compress_bound(text.len())];
    let length = zstd_safe::compress(&mut bytes[..], text, 1).unwrap();
    bytes.truncate(length);
    bytes
}

pub fn frames(text: &[u8], frame_bytes: usize) -> Vec<u8> {
    text.chunks(frame_bytes).flat_map(frame).collect()
}

/// The seekable format: frames that do not say how long they are, and a table that does.
fn seekable(text: &[u8], frame_bytes: usize) -> Vec<u8> {
    let (mut bytes, mut table) = (Vec::new(), Vec::new());
    for piece in text.chunks(frame_bytes) {
        let mut context = zstd_safe::CCtx::create();
        context.set_parameter(zstd_safe::CParameter::ContentSizeFlag(false)).unwrap();
        let mut frame = vec![0; zstd_safe::compress_bound(piece.len())];
        let length = context.compress2(&mut frame[..], piece).unwrap();
        bytes.extend(&frame[..length]);
        table.extend((length as u32).to_le_bytes());
        table.extend((piece.len() as u32).to_le_bytes());
    }
    let count = (table.len() / 8) as u32;
    table.extend(count.to_le_bytes());
    table.push(0);
    table.extend(0x8F92_EAB1_u32.to_le_bytes());
    bytes.extend(0x184D_2A5E_u32.to_le_bytes());
    bytes.extend((table.len() as u32).to_le_bytes());
    [bytes, table].concat()
}

fn job(bytes: &[u8], slice_bytes: u64) -> Job {
    let mut job = Job::of(bytes);
    job.compression = headrace_engine::spec::Compression::Auto;
    job.slice_bytes = slice_bytes;
    job.limit = u64::MAX;
    job
}

/// Rows of changing length, some of them bad, with a header and a last row that has no end.
fn text() -> String {
    let mut text = String::from("id|name|amount|day\n");
    for number in 0..40_000 {
        let name = "x".repeat(1 + number % 89);
        let amount = if number % 997 == 0 { "bad" } else { "1.25" };
        text += &format!("{number}|{name}|{amount}|2024-01-01\n");
    }
    text + "40000|last|1.00|2024-02-29"
}

fn places(report: &FlowReport) -> Vec<(u64, u64)> {
    report.rejects.first.iter().map(|reject| (reject.row, reject.byte)).collect()
}

#[test]
fn compressed_files_load_like_their_text() {
    let text = text();
    let text = text.as_bytes();
    let plain = {
        let mut job = job(text, 1 << 40);
        job.layout.header = Header::Skip;
        job.run()
    };
    assert_eq!((plain.status, plain.rejects.count), (Status::Ok, 41));
    for (bytes, least_slices) in [
        (gzip(text), 1),
        (frame(text), 1),
        (bgzf(text, 60_000), 5),
        (bgzf(text, 65_280), 5),
        (frames(text, 300_000), 4),
        (frames(text, 1_000), 4),
        (seekable(text, 300_000), 4),
        ([bgzf(text, 60_000), gzip(b"")].concat(), 1),
    ] {
        let mut job = job(&bytes, bytes.len() as u64 / 6);
        job.layout.header = Header::Skip;
        let report = job.run();
        assert_eq!((report.status, &report.error), (Status::Ok, &None));
        assert_eq!(report.columns, plain.columns);
        assert_eq!(places(&report), places(&plain), "rows and bytes of the text");
        let sum = |get: fn(&headrace_engine::report::SliceReport) -> u64| report.slices.iter().map(get).sum::<u64>();
        assert_eq!((sum(|slice| slice.bytes), sum(|slice| slice.lines)), (text.len() as u64, 40_002));
        assert!(report.slices.len() >= least_slices && (least_slices > 1 || report.slices.len() == 1));
    }
}

#[test]
fn a_row_that_crosses_many_pieces_stays_whole() {
    let long = "y".repeat(900_000);
    let text = format!("{}7|{long}|1.00|2024-01-01\n{}", rows(0, 20_000), rows(20_000, 20_000));
    let plain = job(text.as_bytes(), 1 << 40).run();
    let bytes = bgzf(text.as_bytes(), 40_000);
    let report = job(&bytes, bytes.len() as u64 / 9).run();
    assert_eq!((report.status, report.columns), (Status::Ok, plain.columns));
    assert!(report.slices.len() > 1);
}

#[test]
fn a_damaged_piece_fails_the_flow_wherever_it_is() {
    let text = rows(0, 60_000);
    let bytes = bgzf(text.as_bytes(), 50_000);
    for part in 1..10 {
        let mut bytes = bytes.clone();
        let at = bytes.len() * part / 10;
        bytes[at] ^= 0x10;
        let mut job = job(&bytes, bytes.len() as u64 / 5);
        let error = match job.plan() {
            Ok(_) => job.run().error,
            Err(error) => Some(error),
        };
        let error = error.expect("an error");
        assert_eq!(error.kind, ErrorKind::Source, "{error}");
        assert!(error.found.unwrap().contains("bytes of text"));
        job.limit = 0;
    }
}

#[test]
fn lengths_that_headers_promise_are_checked() {
    let text = rows(0, 60_000);
    let mut bytes = seekable(text.as_bytes(), 300_000);
    // One more byte in the first frame, says the table.
    let table = bytes.len() - 9 - 8 * text.len().div_ceil(300_000);
    bytes[table + 4] += 1;
    let error = job(&bytes, bytes.len() as u64 / 4).run().error.expect("an error");
    assert!(error.found.clone().unwrap().starts_with("other lengths of text than the headers say"), "{error}");
}

#[test]
fn a_last_row_without_row_end_is_refused_where_it_must_have_one() {
    let whole = rows(0, 1000);
    let cut = &whole[..whole.len() - 3];
    for (text, is_good) in [(whole.as_str(), true), (cut, false)] {
        for bytes in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
            let mut job = job(&bytes, 4000);
            job.needs_last_row_end = Some(true);
            let report = job.run();
            assert_eq!(report.status == Status::Ok, is_good);
            if let Some(error) = report.error {
                assert_eq!(error.what, "the last row of a source has no row end");
                let at = error.at.unwrap();
                assert_eq!(at.byte, Some(text.rfind('\n').unwrap() as u64 + 1));
            }
        }
    }
}
