//! Rows longer than a block, and longer than `max_row`, scaled down.

use headrace_engine::report::Status;
use headrace_types::Encoding;

use crate::support::{Job, join, row, rows, sorted, sorted_lines, values};

/// A row of exactly `bytes` bytes with its line feed.
fn long_row(id: u64, bytes: usize) -> String {
    let frame = format!("{id}||1.00|\n").len();
    format!("{id}|{}|1.00|\n", "w".repeat(bytes - frame))
}

#[test]
fn rows_longer_than_a_block_alone_and_in_succession() {
    for lengths in [
        vec![4096],
        vec![4097],
        vec![5000],
        vec![9000, 9000],
        vec![9000, 9000, 9000, 9000, 100, 9000],
        vec![20_000, 7000, 30_000, 4095, 4096, 4097, 60_000],
        vec![8192, 8193, 16_384, 16_385, 16_383],
    ] {
        let mut text = rows(10, 20);
        for (id, length) in lengths.iter().enumerate() {
            text += &long_row(id as u64, *length);
        }
        text += &rows(20, 30);
        for last_end in [true, false] {
            let text = if last_end { text.as_str() } else { text.trim_end() };
            for (block_bytes, slice_bytes, streams) in
                [(4096, 1 << 30, 1), (4096, 10_000, 4), (5000, 1, 3), (1 << 20, 1 << 30, 2)]
            {
                let mut job = Job::of(text).arrow();
                (job.memory.block_bytes, job.slice_bytes, job.streams) = (block_bytes, slice_bytes, streams);
                let (found, report) = job.run_arrow();
                assert_eq!(report.error, None, "{lengths:?} {block_bytes} {slice_bytes}");
                assert_eq!(sorted(found.unwrap()), sorted_lines(text));
                assert_eq!(report.slices.iter().map(|slice| slice.bytes).sum::<u64>(), text.len() as u64);
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
                let text = rows(100, 100 + before) + &long_row(1, length) + &rows(1000, 1000 + after);
                let mut job = Job::of(&text);
                (job.memory.max_row_bytes, job.memory.block_bytes, job.limit) = (MAX, block_bytes, 5);
                let report = job.run();
                assert_eq!((report.status, report.rejects.count), (Status::Ok, u64::from(!accepted)));
                assert_eq!(report.sink.rows, before + after + u64::from(accepted));
                assert_eq!(report.slices[0].bytes, text.len() as u64);
                if !accepted {
                    let reject = &report.rejects.first[0];
                    assert_eq!((reject.row, reject.byte), (before + 1, rows(100, 100 + before).len() as u64));
                    assert_eq!((reject.rule.as_str(), reject.bad_bytes), ("row_too_long", length as u64));
                    assert_eq!(reject.row_bytes, length as u64);
                    assert_eq!(job.bad_bytes(), long_row(1, length).as_bytes());
                    assert_eq!((reject.value.len(), reject.column.as_deref()), (1000, None));
                    assert_eq!(reject.message, "a row is longer than 10000 bytes");
                }
            }
        }
    }
}

#[test]
fn too_long_rows_at_the_end_in_succession_and_in_many_slices() {
    const MAX: usize = 4096;
    let long = |id| long_row(id, 3 * MAX);
    for (text, rejected, kept) in [
        (long(1), vec![1], 0),
        (long(1).trim_end().to_owned(), vec![1], 0),
        (rows(0, 3) + long(1).trim_end(), vec![4], 3),
        (long(1) + &long(2) + &long(3), vec![1, 2, 3], 0),
        (long(1) + &row(5), vec![1], 1),
        (long(1) + "\n\nx\n" + &long(2) + &row(5) + "\n", vec![1, 4, 5], 1),
        ((0..20).map(|id| long(id) + &rows(id, id + 2)).collect(), (0..20).map(|id| 3 * id + 1).collect(), 40),
    ] {
        for (slice_bytes, streams) in [(1 << 30, 1), (1, 3), (5000, 2)] {
            let mut job = Job::of(&text);
            (job.memory.max_row_bytes, job.limit, job.slice_bytes, job.streams) = (MAX, 100, slice_bytes, streams);
            let report = job.run();
            assert_eq!((report.status, report.sink.rows), (Status::Ok, kept));
            assert_eq!(report.slices.iter().map(|slice| slice.bytes).sum::<u64>(), text.len() as u64);
            let found: Vec<u64> = job.reject_lines().iter().map(|reject| reject.row).collect();
            assert_eq!(found, rejected);
        }
    }
}

#[test]
fn a_header_line_is_skipped_however_long_it_is() {
    let text = "h".repeat(50_000) + "\n" + &rows(1, 10);
    let mut job = Job::of(&text);
    (job.memory.max_row_bytes, job.limit, job.layout.skip_lines) = (5000, 0, 1);
    let report = job.run();
    assert_eq!((report.status, report.sink.rows, report.slices[0].skipped), (Status::Ok, 9, 1));
    job.memory.max_row_bytes = 1 << 20;
    let report = job.run();
    assert_eq!((report.sink.rows, report.rejects.count, report.slices[0].skipped), (9, 0, 1));
}

#[test]
fn streams_take_turns_with_the_memory_for_large_rows() {
    let texts: Vec<String> =
        (0..8).map(|file| long_row(file, 50_000 + file as usize) + &long_row(file + 100, 9000)).collect();
    let contents: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    let mut job = Job::of_files(&contents);
    job.streams = 8;
    let report = job.run();
    assert_eq!((report.status, report.sink.rows), (Status::Ok, 16));
    let mut job = Job::of_files(&contents).arrow();
    job.streams = 8;
    assert_eq!(sorted(job.run_arrow().0.unwrap()), sorted_lines(&texts.concat()));
}

#[test]
fn a_consumer_that_keeps_large_rows_gets_them_all() {
    let text: String = (0..5).map(|id| long_row(id, 30_000)).collect();
    let mut job = Job::of(&text).arrow();
    (job.streams, job.memory.blocks) = (2, 2);
    let flow = job.flow();
    let reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let consumer = std::thread::spawn(move || reader.map(Result::unwrap).collect::<Vec<_>>());
    assert_eq!(join(&flow).status, Status::Ok);
    let kept = consumer.join().unwrap();
    assert_eq!(sorted(kept.iter().flat_map(values).collect()), sorted_lines(&text));
}

#[test]
fn a_row_of_many_blocks_is_kept_up_to_what_may_be() {
    let long = long_row(7, 3_000_000);
    for (longest, streams) in [(u64::MAX, 1), (3_000_000, 2), (2_999_999, 1), (5000, 3), (4096, 1)] {
        for row_end in ["\n", ""] {
            let whole = long.trim_end().to_owned() + row_end;
            let text = rows(1, 90) + &whole;
            let job = Job::of(&text);
            let mut spec = job.plan().unwrap();
            (spec.memory.max_row_bytes, spec.streams) = (10_000, streams);
            (spec.rejects.limit, spec.rejects.longest_bytes) = (Some(1), longest);
            let flow = headrace_engine::Flow::new(spec).unwrap();
            flow.start().unwrap();
            let report = join(&flow);
            assert_eq!((report.status, report.rejects.count), (Status::Ok, 1));
            let kept = (whole.len() as u64).min(longest);
            let reject = &job.reject_lines()[0];
            assert_eq!((reject.row_bytes, reject.bad_bytes), (whole.len() as u64, kept));
            assert_eq!((reject.row, reject.row_byte), (90, rows(1, 90).len() as u64));
            assert_eq!(report.rejects.cut, u64::from(kept < whole.len() as u64));
            let bad = job.bad_bytes();
            assert_eq!(bad.strip_suffix(b"\n").unwrap(), whole[..kept as usize].trim_end().as_bytes());
        }
    }
}

#[test]
fn a_long_row_of_utf16_stands_there_in_its_own_bytes() {
    let text: String = format!("1|{}|1.00|\n", "aé\u{1F600}€".repeat(4000)) + "2|b|1.00|\n";
    for is_big in [false, true] {
        let unit = |unit: u16| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        let bytes: Vec<u8> = text.encode_utf16().flat_map(unit).collect();
        let row: Vec<u8> = text.lines().next().unwrap().encode_utf16().chain([10]).flat_map(unit).collect();
        for block_bytes in 4096..4104 {
            let mut job = Job::of(&bytes);
            job.layout.encoding = if is_big { Encoding::Utf16Be } else { Encoding::Utf16Le };
            (job.memory.block_bytes, job.memory.max_row_bytes, job.limit) = (block_bytes, 6000, 1);
            let report = job.run();
            assert_eq!(
                (report.status, report.rejects.count, report.sink.rows),
                (Status::Ok, 1, 1),
                "{:?}",
                report.error
            );
            assert!(job.bad_bytes() == row);
            assert_eq!(job.reject_lines()[0].row_bytes, row.len() as u64);
        }
    }
}
