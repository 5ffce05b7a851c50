//! Two slices whose rows meet: a reader for each, and the join that asks for the blocks of the side that is behind.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use headrace_transform::join::{self, Disorder, JoinError, MergeJoin, Reason, Side, Step};
use headrace_transform::lookup::KeyValue;
use headrace_types::{CoreError, ErrorKind, Layout, Location, RowColumn};

use super::Sending;
use super::ranges::JoinedRange;
use super::reader::{Progress, Reader, Rows};
use crate::flow::{Flow, Shared};
use crate::lookup::key_text;
use crate::meter::{Doing, SliceSize, StreamMeter, Work};
use crate::report::{JoinCounts, TransformCounts};
use crate::row_position::RowPosition;
use crate::sink::locate::LocateSink;
use crate::sink::{Origin, Placed};
use crate::spec::{FlowSpec, JoinSpec, KeepRejects, RejectSpec, SinkSpec, SliceSpec};
use crate::transforms::Remaining;

/// Joins the slices of one pair after the other.
pub struct Pair<'a> {
    shared: &'a Arc<Shared>,
    meter: &'a StreamMeter,
    spec: &'a JoinSpec,
    join: join::JoinSpec,
    readers: [Reader<'a>; 2],
}

/// Batches of one block of a side, on their way into the join.
#[derive(Default)]
struct Waiting(VecDeque<RecordBatch>);

impl Rows for Waiting {
    fn place(
        &mut self,
        batch: RecordBatch,
        _counts: &mut [TransformCounts],
        _remaining: &mut Remaining,
    ) -> Result<Option<Placed>, CoreError> {
        Ok(Some(Placed::whole(batch, 0)))
    }

    fn is_transformed(&self) -> bool {
        true
    }

    fn rows_out(&self, _placed: &Placed) -> u64 {
        0 // what comes out, the join tells
    }

    fn write(&mut self, placed: Placed, _origin: Origin) -> Result<bool, CoreError> {
        self.0.push_back(placed.batch);
        Ok(true)
    }
}

/// What a side has to give.
enum Given {
    Batch(RecordBatch),
    /// It has ended.
    Nothing,
    Stopped,
}

/// The slices of a pair, open.
struct Opened<'s> {
    /// None of a side whose file has no slice.
    progress: [Option<Progress<'s>>; 2],
    waiting: [Waiting; 2],
    join: MergeJoin,
    out: u64,
    transforms: Vec<TransformCounts>,
}

impl<'a> Pair<'a> {
    /// For a flow of this join.
    ///
    /// # Errors
    /// `Specification` for one that does not fit its layouts.
    pub fn new(shared: &'a Arc<Shared>, meter: &'a StreamMeter, spec: &'a JoinSpec) -> Result<Self, CoreError> {
        let left = &shared.spec.layout;
        let refused = |text: String| CoreError::new(ErrorKind::Specification, text);
        Ok(Pair {
            shared,
            meter,
            spec,
            join: spec.resolved(left).map_err(refused)?.0,
            readers: [Reader::new(shared, meter, left, None)?, Reader::new(shared, meter, &spec.right, None)?],
        })
    }

    /// Joins the slices of a pair. False when the flow was stopped.
    pub fn run(&mut self, slices: &[SliceSpec], sending: &mut Sending<'_>) -> Result<bool, CoreError> {
        let Some(first) = slices.first() else { return Ok(true) };
        // The larger one tells how far the pair has come.
        let Some(largest) = slices.iter().max_by_key(|slice| slice.bytes()) else { return Ok(true) };
        self.meter.begin_slice(largest, SliceSize::of(&self.shared.spec.source, largest));
        self.meter.turn_to(Doing::Write);
        if !sending.writer.begin_slice(first, self.meter)? {
            return Ok(false);
        }
        let join = MergeJoin::new(self.join.clone()).map_err(|text| self.internal(&text))?;
        let mut opened = Opened {
            progress: [None, None],
            waiting: Default::default(),
            join,
            out: 0,
            transforms: self.shared.transforms.no_counts(),
        };
        for slice in slices {
            let index = self.spec.side_of(slice.file).index();
            self.readers[index].tells_progress = std::ptr::eq(slice, largest);
            opened.progress[index] = Some(self.readers[index].open(slice, None)?);
        }
        let joined = self.join_rows(first, &mut opened, sending);
        for (reader, progress) in self.readers.iter().zip(&mut opened.progress) {
            progress.as_mut().map(|progress| reader.end_rejects(progress)).transpose()?;
        }
        if !joined? {
            return Ok(false);
        }
        self.check_range(first, &opened)?;
        self.end(opened, sending)?;
        slices.iter().for_each(|_| self.meter.end_slice());
        Ok(true)
    }

    /// Refuses keys that another pair has, too.
    fn check_range(&self, first: &SliceSpec, opened: &Opened<'_>) -> Result<(), CoreError> {
        let Some(keys) = opened.join.range() else { return Ok(()) };
        let own = JoinedRange { file: first.file, keys };
        let Some(other) = self.shared.joined.add(own.clone()) else { return Ok(()) };
        let [before, behind] =
            if self.pair_of(own.file) < self.pair_of(other.file) { [own, other] } else { [other, own] };
        let path =
            |file: usize| self.shared.spec.source.files.get(file).map(|file| file.path.as_str()).unwrap_or_default();
        let shown = |range: &JoinedRange| {
            let [first, last] = [range.keys.first(), range.keys.last()].map(|key| self.shown(Side::Left, key));
            format!("{first} to {last} in {}", path(range.file))
        };
        let what = format!("files of join `{}` are no pairs: two of them have keys in common", self.spec.name);
        Err(CoreError::new(ErrorKind::Source, what)
            .at_file(path(behind.file))
            .found(format!("{}, {}", shown(&before), shown(&behind)))
            .expected("each key in one pair of files only, and no others between the keys of a pair")
            .hint("Cut both sources at the same keys, or write each of them as one file."))
    }

    fn pair_of(&self, file: usize) -> usize {
        file.checked_sub(self.spec.first_right_file).unwrap_or(file)
    }

    /// The accounts of both slices; what came out is told by the first of them.
    fn end(&mut self, opened: Opened<'_>, sending: &mut Sending<'_>) -> Result<(), CoreError> {
        let Opened { progress, join, out, transforms, .. } = opened;
        let mut came_out = Some((out, transforms));
        for (side, progress) in Side::BOTH.into_iter().zip(progress) {
            let Some(mut progress) = progress else { continue };
            self.readers[side.index()].close(&mut progress)?;
            let join::InputCounts { rows, unmatched, null_keys } = join.counts(side);
            let filtered = if self.join.kind.keeps(side) { 0 } else { unmatched };
            progress.account.join = Some(JoinCounts { rows, unmatched, filtered, null_keys });
            let is_first = came_out.is_some();
            (progress.account.out, progress.account.transforms) = came_out.take().unwrap_or_default();
            progress.account.count_filtered();
            self.meter.turn_to(Doing::Write);
            if is_first {
                sending.writer.end_slice(&progress.account)?;
            }
            self.shared.end_slice(progress.account);
        }
        Ok(())
    }

    /// False when the flow was stopped.
    fn join_rows(
        &mut self,
        first: &SliceSpec,
        opened: &mut Opened<'_>,
        sending: &mut Sending<'_>,
    ) -> Result<bool, CoreError> {
        loop {
            self.meter.turn_to(Doing::Transform);
            match opened.join.step().map_err(|error| self.internal(&error))? {
                Step::Needs(side) => match self.next(side, opened)? {
                    Given::Batch(batch) => {
                        self.meter.turn_to(Doing::Transform);
                        opened.join.push(side, batch).map_err(|error| self.refused(error, opened))?;
                    }
                    Given::Nothing => opened.join.end(side),
                    Given::Stopped => return Ok(false),
                },
                Step::Rows(batch) => {
                    if !self.send(first, batch, opened, sending)? {
                        return Ok(false);
                    }
                }
                Step::Ended => return Ok(true),
            }
        }
    }

    /// The next batch of a side.
    fn next(&mut self, side: Side, opened: &mut Opened<'_>) -> Result<Given, CoreError> {
        let (own, other) = (side.index(), side.other().index());
        loop {
            if let Some(batch) = opened.waiting[own].0.pop_front() {
                return Ok(Given::Batch(batch));
            }
            let Some(progress) = opened.progress[own].as_mut().filter(|progress| !progress.has_ended()) else {
                return Ok(Given::Nothing);
            };
            let reader = &mut self.readers[own];
            reader.is_memory_kept = opened.join.holds(side.other()) || !opened.waiting[other].0.is_empty();
            if !reader.read_block(progress, &mut opened.waiting[own])? {
                return Ok(Given::Stopped);
            }
        }
    }

    /// Sends joined rows on. False when the flow was stopped.
    fn send(
        &self,
        first: &SliceSpec,
        batch: RecordBatch,
        opened: &mut Opened<'_>,
        sending: &mut Sending<'_>,
    ) -> Result<bool, CoreError> {
        let mut remaining = Remaining::default();
        let placed = sending.place(batch, &mut opened.transforms, &mut remaining)?;
        if remaining.refused_rows() > 0 {
            return Err(self.internal(&"joined rows were refused"));
        }
        let Some(placed) = placed else { return Ok(true) };
        let out = placed.batch.num_rows() as u64;
        opened.out += out;
        self.meter.add(Work { rows: 0, bytes: 0, out, is_transformed: true });
        self.meter.turn_to(Doing::Write);
        sending.write(placed, Origin { slice: first.number, first_line: 0, at_byte: 0, bytes: 0 })
    }

    fn internal(&self, error: &dyn std::fmt::Display) -> CoreError {
        CoreError::new(ErrorKind::Internal, format!("join `{}`: {error}", self.spec.name))
    }

    /// The error of the flow's user.
    fn refused(&self, error: JoinError, opened: &Opened<'_>) -> CoreError {
        let JoinError::Disorder(disorder) = error else { return self.internal(&error) };
        let slice = opened.progress[disorder.side.index()].as_ref().map(Progress::slice);
        let rows = [disorder.row, disorder.previous_row];
        let places = slice.map_or_else(|| Ok(Vec::new()), |slice| self.places(slice, rows));
        match places {
            Ok(places) => self.against_order(&disorder, &places),
            Err(error) => error,
        }
    }

    fn against_order(&self, disorder: &Disorder, places: &[Option<Location>]) -> CoreError {
        let Disorder { side, reason, key, previous_key, .. } = disorder;
        let source = &self.spec.sources[side.index()];
        let shown = |key: &[KeyValue]| self.shown(*side, key);
        let [at, before] = [0, 1].map(|place| places.get(place).cloned().flatten());
        let before =
            before.and_then(|place| place.row).map_or_else(|| "the row before".to_owned(), |row| format!("row {row}"));
        let name = &self.spec.name;
        let (what, found, expected, hint) = match reason {
            Reason::Descends => (
                format!("rows of `{source}` are not in the order that join `{name}` needs"),
                format!("{} behind {} of {before}", shown(key), shown(previous_key)),
                "keys that ascend: numbers and times by value, texts by the bytes of their UTF-8",
                "Sort the file by the columns of `on` (texts as UTF-8, with LC_ALL=C), or use a `lookup`.",
            ),
            Reason::Repeats => (
                format!("two rows of `{source}`, the left side of join `{name}`, have one key"),
                format!("{}, as {before}", shown(key)),
                "each key once on the left side",
                "Leave one of the rows out of the file, or let the other source be the left side.",
            ),
        };
        let error = CoreError::new(ErrorKind::Source, what).found(found).expected(expected).hint(hint);
        at.into_iter().fold(error, CoreError::at)
    }

    /// A key with the names of its columns on a side.
    fn shown(&self, side: Side, key: &[KeyValue]) -> String {
        let columns = self.spec.key_columns(&self.shared.spec.layout, side).unwrap_or_default();
        let value = |((_, column), value): (&(usize, RowColumn), _)| {
            format!("{} = {}", column.name, key_text(column.column_type, value))
        };
        columns.iter().zip(key).map(value).collect::<Vec<_>>().join(", ")
    }

    /// Where rows of a slice stand, counted among those that became rows: the file is read once more.
    fn places(&self, slice: &SliceSpec, rows: [u64; 2]) -> Result<Vec<Option<Location>>, CoreError> {
        let spec = &self.shared.spec;
        let rows = rows.map(|row| RowPosition::first(slice.number).plus(row));
        let layout: &Layout = spec.layout_of(slice.file);
        let mut alone = FlowSpec {
            layout: layout.clone(),
            join: None,
            transforms: Vec::new(),
            sink: SinkSpec::Locate { rows: rows.to_vec(), ended: Vec::new() },
            streams: 1,
            affinity: Vec::new(),
            rejects: RejectSpec { limit: None, keep: KeepRejects::Examples, ..RejectSpec::default() },
            ..FlowSpec::clone(spec)
        };
        alone.leave_out_unwanted();
        let sink = LocateSink::new(&Arc::new(alone.clone()), &rows, &[], None, Arc::default());
        let outcome = &self.shared.outcome;
        let report = Flow::into_sink(alone, Arc::new(sink))?.run("the flow was stopped", &mut || outcome.stopped())?;
        report.error.map_or_else(|| Ok(report.sink.places.unwrap_or_default()), Err)
    }
}
