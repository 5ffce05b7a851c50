//! Rows whose columns stand at places of them: only row ends are looked for, or nothing at all where all rows are equally long.

use std::ops::Range;

use headrace_types::{BlankRows, ExtraFields, Layout, RowEnd, Rule, ShortRows, WidthUnit};

use crate::automaton::{Automaton, Event, START};
use crate::raw::candidates::{Candidates, WINDOW_BYTES};
use crate::raw::cpu::CpuPath;
use crate::raw::fields::{FieldTable, Span, Text};
use crate::rows::{BadShape, LineEnds, RowPlace, RowShape, Shape, UnequalRows};

/// Spans that are kept from block to block.
const KEPT_SPANS: usize = 1 << 19;

/// The rows of a block.
pub struct Placed {
    automaton: Automaton,
    /// Bytes of a row without row end.
    row_bytes: Option<u32>,
    /// First byte or character of every column in its row, and the one behind its last.
    places: Vec<(u32, u32)>,
    /// Whether a part of the column is a value of it.
    is_text: Vec<bool>,
    /// What places count.
    unit: WidthUnit,
    /// Width of the columns, with that of the last one; as wide as can be if that goes on to the row end.
    own_width: u32,
    /// Width of the narrowest and of the widest whole row.
    least: u32,
    most: u32,
    is_blank_skipped: bool,
    candidates: Candidates,
    /// The well-formed rows.
    pub rows: Vec<RowPlace>,
    /// Their first bytes again, and how many they are without row end.
    starts: Vec<u32>,
    lengths: Vec<u32>,
    /// Fields of the well-formed rows, where characters are counted and some have more than one byte.
    spans: Vec<Span>,
    /// Rows of another width, in file order.
    pub bad: Vec<BadShape>,
    /// Bytes up to and with the last row end.
    pub consumed: usize,
    /// Rows of any kind, and blank rows.
    pub lines: u64,
    /// Blank rows.
    pub skipped: u64,
    /// How lines end, where that may differ.
    pub line_ends: LineEnds,
    /// Rows that are wider or narrower than the columns, and whole.
    pub unequal: UnequalRows,
    /// Whether the block holds NUL, or bytes above 0x7F.
    pub nul: bool,
    /// See above.
    pub non_ascii: bool,
}

impl Placed {
    /// For files of a layout that was checked; the automaton knows their row ends.
    pub fn new(layout: &Layout, row_end: &RowEnd, automaton: Automaton) -> Self {
        let place = |place: Option<headrace_types::Place>| place.map_or((0, 0), |place| (place.start, place.end()));
        let mut places: Vec<(u32, u32)> = layout.columns.iter().map(|column| place(column.place)).collect();
        let mut most = places.last().map_or(0, |&(_, end)| end);
        let own_width = most;
        if layout.extra_fields == ExtraFields::Keep
            && let Some((_, end)) = places.last_mut()
        {
            (*end, most) = (u32::MAX, u32::MAX);
        }
        Placed {
            automaton,
            row_bytes: if let RowEnd::Every(bytes) = row_end { Some((*bytes).max(1)) } else { None },
            is_text: layout.columns.iter().map(|column| column.column_type.is_text()).collect(),
            unit: if layout.places_are_bytes() { WidthUnit::Bytes } else { WidthUnit::Characters },
            least: layout.row_width(),
            own_width,
            most,
            is_blank_skipped: layout.blank_rows == BlankRows::Skip && !layout.takes_empty_rows(),
            places,
            candidates: Candidates::default(),
            rows: Vec::new(),
            starts: Vec::new(),
            lengths: Vec::new(),
            spans: Vec::new(),
            bad: Vec::new(),
            consumed: 0,
            lines: 0,
            skipped: 0,
            line_ends: LineEnds::default(),
            unequal: UnequalRows::default(),
            nul: false,
            non_ascii: false,
        }
    }

    /// Finds the rows of a text that begins with a row. `ended`: nothing follows behind it. Stops behind `most_rows` rows.
    pub fn find(&mut self, path: CpuPath, shape: &Shape, text: &[u8], ended: bool, most_rows: usize) {
        self.clear();
        match self.row_bytes {
            Some(bytes) => self.find_equal(path, text, bytes as usize, ended, most_rows),
            None => self.find_ends(path, shape, text, ended, most_rows),
        }
        if self.unit == WidthUnit::Characters && self.non_ascii {
            self.find_spans(text);
        }
    }

    /// The fields of the well-formed rows. `None` when the positions do not fit the text (a defect).
    pub fn table<'a>(&'a self, text: Text<'a>) -> Option<FieldTable<'a>> {
        if self.is_spanned() {
            return FieldTable::of_spans(text, &self.spans, self.rows.len(), self.places.len(), false);
        }
        FieldTable::of_places(text, &self.starts, &self.lengths, &self.places)
    }

    /// A field of a well-formed row.
    pub fn field(&self, row: usize, column: usize) -> Range<usize> {
        if self.is_spanned() {
            let Span { start, end, .. } = self.spans[row * self.places.len() + column];
            return start as usize..end as usize;
        }
        let ((from, to), start, length) = (self.places[column], self.starts[row], self.lengths[row]);
        (start + from.min(length)) as usize..(start + to.min(length)) as usize
    }

    /// Gives back what a block far beyond the usual size needed.
    pub fn release_surplus(&mut self) {
        if self.spans.capacity() > KEPT_SPANS {
            self.spans = Vec::new();
        }
        if self.rows.capacity() > KEPT_SPANS {
            (self.rows, self.starts, self.lengths) = (Vec::new(), Vec::new(), Vec::new());
        }
    }

    /// Whether it may have to keep the fields of its rows.
    pub fn counts_characters(&self) -> bool {
        self.unit == WidthUnit::Characters
    }

    fn is_spanned(&self) -> bool {
        self.unit == WidthUnit::Characters && self.non_ascii
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.starts.clear();
        self.lengths.clear();
        self.spans.clear();
        self.bad.clear();
        (self.consumed, self.lines, self.skipped) = (0, 0, 0);
        (self.line_ends, self.nul, self.non_ascii) = (LineEnds::default(), false, false);
        self.unequal = UnequalRows::default();
    }

    /// Rows of so many bytes, one behind the other.
    fn find_equal(&mut self, path: CpuPath, text: &[u8], bytes: usize, ended: bool, most_rows: usize) {
        let rows = (text.len() / bytes).min(most_rows);
        let mut end = rows * bytes;
        let rest = text.len() - end;
        for row in 0..rows {
            let start = (row * bytes) as u32;
            self.add_row(RowPlace { start, next: start + bytes as u32, line: row as u32 }, bytes as u32);
        }
        self.lines = rows as u64;
        if ended && rest > 0 && rows < most_rows {
            let (start, line) = (end as u32, rows as u32);
            end = text.len();
            let next = end as u32;
            self.bad.push(BadShape { line, start, end: next, next, rule: Rule::RowTooNarrow, fields: rest as u32 });
            self.lines += 1;
        }
        self.consumed = end;
        for from in (0..end).step_by(WINDOW_BYTES) {
            self.look(path, &text[..end], from);
        }
    }

    /// What a window holds.
    fn look(&mut self, path: CpuPath, text: &[u8], from: usize) {
        self.candidates.find(path, text, from, WINDOW_BYTES, self.automaton.tokens());
        self.nul |= self.candidates.nul;
        self.non_ascii |= self.candidates.non_ascii;
    }

    fn find_ends(&mut self, path: CpuPath, shape: &Shape, text: &[u8], ended: bool, most_rows: usize) {
        let (mut state, mut behind, mut start) = (START, 0, 0);
        for from in (0..text.len()).step_by(WINDOW_BYTES) {
            self.look(path, text, from);
            // Taken out so that rows can be added meanwhile.
            let candidates = std::mem::take(&mut self.candidates);
            for &at in candidates.positions() {
                let at = at as usize;
                if at > behind {
                    state = self.automaton.step_other(state).state;
                }
                let step = self.automaton.step(state, text[at]);
                (state, behind) = (step.state, at + 1);
                if step.event == Event::RowEnd {
                    let end = behind - usize::from(step.length);
                    self.end_row(text, start..end, behind, shape, Some(step.length == 2));
                    start = behind;
                    if self.rows.len() >= most_rows {
                        self.candidates = candidates;
                        return;
                    }
                }
            }
            self.candidates = candidates;
        }
        if ended && start < text.len() {
            // The file may be cut off between the two bytes of a row end.
            let is_cut = shape.takes_carriage_return && text.ends_with(b"\r");
            self.end_row(text, start..text.len() - usize::from(is_cut), text.len(), shape, None);
        }
    }

    /// `crlf`: whether it ends with carriage return and line feed; none without a whole row end.
    fn end_row(&mut self, text: &[u8], row: Range<usize>, next: usize, shape: &Shape, crlf: Option<bool>) {
        let width = self.width(&text[row.clone()]);
        let mut found = self.classify(width, shape);
        if let Some(crlf) = crlf.filter(|_| shape.takes_carriage_return) {
            self.line_ends.add(crlf);
            found = found.with_row_end(crlf, *shape);
        }
        let (start, end, next, line) = (row.start as u32, row.end as u32, next as u32, self.lines as u32);
        match found {
            RowShape::Good => {
                self.unequal.filled += u64::from(width < self.least);
                self.unequal.extended += u64::from(width > self.own_width);
                self.add_row(RowPlace { start, next, line }, end - start);
            }
            RowShape::Blank => self.skipped += 1,
            RowShape::Bad(rule, fields) => self.bad.push(BadShape { line, start, end, next, rule, fields }),
        }
        self.lines += 1;
        self.consumed = next as usize;
    }

    fn add_row(&mut self, row: RowPlace, length: u32) {
        self.starts.push(row.start);
        self.lengths.push(length);
        self.rows.push(row);
    }

    /// Width of a row in the layout's unit.
    fn width(&self, row: &[u8]) -> u32 {
        match row {
            // The first byte begins a character, whatever it is.
            [_, rest @ ..] if self.is_spanned() => 1 + rest.iter().filter(|byte| is_first(byte)).count() as u32,
            _ => row.len() as u32,
        }
    }

    /// What a row of that width is.
    fn classify(&self, width: u32, shape: &Shape) -> RowShape {
        if width == 0 && self.is_blank_skipped {
            return RowShape::Blank;
        }
        if width == 0 && shape.blank_rows == BlankRows::Reject {
            return RowShape::Bad(Rule::RowTooNarrow, 0);
        }
        if width > self.most {
            return RowShape::Bad(Rule::RowTooWide, width);
        }
        if width >= self.least {
            return RowShape::Good;
        }
        // The column in the middle of which the row ends.
        let cut = self.places.partition_point(|&(start, _)| start < width).checked_sub(1);
        let is_part = |column: &usize| self.places[*column].1 > width;
        match cut.filter(is_part) {
            _ if shape.short_rows == ShortRows::Reject => RowShape::Bad(Rule::RowTooNarrow, width),
            Some(column) if !self.is_text[column] => RowShape::Bad(Rule::RowTooNarrow, width),
            _ => RowShape::Good,
        }
    }

    /// The fields of rows whose characters are counted.
    fn find_spans(&mut self, text: &[u8]) {
        for (&start, &length) in std::iter::zip(&self.starts, &self.lengths) {
            let row = &text[start as usize..(start + length) as usize];
            if row.is_ascii() {
                let place = |at: u32| start + at.min(length);
                let spans = self.places.iter().map(|&(from, to)| Span { start: place(from), end: place(to), flags: 0 });
                self.spans.extend(spans);
                continue;
            }
            let mut offsets = Offsets { row, at: 0, characters: 0 };
            for &(from, to) in &self.places {
                let (from, to) = (start + offsets.of(from), start + offsets.of(to));
                self.spans.push(Span { start: from, end: to, flags: 0 });
            }
        }
    }
}

/// Whether a byte is the first one of a character. Others belong to what stands before them.
fn is_first(byte: &u8) -> bool {
    byte & 0xC0 != 0x80
}

/// Bytes before the characters of a row, asked for in ascending order.
struct Offsets<'a> {
    row: &'a [u8],
    at: usize,
    /// Those before `at`.
    characters: u32,
}

impl Offsets<'_> {
    /// Bytes before a character; of those behind the last one, all of them.
    fn of(&mut self, character: u32) -> u32 {
        while self.characters < character && self.at < self.row.len() {
            let next = self.row[self.at + 1..].iter().position(is_first);
            self.at = next.map_or(self.row.len(), |next| self.at + 1 + next);
            self.characters += 1;
        }
        self.at as u32
    }
}
