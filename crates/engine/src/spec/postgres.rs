//! Tables of a PostgreSQL server.

use std::collections::HashMap;

use headrace_wire::postgres::Form;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::postgres::ConnectionSpec;

/// Tables of a PostgreSQL server, and the SQL around their COPY. A *unit* is one transaction of one writer:
/// `begin`, COPY, `commit_slices`, COMMIT.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostgresSinkSpec {
    /// How to log in; the writers append their number to its application name.
    pub connection: ConnectionSpec,
    /// Layout columns in the order of the COPY statements.
    pub columns: Vec<CopyColumn>,
    /// Tables. When rows are routed, each takes the rows of the place that is its index.
    pub tables: Vec<CopyTable>,
    /// Which slices and rows go into which table.
    #[serde(default)]
    pub way: Way,
    /// Of [`Way::Home`]: takes the rows of other partitions than their slice's.
    #[serde(default)]
    pub strays: Option<CopyTable>,
    /// Source text after which a unit commits, at the end of a slice, bytes; none if it commits at its end.
    #[serde(default)]
    pub commit_bytes: Option<u64>,
    /// Rows after which it does.
    #[serde(default)]
    pub commit_rows: Option<u64>,
    /// Inserts the commit rows of a unit behind the fence of its run. `$1`: partition, `$2`: slices (int[]), and as bigint[]
    /// `$3`: rows loaded, `$4`: rows rejected, `$5`: header and blank lines, `$6`: bytes of text, `$7`: values ignored; `$8`: hashes
    /// of texts (text[]). What is not of the rows loaded, but of the slice, is in one of its commit rows only: of its home, or of
    /// place 0. Reports as many rows as slices, fewer if the run
    /// was fenced off. None: there is no ledger.
    pub commit_slices: Option<String>,
    /// When the units commit.
    pub commit: CommitTime,
}

/// How rows travel into their tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// All rows of a slice go into the one table that has the slice. A stream has a unit of its own. If rows are routed,
    /// those that no place takes are rejected, and one table takes the others, whatever their places.
    #[default]
    Plain,
    /// The same, but for rows of other partitions: a second unit of the stream takes them into the table of strays, and
    /// commits before the first one.
    Home,
    /// Every table has one unit, which takes its rows from all streams, and every table has all slices.
    Shared,
}

/// A column on its way into a table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyColumn {
    /// Column of the layout.
    pub source: String,
    /// How the server receives it.
    pub form: Form,
}

/// A table that writers fill.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyTable {
    /// For messages.
    pub name: String,
    /// Partition in the ledger; empty without partitions.
    pub partition: String,
    /// Its slices; those of the table of strays are all.
    pub slices: Vec<u32>,
    /// Whether one stream takes all of them, in one unit.
    pub owned: bool,
    /// Statements that start a unit, `BEGIN` among them.
    pub begin: String,
    /// The COPY statement.
    pub copy: String,
    /// Rows of slices that an earlier attempt has committed into this table, though not into all others: they are counted
    /// and not sent.
    #[serde(default, deserialize_with = "rows_of_slices")]
    pub committed: HashMap<u32, u64>,
}

/// When the units of a flow commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommitTime {
    /// Each when it is complete.
    Unit,
    /// All one after the other, when [`crate::Flow::commit`] is called.
    Together,
}

/// Keys of a JSON object are texts, also where serde holds it back until the kind of the sink is known.
fn rows_of_slices<'de, D: Deserializer<'de>>(from: D) -> Result<HashMap<u32, u64>, D::Error> {
    let rows = HashMap::<String, u64>::deserialize(from)?.into_iter();
    let number =
        |text: String| text.parse().map_err(|_| D::Error::custom(format!("`{text}` is not the number of a slice")));
    rows.map(|(slice, rows)| Ok((number(slice)?, rows))).collect()
}
