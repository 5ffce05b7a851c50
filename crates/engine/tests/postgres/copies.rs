//! COPY ... FROM STDIN.

use headrace_engine::postgres::{Connection, CopyIn};
use headrace_types::{CoreError, ErrorKind};

use crate::patience::{Alarm, soon};
use crate::server::{Server, connect, servers, wait_until_gone};

type Start = fn(Connection, &str) -> Result<CopyIn, CoreError>;

/// Every server, and both ways to send.
fn cases() -> impl Iterator<Item = (&'static Server, Start)> {
    let ways: [Start; 2] = [Connection::copy_in, Connection::copy_in_directly];
    servers().iter().flat_map(move |server| ways.map(|way| (server, way)))
}

fn fill(copy: &mut CopyIn, rows: std::ops::Range<u64>) -> Result<(), CoreError> {
    use std::io::Write;
    for start in rows.clone().step_by(1000) {
        let mut frame = copy.buffer()?;
        for row in start..(start + 1000).min(rows.end) {
            writeln!(frame, "{row}\trow number {row}").unwrap();
        }
        copy.send(frame)?;
    }
    Ok(())
}

fn count(connection: &mut Connection, table: &str) -> String {
    connection.query(&format!("SELECT count(*) FROM {table}"), &[]).unwrap().rows[0][0].clone().unwrap()
}

#[test]
fn rows_arrive_and_the_connection_comes_back() {
    for (server, copy_in) in cases() {
        for spec in [server.spec(), server.unix_spec()] {
            let mut connection = connect(&spec);
            connection.execute("CREATE TEMP TABLE t (a bigint, b text)").unwrap();
            let mut copy = copy_in(connection, "COPY t FROM STDIN").unwrap();
            fill(&mut copy, 0..300_000).unwrap();
            let (connection, rows) = copy.finish().unwrap();
            assert_eq!(rows, 300_000);
            let copy = copy_in(connection, "COPY t FROM STDIN").unwrap();
            let (mut connection, rows) = copy.finish().unwrap();
            assert_eq!((rows, count(&mut connection, "t").as_str()), (0, "300000"));
        }
    }
}

#[test]
fn an_error_of_the_server_ends_the_copy_with_its_line() {
    for (server, copy_in) in cases() {
        let mut connection = server.connect();
        connection.execute("BEGIN; CREATE TEMP TABLE t (a bigint PRIMARY KEY, b text)").unwrap();
        let mut copy = copy_in(connection, "COPY t FROM STDIN").unwrap();
        fill(&mut copy, 0..5000).unwrap();
        let error = (0..1_000_000).find_map(|_| fill(&mut copy, 70..1000).err()).expect("no error");
        let fields = error.server.as_ref().unwrap();
        assert_eq!((fields.sqlstate.as_str(), fields.copy_line()), ("23505", Some(5001)));
        let mut connection = copy.abort("it failed").expect("the session is alive");
        connection.execute("ROLLBACK").unwrap();
        assert_eq!(count(&mut connection, "(SELECT 1 WHERE to_regclass('t') IS NOT NULL) found"), "0");
    }
}

#[test]
fn abort_takes_everything_back() {
    for (server, copy_in) in cases() {
        let mut connection = server.connect();
        connection.execute("CREATE TEMP TABLE t (a bigint, b text)").unwrap();
        let mut copy = copy_in(connection, "COPY t FROM STDIN").unwrap();
        fill(&mut copy, 0..10_000).unwrap();
        let mut connection = copy.abort("changed our minds").unwrap();
        assert_eq!(count(&mut connection, "t"), "0");
        let mut copy = copy_in(connection, "COPY t FROM STDIN").unwrap();
        fill(&mut copy, 0..10_000).unwrap();
        drop(copy);
    }
}

#[test]
fn statements_that_are_no_copy_are_refused() {
    for (server, copy_in) in cases() {
        let error = copy_in(server.connect(), "SELECT 1").err().unwrap();
        assert_eq!(error.kind, ErrorKind::Specification);
        let error = copy_in(server.connect(), "COPY nothing FROM STDIN").err().unwrap();
        assert_eq!(error.server.unwrap().sqlstate, "42P01");
        let mut connection = server.connect();
        connection.execute("CREATE TEMP TABLE t (a int)").unwrap();
        let error = connection.execute("COPY t FROM STDIN").unwrap_err();
        assert_eq!(error.server.unwrap().sqlstate, "57014");
        assert_eq!(count(&mut connection, "t"), "0");
    }
}

#[test]
fn a_terminated_session_says_so() {
    for (server, copy_in) in cases() {
        let mut connection = server.connect();
        connection.execute("CREATE TEMP TABLE t (a bigint, b text)").unwrap();
        let process = connection.process_id().to_string();
        let mut copy = copy_in(connection, "COPY t FROM STDIN").unwrap();
        fill(&mut copy, 0..1000).unwrap();
        server.connect().query("SELECT pg_terminate_backend($1::int)", &[Some(&process)]).unwrap();
        let error = (0..1_000_000).find_map(|_| fill(&mut copy, 0..1000).err()).expect("no error");
        assert_eq!((error.kind, error.retryable), (ErrorKind::TargetBusy, true));
        assert_eq!(error.server.unwrap().sqlstate, "57P01");
        assert!(copy.abort("it failed").is_none());
    }
}

#[test]
fn a_trigger_that_talks_does_not_stop_the_copy() {
    for (server, copy_in) in cases() {
        for spec in [server.spec(), server.unix_spec()] {
            let mut connection = connect(&spec);
            connection
                .execute(
                    "CREATE TEMP TABLE t (a bigint, b text); \
                     CREATE FUNCTION pg_temp.talk() RETURNS trigger LANGUAGE plpgsql AS $$ \
                     BEGIN RAISE NOTICE '%', repeat('x', 2000); RETURN new; END $$; \
                     CREATE TRIGGER talk BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION pg_temp.talk()",
                )
                .unwrap();
            let mut copy = copy_in(connection, "COPY t FROM STDIN").unwrap();
            fill(&mut copy, 0..20_000).unwrap();
            let (mut connection, rows) = copy.finish().unwrap();
            assert_eq!((rows, connection.take_notices().len()), (20_000, 100));
        }
    }
}

#[test]
fn an_interrupt_ends_the_copy_on_the_server_too() {
    for (server, copy_in) in cases() {
        let alarm = Alarm::default();
        let mut connection = Connection::connect(&server.spec(), alarm.interrupt()).unwrap();
        let process = connection.process_id().to_string();
        // The server is inside a row for an hour, and does not read.
        connection
            .execute(
                "CREATE TEMP TABLE t (a bigint, b text); \
                 CREATE FUNCTION pg_temp.sleep() RETURNS trigger LANGUAGE plpgsql AS $$ \
                 BEGIN PERFORM pg_sleep(3600); RETURN new; END $$; \
                 CREATE TRIGGER sleep BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION pg_temp.sleep()",
            )
            .unwrap();
        let mut copy = copy_in(connection, "COPY t FROM STDIN").unwrap();
        alarm.raise_soon();
        let error = soon(|| (0..1_000_000).find_map(|_| fill(&mut copy, 0..100_000).err())).expect("no error");
        assert_eq!(error.kind, ErrorKind::Cancelled);
        assert!(soon(|| copy.abort("over")).is_none());
        wait_until_gone(&mut server.connect(), &process);
    }
}
