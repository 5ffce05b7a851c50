//! Python binding: converts types, maps errors, releases the GIL. Nothing else.
//!
//! Specifications and results cross as JSON text; rows cross only as an Arrow C stream whose callbacks are Rust and never
//! touch Python. Errors cross as `CoreError(json)`; `headrace.core` turns them into the package's own classes.

mod postgres;
mod windows;

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use headrace_engine::generate_files::{self, GenerateJob};
use headrace_engine::hash_places::{HashPlacesSpec, hash_places as place_keys};
use headrace_engine::infer::{InferSpec, LookSpec, infer_columns as gather_facts, look as look_at};
use headrace_engine::key_bounds::{KeyBoundsSpec, key_bounds as read_key_bounds};
use headrace_engine::key_scan::{KeyScanSpec, key_scan as scan_keys};
use headrace_engine::lookup::{Batches, Lookup as EngineLookup, LookupSpec, StreamLookupSpec};
use headrace_engine::replay_rows::{ReplayRowsSpec, replay_rows as find_rows};
use headrace_engine::slices::{SlicingSpec, plan_slices_until as cut_files};
use headrace_engine::{BatchReader, Flow as EngineFlow};
use headrace_types::{CoreError as EngineError, ErrorKind, Layout};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde::Serialize;
use serde::de::DeserializeOwned;

create_exception!(_native, CoreError, PyException, "An error of the core; its only argument is JSON text.");

pub(crate) fn to_python(error: &EngineError) -> PyErr {
    // An error is plain data; should it ever fail to serialise, its text still says what happened.
    CoreError::new_err(serde_json::to_string(error).unwrap_or_else(|_| error.to_string()))
}

fn from_json<T: DeserializeOwned>(what: &str, json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| {
        to_python(&EngineError::new(ErrorKind::Specification, format!("{what} specification")).found(error.to_string()))
    })
}

fn to_json<T: Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value)
        .map_err(|error| to_python(&EngineError::new(ErrorKind::Internal, "report").found(error.to_string())))
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Version of the core; must be that of the Python package.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Makes freed memory of large rows go back to the system at once, in all of the process.
#[pyfunction]
fn return_large_memory() {
    headrace_engine::return_large_memory();
}

/// Names of all instruction sets that the parser can use on this machine, fastest first.
#[pyfunction]
fn cpu_paths() -> Vec<&'static str> {
    headrace_parse::CpuPath::available().into_iter().map(headrace_parse::CpuPath::name).collect()
}

/// Instructions the parser uses: the first of [`cpu_paths`], or what HEADRACE_CPU says.
#[pyfunction]
fn cpu_path() -> PyResult<&'static str> {
    headrace_parse::cpu_path().map(|path| path.name()).map_err(|error| to_python(&error))
}

/// Cuts files into slices. Asks `is_cancelled` every few milliseconds; what it raises ends the cutting.
#[pyfunction]
fn plan_slices(py: Python<'_>, spec_json: &str, is_cancelled: Py<PyAny>) -> PyResult<String> {
    let spec: SlicingSpec = from_json("slicing", spec_json)?;
    to_json(&until(py, is_cancelled, |must_end| cut_files(&spec, must_end))?)
}

/// What `work` returns, which asks a Python function now and then whether it must end; or what that function raises.
fn until<T: Send>(
    py: Python<'_>,
    is_cancelled: Py<PyAny>,
    work: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<T, EngineError> + Send,
) -> PyResult<T> {
    let mut raised = None;
    let mut must_end = || {
        let asked = Python::attach(|py| {
            py.check_signals()?;
            is_cancelled.call0(py)?.is_truthy(py)
        });
        asked.unwrap_or_else(|error| {
            raised.get_or_insert(error);
            true
        })
    };
    let result = py.detach(|| work(&mut must_end));
    match raised {
        Some(error) => Err(error),
        None => result.map_err(|error| to_python(&error)),
    }
}

/// Columns of a layout whose texts are converted field by field, and why.
#[pyfunction]
fn field_by_field(layout_json: &str) -> PyResult<String> {
    let layout: Layout = from_json("layout", layout_json)?;
    layout.check().map_err(|text| to_python(&EngineError::new(ErrorKind::Specification, text)))?;
    to_json(&headrace_parse::field_by_field(&layout))
}

/// First and last key of files.
#[pyfunction]
fn key_bounds(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    let spec: KeyBoundsSpec = from_json("key bounds", spec_json)?;
    let bounds = py.detach(|| read_key_bounds(&spec)).map_err(|error| to_python(&error))?;
    to_json(&bounds)
}

/// Where keys of partitions by hash belong.
#[pyfunction]
fn hash_places(spec_json: &str) -> PyResult<String> {
    let spec: HashPlacesSpec = from_json("hash places", spec_json)?;
    to_json(&place_keys(&spec).map_err(|error| to_python(&error))?)
}

/// All keys of files. Asks `is_cancelled` every few milliseconds; what it raises ends the scan.
#[pyfunction]
fn key_scan(py: Python<'_>, spec_json: &str, is_cancelled: Py<PyAny>) -> PyResult<String> {
    let spec: KeyScanSpec = from_json("key scan", spec_json)?;
    to_json(&until(py, is_cancelled, |must_end| scan_keys(&spec, must_end))?)
}

/// Beginnings and ends of files, by every dialect that they may have. Asks `is_cancelled` now and then.
#[pyfunction]
fn look(py: Python<'_>, spec_json: &str, is_cancelled: Py<PyAny>) -> PyResult<String> {
    let spec: LookSpec = from_json("look", spec_json)?;
    to_json(&until(py, is_cancelled, |must_end| look_at(&spec, must_end))?)
}

/// Facts about every column of files. Asks `is_cancelled` every few milliseconds; what it raises ends the pass.
#[pyfunction]
fn infer_columns(py: Python<'_>, spec_json: &str, is_cancelled: Py<PyAny>) -> PyResult<String> {
    let spec: InferSpec = from_json("inference", spec_json)?;
    to_json(&until(py, is_cancelled, |must_end| gather_facts(&spec, must_end))?)
}

/// The rows of a file of repaired rejects. Asks `is_cancelled` now and then; what it raises ends the search.
#[pyfunction]
fn replay_rows(py: Python<'_>, spec_json: &str, is_cancelled: Py<PyAny>) -> PyResult<String> {
    let spec: ReplayRowsSpec = from_json("replay", spec_json)?;
    to_json(&until(py, is_cancelled, |must_end| find_rows(&spec, must_end))?)
}

/// The Arrow C stream in a capsule, which is taken out of it.
pub(crate) fn stream_in(capsule: &Bound<'_, PyCapsule>) -> PyResult<RecordBatchStreamReader> {
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: by the Arrow PyCapsule interface the name says what the capsule holds; nobody else takes it out meanwhile,
    // because this thread is attached to Python. An empty stream is left behind, so that the capsule releases nothing.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    reader.map_err(|error| to_python(&EngineError::new(ErrorKind::Internal, "Arrow stream").found(error.to_string())))
}

/// Rows of files, or of a query, that rows of a flow look for.
#[pyclass(frozen)]
struct Lookup(Arc<EngineLookup>);

#[pymethods]
impl Lookup {
    /// Reads the files. Asks `is_cancelled` every few milliseconds; what it raises ends the reading.
    #[new]
    fn new(py: Python<'_>, spec_json: &str, is_cancelled: Py<PyAny>) -> PyResult<Self> {
        let spec: LookupSpec = from_json("lookup", spec_json)?;
        let lookup = until(py, is_cancelled, |must_end| EngineLookup::build(&spec, must_end))?;
        Ok(Lookup(Arc::new(lookup)))
    }

    /// Reads the rows of a stream. Asks `is_cancelled` every few milliseconds, also until a stream has ended that it has
    /// to stop.
    #[staticmethod]
    fn of_stream(
        py: Python<'_>,
        spec_json: &str,
        stream: &Bound<'_, PyCapsule>,
        is_cancelled: Py<PyAny>,
    ) -> PyResult<Self> {
        let spec: StreamLookupSpec = from_json("lookup", spec_json)?;
        let sources = vec![Batches::Stream(Box::new(stream_in(stream)?))];
        let lookup = until(py, is_cancelled, |must_end| EngineLookup::of_batches(&spec, sources, must_end))?;
        Ok(Lookup(Arc::new(lookup)))
    }

    /// Reads the rows of sessions of a server, side by side. Asks `is_cancelled` every few milliseconds.
    #[staticmethod]
    fn of_sessions(
        py: Python<'_>,
        spec_json: &str,
        rows: Vec<PyRef<'_, postgres::PostgresRows>>,
        is_cancelled: Py<PyAny>,
    ) -> PyResult<Self> {
        let spec: StreamLookupSpec = from_json("lookup", spec_json)?;
        let sources = rows
            .iter()
            .map(|rows| rows.take().map(|rows| Batches::Session(Box::new(rows))))
            .collect::<Option<Vec<_>>>();
        let sources = sources
            .ok_or_else(|| to_python(&EngineError::new(ErrorKind::Internal, "rows of a session were taken already")))?;
        let lookup = until(py, is_cancelled, |must_end| EngineLookup::of_batches(&spec, sources, must_end))?;
        Ok(Lookup(Arc::new(lookup)))
    }

    fn report(&self) -> PyResult<String> {
        to_json(self.0.report())
    }
}

/// A data flow.
#[pyclass(frozen)]
struct Flow(EngineFlow);

#[pymethods]
impl Flow {
    #[new]
    fn new(py: Python<'_>, spec_json: &str, lookups: Vec<PyRef<'_, Lookup>>) -> PyResult<Self> {
        let spec = from_json("flow", spec_json)?;
        let lookups = lookups.iter().map(|lookup| lookup.0.clone()).collect();
        py.detach(|| EngineFlow::with_lookups(spec, lookups)).map(Flow).map_err(|error| to_python(&error))
    }

    /// A flow whose rows are those of a stream.
    #[staticmethod]
    fn of_stream(
        py: Python<'_>,
        spec_json: &str,
        lookups: Vec<PyRef<'_, Lookup>>,
        stream: &Bound<'_, PyCapsule>,
    ) -> PyResult<Self> {
        let spec = from_json("flow", spec_json)?;
        let lookups = lookups.iter().map(|lookup| lookup.0.clone()).collect();
        let stream = Box::new(stream_in(stream)?);
        py.detach(|| EngineFlow::of_batches(spec, lookups, stream)).map(Flow).map_err(|error| to_python(&error))
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.start()).map_err(|error| to_python(&error))
    }

    fn arrow_stream(&self, destination: usize) -> PyResult<ArrowStream> {
        let reader = self.0.take_reader_of(destination).ok_or_else(|| {
            to_python(&EngineError::new(ErrorKind::Internal, "the flow has no Arrow stream, or it was taken already"))
        })?;
        Ok(ArrowStream { schema: reader.schema(), reader: std::sync::Mutex::new(Some(reader)) })
    }

    fn has_stream_failed(&self, destination: usize) -> bool {
        self.0.has_stream_failed(destination)
    }

    fn cancel(&self, py: Python<'_>, reason: &str) {
        py.detach(|| self.0.cancel(reason));
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.commit()).map_err(|error| to_python(&error))
    }

    fn next_window(&self, py: Python<'_>) -> Option<windows::Window> {
        py.detach(|| self.0.next_window()).map(windows::Window::new)
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }

    fn seen_at_work(&self, py: Python<'_>, destination: Option<usize>, process_ids: Vec<i32>) {
        py.detach(|| self.0.seen_at_work(destination, &process_ids));
    }

    fn snapshot(&self, py: Python<'_>) -> PyResult<String> {
        to_json(&py.detach(|| self.0.snapshot()))
    }

    fn measure(&self, py: Python<'_>) -> PyResult<String> {
        to_json(&py.detach(|| self.0.measure()))
    }

    fn join(&self, py: Python<'_>, timeout_seconds: f64) -> PyResult<Option<String>> {
        py.detach(|| self.0.join(duration(timeout_seconds))).map(|report| to_json(&report)).transpose()
    }
}

/// The merged Arrow stream of a flow: readable once.
#[pyclass(frozen)]
struct ArrowStream {
    schema: arrow_schema::SchemaRef,
    reader: std::sync::Mutex<Option<BatchReader>>,
}

#[pymethods]
impl ArrowStream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // best effort by the protocol: the stream has one schema
        let reader = self.reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let Some(reader) = reader else {
            // An empty second stream would look like a source without rows.
            return Err(to_python(&EngineError::new(ErrorKind::Internal, "the Arrow stream of a flow was read twice")));
        };
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }
}

pub(crate) fn schema_capsule<'py>(py: Python<'py>, schema: &arrow_schema::Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema)
        .map_err(|error| to_python(&EngineError::new(ErrorKind::Internal, "schema").found(error.to_string())))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// A running generation of TPC-H files.
#[pyclass(frozen)]
struct Generation(GenerateJob);

#[pymethods]
impl Generation {
    fn cancel(&self) {
        self.0.cancel();
    }

    fn snapshot(&self) -> PyResult<String> {
        to_json(&self.0.snapshot())
    }

    fn join(&self, py: Python<'_>, timeout_seconds: f64) -> PyResult<Option<String>> {
        py.detach(|| self.0.join(Some(duration(timeout_seconds)))).map(|result| to_json(&result)).transpose()
    }
}

/// Starts to write TPC-H tables as files.
#[pyfunction]
fn generate_tpch(py: Python<'_>, spec_json: &str) -> PyResult<Generation> {
    let spec = from_json("generation", spec_json)?;
    Ok(Generation(py.detach(|| generate_files::start(spec))))
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("CoreError", module.py().get_type::<CoreError>())?;
    module.add_class::<Flow>()?;
    module.add_class::<Lookup>()?;
    module.add_class::<ArrowStream>()?;
    module.add_class::<windows::Window>()?;
    module.add_class::<Generation>()?;
    module.add_class::<postgres::PostgresConnection>()?;
    module.add_class::<postgres::PostgresRows>()?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(return_large_memory, module)?)?;
    module.add_function(wrap_pyfunction!(cpu_path, module)?)?;
    module.add_function(wrap_pyfunction!(cpu_paths, module)?)?;
    module.add_function(wrap_pyfunction!(plan_slices, module)?)?;
    module.add_function(wrap_pyfunction!(field_by_field, module)?)?;
    module.add_function(wrap_pyfunction!(hash_places, module)?)?;
    module.add_function(wrap_pyfunction!(key_bounds, module)?)?;
    module.add_function(wrap_pyfunction!(key_scan, module)?)?;
    module.add_function(wrap_pyfunction!(look, module)?)?;
    module.add_function(wrap_pyfunction!(infer_columns, module)?)?;
    module.add_function(wrap_pyfunction!(replay_rows, module)?)?;
    module.add_function(wrap_pyfunction!(generate_tpch, module)?)
}
