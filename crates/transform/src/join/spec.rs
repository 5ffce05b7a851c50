//! What is joined.

use std::fmt;

use arrow_schema::SchemaRef;
use headrace_types::ColumnType;

/// What is joined, and what comes out.
#[derive(Debug, Clone)]
pub struct JoinSpec {
    /// Which rows come out.
    pub kind: JoinKind,
    /// One or more.
    pub keys: Vec<JoinKey>,
    /// The columns that come out, in their order.
    pub columns: Vec<OutputColumn>,
    /// Their schema: those of a side whose rows may be missing can be NULL.
    pub schema: SchemaRef,
}

/// Which rows come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Pairs only.
    Inner,
    /// Pairs, and left rows that are in none.
    Left,
    /// Pairs, and right rows that are in none.
    Right,
    /// Pairs, and all other rows.
    Full,
}

/// A column of the key on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinKey {
    /// Place in left batches.
    pub left: usize,
    /// Its type there.
    pub left_type: ColumnType,
    /// Place in right batches.
    pub right: usize,
    /// Its type there.
    pub right_type: ColumnType,
}

/// A column that comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputColumn {
    /// Where it is from.
    pub side: Side,
    /// Its place in batches of that side.
    pub column: usize,
}

/// One of the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The one whose keys come once.
    Left,
    /// The other one.
    Right,
}

impl JoinKind {
    /// Whether rows of a side come out that have met no other.
    pub fn keeps(self, side: Side) -> bool {
        match side {
            Side::Left => matches!(self, JoinKind::Left | JoinKind::Full),
            Side::Right => matches!(self, JoinKind::Right | JoinKind::Full),
        }
    }
}

impl JoinKey {
    pub(super) fn columns(&self) -> [usize; 2] {
        [self.left, self.right]
    }
}

impl Side {
    /// Both.
    pub const BOTH: [Side; 2] = [Side::Left, Side::Right];

    /// Left 0, right 1.
    pub fn index(self) -> usize {
        match self {
            Side::Left => 0,
            Side::Right => 1,
        }
    }

    /// The other one.
    pub fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Side::Left => "left",
            Side::Right => "right",
        })
    }
}
