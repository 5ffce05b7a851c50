//! The rows of one statement in binary form, in bulk: not as texts, and not kept.
//!
//! The extended protocol, because it takes parameters, says which columns are wanted in binary, and tells their types before
//! the first row. A row is a message; it is laid out as in COPY, so one decoder reads both.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::RecordBatch;
use fallible_iterator::FallibleIterator;
use headrace_types::{ColumnType, CoreError, ErrorKind};
use headrace_wire::postgres::{DecodeError, Form, RowDecoder};
use postgres_protocol::message::backend::{Message, RowDescriptionBody};
use postgres_protocol::message::frontend;
use serde::Deserialize;

use super::connection::{Connection, unexpected};
use super::link::Outgoing;
use super::query::bind;
use super::wait::Broken;

const DESCRIBING: &str = "describing a statement";
const READING: &str = "reading rows";
const TEXT: i16 = 0;
const BINARY: i16 = 1;
/// A batch ends with the row that reaches one of these.
const BATCH_ROWS: usize = 16_384;
const BATCH_BYTES: usize = 1 << 20;

/// A column of a result, as the server tells it: domains are the types below them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultColumn {
    /// Name.
    pub name: String,
    /// Oid of its type.
    pub type_oid: u32,
    /// Its type modifier; -1 is none.
    pub modifier: i32,
}

/// A column of a result that is wanted.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BinaryColumn {
    /// Where it stands, from 0.
    pub place: usize,
    /// Its type in batches.
    #[serde(rename = "type")]
    pub column_type: ColumnType,
    /// What the server sends.
    pub form: Form,
}

/// Why there is no further batch.
#[derive(Debug)]
pub enum RowsError {
    /// The server's, or the connection's.
    Session(CoreError),
    /// A row that cannot be read; `row` counts from 0.
    Row {
        /// Rows before it.
        row: u64,
        /// What is wrong with it.
        error: DecodeError,
    },
}

impl From<CoreError> for RowsError {
    fn from(error: CoreError) -> Self {
        RowsError::Session(error)
    }
}

/// Rows that are under way; owns the connection. Dropped before the last row it asks the server to stop.
pub struct BinaryRows {
    /// None once it is closed.
    connection: Option<Connection>,
    decoder: RowDecoder,
    /// Rows before the next batch.
    rows: u64,
    has_ended: bool,
}

impl Connection {
    /// The columns of a statement, which is not executed; none if it gives no rows.
    pub fn describe(&mut self, sql: &str) -> Result<Vec<ResultColumn>, CoreError> {
        let mut outgoing = Outgoing::default();
        outgoing
            .add(|buffer| {
                frontend::parse("", sql, [], buffer)?;
                frontend::describe(b'S', "", buffer)?;
                frontend::sync(buffer);
                Ok(())
            })
            .map_err(|found| self.server.malformed(found))?;
        self.send(DESCRIBING, outgoing.bytes())?;
        let mut columns = Vec::new();
        self.answers(DESCRIBING, |_, message| match message {
            Message::ParseComplete | Message::ParameterDescription(_) | Message::NoData => Ok(()),
            Message::RowDescription(body) => {
                columns = result_columns(&body)?;
                Ok(())
            }
            _ => Err(unexpected()),
        })?;
        Ok(columns)
    }

    /// Begins a statement with the parameters `$1, $2, ...`, as text or NULL, that gives rows of `count` columns.
    pub fn binary_rows(
        mut self,
        sql: &str,
        parameters: &[Option<&str>],
        count: usize,
        wanted: &[BinaryColumn],
    ) -> Result<BinaryRows, CoreError> {
        let columns: Vec<_> = wanted.iter().map(|own| (own.place, own.column_type, own.form)).collect();
        let decoder = RowDecoder::new(count, &columns)
            .map_err(|found| CoreError::new(ErrorKind::Specification, "rows in binary form").found(found))?;
        let format = |place| if wanted.iter().any(|own| own.place == place) { BINARY } else { TEXT };
        let mut outgoing = Outgoing::default();
        outgoing
            .add(|buffer| {
                frontend::parse("", sql, [], buffer)?;
                bind(parameters, (0..count).map(format), buffer)?;
                frontend::execute("", 0, buffer)?;
                frontend::sync(buffer);
                Ok(())
            })
            .map_err(|found| self.server.malformed(found))?;
        self.send(READING, outgoing.bytes())?;
        Ok(BinaryRows { connection: Some(self), decoder, rows: 0, has_ended: false })
    }
}

impl BinaryRows {
    /// From now on it ends as soon as `must_end` is true, as by the interrupt of its connection.
    pub fn stop_when(&mut self, must_end: Arc<AtomicBool>) {
        if let Some(connection) = &mut self.connection {
            connection.interrupt_when(must_end);
        }
    }

    /// The next rows, as columns in the order in which they were wanted; None behind the last one.
    ///
    /// # Errors
    /// The first one ends it.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, RowsError> {
        while !self.has_ended && self.decoder.rows() < BATCH_ROWS && self.decoder.bytes() < BATCH_BYTES {
            let Some(connection) = &mut self.connection else { break };
            match connection.receive(READING)? {
                Message::DataRow(body) => self.decoder.push(body.buffer()).map_err(|error| {
                    let row = self.rows + self.decoder.rows() as u64;
                    RowsError::Row { row, error }
                })?,
                Message::ParseComplete
                | Message::BindComplete
                | Message::CommandComplete(_)
                | Message::EmptyQueryResponse => {}
                Message::ReadyForQuery(_) => self.has_ended = true,
                Message::ErrorResponse(body) => {
                    self.has_ended = true; // of a statement that has failed there is nothing to stop
                    return Err(connection.refused(READING, &body).into());
                }
                _ => return Err(connection.lost(READING, unexpected()).into()),
            }
        }
        if self.decoder.rows() == 0 {
            return Ok(None);
        }
        self.rows += self.decoder.rows() as u64;
        let batch = self.decoder.take().map_err(|error| {
            CoreError::new(ErrorKind::Internal, "rows in binary form make no batch").found(error.to_string())
        })?;
        Ok(Some(batch))
    }
}

impl Drop for BinaryRows {
    fn drop(&mut self) {
        match self.connection.take() {
            Some(connection) if self.has_ended => connection.close(),
            Some(connection) => connection.abandon(),
            None => {}
        }
    }
}

fn result_columns(body: &RowDescriptionBody) -> Result<Vec<ResultColumn>, Broken> {
    let columns = body.fields().map(|field| {
        Ok(ResultColumn { name: field.name().to_owned(), type_oid: field.type_oid(), modifier: field.type_modifier() })
    });
    columns.collect().map_err(|error| Broken::Protocol(error.to_string()))
}
