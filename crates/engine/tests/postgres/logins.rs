//! Who may come in.

use headrace_engine::postgres::{Connection, ConnectionSpec, HostSpec};
use headrace_types::{CoreError, ErrorKind};

use crate::server::{PASSWORD, Server, connect, patient, servers};

fn refused(spec: &ConnectionSpec) -> CoreError {
    let error = Connection::connect(spec, patient()).err().expect("the server let us in");
    let text = format!("{error:?} {spec:?}");
    assert!(!text.contains(PASSWORD) && !text.contains("wrong secret"), "{text}");
    error
}

fn sqlstate(error: &CoreError) -> &str {
    error.server.as_ref().map_or("", |fields| &fields.sqlstate)
}

#[test]
fn passwords_by_scram_and_md5() {
    for server in servers() {
        for user in ["scram_user", "md5_user"] {
            let mut connection = connect(&server.spec_of(user, Some(PASSWORD)));
            assert_eq!(connection.query("SELECT current_user", &[]).unwrap().rows[0][0].as_deref(), Some(user));
            let error = refused(&server.spec_of(user, Some("wrong secret")));
            assert_eq!((error.kind, sqlstate(&error)), (ErrorKind::Target, "28P01"));
            let error = refused(&server.spec_of(user, None));
            assert!(error.found.unwrap().contains("asks for a password"));
        }
    }
}

#[test]
fn clear_text_passwords_only_where_nobody_listens() {
    for server in servers() {
        let error = refused(&server.spec_of("clear_user", Some(PASSWORD)));
        assert!(error.found.unwrap().contains("clear text"));
        let unix = ConnectionSpec { hosts: server.unix_spec().hosts, ..server.spec_of("clear_user", Some(PASSWORD)) };
        connect(&unix);
    }
}

#[test]
fn refusals_say_what_is_wrong() {
    for server in servers() {
        let error = refused(&ConnectionSpec { database: "nowhere".to_owned(), ..server.spec() });
        assert_eq!((error.kind, sqlstate(&error)), (ErrorKind::Target, "3D000"));
        let error = refused(&server.spec_of("forbidden", None));
        assert_eq!((error.kind, sqlstate(&error)), (ErrorKind::Target, "28000"));
        let error = refused(&server.spec_of("nobody such", None));
        assert_eq!(sqlstate(&error), "28000");
    }
}

#[test]
fn too_many_sessions_are_worth_another_try() {
    for server in servers() {
        server.connect().execute("ALTER USER plain_user CONNECTION LIMIT 1").unwrap();
        let held = connect(&server.spec_of("plain_user", None));
        let error = refused(&server.spec_of("plain_user", None));
        assert_eq!((error.kind, error.retryable, sqlstate(&error)), (ErrorKind::TargetBusy, true, "53300"));
        held.close();
    }
}

#[test]
fn an_address_takes_the_place_of_a_name_that_is_not_asked_for() {
    let server: &Server = &servers()[0];
    let mut spec = server.spec();
    let address = connect(&spec).address().unwrap();
    assert_eq!(address, std::net::SocketAddr::from(([127, 0, 0, 1], server.port)));
    spec.hosts[0] = HostSpec { host: "host.invalid".to_owned(), port: 1, address: Some(address) };
    assert_eq!(connect(&spec).address(), Some(address));
    assert_eq!(connect(&server.unix_spec()).address(), None);
}

#[test]
fn the_next_host_is_tried() {
    let server: &Server = &servers()[0];
    let mut spec = server.spec();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    spec.hosts.insert(0, HostSpec { host: "localhost".to_owned(), port: closed, address: None });
    spec.hosts.insert(0, HostSpec { host: "host.invalid".to_owned(), port: 5432, address: None });
    spec.hosts.insert(0, HostSpec { host: "/nowhere".to_owned(), port: 5432, address: None });
    connect(&spec);
    spec.hosts.pop();
    let error = refused(&spec);
    let found = error.found.clone().unwrap();
    for part in ["/nowhere/.s.PGSQL.5432", "host.invalid", "refused"] {
        assert!(found.contains(part), "{found}");
    }
}
