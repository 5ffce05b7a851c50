//! Statements and their results.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headrace_engine::postgres::Connection;
use headrace_types::ErrorKind;

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
            let until = Instant::now() + Duration::from_millis(400);
            let mut sleeping = Connection::connect(&spec, Arc::new(move || Instant::now() > until)).unwrap();
            let process = sleeping.process_id().to_string();
            assert_eq!(sleeping.execute("SELECT pg_sleep(60)").unwrap_err().kind, ErrorKind::Cancelled);
            assert!(until.elapsed() < Duration::from_millis(600));
            wait_until_gone(&mut server.connect(), &process);
            assert!(sleeping.execute("SELECT 1").is_err());
        }
    }
}
