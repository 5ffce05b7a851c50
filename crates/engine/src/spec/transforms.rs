//! What happens to rows between parsing and their destination.

use headrace_types::{ColumnType, RowColumn, RowSchema};
use serde::Deserialize;

use super::{ReunionSpec, RowFields, RowsOf};

/// One transform.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Written")]
pub struct TransformSpec {
    /// Name, unique in its flow.
    pub name: String,
    /// The number of the source, or of the join whose rows come into another one, in whose front it stands, if it does: the rows of that
    /// pass it before they meet others. None of what stands behind, and where there is neither.
    pub source: Option<usize>,
    /// Which rows it gets, of a reunion more than one; those of the transform before it if none are said.
    pub inputs: Vec<RowsOf>,
    /// What it does.
    pub operation: Operation,
}

/// What a transform does.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Each row finds one of another source, and gets columns of it. The index comes beside the specification.
    Lookup(ProbeSpec),
    /// A query computes the columns of each row anew, or leaves it out. Whoever runs it takes windows of rows from the flow.
    Query(QuerySpec),
    /// A query says of each row which of several outputs it goes to.
    Split(SplitSpec),
    /// The rows of several inputs go one way on, in the order in which they came.
    Reunion(ReunionSpec),
}

impl Operation {
    /// How many outputs it has.
    pub fn outputs(&self) -> usize {
        match self {
            Operation::Lookup(probe) if probe.no_match == NoMatch::Output => 2,
            Operation::Lookup(_) | Operation::Query(_) | Operation::Reunion(_) => 1,
            Operation::Split(split) => split.outputs,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    source: Option<usize>,
    #[serde(default)]
    inputs: Vec<RowsOf>,
    lookup: Option<ProbeSpec>,
    query: Option<QuerySpec>,
    split: Option<SplitSpec>,
    reunion: Option<ReunionSpec>,
}

impl TryFrom<Written> for TransformSpec {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { name, source, inputs, lookup, query, split, reunion } = written;
        let operation = match (lookup, query, split, reunion) {
            (Some(probe), None, None, None) => Operation::Lookup(probe),
            (None, Some(query), None, None) => Operation::Query(query),
            (None, None, Some(split), None) => Operation::Split(split),
            (None, None, None, Some(reunion)) => Operation::Reunion(reunion),
            _ => return Err(format!("transform `{name}` is not one of lookup, query, split and reunion")),
        };
        let most = if matches!(operation, Operation::Reunion(_)) { usize::MAX } else { 1 };
        if inputs.len() > most {
            return Err(format!("transform `{name}` has {} inputs", inputs.len()));
        }
        Ok(TransformSpec { name, source, inputs, operation })
    }
}

/// How rows are divided. Windows and their results are those of a query with one computed column: the number of the output, from 0.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitSpec {
    /// As of a query.
    pub number: String,
    /// How many outputs there are.
    pub outputs: usize,
}

/// What is known of a query.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuerySpec {
    /// Name of the column that windows have beside those of the rows: numbers of rows, which its result has as its last column.
    pub number: String,
    /// Columns of the rows behind it.
    pub columns: Vec<ComputedColumn>,
}

/// A column behind a query.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComputedColumn {
    /// Name.
    pub name: String,
    /// Type. A row with a text longer than the type has is a reject.
    #[serde(rename = "type")]
    pub column_type: ColumnType,
    /// Whether it may be NULL; else rows that would have NULL are rejects.
    pub nullable: bool,
    /// The column of the rows before the query that it is; none if it is computed, in the order of the result.
    #[serde(default)]
    pub from: Option<String>,
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
    /// They go to an output of their own, as they came.
    Output,
}

impl ComputedColumn {
    fn row_column(&self) -> RowColumn {
        RowColumn { name: self.name.clone(), column_type: self.column_type, nullable: self.nullable }
    }
}

impl TransformSpec {
    /// The rows behind the transform, by its first output; `before`: those of its inputs. A sentence if it does not fit them.
    pub fn behind(&self, before: &[&RowFields]) -> Result<RowFields, String> {
        let refuse = |text: String| format!("transform `{}`: {text}", self.name);
        let Some(&rows) = before.first() else { return Err(refuse("it reads nothing".to_owned())) };
        let lacks = |name: &String| rows.schema.index_of(name).is_none();
        let lacking = |name: &String| Err(refuse(format!("its rows have no column `{name}`")));
        match &self.operation {
            Operation::Lookup(probe) => {
                if let Some(key) = probe.keys.iter().find(|key| lacks(key)) {
                    return lacking(key);
                }
                let RowFields { mut schema, mut fields } = rows.clone();
                probe.added.iter().try_for_each(|column| schema.add(column.clone()).map_err(refuse))?;
                fields.extend(probe.added.iter().map(|_| None));
                Ok(RowFields { schema, fields })
            }
            Operation::Query(query) => {
                if let Some(from) = query.columns.iter().filter_map(|own| own.from.as_ref()).find(|from| lacks(from)) {
                    return lacking(from);
                }
                if !lacks(&query.number) {
                    return Err(refuse(format!("its rows have a column `{}`", query.number)));
                }
                let field = |own: &ComputedColumn| {
                    let from = own.from.as_ref().and_then(|from| rows.schema.index_of(from));
                    from.and_then(|from| rows.fields[from])
                };
                Ok(RowFields {
                    schema: RowSchema::of_query(query.columns.iter().map(ComputedColumn::row_column))
                        .map_err(refuse)?,
                    fields: query.columns.iter().map(field).collect(),
                })
            }
            Operation::Split(split) => match lacks(&split.number) {
                true => Ok(rows.clone()),
                false => Err(refuse(format!("its rows have a column `{}`", split.number))),
            },
            Operation::Reunion(reunion) => reunion.behind(before).map_err(refuse),
        }
    }
}
