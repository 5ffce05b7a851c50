//! The sink of a flow whose rows only tell what they are.

use std::sync::{Arc, Mutex};

use arrow_array::{Array, Int64Array, StringViewArray};
use headrace_parse::infer::{ColumnFacts, TableFacts};
use headrace_types::{CoreError, ErrorKind};

use crate::meter::StreamMeter;
use crate::outcome::lock;
use crate::sink::{Origin, Placed, Sink, Writer};
use crate::spec::SliceSpec;

/// Gathers facts about columns of texts, behind which stands the line of each row.
pub struct FactsSink {
    columns: usize,
    hashes: usize,
    has_memory: bool,
    total: Arc<Mutex<Vec<ColumnFacts>>>,
}

impl FactsSink {
    /// A sink that has met nothing, and keeps so many hashes of each column. `has_memory`: see [`TableFacts::new`].
    pub fn new(columns: usize, hashes: usize, has_memory: bool) -> Self {
        let facts = vec![ColumnFacts::new(hashes); columns];
        FactsSink { columns, hashes, has_memory, total: Arc::new(Mutex::new(facts)) }
    }

    /// What the streams have met, once they have ended.
    pub fn found(&self) -> Vec<ColumnFacts> {
        std::mem::take(&mut lock(&self.total))
    }
}

impl Sink for FactsSink {
    fn writer(&self) -> Box<dyn Writer> {
        let own = TableFacts::new(self.columns, self.hashes, self.has_memory);
        Box::new(FactsWriter { own, total: self.total.clone() })
    }

    fn hashes_texts(&self) -> bool {
        false
    }
}

struct FactsWriter {
    own: TableFacts,
    total: Arc<Mutex<Vec<ColumnFacts>>>,
}

impl Writer for FactsWriter {
    fn begin_slice(&mut self, slice: &SliceSpec, _meter: &StreamMeter) -> Result<bool, CoreError> {
        self.own.begin_slice(slice.number);
        Ok(true)
    }

    fn facts(&mut self) -> Option<&mut TableFacts> {
        Some(&mut self.own)
    }

    fn write(&mut self, rows: Placed, _origin: Origin, _meter: &StreamMeter) -> Result<bool, CoreError> {
        if rows.batch.num_columns() == 0 {
            return Ok(true); // the parser has told the facts
        }
        let other_type = || CoreError::new(ErrorKind::Internal, "the parser gave another type than text");
        let (texts, lines) = rows.batch.columns().split_at(self.own.columns());
        let lines = lines.first().and_then(|lines| lines.as_any().downcast_ref::<Int64Array>());
        let lines = lines.ok_or_else(other_type)?;
        for (index, column) in texts.iter().enumerate() {
            let texts = column.as_any().downcast_ref::<StringViewArray>().ok_or_else(other_type)?;
            for (text, line) in texts.iter().zip(lines.values()) {
                self.own.add(index, text.map(str::as_bytes), *line as u64);
            }
        }
        Ok(true)
    }
}

impl Drop for FactsWriter {
    fn drop(&mut self) {
        let own = std::mem::replace(&mut self.own, TableFacts::new(0, 0, false)).finish();
        std::iter::zip(lock(&self.total).iter_mut(), &own).for_each(|(total, own)| total.merge(own));
    }
}
