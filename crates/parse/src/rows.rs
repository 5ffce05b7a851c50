//! From structural positions to a table of equal stride; rows of another shape leave as rejects.

use std::cmp::Ordering;

use headrace_types::{BlankRows, Rule, ShortRows, WidthUnit};

use crate::automaton::RowScanner;
use crate::raw::fields::Text;
use crate::raw::structure::{BEFORE_TEXT, Structure, release_surplus};

/// Shape of a row, from the layout.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Columns.
    pub columns: usize,
    /// Whether a delimiter follows the last field.
    pub trailing_delimiter: bool,
    /// Whether a carriage return before the line feed that ends a row belongs to the row end.
    pub takes_carriage_return: bool,
    /// Whether rows may only end with (true) or without (false) one; none if that does not matter.
    pub wants_carriage_return: Option<bool>,
    /// What happens to rows without a byte.
    pub blank_rows: BlankRows,
    /// What happens to rows with fewer fields than columns.
    pub short_rows: ShortRows,
    /// Whether the last column keeps fields that are too many.
    pub keeps_extra_fields: bool,
    /// Width of a whole row, the least or the only one, and what it counts, where columns have places.
    pub width: (u32, WidthUnit),
    /// Whether wider rows are whole as well.
    pub is_ragged: bool,
}

impl Shape {
    /// Why a row of that width is none.
    fn width_note(&self, found: u32) -> String {
        let (width, unit) = self.width;
        let unit = match (unit, found) {
            (WidthUnit::Bytes, 1) => "byte",
            (WidthUnit::Bytes, _) => "bytes",
            (WidthUnit::Characters, 1) => "character",
            (WidthUnit::Characters, _) => "characters",
        };
        let more = if self.is_ragged { " or more" } else { "" };
        let filled = if self.short_rows == ShortRows::Fill && found < width {
            ", and a part of a field that is no text"
        } else {
            ""
        };
        format!("{found} {unit} instead of {width}{more}{filled}")
    }

    /// Structural characters of a well-formed row: its delimiters and its line feed.
    pub fn marks(&self) -> usize {
        self.columns + usize::from(self.trailing_delimiter)
    }
}

/// Where a well-formed row stands: first byte, first byte of the next row, line; relative to the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPlace {
    /// First byte.
    pub start: u32,
    /// First byte of the next row.
    pub next: u32,
    /// Line.
    pub line: u32,
}

/// A row of another shape than the layout's. Small: a block may consist of nothing else.
#[derive(Debug, Clone, Copy)]
pub struct BadShape {
    /// Line, relative to the block.
    pub line: u32,
    /// First byte.
    pub start: u32,
    /// Byte after the last one, row end not counted.
    pub end: u32,
    /// First byte of the next row.
    pub next: u32,
    /// What is wrong.
    pub rule: Rule,
    /// Fields it has; its width, where columns have places.
    pub fields: u32,
}

impl BadShape {
    /// What was found, in words.
    pub fn note(&self, shape: Shape) -> String {
        if self.rule == Rule::OtherRowEnd {
            let found = if shape.wants_carriage_return == Some(true) { "a line feed" } else { "CR and line feed" };
            return format!("{found} at the end of the row");
        }
        if self.start == self.end && shape.blank_rows == BlankRows::Reject {
            return "a blank row".to_owned();
        }
        if matches!(self.rule, Rule::RowTooNarrow | Rule::RowTooWide) {
            return shape.width_note(self.fields);
        }
        if self.fields as usize == shape.columns {
            return "no delimiter after the last field".to_owned();
        }
        let word = if self.fields == 1 { "field" } else { "fields" };
        format!("{} {word} instead of {}", self.fields, shape.columns)
    }
}

/// How many lines end in which way; those that the end of the file ends do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineEnds {
    /// With a line feed alone.
    pub lf: u64,
    /// With carriage return and line feed.
    pub crlf: u64,
}

impl LineEnds {
    /// Counts a line.
    #[inline(always)]
    pub fn add(&mut self, has_carriage_return: bool) {
        self.crlf += u64::from(has_carriage_return);
        self.lf += u64::from(!has_carriage_return);
    }
}

/// Well-formed rows of another number of fields than columns, or of another width: the layout takes them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnequalRows {
    /// With fewer fields: the missing ones are empty.
    pub filled: u64,
    /// With more fields: the last column keeps them.
    pub extended: u64,
}

/// The rows of a block.
#[derive(Default)]
pub struct Rows {
    /// Well-formed rows.
    pub rows: usize,
    /// Marks from one row to the next.
    pub stride: usize,
    /// Bytes up to and with the last row end.
    pub consumed: usize,
    /// Lines among them, of any shape.
    pub lines: u64,
    /// Blank lines.
    pub skipped: u64,
    /// How lines end, where that may differ.
    pub line_ends: LineEnds,
    /// Rows of another shape, in file order.
    pub bad: Vec<BadShape>,
    /// Line of each well-formed row, relative to the block; empty when row r is line r.
    pub line_of_row: Vec<u32>,
    /// Marks of the well-formed rows when they are not those of the structure.
    compacted: Vec<u32>,
    is_compacted: bool,
}

impl Rows {
    /// Finds the rows of a block. `added_end`: its last byte is a line feed that does not stand in the file.
    pub fn find(&mut self, shape: Shape, text: Text<'_>, structure: &Structure, added_end: bool) {
        let lines = structure.seen.row_ends;
        self.bad.clear();
        self.line_of_row.clear();
        self.compacted.clear();
        self.lines = lines as u64;
        self.skipped = 0;
        self.line_ends = LineEnds::default();
        let mut regular = is_regular(shape, text.bytes(), structure);
        let mut has_carriage_returns = false;
        if regular && shape.takes_carriage_return {
            (self.line_ends, has_carriage_returns) = line_ends(shape, text.bytes(), structure, added_end);
            let LineEnds { lf, crlf } = self.line_ends;
            regular = shape.wants_carriage_return.is_none_or(|wanted| if wanted { lf == 0 } else { crlf == 0 });
        }
        self.is_compacted = !regular || has_carriage_returns;
        if regular {
            let marks = &structure.marks()[..=lines * shape.marks()];
            self.rows = lines;
            self.consumed = marks.last().map_or(0, |&mark| mark.wrapping_add(1) as usize);
            self.stride = shape.marks();
            if self.is_compacted {
                self.compact_crlf(shape, text.bytes(), marks);
            }
        } else {
            self.walk(shape, text.bytes(), structure.marks(), added_end);
        }
    }

    /// Gives back what a block far beyond the usual size needed.
    pub fn release_surplus(&mut self) {
        release_surplus(&mut self.compacted);
        release_surplus(&mut self.line_of_row);
    }

    /// Marks of the table; see [`crate::raw::fields::FieldTable`].
    pub fn marks<'a>(&'a self, structure: &'a Structure) -> &'a [u32] {
        if self.is_compacted { &self.compacted } else { &structure.marks()[..=self.rows * self.stride] }
    }

    /// First and one-past-last byte of row `row`, with its row end.
    pub fn span(&self, row: usize, text: &[u8], marks: &[u32], mut scanner: RowScanner) -> (usize, usize) {
        let start = marks[row * self.stride].wrapping_add(1) as usize;
        let end = scanner.next_row_end(&text[start..]).map_or(text.len(), |length| start + length + 1);
        (start, end)
    }

    /// Copies the marks with the end of each last field moved before its carriage return.
    fn compact_crlf(&mut self, shape: Shape, bytes: &[u8], marks: &[u32]) {
        self.stride = shape.columns + 1;
        self.compacted.reserve(self.rows * self.stride + 1);
        for (row, own) in marks[..marks.len() - 1].chunks_exact(shape.marks()).enumerate() {
            self.compacted.extend_from_slice(own);
            if !shape.trailing_delimiter {
                let line_feed = marks[(row + 1) * shape.marks()];
                self.compacted.push(without_carriage_return(bytes, line_feed));
            }
        }
    }

    /// Row after row: keeps the well-formed ones, rejects the others, skips blank lines.
    fn walk(&mut self, shape: Shape, bytes: &[u8], marks: &[u32], added_end: bool) {
        (self.rows, self.consumed, self.line_ends) = (0, 0, LineEnds::default());
        self.stride = shape.columns + 1;
        let mut before = BEFORE_TEXT;
        let mut first = 1;
        let mut line = 0;
        for index in 1..marks.len() {
            let mark = marks[index];
            if bytes[mark as usize] != b'\n' {
                continue;
            }
            let start = before.wrapping_add(1);
            let end =
                if shape.takes_carriage_return && mark > start { without_carriage_return(bytes, mark) } else { mark };
            let is_whole = !(added_end && mark as usize + 1 == bytes.len());
            if shape.takes_carriage_return && is_whole {
                self.line_ends.add(end < mark);
            }
            let delimiters = &marks[first..index];
            let mut found = self.classify(shape, start, end, delimiters);
            if is_whole {
                found = found.with_row_end(end < mark, shape);
            }
            match found {
                RowShape::Good => {
                    self.compacted.push(before);
                    self.compacted.extend_from_slice(&delimiters[..shape.columns.min(delimiters.len())]);
                    if !shape.trailing_delimiter {
                        self.compacted.push(end);
                    }
                    self.line_of_row.push(line);
                    self.rows += 1;
                }
                RowShape::Blank => self.skipped += 1,
                RowShape::Bad(rule, fields) => {
                    self.bad.push(BadShape { line, start, end, next: mark + 1, rule, fields });
                }
            }
            before = mark;
            first = index + 1;
            line += 1;
            self.consumed = mark as usize + 1;
        }
    }

    fn classify(&self, shape: Shape, start: u32, end: u32, delimiters: &[u32]) -> RowShape {
        if start == end && shape.marks() > 1 {
            return RowShape::Blank;
        }
        // With a trailing delimiter nothing may stand between it and the row end.
        let ends_with_delimiter = delimiters.last().is_some_and(|&last| last + 1 == end);
        let fields = delimiters.len() + 1 - usize::from(shape.trailing_delimiter && ends_with_delimiter);
        match fields.cmp(&shape.columns) {
            Ordering::Less => RowShape::Bad(Rule::TooFewFields, fields as u32),
            Ordering::Greater => RowShape::Bad(Rule::TooManyFields, fields as u32),
            Ordering::Equal if shape.trailing_delimiter && !ends_with_delimiter => {
                RowShape::Bad(Rule::TooFewFields, fields as u32)
            }
            Ordering::Equal => RowShape::Good,
        }
    }
}

impl RowShape {
    /// The same, or a bad row if it ends as no row of the file may.
    pub fn with_row_end(self, has_carriage_return: bool, shape: Shape) -> RowShape {
        match (self, shape.wants_carriage_return) {
            (RowShape::Good, Some(wanted)) if wanted != has_carriage_return => {
                RowShape::Bad(Rule::OtherRowEnd, shape.columns as u32)
            }
            (other, _) => other,
        }
    }
}

/// What a row is.
pub enum RowShape {
    /// One with the layout's columns.
    Good,
    /// One without a byte that is skipped.
    Blank,
    /// The rule and how many fields were found.
    Bad(Rule, u32),
}

/// Whether every row of the block has exactly the layout's structural characters. With as many line feeds as rows, and a
/// line feed at the end of every stride, all the others must be delimiters.
fn is_regular(shape: Shape, bytes: &[u8], structure: &Structure) -> bool {
    let stride = shape.marks();
    let marks = structure.marks();
    let lines = structure.seen.row_ends;
    if lines * stride >= marks.len() {
        return false;
    }
    let ends_well = |row: &[u32]| {
        let end = row[stride - 1];
        let at_line_feed = bytes[end as usize] == b'\n';
        if !shape.trailing_delimiter {
            return at_line_feed;
        }
        let gap = end.wrapping_sub(row[stride - 2]);
        at_line_feed && (gap == 1 || (gap == 2 && shape.takes_carriage_return && bytes[end as usize - 1] == b'\r'))
    };
    marks[1..=lines * stride].chunks_exact(stride).all(ends_well)
}

/// How the lines of a regular block end, and whether there are carriage returns to leave out.
fn line_ends(shape: Shape, bytes: &[u8], structure: &Structure, added_end: bool) -> (LineEnds, bool) {
    let lines = structure.seen.row_ends;
    let marks = &structure.marks()[..=lines * shape.marks()];
    let is_crlf = |mark: u32| mark > 0 && bytes[mark as usize - 1] == b'\r';
    let crlf = marks.iter().step_by(shape.marks()).skip(1).filter(|&&mark| is_crlf(mark)).count() as u64;
    let mut ends = LineEnds { lf: lines as u64 - crlf, crlf };
    if let Some(&last) = marks.last().filter(|&&mark| added_end && mark as usize + 1 == bytes.len()) {
        *(if is_crlf(last) { &mut ends.crlf } else { &mut ends.lf }) -= 1;
    }
    (ends, crlf > 0)
}

/// The end of a field that ends at line feed `line_feed`, without the carriage return before it.
fn without_carriage_return(bytes: &[u8], line_feed: u32) -> u32 {
    let before = (line_feed as usize).checked_sub(1).map(|at| bytes[at]);
    line_feed - u32::from(before == Some(b'\r'))
}
