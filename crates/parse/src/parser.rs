//! The parser: a block of bytes in; a batch, rejects and the number of consumed bytes out.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use headrace_types::{
    Column, ColumnType, CoreError, Disposition, EmptyField, Encoding, ErrorKind, Layout, RowEnd, RowSchema, Rule,
    StrayQualifiers, Trim, Unmappable,
};

use crate::automaton::RowScanner;
use crate::convert::{
    BadRows, BlockFacts, ColumnOutput, ColumnPlan, MOST_GROWTH_BYTES, Rewriting, Unescaped, note_stray,
};
use crate::finder::Finder;
use crate::infer::{GatherTiles, TableFacts};
use crate::made::{MadeColumns, Origins, RowStart};
use crate::raw::cpu::{CpuPath, Task, cpu_path};
use crate::raw::fields::{FieldTable, TILE_ROWS, Text, TileMemory};
use crate::raw::high::HighBytes;
use crate::raw::memory::{Carver, Memory, PADDING_BYTES, carved_bytes};
use crate::reject::{BadValue, OtherValue, Reject, shown};
use crate::rows::{BadShape, LineEnds, Shape, UnequalRows};
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
    /// Characters that were replaced, by column of the batch; empty if there were none.
    pub replaced: Vec<u64>,
    /// Fields with qualifiers in other places than around them that were taken as data, by column of the batch; empty if there were none.
    pub stray: Vec<u64>,
    /// Well-formed rows with more or fewer fields than columns.
    pub unequal: UnequalRows,
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

/// Arrow schema of a layout's columns: those that are parsed, and behind them those that are made.
pub fn arrow_schema(layout: &Layout) -> SchemaRef {
    RowSchema::of(layout).arrow()
}

/// A row of a batch that is not to be loaded, although its values convert.
#[derive(Debug, Clone)]
pub struct RefusedRow {
    /// Its number in the batch, from 0.
    pub number: u32,
    /// Column index in the layout, from 0; none when no field of the row is to blame.
    pub column: Option<usize>,
    /// The rule.
    pub rule: Rule,
    /// What is to be said beside that.
    pub note: Option<Arc<str>>,
    /// As in [`Reject::lacking`].
    pub lacking: Option<Arc<[usize]>>,
}

/// Parses the blocks of one slice after the other. Holds no text between calls, only positions and counters.
pub struct Parser {
    layout: Layout,
    rewriting: Rewriting,
    columns: Vec<ColumnPlan>,
    /// Columns of the file, by index, that nobody wants.
    unwanted: Vec<usize>,
    made: MadeColumns,
    schema: SchemaRef,
    /// That of the columns that are parsed.
    parsed_schema: SchemaRef,
    cpu_path: CpuPath,
    // State of the current slice.
    row_end: RowEnd,
    next_line: u64,
    guess: Guess,
    // Scratch, reused for every block.
    finder: Finder,
    high: HighBytes,
    bad: BadRows,
    block: BlockPlace,
}

/// Whether text in a page of one byte per character could be UTF-8 as well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Guess {
    /// It is ASCII, or nobody wants to know.
    #[default]
    Either,
    /// All of it is UTF-8, with characters of several bytes.
    Utf8,
    /// It is not.
    Page,
}

/// Where the last block stands, and what its rejects need of it besides its text.
#[derive(Default)]
struct BlockPlace {
    /// Bytes in front that were parsed before, and bytes of text behind them.
    from: usize,
    length: usize,
    /// First byte of the text in the file.
    first_byte: u64,
    /// Bytes of the text that are the file's.
    real_bytes: usize,
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
        Self::of_columns(layout, &(0..layout.all_columns().count()).collect::<Vec<_>>())
    }

    /// The same, but only the columns `wanted` (indexes among all of the layout, those that are made behind those of the file)
    /// are converted or made: batches have no others, and what stands in the others is looked at only to find where rows and
    /// fields end. Columns that are made stand behind the others, whatever the order of `wanted`.
    ///
    /// # Errors
    /// Those of [`Parser::new`]; `Specification` for a column that is not in the layout.
    pub fn of_columns(layout: &Layout, wanted: &[usize]) -> Result<Self, CoreError> {
        layout.check().map_err(|text| CoreError::new(ErrorKind::Specification, text))?;
        if let Some(index) = wanted.iter().find(|&&index| index >= layout.all_columns().count()) {
            return Err(CoreError::new(ErrorKind::Specification, format!("the layout has no column {}", index + 1)));
        }
        let (parsed, made): (Vec<usize>, Vec<usize>) = wanted.iter().partition(|&&index| index < layout.columns.len());
        let columns = parsed.iter().map(|&index| (index, &layout.columns[index]));
        let columns = columns.map(|(index, column)| ColumnPlan::new(index, column, layout));
        let columns: Vec<ColumnPlan> = columns.collect();
        if let Some(column) = columns.iter().find(|column| !column.takes_constant()) {
            let Column { name, column_type, .. } = &layout.columns[column.index];
            let what = format!("layout: what `empty` of column `{name}` gives is no value of it");
            return Err(CoreError::new(ErrorKind::Specification, what)
                .expected(format!("a text of the type {column_type}, in the format of the column"))
                .hint("Correct `empty` of the column, or of the layout."));
        }
        let project = |columns: &[usize]| {
            arrow_schema(layout).project(columns).map(Arc::new).map_err(|error| internal(&error.to_string()))
        };
        let schema = project(&[&parsed[..], &made].concat())?;
        let parsed_schema = project(&parsed)?;
        // The row ends that any file of the layout may have, until a slice says which.
        let row_end = layout.known_row_end().unwrap_or(RowEnd::Either);
        Ok(Parser {
            rewriting: Rewriting {
                qualifier: layout.qualifier.map(|qualifier| qualifier as u8),
                escape: layout.escape.map(|escape| escape as u8),
                codes: layout.escape_codes,
                encoding: layout.encoding,
                unmappable: layout.unmappable,
            },
            columns,
            unwanted: (0..layout.columns.len()).filter(|index| !parsed.contains(index)).collect(),
            made: MadeColumns::new(made.iter().map(|&index| &layout.made[index - layout.columns.len()])),
            schema,
            parsed_schema,
            cpu_path: cpu_path()?,
            next_line: 0,
            guess: Guess::Either,
            high: HighBytes::default(),
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
        self.guess = Guess::Either;
        Ok(())
    }

    /// Says where the rows of the slice of this number stand: in this file, behind so many lines of it; or that they stood there once. Asked
    /// for by columns that are made.
    pub fn place_slice(&mut self, slice: u32, file_path: &str, lines_before: u64, origins: Option<Box<dyn Origins>>) {
        self.made.begin_slice(slice, file_path, lines_before, origins);
    }

    /// Whether the texts of the slice so far could be UTF-8, if they are read as those of another page.
    pub fn guess(&self) -> Guess {
        self.guess
    }

    /// How bytes stand for characters.
    pub fn encoding(&self) -> Encoding {
        self.layout.encoding
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
        self.parse_or_gather(block, slab, None)
    }

    /// The same, but where all fields are texts, and none of them can make a row bad, `facts` takes them: then the batch has rows, but
    /// no columns.
    ///
    /// # Errors
    /// Those of [`Parser::parse_rows`].
    pub fn parse_or_gather(
        &mut self,
        block: Block<'_>,
        slab: impl FnOnce(usize) -> Memory,
        facts: Option<&mut TableFacts>,
    ) -> Result<Parsed, CoreError> {
        let Block { buffer, from, length, real_length, first_byte, ended } = block;
        let whole = buffer.as_slice();
        let text = whole.get(from..).and_then(|rest| Text::new(rest, length.checked_sub(from)?));
        let text = text.ok_or_else(|| internal("a block is smaller than its text and padding"))?;
        let real_bytes = real_length.saturating_sub(from);
        let most_rows = self.most_rows(text.len());
        self.finder.find(self.cpu_path, text, ended, real_length < length, most_rows);
        self.bad.clear();
        let found = self.finder.found();
        let consumed = &text.bytes()[..found.consumed];
        let encoding = self.layout.encoding;
        let is_utf8 = |text: &[u8]| simdutf8::basic::from_utf8(text).is_ok();
        let is_whole = |text: &[u8]| !found.cut_characters && is_utf8(text);
        let is_decoded = found.non_ascii
            && match encoding {
                Encoding::Page(_) => true,
                Encoding::Utf8 if self.layout.unmappable == Unmappable::Reject => false,
                _ => !is_whole(consumed),
            };
        let is_invalid = found.non_ascii && !is_decoded && encoding.is_utf8() && !is_whole(consumed);
        let suspicious = found.nul || is_invalid;
        if found.non_ascii && encoding.page().is_some() && self.guess != Guess::Page {
            // What is open takes the rest; otherwise the characters may stand behind the last row of the block.
            let taken = if found.open.is_some() { text.bytes() } else { consumed };
            if !taken.is_ascii() {
                self.guess = if is_utf8(taken) { Guess::Utf8 } else { Guess::Page };
            }
        }
        self.high.clear();
        if is_decoded {
            self.high.find(self.cpu_path, text.bytes());
        }
        let (open, more) = (found.open, found.rows >= most_rows && !self.finder.needs_row_end());
        let mut parsed = Parsed {
            consumed: found.consumed,
            lines: found.lines,
            skipped: found.skipped,
            line_ends: found.line_ends,
            batch: None,
            rejected: found.bad.len() as u64,
            replaced: Vec::new(),
            stray: Vec::new(),
            unequal: found.unequal,
            more,
        };
        let takes_all = !suspicious && !is_decoded && !found.stray && self.are_all_texts();
        if let Some(facts) = facts.filter(|_| takes_all && found.rows > 0) {
            parsed.batch = Some(self.gather(text, facts)?);
        } else if found.rows > 0 {
            let text_buffer = buffer.slice_with_length(PADDING_BYTES + from, text.len());
            let (converted, Counted { replaced, stray }) = self.convert(text, &text_buffer, suspicious, slab)?;
            (parsed.replaced, parsed.stray) = (replaced, stray);
            parsed.batch = self.without_bad_rows(converted)?;
            parsed.batch = parsed
                .batch
                .take()
                .map(|batch| self.with_made(batch, &Places::new(text.bytes(), encoding, first_byte)))
                .transpose()?;
        }
        parsed.rejected += self.bad.found.len() as u64;
        let first_line = self.next_line;
        self.block = BlockPlace { from, length: text.len(), first_byte, real_bytes, first_line, open };
        if open.is_some() {
            parsed.consumed = length - from;
            parsed.lines += 1;
            parsed.rejected += 1;
        }
        self.next_line += parsed.lines;
        Ok(parsed)
    }

    /// The row end that a row without one gets where others are to follow it, as it stands in the file.
    pub fn own_row_end(&self) -> Cow<'static, [u8]> {
        match &self.row_end {
            RowEnd::Every(_) => Cow::Borrowed(b""),
            RowEnd::Exactly(text) => Cow::Owned(self.layout.encoding.source_text(&self.layout.encoded(text))),
            _ => Cow::Borrowed(self.layout.encoding.line_feed()),
        }
    }

    /// Most rows of a batch: their columns take no more memory than those of other texts of this length.
    fn most_rows(&self, length: usize) -> usize {
        // Of eight rows, so that bits are counted.
        let parsed: usize = self.columns.iter().map(|column| column.slab_bytes(8)).sum();
        let bytes = parsed + 8 * (self.made.row_bytes() + self.finder.kept_bytes_of_row());
        (8 * SLAB_FACTOR * length.max(LEAST_SLAB_TEXT_BYTES) / bytes.max(1)).max(TILE_ROWS)
    }

    /// Adds rows of its batch to the rejects of the block that [`Parser::parse_rows`] has just seen. They come in their order.
    /// To be called once for a batch.
    pub fn refuse(&mut self, rows: impl IntoIterator<Item = RefusedRow>) {
        let mut refused = rows.into_iter().peekable();
        let mut number = 0;
        // Rows of a batch are none that are bad: nothing else was noted of them.
        for row in 0..self.finder.found().rows {
            if refused.peek().is_none() {
                break;
            }
            if self.bad.contains(row) {
                continue;
            }
            if let Some(own) = refused.next_if(|own| own.number == number) {
                self.bad.refuse(row, own);
            }
            number += 1;
        }
    }

    /// Values of the rows of the block that [`Parser::parse_rows`] has just seen that break a rule and are loaded as something else: as
    /// NULL and cut, by column of the layout. Of rows that were not refused.
    pub fn ignored(&self) -> BTreeMap<usize, (u64, u64)> {
        self.bad.ignored()
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
        let BlockPlace { from, length, first_byte, real_bytes, first_line, open } = self.block;
        let start = PADDING_BYTES + from;
        let text = block.get(start..start + length).ok_or_else(|| internal("rejects of another block"))?;
        let encoding = self.layout.encoding;
        let places = Places::new(text, encoding, first_byte);
        let origin = Origin { text, encoding, first_line, real_bytes, places, row_end: self.own_row_end() };
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
        let end = origin.text.len().min(origin.real_bytes);
        let row = open.row_start as usize..origin.text.len();
        let rule = if open.is_qualifier { Rule::UnclosedQualifier } else { Rule::UnfinishedEscape };
        origin.reject(self.finder.found().lines, row, open.start as usize..end, column, rule, None)
    }

    /// Whether every field is a text, or NULL where nothing stands.
    fn are_all_texts(&self) -> bool {
        let is_text = |column: &Column| {
            column.column_type == ColumnType::String
                && column.format.is_none()
                && column.nullable
                && column.empty == EmptyField::Null
                && !column.qualified_empty_is_null
                && column.null_tokens.as_ref().unwrap_or(&self.layout.null_tokens).is_empty()
        };
        self.layout.columns.iter().all(is_text) && !self.rewriting.makes_bytes()
    }

    /// Facts about the rows of the block, and a batch of as many rows.
    fn gather(&self, text: Text<'_>, facts: &mut TableFacts) -> Result<RecordBatch, CoreError> {
        let rows = self.finder.found().rows;
        let table = self.finder.table(text, self.cpu_path);
        let table = table.ok_or_else(|| internal("the structural positions do not ascend"))?;
        let trims: Vec<Trim> = self.layout.columns.iter().map(|column| column.trim).collect();
        let line = |row| self.next_line + u64::from(self.finder.start(row).0);
        let tiles = GatherTiles { table: &table, trims: &trims, rewriting: self.rewriting, line: &line, facts };
        self.cpu_path.run(tiles).ok_or_else(|| internal("the table has fewer columns than the layout"))?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)
            .map_err(|error| internal(&error.to_string()))
    }

    fn convert(
        &mut self,
        text: Text<'_>,
        text_buffer: &Buffer,
        suspicious: bool,
        slab: impl FnOnce(usize) -> Memory,
    ) -> Result<(RecordBatch, Counted), CoreError> {
        let found = self.finder.found();
        let (rows, high_bytes) = (found.rows, self.high.count);
        let table = self.finder.table(text, self.cpu_path);
        let table = table.ok_or_else(|| internal("the structural positions do not ascend"))?;
        let table = table.decoded((high_bytes > 0).then_some(&self.high));
        let is_rewritten = found.rewritten || high_bytes > 0;
        // Behind the last text three bytes are written whatever its length.
        let unescaped_bytes = if is_rewritten { text.len() + MOST_GROWTH_BYTES * high_bytes + 3 } else { 0 };
        let columns_bytes: usize = self.columns.iter().map(|column| column.slab_bytes(rows)).sum();
        let mut slab = slab(columns_bytes + carved_bytes::<u8>(unescaped_bytes));
        let mut carver = Carver::new(&mut slab);
        let mut outputs = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            outputs.push(column.output(rows, &mut carver).ok_or_else(too_small)?);
        }
        let unescaped = match is_rewritten {
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
            stray: found.stray.then_some(self.layout.stray_qualifiers),
        };
        let mut counted = Counted::default();
        let tiles = ConvertTiles {
            table: &table,
            columns: &self.columns,
            unwanted: &self.unwanted,
            facts,
            outputs: &mut outputs,
            bad: &mut self.bad,
            counted: &mut counted,
        };
        run_tiles(self.cpu_path, tiles).ok_or_else(too_small)?;
        let used = facts.unescaped.map(Unescaped::used).filter(|&(_, length)| length > 0);
        let converted: Vec<_> = outputs.into_iter().map(ColumnOutput::finish).collect();
        let slab = slab.freeze();
        let mut texts = vec![text_buffer.clone()];
        texts.extend(used.map(|(offset, length)| slab.slice_with_length(offset, length)));
        let arrays: Vec<ArrayRef> = std::iter::zip(&self.columns, converted)
            .map(|(column, values)| column.array(values, rows, &slab, &texts))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.parsed_schema.clone(), arrays, &options)
            .map(|batch| (batch, counted))
            .map_err(|error| internal(&error.to_string()))
    }

    /// The batch, of the rows that are not bad, with the columns that are made.
    fn with_made(&mut self, batch: RecordBatch, places: &Places<'_>) -> Result<RecordBatch, CoreError> {
        let (rows, mut arrays) = (batch.num_rows(), batch.columns().to_vec());
        let (finder, bad, first_line) = (&self.finder, &self.bad, self.next_line);
        let start = |row| {
            let (line, byte) = finder.start(row);
            RowStart { line: first_line + u64::from(line), byte: places.of(byte as usize) }
        };
        let starts = (0..finder.found().rows).filter(|&row| !bad.contains(row)).map(start);
        arrays.extend(self.made.arrays(rows, &starts)?);
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
        self.bad.others.sort_unstable();
        let mut others = self.bad.others.iter().peekable();
        let shape = self.finder.shape();
        let found = self.finder.found();
        let mut shapes = found.bad.iter().peekable();
        for bad in &self.bad.found {
            let (row, column, rule) = (bad.row as usize, bad.column.map(|column| column as usize), bad.rule);
            let place = self.finder.place(row, origin.text);
            while let Some(bad) = shapes.next_if(|bad| bad.start < place.start) {
                on_reject(origin.bad_shape(bad, shape))?;
            }
            let whole = place.start as usize..place.next as usize;
            let value = match column {
                Some(column) => self.finder.field(row, column),
                None => whole.start..self.end_of_fields(row).unwrap_or(whole.end),
            };
            let note = |rule, value: &Range<usize>| (rule == Rule::Unmappable).then(|| origin.hole(value.clone()));
            let is_fatal = |column: usize, rule| self.layout.columns[column].disposition(rule) == Disposition::Fail;
            let fatal = |column: usize, rule| {
                let value = self.finder.field(row, column);
                let byte = origin.places.of(value.start);
                let note = note(rule, &value);
                Box::new(BadValue { column, rule, byte, value: shown(origin.encoding, &origin.text[value]), note })
            };
            let note = self.bad.note(bad).map(str::to_owned).or_else(|| note(rule, &value));
            let mut reject = origin.reject(u64::from(place.line), whole, value, column, rule, note);
            reject.lacking = self.bad.lacking(bad).cloned();
            reject.fatal = column.filter(|&column| is_fatal(column, rule)).map(|column| fatal(column, rule));
            while let Some(other) = others.next_if(|other| other.row as usize == row) {
                let (column, rule) = (other.column as usize, other.rule);
                if !other.is_surplus {
                    let byte = origin.places.of(self.finder.field(row, column).start);
                    reject.also.push(OtherValue { column, rule, byte });
                }
                if reject.fatal.is_none() && is_fatal(column, rule) {
                    reject.fatal = Some(fatal(column, rule));
                }
            }
            on_reject(reject)?;
        }
        shapes.try_for_each(|bad| on_reject(origin.bad_shape(bad, shape)))
    }

    /// Where the last field of a well-formed row ends, before its row end; none of a layout without columns.
    fn end_of_fields(&self, row: usize) -> Option<usize> {
        (0..self.layout.columns.len()).map(|column| self.finder.field(row, column).end).max()
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
    unwanted: &'a [usize],
    facts: BlockFacts<'a>,
    outputs: &'a mut [ColumnOutput<'o>],
    bad: &'a mut BadRows,
    counted: &'a mut Counted,
}

/// What is taken otherwise than it is in the file, by column; empty where there is none.
#[derive(Default)]
struct Counted {
    /// Characters that were replaced.
    replaced: Vec<u64>,
    /// Fields with stray qualifiers.
    stray: Vec<u64>,
}

impl Task for ConvertTiles<'_, '_> {
    type Output = Option<()>;

    #[inline(always)]
    fn run(self) -> Option<()> {
        let mut memory = TileMemory::default();
        for first_row in (0..self.table.rows()).step_by(TILE_ROWS) {
            for (index, (column, output)) in std::iter::zip(self.columns, &mut *self.outputs).enumerate() {
                let tile = self.table.load(column.index, first_row, column.trim, &mut memory)?;
                let stray = self.facts.stray.map_or(0, |stray| note_stray(tile, column.index, stray, self.bad));
                column.convert_tile(tile, self.facts, output, self.bad)?;
                let replaced = self.facts.unescaped.map_or(0, Unescaped::take_replaced);
                for (counts, count) in [(&mut self.counted.replaced, replaced), (&mut self.counted.stray, stray)] {
                    if count > 0 {
                        counts.resize(self.columns.len(), 0);
                        counts[index] += count;
                    }
                }
            }
            // Where fields may end in other places than they should, those that nobody wants make a row bad as well.
            for &column in self.unwanted.iter().filter(|_| self.facts.stray == Some(StrayQualifiers::Reject)) {
                let tile = self.table.load(column, first_row, Trim::None, &mut memory)?;
                note_stray(tile, column, StrayQualifiers::Reject, self.bad);
            }
        }
        Some(())
    }
}

/// Not generic, so that the converters are compiled with this crate: `convert` is compiled by each crate that calls it.
#[inline(never)]
fn run_tiles(path: CpuPath, tiles: ConvertTiles<'_, '_>) -> Option<()> {
    path.run(tiles)
}

fn too_small() -> CoreError {
    internal("the slab is smaller than its columns")
}

/// Where the text of a block stands in its file.
struct Origin<'a> {
    text: &'a [u8],
    encoding: Encoding,
    /// Line of the slice, from 0.
    first_line: u64,
    /// Bytes of the text that are the file's: a row end behind them was added by the caller.
    real_bytes: usize,
    places: Places<'a>,
    /// As it stands in the file.
    row_end: Cow<'static, [u8]>,
}

/// Places in the file of what stands in a text.
struct Places<'a> {
    text: &'a [u8],
    encoding: Encoding,
    /// A place in the text, and where it is in the file.
    counted: Cell<(usize, u64)>,
}

impl<'a> Places<'a> {
    /// `first_byte`: place of the text.
    fn new(text: &'a [u8], encoding: Encoding, first_byte: u64) -> Self {
        Places { text, encoding, counted: Cell::new((0, first_byte)) }
    }

    /// Place in the file. Counted from the place that was asked for before, which is near in either direction.
    fn of(&self, at: usize) -> u64 {
        let (before, place) = self.counted.get();
        let place = if before <= at {
            place + self.encoding.source_bytes(&self.text[before..at])
        } else {
            place - self.encoding.source_bytes(&self.text[at..before])
        };
        self.counted.set((at, place));
        place
    }
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
        let whole = &self.text[row.start..row.end.min(self.real_bytes).max(row.start)];
        Reject {
            line: self.first_line + line,
            row_byte: self.places.of(row.start),
            byte: self.places.of(value.start),
            column,
            rule,
            value: shown(self.encoding, &self.text[value]),
            note,
            row: self.encoding.source_text(whole),
            row_end: self.row_end.clone(),
            also: Vec::new(),
            fatal: None,
            lacking: None,
        }
    }

    /// What is no character in a value, and where.
    fn hole(&self, value: Range<usize>) -> String {
        match self.encoding.first_hole(&self.text[value.clone()]) {
            Some((at, what)) => format!("{what} at byte {}", self.places.of(value.start + at)),
            None => "an escaped number".to_owned(),
        }
    }
}

fn internal(what: &str) -> CoreError {
    CoreError::new(ErrorKind::Internal, format!("parser: {what}"))
}
