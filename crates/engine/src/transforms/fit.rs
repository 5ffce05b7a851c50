//! The end of a way: values that the destination cannot hold. What is read as the layout says may be longer than its column, or NULL.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::filter::FilterBuilder;
use headrace_types::{ColumnType, RowColumn, RowSchema, Rule};

use super::refused::{Refusal, Remaining};
use crate::spec::RowFields;

/// What has to be looked at.
pub struct Fit {
    checks: Vec<Check>,
    schema: SchemaRef,
}

struct Check {
    column: usize,
    /// How long a text may be, and what is said of longer ones.
    longest: Option<(u32, Refusal)>,
    /// What is said of NULL, where it may not be.
    null: Option<Refusal>,
}

impl Fit {
    /// Of columns of the rows, as `destination` holds them; `behind`: their columns then.
    ///
    /// # Errors
    /// A sentence about a column that the rows do not have, or that is of another kind.
    pub fn new(
        destination: &str,
        columns: &[RowColumn],
        before: &RowFields,
        behind: &RowSchema,
    ) -> Result<Self, String> {
        let check = |own: &RowColumn| {
            let name = &own.name;
            let column = before.schema.index_of(name).ok_or_else(|| format!("no column `{name}`"))?;
            let known = &before.schema.columns()[column];
            if known.column_type.arrow_type() != own.column_type.arrow_type() {
                return Err(format!("column `{name}` is of another type than that which fits"));
            }
            let field = before.fields[column];
            // Of a column that stands in no file the name is a part of what is said.
            let refusal = |rule: Rule, of_field: String, otherwise: String| {
                let note = if field.is_some() { of_field } else { otherwise };
                Refusal { column: field, rule, note: Some(note.into()) }
            };
            let longest = match own.column_type {
                ColumnType::Varchar { length } if known.column_type != own.column_type => {
                    let what = format!("{} of destination `{destination}`", own.column_type);
                    let otherwise = format!("a value for column `{name}` is longer than {what}");
                    Some((length, refusal(Rule::TooLong, what, otherwise)))
                }
                _ => None,
            };
            let is_not_null = format!("is NOT NULL in destination `{destination}`");
            let otherwise = format!("column `{name}`, which {is_not_null}");
            let null = refusal(Rule::NullNotAllowed, is_not_null, otherwise);
            Ok(Check { column, longest, null: (known.nullable && !own.nullable).then_some(null) })
        };
        let checks = columns.iter().map(check).collect::<Result<Vec<_>, _>>()?;
        Ok(Fit { checks, schema: behind.arrow() })
    }

    /// The rows that fit; none if none is left. The others are refused.
    ///
    /// # Errors
    /// Those of Arrow, for batches of other rows.
    pub fn apply(&self, batch: &RecordBatch, remaining: &mut Remaining) -> Result<Option<RecordBatch>, ArrowError> {
        let mut good = vec![true; batch.num_rows()];
        for Check { column, longest, null } in &self.checks {
            let values = batch.column(*column);
            let mut refuse = |rows: Vec<usize>, refusal: &Refusal| {
                let mut is_first = |row: &usize| std::mem::replace(&mut good[*row], false);
                let rows: Vec<u32> = rows.into_iter().filter(|row| is_first(row)).map(|row| row as u32).collect();
                if !rows.is_empty() {
                    remaining.refuse(rows, refusal);
                }
            };
            if let Some(refusal) = null.as_ref().filter(|_| values.null_count() > 0) {
                refuse(null_rows(values), refusal);
            }
            if let Some((length, refusal)) = longest {
                refuse(long_rows(values, *length), refusal);
            }
        }
        let kept = good.iter().filter(|good| **good).count();
        if kept == 0 && batch.num_rows() > 0 {
            return Ok(None);
        }
        let columns = if kept == batch.num_rows() {
            batch.columns().to_vec()
        } else {
            remaining.keep(&good);
            let filter = FilterBuilder::new(&BooleanArray::from(good)).optimize().build();
            batch.columns().iter().map(|column| filter.filter(column)).collect::<Result<_, _>>()?
        };
        RecordBatch::try_new(self.schema.clone(), columns).map(Some)
    }
}

/// Rows without a value.
pub fn null_rows(column: &ArrayRef) -> Vec<usize> {
    (0..column.len()).filter(|&row| column.is_null(row)).collect()
}

/// Rows with a text of more than so many characters.
pub fn long_rows(column: &ArrayRef, length: u32) -> Vec<usize> {
    let Some(texts) = column.as_string_view_opt() else { return Vec::new() };
    // No text has more code points than bytes.
    let is_long = |text: &str| text.len() > length as usize && text.chars().count() > length as usize;
    texts.iter().enumerate().filter(|(_, text)| text.is_some_and(is_long)).map(|(row, _)| row).collect()
}
