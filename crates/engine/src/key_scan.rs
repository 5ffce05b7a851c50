//! All keys of files: least and greatest, the periods that occur, or quantiles. What partitions are planned from where the
//! files themselves are not their bounds.
//!
//! A **pass** is a flow whose only converted column is the key. Keys are counted in buckets of equal width, as narrow as a
//! limited number of counters allows ([`counts`]). Periods are buckets by themselves. For quantiles, further passes count
//! only the keys of the buckets in which a bound lies, in narrower ones, until every bucket is one key: so bounds are exact,
//! whatever order the rows have and wherever slices begin.

mod counts;
mod distinct;
mod periods;
mod quantiles;
mod sink;

use std::sync::Arc;

use headrace_transform::partition::Key;
use headrace_types::{ColumnType, CoreError, ErrorKind, Layout};
use serde::{Deserialize, Serialize};

use crate::flow::Flow;
use crate::key_column::KeyColumn;
use crate::report::FlowReport;
use crate::sink::Sink;
use crate::spec::{FileSpec, FlowSpec, MemorySpec, SliceSpec, SourceSpec};
use distinct::DistinctSink;
pub use periods::Every;
use periods::Periods;
use quantiles::Quantiles;
use sink::{Buckets, Found, KeySink};

/// Text of one block, bytes: as in a load.
const BLOCK_BYTES: usize = 512 * 1024;
/// A longer row is no row: flows reject it.
const MAX_ROW_BYTES: usize = 64 << 20;
const CANCELLED: &str = "the scan of the keys was cancelled";

/// Which column of which files, and what to tell about it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyScanSpec {
    /// Files, as they were when their slices were cut.
    pub files: Vec<FileSpec>,
    /// Their slices.
    pub slices: Vec<SliceSpec>,
    /// Columns and dialect.
    pub layout: Layout,
    /// Column of the layout: whole numbers, decimals, dates or timestamps, or texts.
    pub column: String,
    /// Threads; at least 1.
    pub streams: usize,
    /// What to tell.
    pub want: Want,
}

/// What to tell about the keys.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Want {
    /// The periods in which keys lie.
    Periods(Every),
    /// Bounds of about equally many rows between them: the number of parts, 1 to 10,000.
    Quantiles(usize),
    /// The different keys of a column of texts, if there are not more than so many.
    Distinct(usize),
}

/// What the keys are, as canonical text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct KeyScan {
    /// Least key; none if there are no keys.
    pub minimum: Option<String>,
    /// Greatest key.
    pub maximum: Option<String>,
    /// Rows whose shape and key conform to the layout, those with a null key among them.
    pub rows: u64,
    /// Rows with a null key.
    pub nulls: u64,
    /// First key that each period can have in which keys lie, ascending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub periods: Option<Vec<String>>,
    /// First key of each part but the first, ascending, none twice. With the n keys in order, counted from 0, part i of N
    /// begins at key i * n / N, rounded down; a part that would begin with the least key is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantiles: Option<Vec<String>>,
    /// The different keys, in the order of their bytes; not there if they are too many or too long to be kept, and then rows and
    /// nulls are those that were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct: Option<Vec<String>>,
}

/// Reads the keys. Asks `is_cancelled` every few milliseconds, on the calling thread.
///
/// # Errors
/// `Specification` for a column that is not in the layout or whose keys are not of the kind that is asked for, for a period
/// that does not fit its type, and for periods or parts that are too many; `Source` and `FileChanged` for the files;
/// `Cancelled`.
pub fn key_scan(spec: &KeyScanSpec, is_cancelled: &mut dyn FnMut() -> bool) -> Result<KeyScan, CoreError> {
    match &spec.want {
        Want::Periods(every) => {
            let column = ordered_column(spec)?;
            let periods = Periods::new(column, every)?;
            let found = run_pass(spec, column, Buckets::Periods(periods), is_cancelled)?;
            let begins = periods.begins(&found.counts)?;
            Ok(KeyScan { periods: Some(texts(column, begins)), ..summary(column, &found) })
        }
        Want::Quantiles(parts) => {
            let column = ordered_column(spec)?;
            let found = run_pass(spec, column, Buckets::All, is_cancelled)?;
            let mut quantiles = Quantiles::new(*parts, &found)?;
            while let Some(parents) = quantiles.open() {
                let narrower = run_pass(spec, column, Buckets::Inside(Arc::new(parents)), is_cancelled)?;
                quantiles.narrow(&narrower.counts)?;
            }
            Ok(KeyScan { quantiles: Some(texts(column, quantiles.bounds())), ..summary(column, &found) })
        }
        Want::Distinct(most) => distinct(spec, *most, is_cancelled),
    }
}

fn ordered_column(spec: &KeyScanSpec) -> Result<KeyColumn, CoreError> {
    let refused = || refusal(format!("`{}` is not a column whose values can be keys", spec.column));
    KeyColumn::of(&spec.layout, &spec.column).ok_or_else(refused)
}

fn texts(column: KeyColumn, keys: Vec<Key>) -> Vec<String> {
    keys.into_iter().map(|key| column.text(key)).collect()
}

/// What every scan of keys with an order tells.
fn summary(column: KeyColumn, found: &Found) -> KeyScan {
    let (minimum, maximum) = found.range.map(|(least, greatest)| (column.text(least), column.text(greatest))).unzip();
    KeyScan { minimum, maximum, rows: found.rows, nulls: found.nulls, ..KeyScan::default() }
}

/// Reads all slices once.
fn run_pass(
    spec: &KeyScanSpec,
    column: KeyColumn,
    buckets: Buckets,
    is_cancelled: &mut dyn FnMut() -> bool,
) -> Result<Found, CoreError> {
    let sink = Arc::new(KeySink::new(column, buckets));
    let report = run_flow(spec, sink.clone(), is_cancelled)?;
    report.error.map_or_else(|| Ok(sink.found()), Err)
}

/// The different keys. Reads no further than until there are too many.
fn distinct(spec: &KeyScanSpec, most: usize, is_cancelled: &mut dyn FnMut() -> bool) -> Result<KeyScan, CoreError> {
    let column = spec.layout.columns.iter().position(|column| column.name == spec.column);
    let is_text = |index: &usize| {
        let column_type = spec.layout.columns[*index].column_type;
        matches!(column_type, ColumnType::String | ColumnType::Varchar { .. } | ColumnType::Char { .. })
    };
    let Some(column) = column.filter(is_text) else {
        return Err(refusal(format!("`{}` is not a column of texts", spec.column)));
    };
    let sink = Arc::new(DistinctSink::new(column, most));
    let mut was_cancelled = false;
    let report = run_flow(spec, sink.clone(), &mut || {
        was_cancelled = was_cancelled || is_cancelled();
        was_cancelled || sink.is_full()
    })?;
    let is_enough = sink.is_full() && !was_cancelled;
    if let Some(error) = report.error.filter(|error| !(is_enough && error.kind == ErrorKind::Cancelled)) {
        return Err(error);
    }
    let (distinct, rows, nulls) = sink.found();
    Ok(KeyScan { rows, nulls, distinct, ..KeyScan::default() })
}

/// Reads all slices into a sink, or until `stops` says so.
fn run_flow(spec: &KeyScanSpec, sink: Arc<dyn Sink>, stops: &mut dyn FnMut() -> bool) -> Result<FlowReport, CoreError> {
    Flow::into_sink(flow_spec(spec), sink)?.run(CANCELLED, stops)
}

fn flow_spec(spec: &KeyScanSpec) -> FlowSpec {
    let source = SourceSpec::of_files(&spec.files, &spec.slices);
    let memory =
        MemorySpec { block_bytes: BLOCK_BYTES, blocks: spec.streams.saturating_mul(2), max_row_bytes: MAX_ROW_BYTES };
    let name = format!("keys of {}", spec.column);
    FlowSpec::plain(&name, spec.layout.clone(), source, spec.streams, memory)
}

fn refusal(text: impl std::fmt::Display) -> CoreError {
    CoreError::new(ErrorKind::Specification, format!("key scan: {text}"))
}
