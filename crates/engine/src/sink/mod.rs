//! Where batches go: the seam between streams and destinations.

pub mod arrow;
mod fold;
pub mod locate;
mod null;
mod postgres;
pub mod values;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use headrace_parse::infer::TableFacts;
use headrace_types::CoreError;

use crate::measure::{ConsumerMeasure, WriterMeasure};
#[cfg(doc)]
use crate::meter::Doing;
use crate::meter::StreamMeter;
use crate::outcome::Outcome;
use crate::queue::Group;
use crate::report::{ColumnReport, SinkReport, SliceReport};
use crate::routing::Router;
use crate::spec::{FlowSpec, SinkSpec, SliceSpec};
use crate::transforms::Transforms;

/// A destination of batches, shared by all streams of a flow.
pub trait Sink: Send + Sync {
    /// The writer of one stream.
    fn writer(&self) -> Box<dyn Writer>;

    /// What one stream has to take together, in this order. `units`: slices that go together whatever the sink is: single ones, or
    /// those whose rows meet.
    fn groups(&self, units: Vec<Group>) -> Vec<Group> {
        units
    }

    /// Indexes in the layout of the only columns that the batches shall have; `None` for all.
    fn wanted_columns(&self) -> Option<Vec<usize>> {
        None
    }

    /// Whether rejects are written and counted; else they are left out.
    fn keeps_rejects(&self) -> bool {
        true
    }

    /// Whether anybody asks for the hashes of the texts of slices.
    fn hashes_texts(&self) -> bool {
        true
    }

    /// Whether rows of one place have to stand together in a batch; otherwise they keep their order, and have no place.
    fn by_place(&self) -> bool {
        false
    }

    /// Whether the consumer was told of an error, so that it has failed for that.
    fn has_told_error(&self) -> bool {
        false
    }

    /// Whether the consumer keeps blocks beyond the call that gives it a batch. Of one that does not, all come home by themselves.
    fn keeps_blocks(&self) -> bool {
        false
    }

    /// Whether a consumer that keeps blocks waits for input and has nothing left to take. Of one that keeps none, every block comes
    /// home by itself, however long a stream works on it.
    fn starved(&self) -> bool {
        false
    }

    /// No more batches will come: the flow ended, and its outcome is final.
    fn close(&self) {}

    /// The consumer's counters.
    fn report(&self) -> SinkReport {
        SinkReport::default()
    }

    /// The consumer of a merged stream, if there is one, up to now.
    fn consumer(&self) -> Option<ConsumerMeasure> {
        None
    }

    /// The connections that take rows, if there are any, up to now.
    fn writers(&self) -> Vec<WriterMeasure> {
        Vec::new()
    }

    /// Per-column aggregates, when the sink makes any.
    fn columns(&self) -> Option<Vec<ColumnReport>> {
        None
    }

    /// Commits what the writers left open, after the flow ended well. Nothing for sinks whose consumer commits.
    fn commit(&self) -> Result<(), CoreError> {
        Ok(())
    }

    /// These processes of the server have been seen at work just now: their connections may stand still.
    fn seen_at_work(&self, _processes: &[i32]) {}

    /// Gives up what the writers left open: the flow was stopped, and nobody will commit it.
    fn abandon(&self) {}
}

/// Takes the batches of one stream: slice after slice, then `finish`. A call is the stream's [`Doing::Write`]; while it waits, it
/// says so to the meter. False says that the flow was stopped.
pub trait Writer {
    /// Rows of this slice follow.
    fn begin_slice(&mut self, _slice: &SliceSpec, _meter: &StreamMeter) -> Result<bool, CoreError> {
        Ok(true)
    }

    /// What takes facts about texts in the place of batches, where the parser can give them.
    fn facts(&mut self) -> Option<&mut TableFacts> {
        None
    }

    /// Takes one batch.
    fn write(&mut self, rows: Placed, origin: Origin, meter: &StreamMeter) -> Result<bool, CoreError>;

    /// The slice ended well.
    fn end_slice(&mut self, _account: &SliceReport) -> Result<(), CoreError> {
        Ok(())
    }

    /// All slices of an epoch have ended, whichever stream took them; no stream writes now.
    fn end_epoch(&mut self, _meter: &StreamMeter) -> Result<bool, CoreError> {
        Ok(true)
    }

    /// The stream takes no more slices.
    fn finish(&mut self, _meter: &StreamMeter) -> Result<bool, CoreError> {
        Ok(true)
    }
}

/// A batch, and which of its rows go where.
pub struct Placed {
    /// The rows.
    pub batch: RecordBatch,
    /// Places, ascending, and the rows of each; all together they are the batch.
    pub parts: Vec<(u32, Range<usize>)>,
}

impl Placed {
    /// A batch whose rows all go to one place.
    pub fn whole(batch: RecordBatch, place: u32) -> Self {
        let rows = 0..batch.num_rows();
        Placed { batch, parts: vec![(place, rows)] }
    }
}

/// Where the rows of a batch stand.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// Number of the slice.
    pub slice: u32,
    /// Line of the slice, from 0, at the front of the block that became the batch.
    pub first_line: u64,
    /// First byte of that block in the file.
    pub at_byte: u64,
    /// Bytes of the block that were parsed; none of joined rows, which stand in several files.
    pub bytes: u64,
}

impl Origin {
    /// Joined rows of a unit, whose first slice this is.
    pub fn of_joined(slice: u32) -> Self {
        Origin { slice, first_line: 0, at_byte: 0, bytes: 0 }
    }

    /// Whether they are joined rows.
    pub fn is_joined(&self) -> bool {
        self.bytes == 0
    }
}

/// The sink of a flow, behind its transforms; `router` finds the places of its rows, if they have any.
///
/// # Errors
/// `Specification` when the sink contradicts the rows or itself.
pub fn make(
    spec: &Arc<FlowSpec>,
    queue_batches: usize,
    outcome: Arc<Outcome>,
    transforms: &Arc<Transforms>,
    router: Option<&Arc<Router>>,
) -> Result<(Arc<dyn Sink>, Option<arrow::BatchReader>), CoreError> {
    Ok(match &spec.sink {
        SinkSpec::Arrow { columns, position, place_column } => {
            let place = place_column.as_deref().zip(router);
            let extras = arrow::Extras { position: position.as_deref(), place };
            let (sink, reader) = arrow::make(columns, extras, &spec.row_schema()?, queue_batches, outcome);
            (Arc::new(sink), Some(reader))
        }
        SinkSpec::Locate { rows, ended } => {
            (Arc::new(locate::LocateSink::new(spec, rows, ended, None, transforms.clone())), None)
        }
        SinkSpec::Null => (Arc::new(null::NullSink::new(spec.row_schema()?)), None),
        SinkSpec::Postgres(postgres) => {
            let places = router.map(|router| router.count());
            (Arc::new(postgres::PostgresSink::new(spec, postgres, transforms.clone(), places, outcome)?), None)
        }
    })
}
