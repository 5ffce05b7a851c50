//! The last rows of a file that hold no data.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::atomic::AtomicBool;

use headrace_parse::{Automaton, Event, START};
use headrace_types::{BlankRows, CoreError, Layout, RowEnd};

use super::cuts::{Cutter, FileText, Text};
use super::{refused, unreadable};
use crate::spec::{FileSpec, Margin};

/// How far before the end the rows are looked for at first.
const FIRST_BYTES: u64 = 64 << 10;
/// Bytes read at once.
const WINDOW_BYTES: usize = 256 << 10;

/// The last `footer_rows` rows of a file, with the comments and blank rows between and behind them.
///
/// # Errors
/// `Source` when the file cannot be read; `Specification` for a layout that means two things.
pub fn find(file: &File, planned: &FileSpec, layout: &Layout, stop: &AtomicBool) -> Result<Margin, CoreError> {
    let failed = |error: std::io::Error| unreadable(&planned.path, error);
    let automaton = Automaton::new(layout, &planned.row_end).map_err(refused)?;
    let rows = Automaton::of_rows(layout, &planned.row_end).map_err(refused)?;
    let (begin, end) = (planned.data_begin(), planned.size_bytes);
    if let RowEnd::Every(bytes) = planned.row_end {
        // A rest at the end is a row as well, and a bad one.
        let (bytes, rows) = (u64::from(bytes.max(1)), end.saturating_sub(begin).div_ceil(u64::from(bytes.max(1))));
        let lines = rows.min(u64::from(layout.footer_rows));
        return Ok(Margin { bytes: end.saturating_sub(begin + (rows - lines) * bytes), lines });
    }
    let text = FileText { file, encoding: planned.encoding, stop };
    let mut distance = FIRST_BYTES;
    loop {
        // Where a row begins, whatever stands before it.
        let from = match end.checked_sub(distance).filter(|place| *place > begin) {
            Some(place) => Cutter::new(&text, &rows, end).cuts(begin, &[place]).map_err(failed)?[0],
            None => Some(begin),
        };
        if let Some(from) = from {
            let starts = LastRows::new(layout).read(&text, &automaton, from, end).map_err(failed)?;
            if starts.len() == layout.footer_rows as usize || from == begin {
                let (byte, lines) = starts.front().copied().unwrap_or((end, 0));
                return Ok(Margin { bytes: end - byte, lines });
            }
        }
        distance = distance.saturating_mul(8);
    }
}

/// Where the last rows begin, and the lines of the text before them.
struct LastRows {
    /// At most so many.
    count: usize,
    /// Whether rows without a byte are none.
    skips_blank: bool,
    starts: VecDeque<(u64, u64)>,
}

impl LastRows {
    fn new(layout: &Layout) -> Self {
        LastRows {
            count: layout.footer_rows as usize,
            skips_blank: layout.blank_rows == BlankRows::Skip && !layout.takes_empty_rows(),
            starts: VecDeque::new(),
        }
    }

    fn add(&mut self, start: u64, lines_before: u64) {
        self.starts.push_back((start, lines_before));
        if self.starts.len() > self.count {
            self.starts.pop_front();
        }
    }

    /// Reads from the start of a row to the end of the file: first bytes of the last rows, and the lines from there on.
    fn read(
        mut self,
        text: &FileText<'_>,
        automaton: &Automaton,
        from: u64,
        end: u64,
    ) -> std::io::Result<VecDeque<(u64, u64)>> {
        let mut window = vec![0; WINDOW_BYTES];
        let (mut state, mut at, mut row, mut lines) = (START, from, from, 0_u64);
        let mut reader = text.reader(from, end)?;
        // Bytes of the present row.
        let mut length = 0_u64;
        loop {
            let count = reader.read(&mut window)?;
            if count == 0 {
                break;
            }
            for &byte in &window[..count] {
                at += text.encoding.source_bytes(&[byte]);
                length += 1;
                let step = automaton.step(state, byte);
                state = step.state;
                match step.event {
                    Event::RowEnd if self.skips_blank && length == u64::from(step.length) => {}
                    Event::RowEnd => self.add(row, lines),
                    Event::CommentEnd => {}
                    _ => continue,
                }
                (row, lines, length) = (at, lines + 1, 0);
            }
        }
        if row < at {
            // A last row without row end.
            if !automaton.is_comment(state) {
                self.add(row, lines);
            }
            lines += 1;
        }
        self.starts.iter_mut().for_each(|(_, before)| *before = lines - *before);
        Ok(self.starts)
    }
}

#[cfg(test)]
mod tests {
    use headrace_types::{Column, ColumnType};

    use crate::slices::{SlicingSpec, plan_slices};

    use super::*;

    /// The margin of a file that holds `text`, and what it holds.
    fn foot(text: &str, footer_rows: u32, qualifier: Option<char>, columns: usize) -> (String, u64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, text).unwrap();
        let columns = (0..columns).map(|index| Column::new(format!("c{index}"), ColumnType::String, true)).collect();
        let comment = Some("#".to_owned());
        let layout =
            Layout { delimiter: "|".to_owned(), qualifier, footer_rows, comment, columns, ..Layout::default() };
        let files = vec![path.to_str().unwrap().to_owned()];
        let slice_bytes = 7.max(text.len() as u64 / 50);
        let slicing = plan_slices(&SlicingSpec { files, slice_bytes, layout, ..SlicingSpec::default() }).unwrap();
        let file = &slicing.files[0];
        assert_eq!(slicing.slices.last().map_or(0, |slice| slice.end_byte), text.len() as u64);
        assert!(slicing.slices.iter().all(|slice| slice.begin_byte <= file.data_end()));
        (text[file.data_end() as usize..].to_owned(), file.foot.lines)
    }

    #[test]
    fn the_last_rows_are_the_foot() {
        let found = |text: &str, rows| foot(text, rows, None, 2);
        assert_eq!(found("a|1\nb|2\nsum|3\n", 1), ("sum|3\n".to_owned(), 1));
        assert_eq!(found("a|1\nb|2\nsum|3", 2), ("b|2\nsum|3".to_owned(), 2));
        assert_eq!(found("a|1\r\nsum\r\n", 1), ("sum\r\n".to_owned(), 1));
        assert_eq!(found("a|1\nsum\n", 7), ("a|1\nsum\n".to_owned(), 2));
        assert_eq!(found("", 7), (String::new(), 0));
    }

    #[test]
    fn comments_and_blank_rows_are_no_rows_of_it() {
        let found = |text: &str, rows| foot(text, rows, None, 2);
        assert_eq!(found("a|1\nsum\n\n# end\n\n", 1), ("sum\n\n# end\n\n".to_owned(), 4));
        assert_eq!(found("a|1\nsum\n\nsum\n# end", 2), ("sum\n\nsum\n# end".to_owned(), 4));
        assert_eq!(foot("a\nb\n\n", 1, None, 1), ("\n".to_owned(), 1), "a row with one empty field");
    }

    #[test]
    fn rows_end_where_the_dialect_says() {
        assert_eq!(foot("a|1\n\"b\nc\"|2\n\"d\ne\n\"|3\n", 1, Some('"'), 2), ("\"d\ne\n\"|3\n".to_owned(), 1));
        // Far beyond the first look, and no state meets another one before the end.
        let long = "x|\"y\n\"\n".repeat(30_000);
        let text = format!("a|1\n\"{}\"|z\n", long.replace('"', "\"\""));
        assert_eq!(foot(&text, 1, Some('"'), 2), (text[4..].to_owned(), 1));
        assert_eq!(foot(&long, 100, Some('"'), 2).0.len(), 700);
    }
}
