//! How bytes of a file stand for characters.
//!
//! Files in a page of one byte per character are parsed as they are: only texts are decoded. UTF-16 is decoded while it is read,
//! into *stage text*: UTF-8 in which half surrogate pairs and an odd last byte have forms of their own (no UTF-8, but in the same
//! manner), so that the bytes of the file can be told from it. For every other encoding the stage text is the file's own.

mod pages;

use std::fmt;

use serde::{Deserialize, Serialize};

use self::pages::{PAGES, UpperHalf};

/// How bytes of a file stand for characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum Encoding {
    /// UTF-8.
    #[default]
    Utf8,
    /// UTF-16 in the order of its byte order mark.
    Utf16,
    /// UTF-16, the low byte first.
    Utf16Le,
    /// UTF-16, the high byte first.
    Utf16Be,
    /// One byte per character.
    Page(&'static Page),
}

/// What happens to bytes that are no character.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unmappable {
    /// Their row is a reject.
    #[default]
    Reject,
    /// They are read as U+FFFD, and counted.
    Replace,
}

/// UTF-8 of a character of a page, and its length: 0 for a byte that is none.
pub type PageCharacter = ([u8; 3], u8);

/// A page of one byte per character. Bytes below 0x80 are ASCII in all of them.
pub struct Page {
    name: &'static str,
    characters: [PageCharacter; 128],
}

static TABLES: [Page; PAGES.len()] = tables();

const fn tables() -> [Page; PAGES.len()] {
    const NONE: Page = Page { name: "", characters: [([0; 3], 0); 128] };
    let mut tables = [NONE; PAGES.len()];
    let mut index = 0;
    while index < PAGES.len() {
        tables[index] = Page { name: PAGES[index].0, characters: characters(&PAGES[index].1) };
        index += 1;
    }
    tables
}

const fn characters(half: &UpperHalf) -> [PageCharacter; 128] {
    let mut characters = [([0; 3], 0); 128];
    let mut index = 0;
    while index < 128 {
        let number = half[index];
        let low = 0x80 | (number & 0x3F) as u8;
        characters[index] = match number {
            0 => ([0; 3], 0),
            1..0x80 => ([number as u8, 0, 0], 1),
            0x80..0x800 => ([0xC0 | (number >> 6) as u8, low, 0], 2),
            _ => ([0xE0 | (number >> 12) as u8, 0x80 | (number >> 6 & 0x3F) as u8, low], 3),
        };
        index += 1;
    }
    characters
}

impl PartialEq for Page {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Page {}

impl fmt::Debug for Page {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl Page {
    /// UTF-8 of a byte above 0x7F: three bytes, of which so many count.
    #[inline(always)]
    pub fn character(&self, byte: u8) -> PageCharacter {
        self.characters[usize::from(byte & 0x7F)]
    }

    fn byte_of(&self, character: char) -> Option<u8> {
        if character.is_ascii() {
            return Some(character as u8);
        }
        let mut utf8 = [0; 4];
        let text = character.encode_utf8(&mut utf8).as_bytes();
        let is_it = |(bytes, length): &PageCharacter| bytes[..usize::from(*length)] == *text;
        self.characters.iter().position(is_it).map(|index| 0x80 | index as u8)
    }
}

/// A piece of stage text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Characters, as UTF-8.
    Text(&'a [u8]),
    /// What is no character: the stage text of it.
    Unmappable(&'a [u8]),
}

/// First byte of the stage text of an odd last byte; two more hold its bits.
const ODD_LEAD: u8 = 0xF8;

/// The stage text of an odd last byte.
pub fn odd_byte(byte: u8) -> [u8; 3] {
    [ODD_LEAD, 0x80 | byte >> 6, 0x80 | byte & 0x3F]
}

/// The stage text of half a surrogate pair.
pub fn half_pair(unit: u16) -> [u8; 3] {
    [0xE0 | (unit >> 12) as u8, 0x80 | (unit >> 6 & 0x3F) as u8, 0x80 | (unit & 0x3F) as u8]
}

impl Encoding {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Encoding> {
        let unicode = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf16Le, Encoding::Utf16Be];
        unicode.into_iter().chain(TABLES.iter().map(Encoding::Page))
    }

    /// Its name in layouts.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "utf-8",
            Encoding::Utf16 => "utf-16",
            Encoding::Utf16Le => "utf-16le",
            Encoding::Utf16Be => "utf-16be",
            Encoding::Page(page) => page.name,
        }
    }

    /// Whether it is UTF-8.
    pub fn is_utf8(&self) -> bool {
        *self == Encoding::Utf8
    }

    /// Whether it is one of the forms of UTF-16.
    pub fn is_utf16(self) -> bool {
        matches!(self, Encoding::Utf16 | Encoding::Utf16Le | Encoding::Utf16Be)
    }

    /// Its page of one byte per character, if it is one.
    pub fn page(self) -> Option<&'static Page> {
        if let Encoding::Page(page) = self { Some(page) } else { None }
    }

    /// The stage text of a text; none for a character that it lacks.
    pub fn encode(self, text: &str) -> Option<Vec<u8>> {
        match self.page() {
            Some(page) => text.chars().map(|character| page.byte_of(character)).collect(),
            None => Some(text.as_bytes().to_vec()),
        }
    }

    /// The first character of a text that it lacks.
    pub fn lacks(self, text: &str) -> Option<char> {
        let page = self.page()?;
        text.chars().find(|character| page.byte_of(*character).is_none())
    }

    /// What stage text stands for, hole by hole.
    pub fn decode(self, text: &[u8], mut put: impl FnMut(Piece<'_>)) {
        let Some(page) = self.page() else { return decode_utf8(self, text, put) };
        for byte in text {
            match page.character(*byte) {
                _ if byte.is_ascii() => put(Piece::Text(&[*byte])),
                (_, 0) => put(Piece::Unmappable(&[*byte])),
                (bytes, length) => put(Piece::Text(&bytes[..usize::from(length)])),
            }
        }
    }

    /// Stage text as messages show it: what is no character as its bytes in hex.
    pub fn shown(self, text: &[u8]) -> String {
        let mut shown = String::with_capacity(text.len());
        self.decode(text, |piece| match piece {
            Piece::Text(text) => shown.push_str(&String::from_utf8_lossy(text)),
            Piece::Unmappable(text) => shown.push_str(&self.shown_hole(text)),
        });
        shown
    }

    fn shown_hole(self, text: &[u8]) -> String {
        match half_pair_of(text) {
            Some(unit) if self.is_utf16() => format!("\\u{unit:04X}"),
            _ => self.source_text(text).iter().map(|byte| format!("\\x{byte:02X}")).collect(),
        }
    }

    /// The first place of stage text that is no character, and what stands there, for messages.
    pub fn first_hole(self, text: &[u8]) -> Option<(usize, String)> {
        let (mut at, mut found) = (0, None);
        // Text of a page takes one byte of stage text for every piece.
        let is_page = self.page().is_some();
        self.decode(text, |piece| match piece {
            Piece::Text(text) => at += if is_page { 1 } else { text.len() },
            Piece::Unmappable(hole) => {
                let what = match half_pair_of(hole) {
                    Some(unit) if self.is_utf16() => format!("half of a surrogate pair, 0x{unit:04X},"),
                    _ => {
                        let bytes = self.source_text(hole);
                        let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
                        format!("byte{} 0x{hex}", if bytes.len() == 1 { "" } else { "s" })
                    }
                };
                found.get_or_insert((at, what));
                at += hole.len();
            }
        });
        found
    }

    /// Bytes of the file that a stage text was made from.
    pub fn source_bytes(self, text: &[u8]) -> u64 {
        if !self.is_utf16() {
            return text.len() as u64;
        }
        // Two for every character, two more for those that are a pair of units, one for an odd last byte. By their first bytes, so
        // that text may be counted in parts, wherever they end.
        let bytes = |byte: &u8| {
            2 * u32::from(*byte & 0xC0 != 0x80) + 2 * u32::from(*byte & 0xF8 == 0xF0) - u32::from(*byte == ODD_LEAD)
        };
        text.chunks(1 << 16).map(|chunk| u64::from(chunk.iter().map(bytes).sum::<u32>())).sum()
    }

    /// The bytes of the file that a stage text was made from.
    pub fn source_text(self, text: &[u8]) -> Vec<u8> {
        if !self.is_utf16() {
            return text.to_vec();
        }
        let mut source = Vec::with_capacity(2 * text.len());
        let mut unit =
            |unit: u16| source.extend(if self == Encoding::Utf16Be { unit.to_be_bytes() } else { unit.to_le_bytes() });
        let mut odd = None;
        for piece in text.chunk_by(|_, next| next & 0xC0 == 0x80) {
            match *piece {
                [ODD_LEAD, high, low] => odd = Some(high << 6 | low & 0x3F),
                [first, second, third] if first & 0xF0 == 0xE0 => {
                    unit(u16::from(first & 0xF) << 12 | u16::from(second & 0x3F) << 6 | u16::from(third & 0x3F));
                }
                _ => String::from_utf8_lossy(piece).encode_utf16().for_each(&mut unit),
            }
        }
        source.extend(odd);
        source
    }

    /// A line feed in a file.
    pub fn line_feed(self) -> &'static [u8] {
        match self {
            Encoding::Utf16 | Encoding::Utf16Le => b"\n\0",
            Encoding::Utf16Be => b"\0\n",
            Encoding::Utf8 | Encoding::Page(_) => b"\n",
        }
    }
}

/// The unit that is the stage text of half a pair.
fn half_pair_of(text: &[u8]) -> Option<u16> {
    match *text {
        [0xED, second @ 0xA0..=0xBF, third @ 0x80..=0xBF] => {
            Some(0xD000 | u16::from(second & 0x3F) << 6 | u16::from(third & 0x3F))
        }
        _ => None,
    }
}

fn decode_utf8(encoding: Encoding, text: &[u8], mut put: impl FnMut(Piece<'_>)) {
    let mut rest = text;
    while !rest.is_empty() {
        let (valid, hole) = match std::str::from_utf8(rest) {
            Ok(_) => (rest.len(), 0),
            Err(error) => {
                let behind = &rest[error.valid_up_to()..];
                // An escape can make the lead of an odd byte, too.
                let three = &behind[..behind.len().min(3)];
                let is_odd =
                    matches!(*three, [ODD_LEAD, second, third] if second & 0xC0 == 0x80 && third & 0xC0 == 0x80);
                let own = encoding.is_utf16() && (half_pair_of(three).is_some() || is_odd);
                let length = if own { 3 } else { error.error_len().unwrap_or(behind.len()) };
                (error.valid_up_to(), length.min(behind.len()))
            }
        };
        if valid > 0 {
            put(Piece::Text(&rest[..valid]));
        }
        if hole > 0 {
            put(Piece::Unmappable(&rest[valid..valid + hole]));
        }
        rest = &rest[valid + hole..];
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl From<Encoding> for &'static str {
    fn from(encoding: Encoding) -> Self {
        encoding.name()
    }
}

impl TryFrom<String> for Encoding {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Encoding::all()
            .find(|encoding| encoding.name() == name)
            .ok_or_else(|| format!("no encoding is called {name:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Encoding {
        Encoding::try_from(name.to_owned()).unwrap()
    }

    #[test]
    fn pages_hold_what_they_are_known_for() {
        let known = [
            ("windows-1252", "€ŸÄß", &b"\x80\x9F\xC4\xDF"[..]),
            ("iso-8859-1", "\u{80}ÿ", b"\x80\xFF"),
            ("iso-8859-15", "€", b"\xA4"),
            ("windows-1251", "Я", b"\xDF"),
            ("koi8-r", "Я─", b"\xF1\x80"),
            ("macintosh", "Ä€", b"\x80\xDB"),
            ("cp437", "Çß", b"\x80\xE1"),
            ("cp858", "€", b"\xD5"),
        ];
        for (name, text, bytes) in known {
            assert_eq!(of(name).encode(text).as_deref(), Some(bytes), "{name}");
            assert_eq!(of(name).shown(bytes), text, "{name}");
        }
        assert_eq!(of("windows-1252").encode("Я"), None);
        assert_eq!(of("windows-1252").lacks("aЯ"), Some('Я'));
        assert_eq!(of("windows-1252").shown(b"a\x81"), "a\\x81");
        assert_eq!(of("windows-1252").first_hole(b"\x80\x81"), Some((1, "byte 0x81".to_owned())));
        assert!(Encoding::try_from("latin1".to_owned()).is_err());
    }

    #[test]
    fn the_bytes_of_a_file_are_told_from_its_stage_text() {
        let little = of("utf-16le");
        let mut stage = "aß€😀".as_bytes().to_vec();
        stage.extend(half_pair(0xDC01));
        stage.extend(b"\n");
        stage.extend(odd_byte(0xC3));
        let file = b"a\0\xDF\0\xAC\x20\x3D\xD8\x00\xDE\x01\xDC\n\0\xC3";
        assert_eq!(little.source_text(&stage), file);
        assert_eq!(little.source_bytes(&stage), file.len() as u64);
        assert_eq!(little.shown(&stage), "aß€😀\\uDC01\n\\xC3");
        assert_eq!(little.first_hole(&stage), Some((10, "half of a surrogate pair, 0xDC01,".to_owned())));
        assert_eq!(of("utf-16be").source_text(b"a"), b"\0a");
        assert_eq!(of("utf-8").source_bytes(&stage), stage.len() as u64);
        assert_eq!(of("utf-8").shown(b"\xC3\xA4\xC3(\xFF"), "ä\\xC3(\\xFF");
    }
}
