//! Rows that have gone different ways go one way on again, in the order in which they came.

use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{ArrowError, FieldRef, SchemaRef};
use arrow_select::interleave::interleave;
use headrace_types::RowSchema;

use super::refused::{Order, Remaining};
use super::{Arrival, Given, Output};
use crate::report::TransformCounts;
use crate::spec::ReunionSpec;

/// The columns of the rows that go on, and where each input has them.
pub struct Reunion {
    places: Vec<Vec<Option<usize>>>,
    schema: SchemaRef,
}

impl Reunion {
    /// For rows of `inputs`, which are rows of `behind` then.
    pub fn new(spec: &ReunionSpec, inputs: &[&RowSchema], behind: &RowSchema) -> Self {
        let places = |(rows, from): (&&RowSchema, &Vec<Option<String>>)| {
            from.iter().map(|from| rows.index_of(from.as_ref()?)).collect()
        };
        Reunion { places: inputs.iter().zip(&spec.from).map(places).collect(), schema: behind.arrow() }
    }

    /// All rows that came of one batch of the parser, which are one batch again.
    ///
    /// # Errors
    /// Those of Arrow, for batches of other rows.
    pub fn apply(&self, arrived: Vec<Arrival>, counts: &mut TransformCounts) -> Result<Given, ArrowError> {
        let rows: usize = arrived.iter().map(|own| own.batch.num_rows()).sum();
        counts.rows += rows as u64;
        counts.matched += rows as u64;
        let parts = arrived.iter().map(|own| self.columns(own.input, &own.batch)).collect::<Result<Vec<_>, _>>()?;
        let (remaining, order) =
            Remaining::together(arrived.into_iter().map(|own| (own.remaining, own.batch.num_rows())));
        let columns = match order {
            Order::Only(part) => parts.into_iter().nth(part).unwrap_or_default(),
            Order::Mixed(order) => (0..self.schema.fields().len())
                .map(|column| interleave(&parts.iter().map(|own| own[column].as_ref()).collect::<Vec<_>>(), &order))
                .collect::<Result<_, _>>()?,
        };
        let batch = RecordBatch::try_new(self.schema.clone(), columns)?;
        Ok(Given { outputs: vec![Output { output: 0, batch, remaining }], refused: Remaining::default() })
    }

    /// The rows of an input with the columns of all.
    fn columns(&self, input: usize, batch: &RecordBatch) -> Result<Vec<ArrayRef>, ArrowError> {
        let places = self.places.get(input).map(Vec::as_slice).unwrap_or_default();
        let column = |(field, place): (&FieldRef, &Option<usize>)| match place {
            None => Ok(new_null_array(field.data_type(), batch.num_rows())),
            Some(place) => {
                let lacks = || ArrowError::InvalidArgumentError(format!("input {input} has no column {place}"));
                batch.columns().get(*place).cloned().ok_or_else(lacks)
            }
        };
        self.schema.fields().iter().zip(places).map(column).collect()
    }
}
