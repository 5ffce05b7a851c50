//! First and last key of each file: what partitions are planned from before a row is loaded.

use std::fs::File;
use std::os::unix::fs::FileExt;

use headrace_types::{CoreError, ErrorKind, Layout};
use serde::{Deserialize, Serialize};

use crate::line_parser::{Line, LineParser};
use crate::sink::key::{Key, KeyColumn};
use crate::source::{check_unchanged, open_file};
use crate::spec::FileSpec;

/// Bytes read at first from either end; four times as many as long as no row was found among them.
const WINDOW_BYTES: u64 = 64 * 1024;

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
/// `Specification` for a column that is not in the layout or has no order, or a layout with a qualifier (where the last row
/// starts is known only to who has read the whole file); `Source` and `FileChanged` for the files.
pub fn key_bounds(spec: &KeyBoundsSpec) -> Result<FileBounds, CoreError> {
    let refuse = |text: &str| Err(CoreError::new(ErrorKind::Specification, format!("key bounds: {text}")));
    if spec.layout.qualifier.is_some() {
        return refuse("the layout has a qualifier");
    }
    let Some(column) = KeyColumn::of(&spec.layout, &spec.column) else {
        return refuse(&format!("`{}` is not a column whose values can be keys", spec.column));
    };
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
        let (begin, end) = (self.planned.first_byte, self.planned.size_bytes);
        let mut window = WINDOW_BYTES;
        loop {
            let behind = end.min(begin.saturating_add(window));
            let text = self.read(begin, behind)?;
            let whole = if behind == end { text.len() } else { memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1) };
            let mut parser = self.parser(true)?;
            for line in text[..whole].split_inclusive(|&byte| byte == b'\n') {
                if let Some(key) = self.key(&mut parser, line)? {
                    return Ok(Some(key));
                }
            }
            if behind == end {
                return Ok(None);
            }
            window *= 4;
        }
    }

    /// Key of the last row.
    fn last(&self) -> Result<Option<Key>, CoreError> {
        let (begin, end) = (self.planned.first_byte, self.planned.size_bytes);
        let mut window = WINDOW_BYTES;
        loop {
            let from = begin.max(end.saturating_sub(window));
            let text = self.read(from, end)?;
            // In the middle of the file the first line is a part of one.
            let whole = if from == begin { 0 } else { memchr::memchr(b'\n', &text).map_or(text.len(), |at| at + 1) };
            let lines: Vec<&[u8]> = text[whole..].split_inclusive(|&byte| byte == b'\n').collect();
            let header = if from == begin { self.layout.header_rows as usize } else { 0 };
            let mut parser = self.parser(false)?;
            for line in lines.iter().skip(header).rev() {
                if let Some(key) = self.key(&mut parser, line)? {
                    return Ok(Some(key));
                }
            }
            if from == begin {
                return Ok(None);
            }
            window *= 4;
        }
    }

    fn parser(&self, with_header: bool) -> Result<LineParser, CoreError> {
        let header_rows = if with_header { u64::from(self.layout.header_rows) } else { 0 };
        LineParser::new(self.layout, self.planned.row_end, header_rows)
    }

    fn key(&self, parser: &mut LineParser, line: &[u8]) -> Result<Option<Key>, CoreError> {
        Ok(match parser.parse(line)? {
            Line::Row(batch) => self.column.keys(&batch).map(|keys| keys.at(0)),
            Line::Reject | Line::Skipped => None,
        })
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

    fn bounds_of(text: &str, column_type: ColumnType, header_rows: u32) -> Bounds {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, text).unwrap();
        let column = |name: &str, column_type| Column { name: name.to_owned(), column_type, nullable: false };
        let layout = Layout {
            delimiter: '|',
            qualifier: None,
            trailing_delimiter: false,
            header_rows,
            null_tokens: vec![],
            columns: vec![column("text", ColumnType::String), column("key", column_type)],
        };
        let path = path.to_str().unwrap().to_owned();
        let slicing = SlicingSpec { files: vec![path], slice_bytes: 1 << 20, layout: layout.clone() };
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
        let long = "x".repeat(3 * WINDOW_BYTES as usize);
        let text = format!("{long}|1\n{long}|2\n{long}|3\n");
        assert_eq!(bounds_of(&text, ColumnType::Int32, 0), some("1", "3"));
    }
}
