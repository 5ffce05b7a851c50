//! Decoding in a thread of its own, while a stream parses: a small ring of pieces of text goes round between the two.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use headrace_types::{CoreError, ErrorKind};

use super::ByteSource;

/// Text of one piece, bytes.
const PIECE_BYTES: usize = 256 << 10;
const PIECES: usize = 4;
/// Memory of the ring.
pub const RING_BYTES: usize = PIECES * PIECE_BYTES;

/// Set by whoever does not want any more of a source, so that a thread that waits for a pipe ends.
pub type Abandoned = Arc<AtomicBool>;

/// Text that was read ahead.
struct Piece {
    bytes: Vec<u8>,
    length: usize,
    taken_bytes: u64,
}

/// A source that is read by a thread of its own.
pub struct Ahead {
    full: Receiver<Result<Piece, CoreError>>,
    empty: Option<Sender<Vec<u8>>>,
    piece: Piece,
    at: usize,
    abandoned: Abandoned,
    thread: Option<JoinHandle<()>>,
}

impl Ahead {
    /// Starts to read. The thread ends with the source, with the first error, or when this is dropped.
    ///
    /// # Errors
    /// `Internal` when the system gives no thread.
    pub fn start(source: Box<dyn ByteSource>, abandoned: Abandoned) -> Result<Self, CoreError> {
        let (send_full, full) = bounded(PIECES);
        let (empty, take_empty) = bounded(PIECES);
        for _ in 1..PIECES {
            // The channel has room for all of them.
            let _ = empty.send(vec![0; PIECE_BYTES]);
        }
        let thread = std::thread::Builder::new().name("headrace-inflate".to_owned());
        let thread = thread.spawn(move || read_ahead(source, &take_empty, &send_full)).map_err(|error| {
            CoreError::new(ErrorKind::Internal, "cannot start a thread that decodes")
                .found(error.to_string())
                .hint("Use fewer streams.")
        })?;
        let piece = Piece { bytes: vec![0; PIECE_BYTES], length: 0, taken_bytes: 0 };
        Ok(Ahead { full, empty: Some(empty), piece, at: 0, abandoned, thread: Some(thread) })
    }
}

/// Fills pieces until the source ends, which an empty piece says, or nobody wants any more.
fn read_ahead(mut source: Box<dyn ByteSource>, empty: &Receiver<Vec<u8>>, full: &Sender<Result<Piece, CoreError>>) {
    while let Ok(mut bytes) = empty.recv() {
        let filled = fill(source.as_mut(), &mut bytes);
        let is_last = !matches!(filled, Ok(length) if length > 0);
        let taken_bytes = source.taken_bytes();
        if full.send(filled.map(|length| Piece { bytes, length, taken_bytes })).is_err() || is_last {
            return;
        }
    }
}

fn fill(source: &mut dyn ByteSource, bytes: &mut [u8]) -> Result<usize, CoreError> {
    let mut length = 0;
    while length < bytes.len() {
        match source.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            // What came before the error is text all the same, but nobody will need it.
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

impl ByteSource for Ahead {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        if self.at == self.piece.length {
            let Some(empty) = &self.empty else { return Ok(0) };
            // The thread may have ended meanwhile.
            let _ = empty.send(std::mem::take(&mut self.piece.bytes));
            let lost = |_| CoreError::new(ErrorKind::Internal, "the thread that decodes has ended without saying how");
            self.piece = self.full.recv().map_err(lost)??;
            self.at = 0;
            if self.piece.length == 0 {
                self.empty = None;
                return Ok(0);
            }
        }
        let count = into.len().min(self.piece.length - self.at);
        into[..count].copy_from_slice(&self.piece.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }

    fn taken_bytes(&self) -> u64 {
        self.piece.taken_bytes
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.abandoned.store(true, Ordering::Release);
        self.empty = None;
        // It may wait for room.
        while self.full.try_recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            // A panic has been seen as a missing end.
            let _ = thread.join();
        }
    }
}
