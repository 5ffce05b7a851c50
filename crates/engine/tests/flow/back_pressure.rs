//! Slow, stubborn and vanishing consumers; cancellation; memory.

use std::sync::mpsc::channel;
use std::time::Duration;

use headrace_engine::report::Status;
use headrace_types::ErrorKind;

use crate::support::{Job, PATIENCE, check_report, core_error, join, rows, sorted, sorted_lines, values};

fn ten_blocks() -> Job {
    Job::of(rows(0, 1000)).arrow()
}

#[test]
fn cancel_frees_streams_that_wait_for_the_consumer_or_for_a_block() {
    for (blocks, streams) in [(1, 1), (1, 4), (2, 2), (8, 2), (64, 2)] {
        let mut job = ten_blocks();
        (job.memory.blocks, job.streams, job.slice_bytes) = (blocks, streams, 9000);
        let flow = job.flow();
        let mut reader = flow.take_reader().unwrap();
        flow.start().unwrap();
        assert!(flow.join(Duration::from_millis(100)).is_none() || blocks == 64);
        flow.cancel("enough");
        let report = join(&flow);
        if blocks < 64 {
            assert_eq!(report.status, Status::Cancelled);
            let error = core_error(reader.next().unwrap().unwrap_err());
            assert_eq!((error.kind, error.what.as_str()), (ErrorKind::Cancelled, "enough"));
            check_report(&report, blocks);
        }
    }
}

#[test]
fn cancel_before_start_and_after_the_end() {
    let job = Job::of(rows(0, 100));
    let flow = job.flow();
    flow.cancel("too early");
    flow.start().unwrap();
    let report = join(&flow);
    assert_eq!((report.status, report.slices.len()), (Status::Cancelled, 0));

    let flow = job.flow();
    flow.start().unwrap();
    assert_eq!(join(&flow).status, Status::Ok);
    flow.cancel("too late");
    assert_eq!(join(&flow).status, Status::Ok);
}

#[test]
fn a_consumer_blocked_in_next_is_freed_by_cancel() {
    let job = ten_blocks();
    let flow = job.flow(); // never started: the consumer waits for ever
    let reader = flow.take_reader().unwrap();
    let (sender, receiver) = channel();
    let consumer = std::thread::spawn(move || sender.send(reader.map(Result::err).next()));
    assert!(receiver.recv_timeout(Duration::from_millis(60)).is_err());
    flow.cancel("enough");
    let error = receiver.recv_timeout(PATIENCE).unwrap().flatten().unwrap();
    assert_eq!(core_error(error).kind, ErrorKind::Cancelled);
    consumer.join().unwrap().unwrap();
}

#[test]
fn a_consumer_that_goes_away_ends_the_flow() {
    for taken in [0, 1] {
        let mut job = ten_blocks();
        job.memory.blocks = 2;
        let flow = job.flow();
        let mut reader = flow.take_reader().unwrap();
        flow.start().unwrap();
        for _ in 0..taken {
            reader.next().unwrap().unwrap();
        }
        drop(reader);
        let report = join(&flow);
        assert_eq!((report.status, report.error.unwrap().kind), (Status::Cancelled, ErrorKind::Cancelled));
    }
}

#[test]
fn dropping_a_flow_ends_its_consumer() {
    let job = ten_blocks();
    let flow = job.flow();
    let mut reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    reader.next().unwrap().unwrap();
    drop(flow);
    assert_eq!(core_error(reader.find_map(Result::err).unwrap()).kind, ErrorKind::Cancelled);
}

#[test]
fn a_consumer_that_keeps_every_batch_gets_them_all() {
    for (blocks, streams) in [(1, 1), (2, 2), (4, 8)] {
        let text = rows(0, 800);
        let mut job = Job::of(&text).arrow();
        (job.memory.blocks, job.streams, job.slice_bytes) = (blocks, streams, 7000);
        let flow = job.flow();
        let reader = flow.take_reader().unwrap();
        flow.start().unwrap();
        let consumer = std::thread::spawn(move || reader.collect::<Result<Vec<_>, _>>().unwrap());
        join(&flow); // first, because a consumer that hangs cannot be waited for with patience
        let kept = consumer.join().unwrap();
        let report = join(&flow);
        check_report(&report, blocks);
        assert!(report.memory.overdraft_blocks > 0);
        assert_eq!(report.status, Status::Ok);
        assert_eq!(sorted(kept.iter().flat_map(values).collect()), sorted_lines(&text));
    }
}

#[test]
fn a_slow_consumer_gets_no_more_blocks_than_planned() {
    let text = rows(0, 3000);
    let mut job = Job::of(&text).arrow();
    (job.memory.blocks, job.streams, job.slice_bytes) = (3, 4, 20_000);
    let flow = job.flow();
    let reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let mut found = vec![];
    for (index, batch) in reader.enumerate() {
        let batch = batch.unwrap();
        if index % 8 == 0 {
            std::thread::sleep(Duration::from_millis(30));
        }
        found.extend(values(&batch));
    }
    let report = join(&flow);
    check_report(&report, 3);
    assert_eq!(report.memory.overdraft_blocks, 0);
    assert!(report.memory.peak_blocks <= 3);
    assert_eq!(sorted(found), sorted_lines(&text));
    assert!(report.sink.busy_seconds > 0.1);
}

#[test]
fn a_consumer_that_works_longer_than_the_stall_time_is_not_a_hoarder() {
    let mut job = ten_blocks();
    (job.memory.blocks, job.streams) = (1, 1);
    let flow = job.flow();
    let mut reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let batch = reader.next().unwrap().unwrap();
    std::thread::sleep(Duration::from_millis(500)); // works on its only batch
    drop(batch);
    assert!(reader.all(|batch| batch.is_ok()));
    assert_eq!(join(&flow).memory.overdraft_blocks, 0);
}

#[test]
fn fewer_blocks_than_streams_are_shared() {
    for blocks in [1, 2, 5] {
        let mut job = Job::of(rows(0, 5000));
        (job.memory.blocks, job.streams, job.slice_bytes) = (blocks, 16, 3000);
        let report = job.run();
        assert_eq!(report.status, Status::Ok);
        assert!(report.memory.peak_blocks <= blocks, "{:?}", report.memory);
    }
}

#[test]
fn batches_outlive_the_flow() {
    let text = rows(0, 100);
    let job = Job::of(&text).arrow();
    let flow = job.flow();
    let reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let kept: Vec<_> = reader.map(Result::unwrap).collect();
    join(&flow);
    drop(flow);
    drop(job);
    assert_eq!(sorted(kept.iter().flat_map(values).collect()), sorted_lines(&text));
}
