//! Ways: what leads from the rows of the source to one destination. For each destination the flow of its way is a plain flow.

use std::collections::HashMap;

use headrace_types::{CoreError, ErrorKind, RowColumn, RowSchema};
use serde::Deserialize;

use super::{CommittedSlice, FlowSpec, RoutingSpec, SinkSpec, SliceSpec, TransformSpec};
use crate::report::{DestinationCounts, SliceReport};

/// Which rows arrive somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowsOf {
    /// Place of the transform that they come from; none for rows as the parser, or the join, gives them.
    pub transform: Option<usize>,
    /// By which of its outputs.
    #[serde(default)]
    pub output: usize,
}

/// One more destination of a flow.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DestinationSpec {
    /// As [`FlowSpec::destination`].
    pub name: String,
    /// Which rows it gets.
    pub input: RowsOf,
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
}

/// Columns of rows somewhere on their way, and the column in front of the transforms that each of them is; none for those that stand
/// in no file.
#[derive(Debug, Clone)]
pub struct RowFields {
    /// The columns.
    pub schema: RowSchema,
    /// One for each of them.
    pub fields: Vec<Option<usize>>,
}

/// Columns of the rows of a flow wherever they are.
pub struct FlowFields {
    /// In front of the transforms.
    first: RowFields,
    /// Before and behind each transform.
    stages: Vec<(RowFields, RowFields)>,
}

impl FlowFields {
    /// Those of rows that come from somewhere. Outputs of a transform that are not its first have the columns that came.
    pub fn of(&self, rows: RowsOf) -> &RowFields {
        match rows.transform.and_then(|place| self.stages.get(place)) {
            None => &self.first,
            Some((_, behind)) if rows.output == 0 => behind,
            Some((before, _)) => before,
        }
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
    pub fn input_of(&self, place: usize) -> RowsOf {
        let before = RowsOf { transform: place.checked_sub(1), output: 0 };
        self.transforms.get(place).and_then(|own| own.input).unwrap_or(before)
    }

    /// Which rows arrive at a destination.
    pub fn input_of_destination(&self, number: usize) -> RowsOf {
        let last = RowsOf { transform: self.transforms.len().checked_sub(1), output: 0 };
        match number.checked_sub(1) {
            None => self.input.unwrap_or(last),
            Some(other) => self.others.get(other).map_or(last, |other| other.input),
        }
    }

    /// What rows pass to a destination: the transforms, and by which output each, in order.
    pub fn path(&self, number: usize) -> Vec<RowsOf> {
        let mut path = Vec::new();
        let mut rows = self.input_of_destination(number);
        // Each reads one that stands before it.
        while let Some(place) = rows.transform {
            path.insert(0, rows);
            rows = self.input_of(place);
        }
        path
    }

    /// The plain flow of the way to a destination.
    pub fn way(&self, number: usize) -> FlowSpec {
        let path = self.path(number);
        let mut way = FlowSpec { others: Vec::new(), transforms: Vec::new(), ..self.clone() };
        let mut rows = RowsOf { transform: None, output: 0 };
        for (place, own) in path.iter().enumerate() {
            let transform = own.transform.and_then(|transform| self.transforms.get(transform));
            way.transforms.extend(transform.map(|own| TransformSpec { input: Some(rows), ..own.clone() }));
            rows = RowsOf { transform: Some(place), output: own.output };
        }
        way.input = Some(rows);
        if let Some(other) = number.checked_sub(1).and_then(|other| self.others.get(other)) {
            let DestinationSpec { name, fit, routing, sink, committed, .. } = other.clone();
            way.destination = name;
            (way.fit, way.routing, way.sink, way.source.committed) = (fit, routing, sink, committed);
        }
        way
    }

    /// Slices that are committed in a destination.
    pub fn committed_in(&self, number: usize) -> Option<&HashMap<u32, CommittedSlice>> {
        match number.checked_sub(1) {
            None => Some(&self.source.committed),
            Some(other) => self.others.get(other).map(|other| &other.committed),
        }
    }

    /// Whether a slice is committed in all destinations.
    pub fn is_slice_committed(&self, slice: u32) -> bool {
        (0..self.destinations()).all(|own| self.committed_in(own).is_some_and(|known| known.contains_key(&slice)))
    }

    /// The account of a slice that was committed in all destinations, without a reject.
    pub fn known(&self, slice: &SliceSpec) -> Option<SliceReport> {
        let of =
            |number: usize| self.committed_in(number)?.get(&slice.number).map(|known| SliceReport::known(slice, known));
        let mut account = of(0)?;
        if self.others.is_empty() {
            return Some(account);
        }
        for number in 0..self.destinations() {
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
        let refused = |text: String| CoreError::new(ErrorKind::Specification, format!("flow {}: {text}", self.name));
        let schema = self.first_schema()?;
        let first = RowFields { fields: self.first_fields(&schema), schema };
        let mut known = FlowFields { first, stages: Vec::new() };
        for (place, transform) in self.transforms.iter().enumerate() {
            let rows = self.input_of(place);
            self.check_rows(rows, place).map_err(refused)?;
            let before = known.of(rows).clone();
            let mut behind = before.clone();
            transform.extend(&mut behind.schema).map_err(refused)?;
            transform.follow_fields(&before.schema, &mut behind.fields);
            known.stages.push((before, behind));
        }
        for number in 0..self.destinations() {
            self.check_rows(self.input_of_destination(number), self.transforms.len()).map_err(refused)?;
        }
        Ok(known)
    }

    /// Whether rows come from what stands before a place, and by an output that it has.
    fn check_rows(&self, rows: RowsOf, place: usize) -> Result<(), String> {
        let outputs = match rows.transform {
            None => 1,
            Some(from) if from >= place => return Err(format!("transform {from} is read before it has any rows")),
            Some(from) => self.transforms[from].operation.outputs(),
        };
        match rows.output < outputs {
            true => Ok(()),
            false => Err(format!("there is no output {} of {outputs}", rows.output)),
        }
    }
}
