//! Where the qualifier has opened that is open at the end of a row that is too long to be held.

use headrace_parse::{Automaton, Event, Mode, START};
use headrace_types::Encoding;

use crate::last_row_end::FOUND_BYTES;

/// Follows a row that comes in parts.
pub struct Opening {
    automaton: Automaton,
    state: u32,
    encoding: Encoding,
    /// Bytes of the source, and fields, before the next byte.
    bytes: u64,
    fields: usize,
    last: Option<Opened>,
}

/// A qualifier that has opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Bytes of the source before it, in its row.
    pub byte: u64,
    /// Its field, from 0.
    pub field: usize,
    /// What stands there, cut.
    pub text: Vec<u8>,
}

impl Opening {
    /// At the start of a row, with all that the automaton knows of its fields.
    pub fn new(automaton: Automaton, encoding: Encoding) -> Self {
        Opening { automaton, state: START, encoding, bytes: 0, fields: 0, last: None }
    }

    /// Takes the next part of the row.
    pub fn push(&mut self, part: &[u8]) {
        let mut counted = 0;
        for (at, &byte) in part.iter().enumerate() {
            let step = self.automaton.step(self.state, byte);
            self.state = step.state;
            match step.event {
                Event::Opened => {
                    self.bytes += self.encoding.source_bytes(&part[counted..at]);
                    counted = at;
                    self.last = Some(Opened { byte: self.bytes, field: self.fields, text: Vec::new() });
                }
                Event::Delimiter => self.fields += 1,
                _ => {}
            }
            if let Some(Opened { text, .. }) = self.last.as_mut().filter(|last| last.text.len() < FOUND_BYTES) {
                text.push(byte);
            }
        }
        self.bytes += self.encoding.source_bytes(&part[counted..]);
    }

    /// The one that is open behind all parts.
    pub fn open(self) -> Option<Opened> {
        self.last.filter(|_| matches!(self.automaton.mode(self.state), Mode::Inside | Mode::EscapedInside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headrace_types::{Layout, RowEnd};

    fn open(parts: &[&str], encoding: Encoding) -> Option<Opened> {
        let layout = Layout { delimiter: ";".to_owned(), qualifier: Some('"'), ..Layout::default() };
        let mut opening = Opening::new(Automaton::new(&layout, &RowEnd::Lf).unwrap(), encoding);
        parts.iter().for_each(|part| opening.push(part.as_bytes()));
        opening.open()
    }

    #[test]
    fn the_qualifier_that_is_never_closed() {
        let text = "x;\"closed\";é;\"open \"\" to the end\n";
        let opened = |byte| Some(Opened { byte, field: 3, text: text.as_bytes()[14..].to_vec() });
        for cut in (0..text.len()).filter(|&cut| text.is_char_boundary(cut)) {
            let parts = [&text[..cut], &text[cut..]];
            assert_eq!(open(&parts, Encoding::Utf8), opened(14));
            assert_eq!(open(&parts, Encoding::Utf16Le), opened(26));
        }
        assert_eq!(open(&["a;\"b\";", "c"], Encoding::Utf8), None);
        let long = "\"".to_owned() + &"x".repeat(2 * FOUND_BYTES);
        assert_eq!(open(&[&long], Encoding::Utf8).unwrap().text.len(), FOUND_BYTES);
    }
}
