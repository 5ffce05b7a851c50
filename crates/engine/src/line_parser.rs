//! A row, or a few, for the rare cases in which single rows are asked for. By the parser itself, so that what a row is and
//! means is decided in one place.

use arrow_array::RecordBatch;
use headrace_parse::memory::{Memory, PADDING_BYTES};
use headrace_parse::{Parsed, Parser};
use headrace_types::{CoreError, Layout, RowEnd};

/// What a line is.
pub enum Line {
    /// A row that conforms to the layout, as a batch of one row.
    Row(RecordBatch),
    /// A row that does not.
    Reject,
    /// A header or blank line.
    Skipped,
}

/// Parses lines that the caller has found.
pub struct LineParser(Parser);

impl LineParser {
    /// A parser of lines; the first `header_rows` of them are header.
    ///
    /// # Errors
    /// Those of [`Parser::new`].
    pub fn new(layout: &Layout, row_end: RowEnd, header_rows: u64) -> Result<Self, CoreError> {
        let header_rows = u32::try_from(header_rows).unwrap_or(u32::MAX);
        let mut parser = Parser::new(&Layout { header_rows, ..layout.clone() })?;
        parser.begin_slice(row_end, true);
        Ok(LineParser(parser))
    }

    /// The line with its row end, which the last one of a file may lack.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn parse(&mut self, line: &[u8]) -> Result<Line, CoreError> {
        let parsed = self.parsed(line)?;
        Ok(match parsed.batch {
            Some(batch) => Line::Row(batch),
            None if parsed.rejected > 0 => Line::Reject,
            None => Line::Skipped,
        })
    }

    /// Of lines with their row ends those that are rows and conform to the layout; none if there are no such rows.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn rows(&mut self, lines: &[u8]) -> Result<Option<RecordBatch>, CoreError> {
        if lines.is_empty() { Ok(None) } else { Ok(self.parsed(lines)?.batch) }
    }

    fn parsed(&mut self, line: &[u8]) -> Result<Parsed, CoreError> {
        let mut memory = Memory::new(line.len() + 1 + 2 * PADDING_BYTES);
        memory.bytes_mut()[PADDING_BYTES..PADDING_BYTES + line.len()].copy_from_slice(line);
        let mut length = line.len();
        if line.last() != Some(&b'\n') {
            memory.bytes_mut()[PADDING_BYTES + length] = b'\n';
            length += 1;
        }
        let block = memory.freeze();
        self.0.parse(&block, length, line.len(), 0, true, Memory::new, &mut |_| Ok(()))
    }
}
