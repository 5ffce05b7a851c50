//! What is needed to connect: plain data, made by the Python side from URLs, services and the environment.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// Where and as whom to connect.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct ConnectionSpec {
    /// Tried in order.
    pub hosts: Vec<HostSpec>,
    /// Database.
    pub database: String,
    /// User (role).
    pub user: String,
    /// Password; never shown.
    #[serde(default, deserialize_with = "password")]
    pub password: Option<String>,
    /// Shown by the server in `pg_stat_activity`.
    pub application_name: String,
    /// Command line options for the session, as libpq's `options`.
    #[serde(default)]
    pub options: Option<String>,
    /// Encryption.
    #[serde(default)]
    pub tls: TlsSpec,
    /// Limit for names, connects, TLS and login of all hosts together; 0 or less: none.
    pub connect_timeout_seconds: f64,
    /// How long nothing may move while bytes are pending; 0 or less: no limit.
    #[serde(default)]
    pub stall_timeout_seconds: f64,
    /// TCP keepalive; None switches it off.
    #[serde(default)]
    pub keepalive: Option<KeepaliveSpec>,
    /// TCP_USER_TIMEOUT: how long sent bytes may stay unacknowledged. Linux counts the time in which a living server
    /// does not read (its window is closed) too, so it has to be longer than the longest pause of a COPY.
    #[serde(default)]
    pub user_timeout_milliseconds: Option<u32>,
}

/// One server.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Name or address; a text that starts with `/` is the folder of a Unix socket.
    pub host: String,
    /// TCP port, or the number in the Unix socket's name.
    pub port: u16,
    /// Where to find it, such as `10.0.0.7:5432`: the name is then only what its certificate has to be for. A name can
    /// have several addresses, each of another server; [`super::Connection::address`] says which of them it was.
    #[serde(default)]
    pub address: Option<SocketAddr>,
}

/// Encryption of the connection.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct TlsSpec {
    /// As libpq's `sslmode`.
    #[serde(default)]
    pub mode: TlsMode,
    /// PEM file of trusted certificates, or `system` for those of the operating system (also the default of
    /// `verify-ca` and `verify-full`). With a file the server's certificate is verified in every mode that uses TLS.
    #[serde(default)]
    pub root_certificates: Option<PathBuf>,
    /// PEM file of the client's certificate and those between it and its root.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// PEM file of the client's key.
    #[serde(default)]
    pub key: Option<PathBuf>,
}

/// When TLS is used and what is verified.
#[derive(Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// Never TLS.
    Disable,
    /// TLS only if the server refuses the connection without it.
    Allow,
    /// TLS if the server has it; without it if that fails.
    #[default]
    Prefer,
    /// TLS or nothing.
    Require,
    /// And the certificate comes from a trusted root.
    VerifyCa,
    /// And it is that of the host.
    VerifyFull,
}

/// TCP keepalive.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct KeepaliveSpec {
    /// Silence before the first probe.
    pub idle_seconds: u32,
    /// Time between probes.
    pub interval_seconds: u32,
    /// Unanswered probes after which the peer is dead.
    pub count: u32,
}

impl ConnectionSpec {
    /// Limit for the whole connect.
    pub fn connect_limit(&self) -> Option<Duration> {
        limit(self.connect_timeout_seconds)
    }

    /// Limit for a session on which nothing moves.
    pub fn stall_limit(&self) -> Option<Duration> {
        limit(self.stall_timeout_seconds)
    }
}

impl HostSpec {
    /// Whether it is the folder of a Unix socket.
    pub fn is_unix(&self) -> bool {
        self.host.starts_with('/')
    }
}

impl fmt::Display for HostSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HostSpec { host, port, address: _ } = self;
        if self.is_unix() {
            write!(formatter, "{}/.s.PGSQL.{port}", host.trim_end_matches('/'))
        } else if host.contains(':') {
            write!(formatter, "[{host}]:{port}")
        } else {
            write!(formatter, "{host}:{port}")
        }
    }
}

impl fmt::Debug for ConnectionSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConnectionSpec")
            .field("hosts", &self.hosts)
            .field("database", &self.database)
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "(hidden)"))
            .field("application_name", &self.application_name)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

fn limit(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|limit| !limit.is_zero())
}

/// A text or nothing. Serde's own message about another type would show the value.
fn password<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::Null => Ok(None),
        serde_json::Value::String(text) => Ok(Some(text)),
        _ => Err(serde::de::Error::custom("the password is not a text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = r#""hosts": [{"host": "db", "port": 5432}], "database": "d", "user": "u",
        "application_name": "a", "connect_timeout_seconds": 10"#;

    #[test]
    fn passwords_are_never_shown() {
        let spec: ConnectionSpec = serde_json::from_str(&format!("{{{LEAST}, \"password\": \"swordfish\"}}")).unwrap();
        assert_eq!(spec.password.as_deref(), Some("swordfish"));
        assert!(!format!("{spec:?}").contains("swordfish"));
        for wrong in ["4711", "[\"4711\"]", "{\"x\": 4711}", "4711.5"] {
            let error =
                serde_json::from_str::<ConnectionSpec>(&format!("{{{LEAST}, \"password\": {wrong}}}")).unwrap_err();
            assert!(!error.to_string().contains("4711"), "{error}");
        }
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let spec: ConnectionSpec = serde_json::from_str(&format!("{{{LEAST}}}")).unwrap();
        assert_eq!((spec.password, spec.tls.mode, spec.user_timeout_milliseconds), (None, TlsMode::Prefer, None));
    }

    #[test]
    fn limits_of_the_connect() {
        let mut spec: ConnectionSpec = serde_json::from_str(&format!("{{{LEAST}}}")).unwrap();
        for (seconds, limit) in
            [(1.5, Some(Duration::from_millis(1500))), (0.0, None), (-1.0, None), (f64::NAN, None), (1e300, None)]
        {
            spec.connect_timeout_seconds = seconds;
            assert_eq!(spec.connect_limit(), limit, "{seconds}");
        }
    }

    #[test]
    fn hosts_as_people_write_them() {
        for (host, shown) in [("db", "db:5432"), ("::1", "[::1]:5432"), ("/run/pg/", "/run/pg/.s.PGSQL.5432")] {
            assert_eq!(HostSpec { host: host.to_owned(), port: 5432, address: None }.to_string(), shown);
        }
    }
}
