//! From candidates to fields and rows, for layouts that the structural pass does not know: the automaton walks over the bytes of
//! which tokens are made.

use std::sync::Arc;

use headrace_types::{BlankRows, ShortRows};

use crate::automaton::{Automaton, Event, Mode, START, Step};
use crate::raw::candidates::{Candidates, WINDOW_BYTES};
use crate::raw::cpu::CpuPath;
use crate::raw::fields::{QUALIFIED, REWRITTEN, STRAY, Span, TEXT_BEHIND};
use crate::rows::{BadShape, LineEnds, RowPlace, RowShape, Shape, UnequalRows};

/// Spans that are kept from block to block; a block of nothing but delimiters must not cost every stream memory for ever.
const KEPT_SPANS: usize = 1 << 19;

/// The fields and rows of a block.
#[derive(Default)]
pub struct Walk {
    candidates: Candidates,
    /// Fields of the well-formed rows, row by row.
    pub spans: Vec<Span>,
    /// The well-formed rows.
    pub rows: Vec<RowPlace>,
    /// Rows of another shape, in file order.
    pub bad: Vec<BadShape>,
    /// Well-formed rows with more or fewer fields than columns.
    pub unequal: UnequalRows,
    /// Bytes up to and with the last row end.
    pub consumed: usize,
    /// Rows of any kind, comments, blank rows.
    pub lines: u64,
    /// Comments and blank rows.
    pub skipped: u64,
    /// How lines end, where that may differ.
    pub line_ends: LineEnds,
    /// Whether the block holds NUL, or bytes above 0x7F.
    pub nul: bool,
    /// See above.
    pub non_ascii: bool,
    /// Flags of all fields, one over the other.
    pub flags: u8,
    /// Set when the text ends inside a qualifier or behind an escape, and nothing follows: where the row's last field begins and
    /// how many fields stand before it.
    pub open: Option<Open>,
}

/// A field that never ends.
#[derive(Debug, Clone, Copy)]
pub struct Open {
    /// First byte of its row.
    pub row_start: u32,
    /// Its first byte, or that of its qualifier.
    pub start: u32,
    /// Fields before it.
    pub column: usize,
    /// Whether a qualifier is open; otherwise the last byte is an escape.
    pub is_qualifier: bool,
}

/// A row on its way.
struct Row {
    start: usize,
    field_start: usize,
    /// Where the last qualifier opened.
    opened: usize,
    /// Fields that have ended.
    fields: usize,
    flags: u8,
    /// Flags of the fields behind the last column.
    extra_flags: u8,
}

impl Row {
    fn at(start: usize) -> Self {
        Row { start, field_start: start, opened: start, fields: 0, flags: 0, extra_flags: 0 }
    }
}

impl Walk {
    /// Finds the rows of a text that begins with a row. `ended`: nothing follows behind it. Stops behind `most_rows` rows.
    pub fn find(
        &mut self,
        path: CpuPath,
        automaton: &Arc<Automaton>,
        shape: &Shape,
        text: &[u8],
        ended: bool,
        most_rows: usize,
    ) {
        self.clear();
        let mut state = START;
        let mut row = Row::at(0);
        let mut behind = 0;
        for from in (0..text.len()).step_by(WINDOW_BYTES) {
            self.candidates.find(path, text, from, WINDOW_BYTES, automaton.tokens());
            self.nul |= self.candidates.nul;
            self.non_ascii |= self.candidates.non_ascii;
            // Taken out so that rows can be added meanwhile.
            let candidates = std::mem::take(&mut self.candidates);
            for &at in candidates.positions() {
                let at = at as usize;
                if at > behind {
                    let step = automaton.step_other(state);
                    state = step.state;
                    row.flags |= flags_of(step);
                }
                let step = automaton.step(state, text[at]);
                state = step.state;
                behind = at + 1;
                if step.event != Event::Nothing || step.text_behind || step.stray {
                    self.take(step, at + 1, &mut row, shape);
                    if self.rows.len() >= most_rows {
                        self.candidates = candidates;
                        return;
                    }
                }
            }
            self.candidates = candidates;
        }
        if ended && row.start < text.len() {
            if behind < text.len() {
                let step = automaton.step_other(state);
                state = step.state;
                row.flags |= flags_of(step);
            }
            self.finish(automaton, state, text, row, shape);
        }
        // Fields of a row that goes on behind the text.
        self.spans.truncate(self.rows.len() * shape.columns);
    }

    /// Gives back what a block far beyond the usual size needed.
    pub fn release_surplus(&mut self) {
        if self.spans.capacity() > KEPT_SPANS {
            self.spans = Vec::new();
        }
    }

    fn clear(&mut self) {
        let Walk {
            spans,
            rows,
            bad,
            unequal,
            consumed,
            lines,
            skipped,
            line_ends,
            nul,
            non_ascii,
            flags,
            open,
            candidates: _,
        } = self;
        spans.clear();
        rows.clear();
        bad.clear();
        (*consumed, *lines, *skipped, *line_ends) = (0, 0, 0, LineEnds::default());
        *unequal = UnequalRows::default();
        (*nul, *non_ascii, *flags, *open) = (false, false, 0, None);
    }

    /// What has ended before `behind`.
    #[inline(always)]
    fn take(&mut self, step: Step, behind: usize, row: &mut Row, shape: &Shape) {
        row.flags |= flags_of(step);
        let end = behind - usize::from(step.length);
        match step.event {
            Event::Nothing | Event::Closed => {}
            Event::Opened => {
                row.flags |= QUALIFIED;
                row.opened = behind - 1;
            }
            Event::Rewritten => row.flags |= REWRITTEN,
            Event::Delimiter => {
                self.end_field(row, end, shape);
                row.field_start = behind;
            }
            Event::RowEnd => {
                self.end_field(row, end, shape);
                self.end_row(row, end, behind, shape, Some(step.length == 2));
                *row = Row::at(behind);
            }
            Event::CommentEnd => {
                if shape.takes_carriage_return {
                    self.line_ends.add(step.length == 2);
                }
                self.end_comment(row, behind);
                *row = Row::at(behind);
            }
        }
    }

    /// The text ends, and so does what stands there.
    fn finish(&mut self, automaton: &Automaton, state: u32, text: &[u8], mut row: Row, shape: &Shape) {
        let (mode, end) = (automaton.mode(state), text.len());
        if shape.takes_carriage_return && text.ends_with(b"\r") {
            // The file may be cut off between the two bytes of a row end.
            let step = automaton.step(state, b'\n');
            if step.event == Event::RowEnd && step.length == 2 {
                row.flags |= flags_of(step);
                self.end_field(&mut row, end - 1, shape);
                self.end_row(&row, end - 1, end, shape, None);
                return;
            }
        }
        let is_qualifier = automaton.is_inside(state);
        match mode {
            _ if is_qualifier => self.leave_open(&row, row.opened, true, shape),
            Mode::Comment => self.end_comment(&row, end),
            Mode::Escaped if automaton.is_partial(state) => {
                // There is something behind the escape, if not a whole token.
                row.flags |= flags_of(automaton.step_other(state));
                self.end_field(&mut row, end, shape);
                self.end_row(&row, end, end, shape, None);
            }
            Mode::Escaped => self.leave_open(&row, row.field_start, false, shape),
            _ => {
                // What had begun as a token is text, as if some followed.
                if automaton.is_partial(state) {
                    row.flags |= flags_of(automaton.step_other(state));
                }
                self.end_field(&mut row, end, shape);
                self.end_row(&row, end, end, shape, None);
            }
        }
    }

    /// `start`: where what never ends begins.
    fn leave_open(&mut self, row: &Row, start: usize, is_qualifier: bool, shape: &Shape) {
        let (row_start, start) = (row.start as u32, start as u32);
        self.spans.truncate(self.rows.len() * shape.columns);
        self.open = Some(Open { row_start, start, column: row.fields, is_qualifier });
    }

    fn end_comment(&mut self, row: &Row, behind: usize) {
        // A comment may be seen late, behind what could have been fields: no field has ended, for then it was none.
        debug_assert_eq!(row.fields, 0);
        self.skipped += 1;
        self.lines += 1;
        self.consumed = behind;
    }

    #[inline(always)]
    fn end_field(&mut self, row: &mut Row, end: usize, shape: &Shape) {
        if row.fields < shape.columns {
            self.spans.push(Span { start: row.field_start as u32, end: end as u32, flags: row.flags });
            self.flags |= row.flags;
        } else {
            row.extra_flags |= row.flags;
        }
        row.fields += 1;
        row.flags = 0;
    }

    /// The last column becomes all text up to the end of the row, as it is in the file.
    #[inline(never)]
    fn keep_extra_fields(&mut self, row: &Row, end: u32, shape: &Shape) {
        if let Some(last) = self.spans.last_mut().filter(|_| shape.columns > 0) {
            // It has the faults of all fields that it is made of.
            let flags = (last.flags | row.extra_flags) & (TEXT_BEHIND | STRAY);
            *last = Span { end, flags, ..*last };
            self.flags |= flags;
        }
        self.unequal.extended += 1;
    }

    /// `crlf`: whether it ends with carriage return and line feed; none without a whole row end.
    #[inline(always)]
    fn end_row(&mut self, row: &Row, end: usize, next: usize, shape: &Shape, crlf: Option<bool>) {
        let (start, end, next) = (row.start as u32, end as u32, next as u32);
        // With a trailing delimiter nothing may stand between it and the row end.
        let is_closed = row.fields > 1 && row.field_start as u32 == end;
        let mut found = classify(row.fields, is_closed, start == end, shape);
        if let Some(crlf) = crlf.filter(|_| shape.takes_carriage_return) {
            self.line_ends.add(crlf);
            found = found.with_row_end(crlf, *shape);
        }
        match found {
            RowShape::Good => {
                let missing = shape.columns.saturating_sub(row.fields);
                let fields = row.fields - usize::from(shape.trailing_delimiter && is_closed);
                self.unequal.filled += u64::from(fields < shape.columns);
                if shape.keeps_extra_fields && fields > shape.columns {
                    self.keep_extra_fields(row, end, shape);
                }
                self.spans.extend(std::iter::repeat_n(Span { start: end, end, flags: 0 }, missing));
                self.rows.push(RowPlace { start, next, line: self.lines as u32 });
            }
            RowShape::Blank => {
                self.spans.truncate(self.rows.len() * shape.columns);
                self.skipped += 1;
            }
            RowShape::Bad(rule, fields) => {
                self.spans.truncate(self.rows.len() * shape.columns);
                let line = self.lines as u32;
                self.bad.push(BadShape { line, start, end, next, rule, fields });
            }
        }
        self.lines += 1;
        self.consumed = next as usize;
    }
}

/// What a step says of the field that it is in.
#[inline(always)]
fn flags_of(step: Step) -> u8 {
    (u8::from(step.text_behind) * TEXT_BEHIND) | (u8::from(step.stray) * STRAY)
}

/// What a row is that has so many fields. `is_closed`: nothing stands behind its last delimiter.
fn classify(found: usize, is_closed: bool, is_blank: bool, shape: &Shape) -> RowShape {
    use headrace_types::Rule::{TooFewFields, TooManyFields};
    let can_be_empty = shape.marks() == 1;
    if is_blank {
        match shape.blank_rows {
            BlankRows::Skip if !can_be_empty => return RowShape::Blank,
            BlankRows::Reject => return RowShape::Bad(TooFewFields, 1),
            _ => {}
        }
    }
    let is_trailing = shape.trailing_delimiter && is_closed;
    let fields = found - usize::from(is_trailing);
    let lacks_delimiter = shape.trailing_delimiter && !is_trailing;
    match fields.cmp(&shape.columns) {
        std::cmp::Ordering::Greater if shape.keeps_extra_fields => RowShape::Good,
        std::cmp::Ordering::Greater => RowShape::Bad(TooManyFields, fields as u32),
        std::cmp::Ordering::Equal if !lacks_delimiter => RowShape::Good,
        _ if shape.short_rows == ShortRows::Fill => RowShape::Good,
        _ => RowShape::Bad(TooFewFields, fields as u32),
    }
}
