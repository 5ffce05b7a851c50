//! Fuzz bytes to cases, and what must hold for them. `fuzz/` makes the bytes.

pub mod convert_one;
pub mod dialects;
pub mod formats;
pub mod input;
pub mod parse_differential;
pub mod places;
pub mod texts;

use headrace_types::{Column, ColumnType, Disposition, Layout, RowEnd};

use crate::drive::Driver;
use crate::reference;
use input::Input;

/// What the padding around a block holds.
const PADDINGS: &[&[u8]] = &[b"|,\t;1234567890", b"9", b"\n", b"\r\n", b"\xFF\0", b" ", b"\"", b"0"];
/// Bytes of one file; enough for several tiles of rows and small enough for thousands of cases per second.
const MOST_BYTES: usize = 48 * 1024;

/// A file, or a piece of one, and how it is handed to the parser.
#[derive(Debug)]
pub struct Case {
    /// Layout of the file.
    pub layout: Layout,
    /// How its rows end.
    pub row_end: RowEnd,
    first_byte: u64,
    /// What stands in it.
    pub bytes: Vec<u8>,
    reads: Vec<usize>,
    padding: Vec<u8>,
    /// Columns that are asked for, in this order; all of them if it is none.
    wanted: Option<Vec<usize>>,
    /// Which of the processor's instruction sets; `None` for all.
    path: Option<usize>,
}

impl Case {
    /// Decides everything but the bytes; `row_end` as well, if it is none yet.
    fn new(layout: Layout, row_end: Option<RowEnd>, input: &mut Input<'_>) -> Case {
        let flags = input.byte();
        let reads = match input.below(4) {
            0 => vec![1 << 20],
            1 => vec![1 + input.below(256)],
            2 => vec![1 + usize::from(input.word()), 1 + input.below(64)],
            _ => vec![1 + input.below(16), 1 + usize::from(input.word()), 1 + input.below(256)],
        };
        let wanted = (flags & 128 != 0).then(|| some_columns(&layout, input));
        Case {
            layout,
            row_end: row_end.unwrap_or(match (flags & 1 == 0, flags & 2 == 0) {
                (true, true) => RowEnd::Lf,
                (true, false) => RowEnd::OnlyLf,
                (false, true) => RowEnd::Either,
                (false, false) => RowEnd::OnlyCrlf,
            }),
            first_byte: [0, 3, 5_000_000_000][usize::from(flags >> 2 & 3).min(2)],
            bytes: vec![],
            reads,
            padding: PADDINGS[usize::from(flags >> 4 & 7)].to_vec(),
            wanted,
            path: input.byte().checked_sub(64).map(usize::from),
        }
    }

    /// The parser agrees with the reference: rows, rejects with all that they say, lines, skipped lines.
    ///
    /// # Panics
    /// When it does not.
    pub fn check(&self, all_paths: bool) {
        let Case { layout, row_end, first_byte, bytes, .. } = self;
        // Every read is a block: a long file in single bytes would take minutes and show nothing new.
        let reads: Vec<usize> = self.reads.iter().map(|read| (*read).max(bytes.len() / 300)).collect();
        let wanted = self.wanted.clone().unwrap_or_else(|| reference::all_columns(layout));
        let expected = reference::parse_columns(layout, row_end, bytes, *first_byte, &wanted);
        let drivers = Driver::all(&reads, &self.padding);
        let chosen = self.path.filter(|_| !all_paths).map(|path| path % drivers.len());
        for (_, driver) in drivers.iter().enumerate().filter(|(index, _)| chosen.is_none_or(|path| path == *index)) {
            let found = driver.run_columns(layout, row_end, bytes, *first_byte, &wanted);
            if found == expected {
                continue;
            }
            let about = || format!("{driver:?} {wanted:?}\n{layout:?} {row_end:?} {}", bytes.escape_ascii());
            for (found, expected) in std::iter::zip(&found.rejects, &expected.rejects) {
                assert_eq!(found, expected, "{}", about());
            }
            for (row, (found, expected)) in std::iter::zip(&found.rows, &expected.rows).enumerate() {
                assert_eq!(found, expected, "good row {row}, {}", about());
            }
            assert_eq!(found, expected, "{}", about());
        }
    }
}

/// Some of the columns, none twice, in another order.
fn some_columns(layout: &Layout, input: &mut Input<'_>) -> Vec<usize> {
    let (kept, turned) = (input.word(), input.byte());
    let mut columns = reference::all_columns(layout);
    columns.retain(|column| kept >> (column % 16) & 1 == 1);
    let first = usize::from(turned) % columns.len().max(1);
    columns.rotate_left(first);
    columns
}

/// A layout without columns.
fn dialect(delimiter: char, qualifier: Option<char>) -> Layout {
    Layout { delimiter: delimiter.to_string(), qualifier, ..Layout::default() }
}

/// What becomes of values that break a rule: mostly rejects.
pub fn set_dispositions(column: &mut Column, decision: u8) {
    let disposition = |decision: u8| match decision % 8 {
        0..=3 => Disposition::Redirect,
        4..=6 => Disposition::Ignore,
        _ => Disposition::Fail,
    };
    (column.on_error, column.on_truncation) = (disposition(decision & 7), disposition(decision >> 3 & 7));
    if column.on_error == Disposition::Ignore && !column.nullable {
        column.on_error = Disposition::Redirect;
    }
}

fn column(index: usize, column_type: ColumnType, nullable: bool) -> Column {
    Column::new(format!("c{index}"), column_type, nullable)
}

fn null_tokens(input: &mut Input<'_>) -> Vec<String> {
    const TOKENS: &[&str] = &["NULL", "\\N", "0", "-", "n/a", "", "1970-01-01", "a null token of more than 16 bytes"];
    (0..input.byte().saturating_sub(128) % 5)
        .map(|_| match input.below(2 * TOKENS.len()) {
            index if index < TOKENS.len() => TOKENS[index].to_owned(),
            length => String::from_utf8_lossy(input.take(length)).into_owned(),
        })
        .collect()
}
