//! Files with a qualifier: row ends inside fields, at every place of a block and beyond it.

use headrace_engine::report::Status;
use headrace_types::Header;

use crate::support::{Job, rows};

/// A job whose layout has the qualifier `"`; one stream, so that rows come in file order.
fn job(text: impl AsRef<[u8]>) -> Job {
    let mut job = Job::of(text);
    job.layout.qualifier = Some('"');
    job.streams = 1;
    job
}

/// A row as [`crate::support::values`] shows it, and as it stands in the file.
fn row(id: usize, name: &str) -> (String, String) {
    (format!("{id}|{name}|{id}.00|"), format!("{id}|\"{}\"|\"{id}.00\"|\n", name.replace('"', "\"\"")))
}

/// Names full of what matters.
fn name(id: usize) -> String {
    ["a\nb", "\n", "|\"\n\"|", "\"\"\n", "x|y\r\n", "", "plain"][id % 7].repeat(id % 5 + 1)
}

/// Shown rows and file text.
fn table(ids: std::ops::Range<usize>) -> (Vec<String>, String) {
    let (shown, text): (Vec<String>, Vec<String>) = ids.map(|id| row(id, &name(id))).unzip();
    (shown, text.concat())
}

/// A row of exactly `bytes` bytes, nearly all of them line feeds, delimiters and doubled qualifiers inside qualifiers.
fn long_row(id: usize, bytes: usize) -> (String, String) {
    let frame = row(id, "").1.len();
    let mut name = "\n|\"".repeat((bytes - frame) / 4);
    name += &"w".repeat((bytes - frame) % 4);
    let (shown, text) = row(id, &name);
    assert_eq!(text.len(), bytes);
    (shown, text)
}

#[test]
fn quoted_row_ends_at_every_place_of_a_block() {
    let (mut expected, text) = table(1..600);
    assert!(text.len() > 3 * 4096);
    expected.insert(0, String::new());
    // A first row of growing length moves all others over the ends of the blocks.
    for shift in 1..80 {
        let (shown, first) = row(7, &"s".repeat(shift));
        expected[0] = shown;
        let text = first + &text;
        for text in [text.as_str(), text.trim_end_matches('\n')] {
            let (found, report) = job(text).arrow().run_arrow();
            assert_eq!(found.unwrap(), expected, "{shift}");
            assert_eq!((report.slices[0].lines, report.slices[0].bytes), (600, text.len() as u64));
        }
    }
}

#[test]
fn any_slice_size_gives_the_same_rows() {
    let (mut expected, text) = table(1..300);
    expected.sort();
    for (slice_bytes, least_slices) in [(1, 250), (100, 50), (4096, 3), (1 << 30, 1)] {
        let mut job = job(&text).arrow();
        (job.slice_bytes, job.streams) = (slice_bytes, 4);
        let (found, report) = job.run_arrow();
        let mut found = found.unwrap();
        found.sort();
        assert_eq!(found, expected);
        assert!(report.slices.len() >= least_slices, "{} slices of {slice_bytes}", report.slices.len());
    }
}

#[test]
fn rows_longer_than_a_block_alone_and_in_succession() {
    for lengths in [
        vec![4096],
        vec![4097],
        vec![9000, 9000],
        vec![9000, 9000, 9000, 9000, 100, 9000],
        vec![20_000, 7000, 30_000, 4095, 4096, 4097, 60_000],
        vec![8192, 8193, 16_384, 16_385, 16_383],
    ] {
        let (mut expected, mut text) = table(1..10);
        for (id, length) in lengths.iter().enumerate() {
            let (shown, long) = long_row(id, *length);
            expected.push(shown);
            text += &long;
        }
        let (shown, behind) = table(10..20);
        expected.extend(shown);
        text += &behind;
        for text in [text.as_str(), text.trim_end_matches('\n')] {
            for block_bytes in [4096, 5000, 1 << 20] {
                let mut job = job(text).arrow();
                job.memory.block_bytes = block_bytes;
                let (found, report) = job.run_arrow();
                assert_eq!(report.error, None, "{lengths:?} {block_bytes}");
                assert_eq!(found.unwrap(), expected, "{lengths:?} {block_bytes}");
                assert_eq!(report.slices[0].bytes, text.len() as u64);
            }
        }
    }
}

#[test]
fn a_row_is_too_long_from_max_row_on_whatever_the_blocks() {
    const MAX: usize = 10_000;
    for (length, accepted) in [(MAX - 1, true), (MAX, true), (MAX + 1, false), (MAX + 5000, false), (10 * MAX, false)] {
        for (before, after) in [(0, 0), (1, 1), (40, 300), (300, 2)] {
            for block_bytes in [4096, 5000, 9999, 10_000] {
                let (front, back) = (table(100..100 + before).1, table(1000..1000 + after).1);
                let text = front.clone() + &long_row(1, length).1 + &back;
                let mut job = job(&text);
                (job.memory.max_row_bytes, job.memory.block_bytes, job.limit) = (MAX, block_bytes, 5);
                let report = job.run();
                assert_eq!((report.status, report.rejects.count), (Status::Ok, u64::from(!accepted)));
                assert_eq!(report.sink.rows, (before + after) as u64 + u64::from(accepted));
                assert_eq!((report.slices[0].bytes, report.slices[0].skipped), (text.len() as u64, 0));
                if !accepted {
                    let reject = &report.rejects.first[0];
                    assert_eq!((reject.row, reject.byte), (before as u64 + 1, front.len() as u64));
                    assert_eq!((reject.rule.as_str(), reject.bad_bytes), ("row_too_long", length as u64));
                    assert_eq!(job.bad_bytes(), long_row(1, length).1.as_bytes());
                }
            }
        }
    }
}

#[test]
fn the_end_of_a_long_row_is_found_wherever_it_is_cut() {
    // The row is read on in pieces of a block: its last bytes fall on every side of every cut.
    for shift in 0..12 {
        for tail in ["\"|1.00|\n", "\"\"\n\"|1.00|\n", "\n\"\"\"|1.00|\n", "\"x\n", "\"\r\n"] {
            let long = format!("1|\"{}\n{tail}", "w".repeat(3 * 4096 - 8 + shift));
            let (_, behind) = table(1..4);
            let mut job = job(long + &behind);
            (job.memory.max_row_bytes, job.limit) = (4096, 1);
            let report = job.run();
            assert_eq!((report.status, report.sink.rows), (Status::Ok, 3), "{shift} {tail:?}");
            assert_eq!(report.rejects.first[0].rule, "row_too_long");
        }
    }
}

#[test]
fn an_open_qualifier_rejects_the_rest_of_the_file_as_one_row() {
    let (shown, front) = table(1..200);
    for rest in ["\"", "\"\n", "\"\n\n1|a|2.00|\n", &format!("\"{}", rows(1, 1000))] {
        let text = format!("{front}7|{rest}");
        for block_bytes in [4096, 65_536] {
            let mut job = job(&text);
            (job.memory.block_bytes, job.limit) = (block_bytes, 1);
            let report = job.run();
            assert_eq!((report.status, report.sink.rows), (Status::Ok, shown.len() as u64));
            assert_eq!((report.slices[0].lines, report.slices[0].bytes), (200, text.len() as u64));
            let reject = &job.reject_lines()[0];
            assert_eq!((reject.row, reject.byte), (200, front.len() as u64 + 2));
            assert_eq!((reject.code.as_str(), reject.column.as_deref()), ("HR105", Some("name")));
            assert_eq!(reject.message, "the qualifier of a value for column `name` (2) is never closed");
            assert_eq!(reject.value, rest[..rest.len().min(1000)]);
            let bad = &text.as_bytes()[front.len()..];
            assert_eq!(job.bad_bytes().strip_suffix(b"\n").unwrap_or_default(), bad.strip_suffix(b"\n").unwrap_or(bad));
        }
    }
}

#[test]
fn an_open_qualifier_behind_the_last_column_names_none() {
    let mut job = job("1|a|2.00||\"\n2|b|3.00|\n");
    job.limit = 1;
    let report = job.run();
    assert_eq!(report.status, Status::Ok);
    let reject = &report.rejects.first[0];
    assert_eq!((reject.code.as_str(), reject.column.as_deref(), reject.byte), ("HR105", None, 10));
    assert_eq!(reject.message, "a qualifier behind the last column of a row is never closed");
}

#[test]
fn an_open_qualifier_beyond_max_row_is_told_where_it_opened() {
    let (_, front) = table(1..100);
    for length in [4096, 4097, 20_000, 65_536] {
        let text = format!("{front}7|\"{}", "\n".repeat(length));
        let mut job = job(&text);
        (job.memory.max_row_bytes, job.limit) = (4096, 1);
        let report = job.run();
        assert_eq!((report.status, report.sink.rows), (Status::Ok, 99));
        let reject = &report.rejects.first[0];
        assert_eq!(
            (reject.row, reject.byte, reject.rule.as_str()),
            (100, front.len() as u64 + 2, "unclosed_qualifier")
        );
        assert_eq!((reject.row_byte, reject.column.as_deref()), (front.len() as u64, Some("name")));
        assert_eq!(report.slices[0].bytes, text.len() as u64);
    }
}

#[test]
fn a_header_ends_where_a_row_ends() {
    let (expected, body) = table(1..20);
    for width in [1, 5000] {
        let header = format!("\"id\n{}\"|name\n", "h\n".repeat(width));
        let mut job = job(header + &body).arrow();
        job.layout.header = Header::Skip;
        let (found, report) = job.run_arrow();
        assert_eq!((found.unwrap(), report.slices[0].skipped), (expected.clone(), 1));
    }
}

#[test]
fn rows_are_counted_and_not_lines() {
    let mut job = job("1|\"a\n\n\nb\"|1.00|\n2|\"c\"d|1.00|\nx|e|1.00|\n\n\"3\"|f|\"1.5x\"|\n");
    job.limit = 10;
    assert_eq!(job.run().status, Status::Ok);
    let found: Vec<_> = job.reject_lines().into_iter().map(|bad| (bad.row, bad.byte, bad.value, bad.message)).collect();
    let expected = [
        (2, 18, "\"c\"d", "text follows the closing qualifier of a value for column `name` (2)"),
        (3, 29, "x", "cannot convert a value for column `id` (1) to int64"),
        (5, 46, "\"1.5x\"", "cannot convert a value for column `amount` (3) to decimal(15,2)"),
    ];
    let expected = expected.map(|(row, byte, value, message)| (row, byte, value.to_owned(), message.to_owned()));
    assert_eq!(found, expected);
}
