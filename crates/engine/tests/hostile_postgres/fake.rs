//! A server in a thread that says whatever a test wants.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use headrace_engine::postgres::{Connection, ConnectionSpec, HostSpec, Interrupt, TlsMode, TlsSpec};
use headrace_types::CoreError;

pub const PASSWORD: &str = "swordfish";

/// Serves every connection with the same function, each in a thread of its own.
pub fn serve(conversation: impl Fn(TcpStream) + Send + Sync + 'static) -> ConnectionSpec {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let conversation = Arc::new(conversation);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let conversation = Arc::clone(&conversation);
            thread::spawn(move || conversation(stream));
        }
    });
    ConnectionSpec {
        hosts: vec![HostSpec { host: "127.0.0.1".to_owned(), port, address: None }],
        database: "sales".to_owned(),
        user: "etl".to_owned(),
        password: Some(PASSWORD.to_owned()),
        application_name: "test".to_owned(),
        options: None,
        tls: TlsSpec { mode: TlsMode::Disable, ..TlsSpec::default() },
        connect_timeout_seconds: 5.0,
        stall_timeout_seconds: 0.0,
        keepalive: None,
        user_timeout_milliseconds: None,
    }
}

/// A server that sends these bytes, whatever it hears, and closes.
pub fn says(bytes: Vec<u8>) -> ConnectionSpec {
    let (script, spec) = speaker();
    script.write(bytes);
    spec
}

/// What a [`speaker`] sends to the next connection.
#[derive(Clone, Default)]
pub struct Script(Arc<Mutex<Vec<u8>>>);

impl Script {
    pub fn write(&self, bytes: Vec<u8>) {
        *self.0.lock().unwrap() = bytes;
    }

    /// Sends it all, says no more, and listens until the client has had enough.
    pub fn speak(&self, stream: &mut TcpStream) {
        let bytes = self.0.lock().unwrap().clone();
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        drain(stream);
    }
}

/// A server for many connections, each with another script.
pub fn speaker() -> (Script, ConnectionSpec) {
    let script = Script::default();
    let spoken = script.clone();
    (script, serve(move |mut stream| spoken.speak(&mut stream)))
}

/// Reads until the client closes.
pub fn drain(stream: &mut TcpStream) {
    let mut buffer = [0; 65_536];
    while matches!(stream.read(&mut buffer), Ok(count) if count > 0) {}
}

/// One message of the server.
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    bytes.extend(body);
    bytes
}

/// An error (`E`) or notice (`N`).
pub fn report(tag: u8, severity: &str, sqlstate: &str, text: &[u8]) -> Vec<u8> {
    let mut body = format!("S{severity}\0V{severity}\0C{sqlstate}\0M").into_bytes();
    body.extend(text);
    body.extend(b"\0\0");
    message(tag, &body)
}

pub fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

pub fn complete(tag: &str) -> Vec<u8> {
    message(b'C', format!("{tag}\0").as_bytes())
}

/// What a friendly server says to a client that needs no password, in order; the session is prepared behind it.
pub fn friendly() -> Vec<Vec<u8>> {
    vec![
        message(b'R', &[0, 0, 0, 0]),
        message(b'S', b"server_version\x0015.4\0"),
        message(b'K', &[0, 0, 4, 210, 0, 0, 0, 7]),
        ready(),
        complete("SET"),
        ready(),
        message(b'T', b"\0\x01set_config\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0"),
        message(b'D', b"\0\x01\0\0\0\x01C"),
        complete("SELECT 1"),
        ready(),
    ]
}

/// Logs in, then goes on by itself. The first request behind the login is read before.
pub fn session(then: impl Fn(TcpStream) + Send + Sync + 'static) -> ConnectionSpec {
    session_with_cancel(then, drop)
}

/// The same; `cancelled` gets the connections on which a CancelRequest has come.
pub fn session_with_cancel(
    then: impl Fn(TcpStream) + Send + Sync + 'static,
    cancelled: impl Fn(TcpStream) + Send + Sync + 'static,
) -> ConnectionSpec {
    serve(move |mut stream| {
        let mut start = [0; 8];
        stream.read_exact(&mut start).unwrap();
        if start[4..] == 80_877_102_u32.to_be_bytes() {
            return cancelled(stream);
        }
        let mut rest =
            vec![0; usize::try_from(u32::from_be_bytes([start[0], start[1], start[2], start[3]])).unwrap() - 8];
        stream.read_exact(&mut rest).unwrap();
        stream.write_all(&friendly().concat()).unwrap();
        for _ in 0..2 {
            request(&mut stream); // settings, language
        }
        then(stream);
    })
}

/// One request of the client: its tag and body.
pub fn request(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut header = [0; 5];
    stream.read_exact(&mut header).ok()?;
    let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
    let mut body = vec![0; usize::try_from(length).unwrap() - 4];
    stream.read_exact(&mut body).ok()?;
    Some((header[0], body))
}

pub fn never() -> Interrupt {
    Arc::new(|| false)
}

pub fn connect(spec: &ConnectionSpec) -> Connection {
    Connection::connect(spec, never()).unwrap()
}

/// The error of a connect, without the password in it.
pub fn refused(spec: &ConnectionSpec) -> CoreError {
    let error = Connection::connect(spec, never()).err().expect("it connected");
    let text = format!("{error:?} {error} {spec:?}");
    assert!(!text.contains(PASSWORD), "{text}");
    error
}

/// Longer than anybody waits: how long a server sleeps that says nothing more. Its thread ends with the process.
pub const FOR_EVER: Duration = Duration::from_secs(86_400);
