//! Two slices whose rows meet: a reader for each, and the join that asks for the blocks of the side that is behind.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::RecordBatch;
use headrace_parse::RefusedRow;
use headrace_transform::join::{self, Disorder, JoinError, MergeJoin, Reason, Side, Step};
use headrace_transform::lookup::KeyValue;
use headrace_types::{CoreError, ErrorKind, Layout, Location, RowColumn, Rule};

use super::Sending;
use super::front::Front;
use super::ranges::JoinedRange;
use super::reader::{Counts, Gone, InFront, Progress, Reader, Rows, rows_of};
use crate::flow::{Flow, Shared};
use crate::lookup::key_text;
use crate::meter::{Doing, SliceSize, StreamMeter, Work};
use crate::report::{DestinationCounts, JoinCounts, TransformCounts};
use crate::row_position::RowPosition;
use crate::sink::Origin;
use crate::sink::locate::LocateSink;
use crate::spec::{FileSpec, FlowSpec, JoinSpec, KeepRejects, RejectSpec, RowFields, SinkSpec, SliceSpec, SourceSpec};
use crate::transforms::{Refusal, Remaining};

/// Joins the slices of one pair after the other.
pub struct Pair<'a> {
    shared: &'a Arc<Shared>,
    meter: &'a StreamMeter,
    spec: &'a JoinSpec,
    join: join::JoinSpec,
    readers: [Reader<'a>; 2],
    /// What the rows of each side pass before they meet.
    fronts: [Option<Front<'a>>; 2],
    /// Columns of the rows that meet.
    sides: [RowFields; 2],
    notes: Vec<NoteOfOther>,
}

/// What is said of rows because of a column that they do not have in their file: made once, and not for each of them.
struct NoteOfOther {
    rule: Rule,
    /// What is said of the column itself.
    note: Option<Arc<str>>,
    /// Index of the column behind the join.
    column: usize,
    text: Arc<str>,
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
    join: MergeJoin,
    /// The batches at hand.
    at_hand: [AtHand; 2],
    /// How many rows of the parsers have come before them.
    before: [u64; 2],
    /// How many rows of the sides stand for joined ones that were refused.
    rejected: [u64; 2],
    out: u64,
    transforms: Vec<TransformCounts>,
    /// What was refused at the ends of ways, and what went to the destinations.
    ends: Vec<DestinationCounts>,
    /// On the way to each destination, how many rows of the sides were refused behind the join.
    refused_on_ways: Vec<[u64; 2]>,
}

/// What is known of the rows of a parser's batch.
#[derive(Default)]
struct AtHand {
    rows: u64,
    /// The numbers of those that its front has left; none as long as it has left all.
    left: Option<Vec<u32>>,
    /// Those that were refused there, in their order.
    refused_in_front: Vec<RefusedRow>,
    /// Those that do not go on behind the join, in their order.
    refused: Vec<RefusedRow>,
}

impl AtHand {
    /// The number, among those of the parser, of a row that meets others.
    fn number(&self, row: u32) -> u32 {
        self.left.as_ref().map_or(row, |left| left[row as usize])
    }

    /// All refused rows, in their order. One that was refused beside the join, and behind it, is one, with what was found first.
    fn into_refused(self) -> Vec<RefusedRow> {
        let AtHand { refused, refused_in_front: mut all, .. } = self;
        if all.is_empty() {
            return refused;
        }
        all.extend(refused);
        all.sort_by_key(|own| own.number);
        all.dedup_by(|later, first| {
            let is_same = later.number == first.number;
            if is_same {
                let lacking = [&first.lacking, &later.lacking].map(|own| own.as_deref().unwrap_or_default());
                let all: BTreeSet<usize> = lacking.concat().into_iter().collect();
                first.lacking = first.lacking.is_some().then(|| all.into_iter().collect());
            }
            is_same
        });
        all
    }
}

impl<'a> Pair<'a> {
    /// For a flow of this join.
    ///
    /// # Errors
    /// `Specification` for one that does not fit its layouts.
    pub fn new(shared: &'a Arc<Shared>, meter: &'a StreamMeter, spec: &'a JoinSpec) -> Result<Self, CoreError> {
        let left = &shared.spec.layout;
        let refused = |text: String| CoreError::new(ErrorKind::Specification, text);
        let fields = shared.spec.fields()?;
        let sides = [0, 1].map(|side| shared.spec.rows_into(&fields, side));
        Ok(Pair {
            shared,
            meter,
            spec,
            join: spec.resolved(&sides).map_err(refused)?.0,
            fronts: Side::BOTH.map(|side| Front::new(&shared.transforms, spec, side.index(), &sides)),
            sides,
            readers: [Reader::new(shared, meter, left, None)?, Reader::new(shared, meter, &spec.right, None)?],
            notes: Vec::new(),
        })
    }

    /// Joins the slices of pairs, one pair after the other. False when the flow was stopped.
    pub fn run(&mut self, group: &[SliceSpec], sending: &mut Sending<'_>) -> Result<bool, CoreError> {
        let spec = self.spec;
        for slices in group.chunk_by(|one, next| spec.pair_of(one.file) == spec.pair_of(next.file)) {
            if !self.run_pair(slices, sending)? {
                return Ok(false);
            }
            slices.iter().for_each(|_| self.meter.end_slice());
        }
        Ok(true)
    }

    /// Joins the slices of a pair. False when the flow was stopped.
    fn run_pair(&mut self, slices: &[SliceSpec], sending: &mut Sending<'_>) -> Result<bool, CoreError> {
        let Some(first) = slices.first() else { return Ok(true) };
        // The larger one tells how far the pair has come.
        let Some(largest) = slices.iter().max_by_key(|slice| slice.bytes()) else { return Ok(true) };
        self.meter.begin_slice(largest, SliceSize::of(&self.shared.spec.source, largest));
        self.meter.turn_to(Doing::Write);
        if !sending.begin(slices)? {
            return Ok(false);
        }
        let join = MergeJoin::new(self.join.clone()).map_err(|text| self.internal(&text))?;
        let mut opened = Opened {
            progress: [None, None],
            join,
            at_hand: Default::default(),
            before: [0; 2],
            rejected: [0; 2],
            out: 0,
            transforms: self.shared.transforms.no_counts(),
            ends: vec![DestinationCounts::default(); self.shared.spec.destinations()],
            refused_on_ways: vec![[0; 2]; self.shared.spec.destinations()],
        };
        for slice in slices {
            let index = self.spec.side_of(slice.file).index();
            self.readers[index].tells_progress = std::ptr::eq(slice, largest);
            opened.progress[index] = Some(self.readers[index].open(slice)?);
        }
        let joined = self.join_rows(first, &mut opened, sending);
        // Of batches that are left open behind an error the rejects are kept all the same.
        let ended = Side::BOTH.map(|side| self.end_batch(side, &mut opened));
        for (reader, progress) in self.readers.iter().zip(&mut opened.progress) {
            progress.as_mut().map(|progress| reader.end_rejects(progress)).transpose()?;
        }
        if !joined? {
            return Ok(false);
        }
        ended.into_iter().collect::<Result<(), _>>()?;
        let keys = self.range(first, &opened);
        keys.iter().try_for_each(|keys| self.check_range(keys))?;
        self.end(opened, keys, sending)?;
        Ok(true)
    }

    /// The keys of a pair, if it has any.
    fn range(&self, first: &SliceSpec, opened: &Opened<'_>) -> Option<JoinedRange> {
        let keys = opened.join.range()?;
        let shown = [keys.first(), keys.last()].map(|key| self.shown(Side::Left, key));
        Some(JoinedRange { file: first.file, keys: keys.codes(), shown })
    }

    /// Refuses keys that another pair has, too.
    fn check_range(&self, own: &JoinedRange) -> Result<(), CoreError> {
        let Some(other) = self.shared.joined.add(own.clone()) else { return Ok(()) };
        let is_first = self.spec.pair_of(own.file) < self.spec.pair_of(other.file);
        let [before, behind] = if is_first { [own, &other] } else { [&other, own] };
        let path =
            |file: usize| self.shared.spec.source.files.get(file).map(|file| file.path.as_str()).unwrap_or_default();
        let shown = |range: &JoinedRange| {
            let [first, last] = &range.shown;
            format!("{first} to {last} in {}", path(range.file))
        };
        let what = format!("files of join `{}` are no pairs: two of them have keys in common", self.spec.name);
        Err(CoreError::new(ErrorKind::Source, what)
            .at_file(path(behind.file))
            .found(format!("{}, {}", shown(before), shown(behind)))
            .expected("each key in one pair of files only, and no others between the keys of a pair")
            .hint("Cut both sources at the same keys, or write each of them as one file."))
    }

    /// The accounts of both slices; what came out is told by the first of them.
    fn end(
        &mut self,
        opened: Opened<'_>,
        keys: Option<JoinedRange>,
        sending: &mut Sending<'_>,
    ) -> Result<(), CoreError> {
        let Opened { progress, join, rejected, out, transforms, ends, refused_on_ways, .. } = opened;
        let have_fronts = self.shared.spec.fronts() > 0;
        let mut came_out = Some((out, transforms, ends));
        let mut ended = Vec::new();
        for (side, progress) in Side::BOTH.into_iter().zip(progress) {
            let Some(mut progress) = progress else { continue };
            self.readers[side.index()].close(&mut progress)?;
            let join::InputCounts { rows, unmatched, null_keys } = join.counts(side);
            let filtered = if self.join.kind.keeps(side) { 0 } else { unmatched };
            let rejected = rejected[side.index()];
            progress.account.join = Some(JoinCounts { rows, unmatched, filtered, null_keys, rejected });
            if !have_fronts {
                progress.account.transforms.clear();
            }
            if let Some((out, mut transforms, ends)) = came_out.take() {
                // What stands in front has counted there, and all others here.
                let in_front = std::mem::take(&mut progress.account.transforms);
                transforms.iter_mut().zip(in_front).filter(|(_, own)| own.rows > 0).for_each(|(all, own)| *all = own);
                progress.account.out += out;
                progress.account.transforms = transforms;
                let is_together = |number: &usize| self.shared.spec.source_of_destination(*number).is_none();
                (0..ends.len()).filter(is_together).for_each(|number| progress.ends[number] = ends[number]);
            }
            let of_way = |own: &[u64; 2]| progress.rejected_in_front + own[side.index()];
            progress.refused_around_join = Some(refused_on_ways.iter().map(of_way).collect());
            self.readers[side.index()].count_ways(&mut progress);
            ended.push(progress);
        }
        self.meter.turn_to(Doing::Write);
        let slices: Vec<_> = ended.iter().map(|progress| progress.account.clone()).collect();
        // Before any of it can be committed.
        self.shared.kept_accounts.keep(&slices, keys);
        ended.iter().try_for_each(|progress| sending.end_slice(progress.slice(), &progress.account))?;
        ended.into_iter().for_each(|progress| self.shared.end_slice(progress.account));
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
                Step::Needs(side) => match self.next(side, opened, sending)? {
                    Given::Batch(batch) => {
                        self.meter.turn_to(Doing::Transform);
                        let Opened { join, at_hand, before, .. } = opened;
                        let (own, before) = (&at_hand[side.index()], before[side.index()]);
                        let number = |row: usize| before + u64::from(own.number(row as u32));
                        join.push_numbered(side, batch, &number).map_err(|error| self.refused(error, opened))?;
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

    /// The next rows of a side that meet others; all rows of the batch before have gone. What goes to destinations past the join, goes at
    /// once.
    fn next(&mut self, side: Side, opened: &mut Opened<'_>, sending: &mut Sending<'_>) -> Result<Given, CoreError> {
        loop {
            self.end_batch(side, opened)?;
            let is_kept = self.readers[side.other().index()].holds_block();
            let Some(progress) = &mut opened.progress[side.index()] else { return Ok(Given::Nothing) };
            let reader = &mut self.readers[side.index()];
            reader.is_memory_kept = is_kept;
            let Some(batch) = reader.next_batch(progress)? else {
                return Ok(if self.shared.outcome.stopped() { Given::Stopped } else { Given::Nothing });
            };
            let own = &mut opened.at_hand[side.index()];
            own.rows = batch.num_rows() as u64;
            let Some(front) = &self.fronts[side.index()] else { return Ok(Given::Batch(batch)) };
            let (shared, slice) = (self.shared, progress.slice().number);
            self.meter.turn_to(Doing::Transform);
            let mut remaining = Remaining::default();
            let counts = Counts { transforms: &mut progress.account.transforms, destinations: &mut progress.ends };
            let InFront { met, placed } = front.apply(batch, counts, &mut remaining, sending)?;
            own.left = remaining.numbers().map(<[u32]>::to_vec);
            let on_way_in = remaining.refusers().filter(|(_, by)| shared.transforms.is_on_way_in(*by));
            progress.rejected_in_front += on_way_in.count() as u64;
            own.refused_in_front = remaining.into_refused(&progress.file, |by| shared.lacking(by, slice));
            let out = rows_of(&placed);
            if let Some(origin) = reader.origin().filter(|_| out > 0) {
                progress.account.out += out;
                self.meter.add(Work { rows: 0, bytes: 0, out, is_transformed: true });
                self.meter.turn_to(Doing::Write);
                if !sending.write(placed, origin)? {
                    return Ok(Given::Stopped);
                }
            }
            if let Some(batch) = met {
                return Ok(Given::Batch(batch));
            }
        }
    }

    /// Says which rows of the last batch of a side were refused.
    fn end_batch(&mut self, side: Side, opened: &mut Opened<'_>) -> Result<(), CoreError> {
        let own = std::mem::take(&mut opened.at_hand[side.index()]);
        let Some(progress) = &mut opened.progress[side.index()] else { return Ok(()) };
        opened.before[side.index()] += own.rows;
        // Those that were refused on the way to a destination past the join, too, are rejects once.
        opened.rejected[side.index()] += own.refused.len() as u64;
        let gone = Gone { out: 0, is_transformed: true }; // what comes out, the join tells
        self.readers[side.index()].end_batch(progress, own.into_refused(), &gone).map(drop)
    }

    /// Sends joined rows on. False when the flow was stopped.
    fn send(
        &mut self,
        first: &SliceSpec,
        batch: RecordBatch,
        opened: &mut Opened<'_>,
        sending: &mut Sending<'_>,
    ) -> Result<bool, CoreError> {
        let mut remaining = Remaining::default();
        let counts = Counts { transforms: &mut opened.transforms, destinations: &mut opened.ends };
        let placed = sending.place(batch, counts, &mut remaining)?;
        for (number, refuser) in remaining.refusers() {
            let (side, _) = opened.join.stands_for(number as usize);
            for (way, refused) in opened.refused_on_ways.iter_mut().enumerate() {
                refused[side.index()] += u64::from(self.shared.transforms.is_on_way(refuser, way));
            }
        }
        for (number, refusal, by) in remaining.into_refusals() {
            let (side, row) = opened.join.stands_for(number as usize);
            let Some(progress) = &opened.progress[side.index()] else { continue };
            let row = opened.at_hand[side.index()].number(row);
            let lacking = self.shared.lacking(&by, progress.slice().number);
            let refused = self.refused_row(side, row, refusal, &progress.file);
            let refused = RefusedRow { lacking, ..refused };
            opened.at_hand[side.index()].refused.push(refused);
        }
        let out = rows_of(&placed);
        if out == 0 {
            return Ok(true);
        }
        opened.out += out;
        self.meter.add(Work { rows: 0, bytes: 0, out, is_transformed: true });
        if self.shared.spec.is_slice_committed(first.number) {
            return Ok(true);
        }
        self.meter.turn_to(Doing::Write);
        sending.write(placed, Origin::of_pair(first.number))
    }

    /// A row of a side that stands for a joined one. What is wrong may stand in the other one.
    fn refused_row(&mut self, side: Side, number: u32, refusal: Refusal, file: &FileSpec) -> RefusedRow {
        let found = refusal.column.and_then(|column| Some((column, self.join.columns.get(column)?)));
        let field = |own: &join::OutputColumn| {
            let fields = &self.sides[side.index()].fields;
            Some(own).filter(|own| own.side == side).and_then(|own| fields.get(own.column).copied().flatten())
        };
        let (own, note) = match found.map(|(column, found)| (column, field(found))) {
            Some((_, Some(field))) => (Some(field), refusal.note),
            Some((column, None)) => (None, Some(self.note_of_other(refusal.rule, refusal.note, column))),
            None => (None, refusal.note),
        };
        Refusal { note, ..refusal }.of_row(number, None, |_| own.map(|column| file.field(column)))
    }

    /// What is said of rows because of a column behind the join that their other ones have, or that stands in no file.
    fn note_of_other(&mut self, rule: Rule, note: Option<Arc<str>>, column: usize) -> Arc<str> {
        let is_known = |known: &&NoteOfOther| known.column == column && known.rule == rule && known.note == note;
        if let Some(known) = self.notes.iter().find(is_known) {
            return known.text.clone();
        }
        let of = self.spec.columns.get(column).map_or_else(String::new, |named| {
            let source = &self.spec.sources[join::Side::from(named.side).index()];
            format!("`{}` of `{source}`", named.column)
        });
        let text = Refusal { column: None, rule, note: note.clone() }.elsewhere(&of).note.unwrap_or_default();
        self.notes.push(NoteOfOther { rule, note, column, text: text.clone() });
        text
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
        let columns = self.spec.key_columns(&self.sides[side.index()].schema, side).unwrap_or_default();
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
            routing: None,
            destination: String::new(),
            input: None,
            input_source: None,
            fit: Vec::new(),
            others: Vec::new(),
            source: SourceSpec { committed: HashMap::new(), left_out: HashSet::new(), ..spec.source.clone() },
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
