//! How rows end where both line feeds and carriage returns alone stand in a sample.

use headrace_types::RowEnd;

use super::rows::{Candidate, RowReader};
use crate::automaton::{Event, START};

/// Whether the rows of a sample clearly end so, by one dialect: some of them do, and what ends rows of other files, a
/// line feed or a carriage return alone, stands between qualifiers or behind escapes only.
pub fn end_clearly(sample: &[u8], candidate: &Candidate, row_end: &RowEnd) -> bool {
    let Ok(reader) = RowReader::new(candidate, row_end) else { return false };
    // Of a carriage return at the end of a sample nobody knows what stands behind it.
    let is_alone = |at: usize| sample.get(at + 1).is_some_and(|next| *next != b'\n');
    let is_other = |at: usize, byte: u8| match reader.end {
        b'\n' => byte == b'\r' && is_alone(at),
        _ => byte == b'\n',
    };
    let (mut state, mut rows) = (START, 0_u64);
    for (at, byte) in sample.iter().enumerate() {
        // It is data only where a row end would be, too.
        if is_other(at, *byte) && reader.automaton.step(state, reader.end).event == Event::RowEnd {
            return false;
        }
        let step = reader.automaton.step(state, *byte);
        state = step.state;
        rows += u64::from(step.event == Event::RowEnd);
    }
    rows > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether rows clearly end with line feeds, and with carriage returns.
    fn clear(text: &str, qualifier: Option<char>) -> (bool, bool) {
        let candidate = Candidate { delimiter: Some(",".to_owned()), qualifier, escape: None };
        let by = |row_end: &RowEnd| end_clearly(text.as_bytes(), &candidate, row_end);
        (by(&RowEnd::Either), by(&RowEnd::Exactly("\r".to_owned())))
    }

    #[test]
    fn what_stands_between_qualifiers_ends_no_row() {
        for (text, expected) in [
            ("1,a\r2,\"b\nc\"\r", (false, true)),
            ("1,a\r2,\"b\r\nc\"\r", (false, true)),
            ("1,a\n2,\"b\rc\"\n", (true, false)),
            ("1,a\r\n2,\"b\rc\"\r\n", (true, false)),
            // The sample is cut between the two, or within a qualifier.
            ("1,a\r\n2,b\r", (true, false)),
            ("1,a\r2,\"b\n", (false, true)),
            // Neither stands where it is data.
            ("1,a\r2,b\nc\r", (false, false)),
            ("1,a\n2,b\rc\n", (false, false)),
            ("1,\"a\"\r\n2,\"b\"\r3,\"c\"\n", (false, false)),
            // No row ends.
            ("\"a\nb\rc", (false, false)),
            ("", (false, false)),
        ] {
            assert_eq!(clear(text, Some('"')), expected, "{}", text.escape_debug());
        }
        assert_eq!(clear("1,a\r2,\"b\nc\"\r", None), (false, false));
        assert_eq!(clear("1,a\n2,\"b\rc\"\n", None), (false, false));
    }

    #[test]
    fn an_escape_makes_data_of_a_row_end() {
        let candidate = Candidate { delimiter: Some(",".to_owned()), qualifier: None, escape: Some('\\') };
        let exactly = RowEnd::Exactly("\r".to_owned());
        assert!(end_clearly(b"1,a\r2,b\\\nc\r", &candidate, &exactly));
        assert!(!end_clearly(b"1,a\r2,b\nc\r", &candidate, &exactly));
    }
}
