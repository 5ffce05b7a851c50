//! Qualified fields that are more than the text between their qualifiers.

use std::cell::RefCell;

use headrace_types::Rule;

use super::BadRows;
use crate::raw::fields::{Field, Text, Tile};
use crate::raw::memory::PADDING_BYTES;

/// Memory of the slab for texts whose doubled qualifiers are made single.
pub struct Unescaped<'a> {
    qualifier: u8,
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
    pub fn new(qualifier: u8, slab_offset: usize, bytes: &'a mut [u8]) -> Self {
        Unescaped { qualifier, slab_offset, memory: RefCell::new(Memory { bytes, used: 0 }) }
    }

    /// The part of the slab that holds texts: offset and length. Views refer to it.
    pub fn used(&self) -> (usize, usize) {
        (self.slab_offset, self.memory.borrow().used)
    }

    /// Whether the field holds a doubled qualifier.
    #[inline]
    pub fn concerns(&self, field: Field<'_>) -> bool {
        field.is_qualified && memchr::memchr(self.qualifier, field.bytes()).is_some()
    }

    /// Calls `take` with the text of a field and its place among the texts of the slab (below 2^32, as in the block); keeps the
    /// text if `take` does.
    pub fn keep<T>(&self, field: Field<'_>, take: impl FnOnce(&[u8], u32) -> Result<T, Rule>) -> Result<T, Rule> {
        let mut memory = self.memory.borrow_mut();
        let start = memory.used;
        let mut end = start;
        for byte in single(self.qualifier, field.bytes()) {
            // Fields do not overlap, so all of them together fit; a panic would be a defect of ours, and is reported as such.
            let place = &mut memory.bytes[end];
            *place = byte;
            end += 1;
        }
        let taken = take(&memory.bytes[start..end], start as u32);
        if taken.is_ok() {
            memory.used = end;
        }
        taken
    }

    /// Calls `take` with a field that holds the text of another. For values that are no texts: that one of them holds its
    /// qualifier (a date between hyphens) is so rare that its memory need not be recycled.
    #[inline(never)]
    pub fn convert<T>(&self, field: Field<'_>, take: impl FnOnce(Field<'_>) -> Result<T, Rule>) -> Result<T, Rule> {
        let mut padded = vec![0; PADDING_BYTES];
        padded.extend(single(self.qualifier, field.bytes()));
        let length = padded.len() - PADDING_BYTES;
        padded.resize(length + 2 * PADDING_BYTES, 0);
        let text = Text::new(&padded, length).ok_or(Rule::TextAfterQualifier)?;
        let mut field = Field::whole(text);
        field.is_qualified = true;
        take(field)
    }
}

/// The bytes of a text, of two qualifiers in a row only the first. One alone is of a field that is rejected for it.
fn single(qualifier: u8, text: &[u8]) -> impl Iterator<Item = u8> {
    let mut is_second = false;
    text.iter().copied().filter(move |&byte| {
        let keep = byte != qualifier || !is_second;
        is_second = byte == qualifier && !is_second;
        keep
    })
}

/// Rejects rows of a tile with text behind the closing qualifier of a field.
pub fn note_text_behind(tile: Tile<'_, '_>, qualifier: u8, column: usize, bad: &mut BadRows) {
    for row in 0..tile.rows() {
        let field = tile.field(row);
        let is_malformed = match field.is_qualified {
            true => has_single(qualifier, field.bytes()),
            false => field.bytes().first() == Some(&qualifier),
        };
        if is_malformed {
            bad.add(tile.first_row() + row, column, Rule::TextAfterQualifier);
        }
    }
}

/// Whether a qualifier stands alone: then it closed the field.
fn has_single(qualifier: u8, text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = memchr::memchr(qualifier, rest) {
        if rest.get(at + 1) != Some(&qualifier) {
            return true;
        }
        rest = &rest[at + 2..];
    }
    false
}
