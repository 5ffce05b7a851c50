//! What stands in a sample before the first row of the commonest number of fields.

use std::borrow::Cow;

use serde::Serialize;

use super::rows::{Field, texts_of};

/// Rows that are told.
const FIRST_ROWS: usize = 3;
/// What is kept of the beginnings of rows, bytes: more than a mark of comments has.
const BEGIN_BYTES: usize = 8;

/// Rows before the first one of the commonest number of fields: titles, settings, comments, a header. There may be as
/// many as a sample has lines, so that only a few are told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Front {
    /// How many.
    pub rows: u64,
    /// Fields of the first of them.
    pub first: Vec<Vec<String>>,
    /// Fields of the last of them.
    pub last: Vec<String>,
    /// Line ends before that one.
    pub last_line: u64,
    /// What all of them begin with, cut.
    pub begin: String,
}

impl Front {
    /// Takes the next of the rows. The last one is for the caller to tell, who alone knows that it is the last.
    pub(super) fn add(&mut self, row: &[Field<'_>]) {
        let begin = row.first().map_or(Cow::Borrowed(""), |field| {
            String::from_utf8_lossy(&field.text[..BEGIN_BYTES.min(field.text.len())])
        });
        if self.rows == 0 {
            self.begin = begin.into_owned();
        } else {
            let alike = std::iter::zip(self.begin.chars(), begin.chars()).take_while(|(one, other)| one == other);
            let bytes: usize = alike.map(|(one, _)| one.len_utf8()).sum();
            self.begin.truncate(bytes);
        }
        if self.first.len() < FIRST_ROWS {
            self.first.push(texts_of(row));
        }
        self.rows += 1;
    }
}
