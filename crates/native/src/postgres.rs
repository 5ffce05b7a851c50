//! One PostgreSQL session for Python's own statements.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use headrace_engine::postgres::{BinaryColumn, BinaryRows, Connection, QueryResult};
use headrace_types::{CoreError as EngineError, ErrorKind};
use pyo3::prelude::*;

use crate::{from_json, to_json, to_python};

/// Columns, rows, tag, type oids, whether there are more rows.
type Rows = (Vec<String>, Vec<Vec<Option<String>>>, String, Vec<u32>, bool);

fn rows(result: QueryResult) -> Rows {
    (result.columns, result.rows, result.tag, result.types, result.has_more)
}

/// Rows of a session that are under way.
#[pyclass(frozen)]
pub struct PostgresRows(Mutex<Option<BinaryRows>>);

impl PostgresRows {
    /// The rows, once.
    pub fn take(&self) -> Option<BinaryRows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A session. Calls of several threads wait for one another, except `cancel`.
#[pyclass(frozen)]
pub struct PostgresConnection {
    /// None after `close`.
    connection: Mutex<Option<Connection>>,
    /// The interrupt of every wait.
    cancelled: Arc<AtomicBool>,
    process_id: i32,
}

#[pymethods]
impl PostgresConnection {
    #[new]
    fn new(py: Python<'_>, spec_json: &str) -> PyResult<Self> {
        let spec = from_json("PostgreSQL connection", spec_json)?;
        let cancelled = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&cancelled);
        let interrupt = Arc::new(move || watched.load(Ordering::Acquire));
        let connection = py.detach(|| Connection::connect(&spec, interrupt)).map_err(|error| to_python(&error))?;
        Ok(PostgresConnection {
            process_id: connection.process_id(),
            connection: Mutex::new(Some(connection)),
            cancelled,
        })
    }

    fn execute(&self, py: Python<'_>, sql: &str) -> PyResult<()> {
        self.with(py, |connection| connection.execute(sql))
    }

    fn query(&self, py: Python<'_>, sql: &str, parameters: Vec<Option<String>>) -> PyResult<Rows> {
        let parameters: Vec<Option<&str>> = parameters.iter().map(Option::as_deref).collect();
        self.with(py, |connection| connection.query(sql, &parameters)).map(rows)
    }

    fn first_rows(&self, py: Python<'_>, sql: &str, parameters: Vec<Option<String>>, limit: u16) -> PyResult<Rows> {
        let parameters: Vec<Option<&str>> = parameters.iter().map(Option::as_deref).collect();
        self.with(py, |connection| connection.first_rows(sql, &parameters, limit)).map(rows)
    }

    fn next_rows(&self, py: Python<'_>, limit: u16) -> PyResult<Rows> {
        self.with(py, |connection| connection.next_rows(limit)).map(rows)
    }

    /// Name, oid of the type and type modifier of each column; none if the statement gives no rows.
    fn describe(&self, py: Python<'_>, sql: &str) -> PyResult<Vec<(String, u32, i32)>> {
        let columns = self.with(py, |connection| connection.describe(sql))?;
        Ok(columns.into_iter().map(|own| (own.name, own.type_oid, own.modifier)).collect())
    }

    /// The rows of a statement, which take the session with them; only `cancel` and `process_id` can be called behind that.
    fn binary_rows(
        &self,
        py: Python<'_>,
        sql: &str,
        parameters: Vec<Option<String>>,
        count: usize,
        columns_json: &str,
    ) -> PyResult<PostgresRows> {
        let columns: Vec<BinaryColumn> = from_json("rows", columns_json)?;
        let parameters: Vec<Option<&str>> = parameters.iter().map(Option::as_deref).collect();
        let rows = py.detach(|| {
            let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
            let connection = connection.ok_or_else(closed)?;
            connection.binary_rows(sql, &parameters, count, &columns)
        });
        rows.map(|rows| PostgresRows(Mutex::new(Some(rows)))).map_err(|error| to_python(&error))
    }

    /// The thread that waits sends the CancelRequest.
    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// None for a Unix socket.
    fn address(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with(py, |connection| Ok(connection.address().map(|address| address.to_string())))
    }

    fn process_id(&self) -> i32 {
        self.process_id
    }

    fn parameter(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        self.with(py, |connection| Ok(connection.parameter(name).map(str::to_owned)))
    }

    fn notices(&self, py: Python<'_>) -> PyResult<String> {
        to_json(&self.with(py, |connection| Ok(connection.take_notices()))?)
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(connection) = connection {
                connection.close();
            }
        });
    }
}

impl PostgresConnection {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Connection) -> Result<T, EngineError> + Send,
    ) -> PyResult<T> {
        let result = py.detach(|| match &mut *self.connection.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(connection) => call(connection),
            None => Err(closed()),
        });
        result.map_err(|error| to_python(&error))
    }
}

fn closed() -> EngineError {
    EngineError::new(ErrorKind::Internal, "a PostgreSQL connection was used after it was closed")
}
