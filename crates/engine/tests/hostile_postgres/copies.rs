//! COPY into servers that fail, fall silent, or talk too much.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use headrace_engine::postgres::{Connection, CopyIn};
use headrace_types::{CoreError, ErrorKind};

use crate::fake::{after, complete, connect, drain, message, never, ready, report, request, session, within};

fn start(stream: &mut TcpStream) {
    request(stream);
    stream.write_all(&message(b'G', &[0, 0, 0])).unwrap();
}

fn copy(then: impl Fn(TcpStream) + Send + Sync + 'static) -> CopyIn {
    let spec = session(move |mut stream| {
        start(&mut stream);
        then(stream);
    });
    connect(&spec).copy_in("COPY t FROM STDIN").unwrap()
}

/// Sends frames of 256 KB until something fails; at most 1 GB.
fn send_until_failure(copy: &mut CopyIn) -> CoreError {
    for _ in 0..4096 {
        let sent = copy.buffer().and_then(|mut frame| {
            frame.resize(256 << 10, b'x');
            copy.send(frame)
        });
        if let Err(error) = sent {
            return error;
        }
    }
    panic!("1 GB was sent and nothing failed");
}

#[test]
fn frames_arrive_whole_and_in_order() {
    let mut copy = copy(|mut stream| {
        for number in 0..100_u8 {
            let (tag, body) = request(&mut stream).unwrap();
            assert!(tag == b'd' && body == vec![number; usize::from(number) * 1000]);
        }
        assert_eq!(request(&mut stream).unwrap(), (b'c', Vec::new()));
        stream.write_all(&[complete("COPY 12345"), ready()].concat()).unwrap();
        assert_eq!(request(&mut stream).unwrap().0, b'X');
    });
    for number in 0..100_u8 {
        let mut frame = copy.buffer().unwrap();
        assert_eq!(frame.len(), 5);
        frame.extend(vec![number; usize::from(number) * 1000]);
        copy.send(frame).unwrap();
    }
    let (connection, rows) = copy.finish().unwrap();
    assert_eq!(rows, 12_345);
    connection.close();
}

#[test]
fn an_error_between_frames_ends_the_copy_and_leaves_the_session() {
    let mut copy = copy(|mut stream| {
        request(&mut stream);
        stream.write_all(&[report(b'E', "ERROR", "23505", b"duplicate"), ready()].concat()).unwrap();
        while let Some((tag, _)) = request(&mut stream) {
            if tag == b'Q' {
                stream.write_all(&[complete("ROLLBACK"), ready()].concat()).unwrap();
            }
        }
    });
    let error = within(Duration::from_secs(5), || send_until_failure(&mut copy));
    assert_eq!(error.server.unwrap().sqlstate, "23505");
    copy.abort("over").unwrap().execute("ROLLBACK").unwrap();
}

#[test]
fn an_error_is_noticed_without_frames_and_by_finish() {
    let failing = |mut stream: TcpStream| {
        stream.write_all(&[report(b'E', "ERROR", "53100", b"disk full"), ready()].concat()).unwrap();
        drain(&mut stream);
    };
    let mut idle = copy(failing);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(idle.buffer().unwrap_err().server.unwrap().sqlstate, "53100");
    let finished = copy(failing).finish();
    assert_eq!(finished.err().unwrap().server.unwrap().sqlstate, "53100");
}

#[test]
fn fatal_errors_and_lost_connections_say_why() {
    let mut terminated = copy(|mut stream| {
        request(&mut stream);
        // Closes with unread data: the client's next write meets a reset connection.
        stream.write_all(&report(b'E', "FATAL", "57P01", b"terminated")).unwrap();
    });
    let error = send_until_failure(&mut terminated);
    assert_eq!((error.kind, error.server.unwrap().sqlstate.as_str()), (ErrorKind::TargetBusy, "57P01"));
    assert!(terminated.abort("over").is_none());

    let mut cut = copy(|mut stream| drop(request(&mut stream)));
    let error = send_until_failure(&mut cut);
    assert_eq!((error.kind, error.retryable), (ErrorKind::TargetBusy, true));
    assert!(error.what.contains("sending rows"), "{error:?}");
    assert!(cut.finish().is_err());
}

#[test]
fn a_server_that_talks_before_it_listens_does_not_stop_the_copy() {
    let notice = report(b'N', "WARNING", "01000", &[b'w'; 1000]);
    let mut copy = copy(move |mut stream| {
        for _ in 0..20_000 {
            stream.write_all(&notice).unwrap(); // 20 MB, more than all buffers between
        }
        let mut frames = 0;
        while let Some((b'd', _)) = request(&mut stream) {
            frames += 1;
        }
        stream.write_all(&[complete(&format!("COPY {frames}")), ready()].concat()).unwrap();
    });
    for _ in 0..200 {
        let mut frame = copy.buffer().unwrap();
        frame.resize(256 << 10, b'x');
        copy.send(frame).unwrap();
    }
    let (mut connection, rows) = copy.finish().unwrap();
    assert_eq!((rows, connection.take_notices().len()), (200, 100));
}

#[test]
fn a_server_that_stops_reading_cannot_hold_us() {
    let spec = session(|mut stream| {
        start(&mut stream);
        std::thread::sleep(Duration::from_secs(8));
        drop(stream);
    });
    let connection = Connection::connect(&spec, after(Duration::from_millis(400))).unwrap();
    let mut copy = connection.copy_in("COPY t FROM STDIN").unwrap();
    let error = within(Duration::from_secs(2), || send_until_failure(&mut copy));
    assert_eq!(error.kind, ErrorKind::Cancelled);
    assert!(copy.waited() > Duration::from_millis(100));
    assert!(within(Duration::from_secs(2), || copy.abort("over")).is_none());

    // Without an interrupt: abort waits 5 seconds, drop does not.
    let mut buried = connect(&spec).copy_in("COPY t FROM STDIN").unwrap();
    for _ in 0..2 {
        let mut frame = buried.buffer().unwrap();
        frame.resize(16 << 20, b'x');
        buried.send(frame).unwrap();
    }
    within(Duration::from_secs(7), || assert!(buried.abort("over").is_none()));
    let mut buried = connect(&spec).copy_in("COPY t FROM STDIN").unwrap();
    let mut frame = buried.buffer().unwrap();
    frame.resize(16 << 20, b'x');
    buried.send(frame).unwrap();
    within(Duration::from_secs(2), || drop(buried));
}

#[test]
fn answers_that_do_not_fit_a_copy_are_errors() {
    for bytes in [
        complete("COPY"),
        complete("COPY many"),
        complete("INSERT 0 1"),
        ready(),
        message(b'D', b"\0\0"),
        vec![b'C', 0],
    ] {
        let finished = copy(move |mut stream| {
            while !matches!(request(&mut stream), Some((b'c', _)) | None) {}
            stream.write_all(&bytes).unwrap();
        })
        .finish();
        assert!(finished.is_err());
    }
    for bytes in [complete("COPY 1"), ready(), message(b'T', b"\0\0"), Vec::new()] {
        let spec = session(move |mut stream| {
            request(&mut stream);
            stream.write_all(&bytes).unwrap();
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read(&mut [0; 16]);
        });
        assert!(Connection::connect(&spec, never()).unwrap().copy_in("COPY t FROM STDIN").is_err());
    }
}

#[test]
fn frames_may_come_from_elsewhere() {
    let mut copy = copy(|mut stream| {
        let mut frames = 0;
        while let Some((b'd', _)) = request(&mut stream) {
            frames += 1;
        }
        stream.write_all(&[complete(&format!("COPY {frames}")), ready()].concat()).unwrap();
    });
    for _ in 0..50 {
        copy.send(vec![0; 1000]).unwrap();
        drop(copy.buffer().unwrap());
    }
    assert_eq!(copy.finish().unwrap().1, 50);
}

#[test]
fn frames_of_impossible_size_are_refused() {
    let mut copy = copy(|mut stream| drain(&mut stream));
    for length in [0, 4, (512 << 20) + 1] {
        assert_eq!(copy.send(vec![0; length]).unwrap_err().kind, ErrorKind::Internal);
    }
}

#[test]
fn the_memory_of_a_long_row_is_not_kept() {
    let mut copy = copy(|mut stream| drain(&mut stream));
    for _ in 0..5 {
        let mut frame = copy.buffer().unwrap();
        frame.resize(16 << 20, b'x');
        copy.send(frame).unwrap();
    }
    for _ in 0..20 {
        let mut frame = copy.buffer().unwrap();
        frame.resize(128 << 10, b'x');
        copy.send(frame).unwrap();
    }
    let kept: Vec<usize> = (0..3).map(|_| copy.buffer().unwrap().capacity()).collect();
    assert!(kept.iter().all(|bytes| *bytes <= 1 << 20), "{kept:?}");
}
