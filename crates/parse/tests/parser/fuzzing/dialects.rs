//! Dialects out of decisions, and the texts that can hurt them.

use headrace_parse::Parser;
use headrace_types::{
    BlankRows, Column, EmptyField, Encoding, EscapeCodes, ExtraFields, Layout, RowEnd, RowEndInFields, RowEnds,
    ShortRows, StrayQualifiers, Trim, Unmappable,
};

use super::input::Input;
use super::texts;

const DELIMITERS: &[&str] = &[
    "|", ",", "||", "\t", ";", "|||", "aba", "é", "~^~", ",\t", "\r|", "|\r", "\n|", " ", "::", "5", "a|", "n", "-",
    "|~|",
];
const ROW_ENDS: &[&str] =
    &["\n", "\r\n", "\r", "~", "|\n", "||", "\n\n", "#\n", "aab", ";", "\n|", "||\n", "<é>", "\u{1e}", "--\n"];
const QUALIFIERS: &[char] = &['"', '"', '\'', '-', '\u{1}', '~', '\t'];
const ESCAPES: &[char] = &['\\', '\\', '\\', '^', '"', '-', '|', '\t'];
const COMMENTS: &[&str] = &["#", "--", "//", "REM ", "1", "|#", "-- ", "##|", "\"#", " #", "é", "\r#", "ab", "\\#"];
const TOKENS: &[&str] = &["\\N", "\\1", "-", "\\", "|", " ", "n", "é"];

/// A layout without columns, and how its files end their rows. [`settle`] has to follow.
pub fn dialect(input: &mut Input<'_>) -> (Layout, RowEnd) {
    let mut layout = Layout { delimiter: input.pick(DELIMITERS).to_owned(), ..Layout::default() };
    let row_end = match input.below(6) {
        0 => RowEnd::Lf,
        1 => RowEnd::Either,
        4 => RowEnd::OnlyLf,
        5 => RowEnd::OnlyCrlf,
        _ => RowEnd::Exactly(input.pick(ROW_ENDS).to_owned()),
    };
    let flags = input.word();
    let is = |bit: u32| flags >> bit & 1 == 1;
    layout.qualifier = is(0).then(|| input.pick(QUALIFIERS));
    layout.blanks_around_qualifier = is(1);
    layout.escape = is(2).then(|| input.pick(ESCAPES));
    layout.escape_codes =
        [EscapeCodes::None, EscapeCodes::Mysql, EscapeCodes::Postgres, EscapeCodes::None][usize::from(flags >> 3 & 3)];
    layout.comment = is(5).then(|| input.pick(COMMENTS).to_owned());
    layout.blank_rows =
        [BlankRows::Skip, BlankRows::Keep, BlankRows::Reject, BlankRows::Skip][usize::from(flags >> 6 & 3)];
    layout.short_rows = if is(8) { ShortRows::Fill } else { ShortRows::Reject };
    layout.extra_fields = if is(9) && is(10) { ExtraFields::Keep } else { ExtraFields::Reject };
    layout.row_end_in_fields = if is(11) && is(12) { RowEndInFields::Data } else { RowEndInFields::EndsRow };
    layout.trailing_delimiter = is(13) && is(14);
    layout.stray_qualifiers = match (is(15), is(12)) {
        (false, _) => StrayQualifiers::Reject,
        (true, false) => StrayQualifiers::Keep,
        (true, true) => StrayQualifiers::Lenient,
    };
    if input.below(4) == 3 {
        layout.null_tokens = vec![input.pick(TOKENS).to_owned()];
    }
    (layout, row_end)
}

/// Gives the layout an encoding, if its files can hold its texts then. `decision`: 0 to 15.
pub fn encoding(layout: &mut Layout, row_end: &RowEnd, decision: u8) {
    let (name, unmappable) = match decision {
        15 => ("utf-8", Unmappable::Replace),
        14 => ("windows-1257", Unmappable::Reject),
        13 => ("windows-1252", Unmappable::Replace),
        12 => ("windows-1252", Unmappable::Reject),
        11 => ("iso-8859-1", Unmappable::Reject),
        _ => return,
    };
    let encoding = Encoding::try_from(name.to_owned()).unwrap_or_default();
    let mut encoded = Layout { encoding, unmappable, ..layout.clone() };
    if is_accepted(&mut encoded, row_end) {
        *layout = encoded;
    }
}

/// Columns with settings of their own.
pub fn per_column(layout: &mut Layout, input: &mut Input<'_>) {
    for column in &mut layout.columns {
        what_stands_for(column, input);
    }
    let (delimiters, unqualified) = match input.below(4) {
        0 => return,
        1 => (0, 3),
        _ => (3, 5),
    };
    for column in &mut layout.columns {
        if delimiters > 0 && input.below(delimiters) == 0 {
            column.delimiter = Some(input.pick(DELIMITERS).to_owned());
        }
        column.qualified = input.below(unqualified) != 0;
    }
}

/// What fields of the column stand for that are empty, blank or null tokens.
pub fn what_stands_for(column: &mut Column, input: &mut Input<'_>) {
    const VALUES: &[&str] = &["0", "1", "2000-01-01", "true", "a text of more than twelve bytes", " x ", "\"|"];
    let value = |input: &mut Input<'_>| {
        if input.flag() {
            return input.pick(VALUES).to_owned();
        }
        let own = texts::plausible_of(column.column_type, column.format.as_ref(), &mut input.random());
        String::from_utf8_lossy(&own).into_owned()
    };
    let flags = input.byte();
    column.trim = [Trim::None, Trim::Left, Trim::Right, Trim::Both][usize::from(flags & 3)];
    column.empty = match flags >> 2 & 7 {
        0 => EmptyField::Text,
        1 | 2 => EmptyField::Value(value(input)),
        _ => EmptyField::Null,
    };
    column.qualified_empty_is_null = flags >> 5 & 1 == 1;
    column.qualified_null_tokens = flags >> 6 & 1 == 1;
    column.null_tokens = (flags >> 7 == 1).then(|| vec![input.pick(TOKENS).to_owned()]);
}

/// Leaves out what cannot go together until a parser takes the layout.
pub fn settle(layout: &mut Layout, row_end: &mut RowEnd) {
    let simpler: [fn(&mut Layout, &mut RowEnd); 15] = [
        |layout, _| layout.columns.iter_mut().for_each(|column| column.null_tokens = None),
        |layout, _| leave_out_wrong_values(layout),
        |layout, _| layout.columns.iter_mut().for_each(|column| column.trim = Trim::None),
        |layout, _| layout.null_tokens.clear(),
        |layout, _| layout.blanks_around_qualifier = false,
        |layout, _| layout.comment = None,
        |layout, _| layout.short_rows = ShortRows::Reject,
        |layout, _| layout.trailing_delimiter = false,
        |layout, _| layout.extra_fields = ExtraFields::Reject,
        |layout, _| layout.stray_qualifiers = StrayQualifiers::Reject,
        |layout, _| layout.escape = None,
        |layout, _| layout.columns.iter_mut().for_each(|column| column.delimiter = None),
        |_, row_end| *row_end = RowEnd::Lf,
        |layout, _| layout.qualifier = None,
        |layout, _| layout.delimiter = "|".to_owned(),
    ];
    if is_accepted(layout, row_end) {
        return;
    }
    // One thing is left out if that is enough, otherwise one after the other.
    for simplify in simpler {
        let (mut simple, mut simple_end) = (layout.clone(), row_end.clone());
        simplify(&mut simple, &mut simple_end);
        if is_accepted(&mut simple, &simple_end) {
            (*layout, *row_end) = (simple, simple_end);
            return;
        }
    }
    for simplify in simpler {
        simplify(layout, row_end);
        if is_accepted(layout, row_end) {
            return;
        }
    }
}

/// Texts for empty fields that are no values of their columns.
pub fn leave_out_wrong_values(layout: &mut Layout) {
    for index in 0..layout.columns.len() {
        let alone =
            Layout { delimiter: ";".to_owned(), columns: vec![layout.columns[index].clone()], ..Layout::default() };
        if Parser::new(&alone).is_err() {
            layout.columns[index].empty = EmptyField::Null;
        }
    }
}

/// Whether a parser takes the layout; the layout gets the row end as well.
pub fn is_accepted(layout: &mut Layout, row_end: &RowEnd) -> bool {
    layout.row_end = match row_end {
        RowEnd::Exactly(text) => RowEnds::Exactly(text.clone()),
        RowEnd::Every(_) => RowEnds::None,
        _ => RowEnds::Auto,
    };
    Parser::new(layout).is_ok_and(|mut parser| parser.begin_slice(row_end, 0).is_ok())
}

/// What stands behind the field of a column.
pub fn delimiter(layout: &Layout, column: usize) -> Vec<u8> {
    let own = layout.columns.get(column).and_then(|column| column.delimiter.as_ref());
    layout.encoded(own.unwrap_or(&layout.delimiter))
}

/// What ends a row.
pub fn row_end_text(layout: &Layout, row_end: &RowEnd) -> Vec<u8> {
    match row_end {
        RowEnd::Lf | RowEnd::OnlyLf => b"\n".to_vec(),
        RowEnd::Either | RowEnd::OnlyCrlf => b"\r\n".to_vec(),
        RowEnd::Exactly(text) => layout.encoded(text),
        RowEnd::Every(_) => vec![],
    }
}

/// Tokens of a dialect, parts of them, what they are often next to, and some text: noise is made of it.
pub fn pieces(layout: &Layout, row_end: &RowEnd) -> Vec<Vec<u8>> {
    let mut delimiters: Vec<Vec<u8>> = (0..=layout.columns.len()).map(|column| delimiter(layout, column)).collect();
    delimiters.sort();
    delimiters.dedup();
    delimiters.truncate(6);
    let row_end = row_end_text(layout, row_end);
    let characters: Vec<Vec<u8>> =
        [layout.qualifier, layout.escape].into_iter().flatten().map(|character| vec![character as u8]).collect();
    let comment = layout.comment.as_ref().map(|comment| layout.encoded(comment));
    let tokens: Vec<&Vec<u8>> = delimiters.iter().chain([&row_end]).chain(&characters).chain(&comment).collect();
    let mut pieces: Vec<Vec<u8>> =
        [&b"a"[..], b"1", b" ", b"\t", b"n", b"x4", b"0", b"12", b"\r", b"\n", b"N", "é".as_bytes(), b"\xFF", b"b c"]
            .map(<[u8]>::to_vec)
            .to_vec();
    for token in tokens.iter().filter(|token| !token.is_empty()) {
        let (length, token) = (token.len(), token.as_slice());
        pieces.extend([token.to_vec(), token.to_vec(), token[..1].to_vec(), token[1..].to_vec()]);
        pieces.push(token[..length - 1].to_vec());
        for character in &characters {
            pieces.extend([[character.as_slice(), token].concat(), [token, character].concat()]);
        }
    }
    // What the encoding has beside UTF-8.
    let texts = ["\u{e9}", "\u{20ac}", "\u{17d}"].iter().filter_map(|text| layout.encoding.encode(text));
    pieces.extend(texts.filter(|_| layout.encoding.page().is_some()));
    pieces.extend(layout.null_tokens.iter().filter_map(|token| layout.encoding.encode(token)));
    pieces.extend(comment.map(|mark| [row_end, mark].concat()));
    pieces.retain(|piece| !piece.is_empty());
    pieces
}
