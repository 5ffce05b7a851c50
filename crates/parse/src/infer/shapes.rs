//! Shapes of a sample's rows by one dialect: how many fields they have, and what these are.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use headrace_types::{Layout, RowEnd};
use serde::{Deserialize, Serialize};

use super::class::{Class, seen};
use crate::automaton::{Automaton, Event, START};

/// Rows whose fields are told.
const HEAD_ROWS: usize = 30;
/// Rows at the front and at the end whose shapes are told.
const SHAPES: usize = 200;
/// Fields of a row that are kept; a row of more has that many and one.
const MOST_FIELDS: usize = 20_000;
/// What is kept of a field, bytes.
const KEPT_FIELD_BYTES: usize = 200;

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

/// A sample, read by one dialect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SampleShape {
    /// Rows that are not blank.
    pub rows: u64,
    /// How many rows have so many fields.
    pub fields: BTreeMap<usize, u64>,
    /// Fields of the first rows.
    pub head: Vec<Vec<String>>,
    /// Line feeds before each of these rows.
    pub head_lines: Vec<u64>,
    /// Numbers of fields of the first rows.
    pub head_shape: Vec<usize>,
    /// The same of the last rows.
    pub tail_shape: Vec<usize>,
    /// Fields of the last rows.
    pub tail: Vec<Vec<String>>,
    /// Fields that stand between qualifiers.
    pub qualified: u64,
    /// Fields with text behind a closing qualifier.
    pub text_behind: u64,
    /// Whether a qualifier was open at the end.
    pub is_open: bool,
    /// Of the rows of the commonest number of fields, but for the first of them: what the fields of each column are.
    pub classes: Vec<BTreeMap<&'static str, u64>>,
    /// The same rows: how many fields of each column say what the first row of that number of fields says.
    pub repeats: Vec<u64>,
    /// The same rows: how many fields of each column are empty.
    pub empty: Vec<u64>,
    /// Whether the last row ends with the file, without a row end.
    pub is_unended: bool,
    /// Blank rows.
    pub blank: u64,
    /// Bytes of all rows, but for the first of the commonest number of fields.
    pub bytes: u64,
    /// Bytes of these in fields that are texts, and in rows of another number of fields: what the dialect leaves
    /// unexplained.
    pub text_bytes: u64,
}

/// A field of a sample.
struct Field<'s> {
    text: Cow<'s, [u8]>,
    is_qualified: bool,
}

/// Reads a sample of text, in UTF-8 as far as it is. `is_whole`: its last row ends with it; otherwise that row is left out.
///
/// # Errors
/// Why the dialect means two things.
pub fn shape_of(sample: &[u8], candidate: &Candidate, row_end: &RowEnd, is_whole: bool) -> Result<SampleShape, String> {
    let layout = Layout {
        // A delimiter that no text has: a row is one field.
        delimiter: candidate.delimiter.clone().unwrap_or_else(|| "\u{10FFFF}\u{10FFFE}".to_owned()),
        qualifier: candidate.qualifier,
        escape: candidate.escape,
        ..Layout::default()
    };
    let automaton = Automaton::new(&layout, row_end)?;
    let counts = count_fields(&automaton, sample, is_whole);
    let (common, rows) = (commonest(&counts), counts.values().sum::<u64>());
    let mut shape = SampleShape::default();
    let mut counted = vec![[0_u64; Class::ALL.len()]; common];
    shape.empty = vec![0; common];
    shape.repeats = vec![0; common];
    let mut first: Option<Vec<Vec<u8>>> = None;
    let (mut lines, mut lines_at) = (0, 0);
    each_row(&automaton, candidate, sample, is_whole, &mut |row, place, open| {
        if let [field] = row
            && field.text.is_empty()
            && !field.is_qualified
        {
            shape.blank += 1;
            return;
        }
        shape.rows += 1;
        *shape.fields.entry(row.len()).or_default() += 1;
        shape.qualified += row.iter().filter(|field| field.is_qualified).count() as u64;
        shape.is_open = open;
        if shape.head_shape.len() < SHAPES {
            shape.head_shape.push(row.len());
        }
        let texts = || row.iter().map(|field| text_of(&field.text)).collect::<Vec<String>>();
        if shape.head.len() < HEAD_ROWS {
            shape.head.push(texts());
            lines += sample[lines_at..place.start].iter().filter(|byte| **byte == b'\n').count() as u64;
            lines_at = place.start;
            shape.head_lines.push(lines);
        }
        if shape.rows + HEAD_ROWS as u64 > rows {
            shape.tail_shape.push(row.len());
            shape.tail.push(texts());
        }
        if row.len() != common {
            shape.bytes += place.len() as u64;
            shape.text_bytes += place.len() as u64;
            return;
        }
        let Some(first) = &first else {
            first = Some(row.iter().map(|field| field.text.to_vec()).collect());
            return;
        };
        shape.bytes += place.len() as u64;
        for (place, field) in row.iter().enumerate() {
            shape.repeats[place] += u64::from(*field.text == *first[place]);
            if field.text.is_empty() {
                shape.empty[place] += 1;
                continue;
            }
            let class = seen(&field.text).class();
            counted[place][class as usize] += 1;
            if matches!(class, Class::Other | Class::Blank) {
                shape.text_bytes += field.text.len() as u64;
            }
        }
    });
    shape.is_unended = is_whole && sample.last().is_some_and(|last| !matches!(last, b'\n' | b'\r'));
    if candidate.qualifier.is_some() {
        shape.text_behind = text_behind(&automaton, sample);
    }
    let named = |counts: &[u64; Class::ALL.len()]| {
        let pairs = Class::ALL.iter().zip(counts).filter(|(_, count)| **count > 0);
        pairs.map(|(class, count)| (class.name(), *count)).collect()
    };
    shape.classes = counted.iter().map(named).collect();
    Ok(shape)
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..KEPT_FIELD_BYTES.min(bytes.len())]).into_owned()
}

/// The number of fields that most rows have; of several the greatest.
fn commonest(counts: &BTreeMap<usize, u64>) -> usize {
    counts.iter().max_by_key(|(fields, rows)| (**rows, **fields)).map_or(0, |(fields, _)| *fields)
}

fn count_fields(automaton: &Automaton, sample: &[u8], is_whole: bool) -> BTreeMap<usize, u64> {
    let mut counts = BTreeMap::new();
    let (mut state, mut fields, mut begin) = (START, 1, 0);
    for (at, byte) in sample.iter().enumerate() {
        let step = automaton.step(state, *byte);
        state = step.state;
        match step.event {
            Event::Delimiter => fields = (fields + 1).min(MOST_FIELDS + 1),
            Event::RowEnd => {
                if fields > 1 || at + 1 - begin > usize::from(step.length) {
                    *counts.entry(fields).or_default() += 1;
                }
                (fields, begin) = (1, at + 1);
            }
            _ => {}
        }
    }
    if is_whole && begin < sample.len() {
        *counts.entry(fields).or_default() += 1;
    }
    counts
}

fn text_behind(automaton: &Automaton, sample: &[u8]) -> u64 {
    let (mut state, mut count, mut was_behind) = (START, 0, false);
    for byte in sample {
        let step = automaton.step(state, *byte);
        state = step.state;
        // Once per field: what follows it is text without qualifier.
        count += u64::from(step.text_behind && !was_behind);
        was_behind = step.text_behind;
    }
    count
}

/// Takes the fields of a row, where it stands, and whether a qualifier is open behind it.
type TakeRow<'a> = dyn FnMut(&[Field<'_>], Range<usize>, bool) + 'a;

/// Calls `take` for each row.
fn each_row(automaton: &Automaton, candidate: &Candidate, sample: &[u8], is_whole: bool, take: &mut TakeRow<'_>) {
    let (mut state, mut row, mut begin, mut row_begin) = (START, Vec::new(), 0, 0);
    let (mut opened, mut rewritten) = (false, false);
    for (at, byte) in sample.iter().enumerate() {
        let step = automaton.step(state, *byte);
        state = step.state;
        match step.event {
            Event::Opened => opened = true,
            Event::Rewritten => rewritten = true,
            Event::Delimiter | Event::RowEnd => {
                let text = &sample[begin..(at + 1).saturating_sub(step.length.into()).max(begin)];
                if row.len() <= MOST_FIELDS {
                    row.push(field_of(text, candidate, opened, rewritten));
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
        row.push(field_of(&sample[begin..], candidate, opened, rewritten));
        let is_open = opened && automaton.step(state, b'\n').event != Event::RowEnd;
        take(&row, row_begin..sample.len(), is_open);
    }
}

/// What a field says; as the parser reads it where it is written rightly.
fn field_of<'s>(text: &'s [u8], candidate: &Candidate, is_qualified: bool, is_rewritten: bool) -> Field<'s> {
    let quote = candidate.qualifier.and_then(|qualifier| u8::try_from(qualifier).ok()).filter(|_| is_qualified);
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
    let escape = candidate.escape.and_then(|escape| u8::try_from(escape).ok());
    let mut bytes = inner.iter().copied();
    let mut own = Vec::with_capacity(inner.len());
    while let Some(byte) = bytes.next() {
        let is_mark = Some(byte) == escape || Some(byte) == quote;
        own.push(if is_mark { bytes.next().unwrap_or(byte) } else { byte });
    }
    Field { text: Cow::Owned(own), is_qualified }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str, delimiter: &str, qualifier: Option<char>, is_whole: bool) -> SampleShape {
        let candidate = Candidate { delimiter: Some(delimiter.to_owned()), qualifier, escape: None };
        shape_of(text.as_bytes(), &candidate, &RowEnd::Either, is_whole).unwrap()
    }

    #[test]
    fn rows_and_fields() {
        let text = "id;text\n1;\"a;b\n\"\"c\"\r\n\n2;x\n3;y;z\n4;unfini";
        let found = shape(text, ";", Some('"'), false);
        assert_eq!((found.rows, found.blank, found.qualified), (4, 1, 1));
        assert_eq!(found.fields, BTreeMap::from([(2, 3), (3, 1)]));
        assert_eq!(found.head[1], ["1", "a;b\n\"c"]);
        assert_eq!((&found.head_shape[..], &found.head_lines[..]), (&[2, 2, 2, 3][..], &[0, 1, 4, 5][..]));
        assert_eq!(found.repeats, [0, 0]);
        // Without the header.
        assert_eq!(found.classes, [BTreeMap::from([("whole", 2)]), BTreeMap::from([("other", 2)])]);
        // The texts of two rows, and the row of three fields.
        assert_eq!((found.bytes, found.text_bytes), (13 + 4 + 6, 6 + 1 + 6));
        let found = shape(text, ";", None, true);
        assert_eq!(found.fields, BTreeMap::from([(1, 1), (2, 3), (3, 2)]));
    }

    #[test]
    fn an_open_qualifier_is_told() {
        assert!(shape("a,\"b\nc,d\n", ",", Some('"'), true).is_open);
        assert!(!shape("a,\"b\"\nc,d\n", ",", Some('"'), true).is_open);
        assert!(!shape("a,\"b\"", ",", Some('"'), true).is_open);
        assert_eq!(shape("a,\"b\"c\n\"d\"e,f\n", ",", Some('"'), true).text_behind, 2);
    }

    #[test]
    fn bytes_that_mean_nothing_do_no_harm() {
        for text in ["", "\n", "\"", "\\", ",", "\r", "\0\n"] {
            for qualifier in [None, Some('"')] {
                for escape in [None, Some('\\')] {
                    let candidate = Candidate { delimiter: Some(",".to_owned()), qualifier, escape };
                    for is_whole in [false, true] {
                        shape_of(text.as_bytes(), &candidate, &RowEnd::Either, is_whole).unwrap();
                    }
                }
            }
        }
        let none = Candidate { delimiter: None, qualifier: None, escape: None };
        assert_eq!(shape_of(b"a,b\nc\n", &none, &RowEnd::Either, true).unwrap().fields, BTreeMap::from([(1, 2)]));
    }
}
