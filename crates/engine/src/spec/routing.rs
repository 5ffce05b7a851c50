//! Which partition of its target each row belongs to.

use serde::Deserialize;

/// How the rows of a flow find their *places*: numbers of partitions, from 0.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoutingSpec {
    /// Column of the layout that decides.
    pub column: String,
    /// How it decides.
    pub method: MethodSpec,
    /// Place of the rows that no other partition takes; without it they are rejects.
    pub default: Option<u32>,
}

/// A way to divide a table. Keys are texts that the column's type accepts.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MethodSpec {
    /// Ranges of keys that do not overlap; the place of each is its index.
    Range(Vec<RangeSpec>),
    /// Lists of keys, of which none is in two lists; the place of each is its index. None: rows without a key.
    List(Vec<Vec<Option<String>>>),
    /// PostgreSQL's hash.
    Hash(HashSpec),
    /// The destination places the rows; these are the keys of those that no partition takes, None among them for rows without
    /// a key. There is one place.
    #[serde(rename = "all_but")]
    AllBut(Vec<Option<String>>),
}

/// A range of keys.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RangeSpec {
    /// Least key; none for an open end.
    pub minimum: Option<String>,
    /// Behind the greatest key; none for an open end.
    pub end: Option<String>,
}

/// Partitions by hash; the place of each is its remainder.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HashSpec {
    /// How many.
    pub modulus: u32,
    /// The type of the server's column.
    pub key: HashKind,
}

/// Types whose values have a hash of their own kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HashKind {
    /// smallint, integer, bigint, time.
    Integer,
    /// numeric.
    Numeric,
    /// real, double precision.
    Float,
    /// boolean.
    Bool,
    /// date.
    Date,
    /// timestamp with or without time zone.
    Timestamp,
    /// text, varchar, bytea, uuid.
    Bytes,
    /// char(n).
    Char,
}
