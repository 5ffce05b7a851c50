//! Rows against the order of a join, as errors of the flow's user.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use headrace_transform::join::{Disorder, JoinError, Reason};
use headrace_types::{CoreError, ErrorKind, Location};

use super::Joining;
use super::node::Feed;
use crate::flow::Flow;
use crate::row_position::RowPosition;
use crate::sink::locate::LocateSink;
use crate::spec::{FlowSpec, KeepRejects, RejectSpec, SinkSpec, SourceSpec};

impl Joining<'_> {
    /// Why a join does not take rows, which have their positions as numbers.
    pub(super) fn refused(&self, node: usize, error: JoinError) -> CoreError {
        let JoinError::Disorder(disorder) = error else { return self.nodes[node].internal(&error) };
        match self.places([disorder.row, disorder.previous_row].map(RowPosition::of_number)) {
            Ok(places) => self.against_order(node, &disorder, places),
            Err(error) => error,
        }
    }

    fn against_order(&self, node: usize, disorder: &Disorder, [at, before]: [Option<Location>; 2]) -> CoreError {
        let Disorder { side, reason, key, previous_key, .. } = disorder;
        let own = &self.nodes[node];
        let (name, feed) = (&own.spec.name, own.feeds[side.index()]);
        let of = self.name_of(feed);
        let [key, previous_key] = [key, previous_key].map(|key| self.shown(node, *side, key));
        let is_here = |place: &Location| at.as_ref().is_none_or(|at| at.file == place.file);
        let shown = |place: Location| {
            let row = format!("row {}", place.row?);
            Some(if is_here(&place) { row } else { format!("{row} of {}", place.file) })
        };
        let before = before.and_then(shown).unwrap_or_else(|| "the row before".to_owned());
        let (what, found, expected) = match reason {
            Reason::Descends => (
                format!("rows of {of} are not in the order that join `{name}` needs"),
                format!("{key} behind {previous_key} of {before}"),
                "keys that ascend: numbers and times by value, texts by the bytes of their UTF-8",
            ),
            Reason::Repeats => (
                format!("two rows of {of}, the left side of join `{name}`, have one key"),
                format!("{key}, as {before}"),
                "each key once on the left side",
            ),
        };
        let hint = match (reason, feed) {
            (Reason::Descends, Feed::Leaf(_)) => {
                "Sort the file by the columns of `on` (texts as UTF-8, with LC_ALL=C), or use a `lookup`."
            }
            (Reason::Repeats, Feed::Leaf(_)) => {
                "Leave one of the rows out of the file, or let the other source be the left side."
            }
            (Reason::Descends, Feed::Join(_)) => {
                "Rows of a join are in the order of its key: join them by the same key, or by the first columns of it."
            }
            (Reason::Repeats, Feed::Join(_)) => "Let the rows of the join be the right side: there keys may repeat.",
        };
        let error = CoreError::new(ErrorKind::Source, what).found(found).expected(expected).hint(hint);
        at.into_iter().fold(error, CoreError::at)
    }

    /// Where two rows stand.
    fn places(&self, [one, other]: [RowPosition; 2]) -> Result<[Option<Location>; 2], CoreError> {
        if one.slice() != other.slice() {
            return Ok([
                self.places_in_slice(&[one])?.pop().flatten(),
                self.places_in_slice(&[other])?.pop().flatten(),
            ]);
        }
        let mut places = self.places_in_slice(&[one, other])?.into_iter();
        Ok([places.next().flatten(), places.next().flatten()])
    }

    /// Where rows of a slice stand, counted among those that became rows: the file is read once more.
    fn places_in_slice(&self, rows: &[RowPosition]) -> Result<Vec<Option<Location>>, CoreError> {
        let spec = &self.shared.spec;
        let is_its = |number: u32| rows.first().is_some_and(|row| row.slice() == number);
        let Some(slice) = spec.source.slices.iter().find(|slice| is_its(slice.number)) else { return Ok(Vec::new()) };
        let source = SourceSpec { committed: HashMap::new(), left_out: HashSet::new(), ..spec.source.clone() };
        let layout = spec.layout_of(slice.file).clone();
        let mut alone = FlowSpec {
            sink: SinkSpec::Locate { rows: rows.to_vec(), ended: Vec::new() },
            rejects: RejectSpec { keep: KeepRejects::Examples, ..RejectSpec::default() },
            ..FlowSpec::plain(&spec.name, layout, source, 1, spec.memory.clone())
        };
        alone.leave_out_unwanted();
        let sink = LocateSink::new(&Arc::new(alone.clone()), rows, &[], None, Arc::default());
        let outcome = &self.shared.outcome;
        let report = Flow::into_sink(alone, Arc::new(sink))?.run("the flow was stopped", &mut || outcome.stopped())?;
        report.error.map_or_else(|| Ok(report.sink.places.unwrap_or_default()), Err)
    }
}
