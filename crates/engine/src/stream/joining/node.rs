//! A join of the flow: what comes into it, and what is known of the batch that came out of it last.

use std::ops::Range;

use headrace_transform::join::{self, MergeJoin, Side};
use headrace_types::{CoreError, ErrorKind};

use super::super::front::Front;
use super::leaf::OpenLeaf;
use crate::flow::Shared;
use crate::spec::{FlowFields, JoinSpec, MeetingSpec, RowFields};

/// What comes into a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feed {
    /// A source, by its place.
    Leaf(usize),
    /// Another join, by its place.
    Join(usize),
}

/// A join.
pub struct Node<'a> {
    pub spec: &'a MeetingSpec,
    pub join: join::JoinSpec,
    /// Left and right.
    pub feeds: [Feed; 2],
    /// Columns of the rows that meet.
    pub sides: [RowFields; 2],
    /// What the rows that come out pass before they meet others in another join.
    pub front: Option<Front<'a>>,
    /// The sources of whose rows are the ones that come out.
    pub leaves: Range<usize>,
}

impl<'a> Node<'a> {
    /// All of a flow, each behind its sides.
    ///
    /// # Errors
    /// `Specification` for joins that do not fit their rows.
    pub fn all(shared: &'a Shared, spec: &'a JoinSpec, fields: &FlowFields) -> Result<Vec<Self>, CoreError> {
        let refused = |text: String| CoreError::new(ErrorKind::Specification, text);
        let first = spec.sources.len();
        let leaves = spec.leaves_of_feeds().map_err(refused)?.split_off(first);
        let node = |((place, own), leaves): ((usize, &'a MeetingSpec), Range<usize>)| {
            let sides = own.sides.map(|feed| shared.spec.rows_into(fields, feed));
            let front = |feed: usize| Front::new(&shared.transforms, spec, feed, &shared.spec.rows_into(fields, feed));
            Ok(Node {
                spec: own,
                join: own.resolved(&sides).map_err(refused)?.0,
                feeds: own.sides.map(|feed| spec.inner_of(feed).map_or(Feed::Leaf(feed), Feed::Join)),
                sides,
                front: spec.inner_of(first + place).and_then(|_| front(first + place)),
                leaves,
            })
        };
        spec.meetings().enumerate().zip(leaves).map(node).collect()
    }

    /// The side that a feed is, if it comes into this join.
    pub fn side_of(&self, feed: Feed) -> Option<Side> {
        Side::BOTH.into_iter().find(|side| self.feeds[side.index()] == feed)
    }

    /// The join before its first row.
    pub fn open(&self) -> Result<OpenNode, CoreError> {
        let join = MergeJoin::new(self.join.clone()).map_err(|text| self.internal(&text))?;
        Ok(OpenNode { join, left: None, refused: 0 })
    }

    /// An error of the join that no row is to blame for.
    pub fn internal(&self, error: &dyn std::fmt::Display) -> CoreError {
        CoreError::new(ErrorKind::Internal, format!("join `{}`: {error}", self.spec.name))
    }
}

/// A join on its way through a unit.
pub struct OpenNode {
    pub join: MergeJoin,
    /// Of the batch that came out last the numbers of the rows that its front has left; none as long as it has left all.
    pub left: Option<Vec<u32>>,
    /// How many rows its front has refused.
    pub refused: u64,
}

impl OpenNode {
    /// The number, among those that came out, of a row that goes on.
    fn number(&self, row: u32) -> u32 {
        self.left.as_ref().map_or(row, |left| left[row as usize])
    }
}

/// The source of a row that comes out of a feed, and its number in the batch of the parser there: no other row that comes out there stands
/// for it. `nodes`, `opened`: those of the feed, and before it.
pub fn stands_for(
    nodes: &[Node<'_>],
    opened: &[OpenNode],
    leaves: &[OpenLeaf<'_>],
    feed: Feed,
    row: u32,
) -> (usize, u32) {
    let (mut feed, mut row) = (feed, row);
    loop {
        match feed {
            Feed::Leaf(leaf) => return (leaf, leaves[leaf].at_hand.number(row)),
            Feed::Join(node) => (feed, row) = side_of_row(nodes, opened, node, opened[node].number(row)),
        }
    }
}

/// The same of a row that comes out of a join, in front of what stands behind that.
pub fn behind_join(
    nodes: &[Node<'_>],
    opened: &[OpenNode],
    leaves: &[OpenLeaf<'_>],
    node: usize,
    row: u32,
) -> (usize, u32) {
    let (feed, row) = side_of_row(nodes, opened, node, row);
    stands_for(nodes, opened, leaves, feed, row)
}

fn side_of_row(nodes: &[Node<'_>], opened: &[OpenNode], node: usize, row: u32) -> (Feed, u32) {
    let (side, row) = opened[node].join.stands_for(row as usize);
    (nodes[node].feeds[side.index()], row)
}
