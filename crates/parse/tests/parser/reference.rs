//! A plain, slow parser, row by row and by position: at every place it is asked whether a token begins there. Shares no code
//! with the crate but the types of its results.

use std::collections::BTreeMap;

use headrace_parse::{BadValue, OtherValue, Reject};
use headrace_types::{
    BlankRows, Column, Disposition, EmptyField, EscapeCodes, ExtraFields, Layout, LayoutShape, MadeFrom, RowEnd,
    RowEndInFields, Rule, ShortRows, StrayQualifiers, Trim,
};

use crate::{reference_encodings, reference_formats, reference_places, reference_values};

/// File that the rows of slices are said to stand in, and lines of it before the slice.
pub const FILE_PATH: &str = "/some/folder/a file with a long name.csv.gz";
/// The same.
pub const LINES_BEFORE: u64 = 1_000_000_007;
/// The number of the slice.
pub const SLICE: u32 = 77;

/// One converted value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// NULL.
    Null,
    /// Whole numbers, unscaled decimals, days or microseconds since 1970, microseconds since midnight.
    Number(i128),
    /// Bits of a 32-bit or 64-bit float; all NaN are one.
    Float(u64),
    /// Truth values.
    Truth(bool),
    /// Bytes and UUIDs.
    Bytes(Vec<u8>),
    /// Text.
    Text(String),
}

/// What is known after the last row of a slice.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    /// Rows that conform.
    pub rows: Vec<Vec<Value>>,
    /// Rows that do not.
    pub rejects: Vec<Reject>,
    /// Rows of any kind, comments, header and blank rows.
    pub lines: u64,
    /// Those that are no data: comments, header and blank rows.
    pub skipped: u64,
    /// Lines that end with a line feed alone, and with carriage return and line feed, where both may be.
    pub lf_lines: u64,
    /// The same.
    pub crlf_lines: u64,
    /// Values of rows that conform because they were ignored, as NULL and cut, by column.
    pub ignored: BTreeMap<usize, (u64, u64)>,
    /// Characters that were replaced in rows of the right shape, by column.
    pub replaced: BTreeMap<usize, u64>,
    /// Fields with stray qualifiers that are taken as data in rows of the right shape, by column.
    pub stray: BTreeMap<usize, u64>,
    /// Rows of a right shape with fewer and with more fields than columns.
    pub unequal: (u64, u64),
}

/// Parses a whole slice whose first byte stands at `first_byte` of the file.
pub fn parse(layout: &Layout, row_end: &RowEnd, bytes: &[u8], first_byte: u64) -> Outcome {
    parse_columns(layout, row_end, bytes, first_byte, &all_columns(layout))
}

/// The same where longer rows, with the row ends that they have or lack, are rejected.
pub fn parse_up_to(layout: &Layout, row_end: &RowEnd, bytes: &[u8], first_byte: u64, max_row_bytes: usize) -> Outcome {
    Slice { layout, row_end, bytes, first_byte, max_row_bytes, wanted: &all_columns(layout) }.parse()
}

/// The same where only these columns are asked for.
pub fn parse_columns(layout: &Layout, row_end: &RowEnd, bytes: &[u8], first_byte: u64, wanted: &[usize]) -> Outcome {
    Slice { layout, row_end, bytes, first_byte, max_row_bytes: usize::MAX, wanted }.parse()
}

/// The numbers of all columns, with those that are made.
pub fn all_columns(layout: &Layout) -> Vec<usize> {
    (0..layout.all_columns().count()).collect()
}

struct Slice<'a> {
    layout: &'a Layout,
    row_end: &'a RowEnd,
    bytes: &'a [u8],
    first_byte: u64,
    max_row_bytes: usize,
    /// Columns that are asked for.
    wanted: &'a [usize],
}

impl Slice<'_> {
    fn parse(&self) -> Outcome {
        let Slice { layout, row_end, bytes, first_byte, max_row_bytes, wanted } = *self;
        let dialect = Dialect::new(layout, row_end);
        let mut outcome = Outcome::default();
        let mut at = 0;
        while at < bytes.len() {
            let row = dialect.cut_row(&bytes[at..]);
            let next = at + row.length;
            let is_blank = row.content.is_empty() && layout.blank_rows == BlankRows::Skip && !can_be_empty(layout);
            // Behind a qualifier that is never closed there may be rows: even in a header this is not passed over in silence.
            if row.open.is_none() && (row.is_comment || is_blank) {
                outcome.skipped += 1;
            } else {
                let row_byte = first_byte + at as u64;
                // A qualifier that is never closed is why a row is too long.
                let is_unclosed = row.open.as_ref().is_some_and(|open| open.rule == Rule::UnclosedQualifier);
                let parsed = match row.length + usize::from(!row.has_end) > max_row_bytes && !is_unclosed {
                    true => Err(Bad::of(Rule::RowTooLong, &bytes[at..next], None)),
                    false => parse_row(layout, &dialect, &row, wanted, &mut outcome),
                };
                match parsed {
                    Ok((mut row, ignored)) => {
                        for (column, is_cut) in ignored {
                            let counts = outcome.ignored.entry(column).or_default();
                            *if is_cut { &mut counts.1 } else { &mut counts.0 } += 1;
                        }
                        let own = wanted
                            .iter()
                            .filter_map(|column| layout.made.get(column.checked_sub(layout.columns.len())?));
                        row.extend(own.map(|column| made(&column.from, outcome.lines, row_byte)));
                        outcome.rows.push(row);
                    }
                    Err(bad) => outcome.rejects.push(Reject {
                        line: outcome.lines,
                        row_byte,
                        byte: row_byte + bad.offset as u64,
                        column: bad.column,
                        rule: bad.rule,
                        note: match bad.rule {
                            Rule::Unmappable => {
                                Some(reference_encodings::hole(layout, &bad.value, row_byte + bad.offset as u64))
                            }
                            _ => bad.note,
                        },
                        value: reference_encodings::shown(layout, &bad.value[..bad.value.len().min(1000)]),
                        row: bytes[at..next].to_vec(),
                        row_end: match row_end {
                            RowEnd::Every(_) => vec![].into(),
                            RowEnd::Exactly(text) => reference_encodings::encoded(layout, text).into(),
                            _ => b"\n".as_slice().into(),
                        },
                        also: bad.also.iter().map(|other| other.told(row_byte)).collect(),
                        fatal: bad.fatal.map(|fatal| Box::new(fatal.whole(layout, row_byte))),
                        lacking: None,
                    }),
                }
            }
            outcome.lines += 1;
            if row_end.takes_carriage_return() {
                outcome.lf_lines += u64::from(row.ending == b"\n");
                outcome.crlf_lines += u64::from(row.ending == b"\r\n");
            }
            at = next;
        }
        outcome
    }
}

/// What a made column says of a row on this line of the slice, from 0.
fn made(from: &MadeFrom, line: u64, row_byte: u64) -> Value {
    match from {
        MadeFrom::FileName => Value::Text("a file with a long name.csv.gz".to_owned()),
        MadeFrom::FilePath => Value::Text(FILE_PATH.to_owned()),
        MadeFrom::RowNumber => Value::Number((LINES_BEFORE + line + 1).into()),
        MadeFrom::SliceRow => Value::Number(line.into()),
        MadeFrom::ByteOffset => Value::Number(row_byte.into()),
        MadeFrom::LoadTime(time) => Value::Number(time.unwrap().into()),
        MadeFrom::RunId(text) | MadeFrom::PackageHash(text) => Value::Text(text.clone().unwrap()),
        MadeFrom::Slice => Value::Number(SLICE.into()),
    }
}

/// Whether a row without a byte is the empty field of the only column.
fn can_be_empty(layout: &Layout) -> bool {
    if let [Column { place: Some(place), .. }] = &layout.columns[..] {
        return layout.shape == LayoutShape::RaggedRight && place.start == 0;
    }
    if layout.shape != LayoutShape::Delimited {
        return false;
    }
    layout.columns.len() == 1 && !layout.trailing_delimiter
}

struct Bad {
    rule: Rule,
    column: Option<usize>,
    offset: usize,
    value: Vec<u8>,
    note: Option<String>,
    also: Vec<BadField>,
    fatal: Option<BadField>,
}

/// A field that does not convert.
#[derive(Clone)]
struct BadField {
    column: usize,
    rule: Rule,
    offset: usize,
    raw: Vec<u8>,
}

impl BadField {
    fn told(&self, row_byte: u64) -> OtherValue {
        OtherValue { column: self.column, rule: self.rule, byte: row_byte + self.offset as u64 }
    }

    fn whole(self, layout: &Layout, row_byte: u64) -> BadValue {
        let BadField { column, rule, offset, raw } = self;
        let byte = row_byte + offset as u64;
        let note = (rule == Rule::Unmappable).then(|| reference_encodings::hole(layout, &raw, byte));
        BadValue { column, rule, byte, value: reference_encodings::shown(layout, &raw[..raw.len().min(1000)]), note }
    }
}

impl Bad {
    /// A row that is bad as a whole.
    fn of(rule: Rule, value: &[u8], note: Option<String>) -> Self {
        Bad { rule, column: None, offset: 0, value: value.to_vec(), note, also: vec![], fatal: None }
    }
}

/// How a field is written.
enum Form {
    /// As it is, but for escapes.
    Plain,
    /// Between qualifiers; what stands there.
    Qualified(Vec<u8>),
    /// All of it is text as it is in the file: something follows its closing qualifier, or it keeps fields that are too many.
    Raw,
}

/// A field as it stands in the file.
struct Field<'a> {
    offset: usize,
    raw: &'a [u8],
    form: Form,
    /// The rule that a stray qualifier in it breaks.
    stray: Option<Rule>,
}

/// A field that was cut off: where it ends, and why.
struct CutField {
    form: Form,
    stray: Option<Rule>,
    end: usize,
    stop: Stop,
}

/// What is never ended: the rule, where it begins, the fields before it.
struct Open {
    rule: Rule,
    offset: usize,
    column: usize,
}

/// A row as it stands in the file.
struct RawRow<'a> {
    fields: Vec<Field<'a>>,
    is_comment: bool,
    open: Option<Open>,
    /// Without its row end.
    content: &'a [u8],
    /// With its row end.
    length: usize,
    has_end: bool,
    /// Its row end.
    ending: &'a [u8],
}

/// Why a field ends where it does.
enum Stop {
    /// Bytes of the delimiter.
    Delimiter(usize),
    /// Bytes of the row end.
    RowEnd(usize),
    /// The slice ends.
    End,
}

/// A layout and the row ends of a file.
struct Dialect<'l> {
    layout: &'l Layout,
    row_end: &'l RowEnd,
    row_ends: Vec<Vec<u8>>,
    /// Those of the columns, and of fields too many.
    delimiters: Vec<Vec<u8>>,
    comment: Option<Vec<u8>>,
    /// Whether a carriage return at the end of the slice is the front half of a row end.
    is_crlf: bool,
    /// What may stand around qualifiers.
    blanks: Vec<u8>,
}

impl<'l> Dialect<'l> {
    fn new(layout: &'l Layout, row_end: &'l RowEnd) -> Self {
        let row_ends = match row_end {
            RowEnd::Lf => vec![b"\n".to_vec()],
            RowEnd::Either | RowEnd::OnlyLf | RowEnd::OnlyCrlf => vec![b"\r\n".to_vec(), b"\n".to_vec()],
            RowEnd::Exactly(text) => vec![reference_encodings::encoded(layout, text)],
            RowEnd::Every(_) => vec![],
        };
        let own = layout.columns.iter().map(|column| column.delimiter.as_ref()).chain([None]);
        let own = own.map(|own| reference_encodings::encoded(layout, own.unwrap_or(&layout.delimiter)));
        let mut dialect = Dialect {
            layout,
            row_end,
            row_ends,
            delimiters: own.collect(),
            comment: layout.comment.as_ref().map(|mark| reference_encodings::encoded(layout, mark)),
            is_crlf: row_end.takes_carriage_return(),
            blanks: vec![],
        };
        if layout.blanks_around_qualifier {
            // Fields too many have the layout's delimiter.
            let is_delimiter =
                |blank: u8| (0..=layout.columns.len()).any(|column| dialect.delimiter(column) == Some(&[blank]));
            dialect.blanks = b" \t".iter().copied().filter(|&blank| !is_delimiter(blank)).collect();
        }
        dialect
    }

    /// The column whose settings a field has: one that keeps fields too many, those of its own.
    fn column_of(&self, field: usize) -> usize {
        if self.layout.extra_fields == ExtraFields::Keep { field.min(self.layout.columns.len() - 1) } else { field }
    }

    fn ends_row(&self, column: usize) -> bool {
        self.layout.row_end_in_fields == RowEndInFields::EndsRow || column + 1 >= self.layout.columns.len()
    }

    fn delimiter(&self, column: usize) -> Option<&[u8]> {
        let only_row_ends = self.layout.row_end_in_fields == RowEndInFields::Data && self.ends_row(column);
        if only_row_ends {
            return None;
        }
        self.delimiters.get(self.column_of(column)).or(self.delimiters.last()).map(Vec::as_slice)
    }

    fn qualifier(&self, column: usize) -> Option<u8> {
        let is_qualified = self.layout.columns.get(self.column_of(column)).is_none_or(|column| column.qualified);
        self.layout.qualifier.filter(|_| is_qualified).map(|qualifier| qualifier as u8)
    }

    fn escape(&self) -> Option<u8> {
        self.layout.escape.map(|escape| escape as u8)
    }

    /// The row end that begins here, its bytes.
    fn row_end_at(&self, bytes: &[u8]) -> Option<usize> {
        if self.is_crlf && bytes == b"\r" {
            // The file is cut off between the two.
            return Some(1);
        }
        self.row_ends.iter().find(|end| bytes.starts_with(end)).map(Vec::len)
    }

    /// What ends a field of the column here.
    fn stop_at(&self, column: usize, bytes: &[u8]) -> Option<Stop> {
        if bytes.is_empty() {
            return Some(Stop::End);
        }
        if let Some(delimiter) = self.delimiter(column).filter(|delimiter| bytes.starts_with(delimiter)) {
            return Some(Stop::Delimiter(delimiter.len()));
        }
        if self.ends_row(column) { self.row_end_at(bytes).map(Stop::RowEnd) } else { None }
    }

    /// Cuts the first row off.
    fn cut_row<'a>(&self, bytes: &'a [u8]) -> RawRow<'a> {
        let mut row = RawRow {
            fields: vec![],
            is_comment: false,
            open: None,
            content: bytes,
            length: bytes.len(),
            has_end: false,
            ending: b"",
        };
        if let Some(mark) = self.comment.as_ref().filter(|mark| bytes.starts_with(mark)) {
            row.is_comment = true;
            for at in mark.len()..bytes.len() {
                if let Some(length) = self.row_end_at(&bytes[at..]) {
                    (row.content, row.length) = (&bytes[..at], at + length);
                    row.ending = &bytes[at..at + length];
                    break;
                }
            }
            return row;
        }
        if self.layout.shape != LayoutShape::Delimited {
            return self.cut_placed(row, bytes);
        }
        let mut offset = 0;
        loop {
            let column = row.fields.len();
            let CutField { form, stray, end, stop } = match self.cut_field(column, bytes, offset) {
                Ok(cut) => cut,
                Err((rule, offset)) => {
                    row.open = Some(Open { rule, offset, column });
                    return row;
                }
            };
            row.fields.push(Field { offset, raw: &bytes[offset..end], form, stray });
            match stop {
                Stop::Delimiter(length) => offset = end + length,
                Stop::RowEnd(length) => {
                    (row.content, row.length) = (&bytes[..end], end + length);
                    row.has_end = !(self.is_crlf && bytes[end..] == *b"\r");
                    row.ending = &bytes[end..end + length];
                    return row;
                }
                Stop::End => return row,
            }
        }
    }

    /// The same where columns stand at places.
    fn cut_placed<'a>(&self, mut row: RawRow<'a>, bytes: &'a [u8]) -> RawRow<'a> {
        if let RowEnd::Every(length) = self.row_end {
            let length = *length as usize;
            row.length = bytes.len().min(length);
            (row.content, row.has_end) = (&bytes[..row.length], row.length == length);
        } else if let Some((end, length)) = (0..bytes.len()).find_map(|at| Some((at, self.row_end_at(&bytes[at..])?))) {
            (row.content, row.length, row.ending) = (&bytes[..end], end + length, &bytes[end..end + length]);
            row.has_end = !(self.is_crlf && row.ending == b"\r");
        }
        let fields = reference_places::fields(self.layout, row.content).into_iter();
        row.fields = fields.map(|(offset, raw)| Field { offset, raw, form: Form::Plain, stray: None }).collect();
        row
    }

    /// Form of the field at `start`, where it ends, and why. Otherwise what is open there, and since where.
    fn cut_field(&self, column: usize, bytes: &[u8], start: usize) -> Result<CutField, (Rule, usize)> {
        let behind_blanks = |at: usize| at + bytes[at..].iter().take_while(|byte| self.blanks.contains(byte)).count();
        let opening = behind_blanks(start);
        let Some(qualifier) = self.qualifier(column).filter(|qualifier| bytes.get(opening) == Some(qualifier)) else {
            let (is_stray, end, stop) = self.cut_plain(column, bytes, start).map_err(|rule| (rule, start))?;
            let stray = is_stray.then_some(Rule::StrayQualifier);
            return Ok(CutField { form: Form::Plain, stray, end, stop });
        };
        let is_lenient = self.layout.stray_qualifiers == StrayQualifiers::Lenient;
        let (mut at, mut stray) = (opening + 1, None);
        loop {
            let byte = *bytes.get(at).ok_or((Rule::UnclosedQualifier, opening))?;
            let is_doubled = byte == qualifier && bytes.get(at + 1) == Some(&qualifier);
            if is_doubled || Some(byte) == self.escape() {
                at += 2;
            } else if byte == qualifier && is_lenient && self.stop_at(column, &bytes[behind_blanks(at + 1)..]).is_none()
            {
                stray = Some(Rule::StrayQualifier);
                at += 1;
            } else if byte == qualifier {
                break;
            } else {
                at += 1;
            }
        }
        let inner = &bytes[opening + 1..at];
        let end = behind_blanks(at + 1);
        if let Some(stop) = self.stop_at(column, &bytes[end..]) {
            return Ok(CutField { form: Form::Qualified(inner.to_vec()), stray, end, stop });
        }
        let (_, end, stop) = self.cut_plain(column, bytes, end).map_err(|rule| (rule, start))?;
        Ok(CutField { form: Form::Raw, stray: Some(Rule::TextAfterQualifier), end, stop })
    }

    /// Whether text without qualifiers that goes on at `at` holds one, where it ends, and why.
    fn cut_plain(&self, column: usize, bytes: &[u8], mut at: usize) -> Result<(bool, usize, Stop), Rule> {
        let mut is_stray = false;
        loop {
            if let Some(stop) = self.stop_at(column, &bytes[at..]) {
                return Ok((is_stray, at, stop));
            }
            is_stray |= Some(bytes[at]) == self.qualifier(column);
            at += 1;
            if Some(bytes[at - 1]) == self.escape() {
                at += match self.stop_at(column, &bytes[at..]) {
                    Some(Stop::End) => return Err(Rule::UnfinishedEscape),
                    Some(Stop::Delimiter(length) | Stop::RowEnd(length)) => length,
                    None => 1,
                };
            }
        }
    }

    /// The text that is meant by what stands in a field of the column.
    fn text(&self, column: usize, raw: &[u8], is_qualified: bool) -> Vec<u8> {
        let qualifier = self.qualifier(column).filter(|_| is_qualified);
        let (mut text, mut at) = (vec![], 0);
        while at < raw.len() {
            let byte = raw[at];
            at += 1;
            if Some(byte) == self.escape() {
                let (meant, used) = self.code(&raw[at..]).unwrap_or((raw[at], 1));
                text.push(meant);
                at += used;
            } else {
                text.push(byte);
                at += usize::from(Some(byte) == qualifier && raw.get(at) == Some(&byte));
            }
        }
        text
    }

    /// The byte that letters or digits behind an escape stand for, and how many they are.
    fn code(&self, behind: &[u8]) -> Option<(u8, usize)> {
        // MySQL 8.4, "LOAD DATA Statement"; PostgreSQL 17, "COPY", text format.
        let letters: &[(u8, u8)] = match self.layout.escape_codes {
            EscapeCodes::None => return None,
            EscapeCodes::Mysql => &[(b'0', 0), (b'b', 8), (b'n', 10), (b'r', 13), (b't', 9), (b'Z', 26)],
            EscapeCodes::Postgres => &[(b'b', 8), (b'f', 12), (b'n', 10), (b'r', 13), (b't', 9), (b'v', 11)],
        };
        if let Some((_, meant)) = letters.iter().find(|(letter, _)| *letter == behind[0]) {
            return Some((*meant, 1));
        }
        if self.layout.escape_codes != EscapeCodes::Postgres {
            return None;
        }
        let number = |from: usize, most: usize, base: u32| {
            let is_digit = |byte: &&u8| char::from(**byte).is_digit(base);
            let count = behind[from..].iter().take(most).take_while(is_digit).count();
            let digits = std::str::from_utf8(&behind[from..from + count]).unwrap();
            u32::from_str_radix(digits, base).ok().map(|number| ((number % 256) as u8, from + count))
        };
        if behind[0] == b'x' { number(1, 2, 16) } else { number(0, 3, 8) }
    }
}

/// Value of a field that is neither empty nor a null token.
fn convert(column: &Column, text: &[u8]) -> Result<Value, Rule> {
    match &column.format {
        Some(format) => reference_formats::convert(column.column_type, format, text),
        None => reference_values::convert(column.column_type, text),
    }
}

/// What the layout wants done with a row in which a value of the column breaks a rule.
fn disposition(column: &Column, rule: Rule) -> Disposition {
    match rule.code() {
        "HR402" | "HR403" => column.on_truncation,
        code if ["HR3", "HR4", "HR5"].iter().any(|family| code.starts_with(family)) => column.on_error,
        _ => Disposition::Redirect,
    }
}

/// Values of a row; the columns in which they were ignored, and whether they were cut.
type Converted = (Vec<Value>, Vec<(usize, bool)>);

fn parse_row(
    layout: &Layout,
    dialect: &Dialect<'_>,
    row: &RawRow<'_>,
    wanted: &[usize],
    outcome: &mut Outcome,
) -> Result<Converted, Bad> {
    if let Some(Open { rule, offset, column }) = row.open {
        let column = (column < layout.columns.len()).then_some(column);
        let value = row.content[offset..].to_vec();
        return Err(Bad { rule, column, offset, value, note: None, also: vec![], fatal: None });
    }
    let bad_shape = |rule, note: String| Bad::of(rule, row.content, Some(note));
    if layout.shape != LayoutShape::Delimited
        && let Some((rule, note)) = reference_places::wrong_width(layout, row.content)
    {
        return Err(bad_shape(rule, note));
    }
    if row.content.is_empty() && layout.blank_rows == BlankRows::Reject {
        return Err(bad_shape(Rule::TooFewFields, "a blank row".to_owned()));
    }
    let mut fields: Vec<&Field<'_>> = row.fields.iter().collect();
    // Nothing stands between the last delimiter and the row end.
    let closed = fields.len() > 1 && fields[fields.len() - 1].raw.is_empty();
    if layout.trailing_delimiter && closed {
        fields.pop();
    }
    let (found, columns) = (fields.len(), layout.columns.len());
    let fill = layout.short_rows == ShortRows::Fill;
    let keep = layout.extra_fields == ExtraFields::Keep;
    if (found > columns && !(keep && layout.shape == LayoutShape::Delimited)) || (found < columns && !fill) {
        let rule = if found < columns { Rule::TooFewFields } else { Rule::TooManyFields };
        let noun = if found == 1 { "field" } else { "fields" };
        return Err(bad_shape(rule, format!("{found} {noun} instead of {columns}")));
    }
    if found == columns && layout.trailing_delimiter && !closed && !fill {
        return Err(bad_shape(Rule::TooFewFields, "no delimiter after the last field".to_owned()));
    }
    if let Some(wanted) = dialect.row_end.wants_carriage_return().filter(|_| row.has_end) {
        let has = row.ending == b"\r\n";
        if has != wanted {
            let found = if has { "CR and line feed" } else { "a line feed" };
            return Err(bad_shape(Rule::OtherRowEnd, format!("{found} at the end of the row")));
        }
    }
    if layout.shape == LayoutShape::Delimited {
        outcome.unequal.0 += u64::from(found < columns);
        outcome.unequal.1 += u64::from(found > columns);
    } else {
        let (is_narrow, is_wide) = reference_places::other_width(layout, row.content);
        outcome.unequal.0 += u64::from(is_narrow);
        outcome.unequal.1 += u64::from(is_wide);
    }
    let kept = (found > columns).then(|| {
        let all = &fields[columns - 1..];
        let offset = all[0].offset;
        // Text after a closing qualifier is told rather than a qualifier inside.
        let stray = all.iter().filter_map(|field| field.stray).min();
        Field { offset, raw: &row.content[offset..], form: Form::Raw, stray }
    });
    let missing = Field { offset: row.content.len(), raw: b"", form: Form::Plain, stray: None };
    fields.resize(columns, &missing);
    if let Some(kept) = &kept {
        fields[columns - 1] = kept;
    }
    let (mut values, mut ignored, mut bad) = (vec![], vec![], vec![]);
    for &index in wanted.iter().filter(|&&index| index < columns) {
        let (column, field) = (&layout.columns[index], fields[index]);
        let text = match &field.form {
            Form::Qualified(inner) if !is_null(layout, column, inner, true) => dialect.text(index, inner, true),
            Form::Plain if !is_null(layout, column, trimmed(column.trim, field.raw), false) => {
                dialect.text(index, trimmed(column.trim, field.raw), false)
            }
            Form::Raw if !is_null(layout, column, trimmed(column.trim, field.raw), false) => field.raw.to_vec(),
            _ => vec![],
        };
        let stray = field.stray.filter(|_| layout.stray_qualifiers == StrayQualifiers::Reject);
        if field.stray.is_some() && stray.is_none() {
            *outcome.stray.entry(index).or_default() += 1;
        }
        match reference_encodings::replaced(layout, &text) {
            0 => {}
            count => *outcome.replaced.entry(index).or_default() += count,
        }
        let read = || match &field.form {
            Form::Qualified(inner) if is_null(layout, column, inner, true) => null(column),
            Form::Qualified(inner) => reference_encodings::decoded(layout, dialect.text(index, inner, true))
                .and_then(|text| convert(column, &text)),
            Form::Plain | Form::Raw if is_null(layout, column, trimmed(column.trim, field.raw), false) => null(column),
            Form::Plain | Form::Raw => match (trimmed(column.trim, field.raw), &column.empty) {
                (b"", EmptyField::Value(text)) => convert(column, text.as_bytes()),
                (text, _) => {
                    let is_raw = matches!(field.form, Form::Raw);
                    let text = if is_raw { text.to_vec() } else { dialect.text(index, text, false) };
                    reference_encodings::decoded(layout, text).and_then(|text| convert(column, &text))
                }
            },
        };
        let whole = stray.map_or_else(read, Err);
        let is_cut = whole.as_ref().err().is_some_and(|rule| {
            matches!(rule, Rule::WouldRound | Rule::TooLong) && disposition(column, *rule) == Disposition::Ignore
        });
        // What is left may be out of range.
        match if is_cut { reference_values::cutting(read) } else { whole } {
            Ok(value) => {
                values.push(value);
                ignored.extend(is_cut.then_some((index, true)));
            }
            Err(rule) if disposition(column, rule) == Disposition::Ignore => {
                values.push(Value::Null);
                ignored.push((index, false));
            }
            Err(rule) => bad.push(BadField { column: index, rule, offset: field.offset, raw: field.raw.to_vec() }),
        }
    }
    // Fields that nobody wants make a row bad, too, if they may end in the wrong place.
    for index in (0..columns).filter(|index| !wanted.contains(index)) {
        let rule = fields[index].stray.filter(|_| layout.stray_qualifiers == StrayQualifiers::Reject);
        bad.extend(rule.map(|rule| BadField {
            column: index,
            rule,
            offset: fields[index].offset,
            raw: fields[index].raw.to_vec(),
        }));
    }
    let is_fatal = |bad: &&BadField| disposition(&layout.columns[bad.column], bad.rule) == Disposition::Fail;
    if bad.is_empty() {
        return Ok((values, ignored));
    }
    // The first one is that of who asks, and the others stand as in the file.
    let first = bad.remove(0);
    let told = bad.len().min(8);
    bad[..told].sort_by_key(|bad| bad.column);
    let also = bad[..told].to_vec();
    bad.sort_by_key(|bad| bad.column);
    let fatal = std::iter::once(&first).chain(&bad).find(is_fatal).cloned();
    let BadField { column, rule, offset, raw: value } = first;
    Err(Bad { rule, column: Some(column), offset, value, note: None, also, fatal })
}

/// Whether an unqualified field means NULL, as it stands in the file.
/// What is left of an unqualified field.
fn trimmed(trim: Trim, raw: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| *byte != b' ' && *byte != b'\t';
    let Some(first) = raw.iter().position(is_text) else { return if trim == Trim::None { raw } else { b"" } };
    let last = raw.iter().rposition(is_text).unwrap_or_default();
    match trim {
        Trim::None => raw,
        Trim::Left => &raw[first..],
        Trim::Right => &raw[..=last],
        Trim::Both => &raw[first..=last],
    }
}

/// Null token or what else is null.
fn is_null(layout: &Layout, column: &Column, raw: &[u8], is_qualified: bool) -> bool {
    let tokens = column.null_tokens.as_ref().unwrap_or(&layout.null_tokens);
    let is_token = tokens.iter().any(|token| reference_encodings::encoded(layout, token) == raw);
    let is_empty_null = match &column.empty {
        EmptyField::Null => true,
        EmptyField::Text => !column.column_type.is_text(),
        EmptyField::Value(_) => false,
    };
    if is_qualified {
        (raw.is_empty() && column.qualified_empty_is_null) || (is_token && column.qualified_null_tokens)
    } else {
        (raw.is_empty() && is_empty_null) || is_token
    }
}

fn null(column: &Column) -> Result<Value, Rule> {
    if column.nullable { Ok(Value::Null) } else { Err(Rule::NullNotAllowed) }
}
