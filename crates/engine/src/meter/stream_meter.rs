//! The meter of a stream: what it is at, and how far it has come.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;

use super::clock::{Activity, Clock};
use super::slice_size::SliceSize;
use super::thread_times::{ThreadTimes, ThreadWatch};
use crate::measure::StreamMeasure;
use crate::outcome::lock;
use crate::report::{Stages, StreamReport};
use crate::spec::SliceSpec;

/// What a stream is at. Every moment of it belongs to a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// Reads: `read`, busy. Decompressing, and waiting for a disk or a pipe.
    Read,
    /// Parses, and keeps accounts: `parse`, busy.
    Parse,
    /// Transforms rows, or finds their places: `transform`, busy.
    Transform,
    /// Gives rows to the sink, and works on that: `write`, busy.
    Write,
    /// Waits for a block: `read`, waiting for output, because those behind hold all blocks.
    WaitBlock,
    /// Waits for a slice: `write`, waiting for output.
    WaitSlice,
    /// Waits for the destination, or opens its connection: `write`, waiting for output.
    WaitDestination,
    /// Takes no more slices.
    Ended,
}

impl Activity for Doing {
    fn index(self) -> usize {
        self as usize
    }
}

/// Of one stream; only its thread writes.
pub struct StreamMeter {
    number: usize,
    state: Mutex<State>,
}

struct State {
    clock: Clock<Doing, { Doing::Ended as usize + 1 }>,
    /// Rows and bytes; the times are the clock's.
    stages: Stages,
    slices: u64,
    rows: u64,
    bytes: u64,
    slice: Option<SliceInWork>,
    /// The thread, once it runs.
    thread: Option<Arc<ThreadWatch>>,
    /// As read last.
    times: ThreadTimes,
}

/// A slice that the stream works on.
#[derive(Debug, Clone, Copy)]
struct SliceInWork {
    number: u32,
    file: usize,
    size: SliceSize,
    done_bytes: u64,
}

/// What became of a batch, or of a row that is none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    /// Rows parsed.
    pub rows: u64,
    /// Bytes of source text behind them.
    pub bytes: u64,
    /// Rows given to the sink.
    pub out: u64,
    /// Whether they were transformed, or their places looked for.
    pub is_transformed: bool,
}

impl StreamMeter {
    /// Of a stream that waits for its thread.
    pub fn new(number: usize) -> Self {
        let state = State {
            clock: Clock::new(Doing::WaitSlice),
            stages: Stages::default(),
            slices: 0,
            rows: 0,
            bytes: 0,
            slice: None,
            thread: None,
            times: ThreadTimes::default(),
        };
        StreamMeter { number, state: Mutex::new(state) }
    }

    /// Number of the stream, from 1.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The calling thread is the stream's.
    pub fn begin(&self) {
        lock(&self.state).thread = Some(Arc::new(ThreadWatch::of_this_thread()));
    }

    /// The stream begins something else.
    pub fn turn_to(&self, doing: Doing) {
        lock(&self.state).clock.turn_to(doing);
    }

    /// Something else for as long as the guard lives.
    pub fn pause(&self, doing: Doing) -> Pause<'_> {
        Pause { meter: self, before: lock(&self.state).clock.turn_to(doing) }
    }

    /// Takes a slice.
    pub fn begin_slice(&self, slice: &SliceSpec, size: SliceSize) {
        let &SliceSpec { number, file, .. } = slice;
        lock(&self.state).slice = Some(SliceInWork { number, file, size, done_bytes: 0 });
    }

    /// So many bytes of the text of the slice are parsed, and so many bytes of its file are taken.
    pub fn slice_is_at(&self, text_bytes: u64, file_bytes: u64) {
        if let Some(slice) = &mut lock(&self.state).slice {
            slice.done_bytes = slice.size.done_bytes(text_bytes, file_bytes);
        }
    }

    /// The slice ended well.
    pub fn end_slice(&self) {
        let mut state = lock(&self.state);
        state.slice = None;
        state.slices += 1;
    }

    /// Bytes were taken from the source.
    pub fn add_read(&self, bytes: u64) {
        lock(&self.state).stages.read.bytes += bytes;
    }

    /// Lines were counted without being parsed.
    pub fn add_skipped(&self, bytes: u64) {
        lock(&self.state).bytes += bytes;
    }

    /// Rows were parsed.
    pub fn add(&self, work: Work) {
        let Work { rows, bytes, out, is_transformed } = work;
        let mut state = lock(&self.state);
        state.rows += rows;
        state.bytes += bytes;
        let Stages { read, parse, transform, write } = &mut state.stages;
        read.rows += rows;
        let stages = [(parse, rows), (write, out)].into_iter().chain(is_transformed.then_some((transform, out)));
        for (stage, rows) in stages {
            stage.rows += rows;
            stage.bytes += bytes;
        }
    }

    /// The stream takes no more slices. To be called by its thread; a second call does nothing.
    pub fn end(&self) {
        let mut state = lock(&self.state);
        if state.clock.at() != Doing::Ended {
            let now = state.thread.take().map(|thread| thread.times()).unwrap_or_default();
            state.times = now.or_before(state.times);
            state.slice = None;
            state.clock.turn_to(Doing::Ended);
        }
    }

    /// Its account, up to now.
    pub fn report(&self) -> StreamReport {
        let state = lock(&self.state);
        StreamReport {
            number: self.number,
            slices: state.slices,
            rows: state.rows,
            bytes: state.bytes,
            cpu_seconds: state.times.cpu_seconds.unwrap_or_default(),
            run_queue_seconds: state.times.run_queue_seconds,
            stages: state.stages(),
        }
    }

    /// Everything, up to now.
    pub fn measure(&self) -> StreamMeasure {
        let thread = lock(&self.state).thread.clone();
        // Outside the lock: asking the system takes longer than a stream should wait.
        let times = thread.map(|thread| thread.times()).unwrap_or_default();
        let mut state = lock(&self.state);
        state.see(times);
        let doing = state.clock.at();
        StreamMeasure {
            number: self.number,
            ended: doing == Doing::Ended,
            slice: state.slice.map(|slice| slice.number),
            file: state.slice.map(|slice| slice.file),
            slice_bytes: state.slice.map(|slice| slice.done_bytes),
            slice_bytes_total: state.slice.and_then(|slice| slice.size.total_bytes()),
            slices: state.slices,
            rows: state.rows,
            bytes: state.bytes,
            cpu_seconds: state.times.cpu_seconds,
            run_queue_seconds: state.times.run_queue_seconds,
            wait_slice_seconds: state.clock.spent(Doing::WaitSlice).as_secs_f64(),
            doing,
            stages: state.stages(),
        }
    }
}

impl State {
    /// The thread was seen to have these times. Of a stream that ended meanwhile they count for nothing: its report is made,
    /// and what its thread does until it is gone is not the stream's.
    fn see(&mut self, times: ThreadTimes) {
        if self.clock.at() != Doing::Ended {
            self.times = times.or_before(self.times);
        }
    }

    /// With the times up to now.
    fn stages(&self) -> Stages {
        let seconds =
            |doings: &[Doing]| doings.iter().map(|&doing| self.clock.spent(doing)).sum::<Duration>().as_secs_f64();
        let mut stages = self.stages;
        stages.read.busy_seconds = seconds(&[Doing::Read]);
        stages.read.wait_output_seconds = seconds(&[Doing::WaitBlock]);
        stages.parse.busy_seconds = seconds(&[Doing::Parse]);
        stages.transform.busy_seconds = seconds(&[Doing::Transform]);
        stages.write.busy_seconds = seconds(&[Doing::Write]);
        stages.write.wait_output_seconds = seconds(&[Doing::WaitSlice, Doing::WaitDestination]);
        stages
    }
}

/// Held while a stream is at something else; then it goes on with what it was at.
pub struct Pause<'a> {
    meter: &'a StreamMeter,
    before: Doing,
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.meter.turn_to(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_of_a_thread_when_its_stream_has_ended_counts_for_nothing() {
        let meter = StreamMeter::new(1);
        meter.begin();
        let of = |seconds| ThreadTimes { cpu_seconds: Some(seconds), run_queue_seconds: Some(seconds) };
        lock(&meter.state).see(of(1000.0));
        assert_eq!(meter.measure().cpu_seconds, Some(1000.0));
        meter.end();
        let report = meter.report();
        // Asked before the end, and answered after it.
        lock(&meter.state).see(of(2000.0));
        assert_eq!((meter.measure().cpu_seconds, report.cpu_seconds), (Some(1000.0), 1000.0));
        assert_eq!(meter.measure().run_queue_seconds, Some(1000.0));
    }
}
