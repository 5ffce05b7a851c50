//! Transforms: what happens to the rows of a stream between parsing and their places. They are a graph: rows come from the parser, or
//! the join, go by the outputs of transforms, come together in reunions, and arrive at the destinations.
//! In front of a join or a union each source has a graph of its own: there is the place where its rows leave to meet those of others, and
//! destinations may get rows of it, too. So has a join whose rows come into another one, but for destinations.

mod fit;
mod probe;
mod query;
mod refused;
mod reunion;
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
use reunion::Reunion;
use split::Split;
pub use windows::{Failure, FailureKind, Window, Windows};

/// The transforms of a flow. They keep nothing of rows, so that all streams share them.
pub struct Transforms {
    stages: Vec<Arc<Stage>>,
    /// Which rows arrive at each, which reads what stands before it; none at those that stand on the other side of a join or a union.
    inputs: Vec<Vec<RowsOf>>,
    /// One for each destination, also for those whose rows are elsewhere.
    ends: Vec<End>,
    /// In front of a join or a union: where rows leave for it; none of a source apart.
    meeting: Option<End>,
    windows: Arc<Windows>,
    /// In front of each feed of joins or of a union what its rows pass before they meet others, or come to destinations of their own, if
    /// there is anything. They are the same stages, with the same places.
    fronts: Vec<Option<Arc<Transforms>>>,
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
    Reunion(Reunion),
}

/// Where rows leave for a destination, or to meet others.
#[derive(Clone)]
struct End {
    /// Which rows; none if they are on the other side of a join or a union.
    rows: Option<RowsOf>,
    /// What they may pass on their way, in order.
    passed: Vec<Passed>,
    fit: Option<Arc<Fit>>,
}

/// A transform on the way to a destination.
#[derive(Clone)]
struct Passed {
    stage: usize,
    /// By which of its outputs rows go on.
    outputs: Vec<usize>,
}

/// Rows that wait for a transform.
struct Arrival {
    /// By which of its inputs they came.
    input: usize,
    batch: RecordBatch,
    remaining: Remaining,
}

/// Who reads rows.
#[derive(Clone, Copy)]
enum Reader {
    /// A transform, by one of its inputs.
    Stage { place: usize, input: usize },
    /// A destination.
    End(usize),
    /// The join or union behind.
    Meeting,
}

/// Who takes rows of a batch.
pub struct Takers {
    /// Of each destination whether it does; all if it is empty.
    pub ends: Vec<bool>,
    /// Whether the join or union behind does.
    pub meeting: bool,
}

impl Takers {
    /// Everybody.
    pub const ALL: Takers = Takers { ends: Vec::new(), meeting: true };
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
    /// The same of those that meet others.
    pub met: Option<(RecordBatch, Remaining)>,
    /// How many rows each destination has refused so far.
    pub refused_at_end: Vec<u64>,
    /// What was refused on ways that have ended.
    pub refused: Remaining,
}

impl End {
    /// Of rows that no transform has seen.
    const FIRST: End = End { rows: Some(RowsOf::FIRST), passed: Vec::new(), fit: None };

    /// Whether a transform is on the way there.
    fn passes(&self, place: usize) -> bool {
        self.passed.iter().any(|own| own.stage == place)
    }

    /// The same where there are only these transforms, in this order.
    fn among(&self, own: &[usize]) -> End {
        let passed = self.passed.iter().filter_map(|Passed { stage, outputs }| {
            let stage = own.iter().position(|own| own == stage)?;
            Some(Passed { stage, outputs: outputs.clone() })
        });
        End { rows: self.rows.map(|rows| rows.among(own)), passed: passed.collect(), fit: self.fit.clone() }
    }
}

impl Default for Transforms {
    /// None.
    fn default() -> Self {
        Transforms {
            stages: Vec::new(),
            inputs: Vec::new(),
            ends: vec![End::FIRST],
            meeting: None,
            windows: Arc::new(Windows::new(Arc::default())),
            fronts: Vec::new(),
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
                Operation::Reunion(reunion) => {
                    let of = |rows: &RowsOf| &all.of_source(*rows, transform.source).schema;
                    let read = spec.inputs_of(place);
                    let inputs: Vec<_> = read.iter().map(of).collect();
                    Ok(Work::Reunion(Reunion::new(reunion, &inputs, &behind.schema)))
                }
            };
            let work = work.map_err(|text| refused(format!("transform `{name}`: {text}")))?;
            stages.push(Arc::new(Stage { name: name.clone(), work, busy_nanoseconds: AtomicU64::new(0) }));
        }
        let inputs: Vec<_> = (0..stages.len()).map(|place| spec.inputs_of(place)).collect();
        let windows = Arc::new(Windows::new(outcome));
        let part = |source: Option<usize>| {
            let is_own = |place: &usize| spec.transforms[*place].source == source;
            let own = |place: usize| Some(place).filter(is_own).map(|place| inputs[place].clone()).unwrap_or_default();
            (0..stages.len()).map(own).collect::<Vec<_>>()
        };
        let end =
            |rows: RowsOf| End { rows: Some(rows), passed: passed(&inputs, spec.leading_to([rows]), rows), fit: None };
        let mut ends = Vec::with_capacity(spec.destinations());
        for number in 0..spec.destinations() {
            let way = spec.way(number);
            let fit = match way.fit.is_empty() {
                true => None,
                false => {
                    let before = all.of_destination(spec, number);
                    let fit = Fit::new(&way.destination, &way.fit, before, &way.row_schema()?);
                    Some(Arc::new(fit.map_err(|text| refused(format!("destination {number}: {text}")))?))
                }
            };
            ends.push(End { fit, ..end(spec.input_of_destination(number)) });
        }
        // Of those whose rows are elsewhere the way is known all the same.
        let ends_of = |source: Option<usize>| {
            let own = |(number, end): (usize, &End)| End {
                rows: end.rows.filter(|_| spec.source_of_destination(number) == source),
                ..end.clone()
            };
            ends.iter().enumerate().map(own).collect::<Vec<_>>()
        };
        let front = |source: usize| {
            let (rows, own) = (spec.input_of_feed(source), ends_of(Some(source)));
            let is_apart = spec.is_apart(source);
            // Of a source apart it says that nothing goes on.
            let is_nothing = !is_apart && rows == RowsOf::FIRST && own.iter().all(|end| end.rows.is_none());
            let front = || Transforms {
                stages: stages.clone(),
                inputs: part(Some(source)),
                ends: own,
                meeting: (!is_apart).then(|| end(rows)),
                windows: windows.clone(),
                fronts: Vec::new(),
            };
            (!is_nothing).then(front).map(Arc::new)
        };
        let fronts: Vec<_> = (0..spec.feeds()).map(front).collect();
        let mut together = ends_of(None);
        // Rows of a union are those of its sources; rows of a join are others.
        for end in together.iter_mut().filter(|end| spec.union.is_some() && end.rows.is_some()) {
            let in_front = fronts.iter().flatten().filter_map(|front| front.meeting.as_ref());
            end.passed = in_front.flat_map(|meeting| meeting.passed.clone()).chain(end.passed.drain(..)).collect();
        }
        Ok(Transforms { inputs: part(None), stages, ends: together, meeting: None, windows, fronts })
    }

    /// Those on the way to one of the destinations, alone.
    pub fn way(&self, number: usize) -> Self {
        let Some(end) = self.ends.get(number) else { return Self::default() };
        let is_there = |front: &&Arc<Transforms>| front.ends.get(number).is_some_and(|end| end.rows.is_some());
        if let Some(front) = self.fronts.iter().flatten().find(is_there) {
            let own = &front.ends[number];
            let stages: Vec<usize> = own.passed.iter().map(|own| own.stage).collect();
            return front.among(&stages, std::slice::from_ref(own), None);
        }
        let meetings = self.fronts.iter().flatten().filter_map(|front| front.meeting.as_ref());
        let mut own: Vec<usize> =
            meetings.chain([end]).flat_map(|end| end.passed.iter().map(|own| own.stage)).collect();
        own.sort_unstable();
        own.dedup();
        let among = |front: &Arc<Transforms>| Arc::new(front.among(&own, &[], front.meeting.as_ref()));
        let fronts = self.fronts.iter().map(|front| front.as_ref().map(among)).collect();
        Transforms { fronts, ..self.among(&own, std::slice::from_ref(end), None) }
    }

    /// Some of them, with some of the ends.
    fn among(&self, own: &[usize], ends: &[End], meeting: Option<&End>) -> Self {
        let among = |inputs: &Vec<RowsOf>| inputs.iter().map(|rows| rows.among(own)).collect();
        Transforms {
            stages: own.iter().filter_map(|place| self.stages.get(*place).cloned()).collect(),
            inputs: own.iter().filter_map(|place| self.inputs.get(*place).map(among)).collect(),
            ends: ends.iter().map(|end| end.among(own)).collect(),
            meeting: meeting.map(|end| end.among(own)),
            windows: self.windows.clone(),
            fronts: Vec::new(),
        }
    }

    /// What stands in front of a feed of a join or a union, if there is anything.
    pub fn front(&self, source: usize) -> Option<&Transforms> {
        self.fronts.get(source)?.as_deref()
    }

    /// Those in front of sources alone: what comes together goes on as it is.
    pub fn fronts_alone(&self) -> Self {
        Transforms {
            stages: self.stages.clone(),
            inputs: vec![Vec::new(); self.stages.len()],
            ends: vec![End::FIRST],
            meeting: None,
            windows: self.windows.clone(),
            fronts: self.fronts.clone(),
        }
    }

    /// The rows that queries wait for.
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Whether rows stay what the parser has made of them.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty() && self.ends.iter().all(|end| end.fit.is_none() && end.rows.is_some())
    }

    /// Whether there may be rows that do not go on, behind a join or a union.
    pub fn drop_rows(&self) -> bool {
        let drops = |(stage, inputs): (&Arc<Stage>, &Vec<RowsOf>)| match &stage.work {
            _ if inputs.is_empty() => false,
            Work::Probe(probe) => probe.drops_rows(),
            Work::Query(_) | Work::Split(_) => true,
            Work::Reunion(_) => false,
        };
        self.stages.iter().zip(&self.inputs).any(drops) || self.ends.iter().any(|end| end.fit.is_some())
    }

    /// Counts of no rows, one for each transform.
    pub fn no_counts(&self) -> Vec<TransformCounts> {
        vec![TransformCounts::default(); self.stages.len()]
    }

    /// What has become of rows on the way to a destination that are not given to it: how many were rejected, and how many left out or
    /// sent another way. In front of a union that is on every way; in front of a join rows are not those that come out of it.
    pub fn left_out(&self, number: usize, counts: &[TransformCounts]) -> DestinationCounts {
        let mut sum = DestinationCounts::default();
        let passed = self.ends.get(number).map_or(&[][..], |end| &end.passed);
        for (Passed { outputs, .. }, counts) in passed.iter().filter_map(|own| Some((own, counts.get(own.stage)?))) {
            let first = counts.matched + counts.defaulted;
            let rows = std::iter::once(&first).chain(&counts.outputs).enumerate();
            let elsewhere = rows.filter(|(output, _)| !outputs.contains(output)).map(|(_, rows)| rows).sum::<u64>();
            sum.rejected += counts.rejected;
            sum.filtered += counts.filtered + elsewhere;
        }
        sum
    }

    /// Whether what somebody has refused is missing on the way to a destination. What was refused on the way into a join or a union is
    /// missing on all ways out of it.
    pub fn is_on_way(&self, refuser: Refuser, number: usize) -> bool {
        let Some(end) = self.ends.get(number) else { return false };
        match refuser {
            Refuser::Destination(own) => own == number,
            Refuser::Transform(place) => end.passes(place) || (end.rows.is_some() && self.is_on_way_in(refuser)),
        }
    }

    /// Whether what somebody has refused in front of a join or a union comes not out of that.
    pub fn is_on_way_in(&self, refuser: Refuser) -> bool {
        let Refuser::Transform(place) = refuser else { return false };
        self.fronts.iter().flatten().filter_map(|front| front.meeting.as_ref()).any(|meeting| meeting.passes(place))
    }

    /// The rows of a batch behind the transforms, for each destination. `counts`: one for each transform; `takers`: who gets rows of the
    /// batch.
    ///
    /// # Errors
    /// Those of a query that no row is to blame for, `Cancelled`, `Internal`.
    pub fn send(&self, batch: RecordBatch, counts: &mut [TransformCounts], takers: &Takers) -> Result<Sent, CoreError> {
        let is_taken = |number: usize| takers.ends.get(number).copied().unwrap_or(true);
        let ends = self.ends.iter().enumerate().filter(|(number, end)| end.rows.is_some() && is_taken(*number));
        let ends: Vec<&End> = ends.map(|(_, end)| end).chain(self.meeting.iter().filter(|_| takers.meeting)).collect();
        let leads_on = |reader: &Reader| match *reader {
            Reader::End(number) => is_taken(number),
            Reader::Meeting => takers.meeting,
            Reader::Stage { place, .. } => ends.iter().any(|end| end.passes(place)),
        };
        let mut sent = Sent {
            destinations: self.ends.iter().map(|_| None).collect(),
            met: None,
            refused_at_end: vec![0; self.ends.len()],
            refused: Remaining::default(),
        };
        let mut waiting: Vec<Vec<Arrival>> = self.stages.iter().map(|_| Vec::new()).collect();
        self.give(RowsOf::FIRST, batch, Remaining::default(), &leads_on, &mut waiting, &mut sent)?;
        for place in 0..self.stages.len() {
            // All that it reads has come: it stands before it.
            let arrived = std::mem::take(&mut waiting[place]);
            if arrived.is_empty() {
                continue;
            }
            let Given { outputs, mut refused } = self.work(place, arrived, &mut counts[place])?;
            refused.refused_by(Refuser::Transform(place));
            sent.refused.absorb(refused);
            for Output { output, batch, mut remaining } in outputs {
                remaining.refused_by(Refuser::Transform(place));
                let rows = RowsOf { transform: Some(place), output };
                self.give(rows, batch, remaining, &leads_on, &mut waiting, &mut sent)?;
            }
        }
        Ok(sent)
    }

    /// The same of transforms with one end, be it a destination or where rows meet others: its rows, none if none is left. `remaining` is
    /// told of rows that do not go on.
    ///
    /// # Errors
    /// Those of [`Transforms::send`].
    pub fn apply(
        &self,
        batch: RecordBatch,
        counts: &mut [TransformCounts],
        remaining: &mut Remaining,
    ) -> Result<Option<RecordBatch>, CoreError> {
        let Sent { mut destinations, met, refused, .. } = self.send(batch, counts, &Takers::ALL)?;
        let own = met.or_else(|| destinations.pop().flatten());
        let (batch, mut left) = own.map_or_else(|| (None, Remaining::default()), |(batch, left)| (Some(batch), left));
        left.absorb(refused);
        *remaining = left;
        Ok(batch)
    }

    /// Gives rows to whoever reads them, and leads on to somebody who takes them; their arrays are shared.
    fn give(
        &self,
        rows: RowsOf,
        batch: RecordBatch,
        remaining: Remaining,
        leads_on: &dyn Fn(&Reader) -> bool,
        waiting: &mut [Vec<Arrival>],
        sent: &mut Sent,
    ) -> Result<(), CoreError> {
        let input = |(place, inputs): (usize, &Vec<RowsOf>)| {
            Some(Reader::Stage { place, input: inputs.iter().position(|own| *own == rows)? })
        };
        let stages = self.inputs.iter().enumerate().filter_map(input);
        let reads = |end: &End| end.rows == Some(rows);
        let ends = self.ends.iter().enumerate().filter(|(_, end)| reads(end)).map(|(place, _)| Reader::End(place));
        let meeting = self.meeting.iter().filter(|end| reads(end)).map(|_| Reader::Meeting);
        let readers: Vec<Reader> = stages.chain(ends).chain(meeting).filter(|reader| leads_on(reader)).collect();
        let Some((last, others)) = readers.split_last() else {
            sent.refused.absorb(remaining); // an output that nobody reads now
            return Ok(());
        };
        for reader in others {
            self.arrive(*reader, batch.clone(), remaining.fork(), waiting, sent)?;
        }
        self.arrive(*last, batch, remaining, waiting, sent)
    }

    fn arrive(
        &self,
        reader: Reader,
        batch: RecordBatch,
        mut remaining: Remaining,
        waiting: &mut [Vec<Arrival>],
        sent: &mut Sent,
    ) -> Result<(), CoreError> {
        let number = match reader {
            Reader::Stage { place, input } => {
                waiting[place].push(Arrival { input, batch, remaining });
                return Ok(());
            }
            Reader::Meeting => {
                sent.met = Some((batch, remaining));
                return Ok(());
            }
            Reader::End(number) => number,
        };
        let before = remaining.refused();
        let left = match &self.ends[number].fit {
            None => Some(batch),
            Some(fit) => fit.apply(&batch, &mut remaining).map_err(|error| internal("fit", &error))?,
        };
        sent.refused_at_end[number] += remaining.refused() - before;
        remaining.refused_by(Refuser::Destination(number));
        match left {
            Some(batch) => sent.destinations[number] = Some((batch, remaining)),
            None => sent.refused.absorb(remaining),
        }
        Ok(())
    }

    fn work(&self, place: usize, arrived: Vec<Arrival>, counts: &mut TransformCounts) -> Result<Given, CoreError> {
        let stage = &self.stages[place];
        let started = Instant::now();
        let given = match &stage.work {
            Work::Reunion(reunion) => reunion.apply(arrived, counts).map_err(|error| internal(&stage.name, &error))?,
            alone => {
                let only = arrived.into_iter().next().ok_or_else(|| internal(&stage.name, &"no rows"))?;
                self.work_alone(&stage.name, alone, only, counts)?
            }
        };
        stage.busy_nanoseconds.fetch_add(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
        Ok(given)
    }

    /// Of a transform with one input.
    fn work_alone(
        &self,
        name: &str,
        work: &Work,
        Arrival { batch, mut remaining, .. }: Arrival,
        counts: &mut TransformCounts,
    ) -> Result<Given, CoreError> {
        match work {
            Work::Probe(probe) => probe.apply(&batch, counts, remaining).map_err(|error| internal(name, &error)),
            Work::Split(split) => split.apply(&batch, &self.windows, counts, remaining),
            Work::Query(query) => Ok(match query.apply(&batch, &self.windows, counts, &mut remaining)? {
                Some(batch) => {
                    Given { outputs: vec![Output { output: 0, batch, remaining }], refused: Remaining::default() }
                }
                None => Given { outputs: Vec::new(), refused: remaining },
            }),
            Work::Reunion(_) => Err(internal(name, &"a reunion of one input")),
        }
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

/// What rows pass that arrive somewhere: by which outputs they go on.
fn passed(inputs: &[Vec<RowsOf>], stages: Vec<usize>, end: RowsOf) -> Vec<Passed> {
    let read: Vec<RowsOf> =
        stages.iter().filter_map(|place| inputs.get(*place)).flatten().copied().chain([end]).collect();
    let outputs = |stage: usize| read.iter().filter(|own| own.transform == Some(stage)).map(|own| own.output).collect();
    stages.into_iter().map(|stage| Passed { stage, outputs: outputs(stage) }).collect()
}

fn internal(name: &str, error: &dyn std::fmt::Display) -> CoreError {
    CoreError::new(ErrorKind::Internal, format!("transform `{name}`: {error}"))
}
