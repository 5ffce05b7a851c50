//! Cutting files into slices: byte ranges that start and end on row boundaries.

mod cuts;
mod foot;
mod head;
mod looks;
mod packed;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::Duration;

use headrace_parse::{Automaton, Parser, RowScanner};
use headrace_types::{CoreError, ErrorKind, Layout, RowEnd};
use serde::{Deserialize, Serialize};

use self::cuts::{Cutter, FileText};
use self::looks::{Look, is_stream, look, stream};
use self::packed::cut_pieces;
use crate::source::Stop;
use crate::spec::{Compression, FileSpec, SliceSpec, TextRange, gap_or_overlap};

pub use self::head::{HeadPlace, discard, read_header, row_end, skip_lines};

/// Bytes read at once when looking for a row end.
const WINDOW_BYTES: usize = 64 * 1024;

/// Time between two looks whether it was cancelled.
const STEP: Duration = Duration::from_millis(5);

/// What to cut.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlicingSpec {
    /// Absolute paths.
    pub files: Vec<String>,
    /// Size to aim at, bytes.
    pub slice_bytes: u64,
    /// Dialect of the files.
    pub layout: Layout,
    /// How they are compressed.
    #[serde(default)]
    pub compression: Compression,
    /// How long the first byte of a stream may take, seconds.
    #[serde(default)]
    pub wait_seconds: u64,
    /// Text that a slice should have at most, because as much is committed at once; where a file is not its text.
    #[serde(default)]
    pub most_text_bytes: Option<u64>,
    /// Whether a last row must have a row end; none for that of a stream only.
    #[serde(default)]
    pub needs_last_row_end: Option<bool>,
}

/// Files as they are now, and their slices, numbered from 1 in file order. An empty file has none.
#[derive(Debug, Clone, Serialize)]
pub struct Slicing {
    /// Files.
    pub files: Vec<FileSpec>,
    /// Slices.
    pub slices: Vec<SliceSpec>,
}

impl Slicing {
    /// The slices of a file between these cuts, with their texts where these are not the same bytes.
    fn add(&mut self, file: usize, cuts: &[u64], texts: &[TextRange]) {
        for (index, range) in cuts.windows(2).enumerate() {
            let number = self.slices.len() as u32 + 1;
            let text = texts.get(index).copied();
            self.slices.push(SliceSpec {
                number,
                file,
                begin_byte: range[0],
                end_byte: range[1],
                text,
                first_row: None,
            });
        }
    }
}

/// Cuts all files.
///
/// # Errors
/// `Source` when a file is missing, cannot be read or is no regular file; `Specification` for a layout that means two things.
pub fn plan_slices(spec: &SlicingSpec) -> Result<Slicing, CoreError> {
    cut_all(spec, &Stop::default())
}

/// The same. Asks `is_cancelled` every few milliseconds, on the calling thread: files may have to be read whole.
///
/// # Errors
/// Those of [`plan_slices`]; `Cancelled`.
pub fn plan_slices_until(spec: &SlicingSpec, is_cancelled: &mut dyn FnMut() -> bool) -> Result<Slicing, CoreError> {
    let (stop, caller) = (Stop::default(), thread::current());
    // Whether small files are cut faster than the first look is made must not decide what nobody waits for any more.
    if is_cancelled() {
        stop.set();
    }
    thread::scope(|scope| {
        let work = scope.spawn(|| {
            let slicing = cut_all(spec, &stop);
            caller.unpark();
            slicing
        });
        while !work.is_finished() {
            if is_cancelled() {
                stop.set();
            }
            thread::park_timeout(STEP);
        }
        work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn cut_all(spec: &SlicingSpec, stop: &Stop) -> Result<Slicing, CoreError> {
    // What no file can change is refused before any is looked at.
    Parser::new(&spec.layout)?;
    let mut slicing = Slicing { files: Vec::new(), slices: Vec::new() };
    for path in &spec.files {
        stop.check()?;
        let index = slicing.files.len();
        if is_stream(path) {
            slicing.files.push(stream(path, spec));
            slicing.add(index, &[0, 0], &[TextRange::default()]);
            continue;
        }
        let Look { file, planned, pieces } = look(path, spec, stop)?;
        let automaton = planned.rows(&spec.layout)?;
        let failed = |error| unreadable(path, error);
        if planned.compression == Compression::None {
            slicing.add(index, &cut(&file, &planned, spec, &automaton, stop).map_err(failed)?, &[]);
        } else {
            let pieces = pieces.unwrap_or_default();
            let (cuts, texts) = cut_pieces(&planned, &pieces, spec, &automaton, stop)?;
            slicing.add(index, &cuts, &texts);
        }
        slicing.files.push(planned);
    }
    match gap_or_overlap(&slicing.files, &slicing.slices, true) {
        Some(text) => Err(CoreError::new(ErrorKind::Internal, text)),
        None => Ok(slicing),
    }
}

/// What went wrong while a file was looked through.
fn unreadable(path: &str, error: std::io::Error) -> CoreError {
    match error.downcast::<CoreError>() {
        Ok(error) => error,
        Err(error) => CoreError::new(ErrorKind::Source, "cannot read a source file")
            .at_file(path)
            .found(error.to_string())
            .hint("Check the disk or mount that holds it."),
    }
}

/// The core's words for a layout that means two things.
pub fn refused(text: String) -> CoreError {
    CoreError::new(ErrorKind::Specification, format!("a layout means two things: {text}"))
        .hint("Write the files with other delimiters, or leave out of the layout what they do not need.")
}

/// A scanner at the start of a row.
///
/// # Errors
/// `Specification` for a layout that means two things.
pub fn scanner(layout: &Layout, row_end: &RowEnd) -> Result<RowScanner, CoreError> {
    RowScanner::new(layout, row_end).map_err(refused)
}

/// Strictly ascending cut points from the first line to the end of the file.
fn cut(
    file: &File,
    planned: &FileSpec,
    spec: &SlicingSpec,
    automaton: &Automaton,
    stop: &Stop,
) -> std::io::Result<Vec<u64>> {
    if planned.first_byte >= planned.size_bytes {
        return Ok(vec![planned.first_byte]);
    }
    // What is no data stays in the first slice, and in the last one.
    let (begin, end) = (planned.data_begin(), planned.data_end());
    let mut cuts = vec![planned.first_byte];
    let pieces = (end - begin).div_ceil(spec.slice_bytes.max(1)).max(1);
    let step = (end - begin).div_ceil(pieces);
    // From the byte before: a cut that falls right behind a row end stays there.
    let places: Vec<u64> =
        (1..pieces).map(|piece| begin + piece * step).filter(|place| *place < end).map(|place| place - 1).collect();
    let text = FileText { file, encoding: planned.encoding, stop };
    let found = match &planned.row_end {
        RowEnd::Every(bytes) => equal_cuts(*bytes, begin, &places, end),
        _ => Cutter::new(&text, automaton, end).cuts(begin, &places)?,
    };
    for found in found.into_iter().flatten() {
        // A row longer than a slice swallows the cuts inside it.
        if found > cuts[cuts.len() - 1] {
            cuts.push(found);
        }
    }
    cuts.push(planned.size_bytes);
    Ok(cuts)
}

/// For each place the first byte of a row behind it, of rows without row end; `None` where there is none.
fn equal_cuts(row_bytes: u32, begin: u64, places: &[u64], end: u64) -> Vec<Option<u64>> {
    let row_bytes = u64::from(row_bytes.max(1));
    let cut = |place: &u64| begin + (place + 1).saturating_sub(begin).div_ceil(row_bytes) * row_bytes;
    places.iter().map(|place| Some(cut(place)).filter(|cut| *cut < end)).collect()
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
    use headrace_types::{Column, ColumnType, Header, MixedRowEnds};

    fn plan(content: &[u8], slice_bytes: u64, skip_lines: u32) -> Slicing {
        plan_layout(content, slice_bytes, Layout { skip_lines, ..layout() })
    }

    fn plan_qualified(content: &[u8], slice_bytes: u64) -> Slicing {
        plan_layout(content, slice_bytes, Layout { qualifier: Some('"'), ..layout() })
    }

    fn layout() -> Layout {
        let columns = vec![Column::new("a", ColumnType::String, true)];
        Layout { delimiter: "|".to_owned(), mixed_row_ends: MixedRowEnds::Reject, columns, ..Layout::default() }
    }

    fn plan_layout(content: &[u8], slice_bytes: u64, layout: Layout) -> Slicing {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, content).unwrap();
        let files = vec![path.to_str().unwrap().to_owned()];
        plan_slices(&SlicingSpec { files, slice_bytes, layout, ..SlicingSpec::default() }).unwrap()
    }

    #[test]
    fn slices_cover_the_file_and_end_on_row_ends() {
        let content = b"a\nbb\n\nccc\n\n\ndddd\neeeeeeeeeeeeeeeeeeee\nf";
        for slice_bytes in 1..50 {
            for skip_lines in 0..3 {
                let slicing = plan(content, slice_bytes, skip_lines);
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
                let header_end = header.take(skip_lines as usize).last().unwrap_or(0);
                assert!(slicing.slices[0].end_byte >= header_end);
            }
        }
        assert!(plan(content, 4, 0).slices.len() > 4);
    }

    #[test]
    fn empty_files_byte_order_marks_and_row_ends() {
        assert!(plan(b"", 10, 0).slices.is_empty());
        let marked = plan(b"\xEF\xBB\xBFa\r\nb\r\n", 100, 0);
        assert_eq!((marked.slices[0].begin_byte, marked.files[0].row_end.clone()), (3, RowEnd::OnlyCrlf));
        assert!(plan(b"\xEF\xBB\xBF", 10, 1).slices.is_empty());
        assert_eq!(plan(b"a\nb\r\n", 100, 0).files[0].row_end, RowEnd::OnlyLf);
        let mut long = vec![b'x'; WINDOW_BYTES - 1];
        long.extend_from_slice(b"\r\n");
        assert_eq!(plan(&long, 100, 0).files[0].row_end, RowEnd::OnlyCrlf);
        assert_eq!(plan(&long, 100, 5).slices.len(), 1);
    }

    #[test]
    fn no_file_is_looked_at_once_nobody_waits() {
        // There is none: a look at it would say so.
        let files = vec!["/nowhere/at/all".to_owned()];
        let spec = SlicingSpec { files, slice_bytes: 1, layout: layout(), ..SlicingSpec::default() };
        let stop = Stop::default();
        assert_eq!(cut_all(&spec, &stop).unwrap_err().kind, ErrorKind::Source);
        stop.set();
        assert_eq!(cut_all(&spec, &stop).unwrap_err().kind, ErrorKind::Cancelled);
        // However long the first answer takes, nothing is looked at meanwhile.
        let mut slow = || {
            thread::sleep(20 * STEP);
            true
        };
        assert_eq!(plan_slices_until(&spec, &mut slow).unwrap_err().kind, ErrorKind::Cancelled);
    }

    #[test]
    fn the_end_of_a_first_row_longer_than_max_row_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        // In front of it a hole: no disk is filled.
        File::create(&path).unwrap().write_all_at(b"\r\n", (64 << 20) + 3 * WINDOW_BYTES as u64).unwrap();
        let layout = Layout { mixed_row_ends: MixedRowEnds::Reject, ..layout() };
        let files = vec![path.to_str().unwrap().to_owned()];
        let slicing = plan_slices(&SlicingSpec { files, slice_bytes: 1 << 40, layout, ..SlicingSpec::default() });
        assert_eq!(slicing.unwrap().files[0].row_end, RowEnd::OnlyCrlf);
    }

    #[test]
    fn a_file_with_a_qualifier_is_cut_behind_rows() {
        let content = b"\"a\nb\"\n1\n\"x\"\"\ny\"\n2\n3\n";
        let rows = [6, 8, 16, 18, 20];
        let mut most = 0;
        for slice_bytes in 1..20 {
            for header in [Header::None, Header::Skip] {
                let slicing = plan_layout(content, slice_bytes, Layout { qualifier: Some('"'), header, ..layout() });
                let ends: Vec<u64> = slicing.slices.iter().map(|slice| slice.end_byte).collect();
                assert!(ends.iter().all(|end| rows.contains(end)) && ends.last() == Some(&20), "{ends:?}");
                assert!(ends[0] >= rows[usize::from(header == Header::Skip)]);
                most = most.max(ends.len());
            }
        }
        assert!(most > 1);
        assert!(plan_qualified(b"", 1).slices.is_empty());
    }

    #[test]
    fn the_first_row_with_a_qualifier_tells_how_rows_end() {
        let row_end = |content: &[u8]| plan_qualified(content, 100).files[0].row_end.clone();
        assert_eq!(row_end(b"\"a\nb\"|c\r\nd\n"), RowEnd::OnlyCrlf);
        assert_eq!(row_end(b"\"a\r\nb\"|c\nd\r\n"), RowEnd::OnlyLf);
        assert_eq!(row_end(b"3\" x 5\"\r\n"), RowEnd::OnlyCrlf);
        assert_eq!(row_end(b"\"never closed\r\n"), RowEnd::Either);
        // The scanner's state goes from window to window.
        let mut long = vec![b'\n'; 2 * WINDOW_BYTES - 2];
        long[0] = b'"';
        long.extend_from_slice(b"\"\r\n");
        assert_eq!(row_end(&long), RowEnd::OnlyCrlf);
    }
}
