//! What a server says: `tests/golden/postgres_hash/make.py` makes the file.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::*;
use headrace_transform::partition::{HashKey, HashPartitions, Method};

const PARTS: u32 = 31;

/// Lines of one type: key, partition.
type Lines<'a> = Vec<(Option<&'a str>, u32)>;

#[test]
fn hash_partitions_are_those_of_the_server() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/postgres_hash/partitions.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let mut types: BTreeMap<(&str, u8), Lines<'_>> = BTreeMap::new();
    for line in text.lines() {
        let [kind, scale, key, partition] = line.split('|').collect::<Vec<_>>().try_into().unwrap();
        let key = (key != "null").then_some(key);
        types.entry((kind, scale.parse().unwrap())).or_default().push((key, partition.parse().unwrap()));
    }
    assert_eq!(types.len(), 23);
    for ((kind, scale), lines) in types {
        let (hash_key, columns) = columns(kind, scale, &lines);
        let expected: Vec<u32> = lines.iter().map(|(_, partition)| *partition).collect();
        for column in columns {
            let mut places = vec![99];
            let method = Method::Hash(HashPartitions::new(hash_key, PARTS).unwrap());
            assert!(method.place(&column, &mut places), "{kind}");
            assert_eq!(places, expected, "{kind} as {}", column.data_type());
        }
    }
    assert!(HashPartitions::new(HashKey::Integer, 0).is_none());
    let method = Method::Hash(HashPartitions::new(HashKey::Integer, 3).unwrap());
    assert!(!method.place(&BooleanArray::from(vec![true]), &mut Vec::new()));
}

/// The values as the arrays that a source may have them in.
fn columns(kind: &str, scale: u8, lines: &Lines<'_>) -> (HashKey, Vec<ArrayRef>) {
    let numbers = || lines.iter().map(|(key, _)| key.map(|key| key.parse::<i128>().unwrap()));
    let narrow = || numbers().map(|key| key.map(|key| key as i64));
    let bytes: Vec<Option<Vec<u8>>> = match kind.split('(').next().unwrap() {
        "float4" | "float8" | "bool" | "text" | "varchar" | "char" | "bytea" | "uuid" => {
            lines.iter().map(|(key, _)| key.map(unhex)).collect()
        }
        _ => vec![],
    };
    let texts = || {
        let texts = bytes.iter().map(|text| text.as_ref().map(|text| std::str::from_utf8(text).unwrap()));
        Arc::new(StringViewArray::from_iter(texts)) as ArrayRef
    };
    match kind.split('(').next().unwrap() {
        "int2" => (
            HashKey::Integer,
            vec![
                Arc::new(Int16Array::from_iter(narrow().map(|key| key.map(|key| key as i16)))),
                Arc::new(Int64Array::from_iter(narrow())),
            ],
        ),
        "int4" => {
            (HashKey::Integer, vec![Arc::new(Int32Array::from_iter(narrow().map(|key| key.map(|key| key as i32))))])
        }
        "int8" => (HashKey::Integer, vec![Arc::new(Int64Array::from_iter(narrow()))]),
        "numeric" => {
            let wide: Decimal128Array = numbers().collect();
            let mut columns: Vec<ArrayRef> = vec![Arc::new(wide)];
            if numbers().flatten().all(|key| i64::try_from(key).is_ok()) {
                columns.push(Arc::new(narrow().collect::<Decimal64Array>()));
            }
            (HashKey::Numeric { scale }, columns)
        }
        "date" => {
            (HashKey::Date, vec![Arc::new(Date32Array::from_iter(narrow().map(|key| key.map(|key| key as i32))))])
        }
        "timestamp" => (HashKey::Timestamp, vec![Arc::new(TimestampMicrosecondArray::from_iter(narrow()))]),
        "timestamptz" => {
            let instants = TimestampMicrosecondArray::from_iter(narrow()).with_timezone("UTC");
            (HashKey::Timestamp, vec![Arc::new(instants)])
        }
        "time" => (HashKey::Integer, vec![Arc::new(Time64MicrosecondArray::from_iter(narrow()))]),
        "float4" => {
            let value = |bytes: &Vec<u8>| f32::from_be_bytes(bytes.as_slice().try_into().unwrap());
            let values = bytes.iter().map(|bytes| bytes.as_ref().map(value));
            (HashKey::Float, vec![Arc::new(PrimitiveArray::<Float32Type>::from_iter(values))])
        }
        "float8" => {
            let value = |bytes: &Vec<u8>| f64::from_be_bytes(bytes.as_slice().try_into().unwrap());
            let values = bytes.iter().map(|bytes| bytes.as_ref().map(value));
            (HashKey::Float, vec![Arc::new(PrimitiveArray::<Float64Type>::from_iter(values))])
        }
        "bool" => {
            let values = bytes.iter().map(|bytes| bytes.as_ref().map(|bytes| bytes[0] == 1));
            (HashKey::Bool, vec![Arc::new(BooleanArray::from_iter(values))])
        }
        "text" | "varchar" => (HashKey::Bytes, vec![texts()]),
        "char" => {
            let trimmed = bytes
                .iter()
                .map(|text| text.as_ref().map(|text| std::str::from_utf8(text).unwrap().trim_end_matches(' ')));
            (HashKey::Char, vec![texts(), Arc::new(StringViewArray::from_iter(trimmed))])
        }
        "bytea" => (HashKey::Bytes, vec![Arc::new(BinaryViewArray::from_iter(bytes))]),
        "uuid" => {
            let identifiers = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.into_iter(), 16).unwrap();
            (HashKey::Bytes, vec![Arc::new(identifiers)])
        }
        other => panic!("{other}"),
    }
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}
