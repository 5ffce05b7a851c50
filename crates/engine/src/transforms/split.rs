//! A split in a stream: a query says of each row which output it goes to.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::FilterBuilder;
use headrace_types::{ColumnType, CoreError, ErrorKind, RowColumn, RowSchema};

use super::query::Query;
use super::refused::Remaining;
use super::windows::Windows;
use super::{Given, Output};
use crate::report::TransformCounts;
use crate::spec::{ComputedColumn, QuerySpec, SplitSpec};

/// The column behind all others that its query computes; rows have none of that name outside.
const OUTPUT: &str = "__headrace_output";

/// A split of rows, which stay as they are.
pub struct Split {
    name: String,
    query: Query,
    outputs: usize,
    /// Columns of the rows.
    columns: Vec<usize>,
}

impl Split {
    /// For rows of these columns. `limit`: as many rejects do not fail the flow.
    ///
    /// # Errors
    /// A sentence about columns that do not belong together.
    pub fn new(
        (place, name): (usize, &str),
        spec: &SplitSpec,
        rows: &RowSchema,
        limit: Option<u64>,
    ) -> Result<Self, String> {
        let passing = |own: &RowColumn| ComputedColumn {
            name: own.name.clone(),
            column_type: own.column_type,
            nullable: own.nullable,
            from: Some(own.name.clone()),
        };
        let output = RowColumn { name: OUTPUT.to_owned(), column_type: ColumnType::Int32, nullable: false };
        let computed = ComputedColumn { from: None, ..passing(&output) };
        let columns = rows.columns().iter().map(passing).chain([computed]).collect();
        let mut behind = rows.clone();
        behind.add(output)?;
        let query = QuerySpec { number: spec.number.clone(), columns };
        Ok(Split {
            name: name.to_owned(),
            query: Query::new((place, name), &query, rows, &behind, limit)?,
            outputs: spec.outputs,
            columns: (0..rows.columns().len()).collect(),
        })
    }

    /// The rows of each output that has some.
    ///
    /// # Errors
    /// Those of queries.
    pub fn apply(
        &self,
        batch: &RecordBatch,
        windows: &Windows,
        counts: &mut TransformCounts,
        mut remaining: Remaining,
    ) -> Result<Given, CoreError> {
        let matched = counts.matched;
        let Some(computed) = self.query.apply(batch, windows, counts, &mut remaining)? else {
            return Ok(Given { outputs: Vec::new(), refused: remaining });
        };
        let internal = |what: &dyn std::fmt::Display| {
            CoreError::new(ErrorKind::Internal, format!("transform `{}`: {what}", self.name))
        };
        let rows = computed.project(&self.columns).map_err(|error| internal(&error))?;
        let numbers = computed.column(self.columns.len()).as_primitive::<Int32Type>();
        let own = |row: usize| usize::try_from(numbers.value(row)).ok().filter(|own| *own < self.outputs);
        let outputs: Option<Vec<usize>> = (0..rows.num_rows()).map(own).collect();
        let outputs = outputs.ok_or_else(|| internal(&"a row goes to an output that there is not"))?;
        counts.matched = matched;
        counts.outputs.resize(self.outputs - 1, 0);
        let mut given = Vec::new();
        for output in 0..self.outputs {
            let keep: Vec<bool> = outputs.iter().map(|own| *own == output).collect();
            let count = keep.iter().filter(|keep| **keep).count();
            match output.checked_sub(1) {
                None => counts.matched += count as u64,
                Some(other) => counts.outputs[other] += count as u64,
            }
            if count == 0 {
                continue;
            }
            let remaining = remaining.part(&keep);
            let batch = if count == rows.num_rows() {
                rows.clone()
            } else {
                let filter = FilterBuilder::new(&BooleanArray::from(keep)).optimize().build();
                filter.filter_record_batch(&rows).map_err(|error| internal(&error))?
            };
            given.push(Output { output, batch, remaining });
        }
        Ok(Given { outputs: given, refused: remaining })
    }
}
