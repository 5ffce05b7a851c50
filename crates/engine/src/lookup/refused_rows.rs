//! Rows of a query or table that rows of files could not be, as people read it.

use headrace_types::{CoreError, ErrorKind};
use headrace_wire::postgres::{DecodeError, Fault, Found};

use super::spec::Wanted;
use crate::sink::values::render;

/// Of one lookup.
pub struct RefusedRows<'a> {
    pub wanted: &'a Wanted<'a>,
    /// Where its columns stand in rows.
    pub places: &'a [usize],
}

impl RefusedRows<'_> {
    /// A value that columns of its type cannot have here, in a row before which there are `row` others.
    pub fn value(&self, column: &str, shown: &str, expected: &str, row: u64) -> CoreError {
        let Wanted { name, source, .. } = self.wanted;
        let what = format!("a row of lookup `{name}` has a value that columns of its type cannot have here");
        CoreError::new(ErrorKind::Source, what)
            .found(format!("{shown} for column `{column}` in row {} of the {source}", row + 1))
            .expected(expected)
            .hint(format!("Leave such rows out of the {source}, or convert the value in it."))
    }

    /// A row of a server that cannot be read.
    pub fn row(&self, row: u64, error: &DecodeError) -> CoreError {
        let place = error.column.and_then(|column| self.places.iter().position(|place| *place == column));
        match (&error.fault, place.and_then(|index| self.wanted.rows.columns().get(index))) {
            (Fault::Value { found, expected }, Some(column)) => {
                let shown = match found {
                    Found::Text(text) => text.clone(),
                    Found::Since1970(number) => render(column.column_type, *number),
                };
                self.value(&column.name, &shown, expected, row)
            }
            _ => CoreError::new(ErrorKind::Target, format!("lookup `{}` cannot be read", self.wanted.name))
                .found(error.to_string())
                .expected("rows as PostgreSQL sends them"),
        }
    }
}
