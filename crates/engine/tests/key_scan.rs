//! Scans of keys against sorting all of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fmt::Write as _;

use headrace_engine::key_scan::{KeyScan, KeyScanSpec, key_scan};
use headrace_engine::slices::{SlicingSpec, plan_slices};
use headrace_types::{ErrorKind, Layout};
use proptest::prelude::*;

/// A layout of a text, the key, and another text.
fn layout(kind: &str, nullable: bool, qualifier: bool) -> Layout {
    let qualifier = if qualifier { r#""\"""# } else { "null" };
    let json = format!(
        r#"{{"delimiter": "|", "qualifier": {qualifier}, "skip_lines": 1, "columns": [
            {{"name": "front", "type": {{"kind": "int32"}}, "nullable": false}},
            {{"name": "key", "type": {kind}, "nullable": {nullable}}},
            {{"name": "back", "type": {{"kind": "string"}}, "nullable": false}}]}}"#
    );
    serde_json::from_str(&json).unwrap()
}

/// A scan of files with these contents.
fn spec(
    texts: &[String],
    layout: &Layout,
    slice_bytes: u64,
    streams: usize,
    want: &str,
) -> (tempfile::TempDir, KeyScanSpec) {
    let folder = tempfile::tempdir().unwrap();
    let path = |index: usize| folder.path().join(index.to_string()).to_str().unwrap().to_owned();
    texts.iter().enumerate().for_each(|(index, text)| std::fs::write(path(index), text).unwrap());
    let files = (0..texts.len()).map(path).collect();
    let slicing =
        plan_slices(&SlicingSpec { files, slice_bytes, layout: layout.clone(), ..SlicingSpec::default() }).unwrap();
    let spec = KeyScanSpec {
        files: slicing.files,
        slices: slicing.slices,
        layout: layout.clone(),
        column: "key".to_owned(),
        streams,
        want: serde_json::from_str(want).unwrap(),
    };
    (folder, spec)
}

fn scan(texts: &[String], layout: &Layout, slice_bytes: u64, streams: usize, want: &str) -> KeyScan {
    let (_folder, spec) = spec(texts, layout, slice_bytes, streams, want);
    key_scan(&spec, &mut || false).unwrap()
}

const INT64: &str = r#"{"kind": "int64"}"#;

/// Rows of these keys, with rows that do not conform among them.
fn text<T: ToString>(keys: &[Option<T>], qualifier: bool) -> String {
    let mut text = "front|key|back\n".to_owned();
    for (row, key) in keys.iter().enumerate() {
        match row % 7 {
            3 => text.push_str("1|too few\n\n"),
            4 => text.push_str("1|no key|x\n"),
            5 => text.push_str("1|2|too|many\n"),
            // What stands in other columns is not looked at.
            6 if qualifier => text.push_str("\"a\n|\"|77|never a key\n"),
            _ => {}
        }
        let key = key.as_ref().map_or(String::new(), T::to_string);
        writeln!(text, "not a number|{key}|{row}").unwrap();
    }
    text
}

fn quantiles(sorted: &[i64], parts: usize) -> Vec<String> {
    let bounds = (1..parts).filter_map(|part| sorted.get(part * sorted.len() / parts));
    let bounds: BTreeSet<i64> = bounds.copied().filter(|bound| *bound != sorted[0]).collect();
    bounds.iter().map(i64::to_string).collect()
}

/// Few keys often, many keys near one another, keys anywhere.
fn keys() -> impl Strategy<Value = Vec<Option<i64>>> {
    let key =
        prop_oneof![Just(5_i64).boxed(), (-40_i64..40).boxed(), (-100_000_i64..100_000).boxed(), any::<i64>().boxed()];
    prop::collection::vec(prop::option::weighted(0.9, key), 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn scans_equal_sorting(
        keys in keys(),
        slice_bytes in 20_u64..4000,
        streams in 1_usize..4,
        parts in 1_usize..40,
        step in 1_i64..50_000,
        qualifier: bool,
    ) {
        let layout = layout(INT64, true, qualifier);
        let middle = keys.len() / 2;
        let texts = [text(&keys[..middle], qualifier), text(&keys[middle..], qualifier)];
        let mut sorted: Vec<i64> = keys.iter().flatten().copied().collect();
        let marked = |keys: &[Option<i64>]| keys.iter().enumerate().filter(|(row, _)| qualifier && row % 7 == 6).count();
        sorted.extend(std::iter::repeat_n(77, marked(&keys[..middle]) + marked(&keys[middle..])));
        sorted.sort_unstable();
        let nulls = keys.iter().filter(|key| key.is_none()).count() as u64;

        let found = scan(&texts, &layout, slice_bytes, streams, &format!(r#"{{"quantiles": {parts}}}"#));
        let expected = KeyScan {
            minimum: sorted.first().map(i64::to_string),
            maximum: sorted.last().map(i64::to_string),
            rows: sorted.len() as u64 + nulls,
            nulls,
            periods: None,
            quantiles: Some(quantiles(&sorted, parts)),
            distinct: None,
        };
        prop_assert_eq!(&found, &expected);

        let found = scan(&texts, &layout, slice_bytes, streams, &format!(r#"{{"periods": {{"step": "{step}"}}}}"#));
        let periods: BTreeSet<i64> = sorted.iter().map(|key| key.div_euclid(step).saturating_mul(step)).collect();
        let periods = Some(periods.iter().map(i64::to_string).collect());
        prop_assert_eq!(found, KeyScan { periods, quantiles: None, ..expected });
    }
}

/// Keys without any order.
fn scattered(count: u64) -> Vec<Option<i64>> {
    (1..=count).map(|number| Some((number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number << 17) as i64)).collect()
}

#[test]
fn more_keys_than_counters_take_further_passes() {
    let mut keys = scattered(60_000);
    // Half of all keys between two bounds, and near one another.
    keys.extend((0..60_000).map(|key| Some(1_000_000 + key % 30_000)));
    let mut sorted: Vec<i64> = keys.iter().flatten().copied().collect();
    sorted.sort_unstable();
    let layout = layout(INT64, false, false);
    let text = [text(&keys, false)];
    for parts in [2, 16, 5_000] {
        let found = scan(&text, &layout, 100_000, 2, &format!(r#"{{"quantiles": {parts}}}"#));
        assert_eq!(found.quantiles.unwrap(), quantiles(&sorted, parts), "{parts} parts");
    }
}

#[test]
fn the_calendar_and_decimals() {
    let days: Vec<_> = ["2024-02-29", "2024-01-31", "2024-02-01", "9999-12-31"].map(Some).to_vec();
    let date = layout(r#"{"kind": "date"}"#, false, false);
    let found = scan(&[text(&days, false)], &date, 30, 2, r#"{"periods": {"unit": "month"}}"#);
    assert_eq!(found.periods.unwrap(), ["2024-01-01", "2024-02-01", "9999-12-01"]);
    assert_eq!((found.minimum.unwrap(), found.maximum.unwrap()), ("2024-01-31".to_owned(), "9999-12-31".to_owned()));

    let prices: Vec<_> = (0..100).map(|cents| Some(format!("-{}.{:02}", cents / 10, cents))).collect();
    let decimal = layout(r#"{"kind": "decimal", "precision": 30, "scale": 2}"#, false, false);
    let found = scan(&[text(&prices, false)], &decimal, 30, 2, r#"{"quantiles": 2}"#);
    assert_eq!(found.quantiles.unwrap().len(), 1);
    assert_eq!(found.minimum.unwrap(), "-9.99");
}

#[test]
fn files_without_keys() {
    let layout = layout(INT64, true, false);
    let nothing = KeyScan { quantiles: Some(vec![]), ..KeyScan::default() };
    assert_eq!(scan(&[], &layout, 10, 2, r#"{"quantiles": 4}"#), nothing);
    assert_eq!(scan(&["header\n".to_owned()], &layout, 10, 2, r#"{"quantiles": 4}"#), nothing);
    let nulls = scan(&["header\n1||x\n2||y\n".to_owned()], &layout, 10, 2, r#"{"quantiles": 4}"#);
    assert_eq!(nulls, KeyScan { rows: 2, nulls: 2, ..nothing });
}

const TEXT: &str = r#"{"kind": "string"}"#;

#[test]
fn different_keys_are_told_if_they_are_few() {
    let keys: Vec<_> = (0..3000).map(|row| (row % 11 != 0).then(|| format!("k{}", row % 7))).collect();
    let (front, back) = keys.split_at(1000);
    for streams in 1..4 {
        let want = |most: usize| format!(r#"{{"distinct": {most}}}"#);
        let texts = [text(front, false), text(back, false)];
        let found = scan(&texts, &layout(TEXT, true, false), 500, streams, &want(8));
        let expected: BTreeSet<String> = keys.iter().flatten().cloned().collect();
        let nulls = keys.iter().filter(|key| key.is_none()).count() as u64;
        // Rows whose text is no number are rows here: a text is what the column wants.
        let mut distinct: BTreeSet<String> = found.distinct.clone().unwrap().into_iter().collect();
        distinct.retain(|key| key.starts_with('k'));
        assert_eq!((distinct, found.nulls, found.minimum.as_ref()), (expected, nulls, None));
        let found = scan(&texts, &layout(TEXT, true, false), 500, streams, &want(6));
        assert_eq!(found.distinct, None);
        // A char(n) has no blanks at its end.
        let blanks = ["front|key|back\n1|a |x\n2|a|y\n3|b|z\n".to_owned()];
        let found = scan(&blanks, &layout(r#"{"kind": "char", "length": 3}"#, false, false), 9, streams, &want(2));
        assert_eq!(found.distinct, Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(scan(&[], &layout(TEXT, true, false), 10, streams, &want(0)).distinct, Some(vec![]));
    }
}

#[test]
fn what_cannot_be_scanned_is_refused() {
    let text = [text(&scattered(20), false)];
    let refused = |kind: &str, column: &str, want: &str| {
        let (_folder, mut spec) = spec(&text, &layout(kind, false, false), 100, 1, want);
        column.clone_into(&mut spec.column);
        let error = key_scan(&spec, &mut || false).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Specification, "{error}");
    };
    refused(INT64, "nowhere", r#"{"quantiles": 4}"#);
    refused(INT64, "back", r#"{"quantiles": 4}"#);
    refused(r#"{"kind": "float64"}"#, "key", r#"{"quantiles": 4}"#);
    refused(INT64, "key", r#"{"quantiles": 0}"#);
    refused(INT64, "key", r#"{"distinct": 4}"#);
    refused(INT64, "nowhere", r#"{"distinct": 4}"#);
    refused(INT64, "key", r#"{"quantiles": 10001}"#);
    refused(INT64, "key", r#"{"periods": {"unit": "month"}}"#);
}

#[test]
fn periods_that_are_too_many_are_refused() {
    let (_folder, spec) = spec(
        &[text(&scattered(20_000), false)],
        &layout(INT64, false, false),
        50_000,
        2,
        r#"{"periods": {"step": "1000"}}"#,
    );
    let error = key_scan(&spec, &mut || false).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Specification, "{error}");
}

#[test]
fn a_scan_ends_when_it_is_cancelled_or_a_file_changed() {
    let (folder, spec) =
        spec(&[text(&scattered(200), false)], &layout(INT64, false, false), 50, 2, r#"{"quantiles": 4}"#);
    assert_eq!(key_scan(&spec, &mut || true).unwrap_err().kind, ErrorKind::Cancelled);
    std::fs::write(folder.path().join("0"), "front|key|back\n").unwrap();
    assert_eq!(key_scan(&spec, &mut || false).unwrap_err().kind, ErrorKind::FileChanged);
}
