//! Target `parse_differential`: any layout, any file, any cuts.
//!
//! The first bytes decide the layout and how the file is handed over, the rest is a little program that writes the file:
//! runs of plausible rows, so that tiles and vector groups fill up, single rows field by field, raw bytes, and patches.

use headrace_types::{ColumnType, Layout, LayoutShape, MadeColumn, MadeFrom, RowEnd, ShortRows};

use super::input::{Input, Random};
use super::{Case, MOST_BYTES, column, dialect, dialects, formats, null_tokens, places, set_dispositions, texts};

const DELIMITERS: &[char] =
    &['|', ',', '\t', ';', '|', ',', '5', '.', '-', ' ', '"', '\u{1}', '\u{7f}', 'e', ':', '\''];
const QUALIFIERS: &[Option<char>] = &[None, Some('"'), None, Some('"'), Some('\''), None, Some('-'), Some('.')];

/// Columns of layouts that are wider than others, and the bytes of their files, in which every one may be a row.
const WIDE_COLUMNS: usize = 300;
const MOST_WIDE_BYTES: usize = 1500;

/// Case of the fuzz bytes; `None` when the layout is none.
pub fn case(bytes: &[u8]) -> Option<Case> {
    let mut input = Input::new(bytes);
    let (layout, row_end) = layout(&mut input);
    layout.check().ok()?;
    let raw = input.below(8) == 7;
    let mut case = Case::new(layout, row_end, &mut input);
    if raw {
        case.bytes = input.take(MOST_BYTES).to_vec();
    } else {
        let qualifier = case.layout.qualifier.map(|qualifier| qualifier as u8);
        let pieces = dialects::pieces(&case.layout, &case.row_end);
        let mut writer = Writer { layout: &case.layout, qualifier, row_end: &case.row_end, pieces, bytes: vec![] };
        while !input.is_used_up() && writer.bytes.len() < MOST_BYTES {
            writer.step(&mut input);
        }
        case.bytes = std::mem::take(&mut writer.bytes);
        case.bytes.truncate(MOST_BYTES);
    }
    if case.layout.columns.len() == WIDE_COLUMNS {
        case.bytes.truncate(MOST_WIDE_BYTES);
    }
    Some(case)
}

/// The layout; and how rows end, if the dialect decides it.
fn layout(input: &mut Input<'_>) -> (Layout, Option<RowEnd>) {
    let mut layout = dialect(input.pick(DELIMITERS), input.pick(QUALIFIERS));
    let flags = input.byte();
    let mut row_end = None;
    if flags & 0x80 != 0 {
        let (general, end) = dialects::dialect(input);
        (layout, row_end) = (general, Some(end));
    } else {
        layout.trailing_delimiter = flags & 1 == 1;
    }
    layout.null_tokens.extend(null_tokens(input));
    let columns = match input.below(16) {
        15 if row_end.is_none() => 60, // more marks in a row than a vector has
        count => 1 + count % 8,
    };
    for index in 0..columns {
        let column_type = texts::column_type(input);
        let decisions = input.byte();
        layout.columns.push(column(index, column_type, decisions & 1 == 1));
        set_dispositions(&mut layout.columns[index], decisions >> 1);
        if decisions & 0xE0 == 0xE0 {
            layout.columns[index].format = formats::format(column_type, input);
        }
    }
    formats::settle(&mut layout);
    if flags & 0x10 != 0 {
        let made = |(name, from): (&str, MadeFrom)| MadeColumn { name: name.to_owned(), from };
        layout.made = [("row", MadeFrom::RowNumber), ("byte", MadeFrom::ByteOffset), ("file", MadeFrom::FileName)]
            .map(made)
            .into();
    }
    if flags & 0xF0 == 0x70 {
        layout.columns.iter_mut().for_each(|column| dialects::what_stands_for(column, input));
        row_end = Some(places::place(&mut layout, input));
    } else if let Some(row_end) = &mut row_end {
        dialects::per_column(&mut layout, input);
        dialects::settle(&mut layout, row_end);
        formats::settle(&mut layout);
        if flags & 0x60 == 0x60 {
            widen(&mut layout, row_end);
        }
    } else if flags & 0x40 != 0 {
        layout.columns.iter_mut().for_each(|column| dialects::what_stands_for(column, input));
        dialects::settle(&mut layout, &mut RowEnd::Either);
    }
    dialects::encoding(&mut layout, row_end.as_ref().unwrap_or(&RowEnd::Lf), flags >> 1 & 15);
    (layout, row_end)
}

/// So many columns that a block of short rows has more of them than a batch may have.
fn widen(layout: &mut Layout, row_end: &RowEnd) {
    let narrow = layout.clone();
    layout.columns.extend((narrow.columns.len()..WIDE_COLUMNS).map(|index| column(index, ColumnType::String, true)));
    layout.short_rows = ShortRows::Fill;
    if !dialects::is_accepted(layout, row_end) {
        *layout = narrow;
    }
}

struct Writer<'a> {
    layout: &'a Layout,
    qualifier: Option<u8>,
    row_end: &'a RowEnd,
    pieces: Vec<Vec<u8>>,
    bytes: Vec<u8>,
}

impl Writer<'_> {
    fn step(&mut self, input: &mut Input<'_>) {
        match input.below(12) {
            0..=2 => {
                let rows = [8, 9, 40, 256, 257, 300, 600, 1][input.below(8)] + input.below(8);
                let dirt = [0, 0, 0, 1, 2, 10, 60, 255][input.below(8)];
                let mut random = input.random();
                for _ in 0..rows {
                    if self.bytes.len() >= MOST_BYTES {
                        break;
                    }
                    self.random_row(dirt, &mut random);
                }
            }
            3..=5 => {
                let fields: Vec<_> = (self.layout.columns.iter())
                    .map(|column| {
                        let text =
                            texts::field(column.column_type, column.format.as_ref(), &self.layout.null_tokens, input);
                        self.qualified(text, input.byte())
                    })
                    .collect();
                self.row(&fields, input.byte());
            }
            6 => self.bytes.extend_from_slice(input.run()),
            7 => {
                // Again what was written last.
                let from = self.bytes.len().saturating_sub(1 + usize::from(input.word()) % 512);
                let times = 1 + input.below(64);
                let again = self.bytes[from..].to_vec();
                for _ in 0..times {
                    if self.bytes.len() < MOST_BYTES {
                        self.bytes.extend_from_slice(&again);
                    }
                }
            }
            8 => {
                let back = 1 + usize::from(input.word()) % self.bytes.len().max(1);
                let byte = input.byte();
                if let Some(at) = self.bytes.len().checked_sub(back) {
                    self.bytes[at] = byte;
                }
            }
            9 if self.is_general() => {
                for _ in 0..input.below(64) {
                    let piece = input.pick(&self.pieces);
                    self.bytes.extend_from_slice(&piece);
                }
            }
            9 => self.bytes.extend_from_slice(input.pick(&[&b"\n"[..], b"\r\n", b"\r", b"\0", b"\xEF\xBB\xBF"])),
            10 => {
                let cut = input.below(8);
                self.bytes.truncate(self.bytes.len().saturating_sub(cut));
            }
            _ => {
                let delimiter = self.layout.encoded(&self.layout.delimiter);
                let qualifier = [self.qualifier.unwrap_or(b'"')];
                let piece = input.pick(&[&*delimiter, &qualifier, b"\r"]);
                self.bytes.extend(piece.repeat(1 + input.below(70)));
            }
        }
    }

    fn random_row(&mut self, dirt: u8, random: &mut Random) {
        let shape = if dirt > 0 && random.below(1024) < usize::from(dirt) { random.below(256) as u8 } else { 0 };
        let fields: Vec<_> = (self.layout.columns.iter())
            .map(|column| {
                let text = texts::random_field(
                    column.column_type,
                    column.format.as_ref(),
                    &self.layout.null_tokens,
                    dirt,
                    random,
                );
                let dirty = random.below(1024) < usize::from(dirt);
                self.qualified(text, if dirty { random.below(256) as u8 } else { random.below(2) as u8 })
            })
            .collect();
        self.row(&fields, shape);
    }

    /// The text as the dialect writes it: right for `how` below 128 if it can be, otherwise somehow.
    fn qualified(&self, text: Vec<u8>, how: u8) -> Vec<u8> {
        let Some(qualifier) = self.qualifier else { return text };
        let around = |inner: &[u8]| [&[qualifier], inner, &[qualifier]].concat();
        let doubled = || {
            let twice = |&byte: &u8| std::iter::repeat_n(byte, if byte == qualifier { 2 } else { 1 });
            text.iter().flat_map(twice).collect::<Vec<u8>>()
        };
        let delimiter = self.layout.encoded(&self.layout.delimiter);
        let special = |byte: &u8| *byte == qualifier || delimiter.contains(byte) || *byte == b'\n';
        match how {
            0..128 if how.is_multiple_of(2) && !text.iter().any(special) => text,
            0..128 => around(&doubled()),
            _ => match how % 8 {
                0 => around(&text),
                1 => [&[qualifier], &*doubled()].concat(),
                2 => [&*doubled(), &[qualifier]].concat(),
                3 => [&*around(&doubled()), b"x"].concat(),
                4 => [b" ", &*around(&doubled())].concat(),
                5 => around(&[&*doubled(), &delimiter, b"\n"].concat()),
                6 => around(&[&*doubled(), &[qualifier, qualifier], b"\r\n"].concat()),
                _ => [self.layout.escape.map(String::from).unwrap_or_default().as_bytes(), &text].concat(),
            },
        }
    }

    /// Whether the dialect has settings that the structural pass does not know.
    fn is_general(&self) -> bool {
        self.layout.escape.is_some()
            || self.layout.comment.is_some()
            || self.layout.delimiter.len() > 1
            || self.layout.encoding.page().is_some()
            || matches!(self.row_end, RowEnd::Exactly(_))
    }

    /// A row; a `shape` of 128 and more is another than the layout's.
    fn row(&mut self, fields: &[Vec<u8>], shape: u8) {
        if self.layout.shape != LayoutShape::Delimited {
            let mut random = Random(self.bytes.len() as u64);
            self.bytes.extend(places::row(self.layout, self.row_end, fields, shape, &mut random));
            return;
        }
        let wrong = if shape < 128 { 0 } else { shape % 8 };
        let fields = if wrong == 1 { &fields[1..] } else { fields };
        if let Some(mark) = self.layout.comment.as_ref().filter(|_| wrong == 7) {
            self.bytes.extend(self.layout.encoded(mark));
        }
        for (index, field) in fields.iter().enumerate() {
            if index > 0 {
                self.bytes.extend(dialects::delimiter(self.layout, index - 1));
            }
            self.bytes.extend_from_slice(field);
        }
        let delimiter = dialects::delimiter(self.layout, self.layout.columns.len() - 1);
        if wrong == 2 {
            self.bytes.extend_from_slice(&delimiter);
            self.bytes.push(b'1');
        }
        if self.layout.trailing_delimiter != (wrong == 3) {
            self.bytes.extend_from_slice(&delimiter);
        }
        self.bytes.extend(match (self.row_end, wrong) {
            (_, 5) => vec![],
            (RowEnd::Lf | RowEnd::OnlyLf, 4) => b"\r\n".to_vec(),
            (_, 4) => b"\n".to_vec(),
            (row_end, _) => dialects::row_end_text(self.layout, row_end),
        });
    }
}
