//! First and last key of each file: what partitions are planned from before a row is loaded.

use std::fs::File;
use std::os::unix::fs::FileExt;

use headrace_transform::partition::Key;
use headrace_types::{CoreError, ErrorKind, Layout, RowEndInFields, RowEnds};
use serde::{Deserialize, Serialize};

use crate::key_column::KeyColumn;
use crate::line_parser::LineParser;
use crate::source::{check_unchanged, open_file};
use crate::spec::{Compression, FileSpec};

/// Bytes read at first from either end; more where a row is longer.
const WINDOW_BYTES: u64 = 64 * 1024;
/// What windows grow to where no row is found.
const LARGE_WINDOW_BYTES: u64 = 1 << 20;
/// A longer line is no row: flows reject it.
const MAX_ROW_BYTES: u64 = 64 << 20;

/// Which column of which files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyBoundsSpec {
    /// Files, as they were when their slices were cut.
    pub files: Vec<FileSpec>,
    /// Columns and dialect.
    pub layout: Layout,
    /// Column of the layout: whole numbers, decimals, dates or timestamps.
    pub column: String,
}

/// Keys of all files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileBounds {
    /// In the order of the files.
    pub files: Vec<Bounds>,
}

/// Keys of one file, as canonical text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Bounds {
    /// Key of the first row that conforms to the layout; none if there is no such row.
    pub first: Option<String>,
    /// Key of the last one.
    pub last: Option<String>,
}

/// Reads the keys.
///
/// # Errors
/// `Specification` for a column that is not in the layout or has no order, or a layout in which a line feed need not end a row (where
/// the last row starts is known only to who has read what stands before it); `Source` and `FileChanged` for the files.
pub fn key_bounds(spec: &KeyBoundsSpec) -> Result<FileBounds, CoreError> {
    let refuse = |text: &str| Err(CoreError::new(ErrorKind::Specification, format!("key bounds: {text}")));
    let Layout { qualifier, escape, comment, row_end, row_end_in_fields, .. } = &spec.layout;
    let is_plain = *row_end == RowEnds::Auto && *row_end_in_fields == RowEndInFields::EndsRow;
    if qualifier.is_some() || escape.is_some() || comment.is_some() || !is_plain {
        return refuse("not every line feed ends a row, or other texts do");
    }
    let Some(column) = KeyColumn::of(&spec.layout, &spec.column) else {
        return refuse(&format!("`{}` is not a column whose values can be keys", spec.column));
    };
    if spec.files.iter().any(|file| file.stream.is_some() || file.compression != Compression::None) {
        return refuse("a stream or a compressed file cannot be read from its end");
    }
    let files = spec.files.iter().map(|file| bounds(file, &spec.layout, column)).collect::<Result<_, _>>()?;
    Ok(FileBounds { files })
}

fn bounds(planned: &FileSpec, layout: &Layout, column: KeyColumn) -> Result<Bounds, CoreError> {
    let (file, metadata) = open_file(&planned.path)?;
    check_unchanged(planned, &metadata)?;
    let file = Lines { file, planned, layout, column };
    let Some(first) = file.first()? else { return Ok(Bounds::default()) };
    let text = |key| Some(column.text(key));
    Ok(Bounds { first: text(first), last: file.last()?.and_then(text) })
}

struct Lines<'a> {
    file: File,
    planned: &'a FileSpec,
    layout: &'a Layout,
    column: KeyColumn,
}

impl Lines<'_> {
    /// Key of the first row.
    fn first(&self) -> Result<Option<Key>, CoreError> {
        let (mut at, end) = (self.planned.data_begin(), self.planned.data_end());
        let mut parser = self.parser()?;
        // The front of a line whose end was not read yet, and whether it is too long to be kept.
        let (mut text, mut is_long) = (Vec::new(), false);
        let mut window = WINDOW_BYTES;
        while at < end {
            let behind = end.min(at.saturating_add(window));
            text.extend_from_slice(&self.read(at, behind)?);
            at = behind;
            if is_long || text.len() as u64 > MAX_ROW_BYTES {
                let line = memchr::memchr(b'\n', &text).map_or(text.len(), |at| at + 1);
                is_long = is_long || line as u64 > MAX_ROW_BYTES;
                if is_long {
                    is_long = text[line - 1] != b'\n';
                    text.drain(..line);
                }
            }
            let whole = if at == end { text.len() } else { memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1) };
            if let Some(rows) = parser.rows(&text[..whole])?.first() {
                return Ok(self.column.keys(rows).map(|keys| keys.at(0)));
            }
            text.drain(..whole);
            window = LARGE_WINDOW_BYTES.max(text.len() as u64 / 2);
        }
        Ok(None)
    }

    /// Key of the last row.
    fn last(&self) -> Result<Option<Key>, CoreError> {
        let (begin, mut end) = (self.planned.data_begin(), self.planned.data_end());
        let mut window = WINDOW_BYTES;
        // Whether `end` is inside a line that is too long.
        let mut is_long = false;
        loop {
            let from = begin.max(end.saturating_sub(window));
            let mut text = self.read(from, end)?;
            if is_long {
                text.truncate(memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1));
                is_long = text.is_empty();
            }
            // In the middle of the file the first line is a part of one.
            let whole = if from == begin { 0 } else { memchr::memchr(b'\n', &text).map_or(text.len(), |at| at + 1) };
            if let Some(rows) = self.parser()?.rows(&text[whole..])?.last() {
                return Ok(self.column.keys(rows).map(|keys| keys.at(rows.num_rows() - 1)));
            }
            if from == begin {
                return Ok(None);
            }
            if whole < text.len() {
                (end, window) = (from + whole as u64, LARGE_WINDOW_BYTES);
            } else if is_long || text.len() as u64 > MAX_ROW_BYTES {
                (end, window, is_long) = (from, LARGE_WINDOW_BYTES, true);
            } else {
                (end, window) = (from + text.len() as u64, (4 * window).min(MAX_ROW_BYTES + 1));
            }
        }
    }

    fn parser(&self) -> Result<LineParser, CoreError> {
        LineParser::of_file(self.layout, self.planned)
    }

    fn read(&self, begin: u64, end: u64) -> Result<Vec<u8>, CoreError> {
        let mut text = vec![0; (end - begin) as usize];
        self.file.read_exact_at(&mut text, begin).map_err(|error| {
            CoreError::new(ErrorKind::Source, "cannot read a source file")
                .at_file(&self.planned.path)
                .found(error.to_string())
                .hint("Check the disk or mount that holds it.")
        })?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slices::{SlicingSpec, plan_slices};
    use headrace_types::{Column, ColumnType};

    fn bounds_of(text: &str, column_type: ColumnType, skip_lines: u32) -> Bounds {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, text).unwrap();
        let column = |name: &str, column_type| Column::new(name, column_type, false);
        let layout = Layout {
            delimiter: "|".to_owned(),
            skip_lines,
            columns: vec![column("text", ColumnType::String), column("key", column_type)],
            ..Layout::default()
        };
        let path = path.to_str().unwrap().to_owned();
        let slicing =
            SlicingSpec { files: vec![path], slice_bytes: 1 << 20, layout: layout.clone(), ..SlicingSpec::default() };
        let files = plan_slices(&slicing).unwrap().files;
        key_bounds(&KeyBoundsSpec { files, layout, column: "key".to_owned() }).unwrap().files.remove(0)
    }

    fn some(first: &str, last: &str) -> Bounds {
        Bounds { first: Some(first.to_owned()), last: Some(last.to_owned()) }
    }

    #[test]
    fn the_first_and_the_last_row_are_read() {
        let int = ColumnType::Int64;
        assert_eq!(bounds_of("a|1\nb|2\nc|3\n", int, 0), some("1", "3"));
        assert_eq!(bounds_of("a|1\nb|2\nc|3", int, 0), some("1", "3"), "no row end behind the last row");
        assert_eq!(bounds_of("a|9\nb|2\nc|3\n", int, 1), some("2", "3"), "header");
        assert_eq!(bounds_of("a|7\n", int, 0), some("7", "7"));
        assert_eq!(bounds_of("", int, 0), Bounds::default());
        assert_eq!(bounds_of("a|7\n", int, 1), Bounds::default(), "nothing but a header");
        assert_eq!(bounds_of("x|bad\na|1\nb|2\nx\n\n", int, 0), some("1", "2"), "rejects and blank lines");
        assert_eq!(bounds_of("bad\n", int, 0), Bounds::default());
        assert_eq!(
            bounds_of("a|2024-02-29\r\nb|2024-03-01\r\n", ColumnType::Date, 0),
            some("2024-02-29", "2024-03-01")
        );
        let decimal = ColumnType::Decimal { precision: 20, scale: 2 };
        assert_eq!(bounds_of("a|-1.5\nb|7\n", decimal, 0), some("-1.50", "7.00"));
    }

    #[test]
    fn rows_longer_than_a_window_are_found_from_both_ends() {
        for times in [1, 3, 17, 40] {
            let long = "x".repeat(times * WINDOW_BYTES as usize);
            for end in ["\n", ""] {
                let text = format!("{long}|1\n{long}|2\n{long}|3{end}");
                assert_eq!(bounds_of(&text, ColumnType::Int32, 0), some("1", "3"));
                assert_eq!(bounds_of(&text, ColumnType::Int32, 1), some("2", "3"), "header");
            }
        }
    }

    #[test]
    fn rows_far_from_both_ends_are_found() {
        for times in [1, 5, 40_000, 400_000] {
            let bad = "a|b|c\n\n".repeat(times);
            let text = format!("head|7\n{bad}a|1\nb|2\n{bad}c|3\n{bad}");
            assert_eq!(bounds_of(&text, ColumnType::Int32, 1), some("1", "3"));
        }
    }
}
