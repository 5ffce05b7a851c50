//! A look at the beginning and the end of files, by every dialect that they may have.

use headrace_parse::infer::{Candidate, SampleShape, shape_of};
use headrace_types::{CoreError, Encoding, ErrorKind, RowEnd};
use serde::{Deserialize, Serialize};

use crate::slices::discard;
use crate::source::{
    ByteSource, FileRange, HEAD_BYTES, check_text, compression, decoded, decoder_bytes, first_bytes, from_start,
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
    /// Bytes of text from the front of each.
    pub sample_bytes: usize,
    /// Dialects to try.
    pub candidates: Vec<Candidate>,
    /// How bytes stand for characters; none if that is to be found.
    #[serde(default)]
    pub encoding: Option<Encoding>,
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
    /// Row ends that were seen.
    pub row_ends: RowEndCounts,
    /// The first lines, cut.
    pub head_lines: Vec<String>,
    /// The sample by each dialect; none where that means two things.
    pub candidates: Vec<Option<SampleShape>>,
    /// The last bytes of a file that is not compressed and larger than its sample, from the first whole line on.
    pub tail: Vec<Option<SampleShape>>,
}

/// Row ends of a sample.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct RowEndCounts {
    /// Line feeds alone.
    pub lf: u64,
    /// Carriage returns and line feeds.
    pub crlf: u64,
    /// Carriage returns alone.
    pub cr: u64,
}

/// Looks at all files.
///
/// # Errors
/// `Source` for what is missing, cannot be read, or is no text.
pub fn look(spec: &LookSpec, is_cancelled: &mut dyn FnMut() -> bool) -> Result<Look, CoreError> {
    let mut files = Vec::new();
    for path in &spec.files {
        if is_cancelled() {
            return Err(CoreError::new(ErrorKind::Cancelled, super::CANCELLED));
        }
        files.push(look_at(path, spec)?);
    }
    Ok(Look { files })
}

fn look_at(path: &str, spec: &LookSpec) -> Result<FileLook, CoreError> {
    let planned = opened(path)?;
    let head = first_bytes(from_start(&planned)?.as_mut(), HEAD_BYTES)?;
    let (mark_bytes, encoding) = match spec.encoding {
        Some(encoding) => text_start(path, &head, encoding)?,
        None => unicode(path, &head)?,
    };
    let mut text = from_start(&planned)?;
    discard(text.as_mut(), mark_bytes as u64)?;
    let mut text = decoded(text, encoding);
    let mut sample = first_bytes(text.as_mut(), spec.sample_bytes)?;
    let is_whole = text.read(&mut [0])? == 0;
    let mut encoding = encoding;
    if spec.encoding.is_none() && encoding.is_utf8() && mark_bytes == 0 && !is_utf8(&sample, is_whole) {
        encoding = Encoding::try_from(USUAL_PAGE.to_owned()).unwrap_or(encoding);
    }
    if encoding.page().is_some() {
        sample = encoding.shown(&sample).into_bytes();
    }
    let row_ends = count_row_ends(&sample);
    let row_end = match row_ends {
        RowEndCounts { lf: 0, crlf: 0, cr: 1.. } => RowEnd::Exactly("\r".to_owned()),
        _ => RowEnd::Either,
    };
    let shapes = |sample: &[u8], is_whole: bool| shapes(sample, &spec.candidates, &row_end, is_whole);
    let tail = match planned.compression {
        Compression::None if !is_whole => shapes(&tail_of(&planned, encoding)?, true),
        _ => Vec::new(),
    };
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
        head_lines: text.split(['\n', '\r']).filter(|line| !line.is_empty()).take(100).map(cut).collect(),
        candidates: shapes(&sample, is_whole),
        tail,
    })
}

/// A sample by each dialect. Those that differ only by what does not occur in the sample are one.
fn shapes(sample: &[u8], candidates: &[Candidate], row_end: &RowEnd, is_whole: bool) -> Vec<Option<SampleShape>> {
    let holds = |mark: &str| memchr::memmem::find(sample, mark.as_bytes()).is_some();
    let mut known: Vec<(Candidate, Option<SampleShape>)> = Vec::new();
    let mut shape = |candidate: &Candidate| {
        // It may mean two things whatever the sample holds.
        shape_of(b"", candidate, row_end, true).ok()?;
        let occurs = Candidate {
            delimiter: candidate.delimiter.clone().filter(|mark| holds(mark)),
            qualifier: candidate.qualifier.filter(|mark| holds(&mark.to_string())),
            escape: candidate.escape.filter(|mark| holds(&mark.to_string())),
        };
        if let Some((_, shape)) = known.iter().find(|(known, _)| *known == occurs) {
            return shape.clone();
        }
        let shape = shape_of(sample, &occurs, row_end, is_whole).ok();
        known.push((occurs, shape.clone()));
        shape
    };
    candidates.iter().map(&mut shape).collect()
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
                Some(zstd_frames(&file, planned.size_bytes).map_err(unreadable)?.window_bytes)
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

fn count_row_ends(sample: &[u8]) -> RowEndCounts {
    let mut counts = RowEndCounts::default();
    for (at, byte) in sample.iter().enumerate() {
        match byte {
            b'\n' if at > 0 && sample[at - 1] == b'\r' => counts.crlf += 1,
            b'\n' => counts.lf += 1,
            b'\r' if sample.get(at + 1) != Some(&b'\n') => counts.cr += 1,
            _ => {}
        }
    }
    counts
}

/// The last bytes of a file, from the first line on that is whole.
fn tail_of(planned: &FileSpec, encoding: Encoding) -> Result<Vec<u8>, CoreError> {
    let unit = if encoding.is_utf16() { 2 } else { 1 };
    let begin = planned.size_bytes.saturating_sub(TAIL_BYTES) / unit * unit;
    let raw = FileRange::open(planned, begin, planned.size_bytes)?;
    let mut text = first_bytes(decoded(raw, encoding).as_mut(), 2 * TAIL_BYTES as usize)?;
    if encoding.page().is_some() {
        text = encoding.shown(&text).into_bytes();
    }
    let line = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1);
    Ok(text.split_off(line))
}
