//! Random rows and cuts.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryViewArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Int16Array, Int32Array, Int64Array,
    StringViewArray, TimestampMicrosecondArray,
};
use headrace_transform::join::{InputCounts, JoinKind};
use headrace_types::ColumnType;
use proptest::prelude::*;

use super::model::{KINDS, Rows, expected, joined};

/// A key is a number per column, in the order of numbers; none if the row has no key.
type Key = Option<[i16; 2]>;

/// What keys are made of, on both sides.
#[derive(Debug, Clone, Copy)]
enum Form {
    Numbers,
    Dates,
    Timestamps,
    LongDecimals,
    Texts,
    PaddedTexts,
    Binaries,
    Uuids,
    NumberPairs,
    TextPairs,
    LongPairs,
}

use Form::*;

const FORMS: [Form; 11] =
    [Numbers, Dates, Timestamps, LongDecimals, Texts, PaddedTexts, Binaries, Uuids, NumberPairs, TextPairs, LongPairs];

/// Texts in their order that end in one another, with the characters that codes escape.
fn text(number: i16) -> String {
    let number = i32::from(number) + 1000;
    ["", "\0", "\0\0", "\0a", "a", "a\0", "a\0\u{1}", "a b", "ab", "é", "漢"]
        .get(number as usize % 11)
        .map_or_else(String::new, |end| format!("{:04}{end}", number / 11))
}

impl Form {
    fn columns(self) -> usize {
        if matches!(self, NumberPairs | TextPairs | LongPairs) { 2 } else { 1 }
    }

    fn rows(self, is_right: bool, keys: &[Key]) -> Rows {
        use ColumnType::*;
        let (first, second) =
            (|key: &Key| key.map(|key| key[0]), |key: &Key| key.filter(|key| key[1] % 7 != 3).map(|key| key[1]));
        let firsts = || keys.iter().map(first);
        let int16 = || (Int16, Arc::new(Int16Array::from_iter(firsts())) as ArrayRef);
        let int64 = || {
            let values = keys.iter().map(second).map(|key| key.map(i64::from));
            (Int64, Arc::new(Int64Array::from_iter(values)) as ArrayRef)
        };
        let texts = |column_type, pad: &str| {
            let texts = firsts().map(|key| key.map(|key| text(key) + pad));
            (column_type, Arc::new(StringViewArray::from_iter(texts)) as ArrayRef)
        };
        let long = |scale| {
            let values = firsts().map(|key| key.map(|key| i128::from(key) << 90));
            let array = Decimal128Array::from_iter(values).with_precision_and_scale(38, scale).unwrap();
            (Decimal { precision: 38, scale: scale as u8 }, Arc::new(array) as ArrayRef)
        };
        let uuids = || {
            let values = firsts().map(|key| key.map(|key| (key as u16 ^ 0x8000).to_be_bytes().repeat(8)));
            FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 16).unwrap()
        };
        let columns = match (self, is_right) {
            (Numbers, false) => vec![int16()],
            (Numbers, true) => {
                vec![(Int32, Arc::new(Int32Array::from_iter(firsts().map(|key| key.map(i32::from)))) as ArrayRef)]
            }
            (Dates, _) => vec![(Date, Arc::new(Date32Array::from_iter(firsts().map(|key| key.map(i32::from)))) as _)],
            (Timestamps, _) => {
                let values = firsts().map(|key| key.map(|key| i64::from(key) << 40));
                vec![(Timestamp, Arc::new(TimestampMicrosecondArray::from_iter(values)) as _)]
            }
            (LongDecimals, _) => vec![long(2)],
            (Texts, _) => vec![texts(String, "")],
            (PaddedTexts, false) => vec![texts(Varchar { length: 9 }, " ")],
            (PaddedTexts, true) => vec![texts(Char { length: 9 }, "")],
            (Binaries, _) => {
                let values = firsts().map(|key| key.map(|key| text(key).into_bytes()));
                vec![(Bytes, Arc::new(BinaryViewArray::from_iter(values)) as _)]
            }
            (Uuids, _) => vec![(Uuid, Arc::new(uuids()) as _)],
            (NumberPairs, _) => vec![
                int16(),
                (Int32, Arc::new(Int32Array::from_iter(keys.iter().map(second).map(|key| key.map(i32::from)))) as _),
            ],
            (TextPairs, _) => vec![texts(String, ""), int64()],
            (LongPairs, _) => vec![long(0), int64()],
        };
        let (types, keys) = columns.into_iter().unzip();
        Rows { types, keys }
    }

    /// The keys that are compared.
    fn keys(self, keys: &[Key]) -> Vec<Option<[i16; 2]>> {
        let key = |key: &Key| match self.columns() {
            1 => key.map(|key| [key[0], 0]),
            _ => key.filter(|key| key[1] % 7 != 3),
        };
        keys.iter().map(key).collect()
    }
}

/// Keys in their order, with rows between that have none.
fn side(form: Form, is_left: bool, mut keys: Vec<[i16; 2]>, nulls: &[usize]) -> Vec<Key> {
    if form.columns() == 1 {
        keys.iter_mut().for_each(|key| key[1] = 0);
    }
    keys.sort_unstable();
    if is_left {
        keys.dedup();
    }
    let mut rows: Vec<Key> = keys.into_iter().map(Some).collect();
    nulls.iter().for_each(|at| rows.insert(at % (rows.len() + 1), None));
    rows
}

fn key() -> impl Strategy<Value = [i16; 2]> {
    [-9..9_i16, -9..9_i16]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn rows_are_those_of_nested_loops(
        form in proptest::sample::select(FORMS.as_slice()),
        kind in proptest::sample::select(KINDS.as_slice()),
        keys in [proptest::collection::vec(key(), 0..60), proptest::collection::vec(key(), 0..60)],
        nulls in [proptest::collection::vec(0..99_usize, 0..4), proptest::collection::vec(0..99_usize, 0..4)],
        cuts in [proptest::collection::vec(0..99_usize, 0..6), proptest::collection::vec(0..99_usize, 0..6)],
    ) {
        let [left, right] = keys;
        let sides = [side(form, true, left, &nulls[0]), side(form, false, right, &nulls[1])];
        let [left, right] = [form.rows(false, &sides[0]), form.rows(true, &sides[1])];
        let (pairs, counts) = joined(kind, &left, &right, [&cuts[0], &cuts[1]]).unwrap();
        // Batches change nothing, the order of rows included.
        prop_assert_eq!(joined(kind, &left, &right, [&[], &[]]).unwrap(), (pairs.clone(), counts));
        let mut sorted = pairs;
        sorted.sort_unstable();
        let keys = [form.keys(&sides[0]), form.keys(&sides[1])];
        prop_assert_eq!(sorted, expected(kind, &keys[0], &keys[1]));
        let alone = expected(JoinKind::Full, &keys[0], &keys[1]);
        let count = |is_alone: fn(&(Option<i64>, Option<i64>)) -> bool, keys: &[Key]| InputCounts {
            rows: keys.len() as u64,
            unmatched: alone.iter().filter(|pair| is_alone(pair)).count() as u64,
            null_keys: keys.iter().filter(|key| key.is_none()).count() as u64,
        };
        prop_assert_eq!(counts, [count(|pair| pair.1.is_none(), &keys[0]), count(|pair| pair.0.is_none(), &keys[1])]);
    }

    #[test]
    fn the_first_row_against_the_order_is_found(
        form in proptest::sample::select(FORMS.as_slice()),
        is_left in any::<bool>(),
        keys in proptest::collection::vec(proptest::option::weighted(0.9, key()), 2..40),
        cuts in proptest::collection::vec(0..99_usize, 0..6),
    ) {
        let rows = form.rows(!is_left, &keys);
        let mut before: Option<(usize, [i16; 2])> = None;
        let mut wrong = None;
        for (row, key) in form.keys(&keys).into_iter().enumerate().filter_map(|(row, key)| Some((row, key?))) {
            if wrong.is_none() && before.is_some_and(|(_, before)| key < before || (is_left && key == before)) {
                wrong = before.map(|(before, _)| (before as u64, row as u64));
            }
            before = Some((row, key));
        }
        // The other side never ends before this one.
        let other = form.rows(is_left, &[]);
        let found = match is_left {
            true => joined(JoinKind::Inner, &rows, &other, [&cuts, &[]]),
            false => joined(JoinKind::Inner, &other, &rows, [&[], &cuts]),
        };
        let found = found.err().map(|error| match error {
            headrace_transform::join::JoinError::Disorder(disorder) => (disorder.previous_row, disorder.row),
            other => panic!("{other}"),
        });
        prop_assert_eq!(found, wrong);
    }
}
