//! What the system tells about a TCP connection.

use std::os::fd::AsRawFd;

use crate::measure::TcpMeasure;

/// Bytes of the kernel's `struct tcp_info` up to `tcpi_sndbuf_limited`, behind which nothing is needed; the system writes as much
/// of it as it has. The `libc` crate ends at `tcpi_total_retrans`, so fields are taken by their places, which never change.
const BYTES: usize = 192;

/// Places of fields.
mod place {
    pub const SEND_SEGMENT_BYTES: usize = 16;
    pub const UNACKNOWLEDGED: usize = 24;
    pub const ROUND_TRIP_MICROSECONDS: usize = 68;
    pub const CONGESTION_WINDOW: usize = 80;
    pub const TOTAL_RETRANSMITS: usize = 100;
    pub const NOT_SENT_BYTES: usize = 144;
    pub const LEAST_ROUND_TRIP_MICROSECONDS: usize = 148;
    pub const DELIVERY_RATE_BYTES: usize = 160;
    pub const BUSY_MICROSECONDS: usize = 168;
    pub const RECEIVE_WINDOW_LIMITED_MICROSECONDS: usize = 176;
    pub const SEND_BUFFER_LIMITED_MICROSECONDS: usize = 184;
}

/// What the system knows of a connected TCP socket; none of other sockets. Takes less than a microsecond.
pub fn tcp_info(socket: &impl AsRawFd) -> Option<TcpMeasure> {
    let mut bytes = [0_u8; BYTES];
    let mut length = BYTES as libc::socklen_t;
    // SAFETY: a system call on a descriptor that its owner keeps open meanwhile; it writes at most `length` bytes to `bytes`, which
    // has as many and for which any bytes are a value, and to `length` how many these are.
    let failed = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, bytes.as_mut_ptr().cast(), &mut length)
    };
    (failed == 0).then(|| measure(bytes.get(..length as usize).unwrap_or(&bytes)))
}

/// Of the bytes that the system has written: older ones know less.
fn measure(known: &[u8]) -> TcpMeasure {
    let short = |at: usize| Some(u32::from_ne_bytes(*known.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u64::from_ne_bytes(*known.get(at..)?.first_chunk()?));
    let seconds = |microseconds: u64| microseconds as f64 / 1e6;
    TcpMeasure {
        busy_seconds: long(place::BUSY_MICROSECONDS).map(seconds),
        receive_window_limited_seconds: long(place::RECEIVE_WINDOW_LIMITED_MICROSECONDS).map(seconds),
        send_buffer_limited_seconds: long(place::SEND_BUFFER_LIMITED_MICROSECONDS).map(seconds),
        retransmits: short(place::TOTAL_RETRANSMITS),
        rtt_seconds: short(place::ROUND_TRIP_MICROSECONDS).map(|time| seconds(time.into())),
        // All ones as long as there was no round trip.
        least_rtt_seconds: short(place::LEAST_ROUND_TRIP_MICROSECONDS)
            .filter(|&time| time != u32::MAX)
            .map(|time| seconds(time.into())),
        // 0 as long as nothing was delivered.
        delivery_rate_bytes: long(place::DELIVERY_RATE_BYTES).filter(|&rate| rate > 0),
        not_sent_bytes: short(place::NOT_SENT_BYTES),
        unacknowledged: short(place::UNACKNOWLEDGED),
        congestion_window: short(place::CONGESTION_WINDOW),
        segment_bytes: short(place::SEND_SEGMENT_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    #[test]
    fn a_peer_that_does_not_read_limits_by_its_window() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let before = tcp_info(&socket).unwrap();
        assert_eq!((before.retransmits, before.unacknowledged, before.not_sent_bytes), (Some(0), Some(0), Some(0)));
        assert!(before.segment_bytes.unwrap() > 500 && before.congestion_window.unwrap() > 0);
        assert!(before.rtt_seconds.unwrap() < 1.0, "{before:?}");

        socket.set_nonblocking(true).unwrap();
        let chunk = [0; 65_536];
        let mut sent = 0;
        while let Ok(count) = socket.write(&chunk) {
            sent += count;
        }
        std::thread::sleep(Duration::from_millis(100));
        let full = tcp_info(&socket).unwrap();
        assert!(full.not_sent_bytes.unwrap() > 0, "{full:?}");
        assert!(full.busy_seconds.unwrap() >= 0.09, "{full:?}");
        assert!(full.receive_window_limited_seconds.unwrap() >= 0.05, "{full:?}");

        peer.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut buffer = vec![0; 65_536];
        while sent > 0 {
            sent -= peer.read(&mut buffer).unwrap();
        }
        let after = tcp_info(&socket).unwrap();
        assert_eq!(after.not_sent_bytes, Some(0));
        assert!(after.delivery_rate_bytes.unwrap() > 0 && after.least_rtt_seconds.unwrap() < 1.0, "{after:?}");
        assert!(after.busy_seconds >= full.busy_seconds);
    }

    #[test]
    fn other_sockets_have_none_and_older_systems_know_less() {
        assert!(tcp_info(&UnixStream::pair().unwrap().0).is_none());
        let bytes: Vec<u8> = (0..BYTES as u8).collect();
        for length in 0..BYTES {
            let measure = measure(&bytes[..length]);
            assert_eq!(measure.send_buffer_limited_seconds, None);
            assert_eq!(measure.retransmits.is_some(), length >= 104);
            assert_eq!(measure.least_rtt_seconds.is_some(), length >= 152);
        }
        assert_eq!(measure(&bytes).segment_bytes, Some(u32::from_ne_bytes([16, 17, 18, 19])));
    }
}
