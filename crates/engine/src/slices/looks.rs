//! What is known of a source before its first row is read.

use std::os::unix::fs::{FileTypeExt, MetadataExt};

use headrace_types::CoreError;

use super::SlicingSpec;
use crate::source::{
    HEAD_BYTES, STANDARD_INPUT, byte_order_mark, check_text, compression, decoder_bytes, first_bytes, first_row_end,
    from_start, modified_ns, open_file,
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

/// A file as it is now, and what its beginning tells.
///
/// # Errors
/// Those of reading it; `Source` if it holds no text.
pub fn look(path: &str, spec: &SlicingSpec) -> Result<FileSpec, CoreError> {
    let (_, metadata) = open_file(path)?;
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
    if planned.compression != Compression::None {
        planned.decoder_bytes = decoder_bytes(planned.compression, Some(&head));
        check_text(path, planned.compression, &first_bytes(from_start(&planned)?.as_mut(), HEAD_BYTES)?)?;
    }
    let first_byte = byte_order_mark(from_start(&planned)?.as_mut())?;
    let mut text = from_start(&planned)?;
    first_bytes(text.as_mut(), first_byte)?;
    planned.row_end = first_row_end(text.as_mut(), &spec.layout)?;
    planned.first_byte = first_byte as u64;
    Ok(planned)
}
