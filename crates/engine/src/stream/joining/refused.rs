//! Rows that do not go on behind a join: each is a reject of the file in which the row stands that it stands for.

use std::sync::Arc;

use headrace_transform::join::Side;
use headrace_types::Rule;

use super::node::{Feed, behind_join};
use super::{Joining, Opened};
use crate::transforms::{Refusal, Remaining};

/// What is said of rows because of a column that they do not have in their file: made once, and not for each of them.
pub struct NoteOfOther {
    rule: Rule,
    /// What is said of the column itself.
    note: Option<Arc<str>>,
    /// The first join that the column has come through, and its index behind that.
    place: (usize, usize),
    text: Arc<str>,
}

/// Where a column behind a join comes from.
struct Origin {
    /// The first join that it has come through, and its index behind that.
    place: (usize, usize),
    /// The source, and the column of its layout; none if it stands in no file.
    field: Option<(usize, usize)>,
}

impl Joining<'_> {
    /// Notes which rows of a batch behind a join were refused; how many they are.
    pub(super) fn refuse(&mut self, node: usize, remaining: Remaining, opened: &mut Opened<'_>) -> u64 {
        let shared = self.shared;
        let Opened { nodes, leaves, .. } = opened;
        for (number, refuser) in remaining.refusers() {
            let (leaf, _) = behind_join(&self.nodes, nodes, leaves, node, number);
            for (way, refused) in leaves[leaf].refused_on_ways.iter_mut().enumerate() {
                *refused += u64::from(shared.transforms.is_on_way(refuser, way));
            }
        }
        let refusals = remaining.into_refusals();
        let count = refusals.len() as u64;
        for (number, refusal, by) in refusals {
            let (leaf, row) = behind_join(&self.nodes, nodes, leaves, node, number);
            let Some(progress) = &leaves[leaf].progress else { continue };
            let lacking = shared.lacking(&by, progress.slice().number);
            let (column, note) = self.own_column(node, leaf, &refusal);
            let file = &progress.file;
            let refused = Refusal { column, note, ..refusal }.of_row(row, lacking, |column| Some(file.field(column)));
            leaves[leaf].at_hand.refused.push(refused);
        }
        count
    }

    /// The column of a source that is to blame, and what is said beside that. What is wrong may stand in the file of another one.
    fn own_column(&mut self, node: usize, leaf: usize, refusal: &Refusal) -> (Option<usize>, Option<Arc<str>>) {
        let origin = refusal.column.and_then(|column| self.origin(node, column));
        match origin {
            None => (None, refusal.note.clone()),
            Some(Origin { field: Some((source, column)), .. }) if source == leaf => {
                (Some(column), refusal.note.clone())
            }
            Some(Origin { place, .. }) => (None, Some(self.note_of_other(refusal, place))),
        }
    }

    fn origin(&self, mut node: usize, mut column: usize) -> Option<Origin> {
        loop {
            let own = self.nodes.get(node)?;
            let found = own.join.columns.get(column)?;
            let side = found.side.index();
            let field = own.sides[side].fields.get(found.column).copied().flatten();
            match (own.feeds[side], field) {
                (Feed::Join(inner), Some(behind)) => (node, column) = (inner, behind),
                (Feed::Leaf(leaf), Some(field)) => {
                    return Some(Origin { place: (node, column), field: Some((leaf, field)) });
                }
                (_, None) => return Some(Origin { place: (node, column), field: None }),
            }
        }
    }

    /// What is said of rows because of a column that other ones have, or that stands in no file.
    fn note_of_other(&mut self, refusal: &Refusal, place: (usize, usize)) -> Arc<str> {
        let &Refusal { rule, ref note, .. } = refusal;
        let is_known = |known: &&NoteOfOther| known.place == place && known.rule == rule && known.note == *note;
        if let Some(known) = self.notes.iter().find(is_known) {
            return known.text.clone();
        }
        let (node, column) = place;
        let own = &self.nodes[node];
        let of = own.spec.columns.get(column).map_or_else(String::new, |named| {
            let feed = own.feeds[Side::from(named.side).index()];
            format!("`{}` of {}", named.column, self.name_of(feed))
        });
        let text = Refusal { column: None, rule, note: note.clone() }.elsewhere(&of).note.unwrap_or_default();
        self.notes.push(NoteOfOther { rule, note: note.clone(), place, text: text.clone() });
        text
    }

    /// The name of what comes into a join, for messages.
    pub(super) fn name_of(&self, feed: Feed) -> String {
        match feed {
            Feed::Leaf(leaf) => format!("`{}`", self.spec.sources[leaf].name),
            Feed::Join(node) => format!("join `{}`", self.nodes[node].spec.name),
        }
    }
}
