//! Rows that get columns of rows of other files.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, Decimal64Array, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchReader, StringArray,
};
use arrow_schema::ArrowError;
use headrace_engine::Flow;
use headrace_engine::lookup::{Batches, Lookup, LookupSpec, StreamLookupSpec};
use headrace_engine::report::{FlowReport, Status, TransformCounts};
use headrace_engine::slices::{SlicingSpec, plan_slices};
use headrace_engine::spec::{Operation, RoutingSpec, SinkSpec, TransformSpec};
use headrace_types::{Column, ColumnType, CoreError, Disposition, ErrorKind, Layout};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Job, check_report, join, rows};

/// code int64, nullable | name string | price decimal(9,2) | day date: what no test asks for.
fn layout() -> Layout {
    Layout {
        delimiter: "|".to_owned(),
        comment: Some("#".to_owned()),
        skip_lines: 1,
        columns: vec![
            Column::new("code", ColumnType::Int64, true),
            Column::new("name", ColumnType::String, false),
            Column::new("price", ColumnType::Decimal { precision: 9, scale: 2 }, true),
            Column::new("day", ColumnType::Date, false),
        ],
        ..Layout::default()
    }
}

/// Files of a lookup, which live as long as it.
struct Files {
    _folder: TempDir,
    spec: Value,
}

/// The specification of a lookup by `code` that adds a price.
fn files(texts: &[String], slice_bytes: u64, streams: usize) -> Files {
    let folder = TempDir::new().unwrap();
    let path = |index: usize| folder.path().join(format!("prices.{index}")).to_str().unwrap().to_owned();
    texts.iter().enumerate().for_each(|(index, text)| std::fs::write(path(index), text).unwrap());
    let files = (0..texts.len()).map(path).collect();
    let slicing = SlicingSpec { files, slice_bytes, layout: layout(), ..SlicingSpec::default() };
    let slicing = plan_slices(&slicing).unwrap();
    let spec = json!({
        "name": "priced",
        "files": slicing.files,
        "slices": slicing.slices,
        "layout": layout(),
        "keys": [{"column": "code", "input": {"kind": "int64"}}],
        "added": [{"column": "price", "default": "-1.00"}],
        "keeps_first": false,
        "ignores_case": false,
        "streams": streams,
        "budget_bytes": 100_000_000,
        "memory": {"block_bytes": 4096, "blocks": 2 * streams, "max_row_bytes": 1 << 20},
    });
    Files { _folder: folder, spec }
}

fn build(spec: &Value) -> Result<Arc<Lookup>, CoreError> {
    let spec: LookupSpec = serde_json::from_value(spec.clone()).unwrap();
    Lookup::build(&spec, &mut || false).map(Arc::new)
}

fn refusal(spec: &Value) -> CoreError {
    build(spec).err().expect("a lookup that cannot be")
}

/// Rows of a lookup, with comments among them.
fn price_text(codes: impl Iterator<Item = Option<i64>>) -> String {
    let line = |code: Option<i64>| {
        let comment = if code.is_some_and(|code| code % 7 == 0) { "# nothing\n" } else { "" };
        let price = code.filter(|code| code % 5 != 0).map(|code| format!("{code}.25")).unwrap_or_default();
        let code = code.map_or(String::new(), |code| code.to_string());
        format!("{comment}{code}|name {code}|{price}|not a day\n")
    };
    format!("code|name|price|day\n{}", codes.map(line).collect::<String>())
}

fn priced() -> Vec<TransformSpec> {
    transforms(json!([{"name": "priced", "lookup": {"keys": ["id"], "added": [
        {"name": "cost", "type": {"kind": "decimal", "precision": 9, "scale": 2}, "nullable": true}], "no_match": "default"}}]))
}

fn transforms(json: Value) -> Vec<TransformSpec> {
    serde_json::from_value(json).unwrap()
}

/// Ids and what they got, and how the flow went.
fn run(job: &Job, lookups: Vec<Arc<Lookup>>) -> (BTreeMap<i64, Option<i64>>, FlowReport) {
    let mut spec = job.plan().unwrap();
    let columns = vec!["cost".to_owned(), "id".to_owned()];
    spec.sink = SinkSpec::Arrow { columns, position: None, place_column: None };
    let flow = Flow::with_lookups(spec, lookups).unwrap();
    let reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let pairs = |batch: RecordBatch| {
        let costs = batch.column(0).as_primitive::<Decimal64Type>().iter().collect::<Vec<_>>();
        let ids = batch.column(1).as_primitive::<Int64Type>().values().to_vec();
        std::iter::zip(ids, costs).collect::<Vec<_>>()
    };
    let found = reader.flat_map(|batch| pairs(batch.unwrap())).collect();
    let report = join(&flow);
    check_report(&report, job.memory.blocks);
    (found, report)
}

/// Of all slices, which have balanced.
fn counts(report: &FlowReport, stage: usize) -> TransformCounts {
    let mut sum = TransformCounts::default();
    for slice in &report.slices {
        let own = &slice.transforms[stage];
        assert_eq!(own.rows, own.matched + own.defaulted + own.rejected);
        assert!(own.null_keys <= own.defaulted + own.rejected);
        sum.rows += own.rows;
        sum.matched += own.matched;
        sum.defaulted += own.defaulted;
        sum.rejected += own.rejected;
        sum.null_keys += own.null_keys;
    }
    sum
}

/// What a row of the data finds among these codes.
fn expected(id: i64, codes: &[Option<i64>]) -> Option<i64> {
    match codes.contains(&Some(id)) {
        true if id % 5 == 0 => None,
        true => Some(100 * id + 25),
        false => Some(-100),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn rows_find_what_a_search_finds_however_they_are_cut(
        codes in prop::collection::btree_set(-3_i64..260, 0..120),
        null_keys in 0_usize..3,
        slice_bytes in 200_u64..5000,
        lookup_slice_bytes in 60_u64..2000,
    ) {
        let codes: Vec<_> = codes.into_iter().map(Some).chain(std::iter::repeat_n(None, null_keys)).collect();
        let middle = codes.len() / 2;
        let texts = [price_text(codes[..middle].iter().copied()), price_text(codes[middle..].iter().copied())];
        let mut job = Job::of(rows(0, 250));
        job.transforms = priced();
        job.slice_bytes = slice_bytes;
        let mut seen = Vec::new();
        for streams in [1, 16] {
            let files = files(&texts, lookup_slice_bytes, streams);
            let lookup = build(&files.spec).unwrap();
            prop_assert_eq!(lookup.report().rows, (codes.len() - null_keys) as u64);
            prop_assert_eq!(lookup.report().null_keys, null_keys as u64);
            job.streams = streams;
            let (found, report) = run(&job, vec![lookup]);
            let wanted: BTreeMap<_, _> = (0..250).map(|id| (id, expected(id, &codes))).collect();
            prop_assert_eq!(&found, &wanted);
            let matched = (0..250).filter(|id| codes.contains(&Some(*id))).count() as u64;
            let sum = TransformCounts { rows: 250, matched, defaulted: 250 - matched, rejected: 0, null_keys: 0, ..TransformCounts::default() };
            prop_assert_eq!(counts(&report, 0), sum);
            prop_assert_eq!(report.transforms.len(), 1);
            seen.push(found);
        }
        prop_assert_eq!(&seen[0], &seen[1]);
    }
}

#[test]
fn a_transform_reads_what_the_one_before_adds_and_rows_without_a_key_are_told_apart() {
    let files = files(&[price_text((0..100).map(Some))], 1 << 20, 2);
    let by_price = |added: Value| {
        let mut spec = files.spec.clone();
        spec["name"] = json!("again");
        spec["keys"] = json!([{"column": "price", "input": {"kind": "decimal", "precision": 18, "scale": 2}}]);
        spec["added"] = added;
        spec
    };
    let first = build(&files.spec).unwrap();
    let mut again = by_price(json!([{"column": "name", "default": "?"}, {"column": "code", "default": null}]));
    again["keys"][0]["input"] = json!({"kind": "decimal", "precision": 9, "scale": 2});
    let second = build(&again).unwrap();
    assert_eq!((second.report().rows, second.report().null_keys), (80, 20), "prices of each fifth row are NULL");
    let mut job = Job::of(rows(0, 200));
    let mut both = priced();
    both.extend(transforms(json!([{"name": "again", "lookup": {"keys": ["cost"], "added": [
        {"name": "label", "type": {"kind": "string"}, "nullable": false},
        {"name": "code", "type": {"kind": "int64"}, "nullable": true}], "no_match": "default"}}])));
    job.transforms = both;
    let mut spec = job.plan().unwrap();
    let columns = ["id", "label", "code"].map(str::to_owned).to_vec();
    spec.sink = SinkSpec::Arrow { columns, position: Some("at".to_owned()), place_column: None };
    let flow = Flow::with_lookups(spec, vec![first.clone(), second.clone()]).unwrap();
    let reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let mut seen = 0;
    for batch in reader.map(Result::unwrap) {
        let ids = batch.column(0).as_primitive::<Int64Type>();
        let (labels, codes) = (batch.column(1).as_string_view(), batch.column(2).as_primitive::<Int64Type>());
        for row in 0..batch.num_rows() {
            let id = ids.value(row);
            let is_found = id < 100 && id % 5 != 0;
            assert_eq!(labels.value(row), if is_found { format!("name {id}") } else { "?".to_owned() });
            assert_eq!(codes.is_valid(row).then(|| codes.value(row)), is_found.then_some(id));
        }
        seen += batch.num_rows();
    }
    let report = join(&flow);
    assert_eq!((report.status, seen), (Status::Ok, 200));
    assert_eq!(
        counts(&report, 0),
        TransformCounts {
            rows: 200,
            matched: 100,
            defaulted: 100,
            rejected: 0,
            null_keys: 0,
            ..TransformCounts::default()
        }
    );
    assert_eq!(
        counts(&report, 1),
        TransformCounts {
            rows: 200,
            matched: 80,
            defaulted: 120,
            rejected: 0,
            null_keys: 20,
            ..TransformCounts::default()
        }
    );
    let transform = report.streams.iter().map(|stream| stream.stages.transform).fold(0, |sum, stage| sum + stage.rows);
    assert_eq!(transform, 200);

    // Not the type that the rows have.
    let other =
        build(&by_price(json!([{"column": "name", "default": "?"}, {"column": "code", "default": null}]))).unwrap();
    let refused = Flow::with_lookups(job.plan().unwrap(), vec![first, other]).err().unwrap();
    assert_eq!(refused.what, "flow test: transform `again`: its keys are of other types than those of the index");
}

#[test]
fn the_null_sink_and_places_of_rows_know_added_columns_and_rows_outside() {
    let files = files(&[price_text((0..100).map(Some))], 500, 2);
    let mut job = Job::of(format!("{}bad\n{}", rows(0, 150), rows(150, 300)));
    job.transforms = priced();
    job.limit = 1000;
    job.slice_bytes = 2000;
    let range = json!([{"minimum": "0", "end": "50"}, {"minimum": "50", "end": "200"}]);
    let routing: RoutingSpec =
        serde_json::from_value(json!({"column": "id", "method": {"range": range}, "default": null})).unwrap();
    job.routing = Some(routing);
    let flow = Flow::with_lookups(job.plan().unwrap(), vec![build(&files.spec).unwrap()]).unwrap();
    flow.start().unwrap();
    let report = join(&flow);
    check_report(&report, job.memory.blocks);
    let cost = report.columns.as_ref().unwrap().iter().find(|column| column.name == "cost").unwrap();
    assert_eq!((cost.rows, cost.nulls, cost.min.as_deref()), (200, 20, Some("-1.00")));
    assert_eq!(counts(&report, 0).rows, 300, "rows that no partition takes are rejects behind the transform");
    assert_eq!(
        report.rejects.by_rule,
        BTreeMap::from([("partition".to_owned(), 100), ("too_few_fields".to_owned(), 1)])
    );
}

#[test]
fn keys_that_two_rows_have_are_told_with_both_places() {
    // Line 1 is the header, 3 a comment, 5 blank, 6 has no key, 7 a bad day, which nobody reads.
    let first = "code|name|price|day\n1|a|1|x\n#\n2|b|2|x\n\n|c|3|x\n3|d|4|x\n".to_owned();
    let second = "code|name|price|day\n4|a|1|x\n3|b|2|x\n".to_owned();
    for (slice_bytes, streams) in [(1 << 20, 1), (16, 4)] {
        let files = files(&[first.clone(), second.clone()], slice_bytes, streams);
        let error = refusal(&files.spec);
        let at = error.at.as_ref().unwrap();
        assert_eq!((error.kind, at.row, at.byte), (ErrorKind::Source, Some(3), Some(28)));
        assert!(at.file.ends_with("prices.1"));
        let found = error.found.unwrap();
        assert!(found.starts_with("code = 3, first in ") && found.ends_with("prices.0, row 7"), "{found}");
        assert_eq!(error.what, "two rows of lookup `priced` have one key");
    }
    let same = "code|name|price|day\n1|a|1|x\n2|a|1|x\n1|a|1|x\n2|a|1|x\n1|a|1|x\n".to_owned();
    let files = files(&[same], 10, 3);
    let error = refusal(&files.spec);
    assert_eq!(error.found.as_deref(), Some("code = 1, first in row 2; 3 rows repeat a key"));
    assert_eq!(error.at.unwrap().row, Some(4));
    let mut by_price = files.spec.clone();
    by_price["keys"] = json!([{"column": "name", "input": {"kind": "string"}},
        {"column": "price", "input": {"kind": "decimal", "precision": 30, "scale": 2}}]);
    assert_eq!(
        refusal(&by_price).found.as_deref(),
        Some("name = \"a\", price = 1.00, first in row 2; 4 rows repeat a key")
    );
}

#[test]
fn the_first_of_rows_with_one_key_can_be_the_one_that_is_found() {
    // Of both files the later lines come first in the index, were it for the streams.
    let lines = |price: i64| (0..5_000).map(move |line| format!("{}|a|{price}.{:02}|x\n", line % 1_000, line / 1_000));
    let text = |price| format!("code|name|price|day\n\n{}", lines(price).collect::<String>());
    for (slice_bytes, streams) in [(1 << 20, 1), (700, 16)] {
        let mut files = files(&[text(1), text(2)], slice_bytes, streams);
        files.spec["keeps_first"] = json!(true);
        let lookup = build(&files.spec).unwrap();
        let report = lookup.report();
        assert_eq!((report.rows, report.duplicates, report.null_keys), (1_000, 9_000, 0));
        assert_eq!((report.lines, report.skipped), (10_004, 4));
        let mut job = Job::of(rows(0, 1_500));
        job.transforms = priced();
        let (found, _) = run(&job, vec![lookup]);
        assert!(found.iter().all(|(id, cost)| *cost == Some(if *id < 1_000 { 100 } else { -100 })), "{found:?}");
    }
}

#[test]
fn letters_may_differ_in_case() {
    let text = "code|name|price|day\n1|Straße|1|x\n2|ÄB|2|x\n3|äb|3|x\n".to_owned();
    let mut files = files(&[text], 1 << 20, 1);
    files.spec["keys"] = json!([{"column": "name", "input": {"kind": "string"}}]);
    assert_eq!(build(&files.spec).unwrap().report().rows, 3);
    files.spec["ignores_case"] = json!(true);
    let error = refusal(&files.spec);
    assert_eq!(error.found.as_deref(), Some("name = \"äb\", first in row 3"));
    files.spec["keeps_first"] = json!(true);
    let report = build(&files.spec).unwrap().report().clone();
    assert_eq!((report.rows, report.duplicates), (2, 1));
}

#[test]
fn a_bad_row_is_told_before_the_memory() {
    let text = price_text((0..20_000).map(Some)).replacen("\n", "\nx|b|2|x\n", 1);
    let files = files(&[text], 1 << 20, 1);
    let mut small = files.spec.clone();
    small["budget_bytes"] = json!(400_000);
    let error = refusal(&small);
    assert_eq!((error.kind, error.at.as_ref().and_then(|at| at.row)), (ErrorKind::Source, Some(2)), "{error:?}");
}

#[test]
fn rows_that_cannot_be_read_fail_the_lookup() {
    let text = "code|name|price|day\n1|a|1|x\nx|b|2|x\n2|c|many|x\n".to_owned();
    for slice_bytes in [1 << 20, 10] {
        let files = files(std::slice::from_ref(&text), slice_bytes, 3);
        let error = refusal(&files.spec);
        let at = error.at.as_ref().unwrap();
        assert_eq!((error.kind, at.row, at.byte), (ErrorKind::Source, Some(3), Some(28)));
        assert_eq!(
            error.what,
            "a row of lookup `priced` cannot be read: cannot convert a value for column `code` (1) to int64"
        );
        assert_eq!(error.found.as_deref(), Some("\"x\""));
        assert!(error.expected.is_some() && error.hint.is_some());
    }
}

#[test]
fn lookups_end_when_they_should() {
    let files = files(&[price_text((0..20_000).map(Some))], 10_000, 2);
    let mut small = files.spec.clone();
    small["budget_bytes"] = json!(400_000);
    let error = refusal(&small);
    assert_eq!(error.kind, ErrorKind::Memory);
    assert_eq!(error.what, "lookup `priced` needs more memory than the run has for it");
    assert_eq!(error.expected.as_deref(), Some("at most 1 MB"));
    let spec: LookupSpec = serde_json::from_value(files.spec.clone()).unwrap();
    for asked_before in [0, 1, 2] {
        let mut asked = 0;
        let mut is_cancelled = || {
            asked += 1;
            asked > asked_before
        };
        let error = Lookup::build(&spec, &mut is_cancelled).err();
        assert_eq!(error.map(|error| error.kind), Some(ErrorKind::Cancelled));
    }
    let mut changed = files.spec.clone();
    changed["files"][0]["modified_ns"] = json!(5);
    assert!(refusal(&changed).what.starts_with("reading lookup `priced`: "));
    let report = build(&files.spec).unwrap().report().clone();
    assert_eq!((report.rows, report.form.as_str()), (20_000, "direct"));
    assert!(report.bytes <= report.peak_bytes && report.peak_bytes < 2_000_000, "{report:?}");
}

#[test]
fn specifications_that_contradict_themselves_are_refused() {
    let files = files(&[price_text((0..10).map(Some))], 1 << 20, 1);
    for (members, text) in [
        (json!({"keys": [{"column": "cod", "input": {"kind": "int64"}}]}), "the files have no column `cod`"),
        (json!({"added": [{"column": "cost", "default": null}]}), "the files have no column `cost`"),
        (
            json!({"keys": [{"column": "code", "input": {"kind": "string"}}]}),
            "a key of type int64 cannot be found by string",
        ),
        (json!({"keys": []}), "a key without columns"),
    ] {
        let mut spec = files.spec.clone();
        members.as_object().unwrap().iter().for_each(|(name, value)| spec[name] = value.clone());
        let error = refusal(&spec);
        assert_eq!((error.kind, error.what), (ErrorKind::Specification, format!("lookup `priced`: {text}")));
    }
    let mut spec = files.spec.clone();
    spec["added"][0]["default"] = json!("cheap");
    assert_eq!(refusal(&spec).kind, ErrorKind::Specification);

    let lookup = build(&files.spec).unwrap();
    let refused = |transforms: Vec<TransformSpec>, sink: Option<SinkSpec>, lookups: Vec<Arc<Lookup>>| {
        let mut job = Job::of(rows(0, 10));
        job.transforms = transforms;
        let mut spec = job.plan().unwrap();
        spec.sink = sink.unwrap_or(spec.sink);
        let error = Flow::with_lookups(spec, lookups).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Specification);
        error.what
    };
    let one = || vec![lookup.clone()];
    let of = |keys: Value, added: Value| {
        transforms(json!([{"name": "t", "lookup": {"keys": keys, "added": added, "no_match": "default"}}]))
    };
    let cost = |name: &str, nullable: bool| json!([{"name": name, "type": {"kind": "decimal", "precision": 9, "scale": 2}, "nullable": nullable}]);
    assert_eq!(refused(priced(), None, vec![]), "flow test: 0 lookups for 1 transforms");
    let unknown = of(json!(["nobody"]), cost("cost", true));
    assert_eq!(refused(unknown, None, one()), "flow test: transform `t`: its rows have no column `nobody`");
    let twice = of(json!(["id"]), cost("name", true));
    assert_eq!(refused(twice, None, one()), "flow test: transform `t`: column name `name` stands twice");
    let other = of(json!(["id"]), json!([{"name": "cost", "type": {"kind": "int32"}, "nullable": true}]));
    assert_eq!(refused(other, None, one()), "flow test: transform `t`: it adds other columns than the index has");
    let mut null_default = files.spec.clone();
    null_default["added"] = json!([{"column": "price", "default": null}]);
    let not_null = of(json!(["id"]), cost("cost", false));
    assert_eq!(
        refused(not_null, None, vec![build(&null_default).unwrap()]),
        "flow test: transform `t`: column `cost` cannot be NULL, and its default is"
    );
    let sink = SinkSpec::Arrow { columns: vec!["price".to_owned()], position: None, place_column: None };
    assert_eq!(
        refused(priced(), Some(sink), one()),
        "flow test: the rows have no column `price`, which the sink wants"
    );
}

/// Rejects rows without a price, and, if `price_is_set`, those whose price is NULL.
fn must_be_priced(price_is_set: bool) -> Vec<TransformSpec> {
    transforms(json!([{"name": "priced", "lookup": {"keys": ["id"], "no_match": "reject", "added": [
        {"name": "cost", "type": {"kind": "decimal", "precision": 9, "scale": 2}, "nullable": !price_is_set}]}}]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn rows_that_find_nothing_are_rejects_in_file_order_however_they_are_cut(
        codes in prop::collection::btree_set(0_i64..260, 0..260),
        bad_before in 0_u64..250,
        price_is_set in any::<bool>(),
        is_routed in any::<bool>(),
        slice_bytes in 200_u64..5000,
    ) {
        let codes: Vec<_> = codes.into_iter().map(Some).collect();
        let mut job = Job::of(format!("{}bad\n{}", rows(0, bad_before), rows(bad_before, 250)));
        (job.transforms, job.slice_bytes, job.limit) = (must_be_priced(price_is_set), slice_bytes, 1000);
        let range = json!({"column": "id", "method": {"range": [{"minimum": "0", "end": "200"}]}, "default": null});
        job.routing = is_routed.then(|| serde_json::from_value(range).unwrap());
        // What becomes of the row of an id: what it finds, or the rule it breaks.
        let fate = |id: i64| match codes.contains(&Some(id)) {
            false => Err("no_match"),
            true if id % 5 == 0 && price_is_set => Err("null_not_allowed"),
            true if id >= 200 && is_routed => Err("partition"),
            true => Ok(expected(id, &codes)),
        };
        let wanted: BTreeMap<_, _> = (0..250).filter_map(|id| Some((id, fate(id).ok()?))).collect();
        let line = |id: i64| id as u64 + 1 + u64::from(id as u64 >= bad_before);
        let mut bad: Vec<_> = (0..250).filter_map(|id| Some((line(id), fate(id).err()?))).collect();
        bad.push((bad_before + 1, "too_few_fields"));
        bad.sort_unstable();
        for streams in [1, 16] {
            let files = files(&[price_text(codes.iter().copied())], 700, streams);
            job.streams = streams;
            let (found, report) = run(&job, vec![build(&files.spec).unwrap()]);
            prop_assert_eq!(&found, &wanted);
            let seen: Vec<_> = report.rejects.first.iter().map(|own| (own.row, own.rule.as_str())).collect();
            prop_assert_eq!(&seen[..], &bad[..seen.len()]);
            prop_assert_eq!(report.rejects.count as usize, bad.len());
            let of = |rule: &str| bad.iter().filter(|(_, own)| *own == rule).count() as u64;
            for rule in ["no_match", "null_not_allowed", "partition"] {
                prop_assert_eq!(report.rejects.by_rule.get(rule).copied().unwrap_or_default(), of(rule));
            }
            let counts = counts(&report, 0);
            prop_assert_eq!((counts.rows, counts.rejected), (250, of("no_match") + of("null_not_allowed")));
        }
    }
}

#[test]
fn rejects_of_lookups_say_what_was_looked_for() {
    let files = files(&[price_text((0..100).map(Some))], 1 << 20, 1);
    let mut job = Job::of(rows(99, 102));
    (job.transforms, job.limit) = (must_be_priced(true), 10);
    let (found, report) = run(&job, vec![build(&files.spec).unwrap()]);
    assert_eq!(found, BTreeMap::from([(99, Some(9925))]));
    let first = &report.rejects.first[0];
    assert_eq!((first.value.as_str(), first.column.as_deref(), first.code.as_str()), ("100", Some("id"), "HR602"));
    assert_eq!(first.message, "no match in lookup `priced` for column `id` (1)");
    assert_eq!((first.row, first.byte - first.row_byte), (2, 0));

    let mut job = Job::of(rows(99, 102));
    job.transforms = must_be_priced(true);
    let mut both = files.spec.clone();
    both["keys"] =
        json!([{"column": "code", "input": {"kind": "int64"}}, {"column": "name", "input": {"kind": "string"}}]);
    let Operation::Lookup(probe) = &mut job.transforms[0].operation else { panic!("a lookup") };
    probe.keys = vec!["id".to_owned(), "name".to_owned()];
    job.limit = 10;
    let (_, report) = run(&job, vec![build(&both).unwrap()]);
    assert_eq!(report.rejects.first[0].message, "no match in lookup `priced` by `id` and `name` for column `id` (1)");

    let mut job = Job::of(rows(10, 11));
    (job.transforms, job.limit) = (must_be_priced(true), 10);
    let (_, report) = run(&job, vec![build(&files.spec).unwrap()]);
    let first = &report.rejects.first[0];
    assert_eq!((first.column.as_deref(), first.code.as_str()), (None, "HR201"));
    assert_eq!(first.message, "no value for column `cost`: lookup `priced` has found NULL");
    assert_eq!(first.value, rows(10, 11).trim_end());
}

#[test]
fn places_are_those_of_rows_that_have_passed() {
    let files = files(&[price_text((0..300).filter(|id| id % 3 == 0).map(Some))], 1 << 20, 1);
    let lookup = build(&files.spec).unwrap();
    let mut job = Job::of(rows(0, 300));
    (job.transforms, job.limit, job.slice_bytes, job.streams) = (must_be_priced(false), 1000, 2000, 3);
    let mut spec = job.plan().unwrap();
    let columns = vec!["id".to_owned()];
    spec.sink = SinkSpec::Arrow { columns, position: Some("at".to_owned()), place_column: None };
    let flow = Flow::with_lookups(spec, vec![lookup.clone()]).unwrap();
    let reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let mut positions = BTreeMap::new();
    for batch in reader.map(Result::unwrap) {
        let at = batch.column(1).as_primitive::<UInt64Type>().values().to_vec();
        positions.extend(std::iter::zip(batch.column(0).as_primitive::<Int64Type>().values().to_vec(), at));
    }
    let ended = join(&flow).slices;
    assert_eq!(positions.len(), 100);
    let ids = [0, 3, 150, 297];
    let mut spec = job.plan().unwrap();
    let wanted: Vec<Value> = ids.iter().map(|id| json!(positions[id])).collect();
    spec.sink = SinkSpec::Locate { rows: serde_json::from_value(json!(wanted)).unwrap(), ended };
    let flow = Flow::with_lookups(spec, vec![lookup]).unwrap();
    flow.start().unwrap();
    let places = join(&flow).sink.places.unwrap();
    let found: Vec<_> = places.into_iter().map(|place| place.unwrap().row.unwrap()).collect();
    assert_eq!(found, [1, 4, 151, 298]);
}

#[test]
fn batches_outlive_the_lookup_they_are_of() {
    let files = files(&[price_text((1..5).map(Some))], 1 << 20, 1);
    let mut spec = files.spec.clone();
    spec["added"] = json!([{"column": "name", "default": "a text that is longer than twelve bytes"}]);
    let mut job = Job::of(rows(0, 8));
    job.transforms = transforms(json!([{"name": "t", "lookup": {"keys": ["id"], "added": [
        {"name": "label", "type": {"kind": "string"}, "nullable": false}], "no_match": "default"}}]));
    let mut flow_spec = job.plan().unwrap();
    let columns = vec!["label".to_owned()];
    flow_spec.sink = SinkSpec::Arrow { columns, position: None, place_column: None };
    let flow = Flow::with_lookups(flow_spec, vec![build(&spec).unwrap()]).unwrap();
    let reader = flow.take_reader().unwrap();
    flow.start().unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    join(&flow);
    drop(flow);
    let labels = batches.iter().flat_map(|batch| batch.column(0).as_string_view().iter().flatten()).collect::<Vec<_>>();
    let default = "a text that is longer than twelve bytes";
    assert_eq!(labels, [default, "name 1", "name 2", "name 3", "name 4", default, default, default]);
}

#[test]
fn defaults_are_texts_of_any_kind() {
    let files = files(&[price_text((0..2).map(Some))], 1 << 20, 1);
    let mut spec = files.spec.clone();
    for text in ["", "a|b\n\u{1f}", "'"] {
        spec["added"] = json!([{"column": "name", "default": text}]);
        build(&spec).unwrap();
    }
    spec["added"] = json!([{"column": "code", "default": "9223372036854775807"}]);
    let lookup = build(&spec).unwrap();
    let mut job = Job::of(rows(1, 3));
    job.transforms = transforms(json!([{"name": "t", "lookup": {"keys": ["id"], "added": [
        {"name": "cost", "type": {"kind": "int64"}, "nullable": true}], "no_match": "default"}}]));
    let flow = Flow::with_lookups(job.plan().unwrap(), vec![lookup]).unwrap();
    flow.start().unwrap();
    let report = join(&flow);
    let cost = report.columns.unwrap().pop().unwrap();
    assert_eq!((cost.min.as_deref(), cost.max.as_deref()), (Some("1"), Some("9223372036854775807")));
}

type Stream = Box<dyn RecordBatchReader + Send>;

fn looked_up(
    spec: &StreamLookupSpec,
    stream: Stream,
    is_cancelled: &mut dyn FnMut() -> bool,
) -> Result<Lookup, CoreError> {
    Lookup::of_batches(spec, vec![Batches::Stream(stream)], is_cancelled)
}

/// Batches of `code` and `price`, behind a column that nobody wants.
fn stream(codes: Vec<Vec<Option<i64>>>) -> Stream {
    let batch = |codes: Vec<Option<i64>>| {
        let prices = codes.iter().map(|code| code.map(|code| 100 * code)).collect::<Decimal64Array>();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("other", Arc::new(StringArray::from(vec!["x"; codes.len()]))),
            ("price", Arc::new(prices.with_precision_and_scale(9, 2).unwrap())),
            ("code", Arc::new(Int64Array::from(codes))),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    };
    let batches: Vec<RecordBatch> = codes.into_iter().map(batch).collect();
    let schema = batches[0].schema();
    Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), schema))
}

fn stream_spec(members: Value) -> StreamLookupSpec {
    let mut spec = json!({
        "name": "priced",
        "source": "query",
        "columns": [
            {"name": "code", "type": {"kind": "int64"}, "nullable": true},
            {"name": "price", "type": {"kind": "decimal", "precision": 9, "scale": 2}, "nullable": true},
        ],
        "places": [2, 1],
        "keys": [{"column": "code", "input": {"kind": "int64"}}],
        "added": [{"column": "price", "default": "-1.00"}],
        "keeps_first": false,
        "ignores_case": false,
        "streams": 2,
        "budget_bytes": 100_000_000,
    });
    members.as_object().unwrap().iter().for_each(|(name, value)| spec[name] = value.clone());
    serde_json::from_value(spec).unwrap()
}

#[test]
fn rows_of_a_stream_are_found_as_those_of_files() {
    let codes = vec![(0..50).map(Some).collect(), vec![], vec![None, Some(70)]];
    let lookup = looked_up(&stream_spec(json!({})), stream(codes), &mut || false).unwrap();
    let report = lookup.report().clone();
    assert_eq!((report.rows, report.null_keys, report.lines, report.bytes_read), (51, 1, 52, 0));
    let mut job = Job::of(rows(0, 100));
    job.transforms = priced();
    let (found, _) = run(&job, vec![Arc::new(lookup)]);
    let expected = |id: i64| if id < 50 || id == 70 { 100 * id } else { -100 };
    assert!(found.len() == 100 && found.iter().all(|(id, cost)| *cost == Some(expected(*id))), "{found:?}");
}

#[test]
fn streams_that_make_no_lookup() {
    let refusal = |members: Value, codes: Vec<Vec<Option<i64>>>| {
        looked_up(&stream_spec(members), stream(codes), &mut || false).err().expect("a lookup that cannot be")
    };
    let error = refusal(json!({}), vec![vec![Some(5), Some(7)], vec![Some(7), Some(7)]]);
    assert_eq!((error.kind, error.at.is_none()), (ErrorKind::Source, true));
    assert_eq!(error.what, "two rows of lookup `priced` have one key");
    assert_eq!(error.found.as_deref(), Some("code = 7; 2 rows repeat a key"));
    assert_eq!(error.hint.as_deref(), Some("Leave all rows but one of each key out of the query."));
    let first = stream_spec(json!({"keeps_first": true}));
    let lookup = looked_up(&first, stream(vec![vec![Some(5), Some(5)]]), &mut || false).unwrap();
    assert_eq!((lookup.report().rows, lookup.report().duplicates), (1, 1));

    let budget = json!({"budget_bytes": 300_000});
    assert_eq!(refusal(budget, vec![(0..100_000).map(Some).collect()]).kind, ErrorKind::Memory);
    let unknown = refusal(json!({"keys": [{"column": "cod", "input": {"kind": "int64"}}]}), vec![vec![]]);
    assert_eq!(unknown.what, "lookup `priced`: the query has no column `cod`");
    assert_eq!(refusal(json!({"places": [2, 3]}), vec![vec![Some(1)]]).kind, ErrorKind::Internal);
    assert_eq!(refusal(json!({"places": [0, 1]}), vec![vec![Some(1)]]).kind, ErrorKind::Internal);

    let failing = stream(vec![vec![Some(1)]]);
    let schema = failing.schema();
    let late = std::iter::once(Err(ArrowError::CDataInterface("Conversion Error: no number".to_owned())));
    let failing = Box::new(RecordBatchIterator::new(failing.chain(late), schema));
    let error = looked_up(&stream_spec(json!({})), failing, &mut || false).err().unwrap();
    assert_eq!(error.what, "reading lookup `priced` failed");
    assert_eq!(error.found.as_deref(), Some("Conversion Error: no number"));
}

#[test]
fn a_stream_that_waits_is_stopped_by_who_is_asked() {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let schema = stream(vec![vec![]]).schema();
    // It answers only when it is stopped.
    let waiting = std::iter::once_with(move || {
        let _ = stopped.recv();
        Err(ArrowError::CDataInterface("interrupted".to_owned()))
    });
    let waiting = Box::new(RecordBatchIterator::new(waiting, schema));
    let mut asked = 0;
    let mut is_cancelled = || {
        asked += 1;
        asked > 2 && stop.send(()).map_or(true, |()| true)
    };
    let error = looked_up(&stream_spec(json!({})), waiting, &mut is_cancelled).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Cancelled);
}

#[test]
fn rows_that_find_nothing_go_to_an_output_of_their_own_as_they_came() {
    let files = files(&[price_text((0..100).map(Some))], 500, 2);
    for streams in [1, 16] {
        let mut job = Job::of(format!("{}bad\n{}", rows(0, 150), rows(150, 300)));
        (job.streams, job.slice_bytes, job.limit) = (streams, 2000, 100);
        job.memory.blocks = 40;
        let mut spec = job.plan().unwrap();
        // Prices of each fifth row are NULL.
        spec.transforms = transforms(json!([{"name": "priced", "lookup": {"keys": ["id"], "added": [
            {"name": "cost", "type": {"kind": "decimal", "precision": 9, "scale": 2}, "nullable": false}],
            "no_match": "output"}}]));
        spec.others = vec![
            serde_json::from_value(
                json!({"name": "missed", "input": {"transform": 0, "output": 1}, "sink": {"kind": "null"}}),
            )
            .unwrap(),
        ];
        let flow = Flow::with_lookups(spec, vec![build(&files.spec).unwrap()]).unwrap();
        flow.start().unwrap();
        let report = join(&flow);
        assert_eq!(report.status, Status::Ok, "{:?}", report.error);
        let names = |number: usize| {
            let columns = report.destinations[number].columns.as_ref().unwrap();
            columns.iter().map(|column| (column.name.as_str(), column.rows)).collect::<Vec<_>>()
        };
        assert_eq!(names(0), [("id", 80), ("name", 80), ("amount", 80), ("day", 80), ("cost", 80)]);
        assert_eq!(names(1), [("id", 200), ("name", 200), ("amount", 200), ("day", 200)]);
        let sum = report.slices.iter().fold([0; 6], |sum, slice| {
            let [found, missed] = [slice.destinations[0], slice.destinations[1]];
            let own = [found.out, found.filtered, found.rejected, missed.out, missed.filtered, missed.rejected];
            std::array::from_fn(|place| sum[place] + own[place])
        });
        assert_eq!(sum, [80, 200, 21, 200, 80, 21]);
        assert_eq!((report.rejects.count, report.rejects.by_rule["null_not_allowed"]), (21, 20));
    }
}

/// As many as the parser has made of the file: a way that refuses rows is not on the way of an attempt that goes on elsewhere.
#[test]
fn values_are_ignored_in_rows_that_find_nothing_as_in_others() {
    let files = files(&[price_text((0..40).map(Some))], 1 << 20, 1);
    let mut job = Job::of(rows(0, 100).replace("2024-01-03", "no day"));
    job.layout.columns[3].on_error = Disposition::Ignore;
    job.limit = 100;
    let alone = job.run().slices[0].clone();
    assert!(alone.values_ignored > 2);
    job.transforms = transforms(json!([{"name": "priced", "lookup": {"keys": ["id"], "no_match": "reject", "added": [
        {"name": "cost", "type": {"kind": "decimal", "precision": 9, "scale": 2}, "nullable": true}]}}]));
    let (found, report) = run(&job, vec![build(&files.spec).unwrap()]);
    assert_eq!((found.len(), report.slices[0].rejected), (40, 60));
    assert_eq!((report.slices[0].values_ignored, &report.slices[0].ignored), (alone.values_ignored, &alone.ignored));
}
