//! TCP and Unix sockets that never block: a `poll` waits for them.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, SockAddr, TcpKeepalive, Type};

use super::address::Address;
use super::spec::ConnectionSpec;
use super::tcp_info::tcp_info;
use super::wait::{Broken, Patience};
use crate::measure::TcpMeasure;

/// Asked for on Unix sockets, whose default of 208 KB makes client and server take turns; the system's `wmem_max` caps
/// it. TCP sizes its buffers by itself as long as nobody sets them.
const UNIX_SEND_BUFFER_BYTES: usize = 4 << 20;

/// A connected socket in non-blocking mode.
pub struct Socket(socket2::Socket);

/// What a wait ended with; both may be true.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// There are bytes to read, or an end, or an error.
    pub readable: bool,
    /// There is room to write, or an error.
    pub writable: bool,
}

impl Socket {
    /// Connects; the options of the specification are set before.
    pub fn connect(address: &Address, spec: &ConnectionSpec, patience: &Patience) -> Result<Socket, Broken> {
        let (domain, target) = match address {
            Address::Tcp(address) => (Domain::for_address(*address), SockAddr::from(*address)),
            Address::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
        };
        let socket = socket2::Socket::new(domain, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        match address {
            Address::Tcp(_) => set_tcp_options(&socket, spec)?,
            // An option, not a need: without it sending only takes more turns.
            Address::Unix(_) => drop(socket.set_send_buffer_size(UNIX_SEND_BUFFER_BYTES)),
        }
        let socket = Socket(socket);
        loop {
            patience.check()?;
            match socket.0.connect(&target) {
                Ok(()) => return Ok(socket),
                // A Unix socket whose queue of connects is full: there is nothing to poll for.
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(20)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => break,
                Err(error) => return Err(error.into()),
            }
        }
        while !socket.wait(false, true, patience)?.writable {}
        match socket.0.take_error()? {
            None => Ok(socket),
            Some(error) => Err(error.into()),
        }
    }

    /// Waits until the socket is ready for one of the two. After at most [`super::wait::STEP`] it returns with neither.
    pub fn wait(&self, reading: bool, writing: bool, patience: &Patience) -> Result<Ready, Broken> {
        patience.check()?;
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, reading);
        flags.set(PollFlags::OUT, writing);
        let mut sockets = [PollFd::new(&self.0, flags)];
        let step = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.step().subsec_nanos()).max(1_000_000) };
        match poll(&mut sockets, Some(&step)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let found = sockets[0].revents();
        // Errors show up in the next read or write.
        let ended = found.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
        Ok(Ready {
            readable: ended || found.contains(PollFlags::IN),
            writable: ended || found.contains(PollFlags::OUT),
        })
    }

    /// Sent bytes that the peer's system has not taken; 0 if this one does not tell.
    pub fn untaken_bytes(&self) -> usize {
        let mut bytes: libc::c_int = 0;
        // SAFETY: a system call on a descriptor that we own; `bytes` is a valid place for the result.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) };
        if done == 0 { usize::try_from(bytes).unwrap_or(0) } else { 0 }
    }

    /// What the system knows of the connection; none of a Unix socket.
    pub fn tcp_info(&self) -> Option<TcpMeasure> {
        tcp_info(&self.0)
    }

    /// Ends both directions.
    pub fn close(&self) {
        // Fails if the peer has done it before.
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A peer that is gone is an error, not a signal that ends the process.
        self.0.send_with_flags(bytes, libc::MSG_NOSIGNAL)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn set_tcp_options(socket: &socket2::Socket, spec: &ConnectionSpec) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_keepalive(spec.keepalive.is_some())?;
    if let Some(keepalive) = &spec.keepalive {
        // The system accepts 1 to 32,767 seconds and 1 to 127 probes.
        let seconds = |number: u32| Duration::from_secs(u64::from(number.clamp(1, 32_767)));
        socket.set_tcp_keepalive(
            &TcpKeepalive::new()
                .with_time(seconds(keepalive.idle_seconds))
                .with_interval(seconds(keepalive.interval_seconds))
                .with_retries(keepalive.count.clamp(1, 127)),
        )?;
    }
    let limit = spec.user_timeout_milliseconds.filter(|milliseconds| *milliseconds > 0);
    socket.set_tcp_user_timeout(limit.map(|milliseconds| Duration::from_millis(u64::from(milliseconds))))
}
