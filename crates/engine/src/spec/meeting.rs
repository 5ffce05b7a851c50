//! One join: rows of two sides that meet, be they rows of sources or of other joins.

use headrace_transform::join::{self, Side};
use headrace_types::{ColumnType, RowColumn, RowSchema};
use serde::Deserialize;

use super::{RowFields, RowsOf};

/// A join of two sides.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeetingSpec {
    /// Name, for messages.
    pub name: String,
    /// Which rows go on.
    pub kind: JoinKind,
    /// Columns of the key: the left and the right one of each.
    pub keys: Vec<[String; 2]>,
    /// Columns of the rows that go on, in their order.
    pub columns: Vec<JoinColumn>,
    /// What stands left and right: the number of a source, or of an inner join.
    pub sides: [usize; 2],
    /// Which rows of the left and of the right one meet; those in front of all transforms if that is not said.
    #[serde(default)]
    pub inputs: Vec<RowsOf>,
}

/// Which rows go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JoinKind {
    /// Pairs.
    Inner,
    /// Pairs, and left rows without one.
    Left,
    /// Pairs, and right rows without one.
    Right,
    /// All.
    Full,
}

/// A column of the rows that go on.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinColumn {
    /// Where it is from.
    pub side: JoinSide,
    /// Its name there, behind what stands in front of the side.
    pub column: String,
    /// Its name behind the join.
    pub name: String,
}

/// A side of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JoinSide {
    /// That whose keys come once.
    Left,
    /// The other one.
    Right,
}

impl From<JoinKind> for join::JoinKind {
    fn from(kind: JoinKind) -> Self {
        match kind {
            JoinKind::Inner => join::JoinKind::Inner,
            JoinKind::Left => join::JoinKind::Left,
            JoinKind::Right => join::JoinKind::Right,
            JoinKind::Full => join::JoinKind::Full,
        }
    }
}

impl From<JoinSide> for Side {
    fn from(side: JoinSide) -> Self {
        match side {
            JoinSide::Left => Side::Left,
            JoinSide::Right => Side::Right,
        }
    }
}

impl From<Side> for JoinSide {
    fn from(side: Side) -> Self {
        match side {
            Side::Left => JoinSide::Left,
            Side::Right => JoinSide::Right,
        }
    }
}

impl MeetingSpec {
    /// The side that has this number, if any has it.
    pub fn side_of(&self, feed: usize) -> Option<Side> {
        Side::BOTH.into_iter().find(|side| self.sides[side.index()] == feed)
    }

    /// The columns of the key on a side, with their types; `rows`: those of the side that meet others.
    ///
    /// # Errors
    /// A sentence that names a column which is not there.
    pub fn key_columns(&self, rows: &RowSchema, side: Side) -> Result<Vec<(usize, RowColumn)>, String> {
        let keys = self.keys.iter().map(|names| &names[side.index()]);
        keys.map(|name| column(rows, side, name)).collect()
    }

    /// What is joined, and the rows that come out; `sides`: the rows that meet.
    ///
    /// # Errors
    /// A sentence about columns that are not there, stand twice, or cannot be compared.
    pub fn resolved(&self, sides: &[RowFields; 2]) -> Result<(join::JoinSpec, RowSchema), String> {
        let refuse = |text: String| format!("join `{}`: {text}", self.name);
        let [left_keys, right_keys] = Side::BOTH.map(|side| self.key_columns(&sides[side.index()].schema, side));
        let keys = left_keys.map_err(refuse)?.into_iter().zip(right_keys.map_err(refuse)?);
        let key = |((left, left_column), (right, right_column)): ((usize, RowColumn), (usize, RowColumn))| {
            let [left_type, right_type]: [ColumnType; 2] = [left_column.column_type, right_column.column_type];
            join::JoinKey { left, left_type, right, right_type }
        };
        let kind = join::JoinKind::from(self.kind);
        let (mut columns, mut schema) = (Vec::new(), RowSchema::empty());
        for own in &self.columns {
            let side = Side::from(own.side);
            let (place, found) = column(&sides[side.index()].schema, side, &own.column).map_err(refuse)?;
            columns.push(join::OutputColumn { side, column: place });
            let nullable = found.nullable || kind.keeps(side.other());
            schema.add(RowColumn { name: own.name.clone(), nullable, ..found }).map_err(refuse)?;
        }
        let spec = join::JoinSpec { kind, keys: keys.map(key).collect(), columns, schema: schema.arrow() };
        join::MergeJoin::new(spec.clone()).map_err(refuse)?;
        Ok((spec, schema))
    }
}

fn column(rows: &RowSchema, side: Side, name: &str) -> Result<(usize, RowColumn), String> {
    let index = rows.index_of(name);
    let found = index.and_then(|index| Some((index, rows.columns().get(index)?.clone())));
    found.ok_or_else(|| format!("its {side} rows have no column `{name}`"))
}
