//! What a flow measures while it runs: calls that hang count while they hang, and counters never fall.

use std::io::Write as _;
use std::time::{Duration, Instant};

use headrace_engine::Flow;
use headrace_engine::measure::{Doing, Measure, StreamMeasure};
use headrace_engine::report::{StageReport, Status};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Job, PATIENCE, join, rows};

/// Numbers that tell how it is now, and not what has been.
const GAUGES: [&str; 8] =
    ["slice", "file", "slice_bytes", "slice_bytes_total", "streams_active", "blocks_used", "number", "blocks_total"];

/// The first counter that is less than before, by its path.
fn fallen(before: &Value, after: &Value, path: &str) -> Option<String> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let counters = before.iter().filter(|(name, _)| !GAUGES.contains(&name.as_str()));
            counters.filter_map(|(name, before)| fallen(before, &after[name], &format!("{path}.{name}"))).next()
        }
        (Value::Array(before), Value::Array(after)) => {
            let both = std::iter::zip(before, after).enumerate();
            let found = both.filter_map(|(index, (before, after))| fallen(before, after, &format!("{path}[{index}]")));
            found.chain((before.len() > after.len()).then(|| format!("{path}: fewer"))).next()
        }
        (Value::Number(before), Value::Number(after)) if before.as_f64() <= after.as_f64() => None,
        (Value::Number(_), _) => Some(format!("{path}: {before}, then {after}")),
        _ => None,
    }
}

fn value(measure: &Measure) -> Value {
    serde_json::to_value(measure).unwrap()
}

/// Seconds of all stages.
fn seconds(stream: &StreamMeasure) -> f64 {
    let seconds = |stage: StageReport| stage.busy_seconds + stage.wait_input_seconds + stage.wait_output_seconds;
    let stages = stream.stages;
    [stages.read, stages.parse, stages.transform, stages.write].map(seconds).iter().sum()
}

/// Measures until it is as wanted.
fn wait_until(flow: &Flow, is_so: impl Fn(&Measure) -> bool) -> Measure {
    let start = Instant::now();
    loop {
        let measure = flow.measure();
        if is_so(&measure) {
            return measure;
        }
        assert!(start.elapsed() < PATIENCE, "{measure:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a stream is at something, and that it counts while it lasts, in one place alone.
fn hangs(flow: &Flow, doing: Doing, place: fn(&StreamMeasure) -> f64) {
    let at = |measure: &Measure| measure.streams.iter().position(|stream| stream.doing == doing);
    let start = Instant::now();
    // What it was at for a moment, in passing, does not last; and it may have begun, and come here by some work, only behind the first look.
    let (first, last) = loop {
        let mut first = wait_until(flow, |measure| at(measure).is_some());
        let index = at(&first).unwrap();
        std::thread::sleep(Duration::from_millis(150));
        let (first, last) = (first.streams.swap_remove(index), flow.measure().streams.swap_remove(index));
        let others = |stream: &StreamMeasure| seconds(stream) - place(stream);
        if last.doing == doing && others(&last) - others(&first) < 0.001 {
            break (first, last);
        }
        assert!(start.elapsed() < PATIENCE, "{first:?} {last:?}");
    };
    assert!(place(&last) - place(&first) >= 0.149, "{first:?} {last:?}");
}

#[test]
fn reading_from_a_pipe_that_says_nothing_is_busy() {
    let mut job = Job::of("");
    let path = job.folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    (job.files, job.needs_last_row_end) = (vec![path.clone()], Some(false));
    let flow = job.flow();
    flow.start().unwrap();
    let mut pipe = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    pipe.write_all(rows(0, 300).as_bytes()).unwrap();
    let measure = wait_until(&flow, |measure| measure.progress.rows_read > 0);
    let stream = &measure.streams[0];
    assert_eq!((stream.slice, stream.file, stream.slice_bytes_total), (Some(1), Some(0), None));
    assert!(!stream.ended);
    hangs(&flow, Doing::Read, |stream| stream.stages.read.busy_seconds);
    wait_until(&flow, |measure| measure.streams[0].slice_bytes == Some(measure.progress.bytes_read));
    drop(pipe);
    assert_eq!(join(&flow).status, Status::Ok);
}

#[test]
fn a_consumer_that_takes_nothing_is_waited_for_with_a_batch_or_for_a_block() {
    for (blocks, doing) in [(8, Doing::WaitDestination), (1, Doing::WaitBlock)] {
        let mut job = Job::of(rows(0, 2000)).arrow();
        (job.memory.blocks, job.slice_bytes) = (blocks, 20_000);
        let flow = job.flow();
        let mut reader = flow.take_reader().unwrap();
        flow.start().unwrap();
        match doing {
            Doing::WaitBlock => hangs(&flow, doing, |stream| stream.stages.read.wait_output_seconds),
            _ => hangs(&flow, doing, |stream| stream.stages.write.wait_output_seconds),
        }
        let measure = flow.measure();
        assert_eq!((measure.progress.streams_active, measure.streams.len()), (2, 2));
        assert!(measure.blocks_used > 0 && measure.blocks_used <= blocks && measure.blocks_total == blocks);
        let sink = measure.sink.unwrap();
        assert_eq!((sink.wait_input_seconds, sink.busy_seconds, sink.batches), (0.0, 0.0, 0), "it has not asked yet");

        drop(reader.next().unwrap().unwrap());
        let working = flow.measure().sink.unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let later = flow.measure().sink.unwrap();
        assert!(later.busy_seconds - working.busy_seconds >= 0.05, "{working:?} {later:?}");
        assert!((later.wait_input_seconds - working.wait_input_seconds).abs() < 1e-9);
        assert!(reader.all(|batch| batch.is_ok()));
        assert_eq!(join(&flow).status, Status::Ok);
    }
}

#[test]
fn a_consumer_that_waits_counts_while_it_waits() {
    let flow = Job::of(rows(0, 10)).arrow().flow();
    let mut reader = flow.take_reader().unwrap();
    let consumer = std::thread::spawn(move || reader.next().is_some());
    let waited = |least: f64| wait_until(&flow, |measure| measure.sink.as_ref().unwrap().wait_input_seconds > least);
    waited(0.0);
    waited(0.1);
    flow.start().unwrap();
    assert!(consumer.join().unwrap());
}

#[test]
fn a_stream_without_a_slice_waits_for_one() {
    let mut job = Job::of(rows(0, 2000)).arrow();
    job.slice_bytes = 30_000;
    let mut spec = job.plan().unwrap();
    // The second epoch makes the flow start two streams.
    spec.source.epochs = vec![vec![1], vec![2, 3]];
    assert_eq!((spec.source.slices.len(), spec.streams), (3, 2));
    let flow = Flow::new(spec).unwrap();
    let reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    hangs(&flow, Doing::WaitSlice, |stream| stream.stages.write.wait_output_seconds);
    let idle = flow.measure().streams.into_iter().find(|stream| stream.doing == Doing::WaitSlice).unwrap();
    assert_eq!((idle.slice, idle.file, idle.slice_bytes), (None, None, None));
    assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 2000);
    assert_eq!(join(&flow).status, Status::Ok);
}

#[test]
fn nothing_is_measured_of_a_flow_that_has_not_started() {
    let flow = Job::of(rows(0, 100)).flow();
    let expected = json!({
        "bytes_read": 0, "source_bytes_read": 0, "counted_bytes": 0, "rows_read": 0, "rows_out": 0, "rows_rejected": 0,
        "slices_done": 0, "slices_total": 1, "streams_active": 0, "streams": [], "writers": [], "sink": null, "blocks_used": 0,
        "blocks_total": 8,
    });
    assert_eq!(value(&flow.measure()), expected);
}

/// Members of what is told of streams, and what the report says of them.
fn told(streams: &Value, members: &[&str]) -> Vec<Value> {
    let told = |stream: &Value| members.iter().map(|&name| stream[name].clone()).collect();
    streams.as_array().unwrap().iter().map(told).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the flow and whoever asks when.
    #[test]
    fn counters_never_fall_and_end_as_the_report(
        count in 0_u64..20_000,
        slice_bytes in 500_u64..200_000,
        streams in 1_usize..6,
        blocks in 1_usize..9,
        is_arrow in any::<bool>(),
        is_cancelled in prop::bool::weighted(0.1),
    ) {
        let mut job = Job::of(rows(0, count));
        (job.slice_bytes, job.streams, job.memory.blocks, job.null_sink) = (slice_bytes, streams, blocks, !is_arrow);
        let flow = job.flow();
        let reader = flow.take_reader();
        let start = Instant::now();
        let (broken, ended) = std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let mut before = flow.measure();
                loop {
                    let now = flow.measure();
                    let lasted = start.elapsed().as_secs_f64();
                    if let Some(broken) = fallen(&value(&before), &value(&now), "") {
                        return (Some(broken), now);
                    }
                    if let Some(stream) = now.streams.iter().find(|stream| seconds(stream) > lasted) {
                        return (Some(format!("{stream:?} has more time than {lasted}")), now);
                    }
                    if !now.streams.is_empty() && now.streams.iter().all(|stream| stream.ended) {
                        return (None, now);
                    }
                    before = now;
                }
            });
            flow.start().unwrap();
            let consumer = reader.map(|reader| scope.spawn(|| reader.take_while(Result::is_ok).count()));
            if is_cancelled {
                flow.cancel("enough");
            }
            consumer.map(|consumer| consumer.join().unwrap());
            join(&flow);
            watcher.join().unwrap()
        });
        prop_assert_eq!(broken, None);
        prop_assert!(ended.streams.iter().all(|stream| stream.doing == Doing::Ended && stream.slice.is_none()));
        let (measure, report) = (flow.measure(), join(&flow));
        let both = [value(&measure)["streams"].clone(), serde_json::to_value(&report.streams).unwrap()];
        let members = ["number", "slices", "rows", "bytes", "cpu_seconds", "run_queue_seconds", "stages"];
        let [measured, reported] = both.map(|streams| told(&streams, &members));
        prop_assert_eq!(measured, reported);
        if let Some(sink) = measure.sink {
            let told = (sink.wait_input_seconds, sink.busy_seconds, sink.batches, sink.rows);
            let report = report.sink;
            prop_assert_eq!(told, (report.wait_input_seconds, report.busy_seconds, report.batches, report.rows));
        }
        let accounted: u64 = report.slices.iter().map(|slice| slice.bytes).sum();
        if report.status == Status::Ok {
            prop_assert_eq!((measure.progress.rows_read, measure.progress.rows_out, measure.progress.bytes_read), (count, count, accounted));
        }
        prop_assert_eq!(measure.progress.streams_active, 0);
    }
}
