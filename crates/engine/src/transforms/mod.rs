//! Transforms: what happens to the rows of a stream between parsing and their places.

mod probe;
mod query;
mod refused;
mod windows;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arrow_array::RecordBatch;
use headrace_types::{CoreError, ErrorKind};

use crate::lookup::Lookup;
use crate::outcome::Outcome;
use crate::report::{TransformCounts, TransformReport};
use crate::spec::{FlowSpec, KeepRejects, Operation};
use probe::Probe;
use query::Query;
pub use refused::{Refusal, Remaining};
pub use windows::{Failure, FailureKind, Window, Windows};

/// The transforms of a flow, in order. They keep nothing of rows, so that all streams share them.
pub struct Transforms {
    stages: Vec<Stage>,
    windows: Windows,
}

struct Stage {
    name: String,
    work: Work,
    busy_nanoseconds: AtomicU64,
}

enum Work {
    Probe(Probe),
    Query(Query),
}

impl Default for Transforms {
    /// None.
    fn default() -> Self {
        Transforms { stages: Vec::new(), windows: Windows::new(Arc::default()) }
    }
}

impl Transforms {
    /// Those of a specification. `lookups`: the indexes of its lookups, in the same order; `outcome`: of the flow.
    ///
    /// # Errors
    /// `Specification` for transforms that do not fit the rows before them, and indexes that do not fit the transforms.
    pub fn new(spec: &FlowSpec, lookups: Vec<Arc<Lookup>>, outcome: Arc<Outcome>) -> Result<Self, CoreError> {
        let refused = |text: String| CoreError::new(ErrorKind::Specification, format!("flow {}: {text}", spec.name));
        let wanted = spec.transforms.iter().filter(|own| matches!(own.operation, Operation::Lookup(_))).count();
        if wanted != lookups.len() {
            return Err(refused(format!("{} lookups for {wanted} transforms", lookups.len())));
        }
        let mut lookups = lookups.into_iter();
        let mut schema = spec.first_schema()?;
        let mut fields = spec.first_fields(&schema);
        // What only keeps examples goes on behind any number of rejects, and needs the other rows.
        let limit = spec.rejects.limit.filter(|_| spec.rejects.keep != KeepRejects::Examples);
        let mut stages = Vec::with_capacity(spec.transforms.len());
        for (place, transform) in spec.transforms.iter().enumerate() {
            let (name, before) = (&transform.name, schema.clone());
            transform.extend(&mut schema).map_err(refused)?;
            let work = match &transform.operation {
                Operation::Lookup(probe) => {
                    let index = lookups.next().ok_or_else(|| "it has no index".to_owned());
                    index.and_then(|index| Probe::new(name, probe, &before, &fields, &schema, index)).map(Work::Probe)
                }
                Operation::Query(query) => Query::new((place, name), query, &before, &schema, limit).map(Work::Query),
            };
            transform.follow_fields(&before, &mut fields);
            let work = work.map_err(|text| refused(format!("transform `{name}`: {text}")))?;
            stages.push(Stage { name: name.clone(), work, busy_nanoseconds: AtomicU64::new(0) });
        }
        Ok(Transforms { stages, windows: Windows::new(outcome) })
    }

    /// The rows that queries wait for.
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Whether rows stay what the parser has made of them.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// Whether there may be rows that do not go on.
    pub fn drop_rows(&self) -> bool {
        self.stages.iter().any(|stage| match &stage.work {
            Work::Probe(probe) => probe.refuses(),
            Work::Query(_) => true,
        })
    }

    /// Counts of no rows, one for each transform.
    pub fn no_counts(&self) -> Vec<TransformCounts> {
        vec![TransformCounts::default(); self.stages.len()]
    }

    /// The rows of a batch behind all transforms; none if none is left. `counts`: one for each; `remaining` is told of rows that do
    /// not go on.
    ///
    /// # Errors
    /// Those of a query that no row is to blame for, `Cancelled`, `Internal`.
    pub fn apply(
        &self,
        mut batch: RecordBatch,
        counts: &mut [TransformCounts],
        remaining: &mut Remaining,
    ) -> Result<Option<RecordBatch>, CoreError> {
        for (stage, counts) in std::iter::zip(&self.stages, counts) {
            let started = Instant::now();
            let left = match &stage.work {
                Work::Probe(probe) => probe.apply(&batch, counts, remaining).map_err(|error| {
                    CoreError::new(ErrorKind::Internal, format!("transform `{}`: {error}", stage.name))
                })?,
                Work::Query(query) => query.apply(&batch, &self.windows, counts, remaining)?,
            };
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
        self.stages.iter().map(report).collect()
    }
}
