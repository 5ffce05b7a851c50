//! Transforms: what happens to the rows of a stream between parsing and their places. They are a tree: rows come from the parser, or
//! the join, and go by the outputs of transforms to the destinations.

mod fit;
mod probe;
mod query;
mod refused;
mod split;
mod windows;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arrow_array::RecordBatch;
use headrace_types::{CoreError, ErrorKind};

use crate::lookup::Lookup;
use crate::outcome::Outcome;
use crate::report::{DestinationCounts, TransformCounts, TransformReport};
use crate::spec::{FlowSpec, KeepRejects, Operation, RowsOf};
use fit::Fit;
use probe::Probe;
use query::Query;
pub use refused::{Refusal, Refuser, Remaining};
use split::Split;
pub use windows::{Failure, FailureKind, Window, Windows};

/// The transforms of a flow. They keep nothing of rows, so that all streams share them.
pub struct Transforms {
    stages: Vec<Arc<Stage>>,
    /// Which rows arrive at each.
    inputs: Vec<RowsOf>,
    ends: Vec<End>,
    windows: Arc<Windows>,
}

struct Stage {
    name: String,
    work: Work,
    busy_nanoseconds: AtomicU64,
}

enum Work {
    Probe(Probe),
    Query(Query),
    Split(Split),
}

/// Where rows leave for a destination.
#[derive(Clone)]
struct End {
    rows: RowsOf,
    /// What they pass on their way, in order.
    path: Vec<RowsOf>,
    fit: Option<Arc<Fit>>,
}

/// Who reads rows.
#[derive(Clone, Copy)]
enum Reader {
    Stage(usize),
    End(usize),
}

/// What comes out of a transform.
#[derive(Default)]
struct Given {
    outputs: Vec<Output>,
    /// Refused rows of which nothing is left on any output.
    refused: Remaining,
}

struct Output {
    output: usize,
    batch: RecordBatch,
    remaining: Remaining,
}

/// A batch behind all transforms.
pub struct Sent {
    /// The rows of each destination, if it gets some, and which of those that came they are.
    pub destinations: Vec<Option<(RecordBatch, Remaining)>>,
    /// How many rows each destination has refused so far.
    pub refused_at_end: Vec<u64>,
    /// What was refused on ways that have ended.
    pub refused: Remaining,
}

impl Default for Transforms {
    /// None.
    fn default() -> Self {
        let end = End { rows: RowsOf { transform: None, output: 0 }, path: Vec::new(), fit: None };
        Transforms {
            stages: Vec::new(),
            inputs: Vec::new(),
            ends: vec![end],
            windows: Arc::new(Windows::new(Arc::default())),
        }
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
        let all = spec.fields()?;
        // What only keeps examples goes on behind any number of rejects, and needs the other rows.
        let limit = spec.rejects.limit.filter(|_| spec.rejects.keep != KeepRejects::Examples);
        let mut stages = Vec::with_capacity(spec.transforms.len());
        for (place, transform) in spec.transforms.iter().enumerate() {
            let name = &transform.name;
            let Some((before, behind)) = all.around(place) else { continue };
            let own = (place, name.as_str());
            let work = match &transform.operation {
                Operation::Lookup(probe) => {
                    let index = lookups.next().ok_or_else(|| "it has no index".to_owned());
                    let probe = |index| Probe::new(name, probe, &before.schema, &before.fields, &behind.schema, index);
                    index.and_then(probe).map(Work::Probe)
                }
                Operation::Query(query) => {
                    Query::new(own, query, &before.schema, &behind.schema, limit).map(Work::Query)
                }
                Operation::Split(split) => Split::new(own, split, &before.schema, limit).map(Work::Split),
            };
            let work = work.map_err(|text| refused(format!("transform `{name}`: {text}")))?;
            stages.push(Arc::new(Stage { name: name.clone(), work, busy_nanoseconds: AtomicU64::new(0) }));
        }
        let mut ends = Vec::new();
        for number in 0..spec.destinations() {
            let rows = spec.input_of_destination(number);
            let way = spec.way(number);
            let fit = match way.fit.is_empty() {
                true => None,
                false => {
                    let fit = Fit::new(&way.destination, &way.fit, all.of(rows), &way.row_schema()?);
                    Some(Arc::new(fit.map_err(|text| refused(format!("destination {number}: {text}")))?))
                }
            };
            ends.push(End { rows, path: spec.path(number), fit });
        }
        let inputs = (0..stages.len()).map(|place| spec.input_of(place)).collect();
        Ok(Transforms { stages, inputs, ends, windows: Arc::new(Windows::new(outcome)) })
    }

    /// Those on the way to one of the destinations, alone.
    pub fn way(&self, number: usize) -> Self {
        let Some(end) = self.ends.get(number) else { return Self::default() };
        let first = RowsOf { transform: None, output: 0 };
        let renamed = |(place, own): (usize, &RowsOf)| RowsOf { transform: Some(place), output: own.output };
        let mut inputs: Vec<RowsOf> = std::iter::once(first).chain(end.path.iter().enumerate().map(renamed)).collect();
        let rows = inputs.pop().unwrap_or(first);
        let stages = end.path.iter().filter_map(|own| self.stages.get(own.transform?).cloned()).collect();
        let path = inputs.iter().skip(1).copied().chain([rows]).filter(|own| own.transform.is_some()).collect();
        let end = End { rows, path, fit: end.fit.clone() };
        Transforms { stages, inputs, ends: vec![end], windows: self.windows.clone() }
    }

    /// The rows that queries wait for.
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Whether rows stay what the parser has made of them.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty() && self.ends.iter().all(|end| end.fit.is_none())
    }

    /// Whether there may be rows that do not go on.
    pub fn drop_rows(&self) -> bool {
        let drops = |stage: &Arc<Stage>| match &stage.work {
            Work::Probe(probe) => probe.drops_rows(),
            Work::Query(_) | Work::Split(_) => true,
        };
        self.stages.iter().any(drops) || self.ends.iter().any(|end| end.fit.is_some())
    }

    /// Counts of no rows, one for each transform.
    pub fn no_counts(&self) -> Vec<TransformCounts> {
        vec![TransformCounts::default(); self.stages.len()]
    }

    /// What has become of rows on the way to a destination that are not given to it: how many were rejected, and how many left out or
    /// sent another way.
    pub fn left_out(&self, number: usize, counts: &[TransformCounts]) -> DestinationCounts {
        let mut sum = DestinationCounts::default();
        let path = self.ends.get(number).map_or(&[][..], |end| &end.path);
        for (own, counts) in path.iter().filter_map(|own| Some((own, counts.get(own.transform?)?))) {
            let others = counts.outputs.iter().sum::<u64>();
            let elsewhere = match own.output.checked_sub(1) {
                None => others,
                Some(output) => {
                    counts.matched + counts.defaulted + others - counts.outputs.get(output).copied().unwrap_or_default()
                }
            };
            sum.rejected += counts.rejected;
            sum.filtered += counts.filtered + elsewhere;
        }
        sum
    }

    /// Whether what somebody has refused is missing on the way to a destination.
    pub fn is_on_way(&self, refuser: Refuser, number: usize) -> bool {
        match refuser {
            Refuser::Destination(own) => own == number,
            Refuser::Transform(place) => {
                self.ends.get(number).is_some_and(|end| end.path.iter().any(|own| own.transform == Some(place)))
            }
        }
    }

    /// The rows of a batch behind the transforms, for each destination. `counts`: one for each transform.
    ///
    /// # Errors
    /// Those of a query that no row is to blame for, `Cancelled`, `Internal`.
    pub fn send(&self, batch: RecordBatch, counts: &mut [TransformCounts]) -> Result<Sent, CoreError> {
        let mut sent = Sent {
            destinations: self.ends.iter().map(|_| None).collect(),
            refused_at_end: vec![0; self.ends.len()],
            refused: Remaining::default(),
        };
        self.give(RowsOf { transform: None, output: 0 }, batch, Remaining::default(), counts, &mut sent)?;
        Ok(sent)
    }

    /// The same of transforms with one destination: its rows, none if none is left. `remaining` is told of rows that do not go on.
    ///
    /// # Errors
    /// Those of [`Transforms::send`].
    pub fn apply(
        &self,
        batch: RecordBatch,
        counts: &mut [TransformCounts],
        remaining: &mut Remaining,
    ) -> Result<Option<RecordBatch>, CoreError> {
        let Sent { mut destinations, refused, .. } = self.send(batch, counts)?;
        let own = destinations.pop().flatten();
        let (batch, mut left) = own.map_or_else(|| (None, Remaining::default()), |(batch, left)| (Some(batch), left));
        left.absorb(refused);
        *remaining = left;
        Ok(batch)
    }

    /// Gives rows to whoever reads them; their arrays are shared.
    fn give(
        &self,
        rows: RowsOf,
        batch: RecordBatch,
        remaining: Remaining,
        counts: &mut [TransformCounts],
        sent: &mut Sent,
    ) -> Result<(), CoreError> {
        let stages =
            self.inputs.iter().enumerate().filter(|(_, own)| **own == rows).map(|(place, _)| Reader::Stage(place));
        let ends =
            self.ends.iter().enumerate().filter(|(_, end)| end.rows == rows).map(|(place, _)| Reader::End(place));
        let readers: Vec<Reader> = stages.chain(ends).collect();
        let Some((last, others)) = readers.split_last() else {
            sent.refused.absorb(remaining); // an output that nobody reads
            return Ok(());
        };
        for reader in others {
            self.read(*reader, batch.clone(), remaining.fork(), counts, sent)?;
        }
        self.read(*last, batch, remaining, counts, sent)
    }

    fn read(
        &self,
        reader: Reader,
        batch: RecordBatch,
        mut remaining: Remaining,
        counts: &mut [TransformCounts],
        sent: &mut Sent,
    ) -> Result<(), CoreError> {
        match reader {
            Reader::End(place) => {
                let before = remaining.refused();
                let left = match &self.ends[place].fit {
                    None => Some(batch),
                    Some(fit) => fit.apply(&batch, &mut remaining).map_err(|error| internal("fit", &error))?,
                };
                sent.refused_at_end[place] += remaining.refused() - before;
                remaining.refused_by(Refuser::Destination(place));
                match left {
                    Some(batch) => sent.destinations[place] = Some((batch, remaining)),
                    None => sent.refused.absorb(remaining),
                }
                Ok(())
            }
            Reader::Stage(place) => {
                let Given { outputs, mut refused } = self.work(place, &batch, &mut counts[place], remaining)?;
                drop(batch);
                refused.refused_by(Refuser::Transform(place));
                sent.refused.absorb(refused);
                for Output { output, batch, mut remaining } in outputs {
                    remaining.refused_by(Refuser::Transform(place));
                    self.give(RowsOf { transform: Some(place), output }, batch, remaining, counts, sent)?;
                }
                Ok(())
            }
        }
    }

    fn work(
        &self,
        place: usize,
        batch: &RecordBatch,
        counts: &mut TransformCounts,
        mut remaining: Remaining,
    ) -> Result<Given, CoreError> {
        let stage = &self.stages[place];
        let started = Instant::now();
        let given = match &stage.work {
            Work::Probe(probe) => {
                probe.apply(batch, counts, remaining).map_err(|error| internal(&stage.name, &error))?
            }
            Work::Split(split) => split.apply(batch, &self.windows, counts, remaining)?,
            Work::Query(query) => match query.apply(batch, &self.windows, counts, &mut remaining)? {
                Some(batch) => {
                    Given { outputs: vec![Output { output: 0, batch, remaining }], refused: Remaining::default() }
                }
                None => Given { outputs: Vec::new(), refused: remaining },
            },
        };
        stage.busy_nanoseconds.fetch_add(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
        Ok(given)
    }

    /// What each has done so far.
    pub fn reports(&self) -> Vec<TransformReport> {
        let report = |stage: &Arc<Stage>| TransformReport {
            name: stage.name.clone(),
            busy_seconds: stage.busy_nanoseconds.load(Ordering::Relaxed) as f64 / 1e9,
        };
        self.stages.iter().map(report).collect()
    }
}

fn internal(name: &str, error: &dyn std::fmt::Display) -> CoreError {
    CoreError::new(ErrorKind::Internal, format!("transform `{name}`: {error}"))
}
