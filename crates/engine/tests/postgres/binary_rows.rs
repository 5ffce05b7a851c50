//! Rows in binary form, and lookups of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use headrace_engine::lookup::{Batches, Lookup, StreamLookupSpec};
use headrace_engine::postgres::{BinaryColumn, BinaryRows, Connection, RowsError};
use headrace_types::{CoreError, ErrorKind};
use serde_json::{Value, json};

use crate::server::{Server, servers, wait_until_gone};

fn columns() -> Vec<BinaryColumn> {
    let columns = json!([
        {"place": 2, "type": {"kind": "string"}, "form": "text"},
        {"place": 0, "type": {"kind": "int64"}, "form": "int8"},
    ]);
    serde_json::from_value(columns).unwrap()
}

fn rows(server: &Server, sql: &str, parameters: &[Option<&str>]) -> BinaryRows {
    server.connect().binary_rows(sql, parameters, 3, &columns()).unwrap()
}

fn all(rows: &mut BinaryRows) -> Result<Vec<RecordBatch>, RowsError> {
    let mut batches = Vec::new();
    while let Some(batch) = rows.next_batch()? {
        batches.push(batch);
    }
    Ok(batches)
}

#[test]
fn a_statement_is_described_and_not_executed() {
    for server in servers() {
        let mut connection = server.connect();
        connection.execute("CREATE TEMP TABLE d (a int); CREATE DOMAIN pg_temp.price AS numeric(9,2)").unwrap();
        let described = connection.describe("SELECT 1 / (0 * a) AS x, 1::pg_temp.price AS p, $1::text FROM d").unwrap();
        let found: Vec<_> = described.iter().map(|own| (own.name.as_str(), own.type_oid, own.modifier)).collect();
        assert_eq!(found, [("x", 23, -1), ("p", 1700, (9 << 16 | 2) + 4), ("text", 25, -1)]);
        assert!(connection.describe("DELETE FROM d").unwrap().is_empty());
        assert_eq!(connection.describe("SELECT nothing").unwrap_err().server.unwrap().sqlstate, "42703");
        assert_eq!(connection.query("SELECT 1", &[]).unwrap().rows.len(), 1);
    }
}

#[test]
fn rows_come_in_batches_with_the_columns_that_are_wanted() {
    for server in servers() {
        for count in [0_usize, 1, 16_384, 40_000] {
            // The second column is of a type that has no binary form.
            let sql = "SELECT n::int8, NULL::aclitem, 'row ' || n FROM generate_series(1, $1::int) AS n";
            let batches = all(&mut rows(server, sql, &[Some(&count.to_string())])).unwrap();
            let sizes: Vec<usize> = batches.iter().map(RecordBatch::num_rows).collect();
            assert_eq!((sizes.iter().sum::<usize>(), sizes.len()), (count, count.div_ceil(16_384)));
            let mut next = 1;
            for batch in &batches {
                let texts = batch.column(0).as_string_view();
                for (row, number) in batch.column(1).as_primitive::<Int64Type>().values().iter().enumerate() {
                    assert_eq!((*number, texts.value(row)), (next, format!("row {next}").as_str()));
                    next += 1;
                }
            }
        }
    }
}

#[test]
fn an_error_of_the_server_ends_the_rows() {
    for server in servers() {
        let sql = "SELECT (1 / (20000 - n))::int8, 1, 'x' FROM generate_series(1, 30000) AS n";
        match all(&mut rows(server, sql, &[])).unwrap_err() {
            RowsError::Session(error) => assert_eq!(error.server.unwrap().sqlstate, "22012"),
            other => panic!("{other:?}"),
        }
    }
}

fn process_of(connection: &Connection) -> String {
    connection.process_id().to_string()
}

#[test]
fn what_is_given_up_stops_the_server() {
    for server in servers() {
        let connection = server.connect();
        let process = process_of(&connection);
        let mut endless = connection
            .binary_rows("SELECT generate_series(1::int8, 1000000000000), 1, 'x'", &[], 3, &columns())
            .unwrap();
        assert_eq!(endless.next_batch().unwrap().unwrap().num_rows(), 16_384);
        drop(endless);
        wait_until_gone(&mut server.connect(), &process);

        let connection = server.connect();
        let process = process_of(&connection);
        let mut silent = connection.binary_rows("SELECT 1::int8, pg_sleep(1000), 'x'", &[], 3, &columns()).unwrap();
        let must_end = Arc::new(AtomicBool::new(false));
        silent.stop_when(must_end.clone());
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            must_end.store(true, Ordering::Release);
        });
        match silent.next_batch().unwrap_err() {
            RowsError::Session(error) => assert_eq!(error.kind, ErrorKind::Cancelled),
            other => panic!("{other:?}"),
        }
        wait_until_gone(&mut server.connect(), &process);
    }
}

fn spec(members: Value) -> StreamLookupSpec {
    let mut spec = json!({
        "name": "keyed",
        "source": "table",
        "columns": [
            {"name": "label", "type": {"kind": "string"}, "nullable": true},
            {"name": "key", "type": {"kind": "int64"}, "nullable": true},
        ],
        "places": [0, 1],
        "keys": [{"column": "key", "input": {"kind": "int64"}}],
        "added": [{"column": "label", "default": null}],
        "keeps_first": false,
        "ignores_case": false,
        "streams": 2,
        "budget_bytes": 100_000_000,
    });
    members.as_object().unwrap().iter().for_each(|(name, value)| spec[name] = value.clone());
    serde_json::from_value(spec).unwrap()
}

fn lookup(server: &Server, members: Value, statements: &[&str]) -> Result<Lookup, CoreError> {
    let sources = statements.iter().map(|sql| Batches::Session(Box::new(rows(server, sql, &[])))).collect();
    Lookup::of_batches(&spec(members), sources, &mut || false)
}

#[test]
fn several_sessions_fill_one_lookup() {
    for server in servers() {
        let part =
            |from: u32, to: u32| format!("SELECT n::int8, 1, 'row ' || n FROM generate_series({from}, {to}) AS n");
        let whole = lookup(server, json!({}), &[&part(1, 50_000)]).unwrap();
        let parts = [part(30_001, 50_000), part(1, 30_000), part(7, 6)];
        let divided = lookup(server, json!({}), &parts.each_ref().map(String::as_str)).unwrap();
        assert_eq!((divided.report().rows, whole.report().rows), (50_000, 50_000));
        assert_eq!(divided.report().fingerprint, whole.report().fingerprint);
    }
}

#[test]
fn the_first_failure_ends_all_sessions() {
    for server in servers() {
        let endless = "SELECT generate_series(1::int8, 1000000000000), 1, 'x'";
        let refused = |members: Value, other: &str| lookup(server, members, &[endless, other]).err().unwrap();
        let error = refused(json!({}), "SELECT (1 / n)::int8, 1, 'x' FROM generate_series(0, 1) AS n");
        assert_eq!(error.server.unwrap().sqlstate, "22012");
        let silent = "SELECT 1::int8, pg_sleep(1000), 'x'";
        assert_eq!(refused(json!({"budget_bytes": 2_000_000}), silent).kind, ErrorKind::Memory);
        let error = lookup(server, json!({}), &["SELECT NULL::int8, 1, E'x'", "SELECT 1::int8, 1, NULL"]);
        assert_eq!(error.unwrap().report().null_keys, 1);
        let not_null = json!({"columns": [
            {"name": "label", "type": {"kind": "string"}, "nullable": false},
            {"name": "key", "type": {"kind": "int64"}, "nullable": true},
        ]});
        let error = lookup(server, not_null, &["SELECT 1::int8, 1, NULL::text"]).err().unwrap();
        assert_eq!(error.found.as_deref(), Some("NULL for column `label` in row 1 of the table"));
    }
}
