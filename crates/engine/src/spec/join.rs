//! Sources whose rows meet in joins: the files of the flow are those of all, one source behind the other, and the k-th of each are a unit.

use headrace_types::Layout;
use serde::Deserialize;

use super::meeting::{JoinColumn, JoinKind, MeetingSpec};
use super::{FlowSource, FlowSpec, RowsOf, SinkSpec, SliceSpec, SourceSpec, sources};
use crate::queue::Group;

/// Joins in front of the transforms of a flow, but for those in front of their sides. One of them is the last, whose rows go on; rows of
/// each other one come into another join.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "JoinForm")]
pub struct JoinSpec {
    /// The sources, in the order of their files: those that meet, in the order of the joins, and behind them those apart. The layout of
    /// the first one is that of the flow.
    pub sources: Vec<FlowSource>,
    /// The other joins, each behind its sides.
    pub inner: Vec<MeetingSpec>,
    /// The last join.
    pub last: MeetingSpec,
    /// How many columns, the last ones of each source that meets others, and made, go past what stands in front of it: a pass that looks
    /// for the places of rows has them. Of an inner join they are those of all its sources.
    pub beside: usize,
}

/// As it is told: the last join has the others, and the sources.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JoinForm {
    name: String,
    kind: JoinKind,
    keys: Vec<[String; 2]>,
    columns: Vec<JoinColumn>,
    sides: [usize; 2],
    #[serde(default)]
    inputs: Vec<RowsOf>,
    sources: Vec<FlowSource>,
    #[serde(default)]
    inner: Vec<MeetingSpec>,
}

impl From<JoinForm> for JoinSpec {
    fn from(form: JoinForm) -> Self {
        let JoinForm { name, kind, keys, columns, sides, inputs, sources, inner } = form;
        let last = MeetingSpec { name, kind, keys, columns, sides, inputs };
        JoinSpec { sources, inner, last, beside: 0 }
    }
}

impl JoinSpec {
    /// How many files each source has that meets others.
    fn files(&self) -> usize {
        self.sources.get(1).map_or(0, |own| own.first_file)
    }

    /// The slices of each unit, those of the first source first.
    pub fn units(&self, source: &SourceSpec) -> Vec<Group> {
        let (files, leaves) = (self.files(), self.leaves());
        let mut units = vec![Group::new(); files];
        for slice in source.slices.iter().filter(|slice| slice.file < files * leaves) {
            units[self.unit_of(slice.file)].push(slice.clone());
        }
        units.iter_mut().for_each(|unit| unit.sort_by_key(|slice| slice.file));
        units.retain(|unit| !unit.is_empty());
        units
    }

    /// The number of the unit that a file is of, from 0.
    pub fn unit_of(&self, file: usize) -> usize {
        file.checked_rem(self.files()).unwrap_or(file)
    }

    /// The layout of a source; `first`: that of the flow.
    pub fn layout_mut<'a>(&'a mut self, first: &'a mut Layout, source: usize) -> &'a mut Layout {
        self.sources.get_mut(source).and_then(|own| own.layout.as_mut()).unwrap_or(first)
    }

    /// What is wrong with its sources and joins, if anything.
    fn misshapen(&self, flow: &FlowSpec) -> Option<String> {
        let refuse = |text: &str| Some(format!("join `{}`: {text}", self.last.name));
        if let Some(text) = sources::misfit(&self.sources) {
            return refuse(text);
        }
        if self.sources.iter().any(|own| !own.places.is_empty()) {
            return refuse("its sources have no places for columns");
        }
        if let Err(text) = self.leaves_of_feeds() {
            return Some(text);
        }
        let (all, leaves) = (flow.source.files.len(), self.leaves());
        let end = self.sources.get(leaves).map_or(all, |own| own.first_file.min(all));
        let begins = self.sources[..leaves].iter().map(|own| own.first_file).chain([end]);
        let begins: Vec<usize> = begins.collect();
        let files = begins.windows(2).map(|own| own[1].checked_sub(own[0]));
        let files: Vec<_> = files.map(Option::unwrap_or_default).collect();
        if files.iter().all(|own| *own == files[0]) {
            return None;
        }
        let shown: Vec<_> = files.iter().map(usize::to_string).collect();
        refuse(&format!("its sources have not as many files each: {}", shown.join(", ")))
    }

    /// What of the flow cannot be together with a join, if anything.
    pub(super) fn misfit(&self, flow: &FlowSpec) -> Option<String> {
        if let Some(text) = self.misshapen(flow) {
            return Some(text);
        }
        let FlowSpec { source, memory, streams, .. } = flow;
        let files = self.files() * self.leaves();
        let is_cut = |file: usize| source.slices.iter().filter(|slice| slice.file == file).count() > 1;
        let least_blocks = streams.saturating_mul(self.leaves());
        let is_torn = |unit: &[SliceSpec]| {
            (0..flow.destinations()).any(|own| {
                let known = flow.committed_in(own);
                let is_there = |slice: &&SliceSpec| known.is_some_and(|known| known.contains_key(&slice.number));
                let mut taken = unit.iter().filter(|slice| flow.takes(own, slice.number)).peekable();
                let is_first_there = taken.peek().is_some_and(is_there);
                !taken.all(|slice| is_there(&slice) == is_first_there)
            })
        };
        let has_positions = |(number, sink): (usize, &SinkSpec)| {
            let is_joined = flow.source_of_destination(number).is_none();
            is_joined && matches!(sink, SinkSpec::Arrow { position: Some(_), .. } | SinkSpec::Locate { .. })
        };
        let text = if (0..files).any(is_cut) {
            "a file of a pair cannot be cut".to_owned()
        } else if source.files[..files].iter().any(|file| file.stream.is_some()) {
            "a pipe cannot be in a pair".to_owned()
        } else if source.generate.is_some() || !source.epochs.is_empty() {
            "generated rows and epochs cannot be in pairs".to_owned()
        } else if flow.sinks().enumerate().any(has_positions) {
            "joined rows have no positions".to_owned()
        } else if let Some(unit) = self.units(source).iter().find(|unit| is_torn(unit)) {
            format!("of the pair with slice {} one slice was committed and one was not", unit[0].number)
        } else if memory.blocks < least_blocks {
            format!("{} blocks are fewer than the {least_blocks} that {streams} streams hold", memory.blocks)
        } else {
            return None;
        };
        Some(format!("join `{}`: {text}", self.last.name))
    }
}
