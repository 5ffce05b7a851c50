//! What is known of a source before its first row is read.

use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use headrace_types::CoreError;

use super::cuts::FileText;
use super::foot::Rows;
use super::head::{HeadPlace, discard, read_header, row_end, skip_lines};
use super::{SlicingSpec, unreadable};
use crate::source::{
    HEAD_BYTES, Pieces, STANDARD_INPUT, Stop, bgzf, check_text, compression, decoded, decoder_bytes, first_bytes,
    from_start_until, held, modified_ns, open_file, text_start, zstd_frames,
};
use crate::spec::{Compression, FileSpec, Margin, StreamSpec};

/// Whether this can be read only once: standard input and named pipes. Neither is opened to find that out.
pub fn is_stream(path: &str) -> bool {
    path == STANDARD_INPUT || std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// A stream, of which nothing is known.
pub fn stream(path: &str, spec: &SlicingSpec) -> FileSpec {
    FileSpec {
        path: path.to_owned(),
        compression: spec.compression,
        decoder_bytes: decoder_bytes(spec.compression, None),
        stream: Some(StreamSpec { wait_seconds: spec.wait_seconds }),
        needs_last_row_end: spec.needs_last_row_end.unwrap_or(true),
        held: held(&spec.layout),
        ..FileSpec::default()
    }
}

/// A file that was looked at.
pub struct Look {
    /// To be read from.
    pub file: File,
    /// As it is now.
    pub planned: FileSpec,
    /// Pieces of a compressed file that stand alone.
    pub pieces: Option<Pieces>,
}

/// A file as it is now, and what its beginning and its headers tell.
///
/// # Errors
/// Those of reading it; `Source` if it holds no text; `Cancelled` once `stop` is set.
pub fn look(path: &str, spec: &SlicingSpec, stop: &Stop) -> Result<Look, CoreError> {
    let (file, metadata) = open_file(path)?;
    let mut planned = FileSpec {
        path: path.to_owned(),
        size_bytes: metadata.len(),
        modified_ns: modified_ns(&metadata),
        inode: metadata.ino(),
        needs_last_row_end: spec.needs_last_row_end.unwrap_or(false),
        ..FileSpec::default()
    };
    let head = first_bytes(from_start_until(&planned, stop)?.as_mut(), HEAD_BYTES)?;
    planned.compression = compression(path, spec.compression, &head)?;
    let mut pieces = None;
    if planned.compression != Compression::None {
        let mut window_bytes = None;
        let failed = |error| unreadable(path, error);
        if planned.compression == Compression::Zstd {
            let frames = zstd_frames(&file, planned.size_bytes, stop).map_err(failed)?;
            (pieces, window_bytes) = (frames.pieces, Some(frames.window_bytes));
        } else {
            pieces = bgzf(&file, planned.size_bytes, stop).map_err(failed)?;
        }
        planned.decoder_bytes = decoder_bytes(planned.compression, window_bytes);
        let head = first_bytes(from_start_until(&planned, stop)?.as_mut(), HEAD_BYTES)?;
        check_text(path, planned.compression, &head)?;
    }
    let head = first_bytes(from_start_until(&planned, stop)?.as_mut(), HEAD_BYTES)?;
    let (first_byte, encoding) = text_start(path, &head, spec.layout.encoding)?;
    (planned.first_byte, planned.encoding) = (first_byte as u64, encoding);
    let text_from = |byte: u64| {
        let mut text = from_start_until(&planned, stop)?;
        discard(text.as_mut(), byte).map(|_| decoded(text, encoding))
    };
    let begin = HeadPlace { path, byte: planned.first_byte, lines: 0 };
    let skipped = skip_lines(text_from(planned.first_byte)?.as_mut(), &begin, &spec.layout)?;
    let begin = HeadPlace { path, byte: planned.first_byte + skipped.bytes, lines: skipped.lines };
    let row_end = row_end(text_from(begin.byte)?.as_mut(), &spec.layout)?;
    let (header, columns) = read_header(text_from(begin.byte)?.as_mut(), &begin, &spec.layout, &row_end)?;
    planned.head = Margin { bytes: skipped.bytes + header.bytes, lines: skipped.lines + header.lines };
    (planned.row_end, planned.columns) = (row_end, columns);
    if planned.compression != Compression::None {
        planned.held = held(&spec.layout);
    } else if spec.layout.footer_rows > 0 {
        let text = FileText { file: &file, encoding, stop };
        let rows = Rows { text: &text, begin: planned.data_begin(), end: planned.size_bytes, is_dear: false };
        planned.foot = rows.foot(&planned, &spec.layout)?.unwrap_or_default();
    }
    Ok(Look { file, planned, pieces })
}

#[cfg(test)]
mod tests {
    use headrace_types::{Column, ColumnType, Layout};

    use super::*;
    use crate::slices::plan_slices;

    #[test]
    fn a_window_that_no_memory_holds_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.zst");
        // The text of its only frame is to be kept whole, and has 2 to the power of 64 bytes but one, says the header.
        let frame = [&[0x28_u8, 0xB5, 0x2F, 0xFD, 0xE0][..], &[0xFF; 8], &[1, 0, 0]].concat();
        std::fs::write(&path, frame).unwrap();
        let columns = vec![Column::new("a", ColumnType::String, true)];
        let layout = Layout { delimiter: "|".to_owned(), columns, ..Layout::default() };
        let files = vec![path.to_str().unwrap().to_owned()];
        let compression = Compression::Auto;
        let error = plan_slices(&SlicingSpec { files, slice_bytes: 9, layout, compression, ..SlicingSpec::default() });
        let found = error.unwrap_err().found.unwrap();
        assert!(found.starts_with("a frame with a window of 18446744073709551615 bytes"), "{found}");
    }
}
