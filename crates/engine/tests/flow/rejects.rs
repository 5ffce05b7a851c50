//! Rejects: limits, the first in file order, exact rows and bytes, the merged files.

use headrace_engine::report::Status;
use headrace_engine::spec::KeepRejects;
use headrace_types::{ErrorKind, Trim};

use crate::support::{Job, row, rows};

/// A bad row of the test data.
pub struct Bad {
    row: u64,
    /// First byte of the bad value.
    byte: u64,
    rule: &'static str,
    /// The whole row.
    bytes: Vec<u8>,
}

/// A file where every row `id` with `id % every == 0` is bad in one of several ways, and its bad rows.
pub fn dirty(count: u64, every: u64, row_end: &str) -> (Vec<u8>, Vec<Bad>) {
    let mut text = vec![];
    let mut bad = vec![];
    for id in 1..=count {
        let start = text.len() as u64;
        let good = row(id);
        let mut line = good.clone().into_bytes();
        if id % every == 0 {
            let (rule, offset, bytes): (_, _, Vec<u8>) = match id / every % 6 {
                0 => ("bad_integer", 0, format!("x{good}").into()),
                1 => ("too_few_fields", 0, format!("{id}").into()),
                2 => ("too_many_fields", 0, format!("{good}|").into()),
                3 => ("invalid_utf8", 2, b"1|\xFFabc|1.00|".to_vec()),
                4 => ("would_round", 4, b"1|a|1.001|".to_vec()),
                _ => ("null_not_allowed", 2, b"1||1.00|".to_vec()),
            };
            line = bytes;
            let whole = [line.as_slice(), row_end.as_bytes()].concat();
            bad.push(Bad { row: id, byte: start + offset, rule, bytes: whole });
        }
        text.extend(line);
        text.extend_from_slice(row_end.as_bytes());
    }
    (text, bad)
}

/// Checks the merged files against the bad rows of files 0, 1, ...
fn check_merged(job: &Job, expected: &[&[Bad]]) {
    let lines = job.reject_lines();
    let mut lines = lines.iter();
    let bad_bytes = job.bad_bytes();
    let mut at = 0;
    for (file, bad_rows) in expected.iter().enumerate() {
        for bad in *bad_rows {
            let found = lines.next().expect("a reject is missing");
            assert_eq!(found.file, job.file(file).to_str().unwrap());
            assert_eq!((found.row, found.byte, found.rule.as_str()), (bad.row, bad.byte, bad.rule));
            assert_eq!((found.bad_byte, found.bad_bytes), (at, bad.bytes.len() as u64));
            assert_eq!(bad_bytes[at as usize..][..bad.bytes.len()], bad.bytes[..]);
            at += bad.bytes.len() as u64 + u64::from(!bad.bytes.ends_with(b"\n"));
        }
    }
    assert!(lines.next().is_none());
    assert_eq!(at, bad_bytes.len() as u64);
    assert_eq!(job.other_files(), ["rejected.bad", "rejected.jsonl"]);
}

#[test]
fn merged_files_hold_every_bad_row_in_file_order() {
    for row_end in ["\n", "\r\n"] {
        let (first, bad_first) = dirty(900, 7, row_end);
        let clean = rows(0, 50).replace('\n', row_end);
        let (last, bad_last) = dirty(300, 5, row_end);
        let count = (bad_first.len() + bad_last.len()) as u64;
        for (slice_bytes, streams, block_bytes) in
            [(1 << 30, 1, 1 << 20), (700, 4, 4096), (5000, 3, 4096), (60, 2, 4096)]
        {
            let mut job = Job::of_files(&[&first, clean.as_bytes(), &last]);
            (job.slice_bytes, job.streams, job.limit) = (slice_bytes, streams, 1000);
            job.memory.block_bytes = block_bytes;
            let report = job.run();
            assert_eq!((report.status, report.rejects.count), (Status::Ok, count));
            check_merged(&job, &[&bad_first, &[], &bad_last]);
            assert_eq!(report.rejects.first, job.reject_lines()[..10]);
            let [lines, bytes] = report.rejects.files.as_slice() else { panic!("two files are named") };
            assert!(lines.ends_with("rejected.jsonl") && bytes.ends_with("rejected.bad"));
        }
    }
}

#[test]
fn a_last_row_without_row_end_is_kept_as_it_is() {
    for text in ["1|a|1.00|\n2|b", "1|a|1.00|\r\n2|b"] {
        let mut job = Job::of(text);
        job.limit = 1;
        assert_eq!(job.run().status, Status::Ok);
        assert_eq!(job.bad_bytes(), b"2|b\n");
        assert_eq!(job.reject_lines()[0].row, 2);
    }
}

#[test]
fn header_blank_lines_and_byte_order_mark_count_in_rows_and_bytes() {
    for row_end in ["\n", "\r\n"] {
        let lines = ["\u{feff}header", &row(1), "", "", &row(2), "x|a|1.00|", &row(3)];
        let text = lines.join(row_end);
        let byte = text.find("x|a").unwrap() as u64;
        for slice_bytes in 1..text.len() as u64 {
            let mut job = Job::of(&text);
            (job.slice_bytes, job.limit, job.layout.skip_lines) = (slice_bytes, 1, 1);
            assert_eq!(job.run().status, Status::Ok);
            let found = job.reject_lines();
            assert_eq!((found.len(), found[0].row, found[0].byte), (1, 6, byte), "{slice_bytes}");
            job.limit = 0;
            let at = job.run().error.unwrap().at.unwrap();
            assert_eq!((at.row, at.byte), (Some(6), Some(byte)));
        }
    }
}

#[test]
fn limit_0_gives_the_first_bad_row_also_when_it_lies_in_a_late_slice() {
    let clean = rows(1, 2001);
    let text = clean.clone() + "2001|a|b|2024-01-01\n" + &rows(2002, 2100);
    let byte = clean.len() as u64 + 7;
    for (slice_bytes, streams) in [(1 << 30, 1), (5000, 1), (5000, 2), (1000, 8), (20_000, 4)] {
        for arrow in [false, true] {
            let mut job = Job::of(&text);
            (job.slice_bytes, job.streams) = (slice_bytes, streams);
            let report = if arrow {
                job = job.arrow();
                let (found, report) = job.run_arrow();
                assert_eq!(found.unwrap_err().kind, ErrorKind::RejectLimit);
                report
            } else {
                job.run()
            };
            let error = report.error.unwrap();
            assert_eq!((report.status, error.kind), (Status::Failed, ErrorKind::RejectLimit));
            let at = error.at.unwrap();
            assert_eq!((at.row, at.byte), (Some(2001), Some(byte)));
            assert_eq!(at.file, job.file(0).to_str().unwrap());
            assert_eq!(error.what, "cannot convert a value for column `amount` (3) to decimal(15,2)");
            assert_eq!(error.found.as_deref(), Some("\"b\""));
            assert!(error.expected.is_some() && error.hint.is_some());
        }
    }
}

#[test]
fn rows_are_counted_in_slices_that_were_never_read() {
    // The only slice that is read is the last and largest; those before it are counted when the error is made.
    let lines = "1|a|1.00|\n".repeat(40);
    let text = lines.clone() + "\n\n" + &format!("x|{}|1.00|\n", "y".repeat(3000));
    for slice_bytes in [100, 200] {
        let mut job = Job::of(&text);
        (job.streams, job.slice_bytes) = (1, slice_bytes);
        let report = job.run();
        assert!(report.slices.is_empty() && job.plan().unwrap().source.slices.len() > 2);
        let at = report.error.unwrap().at.unwrap();
        assert_eq!((at.row, at.byte), (Some(43), Some(lines.len() as u64 + 2)));
    }
}

#[test]
fn the_first_in_file_order_among_those_found_is_reported() {
    // Both files are bad; the larger one is read first and ends the flow, unless the other stream found its own by then.
    let small = "x|a|1.00|\n";
    let large = rows(1, 11) + "y|a|1.00|\n" + "z|a|1.00|\n" + &rows(11, 20);
    let mut job = Job::of_files(&[small.as_bytes(), large.as_bytes()]);
    job.streams = 1;
    let report = job.run();
    let at = report.error.unwrap().at.unwrap();
    assert_eq!((at.file.as_str(), at.row), (job.file(1).to_str().unwrap(), Some(11)));
    assert_eq!(report.rejects.count, 2); // those of the block
    // With a limit of 2 the second file is read as well, and its reject is the first in file order.
    job.limit = 2;
    let report = job.run();
    let error = report.error.unwrap();
    assert_eq!((error.at.unwrap().file.as_str(), error.kind), (job.file(0).to_str().unwrap(), ErrorKind::RejectLimit));
    assert_eq!(error.what, "3 rows were rejected; the limit is 2");
    assert!(error.found.unwrap().contains("`id`"));
    job.limit = 3;
    assert_eq!(job.run().status, Status::Ok);
}

#[test]
fn of_two_streams_that_both_find_one_the_first_in_file_order_is_reported() {
    for _ in 0..20 {
        let mut job = Job::of_files(&[b"x|a|1.00|\n", b"1|a|1.00|\ny|a|1.00|\n"]);
        job.streams = 2;
        let report = job.run();
        let at = report.error.unwrap().at.unwrap();
        let (file, row) = if report.rejects.count == 2 || at.row == Some(1) { (0, 1) } else { (1, 2) };
        assert_eq!((at.file.as_str(), at.row), (job.file(file).to_str().unwrap(), Some(row)));
    }
}

#[test]
fn limit_n_allows_n() {
    let (text, bad) = dirty(400, 10, "\n");
    assert_eq!(bad.len(), 40);
    for (limit, status) in [(39, Status::Failed), (40, Status::Ok), (u64::MAX, Status::Ok)] {
        let mut job = Job::of(&text);
        job.limit = limit;
        (job.slice_bytes, job.streams) = (500, 3);
        assert_eq!(job.run().status, status, "{limit}");
    }
}

#[test]
fn by_rule_counts_and_values_are_told() {
    let mut job = Job::of(b"x|a|1.00|\ny|b|1.00|\n1|c|\xFF\"|\n2|d|1|2|3\n3||1|\n");
    job.limit = 10;
    let report = job.run();
    let counts: Vec<(&str, u64)> = report.rejects.by_rule.iter().map(|(rule, count)| (rule.as_str(), *count)).collect();
    assert_eq!(counts, [("bad_decimal", 1), ("bad_integer", 2), ("null_not_allowed", 1), ("too_many_fields", 1)]);
    let found = job.reject_lines();
    assert_eq!(found[2].value, "\\xFF\"");
    assert_eq!((found[2].column.as_deref(), found[2].column_number), (Some("amount"), Some(3)));
    assert_eq!((found[2].column_type.as_deref(), found[2].code.as_str()), (Some("decimal(15,2)"), "HR302"));
    assert_eq!(
        (found[3].column.as_deref(), found[3].message.as_str()),
        (None, "a row does not fit the layout: 5 fields instead of 4")
    );
    assert_eq!(found[4].message, "no value for column `name` (2), which is not nullable");
}

#[test]
fn a_reject_folder_that_cannot_be_written_fails_the_flow() {
    let job = Job::of("x\n");
    let mut spec = job.plan().unwrap();
    spec.rejects.folder = job.folder.path().join("missing").to_str().unwrap().to_owned();
    spec.rejects.limit = Some(100);
    let flow = headrace_engine::Flow::new(spec).unwrap();
    flow.start().unwrap();
    let error = crate::support::join(&flow).error.unwrap();
    assert_eq!(error.kind, ErrorKind::Output);
}

#[test]
fn a_block_of_nothing_but_bad_rows_needs_little_memory_and_writes_little() {
    // Two bytes a row: half a million rejects in a block. The limit is passed at the first.
    let text = "x\n".repeat(1 << 20);
    let mut job = Job::of(&text);
    (job.memory.block_bytes, job.limit) = (1 << 20, 0);
    let report = job.run();
    assert_eq!((report.status, report.error.unwrap().at.unwrap().row), (Status::Failed, Some(1)));
    let written = job.reject_lines().len() as u64;
    assert!(report.rejects.count > written && written <= 2000, "{written} of {}", report.rejects.count);
    assert_eq!(report.rejects.by_rule["too_few_fields"], report.rejects.count);
}

#[test]
fn rejects_that_cannot_be_written_do_not_hide_the_first_one() {
    let mut job = Job::of("1|a|1.00|\nx|b|1.00|\n");
    std::fs::create_dir(job.folder.path().join("rejected.jsonl")).unwrap();
    let error = job.run().error.unwrap();
    assert_eq!((error.kind, error.at.unwrap().row), (ErrorKind::RejectLimit, Some(2)));
    assert!(error.hint.unwrap().contains("could not be written"));
    job.limit = 1;
    assert_eq!(job.run().error.unwrap().kind, ErrorKind::Output);
}

#[test]
fn blanks_at_the_ends_of_a_value_that_cannot_be_converted_are_told() {
    let hint = |text: &str, trim: Trim, qualifier: Option<char>| {
        let mut job = Job::of(text);
        job.layout.qualifier = qualifier;
        job.layout.columns.iter_mut().for_each(|column| column.trim = trim);
        let hint = job.run().error.unwrap().hint.unwrap();
        hint.split(", or").next().unwrap().to_owned()
    };
    let trim = |which: &str| format!("Set `trim: {which}` if the blanks are no part of the value");
    assert_eq!(hint("1| a |1.00| 2024-01-01\n", Trim::None, None), trim("left"));
    assert_eq!(hint("1\t| a |1.00|\n", Trim::None, None), trim("right"));
    assert_eq!(hint(" 1 | a |1.00|\n", Trim::None, None), trim("both"));
    assert_eq!(hint(" 1 | a |1.00|\n", Trim::Right, None), trim("both"));
    assert_eq!(hint("1 | a |1.00|\n", Trim::Left, None), trim("both"));
    let outside = "Set `trim: left` if the blanks stand outside of qualifiers and are no part of the value";
    assert_eq!(hint("1|\"a\"| 1.00|\n", Trim::None, Some('"')), outside);
    // They are not what is wrong.
    assert_eq!(hint("1x|a|1.00|\n", Trim::None, None), "Set another type for the column");
    assert!(!hint("1|a |1.001|\n", Trim::None, None).contains("trim"));
}

#[test]
fn examples_of_rejects_are_the_first_of_each_kind_and_nothing_is_written() {
    let (first, bad_first) = dirty(900, 7, "\n");
    let (last, bad_last) = dirty(300, 5, "\n");
    let all: Vec<(usize, &Bad)> =
        [(0, &bad_first), (1, &bad_last)].iter().flat_map(|(file, bad)| bad.iter().map(|bad| (*file, bad))).collect();
    for keep in [KeepRejects::Examples, KeepRejects::Files] {
        for (slice_bytes, streams) in [(1 << 30, 1), (700, 4), (60, 2)] {
            let mut job = Job::of_files(&[&first, &last]);
            (job.slice_bytes, job.streams, job.limit, job.keep) = (slice_bytes, streams, 1000, keep);
            let report = job.run();
            assert_eq!((report.status, report.rejects.count), (Status::Ok, all.len() as u64));
            let kinds = &report.rejects.by_column;
            let names: Vec<_> = kinds.iter().map(|kind| (kind.column.as_deref(), kind.rule.as_str())).collect();
            let expected = [
                (None, "too_few_fields"),
                (None, "too_many_fields"),
                (Some("id"), "bad_integer"),
                (Some("name"), "null_not_allowed"),
                (Some("name"), "invalid_utf8"),
                (Some("amount"), "would_round"),
            ];
            assert_eq!(names, expected);
            for kind in kinds {
                let of_kind: Vec<_> = all.iter().filter(|(_, bad)| bad.rule == kind.rule).collect();
                assert_eq!(
                    (kind.count, report.rejects.by_rule[&kind.rule]),
                    (of_kind.len() as u64, of_kind.len() as u64)
                );
                assert_eq!(kind.first.len(), 3);
                for (found, (file, bad)) in std::iter::zip(&kind.first, of_kind) {
                    assert_eq!(found.file, job.file(*file).to_str().unwrap());
                    assert_eq!((found.row, found.byte, &found.code), (bad.row, bad.byte, &kind.code));
                }
            }
            let rows: Vec<u64> = report.rejects.first.iter().map(|reject| reject.row).collect();
            assert_eq!(rows, all[..10].iter().map(|(_, bad)| bad.row).collect::<Vec<_>>());
            if keep == KeepRejects::Examples {
                assert_eq!((report.rejects.files.len(), job.other_files().len()), (0, 0));
            } else {
                let lines = job.reject_lines();
                assert!(kinds.iter().flat_map(|kind| &kind.first).all(|reject| lines.contains(reject)));
            }
            job.limit = 1;
            let report = job.run();
            // Examples are for passes that load nothing: no limit holds for them.
            assert_eq!(report.status == Status::Ok, keep == KeepRejects::Examples);
            let Some(error) = report.error else { continue };
            assert_eq!(error.kind, ErrorKind::RejectLimit);
            assert!(streams > 1 || error.at.unwrap().row == Some(bad_first[0].row));
        }
    }
}

#[test]
fn what_is_shown_of_a_flow_that_failed_stands_in_its_files_under_its_number() {
    // Many more than are written behind the limit, and the first of another kind last of all.
    let text = "x|a|1.00|2024-01-01\n".repeat(3_000) + "1|a|x|2024-01-01\n";
    let mut job = Job::of_files(&[text.as_bytes(), text.as_bytes()]);
    (job.slice_bytes, job.streams, job.limit) = (20_000, 2, 5);
    let report = job.run();
    assert_eq!(report.error.unwrap().kind, ErrorKind::RejectLimit);
    let lines = job.reject_lines();
    let numbers: Vec<u64> = lines.iter().map(|reject| reject.number).collect();
    assert_eq!(numbers, (1..=lines.len() as u64).collect::<Vec<_>>());
    let shown = report.rejects.by_column.iter().flat_map(|kind| &kind.first).chain(&report.rejects.first);
    for reject in shown {
        assert!(lines.contains(reject), "{reject:?}");
    }
}
