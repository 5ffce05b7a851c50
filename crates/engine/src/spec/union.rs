//! Several sources whose rows go on together: the files of the flow are those of all, one source behind the other.

use headrace_types::{ColumnType, RowColumn, RowSchema};
use serde::Deserialize;

use super::{FlowSource, FlowSpec, RowFields, RowsOf, sources};

/// A union in front of the transforms of a flow, but for those in front of its sources.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnionSpec {
    /// Name, for messages.
    pub name: String,
    /// Columns of the rows that go on, in their order.
    pub columns: Vec<RowColumn>,
    /// The sources, in the order of their files, those apart behind the others; the layout of the first one is that of the flow.
    pub sources: Vec<FlowSource>,
    /// Which rows of each source go on together; those of their parsers if that is not said. Of a source apart it means nothing.
    #[serde(default)]
    pub inputs: Vec<RowsOf>,
    /// On the way to one of several destinations: sources whose rows come as their layouts say, because others read them, too.
    #[serde(skip)]
    pub read_whole: Vec<usize>,
}

/// Whether a column has room for all values of another one: of texts it may be the longer one.
fn holds(column: ColumnType, found: ColumnType) -> bool {
    match (column, found) {
        (ColumnType::String, ColumnType::Varchar { .. }) => true,
        (ColumnType::Varchar { length: longest }, ColumnType::Varchar { length }) => length <= longest,
        _ => column == found,
    }
}

impl UnionSpec {
    /// Why it does not fit the flow, if it does not.
    pub fn misfit(&self, spec: &FlowSpec) -> Option<String> {
        let refuse = |text: &str| Some(format!("union `{}`: {text}", self.name));
        if spec.join.is_some() || spec.source.generate.is_some() || spec.source.gathered {
            return refuse("its rows come from files, and are not joined");
        }
        if let Some(text) = sources::misfit(&self.sources) {
            return refuse(text);
        }
        if RowSchema::of_query(self.columns.iter().cloned()).is_err() {
            return refuse("a column stands twice");
        }
        for own in &self.sources {
            let name = &own.name;
            if own.apart && !own.places.is_empty() {
                return refuse(&format!("source `{name}` stands apart, and has places for columns"));
            }
            if !own.apart && own.places.len() != self.columns.len() {
                return refuse(&format!("source `{name}` has not a place for each column"));
            }
        }
        None
    }

    /// The rows that go on, each column its own field. `sources`: the rows of each source that comes together with others.
    ///
    /// # Errors
    /// A sentence about a column that is not what a source has for it.
    pub fn behind(&self, sources: &[RowFields]) -> Result<RowFields, String> {
        for (own, rows) in self.sources.iter().zip(sources) {
            for (column, place) in self.columns.iter().zip(&own.places) {
                let found = place.map(|place| rows.schema.columns().get(place));
                let fits = match found {
                    None => column.nullable,
                    Some(None) => false,
                    Some(Some(found)) => {
                        holds(column.column_type, found.column_type) && (column.nullable || !found.nullable)
                    }
                };
                if !fits {
                    let (union, column, name) = (&self.name, &column.name, &own.name);
                    return Err(format!(
                        "union `{union}`: column `{column}` is not what stands in its place in source `{name}`"
                    ));
                }
            }
        }
        Ok(RowFields::of_own(RowSchema::of_stream(self.columns.clone())))
    }
}
