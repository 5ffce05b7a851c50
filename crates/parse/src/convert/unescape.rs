//! Fields whose text is not what stands in the file: doubled qualifiers, escapes, bytes of other encodings.

use std::cell::{Cell, RefCell};

use headrace_types::{Encoding, EscapeCodes, Page, Piece, Rule, StrayQualifiers, Unmappable};

use super::BadRows;
use crate::raw::fields::{Field, STRAY, TEXT_BEHIND, Text, Tile};
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
    /// What bytes above 0x7F mean.
    pub encoding: Encoding,
    /// What becomes of those that mean nothing.
    pub unmappable: Unmappable,
}

/// By how much a byte above 0x7F grows at most: to three bytes.
pub const MOST_GROWTH_BYTES: usize = 2;
/// What a byte without a character becomes.
const REPLACEMENT: &[u8; 3] = b"\xEF\xBF\xBD";

impl Rewriting {
    /// Whether the text may hold bytes that do not stand in the file: NUL, and what is no UTF-8.
    pub fn makes_bytes(&self) -> bool {
        self.escape.is_some() && self.codes != EscapeCodes::None
    }

    /// Hands over the bytes of a field's text, never more than the field has.
    #[inline(always)]
    pub fn bytes(&self, field: Field<'_>, mut put: impl FnMut(u8)) {
        if !field.is_escaped() {
            return field.bytes().iter().for_each(|byte| put(*byte));
        }
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

    /// Writes the UTF-8 of a field's text to the front of `into`, which is long enough: its length, and the characters that were
    /// replaced.
    fn text(&self, field: Field<'_>, into: &mut [u8]) -> Result<(usize, u64), Rule> {
        match self.encoding {
            Encoding::Page(page) => self.text_of_page(page, field, into),
            encoding if self.is_checked(field) => self.text_of_unicode(encoding, field, into),
            _ => {
                let mut end = 0;
                self.bytes(field, |byte| {
                    into[end] = byte;
                    end += 1;
                });
                Ok((end, 0))
            }
        }
    }

    /// Whether a field may hold what is no character, and nobody else looks for that.
    fn is_checked(&self, field: Field<'_>) -> bool {
        let is_other = self.encoding.is_utf16() || self.unmappable == Unmappable::Replace;
        is_other && (field.is_decoded() || self.makes_bytes())
    }

    #[inline(always)]
    fn text_of_page(&self, page: &Page, field: Field<'_>, into: &mut [u8]) -> Result<(usize, u64), Rule> {
        let (mut end, mut holes) = (0, 0);
        self.bytes(field, |byte| {
            if byte < 0x80 {
                into[end] = byte;
                end += 1;
                return;
            }
            let (bytes, length) = page.character(byte);
            let is_hole = length == 0;
            let (bytes, length) = if is_hole { (*REPLACEMENT, 3) } else { (bytes, length) };
            into[end..end + 3].copy_from_slice(&bytes);
            end += usize::from(length);
            holes += u64::from(is_hole);
        });
        self.allowed(end, holes)
    }

    /// Rare: only what is no valid UTF-8 comes here, or is escaped.
    #[inline(never)]
    fn text_of_unicode(&self, encoding: Encoding, field: Field<'_>, into: &mut [u8]) -> Result<(usize, u64), Rule> {
        let mut bytes = Vec::with_capacity(field.len());
        self.bytes(field, |byte| bytes.push(byte));
        let (mut end, mut holes) = (0, 0);
        encoding.decode(&bytes, |piece| {
            let text = match piece {
                Piece::Text(text) => text,
                Piece::Unmappable(_) => {
                    holes += 1;
                    REPLACEMENT
                }
            };
            into[end..end + text.len()].copy_from_slice(text);
            end += text.len();
        });
        self.allowed(end, holes)
    }

    fn allowed(&self, length: usize, holes: u64) -> Result<(usize, u64), Rule> {
        if holes > 0 && self.unmappable == Unmappable::Reject { Err(Rule::Unmappable) } else { Ok((length, holes)) }
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
    /// Characters that were replaced since somebody asked.
    replaced: Cell<u64>,
}

struct Memory<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl<'a> Unescaped<'a> {
    /// `bytes` are as many as those of the block (a field that closes its qualifier too early keeps the rest, so that nothing can
    /// be taken off for qualifiers), [`MOST_GROWTH_BYTES`] more for each that is decoded, and a few for the last one.
    /// `slab_offset` is their place in the slab.
    pub fn new(rewriting: Rewriting, slab_offset: usize, bytes: &'a mut [u8]) -> Self {
        Unescaped { rewriting, slab_offset, memory: RefCell::new(Memory { bytes, used: 0 }), replaced: Cell::new(0) }
    }

    /// The part of the slab that holds texts: offset and length. Views refer to it.
    pub fn used(&self) -> (usize, usize) {
        (self.slab_offset, self.memory.borrow().used)
    }

    /// Characters that were replaced since this was asked last.
    pub fn take_replaced(&self) -> u64 {
        self.replaced.take()
    }

    /// Does something of which nothing that is replaced is counted.
    pub fn uncounted<T>(&self, take: impl FnOnce() -> T) -> T {
        let replaced = self.replaced.get();
        let taken = take();
        self.replaced.set(replaced);
        taken
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
        // Fields do not overlap, so all of them together fit; a panic would be a defect of ours, and is reported as such.
        let (length, replaced) = self.rewriting.text(field, &mut memory.bytes[start..])?;
        self.replaced.set(self.replaced.get() + replaced);
        let end = start + length;
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
        let most_bytes = (1 + MOST_GROWTH_BYTES) * field.len();
        let mut padded = vec![0; most_bytes + 2 * PADDING_BYTES];
        let (length, replaced) = self.rewriting.text(field, &mut padded[PADDING_BYTES..])?;
        self.replaced.set(self.replaced.get() + replaced);
        padded.truncate(length + 2 * PADDING_BYTES);
        padded[PADDING_BYTES + length..].fill(0);
        let text = Text::new(&padded, length).ok_or(Rule::TextAfterQualifier)?;
        take(Field::whole(text).qualified(field.is_qualified()))
    }
}

/// Rejects the rows of a tile whose field has stray qualifiers, or counts these fields if they are taken as data.
pub fn note_stray(tile: Tile<'_, '_>, column: usize, stray: StrayQualifiers, bad: &mut BadRows) -> u64 {
    let mut taken = 0;
    for (row, flags) in tile.flags().iter().enumerate() {
        let rule = match flags & (TEXT_BEHIND | STRAY) {
            0 => continue,
            STRAY => Rule::StrayQualifier,
            _ => Rule::TextAfterQualifier,
        };
        match stray {
            StrayQualifiers::Reject => bad.add(tile.first_row() + row, column, rule, false),
            StrayQualifiers::Keep | StrayQualifiers::Lenient => taken += 1,
        }
    }
    taken
}
