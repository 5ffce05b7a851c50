//! A lookup in a stream: rows find another row by their keys, and get columns of it.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::filter::FilterBuilder;
use headrace_types::{RowSchema, Rule};

use super::refused::{Refusal, Remaining};
use super::{Given, Output};
use crate::lookup::Lookup;
use crate::report::TransformCounts;
use crate::spec::{NoMatch, ProbeSpec};

/// A lookup, and the columns of the rows that it is for.
pub struct Probe {
    lookup: Arc<Lookup>,
    keys: Vec<usize>,
    /// Of the rows behind it.
    schema: SchemaRef,
    no_match: Misses,
    /// Added columns that cannot be NULL although the lookup has NULLs, and why rows that find one are refused.
    not_null: Vec<(usize, Refusal)>,
}

/// What becomes of rows that find nothing.
enum Misses {
    GetDefaults,
    AreRefused(Refusal),
    GoToOutput,
}

impl Probe {
    /// For rows of `before`, which are rows of `behind` then. `fields`: of each column of `before`, the one in front of the transforms
    /// that it is.
    ///
    /// # Errors
    /// A sentence about an index that does not fit the rows.
    pub fn new(
        name: &str,
        spec: &ProbeSpec,
        before: &RowSchema,
        fields: &[Option<usize>],
        behind: &RowSchema,
        lookup: Arc<Lookup>,
    ) -> Result<Self, String> {
        let keys: Vec<_> = spec.keys.iter().filter_map(|key| before.index_of(key)).collect();
        let types: Vec<_> = keys.iter().map(|&key| before.columns()[key].column_type).collect();
        lookup.fits(&types, spec)?;
        let no_match = || {
            let by = if spec.keys.len() > 1 { format!(" by {}", listed(&spec.keys)) } else { String::new() };
            Refusal {
                // A key that was made or added stands in no field.
                column: keys.first().and_then(|&key| fields[key]),
                rule: Rule::NoMatch,
                note: Some(format!("lookup `{name}`{by}").into()),
            }
        };
        let not_null = |place: usize| {
            let column = &spec.added[place].name;
            let note = format!("column `{column}`: lookup `{name}` has found NULL");
            (place, Refusal { column: None, rule: Rule::NullNotAllowed, note: Some(note.into()) })
        };
        let nulls = (0..spec.added.len()).filter(|&place| !spec.added[place].nullable && lookup.has_null(place));
        Ok(Probe {
            no_match: match spec.no_match {
                NoMatch::Default => Misses::GetDefaults,
                NoMatch::Reject => Misses::AreRefused(no_match()),
                NoMatch::Output => Misses::GoToOutput,
            },
            not_null: nulls.map(not_null).collect(),
            schema: behind.arrow(),
            lookup,
            keys,
        })
    }

    /// Whether some rows may not go on.
    pub fn drops_rows(&self) -> bool {
        !matches!(self.no_match, Misses::GetDefaults) || !self.not_null.is_empty()
    }

    /// The rows with their added columns, and by output 1 those that find nothing, if they go there.
    ///
    /// # Errors
    /// Those of Arrow, for batches of other rows.
    pub fn apply(
        &self,
        batch: &RecordBatch,
        counts: &mut TransformCounts,
        mut remaining: Remaining,
    ) -> Result<Given, ArrowError> {
        let keys: Vec<ArrayRef> = self.keys.iter().map(|&key| batch.column(key).clone()).collect();
        let index = self.lookup.index();
        let found = index.probe(&keys).map_err(|wrong| ArrowError::ExternalError(Box::new(wrong)))?;
        let added = index.gather(&found)?;
        let rows = batch.num_rows();
        let missed = rows - found.matched();
        counts.rows += rows as u64;
        counts.null_keys += found.null_keys() as u64;
        let mut given = Given::default();
        let mut keep = vec![true; rows];
        let mut left = rows;
        let gets_defaults = matches!(self.no_match, Misses::GetDefaults);
        if gets_defaults {
            counts.defaulted += missed as u64;
        } else if missed > 0 {
            keep.iter_mut().enumerate().for_each(|(row, keep)| *keep = found.is_match(row));
            left -= missed;
        }
        if matches!(self.no_match, Misses::GoToOutput) {
            counts.outputs.resize(1, 0);
            counts.outputs[0] += missed as u64;
            if missed > 0 {
                let misses: Vec<bool> = keep.iter().map(|keep| !keep).collect();
                let remaining = remaining.part(&misses);
                let filter = FilterBuilder::new(&BooleanArray::from(misses)).optimize().build();
                given.outputs.push(Output { output: 1, batch: filter.filter_record_batch(batch)?, remaining });
            }
        }
        if let Misses::AreRefused(refusal) = &self.no_match
            && missed > 0
        {
            counts.rejected += missed as u64;
            remaining.refuse((0..rows as u32).filter(|&row| !keep[row as usize]), refusal);
        }
        for (place, refusal) in self.not_null.iter().filter(|(place, _)| added[*place].null_count() > 0) {
            let bad: Vec<u32> =
                (0..rows).filter(|&row| keep[row] && added[*place].is_null(row)).map(|row| row as u32).collect();
            bad.iter().for_each(|&row| keep[row as usize] = false);
            counts.rejected += bad.len() as u64;
            left -= bad.len();
            remaining.refuse(bad, refusal);
        }
        counts.matched += (left - if gets_defaults { missed } else { 0 }) as u64;
        if left == 0 && rows > 0 {
            given.refused = remaining;
            return Ok(given);
        }
        let mut columns = [batch.columns(), &added[..]].concat();
        if left < rows {
            remaining.keep(&keep);
            let filter = FilterBuilder::new(&BooleanArray::from(keep)).optimize().build();
            columns = columns.iter().map(|column| filter.filter(column)).collect::<Result<Vec<_>, _>>()?;
        }
        let batch = RecordBatch::try_new(self.schema.clone(), columns)?;
        given.outputs.push(Output { output: 0, batch, remaining });
        Ok(given)
    }
}

/// "`a`, `b` and `c`".
fn listed(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}
