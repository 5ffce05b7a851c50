//! Row ends of a text that comes in pieces.

use std::sync::Arc;

use headrace_types::{Layout, RowEnd};

use super::{Automaton, Mode, START};

/// Finds row ends in text that comes in pieces.
#[derive(Debug, Clone)]
pub struct RowScanner {
    automaton: Arc<Automaton>,
    pub(super) state: u32,
    /// Bytes of a row without row end.
    row_bytes: Option<usize>,
    /// Those of the present row that were taken.
    taken: usize,
}

impl RowScanner {
    /// A scanner at the start of a row of a file.
    ///
    /// # Errors
    /// As [`Automaton::new`].
    pub fn new(layout: &Layout, row_end: &RowEnd) -> Result<Self, String> {
        let row_bytes = if let RowEnd::Every(bytes) = row_end { Some(*bytes as usize) } else { None };
        let automaton = Arc::new(Automaton::of_rows(layout, row_end)?);
        Ok(RowScanner { automaton, state: START, row_bytes, taken: 0 })
    }

    /// Whether a qualifier is open: at the end of the text it was never closed.
    pub fn inside_qualifier(&self) -> bool {
        self.automaton.is_inside(self.state)
    }

    /// Whether a qualifier is open, or the last byte was an escape: at the end of the text that never ends.
    pub fn is_open(&self) -> bool {
        let is_escaped = self.automaton.mode(self.state) == Mode::Escaped && !self.automaton.is_partial(self.state);
        self.inside_qualifier() || is_escaped
    }

    /// Takes bytes up to and with the last one of a row end; its place. `None` when the row goes on behind `bytes`.
    pub fn next_row_end(&mut self, bytes: &[u8]) -> Option<usize> {
        if let Some(row_bytes) = self.row_bytes {
            let left = row_bytes.saturating_sub(self.taken).max(1);
            let ends = bytes.len() >= left;
            self.taken = if ends { 0 } else { self.taken + bytes.len() };
            return ends.then(|| left - 1);
        }
        let (state, found) = self.automaton.next_row_end(self.state, bytes);
        self.state = state;
        found
    }
}
