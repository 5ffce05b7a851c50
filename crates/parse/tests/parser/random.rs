//! Random layouts, files and cuts: the parser against the reference.

use headrace_types::{Column, Layout, RowEnd};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::drive::Driver;
use crate::examples::{column_type, field, hostile_byte};
use crate::reference;

fn layout() -> impl Strategy<Value = Layout> {
    let columns = prop::collection::vec((column_type(), any::<bool>()), 1..7);
    let delimiter = prop_oneof![8 => select(vec!['|', ',', '\t', ';']), 1 => select(vec!['5', '.', '-', ' ', '"', '\u{1}', '\u{7f}'])];
    let tokens = subsequence(vec!["NULL", "\\N", "0", "-", "n/a", ""], 0..3);
    let qualifier =
        prop_oneof![2 => Just(None), 3 => Just(Some('"')), 1 => select(vec![Some('\''), Some('-'), Some('\u{1}')])];
    (columns, delimiter, qualifier, any::<bool>(), prop_oneof![3 => Just(0), 1 => 1_u32..4], tokens).prop_map(
        |(columns, delimiter, qualifier, trailing_delimiter, header_rows, tokens)| Layout {
            delimiter,
            // Layouts in which a null token could never be met are refused.
            qualifier: qualifier.filter(|qualifier| {
                *qualifier != delimiter && !tokens.iter().any(|token| token.starts_with(*qualifier))
            }),
            trailing_delimiter,
            header_rows,
            null_tokens: tokens.into_iter().map(str::to_owned).collect(),
            columns: columns
                .into_iter()
                .enumerate()
                .map(|(index, (column_type, nullable))| Column { name: format!("c{index}"), column_type, nullable })
                .collect(),
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
    Junk(Vec<u8>),
}

/// What happens to a field on its way into a row, when the layout has a qualifier.
#[derive(Debug, Clone)]
enum Dress {
    Plain,
    Qualified,
    /// Qualified, with more text in it.
    Longer(Vec<u8>),
    /// Something stands behind the closing qualifier.
    TextBehind(Vec<u8>),
    /// A qualifier somewhere, doubled or not.
    Stray(usize),
    Unclosed,
}

impl Dress {
    fn put_on(&self, qualifier: u8, text: &[u8]) -> Vec<u8> {
        let double = |text: &[u8]| text.split(|&byte| byte == qualifier).collect::<Vec<_>>().join(&[qualifier; 2][..]);
        let qualified = |text: &[u8]| [&[qualifier], double(text).as_slice(), &[qualifier]].concat();
        match self {
            Dress::Plain => text.to_vec(),
            Dress::Qualified => qualified(text),
            Dress::Longer(more) => qualified(&[text, more].concat()),
            Dress::TextBehind(behind) => [qualified(text).as_slice(), behind].concat(),
            Dress::Stray(at) => {
                let (front, back) = text.split_at(*at % (text.len() + 1));
                [front, &[qualifier], back].concat()
            }
            Dress::Unclosed => [&[qualifier], double(text).as_slice()].concat(),
        }
    }
}

fn dress(dirt: u32) -> impl Strategy<Value = Dress> {
    // Bytes that mean something; `"` and `'` are usual qualifiers.
    let telling = || prop::collection::vec(select(b"\n\n\r|,\t;\"\"'- ab".to_vec()), 1..12);
    prop_oneof![
        30 => Just(Dress::Plain),
        30 => Just(Dress::Qualified),
        10 => telling().prop_map(Dress::Longer),
        dirt / 10 => telling().prop_map(Dress::TextBehind),
        dirt / 10 => (0_usize..20).prop_map(Dress::Stray),
        dirt / 40 => Just(Dress::Unclosed),
    ]
}

/// A file of the layout. `dirt` says how often something is wrong with it; 0 gives the regular blocks of the quick path.
fn file(layout: &Layout, row_end: RowEnd, dirt: u32) -> impl Strategy<Value = Vec<u8>> + use<> {
    let fields: Vec<_> = layout.columns.iter().map(|column| (field(column.column_type, dirt), dress(dirt))).collect();
    let fate = prop_oneof![
        60 => Just(Fate::Whole),
        dirt / 4 => Just(Fate::WithoutLastField),
        dirt / 4 => Just(Fate::WithExtraField),
        dirt / 4 => Just(Fate::WithoutTrailingDelimiter),
        dirt / 4 => Just(Fate::Blank),
        dirt / 4 => prop::collection::vec(hostile_byte(), 0..30).prop_map(Fate::Junk),
    ];
    let other_end = prop::bool::weighted(if dirt == 0 { 0.0 } else { 0.1 });
    let row = (fields, fate, other_end);
    let layout = layout.clone();
    (prop::collection::vec(row, 0..90), any::<bool>()).prop_map(move |(rows, last_end)| {
        let mut bytes = vec![];
        for (fields, fate, other_end) in rows {
            let dressed = |(field, dress): (Vec<u8>, Dress)| match layout.qualifier {
                Some(qualifier) => dress.put_on(qualifier as u8, &field),
                None => field,
            };
            let mut fields: Vec<Vec<u8>> = fields.into_iter().map(dressed).collect();
            let mut trailing = layout.trailing_delimiter;
            let mut blank = false;
            match fate {
                Fate::Whole => {}
                Fate::WithoutLastField => drop(fields.pop()),
                Fate::WithExtraField => fields.push(b"x".to_vec()),
                Fate::WithoutTrailingDelimiter => trailing = !trailing,
                Fate::Blank => blank = true,
                Fate::Junk(junk) => fields = vec![junk],
            }
            if !blank {
                bytes.extend(fields.join(&(layout.delimiter as u8)));
                bytes.extend(trailing.then_some(layout.delimiter as u8));
            }
            let is_crlf = (row_end == RowEnd::Crlf) != other_end;
            bytes.extend_from_slice(if is_crlf { b"\r\n" } else { b"\n" });
        }
        if !last_end {
            bytes.pop();
        }
        bytes
    })
}

#[derive(Debug, Clone)]
struct Case {
    layout: Layout,
    row_end: RowEnd,
    at_file_start: bool,
    bytes: Vec<u8>,
    first_byte: u64,
    reads: Vec<usize>,
    padding: Vec<u8>,
}

fn case() -> impl Strategy<Value = Case> {
    let shape = (layout(), select(vec![RowEnd::Lf, RowEnd::Crlf]), select(vec![0_u32, 4, 40]));
    let content = shape.prop_flat_map(|(layout, row_end, dirt)| {
        let bytes = file(&layout, row_end, dirt);
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
    (content, any::<bool>(), select(vec![0, 3, 5_000_000_000_u64]), reads, padding).prop_map(
        |((layout, row_end, bytes), at_file_start, first_byte, reads, padding)| Case {
            layout,
            row_end,
            at_file_start,
            bytes,
            first_byte,
            reads,
            padding,
        },
    )
}

fn check(case: &Case) {
    let Case { layout, row_end, at_file_start, bytes, first_byte, reads, padding } = case;
    let expected = reference::parse(layout, *row_end, *at_file_start, bytes, *first_byte);
    for driver in Driver::all(reads, padding) {
        let found = driver.run(layout, *row_end, *at_file_start, bytes, *first_byte);
        let text = String::from_utf8_lossy(bytes);
        for (found, expected) in std::iter::zip(&found.rejects, &expected.rejects) {
            assert_eq!(found, expected, "{driver:?} {text:?}");
        }
        for (row, (found, expected)) in std::iter::zip(&found.rows, &expected.rows).enumerate() {
            assert_eq!(found, expected, "good row {row}, {driver:?} {text:?}");
        }
        assert_eq!(found, expected, "{driver:?} {text:?}");
    }
}

fn config(cases: u32) -> ProptestConfig {
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
    #![proptest_config(config(300))]

    /// No structure at all: whatever the bytes are, the parser agrees with the reference and does not panic.
    #[test]
    fn parser_equals_reference_on_noise(
        layout in layout(),
        row_end in select(vec![RowEnd::Lf, RowEnd::Crlf]),
        bytes in prop::collection::vec(prop_oneof![3 => select(b"\n\r|,1\"\"".to_vec()), 1 => hostile_byte()], 0..400),
        reads in prop::collection::vec(1_usize..100, 1..4),
    ) {
        check(&Case { layout, row_end, at_file_start: true, bytes, first_byte: 0, reads, padding: b"|1\n".to_vec() });
    }

    /// One text file cut at every place: the cut never shows.
    #[test]
    fn every_cut_gives_the_same_rows(layout in layout(), seed in prop::collection::vec(hostile_byte(), 0..20)) {
        let mut bytes = b"1|\"2|\"|3|\n\n4,\"5\"\"\r\n\"\r\nabc".to_vec();
        bytes.extend(seed);
        for first in 1..=bytes.len() {
            let reads = vec![first, 100];
            check(&Case { layout: layout.clone(), row_end: RowEnd::Crlf, at_file_start: true, bytes: bytes.clone(), first_byte: 7, reads, padding: b"8".to_vec() });
        }
    }
}
