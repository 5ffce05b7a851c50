//! Random layouts, files and cuts: the parser against the reference.

use headrace_types::{
    Column, ColumnType, ExtraFields, Layout, MadeColumn, MadeFrom, RowEnd, RowEndInFields, ShortRows,
};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::drive::Driver;
use crate::examples::{column_type, field, hostile_byte};
use crate::fuzzing::dialects;
use crate::fuzzing::formats;
use crate::fuzzing::input::{Input, Random};
use crate::fuzzing::{places, set_dispositions};
use crate::reference;

/// Columns of any types, and a plain dialect that the structural pass knows.
fn plain_layout() -> impl Strategy<Value = Layout> {
    let columns = prop::collection::vec((column_type(), any::<bool>()), 1..7);
    let delimiter = prop_oneof![8 => select(vec!['|', ',', '\t', ';']), 1 => select(vec!['5', '.', '-', ' ', '"', '\u{1}', '\u{7f}'])];
    let tokens = subsequence(vec!["NULL", "\\N", "0", "-", "n/a", ""], 0..3);
    let qualifier =
        prop_oneof![2 => Just(None), 3 => Just(Some('"')), 1 => select(vec![Some('\''), Some('-'), Some('\u{1}')])];
    (columns, delimiter, qualifier, any::<bool>(), tokens).prop_map(
        |(columns, delimiter, qualifier, trailing_delimiter, tokens)| Layout {
            delimiter: delimiter.to_string(),
            // Layouts in which a null token could never be met are refused.
            qualifier: qualifier.filter(|qualifier| {
                *qualifier != delimiter && !tokens.iter().any(|token| token.starts_with(*qualifier))
            }),
            trailing_delimiter,
            null_tokens: tokens.into_iter().map(str::to_owned).collect(),
            columns: columns
                .into_iter()
                .enumerate()
                .map(|(index, (column_type, nullable))| Column::new(format!("c{index}"), column_type, nullable))
                .collect(),
            ..Layout::default()
        },
    )
}

/// The columns in a dialect of many settings.
fn general_layout() -> impl Strategy<Value = (Layout, RowEnd)> {
    (plain_layout(), prop::collection::vec(any::<u8>(), 32)).prop_map(|(plain, decisions)| {
        let mut input = Input::new(&decisions);
        let (mut layout, mut row_end) = dialects::dialect(&mut input);
        layout.null_tokens.extend(plain.null_tokens);
        layout.columns = plain.columns;
        if layout.extra_fields == ExtraFields::Keep {
            layout.columns.last_mut().unwrap().column_type = ColumnType::String;
        }
        dialects::per_column(&mut layout, &mut input);
        dialects::settle(&mut layout, &mut row_end);
        (layout, row_end)
    })
}

/// The same layout with formats of some columns.
fn formatted(layout: impl Strategy<Value = (Layout, RowEnd)>) -> impl Strategy<Value = (Layout, RowEnd)> {
    (layout, prop::collection::vec(any::<u8>(), 80)).prop_map(|((mut layout, row_end), decisions)| {
        let mut input = Input::new(&decisions);
        for column in &mut layout.columns {
            column.format = formats::format(column.column_type, &mut input);
        }
        formats::settle(&mut layout);
        (layout, row_end)
    })
}

/// The columns at places of their rows.
fn placed_layout() -> impl Strategy<Value = (Layout, RowEnd)> {
    (plain_layout(), prop::collection::vec(any::<u8>(), 80)).prop_map(|(plain, decisions)| {
        let mut input = Input::new(&decisions);
        let mut layout = Layout { qualifier: None, ..plain };
        for column in &mut layout.columns {
            dialects::what_stands_for(column, &mut input);
            if input.below(3) == 0 {
                column.format = formats::format(column.column_type, &mut input);
            }
        }
        formats::settle(&mut layout);
        let row_end = places::place(&mut layout, &mut input);
        (layout, row_end)
    })
}

/// A field of the column: `dirt` of 100 are not what it wants.
fn field_of(column: &Column, dirt: u32) -> BoxedStrategy<Vec<u8>> {
    let plain = field(column.column_type, dirt);
    let (column_type, Some(format)) = (column.column_type, column.format.clone()) else { return plain };
    let written = (any::<u64>(), 0..1000_u32, any::<prop::sample::Index>(), hostile_byte());
    let written = written.prop_map(move |(seed, chance, at, byte)| {
        let mut text = formats::plausible(column_type, &format, &mut Random(seed));
        let at = at.index(text.len() + 1);
        match chance {
            _ if chance >= 6 * dirt => {}
            _ if chance.is_multiple_of(2) && at < text.len() => text[at] = byte,
            _ if chance.is_multiple_of(3) && at < text.len() => drop(text.remove(at)),
            _ => text.insert(at, byte),
        }
        text
    });
    prop_oneof![9 => written, 1 => plain].boxed()
}

/// The same layout, sometimes with columns that are made.
fn layout() -> impl Strategy<Value = (Layout, RowEnd)> {
    let froms = [
        MadeFrom::FileName,
        MadeFrom::RowNumber,
        MadeFrom::LoadTime(Some(1_700_000_000_123_456)),
        MadeFrom::ByteOffset,
        MadeFrom::FilePath,
        MadeFrom::RunId(Some("20260728-120000-0123456789abcdef".to_owned())),
        MadeFrom::PackageHash(Some("5f3a".to_owned())),
        MadeFrom::Slice,
    ];
    let made = prop_oneof![3 => Just(vec![]), 2 => subsequence(froms.to_vec(), 1..=8)];
    (read_layout(), made).prop_map(|((mut layout, row_end), made)| {
        let made = std::iter::zip(1.., made);
        layout.made = made.map(|(number, from)| MadeColumn { name: format!("made {number}"), from }).collect();
        (layout, row_end)
    })
}

fn read_layout() -> impl Strategy<Value = (Layout, RowEnd)> {
    let layout = prop_oneof![
        1 => (plain_layout(), select(vec![RowEnd::Lf, RowEnd::Either, RowEnd::OnlyLf, RowEnd::OnlyCrlf])),
        1 => formatted((plain_layout(), select(vec![RowEnd::Lf, RowEnd::Either]))),
        2 => general_layout(),
        1 => formatted(general_layout()),
    ];
    (layout, 0_u8..16, prop::collection::vec(any::<u8>(), 8)).prop_map(
        |((mut layout, row_end), decision, dispositions)| {
            dialects::encoding(&mut layout, &row_end, decision);
            for (column, decision) in std::iter::zip(&mut layout.columns, dispositions.into_iter().cycle()) {
                set_dispositions(column, decision);
            }
            (layout, row_end)
        },
    )
}

/// What happens to a row on its way into the file.
#[derive(Debug, Clone)]
enum Fate {
    Whole,
    WithoutLastField,
    WithExtraField,
    WithoutTrailingDelimiter,
    Blank,
    Junk(Vec<u16>),
    Comment(Vec<u16>),
}

/// What happens to a field on its way into a row.
#[derive(Debug, Clone)]
enum Dress {
    Plain,
    Qualified,
    /// Qualified, with more text in it.
    Longer(Vec<u16>),
    /// Something stands behind the closing qualifier.
    TextBehind(Vec<u16>),
    /// Qualified, between blanks.
    Blanks(usize, usize),
    /// A qualifier, or an escape, somewhere.
    Stray(usize, bool),
    /// More text in it, with escapes.
    Escaped(Vec<u16>),
    Unclosed,
}

/// Puts fields and rows together.
struct Tailor<'a> {
    layout: &'a Layout,
    row_end: &'a RowEnd,
    pieces: Vec<Vec<u8>>,
}

impl Tailor<'_> {
    fn telling(&self, indexes: &[u16]) -> Vec<u8> {
        indexes.iter().flat_map(|&index| &self.pieces[usize::from(index) % self.pieces.len()]).copied().collect()
    }

    /// The text between qualifiers, which are doubled or, on request and if there is one, escaped.
    fn qualified(&self, text: &[u8], with_escape: bool) -> Vec<u8> {
        let Some(qualifier) = self.layout.qualifier.map(|qualifier| qualifier as u8) else { return text.to_vec() };
        [&[qualifier], self.inner(text, with_escape).as_slice(), &[qualifier]].concat()
    }

    fn inner(&self, text: &[u8], with_escape: bool) -> Vec<u8> {
        let (qualifier, escape) = (self.layout.qualifier.map(|one| one as u8), self.layout.escape.map(|one| one as u8));
        let mut inner = vec![];
        for &byte in text {
            if escape.is_some() && (Some(byte) == escape || (Some(byte) == qualifier && with_escape)) {
                inner.extend(escape);
            } else if Some(byte) == qualifier {
                inner.extend(qualifier);
            }
            inner.push(byte);
        }
        inner
    }

    /// The text with an escape before everything that could mean something.
    fn escaped(&self, text: &[u8]) -> Vec<u8> {
        let Some(escape) = self.layout.escape.map(|escape| escape as u8) else { return text.to_vec() };
        let mut escaped = vec![];
        for &byte in text {
            if !byte.is_ascii_alphanumeric() && byte.is_ascii() {
                escaped.push(escape);
            }
            escaped.push(byte);
        }
        escaped
    }

    fn put_on(&self, dress: &Dress, text: &[u8]) -> Vec<u8> {
        match dress {
            Dress::Plain => text.to_vec(),
            Dress::Qualified => self.qualified(text, text.len().is_multiple_of(2)),
            Dress::Longer(more) => self.qualified(&[text, &self.telling(more)].concat(), more.len().is_multiple_of(2)),
            Dress::TextBehind(behind) => [self.qualified(text, false), self.telling(behind)].concat(),
            Dress::Blanks(front, back) => {
                [&b" \t "[..*front], &self.qualified(text, false), &b" \t "[..*back]].concat()
            }
            Dress::Stray(at, is_escape) => {
                let stray = if *is_escape { self.layout.escape } else { self.layout.qualifier };
                let (front, back) = text.split_at(*at % (text.len() + 1));
                [front, stray.map(String::from).unwrap_or_default().as_bytes(), back].concat()
            }
            Dress::Escaped(more) => self.escaped(&[text, &self.telling(more)].concat()),
            Dress::Unclosed => match self.layout.qualifier {
                Some(qualifier) => [&[qualifier as u8], self.inner(text, false).as_slice()].concat(),
                None => text.to_vec(),
            },
        }
    }

    fn row(&self, fields: Vec<(Vec<u8>, Dress)>, fate: Fate, other_end: bool) -> Vec<u8> {
        let mut fields: Vec<Vec<u8>> = fields.iter().map(|(text, dress)| self.put_on(dress, text)).collect();
        let mut trailing = self.layout.trailing_delimiter;
        match fate {
            Fate::Whole => {}
            Fate::WithoutLastField => drop(fields.pop()),
            Fate::WithExtraField => fields.push(b"x".to_vec()),
            Fate::WithoutTrailingDelimiter => trailing = !trailing,
            Fate::Blank => (fields, trailing) = (vec![], false),
            Fate::Junk(junk) => fields = vec![self.telling(&junk)],
            Fate::Comment(text) => {
                let mark = self.layout.comment.clone().unwrap_or_default();
                (fields, trailing) = (vec![[mark.as_bytes(), &self.telling(&text)].concat()], false);
            }
        }
        let mut bytes = vec![];
        for (column, field) in fields.iter().enumerate() {
            bytes.extend_from_slice(field);
            if trailing || column + 1 < fields.len() {
                bytes.extend(dialects::delimiter(self.layout, column));
            }
        }
        bytes.extend(match self.row_end {
            RowEnd::Lf if other_end => b"\r\n".to_vec(),
            RowEnd::Either | RowEnd::Exactly(_) if other_end => b"\n".to_vec(),
            row_end => dialects::row_end_text(self.layout, row_end),
        });
        bytes
    }
}

fn telling(most: usize) -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(any::<u16>(), 0..most)
}

fn dress(dirt: u32) -> impl Strategy<Value = Dress> {
    prop_oneof![
        30 => Just(Dress::Plain),
        30 => Just(Dress::Qualified),
        10 => telling(8).prop_map(Dress::Longer),
        10 => telling(5).prop_map(Dress::Escaped),
        10 => (0_usize..4, 0_usize..4).prop_map(|(front, back)| Dress::Blanks(front, back)),
        dirt / 10 => telling(6).prop_map(Dress::TextBehind),
        dirt / 10 => (0_usize..20, any::<bool>()).prop_map(|(at, is_escape)| Dress::Stray(at, is_escape)),
        dirt / 40 => Just(Dress::Unclosed),
    ]
}

/// A file of the layout. `dirt` says how often something is wrong with it; 0 gives the regular blocks of the quick path.
fn file(layout: &Layout, row_end: &RowEnd, dirt: u32) -> impl Strategy<Value = Vec<u8>> + use<> {
    let fields: Vec<_> = layout.columns.iter().map(|column| (field_of(column, dirt), dress(dirt))).collect();
    let fate = prop_oneof![
        60 => Just(Fate::Whole),
        dirt / 4 => Just(Fate::WithoutLastField),
        dirt / 4 => Just(Fate::WithExtraField),
        dirt / 4 => Just(Fate::WithoutTrailingDelimiter),
        dirt / 4 => Just(Fate::Blank),
        dirt / 4 => telling(20).prop_map(Fate::Junk),
        dirt / 4 => telling(20).prop_map(Fate::Comment),
    ];
    let other_end = prop::bool::weighted(if dirt == 0 { 0.0 } else { 0.1 });
    let row = (fields, fate, other_end);
    let (layout, row_end) = (layout.clone(), row_end.clone());
    (prop::collection::vec(row, 0..90), 0_usize..4).prop_map(move |(rows, cut)| {
        let tailor = Tailor { pieces: dialects::pieces(&layout, &row_end), layout: &layout, row_end: &row_end };
        let rows = rows.into_iter().map(|(fields, fate, other_end)| tailor.row(fields, fate, other_end));
        let mut bytes: Vec<u8> = rows.flatten().collect();
        bytes.truncate(bytes.len().saturating_sub(cut));
        bytes
    })
}

#[derive(Debug, Clone)]
struct Case {
    layout: Layout,
    row_end: RowEnd,
    bytes: Vec<u8>,
    first_byte: u64,
    reads: Vec<usize>,
    padding: Vec<u8>,
}

fn case() -> impl Strategy<Value = Case> {
    let content = (layout(), select(vec![0_u32, 4, 40])).prop_flat_map(|((layout, row_end), dirt)| {
        let bytes = file(&layout, &row_end, dirt);
        (Just(layout), Just(row_end), bytes)
    });
    let reads = prop_oneof![
        prop::collection::vec(1_usize..300, 1..6),
        prop::collection::vec(300_usize..3000, 1..3),
        Just(vec![100_000]),
        Just(vec![1]),
    ];
    let padding = prop_oneof![
        Just(b"|,\t;1234567890".to_vec()),
        Just(b"9".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\xFF\0".to_vec()),
        Just(b" ".to_vec()),
    ];
    (content, select(vec![0, 3, 5_000_000_000_u64]), reads, padding).prop_map(
        |((layout, row_end, bytes), first_byte, reads, padding)| Case {
            layout,
            row_end,
            bytes,
            first_byte,
            reads,
            padding,
        },
    )
}

fn check(case: &Case) {
    let Case { layout, row_end, bytes, first_byte, reads, padding } = case;
    let expected = reference::parse(layout, row_end, bytes, *first_byte);
    for driver in Driver::all(reads, padding) {
        let found = driver.run(layout, row_end, bytes, *first_byte);
        let text = bytes.escape_ascii();
        for (found, expected) in std::iter::zip(&found.rejects, &expected.rejects) {
            assert_eq!(found, expected, "{driver:?} {text}");
        }
        for (row, (found, expected)) in std::iter::zip(&found.rows, &expected.rows).enumerate() {
            assert_eq!(found, expected, "good row {row}, {driver:?} {text}");
        }
        assert_eq!(found, expected, "{driver:?} {text}");
    }
}

/// `HEADRACE_CASES_PERCENT`: fewer of them, where each takes long.
fn config(cases: u32) -> ProptestConfig {
    let percent = std::env::var("HEADRACE_CASES_PERCENT").map_or(100, |text| text.parse().unwrap());
    let cases = (cases * percent / 100).max(1);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(700))]

    #[test]
    fn parser_equals_reference(case in case()) {
        check(&case);
    }
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn rows_of_places_equal_the_reference(
        (layout, row_end) in placed_layout(),
        (seed, rows, dirt, cut) in (any::<u64>(), 0_usize..200, select(vec![0_u8, 1, 8, 80]), 0_usize..6),
        reads in prop_oneof![prop::collection::vec(1_usize..300, 1..6), Just(vec![100_000]), Just(vec![1])],
        first_byte in select(vec![0, 3, 5_000_000_000_u64]),
    ) {
        let mut bytes = places::file(&layout, &row_end, rows, dirt, &mut Random(seed));
        bytes.truncate(bytes.len().saturating_sub(cut));
        check(&Case { layout, row_end, bytes, first_byte, reads, padding: b" 9\n".to_vec() });
    }
}

proptest! {
    #![proptest_config(config(300))]

    /// No structure at all: whatever the bytes are, the parser agrees with the reference and does not panic.
    #[test]
    fn parser_equals_reference_on_noise(
        layout in plain_layout(),
        row_end in select(vec![RowEnd::Lf, RowEnd::Either, RowEnd::OnlyLf, RowEnd::OnlyCrlf]),
        bytes in prop::collection::vec(prop_oneof![3 => select(b"\n\r|,1\"\"".to_vec()), 1 => hostile_byte()], 0..400),
        reads in prop::collection::vec(1_usize..100, 1..4),
    ) {
        check(&Case { layout, row_end, bytes, first_byte: 0, reads, padding: b"|1\n".to_vec() });
    }

    /// One text file cut at every place: the cut never shows.
    #[test]
    fn every_cut_gives_the_same_rows(
        (layout, row_end) in layout(),
        seed in prop::collection::vec(hostile_byte(), 0..20),
        more in telling(12),
    ) {
        let mut bytes = b"1|\"2|\"|3|\n\n4,\"5\"\"\r\n\"\r\nabc".to_vec();
        bytes.extend(seed);
        let pieces = dialects::pieces(&layout, &row_end);
        bytes.extend(Tailor { layout: &layout, row_end: &row_end, pieces }.telling(&more));
        for first in 1..=bytes.len() {
            let (layout, row_end, bytes, reads) = (layout.clone(), row_end.clone(), bytes.clone(), vec![first, 100]);
            check(&Case { layout, row_end, bytes, first_byte: 7, reads, padding: b"8".to_vec() });
        }
    }
}

/// All columns text: nothing but the dialect decides.
fn texts((mut layout, row_end): (Layout, RowEnd), nullable: bool) -> (Layout, RowEnd) {
    for column in &mut layout.columns {
        (column.column_type, column.nullable) = (ColumnType::String, nullable);
    }
    (layout, row_end)
}

proptest! {
    #![proptest_config(config(1500))]

    /// Tokens of the dialect and parts of them, one after the other.
    #[test]
    fn parser_equals_reference_on_tokens(
        ((mut layout, row_end), decision) in
            (general_layout(), any::<bool>()).prop_map(|(layout, nullable)| texts(layout, nullable)).prop_flat_map(|one| (Just(one), 0_u8..16)),
        pieces in telling(120),
        reads in prop::collection::vec(1_usize..200, 1..4),
    ) {
        dialects::encoding(&mut layout, &row_end, decision);
        let made = dialects::pieces(&layout, &row_end);
        let bytes = Tailor { layout: &layout, row_end: &row_end, pieces: made }.telling(&pieces);
        check(&Case { layout, row_end, bytes, first_byte: 2, reads, padding: b"|1\n".to_vec() });
    }
}

proptest! {
    #![proptest_config(config(12))]

    /// Short rows that are filled: a block has more of them than a batch may have.
    #[test]
    fn one_block_gives_several_batches(
        (mut layout, mut row_end) in general_layout(),
        columns in 250_usize..600,
        rows in prop::collection::vec((telling(4), any::<bool>()), 200..700),
        read in 200_usize..100_000,
    ) {
        layout.columns =
            (0..columns).map(|index| Column::new(format!("c{index}"), ColumnType::String, index > 0)).collect();
        layout.short_rows = ShortRows::Fill;
        layout.row_end_in_fields = RowEndInFields::EndsRow;
        layout.blanks_around_qualifier = true; // not for the structural pass, whatever else was left out
        layout.qualifier = Some('"');
        dialects::settle(&mut layout, &mut row_end);
        let pieces = dialects::pieces(&layout, &row_end);
        let tailor = Tailor { layout: &layout, row_end: &row_end, pieces };
        let mut bytes = vec![];
        for (field, is_plain) in rows {
            bytes.extend(if is_plain { b"a".to_vec() } else { tailor.telling(&field) });
            bytes.extend(dialects::row_end_text(&layout, &row_end));
        }
        let reads = vec![read];
        check(&Case { layout, row_end, bytes, first_byte: 2, reads, padding: b"|1\n".to_vec() });
    }
}
