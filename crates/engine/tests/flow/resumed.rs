//! Flows behind an attempt that has committed some slices: rejects and accounts are those of the whole source.

use std::collections::HashMap;

use headrace_engine::report::{FlowReport, SliceReport, Status};
use headrace_engine::spec::CommittedSlice;
use headrace_types::ErrorKind;

use crate::rejects::dirty;
use crate::support::Job;

/// What the destination keeps of these slices.
fn committed(undisturbed: &FlowReport, is_committed: impl Fn(u32) -> bool) -> HashMap<u32, CommittedSlice> {
    let slices = undisturbed.slices.iter().filter(|slice| is_committed(slice.number));
    let known = |slice: &SliceReport| {
        let &SliceReport { out: loaded, rejected, filtered, skipped, values_ignored: ignored, text_hash, .. } = slice;
        CommittedSlice { loaded, rejected, filtered, skipped, ignored, text_hash }
    };
    slices.map(|slice| (slice.number, known(slice))).collect()
}

/// Two files with header and blank lines, whose slices have rejects here and there, and its first report.
fn two_files() -> (Job, FlowReport) {
    let header = b"id|name|amount\n\n".as_slice();
    let (first, _) = dirty(60, 23, "\n");
    let (last, _) = dirty(40, 11, "\n");
    let mut job = Job::of_files(&[&[header, &first].concat(), &[header, &last].concat()]);
    (job.slice_bytes, job.limit, job.layout.skip_lines) = (300, 100, 1);
    let report = job.run();
    assert_eq!(report.status, Status::Ok);
    assert!(report.slices.len() > 6, "{}", report.slices.len());
    assert!(
        report.slices.iter().any(|slice| slice.rejected > 0) && report.slices.iter().any(|slice| slice.rejected == 0)
    );
    (job, report)
}

#[test]
fn whatever_was_committed_rejects_and_accounts_are_those_of_the_whole() {
    let (mut job, undisturbed) = two_files();
    let (lines, bad) = (job.reject_lines(), job.bad_bytes());
    let account =
        |slice: &SliceReport| (slice.number, slice.lines, slice.skipped, slice.rows, slice.rejected, slice.out);
    let choices: [fn(u32) -> bool; 5] =
        [|_| true, |number| number % 2 == 0, |number| number < 4, |number| number > 4, |number| number == 1];
    for is_committed in choices {
        job.committed = committed(&undisturbed, is_committed);
        for streams in [1, 3] {
            job.streams = streams;
            let report = job.run();
            assert_eq!(report.status, Status::Ok, "{:?}", report.error);
            assert_eq!((job.reject_lines(), job.bad_bytes()), (lines.clone(), bad.clone()));
            assert_eq!(report.rejects.first, undisturbed.rejects.first);
            assert_eq!(report.rejects.by_rule, undisturbed.rejects.by_rule);
            assert_eq!(
                report.slices.iter().map(account).collect::<Vec<_>>(),
                undisturbed.slices.iter().map(account).collect::<Vec<_>>()
            );
            let fresh = undisturbed.slices.iter().filter(|slice| !is_committed(slice.number));
            assert_eq!(report.sink.rows, fresh.map(|slice| slice.out).sum::<u64>());
            for slice in &report.slices {
                assert_eq!(slice.committed, is_committed(slice.number));
                assert_eq!(slice.stream.is_none(), slice.committed && slice.rejected == 0, "{slice:?}");
            }
            assert_eq!(job.other_files(), ["rejected.bad", "rejected.jsonl"]);
        }
    }
}

#[test]
fn the_limit_counts_rejects_of_committed_slices() {
    let (mut job, undisturbed) = two_files();
    job.committed = committed(&undisturbed, |number| number % 2 == 0);
    job.limit = undisturbed.rejects.count;
    assert_eq!(job.run().status, Status::Ok);
    job.limit -= 1;
    let report = job.run();
    assert_eq!(report.error.unwrap().kind, ErrorKind::RejectLimit);
}

#[test]
fn files_that_a_killed_attempt_has_left_are_replaced() {
    let (mut job, undisturbed) = two_files();
    let rejecting = undisturbed.slices.iter().find(|slice| slice.rejected > 0).unwrap();
    let (lines, bad) = (job.reject_lines(), job.bad_bytes());
    for (of_slice, ending) in [("tails", "jsonl"), ("bad", "bad")] {
        let left = format!(".rejected.slice-{:06}.{of_slice}", rejecting.number);
        std::fs::write(job.file(0).with_file_name(left), "half a line").unwrap();
        std::fs::write(job.file(0).with_file_name(format!("rejected.{ending}")), "of a failed attempt").unwrap();
    }
    job.committed = committed(&undisturbed, |_| true);
    assert_eq!(job.run().status, Status::Ok);
    assert_eq!((job.reject_lines(), job.bad_bytes()), (lines, bad));
    assert_eq!(job.other_files(), ["rejected.bad", "rejected.jsonl"]);
}

#[test]
fn a_slice_with_other_rows_than_the_ledger_says_fails_the_flow() {
    let (mut job, undisturbed) = two_files();
    job.committed = committed(&undisturbed, |_| true);
    for known in job.committed.values_mut().filter(|known| known.rejected > 0) {
        known.loaded += 1;
    }
    let error = job.run().error.unwrap();
    assert!(error.what.contains("has other rows than when an earlier attempt committed it"), "{error:?}");
}

#[test]
fn a_flow_whose_folder_was_taken_away_writes_nothing_beside_its_successor() {
    let (job, _) = two_files();
    let folder = job.folder.path().join("rejects");
    let mut spec = job.plan().unwrap();
    spec.rejects.folder = folder.to_str().unwrap().to_owned();
    std::fs::create_dir(&folder).unwrap();
    let late = headrace_engine::Flow::new(spec).unwrap();
    std::fs::remove_dir(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    late.start().unwrap();
    assert_eq!(crate::support::join(&late).error.unwrap().kind, ErrorKind::Output);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}
