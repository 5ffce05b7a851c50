//! Several sources of a flow: they come together in a join or a union, or stand apart. The files of the flow are those of all, one source
//! behind the other.

use headrace_types::Layout;
use serde::Deserialize;

use super::{FlowSpec, SliceSpec};

/// One of several sources.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSource {
    /// Name, for messages.
    pub name: String,
    /// Columns and dialect of its files; none of the first one, which has those of the flow.
    #[serde(default)]
    pub layout: Option<Layout>,
    /// Index of its first file; of a source without files that of the next one.
    pub first_file: usize,
    /// For each column of a union which one of the rows of the source it is; none if they lack it. Without anything in front these are
    /// the columns of the layout, made ones behind the others. Nothing of a source apart, or of a join.
    #[serde(default)]
    pub places: Vec<Option<usize>>,
    /// Whether its rows never come together with others: only destinations in its own front get them. Such sources are the last ones.
    #[serde(default)]
    pub apart: bool,
}

/// How many of these come together: the first ones.
pub(super) fn together(sources: &[FlowSource]) -> usize {
    sources.iter().take_while(|own| !own.apart).count()
}

/// What is wrong with the order of sources, if anything.
pub(super) fn misfit(sources: &[FlowSource]) -> Option<&'static str> {
    if sources.first().is_none_or(|own| own.first_file != 0) || !sources.is_sorted_by_key(|own| own.first_file) {
        return Some("the files of its sources do not follow one another");
    }
    if !sources.is_sorted_by_key(|own| own.apart) {
        return Some("a source apart stands before others");
    }
    let has_right_layout = |(number, own): (usize, &FlowSource)| own.layout.is_some() == (number > 0);
    let wrong = "the first source has the layout of the flow, and every other one its own";
    (!sources.iter().enumerate().all(has_right_layout)).then_some(wrong)
}

impl FlowSpec {
    /// Its sources, if it has a join or a union. Those that come together are the first ones.
    pub fn several(&self) -> &[FlowSource] {
        match (&self.join, &self.union) {
            (Some(join), _) => &join.sources,
            (None, Some(union)) => &union.sources,
            (None, None) => &[],
        }
    }

    /// How many they are.
    pub fn sources(&self) -> usize {
        self.several().len()
    }

    /// How many of them come together.
    pub fn sources_together(&self) -> usize {
        together(self.several())
    }

    /// Whether a source stands apart: its rows meet no others, and only destinations in its own front get them.
    pub fn is_apart(&self, source: usize) -> bool {
        (self.sources_together()..self.sources()).contains(&source)
    }

    /// Whether there is such a source.
    pub fn has_apart(&self) -> bool {
        self.sources_together() < self.sources()
    }

    /// Columns and dialect of the files of a source.
    pub fn layout_of_source(&self, source: usize) -> &Layout {
        self.several().get(source).and_then(|own| own.layout.as_ref()).unwrap_or(&self.layout)
    }

    /// The number of the source that a file is of; 0 where there is one alone.
    pub fn source_of_file(&self, file: usize) -> usize {
        self.several().partition_point(|own| own.first_file <= file).saturating_sub(1)
    }

    /// The same of a slice, if there is such a one.
    pub fn source_of_slice(&self, number: u32) -> Option<usize> {
        let (slices, is_it) = (&self.source.slices, |slice: &&SliceSpec| slice.number == number);
        let at_its_place = number.checked_sub(1).and_then(|place| slices.get(place as usize)).filter(is_it);
        let slice = at_its_place.or_else(|| slices.iter().find(is_it));
        slice.map(|slice| self.source_of_file(slice.file))
    }
}
