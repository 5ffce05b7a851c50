//! TLS as libpq's `sslmode` defines it, against a server built with OpenSSL.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use headrace_engine::postgres::{Connection, ConnectionSpec, TlsMode, TlsSpec};
use headrace_types::{CoreError, ErrorKind};
use rcgen::date_time_ymd;

use crate::certificates::{Authority, Pair, parameters, self_signed, write};
use crate::patience::{Alarm, soon};
use crate::server::{PASSWORD, Server, binaries_with_tls, connect, patient, servers, wait_until_gone};

const ALL_MODES: [TlsMode; 6] =
    [TlsMode::Disable, TlsMode::Allow, TlsMode::Prefer, TlsMode::Require, TlsMode::VerifyCa, TlsMode::VerifyFull];

/// A server with TLS and the files of its clients.
struct Fixture {
    server: Server,
    files: tempfile::TempDir,
}

/// The server's certificate is for `localhost` alone. `tls_user` and `plain_user` may come in only with or without TLS.
fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let authority = Authority::new("Test authority");
        let files = tempfile::tempdir().unwrap();
        let client = authority.sign(&parameters("cert_user", &[]));
        let stranger = Authority::new("Somebody else").sign(&parameters("cert_user", &[]));
        for (name, text) in [
            ("root.crt", &authority.certificate),
            ("other-root.crt", &Authority::new("Somebody else").certificate),
            ("client.crt", &client.certificate),
            ("client.key", &client.key),
            ("stranger.crt", &stranger.certificate),
            ("stranger.key", &stranger.key),
        ] {
            write(files.path(), name, text);
        }
        let pair = authority.sign(&parameters("ignored.example.com", &["localhost"]));
        let access = "hostssl all cert_user all cert\nhostssl all tls_user all scram-sha-256\nhostnossl all tls_user all reject\n\
                      hostnossl all plain_user all trust\nhostssl all plain_user all reject\n\
                      hostssl all clear_user all password\n";
        let server = start(&pair, &authority.certificate, access);
        let users = format!("CREATE USER cert_user; CREATE USER tls_user PASSWORD '{}'", PASSWORD.replace('\'', "''"));
        server.connect().execute(&users).unwrap();
        Fixture { server, files }
    })
}

fn start(pair: &Pair, clients_root: &str, access: &str) -> Server {
    let settings = "ssl = on\nssl_cert_file = 'server.crt'\nssl_key_file = 'server.key'\nssl_ca_file = 'root.crt'";
    let files = [("server.crt", &*pair.certificate), ("server.key", &*pair.key), ("root.crt", clients_root)];
    Server::start(&binaries_with_tls(), settings, access, &files)
}

impl Fixture {
    fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// A user in a mode; `root` is the name of a file.
    fn spec(&self, user: &str, mode: TlsMode, host: &str, root: Option<&str>) -> ConnectionSpec {
        let mut spec = self.server.spec_of(user, Some(PASSWORD));
        spec.hosts[0].host = host.to_owned();
        spec.tls = TlsSpec { mode, root_certificates: root.map(|name| self.path(name)), certificate: None, key: None };
        spec
    }
}

/// The version of TLS that the server sees, or None.
fn encryption(connection: &mut Connection) -> Option<String> {
    let sql = "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    connection.query(sql, &[]).unwrap().rows[0][0].clone()
}

fn refused(spec: &ConnectionSpec) -> CoreError {
    let error = Connection::connect(spec, patient()).err().expect("the server let us in");
    assert!(!format!("{error:?} {spec:?}").contains(PASSWORD));
    error
}

#[test]
#[ignore = "needs a server built with OpenSSL"]
fn modes_encrypt_or_do_not() {
    for mode in ALL_MODES {
        let spec = fixture().spec("scram_user", mode, "localhost", Some("root.crt"));
        let encrypted = !matches!(mode, TlsMode::Disable | TlsMode::Allow);
        assert_eq!(encryption(&mut connect(&spec)).is_some(), encrypted, "{mode:?}");
    }
    let unix = ConnectionSpec {
        hosts: fixture().server.unix_spec().hosts,
        ..fixture().spec("headrace", TlsMode::Require, "", None)
    };
    assert_eq!(encryption(&mut connect(&unix)), None);
}

#[test]
#[ignore = "needs a server built with OpenSSL"]
fn allow_and_prefer_fall_back() {
    let user = |user: &str, mode| fixture().spec(user, mode, "localhost", None);
    assert!(encryption(&mut connect(&user("tls_user", TlsMode::Allow))).is_some());
    assert!(encryption(&mut connect(&user("plain_user", TlsMode::Prefer))).is_none());
    assert_eq!(refused(&user("tls_user", TlsMode::Disable)).server.unwrap().sqlstate, "28000");
    assert_eq!(refused(&user("plain_user", TlsMode::Require)).server.unwrap().sqlstate, "28000");
    // The trouble behind both attempts is named, not its consequence.
    let mut wrong = user("tls_user", TlsMode::Prefer);
    wrong.password = Some("wrong".to_owned());
    assert_eq!(refused(&wrong).server.unwrap().sqlstate, "28P01");
    wrong.tls.mode = TlsMode::Allow;
    assert_eq!(refused(&wrong).server.unwrap().sqlstate, "28P01");
    // A root that does not fit makes TLS fail: prefer goes on without, as libpq does; tls_user then is refused.
    let other = fixture().spec("tls_user", TlsMode::Prefer, "localhost", Some("other-root.crt"));
    assert!(refused(&other).found.unwrap().contains("TLS"));
    let other = fixture().spec("scram_user", TlsMode::Prefer, "localhost", Some("other-root.crt"));
    assert!(encryption(&mut connect(&other)).is_none());
}

#[test]
#[ignore = "needs a server built with OpenSSL"]
fn certificates_are_verified_as_much_as_asked() {
    for (mode, host, root, found) in [
        (TlsMode::Require, "127.0.0.1", None, None),
        (TlsMode::Require, "127.0.0.1", Some("root.crt"), None),
        (TlsMode::Require, "127.0.0.1", Some("other-root.crt"), Some("UnknownIssuer")), // like verify-ca
        (TlsMode::VerifyCa, "127.0.0.1", Some("root.crt"), None),
        (TlsMode::VerifyCa, "localhost", Some("other-root.crt"), Some("UnknownIssuer")),
        (TlsMode::VerifyFull, "localhost", Some("root.crt"), None),
        (TlsMode::VerifyFull, "127.0.0.1", Some("root.crt"), Some("not valid for name")),
        (TlsMode::VerifyFull, "localhost", Some("other-root.crt"), Some("UnknownIssuer")),
        (TlsMode::VerifyFull, "localhost", None, Some("UnknownIssuer")), // the system's roots
    ] {
        let spec = fixture().spec("scram_user", mode, host, root);
        match found {
            None => drop(connect(&spec)),
            Some(part) => {
                let error = refused(&spec);
                assert_eq!((error.kind, error.retryable), (ErrorKind::Target, false));
                assert!(error.found.as_ref().unwrap().contains(part) && error.hint.is_some(), "{error:?}");
            }
        }
    }
}

#[test]
#[ignore = "needs a server built with OpenSSL"]
fn all_methods_work_inside_tls() {
    for user in ["scram_user", "md5_user", "clear_user"] {
        let spec = fixture().spec(user, TlsMode::Require, "localhost", None);
        let version = encryption(&mut connect(&spec)).unwrap();
        assert!(version.starts_with("TLSv1."), "{version}");
    }
}

#[test]
#[ignore = "needs a server built with OpenSSL"]
fn client_certificates() {
    let spec = |certificate: Option<&str>, key: Option<&str>| {
        let mut spec = fixture().spec("cert_user", TlsMode::VerifyFull, "localhost", Some("root.crt"));
        spec.password = None;
        spec.tls.certificate = certificate.map(|name| fixture().path(name));
        spec.tls.key = key.map(|name| fixture().path(name));
        spec
    };
    connect(&spec(Some("client.crt"), Some("client.key")));
    assert_eq!(refused(&spec(None, None)).server.unwrap().sqlstate, "28000");
    for (certificate, key, part) in [
        (Some("stranger.crt"), Some("stranger.key"), "TLS"),
        (Some("client.crt"), Some("stranger.key"), "client.crt"),
        (Some("client.crt"), None, "only one"),
        (None, Some("client.key"), "only one"),
        (Some("client.crt"), Some("client.crt"), "client.crt"),
        (Some("client.key"), Some("client.key"), "no PEM certificate"),
        (Some("missing.crt"), Some("client.key"), "missing.crt"),
    ] {
        let error = refused(&spec(certificate, key));
        assert!(error.found.as_ref().unwrap().contains(part), "{part}: {error:?}");
    }
    let open =
        write(fixture().files.path(), "open.key", &std::fs::read_to_string(fixture().path("client.key")).unwrap());
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let error = refused(&spec(Some("client.crt"), Some("open.key")));
    assert!(error.found.unwrap().contains("others may read it"));
}

#[test]
#[ignore = "needs a server built with OpenSSL"]
fn a_self_signed_certificate_can_be_its_own_root() {
    let pair = self_signed("localhost");
    let files = tempfile::tempdir().unwrap();
    let root = write(files.path(), "root.crt", &pair.certificate);
    let server = start(&pair, &pair.certificate, "");
    let spec = |host: &str, root: &Path| {
        let mut spec = server.spec_of("scram_user", Some(PASSWORD));
        spec.hosts[0].host = host.to_owned();
        spec.tls =
            TlsSpec { mode: TlsMode::VerifyFull, root_certificates: Some(root.to_owned()), ..TlsSpec::default() };
        spec
    };
    assert!(encryption(&mut connect(&spec("localhost", &root))).is_some()); // by its common name
    assert!(refused(&spec("127.0.0.1", &root)).found.unwrap().contains("not valid for name"));
    let other = write(files.path(), "other.crt", &self_signed("localhost").certificate);
    assert!(refused(&spec("localhost", &other)).found.unwrap().contains("TLS"));
}

#[test]
#[ignore = "needs a server built with OpenSSL"]
fn expired_certificates_are_refused_when_they_are_verified() {
    let authority = Authority::new("Test authority");
    let mut expired = parameters("localhost", &["localhost"]);
    expired.not_before = date_time_ymd(2020, 1, 1);
    expired.not_after = date_time_ymd(2021, 1, 1);
    let files = tempfile::tempdir().unwrap();
    let root = write(files.path(), "root.crt", &authority.certificate);
    let server = start(&authority.sign(&expired), &authority.certificate, "");
    let mut spec = server.spec_of("scram_user", Some(PASSWORD));
    spec.hosts[0].host = "localhost".to_owned();
    spec.tls = TlsSpec { mode: TlsMode::VerifyCa, root_certificates: Some(root), ..TlsSpec::default() };
    let error = refused(&spec);
    assert!(error.found.unwrap().contains("xpired") && error.hint.unwrap().contains("clocks"));
    spec.tls = TlsSpec { mode: TlsMode::Require, ..TlsSpec::default() };
    connect(&spec);
}

#[test]
fn servers_without_tls_are_refused_where_it_is_required() {
    for server in servers() {
        let mut spec = server.spec();
        spec.tls.mode = TlsMode::Require;
        let error = refused(&spec);
        assert!(error.found.unwrap().contains("does not offer TLS") && error.hint.unwrap().contains("ssl = on"));
        spec.tls.mode = TlsMode::Prefer;
        connect(&spec);
    }
}

#[test]
#[ignore = "needs a server built with OpenSSL"]
fn rows_and_cancel_requests_go_through_tls() {
    let mut connection = connect(&fixture().spec("tls_user", TlsMode::Require, "localhost", None));
    connection.execute("CREATE TEMP TABLE t (a text)").unwrap();
    let mut copy = connection.copy_in("COPY t FROM STDIN").unwrap();
    let line = [vec![b'x'; 999], vec![b'\n']].concat();
    for _ in 0..100 {
        let mut frame = copy.buffer().unwrap();
        frame.extend(line.repeat(256));
        copy.send(frame).unwrap();
    }
    let (mut connection, rows) = copy.finish().unwrap();
    assert_eq!(rows, 25_600);
    let sum = connection.query("SELECT sum(length(a)) FROM t", &[]).unwrap();
    assert_eq!(sum.rows[0][0].as_deref(), Some("25574400"));

    let alarm = Alarm::default();
    let spec = fixture().spec("tls_user", TlsMode::Require, "localhost", None);
    let mut sleeping = Connection::connect(&spec, alarm.interrupt()).unwrap();
    let process = sleeping.process_id().to_string();
    alarm.raise_soon();
    let error = soon(|| sleeping.execute("SELECT pg_sleep(3600)")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cancelled);
    wait_until_gone(&mut connection, &process);
}
