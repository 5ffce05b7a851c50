//! What the decoder reads: what servers wrote, what the encoder writes, and bytes that nobody sends.

use std::fs;

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StringViewArray};
use headrace_types::ColumnType as C;
use headrace_wire::postgres::{CopyEncoder, DecodeError, Fault, Form as F, Found, RowDecoder};
use proptest::prelude::*;

use crate::golden::{Case, cases, folder};
use crate::plan::{FORMS, pairs, types};
use crate::values::{Text, Wanted, array, batch};

/// The rows of a stream, each behind the count of its columns.
fn rows(stream: &[u8]) -> Vec<&[u8]> {
    let mut rest = stream.strip_prefix(CopyEncoder::header()).expect("the header");
    let mut rows = Vec::new();
    loop {
        let (count, behind) = rest.split_first_chunk().expect("a count");
        let Ok(count) = usize::try_from(i16::from_be_bytes(*count)) else { return rows };
        let mut end = 0;
        for _ in 0..count {
            let length = i32::from_be_bytes(behind[end..end + 4].try_into().unwrap());
            end += 4 + usize::try_from(length).unwrap_or(0);
        }
        rows.push(&behind[..end]);
        rest = &behind[end..];
    }
}

fn is_decoded(wanted: &Wanted) -> bool {
    RowDecoder::new(1, &[(0, wanted.column_type, wanted.form)]).is_ok()
}

/// What the decoder has to make of a column: of char(n), what is left without trailing blanks.
fn expected(wanted: &Wanted, array: &ArrayRef) -> ArrayRef {
    let C::Char { .. } = wanted.column_type else { return array.clone() };
    let texts = array.as_string_view().iter().map(|text| text.map(|text| text.trim_end_matches(' ')));
    std::sync::Arc::new(texts.collect::<StringViewArray>())
}

/// Reads the stream back, as far as the columns can be read: in one batch, and row by row.
pub fn check(wanted: &[Wanted], batch: &RecordBatch, stream: &[u8]) {
    let columns = || wanted.iter().enumerate().filter(|(_, own)| is_decoded(own));
    let places: Vec<_> = columns().map(|(place, own)| (place, own.column_type, own.form)).rev().collect();
    let mut decoder = RowDecoder::new(wanted.len(), &places).unwrap();
    let rows = rows(stream);
    for row in &rows {
        decoder.push(row).unwrap();
    }
    assert_eq!((decoder.rows(), decoder.bytes()), (rows.len(), rows.iter().map(|row| row.len()).sum()));
    let found = decoder.take().unwrap();
    assert_eq!(found.num_rows(), batch.num_rows());
    let whole: Vec<ArrayRef> = columns().map(|(place, own)| expected(own, batch.column(place))).rev().collect();
    for (found, expected) in found.columns().iter().zip(&whole) {
        assert_eq!(found, expected);
    }
    for (number, row) in rows.iter().enumerate() {
        decoder.push(row).unwrap();
        let one = decoder.take().unwrap();
        assert!(one.columns().iter().zip(&whole).all(|(found, whole)| *found == whole.slice(number, 1)));
    }
}

#[test]
fn the_values_are_those_of_the_server() {
    let mut read = 0;
    for Case { name, wanted, values } in cases() {
        if is_decoded(&wanted) {
            let stream = fs::read(folder().join(format!("{name}.copy"))).unwrap();
            check(std::slice::from_ref(&wanted), &batch(vec![array(wanted.column_type, &values)]), &stream);
            read += 1;
        }
    }
    assert!(read > 60, "{read} of the golden files");
}

#[test]
fn the_table_of_pairs_that_are_read() {
    let forms = |column_type| {
        let is_read = |form: &F| is_decoded(&Wanted { column_type, form: *form });
        FORMS.into_iter().filter(is_read).collect::<Vec<_>>()
    };
    for column_type in types() {
        let expected = match column_type {
            C::Int16 => vec![F::Int2],
            C::Int32 => vec![F::Int4],
            C::Int64 => vec![F::Int8],
            C::Decimal { .. } => vec![F::Numeric],
            C::Float32 => vec![F::Float4],
            C::Float64 => vec![F::Float8],
            C::Bool => vec![F::Bool],
            C::Date => vec![F::Date],
            C::Time => vec![F::Time],
            C::Timestamp => vec![F::Timestamp],
            C::TimestampTz => vec![F::Timestamptz],
            C::String | C::Char { .. } | C::Varchar { .. } => vec![F::Text],
            C::Bytes => vec![F::Bytea],
            C::Uuid => vec![F::Uuid],
            C::Json => vec![F::Json, F::Jsonb],
        };
        assert_eq!(forms(column_type), expected, "{column_type}");
    }
    // What is read can be written.
    let written = pairs();
    let unwritten =
        |own: &Wanted| !written.iter().any(|pair| (pair.column_type, pair.form) == (own.column_type, own.form));
    let all = types().into_iter().flat_map(|column_type| FORMS.map(|form| Wanted { column_type, form }));
    assert_eq!(all.filter(|own| is_decoded(own) && unwritten(own)).count(), 0);
    let refusal = |wanted: &[(usize, C, F)]| RowDecoder::new(1, wanted).err().expect("a refusal");
    assert_eq!(refusal(&[(0, C::Int32, F::Int8)]), "int8 cannot be read as int32 without loss");
    assert_eq!(refusal(&[(1, C::Int32, F::Int4)]), "no column 1 among 1");
    assert_eq!(refusal(&[(0, C::Int32, F::Int4), (0, C::Int32, F::Int4)]), "column 0 is wanted twice");
}

/// A row of one value.
fn row(value: &[u8]) -> Vec<u8> {
    [&(value.len() as i32).to_be_bytes(), value].concat()
}

fn pushed(column_type: C, form: F, value: &[u8]) -> Result<RecordBatch, DecodeError> {
    let mut decoder = RowDecoder::new(1, &[(0, column_type, form)]).unwrap();
    decoder.push(&row(value))?;
    Ok(decoder.take().unwrap())
}

fn numeric(weight: i16, sign: u16, scale: i16, digits: &[u16]) -> Vec<u8> {
    let header = [digits.len() as u16, weight as u16, sign, scale as u16];
    header.iter().chain(digits).flat_map(|number| number.to_be_bytes()).collect()
}

fn value_error(column_type: C, form: F, value: &[u8]) -> (Found, &'static str) {
    match pushed(column_type, form, value).unwrap_err() {
        DecodeError { column: Some(0), fault: Fault::Value { found, expected } } => (found, expected),
        other => panic!("{other:?}"),
    }
}

#[test]
fn numbers_that_columns_cannot_have_are_named() {
    let decimal = |precision, scale| C::Decimal { precision, scale };
    let shown = |column_type, value: &[u8]| match value_error(column_type, F::Numeric, value) {
        (Found::Text(text), _) => text,
        other => panic!("{other:?}"),
    };
    for (sign, text) in [(0xC000, "NaN"), (0xD000, "Infinity"), (0xF000, "-Infinity")] {
        assert_eq!(shown(decimal(9, 2), &numeric(0, sign, 0, &[])), text);
    }
    // Too many digits in front of the point, and behind it.
    assert_eq!(shown(decimal(5, 2), &numeric(0, 0, 2, &[1000, 100])), "1000.01");
    assert_eq!(shown(decimal(5, 1), &numeric(0, 0x4000, 3, &[12, 3450])), "-12.345");
    assert_eq!(shown(decimal(38, 0), &numeric(9, 0, 0, &[1000])), format!("1{}", "0".repeat(39)));
    assert_eq!(shown(decimal(38, 10), &numeric(30_000, 0, 0, &[1])).len(), 83, "the front of it");
    assert_eq!(shown(decimal(38, 38), &numeric(-10, 0, 40, &[1])), format!("0.{}1", "0".repeat(39)));
    // Zeros, wherever they stand, are no digits.
    let value = |value: &[u8]| {
        let batch = pushed(decimal(9, 2), F::Numeric, value).unwrap();
        batch.column(0).as_primitive::<Decimal64Type>().value(0)
    };
    assert_eq!(value(&numeric(3, 0, 8, &[0, 0, 7, 5, 5000, 0, 0])), 7_000_550);
    assert_eq!(value(&numeric(0, 0x4000, 0, &[12])), -1_200);
    assert_eq!(value(&numeric(0, 0, 0, &[])), 0);
}

#[test]
fn days_outside_the_years_of_files_are_named() {
    let shown = |column_type, form, value: &[u8]| value_error(column_type, form, value).0;
    let text = |text: &str| Found::Text(text.to_owned());
    assert_eq!(shown(C::Date, F::Date, &i32::MAX.to_be_bytes()), text("infinity"));
    assert_eq!(shown(C::Date, F::Date, &i32::MIN.to_be_bytes()), text("-infinity"));
    for (form, column_type) in [(F::Timestamp, C::Timestamp), (F::Timestamptz, C::TimestampTz)] {
        assert_eq!(shown(column_type, form, &i64::MAX.to_be_bytes()), text("infinity"));
        assert_eq!(shown(column_type, form, &i64::MIN.to_be_bytes()), text("-infinity"));
        let greatest = 9_223_371_331_199_999_999i64; // the last moment that the server has
        let since_1970 = i128::from(greatest) + 946_684_800_000_000;
        assert_eq!(shown(column_type, form, &greatest.to_be_bytes()), Found::Since1970(since_1970));
    }
    let [first, last] = [-719_162i32, 2_932_896].map(|day| day - 10_957);
    let day = |day: i32| pushed(C::Date, F::Date, &day.to_be_bytes()).is_ok();
    assert_eq!([first - 1, first, last, last + 1].map(day), [false, true, true, false]);
    let moment = |microseconds: i64| pushed(C::Timestamp, F::Timestamp, &microseconds.to_be_bytes()).is_ok();
    let [begin, end] = [first, last + 1].map(|day| i64::from(day) * 86_400_000_000);
    assert_eq!([begin - 1, begin, end - 1, end].map(moment), [false, true, true, false]);
    let time = |microseconds: i64| pushed(C::Time, F::Time, &microseconds.to_be_bytes()).is_ok();
    assert_eq!([-1, 0, 86_400_000_000, 86_400_000_001].map(time), [false, true, true, false]);
}

#[test]
fn texts_that_are_none() {
    let (found, expected) = value_error(C::String, F::Text, b"ab\xffc");
    assert_eq!((found, expected), (Found::Text("bytes that are no UTF-8 behind byte 2".to_owned()), "text in UTF-8"));
    let malformed = |column_type, form, value: &[u8]| {
        let error = pushed(column_type, form, value).unwrap_err();
        matches!(error.fault, Fault::Malformed(_))
    };
    assert!(malformed(C::Json, F::Jsonb, b"") && malformed(C::Json, F::Jsonb, b"\x02{}"));
    assert!(malformed(C::Bool, F::Bool, b"\x02") && malformed(C::Bool, F::Bool, b""));
    assert!(malformed(C::Uuid, F::Uuid, &[0; 15]) && malformed(C::Int32, F::Int4, &[0; 8]));
    assert!(malformed(C::Decimal { precision: 9, scale: 2 }, F::Numeric, &numeric(0, 0, 0, &[10_000])));
    assert!(malformed(C::Decimal { precision: 9, scale: 2 }, F::Numeric, &numeric(0, 1, 0, &[1])));
}

#[test]
fn nothing_is_taken_behind_a_row_that_is_none() {
    let mut decoder = RowDecoder::new(2, &[(1, C::Int32, F::Int4)]).unwrap();
    decoder.push(&[row(b"nobody wants this"), row(&[0, 0, 0, 7])].concat()).unwrap();
    let error = decoder.push(&row(&[0, 0, 0, 7])).unwrap_err();
    assert_eq!((error.column, error.to_string()), (None, "no length of a value".to_owned()));
    assert!(decoder.take().is_err());
    let pushed = |row: &[u8]| RowDecoder::new(1, &[(0, C::Int32, F::Int4)]).unwrap().push(row).unwrap_err().to_string();
    assert_eq!(pushed(&[0, 0, 0, 4, 1]), "a value of 4 bytes where 1 are left");
    assert_eq!(pushed(&[0x80, 0, 0, 0]), "a value of -2147483648 bytes");
    assert_eq!(pushed(&[0, 0, 0, 4, 0, 0, 0, 1, 9]), "1 bytes behind a row");
    assert_eq!(pushed(&[0, 0, 0, 2, 0, 1]), "a value of 2 bytes in place of 4 in column 0");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_bytes_make_it_panic(
        pick in any::<prop::sample::Index>(),
        mut value in prop::collection::vec(prop_oneof![Just(0u8), Just(0x40), Just(0xff), any::<u8>()], 0..40),
        lies in any::<bool>(),
        length in any::<i32>(),
    ) {
        let pairs: Vec<_> = pairs().into_iter().filter(is_decoded).collect();
        let own = pick.get(&pairs);
        if own.form == F::Numeric && value.len() > 9 {
            // Most of the time as many digits as it says.
            value.truncate(value.len() & !1);
            let digits = (value.len() - 8) / 2;
            value[..2].copy_from_slice(&(digits as u16).to_be_bytes());
        }
        let row = if lies { [&length.to_be_bytes()[..], &value].concat() } else { row(&value) };
        let mut decoder = RowDecoder::new(1, &[(0, own.column_type, own.form)]).unwrap();
        match decoder.push(&row) {
            Ok(()) => prop_assert_eq!(decoder.take().unwrap().num_rows(), 1),
            Err(error) => prop_assert!(!error.to_string().is_empty() && decoder.take().is_err()),
        }
    }
}

#[test]
fn null_is_null_in_every_column() {
    for own in pairs().into_iter().filter(is_decoded) {
        let mut decoder = RowDecoder::new(1, &[(0, own.column_type, own.form)]).unwrap();
        decoder.push(&(-1i32).to_be_bytes()).unwrap();
        let found = decoder.take().unwrap();
        assert_eq!((found.column(0).null_count(), found.column(0).len()), (1, 1), "{own:?}");
        assert_eq!(*found.column(0).data_type(), own.column_type.arrow_type());
        let nothing: &[Text] = &[];
        assert_eq!(decoder.take().unwrap().column(0), &array(own.column_type, nothing));
    }
}
