//! The hash of the text of a slice, made of what a stream reads.
//!
//! Hashed are bytes of the file, or, of a compressed one, of what it decompresses to: never what a stream makes of them. So a byte
//! order mark, lines that are skipped, header and footer are part of the first and last slice of a file, and the slices of a file are
//! its text.

use std::hash::Hasher as _;
use std::sync::{Arc, Mutex};

use headrace_types::CoreError;
use twox_hash::XxHash3_64;

use super::ByteSource;
use super::file::FileRange;
use crate::outcome::lock;
use crate::spec::{FileSpec, SliceSpec};
use crate::text_hash::TextHash;

/// Bytes that are hashed at once: they are still near the processor when they have just been read.
const PIECE_BYTES: usize = 256 << 10;

/// A hash on its way, shared by a source and whoever asks for it at the end; none if nobody will.
#[derive(Clone, Default)]
pub struct Hashing(Option<Arc<Mutex<XxHash3_64>>>);

impl Hashing {
    /// A hash of nothing yet.
    pub fn new(is_wanted: bool) -> Self {
        Hashing(is_wanted.then(|| Arc::new(Mutex::new(XxHash3_64::new()))))
    }

    /// Adds what stands in front of the rows of a slice of a file that is not compressed, and is read by nobody else.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn add_head(&self, file: &FileSpec, slice: &SliceSpec) -> Result<(), CoreError> {
        self.add_range(file, hashed_from(file, slice), file.text_begin(slice))
    }

    /// The same of what stands behind them.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn add_foot(&self, file: &FileSpec, slice: &SliceSpec) -> Result<(), CoreError> {
        self.add_range(file, slice.end_byte - file.foot_of(slice).bytes, slice.end_byte)
    }

    fn add_range(&self, file: &FileSpec, begin: u64, end: u64) -> Result<(), CoreError> {
        if self.0.is_none() || begin >= end {
            return Ok(());
        }
        let mut range = FileRange::open(file, begin, end)?;
        let mut window = vec![0; PIECE_BYTES.min(usize::try_from(end - begin).unwrap_or(PIECE_BYTES))];
        loop {
            match range.read(&mut window)? {
                0 => return Ok(()),
                count => self.add(&window[..count]),
            }
        }
    }

    /// The hash of all that was read.
    pub fn text_hash(&self) -> Option<TextHash> {
        self.0.as_ref().map(|hash| TextHash(lock(hash).finish()))
    }

    fn add(&self, bytes: &[u8]) {
        if let Some(hash) = &self.0 {
            lock(hash).write(bytes);
        }
    }
}

/// Where the hashed text of a slice begins: that of the first one of a file at its front.
pub fn hashed_from(file: &FileSpec, slice: &SliceSpec) -> u64 {
    let begin = slice.text().begin;
    // Of several files of one path only the first one begins with it.
    let is_first = begin == file.first_byte && slice.first_row.unwrap_or(0) == 0;
    if is_first { 0 } else { begin }
}

/// A source that is hashed while it is read.
pub struct Hashed {
    source: Box<dyn ByteSource>,
    hashing: Hashing,
}

impl Hashed {
    /// The same source, and all that is read of it goes into the hash.
    pub fn of(source: Box<dyn ByteSource>, hashing: &Hashing) -> Box<dyn ByteSource> {
        if hashing.0.is_none() { source } else { Box::new(Hashed { source, hashing: hashing.clone() }) }
    }
}

impl ByteSource for Hashed {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        let most = into.len().min(PIECE_BYTES);
        let count = self.source.read(&mut into[..most])?;
        self.hashing.add(&into[..count]);
        Ok(count)
    }

    fn taken_bytes(&self) -> u64 {
        self.source.taken_bytes()
    }
}
