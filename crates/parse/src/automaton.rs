//! What qualifiers mean, byte by byte: the plain automaton behind everything that looks for rows.
//!
//! A qualifier opens a field only as its first byte. Inside, delimiters and line feeds are data and a doubled qualifier is
//! one of the text. Behind the closing one stands a delimiter or the row end; anything else is text that does not belong
//! there (rule HR104), and the field goes on, unqualified, to the next delimiter or line feed. A carriage return needs no
//! state of its own: before a line feed or not, it leaves the qualified text, and the line feed ends the row.

use headrace_types::Layout;
use memchr::{memchr, memchr2};

/// Where in a row the scanner stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum State {
    /// Before the first byte of a row.
    #[default]
    RowStart,
    /// Before the first byte of another field.
    FieldStart,
    /// In a field without qualifier, or behind text that follows a closing one.
    Unqualified,
    /// Between the qualifiers of a field.
    Inside,
    /// Behind a qualifier that closed a field, unless the next byte is another one.
    BehindQualifier,
}

/// What a byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Data, or a qualifier.
    Nothing,
    /// A delimiter that ends a field.
    Delimiter,
    /// A line feed that ends a row.
    RowEnd,
}

/// Finds row ends in text that comes in pieces.
#[derive(Debug, Clone, Copy)]
pub struct RowScanner {
    delimiter: u8,
    qualifier: Option<u8>,
    state: State,
}

impl RowScanner {
    /// A scanner at the start of a row.
    pub fn new(delimiter: u8, qualifier: Option<u8>) -> Self {
        RowScanner { delimiter, qualifier, state: State::RowStart }
    }

    /// A scanner at the start of a row of a file of `layout`, which has been checked.
    pub fn of(layout: &Layout) -> Self {
        RowScanner::new(layout.delimiter as u8, layout.qualifier.map(|qualifier| qualifier as u8))
    }

    /// The same scanner at another place of a row.
    pub fn at(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    /// Where the scanner stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the next byte is the first of a row.
    pub fn at_row_start(&self) -> bool {
        self.state == State::RowStart
    }

    /// Whether a qualifier is open: at the end of the text it was never closed.
    pub fn inside_qualifier(&self) -> bool {
        self.state == State::Inside
    }

    /// Takes one byte.
    #[inline]
    pub fn step(&mut self, byte: u8) -> Event {
        let is_qualifier = self.qualifier == Some(byte);
        if self.state == State::Inside {
            if is_qualifier {
                self.state = State::BehindQualifier;
            }
            return Event::Nothing;
        }
        if is_qualifier {
            self.state = match self.state {
                State::Unqualified => State::Unqualified,
                // The first byte of a field; or the second qualifier of a doubled one.
                _ => State::Inside,
            };
            return Event::Nothing;
        }
        let (state, event) = match byte {
            b'\n' => (State::RowStart, Event::RowEnd),
            _ if byte == self.delimiter => (State::FieldStart, Event::Delimiter),
            _ => (State::Unqualified, Event::Nothing),
        };
        self.state = state;
        event
    }

    /// Takes bytes up to and with the line feed that ends the row; its place. `None` when the row goes on behind `bytes`.
    pub fn next_row_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let Some(qualifier) = self.qualifier else { return self.next_line_feed(bytes) };
        let mut at = 0;
        loop {
            let rest = bytes.get(at..)?;
            match self.state {
                State::Inside => {
                    let found = find(qualifier, rest)?;
                    at += found + 1;
                    self.state = State::BehindQualifier;
                    // From one qualified field to the next: where all are qualified and short, this is all there is to do.
                    if rest.get(found + 1) == Some(&self.delimiter) && rest.get(found + 2) == Some(&qualifier) {
                        at += 2;
                        self.state = State::Inside;
                    }
                }
                // Only qualifiers and line feeds matter: whether a qualifier opens a field is seen by the byte before it.
                State::Unqualified => match memchr2(qualifier, b'\n', rest) {
                    Some(found) if rest[found] == b'\n' => {
                        self.state = State::RowStart;
                        return Some(at + found);
                    }
                    Some(found) => {
                        if found > 0 && rest[found - 1] == self.delimiter {
                            self.state = State::Inside;
                        }
                        at += found + 1;
                    }
                    None => {
                        if rest.last() == Some(&self.delimiter) {
                            self.state = State::FieldStart;
                        }
                        return None;
                    }
                },
                State::RowStart | State::FieldStart | State::BehindQualifier => {
                    if self.step(*rest.first()?) == Event::RowEnd {
                        return Some(at);
                    }
                    at += 1;
                }
            }
        }
    }

    /// The same without a qualifier.
    fn next_line_feed(&mut self, bytes: &[u8]) -> Option<usize> {
        let found = memchr(b'\n', bytes);
        self.state = match (found, bytes.last()) {
            (Some(_), _) => State::RowStart,
            (None, Some(&last)) if last == self.delimiter => State::FieldStart,
            (None, Some(_)) => State::Unqualified,
            (None, None) => self.state,
        };
        found
    }
}

/// Place of the first `byte`. The first word is looked at here: most qualified fields are shorter than a call pays for.
#[inline]
fn find(byte: u8, bytes: &[u8]) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let Some((first, rest)) = bytes.split_first_chunk::<8>() else { return memchr(byte, bytes) };
    let difference = u64::from_le_bytes(*first) ^ (LOW * u64::from(byte));
    // The lowest bit set is that of the first zero byte; a borrow can only set bits above it.
    let equal = difference.wrapping_sub(LOW) & !difference & (LOW << 7);
    if equal != 0 { Some(equal.trailing_zeros() as usize / 8) } else { memchr(byte, rest).map(|found| found + 8) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row_ends(scanner: &mut RowScanner, bytes: &[u8]) -> Vec<usize> {
        let (mut ends, mut at) = (vec![], 0);
        while let Some(found) = scanner.next_row_end(&bytes[at..]) {
            assert!(scanner.at_row_start());
            ends.push(at + found);
            at += found + 1;
        }
        ends
    }

    fn check(text: &[u8], ends: &[usize], last: State) {
        let mut scanner = RowScanner::new(b',', Some(b'"'));
        assert_eq!(row_ends(&mut scanner, text), ends, "{}", text.escape_ascii());
        assert_eq!(scanner.state(), last, "{}", text.escape_ascii());
    }

    #[test]
    fn qualifiers_hide_delimiters_and_line_feeds() {
        check(b"a,b\nc\n", &[3, 5], State::RowStart);
        check(b"\"a\nb\",c\nd", &[7], State::Unqualified);
        check(b"a,\"b\n\"\n", &[6], State::RowStart);
        check(b"\"a\"\"\nb\"\n", &[7], State::RowStart);
        check(b"\"\"\n\"\"\"\n\"\n", &[2, 8], State::RowStart);
        check(b"\"\n", &[], State::Inside);
        check(b"\"a\"", &[], State::BehindQualifier);
        check(b"a,", &[], State::FieldStart);
    }

    #[test]
    fn a_qualifier_inside_an_unqualified_field_is_data() {
        check(b"3\" x 5\"\n\"\n", &[7], State::Inside);
        check(b" \"a\n\"\n", &[3], State::Inside);
        check(b"a\",\"\n\"\n", &[6], State::RowStart);
    }

    #[test]
    fn behind_a_closing_qualifier_text_goes_on_unqualified() {
        check(b"\"a\"b\n", &[4], State::RowStart);
        check(b"\"a\"b\"\n\"\n", &[5], State::Inside);
        check(b"\"a\" \"b\n\"\n", &[6], State::Inside);
        check(b"\"a\"b,\"\n\"\n", &[8], State::RowStart);
        check(b"\"a\"\r\n\"b\"\r\"\n", &[4, 10], State::RowStart);
    }

    #[test]
    fn without_a_qualifier_every_line_feed_ends_a_row() {
        let mut scanner = RowScanner::new(b'|', None);
        assert_eq!(row_ends(&mut scanner, b"\"a\nb|\"\n|"), [2, 6]);
        assert_eq!(scanner.state(), State::FieldStart);
        assert_eq!((scanner.next_row_end(b""), scanner.state()), (None, State::FieldStart));
        assert_eq!((scanner.next_row_end(b"\""), scanner.inside_qualifier()), (None, false));
    }

    #[test]
    fn steps_tell_delimiters_and_row_ends_from_data() {
        use Event::{Delimiter, Nothing, RowEnd};
        let mut scanner = RowScanner::new(b',', Some(b'"'));
        let events: Vec<Event> = b"\",\",\"\"\na,\n".iter().map(|&byte| scanner.step(byte)).collect();
        assert_eq!(
            events,
            [Nothing, Nothing, Nothing, Delimiter, Nothing, Nothing, RowEnd, Nothing, Delimiter, RowEnd]
        );
        assert_eq!(RowScanner::new(b',', Some(b'"')).at(State::Inside).step(b','), Nothing);
    }

    proptest! {
        #[test]
        fn skipping_equals_stepping_however_the_text_is_cut(
            bytes in prop::collection::vec(prop::sample::select(b"\"\"\",,\n\nab\r ".to_vec()), 0..300),
            pieces in prop::collection::vec(0_usize..40, 1..8),
            qualifier in prop::sample::select(vec![Some(b'"'), Some(b'b'), None]),
        ) {
            let mut stepping = RowScanner::new(b',', qualifier);
            let mut skipping = stepping;
            let mut rest = bytes.as_slice();
            for piece in pieces.into_iter().chain([bytes.len()]) {
                let (piece, behind) = rest.split_at(piece.min(rest.len()));
                let ends: Vec<usize> =
                    (0..piece.len()).filter(|&at| stepping.step(piece[at]) == Event::RowEnd).collect();
                prop_assert_eq!(row_ends(&mut skipping, piece), ends);
                prop_assert_eq!(skipping.state(), stepping.state());
                rest = behind;
            }
        }
    }
}
