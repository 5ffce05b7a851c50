//! COPY into servers that fail, fall silent, or talk too much.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use headrace_engine::postgres::{Connection, ConnectionSpec, CopyIn, Interrupt, SeenAtWork};
use headrace_types::{CoreError, ErrorKind};

use crate::fake::{
    FOR_EVER, complete, connect, drain, message, never, ready, report, request, session, session_with_cancel,
};
use crate::patience::{Alarm, soon};

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

/// Both ways to send.
fn copies(then: impl Fn(TcpStream) + Clone + Send + Sync + 'static) -> [CopyIn; 2] {
    let own = then.clone();
    let spec = session(move |mut stream| {
        start(&mut stream);
        own(stream);
    });
    [copy(then), connect(&spec).copy_in_directly("COPY t FROM STDIN").unwrap()]
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
    let both = copies(|mut stream| {
        for number in 0..100_u8 {
            let (tag, body) = request(&mut stream).unwrap();
            assert!(tag == b'd' && body == vec![number; usize::from(number) * 1000]);
        }
        assert_eq!(request(&mut stream).unwrap(), (b'c', Vec::new()));
        stream.write_all(&[complete("COPY 12345"), ready()].concat()).unwrap();
        assert_eq!(request(&mut stream).unwrap().0, b'X');
    });
    for mut copy in both {
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
}

#[test]
fn an_error_between_frames_ends_the_copy_and_leaves_the_session() {
    let both = copies(|mut stream| {
        request(&mut stream);
        stream.write_all(&[report(b'E', "ERROR", "23505", b"duplicate"), ready()].concat()).unwrap();
        while let Some((tag, _)) = request(&mut stream) {
            if tag == b'Q' {
                stream.write_all(&[complete("ROLLBACK"), ready()].concat()).unwrap();
            }
        }
    });
    for mut copy in both {
        let error = soon(|| send_until_failure(&mut copy));
        assert_eq!(error.server.unwrap().sqlstate, "23505");
        copy.abort("over").unwrap().execute("ROLLBACK").unwrap();
    }
}

#[test]
fn an_error_is_noticed_without_frames_and_by_finish() {
    let failing = |mut stream: TcpStream| {
        stream.write_all(&[report(b'E', "ERROR", "53100", b"disk full"), ready()].concat()).unwrap();
        drain(&mut stream);
    };
    let mut idle = copy(failing);
    let error = soon(|| {
        loop {
            match idle.buffer() {
                Ok(_) => std::thread::sleep(Duration::from_millis(10)),
                Err(error) => break error,
            }
        }
    });
    assert_eq!(error.server.unwrap().sqlstate, "53100");
    let finished = copy(failing).finish();
    assert_eq!(finished.err().unwrap().server.unwrap().sqlstate, "53100");
}

#[test]
fn fatal_errors_and_lost_connections_say_why() {
    let both = copies(|mut stream| {
        request(&mut stream);
        // Closes with unread data: the client's next write meets a reset connection.
        stream.write_all(&report(b'E', "FATAL", "57P01", b"terminated")).unwrap();
    });
    for mut terminated in both {
        let error = send_until_failure(&mut terminated);
        assert_eq!((error.kind, error.server.unwrap().sqlstate.as_str()), (ErrorKind::TargetBusy, "57P01"));
        assert!(terminated.abort("over").is_none());
    }

    for mut cut in copies(|mut stream| drop(request(&mut stream))) {
        let error = send_until_failure(&mut cut);
        assert_eq!((error.kind, error.retryable), (ErrorKind::TargetBusy, true));
        assert!(error.what.contains("sending rows"), "{error:?}");
        assert!(cut.finish().is_err());
    }
}

#[test]
fn a_server_that_talks_before_it_listens_does_not_stop_the_copy() {
    let notice = report(b'N', "WARNING", "01000", &[b'w'; 1000]);
    let both = copies(move |mut stream| {
        for _ in 0..20_000 {
            stream.write_all(&notice).unwrap(); // 20 MB, more than all buffers between
        }
        let mut frames = 0;
        while let Some((b'd', _)) = request(&mut stream) {
            frames += 1;
        }
        stream.write_all(&[complete(&format!("COPY {frames}")), ready()].concat()).unwrap();
    });
    for mut copy in both {
        for _ in 0..200 {
            let mut frame = copy.buffer().unwrap();
            frame.resize(256 << 10, b'x');
            copy.send(frame).unwrap();
        }
        let (mut connection, rows) = copy.finish().unwrap();
        assert_eq!((rows, connection.take_notices().len()), (200, 100));
    }
}

/// So many, one after the other, would hang if each waited the 5 seconds of `abort`.
const MANY: usize = 15;
/// So many would hang if they were aborted one after the other: each asks for the end of its session, half a second.
const VERY_MANY: usize = 130;

#[test]
fn a_server_that_stops_reading_cannot_hold_us() {
    let spec = session(|mut stream| {
        start(&mut stream);
        std::thread::sleep(FOR_EVER);
        drop(stream);
    });
    let alarm = Alarm::default();
    let interrupted = |_| Connection::connect(&spec, alarm.interrupt()).unwrap().copy_in("COPY t FROM STDIN").unwrap();
    let copies: Vec<CopyIn> = (0..MANY).map(interrupted).collect();
    alarm.raise_soon();
    soon(|| {
        for mut copy in copies {
            assert_eq!(send_until_failure(&mut copy).kind, ErrorKind::Cancelled);
            assert!(copy.abort("over").is_none());
        }
    });

    // Without an interrupt: abort waits 5 seconds, drop does not.
    let mut buried = connect(&spec).copy_in("COPY t FROM STDIN").unwrap();
    for _ in 0..2 {
        let mut frame = buried.buffer().unwrap();
        frame.resize(16 << 20, b'x');
        buried.send(frame).unwrap();
    }
    soon(|| assert!(buried.abort("over").is_none()));
    let bury = |_| {
        let mut buried = connect(&spec).copy_in("COPY t FROM STDIN").unwrap();
        let mut frame = buried.buffer().unwrap();
        frame.resize(16 << 20, b'x');
        buried.send(frame).unwrap();
        buried
    };
    let buried: Vec<CopyIn> = (0..MANY).map(bury).collect();
    soon(|| drop(buried));
}

/// Many times what a busy machine makes out of the shorter pauses below.
const STALL: Duration = Duration::from_secs(2);

/// A server that takes no data of a COPY for that long, and then all of it.
fn deaf(silence: Duration) -> ConnectionSpec {
    let spec = session(move |mut stream| {
        start(&mut stream);
        std::thread::sleep(silence);
        let mut frames = 0;
        while let Some((b'd', _)) = request(&mut stream) {
            frames += 1;
        }
        let _ = stream.write_all(&[complete(&format!("COPY {frames}")), ready()].concat());
    });
    ConnectionSpec { stall_timeout_seconds: STALL.as_secs_f64(), ..spec }
}

fn frame(copy: &mut CopyIn, bytes: usize) -> Result<(), CoreError> {
    let mut frame = copy.buffer()?;
    frame.resize(bytes, b'x');
    copy.send(frame)
}

#[test]
fn a_connection_on_which_nothing_moves_is_given_up() {
    let mut copy = connect(&deaf(FOR_EVER)).copy_in("COPY t FROM STDIN").unwrap();
    let error = soon(|| send_until_failure(&mut copy));
    assert_eq!((error.kind, error.retryable), (ErrorKind::TargetBusy, true), "{error}");
    assert!(error.found.unwrap().starts_with("no byte has moved for 2 s"));

    // Everything is sent, but not taken: found while nobody sends, and while the end is waited for.
    for ends in [false, true] {
        let mut copy = connect(&deaf(FOR_EVER)).copy_in("COPY t FROM STDIN").unwrap();
        for _ in 0..4 {
            frame(&mut copy, 2 << 20).unwrap();
        }
        let error = soon(|| match ends {
            true => copy.finish().err().unwrap(),
            false => {
                std::thread::sleep(STALL + STALL / 2);
                copy.buffer().unwrap_err()
            }
        });
        assert_eq!(error.kind, ErrorKind::TargetBusy, "{error}");
    }
}

#[test]
fn a_pause_that_is_shorter_or_without_pending_bytes_is_none() {
    let mut copy = connect(&deaf(Duration::from_millis(300))).copy_in("COPY t FROM STDIN").unwrap();
    for _ in 0..40 {
        frame(&mut copy, 1 << 20).unwrap();
    }
    assert_eq!(copy.finish().unwrap().1, 40);

    // Few bytes, which the server's system takes: it may think about them as long as it likes.
    let mut copy = connect(&deaf(STALL + STALL / 2)).copy_in("COPY t FROM STDIN").unwrap();
    frame(&mut copy, 1000).unwrap();
    assert_eq!(copy.finish().unwrap().1, 1);

    // The other way round: the client has nothing to send.
    let mut copy = connect(&deaf(Duration::ZERO)).copy_in("COPY t FROM STDIN").unwrap();
    frame(&mut copy, 8 << 20).unwrap();
    std::thread::sleep(STALL + STALL / 2);
    frame(&mut copy, 8 << 20).unwrap();
    assert_eq!(copy.finish().unwrap().1, 2);
}

#[test]
fn a_server_that_is_seen_at_work_is_waited_for() {
    let seen = SeenAtWork::default();
    let mut connection = connect(&deaf(STALL + STALL / 2));
    connection.trust(seen.clone());
    let process = connection.process_id();
    let mut copy = connection.copy_in("COPY t FROM STDIN").unwrap();
    let watcher = std::thread::spawn(move || {
        for _ in 0..40 {
            seen.add(&[process]);
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    for _ in 0..40 {
        frame(&mut copy, 1 << 20).unwrap();
    }
    assert_eq!(copy.finish().unwrap().1, 40);
    watcher.join().unwrap();
}

#[test]
fn copies_are_aborted_side_by_side() {
    let spec = ConnectionSpec { stall_timeout_seconds: 0.0, ..deaf(FOR_EVER) };
    let copies = (0..12).map(|_| {
        let mut copy = connect(&spec).copy_in("COPY t FROM STDIN").unwrap();
        frame(&mut copy, 16 << 20).unwrap();
        copy
    });
    let mut copies: Vec<CopyIn> = copies.collect();
    // These take some, and wait with the end of it in vain.
    copies.extend((0..VERY_MANY).map(|_| connect(&spec).copy_in_directly("COPY t FROM STDIN").unwrap()));
    let polite = |mut stream: TcpStream| {
        while !matches!(request(&mut stream), Some((b'f', _)) | None) {}
        stream.write_all(&[report(b'E', "ERROR", "57014", b"aborted"), ready()].concat()).unwrap();
        drain(&mut stream);
    };
    copies.extend(self::copies(polite));
    let connections = soon(|| CopyIn::abort_all(copies, "over"));
    let usable: Vec<bool> = connections.iter().map(Option::is_some).collect();
    assert_eq!(usable, [vec![false; 12 + VERY_MANY], vec![true; 2]].concat());
}

/// A server behind a black hole: whatever it was told last, it says nothing more.
fn black_hole() -> ConnectionSpec {
    let silent = |stream: TcpStream| {
        std::thread::sleep(FOR_EVER);
        drop(stream);
    };
    let copying = move |mut stream: TcpStream| {
        start(&mut stream);
        silent(stream);
    };
    session_with_cancel(copying, silent)
}

#[test]
fn copies_into_a_black_hole_are_aborted_side_by_side() {
    let spec = black_hole();
    let alarm = Alarm::default();
    let started = |interrupt: &Interrupt| -> Vec<CopyIn> {
        let connection = || Connection::connect(&spec, Arc::clone(interrupt)).unwrap();
        let direct = (0..VERY_MANY).map(|_| connection().copy_in_directly("COPY t FROM STDIN").unwrap());
        let overlapped = (0..3).map(|_| connection().copy_in("COPY t FROM STDIN").unwrap());
        direct.chain(overlapped).collect()
    };
    // Nobody waits for them any more: each asks for the end of its session, which nobody hears.
    let copies = started(&alarm.interrupt());
    alarm.raise();
    let connections = soon(|| CopyIn::abort_all(copies, "over"));
    assert!(connections.iter().all(Option::is_none) && connections.len() == VERY_MANY + 3);
    // The server is waited for, and then the same.
    let copies = started(&never());
    let connections = soon(|| CopyIn::abort_all(copies, "over"));
    assert!(connections.iter().all(Option::is_none) && connections.len() == VERY_MANY + 3);
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
