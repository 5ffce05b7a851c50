//! Rows of one source that go past a join or a union into tables of their own, whether others of it come together with rows of another
//! source or none.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use headrace_engine::report::{FlowReport, SliceReport, Status};
use headrace_engine::slices::{SlicingSpec, plan_slices};
use headrace_engine::spec::{FlowSpec, SinkSpec};
use headrace_engine::{Flow, Window};
use headrace_types::Layout;
use serde_json::{Value, json};

use crate::server::{Server, servers};

const FILES: usize = 2;
/// The sources whose rows go past: one of two that come together, and one that stands apart.
const BESIDE: usize = 1;
const APART: usize = 2;
/// A row of the second right file that its table refuses.
const REFUSED: i64 = 700_130;

fn layout() -> Value {
    json!({"delimiter": "|", "columns": [
        {"name": "id", "type": {"kind": "int64"}, "nullable": false},
        {"name": "name", "type": {"kind": "string"}, "nullable": false}]})
}

fn begin(file: usize) -> i64 {
    file as i64 * 700_000
}

/// Each id once.
fn left(file: usize) -> String {
    (begin(file)..begin(file) + 300).map(|id| format!("{id}|name of {id}\n")).collect()
}

/// Each id three times, and lines that nobody can read.
fn right(file: usize, is_refused: bool) -> String {
    let line = |number: i64| match begin(file) + number / 3 {
        _ if number % 40 == 7 => format!("x|bad {number}\n"),
        id if is_refused && id == REFUSED && number % 3 == 1 => format!("{id}|refused\n"),
        id => format!("{id}|line {number} {}\n", "l".repeat(number as usize % 50)),
    };
    (0..900).map(line).collect()
}

/// Whether the query in front leaves a row; none of others.
fn is_kept(id: i64) -> bool {
    id % 4 != 1
}

/// A flow whose first destination is behind two sources, and whose second one gets rows of one source alone, the last one, behind a query.
/// That has the `tables`, unless there are none: then the first one has one.
fn flow(server: &Server, folder: &Path, is_join: bool, source: usize, is_refused: bool, tables: &[Value]) -> Flow {
    Flow::new(spec(server, folder, is_join, source, is_refused, tables)).unwrap()
}

fn spec(server: &Server, folder: &Path, is_join: bool, source: usize, is_refused: bool, tables: &[Value]) -> FlowSpec {
    let is_behind = tables.is_empty();
    let rights = |own: usize| (0..FILES).map(move |file| right(file, is_refused && own == source));
    let texts = (0..FILES).map(left).chain((BESIDE..=source).flat_map(rights));
    let files: Vec<String> =
        (0..(source + 1) * FILES).map(|file| folder.join(file.to_string()).display().to_string()).collect();
    files.iter().zip(texts).for_each(|(file, text)| std::fs::write(file, text).unwrap());
    let columns: Layout = serde_json::from_value(layout()).unwrap();
    let slice_bytes = if is_join { 1 << 30 } else { 7000 };
    let slicing = plan_slices(&SlicingSpec { files, slice_bytes, layout: columns, ..SlicingSpec::default() }).unwrap();
    let of_last = slicing.slices.iter().filter(|slice| slice.file >= source * FILES).map(|slice| slice.number);
    let of_last: Vec<u32> = of_last.collect();
    let tables: Vec<Value> =
        tables.iter().map(|own| with(own, &json!({"slices": of_last, "owned": false, "begin": "BEGIN"}))).collect();
    let column =
        |name: &str, kind: &str| json!({"name": name, "type": {"kind": kind}, "nullable": false, "from": name});
    let columns = [column("id", "int64"), column("name", "string")];
    let bounds = |minimum: Option<&str>, end: Option<&str>| json!({"minimum": minimum, "end": end});
    let is_shared = tables.len() > 1;
    let ranges = [bounds(None, Some("100")), bounds(Some("100"), None)];
    let routing = json!({"column": "id", "method": {"range": ranges}});
    let ledger = "INSERT INTO beside_ledger SELECT $1, slice, loaded, rejected, filtered FROM unnest($2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[]) \
        AS rows (slice, loaded, rejected, skipped, bytes, ignored, filtered, hash)";
    let sink = json!({"kind": "postgres", "way": if is_shared { "shared" } else { "plain" }, "commit": "unit", "commit_slices": ledger,
        "connection": {"hosts": [{"host": "127.0.0.1", "port": server.port}], "database": "postgres",
            "user": "headrace", "application_name": "headrace beside", "connect_timeout_seconds": 10},
        "columns": [{"source": "id", "form": "int8"}, {"source": "name", "form": "text"}],
        "tables": tables});
    let together = slicing.slices.iter().filter(|slice| slice.file < APART * FILES);
    let all: Vec<u32> = together.map(|slice| slice.number).collect();
    let copy = "COPY beside_c (name) FROM STDIN (FORMAT binary)";
    let sink_behind = with(
        &sink,
        &json!({"way": "plain", "commit_slices": null, "columns": [{"source": "name", "form": "text"}],
        "tables": [{"name": "beside_c", "partition": "", "slices": all, "owned": false, "begin": "BEGIN", "copy": copy}]}),
    );
    let other = json!({"name": "kept", "input": {"transform": 0}, "input_source": source, "sink": sink});
    let apart = (source == APART)
        .then(|| json!({"name": "others", "layout": layout(), "first_file": APART * FILES, "apart": true}));
    let of_join =
        [json!({"name": "people", "first_file": 0}), json!({"name": "lines", "layout": layout(), "first_file": FILES})];
    let join = json!({"name": "joined", "sides": [0, 1], "sources": of_join.iter().chain(&apart).collect::<Vec<_>>(), "kind": "inner",
        "keys": [["id", "id"]], "columns": [{"side": "right", "column": "name", "name": "name"}]});
    let of_union = [
        json!({"name": "people", "first_file": 0, "places": [1]}),
        json!({"name": "lines", "layout": layout(), "first_file": FILES, "places": [1]}),
    ];
    let apart = apart.map(|own| with(&own, &json!({"places": []})));
    let union = json!({"name": "all", "columns": [{"name": "name", "type": {"kind": "string"}, "nullable": false}],
        "sources": of_union.into_iter().chain(apart).collect::<Vec<_>>()});
    let spec = json!({
        "name": "test", "layout": layout(), "streams": 2,
        "source": {"files": slicing.files, "slices": slicing.slices},
        (if is_join { "join" } else { "union" }): if is_join { join } else { union },
        "transforms": [{"name": "kept", "source": source, "inputs": [{"transform": null}], "query": {"number": "row", "columns": columns}}],
        "memory": {"block_bytes": 4096, "blocks": 12, "max_row_bytes": 1 << 20},
        "rejects": {"limit": 1000, "folder": folder, "file_stem": "rejected"},
        "destination": "behind", "input": {"transform": null},
        "sink": if is_behind { sink_behind } else { json!({"kind": "null"}) },
        "others": [if is_behind { with(&other, &json!({"sink": {"kind": "null"}})) } else if is_shared { with(&other, &json!({"routing": routing})) } else { other }],
    });
    serde_json::from_value(spec).unwrap()
}

fn with(own: &Value, others: &Value) -> Value {
    let mut all = own.clone();
    all.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
    all
}

fn answer(window: Window) {
    let ids = window.rows.column(0).as_primitive::<Int64Type>().values();
    let numbers = window.rows.column(2).as_primitive::<UInt32Type>().values();
    let kept = numbers.iter().zip(ids).filter(|(_, id)| is_kept(**id)).map(|(number, _)| *number);
    let kept: ArrayRef = Arc::new(UInt32Array::from_iter_values(kept));
    window.answer(Ok(vec![RecordBatch::try_from_iter([("row", kept)]).unwrap()]));
}

fn run(flow: &Flow) -> FlowReport {
    flow.start().unwrap();
    std::thread::scope(|scope| {
        (0..2).for_each(|_| {
            scope.spawn(|| {
                while let Some(window) = flow.next_window() {
                    answer(window);
                }
            });
        });
        flow.join(Duration::from_secs(60)).expect("the flow hangs")
    })
}

fn numbers(server: &Server, sql: &str) -> Vec<Vec<u64>> {
    let rows = server.connect().query(sql, &[]).unwrap().rows;
    rows.iter().map(|row| row.iter().map(|own| own.as_ref().unwrap().parse().unwrap()).collect()).collect()
}

#[test]
fn tables_beside_a_join_or_union_have_rows_accounts_and_places_of_their_source() {
    let table = |name: &str| json!({"name": name, "partition": name, "copy": format!("COPY {name} (id, name) FROM STDIN (FORMAT binary)")});
    for server in servers() {
        let sql = "CREATE TABLE beside_a (id bigint, name text, CHECK (name <> 'refused')); CREATE TABLE beside_b (LIKE beside_a INCLUDING ALL); \
            CREATE TABLE beside_ledger (partition text, slice int, loaded bigint, rejected bigint, filtered bigint)";
        server.connect().execute(sql).unwrap();
        let kinds = [true, false].into_iter().flat_map(|is_join| [(is_join, BESIDE), (is_join, APART)]);
        for (is_join, source, tables) in kinds.flat_map(|(is_join, source)| {
            [vec![table("beside_a")], vec![table("beside_a"), table("beside_b")]]
                .map(|tables| (is_join, source, tables))
        }) {
            let folder = tempfile::tempdir().unwrap();
            let report = run(&flow(server, folder.path(), is_join, source, false, &tables));
            assert_eq!(report.status, Status::Ok, "{:?}", report.error);
            let found = numbers(server, "SELECT (SELECT count(*) FROM beside_a), (SELECT count(*) FROM beside_b)");
            let kept = |file: usize| {
                let rows = right(file, false);
                let ids = rows.lines().filter_map(|line| line.split_once('|')?.0.parse::<i64>().ok());
                ids.filter(|id| is_kept(*id)).collect::<Vec<_>>()
            };
            let all = [kept(0), kept(1)].concat();
            let of_second = if tables.len() > 1 { all.iter().filter(|id| **id >= 100).count() } else { 0 };
            assert_eq!(found, [[(all.len() - of_second) as u64, of_second as u64]]);
            // Its ledger knows slices of its source alone.
            let ledger = "SELECT slice, sum(loaded), sum(rejected), sum(filtered) FROM beside_ledger GROUP BY slice ORDER BY slice";
            let own = report.slices.iter().filter(|slice| slice.file >= source * FILES);
            let own: Vec<Vec<u64>> = own
                .map(|slice| {
                    let own = slice.destinations[1];
                    assert_eq!(slice.rows, own.out + own.rejected + own.filtered);
                    vec![slice.number.into(), own.out, own.rejected, own.filtered]
                })
                .collect();
            assert_eq!(numbers(server, ledger), own);
            server.connect().execute("TRUNCATE beside_a, beside_b, beside_ledger").unwrap();

            let report = run(&flow(server, folder.path(), is_join, source, true, &tables));
            let error = report.error.expect("the row was not refused");
            assert_eq!(error.server.as_ref().map(|server| server.sqlstate.as_str()), Some("23514"), "{error:?}");
            let text = right(1, true);
            let row = text.lines().position(|line| line.ends_with("refused")).unwrap();
            let byte = text.lines().take(row).map(|line| line.len() as u64 + 1).sum();
            let at = error.at.as_ref().unwrap();
            assert!(at.file.ends_with(&format!("/{}", source * FILES + 1)), "{error:?}");
            assert_eq!((at.row, at.byte, &at.joined_with), (Some(row as u64 + 1), Some(byte), &None), "{error:?}");
            assert_eq!(error.destination.as_deref(), Some("kept"));
            server.connect().execute("TRUNCATE beside_a, beside_b, beside_ledger").unwrap();
        }
    }
}

#[test]
fn rows_behind_a_join_or_union_are_found_where_others_read_their_source_as_a_whole() {
    for server in servers() {
        server.connect().execute("CREATE TABLE beside_c (name text, CHECK (name <> 'refused'))").unwrap();
        for is_join in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let report = run(&flow(server, folder.path(), is_join, BESIDE, true, &[]));
            let at = report.error.expect("the row was not refused").at.unwrap();
            let row = right(1, true).lines().position(|line| line.ends_with("refused")).unwrap();
            assert!(at.file.ends_with("/3"), "{at:?}");
            assert_eq!((at.row, at.joined_with.is_some()), (Some(row as u64 + 1), is_join), "{at:?}");
        }
    }
}

#[test]
fn a_source_apart_that_nobody_wants_any_more_is_not_read() {
    for server in servers() {
        server.connect().execute("CREATE TABLE beside_d (name text)").unwrap();
        for is_join in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let mut spec = spec(server, folder.path(), is_join, APART, false, &[]);
            let SinkSpec::Postgres(sink) = &mut spec.sink else { panic!("another sink") };
            sink.tables[0].copy = sink.tables[0].copy.replace("beside_c", "beside_d");
            let of_last = spec.source.slices.iter().filter(|slice| slice.file >= APART * FILES);
            spec.others[0].left_out = of_last.map(|slice| slice.number).collect();
            // Nor is there anybody left who would.
            let mut alone = spec.clone();
            (alone.others, alone.input) = (Vec::new(), None);
            for spec in [spec, alone] {
                let report = run(&Flow::new(spec).unwrap());
                assert_eq!(report.status, Status::Ok, "{:?}", report.error);
                let is_read = |slice: &SliceReport| slice.stream.is_some();
                assert!(report.slices.iter().all(|slice| is_read(slice) == (slice.file < APART * FILES)));
                // Of a source of a union only the columns of that have to convert.
                assert_eq!(report.rejects.count, if is_join { 2 * 900_u64.div_ceil(40) } else { 0 });
            }
        }
        server.connect().execute("DROP TABLE beside_d").unwrap();
    }
}
