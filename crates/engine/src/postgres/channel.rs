//! Bytes to and from the server, plain or through TLS. Nothing here blocks but `wait`.

use std::io::{self, ErrorKind, Read, Write};

use rustls::ClientConnection;

use super::metered::Metered;
use super::socket::{Ready, Socket};
use super::stall::Watch;
use super::wait::{Broken, Patience};
use crate::meter::Sending;

/// A connected channel.
pub struct Channel {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
    /// Ends every wait on this channel.
    pub patience: Patience,
    /// Notices that nothing moves.
    pub watch: Watch,
    /// Told what the channel is at.
    pub metered: Metered,
}

impl Channel {
    /// A channel without encryption.
    pub fn new(socket: Socket, patience: Patience) -> Channel {
        Channel { socket, tls: None, patience, watch: Watch::new(None), metered: Metered::default() }
    }

    /// From now on everything goes through TLS. Returns after the handshake.
    pub fn start_tls(&mut self, tls: ClientConnection) -> Result<(), Broken> {
        self.tls = Some(Box::new(tls));
        loop {
            let flushed = self.try_flush()?;
            let Some(tls) = &mut self.tls else { return Ok(()) };
            if !tls.is_handshaking() && flushed {
                return Ok(());
            }
            let reading = tls.wants_read();
            if self.wait(reading, !flushed)?.readable {
                self.receive_tls()?;
            }
        }
    }

    /// The TLS session.
    pub fn tls(&self) -> Option<&ClientConnection> {
        self.tls.as_deref()
    }

    /// Reads what is there; None if nothing is.
    pub fn try_read(&mut self, into: &mut [u8]) -> Result<Option<usize>, Broken> {
        loop {
            let Some(tls) = &mut self.tls else {
                let count = read(&mut self.socket, into)?;
                self.watch.moved_if(count.is_some());
                return Ok(count);
            };
            match tls.reader().read(into) {
                Ok(0) => return Err(Broken::Closed),
                Ok(count) => return Ok(Some(count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // No close_notify: PostgreSQL's servers end this way when they die.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(Broken::Closed),
                Err(error) => return Err(error.into()),
            }
            if !self.receive_tls()? {
                return Ok(None);
            }
        }
    }

    /// Writes as much as there is room for; 0 if there is none.
    pub fn try_write(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        let Some(tls) = &mut self.tls else {
            let count = write(&mut self.socket, bytes)?;
            self.watch.moved_if(count > 0);
            self.metered.add_bytes(count);
            return Ok(count);
        };
        if tls.wants_write() && !self.try_flush()? {
            return Ok(0);
        }
        let Some(tls) = &mut self.tls else { return Ok(0) };
        let count = tls.writer().write(bytes)?;
        self.try_flush()?;
        Ok(count)
    }

    /// Hands what TLS holds back to the socket; true when nothing is left.
    pub fn try_flush(&mut self) -> Result<bool, Broken> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(&mut self.socket) {
                Ok(count) => {
                    self.watch.moved();
                    self.metered.add_bytes(count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Fails if nobody wants to wait any more, or nothing moves. `held`: whether there are bytes that the socket did not take.
    pub fn check(&mut self, held: bool) -> Result<(), Broken> {
        self.patience.check()?;
        self.metered.look(&self.socket);
        if self.watch.is_on() {
            let held = held || self.tls.as_ref().is_some_and(|tls| tls.wants_write());
            self.watch.check(self.socket.untaken_bytes(), held)?;
        }
        Ok(())
    }

    /// Waits until the server sent something or takes something; at most one step.
    pub fn wait(&mut self, reading: bool, writing: bool) -> Result<Ready, Broken> {
        self.check(writing)?;
        let wait = || self.socket.wait(reading, writing, &self.patience);
        if writing { self.metered.during(Sending::WaitOutput, wait) } else { wait() }
    }

    /// Ends both directions: the server notices at once, whoever still holds the channel.
    pub fn close(&self) {
        self.metered.end(&self.socket);
        self.socket.close();
    }

    /// Takes one portion from the socket into TLS; false if there was none.
    fn receive_tls(&mut self) -> Result<bool, Broken> {
        let Some(tls) = &mut self.tls else { return Ok(false) };
        match tls.read_tls(&mut self.socket) {
            Ok(0) => return Err(Broken::Closed),
            Ok(_) => self.watch.moved(),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        if let Err(error) = tls.process_new_packets() {
            // The alert that tells the server why, if there is room for it.
            let _ = tls.write_tls(&mut self.socket);
            return Err(Broken::Tls(error));
        }
        Ok(true)
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.metered.end(&self.socket);
    }
}

fn read(socket: &mut Socket, into: &mut [u8]) -> Result<Option<usize>, Broken> {
    match socket.read(into) {
        Ok(0) => Err(Broken::Closed),
        Ok(count) => Ok(Some(count)),
        Err(error) if would_block(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn write(socket: &mut Socket, bytes: &[u8]) -> Result<usize, Broken> {
    match socket.write(bytes) {
        Ok(count) => Ok(count),
        Err(error) if would_block(&error) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
