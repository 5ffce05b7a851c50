//! Memory that is allowed, and errors that are no duplicates.

use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal64Array, Int32Array, Int64Array, StringViewArray};
use headrace_transform::lookup::{Case as Letters, *};
use headrace_types::ColumnType;

use crate::model::{Case, team};
use crate::values::{Numbers, Value};

fn case(column_type: ColumnType, rows: usize, variety: usize) -> Case {
    let mut random = Numbers(11);
    let mut row = |row: usize| {
        let key = match column_type {
            ColumnType::Int64 => Value::Number((row * variety) as i128),
            _ => Value::Text(format!("{row:030}")),
        };
        (vec![Some(key)], vec![Some(random.value(ColumnType::Int64)), Some(random.value(ColumnType::String))])
    };
    let rows: Vec<_> = (0..rows).map(&mut row).collect();
    Case {
        keys: vec![KeyColumn { lookup: column_type, input: column_type, case: Letters::Exact }],
        added: vec![(ColumnType::Int64, None), (ColumnType::String, None)],
        duplicates: Duplicates::Error,
        slices: rows.chunks(1000).map(<[_]>::to_vec).collect(),
    }
}

#[test]
fn the_budget_is_kept_and_an_index_that_is_too_large_is_an_error() {
    for (column_type, variety, form) in [
        (ColumnType::Int64, 1, Form::Direct),
        (ColumnType::Int64, 1000, Form::Narrow),
        (ColumnType::Int64, 1 << 32, Form::Wide),
        (ColumnType::String, 1, Form::Hashed),
    ] {
        let case = case(column_type, 20_000, variety);
        let free = case.build(1, 1000, u64::MAX).unwrap();
        assert_eq!(free.form(), form);
        assert!(free.bytes() < free.peak_bytes());
        // Which keys are read and filled when depends on the seed, by a little.
        let enough = free.peak_bytes() + free.peak_bytes() / 50;
        let index = case.build(1, 1000, enough).unwrap();
        assert!(index.peak_bytes() <= enough);
        for part in 0..40 {
            let budget = free.peak_bytes() * part / 42;
            match case.build(1, 1000, budget) {
                Err(BuildError::OverBudget { needed_bytes, budget_bytes }) => {
                    assert!(budget_bytes == budget && needed_bytes > budget);
                    // Told when it is met, not when all of it has been taken.
                    assert!(needed_bytes <= budget + free.bytes());
                }
                Err(other) => panic!("{other}"),
                Ok(_) => panic!("{form}: {budget} bytes were enough"),
            }
            // What is in memory twice for a moment is less where several threads have read it.
            match case.build(4, 1000, budget) {
                Err(error) => assert!(matches!(error, BuildError::OverBudget { .. })),
                Ok(index) => assert!(index.peak_bytes() <= budget),
            }
        }
    }
}

#[test]
fn keys_in_lines_keep_the_budget() {
    let rows: Vec<_> = (0..20_000).map(|row| (vec![Some(Value::Text(format!("number no.{row}")))], vec![])).collect();
    let case = Case {
        keys: vec![KeyColumn { lookup: ColumnType::String, input: ColumnType::String, case: Letters::Exact }],
        added: vec![],
        duplicates: Duplicates::Error,
        slices: rows.chunks(1000).map(<[_]>::to_vec).collect(),
    };
    let free = case.build(1, 1000, u64::MAX).unwrap();
    assert_eq!(free.form(), Form::Short);
    let model = case.model();
    let inputs: Vec<_> =
        (0..25_000).step_by(7).map(|row| vec![Some(Value::Text(format!("number no.{row}")))]).collect();
    let mut enough = 0;
    for budget in (1..=50).map(|part| free.peak_bytes() * part / 50 + 1000) {
        match case.build(1, 1000, budget) {
            Ok(index) => {
                assert!(index.form() == Form::Short && index.peak_bytes() <= budget);
                case.check(&index, &model, &inputs);
                enough += 1;
            }
            Err(error) => assert!(enough == 0 && matches!(error, BuildError::OverBudget { .. }), "{error}"),
        }
    }
    assert!((1..5).contains(&enough), "{enough}");
}

fn number_key(lookup: ColumnType, input: ColumnType) -> LookupSpec {
    let keys = vec![KeyColumn { lookup, input, case: Letters::Exact }];
    LookupSpec { keys, added: vec![], duplicates: Duplicates::Error, budget_bytes: 1 << 20 }
}

#[test]
fn a_builder_that_is_not_ended_is_an_error() {
    let place = RowPlace { slice: 0, row: 0 };
    let key: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let whole = ColumnType::Int64;
    for ends in [true, false] {
        let build = LookupBuild::new(number_key(whole, whole)).unwrap();
        let mut builder = build.builder().unwrap();
        builder.append(place, std::slice::from_ref(&key), &[]).unwrap();
        match ends {
            true => builder.end().unwrap(),
            false => drop(builder),
        }
        let result = build.finish(&team(1)).map(|index| index.rows());
        assert_eq!(result, if ends { Ok(1) } else { Err(BuildError::Unfinished) });
    }
    // Nor one that met an error.
    let build = LookupBuild::new(number_key(whole, whole)).unwrap();
    let mut builder = build.builder().unwrap();
    let wrong = WrongArray { found: "Int32".to_owned(), expected: "Int64".to_owned() };
    let other: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    assert_eq!(builder.append(place, &[other], &[]), Err(BuildError::Array(wrong)));
    assert_eq!(builder.end(), Err(BuildError::Unfinished));
    assert_eq!(build.finish(&team(1)).map(|index| index.rows()), Err(BuildError::Unfinished));
}

#[test]
fn arrays_are_those_of_the_specification() {
    let whole = ColumnType::Int64;
    let build = LookupBuild::new(number_key(whole, whole)).unwrap();
    let index = build.finish(&team(1)).unwrap();
    let [one, two]: [ArrayRef; 2] = [vec![1], vec![1, 2]].map(|values| Arc::new(Int64Array::from(values)) as ArrayRef);
    let error = |arrays: &[ArrayRef]| index.probe(arrays).unwrap_err().to_string();
    assert_eq!(error(&[]), "0 columns instead of 1 columns");
    assert_eq!(error(&[one.clone(), two]), "2 columns instead of 1 columns");
    assert_eq!(error(&[Arc::new(Int32Array::from(vec![1]))]), "Int32 instead of Int64");
    let mut added = number_key(whole, whole);
    added.added = vec![AddedColumn { column_type: whole, default: Some(Arc::new(Int32Array::from(vec![1]))) }];
    let error = LookupBuild::new(added).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "a default of 1 rows of Int32 for int64");
}

#[test]
fn keys_that_cannot_be_are_errors_in_the_lookup_and_find_nothing_in_the_input() {
    let small = ColumnType::Decimal { precision: 4, scale: 0 };
    let key = KeyColumn { lookup: small, input: small, case: Letters::Exact };
    let number =
        |number: i64| Arc::new(Decimal64Array::from(vec![number]).with_precision_and_scale(4, 0).unwrap()) as ArrayRef;
    let place = RowPlace { slice: 3, row: 5 };
    let spec = LookupSpec { keys: vec![key, key], ..number_key(small, small) };
    let build = LookupBuild::new(spec).unwrap();
    let mut builder = build.builder().unwrap();
    builder.append(place, &[number(-9999), number(9999)], &[]).unwrap();
    builder.end().unwrap();
    let mut builder = build.builder().unwrap();
    let outside = builder.append(place, &[number(1), number(10_000)], &[]);
    assert_eq!(outside, Err(BuildError::KeyOutside(place)));
    let index = |build: LookupBuild| build.finish(&team(1));
    assert!(matches!(index(build), Err(BuildError::Unfinished)));

    let text = ColumnType::String;
    let build = LookupBuild::new(number_key(text, text)).unwrap();
    let mut builder = build.builder().unwrap();
    let long: ArrayRef = Arc::new(StringViewArray::from_iter_values(["x".repeat(1 << 16)]));
    let error = builder.append(place, std::slice::from_ref(&long), &[]);
    assert_eq!(error, Err(BuildError::KeyTooLong { place, bytes: 1 << 16 }));
    let build = LookupBuild::new(number_key(text, text)).unwrap();
    let probed = index(build).unwrap().probe(&[long]).unwrap();
    assert_eq!((probed.matched(), probed.not_matched()), (0, 1));
}
