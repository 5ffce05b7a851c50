//! Flows into real servers.

use std::path::Path;

use headrace_engine::Flow;
use headrace_engine::report::{FlowReport, Status};
use headrace_engine::slices::{SlicingSpec, plan_slices};
use headrace_engine::spec::FlowSpec;
use headrace_types::{ErrorKind, Layout};
use serde_json::{Value, json};

use crate::patience::{HANG, wait_until};
use crate::server::{Server, servers};

const WRITER: &str = "headrace flow";

/// A flow of one stream over texts of `id|name`, each of which goes into a table of its own, `names[i]`.
fn flow(server: &Server, folder: &Path, texts: &[&str], names: &[&str], commit: &str) -> Flow {
    let files: Vec<String> =
        (0..texts.len()).map(|index| folder.join(index.to_string()).display().to_string()).collect();
    for (file, text) in std::iter::zip(&files, texts) {
        std::fs::write(file, text).unwrap();
    }
    let layout = json!({"delimiter": "|", "columns": [
        {"name": "id", "type": {"kind": "int64"}, "nullable": false},
        {"name": "name", "type": {"kind": "string"}, "nullable": false}]});
    let columns: Layout = serde_json::from_value(layout.clone()).unwrap();
    let slicing =
        plan_slices(&SlicingSpec { files, slice_bytes: 1 << 30, layout: columns, ..SlicingSpec::default() }).unwrap();
    let tables = std::iter::zip(1.., names).map(|(slice, name)| {
        json!({"name": name, "partition": "", "slices": [slice], "owned": false, "begin": "BEGIN",
            "copy": format!("COPY {name} (id, name) FROM STDIN (FORMAT binary)")})
    });
    let spec = json!({
        "name": "test", "layout": layout, "streams": 1,
        "source": {"files": slicing.files, "slices": slicing.slices},
        "memory": {"block_bytes": 4096, "blocks": 4, "max_row_bytes": 1 << 20},
        "rejects": {"limit": 0, "folder": folder, "file_stem": "rejected"},
        "sink": {"kind": "postgres", "commit": commit, "commit_slices": null,
            "connection": {"hosts": [{"host": "127.0.0.1", "port": server.port}], "database": "postgres",
                "user": "headrace", "application_name": WRITER, "connect_timeout_seconds": 10},
            "columns": [{"source": "id", "form": "int8"}, {"source": "name", "form": "text"}],
            "tables": tables.collect::<Vec<_>>()},
    });
    let spec: FlowSpec = serde_json::from_value(spec).unwrap();
    Flow::new(spec).unwrap()
}

fn run(flow: &Flow) -> FlowReport {
    flow.start().unwrap();
    flow.join(HANG).expect("the flow hangs")
}

/// Fails if a writer of a flow is still there after a while.
fn no_writer_is_left(server: &Server) {
    let mut connection = server.connect();
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE $1 || '%'";
    wait_until("no writer keeps its locks when nobody will commit its rows", || {
        connection.query(sql, &[Some(WRITER)]).unwrap().rows[0][0].as_deref() == Some("0")
    });
}

fn count(server: &Server, table: &str) -> String {
    server.connect().query(&format!("SELECT count(*) FROM {table}"), &[]).unwrap().rows[0][0].clone().unwrap()
}

#[test]
fn writers_that_wait_for_the_commit_end_with_a_flow_that_failed_or_was_cancelled() {
    for server in servers() {
        let folder = tempfile::tempdir().unwrap();
        server
            .connect()
            .execute("CREATE TABLE waits_a (id bigint, name text); CREATE TABLE waits_b (LIKE waits_a)")
            .unwrap();
        let (good, bad) = ("1|one\n2|two\n3|three\n", "x|bad\n");

        let failed = flow(server, folder.path(), &[good, bad], &["waits_a", "waits_b"], "together");
        let report = run(&failed);
        assert_eq!((report.status, report.slices.len()), (Status::Failed, 1), "{report:?}");
        no_writer_is_left(server);
        assert!(failed.commit().is_err());

        let cancelled = flow(server, folder.path(), &[good, "4|four\n"], &["waits_a", "waits_b"], "together");
        assert_eq!(run(&cancelled).status, Status::Ok);
        cancelled.cancel("the accounts do not balance");
        no_writer_is_left(server);
        assert_eq!(cancelled.commit().unwrap_err().kind, ErrorKind::Cancelled);
        assert_eq!(count(server, "waits_a"), "0");

        let whole = flow(server, folder.path(), &[good, "4|four\n"], &["waits_a", "waits_b"], "together");
        assert_eq!(run(&whole).status, Status::Ok);
        whole.commit().unwrap();
        assert_eq!((count(server, "waits_a").as_str(), count(server, "waits_b").as_str()), ("3", "1"));
        no_writer_is_left(server);
    }
}

/// Numbers without much order.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

#[test]
fn a_row_that_the_server_refuses_is_named_wherever_it_stands() {
    let mut dice = Dice(7);
    for server in servers() {
        server.connect().execute("CREATE TABLE refuses (id bigint, name text, CHECK (id <> -1))").unwrap();
        for round in 0..40 {
            let folder = tempfile::tempdir().unwrap();
            let qualifier = (dice.roll(2) == 0).then_some('"');
            let (row_end, skip_lines) = (["\n", "\r\n"][dice.roll(2) as usize], dice.roll(3));
            let count = 1 + dice.roll(3000);
            let refused = dice.roll(count);
            let (mut text, mut line) = (String::new(), 0);
            if dice.roll(4) == 0 {
                text.push('\u{feff}');
            }
            for _ in 0..skip_lines {
                text += "id|name";
                text += row_end;
                line += 1;
            }
            let mut place = None;
            for number in 0..count {
                let other = match dice.roll(40) {
                    0 => Some(String::new()),
                    1 => Some("bad".to_owned()),
                    2 => Some(format!("{number}|x|y")),
                    3 => Some(format!("{number}x|y")),
                    _ => None,
                };
                if let Some(other) = other {
                    text += &other;
                    text += row_end;
                    line += 1;
                }
                let id = if number == refused { -1 } else { i64::try_from(number).unwrap() };
                if number == refused {
                    place = Some((line + 1, text.len() as u64));
                }
                text += &match (dice.roll(8), qualifier) {
                    (0, Some(_)) => format!("{id}|\"a{row_end}b\"\"|\n\""),
                    (1, _) => format!("{id}|{}", "x".repeat(dice.roll(9000) as usize)),
                    _ => format!("{id}|name {id}"),
                };
                if number + 1 < count || dice.roll(2) == 0 {
                    text += row_end;
                }
                line += 1;
            }
            let flow = flow_of(server, folder.path(), &text, qualifier, skip_lines, 1 + dice.roll(4) as usize);
            let report = run(&flow);
            let error = report.error.expect("the row was not refused");
            assert_eq!(error.server.as_ref().map(|server| server.sqlstate.as_str()), Some("23514"), "{error:?}");
            let at = error.at.as_ref().unwrap();
            assert_eq!(
                (at.row, at.byte),
                (place.map(|place| place.0), place.map(|place| place.1)),
                "{round}: {error:?}"
            );
        }
    }
}

/// A flow of one file, cut into slices, into table `refuses`.
fn flow_of(
    server: &Server,
    folder: &Path,
    text: &str,
    qualifier: Option<char>,
    skip_lines: u64,
    streams: usize,
) -> Flow {
    let layout = json!({"delimiter": "|", "qualifier": qualifier, "skip_lines": skip_lines, "columns": [
        {"name": "id", "type": {"kind": "int64"}, "nullable": false},
        {"name": "name", "type": {"kind": "string"}, "nullable": true}]});
    flow_into("refuses", server, folder, text, &layout, &["int8", "text"], streams)
}

/// A flow of one file, cut into slices, into one table with the layout's columns.
fn flow_into(
    table: &str,
    server: &Server,
    folder: &Path,
    text: &str,
    layout: &Value,
    forms: &[&str],
    streams: usize,
) -> Flow {
    flow_as("headrace", table, server, folder, text, layout, forms, streams)
}

#[allow(clippy::too_many_arguments)]
fn flow_as(
    user: &str,
    table: &str,
    server: &Server,
    folder: &Path,
    text: &str,
    layout: &Value,
    forms: &[&str],
    streams: usize,
) -> Flow {
    let file = folder.join("data").display().to_string();
    std::fs::write(&file, text).unwrap();
    let columns: Layout = serde_json::from_value(layout.clone()).unwrap();
    let names: Vec<String> = columns.columns.iter().map(|column| column.name.clone()).collect();
    let slicing =
        plan_slices(&SlicingSpec { files: vec![file], slice_bytes: 20_000, layout: columns, ..SlicingSpec::default() })
            .unwrap();
    let slices: Vec<u32> = slicing.slices.iter().map(|slice| slice.number).collect();
    let columns: Vec<Value> =
        std::iter::zip(&names, forms).map(|(name, form)| json!({"source": name, "form": form})).collect();
    let spec = json!({
        "name": "test", "layout": layout, "streams": streams,
        "source": {"files": slicing.files, "slices": slicing.slices},
        "memory": {"block_bytes": 4096, "blocks": 8, "max_row_bytes": 1 << 20},
        "rejects": {"limit": 1_000_000, "folder": folder, "file_stem": "rejected"},
        "sink": {"kind": "postgres", "commit": "unit", "commit_slices": null,
            "connection": {"hosts": [{"host": "127.0.0.1", "port": server.port}], "database": "postgres",
                "user": user, "application_name": "headrace test", "connect_timeout_seconds": 10},
            "columns": columns,
            "tables": [{"name": table, "partition": "", "slices": slices, "owned": false, "begin": "BEGIN",
                "copy": format!("COPY {table} ({}) FROM STDIN (FORMAT binary)", names.join(", "))}]},
    });
    let spec: FlowSpec = serde_json::from_value(spec).unwrap();
    Flow::new(spec).unwrap()
}

/// Column type as JSON, form, and how the server reads its text.
type Kind = (Value, &'static str, &'static str);

fn kinds() -> Vec<Kind> {
    let mut kinds: Vec<Kind> = vec![
        (json!({"kind": "int16"}), "int2", "int2"),
        (json!({"kind": "int16"}), "numeric", "numeric"),
        (json!({"kind": "int16"}), "float4", "float4"),
        (json!({"kind": "int32"}), "int8", "int8"),
        (json!({"kind": "int32"}), "float8", "float8"),
        (json!({"kind": "int64"}), "int8", "int8"),
        (json!({"kind": "int64"}), "numeric", "numeric(19,0)"),
        (json!({"kind": "float32"}), "float4", "float4"),
        (json!({"kind": "float32"}), "float8", "float4"),
        (json!({"kind": "float64"}), "float8", "float8"),
        (json!({"kind": "bool"}), "bool", "bool"),
        (json!({"kind": "date"}), "date", "date"),
        (json!({"kind": "date"}), "timestamp", "timestamp"),
        (json!({"kind": "time"}), "time", "time"),
        (json!({"kind": "timestamp"}), "timestamp", "timestamp"),
        (json!({"kind": "timestamptz"}), "timestamptz", "timestamptz"),
        (json!({"kind": "string"}), "text", "text"),
        (json!({"kind": "bytes"}), "bytea", "bytea"),
        (json!({"kind": "uuid"}), "uuid", "uuid"),
        (json!({"kind": "json"}), "jsonb", "jsonb"),
    ];
    let decimals = [
        (1, 0, "numeric(1,0)"),
        (4, 4, "numeric(4,4)"),
        (9, 3, "numeric(9,3)"),
        (15, 2, "numeric(15,2)"),
        (18, 0, "numeric(18,0)"),
        (18, 17, "numeric(18,17)"),
        (19, 1, "numeric(19,1)"),
        (25, 6, "numeric(25,6)"),
        (38, 0, "numeric(38,0)"),
        (38, 19, "numeric(38,19)"),
        (38, 38, "numeric(38,38)"),
    ];
    kinds.extend(decimals.map(|(precision, scale, read)| {
        (json!({"kind": "decimal", "precision": precision, "scale": scale}), "numeric", read)
    }));
    kinds
}

/// Up to `count` digits, many of them zeros or nines.
fn digits(dice: &mut Dice, count: u64) -> String {
    let length = dice.roll(count + 1);
    let (from, to) = (dice.roll(length + 1), dice.roll(length + 1));
    let digit = |place| match place {
        place if (from..to).contains(&place) => '0',
        _ if dice.roll(4) == 0 => '9',
        _ => char::from(b'0' + dice.roll(10) as u8),
    };
    (0..length).map(digit).collect()
}

fn one_of(dice: &mut Dice, texts: &[&str]) -> String {
    texts[dice.roll(texts.len() as u64) as usize].to_owned()
}

fn day(dice: &mut Dice) -> String {
    let year = [1 + dice.roll(9999), 1969 + dice.roll(2), 1999 + dice.roll(2), 1, 9999][dice.roll(5) as usize];
    format!("{year:04}-{:02}-{:02}", 1 + dice.roll(12), 1 + dice.roll(28))
}

fn time(dice: &mut Dice) -> String {
    let fraction = digits(dice, 6);
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{:02}:{:02}:{:02}{point}{fraction}", dice.roll(24), dice.roll(60), dice.roll(60))
}

/// A text that the type accepts.
fn text_of(dice: &mut Dice, column_type: &Value) -> String {
    let sign = one_of(dice, &["", "-"]);
    let digits_of = |name: &str| column_type[name].as_u64().unwrap();
    match column_type["kind"].as_str().unwrap() {
        "int16" => (dice.roll(65_536) as i64 - 32_768).to_string(),
        "int32" => format!("{sign}{}", dice.roll(1 << 31)),
        "int64" if dice.roll(9) == 0 => one_of(dice, &["-9223372036854775808", "9223372036854775807"]),
        "int64" => format!("{sign}0{}", digits(dice, 18)),
        "float32" | "float64" if dice.roll(20) == 0 => one_of(dice, &["inf", "-inf", "nan", "-0"]),
        "float32" => format!("{sign}0{}.{}e{}", digits(dice, 12), digits(dice, 12), dice.roll(40) as i64 - 20),
        "float64" => format!("{sign}0{}.{}e{}", digits(dice, 20), digits(dice, 20), dice.roll(400) as i64 - 200),
        "bool" => one_of(dice, &["true", "f", "1", "no"]),
        "date" => day(dice),
        "time" => time(dice),
        "timestamp" => format!("{} {}", day(dice), time(dice)),
        "timestamptz" => {
            format!("{} {}{:+03}:{:02}", day(dice), time(dice), dice.roll(24) as i64 - 12, dice.roll(60))
        }
        "string" => {
            let length = [dice.roll(9), dice.roll(90)][dice.roll(2) as usize] as usize;
            "x\u{e9}\u{1f980}\\'\"".chars().cycle().take(length).collect::<String>() + "z"
        }
        "bytes" => (0..dice.roll(40)).fold("\\x".to_owned(), |text, _| text + &format!("{:02x}", dice.roll(256))),
        "uuid" => (0..16).map(|_| format!("{:02x}", dice.roll(256))).collect(),
        "json" => format!("{{\"a\": [{}, null, \"{}\"]}}", dice.roll(1 << 40), "j".repeat(dice.roll(80) as usize)),
        "decimal" => {
            let (precision, scale) = (digits_of("precision"), digits_of("scale"));
            format!("{sign}0{}.{}", digits(dice, precision - scale), digits(dice, scale))
        }
        other => panic!("{other}"),
    }
}

/// What the server itself reads in the same texts is the measure.
#[test]
fn values_are_what_the_server_reads_in_their_texts() {
    const ROWS: usize = 3000;
    let mut dice = Dice(11);
    let kinds = kinds();
    let both = kinds.iter().enumerate().flat_map(|(index, kind)| {
        let column =
            |name: &str, kind: Value| json!({"name": format!("{name}{index}"), "type": kind, "nullable": true});
        [column("value", kind.0.clone()), column("text", json!({"kind": "string"}))]
    });
    let layout = json!({"delimiter": "|", "columns": both.collect::<Vec<_>>()});
    let forms: Vec<&str> = kinds.iter().flat_map(|kind| [kind.1, "text"]).collect();
    let mut text = String::new();
    for _ in 0..ROWS {
        let null_every = 2 + dice.roll(20);
        for kind in &kinds {
            let field = if dice.roll(null_every) == 0 { String::new() } else { text_of(&mut dice, &kind.0) };
            text += &format!("{field}|{field}|");
        }
        text.pop();
        text.push('\n');
    }
    for server in servers() {
        let folder = tempfile::tempdir().unwrap();
        let columns =
            kinds.iter().enumerate().map(|(index, kind)| format!("value{index} {}, text{index} text", kind.1));
        let mut connection = server.connect();
        let create = format!("CREATE TABLE values_read ({})", columns.collect::<Vec<_>>().join(", "));
        connection.execute(&create).unwrap();
        let report = run(&flow_into("values_read", server, folder.path(), &text, &layout, &forms, 2));
        assert!(report.error.is_none() && report.rejects.count == 0, "{:?} {:?}", report.error, report.rejects.first);
        assert_eq!(count(server, "values_read"), ROWS.to_string());
        for (index, kind) in kinds.iter().enumerate() {
            // As texts, so that zeros behind the point count.
            let (ours, read) = (format!("value{index}::text"), format!("text{index}::{}::{}::text", kind.2, kind.1));
            let sql = format!(
                "SELECT text{index}, {ours}, {read} FROM values_read WHERE {ours} IS DISTINCT FROM {read} LIMIT 3"
            );
            let others = connection.query(&sql, &[]).unwrap().rows;
            assert!(others.is_empty(), "{kind:?}: {others:?}");
        }
    }
}

/// Servers from 17 on can limit transactions: the session ends inside the COPY, at whatever row it is.
#[test]
fn a_session_that_ends_is_no_fault_of_the_row() {
    for server in servers() {
        let mut connection = server.connect();
        let version: u32 =
            connection.query("SHOW server_version_num", &[]).unwrap().rows[0][0].clone().unwrap().parse().unwrap();
        let end = if version < 170_000 { "pg_terminate_backend(pg_backend_pid())" } else { "pg_sleep(30)" };
        let limit = if version < 170_000 { "statement_timeout" } else { "transaction_timeout" };
        connection
            .execute(&format!(
                "CREATE TABLE ends (id bigint, name text); \
                 CREATE FUNCTION end_of_session() RETURNS trigger LANGUAGE plpgsql AS $$ \
                 BEGIN PERFORM {end}; RETURN new; END $$; \
                 CREATE TRIGGER ends BEFORE INSERT ON ends FOR EACH ROW EXECUTE FUNCTION end_of_session(); \
                 CREATE ROLE limited LOGIN SUPERUSER; ALTER ROLE limited SET {limit} = '500ms'"
            ))
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let layout = json!({"delimiter": "|", "columns": [
            {"name": "id", "type": {"kind": "int64"}, "nullable": false},
            {"name": "name", "type": {"kind": "string"}, "nullable": true}]});
        let flow = flow_as("limited", "ends", server, folder.path(), "1|one\n2|two\n", &layout, &["int8", "text"], 1);
        let error = run(&flow).error.unwrap();
        assert!(error.server.as_ref().is_some_and(|server| server.severity == "FATAL"), "{error:?}");
        assert_eq!(error.at, None, "{error:?}");
    }
}
