//! Ways: what leads from the rows of the source to one destination. For each destination the flow of its way is a plain flow.

use std::collections::{HashMap, HashSet};

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
    pub fn inputs_of(&self, place: usize) -> Vec<RowsOf> {
        let before = RowsOf { transform: place.checked_sub(1), output: 0 };
        let said = self.transforms.get(place).map(|own| &own.inputs).filter(|own| !own.is_empty());
        said.cloned().unwrap_or_else(|| vec![before])
    }

    /// Which rows arrive at a destination.
    pub fn input_of_destination(&self, number: usize) -> RowsOf {
        let last = RowsOf { transform: self.transforms.len().checked_sub(1), output: 0 };
        match number.checked_sub(1) {
            None => self.input.unwrap_or(last),
            Some(other) => self.others.get(other).map_or(last, |other| other.input),
        }
    }

    /// The places of the transforms that rows may pass to a destination, in order.
    pub fn passed(&self, number: usize) -> Vec<usize> {
        let mut is_passed = vec![false; self.transforms.len()];
        let pass = |rows: RowsOf, is_passed: &mut [bool]| {
            if let Some(own) = rows.transform.and_then(|place| is_passed.get_mut(place)) {
                *own = true;
            }
        };
        pass(self.input_of_destination(number), &mut is_passed);
        // Each reads what stands before it.
        for place in (0..self.transforms.len()).rev() {
            if is_passed[place] {
                self.inputs_of(place).into_iter().for_each(|rows| pass(rows, &mut is_passed));
            }
        }
        (0..self.transforms.len()).filter(|place| is_passed[*place]).collect()
    }

    /// The plain flow of the way to a destination.
    pub fn way(&self, number: usize) -> FlowSpec {
        let passed = self.passed(number);
        let mut way = FlowSpec { others: Vec::new(), transforms: Vec::new(), ..self.clone() };
        let own = passed.iter().filter_map(|place| Some((*place, self.transforms.get(*place)?)));
        way.transforms = own
            .map(|(place, own)| {
                let inputs = self.inputs_of(place).into_iter().map(|rows| rows.among(&passed)).collect();
                TransformSpec { inputs, ..own.clone() }
            })
            .collect();
        let rows = self.input_of_destination(number).among(&passed);
        way.input = Some(rows);
        if let Some(other) = number.checked_sub(1).and_then(|other| self.others.get(other)) {
            let DestinationSpec { name, fit, routing, sink, committed, left_out, .. } = other.clone();
            (way.destination, way.source.left_out) = (name, left_out);
            (way.fit, way.routing, way.sink, way.source.committed) = (fit, routing, sink, committed);
        }
        let left_out = std::mem::take(&mut way.source.left_out);
        way.source.slices.retain(|slice| !left_out.contains(&slice.number));
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
        left_out.is_some_and(|left_out| !left_out.contains(&slice))
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
        let mut account = of(self.takers(slice.number).next()?)?;
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
        let refused = |text: String| CoreError::new(ErrorKind::Specification, format!("flow {}: {text}", self.name));
        let schema = self.first_schema()?;
        let first = RowFields { fields: self.first_fields(&schema), schema };
        let mut known = FlowFields { first, stages: Vec::new() };
        for (place, transform) in self.transforms.iter().enumerate() {
            let inputs = self.inputs_of(place);
            inputs.iter().try_for_each(|rows| self.check_rows(*rows, place)).map_err(refused)?;
            self.check_apart(&transform.name, &inputs).map_err(refused)?;
            let before: Vec<&RowFields> = inputs.iter().map(|rows| known.of(*rows)).collect();
            let behind = transform.behind(&before).map_err(refused)?;
            known.stages.push((known.of(inputs[0]).clone(), behind));
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
