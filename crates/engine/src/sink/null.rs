//! The null sink: per-column aggregates, then the rows are gone. For measuring, and for checking files without a database.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use headrace_parse::{CpuPath, cpu_path};
use headrace_types::{CoreError, RowSchema};

use super::fold::{Fold, PlainBuffers};
use super::values::{render, render_sum};
use super::{Origin, Placed, Sink, Writer};
use crate::meter::StreamMeter;
use crate::outcome::lock;
use crate::report::{ColumnReport, SinkReport};

/// Aggregates of all writers.
pub struct NullSink {
    schema: RowSchema,
    shared: Arc<Shared>,
}

struct Shared {
    folds: Mutex<Vec<Fold>>,
    counters: Mutex<SinkReport>,
}

impl NullSink {
    /// A sink for batches of these columns.
    pub fn new(schema: RowSchema) -> Self {
        let folds = vec![Fold::default(); schema.columns().len()];
        let shared = Shared { folds: Mutex::new(folds), counters: Mutex::default() };
        NullSink { schema, shared: Arc::new(shared) }
    }
}

impl Sink for NullSink {
    fn writer(&self) -> Box<dyn Writer> {
        let folds = vec![Fold::default(); self.schema.columns().len()];
        Box::new(NullWriter {
            folds,
            cpu_path: cpu_path().unwrap_or(CpuPath::PORTABLE),
            counters: SinkReport::default(),
            shared: self.shared.clone(),
        })
    }

    fn report(&self) -> SinkReport {
        lock(&self.shared.counters).clone()
    }

    fn columns(&self) -> Option<Vec<ColumnReport>> {
        let folds = lock(&self.shared.folds);
        let reports = std::iter::zip(self.schema.columns(), folds.iter()).map(|(column, fold)| {
            let column_type = column.column_type;
            let whole = |value| render(column_type, value);
            let float = fold.float;
            ColumnReport {
                name: column.name.clone(),
                rows: fold.rows,
                nulls: fold.nulls,
                sum: fold.whole.and_then(|fold| render_sum(column_type, fold.sum)),
                min: fold.whole.map(|fold| whole(fold.min)).or(float.map(|(min, _)| min.to_string())),
                max: fold.whole.map(|fold| whole(fold.max)).or(float.map(|(_, max)| max.to_string())),
                min_length: fold.text.map(|text| text.min),
                max_length: fold.text.map(|text| text.max),
                total_length: fold.text.map(|text| text.total),
            }
        });
        Some(reports.collect())
    }
}

struct NullWriter {
    folds: Vec<Fold>,
    cpu_path: CpuPath,
    counters: SinkReport,
    shared: Arc<Shared>,
}

impl Writer for NullWriter {
    fn write(&mut self, rows: Placed, _origin: Origin, _meter: &StreamMeter) -> Result<bool, CoreError> {
        let start = Instant::now();
        let mut plain = PlainBuffers::default();
        for (fold, array) in std::iter::zip(&mut self.folds, rows.batch.columns()) {
            fold.add(array, self.cpu_path, &mut plain);
        }
        let busy = start.elapsed().as_secs_f64();
        self.counters.busy_seconds += busy;
        self.counters.batches += 1;
        self.counters.rows += rows.batch.num_rows() as u64;
        Ok(true)
    }
}

impl Drop for NullWriter {
    fn drop(&mut self) {
        for (total, own) in std::iter::zip(lock(&self.shared.folds).iter_mut(), &self.folds) {
            total.merge(own);
        }
        let mut counters = lock(&self.shared.counters);
        counters.busy_seconds += self.counters.busy_seconds;
        counters.batches += self.counters.batches;
        counters.rows += self.counters.rows;
    }
}
