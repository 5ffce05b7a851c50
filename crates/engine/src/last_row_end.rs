//! A last row without a row end, where it must have one.

use headrace_types::{CoreError, ErrorKind, Location, RowEnd};

use crate::rejects::{shown, text_of};
use crate::spec::FileSpec;

/// What is kept of a row for its message.
pub const FOUND_BYTES: usize = 1000;

/// The error. `row`: its number in the file, if that is known; `found`: its front, as it is shown.
pub fn no_last_row_end(file: &FileSpec, byte: u64, row: Option<u64>, found: &[u8]) -> CoreError {
    let (what, expected) = match file.row_end {
        RowEnd::Every(bytes) => {
            ("the last row of a source is not whole", format!("{bytes} bytes: a writer that has died leaves fewer"))
        }
        _ => (
            "the last row of a source has no row end",
            "a row end: what was cut off, or whose writer has died, ends without one".to_owned(),
        ),
    };
    CoreError::new(ErrorKind::Source, what)
        .at(Location { file: file.path.clone(), row, byte: Some(byte), ..Location::default() })
        .found(shown(&text_of(found)))
        .expected(expected)
        .hint("If it is whole, set `last_row_end: optional` of the source.")
}
