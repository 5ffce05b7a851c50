//! A lookup in a stream: rows find another row by their keys, and get columns of it.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::filter::FilterBuilder;
use headrace_transform::lookup::Probed;
use headrace_types::{RowSchema, Rule};

use super::refused::{Refusal, Remaining};
use crate::lookup::Lookup;
use crate::report::TransformCounts;
use crate::spec::{NoMatch, ProbeSpec};

/// A lookup, and the columns of the rows that it is for.
pub struct Probe {
    lookup: Arc<Lookup>,
    keys: Vec<usize>,
    /// Of the rows behind it.
    schema: SchemaRef,
    /// Why rows that find nothing are refused; none if they get defaults.
    no_match: Option<Refusal>,
    /// Added columns that cannot be NULL although the lookup has NULLs, and why rows that find one are refused.
    not_null: Vec<(usize, Refusal)>,
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
            no_match: (spec.no_match == NoMatch::Reject).then(no_match),
            not_null: nulls.map(not_null).collect(),
            schema: behind.arrow(),
            lookup,
            keys,
        })
    }

    /// Whether rows may be refused.
    pub fn refuses(&self) -> bool {
        self.no_match.is_some() || !self.not_null.is_empty()
    }

    /// The rows with their added columns; none if none is left.
    ///
    /// # Errors
    /// Those of Arrow, for batches of other rows.
    pub fn apply(
        &self,
        batch: &RecordBatch,
        counts: &mut TransformCounts,
        remaining: &mut Remaining,
    ) -> Result<Option<RecordBatch>, ArrowError> {
        let keys: Vec<ArrayRef> = self.keys.iter().map(|&key| batch.column(key).clone()).collect();
        let index = self.lookup.index();
        let found = index.probe(&keys).map_err(|wrong| ArrowError::ExternalError(Box::new(wrong)))?;
        let added = index.gather(&found)?;
        let missed = batch.num_rows() - found.matched();
        counts.rows += batch.num_rows() as u64;
        counts.null_keys += found.null_keys() as u64;
        if self.no_match.is_none() {
            counts.defaulted += missed as u64;
        }
        let columns = [batch.columns(), &added[..]].concat();
        let Some(keep) = self.refuse(&found, &added, remaining) else {
            counts.matched += found.matched() as u64;
            return RecordBatch::try_new(self.schema.clone(), columns).map(Some);
        };
        remaining.keep(&keep);
        let keep = BooleanArray::from(keep);
        let kept = keep.true_count();
        let rejected = batch.num_rows() - kept;
        counts.rejected += rejected as u64;
        counts.matched += (kept - if self.no_match.is_none() { missed } else { 0 }) as u64;
        if kept == 0 {
            return Ok(None);
        }
        let filter = FilterBuilder::new(&keep).optimize().build();
        let columns = columns.iter().map(|column| filter.filter(column)).collect::<Result<Vec<_>, _>>()?;
        RecordBatch::try_new(self.schema.clone(), columns).map(Some)
    }

    /// Which rows go on; none if all of them do.
    fn refuse(&self, found: &Probed, added: &[ArrayRef], remaining: &mut Remaining) -> Option<Vec<bool>> {
        let rows = found.payloads().len();
        let misses = if found.matched() < rows { self.no_match.as_ref() } else { None };
        let nulls: Vec<_> = self.not_null.iter().filter(|(place, _)| added[*place].null_count() > 0).collect();
        if misses.is_none() && nulls.is_empty() {
            return None;
        }
        let mut keep = vec![true; rows];
        let mut refuse = |refusal: &Refusal, is_bad: &dyn Fn(usize) -> bool| {
            let bad: Vec<u32> = (0..rows).filter(|&row| keep[row] && is_bad(row)).map(|row| row as u32).collect();
            bad.iter().for_each(|&row| keep[row as usize] = false);
            remaining.refuse(bad, refusal);
        };
        if let Some(refusal) = misses {
            refuse(refusal, &|row| !found.is_match(row));
        }
        for (place, refusal) in nulls {
            refuse(refusal, &|row| added[*place].is_null(row));
        }
        Some(keep)
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
