//! Statements whose answers are wrong, late or too large.

use std::io::{Read, Write};
use std::sync::mpsc;

use headrace_engine::postgres::{Connection, ConnectionSpec};
use headrace_types::ErrorKind;

use crate::fake::{FOR_EVER, Script, complete, connect, drain, message, never, ready, report, request, serve, session};
use crate::patience::{Alarm, HANG, soon};

/// A server whose sessions answer the first request with the script and close.
fn answering() -> (Script, ConnectionSpec) {
    let script = Script::default();
    let spoken = script.clone();
    let spec = session(move |mut stream| {
        request(&mut stream);
        spoken.speak(&mut stream);
    });
    (script, spec)
}

/// A session that is answered with these bytes once.
fn answers(bytes: Vec<u8>) -> Connection {
    let (script, spec) = answering();
    script.write(bytes);
    connect(&spec)
}

fn good_answer() -> Vec<Vec<u8>> {
    vec![
        message(b'1', b""),
        message(b'2', b""),
        message(b'T', b"\0\x01n\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0"),
        message(b'D', b"\0\x01\0\0\0\x0242"),
        message(b'D', b"\0\x01\xff\xff\xff\xff"),
        complete("SELECT 2"),
        ready(),
    ]
}

#[test]
fn a_good_answer_is_understood() {
    let result = answers(good_answer().concat()).query("SELECT n", &[]).unwrap();
    assert_eq!(result.rows, [vec![Some("42".to_owned())], vec![None]]);
}

#[test]
fn an_answer_that_is_cut_anywhere_is_an_error_and_ends_the_session() {
    let whole = good_answer().concat();
    let (script, spec) = answering();
    for length in 0..whole.len() - 1 {
        script.write(whole[..length].to_vec());
        let mut connection = connect(&spec);
        let error = connection.query("SELECT n", &[]).unwrap_err();
        assert_eq!((error.kind, error.retryable), (ErrorKind::TargetBusy, true), "{error:?}");
        assert_eq!(connection.execute("SELECT 1").unwrap_err().kind, ErrorKind::TargetBusy);
        assert!(connection.copy_in("COPY t FROM STDIN").is_err());
    }
}

#[test]
fn an_answer_with_any_wrong_byte_ends() {
    let whole = good_answer().concat();
    let (script, spec) = answering();
    for position in 0..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, whole[position] ^ 1] {
            let mut bytes = whole.clone();
            bytes[position] = value;
            script.write(bytes);
            let mut connection = connect(&spec);
            soon(|| drop(connection.query("SELECT n", &[])));
        }
    }
}

#[test]
fn an_error_counts_even_if_the_connection_is_lost_behind_it() {
    for (bytes, kind) in [
        (report(b'E', "ERROR", "42P01", b"relation \"x\" does not exist"), ErrorKind::Target),
        (report(b'E', "FATAL", "57P01", b"terminating connection"), ErrorKind::TargetBusy),
    ] {
        let mut connection = answers(bytes);
        let error = connection.execute("SELECT 1").unwrap_err();
        assert_eq!((error.kind, error.server.is_some()), (kind, true));
        assert!(connection.execute("SELECT 1").is_err());
    }
}

#[test]
fn large_rows_and_large_results_are_refused() {
    let mut connection = answers(vec![b'D', 4, 0, 0, 1]);
    let error = connection.query("SELECT 1", &[]).unwrap_err();
    assert!(error.found.as_ref().unwrap().contains("67108865 bytes"), "{error:?}");
    assert!(!format!("{error:?}").contains("protocol"), "the server has done nothing wrong: {error:?}");

    let row = message(b'D', &[&b"\0\x01\0\x10\0\0"[..], &vec![b'x'; 1 << 20]].concat());
    let mut connection = connect(&session(move |mut stream| {
        request(&mut stream);
        while stream.write_all(&row).is_ok() {}
    }));
    let error = connection.query("SELECT endless", &[]).unwrap_err();
    assert!(error.found.as_ref().unwrap().contains("256 MB"), "{error:?}");
    assert!(!format!("{error:?}").contains("protocol"), "the server has done nothing wrong: {error:?}");
}

#[test]
fn large_notices_and_settings_are_not_kept() {
    let notice = report(b'N', "NOTICE", "00000", &[b'n'; 4 << 20]);
    let setting = message(b'S', &[b"A\0", &[b'v'; 4 << 20][..], b"\0"].concat());
    let mut connection = connect(&session(move |mut stream| {
        request(&mut stream);
        for number in 0..60 {
            stream.write_all(&notice).unwrap();
            let mut setting = setting.clone();
            setting[5] += number;
            stream.write_all(&setting).unwrap();
        }
        stream.write_all(&[complete("SELECT 1"), ready()].concat()).unwrap();
        drain(&mut stream);
    }));
    connection.execute("SELECT 1").unwrap();
    let notices: usize = connection.take_notices().iter().map(|notice| notice.message.len()).sum();
    let names: Vec<String> = (b'A'..).take(60).map(|letter| format!("{}", char::from(letter))).collect();
    let settings: usize = names.iter().filter_map(|name| connection.parameter(name)).map(str::len).sum();
    assert!(notices <= 8 << 20 && settings <= 8 << 20, "{notices} {settings}");
}

#[test]
fn a_server_that_never_stops_talking_cannot_hold_us() {
    let notices = report(b'N', "NOTICE", "00000", b"hello").repeat(100_000);
    // Against the protocol, and then without end.
    let spec = session(move |mut stream| {
        request(&mut stream);
        stream.write_all(&[message(b'n', b""), notices.clone()].concat()).unwrap();
        while stream.write_all(&notices).is_ok() {}
    });
    let mut connection = connect(&spec);
    let error = soon(|| connection.execute("SELECT 1")).unwrap_err();
    assert!(error.found.unwrap().contains("against PostgreSQL's protocol"));
}

#[test]
fn endless_notices_and_settings_are_not_kept() {
    let notice = report(b'N', "NOTICE", "00000", b"hello");
    let mut bytes = notice.repeat(10_000);
    for number in 0..10_000 {
        bytes.extend(message(b'S', format!("name{number}\0value\0").as_bytes()));
    }
    bytes.extend(complete("SELECT 1"));
    bytes.extend(ready());
    let mut connection = answers(bytes);
    connection.execute("SELECT 1").unwrap();
    assert_eq!(connection.take_notices().len(), 100);
    assert_eq!((connection.parameter("name5"), connection.parameter("name5000")), (Some("value"), None));
}

#[test]
fn a_wait_ends_with_the_interrupt_and_asks_the_server_to_stop() {
    let (cancelled, heard) = mpsc::channel();
    let login = session(|mut stream| drain(&mut stream)).hosts;
    // Tells session and cancel request apart by its own eyes: forwards to the friendly server.
    let spec = serve(move |mut stream| {
        let mut start = [0; 16];
        stream.read_exact(&mut start).unwrap();
        if start[4..8] == 80_877_102_u32.to_be_bytes() {
            cancelled.send(start).unwrap();
            return;
        }
        let mut inner = std::net::TcpStream::connect(("127.0.0.1", login[0].port)).unwrap();
        inner.write_all(&start).unwrap();
        let mut back = (inner.try_clone().unwrap(), stream.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut back.0, &mut back.1));
        let _ = std::io::copy(&mut stream, &mut inner);
    });
    let alarm = Alarm::default();
    let mut connection = Connection::connect(&spec, alarm.interrupt()).unwrap();
    alarm.raise_soon();
    let error = soon(|| connection.execute("SELECT pg_sleep(1000)")).unwrap_err();
    assert_eq!((error.kind, error.retryable), (ErrorKind::Cancelled, false));
    let request = heard.recv_timeout(HANG).unwrap();
    assert_eq!(request[..], [0, 0, 0, 16, 4, 210, 22, 46, 0, 0, 4, 210, 0, 0, 0, 7]);
    assert!(connection.execute("SELECT 1").is_err());
}

#[test]
fn a_server_that_does_not_read_cannot_hold_us() {
    let spec = session(|stream| {
        std::thread::sleep(FOR_EVER);
        drop(stream);
    });
    let statement = format!("SELECT '{}'", "x".repeat(64 << 20));
    let alarm = Alarm::default();
    let mut connection = Connection::connect(&spec, alarm.interrupt()).unwrap();
    alarm.raise_soon();
    let error = soon(|| connection.execute(&statement)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cancelled);
}

#[test]
fn statements_with_a_nul_are_refused_and_nothing_is_sent() {
    let mut connection = Connection::connect(
        &session(|mut stream| {
            assert_eq!(request(&mut stream).unwrap().1, b"SELECT 2\0");
            stream.write_all(&[complete("SELECT 1"), ready()].concat()).unwrap();
            drain(&mut stream);
        }),
        never(),
    )
    .unwrap();
    assert_eq!(connection.execute("SELECT '\0'").unwrap_err().kind, ErrorKind::Specification);
    connection.execute("SELECT 2").unwrap();
}

#[test]
fn nothing_is_sent_after_the_interrupt() {
    let (told, heard) = mpsc::channel();
    let spec = session(move |mut stream| told.send(request(&mut stream)).unwrap());
    let alarm = Alarm::default();
    let mut connection = Connection::connect(&spec, alarm.interrupt()).unwrap();
    alarm.raise();
    assert_eq!(connection.execute("COMMIT").unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(heard.recv_timeout(HANG).unwrap(), None);
}
