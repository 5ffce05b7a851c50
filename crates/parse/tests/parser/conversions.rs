//! Every type, text after text: sweeps over the edges of the quick paths against the reference.

use headrace_parse::Parser;
use headrace_types::{Column, ColumnType, EmptyField, RowEnd, Rule};
use proptest::prelude::*;

use crate::drive::Driver;
use crate::examples::{decimal_type, edges, one_column, valid};
use crate::reference;

fn check(column_type: ColumnType, texts: &[Vec<u8>]) {
    let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).filter(|text| !text.contains(&b'\n')).collect();
    let mut bytes = texts.join(&b'\n');
    bytes.push(b'\n');
    for (nullable, tokens) in [(true, vec![]), (false, vec![]), (true, vec!["0", "NULL"])] {
        let layout = one_column(column_type, nullable, &tokens);
        let expected = reference::parse(&layout, &RowEnd::Lf, &bytes, 0);
        // The instruction sets differ only in the structural pass, which other tests cover.
        for driver in &Driver::all(&[1 << 20], b"1234567890")[..1] {
            let found = driver.run(&layout, &RowEnd::Lf, &bytes, 0);
            for (found, expected) in std::iter::zip(&found.rejects, &expected.rejects) {
                assert_eq!(found, expected, "{column_type}");
            }
            assert_eq!(found, expected, "{column_type}");
        }
    }
}

/// Pairs of the texts in two columns, side by side.
fn check_pairs(column_type: ColumnType, texts: &[Vec<u8>]) {
    let mut layout = one_column(column_type, false, &[]);
    layout.columns.push(Column::new("second", column_type, false));
    let pairs = std::iter::zip(texts, texts.iter().cycle().skip(texts.len() / 2 + 1));
    let mut bytes = vec![];
    for (one, other) in pairs {
        bytes.extend_from_slice(&[one, b"|".as_slice(), other, b"\n"].concat());
    }
    let expected = reference::parse(&layout, &RowEnd::Lf, &bytes, 0);
    for driver in &Driver::all(&[1 << 20], b"1234567890") {
        assert_eq!(driver.run(&layout, &RowEnd::Lf, &bytes, 0), expected, "{column_type}");
    }
}

fn texts<T: ToString>(texts: impl IntoIterator<Item = T>) -> Vec<Vec<u8>> {
    texts.into_iter().map(|text| text.to_string().into_bytes()).collect()
}

fn all_types() -> Vec<ColumnType> {
    use ColumnType::*;
    let mut types = vec![
        Int16,
        Int32,
        Int64,
        Float32,
        Float64,
        Bool,
        Date,
        Time,
        Timestamp,
        TimestampTz,
        String,
        Bytes,
        Uuid,
        Json,
        Char { length: 1 },
        Char { length: 3 },
        Char { length: 20 },
        Varchar { length: 3 },
        Varchar { length: 13 },
    ];
    for (precision, scale) in
        [(1, 0), (1, 1), (4, 2), (9, 0), (15, 2), (18, 0), (18, 8), (18, 9), (18, 18), (19, 0), (38, 2), (38, 38)]
    {
        types.push(Decimal { precision, scale });
    }
    types
}

#[test]
fn edges_of_every_type_in_every_type() {
    let types = all_types();
    let all: Vec<Vec<u8>> = types.iter().flat_map(|column_type| texts(edges(*column_type).iter())).collect();
    for column_type in types {
        check(column_type, &all);
    }
}

#[test]
fn every_byte_at_every_place_of_a_number_date_or_time() {
    for (column_type, text) in [
        (ColumnType::Int64, "1234567"),
        (ColumnType::Int64, "1234567890123456"),
        (ColumnType::Int64, "-123456789012345678"),
        (ColumnType::Decimal { precision: 15, scale: 2 }, "1234.56"),
        (ColumnType::Decimal { precision: 18, scale: 8 }, "12345678.12345678"),
        (ColumnType::Float64, "-1.5e10"),
        (ColumnType::Bool, "true"),
        (ColumnType::Date, "2024-02-29"),
        (ColumnType::Time, "12:34:56.789012"),
        (ColumnType::Timestamp, "2024-02-29 12:34:56.7"),
        (ColumnType::TimestampTz, "2024-02-29T12:34:56+01:30"),
        (ColumnType::Uuid, "00112233-4455-6677-8899-aabbccddeeff"),
        (ColumnType::Bytes, "\\x00ff"),
        (ColumnType::Json, "[1.5e1,\"\\u00e9\"]"),
        (ColumnType::Varchar { length: 5 }, "aé€b"),
    ] {
        let mut all = vec![];
        for place in 0..text.len() {
            for byte in 0..=255 {
                let mut replaced = text.as_bytes().to_vec();
                replaced[place] = byte;
                all.push(replaced);
                let mut inserted = text.as_bytes().to_vec();
                inserted.insert(place, byte);
                all.push(inserted);
            }
            all.push(text.as_bytes()[..place].to_vec());
            all.push(text.as_bytes()[place..].to_vec());
        }
        check(column_type, &all.into_iter().filter(|text| !text.contains(&b'|')).collect::<Vec<_>>());
    }
}

#[test]
fn integers_around_every_power_of_two_and_ten() {
    let mut all = vec![];
    let powers = (0..127).map(|bits| 1_i128 << bits).chain((0..=38).map(|digits| 10_i128.pow(digits)));
    for power in powers {
        for value in [power - 1, power, power.saturating_add(1)] {
            all.extend(texts([
                value.to_string(),
                format!("-{value}"),
                format!("+{value}"),
                format!("0{value}"),
                format!("-000{value}"),
            ]));
        }
    }
    for column_type in [ColumnType::Int16, ColumnType::Int32, ColumnType::Int64] {
        check(column_type, &all);
    }
    for (precision, scale) in [(1, 0), (8, 0), (17, 0), (18, 0), (18, 3), (19, 0), (37, 1), (38, 0), (38, 38)] {
        check(ColumnType::Decimal { precision, scale }, &all);
    }
}

#[test]
fn every_16_bit_integer() {
    check(ColumnType::Int16, &texts(-33_000..33_000));
}

#[test]
fn decimals_of_every_number_of_digits_on_both_sides_of_the_point() {
    let mut all = vec![];
    for whole in 0..=39 {
        for fraction in 0..=39 {
            for digit in ["9", "1", "0"] {
                let text = format!("{}.{}", digit.repeat(whole), digit.repeat(fraction));
                all.extend(texts([format!("-{text}"), text]));
            }
        }
    }
    for precision in [1, 2, 7, 8, 9, 10, 15, 16, 17, 18, 19, 20, 37, 38] {
        for scale in [0, 1, 2, 7, 8, 9, 16, 17, 18, 19, 37, 38].into_iter().filter(|scale| *scale <= precision) {
            check(ColumnType::Decimal { precision, scale }, &all);
        }
    }
}

#[test]
fn whole_numbers_in_every_decimal_type() {
    let whole = |count: usize| ["9", "1", "0", "10", "099", "5."].map(|digit| digit.repeat(count));
    let all: Vec<_> = (0..=39).flat_map(whole).flat_map(|text| texts([format!("-{text}"), text])).collect();
    let pointed = texts(["0.5", "1.25", "-7.00", "12.34567"]);
    let mixed: Vec<_> =
        all.iter().zip(pointed.iter().cycle()).flat_map(|(one, two)| [two.clone(), one.clone()]).collect();
    for precision in [1, 2, 8, 9, 15, 17, 18, 19, 20, 37, 38] {
        for scale in [0, 1, 2, 7, 8].into_iter().filter(|scale| *scale <= precision) {
            check(ColumnType::Decimal { precision, scale }, &all);
            check(ColumnType::Decimal { precision, scale }, &mixed);
        }
    }
}

#[test]
fn decimals_with_a_point_anywhere() {
    let digits = "9081726354453627180912345";
    for longest in [7, 8, 9, 16, 17, 24] {
        let mut all = texts([".", "-", "-.", "..", "1.2.", ".1.2", "1.2.3", "-1-", "1-2", "+.5", "0.", "00.00"]);
        for length in 1..longest {
            for point in 0..=length {
                let (whole, fraction) = digits[..length].split_at(point);
                all.extend(texts([format!("{whole}.{fraction}"), format!("-{whole}.{fraction}"), whole.to_owned()]));
            }
        }
        all.retain(|text| !text.is_empty() && text.len() <= longest);
        for (precision, scale) in [(15, 2), (4, 1), (18, 7), (18, 0), (9, 8), (38, 3)] {
            check(ColumnType::Decimal { precision, scale }, &all);
            check_pairs(ColumnType::Decimal { precision, scale }, &all);
        }
    }
}

#[test]
fn every_month_and_day_of_years_around_the_leap_rules() {
    let mut all = vec![];
    for year in [0, 1, 4, 99, 100, 400, 1582, 1600, 1700, 1900, 1969, 1970, 1999, 2000, 2023, 2024, 2100, 9999] {
        for month in 0..=19 {
            for day in 0..=39 {
                all.push(format!("{year:04}-{month:02}-{day:02}"));
            }
        }
    }
    check(ColumnType::Date, &texts(&all));
    check(ColumnType::Timestamp, &texts(all.iter().map(|day| format!("{day} 23:59:59.999999"))));
    check(ColumnType::TimestampTz, &texts(all.iter().map(|day| format!("{day} 00:00:00-15:59"))));
}

#[test]
fn texts_of_every_length_around_inline_views() {
    let mut all = vec![];
    for length in 0..40 {
        for last in ["a", " ", "é", "😀", "\0"] {
            all.push("x".repeat(length) + last);
            all.push("é".repeat(length) + last + "  ");
        }
    }
    for length in [1, 4, 11, 12, 13, 16, 17, 39] {
        for column_type in
            [ColumnType::Char { length }, ColumnType::Varchar { length }, ColumnType::String, ColumnType::Json]
        {
            check(column_type, &texts(&all));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decimals_of_every_type(
        (column_type, all) in decimal_type().prop_flat_map(|kind| (Just(kind), prop::collection::vec(valid(kind), 1..100)))
    ) {
        check(column_type, &texts(all));
    }

    #[test]
    fn floats_are_rounded_as_the_standard_library_does(
        all in prop::collection::vec("[+-]?[0-9]{0,25}\\.?[0-9]{0,25}([eE][+-]?[0-9]{1,4})?", 1..200)
    ) {
        check(ColumnType::Float64, &texts(&all));
        check(ColumnType::Float32, &texts(&all));
    }
}

/// The standard library, which the reference asks, cuts such exponents too.
#[test]
fn exponents_may_undo_any_number_of_digits() {
    let small = |zeros: usize, rest: &str| format!("0.{}{rest}", "0".repeat(zeros));
    let large = |zeros: usize, rest: &str| format!("1{}{rest}", "0".repeat(zeros));
    for (text, expected) in [
        (small(65_599, "125e65600"), Some(1.25)),
        (small(655_358, "1e655359"), Some(1.0)),
        (small(655_359, "1e655360"), Some(1.0)),
        (small(655_359, "1e+0655360").replacen("0.", "-.", 1), Some(-1.0)),
        (small(700_000, "25E700003"), Some(250.0)),
        (large(655_360, "e-655360"), Some(1.0)),
        (large(655_360, ".5e-655361"), Some(0.1)),
        (large(65_600, "e-655360"), Some(0.0)),
        (small(65_600, "1e655360"), None),
        (small(65_600, "1e99999999999999999999"), None),
        (large(65_600, "e-99999999999999999999"), Some(0.0)),
        (small(700_000, "0e700003"), Some(0.0)),
    ] {
        let layout = one_column(ColumnType::Float64, false, &[]);
        let found = Driver::all(&[1 << 20], b"1234567890")[0].run(&layout, &RowEnd::Lf, text.as_bytes(), 0);
        let value = expected.map(|number: f64| vec![vec![reference::Value::Float(number.to_bits())]]);
        let about = format!("{} bytes, {}", text.len(), &text[text.len() - 20..]);
        assert_eq!(found.rows, value.unwrap_or_default(), "{about}");
        assert_eq!(found.rejects.first().map(|reject| reject.rule), expected.is_none().then_some(Rule::OutOfRange));
    }
}

#[test]
fn what_stands_for_empty_fields_is_a_value_of_the_type() {
    let mut refused = 0;
    for column_type in all_types() {
        for text in edges(column_type).iter().filter(|text| !text.is_empty()) {
            let mut layout = one_column(column_type, false, &[]);
            layout.columns[0].empty = EmptyField::Value((*text).to_owned());
            let expected = reference::parse(&layout, &RowEnd::Lf, b"\n", 0);
            if expected.rejects.is_empty() {
                let found = Driver::all(&[1 << 20], b"1234567890")[0].run(&layout, &RowEnd::Lf, b"\n", 0);
                assert_eq!(found, expected, "{column_type} {text:?}");
            } else {
                let what = Parser::new(&layout).err().map(|error| error.what);
                let expected = "layout: what `empty` of column `value` gives is no value of it";
                assert_eq!(what.as_deref(), Some(expected), "{column_type} {text:?}");
                refused += 1;
            }
        }
    }
    assert!(refused > 100, "{refused}");
}
