//! Target `flow_differential`: any layout and any file, as in `parse_differential`, through a whole flow: blocks as small as they may
//! be, slices, lines in front and rows at the end that are no data, columns by their names, columns that are made. The reference
//! parser gets the file in one piece, so that a cut in the middle of a row would show.

use std::collections::BTreeMap;

use headrace_engine::report::{AlsoBad, FlowReport, Ignored, LocatedReject, SliceReport, Status};
use headrace_engine::slices::Slicing;
use headrace_engine::spec::MemorySpec;
use headrace_parse::{MOST_OTHER_VALUES, Parser};
use headrace_types::{
    CoreError, Disposition, Encoding, ErrorKind, ExtraFields, Header, Layout, MadeFrom, MixedRowEnds, RowEnd, RowEnds,
};

use crate::fuzzing::parse_differential;
use crate::input::Input;
use crate::place::{Place, located};
use crate::reference::{self, Outcome, Value};
use crate::refused::is_refused;

/// Eight of the smallest blocks.
const MOST_BYTES: usize = 32 * 1024;

/// Runs one file through a flow.
///
/// # Panics
/// When rows, rejects or accounts are not those of the reference.
pub fn check(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (margins, parts) = (input.byte(), input.pick(&[1, 1, 2, 3, 5, 17]));
    let sizes = usize::from(input.word());
    let block_bytes = 4096 + sizes % 1024;
    let max_row_bytes = block_bytes + [0, 1, 300, 4096, 9000, 1 << 20, 1 << 20, 1 << 20][input.below(8)];
    let memory = MemorySpec { block_bytes, blocks: input.pick(&[1, 2, 3, 8]), max_row_bytes };
    let Some(case) = parse_differential::case(input.take(usize::MAX)) else { return };
    let (mut in_file, mut content) = (case.layout, case.bytes);
    settle(&mut in_file, margins);
    if sizes >> 14 == 3 && in_file.row_end == RowEnds::Auto {
        in_file.mixed_row_ends = MixedRowEnds::Reject;
    }
    content.truncate(MOST_BYTES);
    let turned = if margins & 12 == 8 { write_names(&mut in_file, &mut content, &case.row_end) } else { 0 };
    if margins >> 7 == 1 {
        write_utf16(&mut in_file, &mut content, margins >> 6 & 1 == 1);
    }
    let mut layout = in_file.clone();
    layout.columns.rotate_left(turned);

    Place::with(|place| {
        let slicing = match place.write(&content, &layout, content.len() as u64 / parts + 1) {
            Ok(slicing) => slicing,
            Err(error) => return assert!(may_be_refused(&error, &content, &layout), "{error:?} {layout:?}"),
        };
        let (rows, report) = place.run(&layout, &slicing, memory);
        let about = || format!("{layout:?} {:?} {}", report.slices, content.escape_ascii());
        assert_eq!((report.status, &report.error), (Status::Ok, &None), "{}", about());
        let mut expected = expected(&in_file, &slicing, &content, max_row_bytes);
        let (rejects, bad) = located(&in_file, &slicing, std::slice::from_ref(&expected));
        turn(&mut expected, turned, layout.columns.len());
        check_accounts(&report, &slicing, &expected, &about());
        let rows = in_file_order(rows, &report.slices);
        for (row, (found, expected)) in std::iter::zip(&rows, &expected.rows).enumerate() {
            assert_eq!(found, expected, "good row {row}, {}", about());
        }
        let found = place.rejects(&report);
        for (found, expected) in std::iter::zip(&found, &rejects) {
            match turned {
                0 => assert_eq!(found, expected, "{}", about()),
                _ => assert_eq!(in_any_order(found), in_any_order(expected), "{}", about()),
            }
        }
        assert_eq!((found.len(), report.rejects.count), (rejects.len(), rejects.len() as u64), "{}", about());
        assert!(place.output(&report, "rejected.bad") == bad, "{}", about());
    });
}

/// What a flow has and the parser alone has not; and nothing that ends it early.
fn settle(layout: &mut Layout, margins: u8) {
    for column in &mut layout.columns {
        for disposition in [&mut column.on_error, &mut column.on_truncation] {
            if *disposition == Disposition::Fail {
                *disposition = Disposition::Redirect;
            }
        }
    }
    layout.skip_lines = [0, 0, 1, 3][usize::from(margins & 3)];
    layout.header = if margins & 12 == 12 { Header::Skip } else { Header::None };
    layout.footer_rows = [0, 0, 1, 7][usize::from(margins >> 4 & 3)];
}

/// A first row with the names of the columns; how many columns of the file stand in front of those that are the layout's first
/// ones, or 0 where the layout cannot be read by names.
fn write_names(in_file: &mut Layout, content: &mut Vec<u8>, row_end: &RowEnd) -> usize {
    let turned = content.len() % in_file.columns.len();
    let mut named = Layout { header: Header::ByName, skip_lines: 0, ..in_file.clone() };
    named.columns.rotate_left(turned);
    let is_kept_elsewhere = turned > 0 && named.extra_fields == ExtraFields::Keep;
    if is_kept_elsewhere || Parser::new(&named).is_err() {
        return 0;
    }
    let mut names = in_file.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>().join(&named.delimiter);
    if named.trailing_delimiter {
        names += &named.delimiter;
    }
    let end = match row_end {
        RowEnd::Exactly(text) => text,
        RowEnd::Either | RowEnd::OnlyCrlf => "\r\n",
        _ => "\n",
    };
    content.splice(..0, in_file.encoded(&(names + end)));
    named.columns.rotate_right(turned);
    *in_file = named;
    turned
}

/// What stands in the file's order in that of the layout.
fn turn(outcome: &mut Outcome, turned: usize, columns: usize) {
    outcome.rows.iter_mut().for_each(|row| row[..columns].rotate_left(turned));
    let ignored = std::mem::take(&mut outcome.ignored).into_iter();
    outcome.ignored = ignored.map(|(column, counts)| ((column + columns - turned) % columns, counts)).collect();
}

/// A reject without what depends on which of its columns is the first: it is told of the layout's first one, and the reference
/// knows the file's order only.
fn in_any_order(reject: &LocatedReject) -> LocatedReject {
    let mut plain = LocatedReject { column_number: None, ..reject.clone() };
    let Some(column) = plain.column.take_if(|_| !plain.also.is_empty()) else { return plain };
    let (rule, code) = (std::mem::take(&mut plain.rule), std::mem::take(&mut plain.code));
    plain.also.push(AlsoBad { column, rule, code, byte: plain.byte });
    plain.also.sort_by(|one, other| one.column.cmp(&other.column));
    // No more are told, so that both may lack others.
    if plain.also.len() > MOST_OTHER_VALUES {
        plain.also.clear();
    }
    LocatedReject { column_type: None, value: String::new(), byte: 0, ..plain }
}

/// Two bytes for each unit of the text, if the layout may have them: with a byte order mark that says so, or without.
fn write_utf16(layout: &mut Layout, content: &mut Vec<u8>, is_marked: bool) {
    let encoding = if is_marked { Encoding::Utf16 } else { Encoding::Utf16Le };
    let encoded = Layout { encoding, ..layout.clone() };
    if layout.encoding != Encoding::Utf8 || Parser::new(&encoded).is_err() {
        return;
    }
    let text = String::from_utf8_lossy(content).into_owned();
    *content = if is_marked { utf16(&format!("\u{FEFF}{text}"), Encoding::Utf16Be) } else { utf16(&text, encoding) };
    *layout = encoded;
}

fn utf16(text: &str, encoding: Encoding) -> Vec<u8> {
    let is_big = encoding == Encoding::Utf16Be;
    text.encode_utf16().flat_map(|unit| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
}

/// The text of the bytes that [`utf16`] gives.
fn text_of(bytes: &[u8], encoding: Encoding) -> String {
    let is_big = encoding == Encoding::Utf16Be;
    let unit = |pair: &[u8; 2]| if is_big { u16::from_be_bytes(*pair) } else { u16::from_le_bytes(*pair) };
    let (pairs, odd) = bytes.as_chunks::<2>();
    assert!(odd.is_empty());
    String::from_utf16(&pairs.iter().map(unit).collect::<Vec<_>>()).unwrap()
}

/// A file of another encoding, whose row ends do not go with its layout, or whose header is none.
fn may_be_refused(error: &CoreError, content: &[u8], layout: &Layout) -> bool {
    let is = |text: &str| error.what.contains(text);
    let means_two_things = is(" begin alike") || is(" stands inside of ");
    is_refused(error, content)
        || content.starts_with(b"\xEF\xBB\xBF") && is("the byte order mark of a file")
        || layout.skip_lines > 0 && is("a file ends within the lines that are skipped")
        || layout.header != Header::None && is("the header of a file never ends")
        // The names may hold what ends fields or rows.
        || layout.header == Header::ByName && is("the header of a file does not fit its layout")
        || error.kind == ErrorKind::Specification && means_two_things
}

/// What the reference makes of the file.
fn expected(layout: &Layout, slicing: &Slicing, content: &[u8], max_row_bytes: usize) -> Outcome {
    let file = &slicing.files[0];
    let begin = file.data_begin();
    let data = &content[begin as usize..file.data_end() as usize];
    let text = if layout.encoding.is_utf16() { text_of(data, file.encoding).into_bytes() } else { data.to_vec() };
    let mut outcome = reference::parse_up_to(layout, &file.row_end, &text, 0, max_row_bytes);
    let places = layout.encoding.is_utf16().then(|| places_of_utf16(&text, begin));
    let at_byte = |byte: u64| places.as_ref().map_or(begin + byte, |places| places[byte as usize]);
    for reject in &mut outcome.rejects {
        reject.line += file.head.lines;
        (reject.row_byte, reject.byte) = (at_byte(reject.row_byte), at_byte(reject.byte));
        reject.also.iter_mut().for_each(|other| other.byte = at_byte(other.byte));
        if layout.encoding.is_utf16() {
            let own = |bytes: &[u8]| utf16(std::str::from_utf8(bytes).unwrap(), file.encoding);
            (reject.row, reject.row_end) = (own(&reject.row), own(&reject.row_end).into());
        }
    }
    for row in &mut outcome.rows {
        for (column, value) in std::iter::zip(&layout.made, &mut row[layout.columns.len()..]) {
            match (&column.from, value) {
                (MadeFrom::RowNumber, Value::Number(row)) => {
                    *row += i128::from(file.head.lines) - i128::from(reference::LINES_BEFORE);
                }
                (MadeFrom::ByteOffset, Value::Number(byte)) => *byte = at_byte(*byte as u64).into(),
                (MadeFrom::FileName, Value::Text(name)) => *name = "data".to_owned(),
                other => panic!("{other:?}"),
            }
        }
    }
    let margins = file.head.lines + file.foot.lines;
    (outcome.lines, outcome.skipped) = (outcome.lines + margins, outcome.skipped + margins);
    outcome
}

/// Where each byte of a text, and its end, stand in a file that has it as UTF-16 from `begin` on.
fn places_of_utf16(text: &[u8], begin: u64) -> Vec<u64> {
    let (mut places, mut at) = (Vec::with_capacity(text.len() + 1), begin);
    for character in std::str::from_utf8(text).unwrap().chars() {
        places.extend(std::iter::repeat_n(at, character.len_utf8()));
        at += 2 * character.len_utf16() as u64;
    }
    places.push(at);
    places
}

fn check_accounts(report: &FlowReport, slicing: &Slicing, expected: &Outcome, about: &str) {
    assert_eq!(report.slices.len(), slicing.slices.len());
    let sum = |count: fn(&SliceReport) -> u64| report.slices.iter().map(count).sum::<u64>();
    let (out, rejected) = (expected.rows.len() as u64, expected.rejects.len() as u64);
    let found = [sum(|slice| slice.rows), sum(|slice| slice.out), sum(|slice| slice.rejected)];
    assert_eq!(found, [out + rejected, out, rejected], "{about}");
    // An empty file has no slice.
    if !report.slices.is_empty() {
        let found = (sum(|slice| slice.lines), sum(|slice| slice.skipped));
        assert_eq!(found, (expected.lines, expected.skipped), "{about}");
    }
    let mut ignored: BTreeMap<usize, Ignored> = BTreeMap::new();
    for (column, found) in report.slices.iter().flat_map(|slice| &slice.ignored) {
        let counts = ignored.entry(*column).or_default();
        (counts.nulls, counts.cut) = (counts.nulls + found.nulls, counts.cut + found.cut);
    }
    let expected = expected.ignored.iter().map(|(column, &(nulls, cut))| (*column, Ignored { nulls, cut }));
    assert_eq!(ignored, expected.collect(), "{about}");
}

/// One stream takes the largest slice first, and of equal ones the first.
fn in_file_order(rows: Vec<Vec<Value>>, slices: &[SliceReport]) -> Vec<Vec<Value>> {
    let mut order: Vec<usize> = (0..slices.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(slices[index].bytes));
    let mut rows = rows.into_iter();
    let mut parts: Vec<(usize, Vec<Vec<Value>>)> =
        order.into_iter().map(|index| (index, rows.by_ref().take(slices[index].out as usize).collect())).collect();
    assert_eq!(rows.next(), None);
    parts.sort_by_key(|(index, _)| *index);
    parts.into_iter().flat_map(|(_, rows)| rows).collect()
}
