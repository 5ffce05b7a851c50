//! Pages of one byte per character, byte by byte, UTF-8 with holes, and the text of UTF-16 without any. Of the crates only the
//! tables are used, which `tests/integration/test_encodings.py` compares with Python's.

use std::cell::RefCell;
use std::collections::HashMap;

use headrace_types::{Encoding, Layout, Rule, Unmappable};

/// The characters of all bytes.
type Characters = [Option<char>; 256];

thread_local! {
    /// Of the encodings that were asked for: to look for them takes long.
    static KNOWN: RefCell<HashMap<&'static str, Box<Characters>>> = RefCell::default();
}

/// What every character becomes, the other way round.
fn characters(encoding: Encoding) -> Box<Characters> {
    let mut characters = Box::new([None; 256]);
    for character in (0..=0xFFFF).filter_map(char::from_u32) {
        if let Some([byte]) = encoding.encode(character.encode_utf8(&mut [0; 4])).as_deref() {
            characters[usize::from(*byte)] = Some(character);
        }
    }
    characters
}

/// The character of a byte; none if it is none.
fn character(encoding: Encoding, byte: u8) -> Option<char> {
    KNOWN.with_borrow_mut(|known| {
        known.entry(encoding.name()).or_insert_with(|| characters(encoding))[usize::from(byte)]
    })
}

/// The bytes of a text of the layout.
pub fn encoded(layout: &Layout, text: &str) -> Vec<u8> {
    layout.encoding.encode(text).unwrap()
}

/// The UTF-8 of a text without qualifiers and escapes.
pub fn decoded(layout: &Layout, text: Vec<u8>) -> Result<Vec<u8>, Rule> {
    let replaces = layout.unmappable == Unmappable::Replace;
    if layout.encoding == Encoding::Utf8 {
        return Ok(if replaces { String::from_utf8_lossy(&text).into_owned().into_bytes() } else { text });
    }
    if layout.encoding.is_utf16() {
        // The text that stands there is one of whole characters; an escaped number may be none.
        return match String::from_utf8(text) {
            Ok(text) => Ok(text.into_bytes()),
            Err(error) if replaces => Ok(String::from_utf8_lossy(error.as_bytes()).into_owned().into_bytes()),
            Err(_) => Err(Rule::Unmappable),
        };
    }
    let mut utf8 = String::new();
    for byte in text {
        match character(layout.encoding, byte) {
            Some(character) => utf8.push(character),
            None if replaces => utf8.push('\u{FFFD}'),
            None => return Err(Rule::Unmappable),
        }
    }
    Ok(utf8.into_bytes())
}

/// How many characters of such a text are replaced.
pub fn replaced(layout: &Layout, text: &[u8]) -> u64 {
    if layout.unmappable != Unmappable::Replace {
        return 0;
    }
    match layout.encoding.page() {
        Some(_) => text.iter().filter(|byte| character(layout.encoding, **byte).is_none()).count() as u64,
        None => text.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count() as u64,
    }
}

/// A value as messages show it.
pub fn shown(layout: &Layout, value: &[u8]) -> Vec<u8> {
    if layout.encoding.is_utf16() {
        // A character that is cut in two is left out: half of one is no bytes of the file.
        let whole = std::str::from_utf8(value).map_or_else(|error| error.valid_up_to(), str::len);
        return value[..whole].to_vec();
    }
    if layout.encoding == Encoding::Utf8 {
        return value.to_vec();
    }
    let show = |byte: &u8| character(layout.encoding, *byte).map_or(format!("\\x{byte:02X}"), String::from);
    value.iter().map(show).collect::<String>().into_bytes()
}

/// What is said of a value that holds a byte without character.
pub fn hole(layout: &Layout, value: &[u8], first_byte: u64) -> String {
    if layout.encoding.is_utf16() {
        return "an escaped number".to_owned();
    }
    match value.iter().position(|byte| character(layout.encoding, *byte).is_none()) {
        Some(at) => format!("byte 0x{:02X} at byte {}", value[at], first_byte + at as u64),
        None => "an escaped number".to_owned(),
    }
}
