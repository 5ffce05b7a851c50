//! Keys that belong to a table.

use arrow_array::RecordBatch;
use headrace_transform::partition::Key;
use headrace_types::{CoreError, ErrorKind, Layout};

use super::{Base, internal, specification};
use crate::key_column::KeyColumn;
use crate::sink::Origin;
use crate::spec::{CopyTable, KeyBounds};

/// Keys that belong to a table.
pub struct Range {
    column: KeyColumn,
    minimum: Key,
    end: Key,
    bounds: KeyBounds,
}

/// The keys of a table, if it has bounds.
pub fn range(layout: &Layout, table: &CopyTable) -> Result<Option<Range>, CoreError> {
    let Some(bounds) = &table.bounds else { return Ok(None) };
    let Some(column) = KeyColumn::of(layout, &bounds.column) else {
        return Err(specification(format!("`{}` is not a column whose values can be keys", bounds.column)));
    };
    let minimum = column.parse(&bounds.minimum)?;
    // No type has a key of that size.
    let end = bounds.end.as_ref().map_or(Ok(Key::MAX), |end| column.parse(end))?;
    Ok(Some(Range { column, minimum, end, bounds: bounds.clone() }))
}

impl Range {
    /// Fails for the first row whose key does not belong to the table.
    pub fn check(&self, base: &Base, origin: Origin, batch: &RecordBatch) -> Result<(), CoreError> {
        let keys = self.column.keys(batch).ok_or_else(|| internal("a key of another type than its column"))?;
        let mut row = 0;
        let mut outside = None;
        keys.for_each(|key| {
            if outside.is_none() && !(self.minimum..self.end).contains(&key) {
                outside = Some((row, key));
            }
            row += 1;
        });
        outside.map_or(Ok(()), |(row, key)| Err(self.outside(base, origin, row, key)))
    }

    fn outside(&self, base: &Base, origin: Origin, row: u64, key: Key) -> CoreError {
        let KeyBounds { column, minimum, end } = &self.bounds;
        let what = format!("a row does not belong to the partition of its file: `{column}`");
        let error = CoreError::new(ErrorKind::Target, what)
            .found(self.column.text(key))
            .expected(match end {
                Some(end) => format!("from {minimum} to below {end}"),
                None => format!("{minimum} or more"),
            })
            .hint(
                "Partitions by file need files that do not overlap, each between the keys of its first and last row.",
            );
        match base.locate(origin, row, None) {
            Ok(Some(location)) => error.at(location),
            _ => error,
        }
    }
}
