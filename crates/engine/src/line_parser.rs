//! A row, or a few, for the rare cases in which single rows are asked for. By the parser itself, so that what a row is and
//! means is decided in one place.

use arrow_array::RecordBatch;
use headrace_parse::memory::{Memory, PADDING_BYTES};
use headrace_parse::{Block, Parsed, Parser};
use headrace_types::{CoreError, Layout, RowEnd};

use crate::spec::FileSpec;

/// What a line is.
pub enum Line {
    /// A row that conforms to the layout, as a batch of one row.
    Row(RecordBatch),
    /// A row that does not.
    Reject,
    /// A comment or blank row.
    Skipped,
}

/// Parses lines that the caller has found.
pub struct LineParser(Parser);

impl LineParser {
    /// A parser of lines of a file; its batches have the columns of the layout.
    ///
    /// # Errors
    /// Those of [`Parser::new`].
    pub fn of_file(layout: &Layout, file: &FileSpec) -> Result<Self, CoreError> {
        Self::of_columns(layout, file, &(0..layout.columns.len()).collect::<Vec<_>>())
    }

    /// The same, of which only these columns have to convert; those that are made are left out.
    ///
    /// # Errors
    /// Those of [`Parser::new`].
    pub fn of_columns(layout: &Layout, file: &FileSpec, columns: &[usize]) -> Result<Self, CoreError> {
        let read: Vec<usize> = columns.iter().copied().filter(|&index| index < layout.columns.len()).collect();
        let mut parser = file.parser(layout, &read)?;
        parser.begin_slice(&file.row_end, 0)?;
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
        let mut found = Line::Skipped;
        self.each(line, |parsed| {
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
            self.each(lines, |parsed| batches.extend(parsed.batch))?;
        }
        Ok(batches)
    }

    fn each(&mut self, lines: &[u8], mut take: impl FnMut(Parsed)) -> Result<(), CoreError> {
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
            let block = Block { buffer: &buffer, from, length, real_length: lines.len(), first_byte: 0, ended: true };
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
