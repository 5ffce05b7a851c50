//! The last rows of a file that hold no data, found from its end.

use std::io;

use headrace_parse::Automaton;
use headrace_types::{CoreError, Layout, RowEnd};

use super::cuts::{Cutter, Text};
use super::unreadable;
use crate::last_row_end::{FOUND_BYTES, no_last_row_end};
use crate::last_rows::{LastRows, LineStart};
use crate::spec::{FileSpec, Margin};

/// How far before the end the rows are looked for at first.
const FIRST_BYTES: u64 = 64 << 10;
/// Bytes read at once.
const WINDOW_BYTES: usize = 256 << 10;
/// How far before the end of text that is dear.
const DEAR_BYTES: u64 = 4 << 20;

/// A text, and where its rows begin and end.
pub struct Rows<'a> {
    /// The text.
    pub text: &'a dyn Text,
    /// First byte of the first row.
    pub begin: u64,
    /// Byte behind the last one.
    pub end: u64,
    /// Whether it is read only where that takes few bytes.
    pub is_dear: bool,
}

impl Rows<'_> {
    /// The last `footer_rows` rows, with the comments and blank rows between and behind them. None where it would take much reading
    /// to tell.
    ///
    /// # Errors
    /// `Source` when the file cannot be read, or ends in a row that must have a row end; `Specification` for a layout that means
    /// two things.
    pub fn foot(&self, planned: &FileSpec, layout: &Layout) -> Result<Option<Margin>, CoreError> {
        if layout.footer_rows == 0 {
            return Ok(Some(Margin::default()));
        }
        let Some((rows, open)) = self.last_rows(planned, layout)? else { return Ok(None) };
        if let Some(open) = open.filter(|_| planned.needs_last_row_end) {
            let found = self.first_bytes(open.source_byte).map_err(|error| unreadable(&planned.path, error))?;
            let found = headrace_parse::shown(planned.encoding, &found);
            return Err(no_last_row_end(planned, open.source_byte, None, &found));
        }
        let (start, end) = (rows.start(), rows.end());
        Ok(Some(Margin { bytes: end.source_byte - start.source_byte, lines: end.line - start.line }))
    }

    /// The last rows, and the start of the last line if it has no row end.
    fn last_rows(
        &self,
        planned: &FileSpec,
        layout: &Layout,
    ) -> Result<Option<(LastRows, Option<LineStart>)>, CoreError> {
        let failed = |error: io::Error| unreadable(&planned.path, error);
        let rows = planned.rows(layout)?;
        let mut distance = FIRST_BYTES;
        loop {
            let place = self.end.checked_sub(distance).filter(|place| *place > self.begin);
            let from = match place {
                Some(place) => self.row_at(place, &planned.row_end, &rows).map_err(failed)?,
                None => Some(self.begin),
            };
            if let Some(from) = from {
                let mut last = LastRows::new(planned, layout, from)?;
                let open = self.read(&mut last, from).map_err(failed)?;
                if last.are_all() || last.has_swallowed() || from == self.begin {
                    return Ok(Some((last, open)));
                }
            }
            if self.is_dear && distance >= DEAR_BYTES {
                return Ok(None);
            }
            distance = distance.saturating_mul(8);
        }
    }

    /// Where a row begins behind a place, whatever stands before it.
    fn row_at(&self, place: u64, row_end: &RowEnd, rows: &Automaton) -> io::Result<Option<u64>> {
        if let RowEnd::Every(bytes) = row_end {
            let from = self.begin + (place - self.begin).next_multiple_of(u64::from(*bytes).max(1));
            return Ok(Some(from).filter(|from| *from < self.end));
        }
        let cutter = Cutter::new(self.text, rows, self.end);
        let found = if self.is_dear { cutter.near_cuts(&[place])? } else { cutter.cuts(self.begin, &[place])? };
        Ok(found[0])
    }

    fn read(&self, last: &mut LastRows, from: u64) -> io::Result<Option<LineStart>> {
        let mut window = vec![0; WINDOW_BYTES];
        let mut reader = self.text.reader(from, self.end)?;
        loop {
            match reader.read(&mut window)? {
                0 => return Ok(last.finish()),
                count => last.read(&window[..count]),
            }
        }
    }

    fn first_bytes(&self, from: u64) -> io::Result<Vec<u8>> {
        let mut found = vec![0; FOUND_BYTES];
        let count = self.text.reader(from, self.end)?.read(&mut found)?;
        found.truncate(count);
        Ok(found)
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
