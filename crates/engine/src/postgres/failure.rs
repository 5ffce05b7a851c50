//! What went wrong, as errors for people. SQLSTATE decides whether a retry can help and what to advise.

use std::io;

use headrace_types::{CoreError, ErrorKind, ServerFields};

use super::wait::Broken;

/// What the first letters of a SQLSTATE mean for us.
struct Meaning {
    /// A whole code, or the two letters of a class.
    code: &'static str,
    /// Target or TargetBusy.
    kind: ErrorKind,
    /// One action; empty: the server's own hint.
    hint: &'static str,
}

const fn target(code: &'static str, hint: &'static str) -> Meaning {
    Meaning { code, kind: ErrorKind::Target, hint }
}

const fn busy(code: &'static str, hint: &'static str) -> Meaning {
    Meaning { code, kind: ErrorKind::TargetBusy, hint }
}

/// Codes before their classes: the first that fits counts.
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
const MEANINGS: &[Meaning] = &[
    busy("08", "Check the network and the server's log, then run again."),
    target("0A000", ""),
    target(
        "22001",
        "Make the column longer, or declare the layout's column as varchar(n): too long values are rejects then.",
    ),
    target("22003", "Give the target's column a wider type."),
    target("22007", ""),
    target("22008", ""),
    target(
        "22021",
        "Text holds a NUL character, which PostgreSQL cannot store, or bytes that are not in the declared encoding.",
    ),
    target(
        "22P05",
        "The database cannot store a character of the data. With encoding UTF8 that is only \\u0000 inside jsonb.",
    ),
    target("22P03", "The column's type differs from the plan: the table was changed meanwhile. Run again."),
    target("22P04", "The table was changed while the load was running. Run again."),
    target("23502", "Declare the layout's column as nullable: false; such rows are rejects then."),
    target("23503", "Load the referenced table first."),
    target("23505", "Remove one of the two rows, or the unique index."),
    target("23514", "Correct the row, or drop the constraint."),
    target("23P01", "Correct the row, or drop the constraint."),
    busy("25P03", "The session was idle inside a transaction for too long: raise idle_in_transaction_session_timeout."),
    target("25P04", "The transaction took longer than the server allows: raise transaction_timeout."),
    target(
        "25006",
        "The server is read only: it is a standby, or default_transaction_read_only is on. Connect to the primary.",
    ),
    target("28P01", "Check user and password."),
    target(
        "28000",
        "Check the user. pg_hba.conf of the server has to admit it from this machine, with or without TLS as used here.",
    ),
    target("3D000", "Create the database, or correct its name in the connection."),
    target("3F000", "Create the schema, or correct its name in the package."),
    busy("40001", "Other transactions were in the way: run again."),
    busy("40P01", "Other transactions were in the way: run again."),
    busy("40", "Run again."),
    target("42501", "Grant the missing privilege to the user of the connection."),
    target("42P01", "Create the table, or correct its name."),
    target("42P04", ""),
    target("42P07", "Drop it, or use target: append or replace."),
    target("53100", "Make room on the server's disk, then run again."),
    busy("53200", "The server is out of memory: run again, or with fewer streams."),
    busy("53300", "Close other sessions, use fewer streams, or raise max_connections."),
    busy("53", "Run again when the server is less busy."),
    target("54000", ""),
    busy("55006", "Wait until the other session is done, then run again."),
    busy("55P03", "Another session holds the lock: wait for it, or raise lock_timeout."),
    target("55000", ""),
    target("57014", "The statement was cancelled, by somebody or by a time limit of the server."),
    busy("57P01", "An administrator ended the session or stops the server: run again."),
    busy("57P02", "The server crashed and recovers: run again."),
    busy("57P03", "The server is starting up, shutting down or recovering: run again in a moment."),
    busy("57P05", "The session was idle for too long: raise idle_session_timeout."),
    target("58030", "Look at the server's log: its disk reports errors."),
    target("XX001", "Look at the server's log: its data are damaged."),
    target("XX002", "Look at the server's log: an index is damaged."),
];

/// Why a connect failed.
#[derive(Debug)]
pub enum Trouble {
    /// The exchange ended.
    Broken(Broken),
    /// The server said no.
    Server(Box<ServerFields>),
    /// We refuse to go on.
    Refused {
        /// What was found.
        found: String,
        /// What to do.
        hint: String,
    },
}

impl Trouble {
    /// A refusal of our own.
    pub fn refused(found: impl Into<String>, hint: impl Into<String>) -> Trouble {
        Trouble::Refused { found: found.into(), hint: hint.into() }
    }
}

impl From<Broken> for Trouble {
    fn from(broken: Broken) -> Self {
        Trouble::Broken(broken)
    }
}

/// Names the server in messages: `PostgreSQL at db:5432 (database sales, user etl)`.
#[derive(Clone, Debug)]
pub struct ServerName(pub String);

impl ServerName {
    /// The server refused a statement, or ended the session.
    pub fn refused(&self, fields: ServerFields) -> CoreError {
        describe(&format!("{} refused a statement", self.0), fields)
    }

    /// The session is lost.
    pub fn lost(&self, doing: &str, broken: &Broken) -> CoreError {
        let (kind, found, hint) = broken_session(broken);
        if kind == ErrorKind::Cancelled {
            return CoreError::new(kind, format!("cancelled while {doing} on {}", self.0));
        }
        CoreError::new(kind, format!("connection to {} was lost while {doing}", self.0)).found(found).hint(hint)
    }

    /// The session was given up earlier.
    pub fn closed(&self, cancelled: bool) -> CoreError {
        let what = format!("the connection to {} is closed", self.0);
        if cancelled {
            return CoreError::new(ErrorKind::Cancelled, what);
        }
        CoreError::new(ErrorKind::TargetBusy, what).hint("It was lost earlier; connect again.")
    }

    /// Something the caller sent that the protocol cannot carry.
    pub fn malformed(&self, found: String) -> CoreError {
        CoreError::new(ErrorKind::Specification, format!("statement for {}", self.0)).found(found)
    }

    /// A connect failed, with what happened at each address.
    pub fn unreachable(&self, attempts: Vec<(String, Trouble)>) -> CoreError {
        let what = format!("cannot connect to {}", self.0);
        let others = attempts.len() > 1;
        let listed: Vec<String> = attempts.iter().map(|(at, trouble)| format!("{at}: {}", found(trouble))).collect();
        // The most telling one decides: a server that answered, before one that could not be reached.
        let told = attempts.into_iter().map(|(_, trouble)| trouble).reduce(more_telling);
        let mut error = match told {
            None => CoreError::new(ErrorKind::Specification, what.as_str()).found("no host"),
            Some(Trouble::Server(fields)) => describe(&what, *fields),
            Some(Trouble::Refused { found, hint }) => {
                CoreError::new(ErrorKind::Target, what.as_str()).found(found).hint(hint)
            }
            Some(Trouble::Broken(broken)) => {
                let (kind, found, hint) = broken_connect(&broken);
                let error = CoreError::new(kind, what.as_str());
                if kind == ErrorKind::Cancelled { error } else { error.found(found).hint(hint) }
            }
        };
        if others && error.kind != ErrorKind::Cancelled {
            error.found = Some(listed.join("\n"));
        }
        error
    }
}

/// Of two troubles the one that says more about the cause; the first of equals.
pub fn more_telling(first: Trouble, second: Trouble) -> Trouble {
    if telling(&second) > telling(&first) { second } else { first }
}

fn telling(trouble: &Trouble) -> u8 {
    match trouble {
        Trouble::Broken(Broken::Interrupted) => 5,
        // "no pg_hba.conf entry": often only the consequence of TLS that failed before.
        Trouble::Server(fields) if fields.sqlstate == "28000" => 2,
        Trouble::Server(_) => 4,
        Trouble::Refused { .. } | Trouble::Broken(Broken::Tls(_)) => 3,
        Trouble::Broken(_) => 1,
    }
}

fn meaning(sqlstate: &str) -> (ErrorKind, &'static str) {
    let found = MEANINGS.iter().find(|meaning| sqlstate.starts_with(meaning.code));
    found.map_or((ErrorKind::Target, ""), |meaning| (meaning.kind, meaning.hint))
}

fn describe(what: &str, fields: ServerFields) -> CoreError {
    let (kind, hint) = meaning(&fields.sqlstate);
    let mut error = CoreError::new(kind, what).found(server_text(&fields));
    error.hint = if hint.is_empty() { fields.hint.clone() } else { Some(hint.to_owned()) };
    error.server(fields)
}

fn server_text(fields: &ServerFields) -> String {
    let detail = fields.detail.iter().map(|detail| format!("\n{detail}"));
    format!("{} ({}){}", fields.message, fields.sqlstate, detail.collect::<String>())
}

fn found(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Server(fields) => server_text(fields),
        Trouble::Refused { found, .. } => found.clone(),
        Trouble::Broken(broken) => broken_connect(broken).1,
    }
}

/// Kind, what was found, hint: of a connect.
fn broken_connect(broken: &Broken) -> (ErrorKind, String, &'static str) {
    const NOT_POSTGRES: &str = "Check host and port: something else than PostgreSQL answers there.";
    match broken {
        Broken::Interrupted => (ErrorKind::Cancelled, String::new(), ""),
        Broken::TimedOut | Broken::Stalled(_) => (
            ErrorKind::TargetBusy,
            "no answer within connect_timeout".to_owned(),
            "Check host, port and firewall, or raise connect_timeout.",
        ),
        Broken::Name(text) => {
            let kind = if text.contains("emporary") { ErrorKind::TargetBusy } else { ErrorKind::Target };
            (kind, format!("the host's name has no address: {text}"), "Check the host's name.")
        }
        Broken::Closed => (
            ErrorKind::TargetBusy,
            "the connection was closed during the login".to_owned(),
            "Look at the server's log; check host and port.",
        ),
        Broken::Io(error) => match error.kind() {
            io::ErrorKind::PermissionDenied => {
                (ErrorKind::Target, error.to_string(), "Give this user the right to use the socket.")
            }
            _ => (ErrorKind::TargetBusy, error.to_string(), "Check that the server runs, and host, port and firewall."),
        },
        Broken::Protocol(text) | Broken::TooLarge(text) => {
            (ErrorKind::Target, format!("an answer that is not PostgreSQL's: {text}"), NOT_POSTGRES)
        }
        Broken::Tls(error) => tls(error),
    }
}

/// Kind, what was found, hint: of a session.
fn broken_session(broken: &Broken) -> (ErrorKind, String, &'static str) {
    const AGAIN: &str = "Check the network and the server's log, then run again.";
    match broken {
        Broken::Interrupted => (ErrorKind::Cancelled, String::new(), ""),
        Broken::TimedOut => (ErrorKind::TargetBusy, "no answer in time".to_owned(), AGAIN),
        Broken::Stalled(limit) => (
            ErrorKind::TargetBusy,
            format!("no byte has moved for {} s, and some were waiting", limit.as_secs_f64()),
            "Check the network and the server; for one that is only slow, raise stall_timeout_seconds.",
        ),
        Broken::Closed => (ErrorKind::TargetBusy, "the server closed the connection".to_owned(), AGAIN),
        Broken::Name(text) => (ErrorKind::TargetBusy, text.clone(), AGAIN),
        Broken::Io(error) => (ErrorKind::TargetBusy, error.to_string(), AGAIN),
        Broken::Tls(error) => tls(error),
        Broken::TooLarge(text) => (ErrorKind::Target, text.clone(), "Let the statement return less."),
        Broken::Protocol(text) => (
            ErrorKind::Target,
            format!("an answer against PostgreSQL's protocol: {text}"),
            "Check that a PostgreSQL server of version 15 to 18 answers there, without a proxy between.",
        ),
    }
}

fn tls(error: &rustls::Error) -> (ErrorKind, String, &'static str) {
    use rustls::{AlertDescription, CertificateError, Error};
    let hint = match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "Name the file with the certificate of the server's authority: sslrootcert."
        }
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "Use the host name of the server's certificate, or sslmode=verify-ca if names cannot be trusted here.",
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "Renew the server's certificate; check the clocks."
        }
        Error::InvalidCertificate(CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }) => {
            "Check the clocks of both machines."
        }
        Error::InvalidCertificate(_) => {
            "Make the server's certificate anew, X.509 version 3 with a subjectAltName, or name it itself as sslrootcert."
        }
        Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::HandshakeFailure,
        ) => "The server did not accept the client's certificate: check sslcert and sslkey.",
        Error::AlertReceived(AlertDescription::ProtocolVersion) => "The server needs TLS 1.2 or newer.",
        Error::InvalidMessage(_) => "Check host and port: what answers there does not speak TLS.",
        _ => "Compare the TLS settings of both sides.",
    };
    (ErrorKind::Target, format!("TLS: {error}"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> ServerName {
        ServerName("PostgreSQL at db:5432".to_owned())
    }

    fn said(sqlstate: &str) -> ServerFields {
        ServerFields {
            severity: "ERROR".to_owned(),
            sqlstate: sqlstate.to_owned(),
            message: "no".to_owned(),
            hint: Some("the server's hint".to_owned()),
            ..ServerFields::default()
        }
    }

    #[test]
    fn the_code_decides_whether_a_retry_helps() {
        for (sqlstate, retryable) in [
            ("08006", true),
            ("40001", true),
            ("40P01", true),
            ("53300", true),
            ("55P03", true),
            ("57P01", true),
            ("57P03", true),
            ("53100", false),
            ("23505", false),
            ("42501", false),
            ("57014", false),
            ("", false),
            ("ZZZZZ", false),
            ("4", false),
            ("ü", false),
        ] {
            let error = server().refused(said(sqlstate));
            assert_eq!((error.retryable, error.kind == ErrorKind::TargetBusy), (retryable, retryable), "{sqlstate}");
            assert_eq!(error.server.unwrap().sqlstate, sqlstate);
        }
    }

    #[test]
    fn the_server_s_hint_is_used_where_we_have_none() {
        assert_eq!(server().refused(said("42883")).hint.as_deref(), Some("the server's hint"));
        assert_eq!(server().refused(said("28P01")).hint.as_deref(), Some("Check user and password."));
    }

    #[test]
    fn codes_stand_before_their_classes() {
        for (index, meaning) in MEANINGS.iter().enumerate() {
            let hidden = MEANINGS[..index].iter().find(|earlier| meaning.code.starts_with(earlier.code));
            assert!(hidden.is_none(), "{} is hidden by {}", meaning.code, hidden.map_or("", |earlier| earlier.code));
        }
    }

    #[test]
    fn a_server_that_answered_counts_more_than_one_that_did_not() {
        let attempts = vec![
            ("a".to_owned(), Trouble::Broken(Broken::Closed)),
            ("b".to_owned(), Trouble::Server(Box::new(said("57P03")))),
            ("c".to_owned(), Trouble::Broken(Broken::TimedOut)),
        ];
        let error = server().unreachable(attempts);
        assert_eq!(error.server.unwrap().sqlstate, "57P03");
        assert_eq!(error.found.unwrap().lines().count(), 3);
        assert_eq!(server().unreachable(Vec::new()).kind, ErrorKind::Specification);
        let interrupted = vec![
            ("a".to_owned(), Trouble::Broken(Broken::Closed)),
            ("b".to_owned(), Trouble::Broken(Broken::Interrupted)),
        ];
        assert_eq!(server().unreachable(interrupted).kind, ErrorKind::Cancelled);
    }
}
