//! The rows of a query, as they come from a stream of Arrow batches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::ArrowError;
use headrace_transform::lookup::{BuildError, LookupBuild, RowPlace};
use headrace_types::{CoreError, ErrorKind};

use super::CANCELLED;
use super::arriving::{Unfit, column_of};
use super::spec::Wanted;

/// How often the caller is asked whether it wants no more.
const ASKED_EVERY: Duration = Duration::from_millis(10);
/// Rows of a query are no rows of a slice.
const NO_SLICE: u32 = 0;

/// Why not all rows are in the index.
pub enum Failure {
    /// Of the index.
    Build(BuildError),
    /// Of the stream, or of a value in it.
    Stream(CoreError),
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        Failure::Build(error)
    }
}

/// Reads a stream.
pub struct Reader<'a> {
    wanted: &'a Wanted<'a>,
    /// Where its columns stand in batches.
    places: &'a [usize],
    /// Indexes of the keys and of the added columns among its columns.
    columns: [&'a [usize]; 2],
    must_end: AtomicBool,
}

impl<'a> Reader<'a> {
    pub fn new(wanted: &'a Wanted<'a>, places: &'a [usize], columns: [&'a [usize]; 2]) -> Self {
        Reader { wanted, places, columns, must_end: AtomicBool::new(false) }
    }

    /// Appends all rows to the index, by a thread of its own, because a stream answers when it likes. The number of rows.
    pub fn read(
        &self,
        build: &LookupBuild,
        stream: Box<dyn RecordBatchReader + Send>,
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<u64, Failure> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("headrace-lookup".to_owned());
            let reading = thread.spawn_scoped(scope, || self.append_all(build, stream)).map_err(|error| {
                let what = format!("no thread can read lookup `{}`", self.wanted.name);
                Failure::Stream(CoreError::new(ErrorKind::Internal, what).found(error.to_string()))
            })?;
            while !reading.is_finished() {
                // The stream may be waited for until whoever is asked has stopped it.
                if is_cancelled() {
                    self.must_end.store(true, Ordering::Relaxed);
                }
                std::thread::park_timeout(ASKED_EVERY);
            }
            let result = reading.join().unwrap_or_else(|_| Err(BuildError::Unfinished.into()));
            match self.must_end.load(Ordering::Relaxed) {
                true => Err(Failure::Stream(CoreError::new(ErrorKind::Cancelled, CANCELLED))),
                false => result,
            }
        })
    }

    fn append_all(&self, build: &LookupBuild, stream: Box<dyn RecordBatchReader + Send>) -> Result<u64, Failure> {
        let mut builder = build.builder()?;
        let mut row = 0;
        for batch in stream {
            if self.must_end.load(Ordering::Relaxed) {
                break;
            }
            let batch = batch.map_err(|error| self.failed(&error))?;
            let [keys, added] = self.columns.map(|columns| self.arrays(&batch, columns, row));
            builder.append(RowPlace { slice: NO_SLICE, row }, &keys?, &added?)?;
            row += batch.num_rows() as u64;
        }
        builder.end()?;
        Ok(row)
    }

    /// `row`: rows before the first one of the batch.
    fn arrays(&self, batch: &RecordBatch, columns: &[usize], row: u64) -> Result<Vec<ArrayRef>, Failure> {
        let array = |&index: &usize| {
            let own = &self.wanted.rows.columns()[index];
            let place = self.places.get(index).filter(|&&place| place < batch.num_columns());
            let place =
                place.ok_or_else(|| BuildError::Internal(format!("no column of the stream is `{}`", own.name)))?;
            column_of(batch.column(*place), own.column_type).map_err(|unfit| self.unfit(&own.name, unfit, row))
        };
        columns.iter().map(array).collect()
    }

    fn unfit(&self, column: &str, unfit: Unfit, before: u64) -> Failure {
        let Wanted { name, source, .. } = self.wanted;
        match unfit {
            Unfit::Type(wrong) => BuildError::Internal(format!("column `{column}` is {wrong}")).into(),
            Unfit::Value { row, shown, expected } => {
                let what = format!("a row of lookup `{name}` has a value that columns of its type cannot have here");
                let number = before + row as u64 + 1;
                let error = CoreError::new(ErrorKind::Source, what)
                    .found(format!("{shown} for column `{column}` in row {number} of the {source}"))
                    .expected(expected)
                    .hint(format!("Leave such rows out of the {source}, or convert the value in it."));
                Failure::Stream(error)
            }
        }
    }

    fn failed(&self, error: &ArrowError) -> Failure {
        let text = match error {
            ArrowError::CDataInterface(text) => text.clone(),
            other => other.to_string(),
        };
        // What stands before it are words of Arrow.
        let text = text.split_once("Producer error: ").map_or(text.as_str(), |(_, text)| text);
        let what = format!("reading lookup `{}` failed", self.wanted.name);
        Failure::Stream(CoreError::new(ErrorKind::Source, what).found(text.trim().to_owned()))
    }
}
