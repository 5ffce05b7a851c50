//! Text of a compressed source: bytes through a decoder, from a place where a piece begins to the end of a slice.

use headrace_types::{CoreError, ErrorKind, Location};

use super::ByteSource;
use super::ahead::RING_BYTES;
use super::decoder::{Damage, Decoder};
use super::gzip::Gzip;
use super::zstd::Zstd;
use crate::spec::{Compression, TextRange};

/// Compressed bytes read at once.
pub const INPUT_BYTES: usize = 128 << 10;
/// Of text that is not asked for, decoded at once.
const DROPPED_BYTES: usize = 64 << 10;

/// Which file, how it is compressed, and the memory that a decoder may take.
#[derive(Debug, Clone)]
pub struct Compressed {
    /// Path, for messages.
    pub path: String,
    /// How.
    pub compression: Compression,
    /// At most.
    pub decoder_bytes: u64,
}

/// Decodes while it is read.
pub struct Decoding {
    raw: Box<dyn ByteSource>,
    decoder: Box<dyn Decoder>,
    compressed: Compressed,
    input: Vec<u8>,
    /// Part of `input` that is not decoded yet.
    from: usize,
    to: usize,
    /// Whether `raw` has ended.
    is_read: bool,
    is_ended: bool,
    range: TextRange,
    /// Bytes of `raw` behind which `range` knows the place in the text, if it does.
    range_bytes: u64,
    /// Place in the text.
    at_byte: u64,
}

impl Decoding {
    /// The text of `range`; `raw` begins where its piece of the file begins, and goes on behind it. The piece has `range_bytes`.
    pub fn new(
        raw: Box<dyn ByteSource>,
        compressed: Compressed,
        range: TextRange,
        range_bytes: u64,
    ) -> Result<Self, CoreError> {
        let decoder: Box<dyn Decoder> = match compressed.compression {
            Compression::Gzip => Box::new(Gzip::new()),
            Compression::Zstd => Box::new(
                Zstd::new(compressed.decoder_bytes.saturating_sub((RING_BYTES + INPUT_BYTES) as u64))
                    .ok_or_else(|| CoreError::new(ErrorKind::Source, "there is no memory for a zstd decoder"))?,
            ),
            Compression::None | Compression::Auto => {
                return Err(CoreError::new(ErrorKind::Internal, "a file that is not compressed was to be decoded"));
            }
        };
        Ok(Decoding {
            raw,
            decoder,
            compressed,
            input: vec![0; INPUT_BYTES],
            from: 0,
            to: 0,
            is_read: false,
            is_ended: false,
            at_byte: range.piece_begin,
            range,
            range_bytes,
        })
    }

    /// Drops the text in front of what is wanted.
    fn skip(&mut self) -> Result<(), CoreError> {
        let mut dropped = Vec::new();
        while self.at_byte < self.range.begin && !self.is_ended {
            let wanted = DROPPED_BYTES.min(usize::try_from(self.range.begin - self.at_byte).unwrap_or(usize::MAX));
            dropped.resize(wanted, 0);
            self.decode(&mut dropped)?;
        }
        Ok(())
    }

    /// Decodes something; 0 at the end of the file only.
    fn decode(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        while !self.is_ended {
            if self.from == self.to {
                self.refill()?;
                continue;
            }
            let (found, produced) = match self.decoder.step(&self.input[self.from..self.to], into) {
                Ok(step) => {
                    self.from += step.consumed;
                    self.at_byte += step.produced as u64;
                    (self.check_place(), step.produced)
                }
                Err(damage) => (Err(damage), 0),
            };
            found.map_err(|damage| self.damaged(damage))?;
            if produced > 0 {
                return Ok(produced);
            }
        }
        Ok(0)
    }

    fn refill(&mut self) -> Result<(), CoreError> {
        (self.from, self.to) = (0, 0);
        self.to = if self.is_read { 0 } else { self.raw.read(&mut self.input)? };
        if self.to > 0 {
            return Ok(());
        }
        self.is_read = true;
        self.decoder.end().map_err(|damage| self.cut_off(damage))?;
        self.check_place().map_err(|damage| self.damaged(damage))?;
        self.is_ended = true;
        Ok(())
    }

    /// What the headers of all pieces have promised: others have their slices from it.
    fn check_place(&self) -> Result<(), Damage> {
        let Some(expected) = self.range.piece_end else { return Ok(()) };
        let is_there = self.taken_bytes() == self.range_bytes && (self.decoder.is_between() || self.is_read);
        if is_there && self.at_byte != expected {
            return Err(Damage::new("other lengths of text than the headers say")
                .expected(format!("{expected} bytes of text up to here")));
        }
        Ok(())
    }

    /// Behind the last byte that is wanted: what stands between it and the next text is checked too.
    fn check_end(&mut self) -> Result<(), CoreError> {
        let mut next = [0];
        while !self.is_ended && !self.decoder.is_between() {
            if self.from == self.to {
                self.refill()?;
                continue;
            }
            match self.decoder.step(&self.input[self.from..self.to], &mut next) {
                Ok(step) if step.produced > 0 => break,
                Ok(step) => self.from += step.consumed,
                Err(damage) => return Err(self.damaged(damage)),
            }
            self.check_place().map_err(|damage| self.damaged(damage))?;
        }
        self.is_ended = true;
        Ok(())
    }

    fn damaged(&self, damage: Damage) -> CoreError {
        self.failure(if damage.hint.is_some() { "cannot be decoded" } else { "is damaged" }, damage)
    }

    fn cut_off(&self, damage: Damage) -> CoreError {
        self.failure("is cut off", damage)
    }

    fn failure(&self, how: &str, damage: Damage) -> CoreError {
        let what = format!("a {} source {how}", self.compressed.compression);
        let at = Location { file: self.compressed.path.clone(), ..Location::default() };
        let hint = damage.hint.unwrap_or_else(|| "Get a whole copy of the file.".to_owned());
        let error = CoreError::new(ErrorKind::Source, what)
            .at(at)
            .found(format!("{}, behind {} bytes of text", damage.found, self.at_byte))
            .hint(hint);
        match damage.expected {
            Some(expected) => error.expected(expected),
            None => error,
        }
    }
}

impl ByteSource for Decoding {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        self.skip()?;
        let left = self.range.end.map_or(u64::MAX, |end| end.saturating_sub(self.at_byte));
        let wanted = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if wanted == 0 {
            if !into.is_empty() {
                self.check_end()?;
            }
            return Ok(0);
        }
        self.decode(&mut into[..wanted])
    }

    fn taken_bytes(&self) -> u64 {
        self.raw.taken_bytes() - (self.to - self.from) as u64
    }
}
