//! The last rows of a text, whose end nobody knows before it comes.

use std::collections::VecDeque;

use headrace_parse::{Automaton, Event, Mode, START};
use headrace_types::{BlankRows, CoreError, Encoding, Layout, RowEnd};

use crate::spec::FileSpec;

/// A place in front of a row or line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineStart {
    /// Bytes of the file before it.
    pub source_byte: u64,
    /// Bytes of the stage text before it.
    pub byte: u64,
    /// Lines before it.
    pub line: u64,
}

/// The last `footer_rows` rows of a text that comes in pieces, from the start of a row on. Comments are no rows, nor are blank
/// rows where the layout skips them; those between and behind the last rows belong to them.
pub struct LastRows {
    ends: Ends,
    encoding: Encoding,
    /// At most so many.
    count: usize,
    /// Whether rows without a byte are none.
    skips_blank: bool,
    /// Whether a carriage return before a line feed is part of the row end.
    takes_carriage_return: bool,
    /// Whether the present line begins with one.
    begins_with_return: bool,
    /// Where the last rows begin.
    starts: VecDeque<LineStart>,
    /// Where the present line begins.
    line: LineStart,
    /// The end of what was read.
    at: LineStart,
    /// Whether the text has ended between qualifiers.
    has_swallowed: bool,
}

/// What ends lines.
enum Ends {
    Tokens {
        automaton: Box<Automaton>,
        state: u32,
    },
    /// Rows of so many bytes have no row ends.
    Every(u64),
}

/// What a line was.
struct Line {
    /// Its last byte, of the bytes that were looked through.
    last: usize,
    is_comment: bool,
    /// Bytes of its row end.
    row_end_bytes: u64,
}

impl LastRows {
    /// For a text of a file that begins behind `begin` bytes of it.
    ///
    /// # Errors
    /// `Specification` for a layout that means two things.
    pub fn new(file: &FileSpec, layout: &Layout, begin: u64) -> Result<Self, CoreError> {
        let ends = match file.row_end {
            RowEnd::Every(bytes) => Ends::Every(u64::from(bytes).max(1)),
            _ => Ends::Tokens { automaton: Box::new(file.lines(layout)?), state: START },
        };
        let start = LineStart { source_byte: begin, ..LineStart::default() };
        Ok(LastRows {
            ends,
            encoding: file.encoding_in(layout),
            count: layout.footer_rows as usize,
            skips_blank: layout.blank_rows == BlankRows::Skip && !layout.takes_empty_rows(),
            takes_carriage_return: file.row_end.takes_carriage_return(),
            begins_with_return: false,
            starts: VecDeque::new(),
            line: start,
            at: start,
            has_swallowed: false,
        })
    }

    /// Where the rows found so far begin, or the present line if there is none: what stands before it belongs to none of the last
    /// rows, whatever follows.
    pub fn start(&self) -> LineStart {
        // One row fewer is needed where the present line is one.
        let first = usize::from(self.are_all() && self.is_in_row());
        self.starts.get(first).copied().unwrap_or(self.line)
    }

    /// Whether the text has ended between qualifiers. Then there are no last rows: the one that is open has swallowed them, if
    /// there were any, and is a row that the parser has to tell of.
    pub fn has_swallowed(&self) -> bool {
        self.has_swallowed
    }

    /// Whether the present line is a row, whatever follows.
    fn is_in_row(&self) -> bool {
        match &self.ends {
            Ends::Tokens { automaton, state } => {
                // Behind the beginning of a token the place is still that before it: once in a row, always, until it ends.
                !matches!(automaton.mode(*state), Mode::RowStart | Mode::Comment)
            }
            Ends::Every(_) => self.at.byte > self.line.byte,
        }
    }

    /// Whether as many rows were found as are looked for.
    pub fn are_all(&self) -> bool {
        self.starts.len() == self.count
    }

    /// The end of what was read, and the lines up to it.
    pub fn end(&self) -> LineStart {
        self.at
    }

    /// Takes the next piece of the text.
    pub fn read(&mut self, mut text: &[u8]) {
        while let Some(line) = self.next_line(text) {
            let (piece, rest) = text.split_at(line.last + 1);
            self.pass(piece);
            let is_blank = self.skips_blank && self.at.byte - self.line.byte == line.row_end_bytes;
            self.end_line(!line.is_comment && !is_blank);
            text = rest;
        }
        self.pass(text);
    }

    /// The text has ended: the start of its last line, if that has no row end.
    pub fn finish(&mut self) -> Option<LineStart> {
        let open = self.line;
        if open.byte == self.at.byte {
            return None;
        }
        let mode = match &self.ends {
            Ends::Tokens { automaton, state } => Some((automaton.mode(*state), automaton.is_comment(*state))),
            Ends::Every(_) => None,
        };
        if let Some((Mode::Inside | Mode::EscapedInside, _)) = mode {
            self.has_swallowed = true;
            self.starts.clear();
            self.line = self.at;
            return None;
        }
        let is_comment = mode.is_some_and(|(_, is_comment)| is_comment);
        // The file may be cut off between the two bytes of a row end: to the parser that is a blank row.
        let is_cut_end = self.takes_carriage_return && self.begins_with_return && self.at.byte - open.byte == 1;
        if let Ends::Tokens { state, .. } = &mut self.ends {
            *state = START;
        }
        let is_blank = self.skips_blank && is_cut_end;
        self.end_line(!is_comment && !is_blank);
        Some(open)
    }

    fn next_line(&mut self, text: &[u8]) -> Option<Line> {
        match &mut self.ends {
            Ends::Tokens { automaton, state } => {
                let (next, found) = automaton.next_end(*state, text);
                *state = next;
                let (last, step) = found?;
                let is_comment = step.event == Event::CommentEnd;
                Some(Line { last, is_comment, row_end_bytes: u64::from(step.length) })
            }
            Ends::Every(bytes) => {
                let left = *bytes - (self.at.byte - self.line.byte);
                let last = usize::try_from(left - 1).ok().filter(|last| *last < text.len())?;
                Some(Line { last, is_comment: false, row_end_bytes: 0 })
            }
        }
    }

    fn pass(&mut self, text: &[u8]) {
        if self.at.byte == self.line.byte {
            self.begins_with_return = text.first() == Some(&b'\r');
        }
        self.at.byte += text.len() as u64;
        self.at.source_byte += self.encoding.source_bytes(text);
    }

    fn end_line(&mut self, is_row: bool) {
        if is_row {
            self.starts.push_back(self.line);
            if self.starts.len() > self.count {
                self.starts.pop_front();
            }
        }
        self.at.line += 1;
        self.line = self.at;
    }
}

#[cfg(test)]
mod tests {
    use headrace_types::{Column, ColumnType};

    use super::*;

    fn last_rows(row_end: &RowEnd, footer_rows: u32) -> LastRows {
        let columns = vec![Column::new("a", ColumnType::String, true), Column::new("b", ColumnType::String, true)];
        let layout = Layout {
            delimiter: "||".to_owned(),
            qualifier: Some('"'),
            comment: Some("--".to_owned()),
            footer_rows,
            columns,
            ..Layout::default()
        };
        let file = FileSpec { row_end: row_end.clone(), ..FileSpec::default() };
        LastRows::new(&file, &layout, 0).unwrap()
    }

    #[test]
    fn a_row_end_that_is_cut_off_is_no_row() {
        for (text, begin) in [("a||1\nsum\n\r", 5), ("a||1\nsum\n\r\n", 5), ("a||1\nsum\r", 5), ("a||1\nsum\n\rx", 9)] {
            let mut rows = last_rows(&RowEnd::Either, 1);
            rows.read(text.as_bytes());
            rows.finish();
            assert_eq!(rows.start().byte, begin, "{text:?}");
        }
    }

    #[test]
    fn what_is_free_stays_free_wherever_the_pieces_end() {
        let texts = [
            "a||1\r\nb||2\r\nsum\r\n",
            "a||1\nlong|r\rx||-\r\n-sum\r\r\n--end",
            "\"a\r\nb\"||\"\r\"\r\n\r\n--c\r\nsum||-\r",
            "-\n--\n-x\n\n\r\n\n|\n||",
            "a||1\r\n\"open||2\r\nsum\r\n",
        ];
        for row_end in [RowEnd::Either, RowEnd::Exactly("\r\n".to_owned()), RowEnd::Every(3)] {
            for (text, footer_rows) in texts.iter().flat_map(|text| [1, 2, 9].map(|rows| (text, rows))) {
                let mut whole = last_rows(&row_end, footer_rows);
                whole.read(text.as_bytes());
                let open = whole.finish();
                for size in 1..text.len() {
                    let mut pieces = last_rows(&row_end, footer_rows);
                    let mut free = LineStart::default();
                    for piece in text.as_bytes().chunks(size) {
                        pieces.read(piece);
                        assert!(pieces.start().byte >= free.byte, "{text:?} in pieces of {size}");
                        free = pieces.start();
                    }
                    assert_eq!((pieces.finish(), pieces.end()), (open, whole.end()));
                    assert_eq!(pieces.start(), whole.start(), "{text:?} in pieces of {size}");
                    assert!(pieces.start().byte >= free.byte, "{text:?} in pieces of {size}");
                }
            }
        }
    }
}
