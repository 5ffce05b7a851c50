//! One merged Arrow stream: all writers feed a bounded queue, an embedded database pulls from it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader, UInt16Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use crossbeam_channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, bounded};
use headrace_parse::arrow_schema;
use headrace_types::{CoreError, ErrorKind, Layout};

use super::{Origin, Placed, Sink, Writer};
use crate::outcome::{Outcome, lock};
use crate::report::{ColumnReport, SinkReport, StageReport};
use crate::row_position::RowPosition;
use crate::spec::SliceSpec;

/// How often a blocked writer or reader looks whether the flow was stopped.
const POLL: Duration = Duration::from_millis(20);

/// The writers' end.
pub struct ArrowSink {
    /// Dropped by `close`: the reader then sees the end.
    sender: Mutex<Option<Sender<RecordBatch>>>,
    shape: Shape,
    outcome: Arc<Outcome>,
    shared: Arc<Shared>,
}

/// One column more than those of the layout, the last one; its name.
#[derive(Clone, Copy)]
pub enum Extra<'a> {
    /// [`RowPosition`] of each row.
    Position(&'a str),
    /// Place of each row, as the router has it.
    Place(&'a str),
}

/// What the consumer sees of a batch.
#[derive(Clone)]
struct Shape {
    projection: Vec<usize>,
    schema: SchemaRef,
    extra: Option<ExtraKind>,
}

#[derive(Clone, Copy, PartialEq)]
enum ExtraKind {
    Position,
    Place,
}

#[derive(Default)]
struct Shared {
    waiting: AtomicBool,
    counters: Mutex<SinkReport>,
}

/// The consumer's end. Rust only: its callbacks never touch Python.
pub struct BatchReader {
    receiver: Receiver<RecordBatch>,
    schema: SchemaRef,
    outcome: Arc<Outcome>,
    shared: Arc<Shared>,
    last_handed_over: Option<Instant>,
}

/// Both ends. `columns` are layout columns in destination order, all of them known to exist.
pub fn make(
    columns: &[String],
    extra: Option<Extra<'_>>,
    layout: &Layout,
    queue_batches: usize,
    outcome: Arc<Outcome>,
) -> (ArrowSink, BatchReader) {
    let index = |name: &String| layout.columns.iter().position(|column| column.name == *name);
    let projection: Vec<usize> = columns.iter().filter_map(index).collect();
    let full = arrow_schema(layout);
    // `project` only fails on indices that are out of range, and these come from `index`.
    let projected = full.project(&projection).map_or(full.clone(), Arc::new);
    let (schema, extra) = match extra {
        None => (projected, None),
        Some(Extra::Position(name)) => (with_column(&projected, name, DataType::UInt64), Some(ExtraKind::Position)),
        Some(Extra::Place(name)) => (with_column(&projected, name, DataType::UInt16), Some(ExtraKind::Place)),
    };
    let shape = Shape { projection, schema: schema.clone(), extra };
    let (sender, receiver) = bounded(queue_batches.max(1));
    let shared = Arc::new(Shared::default());
    let sink = ArrowSink { sender: Mutex::new(Some(sender)), shape, outcome: outcome.clone(), shared: shared.clone() };
    (sink, BatchReader { receiver, schema, outcome, shared, last_handed_over: None })
}

fn with_column(schema: &Schema, name: &str, data_type: DataType) -> SchemaRef {
    let column = Arc::new(Field::new(name, data_type, false));
    Arc::new(Schema::new(schema.fields().iter().cloned().chain([column]).collect::<Vec<_>>()))
}

impl Shape {
    fn of(&self, rows: &Placed, first: RowPosition) -> Result<RecordBatch, ArrowError> {
        let projected = rows.batch.project(&self.projection)?;
        let extra: ArrayRef = match self.extra {
            None => return Ok(projected),
            Some(ExtraKind::Position) => {
                let end = first.plus(rows.batch.num_rows() as u64);
                Arc::new(UInt64Array::from_iter_values(first.number()..end.number()))
            }
            Some(ExtraKind::Place) => Arc::new(places(rows)?),
        };
        let mut columns = projected.columns().to_vec();
        columns.push(extra);
        RecordBatch::try_new(self.schema.clone(), columns)
    }
}

/// The place of every row.
fn places(rows: &Placed) -> Result<UInt16Array, ArrowError> {
    let mut places = vec![0; rows.batch.num_rows()];
    for (place, part) in &rows.parts {
        // A router has no more places than 16 bits can tell.
        let place = u16::try_from(*place).map_err(|error| ArrowError::CastError(error.to_string()))?;
        places[part.clone()].fill(place);
    }
    Ok(places.into())
}

impl Sink for ArrowSink {
    fn writer(&self) -> Box<dyn Writer> {
        let sender = lock(&self.sender).clone();
        let (shape, outcome) = (self.shape.clone(), self.outcome.clone());
        Box::new(ArrowWriter { sender, shape, next: RowPosition::first(0), outcome })
    }

    fn by_place(&self) -> bool {
        self.shape.extra == Some(ExtraKind::Place)
    }

    fn starved(&self) -> bool {
        let empty = lock(&self.sender).as_ref().is_none_or(Sender::is_empty);
        empty && self.shared.waiting.load(Ordering::Acquire)
    }

    fn close(&self) {
        lock(&self.sender).take();
    }

    fn report(&self) -> SinkReport {
        lock(&self.shared.counters).clone()
    }

    fn columns(&self) -> Option<Vec<ColumnReport>> {
        None
    }
}

struct ArrowWriter {
    sender: Option<Sender<RecordBatch>>,
    shape: Shape,
    /// Of the first row of the next batch.
    next: RowPosition,
    outcome: Arc<Outcome>,
}

impl Writer for ArrowWriter {
    fn begin_slice(&mut self, slice: &SliceSpec, _stage: &mut StageReport) -> Result<bool, CoreError> {
        self.next = RowPosition::first(slice.number);
        Ok(true)
    }

    fn write(&mut self, rows: Placed, _origin: Origin, stage: &mut StageReport) -> Result<bool, CoreError> {
        let start = Instant::now();
        let first = self.next;
        self.next = first.plus(rows.batch.num_rows() as u64);
        let batch = self
            .shape
            .of(&rows, first)
            .map_err(|error| CoreError::new(ErrorKind::Internal, format!("arrow sink: {error}")))?;
        let Some(sender) = &self.sender else { return Ok(false) };
        let mut pending = batch;
        let sent = loop {
            match sender.send_timeout(pending, POLL) {
                Ok(()) => break true,
                Err(SendTimeoutError::Timeout(back)) if !self.outcome.stopped() => pending = back,
                Err(SendTimeoutError::Timeout(_)) => break false,
                Err(SendTimeoutError::Disconnected(_)) => {
                    // The consumer's own error says why; this one only ends the streams.
                    self.outcome.fail(CoreError::new(ErrorKind::Cancelled, "the destination stopped taking rows"));
                    break false;
                }
            }
        };
        stage.wait_output_seconds += start.elapsed().as_secs_f64();
        Ok(sent)
    }
}

impl BatchReader {
    /// The next batch; `None` only when the flow ended well.
    fn pull(&mut self) -> Result<Option<RecordBatch>, CoreError> {
        let start = Instant::now();
        let busy = self.last_handed_over.map_or(Duration::ZERO, |since| start - since);
        self.shared.waiting.store(true, Ordering::Release);
        let received = loop {
            if let Some(error) = self.outcome.error() {
                break Err(error);
            }
            match self.receiver.recv_timeout(POLL) {
                Ok(batch) => break Ok(Some(batch)),
                Err(RecvTimeoutError::Timeout) => {}
                // `close` comes after the outcome is final: look at it once more.
                Err(RecvTimeoutError::Disconnected) => break self.outcome.error().map_or(Ok(None), Err),
            }
        };
        self.shared.waiting.store(false, Ordering::Release);
        let now = Instant::now();
        let mut counters = lock(&self.shared.counters);
        counters.busy_seconds += busy.as_secs_f64();
        counters.wait_input_seconds += (now - start).as_secs_f64();
        if let Ok(Some(batch)) = &received {
            counters.batches += 1;
            counters.rows += batch.num_rows() as u64;
        }
        drop(counters);
        self.last_handed_over = Some(now);
        received
    }
}

impl Iterator for BatchReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Called through C: an unwinding panic would end the process.
        let pulled = catch_unwind(AssertUnwindSafe(|| self.pull()))
            .unwrap_or_else(|_| Err(CoreError::new(ErrorKind::Internal, "a panic in the reader of the Arrow stream")));
        match pulled {
            Ok(batch) => batch.map(Ok),
            Err(error) => Some(Err(ArrowError::ExternalError(Box::new(error)))),
        }
    }
}

impl RecordBatchReader for BatchReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
