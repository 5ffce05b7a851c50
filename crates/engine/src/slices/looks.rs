//! What is known of a source before its first row is read.

use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use headrace_types::CoreError;

use super::{SlicingSpec, unreadable};
use crate::source::{
    HEAD_BYTES, Pieces, STANDARD_INPUT, bgzf, byte_order_mark, check_text, compression, decoder_bytes, first_bytes,
    first_row_end, from_start, modified_ns, open_file, zstd_frames,
};
use crate::spec::{Compression, FileSpec, StreamSpec};

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
/// Those of reading it; `Source` if it holds no text.
pub fn look(path: &str, spec: &SlicingSpec) -> Result<Look, CoreError> {
    let (file, metadata) = open_file(path)?;
    let mut planned = FileSpec {
        path: path.to_owned(),
        size_bytes: metadata.len(),
        modified_ns: modified_ns(&metadata),
        inode: metadata.ino(),
        needs_last_row_end: spec.needs_last_row_end.unwrap_or(false),
        ..FileSpec::default()
    };
    let head = first_bytes(from_start(&planned)?.as_mut(), HEAD_BYTES)?;
    planned.compression = compression(path, spec.compression, &head)?;
    let mut pieces = None;
    if planned.compression != Compression::None {
        let mut window_bytes = None;
        let failed = |error| unreadable(path, error);
        if planned.compression == Compression::Zstd {
            let frames = zstd_frames(&file, planned.size_bytes).map_err(failed)?;
            (pieces, window_bytes) = (frames.pieces, Some(frames.window_bytes));
        } else {
            pieces = bgzf(&file, planned.size_bytes).map_err(failed)?;
        }
        planned.decoder_bytes = decoder_bytes(planned.compression, window_bytes);
        check_text(path, planned.compression, &first_bytes(from_start(&planned)?.as_mut(), HEAD_BYTES)?)?;
    }
    let first_byte = byte_order_mark(from_start(&planned)?.as_mut())?;
    let mut text = from_start(&planned)?;
    first_bytes(text.as_mut(), first_byte)?;
    planned.row_end = first_row_end(text.as_mut(), &spec.layout)?;
    planned.first_byte = first_byte as u64;
    Ok(Look { file, planned, pieces })
}
