//! A look at the beginning and the end of files, by every dialect that they may have.

use std::collections::{HashMap, HashSet};

use headrace_parse::infer::{Candidate, SampleShape, shape_of};
use headrace_types::{CoreError, Encoding, ErrorKind, RowEnd};
use serde::{Deserialize, Serialize};

use super::refuse_cancelled;
use super::row_ends::{Ending, RowEndCounts};
use crate::slices::discard;
use crate::source::{
    ByteSource, FileRange, HEAD_BYTES, Stop, check_text, compression, decoded, decoder_bytes, first_bytes, from_start,
    likely, modified_ns, open_file, text_start, zstd_frames,
};
use crate::spec::{Compression, FileSpec};

/// What is looked at before the end of a file, bytes.
const TAIL_BYTES: u64 = 64 << 10;
/// A single-byte page in which every byte but five is a character: what text is that is no UTF-8, most of the time.
const USUAL_PAGE: &str = "windows-1252";
/// Words with characters that are not ASCII, to be shown.
const SHOWN_WORDS: usize = 3;

/// What to look at.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookSpec {
    /// Absolute paths.
    pub files: Vec<String>,
    /// Bytes of text from the front of each, or from `from_byte` on.
    pub sample_bytes: usize,
    /// Where samples begin, bytes of the text as it is encoded: elsewhere than at the front with the first whole line,
    /// and the ends of files are not looked at.
    #[serde(default)]
    pub from_byte: u64,
    /// Dialects to try.
    pub candidates: Vec<Candidate>,
    /// How bytes stand for characters; none if that is to be found.
    #[serde(default)]
    pub encoding: Option<Encoding>,
    /// Whether rows end with carriage returns alone; none if that is to be found, which takes a sample from the front.
    #[serde(default)]
    pub ends_with_cr: Option<bool>,
}

/// What was seen.
#[derive(Debug, Clone, Serialize)]
pub struct Look {
    /// Of each file, in their order.
    pub files: Vec<FileLook>,
}

/// What was seen of a file.
#[derive(Debug, Clone, Serialize)]
pub struct FileLook {
    /// Its path.
    pub path: String,
    /// Its size.
    pub size_bytes: u64,
    /// How it is compressed.
    pub compression: Compression,
    /// How bytes stand for characters.
    pub encoding: Encoding,
    /// Whether a byte order mark says so.
    pub has_mark: bool,
    /// Whether bytes above 0x7F were seen.
    pub has_high_bytes: bool,
    /// Words with such characters.
    pub high_words: Vec<String>,
    /// Whether the sample is all of its text.
    pub is_whole: bool,
    /// Row ends that were seen, whatever they stand in.
    pub row_ends: RowEndCounts,
    /// Whether rows end with carriage returns alone.
    pub ends_with_cr: bool,
    /// Whether that, or that they do not, is clear.
    pub is_row_end_clear: bool,
    /// The delimiter that a first line `sep=;` says, as Excel reads it. That line is no part of what was looked at.
    pub separator: Option<char>,
    /// The first lines, cut.
    pub head_lines: Vec<String>,
    /// The sample by each dialect; none where that means two things.
    pub candidates: Vec<Option<SampleShape>>,
    /// The last bytes of a file that is not compressed and larger than its sample, from the first whole line on.
    pub tail: Vec<Option<SampleShape>>,
}

/// Looks at all files.
///
/// # Errors
/// `Source` for what is missing, cannot be read, or is no text.
pub fn look(spec: &LookSpec, is_cancelled: &mut dyn FnMut() -> bool) -> Result<Look, CoreError> {
    let mut files = Vec::new();
    for path in &spec.files {
        files.push(look_at(path, spec, is_cancelled)?);
    }
    Ok(Look { files })
}

fn look_at(path: &str, spec: &LookSpec, is_cancelled: &mut dyn FnMut() -> bool) -> Result<FileLook, CoreError> {
    refuse_cancelled(is_cancelled)?;
    let planned = opened(path)?;
    let head = first_bytes(from_start(&planned)?.as_mut(), HEAD_BYTES)?;
    let (mark_bytes, encoding) = match spec.encoding {
        Some(encoding) => text_start(path, &head, encoding)?,
        None => unicode(path, &head)?,
    };
    let is_front = spec.from_byte <= mark_bytes as u64;
    let mut text = decoded(text_from(&planned, encoding, spec.from_byte.max(mark_bytes as u64))?, encoding);
    let mut sample = first_bytes(text.as_mut(), spec.sample_bytes)?;
    let is_end = text.read(&mut [0])? == 0;
    let is_whole = is_front && is_end;
    let told = spec.ends_with_cr.map(Ending::told);
    if !is_front {
        sample = whole_lines(sample, told.unwrap_or_default().byte());
    }
    let mut encoding = encoding;
    if spec.encoding.is_none() && encoding.is_utf8() && mark_bytes == 0 && !is_utf8(&sample, is_whole) {
        encoding = Encoding::try_from(USUAL_PAGE.to_owned()).unwrap_or(encoding);
    }
    if encoding.page().is_some() {
        sample = encoding.shown(&sample).into_bytes();
    }
    let separator = separator(&sample).filter(|_| is_front);
    if let Some((_, line_bytes)) = separator {
        sample.drain(..line_bytes);
    }
    let row_ends = RowEndCounts::of(&sample);
    let ending = match told {
        Some(told) => told,
        None => {
            let marks = Marks::of(&[&sample], &spec.candidates);
            let is_there = |own: &&Candidate| marks.has(own.qualifier) && marks.has(own.escape);
            let candidates: Vec<&Candidate> = spec.candidates.iter().filter(is_there).collect();
            Ending::of(&sample, row_ends, &candidates, is_cancelled)?
        }
    };
    let row_end = ending.row_end();
    let has_end = planned.compression == Compression::None && is_front && !is_whole;
    let end = if has_end { tail_of(&planned, encoding, ending.byte())? } else { Vec::new() };
    let marks = Marks::of(&[&sample, &end], &spec.candidates);
    let candidates = shapes(&sample, spec, &marks, &row_end, is_end, is_cancelled)?;
    let tail = if has_end { shapes(&end, spec, &marks, &row_end, true, is_cancelled)? } else { Vec::new() };
    let text = String::from_utf8_lossy(&sample);
    let is_high = |word: &&str| !word.is_ascii();
    Ok(FileLook {
        path: path.to_owned(),
        size_bytes: planned.size_bytes,
        compression: planned.compression,
        encoding,
        has_mark: mark_bytes > 0,
        has_high_bytes: !sample.is_ascii(),
        high_words: words(&text).filter(is_high).take(SHOWN_WORDS).map(cut).collect(),
        is_whole,
        row_ends,
        ends_with_cr: ending.is_cr,
        is_row_end_clear: ending.is_clear,
        separator: separator.map(|(delimiter, _)| delimiter),
        head_lines: text.split(['\n', '\r']).filter(|line| !line.is_empty()).take(100).map(cut).collect(),
        candidates,
        tail,
    })
}

/// What a first line `sep=;` says, and its length.
fn separator(sample: &[u8]) -> Option<(char, usize)> {
    let begin = sample.get(..4).filter(|begin| begin.eq_ignore_ascii_case(b"sep="))?;
    let delimiter = *sample.get(begin.len()).filter(|byte| byte.is_ascii() && !matches!(byte, b'\n' | b'\r'))?;
    let behind = &sample[begin.len() + 1..];
    let row_end = [&b"\r\n"[..], b"\n", b"\r"].into_iter().find(|own| behind.starts_with(own))?;
    Some((char::from(delimiter), begin.len() + 1 + row_end.len()))
}

/// Which marks of candidates stand in a file at all.
struct Marks(HashSet<String>);

impl Marks {
    fn of(texts: &[&Vec<u8>], candidates: &[Candidate]) -> Marks {
        let all = candidates.iter().flat_map(|own| {
            let single = [own.qualifier, own.escape].into_iter().flatten().map(String::from);
            own.delimiter.iter().cloned().chain(single)
        });
        let all: HashSet<String> = all.collect();
        let is_there = |mark: &String| texts.iter().any(|text| memchr::memmem::find(text, mark.as_bytes()).is_some());
        Marks(all.into_iter().filter(is_there).collect())
    }

    fn has(&self, mark: Option<char>) -> bool {
        mark.is_none_or(|mark| self.0.contains(mark.to_string().as_str()))
    }

    fn has_delimiter(&self, candidate: &Candidate) -> bool {
        candidate.delimiter.as_ref().is_none_or(|delimiter| self.0.contains(delimiter))
    }
}

/// A sample by each dialect. Looking costs time: a qualifier or an escape that is nowhere makes no difference and is
/// left out; by all delimiters that are nowhere a sample is the same.
fn shapes(
    text: &[u8],
    spec: &LookSpec,
    marks: &Marks,
    row_end: &RowEnd,
    is_end: bool,
    is_cancelled: &mut dyn FnMut() -> bool,
) -> Result<Vec<Option<SampleShape>>, CoreError> {
    let mut without_delimiter = HashMap::new();
    let mut all = Vec::new();
    for candidate in &spec.candidates {
        refuse_cancelled(is_cancelled)?;
        let shape = || shape_of(text, candidate, row_end, is_end).ok();
        all.push(if !marks.has(candidate.qualifier) || !marks.has(candidate.escape) {
            None
        } else if marks.has_delimiter(candidate) {
            shape()
        } else {
            without_delimiter.entry((candidate.qualifier, candidate.escape)).or_insert_with(shape).clone()
        });
    }
    Ok(all)
}

/// The text of a file from a byte of it on.
fn text_from(planned: &FileSpec, encoding: Encoding, byte: u64) -> Result<Box<dyn ByteSource>, CoreError> {
    let unit = if encoding.is_utf16() { 2 } else { 1 };
    let byte = byte / unit * unit;
    if planned.compression == Compression::None {
        return Ok(Box::new(FileRange::open(planned, byte.min(planned.size_bytes), planned.size_bytes)?));
    }
    let mut text = from_start(planned)?;
    discard(text.as_mut(), byte)?;
    Ok(text)
}

/// Without what stands before the first line end.
fn whole_lines(mut text: Vec<u8>, line_end: u8) -> Vec<u8> {
    let line = text.iter().position(|byte| *byte == line_end).map_or(text.len(), |at| at + 1);
    text.split_off(line)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}

/// A file as far as reading it from its start needs it.
fn opened(path: &str) -> Result<FileSpec, CoreError> {
    let (file, metadata) = open_file(path)?;
    let mut planned = FileSpec {
        path: path.to_owned(),
        size_bytes: metadata.len(),
        modified_ns: modified_ns(&metadata),
        inode: std::os::unix::fs::MetadataExt::ino(&metadata),
        ..FileSpec::default()
    };
    let head = first_bytes(from_start(&planned)?.as_mut(), HEAD_BYTES)?;
    planned.compression = compression(path, Compression::Auto, &head)?;
    if planned.compression != Compression::None {
        let window_bytes = match planned.compression {
            Compression::Zstd => {
                let unreadable = |error: std::io::Error| {
                    CoreError::new(ErrorKind::Source, "cannot read a source file")
                        .at_file(path)
                        .found(error.to_string())
                };
                Some(zstd_frames(&file, planned.size_bytes, &Stop::default()).map_err(unreadable)?.window_bytes)
            }
            _ => None,
        };
        planned.decoder_bytes = decoder_bytes(planned.compression, window_bytes);
        check_text(path, planned.compression, &first_bytes(from_start(&planned)?.as_mut(), HEAD_BYTES)?)?;
    }
    Ok(planned)
}

/// Length of the byte order mark, and the Unicode encoding that the first bytes say; UTF-8 if they say nothing.
fn unicode(path: &str, head: &[u8]) -> Result<(usize, Encoding), CoreError> {
    if let Some(own) = likely(head).filter(|_| !head.starts_with(b"\xFF\xFE") && !head.starts_with(b"\xFE\xFF")) {
        return Ok((0, Encoding::try_from(own.to_owned()).unwrap_or_default()));
    }
    match text_start(path, head, Encoding::Utf16) {
        Ok((length, encoding)) if length > 0 => Ok((length, encoding)),
        _ => text_start(path, head, Encoding::default()),
    }
}

/// Whether it is UTF-8; the last character may be cut.
fn is_utf8(sample: &[u8], is_whole: bool) -> bool {
    match std::str::from_utf8(sample) {
        Ok(_) => true,
        Err(error) => !is_whole && error.error_len().is_none(),
    }
}

/// The last bytes of a file, from the first line on that is whole.
fn tail_of(planned: &FileSpec, encoding: Encoding, line_end: u8) -> Result<Vec<u8>, CoreError> {
    let unit = if encoding.is_utf16() { 2 } else { 1 };
    let begin = planned.size_bytes.saturating_sub(TAIL_BYTES) / unit * unit;
    let raw = FileRange::open(planned, begin, planned.size_bytes)?;
    let mut text = first_bytes(decoded(raw, encoding).as_mut(), 2 * TAIL_BYTES as usize)?;
    if encoding.page().is_some() {
        text = encoding.shown(&text).into_bytes();
    }
    Ok(whole_lines(text, line_end))
}
