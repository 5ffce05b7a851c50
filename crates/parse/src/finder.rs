//! The fields and rows of a block, found in one of two ways.

use std::ops::Range;
use std::sync::Arc;

use headrace_types::{
    BlankRows, CoreError, ErrorKind, ExtraFields, Layout, LayoutShape, RowEnd, RowEndInFields, ShortRows,
    StrayQualifiers, WidthUnit,
};

use crate::automaton::{Automaton, RowScanner};
use crate::placed::Placed;
use crate::raw::cpu::CpuPath;
use crate::raw::fields::{FieldTable, Qualifiers, REWRITTEN, STRAY, Span, TEXT_BEHIND, Text};
use crate::raw::structure::{Find, Structure};
use crate::rows::{BadShape, LineEnds, RowPlace, Rows, Shape, UnequalRows};
use crate::walk::{Open, Walk};

/// Finds fields and rows, and keeps what the last block had.
pub struct Finder {
    shape: Shape,
    scanner: RowScanner,
    way: Way,
}

enum Way {
    /// One byte between fields, a line feed behind rows, doubled qualifiers, and nothing else: the structural pass.
    Structural(Box<Structural>),
    /// Every other dialect.
    Walked { automaton: Arc<Automaton>, walk: Box<Walk>, blanks: bool },
    /// Columns stand at places of their rows.
    Placed(Box<Placed>),
}

struct Structural {
    delimiter: u8,
    qualifier: Option<u8>,
    automaton: Automaton,
    structure: Structure,
    rows: Rows,
    /// Whether the last text ended its slice.
    ended: bool,
}

/// What the last block had.
pub struct Found<'a> {
    /// Bytes up to and with the last row end.
    pub consumed: usize,
    /// Rows of any kind, and what was skipped.
    pub lines: u64,
    /// Blank rows and comments.
    pub skipped: u64,
    /// How lines end, where that may differ.
    pub line_ends: LineEnds,
    /// Well-formed rows.
    pub rows: usize,
    /// Rows of another shape, in file order.
    pub bad: &'a [BadShape],
    /// Whether there is a NUL.
    pub nul: bool,
    /// Whether there is a byte above 0x7F.
    pub non_ascii: bool,
    /// Whether texts of fields may not be what stands there.
    pub rewritten: bool,
    /// Whether text may stand behind closing qualifiers, or fields may have some that do not begin with one.
    pub stray: bool,
    /// Well-formed rows with more fields than columns, and with fewer.
    pub unequal: UnequalRows,
    /// A field that never ends.
    pub open: Option<Open>,
    /// Whether a field may end inside of a character.
    pub cut_characters: bool,
}

impl Finder {
    /// For files of a layout with these row ends.
    ///
    /// # Errors
    /// `Specification` for a layout that means two things.
    pub fn new(layout: &Layout, row_end: &RowEnd) -> Result<Self, CoreError> {
        let refused = |text| CoreError::new(ErrorKind::Specification, format!("layout: {text}"));
        let shape = Shape {
            columns: layout.columns.len(),
            trailing_delimiter: layout.trailing_delimiter,
            takes_carriage_return: row_end.takes_carriage_return(),
            wants_carriage_return: row_end.wants_carriage_return(),
            blank_rows: layout.blank_rows,
            short_rows: layout.short_rows,
            keeps_extra_fields: layout.extra_fields == ExtraFields::Keep,
            width: (layout.row_width(), layout.width_unit),
            is_ragged: layout.shape == LayoutShape::RaggedRight || layout.extra_fields == ExtraFields::Keep,
        };
        let way = match is_structural(layout, row_end) {
            _ if layout.shape != LayoutShape::Delimited => {
                let automaton = Automaton::new(layout, row_end).map_err(refused)?;
                Way::Placed(Box::new(Placed::new(layout, row_end, automaton)))
            }
            true => Way::Structural(Box::new(Structural {
                delimiter: layout.encoded(&layout.delimiter).first().copied().unwrap_or_default(),
                qualifier: layout.qualifier.map(|qualifier| qualifier as u8),
                automaton: Automaton::new(layout, &RowEnd::Lf).map_err(refused)?,
                structure: Structure::default(),
                rows: Rows::default(),
                ended: false,
            })),
            false => Way::Walked {
                automaton: Arc::new(Automaton::new(layout, row_end).map_err(refused)?),
                walk: Box::default(),
                blanks: layout.blanks_around_qualifier,
            },
        };
        let scanner = RowScanner::new(layout, row_end).map_err(refused)?;
        Ok(Finder { shape, scanner, way })
    }

    /// Whether the last row of a slice needs a line feed.
    pub fn needs_row_end(&self) -> bool {
        matches!(self.way, Way::Structural(_))
    }

    /// Bytes that are kept of every row, whatever columns are wanted, where a row may have less text than that.
    pub fn kept_bytes_of_row(&self) -> usize {
        let is_filled = self.shape.short_rows == ShortRows::Fill;
        let keeps_spans = match &self.way {
            Way::Structural(_) => false,
            Way::Walked { .. } => is_filled,
            Way::Placed(placed) => is_filled && placed.counts_characters(),
        };
        usize::from(keeps_spans) * self.shape.columns * size_of::<Span>()
    }

    /// Shape of rows.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// A scanner at the start of a row.
    pub fn scanner(&self) -> RowScanner {
        self.scanner.clone()
    }

    /// Looks through a text that begins with a row. `ended`: nothing follows behind it. At most about `most_rows` rows.
    /// `added_end`: the last byte is a line feed that does not stand in the file.
    pub fn find(&mut self, path: CpuPath, text: Text<'_>, ended: bool, added_end: bool, most_rows: usize) {
        match &mut self.way {
            Way::Structural(way) => {
                let Structural { delimiter, qualifier, .. } = **way;
                let find =
                    Find { delimiter, qualifier, is_crlf: self.shape.takes_carriage_return, automaton: &way.automaton };
                way.structure.index(path, text, find);
                way.rows.find(self.shape, text, &way.structure, added_end);
                way.ended = ended;
            }
            Way::Walked { automaton, walk, .. } => {
                walk.find(path, automaton, &self.shape, text.bytes(), ended, most_rows);
            }
            Way::Placed(placed) => placed.find(path, &self.shape, text.bytes(), ended, most_rows),
        }
    }

    /// What [`Finder::find`] found in a text.
    pub fn found(&self) -> Found<'_> {
        match &self.way {
            Way::Structural(way) => {
                let (seen, rows) = (way.structure.seen, &way.rows);
                Found {
                    consumed: rows.consumed,
                    lines: rows.lines,
                    skipped: rows.skipped,
                    line_ends: rows.line_ends,
                    rows: rows.rows,
                    bad: &rows.bad,
                    nul: seen.nul,
                    non_ascii: seen.non_ascii,
                    rewritten: seen.doubled,
                    stray: seen.text_behind,
                    unequal: UnequalRows::default(),
                    open: (way.ended && seen.open).then(|| way.open()),
                    cut_characters: false,
                }
            }
            Way::Walked { walk, .. } => Found {
                consumed: walk.consumed,
                lines: walk.lines,
                skipped: walk.skipped,
                line_ends: walk.line_ends,
                rows: walk.rows.len(),
                bad: &walk.bad,
                nul: walk.nul,
                non_ascii: walk.non_ascii,
                rewritten: walk.flags & REWRITTEN != 0,
                stray: walk.flags & (TEXT_BEHIND | STRAY) != 0,
                unequal: walk.unequal,
                open: walk.open,
                cut_characters: false,
            },
            Way::Placed(placed) => Found {
                consumed: placed.consumed,
                lines: placed.lines,
                skipped: placed.skipped,
                line_ends: placed.line_ends,
                rows: placed.rows.len(),
                bad: &placed.bad,
                nul: placed.nul,
                non_ascii: placed.non_ascii,
                rewritten: false,
                stray: false,
                unequal: placed.unequal,
                open: None,
                cut_characters: self.shape.width.1 == WidthUnit::Bytes,
            },
        }
    }

    /// The fields of the well-formed rows. `None` when the positions do not fit the text (a defect).
    pub fn table<'a>(&'a self, text: Text<'a>, path: CpuPath) -> Option<FieldTable<'a>> {
        let columns = self.shape.columns;
        match &self.way {
            Way::Structural(way) => {
                let (rows, seen) = (&way.rows, way.structure.seen);
                let qualifiers =
                    way.qualifier.map(|byte| Qualifiers { byte, doubled: seen.doubled, stray: seen.text_behind });
                let marks = rows.marks(&way.structure);
                FieldTable::of_marks(text, marks, rows.stride, rows.rows, columns, qualifiers, path)
            }
            Way::Walked { walk, blanks, .. } => {
                FieldTable::of_spans(text, &walk.spans, walk.rows.len(), columns, *blanks)
            }
            Way::Placed(placed) => placed.table(text),
        }
    }

    /// The place of a well-formed row.
    pub fn place(&self, row: usize, text: &[u8]) -> RowPlace {
        match &self.way {
            Way::Structural(way) => {
                let (start, next) = way.rows.span(row, text, way.rows.marks(&way.structure), self.scanner());
                let line = way.rows.line_of_row.get(row).copied().unwrap_or(row as u32);
                RowPlace { start: start as u32, next: next as u32, line }
            }
            Way::Walked { walk, .. } => walk.rows[row],
            Way::Placed(placed) => placed.rows[row],
        }
    }

    /// Line of a well-formed row, and its first byte; relative to the block.
    pub fn start(&self, row: usize) -> (u32, u32) {
        match &self.way {
            Way::Structural(way) => {
                let line = way.rows.line_of_row.get(row).copied().unwrap_or(row as u32);
                (line, way.rows.marks(&way.structure)[row * way.rows.stride].wrapping_add(1))
            }
            Way::Walked { walk, .. } => (walk.rows[row].line, walk.rows[row].start),
            Way::Placed(placed) => (placed.rows[row].line, placed.rows[row].start),
        }
    }

    /// A field of a well-formed row, as it stands in the text.
    pub fn field(&self, row: usize, column: usize) -> Range<usize> {
        match &self.way {
            Way::Structural(way) => {
                let marks = way.rows.marks(&way.structure);
                let mark = row * way.rows.stride + column;
                marks[mark].wrapping_add(1) as usize..marks[mark + 1] as usize
            }
            Way::Walked { walk, .. } => {
                let span = walk.spans[row * self.shape.columns + column];
                span.start as usize..span.end as usize
            }
            Way::Placed(placed) => placed.field(row, column),
        }
    }

    /// Gives back what a block far beyond the usual size needed.
    pub fn release_surplus(&mut self) {
        match &mut self.way {
            Way::Structural(way) => {
                way.structure.release_surplus();
                way.rows.release_surplus();
            }
            Way::Walked { walk, .. } => walk.release_surplus(),
            Way::Placed(placed) => placed.release_surplus(),
        }
    }
}

impl Structural {
    /// The field behind the last row end, whose qualifier is open.
    fn open(&self) -> Open {
        let start = self.rows.consumed;
        let marks = &self.structure.marks()[1..];
        let delimiters = &marks[marks.partition_point(|&mark| (mark as usize) < start)..];
        let opening = delimiters.last().map_or(start as u32, |&mark| mark + 1);
        Open { row_start: start as u32, start: opening, column: delimiters.len(), is_qualifier: true }
    }
}

/// Whether the structural pass knows everything that the layout says.
fn is_structural(layout: &Layout, row_end: &RowEnd) -> bool {
    let plain = |text: &str| layout.encoded(text).len() == 1;
    plain(&layout.delimiter)
        && !matches!(row_end, RowEnd::Exactly(text) if text != "\n")
        && layout.row_end_in_fields == RowEndInFields::EndsRow
        && !layout.blanks_around_qualifier
        && layout.escape.is_none()
        && layout.comment.is_none()
        && layout.blank_rows == BlankRows::Skip
        && layout.short_rows == ShortRows::Reject
        && layout.extra_fields == ExtraFields::Reject
        && layout.stray_qualifiers != StrayQualifiers::Lenient
        && layout.columns.iter().all(|column| column.delimiter.is_none() && column.qualified)
}
