//! UTF-16 as stage text (`headrace_types::Encoding`): UTF-8 from which the bytes of the file can be told.

use headrace_types::{CoreError, Encoding, half_pair, odd_byte};

use super::ByteSource;

/// Bytes of the file that are decoded at once.
const INPUT_BYTES: usize = 64 << 10;
/// Units that are looked at together.
const UNITS: usize = 32;

/// Decodes a source that begins with a whole unit.
pub struct Utf16<S> {
    source: S,
    is_big_endian: bool,
    /// Bytes of the file; those at the front that could not be decoded without the next ones.
    input: Vec<u8>,
    kept: usize,
    text: Vec<u8>,
    at: usize,
}

impl<S: ByteSource> Utf16<S> {
    /// Of that order of bytes.
    pub fn new(source: S, encoding: Encoding) -> Self {
        let is_big_endian = encoding == Encoding::Utf16Be;
        Utf16 { source, is_big_endian, input: vec![0; INPUT_BYTES], kept: 0, text: Vec::new(), at: 0 }
    }

    fn decode(&mut self, length: usize, ended: bool) {
        let is_big_endian = self.is_big_endian;
        let unit = |pair: [u8; 2]| if is_big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) };
        let (units, odd) = self.input[..length].as_chunks::<2>();
        let mut at = 0;
        while at < units.len() {
            if let Some(many) = units[at..].first_chunk::<UNITS>() {
                let many = many.map(unit);
                if many.iter().fold(0, |all, unit| all | unit) < 0x80 {
                    self.text.extend_from_slice(&many.map(|unit| unit as u8));
                    at += UNITS;
                    continue;
                }
            }
            // As many one by one, so that mixed text is not looked at twice for every character.
            for _ in 0..UNITS.min(units.len() - at) {
                let Some(first) = units.get(at).map(|pair| unit(*pair)) else { break };
                let second = units.get(at + 1).map(|pair| unit(*pair));
                let is_high = matches!(first, 0xD800..0xDC00);
                if is_high && second.is_none() && !ended {
                    break;
                }
                at += 1;
                if let Some(character) = char::from_u32(u32::from(first)) {
                    self.text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                } else if let (true, Some(low @ 0xDC00..0xE000)) = (is_high, second) {
                    let number = 0x1_0000 + (u32::from(first - 0xD800) << 10) + u32::from(low - 0xDC00);
                    let character = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
                    self.text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    at += 1;
                } else {
                    self.text.extend_from_slice(&half_pair(first));
                }
            }
            if at + 1 == units.len() && !ended {
                break;
            }
        }
        if ended {
            odd.iter().for_each(|byte| self.text.extend_from_slice(&odd_byte(*byte)));
            self.kept = 0;
        } else {
            self.input.copy_within(2 * at..length, 0);
            self.kept = length - 2 * at;
        }
    }
}

impl<S: ByteSource> ByteSource for Utf16<S> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        while self.at == self.text.len() {
            self.text.clear();
            self.at = 0;
            let count = self.source.read(&mut self.input[self.kept..])?;
            if count == 0 && self.kept == 0 {
                return Ok(0);
            }
            self.decode(self.kept + count, count == 0);
        }
        let count = into.len().min(self.text.len() - self.at);
        into[..count].copy_from_slice(&self.text[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }

    fn taken_bytes(&self) -> u64 {
        self.source.taken_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives a few bytes at once.
    struct Slow<'a>(&'a [u8], usize);

    impl ByteSource for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
            let count = self.1.min(into.len()).min(self.0.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }

        fn taken_bytes(&self) -> u64 {
            0
        }
    }

    fn decoded(file: &[u8], encoding: Encoding, step: usize) -> Vec<u8> {
        let mut source = Utf16::new(Slow(file, step), encoding);
        let (mut text, mut window) = (Vec::new(), [0; 7]);
        loop {
            match source.read(&mut window).unwrap() {
                0 => return text,
                count => text.extend_from_slice(&window[..count]),
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(
            units in prop::collection::vec(
                prop_oneof![0_u16..0x80, 0_u16..0x80, 0xD7F0_u16..0xE010, prop::num::u16::ANY], 0..200),
            ascii in 0_usize..100,
            odd in prop::option::of(prop::num::u8::ANY),
            step in 1_usize..90,
        ) {
            let units: Vec<u16> = std::iter::repeat_n(u16::from(b'a'), ascii).chain(units).collect();
            for encoding in [Encoding::Utf16Le, Encoding::Utf16Be] {
                let bytes = |unit: &u16| if encoding == Encoding::Utf16Le { unit.to_le_bytes() } else { unit.to_be_bytes() };
                let file: Vec<u8> = units.iter().flat_map(bytes).chain(odd).collect();
                let text = decoded(&file, encoding, step);
                prop_assert_eq!(encoding.source_text(&text), &file[..]);
                prop_assert_eq!(encoding.source_bytes(&text), file.len() as u64);
                prop_assert_eq!(&text, &decoded(&file, encoding, 1 << 20));
                if let (Ok(expected), None) = (String::from_utf16(&units), odd) {
                    prop_assert_eq!(text, expected.into_bytes());
                }
            }
        }
    }
}
