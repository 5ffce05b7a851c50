//! How far a slice has come.

use crate::spec::{SliceSpec, SourceSpec};

/// What the progress of a slice is counted in, and how much of it there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SliceSize {
    /// Bytes of its text.
    Text(u64),
    /// Bytes of its file: only the decoder can tell how long the text is.
    File(u64),
    /// Bytes of a text whose length nobody knows: it comes from a pipe, or is generated.
    Unknown,
}

impl SliceSize {
    /// Of a slice of the source.
    pub fn of(source: &SourceSpec, slice: &SliceSpec) -> Self {
        let text = slice.text();
        match text.end {
            _ if source.generate.is_some() => SliceSize::Unknown,
            Some(end) => SliceSize::Text(end - text.begin),
            None if source.files[slice.file].stream.is_some() => SliceSize::Unknown,
            None => SliceSize::File(slice.bytes()),
        }
    }

    /// All of it.
    pub fn total_bytes(self) -> Option<u64> {
        match self {
            SliceSize::Text(bytes) | SliceSize::File(bytes) => Some(bytes),
            SliceSize::Unknown => None,
        }
    }

    /// How much is done, in the same unit.
    pub fn done_bytes(self, text_bytes: u64, file_bytes: u64) -> u64 {
        match self {
            SliceSize::Text(_) | SliceSize::Unknown => text_bytes,
            // What a decoder has taken may reach into the next slice's piece.
            SliceSize::File(bytes) => file_bytes.min(bytes),
        }
    }
}
