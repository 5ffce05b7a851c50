//! Where batches go: the seam between streams and destinations.

pub mod arrow;
mod fold;
mod null;
mod values;

use std::sync::Arc;

use arrow_array::RecordBatch;
use headrace_types::{CoreError, Layout};

use crate::outcome::Outcome;
use crate::report::{ColumnReport, SinkReport, StageReport};
use crate::spec::SinkSpec;

/// A destination of batches, shared by all streams of a flow.
pub trait Sink: Send + Sync {
    /// The writer of one stream.
    fn writer(&self) -> Box<dyn Writer>;

    /// Whether the consumer waits for input and has nothing left to take.
    fn starved(&self) -> bool;

    /// No more batches will come: the flow ended, and its outcome is final.
    fn close(&self);

    /// The consumer's counters.
    fn report(&self) -> SinkReport;

    /// Per-column aggregates, when the sink makes any.
    fn columns(&self) -> Option<Vec<ColumnReport>>;
}

/// Takes the batches of one stream.
pub trait Writer {
    /// Takes one batch and adds its work and waiting to `stage`. False when the flow was stopped.
    fn write(&mut self, batch: RecordBatch, stage: &mut StageReport) -> Result<bool, CoreError>;
}

/// The sink of a flow.
pub fn make(
    spec: &SinkSpec,
    layout: &Layout,
    queue_batches: usize,
    outcome: Arc<Outcome>,
) -> (Arc<dyn Sink>, Option<arrow::BatchReader>) {
    match spec {
        SinkSpec::Arrow { columns } => {
            let (sink, reader) = arrow::make(columns, layout, queue_batches, outcome);
            (Arc::new(sink), Some(reader))
        }
        SinkSpec::Null => (Arc::new(null::NullSink::new(layout)), None),
    }
}
