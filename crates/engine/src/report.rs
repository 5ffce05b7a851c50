//! What a flow did: counters, accounts, rejects. Carried to Python as JSON.

use std::collections::BTreeMap;

use headrace_types::{CoreError, Encoding, Location, RowEnd};
use serde::{Deserialize, Serialize};

use crate::spec::{CommittedSlice, FileSpec, SliceSpec};
use crate::text_hash::TextHash;

/// How a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Every slice ended well.
    Ok,
    /// It failed; see the error.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// Everything known about a flow that ended.
#[derive(Debug, Clone, Serialize)]
pub struct FlowReport {
    /// How it ended.
    pub status: Status,
    /// Why it did not end well.
    pub error: Option<CoreError>,
    /// Wall time from start to the end of the last stream.
    pub seconds: f64,
    /// Slices that ended well, now or in an earlier attempt.
    pub slices: Vec<SliceReport>,
    /// Streams.
    pub streams: Vec<StreamReport>,
    /// The consumer's side; of several destinations all together.
    pub sink: SinkReport,
    /// Aggregates of the null sink.
    pub columns: Option<Vec<ColumnReport>>,
    /// The sides of several destinations, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<DestinationReport>,
    /// Rejects.
    pub rejects: RejectReport,
    /// Blocks.
    pub memory: MemoryReport,
    /// Transforms, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<TransformReport>,
}

/// The side of one of several destinations.
#[derive(Debug, Clone, Serialize)]
pub struct DestinationReport {
    /// The consumer's side.
    pub sink: SinkReport,
    /// Aggregates of the null sink.
    pub columns: Option<Vec<ColumnReport>>,
}

/// What a transform has done in all streams. How many rows it had, say the slices.
#[derive(Debug, Clone, Serialize)]
pub struct TransformReport {
    /// Name.
    pub name: String,
    /// Time at work.
    pub busy_seconds: f64,
}

/// Accounts of a slice: lines = rows + skipped, rows = out + filtered + rejected. What comes out of one transform goes into the next.
/// With several destinations the second one holds for each of them; then `out` is the sum of theirs, `rejected` counts rows that any
/// way has refused, and nothing is `filtered`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SliceReport {
    /// Number in the plan.
    pub number: u32,
    /// Index of the file.
    pub file: usize,
    /// Stream that read it; none if everything was known from an earlier attempt.
    pub stream: Option<usize>,
    /// Whether an earlier attempt has committed its rows, so that none was given to the sink now.
    pub committed: bool,
    /// Bytes read now.
    pub bytes: u64,
    /// Lines of any kind.
    pub lines: u64,
    /// Lines of the head and foot of the file, comments, blank rows.
    pub skipped: u64,
    /// Of the lines that were read now, and that may end in two ways, those that end with a line feed alone.
    pub lf_lines: u64,
    /// The same with carriage return and line feed.
    pub crlf_lines: u64,
    /// Whether its text, in a page of one byte per character, holds characters of UTF-8 and nothing that is none; not told if all of
    /// it is ASCII.
    #[serde(default)]
    pub is_utf8: Option<bool>,
    /// Characters that were read now as U+FFFD, by column of the layout, from 0; in rows that were rejected, too.
    #[serde(default)]
    pub replaced: BTreeMap<usize, u64>,
    /// Fields with stray qualifiers that were taken as data now, by column of the layout, from 0; in rows
    /// that were rejected, too.
    #[serde(default)]
    pub stray_qualifiers: BTreeMap<usize, u64>,
    /// Rows with fewer fields than columns, or narrower than these, that were filled now; some of them may have been rejected.
    #[serde(default)]
    pub filled_rows: u64,
    /// The same of rows with more fields, or wider ones, whose last column has kept them.
    #[serde(default)]
    pub extended_rows: u64,
    /// Rows.
    pub rows: u64,
    /// Rejected rows.
    pub rejected: u64,
    /// Rows that queries have left out, or that have gone to an output that does not lead to the destination.
    #[serde(default)]
    pub filtered: u64,
    /// Of the rejected rows of a flow with one destination, and without a join, those that had come through all transforms.
    #[serde(default)]
    pub refused_at_end: u64,
    /// Rows given to the sink, now or then.
    pub out: u64,
    /// The same of each destination, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<DestinationCounts>,
    /// What has become of its rows in the join that they come into, if the flow has one; what comes out of the last one counts in the
    /// first slice of a unit, as do the rows of the transforms behind any join. Those in front of a source count in the slices of its files: rows = rows of the join +
    /// rows that they have left out + rejects of the parser and of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<JoinCounts>,
    /// In the first slice of a unit of joined ones, what has become of the rows of each join whose rows come into another one: in that,
    /// and as rejects in front of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inner: Vec<JoinCounts>,
    /// Rows of its transforms, in their order; none of a slice that was not read now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<TransformCounts>,
    /// Values of rows that the parser has made, by column of the layout, from 0, that are not those of the file: the layout says so. What
    /// becomes of the rows behind it makes no difference.
    #[serde(default)]
    pub ignored: BTreeMap<usize, Ignored>,
    /// The sum of them, now or then.
    #[serde(default)]
    pub values_ignored: u64,
    /// The hash of its text as it stands in the file, or in what that decompresses to; not told where nobody asks.
    #[serde(default)]
    pub text_hash: Option<TextHash>,
    /// How its rows are written, if it comes from a stream: that is known when it is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
}

/// What has become of the rows of a slice on the way to one destination: rows = out + filtered + rejected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DestinationCounts {
    /// Whether an earlier attempt has committed them, so that none was given to the sink now.
    pub committed: bool,
    /// Rows given to the sink, now or then.
    pub out: u64,
    /// Rows that the parser or something on the way has rejected.
    pub rejected: u64,
    /// Those among them that had come through all transforms; of what was committed before it is not known.
    #[serde(default)]
    pub refused_at_end: u64,
    /// Rows that queries have left out, or that have gone another way.
    pub filtered: u64,
}

/// Rows of one transform: of a lookup, rows = matched + defaulted + rejected; of a query, rows = matched + filtered + rejected; of a
/// split, rows = matched + rejected. To them come those of further outputs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransformCounts {
    /// Rows that came.
    pub rows: u64,
    /// Rows that have found another one; of a query, those that go on; of a split, those of its first output.
    pub matched: u64,
    /// Rows that have found nothing, and got defaults.
    pub defaulted: u64,
    /// Rows that do not go on: they have found nothing, or NULL for a column that cannot be NULL.
    #[serde(default)]
    pub rejected: u64,
    /// Of both, rows of which a column of the key is NULL.
    pub null_keys: u64,
    /// Rows that a query leaves out.
    #[serde(default)]
    pub filtered: u64,
    /// Rows of the outputs behind the first one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<u64>,
}

/// What has become of the rows of a slice in a join: what is not unmatched has met a row of the other side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinCounts {
    /// Rows that came.
    pub rows: u64,
    /// Rows that have met none of the other side.
    pub unmatched: u64,
    /// Of them, those that do not go on.
    pub filtered: u64,
    /// Of the unmatched, rows of which a column of the key is NULL.
    pub null_keys: u64,
    /// Rows that have come out, and are rejects because of what was found behind the join; behind any of those that their rows come into.
    /// Of the rows of a join that come into another one those that were refused before they came there.
    #[serde(default)]
    pub rejected: u64,
}

/// What rows of a file have of their own beside the layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialect {
    /// How they end.
    pub row_end: RowEnd,
    /// The column of each field, if their order is not that of the layout.
    pub columns: Option<Vec<Option<usize>>>,
    /// How bytes stand for characters.
    pub encoding: Encoding,
}

impl Dialect {
    /// Of a file that is read, as far as it cannot be looked at before.
    pub fn of_stream(file: &FileSpec) -> Option<Self> {
        let FileSpec { row_end, columns, encoding, .. } = file;
        let dialect = Dialect { row_end: row_end.clone(), columns: columns.clone(), encoding: *encoding };
        file.stream.is_some().then_some(dialect)
    }
}

/// Values of one column that break a rule, and are loaded as something else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ignored {
    /// As NULL.
    pub nulls: u64,
    /// Without what is too much.
    pub cut: u64,
}

impl SliceReport {
    /// The account of a slice before its first row.
    pub fn new(slice: &SliceSpec) -> Self {
        SliceReport {
            number: slice.number,
            file: slice.file,
            stream: None,
            committed: false,
            bytes: 0,
            lines: 0,
            skipped: 0,
            lf_lines: 0,
            crlf_lines: 0,
            is_utf8: None,
            replaced: BTreeMap::new(),
            stray_qualifiers: BTreeMap::new(),
            filled_rows: 0,
            extended_rows: 0,
            rows: 0,
            rejected: 0,
            filtered: 0,
            refused_at_end: 0,
            out: 0,
            destinations: Vec::new(),
            join: None,
            inner: Vec::new(),
            transforms: Vec::new(),
            ignored: BTreeMap::new(),
            values_ignored: 0,
            text_hash: None,
            dialect: None,
        }
    }

    /// The account as that of a flow with one of its destinations alone.
    pub fn of_destination(&self, number: usize) -> SliceReport {
        match self.destinations.get(number) {
            None => self.clone(),
            Some(&DestinationCounts { committed, out, rejected, filtered, .. }) => {
                SliceReport { committed, out, rejected, filtered, destinations: Vec::new(), ..self.clone() }
            }
        }
    }

    /// The account of a slice that an earlier attempt has committed.
    pub fn known(slice: &SliceSpec, known: &CommittedSlice) -> Self {
        let &CommittedSlice { loaded, rejected, filtered, skipped, ignored, text_hash } = known;
        let rows = loaded.saturating_add(rejected).saturating_add(filtered);
        SliceReport {
            committed: true,
            lines: rows.saturating_add(skipped),
            skipped,
            rows,
            rejected,
            filtered,
            out: loaded,
            values_ignored: ignored,
            text_hash,
            ..SliceReport::new(slice)
        }
    }
}

/// Counters of a stage of a stream.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct StageReport {
    /// Rows that left the stage.
    pub rows: u64,
    /// Bytes of source text behind them.
    pub bytes: u64,
    /// Time at work.
    pub busy_seconds: f64,
    /// Time waiting for the stage before.
    pub wait_input_seconds: f64,
    /// Time waiting for the stage behind, or for a free block.
    pub wait_output_seconds: f64,
}

/// Stages of a stream.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Stages {
    /// File bytes into blocks.
    pub read: StageReport,
    /// Blocks into batches.
    pub parse: StageReport,
    /// Transforms, and rows to their places; nothing without both.
    pub transform: StageReport,
    /// Batches into the sink.
    pub write: StageReport,
}

/// A stream that ended.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StreamReport {
    /// Number, from 1.
    pub number: usize,
    /// Slices it took.
    pub slices: u64,
    /// Rows it parsed.
    pub rows: u64,
    /// Bytes it read.
    pub bytes: u64,
    /// CPU time of its thread.
    pub cpu_seconds: f64,
    /// Time that its thread could have been on a CPU, and waited for one; none where the system does not tell.
    pub run_queue_seconds: Option<f64>,
    /// Its stages.
    pub stages: Stages,
}

/// The consumer's side of the sink.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SinkReport {
    /// Time the consumer waited for batches.
    pub wait_input_seconds: f64,
    /// Time the consumer was not asking for batches.
    pub busy_seconds: f64,
    /// Batches handed over.
    pub batches: u64,
    /// Rows handed over.
    pub rows: u64,
    /// Rows that the destination counted itself; none if it does not tell the sink.
    pub confirmed: Option<u64>,
    /// Of an `arrow` sink whose rows stand together by place: how many of each place the streams gave it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows_by_place: Vec<u64>,
    /// Of a `locate` sink: the places of the wanted rows, in their order; none for a row that was not met.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places: Option<Vec<Option<Location>>>,
}

/// Aggregates of one column, exact, as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnReport {
    /// Name.
    pub name: String,
    /// Rows, NULL or not.
    pub rows: u64,
    /// NULLs.
    pub nulls: u64,
    /// Sum of whole numbers and decimals.
    pub sum: Option<String>,
    /// Least value of numbers and times.
    pub min: Option<String>,
    /// Greatest value of numbers and times.
    pub max: Option<String>,
    /// Shortest text, code points.
    pub min_length: Option<u64>,
    /// Longest text, code points.
    pub max_length: Option<u64>,
    /// All texts together, code points.
    pub total_length: Option<u64>,
}

/// Rejects of the flow.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RejectReport {
    /// How many.
    pub count: u64,
    /// How many by rule.
    pub by_rule: BTreeMap<String, u64>,
    /// How many by column and rule: rejects of whole rows first, then the columns in the layout's order.
    pub by_column: Vec<RejectKind>,
    /// The first in file order, at most 10.
    pub first: Vec<LocatedReject>,
    /// Files written.
    pub files: Vec<String>,
    /// Rows of which only the front was kept.
    pub cut: u64,
}

/// Rejects of one column for one rule.
#[derive(Debug, Clone, Serialize)]
pub struct RejectKind {
    /// Column name; none if rows as a whole are to blame.
    pub column: Option<String>,
    /// Rule.
    pub rule: String,
    /// Stable code of the rule.
    pub code: String,
    /// How many.
    pub count: u64,
    /// The first in file order, at most 3.
    pub first: Vec<LocatedReject>,
}

/// A reject with its place in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocatedReject {
    /// Number, from 1, in file order over all files of the flow.
    pub number: u64,
    /// Row of the file, from 1; header and blank lines count.
    pub row: u64,
    /// First byte of the row in the `.bad` file.
    pub bad_byte: u64,
    /// File, as it may be shown.
    pub file: String,
    /// Number of the file, from 1.
    pub file_number: usize,
    /// First byte of the row in the file, from 0.
    pub row_byte: u64,
    /// Bytes of the row in the file.
    pub row_bytes: u64,
    /// First byte of the value, from 0.
    pub byte: u64,
    /// Column name.
    pub column: Option<String>,
    /// Column number, from 1.
    pub column_number: Option<usize>,
    /// Declared type of the column.
    #[serde(rename = "type")]
    pub column_type: Option<String>,
    /// The value as text; bytes that are not UTF-8 as \xNN; cut after 1,000 bytes.
    pub value: String,
    /// Rule.
    pub rule: String,
    /// Stable code of the rule.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// Bytes of the row in the `.bad` file; fewer than in the file if only the front was kept.
    pub bad_bytes: u64,
    /// The other values of the row that do not convert, at most 8.
    pub also: Vec<AlsoBad>,
    /// Of several destinations those that lack the row, by name; none where that is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destinations: Option<Vec<String>>,
}

/// Another value of a rejected row that does not convert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlsoBad {
    /// Column name.
    pub column: String,
    /// Rule.
    pub rule: String,
    /// Stable code of the rule.
    pub code: String,
    /// First byte of the value, from 0.
    pub byte: u64,
}

/// Blocks of the flow.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MemoryReport {
    /// Most blocks in use at once.
    pub peak_blocks: usize,
    /// Blocks beyond the plan, because the consumer kept all others.
    pub overdraft_blocks: usize,
}

/// State of a running flow.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Snapshot {
    /// Bytes of text parsed.
    pub bytes_read: u64,
    /// Bytes of files and pipes that they came from.
    pub source_bytes_read: u64,
    /// Bytes of files that were read before that to count rows, where a column asks for their numbers.
    pub counted_bytes: u64,
    /// Rows parsed.
    pub rows_read: u64,
    /// Rows given to the sink.
    pub rows_out: u64,
    /// Rows rejected.
    pub rows_rejected: u64,
    /// Slices that ended.
    pub slices_done: u64,
    /// Slices of the plan.
    pub slices_total: u64,
    /// Streams that have not ended.
    pub streams_active: u64,
}
