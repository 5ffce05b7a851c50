//! Rows of one source of a union, as the union has them.

use arrow_array::{RecordBatch, new_null_array};
use arrow_schema::SchemaRef;
use headrace_types::{CoreError, ErrorKind, Layout, RowSchema};

use crate::spec::UnionSpec;

/// What makes rows of the union of those that a parser of one source gives.
pub struct Unified {
    /// Columns of the layout that the parser has to give.
    wanted: Vec<usize>,
    /// For each column that goes on its place among these; none if it is NULL in this source.
    places: Vec<Option<usize>>,
    schema: SchemaRef,
    /// For each column of the union the one of the file that it is, if it is one.
    fields: Vec<Option<usize>>,
}

impl Unified {
    /// For the rows of a source, by its number. `columns`: those of the union that are wanted; none for all.
    pub fn new(union: &UnionSpec, source: usize, layout: &Layout, columns: Option<&[usize]>) -> Self {
        let all = union.sources.get(source).map(|own| own.places.as_slice()).unwrap_or_default();
        let chosen: Vec<usize> = columns.map_or_else(|| (0..all.len()).collect(), <[usize]>::to_vec);
        let place_of = |column: &usize| all.get(*column).copied().flatten();
        let read = layout.columns.len();
        // A parser gives made columns behind the others, whatever is asked for, and rows without a column have no number.
        let mut wanted: Vec<usize> = chosen.iter().filter_map(place_of).collect();
        if wanted.is_empty() {
            wanted.push(0);
        }
        wanted.sort_by_key(|&place| place >= read);
        let places = chosen.iter().map(|column| {
            let place = place_of(column)?;
            wanted.iter().position(|own| *own == place)
        });
        let places = places.collect();
        let columns = chosen.iter().filter_map(|&column| union.columns.get(column).cloned());
        let schema = RowSchema::of_stream(columns.collect()).arrow();
        let fields = all.iter().map(|place| place.filter(|&place| place < read)).collect();
        Unified { wanted, places, schema, fields }
    }

    /// Columns of the layout that the parser has to give.
    pub fn wanted(&self) -> &[usize] {
        &self.wanted
    }

    /// The column of the layout that one of the union is, if it stands in the file.
    pub fn field(&self, column: usize) -> Option<usize> {
        self.fields.get(column).copied().flatten()
    }

    /// The rows of a batch of the parser.
    ///
    /// # Errors
    /// `Internal` for a batch of other columns.
    pub fn rows(&self, batch: &RecordBatch) -> Result<RecordBatch, CoreError> {
        let rows = batch.num_rows();
        let internal =
            |found: String| CoreError::new(ErrorKind::Internal, "rows of a union do not fit it").found(found);
        let columns = self.schema.fields().iter().zip(&self.places).map(|(field, place)| match place {
            None => Ok(new_null_array(field.data_type(), rows)),
            Some(place) => {
                let column = batch.columns().get(*place);
                column.cloned().ok_or_else(|| internal(format!("{} columns", batch.num_columns())))
            }
        });
        let columns = columns.collect::<Result<Vec<_>, CoreError>>()?;
        RecordBatch::try_new(self.schema.clone(), columns).map_err(|error| internal(error.to_string()))
    }
}
