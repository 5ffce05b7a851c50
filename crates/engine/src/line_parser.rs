//! A row, or a few, for the rare cases in which single rows are asked for. By the parser itself, so that what a row is and
//! means is decided in one place.

use arrow_array::RecordBatch;
use headrace_parse::memory::{Memory, PADDING_BYTES};
use headrace_parse::{Block, Parsed, Parser};
use headrace_types::{CoreError, Layout, RowEnd};

use crate::spec::{FileSpec, SliceSpec};

/// What a line is.
pub enum Line {
    /// A row that conforms to the layout, as a batch of one row.
    Row(RecordBatch),
    /// A row that does not.
    Reject,
    /// A comment or blank row.
    Skipped,
}

/// Lines that stand before those that are parsed.
#[derive(Debug, Clone, Copy)]
pub struct LinesBefore {
    /// Before the slice, in its file.
    pub in_file: u64,
    /// Before the lines, in the slice; those of its head too.
    pub in_slice: u64,
}

/// Parses lines that the caller has found.
pub struct LineParser(Parser);

impl LineParser {
    /// A parser of lines of a file; its batches have the columns of the layout, but for those that are made.
    ///
    /// # Errors
    /// Those of [`Parser::new`].
    pub fn of_file(layout: &Layout, file: &FileSpec) -> Result<Self, CoreError> {
        let mut parser = file.parser(layout, &(0..layout.columns.len()).collect::<Vec<_>>())?;
        parser.begin_slice(&file.row_end, 0)?;
        Ok(LineParser(parser))
    }

    /// A parser of the lines of a slice from one on, of which only these columns have to convert, or all; those that are made are
    /// made as when the slice was loaded.
    ///
    /// # Errors
    /// Those of [`Parser::new`], and of reading where rows of a replay stood.
    pub fn of_slice(
        layout: &Layout,
        file: &FileSpec,
        columns: Option<&[usize]>,
        slice: &SliceSpec,
        lines: LinesBefore,
    ) -> Result<Self, CoreError> {
        let all = || (0..layout.all_columns().count()).collect();
        let mut parser = file.parser(layout, &columns.map_or_else(all, <[usize]>::to_vec))?;
        parser.begin_slice(&file.row_end, lines.in_slice)?;
        file.place_rows(&mut parser, slice, lines.in_file)?;
        Ok(LineParser(parser))
    }

    /// A parser of lines that end with line feeds.
    ///
    /// # Errors
    /// Those of [`Parser::new`].
    pub fn new(layout: &Layout) -> Result<Self, CoreError> {
        let mut parser = Parser::new(layout)?;
        parser.begin_slice(&RowEnd::Lf, 0)?;
        Ok(LineParser(parser))
    }

    /// The line with its row end, which the last one of a file may lack.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn parse(&mut self, line: &[u8]) -> Result<Line, CoreError> {
        self.parse_at(0, line)
    }

    /// The same of a line whose first byte has this place in its file, as columns that are made say it.
    ///
    /// # Errors
    /// As [`LineParser::parse`].
    pub fn parse_at(&mut self, first_byte: u64, line: &[u8]) -> Result<Line, CoreError> {
        let mut found = Line::Skipped;
        self.each(first_byte, line, |parsed| {
            found = match parsed.batch {
                Some(batch) => Line::Row(batch),
                None if parsed.rejected > 0 => Line::Reject,
                None => Line::Skipped,
            }
        })?;
        Ok(found)
    }

    /// Of a few lines with their row ends those that are rows and conform to the layout, in batches of at least one row.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn rows(&mut self, lines: &[u8]) -> Result<Vec<RecordBatch>, CoreError> {
        let mut batches = Vec::new();
        if !lines.is_empty() {
            self.each(0, lines, |parsed| batches.extend(parsed.batch))?;
        }
        Ok(batches)
    }

    fn each(&mut self, first_byte: u64, lines: &[u8], mut take: impl FnMut(Parsed)) -> Result<(), CoreError> {
        let mut memory = Memory::new(lines.len() + 1 + 2 * PADDING_BYTES);
        memory.bytes_mut()[PADDING_BYTES..PADDING_BYTES + lines.len()].copy_from_slice(lines);
        let mut length = lines.len();
        if lines.last() != Some(&b'\n') && self.0.needs_row_end() {
            memory.bytes_mut()[PADDING_BYTES + length] = b'\n';
            length += 1;
        }
        let buffer = memory.freeze();
        let mut from = 0;
        loop {
            let block = Block { buffer: &buffer, from, length, real_length: lines.len(), first_byte, ended: true };
            let parsed = self.0.parse(block, Memory::new, &mut |_| Ok(()))?;
            from += parsed.consumed;
            let is_last = !parsed.more || from == length;
            take(parsed);
            if is_last {
                return Ok(());
            }
        }
    }
}
