//! Zstandard (RFC 8878): frames one behind the other, some of which hold no text and are skipped.

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

use super::decoder::{Damage, Decoder, Step};

const MAGIC: u32 = 0xFD2F_B528;
/// The last four bits of the magic number of a frame to be skipped are anything.
const SKIPPABLE_MAGIC: u32 = 0x184D_2A50;
/// Magic number and the longest header.
const MOST_HEADER_BYTES: usize = 18;
/// As large as zstd's own decoder takes on 64-bit systems.
const MOST_WINDOW_BYTES: u64 = 1 << 31;
/// Beside the window: the decoder's tables, a block of input and one of output (`ZSTD_estimateDStreamSize`).
const STATE_BYTES: u64 = 512 << 10;

/// What the front of a frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// A frame of text.
    Frame(Frame),
    /// This many bytes without text follow, header included.
    Skipped(u64),
}

/// The header of a frame of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Bytes of magic number and header.
    pub header_bytes: usize,
    /// Text that has to be kept, bytes.
    pub window_bytes: u64,
    /// Length of the text, if the writer knew it.
    pub text_bytes: Option<u64>,
    /// Whether a checksum of four bytes ends the frame.
    pub has_checksum: bool,
    /// Number of the dictionary that it needs; 0 if it needs none.
    pub dictionary: u32,
}

/// Memory that a decoder of frames with this window takes.
pub fn decoder_bytes(window_bytes: u64) -> u64 {
    window_bytes.saturating_add(STATE_BYTES)
}

/// Reads the front of a frame. None if more bytes are needed.
///
/// # Errors
/// `Damage` if this is none.
pub fn header(bytes: &[u8]) -> Result<Option<Header>, Damage> {
    let Some(magic) = number(bytes, 0, 4) else { return Ok(None) };
    let magic = magic as u32;
    if magic & !0xF == SKIPPABLE_MAGIC {
        return Ok(number(bytes, 4, 4).map(|length| Header::Skipped(8 + length)));
    }
    if magic != MAGIC {
        return Err(Damage::new("bytes that are no zstd").expected("the start of a zstd frame"));
    }
    let Some(&descriptor) = bytes.get(4) else { return Ok(None) };
    if descriptor & 0b1000 != 0 {
        return Err(Damage::new("a reserved bit that is set in the header of a frame"));
    }
    let is_single_segment = descriptor & 0b10_0000 != 0;
    let window_length = usize::from(!is_single_segment);
    let dictionary_length = [0, 1, 2, 4][usize::from(descriptor & 0b11)];
    let text_length = match descriptor >> 6 {
        0 => usize::from(is_single_segment),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    let header_bytes = 5 + window_length + dictionary_length + text_length;
    if bytes.len() < header_bytes {
        return Ok(None);
    }
    let dictionary = number(bytes, 5 + window_length, dictionary_length).unwrap_or(0) as u32;
    let text_bytes = number(bytes, 5 + window_length + dictionary_length, text_length)
        .filter(|_| text_length > 0)
        .map(|length| if text_length == 2 { length + 256 } else { length });
    let window_bytes = if is_single_segment {
        text_bytes.unwrap_or(0)
    } else {
        let (exponent, mantissa) = (u64::from(bytes[5] >> 3), u64::from(bytes[5] & 0b111));
        let base = 1 << (10 + exponent);
        base + base / 8 * mantissa
    };
    let has_checksum = descriptor & 0b100 != 0;
    Ok(Some(Header::Frame(Frame { header_bytes, window_bytes, text_bytes, has_checksum, dictionary })))
}

/// A number of that many bytes, the lowest first.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + length)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Fails for a frame that cannot be decoded in this memory.
pub fn check(frame: &Frame, most_bytes: u64) -> Result<(), Damage> {
    if frame.dictionary != 0 {
        return Err(Damage::new(format!("a frame that needs dictionary {}", frame.dictionary))
            .expected("frames that need no dictionary")
            .hint("Compress the file anew without a dictionary."));
    }
    let needed = decoder_bytes(frame.window_bytes);
    if frame.window_bytes > MOST_WINDOW_BYTES || needed > most_bytes {
        return Err(Damage::new(format!("a frame with a window of {} bytes", frame.window_bytes))
            .expected(format!("at most {}", most_bytes.min(MOST_WINDOW_BYTES).saturating_sub(STATE_BYTES)))
            .hint("Compress the file anew with a smaller window (`zstd --long=23`, `-19` or lower)."));
    }
    Ok(())
}

enum Place {
    /// In a header, so many bytes of it.
    Header(usize),
    Frame,
    /// So many bytes before the end of a frame without text.
    Skipped(u64),
}

/// Decodes zstd.
pub struct Zstd {
    place: Place,
    header: [u8; MOST_HEADER_BYTES],
    context: DCtx<'static>,
    most_bytes: u64,
    /// Frames that have ended.
    frames: u64,
    /// Bytes of text of the frame, and how many its header has announced.
    length: u64,
    announced: Option<u64>,
}

impl Zstd {
    /// A decoder that takes at most that much memory; `None` if there is none.
    pub fn new(most_bytes: u64) -> Option<Self> {
        let mut context = DCtx::try_create()?;
        // Ours to decide, by the header of each frame.
        context.set_parameter(DParameter::WindowLogMax(31)).ok()?;
        Some(Zstd {
            place: Place::Header(0),
            header: [0; MOST_HEADER_BYTES],
            context,
            most_bytes,
            frames: 0,
            length: 0,
            announced: None,
        })
    }

    fn take_header(&mut self, have: usize, input: &[u8]) -> Result<Step, Damage> {
        // Byte by byte: the header says how long it is.
        for (consumed, byte) in (1..).zip(input) {
            let length = have + consumed;
            self.header[length - 1] = *byte;
            let found = header(&self.header[..length]).map_err(|damage| match self.frames {
                0 => damage,
                _ => Damage::new("other bytes behind the end of the last frame")
                    .expected("the end of the file, or one more frame"),
            })?;
            match found {
                Some(Header::Frame(frame)) => {
                    check(&frame, self.most_bytes)?;
                    (self.place, self.length, self.announced) = (Place::Frame, 0, frame.text_bytes);
                    self.begin(length)?;
                }
                Some(Header::Skipped(whole)) => self.skip(whole - length as u64),
                None => {
                    self.place = Place::Header(length);
                    continue;
                }
            }
            return Ok(Step { consumed, produced: 0 });
        }
        Ok(Step { consumed: input.len(), produced: 0 })
    }

    fn begin(&mut self, header_bytes: usize) -> Result<(), Damage> {
        let code = |code| Damage::new(format!("a frame that cannot be decoded ({})", zstd_safe::get_error_name(code)));
        self.context.reset(ResetDirective::SessionOnly).map_err(code)?;
        let mut input = InBuffer::around(&self.header[..header_bytes]);
        let mut nothing: [u8; 0] = [];
        self.context.decompress_stream(&mut OutBuffer::around(&mut nothing[..]), &mut input).map_err(code)?;
        if input.pos() == header_bytes { Ok(()) } else { Err(Damage::new("a frame whose header is not read")) }
    }

    fn skip(&mut self, left: u64) {
        self.place = if left == 0 { self.end_frame() } else { Place::Skipped(left) };
    }

    fn end_frame(&mut self) -> Place {
        self.frames += 1;
        Place::Header(0)
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Damage> {
        let (mut from, mut into) = (InBuffer::around(input), OutBuffer::around(output));
        let left = self.context.decompress_stream(&mut into, &mut from);
        let (consumed, produced) = (from.pos(), into.pos());
        let left =
            left.map_err(|code| Damage::new(format!("bytes that are no text ({})", zstd_safe::get_error_name(code))))?;
        self.length += produced as u64;
        if left == 0 {
            if self.announced.is_some_and(|announced| announced != self.length) {
                return Err(Damage::new(format!("a frame of {} bytes of text", self.length)));
            }
            self.place = self.end_frame();
        } else if consumed == 0 && produced == 0 {
            return Err(Damage::new("a frame that leads nowhere"));
        }
        Ok(Step { consumed, produced })
    }
}

impl Decoder for Zstd {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Damage> {
        match self.place {
            Place::Header(have) => self.take_header(have, input),
            Place::Frame => self.decode(input, output),
            Place::Skipped(left) => {
                let consumed = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                self.skip(left - consumed as u64);
                Ok(Step { consumed, produced: 0 })
            }
        }
    }

    fn is_between(&self) -> bool {
        matches!(self.place, Place::Header(0))
    }

    fn end(&self) -> Result<(), Damage> {
        match self.place {
            Place::Header(0) if self.frames > 0 => Ok(()),
            Place::Header(0) => Err(Damage::new("nothing").expected("a zstd frame")),
            Place::Header(_) => Err(Damage::new("the end of the file inside the header of a frame")),
            Place::Frame => Err(Damage::new("the end of the file inside a frame")),
            Place::Skipped(_) => Err(Damage::new("the end of the file inside a frame that is skipped")),
        }
    }
}
