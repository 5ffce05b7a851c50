//! Where the bytes of a slice come from: files, compressed or not, pipes, the generator.

mod ahead;
mod content;
mod decoder;
mod decoding;
mod encoding;
mod file;
mod footer;
mod generated;
mod gzip;
mod hashed;
mod head;
mod pieces;
mod pipe;
mod stop;
#[cfg(test)]
mod tests;
mod utf16;
mod zstd;

use std::sync::Arc;
use std::time::Duration;

use headrace_types::{CoreError, Layout};

use self::ahead::{Abandoned, Ahead};
use self::decoding::{Compressed, Decoding};
use self::footer::WithoutFooter;
use self::generated::Generated;
use self::hashed::{Hashed, hashed_from};
use self::head::{Recording, Replayed};
use self::pipe::Pipe;
use crate::outcome::Outcome;
use crate::slices::{HeadPlace, discard, read_header, row_end, skip_lines};
use crate::spec::{Compression, FileSpec, FlowSpec, HeldSpec, Margin, SliceSpec, SourceSpec, StreamSpec, TextRange};

pub use self::content::{HEAD_BYTES, check_text, compression};
pub use self::encoding::{decoded, likely, text_start};
pub use self::file::{FileRange, check_unchanged, modified_ns, open_file};
pub use self::footer::{Footer, OpenLine};
pub use self::hashed::Hashing;
pub use self::head::first_bytes;
pub use self::pieces::{Pieces, Place, bgzf, zstd_frames};
pub use self::pipe::STANDARD_INPUT;
pub use self::stop::Stop;

/// The window of deflate, and the tables of its decoder.
const GZIP_STATE_BYTES: u64 = 64 << 10;
/// Of zstd frames that are not looked at before they are read: as much as all levels up to 19 use.
const UNKNOWN_WINDOW_BYTES: u64 = 8 << 20;

/// Most text of rows that are held back.
const MOST_HELD_BYTES: u64 = 8 << 20;

/// Bytes in order.
pub trait ByteSource: Send {
    /// Fills the front of `into` and says how much; 0 only at the end.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError>;

    /// Bytes of the file or pipe that what was read came from, for progress; 0 if it came from neither.
    fn taken_bytes(&self) -> u64;

    /// What was held back of it, once it has ended.
    fn footer(&self) -> Footer {
        Footer::default()
    }
}

impl<S: ByteSource + ?Sized> ByteSource for Box<S> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        (**self).read(into)
    }

    fn taken_bytes(&self) -> u64 {
        (**self).taken_bytes()
    }

    fn footer(&self) -> Footer {
        (**self).footer()
    }
}

impl<S: ByteSource + ?Sized> ByteSource for &mut S {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        (**self).read(into)
    }

    fn taken_bytes(&self) -> u64 {
        (**self).taken_bytes()
    }
}

/// A slice that is open.
pub struct Opened {
    /// Its text, from the first row on.
    pub source: Box<dyn ByteSource>,
    /// Its file; that of a stream with what its first bytes have told.
    pub file: FileSpec,
    /// The hash of its text, once the source has ended; but for the foot of the file, which is not read.
    pub hashing: Hashing,
}

/// Opens a slice for a stream, which reads it once from front to back. `hashing`: takes all of its text in front of the foot.
pub fn open(spec: &FlowSpec, slice: &SliceSpec, outcome: &Arc<Outcome>, hashing: Hashing) -> Result<Opened, CoreError> {
    let (file, layout) = (&spec.source.files[slice.file], spec.layout_of(slice.file));
    if let Some(stream) = &file.stream {
        return open_stream(spec, slice, stream, outcome, hashing);
    }
    let begin = file.text_begin(slice);
    let source: Box<dyn ByteSource> = match (&spec.source.generate, file.compression) {
        (Some(generate), _) => Hashed::of(Box::new(Generated::open(generate, file, slice)?), &hashing),
        (None, Compression::None) => {
            hashing.add_head(file, slice)?;
            let end = slice.end_byte - file.foot_of(slice).bytes;
            Hashed::of(Box::new(FileRange::open(file, begin, end.max(begin))?), &hashing)
        }
        (None, _) => {
            let from = hashed_from(file, slice);
            let text = TextRange { begin: from, ..slice.text() };
            let ahead = Ahead::start(Box::new(decode(file, slice, text)?), Abandoned::default())?;
            let mut source = Hashed::of(Box::new(ahead), &hashing);
            discard(source.as_mut(), begin - from)?;
            source
        }
    };
    let source = decoded(source, file.encoding_in(layout));
    Ok(Opened { source: without_footer(source, slice, file, layout)?, file: file.clone(), hashing })
}

/// Part of the text of a slice once more, for single rows: decoded by the calling thread, from the front of the slice.
///
/// # Errors
/// Those of opening and reading; `Source` for a stream, which cannot be read twice.
pub fn read_again(
    source: &SourceSpec,
    layout: &Layout,
    slice: &SliceSpec,
    begin: u64,
    end: Option<u64>,
) -> Result<Box<dyn ByteSource>, CoreError> {
    let file = &source.files[slice.file];
    if let Some(generate) = &source.generate {
        return Ok(Box::new(Generated::open(generate, file, slice)?));
    }
    let encoding = file.encoding_in(layout);
    match file.compression {
        Compression::None => Ok(decoded(FileRange::open(file, begin, end.unwrap_or(slice.end_byte))?, encoding)),
        _ => Ok(decoded(decode(file, slice, TextRange { begin, end, ..slice.text() })?, encoding)),
    }
}

/// Memory that decoding takes beside the blocks of the stream that parses: the ring, what is read at once, the decoder with its
/// window. `window_bytes`: that of zstd, if it is known.
pub fn decoder_bytes(compression: Compression, window_bytes: Option<u64>) -> u64 {
    let state = match compression {
        Compression::None => return 0,
        Compression::Gzip => GZIP_STATE_BYTES,
        Compression::Zstd | Compression::Auto => zstd::decoder_bytes(window_bytes.unwrap_or(UNKNOWN_WINDOW_BYTES)),
    };
    // A header may promise any window: whoever decodes refuses it.
    state.saturating_add((ahead::RING_BYTES + decoding::INPUT_BYTES) as u64)
}

/// Rows at the end of a layout's texts that have to be held back; none if it has no footer.
pub fn held(layout: &Layout) -> Option<HeldSpec> {
    let rows = layout.footer_rows;
    (rows > 0).then_some(HeldSpec {
        rows,
        text_bytes: MOST_HELD_BYTES,
        memory_bytes: MOST_HELD_BYTES + 2 * footer::WINDOW_BYTES as u64,
    })
}

/// The bytes of the text of a file from its start, while it is planned.
pub fn from_start(file: &FileSpec) -> Result<Box<dyn ByteSource>, CoreError> {
    from_start_until(file, &Stop::default())
}

/// The same, until `stop` is set.
pub fn from_start_until(file: &FileSpec, stop: &Stop) -> Result<Box<dyn ByteSource>, CoreError> {
    match file.compression {
        Compression::None => Ok(Box::new(stop.over(FileRange::open(file, 0, file.size_bytes)?))),
        _ => Ok(Box::new(decode_from(file, 0, TextRange::default(), file.size_bytes, stop)?)),
    }
}

/// The bytes of a file that is not compressed, from `begin` to `end`.
///
/// # Errors
/// Those of opening it; `FileChanged`.
pub fn from_range(file: &FileSpec, begin: u64, end: u64) -> Result<Box<dyn ByteSource>, CoreError> {
    Ok(Box::new(FileRange::open(file, begin, end)?))
}

/// The text of a compressed file from `begin` to `end`, decoded from a place in front of it, until `stop` is set.
pub fn from_place(
    file: &FileSpec,
    place: Place,
    begin: u64,
    end: u64,
    stop: &Stop,
) -> Result<Box<dyn ByteSource>, CoreError> {
    let text = TextRange { piece_begin: place.text_byte, piece_end: None, begin, end: Some(end) };
    Ok(Box::new(decode_from(file, place.file_byte, text, 0, stop)?))
}

fn decode(file: &FileSpec, slice: &SliceSpec, text: TextRange) -> Result<Decoding, CoreError> {
    // A flow ends its streams by itself.
    decode_from(file, slice.begin_byte, text, slice.bytes(), &Stop::default())
}

/// Of the pieces that begin at `begin_byte` of the file, and go on behind `range_bytes` where a row does.
fn decode_from(
    file: &FileSpec,
    begin_byte: u64,
    text: TextRange,
    range_bytes: u64,
    stop: &Stop,
) -> Result<Decoding, CoreError> {
    // Asked where bytes of the file are read: much text may be dropped before any is given.
    let raw = stop.over(FileRange::open(file, begin_byte, file.size_bytes)?);
    Decoding::new(Box::new(raw), compressed(file, file.compression), text, range_bytes)
}

fn compressed(file: &FileSpec, compression: Compression) -> Compressed {
    Compressed { path: file.path.clone(), compression, decoder_bytes: file.decoder_bytes }
}

/// The stage text of a slice, without the rows that are held back at its end.
fn without_footer(
    source: Box<dyn ByteSource>,
    slice: &SliceSpec,
    file: &FileSpec,
    layout: &Layout,
) -> Result<Box<dyn ByteSource>, CoreError> {
    match file.held.filter(|_| slice.ends(file)) {
        Some(held) => Ok(Box::new(WithoutFooter::new(source, held, file, layout, file.text_begin(slice))?)),
        None => Ok(source),
    }
}

/// Opens a stream. What a file tells while it is planned, a stream tells only now.
fn open_stream(
    spec: &FlowSpec,
    slice: &SliceSpec,
    stream: &StreamSpec,
    outcome: &Arc<Outcome>,
    hashing: Hashing,
) -> Result<Opened, CoreError> {
    let (file, layout) = (&spec.source.files[slice.file], spec.layout_of(slice.file));
    let abandoned = Abandoned::default();
    let wait = Duration::from_secs(stream.wait_seconds);
    let mut pipe = Pipe::open(&file.path, wait, outcome.clone(), abandoned.clone())?;
    let head = first_bytes(&mut pipe, HEAD_BYTES)?;
    let compression = compression(&file.path, file.compression, &head)?;
    let raw = Box::new(Replayed::new(head, Box::new(pipe)));
    let source: Box<dyn ByteSource> = match compression {
        Compression::None | Compression::Auto => raw,
        _ => {
            let decoding = Decoding::new(raw, compressed(file, compression), TextRange::default(), 0)?;
            Box::new(Ahead::start(Box::new(decoding), abandoned)?)
        }
    };
    let source = Hashed::of(source, &hashing);
    let mut recording = Recording::new(source, spec.memory.max_row_bytes);
    if compression != Compression::None {
        check_text(&file.path, compression, &first_bytes(&mut recording, HEAD_BYTES)?)?;
        recording = Recording::new(Box::new(recording.replayed(0)), spec.memory.max_row_bytes);
    }
    let head = first_bytes(&mut recording, HEAD_BYTES)?;
    let (first_byte, encoding) = text_start(&file.path, &head, layout.encoding)?;
    let mut recording = Recording::new(Box::new(recording.replayed(first_byte)), spec.memory.max_row_bytes);
    let begin = HeadPlace { path: &file.path, byte: first_byte as u64, lines: 0 };
    let skipped = skip_lines(decoded(&mut recording, encoding).as_mut(), &begin, layout)?;
    let most = spec.memory.max_row_bytes;
    let behind = |recording: Recording| -> Result<Recording, CoreError> {
        let mut text = recording.replayed(0);
        discard(&mut text, skipped.bytes)?;
        Ok(Recording::new(Box::new(text), most))
    };
    let mut recording = behind(recording)?;
    let row_end = row_end(decoded(&mut recording, encoding).as_mut(), layout)?;
    let mut recording = Recording::new(Box::new(recording.replayed(0)), most);
    let place = HeadPlace { path: &file.path, byte: first_byte as u64 + skipped.bytes, lines: skipped.lines };
    let (header, columns) = read_header(decoded(&mut recording, encoding).as_mut(), &place, layout, &row_end)?;
    let mut source = recording.replayed(0);
    discard(&mut source, header.bytes)?;
    let head = Margin { bytes: skipped.bytes + header.bytes, lines: skipped.lines + header.lines };
    let file = FileSpec { row_end, first_byte: first_byte as u64, encoding, head, columns, ..file.clone() };
    Ok(Opened { source: without_footer(decoded(source, encoding), slice, &file, layout)?, file, hashing })
}
