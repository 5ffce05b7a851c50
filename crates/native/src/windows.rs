//! Rows that a query is to be run over, and its answer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use headrace_engine::{Failure, FailureKind, Window as EngineWindow};
use headrace_types::{CoreError as EngineError, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::{schema_capsule, stream_in, to_python};

/// A window. Its rows can be read any number of times, before the one answer.
#[pyclass(frozen)]
pub struct Window(Mutex<Option<EngineWindow>>);

impl Window {
    /// What the core gives.
    pub fn new(window: EngineWindow) -> Self {
        Window(Mutex::new(Some(window)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<EngineWindow>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn batch(&self) -> PyResult<RecordBatch> {
        self.lock().as_ref().map(|window| window.rows.clone()).ok_or_else(answered)
    }

    fn take(&self) -> PyResult<EngineWindow> {
        self.lock().take().ok_or_else(answered)
    }
}

fn answered() -> PyErr {
    to_python(&EngineError::new(ErrorKind::Internal, "a window was answered already"))
}

#[pymethods]
impl Window {
    /// Place of the transform in its flow, from 0.
    fn transform(&self) -> PyResult<usize> {
        self.lock().as_ref().map(|window| window.transform).ok_or_else(answered)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // best effort by the protocol: the stream has one schema
        let batch = self.batch()?;
        let schema = batch.schema();
        let reader = RecordBatchIterator::new([Ok(batch)], schema);
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, self.batch()?.schema_ref())
    }

    /// Answers with the rows of an Arrow C stream, which is read to its end first.
    fn rows(&self, py: Python<'_>, stream: &Bound<'_, PyCapsule>) -> PyResult<()> {
        let stream = stream_in(stream)?;
        let window = self.take()?;
        py.detach(|| {
            let rows = stream.collect::<Result<Vec<_>, _>>();
            window.answer(rows.map_err(|error| Failure { kind: FailureKind::Other, text: error.to_string() }));
        });
        Ok(())
    }

    /// Answers that the query has failed: `kind` is row, memory or other.
    fn failed(&self, kind: &str, text: String) -> PyResult<()> {
        let kind = match kind {
            "row" => FailureKind::Row,
            "memory" => FailureKind::Memory,
            _ => FailureKind::Other,
        };
        self.take()?.answer(Err(Failure { kind, text }));
        Ok(())
    }
}
