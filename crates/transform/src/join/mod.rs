//! Merge join: rows of two inputs that are in the order of their keys meet, whatever the size of the inputs.
//!
//! ```text
//! MergeJoin::step -> Needs(side): push a batch of it, or end it -> step -> Rows(batch) -> ... -> Ended
//! ```
//!
//! At most one batch of each side is held. What comes out, and in which order, does not depend on where batches end.
//!
//! | file | job |
//! | --- | --- |
//! | `spec`, `error` | what is joined, what can be wrong with the order of an input |
//! | `codes` | keys of a batch as values that can be compared |
//! | `input` | the rows of one side that are at hand; proves their order |
//! | `range` | from which to which key its rows go |
//! | `pairs` | which rows meet |
//! | `gather` | the columns of pairs |
//!
//! Keys ascend: numbers, days and times by value, texts and bytes by their bytes, composites by their first column, then by
//! their second one. A left key comes once, a right one any number of times. A row of which a key column is NULL has no place in that
//! order: it may stand anywhere, and matches nothing.

mod codes;
mod error;
mod gather;
mod input;
mod pairs;
mod range;
mod spec;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

pub use error::{Disorder, JoinError, Reason};
pub use input::InputCounts;
pub use range::{CodeRange, KeyRange};
pub use spec::{JoinKey, JoinKind, JoinSpec, OutputColumn, Side};

use crate::lookup::keys::KeyPlan;
use gather::Gather;
use input::Input;
use pairs::Pairs;

/// Rows of a batch that comes out, at most.
const MOST_ROWS: usize = 1 << 16;

/// A join on its way through two inputs.
pub struct MergeJoin {
    kind: JoinKind,
    /// Left, right.
    plans: [KeyPlan; 2],
    inputs: [Input; 2],
    /// Whether the present left row has met a right one.
    is_matched: bool,
    pairs: Pairs,
    gather: Gather,
}

/// What comes next.
#[derive(Debug)]
pub enum Step {
    /// The rows of a side that were pushed have gone their way: more of them, or that side's end.
    Needs(Side),
    /// Joined rows, at least one.
    Rows(RecordBatch),
    /// Both inputs have ended, and all rows have come out.
    Ended,
}

impl MergeJoin {
    /// A join before its first row.
    ///
    /// # Errors
    /// A sentence about key types that cannot be compared.
    pub fn new(spec: JoinSpec) -> Result<Self, String> {
        let types: Vec<_> = spec.keys.iter().map(|key| [key.left_type, key.right_type]).collect();
        let [left, right] = [0, 1].map(|side| spec.keys.iter().map(|key| key.columns()[side]).collect::<Vec<_>>());
        Ok(MergeJoin {
            kind: spec.kind,
            plans: KeyPlan::of_both(&types)?,
            inputs: [Input::new(Side::Left, left), Input::new(Side::Right, right)],
            is_matched: false,
            pairs: Pairs::default(),
            gather: Gather::new(spec.columns, spec.schema),
        })
    }

    /// The next rows of a side that is needed. It may be empty.
    ///
    /// # Errors
    /// The first row of the batch that is against the order of its side; a batch that is not of the specification, or was
    /// not asked for.
    pub fn push(&mut self, side: Side, batch: RecordBatch) -> Result<(), JoinError> {
        let before = self.counts(side).rows;
        self.push_numbered(side, batch, &|row| before + row as u64)
    }

    /// The same of rows that the caller has numbers of: errors tell these.
    ///
    /// # Errors
    /// Those of [`MergeJoin::push`].
    pub fn push_numbered(
        &mut self,
        side: Side,
        batch: RecordBatch,
        number: &dyn Fn(usize) -> u64,
    ) -> Result<(), JoinError> {
        self.inputs[side.index()].push(&self.plans[side.index()], batch, number)
    }

    /// Says that a side has no more rows.
    pub fn end(&mut self, side: Side) {
        self.inputs[side.index()].end();
    }

    /// Joins as far as the rows at hand allow.
    ///
    /// # Errors
    /// Those of Arrow, for batches of other columns.
    pub fn step(&mut self) -> Result<Step, ArrowError> {
        let [left, right] = &mut self.inputs;
        self.pairs.clear();
        pairs::merge(self.kind, left, right, &mut self.is_matched, &mut self.pairs, MOST_ROWS);
        if !self.pairs.is_empty() {
            return self.gather.rows(left, right, &self.pairs).map(Step::Rows);
        }
        self.inputs.iter_mut().for_each(Input::release);
        let needed = self.inputs.iter().find(|input| input.is_needed());
        Ok(needed.map_or(Step::Ended, |input| Step::Needs(input.side())))
    }

    /// Of a row of [`Step::Rows`], until the next step, the row that it stands for, and its number in the batch of its side: the
    /// right one, or the left one where there is none. No other row that comes out stands for it.
    pub fn stands_for(&self, row: usize) -> (Side, u32) {
        match self.pairs.right[row] {
            pairs::NO_ROW => (Side::Left, self.pairs.left[row]),
            right => (Side::Right, right),
        }
    }

    /// The keys of both sides so far; none as long as no row had one.
    pub fn range(&self) -> Option<KeyRange> {
        let [left, right] = Side::BOTH.map(|side| self.inputs[side.index()].range());
        match (left, right) {
            (Some(left), Some(right)) => Some(left.with(right)),
            (left, right) => left.or(right),
        }
    }

    /// What has become of the rows of a side so far.
    pub fn counts(&self, side: Side) -> InputCounts {
        self.inputs[side.index()].counts()
    }
}
