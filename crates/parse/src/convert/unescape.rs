//! Qualified fields that are more than the text between their qualifiers.

use std::cell::RefCell;

use headrace_types::Rule;

use super::BadRows;
use crate::raw::fields::{Field, Tile};

/// Memory of the slab for texts whose doubled qualifiers are made single.
pub struct Unescaped<'a> {
    qualifier: u8,
    /// Place of the memory in the slab.
    offset: u32,
    memory: RefCell<Memory<'a>>,
}

struct Memory<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl<'a> Unescaped<'a> {
    /// As many bytes as the block's text are enough: no text grows. `None` when 32 bits do not reach the end.
    pub fn new(qualifier: u8, offset: usize, bytes: &'a mut [u8]) -> Option<Self> {
        let end = u32::try_from(offset + bytes.len()).ok()?;
        let offset = end - bytes.len() as u32;
        Some(Unescaped { qualifier, offset, memory: RefCell::new(Memory { bytes, used: 0 }) })
    }

    /// Whether the field holds a doubled qualifier.
    #[inline]
    pub fn concerns(&self, field: Field<'_>) -> bool {
        field.is_qualified && memchr::memchr(self.qualifier, field.bytes()).is_some()
    }

    /// Calls `take` with the text of a field and its place in the slab; keeps the text if `take` does.
    pub fn with_text<T>(&self, field: Field<'_>, take: impl FnOnce(&[u8], u32) -> Result<T, Rule>) -> Result<T, Rule> {
        let mut memory = self.memory.borrow_mut();
        let start = memory.used;
        let mut end = start;
        let mut after_qualifier = false;
        for &byte in field.bytes() {
            // Of two in a row the second is the text; one alone is of a field that is rejected for it.
            after_qualifier = byte == self.qualifier && !after_qualifier;
            if after_qualifier {
                continue;
            }
            // Fields do not overlap, so all of them together fit.
            let Some(place) = memory.bytes.get_mut(end) else { return Err(Rule::TextAfterQualifier) };
            *place = byte;
            end += 1;
        }
        let taken = take(&memory.bytes[start..end], self.offset + start as u32);
        if taken.is_ok() {
            memory.used = end;
        }
        taken
    }
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
