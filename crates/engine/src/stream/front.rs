//! What the rows of a source, or of a join, pass before they meet those of the other side of a join.

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::take::take;
use headrace_types::{CoreError, ErrorKind};

use super::reader::{Counts, InFront, Rows};
use crate::spec::{JoinSpec, RowFields};
use crate::transforms::{Remaining, Transforms};

/// The transforms in front of a feed, and the columns that go past them: places of rows are none of the columns of a query.
pub struct Front<'a> {
    transforms: &'a Transforms,
    /// How many columns, the last ones.
    beside: usize,
    /// Of the rows behind, with these columns.
    schema: SchemaRef,
}

impl<'a> Front<'a> {
    /// That of a feed of a join, if there is anything. `behind`: the rows that meet others.
    pub fn new(transforms: &'a Transforms, join: &JoinSpec, feed: usize, behind: &RowFields) -> Option<Self> {
        let transforms = transforms.front(feed)?;
        Some(Front { transforms, beside: join.beside_of(feed), schema: behind.schema.arrow() })
    }

    /// The rows of a batch that are left to meet others, and those that go to destinations past the join. `remaining` is told
    /// of the others.
    ///
    /// # Errors
    /// Those of [`Rows::place_in_front`].
    pub fn apply(
        &self,
        batch: RecordBatch,
        counts: Counts<'_>,
        remaining: &mut Remaining,
        rows: &mut dyn Rows,
    ) -> Result<InFront, CoreError> {
        if self.beside == 0 {
            return rows.place_in_front(self.transforms, batch, counts, remaining);
        }
        let internal =
            |error: ArrowError| CoreError::new(ErrorKind::Internal, format!("columns beside transforms: {error}"));
        let at = batch.num_columns().saturating_sub(self.beside);
        let [own, beside] = [0..at, at..batch.num_columns()].map(|columns| batch.project(&columns.collect::<Vec<_>>()));
        let (own, beside) = (own.map_err(internal)?, beside.map_err(internal)?);
        let InFront { met, placed } = rows.place_in_front(self.transforms, own, counts, remaining)?;
        let Some(left) = met else { return Ok(InFront { met: None, placed }) };
        let numbers = remaining.numbers().map(|numbers| UInt32Array::from(numbers.to_vec()));
        let part = |column: &ArrayRef| match &numbers {
            Some(numbers) => take(column, numbers, None),
            None => Ok(column.clone()),
        };
        let beside = beside.columns().iter().map(part).collect::<Result<Vec<_>, _>>().map_err(internal)?;
        let columns = [left.columns(), &beside].concat();
        let met = RecordBatch::try_new(self.schema.clone(), columns).map_err(internal)?;
        Ok(InFront { met: Some(met), placed })
    }
}
