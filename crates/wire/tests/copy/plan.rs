//! Which type goes into which form, and what does not fit.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Date32Array, Decimal64Array, Int32Array, StringViewArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::Buffer;
use headrace_types::ColumnType as C;
use headrace_wire::postgres::{CopyEncoder, Form as F};

use crate::values::{Wanted, batch};

pub const FORMS: [F; 16] = [
    F::Int2,
    F::Int4,
    F::Int8,
    F::Numeric,
    F::Float4,
    F::Float8,
    F::Bool,
    F::Date,
    F::Time,
    F::Timestamp,
    F::Timestamptz,
    F::Text,
    F::Bytea,
    F::Uuid,
    F::Json,
    F::Jsonb,
];

pub fn types() -> Vec<C> {
    let decimals =
        [(1, 0), (4, 0), (5, 0), (9, 0), (10, 0), (18, 0), (19, 0), (38, 0), (1, 1), (15, 2), (16, 3), (17, 4)];
    let more = [(18, 1), (18, 17), (19, 2), (20, 5), (28, 3), (38, 1), (38, 2), (38, 19), (38, 37), (38, 38)];
    let decimals = decimals.into_iter().chain(more).map(|(precision, scale)| C::Decimal { precision, scale });
    let others = [
        C::Int16,
        C::Int32,
        C::Int64,
        C::Float32,
        C::Float64,
        C::Bool,
        C::Date,
        C::Time,
        C::Timestamp,
        C::TimestampTz,
        C::String,
        C::Char { length: 3 },
        C::Varchar { length: 3 },
        C::Bytes,
        C::Uuid,
        C::Json,
    ];
    others.into_iter().chain(decimals).collect()
}

/// All pairs of some types and all forms that can be encoded.
pub fn pairs() -> Vec<Wanted> {
    let all = types().into_iter().flat_map(|column_type| FORMS.map(|form| Wanted { column_type, form }));
    all.filter(|wanted| CopyEncoder::new(&[(0, wanted.column_type, wanted.form)]).is_ok()).collect()
}

fn forms(column_type: C) -> Vec<F> {
    pairs().into_iter().filter(|wanted| wanted.column_type == column_type).map(|wanted| wanted.form).collect()
}

#[test]
fn the_table_of_pairs() {
    let decimal = |precision, scale| C::Decimal { precision, scale };
    let table = [
        (C::Int16, vec![F::Int2, F::Int4, F::Int8, F::Numeric, F::Float4, F::Float8]),
        (C::Int32, vec![F::Int4, F::Int8, F::Numeric, F::Float8]),
        (C::Int64, vec![F::Int8, F::Numeric]),
        (decimal(4, 0), vec![F::Int2, F::Int4, F::Int8, F::Numeric]),
        (decimal(5, 0), vec![F::Int4, F::Int8, F::Numeric]),
        (decimal(10, 0), vec![F::Int8, F::Numeric]),
        (decimal(19, 0), vec![F::Numeric]),
        (decimal(1, 1), vec![F::Numeric]),
        (decimal(38, 38), vec![F::Numeric]),
        (C::Float32, vec![F::Float4, F::Float8]),
        (C::Float64, vec![F::Float8]),
        (C::Bool, vec![F::Bool]),
        (C::Date, vec![F::Date, F::Timestamp]),
        (C::Time, vec![F::Time]),
        (C::Timestamp, vec![F::Timestamp]),
        (C::TimestampTz, vec![F::Timestamptz]),
        (C::String, vec![F::Text]),
        (C::Char { length: 3 }, vec![F::Text]),
        (C::Varchar { length: 3 }, vec![F::Text]),
        (C::Bytes, vec![F::Bytea]),
        (C::Uuid, vec![F::Uuid]),
        (C::Json, vec![F::Text, F::Json, F::Jsonb]),
    ];
    for (column_type, expected) in table {
        assert_eq!(forms(column_type), expected, "{column_type}");
    }
}

#[test]
fn forms_are_named_as_they_are_written() {
    for form in FORMS {
        assert_eq!(serde_json::to_string(&form).unwrap(), format!("\"{form}\""));
    }
}

fn refusal(columns: &[(usize, C, F)]) -> String {
    CopyEncoder::new(columns).err().expect("a refusal")
}

#[test]
fn refusals_say_what_is_wrong() {
    assert_eq!(refusal(&[(0, C::Int64, F::Int4)]), "int64 cannot be stored as int4 without loss");
    assert_eq!(
        refusal(&[(0, C::Decimal { precision: 39, scale: 0 }, F::Numeric)]),
        "decimal(39,0) is outside decimal(1..38, 0..precision)"
    );
    assert_eq!(refusal(&vec![(0, C::Int64, F::Int8); 32768]), "32768 columns in one COPY");
}

fn fault(array: ArrayRef, column_type: C, form: F) -> String {
    let mut encoder = CopyEncoder::new(&[(0, column_type, form)]).unwrap();
    encoder.encode(&batch(vec![array]), 0, usize::MAX, &mut Vec::new()).unwrap_err().to_string()
}

#[test]
fn values_outside_their_type_are_found() {
    let decimal = C::Decimal { precision: 4, scale: 0 };
    let decimals = |values: Vec<Option<i64>>| -> ArrayRef {
        Arc::new(Decimal64Array::from(values).with_data_type(decimal.arrow_type()))
    };
    assert_eq!(
        fault(decimals(vec![Some(9999), None, Some(-10_000)]), decimal, F::Numeric),
        "cannot encode column 0, row 2 of the batch: found -10000 (unscaled), expected decimal(4,0) for numeric"
    );
    assert_eq!(
        fault(decimals([vec![Some(1); 70], vec![Some(32_768)]].concat()), decimal, F::Int2),
        "cannot encode column 0, row 70 of the batch: found 32768, expected decimal(4,0) for int2"
    );
    for days in [i32::MIN, i32::MAX, i32::MIN + 10_957] {
        for form in [F::Date, F::Timestamp] {
            let text = fault(Arc::new(Date32Array::from(vec![days])), C::Date, form);
            assert!(text.contains(&format!("found {days}")), "{text}");
        }
    }
    for microseconds in [i64::MIN, i64::MIN + 946_684_800_000_000] {
        let array = TimestampMicrosecondArray::from(vec![microseconds]);
        let text = fault(Arc::new(array), C::Timestamp, F::Timestamp);
        assert!(text.contains(&format!("found {microseconds}")), "{text}");
    }
    for microseconds in [-1, 86_400_000_001] {
        let text = fault(Arc::new(Time64MicrosecondArray::from(vec![microseconds])), C::Time, F::Time);
        assert!(text.contains(&format!("found {microseconds}")), "{text}");
    }
}

#[test]
fn batches_of_another_shape_are_refused() {
    let integers = || -> ArrayRef { Arc::new(Int32Array::from(vec![1])) };
    assert_eq!(
        fault(integers(), C::Int64, F::Int8),
        "cannot encode column 0 of the batch: found Int32, expected int64 for int8"
    );
    let mut encoder = CopyEncoder::new(&[(1, C::Int32, F::Int4)]).unwrap();
    assert_eq!(
        encoder.encode(&batch(vec![integers()]), 0, 1, &mut Vec::new()).unwrap_err().to_string(),
        "cannot encode column 1 of the batch: found 1 columns, expected int32 for int4"
    );
}

#[test]
fn views_of_nothing_are_refused() {
    let buffer = Buffer::from(vec![b'x'; 40]);
    // From byte 20 of a buffer of 40 bytes, in a buffer that there is not, and longer than the buffer.
    for view in [30u128 | 20 << 96, 30 | 1 << 64, 1000] {
        // SAFETY: none. The encoder must not trust arrays that came from elsewhere.
        let array = unsafe { StringViewArray::new_unchecked(vec![view].into(), vec![buffer.clone()].into(), None) };
        assert_eq!(
            fault(Arc::new(array), C::String, F::Text),
            "cannot encode column 0, row 0 of the batch: found a text outside its buffers, expected string for text"
        );
    }
}
