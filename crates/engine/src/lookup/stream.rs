//! The rows of a query or table, as they come in Arrow batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::ArrowError;
use headrace_transform::lookup::{BuildError, LookupBuild, RowPlace};
use headrace_types::{CoreError, ErrorKind};

use super::CANCELLED;
use super::arriving::{Unfit, column_of};
use super::refused_rows::RefusedRows;
use super::spec::Wanted;
use crate::postgres::{BinaryRows, RowsError};

/// How often the caller is asked whether it wants no more.
const ASKED_EVERY: Duration = Duration::from_millis(10);

/// Where batches come from. They are read side by side, each by a thread of its own, because they answer when they like.
pub enum Batches {
    /// A stream of another program in this process.
    Stream(Box<dyn RecordBatchReader + Send>),
    /// A session of a server.
    Session(Box<BinaryRows>),
}

/// Why not all rows are in the index.
pub enum Failure {
    /// Of the index.
    Build(BuildError),
    /// Of what gives the rows, or of a value in it.
    Rows(CoreError),
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        Failure::Build(error)
    }
}

/// Reads batches.
pub struct Reader<'a> {
    wanted: &'a Wanted<'a>,
    /// Where its columns stand in batches.
    places: &'a [usize],
    /// Indexes of the keys and of the added columns among its columns.
    columns: [&'a [usize]; 2],
    must_end: Arc<AtomicBool>,
}

impl<'a> Reader<'a> {
    pub fn new(wanted: &'a Wanted<'a>, places: &'a [usize], columns: [&'a [usize]; 2]) -> Self {
        Reader { wanted, places, columns, must_end: Arc::default() }
    }

    /// Appends all rows to the index. The number of rows.
    pub fn read(
        &self,
        build: &LookupBuild,
        sources: Vec<Batches>,
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<u64, Failure> {
        let mut is_stopped = false;
        let results: Vec<Result<u64, Failure>> = std::thread::scope(|scope| {
            let mut reading = Vec::new();
            let mut results = Vec::new();
            for (number, source) in (0u32..).zip(sources) {
                let thread = std::thread::Builder::new().name(format!("headrace-lookup-{number}"));
                match thread.spawn_scoped(scope, move || self.append_all(build, source, number)) {
                    Ok(thread) => reading.push(thread),
                    Err(error) => {
                        self.must_end.store(true, Ordering::Release);
                        let what = format!("no thread can read lookup `{}`", self.wanted.name);
                        let error = CoreError::new(ErrorKind::Internal, what).found(error.to_string());
                        results.push(Err(Failure::Rows(error)));
                        break;
                    }
                }
            }
            while reading.iter().any(|thread| !thread.is_finished()) {
                // A stream may be waited for until whoever is asked has stopped it.
                if is_cancelled() {
                    is_stopped = true;
                    self.must_end.store(true, Ordering::Release);
                }
                std::thread::park_timeout(ASKED_EVERY);
            }
            let ended = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|_| Err(BuildError::Unfinished.into()))
            };
            results.extend(reading.into_iter().map(ended));
            results
        });
        if is_stopped {
            return Err(Failure::Rows(CoreError::new(ErrorKind::Cancelled, CANCELLED)));
        }
        // Of several the cause is not the one that was stopped for another one.
        let mut rows = 0;
        let mut failure = None;
        for result in results {
            match (result, &failure) {
                (Ok(own), _) => rows += own,
                (Err(own), None) => failure = Some(own),
                (Err(own), Some(Failure::Rows(known))) if known.kind == ErrorKind::Cancelled => failure = Some(own),
                (Err(_), Some(_)) => {}
            }
        }
        failure.map_or(Ok(rows), Err)
    }

    fn append_all(&self, build: &LookupBuild, source: Batches, number: u32) -> Result<u64, Failure> {
        let appended = match source {
            Batches::Stream(stream) => self.append_stream(build, stream, number),
            Batches::Session(rows) => self.append_session(build, rows, number),
        };
        if appended.is_err() {
            self.must_end.store(true, Ordering::Release);
        }
        appended
    }

    fn append_stream(
        &self,
        build: &LookupBuild,
        stream: Box<dyn RecordBatchReader + Send>,
        number: u32,
    ) -> Result<u64, Failure> {
        let mut builder = build.builder()?;
        let mut place = RowPlace { slice: number, row: 0 };
        for batch in stream {
            if self.must_end.load(Ordering::Acquire) {
                break;
            }
            let batch = batch.map_err(|error| self.failed(&error))?;
            let [keys, added] = self.arrays(&batch, place.row)?;
            builder.append(place, &keys, &added)?;
            place.row += batch.num_rows() as u64;
        }
        builder.end()?;
        Ok(place.row)
    }

    fn append_session(&self, build: &LookupBuild, mut rows: Box<BinaryRows>, number: u32) -> Result<u64, Failure> {
        rows.stop_when(self.must_end.clone());
        let mut builder = build.builder()?;
        let mut place = RowPlace { slice: number, row: 0 };
        while let Some(batch) = rows.next_batch().map_err(|error| self.unread(error))? {
            let [keys, added] = self.arrays(&batch, place.row)?;
            builder.append(place, &keys, &added)?;
            place.row += batch.num_rows() as u64;
        }
        builder.end()?;
        Ok(place.row)
    }

    /// Keys and added columns. `row`: rows before the first one of the batch.
    fn arrays(&self, batch: &RecordBatch, row: u64) -> Result<[Vec<ArrayRef>; 2], Failure> {
        let array = |&index: &usize| {
            let own = &self.wanted.rows.columns()[index];
            let place = self.places.get(index).filter(|&&place| place < batch.num_columns());
            let place =
                place.ok_or_else(|| BuildError::Internal(format!("no column of the rows is `{}`", own.name)))?;
            let array = column_of(batch.column(*place), own.column_type).map_err(|unfit| match unfit {
                Unfit::Type(wrong) => BuildError::Internal(format!("column `{}` is {wrong}", own.name)).into(),
                Unfit::Value { row: at, shown, expected } => {
                    Failure::Rows(self.refused().value(&own.name, &shown, expected, row + at as u64))
                }
            })?;
            match (own.nullable, (0..array.len()).find(|at| array.is_null(*at))) {
                (false, Some(at)) if array.null_count() > 0 => {
                    let expected = "a value, because the column is NOT NULL";
                    Err(Failure::Rows(self.refused().value(&own.name, "NULL", expected, row + at as u64)))
                }
                _ => Ok(array),
            }
        };
        let [keys, added] = self.columns;
        Ok([keys.iter().map(array).collect::<Result<_, _>>()?, added.iter().map(array).collect::<Result<_, _>>()?])
    }

    fn refused(&self) -> RefusedRows<'_> {
        RefusedRows { wanted: self.wanted, places: self.places }
    }

    fn unread(&self, error: RowsError) -> Failure {
        Failure::Rows(match error {
            RowsError::Session(error) => error,
            RowsError::Row { row, error } => self.refused().row(row, &error),
        })
    }

    fn failed(&self, error: &ArrowError) -> Failure {
        let text = match error {
            ArrowError::CDataInterface(text) => text.clone(),
            other => other.to_string(),
        };
        // What stands before it are words of Arrow.
        let text = text.split_once("Producer error: ").map_or(text.as_str(), |(_, text)| text);
        let what = format!("reading lookup `{}` failed", self.wanted.name);
        Failure::Rows(CoreError::new(ErrorKind::Source, what).found(text.trim().to_owned()))
    }
}
