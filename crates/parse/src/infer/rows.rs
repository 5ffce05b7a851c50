//! Rows of a sample, read by one dialect.

use std::borrow::Cow;
use std::ops::Range;

use headrace_types::{Layout, RowEnd};
use serde::{Deserialize, Serialize};

use crate::automaton::{Automaton, Event, START};

/// Fields of a row that are kept; a row of more has that many and one.
pub const MOST_FIELDS: usize = 20_000;
/// What is kept of a field, bytes: more than any name of a column has, which is 255 characters at most.
const KEPT_FIELD_BYTES: usize = 1024;

/// A dialect that the sample may have.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Between two fields; none: a row is one field.
    pub delimiter: Option<String>,
    /// What a field may stand between.
    pub qualifier: Option<char>,
    /// What makes the character behind it data.
    pub escape: Option<char>,
}

/// A field of a sample.
pub struct Field<'s> {
    pub text: Cow<'s, [u8]>,
    pub is_qualified: bool,
}

/// The beginnings of the fields of a row.
pub fn texts_of(row: &[Field<'_>]) -> Vec<String> {
    let kept = |text: &[u8]| String::from_utf8_lossy(&text[..KEPT_FIELD_BYTES.min(text.len())]).into_owned();
    row.iter().map(|field| kept(&field.text)).collect()
}

/// Takes the fields of a row, where it stands, and whether a qualifier is open behind it.
pub type TakeRow<'a> = dyn FnMut(&[Field<'_>], Range<usize>, bool) + 'a;

/// Reads samples by a dialect.
pub struct RowReader<'c> {
    candidate: &'c Candidate,
    /// What their bytes mean.
    pub automaton: Automaton,
    /// The last byte of a row end.
    pub end: u8,
}

impl<'c> RowReader<'c> {
    /// A reader of rows that end like this.
    ///
    /// # Errors
    /// Why the dialect means two things.
    pub fn new(candidate: &'c Candidate, row_end: &RowEnd) -> Result<Self, String> {
        let layout = Layout {
            // A delimiter that no text has: a row is one field.
            delimiter: candidate.delimiter.clone().unwrap_or_else(|| "\u{10FFFF}\u{10FFFE}".to_owned()),
            qualifier: candidate.qualifier,
            escape: candidate.escape,
            ..Layout::default()
        };
        let end = match row_end {
            RowEnd::Exactly(text) => text.as_bytes().last().copied().unwrap_or(b'\n'),
            _ => b'\n',
        };
        Ok(RowReader { candidate, automaton: Automaton::new(&layout, row_end)?, end })
    }

    /// Line ends, whatever they stand in: what a load counts that skips lines.
    pub fn line_ends(&self, text: &[u8]) -> u64 {
        memchr::memchr_iter(self.end, text).count() as u64
    }

    /// Calls `take` for each row. `is_whole`: the last one ends with the sample; otherwise what has no row end is left
    /// out.
    pub fn each_row(&self, sample: &[u8], is_whole: bool, take: &mut TakeRow<'_>) {
        let (mut state, mut row, mut begin, mut row_begin) = (START, Vec::new(), 0, 0);
        let (mut opened, mut rewritten) = (false, false);
        for (at, byte) in sample.iter().enumerate() {
            let step = self.automaton.step(state, *byte);
            state = step.state;
            match step.event {
                Event::Opened => opened = true,
                Event::Rewritten => rewritten = true,
                Event::Delimiter | Event::RowEnd => {
                    let text = &sample[begin..(at + 1).saturating_sub(step.length.into()).max(begin)];
                    if row.len() <= MOST_FIELDS {
                        row.push(self.field_of(text, opened, rewritten));
                    }
                    (begin, opened, rewritten) = (at + 1, false, false);
                    if step.event == Event::RowEnd {
                        take(&row, row_begin..at + 1, false);
                        row.clear();
                        row_begin = at + 1;
                    }
                }
                _ => {}
            }
        }
        if is_whole && (begin < sample.len() || !row.is_empty()) {
            if row.len() <= MOST_FIELDS {
                row.push(self.field_of(&sample[begin..], opened, rewritten));
            }
            let is_open = opened && self.automaton.step(state, self.end).event != Event::RowEnd;
            take(&row, row_begin..sample.len(), is_open);
        }
    }

    /// What a field says; as the parser reads it where it is written rightly.
    fn field_of<'s>(&self, text: &'s [u8], is_qualified: bool, is_rewritten: bool) -> Field<'s> {
        let single = |mark: Option<char>| mark.and_then(|mark| u8::try_from(mark).ok());
        let quote = single(self.candidate.qualifier).filter(|_| is_qualified);
        let inner = match quote {
            Some(quote) => {
                let behind = text.strip_prefix(&[quote]).unwrap_or(text);
                behind.strip_suffix(&[quote]).unwrap_or(behind)
            }
            None => text,
        };
        if !is_rewritten {
            return Field { text: Cow::Borrowed(inner), is_qualified };
        }
        let escape = single(self.candidate.escape);
        let mut bytes = inner.iter().copied();
        let mut own = Vec::with_capacity(inner.len());
        while let Some(byte) = bytes.next() {
            let is_mark = Some(byte) == escape || Some(byte) == quote;
            own.push(if is_mark { bytes.next().unwrap_or(byte) } else { byte });
        }
        Field { text: Cow::Owned(own), is_qualified }
    }
}
