//! Cutting files into slices: byte ranges that start and end on row boundaries.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use headrace_parse::RowScanner;
use headrace_types::{CoreError, ErrorKind, Layout, RowEnd};
use serde::{Deserialize, Serialize};

use crate::source::{modified_ns, open_file};
use crate::spec::{FileSpec, SliceSpec};

/// Bytes read at once when looking for a row end.
const WINDOW_BYTES: usize = 64 * 1024;

/// What to cut.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlicingSpec {
    /// Absolute paths.
    pub files: Vec<String>,
    /// Size to aim at, bytes.
    pub slice_bytes: u64,
    /// Dialect of the files.
    pub layout: Layout,
}

/// Files as they are now, and their slices, numbered from 1 in file order. An empty file has none.
#[derive(Debug, Clone, Serialize)]
pub struct Slicing {
    /// Files.
    pub files: Vec<FileSpec>,
    /// Slices.
    pub slices: Vec<SliceSpec>,
}

/// Cuts all files.
///
/// # Errors
/// `Source` when a file is missing, cannot be read or is no regular file.
pub fn plan_slices(spec: &SlicingSpec) -> Result<Slicing, CoreError> {
    let mut slicing = Slicing { files: Vec::new(), slices: Vec::new() };
    for path in &spec.files {
        let (file, metadata) = open_file(path)?;
        let failed = |error: std::io::Error| {
            CoreError::new(ErrorKind::Source, "cannot read a source file")
                .at_file(path)
                .found(error.to_string())
                .hint("Check the disk or mount that holds it.")
        };
        let first_byte = byte_order_mark(&file).map_err(failed)?;
        let row_end = first_row_end(&file, first_byte, RowScanner::of(&spec.layout)).map_err(failed)?;
        let planned = FileSpec {
            path: path.clone(),
            size_bytes: metadata.len(),
            modified_ns: modified_ns(&metadata),
            inode: metadata.ino(),
            row_end,
            first_byte,
        };
        let cuts = cut(&file, &planned, spec).map_err(failed)?;
        let index = slicing.files.len();
        for range in cuts.windows(2) {
            let number = slicing.slices.len() as u32 + 1;
            slicing.slices.push(SliceSpec { number, file: index, begin_byte: range[0], end_byte: range[1] });
        }
        slicing.files.push(planned);
    }
    Ok(slicing)
}

/// Strictly ascending cut points from the first line to the end of the file.
fn cut(file: &File, planned: &FileSpec, spec: &SlicingSpec) -> std::io::Result<Vec<u64>> {
    let end = planned.size_bytes;
    let mut cuts = vec![planned.first_byte];
    if planned.first_byte >= end {
        return Ok(cuts);
    }
    // Whether a line feed ends a row is only known to who has read everything before it.
    if spec.layout.qualifier.is_some() {
        cuts.push(end);
        return Ok(cuts);
    }
    // Header rows stay in the first slice.
    let mut first_cut = planned.first_byte;
    for _ in 0..spec.layout.header_rows {
        first_cut = after_row_end(file, first_cut, end)?;
    }
    let pieces = (end - planned.first_byte).div_ceil(spec.slice_bytes.max(1)).max(1);
    let step = (end - planned.first_byte).div_ceil(pieces);
    for piece in 1..pieces {
        let nominal = (planned.first_byte + piece * step).max(first_cut);
        let last = cuts[cuts.len() - 1];
        // A row longer than a slice swallows the cuts inside it.
        if nominal <= last {
            continue;
        }
        // From the byte before: a cut that falls right behind a row end stays there.
        let boundary = after_row_end(file, nominal - 1, end)?;
        if boundary >= end {
            break;
        }
        if boundary > last {
            cuts.push(boundary);
        }
    }
    cuts.push(end);
    Ok(cuts)
}

/// Byte behind the first line feed at or after `from`; `end` when there is none before it.
fn after_row_end(file: &File, from: u64, end: u64) -> std::io::Result<u64> {
    let mut window = vec![0; WINDOW_BYTES];
    let mut at = from;
    while at < end {
        let count = read_some(file, &mut window, at)?;
        if count == 0 {
            break;
        }
        if let Some(found) = memchr::memchr(b'\n', &window[..count]) {
            return Ok((at + found as u64 + 1).min(end));
        }
        at += count as u64;
    }
    Ok(end)
}

/// Row ends of a file, by its first row, however long it is: even if it is rejected, the others keep no carriage return.
fn first_row_end(file: &File, from: u64, mut scanner: RowScanner) -> std::io::Result<RowEnd> {
    let mut window = vec![0; WINDOW_BYTES];
    let (mut at, mut previous) = (from, 0);
    loop {
        let count = read_some(file, &mut window, at)?;
        if count == 0 {
            return Ok(RowEnd::Lf);
        }
        if let Some(found) = scanner.next_row_end(&window[..count]) {
            let before = if found > 0 { window[found - 1] } else { previous };
            return Ok(if before == b'\r' { RowEnd::Crlf } else { RowEnd::Lf });
        }
        previous = window[count - 1];
        at += count as u64;
    }
}

/// Length of the UTF-8 byte order mark at the start, if there is one.
fn byte_order_mark(file: &File) -> std::io::Result<u64> {
    let mut start = [0; 3];
    let count = read_some(file, &mut start, 0)?;
    Ok(if start[..count] == *b"\xEF\xBB\xBF" { 3 } else { 0 })
}

fn read_some(file: &File, into: &mut [u8], at: u64) -> std::io::Result<usize> {
    loop {
        match file.read_at(into, at) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headrace_types::{Column, ColumnType};

    fn plan(content: &[u8], slice_bytes: u64, header_rows: u32) -> Slicing {
        plan_qualified(content, slice_bytes, header_rows, None)
    }

    fn plan_qualified(content: &[u8], slice_bytes: u64, header_rows: u32, qualifier: Option<char>) -> Slicing {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, content).unwrap();
        let columns = vec![Column { name: "a".to_owned(), column_type: ColumnType::String, nullable: true }];
        let layout =
            Layout { delimiter: '|', qualifier, trailing_delimiter: false, header_rows, null_tokens: vec![], columns };
        let files = vec![path.to_str().unwrap().to_owned()];
        plan_slices(&SlicingSpec { files, slice_bytes, layout }).unwrap()
    }

    #[test]
    fn slices_cover_the_file_and_end_on_row_ends() {
        let content = b"a\nbb\n\nccc\n\n\ndddd\neeeeeeeeeeeeeeeeeeee\nf";
        for slice_bytes in 1..50 {
            for header_rows in 0..3 {
                let slicing = plan(content, slice_bytes, header_rows);
                let mut at = 0;
                for (index, slice) in slicing.slices.iter().enumerate() {
                    assert_eq!((slice.number as usize, slice.begin_byte), (index + 1, at));
                    assert!(slice.end_byte > slice.begin_byte);
                    at = slice.end_byte;
                    assert!(at == content.len() as u64 || content[at as usize - 1] == b'\n');
                }
                assert_eq!(at, content.len() as u64);
                let header =
                    content.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at as u64 + 1);
                let header_end = header.take(header_rows as usize).last().unwrap_or(0);
                assert!(slicing.slices[0].end_byte >= header_end);
            }
        }
        assert!(plan(content, 4, 0).slices.len() > 4);
    }

    #[test]
    fn empty_files_byte_order_marks_and_row_ends() {
        assert!(plan(b"", 10, 0).slices.is_empty());
        let marked = plan(b"\xEF\xBB\xBFa\r\nb\r\n", 100, 0);
        assert_eq!((marked.slices[0].begin_byte, marked.files[0].row_end), (3, RowEnd::Crlf));
        assert!(plan(b"\xEF\xBB\xBF", 10, 1).slices.is_empty());
        assert_eq!(plan(b"a\nb\r\n", 100, 0).files[0].row_end, RowEnd::Lf);
        let mut long = vec![b'x'; WINDOW_BYTES - 1];
        long.extend_from_slice(b"\r\n");
        assert_eq!(plan(&long, 100, 0).files[0].row_end, RowEnd::Crlf);
        assert_eq!(plan(&long, 100, 5).slices.len(), 1);
    }

    #[test]
    fn the_end_of_a_first_row_longer_than_max_row_is_found() {
        let file = tempfile::tempfile().unwrap();
        // In front of it a hole: no disk is filled.
        file.write_all_at(b"\r\n", (64 << 20) + 3 * WINDOW_BYTES as u64).unwrap();
        assert_eq!(first_row_end(&file, 0, RowScanner::new(b'|', None)).unwrap(), RowEnd::Crlf);
    }

    #[test]
    fn a_file_with_a_qualifier_is_one_slice() {
        let content = b"\"a\nb\"\n1\n2\n3\n";
        for slice_bytes in 1..20 {
            let slicing = plan_qualified(content, slice_bytes, 1, Some('"'));
            let ranges: Vec<_> = slicing.slices.iter().map(|slice| (slice.begin_byte, slice.end_byte)).collect();
            assert_eq!(ranges, [(0, content.len() as u64)]);
        }
        assert!(plan_qualified(b"", 1, 0, Some('"')).slices.is_empty());
    }

    #[test]
    fn the_first_row_with_a_qualifier_tells_how_rows_end() {
        let row_end = |content: &[u8]| plan_qualified(content, 100, 0, Some('"')).files[0].row_end;
        assert_eq!(row_end(b"\"a\nb\"|c\r\nd\n"), RowEnd::Crlf);
        assert_eq!(row_end(b"\"a\r\nb\"|c\nd\r\n"), RowEnd::Lf);
        assert_eq!(row_end(b"3\" x 5\"\r\n"), RowEnd::Crlf);
        assert_eq!(row_end(b"\"never closed\r\n"), RowEnd::Lf);
        // The scanner's state goes from window to window.
        let mut long = vec![b'\n'; 2 * WINDOW_BYTES - 2];
        long[0] = b'"';
        long.extend_from_slice(b"\"\r\n");
        assert_eq!(row_end(&long), RowEnd::Crlf);
    }
}
