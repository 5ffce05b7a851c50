//! What is said of rows against the order, and what cannot be joined.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, StringViewArray};
use arrow_schema::Schema;
use headrace_transform::join::{Disorder, JoinError, JoinKey, JoinKind, JoinSpec, KeyRange, MergeJoin, Reason, Side};
use headrace_transform::lookup::KeyValue;
use headrace_types::ColumnType;

use super::model::{KINDS, Rows, join, joined, run};

fn numbers(values: &[Option<i64>]) -> Rows {
    Rows { types: vec![ColumnType::Int64], keys: vec![Arc::new(Int64Array::from(values.to_vec()))] }
}

#[test]
fn the_row_before_may_be_in_an_earlier_batch() {
    let left = numbers(&[Some(1), Some(5), None, Some(5), Some(4)]);
    let right = numbers(&[]);
    for (cut, row_in_batch, previous_in_batch) in [(5, 3, Some(1)), (3, 0, None), (2, 1, None)] {
        let error = joined(JoinKind::Full, &left, &right, [&[cut], &[]]).unwrap_err();
        let expected = Disorder {
            side: Side::Left,
            reason: Reason::Repeats,
            row: 3,
            row_in_batch,
            key: vec![KeyValue::Number(5)],
            previous_row: 1,
            previous_in_batch,
            previous_key: vec![KeyValue::Number(5)],
        };
        assert_eq!(error, JoinError::Disorder(Box::new(expected)));
    }
}

#[test]
fn right_keys_may_repeat_but_not_descend() {
    let (left, right) = (numbers(&[Some(5)]), numbers(&[Some(5), Some(5), Some(5), Some(4)]));
    let error = joined(JoinKind::Inner, &left, &right, [&[], &[2]]).unwrap_err();
    assert_eq!(error.to_string(), "the key 4 of right row 3 comes behind 5 of row 2");
    let right = numbers(&[Some(5), Some(5), Some(5)]);
    let (pairs, _) = joined(JoinKind::Inner, &left, &right, [&[], &[1, 2]]).unwrap();
    assert_eq!(pairs, [0, 1, 2].map(|row| (Some(0), Some(row))));
}

#[test]
fn the_order_is_proven_behind_the_end_of_the_other_side() {
    let (left, right) = (numbers(&[Some(1)]), numbers(&[Some(7), Some(9), Some(8)]));
    for kind in KINDS {
        let error = joined(kind, &left, &right, [&[], &[2]]).unwrap_err();
        assert_eq!(error.to_string(), "the key 8 of right row 2 comes behind 9 of row 1");
    }
}

#[test]
fn a_range_has_the_keys_of_both_sides() {
    let range = |left: &[Option<i64>], right: &[Option<i64>]| {
        let (left, right) = (numbers(left), numbers(right));
        let mut join = join(JoinKind::Inner, &left, &right);
        run(&mut join, &left, &right, [&[1, 2], &[1]]).unwrap();
        join.range()
    };
    let ends = |range: &KeyRange| [range.first(), range.last()].map(|key| key[0].to_string());
    let low = range(&[None, Some(3), Some(5), None], &[None, Some(-2), Some(4), Some(4)]).unwrap();
    assert_eq!(ends(&low), ["-2", "5"]);
    let high = range(&[None, None], &[Some(6)]).unwrap();
    assert_eq!(ends(&high), ["6", "6"]);
    assert_eq!(range(&[None, None], &[]), None);
    let touching = range(&[Some(5), Some(9)], &[]).unwrap();
    let [low, high, touching] = [low, high, touching].map(|range| range.codes());
    assert!(low.is_before(&high) && !high.is_before(&low));
    assert!(!low.is_before(&touching) && !touching.is_before(&low) && !high.is_before(&touching));
}

#[test]
fn composite_keys_are_ordered_by_their_first_column_first() {
    let rows = |texts: &[&str], days: &[i32]| Rows {
        types: vec![ColumnType::String, ColumnType::Int32],
        keys: vec![
            Arc::new(StringViewArray::from_iter_values(texts)) as ArrayRef,
            Arc::new(Int32Array::from(days.to_vec())),
        ],
    };
    let left = rows(&["a", "a", "ab"], &[-1, 2, -7]);
    let (pairs, counts) = joined(JoinKind::Inner, &left, &left, [&[], &[]]).unwrap();
    assert_eq!((pairs.len(), counts.map(|counts| counts.unmatched)), (3, [0, 0]));
    let error = joined(JoinKind::Inner, &rows(&["ab", "a"], &[1, 2]), &left, [&[], &[]]).unwrap_err();
    assert_eq!(error.to_string(), r#"the key "a", 2 of left row 1 comes behind "ab", 1 of row 0"#);
}

#[test]
fn rows_that_nobody_has_asked_for_are_not_taken() {
    let rows = numbers(&[Some(1), Some(2)]);
    let mut join = join(JoinKind::Inner, &rows, &rows);
    let batch = || rows.batches(&[]).remove(0);
    join.push(Side::Left, batch()).unwrap();
    assert_eq!(join.push(Side::Left, batch()), Err(JoinError::NotNeeded(Side::Left)));
    let other = Rows { types: vec![ColumnType::Int32], keys: vec![Arc::new(Int32Array::from(vec![1]))] };
    let error = join.push(Side::Right, other.batches(&[]).remove(0)).unwrap_err();
    assert_eq!(error.to_string(), "Int32 instead of Int64");
}

#[test]
fn types_are_compared_or_refused() {
    use ColumnType::{Char, Decimal, Float64, Int16, Int64, String, Timestamp, TimestampTz};
    let decimal = |precision, scale| Decimal { precision, scale };
    for (left_type, right_type, refusal) in [
        (Int16, Int64, None),
        (decimal(38, 0), Int64, None),
        (Char { length: 3 }, String, None),
        (decimal(5, 2), decimal(5, 3), Some("keys of the types decimal(5,2) and decimal(5,3) cannot be compared")),
        (Timestamp, TimestampTz, Some("keys of the types timestamp and timestamptz cannot be compared")),
        (Float64, Float64, Some("float64 cannot be a key")),
    ] {
        let spec = JoinSpec {
            kind: JoinKind::Inner,
            keys: vec![JoinKey { left: 0, left_type, right: 0, right_type }],
            columns: Vec::new(),
            schema: Arc::new(Schema::empty()),
        };
        assert_eq!(MergeJoin::new(spec).err().as_deref(), refusal);
    }
}
