//! Rows that have gone different ways go one way on again.

use headrace_types::{RowColumn, RowSchema};
use serde::Deserialize;

use super::RowFields;

/// What becomes of the rows of all inputs of a transform. No row comes by two of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReunionSpec {
    /// Columns of the rows that go on, in their order.
    pub columns: Vec<RowColumn>,
    /// For each input and each of these columns what it is called there; none if its rows lack it.
    pub from: Vec<Vec<Option<String>>>,
}

impl ReunionSpec {
    /// The columns of the rows behind it; a sentence if it does not fit the rows of its inputs.
    pub fn behind(&self, inputs: &[&RowFields]) -> Result<RowFields, String> {
        if inputs.len() != self.from.len() || inputs.len() < 2 {
            return Err(format!("it has {} inputs, and columns of {}", inputs.len(), self.from.len()));
        }
        let schema = RowSchema::of_query(self.columns.iter().cloned())?;
        for (number, (rows, from)) in inputs.iter().zip(&self.from).enumerate() {
            if from.len() != self.columns.len() {
                return Err(format!("input {number} has not a name for each column"));
            }
            for (column, from) in self.columns.iter().zip(from) {
                let found = from.as_ref().map(|from| rows.schema.index_of(from).map(|own| &rows.schema.columns()[own]));
                let fits = match found {
                    None => column.nullable,
                    Some(None) => false,
                    Some(Some(found)) => {
                        found.column_type.arrow_type() == column.column_type.arrow_type()
                            && (column.nullable || !found.nullable)
                    }
                };
                if !fits {
                    let column = &column.name;
                    return Err(format!("column `{column}` does not fit what input {number} has for it"));
                }
            }
        }
        let fields = (0..self.columns.len()).map(|column| self.field(column, inputs)).collect();
        Ok(RowFields { schema, fields })
    }

    /// The column in front of all transforms that a column is, if it is the same one in all inputs.
    fn field(&self, column: usize, inputs: &[&RowFields]) -> Option<usize> {
        let mut fields = inputs.iter().zip(&self.from).map(|(rows, from)| {
            let place = rows.schema.index_of(from.get(column)?.as_ref()?)?;
            rows.fields.get(place).copied().flatten()
        });
        let first = fields.next().flatten();
        first.filter(|_| fields.all(|own| own == first))
    }
}
