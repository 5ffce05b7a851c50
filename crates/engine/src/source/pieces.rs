//! Pieces of a compressed file that can be decoded alone, found by their headers: blocks of BGZF, frames of zstd.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::zstd::{self, Frame, Header};
use super::{Stop, UNKNOWN_WINDOW_BYTES};

/// Text between two places that are kept, at least, so that a large file does not need much memory.
const STEP_BYTES: u64 = 256 << 10;
/// Bytes of a gzip header that have to be there for BGZF, and the length of its extra field as BGZF writes it.
const GZIP_HEADER_BYTES: usize = 12;
const BGZF_EXTRA_BYTES: usize = 6;
const BGZF_HEADER_BYTES: usize = GZIP_HEADER_BYTES + BGZF_EXTRA_BYTES;
/// Checksum and length.
const GZIP_TRAILER_BYTES: u64 = 8;
/// A zstd frame with more blocks than this is not walked through, nor what stands behind it: most such files are one frame, of
/// which nothing is gained.
const MOST_BLOCKS: u32 = 8192;
/// Headers may promise any length of text: where it is more than this the file is not cut, so that places in it stay numbers.
const MOST_TEXT_BYTES: u64 = 1 << 62;
/// Footer of zstd's seekable format: number of frames, descriptor, magic number.
const SEEK_FOOTER_BYTES: u64 = 9;
const SEEK_MAGIC: u32 = 0x8F92_EAB1;
/// Of the table, as much is read at once: its length is that of the file, which may be sparse.
const ENTRIES_AT_ONCE: u64 = 8192;
/// The skipped frame that holds the table.
const SEEK_TABLE_MAGIC: u32 = 0x184D_2A5E;

/// Where a piece begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// In the file.
    pub file_byte: u64,
    /// In the text.
    pub text_byte: u64,
}

/// The pieces of a file, as its headers tell. Decoding proves them. By default the whole file is one, of unknown length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pieces {
    /// Where pieces begin, ascending, the first at 0; not all of them.
    places: Vec<Place>,
    text_bytes: u64,
}

impl Pieces {
    /// Where pieces begin, ascending.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Length of the text, if it is known.
    pub fn text_bytes(&self) -> Option<u64> {
        (!self.places.is_empty()).then_some(self.text_bytes)
    }

    /// A piece with this much text, which begins at `file_byte`.
    fn add(&mut self, file_byte: u64, text_bytes: u64) {
        let is_kept = self.places.last().is_none_or(|last| self.text_bytes - last.text_byte >= STEP_BYTES);
        if is_kept {
            // What is skipped in front of the first piece belongs to it.
            let file_byte = if self.places.is_empty() { 0 } else { file_byte };
            self.places.push(Place { file_byte, text_byte: self.text_bytes });
        }
        self.text_bytes = self.text_bytes.saturating_add(text_bytes);
    }

    /// The last place whose text does not begin behind `text_byte`.
    pub fn before(&self, text_byte: u64) -> Place {
        let behind = self.places.partition_point(|place| place.text_byte <= text_byte);
        behind.checked_sub(1).and_then(|index| self.places.get(index)).copied().unwrap_or_default()
    }
}

/// A file whose headers are looked at, of which there may be millions.
struct Headers<'a> {
    file: &'a File,
    stop: &'a Stop,
}

impl Headers<'_> {
    /// False if the file ends before.
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<bool> {
        self.stop.check().map_err(io::Error::other)?;
        match self.file.read_exact_at(into, at) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The blocks of a file that is BGZF from its start to its end; `None` for other gzip. Fails once `stop` is set.
pub fn bgzf(file: &File, size_bytes: u64, stop: &Stop) -> io::Result<Option<Pieces>> {
    let headers = Headers { file, stop };
    let mut pieces = Pieces::default();
    let mut at = 0;
    let mut header = [0; BGZF_HEADER_BYTES];
    while at < size_bytes {
        if !headers.read_at(&mut header, at)? {
            return Ok(None);
        }
        let Some(length) = bgzf_block_bytes(&header) else { return Ok(None) };
        let mut text = [0; 4];
        let next = at + length;
        if next > size_bytes || !headers.read_at(&mut text, next - 4)? {
            return Ok(None);
        }
        pieces.add(at, u64::from(u32::from_le_bytes(text)));
        at = next;
    }
    // Nothing but pieces: an empty file is no gzip.
    Ok(Some(pieces).filter(|pieces| !pieces.places.is_empty()))
}

/// Length of a block of BGZF, whose header says it in an extra field; none for any other member.
fn bgzf_block_bytes(header: &[u8; BGZF_HEADER_BYTES]) -> Option<u64> {
    const FLAG_EXTRA: u8 = 1 << 2;
    let is_bgzf = header[..3] == [0x1F, 0x8B, 8]
        && header[3] == FLAG_EXTRA
        && header[10..12] == (BGZF_EXTRA_BYTES as u16).to_le_bytes()
        && header[12..16] == *b"BC\x02\0";
    let length = u64::from(u16::from_le_bytes([header[16], header[17]])) + 1;
    (is_bgzf && length > BGZF_HEADER_BYTES as u64 + GZIP_TRAILER_BYTES).then_some(length)
}

/// What the headers of a zstd file tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZstdFrames {
    /// The largest window of the frames; where not all of them were looked at, at least [`UNKNOWN_WINDOW_BYTES`].
    pub window_bytes: u64,
    /// The frames, if there are several and the length of the text of each is known.
    pub pieces: Option<Pieces>,
}

impl ZstdFrames {
    /// Of a file in which others may stand behind them.
    fn and_others(self) -> Self {
        ZstdFrames { window_bytes: self.window_bytes.max(UNKNOWN_WINDOW_BYTES), ..self }
    }
}

/// Walks through the frames of a zstd file, or takes them from its table, if it has one. What is wrong with the file is said
/// by whoever decodes it. Fails once `stop` is set.
pub fn zstd_frames(file: &File, size_bytes: u64, stop: &Stop) -> io::Result<ZstdFrames> {
    let headers = Headers { file, stop };
    match seek_table(&headers, size_bytes)? {
        Some(found) => Ok(found),
        None => walk(&headers, size_bytes, MOST_BLOCKS),
    }
}

/// Walks through frames of at most `most_blocks` blocks.
fn walk(headers: &Headers<'_>, size_bytes: u64, most_blocks: u32) -> io::Result<ZstdFrames> {
    let mut found = ZstdFrames { window_bytes: 0, pieces: None };
    let mut pieces = Pieces::default();
    let (mut at, mut frames) = (0, 0_u64);
    let mut is_known = true;
    while at < size_bytes {
        let Some(header) = header_at(headers, at, size_bytes)? else { return Ok(found.and_others()) };
        match header {
            Header::Skipped(length) => at = at.saturating_add(length),
            Header::Frame(frame) => {
                found.window_bytes = found.window_bytes.max(frame.window_bytes);
                let behind = behind_frame(headers, at, &frame, size_bytes, most_blocks)?;
                let Some(next) = behind else { return Ok(found.and_others()) };
                is_known &= frame.text_bytes.is_some();
                pieces.add(at, frame.text_bytes.unwrap_or(0));
                (at, frames) = (next, frames + 1);
            }
        }
    }
    if at == size_bytes && is_known && frames > 1 && pieces.text_bytes <= MOST_TEXT_BYTES {
        found.pieces = Some(pieces);
    }
    Ok(found)
}

fn header_at(headers: &Headers<'_>, at: u64, size_bytes: u64) -> io::Result<Option<Header>> {
    let mut bytes = [0; 18];
    let length = bytes.len().min(usize::try_from(size_bytes - at).unwrap_or(usize::MAX));
    let is_there = headers.read_at(&mut bytes[..length], at)?;
    Ok(if is_there { zstd::header(&bytes[..length]).unwrap_or(None) } else { None })
}

/// Where the frame ends; `None` if it has more blocks than that, or is cut off.
fn behind_frame(
    headers: &Headers<'_>,
    at: u64,
    frame: &Frame,
    size_bytes: u64,
    most_blocks: u32,
) -> io::Result<Option<u64>> {
    const REPEATED: u32 = 1;
    let mut at = at + frame.header_bytes as u64;
    for _ in 0..most_blocks {
        let mut header = [0; 4];
        if at + 3 > size_bytes || !headers.read_at(&mut header[..3], at)? {
            return Ok(None);
        }
        let header = u32::from_le_bytes(header);
        let (is_last, kind, length) = (header & 1 == 1, header >> 1 & 0b11, u64::from(header >> 3));
        at += 3 + if kind == REPEATED { 1 } else { length };
        if is_last {
            at += if frame.has_checksum { 4 } else { 0 };
            return Ok((at <= size_bytes).then_some(at));
        }
    }
    Ok(None)
}

/// The table at the end of a file in the seekable format.
fn seek_table(headers: &Headers<'_>, size_bytes: u64) -> io::Result<Option<ZstdFrames>> {
    let mut footer = [0; SEEK_FOOTER_BYTES as usize];
    if size_bytes < SEEK_FOOTER_BYTES || !headers.read_at(&mut footer, size_bytes - SEEK_FOOTER_BYTES)? {
        return Ok(None);
    }
    let frames = u64::from(word(&footer, 0));
    let entry_bytes = if footer[4] & 0x80 != 0 { 12 } else { 8 };
    let table_bytes = frames * entry_bytes + SEEK_FOOTER_BYTES;
    let Some(begin) = size_bytes.checked_sub(table_bytes + 8) else { return Ok(None) };
    let mut table = [0; 8];
    if word(&footer, 5) != SEEK_MAGIC
        || footer[4] & 0b0111_1100 != 0
        || !headers.read_at(&mut table, begin)?
        || word(&table, 0) != SEEK_TABLE_MAGIC
        || u64::from(word(&table, 4)) != table_bytes
    {
        return Ok(None);
    }
    let mut found = ZstdFrames { window_bytes: 0, pieces: None };
    let mut pieces = Pieces::default();
    let mut at = 0;
    for first in (0..frames).step_by(ENTRIES_AT_ONCE as usize) {
        let mut entries = vec![0; (ENTRIES_AT_ONCE.min(frames - first) * entry_bytes) as usize];
        if !headers.read_at(&mut entries, begin + 8 + first * entry_bytes)? {
            return Ok(None);
        }
        for entry in entries.chunks_exact(entry_bytes as usize) {
            // A frame of no length would let the table have any number of them.
            let (length, text_bytes) = (u64::from(word(entry, 0)), u64::from(word(entry, 4)));
            match header_at(headers, at, begin.max(at))? {
                Some(Header::Frame(frame)) if length > 0 => {
                    found.window_bytes = found.window_bytes.max(frame.window_bytes);
                }
                Some(Header::Skipped(_)) if length > 0 => {}
                _ => return Ok(None),
            }
            pieces.add(at, text_bytes);
            at += length;
        }
    }
    if at == begin && frames > 1 && pieces.text_bytes <= MOST_TEXT_BYTES {
        found.pieces = Some(pieces);
    }
    Ok((at == begin).then_some(found))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use headrace_types::{CoreError, ErrorKind};

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        file
    }

    /// A zstd frame with a window of 2 to the power of `10 + exponent` bytes and so many blocks, all of them empty.
    fn frame(exponent: u8, blocks: usize) -> Vec<u8> {
        let begin = [0x28, 0xB5, 0x2F, 0xFD, 0, exponent << 3];
        [&begin[..], &[0_u8; 3].repeat(blocks - 1), &[1, 0, 0]].concat()
    }

    /// A frame that says how long its text is: a window as large, and nothing in it.
    fn promising(text_bytes: u64) -> Vec<u8> {
        [&[0x28_u8, 0xB5, 0x2F, 0xFD, 0xE0][..], &text_bytes.to_le_bytes(), &[1, 0, 0]].concat()
    }

    #[test]
    fn frames_behind_one_with_many_blocks_may_have_any_usual_window() {
        let bytes = [frame(0, 3), frame(12, 1)].concat();
        let (file, stop) = (file(&bytes), Stop::default());
        let window = |most_blocks| {
            let headers = Headers { file: &file, stop: &stop };
            walk(&headers, bytes.len() as u64, most_blocks).unwrap().window_bytes
        };
        assert_eq!((window(3), window(2)), (4 << 20, UNKNOWN_WINDOW_BYTES));
    }

    #[test]
    fn lengths_that_no_text_has_make_no_pieces() {
        for (text_bytes, is_cut) in [(1 << 40, true), (u64::MAX, false)] {
            let bytes = [promising(7), promising(text_bytes), promising(7)].concat();
            let found = zstd_frames(&file(&bytes), bytes.len() as u64, &Stop::default()).unwrap();
            assert_eq!((found.window_bytes, found.pieces.is_some()), (text_bytes, is_cut));
        }
    }

    /// A file that begins with `frames` and ends with a table of so many entries; those that are not given are a hole.
    fn with_table(frames: &[u8], entries: &[(u32, u32)], count: u32) -> (File, u64) {
        let file = file(frames);
        let begin = frames.len() as u64;
        let table_bytes = u64::from(count) * 8 + SEEK_FOOTER_BYTES;
        let head = [SEEK_TABLE_MAGIC.to_le_bytes(), (table_bytes as u32).to_le_bytes()].concat();
        let given: Vec<u8> =
            entries.iter().flat_map(|(length, text)| [length.to_le_bytes(), text.to_le_bytes()].concat()).collect();
        let footer = [&count.to_le_bytes()[..], &[0], &SEEK_MAGIC.to_le_bytes()].concat();
        file.write_all_at(&[head, given].concat(), begin).unwrap();
        let size_bytes = begin + 8 + table_bytes;
        file.write_all_at(&footer, size_bytes - SEEK_FOOTER_BYTES).unwrap();
        (file, size_bytes)
    }

    /// Bytes that this process has ever had in memory at once.
    fn peak_bytes() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    #[test]
    fn a_table_that_is_a_hole_takes_no_memory() {
        let first = frame(0, 1);
        // The most that the length of a skipped frame can say: 4 GB of entries, of which nothing is on the disk.
        let most = (u32::MAX - SEEK_FOOTER_BYTES as u32) / 8;
        for entries in [&[][..], &[(first.len() as u32, 7)], &[(first.len() as u32, 7), (0, u32::MAX)]] {
            let (file, size_bytes) = with_table(&first, entries, most);
            let before = peak_bytes();
            let found = seek_table(&Headers { file: &file, stop: &Stop::default() }, size_bytes).unwrap();
            assert_eq!(found, None);
            // Other tests of this program run beside it, and take far less than that.
            assert!(peak_bytes() - before < 1 << 30, "{} bytes", peak_bytes() - before);
        }
    }

    #[test]
    fn tables_are_read_whatever_their_length() {
        let one = frame(0, 1);
        for count in [1, 2, ENTRIES_AT_ONCE as u32 - 1, ENTRIES_AT_ONCE as u32, 3 * ENTRIES_AT_ONCE as u32 + 5] {
            let entries = vec![(one.len() as u32, 300_000); count as usize];
            let (file, size_bytes) = with_table(&one.repeat(count as usize), &entries, count);
            let found = seek_table(&Headers { file: &file, stop: &Stop::default() }, size_bytes).unwrap().unwrap();
            let places = found.pieces.map_or(0, |pieces| pieces.places.len());
            assert_eq!(places, if count == 1 { 0 } else { count as usize });
        }
    }

    #[test]
    fn headers_are_looked_at_until_nobody_waits() {
        let (file, stop) = (file(&frame(0, 3)), Stop::default());
        stop.set();
        for error in [bgzf(&file, 15, &stop).unwrap_err(), zstd_frames(&file, 15, &stop).unwrap_err()] {
            assert_eq!(error.downcast::<CoreError>().unwrap().kind, ErrorKind::Cancelled);
        }
    }
}
