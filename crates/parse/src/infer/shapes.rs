//! Shapes of a sample's rows by one dialect: how many fields they have, and what these are.

use std::collections::BTreeMap;
use std::ops::Range;

use headrace_types::RowEnd;
use serde::Serialize;

use super::class::{Class, seen};
use super::front::Front;
use super::rows::{Candidate, MOST_FIELDS, RowReader, texts_of};
use crate::automaton::{Automaton, Event, START};

/// Rows from the first of the commonest number of fields on whose fields are told.
const HEAD_ROWS: usize = 30;

/// Rows at the end whose fields are told: the longest footer that a layout can have, and the row before it.
const TAIL_ROWS: usize = 101;

/// A sample, read by one dialect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SampleShape {
    /// Rows that are not blank.
    pub rows: u64,
    /// How many rows have so many fields.
    pub fields: BTreeMap<usize, u64>,
    /// What stands before the first row of the commonest number of fields.
    pub front: Front,
    /// Fields of the rows from that one on.
    pub head: Vec<Vec<String>>,
    /// Line ends before each of these rows.
    pub head_lines: Vec<u64>,
    /// Numbers of fields of the last rows.
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

/// Reads a sample of text, in UTF-8 as far as it is. `is_whole`: its last row ends with it; otherwise that row is left out.
///
/// # Errors
/// Why the dialect means two things.
pub fn shape_of(sample: &[u8], candidate: &Candidate, row_end: &RowEnd, is_whole: bool) -> Result<SampleShape, String> {
    let reader = RowReader::new(candidate, row_end)?;
    let counts = count_fields(&reader.automaton, sample, is_whole);
    let (common, rows) = (commonest(&counts), counts.values().sum::<u64>());
    let mut shape = SampleShape::default();
    let mut counted = vec![[0_u64; Class::ALL.len()]; common];
    shape.empty = vec![0; common];
    shape.repeats = vec![0; common];
    let mut first: Option<Vec<Vec<u8>>> = None;
    let mut above: Option<Range<usize>> = None;
    let (mut lines, mut lines_at) = (0, 0);
    reader.each_row(sample, is_whole, &mut |row, place, open| {
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
        if first.is_none() && row.len() != common {
            shape.front.add(row);
            above = Some(place.clone());
        } else if shape.head.len() < HEAD_ROWS {
            shape.head.push(texts_of(row));
            lines += reader.line_ends(&sample[lines_at..place.start]);
            lines_at = place.start;
            shape.head_lines.push(lines);
        }
        if shape.rows + TAIL_ROWS as u64 > rows {
            shape.tail_shape.push(row.len());
            shape.tail.push(texts_of(row));
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
    if let Some(place) = above {
        shape.front.last_line = reader.line_ends(&sample[..place.start]);
        reader.each_row(&sample[place], false, &mut |row, _, _| shape.front.last = texts_of(row));
    }
    shape.is_unended = is_whole && sample.last().is_some_and(|last| !matches!(last, b'\n' | b'\r'));
    if candidate.qualifier.is_some() {
        shape.text_behind = text_behind(&reader.automaton, sample);
    }
    let named = |counts: &[u64; Class::ALL.len()]| {
        let pairs = Class::ALL.iter().zip(counts).filter(|(_, count)| **count > 0);
        pairs.map(|(class, count)| (class.name(), *count)).collect()
    };
    shape.classes = counted.iter().map(named).collect();
    Ok(shape)
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
        assert_eq!((found.head_lines, found.tail_shape), (vec![0, 1, 4, 5], vec![2, 2, 2, 3]));
        assert_eq!(found.front, Front::default());
        assert_eq!(found.repeats, [0, 0]);
        // Without the header.
        assert_eq!(found.classes, [BTreeMap::from([("whole", 2)]), BTreeMap::from([("other", 2)])]);
        // The texts of two rows, and the row of three fields.
        assert_eq!((found.bytes, found.text_bytes), (13 + 4 + 6, 6 + 1 + 6));
        let found = shape(text, ";", None, true);
        assert_eq!(found.fields, BTreeMap::from([(1, 1), (2, 3), (3, 2)]));
    }

    #[test]
    fn what_stands_in_front_is_told_however_long_it_is() {
        let lines: String = (0..250).map(|number| format!("# setting {number}\n")).collect();
        let rows: String = (0..300).map(|number| format!("{number};a\n")).collect();
        let found = shape(&format!("{lines}{rows}"), ";", None, true);
        assert_eq!((found.front.rows, found.front.last_line, &found.front.begin[..]), (250, 249, "# settin"));
        assert_eq!(found.front.first, [["# setting 0"], ["# setting 1"], ["# setting 2"]]);
        assert_eq!(found.front.last, ["# setting 249"]);
        let found = shape(&format!("{lines}\nid,name\n{rows}"), ";", None, true);
        assert_eq!((found.front.rows, found.front.last_line, &found.front.begin[..]), (251, 251, ""));
        assert_eq!(found.front.last, ["id,name"]);
        assert_eq!((found.head.len(), found.head_lines[0], found.head_lines[1]), (HEAD_ROWS, 252, 253));
        assert_eq!(found.head[0], ["0", "a"]);
    }

    #[test]
    fn lines_end_as_rows_do() {
        let candidate = Candidate { delimiter: Some(";".to_owned()), qualifier: Some('"'), escape: None };
        let text = b"Report\rid;name\r1;\"a\nb\"\r2;\"c\"";
        let found = shape_of(text, &candidate, &RowEnd::Exactly("\r".to_owned()), true).unwrap();
        assert_eq!((found.front.rows, found.head_lines, found.is_open), (1, vec![1, 2, 3], false));
        assert_eq!(found.head[1], ["1", "a\nb"]);
    }

    #[test]
    fn a_name_of_255_characters_is_whole_and_a_longer_one_is_too_long() {
        let (name, longer) = ("\u{10000}".repeat(255), "\u{10000}".repeat(300));
        let found = shape(&format!("{name};{longer}\n1;2\n"), ";", None, true);
        assert_eq!((&found.head[0][0], found.head[0][1].chars().count()), (&name, 256));
    }

    #[test]
    fn of_a_row_with_too_many_fields_one_more_is_kept() {
        for end in ["", "\n"] {
            let found = shape(&(",".repeat(MOST_FIELDS + 5) + end), ",", None, true);
            assert_eq!((found.fields, found.classes.len()), (BTreeMap::from([(MOST_FIELDS + 1, 1)]), MOST_FIELDS + 1));
        }
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
