//! Rows of one source of a union, as the union has them.

use arrow_array::{RecordBatch, new_null_array};
use arrow_schema::SchemaRef;
use headrace_types::{CoreError, ErrorKind, RowSchema};

use crate::spec::{FlowSpec, UnionSpec};
use crate::transforms::Refusal;

/// What makes rows of the union of those of one source, as its parser gives them or as they come out of what stands in front.
pub struct Unified {
    /// Columns of the layout that the parser has to give.
    wanted: Vec<usize>,
    /// For each column that goes on its place in the rows of the source; none if it is NULL in this source.
    places: Vec<Option<usize>>,
    schema: SchemaRef,
    /// For each column of the union the one of the file that it is, if it is one.
    fields: Vec<Option<usize>>,
    /// What the columns of the union are called.
    names: Vec<String>,
}

impl Unified {
    /// For the rows of a source, by its number. `columns`: those of the union that are wanted; none for all.
    ///
    /// # Errors
    /// `Specification` for transforms that do not fit the rows before them.
    pub fn new(
        spec: &FlowSpec,
        union: &UnionSpec,
        source: usize,
        columns: Option<&[usize]>,
    ) -> Result<Self, CoreError> {
        let layout = spec.layout_of_source(source);
        let before = spec.rows_into(&spec.fields()?, source);
        let is_whole = spec.reads_whole(source);
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
        if is_whole {
            wanted = (0..layout.all_columns().count()).collect();
        }
        let places = chosen.iter().map(|column| {
            let place = place_of(column)?;
            if is_whole { Some(place) } else { wanted.iter().position(|own| *own == place) }
        });
        let places = places.collect();
        let columns = chosen.iter().filter_map(|&column| union.columns.get(column).cloned());
        let schema = RowSchema::of_stream(columns.collect()).arrow();
        let fields = all.iter().map(|place| before.fields.get((*place)?).copied().flatten()).collect();
        let names = union.columns.iter().map(|own| own.name.clone()).collect();
        Ok(Unified { wanted, places, schema, fields, names })
    }

    /// Columns of the layout that the parser has to give.
    pub fn wanted(&self) -> &[usize] {
        &self.wanted
    }

    /// What is said of a row of the union, as it is said of a row of the file.
    pub fn refusal(&self, refusal: Refusal) -> Refusal {
        let Some(column) = refusal.column else { return refusal };
        match (self.fields.get(column), self.names.get(column)) {
            (Some(&Some(field)), _) => Refusal { column: Some(field), ..refusal },
            (_, Some(name)) => refusal.elsewhere(&format!("`{name}`")),
            _ => Refusal { column: None, ..refusal },
        }
    }

    /// The rows of a batch of the source.
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
