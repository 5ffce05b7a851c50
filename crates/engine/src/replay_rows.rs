//! The rows of a file of repaired rejects. Rejects of several source files stand below each other there, each in the dialect of its
//! own: encoding, row end and order of columns; those of several sources in layouts of their own.

use std::os::unix::fs::MetadataExt;

use headrace_types::{CoreError, Encoding, ErrorKind, Header, Layout, RowEnd};
use serde::{Deserialize, Serialize};

use crate::line_parser::{Line, LineParser};
use crate::source::{ByteSource, decoded, from_range, modified_ns, open_file};
use crate::spec::{FileSpec, SliceSpec};

/// Bytes read at once.
const WINDOW_BYTES: usize = 256 * 1024;

/// A file of rows, and whose rows they are.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayRowsSpec {
    /// Absolute path.
    pub path: String,
    /// Columns and dialect of each source.
    pub layouts: Vec<Layout>,
    /// Files of the sources, as they were when they were read.
    pub files: Vec<FileSpec>,
    /// Whose rows stand in the file, from its front on.
    pub groups: Vec<RowGroup>,
    /// The first bytes of the first reject. A byte order mark there is a part of the row; any other was put in front by an editor.
    #[serde(default)]
    pub first_bytes: Vec<u8>,
}

/// Rows that are written like those of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowGroup {
    /// Index of the file.
    pub file: usize,
    /// Index of its layout.
    #[serde(default)]
    pub layout: usize,
    /// How many; none for all that are left.
    pub rows: Option<u64>,
}

/// What stands in the file: a file and a slice for each group, as a flow reads them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReplayRows {
    /// The same path each time, read in another way.
    pub files: Vec<FileSpec>,
    /// In the order of the groups; none of an empty group.
    pub slices: Vec<SliceSpec>,
    /// Lines of the whole file, those of `blank` included.
    pub rows: u64,
    /// Lines, from 1, that the layout skips: without a byte, or comments. First and last of those that follow each other.
    pub blank: Vec<(u64, u64)>,
}

/// Finds the rows. `is_cancelled` is asked now and then.
///
/// # Errors
/// Those of reading the file; `Specification` for a layout that means two things or a group of no file; `Cancelled`.
pub fn replay_rows(spec: &ReplayRowsSpec, is_cancelled: &mut dyn FnMut() -> bool) -> Result<ReplayRows, CoreError> {
    let (_, metadata) = open_file(&spec.path)?;
    // Such files begin and end with rows.
    let bare = |layout: &Layout| Layout { skip_lines: 0, header: Header::None, footer_rows: 0, ..layout.clone() };
    let layouts: Vec<_> = spec.layouts.iter().map(bare).collect();
    let whole = FileSpec {
        path: spec.path.clone(),
        size_bytes: metadata.len(),
        modified_ns: modified_ns(&metadata),
        inode: metadata.ino(),
        ..FileSpec::default()
    };
    let mut found = ReplayRows::default();
    let mut at = 0;
    for (index, group) in spec.groups.iter().enumerate() {
        let none = |what: String| CoreError::new(ErrorKind::Specification, format!("replay rows: there is no {what}"));
        let source = spec.files.get(group.file).ok_or_else(|| none(format!("file {}", group.file)))?;
        let layout = layouts.get(group.layout).ok_or_else(|| none(format!("layout {}", group.layout)))?;
        let mut file = FileSpec {
            row_end: either(&source.row_end),
            columns: source.columns.clone(),
            encoding: source.encoding,
            origin: source.origin.clone(),
            ..whole.clone()
        };
        if index == 0 {
            at = mark_bytes(&file, layout, &spec.first_bytes)?;
        }
        file.first_byte = at;
        let before = found.rows;
        let end = Walk { layout, file: &file, found: &mut found }.rows(group.rows, is_cancelled)?;
        if end > at {
            let number = found.slices.len() as u32 + 1;
            let slice = SliceSpec { number, file: index, begin_byte: at, end_byte: end, ..SliceSpec::default() };
            found.slices.push(SliceSpec { first_row: Some(before), ..slice });
        }
        found.files.push(file);
        at = end;
    }
    Ok(found)
}

/// Editors write rows with line feeds, with or without carriage return, whichever they had.
fn either(row_end: &RowEnd) -> RowEnd {
    if row_end.takes_carriage_return() { RowEnd::Either } else { row_end.clone() }
}

/// How long the mark is that an editor has put in front of a text in the encoding of its first group; 0 without one.
fn mark_bytes(file: &FileSpec, layout: &Layout, first_bytes: &[u8]) -> Result<u64, CoreError> {
    let mark: &[u8] = match file.encoding_in(layout) {
        Encoding::Utf8 => b"\xEF\xBB\xBF",
        Encoding::Utf16Le => b"\xFF\xFE",
        Encoding::Utf16Be => b"\xFE\xFF",
        _ => return Ok(0),
    };
    let mut head = [0; 3];
    let (mut source, mut length) = (from_range(file, 0, file.size_bytes.min(3))?, 0);
    while length < head.len() {
        match source.read(&mut head[length..])? {
            0 => break,
            count => length += count,
        }
    }
    let is_mark = head[..length].starts_with(mark) && !first_bytes.starts_with(mark);
    Ok(if is_mark { mark.len() as u64 } else { 0 })
}

/// What the front of a row that is skipped looks like; whether it is one, the parser says.
struct Skipped {
    /// Most bytes of a row that is nothing but its end.
    blank_bytes: usize,
    /// What a comment begins with, in the bytes that are read.
    comment: Option<Vec<u8>>,
}

impl Skipped {
    fn of(layout: &Layout, row_end: &RowEnd) -> Self {
        let blank_bytes = match row_end {
            RowEnd::Exactly(text) => layout.encoded(text).len(),
            _ => b"\r\n".len(),
        };
        Skipped { blank_bytes, comment: layout.comment.as_ref().map(|mark| layout.encoded(mark)) }
    }

    /// Bytes that say it.
    fn front_bytes(&self) -> usize {
        self.blank_bytes.max(self.comment.as_ref().map_or(0, Vec::len)) + 1
    }

    fn may_be(&self, front: &[u8]) -> bool {
        front.len() <= self.blank_bytes || self.comment.as_ref().is_some_and(|mark| front.starts_with(mark))
    }
}

/// The rows of one group.
struct Walk<'a> {
    layout: &'a Layout,
    file: &'a FileSpec,
    found: &'a mut ReplayRows,
}

impl Walk<'_> {
    /// Takes so many rows, or all; the place behind them.
    fn rows(&mut self, most: Option<u64>, is_cancelled: &mut dyn FnMut() -> bool) -> Result<u64, CoreError> {
        let (encoding, begin) = (self.file.encoding_in(self.layout), self.file.first_byte);
        let mut source = decoded(from_range(self.file, begin, self.file.size_bytes)?, encoding);
        let mut scanner = self.file.scanner(self.layout)?;
        let mut parser = LineParser::of_file(self.layout, self.file)?;
        let mut left = most.unwrap_or(u64::MAX);
        let mut window = vec![0; WINDOW_BYTES];
        let skipped = Skipped::of(self.layout, &self.file.row_end);
        // The front of the present row, as much of it as can say that it is skipped.
        let mut front = Vec::new();
        let front_bytes = skipped.front_bytes();
        let mut end = begin;
        while left > 0 {
            if is_cancelled() {
                return Err(CoreError::new(ErrorKind::Cancelled, "reading the repaired rows was cancelled"));
            }
            let count = source.read(&mut window)?;
            if count == 0 {
                if !front.is_empty() {
                    self.row(&mut parser, &skipped, &front)?;
                }
                break;
            }
            let mut rest = &window[..count];
            while left > 0 && !rest.is_empty() {
                let row_end = scanner.next_row_end(rest);
                let taken = row_end.map_or(rest.len(), |at| at + 1);
                front.extend_from_slice(&rest[..taken.min(front_bytes.saturating_sub(front.len()))]);
                end += encoding.source_bytes(&rest[..taken]);
                rest = &rest[taken..];
                if row_end.is_some() {
                    self.row(&mut parser, &skipped, &front)?;
                    front.clear();
                    left -= 1;
                }
            }
        }
        Ok(end)
    }

    /// Counts a row. `front`: all of it, or more than a blank one has.
    fn row(&mut self, parser: &mut LineParser, skipped: &Skipped, front: &[u8]) -> Result<(), CoreError> {
        self.found.rows += 1;
        if skipped.may_be(front) && matches!(parser.parse(front)?, Line::Skipped) {
            let row = self.found.rows;
            match self.found.blank.last_mut() {
                Some((_, last)) if *last + 1 == row => *last = row,
                _ => self.found.blank.push((row, row)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headrace_types::{Column, ColumnType, Encoding};

    fn layout() -> Layout {
        let columns = vec![Column::new("a", ColumnType::Int32, true), Column::new("b", ColumnType::String, true)];
        Layout { delimiter: ";".to_owned(), qualifier: Some('"'), columns, ..Layout::default() }
    }

    fn found(content: &[u8], layout: &Layout, files: &[FileSpec], groups: &[(usize, Option<u64>)]) -> ReplayRows {
        found_behind(b"", content, layout, files, groups)
    }

    fn found_behind(
        first_bytes: &[u8],
        content: &[u8],
        layout: &Layout,
        files: &[FileSpec],
        groups: &[(usize, Option<u64>)],
    ) -> ReplayRows {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("repair");
        std::fs::write(&path, content).unwrap();
        let spec = ReplayRowsSpec {
            path: path.to_str().unwrap().to_owned(),
            layouts: vec![layout.clone()],
            files: files.to_vec(),
            groups: groups.iter().map(|&(file, rows)| RowGroup { file, layout: 0, rows }).collect(),
            first_bytes: first_bytes.to_vec(),
        };
        replay_rows(&spec, &mut || false).unwrap()
    }

    fn ranges(found: &ReplayRows) -> Vec<(u64, u64, Option<u64>)> {
        found.slices.iter().map(|slice| (slice.begin_byte, slice.end_byte, slice.first_row)).collect()
    }

    fn ending(row_end: RowEnd) -> FileSpec {
        FileSpec { row_end, ..FileSpec::default() }
    }

    #[test]
    fn rows_are_those_of_the_parser() {
        let layout = Layout { header: Header::Skip, skip_lines: 2, comment: Some("#".to_owned()), ..layout() };
        let content = b"1;\"x\ny\"\r\n\n#2;a long comment\n3;last";
        let found = found(content, &layout, &[ending(RowEnd::OnlyCrlf)], &[(0, None)]);
        assert_eq!((found.rows, found.blank.as_slice()), (4, &[(2, 3)][..]));
        assert_eq!(ranges(&found), [(0, content.len() as u64, Some(0))]);
        assert_eq!(found.files[0].row_end, RowEnd::Either);
    }

    #[test]
    fn blank_rows_with_long_row_ends_and_comments_in_a_code_page() {
        let end = "<<END OF ROW>>\n";
        let content = format!("2;b{end}{end}12;long enough{end}");
        let found_blank =
            found(content.as_bytes(), &layout(), &[ending(RowEnd::Exactly(end.to_owned()))], &[(0, None)]);
        assert_eq!((found_blank.rows, found_blank.blank.as_slice()), (3, &[(2, 2)][..]));
        let page = Encoding::all().find(|encoding| encoding.name() == "windows-1252").unwrap();
        let layout = Layout { encoding: page, comment: Some("§".to_owned()), ..layout() };
        let content = b"1;abc\n\xA7 a row that is dropped by this mark\n3;x\n";
        let found = found(content, &layout, &[ending(RowEnd::Either)], &[(0, None)]);
        assert_eq!((found.rows, found.blank.as_slice()), (3, &[(2, 2)][..]));
    }

    #[test]
    fn rows_end_as_those_of_their_file() {
        let mut layout = layout();
        layout.columns[1].qualified = false;
        // A qualifier means something in the first column only, which is the second field.
        let turned = FileSpec { columns: Some(vec![Some(1), Some(0)]), ..ending(RowEnd::Either) };
        assert_eq!(found(b"x;\"1\n2\"\n", &layout, &[turned], &[(0, None)]).rows, 1);
        assert_eq!(found(b"x;\"1\n2\"\n", &layout, &[ending(RowEnd::Either)], &[(0, None)]).rows, 2);
    }

    #[test]
    fn a_mark_is_no_part_of_the_first_row() {
        let found = found(b"\xEF\xBB\xBF1;a\n", &layout(), &[ending(RowEnd::Either)], &[(0, None)]);
        assert_eq!((found.rows, ranges(&found)), (1, vec![(3, 7, Some(0))]));
        assert_eq!(found.files[0].first_byte, 3);
    }

    #[test]
    fn only_marks_of_the_first_rows_encoding_and_none_of_a_reject() {
        let begin = |first_bytes: &[u8], content: &[u8], encoding: Encoding| {
            let (layout, file) = match encoding {
                Encoding::Utf16Le | Encoding::Utf16Be => {
                    (Encoding::Utf16, FileSpec { encoding, ..FileSpec::default() })
                }
                _ => (encoding, FileSpec::default()),
            };
            let layout = Layout { encoding: layout, ..self::layout() };
            ranges(&found_behind(first_bytes, content, &layout, &[file], &[(0, None)]))[0].0
        };
        let page = Encoding::all().find(|encoding| encoding.name() == "windows-1252").unwrap();
        for (mark, own) in [
            (b"\xEF\xBB\xBF".as_slice(), Encoding::Utf8),
            (b"\xFF\xFE", Encoding::Utf16Le),
            (b"\xFE\xFF", Encoding::Utf16Be),
        ] {
            let content = [mark, b"1\0;\0a\0\n\0"].concat();
            for encoding in [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be, page] {
                let skipped = if encoding == own { mark.len() as u64 } else { 0 };
                assert_eq!(begin(b"1", &content, encoding), skipped, "{mark:?} in {encoding:?}");
                assert_eq!(begin(mark, &content, encoding), 0);
            }
        }
    }

    #[test]
    fn nothing_and_less_than_there_should_be() {
        let file = [ending(RowEnd::Either)];
        assert_eq!(ranges(&found(b"", &layout(), &file, &[(0, None)])), []);
        let few = found(b"1;a\n", &layout(), &file, &[(0, Some(3)), (0, None)]);
        assert_eq!((few.rows, ranges(&few), few.files.len()), (1, vec![(0, 4, Some(0))], 2));
    }

    #[test]
    fn groups_have_their_own_row_ends_and_encodings() {
        let exactly = ending(RowEnd::Exactly("|\n".to_owned()));
        let other =
            found(b"1;a\nb|\n2;c\n3;d\n", &layout(), &[exactly, ending(RowEnd::OnlyLf)], &[(0, Some(1)), (1, None)]);
        assert_eq!((other.rows, ranges(&other)), (3, vec![(0, 7, Some(0)), (7, 15, Some(1))]));

        let utf16 = Layout { encoding: Encoding::Utf16, ..layout() };
        let of = |encoding| FileSpec { encoding, row_end: RowEnd::Either, ..FileSpec::default() };
        let mut content: Vec<u8> = "1;\u{1F600}\n2;b\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let middle = content.len() as u64;
        content.extend("3;c\r\n\n".encode_utf16().flat_map(u16::to_be_bytes));
        let both = found(&content, &utf16, &[of(Encoding::Utf16Be), of(Encoding::Utf16Le)], &[(1, Some(2)), (0, None)]);
        assert_eq!((both.rows, both.blank.as_slice()), (4, &[(4, 4)][..]));
        assert_eq!(ranges(&both), [(0, middle, Some(0)), (middle, content.len() as u64, Some(2))]);
    }

    #[test]
    fn rows_longer_than_windows() {
        let long = "x".repeat(2 * WINDOW_BYTES);
        let content = format!("1;\"{long}\n\"\n2;b\n\n");
        let found = found(content.as_bytes(), &layout(), &[ending(RowEnd::Either)], &[(0, Some(1)), (0, None)]);
        assert_eq!((found.rows, found.blank.as_slice()), (3, &[(3, 3)][..]));
        assert_eq!(found.slices[0].end_byte, content.len() as u64 - 5);
    }
}
