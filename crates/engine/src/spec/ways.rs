//! Ways: what leads from the rows of the source to one destination. For each destination the flow of its way is a plain flow.

use std::collections::{HashMap, HashSet};

use headrace_types::{CoreError, Layout, RowColumn, RowSchema};
use serde::Deserialize;

use super::{CommittedSlice, FlowSpec, RoutingSpec, SinkSpec, SliceSpec, TransformSpec};
use crate::report::{DestinationCounts, SliceReport};

/// Which rows arrive somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowsOf {
    /// Place of the transform that they come from; none for rows as the parser, the join or the union gives them. In front of a join or a
    /// union these are the rows of the parser of the own source.
    pub transform: Option<usize>,
    /// By which of its outputs.
    #[serde(default)]
    pub output: usize,
}

impl RowsOf {
    /// The rows in front of all transforms.
    pub const FIRST: RowsOf = RowsOf { transform: None, output: 0 };

    /// The same rows where there are only these transforms, in this order.
    pub fn among(self, passed: &[usize]) -> RowsOf {
        let transform = self.transform.and_then(|place| passed.iter().position(|own| *own == place));
        RowsOf { transform, ..self }
    }
}

/// One more destination of a flow.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DestinationSpec {
    /// As [`FlowSpec::destination`].
    pub name: String,
    /// Which rows it gets.
    pub input: RowsOf,
    /// As [`FlowSpec::input_source`].
    #[serde(default)]
    pub input_source: Option<usize>,
    /// As in [`FlowSpec::fit`].
    #[serde(default)]
    pub fit: Vec<RowColumn>,
    /// As in [`FlowSpec::routing`].
    #[serde(default)]
    pub routing: Option<RoutingSpec>,
    /// Where batches go.
    pub sink: SinkSpec,
    /// Slices that an earlier attempt has committed there.
    #[serde(default)]
    pub committed: HashMap<u32, CommittedSlice>,
    /// As in [`super::SourceSpec::left_out`].
    #[serde(default)]
    pub left_out: HashSet<u32>,
}

/// Columns of rows somewhere on their way, and the column in front of the transforms that each of them is; none for those that stand
/// in no file. In front of a join or a union that is the column of the own source.
#[derive(Debug, Clone)]
pub struct RowFields {
    /// The columns.
    pub schema: RowSchema,
    /// One for each of them.
    pub fields: Vec<Option<usize>>,
}

impl RowFields {
    /// Of rows as the parser gives them: columns that are made stand in no file.
    pub fn of_layout(layout: &Layout) -> Self {
        let schema = RowSchema::of(layout);
        let fields = (0..schema.columns().len()).map(|column| (column < layout.columns.len()).then_some(column));
        RowFields { fields: fields.collect(), schema }
    }

    /// Of rows that have come together, each column its own field: which one it is in the file of a row, who has brought them together
    /// knows.
    pub fn of_own(schema: RowSchema) -> Self {
        RowFields { fields: (0..schema.columns().len()).map(Some).collect(), schema }
    }

    /// These columns without the last ones, and those.
    pub fn without_last(&self, count: usize) -> (Self, Self) {
        let at = self.fields.len().saturating_sub(count);
        let part = |columns: &[RowColumn], fields: &[Option<usize>]| RowFields {
            schema: RowSchema::of_stream(columns.to_vec()),
            fields: fields.to_vec(),
        };
        let (columns, last) = self.schema.columns().split_at(at);
        let (fields, last_fields) = self.fields.split_at(at);
        (part(columns, fields), part(last, last_fields))
    }

    /// These columns, and others behind them.
    pub fn and(&self, others: &Self) -> Self {
        RowFields {
            schema: RowSchema::of_stream([self.schema.columns(), others.schema.columns()].concat()),
            fields: [&self.fields[..], &others.fields].concat(),
        }
    }
}

/// Columns of the rows of a source, or of a join whose rows come into another one.
pub struct FeedFields {
    /// Those that its front gets.
    pub rows: RowFields,
    /// Those that go past it.
    pub beside: RowFields,
}

/// Columns of the rows of a flow wherever they are.
pub struct FlowFields {
    /// Of each feed, where several come together.
    feeds: Vec<FeedFields>,
    /// In front of the transforms, but for those in front of a join or a union.
    first: RowFields,
    /// Before and behind each transform.
    stages: Vec<(RowFields, RowFields)>,
}

impl FlowFields {
    /// Those of rows that come from somewhere. Outputs of a transform that are not its first have the columns that came.
    pub fn of(&self, rows: RowsOf) -> &RowFields {
        self.of_source(rows, None)
    }

    /// The same in front of the source, or behind the inner join, of this number.
    pub fn of_source(&self, rows: RowsOf, source: Option<usize>) -> &RowFields {
        match rows.transform.and_then(|place| self.stages.get(place)) {
            None => source.and_then(|source| self.feeds.get(source)).map_or(&self.first, |own| &own.rows),
            Some((_, behind)) if rows.output == 0 => behind,
            Some((before, _)) => before,
        }
    }

    /// Those of the rows that arrive at a destination.
    pub fn of_destination(&self, spec: &FlowSpec, number: usize) -> &RowFields {
        self.of_source(spec.input_of_destination(number), spec.source_of_destination(number))
    }

    /// How many feeds are known.
    pub(super) fn feeds(&self) -> usize {
        self.feeds.len()
    }

    /// How many transforms are known.
    pub(super) fn stages(&self) -> usize {
        self.stages.len()
    }

    pub(super) fn add_feed(&mut self, feed: FeedFields) {
        self.feeds.push(feed);
    }

    /// The columns of a feed that go past its front.
    pub(super) fn beside(&self, feed: usize) -> Option<&RowFields> {
        self.feeds.get(feed).map(|own| &own.beside)
    }

    /// Before and behind a transform.
    pub fn around(&self, place: usize) -> Option<&(RowFields, RowFields)> {
        self.stages.get(place)
    }
}

impl FlowSpec {
    /// How many destinations it has.
    pub fn destinations(&self) -> usize {
        1 + self.others.len()
    }

    /// Where batches go, in all destinations.
    pub fn sinks(&self) -> impl Iterator<Item = &SinkSpec> {
        std::iter::once(&self.sink).chain(self.others.iter().map(|other| &other.sink))
    }

    /// Which rows arrive at a transform.
    pub fn inputs_of(&self, place: usize) -> Vec<RowsOf> {
        let before = RowsOf { transform: self.last_before(place, self.source_of_transform(place)), output: 0 };
        let said = self.transforms.get(place).map(|own| &own.inputs).filter(|own| !own.is_empty());
        said.cloned().unwrap_or_else(|| vec![before])
    }

    /// Which rows arrive at a destination.
    pub fn input_of_destination(&self, number: usize) -> RowsOf {
        let last = RowsOf { transform: self.last_before(self.transforms.len(), None), output: 0 };
        match number.checked_sub(1) {
            None => self.input.unwrap_or(last),
            Some(other) => self.others.get(other).map_or(last, |other| other.input),
        }
    }

    /// The number of the source in whose front the rows of a destination are; none if they come out of the join or union, or if there is
    /// neither.
    pub fn source_of_destination(&self, number: usize) -> Option<usize> {
        match number.checked_sub(1) {
            None => self.input_source,
            Some(other) => self.others.get(other)?.input_source,
        }
    }

    /// The transform that stands right before a place, if it stands in front of the same source, or of none.
    fn last_before(&self, place: usize, source: Option<usize>) -> Option<usize> {
        place.checked_sub(1).filter(|&before| self.source_of_transform(before) == source)
    }

    fn source_of_transform(&self, place: usize) -> Option<usize> {
        self.transforms.get(place).and_then(|own| own.source)
    }

    /// The places of the transforms that rows may pass to a destination, in order; what stands in front of a join or a union among them.
    pub fn passed(&self, number: usize) -> Vec<usize> {
        let feeds = if self.source_of_destination(number).is_none() { self.feeds() } else { 0 };
        let fronts = (0..feeds).map(|feed| self.input_of_feed(feed));
        self.leading_to(fronts.chain([self.input_of_destination(number)]))
    }

    /// The places of the transforms that rows may pass that arrive somewhere, in order.
    pub fn leading_to(&self, ends: impl IntoIterator<Item = RowsOf>) -> Vec<usize> {
        let mut is_passed = vec![false; self.transforms.len()];
        let pass = |rows: RowsOf, is_passed: &mut [bool]| {
            if let Some(own) = rows.transform.and_then(|place| is_passed.get_mut(place)) {
                *own = true;
            }
        };
        ends.into_iter().for_each(|rows| pass(rows, &mut is_passed));
        // Each reads what stands before it.
        for place in (0..self.transforms.len()).rev() {
            if is_passed[place] {
                self.inputs_of(place).into_iter().for_each(|rows| pass(rows, &mut is_passed));
            }
        }
        (0..self.transforms.len()).filter(|place| is_passed[*place]).collect()
    }

    /// The plain flow of the way to a destination. Of one that gets rows of one source past the join or union, it has neither.
    pub fn way(&self, number: usize) -> FlowSpec {
        let (passed, source) = (self.passed(number), self.source_of_destination(number));
        let mut way = FlowSpec { others: Vec::new(), transforms: Vec::new(), ..self.clone() };
        let own = passed.iter().filter_map(|place| Some((*place, self.transforms.get(*place)?)));
        way.transforms = own
            .map(|(place, own)| {
                let inputs = self.inputs_of(place).into_iter().map(|rows| rows.among(&passed)).collect();
                TransformSpec { inputs, source: own.source.filter(|_| source.is_none()), ..own.clone() }
            })
            .collect();
        let rows = self.input_of_destination(number).among(&passed);
        way.input = Some(rows);
        if let Some(source) = source {
            (way.layout, way.join, way.union, way.input_source) =
                (self.layout_of_source(source).clone(), None, None, None);
        }
        way.inputs_of_feeds_mut().for_each(|rows| *rows = rows.among(&passed));
        if let Some(union) = &mut way.union {
            union.read_whole = (0..self.sources()).filter(|source| self.reads_whole(*source)).collect();
        }
        if let Some(other) = number.checked_sub(1).and_then(|other| self.others.get(other)) {
            let DestinationSpec { name, fit, routing, sink, committed, .. } = other.clone();
            (way.destination, way.input_source) = (name, None);
            (way.fit, way.routing, way.sink, way.source.committed) = (fit, routing, sink, committed);
        }
        way.source.left_out.clear();
        way.source.slices.retain(|slice| self.takes(number, slice.number));
        way
    }

    /// Slices that are committed in a destination.
    pub fn committed_in(&self, number: usize) -> Option<&HashMap<u32, CommittedSlice>> {
        match number.checked_sub(1) {
            None => Some(&self.source.committed),
            Some(other) => self.others.get(other).map(|other| &other.committed),
        }
    }

    /// Whether a destination gets rows of a slice.
    pub fn takes(&self, number: usize, slice: u32) -> bool {
        let left_out = match number.checked_sub(1) {
            None => Some(&self.source.left_out),
            Some(other) => self.others.get(other).map(|other| &other.left_out),
        };
        let is_of_its_source = match self.source_of_destination(number) {
            Some(source) => self.source_of_slice(slice) == Some(source),
            None => !self.has_apart() || !self.source_of_slice(slice).is_some_and(|source| self.is_apart(source)),
        };
        left_out.is_some_and(|left_out| !left_out.contains(&slice)) && is_of_its_source
    }

    /// The destinations that get rows of a slice.
    pub fn takers(&self, slice: u32) -> impl Iterator<Item = usize> {
        (0..self.destinations()).filter(move |number| self.takes(*number, slice))
    }

    /// Whether a slice is committed in all destinations that get it.
    pub fn is_slice_committed(&self, slice: u32) -> bool {
        self.takers(slice).all(|own| self.committed_in(own).is_some_and(|known| known.contains_key(&slice)))
    }

    /// The account of a slice that was committed in all destinations that get it, without a reject.
    pub fn known(&self, slice: &SliceSpec) -> Option<SliceReport> {
        let of =
            |number: usize| self.committed_in(number)?.get(&slice.number).map(|known| SliceReport::known(slice, known));
        let nothing = CommittedSlice::default();
        let mut account = match self.takers(slice.number).next() {
            Some(taker) => of(taker)?,
            None => SliceReport::known(slice, &nothing), // of a source that nobody wants any more
        };
        if self.others.is_empty() {
            return Some(account);
        }
        for number in 0..self.destinations() {
            if !self.takes(number, slice.number) {
                account.destinations.push(DestinationCounts::default());
                continue;
            }
            let SliceReport { committed, out, rejected, filtered, .. } = of(number)?;
            account.destinations.push(DestinationCounts { committed, out, rejected, filtered, refused_at_end: 0 });
        }
        (account.out, account.filtered) = (account.destinations.iter().map(|own| own.out).sum(), 0);
        Some(account)
    }

    /// Columns of its rows wherever they are.
    ///
    /// # Errors
    /// `Specification` for transforms that do not fit the rows before them, or read what does not stand before them.
    pub fn fields(&self) -> Result<FlowFields, CoreError> {
        self.known_fields().map_err(|text| self.refused(text))
    }

    fn known_fields(&self) -> Result<FlowFields, String> {
        self.check_fronts()?;
        let first = RowFields::of_layout(&self.layout);
        let mut known = FlowFields { feeds: self.fields_of_sources(), first, stages: Vec::new() };
        let fronts = self.fronts();
        for place in 0..fronts {
            self.join_up_to(&mut known, self.source_of_transform(place).unwrap_or_default())?;
            let around = self.fields_around(place, &known)?;
            known.stages.push(around);
        }
        self.join_up_to(&mut known, self.feeds())?;
        for feed in 0..self.feeds() {
            self.check_rows(self.input_of_feed(feed), fronts, Some(feed))?;
        }
        if let Some(first) = self.rows_together(&known)? {
            known.first = first;
        }
        for place in fronts..self.transforms.len() {
            let around = self.fields_around(place, &known)?;
            known.stages.push(around);
        }
        for number in 0..self.destinations() {
            let source = self.source_of_destination(number);
            let end = if source.is_some() { fronts } else { self.transforms.len() };
            self.check_rows(self.input_of_destination(number), end, source)?;
        }
        Ok(known)
    }

    /// Columns of the rows before and behind a transform.
    fn fields_around(&self, place: usize, known: &FlowFields) -> Result<(RowFields, RowFields), String> {
        let transform = &self.transforms[place];
        let inputs = self.inputs_of(place);
        inputs.iter().try_for_each(|rows| self.check_rows(*rows, place, transform.source))?;
        self.check_apart(&transform.name, &inputs)?;
        let before: Vec<&RowFields> = inputs.iter().map(|rows| known.of_source(*rows, transform.source)).collect();
        let behind = transform.behind(&before)?;
        Ok((before[0].clone(), behind))
    }

    /// Whether rows come from what stands before a place, and by an output that it has. `source`: in whose front that place is.
    pub(super) fn check_rows(&self, rows: RowsOf, place: usize, source: Option<usize>) -> Result<(), String> {
        let outputs = match rows.transform {
            None => 1,
            Some(from) if from >= place => return Err(format!("transform {from} is read before it has any rows")),
            Some(from) if self.transforms[from].source != source => {
                let name = &self.transforms[from].name;
                return Err(format!("the rows of transform `{name}` are read on the other side of a join or union"));
            }
            Some(from) => self.transforms[from].operation.outputs(),
        };
        match rows.output < outputs {
            true => Ok(()),
            false => Err(format!("there is no output {} of {outputs}", rows.output)),
        }
    }

    /// Whether no row comes by two inputs of a transform.
    fn check_apart(&self, name: &str, inputs: &[RowsOf]) -> Result<(), String> {
        for (number, own) in inputs.iter().enumerate() {
            if let Some(other) = inputs[..number].iter().position(|other| self.have_common_rows(*own, *other)) {
                return Err(format!("transform `{name}`: the same rows come by its inputs {other} and {number}"));
            }
        }
        Ok(())
    }

    /// Whether a row may be in both: a row leaves each transform by one output.
    fn have_common_rows(&self, one: RowsOf, other: RowsOf) -> bool {
        let (mut pairs, mut seen) = (vec![(one, other)], HashSet::new());
        while let Some((one, other)) = pairs.pop() {
            if one == other {
                return true;
            }
            let (later, earlier) = if one.transform > other.transform { (one, other) } else { (other, one) };
            let Some(place) = later.transform.filter(|place| earlier.transform != Some(*place)) else { continue };
            let before = self.inputs_of(place).into_iter().map(|rows| (rows, earlier));
            pairs.extend(before.filter(|pair| seen.insert(*pair)));
        }
        false
    }
}
