//! What files hold: a look at their beginning and end, and a pass over all of them that gathers facts about every column.

mod look;
mod row_ends;
mod sink;

use std::collections::BTreeMap;
use std::sync::Arc;

use headrace_parse::infer::{ColumnReport, MOST_HASHES};
use headrace_types::{ColumnType, CoreError, ErrorKind, Layout, MadeColumn, MadeFrom};
use serde::{Deserialize, Serialize};

use crate::flow::Flow;
use crate::report::{LocatedReject, SliceReport};
use crate::spec::{FileSpec, FlowSpec, KeepRejects, MemorySpec, RejectSpec, SliceSpec, SourceSpec};
use sink::FactsSink;

pub use look::{FileLook, Look, LookSpec, look};
pub use row_ends::RowEndCounts;

/// Text of one block, bytes: as in a load.
const BLOCK_BYTES: usize = 512 * 1024;
/// A longer row is no row: flows reject it.
const MAX_ROW_BYTES: usize = 64 << 20;
/// Most memory for the hashes of all columns and streams.
const HASH_MEMORY_BYTES: usize = 64 << 20;
/// What a hash takes in its table, and before.
const HASH_BYTES: usize = 40;
/// With fewer hashes an estimate would mean little.
const FEWEST_HASHES: usize = 64;
const CANCELLED: &str = "the look through the files was cancelled";

/// A pass over files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InferSpec {
    /// Files, as they were when their slices were cut.
    pub files: Vec<FileSpec>,
    /// Those of their slices that shall be read.
    pub slices: Vec<SliceSpec>,
    /// Dialect and columns, all of them nullable texts.
    pub layout: Layout,
    /// Threads; at least 1.
    pub streams: usize,
    /// Whether different values are counted.
    #[serde(default = "yes")]
    pub wants_distinct: bool,
}

fn refuse_cancelled(is_cancelled: &mut dyn FnMut() -> bool) -> Result<(), CoreError> {
    if is_cancelled() { Err(CoreError::new(ErrorKind::Cancelled, CANCELLED)) } else { Ok(()) }
}

fn yes() -> bool {
    true
}

/// What a pass has found.
#[derive(Debug, Clone, Serialize)]
pub struct InferReport {
    /// Rows that are rows of the dialect.
    pub rows: u64,
    /// Lines that are no rows: of heads and foots of files, comments, blank ones.
    pub skipped: u64,
    /// The other rows.
    pub misfits: Misfits,
    /// Fields that begin with a quote, where the dialect has none.
    pub quoted_without_qualifier: u64,
    /// Fields with stray qualifiers that were taken as data.
    pub stray_fields: u64,
    /// Bytes of text that were read.
    pub bytes: u64,
    /// Whether different values were counted.
    pub has_distinct: bool,
    /// Facts about each column.
    pub columns: Vec<ColumnReport>,
}

/// Rows that are none of the dialect.
#[derive(Debug, Clone, Serialize)]
pub struct Misfits {
    /// How many.
    pub count: u64,
    /// How many by rule.
    pub by_rule: BTreeMap<String, u64>,
    /// The first of them in file order, at most 10.
    pub first: Vec<LocatedReject>,
}

/// Reads the slices. Asks `is_cancelled` every few milliseconds, on the calling thread.
///
/// # Errors
/// `Specification` for a layout with other columns than texts that may be null; `Source` and `FileChanged` for the files;
/// `Cancelled`.
pub fn infer_columns(spec: &InferSpec, is_cancelled: &mut dyn FnMut() -> bool) -> Result<InferReport, CoreError> {
    let columns = &spec.layout.columns;
    if let Some(column) = columns.iter().find(|column| column.column_type != ColumnType::String || !column.nullable) {
        let what = format!("inference: column `{}` is not a text that may be null", column.name);
        return Err(CoreError::new(ErrorKind::Specification, what));
    }
    let per_stream = HASH_MEMORY_BYTES / HASH_BYTES / columns.len().max(1) / spec.streams.max(1);
    let hashes = if spec.wants_distinct && per_stream >= FEWEST_HASHES { per_stream.min(MOST_HASHES) } else { 0 };
    let has_memory = hashes == MOST_HASHES;
    let sink = Arc::new(FactsSink::new(columns.len(), hashes, has_memory));
    let report = Flow::into_sink(flow_spec(spec), sink.clone())?.run(CANCELLED, is_cancelled)?;
    if let Some(error) = report.error {
        return Err(error);
    }
    let lines_before = lines_before(&report.slices);
    let locate = |(slice, line): (u32, u64)| {
        let (file, before) = lines_before.get(&slice).copied().unwrap_or_default();
        (file, before + line + 1)
    };
    let facts = sink.found();
    let reports = columns.iter().zip(&facts).map(|(column, facts)| facts.report(&column.name, &locate));
    let reports: Vec<ColumnReport> = reports.collect();
    let quoted = reports.iter().map(|column| column.quoted).sum();
    Ok(InferReport {
        rows: report.slices.iter().map(|slice| slice.out).sum(),
        skipped: report.slices.iter().map(|slice| slice.skipped).sum(),
        misfits: Misfits { count: report.rejects.count, by_rule: report.rejects.by_rule, first: report.rejects.first },
        quoted_without_qualifier: if spec.layout.qualifier.is_none() { quoted } else { 0 },
        stray_fields: report.slices.iter().flat_map(|slice| slice.stray_qualifiers.values()).sum(),
        bytes: report.slices.iter().map(|slice| slice.bytes).sum(),
        has_distinct: hashes > 0,
        columns: reports,
    })
}

/// The file of each slice, and the lines of that file before it.
fn lines_before(slices: &[SliceReport]) -> BTreeMap<u32, (usize, u64)> {
    let mut lines = BTreeMap::new();
    let before = |slice: &SliceReport| {
        let own: &mut u64 = lines.entry(slice.file).or_default();
        let before = *own;
        *own += slice.lines;
        (slice.number, (slice.file, before))
    };
    slices.iter().map(before).collect()
}

fn flow_spec(spec: &InferSpec) -> FlowSpec {
    let mut layout = spec.layout.clone();
    let is_taken = |name: &str| layout.columns.iter().any(|column| column.name == name);
    let mut name = "row".to_owned();
    while is_taken(&name) {
        name.push('_');
    }
    layout.made = vec![MadeColumn { name, from: MadeFrom::SliceRow }];
    let source = SourceSpec::of_files(&spec.files, &spec.slices);
    let memory =
        MemorySpec { block_bytes: BLOCK_BYTES, blocks: spec.streams.saturating_mul(2), max_row_bytes: MAX_ROW_BYTES };
    FlowSpec {
        rejects: RejectSpec { keep: KeepRejects::Examples, ..RejectSpec::default() },
        ..FlowSpec::plain("inference", layout, source, spec.streams, memory)
    }
}
