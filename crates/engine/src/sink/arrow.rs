//! One merged Arrow stream: all writers feed a bounded queue, an embedded database pulls from it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader, UInt16Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use crossbeam_channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, bounded};
use headrace_types::{CoreError, ErrorKind, RowSchema};

use super::{Origin, Placed, Sink, Writer};
use crate::measure::ConsumerMeasure;
use crate::meter::{Activity, Clock, Doing, StreamMeter};
use crate::outcome::{Outcome, lock};
use crate::report::SinkReport;
use crate::routing::Router;
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

/// Columns that follow those of the rows, by their names.
pub struct Extras<'a> {
    /// [`RowPosition`] of each row.
    pub position: Option<&'a str>,
    /// Place of each row, as the router has it.
    pub place: Option<(&'a str, &'a Arc<Router>)>,
}

/// What the consumer sees of a batch.
#[derive(Clone)]
struct Shape {
    projection: Vec<usize>,
    schema: SchemaRef,
    has_position: bool,
    places: Places,
}

/// How the places of rows are known.
#[derive(Clone)]
enum Places {
    /// Nobody asks for them.
    Unknown,
    /// Rows of one place stand together.
    Together(Arc<Router>),
    /// Rows have positions and keep their order: the router is asked once more. Rare: only the second pass wants both.
    InOrder(Arc<Router>),
}

struct Shared {
    waiting: AtomicBool,
    has_told_error: AtomicBool,
    counters: Mutex<SinkReport>,
    consumer: Mutex<Clock<Asking, { Asking::Ended as usize + 1 }>>,
}

/// What the consumer is at.
#[derive(Debug, Clone, Copy)]
enum Asking {
    /// It has not asked yet.
    NotYet,
    /// It waits for a batch.
    Waits,
    /// It works on the batches that it has.
    Works,
    /// It has seen the end, or wants no more.
    Ended,
}

impl Activity for Asking {
    fn index(self) -> usize {
        self as usize
    }
}

impl Shared {
    /// Counters with the times up to now.
    fn report(&self) -> SinkReport {
        let counters = lock(&self.counters).clone();
        // Read under its lock: a copy would go on behind a turn of the clock itself, and tell more than it does later.
        let consumer = lock(&self.consumer);
        let seconds = |asking| consumer.spent(asking).as_secs_f64();
        SinkReport { wait_input_seconds: seconds(Asking::Waits), busy_seconds: seconds(Asking::Works), ..counters }
    }
}

/// The consumer's end. Rust only: its callbacks never touch Python.
pub struct BatchReader {
    receiver: Receiver<RecordBatch>,
    schema: SchemaRef,
    outcome: Arc<Outcome>,
    shared: Arc<Shared>,
}

/// Both ends. `columns` are those of the rows in destination order, all of them known to exist.
pub fn make(
    columns: &[String],
    extras: Extras<'_>,
    rows: &RowSchema,
    queue_batches: usize,
    outcome: Arc<Outcome>,
) -> (ArrowSink, BatchReader) {
    let projection: Vec<usize> = columns.iter().filter_map(|name| rows.index_of(name)).collect();
    let full = rows.arrow();
    // `project` only fails on indices that are out of range, and these come from the rows.
    let projected = full.project(&projection).map_or(full.clone(), Arc::new);
    let position = extras.position.map(|name| Field::new(name, DataType::UInt64, false));
    let place = extras.place.map(|(name, _)| Field::new(name, DataType::UInt16, false));
    let fields = projected.fields().iter().cloned().chain(position.into_iter().chain(place).map(Arc::new));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let has_position = extras.position.is_some();
    let places = match extras.place {
        None => Places::Unknown,
        Some((_, router)) if has_position => Places::InOrder(router.clone()),
        Some((_, router)) => Places::Together(router.clone()),
    };
    let rows_by_place = match &places {
        Places::Together(router) => vec![0; router.count() as usize],
        _ => vec![],
    };
    let shape = Shape { projection, schema: schema.clone(), has_position, places };
    let (sender, receiver) = bounded(queue_batches.max(1));
    let counters = Mutex::new(SinkReport { rows_by_place, ..SinkReport::default() });
    let consumer = Mutex::new(Clock::new(Asking::NotYet));
    let shared = Arc::new(Shared { waiting: false.into(), has_told_error: false.into(), counters, consumer });
    let sink = ArrowSink { sender: Mutex::new(Some(sender)), shape, outcome: outcome.clone(), shared: shared.clone() };
    (sink, BatchReader { receiver, schema, outcome, shared })
}

impl Shape {
    fn of(&self, rows: &Placed, first: RowPosition) -> Result<RecordBatch, CoreError> {
        let mut columns: Vec<ArrayRef> =
            self.projection.iter().map(|index| rows.batch.column(*index).clone()).collect();
        if self.has_position {
            let end = first.plus(rows.batch.num_rows() as u64);
            columns.push(Arc::new(UInt64Array::from_iter_values(first.number()..end.number())));
        }
        match &self.places {
            Places::Unknown => {}
            Places::Together(_) => columns.push(Arc::new(UInt16Array::from(places_of_parts(rows)?))),
            Places::InOrder(router) => columns.push(Arc::new(UInt16Array::from(places_of_rows(rows, router)?))),
        }
        // Without a column, a batch has to be told how many rows it has.
        let options = RecordBatchOptions::new().with_row_count(Some(rows.batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options).map_err(internal)
    }
}

/// The place of every row.
fn places_of_parts(rows: &Placed) -> Result<Vec<u16>, CoreError> {
    let mut places = vec![0; rows.batch.num_rows()];
    for (place, part) in &rows.parts {
        places[part.clone()].fill(place_number(*place)?);
    }
    Ok(places)
}

/// The same of rows that do not stand together.
fn places_of_rows(rows: &Placed, router: &Router) -> Result<Vec<u16>, CoreError> {
    let mut places = Vec::new();
    router.places(&rows.batch, &mut places)?;
    places.into_iter().map(place_number).collect()
}

/// A router has no more places than 16 bits can tell.
fn place_number(place: u32) -> Result<u16, CoreError> {
    u16::try_from(place).map_err(internal)
}

fn internal(error: impl std::fmt::Display) -> CoreError {
    CoreError::new(ErrorKind::Internal, format!("arrow sink: {error}"))
}

impl Sink for ArrowSink {
    fn writer(&self) -> Box<dyn Writer> {
        let sender = lock(&self.sender).clone();
        let (shape, outcome, shared) = (self.shape.clone(), self.outcome.clone(), self.shared.clone());
        Box::new(ArrowWriter { sender, shape, next: RowPosition::first(0), outcome, shared })
    }

    fn by_place(&self) -> bool {
        matches!(self.shape.places, Places::Together(_))
    }

    fn keeps_blocks(&self) -> bool {
        true
    }

    fn starved(&self) -> bool {
        let empty = lock(&self.sender).as_ref().is_none_or(Sender::is_empty);
        empty && self.shared.waiting.load(Ordering::Acquire)
    }

    fn has_told_error(&self) -> bool {
        self.shared.has_told_error.load(Ordering::Acquire)
    }

    fn close(&self) {
        lock(&self.sender).take();
    }

    fn report(&self) -> SinkReport {
        self.shared.report()
    }

    fn consumer(&self) -> Option<ConsumerMeasure> {
        let SinkReport { wait_input_seconds, busy_seconds, batches, rows, .. } = self.shared.report();
        Some(ConsumerMeasure { destination: None, wait_input_seconds, busy_seconds, batches, rows })
    }
}

struct ArrowWriter {
    sender: Option<Sender<RecordBatch>>,
    shape: Shape,
    /// Of the first row of the next batch.
    next: RowPosition,
    outcome: Arc<Outcome>,
    shared: Arc<Shared>,
}

impl Writer for ArrowWriter {
    fn begin_slice(&mut self, slice: &SliceSpec, _meter: &StreamMeter) -> Result<bool, CoreError> {
        self.next = RowPosition::first(slice.number);
        Ok(true)
    }

    fn write(&mut self, rows: Placed, _origin: Origin, meter: &StreamMeter) -> Result<bool, CoreError> {
        let _waiting = meter.pause(Doing::WaitDestination);
        let first = self.next;
        self.next = first.plus(rows.batch.num_rows() as u64);
        let batch = self.shape.of(&rows, first)?;
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
        if sent && matches!(self.shape.places, Places::Together(_)) {
            let counts = &mut lock(&self.shared.counters).rows_by_place;
            for (place, part) in &rows.parts {
                counts[*place as usize] += part.len() as u64;
            }
        }
        Ok(sent)
    }
}

impl BatchReader {
    /// The next batch; `None` only when the flow ended well.
    fn pull(&mut self) -> Result<Option<RecordBatch>, CoreError> {
        lock(&self.shared.consumer).turn_to(Asking::Waits);
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
        let is_handed_over = if let Ok(Some(batch)) = &received {
            let mut counters = lock(&self.shared.counters);
            counters.batches += 1;
            counters.rows += batch.num_rows() as u64;
            true
        } else {
            false
        };
        lock(&self.shared.consumer).turn_to(if is_handed_over { Asking::Works } else { Asking::Ended });
        received
    }
}

impl Drop for BatchReader {
    fn drop(&mut self) {
        lock(&self.shared.consumer).turn_to(Asking::Ended);
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
            Err(error) => {
                self.shared.has_told_error.store(true, Ordering::Release);
                Some(Err(ArrowError::ExternalError(Box::new(error))))
            }
        }
    }
}

impl RecordBatchReader for BatchReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
