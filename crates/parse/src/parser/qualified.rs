//! Blocks of a layout with a qualifier, the plain way: every row is copied without its qualifiers and converted from there.

use std::ops::Range;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use headrace_types::{CoreError, RowEnd, Rule};

use super::{Origin, Parsed, Parser, internal};
use crate::automaton::{Event, RowScanner};
use crate::fields::{FieldTable, Text};
use crate::memory::{Carver, Memory, PADDING_BYTES};
use crate::reject::Reject;
use crate::rows::BadShape;

/// A row as it stands in the block.
struct RawRow {
    /// Places of its fields.
    fields: Vec<Range<usize>>,
    /// Byte behind its row end.
    next: usize,
    is_closed: bool,
}

/// Rows without qualifiers, as [`crate::fields::Fields`] wants them.
#[derive(Default)]
struct Copied {
    text: Vec<u8>,
    marks: Vec<u32>,
    /// Per column, whether the field of each row was qualified.
    qualified: Vec<Vec<bool>>,
    /// Per row, its first field with text behind a closing qualifier.
    text_behind: Vec<Option<usize>>,
    /// Line, fields and first byte of each row.
    rows: Vec<(u64, RawRow, usize)>,
}

impl Parser {
    /// [`Parser::parse`] with a qualifier.
    pub(super) fn parse_qualified(
        &mut self,
        qualifier: u8,
        (block, length, ended): (&Buffer, usize, bool),
        (first_byte, real_length): (u64, usize),
        slab: impl FnOnce(usize) -> Memory,
        on_reject: &mut dyn FnMut(Reject) -> Result<(), CoreError>,
    ) -> Result<Parsed, CoreError> {
        let whole = block.as_slice();
        let text = whole.get(PADDING_BYTES..PADDING_BYTES + length);
        let text = text.ok_or_else(|| internal("a block is smaller than its text and padding"))?;
        let origin = Origin { text, first_byte, first_line: self.next_line, real_end: first_byte + real_length as u64 };
        let mut parsed = Parsed { consumed: 0, lines: 0, skipped: 0, batch: None, rejected: 0 };
        let mut copied = Copied { qualified: vec![vec![]; self.columns.len()], ..Copied::default() };
        let mut rejects: Vec<Reject> = Vec::new();
        while parsed.consumed < length {
            let start = parsed.consumed;
            let row = self.raw_row(qualifier, text, start);
            if !row.is_closed && !ended {
                break;
            }
            let line = parsed.lines;
            parsed.lines += 1;
            parsed.consumed = row.next;
            let is_header = self.header_left > 0;
            self.header_left = self.header_left.saturating_sub(1);
            let content = start..row.fields.last().map_or(start, |last| last.end);
            let marks = row.fields.len();
            if !row.is_closed {
                let column = Some(marks - 1).filter(|&column| column < self.columns.len());
                let value = row.fields[marks - 1].start..real_length;
                rejects.push(origin.reject(line, start..row.next, value, column, Rule::UnclosedQualifier, None));
            } else if is_header || (content.is_empty() && self.shape.marks() > 1) {
                parsed.skipped += 1;
            } else if let Some((rule, fields)) = self.bad_shape(&row) {
                let [start, end, next] = [content.start, content.end, row.next].map(|place| place as u32);
                let bad = BadShape { line: line as u32, start, end, next, rule, fields };
                rejects.push(origin.bad_shape(&bad, self.shape));
            } else {
                copied.add(qualifier, text, (line, row, start), self.columns.len());
            }
        }
        self.bad.clear();
        let mut batch = None;
        if !copied.rows.is_empty() {
            let converted = self.convert_copied(&mut copied, slab)?;
            // What stands behind closing qualifiers is only looked at now: the first bad column of a row names the reject.
            for (row, column, rule) in &mut self.bad.found {
                if let Some(behind) = copied.text_behind[*row].filter(|behind| behind <= column) {
                    (*column, *rule) = (behind, Rule::TextAfterQualifier);
                }
            }
            for (row, behind) in copied.text_behind.iter().enumerate() {
                if let Some(column) = *behind {
                    self.bad.add(row, column, Rule::TextAfterQualifier);
                }
            }
            batch = self.without_bad_rows(converted)?;
        }
        for &(row, column, rule) in &self.bad.found {
            let (line, raw, start) = &copied.rows[row];
            let value = raw.fields[column].clone();
            rejects.push(origin.reject(*line, *start..raw.next, value, Some(column), rule, None));
        }
        rejects.sort_by_key(|reject| reject.line);
        parsed.rejected = rejects.len() as u64;
        rejects.into_iter().try_for_each(on_reject)?;
        self.next_line += parsed.lines;
        Ok(Parsed { batch, ..parsed })
    }

    /// The row that starts at `start`.
    fn raw_row(&self, qualifier: u8, text: &[u8], start: usize) -> RawRow {
        let mut scanner = RowScanner::new(self.delimiter, Some(qualifier));
        let mut fields = Vec::new();
        let mut field_start = start;
        for (at, &byte) in text.iter().enumerate().skip(start) {
            match scanner.step(byte) {
                Event::Nothing => {}
                Event::Delimiter => {
                    fields.push(field_start..at);
                    field_start = at + 1;
                }
                Event::RowEnd => {
                    let is_crlf = self.shape.row_end == RowEnd::Crlf && at > field_start && text[at - 1] == b'\r';
                    fields.push(field_start..at - usize::from(is_crlf));
                    return RawRow { fields, next: at + 1, is_closed: true };
                }
            }
        }
        fields.push(field_start..text.len());
        RawRow { fields, next: text.len(), is_closed: false }
    }

    fn bad_shape(&self, row: &RawRow) -> Option<(Rule, u32)> {
        let ends_with_delimiter = row.fields.last().is_some_and(Range::is_empty);
        let is_trailing = self.shape.trailing_delimiter && ends_with_delimiter;
        let fields = row.fields.len() - usize::from(is_trailing);
        if fields > self.shape.columns {
            Some((Rule::TooManyFields, fields as u32))
        } else if fields < self.shape.columns || (self.shape.trailing_delimiter && !is_trailing) {
            Some((Rule::TooFewFields, fields as u32))
        } else {
            None
        }
    }

    fn convert_copied(
        &mut self,
        copied: &mut Copied,
        slab: impl FnOnce(usize) -> Memory,
    ) -> Result<RecordBatch, CoreError> {
        let length = copied.text.len();
        let mut memory = Memory::new(length + 2 * PADDING_BYTES);
        memory.bytes_mut()[PADDING_BYTES..PADDING_BYTES + length].copy_from_slice(&copied.text);
        let block = memory.freeze();
        let text = Text::new(&block, length).ok_or_else(|| internal("a copy is smaller than its text"))?;
        let (rows, columns) = (copied.rows.len(), self.columns.len());
        let table = FieldTable::new(text, &copied.marks, columns + 1, rows, columns)
            .ok_or_else(|| internal("the positions of copied fields do not ascend"))?;
        let mut slab = slab(self.columns.iter().map(|column| column.slab_bytes(rows)).sum());
        let mut carver = Carver::new(&mut slab);
        let mut converted = Vec::with_capacity(columns);
        for (column, qualified) in std::iter::zip(&mut self.columns, &mut copied.qualified) {
            column.nulls.qualified = std::mem::take(qualified);
            let values = table
                .column(column.index)
                .and_then(|fields| column.convert(fields, true, &mut carver, &mut self.bad))
                .ok_or_else(|| internal("the slab is smaller than its columns"))?;
            converted.push(values);
        }
        let slab = slab.freeze();
        let views = block.slice_with_length(PADDING_BYTES, length);
        let arrays: Vec<ArrayRef> = std::iter::zip(&self.columns, converted)
            .map(|(column, values)| column.array(values, rows, &slab, &views))
            .collect();
        RecordBatch::try_new(self.schema.clone(), arrays).map_err(|error| internal(&error.to_string()))
    }
}

impl Copied {
    fn add(&mut self, qualifier: u8, block: &[u8], row: (u64, RawRow, usize), columns: usize) {
        self.marks.push((self.text.len() as u32).wrapping_sub(1));
        let mut text_behind = None;
        for (column, field) in row.1.fields[..columns].iter().enumerate() {
            let raw = &block[field.clone()];
            let inner = unqualified(qualifier, raw);
            self.qualified[column].push(inner.is_some());
            text_behind = text_behind.or((inner == Some(None)).then_some(column));
            self.text.extend_from_slice(inner.flatten().as_deref().unwrap_or(raw));
            self.marks.push(self.text.len() as u32);
            self.text.push(b'\n');
        }
        self.text_behind.push(text_behind);
        self.rows.push(row);
    }
}

/// The text of a qualified field; none inside when text follows the closing qualifier, none at all for other fields.
fn unqualified(qualifier: u8, raw: &[u8]) -> Option<Option<Vec<u8>>> {
    let mut rest = raw.strip_prefix(&[qualifier])?.iter();
    let mut text = Vec::new();
    while let Some(&byte) = rest.next() {
        if byte != qualifier {
            text.push(byte);
        } else if rest.as_slice().first() == Some(&qualifier) {
            text.push(qualifier);
            rest.next();
        } else {
            return Some(rest.as_slice().is_empty().then_some(text));
        }
    }
    Some(None)
}
