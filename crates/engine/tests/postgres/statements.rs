//! Statements and their results.

use headrace_engine::postgres::{Connection, ConnectionSpec, KeepaliveSpec};
use headrace_types::ErrorKind;

use crate::patience::{Alarm, soon};
use crate::server::{connect, servers, wait_until_gone};

#[test]
fn rows_come_as_text_over_tcp_and_unix_sockets() {
    for server in servers() {
        for spec in [server.spec(), server.unix_spec()] {
            let mut connection = connect(&spec);
            let result = connection
                .query(
                    "SELECT $1::int + 1 AS next, $2::text AS \"Name\", NULL, interval '1 day', 1::float8 / 3",
                    &[Some("41"), Some("ü ' \\")],
                )
                .unwrap();
            assert_eq!(result.columns[..2], ["next", "Name"]);
            assert_eq!(result.tag, "SELECT 1");
            let values: Vec<Option<&str>> = result.rows[0].iter().map(Option::as_deref).collect();
            assert_eq!(values, [Some("42"), Some("ü ' \\"), None, Some("1 day"), Some("0.3333333333333333")]);
            assert_eq!(connection.parameter("TimeZone"), Some("UTC"));
            assert_eq!(connection.parameter("client_encoding"), Some("UTF8"));
            assert!(connection.process_id() > 0);
            assert_eq!(connection.query("", &[]).unwrap().tag, "");
            connection.close();
        }
    }
}

#[test]
fn rows_come_in_portions_as_long_as_the_transaction_lasts() {
    for server in servers() {
        let mut connection = server.connect();
        connection.execute("BEGIN").unwrap();
        let first =
            connection.first_rows("SELECT n, $1::text FROM generate_series(1, 5) AS n", &[Some("x")], 2).unwrap();
        assert_eq!((first.rows.len(), first.has_more, first.tag.as_str()), (2, true, ""));
        assert_eq!(first.types, [23, 25]);
        let second = connection.next_rows(2).unwrap();
        assert_eq!((second.rows[0][0].as_deref(), second.has_more), (Some("3"), true));
        let last = connection.next_rows(0).unwrap();
        assert_eq!((last.rows.len(), last.has_more, last.tag.as_str()), (1, false, "SELECT 1"));
        let whole = connection.first_rows("SELECT 1", &[], 2).unwrap();
        assert_eq!((whole.rows.len(), whole.has_more), (1, false));
        connection.first_rows("SELECT generate_series(1, 5)", &[], 2).unwrap();
        connection.commit().unwrap();
        assert_eq!(connection.next_rows(2).unwrap_err().server.unwrap().sqlstate, "34000");
    }
}

#[test]
fn an_error_leaves_the_session_usable_and_keeps_what_the_server_said() {
    for server in servers() {
        let mut connection = server.connect();
        let error =
            connection.execute("CREATE TEMP TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (1)").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Target);
        let fields = error.server.unwrap();
        assert_eq!((fields.sqlstate.as_str(), fields.severity.as_str()), ("23505", "ERROR"));
        assert_eq!(fields.constraint.as_deref(), Some("t_pkey"));
        assert_eq!(fields.detail.as_deref(), Some("Key (a)=(1) already exists."));
        assert_eq!(connection.query("SELECT 1", &[]).unwrap().rows.len(), 1);
        let error = connection.query("SELECT nothing FROM nowhere", &[]).unwrap_err();
        assert_eq!(error.server.unwrap().position.as_deref(), Some("21"));
        connection.execute("DO $$ BEGIN RAISE WARNING 'look'; END $$").unwrap();
        let notices = connection.take_notices();
        assert_eq!(notices.iter().map(|notice| notice.message.as_str()).collect::<Vec<_>>(), ["look"]);
        assert!(connection.take_notices().is_empty());
    }
}

#[test]
fn an_interrupt_ends_the_statement_on_the_server_too() {
    for server in servers() {
        for spec in [server.spec(), server.unix_spec()] {
            let alarm = Alarm::default();
            let mut sleeping = Connection::connect(&spec, alarm.interrupt()).unwrap();
            let process = sleeping.process_id().to_string();
            alarm.raise_soon();
            let error = soon(|| sleeping.execute("SELECT pg_sleep(3600)")).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Cancelled);
            wait_until_gone(&mut server.connect(), &process);
            assert!(sleeping.execute("SELECT 1").is_err());
        }
    }
}

#[test]
fn what_the_server_refuses_is_told_apart() {
    for server in servers() {
        let mut owner = server.connect();
        owner.execute("CREATE TABLE IF NOT EXISTS secret (a int); CREATE USER visitor").unwrap();
        let mut visitor = connect(&server.spec_of("visitor", None));
        for (sql, sqlstate, retryable) in [
            ("SELECT * FROM secret", "42501", false),
            ("CREATE TABLE pg_catalog.t (a int)", "42501", false),
            ("SET transaction_read_only TO on; CREATE TABLE t (a int)", "25006", false),
            ("SELECT 1 / 0", "22012", false),
            ("SELECT '10000000000'::int", "22003", false),
            ("SELECT 'abcd'::varchar(3)::char(2), 'x'::date", "22007", false),
            ("COMMIT PREPARED 'nothing'", "42704", false),
        ] {
            let error = visitor.execute(sql).unwrap_err();
            let found = error.server.as_ref().unwrap().sqlstate.clone();
            assert_eq!((found.as_str(), error.retryable), (sqlstate, retryable), "{sql}");
        }
        let held = "BEGIN; LOCK TABLE secret";
        owner.execute(held).unwrap();
        let mut second = server.connect();
        let error = second.execute(&format!("SET lock_timeout TO '50ms'; {held}")).unwrap_err();
        assert_eq!((error.kind, error.server.unwrap().sqlstate.as_str()), (ErrorKind::TargetBusy, "55P03"));
        owner.execute("ROLLBACK; DROP TABLE secret; DROP USER visitor").unwrap();
        // Asking for English messages must not fill the log of servers where it is not allowed.
        let log = std::fs::read_to_string(server.folder.join("data/log")).unwrap();
        assert!(!log.contains("lc_messages"), "{log}");
    }
}

#[test]
fn a_commit_that_rolls_back_is_an_error() {
    for server in servers() {
        let mut connection = server.connect();
        connection.execute("BEGIN").unwrap();
        connection.commit().unwrap();
        connection.execute("BEGIN").unwrap();
        connection.execute("SELECT 1 / 0").unwrap_err();
        assert_eq!(connection.commit().unwrap_err().found.as_deref(), Some("ROLLBACK"));
        connection.execute("SELECT 1").unwrap();
    }
}

#[test]
fn text_is_utf_8_whatever_the_encoding_of_the_database() {
    for server in servers() {
        let encoding = "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0";
        server.connect().execute(encoding).unwrap();
        let mut connection = connect(&ConnectionSpec { database: "latin".to_owned(), ..server.spec() });
        assert_eq!(connection.parameter("server_encoding"), Some("LATIN1"));
        let result = connection.query("SELECT $1 || chr(252), octet_length($1)", &[Some("ü")]).unwrap();
        assert_eq!(result.rows[0], [Some("üü".to_owned()), Some("1".to_owned())]);
        let error = connection.query("SELECT $1::text", &[Some("€")]).unwrap_err();
        assert_eq!(error.server.unwrap().sqlstate, "22P05");
    }
}

#[test]
fn keepalive_and_time_limits_are_accepted_by_the_system() {
    let mut spec = servers()[0].spec();
    for (number, milliseconds) in [(5, Some(30_000)), (0, Some(0)), (u32::MAX, None)] {
        spec.keepalive = Some(KeepaliveSpec { idle_seconds: number, interval_seconds: number, count: number });
        spec.user_timeout_milliseconds = milliseconds;
        connect(&spec).close();
    }
}

#[test]
fn a_nul_inside_json_is_not_blamed_on_the_encoding() {
    for server in servers() {
        let error = server.connect().query(r#"SELECT '{"a": "\u0000"}'::jsonb"#, &[]).unwrap_err();
        assert_eq!(error.server.as_ref().unwrap().sqlstate, "22P05");
        assert!(error.hint.as_ref().unwrap().contains("json"), "{error:?}");
    }
}
