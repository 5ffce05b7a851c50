//! What happens to rows between parsing and their destination.

use headrace_types::{RowColumn, RowSchema};
use serde::Deserialize;

/// One transform. Its index, if it has one, comes beside the specification.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransformSpec {
    /// Name, unique in its flow.
    pub name: String,
    /// Which row of another source each row finds, and what it gets of it.
    pub lookup: ProbeSpec,
}

/// How rows look for others.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// Columns of the rows, in the order of the key columns of the index.
    pub keys: Vec<String>,
    /// Columns that the rows get, in the order of those of the index. A row that finds NULL for one that is not nullable is a
    /// reject.
    pub added: Vec<RowColumn>,
    /// What becomes of rows that find nothing.
    pub no_match: NoMatch,
}

/// What becomes of rows that find nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoMatch {
    /// They get the defaults of the index.
    Default,
    /// They are rejects.
    Reject,
}

impl TransformSpec {
    /// Adds the columns of the transform to those of the rows before it; a sentence if it does not fit them.
    pub fn extend(&self, schema: &mut RowSchema) -> Result<(), String> {
        let refuse = |text: String| format!("transform `{}`: {text}", self.name);
        if let Some(key) = self.lookup.keys.iter().find(|key| schema.index_of(key).is_none()) {
            return Err(refuse(format!("its rows have no column `{key}`")));
        }
        self.lookup.added.iter().try_for_each(|column| schema.add(column.clone()).map_err(refuse))
    }
}
