//! Fields whose text is not what stands in the file: doubled qualifiers, escapes.

use std::cell::RefCell;

use headrace_types::{EscapeCodes, Rule};

use super::BadRows;
use crate::raw::fields::{Field, TEXT_BEHIND, Text, Tile};
use crate::raw::memory::PADDING_BYTES;

/// How the text of a field is made from what stands there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rewriting {
    /// Stands doubled between qualifiers.
    pub qualifier: Option<u8>,
    /// Makes the byte behind it data.
    pub escape: Option<u8>,
    /// What letters behind an escape mean.
    pub codes: EscapeCodes,
}

impl Rewriting {
    /// Whether the text may hold bytes that do not stand in the file: NUL, and what is no UTF-8.
    pub fn makes_bytes(&self) -> bool {
        self.escape.is_some() && self.codes != EscapeCodes::None
    }

    /// Hands over the bytes of a field's text, never more than the field has.
    fn bytes(&self, field: Field<'_>, mut put: impl FnMut(u8)) {
        let qualifier = self.qualifier.filter(|_| field.is_qualified());
        let mut rest = field.bytes();
        while let [byte, behind @ ..] = rest {
            rest = behind;
            match behind.first() {
                Some(_) if Some(*byte) == self.escape => {
                    let (meant, used) = self.escaped(behind);
                    put(meant);
                    rest = &behind[used..];
                }
                Some(second) if Some(*byte) == qualifier && second == byte => {
                    put(*byte);
                    rest = &behind[1..];
                }
                _ => put(*byte),
            }
        }
    }

    /// The byte that is meant by those behind an escape, and how many they are. `behind` is not empty.
    ///
    /// The letters: MySQL's manual, "String Literals" and "LOAD DATA"; PostgreSQL's, COPY, "Text Format".
    fn escaped(&self, behind: &[u8]) -> (u8, usize) {
        let is_octal = |byte: &&u8| matches!(byte, b'0'..=b'7');
        let meant = match (self.codes, behind[0]) {
            (EscapeCodes::Postgres, b'0'..=b'7') => {
                let digits = behind.iter().take(3).take_while(is_octal);
                let (value, count) =
                    digits.fold((0_u32, 0), |(value, count), digit| (value * 8 + u32::from(digit - b'0'), count + 1));
                return (value as u8, count);
            }
            (EscapeCodes::Postgres, b'x') => {
                let digits = behind[1..].iter().take(2).map_while(|&byte| char::from(byte).to_digit(16));
                return match digits.fold((0, 0), |(value, count), digit| (value * 16 + digit, count + 1)) {
                    (_, 0) => (b'x', 1),
                    (value, count) => (value as u8, count + 1),
                };
            }
            (EscapeCodes::Mysql, b'0') => 0,
            (EscapeCodes::Mysql, b'Z') => 0x1A,
            (EscapeCodes::Postgres, b'f') => 0x0C,
            (EscapeCodes::Postgres, b'v') => 0x0B,
            (EscapeCodes::Mysql | EscapeCodes::Postgres, b'b') => 0x08,
            (EscapeCodes::Mysql | EscapeCodes::Postgres, b'n') => b'\n',
            (EscapeCodes::Mysql | EscapeCodes::Postgres, b'r') => b'\r',
            (EscapeCodes::Mysql | EscapeCodes::Postgres, b't') => b'\t',
            (_, itself) => itself,
        };
        (meant, 1)
    }
}

/// Memory of the slab for texts that are rewritten.
pub struct Unescaped<'a> {
    rewriting: Rewriting,
    /// Place of the memory in the slab.
    slab_offset: usize,
    memory: RefCell<Memory<'a>>,
}

struct Memory<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl<'a> Unescaped<'a> {
    /// `bytes` are as many as those of the block: a field that closes its qualifier too early keeps the rest, so that nothing can
    /// be taken off for qualifiers. `slab_offset` is their place in the slab.
    pub fn new(rewriting: Rewriting, slab_offset: usize, bytes: &'a mut [u8]) -> Self {
        Unescaped { rewriting, slab_offset, memory: RefCell::new(Memory { bytes, used: 0 }) }
    }

    /// The part of the slab that holds texts: offset and length. Views refer to it.
    pub fn used(&self) -> (usize, usize) {
        (self.slab_offset, self.memory.borrow().used)
    }

    /// Whether rewritten texts may hold NUL or bytes that are not UTF-8 although the block holds none.
    pub fn makes_bytes(&self) -> bool {
        self.rewriting.makes_bytes()
    }

    /// Calls `take` with the text of a field and its place among the texts of the slab (below 2^32, as in the block); keeps the
    /// text if `take` does.
    pub fn keep<T>(&self, field: Field<'_>, take: impl FnOnce(&[u8], u32) -> Result<T, Rule>) -> Result<T, Rule> {
        let mut memory = self.memory.borrow_mut();
        let start = memory.used;
        let mut end = start;
        self.rewriting.bytes(field, |byte| {
            // Fields do not overlap, so all of them together fit; a panic would be a defect of ours, and is reported as such.
            memory.bytes[end] = byte;
            end += 1;
        });
        let taken = take(&memory.bytes[start..end], start as u32);
        if taken.is_ok() {
            memory.used = end;
        }
        taken
    }

    /// Calls `take` with a field that holds the text of another. For values that are no texts: that one of them is rewritten
    /// (a date between hyphens) is so rare that its memory need not be recycled.
    #[inline(never)]
    pub fn convert<T>(&self, field: Field<'_>, take: impl FnOnce(Field<'_>) -> Result<T, Rule>) -> Result<T, Rule> {
        let mut padded = vec![0; PADDING_BYTES];
        self.rewriting.bytes(field, |byte| padded.push(byte));
        let length = padded.len() - PADDING_BYTES;
        padded.resize(length + 2 * PADDING_BYTES, 0);
        let text = Text::new(&padded, length).ok_or(Rule::TextAfterQualifier)?;
        take(Field::whole(text).qualified(field.is_qualified()))
    }
}

/// Rejects rows of a tile with text behind the closing qualifier of a field.
pub fn note_text_behind(tile: Tile<'_, '_>, column: usize, bad: &mut BadRows) {
    for (row, flags) in tile.flags().iter().enumerate() {
        if flags & TEXT_BEHIND != 0 {
            bad.add(tile.first_row() + row, column, Rule::TextAfterQualifier);
        }
    }
}
