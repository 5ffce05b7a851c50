//! Everything that can go wrong before a session is open.

use std::io::{Read, Write};

use headrace_engine::postgres::{Connection, TlsMode};
use headrace_types::ErrorKind;

use crate::fake::{
    PASSWORD, connect, drain, friendly, message, never, ready, refused, report, says, serve, session, speaker,
};
use crate::patience::{Alarm, soon, wait_until};

#[test]
fn a_friendly_server_lets_us_in() {
    let spec = session(|mut stream| drain(&mut stream));
    let connection = connect(&spec);
    assert_eq!((connection.process_id(), connection.parameter("server_version")), (1234, Some("15.4")));
}

#[test]
fn a_login_that_is_cut_anywhere_is_an_error() {
    let whole = friendly().concat();
    let (script, spec) = speaker();
    for length in 0..whole.len() - 1 {
        script.write(whole[..length].to_vec());
        let error = refused(&spec);
        assert!(matches!(error.kind, ErrorKind::TargetBusy), "{length}: {error:?}");
    }
}

#[test]
fn a_login_with_any_wrong_byte_ends() {
    let whole = friendly().concat();
    let (script, spec) = speaker();
    for position in 0..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, whole[position] ^ 1] {
            let mut bytes = whole.clone();
            bytes[position] = value;
            script.write(bytes);
            soon(|| drop(Connection::connect(&spec, never())));
        }
    }
}

#[test]
fn messages_of_any_kind_anywhere_end_the_login_or_are_ignored() {
    let steps = friendly();
    let (script, spec) = speaker();
    for step in 0..steps.len() {
        for tag in 0..=u8::MAX {
            for body in [&b"\0\0\0\x0b"[..], b"\0\x01x\0y\0"] {
                let mut bytes = steps[..step].concat();
                bytes.extend(message(tag, body));
                bytes.extend(steps[step..].concat());
                script.write(bytes);
                soon(|| drop(Connection::connect(&spec, never())));
            }
        }
    }
}

#[test]
fn notices_and_settings_are_welcome_anywhere() {
    let mut bytes = Vec::new();
    for step in friendly() {
        bytes.extend(report(b'N', "NOTICE", "00000", b"hello \xff"));
        bytes.extend(message(b'S', b"application_name\0test\0"));
        bytes.extend(message(b'A', b"\0\0\0\x01channel\0payload\0"));
        bytes.extend(step);
    }
    let spec = serve(move |mut stream| {
        stream.write_all(&bytes).unwrap();
        drain(&mut stream);
    });
    assert_eq!(connect(&spec).parameter("application_name"), Some("test"));
}

#[test]
fn silence_ends_with_the_time_limit_or_the_interrupt() {
    // All of them together: one limit that is not kept would be enough.
    soon(silent_at_each_step);
}

fn silent_at_each_step() {
    let steps = friendly();
    for step in 0..steps.len() {
        let bytes = steps[..step].concat();
        let mut spec = serve(move |mut stream| {
            stream.write_all(&bytes).unwrap();
            drain(&mut stream);
        });
        spec.connect_timeout_seconds = 0.2;
        let error = refused(&spec);
        assert_eq!((error.kind, error.retryable), (ErrorKind::TargetBusy, true));
        spec.connect_timeout_seconds = 0.0;
        let alarm = Alarm::default();
        alarm.raise_soon();
        let connected = Connection::connect(&spec, alarm.interrupt());
        assert_eq!(connected.err().unwrap().kind, ErrorKind::Cancelled);
    }
}

#[test]
fn a_full_queue_of_connects_ends_with_the_time_limit() {
    // Nobody accepts: the system completes connects until its queue is full, then stays silent.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut spec = says(Vec::new());
    spec.hosts[0].port = listener.local_addr().unwrap().port();
    spec.connect_timeout_seconds = 0.3;
    let error = soon(|| refused(&spec));
    assert!(error.found.unwrap().contains("connect_timeout"));
}

#[test]
fn what_is_no_postgresql_is_named() {
    for banner in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
        b"220 mail.example.com ESMTP\r\n",
        b"\x4a\x00\x00\x00\x0a8.0.36\x00",
        b"-ERR unknown command\r\n",
    ] {
        for mode in [TlsMode::Disable, TlsMode::Prefer, TlsMode::Require] {
            let mut spec = says(banner.to_vec());
            spec.tls.mode = mode;
            let error = soon(|| refused(&spec));
            let text = format!("{:?} {:?}", error.found, error.hint);
            let known = text.contains("not PostgreSQL's") || text.contains("TLS");
            assert!(known && error.kind == ErrorKind::Target, "{mode:?} {error:?}");
        }
    }
}

#[test]
fn large_messages_are_refused_before_they_come() {
    for (bytes, size) in [(vec![b'R', 0, 2, 0, 0], "131072"), (vec![b'E', 0x7f, 0xff, 0xff, 0xff], "2147483647")] {
        let error = refused(&says(bytes));
        assert!(error.found.unwrap().contains(size));
    }
}

#[test]
fn errors_of_the_login_keep_what_the_server_said_in_any_encoding() {
    let error = refused(&says(report(b'E', "FATAL", "53300", b"zu viele Verbindungen f\xfcr \xbbetl\xab")));
    assert_eq!((error.kind, error.retryable), (ErrorKind::TargetBusy, true));
    let fields = error.server.unwrap();
    assert_eq!(fields.sqlstate, "53300");
    assert!(fields.message.starts_with("zu viele Verbindungen f"));
    // Not a single field, fields cut off, and garbage behind them.
    for body in [&b""[..], b"\0", b"S", b"SFATAL", b"SFATAL\0", b"\0trash", b"C\0\0", b"\xff\xff\0\0"] {
        refused(&says(message(b'E', body)));
    }
}

#[test]
fn passwords_go_nowhere_without_need() {
    let clear = message(b'R', &[0, 0, 0, 3]);
    let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = std::sync::Arc::clone(&heard);
    let spec = serve(move |mut stream| {
        stream.write_all(&clear).unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        kept.lock().unwrap().extend(bytes);
    });
    let error = refused(&spec);
    assert!(error.found.unwrap().contains("clear text") && error.hint.unwrap().contains("sslmode"));
    // Something was heard: the startup message at least.
    wait_until("the server has heard something", || !heard.lock().unwrap().is_empty());
    assert!(heard.lock().unwrap().windows(4).any(|window| window == b"user"));
    assert!(!heard.lock().unwrap().windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes()));
}

#[test]
fn methods_we_do_not_know_are_named() {
    for (code, name) in [(2, "Kerberos"), (6, "SCM"), (7, "Kerberos"), (9, "SSPI")] {
        let error = refused(&says(message(b'R', &[0, 0, 0, code])));
        assert!(error.found.unwrap().contains(name));
    }
    let error = refused(&says(message(b'R', b"\0\0\0\x0aOAUTHBEARER\0\0")));
    assert!(error.found.unwrap().contains("OAUTHBEARER"));
}

#[test]
fn scram_needs_proof_from_the_server_too() {
    let offer = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    let first = |text: &str| message(b'R', &[b"\0\0\0\x0b", text.as_bytes()].concat());
    let ok = [message(b'R', &[0, 0, 0, 0]), ready()].concat();
    for answer in [
        ok.clone(),                                 // no exchange at all
        first("r=other,s=QSXCR+Q6sek8bf92,i=4096"), // not our nonce
        first(""),
        first("r=,s=,i="),
        first("m=extension,r=x"),
        first("r=\u{fffd},s=!,i=99999999999999999999"),
        message(b'R', b"\0\0\0\x0c"),
        message(b'R', b"\0\0\0\x0b\xff\xfe"),
    ] {
        let error = refused(&says([offer.clone(), answer, ok.clone()].concat()));
        assert_eq!(error.kind, ErrorKind::Target, "{error:?}");
    }
    // A server that echoes the nonce, but does not know the password.
    for (suffix, last) in [
        (",s=QSXCR+Q6sek8bf92,i=4096", ok.clone()),
        (",s=QSXCR+Q6sek8bf92,i=4096", message(b'R', b"\0\0\0\x0cv=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")),
        (",s=QSXCR+Q6sek8bf92,i=4096", message(b'R', b"\0\0\0\x0ce=other-error")),
        (",s=QSXCR+Q6sek8bf92,i=4294967295", ok.clone()), // hours of work for us
        (",s=QSXCR+Q6sek8bf92,i=0", ok.clone()),
    ] {
        let (offer, ok) = (offer.clone(), ok.clone());
        let spec = serve(move |mut stream| {
            let mut buffer = vec![0; 4096];
            let _ = stream.read(&mut buffer).unwrap();
            stream.write_all(&offer).unwrap();
            let count = stream.read(&mut buffer).unwrap();
            let heard = String::from_utf8_lossy(&buffer[..count]).into_owned();
            let nonce = heard.split("r=").nth(1).unwrap();
            let text = format!("r={nonce}server{suffix}");
            stream.write_all(&message(b'R', &[b"\0\0\0\x0b", text.as_bytes()].concat())).unwrap();
            let _ = stream.read(&mut buffer);
            stream.write_all(&[last.clone(), ok.clone()].concat()).unwrap();
            drain(&mut stream);
        });
        let error = soon(|| refused(&spec));
        assert_eq!(error.kind, ErrorKind::Target, "{error:?}");
    }
}

#[test]
fn answers_to_the_wish_for_tls() {
    for (answer, mode, part) in [
        (&b"N"[..], TlsMode::Require, "does not offer TLS"),
        (b"N", TlsMode::VerifyCa, "does not offer TLS"),
        (b"Eunsupported", TlsMode::Require, "refused to talk about TLS"),
        (b"S", TlsMode::Require, "closed"),
        (b"Sgarbage, not a handshake", TlsMode::Require, "TLS"),
        (b"S\x15\x03\x03\x00\x02\x02\x46", TlsMode::Require, "TLS"),
        (b"", TlsMode::Prefer, "closed"),
        (b"x", TlsMode::Require, "'x' instead of yes or no"),
    ] {
        let mut spec = says(answer.to_vec());
        spec.tls.mode = mode;
        if mode == TlsMode::VerifyCa {
            spec.tls.root_certificates = Some("/etc/ssl/certs/ca-certificates.crt".into());
        }
        let error = soon(|| refused(&spec));
        assert!(error.found.as_ref().unwrap().contains(part), "{part}: {error:?}");
    }
    let mut spec = says(Vec::new());
    spec.tls.mode = TlsMode::VerifyFull;
    spec.tls.root_certificates = Some("/nowhere/root.crt".into());
    let error = refused(&spec);
    assert!(error.found.unwrap().contains("/nowhere/root.crt"));
}

#[test]
fn settings_that_hold_a_nul_are_refused() {
    let mut spec = says(Vec::new());
    spec.database = "a\0b".to_owned();
    assert!(refused(&spec).found.unwrap().contains("NUL"));
}
