//! The parser: a block of bytes in; a batch, rejects and the number of consumed bytes out.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use headrace_types::{CoreError, ErrorKind, Layout, RowEnd, Rule};

use crate::automaton::RowScanner;
use crate::convert::{BadRows, BlockFacts, ColumnOutput, ColumnPlan, Unescaped};
use crate::raw::cpu::{CpuPath, Task, cpu_path};
use crate::raw::fields::{FieldTable, TILE_ROWS, Text, TileMemory};
use crate::raw::memory::{Carver, Memory, PADDING_BYTES, carved_bytes};
use crate::raw::structure::{Find, Structure};
use crate::reject::{Reject, cut};
use crate::rows::{BadShape, Rows, Shape};

/// Result of parsing one block.
#[derive(Debug)]
pub struct Parsed {
    /// Bytes up to and with the last row end; the rest belongs to the next block.
    pub consumed: usize,
    /// Lines among them: rows and skipped lines.
    pub lines: u64,
    /// Header and blank lines.
    pub skipped: u64,
    /// Rows that conform to the layout; none when there are no such rows.
    pub batch: Option<RecordBatch>,
    /// Rows that do not.
    pub rejected: u64,
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
    delimiter: u8,
    qualifier: Option<u8>,
    shape: Shape,
    header_rows: u32,
    columns: Vec<ColumnPlan>,
    schema: SchemaRef,
    cpu_path: CpuPath,
    // State of the current slice.
    header_left: u32,
    next_line: u64,
    // Scratch, reused for every block.
    structure: Structure,
    rows: Rows,
    bad: BadRows,
    block: BlockPlace,
}

/// Where the last block stands, and what its rejects need of it besides its text.
#[derive(Default)]
struct BlockPlace {
    /// Bytes of header at its front, and bytes of text behind them.
    skipped_bytes: usize,
    length: usize,
    /// First byte of the text behind the header, and the byte after the last one, in the file.
    first_byte: u64,
    real_end: u64,
    /// Line of the slice behind the header, from 0.
    first_line: u64,
    /// Whether the slice ended inside a qualifier.
    unclosed: bool,
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
        let columns = columns.map(|(index, column)| ColumnPlan::new(index, column, &layout.null_tokens));
        let fields = arrow_schema(layout).project(wanted).map_err(|error| internal(&error.to_string()))?;
        Ok(Parser {
            delimiter: layout.delimiter as u8,
            qualifier: layout.qualifier.map(|qualifier| qualifier as u8),
            shape: Shape {
                columns: layout.columns.len(),
                trailing_delimiter: layout.trailing_delimiter,
                row_end: RowEnd::Lf,
            },
            header_rows: layout.header_rows,
            columns: columns.collect(),
            schema: Arc::new(fields),
            cpu_path: cpu_path()?,
            header_left: 0,
            next_line: 0,
            structure: Structure::default(),
            rows: Rows::default(),
            bad: BadRows::default(),
            block: BlockPlace::default(),
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

    /// Starts a slice; `at_file_start` when header rows are still to come.
    pub fn begin_slice(&mut self, row_end: RowEnd, at_file_start: bool) {
        self.shape.row_end = row_end;
        self.header_left = if at_file_start { self.header_rows } else { 0 };
        self.next_line = 0;
    }

    /// Lines of the slice so far: the line number, from 0, of the next row.
    pub fn next_line(&self) -> u64 {
        self.next_line
    }

    /// Counts a line the caller consumed itself (one longer than `max_row`). True when it was a header line.
    pub fn skip_line(&mut self) -> bool {
        self.next_line += 1;
        let is_header = self.header_left > 0;
        self.header_left = self.header_left.saturating_sub(1);
        is_header
    }

    /// Parses a block and hands over its rejects: [`Parser::parse_rows`] and [`Parser::reject_rows`].
    ///
    /// # Errors
    /// Those of both.
    #[allow(clippy::too_many_arguments)] // places and lengths of one block; a struct of them would be made for one call
    pub fn parse(
        &mut self,
        block: &Buffer,
        length: usize,
        real_length: usize,
        first_byte: u64,
        ended: bool,
        slab: impl FnOnce(usize) -> Memory,
        on_reject: &mut dyn FnMut(Reject) -> Result<(), CoreError>,
    ) -> Result<Parsed, CoreError> {
        let parsed = self.parse_rows(block, length, real_length, first_byte, ended, slab)?;
        self.reject_rows(block, on_reject)?;
        Ok(parsed)
    }

    /// Parses a block; [`Parser::reject_rows`] has to follow.
    ///
    /// `block` holds [`PADDING_BYTES`] bytes of padding, `length` bytes of text, and padding again; `first_byte` is the place
    /// of the text in the file. `real_length` is `length`, or one less when the caller put a row end behind a last line
    /// that has none. `ended` says that the slice ends with this block, so that a qualifier left open in it is never closed.
    /// `slab` gives memory of at least the asked size for the typed columns.
    ///
    /// # Errors
    /// `Internal` when the block is smaller than it claims.
    pub fn parse_rows(
        &mut self,
        block: &Buffer,
        length: usize,
        real_length: usize,
        first_byte: u64,
        ended: bool,
        slab: impl FnOnce(usize) -> Memory,
    ) -> Result<Parsed, CoreError> {
        let whole = block.as_slice();
        let (skipped_bytes, header_lines) = self.skip_header(whole, length);
        let text = whole.get(skipped_bytes..).and_then(|rest| Text::new(rest, length - skipped_bytes));
        let text = text.ok_or_else(|| internal("a block is smaller than its text and padding"))?;
        let real_end = first_byte + real_length as u64;
        let first_byte = first_byte + skipped_bytes as u64;

        let is_crlf = self.shape.row_end == RowEnd::Crlf;
        let find = Find { delimiter: self.delimiter, qualifier: self.qualifier, is_crlf };
        self.structure.index(self.cpu_path, text, find);
        self.rows.find(self.shape, text, &self.structure);
        self.bad.clear();
        let consumed = &text.bytes()[..self.rows.consumed];
        let seen = self.structure.seen;
        let suspicious = seen.nul || (seen.non_ascii && simdutf8::basic::from_utf8(consumed).is_err());

        let text_buffer = block.slice_with_length(PADDING_BYTES + skipped_bytes, text.len());
        let mut batch = None;
        if self.rows.rows > 0 {
            let converted = self.convert(text, &text_buffer, suspicious, slab)?;
            batch = self.without_bad_rows(converted)?;
        }
        let unclosed = ended && seen.open;
        let first_line = self.next_line + header_lines;
        self.block = BlockPlace { skipped_bytes, length: text.len(), first_byte, real_end, first_line, unclosed };
        let mut parsed = Parsed {
            consumed: skipped_bytes + self.rows.consumed,
            lines: header_lines + self.rows.lines,
            skipped: header_lines + self.rows.skipped,
            batch,
            rejected: (self.rows.bad.len() + self.bad.found.len()) as u64,
        };
        if unclosed {
            parsed.consumed = length;
            parsed.lines += 1;
            parsed.rejected += 1;
        }
        self.next_line += parsed.lines;
        Ok(parsed)
    }

    /// Adds rows to the rejects of the block that [`Parser::parse_rows`] has just seen: `rows` of its batch, ascending, that
    /// broke `rule` with their value of `column`.
    pub fn refuse(&mut self, rows: &[u32], column: usize, rule: Rule) {
        let mut refused = rows.iter().peekable();
        let kept = (0..self.rows.rows).filter(|&row| !self.bad.contains(row)).zip(0_u32..);
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
        let BlockPlace { skipped_bytes, length, first_byte, real_end, first_line, unclosed } = self.block;
        let start = PADDING_BYTES + skipped_bytes;
        let text = block.get(start..start + length).ok_or_else(|| internal("rejects of another block"))?;
        let origin = Origin { text, first_byte, first_line, real_end };
        self.reject_complete_rows(&origin, on_reject)?;
        if unclosed {
            on_reject(self.unclosed(&origin))?;
        }
        self.structure.release_surplus();
        self.rows.release_surplus();
        Ok(())
    }

    /// The reject of everything behind the last row end: a row whose last qualifier is never closed.
    fn unclosed(&self, origin: &Origin<'_>) -> Reject {
        let start = self.rows.consumed;
        let marks = &self.structure.marks()[1..];
        let delimiters = &marks[marks.partition_point(|&mark| (mark as usize) < start)..];
        let opening = delimiters.last().map_or(start, |&mark| mark as usize + 1);
        let column = Some(delimiters.len()).filter(|&column| column < self.shape.columns);
        let end = origin.text.len().min((origin.real_end - origin.first_byte) as usize);
        let row = start..origin.text.len();
        origin.reject(self.rows.lines, row, opening..end, column, Rule::UnclosedQualifier, None)
    }

    /// A scanner at the start of a row.
    fn scanner(&self) -> RowScanner {
        RowScanner::new(self.delimiter, self.qualifier)
    }

    /// Bytes and lines of the header at the front of the block.
    fn skip_header(&mut self, whole: &[u8], length: usize) -> (usize, u64) {
        let text = whole.get(PADDING_BYTES..PADDING_BYTES + length).unwrap_or_default();
        let (mut bytes, mut lines) = (0, 0);
        let mut scanner = self.scanner();
        while self.header_left > 0 {
            let Some(end) = scanner.next_row_end(&text[bytes..]) else { break };
            bytes += end + 1;
            lines += 1;
            self.header_left -= 1;
        }
        // When the header goes on there is no row end behind `bytes`, so nothing there is taken for a row.
        (bytes, lines)
    }

    fn convert(
        &mut self,
        text: Text<'_>,
        text_buffer: &Buffer,
        suspicious: bool,
        slab: impl FnOnce(usize) -> Memory,
    ) -> Result<RecordBatch, CoreError> {
        let rows = self.rows.rows;
        let marks = self.rows.marks(&self.structure);
        let table =
            FieldTable::new(text, marks, self.rows.stride, rows, self.shape.columns, self.qualifier, self.cpu_path)
                .ok_or_else(|| internal("the structural positions do not ascend"))?;
        let seen = self.structure.seen;
        let escaping = self.qualifier.filter(|_| seen.doubled);
        let unescaped_bytes = if escaping.is_some() { text.len() } else { 0 };
        let columns_bytes: usize = self.columns.iter().map(|column| column.slab_bytes(rows)).sum();
        let mut slab = slab(columns_bytes + carved_bytes::<u8>(unescaped_bytes));
        let mut carver = Carver::new(&mut slab);
        let mut outputs = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            outputs.push(column.output(rows, &mut carver).ok_or_else(too_small)?);
        }
        let unescaped = match escaping {
            Some(qualifier) => {
                let (offset, bytes) = carver.carve(unescaped_bytes).ok_or_else(too_small)?;
                Some(Unescaped::new(qualifier, offset, bytes))
            }
            None => None,
        };
        let facts = BlockFacts {
            suspicious,
            path: self.cpu_path,
            unescaped: unescaped.as_ref(),
            text_behind: self.qualifier.filter(|_| seen.text_behind),
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
        let marks = self.rows.marks(&self.structure);
        let mut shapes = self.rows.bad.iter().peekable();
        for &(row, column, rule) in &self.bad.found {
            let (start, next) = self.rows.span(row, origin.text, marks, self.scanner());
            while let Some(bad) = shapes.next_if(|bad| (bad.start as usize) < start) {
                on_reject(origin.bad_shape(bad, self.shape))?;
            }
            let mark = row * self.rows.stride + column;
            let value = marks[mark].wrapping_add(1) as usize..marks[mark + 1] as usize;
            let line = self.rows.line_of_row.get(row).map_or(row as u64, |&line| u64::from(line));
            on_reject(origin.reject(line, start..next, value, Some(column), rule, None))?;
        }
        shapes.try_for_each(|bad| on_reject(origin.bad_shape(bad, self.shape)))
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
                let tile = self.table.load(column.index, first_row, &mut memory)?;
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
