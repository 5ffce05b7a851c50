//! Fronts: transforms in front of a join or a union, through which the rows of one source go before they meet those of others. They are
//! the first ones of a flow, those of each source together, and each says of which source it is. What leaves a front may go to
//! destinations, too, which get rows of that source alone.

use headrace_transform::join::Side;
use headrace_types::Layout;

use super::ways::{FlowFields, RowFields, RowsOf};
use super::{FlowSpec, SliceSpec, UnionSpec};

impl FlowSpec {
    /// How many sources it has, if it has a join or a union. Those that come together are the first ones.
    pub fn sources(&self) -> usize {
        match (&self.join, &self.union) {
            (Some(join), _) => Side::BOTH.len() + join.apart.len(),
            (None, Some(union)) => union.sources.len(),
            (None, None) => 0,
        }
    }

    /// How many of them come together.
    pub fn sources_together(&self) -> usize {
        match (&self.join, &self.union) {
            (Some(_), _) => Side::BOTH.len(),
            (None, Some(union)) => union.sources_together(),
            (None, None) => 0,
        }
    }

    /// Whether a source stands apart: its rows meet no others, and only destinations in its own front get them.
    pub fn is_apart(&self, source: usize) -> bool {
        (self.sources_together()..self.sources()).contains(&source)
    }

    /// Whether there is such a source.
    pub fn has_apart(&self) -> bool {
        self.sources_together() < self.sources()
    }

    /// How many of its transforms stand in front of a join or a union: they are its first ones.
    pub fn fronts(&self) -> usize {
        self.transforms.iter().take_while(|own| own.source.is_some()).count()
    }

    /// Which rows of a source meet those of others.
    pub fn input_of_source(&self, source: usize) -> RowsOf {
        self.inputs_of_sources().and_then(|inputs| inputs.get(source)).copied().unwrap_or(RowsOf::FIRST)
    }

    fn inputs_of_sources(&self) -> Option<&Vec<RowsOf>> {
        let of_union = self.union.as_ref().map(|union| &union.inputs);
        self.join.as_ref().map(|join| &join.inputs).or(of_union)
    }

    pub(super) fn inputs_of_sources_mut(&mut self) -> Option<&mut Vec<RowsOf>> {
        let of_union = self.union.as_mut().map(|union| &mut union.inputs);
        self.join.as_mut().map(|join| &mut join.inputs).or(of_union)
    }

    /// Columns of the rows of each source, as its parser gives them, but for those that go past its front.
    pub(super) fn rows_of_sources(&self) -> Vec<RowFields> {
        let rows = |source: usize| self.rows_of_source(source).without_last(self.beside(source)).0;
        (0..self.sources()).map(rows).collect()
    }

    fn rows_of_source(&self, source: usize) -> RowFields {
        RowFields::of_layout(self.layout_of_source(source))
    }

    /// Columns and dialect of the files of a source.
    pub fn layout_of_source(&self, source: usize) -> &Layout {
        match (&self.join, &self.union) {
            (Some(join), _) => join.layout(&self.layout, source),
            (None, Some(union)) => union.layout(&self.layout, source),
            (None, None) => &self.layout,
        }
    }

    /// The number of the source that a file is of; 0 where there is one alone.
    pub fn source_of_file(&self, file: usize) -> usize {
        match (&self.join, &self.union) {
            (Some(join), _) => join.source_of(file),
            (None, Some(union)) => union.source_of(file),
            (None, None) => 0,
        }
    }

    /// The same of a slice, if there is such a one.
    pub fn source_of_slice(&self, number: u32) -> Option<usize> {
        let (slices, is_it) = (&self.source.slices, |slice: &&SliceSpec| slice.number == number);
        let at_its_place = number.checked_sub(1).and_then(|place| slices.get(place as usize)).filter(is_it);
        let slice = at_its_place.or_else(|| slices.iter().find(is_it));
        slice.map(|slice| self.source_of_file(slice.file))
    }

    /// Whether rows of a source come as its layout says, and not with the columns of a union alone: something stands in front, or somebody
    /// else reads them.
    pub fn reads_whole(&self, source: usize) -> bool {
        let is_read = |number: usize| self.source_of_destination(number) == Some(source);
        let is_known = |union: &UnionSpec| union.read_whole.contains(&source);
        self.input_of_source(source) != RowsOf::FIRST
            || (0..self.destinations()).any(is_read)
            || self.union.as_deref().is_some_and(is_known)
    }

    /// How many columns of a source go past its front.
    fn beside(&self, source: usize) -> usize {
        self.join.as_ref().filter(|_| !self.is_apart(source)).map_or(0, |join| join.beside)
    }

    /// Columns of the rows of a source that meet those of others.
    pub fn rows_into(&self, known: &FlowFields, source: usize) -> RowFields {
        let own = known.of_source(self.input_of_source(source), Some(source));
        own.and(&self.rows_of_source(source).without_last(self.beside(source)).1)
    }

    /// Columns of the rows that come out of the join or the union, if it has one.
    pub(super) fn rows_together(&self, known: &FlowFields) -> Result<Option<RowFields>, String> {
        match (&self.join, &self.union) {
            (Some(join), _) => {
                let sides = [0, 1].map(|side| self.rows_into(known, side));
                Ok(Some(RowFields::of_own(join.resolved(&sides)?.1)))
            }
            (None, Some(union)) => {
                let sources: Vec<_> =
                    (0..self.sources_together()).map(|source| self.rows_into(known, source)).collect();
                union.behind(&sources).map(Some)
            }
            (None, None) => Ok(None),
        }
    }

    /// Whether what stands in front of sources stands before all else, and of sources that there are.
    pub(super) fn check_fronts(&self) -> Result<(), String> {
        let (sources, fronts) = (self.sources(), self.fronts());
        if let Some(own) = self.transforms[fronts..].iter().find(|own| own.source.is_some()) {
            return Err(format!("transform `{}` in front of a source stands behind others", own.name));
        }
        let is_there = |source: usize| source < sources;
        if let Some(own) = self.transforms.iter().find(|own| own.source.is_some_and(|source| !is_there(source))) {
            return Err(format!("transform `{}` stands in front of a source that is not there", own.name));
        }
        let inputs = self.inputs_of_sources().map_or(0, Vec::len);
        let wanted = if self.join.is_some() { self.sources_together() } else { sources };
        if inputs > 0 && inputs != wanted {
            return Err(format!("{inputs} inputs are not those of {wanted} sources"));
        }
        if let Some(source) = (0..sources).find(|&own| self.is_apart(own) && self.input_of_source(own) != RowsOf::FIRST)
        {
            return Err(format!("source {source} stands apart, and has rows that meet others"));
        }
        for number in 0..self.destinations() {
            let Some(source) = self.source_of_destination(number) else { continue };
            if !is_there(source) {
                return Err(format!("destination {number} reads rows of a source that is not there"));
            }
            if number == 0 && self.input.is_none() {
                return Err("nothing says which rows of its source destination 0 reads".to_owned());
            }
        }
        Ok(())
    }
}
