//! The sink of a flow whose rows go into an index.

use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, RecordBatch};
use headrace_transform::lookup::{BuildError, LookupBuild, LookupBuilder, RowPlace};
use headrace_types::{CoreError, ErrorKind};

use crate::meter::StreamMeter;
use crate::outcome::lock;
use crate::sink::{Origin, Placed, Sink, Writer};
use crate::spec::SliceSpec;

/// Which columns of the files are needed, and where they stand in batches.
#[derive(Debug, Clone)]
pub struct Columns {
    /// Of all columns, ascending.
    wanted: Vec<usize>,
    /// In batches.
    keys: Vec<usize>,
    added: Vec<usize>,
}

impl Columns {
    /// `keys` and `added`: indexes among all columns of the files.
    pub fn new(keys: &[usize], added: &[usize]) -> Self {
        let mut wanted = [keys, added].concat();
        wanted.sort_unstable();
        wanted.dedup();
        let place = |index: &usize| wanted.partition_point(|own| own < index);
        Columns { keys: keys.iter().map(place).collect(), added: added.iter().map(place).collect(), wanted }
    }
}

/// Gives rows to an index.
pub struct LookupSink {
    columns: Columns,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    build: Option<LookupBuild>,
    failure: Option<BuildError>,
}

impl LookupSink {
    /// A sink for an index that has no rows yet.
    pub fn new(columns: Columns, build: LookupBuild) -> Self {
        LookupSink { columns, shared: Arc::new(Mutex::new(Shared { build: Some(build), failure: None })) }
    }

    /// The index, or why there is none, once the flow has ended.
    pub fn ended(&self) -> (Option<LookupBuild>, Option<BuildError>) {
        let mut shared = lock(&self.shared);
        (shared.build.take(), shared.failure.take())
    }
}

impl Sink for LookupSink {
    fn writer(&self) -> Box<dyn Writer> {
        Box::new(LookupWriter {
            columns: self.columns.clone(),
            shared: self.shared.clone(),
            builder: None,
            next_row: 0,
        })
    }

    fn wanted_columns(&self) -> Option<Vec<usize>> {
        Some(self.columns.wanted.clone())
    }

    fn hashes_texts(&self) -> bool {
        false
    }
}

struct LookupWriter {
    columns: Columns,
    shared: Arc<Mutex<Shared>>,
    builder: Option<LookupBuilder>,
    /// Rows of the slice before the next one: its position.
    next_row: u64,
}

impl LookupWriter {
    fn append(&mut self, batch: &RecordBatch, slice: u32) -> Result<(), BuildError> {
        let columns =
            |places: &[usize]| places.iter().map(|&place| batch.column(place).clone()).collect::<Vec<ArrayRef>>();
        let (keys, added) = (columns(&self.columns.keys), columns(&self.columns.added));
        let builder = match &mut self.builder {
            Some(builder) => builder,
            None => {
                let builder = lock(&self.shared).build.as_ref().ok_or(BuildError::Unfinished)?.builder()?;
                self.builder.insert(builder)
            }
        };
        builder.append(RowPlace { slice, row: self.next_row }, &keys, &added)
    }

    /// Keeps why the index fails: what the flow says of it is only that it has stopped.
    fn noted(&self, done: Result<(), BuildError>) -> Result<bool, CoreError> {
        done.map(|()| true).map_err(|error| {
            let what = error.to_string();
            lock(&self.shared).failure.get_or_insert(error);
            CoreError::new(ErrorKind::Internal, what)
        })
    }
}

impl Writer for LookupWriter {
    fn begin_slice(&mut self, _slice: &SliceSpec, _meter: &StreamMeter) -> Result<bool, CoreError> {
        self.next_row = 0;
        Ok(true)
    }

    fn write(&mut self, rows: Placed, origin: Origin, _meter: &StreamMeter) -> Result<bool, CoreError> {
        let appended = self.append(&rows.batch, origin.slice);
        self.next_row += rows.batch.num_rows() as u64;
        self.noted(appended)
    }

    fn finish(&mut self, _meter: &StreamMeter) -> Result<bool, CoreError> {
        let ended = self.builder.take().map_or(Ok(()), LookupBuilder::end);
        self.noted(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_wanted_once_and_found_in_batches() {
        let places = Columns::new(&[7, 2], &[4, 2]);
        assert_eq!((places.wanted, places.keys, places.added), (vec![2, 4, 7], vec![2, 0], vec![1, 0]));
    }
}
