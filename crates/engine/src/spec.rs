//! What a flow is told to do. Planned by Python, carried as JSON.

use std::collections::{HashMap, HashSet};

use headrace_generate::TpchTable;
use headrace_types::{CoreError, Encoding, ErrorKind, Layout, RowColumn, RowEnd, RowSchema};
use serde::{Deserialize, Serialize};

use crate::queue::Group;
use crate::report::SliceReport;
use crate::row_position::RowPosition;
use crate::text_hash::TextHash;

mod fronts;
mod join;
mod meeting;
mod postgres;
mod reunion;
mod routing;
mod sources;
mod tiling;
mod transforms;
mod tree;
mod union;
mod ways;

pub use join::JoinSpec;
pub use meeting::{JoinColumn, JoinKind, JoinSide, MeetingSpec};
pub use postgres::{CommitTime, CopyColumn, CopyTable, PostgresSinkSpec, Way};
pub use reunion::ReunionSpec;
pub use routing::{HashKind, HashSpec, MethodSpec, RangeSpec, RoutingSpec};
pub use sources::FlowSource;
pub use tiling::gap_or_overlap;
pub use transforms::{ComputedColumn, NoMatch, Operation, ProbeSpec, QuerySpec, SplitSpec, TransformSpec};
pub use union::UnionSpec;
pub use ways::{DestinationSpec, FlowFields, RowFields, RowsOf};

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
    /// Set for sources whose rows meet behind the parsers.
    #[serde(default)]
    pub join: Option<Box<JoinSpec>>,
    /// Set for several sources whose rows go on together.
    #[serde(default)]
    pub union: Option<Box<UnionSpec>>,
    /// What happens to rows behind the parser, or behind the join. Each reads what stands before it.
    #[serde(default)]
    pub transforms: Vec<TransformSpec>,
    /// Name of the destination, for messages about it.
    #[serde(default)]
    pub destination: String,
    /// Which rows the destination gets; those of the last transform if that is not said.
    #[serde(default)]
    pub input: Option<RowsOf>,
    /// The number of the source in whose front these rows are: they go to the destination past the join or union. None of all others.
    #[serde(default)]
    pub input_source: Option<usize>,
    /// Columns that the destination holds in a narrower form than the rows have them, or not as NULL: rows that do not fit are rejects.
    #[serde(default)]
    pub fit: Vec<RowColumn>,
    /// Which partition of its target each row belongs to; none if rows have no places.
    #[serde(default)]
    pub routing: Option<RoutingSpec>,
    /// Where batches go.
    pub sink: SinkSpec,
    /// Further destinations. `destination`, `input`, `input_source`, `fit`, `routing`, `sink` and the committed slices of the source are those of the first one.
    #[serde(default)]
    pub others: Vec<DestinationSpec>,
    /// Threads that read and parse; at least 1.
    pub streams: usize,
    /// CPUs of each stream, the first one first; streams beyond the list may use any.
    #[serde(default)]
    pub affinity: Vec<Vec<usize>>,
    /// Memory of blocks.
    pub memory: MemorySpec,
    /// What happens to rejects.
    pub rejects: RejectSpec,
}

/// Where bytes come from.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSpec {
    /// Files; virtual ones when the rows are generated.
    pub files: Vec<FileSpec>,
    /// Slices, numbered from 1 in file order.
    pub slices: Vec<SliceSpec>,
    /// Slices that an earlier attempt has committed, by number: none of their rows is sent again.
    #[serde(default)]
    pub committed: HashMap<u32, CommittedSlice>,
    /// Slices of which the first of several destinations gets nothing, by number: they hold rows that others lack.
    #[serde(default)]
    pub left_out: HashSet<u32>,
    /// Set when rows are generated instead of read: slice k is chunk k.
    #[serde(default)]
    pub generate: Option<GenerateSource>,
    /// Whether rows come as batches of a stream, of which the one slice is, instead of as text.
    #[serde(default)]
    pub gathered: bool,
    /// Sets of slices behind each of which all units commit together; none if they commit at the end.
    #[serde(default)]
    pub epochs: Vec<Vec<u32>>,
}

/// A file as it was when the plan was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// Absolute path, or a name for generated rows.
    pub path: String,
    /// Size, bytes; 0 for a stream.
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
    /// Where its first line starts in the text: behind a byte order mark.
    #[serde(default)]
    pub first_byte: u64,
    /// Lines at its start that are no data: skipped lines, comments and blank rows behind them, the header.
    #[serde(default)]
    pub head: Margin,
    /// Rows at its end that are no data.
    #[serde(default)]
    pub foot: Margin,
    /// The column of the layout, from 0, that each field of a row is of, none for other fields; none at all where fields stand in
    /// the layout's order.
    #[serde(default)]
    pub columns: Option<Vec<Option<usize>>>,
    /// How bytes stand for characters; of the layout's UTF-16 the one that its mark says.
    #[serde(default, skip_serializing_if = "Encoding::is_utf8")]
    pub encoding: Encoding,
    /// How its text is compressed.
    #[serde(default)]
    pub compression: Compression,
    /// Most memory that decoding it may take.
    #[serde(default)]
    pub decoder_bytes: u64,
    /// Set for what can be read only once, and is opened when it is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamSpec>,
    /// Whether its last row must have a row end: what was cut off looks like an end.
    #[serde(default)]
    pub needs_last_row_end: bool,
    /// Set where rows at its end that are no data are held back until it comes; `foot` is nothing then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldSpec>,
    /// Set for rows that come back: what columns that are made say of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<OriginSpec>,
}

/// Where rows stood that were rejected there, and come back from another file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OriginSpec {
    /// Path of their source file.
    pub path: String,
    /// A file with two numbers of 8 bytes for each line of the path, little-endian: row (from 1) and first byte in that source file.
    /// None if no column asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<String>,
}

/// The last rows of a text that cannot be read from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldSpec {
    /// How many.
    pub rows: u32,
    /// Their text, at most.
    pub text_bytes: u64,
    /// Memory that it takes, at most.
    pub memory_bytes: u64,
}

/// What is no data at one end of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Margin {
    /// Bytes.
    pub bytes: u64,
    /// Lines.
    pub lines: u64,
}

/// How text is compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip, BGZF included.
    Gzip,
    /// Zstandard.
    Zstd,
    /// The first bytes say it.
    Auto,
}

impl std::fmt::Display for Compression {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Auto => "auto",
        })
    }
}

/// Standard input or a named pipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamSpec {
    /// How long its first byte may take, seconds.
    pub wait_seconds: u64,
}

/// A byte range of one file that starts and ends on row boundaries; of a compressed file whole pieces of it, whose text need not do
/// so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Which text that is, where it is not just these bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextRange>,
    /// Lines of the path before it, where that is not the lines of its file before it: several files of one path take turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_row: Option<u64>,
}

/// Text of a slice of a compressed file, or of a stream. Places count bytes of the text of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextRange {
    /// Where the pieces of the slice begin.
    pub piece_begin: u64,
    /// Where they end; none if only the decoder can tell.
    pub piece_end: Option<u64>,
    /// First byte of the slice's first row.
    pub begin: u64,
    /// Byte behind its last row, which the pieces behind may hold; none for the end of the file.
    pub end: Option<u64>,
}

/// What the destination keeps of a slice that an earlier attempt has committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommittedSlice {
    /// Rows loaded.
    pub loaded: u64,
    /// Rows rejected.
    pub rejected: u64,
    /// Rows that queries have left out.
    #[serde(default)]
    pub filtered: u64,
    /// Header and blank lines.
    pub skipped: u64,
    /// Values of rows that were ignored: NULL or cut instead of what stands in the file.
    #[serde(default)]
    pub ignored: u64,
    /// The hash of its text; none of what an older version has committed.
    #[serde(default)]
    pub text_hash: Option<TextHash>,
}

impl CommittedSlice {
    /// Whether there is more to know of it than these numbers: which rows were rejected, in which columns values were ignored.
    fn needs_reading(self) -> bool {
        self.rejected > 0 || self.ignored > 0
    }
}

impl SourceSpec {
    /// Files of which nothing was read before.
    pub fn of_files(files: &[FileSpec], slices: &[SliceSpec]) -> Self {
        SourceSpec { files: files.to_vec(), slices: slices.to_vec(), ..SourceSpec::default() }
    }

    /// The slices whose rows this flow has to send.
    pub fn to_load(&self) -> impl Iterator<Item = &SliceSpec> {
        self.slices.iter().filter(|slice| !self.committed.contains_key(&slice.number))
    }

    /// A slice that is not in exactly one epoch, if there are epochs; what is wrong with it.
    fn misplaced_slice(&self) -> Option<String> {
        let mut seen = HashSet::new();
        let mut numbers = self.epochs.iter().flatten();
        if let Some(slice) = numbers.find(|&&slice| !seen.insert(slice)) {
            return Some(format!("slice {slice} is in two epochs"));
        }
        let all: HashSet<u32> = self.slices.iter().map(|slice| slice.number).collect();
        let other = all.symmetric_difference(&seen).min().filter(|_| !self.epochs.is_empty());
        other.map(|slice| format!("slice {slice} is in no epoch, or is none"))
    }

    /// The account of a slice that was committed.
    pub fn known(&self, slice: &SliceSpec) -> Option<SliceReport> {
        self.committed.get(&slice.number).map(|known| SliceReport::known(slice, known))
    }
}

impl SliceSpec {
    /// Size in the file, bytes; 0 when the rows are generated, or come from a stream.
    pub fn bytes(&self) -> u64 {
        self.end_byte - self.begin_byte
    }

    /// Whether nothing of its file stands behind it.
    pub fn ends(&self, file: &FileSpec) -> bool {
        self.text.map_or(self.end_byte == file.size_bytes, |text| text.end.is_none())
    }

    /// Its text.
    pub fn text(&self) -> TextRange {
        let &SliceSpec { begin_byte, end_byte, .. } = self;
        let end = Some(end_byte);
        self.text.unwrap_or(TextRange { piece_begin: begin_byte, piece_end: end, begin: begin_byte, end })
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
        /// Columns of the rows in destination order.
        columns: Vec<String>,
        /// Name of one more column, the [`RowPosition`] of each row; no column of the rows has it.
        #[serde(default)]
        position: Option<String>,
        /// Name of one more column, the last one: the place of each row; no column of the rows has it. Rows of one place
        /// stand together then, within a batch, unless they have positions. Otherwise rows keep their order.
        #[serde(default)]
        place_column: Option<String>,
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
    /// Rejects that do not fail the flow; none for any number.
    pub limit: Option<u64>,
    /// How many of a million rows may be rejects, judged when all rows are known; none for all.
    #[serde(default)]
    pub per_million: Option<u64>,
    /// The same for the rows of each file.
    #[serde(default)]
    pub per_file: Option<RejectBounds>,
    /// The same for the rows of all data flows of the run.
    #[serde(default)]
    pub run: Option<RunBounds>,
    /// How much is kept of a row that is longer than any buffer, bytes.
    #[serde(default = "longest_bytes")]
    pub longest_bytes: u64,
    /// Existing folder for the reject files.
    #[serde(default)]
    pub folder: String,
    /// Their name without ending.
    #[serde(default)]
    pub file_stem: String,
    /// Names of the files, as they may be shown; none if the paths may.
    #[serde(default)]
    pub names: Vec<String>,
    /// Whether each tells which of several destinations lack its row.
    #[serde(default)]
    pub tell_destinations: bool,
    /// What is kept of them.
    #[serde(default)]
    pub keep: KeepRejects,
}

impl Default for RejectSpec {
    /// Any number of rejects, in no folder.
    fn default() -> Self {
        RejectSpec {
            limit: None,
            per_million: None,
            per_file: None,
            run: None,
            longest_bytes: longest_bytes(),
            folder: String::new(),
            file_stem: String::new(),
            names: Vec::new(),
            tell_destinations: false,
            keep: KeepRejects::Files,
        }
    }
}

fn longest_bytes() -> u64 {
    1_000_000_000
}

/// How many rejects do not fail a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RejectBounds {
    /// So many; none for any number.
    #[serde(default)]
    pub limit: Option<u64>,
    /// So many of a million rows; none for all.
    #[serde(default)]
    pub per_million: Option<u64>,
}

/// The same of a run, and what its earlier data flows have read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunBounds {
    /// So many; none for any number.
    #[serde(default)]
    pub limit: Option<u64>,
    /// So many of a million rows; none for all.
    #[serde(default)]
    pub per_million: Option<u64>,
    /// Rejects before.
    pub rejected_before: u64,
    /// Rows before.
    pub rows_before: u64,
}

/// What is kept of rejects. Examples are for passes that load nothing: no limit holds for them, of no kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeepRejects {
    /// All of them, in files.
    #[default]
    Files,
    /// How many, and the first of each kind; nothing is written.
    Examples,
}

impl FlowSpec {
    /// A flow whose rows go nowhere, just as they are; with any number of rejects, in no folder.
    pub fn plain(name: &str, layout: Layout, source: SourceSpec, streams: usize, memory: MemorySpec) -> Self {
        FlowSpec {
            name: name.to_owned(),
            layout,
            source,
            join: None,
            union: None,
            transforms: Vec::new(),
            destination: String::new(),
            input: None,
            input_source: None,
            fit: Vec::new(),
            routing: None,
            sink: SinkSpec::Null,
            others: Vec::new(),
            streams,
            affinity: Vec::new(),
            memory,
            rejects: RejectSpec::default(),
        }
    }

    /// Leaves out the slices in which the sink is not interested: as if they were committed, without a row.
    pub fn leave_out_unwanted(&mut self) {
        if let SinkSpec::Locate { rows, .. } = &self.sink {
            let wanted: HashSet<u32> = rows.iter().map(|row| row.slice()).collect();
            let numbers = self.source.slices.iter().map(|slice| slice.number);
            let unwanted = numbers.filter(|number| !wanted.contains(number));
            self.source.committed.extend(unwanted.map(|number| (number, CommittedSlice::default())));
        }
    }

    /// The slices that go together whatever the sink is: those whose rows meet, and each other one alone.
    pub fn units(&self) -> Vec<Group> {
        let units = self.join.iter().flat_map(|join| join.units(&self.source));
        let alone = self.source.slices.iter().filter(|slice| !self.is_joined(slice)).map(|slice| vec![slice.clone()]);
        units.chain(alone).collect()
    }

    /// Whether the rows of a slice meet those of other ones.
    pub fn is_joined(&self, slice: &SliceSpec) -> bool {
        self.join.is_some() && !self.is_apart(self.source_of_file(slice.file))
    }

    /// Whether an earlier attempt has committed what goes together.
    pub fn is_committed(&self, unit: &[SliceSpec]) -> bool {
        unit.iter().all(|slice| self.is_slice_committed(slice.number))
    }

    /// Whether what was committed is read once more, for rejects and ignored values: the destination keeps their numbers only.
    pub fn needs_reading(&self, unit: &[SliceSpec]) -> bool {
        let committed = |slice: &SliceSpec| {
            let known = (0..self.destinations()).filter_map(|own| self.committed_in(own)?.get(&slice.number));
            known.copied().any(|known| known.needs_reading())
        };
        unit.iter().any(committed)
    }

    /// Whether some destination gets rows of it, now or then.
    pub fn is_wanted(&self, unit: &[SliceSpec]) -> bool {
        unit.iter().any(|slice| self.takers(slice.number).next().is_some())
    }

    /// Whether its rows stand in files: what a query has made of others, or came by a pipe, is gone.
    pub fn can_be_read_again(&self, unit: &[SliceSpec]) -> bool {
        let is_gone = |slice: &SliceSpec| self.source.files.get(slice.file).is_none_or(|file| file.stream.is_some());
        !self.source.gathered && !unit.iter().any(is_gone)
    }

    /// The layout of a file, by its index.
    pub fn layout_of(&self, file: usize) -> &Layout {
        self.layout_of_source(self.source_of_file(file))
    }

    /// The layouts of all files, with the index of the first file that has each.
    pub fn layouts(&self) -> Vec<(usize, &Layout)> {
        let others = self.several().iter().filter_map(|own| Some((own.first_file, own.layout.as_ref()?)));
        std::iter::once((0, &self.layout)).chain(others).collect()
    }

    /// Columns of the rows in front of the transforms; of those of a join or a union, behind what stands in front of that.
    ///
    /// # Errors
    /// `Specification` for transforms, and a join or a union, that do not fit the rows before them.
    pub fn first_schema(&self) -> Result<RowSchema, CoreError> {
        Ok(self.fields()?.of(RowsOf::FIRST).schema.clone())
    }

    /// Columns of the rows that the sink gets.
    ///
    /// # Errors
    /// `Specification` for transforms that do not fit the rows before them.
    pub fn row_schema(&self) -> Result<RowSchema, CoreError> {
        Ok(self.row_fields()?.0)
    }

    /// Columns of the rows that the sink gets, and the column in front of the transforms that each of them is, if it is one that stands in
    /// a file.
    ///
    /// # Errors
    /// `Specification` for transforms that do not fit the rows before them.
    pub fn row_fields(&self) -> Result<(RowSchema, Vec<Option<usize>>), CoreError> {
        let RowFields { schema, fields } = self.fields()?.of_destination(self, 0).clone();
        if self.fit.is_empty() {
            return Ok((schema, fields));
        }
        let fitted = |own: &RowColumn| self.fit.iter().find(|fit| fit.name == own.name).unwrap_or(own).clone();
        Ok((RowSchema::of_stream(schema.columns().iter().map(fitted).collect()), fields))
    }

    fn refused(&self, text: String) -> CoreError {
        CoreError::new(ErrorKind::Specification, format!("flow {}: {text}", self.name))
    }

    /// Whether the specification is consistent.
    pub fn check(&self) -> Result<(), CoreError> {
        let refuse = |text: String| Err(self.refused(text));
        if let Some(text) = self.layouts().into_iter().find_map(|(_, layout)| layout.check().err()) {
            return refuse(text);
        }
        let misfit = self.join.as_ref().and_then(|join| join.misfit(self));
        if let Some(text) = misfit.or_else(|| self.union.as_ref().and_then(|union| union.misfit(self))) {
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
            let text = slice.text();
            let is_backward = slice.begin_byte > slice.end_byte || text.end.is_some_and(|end| end < text.begin);
            if slice.file >= self.source.files.len() || is_backward || text.piece_begin > text.begin {
                return refuse(format!("slice {} has no such file or a negative size", slice.number));
            }
        }
        // A flow that only looks at a sample reads some of the slices.
        let is_load = self.sinks().any(|sink| matches!(sink, SinkSpec::Arrow { .. } | SinkSpec::Postgres(_)));
        if let Some(text) = gap_or_overlap(&self.source.files, &self.source.slices, false).filter(|_| is_load) {
            return refuse(text);
        }
        if let Some(generate) = &self.source.generate
            && let Err(error) = generate.table.parse::<TpchTable>()
        {
            return refuse(error.to_string());
        }
        if self.source.generate.is_some() && !self.layout.made.is_empty() {
            return refuse("generated rows stand in no file: their columns are not made".to_owned());
        }
        if self.source.gathered && (self.source.slices.len() != 1 || self.join.is_some()) {
            return refuse("rows of a stream are one slice, of no join".to_owned());
        }
        let names = self.rejects.names.len();
        if names > 0 && names != self.source.files.len() {
            return refuse(format!("{names} names of rejects are not those of {} files", self.source.files.len()));
        }
        if let Some(text) = self.source.misplaced_slice() {
            return refuse(text);
        }
        self.fields()?; // ways can be followed then
        (0..self.destinations()).try_for_each(|number| self.way(number).check_destination())
    }

    /// Whether the rows have what the one destination wants.
    fn check_destination(&self) -> Result<(), CoreError> {
        let refuse = |text: String| Err(self.refused(text));
        let schema = self.row_schema()?;
        if let SinkSpec::Arrow { columns, position, place_column } = &self.sink {
            let is_known = |name: &String| schema.index_of(name).is_some();
            if let Some(name) = columns.iter().find(|name| !is_known(name)) {
                return refuse(format!("the rows have no column `{name}`, which the sink wants"));
            }
            if let Some(name) = position.as_ref().filter(|name| is_known(name)) {
                return refuse(format!("the position cannot be called `{name}`: the rows have such a column"));
            }
            if let Some(name) = place_column {
                if is_known(name) {
                    return refuse(format!("the place cannot be called `{name}`: the rows have such a column"));
                }
                if self.routing.is_none() {
                    return refuse("rows have places only with `routing`".to_owned());
                }
                if position.as_ref() == Some(name) {
                    return refuse(format!("position and place cannot both be called `{name}`"));
                }
            }
            let last = self.source.slices.iter().map(|slice| slice.number).max().unwrap_or(0);
            if position.is_some() && last > RowPosition::MAXIMUM_SLICE {
                return refuse(format!("rows have no positions in slices above {}", RowPosition::MAXIMUM_SLICE));
            }
        }
        Ok(())
    }
}
