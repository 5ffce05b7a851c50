//! Statements: the simple protocol for many without results, the extended one for one with parameters and rows.

use fallible_iterator::FallibleIterator;
use headrace_types::{CoreError, ErrorKind};
use postgres_protocol::IsNull;
use postgres_protocol::message::backend::{DataRowBody, Message, RowDescriptionBody};
use postgres_protocol::message::frontend::{self, BindError};
use serde::Serialize;

use super::connection::{Connection, unexpected};
use super::link::Outgoing;
use super::wait::Broken;

/// A result is for catalogs and ledgers, not for data.
const MAX_RESULT_BYTES: usize = 256 << 20;
/// What a value needs beside its text.
const VALUE_OVERHEAD_BYTES: usize = size_of::<Option<String>>();
const DOING: &str = "running a statement";

/// Rows of a query; all values are text.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct QueryResult {
    /// Names.
    pub columns: Vec<String>,
    /// NULL is None.
    pub rows: Vec<Vec<Option<String>>>,
    /// What was done, such as `INSERT 0 3`; empty for an empty statement, and while there are more rows.
    pub tag: String,
    /// Oids of the columns' types.
    pub types: Vec<u32>,
    /// There are more rows: see [`Connection::next_rows`].
    pub has_more: bool,
}

impl Connection {
    /// Runs statements separated by semicolons; their rows are dropped. Without BEGIN they are one transaction.
    pub fn execute(&mut self, sql: &str) -> Result<(), CoreError> {
        let mut outgoing = Outgoing::default();
        outgoing.add(|buffer| frontend::query(sql, buffer)).map_err(|found| self.server.malformed(found))?;
        self.send(DOING, outgoing.bytes())?;
        self.answers(DOING, |link, message| match message {
            Message::CommandComplete(_)
            | Message::EmptyQueryResponse
            | Message::RowDescription(_)
            | Message::DataRow(_)
            | Message::CopyOutResponse(_)
            | Message::CopyData(_)
            | Message::CopyDone => Ok(()),
            Message::CopyInResponse(_) => {
                let mut outgoing = Outgoing::default();
                let reason = "COPY FROM STDIN needs data, and a statement has none";
                outgoing.add(|buffer| frontend::copy_fail(reason, buffer)).map_err(Broken::Protocol)?;
                link.send(outgoing.bytes())
            }
            _ => Err(unexpected()),
        })
    }

    /// Commits. A server answers COMMIT of a transaction that has failed without an error, and rolls it back.
    pub fn commit(&mut self) -> Result<(), CoreError> {
        let result = self.query("COMMIT", &[])?;
        if result.tag == "COMMIT" {
            return Ok(());
        }
        Err(CoreError::new(ErrorKind::Internal, "the server did not commit a transaction").found(result.tag))
    }

    /// Runs one statement with the parameters `$1, $2, ...`, as text or NULL.
    pub fn query(&mut self, sql: &str, parameters: &[Option<&str>]) -> Result<QueryResult, CoreError> {
        self.first_rows(sql, parameters, 0)
    }

    /// The same, of its rows the first `limit` ones; 0 is no limit. The others are there until the next statement, or the
    /// end of the transaction.
    pub fn first_rows(&mut self, sql: &str, parameters: &[Option<&str>], limit: u16) -> Result<QueryResult, CoreError> {
        let mut outgoing = Outgoing::default();
        outgoing
            .add(|buffer| {
                frontend::parse("", sql, [], buffer)?;
                bind(parameters, [], buffer)?;
                frontend::describe(b'P', "", buffer)?;
                frontend::execute("", i32::from(limit), buffer)?;
                frontend::sync(buffer);
                Ok(())
            })
            .map_err(|found| self.server.malformed(found))?;
        self.result(&outgoing)
    }

    /// The next rows, at most `limit` (0: all), of the statement that the last call of [`Connection::first_rows`] has begun.
    pub fn next_rows(&mut self, limit: u16) -> Result<QueryResult, CoreError> {
        let mut outgoing = Outgoing::default();
        outgoing
            .add(|buffer| {
                frontend::execute("", i32::from(limit), buffer)?;
                frontend::sync(buffer);
                Ok(())
            })
            .map_err(|found| self.server.malformed(found))?;
        self.result(&outgoing)
    }

    fn result(&mut self, outgoing: &Outgoing) -> Result<QueryResult, CoreError> {
        self.send(DOING, outgoing.bytes())?;
        let mut result = QueryResult::default();
        let mut bytes = 0;
        self.answers(DOING, |_, message| match message {
            Message::ParseComplete | Message::BindComplete | Message::NoData | Message::EmptyQueryResponse => Ok(()),
            Message::RowDescription(body) => {
                (result.columns, result.types) = columns(&body)?;
                Ok(())
            }
            Message::DataRow(body) => {
                let row = values(&body)?;
                bytes += body.buffer().len() + row.len() * VALUE_OVERHEAD_BYTES + size_of::<Vec<Option<String>>>();
                if bytes > MAX_RESULT_BYTES {
                    return Err(Broken::TooLarge("a result of more than 256 MB".to_owned()));
                }
                result.rows.push(row);
                Ok(())
            }
            Message::CommandComplete(body) => {
                result.tag = body.tag().map_err(malformed)?.to_owned();
                Ok(())
            }
            Message::PortalSuspended => {
                result.has_more = true;
                Ok(())
            }
            _ => Err(unexpected()),
        })?;
        Ok(result)
    }
}

/// Binds the unnamed statement to the unnamed portal. `formats`: those of the columns of the result; none: all are texts.
pub(super) fn bind(
    parameters: &[Option<&str>],
    formats: impl IntoIterator<Item = i16>,
    buffer: &mut bytes::BytesMut,
) -> std::io::Result<()> {
    let write = |value: &Option<&str>, buffer: &mut bytes::BytesMut| {
        let Some(text) = value else { return Ok(IsNull::Yes) };
        buffer.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    };
    frontend::bind("", "", [], parameters, write, formats, buffer).map_err(|error| match error {
        BindError::Conversion(error) => std::io::Error::other(error),
        BindError::Serialization(error) => error,
    })
}

fn columns(body: &RowDescriptionBody) -> Result<(Vec<String>, Vec<u32>), Broken> {
    let columns = body.fields().map(|field| Ok((field.name().to_owned(), field.type_oid())));
    Ok(columns.collect::<Vec<_>>().map_err(malformed)?.into_iter().unzip())
}

fn values(body: &DataRowBody) -> Result<Vec<Option<String>>, Broken> {
    let text = |range: Option<std::ops::Range<usize>>| {
        let bytes = range.and_then(|range| body.buffer().get(range));
        bytes.map(|bytes| String::from_utf8(bytes.to_vec()).map_err(std::io::Error::other)).transpose()
    };
    body.ranges().map(text).collect().map_err(malformed)
}

fn malformed(error: std::io::Error) -> Broken {
    Broken::Protocol(error.to_string())
}
