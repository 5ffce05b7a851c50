//! The columns of rows on their way through a flow.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use serde::{Deserialize, Serialize};

use crate::{ColumnType, Layout};

/// A column of such rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowColumn {
    /// Name, unique among those of its rows.
    pub name: String,
    /// Type.
    #[serde(rename = "type")]
    pub column_type: ColumnType,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// The columns of rows, in the order of batches: those of the layout, behind them those that are made, and behind them those
/// that transforms add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowSchema(Vec<RowColumn>);

impl RowSchema {
    /// That of rows without columns, as yet.
    pub fn empty() -> Self {
        RowSchema(Vec::new())
    }

    /// That of rows as the parser gives them.
    pub fn of(layout: &Layout) -> Self {
        let column = |name: &str, column_type, nullable| RowColumn { name: name.to_owned(), column_type, nullable };
        let read = layout.columns.iter().map(|own| column(&own.name, own.column_type, own.nullable));
        let made = layout.made.iter().map(|own| column(&own.name, own.from.column_type(), false));
        RowSchema(read.chain(made).collect())
    }

    /// That of the rows of a query.
    pub fn of_stream(columns: Vec<RowColumn>) -> Self {
        RowSchema(columns)
    }

    /// The one that takes its place behind a query, which says all columns of its rows.
    ///
    /// # Errors
    /// A sentence that names a column which stands there twice.
    pub fn of_query(columns: impl IntoIterator<Item = RowColumn>) -> Result<Self, String> {
        let mut schema = RowSchema::empty();
        columns.into_iter().try_for_each(|column| schema.add(column)).map(|()| schema)
    }

    /// Puts a column behind the others.
    ///
    /// # Errors
    /// A sentence that names a column which is there already.
    pub fn add(&mut self, column: RowColumn) -> Result<(), String> {
        if self.index_of(&column.name).is_some() {
            return Err(format!("column name `{}` stands twice", column.name));
        }
        self.0.push(column);
        Ok(())
    }

    /// All columns.
    pub fn columns(&self) -> &[RowColumn] {
        &self.0
    }

    /// Place of a column.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|column| column.name == name)
    }

    /// Arrow schema of batches.
    pub fn arrow(&self) -> SchemaRef {
        let field = |column: &RowColumn| column.column_type.arrow_field(&column.name, column.nullable);
        Arc::new(Schema::new(self.0.iter().map(field).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, MadeColumn, MadeFrom};

    #[test]
    fn added_columns_stand_behind_made_ones() {
        let layout = Layout {
            delimiter: "|".to_owned(),
            columns: vec![Column::new("a", ColumnType::Int32, true)],
            made: vec![MadeColumn { name: "row".to_owned(), from: MadeFrom::RowNumber }],
            ..Layout::default()
        };
        let mut schema = RowSchema::of(&layout);
        let added = |name: &str| RowColumn { name: name.to_owned(), column_type: ColumnType::Uuid, nullable: true };
        assert_eq!(schema.add(added("sk")), Ok(()));
        assert_eq!(schema.add(added("row")), Err("column name `row` stands twice".to_owned()));
        let names: Vec<_> = schema.columns().iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["a", "row", "sk"]);
        assert_eq!((schema.index_of("sk"), schema.index_of("b")), (Some(2), None));
        let arrow = schema.arrow();
        assert_eq!(arrow.fields().iter().map(|field| field.is_nullable()).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(arrow.field(2).metadata()["ARROW:extension:name"], "arrow.uuid");
    }
}
