//! The sink of a flow whose rows only tell what they are.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use arrow_array::{Array, Int64Array, StringViewArray};
use headrace_parse::infer::ColumnFacts;
use headrace_types::{CoreError, ErrorKind};

use crate::outcome::lock;
use crate::report::{ColumnReport, SinkReport, StageReport};
use crate::sink::{Origin, Placed, Sink, Writer};

/// Gathers facts about columns of texts, behind which stands the line of each row.
pub struct FactsSink {
    columns: usize,
    hashes: usize,
    total: Arc<Mutex<Vec<ColumnFacts>>>,
}

impl FactsSink {
    /// A sink that has met nothing, and keeps so many hashes of each column.
    pub fn new(columns: usize, hashes: usize) -> Self {
        let facts = vec![ColumnFacts::new(hashes); columns];
        FactsSink { columns, hashes, total: Arc::new(Mutex::new(facts)) }
    }

    /// What the streams have met, once they have ended.
    pub fn found(&self) -> Vec<ColumnFacts> {
        std::mem::take(&mut lock(&self.total))
    }
}

impl Sink for FactsSink {
    fn writer(&self) -> Box<dyn Writer> {
        let own = vec![ColumnFacts::new(self.hashes); self.columns];
        Box::new(FactsWriter { own, total: self.total.clone() })
    }

    fn starved(&self) -> bool {
        false // nothing is ever kept
    }

    fn close(&self) {}

    fn report(&self) -> SinkReport {
        SinkReport::default()
    }

    fn columns(&self) -> Option<Vec<ColumnReport>> {
        None
    }
}

struct FactsWriter {
    own: Vec<ColumnFacts>,
    total: Arc<Mutex<Vec<ColumnFacts>>>,
}

impl Writer for FactsWriter {
    fn write(&mut self, rows: Placed, origin: Origin, stage: &mut StageReport) -> Result<bool, CoreError> {
        let start = Instant::now();
        let other_type = || CoreError::new(ErrorKind::Internal, "the parser gave another type than text");
        let (texts, lines) = rows.batch.columns().split_at(self.own.len());
        let lines = lines.first().and_then(|lines| lines.as_any().downcast_ref::<Int64Array>());
        let lines = lines.ok_or_else(other_type)?;
        for (facts, column) in self.own.iter_mut().zip(texts) {
            let texts = column.as_any().downcast_ref::<StringViewArray>().ok_or_else(other_type)?;
            facts.add_nulls(texts.null_count() as u64);
            for (text, line) in texts.iter().zip(lines.values()) {
                if let Some(text) = text {
                    facts.add(text, (origin.slice, *line as u64));
                }
            }
        }
        stage.busy_seconds += start.elapsed().as_secs_f64();
        Ok(true)
    }
}

impl Drop for FactsWriter {
    fn drop(&mut self) {
        std::iter::zip(lock(&self.total).iter_mut(), &self.own).for_each(|(total, own)| total.merge(own));
    }
}
