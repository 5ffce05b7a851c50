//! Transforms: what happens to the rows of a stream between parsing and their places.

mod probe;
mod refused;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arrow_array::RecordBatch;
use headrace_types::{CoreError, ErrorKind};

use crate::lookup::Lookup;
use crate::report::{TransformCounts, TransformReport};
use crate::spec::FlowSpec;
use probe::Probe;
pub use refused::{Refusal, Remaining};

/// The transforms of a flow, in order. They keep nothing of rows, so that all streams share them.
#[derive(Default)]
pub struct Transforms(Vec<Stage>);

struct Stage {
    name: String,
    probe: Probe,
    busy_nanoseconds: AtomicU64,
}

impl Transforms {
    /// Those of a specification. `lookups`: their indexes, in the same order.
    ///
    /// # Errors
    /// `Specification` for transforms that do not fit the rows before them, and indexes that do not fit the transforms.
    pub fn new(spec: &FlowSpec, lookups: Vec<Arc<Lookup>>) -> Result<Self, CoreError> {
        let refused = |text: String| CoreError::new(ErrorKind::Specification, format!("flow {}: {text}", spec.name));
        if spec.transforms.len() != lookups.len() {
            return Err(refused(format!("{} lookups for {} transforms", lookups.len(), spec.transforms.len())));
        }
        let mut schema = spec.first_schema()?;
        // A key that was made or added stands in no field.
        let fields = if spec.join.is_some() { schema.columns().len() } else { spec.layout.columns.len() };
        let stages = spec.transforms.iter().zip(lookups).map(|(transform, lookup)| {
            let before = schema.clone();
            transform.extend(&mut schema).map_err(refused)?;
            let probe = Probe::new(fields, &before, transform, &schema, lookup)
                .map_err(|text| refused(format!("transform `{}`: {text}", transform.name)))?;
            Ok(Stage { name: transform.name.clone(), probe, busy_nanoseconds: AtomicU64::new(0) })
        });
        stages.collect::<Result<_, _>>().map(Transforms)
    }

    /// The indexes of all, in their order.
    pub fn lookups(&self) -> Vec<Arc<Lookup>> {
        self.0.iter().map(|stage| stage.probe.lookup().clone()).collect()
    }

    /// Whether rows stay what the parser has made of them.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there are rows that do not go on.
    pub fn refuse(&self) -> bool {
        self.0.iter().any(|stage| stage.probe.refuses())
    }

    /// Counts of no rows, one for each transform.
    pub fn no_counts(&self) -> Vec<TransformCounts> {
        vec![TransformCounts::default(); self.0.len()]
    }

    /// The rows of a batch behind all transforms; none if none is left. `counts`: one for each; `remaining` is told of rows that do
    /// not go on.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn apply(
        &self,
        mut batch: RecordBatch,
        counts: &mut [TransformCounts],
        remaining: &mut Remaining,
    ) -> Result<Option<RecordBatch>, CoreError> {
        for (stage, counts) in std::iter::zip(&self.0, counts) {
            let started = Instant::now();
            let applied = stage.probe.apply(&batch, counts, remaining);
            let left = applied
                .map_err(|error| CoreError::new(ErrorKind::Internal, format!("transform `{}`: {error}", stage.name)))?;
            stage.busy_nanoseconds.fetch_add(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
            let Some(left) = left else { return Ok(None) };
            batch = left;
        }
        Ok(Some(batch))
    }

    /// What each has done so far.
    pub fn reports(&self) -> Vec<TransformReport> {
        let report = |stage: &Stage| TransformReport {
            name: stage.name.clone(),
            busy_seconds: stage.busy_nanoseconds.load(Ordering::Relaxed) as f64 / 1e9,
        };
        self.0.iter().map(report).collect()
    }
}
