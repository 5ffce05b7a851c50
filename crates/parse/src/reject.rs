//! A row that was not loaded.

use std::borrow::Cow;
use std::sync::Arc;

use headrace_types::{Encoding, Rule};

/// Longest value kept for messages, in bytes. The row itself is kept whole.
pub const MAX_VALUE_BYTES: usize = 1000;

/// A row that was not loaded: where it stands, which rule it broke, and its original bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    /// Line of the slice, from 0; header and blank lines count. The line of the file is known once all slices before it are.
    pub line: u64,
    /// First byte of the row in the file, from 0.
    pub row_byte: u64,
    /// First byte of the value in the file, from 0; the row's when no column is to blame.
    pub byte: u64,
    /// Column index in the layout, from 0; none when the row as a whole is to blame.
    pub column: Option<usize>,
    /// The rule.
    pub rule: Rule,
    /// The offending value as UTF-8, cut after about [`MAX_VALUE_BYTES`]; of a file in UTF-8 as it stands there.
    pub value: Vec<u8>,
    /// What was found, when the value alone does not say it ("15 fields").
    pub note: Option<String>,
    /// The whole row with its row end, as it stands in the file. Empty for a row longer than `max_row`.
    pub row: Vec<u8>,
    /// How rows of the file end, for a row that lacks its row end; nothing where none do.
    pub row_end: Cow<'static, [u8]>,
    /// The other values of the row that do not convert, in the layout's order, at most [`MOST_OTHER_VALUES`].
    pub also: Vec<OtherValue>,
    /// The first value of the row of which the layout says that the flow has to fail for it.
    pub fatal: Option<Box<BadValue>>,
    /// Of several destinations those that lack the row because of it, by number; none: all that would get it.
    pub lacking: Option<Arc<[usize]>>,
}

/// Values of a row that are told beside the first one.
pub const MOST_OTHER_VALUES: usize = 8;

/// Another value of a row that does not convert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherValue {
    /// Column index in the layout, from 0.
    pub column: usize,
    /// The rule.
    pub rule: Rule,
    /// First byte of the value in the file, from 0.
    pub byte: u64,
}

/// A value of a row, with the meanings that its members have in a [`Reject`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadValue {
    /// Column index in the layout, from 0.
    pub column: usize,
    /// The rule.
    pub rule: Rule,
    /// First byte of the value in the file, from 0.
    pub byte: u64,
    /// The value.
    pub value: Vec<u8>,
    /// What was found, when the value alone does not say it.
    pub note: Option<String>,
}

/// The value, cut to what messages show, and decoded.
pub fn shown(encoding: Encoding, value: &[u8]) -> Vec<u8> {
    let mut length = value.len().min(MAX_VALUE_BYTES);
    // Half a character of UTF-16 would be shown as bytes that the file does not have.
    while encoding.is_utf16() && length < value.len() && length > 0 && value[length] & 0xC0 == 0x80 {
        length -= 1;
    }
    let cut = &value[..length];
    if encoding.is_utf8() { cut.to_vec() } else { encoding.shown(cut).into_bytes() }
}
