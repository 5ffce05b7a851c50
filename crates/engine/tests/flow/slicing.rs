//! One file by many streams equals one stream.

use headrace_engine::Flow;
use headrace_engine::report::{FlowReport, Status};

use crate::support::{Job, row, rows, sorted, sorted_lines};

/// The accounts of all slices together: bytes, lines, skipped, rows, rejected, out.
fn totals(report: &FlowReport) -> [u64; 6] {
    let mut totals = [0; 6];
    for slice in &report.slices {
        let own = [slice.bytes, slice.lines, slice.skipped, slice.rows, slice.rejected, slice.out];
        for (total, own) in std::iter::zip(&mut totals, own) {
            *total += own;
        }
    }
    totals
}

#[test]
fn counts_and_aggregates_are_exact() {
    let text = rows(1, 1001);
    let report = Job::of(&text).run();
    assert_eq!((report.status, totals(&report)), (Status::Ok, [text.len() as u64, 1000, 0, 1000, 0, 1000]));
    let columns = report.columns.unwrap();
    let [id, name, amount, day] = columns.as_slice() else { panic!() };
    assert_eq!((id.rows, id.nulls, id.sum.as_deref()), (1000, 0, Some("500500")));
    assert_eq!((id.min.as_deref(), id.max.as_deref()), (Some("1"), Some("1000")));
    assert_eq!((name.min_length, name.max_length), (Some(5), Some(27)));
    let length: u64 = (1..1001).map(|id| 5 + id % 23).sum();
    assert_eq!((name.total_length, name.sum.as_deref()), (Some(length), None));
    let cents: u64 = (1..1001).map(|id| id * 37 % 9973 * 100 + id % 100).sum();
    assert_eq!(amount.sum, Some(format!("{}.{:02}", cents / 100, cents % 100)));
    assert_eq!((day.rows, day.nulls), (1000, 142));
    assert_eq!((day.min.as_deref(), day.max.as_deref()), (Some("2024-01-02"), Some("2024-01-28")));
}

#[test]
fn many_streams_equal_one_whatever_the_slices_and_blocks() {
    let text = rows(0, 600);
    let expected = Job::of(&text).run();
    for slice_bytes in [1, 50, 333, 1000, 4096, 10_000, 1 << 30] {
        for (streams, block_bytes, blocks) in [(1, 4096, 1), (2, 5000, 3), (5, 65_536, 8), (16, 4096, 20)] {
            let mut job = Job::of(&text);
            (job.slice_bytes, job.streams) = (slice_bytes, streams);
            (job.memory.block_bytes, job.memory.blocks) = (block_bytes, blocks);
            let report = job.run();
            assert_eq!(totals(&report), totals(&expected));
            assert_eq!(report.columns, expected.columns);
            let numbers: Vec<u32> = report.slices.iter().map(|slice| slice.number).collect();
            assert!(numbers.iter().copied().eq(1..=numbers.len() as u32));
        }
    }
    for slice_bytes in [1, 777, 1 << 30] {
        let mut job = Job::of(&text).arrow();
        (job.slice_bytes, job.streams) = (slice_bytes, 4);
        assert_eq!(sorted(job.run_arrow().0.unwrap()), sorted_lines(&text));
    }
}

#[test]
fn every_slice_size_of_a_small_file_with_header_blank_lines_and_byte_order_mark() {
    for row_end in ["\n", "\r\n"] {
        for last_end in [row_end, ""] {
            let lines: Vec<String> = (0..12).map(row).collect();
            let body = lines.join(row_end).replace("\n5|", &format!("\n{row_end}{row_end}5|"));
            let text = format!("\u{feff}id|name{row_end}second header{row_end}{body}{last_end}");
            for slice_bytes in 1..=text.len() as u64 {
                let mut job = Job::of(&text).arrow();
                (job.slice_bytes, job.streams, job.layout.skip_lines) = (slice_bytes, 3, 2);
                let (found, report) = job.run_arrow();
                assert_eq!(sorted(found.unwrap()), sorted(lines.clone()), "{slice_bytes}");
                assert_eq!(totals(&report), [text.len() as u64 - 3, 16, 4, 12, 0, 12]);
            }
        }
    }
}

#[test]
fn one_stream_takes_the_largest_slice_first_and_equal_ones_in_file_order() {
    let same = rows(1000, 1050);
    let texts = [rows(0, 10), rows(100, 300), same.clone(), same.replace("\n10", "\n20"), rows(5000, 5100)];
    let contents: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    let mut job = Job::of_files(&contents).arrow();
    job.streams = 1;
    let found = job.run_arrow().0.unwrap();
    let order: String = [1, 4, 2, 3, 0].map(|file: usize| texts[file].as_str()).concat();
    assert_eq!(texts[2].len(), texts[3].len());
    assert_eq!(found, order.lines().collect::<Vec<_>>());
}

#[test]
fn every_stream_reports_and_there_are_no_more_streams_than_slices() {
    let mut job = Job::of(rows(0, 100));
    job.streams = 16;
    let report = job.run();
    assert_eq!((report.slices.len(), report.streams.len()), (1, 1));
    job.slice_bytes = 1000;
    let report = job.run();
    assert_eq!(report.streams.len(), report.slices.len().min(16));
    let numbers: Vec<usize> = report.streams.iter().map(|stream| stream.number).collect();
    assert!(numbers.iter().copied().eq(1..=report.streams.len()));
}

#[test]
fn many_small_files() {
    let texts: Vec<String> = (0..500).map(|file| rows(file * 3, file * 3 + 3)).collect();
    let contents: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    let mut job = Job::of_files(&contents).arrow();
    (job.streams, job.memory.blocks, job.memory.block_bytes) = (4, 6, 1 << 20);
    let (found, report) = job.run_arrow();
    assert_eq!(sorted(found.unwrap()), sorted_lines(&texts.concat()));
    assert_eq!((report.slices.len(), report.sink.batches), (500, 500));
}

#[test]
fn no_slices_and_empty_files_end_at_once_and_well() {
    for contents in [&[][..], &[&b""[..]], &[b"", b"\xEF\xBB\xBF"]] {
        let report = Job::of_files(contents).run();
        assert_eq!((report.status, report.slices.len(), report.sink.rows), (Status::Ok, 0, 0));
        let (found, report) = Job::of_files(contents).arrow().run_arrow();
        assert_eq!((found.unwrap().len(), report.status), (0, Status::Ok));
    }
    // A header alone is a slice without rows.
    let mut job = Job::of("id|name");
    job.layout.skip_lines = 1;
    assert_eq!(totals(&job.run()), [7, 1, 1, 0, 0, 0]);
}

#[test]
fn slices_that_do_not_cover_their_files_once_are_no_flow() {
    let mut job = Job::of(rows(0, 1000)).arrow();
    job.slice_bytes = 1000;
    let spec = job.plan().unwrap();
    let refusal = |change: fn(&mut Vec<headrace_engine::spec::SliceSpec>)| {
        let mut spec = spec.clone();
        change(&mut spec.source.slices);
        Flow::new(spec).err().map(|error| error.what).unwrap_or_default()
    };
    let twice = refusal(|slices| slices.insert(1, slices[1].clone()));
    let gone = refusal(|slices| {
        slices.remove(2);
    });
    for found in [twice, gone] {
        assert!(found.contains("do not cover it once"), "{found}");
    }
    assert_eq!(refusal(|_| ()), "");
}

#[test]
fn a_flow_starts_once_and_tells_how_far_it_is() {
    let job = Job::of(rows(0, 1000));
    let flow = job.flow();
    assert_eq!(flow.snapshot().slices_total, 1);
    assert!(flow.join(std::time::Duration::from_millis(10)).is_none());
    flow.start().unwrap();
    flow.start().unwrap();
    let report = crate::support::join(&flow);
    let snapshot = flow.snapshot();
    assert_eq!((snapshot.rows_read, snapshot.rows_out, snapshot.rows_rejected), (1000, 1000, 0));
    assert_eq!((snapshot.slices_done, snapshot.streams_active), (1, 0));
    assert_eq!(snapshot.bytes_read, report.slices[0].bytes);
    // The report can be had again.
    assert_eq!(crate::support::join(&flow).sink.rows, 1000);
}

#[test]
fn contradictory_specifications_are_refused() {
    let job = Job::of(rows(0, 10)).arrow();
    type Change = fn(&mut headrace_engine::spec::FlowSpec);
    let changes: [Change; 9] = [
        |spec| spec.streams = 0,
        |spec| spec.streams = 5000,
        |spec| spec.memory.block_bytes = 4095,
        |spec| spec.memory.blocks = 0,
        |spec| spec.memory.max_row_bytes = spec.memory.block_bytes - 1,
        |spec| spec.memory.max_row_bytes = (1 << 30) + 1,
        |spec| spec.source.slices[0].file = 1,
        |spec| spec.source.slices[0].begin_byte = spec.source.slices[0].end_byte + 1,
        |spec| {
            spec.sink = headrace_engine::spec::SinkSpec::Arrow {
                columns: vec!["nobody".to_owned()],
                position: None,
                place_column: None,
            }
        },
    ];
    for change in changes {
        let mut spec = job.plan().unwrap();
        change(&mut spec);
        let Err(error) = Flow::new(spec) else { panic!("accepted") };
        assert_eq!(error.kind, headrace_types::ErrorKind::Specification);
    }
}

#[test]
fn columns_reach_the_sink_in_the_order_it_asks_for() {
    let job = Job::of("1|a|2.00|2024-01-05\n").arrow();
    let mut spec = job.plan().unwrap();
    let columns = ["day", "id"].map(str::to_owned).to_vec();
    spec.sink = headrace_engine::spec::SinkSpec::Arrow { columns, position: None, place_column: None };
    let flow = Flow::new(spec).unwrap();
    let mut reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let batch = reader.next().unwrap().unwrap();
    let names: Vec<_> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["day", "id"]);
    assert_eq!(batch.schema(), arrow_array::RecordBatchReader::schema(&reader));
    assert!(reader.next().is_none());
}
