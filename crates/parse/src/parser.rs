//! The parser: a block of bytes in; a batch, rejects and the number of consumed bytes out.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use headrace_types::{Column, CoreError, ErrorKind, Layout, RowEnd, Rule};

use crate::automaton::RowScanner;
use crate::convert::{BadRows, BlockFacts, ColumnOutput, ColumnPlan, Rewriting, Unescaped};
use crate::finder::Finder;
use crate::raw::cpu::{CpuPath, Task, cpu_path};
use crate::raw::fields::{FieldTable, TILE_ROWS, Text, TileMemory};
use crate::raw::memory::{Carver, Memory, PADDING_BYTES, carved_bytes};
use crate::reject::{Reject, cut};
use crate::rows::{BadShape, LineEnds, Shape};
use crate::walk::Open;

/// Bytes of typed columns per byte of text, at most: 16 for an empty text field, which takes at least its delimiter, and its
/// validity. Rows that are filled take less text: then a batch has fewer rows.
const SLAB_FACTOR: usize = 17;
/// The same is never asked of less text than this, bytes.
const LEAST_SLAB_TEXT_BYTES: usize = 64 << 10;

/// Result of parsing one block.
#[derive(Debug)]
pub struct Parsed {
    /// Bytes up to and with the last row end; the rest belongs to the next block.
    pub consumed: usize,
    /// Lines among them: rows and skipped lines.
    pub lines: u64,
    /// Comments and blank rows.
    pub skipped: u64,
    /// How lines end, where that may differ.
    pub line_ends: LineEnds,
    /// Rows that conform to the layout; none when there are no such rows.
    pub batch: Option<RecordBatch>,
    /// Rows that do not.
    pub rejected: u64,
    /// Whether there are more rows in the block than one batch may have: those behind `consumed` are to be parsed next.
    pub more: bool,
}

/// A text that begins with a row.
#[derive(Clone, Copy)]
pub struct Block<'a> {
    /// [`PADDING_BYTES`] bytes of padding, the text, and padding again.
    pub buffer: &'a Buffer,
    /// Bytes of the text that were parsed before.
    pub from: usize,
    /// Bytes of the text, with those before `from`.
    pub length: usize,
    /// `length`, or one less when the caller put a row end behind a last row that has none ([`Parser::needs_row_end`]).
    pub real_length: usize,
    /// Place in the file of the byte at `from`.
    pub first_byte: u64,
    /// Whether the slice ends with this block, so that what is open in it never ends.
    pub ended: bool,
}

impl Parsed {
    /// Rows of any kind.
    pub fn rows(&self) -> u64 {
        self.lines - self.skipped
    }
}

/// Arrow schema of a layout's parsed columns.
pub fn arrow_schema(layout: &Layout) -> SchemaRef {
    let fields: Vec<_> =
        layout.columns.iter().map(|column| column.column_type.arrow_field(&column.name, column.nullable)).collect();
    Arc::new(Schema::new(fields))
}

/// Parses the blocks of one slice after the other. Holds no text between calls, only positions and counters.
pub struct Parser {
    layout: Layout,
    rewriting: Rewriting,
    columns: Vec<ColumnPlan>,
    schema: SchemaRef,
    cpu_path: CpuPath,
    // State of the current slice.
    row_end: RowEnd,
    next_line: u64,
    // Scratch, reused for every block.
    finder: Finder,
    bad: BadRows,
    block: BlockPlace,
}

/// Where the last block stands, and what its rejects need of it besides its text.
#[derive(Default)]
struct BlockPlace {
    /// Bytes in front that were parsed before, and bytes of text behind them.
    from: usize,
    length: usize,
    /// First byte of the text, and the byte after the last one, in the file.
    first_byte: u64,
    real_end: u64,
    /// Line of the slice, from 0.
    first_line: u64,
    /// A field that never ends.
    open: Option<Open>,
}

impl Parser {
    /// A parser for files of `layout`.
    ///
    /// # Errors
    /// `Specification` when the layout cannot be parsed, or the processor lacks what `HEADRACE_CPU` asks for.
    pub fn new(layout: &Layout) -> Result<Self, CoreError> {
        Self::of_columns(layout, &(0..layout.columns.len()).collect::<Vec<_>>())
    }

    /// The same, but only the columns `wanted` (indexes in the layout) are converted: batches have no others, and what
    /// stands in the others is looked at only to find where rows and fields end.
    ///
    /// # Errors
    /// Those of [`Parser::new`]; `Specification` for a column that is not in the layout.
    pub fn of_columns(layout: &Layout, wanted: &[usize]) -> Result<Self, CoreError> {
        layout.check().map_err(|text| CoreError::new(ErrorKind::Specification, text))?;
        if let Some(index) = wanted.iter().find(|&&index| index >= layout.columns.len()) {
            return Err(CoreError::new(ErrorKind::Specification, format!("the layout has no column {}", index + 1)));
        }
        let columns = wanted.iter().map(|&index| (index, &layout.columns[index]));
        let columns = columns.map(|(index, column)| ColumnPlan::new(index, column, &layout.null_tokens, layout.escape));
        let columns: Vec<ColumnPlan> = columns.collect();
        if let Some(column) = columns.iter().find(|column| !column.takes_constant()) {
            let Column { name, column_type, .. } = &layout.columns[column.index];
            let what = format!("layout: what `empty` of column `{name}` gives is no value of it");
            return Err(CoreError::new(ErrorKind::Specification, what)
                .expected(format!("a text of the type {column_type}, in the format of the column"))
                .hint("Correct `empty` of the column, or of the layout."));
        }
        let fields = arrow_schema(layout).project(wanted).map_err(|error| internal(&error.to_string()))?;
        let row_end = layout.known_row_end().unwrap_or_default();
        Ok(Parser {
            rewriting: Rewriting {
                qualifier: layout.qualifier.map(|qualifier| qualifier as u8),
                escape: layout.escape.map(|escape| escape as u8),
                codes: layout.escape_codes,
            },
            columns,
            schema: Arc::new(fields),
            cpu_path: cpu_path()?,
            next_line: 0,
            finder: Finder::new(layout, &row_end)?,
            row_end,
            bad: BadRows::default(),
            block: BlockPlace::default(),
            layout: layout.clone(),
        })
    }

    /// The same parser on another instruction set; for tests.
    pub fn with_cpu_path(mut self, path: CpuPath) -> Self {
        self.cpu_path = path;
        self
    }

    /// Schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Starts a slice, of which `lines` lines were taken before.
    ///
    /// # Errors
    /// `Specification` for a layout that means two things with such row ends.
    pub fn begin_slice(&mut self, row_end: &RowEnd, lines: u64) -> Result<(), CoreError> {
        if self.row_end != *row_end {
            self.finder = Finder::new(&self.layout, row_end)?;
            self.row_end = row_end.clone();
        }
        self.next_line = lines;
        Ok(())
    }

    /// A scanner at the start of a row of the present file.
    pub fn scanner(&self) -> RowScanner {
        self.finder.scanner()
    }

    /// Whether a last row of a slice that has no line feed needs one.
    pub fn needs_row_end(&self) -> bool {
        self.finder.needs_row_end()
    }

    /// Lines of the slice so far: the line number, from 0, of the next row.
    pub fn next_line(&self) -> u64 {
        self.next_line
    }

    /// Counts a line the caller consumed itself (one longer than `max_row`).
    pub fn skip_line(&mut self) {
        self.next_line += 1;
    }

    /// Parses a block and hands over its rejects: [`Parser::parse_rows`] and [`Parser::reject_rows`].
    ///
    /// # Errors
    /// Those of both.
    pub fn parse(
        &mut self,
        block: Block<'_>,
        slab: impl FnOnce(usize) -> Memory,
        on_reject: &mut dyn FnMut(Reject) -> Result<(), CoreError>,
    ) -> Result<Parsed, CoreError> {
        let parsed = self.parse_rows(block, slab)?;
        self.reject_rows(block.buffer, on_reject)?;
        Ok(parsed)
    }

    /// Parses a block; [`Parser::reject_rows`] has to follow. `slab` gives memory of at least the asked size for the typed
    /// columns.
    ///
    /// # Errors
    /// `Internal` when the block is smaller than it claims.
    pub fn parse_rows(&mut self, block: Block<'_>, slab: impl FnOnce(usize) -> Memory) -> Result<Parsed, CoreError> {
        let Block { buffer, from, length, real_length, first_byte, ended } = block;
        let whole = buffer.as_slice();
        let text = whole.get(from..).and_then(|rest| Text::new(rest, length.checked_sub(from)?));
        let text = text.ok_or_else(|| internal("a block is smaller than its text and padding"))?;
        let real_end = first_byte + real_length.saturating_sub(from) as u64;
        let most_rows = self.most_rows(text.len());
        self.finder.find(self.cpu_path, text, ended, real_length < length, most_rows);
        self.bad.clear();
        let found = self.finder.found();
        let consumed = &text.bytes()[..found.consumed];
        let is_valid = || !found.cut_characters && simdutf8::basic::from_utf8(consumed).is_ok();
        let suspicious = found.nul || (found.non_ascii && !is_valid());
        let (open, more) = (found.open, found.rows >= most_rows && !self.finder.needs_row_end());
        let mut parsed = Parsed {
            consumed: found.consumed,
            lines: found.lines,
            skipped: found.skipped,
            line_ends: found.line_ends,
            batch: None,
            rejected: found.bad.len() as u64,
            more,
        };
        if found.rows > 0 {
            let text_buffer = buffer.slice_with_length(PADDING_BYTES + from, text.len());
            let converted = self.convert(text, &text_buffer, suspicious, slab)?;
            parsed.batch = self.without_bad_rows(converted)?;
        }
        parsed.rejected += self.bad.found.len() as u64;
        let first_line = self.next_line;
        self.block = BlockPlace { from, length: text.len(), first_byte, real_end, first_line, open };
        if open.is_some() {
            parsed.consumed = length - from;
            parsed.lines += 1;
            parsed.rejected += 1;
        }
        self.next_line += parsed.lines;
        Ok(parsed)
    }

    /// Most rows of a batch: their columns take no more memory than those of other texts of this length.
    fn most_rows(&self, length: usize) -> usize {
        // Of eight rows, so that bits are counted.
        let bytes: usize = self.columns.iter().map(|column| column.slab_bytes(8)).sum();
        (8 * SLAB_FACTOR * length.max(LEAST_SLAB_TEXT_BYTES) / bytes.max(1)).max(TILE_ROWS)
    }

    /// Adds rows to the rejects of the block that [`Parser::parse_rows`] has just seen: `rows` of its batch, ascending, that
    /// broke `rule` with their value of `column`.
    pub fn refuse(&mut self, rows: &[u32], column: usize, rule: Rule) {
        let mut refused = rows.iter().peekable();
        let kept = (0..self.finder.found().rows).filter(|&row| !self.bad.contains(row)).zip(0_u32..);
        let found: Vec<usize> =
            kept.filter(|(_, number)| refused.next_if_eq(&number).is_some()).map(|(row, _)| row).collect();
        found.into_iter().for_each(|row| self.bad.add(row, column, rule));
    }

    /// Hands over the rejects of the block that [`Parser::parse_rows`] has just seen, in file order. One at a time, because a
    /// block may consist of nothing else.
    ///
    /// # Errors
    /// Those of `on_reject`, which end the block; `Internal` for another block.
    pub fn reject_rows(
        &mut self,
        block: &Buffer,
        on_reject: &mut dyn FnMut(Reject) -> Result<(), CoreError>,
    ) -> Result<(), CoreError> {
        let BlockPlace { from, length, first_byte, real_end, first_line, open } = self.block;
        let start = PADDING_BYTES + from;
        let text = block.get(start..start + length).ok_or_else(|| internal("rejects of another block"))?;
        let origin = Origin { text, first_byte, first_line, real_end };
        self.reject_complete_rows(&origin, on_reject)?;
        if let Some(open) = open {
            on_reject(self.unclosed(&origin, open))?;
        }
        self.finder.release_surplus();
        Ok(())
    }

    /// The reject of everything behind the last row end: a row whose last qualifier or escape has no end.
    fn unclosed(&self, origin: &Origin<'_>, open: Open) -> Reject {
        let column = Some(open.column).filter(|&column| column < self.layout.columns.len());
        let end = origin.text.len().min((origin.real_end - origin.first_byte) as usize);
        let row = open.row_start as usize..origin.text.len();
        let rule = if open.is_qualifier { Rule::UnclosedQualifier } else { Rule::UnfinishedEscape };
        origin.reject(self.finder.found().lines, row, open.start as usize..end, column, rule, None)
    }

    fn convert(
        &mut self,
        text: Text<'_>,
        text_buffer: &Buffer,
        suspicious: bool,
        slab: impl FnOnce(usize) -> Memory,
    ) -> Result<RecordBatch, CoreError> {
        let found = self.finder.found();
        let rows = found.rows;
        let table = self.finder.table(text, self.cpu_path);
        let table = table.ok_or_else(|| internal("the structural positions do not ascend"))?;
        let unescaped_bytes = if found.rewritten { text.len() } else { 0 };
        let columns_bytes: usize = self.columns.iter().map(|column| column.slab_bytes(rows)).sum();
        let mut slab = slab(columns_bytes + carved_bytes::<u8>(unescaped_bytes));
        let mut carver = Carver::new(&mut slab);
        let mut outputs = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            outputs.push(column.output(rows, &mut carver).ok_or_else(too_small)?);
        }
        let unescaped = match found.rewritten {
            true => {
                let (offset, bytes) = carver.carve(unescaped_bytes).ok_or_else(too_small)?;
                Some(Unescaped::new(self.rewriting, offset, bytes))
            }
            false => None,
        };
        let facts = BlockFacts {
            suspicious,
            path: self.cpu_path,
            unescaped: unescaped.as_ref(),
            text_behind: found.text_behind,
        };
        let tiles =
            ConvertTiles { table: &table, columns: &self.columns, facts, outputs: &mut outputs, bad: &mut self.bad };
        self.cpu_path.run(tiles).ok_or_else(too_small)?;
        let used = facts.unescaped.map(Unescaped::used).filter(|&(_, length)| length > 0);
        let converted: Vec<_> = outputs.into_iter().map(ColumnOutput::finish).collect();
        let slab = slab.freeze();
        let mut texts = vec![text_buffer.clone()];
        texts.extend(used.map(|(offset, length)| slab.slice_with_length(offset, length)));
        let arrays: Vec<ArrayRef> = std::iter::zip(&self.columns, converted)
            .map(|(column, values)| column.array(values, rows, &slab, &texts))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
            .map_err(|error| internal(&error.to_string()))
    }

    /// Rows of another shape, rows that did not convert, and rows that were refused, in file order.
    fn reject_complete_rows(
        &mut self,
        origin: &Origin<'_>,
        on_reject: &mut dyn FnMut(Reject) -> Result<(), CoreError>,
    ) -> Result<(), CoreError> {
        // Found column by column.
        self.bad.found.sort_unstable();
        let shape = self.finder.shape();
        let found = self.finder.found();
        let mut shapes = found.bad.iter().peekable();
        for &(row, column, rule) in &self.bad.found {
            let place = self.finder.place(row, origin.text);
            while let Some(bad) = shapes.next_if(|bad| bad.start < place.start) {
                on_reject(origin.bad_shape(bad, shape))?;
            }
            let whole = place.start as usize..place.next as usize;
            let value = self.finder.field(row, column);
            on_reject(origin.reject(u64::from(place.line), whole, value, Some(column), rule, None))?;
        }
        shapes.try_for_each(|bad| on_reject(origin.bad_shape(bad, shape)))
    }

    fn without_bad_rows(&self, batch: RecordBatch) -> Result<Option<RecordBatch>, CoreError> {
        if self.bad.found.is_empty() {
            return Ok(Some(batch));
        }
        let keep: BooleanArray = (0..batch.num_rows()).map(|row| Some(!self.bad.contains(row))).collect();
        let kept = filter_record_batch(&batch, &keep).map_err(|error| internal(&error.to_string()))?;
        Ok((kept.num_rows() > 0).then_some(kept))
    }
}

/// Converts all columns of a tile, then those of the next. `None` when an output is too small.
struct ConvertTiles<'a, 'o> {
    table: &'a FieldTable<'a>,
    columns: &'a [ColumnPlan],
    facts: BlockFacts<'a>,
    outputs: &'a mut [ColumnOutput<'o>],
    bad: &'a mut BadRows,
}

impl Task for ConvertTiles<'_, '_> {
    type Output = Option<()>;

    #[inline(always)]
    fn run(self) -> Option<()> {
        let mut memory = TileMemory::default();
        for first_row in (0..self.table.rows()).step_by(TILE_ROWS) {
            for (column, output) in std::iter::zip(self.columns, &mut *self.outputs) {
                let tile = self.table.load(column.index, first_row, column.trim, &mut memory)?;
                column.convert_tile(tile, self.facts, output, self.bad)?;
            }
        }
        Some(())
    }
}

fn too_small() -> CoreError {
    internal("the slab is smaller than its columns")
}

/// Where the text of a block stands in its file.
struct Origin<'a> {
    text: &'a [u8],
    first_byte: u64,
    /// Line of the slice, from 0.
    first_line: u64,
    /// Byte after the last one of the file that is in the block: a row end behind it was added by the caller.
    real_end: u64,
}

impl Origin<'_> {
    fn bad_shape(&self, bad: &BadShape, shape: Shape) -> Reject {
        let row = bad.start as usize..bad.next as usize;
        let value = bad.start as usize..bad.end as usize;
        self.reject(u64::from(bad.line), row, value, None, bad.rule, Some(bad.note(shape)))
    }

    fn reject(
        &self,
        line: u64,
        row: Range<usize>,
        value: Range<usize>,
        column: Option<usize>,
        rule: Rule,
        note: Option<String>,
    ) -> Reject {
        let row_byte = self.first_byte + row.start as u64;
        let real_length = usize::try_from(self.real_end - row_byte).unwrap_or(usize::MAX);
        Reject {
            line: self.first_line + line,
            row_byte,
            byte: self.first_byte + value.start as u64,
            column,
            rule,
            value: cut(&self.text[value]),
            note,
            row: self.text[row.start..row.end.min(row.start.saturating_add(real_length))].to_vec(),
        }
    }
}

fn internal(what: &str) -> CoreError {
    CoreError::new(ErrorKind::Internal, format!("parser: {what}"))
}
