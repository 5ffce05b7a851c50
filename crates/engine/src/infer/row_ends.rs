//! How the rows of a sample end.

use headrace_parse::infer::{Candidate, end_clearly};
use headrace_types::{CoreError, RowEnd};
use serde::Serialize;

use super::refuse_cancelled;

/// Where neither clearly end rows, so many times as many carriage returns as line feeds do.
const BY_FAR: u64 = 10;

/// Row ends of a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RowEndCounts {
    /// Line feeds alone.
    pub lf: u64,
    /// Carriage returns and line feeds.
    pub crlf: u64,
    /// Carriage returns alone.
    pub cr: u64,
}

impl RowEndCounts {
    /// Those of a sample, whatever they stand in.
    pub fn of(sample: &[u8]) -> Self {
        let mut counts = RowEndCounts::default();
        for (at, byte) in sample.iter().enumerate() {
            match byte {
                b'\n' if at > 0 && sample[at - 1] == b'\r' => counts.crlf += 1,
                b'\n' => counts.lf += 1,
                b'\r' if sample.get(at + 1) != Some(&b'\n') => counts.cr += 1,
                _ => {}
            }
        }
        counts
    }
}

/// How rows end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ending {
    /// Whether with carriage returns alone.
    pub is_cr: bool,
    /// Whether nothing speaks for the other row ends as much.
    pub is_clear: bool,
}

impl Ending {
    /// What is known.
    pub fn told(is_cr: bool) -> Self {
        Ending { is_cr, is_clear: true }
    }

    /// How the rows of a sample end, in which there are so many of each. Those that stand between qualifiers by one of
    /// the dialects are data. If that leaves both, rows end with line feeds, unless these are few.
    ///
    /// # Errors
    /// `Cancelled`.
    pub fn of(
        sample: &[u8],
        counts: RowEndCounts,
        candidates: &[&Candidate],
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Ending, CoreError> {
        let line_feeds = counts.lf + counts.crlf;
        if counts.cr == 0 || line_feeds == 0 {
            return Ok(Ending::told(counts.cr > 0));
        }
        for told in [false, true].map(Ending::told) {
            for candidate in candidates {
                refuse_cancelled(is_cancelled)?;
                if end_clearly(sample, candidate, &told.row_end()) {
                    return Ok(told);
                }
            }
        }
        Ok(Ending { is_cr: counts.cr > BY_FAR * line_feeds, is_clear: counts.cr <= line_feeds })
    }

    /// What rows end with.
    pub fn row_end(self) -> RowEnd {
        if self.is_cr { RowEnd::Exactly("\r".to_owned()) } else { RowEnd::Either }
    }

    /// Its last byte.
    pub fn byte(self) -> u8 {
        if self.is_cr { b'\r' } else { b'\n' }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_feed_in_a_value_is_no_row_end() {
        let candidates = [None, Some('"'), Some('\'')].map(|qualifier| Candidate {
            delimiter: Some(",".to_owned()),
            qualifier,
            escape: None,
        });
        let many = "1,2\r".repeat(11) + "3\n,4\r";
        for (text, is_cr, is_clear) in [
            ("", false, true),
            ("a,b\n1,2\n", false, true),
            ("a,b\r1,2\r", true, true),
            ("a,b\r1,\"2\n3\"\r4,5\r", true, true),
            ("a,b\n1,\"2\r\r\r3\"\n4,5\n", false, true),
            ("a,b\r\n1,\"2\r\r\r3\"\r\n4,5\r\n", false, true),
            ("a,b\n1,2\r3\n4,5\n", false, true),
            // Either by a qualifier of its own.
            ("\"1\r2\",'3\n4'", false, true),
            ("a,b\r1,2\n3\r4,5\r", false, false),
            (&many[..], true, false),
        ] {
            let counts = RowEndCounts::of(text.as_bytes());
            let found = Ending::of(text.as_bytes(), counts, &candidates.each_ref(), &mut || false).unwrap();
            assert_eq!(found, Ending { is_cr, is_clear }, "{}", text.escape_debug());
        }
        let cancelled = Ending::of(b"a\r\r\n", RowEndCounts::of(b"a\r\r\n"), &candidates.each_ref(), &mut || true);
        assert!(cancelled.is_err());
    }
}
