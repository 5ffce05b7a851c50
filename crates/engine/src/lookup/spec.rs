//! What a lookup is made of. Planned by Python, carried as JSON.

use headrace_types::{ColumnType, Layout, RowColumn, RowSchema};
use serde::{Deserialize, Serialize};

use crate::spec::{FileSpec, MemorySpec, SliceSpec};
use crate::text_hash::TextHash;

/// Rows of files that are to be found by their keys.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookupSpec {
    /// Name of the transform, for messages.
    pub name: String,
    /// Files, as they were when their slices were cut.
    pub files: Vec<FileSpec>,
    /// Their slices.
    pub slices: Vec<SliceSpec>,
    /// Columns and dialect.
    pub layout: Layout,
    /// Columns of the key; one or more.
    pub keys: Vec<LookupKey>,
    /// Columns that rows get.
    pub added: Vec<LookupColumn>,
    /// Whether of rows with one key the first one in the order of files and rows is found; else such keys are an error.
    pub keeps_first: bool,
    /// Whether texts are equal whose letters differ only in case.
    pub ignores_case: bool,
    /// Threads; at least 1.
    pub streams: usize,
    /// Most memory of the index, while it is built and behind that.
    pub budget_bytes: u64,
    /// Memory of the streams that read the files.
    pub memory: MemorySpec,
}

/// Rows of a query or table that are to be found by their keys: they come as a stream of Arrow batches.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamLookupSpec {
    /// Name of the transform, for messages.
    pub name: String,
    /// What the rows come from, as messages have it: `query` or `table`.
    pub source: String,
    /// The columns of the stream that are needed.
    pub columns: Vec<RowColumn>,
    /// Where each of them stands in its batches, from 0.
    pub places: Vec<usize>,
    /// Columns of the key; one or more.
    pub keys: Vec<LookupKey>,
    /// Columns that rows get.
    pub added: Vec<LookupColumn>,
    /// Whether of rows with one key the first one of the stream is found; else such keys are an error.
    pub keeps_first: bool,
    /// Whether texts are equal whose letters differ only in case.
    pub ignores_case: bool,
    /// Threads that fill the index; at least 1.
    pub streams: usize,
    /// Most memory of the index, while it is built and behind that.
    pub budget_bytes: u64,
}

/// What an index is to be made of, wherever its rows come from.
pub struct Wanted<'a> {
    pub name: &'a str,
    /// What rows come from, as messages have it.
    pub source: &'a str,
    pub rows: RowSchema,
    pub keys: &'a [LookupKey],
    pub added: &'a [LookupColumn],
    pub keeps_first: bool,
    pub ignores_case: bool,
    pub streams: usize,
    pub budget_bytes: u64,
}

impl LookupSpec {
    pub(super) fn wanted(&self) -> Wanted<'_> {
        Wanted {
            name: &self.name,
            source: "files",
            rows: RowSchema::of(&self.layout),
            keys: &self.keys,
            added: &self.added,
            keeps_first: self.keeps_first,
            ignores_case: self.ignores_case,
            streams: self.streams,
            budget_bytes: self.budget_bytes,
        }
    }
}

impl StreamLookupSpec {
    pub(super) fn wanted(&self) -> Wanted<'_> {
        Wanted {
            name: &self.name,
            source: &self.source,
            rows: RowSchema::of_stream(self.columns.clone()),
            keys: &self.keys,
            added: &self.added,
            keeps_first: self.keeps_first,
            ignores_case: self.ignores_case,
            streams: self.streams,
            budget_bytes: self.budget_bytes,
        }
    }
}

/// A column of the key.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookupKey {
    /// Column of the lookup.
    pub column: String,
    /// Type of the column in the rows that look for something.
    pub input: ColumnType,
}

/// A column that rows get.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookupColumn {
    /// Column of the lookup.
    pub column: String,
    /// What rows get that find nothing, as a text that the column's type accepts; NULL if none is given.
    pub default: Option<String>,
}

/// What an index has become.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LookupReport {
    /// Rows that can be found.
    pub rows: u64,
    /// Rows that were left out because a column of their key is NULL.
    pub null_keys: u64,
    /// Rows that were left out because a row before them has their key.
    pub duplicates: u64,
    /// Of keys and added columns of all rows, whatever their order: 16 hexadecimal digits.
    pub fingerprint: TextHash,
    /// Lines of the files, and those of them that are no rows: headers, blank lines, comments. Of a query, its rows.
    pub lines: u64,
    /// See `lines`.
    pub skipped: u64,
    /// Values that are not those of the files, because the layout says so.
    pub values_ignored: u64,
    /// Bytes of text that were read.
    pub bytes_read: u64,
    /// How keys are found.
    pub form: String,
    /// Memory of the index.
    pub bytes: u64,
    /// Most memory that building it took, readers not counted.
    pub peak_bytes: u64,
    /// Wall time.
    pub seconds: f64,
}
