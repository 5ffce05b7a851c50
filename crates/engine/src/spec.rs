//! What a flow is told to do. Planned by Python, carried as JSON.

use std::collections::{HashMap, HashSet};

use headrace_generate::TpchTable;
use headrace_types::{CoreError, ErrorKind, Layout, RowEnd};
use headrace_wire::postgres::Form;
use serde::{Deserialize, Serialize};

use crate::postgres::ConnectionSpec;
use crate::report::SliceReport;
use crate::row_position::RowPosition;

/// One data flow.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Task id, for messages and thread names.
    pub name: String,
    /// Columns and dialect of the source.
    pub layout: Layout,
    /// Files and slices.
    pub source: SourceSpec,
    /// Where batches go.
    pub sink: SinkSpec,
    /// Threads that read and parse; at least 1.
    pub streams: usize,
    /// Memory of blocks.
    pub memory: MemorySpec,
    /// What happens to rejects.
    pub rejects: RejectSpec,
}

/// Where bytes come from.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSpec {
    /// Files; virtual ones when the rows are generated.
    pub files: Vec<FileSpec>,
    /// Slices, numbered from 1 in file order.
    pub slices: Vec<SliceSpec>,
    /// Slices that an earlier attempt has committed, by number: none of their rows is sent again.
    #[serde(default)]
    pub committed: HashMap<u32, CommittedSlice>,
    /// Set when rows are generated instead of read: slice k is chunk k.
    #[serde(default)]
    pub generate: Option<GenerateSource>,
}

/// A file as it was when the plan was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// Absolute path, or a name for generated rows.
    pub path: String,
    /// Size, bytes.
    #[serde(default)]
    pub size_bytes: u64,
    /// Last modification, nanoseconds since 1970.
    #[serde(default)]
    pub modified_ns: i64,
    /// Inode number.
    #[serde(default)]
    pub inode: u64,
    /// How its rows end.
    #[serde(default)]
    pub row_end: RowEnd,
    /// Where its first line starts: behind a byte order mark.
    #[serde(default)]
    pub first_byte: u64,
}

/// A byte range of one file that starts and ends on row boundaries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SliceSpec {
    /// Number in the plan, from 1.
    pub number: u32,
    /// Index of the file.
    pub file: usize,
    /// First byte.
    pub begin_byte: u64,
    /// Byte after the last.
    pub end_byte: u64,
}

/// What the destination keeps of a slice that an earlier attempt has committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommittedSlice {
    /// Rows loaded.
    pub loaded: u64,
    /// Rows rejected.
    pub rejected: u64,
    /// Header and blank lines.
    pub skipped: u64,
}

impl SourceSpec {
    /// The slices whose rows this flow has to send.
    pub fn to_load(&self) -> impl Iterator<Item = &SliceSpec> {
        self.slices.iter().filter(|slice| !self.committed.contains_key(&slice.number))
    }

    /// The committed slices that are read once more, for their rejects: the destination keeps the number of those only.
    pub fn to_reject(&self) -> impl Iterator<Item = &SliceSpec> {
        self.slices.iter().filter(|slice| self.committed.get(&slice.number).is_some_and(|known| known.rejected > 0))
    }

    /// The committed slices of which everything is known, and what.
    pub fn known(&self) -> impl Iterator<Item = (&SliceSpec, &CommittedSlice)> {
        let committed = self.slices.iter().filter_map(|slice| Some((slice, self.committed.get(&slice.number)?)));
        committed.filter(|(_, known)| known.rejected == 0)
    }
}

impl SliceSpec {
    /// Size, bytes; 0 when the rows are generated.
    pub fn bytes(&self) -> u64 {
        self.end_byte - self.begin_byte
    }
}

/// A generator in the place of files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerateSource {
    /// TPC-H table name.
    pub table: String,
    /// Scale factor.
    pub scale: f64,
    /// Chunks of the whole table.
    pub chunks: u32,
}

/// Where batches go.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum SinkSpec {
    /// One merged Arrow C stream of these columns, pulled by an embedded database.
    Arrow {
        /// Layout columns in destination order.
        columns: Vec<String>,
        /// Name of one more column, the [`RowPosition`] of each row; no column of the layout has it.
        #[serde(default)]
        position: Option<String>,
    },
    /// The places of single rows; only their slices are read, and all rows are discarded.
    Locate {
        /// Positions, as another flow of the same source and layout gave them.
        rows: Vec<RowPosition>,
        /// Accounts of that flow's slices, so that no lines have to be counted again.
        ended: Vec<SliceReport>,
    },
    /// Per-column aggregates; the rows are discarded.
    Null,
    /// Binary COPY over connections of the streams' own.
    Postgres(Box<PostgresSinkSpec>),
}

/// Tables of a PostgreSQL server, and the SQL around their COPY. A *unit* is one transaction of one writer:
/// `begin`, COPY, `commit_slices`, COMMIT.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostgresSinkSpec {
    /// How to log in; the writers append their number to its application name.
    pub connection: ConnectionSpec,
    /// Layout columns in the order of the COPY statements.
    pub columns: Vec<CopyColumn>,
    /// Tables; each slice belongs to exactly one of them.
    pub tables: Vec<CopyTable>,
    /// Inserts the commit rows of a unit behind the fence of its run. `$1`: partition, `$2`: slices (int[]), and as bigint[]
    /// `$3`: rows loaded, `$4`: rows rejected, `$5`: header and blank lines. Reports as many rows as slices, fewer if the run
    /// was fenced off. None: there is no ledger.
    pub commit_slices: Option<String>,
    /// When the units commit.
    pub commit: CommitTime,
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
    /// Its slices.
    pub slices: Vec<u32>,
    /// Whether one stream takes all of them, in one unit.
    pub owned: bool,
    /// Statements that start a unit, `BEGIN` among them.
    pub begin: String,
    /// The COPY statement.
    pub copy: String,
    /// Keys that belong to the partition.
    #[serde(default)]
    pub bounds: Option<KeyBounds>,
}

/// A range of keys, as the text that the layout's column accepts.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyBounds {
    /// Column of the layout: whole numbers, decimals, dates or timestamps, not nullable.
    pub column: String,
    /// Least key.
    pub minimum: String,
    /// Behind the greatest key; none if all keys from `minimum` on belong to the partition.
    pub end: Option<String>,
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

/// Memory of blocks.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemorySpec {
    /// Text of one block, bytes, padding not counted.
    pub block_bytes: usize,
    /// Blocks of the flow, whoever holds them.
    pub blocks: usize,
    /// Longest row, bytes; longer ones are rejected without being held.
    pub max_row_bytes: usize,
}

/// What happens to rejects.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RejectSpec {
    /// Rejects that do not fail the flow.
    pub limit: u64,
    /// Existing folder for the reject files.
    pub folder: String,
    /// Their name without ending.
    pub file_stem: String,
}

impl FlowSpec {
    /// Leaves out the slices in which the sink is not interested: as if they were committed, without a row.
    pub fn leave_out_unwanted(&mut self) {
        if let SinkSpec::Locate { rows, .. } = &self.sink {
            let wanted: HashSet<u32> = rows.iter().map(|row| row.slice()).collect();
            let numbers = self.source.slices.iter().map(|slice| slice.number);
            let unwanted = numbers.filter(|number| !wanted.contains(number));
            self.source.committed.extend(unwanted.map(|number| (number, CommittedSlice::default())));
        }
    }

    /// Whether the specification is consistent.
    pub fn check(&self) -> Result<(), CoreError> {
        let refuse =
            |text: String| Err(CoreError::new(ErrorKind::Specification, format!("flow {}: {text}", self.name)));
        if let Err(text) = self.layout.check() {
            return refuse(text);
        }
        if self.streams == 0 || self.streams > 4096 {
            return refuse(format!("{} streams are outside 1..4096", self.streams));
        }
        let memory = &self.memory;
        if memory.block_bytes < 4096 || memory.blocks == 0 || memory.max_row_bytes < memory.block_bytes {
            return refuse("block_bytes is below 4096, blocks is 0, or max_row_bytes is below block_bytes".to_owned());
        }
        // Positions in a block are 32 bits.
        if memory.max_row_bytes > 1 << 30 {
            return refuse("max_row_bytes is above 1 GiB".to_owned());
        }
        for slice in &self.source.slices {
            if slice.file >= self.source.files.len() || slice.begin_byte > slice.end_byte {
                return refuse(format!("slice {} has no such file or a negative size", slice.number));
            }
        }
        if let Some(generate) = &self.source.generate
            && let Err(error) = generate.table.parse::<TpchTable>()
        {
            return refuse(error.to_string());
        }
        if let SinkSpec::Arrow { columns, position } = &self.sink {
            let is_in_layout = |name: &String| self.layout.columns.iter().any(|column| column.name == *name);
            if let Some(name) = columns.iter().find(|name| !is_in_layout(name)) {
                return refuse(format!("the sink's column `{name}` is not in the layout"));
            }
            if let Some(name) = position.as_ref().filter(|name| is_in_layout(name)) {
                return refuse(format!("the position cannot be called `{name}`: the layout has such a column"));
            }
            let last = self.source.slices.iter().map(|slice| slice.number).max().unwrap_or(0);
            if position.is_some() && last > RowPosition::MAXIMUM_SLICE {
                return refuse(format!("rows have no positions in slices above {}", RowPosition::MAXIMUM_SLICE));
            }
        }
        Ok(())
    }
}
