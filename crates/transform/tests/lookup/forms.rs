//! Every form, with enough keys that all of its parts are used.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, StringViewArray};
use headrace_transform::lookup::{Case as Letters, *};
use headrace_types::ColumnType;

use crate::model::{Case, team};
use crate::values::{Numbers, Value};

/// Enough for several chunks of rows, by one thread too.
const MANY: u64 = 1_100_000;

type Keys = fn(&[u64]) -> ArrayRef;

fn numbers(entries: &[u64], key: impl Fn(u64) -> u64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(entries.iter().map(|entry| key(*entry) as i64)))
}

fn texts(entries: &[u64], key: impl Fn(u64) -> String) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(entries.iter().map(|entry| key(*entry))))
}

/// An odd factor: numbers that look random, each once.
fn spread(entry: u64) -> u64 {
    entry.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 1 << 63
}

/// A form, keys of that form by entry, bytes per entry that they may take beside added columns, and whether values that
/// are alone are in the table.
const FORMS: [(Form, ColumnType, Keys, f64, bool); 9] = [
    (Form::Direct, ColumnType::Int64, |entries| numbers(entries, |entry| entry.wrapping_sub(400_000)), 4.1, true),
    (Form::Direct, ColumnType::Int64, |entries| numbers(entries, |entry| i64::MIN as u64 + 5 * entry / 2), 10.0, true),
    (
        Form::Narrow,
        ColumnType::Int64,
        |entries| numbers(entries, |entry| (entry as u32).wrapping_mul(0x9E37_79B1).into()),
        10.1,
        true,
    ),
    (Form::Narrow, ColumnType::Int64, |entries| numbers(entries, |entry| i64::MAX as u64 - 3 * entry), 10.1, true),
    (Form::Wide, ColumnType::Int64, |entries| numbers(entries, spread), 16.0, true),
    (Form::Short, ColumnType::String, |entries| texts(entries, |entry| format!("Clerk#{entry:09}")), 26.8, true),
    (Form::Short, ColumnType::String, |entries| texts(entries, |entry| format!("no. {entry}")), 26.8, true),
    (Form::Hashed, ColumnType::String, |entries| texts(entries, |entry| format!("{entry:020}")), 30.1, false),
    (
        Form::Hashed,
        ColumnType::String,
        |entries| texts(entries, |entry| format!("{entry:014}{}", "-".repeat(entry as usize % 3))),
        29.1,
        false,
    ),
];

fn build(
    key: ColumnType,
    keys: Keys,
    entries: &[Vec<u64>],
    threads: usize,
    duplicates: Duplicates,
) -> Result<LookupIndex, BuildError> {
    let added = AddedColumn { column_type: ColumnType::Int64, default: Some(numbers(&[0], |_| u64::MAX)) };
    let keys_of = KeyColumn { lookup: key, input: key, case: Letters::Exact };
    let spec = LookupSpec { keys: vec![keys_of], added: vec![added], duplicates, budget_bytes: 200 << 20 };
    let build = LookupBuild::new(spec)?;
    std::thread::scope(|scope| {
        let append = |thread: usize| {
            let mut builder = build.builder()?;
            for (slice, entries) in entries.iter().enumerate().skip(thread).step_by(threads) {
                let first = RowPlace { slice: slice as u32, row: 0 };
                builder.append(first, &[keys(entries)], &[numbers(entries, |entry| entry)])?;
            }
            builder.end()
        };
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(move || append(thread))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect::<Result<Vec<()>, _>>()
    })?;
    build.finish(&team(threads))
}

/// Whether the index tells of these entries what it should: those below `count` are in it.
fn check(index: &LookupIndex, keys: Keys, entries: &[u64], count: u64) {
    for entries in entries.chunks(5000) {
        let probed = index.probe(&[keys(entries)]).unwrap();
        let gathered = index.gather(&probed).unwrap();
        let gathered = gathered[0].as_primitive::<Int64Type>();
        assert_eq!(gathered.null_count(), 0);
        for (row, entry) in entries.iter().enumerate() {
            let is_there = *entry < count;
            assert_eq!(probed.is_match(row), is_there, "{entry}");
            assert_eq!(gathered.value(row), if is_there { *entry as i64 } else { -1 });
        }
    }
}

#[test]
fn many_keys_take_few_bytes_and_are_all_found() {
    let slices: Vec<Vec<u64>> = (0..MANY).collect::<Vec<_>>().chunks(10_000).map(<[u64]>::to_vec).collect();
    for (form, key, keys, most, is_inline) in FORMS {
        let index = build(key, keys, &slices, 2, Duplicates::Error).unwrap();
        assert_eq!((index.form(), index.rows(), index.duplicates()), (form, MANY, 0));
        let bytes = (index.bytes() - index.added_bytes()) as f64 / MANY as f64;
        assert!(bytes <= most, "{form}: {bytes}");
        assert_eq!(index.added_bytes(), if is_inline { 0 } else { 8 * (MANY + 1) });
        let entries: Vec<u64> = (0..MANY).rev().step_by(3).chain(MANY..MANY + 100_000).collect();
        check(&index, keys, &entries, MANY);
    }
}

#[test]
fn of_equal_keys_the_first_row_counts_whatever_the_threads() {
    // Each entry comes 3 times; in slices that are read in another order than they have.
    const COUNT: u64 = 30_000;
    let mut random = Numbers(7);
    let mut entries: Vec<u64> = (0..3 * COUNT).map(|row| row % COUNT).collect();
    (0..entries.len()).for_each(|row| entries.swap(row, random.below(3 * COUNT as usize)));
    let slices: Vec<Vec<u64>> = entries.chunks(1000).map(<[u64]>::to_vec).collect();
    for (form, key, keys, ..) in FORMS {
        let mut first = HashMap::new();
        let mut second = None;
        for (place, entry) in entries.iter().enumerate() {
            let place = RowPlace { slice: (place / 1000) as u32, row: (place % 1000) as u64 };
            match first.get(entry) {
                Some(first) => drop(second.get_or_insert((*first, place))),
                None => drop(first.insert(*entry, place)),
            }
        }
        for threads in [1, 4] {
            let index = build(key, keys, &slices, threads, Duplicates::First).unwrap();
            assert_eq!((index.rows(), index.duplicates()), (COUNT, 2 * COUNT));
            check(&index, keys, &(0..COUNT + 1000).collect::<Vec<_>>(), COUNT);
            match build(key, keys, &slices, threads, Duplicates::Error) {
                Err(BuildError::Duplicate(found)) => {
                    assert_eq!((Some((found.first, found.second)), found.rows), (second, 2 * COUNT), "{form}");
                }
                Err(other) => panic!("{other}"),
                Ok(_) => panic!("{form}: no error"),
            }
        }
    }
}

/// Keys of one column without added ones.
fn case(column_type: ColumnType, keys: &[Option<Value>]) -> Case {
    Case {
        keys: vec![KeyColumn { lookup: column_type, input: column_type, case: Letters::Exact }],
        added: vec![],
        duplicates: Duplicates::First,
        slices: vec![keys.iter().map(|key| (vec![key.clone()], vec![])).collect()],
    }
}

#[test]
fn extreme_cases_have_the_form_that_suits_them() {
    let numbers =
        |numbers: &[i64]| numbers.iter().map(|number| Some(Value::Number((*number).into()))).collect::<Vec<_>>();
    let whole = ColumnType::Int64;
    let text = |text: &str| vec![Some(Value::Text(text.to_owned()))];
    for (column_type, keys, form) in [
        (whole, numbers(&[]), Form::Direct),
        (whole, vec![None, None], Form::Direct),
        (whole, numbers(&[i64::MIN]), Form::Direct),
        (whole, numbers(&[7; 1000]), Form::Direct),
        (whole, numbers(&[-1, 3]), Form::Direct),
        (whole, numbers(&[-1, 4]), Form::Narrow),
        (whole, numbers(&[i64::MIN, i64::MIN + u32::MAX as i64]), Form::Narrow),
        (whole, numbers(&[i64::MAX, i64::MAX - u32::MAX as i64, i64::MAX - 1]), Form::Narrow),
        (whole, numbers(&[0, 1 << 32]), Form::Wide),
        (whole, numbers(&[i64::MIN, i64::MAX]), Form::Wide),
        (whole, numbers(&[i64::MIN, -1, 0, 1, i64::MAX, i64::MAX]), Form::Wide),
        (ColumnType::String, vec![], Form::Short),
        (ColumnType::String, text(""), Form::Short),
        (ColumnType::String, text("fifteen letters"), Form::Short),
        (ColumnType::String, text("sixteen letters."), Form::Hashed),
        (ColumnType::String, text(&"long".repeat(16_000)), Form::Hashed),
    ] {
        let inputs = [i64::MIN, i64::MIN + 1, -2, -1, 0, 1, 2, 3, 4, 1 << 32, i64::MAX - 1, i64::MAX];
        let mut inputs: Vec<_> = numbers(&inputs);
        if column_type == ColumnType::String {
            inputs = ["", "long", " ", "fifteen letters", "sixteen letters.", "fifteen letters\0"]
                .iter()
                .flat_map(|input| text(input))
                .collect();
        }
        inputs.push(None);
        let inputs: Vec<_> = inputs.into_iter().map(|input| vec![input]).collect();
        let index = case(column_type, &keys).check_all(100, &inputs).unwrap();
        assert_eq!(index.form(), form, "{keys:?}");
    }
}

#[test]
fn composites_are_packed_while_they_fit() {
    let key = |column_type| KeyColumn { lookup: column_type, input: column_type, case: Letters::Exact };
    use ColumnType::*;
    for (types, form) in [
        (vec![Int32, Int32], Form::Wide),
        (vec![Int16, Int16], Form::Narrow),
        (vec![Bool, Bool, Bool], Form::Direct),
        (vec![Date, Int16, Bool], Form::Wide),
        (vec![Time, Int16, Bool], Form::Wide),
        (vec![Decimal { precision: 9, scale: 2 }, Date], Form::Wide),
        (vec![Int64, Bool], Form::Short),
        (vec![Decimal { precision: 18, scale: 0 }, Int16], Form::Short),
        (vec![Uuid, Bool], Form::Hashed),
        (vec![Int16, String], Form::Hashed),
    ] {
        let mut random = Numbers(3);
        let mut row = |_| types.iter().map(|column_type| Some(random.value(*column_type))).collect::<Vec<_>>();
        let rows: Vec<_> = (0..300).map(&mut row).collect();
        let inputs: Vec<_> = (0..300).map(&mut row).collect();
        let case = Case {
            keys: types.iter().map(|column_type| key(*column_type)).collect(),
            added: vec![],
            duplicates: Duplicates::First,
            slices: vec![rows.into_iter().map(|row| (row, vec![])).collect()],
        };
        assert_eq!(case.check_all(64, &inputs).unwrap().form(), form, "{types:?}");
    }
}

#[test]
fn keys_that_differ_in_high_bits_only_are_others() {
    let keys: Vec<_> = (0..100).map(|key| Some(Value::Number(3 * key - 150))).collect();
    // Many, because most of them look into lines of other keys.
    let inputs = (-1000..1000_i128)
        .flat_map(|high| (0..100).map(move |key| vec![Some(Value::Number(3 * key - 150 + (high << 32)))]));
    let index = case(ColumnType::Int64, &keys).check_all(100, &inputs.collect::<Vec<_>>()).unwrap();
    assert_eq!(index.form(), Form::Narrow);
}
