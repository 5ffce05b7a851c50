//! Random keys, of all kinds.

use headrace_transform::lookup::{Case as Letters, Duplicates, KeyColumn};
use headrace_types::ColumnType::{self, *};
use proptest::prelude::*;

use crate::model::{Case, Row};
use crate::values::{Numbers, Value};

/// Types of lookup and input that can be a key together.
const PAIRS: [(ColumnType, ColumnType); 27] = [
    (Int16, Int16),
    (Int16, Int64),
    (Int32, Int32),
    (Int32, Int16),
    (Int32, Decimal { precision: 38, scale: 0 }),
    (Int64, Int64),
    (Int64, Int32),
    (Int64, Decimal { precision: 38, scale: 0 }),
    (Decimal { precision: 4, scale: 0 }, Int32),
    (Decimal { precision: 15, scale: 2 }, Decimal { precision: 15, scale: 2 }),
    (Decimal { precision: 15, scale: 2 }, Decimal { precision: 30, scale: 2 }),
    (Decimal { precision: 38, scale: 0 }, Int64),
    (Decimal { precision: 38, scale: 5 }, Decimal { precision: 38, scale: 5 }),
    (Decimal { precision: 30, scale: 5 }, Decimal { precision: 10, scale: 5 }),
    (Bool, Bool),
    (Date, Date),
    (Time, Time),
    (Timestamp, Timestamp),
    (TimestampTz, TimestampTz),
    (String, String),
    (String, Varchar { length: 90 }),
    (Varchar { length: 90 }, Char { length: 90 }),
    (Char { length: 90 }, String),
    (Char { length: 90 }, Char { length: 90 }),
    (Bytes, Bytes),
    (Uuid, Uuid),
    (Date, Date),
];

const ADDED: [ColumnType; 12] = [
    Int16,
    Int32,
    Int64,
    Decimal { precision: 15, scale: 2 },
    Decimal { precision: 30, scale: 2 },
    Bool,
    Date,
    TimestampTz,
    Float64,
    String,
    Bytes,
    Uuid,
];

/// A random case, by a seed.
fn case(numbers: &mut Numbers, keys: Vec<KeyColumn>, rows: usize, duplicates: Duplicates) -> (Case, Vec<Row>) {
    // One added column in half of the cases: values in the table.
    let added = [0, 1, 1, 3][numbers.below(4)];
    let added: Vec<_> = (0..added).map(|_| ADDED[numbers.below(ADDED.len())]).collect();
    let has_nulls = numbers.below(2) == 0;
    let near = numbers.below(2) == 0;
    let added_value = |numbers: &mut Numbers, column_type| match numbers.value(column_type) {
        // Near enough to be in the table.
        Value::Number(number) if near && column_type != Float64 => {
            Value::Number(number.clamp(-1, 1).max(i128::from(column_type == Bool) - 1))
        }
        value => value,
    };
    let defaults = added.iter().map(|column_type| {
        let default = (numbers.below(2) == 0).then(|| numbers.value(*column_type));
        (*column_type, default)
    });
    let added: Vec<_> = defaults.collect();
    // Few different values, so that keys are found and come again.
    let variety = 1 + numbers.below(30);
    let mut pooled = |key: &KeyColumn| {
        let column_type = if numbers.below(2) == 0 { key.lookup } else { key.input };
        numbers.value(column_type)
    };
    let pools: Vec<Vec<Value>> = keys.iter().map(|key| (0..variety).map(|_| pooled(key)).collect()).collect();
    let key_row = |numbers: &mut Numbers, types: &dyn Fn(&KeyColumn) -> ColumnType| -> Row {
        let value = |(key, pool): (&KeyColumn, &Vec<Value>)| match numbers.below(20) {
            0 if has_nulls => None,
            1..4 => Some(numbers.value(types(key))),
            _ => Some(fitting(types(key), pool[numbers.below(pool.len())].clone())),
        };
        keys.iter().zip(&pools).map(value).collect()
    };
    let row = |numbers: &mut Numbers| {
        let values = added.iter().map(|(column_type, _)| {
            let is_null = has_nulls && numbers.below(8) == 0;
            (!is_null).then(|| added_value(numbers, *column_type))
        });
        let values: Row = values.collect();
        (key_row(numbers, &|key| key.lookup), values)
    };
    let mut slices = vec![Vec::new(); 1 + numbers.below(6)];
    for _ in 0..rows {
        let slice = numbers.below(slices.len());
        let row = row(numbers);
        slices[slice].push(row);
    }
    let inputs = (0..150).map(|_| key_row(numbers, &|key| key.input)).collect();
    (Case { keys: keys.clone(), added: added.clone(), duplicates, slices }, inputs)
}

/// The value, or another one that the type can have.
fn fitting(column_type: ColumnType, value: Value) -> Value {
    let range = |number: i128, least: i128, greatest: i128| Value::Number(number.clamp(least, greatest));
    match (column_type, &value) {
        (Int16, Value::Number(number)) => range(*number, i16::MIN.into(), i16::MAX.into()),
        (Int32, Value::Number(number)) => range(*number, i32::MIN.into(), i32::MAX.into()),
        (Int64, Value::Number(number)) => range(*number, i64::MIN.into(), i64::MAX.into()),
        (Decimal { precision, .. }, Value::Number(number)) => {
            let end = 10_i128.pow(precision.into());
            range(*number, 1 - end, end - 1)
        }
        _ => value,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn an_index_tells_what_a_map_tells(
        picks in prop::collection::vec((0..PAIRS.len(), any::<bool>()), 1..4),
        rows in prop_oneof![0_usize..3, 3_usize..400],
        seed in 1_u64..,
        is_first in any::<bool>(),
        batch_rows in prop_oneof![Just(1000), 1_usize..130],
    ) {
        let key = |(pick, ignores): &(usize, bool)| {
            let (lookup, input) = PAIRS[*pick];
            KeyColumn { lookup, input, case: if *ignores { Letters::Ignore } else { Letters::Exact } }
        };
        let keys: Vec<_> = picks.iter().map(key).collect();
        let duplicates = if is_first { Duplicates::First } else { Duplicates::Error };
        let (mut case, inputs) = case(&mut Numbers(seed), keys, rows, duplicates);
        case.check_all(batch_rows, &inputs);
        // The same without most rows, so that keys come once and are an index under both rules.
        case.slices.iter_mut().for_each(|rows| rows.truncate(1));
        case.check_all(batch_rows, &inputs);
    }
}
